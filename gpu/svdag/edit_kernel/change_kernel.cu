// SPDX-License-Identifier: Apache-2.0
/* What an edit of several traversals changed, for scenes in the arena. */
#include "gpu/svdag/edit_kernel/edit_kernel_cuda.h"

enum vxd_status vxd_svdag_launch_change(struct vxd_queue *queue,
                                        const struct vxd_svdag_kernel_args *args,
                                        struct vxd_err *err)
{
    return vxd_svdag_launch_change_for<struct vxd_svdag_arena_cuda>(queue, args, err);
}
