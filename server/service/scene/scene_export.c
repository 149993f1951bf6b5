// SPDX-License-Identifier: Apache-2.0
/* What a scene holds, as arrays: cells as a list (counted in one stage, taken in the next), or
 * a box of them, dense. */
#include <inttypes.h>
#include <math.h>

#include "gpu/svdag/diff/diff.h"
#include "server/instance/instance.h"
#include "server/service/service.h"
#include "server/service/scene/scene.h"

enum {
    /* Most that a row of a PLY file has: 3 float64, uint16, 3 uint8, float64. */
    PLY_ROW_BYTES = 24 + 2 + 3 + 8,
    MAX_DENSE = 1 << 27,        /* cells: the engine's */
    COST_CELLS = 1 << 20,       /* of an export whose size is not known yet */
    REPLY_SPARE_BYTES = 1 << 16 /* of a message, for all but the arrays */
};

struct export_job {
    struct vxd_scene_job base; /* first: request->state is both */
    struct vxd_svdag_export box;
    bool counted;
    uint64_t n_cells; /* in the whole box */
    size_t n;         /* rows of this reply; DENSE: cells */
    struct vxd_scene_output total;
    struct vxd_scene_output cells;
    struct vxd_scene_output states;
    struct vxd_scene_output materials;
    struct vxd_scene_output counts;
    struct vxd_scene_output written; /* the arrays of the n rows */
};

static bool is_dense(const Voxeld__V1__SceneExportRequest *input)
{
    return input->format == VOXELD__V1__SCENE_FORMAT__SCENE_DENSE;
}

enum vxd_status vxd_scene_export_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__SceneExportRequest *input =
        (const Voxeld__V1__SceneExportRequest *)request->input;
    uint64_t n =
        input->limit > 0 && input->limit < COST_CELLS ? input->limit : COST_CELLS;
    enum vxd_status status;

    VXD_TRY(vxd_scene_begin_check(request, sizeof(struct export_job), input->name, err));
    VXD_TRY(vxd_scene_check_at(input->at, "at", err));
    if ((int)input->format < (int)VOXELD__V1__SCENE_FORMAT__SCENE_CELLS ||
        (int)input->format > (int)VOXELD__V1__SCENE_FORMAT__SCENE_PLY) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "format",
                         "is %d; known: SCENE_CELLS, SCENE_DENSE, SCENE_PLY",
                         (int)input->format));
    }
    VXD_TRY(vxd_scene_check_level(input->level, err));
    if (input->box != NULL) {
        VXD_TRY(vxd_scene_check_box(input->box, "box", err));
    } else if (is_dense(input)) {
        VXD_TRY(
            vxd_fail(err, VXD_INVALID_ARGUMENT, "box", "is required for SCENE_DENSE"));
    }
    if (is_dense(input) && (input->free || input->pinned || input->first > 0 ||
                            input->limit > 0 || input->with_counts)) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "format",
                         "SCENE_DENSE goes without free, pinned, first, limit and "
                         "with_counts"));
    }
    if (input->free && input->pinned) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "pinned",
                         "is given beside free, it must be one of the two"));
    }
    request->bulk = true;
    request->cost_bytes = n * PLY_ROW_BYTES;
out:
    return status;
}

/* Computes the voxels whose centres are in the box; for DENSE whole cells around them. */
static enum vxd_status read_box(const Voxeld__V1__SceneExportRequest *input,
                                struct export_job *job, struct vxd_err *err)
{
    const struct vxd_scene_spec *spec = &job->base.scene->spec;
    int64_t cell = (int64_t)1 << input->level;
    struct vxd_svdag_export *box = &job->box;
    enum vxd_status status = vxd_scene_read_level(spec, input->level, &box->level, err);

    if (status != VXD_OK) {
        return status;
    }
    box->free = input->free;
    if (box->free && !spec->format.tracks_free) {
        return vxd_fail(err, VXD_FAILED_PRECONDITION, "free",
                        "is asked for, but the scene does not track free space");
    }
    vxd_scene_voxels_in(spec, input->in_voxels, input->box, box->low, box->high);
    for (int i = 0; i < 3; i++) {
        if (is_dense(input)) {
            /* Powers of two; shifting rounds down below zero, too. */
            box->low[i] = (box->low[i] >> box->level) * cell;
            box->high[i] = ((box->high[i] + cell - 1) >> box->level) * cell;
        }
        box->high[i] = box->high[i] < box->low[i] ? box->low[i] : box->high[i];
    }
    return VXD_OK;
}

static bool has_materials(const struct export_job *job)
{
    return job->base.scene->spec.format.material_bits > 0;
}

/* What is exported: the version, or what of it is pinned. */
static uint32_t root_of(const struct vxd_request *request)
{
    const Voxeld__V1__SceneExportRequest *input =
        (const Voxeld__V1__SceneExportRequest *)request->input;
    const struct export_job *job = request->state;

    return input->pinned ? job->base.state.pins : job->base.state.root;
}

/* --- dense -------------------------------------------------------------------------------- */

static size_t dense_extent(const struct export_job *job, int axis)
{
    return (size_t)((job->box.high[axis] - job->box.low[axis]) >> job->box.level);
}

