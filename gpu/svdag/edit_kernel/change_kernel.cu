// SPDX-License-Identifier: Apache-2.0
/* What an edit of several passes changed: pairs of references, from its first root and its last
 * one down (pairs_cuda.h). */
#include "gpu/svdag/edit_kernel/edit_launch_cuda.h"

static __global__ void __launch_bounds__(VXD_SVDAG_BLOCK_THREADS,
                                         VXD_SVDAG_MAX_BLOCKS_PER_SM)
    change_kernel(const __grid_constant__ struct vxd_svdag_kernel_args args)
{
    vxd_svdag_run_change(&args);
}

enum vxd_status
VXD_SVDAG_KERNEL_FORM(vxd_svdag_launch_change)(struct vxd_queue *queue,
                                               const struct vxd_svdag_kernel_args *args,
                                               struct vxd_err *err)
{
    static struct vxd_svdag_kernel kernel = {(const void *)change_kernel, 0,
                                             "change_kernel", 0};

    return vxd_svdag_launch_edit_kernel(queue, &kernel, args, NULL, err);
}
