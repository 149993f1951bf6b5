// SPDX-License-Identifier: Apache-2.0
/* How a tile finds what its rows read, and fetches it. */
#ifndef VXD_GPU_SPARSE_CONV_CONV_LOAD_CUDA_H
#define VXD_GPU_SPARSE_CONV_CONV_LOAD_CUDA_H

#include "gpu/sparse/conv/conv_mma_cuda.h"
#include "gpu/sparse/conv/conv_store_cuda.h"

/* The slots of one mask word's taps. */
struct tile_slots {
    uint32_t n; /* n_slots for each tap the tile has */
    /* Bit i: tile_shared.taps[i] is a tap of half_row(0)'s rows, of half_row(1)'s. */
    uint32_t low_taps;
    uint32_t high_taps;
    int first_tap; /* of the word */
};

template <int N_TILE> __host__ __device__ constexpr int stage_bytes()
{
    return STAGE_IN_BYTES + STAGE_SLOTS * N_TILE * VXD_CONV_SLOT_BYTES;
}

/* Slot `number` of the tile: which of the tile's taps, and which slot of it. */
static __device__ __forceinline__ uint32_t tap_of_slot(const struct vxd_conv_tiles *tiles,
                                                       uint32_t number, uint32_t *in_tap)
{
    uint32_t tap =
        tiles->slots_reciprocal == 0 ? number : __umulhi(number, tiles->slots_reciprocal);

    *in_tap = number - tap * (uint32_t)tiles->n_slots;
    return tap;
}

/* Which rows the tile has; one thread a row. */
static __device__ __forceinline__ int32_t find_row(const struct vxd_conv_tiles *tiles,
                                                   uint32_t place, uint32_t n_rows)
{
    if (place >= n_rows) {
        return -1;
    }
    return tiles->order != NULL ? (int32_t)tiles->order[place] : (int32_t)place;
}

/* The four warps that fetch a tile, which may be all the block has. */
static __device__ __forceinline__ void tile_sync(void)
{
    asm volatile("bar.sync 1, %0;" ::"n"(N_THREADS) : "memory");
}

/* Notes which taps of a mask word the tile has; their number. */
static __device__ __forceinline__ int find_taps(struct tile_shared *shared, uint32_t mask,
                                                uint32_t *all)
{
    int thread = (int)threadIdx.x % N_THREADS;
    uint32_t group = mask;

    for (int i = 8; i > 0; i /= 2) {
        group |= __shfl_xor_sync(0xffffffffu, group, i);
    }
    if (thread % 16 == 0) {
        shared->group_masks[thread / 16] = group;
    }
    tile_sync();
    *all = 0;
    for (int i = 0; i < N_GROUPS; i++) {
        *all |= shared->group_masks[i];
    }
    if (thread < WORD_TAPS && (*all >> thread & 1u) != 0) {
        shared->taps[__popc(*all & ((1u << thread) - 1))] = thread;
    }
    return __popc(*all);
}

/* Taps of the 16 rows that one matrix instruction takes. */
static __device__ __forceinline__ uint32_t half_mask(const struct tile_shared *shared,
                                                     int half)
{
    return shared->group_masks[(int)threadIdx.x / 32 * 2 + half];
}

/* Finds the taps of mask word `word` that the tile has and what rows they read. */
static __device__ __forceinline__ struct tile_slots
find_slots(const struct vxd_conv_tiles *tiles, struct tile_shared *shared,
           int32_t *inputs, int32_t row, int word)
{
    int lane = (int)threadIdx.x % 32;
    int n_words = VXD_SPARSE_MASK_WORDS(tiles->n_taps);
    struct tile_slots slots = {.first_tap = word * WORD_TAPS};
    int32_t *to = inputs + threadIdx.x % N_THREADS;
    uint32_t mask = 0;
    uint32_t all;
    uint32_t tap;
    int n_taps;

    if (row >= 0) {
        mask = tiles->table == NULL ? 1 : tiles->masks[(size_t)row * n_words + word];
    }
    n_taps = find_taps(shared, mask, &all);
    for (; all != 0; all &= all - 1, to += VXD_CONV_TILE_ROWS) {
        int bit = __ffs((int)all) - 1;

        if ((mask >> bit & 1u) == 0) {
            *to = -1;
        } else if (tiles->table == NULL) {
            *to = row;
        } else {
            copy4(shared_address(to),
                  tiles->table + (size_t)(slots.first_tap + bit) * tiles->map_capacity +
                      row);
        }
    }
    copies_end_group();
    copies_wait(0);
    tile_sync();
    tap = lane < n_taps ? (uint32_t)shared->taps[lane] : 0;
    slots.low_taps = __ballot_sync(
        0xffffffffu, lane < n_taps && (half_mask(shared, 0) >> tap & 1u) != 0);
    slots.high_taps = __ballot_sync(
        0xffffffffu, lane < n_taps && (half_mask(shared, 1) >> tap & 1u) != 0);
    slots.n = (uint32_t)n_taps * (uint32_t)tiles->n_slots;
    return slots;
}

