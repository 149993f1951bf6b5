// SPDX-License-Identifier: Apache-2.0
/* Clouds of requests. Nothing that may be large is copied: the message points to the caller's points
 * and strings, and is packed from there into the socket's buffer. The server checks the request; this
 * file checks only what the server cannot see. */
#include <inttypes.h>
#include <stdarg.h>

#include "client/c/call/exchange.h"

enum {
    MAX_CLOUDS = 1024,
    /* This is far above any record of 65535 bytes, and keeps loops from running over
     * garbage counts. */
    MAX_FIELDS = 65535,
    MAX_SWEEPS = 65535,
    MAX_BOXES = 32,
    PATH_BYTES = 96
};

static enum vxd_status fields(struct vxd_exchange *call, const char *path,
                              const struct voxeld_field *in, size_t n,
                              Voxeld__V1__Field ***out)
{
    Voxeld__V1__Field **list;
    Voxeld__V1__Field *all;

    if (n > MAX_FIELDS || (n > 0 && in == NULL)) {
        return vxd_fail(&call->err, VXD_INVALID_ARGUMENT, path, "%zu fields at %p", n,
                        (const void *)in);
    }
    list = vxd_exchange_alloc(call, n, sizeof(Voxeld__V1__Field *));
    all = vxd_exchange_alloc(call, n, sizeof *all);
    if (list == NULL || all == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (size_t i = 0; i < n; i++) {
        voxeld__v1__field__init(&all[i]);
        all[i].name = vxd_text_or_empty(in[i].name);
        all[i].offset = in[i].offset;
        all[i].dtype = (Voxeld__V1__DType)in[i].dtype;
        all[i].scale = in[i].scale;
        all[i].bias = in[i].bias;
        all[i].count = in[i].count;
        list[i] = &all[i];
    }
    *out = list;
    return VXD_OK;
}

static enum vxd_status points(struct vxd_exchange *call, const char *path,
                              const void *data, size_t n_points, uint32_t point_step,
                              ProtobufCBinaryData *out)
{
    if (!vxd_size_mul(n_points, point_step, &out->len)) {
        return vxd_fail(&call->err, VXD_INVALID_ARGUMENT, path,
                        "%zu points of %" PRIu32 " bytes are more than memory can hold",
                        n_points, point_step);
    }
    if (n_points > 0 && (data == NULL || point_step == 0)) {
        return vxd_fail(&call->err, VXD_INVALID_ARGUMENT, path,
                        "%zu points, but data is NULL or point_step 0", n_points);
    }
    out->data = (uint8_t *)(uintptr_t)data;
    return VXD_OK;
}

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static const char *
path_to(char *path, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(path, PATH_BYTES, format, args);
    va_end(args);
    return path;
}

static enum vxd_status sweep(struct vxd_exchange *call, size_t cloud, size_t i,
                             const struct voxeld_sweep *in, uint32_t cloud_step,
                             Voxeld__V1__Sweep *out)
{
    char path[PATH_BYTES];
    /* A sweep without a layout of its own has the cloud's records. */
    uint32_t step =
        in->n_fields == 0 && in->point_step == 0 ? cloud_step : in->point_step;
    enum vxd_status status;

    voxeld__v1__sweep__init(out);
    VXD_TRY(fields(call, path_to(path, "clouds[%zu].sweeps[%zu].fields", cloud, i),
                   in->fields, in->n_fields, &out->fields));
    out->n_fields = in->n_fields;
    out->point_step = in->point_step;
    VXD_TRY(points(call, path_to(path, "clouds[%zu].sweeps[%zu].data", cloud, i),
                   in->data, in->n_points, step, &out->data));
    out->dt_s = in->dt_s;
    VXD_TRY(vxd_exchange_pose(call, &in->T_cloud_sweep, &out->t_cloud_sweep));
out:
    return status;
}

static enum vxd_status sweeps(struct vxd_exchange *call, size_t cloud,
                              const struct voxeld_cloud *in, Voxeld__V1__Cloud *out)
{
    char path[PATH_BYTES];
    Voxeld__V1__Sweep *all;
    enum vxd_status status = VXD_OK;

    if (in->n_sweeps > MAX_SWEEPS || (in->n_sweeps > 0 && in->sweeps == NULL)) {
        return vxd_fail(&call->err, VXD_INVALID_ARGUMENT,
                        path_to(path, "clouds[%zu].sweeps", cloud), "%zu sweeps at %p",
                        in->n_sweeps, (const void *)in->sweeps);
    }
    out->sweeps = vxd_exchange_alloc(call, in->n_sweeps, sizeof(Voxeld__V1__Sweep *));
    all = vxd_exchange_alloc(call, in->n_sweeps, sizeof *all);
    if (out->sweeps == NULL || all == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (size_t i = 0; i < in->n_sweeps; i++) {
        VXD_TRY(sweep(call, cloud, i, &in->sweeps[i], in->point_step, &all[i]));
        out->sweeps[i] = &all[i];
    }
    out->n_sweeps = in->n_sweeps;
out:
    return status;
}

static enum vxd_status deskew(struct vxd_exchange *call, const struct voxeld_deskew *in,
                              Voxeld__V1__Deskew **out)
{
    Voxeld__V1__Deskew *made;

    if (in == NULL) {
        return VXD_OK;
    }
    made = vxd_exchange_alloc(call, 1, sizeof *made);
    if (made == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    voxeld__v1__deskew__init(made);
    made->time_field = vxd_text_or_empty(in->time_field);
    made->start = in->start;
    made->end = in->end;
    *out = made;
    return vxd_exchange_pose(call, &in->T_map_sensor_end, &made->t_map_sensor_end);
}

static enum vxd_status corner(struct vxd_exchange *call, const double in[3],
                              Voxeld__V1__Vec3 **out)
{
    Voxeld__V1__Vec3 *made = vxd_exchange_alloc(call, 1, sizeof *made);

    if (made == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    voxeld__v1__vec3__init(made);
    made->x = in[0];
    made->y = in[1];
    made->z = in[2];
    *out = made;
    return VXD_OK;
}

static enum vxd_status body_boxes(struct vxd_exchange *call, const char *path,
                                  const struct voxeld_body *in,
                                  Voxeld__V1__RobotBody *out)
{
    Voxeld__V1__BodyBox *all;
    enum vxd_status status = VXD_OK;

    if (in->n_boxes > MAX_BOXES || (in->n_boxes > 0 && in->boxes == NULL)) {
        return vxd_fail(&call->err, VXD_INVALID_ARGUMENT, path,
                        "%zu boxes at %p; at most %d are possible", in->n_boxes,
                        (const void *)in->boxes, MAX_BOXES);
    }
    out->boxes = vxd_exchange_alloc(call, in->n_boxes, sizeof(Voxeld__V1__BodyBox *));
    all = vxd_exchange_alloc(call, in->n_boxes, sizeof *all);
    if (out->boxes == NULL || all == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (size_t i = 0; i < in->n_boxes; i++) {
        voxeld__v1__body_box__init(&all[i]);
        VXD_TRY(corner(call, in->boxes[i].low, &all[i].low));
        VXD_TRY(corner(call, in->boxes[i].high, &all[i].high));
        out->boxes[i] = &all[i];
    }
    out->n_boxes = in->n_boxes;
out:
    return status;
}

static enum vxd_status body(struct vxd_exchange *call, size_t cloud,
                            const struct voxeld_body *in, Voxeld__V1__RobotBody **out)
{
    char path[PATH_BYTES];
    Voxeld__V1__RobotBody *made;
    enum vxd_status status;

    if (in == NULL) {
        return VXD_OK;
    }
    made = vxd_exchange_alloc(call, 1, sizeof *made);
    if (made == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    voxeld__v1__robot_body__init(made);
    made->min_range_m = in->min_range_m;
    VXD_TRY(body_boxes(call, path_to(path, "clouds[%zu].body.boxes", cloud), in, made));
    *out = made;
    status = vxd_exchange_pose(call, &in->T_base_sensor, &made->t_base_sensor);
out:
    return status;
}

static enum vxd_status cloud(struct vxd_exchange *call, size_t i,
                             const struct voxeld_cloud *in, Voxeld__V1__Cloud *out)
{
    char path[PATH_BYTES];
    enum vxd_status status;

    voxeld__v1__cloud__init(out);
    VXD_TRY(fields(call, path_to(path, "clouds[%zu].fields", i), in->fields, in->n_fields,
                   &out->fields));
    out->n_fields = in->n_fields;
    out->point_step = in->point_step;
    VXD_TRY(points(call, path_to(path, "clouds[%zu].data", i), in->data, in->n_points,
                   in->point_step, &out->data));
    out->stamp_ns = in->stamp_ns;
    out->frame_id = vxd_text_or_empty(in->frame_id);
    VXD_TRY(vxd_exchange_pose(call, &in->T_map_sensor, &out->t_map_sensor));
    VXD_TRY(sweeps(call, i, in, out));
    VXD_TRY(deskew(call, in->deskew, &out->deskew));
    VXD_TRY(body(call, i, in->body, &out->body));
out:
    return status;
}

enum vxd_status vxd_exchange_clouds(struct vxd_exchange *call,
                                    const struct voxeld_cloud *in, size_t n,
                                    Voxeld__V1__Cloud ***out)
{
    Voxeld__V1__Cloud *all;
    enum vxd_status status = VXD_OK;

    if (in == NULL || n == 0 || n > MAX_CLOUDS) {
        return vxd_fail(&call->err, VXD_INVALID_ARGUMENT, "clouds",
                        "%zu clouds at %p; 1 to %d are allowed", n, (const void *)in,
                        MAX_CLOUDS);
    }
    *out = vxd_exchange_alloc(call, n, sizeof(Voxeld__V1__Cloud *));
    all = vxd_exchange_alloc(call, n, sizeof *all);
    if (*out == NULL || all == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (size_t i = 0; i < n; i++) {
        VXD_TRY(cloud(call, i, &in[i], &all[i]));
        (*out)[i] = &all[i];
    }
out:
    return status;
}
