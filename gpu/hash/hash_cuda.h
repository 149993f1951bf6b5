// SPDX-License-Identifier: Apache-2.0
/* Rows of any size, moved on a GPU by number (ASH, section 4.6); for .cu files only. */
#ifndef VXD_GPU_HASH_HASH_CUDA_H
#define VXD_GPU_HASH_HASH_CUDA_H

#include "gpu/hash/hash_internal.h"

/* Copies row from_rows[k] of `from` to row to_rows[k] of `to`, for k below n. */
struct vxd_row_move {
    void *to;
    const void *from; /* NULL: zero bytes */
    size_t row_bytes;
    size_t n;
    const int32_t *to_rows;   /* NULL: row k; negative numbers are skipped */
    const int32_t *from_rows; /* NULL: row k */
    /* Rows of from_rows that do not live, or name no entry, give zeros. NULL: all
     * live. */
    const uint32_t *live;
    size_t capacity;
    /* Where not NULL, only k below *last - *first (at most n) are moved and to_rows
     * begins at *first: the numbers that an insert took from the heap. */
    const uint32_t *first;
    const uint32_t *last;
};

/* Bytes that a thread moves at once, 1 to 16: the largest power of two that divides the row
 * and both addresses. */
size_t vxd_row_unit(const void *to, const void *from, size_t row_bytes);

/* A value array whose rows the threads of an insertion write themselves. */
struct vxd_value_rows {
    char *to;
    const char *from;
    uint32_t row_bytes;
    uint32_t unit; /* bytes that a thread moves at once */
};

/* Rows of at most this many units are written by the key's thread. */
#define VXD_DIRECT_UNITS 4

/* Divides the value arrays of an insertion between the keys' threads (rows, *n_rows of
 * them) and vxd_rows_move (is_long). Returns true where vxd_rows_move has work. */
bool vxd_split_values(const struct vxd_hashmap *map,
                      const struct vxd_hashmap_insert_args *call,
                      struct vxd_value_rows rows[VXD_HASHMAP_MAX_VALUES], int *n_rows,
                      bool is_long[VXD_HASHMAP_MAX_VALUES]);

enum vxd_status vxd_rows_move(struct vxd_queue *queue, const struct vxd_row_move *move,
                              struct vxd_err *err);

/* Number of blocks for n items, at most `most` a multiprocessor: enough to fill the
 * device. */
unsigned vxd_hash_blocks(const struct vxd_queue *queue, size_t n, size_t items_per_block,
                         size_t most);

#if defined(__CUDACC__)
/* Sets the live bits of a warp's numbers; all 32 lanes call. Numbers that were taken
 * together share words, so this costs one or two atomic operations a warp. */
static __device__ __forceinline__ void vxd_live_set_warp(uint32_t *live, bool has,
                                                         uint32_t number)
{
    uint32_t left = __ballot_sync(UINT32_MAX, has);
    uint32_t word = number / 32;

    while (left != 0) {
        int leader = __ffs((int)left) - 1;
        uint32_t their_word = __shfl_sync(UINT32_MAX, word, leader);
        bool mine = has && word == their_word;
        uint32_t bits = __reduce_or_sync(UINT32_MAX, mine ? 1u << number % 32 : 0);

        if ((int)(threadIdx.x % 32) == leader) {
            (void)atomicOr(live + their_word, bits);
        }
        left &= ~__ballot_sync(UINT32_MAX, mine);
    }
}

/* Clears the live bits of a warp's numbers, likewise. */
static __device__ __forceinline__ void vxd_live_clear_warp(uint32_t *live, bool has,
                                                           uint32_t number)
{
    uint32_t left = __ballot_sync(UINT32_MAX, has);
    uint32_t word = number / 32;

    while (left != 0) {
        int leader = __ffs((int)left) - 1;
        uint32_t their_word = __shfl_sync(UINT32_MAX, word, leader);
        bool mine = has && word == their_word;
        uint32_t bits = __reduce_or_sync(UINT32_MAX, mine ? 1u << number % 32 : 0);

        if ((int)(threadIdx.x % 32) == leader) {
            (void)atomicAnd(live + their_word, ~bits);
        }
        left &= ~__ballot_sync(UINT32_MAX, mine);
    }
}

static __device__ __forceinline__ bool vxd_live_get(const uint32_t *live, size_t capacity,
                                                    int32_t entry)
{
    return entry >= 0 && (size_t)entry < capacity &&
           (live[(uint32_t)entry / 32] >> ((uint32_t)entry % 32) & 1u) != 0;
}

/* One row of a few units, by one thread. */
static __device__ __forceinline__ void
vxd_row_copy_thread(char *to, const char *from, uint32_t n_bytes, uint32_t unit)
{
#pragma unroll 1
    for (uint32_t b = 0; b < n_bytes; b += unit) {
        switch (unit) {
        case 16:
            __stcs((uint4 *)(to + b), __ldcs((const uint4 *)(from + b)));
            break;
        case 8:
            __stcs((uint2 *)(to + b), __ldcs((const uint2 *)(from + b)));
            break;
        case 4:
            __stcs((uint32_t *)(to + b), __ldcs((const uint32_t *)(from + b)));
            break;
        case 2:
            *(uint16_t *)(to + b) = *(const uint16_t *)(from + b);
            break;
        default:
            to[b] = from[b];
            break;
        }
    }
}

/* Row i of a batch's values to an entry. */
static __device__ __forceinline__ void
vxd_values_copy_thread(const struct vxd_value_rows *values, int n_values, size_t number,
                       size_t i)
{
#pragma unroll 1
    for (int v = 0; v < n_values; v++) {
        vxd_row_copy_thread(values[v].to + number * values[v].row_bytes,
                            values[v].from + i * values[v].row_bytes, values[v].row_bytes,
                            values[v].unit);
    }
}

/* Place of each winning thread among the block's winners, in thread order; *n_won is
 * the number of winners. */
template <int THREADS>
static __device__ __forceinline__ uint32_t vxd_rank_in_block(bool has_won,
                                                             uint32_t *n_won)
{
    __shared__ uint32_t counts[THREADS / 32];
    uint32_t lane = threadIdx.x % 32;
    uint32_t warp = threadIdx.x / 32;
    uint32_t winners = __ballot_sync(UINT32_MAX, has_won);
    uint32_t count;
    uint32_t before;

    if (lane == 0) {
        counts[warp] = (uint32_t)__popc(winners);
    }
    __syncthreads();
    count = lane < THREADS / 32 ? counts[lane] : 0;
    before = __reduce_add_sync(UINT32_MAX, lane < warp ? count : 0);
    *n_won = __reduce_add_sync(UINT32_MAX, count);
    return before + (uint32_t)__popc(winners & ((1u << lane) - 1));
}
#endif

#endif
