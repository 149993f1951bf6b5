// SPDX-License-Identifier: Apache-2.0
/* Masked implicit GEMM: a block of four warps computes 128 output rows x N_TILE channels.
 *
 * Rows come in the map's order, sorted by which taps they have, so many taps are absent from a
 * whole tile, and more of them from groups of its rows (research, 2.4). Neither are multiplied.
 * The remaining taps are one sequence of slots (conv_cuda.h), tap after tap. Four slots are a
 * stage: their rows are gathered by 16-byte copies, with zeros where a row lacks the tap, beside
 * their weights, several stages before the matrix units need them. Then follow bias, residual,
 * activation, and 16-byte stores. Each sum adds taps in ascending order and within them channels
 * in ascending order, slot by slot; it does not depend on the row's tile or the other rows in it.
 * Moved: pairs x channels, gathered, and for each tile its taps' weights, from L2; 4 bytes a pair
 * of map; output (and residual) once. */
#ifndef VXD_GPU_SPARSE_CONV_CONV_TILES_CUDA_H
#define VXD_GPU_SPARSE_CONV_CONV_TILES_CUDA_H

#include "gpu/sparse/conv/conv_load_cuda.h"

/* Loads the weights of a stage: each slot by as many threads as it has 16-byte pieces,
 * or by a divisor of that. */
template <int N_TILE>
static __device__ __forceinline__ void
load_stage_weights(const struct vxd_conv_tiles *tiles, const struct tile_shared *shared,
                   const struct tile_slots *slots, uint32_t stage, int first_out,
                   char *to)
{
    constexpr int SLOT_PIECES = N_TILE * VXD_CONV_SLOT_BYTES / 16;

#pragma unroll
    for (int i = 0; i < STAGE_SLOTS * SLOT_PIECES / N_THREADS; i++) {
        int piece = i * N_THREADS + (int)threadIdx.x;
        uint32_t number = stage * STAGE_SLOTS + (uint32_t)(piece / SLOT_PIECES);

        if (number < slots->n) {
            uint32_t in_tap;
            uint32_t tap = tap_of_slot(tiles, number, &in_tap);
            uint64_t slot = (uint64_t)(uint32_t)(slots->first_tap + shared->taps[tap]) *
                                (uint32_t)tiles->n_slots +
                            in_tap;

            copy16(shared_address(to + piece * 16),
                   tiles->weights +
                       (slot * (uint32_t)tiles->n_padded + (uint32_t)first_out) *
                           VXD_CONV_SLOT_BYTES +
                       piece % SLOT_PIECES * 16,
                   16);
        }
    }
}

/* Adds the products of a stage that has arrived. */
template <enum vxd_net_precision PRECISION, int N_TILE>
static __device__ __forceinline__ void
multiply_stage(const struct vxd_conv_tiles *tiles, const struct tile_slots *slots,
               uint32_t stage, const char *at, float (*sums)[N_TILE / 8][4])
{
    uint32_t rows = shared_address(at);
    uint32_t weights = rows + STAGE_IN_BYTES;

#pragma unroll
    for (int slot = 0; slot < STAGE_SLOTS; slot++) {
        uint32_t number = stage * STAGE_SLOTS + (uint32_t)slot;
        uint32_t in_tap;
        uint32_t tap = tap_of_slot(tiles, number, &in_tap);
        bool has_low = number < slots->n && (slots->low_taps >> tap & 1u) != 0;
        bool has_high = number < slots->n && (slots->high_taps >> tap & 1u) != 0;

        multiply_slot<PRECISION, N_TILE>(sums, rows, weights, slot, has_low, has_high);
    }
}

template <enum vxd_net_precision PRECISION, int N_TILE>
static __device__ __forceinline__ void
load_stage(const struct vxd_conv_tiles *tiles, const struct tile_shared *shared,
           const struct tile_memory *memory, const struct tile_slots *slots,
           uint32_t stage, int first_out, int at)
{
    char *to = memory->stages + at * stage_bytes<N_TILE>();

    load_stage_rows<PRECISION>(tiles, memory->inputs, slots, stage, to);
    load_stage_weights<N_TILE>(tiles, shared, slots, stage, first_out,
                               to + STAGE_IN_BYTES);
}

/* Processes all slots of a mask word through the pipeline. At the end no copy is in
 * flight. */
template <enum vxd_net_precision PRECISION, int N_TILE>
static __device__ __forceinline__ void
multiply_slots(const struct vxd_conv_tiles *tiles, const struct tile_shared *shared,
               const struct tile_memory *memory, const struct tile_slots *slots,
               int first_out, float (*sums)[N_TILE / 8][4])
{
    uint32_t n_stages = (slots->n + STAGE_SLOTS - 1) / STAGE_SLOTS;
    uint32_t n_prefetch = (uint32_t)tiles->n_stages - 1;
    int read_at = 0;
    int write_at = (int)n_prefetch;

    for (uint32_t next = 0; next < n_prefetch; next++) {
        if (next < n_stages) {
            load_stage<PRECISION, N_TILE>(tiles, shared, memory, slots, next, first_out,
                                          (int)next);
        }
        copies_end_group();
    }
    for (uint32_t stage = 0; stage < n_stages; stage++) {
        copies_wait((int)n_prefetch - 1);
        __syncthreads();
        multiply_stage<PRECISION, N_TILE>(
            tiles, slots, stage, memory->stages + read_at * stage_bytes<N_TILE>(), sums);
        if (stage + n_prefetch < n_stages) {
            load_stage<PRECISION, N_TILE>(tiles, shared, memory, slots,
                                          stage + n_prefetch, first_out, write_at);
        }
        copies_end_group();
        read_at = read_at + 1 < tiles->n_stages ? read_at + 1 : 0;
        write_at = write_at + 1 < tiles->n_stages ? write_at + 1 : 0;
    }
    copies_wait(0);
    __syncthreads();
}

