// SPDX-License-Identifier: Apache-2.0
/* CUDA twins of overlaps and counts: a warp a region. Of a small one the threads look at all
 * leaves of its box, each going down to its own; elsewhere they look at 32 spots at a time, from
 * the top (query_cuda.h). Few regions are counted by lists: a block makes each region's list of up to
 * 16384 spots, then every warp of the device counts some of them. All sums are of integers, so
 * it does not matter who comes first.
 *
 * Overlaps end with the round in which all states were seen, and are not split. */
#include "gpu/svdag/query/query_cuda.h"

/* Spots of lists are no lower than this: a warp's work should be worth its way down. */
#define REGION_LEAST_HEIGHT 5

/* Leaves of a small region's box, at most. */
#define REGION_LEAVES 128

/* The leaves that hold a region's box. */
struct leaf_box {
    uint32_t low[3]; /* by leaves */
    uint32_t n[3];
    uint32_t n_all;
};

static __device__ __forceinline__ struct leaf_box
leaf_box_of(const struct vxd_svdag_area *area)
{
    struct leaf_box box;

    box.n_all = 1;
    for (int axis = 0; axis < 3; axis++) {
        uint32_t last = (uint32_t)(area->high[axis] - 1) >> VXD_SVDAG_LEAF_HEIGHT;

        box.low[axis] = (uint32_t)area->low[axis] >> VXD_SVDAG_LEAF_HEIGHT;
        box.n[axis] = last - box.low[axis] + 1;
        /* More than that many are as many as no product can hold. */
        box.n_all *= min(box.n[axis], (uint32_t)REGION_LEAVES + 1);
    }
    return box;
}

/* Leaf i of a box below a spot that holds all of it. */
static __device__ __forceinline__ struct vxd_svdag_spot
box_leaf(const struct vxd_svdag_view *view, const struct vxd_svdag_spot *top,
         const struct leaf_box *box, uint32_t i)
{
    uint32_t row = i / box->n[2];
    uint32_t plane = row / box->n[1];
    int height = top->height;
    struct vxd_svdag_spot leaf;

    leaf.x = (box->low[0] + plane) << VXD_SVDAG_LEAF_HEIGHT;
    leaf.y = (box->low[1] + row - plane * box->n[1]) << VXD_SVDAG_LEAF_HEIGHT;
    leaf.z = (box->low[2] + i - row * box->n[2]) << VXD_SVDAG_LEAF_HEIGHT;
    leaf.ref = vxd_svdag_descend(view, top->ref, leaf.x, leaf.y, leaf.z, &height);
    leaf.height = VXD_SVDAG_LEAF_HEIGHT;
    return leaf;
}

/* A region's spots, as many as its answer takes. */
template <typename VISITOR>
static __device__ __forceinline__ void
run_region(const struct vxd_svdag_regions_call *call, struct vxd_svdag_walk *walk,
           VISITOR *visitor)
{
    struct vxd_svdag_spot top;
    struct leaf_box box;

    if (vxd_svdag_area_is_empty(&visitor->area)) {
        return;
    }
    top =
        vxd_svdag_top_of(&call->view, call->root, &visitor->area, VXD_SVDAG_LEAF_HEIGHT);
    box = leaf_box_of(&visitor->area);
    if (box.n_all > REGION_LEAVES) {
        vxd_svdag_walk_run(&call->view, walk, &top, visitor);
        return;
    }
    for (uint32_t first = 0; first < box.n_all && !visitor->is_over(); first += 32) {
        if (first + threadIdx.x % 32 < box.n_all) {
            struct vxd_svdag_spot leaf =
                box_leaf(&call->view, &top, &box, first + threadIdx.x % 32);
            uint32_t octants; /* leaves have none */

            visitor->visit(&leaf, &octants);
        }
        __syncwarp();
    }
}

/* --- overlaps -------------------------------------------------------------------------- */

