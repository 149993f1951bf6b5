// SPDX-License-Identifier: Apache-2.0
/* Integrates a lidar scan. Its points are decoded in the sensor's frame, with their times, normals
 * and labels beside them, since each of them has a pose of its own. */
#include <math.h>

#include "gpu/volume/scan/volume_scan.h"
#include "server/instance/instance.h"
#include "server/service/clouds/clouds.h"
#include "server/service/odometry/service_odometry.h"
#include "server/service/service.h"
#include "server/service/volume/volume_service.h"

#define DEFAULT_RANGE_MAX_M 100

enum {
    ENGINE_BYTES_A_POINT = 256, /* points, features, rays, touched blocks and sums */
    MAX_POINTS = 1 << 22
};

struct points_job {
    struct vxd_volume_job base; /* first: request->state is both */
    struct vxd_clouds clouds;
    struct vxd_volume_scan scan; /* its arrays are filled in on the lane */
    struct vxd_volume_scan_result result;
    struct vxd_buffer positions;
    struct vxd_buffer features;
    struct vxd_buffer labels;
    struct vxd_buffer host_positions; /* CUDA: what the journal keeps */
    struct vxd_buffer host_features;
    bool estimates;           /* the pose is found, by odometry */
    Voxeld__V1__Cloud moving; /* the cloud with its times, as odometry takes it */
    Voxeld__V1__Deskew deskew;
    struct vxd_estimate estimate;
};

/* --- check ------------------------------------------------------------------------------ */

static int add_channel(struct vxd_clouds *clouds, const char *name, double scale,
                       double bias)
{
    clouds->channels[clouds->n_channels] =
        (struct vxd_cloud_channel){.name = name, .scale = scale, .bias = bias};
    return clouds->n_channels++;
}

static enum vxd_status check_times(const Voxeld__V1__VolumeIntegratePointsRequest *input,
                                   struct points_job *job, struct vxd_err *err)
{
    double begin = input->time_begin;
    double end = begin == 0 && input->time_end == 0 ? 1 : input->time_end;

    if (input->time_field[0] == '\0') {
        if (input->t_map_sensor_end != NULL) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "time_field",
                            "is missing: with an end pose each point needs a time");
        }
        return VXD_OK;
    }
    if (!(end > begin)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "time_end",
                        "is %g, must be above time_begin (%g)", end, begin);
    }
    job->scan.time_column = add_channel(&job->clouds, input->time_field,
                                        1 / (end - begin), -begin / (end - begin));
    return vxd_volume_read_pose(input->t_map_sensor_end, "T_map_sensor_end",
                                &job->scan.T_map_sensor_end, err);
}

static enum vxd_status check_cloud(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__VolumeIntegratePointsRequest *input =
        (const Voxeld__V1__VolumeIntegratePointsRequest *)request->input;
    struct points_job *job = request->state;
    struct vxd_clouds *clouds = &job->clouds;
    enum vxd_status status;

    if (input->cloud == NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "cloud", "is required");
    }
    if (input->cloud->n_sweeps > 0) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "cloud.sweeps",
                        "has %zu entries; a sweep is a scan of its own here",
                        input->cloud->n_sweeps);
    }
    clouds->clouds = &input->cloud;
    clouds->n_clouds = 1;
    clouds->in_sensor_frame = true;
    status = vxd_clouds_check(request, clouds, err);
    if (status != VXD_OK) {
        vxd_clouds_name_one(err);
        goto out;
    }
    if (clouds->n_points > MAX_POINTS) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "cloud.data",
                         "has %zu points; at most %d are possible", clouds->n_points,
                         MAX_POINTS));
    }
    if (input->labels.len > 0 && input->labels.len != clouds->n_points) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "labels",
                         "has %zu bytes; one for each of %zu points is right",
                         input->labels.len, clouds->n_points));
    }
    if (input->labels.len > 0 && input->label_field[0] != '\0') {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "label_field",
                         "goes not with labels: one of the two has them"));
    }
    job->scan.labels = input->labels.len > 0 ? input->labels.data : NULL;
    status = vxd_volume_read_pose(input->cloud->t_map_sensor, "cloud.T_map_sensor",
                                  &job->scan.T_map_sensor, err);
out:
    return status;
}

/* What odometry needs: the points' times are those of the request. */
static enum vxd_status check_estimate(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__VolumeIntegratePointsRequest *input =
        (const Voxeld__V1__VolumeIntegratePointsRequest *)request->input;
    struct points_job *job = request->state;
    bool has_end = input->time_begin != 0 || input->time_end != 0;

    job->estimates = input->pose == VOXELD__V1__POSE_SOURCE__POSE_ESTIMATE;
    if (!job->estimates) {
        return input->odometry[0] == '\0'
                   ? VXD_OK
                   : vxd_fail(err, VXD_INVALID_ARGUMENT, "odometry",
                              "goes with pose POSE_ESTIMATE");
    }
    if (input->cloud->deskew != NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "cloud.deskew",
                        "goes not with pose POSE_ESTIMATE here; time_field says which "
                        "field has the points' times");
    }
    job->moving = *input->cloud;
    if (input->time_field[0] != '\0') {
        voxeld__v1__deskew__init(&job->deskew);
        job->deskew.time_field = input->time_field;
        job->deskew.start = input->time_begin;
        job->deskew.end = has_end ? input->time_end : 1;
        job->moving.deskew = &job->deskew;
    }
    return vxd_estimate_check(request, &job->moving, &job->estimate, err);
}

