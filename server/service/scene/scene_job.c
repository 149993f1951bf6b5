// SPDX-License-Identifier: Apache-2.0
/* The memory of one request on a scene. */
#include <inttypes.h>

#include "proto/base/clock.h"
#include "proto/base/name.h"
#include "gpu/svdag/edit/edit.h"
#include "server/instance/instance.h"
#include "server/service/existing/existing.h"
#include "server/service/service.h"
#include "server/service/columns/columns.h"
#include "server/service/scene/scene.h"

/* An edit that has run for so long lets other requests run beside it. */
#define APART_AFTER_NS INT64_C(5000000)

enum vxd_status vxd_scene_check_at(const Voxeld__V1__SceneAt *at, const char *field,
                                   struct vxd_err *err)
{
    char path[VXD_SCENE_PATH_BYTES];

    if (at == NULL || at->snapshot[0] == '\0') {
        return VXD_OK;
    }
    if (at->version > 0) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                        "has a version and a snapshot, it must have one of them");
    }
    (void)snprintf(path, sizeof path, "%s.snapshot", field);
    return vxd_noun_check_name(at->snapshot, path, err);
}

enum vxd_status vxd_scene_open(struct vxd_request *request, const char *name,
                               const Voxeld__V1__SceneAt *at, struct vxd_err *err)
{
    struct vxd_scene_job *job = request->state;
    const struct vxd_scene_at which = {.version = at != NULL ? at->version : 0,
                                       .snapshot = at != NULL ? at->snapshot : NULL};

    job->scene = vxd_scenes_find(request->server->scenes, name);
    if (job->scene == NULL) {
        return vxd_missing_scene(request, "name", name, err);
    }
    return vxd_scene_pin(job->scene, &which, &job->state, err);
}

/* Makes a record of the block in the request's own memory, so that release finds the
 * block. */
static struct vxd_scene_block *
add_block(struct vxd_request *request, struct vxd_scene_block **list, struct vxd_err *err)
{
    struct vxd_scene_block *block =
        vxd_message_array(request->decoder, 1, sizeof *block, err);

    if (block != NULL) {
        block->next = *list;
        *list = block;
    }
    return block;
}

static enum vxd_status count_bytes(size_t n_items, size_t item_bytes, size_t *n_bytes,
                                   struct vxd_err *err)
{
    return vxd_size_mul(n_items, item_bytes, n_bytes)
               ? VXD_OK
               : vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "%zu rows are too many",
                          n_items);
}

