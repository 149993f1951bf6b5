// SPDX-License-Identifier: Apache-2.0
/* Converts the schema's clouds to the engine's: layouts, poses, channels. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "server/service/clouds/clouds.h"
#include "server/service/existing/existing.h"

enum {
    PATH_BYTES = 64,
    MAX_POINT_STEP = 65535,
    MAX_FRAME_BYTES = 255
};

#define NORM_TOLERANCE 1e-3

/* A layout: the cloud's own, or the sweep's where it has one. */
struct layout {
    Voxeld__V1__Field *const *fields;
    size_t n_fields;
    uint32_t point_step;
    char path[PATH_BYTES]; /* "clouds[0]" or "clouds[0].sweeps[1]" */
};

static void source_path(const struct vxd_source *source, char path[PATH_BYTES])
{
    if (source->is_sweep) {
        (void)snprintf(path, PATH_BYTES, "clouds[%zu].sweeps[%zu]", source->cloud,
                       source->sweep);
    } else {
        (void)snprintf(path, PATH_BYTES, "clouds[%zu]", source->cloud);
    }
}

/* Calls vxd_fail with a field built from the source's path and a member of it. */
#if defined(__GNUC__)
__attribute__((format(printf, 4, 5)))
#endif
static enum vxd_status
fail_at(struct vxd_err *err, const char *path, const char *member, const char *format,
        ...)
{
    char field[sizeof err->field];
    char message[sizeof err->message];
    va_list args;

    (void)snprintf(field, sizeof field, "%s.%s", path, member);
    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return vxd_fail(err, VXD_INVALID_ARGUMENT, field, "%s", message);
}

static enum vxd_status check_field(const struct layout *layout, size_t i,
                                   struct vxd_err *err)
{
    const Voxeld__V1__Field *field = layout->fields[i];
    size_t n_name = strlen(field->name);
    size_t n_bytes = vxd_dtype_bytes((enum vxd_dtype)field->dtype);
    uint64_t count = field->count > 0 ? field->count : 1;
    uint64_t end = field->offset + count * n_bytes; /* below 2^36 */
    char member[48];

    if (n_name < 1 || n_name >= VXD_FEATURE_NAME_BYTES) {
        (void)snprintf(member, sizeof member, "fields[%zu].name", i);
        return fail_at(err, layout->path, member, "has %zu bytes, it must have 1 to %d",
                       n_name, VXD_FEATURE_NAME_BYTES - 1);
    }
    if (n_bytes == 0) {
        (void)snprintf(member, sizeof member, "fields[%zu].dtype", i);
        return fail_at(err, layout->path, member,
                       "is %d, known are 1 to 12: INT8, UINT8, INT16, UINT16, INT32, "
                       "UINT32, FLOAT32, FLOAT64, INT64, UINT64, FLOAT16, BFLOAT16",
                       (int)field->dtype);
    }
    if (end > layout->point_step) {
        (void)snprintf(member, sizeof member, "fields[%zu].offset", i);
        return fail_at(err, layout->path, member,
                       "is %u: \"%s\" would end at byte %" PRIu64 ", point_step is %u",
                       field->offset, field->name, end, layout->point_step);
    }
    if (!isfinite(field->scale) || !isfinite(field->bias)) {
        (void)snprintf(member, sizeof member, "fields[%zu].%s", i,
                       isfinite(field->scale) ? "bias" : "scale");
        return fail_at(err, layout->path, member, "is not finite");
    }
    for (size_t k = 0; k < i; k++) {
        if (strcmp(layout->fields[k]->name, field->name) == 0) {
            (void)snprintf(member, sizeof member, "fields[%zu].name", i);
            return fail_at(err, layout->path, member,
                           "\"%s\" is also the name of fields[%zu]", field->name, k);
        }
    }
    return VXD_OK;
}

