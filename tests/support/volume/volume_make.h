// SPDX-License-Identifier: Apache-2.0
/* Volumes of functions, for tests and benchmarks: made through the hash map behind a volume. */
#ifndef VXD_TESTS_SUPPORT_VOLUME_VOLUME_MAKE_H
#define VXD_TESTS_SUPPORT_VOLUME_VOLUME_MAKE_H

#include "gpu/volume/volume.h"
#include "tests/support/gpu/gpu_helpers.h"

/* What a voxel holds. */
struct volume_voxel {
    float distance; /* units of the truncation */
    float weight;
    uint8_t colour[3];
};

/* The voxel (x, y, z). */
typedef struct volume_voxel (*volume_fn)(const void *user, int x, int y, int z);

/* Blocks of a volume, in the order in which they take their entries; the stamp of the k-th is
 * k + 1, and the version n. */
struct volume_blocks {
    int32_t *keys; /* n x 3, malloc'ed */
    size_t n;
};

/* All blocks with keys from low to high (without). */
struct volume_blocks volume_box(const int32_t low[3], const int32_t high[3]);

/* A failure ends the program. */
struct vxd_volume *volume_make(struct gpu_env *env, const struct vxd_volume_spec *spec,
                               const struct volume_blocks *blocks, volume_fn fn,
                               const void *user);

#endif
