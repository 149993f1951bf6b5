// SPDX-License-Identifier: Apache-2.0
/* The thread that writes snapshot files: of a family that is due, what everybody sees at one
 * moment (its histories, and the number of the last record in them), and the image of all their
 * roots, which stay as they are whatever comes meanwhile. Bytes: scenes_load.c. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu/svdag/image/image.h"
#include "proto/base/clock.h"
#include "server/observe/log/log.h"
#include "server/registry/maps/maps.h"
#include "server/registry/scenes/scene_catalogue.h"
#include "server/registry/scenes/scenes_journal.h"
#include "server/registry/scenes/scenes_recover.h"
#include "server/instance/instance.h"

enum {
    STEP_NS = 5000000, /* the pool's workers are shared with requests */
    TAKE_TRIES = 1000,
    TAKE_STEP_NS = 5000000, /* a commit or so */
    RETRY_S = 60            /* after a file that could not be written */
};

struct vxd_scene_saver {
    struct vxd_scenes *scenes;
    struct vxd_queue *queue;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    uint32_t *due; /* ids, each once */
    size_t n_due;
    size_t capacity;
    bool may_begin; /* all scenes are there */
    bool stopping;
};

/* What is written of a family. */
struct picture {
    struct vxd_scene_family *family; /* held by its scene */
    struct vxd_scene *scene;         /* one of it, held */
    struct vxd_scene_state state;    /* pins the store */
    struct vxd_snapshot_head head;
    struct vxd_bytes_out catalogue;
    uint32_t *roots;
    size_t n_roots;
};

/* --- what everybody sees ------------------------------------------------------------------- */

static size_t count_roots(const struct vxd_scene_family *family, size_t *n_scenes)
{
    size_t n = 0;

    *n_scenes = 0;
    for (const struct vxd_scene *s = family->first; s != NULL; s = s->next_in_family) {
        n += s->history.n - s->history.n_waiting + s->history.n_snapshots;
        *n_scenes += s->is_named ? 1 : 0;
    }
    return n;
}

/* Locks, at a moment when no change waits that is made from an older version: such a one may be
 * out of the history before the change is in it. */
static bool lock_for_picture(struct vxd_scenes *scenes,
                             const struct vxd_scene_family *family)
{
    const struct timespec step = {.tv_nsec = TAKE_STEP_NS};

    for (int i = 0; i < TAKE_TRIES; i++) {
        vxd_scenes_lock(scenes);
        if (family->n_referring == 0) {
            return true;
        }
        vxd_scenes_unlock(scenes);
        (void)nanosleep(&step, NULL);
    }
    return false;
}

/* With the mutex held: copies it all. */
static void copy_family(struct picture *picture)
{
    struct vxd_scene_family *family = picture->family;
    size_t n_scenes;

    picture->head.sequence = family->decided;
    (void)count_roots(family, &n_scenes);
    vxd_bytes_put_number(&picture->catalogue, n_scenes);
    for (const struct vxd_scene *s = family->first; s != NULL; s = s->next_in_family) {
        if (!s->is_named) {
            continue; /* dropped, and somebody has it yet */
        }
        vxd_scene_describe(&picture->catalogue, &s->terms, &s->spec, s->generation,
                           s->created_unix_ns);
        vxd_scene_write_history(&picture->catalogue, &s->history, picture->roots,
                                &picture->n_roots);
    }
}

/* A named scene of the family, held. */
static struct vxd_scene *hold_one(struct vxd_scenes *scenes, uint32_t journal_id)
{
    struct vxd_scene *scene;

    vxd_scenes_lock(scenes);
    scene = scenes->first;
    while (scene != NULL && scene->family->journal_id != journal_id) {
        scene = scene->next;
    }
    if (scene != NULL) {
        scene->references++;
    }
    vxd_scenes_unlock(scenes);
    return scene;
}

static enum vxd_status take(struct vxd_scene_saver *saver, struct picture *picture,
                            struct vxd_err *err)
{
    struct vxd_scenes *scenes = saver->scenes;
    size_t n_scenes;
    size_t n_roots;

    picture->family = picture->scene->family;
    picture->head.family = picture->family->journal_id;
    picture->head.epoch = picture->scene->generation;
    picture->head.rules_version = VXD_RULES_VERSION;
    picture->head.unix_ns = vxd_clock_unix_ns();
    (void)snprintf(picture->head.name, sizeof picture->head.name, "%s",
                   picture->scene->terms.name);
    vxd_scenes_lock(scenes);
    n_roots = count_roots(picture->family, &n_scenes);
    vxd_scenes_unlock(scenes);
    /* A few versions may come in between. */
    n_roots += n_roots / 8 + 64;
    picture->roots = calloc(n_roots, sizeof *picture->roots);
    if (picture->roots == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for roots");
    }
    if (!lock_for_picture(scenes, picture->family)) {
        return vxd_fail(err, VXD_UNAVAILABLE, NULL, "undos or branches never cease");
    }
    if (count_roots(picture->family, &n_scenes) > n_roots || n_scenes == 0) {
        vxd_scenes_unlock(scenes);
        return vxd_fail(err, VXD_UNAVAILABLE, NULL, "the scene changes too fast");
    }
    copy_family(picture);
    picture->state.store = picture->family->store;
    picture->state.svdag = picture->family->store->svdag;
    picture->state.store->references++;
    vxd_scenes_unlock(scenes);
    return !picture->catalogue.is_out_of_memory
               ? VXD_OK
               : vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a catalogue");
}

