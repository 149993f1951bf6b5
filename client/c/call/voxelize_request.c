// SPDX-License-Identifier: Apache-2.0
/* Turns the public structs into the wire's. Nothing that may be large is copied: the
 * message points to the caller's points and strings, and is packed from there into the
 * socket's buffer. The server checks the request; this file checks only what the
 * server cannot see. */
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "client/c/call/client_internal.h"

enum {
    MAX_CLOUDS = 1024,
    /* This is far above any record of 65535 bytes, and keeps loops from running over
     * garbage counts. */
    MAX_FIELDS = 65535,
    MAX_SWEEPS = 65535,
    PATH_BYTES = 96
};

#define ALL_OUTPUTS                                                                      \
    ((uint32_t)VOXELD_OUTPUT_COORDS | VOXELD_OUTPUT_COUNTS | VOXELD_OUTPUT_INVERSE |     \
     VOXELD_OUTPUT_POINTS | VOXELD_OUTPUT_FIRST_INDEX)
#define ALL_REDUCTIONS                                                                   \
    ((uint32_t)VOXELD_REDUCE_MEAN | VOXELD_REDUCE_SUM | VOXELD_REDUCE_MIN |              \
     VOXELD_REDUCE_MAX | VOXELD_REDUCE_FIRST)

/* The memory of the message; it remembers that an allocation failed. */
struct builder {
    ProtobufCAllocator *allocator;
    struct vxd_err *err;
};

