// SPDX-License-Identifier: Apache-2.0
/* CUDA backend of exports.
 *
 * Cells in Morton order: one block makes a list of up to 16384 cubes of the box, in order
 * (tree_walk_cuda.h); warps count the cells of each; one block sums the counts up; then
 * warps write the cubes' cells, each knowing its first row. A warp visits a cube in
 * order. Of the up to 32 cubes that it takes, those at the front whose cells are known
 * are written or, before the first row that is wanted, skipped as a whole; the others are
 * expanded and come back.
 *
 * Dense arrays: a thread a leaf, or a cell where cells are larger; neighbours along z
 * side by side.
 *
 * Bytes: the nodes, twice, and what is written: 12 to 22 a row. */
#ifndef VXD_GPU_SVDAG_DIFF_EXPORT_CELLS_CUDA_H
#define VXD_GPU_SVDAG_DIFF_EXPORT_CELLS_CUDA_H

#include "gpu/svdag/diff/cells_math.h"
#include "gpu/svdag/diff/diff_backends.h"
#include "gpu/svdag/query/query_cuda.h"

/* Cubes of lists are no lower than this, nor than cells. */
#define VXD_SVDAG_CELLS_LEAST_HEIGHT 5
#define VXD_SVDAG_DENSE_THREADS 128

/* --- lists of cells -------------------------------------------------------------------- */

/* How many cells are before each cube of the list; behind them the number of all. */
static __device__ uint64_t *
vxd_svdag_export_starts(const struct vxd_svdag_cells_call *call)
{
    return (uint64_t *)((unsigned char *)call->scratch + VXD_SVDAG_TREE_CUBES_BYTES);
}

template <bool IS_SPLIT> struct vxd_svdag_cells_filter {
    const struct vxd_svdag_cells_call *call;

    __device__ bool may(const struct vxd_svdag_position *tree_cube) const
    {
        return vxd_svdag_cells_may(&call->view, tree_cube, &call->cells);
    }
};

template <bool IS_SPLIT>
static __global__ void __launch_bounds__(VXD_SVDAG_TREE_CUBES_THREADS)
    cells_tree_cubes_kernel(const __grid_constant__ struct vxd_svdag_cells_call call)
{
    struct vxd_svdag_tree_cubes tree_cubes = vxd_svdag_tree_cubes_at(call.scratch, 0);
    vxd_svdag_cells_filter<IS_SPLIT> filter = {&call};

    vxd_svdag_tree_cubes_make(&call.view, call.root, &call.cells.area,
                              max(call.cells.level, VXD_SVDAG_CELLS_LEAST_HEIGHT),
                              &filter, &tree_cubes);
}

template <bool IS_SPLIT> struct vxd_svdag_cells_visitor {
    const struct vxd_svdag_cells_call *call;
    uint64_t n; /* by this thread */

    __device__ void visit(const struct vxd_svdag_position *tree_cube,
                          uint32_t *child_mask)
    {
        if (vxd_svdag_cells_count_tree_cube(&call->view, &call->cells, tree_cube, &n)) {
            *child_mask = vxd_svdag_child_mask(&call->view, tree_cube->ref);
        }
    }

    __device__ bool is_over(void) const
    {
        return false;
    }
};

/* Writes how many cells each cube has to where its start will be. */
template <bool IS_SPLIT>
static __global__ void __launch_bounds__(VXD_SVDAG_WALK_THREADS)
    count_cells_kernel(const __grid_constant__ struct vxd_svdag_cells_call call)
{
    __shared__ struct vxd_svdag_walk walks[VXD_SVDAG_WALK_WARPS];
    uint32_t warp = threadIdx.x / 32;
    struct vxd_svdag_tree_cubes tree_cubes = vxd_svdag_tree_cubes_at(call.scratch, 0);
    uint64_t *starts = vxd_svdag_export_starts(&call);

    for (uint32_t i = blockIdx.x * VXD_SVDAG_WALK_WARPS + warp; i < tree_cubes.head[0];
         i += gridDim.x * VXD_SVDAG_WALK_WARPS) {
        struct vxd_svdag_position tree_cube =
            vxd_svdag_tree_cubes_get(&tree_cubes, (int)tree_cubes.head[1], i);
        vxd_svdag_cells_visitor<IS_SPLIT> visitor = {&call, 0};
        uint64_t n;

        vxd_svdag_walk_run(&call.view, &walks[warp], &tree_cube, &visitor);
        n = vxd_svdag_warp_sum(visitor.n);
        if (threadIdx.x % 32 == 0) {
            starts[i] = n;
        }
    }
}