static enum vxd_status submit_dense(struct vxd_request *request, struct vxd_queue *queue,
                                    struct vxd_err *err)
{
    struct export_job *job = request->state;
    /* Each below 2^24, so the product of two fits. */
    uint64_t area = (uint64_t)dense_extent(job, 0) * dense_extent(job, 1);
    uint64_t depth = dense_extent(job, 2);
    enum vxd_status status;

    if (depth > 0 && area > MAX_DENSE / depth) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "box",
                        "has %zu x %zu x %zu cells, more than %d in all",
                        dense_extent(job, 0), dense_extent(job, 1), dense_extent(job, 2),
                        MAX_DENSE);
    }
    job->n = (size_t)(area * depth);
    VXD_TRY(vxd_scene_reserve_output(request, queue, job->n, 1, &job->states, err));
    VXD_TRY(vxd_scene_reserve_materials(request, queue, job->n, &job->materials, err));
    if (job->n > 0) {
        VXD_TRY(vxd_svdag_export_dense(queue, job->base.state.svdag, root_of(request),
                                       &job->box, job->states.device,
                                       job->materials.device, err));
    }
    VXD_TRY(vxd_scene_fetch_output(request, queue, &job->states, err));
    VXD_TRY(vxd_scene_fetch_output(request, queue, &job->materials, err));
out:
    return status;
}

/* --- cells -------------------------------------------------------------------------------- */

static enum vxd_status submit_count(struct vxd_request *request, struct vxd_queue *queue,
                                    struct vxd_err *err)
{
    struct export_job *job = request->state;
    enum vxd_status status;

    VXD_TRY(
        vxd_scene_reserve_output(request, queue, 1, sizeof(uint64_t), &job->total, err));
    VXD_TRY(vxd_svdag_count_cells(queue, job->base.state.svdag, root_of(request),
                                  &job->box, job->total.device, err));
    VXD_TRY(vxd_scene_fetch_output(request, queue, &job->total, err));
    request->more = true;
out:
    return status;
}

/* Rows that one reply takes: within a message of the server's size. */
static size_t most_rows(const struct vxd_request *request,
                        const Voxeld__V1__SceneExportRequest *input, bool materials)
{
    size_t row_bytes = input->format == VOXELD__V1__SCENE_FORMAT__SCENE_PLY
                           ? PLY_ROW_BYTES
                           : 3 * sizeof(int32_t) + (materials ? sizeof(uint16_t) : 0) +
                                 (input->with_counts ? sizeof(uint64_t) : 0);
    uint64_t n_bytes = request->server->config.max_message_bytes;

    n_bytes = n_bytes < VXD_SCENE_REPLY_BYTES ? n_bytes : VXD_SCENE_REPLY_BYTES;
    n_bytes -= n_bytes > REPLY_SPARE_BYTES ? REPLY_SPARE_BYTES : 0;
    return (size_t)n_bytes / row_bytes;
}

static enum vxd_status submit_cells(struct vxd_request *request, struct vxd_queue *queue,
                                    struct vxd_err *err)
{
    const Voxeld__V1__SceneExportRequest *input =
        (const Voxeld__V1__SceneExportRequest *)request->input;
    struct export_job *job = request->state;
    size_t most = most_rows(request, input, has_materials(job));
    uint64_t left;
    enum vxd_status status;

    job->n_cells = *(const uint64_t *)job->total.bytes;
    left = input->first < job->n_cells ? job->n_cells - input->first : 0;
    left = input->limit > 0 && input->limit < left ? input->limit : left;
    job->n = left < most ? (size_t)left : most;
    if (job->n == 0) {
        return VXD_OK;
    }
    VXD_TRY(vxd_scene_reserve_output(request, queue, job->n, 3 * sizeof(int32_t),
                                     &job->cells, err));
    VXD_TRY(vxd_scene_reserve_output(request, queue, 1, sizeof(uint64_t), &job->written,
                                     err));
    VXD_TRY(vxd_scene_reserve_materials(request, queue, job->n, &job->materials, err));
    if (input->with_counts) {
        VXD_TRY(vxd_scene_reserve_output(request, queue, job->n, sizeof(uint64_t),
                                         &job->counts, err));
    }
    VXD_TRY(vxd_svdag_export_cells(queue, job->base.state.svdag, root_of(request),
                                   &job->box, input->first, job->n, job->cells.device,
                                   job->materials.device, job->counts.device,
                                   job->written.device, err));
    VXD_TRY(vxd_scene_fetch_output(request, queue, &job->cells, err));
    VXD_TRY(vxd_scene_fetch_output(request, queue, &job->materials, err));
    VXD_TRY(vxd_scene_fetch_output(request, queue, &job->counts, err));
    VXD_TRY(vxd_scene_fetch_output(request, queue, &job->written, err));
out:
    return status;
}

enum vxd_status vxd_scene_export_submit(struct vxd_request *request,
                                        struct vxd_queue *queue, struct vxd_err *err)
{
    const Voxeld__V1__SceneExportRequest *input =
        (const Voxeld__V1__SceneExportRequest *)request->input;
    struct export_job *job = request->state;
    enum vxd_status status;

