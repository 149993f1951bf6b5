// SPDX-License-Identifier: Apache-2.0
#include "gpu/svdag/diff/export_cells.h"

#include "gpu/svdag/store/store.h"
#include "gpu/svdag/query/query_math.h"
#include "gpu/svdag/store/store_math.h"
#include "gpu/svdag/diff/diff_backends.h"

/* Cells of a dense array. */
#define MAX_DENSE_CELLS ((int64_t)1 << 27)

static enum vxd_status check_box(const struct vxd_svdag *svdag,
                                 const struct vxd_svdag_export *box, struct vxd_err *err)
{
    if (box->level < 0 || box->level > svdag->view.depth) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "level", "%d, must be 0 to %d",
                        box->level, svdag->view.depth);
    }
    return VXD_OK;
}

static struct vxd_svdag_cells cells_of(const struct vxd_svdag *svdag,
                                       const struct vxd_svdag_export *box, bool free)
{
    struct vxd_svdag_cells cells = {
        vxd_svdag_area_of_box(box->low, box->high, svdag->view.depth), box->level,
        free ? VXD_SVDAG_FREE : VXD_SVDAG_OCCUPIED};

    return cells;
}

/* Runs a call; its scratch goes with it. */
static enum vxd_status run_cells(struct vxd_queue *queue, const struct vxd_svdag *svdag,
                                 struct vxd_svdag_cells_call *call, struct vxd_err *err)
{
    struct vxd_buffer scratch = {0};
    enum vxd_status status;

    VXD_TRY(vxd_device_alloc(queue, vxd_svdag_cells_scratch_bytes(queue), &scratch, err));
    call->scratch = scratch.ptr;
    VXD_TRY(VXD_SVDAG_QUERY_BACKEND(queue, svdag, export_cells)(queue, call, err));
out:
    vxd_device_free(queue, &scratch);
    return status;
}

enum vxd_status vxd_svdag_count_cells(struct vxd_queue *queue,
                                      const struct vxd_svdag *svdag, uint32_t root,
                                      const struct vxd_svdag_export *box,
                                      uint64_t *n_cells, struct vxd_err *err)
{
    struct vxd_svdag_cells_call call = {.view = svdag->view,
                                        .root = root,
                                        .cells = cells_of(svdag, box, box->free),
                                        .n_cells = n_cells};
    enum vxd_status status;

    VXD_TRY(check_box(svdag, box, err));
    VXD_TRY(vxd_svdag_query_need(n_cells, "n_cells", err));
    VXD_TRY(run_cells(queue, svdag, &call, err));
out:
    return status;
}

enum vxd_status vxd_svdag_export_cells(struct vxd_queue *queue,
                                       const struct vxd_svdag *svdag, uint32_t root,
                                       const struct vxd_svdag_export *box, uint64_t first,
                                       uint64_t limit, int32_t *cells, uint16_t *values,
                                       uint64_t *counts, uint64_t *n_cells,
                                       struct vxd_err *err)
{
    struct vxd_svdag_cells_call call = {.view = svdag->view,
                                        .root = root,
                                        .cells = cells_of(svdag, box, box->free),
                                        .first = first,
                                        .limit = limit,
                                        .rows = {cells, values, counts},
                                        .n_cells = n_cells};
    enum vxd_status status;

    VXD_TRY(check_box(svdag, box, err));
    VXD_TRY(vxd_svdag_query_need(n_cells, "n_cells", err));
    if (limit == 0) {
        return vxd_queue_fill(queue, n_cells, 0, sizeof *n_cells, err);
    }
    VXD_TRY(vxd_svdag_query_need(cells, "cells", err));
    VXD_TRY(run_cells(queue, svdag, &call, err));
out:
    return status;
}

/* The array that a box is, in cells. */
static enum vxd_status dense_of(const struct vxd_svdag_export *box,
                                struct vxd_svdag_dense *dense, struct vxd_err *err)
{
    int64_t side = (int64_t)1 << box->level;
    int64_t n = 1;

    for (int axis = 0; axis < 3; axis++) {
        int64_t length;

        if (box->low[axis] % side != 0 || box->high[axis] % side != 0) {
            return vxd_fail(
                err, VXD_INVALID_ARGUMENT, box->low[axis] % side != 0 ? "low" : "high",
                "must be multiples of %lld, the side of a cell", (long long)side);
        }
        if (box->high[axis] <= box->low[axis]) {
            length = 0;
        } else if (__builtin_sub_overflow(box->high[axis], box->low[axis], &length)) {
            length = INT64_MAX;
        }
        dense->low[axis] = box->low[axis] / side;
        dense->size[axis] = length / side;
        if (__builtin_mul_overflow(n, dense->size[axis], &n)) {
            n = INT64_MAX;
        }
    }
    if (dense->size[0] == 0 || dense->size[1] == 0 || dense->size[2] == 0) {
        dense->size[0] = 0;
    } else if (n > MAX_DENSE_CELLS) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "high",
                        "a box of more than %lld cells; take a higher level or parts",
                        (long long)MAX_DENSE_CELLS);
    }
    return VXD_OK;
}

enum vxd_status vxd_svdag_export_dense(struct vxd_queue *queue,
                                       const struct vxd_svdag *svdag, uint32_t root,
                                       const struct vxd_svdag_export *box,
                                       uint8_t *states, uint16_t *values,
                                       struct vxd_err *err)
{
    struct vxd_svdag_dense_call call = {.view = svdag->view,
                                        .root = root,
                                        .cells = cells_of(svdag, box, false),
                                        .dense = {.states = states, .values = values}};
    size_t n;
    enum vxd_status status;

    VXD_TRY(check_box(svdag, box, err));
    VXD_TRY(dense_of(box, &call.dense, err));
    if (call.dense.size[0] == 0) {
        return VXD_OK;
    }
    VXD_TRY(vxd_svdag_query_need(states, "states", err));
    n = (size_t)(call.dense.size[0] * call.dense.size[1] * call.dense.size[2]);
    VXD_TRY(vxd_queue_fill(queue, states, VXD_SVDAG_UNKNOWN, n, err));
    if (values != NULL) {
        VXD_TRY(vxd_queue_fill(queue, values, 0, n * sizeof *values, err));
    }
    if (!vxd_svdag_area_is_empty(&call.cells.area)) {
        VXD_TRY(VXD_SVDAG_QUERY_BACKEND(queue, svdag, export_dense)(queue, &call, err));
    }
out:
    return status;
}
