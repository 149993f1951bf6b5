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
    bool counted;     /* of cells: their number is on its way */
    uint64_t n_cells; /* in the whole box */
    struct vxd_column *total;
    struct vxd_column *cells;
    struct vxd_column *states;    /* DENSE */
    struct vxd_column *materials; /* NULL: the scene has none */
    struct vxd_column *counts;    /* NULL: not asked for */
    struct vxd_column *written;   /* the cells that came */
};

static const Voxeld__V1__SceneExportRequest *input_of(const struct vxd_request *request)
{
    return (const Voxeld__V1__SceneExportRequest *)request->input;
}

static Voxeld__V1__SceneExportResponse *reply_of(const struct vxd_request *request)
{
    const struct vxd_query *query = request->state;

    return (Voxeld__V1__SceneExportResponse *)query->reply;
}

static bool is_dense(const Voxeld__V1__SceneExportRequest *input)
{
    return input->format == VOXELD__V1__SCENE_FORMAT__SCENE_DENSE;
}

enum vxd_status vxd_scene_export_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__SceneExportRequest *input = input_of(request);
    uint64_t n =
        input->limit > 0 && input->limit < COST_CELLS ? input->limit : COST_CELLS;
    enum vxd_status status;

    VXD_TRY(vxd_noun_begin_check(request, sizeof(struct export_job), input->name, err));
    VXD_TRY(vxd_scene_check_at(input->at, "at", err));
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

/* What is exported: the version, or what of it is pinned. */
static uint32_t root_of(const struct vxd_request *request)
{
    const struct export_job *job = request->state;

    return input_of(request)->pinned ? job->base.state.pins : job->base.state.root;
}

/* --- dense -------------------------------------------------------------------------------- */

static size_t dense_extent(const struct export_job *job, int axis)
{
    return (size_t)((job->box.high[axis] - job->box.low[axis]) >> job->box.level);
}

/* Gives an array of all cells its three extents. */
static enum vxd_status set_block(struct vxd_request *request, Voxeld__V1__Tensor *tensor,
                                 struct vxd_err *err)
{
    const struct export_job *job = request->state;
    const int64_t extents[3] = {(int64_t)dense_extent(job, 0),
                                (int64_t)dense_extent(job, 1),
                                (int64_t)dense_extent(job, 2)};

    return vxd_column_set_box(request, tensor, extents, err);
}

