// SPDX-License-Identifier: Apache-2.0
/* CUDA backend of diffs. It works as exports do (export_cells_cuda.h), with two
 * references a cube. One block makes a list of up to 16384 pairs that differ, in Morton
 * order; warps count the cells of each; one block sums the counts up; warps write the
 * cells. Last, of large cells, it finds what became of their voxels: a warp a cell, or
 * where cells are few by another list, of pairs below them.
 *
 * Bytes: the nodes that the trees do not share, twice or three times; 13 out a row. */
#ifndef VXD_GPU_SVDAG_DIFF_DIFF_CELLS_CUDA_H
#define VXD_GPU_SVDAG_DIFF_DIFF_CELLS_CUDA_H

#include "gpu/svdag/diff/diff_backends.h"
#include "gpu/svdag/diff/diff_math.h"
#include "gpu/svdag/query/query_cuda.h"

/* Pairs of lists are no lower than this, nor than cells: eight leaves for a warp. */
#define VXD_SVDAG_DIFF_LEAST_HEIGHT 3

/* --- a warp's traversal, as in tree_walk_cuda.h ------------------------------------------ */

struct vxd_svdag_diff_walk {
    uint64_t places[VXD_SVDAG_WALK_CAPACITY];
    uint32_t before[VXD_SVDAG_WALK_CAPACITY];
    uint32_t after[VXD_SVDAG_WALK_CAPACITY];
};

/* The octants of a pair in which something of the area may differ. */
static __device__ __forceinline__ uint32_t
vxd_svdag_diff_child_mask(const struct vxd_svdag_diff_call *call,
                          const struct vxd_svdag_diff_tree_cube *tree_cube)
{
    uint32_t child_mask = 0;

    for (uint32_t rest = vxd_svdag_child_mask(&call->view, tree_cube->at.ref) |
                         vxd_svdag_child_mask(&call->view, tree_cube->after);
         rest != 0; rest &= rest - 1) {
        const int octant = __ffs((int)rest) - 1;
        const struct vxd_svdag_diff_tree_cube child =
            vxd_svdag_diff_child(&call->view, tree_cube, octant);

        child_mask |= vxd_svdag_diff_may(&call->cells.area, &child) ? 1u << octant : 0;
    }
    return child_mask;
}

static __device__ __forceinline__ void
vxd_svdag_diff_walk_set(struct vxd_svdag_diff_walk *walk, uint32_t at,
                        const struct vxd_svdag_diff_tree_cube *tree_cube)
{
    walk->places[at] = vxd_svdag_place(&tree_cube->at);
    walk->before[at] = tree_cube->at.ref;
    walk->after[at] = tree_cube->after;
}

static __device__ __forceinline__ struct vxd_svdag_diff_tree_cube
vxd_svdag_diff_walk_get(const struct vxd_svdag_diff_walk *walk, uint32_t at)
{
    struct vxd_svdag_diff_tree_cube tree_cube;

    tree_cube.at = vxd_svdag_tree_cube_of(walk->before[at], walk->places[at]);
    tree_cube.after = walk->after[at];
    return tree_cube;
}

static __device__ __forceinline__ uint32_t vxd_svdag_diff_walk_begin(
    struct vxd_svdag_diff_walk *walk, const struct vxd_svdag_diff_tree_cube *tree_cube)
{
    __syncwarp();
    if (threadIdx.x % 32 == 0) {
        vxd_svdag_diff_walk_set(walk, 0, tree_cube);
    }
    __syncwarp();
    return 1;
}

