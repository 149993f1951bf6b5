// SPDX-License-Identifier: Apache-2.0
/* Pictures of scenes that track no free space, without a limit of detail, a clip box or colours
 * beside the palette's; hands all others on. */
#define VXD_RENDER_PLAIN
#include "gpu/render/render_cuda.h"

enum vxd_status vxd_render_draw_cuda(struct vxd_queue *queue,
                                     const struct vxd_render_call *call,
                                     struct vxd_err *err)
{
    bool is_plain = call->view.free_value < 0 && call->params.detail_base <= 0 &&
                    call->params.detail_slope <= 0 && !call->params.has_clip &&
                    !vxd_render_has_materials(&call->params);

    return is_plain ? vxd_render_launch(queue, call, err)
                    : vxd_render_draw_any_cuda(queue, call, err);
}
