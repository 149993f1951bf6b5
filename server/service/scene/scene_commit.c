// SPDX-License-Identifier: Apache-2.0
/* Commits of durable scenes: what the journal gets of a request, and what everybody sees
 * when that is decided. */
#include <inttypes.h>

#include "proto/base/clock.h"
#include "server/observe/log/log.h"
#include "server/instance/instance.h"
#include "server/observe/observe.h"
#include "server/service/service.h"
#include "server/service/scene/scene.h"
#include "server/registry/scenes/scenes.h"

/* --- what the journal gets ---------------------------------------------------------------- */

/* Copies an array from the device to the host. On the CPU it is there already. */
static enum vxd_status fetch(struct vxd_request *request, struct vxd_queue *queue,
                             size_t n_bytes, const void **array, struct vxd_err *err)
{
    /* The engine reads it, the field's type does not say so. */
    struct vxd_scene_output output = {.n_bytes = n_bytes,
                                      .device = (void *)(uintptr_t)*array};
    enum vxd_status status = vxd_scene_fetch_output(request, queue, &output, err);

    *array = output.bytes;
    return status;
}

/* Copies a list's arrays to the host; its last word is the number of values. */
static enum vxd_status fetch_list(struct vxd_request *request, struct vxd_queue *queue,
                                  struct vxd_svdag_voxels *list, struct vxd_err *err)
{
    const void *codes = list->codes;
    const void *masks = list->masks;
    const void *firsts = list->first_value;
    const void *values = list->values;
    size_t n_values;
    enum vxd_status status = VXD_OK;

    if (list->n == 0) {
        return VXD_OK;
    }
    VXD_TRY(fetch(request, queue, list->n * sizeof *list->codes, &codes, err));
    VXD_TRY(fetch(request, queue, list->n * sizeof *list->masks, &masks, err));
    if (values != NULL) {
        VXD_TRY(fetch(request, queue, list->n * sizeof *list->first_value, &firsts, err));
    }
    VXD_TRY(vxd_queue_wait(queue, err));
    list->codes = codes;
    list->masks = masks;
    if (values != NULL) {
        list->first_value = firsts;
        n_values = list->first_value[list->n - 1] +
                   (size_t)__builtin_popcountll(list->masks[list->n - 1]);
        VXD_TRY(fetch(request, queue, n_values * sizeof *list->values, &values, err));
        VXD_TRY(vxd_queue_wait(queue, err));
        list->values = values;
    }
out:
    return status;
}

/* Copies operations, with their lists in host memory. */
static enum vxd_status fetch_ops(struct vxd_request *request, struct vxd_queue *queue,
                                 const struct vxd_svdag_op *ops, size_t n_ops,
                                 const struct vxd_svdag_op **out, struct vxd_err *err)
{
    struct vxd_svdag_op *here;
    void *block;
    enum vxd_status status;

    *out = ops;
    if (vxd_context_backend(request->server->context) == VXD_BACKEND_CPU || n_ops == 0) {
        return VXD_OK;
    }
    VXD_TRY(vxd_scene_take_host(request, n_ops, sizeof *here, &block, err));
    here = block;
    memcpy(here, ops, n_ops * sizeof *here);
    for (size_t i = 0; i < n_ops; i++) {
        if (here[i].shape.kind == VXD_SVDAG_VOXELS) {
            VXD_TRY(fetch_list(request, queue, &here[i].shape.voxels, err));
        }
    }
    *out = here;
out:
    return status;
}

static struct vxd_scene *scene_of(const struct vxd_scene_job *job)
{
    return job->made != NULL ? job->made : job->scene;
}

static enum vxd_status begin_prepare(struct vxd_request *request, struct vxd_queue *queue,
                                     enum vxd_record_kind kind,
                                     const struct vxd_svdag_op *ops, size_t n_ops,
                                     uint64_t of_version, struct vxd_err *err)
{
    struct vxd_scene_job *job = request->state;
    bool is_branch = kind == VXD_RECORD_BRANCH;
    struct vxd_scene *scene = scene_of(job);
    struct vxd_scene_entry *entry = &job->commit.entry;
    const struct vxd_svdag_op *here = NULL;
    enum vxd_status status;

    if (!vxd_scene_is_durable(scene)) {
        return VXD_OK;
    }
    VXD_TRY(vxd_scene_check_journal(is_branch ? job->scene : scene, err));
    n_ops = entry->n_scans > 0 ? 0 : n_ops; /* their rays say all */
    VXD_TRY(fetch_ops(request, queue, ops, n_ops, &here, err));
    entry->kind = kind;
    if (entry->n_scans > 0) {
        entry->kind = vxd_record_fuses(kind) ? VXD_RECORD_CAST_FUSE : VXD_RECORD_CAST;
    }
    entry->version = job->made != NULL ? 1 : job->state.version + 1;
    entry->unix_ns = job->made != NULL ? scene->created_unix_ns : vxd_clock_unix_ns();
    vxd_scene_begin_entry(scene, request, here, n_ops, is_branch ? job->scene : NULL,
                          of_version, entry);
out:
    return status;
}

