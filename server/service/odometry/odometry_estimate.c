// SPDX-License-Identifier: Apache-2.0
/* The pose of a scan: its points are decoded in the sensor's frame, at the scan's end where points
 * have times, and registered. */
#include "server/service/odometry/service_odometry.h"

#include "server/instance/instance.h"
#include "server/service/existing/existing.h"
#include "server/service/service.h"

/* errors  INVALID_ARGUMENT  of the cloud's layout; its field is that of one cloud */
static enum vxd_status check_layout(struct vxd_request *request,
                                    struct vxd_clouds *clouds, struct vxd_err *err)
{
    enum vxd_status status = vxd_clouds_check(request, clouds, err);

    if (status != VXD_OK) {
        vxd_clouds_name_one(err);
    }
    return status;
}

enum vxd_status vxd_estimate_check(struct vxd_request *request,
                                   const Voxeld__V1__Cloud *cloud,
                                   struct vxd_estimate *estimate, struct vxd_err *err)
{
    enum vxd_status status;

    if (cloud == NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "cloud", "is required");
    }
    if (cloud->n_sweeps > 0) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "cloud.sweeps",
                        "has %zu entries; a sweep is a scan of its own here",
                        cloud->n_sweeps);
    }
    if (cloud->stamp_ns < 0) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "cloud.stamp_ns",
                        "is %lld, must be at least 0", (long long)cloud->stamp_ns);
    }
    estimate->has_prior = cloud->t_map_sensor != NULL;
    VXD_TRY(vxd_volume_read_pose(cloud->t_map_sensor, "cloud.T_map_sensor",
                                 &estimate->prior, err));
    estimate->cloud = *cloud;
    estimate->pointer = &estimate->cloud;
    estimate->cloud.t_map_sensor = NULL;
    if (cloud->deskew != NULL) {
        estimate->deskew = *cloud->deskew;
        estimate->deskew.t_map_sensor_end = NULL; /* the identity */
        estimate->cloud.deskew = &estimate->deskew;
    }
    estimate->clouds.clouds = &estimate->pointer;
    estimate->clouds.n_clouds = 1;
    VXD_TRY(check_layout(request, &estimate->clouds, err));
    if (estimate->clouds.n_points > VXD_ODOMETRY_MAX_SCAN_POINTS) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "cloud.data",
                         "has %zu points; at most %zu are possible",
                         estimate->clouds.n_points, VXD_ODOMETRY_MAX_SCAN_POINTS));
    }
out:
    return status;
}

enum vxd_status vxd_estimate_open(struct vxd_request *request, struct vxd_queue *queue,
                                  const char *odometry, enum vxd_odometry_owner kind,
                                  const char *name, uint64_t generation,
                                  const char *owner, struct vxd_estimate *estimate,
                                  struct vxd_err *err)
{
    struct vxd_odometries *odometries = request->server->odometries;
    struct vxd_named_odometry *found = NULL;
    enum vxd_status status = VXD_OK;

    if (odometry[0] != '\0') {
        found = vxd_odometries_find(odometries, odometry);
        if (found == NULL) {
            return vxd_missing_odometry(
                request, kind == VXD_ODOMETRY_NAMED ? "name" : "odometry", odometry, err);
        }
    } else {
        VXD_TRY(vxd_odometries_beside(odometries, queue, kind, name, generation, owner,
                                      &found, err));
    }
    VXD_TRY(vxd_named_check_bytes(&found->named, 1, "the odometry", err));
    vxd_named_hold(&found->named);
    estimate->odometry = found;
out:
    return status;
}

/* Makes the message's pose of an engine's one. */
static enum vxd_status new_pose(struct vxd_decoder *arena,
                                const struct vxd_volume_pose *pose,
                                Voxeld__V1__Pose **out, struct vxd_err *err)
{
    *out = vxd_volume_new_pose(arena, pose, err);
    return *out != NULL ? VXD_OK : VXD_RESOURCE_EXHAUSTED;
}

