// SPDX-License-Identifier: Apache-2.0
/* The tiles of conv_tiles_cuda.h for Hopper: four warps fetch, four multiply and store.
 *
 * Who fetches runs ahead through stages and into the next tile, as far as there are free
 * stages; barriers in shared memory tell when a stage is full and when it is free again. Rows
 * come by 16-byte copies of all fetching threads, a slot's weights by one bulk copy. What is
 * known of a tile (its output rows, its taps) is passed along in one of two places; a pass is
 * one mask word of a tile. The order of sums is that of conv_tiles_cuda.h. */
#ifndef VXD_GPU_SPARSE_CONV_WGMMA_TILES_CUDA_H
#define VXD_GPU_SPARSE_CONV_WGMMA_TILES_CUDA_H

#include "gpu/sparse/conv_load_cuda.h"
#include "gpu/sparse/conv_wgmma_cuda.h"

#define MAX_STAGES 4
#define N_PASSES 2

/* Passed from who fetches to who multiplies. */
struct pass {
    int32_t rows[VXD_CONV_TILE_ROWS];
    struct tile_slots slots;
};

struct wgmma_shared {
    struct tile_shared tile; /* of who fetches */
    struct pass passes[N_PASSES];
    uint64_t full[MAX_STAGES];
    uint64_t empty[MAX_STAGES];
    uint64_t pass_full[N_PASSES];
    uint64_t pass_empty[N_PASSES];
    __align__(16) char staged[STAGED_BYTES];
};

/* A place in a ring, and how often the ring was gone round, its last bit. */
struct ring {
    int at;
    uint32_t parity;
};

static __device__ __forceinline__ void ring_step(struct ring *ring, int n)
{
    if (++ring->at == n) {
        ring->at = 0;
        ring->parity ^= 1;
    }
}

static __device__ __forceinline__ void barrier_init(uint64_t *barrier, int n)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
                 "r"(n)
                 : "memory");
}

static __device__ __forceinline__ void barrier_arrive(uint64_t *barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier))
                 : "memory");
}

/* Arrives once the copies that this thread has begun are done. */
static __device__ __forceinline__ void barrier_arrive_copied(uint64_t *barrier)
{
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(
                     shared_address(barrier))
                 : "memory");
}

/* Until the phase of that parity has ended. */
static __device__ __forceinline__ void barrier_wait(uint64_t *barrier, uint32_t parity)
{
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@done bra over;\n"
                 "bra again;\n"
                 "over:\n"
                 "}" ::"r"(shared_address(barrier)),
                 "r"(parity)
                 : "memory");
}

/* Arrives, and has the barrier wait for n_bytes that one bulk copy brings. */
static __device__ __forceinline__ void bulk_copy(uint64_t *barrier, uint32_t to,
                                                 const char *from, uint32_t n_bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                     shared_address(barrier)),
                 "r"(n_bytes)
                 : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(from), "r"(n_bytes), "r"(shared_address(barrier))
                 : "memory");
}

/* Tile `number` of those of block blockIdx.x, in rounds to and fro, so that who had the most
 * work in one round has the least in the next; false past the last. */
static __device__ __forceinline__ bool find_tile(const struct vxd_conv_tiles *tiles,
                                                 uint32_t n_rows, int n_tile,
                                                 uint32_t number, uint32_t *first_place,
                                                 int *first_out)
{
    uint32_t n_columns = (uint32_t)(tiles->n_padded / n_tile);
    uint32_t n_row_tiles = (n_rows + VXD_CONV_TILE_ROWS - 1) / VXD_CONV_TILE_ROWS;
    uint32_t in_round = number % 2 == 0 ? blockIdx.x : gridDim.x - 1 - blockIdx.x;
    uint64_t i = (uint64_t)number * gridDim.x + in_round;

    *first_place = (n_row_tiles - 1 - (uint32_t)(i / n_columns)) * VXD_CONV_TILE_ROWS;
    *first_out = (int)(i % n_columns) * n_tile;
    return i < (uint64_t)n_row_tiles * n_columns;
}

/* The slots of a stage: one thread each. */
template <int N_TILE>
static __device__ __forceinline__ void
fetch_weights(const struct vxd_conv_tiles *tiles, struct wgmma_shared *shared,
              const struct tile_slots *slots, uint32_t number, int first_out, uint32_t to,
              uint64_t *barrier)
{
    uint32_t in_tap;
    uint32_t tap;
    uint64_t slot;

    if (number >= slots->n) {
        barrier_arrive(barrier);
        return;
    }
    tap = tap_of_slot(tiles, number, &in_tap);
    slot = (uint64_t)(uint32_t)(slots->first_tap + shared->tile.taps[tap]) *
               (uint32_t)tiles->n_slots +
           in_tap;
    bulk_copy(barrier, to,
              tiles->weights + (slot * (uint32_t)tiles->n_padded + (uint32_t)first_out) *
                                   VXD_CONV_SLOT_BYTES,
              N_TILE * VXD_CONV_SLOT_BYTES);
}

