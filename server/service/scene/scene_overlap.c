// SPDX-License-Identifier: Apache-2.0
/* Boxes and balls: which states are in them, and of how many voxels. */
#include <inttypes.h>
#include <math.h>

#include "gpu/svdag/query/query.h"
#include "server/instance/instance.h"
#include "server/service/service.h"
#include "server/service/scene/scene.h"

enum {
    CHUNK_ROWS =
        1 << 10, /* rows of one stage, so that other requests may run in between */
    MAX_COUNTED_RADIUS = 1024, /* voxels: counting a ball takes time with its square */
    MAX_COUNTED_UNITS = MAX_COUNTED_RADIUS * VXD_SVDAG_UNIT
};

struct overlap_job {
    struct vxd_scene_job base;              /* first: request->state is both */
    const struct vxd_svdag_region *regions; /* device */
    struct vxd_column *states;
    struct vxd_column *counts; /* n x 2; NULL: nothing is counted */
    /* Made of them: */
    struct vxd_column *n_occupied;
    struct vxd_column *n_free;
};

/* A region that is not finite is an error, unlike a point. */
static enum vxd_status check_finite(const Voxeld__V1__Tensor *tensor, const char *field,
                                    size_t columns, struct vxd_err *err)
{
    size_t n = (size_t)tensor->shape[0] * columns;

    for (size_t i = 0; i < n; i++) {
        double value = vxd_scene_number(tensor, i);
        bool is_radius = columns == 4 && i % 4 == 3;

        if (!isfinite(value) || (is_radius && value < 0)) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                            "row %zu has the %s %g, it must be %sfinite", i / columns,
                            is_radius ? "radius" : "coordinate", value,
                            is_radius ? ">= 0 and " : "");
        }
    }
    return VXD_OK;
}

enum vxd_status vxd_scene_overlap_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__SceneOverlapRequest *input =
        (const Voxeld__V1__SceneOverlapRequest *)request->input;
    struct vxd_query *query;
    bool boxes = input->boxes != NULL;
    enum vxd_status status;

    VXD_TRY(vxd_noun_begin_check(request, sizeof(struct overlap_job), input->name, err));
    query = request->state;
    VXD_TRY(vxd_scene_check_at(input->at, "at", err));
    if (boxes == (input->balls != NULL)) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "boxes",
                         "either boxes or balls are required, not both"));
    }
    VXD_TRY(
        boxes ? vxd_scene_check_numbers(input->boxes, "boxes", 6, false, &query->n, err)
              : vxd_scene_check_numbers(input->balls, "balls", 4, false, &query->n, err));
    VXD_TRY(boxes ? check_finite(input->boxes, "boxes", 6, err)
                  : check_finite(input->balls, "balls", 4, err));
    query->part_rows = CHUNK_ROWS;
    request->bulk = query->n > request->server->config.bulk_points / CHUNK_ROWS;
    request->cost_bytes = query->n * (sizeof(struct vxd_svdag_region) + 40);
out:
    return status;
}

static void read_box(const Voxeld__V1__Tensor *boxes, const struct vxd_scene_frame *frame,
                     size_t i, struct vxd_svdag_region *out)
{
    *out = (struct vxd_svdag_region){.r = -1};
    for (int axis = 0; axis < 3; axis++) {
        size_t k = 6 * i + (size_t)axis;

        out->low[axis] = vxd_scene_coordinate(frame, axis, vxd_scene_number(boxes, k));
        out->high[axis] =
            vxd_scene_coordinate(frame, axis, vxd_scene_number(boxes, k + 3));
    }
}

static enum vxd_status read_ball(const Voxeld__V1__Tensor *balls, bool is_counted,
                                 const struct vxd_scene_frame *frame, size_t i,
                                 struct vxd_svdag_region *out, struct vxd_err *err)
{
    bool in_range;

    *out = (struct vxd_svdag_region){0};
    out->r = vxd_scene_length(frame, vxd_scene_number(balls, 4 * i + 3));
    if (is_counted && out->r > MAX_COUNTED_UNITS) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "balls",
                        "row %zu: a ball of which voxels are counted has a radius of at "
                        "most %d voxels; boxes may be larger",
                        i, MAX_COUNTED_RADIUS);
    }
    in_range = out->r < VXD_SCENE_FAR;
    for (int axis = 0; axis < 3; axis++) {
        int64_t units = vxd_scene_coordinate(
            frame, axis, vxd_scene_number(balls, 4 * i + (size_t)axis));

        in_range = in_range && units > -VXD_SCENE_FAR && units < VXD_SCENE_FAR;
        out->centre[axis] = units;
    }
    return in_range ? VXD_OK
                    : vxd_fail(err, VXD_OUT_OF_RANGE, "balls",
                               "row %zu lies, or reaches, more than %lld voxels from "
                               "the scene's low corner",
                               i, (long long)(VXD_SCENE_FAR / VXD_SVDAG_UNIT));
}

