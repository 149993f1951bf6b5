// SPDX-License-Identifier: Apache-2.0
/* A scan file as the body of POST /v1/odometry_register: ?name=NAME&format=kitti&stamp_ns=... */
#include "server/service/odometry/service_odometry.h"
#include "server/service/service.h"

struct query {
    struct vxd_decoder *decoder;
    Voxeld__V1__OdometryRegisterRequest *input;
    Voxeld__V1__Pose *prior;
    char *time_field;
    struct vxd_err *err;
};

static enum vxd_status take_prior(void *query, const struct vxd_query_item *item)
{
    struct query *q = query;

    return vxd_volume_query_pose(q->decoder, item, &q->prior, q->err);
}

static enum vxd_status take_time_field(void *query, const struct vxd_query_item *item)
{
    struct query *q = query;

    return vxd_query_text(q->decoder, item, &q->time_field, q->err);
}

static const struct vxd_query_field fields[] = {{"name", "name"}};

static const struct vxd_query_key keys[] = {
    {"prior", take_prior},
    {"time_field", take_time_field},
};

enum vxd_status vxd_odometry_register_from_file(struct vxd_request *request,
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

    q.input = vxd_message_new(request->decoder,
                              &voxeld__v1__odometry_register_request__descriptor, err);
    if (q.input == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    all.message = &q.input->base;
    VXD_TRY(vxd_cloud_from_body(request, body, &all, &clouds, err));
    q.input->cloud = clouds[0];
    q.input->cloud->t_map_sensor = q.prior;
    if (q.time_field != NULL) {
        q.input->cloud->deskew =
            vxd_message_new(request->decoder, &voxeld__v1__deskew__descriptor, err);
        if (q.input->cloud->deskew == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
        q.input->cloud->deskew->time_field = q.time_field;
    }
    request->input = &q.input->base;
out:
    return status;
}
