// SPDX-License-Identifier: Apache-2.0
/* The tiles of conv_tiles_cuda.h for Hopper: four warps fetch, a team or two of four multiply
 * and store.
 *
 * Who fetches runs ahead through stages and into the next tile, as far as there are free
 * stages; barriers in shared memory tell when a stage is full and when it is free again. Rows
 * come by 16-byte copies of all fetching threads, a slot's weights by one bulk copy. A team has
 * N_HALVES x 64 of the tile's rows and all of its channels; one team of 128 rows, two blocks a
 * multiprocessor, is what was fastest of 64 to 256 rows over whole networks. The order of sums
 * is that of conv_tiles_cuda.h whatever the choice. */
#ifndef VXD_GPU_SPARSE_CONV_WGMMA_TILES_CUDA_H
#define VXD_GPU_SPARSE_CONV_WGMMA_TILES_CUDA_H

#include "gpu/sparse/conv_wgmma_store_cuda.h"

/* Adds a stage to the sums of N of the team's halves, from FIRST on. Instructions without a
 * branch between them, or the compiler would have each wait for the one before; for the same
 * reason rows that pass through registers are loaded first. */
template <enum vxd_net_precision PRECISION, int N_TILE, int FIRST, int N>
static __device__ __forceinline__ void multiply_halves(uint32_t rows, uint32_t weights,
                                                       float (*sums)[N_TILE / 8][4])
{
    constexpr bool BY_REGISTERS = PRECISION == VXD_NET_TF32;
    uint32_t loaded[N][STAGE_SLOTS][4];

    rows += FIRST * HALF_ROWS * ROW_BYTES;
#pragma unroll
    for (int i = 0; i < N * STAGE_SLOTS && BY_REGISTERS; i++) {
        load_rows<PRECISION>(rows + (uint32_t)(i / STAGE_SLOTS * HALF_ROWS * ROW_BYTES) +
                                 threadIdx.x / 32 % 4 * (16 * ROW_BYTES),
                             i % STAGE_SLOTS, loaded[i / STAGE_SLOTS][i % STAGE_SLOTS]);
    }
    wgmma_fence();
#pragma unroll
    for (int slot = 0; slot < STAGE_SLOTS; slot++) {
        uint64_t b =
            wgmma_weights(weights + (uint32_t)(slot * N_TILE * VXD_CONV_SLOT_BYTES));

#pragma unroll
        for (int half = 0; half < N; half++) {
            if constexpr (BY_REGISTERS) {
                wgmma_tf32<N_TILE>(sums[FIRST + half], loaded[half][slot], b);
            } else {
                wgmma<PRECISION, N_TILE>(
                    sums[FIRST + half],
                    wgmma_rows(rows + (uint32_t)(half * HALF_ROWS * ROW_BYTES +
                                                 slot * VXD_CONV_SLOT_BYTES)),
                    b);
            }
        }
    }
    wgmma_commit();
    wgmma_wait<0>();
}

/* All stages of a tile's sums. */
template <enum vxd_net_precision PRECISION, int N_TILE, int N_HALVES, int N_TILE_HALVES>
static __device__ __forceinline__ void
multiply_tile(const struct vxd_conv_tiles *tiles,
              struct wgmma_shared<N_TILE_HALVES> *shared, const char *stages, int team,
              struct ring *ring, float (*sums)[N_TILE / 8][4])
{
    constexpr int STAGE_BYTES = wgmma_stage_bytes<N_TILE, N_TILE_HALVES>();
    uint32_t to_do;

    do {
        uint32_t stage = shared_address(stages + ring->at * STAGE_BYTES);
        uint32_t rows = stage + (uint32_t)(team * N_HALVES * HALF_ROWS * ROW_BYTES);
        uint32_t weights = stage + N_TILE_HALVES * HALF_ROWS * ROW_BYTES;
        uint32_t own;

        barrier_wait(&shared->full[ring->at], ring->parity);
        to_do = *(const uint32_t *)shared->to_do[ring->at]; /* of all slots at once */
        to_do |= to_do >> 16;
        to_do |= to_do >> 8;
        own = to_do >> team * N_HALVES & ((1u << N_HALVES) - 1);
        wgmma_publish();
        if (own == (1u << N_HALVES) - 1) {
            multiply_halves<PRECISION, N_TILE, 0, N_HALVES>(rows, weights, sums);
        } else if (own == 1) {
            multiply_halves<PRECISION, N_TILE, 0, 1>(rows, weights, sums);
        } else if (own == 2) {
            multiply_halves<PRECISION, N_TILE, N_HALVES - 1, 1>(rows, weights, sums);
        }
        if (threadIdx.x % 32 == 0) {
            barrier_arrive(&shared->empty[ring->at]);
        }
        ring_step(ring, tiles->n_stages);
    } while ((to_do & SLOT_ENDS_SUMS) == 0);
    wgmma_release<N_TILE, N_HALVES>(sums);
}

