// SPDX-License-Identifier: Apache-2.0
/* Who multiplies, of conv_wgmma_tiles_cuda.h: adds up a tile's stages.
 *
 * A stage's matrix instructions are begun while those of the one before run, whose slot is
 * freed once they have ended: the matrix units need not wait for what lies between two stages.
 * Addresses are found once and kept, with all that counts stages, in uniform registers. There
 * is no branch around matrix instructions, nor anything else that touches sums between them,
 * or the compiler would have each wait for the one before. */
#ifndef VXD_GPU_SPARSE_CONV_CONV_WGMMA_MULTIPLY_CUDA_H
#define VXD_GPU_SPARSE_CONV_CONV_WGMMA_MULTIPLY_CUDA_H

#include <stddef.h>

#include "gpu/sparse/conv/conv_wgmma_fetch_cuda.h"

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

/* Whether a stage is there before the one under way has ended, about: asked as often as its
 * instructions take time. For all lanes or none. */
template <class FORM>
static __device__ __forceinline__ bool arrives_soon(uint32_t barrier, uint32_t parity)
{
    constexpr int N_POLLS = FORM::N_TILE * FORM::N_HALVES / 16;
    bool is_there = false;

#pragma unroll 1
    for (int i = 0; i < N_POLLS && !is_there; i++) {
        is_there = __all_sync(0xffffffffu, barrier_test_at(barrier, parity));
    }
    return is_there;
}

/* Waits for a stage while another, if any (0 = none), may be under way, whose slot is freed if
 * the wait is long: whoever fetches may need it. Returns what is still to be freed. */
template <class FORM>
static __device__ __forceinline__ uint32_t wait_for_stage(uint32_t barrier,
                                                          uint32_t parity,
                                                          uint32_t before)
{
    if (arrives_soon<FORM>(barrier, parity)) {
        return before;
    }
    wgmma_wait<0>();
    if (before != 0) {
        free_stage(before);
    }
    barrier_wait_at(barrier, parity);
    return 0;
}

/* Begins to add a stage to the sums of all halves of the group's rows. */
template <enum vxd_net_precision PRECISION, int N_TILE, int N>
static __device__ __forceinline__ void begin_stage(uint64_t rows, uint64_t weights,
                                                   float (*sums)[N_TILE / 8][4])
{
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

            wgmma<PRECISION, N_TILE>(sums[half], of_half, of_slot);
        }
    }
    wgmma_commit();
}

/* N slots of a half's rows, from slot `first` on, of a stage whose rows pass through registers:
 * the warp's 16 of them. */
template <enum vxd_net_precision PRECISION, int N>
static __device__ __forceinline__ void load_slots(uint32_t rows, int first,
                                                  uint32_t to[N][4])
{
#pragma unroll
    for (int i = 0; i < N; i++) {
        load_rows<PRECISION>(rows, first + i, to[i]);
    }
}

/* As begin_stage of one half and N slots, with rows in registers. Matrix units read those as
 * they multiply, not when they are told to: nothing may touch them before a wait for the group.
 * The assembler keeps other values out of them that long only where they are loaded again after
 * that wait. Where the next rows were loaded before it, into others, and took their place by
 * moves after it, it merged the two: slots were multiplied with rows of the next stage wherever
 * that was there soon, as it is among many rows. */
template <int N_TILE, int N>
static __device__ __forceinline__ void
begin_slots(const uint32_t rows[N][4], uint64_t weights, int first, float (*sums)[4])
{
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < N; i++) {
        wgmma_tf32<N_TILE>(
            sums, rows[i],
            weights + (uint64_t)((first + i) * N_TILE * VXD_CONV_SLOT_BYTES / 16));
    }
    wgmma_commit();
}

/* All stages of a tile's sums, both operands in shared memory. */
template <enum vxd_net_precision PRECISION, class FORM>
static __device__ __forceinline__ void
multiply_from_shared(int n_stages, const struct wgmma_shared<FORM> *shared,
                     uint32_t stages, struct ring *ring,
                     float (*sums)[FORM::N_TILE / 8][4])
{
    constexpr int N_TILE = FORM::N_TILE;
    constexpr int N_HALVES = FORM::N_HALVES;
    uint64_t rows =
        wgmma_rows(stages + warpgroup_of<FORM>() * (N_HALVES * HALF_ROWS * ROW_BYTES));
    uint64_t weights = wgmma_weights(stages + FORM::ROWS_BYTES);
    uint32_t full = barriers_of(shared);
    uint32_t before = 0; /* full barrier of the stage before; 0 = none */
    bool ends;

    do {
        uint32_t barrier = full + (uint32_t)ring->at * 8;
        uint64_t stage = (uint32_t)ring->at * (FORM::STAGE_BYTES / 16);

        before = wait_for_stage<FORM>(barrier, ring->parity, before);
        wgmma_publish();
        begin_stage<PRECISION, N_TILE, N_HALVES>(rows + stage, weights + stage, sums);
        ends = sums_end(shared, ring->at);
        wgmma_wait<1>();
        if (before != 0) {
            free_stage(before);
        }
        before = barrier;
        ring_step(ring, n_stages);
    } while (!ends);
    wgmma_wait<0>();
    free_stage(before);
}