static enum vxd_status upload_regions(struct vxd_request *request,
                                      struct vxd_queue *queue, struct vxd_err *err)
{
    const Voxeld__V1__SceneOverlapRequest *input =
        (const Voxeld__V1__SceneOverlapRequest *)request->input;
    struct overlap_job *job = request->state;
    struct vxd_scene_frame frame = vxd_scene_frame_of(&job->base.scene->spec, false);
    size_t n = job->base.query.n;
    struct vxd_svdag_region *regions;
    const void *uploaded;
    void *block;
    enum vxd_status status;

    VXD_TRY(vxd_scene_take_host(request, n, sizeof *regions, &block, err));
    regions = block;
    for (size_t i = 0; i < n; i++) {
        if (input->boxes != NULL) {
            read_box(input->boxes, &frame, i, &regions[i]);
        } else {
            VXD_TRY(read_ball(input->balls, input->counts, &frame, i, &regions[i], err));
        }
    }
    VXD_TRY(
        vxd_scene_upload(request, queue, regions, n * sizeof *regions, &uploaded, err));
    job->regions = uploaded;
out:
    return status;
}

static enum vxd_status begin(struct vxd_request *request, struct vxd_queue *queue,
                             struct vxd_err *err)
{
    const Voxeld__V1__SceneOverlapRequest *input =
        (const Voxeld__V1__SceneOverlapRequest *)request->input;
    struct overlap_job *job = request->state;
    Voxeld__V1__SceneOverlapResponse *reply =
        (Voxeld__V1__SceneOverlapResponse *)job->base.query.reply;
    enum vxd_status status;

    VXD_TRY(vxd_scene_open(request, input->name, input->at, err));
    VXD_TRY(upload_regions(request, queue, err));
    VXD_TRY(vxd_query_reserve(request, queue, VXD_UINT8, 0, &reply->states, &job->states,
                              err));
    if (input->counts) {
        VXD_TRY(
            vxd_query_reserve(request, queue, VXD_UINT64, 2, NULL, &job->counts, err));
        VXD_TRY(vxd_query_reserve_made(request, VXD_UINT64, 0, &reply->n_occupied,
                                       &job->n_occupied, err));
        VXD_TRY(vxd_query_reserve_made(request, VXD_UINT64, 0, &reply->n_free,
                                       &job->n_free, err));
    }
out:
    return status;
}

static enum vxd_status run(struct vxd_request *request, struct vxd_queue *queue,
                           size_t first, size_t n, struct vxd_err *err)
{
    const struct overlap_job *job = request->state;
    const struct vxd_scene_state *state = &job->base.state;
    enum vxd_status status;

    VXD_TRY(vxd_svdag_overlap(queue, state->svdag, state->root, job->regions + first, n,
                              vxd_scene_row(job->states, first, 1), err));
    if (job->counts != NULL) {
        VXD_TRY(vxd_svdag_count(queue, state->svdag, state->root, job->regions + first, n,
                                vxd_scene_row(job->counts, first, 2 * sizeof(uint64_t)),
                                err));
    }
out:
    return status;
}

static enum vxd_status end(struct vxd_request *request, struct vxd_queue *queue,
                           struct vxd_err *err)
{
    const struct overlap_job *job = request->state;
    const uint64_t *counts = job->counts != NULL ? job->counts->bytes : NULL;

    (void)queue;
    for (size_t i = 0; counts != NULL && i < job->base.query.n; i++) {
        ((uint64_t *)job->n_occupied->bytes)[i] = counts[2 * i];
        ((uint64_t *)job->n_free->bytes)[i] = counts[2 * i + 1];
    }
    return vxd_scene_new_seen(
        request, &((Voxeld__V1__SceneOverlapResponse *)job->base.query.reply)->seen, err);
}

const struct vxd_query_calls vxd_scene_overlap_query = {
    .begin = begin, .run = run, .end = end, .close = vxd_scene_close};