static enum vxd_status begin_dense(struct vxd_request *request, struct vxd_queue *queue,
                                   struct vxd_err *err)
{
    struct export_job *job = request->state;
    Voxeld__V1__SceneExportResponse *reply = reply_of(request);
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
    job->base.query.n = (size_t)(area * depth);
    VXD_TRY(vxd_query_reserve(request, queue, VXD_UINT8, 0, &reply->states, &job->states,
                              err));
    VXD_TRY(set_block(request, reply->states, err));
    VXD_TRY(vxd_scene_reserve_materials(request, queue, &reply->materials,
                                        &job->materials, err));
    if (job->materials != NULL) {
        VXD_TRY(set_block(request, reply->materials, err));
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

/* --- cells -------------------------------------------------------------------------------- */

static enum vxd_status begin_cells(struct vxd_request *request, struct vxd_queue *queue,
                                   struct vxd_err *err)
{
    struct export_job *job = request->state;
    struct vxd_columns *columns = &job->base.query.columns;
    enum vxd_status status;

    VXD_TRY(vxd_columns_reserve(columns, queue, 1, sizeof(uint64_t), &job->total, err));
    VXD_TRY(vxd_svdag_count_cells(queue, job->base.state.svdag, root_of(request),
                                  &job->box, job->total->device, err));
    VXD_TRY(vxd_columns_fetch(columns, queue, err));
out:
    return status;
}

static bool is_ply(const struct vxd_request *request)
{
    return input_of(request)->format == VOXELD__V1__SCENE_FORMAT__SCENE_PLY;
}

/* Rows that one reply takes: within a message of the server's size. */
static size_t most_rows(const struct vxd_request *request)
{
    const struct export_job *job = request->state;
    bool has_materials = vxd_scene_has_materials(job->base.scene);
    size_t row_bytes =
        is_ply(request) ? PLY_ROW_BYTES
                        : 3 * sizeof(int32_t) + (has_materials ? sizeof(uint16_t) : 0) +
                              (input_of(request)->with_counts ? sizeof(uint64_t) : 0);
    uint64_t n_bytes = request->server->config.max_message_bytes;

    n_bytes = n_bytes < VXD_SCENE_REPLY_BYTES ? n_bytes : VXD_SCENE_REPLY_BYTES;
    n_bytes -= n_bytes > REPLY_SPARE_BYTES ? REPLY_SPARE_BYTES : 0;
    return (size_t)n_bytes / row_bytes;
}

/* Reserves the columns of the counted cells. A file is made of them instead of tensors. */
static enum vxd_status reserve_cells(struct vxd_request *request, struct vxd_queue *queue,
                                     struct vxd_err *err)
{
    const Voxeld__V1__SceneExportRequest *input = input_of(request);
    struct export_job *job = request->state;
    struct vxd_query *query = request->state;
    Voxeld__V1__SceneExportResponse *reply = reply_of(request);
    bool is_shown = !is_ply(request);
    size_t most = most_rows(request);
    uint64_t left;
    enum vxd_status status;

    job->n_cells = *(const uint64_t *)job->total->bytes;
    left = input->first < job->n_cells ? job->n_cells - input->first : 0;
    left = input->limit > 0 && input->limit < left ? input->limit : left;
    query->n = left < most ? (size_t)left : most;
    VXD_TRY(vxd_query_reserve(request, queue, VXD_INT32, 3,
                              is_shown ? &reply->cells : NULL, &job->cells, err));
    VXD_TRY(vxd_columns_reserve(&query->columns, queue, 1, sizeof(uint64_t),
                                &job->written, err));
    VXD_TRY(vxd_scene_reserve_materials(
        request, queue, is_shown ? &reply->materials : NULL, &job->materials, err));
    if (input->with_counts) {
        VXD_TRY(vxd_query_reserve(request, queue, VXD_UINT64, 0,
                                  is_shown ? &reply->counts : NULL, &job->counts, err));
    }
out:
    return status;
}

/* --- stages ------------------------------------------------------------------------------- */

static enum vxd_status begin(struct vxd_request *request, struct vxd_queue *queue,
                             struct vxd_err *err)
{
    const Voxeld__V1__SceneExportRequest *input = input_of(request);
    enum vxd_status status;

    VXD_TRY(vxd_scene_open(request, input->name, input->at, err));
    VXD_TRY(read_box(input, request->state, err));
    status = is_dense(input) ? begin_dense(request, queue, err)
                             : begin_cells(request, queue, err);
out:
    return status;
}

/* Cells are taken once they are counted. */
static enum vxd_status prepare(struct vxd_request *request, struct vxd_queue *queue,
                               bool *is_ready, struct vxd_err *err)
{
    struct export_job *job = request->state;

    *is_ready = job->counted || job->total == NULL;
    job->counted = true;
    return *is_ready && job->total != NULL ? reserve_cells(request, queue, err) : VXD_OK;
}

static enum vxd_status run(struct vxd_request *request, struct vxd_queue *queue,
                           size_t first, size_t n, struct vxd_err *err)
{
    struct export_job *job = request->state;
    struct vxd_svdag *svdag = job->base.state.svdag;
    void *materials = vxd_scene_row(job->materials, 0, 0);

    (void)first; /* all rows are of one stage */
    return job->total == NULL
               ? vxd_svdag_export_dense(queue, svdag, root_of(request), &job->box,
                                        job->states->device, materials, err)
               : vxd_svdag_export_cells(queue, svdag, root_of(request), &job->box,
                                        input_of(request)->first, n, job->cells->device,
                                        materials, vxd_scene_row(job->counts, 0, 0),
                                        job->written->device, err);
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

static const void *bytes_of(const struct vxd_column *column)
{
    return column != NULL ? column->bytes : NULL;
}

static enum vxd_status end(struct vxd_request *request, struct vxd_queue *queue,
                           struct vxd_err *err)
{
    const struct export_job *job = request->state;
    Voxeld__V1__SceneExportResponse *reply = reply_of(request);
    size_t n = job->base.query.n;
    enum vxd_status status;

    (void)queue;
    if (job->written != NULL && n > 0 && *(const uint64_t *)job->written->bytes != n) {
        return vxd_fail(err, VXD_INTERNAL, NULL,
                        "%" PRIu64 " cells came of %zu that were counted",
                        *(const uint64_t *)job->written->bytes, n);
    }
    VXD_TRY(vxd_scene_new_seen(request, &reply->seen, err));
    VXD_TRY(set_place(request, reply, err));
    if (is_ply(request)) {
        status =
            vxd_scene_write_ply(request, job->cells->bytes, bytes_of(job->materials),
                                bytes_of(job->counts), n, job->box.level, reply, err);
    }
out:
    return status;
}

const struct vxd_query_calls vxd_scene_export_query = {
    .begin = begin, .prepare = prepare, .run = run, .end = end, .close = vxd_scene_close};
