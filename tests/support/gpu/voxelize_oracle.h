// SPDX-License-Identifier: Apache-2.0
/* Voxelization again, as plainly as it can be written and sharing no code with the engine:
 * what the tests believe. */
#ifndef VXD_TESTS_SUPPORT_GPU_VOXELIZE_ORACLE_H
#define VXD_TESTS_SUPPORT_GPU_VOXELIZE_ORACLE_H

#include "tests/support/gpu/gpu_helpers.h"

/* Host memory throughout; free with gpu_voxels_free. */
void gpu_oracle(const struct vxd_voxelize_args *args, struct gpu_voxels *out);

/* How many outputs differ, integers exactly and floats bit for bit; names them on stderr. */
int gpu_compare(const char *label, const struct vxd_voxelize_args *args,
                const struct gpu_voxels *actual, const struct gpu_voxels *expected);

#endif