/* One 16-byte piece, n_valid bytes of which exist, of every 16th row; by copies of WIDTH bytes,
 * or at once where that is 2: copies are of 4 at least. */
template <enum vxd_net_precision PRECISION, int WIDTH>
static __device__ __forceinline__ void load_rows_by(const int32_t *inputs, const char *in,
                                                    uint32_t row_bytes, int n_valid,
                                                    char *to)
{
    constexpr int N_UNROLLED = WIDTH == 16 ? VXD_CONV_TILE_ROWS / 16 : 2;

#pragma unroll N_UNROLLED
    for (int i = 0; i < VXD_CONV_TILE_ROWS; i += N_THREADS / 8) {
        int32_t input = inputs[i];
        const char *from = in + (uint64_t)(input < 0 ? 0 : (uint32_t)input) * row_bytes;
        int n = input < 0 ? 0 : n_valid;

        if constexpr (WIDTH == 16) {
            copy16(shared_address(to + i * ROW_BYTES), from, n);
        } else if constexpr (WIDTH > 2) {
            copy_pieces<WIDTH>(shared_address(to + i * ROW_BYTES), from, n);
        } else {
            *(uint4 *)(to + i * ROW_BYTES) = gather16<2>(from, n);
        }
    }
}

/* Rows of stage `stage`, a piece number a thread. */
template <enum vxd_net_precision PRECISION>
static __device__ __forceinline__ void
load_stage_rows(const struct vxd_conv_tiles *tiles, const int32_t *inputs,
                const struct tile_slots *slots, uint32_t stage, char *to)
{
    constexpr int ELEMENT_BYTES =
        PRECISION == VXD_NET_FP16 || PRECISION == VXD_NET_BF16 ? 2 : 4;
    int piece = (int)threadIdx.x % 8;
    int first_row = (int)threadIdx.x % N_THREADS / 8;
    uint32_t number = stage * STAGE_SLOTS + (uint32_t)piece / 2;
    const char *in = tiles->in;
    uint32_t in_tap;
    uint32_t tap;
    int offset;
    int n_valid;

    if (number >= slots->n) {
        return;
    }
    tap = tap_of_slot(tiles, number, &in_tap);
    offset = (int)in_tap * VXD_CONV_SLOT_BYTES + piece % 2 * 16;
    n_valid = tiles->n_in * ELEMENT_BYTES - offset;
    n_valid = n_valid < 0 ? 0 : n_valid > 16 ? 16 : n_valid;
    in += n_valid > 0 ? offset : 0;
    to += first_row * ROW_BYTES + (piece ^ (first_row & 7)) * 16;
    inputs += tap * VXD_CONV_TILE_ROWS + first_row;
    if (tiles->in_alignment == 16) {
        load_rows_by<PRECISION, 16>(inputs, in, tiles->in_row_bytes, n_valid, to);
    } else if (tiles->in_alignment == 8) {
        load_rows_by<PRECISION, 8>(inputs, in, tiles->in_row_bytes, n_valid, to);
    } else if (tiles->in_alignment == 4) {
        load_rows_by<PRECISION, 4>(inputs, in, tiles->in_row_bytes, n_valid, to);
    } else {
        load_rows_by<PRECISION, 2>(inputs, in, tiles->in_row_bytes, n_valid, to);
    }
}

/* As many stages as leave room for two blocks a multiprocessor; fewer where it has less
 * shared memory. */
static inline enum vxd_status fit_stages(struct vxd_context *context, int n_stage_bytes,
                                         int n_table_bytes, int n_static_bytes,
                                         int *n_stages, struct vxd_err *err)
{
    int of_block = 0;
    int of_multiprocessor = 0;
    enum vxd_status status;

    VXD_TRY(VXD_CUDA(context,
                     cudaDeviceGetAttribute(&of_block,
                                            cudaDevAttrMaxSharedMemoryPerBlockOptin,
                                            context->device),
                     err));
    VXD_TRY(VXD_CUDA(context,
                     cudaDeviceGetAttribute(&of_multiprocessor,
                                            cudaDevAttrMaxSharedMemoryPerMultiprocessor,
                                            context->device),
                     err));
    of_multiprocessor = of_multiprocessor / 2 - 1024; /* the system's share */
    of_block -= n_static_bytes;
    of_multiprocessor -= n_static_bytes;
    for (*n_stages = 4; *n_stages > 2; --*n_stages) {
        if (*n_stages * n_stage_bytes + n_table_bytes <=
            (of_multiprocessor < of_block ? of_multiprocessor : of_block)) {
            break;
        }
    }
out:
    return status;
}

#endif