static void *take(const struct builder *b, size_t n, size_t n_bytes)
{
    void *block = NULL;

    if (vxd_size_mul(n, n_bytes, &n_bytes)) {
        block =
            b->allocator->alloc(b->allocator->allocator_data, n_bytes > 0 ? n_bytes : 1);
    }
    if (block == NULL) {
        (void)vxd_fail(b->err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for the request");
    }
    return block;
}

static char *text(const char *string)
{
    return (char *)(uintptr_t)(string != NULL ? string : "");
}

static bool vec3(const struct builder *b, const double *in, Voxeld__V1__Vec3 **out)
{
    Voxeld__V1__Vec3 *v = take(b, 1, sizeof *v);

    if (v == NULL) {
        return false;
    }
    voxeld__v1__vec3__init(v);
    v->x = in[0];
    v->y = in[1];
    v->z = in[2];
    *out = v;
    return true;
}

/* All zeros mean the identity, which is left out. */
static bool pose(const struct builder *b, const struct voxeld_pose *in,
                 Voxeld__V1__Pose **out)
{
    Voxeld__V1__Pose *p;
    Voxeld__V1__Quaternion *q;
    bool is_identity = true;

    for (size_t i = 0; i < 3; i++) {
        is_identity = is_identity && in->translation_m[i] == 0;
    }
    for (size_t i = 0; i < 4; i++) {
        is_identity = is_identity && in->rotation[i] == 0;
    }
    if (is_identity) {
        return true;
    }
    p = take(b, 1, sizeof *p);
    q = take(b, 1, sizeof *q);
    if (p == NULL || q == NULL) {
        return false;
    }
    voxeld__v1__pose__init(p);
    voxeld__v1__quaternion__init(q);
    q->x = in->rotation[0];
    q->y = in->rotation[1];
    q->z = in->rotation[2];
    q->w = in->rotation[3];
    p->rotation = q;
    *out = p;
    return vec3(b, in->translation_m, &p->translation);
}

static enum vxd_status fields(const struct builder *b, const char *path,
                              const struct voxeld_field *in, size_t n,
                              Voxeld__V1__Field ***out)
{
    Voxeld__V1__Field **list;
    Voxeld__V1__Field *all;

    if (n > MAX_FIELDS || (n > 0 && in == NULL)) {
        return vxd_fail(b->err, VXD_INVALID_ARGUMENT, path, "%zu fields at %p", n,
                        (const void *)in);
    }
    list = take(b, n, sizeof(Voxeld__V1__Field *));
    all = take(b, n, sizeof *all);
    if (list == NULL || all == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (size_t i = 0; i < n; i++) {
        voxeld__v1__field__init(&all[i]);
        all[i].name = text(in[i].name);
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

static enum vxd_status points(const struct builder *b, const char *path, const void *data,
                              size_t n_points, uint32_t point_step,
                              ProtobufCBinaryData *out)
{
    if (!vxd_size_mul(n_points, point_step, &out->len)) {
        return vxd_fail(b->err, VXD_INVALID_ARGUMENT, path,
                        "%zu points of %" PRIu32 " bytes are more than memory can hold",
                        n_points, point_step);
    }
    if (n_points > 0 && (data == NULL || point_step == 0)) {
        return vxd_fail(b->err, VXD_INVALID_ARGUMENT, path,
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

static enum vxd_status sweep(const struct builder *b, size_t cloud, size_t i,
                             const struct voxeld_sweep *in, uint32_t cloud_step,
                             Voxeld__V1__Sweep *out)
{
    char path[PATH_BYTES];
    /* A sweep without a layout of its own has the cloud's records. */
    uint32_t step =
        in->n_fields == 0 && in->point_step == 0 ? cloud_step : in->point_step;
    enum vxd_status status;

    voxeld__v1__sweep__init(out);
    VXD_TRY(fields(b, path_to(path, "clouds[%zu].sweeps[%zu].fields", cloud, i),
                   in->fields, in->n_fields, &out->fields));
    out->n_fields = in->n_fields;
    out->point_step = in->point_step;
    VXD_TRY(points(b, path_to(path, "clouds[%zu].sweeps[%zu].data", cloud, i), in->data,
                   in->n_points, step, &out->data));
    out->dt_s = in->dt_s;
    if (!pose(b, &in->T_cloud_sweep, &out->t_cloud_sweep)) {
        status = VXD_RESOURCE_EXHAUSTED;
    }
out:
    return status;
}

static enum vxd_status sweeps(const struct builder *b, size_t cloud,
                              const struct voxeld_cloud *in, Voxeld__V1__Cloud *out)
{
    char path[PATH_BYTES];
    Voxeld__V1__Sweep *all;
    enum vxd_status status = VXD_OK;

    if (in->n_sweeps > MAX_SWEEPS || (in->n_sweeps > 0 && in->sweeps == NULL)) {
        return vxd_fail(b->err, VXD_INVALID_ARGUMENT,
                        path_to(path, "clouds[%zu].sweeps", cloud), "%zu sweeps at %p",
                        in->n_sweeps, (const void *)in->sweeps);
    }
    out->sweeps = take(b, in->n_sweeps, sizeof(Voxeld__V1__Sweep *));
    all = take(b, in->n_sweeps, sizeof *all);
    if (out->sweeps == NULL || all == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (size_t i = 0; i < in->n_sweeps; i++) {
        VXD_TRY(sweep(b, cloud, i, &in->sweeps[i], in->point_step, &all[i]));
        out->sweeps[i] = &all[i];
    }
    out->n_sweeps = in->n_sweeps;
out:
    return status;
}

static enum vxd_status deskew(const struct builder *b, const struct voxeld_deskew *in,
                              Voxeld__V1__Deskew **out)
{
    Voxeld__V1__Deskew *made;

    if (in == NULL) {
        return VXD_OK;
    }
    made = take(b, 1, sizeof *made);
    if (made == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    voxeld__v1__deskew__init(made);
    made->time_field = text(in->time_field);
    made->start = in->start;
    made->end = in->end;
    *out = made;
    return pose(b, &in->T_map_sensor_end, &made->t_map_sensor_end)
               ? VXD_OK
               : VXD_RESOURCE_EXHAUSTED;
}

static enum vxd_status cloud(const struct builder *b, size_t i,
                             const struct voxeld_cloud *in, Voxeld__V1__Cloud *out)
{
    char path[PATH_BYTES];
    enum vxd_status status;

    voxeld__v1__cloud__init(out);
    VXD_TRY(fields(b, path_to(path, "clouds[%zu].fields", i), in->fields, in->n_fields,
                   &out->fields));
    out->n_fields = in->n_fields;
    out->point_step = in->point_step;
    VXD_TRY(points(b, path_to(path, "clouds[%zu].data", i), in->data, in->n_points,
                   in->point_step, &out->data));
    out->stamp_ns = in->stamp_ns;
    out->frame_id = text(in->frame_id);
    if (!pose(b, &in->T_map_sensor, &out->t_map_sensor)) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(sweeps(b, i, in, out));
    VXD_TRY(deskew(b, in->deskew, &out->deskew));
out:
    return status;
}

enum vxd_status vxd_request_clouds(struct vxd_decoder *arena,
                                   const struct voxeld_cloud *clouds, size_t n_clouds,
                                   Voxeld__V1__Cloud ***out, struct vxd_err *err)
{
    const struct builder b = {.allocator = vxd_decoder_allocator(arena), .err = err};
    Voxeld__V1__Cloud *all;
    enum vxd_status status = VXD_OK;

    if (clouds == NULL || n_clouds == 0 || n_clouds > MAX_CLOUDS) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "clouds",
                        "%zu clouds at %p; 1 to %d are allowed", n_clouds,
                        (const void *)clouds, MAX_CLOUDS);
    }
    *out = take(&b, n_clouds, sizeof(Voxeld__V1__Cloud *));
    all = take(&b, n_clouds, sizeof *all);
    if (*out == NULL || all == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (size_t i = 0; i < n_clouds; i++) {
        VXD_TRY(cloud(&b, i, &clouds[i], &all[i]));
        (*out)[i] = &all[i];
    }
out:
    return status;
}

/* Bit i of the public masks is the wire's number i + 1, ascending. */
static bool wire_numbers(const struct builder *b, uint32_t bits, void *list, size_t *n)
{
    int *numbers = take(b, 32, sizeof *numbers);

    _Static_assert(sizeof(Voxeld__V1__Reduce) == sizeof(int) &&
                       sizeof(Voxeld__V1__VoxelOutput) == sizeof(int),
                   "protobuf-c makes enums as wide as int");
    if (numbers == NULL) {
        return false;
    }
    *n = 0;
    for (int i = 0; i < 32; i++) {
        if ((bits >> i & 1) != 0) {
            numbers[(*n)++] = i + 1;
        }
    }
    memcpy(list, &numbers, sizeof numbers);
    return true;
}

_Static_assert(VOXELD_REDUCE_MEAN == 1 << (VOXELD__V1__REDUCE__REDUCE_MEAN - 1) &&
                   VOXELD_REDUCE_FIRST == 1 << (VOXELD__V1__REDUCE__REDUCE_FIRST - 1) &&
                   VOXELD_OUTPUT_COORDS ==
                       1 << (VOXELD__V1__VOXEL_OUTPUT__OUTPUT_COORDS - 1) &&
                   VOXELD_OUTPUT_FIRST_INDEX ==
                       1 << (VOXELD__V1__VOXEL_OUTPUT__OUTPUT_FIRST_INDEX - 1),
               "public bits follow the wire's numbers");

static enum vxd_status choices(const struct builder *b,
                               const struct voxeld_voxelize_request *in,
                               Voxeld__V1__VoxelizeRequest *out)
{
    if ((in->reduce & ~ALL_REDUCTIONS) != 0) {
        return vxd_fail(b->err, VXD_INVALID_ARGUMENT, "reduce",
                        "0x%" PRIx32 " has unknown bits", in->reduce);
    }
    if ((in->outputs & ~ALL_OUTPUTS) != 0) {
        return vxd_fail(b->err, VXD_INVALID_ARGUMENT, "outputs",
                        "0x%" PRIx32 " has unknown bits", in->outputs);
    }
    if (in->n_features > MAX_FIELDS || (in->n_features > 0 && in->features == NULL)) {
        return vxd_fail(b->err, VXD_INVALID_ARGUMENT, "features", "%zu names at %p",
                        in->n_features, (const void *)in->features);
    }
    out->features = take(b, in->n_features, sizeof(char *));
    if (out->features == NULL ||
        !wire_numbers(b, in->reduce, &out->reduce, &out->n_reduce) ||
        !wire_numbers(b, in->outputs, &out->outputs, &out->n_outputs)) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (size_t i = 0; i < in->n_features; i++) {
        out->features[i] = text(in->features[i]);
    }
    out->n_features = in->n_features;
    out->no_features = in->no_features;
    out->rule = (Voxeld__V1__VoxelRule)in->rule;
    out->order = (Voxeld__V1__VoxelOrder)in->order;
    out->max_points = in->max_points;
    out->max_voxels = in->max_voxels;
    return VXD_OK;
}

static bool geometry(const struct builder *b, const struct voxeld_voxelize_request *in,
                     Voxeld__V1__VoxelizeRequest *out)
{
    if (!vec3(b, in->size_m, &out->size) || !vec3(b, in->origin_m, &out->origin)) {
        return false;
    }
    if (in->has_range) {
        out->range = take(b, 1, sizeof *out->range);
        if (out->range == NULL) {
            return false;
        }
        voxeld__v1__range__init(out->range);
        return vec3(b, in->range_low_m, &out->range->low) &&
               vec3(b, in->range_high_m, &out->range->high);
    }
    return true;
}

static bool merge(const struct builder *b, const struct voxeld_merge *in,
                  Voxeld__V1__VoxelizeRequest *out)
{
    if (in->map == NULL) {
        return true;
    }
    out->merge = take(b, 1, sizeof *out->merge);
    if (out->merge == NULL) {
        return false;
    }
    voxeld__v1__voxelize_merge__init(out->merge);
    out->merge->map = text(in->map);
    out->merge->create = in->create;
    out->merge->ttl_s = in->ttl_s;
    out->merge->max_bytes = in->max_bytes;
    return true;
}

enum vxd_status vxd_voxelize_request_build(const struct voxeld_voxelize_request *in,
                                           struct vxd_decoder *arena,
                                           Voxeld__V1__VoxelizeRequest **out,
                                           struct vxd_voxelize_expect *expect,
                                           struct vxd_err *err)
{
    struct builder b = {.allocator = vxd_decoder_allocator(arena), .err = err};
    Voxeld__V1__VoxelizeRequest *request = take(&b, 1, sizeof *request);
    enum vxd_status status;

    if (request == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    voxeld__v1__voxelize_request__init(request);
    VXD_TRY(vxd_request_clouds(arena, in->clouds, in->n_clouds, &request->clouds, err));
    request->n_clouds = in->n_clouds;
    VXD_TRY(choices(&b, in, request));
    if (!geometry(&b, in, request) || !merge(&b, &in->merge, request)) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    expect->n_clouds = in->n_clouds;
    expect->outputs = in->outputs != 0
                          ? in->outputs
                          : (uint32_t)VOXELD_OUTPUT_COORDS | VOXELD_OUTPUT_COUNTS;
    expect->reduce = in->no_features   ? 0
                     : in->reduce != 0 ? in->reduce
                                       : (uint32_t)VOXELD_REDUCE_MEAN;
    expect->max_points = in->max_points;
    expect->merges = in->merge.map != NULL;
    *out = request;
out:
    return status;
}
