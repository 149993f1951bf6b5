// SPDX-License-Identifier: Apache-2.0
/* CUDA twin of kernel maps: one cooperative kernel (sparse_cuda.h) for up to 16 maps, which
 * share its blocks out by their rows. Blocks wait for those of their own map only, so that small
 * maps and those of few taps are done early, and big ones have the more blocks.
 *
 * First tables are filled (kernel_map_fill_cuda.h), then rows are ordered (kernel_map_cuda.h),
 * then their tiles (kernel_map_tiles_cuda.h).
 * Bytes: 4 a tap and row written, 8 a row and 52 a look-up read, mostly from the caches. */
#include "gpu/sparse/kernel_map/kernel_map_fill_cuda.h"
#include "gpu/sparse/kernel_map/kernel_map_tiles_cuda.h"

/* Maps built by one launch. */
struct batch {
    int n_jobs;
    uint32_t *barriers; /* a word a map, 0 */
    uint32_t *error_word;
    struct vxd_map_job jobs[VXD_KERNEL_MAPS_AT_ONCE];
};

static_assert(sizeof(struct batch) <= 4096, "what a kernel's arguments may take");

/* What a row costs, measured: blocks are looked up for each, and taps read from them and sorted
 * by; an octant is one look-up and one pass. */
static __device__ __forceinline__ uint64_t weight_of(const struct vxd_map_job *job)
{
    bool is_octant = job->form == VXD_MAP_DOWN || job->form == VXD_MAP_UP;

    return is_octant ? 10 : 2 * (uint64_t)job->map.n_taps + 6;
}

/* Gives every map a block and shares the others out by rows and what a row costs, as all
 * blocks find alike; the first warp calls. A map with too many rows stays empty. */
static __device__ __forceinline__ void find_work(const struct batch *batch,
                                                 struct vxd_map_work *work)
{
    int lane = (int)threadIdx.x;
    bool is_job = lane < batch->n_jobs;
    uint32_t n_rows = is_job ? *batch->jobs[lane].n_rows : 0;
    bool is_over = is_job && n_rows > batch->jobs[lane].map.capacity;
    uint64_t weight = 0;
    uint64_t total;
    uint32_t size;
    uint32_t end;

    if (is_over) {
        n_rows = 0;
    }
    if (is_job) {
        weight = n_rows * weight_of(&batch->jobs[lane]);
    }
    total = weight;
    for (int step = 16; step > 0; step /= 2) {
        total += __shfl_xor_sync(UINT32_MAX, total, step);
    }
    size = is_job ? 1 : 0;
    if (total > 0) {
        size += (uint32_t)((gridDim.x - (uint32_t)batch->n_jobs) * weight / total);
    }
    end = size;
    for (int step = 1; step < 32; step *= 2) {
        uint32_t other = __shfl_up_sync(UINT32_MAX, end, (unsigned)step);

        end += lane >= step ? other : 0;
    }
    if (lane == 0) {
        work->block_group = {0, 0};
        work->n_rows = 0;
    }
    __syncwarp();
    if (is_job && blockIdx.x >= end - size && blockIdx.x < end) {
        work->job = batch->jobs[lane];
        work->block_group = {blockIdx.x - (end - size), size};
        work->barrier = batch->barriers + lane;
        work->n_rows = n_rows;
    }
    if (is_over && blockIdx.x == 0) {
        vxd_sparse_fault(batch->error_word, VXD_RESOURCE_EXHAUSTED);
    }
}