struct states_visitor {
    const struct vxd_svdag_view *view;
    struct vxd_svdag_area area;
    unsigned seen; /* by this thread, */
    unsigned all;

    __device__ void visit(const struct vxd_svdag_spot *spot, uint32_t *octants)
    {
        /* Where nothing stands is UNKNOWN, so all octants tell. */
        if (vxd_svdag_area_states_spot(view, &area, spot, &seen)) {
            *octants = 0xff;
        }
    }

    __device__ bool is_over(void)
    {
        seen = __reduce_or_sync(UINT32_MAX, seen);
        return seen == all;
    }
};

static __global__ void __launch_bounds__(VXD_SVDAG_WALK_THREADS)
    overlap_kernel(const __grid_constant__ struct vxd_svdag_regions_call call)
{
    __shared__ struct vxd_svdag_walk walks[VXD_SVDAG_WALK_WARPS];
    uint32_t warp = threadIdx.x / 32;
    size_t i = (size_t)blockIdx.x * VXD_SVDAG_WALK_WARPS + warp;
    struct states_visitor visitor;

    if (i >= call.n) {
        return;
    }
    visitor.view = &call.view;
    visitor.area = vxd_svdag_area_of(call.regions + i, call.view.depth);
    visitor.seen = 0;
    visitor.all = vxd_svdag_all_states(&call.view);
    run_region(&call, &walks[warp], &visitor);
    (void)visitor.is_over();
    if (threadIdx.x % 32 == 0) {
        call.states[i] = (uint8_t)visitor.seen;
    }
}

enum vxd_status
VXD_SVDAG_FORM(vxd_svdag_overlap)(struct vxd_queue *queue,
                                  const struct vxd_svdag_regions_call *call,
                                  struct vxd_err *err)
{
    unsigned n_blocks = 0;
    enum vxd_status status;

    VXD_TRY(vxd_svdag_blocks_of(call->n, VXD_SVDAG_WALK_WARPS, &n_blocks, err));
    VXD_TRY(vxd_cuda_enter(queue->context, err));
    overlap_kernel<<<n_blocks, VXD_SVDAG_WALK_THREADS, 0, (cudaStream_t)queue->stream>>>(
        *call);
    VXD_TRY(vxd_cuda_launched(queue->context, "overlap_kernel", err));
out:
    return status;
}

/* --- counts ---------------------------------------------------------------------------- */

struct count_visitor {
    const struct vxd_svdag_view *view;
    struct vxd_svdag_area area;
    uint64_t counts[2]; /* by this thread */

    __device__ void visit(const struct vxd_svdag_spot *spot, uint32_t *octants)
    {
        if (vxd_svdag_area_count_spot(view, &area, spot, vxd_svdag_all_states(view),
                                      counts)) {
            *octants = vxd_svdag_octants(view, spot->ref);
        }
    }

    __device__ bool is_over(void) const
    {
        return false;
    }
};

/* What may stand in a region. */
struct region_filter {
    const struct vxd_svdag_area *area;

    __device__ bool may(const struct vxd_svdag_spot *spot) const
    {
        return spot->ref != VXD_SVDAG_EMPTY &&
               vxd_svdag_area_relation(area, spot) != VXD_SVDAG_OUTSIDE;
    }
};

static __global__ void __launch_bounds__(VXD_SVDAG_WALK_THREADS)
    count_kernel(const __grid_constant__ struct vxd_svdag_regions_call call)
{
    __shared__ struct vxd_svdag_walk walks[VXD_SVDAG_WALK_WARPS];
    uint32_t warp = threadIdx.x / 32;
    size_t i = (size_t)blockIdx.x * VXD_SVDAG_WALK_WARPS + warp;
    struct count_visitor visitor;
    uint64_t n_occupied;
    uint64_t n_free;

    if (i >= call.n) {
        return;
    }
    visitor.view = &call.view;
    visitor.area = vxd_svdag_area_of(call.regions + i, call.view.depth);
    visitor.counts[0] = 0;
    visitor.counts[1] = 0;
    run_region(&call, &walks[warp], &visitor);
    n_occupied = vxd_svdag_warp_sum(visitor.counts[0]);
    n_free = vxd_svdag_warp_sum(visitor.counts[1]);
    if (threadIdx.x % 32 == 0) {
        call.counts[2 * i] = n_occupied;
        call.counts[2 * i + 1] = n_free;
    }
}