/* As vxd_svdag_walk_put. */
static __device__ __forceinline__ uint32_t vxd_svdag_diff_walk_put(
    const struct vxd_svdag_view *view, struct vxd_svdag_diff_walk *walk, uint32_t n,
    const struct vxd_svdag_diff_tree_cube *tree_cube, bool stays, uint32_t child_mask)
{
    const uint32_t lane = threadIdx.x % 32;
    const uint32_t count = stays ? 1 : (uint32_t)__popc(child_mask);
    uint32_t end = count;
    uint32_t at;

    for (uint32_t step = 1; step < 32; step *= 2) {
        uint32_t other = __shfl_up_sync(UINT32_MAX, end, step);

        end += lane >= step ? other : 0;
    }
    n += __shfl_sync(UINT32_MAX, end, 31);
    at = n - 1 - (end - count);
    /* Every thread has read what it took. */
    __syncwarp();
    if (stays) {
        vxd_svdag_diff_walk_set(walk, at, tree_cube);
    } else {
        for (uint32_t rest = child_mask; rest != 0; rest &= rest - 1, at--) {
            const struct vxd_svdag_diff_tree_cube child =
                vxd_svdag_diff_child(view, tree_cube, __ffs((int)rest) - 1);

            vxd_svdag_diff_walk_set(walk, at, &child);
        }
    }
    __syncwarp();
    return n;
}

/* As vxd_svdag_walk_run: visitor->visit(cube) says whether the traversal goes on below
 * the cube. */
template <typename VISITOR>
static __device__ __forceinline__ void
vxd_svdag_diff_walk_run(const struct vxd_svdag_diff_call *call,
                        struct vxd_svdag_diff_walk *walk,
                        const struct vxd_svdag_diff_tree_cube *from, VISITOR *visitor)
{
    const uint32_t lane = threadIdx.x % 32;
    uint32_t n = vxd_svdag_diff_walk_begin(walk, from);

    while (n > 0) {
        const uint32_t share = vxd_svdag_walk_share(n);
        struct vxd_svdag_diff_tree_cube tree_cube = *from;
        uint32_t child_mask = 0;

        if (lane < share) {
            tree_cube = vxd_svdag_diff_walk_get(walk, n - 1 - lane);
            child_mask = visitor->visit(&tree_cube)
                             ? vxd_svdag_diff_child_mask(call, &tree_cube)
                             : 0;
        }
        n = vxd_svdag_diff_walk_put(&call->view, walk, n - share, &tree_cube, false,
                                    child_mask);
        visitor->after_round();
    }
}

/* --- the list --------------------------------------------------------------------------- */

/* Lists in scratch memory (diff_backends.h): the one that is made, and the one it is made
 * from. */
struct vxd_svdag_diff_lists {
    uint32_t *head; /* n, the number of the list, 0 or 1, and whether there is one */
    uint64_t *places[2];
    uint32_t *before[2];
    uint32_t *after[2];
    uint32_t *rows[2]; /* of their cells, once there are rows */
    uint64_t *starts;  /* cells before each cube, after them the number of all */
    uint32_t *found;   /* changes of few rows */
};

static __device__ __forceinline__ struct vxd_svdag_diff_lists
vxd_svdag_diff_lists_of(const struct vxd_svdag_diff_call *call)
{
    unsigned char *at = (unsigned char *)call->scratch;
    struct vxd_svdag_diff_lists lists;
    uint32_t *refs;

    lists.head = (uint32_t *)at;
    at += VXD_SVDAG_TREE_CUBES_HEAD_BYTES;
    refs = (uint32_t *)(at + (size_t)2 * VXD_SVDAG_TREE_CUBES_MOST * sizeof(uint64_t));
    for (int side = 0; side < 2; side++) {
        lists.places[side] = (uint64_t *)at + (size_t)side * VXD_SVDAG_TREE_CUBES_MOST;
        lists.before[side] = refs + (size_t)side * VXD_SVDAG_TREE_CUBES_MOST;
        lists.after[side] = refs + (size_t)(2 + side) * VXD_SVDAG_TREE_CUBES_MOST;
        lists.rows[side] = refs + (size_t)(4 + side) * VXD_SVDAG_TREE_CUBES_MOST;
    }
    lists.starts =
        (uint64_t *)((unsigned char *)call->scratch + VXD_SVDAG_DIFF_LIST_BYTES);
    lists.found = (uint32_t *)(lists.starts + VXD_SVDAG_TREE_CUBES_MOST + 1);
    return lists;
}

