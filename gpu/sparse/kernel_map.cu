// SPDX-License-Identifier: Apache-2.0
/* CUDA twin of kernel maps: one cooperative kernel a map (sparse_cuda.h).
 *
 * A thread has an output row and goes through the taps; writes to the tap-major table are
 * consecutive over a warp. What taps read lies in few blocks of 4x4x4 cells, at most two an
 * axis for the usual kernels: up to eight look-ups a row, kept in shared memory, then a bit
 * test and a population count a tap. Kernel 2, stride 2 is one look-up and one byte of the
 * block's mask. Then rows are ordered (kernel_map_cuda.h). Bytes: 4 a tap and row written, 8 a
 * row and 28 a look-up read, mostly from the caches. */
#include "gpu/sparse/kernel_map_cuda.h"

namespace cg = cooperative_groups;

/* How a row's taps find their rows. */
enum form {
    FORM_BOX,   /* at most two blocks an axis */
    FORM_BOX_3, /* likewise, kernel 3 on every axis, not transposed */
    FORM_WALK,  /* any: the last block is kept */
    FORM_DOWN,  /* kernel 2, stride 2, padding 0: the eight cells of an octant */
    FORM_UP     /* its transpose: the octant's one cell */
};

#define BOX_BLOCKS 8

/* Blocks that a thread's row reads, tap after tap conflict-free. */
struct box_shared {
    uint64_t masks[BOX_BLOCKS][VXD_GRID_THREADS];
    uint32_t rows[BOX_BLOCKS][VXD_GRID_THREADS];
};

union shared_memory {
    struct box_shared box;
    struct vxd_sort_shared sort;
};

/* A thread's output row while its taps are written. */
struct row_state {
    const struct vxd_map_run *run;
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
    const struct vxd_kernel_map *map = &state->run->map;
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
                                                enum form form, int axis, int32_t output,
                                                int tap, int32_t *code)
{
    bool is_whole = true;
    int32_t input;

    if (form != FORM_BOX_3 && g->transposed) {
        is_whole = vxd_sparse_coarse(g, axis, output, tap, &input);
    } else {
        input = vxd_sparse_fine(g, axis, output, tap);
    }
    *code = input + VXD_SPARSE_COORD_BIAS;
    return is_whole;
}

/* Least and greatest block of an axis that taps read. */
static __device__ __forceinline__ void block_range(const struct vxd_sparse_geometry *g,
                                                   enum form form, int axis,
                                                   int32_t output, int32_t *low,
                                                   int32_t *high)
{
    int last = form == FORM_BOX_3 ? 2 : g->kernel[axis] - 1;
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
static __device__ __forceinline__ void open_box(const struct vxd_map_run *run,
                                                enum form form, uint64_t key,
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

        block_range(&run->geometry, form, axis, output[axis], &low[axis], &high);
        has[axis][0] = is_row && is_block(low[axis]);
        has[axis][1] = is_row && high != low[axis] && is_block(high);
        share[axis][0] = block_axis(axis, low[axis]);
        share[axis][1] = block_axis(axis, high);
    }
#pragma unroll
    for (int i = 0; i < BOX_BLOCKS; i++) {
        struct vxd_sparse_block block = {0, 0};

        if (has[0][i >> 2] && has[1][i >> 1 & 1] && has[2][i & 1]) {
            block = vxd_sparse_find_block(&run->in, slot_mask,
                                          sample | share[0][i >> 2] |
                                              share[1][i >> 1 & 1] | share[2][i & 1]);
        }
        box->masks[i][threadIdx.x] = block.mask;
        box->rows[i][threadIdx.x] = block.row;
    }
}

