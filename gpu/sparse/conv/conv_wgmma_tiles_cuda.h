// SPDX-License-Identifier: Apache-2.0
/* The tiles of conv_tiles_cuda.h for Hopper: a warp finds what rows read, three fetch it, four
 * multiply and store; or twice as many of each.
 *
 * Who fetches runs ahead through stages and into the next tile, as far as there are free
 * stages; barriers in shared memory tell when a stage is full and when it is free again. Rows
 * come by 16-byte copies, a slot's weights by one bulk copy. How large tiles are is chosen by
 * how many rows there may be: the order of sums is that of conv_tiles_cuda.h whatever the
 * choice. */
#ifndef VXD_GPU_SPARSE_CONV_CONV_WGMMA_TILES_CUDA_H
#define VXD_GPU_SPARSE_CONV_CONV_WGMMA_TILES_CUDA_H

#include "gpu/sparse/conv/conv_wgmma_multiply_cuda.h"
#include "gpu/sparse/conv/conv_wgmma_store_cuda.h"

template <enum vxd_net_precision PRECISION, class FORM>
static __device__ __forceinline__ void
multiply_tiles(const struct vxd_conv_tiles *tiles, struct wgmma_shared<FORM> *shared,
               const char *stages, char *staged, uint32_t n_rows)
{
    constexpr int N_TILE = FORM::N_TILE;
    constexpr int N_HALVES = FORM::N_HALVES;
    struct ring ring = {0, 0};
    struct ring places = {0, 0};
    int first_row = (int)warpgroup_of<FORM>() * N_HALVES * HALF_ROWS; /* of the tile's */
    uint32_t tile_turn; /* of rows: whoever finds knows them */
    int first_out;

    staged += threadIdx.x / 32 * WARP_STAGED_BYTES;
    for (uint32_t i = 0;
         find_tile(tiles, n_rows, FORM::ROWS, N_TILE, i, &tile_turn, &first_out); i++) {
        float sums[N_HALVES][N_TILE / 8][4];
        const int32_t *rows = shared->rows[places.at] + first_row;

        begin_sums<FORM>(tiles, first_out, sums);
        multiply_tile<PRECISION, FORM>(tiles->n_stages, shared, stages, &ring, sums);
        if (tiles->is_out_whole) {
            store_tile_whole<PRECISION, FORM>(tiles, shared,
                                              stages + first_row * ROW_BYTES, rows,
                                              staged, first_out, &ring, sums);
        } else {
            store_tile_pieces<PRECISION, FORM>(tiles, rows, (float *)staged, first_out,
                                               sums);
        }
        if (threadIdx.x % 32 == 0) {
            barrier_arrive(&shared->place_empty[places.at]);
        }
        ring_step(&places, N_PLACES);
    }
}

template <class FORM>
static __device__ __forceinline__ void init_barriers(const struct vxd_conv_tiles *tiles,
                                                     struct wgmma_shared<FORM> *shared)
{
    int n_multiplying = 4 * FORM::N_WARPGROUPS; /* warps */
    int n_fetching = n_fetchers(tiles) * FORM::N_WARPGROUPS;

