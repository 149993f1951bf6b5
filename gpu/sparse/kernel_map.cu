// SPDX-License-Identifier: Apache-2.0
/* CUDA twin of kernel maps: one cooperative kernel (sparse_cuda.h) for up to 16 maps, which
 * share its blocks out by their rows; barriers are the same for all, so that small maps cost
 * little beside big ones.
 *
 * A thread has an output row and goes through the taps; writes to the tap-major table are
 * consecutive over a warp. What taps read lies in few blocks of 4x4x4 cells, at most two an
 * axis for the usual kernels: up to eight look-ups a row, kept in shared memory, then a bit
 * test and a population count a tap. Kernel 2, stride 2 is one look-up and one byte of the
 * block's mask. Then rows are ordered (kernel_map_cuda.h). Bytes: 4 a tap and row written, 8 a
 * row and 28 a look-up read, mostly from the caches. */
#include "gpu/sparse/kernel_map_cuda.h"

namespace cg = cooperative_groups;

#define BOX_BLOCKS 8

/* Blocks that a thread's row reads, and the row behind each one's last. */
struct box_shared {
    uint64_t masks[BOX_BLOCKS][VXD_GRID_THREADS];
    uint32_t ends[BOX_BLOCKS][VXD_GRID_THREADS];
};

union shared_memory {
    struct box_shared box;
    struct vxd_sort_shared sort;
};

/* A thread's output row while its taps are written. */
struct row_state {
    const struct vxd_map_job *job;
    uint32_t *tap_counts; /* of the block, shared */
    uint32_t row;
    bool is_row; /* false in the padding */
    uint32_t mask;
    uint32_t n_of_lane; /* rows of the warp that have the tap of this lane's number */
};

/* Taps come one after another; all threads of a warp call. */
static __device__ __forceinline__ void
put_entry(struct row_state *state, int tap, int n_taps, bool is_in_table, int32_t entry)
{
    const struct vxd_kernel_map *map = &state->job->map;
    uint32_t bit = (uint32_t)tap % 32;
    uint32_t lane = threadIdx.x % 32;
    uint32_t peers = __ballot_sync(UINT32_MAX, entry >= 0);

    if (is_in_table) {
        map->table[(size_t)tap * map->capacity + state->row] = entry;
    }
    state->mask |= (uint32_t)(entry >= 0) << bit;
    state->n_of_lane += lane == bit ? (uint32_t)__popc(peers) : 0;
    if (bit == 31 || tap == n_taps - 1) {
        if (is_in_table) {
            map->masks[(size_t)state->row * VXD_SPARSE_MASK_WORDS(n_taps) + tap / 32] =
                state->mask;
        }
        if (state->n_of_lane > 0) {
            (void)atomicAdd(&state->tap_counts[tap - (int)bit + (int)lane],
                            state->n_of_lane);
        }
        state->mask = 0;
        state->n_of_lane = 0;
    }
}

/* A cell's code on an axis, 0 to 2^18 - 1, within its block. */
static __device__ __forceinline__ uint32_t cell_axis(int axis, uint32_t code)
{
    return ((code & 2) << 2 | (code & 1)) << (2 - axis);
}

static __device__ __forceinline__ uint64_t block_axis(int axis, int32_t block)
{
    return vxd_spread3((uint64_t)(uint32_t)block) << (2 - axis);
}

/* Input cell of a tap, an axis, biased; false where the tap reads none. Outside the 18 bits its
 * block is none that a set has. */
static __device__ __forceinline__ bool tap_code(const struct vxd_sparse_geometry *g,
                                                enum vxd_map_form form, int axis,
                                                int32_t output, int tap, int32_t *code)
{
    bool is_whole = true;
    int32_t input;

    if (form != VXD_MAP_BOX_3 && g->transposed) {
        is_whole = vxd_sparse_coarse(g, axis, output, tap, &input);
    } else {
        input = vxd_sparse_fine(g, axis, output, tap);
    }
    *code = input + VXD_SPARSE_COORD_BIAS;
    return is_whole;
}