static __device__ __forceinline__ struct vxd_svdag_diff_tree_cube
vxd_svdag_diff_lists_get(const struct vxd_svdag_diff_lists *lists, uint32_t side,
                         uint32_t i)
{
    struct vxd_svdag_diff_tree_cube tree_cube;

    tree_cube.at = vxd_svdag_tree_cube_of(lists->before[side][i], lists->places[side][i]);
    tree_cube.after = lists->after[side][i];
    return tree_cube;
}

static __device__ __forceinline__ void
vxd_svdag_diff_lists_set(const struct vxd_svdag_diff_lists *lists, uint32_t side,
                         uint32_t i, const struct vxd_svdag_diff_tree_cube *tree_cube,
                         uint32_t row)
{
    lists->rows[side][i] = row;
    lists->places[side][i] = vxd_svdag_place(&tree_cube->at);
    lists->before[side][i] = tree_cube->at.ref;
    lists->after[side][i] = tree_cube->after;
}

/* Adds what a pair shows to what its row has found. True: more may be found below it. */
static __device__ bool
vxd_svdag_diff_is_open(const struct vxd_svdag_diff_call *call,
                       const struct vxd_svdag_diff_tree_cube *tree_cube, uint32_t *found)
{
    unsigned seen = *(volatile uint32_t *)found;
    const bool is_more =
        vxd_svdag_diff_bits_tree_cube(&call->view, &call->cells.area, tree_cube, &seen);

    (void)atomicOr(found, seen);
    return is_more;
}

/* By the block: makes a height of the list from the n cubes of the one above; returns how
 * many. */
template <bool HAS_ROWS>
static __device__ uint32_t vxd_svdag_diff_list_below(
    const struct vxd_svdag_diff_call *call, const struct vxd_svdag_diff_lists *lists,
    uint32_t side, uint32_t n, int height)
{
    uint32_t n_next = 0;

    for (uint32_t base = 0; base < n; base += VXD_SVDAG_TREE_CUBES_THREADS) {
        const uint32_t i = base + threadIdx.x;
        struct vxd_svdag_diff_tree_cube tree_cube = {{VXD_SVDAG_EMPTY, 0, 0, 0, height},
                                                     VXD_SVDAG_EMPTY};
        uint32_t child_mask = 0;
        uint32_t row = 0;
        uint64_t total;
        uint32_t at;

        if (i < n) {
            tree_cube = vxd_svdag_diff_lists_get(lists, side, i);
            row = lists->rows[side][i];
            child_mask =
                !HAS_ROWS || vxd_svdag_diff_is_open(call, &tree_cube, &lists->found[row])
                    ? vxd_svdag_diff_child_mask(call, &tree_cube)
                    : 0;
        }
        at = n_next +
             (uint32_t)vxd_svdag_block_before((uint64_t)__popc(child_mask), &total);
        for (; child_mask != 0; child_mask &= child_mask - 1, at++) {
            const struct vxd_svdag_diff_tree_cube child =
                vxd_svdag_diff_child(&call->view, &tree_cube, __ffs((int)child_mask) - 1);

            vxd_svdag_diff_lists_set(lists, 1 - side, at, &child, row);
        }
        n_next += (uint32_t)total;
    }
    return n_next;
}

/* By the block: makes the list from n pairs of one height, in list 0; as low as they
 * surely fit. */
template <bool HAS_ROWS>
static __device__ void vxd_svdag_diff_list_make(const struct vxd_svdag_diff_call *call,
                                                const struct vxd_svdag_diff_lists *lists,
                                                uint32_t n, int height, int least)
{
    uint32_t side = 0;

    for (; n > 0 && n <= VXD_SVDAG_TREE_CUBES_MOST / 8 && height > least; height--) {
        __syncthreads();
        n = vxd_svdag_diff_list_below<HAS_ROWS>(call, lists, side, n, height);
        side = 1 - side;
    }
    if (threadIdx.x == 0) {
        lists->head[0] = n;
        lists->head[1] = side;
    }
}

