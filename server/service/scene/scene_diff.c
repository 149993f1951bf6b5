// SPDX-License-Identifier: Apache-2.0
/* Finds where two versions differ. */
#include <inttypes.h>
#include <math.h>

#include "gpu/svdag/diff/diff.h"
#include "proto/base/name.h"
#include "server/instance/instance.h"
#include "server/service/existing/existing.h"
#include "server/service/service.h"
#include "server/service/scene/scene.h"
#include "voxeld/v1/scene_version.pb-c.h"

enum {
    COST_CELLS = 1 << 20,       /* for admission, where no limit is said */
    REPLY_SPARE_BYTES = 1 << 16 /* of a message, for what is beside the arrays */
};

struct diff_job {
    struct vxd_scene_job base; /* first: request->state is both; the version `to` */
    struct vxd_scene_difference difference;
    uint64_t from_version;
    uint64_t generation;
    bool counted;
};

/* --- two roots ---------------------------------------------------------------------------- */

enum vxd_status vxd_scene_difference_box(const struct vxd_scene_spec *spec,
                                         const Voxeld__V1__SceneBox *in, bool in_voxels,
                                         uint32_t level, struct vxd_svdag_diff_box *out,
                                         struct vxd_err *err)
{
    enum vxd_status status = vxd_scene_read_level(spec, level, &out->level, err);

    if (status != VXD_OK) {
        return status;
    }
    vxd_scene_voxels_in(spec, in_voxels, in, out->low, out->high);
    for (int i = 0; i < 3; i++) {
        out->high[i] = out->high[i] < out->low[i] ? out->low[i] : out->high[i];
    }
    return VXD_OK;
}

enum vxd_status vxd_scene_difference_count(struct vxd_request *request,
                                           struct vxd_queue *queue,
                                           struct vxd_scene_difference *d,
                                           struct vxd_err *err)
{
    struct vxd_scene_job *job = request->state;
    struct vxd_columns *columns = &job->query.columns;
    enum vxd_status status;

    VXD_TRY(vxd_columns_reserve(columns, queue, 2, sizeof(uint64_t), &d->total, err));
    VXD_TRY(vxd_svdag_diff(queue, job->state.svdag, d->from, job->state.root, &d->box, 0,
                           0, NULL, NULL, d->total->device, err));
    VXD_TRY(vxd_columns_fetch(columns, queue, err));
out:
    return status;
}

enum vxd_status vxd_scene_difference_take(struct vxd_request *request,
                                          struct vxd_queue *queue,
                                          struct vxd_scene_difference *d, uint64_t first,
                                          uint64_t limit, struct vxd_err *err)
{
    struct vxd_scene_job *job = request->state;
    struct vxd_columns *columns = &job->query.columns;
    uint64_t most = request->server->config.max_message_bytes;
    uint64_t left;
    enum vxd_status status;

    most = most < VXD_SCENE_REPLY_BYTES ? most : VXD_SCENE_REPLY_BYTES;
    most = (most - (most > REPLY_SPARE_BYTES ? REPLY_SPARE_BYTES : 0)) /
           VXD_SCENE_DIFFERENCE_BYTES;
    d->n_cells = ((const uint64_t *)d->total->bytes)[1];
    left = first < d->n_cells ? d->n_cells - first : 0;
    left = limit > 0 && limit < left ? limit : left;
    d->n = (size_t)(left < most ? left : most);
    if (d->n == 0) {
        return VXD_OK;
    }
    VXD_TRY(
        vxd_columns_reserve(columns, queue, d->n, 3 * sizeof(int32_t), &d->cells, err));
    VXD_TRY(vxd_columns_reserve(columns, queue, d->n, 1, &d->changes, err));
    VXD_TRY(vxd_columns_reserve(columns, queue, 2, sizeof(uint64_t), &d->written, err));
    VXD_TRY(vxd_svdag_diff(queue, job->state.svdag, d->from, job->state.root, &d->box,
                           first, d->n, d->cells->device, d->changes->device,
                           d->written->device, err));
    VXD_TRY(vxd_columns_fetch(columns, queue, err));
out:
    return status;
}

enum vxd_status vxd_scene_difference_show(struct vxd_request *request,
                                          const struct vxd_scene_difference *d,
                                          Voxeld__V1__Tensor **cells,
                                          Voxeld__V1__Tensor **changes,
                                          struct vxd_err *err)
{
    enum vxd_status status;

    if (d->n > 0 && *(const uint64_t *)d->written->bytes != d->n) {
        return vxd_fail(err, VXD_INTERNAL, NULL,
                        "%" PRIu64 " cells came of %zu that were counted",
                        *(const uint64_t *)d->written->bytes, d->n);
    }
    VXD_TRY(vxd_column_new_tensor(request, VXD_INT32, d->n, 3, cells, err));
    VXD_TRY(vxd_column_new_tensor(request, VXD_UINT8, d->n, 0, changes, err));
    vxd_column_show(*cells, d->cells);
    vxd_column_show(*changes, d->changes);
out:
    return status;
}

/* --- the method --------------------------------------------------------------------------- */

enum vxd_status vxd_scene_diff_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__SceneDiffRequest *input =
        (const Voxeld__V1__SceneDiffRequest *)request->input;
    uint64_t n =
        input->limit > 0 && input->limit < COST_CELLS ? input->limit : COST_CELLS;
    enum vxd_status status;

    VXD_TRY(vxd_noun_begin_check(request, sizeof(struct diff_job), input->name, err));
    VXD_TRY(vxd_scene_check_at(input->from, "from", err));
    VXD_TRY(vxd_scene_check_at(input->to, "to", err));
    if (input->to_name[0] != '\0') {
        VXD_TRY(vxd_noun_check_name(input->to_name, "to_name", err));
    }
    if (input->box != NULL) {
        VXD_TRY(vxd_scene_check_box(input->box, "box", err));
    }
    request->bulk = true;
    request->cost_bytes = n * VXD_SCENE_DIFFERENCE_BYTES;
