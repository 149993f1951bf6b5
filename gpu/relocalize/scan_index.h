// SPDX-License-Identifier: Apache-2.0
/* A cloud's cells. The folder's own. */
#ifndef VXD_GPU_RELOCALIZE_SCAN_INDEX_H
#define VXD_GPU_RELOCALIZE_SCAN_INDEX_H

#include "gpu/relocalize/relocalize.h"

struct vxd_scan_cell {
    int32_t key[3];
    float mean[3];   /* of its points, metres */
    float normal[3]; /* of the points of it and of the cells around; zeros: none */
};

/* Which of 2 x 2 x 2 cells there are. */
struct vxd_scan_block {
    int32_t key[3]; /* halves of theirs, rounded down */
    uint32_t cells; /* bit 4 x + 2 y + z; 0: a free place */
};

/* Cells of one size, by key, with a hash table of them. */
struct vxd_scan_level {
    double cell_m;
    size_t n;
    struct vxd_scan_cell *cells;
    uint32_t *table; /* n_table, a power of two: number of a cell plus 1; 0: free */
    size_t n_table;
    struct vxd_scan_block *blocks; /* n_table, a hash table */
};

struct vxd_scan {
    struct vxd_scan_level levels[2]; /* coarse, fine */
};

/* The cell whose mean is nearest to p, of that which p is in and those around; NULL = none within a
 * cell's edge. */
const struct vxd_scan_cell *vxd_scan_nearest(const struct vxd_scan_level *level,
                                             const double p[3]);

/* Eigenvalues of a symmetric matrix of up to 6 rows, ascending, by Jacobi's rotations; vectors are the
 * columns of v, rows first. a is overwritten. */
void vxd_scan_eigen(int n, double *a, double *v, double *values);

#endif
