// SPDX-License-Identifier: Apache-2.0
/* What an edit of several passes changed: pairs of references, from its first root and its last
 * one down (pairs_cuda.h). */
#include "gpu/svdag/edit_kernel/edit_launch_cuda.h"

static __global__ void __launch_bounds__(VXD_SVDAG_TEAM_THREADS, VXD_SVDAG_TEAM_BLOCKS)
    change_kernel(const __grid_constant__ struct vxd_svdag_pass pass)
{
    vxd_svdag_run_change(&pass);
}

enum vxd_status VXD_SVDAG_PASS_FORM(vxd_svdag_change_pass)(
    struct vxd_queue *queue, const struct vxd_svdag_pass *pass, struct vxd_err *err)
{
    static struct vxd_svdag_kernel kernel = {(const void *)change_kernel, 0,
                                             "change_kernel", 0};

    return vxd_svdag_launch_pass(queue, &kernel, pass, NULL, err);
}