/* FORM_BOX and FORM_BOX_3. */
template <enum form FORM>
static __device__ __forceinline__ void
map_by_box(struct row_state *state, bool is_in_table, uint64_t key, uint32_t slot_mask,
           struct box_shared *box)
{
    const struct vxd_sparse_geometry *g = &state->run->geometry;
    int kernel[3] = {3, 3, 3};
    int32_t output[3];
    int32_t low[3];
    int n_taps;
    int tap = 0;

#pragma unroll
    for (int axis = 0; axis < 3; axis++) {
        kernel[axis] = FORM == FORM_BOX_3 ? 3 : g->kernel[axis];
        output[axis] = vxd_sparse_key_coord(key, axis);
    }
    n_taps = kernel[0] * kernel[1] * kernel[2];
    open_box(state->run, FORM, key, output, state->is_row, slot_mask, low, box);
    for (int x = 0; x < kernel[0]; x++) {
        int32_t code_x;
        bool has_x = tap_code(g, FORM, 0, output[0], x, &code_x);

        for (int y = 0; y < kernel[1]; y++) {
            int32_t code_y;
            bool has_xy = tap_code(g, FORM, 1, output[1], y, &code_y) && has_x;

            for (int z = 0; z < kernel[2]; z++, tap++) {
                int32_t code_z;
                bool has = tap_code(g, FORM, 2, output[2], z, &code_z) && has_xy;
                int32_t at = ((code_x >> 2) - low[0]) * 4 + ((code_y >> 2) - low[1]) * 2 +
                             (code_z >> 2) - low[2];
                uint32_t cell = cell_axis(0, (uint32_t)code_x) |
                                cell_axis(1, (uint32_t)code_y) |
                                cell_axis(2, (uint32_t)code_z);
                int32_t entry = -1;

                if (has) {
                    struct vxd_sparse_block block = {box->masks[at][threadIdx.x],
                                                     box->rows[at][threadIdx.x]};

                    entry = vxd_sparse_find_cell(&block, cell);
                }
                put_entry(state, tap, n_taps, is_in_table, entry);
            }
        }
    }
}

static __device__ __forceinline__ void
map_by_walk(struct row_state *state, bool is_in_table, uint64_t key, uint32_t slot_mask)
{
    const struct vxd_sparse_geometry *g = &state->run->geometry;
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
                            vxd_sparse_find_block(&state->run->in, slot_mask, block_key);
                    }
                    entry = vxd_sparse_find_cell(&block, (uint32_t)(in_key & 63));
                }
                put_entry(state, tap, vxd_sparse_n_taps(g), is_in_table, entry);
            }
        }
    }
}

/* FORM_DOWN and FORM_UP: cells of an octant follow each other as its taps do. */
template <enum form FORM>
static __device__ __forceinline__ void
map_octant(struct row_state *state, bool is_in_table, uint64_t key, uint32_t slot_mask)
{
    struct vxd_sparse_block block = {0, 0};
    uint64_t in_key = vxd_sparse_key_floor(key, 1);
    uint32_t cell;
    int32_t entry = -1;

    if (state->is_row && (FORM == FORM_UP || vxd_sparse_key_double(key, &in_key))) {
        block = vxd_sparse_find_block(&state->run->in, slot_mask, in_key >> 6);
    }
    cell = (uint32_t)(in_key & 63);
    if (FORM == FORM_UP) {
        entry = vxd_sparse_find_cell(&block, cell);
    }
#pragma unroll
    for (int tap = 0; tap < 8; tap++) {
        if (FORM == FORM_UP) {
            put_entry(state, tap, 8, is_in_table, (int)(key & 7) == tap ? entry : -1);
        } else {
            put_entry(state, tap, 8, is_in_table,
                      vxd_sparse_find_cell(&block, cell + (uint32_t)tap));
        }
    }
}

template <enum form FORM>
static __device__ void fill_table(const struct vxd_map_run *run, uint32_t n_rows,
                                  uint32_t *tap_counts, union shared_memory *shared)
{
    uint32_t n_padded =
        (n_rows + VXD_SPARSE_ROW_PAD - 1) / VXD_SPARSE_ROW_PAD * VXD_SPARSE_ROW_PAD;
    uint32_t slot_mask = vxd_sparse_slot_mask(*run->in.n_blocks);
    struct vxd_part part = vxd_part_of(n_padded);

    for (uint32_t base = part.begin; base < part.end; base += VXD_GRID_THREADS) {
        struct row_state state = {run, tap_counts, base + threadIdx.x, false, 0, 0};
        bool is_in_table = state.row < part.end;
        uint64_t key = 0;

        if (__ballot_sync(UINT32_MAX, is_in_table) == 0) {
            continue;
        }
        state.is_row = is_in_table && state.row < n_rows;
        if (state.is_row) {
            key = run->out.keys[state.row];
        }
        if (FORM == FORM_BOX || FORM == FORM_BOX_3) {
            map_by_box<FORM>(&state, is_in_table, key, slot_mask, &shared->box);
        } else if (FORM == FORM_WALK) {
            map_by_walk(&state, is_in_table, key, slot_mask);
        } else {
            map_octant<FORM>(&state, is_in_table, key, slot_mask);
        }
    }
}

