// SPDX-License-Identifier: Apache-2.0
/* Coordinate sets derived by floors of powers of two; in coord_set_floor.cu. */
#ifndef VXD_GPU_SPARSE_COORDS_COORD_SET_FLOOR_CUDA_H
#define VXD_GPU_SPARSE_COORDS_COORD_SET_FLOOR_CUDA_H

#include "gpu/sparse/coords/coord_set_cuda.h"

/* The power of two by which every row of the input has exactly one output, its floor,
 * which is within the output's shape; -1: the call has another rule. */
int vxd_coord_set_floor_levels(const struct vxd_sparse_derive_call *call);

/* Makes the sets of the first *n_done of n >= 1 calls, those that are floors of the
 * first call's input, directly or through each other; *n_done is 0 where the first is
 * no floor. */
enum vxd_status vxd_coord_set_floors(struct vxd_queue *queue,
                                     const struct vxd_sparse_derive_call *calls, int n,
                                     int *n_done, struct vxd_err *err);

#endif
