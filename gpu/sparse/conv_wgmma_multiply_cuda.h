// SPDX-License-Identifier: Apache-2.0
/* Who multiplies, of conv_wgmma_tiles_cuda.h: adds up a tile's stages.
 *
 * Addresses are found once and kept, with all that counts stages, in uniform registers. There
 * is no branch around matrix instructions, nor anything else that touches sums between them,
 * or the compiler would have each wait for the one before. */
#ifndef VXD_GPU_SPARSE_CONV_WGMMA_MULTIPLY_CUDA_H
#define VXD_GPU_SPARSE_CONV_WGMMA_MULTIPLY_CUDA_H

#include <stddef.h>

#include "gpu/sparse/conv_wgmma_fetch_cuda.h"

#define EMPTY_FROM_FULL (MAX_STAGES * (uint32_t)sizeof(uint64_t))

/* The same in all lanes, and known to the compiler as such. */
static __device__ __forceinline__ uint32_t uniform(uint32_t x)
{
    return __shfl_sync(0xffffffffu, x, 0);
}

/* Which of those that multiply. */
template <class FORM> static __device__ __forceinline__ uint32_t warpgroup_of(void)
{
    return FORM::N_WARPGROUPS == 1 ? 0 : uniform(threadIdx.x / N_THREADS);
}

/* Shared address of full[0]; those of empty follow. Kept, not made anew for each stage. */
template <class FORM>
static __device__ __forceinline__ uint32_t
barriers_of(const struct wgmma_shared<FORM> *shared)
{
    uint32_t full = shared_address(shared->full);

    static_assert(offsetof(struct wgmma_shared<FORM>, empty) -
                          offsetof(struct wgmma_shared<FORM>, full) ==
                      EMPTY_FROM_FULL,
                  "barriers follow each other");
    asm("" : "+r"(full));
    return uniform(full);
}

/* Whether the sums end with the stage. After it no lane reads the stage's word any more. */
template <class FORM>
static __device__ __forceinline__ bool sums_end(const struct wgmma_shared<FORM> *shared,
                                                int at)
{
    bool ends = __any_sync(0xffffffffu, shared->ends_sums[at] != 0);

    __syncwarp();
    return ends;
}

/* Frees the stage whose full barrier that is: none of the warp's lanes or matrix instructions
 * reads it any more. */
static __device__ __forceinline__ void free_stage(uint32_t barrier)
{
    if (threadIdx.x % 32 == 0) {
        barrier_arrive_at(barrier + EMPTY_FROM_FULL);
    }
}

/* Adds a stage to the sums of all halves of the group's rows. Rows that pass through registers
 * are loaded first. */
template <enum vxd_net_precision PRECISION, int N_TILE, int N>
static __device__ __forceinline__ void multiply_stage(uint32_t row_address, uint64_t rows,
                                                      uint64_t weights,
                                                      float (*sums)[N_TILE / 8][4])
{
    constexpr bool BY_REGISTERS = PRECISION == VXD_NET_TF32;
    uint32_t loaded[N][STAGE_SLOTS][4];

#pragma unroll
    for (int i = 0; i < N * STAGE_SLOTS && BY_REGISTERS; i++) {
        load_rows<PRECISION>(row_address +
                                 (uint32_t)(i / STAGE_SLOTS * HALF_ROWS * ROW_BYTES),
                             i % STAGE_SLOTS, loaded[i / STAGE_SLOTS][i % STAGE_SLOTS]);
    }
    wgmma_fence();
#pragma unroll
    for (int slot = 0; slot < STAGE_SLOTS; slot++) {
        uint64_t of_slot = weights + (uint64_t)(slot * N_TILE * VXD_CONV_SLOT_BYTES / 16);

#pragma unroll
        for (int half = 0; half < N; half++) {
            uint64_t of_half =
                rows +
                (uint64_t)((half * HALF_ROWS * ROW_BYTES + slot * VXD_CONV_SLOT_BYTES) /
                           16);

            if constexpr (BY_REGISTERS) {
                wgmma_tf32<N_TILE>(sums[half], loaded[half][slot], of_slot);
            } else {
                wgmma<PRECISION, N_TILE>(sums[half], of_half, of_slot);
            }
        }
    }
    wgmma_commit();
    wgmma_wait<0>();
}

/* All stages of a tile's sums. */
template <enum vxd_net_precision PRECISION, class FORM>
static __device__ __forceinline__ void
multiply_tile(int n_stages, struct wgmma_shared<FORM> *shared, const char *stages,
              struct ring *ring, float (*sums)[FORM::N_TILE / 8][4])
{
    constexpr int N_TILE = FORM::N_TILE;
    constexpr int N_HALVES = FORM::N_HALVES;
    uint32_t first = shared_address(stages);
    uint32_t first_row =
        first + warpgroup_of<FORM>() * (N_HALVES * HALF_ROWS * ROW_BYTES);
    uint32_t row_of_warp = first_row + threadIdx.x / 32 % 4 * (16 * ROW_BYTES);
    uint64_t rows = wgmma_rows(first_row);
    uint64_t weights = wgmma_weights(first + FORM::ROWS_BYTES);
    uint32_t full = barriers_of(shared);
    bool ends;

    wgmma_release<N_TILE, N_HALVES>(sums); /* what they begin with is made before */
    do {
        uint32_t barrier = full + (uint32_t)ring->at * 8;
        uint64_t stage = (uint32_t)ring->at * (FORM::STAGE_BYTES / 16);

        barrier_wait_at(barrier, ring->parity);
        wgmma_publish();
        multiply_stage<PRECISION, N_TILE, N_HALVES>(row_of_warp + (uint32_t)ring->at *
                                                                      FORM::STAGE_BYTES,
                                                    rows + stage, weights + stage, sums);
        ends = sums_end(shared, ring->at);
        free_stage(barrier);
        ring_step(ring, n_stages);
    } while (!ends);
    wgmma_release<N_TILE, N_HALVES>(sums);
}

#endif
