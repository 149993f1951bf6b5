// SPDX-License-Identifier: Apache-2.0
/* Snapshot files of scenes: of a family, what everybody sees at one moment (its histories, and the
 * number of the last record in them), and the image of all their roots, which stay as they are
 * whatever comes meanwhile. The bytes are described in scenes_load.c. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu/svdag/image/image.h"
#include "proto/base/clock.h"
#include "server/registry/scenes/scene_catalogue.h"
#include "server/registry/scenes/scene_fusion.h"
#include "server/registry/scenes/scenes_recover.h"

enum {
    STEP_NS = 5000000, /* the pool's workers are shared with requests */
    TAKE_TRIES = 5000,
    TAKE_STEP_NS = 1000000 /* changes of the family may wait so long */
};

/* A family as its snapshot file will have it. */
struct capture {
    struct vxd_scene_family *family; /* held by its scene */
    struct vxd_scene *scene;         /* one of it, held */
    struct vxd_scene_state state;    /* pins the store */
    struct vxd_registry_save *save;
    struct vxd_bytes_out catalogue;
    struct vxd_bytes_out upkeep; /* empty where no scene has any */
    uint32_t *roots;
    size_t n_roots;
    /* Scenes with log-odds in the catalogue's order, held until their layers are copied. */
    struct vxd_scene **fusing;
    struct vxd_occupancy_image *images;
    bool *have_forgotten;
    size_t n_fusing;
};

/* --- what everybody sees ------------------------------------------------------------------- */

static size_t count_roots(const struct vxd_scene_family *family, size_t *n_scenes)
{
    size_t n = 0;

    *n_scenes = 0;
    for (const struct vxd_scene *s = family->first; s != NULL; s = s->next_in_family) {
        n +=
            2 * (s->history.n - s->history.n_waiting + s->history.n_snapshots); /* pins */
        *n_scenes += s->is_named ? 1 : 0;
    }
    return n;
}

/* Locks at a moment when no waiting change is made from an older version: that version
 * may be out of the history already while the change is not yet in it. Nor may a layer of
 * log-odds be ahead of what everybody sees; it stays so until vxd_scene_end_copy. Where
 * changes follow one another without such a moment, the lane makes one. */
static bool lock_for_capture(struct vxd_scenes *scenes, struct vxd_scene *scene)
{
    const struct timespec step = {.tv_nsec = TAKE_STEP_NS};

    for (int i = 0; i < TAKE_TRIES; i++) {
        bool has_begun;

        vxd_scenes_lock(scenes);
        has_begun = vxd_scene_begin_copy(scene);
        vxd_scene_want_copy(scene, !has_begun && i + 1 < TAKE_TRIES);
        if (has_begun) {
            return true;
        }
        vxd_scenes_unlock(scenes);
        (void)nanosleep(&step, NULL);
    }
    return false;
}

/* Copies what scenes that fuse have of upkeep, if one of them has any. */
static void copy_upkeep(struct capture *capture)
{
    bool has_any = false;

    for (size_t i = 0; i < capture->n_fusing; i++) {
        has_any = has_any || vxd_scene_has_upkeep(capture->fusing[i]);
    }
    for (size_t i = 0; i < capture->n_fusing && has_any; i++) {
        vxd_scene_write_upkeep(&capture->upkeep, capture->fusing[i], capture->roots,
                               &capture->n_roots);
    }
    if (has_any) {
        capture->save->head.rules_version = VXD_RULES_VERSION;
    }
}

/* Copies all of the family. The mutex is held. */
static void copy_family(struct capture *capture)
{
    struct vxd_scene_family *family = capture->family;
    size_t n_scenes;

    capture->save->head.sequence = family->decided;
    (void)count_roots(family, &n_scenes);
    vxd_bytes_put_number(&capture->catalogue, n_scenes);
    for (struct vxd_scene *s = family->first; s != NULL; s = s->next_in_family) {
        if (!s->is_named) {
            continue; /* it was dropped, and somebody still holds it */
        }
        vxd_scene_describe(&capture->catalogue, &s->terms, &s->spec, s->generation,
                           s->created_unix_ns);
        vxd_scene_write_history(&capture->catalogue, &s->history, capture->roots,
                                &capture->n_roots);
        if (vxd_scene_fuses(s)) {
            s->references++;
            capture->fusing[capture->n_fusing++] = s;
        }
    }
    copy_upkeep(capture);
}

