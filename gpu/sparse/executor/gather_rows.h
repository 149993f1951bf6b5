// SPDX-License-Identifier: Apache-2.0
/* Gathers a network's results for output: rows selected by an index, in the requested
 * type. */
#ifndef VXD_GPU_SPARSE_EXECUTOR_GATHER_ROWS_H
#define VXD_GPU_SPARSE_EXECUTOR_GATHER_ROWS_H

#include "gpu/core/core.h"

#ifdef __cplusplus
extern "C" {
#endif

struct vxd_gather_args {
    const void *in; /* n_in x n_elements; device memory, as are all arrays here */
    size_t n_in;
    enum vxd_dtype dtype; /* of in: FLOAT32 or INT32 */
    size_t n_elements;    /* of a row, 1 or more */
    const int32_t
        /* n: row of each; a number outside 0 .. n_in - 1 = no row; NULL: row i is
         * first + i */
        *rows;
    size_t first; /* used where rows is NULL; first + n <= n_in */
    size_t n;
    float fill; /* value of every element of a missing row; fill_integer where INT32 */
    int32_t fill_integer;
    enum vxd_dtype out_dtype; /* equal to dtype, or FLOAT16 where that is FLOAT32 */
    void *out;                /* n x n_elements */
};

/* out[i] = in[rows[i]], rounded once to nearest where the types differ; a NaN of FLOAT16 is
 * 0x7e00.
 *
 * errors  INVALID_ARGUMENT    other types, no elements, rows after the end, an overflow
 *         RESOURCE_EXHAUSTED
 * order   equal on every backend, bit for bit
 * sync    asynchronous; the struct is copied, its pointers are used when the queue reaches the call */
enum vxd_status vxd_rows_gather(struct vxd_queue *queue,
                                const struct vxd_gather_args *args, struct vxd_err *err);

#ifdef __cplusplus
}
#endif
#endif
