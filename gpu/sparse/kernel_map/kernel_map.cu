// SPDX-License-Identifier: Apache-2.0
/* CUDA backend of kernel maps: one cooperative kernel (grid_cuda.h) for up to 16 maps, which
 * divide its blocks among them by their rows. A block waits only for those of its own map, so
 * small maps and maps of few taps finish early, and big ones get more blocks.
 *
 * The table of a map is filled first; then its rows are ordered and its tiles listed
 * (kernel_map_order_cuda.h).
 * Bytes: 4 a tap and row written, 8 a row and 52 a look-up read, mostly from the caches. */
#include "gpu/sparse/kernel_map/kernel_map_order_cuda.h"

/* How a kernel map's table is filled.
 *
 * A thread has an output row and iterates over the taps; writes to the tap-major table are
 * consecutive over a warp. The cells that taps read are in few blocks of 4x4x4 cells, at most two
 * an axis for the usual kernels: a row needs up to eight look-ups, whose results are kept in
 * shared memory, and then a bit test and a population count a tap. Kernel 2, stride 2 needs one
 * look-up and one byte of the block's mask. The number of instructions limits the speed: a tap of
 * kernel 3 takes 25. */

#define VXD_BOX_BLOCKS 8

/* A place in a box is the number of its block times this, plus the cell. */
#define VXD_BOX_PLACE_SHIFT 13

/* The blocks that a thread's row reads, and for each the row after its last. */
struct vxd_box_shared {
    uint64_t masks[VXD_BOX_BLOCKS][VXD_GRID_THREADS];
    uint32_t ends[VXD_BOX_BLOCKS][VXD_GRID_THREADS];
};

static_assert(sizeof(uint64_t) * VXD_GRID_THREADS == 1 << VXD_BOX_PLACE_SHIFT,
              "a place is an offset of masks, and twice one of ends");

union vxd_map_memory {
    struct vxd_box_shared box;
    struct vxd_sort_shared sort;
};

/* A thread's output row while its taps are written. */
struct vxd_map_row {
    const struct vxd_map_job *job;
    uint32_t *tap_counts; /* of the launch's block, in shared memory */
    uint32_t row;
    bool is_row; /* false in the padding */
    uint32_t mask;
    /* number of the warp's rows that have the tap with this lane's number */
    uint32_t n_of_lane;
};

/* Writes the next tap; all threads of a warp call. */
static __device__ __forceinline__ void vxd_map_put_entry(struct vxd_map_row *state,
                                                         int tap, int n_taps,
                                                         bool is_in_table, int32_t entry)
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

/* The part of a cell's code on an axis, 0 to 2^18 - 1, that is within its block. */
static __device__ __forceinline__ uint32_t vxd_box_cell(int axis, uint32_t code)
{
    return ((code & 2) << 2 | (code & 1)) << (2 - axis);
}

static __device__ __forceinline__ uint64_t vxd_box_block(int axis, int32_t block)
{
    return vxd_spread3((uint64_t)(uint32_t)block) << (2 - axis);
}

/* Input cell of a tap on an axis, biased; false where the tap reads none. A cell
 * outside the 18 bits is in a block that no set has. */