out:
    return status;
}

/* Pins the version `from`, in the store that `to` was pinned in. */
static enum vxd_status read_from(struct vxd_scene *scene,
                                 const Voxeld__V1__SceneDiffRequest *input,
                                 struct diff_job *job, struct vxd_queue *queue,
                                 struct vxd_err *err)
{
    struct vxd_scene_at at = {input->from != NULL ? input->from->version : 0,
                              input->from != NULL ? input->from->snapshot : NULL};
    struct vxd_scene_state from;
    struct vxd_scene_log_summary summary;
    enum vxd_status status;

    if (input->from == NULL && scene == job->base.scene) {
        vxd_scene_get_log_summary(scene, &summary);
        at.version =
            summary.version > summary.oldest ? summary.version - 1 : summary.version;
    }
    status = vxd_scene_pin(scene, &at, &from, err);
    if (status != VXD_OK) {
        /* The error names `at`, but the request's field is `from`. */
        (void)snprintf(err->field, sizeof err->field, "from");
        return status;
    }
    job->difference.from = from.root;
    job->from_version = from.version;
    job->generation = scene->generation;
    if (from.store != job->base.state.store) {
        status = vxd_fail(err, VXD_UNAVAILABLE, NULL,
                          "the scene was collected at this moment; try again");
    }
    vxd_scene_unpin(scene->scenes, &from, queue);
    return status;
}

static enum vxd_status open_both(struct vxd_request *request, struct vxd_queue *queue,
                                 struct vxd_err *err)
{
    const Voxeld__V1__SceneDiffRequest *input =
        (const Voxeld__V1__SceneDiffRequest *)request->input;
    struct diff_job *job = request->state;
    bool is_other = input->to_name[0] != '\0';
    struct vxd_scene *scene;
    enum vxd_status status =
        vxd_scene_open(request, is_other ? input->to_name : input->name, input->to, err);

    if (status != VXD_OK) {
        const char *field = strcmp(err->field, "name") == 0 && is_other ? "to_name"
                            : strcmp(err->field, "name") == 0           ? "name"
                                                                        : "to";

        (void)snprintf(err->field, sizeof err->field, "%s", field);
        return status;
    }
    scene = vxd_scenes_find(request->server->scenes, input->name);
    if (scene == NULL) {
        return vxd_missing_scene(request, "name", input->name, err);
    }
    if (vxd_scene_shares(scene, job->base.scene)) {
        status = read_from(scene, input, job, queue, err);
    } else {
        status = vxd_fail(err, VXD_FAILED_PRECONDITION, "to_name",
                          "\"%s\" shares nothing with \"%s\": neither branched from the "
                          "other",
                          input->to_name, input->name);
    }
    vxd_scene_drop(scene, queue);
    return status;
}

static enum vxd_status begin(struct vxd_request *request, struct vxd_queue *queue,
                             struct vxd_err *err)
{
    const Voxeld__V1__SceneDiffRequest *input =
        (const Voxeld__V1__SceneDiffRequest *)request->input;
    struct diff_job *job = request->state;
    enum vxd_status status;

    VXD_TRY(open_both(request, queue, err));
    VXD_TRY(vxd_scene_difference_box(&job->base.scene->spec, input->box, input->in_voxels,
                                     input->level, &job->difference.box, err));
    status = vxd_scene_difference_count(request, queue, &job->difference, err);
out:
    return status;
}

/* Cells are taken once they are counted. */
static enum vxd_status prepare(struct vxd_request *request, struct vxd_queue *queue,
                               bool *is_ready, struct vxd_err *err)
{
    const Voxeld__V1__SceneDiffRequest *input =
        (const Voxeld__V1__SceneDiffRequest *)request->input;
    struct diff_job *job = request->state;

    *is_ready = job->counted;
    job->counted = true;
    return *is_ready ? vxd_scene_difference_take(request, queue, &job->difference,
                                                 input->first, input->limit, err)
                     : VXD_OK;
}

static enum vxd_status end(struct vxd_request *request, struct vxd_queue *queue,
                           struct vxd_err *err)
{
    struct diff_job *job = request->state;
    const struct vxd_scene_spec *spec = &job->base.scene->spec;
    Voxeld__V1__SceneDiffResponse *reply =
        (Voxeld__V1__SceneDiffResponse *)job->base.query.reply;
    enum vxd_status status;

    (void)queue;
    VXD_TRY(vxd_scene_difference_show(request, &job->difference, &reply->cells,
                                      &reply->changes, err));
    reply->origin = vxd_message_new(request->decoder, &voxeld__v1__vec3__descriptor, err);
    reply->frame_id =
        vxd_message_text(request->decoder, spec->frame_id, strlen(spec->frame_id), err);
    if (reply->origin == NULL || reply->frame_id == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    reply->origin->x = spec->origin_m[0];
    reply->origin->y = spec->origin_m[1];
    reply->origin->z = spec->origin_m[2];
    reply->cell_size_m = ldexp(spec->voxel_size_m, job->difference.box.level);
    reply->from_version = job->from_version;
    reply->to_version = job->base.state.version;
    reply->generation = job->generation;
    reply->n_cells = job->difference.n_cells;
    reply->engine_ms = (double)request->engine_ns / 1e6;
out:
    return status;
}

const struct vxd_query_calls vxd_scene_diff_query = {
    .begin = begin, .prepare = prepare, .end = end, .close = vxd_scene_close};
