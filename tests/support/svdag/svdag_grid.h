// SPDX-License-Identifier: Apache-2.0
/* Implements the definitions of gpu/svdag/brush/brush.h on a plain array of voxels, as
 * the reference for edits of scenes. It uses none of the engine's shape headers. */
#ifndef VXD_TESTS_SUPPORT_SVDAG_SVDAG_GRID_H
#define VXD_TESTS_SUPPORT_SVDAG_SVDAG_GRID_H

#include "gpu/svdag/store/store.h"
#include "tests/support/gpu/gpu_helpers.h"

/* The value of a voxel is a material or one of these. */
enum {
    GPU_VOXEL_UNSET = -1,
    GPU_VOXEL_FREE = -2
};

struct gpu_svdag_grid {
    struct vxd_svdag_format format;
    int64_t side;    /* voxels */
    int32_t *voxels; /* row-major by x, then y */
};

void gpu_svdag_grid_make(struct gpu_svdag_grid *grid,
                         const struct vxd_svdag_format *format);
void gpu_svdag_grid_free(struct gpu_svdag_grid *grid);
void gpu_svdag_grid_copy(struct gpu_svdag_grid *to, const struct gpu_svdag_grid *from);

/* Returns GPU_VOXEL_UNSET outside the grid. */
int32_t gpu_svdag_grid_at(const struct gpu_svdag_grid *grid, int64_t x, int64_t y,
                          int64_t z);

/* Applies operations one after the other. */
void gpu_svdag_grid_edit(struct gpu_svdag_grid *grid, const struct vxd_svdag_op *ops,
                         size_t n_ops);

/* Counts the voxels that differ, into the members of struct vxd_svdag_edit_result that
 * count voxels; other members are unchanged. */
void gpu_svdag_grid_change(const struct gpu_svdag_grid *before,
                           const struct gpu_svdag_grid *after,
                           struct vxd_svdag_edit_result *out);

/* Inserts the grid's nodes from the leaves up and returns the root. Where the store
 * already holds the same voxels, this is their root. */
uint32_t gpu_svdag_grid_put(const struct gpu_svdag_grid *grid, struct vxd_svdag *svdag);

/* A list of voxels that owns its arrays, made from flags and values of a grid's voxels
 * (in grid order). Its memory is the host's; gpu_svdag_edit (svdag_run.h) copies it to
 * the device. */
struct gpu_voxel_list {
    struct vxd_svdag_voxels voxels;
    uint64_t *codes;
    uint64_t *masks;
    uint32_t *first_value;
    uint16_t *values;
};
void gpu_voxel_list_make(struct gpu_voxel_list *list, int depth, const uint8_t *flags,
                         const uint16_t *values);
void gpu_voxel_list_free(struct gpu_voxel_list *list);

/* Whether the voxel with this centre (in units, not negative) is in a shape. */
bool gpu_svdag_is_in(const struct vxd_svdag_shape *shape, const int64_t c[3]);

/* Noise by the definition in the comments of gpu/svdag/brush/noise_math.h. */
int64_t gpu_noise(uint32_t seed, int cell_bits, int64_t amplitude, const int64_t c[3]);

#endif
