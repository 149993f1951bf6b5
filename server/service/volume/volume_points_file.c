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

static enum vxd_status need_lidar(struct query *q)
{
    if (q->input->lidar == NULL) {
        q->input->lidar =
            vxd_message_new(q->decoder, &voxeld__v1__volume_lidar__descriptor, q->err);
    }
    return q->input->lidar != NULL ? VXD_OK : VXD_RESOURCE_EXHAUSTED;
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

static const struct vxd_query_key keys[] = {
    {"pose", take_pose},
    {"lidar", take_lidar},
    {"azimuth", take_azimuth},
};

static const struct vxd_query_field fields[] = {
    {"name", "name"},
    {"end_pose", "T_map_sensor_end"},
    {"time_field", "time_field"},
    {"time_begin", "time_begin"},
    {"time_end", "time_end"},
    {"range_min", "range_min_m"},
    {"range_max", "range_max_m"},
    {"carve", "carve_m"},
    {"weight", "weight"},
    {"inverse_square", "inverse_square"},
    {"by_angle", "by_angle"},
    {"label_field", "label_field"},
    {"odometry", "odometry"},
};

enum vxd_status vxd_volume_integrate_points_from_file(struct vxd_request *request,
                                                      const struct vxd_body *body,
                                                      struct vxd_err *err)
{
    struct query q = {.decoder = request->decoder, .err = err};
    struct vxd_query_keys all = {.keys = keys,
                                 .n_keys = sizeof keys / sizeof keys[0],
                                 .query = &q,
                                 .fields = fields,
                                 .n_fields = sizeof fields / sizeof fields[0]};
    Voxeld__V1__Cloud **clouds = NULL;
    enum vxd_status status;

    q.input = vxd_message_new(
        request->decoder, &voxeld__v1__volume_integrate_points_request__descriptor, err);
    if (q.input == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    all.message = &q.input->base;
    VXD_TRY(vxd_cloud_from_body(request, body, &all, &clouds, err));
    q.input->cloud = clouds[0];
    q.input->cloud->t_map_sensor = q.pose;
    request->input = &q.input->base;
out:
    return status;
}
