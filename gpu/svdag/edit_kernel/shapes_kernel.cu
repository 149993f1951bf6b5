// SPDX-License-Identifier: Apache-2.0
/* Edits of scenes in the arena with shapes: the kernel for each of the three forms of
 * such edits. */
#include "gpu/svdag/edit_kernel/edit_kernel_cuda.h"

size_t vxd_svdag_shapes_entry_bytes(enum vxd_svdag_shapes_form form)
{
    return form == VXD_SVDAG_FORM_LISTS
               ? sizeof(struct vxd_svdag_entry<vxd_svdag_lists_editor_cuda::state>)
           : form == VXD_SVDAG_FORM_BALL
               ? sizeof(struct vxd_svdag_entry<vxd_svdag_ball_editor_cuda::state>)
               : sizeof(struct vxd_svdag_entry<vxd_svdag_shapes_editor_cuda::state>);
}

enum vxd_status vxd_svdag_launch_shapes(struct vxd_queue *queue,
                                        const struct vxd_svdag_kernel_args *args,
                                        const struct vxd_svdag_shapes_run *run,
                                        enum vxd_svdag_shapes_form form,
                                        const struct vxd_svdag_op *ops,
                                        struct vxd_err *err)
{
    return vxd_svdag_launch_shapes_for<struct vxd_svdag_arena_cuda>(queue, args, run,
                                                                    form, ops, err);
}
