// SPDX-License-Identifier: Apache-2.0
/* Snapshot files of scenes: of a family, what everybody sees at one moment (its histories, and the
 * number of the last record in them), and the image of all their roots, which stay as they are
 * whatever comes meanwhile. The bytes are described in scenes_load.c. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu/svdag/image/image.h"
#include "server/registry/scenes/scene_catalogue.h"
#include "server/registry/scenes/scenes_recover.h"

enum {
    STEP_NS = 5000000, /* the pool's workers are shared with requests */
    TAKE_TRIES = 1000,
    TAKE_STEP_NS = 5000000 /* a commit or so */
};

/* What is written of a family. */
struct picture {
    struct vxd_scene_family *family; /* held by its scene */
    struct vxd_scene *scene;         /* one of it, held */
    struct vxd_scene_state state;    /* pins the store */
    struct vxd_registry_save *save;
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

    picture->save->head.sequence = family->decided;
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

static enum vxd_status take(struct vxd_scenes *scenes, struct picture *picture,
                            struct vxd_err *err)
{
    struct vxd_snapshot_head *head = &picture->save->head;
    size_t n_scenes;
    size_t n_roots;

    picture->family = picture->scene->family;
    head->epoch = picture->scene->generation;
    head->rules_version = VXD_RULES_VERSION;
    (void)snprintf(head->name, sizeof head->name, "%s", picture->scene->terms.name);
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

static enum vxd_status write_image(struct picture *picture,
                                   struct vxd_snapshot_writer *writer,
                                   struct vxd_err *err)
{
    struct vxd_queue *queue = picture->save->queue;
    struct vxd_svdag_saving *saving = NULL;
    bool is_done = false;
    enum vxd_status status;

    VXD_TRY(vxd_svdag_image_begin(queue, picture->state.svdag, picture->roots,
                                  picture->n_roots, &saving, err));
    while (!is_done) {
        VXD_TRY(vxd_svdag_image_step(queue, saving, STEP_NS, put_piece, writer, &is_done,
                                     err));
    }
    status = put_end(saving, picture, writer, err);
out:
    vxd_svdag_image_end(queue, saving);
    return status;
}

static enum vxd_status write_file(void *user, struct vxd_snapshot_writer *writer,
                                  struct vxd_err *err)
{
    struct picture *picture = user;
    enum vxd_status status;

    VXD_TRY(vxd_snapshot_write(writer, VXD_SNAPSHOT_CATALOGUE, picture->catalogue.bytes,
                               picture->catalogue.n, err));
    VXD_TRY(write_image(picture, writer, err));
out:
    return status;
}

enum vxd_status vxd_scenes_save(void *owner, struct vxd_registry_save *save,
                                struct vxd_err *err)
{
    struct vxd_scenes *scenes = owner;
    struct picture picture = {.scene = hold_one(scenes, save->row->id), .save = save};
    enum vxd_status status;

    if (picture.scene == NULL) {
        save->is_empty = true;
        return VXD_OK;
    }
    VXD_TRY(take(scenes, &picture, err));
    status = vxd_registry_write_snapshot(save, write_file, &picture, err);
out:
    free(picture.catalogue.bytes);
    free(picture.roots);
    vxd_scene_unpin(scenes, &picture.state, save->queue);
    vxd_scene_drop(picture.scene, save->queue);
    return status;
}
