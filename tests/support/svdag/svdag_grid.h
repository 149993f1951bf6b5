// SPDX-License-Identifier: Apache-2.0
/* The definitions of gpu/svdag/brush/brush.h over a plain array of voxels: what edits of scenes are
 * compared with. Nothing of the engine's shape headers is used. */
#ifndef VXD_TESTS_SUPPORT_SVDAG_SVDAG_GRID_H
#define VXD_TESTS_SUPPORT_SVDAG_SVDAG_GRID_H

#include "gpu/svdag/store/store.h"
#include "tests/support/gpu/gpu_helpers.h"

/* What a voxel is: a material, or one of these. */
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

/* GPU_VOXEL_UNSET outside. */
int32_t gpu_svdag_grid_at(const struct gpu_svdag_grid *grid, int64_t x, int64_t y,
                          int64_t z);

/* Applies operations one after the other. */
void gpu_svdag_grid_edit(struct gpu_svdag_grid *grid, const struct vxd_svdag_op *ops,
                         size_t n_ops);

/* Voxels that differ, as in struct vxd_svdag_edit_result, whose other members stay. */
void gpu_svdag_grid_change(const struct gpu_svdag_grid *before,
                           const struct gpu_svdag_grid *after,
                           struct vxd_svdag_edit_result *out);

/* Stores the grid node by node, from the leaves up: where the store holds the same voxels
 * already, its root is this one. */
uint32_t gpu_svdag_grid_put(const struct gpu_svdag_grid *grid, struct vxd_svdag *svdag);

/* A list of voxels with its memory, from flags and values of a grid's voxels (in its order).
 * In the host's memory; gpu_svdag_edit (svdag_run.h) brings it to the device. */
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

/* Whether a voxel with this centre (units, none negative) is in a shape. */
bool gpu_svdag_is_in(const struct vxd_svdag_shape *shape, const int64_t c[3]);

/* Noise as gpu/svdag/brush/noise_math.h defines it in words. */
int64_t gpu_noise(uint32_t seed, int cell_bits, int64_t amplitude, const int64_t c[3]);

#endif
