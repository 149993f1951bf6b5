// SPDX-License-Identifier: Apache-2.0
/* What the backends of gather_rows.h share. */
#ifndef VXD_GPU_SPARSE_EXECUTOR_GATHER_ROWS_MATH_H
#define VXD_GPU_SPARSE_EXECUTOR_GATHER_ROWS_MATH_H

#include "gpu/core/core_math.h"
#include "gpu/core/core_cpu.h"
#include "gpu/sparse/executor/gather_rows.h"

#ifdef __cplusplus
extern "C" {
#endif

enum vxd_status vxd_rows_gather_cpu(struct vxd_queue *queue,
                                    const struct vxd_gather_args *args,
                                    struct vxd_err *err);
enum vxd_status vxd_rows_gather_cuda(struct vxd_queue *queue,
                                     const struct vxd_gather_args *args,
                                     struct vxd_err *err);

#ifdef __cplusplus
}
#endif

/* The input row of row i of the output; -1 = none. */
VXD_HD int64_t vxd_gather_source(const struct vxd_gather_args *args, size_t i)
{
    int64_t row =
        args->rows != NULL ? (int64_t)args->rows[i] : (int64_t)(args->first + i);

    return row >= 0 && row < (int64_t)args->n_in ? row : -1;
}

/* Writes one element of the output. */
VXD_HD void vxd_gather_element(const struct vxd_gather_args *args, int64_t row, size_t i,
                               size_t element)
{
    size_t from = (row < 0 ? 0 : (size_t)row) * args->n_elements + element;
    size_t to = i * args->n_elements + element;
    float value;

    if (args->dtype == VXD_INT32) {
        ((int32_t *)args->out)[to] =
            row >= 0 ? ((const int32_t *)args->in)[from] : args->fill_integer;
        return;
    }
    value = row >= 0 ? ((const float *)args->in)[from] : args->fill;
    if (args->out_dtype == VXD_FLOAT32) {
        ((float *)args->out)[to] = value;
    } else {
        ((uint16_t *)args->out)[to] = vxd_half_of_float(value);
    }
}

#endif