/* Points to the channels that the request names. */
static enum vxd_status check_channels(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__VolumeIntegratePointsRequest *input =
        (const Voxeld__V1__VolumeIntegratePointsRequest *)request->input;
    struct points_job *job = request->state;
    struct vxd_clouds *clouds = &job->clouds;
    enum vxd_status status;

    VXD_TRY(check_times(input, job, err));
    if (input->by_angle) {
        job->scan.normal_column = add_channel(clouds, "normal_x", 1, 0);
        (void)add_channel(clouds, "normal_y", 1, 0);
        (void)add_channel(clouds, "normal_z", 1, 0);
    }
    if (input->label_field[0] != '\0') {
        job->scan.label_column = add_channel(clouds, input->label_field, 1, 0);
    }
    job->scan.n_features = clouds->n_channels;
    if (clouds->n_channels > 0) {
        clouds->n_sources = 0;
        clouds->n_fields = 0;
        status = vxd_clouds_check(request, clouds, err);
        if (status != VXD_OK) {
            vxd_clouds_name_one(err);
        }
    }
out:
    return status;
}

enum vxd_status vxd_volume_integrate_points_check(struct vxd_request *request,
                                                  struct vxd_err *err)
{
    const Voxeld__V1__VolumeIntegratePointsRequest *input =
        (const Voxeld__V1__VolumeIntegratePointsRequest *)request->input;
    struct points_job *job;
    struct vxd_volume_scan *scan;
    enum vxd_status status;

    VXD_TRY(vxd_noun_begin_check(request, sizeof *job, input->name, err));
    job = request->state;
    scan = &job->scan;
    scan->time_column = scan->normal_column = scan->label_column = -1;
    scan->range_min_m = input->range_min_m;
    scan->range_max_m = input->range_max_m > 0 ? input->range_max_m : DEFAULT_RANGE_MAX_M;
    scan->carve_m = input->carve_m;
    scan->weight = input->weight;
    scan->weighting =
        input->inverse_square ? VXD_VOLUME_WEIGHT_INV_Z2 : VXD_VOLUME_WEIGHT_CONST;
    scan->by_angle = input->by_angle;
    VXD_TRY(check_cloud(request, err));
    VXD_TRY(check_channels(request, err));
    if (input->lidar != NULL) {
        scan->method = VXD_LIDAR_RANGE_IMAGE;
        scan->image_time = input->image_time;
        VXD_TRY(vxd_volume_read_lidar(input->lidar, VXD_SCAN_MAX_ELEVATION, &scan->lidar,
                                      err));
    }
    scan->n_points = job->clouds.n_points;
    request->n_points = scan->n_points;
    request->cost_bytes = request->body_bytes + scan->n_points * ENGINE_BYTES_A_POINT;
    VXD_TRY(check_estimate(request, err));
    if (job->estimates) {
        request->cost_bytes += scan->n_points * VXD_ESTIMATE_BYTES_A_POINT;
    }
out:
    return status;
}

/* --- on the lane ------------------------------------------------------------------------ */

static enum vxd_status upload(struct vxd_queue *queue, struct points_job *job,
                              struct vxd_volume_scan *scan, struct vxd_err *err)
{
    const void *labels = NULL;
    enum vxd_status status;

    VXD_TRY(vxd_device_alloc(queue, scan->n_points * 3 * sizeof(float), &job->positions,
                             err));
    if (scan->n_features > 0) {
        VXD_TRY(vxd_device_alloc(
            queue, scan->n_points * (size_t)scan->n_features * sizeof(float),
            &job->features, err));
    }
    scan->points = job->positions.ptr;
    scan->features = job->features.ptr;
    if (scan->labels != NULL) {
        VXD_TRY(
            vxd_upload(queue, scan->labels, scan->n_points, &job->labels, &labels, err));
        scan->labels = labels;
    }
    status = vxd_clouds_decode(&job->clouds, queue, job->positions.ptr, job->features.ptr,
                               err);
out:
    return status;
}

/* Has the journal keep the scan: its points and their features in host memory. */
static enum vxd_status keep_scan(struct vxd_queue *queue, struct points_job *job,
                                 const struct vxd_volume_scan *scan, struct vxd_err *err)
{
    struct vxd_volume_record *record = &job->base.commit.entry.record;
    size_t n = scan->n_points;
    const void *points = NULL;
    const void *features = NULL;
    enum vxd_status status = VXD_OK;

    if (!job->base.commit.is_change) {
        return VXD_OK;
    }
    if (n > 0) {
        VXD_TRY(vxd_download(queue, scan->points, n * 3 * sizeof(float),
                             &job->host_positions, &points, err));
    }
    if (n > 0 && scan->n_features > 0) {
        VXD_TRY(vxd_download(queue, scan->features,
                             n * (size_t)scan->n_features * sizeof(float),
                             &job->host_features, &features, err));
    }
    record->kind = VXD_VOLUME_RECORD_SCAN;
    record->scan = *scan;
    record->scan.points = points;
    record->scan.features = features;
    record->scan.labels = job->scan.labels;
out:
    return status;
}