static enum vxd_status check_layout(const struct layout *layout, struct vxd_err *err)
{
    if (layout->point_step < 1 || layout->point_step > MAX_POINT_STEP) {
        return fail_at(err, layout->path, "point_step", "is %u, it must be 1 to %d",
                       layout->point_step, MAX_POINT_STEP);
    }
    if (layout->n_fields > VXD_CLOUDS_MAX_FIELDS) {
        return fail_at(err, layout->path, "fields",
                       "has %zu entries, at most %d are allowed", layout->n_fields,
                       VXD_CLOUDS_MAX_FIELDS);
    }
    for (size_t i = 0; i < layout->n_fields; i++) {
        enum vxd_status status = check_field(layout, i, err);

        if (status != VXD_OK) {
            return status;
        }
    }
    return VXD_OK;
}

static const Voxeld__V1__Field *find_field(const struct layout *layout, const char *name)
{
    for (size_t i = 0; i < layout->n_fields; i++) {
        if (strcmp(layout->fields[i]->name, name) == 0) {
            return layout->fields[i];
        }
    }
    return NULL;
}

static struct vxd_field engine_field(const Voxeld__V1__Field *field)
{
    return (struct vxd_field){
        .offset = field->offset,
        .dtype = (enum vxd_dtype)field->dtype,
        .scale = field->scale == 0 ? 1 : field->scale,
        .bias = field->bias,
    };
}

static enum vxd_status bind_position(const struct layout *layout, struct vxd_cloud *out,
                                     struct vxd_err *err)
{
    static const char *const axes[3] = {"x", "y", "z"};

    for (int i = 0; i < 3; i++) {
        const Voxeld__V1__Field *field = find_field(layout, axes[i]);

        if (field == NULL || field->count > 1) {
            return fail_at(err, layout->path, "fields", "%s field \"%s\"",
                           field == NULL ? "there is no"
                                         : "there must be one element in the",
                           axes[i]);
        }
        out->position[i] = engine_field(field);
    }
    return VXD_OK;
}

int vxd_axis_of(const char *name)
{
    return name[0] >= 'x' && name[0] <= 'z' && name[1] == '\0' ? name[0] - 'x' : -1;
}

static enum vxd_status fail_channel(const struct vxd_clouds *clouds, int channel,
                                    const struct layout *layout, bool is_there,
                                    struct vxd_err *err)
{
    const char *name = clouds->channels[channel].name;
    struct vxd_missing missing = {.closest.word = name};
    char text[160] = "";
    char path[PATH_BYTES];

    if (!is_there) {
        for (size_t i = 0; i < layout->n_fields; i++) {
            vxd_missing_offer(&missing, layout->fields[i]->name);
        }
        (void)vxd_missing_text(&missing, "fields", text, sizeof text);
    }
    if (clouds->channels_field == NULL) {
        return fail_at(err, layout->path, "fields",
                       is_there ? "there must be one element in the field \"%s\"%s"
                                : "there is no field \"%s\", which the network reads%s",
                       name, text);
    }
    (void)snprintf(path, sizeof path, "%s[%d]", clouds->channels_field, channel);
    return vxd_fail(err, VXD_INVALID_ARGUMENT, path,
                    is_there ? "%s has more than one element in \"%s\"%s"
                             : "%s has no field \"%s\"%s",
                    layout->path, name, text);
}

static enum vxd_status bind_channel(const struct vxd_clouds *clouds, int index,
                                    const struct layout *layout, double dt_s,
                                    struct vxd_channel *out, struct vxd_err *err)
{
    const struct vxd_cloud_channel *channel = &clouds->channels[index];
    double scale = channel->scale == 0 ? 1 : channel->scale;
    const Voxeld__V1__Field *field;

    memset(out, 0, sizeof *out);
    out->kind = VXD_CHANNEL_CONSTANT;
    out->constant = channel->constant;
    if (channel->is_constant) {
        return VXD_OK;
    }
    if (vxd_axis_of(channel->name) >= 0) {
        out->kind = VXD_CHANNEL_POSITION;
        out->component = vxd_axis_of(channel->name);
        out->field.scale = channel->scale;
        out->field.bias = channel->bias;
        return VXD_OK;
    }
    if (strcmp(channel->name, "dt") == 0) {
        out->constant = (float)(dt_s * scale + channel->bias);
        return VXD_OK;
    }
    field = find_field(layout, channel->name);
    if (field == NULL || field->count > 1) {
        return fail_channel(clouds, index, layout, field != NULL, err);
    }
    out->kind = VXD_CHANNEL_FIELD;
    out->field = engine_field(field);
    /* The channel's scale and bias apply after the field's own. */
    out->field.scale *= scale;
    out->field.bias = out->field.bias * scale + channel->bias;
    return VXD_OK;
}