template <enum vxd_net_precision PRECISION, int N_TILE>
static __device__ __forceinline__ void
fetch_pass(const struct vxd_conv_tiles *tiles, struct wgmma_shared *shared,
           const struct tile_memory *memory, const struct tile_slots *slots,
           int first_out, struct ring *ring)
{
    uint32_t n_stages = (slots->n + STAGE_SLOTS - 1) / STAGE_SLOTS;
    int thread = (int)threadIdx.x % N_THREADS;

    for (uint32_t stage = 0; stage < n_stages; stage++) {
        char *to = memory->stages + ring->at * stage_bytes<N_TILE>();
        uint64_t *full = &shared->full[ring->at];

        barrier_wait(&shared->empty[ring->at], ring->parity ^ 1);
        if (thread < STAGE_SLOTS) {
            fetch_weights<N_TILE>(tiles, shared, slots,
                                  stage * STAGE_SLOTS + (uint32_t)thread, first_out,
                                  shared_address(to) + STAGE_IN_BYTES +
                                      (uint32_t)thread * (N_TILE * VXD_CONV_SLOT_BYTES),
                                  full);
        }
        load_stage_rows<PRECISION>(tiles, memory->inputs, slots, stage, to);
        if (tiles->in_alignment > 2) {
            barrier_arrive_copied(full);
        } else {
            barrier_arrive(full);
        }
        ring_step(ring, tiles->n_stages);
    }
}

template <enum vxd_net_precision PRECISION, int N_TILE>
static __device__ __forceinline__ void
fetch_tiles(const struct vxd_conv_tiles *tiles, struct wgmma_shared *shared,
            const struct tile_memory *memory, uint32_t n_rows)
{
    uint32_t thread = threadIdx.x % N_THREADS;
    struct ring ring = {0, 0};
    struct ring passes = {0, 0};
    uint32_t first_place;
    int first_out;

    for (uint32_t i = 0; find_tile(tiles, n_rows, N_TILE, i, &first_place, &first_out);
         i++) {
        int32_t row = find_row(tiles, first_place + thread, n_rows);

        for (int word = 0; word < VXD_SPARSE_MASK_WORDS(tiles->n_taps); word++) {
            struct pass *pass = &shared->passes[passes.at];
            struct tile_slots slots =
                find_slots<true>(tiles, &shared->tile, memory->inputs, row, word);

            barrier_wait(&shared->pass_empty[passes.at], passes.parity ^ 1);
            pass->rows[thread] = row;
            if (thread == 0) {
                pass->slots = slots;
            }
            barrier_arrive(&shared->pass_full[passes.at]);
            fetch_pass<PRECISION, N_TILE>(tiles, shared, memory, &slots, first_out,
                                          &ring);
            tile_sync(); /* the table of inputs is free */
            ring_step(&passes, N_PASSES);
        }
    }
}

/* Slots of a stage, four at most; none of this depends on which rows there are but has. */
template <enum vxd_net_precision PRECISION, int N_TILE>
static __device__ __forceinline__ void
multiply_stage(const struct vxd_conv_tiles *tiles, const struct tile_slots *slots,
               uint32_t stage, uint32_t rows, float (*sums)[N_TILE / 8][4])
{
    uint32_t weights = rows + STAGE_IN_BYTES;

    wgmma_fence();
#pragma unroll
    for (int slot = 0; slot < STAGE_SLOTS; slot++) {
        uint32_t number = stage * STAGE_SLOTS + (uint32_t)slot;
        uint32_t in_tap;
        uint32_t tap = tap_of_slot(tiles, number, &in_tap);

        if (number < slots->n && (slots->low_taps >> tap & 1u) != 0) {
            wgmma_half<PRECISION, N_TILE>(sums[0], rows, weights, slot);
        }
        if (number < slots->n && (slots->high_taps >> tap & 1u) != 0) {
            wgmma_half<PRECISION, N_TILE>(sums[1], rows + 64 * ROW_BYTES, weights, slot);
        }
    }
    wgmma_commit();
}

template <enum vxd_net_precision PRECISION, int N_TILE>
static __device__ __forceinline__ void
multiply_pass(const struct vxd_conv_tiles *tiles, struct wgmma_shared *shared,
              const struct tile_memory *memory, const struct tile_slots *slots,
              struct ring *ring, float (*sums)[N_TILE / 8][4])
{
    uint32_t n_stages = (slots->n + STAGE_SLOTS - 1) / STAGE_SLOTS;
    bool tells = threadIdx.x % 32 == 0;
    int before = 0;

    for (uint32_t stage = 0; stage < n_stages; stage++) {
        barrier_wait(&shared->full[ring->at], ring->parity);
        wgmma_publish();
        multiply_stage<PRECISION, N_TILE>(
            tiles, slots, stage,
            shared_address(memory->stages + ring->at * stage_bytes<N_TILE>()), sums);
        wgmma_wait<1>();
        if (stage > 0 && tells) {
            barrier_arrive(&shared->empty[before]);
        }
        before = ring->at;
        ring_step(ring, tiles->n_stages);
    }
    wgmma_wait<0>();
    wgmma_release<N_TILE>(sums);
    if (n_stages > 0 && tells) {
        barrier_arrive(&shared->empty[before]);
    }
}

