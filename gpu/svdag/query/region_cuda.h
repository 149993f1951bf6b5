// SPDX-License-Identifier: Apache-2.0
/* CUDA backend of overlaps and counts: a warp a region. Of a small region the threads
 * look at all leaves of its box, and each descends to its own; of others the warp
 * traverses the tree from the top, 32 cubes a round (tree_walk_cuda.h). Few regions are
 * counted by lists: a block makes the list of a region, of up to 16384 cubes, and then
 * every warp of the device counts some of them. Sums are of integers, so their order does
 * not matter. An overlap ends with the round in which all states were seen, and is not
 * split.
 *
 * Bytes: 80 in a region, 1 or 16 out; the words of the nodes at its border. */
#ifndef VXD_GPU_SVDAG_QUERY_REGION_CUDA_H
#define VXD_GPU_SVDAG_QUERY_REGION_CUDA_H

#include "gpu/svdag/query/tree_walk_cuda.h"

/* Cubes of lists are no lower than this, so that a cube is worth the descent to it. */
#define VXD_SVDAG_REGION_LEAST_HEIGHT 5

/* Leaves of a small region's box, at most. */
#define VXD_SVDAG_REGION_LEAVES 128

/* The leaves that hold a region's box. */
struct vxd_svdag_leaf_box {
    uint32_t low[3]; /* by leaves */
    uint32_t n[3];
    uint32_t n_all;
};

static __device__ __forceinline__ struct vxd_svdag_leaf_box
vxd_svdag_leaf_box_of(const struct vxd_svdag_area *area)
{
    struct vxd_svdag_leaf_box box;

    box.n_all = 1;
    for (int axis = 0; axis < 3; axis++) {
        uint32_t last = (uint32_t)(area->high[axis] - 1) >> VXD_SVDAG_LEAF_HEIGHT;

        box.low[axis] = (uint32_t)area->low[axis] >> VXD_SVDAG_LEAF_HEIGHT;
        box.n[axis] = last - box.low[axis] + 1;
        /* More than that are counted as one more, so that the product does not
         * overflow. */
        box.n_all *= min(box.n[axis], (uint32_t)VXD_SVDAG_REGION_LEAVES + 1);
    }
    return box;
}

/* Leaf i of a box below a cube that holds all of it. */
static __device__ __forceinline__ struct vxd_svdag_position
vxd_svdag_box_leaf(const struct vxd_svdag_view *view,
                   const struct vxd_svdag_position *top,
                   const struct vxd_svdag_leaf_box *box, uint32_t i)
{
    uint32_t row = i / box->n[2];
    uint32_t plane = row / box->n[1];
    int height = top->height;
    struct vxd_svdag_position leaf;

    leaf.x = (box->low[0] + plane) << VXD_SVDAG_LEAF_HEIGHT;
    leaf.y = (box->low[1] + row - plane * box->n[1]) << VXD_SVDAG_LEAF_HEIGHT;
    leaf.z = (box->low[2] + i - row * box->n[2]) << VXD_SVDAG_LEAF_HEIGHT;
    leaf.ref = vxd_svdag_descend(view, top->ref, leaf.x, leaf.y, leaf.z, &height);
    leaf.height = VXD_SVDAG_LEAF_HEIGHT;
    return leaf;
}

/* Visits the cubes of a region, until the answer is known. */
template <typename VISITOR>
static __device__ __forceinline__ void
vxd_svdag_run_region(const struct vxd_svdag_regions_call *call,
                     struct vxd_svdag_walk *walk, VISITOR *visitor)
{
    struct vxd_svdag_position top;
    struct vxd_svdag_leaf_box box;

    if (vxd_svdag_area_is_empty(&visitor->area)) {
        return;
    }
    top =
        vxd_svdag_top_of(&call->view, call->root, &visitor->area, VXD_SVDAG_LEAF_HEIGHT);
    box = vxd_svdag_leaf_box_of(&visitor->area);
    if (box.n_all > VXD_SVDAG_REGION_LEAVES) {
        vxd_svdag_walk_run(&call->view, walk, &top, visitor);
        return;
    }
    for (uint32_t first = 0; first < box.n_all && !visitor->is_over(); first += 32) {
        if (first + threadIdx.x % 32 < box.n_all) {
            struct vxd_svdag_position leaf =
                vxd_svdag_box_leaf(&call->view, &top, &box, first + threadIdx.x % 32);
            uint32_t child_mask; /* leaves have none */

            visitor->visit(&leaf, &child_mask);
        }
        __syncwarp();
    }
}

/* --- overlaps -------------------------------------------------------------------------- */

