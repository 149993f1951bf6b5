// SPDX-License-Identifier: Apache-2.0
/* Where a kernel map's lists of tiles are; compiled by both gcc and nvcc. */
#ifndef VXD_GPU_SPARSE_KERNEL_MAP_KERNEL_MAP_MATH_H
#define VXD_GPU_SPARSE_KERNEL_MAP_KERNEL_MAP_MATH_H

#include "gpu/core/core_math.h"
#include "gpu/sparse/coords/coords_math.h"
#include "gpu/sparse/kernel_map/kernel_map.h"

/* Where the list of tiles of VXD_SPARSE_TILE_ROWS << size rows begins, in words from
 * the beginning of a kernel map's order; for size VXD_SPARSE_TILE_SIZES: where all
 * lists end. */
VXD_HD size_t vxd_sparse_tiles_at(size_t capacity, int size)
{
    size_t at = capacity;

    for (int i = 0; i < size; i++) {
        size_t n_rows = (size_t)VXD_SPARSE_TILE_ROWS << i;

        at += (capacity + n_rows - 1) / n_rows;
    }
    return at;
}

#endif
