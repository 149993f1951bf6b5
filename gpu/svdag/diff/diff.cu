// SPDX-License-Identifier: Apache-2.0
/* The kernels of diffs and exports for stores that keep each item in one piece, as the
 * arena does. */
#include "gpu/svdag/diff/diff_cells_cuda.h"
#include "gpu/svdag/diff/export_bits_cuda.h"
#include "gpu/svdag/diff/export_cells_cuda.h"

enum vxd_status vxd_svdag_export_cells_cuda(struct vxd_queue *queue,
                                            const struct vxd_svdag_cells_call *call,
                                            struct vxd_err *err)
{
    return vxd_svdag_export_cells_launch<false>(queue, call, err);
}

enum vxd_status vxd_svdag_export_dense_cuda(struct vxd_queue *queue,
                                            const struct vxd_svdag_dense_call *call,
                                            struct vxd_err *err)
{
    return vxd_svdag_export_dense_launch<false>(queue, call, err);
}

enum vxd_status vxd_svdag_export_bits_cuda(struct vxd_queue *queue,
                                           const struct vxd_svdag_bits_call *call,
                                           struct vxd_err *err)
{
    return vxd_svdag_export_bits_launch<false>(queue, call, err);
}

enum vxd_status vxd_svdag_diff_cuda(struct vxd_queue *queue,
                                    const struct vxd_svdag_diff_call *call,
                                    struct vxd_err *err)
{
    return vxd_svdag_diff_launch<false>(queue, call, err);
}