static __device__ __forceinline__ bool
vxd_map_tap_code(const struct vxd_sparse_geometry *g, enum vxd_map_form form, int axis,
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

/* The least and greatest block of an axis that taps read. */
static __device__ __forceinline__ void vxd_box_range(const struct vxd_sparse_geometry *g,
                                                     enum vxd_map_form form, int axis,
                                                     int32_t output, int32_t *low,
                                                     int32_t *high)
{
    int last = form == VXD_MAP_BOX_3 ? 2 : g->kernel[axis] - 1;
    int32_t ends[2];

    (void)vxd_map_tap_code(g, form, axis, output, 0, &ends[0]);
    (void)vxd_map_tap_code(g, form, axis, output, last, &ends[1]);
    *low = min(ends[0], ends[1]) >> 2;
    *high = max(ends[0], ends[1]) >> 2;
}

static __device__ __forceinline__ bool vxd_box_is_block(int32_t block)
{
    return block >= 0 && block < VXD_SPARSE_COORD_BIAS / 2;
}

/* Looks up the blocks around a row. */
static __device__ __forceinline__ void
vxd_box_init(const struct vxd_sparse_lookup *in, const struct vxd_sparse_geometry *g,
             enum vxd_map_form form, uint64_t key, const int32_t output[3], bool is_row,
             uint32_t bucket_mask, int32_t low[3], struct vxd_box_shared *box)
{
    uint64_t sample = vxd_sparse_key_sample_part(key) >> 6;
    uint64_t share[3][2];
    bool has[3][2];

#pragma unroll
    for (int axis = 0; axis < 3; axis++) {
        int32_t high;

        vxd_box_range(g, form, axis, output[axis], &low[axis], &high);
        has[axis][0] = is_row && vxd_box_is_block(low[axis]);
        has[axis][1] = is_row && high != low[axis] && vxd_box_is_block(high);
        share[axis][0] = vxd_box_block(axis, low[axis]);
        share[axis][1] = vxd_box_block(axis, high);
    }
#pragma unroll
    for (int x = 0; x < 2; x++) {
        uint64_t names[VXD_BOX_BLOCKS / 2];
        struct vxd_sparse_block blocks[VXD_BOX_BLOCKS / 2];

#pragma unroll
        for (int i = 0; i < VXD_BOX_BLOCKS / 2; i++) {
            names[i] = has[0][x] && has[1][i >> 1] && has[2][i & 1]
                           ? sample | share[0][x] | share[1][i >> 1] | share[2][i & 1]
                           : VXD_SPARSE_NO_KEY;
        }
        vxd_sparse_find_blocks<VXD_BOX_BLOCKS / 2>(in, bucket_mask, names, blocks);
#pragma unroll
        for (int i = 0; i < VXD_BOX_BLOCKS / 2; i++) {
            int at = x * (VXD_BOX_BLOCKS / 2) + i;

            box->masks[at][threadIdx.x] = blocks[i].mask;
            box->ends[at][threadIdx.x] =
                blocks[i].row + (uint32_t)vxd_sparse_popcount(blocks[i].mask);
        }
    }
}

/* Where a tap reads on an axis: its part of a place. */
static __device__ __forceinline__ uint32_t
vxd_box_place(const struct vxd_sparse_geometry *g, enum vxd_map_form form, int axis,
              int32_t output, int tap, int32_t low, bool *has)
{
    int32_t code;

    *has = vxd_map_tap_code(g, form, axis, output, tap, &code);
    return (uint32_t)((code >> 2) - low) << (VXD_BOX_PLACE_SHIFT + 2 - axis) |
           vxd_box_cell(axis, (uint32_t)code);
}

/* Input row at a place of the box, or -1. */
static __device__ __forceinline__ int32_t vxd_box_find(const struct vxd_box_shared *box,
                                                       uint32_t place)
{
    const char *masks = (const char *)&box->masks[0][threadIdx.x];
    const char *ends = (const char *)&box->ends[0][threadIdx.x];
    uint32_t at = place & ~63u;
    uint64_t from_cell = *(const uint64_t *)(const void *)(masks + at) >> (place & 63);
    uint32_t row = *(const uint32_t *)(const void *)(ends + at / 2) -
                   (uint32_t)vxd_sparse_popcount(from_cell);

    return (from_cell & 1) != 0 ? (int32_t)row : -1;
}

/* Writes a fixed number of taps with all state in registers. The tables are in device
 * memory, and the compiler must assume that a write there may change anything, so it
 * would read shared memory again after every tap. */
struct vxd_tap_writer {
    int32_t *to;
    size_t step;
    uint32_t mask;
    uint32_t peers; /* lanes that have the tap of this lane's number */
    bool is_in_table;
};

static __device__ __forceinline__ void vxd_tap_write(struct vxd_tap_writer *writer,
                                                     int tap, int32_t entry)
{
    uint32_t peers = __ballot_sync(UINT32_MAX, entry >= 0);

    if (writer->is_in_table) {
        *writer->to = entry;
    }
    writer->to += writer->step;
    writer->mask |= entry >= 0 ? 1u << tap : 0;
    writer->peers = threadIdx.x % 32 == (uint32_t)tap ? peers : writer->peers;
}

/* Kernel 3 on every axis, not transposed. */
static __device__ __forceinline__ void
vxd_box_write_taps(struct vxd_tap_writer *writer, const struct vxd_sparse_geometry *g,
                   const int32_t output[3], const int32_t low[3],
                   const struct vxd_box_shared *box)
{
    uint32_t places[3][3];
    bool unused;

#pragma unroll
    for (int axis = 0; axis < 3; axis++) {
#pragma unroll
        for (int tap = 0; tap < 3; tap++) {
            places[axis][tap] = vxd_box_place(g, VXD_MAP_BOX_3, axis, output[axis], tap,
                                              low[axis], &unused);
        }
    }
    /* Nine at once, so that reads of shared memory need not wait for writes. */
#pragma unroll
    for (int x = 0; x < 3; x++) {
        int32_t entries[9];

#pragma unroll
        for (int i = 0; i < 9; i++) {
            entries[i] =
                vxd_box_find(box, places[0][x] + places[1][i / 3] + places[2][i % 3]);
        }
#pragma unroll
        for (int i = 0; i < 9; i++) {
            vxd_tap_write(writer, 9 * x + i, entries[i]);
        }
    }
}

/* The cells of an octant are in the order of its taps. */
template <enum vxd_map_form FORM>
static __device__ __forceinline__ void
vxd_octant_write_taps(struct vxd_tap_writer *writer, const struct vxd_sparse_lookup *in,
                      bool is_row, uint64_t key, uint32_t bucket_mask)
{
    struct vxd_sparse_block block;
    uint64_t in_key = vxd_sparse_key_floor(key, 1);
    uint64_t name = VXD_SPARSE_NO_KEY;
    uint32_t bits = 0;
    uint32_t cell;
    int32_t entry;

    if (is_row && (FORM == VXD_MAP_UP || vxd_sparse_key_double(key, &in_key))) {
        name = in_key >> 6;
    }
    vxd_sparse_find_blocks<1>(in, bucket_mask, &name, &block);
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

        vxd_tap_write(writer, tap, has ? entry : -1);
        entry += FORM == VXD_MAP_DOWN && has ? 1 : 0;
    }
}

