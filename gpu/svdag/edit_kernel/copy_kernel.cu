// SPDX-License-Identifier: Apache-2.0
/* Passes of copies: the kernel of pass_cuda.h with the editor of copy_math.h. */
#include "gpu/svdag/edit_kernel/editors_cuda.h"
#include "gpu/svdag/edit_kernel/edit_launch_cuda.h"

static __global__ void
__launch_bounds__(VXD_SVDAG_TEAM_THREADS,
                  vxd_svdag_team_blocks<struct vxd_svdag_copy_cuda>())
    copy_kernel(const __grid_constant__ struct vxd_svdag_pass pass,
                const __grid_constant__ struct vxd_svdag_copy_cuda editor)
{
    vxd_svdag_run_pass<VXD_SVDAG_PASS_STORE>(&pass, editor);
}

size_t VXD_SVDAG_PASS_FORM(vxd_svdag_copy_row_bytes)(void)
{
    return sizeof(struct vxd_svdag_row<vxd_svdag_copy_cuda::state>);
}

enum vxd_status VXD_SVDAG_PASS_FORM(vxd_svdag_copy_pass)(
    struct vxd_queue *queue, const struct vxd_svdag_pass *pass,
    const struct vxd_svdag_op *op, struct vxd_err *err)
{
    static struct vxd_svdag_kernel kernel = {
        (const void *)copy_kernel, vxd_svdag_shared_bytes<struct vxd_svdag_copy_cuda>(),
        "copy_kernel", 0};
    const struct vxd_svdag_copy_cuda editor = {*op, pass->view};

    return vxd_svdag_launch_pass(queue, &kernel, pass, &editor, err);
}
