// SPDX-License-Identifier: Apache-2.0
/* Diffs go over a list of pairs, in Morton order and as low as they surely fit, so that there
 * is work for all threads wherever in the scene it is: their cells are counted, then each pair
 * knows its first row. The changes of large cells come last, by another list. */
#include <string.h>

#include "gpu/svdag/query/query_math.h"
#include "gpu/svdag/diff/diff_backends.h"
#include "gpu/svdag/diff/diff_math.h"

enum {
    MAX_TREE_CUBES = 4096,
    LEAST_HEIGHT = 4 /* 64 leaves are not worth sharing out */
};

/* A pair, and the row of the cell that it is of where there are rows. */
struct diff_entry {
    struct vxd_svdag_diff_tree_cube tree_cube;
    uint64_t row;
};

struct diff_run {
    const struct vxd_svdag_diff_call *call;
    struct diff_entry lists[2][MAX_TREE_CUBES];
    const struct diff_entry *list; /* the one that is done */
    size_t n;
    bool has_rows; /* it is of large cells, whose changes are looked for */
    uint64_t starts[MAX_TREE_CUBES + 1]; /* cells of each pair, then their sums */
};

/* Whether to go below a pair: of one with a row, whether more may be found there. */
static bool expands(const struct diff_run *run, const struct diff_entry *diff_entry)
{
    const struct vxd_svdag_diff_call *call = run->call;
    unsigned seen;
    bool is_more;

    if (!run->has_rows) {
        return true;
    }
    seen = call->rows.changes[diff_entry->row];
    is_more = vxd_svdag_diff_bits_tree_cube(&call->view, &call->cells.area,
                                            &diff_entry->tree_cube, &seen);
    call->rows.changes[diff_entry->row] = (uint8_t)seen;
    return is_more;
}

/* Puts the children of a pair in which something differs; returns how many. */
static size_t put_children(const struct vxd_svdag_diff_call *call,
                           const struct diff_entry *of, struct diff_entry *to)
{
    size_t n = 0;

    for (int octant = 0; octant < 8; octant++) {
        to[n].tree_cube = vxd_svdag_diff_child(&call->view, &of->tree_cube, octant);
        to[n].row = of->row;
        n += vxd_svdag_diff_may(&call->cells.area, &to[n].tree_cube);
    }
    return n;
}

/* From the n pairs of one height in the first list, as low as they surely fit. */
static void make_list(struct diff_run *run, int height, int least)
{
    int side = 0;

    for (; height > least && run->n > 0 && run->n <= MAX_TREE_CUBES / 8; height--) {
        size_t n = 0;

        for (size_t i = 0; i < run->n; i++) {
            const struct diff_entry *diff_entry = &run->lists[side][i];

            if (expands(run, diff_entry)) {
                n += put_children(run->call, diff_entry, &run->lists[1 - side][n]);
            }
        }
        run->n = n;
        side = 1 - side;
    }
    run->list = run->lists[side];
}

static void count_tree_cubes(void *context, size_t begin, size_t end)
{
    struct diff_run *run = context;

    for (size_t i = begin; i < end; i++) {
        run->starts[i] = vxd_svdag_diff_count(&run->call->view, &run->list[i].tree_cube,
                                              &run->call->cells);
    }
}

static void write_tree_cubes(void *context, size_t begin, size_t end)
{
    const struct diff_run *run = context;
    const struct vxd_svdag_diff_call *call = run->call;

    for (size_t i = begin; i < end; i++) {
        uint64_t start = run->starts[i];
        uint64_t skip = start < call->first ? call->first - start : 0;
        uint64_t row = start > call->first ? start - call->first : 0;

        if (run->starts[i + 1] > start + skip && row < call->limit) {
            (void)vxd_svdag_diff_write(&call->view, &run->list[i].tree_cube, &call->cells,
                                       &call->rows, row, skip, call->limit - row);
        }
    }
}