static enum vxd_status bind_channels(const struct vxd_clouds *clouds,
                                     const struct layout *layout, double dt_s,
                                     struct vxd_cloud *out, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    out->n_channels = clouds->n_channels;
    for (int i = 0; i < clouds->n_channels && status == VXD_OK; i++) {
        status = bind_channel(clouds, i, layout, dt_s, &out->channels[i], err);
    }
    return status;
}

static enum vxd_status read_vector(const Voxeld__V1__Vec3 *v, const char *path,
                                   const char *member, double out[3], struct vxd_err *err)
{
    if (v == NULL) {
        return VXD_OK;
    }
    if (!isfinite(v->x) || !isfinite(v->y) || !isfinite(v->z)) {
        return fail_at(err, path, member, "(%g, %g, %g) is not finite", v->x, v->y, v->z);
    }
    out[0] = v->x;
    out[1] = v->y;
    out[2] = v->z;
    return VXD_OK;
}

/* Computes the unit quaternion's matrix, row-major; q is normalised already. */
static void quaternion_matrix(double x, double y, double z, double w, double out[9])
{
    out[0] = 1 - 2 * (y * y + z * z);
    out[1] = 2 * (x * y - z * w);
    out[2] = 2 * (x * z + y * w);
    out[3] = 2 * (x * y + z * w);
    out[4] = 1 - 2 * (x * x + z * z);
    out[5] = 2 * (y * z - x * w);
    out[6] = 2 * (x * z - y * w);
    out[7] = 2 * (y * z + x * w);
    out[8] = 1 - 2 * (x * x + y * y);
}

struct pose {
    double quaternion[4]; /* x, y, z, w; of poses that were read */
    double rotation[9];
    double translation[3];
};

static const struct pose identity = {
    {0, 0, 0, 1}, {1, 0, 0, 0, 1, 0, 0, 0, 1}, {0, 0, 0}};

static enum vxd_status read_pose(const Voxeld__V1__Pose *message, const char *path,
                                 const char *member, struct pose *out,
                                 struct vxd_err *err)
{
    const Voxeld__V1__Quaternion *q = message != NULL ? message->rotation : NULL;
    char field[48];
    double norm;

    *out = identity;
    if (message == NULL) {
        return VXD_OK;
    }
    (void)snprintf(field, sizeof field, "%s.translation", member);
    if (read_vector(message->translation, path, field, out->translation, err) != VXD_OK) {
        return VXD_INVALID_ARGUMENT;
    }
    if (q == NULL || (q->x == 0 && q->y == 0 && q->z == 0 && q->w == 0)) {
        return VXD_OK;
    }
    norm = sqrt(q->x * q->x + q->y * q->y + q->z * q->z + q->w * q->w);
    if (!(fabs(norm - 1) <= NORM_TOLERANCE)) {
        (void)snprintf(field, sizeof field, "%s.rotation", member);
        return fail_at(err, path, field,
                       "(%g, %g, %g, %g) has norm %g, it must be within %g of 1", q->x,
                       q->y, q->z, q->w, norm, NORM_TOLERANCE);
    }
    out->quaternion[0] = q->x / norm;
    out->quaternion[1] = q->y / norm;
    out->quaternion[2] = q->z / norm;
    out->quaternion[3] = q->w / norm;
    quaternion_matrix(out->quaternion[0], out->quaternion[1], out->quaternion[2],
                      out->quaternion[3], out->rotation);
    return VXD_OK;
}

/* Composes two poses: first inner, then outer. */
static struct pose compose(const struct pose *outer, const struct pose *inner)
{
    struct pose out = identity;

    for (size_t i = 0; i < 3; i++) {
        const double *row = outer->rotation + 3 * i;

        for (size_t j = 0; j < 3; j++) {
            out.rotation[3 * i + j] = row[0] * inner->rotation[j] +
                                      row[1] * inner->rotation[3 + j] +
                                      row[2] * inner->rotation[6 + j];
        }
        out.translation[i] = row[0] * inner->translation[0] +
                             row[1] * inner->translation[1] +
                             row[2] * inner->translation[2] + outer->translation[i];
    }
    return out;
}

