// SPDX-License-Identifier: Apache-2.0
/* Images of scenes in memory, for tests. Failures of these functions end the test
 * program. */
#ifndef VXD_TESTS_SUPPORT_SVDAG_SVDAG_IMAGE_H
#define VXD_TESTS_SUPPORT_SVDAG_SVDAG_IMAGE_H

#include "gpu/svdag/image/image.h"
#include "tests/support/svdag/svdag_grid.h"

enum {
    GPU_SVDAG_IMAGE_ROOTS = 4
};

struct gpu_svdag_image {
    struct vxd_svdag_image_info info;
    uint32_t *words;
    uint64_t n_words; /* that the sink has received */
    uint64_t capacity;
    int n_refused; /* pieces that the sink will still refuse */
    uint32_t roots[GPU_SVDAG_IMAGE_ROOTS];
};

/* Saves an image piece by piece; a refused piece is offered again. The caller frees the
 * words. */
enum vxd_status gpu_svdag_image_save(struct vxd_queue *queue,
                                     const struct vxd_svdag *svdag, const uint32_t *roots,
                                     struct gpu_svdag_image *image, struct vxd_err *err);
void gpu_svdag_image_must_save(struct gpu_env *env, const struct vxd_svdag *svdag,
                               const uint32_t *roots, struct gpu_svdag_image *image);

bool gpu_svdag_image_is_same(const struct gpu_svdag_image *a,
                             const struct gpu_svdag_image *b);

struct vxd_svdag *gpu_svdag_image_make_svdag(struct gpu_env *env,
                                             const struct vxd_svdag_format *format,
                                             enum vxd_svdag_store store);

struct vxd_svdag_summary
gpu_svdag_image_verify(struct gpu_env *env, const struct vxd_svdag *svdag, uint32_t root);

/* Makes the roots: every third version of a random history, and their voxels if grids is
 * not NULL; the first root is then replaced by a uniform one and the second by the
 * third. */
void gpu_svdag_image_scenes(struct gpu_env *env, struct vxd_svdag *svdag, uint64_t seed,
                            uint32_t roots[GPU_SVDAG_IMAGE_ROOTS],
                            struct gpu_svdag_grid *grids);

#endif