/* VXD_MAP_BOX_3, VXD_MAP_DOWN and VXD_MAP_UP: the number of taps is fixed and fits a
 * mask. */
template <enum vxd_map_form FORM>
static __device__ __forceinline__ void vxd_map_fill_fixed(const struct vxd_map_work *work,
                                                          uint32_t *tap_counts,
                                                          struct vxd_box_shared *box)
{
    const struct vxd_sparse_geometry g = work->job.geometry;
    const struct vxd_sparse_lookup in = work->job.in;
    const uint64_t *out_keys = work->job.out_keys;
    int32_t *table = work->job.map.table;
    uint32_t *masks = work->job.map.masks;
    size_t capacity = work->job.map.capacity;
    uint32_t n_rows = work->n_rows;
    struct vxd_block_range range =
        vxd_block_range_of(vxd_map_padded(n_rows), work->block_group);
    uint32_t bucket_mask = vxd_sparse_bucket_mask(*work->job.n_in_blocks, in.n_slots);
    uint32_t n_of_lane = 0;

    /* Ranges of blocks are multiples of a warp. */
    for (uint32_t row = range.begin + threadIdx.x; row - threadIdx.x % 32 < range.end;
         row += VXD_GRID_THREADS) {
        bool is_row = row < range.end && row < n_rows;
        uint64_t key = is_row ? out_keys[row] : 0;
        struct vxd_tap_writer writer = {table + row, capacity, 0, 0, row < range.end};

        if (FORM == VXD_MAP_BOX_3) {
            int32_t output[3];
            int32_t low[3];

#pragma unroll
            for (int axis = 0; axis < 3; axis++) {
                output[axis] = vxd_sparse_key_coord(key, axis);
            }
            vxd_box_init(&in, &g, FORM, key, output, is_row, bucket_mask, low, box);
            vxd_box_write_taps(&writer, &g, output, low, box);
        } else {
            vxd_octant_write_taps<FORM>(&writer, &in, is_row, key, bucket_mask);
        }
        if (row < range.end) {
            masks[row] = writer.mask;
        }
        n_of_lane += (uint32_t)__popc(writer.peers);
    }
    if (n_of_lane > 0) {
        (void)atomicAdd(&tap_counts[threadIdx.x % 32], n_of_lane);
    }
}

/* VXD_MAP_BOX. */
static __device__ __forceinline__ void vxd_map_by_box(struct vxd_map_row *state,
                                                      bool is_in_table, uint64_t key,
                                                      uint32_t bucket_mask,
                                                      struct vxd_box_shared *box)
{
    const struct vxd_sparse_geometry *g = &state->job->geometry;
    int n_taps = vxd_sparse_n_taps(g);
    int32_t output[3];
    int32_t low[3];
    int tap = 0;

    for (int axis = 0; axis < 3; axis++) {
        output[axis] = vxd_sparse_key_coord(key, axis);
    }
    vxd_box_init(&state->job->in, g, VXD_MAP_BOX, key, output, state->is_row, bucket_mask,
                 low, box);
    for (int x = 0; x < g->kernel[0]; x++) {
        bool has_x;
        uint32_t place_x = vxd_box_place(g, VXD_MAP_BOX, 0, output[0], x, low[0], &has_x);

        for (int y = 0; y < g->kernel[1]; y++) {
            bool has_y;
            uint32_t place_xy =
                place_x + vxd_box_place(g, VXD_MAP_BOX, 1, output[1], y, low[1], &has_y);

            for (int z = 0; z < g->kernel[2]; z++, tap++) {
                bool has_z;
                uint32_t place = place_xy + vxd_box_place(g, VXD_MAP_BOX, 2, output[2], z,
                                                          low[2], &has_z);

                vxd_map_put_entry(state, tap, n_taps, is_in_table,
                                  has_x && has_y && has_z ? vxd_box_find(box, place)
                                                          : -1);
            }
        }
    }
}

