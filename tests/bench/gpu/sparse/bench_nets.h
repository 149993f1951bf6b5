// SPDX-License-Identifier: Apache-2.0
/* Networks for benchmarks: the shapes of published ones with random weights. */
#ifndef VXD_TESTS_BENCH_GPU_BENCH_NETS_H
#define VXD_TESTS_BENCH_GPU_BENCH_NETS_H

#include "gpu/sparse/executor/executor.h"

/* name: "second" (VoxelBackBone8x, dense result), "centerpoint" (VoxelResBackBone8x, dense
 * result), "minkunet42" (spvnas, 19 classes a voxel). shape: cells of the input, ignored by
 * the last, which is unbounded.
 * errors  NOT_FOUND  another name; and the builder's */
enum vxd_status bench_net_build(const char *name, int n_channels, const int32_t shape[3],
                                struct vxd_net_builder **out, struct vxd_err *err);

#endif
