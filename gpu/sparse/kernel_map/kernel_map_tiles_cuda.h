// SPDX-License-Identifier: Apache-2.0
/* The last step of a kernel map: lists of the tiles that convolutions cut rows in order into,
 * those with the most taps first.
 *
 * A block of a convolution has a few tiles, given out to and fro over all blocks in the list's
 * order: so all have about as much to do. In the rows' own order the block with the most had
 * 15 to 25 % more than the mean. A warp weighs 256 rows at a time, of a tile of each size at
 * least; the last block to be done with that counts and places the tiles, in no order among
 * those of as many taps: results do not depend on it. */
#ifndef VXD_GPU_SPARSE_KERNEL_MAP_KERNEL_MAP_TILES_CUDA_H
#define VXD_GPU_SPARSE_KERNEL_MAP_KERNEL_MAP_TILES_CUDA_H

#include "gpu/sparse/kernel_map/kernel_map_order_cuda.h"

#define VXD_TILE_GROUP (VXD_SPARSE_TILE_ROWS << (VXD_SPARSE_TILE_SIZES - 1)) /* rows */
#define VXD_TILE_CLASSES 33 /* by taps, of kernels with more than 32 by a share of them */

static __device__ __forceinline__ uint32_t vxd_map_n_tiles(uint32_t n_rows, int size)
{
    uint32_t tile_rows = (uint32_t)VXD_SPARSE_TILE_ROWS << size;

    return (n_rows + tile_rows - 1) / tile_rows;
}

static __device__ __forceinline__ uint32_t vxd_map_tile_class(uint32_t n_of_tile,
                                                              uint32_t n_taps)
{
    return n_taps < VXD_TILE_CLASSES ? n_of_tile
                                     : n_of_tile * (VXD_TILE_CLASSES - 1) / n_taps;
}

/* Classes lie where a pass's keys did, as the lists do behind the order. */
static __device__ __forceinline__ uint32_t *
vxd_map_tile_classes(const struct vxd_map_job *job, int size)
{
    return job->keys[0] + (vxd_sparse_tiles_at(job->map.capacity, size) -
                           vxd_sparse_tiles_at(job->map.capacity, 0));
}

/* Classes of the tiles of a group of rows; a warp calls. */
static __device__ __forceinline__ void
vxd_map_weigh_group(const struct vxd_map_work *work, uint32_t group)
{
    constexpr int N_LEAST = VXD_TILE_GROUP / VXD_SPARSE_TILE_ROWS;
    const struct vxd_map_job *job = &work->job;
    uint32_t n_taps = (uint32_t)job->map.n_taps;
    size_t n_words = VXD_SPARSE_MASK_WORDS(n_taps);
    uint32_t lane = threadIdx.x % 32;
    uint32_t n_of_tile[VXD_SPARSE_TILE_SIZES][N_LEAST] = {};
    uint32_t rows[2 * N_LEAST];

#pragma unroll
    for (int i = 0; i < 2 * N_LEAST; i++) {
        uint32_t place = group * VXD_TILE_GROUP + (uint32_t)i * 32 + lane;

        rows[i] = place < work->n_rows ? job->map.order[place] : UINT32_MAX;
    }
    for (size_t word = 0; word < n_words; word++) {
        uint32_t taps[N_LEAST];

#pragma unroll
        for (int i = 0; i < N_LEAST; i++) {
            uint32_t mask = 0;

#pragma unroll
            for (int k = 2 * i; k < 2 * i + 2; k++) {
                mask |=
                    rows[k] != UINT32_MAX ? job->map.masks[rows[k] * n_words + word] : 0;
            }
            taps[i] = __reduce_or_sync(UINT32_MAX, mask);
        }
#pragma unroll
        for (int size = 0; size < VXD_SPARSE_TILE_SIZES; size++) {
#pragma unroll
            for (int i = 0; i < N_LEAST >> size; i++) {
                n_of_tile[size][i] += (uint32_t)__popc(taps[i]);
                if (2 * i + 1 < N_LEAST >> size) {
                    taps[i] = taps[2 * i] | taps[2 * i + 1];
                }
            }
        }
    }
#pragma unroll
    for (int size = 0; size < VXD_SPARSE_TILE_SIZES; size++) {
#pragma unroll
        for (int i = 0; i < N_LEAST >> size; i++) {
            uint32_t tile = group * (uint32_t)(N_LEAST >> size) + (uint32_t)i;

            if (lane == 0 && tile < vxd_map_n_tiles(work->n_rows, size)) {
                vxd_map_tile_classes(job, size)[tile] =
                    vxd_map_tile_class(n_of_tile[size][i], n_taps);
            }
        }
    }
}

/* After the order is written, and a barrier. */
static __device__ __forceinline__ void
vxd_map_weigh_tiles(const struct vxd_map_work *work)
{
    uint32_t n_groups = (work->n_rows + VXD_TILE_GROUP - 1) / VXD_TILE_GROUP;

    for (uint32_t group = work->block_group.rank * VXD_GRID_WARPS + threadIdx.x / 32;
         group < n_groups; group += work->block_group.size * VXD_GRID_WARPS) {
        vxd_map_weigh_group(work, group);
    }
}

/* Places all tiles; one block, after all others have weighed theirs. */
static __device__ __forceinline__ void vxd_map_list_tiles(const struct vxd_map_work *work,
                                                          struct vxd_map_shared *shared)
{
    const struct vxd_map_job *job = &work->job;
    uint32_t(*counts)[256] =
        shared->shares; /* a line a size: made keys of masks before */

    static_assert(VXD_SPARSE_TILE_SIZES <= 4 && VXD_TILE_CLASSES <= 256, "a line a size");
    if (threadIdx.x < VXD_TILE_CLASSES) {
        for (int size = 0; size < VXD_SPARSE_TILE_SIZES; size++) {
            counts[size][threadIdx.x] = 0;
        }
    }
    __syncthreads();
    for (int size = 0; size < VXD_SPARSE_TILE_SIZES; size++) {
        const uint32_t *classes = vxd_map_tile_classes(job, size);

        for (uint32_t tile = threadIdx.x; tile < vxd_map_n_tiles(work->n_rows, size);
             tile += VXD_GRID_THREADS) {
            (void)atomicAdd(&counts[size][__ldcg(classes + tile)], 1);
        }
    }
    __syncthreads();
    if (threadIdx.x < VXD_SPARSE_TILE_SIZES) { /* where each class begins */
        uint32_t begin = 0;

        for (int i = VXD_TILE_CLASSES - 1; i >= 0; i--) {
            uint32_t n = counts[threadIdx.x][i];

            counts[threadIdx.x][i] = begin;
            begin += n;
        }
    }
    __syncthreads();
    for (int size = 0; size < VXD_SPARSE_TILE_SIZES; size++) {
        const uint32_t *classes = vxd_map_tile_classes(job, size);
        uint32_t *list = job->map.order + vxd_sparse_tiles_at(job->map.capacity, size);

        for (uint32_t tile = threadIdx.x; tile < vxd_map_n_tiles(work->n_rows, size);
             tile += VXD_GRID_THREADS) {
            list[atomicAdd(&counts[size][__ldcg(classes + tile)], 1)] = tile;
        }
    }
}

#endif
