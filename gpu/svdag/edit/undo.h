// SPDX-License-Identifier: Apache-2.0
/* Taking an edit back, without what came after it. */
#ifndef VXD_GPU_SVDAG_EDIT_UNDO_H
#define VXD_GPU_SVDAG_EDIT_UNDO_H

#include "gpu/svdag/brush/brush.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Gives the root in which every voxel that differs between `before` and `after`, and in `head`
 * still is as in `after`, is as in `before`; all other voxels stay as in `head`. A voxel is
 * what it holds: not set, FREE, or occupied by its material. With before and after exchanged
 * it is the redo of what it took back.
 *
 * in      head, before, after   roots of this store; any may be equal
 * out     out    as of vxd_svdag_edit, with the changes from `head` to the new root; where
 *                needs_capacity is set, vxd_svdag_reserve is to be called and the undo repeated
 * errors  RESOURCE_EXHAUSTED  as of vxd_svdag_edit; every root reaches what it did
 * sync    asynchronous; an edit of its store, so none beside it; readers may be
 * cost    grows with what differs between before and after, not with the scene */
enum vxd_status vxd_svdag_undo(struct vxd_queue *queue, struct vxd_svdag *svdag,
                               uint32_t head, uint32_t before, uint32_t after,
                               struct vxd_svdag_edit_result *out, struct vxd_err *err);

/* vxd_svdag_undo and the wait, with room made as often as it needs. Blocking.
 * errors  of vxd_svdag_undo and vxd_svdag_reserve */
enum vxd_status vxd_svdag_undo_wait(struct vxd_queue *queue, struct vxd_svdag *svdag,
                                    uint32_t head, uint32_t before, uint32_t after,
                                    struct vxd_svdag_edit_result *out,
                                    struct vxd_err *err);

#ifdef __cplusplus
}
#endif
#endif