/* --- the file --------------------------------------------------------------------------- */

static enum vxd_status put_piece(void *args, uint64_t first, const uint32_t *words,
                                 size_t n_words, struct vxd_err *err)
{
    const uint8_t head[4] = {(uint8_t)n_words, (uint8_t)(n_words >> 8),
                             (uint8_t)(n_words >> 16), (uint8_t)(n_words >> 24)};
    enum vxd_status status;

    (void)first;
    VXD_TRY(vxd_snapshot_write(args, VXD_SNAPSHOT_IMAGE, head, sizeof head, err));
    status =
        vxd_snapshot_write(args, VXD_SNAPSHOT_IMAGE, words, n_words * sizeof *words, err);
out:
    return status;
}

static enum vxd_status put_end(struct vxd_svdag_saving *saving, struct picture *picture,
                               struct vxd_snapshot_writer *writer, struct vxd_err *err)
{
    struct vxd_bytes_out end = {0};
    struct vxd_svdag_image_info info;
    enum vxd_status status;

    vxd_svdag_image_result(saving, &info, picture->roots);
    vxd_bytes_put(&end, "\0\0\0\0", 4);
    vxd_bytes_put_number(&end, info.n_words);
    vxd_bytes_put_number(&end, info.leaves);
    vxd_bytes_put_number(&end, info.inner);
    vxd_bytes_put_number(&end, picture->n_roots);
    for (size_t i = 0; i < picture->n_roots; i++) {
        vxd_bytes_put_number(&end, picture->roots[i]);
    }
    status = !end.is_out_of_memory
                 ? vxd_snapshot_write(writer, VXD_SNAPSHOT_IMAGE, end.bytes, end.n, err)
                 : vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for roots");
    free(end.bytes);
    return status;
}

static enum vxd_status write_image(struct vxd_scene_saver *saver, struct picture *picture,
                                   struct vxd_snapshot_writer *writer,
                                   struct vxd_err *err)
{
    struct vxd_svdag_saving *saving = NULL;
    bool is_done = false;
    enum vxd_status status;

    VXD_TRY(vxd_svdag_image_begin(saver->queue, picture->state.svdag, picture->roots,
                                  picture->n_roots, &saving, err));
    while (!is_done) {
        VXD_TRY(vxd_svdag_image_step(saver->queue, saving, STEP_NS, put_piece, writer,
                                     &is_done, err));
    }
    status = put_end(saving, picture, writer, err);
out:
    vxd_svdag_image_end(saver->queue, saving);
    return status;
}

static enum vxd_status write_file(struct vxd_scene_saver *saver, struct picture *picture,
                                  struct vxd_err *err)
{
    struct vxd_scenes *scenes = saver->scenes;
    struct vxd_snapshot_writer *writer = NULL;
    enum vxd_status status;

    VXD_TRY(vxd_snapshot_begin(scenes->dir, &picture->head, &writer, err));
    VXD_TRY(vxd_snapshot_write(writer, VXD_SNAPSHOT_CATALOGUE, picture->catalogue.bytes,
                               picture->catalogue.n, err));
    VXD_TRY(write_image(saver, picture, writer, err));
    status = vxd_snapshot_conclude(writer, scenes->journal, err);
    writer = NULL;
out:
    vxd_snapshot_abandon(writer);
    return status;
}

/* Of a family that the journal has no more: its files are not needed. */
static void remove_files(struct vxd_scenes *scenes, uint32_t journal_id)
{
    struct vxd_journal_state state;
    struct vxd_err err = {0};

    if (vxd_journal_get_state(scenes->journal, journal_id, &state, NULL) ==
            VXD_NOT_FOUND &&
        vxd_snapshot_remove_all(scenes->dir, journal_id, &err) != VXD_OK) {
        vxd_log(VXD_LOG_WARNING, "files of a scene that was dropped are left", "error",
                err.message);
    }
}

/* False where it should be tried again. */
static bool save(struct vxd_scene_saver *saver, uint32_t journal_id)
{
    struct vxd_scenes *scenes = saver->scenes;
    struct picture picture = {.scene = hold_one(scenes, journal_id)};
    int64_t since_ns = vxd_clock_ns();
    struct vxd_err err = {0};
    char took[32];
    enum vxd_status status;

    if (picture.scene == NULL && vxd_maps_is_family(scenes->maps, journal_id)) {
        return vxd_maps_save(scenes->maps, journal_id);
    }
    if (picture.scene == NULL) {
        remove_files(scenes, journal_id);
        return true;
    }
    VXD_TRY(take(saver, &picture, &err));
    status = write_file(saver, &picture, &err);
out:
    (void)snprintf(took, sizeof took, "%.3f", (double)(vxd_clock_ns() - since_ns) / 1e9);
    if (status == VXD_OK) {
        atomic_store(&picture.scene->family->save_ns, vxd_clock_ns() - since_ns);
        vxd_log(VXD_LOG_INFO, "snapshot written", "scene", picture.head.name, "seconds",
                took);
    } else {
        vxd_log(VXD_LOG_ERROR, "no snapshot was written", "scene", picture.head.name,
                "error", err.message);
    }
    free(picture.catalogue.bytes);
    free(picture.roots);
    vxd_scene_unpin(scenes, &picture.state, saver->queue);
    vxd_scene_drop(picture.scene, saver->queue);
    (void)vxd_queue_wait(saver->queue, NULL);
    return status == VXD_OK;
}

