// SPDX-License-Identifier: Apache-2.0
/* Scenes for tests and benchmarks of gpu/svdag. They are built bottom up from voxels by
 * inserting leaves and inner nodes directly, without the editor. */
#ifndef VXD_TESTS_SUPPORT_SVDAG_SVDAG_SCENE_H
#define VXD_TESTS_SUPPORT_SVDAG_SVDAG_SCENE_H

#include "gpu/svdag/store/store.h"

enum {
    /* The code of a voxel: 0 not set, */
    GPU_SVDAG_FREE = 1,
    GPU_SVDAG_MATERIAL = 2 /* and more: materials */
};

struct gpu_svdag_voxel {
    uint64_t morton;
    uint32_t code;
};

/* On a GPU the scene is built by the CPU and its words are copied, so that tests of
 * queries do not depend on the GPU's edits; svdag can then only be queried. */
struct gpu_svdag_scene {
    struct vxd_svdag *svdag;
    uint32_t root;
    uint32_t other;                      /* root of the second scene, if there is one */
    struct gpu_svdag_original *original; /* NULL on the CPU */
};

/* The store under test: the one whose number is in VOXELD_TEST_SVDAG_STORE if it supports
 * the format, otherwise the arena. Test programs run once for each store. */
enum vxd_svdag_store gpu_svdag_store(const struct vxd_svdag_format *format);

uint64_t gpu_svdag_morton(uint32_t x, uint32_t y, uint32_t z);
void gpu_svdag_unmorton(uint64_t morton, uint32_t voxel[3]);

/* Compares by Morton code, for qsort. */
int gpu_svdag_voxel_compare(const void *a, const void *b);

/* Builds a scene of n set voxels in strictly ascending Morton order. Failures end the
 * program. */
void gpu_svdag_scene_build(struct vxd_queue *queue, const struct vxd_svdag_format *format,
                           const struct gpu_svdag_voxel *voxels, size_t n,
                           struct gpu_svdag_scene *out);
/* Builds two scenes in one store. */
void gpu_svdag_scene_build_two(struct vxd_queue *queue,
                               const struct vxd_svdag_format *format,
                               const struct gpu_svdag_voxel *const voxels[2],
                               const size_t n[2], struct gpu_svdag_scene *out);
void gpu_svdag_scene_free(struct vxd_queue *queue, struct gpu_svdag_scene *scene);

/* A random dense grid of codes, side^3, row-major by x, malloc'ed: boxes, noise, many
 * repeated leaves and much empty space. */
uint32_t *gpu_svdag_random_grid(const struct vxd_svdag_format *format, uint64_t seed);
/* The set voxels of a grid in ascending order; malloc'ed. */
struct gpu_svdag_voxel *gpu_svdag_grid_voxels(const uint32_t *grid, int depth, size_t *n);

/* n voxels of random materials (some FREE where the format tracks free space) in small
 * clusters anywhere in the scene; malloc'ed, ascending. *n decreases where some
 * coincide. */
struct gpu_svdag_voxel *gpu_svdag_random_voxels(const struct vxd_svdag_format *format,
                                                uint64_t seed, size_t *n);

#endif