/* Least and greatest block of an axis that taps read. */
static __device__ __forceinline__ void block_range(const struct vxd_sparse_geometry *g,
                                                   enum vxd_map_form form, int axis,
                                                   int32_t output, int32_t *low,
                                                   int32_t *high)
{
    int last = form == VXD_MAP_BOX_3 ? 2 : g->kernel[axis] - 1;
    int32_t ends[2];

    (void)tap_code(g, form, axis, output, 0, &ends[0]);
    (void)tap_code(g, form, axis, output, last, &ends[1]);
    *low = min(ends[0], ends[1]) >> 2;
    *high = max(ends[0], ends[1]) >> 2;
}

static __device__ __forceinline__ bool is_block(int32_t block)
{
    return block >= 0 && block < VXD_SPARSE_COORD_BIAS / 2;
}

/* Looks up the blocks around a row. */
static __device__ __forceinline__ void open_box(const struct vxd_map_job *job,
                                                enum vxd_map_form form, uint64_t key,
                                                const int32_t output[3], bool is_row,
                                                uint32_t slot_mask, int32_t low[3],
                                                struct box_shared *box)
{
    uint64_t sample = vxd_sparse_key_sample_part(key) >> 6;
    uint64_t share[3][2];
    bool has[3][2];

#pragma unroll
    for (int axis = 0; axis < 3; axis++) {
        int32_t high;

        block_range(&job->geometry, form, axis, output[axis], &low[axis], &high);
        has[axis][0] = is_row && is_block(low[axis]);
        has[axis][1] = is_row && high != low[axis] && is_block(high);
        share[axis][0] = block_axis(axis, low[axis]);
        share[axis][1] = block_axis(axis, high);
    }
#pragma unroll
    for (int x = 0; x < 2; x++) {
        uint64_t names[BOX_BLOCKS / 2];
        struct vxd_sparse_block blocks[BOX_BLOCKS / 2];

#pragma unroll
        for (int i = 0; i < BOX_BLOCKS / 2; i++) {
            names[i] = has[0][x] && has[1][i >> 1] && has[2][i & 1]
                           ? sample | share[0][x] | share[1][i >> 1] | share[2][i & 1]
                           : VXD_SPARSE_NO_KEY;
        }
        vxd_sparse_find_blocks<BOX_BLOCKS / 2>(&job->in, slot_mask, names, blocks);
#pragma unroll
        for (int i = 0; i < BOX_BLOCKS / 2; i++) {
            int at = x * (BOX_BLOCKS / 2) + i;

            box->masks[at][threadIdx.x] = blocks[i].mask;
            box->ends[at][threadIdx.x] =
                blocks[i].row + (uint32_t)vxd_sparse_popcount(blocks[i].mask);
        }
    }
}

/* Where an axis's tap reads: its share of the box's block number times 64 and of the cell. */
static __device__ __forceinline__ uint32_t tap_place(const struct vxd_sparse_geometry *g,
                                                     enum vxd_map_form form, int axis,
                                                     int32_t output, int tap, int32_t low,
                                                     bool *has)
{
    int32_t code;

    *has = tap_code(g, form, axis, output, tap, &code);
    return (uint32_t)((code >> 2) - low) << (8 - axis) | cell_axis(axis, (uint32_t)code);
}

/* Input row at a place of the box, or -1. */
static __device__ __forceinline__ int32_t find_in_box(const struct box_shared *box,
                                                      uint32_t place)
{
    uint64_t from_cell = box->masks[place >> 6][threadIdx.x] >> (place & 63);
    uint32_t end = box->ends[place >> 6][threadIdx.x];

    if ((from_cell & 1) == 0) {
        return -1;
    }
    return (int32_t)(end - (uint32_t)vxd_sparse_popcount(from_cell));
}