static enum vxd_status bind_pose(const struct vxd_clouds *clouds,
                                 const struct vxd_source *source, const char *path,
                                 struct vxd_cloud *out, struct vxd_err *err)
{
    const Voxeld__V1__Cloud *cloud = clouds->clouds[source->cloud];
    double unit_m = clouds->unit_m != 0 ? clouds->unit_m : 1;
    struct pose sensor;
    struct pose sweep = identity;
    char cloud_path[PATH_BYTES];
    enum vxd_status status;

    (void)snprintf(cloud_path, sizeof cloud_path, "clouds[%zu]", source->cloud);
    VXD_TRY(read_pose(cloud->t_map_sensor, cloud_path, "T_map_sensor", &sensor, err));
    if (clouds->in_sensor_frame) {
        sensor = identity;
    }
    if (source->is_sweep) {
        VXD_TRY(read_pose(cloud->sweeps[source->sweep]->t_cloud_sweep, path,
                          "T_cloud_sweep", &sweep, err));
        sensor = compose(&sensor, &sweep);
    }
    for (int i = 0; i < 9; i++) {
        out->rotation[i] = sensor.rotation[i] / unit_m;
    }
    for (int i = 0; i < 3; i++) {
        out->translation[i] = sensor.translation[i];
        out->translation[i] -= clouds->in_sensor_frame ? 0 : clouds->origin[i];
        out->translation[i] /= unit_m;
        if (!isfinite(out->translation[i])) {
            return fail_at(err, path, source->is_sweep ? "T_cloud_sweep" : "T_map_sensor",
                           "minus the origin is not finite");
        }
    }
out:
    return status;
}

/* `to` as seen from `from`: the pose of a moving sensor in its own frame at the begin. */
static struct pose relative(const struct pose *from, const struct pose *to)
{
    const double *a = from->quaternion;
    const double *b = to->quaternion;
    const double t[3] = {to->translation[0] - from->translation[0],
                         to->translation[1] - from->translation[1],
                         to->translation[2] - from->translation[2]};
    struct pose out = identity;

    for (size_t i = 0; i < 3; i++) {
        size_t j = (i + 1) % 3;
        size_t k = (i + 2) % 3;

        out.quaternion[i] = a[3] * b[i] - a[i] * b[3] - a[j] * b[k] + a[k] * b[j];
        out.translation[i] = from->rotation[i] * t[0] + from->rotation[3 + i] * t[1] +
                             from->rotation[6 + i] * t[2];
    }
    out.quaternion[3] = a[3] * b[3] + a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
    return out;
}

/* Makes the field of times such that the scan's begin is 0 and its end 1. */
static enum vxd_status bind_time(const struct layout *layout,
                                 const Voxeld__V1__Deskew *deskew,
                                 const struct vxd_cloud *cloud, struct vxd_field *out,
                                 struct vxd_err *err)
{
    const char *name = deskew->time_field[0] != '\0' ? deskew->time_field : "t";
    const Voxeld__V1__Field *field = find_field(layout, name);
    double start = deskew->start;
    double end = deskew->end;

    if (field == NULL || field->count > 1) {
        return fail_at(err, layout->path, "deskew.time_field",
                       field == NULL ? "\"%s\" is no field of the cloud"
                                     : "\"%s\" has more than one element",
                       name);
    }
    *out = engine_field(field);
    if (start == 0 && end == 0) {
        vxd_cloud_field_range(cloud, out, &start, &end);
    } else if (!(start < end) || !isfinite(start) || !isfinite(end)) {
        return fail_at(err, layout->path, "deskew.end",
                       "is %g, it must be above the start, %g, and both finite", end,
                       start);
    }
    /* All at one time: the pose is that of the begin. */
    out->bias = end > start ? (out->bias - start) / (end - start) : 0;
    out->scale = end > start ? out->scale / (end - start) : 0;
    return VXD_OK;
}