/* --- the thread ------------------------------------------------------------------------- */

/* With the mutex held. */
static void wait_to_retry(struct vxd_scene_saver *saver)
{
    struct timespec until = {0};
    int result = 0;

    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += RETRY_S;
    while (!saver->stopping && result == 0) {
        result = pthread_cond_timedwait(&saver->wake, &saver->mutex, &until);
    }
}

static void *run(void *argument)
{
    struct vxd_scene_saver *saver = argument;

    (void)pthread_mutex_lock(&saver->mutex);
    while (!saver->stopping) {
        uint32_t id;
        bool is_done;

        if (saver->n_due == 0 || !saver->may_begin) {
            (void)pthread_cond_wait(&saver->wake, &saver->mutex);
            continue;
        }
        id = saver->due[0];
        saver->n_due--;
        memmove(saver->due, saver->due + 1, saver->n_due * sizeof *saver->due);
        (void)pthread_mutex_unlock(&saver->mutex);
        is_done = save(saver, id);
        if (!is_done) {
            /* The journal tells once, and grows until there is a file. */
            vxd_scene_saver_ask(saver, id);
        }
        (void)pthread_mutex_lock(&saver->mutex);
        if (!is_done) {
            wait_to_retry(saver);
        }
    }
    (void)pthread_mutex_unlock(&saver->mutex);
    return NULL;
}

void vxd_scene_saver_ask(struct vxd_scene_saver *saver, uint32_t journal_id)
{
    bool is_there = false;

    (void)pthread_mutex_lock(&saver->mutex);
    for (size_t i = 0; i < saver->n_due; i++) {
        is_there = is_there || saver->due[i] == journal_id;
    }
    if (!is_there && saver->n_due == saver->capacity) {
        size_t capacity = saver->capacity > 0 ? 2 * saver->capacity : 64;
        uint32_t *larger = realloc(saver->due, capacity * sizeof *larger);

        if (larger != NULL) {
            saver->due = larger;
            saver->capacity = capacity;
        }
    }
    /* Without memory the journal grows until a later start asks again. */
    if (!is_there && saver->n_due < saver->capacity) {
        saver->due[saver->n_due++] = journal_id;
        (void)pthread_cond_signal(&saver->wake);
    }
    (void)pthread_mutex_unlock(&saver->mutex);
}

enum vxd_status vxd_scene_saver_start(struct vxd_scenes *scenes,
                                      struct vxd_scene_saver **out, struct vxd_err *err)
{
    struct vxd_scene_saver *saver = calloc(1, sizeof *saver);
    enum vxd_status status;

    if (saver == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for snapshots");
    }
    saver->scenes = scenes;
    status = vxd_queue_create(scenes->context, &saver->queue, err);
    if (status != VXD_OK) {
        free(saver);
        return status;
    }
    (void)pthread_mutex_init(&saver->mutex, NULL);
    if (!vxd_clock_init_condition(&saver->wake)) {
        status = vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for snapshots");
    } else if (pthread_create(&saver->thread, NULL, run, saver) != 0) {
        (void)pthread_cond_destroy(&saver->wake);
        status = vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no thread for snapshots");
    }
    if (status != VXD_OK) {
        vxd_queue_destroy(saver->queue);
        (void)pthread_mutex_destroy(&saver->mutex);
        free(saver);
        return status;
    }
    *out = saver;
    return VXD_OK;
}

void vxd_scene_saver_begin(struct vxd_scene_saver *saver)
{
    (void)pthread_mutex_lock(&saver->mutex);
    saver->may_begin = true;
    (void)pthread_cond_signal(&saver->wake);
    (void)pthread_mutex_unlock(&saver->mutex);
}

void vxd_scene_saver_stop(struct vxd_scene_saver *saver)
{
    (void)pthread_mutex_lock(&saver->mutex);
    saver->stopping = true;
    (void)pthread_cond_signal(&saver->wake);
    (void)pthread_mutex_unlock(&saver->mutex);
    (void)pthread_join(saver->thread, NULL);
}

void vxd_scene_saver_destroy(struct vxd_scene_saver *saver)
{
    vxd_queue_destroy(saver->queue);
    (void)pthread_cond_destroy(&saver->wake);
    (void)pthread_mutex_destroy(&saver->mutex);
    free(saver->due);
    free(saver);
}
