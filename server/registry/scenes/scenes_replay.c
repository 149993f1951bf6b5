// SPDX-License-Identifier: Apache-2.0
#include "server/registry/scenes/scenes_replay.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/svdag/edit/edit.h"
#include "server/registry/scenes/scene_fusion.h"
#include "server/registry/scenes/scenes_recover.h"

/* Lists that the engine takes from device memory. */
static enum vxd_status upload_lists(struct vxd_queue *queue, struct vxd_svdag_op *op,
                                    struct vxd_buffer buffers[4], struct vxd_err *err)
{
    struct vxd_svdag_voxels *voxels = &op->shape.voxels;
    size_t n_values = 0;
    const void *at;
    enum vxd_status status;

    if (op->shape.kind != VXD_SVDAG_VOXELS || voxels->n == 0) {
        return VXD_OK;
    }
    VXD_TRY(vxd_upload(queue, voxels->codes, voxels->n * sizeof *voxels->codes,
                       &buffers[0], &at, err));
    if (voxels->values != NULL) {
        n_values = voxels->first_value[voxels->n - 1] +
                   (size_t)__builtin_popcountll(voxels->masks[voxels->n - 1]);
    }
    voxels->codes = at;
    VXD_TRY(vxd_upload(queue, voxels->masks, voxels->n * sizeof *voxels->masks,
                       &buffers[1], &at, err));
    voxels->masks = at;
    if (n_values > 0) {
        VXD_TRY(vxd_upload(queue, voxels->first_value,
                           voxels->n * sizeof *voxels->first_value, &buffers[2], &at,
                           err));
        voxels->first_value = at;
        VXD_TRY(vxd_upload(queue, voxels->values, n_values * sizeof *voxels->values,
                           &buffers[3], &at, err));
        voxels->values = at;
    }
out:
    return status;
}

static size_t count_ops(const struct vxd_record_decoded *records, size_t n)
{
    size_t n_ops = 0;

    for (size_t i = 0; i < n; i++) {
        n_ops += records[i].record.n_ops;
    }
    return n_ops;
}

static size_t count_scans(const struct vxd_record_decoded *records, size_t n)
{
    size_t n_scans = 0;

    for (size_t i = 0; i < n; i++) {
        n_scans += records[i].record.n_scans;
    }
    return n_scans;
}

/* A scan by log-odds, or a decay of them. */
static enum vxd_status run_plan(struct vxd_scene *scene,
                                const struct vxd_scene_state *state,
                                const struct vxd_record *record,
                                const struct vxd_svdag_op *ops, size_t n_ops,
                                struct vxd_svdag_edit_result *result, struct vxd_err *err)
{
    struct vxd_queue *queue = scene->scenes->queue;
    struct vxd_occupancy_plan *plan = NULL;
    enum vxd_status status;

    if (!vxd_scene_fuses(scene)) {
        return vxd_fail(err, VXD_DATA_LOSS, NULL,
                        "a record changes log-odds of \"%s\", which has none",
                        scene->terms.name);
    }
    if (record->forgets) {
        VXD_TRY(vxd_occupancy_clear(queue, scene->log_odds.layer, err));
    }
    VXD_TRY(record->kind == VXD_RECORD_DECAY
                ? vxd_scene_decay(scene, state, queue, &record->decay, &plan, result, err)
                : vxd_scene_fuse(scene, state, queue, ops, n_ops, &plan, result, err));
    scene->log_odds.has_forgotten = false;
    if (record->decayed_ns != 0) {
        scene->log_odds.decayed_ns = record->decayed_ns;
    }
    status = vxd_scene_apply_plan(scene, queue, plan, err);
out:
    vxd_occupancy_plan_free(queue, plan);
    return status;
}

