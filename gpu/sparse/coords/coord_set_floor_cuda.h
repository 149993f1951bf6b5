// SPDX-License-Identifier: Apache-2.0
/* Sets derived by floors of powers of two; set_floor.cu. */
#ifndef VXD_GPU_SPARSE_COORDS_COORD_SET_FLOOR_CUDA_H
#define VXD_GPU_SPARSE_COORDS_COORD_SET_FLOOR_CUDA_H

#include "gpu/sparse/coords/coord_set_cuda.h"

/* The power of two by which every row of the input has exactly one output, its floor, which
 * the output's shape holds; -1: the rule is another. */
int vxd_coord_set_floor_levels(const struct vxd_sparse_derive_call *call);

/* Makes the sets of the first *n_done of n >= 1 calls, those that are floors of the first
 * one's input, directly or by way of each other; 0 where the first is none. */
enum vxd_status vxd_coord_set_floors(struct vxd_queue *queue,
                                     const struct vxd_sparse_derive_call *calls, int n,
                                     int *n_done, struct vxd_err *err);

#endif
