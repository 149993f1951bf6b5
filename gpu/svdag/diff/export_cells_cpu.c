// SPDX-License-Identifier: Apache-2.0
/* Exports go over the box in parts: their cells are counted, then each part knows its first
 * row. A dense array's cells belong to one part each. */
#include "gpu/svdag/query/query_math.h"
#include "gpu/svdag/diff/cells_math.h"
#include "gpu/svdag/diff/diff_backends.h"

struct cells_subtrees {
    const struct vxd_svdag_cells_call *call;
    struct vxd_svdag_subtrees subtrees;
    uint64_t starts[VXD_SVDAG_MAX_SUBTREES + 1]; /* cells of each part, then their sums */
};

static void count_subtree(void *context, size_t begin, size_t end)
{
    struct cells_subtrees *run = context;
    const struct vxd_svdag_cells_call *call = run->call;

    for (size_t i = begin; i < end; i++) {
        struct vxd_svdag_position tree_cube =
            vxd_svdag_subtree(&call->view, call->root, &run->subtrees, (uint32_t)i);

        run->starts[i] = vxd_svdag_cells_count(&call->view, &tree_cube, &call->cells);
    }
}

static void write_subtree(void *context, size_t begin, size_t end)
{
    const struct cells_subtrees *run = context;
    const struct vxd_svdag_cells_call *call = run->call;

    for (size_t i = begin; i < end; i++) {
        uint64_t start = run->starts[i];
        uint64_t skip = start < call->first ? call->first - start : 0;
        uint64_t row = start > call->first ? start - call->first : 0;

        if (run->starts[i + 1] > start + skip && row < call->limit) {
            struct vxd_svdag_position tree_cube =
                vxd_svdag_subtree(&call->view, call->root, &run->subtrees, (uint32_t)i);

            (void)vxd_svdag_cells_write(&call->view, &tree_cube, &call->cells,
                                        &call->rows, row, skip, call->limit - row);
        }
    }
}

static enum vxd_status cells_job(struct vxd_pool *pool, const void *context,
                                 struct vxd_err *err)
{
    struct vxd_svdag_cells_call call = *(const struct vxd_svdag_cells_call *)context;
    struct cells_subtrees run;
    uint64_t n = 0;
    size_t n_subtrees;

    (void)err;
    *call.n_cells = 0;
    if (vxd_svdag_area_is_empty(&call.cells.area)) {
        return VXD_OK;
    }
    run.call = &call;
    run.subtrees = vxd_svdag_subtrees_of(&call.cells.area, call.cells.level);
    n_subtrees = vxd_svdag_subtrees_n(&run.subtrees);
    vxd_parallel_for(pool, n_subtrees, 1, count_subtree, &run);
    for (size_t i = 0; i < n_subtrees; i++) {
        uint64_t n_here = run.starts[i];

        run.starts[i] = n;
        n += n_here;
    }
    run.starts[n_subtrees] = n;
    if (call.rows.cells == NULL) {
        *call.n_cells = n;
        return VXD_OK;
    }
    vxd_parallel_for(pool, n_subtrees, 1, write_subtree, &run);
    n = n > call.first ? n - call.first : 0;
    *call.n_cells = n < call.limit ? n : call.limit;
    return VXD_OK;
}

enum vxd_status vxd_svdag_export_cells_cpu(struct vxd_queue *queue,
                                           const struct vxd_svdag_cells_call *call,
                                           struct vxd_err *err)
{
    return vxd_queue_push(queue, cells_job, call, sizeof *call, err);
}

struct dense_subtrees {
    const struct vxd_svdag_dense_call *call;
    struct vxd_svdag_subtrees subtrees;
};

static void dense_subtree(void *context, size_t begin, size_t end)
{
    const struct dense_subtrees *run = context;
    const struct vxd_svdag_dense_call *call = run->call;

    for (size_t i = begin; i < end; i++) {
        struct vxd_svdag_position tree_cube =
            vxd_svdag_subtree(&call->view, call->root, &run->subtrees, (uint32_t)i);

        vxd_svdag_dense_write(&call->view, &tree_cube, &call->cells, &call->dense);
    }
}

static enum vxd_status dense_job(struct vxd_pool *pool, const void *context,
                                 struct vxd_err *err)
{
    struct vxd_svdag_dense_call call = *(const struct vxd_svdag_dense_call *)context;
    struct dense_subtrees run = {
        &call, vxd_svdag_subtrees_of(&call.cells.area, call.cells.level)};

    (void)err;
    vxd_parallel_for(pool, vxd_svdag_subtrees_n(&run.subtrees), 1, dense_subtree, &run);
    return VXD_OK;
}

enum vxd_status vxd_svdag_export_dense_cpu(struct vxd_queue *queue,
                                           const struct vxd_svdag_dense_call *call,
                                           struct vxd_err *err)
{
    return vxd_queue_push(queue, dense_job, call, sizeof *call, err);
}
