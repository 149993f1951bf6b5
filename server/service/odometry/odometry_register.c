// SPDX-License-Identifier: Apache-2.0
/* Registers a scan. All of it is done in submit, since registration waits for the device. */
#include "server/instance/instance.h"
#include "server/service/noun/noun.h"
#include "server/service/odometry/service_odometry.h"
#include "server/service/service.h"

struct register_job {
    struct vxd_estimate estimate;
    double covariance[36];
};

enum vxd_status vxd_odometry_register_check(struct vxd_request *request,
                                            struct vxd_err *err)
{
    const Voxeld__V1__OdometryRegisterRequest *input =
        (const Voxeld__V1__OdometryRegisterRequest *)request->input;
    struct register_job *job;
    enum vxd_status status;

    VXD_TRY(vxd_noun_begin_check(request, sizeof *job, input->name, err));
    job = request->state;
    VXD_TRY(vxd_estimate_check(request, input->cloud, &job->estimate, err));
    request->n_points = job->estimate.clouds.n_points;
    request->cost_bytes =
        request->body_bytes + request->n_points * VXD_ESTIMATE_BYTES_A_POINT;
out:
    return status;
}

static enum vxd_status show(struct vxd_request *request,
                            Voxeld__V1__OdometryRegisterResponse *reply,
                            struct vxd_err *err)
{
    struct register_job *job = request->state;
    const struct vxd_odometry_result *result = &job->estimate.result;
    Voxeld__V1__Tensor *tensor =
        vxd_message_new(request->decoder, &voxeld__v1__tensor__descriptor, err);

    reply->covariance = tensor;
    reply->t_map_sensor =
        vxd_volume_new_pose(request->decoder, &result->T_map_sensor, err);
    reply->t_map_sensor_begin =
        vxd_volume_new_pose(request->decoder, &job->estimate.T_map_sensor_begin, err);
    if (tensor == NULL || reply->t_map_sensor == NULL ||
        reply->t_map_sensor_begin == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    tensor->shape = vxd_message_array(request->decoder, 2, sizeof *tensor->shape, err);
    if (tensor->shape == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    memcpy(job->covariance, result->covariance, sizeof job->covariance);
    tensor->dtype = VOXELD__V1__DTYPE__FLOAT64;
    tensor->n_shape = 2;
    tensor->shape[0] = tensor->shape[1] = 6;
    tensor->data.data = (uint8_t *)job->covariance;
    tensor->data.len = sizeof job->covariance;
    reply->status = (Voxeld__V1__OdometryStatus)result->status;
    reply->reason = (Voxeld__V1__OdometryReason)result->reason;
    reply->is_first = result->is_first;
    reply->fitness = result->fitness;
    reply->constraint = result->constraint;
    reply->rmse_m = result->rmse_m;
    reply->threshold_m = result->threshold_m;
    reply->n_points = job->estimate.clouds.n_points;
    reply->n_used = result->n_used;
    reply->n_map = result->n_map;
    reply->n_registered = result->n_registered;
    reply->n_inliers = result->n_inliers;
    reply->n_iterations = result->n_iterations;
    reply->n_lost = result->n_lost;
    reply->stamp_ns = job->estimate.cloud.stamp_ns;
    return VXD_OK;
}

enum vxd_status vxd_odometry_register_submit(struct vxd_request *request,
                                             struct vxd_queue *queue, struct vxd_err *err)
{
    const Voxeld__V1__OdometryRegisterRequest *input =
        (const Voxeld__V1__OdometryRegisterRequest *)request->input;
    struct register_job *job = request->state;
    Voxeld__V1__OdometryRegisterResponse *reply = vxd_message_new(
        request->decoder, &voxeld__v1__odometry_register_response__descriptor, err);
    enum vxd_status status;

    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(vxd_estimate_open(request, queue, input->name, VXD_ODOMETRY_NAMED, "", 0, "",
                              &job->estimate, err));
    VXD_TRY(vxd_estimate_run(queue, &job->estimate, err));
    VXD_TRY(show(request, reply, err));
    request->output = &reply->base;
out:
    return status;
}

enum vxd_status vxd_odometry_register_finish(struct vxd_request *request,
                                             struct vxd_queue *queue, struct vxd_err *err)
{
    (void)queue;
    (void)err;
    ((Voxeld__V1__OdometryRegisterResponse *)request->output)->engine_ms =
        (double)request->engine_ns / 1e6;
    return VXD_OK;
}

void vxd_odometry_register_release(struct vxd_request *request, struct vxd_queue *queue)
{
    struct register_job *job = request->state;

    vxd_estimate_release(queue, &job->estimate);
}
