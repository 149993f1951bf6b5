// SPDX-License-Identifier: Apache-2.0
/* Voxelization again, written as simply as possible and without sharing code with the
 * engine: the reference of the tests. */
#ifndef VXD_TESTS_SUPPORT_GPU_VOXELIZE_ORACLE_H
#define VXD_TESTS_SUPPORT_GPU_VOXELIZE_ORACLE_H

#include "tests/support/gpu/gpu_helpers.h"

/* All arrays are host memory; free with gpu_voxels_free. */
void gpu_oracle(const struct vxd_voxelize_args *args, struct gpu_voxels *out);

/* Returns how many outputs differ, integers exactly and floats bit for bit; names them
 * on stderr. */
int gpu_compare(const char *label, const struct vxd_voxelize_args *args,
                const struct gpu_voxels *actual, const struct gpu_voxels *expected);

#endif