template <bool IS_SPLIT>
static __global__ void __launch_bounds__(VXD_SVDAG_TREE_CUBES_THREADS)
    diff_tree_cubes_kernel(const __grid_constant__ struct vxd_svdag_diff_call call)
{
    const struct vxd_svdag_diff_lists lists = vxd_svdag_diff_lists_of(&call);
    const int depth = call.view.depth;
    const struct vxd_svdag_diff_tree_cube top = {{call.before, 0, 0, 0, depth},
                                                 call.after};

    if (threadIdx.x == 0) {
        vxd_svdag_diff_lists_set(&lists, 0, 0, &top, 0);
    }
    vxd_svdag_diff_list_make<false>(
        &call, &lists, vxd_svdag_diff_may(&call.cells.area, &top) ? 1 : 0, depth,
        max(call.cells.level, VXD_SVDAG_DIFF_LEAST_HEIGHT));
}

/* --- cells ------------------------------------------------------------------------------ */

template <bool IS_SPLIT> struct vxd_svdag_diff_counter {
    const struct vxd_svdag_diff_call *call;
    uint64_t n; /* by this thread */

    __device__ bool visit(const struct vxd_svdag_diff_tree_cube *tree_cube)
    {
        return vxd_svdag_diff_count_tree_cube(&call->view, &call->cells, tree_cube, &n);
    }
    __device__ void after_round(void)
    {
    }
};

/* Writes how many cells each cube has to where its start will be. */
template <bool IS_SPLIT>
static __global__ void __launch_bounds__(VXD_SVDAG_WALK_THREADS)
    diff_count_kernel(const __grid_constant__ struct vxd_svdag_diff_call call)
{
    __shared__ struct vxd_svdag_diff_walk walks[VXD_SVDAG_WALK_WARPS];
    const uint32_t warp = threadIdx.x / 32;
    const struct vxd_svdag_diff_lists lists = vxd_svdag_diff_lists_of(&call);

    for (uint32_t i = blockIdx.x * VXD_SVDAG_WALK_WARPS + warp; i < lists.head[0];
         i += gridDim.x * VXD_SVDAG_WALK_WARPS) {
        const struct vxd_svdag_diff_tree_cube tree_cube =
            vxd_svdag_diff_lists_get(&lists, lists.head[1], i);
        vxd_svdag_diff_counter<IS_SPLIT> counter = {&call, 0};
        uint64_t n;

        vxd_svdag_diff_walk_run(&call, &walks[warp], &tree_cube, &counter);
        n = vxd_svdag_warp_sum(counter.n);
        if (threadIdx.x % 32 == 0) {
            lists.starts[i] = n;
        }
    }
}

/* One block: counts become starts. A thread has consecutive cubes. */
template <bool IS_SPLIT>
static __global__ void __launch_bounds__(VXD_SVDAG_TREE_CUBES_THREADS)
    diff_sum_kernel(const __grid_constant__ struct vxd_svdag_diff_call call)
{
    const struct vxd_svdag_diff_lists lists = vxd_svdag_diff_lists_of(&call);
    const uint32_t n = lists.head[0];
    const uint32_t share =
        (n + VXD_SVDAG_TREE_CUBES_THREADS - 1) / VXD_SVDAG_TREE_CUBES_THREADS;
    const uint32_t begin = min(n, threadIdx.x * share);
    const uint32_t end = min(n, begin + share);
    uint64_t sum = 0;
    uint64_t total;

    for (uint32_t i = begin; i < end; i++) {
        sum += lists.starts[i];
    }
    sum = vxd_svdag_block_before(sum, &total);
    for (uint32_t i = begin; i < end; i++) {
        uint64_t count = lists.starts[i];

        lists.starts[i] = sum;
        sum += count;
    }
    if (threadIdx.x == 0) {
        const uint64_t n_rows = total > call.first ? total - call.first : 0;

        lists.starts[n] = total;
        call.n_cells[0] = min(n_rows, call.limit);
        call.n_cells[1] = total;
    }
}

/* The cells that a call asks for: numbers first to last - 1. */
struct vxd_svdag_diff_window {
    uint64_t first;
    uint64_t last;
};

/* Writes the cells of a cube that is as low as a cell, or as a leaf, the first of which
 * is number `start`; some of them are wanted. */
