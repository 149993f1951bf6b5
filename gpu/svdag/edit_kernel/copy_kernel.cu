// SPDX-License-Identifier: Apache-2.0
/* Edits of scenes in the arena with copies. */
#include "gpu/svdag/edit_kernel/edit_kernel_cuda.h"

size_t vxd_svdag_copy_entry_bytes(void)
{
    return sizeof(struct vxd_svdag_entry<vxd_svdag_copy_editor_cuda::state>);
}

enum vxd_status vxd_svdag_launch_copy(struct vxd_queue *queue,
                                      const struct vxd_svdag_kernel_args *args,
                                      const struct vxd_svdag_op *op, struct vxd_err *err)
{
    return vxd_svdag_launch_copy_for<struct vxd_svdag_arena_cuda>(queue, args, op, err);
}