/* Decodes the points; deskewed ones to where the sensor is at the scan's end. */
static enum vxd_status decode(struct vxd_queue *queue, struct vxd_estimate *estimate,
                              struct vxd_err *err)
{
    struct vxd_volume_pose begin;
    Voxeld__V1__Pose pose;
    Voxeld__V1__Vec3 translation;
    Voxeld__V1__Quaternion rotation;
    enum vxd_status status;

    VXD_TRY(vxd_device_alloc(queue, estimate->clouds.n_points * 3 * sizeof(float),
                             &estimate->positions, err));
    if (estimate->cloud.deskew != NULL) {
        vxd_odometry_get_motion(estimate->odometry->odometry, &begin);
        voxeld__v1__pose__init(&pose);
        voxeld__v1__vec3__init(&translation);
        voxeld__v1__quaternion__init(&rotation);
        pose.translation = &translation;
        pose.rotation = &rotation;
        vxd_volume_fill_pose(&begin, &pose);
        estimate->cloud.t_map_sensor = &pose;
    }
    status =
        vxd_clouds_decode(&estimate->clouds, queue, estimate->positions.ptr, NULL, err);
    estimate->cloud.t_map_sensor = NULL;
    if (status != VXD_OK) {
        vxd_clouds_name_one(err);
    }
out:
    return status;
}

enum vxd_status vxd_estimate_run(struct vxd_queue *queue, struct vxd_estimate *estimate,
                                 struct vxd_err *err)
{
    struct vxd_odometry *odometry = estimate->odometry->odometry;
    struct vxd_odometry_scan scan = {.n_points = estimate->clouds.n_points,
                                     .stamp_ns = estimate->cloud.stamp_ns,
                                     .has_prior = estimate->has_prior,
                                     .prior = estimate->prior};
    struct vxd_volume_pose motion;
    enum vxd_status status;

    vxd_odometry_get_motion(odometry, &motion);
    if (scan.n_points > 0) {
        VXD_TRY(decode(queue, estimate, err));
        scan.points = estimate->positions.ptr;
    }
    status = vxd_odometry_register(queue, odometry, &scan, &estimate->result, err);
    if (status != VXD_OK) {
        if (err != NULL && strcmp(err->field, "stamp_ns") == 0) {
            (void)snprintf(err->field, sizeof err->field, "cloud.stamp_ns");
        } else if (err != NULL && strcmp(err->field, "prior") == 0) {
            (void)snprintf(err->field, sizeof err->field, "cloud.T_map_sensor");
        }
        goto out;
    }
    estimate->is_done = true;
    estimate->T_map_sensor_begin = estimate->result.T_map_sensor;
    if (estimate->cloud.deskew != NULL) {
        vxd_pose_multiply(&estimate->result.T_map_sensor, &motion,
                          &estimate->T_map_sensor_begin);
    }
out:
    if (status != VXD_OK) { /* counts of the body may still be on their way to the host */
        (void)vxd_queue_wait(queue, NULL);
    }
    vxd_clouds_free(&estimate->clouds, queue);
    vxd_device_free(queue, &estimate->positions);
    return status;
}

void vxd_estimate_release(struct vxd_queue *queue, struct vxd_estimate *estimate)
{
    vxd_clouds_free(&estimate->clouds, queue);
    vxd_device_free(queue, &estimate->positions);
    if (estimate->odometry != NULL) {
        vxd_named_account(&estimate->odometry->named);
        vxd_named_drop(&estimate->odometry->named, queue);
        estimate->odometry = NULL;
    }
}

enum vxd_status vxd_estimate_place(struct vxd_decoder *arena,
                                   const struct vxd_estimate *estimate,
                                   Voxeld__V1__Cloud *cloud, struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(new_pose(arena, &estimate->T_map_sensor_begin, &cloud->t_map_sensor, err));
    if (cloud->deskew != NULL) {
        VXD_TRY(new_pose(arena, &estimate->result.T_map_sensor,
                         &cloud->deskew->t_map_sensor_end, err));
    }
out:
    return status;
}