static __device__ void vxd_svdag_diff_write_cells(
    const struct vxd_svdag_diff_call *call, const struct vxd_svdag_diff_window *window,
    const struct vxd_svdag_diff_tree_cube *tree_cube, uint64_t start)
{
    uint64_t skip = start < window->first ? window->first - start : 0;
    const uint64_t from = start + skip;

    if (call->cells.level <= VXD_SVDAG_LEAF_HEIGHT) {
        (void)vxd_svdag_diff_put_leaf(&call->view, tree_cube, &call->cells, &call->rows,
                                      from - window->first, &skip, window->last - from);
    } else {
        vxd_svdag_diff_put_cell(&call->view, tree_cube, &call->cells, &call->rows,
                                from - window->first);
    }
}

/* Writes what is wanted of a cube's cells, of which the first is number `start`; as
 * vxd_svdag_export_tree_cube does. */
static __device__ void vxd_svdag_diff_write_tree_cube(
    const struct vxd_svdag_diff_call *call, const struct vxd_svdag_diff_window *window,
    struct vxd_svdag_diff_walk *walk, const struct vxd_svdag_diff_tree_cube *from,
    uint64_t start)
{
    const uint32_t lane = threadIdx.x % 32;
    const int low = max(call->cells.level, (int)VXD_SVDAG_LEAF_HEIGHT);
    uint32_t n = vxd_svdag_diff_walk_begin(walk, from);

    /* A round writes or skips the first of its cubes, or expands it. */
    while (n > 0 && start < window->last) {
        const uint32_t share = vxd_svdag_walk_share(n);
        struct vxd_svdag_diff_tree_cube tree_cube = *from;
        uint64_t n_cells = 0;
        uint64_t end;
        bool is_known = true;
        bool is_low = false;
        bool is_wanted;
        bool is_left;
        uint32_t n_known;
        uint32_t n_done;

        if (lane < share) {
            tree_cube = vxd_svdag_diff_walk_get(walk, n - 1 - lane);
            is_known = !vxd_svdag_diff_count_tree_cube(&call->view, &call->cells,
                                                       &tree_cube, &n_cells);
            is_low = tree_cube.at.height <= low;
        }
        /* Number of the cell after this thread's: right where all before it are known. */
        end = n_cells;
        for (uint32_t step = 1; step < 32; step *= 2) {
            uint64_t other = __shfl_up_sync(UINT32_MAX, end, step);

            end += lane >= step ? other : 0;
        }
        end += start;
        n_known = (uint32_t)__ffs((int)__ballot_sync(UINT32_MAX, !is_known)) - 1;
        is_wanted = n_cells > 0 && end > window->first && end - n_cells < window->last;
        n_done = (uint32_t)__ffs((int)__ballot_sync(
                     UINT32_MAX, lane >= n_known || (is_wanted && !is_low))) -
                 1;
        n_done = min(n_done, share);
        if (lane < n_done && is_wanted) {
            vxd_svdag_diff_write_cells(call, window, &tree_cube, end - n_cells);
        }
        /* n_done = 0: nothing was skipped, and the first cube is expanded, so it is
         * not low. */
        start = n_done > 0 ? __shfl_sync(UINT32_MAX, end, (int)n_done - 1) : start;
        is_left = lane >= n_done && lane < share && !(is_known && n_cells == 0);
        n = vxd_svdag_diff_walk_put(
            &call->view, walk, n - share, &tree_cube, is_left && is_low,
            is_left && !is_low ? vxd_svdag_diff_child_mask(call, &tree_cube) : 0);
    }
}

template <bool IS_SPLIT>
static __global__ void __launch_bounds__(VXD_SVDAG_WALK_THREADS)
    diff_write_kernel(const __grid_constant__ struct vxd_svdag_diff_call call)
{
    __shared__ struct vxd_svdag_diff_walk walks[VXD_SVDAG_WALK_WARPS];
    const uint32_t warp = threadIdx.x / 32;
    const struct vxd_svdag_diff_lists lists = vxd_svdag_diff_lists_of(&call);
    struct vxd_svdag_diff_window window = {call.first, call.first + call.limit};

    window.last = window.last < call.first ? UINT64_MAX : window.last;
    for (uint32_t i = blockIdx.x * VXD_SVDAG_WALK_WARPS + warp; i < lists.head[0];
         i += gridDim.x * VXD_SVDAG_WALK_WARPS) {
        const struct vxd_svdag_diff_tree_cube tree_cube =
            vxd_svdag_diff_lists_get(&lists, lists.head[1], i);

        if (lists.starts[i + 1] > window.first && lists.starts[i] < window.last) {
            vxd_svdag_diff_write_tree_cube(&call, &window, &walks[warp], &tree_cube,
                                           lists.starts[i]);
        }
    }
}

