// SPDX-License-Identifier: Apache-2.0
/* Reads "input": which fields of a cloud the network sees, and how points become voxels. */
#include <float.h>
#include <string.h>

#include "server/model/model_internal.h"

enum {
    MAX_SHAPE = 1 << (VXD_SPARSE_COORD_BITS - 1) /* cells an axis */
};

#define MAX_METRES 1e9

/* What the readers of the input's keys share. */
struct reading {
    struct vxd_model_reader *reader;
    struct vxd_model_input *input;
    struct vxd_model_feature *feature; /* while one is read */
    bool has_mode;
    bool has_size;
    bool has_bounded;
};

#define READER(name)                                                                     \
    static enum vxd_status name(const struct vxd_json *json, const char *path,           \
                                const json_t *value, void *to)

READER(read_mode)
{
    static const char *const names[] = {"voxelize", "quantize", NULL};
    struct reading *reading = to;
    int choice = 0;
    enum vxd_status status = vxd_json_choice(json, path, value, names, &choice);

    reading->input->voxelize.rule = choice == 0 ? VXD_RULE_SPCONV : VXD_RULE_MINKOWSKI;
    reading->has_mode = true;
    return status;
}

READER(read_field)
{
    struct reading *reading = to;
    struct vxd_model_feature *feature = reading->feature;
    static const char *const axes[] = {"x", "y", "z"};
    enum vxd_status status =
        vxd_json_text(json, path, value, feature->name, sizeof feature->name);

    feature->kind = VXD_CHANNEL_FIELD;
    for (int i = 0; status == VXD_OK && i < 3; i++) {
        if (strcmp(feature->name, axes[i]) == 0) {
            feature->kind = VXD_CHANNEL_POSITION;
            feature->component = i;
        }
    }
    return status;
}

READER(read_field_scale)
{
    struct reading *reading = to;

    return vxd_json_number(json, path, value, -1e12, 1e12, &reading->feature->scale);
}

READER(read_field_bias)
{
    struct reading *reading = to;

    return vxd_json_number(json, path, value, -1e12, 1e12, &reading->feature->bias);
}

static enum vxd_status read_feature(struct reading *reading, const char *path,
                                    const json_t *value)
{
    static const struct vxd_json_key keys[] = {
        {"field", read_field},
        {"scale", read_field_scale},
        {"bias", read_field_bias},
    };
    const struct vxd_json *json = &reading->reader->json;
    struct vxd_model_feature *feature = reading->feature;
    double constant;
    enum vxd_status status;

    feature->scale = 1;
    if (json_is_number(value)) {
        status = vxd_json_number(json, path, value, -1e12, 1e12, &constant);
        feature->kind = VXD_CHANNEL_CONSTANT;
        if (status == VXD_OK) {
            feature->constant = (float)constant;
            (void)snprintf(feature->name, sizeof feature->name, "%g", constant);
        }
        return status;
    }
    if (json_is_string(value)) {
        return read_field(json, path, value, reading);
    }
    if (!json_is_object(value)) {
        return vxd_json_fail_type(json, path, "a field's name, a number or an object",
                                  value);
    }
    status =
        vxd_json_object(json, path, value, keys, sizeof keys / sizeof keys[0], reading);
    if (status == VXD_OK && feature->name[0] == '\0') {
        return vxd_json_fail(json, path, "\"%s.field\" is missing", path);
    }
    return status;
}

READER(read_features)
{
    struct reading *reading = to;
    struct vxd_model *model = reading->reader->model;
    size_t n = json_array_size(value);

    if (!json_is_array(value)) {
        return vxd_json_fail_type(json, path, "an array", value);
    }
    if (n < 1 || n > VXD_MAX_CHANNELS) {
        return vxd_json_fail(json, path, "\"%s\" has %zu items, it must have 1 to %d",
                             path, n, VXD_MAX_CHANNELS);
    }
    for (size_t i = 0; i < n; i++) {
        char at[VXD_JSON_PATH_BYTES];
        enum vxd_status status;

        (void)snprintf(at, sizeof at, "input.features[%zu]", i);
        reading->feature = &model->features[i];
        status = read_feature(reading, at, json_array_get(value, i));
        if (status != VXD_OK) {
            return status;
        }
    }
    reading->input->features = model->features;
    reading->input->n_features = (int)n;
    return VXD_OK;
}

READER(read_voxel_size)
{
    struct reading *reading = to;
    double size[3];
    enum vxd_status status;

    if (json_is_number(value)) {
        status = vxd_json_number(json, path, value, 1e-9, MAX_METRES, &size[0]);
        size[1] = size[0];
        size[2] = size[0];
    } else {
        status = vxd_json_numbers(json, path, value, 3, 1e-9, MAX_METRES, size);
    }
    for (int i = 0; status == VXD_OK && i < 3; i++) {
        reading->input->voxelize.size_m[i] = (float)size[i];
    }
    reading->has_size = true;
    return status;
}

/* [x0, y0, z0, x1, y1, z1] */
static enum vxd_status read_bounds(const struct vxd_json *json, const char *path,
                                   const json_t *value, float lo[3], float hi[3])
{
    double bounds[6];
    enum vxd_status status =
        vxd_json_numbers(json, path, value, 6, -MAX_METRES, MAX_METRES, bounds);

    for (int i = 0; status == VXD_OK && i < 3; i++) {
        lo[i] = (float)bounds[i];
        hi[i] = (float)bounds[i + 3];
        if (!(lo[i] < hi[i])) {
            return vxd_json_fail(
                json, path, "\"%s\": the first three must be below the last three", path);
        }
    }
    return status;
}

