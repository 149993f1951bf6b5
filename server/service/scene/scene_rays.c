// SPDX-License-Identifier: Apache-2.0
/* Casts rays: converts metres to voxels, and the engine's hits to the reply's columns. */
#include <inttypes.h>
#include <math.h>

#include "gpu/svdag/query/query.h"
#include "server/instance/instance.h"
#include "server/service/service.h"
#include "server/service/scene/scene.h"

enum {
    CHUNK_ROWS =
        1 << 15 /* rows of one stage, so that other requests may run in between */
};

struct rays_job {
    struct vxd_scene_job base; /* first: request->state is both */
    size_t n;
    size_t done;
    bool one_origin;
    const double *origins; /* device, n x 3 each */
    const double *directions;
    const double *ranges; /* n; NULL = no limit */
    struct vxd_scene_output hits;
    /* The reply's columns, host. */
    float *distances;
    int32_t *voxels;
    int8_t *normals;
    uint16_t *materials;
};

enum vxd_status vxd_scene_cast_rays_check(struct vxd_request *request,
                                          struct vxd_err *err)
{
    const Voxeld__V1__SceneCastRaysRequest *input =
        (const Voxeld__V1__SceneCastRaysRequest *)request->input;
    struct rays_job *job;
    size_t n_origins;
    enum vxd_status status;

    VXD_TRY(vxd_scene_begin_check(request, sizeof *job, input->name, err));
    job = request->state;
    VXD_TRY(vxd_scene_check_at(input->at, "at", err));
    VXD_TRY(
        vxd_scene_check_numbers(input->origins, "origins", 3, false, &n_origins, err));
    VXD_TRY(
        vxd_scene_check_numbers(input->directions, "directions", 3, false, &job->n, err));
    job->one_origin = n_origins == 1;
    if (n_origins != job->n && !job->one_origin) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "origins",
                         "has %zu rows for %zu directions, it must have one or as many",
                         n_origins, job->n));
    }
    if (!(input->max_range_m >= 0) || !isfinite(input->max_range_m)) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "max_range_m",
                         "is %g, it must be >= 0 and finite", input->max_range_m));
    }
    request->bulk = job->n > request->server->config.bulk_points;
    request->cost_bytes = job->n * (6 * sizeof(double) + sizeof(struct vxd_svdag_hit));
out:
    return status;
}

/* Converts n x 3 positions to voxels from the low corner; directions stay as they are,
 * since voxels are cubes. */
static enum vxd_status upload_vectors(struct vxd_request *request,
                                      struct vxd_queue *queue,
                                      const Voxeld__V1__Tensor *tensor,
                                      const struct vxd_scene_frame *frame, bool repeat,
                                      const double **out, struct vxd_err *err)
{
    const struct rays_job *job = request->state;
    const void *uploaded;
    double *vectors;
    void *block;
    enum vxd_status status;

    VXD_TRY(vxd_scene_take_host(request, job->n, 3 * sizeof *vectors, &block, err));
    vectors = block;
    for (size_t i = 0; i < 3 * job->n; i++) {
        double p = vxd_scene_number(tensor, repeat ? i % 3 : i);

        vectors[i] = frame != NULL ? (p - frame->origin[i % 3]) / frame->size : p;
    }
    VXD_TRY(vxd_scene_upload(request, queue, vectors, 3 * job->n * sizeof *vectors,
                             &uploaded, err));
    *out = uploaded;
out:
    return status;
}

static enum vxd_status upload_range(struct vxd_request *request, struct vxd_queue *queue,
                                    double max_range_m, struct vxd_err *err)
{
    struct rays_job *job = request->state;
    const void *uploaded;
    double *ranges;
    void *block;
    enum vxd_status status;

    if (max_range_m == 0) {
        return VXD_OK;
    }
    VXD_TRY(vxd_scene_take_host(request, job->n, sizeof *ranges, &block, err));
    ranges = block;
    for (size_t i = 0; i < job->n; i++) {
        ranges[i] = max_range_m / job->base.scene->spec.voxel_size_m;
    }
    VXD_TRY(vxd_scene_upload(request, queue, ranges, job->n * sizeof *ranges, &uploaded,
                             err));
    job->ranges = uploaded;
out:
    return status;
}

/* Allocates the reply's columns in one block, the widest elements first. */
static enum vxd_status take_columns(struct vxd_request *request, struct vxd_err *err)
{
    struct rays_job *job = request->state;
    const size_t row_bytes = sizeof *job->distances + 3 * sizeof *job->voxels +
                             sizeof *job->materials + 3 * sizeof *job->normals;
    void *block;
    enum vxd_status status;