/* Finds a scene of the family that has a name, and holds it. */
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

/* Copies the layers of log-odds; the write lane's next change of the family waits. */
static enum vxd_status copy_layers(struct capture *capture, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    for (size_t i = 0; i < capture->n_fusing; i++) {
        VXD_TRY(vxd_scene_copy_log_odds(capture->fusing[i], capture->save->queue,
                                        &capture->images[i], &capture->have_forgotten[i],
                                        err));
    }
out:
    return status;
}

static void free_layers(struct capture *capture)
{
    struct vxd_queue *queue = capture->save->queue;

    for (size_t i = 0; i < capture->n_fusing; i++) {
        vxd_occupancy_image_free(vxd_queue_context(queue), &capture->images[i]);
        vxd_scene_drop(capture->fusing[i], queue);
    }
    free(capture->fusing);
    free(capture->images);
    free(capture->have_forgotten);
}

static enum vxd_status take(struct vxd_scenes *scenes, struct capture *capture,
                            struct vxd_err *err)
{
    struct vxd_snapshot_head *head = &capture->save->head;
    size_t n_scenes;
    size_t most_scenes;
    size_t n_roots;
    enum vxd_status status;

    capture->family = capture->scene->family;
    head->epoch = capture->scene->generation;
    head->rules_version = vxd_scene_rules(capture->scene);
    (void)snprintf(head->name, sizeof head->name, "%s", capture->scene->terms.name);
    vxd_scenes_lock(scenes);
    n_roots = count_roots(capture->family, &n_scenes);
    vxd_scenes_unlock(scenes);
    /* A few more versions may be added before the mutex is locked again. */
    n_roots += n_roots / 8 + 64;
    most_scenes = n_scenes + 64;
    capture->roots = calloc(n_roots, sizeof *capture->roots);
    capture->fusing = calloc(most_scenes, sizeof(void *));
    capture->images = calloc(most_scenes, sizeof *capture->images);
    capture->have_forgotten = calloc(most_scenes, sizeof *capture->have_forgotten);
    if (capture->roots == NULL || capture->fusing == NULL || capture->images == NULL ||
        capture->have_forgotten == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for roots");
    }
    if (!lock_for_capture(scenes, capture->scene)) {
        return vxd_fail(err, VXD_UNAVAILABLE, NULL,
                        "undos, branches or fused scans follow one another without a "
                        "pause");
    }
    if (count_roots(capture->family, &n_scenes) > n_roots || n_scenes == 0 ||
        n_scenes > most_scenes) {
        vxd_scenes_unlock(scenes);
        vxd_scene_end_copy(capture->scene);
        return vxd_fail(err, VXD_UNAVAILABLE, NULL, "the scene changes too fast");
    }
    copy_family(capture);
    capture->state.store = capture->family->store;
    capture->state.svdag = capture->family->store->svdag;
    capture->state.store->references++;
    vxd_scenes_unlock(scenes);
    status = copy_layers(capture, err);
    vxd_scene_end_copy(capture->scene);
    if (status == VXD_OK &&
        (capture->catalogue.is_out_of_memory || capture->upkeep.is_out_of_memory)) {
        status = vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a catalogue");
    }
    return status;
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

static enum vxd_status put_end(struct vxd_svdag_saving *saving, struct capture *capture,
                               struct vxd_snapshot_writer *writer, struct vxd_err *err)
{
    struct vxd_bytes_out end = {0};
    struct vxd_svdag_image_info info;
    enum vxd_status status;

    vxd_svdag_image_result(saving, &info, capture->roots);
    vxd_bytes_put(&end, "\0\0\0\0", 4);
    vxd_bytes_put_number(&end, info.n_words);
    vxd_bytes_put_number(&end, info.leaves);
    vxd_bytes_put_number(&end, info.inner);
    vxd_bytes_put_number(&end, capture->n_roots);
    for (size_t i = 0; i < capture->n_roots; i++) {
        vxd_bytes_put_number(&end, capture->roots[i]);
    }
    status = !end.is_out_of_memory
                 ? vxd_snapshot_write(writer, VXD_SNAPSHOT_IMAGE, end.bytes, end.n, err)
                 : vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for roots");
    free(end.bytes);
    return status;
}

static enum vxd_status write_image(struct capture *capture,
                                   struct vxd_snapshot_writer *writer,
                                   struct vxd_err *err)
{
    struct vxd_queue *queue = capture->save->queue;
    struct vxd_svdag_saving *saving = NULL;
    bool is_done = false;
    enum vxd_status status;

