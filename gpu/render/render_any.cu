// SPDX-License-Identifier: Apache-2.0
/* Pictures of scenes that track free space, or with a limit of detail, a clip box or colours beside
 * the palette's. */
#include "gpu/render/render_cuda.h"

enum vxd_status vxd_render_draw_any_cuda(struct vxd_queue *queue,
                                         const struct vxd_render_call *call,
                                         struct vxd_err *err)
{
    return vxd_render_launch(queue, call, err);
}