/* One block: counts become starts. A thread has consecutive cubes. */
template <bool IS_SPLIT>
static __global__ void __launch_bounds__(VXD_SVDAG_TREE_CUBES_THREADS)
    sum_cells_kernel(const __grid_constant__ struct vxd_svdag_cells_call call)
{
    uint32_t n = vxd_svdag_tree_cubes_at(call.scratch, 0).head[0];
    uint64_t *starts = vxd_svdag_export_starts(&call);
    uint32_t share =
        (n + VXD_SVDAG_TREE_CUBES_THREADS - 1) / VXD_SVDAG_TREE_CUBES_THREADS;
    uint32_t begin = min(n, threadIdx.x * share);
    uint32_t end = min(n, begin + share);
    uint64_t sum = 0;
    uint64_t total;

    for (uint32_t i = begin; i < end; i++) {
        sum += starts[i];
    }
    sum = vxd_svdag_block_before(sum, &total);
    for (uint32_t i = begin; i < end; i++) {
        uint64_t count = starts[i];

        starts[i] = sum;
        sum += count;
    }
    if (threadIdx.x == 0) {
        uint64_t n_rows = total > call.first ? total - call.first : 0;

        starts[n] = total;
        *call.n_cells = call.rows.cells == NULL ? total : min(n_rows, call.limit);
    }
}

/* The cells that a call asks for: numbers first to last - 1. */
struct vxd_svdag_cells_window {
    uint64_t first;
    uint64_t last;
};

/* Writes the cells of a cube that is as low as a cell, or as a leaf. Its first cell is
 * number `start`; some of them are wanted. */
static __device__ void
vxd_svdag_export_low_tree_cube(const struct vxd_svdag_cells_call *call,
                               const struct vxd_svdag_cells_window *window,
                               const struct vxd_svdag_position *tree_cube, uint64_t start)
{
    uint64_t skip = start < window->first ? window->first - start : 0;
    uint64_t from = start + skip;

    if (call->cells.level <= VXD_SVDAG_LEAF_HEIGHT) {
        (void)vxd_svdag_cells_put_leaf(&call->view, tree_cube, &call->cells, &call->rows,
                                       from - window->first, &skip, window->last - from);
    } else {
        (void)vxd_svdag_cells_put(&call->view, tree_cube, &call->cells, &call->rows,
                                  from - window->first);
    }
}

/* What a thread knows of its cube. */
struct vxd_svdag_cells_of_tree_cube {
    uint64_t n;    /* cells, where they are known */
    bool is_known; /* without a look at what is below */
    bool is_low;   /* the cube is written, not expanded */
};

static __device__ struct vxd_svdag_cells_of_tree_cube
vxd_svdag_export_look_at(const struct vxd_svdag_cells_call *call,
                         const struct vxd_svdag_position *tree_cube)
{
    struct vxd_svdag_cells_of_tree_cube found = {0, false, false};

    found.is_known =
        !vxd_svdag_cells_count_tree_cube(&call->view, &call->cells, tree_cube, &found.n);
    found.is_low =
        tree_cube->height <= max(call->cells.level, (int)VXD_SVDAG_LEAF_HEIGHT);
    return found;
}

/* Writes what is wanted of a cube's cells, of which the first is number `start`. */
static __device__ void vxd_svdag_export_tree_cube(
    const struct vxd_svdag_cells_call *call, const struct vxd_svdag_cells_window *window,
    struct vxd_svdag_walk *walk, const struct vxd_svdag_position *from, uint64_t start)
{
    uint32_t lane = threadIdx.x % 32;
    uint32_t n = vxd_svdag_walk_begin(walk, from);

