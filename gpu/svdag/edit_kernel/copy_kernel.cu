// SPDX-License-Identifier: Apache-2.0
/* Passes of copies: the kernel of pass_cuda.h with the editor of copy_math.h. */
#include "gpu/svdag/edit_kernel/editors_cuda.h"
#include "gpu/svdag/edit_kernel/edit_launch_cuda.h"

static __global__ void
__launch_bounds__(VXD_SVDAG_BLOCK_THREADS,
                  vxd_svdag_blocks_per_sm<struct vxd_svdag_copy_cuda>())
    copy_kernel(const __grid_constant__ struct vxd_svdag_kernel_args args,
                const __grid_constant__ struct vxd_svdag_copy_cuda editor)
{
    vxd_svdag_run_edit_kernel<VXD_SVDAG_KERNEL_STORE>(&args, editor);
}

size_t VXD_SVDAG_KERNEL_FORM(vxd_svdag_copy_entry_bytes)(void)
{
    return sizeof(struct vxd_svdag_frontier_entry<vxd_svdag_copy_cuda::state>);
}

enum vxd_status VXD_SVDAG_KERNEL_FORM(vxd_svdag_launch_copy)(
    struct vxd_queue *queue, const struct vxd_svdag_kernel_args *args,
    const struct vxd_svdag_op *op, struct vxd_err *err)
{
    static struct vxd_svdag_kernel kernel = {
        (const void *)copy_kernel, vxd_svdag_shared_bytes<struct vxd_svdag_copy_cuda>(),
        "copy_kernel", 0};
    const struct vxd_svdag_copy_cuda editor = {*op, args->view};

    return vxd_svdag_launch_edit_kernel(queue, &kernel, args, &editor, err);
}