template <bool IS_SPLIT> struct vxd_svdag_states_visitor {
    const struct vxd_svdag_view *view;
    struct vxd_svdag_area area;
    unsigned seen; /* by this thread */
    unsigned all;  /* states that can occur */

    __device__ void visit(const struct vxd_svdag_position *tree_cube,
                          uint32_t *child_mask)
    {
        /* What is empty is UNKNOWN, so every octant counts. */
        if (vxd_svdag_area_states_tree_cube(view, &area, tree_cube, &seen)) {
            *child_mask = 0xff;
        }
    }

    __device__ bool is_over(void)
    {
        seen = __reduce_or_sync(UINT32_MAX, seen);
        return seen == all;
    }
};

template <bool IS_SPLIT>
static __global__ void __launch_bounds__(VXD_SVDAG_WALK_THREADS)
    overlap_kernel(const __grid_constant__ struct vxd_svdag_regions_call call)
{
    __shared__ struct vxd_svdag_walk walks[VXD_SVDAG_WALK_WARPS];
    uint32_t warp = threadIdx.x / 32;
    size_t i = (size_t)blockIdx.x * VXD_SVDAG_WALK_WARPS + warp;
    vxd_svdag_states_visitor<IS_SPLIT> visitor;

    if (i >= call.n) {
        return;
    }
    visitor.view = &call.view;
    visitor.area = vxd_svdag_area_of(call.regions + i, call.view.depth);
    visitor.seen = 0;
    visitor.all = vxd_svdag_all_states(&call.view);
    vxd_svdag_run_region(&call, &walks[warp], &visitor);
    (void)visitor.is_over();
    if (threadIdx.x % 32 == 0) {
        call.states[i] = (uint8_t)visitor.seen;
    }
}

template <bool IS_SPLIT>
static enum vxd_status vxd_svdag_overlap_launch(struct vxd_queue *queue,
                                                const struct vxd_svdag_regions_call *call,
                                                struct vxd_err *err)
{
    static_assert(IS_SPLIT == VXD_SVDAG_IS_SPLIT_FORM,
                  "a translation unit is compiled for one form of stores");
    unsigned n_blocks = 0;
    enum vxd_status status;

    VXD_TRY(vxd_svdag_blocks_of(call->n, VXD_SVDAG_WALK_WARPS, &n_blocks, err));
    VXD_TRY(vxd_cuda_enter(queue->context, err));
    overlap_kernel<IS_SPLIT>
        <<<n_blocks, VXD_SVDAG_WALK_THREADS, 0, (cudaStream_t)queue->stream>>>(*call);
    VXD_TRY(vxd_cuda_launched(queue->context, "overlap_kernel", err));
out:
    return status;
}

/* --- counts ---------------------------------------------------------------------------- */

template <bool IS_SPLIT> struct vxd_svdag_count_visitor {
    const struct vxd_svdag_view *view;
    struct vxd_svdag_area area;
    uint64_t counts[2]; /* by this thread */

    __device__ void visit(const struct vxd_svdag_position *tree_cube,
                          uint32_t *child_mask)
    {
        if (vxd_svdag_area_count_tree_cube(view, &area, tree_cube,
                                           vxd_svdag_all_states(view), counts)) {
            *child_mask = vxd_svdag_child_mask(view, tree_cube->ref);
        }
    }

    __device__ bool is_over(void) const
    {
        return false;
    }
};

/* Which cubes may have something in a region. */
struct vxd_svdag_region_filter {
    const struct vxd_svdag_area *area;

    __device__ bool may(const struct vxd_svdag_position *tree_cube) const
    {
        return tree_cube->ref != VXD_SVDAG_EMPTY &&
               vxd_svdag_area_relation(area, tree_cube) != VXD_SVDAG_OUTSIDE;
    }
};

template <bool IS_SPLIT>
static __global__ void __launch_bounds__(VXD_SVDAG_WALK_THREADS)
    count_kernel(const __grid_constant__ struct vxd_svdag_regions_call call)
{
    __shared__ struct vxd_svdag_walk walks[VXD_SVDAG_WALK_WARPS];
    uint32_t warp = threadIdx.x / 32;
    size_t i = (size_t)blockIdx.x * VXD_SVDAG_WALK_WARPS + warp;
    vxd_svdag_count_visitor<IS_SPLIT> visitor;
    uint64_t n_occupied;
    uint64_t n_free;

    if (i >= call.n) {
        return;
    }
    visitor.view = &call.view;
    visitor.area = vxd_svdag_area_of(call.regions + i, call.view.depth);
    visitor.counts[0] = 0;
    visitor.counts[1] = 0;
    vxd_svdag_run_region(&call, &walks[warp], &visitor);
    n_occupied = vxd_svdag_warp_sum(visitor.counts[0]);
    n_free = vxd_svdag_warp_sum(visitor.counts[1]);
    if (threadIdx.x % 32 == 0) {
        call.counts[2 * i] = n_occupied;
        call.counts[2 * i + 1] = n_free;
    }
}