template <enum vxd_net_precision PRECISION, int N_TILE>
static __device__ __forceinline__ void
multiply_tiles(const struct vxd_conv_tiles *tiles, struct wgmma_shared *shared,
               const struct tile_memory *memory, uint32_t n_rows)
{
    int n_words = VXD_SPARSE_MASK_WORDS(tiles->n_taps);
    struct ring ring = {0, 0};
    struct ring passes = {0, 0};
    uint32_t first_place;
    int first_out;

    for (uint32_t i = 0; find_tile(tiles, n_rows, N_TILE, i, &first_place, &first_out);
         i++) {
        float sums[2][N_TILE / 8][4];

#pragma unroll
        for (int k = 0; k < N_TILE; k++) {
            sums[k / 4 % 2][k / 8][k % 4] = 0.0f;
        }
        for (int word = 0; word < n_words; word++) {
            struct pass *pass = &shared->passes[passes.at];
            struct tile_slots slots;

            barrier_wait(&shared->pass_full[passes.at], passes.parity);
            slots = pass->slots;
            multiply_pass<PRECISION, N_TILE>(tiles, shared, memory, &slots, &ring, sums);
            if (word == n_words - 1) {
                store_tile<PRECISION, N_TILE, true>(
                    tiles, pass->rows, (float *)shared->staged, first_out, sums);
            }
            barrier_arrive(&shared->pass_empty[passes.at]);
            ring_step(&passes, N_PASSES);
        }
    }
}

template <enum vxd_net_precision PRECISION, int N_TILE>
static __global__ void __launch_bounds__(2 * N_THREADS, 2)
    wgmma_tiles_kernel(const __grid_constant__ struct vxd_conv_tiles tiles)
{
    extern __shared__ __align__(1024) char dynamic_shared[];
    __shared__ struct wgmma_shared shared;
    struct tile_memory memory = {
        (int32_t *)(dynamic_shared + tiles.n_stages * stage_bytes<N_TILE>()),
        dynamic_shared};
    uint32_t n_rows = *tiles.n_rows;

    if (n_rows > tiles.room) {
        if (blockIdx.x == 0 && threadIdx.x == 0) {
            atomicCAS(tiles.error_word, (uint32_t)VXD_OK,
                      (uint32_t)VXD_RESOURCE_EXHAUSTED);
        }
        return;
    }
    if (threadIdx.x == 0) {
        for (int i = 0; i < MAX_STAGES; i++) {
            barrier_init(&shared.full[i], N_THREADS + STAGE_SLOTS);
            barrier_init(&shared.empty[i], N_THREADS / 32);
        }
        for (int i = 0; i < N_PASSES; i++) {
            barrier_init(&shared.pass_full[i], N_THREADS);
            barrier_init(&shared.pass_empty[i], N_THREADS);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x >= N_THREADS) { /* registers go to who multiplies */
        asm volatile("setmaxnreg.dec.sync.aligned.u32 72;");
        fetch_tiles<PRECISION, N_TILE>(&tiles, &shared, &memory, n_rows);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 184;");
        multiply_tiles<PRECISION, N_TILE>(&tiles, &shared, &memory, n_rows);
    }
}

template <enum vxd_net_precision PRECISION, int N_TILE>
static enum vxd_status launch(struct vxd_queue *queue, struct vxd_conv_tiles tiles,
                              struct vxd_err *err)
{
    struct vxd_context *context = queue->context;
    int n_table_taps = tiles.n_taps < WORD_TAPS ? tiles.n_taps : WORD_TAPS;
    int n_table_bytes = n_table_taps * VXD_CONV_TILE_ROWS * (int)sizeof(int32_t);
    uint64_t n_tiles = (tiles.room + (uint64_t)VXD_CONV_TILE_ROWS - 1) /
                       VXD_CONV_TILE_ROWS * (uint64_t)(tiles.n_padded / N_TILE);
    unsigned n_most = 2 * (unsigned)context->info.n_multiprocessors;
    unsigned n_blocks = n_tiles == 0 ? 1 : n_tiles < n_most ? (unsigned)n_tiles : n_most;
    size_t n_shared;
    enum vxd_status status;

    VXD_TRY(fit_stages(context, stage_bytes<N_TILE>(), n_table_bytes,
                       (int)(sizeof(struct wgmma_shared) + 1023) / 1024 * 1024,
                       &tiles.n_stages, err));
    n_shared = (size_t)(tiles.n_stages * stage_bytes<N_TILE>() + n_table_bytes);
    VXD_TRY(VXD_CUDA(
        context,
        cudaFuncSetAttribute((const void *)wgmma_tiles_kernel<PRECISION, N_TILE>,
                             cudaFuncAttributeMaxDynamicSharedMemorySize, (int)n_shared),
        err));
    wgmma_tiles_kernel<PRECISION, N_TILE>
        <<<n_blocks, 2 * N_THREADS, n_shared, (cudaStream_t)queue->stream>>>(tiles);
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