static __global__ void __launch_bounds__(VXD_GRID_THREADS, 1)
    maps_kernel(const __grid_constant__ struct batch batch)
{
    extern __shared__ uint4 dynamic_shared[];
    __shared__ struct vxd_map_shared map_shared;
    __shared__ struct vxd_map_work work;
    union vxd_map_memory *shared = (union vxd_map_memory *)dynamic_shared;
    int n_passes;

    if (threadIdx.x < 32) {
        find_work(&batch, &work);
    }
    if (threadIdx.x == 0) {
        map_shared.passed = 0;
    }
    for (uint32_t tap = threadIdx.x; tap < VXD_SPARSE_MAX_TAPS; tap += VXD_GRID_THREADS) {
        map_shared.tap_counts[tap] = 0;
    }
    __syncthreads();
    if (work.block_group.size == 0) {
        return;
    }
    vxd_map_fill_any(&work, map_shared.tap_counts, shared);
    vxd_map_put_taps(&work, &map_shared);
    vxd_block_group_wait(work.barrier, &map_shared.passed, work.block_group);
    n_passes = vxd_map_begin_order(&work, &map_shared);
    vxd_map_end_order(&work, n_passes);
    for (int i = 0; i < n_passes; i++) {
        struct vxd_sort_pass<uint32_t> pass = vxd_map_pass(&work, i, n_passes);

        vxd_sort_count(&pass, work.block_group, &shared->sort);
        vxd_block_group_wait(work.barrier, &map_shared.passed, work.block_group);
        vxd_sort_sum(&pass, work.block_group);
        vxd_block_group_wait(work.barrier, &map_shared.passed, work.block_group);
        vxd_sort_scatter(&pass, work.block_group, &shared->sort);
        vxd_block_group_wait(work.barrier, &map_shared.passed, work.block_group);
    }
    if (n_passes == 0) { /* padding and all was ordered just now */
        vxd_block_group_wait(work.barrier, &map_shared.passed, work.block_group);
    }
    vxd_map_weigh_tiles(&work);
    if (vxd_block_group_is_last(work.barrier, &map_shared.passed, work.block_group)) {
        vxd_map_list_tiles(&work, &map_shared);
    }
}

/* Launching ----------------------------------------------------------------------------- */

static enum vxd_map_form form_of(const struct vxd_sparse_geometry *g)
{
    bool is_octant = true;
    bool is_box = true;
    bool is_3 = !g->transposed;

    for (int axis = 0; axis < 3; axis++) {
        /* Cells between the inputs of the first tap and the last; up to four are in at most
         * two blocks. */
        int reach = (g->kernel[axis] - 1) * g->dilation[axis];

        if (g->transposed) {
            reach = (reach + g->stride[axis] - 1) / g->stride[axis];
        }
        is_octant = is_octant && g->kernel[axis] == 2 && g->stride[axis] == 2 &&
                    g->padding[axis] == 0 && g->dilation[axis] == 1;
        is_box = is_box && reach <= 4;
        is_3 = is_3 && g->kernel[axis] == 3;
    }
    if (is_octant) {
        return g->transposed ? VXD_MAP_UP : VXD_MAP_DOWN;
    }
    if (is_box) {
        return is_3 ? VXD_MAP_BOX_3 : VXD_MAP_BOX;
    }
    return VXD_MAP_WALK;
}

struct layout {
    size_t keys[2];
    size_t values;
    size_t ranks;
    size_t barriers;
    size_t counts;
    size_t tap_counts;
    size_t total;
};

static bool lay_out(const struct vxd_queue *queue, int n_taps, size_t n_rows,
                    struct layout *out)
{
    size_t n_blocks = vxd_grid_blocks(queue, n_rows);

    *out = {};
    return vxd_layout_add(&out->total, n_rows, 4, &out->keys[0]) &&
           vxd_layout_add(&out->total, n_rows, 4, &out->keys[1]) &&
           vxd_layout_add(&out->total, n_rows, 4, &out->values) &&
           vxd_layout_add(&out->total, n_rows, 4, &out->ranks) &&
           vxd_layout_add(&out->total, VXD_KERNEL_MAPS_AT_ONCE, 4, &out->barriers) &&
           vxd_layout_add(&out->total, VXD_SORT_WORDS(n_blocks), 4, &out->counts) &&
           vxd_layout_add(&out->total, n_blocks * (size_t)n_taps, 4, &out->tap_counts);
}

