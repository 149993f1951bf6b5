// SPDX-License-Identifier: Apache-2.0
/* Edits of a scene's store: a list of operations applied to a root as one, and the undo of one
 * edit. What operations are stands in gpu/svdag/brush/brush.h. */
#ifndef VXD_GPU_SVDAG_EDIT_EDIT_H
#define VXD_GPU_SVDAG_EDIT_EDIT_H

#include "gpu/svdag/brush/brush.h"
#include "gpu/svdag/edit/undo.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Applies operations to a root.
 *
 * in      root   of this store
 *         ops    n_ops, 0 to VXD_SVDAG_MAX_OPS; host memory, borrowed until the wait
 * out     out    host memory; valid after the wait (on a GPU page-locked memory of
 *                vxd_host_alloc, else the call itself waits). With no operation the root stays
 * errors  INVALID_ARGUMENT    an operation outside the ranges above, VOXELS that do not
 *                             ascend or lie outside; err.field "ops[3].value", ... What
 *                             lists and heights hold is found by the wait (on a GPU without
 *                             a field), before anything is done
 *         RESOURCE_EXHAUSTED  (from the wait; on a GPU from vxd_svdag_reserve, or at once
 *                             where there is no scratch) the store is at its budget, or the
 *                             edit looked at more cubes than it may (svdag.h); *out is not to
 *                             be used, and every root reaches what it did: what the edit had
 *                             made is nobody's until an edit makes the same again
 * sync    asynchronous; one edit at a time a store, readers of older roots beside it
 * source  SVDAG editing, section 4.3 */
enum vxd_status vxd_svdag_edit(struct vxd_queue *queue, struct vxd_svdag *svdag,
                               uint32_t root, const struct vxd_svdag_op *ops,
                               size_t n_ops, struct vxd_svdag_edit_result *out,
                               struct vxd_err *err);

/* Operations, one list after the other, that as one edit cost least: on the CPU it mostly is one pass
 * over the tree, on a GPU one for each 64. Zero-initialised but for the backend = none yet. */
struct vxd_svdag_edit_batch {
    enum vxd_backend backend;
    int n_ops;
    int n_lists; /* of them, VOXELS */
};

/* Adds a list, all of it; false where it does not go with what is there: more than
 * VXD_SVDAG_MAX_OPS, on a GPU more than 4 lists of voxels, or what looks at the state before it. */
bool vxd_svdag_edit_batch_add(struct vxd_svdag_edit_batch *batch,
                              const struct vxd_svdag_op *ops, size_t n_ops);

/* Makes the room that an edit of this store asked for. Blocking; no edit runs beside it, readers
 * of roots may. Nothing where the result does not ask.
 * errors  RESOURCE_EXHAUSTED  over the store's budget or the context's, or more cubes than an
 *                             edit may look at; roots reach what they did */
enum vxd_status vxd_svdag_reserve(struct vxd_queue *queue, struct vxd_svdag *svdag,
                                  const struct vxd_svdag_edit_result *result,
                                  struct vxd_err *err);

/* vxd_svdag_edit and the wait, with room made as often as it needs. Blocking.
 * errors  of all three; CANCELLED  it should end (vxd_svdag_set_stop) */
enum vxd_status vxd_svdag_edit_wait(struct vxd_queue *queue, struct vxd_svdag *svdag,
                                    uint32_t root, const struct vxd_svdag_op *ops,
                                    size_t n_ops, struct vxd_svdag_edit_result *out,
                                    struct vxd_err *err);

#ifdef __cplusplus
}
#endif
#endif