    /* A round writes or skips the first of its cubes, or expands it. */
    while (n > 0 && start < window->last) {
        uint32_t share = vxd_svdag_walk_share(n);
        struct vxd_svdag_cells_of_tree_cube found = {0, true, false};
        struct vxd_svdag_position tree_cube = *from;
        uint64_t end;
        bool is_wanted;
        bool is_left;
        uint32_t n_known;
        uint32_t n_done;

        if (lane < share) {
            tree_cube = vxd_svdag_tree_cube_of(walk->refs[n - 1 - lane],
                                               walk->places[n - 1 - lane]);
            found = vxd_svdag_export_look_at(call, &tree_cube);
        }
        /* Number of the cell after this thread's: right where all before it are known. */
        end = found.n;
        for (uint32_t step = 1; step < 32; step *= 2) {
            uint64_t other = __shfl_up_sync(UINT32_MAX, end, step);

            end += lane >= step ? other : 0;
        }
        end += start;
        n_known = (uint32_t)__ffs((int)__ballot_sync(UINT32_MAX, !found.is_known)) - 1;
        is_wanted = found.n > 0 && end > window->first && end - found.n < window->last;
        n_done = (uint32_t)__ffs((int)__ballot_sync(
                     UINT32_MAX, lane >= n_known || (is_wanted && !found.is_low))) -
                 1;
        n_done = min(n_done, share);
        if (lane < n_done && is_wanted) {
            vxd_svdag_export_low_tree_cube(call, window, &tree_cube, end - found.n);
        }
        /* n_done = 0: nothing was skipped, and the first cube is expanded, so it is
         * not low. */
        start = n_done > 0 ? __shfl_sync(UINT32_MAX, end, (int)n_done - 1) : start;
        is_left = lane >= n_done && lane < share && !(found.is_known && found.n == 0);
        n = vxd_svdag_walk_put(
            &call->view, walk, n - share, &tree_cube, is_left && found.is_low,
            is_left && !found.is_low ? vxd_svdag_child_mask(&call->view, tree_cube.ref)
                                     : 0);
    }
}

template <bool IS_SPLIT>
static __global__ void __launch_bounds__(VXD_SVDAG_WALK_THREADS)
    write_cells_kernel(const __grid_constant__ struct vxd_svdag_cells_call call)
{
    __shared__ struct vxd_svdag_walk walks[VXD_SVDAG_WALK_WARPS];
    uint32_t warp = threadIdx.x / 32;
    struct vxd_svdag_tree_cubes tree_cubes = vxd_svdag_tree_cubes_at(call.scratch, 0);
    const uint64_t *starts = vxd_svdag_export_starts(&call);
    struct vxd_svdag_cells_window window = {call.first, call.first + call.limit};

    window.last = window.last < call.first ? UINT64_MAX : window.last;
    for (uint32_t i = blockIdx.x * VXD_SVDAG_WALK_WARPS + warp; i < tree_cubes.head[0];
         i += gridDim.x * VXD_SVDAG_WALK_WARPS) {
        struct vxd_svdag_position tree_cube =
            vxd_svdag_tree_cubes_get(&tree_cubes, (int)tree_cubes.head[1], i);

        if (starts[i + 1] > window.first && starts[i] < window.last) {
            vxd_svdag_export_tree_cube(&call, &window, &walks[warp], &tree_cube,
                                       starts[i]);
        }
    }
}