/* A block a region: its list, and its counts begin at 0. */
static __global__ void __launch_bounds__(VXD_SVDAG_SPOTS_THREADS)
    region_spots_kernel(const __grid_constant__ struct vxd_svdag_regions_call call)
{
    struct vxd_svdag_area area =
        vxd_svdag_area_of(call.regions + blockIdx.x, call.view.depth);
    struct vxd_svdag_spots spots = vxd_svdag_spots_at(call.scratch, blockIdx.x);
    struct region_filter filter = {&area};

    if (threadIdx.x < 2) {
        call.counts[2 * (size_t)blockIdx.x + threadIdx.x] = 0;
    }
    vxd_svdag_spots_make(&call.view, call.root, &area, REGION_LEAST_HEIGHT, &filter,
                         &spots);
}

/* Row y of the grid is region y; its warps share the list. */
static __global__ void __launch_bounds__(VXD_SVDAG_WALK_THREADS)
    count_spots_kernel(const __grid_constant__ struct vxd_svdag_regions_call call)
{
    __shared__ struct vxd_svdag_walk walks[VXD_SVDAG_WALK_WARPS];
    uint32_t warp = threadIdx.x / 32;
    struct vxd_svdag_spots spots = vxd_svdag_spots_at(call.scratch, blockIdx.y);
    struct count_visitor visitor;
    uint64_t sums[2];

    visitor.view = &call.view;
    visitor.area = vxd_svdag_area_of(call.regions + blockIdx.y, call.view.depth);
    visitor.counts[0] = 0;
    visitor.counts[1] = 0;
    for (uint32_t i = blockIdx.x * VXD_SVDAG_WALK_WARPS + warp; i < spots.head[0];
         i += gridDim.x * VXD_SVDAG_WALK_WARPS) {
        struct vxd_svdag_spot spot = vxd_svdag_spots_get(&spots, (int)spots.head[1], i);

        vxd_svdag_walk_run(&call.view, &walks[warp], &spot, &visitor);
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

enum vxd_status VXD_SVDAG_FORM(vxd_svdag_count)(struct vxd_queue *queue,
                                                const struct vxd_svdag_regions_call *call,
                                                struct vxd_err *err)
{
    cudaStream_t stream = (cudaStream_t)queue->stream;
    unsigned n_blocks = 0;
    enum vxd_status status;

    VXD_TRY(vxd_svdag_blocks_of(call->n, VXD_SVDAG_WALK_WARPS, &n_blocks, err));
    VXD_TRY(vxd_cuda_enter(queue->context, err));
    if (call->n > VXD_SVDAG_FEW_REGIONS) {
        count_kernel<<<n_blocks, VXD_SVDAG_WALK_THREADS, 0, stream>>>(*call);
        VXD_TRY(vxd_cuda_launched(queue->context, "count_kernel", err));
    } else {
        unsigned n_regions = (unsigned)call->n;
        unsigned n_each =
            (unsigned)queue->context->info.n_multiprocessors * 8 / n_regions + 1;

        region_spots_kernel<<<n_regions, VXD_SVDAG_SPOTS_THREADS, 0, stream>>>(*call);
        VXD_TRY(vxd_cuda_launched(queue->context, "region_spots_kernel", err));
        count_spots_kernel<<<dim3(n_each, n_regions), VXD_SVDAG_WALK_THREADS, 0,
                             stream>>>(*call);
        VXD_TRY(vxd_cuda_launched(queue->context, "count_spots_kernel", err));
    }
out:
    return status;
}
