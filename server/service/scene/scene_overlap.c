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
    struct vxd_scene_job base; /* first: request->state is both */
    size_t n;
    size_t done;
    const struct vxd_svdag_region *regions; /* device */
    struct vxd_scene_output states;
    struct vxd_scene_output counts; /* n x 2 */
    uint64_t *n_occupied;           /* host; the FREE ones behind it */
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
    struct overlap_job *job;
    bool boxes = input->boxes != NULL;
    enum vxd_status status;

    VXD_TRY(vxd_scene_begin_check(request, sizeof *job, input->name, err));
    job = request->state;
    VXD_TRY(vxd_scene_check_at(input->at, "at", err));
    if (boxes == (input->balls != NULL)) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "boxes",
                         "either boxes or balls are required, not both"));
    }
    VXD_TRY(boxes
                ? vxd_scene_check_numbers(input->boxes, "boxes", 6, false, &job->n, err)
                : vxd_scene_check_numbers(input->balls, "balls", 4, false, &job->n, err));
    VXD_TRY(boxes ? check_finite(input->boxes, "boxes", 6, err)
                  : check_finite(input->balls, "balls", 4, err));
    request->bulk = job->n > request->server->config.bulk_points / CHUNK_ROWS;
    request->cost_bytes = job->n * (sizeof(struct vxd_svdag_region) + 40);
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
    struct vxd_svdag_region *regions;
    const void *uploaded;
    void *block;
    enum vxd_status status;

    VXD_TRY(vxd_scene_take_host(request, job->n, sizeof *regions, &block, err));
    regions = block;
    for (size_t i = 0; i < job->n; i++) {
        if (input->boxes != NULL) {
            read_box(input->boxes, &frame, i, &regions[i]);
        } else {
            VXD_TRY(read_ball(input->balls, input->counts, &frame, i, &regions[i], err));
        }
    }
    VXD_TRY(vxd_scene_upload(request, queue, regions, job->n * sizeof *regions, &uploaded,
                             err));
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
    void *block;
    enum vxd_status status;

    VXD_TRY(vxd_scene_open(request, input->name, input->at, err));
    VXD_TRY(upload_regions(request, queue, err));
    VXD_TRY(vxd_scene_reserve_output(request, queue, job->n, 1, &job->states, err));
    if (input->counts) {
        VXD_TRY(vxd_scene_reserve_output(request, queue, job->n, 2 * sizeof(uint64_t),
                                         &job->counts, err));
        VXD_TRY(vxd_scene_take_host(request, job->n, 2 * sizeof(uint64_t), &block, err));
        job->n_occupied = block;
    }
out:
    return status;
}

enum vxd_status vxd_scene_overlap_submit(struct vxd_request *request,
                                         struct vxd_queue *queue, struct vxd_err *err)
{
    struct overlap_job *job = request->state;
    const struct vxd_scene_job *base = &job->base;
    size_t first = job->done;
    size_t n;
    enum vxd_status status = VXD_OK;

    if (base->scene == NULL) {
        VXD_TRY(begin(request, queue, err));
    }
    n = vxd_scene_next_chunk(request, job->n, CHUNK_ROWS, &job->done);
    if (n > 0) {
        VXD_TRY(vxd_svdag_overlap(queue, base->state.svdag, base->state.root,
                                  job->regions + first, n,
                                  (uint8_t *)job->states.device + first, err));
    }
    if (n > 0 && job->counts.device != NULL) {
        VXD_TRY(vxd_svdag_count(queue, base->state.svdag, base->state.root,
                                job->regions + first, n,
                                (uint64_t *)job->counts.device + 2 * first, err));
    }
    if (!request->more) {
        VXD_TRY(vxd_scene_fetch_output(request, queue, &job->states, err));
        VXD_TRY(vxd_scene_fetch_output(request, queue, &job->counts, err));
    }
out:
    return status;
}

enum vxd_status vxd_scene_overlap_finish(struct vxd_request *request,
                                         struct vxd_queue *queue, struct vxd_err *err)
{
    const Voxeld__V1__SceneOverlapRequest *input =
        (const Voxeld__V1__SceneOverlapRequest *)request->input;
    const struct overlap_job *job = request->state;
    const uint64_t *counts = job->counts.bytes;
    Voxeld__V1__SceneOverlapResponse *reply = vxd_message_new(
        request->decoder, &voxeld__v1__scene_overlap_response__descriptor, err);
    enum vxd_status status;

    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(vxd_scene_new_seen(request, &reply->seen, err));
    VXD_TRY(vxd_scene_show(request, VXD_UINT8, job->n, 0, job->states.bytes,
                           &reply->states, err));
    if (input->counts) {
        for (size_t i = 0; i < job->n; i++) {
            job->n_occupied[i] = counts[2 * i];
            job->n_occupied[job->n + i] = counts[2 * i + 1];
        }
        VXD_TRY(vxd_scene_show(request, VXD_UINT64, job->n, 0, job->n_occupied,
                               &reply->n_occupied, err));
        VXD_TRY(vxd_scene_show(request, VXD_UINT64, job->n, 0,
                               job->n > 0 ? job->n_occupied + job->n : NULL,
                               &reply->n_free, err));
    }
    request->output = &reply->base;
    vxd_scene_close(request, queue);
out:
    return status;
}
