// SPDX-License-Identifier: Apache-2.0
#include "gpu/sparse/executor/gather_rows.h"

#include "gpu/sparse/executor/gather_rows_math.h"

static enum vxd_status check(const struct vxd_gather_args *args, struct vxd_err *err)
{
    size_t n_bytes;

    if ((args->dtype != VXD_FLOAT32 && args->dtype != VXD_INT32) ||
        (args->out_dtype != args->dtype &&
         !(args->dtype == VXD_FLOAT32 && args->out_dtype == VXD_FLOAT16))) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "dtype", "%d to %d is not possible",
                        (int)args->dtype, (int)args->out_dtype);
    }
    if (args->n_elements < 1 ||
        !vxd_size_mul(args->n, args->n_elements * sizeof(float), &n_bytes) ||
        !vxd_size_mul(args->n_in, args->n_elements * sizeof(float), &n_bytes)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "n_elements",
                        "%zu rows of %zu elements", args->n, args->n_elements);
    }
    if (args->n > INT32_MAX || args->n_in > INT32_MAX) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "n", "%zu of %zu rows are too many",
                        args->n, args->n_in);
    }
    if (args->rows == NULL &&
        (args->n > args->n_in || args->first > args->n_in - args->n)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "first",
                        "%zu rows from row %zu on: there are %zu", args->n, args->first,
                        args->n_in);
    }
    return VXD_OK;
}

enum vxd_status vxd_rows_gather(struct vxd_queue *queue,
                                const struct vxd_gather_args *args, struct vxd_err *err)
{
    enum vxd_status status = check(args, err);

    if (status != VXD_OK || args->n == 0) {
        return status;
    }
#if defined(VXD_WITH_CUDA)
    if (VXD_ON_CUDA(queue->context)) {
        return vxd_rows_gather_cuda(queue, args, err);
    }
#endif
    return vxd_rows_gather_cpu(queue, args, err);
}