enum vxd_status vxd_scene_begin_prepare(struct vxd_request *request,
                                        struct vxd_queue *queue,
                                        enum vxd_record_kind kind,
                                        const struct vxd_svdag_op *ops, size_t n_ops,
                                        struct vxd_err *err)
{
    return begin_prepare(request, queue, kind, ops, n_ops, 0, err);
}

enum vxd_status vxd_scene_end_prepare(struct vxd_request *request, bool is_needed,
                                      struct vxd_err *err)
{
    struct vxd_scene_job *job = request->state;

    return vxd_scene_end_entry(scene_of(job), &job->commit.entry, is_needed, err);
}

enum vxd_status vxd_scene_prepare(struct vxd_request *request, struct vxd_queue *queue,
                                  enum vxd_record_kind kind, uint64_t of_version,
                                  struct vxd_err *err)
{
    enum vxd_status status =
        begin_prepare(request, queue, kind, NULL, 0, of_version, err);

    return status != VXD_OK ? status : vxd_scene_end_prepare(request, true, err);
}

enum vxd_status vxd_scene_reserve(struct vxd_request *request, const char *field,
                                  struct vxd_err *err)
{
    const struct vxd_scene_job *job = request->state;

    return vxd_scenes_reserve_name(request->server->scenes, job->made)
               ? VXD_OK
               : vxd_fail(err, VXD_UNAVAILABLE, field,
                          "\"%s\" is being made by another request; try again",
                          job->made->terms.name);
}

/* --- what everybody sees ------------------------------------------------------------------ */

static enum vxd_status begin(struct vxd_request *request, struct vxd_err *err)
{
    struct vxd_scene_job *job = request->state;
    enum vxd_status status =
        vxd_scene_hand_over(scene_of(job), request, &job->commit.entry, err);

    job->commit.is_handed_over = status == VXD_OK;
    return status;
}

static void end(struct vxd_request *request, bool committed)
{
    struct vxd_scene_job *job = request->state;
    struct vxd_scene *scene = scene_of(job);

    job->commit.effect(request, committed);
    if (job->commit.is_handed_over) {
        vxd_scene_end_record(scene, &job->commit.entry, committed);
    }
    vxd_scene_end_following(job);
}

void vxd_scene_conclude(struct vxd_request *request,
                        void (*effect)(struct vxd_request *request, bool committed))
{
    struct vxd_scene_job *job = request->state;

    vxd_scene_let_go(request);
    if (!vxd_scene_is_durable(scene_of(job))) {
        effect(request, true);
        vxd_scene_end_following(job);
        return;
    }
    job->commit.effect = effect;
    job->commit.base.begin = begin;
    job->commit.base.end = end;
    request->commit = &job->commit.base;
}

static void show_version(struct vxd_request *request, bool committed)
{
    const struct vxd_scene_job *job = request->state;

    if (vxd_scene_is_durable(job->scene)) {
        vxd_scene_decide_version(job->scene, job->commit.entry.version, committed);
    }
    if (!committed && job->commit.has_followed) {
        vxd_scene_fusing_failed(job->scene);
    }
    if (committed) {
        vxd_metrics_count_publish(request->server->metrics,
                                  (double)(vxd_clock_ns() - request->ran_ns) / 1e9);
    }
}

void vxd_scene_publish(struct vxd_request *request,
                       const struct vxd_svdag_edit_result *result,
                       enum vxd_scene_made_by kind, uint64_t of_version,
                       Voxeld__V1__SceneChange *change)
{
    struct vxd_scene_job *job = request->state;
    struct vxd_scene_version version = {.kind = kind,
                                        .of_version = of_version,
                                        .root = result->root,
                                        .pins = job->state.pins,
                                        .unix_ns = job->commit.entry.unix_ns,
                                        .n_added = result->n_added,
                                        .n_removed = result->n_removed,
                                        .n_changed = result->n_changed,
                                        .n_freed = result->n_freed};

    (void)snprintf(version.by, sizeof version.by, "%s", request->principal.name);
    (void)snprintf(version.client_id, sizeof version.client_id, "%s", request->client_id);
    change->version =
        vxd_scene_add_version(job->scene, &version, vxd_scene_is_durable(job->scene));
    change->n_added = result->n_added;
    change->n_removed = result->n_removed;
    change->n_changed = result->n_changed;
    change->n_freed = result->n_freed;
    for (int i = 0; i <= VXD_SVDAG_MAX_DEPTH; i++) {
        change->n_new_nodes += result->n_new[i];
    }
    if (vxd_record_fuses(job->commit.entry.kind) ||
        job->commit.entry.kind == VXD_RECORD_DECAY) {
        job->scene->log_odds.has_forgotten = false; /* its record says so */
    }
    vxd_scene_conclude(request, show_version);
}
