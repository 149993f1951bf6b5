// SPDX-License-Identifier: Apache-2.0
#include "gpu/svdag/diff/diff_cells.h"

#include "gpu/svdag/store/store.h"
#include "gpu/svdag/query/query_math.h"
#include "gpu/svdag/store/store_math.h"
#include "gpu/svdag/diff/diff_backends.h"

enum vxd_status vxd_svdag_diff(struct vxd_queue *queue, const struct vxd_svdag *svdag,
                               uint32_t before, uint32_t after,
                               const struct vxd_svdag_diff_box *box, uint64_t first,
                               uint64_t limit, int32_t *cells, uint8_t *changes,
                               uint64_t *n_cells, struct vxd_err *err)
{
    struct vxd_svdag_diff_call call = {
        .view = svdag->view,
        .before = before,
        .after = after,
        .cells = {.area = vxd_svdag_area_of_box(box->low, box->high, svdag->view.depth),
                  .level = box->level},
        .first = first,
        .limit = limit,
        .rows = {cells, changes},
        .n_cells = n_cells};
    struct vxd_buffer scratch = {0};
    enum vxd_status status;

    if (box->level < 0 || box->level > svdag->view.depth) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "level", "%d, must be 0 to %d",
                        box->level, svdag->view.depth);
    }
    VXD_TRY(vxd_svdag_query_need(n_cells, "n_cells", err));
    if (limit > 0) {
        VXD_TRY(vxd_svdag_query_need(cells, "cells", err));
    }
    VXD_TRY(vxd_device_alloc(queue, vxd_svdag_diff_scratch_bytes(queue), &scratch, err));
    call.scratch = scratch.ptr;
    VXD_TRY(VXD_SVDAG_QUERY_BACKEND(queue, svdag, diff)(queue, &call, err));
out:
    vxd_device_free(queue, &scratch);
    return status;
}