static __device__ __forceinline__ void vxd_map_by_walk(struct vxd_map_row *state,
                                                       bool is_in_table, uint64_t key,
                                                       uint32_t bucket_mask)
{
    const struct vxd_sparse_geometry *g = &state->job->geometry;
    uint64_t sample = vxd_sparse_key_sample_part(key);
    struct vxd_sparse_block block = {0, 0};
    uint64_t block_key = VXD_SPARSE_NO_KEY; /* stands for no block: names have 58 bits */
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
                        vxd_sparse_find_blocks<1>(&state->job->in, bucket_mask,
                                                  &block_key, &block);
                    }
                    entry = vxd_sparse_find_cell(&block, (uint32_t)(in_key & 63));
                }
                vxd_map_put_entry(state, tap, vxd_sparse_n_taps(g), is_in_table, entry);
            }
        }
    }
}

/* VXD_MAP_BOX and VXD_MAP_WALK. */
template <enum vxd_map_form FORM>
static __device__ __forceinline__ void vxd_map_fill(const struct vxd_map_work *work,
                                                    uint32_t *tap_counts,
                                                    union vxd_map_memory *shared)
{
    const struct vxd_map_job *job = &work->job;
    struct vxd_block_range range =
        vxd_block_range_of(vxd_map_padded(work->n_rows), work->block_group);
    uint32_t bucket_mask = vxd_sparse_bucket_mask(*job->n_in_blocks, job->in.n_slots);

    for (uint32_t base = range.begin; base < range.end; base += VXD_GRID_THREADS) {
        struct vxd_map_row state = {job, tap_counts, base + threadIdx.x, false, 0, 0};
        bool is_in_table = state.row < range.end;
        uint64_t key = 0;

        if (__ballot_sync(UINT32_MAX, is_in_table) == 0) {
            continue;
        }
        state.is_row = is_in_table && state.row < work->n_rows;
        if (state.is_row) {
            key = job->out_keys[state.row];
        }
        if (FORM == VXD_MAP_BOX) {
            vxd_map_by_box(&state, is_in_table, key, bucket_mask, &shared->box);
        } else {
            vxd_map_by_walk(&state, is_in_table, key, bucket_mask);
        }
    }
}

static __device__ __forceinline__ void vxd_map_fill_any(const struct vxd_map_work *work,
                                                        uint32_t *tap_counts,
                                                        union vxd_map_memory *shared)
{
    switch (work->job.form) {
    case VXD_MAP_BOX:
        vxd_map_fill<VXD_MAP_BOX>(work, tap_counts, shared);
        break;
    case VXD_MAP_BOX_3:
        vxd_map_fill_fixed<VXD_MAP_BOX_3>(work, tap_counts, &shared->box);
        break;
    case VXD_MAP_WALK:
        vxd_map_fill<VXD_MAP_WALK>(work, tap_counts, shared);
        break;
    case VXD_MAP_DOWN:
        vxd_map_fill_fixed<VXD_MAP_DOWN>(work, tap_counts, &shared->box);
        break;
    case VXD_MAP_UP:
        vxd_map_fill_fixed<VXD_MAP_UP>(work, tap_counts, &shared->box);
        break;
    }
}

/* Maps built by one launch. */
struct batch {
    int n_jobs;
    uint32_t *barriers; /* one word a map, 0 at first */
    uint32_t *error_word;
    struct vxd_map_job jobs[VXD_KERNEL_MAPS_AT_ONCE];
};

static_assert(sizeof(struct batch) <= 4096, "what a kernel's arguments may take");

/* What a row costs, measured. For a general kernel, blocks are looked up for each row,
 * taps are read from them, and the row is sorted by its taps; an octant is one look-up
 * and one pass. */
static __device__ __forceinline__ uint64_t weight_of(const struct vxd_map_job *job)
{
    bool is_octant = job->form == VXD_MAP_DOWN || job->form == VXD_MAP_UP;

    return is_octant ? 10 : 2 * (uint64_t)job->map.n_taps + 6;
}

/* Gives every map a block and divides the others by rows and the cost of a row; every
 * block computes the same division. The first warp calls. A map with too many rows
 * stays empty. */
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
    if (n_passes == 0) { /* the padding, and all rows, have their order already */
        vxd_block_group_wait(work.barrier, &map_shared.passed, work.block_group);
    }
    vxd_map_classify_tiles(&work);
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
        /* Cells between the inputs of the first tap and the last; up to four are in at
         * most two blocks. */
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
    /* each map needs at least one block */
    int at_once = queue->context->info.n_multiprocessors;
    enum vxd_status status = VXD_OK;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    for (int i = 0; i < n; i += at_once) {
        VXD_TRY(launch(queue, calls + i, n - i < at_once ? n - i : at_once, err));
    }
out:
    return status;
}