/* VXD_MAP_BOX and VXD_MAP_BOX_3. */
template <enum vxd_map_form FORM>
static __device__ __forceinline__ void
map_by_box(struct row_state *state, bool is_in_table, uint64_t key, uint32_t slot_mask,
           struct box_shared *box)
{
    const struct vxd_sparse_geometry *g = &state->job->geometry;
    int kernel[3] = {3, 3, 3};
    int32_t output[3];
    int32_t low[3];
    int n_taps;
    int tap = 0;

#pragma unroll
    for (int axis = 0; axis < 3; axis++) {
        kernel[axis] = FORM == VXD_MAP_BOX_3 ? 3 : g->kernel[axis];
        output[axis] = vxd_sparse_key_coord(key, axis);
    }
    n_taps = kernel[0] * kernel[1] * kernel[2];
    open_box(state->job, FORM, key, output, state->is_row, slot_mask, low, box);
#pragma unroll
    for (int x = 0; x < kernel[0]; x++) {
        bool has_x;
        uint32_t place_x = tap_place(g, FORM, 0, output[0], x, low[0], &has_x);

#pragma unroll
        for (int y = 0; y < kernel[1]; y++) {
            bool has_y;
            uint32_t place_xy =
                place_x + tap_place(g, FORM, 1, output[1], y, low[1], &has_y);

#pragma unroll
            for (int z = 0; z < kernel[2]; z++, tap++) {
                bool has_z;
                uint32_t place =
                    place_xy + tap_place(g, FORM, 2, output[2], z, low[2], &has_z);

                put_entry(state, tap, n_taps, is_in_table,
                          has_x && has_y && has_z ? find_in_box(box, place) : -1);
            }
        }
    }
}

static __device__ __forceinline__ void
map_by_walk(struct row_state *state, bool is_in_table, uint64_t key, uint32_t slot_mask)
{
    const struct vxd_sparse_geometry *g = &state->job->geometry;
    uint64_t sample = vxd_sparse_key_sample_part(key);
    struct vxd_sparse_block block = {0, 0};
    uint64_t block_key = VXD_SPARSE_NO_KEY; /* no block: names have 58 bits */
    int tap = 0;

    for (int x = 0; x < g->kernel[0]; x++) {
        for (int y = 0; y < g->kernel[1]; y++) {
            for (int z = 0; z < g->kernel[2]; z++, tap++) {
                int32_t c[3];
                int32_t entry = -1;

                if (state->is_row &&
                    vxd_sparse_tap_input(g, 0, vxd_sparse_key_coord(key, 0), x, &c[0]) &&
                    vxd_sparse_tap_input(g, 1, vxd_sparse_key_coord(key, 1), y, &c[1]) &&
                    vxd_sparse_tap_input(g, 2, vxd_sparse_key_coord(key, 2), z, &c[2])) {
                    uint64_t in_key = sample | vxd_sparse_key_axis(0, c[0]) |
                                      vxd_sparse_key_axis(1, c[1]) |
                                      vxd_sparse_key_axis(2, c[2]);

                    if (in_key >> 6 != block_key) {
                        block_key = in_key >> 6;
                        block =
                            vxd_sparse_find_block(&state->job->in, slot_mask, block_key);
                    }
                    entry = vxd_sparse_find_cell(&block, (uint32_t)(in_key & 63));
                }
                put_entry(state, tap, vxd_sparse_n_taps(g), is_in_table, entry);
            }
        }
    }
}

/* VXD_MAP_DOWN and VXD_MAP_UP: cells of an octant follow each other as its taps do. */
template <enum vxd_map_form FORM>
static __device__ __forceinline__ void
map_octant(struct row_state *state, bool is_in_table, uint64_t key, uint32_t slot_mask)
{
    struct vxd_sparse_block block = {0, 0};
    uint64_t in_key = vxd_sparse_key_floor(key, 1);
    uint32_t bits = 0;
    uint32_t cell;
    int32_t entry;

    if (state->is_row && (FORM == VXD_MAP_UP || vxd_sparse_key_double(key, &in_key))) {
        block = vxd_sparse_find_block(&state->job->in, slot_mask, in_key >> 6);
    }
    cell = (uint32_t)(in_key & 63);
    if (FORM == VXD_MAP_UP) {
        entry = vxd_sparse_find_cell(&block, cell);
    } else {
        bits = (uint32_t)(block.mask >> cell) & 255;
        entry = (int32_t)vxd_sparse_block_cell_row(block.mask, block.row, (int)cell);
    }
#pragma unroll
    for (int tap = 0; tap < 8; tap++) {
        bool has = FORM == VXD_MAP_UP ? (int)(key & 7) == tap : (bits >> tap & 1) != 0;

        put_entry(state, tap, 8, is_in_table, has ? entry : -1);
        entry += FORM == VXD_MAP_DOWN && has ? 1 : 0;
    }
}