template <bool IS_SPLIT>
static enum vxd_status vxd_svdag_export_cells_launch(
    struct vxd_queue *queue, const struct vxd_svdag_cells_call *call, struct vxd_err *err)
{
    static_assert(IS_SPLIT == VXD_SVDAG_IS_SPLIT_FORM,
                  "a translation unit is compiled for one form of stores");
    cudaStream_t stream = (cudaStream_t)queue->stream;
    unsigned n_blocks = (unsigned)queue->context->info.n_multiprocessors * 8;
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    cells_tree_cubes_kernel<IS_SPLIT>
        <<<1, VXD_SVDAG_TREE_CUBES_THREADS, 0, stream>>>(*call);
    VXD_TRY(vxd_cuda_launched(queue->context, "cells_tree_cubes_kernel", err));
    count_cells_kernel<IS_SPLIT><<<n_blocks, VXD_SVDAG_WALK_THREADS, 0, stream>>>(*call);
    VXD_TRY(vxd_cuda_launched(queue->context, "count_cells_kernel", err));
    sum_cells_kernel<IS_SPLIT><<<1, VXD_SVDAG_TREE_CUBES_THREADS, 0, stream>>>(*call);
    VXD_TRY(vxd_cuda_launched(queue->context, "sum_cells_kernel", err));
    if (call->rows.cells != NULL) {
        write_cells_kernel<IS_SPLIT>
            <<<n_blocks, VXD_SVDAG_WALK_THREADS, 0, stream>>>(*call);
        VXD_TRY(vxd_cuda_launched(queue->context, "write_cells_kernel", err));
    }
out:
    return status;
}

/* --- dense arrays ---------------------------------------------------------------------- */

/* The cubes that hold an area: leaves or cells, by number, z fastest. */
struct vxd_svdag_dense_run {
    struct vxd_svdag_dense_call call;
    int height;
    uint32_t low[3]; /* in cubes */
    uint32_t size[3];
    uint64_t n;
};

template <bool IS_SPLIT>
static __global__ void __launch_bounds__(VXD_SVDAG_DENSE_THREADS)
    dense_kernel(const __grid_constant__ struct vxd_svdag_dense_run run)
{
    uint64_t i = (uint64_t)blockIdx.x * VXD_SVDAG_DENSE_THREADS + threadIdx.x;
    const struct vxd_svdag_dense_call *call = &run.call;
    struct vxd_svdag_position tree_cube;
    uint64_t row;
    uint32_t x;
    uint32_t y;
    uint32_t z;

    if (i >= run.n) {
        return;
    }
    row = i / run.size[2];
    z = run.low[2] + (uint32_t)(i % run.size[2]);
    y = run.low[1] + (uint32_t)(row % run.size[1]);
    x = run.low[0] + (uint32_t)(row / run.size[1]);
    tree_cube = vxd_svdag_position_at(&call->view, call->root, x << run.height,
                                      y << run.height, z << run.height, run.height);
    (void)vxd_svdag_dense_tree_cube(&call->view, &call->cells, &tree_cube, &call->dense);
}

template <bool IS_SPLIT>
static enum vxd_status vxd_svdag_export_dense_launch(
    struct vxd_queue *queue, const struct vxd_svdag_dense_call *call, struct vxd_err *err)
{
    static_assert(IS_SPLIT == VXD_SVDAG_IS_SPLIT_FORM,
                  "a translation unit is compiled for one form of stores");
    const struct vxd_svdag_area *area = &call->cells.area;
    struct vxd_svdag_dense_run run = {*call, 0, {0, 0, 0}, {0, 0, 0}, 1};
    unsigned n_blocks = 0;
    enum vxd_status status;

    run.height = call->cells.level > VXD_SVDAG_LEAF_HEIGHT ? call->cells.level
                                                           : (int)VXD_SVDAG_LEAF_HEIGHT;
    for (int axis = 0; axis < 3; axis++) {
        uint32_t last = (uint32_t)(area->high[axis] - 1) >> run.height;

        run.low[axis] = (uint32_t)area->low[axis] >> run.height;
        run.size[axis] = last - run.low[axis] + 1;
        run.n *= run.size[axis];
    }
    VXD_TRY(vxd_svdag_blocks_of((size_t)run.n, VXD_SVDAG_DENSE_THREADS, &n_blocks, err));
    VXD_TRY(vxd_cuda_enter(queue->context, err));
    dense_kernel<IS_SPLIT>
        <<<n_blocks, VXD_SVDAG_DENSE_THREADS, 0, (cudaStream_t)queue->stream>>>(run);
    VXD_TRY(vxd_cuda_launched(queue->context, "dense_kernel", err));
out:
    return status;
}

#endif
