// SPDX-License-Identifier: Apache-2.0
/* A scan file as the body of POST /v1/volume_integrate_points: ?name=NAME&format=kitti&pose=... */
#include "server/service/clouds/clouds.h"
#include "server/service/service.h"
#include "server/service/volume/volume_service.h"

struct query {
    struct vxd_decoder *decoder;
    Voxeld__V1__VolumeIntegratePointsRequest *input;
    Voxeld__V1__Pose *pose;
    struct vxd_err *err;
};

static enum vxd_status take_number(struct query *q, const struct vxd_query_item *item,
                                   double *out)
{
    return vxd_query_numbers(item->value, out, 1) == 1
               ? VXD_OK
               : vxd_query_fail(q->err, item, "a number");
}

static enum vxd_status take_truth(struct query *q, const struct vxd_query_item *item,
                                  protobuf_c_boolean *out)
{
    *out = strcmp(item->value, "true") == 0;
    return *out || strcmp(item->value, "false") == 0
               ? VXD_OK
               : vxd_query_fail(q->err, item, "true or false");
}

static enum vxd_status need_lidar(struct query *q)
{
    if (q->input->lidar == NULL) {
        q->input->lidar =
            vxd_message_new(q->decoder, &voxeld__v1__volume_lidar__descriptor, q->err);
    }
    return q->input->lidar != NULL ? VXD_OK : VXD_RESOURCE_EXHAUSTED;
}

static enum vxd_status take_name(void *query, const struct vxd_query_item *item)
{
    struct query *q = query;

    return vxd_query_text(q->decoder, item, &q->input->name, q->err);
}

static enum vxd_status take_pose(void *query, const struct vxd_query_item *item)
{
    struct query *q = query;

    if (strcmp(item->value, "estimate") == 0) {
        q->input->pose = VOXELD__V1__POSE_SOURCE__POSE_ESTIMATE;
        return VXD_OK;
    }
    return vxd_volume_query_pose(q->decoder, item, &q->pose, q->err);
}

static enum vxd_status take_odometry(void *query, const struct vxd_query_item *item)
{
    struct query *q = query;

    return vxd_query_text(q->decoder, item, &q->input->odometry, q->err);
}

static enum vxd_status take_end_pose(void *query, const struct vxd_query_item *item)
{
    struct query *q = query;

    return vxd_volume_query_pose(q->decoder, item, &q->input->t_map_sensor_end, q->err);
}

static enum vxd_status take_time_field(void *query, const struct vxd_query_item *item)
{
    struct query *q = query;

    return vxd_query_text(q->decoder, item, &q->input->time_field, q->err);
}

static enum vxd_status take_label_field(void *query, const struct vxd_query_item *item)
{
    struct query *q = query;

    return vxd_query_text(q->decoder, item, &q->input->label_field, q->err);
}

static enum vxd_status take_time_begin(void *query, const struct vxd_query_item *item)
{
    struct query *q = query;

    return take_number(q, item, &q->input->time_begin);
}

static enum vxd_status take_time_end(void *query, const struct vxd_query_item *item)
{
    struct query *q = query;

    return take_number(q, item, &q->input->time_end);
}

static enum vxd_status take_lidar(void *query, const struct vxd_query_item *item)
{
    struct query *q = query;
    double v[4];

    if (vxd_query_numbers(item->value, v, 4) != 4 || !(v[0] >= 2 && v[0] <= 1024) ||
        !(v[1] >= 1 && v[1] <= 16384)) {
        return vxd_query_fail(q->err, item,
                              "rows,columns,top,bottom: 2 to 1024, 1 to 16384, and the "
                              "elevations of the first and last row in degrees");
    }
    if (need_lidar(q) != VXD_OK) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    q->input->lidar->rows = (uint32_t)v[0];
    q->input->lidar->columns = (uint32_t)v[1];
    q->input->lidar->top_deg = v[2];
    q->input->lidar->bottom_deg = v[3];
    return VXD_OK;
}

static enum vxd_status take_azimuth(void *query, const struct vxd_query_item *item)
{
    struct query *q = query;
    double v[2];

    if (vxd_query_numbers(item->value, v, 2) != 2) {
        return vxd_query_fail(q->err, item, "begin,span in degrees");
    }
    if (need_lidar(q) != VXD_OK) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    q->input->lidar->azimuth_begin_deg = v[0];
    q->input->lidar->azimuth_span_deg = v[1];
    return VXD_OK;
}

static enum vxd_status take_range_min(void *query, const struct vxd_query_item *item)
{
    struct query *q = query;

    return take_number(q, item, &q->input->range_min_m);
}

static enum vxd_status take_range_max(void *query, const struct vxd_query_item *item)
{
    struct query *q = query;

    return take_number(q, item, &q->input->range_max_m);
}

static enum vxd_status take_carve(void *query, const struct vxd_query_item *item)
{
    struct query *q = query;

    return take_number(q, item, &q->input->carve_m);
}

static enum vxd_status take_weight(void *query, const struct vxd_query_item *item)
{
    struct query *q = query;

    return take_number(q, item, &q->input->weight);
}

static enum vxd_status take_inverse_square(void *query, const struct vxd_query_item *item)
{
    struct query *q = query;

    return take_truth(q, item, &q->input->inverse_square);
}

static enum vxd_status take_by_angle(void *query, const struct vxd_query_item *item)
{
    struct query *q = query;

    return take_truth(q, item, &q->input->by_angle);
}

static const struct vxd_query_key keys[] = {
    {"name", take_name},
    {"pose", take_pose},
    {"end_pose", take_end_pose},
    {"time_field", take_time_field},
    {"time_begin", take_time_begin},
    {"time_end", take_time_end},
    {"lidar", take_lidar},
    {"azimuth", take_azimuth},
    {"range_min", take_range_min},
    {"range_max", take_range_max},
    {"carve", take_carve},
    {"weight", take_weight},
    {"inverse_square", take_inverse_square},
    {"by_angle", take_by_angle},
    {"label_field", take_label_field},
    {"odometry", take_odometry},
};

enum vxd_status vxd_volume_integrate_points_from_file(struct vxd_request *request,
                                                      const struct vxd_body *body,
                                                      struct vxd_err *err)
{
    struct query q = {.decoder = request->decoder, .err = err};
    const struct vxd_query_keys all = {keys, sizeof keys / sizeof keys[0], &q};
    Voxeld__V1__Cloud **clouds = NULL;
    enum vxd_status status;

    q.input = vxd_message_new(
        request->decoder, &voxeld__v1__volume_integrate_points_request__descriptor, err);
    if (q.input == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(vxd_cloud_from_body(request, body, &all, &clouds, err));
    q.input->cloud = clouds[0];
    q.input->cloud->t_map_sensor = q.pose;
    request->input = &q.input->base;
out:
    return status;
}