    for (int i = 0; i < tiles->n_stages; i++) {
        barrier_init(&shared->full[i], 32 * FORM::N_WARPGROUPS + STAGE_SLOTS);
        barrier_init(&shared->empty[i], n_multiplying);
    }
    for (int i = 0; i < N_PLACES; i++) {
        barrier_init(&shared->place_empty[i], n_multiplying + n_fetching);
    }
    for (int i = 0; i < N_CHUNKS; i++) {
        barrier_init(&shared->chunk_full[i], 2 * FORM::N_FINDERS);
        barrier_init(&shared->chunk_empty[i], n_fetching);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/* Where a kernel begins that was launched before the one before it had ended: until here it has
 * touched nothing but its own shared memory. From here on the next one may come in, too, as
 * blocks make room; it waits here for this kernel's end, and thereby for all before it. */
static __device__ __forceinline__ void begin_after_others(void)
{
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

template <enum vxd_net_precision PRECISION, class FORM>
static __global__ void __launch_bounds__(2 * FORM::N_MULTIPLIERS, 2 / FORM::N_WARPGROUPS)
    wgmma_tiles_kernel(const __grid_constant__ struct vxd_conv_tiles tiles)
{
    extern __shared__ __align__(1024) char dynamic_shared[];
    __shared__ struct wgmma_shared<FORM> shared;
    __shared__ __align__(128) char staged[4 * FORM::N_WARPGROUPS * WARP_STAGED_BYTES];
    struct wgmma_memory memory = {
        dynamic_shared, (int32_t *)(dynamic_shared + tiles.n_stages * FORM::STAGE_BYTES),
        (uint32_t)(min(tiles.n_taps, CHUNK_TAPS) * FORM::ROWS)};
    uint32_t n_rows;

    if (threadIdx.x == 0) {
        init_barriers<FORM>(&tiles, &shared);
    }
    begin_after_others();
    n_rows = *tiles.n_rows;
    if (n_rows > tiles.max_rows) {
        if (blockIdx.x == 0 && threadIdx.x == 0) {
            atomicCAS(tiles.error_word, (uint32_t)VXD_OK,
                      (uint32_t)VXD_RESOURCE_EXHAUSTED);
        }
        return;
    }
    __syncthreads();
    if (threadIdx.x < FORM::N_MULTIPLIERS) { /* registers go to who multiplies */
        asm volatile("setmaxnreg.inc.sync.aligned.u32 176;");
        multiply_tiles<PRECISION, FORM>(&tiles, &shared, dynamic_shared, staged, n_rows);
        return;
    }
    asm volatile("setmaxnreg.dec.sync.aligned.u32 80;");
    if (threadIdx.x >= 2 * FORM::N_MULTIPLIERS - FORM::N_FINDERS) {
        find_tiles<FORM>(&tiles, &shared, &memory, n_rows);
    } else {
        fetch_tiles<PRECISION, FORM>(&tiles, &shared, &memory, n_rows);
    }
}

/* As many stages as leave room for n_blocks a multiprocessor. The kernel is allowed all that
 * one block may have, whatever it takes this time: graphs that have it keep their launches. */
static inline enum vxd_status fit_wgmma_stages(struct vxd_context *context,
                                               const void *kernel, int n_blocks,
                                               int n_stage_bytes, int n_table_bytes,
                                               int *n_stages, struct vxd_err *err)
{
    struct cudaFuncAttributes attributes;
    int of_block = 0;
    int of_multiprocessor = 0;
    int stages_bytes;
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
    of_block -= (int)attributes.sharedSizeBytes;
    stages_bytes = of_multiprocessor / n_blocks - 1024 /* the system's share */ -
                   (int)attributes.sharedSizeBytes;
    stages_bytes = stages_bytes < of_block ? stages_bytes : of_block;
    *n_stages = (stages_bytes - n_table_bytes) / n_stage_bytes;
    *n_stages = *n_stages < MAX_STAGES ? *n_stages : MAX_STAGES;
    VXD_TRY(VXD_CUDA(context,
                     cudaFuncSetAttribute(
                         kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, of_block),
                     err));
out:
    return status;
}

static inline uint64_t count_tiles(const struct vxd_conv_tiles *tiles, int n_tile_rows,
                                   int n_tile)
{
    return ((uint64_t)tiles->max_rows + (uint64_t)n_tile_rows - 1) /
           (uint64_t)n_tile_rows * (uint64_t)(tiles->n_padded / n_tile);
}

template <enum vxd_net_precision PRECISION, class FORM>
static enum vxd_status launch(struct vxd_queue *queue, struct vxd_conv_tiles tiles,
                              struct vxd_err *err)
{
    const void *kernel = (const void *)wgmma_tiles_kernel<PRECISION, FORM>;
    struct vxd_context *context = queue->context;
    int n_table_taps = tiles.n_taps < CHUNK_TAPS ? tiles.n_taps : CHUNK_TAPS;
    int n_table_bytes = N_CHUNKS * n_table_taps * FORM::ROWS * (int)sizeof(int32_t);
    uint64_t n_tiles = count_tiles(&tiles, FORM::ROWS, FORM::N_TILE);
    unsigned n_multiprocessors = (unsigned)context->info.n_multiprocessors;
    /* Of a multiprocessor: a lone one has all its memory for stages. */
    unsigned n_at_once = n_tiles <= n_multiprocessors ? 1 : 2 / FORM::N_WARPGROUPS;
    unsigned n_most = n_at_once * n_multiprocessors;
    unsigned n_blocks = n_tiles == 0 ? 1 : n_tiles < n_most ? (unsigned)n_tiles : n_most;
    cudaLaunchAttribute early = {};
    cudaLaunchConfig_t config = {};
    enum vxd_status status;

    VXD_TRY(fit_wgmma_stages(context, kernel, (int)n_at_once, FORM::STAGE_BYTES,
                             n_table_bytes, &tiles.n_stages, err));
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    config.gridDim = dim3(n_blocks);
    config.blockDim = dim3(2 * FORM::N_MULTIPLIERS);
    config.dynamicSmemBytes =
        (size_t)(tiles.n_stages * FORM::STAGE_BYTES + n_table_bytes);
    config.stream = (cudaStream_t)queue->stream;
    config.attrs = &early;
    config.numAttrs = 1;
    VXD_TRY(VXD_CUDA(
        context, cudaLaunchKernelEx(&config, wgmma_tiles_kernel<PRECISION, FORM>, tiles),
        err));
out:
    return status;
}

/* Tiles of more rows gather weights less often, but leave fewer stages and find fewer taps that
 * all their rows lack: measured, they pay for few taps and for very many rows. */
template <enum vxd_net_precision PRECISION, int N_TILE>
static enum vxd_status launch_rows(struct vxd_queue *queue,
                                   const struct vxd_conv_tiles *tiles,
                                   struct vxd_err *err)
{
    unsigned n_multiprocessors = (unsigned)queue->context->info.n_multiprocessors;

    if constexpr (N_TILE == 96) {
        if (count_tiles(tiles, 256, N_TILE) >= 3 * n_multiprocessors) {
            return launch<PRECISION, wgmma_form<N_TILE, 2, 2>>(queue, *tiles, err);
        }
    }
    if constexpr (N_TILE < 128) { /* of 128 there are too few registers for two halves */
        if (count_tiles(tiles, 128, N_TILE) >= 2 * n_multiprocessors &&
            (tiles->n_taps <= 8 || N_TILE <= 32)) {
            return launch<PRECISION, wgmma_form<N_TILE, 2, 1>>(queue, *tiles, err);
        }
    }
    return launch<PRECISION, wgmma_form<N_TILE, 1, 1>>(queue, *tiles, err);
}

template <enum vxd_net_precision PRECISION>
static enum vxd_status launch_tiles(struct vxd_queue *queue,
                                    const struct vxd_conv_tiles *tiles, int n_tile,
                                    struct vxd_err *err)
{
    unsigned n_multiprocessors = (unsigned)queue->context->info.n_multiprocessors;

    /* Rows are gathered half as often, unless tiles half as wide were one a multiprocessor. */
    if (tiles->n_padded % 128 == 0 &&
        2 * count_tiles(tiles, HALF_ROWS, 128) > n_multiprocessors) {
        n_tile = 128;
    }
    switch (n_tile) {
    case 16:
        return launch_rows<PRECISION, 16>(queue, tiles, err);
    case 32:
        return launch_rows<PRECISION, 32>(queue, tiles, err);
    case 64:
        return launch_rows<PRECISION, 64>(queue, tiles, err);
    case 128:
        return launch_rows<PRECISION, 128>(queue, tiles, err);
    default:
        return launch_rows<PRECISION, 96>(queue, tiles, err);
    }
}

#endif