    if (job->counted) {
        return submit_cells(request, queue, err);
    }
    VXD_TRY(vxd_scene_open(request, input->name, input->at, err));
    VXD_TRY(read_box(input, job, err));
    job->counted = true;
    status = is_dense(input) ? submit_dense(request, queue, err)
                             : submit_count(request, queue, err);
out:
    return status;
}

/* --- the reply ---------------------------------------------------------------------------- */

static enum vxd_status set_place(struct vxd_request *request,
                                 Voxeld__V1__SceneExportResponse *reply,
                                 struct vxd_err *err)
{
    const struct export_job *job = request->state;
    const struct vxd_scene_spec *spec = &job->base.scene->spec;

    reply->origin = vxd_message_new(request->decoder, &voxeld__v1__vec3__descriptor, err);
    reply->frame_id =
        vxd_message_text(request->decoder, spec->frame_id, strlen(spec->frame_id), err);
    if (reply->origin == NULL || reply->frame_id == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    reply->origin->x = spec->origin_m[0];
    reply->origin->y = spec->origin_m[1];
    reply->origin->z = spec->origin_m[2];
    reply->cell_size_m = ldexp(spec->voxel_size_m, job->box.level);
    reply->n_cells = job->n_cells;
    return VXD_OK;
}

/* n_x x n_y x n_z. */
static enum vxd_status show_block(struct vxd_request *request, enum vxd_dtype dtype,
                                  const struct vxd_scene_output *output,
                                  Voxeld__V1__Tensor **out, struct vxd_err *err)
{
    const struct export_job *job = request->state;
    enum vxd_status status =
        vxd_scene_show(request, dtype, job->n, 0, output->bytes, out, err);

    if (status != VXD_OK) {
        return status;
    }
    (*out)->shape = vxd_message_array(request->decoder, 3, sizeof *(*out)->shape, err);
    if ((*out)->shape == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (int i = 0; i < 3; i++) {
        (*out)->shape[i] = (int64_t)dense_extent(job, i);
    }
    (*out)->n_shape = 3;
    return VXD_OK;
}

static enum vxd_status show_dense(struct vxd_request *request,
                                  Voxeld__V1__SceneExportResponse *reply,
                                  struct vxd_err *err)
{
    const struct export_job *job = request->state;
    enum vxd_status status;

    VXD_TRY(show_block(request, VXD_UINT8, &job->states, &reply->states, err));
    if (has_materials(job)) {
        VXD_TRY(show_block(request, VXD_UINT16, &job->materials, &reply->materials, err));
    }
    reply->low_cell =
        vxd_message_array(request->decoder, 3, sizeof *reply->low_cell, err);
    if (reply->low_cell == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    reply->n_low_cell = 3;
    for (int i = 0; i < 3; i++) {
        reply->low_cell[i] = job->box.low[i] >> job->box.level;
    }
out:
    return status;
}

static enum vxd_status show_cells(struct vxd_request *request,
                                  Voxeld__V1__SceneExportResponse *reply,
                                  struct vxd_err *err)
{
    const Voxeld__V1__SceneExportRequest *input =
        (const Voxeld__V1__SceneExportRequest *)request->input;
    const struct export_job *job = request->state;
    enum vxd_status status;

    if (input->format == VOXELD__V1__SCENE_FORMAT__SCENE_PLY) {
        return vxd_scene_write_ply(request, job->cells.bytes, job->materials.bytes,
                                   job->counts.bytes, job->n, job->box.level, reply, err);
    }
    VXD_TRY(vxd_scene_show(request, VXD_INT32, job->n, 3, job->cells.bytes, &reply->cells,
                           err));
    VXD_TRY(vxd_scene_show_materials(request, job->n, job->materials.bytes,
                                     &reply->materials, err));
    if (input->with_counts) {
        VXD_TRY(vxd_scene_show(request, VXD_UINT64, job->n, 0, job->counts.bytes,
                               &reply->counts, err));
    }
out:
    return status;
}

enum vxd_status vxd_scene_export_finish(struct vxd_request *request,
                                        struct vxd_queue *queue, struct vxd_err *err)
{
    const Voxeld__V1__SceneExportRequest *input =
        (const Voxeld__V1__SceneExportRequest *)request->input;
    const struct export_job *job = request->state;
    Voxeld__V1__SceneExportResponse *reply = vxd_message_new(
        request->decoder, &voxeld__v1__scene_export_response__descriptor, err);
    enum vxd_status status;

    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    if (job->written.bytes != NULL && *(const uint64_t *)job->written.bytes != job->n) {
        return vxd_fail(err, VXD_INTERNAL, NULL,
                        "%" PRIu64 " cells came of %zu that were counted",
                        *(const uint64_t *)job->written.bytes, job->n);
    }
    VXD_TRY(vxd_scene_new_seen(request, &reply->seen, err));
    VXD_TRY(set_place(request, reply, err));
    VXD_TRY(is_dense(input) ? show_dense(request, reply, err)
                            : show_cells(request, reply, err));
    request->output = &reply->base;
    vxd_scene_close(request, queue);
out:
    return status;
}