/* Any kind of change but an undo or redo; state->pins become those that it leaves. */
static enum vxd_status run_ops(struct vxd_scene *scene, struct vxd_scene_state *state,
                               const struct vxd_record *record,
                               const struct vxd_svdag_op *ops, size_t n_ops,
                               struct vxd_svdag_edit_result *result, struct vxd_err *err)
{
    struct vxd_queue *queue = scene->scenes->queue;
    size_t n_edits = n_ops - record->n_pin_ops;
    struct vxd_svdag_edit_result pinned = {0};
    enum vxd_status status;

    if (vxd_record_fuses(record->kind) || record->kind == VXD_RECORD_DECAY) {
        return run_plan(scene, state, record, ops, n_ops, result, err);
    }
    VXD_TRY(
        vxd_svdag_edit_wait(queue, state->svdag, state->root, ops, n_edits, result, err));
    if (record->n_pin_ops > 0) {
        VXD_TRY(vxd_svdag_edit_wait(queue, state->svdag, state->pins, ops + n_edits,
                                    record->n_pin_ops, &pinned, err));
        state->pins = pinned.root;
    }
    status = vxd_scene_follow_change(scene, state, result->root, queue, err);
out:
    return status;
}

/* Takes out the lists of scans that passed or hit nothing; returns how many operations are left. */
static size_t drop_empty(struct vxd_svdag_op *ops, size_t n_ops)
{
    size_t n_left = 0;

    for (size_t i = 0; i < n_ops; i++) {
        if (ops[i].shape.kind != VXD_SVDAG_VOXELS || ops[i].shape.voxels.n > 0) {
            ops[n_left++] = ops[i];
        }
    }
    return n_left;
}

/* All operations of n records; of a scene that fuses, n is 1. */
static enum vxd_status edit(struct vxd_scene *scene, struct vxd_scene_state *state,
                            const struct vxd_record_decoded *records, size_t n,
                            struct vxd_svdag_edit_result *result, struct vxd_err *err)
{
    struct vxd_queue *queue = scene->scenes->queue;
    size_t n_ops = count_ops(records, n);
    struct vxd_buffer(*buffers)[4] = calloc(n_ops + 1, sizeof *buffers);
    struct vxd_svdag_op *ops = calloc(n_ops + 1, sizeof *ops);
    size_t n_scans = count_scans(records, n);
    struct vxd_scene_cast *casts = calloc(n_scans + 1, sizeof *casts);
    size_t n_copied = 0;
    size_t n_cast = 0;
    enum vxd_status status;

    if (buffers == NULL || ops == NULL || casts == NULL) {
        status = vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a record");
        goto out;
    }
    for (size_t i = 0; i < n; n_copied += records[i++].record.n_ops) {
        if (records[i].record.n_ops > 0) { /* a decay has none */
            memcpy(ops + n_copied, records[i].record.ops,
                   records[i].record.n_ops * sizeof *ops);
        }
    }
    for (size_t i = 0; i < n_ops; i++) {
        VXD_TRY(upload_lists(queue, &ops[i], buffers[i], err));
    }
    n_copied = 0;
    for (size_t i = 0; i < n; n_copied += records[i++].record.n_ops) {
        VXD_TRY(vxd_scene_cast_scans(queue, &scene->spec.format, &records[i].record,
                                     casts + n_cast, ops + n_copied, err));
        n_cast += records[i].record.n_scans;
    }
    status = run_ops(scene, state, &records[0].record, ops,
                     n_scans > 0 ? drop_empty(ops, n_ops) : n_ops, result, err);
out:
    for (size_t i = 0; buffers != NULL && i < n_ops; i++) {
        for (int k = 0; k < 4; k++) {
            vxd_device_free(queue, &buffers[i][k]);
        }
    }
    for (size_t i = 0; casts != NULL && i < n_scans; i++) {
        vxd_scene_cast_free(queue, &casts[i]);
    }
    (void)vxd_queue_wait(queue, NULL);
    free(buffers);
    free(casts);
    free(ops);
    return status;
}

