// SPDX-License-Identifier: Apache-2.0
/* Edits of scenes in the arena that take an edit back. */
#include "gpu/svdag/edit_kernel/edit_kernel_cuda.h"

size_t vxd_svdag_undo_entry_bytes(void)
{
    return sizeof(struct vxd_svdag_entry<vxd_svdag_undo_editor_cuda::state>);
}

enum vxd_status vxd_svdag_launch_undo(struct vxd_queue *queue,
                                      const struct vxd_svdag_kernel_args *args,
                                      const struct vxd_svdag_undo_state *roots,
                                      struct vxd_err *err)
{
    return vxd_svdag_launch_undo_for<struct vxd_svdag_arena_cuda>(queue, args, roots,
                                                                  err);
}
