// SPDX-License-Identifier: Apache-2.0
/* Coordinate sets of candidates in any order, inside a cooperative kernel: a sort,
 * then the steps of coord_set_cuda.h. */
#ifndef VXD_GPU_SPARSE_COORDS_COORD_SET_SORT_CUDA_H
#define VXD_GPU_SPARSE_COORDS_COORD_SET_SORT_CUDA_H

#include "gpu/sparse/coords/coord_set_cuda.h"
#include "gpu/sparse/coords/grid_sort_cuda.h"

/* Sorts keys[0] by the bits that vary, using both buffers; returns which buffer has
 * the result. */
static __device__ int vxd_coord_set_sort(cooperative_groups::grid_group grid,
                                         const struct vxd_coord_set_scratch *scratch,
                                         uint32_t n, uint64_t varying, bool has_values,
                                         struct vxd_sort_shared *shared)
{
    int at = 0;

    for (bool is_first = true; varying != 0; is_first = false) {
        int shift = __ffsll((long long)varying) - 1;
        struct vxd_sort_pass<uint64_t> pass = {
            scratch->keys[at], is_first ? NULL : scratch->values[at],
                scratch->keys[1 - at], has_values ? scratch->values[1 - at] : NULL, n,
                shift, scratch->ranks, scratch->counts
        };

        vxd_sort_count(&pass, vxd_block_group_of_grid(), shared);
        grid.sync();
        vxd_sort_sum(&pass, vxd_block_group_of_grid());
        grid.sync();
        vxd_sort_scatter(&pass, vxd_block_group_of_grid(), shared);
        grid.sync();
        varying = shift + VXD_SORT_BITS < 64
                      ? varying >> (shift + VXD_SORT_BITS) << (shift + VXD_SORT_BITS)
                      : 0;
        at = 1 - at;
    }
    return at;
}

#endif