enum vxd_status vxd_scene_take_device(struct vxd_request *request,
                                      struct vxd_queue *queue, size_t n_items,
                                      size_t item_bytes, void **out, struct vxd_err *err)
{
    struct vxd_scene_job *job = request->state;
    struct vxd_scene_block *block = add_block(request, &job->device, err);
    size_t n_bytes;
    enum vxd_status status;

    if (block == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(count_bytes(n_items, item_bytes, &n_bytes, err));
    VXD_TRY(vxd_device_alloc(queue, n_bytes, &block->buffer, err));
    *out = block->buffer.ptr;
out:
    return status;
}

enum vxd_status vxd_scene_take_host(struct vxd_request *request, size_t n_items,
                                    size_t item_bytes, void **out, struct vxd_err *err)
{
    struct vxd_scene_job *job = request->state;
    struct vxd_scene_block *block = add_block(request, &job->host, err);
    size_t n_bytes;
    enum vxd_status status;

    if (block == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(count_bytes(n_items, item_bytes, &n_bytes, err));
    VXD_TRY(vxd_host_alloc(request->server->context, n_bytes, &block->buffer, err));
    *out = block->buffer.ptr;
out:
    return status;
}

enum vxd_status vxd_scene_upload(struct vxd_request *request, struct vxd_queue *queue,
                                 const void *host, size_t n_bytes, const void **out,
                                 struct vxd_err *err)
{
    struct vxd_scene_job *job = request->state;
    struct vxd_scene_block *block = add_block(request, &job->device, err);

    return block != NULL ? vxd_upload(queue, host, n_bytes, &block->buffer, out, err)
                         : VXD_RESOURCE_EXHAUSTED;
}

enum vxd_status vxd_scene_reserve_output(struct vxd_request *request,
                                         struct vxd_queue *queue, size_t n_items,
                                         size_t item_bytes, struct vxd_scene_output *out,
                                         struct vxd_err *err)
{
    enum vxd_status status =
        vxd_scene_take_device(request, queue, n_items, item_bytes, &out->device, err);

    out->n_bytes = status == VXD_OK ? n_items * item_bytes : 0;
    return status;
}

enum vxd_status vxd_scene_fetch_output(struct vxd_request *request,
                                       struct vxd_queue *queue,
                                       struct vxd_scene_output *output,
                                       struct vxd_err *err)
{
    struct vxd_scene_job *job = request->state;
    struct vxd_scene_block *block;

    if (output->n_bytes == 0) {
        return VXD_OK;
    }
    block = add_block(request, &job->host, err);
    return block != NULL ? vxd_download(queue, output->device, output->n_bytes,
                                        &block->buffer, &output->bytes, err)
                         : VXD_RESOURCE_EXHAUSTED;
}

enum vxd_status vxd_scene_show(struct vxd_request *request, enum vxd_dtype dtype,
                               size_t n, size_t columns, const void *bytes,
                               Voxeld__V1__Tensor **out, struct vxd_err *err)
{
    /* The wire reads, the column's type does not say so. */
    const struct vxd_column column = {.n_bytes = n * (columns > 0 ? columns : 1) *
                                                 vxd_dtype_bytes(dtype),
                                      .bytes = (void *)(uintptr_t)bytes};
    enum vxd_status status = vxd_column_new_tensor(request, dtype, n, columns, out, err);

    if (status == VXD_OK) {
        vxd_column_show(*out, &column);
    }
    return status;
}

bool vxd_scene_has_materials(const struct vxd_scene *scene)
{
    return scene->spec.format.material_bits > 0;
}

enum vxd_status vxd_scene_reserve_materials(struct vxd_request *request,
                                            struct vxd_queue *queue,
                                            Voxeld__V1__Tensor **tensor,
                                            struct vxd_column **out, struct vxd_err *err)
{
    const struct vxd_scene_job *job = request->state;

    return vxd_scene_has_materials(job->scene)
               ? vxd_query_reserve(request, queue, VXD_UINT16, 0, tensor, out, err)
               : VXD_OK;
}

void *vxd_scene_row(const struct vxd_column *column, size_t row, size_t row_bytes)
{
    return column != NULL ? (uint8_t *)column->device + row * row_bytes : NULL;
}

enum vxd_status vxd_scene_upload_voxels(struct vxd_request *request,
                                        struct vxd_queue *queue,
                                        const Voxeld__V1__Tensor *points,
                                        const int32_t **out, struct vxd_err *err)
{
    const struct vxd_scene_job *job = request->state;
    const struct vxd_scene_frame frame = vxd_scene_frame_of(&job->scene->spec, false);
    size_t n_bytes = job->query.n * 3 * sizeof(int32_t);
    const void *voxels;
    void *block;
    enum vxd_status status;

    VXD_TRY(vxd_scene_take_host(request, job->query.n, 3 * sizeof(int32_t), &block, err));
    vxd_scene_read_voxels(points, &frame, block, NULL);
    VXD_TRY(vxd_scene_upload(request, queue, block, n_bytes, &voxels, err));
    *out = voxels;
out:
    return status;
}

enum vxd_status vxd_scene_new_seen(struct vxd_request *request,
                                   Voxeld__V1__SceneSeen **out, struct vxd_err *err)
{
    const struct vxd_scene_job *job = request->state;
    Voxeld__V1__SceneSeen *seen =
        vxd_message_new(request->decoder, &voxeld__v1__scene_seen__descriptor, err);

    if (seen == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    seen->version = job->state.version;
    seen->generation = job->scene->generation;
    seen->engine_ms = (double)request->engine_ns / 1e6;
    *out = seen;
    return VXD_OK;
}

enum vxd_status vxd_scene_check_reply(size_t n, size_t row_bytes, struct vxd_err *err)
{
    size_t n_bytes;

    if (!vxd_size_mul(row_bytes, n, &n_bytes) || n_bytes > VXD_SCENE_REPLY_BYTES) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "%zu rows of %zu bytes are more than a reply holds (%zu bytes): "
                        "ask for fewer at once",
                        n, row_bytes, VXD_SCENE_REPLY_BYTES);
    }
    return VXD_OK;
}

void vxd_scene_close(struct vxd_request *request, struct vxd_queue *queue)
{
    struct vxd_scene_job *job = request->state;

    vxd_scene_unpin(request->server->scenes, &job->state, queue);
    vxd_scene_drop(job->scene, queue);
    job->scene = NULL;
}

/* The reply was complete before the queue ran. */
enum vxd_status vxd_scene_done(struct vxd_request *request, struct vxd_queue *queue,
                               struct vxd_err *err)
{
    (void)err;
    vxd_scene_close(request, queue);
    return VXD_OK;
}

void vxd_scene_free_blocks(struct vxd_request *request, struct vxd_queue *queue)
{
    struct vxd_scene_job *job = request->state;

    vxd_columns_free(&job->query.columns, queue);
    for (struct vxd_scene_block *b = job->device; b != NULL; b = b->next) {
        vxd_device_free(queue, &b->buffer);
    }
    for (struct vxd_scene_block *b = job->host; b != NULL; b = b->next) {
        vxd_host_free(request->server->context, &b->buffer);
    }
    job->device = NULL;
    job->host = NULL;
}

enum vxd_status vxd_scene_check_version(const struct vxd_scene_job *job,
                                        uint64_t if_version, struct vxd_err *err)
{
    if (if_version == 0 || if_version == job->state.version) {
        return VXD_OK;
    }
    return vxd_fail(err, VXD_ABORTED, "if_version",
                    "is %" PRIu64 ", the scene is at version %" PRIu64, if_version,
                    job->state.version);
}

/* Asked again and again while an edit runs. One that takes long lets other requests run meanwhile. */
static bool is_over(void *user)
{
    struct vxd_request *request = user;

    if (vxd_clock_ns() - atomic_load(&request->started_ns) > APART_AFTER_NS) {
        vxd_request_begin_apart(request);
    }
    return vxd_request_is_over(request);
}

void vxd_scene_hold(struct vxd_request *request)
{
    const struct vxd_scene_job *job = request->state;

    if (!request->is_alone) {
        vxd_scene_hold_family(job->scene);
        request->is_alone = true;
    }
}

void vxd_scene_let_go(struct vxd_request *request)
{
    const struct vxd_scene_job *job = request->state;

    if (request->is_alone) {
        vxd_scene_let_family_go(job->scene);
        request->is_alone = false;
    }
}

/* Takes the writer's turn again. What the change builds on may have failed meanwhile, which drops that
 * version. */
static enum vxd_status end_apart(struct vxd_request *request, struct vxd_err *err)
{
    const struct vxd_scene_job *job = request->state;

    vxd_request_end_apart(request);
    return vxd_scene_is_last(job->scene, job->state.version)
               ? VXD_OK
               : vxd_fail(err, VXD_UNAVAILABLE, NULL,
                          "a change of the scene could not be written to the disk, and "
                          "what was built on it goes with it; try again");
}

enum vxd_status vxd_scene_begin_change(struct vxd_request *request,
                                       struct vxd_queue *queue, uint64_t if_version,
                                       struct vxd_err *err)
{
    struct vxd_scene_job *job = request->state;
    enum vxd_status status;

    vxd_scene_hold(request);
    vxd_scene_unpin(request->server->scenes, &job->state, queue);
    vxd_scene_pin_last(job->scene, &job->state);
    if (vxd_scene_is_durable(job->scene)) {
        VXD_TRY(vxd_scene_check_journal(job->scene, err));
    }
    VXD_TRY(vxd_scene_check_version(job, if_version, err));
    VXD_TRY(vxd_scene_reserve_version(job->scene, err));
    VXD_TRY(vxd_scene_begin_fusing(job->scene, queue, err));
    job->commit.is_fusing = true;
    vxd_scene_allow(job->scene);
    vxd_svdag_set_stop(job->state.svdag, is_over, request);
    atomic_store(&request->ends_when_over, true);
out:
    return status;
}

enum vxd_status vxd_scene_end_change(struct vxd_request *request, enum vxd_status status,
                                     struct vxd_err *err)
{
    const struct vxd_scene_job *job = request->state;
    enum vxd_status turn_status = end_apart(request, status == VXD_OK ? err : NULL);

    vxd_svdag_set_stop(job->state.svdag, NULL, NULL);
    /* Nodes that a failed edit made stay in the store until another edit makes the same
     * ones, or they are collected. */
    vxd_scene_account(job->scene);
    vxd_scene_explain(job->scene, err);
    return status == VXD_OK ? turn_status : status;
}

enum vxd_status vxd_scene_follow(struct vxd_request *request, struct vxd_queue *queue,
                                 uint32_t root, struct vxd_err *err)
{
    struct vxd_scene_job *job = request->state;
    enum vxd_status status =
        vxd_scene_follow_change(job->scene, &job->state, root, queue, err);

    job->commit.has_followed = status == VXD_OK;
    return status;
}

enum vxd_status vxd_scene_need_log_odds(const struct vxd_scene *scene,
                                        struct vxd_err *err)
{
    return vxd_scene_fuses(scene)
               ? VXD_OK
               : vxd_fail(err, VXD_FAILED_PRECONDITION, "name",
                          "the scene \"%s\" has no log-odds: its fusion is "
                          "SCENE_FUSION_LAST",
                          scene->terms.name);
}

void vxd_scene_end_following(struct vxd_scene_job *job)
{
    if (job->commit.is_fusing) {
        vxd_scene_end_fusing(job->scene);
    }
    job->commit.is_fusing = false;
    job->commit.has_followed = false;
}

/* Ends a change that `status` is of, and its record: updates log-odds as planned once the change
 * is prepared. The plan is freed. */
static enum vxd_status finish_plan(struct vxd_request *request, struct vxd_queue *queue,
                                   enum vxd_status status,
                                   struct vxd_occupancy_plan *plan, struct vxd_err *err)
{
    struct vxd_scene_job *job = request->state;

    status = vxd_scene_end_change(request, status, err);
    if (status != VXD_OK) {
        (void)vxd_scene_end_prepare(request, false, NULL);
        goto out;
    }
    vxd_request_begin_apart(request);
    status = vxd_scene_end_prepare(request, true, err);
    if (status == VXD_OK) {
        job->commit.has_followed = true;
        status = vxd_scene_apply_plan(job->scene, queue, plan, err);
    }
    if (end_apart(request, status == VXD_OK ? err : NULL) != VXD_OK && status == VXD_OK) {
        status = VXD_UNAVAILABLE;
    }
out:
    vxd_occupancy_plan_free(queue, plan);
    if (vxd_occupancy_is_damaged(job->scene->log_odds.layer)) {
        vxd_scene_fusing_failed(job->scene); /* its votes could not be taken back */
    }
    return status;
}

static enum vxd_status fuse(struct vxd_request *request, struct vxd_queue *queue,
                            const struct vxd_svdag_op *ops, size_t n_ops,
                            struct vxd_svdag_edit_result *result, struct vxd_err *err)
{
    const struct vxd_scene_job *job = request->state;
    struct vxd_occupancy_plan *plan = NULL;
    enum vxd_status status;

    vxd_request_begin_apart(request);
    status =
        vxd_scene_fuse(job->scene, &job->state, queue, ops, n_ops, &plan, result, err);
    return finish_plan(request, queue, status, plan, err);
}

enum vxd_status vxd_scene_fade(struct vxd_request *request, struct vxd_queue *queue,
                               const struct vxd_occupancy_decay *decay,
                               int64_t decayed_ns, struct vxd_svdag_edit_result *result,
                               struct vxd_err *err)
{
    struct vxd_scene_job *job = request->state;
    struct vxd_occupancy_plan *plan = NULL;
    enum vxd_status status;

    VXD_TRY(vxd_scene_begin_change(request, queue, 0, err));
    job->commit.entry.decay = *decay;
    job->commit.entry.decayed_ns = decayed_ns;
    status = vxd_scene_begin_prepare(request, queue, VXD_RECORD_DECAY, NULL, 0, err);
    if (status == VXD_OK) {
        vxd_request_begin_apart(request);
        status =
            vxd_scene_decay(job->scene, &job->state, queue, decay, &plan, result, err);
    }
    status = finish_plan(request, queue, status, plan, err);
out:
    return status;
}

/* Edits the scene, and the pins by the last operations. */
static enum vxd_status edit_both(struct vxd_scene_job *job, struct vxd_queue *queue,
                                 const struct vxd_svdag_op *ops, size_t n_ops,
                                 struct vxd_svdag_edit_result *result,
                                 struct vxd_err *err)
{
    size_t n_edits = n_ops - job->commit.entry.n_pin_ops;
    struct vxd_svdag_edit_result pinned = {0};
    enum vxd_status status;

    VXD_TRY(vxd_svdag_edit_wait(queue, job->state.svdag, job->state.root, ops, n_edits,
                                result, err));
    if (n_edits < n_ops) {
        VXD_TRY(vxd_svdag_edit_wait(queue, job->state.svdag, job->state.pins,
                                    ops + n_edits, n_ops - n_edits, &pinned, err));
        job->state.pins = pinned.root; /* those of the version that is made */
    }
out:
    return status;
}

enum vxd_status vxd_scene_apply(struct vxd_request *request, struct vxd_queue *queue,
                                enum vxd_record_kind kind, const struct vxd_svdag_op *ops,
                                size_t n_ops, struct vxd_svdag_edit_result *result,
                                struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(vxd_scene_begin_change(request, queue, 0, err));
    status = vxd_scene_begin_prepare(request, queue, kind, ops, n_ops, err);
    if (status != VXD_OK) {
        status = vxd_scene_end_change(request, status, err);
        goto out;
    }
    if (kind == VXD_RECORD_FUSE) {
        return fuse(request, queue, ops, n_ops, result, err);
    }
    status = edit_both(request->state, queue, ops, n_ops, result, err);
    status = vxd_scene_end_change(request, status, err);
    if (status != VXD_OK) {
        (void)vxd_scene_end_prepare(request, false, NULL);
        goto out;
    }
    VXD_TRY(vxd_scene_end_prepare(request, true, err));
    status = vxd_scene_follow(request, queue, result->root, err);
out:
    return status;
}

void vxd_scene_release(struct vxd_request *request, struct vxd_queue *queue)
{
    struct vxd_scene_job *job = request->state;

    if (job->commit.has_followed) {
        /* The change ended before anybody could see it. */
        vxd_scene_fusing_failed(job->scene);
    }
    vxd_scene_end_following(job);
    vxd_scene_let_go(request);
    vxd_scene_free_blocks(request, queue);
    vxd_decoder_destroy(job->arena);
    job->arena = NULL;
    vxd_scene_free_entry(&job->commit.entry);
    vxd_scene_drop(job->made, queue);
    job->made = NULL;
    vxd_scene_close(request, queue);
}
