// SPDX-License-Identifier: Apache-2.0
/* What the kernels of surfaces share: a group of edge^2 threads, a whole number of warps, takes a voxel
 * block, a thread a row (y, z) of it. All groups of a thread block call these functions together. */
#ifndef VXD_GPU_SURFACE_SURFACE_CUDA_H
#define VXD_GPU_SURFACE_SURFACE_CUDA_H

#include "gpu/core/core_cuda.h"
#include "gpu/surface/surface_math.h"

#define VXD_SURFACE_MAX_THREADS 256 /* rows of a block of 16 */

static __device__ const uint64_t vxd_surface_cases[256] = VXD_SURFACE_CASES;

/* Shared memory of a group. */
struct vxd_surface_tile {
    uint32_t negative[VXD_SURFACE_MAX_ROWS];
    uint32_t known[VXD_SURFACE_MAX_ROWS];
    uint32_t sums[VXD_SURFACE_MAX_THREADS / 32];
    int32_t neighbours[27];
};

/* Reads the rows of the block at a place; `thread` of the group's n_threads. */
static __device__ __forceinline__ void
vxd_surface_read_tile(const struct vxd_surface_work *work, uint32_t place,
                      unsigned thread, unsigned n_threads, struct vxd_surface_tile *tile)
{
    int edge = work->view.edge;
    int side = edge + 2;

    if (thread < 27) {
        tile->neighbours[thread] =
            work->neighbours[27 * (uint64_t)work->list[place] + thread];
    }
    __syncthreads();
    for (int row = (int)thread; row < side * side; row += (int)n_threads) {
        uint32_t negative;
        uint32_t known;

        vxd_surface_read_rows(work, tile->neighbours, row % side - 1, row / side - 1,
                              &negative, &known);
        tile->negative[row] = negative;
        tile->known[row] = known;
    }
    __syncthreads();
}

/* The sum of n over the group's threads before this one; *total over all. */
static __device__ __forceinline__ uint32_t
vxd_surface_sum_before(struct vxd_surface_tile *tile, uint32_t n, unsigned thread,
                       unsigned n_threads, uint32_t *total)
{
    uint32_t lane = thread & 31;
    uint32_t warp = thread >> 5;
    uint32_t sum = n;
    uint32_t before = 0;

    for (uint32_t step = 1; step < 32; step *= 2) {
        uint32_t other = __shfl_up_sync(UINT32_MAX, sum, step);

        sum += lane >= step ? other : 0;
    }
    if (lane == 31) {
        tile->sums[warp] = sum;
    }
    __syncthreads();
    *total = 0;
    for (uint32_t w = 0; w < n_threads / 32; w++) {
        before += w < warp ? tile->sums[w] : 0;
        *total += tile->sums[w];
    }
    __syncthreads();
    return before + sum - n;
}

/* The triangles of row (y, z) of the block. */
static __device__ __forceinline__ uint32_t
vxd_surface_count_row(const struct vxd_surface_work *work,
                      const struct vxd_surface_tile *tile, int y, int z)
{
    uint32_t n = 0;

    for (uint32_t cut = vxd_surface_cut_cells(work, tile->neighbours, tile->negative,
                                              tile->known, y, z);
         cut != 0; cut &= cut - 1) {
        n += (uint32_t)(vxd_surface_cases[vxd_surface_case(
                            tile->negative, work->view.edge, vxd_surface_lowest(cut), y,
                            z)] >>
                        60);
    }
    return n;
}

/* What a block has. */
struct vxd_surface_sums {
    uint32_t vertices;
    uint32_t triangles;
    uint32_t chosen;
};

/* Counts what the block at a place has, and writes its edges and ranks where the group is to do that. */
static __device__ __forceinline__ struct vxd_surface_sums
vxd_surface_count_block(const struct vxd_surface_work *work, uint32_t place,
                        unsigned thread, unsigned n_threads, bool writes,
                        struct vxd_surface_tile *tile)
{
    int y = (int)thread & (work->view.edge - 1);
    int z = (int)thread >> work->view.shift;
    uint64_t row = ((uint64_t)place * n_threads + thread) * 3;
    struct vxd_surface_sums sums = {0, 0, 0};
    uint32_t edges[3];
    uint32_t n = 0;
    uint32_t rank;

    vxd_surface_read_tile(work, place, thread, n_threads, tile);
    sums.chosen = (uint32_t)vxd_surface_chosen(work, tile->neighbours, 1, 1, 1);
    vxd_surface_edges(work, tile->neighbours, tile->negative, tile->known, y, z, edges);
    for (int axis = 0; axis < 3; axis++) {
        n += vxd_surface_n_bits(edges[axis]);
    }
    rank = vxd_surface_sum_before(tile, n, thread, n_threads, &sums.vertices);
    for (int axis = 0; axis < 3 && writes; axis++) {
        work->edges[row + (uint64_t)axis] = (uint16_t)edges[axis];
        work->ranks[row + (uint64_t)axis] = (uint16_t)rank;
        rank += vxd_surface_n_bits(edges[axis]);
    }
    n = work->is_mesh && sums.chosen != 0 ? vxd_surface_count_row(work, tile, y, z) : 0;
    (void)vxd_surface_sum_before(tile, n, thread, n_threads, &sums.triangles);
    return sums;
}

#endif