static enum vxd_status bind_motion(const struct vxd_clouds *clouds,
                                   const struct vxd_source *source,
                                   const struct layout *layout, struct vxd_cloud *out,
                                   struct vxd_err *err)
{
    const Voxeld__V1__Cloud *cloud = clouds->clouds[source->cloud];
    double unit_m = clouds->unit_m != 0 ? clouds->unit_m : 1;
    struct vxd_field time;
    struct pose begin;
    struct pose end;
    enum vxd_status status;

    if (cloud->deskew == NULL) {
        return VXD_OK;
    }
    if (cloud->n_sweeps > 0) {
        return fail_at(err, layout->path, "deskew", "goes without sweeps");
    }
    VXD_TRY(bind_time(layout, cloud->deskew, out, &time, err));
    VXD_TRY(read_pose(cloud->t_map_sensor, layout->path, "T_map_sensor", &begin, err));
    VXD_TRY(read_pose(cloud->deskew->t_map_sensor_end, layout->path,
                      "deskew.T_map_sensor_end", &end, err));
    if (clouds->in_sensor_frame) {
        end = relative(&begin, &end);
        begin = identity;
    }
    for (int i = 0; i < 3; i++) {
        end.translation[i] -= clouds->in_sensor_frame ? 0 : clouds->origin[i];
        end.translation[i] /= unit_m;
        if (!isfinite(end.translation[i])) {
            return fail_at(err, layout->path, "deskew.T_map_sensor_end",
                           "minus the origin is not finite");
        }
    }
    vxd_cloud_set_motion(out, &time, begin.quaternion, end.quaternion, 1 / unit_m,
                         end.translation);
out:
    return status;
}

enum vxd_status vxd_source_build(const struct vxd_clouds *clouds,
                                 const struct vxd_source *source, struct vxd_cloud *out,
                                 struct vxd_err *err)
{
    const Voxeld__V1__Cloud *cloud = clouds->clouds[source->cloud];
    const Voxeld__V1__Sweep *sweep =
        source->is_sweep ? cloud->sweeps[source->sweep] : NULL;
    const ProtobufCBinaryData *data = sweep != NULL ? &sweep->data : &cloud->data;
    struct layout layout = {cloud->fields, cloud->n_fields, cloud->point_step, ""};
    char path[PATH_BYTES];
    enum vxd_status status = VXD_OK;

    source_path(source, path);
    (void)snprintf(layout.path, sizeof layout.path, "clouds[%zu]", source->cloud);
    if (sweep != NULL && sweep->n_fields > 0) {
        layout.fields = sweep->fields;
        layout.n_fields = sweep->n_fields;
        layout.point_step = sweep->point_step;
        memcpy(layout.path, path, sizeof layout.path);
    } else if (sweep != NULL && sweep->point_step != 0 &&
               sweep->point_step != cloud->point_step) {
        return fail_at(err, path, "point_step",
                       "is %u without fields of its own; the cloud's is %u",
                       sweep->point_step, cloud->point_step);
    }
    /* The layout of a sweep that shares the cloud's is checked already. */
    if (sweep == NULL || sweep->n_fields > 0) {
        VXD_TRY(check_layout(&layout, err));
    }
    if (data->len % layout.point_step != 0) {
        return fail_at(err, path, "data", "has %zu bytes, no multiple of point_step, %u",
                       data->len, layout.point_step);
    }
    if (sweep == NULL && strlen(cloud->frame_id) > MAX_FRAME_BYTES) {
        return fail_at(err, path, "frame_id", "has %zu bytes, at most %d are allowed",
                       strlen(cloud->frame_id), MAX_FRAME_BYTES);
    }
    if (sweep != NULL && !isfinite(sweep->dt_s)) {
        return fail_at(err, path, "dt_s", "is not finite");
    }
    out->data = data->data;
    out->n_points = data->len / layout.point_step;
    out->point_step = layout.point_step;
    VXD_TRY(bind_position(&layout, out, err));
    VXD_TRY(bind_channels(clouds, &layout, sweep != NULL ? sweep->dt_s : 0, out, err));
    VXD_TRY(bind_pose(clouds, source, path, out, err));
    status = bind_motion(clouds, source, &layout, out, err);
out:
    return status;
}
