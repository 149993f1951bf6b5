// SPDX-License-Identifier: Apache-2.0
/* Diffs go over a list of pairs, in Morton order and as low as they surely fit, so that there
 * is work for all threads wherever in the scene it is: their cells are counted, then each pair
 * knows its first row. The changes of large cells come last, part by part. */
#include <string.h>

#include "gpu/dag/query_backends.h"

enum {
    MAX_SPOTS = 4096,
    LEAST_HEIGHT = 4 /* 64 leaves are not worth sharing out */
};

struct diff_run {
    const struct vxd_dag_diff_call *call;
    struct vxd_dag_diff_spot lists[2][MAX_SPOTS];
    const struct vxd_dag_diff_spot *spots; /* the list that is done */
    size_t n;
    uint64_t starts[MAX_SPOTS + 1]; /* cells of each spot, then their sums */
    int split;
};

/* Puts the children of a spot in which something differs; returns how many. */
static size_t put_children(const struct vxd_dag_diff_call *call,
                           const struct vxd_dag_diff_spot *spot,
                           struct vxd_dag_diff_spot *to)
{
    size_t n = 0;

    for (int octant = 0; octant < 8; octant++) {
        to[n] = vxd_dag_diff_child(&call->view, spot, octant);
        n += vxd_dag_diff_may(&call->cells.area, &to[n]);
    }
    return n;
}

static void make_list(struct diff_run *run)
{
    const struct vxd_dag_diff_call *call = run->call;
    int least = call->cells.level > LEAST_HEIGHT ? call->cells.level : (int)LEAST_HEIGHT;
    int side = 0;

    run->lists[0][0] = vxd_dag_diff_at(&call->view, call->before, call->after, 0, 0, 0,
                                       call->view.depth);
    run->n = vxd_dag_diff_may(&call->cells.area, &run->lists[0][0]);
    for (int height = call->view.depth;
         height > least && run->n > 0 && run->n <= MAX_SPOTS / 8; height--) {
        size_t n = 0;

        for (size_t i = 0; i < run->n; i++) {
            n += put_children(call, &run->lists[side][i], &run->lists[1 - side][n]);
        }
        run->n = n;
        side = 1 - side;
    }
    run->spots = run->lists[side];
}

static void count_spots(void *context, size_t begin, size_t end)
{
    struct diff_run *run = context;

    for (size_t i = begin; i < end; i++) {
        run->starts[i] =
            vxd_dag_diff_count(&run->call->view, &run->spots[i], &run->call->cells);
    }
}

static void write_spots(void *context, size_t begin, size_t end)
{
    const struct diff_run *run = context;
    const struct vxd_dag_diff_call *call = run->call;

    for (size_t i = begin; i < end; i++) {
        uint64_t start = run->starts[i];
        uint64_t skip = start < call->first ? call->first - start : 0;
        uint64_t row = start > call->first ? start - call->first : 0;

        if (run->starts[i + 1] > start + skip && row < call->limit) {
            (void)vxd_dag_diff_write(&call->view, &run->spots[i], &call->cells,
                                     &call->rows, row, skip, call->limit - row);
        }
    }
}

/* Threads meet in the bytes of cells that are looked at in parts. */
static void find_changes(void *context, size_t begin, size_t end)
{
    const struct diff_run *run = context;
    const struct vxd_dag_diff_call *call = run->call;

    for (size_t i = begin; i < end; i++) {
        const struct vxd_dag_diff_spot spot =
            vxd_dag_diff_part(&call->view, call->before, call->after, &call->rows,
                              call->cells.level, run->split, i);
        const unsigned bits =
            vxd_dag_diff_bits(&call->view, &call->cells.area, &spot, false);

        (void)__atomic_fetch_or(&call->rows.changes[i >> 3 * run->split], (uint8_t)bits,
                                __ATOMIC_RELAXED);
    }
}

static void run_diff(struct vxd_pool *pool, struct diff_run *run)
{
    const struct vxd_dag_diff_call *call = run->call;
    uint64_t n_rows;
    uint64_t n = 0;

    make_list(run);
    vxd_parallel_for(pool, run->n, 1, count_spots, run);
    for (size_t i = 0; i < run->n; i++) {
        uint64_t n_here = run->starts[i];

        run->starts[i] = n;
        n += n_here;
    }
    run->starts[run->n] = n;
    n_rows = n > call->first ? n - call->first : 0;
    n_rows = n_rows < call->limit ? n_rows : call->limit;
    call->n_cells[0] = n_rows;
    call->n_cells[1] = n;
    if (n_rows == 0) {
        return;
    }
    vxd_parallel_for(pool, run->n, 1, write_spots, run);
    if (call->cells.level > VXD_DAG_LEAF_HEIGHT && call->rows.changes != NULL) {
        run->split = vxd_dag_diff_levels(n_rows, call->cells.level);
        memset(call->rows.changes, 0, n_rows);
        vxd_parallel_for(pool, (size_t)n_rows << 3 * run->split, 64, find_changes, run);
    }
}

static enum vxd_status diff_job(struct vxd_pool *pool, const void *context,
                                struct vxd_err *err)
{
    const struct vxd_dag_diff_call *call = context;
    struct diff_run *run = call->scratch;

    (void)err;
    if (vxd_dag_area_is_empty(&call->cells.area) || call->before == call->after) {
        call->n_cells[0] = 0;
        call->n_cells[1] = 0;
        return VXD_OK;
    }
    run->call = call;
    run_diff(pool, run);
    return VXD_OK;
}

size_t vxd_dag_diff_run_bytes(void)
{
    return sizeof(struct diff_run);
}

enum vxd_status vxd_dag_diff_cpu(struct vxd_queue *queue,
                                 const struct vxd_dag_diff_call *call,
                                 struct vxd_err *err)
{
    return vxd_queue_push(queue, diff_job, call, sizeof *call, err);
}
