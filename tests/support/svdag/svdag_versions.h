// SPDX-License-Identifier: Apache-2.0
/* Versions of a scene together with plain grids of the same voxels, the reference for
 * undo and diff. Failures of these functions end the program. */
#ifndef VXD_TESTS_SUPPORT_SVDAG_SVDAG_VERSIONS_H
#define VXD_TESTS_SUPPORT_SVDAG_SVDAG_VERSIONS_H

#include "gpu/svdag/edit/edit.h"
#include "tests/support/svdag/svdag_grid.h"
#include "tests/support/svdag/svdag_run.h"
#include "tests/support/svdag/svdag_scene.h"

enum {
    GPU_SVDAG_MAX_VERSIONS = 32
};

/* The first version is empty. */
struct gpu_svdag_versions {
    struct gpu_env *env;
    struct vxd_svdag *svdag;
    struct gpu_env cpu; /* of the reference store, which is built from grids alone */
    struct vxd_svdag *reference;
    struct gpu_svdag_grid grids[GPU_SVDAG_MAX_VERSIONS];
    uint32_t roots[GPU_SVDAG_MAX_VERSIONS];
    size_t n;
};

void gpu_svdag_versions_open(struct gpu_env *env, const struct vxd_svdag_format *format,
                             struct gpu_svdag_versions *out);
void gpu_svdag_versions_close(struct gpu_svdag_versions *versions);

struct vxd_svdag *gpu_svdag_versions_store(struct gpu_env *env,
                                           const struct vxd_svdag_format *format,
                                           size_t max_bytes);

/* A random box or ball of any size, aligned with nodes or not. */
struct vxd_svdag_op gpu_svdag_random_op(const struct vxd_svdag_format *format,
                                        uint64_t *seed);

/* Applies the definition of gpu/svdag/edit/undo.h voxel by voxel, into *out. */
void gpu_svdag_grid_undo(const struct gpu_svdag_grid *head,
                         const struct gpu_svdag_grid *before,
                         const struct gpu_svdag_grid *after, struct gpu_svdag_grid *out);

/* Adds a version by random operations on the last one, by an edit and on the grid. */
void gpu_svdag_versions_edit(struct gpu_svdag_versions *versions, uint64_t *seed);

/* Adds a version by undoing in `head` what differs between `before` and `after`, by the
 * engine and on the grid. The result must have the grid's counts and the root of a scene
 * built from the grid (in the reference store: its summary); otherwise the program
 * ends. */
void gpu_svdag_versions_undo(struct gpu_svdag_versions *versions, size_t head,
                             size_t before, size_t after);

#endif