/* Finds the scan's pose, and shows it. */
static enum vxd_status locate(struct vxd_request *request, struct vxd_queue *queue,
                              struct vxd_volume_scan *scan,
                              Voxeld__V1__VolumeIntegratePointsResponse *reply,
                              struct vxd_err *err)
{
    const Voxeld__V1__VolumeIntegratePointsRequest *input =
        (const Voxeld__V1__VolumeIntegratePointsRequest *)request->input;
    struct points_job *job = request->state;
    const struct vxd_volume_pose *pose =
        scan->time_column >= 0 ? &scan->T_map_sensor_end : &scan->T_map_sensor;
    enum vxd_status status = VXD_OK;

    if (job->estimates) {
        VXD_TRY(vxd_estimate_open(request, queue, input->odometry, VXD_ODOMETRY_OF_VOLUME,
                                  input->name, job->base.volume->named.generation,
                                  job->base.volume->named.terms.owner, &job->estimate,
                                  err));
        VXD_TRY(vxd_estimate_run(queue, &job->estimate, err));
        scan->T_map_sensor = job->estimate.T_map_sensor_begin;
        scan->T_map_sensor_end = job->estimate.result.T_map_sensor;
        /* Reasons have the same numbers. */
        reply->status = (Voxeld__V1__VolumeTrackStatus)job->estimate.result.status;
        reply->reason = (Voxeld__V1__VolumeTrackReason)job->estimate.result.reason;
    }
    reply->t_map_sensor = vxd_volume_new_pose(request->decoder, pose, err);
    if (reply->t_map_sensor == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
out:
    return status;
}

enum vxd_status vxd_volume_integrate_points_submit(struct vxd_request *request,
                                                   struct vxd_queue *queue,
                                                   struct vxd_err *err)
{
    const Voxeld__V1__VolumeIntegratePointsRequest *input =
        (const Voxeld__V1__VolumeIntegratePointsRequest *)request->input;
    struct points_job *job = request->state;
    struct vxd_volume_scan scan = job->scan;
    Voxeld__V1__VolumeIntegratePointsResponse *reply = vxd_message_new(
        request->decoder, &voxeld__v1__volume_integrate_points_response__descriptor, err);
    enum vxd_status status;

    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(vxd_volume_open(request, input->name, err));
    VXD_TRY(locate(request, queue, &scan, reply, err));
    request->output = &reply->base;
    if (reply->status == VOXELD__V1__VOLUME_TRACK_STATUS__VOLUME_TRACK_LOST) {
        return VXD_OK;
    }
    if (scan.n_points > 0) {
        VXD_TRY(upload(queue, job, &scan, err));
    }
    VXD_TRY(keep_scan(queue, job, &scan, err));
    VXD_TRY(vxd_volume_scan_within(request, queue, &scan, &job->result, err));
out:
    return status;
}

enum vxd_status vxd_volume_integrate_points_finish(struct vxd_request *request,
                                                   struct vxd_queue *queue,
                                                   struct vxd_err *err)
{
    const struct points_job *job = request->state;
    struct vxd_named_volume *volume = job->base.volume;
    Voxeld__V1__VolumeIntegratePointsResponse *reply =
        (Voxeld__V1__VolumeIntegratePointsResponse *)request->output;
    struct vxd_volume_info info;

    (void)queue;
    (void)err;
    vxd_volume_get_info(volume->state.volume, &info);
    /* Others change nothing. */
    volume->state.n_images +=
        job->scan.n_points > 0 &&
                reply->status == VOXELD__V1__VOLUME_TRACK_STATUS__VOLUME_TRACK_OK
            ? 1
            : 0;
    reply->n_points = job->scan.n_points;
    reply->n_used = job->result.n_used;
    reply->n_beyond = job->result.n_beyond;
    vxd_clouds_count_own(&job->clouds, &reply->n_near, &reply->n_own);
    reply->n_dropped = job->result.n_dropped - reply->n_near - reply->n_own;
    reply->n_touched = job->result.n_touched;
    reply->n_new = job->result.n_new;
    reply->n_carved = job->result.n_carved;
    reply->n_blocks = info.n_blocks;
    reply->stamp = info.version;
    reply->engine_ms = (double)request->engine_ns / 1e6;
    return VXD_OK;
}

void vxd_volume_integrate_points_release(struct vxd_request *request,
                                         struct vxd_queue *queue)
{
    struct points_job *job = request->state;

    vxd_estimate_release(queue, &job->estimate);
    vxd_clouds_free(&job->clouds, queue);
    vxd_host_free(vxd_queue_context(queue), &job->host_features);
    vxd_host_free(vxd_queue_context(queue), &job->host_positions);
    vxd_device_free(queue, &job->labels);
    vxd_device_free(queue, &job->features);
    vxd_device_free(queue, &job->positions);
    vxd_volume_release(request, queue);
}
