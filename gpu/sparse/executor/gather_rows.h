// SPDX-License-Identifier: Apache-2.0
/* A network's results on their way out: rows picked by an index, in the type asked for. */
#ifndef VXD_GPU_SPARSE_EXECUTOR_GATHER_ROWS_H
#define VXD_GPU_SPARSE_EXECUTOR_GATHER_ROWS_H

#include "gpu/core/core.h"

#ifdef __cplusplus
extern "C" {
#endif

struct vxd_gather_args {
    const void *in; /* n_in x n_elements; device memory, as all here */
    size_t n_in;
    enum vxd_dtype dtype; /* of in: FLOAT32 or INT32 */
    size_t n_elements;    /* a row, 1 or more */
    const int32_t
        *rows;    /* n: row of each, anything outside of 0 .. n_in - 1 = none; NULL:
                           * row i is first + i */
    size_t first; /* without rows; first + n <= n_in */
    size_t n;
    float fill; /* every element of a row that is none; fill_integer where INT32 */
    int32_t fill_integer;
    enum vxd_dtype out_dtype; /* as dtype; FLOAT16 of FLOAT32 */
    void *out;                /* n x n_elements */
};

/* out[i] = in[rows[i]], rounded once to nearest where the types differ; a NaN of FLOAT16 is
 * 0x7e00.
 *
 * errors  INVALID_ARGUMENT    other types, no elements, rows past the end, an overflow
 *         RESOURCE_EXHAUSTED
 * order   equal on every backend, bit for bit
 * sync    asynchronous; the struct is copied, what it points to used when the queue gets there */
enum vxd_status vxd_rows_gather(struct vxd_queue *queue,
                                const struct vxd_gather_args *args, struct vxd_err *err);

#ifdef __cplusplus
}
#endif
#endif