template <enum vxd_map_form FORM>
static __device__ __forceinline__ void fill_table(const struct vxd_map_work *work,
                                                  uint32_t *tap_counts,
                                                  union shared_memory *shared)
{
    const struct vxd_map_job *job = &work->job;
    struct vxd_part part = vxd_part_of(vxd_map_padded(work->n_rows), work->team);
    uint32_t slot_mask = vxd_sparse_slot_mask(*job->n_in_blocks);

    for (uint32_t base = part.begin; base < part.end; base += VXD_GRID_THREADS) {
        struct row_state state = {job, tap_counts, base + threadIdx.x, false, 0, 0};
        bool is_in_table = state.row < part.end;
        uint64_t key = 0;

        if (__ballot_sync(UINT32_MAX, is_in_table) == 0) {
            continue;
        }
        state.is_row = is_in_table && state.row < work->n_rows;
        if (state.is_row) {
            key = job->out_keys[state.row];
        }
        if (FORM == VXD_MAP_BOX || FORM == VXD_MAP_BOX_3) {
            map_by_box<FORM>(&state, is_in_table, key, slot_mask, &shared->box);
        } else if (FORM == VXD_MAP_WALK) {
            map_by_walk(&state, is_in_table, key, slot_mask);
        } else {
            map_octant<FORM>(&state, is_in_table, key, slot_mask);
        }
    }
}

static __device__ __forceinline__ void fill_any_table(const struct vxd_map_work *work,
                                                      uint32_t *tap_counts,
                                                      union shared_memory *shared)
{
    switch (work->job.form) {
    case VXD_MAP_BOX:
        fill_table<VXD_MAP_BOX>(work, tap_counts, shared);
        break;
    case VXD_MAP_BOX_3:
        fill_table<VXD_MAP_BOX_3>(work, tap_counts, shared);
        break;
    case VXD_MAP_WALK:
        fill_table<VXD_MAP_WALK>(work, tap_counts, shared);
        break;
    case VXD_MAP_DOWN:
        fill_table<VXD_MAP_DOWN>(work, tap_counts, shared);
        break;
    case VXD_MAP_UP:
        fill_table<VXD_MAP_UP>(work, tap_counts, shared);
        break;
    }
}

/* Maps built by one launch. */
struct batch {
    int n_jobs;
    int n_passes; /* most that a map's order takes */
    uint32_t *error_word;
    struct vxd_map_job jobs[VXD_KERNEL_MAPS_AT_ONCE];
};