    VXD_TRY(vxd_svdag_image_begin(queue, capture->state.svdag, capture->roots,
                                  capture->n_roots, &saving, err));
    while (!is_done) {
        VXD_TRY(vxd_svdag_image_step(queue, saving, STEP_NS, put_piece, writer, &is_done,
                                     err));
    }
    status = put_end(saving, capture, writer, err);
out:
    vxd_svdag_image_end(queue, saving);
    return status;
}

/* Log-odds of one scene after the other (scenes_load.c). */
static enum vxd_status write_layers(const struct capture *capture,
                                    struct vxd_snapshot_writer *writer,
                                    struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    for (size_t i = 0; i < capture->n_fusing; i++) {
        const struct vxd_occupancy_image *image = &capture->images[i];
        /* Files are little-endian, and so are all hosts that this is built for (base.h). */
        bool has_votes = image->n_vote_blocks > 0;
        const uint64_t head[3] = {has_votes ? VXD_SCENE_VOTES_LAYOUT
                                            : VXD_SCENE_LOG_ODDS_LAYOUT,
                                  capture->have_forgotten[i] ? 1 : 0, image->n_blocks};
        const uint64_t n_votes = image->n_vote_blocks;

        VXD_TRY(
            vxd_snapshot_write(writer, VXD_SNAPSHOT_LOG_ODDS, head, sizeof head, err));
        VXD_TRY(vxd_snapshot_write(writer, VXD_SNAPSHOT_LOG_ODDS, image->keys.ptr,
                                   image->n_blocks * sizeof(int64_t), err));
        VXD_TRY(vxd_snapshot_write(writer, VXD_SNAPSHOT_LOG_ODDS, image->rows.ptr,
                                   image->n_blocks * VXD_OCCUPANCY_BLOCK_VOXELS, err));
        if (!has_votes) {
            continue;
        }
        VXD_TRY(vxd_snapshot_write(writer, VXD_SNAPSHOT_LOG_ODDS, &n_votes,
                                   sizeof n_votes, err));
        VXD_TRY(vxd_snapshot_write(writer, VXD_SNAPSHOT_LOG_ODDS, image->vote_keys.ptr,
                                   n_votes * sizeof(int64_t), err));
        VXD_TRY(vxd_snapshot_write(
            writer, VXD_SNAPSHOT_LOG_ODDS, image->vote_rows.ptr,
            n_votes * VXD_OCCUPANCY_BLOCK_VOXELS * sizeof(uint64_t), err));
    }
out:
    return status;
}

static enum vxd_status write_file(void *user, struct vxd_snapshot_writer *writer,
                                  struct vxd_err *err)
{
    struct capture *capture = user;
    enum vxd_status status;

    VXD_TRY(vxd_snapshot_write(writer, VXD_SNAPSHOT_CATALOGUE, capture->catalogue.bytes,
                               capture->catalogue.n, err));
    VXD_TRY(write_image(capture, writer, err));
    VXD_TRY(write_layers(capture, writer, err));
    if (capture->upkeep.n > 0) {
        status = vxd_snapshot_write(writer, VXD_SNAPSHOT_UPKEEP, capture->upkeep.bytes,
                                    capture->upkeep.n, err);
    }
out:
    return status;
}

enum vxd_status vxd_scenes_save(void *owner, struct vxd_registry_save *save,
                                struct vxd_err *err)
{
    struct vxd_scenes *scenes = owner;
    struct capture capture = {.scene = hold_one(scenes, save->row->id), .save = save};
    int64_t since_ns = vxd_clock_ns();
    enum vxd_status status;

    if (capture.scene == NULL) {
        save->is_empty = true;
        return VXD_OK;
    }
    VXD_TRY(take(scenes, &capture, err));
    VXD_TRY(vxd_registry_write_snapshot(save, write_file, &capture, err));
    atomic_store(&capture.scene->family->save_ns, vxd_clock_ns() - since_ns);
out:
    free(capture.catalogue.bytes);
    free(capture.upkeep.bytes);
    free(capture.roots);
    free_layers(&capture);
    vxd_scene_unpin(scenes, &capture.state, save->queue);
    vxd_scene_drop(capture.scene, save->queue);
    return status;
}