/* Looks at a pair for its row, which other threads may look for too. */
static void find_tree_cubes(void *context, size_t begin, size_t end)
{
    const struct diff_run *run = context;
    const struct vxd_svdag_diff_call *call = run->call;

    for (size_t i = begin; i < end; i++) {
        uint8_t *changes = &call->rows.changes[run->list[i].row];
        const unsigned seen = __atomic_load_n(changes, __ATOMIC_RELAXED);

        (void)__atomic_fetch_or(
            changes,
            (uint8_t)vxd_svdag_diff_bits(&call->view, &call->cells.area,
                                         &run->list[i].tree_cube, seen, false),
            __ATOMIC_RELAXED);
    }
}

static void find_rows(void *context, size_t begin, size_t end)
{
    const struct diff_run *run = context;
    const struct vxd_svdag_diff_call *call = run->call;

    for (size_t i = begin; i < end; i++) {
        const struct vxd_svdag_diff_tree_cube tree_cube = vxd_svdag_diff_of_row(
            &call->view, call->before, call->after, &call->rows, call->cells.level, i);

        call->rows.changes[i] = (uint8_t)vxd_svdag_diff_bits(
            &call->view, &call->cells.area, &tree_cube, 0, false);
    }
}

/* The changes of large cells: of few, a list of pairs below them is shared out. */
static void find_changes(struct vxd_pool *pool, struct diff_run *run, size_t n_rows)
{
    const struct vxd_svdag_diff_call *call = run->call;

    if (n_rows > MAX_TREE_CUBES / 8) {
        vxd_parallel_for(pool, n_rows, 1, find_rows, run);
        return;
    }
    for (size_t i = 0; i < n_rows; i++) {
        run->lists[0][i].tree_cube = vxd_svdag_diff_of_row(
            &call->view, call->before, call->after, &call->rows, call->cells.level, i);
        run->lists[0][i].row = i;
    }
    memset(call->rows.changes, 0, n_rows);
    run->n = n_rows;
    run->has_rows = true;
    make_list(run, call->cells.level, LEAST_HEIGHT);
    vxd_parallel_for(pool, run->n, 1, find_tree_cubes, run);
}

static void run_diff(struct vxd_pool *pool, struct diff_run *run)
{
    const struct vxd_svdag_diff_call *call = run->call;
    const int level = call->cells.level;
    uint64_t n_rows;
    uint64_t n = 0;

    run->lists[0][0].tree_cube = vxd_svdag_diff_at(&call->view, call->before, call->after,
                                                   0, 0, 0, call->view.depth);
    run->lists[0][0].row = 0;
    run->n = 1;
    run->has_rows = false;
    make_list(run, call->view.depth, level > LEAST_HEIGHT ? level : (int)LEAST_HEIGHT);
    vxd_parallel_for(pool, run->n, 1, count_tree_cubes, run);
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
    vxd_parallel_for(pool, run->n, 1, write_tree_cubes, run);
    if (level > VXD_SVDAG_DIFF_SMALL && call->rows.changes != NULL) {
        find_changes(pool, run, (size_t)n_rows);
    }
}

static enum vxd_status diff_job(struct vxd_pool *pool, const void *context,
                                struct vxd_err *err)
{
    const struct vxd_svdag_diff_call *call = context;
    struct diff_run *run = call->scratch;

    (void)err;
    if (vxd_svdag_area_is_empty(&call->cells.area) || call->before == call->after) {
        call->n_cells[0] = 0;
        call->n_cells[1] = 0;
        return VXD_OK;
    }
    run->call = call;
    run_diff(pool, run);
    return VXD_OK;
}

size_t vxd_svdag_diff_run_bytes(void)
{
    return sizeof(struct diff_run);
}

enum vxd_status vxd_svdag_diff_cpu(struct vxd_queue *queue,
                                   const struct vxd_svdag_diff_call *call,
                                   struct vxd_err *err)
{
    return vxd_queue_push(queue, diff_job, call, sizeof *call, err);
}