static enum vxd_scene_made_by made_by(enum vxd_record_kind kind)
{
    return kind == VXD_RECORD_UNDO    ? VXD_SCENE_UNDONE
           : kind == VXD_RECORD_REDO  ? VXD_SCENE_REDONE
           : kind == VXD_RECORD_DECAY ? VXD_SCENE_DECAYED
           : kind == VXD_RECORD_INTEGRATE || vxd_record_fuses(kind) ||
                   vxd_record_casts(kind)
               ? VXD_SCENE_INTEGRATED
               : VXD_SCENE_EDITED;
}

/* Checks that the records make the next versions.
 * errors  DATA_LOSS  they do not */
static enum vxd_status check_versions(const struct vxd_scene *scene, uint64_t last,
                                      const struct vxd_record_decoded *records, size_t n,
                                      struct vxd_err *err)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t number = records[i].record.version.n;

        if (number != last + 1 + i) {
            return vxd_fail(err, VXD_DATA_LOSS, NULL,
                            "a record makes version %" PRIu64 " of \"%s\", which is at "
                            "%" PRIu64,
                            number, scene->terms.name, last + i);
        }
    }
    return VXD_OK;
}

/* Applies an undo or a redo.
 * errors  as vxd_scene_find_undoing, and those of the engine */
static enum vxd_status undo(struct vxd_scene *scene, const struct vxd_scene_state *state,
                            const struct vxd_record *record,
                            struct vxd_svdag_edit_result *result, struct vxd_err *err)
{
    struct vxd_scene_undoing undoing;
    enum vxd_status status;

    VXD_TRY(vxd_scene_find_undoing(scene, record->kind == VXD_RECORD_REDO,
                                   record->of_version.n, NULL, &undoing, err));
    VXD_TRY(vxd_svdag_undo_wait(scene->scenes->queue, state->svdag, state->root,
                                undoing.before, undoing.after, result, err));
    status =
        vxd_scene_follow_change(scene, state, result->root, scene->scenes->queue, err);
out:
    return status;
}

/* Adds a version whose place is reserved. Its counts are known where it was an edit of
 * its own. */
static void add_version(struct vxd_scene *scene, const struct vxd_record *record,
                        uint32_t pins, const struct vxd_svdag_edit_result *result,
                        bool is_alone)
{
    struct vxd_scene_version version = {.kind = made_by(record->kind),
                                        .of_version = record->of_version.n,
                                        .unix_ns = record->unix_ns,
                                        .root = result->root,
                                        .pins = pins};

    if (is_alone) {
        version.n_added = result->n_added;
        version.n_removed = result->n_removed;
        version.n_changed = result->n_changed;
        version.n_freed = result->n_freed;
    }
    (void)snprintf(version.by, sizeof version.by, "%s", record->author);
    (void)snprintf(version.client_id, sizeof version.client_id, "%s", record->client);
    (void)vxd_scene_add_version(scene, &version, false);
}

enum vxd_status vxd_scene_replay(struct vxd_scene *scene, uint64_t least_generation,
                                 const struct vxd_record_decoded *records, size_t n,
                                 struct vxd_err *err)
{
    struct vxd_queue *queue = scene->scenes->queue;
    const struct vxd_record *first = &records[0].record;
    struct vxd_svdag_edit_result result = {0};
    struct vxd_scene_state state;
    enum vxd_status status = VXD_OK;

    vxd_scene_pin_last(scene, &state);
    if (n == 1 && first->version.n <= state.version) {
        goto out;
    }
    VXD_TRY(check_versions(scene, state.version, records, n, err));
    VXD_TRY(vxd_scene_reserve_versions(scene, n, err));
    vxd_scene_allow(scene);
    if (first->of_version.n > 0) {
        VXD_TRY(undo(scene, &state, first, &result, err));
    } else {
        VXD_TRY(edit(scene, &state, records, n, &result, err));
    }
    vxd_scene_account(scene);
    for (size_t i = 0; i < n; i++) {
        add_version(scene, &records[i].record, state.pins, &result, n == 1);
        vxd_scene_set_generation(scene, least_generation,
                                 records[i].record.version.epoch);
    }
out:
    vxd_scene_unpin(scene->scenes, &state, queue);
    return status;
}