    VXD_TRY(vxd_scene_check_reply(job->n, row_bytes, err));
    VXD_TRY(vxd_scene_take_host(request, job->n, row_bytes, &block, err));
    if (block != NULL) {
        job->distances = block;
        job->voxels = (int32_t *)(void *)(job->distances + job->n);
        job->materials = (uint16_t *)(void *)(job->voxels + 3 * job->n);
        job->normals = (int8_t *)(void *)(job->materials + job->n);
    }
out:
    return status;
}

static enum vxd_status begin(struct vxd_request *request, struct vxd_queue *queue,
                             struct vxd_err *err)
{
    const Voxeld__V1__SceneCastRaysRequest *input =
        (const Voxeld__V1__SceneCastRaysRequest *)request->input;
    struct rays_job *job = request->state;
    struct vxd_scene_frame frame;
    enum vxd_status status;

    VXD_TRY(vxd_scene_open(request, input->name, input->at, err));
    frame = vxd_scene_frame_of(&job->base.scene->spec, false);
    VXD_TRY(upload_vectors(request, queue, input->origins, &frame, job->one_origin,
                           &job->origins, err));
    VXD_TRY(upload_vectors(request, queue, input->directions, NULL, false,
                           &job->directions, err));
    VXD_TRY(upload_range(request, queue, input->max_range_m, err));
    VXD_TRY(vxd_scene_reserve_output(request, queue, job->n, sizeof(struct vxd_svdag_hit),
                                     &job->hits, err));
    status = take_columns(request, err);
out:
    return status;
}

enum vxd_status vxd_scene_cast_rays_submit(struct vxd_request *request,
                                           struct vxd_queue *queue, struct vxd_err *err)
{
    struct rays_job *job = request->state;
    size_t first = job->done;
    size_t n;
    enum vxd_status status = VXD_OK;

    if (job->base.scene == NULL) {
        VXD_TRY(begin(request, queue, err));
    }
    n = vxd_scene_next_chunk(request, job->n, CHUNK_ROWS, &job->done);
    if (n > 0) {
        VXD_TRY(vxd_svdag_cast_rays(
            queue, job->base.state.svdag, job->base.state.root, job->origins + 3 * first,
            job->directions + 3 * first, job->ranges != NULL ? job->ranges + first : NULL,
            n, (struct vxd_svdag_hit *)job->hits.device + first, err));
    }
    if (!request->more) {
        VXD_TRY(vxd_scene_fetch_output(request, queue, &job->hits, err));
    }
out:
    return status;
}

/* Converts hits to columns; returns how many there are. */
static uint64_t set_columns(const struct rays_job *job)
{
    double size_m = job->base.scene->spec.voxel_size_m;
    const struct vxd_svdag_hit *hits = job->hits.bytes;
    uint64_t n_hits = 0;

    for (size_t i = 0; i < job->n; i++) {
        const struct vxd_svdag_hit *hit = &hits[i];
        bool found = hit->distance >= 0;

        job->distances[i] = found ? (float)(hit->distance * size_m) : -1.0f;
        job->materials[i] = found ? hit->value : 0;
        for (int axis = 0; axis < 3; axis++) {
            size_t k = 3 * i + (size_t)axis;

            job->voxels[k] = found ? hit->voxel[axis] : -1;
            job->normals[k] = (int8_t)((hit->normal == axis + 1 ? 1 : 0) -
                                       (hit->normal == -(axis + 1) ? 1 : 0));
        }
        n_hits += found ? 1 : 0;
    }
    return n_hits;
}

enum vxd_status vxd_scene_cast_rays_finish(struct vxd_request *request,
                                           struct vxd_queue *queue, struct vxd_err *err)
{
    const struct rays_job *job = request->state;
    Voxeld__V1__SceneCastRaysResponse *reply = vxd_message_new(
        request->decoder, &voxeld__v1__scene_cast_rays_response__descriptor, err);
    enum vxd_status status;

    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    reply->n_hits = set_columns(job);
    VXD_TRY(vxd_scene_new_seen(request, &reply->seen, err));
    VXD_TRY(vxd_scene_show(request, VXD_FLOAT32, job->n, 0, job->distances,
                           &reply->distances, err));
    VXD_TRY(
        vxd_scene_show(request, VXD_INT32, job->n, 3, job->voxels, &reply->voxels, err));
    VXD_TRY(
        vxd_scene_show(request, VXD_INT8, job->n, 3, job->normals, &reply->normals, err));
    VXD_TRY(vxd_scene_show_materials(request, job->n, job->materials, &reply->materials,
                                     err));
    request->output = &reply->base;
    vxd_scene_close(request, queue);
out:
    return status;
}
