// SPDX-License-Identifier: Apache-2.0
/* Pictures of a camera. */
#include "server/instance/instance.h"
#include "server/service/service.h"
#include "server/service/volume/volume_service.h"

#define DEFAULT_DEPTH_MAX_M 3
#define MAX_DEPTH_M 1000
#define MAX_WEIGHT 65535

struct cast_job {
    struct vxd_volume_job base; /* first: request->state is both */
    struct vxd_volume_cast_args args;
    Voxeld__V1__VolumeCastRaysResponse *reply;
    struct vxd_volume_output *depth;
    struct vxd_volume_output *vertices;
    struct vxd_volume_output *normals;
    struct vxd_volume_output *colours;
};

enum vxd_status vxd_volume_cast_rays_check(struct vxd_request *request,
                                           struct vxd_err *err)
{
    const Voxeld__V1__VolumeCastRaysRequest *input =
        (const Voxeld__V1__VolumeCastRaysRequest *)request->input;
    struct vxd_volume_cast_args *args;
    enum vxd_status status;

    VXD_TRY(vxd_volume_begin_check(request, sizeof(struct cast_job), input->name, err));
    args = &((struct cast_job *)request->state)->args;
    VXD_TRY(vxd_volume_read_camera(input->camera, "camera", NULL, &args->camera, err));
    VXD_TRY(vxd_volume_read_pose(input->t_map_camera, "T_map_camera", &args->T_map_camera,
                                 err));
    VXD_TRY(
        vxd_volume_check_number(input->depth_min_m, "depth_min_m", 0, MAX_DEPTH_M, err));
    VXD_TRY(
        vxd_volume_check_number(input->depth_max_m, "depth_max_m", 0, MAX_DEPTH_M, err));
    VXD_TRY(vxd_volume_check_number(input->min_weight, "min_weight", 0, MAX_WEIGHT, err));
    args->depth_min_m = input->depth_min_m;
    args->depth_max_m = input->depth_max_m > 0 ? input->depth_max_m : DEFAULT_DEPTH_MAX_M;
    args->weight_threshold = input->min_weight;
    /* Depth, vertices, normals, colours, on host and device. */
    request->cost_bytes =
        (uint64_t)args->camera.width * (uint64_t)args->camera.height * 2 * 31;
out:
    return status;
}

static enum vxd_status reserve(struct vxd_request *request, struct vxd_queue *queue,
                               struct vxd_err *err)
{
    const Voxeld__V1__VolumeCastRaysRequest *input =
        (const Voxeld__V1__VolumeCastRaysRequest *)request->input;
    struct cast_job *job = request->state;
    struct vxd_volume_cast_args *args = &job->args;
    Voxeld__V1__VolumeCastRaysResponse *reply = job->reply;
    size_t n = (size_t)args->camera.width * (size_t)args->camera.height;
    enum vxd_status status;

    VXD_TRY(vxd_volume_reserve(request, queue, VXD_FLOAT32, n, 0, &reply->depth,
                               &job->depth, err));
    args->depth = job->depth->device;
    if (input->vertices) {
        VXD_TRY(vxd_volume_reserve(request, queue, VXD_FLOAT32, n, 3, &reply->vertices,
                                   &job->vertices, err));
        args->vertex = job->vertices->device;
    }
    if (input->normals) {
        VXD_TRY(vxd_volume_reserve(request, queue, VXD_FLOAT32, n, 3, &reply->normals,
                                   &job->normals, err));
        args->normal = job->normals->device;
    }
    if (input->colours) {
        VXD_TRY(vxd_volume_reserve(request, queue, VXD_UINT8, n, 3, &reply->colours,
                                   &job->colours, err));
        args->colour = job->colours->device;
    }
out:
    return status;
}

enum vxd_status vxd_volume_cast_rays_submit(struct vxd_request *request,
                                            struct vxd_queue *queue, struct vxd_err *err)
{
    const Voxeld__V1__VolumeCastRaysRequest *input =
        (const Voxeld__V1__VolumeCastRaysRequest *)request->input;
    struct cast_job *job = request->state;
    enum vxd_status status;

    job->reply = vxd_message_new(request->decoder,
                                 &voxeld__v1__volume_cast_rays_response__descriptor, err);
    if (job->reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(vxd_volume_open(request, input->name, err));
    if (input->colours && !job->base.volume->spec.has_colour) {
        VXD_TRY(vxd_fail(err, VXD_FAILED_PRECONDITION, "colours",
                         "the volume \"%s\" keeps no colours", input->name));
    }
    VXD_TRY(reserve(request, queue, err));
    VXD_TRY(vxd_volume_cast(queue, job->base.volume->volume, &job->args, err));
    VXD_TRY(vxd_volume_fetch(request, queue, err));
    request->output = &job->reply->base;
out:
    return status;
}

enum vxd_status vxd_volume_cast_rays_finish(struct vxd_request *request,
                                            struct vxd_queue *queue, struct vxd_err *err)
{
    struct cast_job *job = request->state;
    Voxeld__V1__VolumeCastRaysResponse *reply = job->reply;
    const float *depth = job->depth->bytes;
    size_t n = job->depth->n_bytes / sizeof *depth;

    (void)queue;
    (void)err;
    reply->width = (uint32_t)job->args.camera.width;
    reply->height = (uint32_t)job->args.camera.height;
    vxd_volume_show(reply->depth, job->depth);
    vxd_volume_show(reply->vertices, job->vertices);
    vxd_volume_show(reply->normals, job->normals);
    vxd_volume_show(reply->colours, job->colours);
    for (size_t i = 0; i < n; i++) {
        reply->n_hits += depth[i] > 0 ? 1 : 0;
    }
    reply->engine_ms = (double)request->engine_ns / 1e6;
    return VXD_OK;
}