template <enum form FORM>
static __global__ void __launch_bounds__(VXD_GRID_THREADS, 1)
    map_kernel(const __grid_constant__ struct vxd_map_run run)
{
    extern __shared__ uint4 dynamic_shared[];
    __shared__ struct vxd_map_shared map_shared;
    union shared_memory *shared = (union shared_memory *)dynamic_shared;
    uint32_t n_rows = *run.out.n_rows;

    if (n_rows > run.map.capacity) {
        vxd_map_fail(&run);
        return;
    }
    for (int tap = (int)threadIdx.x; tap < run.map.n_taps; tap += VXD_GRID_THREADS) {
        map_shared.tap_counts[tap] = 0;
    }
    __syncthreads();
    fill_table<FORM>(&run, n_rows, map_shared.tap_counts, shared);
    vxd_map_finish(cg::this_grid(), &run, n_rows, &map_shared, &shared->sort);
}

/* Launching ----------------------------------------------------------------------------- */

static enum form form_of(const struct vxd_sparse_geometry *g)
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
        return g->transposed ? FORM_UP : FORM_DOWN;
    }
    if (is_box) {
        return is_3 ? FORM_BOX_3 : FORM_BOX;
    }
    return FORM_WALK;
}

static const void *kernel_of(enum form form)
{
    switch (form) {
    case FORM_BOX:
        return (const void *)map_kernel<FORM_BOX>;
    case FORM_BOX_3:
        return (const void *)map_kernel<FORM_BOX_3>;
    case FORM_DOWN:
        return (const void *)map_kernel<FORM_DOWN>;
    case FORM_UP:
        return (const void *)map_kernel<FORM_UP>;
    case FORM_WALK:
        break;
    }
    return (const void *)map_kernel<FORM_WALK>;
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

enum vxd_status vxd_kernel_map_build_cuda(struct vxd_queue *queue,
                                          const struct vxd_kernel_map_call *call,
                                          struct vxd_err *err)
{
    char *bytes = (char *)call->scratch;
    enum form form = form_of(&call->geometry);
    bool has_box = form == FORM_BOX || form == FORM_BOX_3;
    size_t shared_bytes =
        has_box ? sizeof(union shared_memory) : sizeof(struct vxd_sort_shared);
    struct vxd_map_run run = {call->geometry,    call->in,     call->out,
                              call->map,         {NULL, NULL}, NULL,
                              queue->error_word, NULL,         NULL};
    struct layout layout;
    enum vxd_status status = VXD_OK;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    if (!lay_out(queue, call->map.n_taps, call->map.capacity, &layout) ||
        layout.total > call->scratch_bytes) {
        return vxd_fail(err, VXD_INTERNAL, NULL, "scratch of %zu bytes, needed are %zu",
                        call->scratch_bytes, layout.total);
    }
    run.keys[0] = (uint32_t *)(void *)(bytes + layout.keys[0]);
    run.keys[1] = (uint32_t *)(void *)(bytes + layout.keys[1]);
    run.values = (uint32_t *)(void *)(bytes + layout.values);
    run.sort_counts = (uint32_t *)(void *)(bytes + layout.counts);
    run.tap_counts = (uint32_t *)(void *)(bytes + layout.tap_counts);
    VXD_TRY(VXD_CUDA(queue->context,
                     cudaFuncSetAttribute(kernel_of(form),
                                          cudaFuncAttributeMaxDynamicSharedMemorySize,
                                          (int)shared_bytes),
                     err));
    VXD_TRY(vxd_grid_launch(queue, kernel_of(form), &run, call->map.capacity,
                            shared_bytes, "map_kernel", err));
out:
    return status;
}
