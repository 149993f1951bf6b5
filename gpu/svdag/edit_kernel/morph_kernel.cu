// SPDX-License-Identifier: Apache-2.0
/* Edits of scenes in the arena with erosion and dilation. */
#include "gpu/svdag/edit_kernel/edit_kernel_cuda.h"

size_t vxd_svdag_morph_entry_bytes(void)
{
    return sizeof(struct vxd_svdag_entry<vxd_svdag_morph_editor_cuda::state>);
}

enum vxd_status vxd_svdag_launch_morph(struct vxd_queue *queue,
                                       const struct vxd_svdag_kernel_args *args,
                                       const struct vxd_svdag_op *op, struct vxd_err *err)
{
    return vxd_svdag_launch_morph_for<struct vxd_svdag_arena_cuda>(queue, args, op, err);
}
