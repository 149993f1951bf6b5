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
    bool one_origin;
    const double *origins; /* device, n x 3 each */
    const double *directions;
    const double *ranges; /* n; NULL = no limit */
    struct vxd_column *hits;
    /* Made of the hits: */
    struct vxd_column *distances;
    struct vxd_column *voxels;
    struct vxd_column *normals;
    struct vxd_column *materials; /* NULL: the scene has none */
};

enum vxd_status vxd_scene_cast_rays_check(struct vxd_request *request,
                                          struct vxd_err *err)
{
    const Voxeld__V1__SceneCastRaysRequest *input =
        (const Voxeld__V1__SceneCastRaysRequest *)request->input;
    struct vxd_query *query;
    size_t n_origins;
    enum vxd_status status;

    VXD_TRY(vxd_noun_begin_check(request, sizeof(struct rays_job), input->name, err));
    query = request->state;
    VXD_TRY(vxd_scene_check_at(input->at, "at", err));
    VXD_TRY(
        vxd_scene_check_numbers(input->origins, "origins", 3, false, &n_origins, err));
    VXD_TRY(vxd_scene_check_numbers(input->directions, "directions", 3, false, &query->n,
                                    err));
    ((struct rays_job *)request->state)->one_origin = n_origins == 1;
    if (n_origins != query->n && n_origins != 1) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "origins",
                         "has %zu rows for %zu directions, it must have one or as many",
                         n_origins, query->n));
    }
    query->part_rows = CHUNK_ROWS;
    request->bulk = query->n > request->server->config.bulk_points;
    request->cost_bytes = query->n * (6 * sizeof(double) + sizeof(struct vxd_svdag_hit));
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
    size_t n = ((const struct vxd_query *)request->state)->n;
    const void *uploaded;
    double *vectors;
    void *block;
    enum vxd_status status;

    VXD_TRY(vxd_scene_take_host(request, n, 3 * sizeof *vectors, &block, err));
    vectors = block;
    for (size_t i = 0; i < 3 * n; i++) {
        double p = vxd_scene_number(tensor, repeat ? i % 3 : i);

        vectors[i] = frame != NULL ? (p - frame->origin[i % 3]) / frame->size : p;
    }
    VXD_TRY(vxd_scene_upload(request, queue, vectors, 3 * n * sizeof *vectors, &uploaded,
                             err));
    *out = uploaded;
out:
    return status;
}

static enum vxd_status upload_range(struct vxd_request *request, struct vxd_queue *queue,
                                    double max_range_m, struct vxd_err *err)
{
    struct rays_job *job = request->state;
    size_t n = job->base.query.n;
    const void *uploaded;
    double *ranges;
    void *block;
    enum vxd_status status;

    if (max_range_m == 0) {
        return VXD_OK;
    }
    VXD_TRY(vxd_scene_take_host(request, n, sizeof *ranges, &block, err));
    ranges = block;
    for (size_t i = 0; i < n; i++) {
        ranges[i] = max_range_m / job->base.scene->spec.voxel_size_m;
    }
    VXD_TRY(vxd_scene_upload(request, queue, ranges, n * sizeof *ranges, &uploaded, err));
    job->ranges = uploaded;
out:
    return status;
}

static enum vxd_status reserve(struct vxd_request *request, struct vxd_queue *queue,
                               struct vxd_err *err)
{
    struct rays_job *job = request->state;
    Voxeld__V1__SceneCastRaysResponse *reply =
        (Voxeld__V1__SceneCastRaysResponse *)job->base.query.reply;
    const size_t row_bytes = sizeof(float) + 3 * sizeof(int32_t) + sizeof(uint16_t) + 3;
    size_t n = job->base.query.n;
    enum vxd_status status;

    VXD_TRY(vxd_columns_reserve(&job->base.query.columns, queue, n,
                                sizeof(struct vxd_svdag_hit), &job->hits, err));
    VXD_TRY(vxd_scene_check_reply(n, row_bytes, err));
    VXD_TRY(vxd_query_reserve_made(request, VXD_FLOAT32, 0, &reply->distances,
                                   &job->distances, err));
    VXD_TRY(
        vxd_query_reserve_made(request, VXD_INT32, 3, &reply->voxels, &job->voxels, err));
    VXD_TRY(vxd_query_reserve_made(request, VXD_INT8, 3, &reply->normals, &job->normals,
                                   err));
    if (vxd_scene_has_materials(job->base.scene)) {
        VXD_TRY(vxd_query_reserve_made(request, VXD_UINT16, 0, &reply->materials,
                                       &job->materials, err));
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
    status = reserve(request, queue, err);
out:
    return status;
}

static enum vxd_status run(struct vxd_request *request, struct vxd_queue *queue,
                           size_t first, size_t n, struct vxd_err *err)
{
    const struct rays_job *job = request->state;

    return vxd_svdag_cast_rays(queue, job->base.state.svdag, job->base.state.root,
                               job->origins + 3 * first, job->directions + 3 * first,
                               job->ranges != NULL ? job->ranges + first : NULL, n,
                               (struct vxd_svdag_hit *)job->hits->device + first, err);
}

/* Converts hits to columns, and counts them. */
static enum vxd_status end(struct vxd_request *request, struct vxd_queue *queue,
                           struct vxd_err *err)
{
    const struct rays_job *job = request->state;
    Voxeld__V1__SceneCastRaysResponse *reply =
        (Voxeld__V1__SceneCastRaysResponse *)job->base.query.reply;
    double size_m = job->base.scene->spec.voxel_size_m;
    const struct vxd_svdag_hit *hits = job->hits->bytes;
    uint16_t *materials = job->materials != NULL ? job->materials->bytes : NULL;
    float *distances = job->distances->bytes;
    int32_t *voxels = job->voxels->bytes;
    int8_t *normals = job->normals->bytes;

    (void)queue;
    for (size_t i = 0; i < job->base.query.n; i++) {
        const struct vxd_svdag_hit *hit = &hits[i];
        bool found = hit->distance >= 0;

        distances[i] = found ? (float)(hit->distance * size_m) : -1.0f;
        if (materials != NULL) {
            materials[i] = found ? hit->value : 0;
        }
        for (int axis = 0; axis < 3; axis++) {
            size_t k = 3 * i + (size_t)axis;

            voxels[k] = found ? hit->voxel[axis] : -1;
            normals[k] = (int8_t)((hit->normal == axis + 1 ? 1 : 0) -
                                  (hit->normal == -(axis + 1) ? 1 : 0));
        }
        reply->n_hits += found ? 1 : 0;
    }
    return vxd_scene_new_seen(request, &reply->seen, err);
}

const struct vxd_query_calls vxd_scene_cast_rays_query = {
    .begin = begin, .run = run, .end = end, .close = vxd_scene_close};