/* --- changes of large cells ------------------------------------------------------------- */

template <bool IS_SPLIT> struct vxd_svdag_diff_finder {
    const struct vxd_svdag_diff_call *call;
    unsigned seen; /* by the warp's threads */

    __device__ bool visit(const struct vxd_svdag_diff_tree_cube *tree_cube)
    {
        return vxd_svdag_diff_bits_tree_cube(&call->view, &call->cells.area, tree_cube,
                                             &seen);
    }
    __device__ void after_round(void)
    {
        seen = __reduce_or_sync(UINT32_MAX, seen);
    }
};

static __device__ __forceinline__ struct vxd_svdag_diff_tree_cube
vxd_svdag_diff_row_tree_cube(const struct vxd_svdag_diff_call *call, uint64_t row)
{
    return vxd_svdag_diff_of_row(&call->view, call->before, call->after, &call->rows,
                                 call->cells.level, row);
}

/* One block: the list of few rows. */
template <bool IS_SPLIT>
static __global__ void __launch_bounds__(VXD_SVDAG_TREE_CUBES_THREADS)
    diff_subtrees_kernel(const __grid_constant__ struct vxd_svdag_diff_call call)
{
    const struct vxd_svdag_diff_lists lists = vxd_svdag_diff_lists_of(&call);
    const uint64_t n = call.n_cells[0];
    const bool has_list = n <= VXD_SVDAG_DIFF_FEW_ROWS;

    if (threadIdx.x == 0) {
        lists.head[2] = has_list ? 1 : 0;
    }
    if (!has_list) {
        return;
    }
    for (uint32_t i = threadIdx.x; i < n; i += VXD_SVDAG_TREE_CUBES_THREADS) {
        const struct vxd_svdag_diff_tree_cube tree_cube =
            vxd_svdag_diff_row_tree_cube(&call, i);

        vxd_svdag_diff_lists_set(&lists, 0, i, &tree_cube, i);
        lists.found[i] = 0;
    }
    vxd_svdag_diff_list_make<true>(&call, &lists, (uint32_t)n, call.cells.level,
                                   VXD_SVDAG_DIFF_LEAST_HEIGHT);
}

/* A warp takes a pair of the list, or a row. */
template <bool IS_SPLIT>
static __global__ void __launch_bounds__(VXD_SVDAG_WALK_THREADS)
    diff_find_kernel(const __grid_constant__ struct vxd_svdag_diff_call call)
{
    __shared__ struct vxd_svdag_diff_walk walks[VXD_SVDAG_WALK_WARPS];
    const uint32_t warp = threadIdx.x / 32;
    const struct vxd_svdag_diff_lists lists = vxd_svdag_diff_lists_of(&call);
    const bool has_list = lists.head[2] != 0;
    const uint64_t n = has_list ? lists.head[0] : call.n_cells[0];

    for (uint64_t i = blockIdx.x * VXD_SVDAG_WALK_WARPS + warp; i < n;
         i += gridDim.x * VXD_SVDAG_WALK_WARPS) {
        const uint32_t side = has_list ? lists.head[1] : 0;
        uint32_t *found = has_list ? &lists.found[lists.rows[side][(uint32_t)i]] : NULL;
        const struct vxd_svdag_diff_tree_cube tree_cube =
            has_list ? vxd_svdag_diff_lists_get(&lists, side, (uint32_t)i)
                     : vxd_svdag_diff_row_tree_cube(&call, i);
        /* What others have found of the row need not be found again. */
        vxd_svdag_diff_finder<IS_SPLIT> finder = {
            &call, has_list ? *(volatile uint32_t *)found : 0};

        vxd_svdag_diff_walk_run(&call, &walks[warp], &tree_cube, &finder);
        if (threadIdx.x % 32 == 0 && has_list) {
            (void)atomicOr(found, finder.seen);
        } else if (threadIdx.x % 32 == 0) {
            call.rows.changes[i] = (uint8_t)finder.seen;
        }
    }
}