template <enum vxd_net_precision PRECISION, int N_TILE, int N_HALVES, int N_TEAMS>
static __device__ __forceinline__ void
multiply_tiles(const struct vxd_conv_tiles *tiles,
               struct wgmma_shared<N_HALVES * N_TEAMS> *shared, const char *stages,
               char *staged, uint32_t n_rows)
{
    constexpr int ROWS = N_TEAMS * N_HALVES * HALF_ROWS;
    int team = (int)threadIdx.x / N_THREADS;
    struct ring ring = {0, 0};
    struct ring places = {0, 0};
    uint32_t first_place;
    int first_out;

    staged += threadIdx.x / 32 * WARP_STAGED_BYTES;
    for (uint32_t i = 0;
         find_tile(tiles, n_rows, ROWS, N_TILE, i, &first_place, &first_out); i++) {
        float sums[N_HALVES][N_TILE / 8][4];
        const int32_t *rows = shared->rows[places.at] + team * N_HALVES * HALF_ROWS;

#pragma unroll
        for (int k = 0; k < N_HALVES * N_TILE / 2; k++) {
            sums[k / (N_TILE / 2)][k / 4 % (N_TILE / 8)][k % 4] = 0.0f;
        }
        multiply_tile<PRECISION, N_TILE, N_HALVES, N_HALVES * N_TEAMS>(
            tiles, shared, stages, team, &ring, sums);
        if (tiles->is_out_whole) {
            store_tile_whole<PRECISION, N_TILE, N_HALVES, N_HALVES * N_TEAMS>(
                tiles, shared, stages,
                (uint32_t)(team * N_HALVES * HALF_ROWS * ROW_BYTES), rows, staged,
                first_out, &ring, sums);
        } else {
            store_tile_pieces<PRECISION, N_TILE, N_HALVES>(tiles, rows, (float *)staged,
                                                           first_out, sums);
        }
        if (threadIdx.x % 32 == 0) {
            barrier_arrive(&shared->place_empty[places.at]);
        }
        ring_step(&places, N_PLACES);
    }
}

template <int N_TEAMS> __host__ __device__ constexpr int blocks_of_multiprocessor()
{
    return N_TEAMS == 1 ? 2 : 1;
}