static_assert(sizeof(struct batch) <= 4096, "what a kernel's arguments may take");

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
        weight = (uint64_t)n_rows * (uint64_t)(batch->jobs[lane].map.n_taps + 8);
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
        work->team = {0, 0};
        work->n_rows = 0;
    }
    __syncwarp();
    if (is_job && blockIdx.x >= end - size && blockIdx.x < end) {
        work->job = batch->jobs[lane];
        work->team = {blockIdx.x - (end - size), size};
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
    union shared_memory *shared = (union shared_memory *)dynamic_shared;
    cg::grid_group grid = cg::this_grid();
    struct vxd_sort_items<uint32_t> items;
    struct vxd_sort_pass<uint32_t> pass;
    int n_passes = 0;

    if (threadIdx.x < 32) {
        find_work(&batch, &work);
    }
    for (uint32_t tap = threadIdx.x; tap < VXD_SPARSE_MAX_TAPS; tap += VXD_GRID_THREADS) {
        map_shared.tap_counts[tap] = 0;
    }
    __syncthreads();
    if (work.team.size > 0) {
        fill_any_table(&work, map_shared.tap_counts, shared);
        vxd_map_put_taps(&work, &map_shared);
    }
    grid.sync();
    if (work.team.size > 0) {
        n_passes = vxd_map_begin_order(&work, &map_shared);
        vxd_map_end_order(&work, n_passes);
    }
    for (int i = 0; i < batch.n_passes; i++) {
        if (i < n_passes) {
            pass = vxd_map_pass(&work, i, n_passes);
            vxd_sort_count(&pass, work.team, &items, &shared->sort);
        }
        grid.sync();
        if (i < n_passes) {
            vxd_sort_scatter(&pass, work.team, &items, &shared->sort);
        }
        if (i + 1 < batch.n_passes) {
            grid.sync();
        }
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
           vxd_layout_add(&out->total, n_blocks * VXD_SORT_BINS, 4, &out->counts) &&
           vxd_layout_add(&out->total, n_blocks * (size_t)n_taps, 4, &out->tap_counts);
}

size_t vxd_kernel_map_scratch_bytes_cuda(const struct vxd_queue *queue, int n_taps,
                                         size_t n_rows)
{
    struct layout layout;

    return lay_out(queue, n_taps, n_rows, &layout) ? layout.total : 0;
}

static enum vxd_status open_job(const struct vxd_queue *queue,
                                const struct vxd_kernel_map_call *call,
                                struct vxd_map_job *out, struct vxd_err *err)
{
    char *bytes = (char *)call->scratch;
    struct layout layout;

    if (!lay_out(queue, call->map.n_taps, call->map.capacity, &layout) ||
        layout.total > call->scratch_bytes) {
        return vxd_fail(err, VXD_INTERNAL, NULL, "scratch of %zu bytes, needed are %zu",
                        call->scratch_bytes, layout.total);
    }
    out->geometry = call->geometry;
    out->form = form_of(&call->geometry);
    out->n_in_blocks = call->in.n_blocks;
    out->in = {call->in.slots, call->in.block_keys, call->in.block_mask,
               call->in.block_row};
    out->n_rows = call->out.n_rows;
    out->out_keys = call->out.keys;
    out->map = call->map;
    out->keys[0] = (uint32_t *)(void *)(bytes + layout.keys[0]);
    out->keys[1] = (uint32_t *)(void *)(bytes + layout.keys[1]);
    out->values = (uint32_t *)(void *)(bytes + layout.values);
    out->sort_counts = (uint32_t *)(void *)(bytes + layout.counts);
    out->tap_counts = (uint32_t *)(void *)(bytes + layout.tap_counts);
    return VXD_OK;
}

static enum vxd_status launch(struct vxd_queue *queue,
                              const struct vxd_kernel_map_call *calls, int n,
                              struct vxd_err *err)
{
    struct batch batch = {n, 0, queue->error_word, {}};
    size_t n_rows = 0;
    enum vxd_status status = VXD_OK;

    for (int i = 0; i < n; i++) {
        size_t capacity = calls[i].map.capacity;
        int n_bits = calls[i].map.n_taps;
        int n_passes;

        n_bits = n_bits < VXD_ORDER_BITS ? n_bits : VXD_ORDER_BITS;
        n_passes = (n_bits + VXD_SORT_BITS - 1) / VXD_SORT_BITS;
        batch.n_passes = n_passes > batch.n_passes ? n_passes : batch.n_passes;
        n_rows += capacity > VXD_GRID_LEAST_PART ? capacity : VXD_GRID_LEAST_PART;
        VXD_TRY(open_job(queue, &calls[i], &batch.jobs[i], err));
    }
    VXD_TRY(VXD_CUDA(queue->context,
                     cudaFuncSetAttribute((const void *)maps_kernel,
                                          cudaFuncAttributeMaxDynamicSharedMemorySize,
                                          (int)sizeof(union shared_memory)),
                     err));
    VXD_TRY(vxd_grid_launch(queue, (const void *)maps_kernel, &batch, n_rows,
                            sizeof(union shared_memory), "maps_kernel", err));
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