/* A block a region: makes its list, and sets its counts to 0. */
template <bool IS_SPLIT>
static __global__ void __launch_bounds__(VXD_SVDAG_TREE_CUBES_THREADS)
    region_tree_cubes_kernel(const __grid_constant__ struct vxd_svdag_regions_call call)
{
    struct vxd_svdag_area area =
        vxd_svdag_area_of(call.regions + blockIdx.x, call.view.depth);
    struct vxd_svdag_tree_cubes tree_cubes =
        vxd_svdag_tree_cubes_at(call.scratch, blockIdx.x);
    struct vxd_svdag_region_filter filter = {&area};

    if (threadIdx.x < 2) {
        call.counts[2 * (size_t)blockIdx.x + threadIdx.x] = 0;
    }
    vxd_svdag_tree_cubes_make(&call.view, call.root, &area, VXD_SVDAG_REGION_LEAST_HEIGHT,
                              &filter, &tree_cubes);
}

/* Row y of the grid is region y; its warps share the list. */
template <bool IS_SPLIT>
static __global__ void __launch_bounds__(VXD_SVDAG_WALK_THREADS)
    count_tree_cubes_kernel(const __grid_constant__ struct vxd_svdag_regions_call call)
{
    __shared__ struct vxd_svdag_walk walks[VXD_SVDAG_WALK_WARPS];
    uint32_t warp = threadIdx.x / 32;
    struct vxd_svdag_tree_cubes tree_cubes =
        vxd_svdag_tree_cubes_at(call.scratch, blockIdx.y);
    vxd_svdag_count_visitor<IS_SPLIT> visitor;
    uint64_t sums[2];

    visitor.view = &call.view;
    visitor.area = vxd_svdag_area_of(call.regions + blockIdx.y, call.view.depth);
    visitor.counts[0] = 0;
    visitor.counts[1] = 0;
    for (uint32_t i = blockIdx.x * VXD_SVDAG_WALK_WARPS + warp; i < tree_cubes.head[0];
         i += gridDim.x * VXD_SVDAG_WALK_WARPS) {
        struct vxd_svdag_position tree_cube =
            vxd_svdag_tree_cubes_get(&tree_cubes, (int)tree_cubes.head[1], i);

        vxd_svdag_walk_run(&call.view, &walks[warp], &tree_cube, &visitor);
    }
    for (int k = 0; k < 2; k++) {
        sums[k] = vxd_svdag_warp_sum(visitor.counts[k]);
        if (threadIdx.x % 32 == 0 && sums[k] != 0) {
            (void)atomicAdd((unsigned long long *)call.counts + 2 * (size_t)blockIdx.y +
                                k,
                            (unsigned long long)sums[k]);
        }
    }
}

template <bool IS_SPLIT>
static enum vxd_status vxd_svdag_count_launch(struct vxd_queue *queue,
                                              const struct vxd_svdag_regions_call *call,
                                              struct vxd_err *err)
{
    static_assert(IS_SPLIT == VXD_SVDAG_IS_SPLIT_FORM,
                  "a translation unit is compiled for one form of stores");
    cudaStream_t stream = (cudaStream_t)queue->stream;
    unsigned n_blocks = 0;
    enum vxd_status status;

    VXD_TRY(vxd_svdag_blocks_of(call->n, VXD_SVDAG_WALK_WARPS, &n_blocks, err));
    VXD_TRY(vxd_cuda_enter(queue->context, err));
    if (call->n > VXD_SVDAG_FEW_REGIONS) {
        count_kernel<IS_SPLIT><<<n_blocks, VXD_SVDAG_WALK_THREADS, 0, stream>>>(*call);
        VXD_TRY(vxd_cuda_launched(queue->context, "count_kernel", err));
    } else {
        unsigned n_regions = (unsigned)call->n;
        unsigned n_each =
            (unsigned)queue->context->info.n_multiprocessors * 8 / n_regions + 1;

        region_tree_cubes_kernel<IS_SPLIT>
            <<<n_regions, VXD_SVDAG_TREE_CUBES_THREADS, 0, stream>>>(*call);
        VXD_TRY(vxd_cuda_launched(queue->context, "region_tree_cubes_kernel", err));
        count_tree_cubes_kernel<IS_SPLIT>
            <<<dim3(n_each, n_regions), VXD_SVDAG_WALK_THREADS, 0, stream>>>(*call);
        VXD_TRY(vxd_cuda_launched(queue->context, "count_tree_cubes_kernel", err));
    }
out:
    return status;
}

#endif