template <enum vxd_net_precision PRECISION, int N_TILE, int N_HALVES, int N_TEAMS>
static __global__ void __launch_bounds__((N_TEAMS + 1) * N_THREADS,
                                         blocks_of_multiprocessor<N_TEAMS>())
    wgmma_tiles_kernel(const __grid_constant__ struct vxd_conv_tiles tiles)
{
    constexpr int STAGE_BYTES = wgmma_stage_bytes<N_TILE, N_HALVES * N_TEAMS>();
    extern __shared__ __align__(1024) char dynamic_shared[];
    __shared__ struct wgmma_shared<N_HALVES * N_TEAMS> shared;
    __shared__ __align__(128) char staged[4 * N_TEAMS * WARP_STAGED_BYTES];
    uint32_t n_rows = *tiles.n_rows;

    if (n_rows > tiles.room) {
        if (blockIdx.x == 0 && threadIdx.x == 0) {
            atomicCAS(tiles.error_word, (uint32_t)VXD_OK,
                      (uint32_t)VXD_RESOURCE_EXHAUSTED);
        }
        return;
    }
    if (threadIdx.x == 0) {
        for (int i = 0; i < tiles.n_stages; i++) {
            barrier_init(&shared.full[i], N_THREADS + STAGE_SLOTS);
            barrier_init(&shared.empty[i], 4 * N_TEAMS);
        }
        for (int i = 0; i < N_PLACES; i++) {
            barrier_init(&shared.place_empty[i], 4 * N_TEAMS);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x >= N_TEAMS * N_THREADS) { /* registers go to who multiplies */
        struct tile_memory memory = {
            (int32_t *)(dynamic_shared + tiles.n_stages * STAGE_BYTES), dynamic_shared};

        if constexpr (N_TEAMS == 1) {
            asm volatile("setmaxnreg.dec.sync.aligned.u32 72;");
        } else {
            asm volatile("setmaxnreg.dec.sync.aligned.u32 88;");
        }
        fetch_tiles<PRECISION, N_TILE, N_HALVES * N_TEAMS>(&tiles, &shared, &memory,
                                                           n_rows);
    } else {
        if constexpr (N_TEAMS == 1) {
            asm volatile("setmaxnreg.inc.sync.aligned.u32 184;");
        } else {
            asm volatile("setmaxnreg.inc.sync.aligned.u32 208;");
        }
        multiply_tiles<PRECISION, N_TILE, N_HALVES, N_TEAMS>(
            &tiles, &shared, dynamic_shared, staged, n_rows);
    }
}

/* As many stages as leave room for the blocks of a multiprocessor. */
static inline enum vxd_status fit_wgmma_stages(struct vxd_context *context,
                                               const void *kernel, int n_stage_bytes,
                                               int n_table_bytes, int n_blocks,
                                               int *n_stages, struct vxd_err *err)
{
    struct cudaFuncAttributes attributes;
    int of_block = 0;
    int of_multiprocessor = 0;
    int room;
    enum vxd_status status;

    VXD_TRY(VXD_CUDA(context, cudaFuncGetAttributes(&attributes, kernel), err));
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
    room = of_multiprocessor / n_blocks - 1024; /* the system's share */
    room = (room < of_block ? room : of_block) - (int)attributes.sharedSizeBytes;
    *n_stages = (room - n_table_bytes) / n_stage_bytes;
    *n_stages = *n_stages < MAX_STAGES ? *n_stages : MAX_STAGES;
    VXD_TRY(
        VXD_CUDA(context,
                 cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      *n_stages * n_stage_bytes + n_table_bytes),
                 err));
out:
    return status;
}

template <enum vxd_net_precision PRECISION, int N_TILE, int N_HALVES, int N_TEAMS>
static enum vxd_status launch(struct vxd_queue *queue, struct vxd_conv_tiles tiles,
                              struct vxd_err *err)
{
    constexpr int ROWS = N_TEAMS * N_HALVES * HALF_ROWS;
    constexpr int STAGE_BYTES = wgmma_stage_bytes<N_TILE, N_HALVES * N_TEAMS>();
    const void *kernel =
        (const void *)wgmma_tiles_kernel<PRECISION, N_TILE, N_HALVES, N_TEAMS>;
    struct vxd_context *context = queue->context;
    int n_table_taps = tiles.n_taps < WORD_TAPS ? tiles.n_taps : WORD_TAPS;
    int n_table_bytes = n_table_taps * ROWS * (int)sizeof(int32_t);
    uint64_t n_tiles =
        (tiles.room + (uint64_t)ROWS - 1) / ROWS * (uint64_t)(tiles.n_padded / N_TILE);
    unsigned n_most =
        (unsigned)context->info.n_multiprocessors * blocks_of_multiprocessor<N_TEAMS>();
    unsigned n_blocks = n_tiles == 0 ? 1 : n_tiles < n_most ? (unsigned)n_tiles : n_most;
    enum vxd_status status;

    VXD_TRY(fit_wgmma_stages(context, kernel, STAGE_BYTES, n_table_bytes,
                             blocks_of_multiprocessor<N_TEAMS>(), &tiles.n_stages, err));
    wgmma_tiles_kernel<PRECISION, N_TILE, N_HALVES, N_TEAMS>
        <<<n_blocks, (N_TEAMS + 1) * N_THREADS,
           (size_t)(tiles.n_stages * STAGE_BYTES + n_table_bytes),
           (cudaStream_t)queue->stream>>>(tiles);
    VXD_TRY(vxd_cuda_launched(context, "wgmma_tiles_kernel", err));
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
        return launch<PRECISION, 16, 2, 1>(queue, *tiles, err);
    case 32:
        return launch<PRECISION, 32, 2, 1>(queue, *tiles, err);
    case 64:
        return launch<PRECISION, 64, 2, 1>(queue, *tiles, err);
    default:
        return launch<PRECISION, 96, 2, 1>(queue, *tiles, err);
    }
}

#endif
