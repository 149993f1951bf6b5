// SPDX-License-Identifier: Apache-2.0
/* Pictures of scenes in stores that split items, to compare: each node is read in two pieces. */
#define VXD_SVDAG_SPLIT_FORM

#include "gpu/paper/slab_stores.h"
#include "gpu/render/render_cuda.h"

enum vxd_status vxd_paper_draw_split(struct vxd_queue *queue,
                                     const struct vxd_render_call *call,
                                     struct vxd_err *err)
{
    return vxd_render_launch(queue, call, err);
}