/* The same with rows in registers: slots of a stage's one half are loaded while those of the
 * other are multiplied, so that each has its registers once. Sums are added to in the order of
 * slots all the same. Only ordinary loads read rows, and weights come by bulk copies, whose end
 * the barrier tells: nothing is to be published. */
template <enum vxd_net_precision PRECISION, class FORM>
static __device__ __forceinline__ void
multiply_from_registers(int n_stages, const struct wgmma_shared<FORM> *shared,
                        uint32_t stages, struct ring *ring, float (*sums)[4])
{
    constexpr int N = STAGE_SLOTS / 2;
    uint32_t rows = stages + threadIdx.x / 32 % 4 * (16 * ROW_BYTES);
    uint64_t weights = wgmma_weights(stages + FORM::ROWS_BYTES);
    uint32_t full = barriers_of(shared);
    uint32_t before = 0; /* full barrier of the stage before; 0 = none */
    uint32_t loaded[2][N][4];
    bool ends;

    do {
        uint32_t barrier = full + (uint32_t)ring->at * 8;
        uint32_t of_stage = rows + (uint32_t)ring->at * FORM::STAGE_BYTES;
        uint64_t weights_of_stage =
            weights + (uint32_t)ring->at * (FORM::STAGE_BYTES / 16);

        before = wait_for_stage<FORM>(barrier, ring->parity, before);
        load_slots<PRECISION, N>(of_stage, 0, loaded[0]);
        begin_slots<FORM::N_TILE, N>(loaded[0], weights_of_stage, 0, sums);
        wgmma_wait<1>(); /* the last slots of the stage before */
        if (before != 0) {
            free_stage(before);
        }
        load_slots<PRECISION, N>(of_stage, N, loaded[1]);
        begin_slots<FORM::N_TILE, N>(loaded[1], weights_of_stage, N, sums);
        ends = sums_end(shared, ring->at);
        wgmma_wait<1>(); /* the stage's first slots */
        before = barrier;
        ring_step(ring, n_stages);
    } while (!ends);
    wgmma_wait<0>();
    free_stage(before);
}

/* The same with two halves: rows of one are loaded while the other is multiplied, so that each
 * has its registers once. */
template <enum vxd_net_precision PRECISION, class FORM>
static __device__ __forceinline__ void
multiply_two_from_registers(int n_stages, const struct wgmma_shared<FORM> *shared,
                            uint32_t stages, struct ring *ring,
                            float (*sums)[FORM::N_TILE / 8][4])
{
    constexpr int N = STAGE_SLOTS;
    uint32_t rows = stages + warpgroup_of<FORM>() * (2 * HALF_ROWS * ROW_BYTES) +
                    threadIdx.x / 32 % 4 * (16 * ROW_BYTES);
    uint64_t weights = wgmma_weights(stages + FORM::ROWS_BYTES);
    uint32_t full = barriers_of(shared);
    uint32_t before = 0; /* full barrier of the stage before; 0 = none */
    uint32_t loaded[2][N][4];
    bool ends;

    do {
        uint32_t barrier = full + (uint32_t)ring->at * 8;
        uint32_t of_stage = rows + (uint32_t)ring->at * FORM::STAGE_BYTES;
        uint64_t weights_of_stage =
            weights + (uint32_t)ring->at * (FORM::STAGE_BYTES / 16);

        before = wait_for_stage<FORM>(barrier, ring->parity, before);
        load_slots<PRECISION, N>(of_stage, 0, loaded[0]);
        begin_slots<FORM::N_TILE, N>(loaded[0], weights_of_stage, 0, sums[0]);
        wgmma_wait<1>(); /* the other half of the stage before */
        if (before != 0) {
            free_stage(before);
        }
        load_slots<PRECISION, N>(of_stage + HALF_ROWS * ROW_BYTES, 0, loaded[1]);
        begin_slots<FORM::N_TILE, N>(loaded[1], weights_of_stage, 0, sums[1]);
        ends = sums_end(shared, ring->at);
        wgmma_wait<1>(); /* the stage's first half */
        before = barrier;
        ring_step(ring, n_stages);
    } while (!ends);
    wgmma_wait<0>();
    free_stage(before);
}

/* All stages of a tile's sums. */
template <enum vxd_net_precision PRECISION, class FORM>
static __device__ __forceinline__ void
multiply_tile(int n_stages, const struct wgmma_shared<FORM> *shared, const char *stages,
              struct ring *ring, float (*sums)[FORM::N_TILE / 8][4])
{
    uint32_t first = shared_address(stages);

    static_assert(FORM::N_HALVES == 2 || FORM::N_WARPGROUPS == 1, "of a lone half one");
    wgmma_release<FORM::N_TILE, FORM::N_HALVES>(sums); /* made before all that follows */
    if constexpr (PRECISION == VXD_NET_TF32 && FORM::N_HALVES == 2) {
        multiply_two_from_registers<PRECISION, FORM>(n_stages, shared, first, ring, sums);
    } else if constexpr (PRECISION == VXD_NET_TF32) {
        multiply_from_registers<PRECISION, FORM>(n_stages, shared, first, ring, sums[0]);
    } else {
        multiply_from_shared<PRECISION, FORM>(n_stages, shared, first, ring, sums);
    }
    wgmma_release<FORM::N_TILE, FORM::N_HALVES>(sums);
}

#endif