template <enum vxd_net_precision PRECISION, int N_TILE>
static __device__ __forceinline__ void
run_tile(const struct vxd_conv_tiles *tiles, struct tile_shared *shared,
         const struct tile_memory *memory, uint32_t first_place, uint32_t n_rows,
         int first_out)
{
    float sums[2][N_TILE / 8][4];
    int32_t row = find_row(tiles, first_place + threadIdx.x, n_rows);

#pragma unroll
    for (int i = 0; i < N_TILE; i++) {
        sums[i / 4 % 2][i / 8][i % 4] = 0.0f;
    }
    shared->rows[threadIdx.x] = row;
    for (int word = 0; word < VXD_SPARSE_MASK_WORDS(tiles->n_taps); word++) {
        struct tile_slots slots = find_slots(tiles, shared, memory->inputs, row, word);

        multiply_slots<PRECISION, N_TILE>(tiles, shared, memory, &slots, first_out, sums);
    }
    store_tile<PRECISION, N_TILE>(tiles, shared->rows, (float *)memory->stages, first_out,
                                  sums);
    __syncthreads();
}

/* Tiles with the rarest taps have the most taps and come last in the order, so they
 * are started first. */
template <enum vxd_net_precision PRECISION, int N_TILE>
static __global__ void __launch_bounds__(N_THREADS, 2)
    tiles_kernel(const __grid_constant__ struct vxd_conv_tiles tiles)
{
    extern __shared__ __align__(1024) char dynamic_shared[];
    __shared__ struct tile_shared shared;
    struct tile_memory memory = {
        (int32_t *)(dynamic_shared + tiles.n_stages * stage_bytes<N_TILE>()),
        dynamic_shared};
    uint32_t n_rows = *tiles.n_rows;
    uint32_t n_columns = (uint32_t)(tiles.n_padded / N_TILE);
    uint32_t n_row_tiles;
    uint64_t n_tiles;

    if (n_rows > tiles.max_rows) {
        if (blockIdx.x == 0 && threadIdx.x == 0) {
            atomicCAS(tiles.error_word, (uint32_t)VXD_OK,
                      (uint32_t)VXD_RESOURCE_EXHAUSTED);
        }
        return;
    }
    n_row_tiles = (n_rows + VXD_CONV_TILE_ROWS - 1) / VXD_CONV_TILE_ROWS;
    n_tiles = (uint64_t)n_row_tiles * n_columns;
    for (uint64_t i = blockIdx.x; i < n_tiles; i += gridDim.x) {
        uint32_t row_tile = n_row_tiles - 1 - (uint32_t)(i / n_columns);

        run_tile<PRECISION, N_TILE>(&tiles, &shared, &memory,
                                    row_tile * VXD_CONV_TILE_ROWS, n_rows,
                                    (int)(i % n_columns) * N_TILE);
    }
}

template <enum vxd_net_precision PRECISION, int N_TILE>
static enum vxd_status launch(struct vxd_queue *queue, struct vxd_conv_tiles tiles,
                              struct vxd_err *err)
{
    struct vxd_context *context = queue->context;
    int n_table_taps = tiles.n_taps < WORD_TAPS ? tiles.n_taps : WORD_TAPS;
    int n_table_bytes = n_table_taps * VXD_CONV_TILE_ROWS * (int)sizeof(int32_t);
    uint64_t n_tiles = (tiles.max_rows + (uint64_t)VXD_CONV_TILE_ROWS - 1) /
                       VXD_CONV_TILE_ROWS * (uint64_t)(tiles.n_padded / N_TILE);
    unsigned n_blocks = n_tiles == 0 ? 1 : n_tiles < 65536 ? (unsigned)n_tiles : 65536;
    size_t n_shared;
    enum vxd_status status;

    VXD_TRY(fit_stages(context, stage_bytes<N_TILE>(), n_table_bytes, TILE_SHARED_BYTES,
                       &tiles.n_stages, err));
    n_shared = (size_t)(tiles.n_stages * stage_bytes<N_TILE>() + n_table_bytes);
    VXD_TRY(VXD_CUDA(context,
                     cudaFuncSetAttribute((const void *)tiles_kernel<PRECISION, N_TILE>,
                                          cudaFuncAttributeMaxDynamicSharedMemorySize,
                                          (int)n_shared),
                     err));
    tiles_kernel<PRECISION, N_TILE>
        <<<n_blocks, N_THREADS, n_shared, (cudaStream_t)queue->stream>>>(tiles);
    VXD_TRY(vxd_cuda_launched(context, "tiles_kernel", err));
out:
    return status;
}

template <enum vxd_net_precision PRECISION>
static enum vxd_status launch_tiles(struct vxd_queue *queue,
                                    const struct vxd_conv_tiles *tiles, int n_tile,
                                    struct vxd_err *err)
{
    switch (n_tile) {
    case 16:
        return launch<PRECISION, 16>(queue, *tiles, err);
    case 32:
        return launch<PRECISION, 32>(queue, *tiles, err);
    case 64:
        return launch<PRECISION, 64>(queue, *tiles, err);
    default:
        return launch<PRECISION, 96>(queue, *tiles, err);
    }
}

#endif
