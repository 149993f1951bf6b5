// SPDX-License-Identifier: Apache-2.0
/* The voxelizations that the oracle test and the digests run: kinds of clouds times
 * sizes times kinds of calls. */
#ifndef VXD_TESTS_SUPPORT_GPU_VOXELIZE_CASES_H
#define VXD_TESTS_SUPPORT_GPU_VOXELIZE_CASES_H

#include "tests/support/gpu/gpu_helpers.h"

enum gpu_cloud_kind {
    GPU_CLOUD_SPREAD, /* few points a voxel */
    GPU_CLOUD_DENSE,  /* many points a voxel */
    GPU_CLOUD_SAME,   /* all points in one place */
    GPU_CLOUD_MIXED,  /* half in one place, the others spread */
    GPU_CLOUD_NASTY,  /* NaN, infinite, huge, on borders; NaN features */
    GPU_N_CLOUD_KINDS
};

enum {
    GPU_N_CONFIGS = 14
};

struct gpu_case {
    char name[96];
    struct vxd_voxelize_args args; /* arrays are host memory, owned by the case */
    float *positions;
    float *features;
    uint32_t *batch_starts;
};

void gpu_case_make(struct gpu_case *out, enum gpu_cloud_kind kind, size_t n, int config);
void gpu_case_free(struct gpu_case *item);

#endif