/* One block: writes what was found of few rows. */
template <bool IS_SPLIT>
static __global__ void __launch_bounds__(VXD_SVDAG_TREE_CUBES_THREADS)
    diff_join_kernel(const __grid_constant__ struct vxd_svdag_diff_call call)
{
    const struct vxd_svdag_diff_lists lists = vxd_svdag_diff_lists_of(&call);
    const uint64_t n = lists.head[2] != 0 ? call.n_cells[0] : 0;

    for (uint64_t i = threadIdx.x; i < n; i += VXD_SVDAG_TREE_CUBES_THREADS) {
        call.rows.changes[i] = (uint8_t)lists.found[i];
    }
}

template <bool IS_SPLIT>
static enum vxd_status vxd_svdag_diff_find(struct vxd_queue *queue,
                                           const struct vxd_svdag_diff_call *call,
                                           unsigned n_blocks, struct vxd_err *err)
{
    cudaStream_t stream = (cudaStream_t)queue->stream;
    enum vxd_status status;

    diff_subtrees_kernel<IS_SPLIT><<<1, VXD_SVDAG_TREE_CUBES_THREADS, 0, stream>>>(*call);
    VXD_TRY(vxd_cuda_launched(queue->context, "diff_subtrees_kernel", err));
    diff_find_kernel<IS_SPLIT><<<n_blocks, VXD_SVDAG_WALK_THREADS, 0, stream>>>(*call);
    VXD_TRY(vxd_cuda_launched(queue->context, "diff_find_kernel", err));
    diff_join_kernel<IS_SPLIT><<<1, VXD_SVDAG_TREE_CUBES_THREADS, 0, stream>>>(*call);
    VXD_TRY(vxd_cuda_launched(queue->context, "diff_join_kernel", err));
out:
    return status;
}

template <bool IS_SPLIT>
static enum vxd_status vxd_svdag_diff_launch(struct vxd_queue *queue,
                                             const struct vxd_svdag_diff_call *call,
                                             struct vxd_err *err)
{
    static_assert(IS_SPLIT == VXD_SVDAG_IS_SPLIT_FORM,
                  "a translation unit is compiled for one form of stores");
    cudaStream_t stream = (cudaStream_t)queue->stream;
    unsigned n_blocks = (unsigned)queue->context->info.n_multiprocessors * 7;
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    diff_tree_cubes_kernel<IS_SPLIT>
        <<<1, VXD_SVDAG_TREE_CUBES_THREADS, 0, stream>>>(*call);
    VXD_TRY(vxd_cuda_launched(queue->context, "diff_tree_cubes_kernel", err));
    diff_count_kernel<IS_SPLIT><<<n_blocks, VXD_SVDAG_WALK_THREADS, 0, stream>>>(*call);
    VXD_TRY(vxd_cuda_launched(queue->context, "diff_count_kernel", err));
    diff_sum_kernel<IS_SPLIT><<<1, VXD_SVDAG_TREE_CUBES_THREADS, 0, stream>>>(*call);
    VXD_TRY(vxd_cuda_launched(queue->context, "diff_sum_kernel", err));
    if (call->limit > 0) {
        diff_write_kernel<IS_SPLIT>
            <<<n_blocks, VXD_SVDAG_WALK_THREADS, 0, stream>>>(*call);
        VXD_TRY(vxd_cuda_launched(queue->context, "diff_write_kernel", err));
    }
    if (call->limit > 0 && call->cells.level > VXD_SVDAG_DIFF_SMALL &&
        call->rows.changes != NULL) {
        VXD_TRY(vxd_svdag_diff_find<IS_SPLIT>(queue, call, n_blocks, err));
    }
out:
    return status;
}

#endif