READER(read_range)
{
    struct reading *reading = to;
    struct vxd_voxelize_args *args = &reading->input->voxelize;

    args->has_range = true;
    return read_bounds(json, path, value, args->range_lo_m, args->range_hi_m);
}

READER(read_max_points)
{
    struct reading *reading = to;
    int n = 0;
    enum vxd_status status = vxd_json_int(json, path, value, 0, VXD_MODEL_MAX_POINTS, &n);

    reading->input->voxelize.max_points = (uint32_t)n;
    return status;
}

READER(read_max_voxels)
{
    struct reading *reading = to;
    int n = 0;
    enum vxd_status status = vxd_json_int(json, path, value, 0, 1 << 27, &n);

    reading->input->voxelize.max_voxels = (uint32_t)n;
    return status;
}

READER(read_reduce)
{
    static const char *const names[] = {"mean", "first", "max", "sum", NULL};
    struct reading *reading = to;
    int choice = 0;
    enum vxd_status status = vxd_json_choice(json, path, value, names, &choice);

    reading->input->reduce = (enum vxd_model_reduce)choice;
    return status;
}

READER(read_bounded)
{
    struct reading *reading = to;
    const int *axes = reading->reader->axes;
    int cells[3];
    enum vxd_status status = vxd_json_ints3(json, path, value, 1, MAX_SHAPE, cells);

    for (int i = 0; status == VXD_OK && i < 3; i++) {
        reading->input->shape[axes[i]] = cells[i];
    }
    reading->has_bounded = true;
    return status;
}

READER(read_overflow)
{
    static const char *const names[] = {"drop", "error", NULL};
    struct reading *reading = to;
    int choice = 0;
    enum vxd_status status = vxd_json_choice(json, path, value, names, &choice);

    reading->input->overflow = (enum vxd_model_overflow)choice;
    return status;
}

READER(read_normal_points)
{
    struct vxd_model_normalize *normalize = to;
    int n = 0;
    enum vxd_status status = vxd_json_int(json, path, value, 0, 1 << 27, &n);

    normalize->n_points = (uint32_t)n;
    return status;
}

READER(read_normal_range)
{
    struct vxd_model_normalize *normalize = to;

    normalize->has_range = true;
    return read_bounds(json, path, value, normalize->range_lo_m, normalize->range_hi_m);
}

READER(read_normal_center)
{
    struct vxd_model_normalize *normalize = to;

    return vxd_json_bool(json, path, value, &normalize->center);
}

READER(read_normal_scale)
{
    struct vxd_model_normalize *normalize = to;

    return vxd_json_bool(json, path, value, &normalize->scale_to_one);
}

READER(read_normalize)
{
    static const struct vxd_json_key keys[] = {
        {"points", read_normal_points},
        {"range", read_normal_range},
        {"center", read_normal_center},
        {"scale_to_one", read_normal_scale},
    };
    struct reading *reading = to;

    reading->input->normalize.used = !json_is_null(value);
    return json_is_null(value)
               ? VXD_OK
               : vxd_json_object(json, path, value, keys, sizeof keys / sizeof keys[0],
                                 &reading->input->normalize);
}

/* Checks what concerns several keys. */
static enum vxd_status check_input(const struct reading *reading)
{
    const struct vxd_json *json = &reading->reader->json;
    const struct vxd_model_input *input = reading->input;
    struct vxd_err err = {0};
    int32_t grid[3];

    if (!reading->has_mode || !reading->has_size || input->n_features == 0) {
        const char *key = !reading->has_mode   ? "input.mode"
                          : !reading->has_size ? "input.voxel_size"
                                               : "input.features";

        return vxd_json_fail(json, key, "\"%s\" is missing", key);
    }
    if (input->voxelize.rule == VXD_RULE_MINKOWSKI) {
        return reading->has_bounded
                   ? vxd_json_fail(json, "input.bounded",
                                   "\"input.bounded\" needs mode \"voxelize\": quantized "
                                   "coordinates may be negative")
                   : VXD_OK;
    }
    if (!input->voxelize.has_range) {
        return vxd_json_fail(json, "input.range",
                             "\"input.range\" is missing: mode \"voxelize\" counts "
                             "voxels from its low corner");
    }
    if (vxd_voxelize_grid(&input->voxelize, grid, &err) != VXD_OK) {
        return vxd_json_fail(json, "input.range", "%.150s", err.message);
    }
    for (int i = 0; i < 3; i++) {
        if (reading->has_bounded ? grid[i] > input->shape[i] : grid[i] > MAX_SHAPE) {
            return vxd_json_fail(json, "input.bounded",
                                 "the range has %d voxels along %c, \"input.bounded\" "
                                 "allows %d",
                                 grid[i], 'x' + i,
                                 reading->has_bounded ? input->shape[i] : MAX_SHAPE);
        }
    }
    return VXD_OK;
}

enum vxd_status vxd_model_read_input(struct vxd_model_reader *reader, const json_t *value)
{
    static const struct vxd_json_key keys[] = {
        {"mode", read_mode},
        {"features", read_features},
        {"voxel_size", read_voxel_size},
        {"range", read_range},
        {"max_points", read_max_points},
        {"max_voxels", read_max_voxels},
        {"reduce", read_reduce},
        {"bounded", read_bounded},
        {"overflow", read_overflow},
        {"normalize", read_normalize},
    };
    struct vxd_model_input *input = &reader->model->input;
    struct reading reading = {.reader = reader, .input = input};
    enum vxd_status status;

    input->voxelize.order = VXD_ORDER_MORTON;
    VXD_TRY(vxd_json_object(&reader->json, "input", value, keys,
                            sizeof keys / sizeof keys[0], &reading));
    VXD_TRY(check_input(&reading));
out:
    return status;
}