size_t vxd_kernel_map_scratch_bytes_cuda(const struct vxd_queue *queue, int n_taps,
                                         size_t n_rows)
{
    struct layout layout;

    return lay_out(queue, n_taps, n_rows, &layout) ? layout.total : 0;
}

static enum vxd_status prepare_job(const struct vxd_queue *queue,
                                   const struct vxd_kernel_map_call *call,
                                   struct vxd_map_job *out, uint32_t **barriers,
                                   struct vxd_err *err)
{
    char *bytes = (char *)call->scratch;
    struct layout layout;

    if (!lay_out(queue, call->map.n_taps, call->map.capacity, &layout) ||
        layout.total > call->scratch_bytes) {
        return vxd_fail(err, VXD_INTERNAL, NULL, "scratch of %zu bytes, needed are %zu",
                        call->scratch_bytes, layout.total);
    }
    *barriers = (uint32_t *)(void *)(bytes + layout.barriers);
    out->geometry = call->geometry;
    out->form = form_of(&call->geometry);
    out->n_in_blocks = call->in.n_blocks;
    out->in = {call->in.slots, call->in.n_slots, call->in.block_keys, call->in.block_mask,
               call->in.block_row};
    out->n_rows = call->out.n_rows;
    out->out_keys = call->out.keys;
    out->map = call->map;
    out->keys[0] = (uint32_t *)(void *)(bytes + layout.keys[0]);
    out->keys[1] = (uint32_t *)(void *)(bytes + layout.keys[1]);
    out->values = (uint32_t *)(void *)(bytes + layout.values);
    out->ranks = (uint32_t *)(void *)(bytes + layout.ranks);
    out->sort_counts = (uint32_t *)(void *)(bytes + layout.counts);
    out->tap_counts = (uint32_t *)(void *)(bytes + layout.tap_counts);
    return VXD_OK;
}

static enum vxd_status launch(struct vxd_queue *queue,
                              const struct vxd_kernel_map_call *calls, int n,
                              struct vxd_err *err)
{
    struct batch batch = {n, NULL, queue->error_word, {}};
    uint32_t *unused;
    size_t n_rows = 0;
    enum vxd_status status = VXD_OK;

    for (int i = 0; i < n; i++) {
        size_t capacity = calls[i].map.capacity;

        n_rows +=
            capacity > VXD_GRID_MIN_BLOCK_ITEMS ? capacity : VXD_GRID_MIN_BLOCK_ITEMS;
        VXD_TRY(prepare_job(queue, &calls[i], &batch.jobs[i],
                            i == 0 ? &batch.barriers : &unused, err));
    }
    VXD_TRY(VXD_CUDA(queue->context,
                     cudaFuncSetAttribute((const void *)maps_kernel,
                                          cudaFuncAttributeMaxDynamicSharedMemorySize,
                                          (int)sizeof(union vxd_map_memory)),
                     err));
    VXD_TRY(vxd_cuda_fill(queue, batch.barriers, 0,
                          VXD_KERNEL_MAPS_AT_ONCE * sizeof *batch.barriers, err));
    VXD_TRY(vxd_grid_launch(queue, (const void *)maps_kernel, &batch, n_rows,
                            sizeof(union vxd_map_memory), "maps_kernel", err));
out:
    return status;
}

enum vxd_status vxd_kernel_maps_build_cuda(struct vxd_queue *queue,
                                           const struct vxd_kernel_map_call *calls, int n,
                                           struct vxd_err *err)
{
    int at_once = queue->context->info.n_multiprocessors; /* a block each at least */
    enum vxd_status status = VXD_OK;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    for (int i = 0; i < n; i += at_once) {
        VXD_TRY(launch(queue, calls + i, n - i < at_once ? n - i : at_once, err));
    }
out:
    return status;
}
