// SPDX-License-Identifier: Apache-2.0
/* Arrays of requests: places and materials, as data or as JSON's numbers. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "proto/wire/wire.h"
#include "server/service/scene/scene.h"

enum {
    MAX_JSON_VALUES = 65536 /* Tensor.values in common.proto */
};

static enum vxd_status check_size(const Voxeld__V1__Tensor *tensor, const char *field,
                                  size_t n, struct vxd_err *err)
{
    size_t n_sound;

    if (tensor->n_values > 0 && tensor->data.len > 0) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field, "has both data and values");
    }
    if (tensor->n_values > 0 && (tensor->n_values != n || n > MAX_JSON_VALUES)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                        "has %zu values for a shape of %zu elements, at most %d are "
                        "possible",
                        tensor->n_values, n, MAX_JSON_VALUES);
    }
    if (tensor->n_values == 0 && n > 0 && !vxd_tensor_elements(tensor, &n_sound)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                        "its %zu bytes of data are not %zu elements of its dtype, %d",
                        tensor->data.len, n, (int)tensor->dtype);
    }
    if (n == 0 && tensor->data.len > 0) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                        "has %zu bytes of data for no element", tensor->data.len);
    }
    return VXD_OK;
}

/* Checks for rows of `columns` elements; with one column, n x 1 may be given as n. */
static enum vxd_status check_shape(const Voxeld__V1__Tensor *tensor, const char *field,
                                   size_t columns, size_t *n_rows, struct vxd_err *err)
{
    bool is_flat = tensor->n_shape == 1 && columns == 1;

    if (!is_flat && (tensor->n_shape != 2 || tensor->shape[1] != (int64_t)columns)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field, "must be of shape n x %zu",
                        columns);
    }
    if (tensor->shape[0] < 0 || tensor->shape[0] > INT32_MAX / (int64_t)columns) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                        "has %" PRId64 " rows, at most %" PRId64 " are possible",
                        tensor->shape[0], INT32_MAX / (int64_t)columns);
    }
    *n_rows = (size_t)tensor->shape[0];
    return VXD_OK;
}

enum vxd_status vxd_scene_check_numbers(const Voxeld__V1__Tensor *tensor,
                                        const char *field, size_t columns,
                                        bool takes_integers, size_t *n_rows,
                                        struct vxd_err *err)
{
    enum vxd_status status;
    bool is_float;

    if (tensor == NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field, "is required");
    }
    VXD_TRY(check_shape(tensor, field, columns, n_rows, err));
    is_float =
        tensor->dtype == VOXELD__V1__DTYPE__FLOAT32 ||
        tensor->dtype == VOXELD__V1__DTYPE__FLOAT64 ||
        (tensor->dtype == VOXELD__V1__DTYPE__DTYPE_UNSPECIFIED && tensor->data.len == 0);
    if (!is_float && !(takes_integers && vxd_scene_is_indices(tensor))) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                        "has the dtype %d, it must be FLOAT32 or FLOAT64%s",
                        (int)tensor->dtype,
                        takes_integers ? ", or INT32 or INT64 for voxels" : "");
    }
    status = check_size(tensor, field, *n_rows * columns, err);
out:
    return status;
}

bool vxd_scene_is_indices(const Voxeld__V1__Tensor *tensor)
{
    return tensor->dtype == VOXELD__V1__DTYPE__INT32 ||
           tensor->dtype == VOXELD__V1__DTYPE__INT64;
}

/* The wire's bytes need no alignment. */
double vxd_scene_number(const Voxeld__V1__Tensor *tensor, size_t i)
{
    const uint8_t *data = tensor->data.data;

    if (tensor->n_values > 0) {
        return tensor->values[i];
    }
    if (tensor->dtype == VOXELD__V1__DTYPE__FLOAT64) {
        double value;

        memcpy(&value, data + i * sizeof value, sizeof value);
        return value;
    }
    if (tensor->dtype == VOXELD__V1__DTYPE__FLOAT32) {
        float value;

        memcpy(&value, data + i * sizeof value, sizeof value);
        return (double)value;
    }
    if (tensor->dtype == VOXELD__V1__DTYPE__INT32) {
        int32_t value;

        memcpy(&value, data + i * sizeof value, sizeof value);
        return value;
    }
    {
        int64_t value;

        memcpy(&value, data + i * sizeof value, sizeof value);
        return (double)value; /* beyond 2^53 no scene reaches */
    }
}

static int32_t to_int32(double value)
{
    return value >= (double)INT32_MAX   ? INT32_MAX
           : value <= (double)INT32_MIN ? INT32_MIN
                                        : (int32_t)value;
}

void vxd_scene_read_voxels(const Voxeld__V1__Tensor *tensor,
                           const struct vxd_scene_frame *frame, int32_t *voxels,
                           uint64_t *n_non_finite)
{
    size_t n = (size_t)tensor->shape[0];
    bool is_indices = vxd_scene_is_indices(tensor);
    uint64_t n_bad = 0;

    for (size_t i = 0; i < n; i++) {
        int32_t *voxel = voxels + 3 * i;
        bool is_finite = true;

        for (int axis = 0; axis < 3; axis++) {
            double p = vxd_scene_number(tensor, 3 * i + (size_t)axis);

            is_finite = is_finite && isfinite(p);
            voxel[axis] =
                is_indices
                    ? to_int32(floor(p))
                    : (int32_t)vxd_scene_voxel_at(vxd_scene_coordinate(frame, axis, p));
        }
        if (!is_finite) {
            voxel[0] = voxel[1] = voxel[2] = -1;
            n_bad++;
        }
    }
    if (n_non_finite != NULL) {
        *n_non_finite += n_bad;
    }
}

enum vxd_status vxd_scene_check_materials(const Voxeld__V1__Tensor *tensor,
                                          const char *field, size_t n_rows,
                                          struct vxd_err *err)
{
    size_t n = 0;
    enum vxd_status status;

    VXD_TRY(check_shape(tensor, field, 1, &n, err));
    if (tensor->dtype != VOXELD__V1__DTYPE__UINT8 &&
        tensor->dtype != VOXELD__V1__DTYPE__UINT16 &&
        (tensor->dtype != VOXELD__V1__DTYPE__DTYPE_UNSPECIFIED || tensor->data.len > 0)) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                         "has the dtype %d, it must be UINT8 or UINT16",
                         (int)tensor->dtype));
    }
    if (n != n_rows) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                         "has %zu rows, there are %zu points", n, n_rows));
    }
    status = check_size(tensor, field, n, err);
out:
    return status;
}

enum vxd_status vxd_scene_read_materials(const Voxeld__V1__Tensor *tensor,
                                         const char *field, uint32_t n_materials,
                                         uint16_t *out, struct vxd_err *err)
{
    size_t n = (size_t)tensor->shape[0];

    for (size_t i = 0; i < n; i++) {
        double value;

        if (tensor->n_values > 0) {
            value = tensor->values[i];
        } else if (tensor->dtype == VOXELD__V1__DTYPE__UINT8) {
            value = tensor->data.data[i];
        } else {
            uint16_t wide;

            memcpy(&wide, tensor->data.data + i * sizeof wide, sizeof wide);
            value = wide;
        }
        /* NaN fails every comparison. */
        if (!(value >= 0 && value < (double)n_materials) || floor(value) != value) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                            "row %zu is %g, the scene's materials are 0 to %u", i, value,
                            n_materials - 1);
        }
        out[i] = (uint16_t)value;
    }
    return VXD_OK;
}
