// SPDX-License-Identifier: Apache-2.0
/* What a voxel of a deformed volume gets from its source, the same bits on both backends; the backends. */
#ifndef VXD_GPU_SLAC_SLAC_VOLUME_INTERNAL_H
#define VXD_GPU_SLAC_SLAC_VOLUME_INTERNAL_H

#include "gpu/core/core_cpu.h"
#include "gpu/deform/deform_math.h"
#include "gpu/volume/volume_math.h"

struct vxd_slac_volume_call {
    struct vxd_volume_view from;
    struct vxd_volume_view to;
    struct vxd_deform_view deform;
    const int32_t *entries; /* n blocks of `to` */
    size_t n;
    double voxel_size;
    double origin[3]; /* of both, in the grid's frame */
    uint64_t version;
};

/* Where the source has the centre of corner voxel k of a block, in voxels from its origin. */
VXD_HD void vxd_slac_volume_corner(const struct vxd_slac_volume_call *call,
                                   const int32_t key[3], int k,
                                   struct vxd_deform_cell *cell, double out[3])
{
    int edge = call->to.edge;
    double at[3];

    for (int axis = 0; axis < 3; axis++) {
        double voxel = (double)key[axis] * edge + 0.5; /* exact */

        voxel = vxd_addd(voxel, (k >> (2 - axis) & 1) != 0 ? edge - 1 : 0);
        at[axis] = vxd_deform_mad(voxel, call->voxel_size, call->origin[axis]);
    }
    (void)vxd_deform_inverse(&call->deform, cell, at, out);
    for (int axis = 0; axis < 3; axis++) {
        out[axis] = vxd_addd(out[axis], -call->origin[axis]) / call->voxel_size;
    }
}

VXD_HD double vxd_slac_volume_mix(double from, double to, double part)
{
    return vxd_addd(from, vxd_muld(vxd_addd(to, -from), part));
}

/* A voxel between the corners. */
VXD_HD void vxd_slac_volume_at(const double corners[8][3], int edge, uint32_t voxel,
                               double out[3])
{
    double part = 1.0 / (edge - 1);
    double x = vxd_muld((double)(voxel % (uint32_t)edge), part);
    double y = vxd_muld((double)(voxel / (uint32_t)edge % (uint32_t)edge), part);
    uint32_t slice = voxel / (uint32_t)(edge * edge);
    double z = vxd_muld((double)slice, part);

    for (int axis = 0; axis < 3; axis++) {
        double low = vxd_slac_volume_mix(
            vxd_slac_volume_mix(corners[0][axis], corners[1][axis], z),
            vxd_slac_volume_mix(corners[2][axis], corners[3][axis], z), y);
        double high = vxd_slac_volume_mix(
            vxd_slac_volume_mix(corners[4][axis], corners[5][axis], z),
            vxd_slac_volume_mix(corners[6][axis], corners[7][axis], z), y);

        out[axis] = vxd_slac_volume_mix(low, high, x);
    }
}

/* The row of a voxel of the source that was observed; -1: there is none. */
VXD_HD int64_t vxd_slac_volume_row(const struct vxd_volume_view *view,
                                   const int32_t voxel[3])
{
    const int32_t key[3] = {vxd_block_of_voxel(view, voxel[0]),
                            vxd_block_of_voxel(view, voxel[1]),
                            vxd_block_of_voxel(view, voxel[2])};
    int32_t entry = VXD_NO_ENTRY;
    size_t row;

    if (key[0] >= -VXD_BLOCK_LIMIT && key[0] <= VXD_BLOCK_LIMIT &&
        key[1] >= -VXD_BLOCK_LIMIT && key[1] <= VXD_BLOCK_LIMIT &&
        key[2] >= -VXD_BLOCK_LIMIT && key[2] <= VXD_BLOCK_LIMIT) {
        entry = vxd_volume_find_block(view, vxd_block_tag(key[0], key[1], key[2]));
    }
    if (entry < 0) {
        return -1;
    }
    row = vxd_voxel_row(view, entry, vxd_voxel_index(view, voxel[0], voxel[1], voxel[2]));
    return vxd_volume_weight(view, row) > 0 ? (int64_t)row : -1;
}

/* The distance at a place between eight voxel centres, of which `near` is the row of the nearest. */
VXD_HD float vxd_slac_volume_distance(const struct vxd_volume_view *view,
                                      const int32_t low[3], const double part[3],
                                      int64_t near)
{
    double sum = 0;

    for (int k = 0; k < 8; k++) {
        const int32_t voxel[3] = {low[0] + (k >> 2 & 1), low[1] + (k >> 1 & 1),
                                  low[2] + (k & 1)};
        int64_t row = vxd_slac_volume_row(view, voxel);

        if (row < 0) {
            return vxd_volume_distance(view, (size_t)near);
        }
        sum = vxd_deform_mad(vxd_deform_weight(part, k),
                             (double)vxd_volume_distance(view, (size_t)row), sum);
    }
    return (float)sum;
}

/* Fills in a voxel; true where the source has something there. */
VXD_HD bool vxd_slac_volume_one(const struct vxd_slac_volume_call *call,
                                const double corners[8][3], int32_t entry, uint32_t voxel)
{
    const struct vxd_volume_view *from = &call->from;
    const struct vxd_volume_view *to = &call->to;
    size_t row = vxd_voxel_row(to, entry, voxel);
    double at[3];
    double part[3];
    int32_t low[3];
    int32_t nearest[3];
    int64_t source;
    float distance;

    vxd_slac_volume_at(corners, to->edge, voxel, at);
    for (int axis = 0; axis < 3; axis++) {
        double place = vxd_addd(at[axis], -0.5);
        double floored;

        place = place > -1e8 ? place : -1e8; /* NaN, too */
        place = place < 1e8 ? place : 1e8;
        floored = floor(place);
        low[axis] = (int32_t)floored;
        part[axis] = vxd_addd(place, -floored);
        nearest[axis] = low[axis] + (part[axis] >= 0.5 ? 1 : 0);
    }
    source = vxd_slac_volume_row(from, nearest);
    if (source < 0) {
        return false;
    }
    distance = vxd_slac_volume_distance(from, low, part, source);
    if (to->is_compact != 0) {
        ((uint16_t *)to->distances)[row] = vxd_half_of_float(distance);
        ((uint8_t *)to->weights)[row] = ((const uint8_t *)from->weights)[source];
    } else {
        ((float *)to->distances)[row] = distance;
        ((float *)to->weights)[row] = ((const float *)from->weights)[source];
    }
    for (size_t c = 0; c < 4; c++) {
        if (to->colours != NULL) {
            to->colours[4 * row + c] = from->colours[4 * (size_t)source + c];
        }
        if (to->labels != NULL) {
            to->labels[4 * row + c] = from->labels[4 * (size_t)source + c];
        }
    }
    return true;
}

#ifdef __cplusplus
extern "C" {
#endif

/* Fills in the blocks of a deformed volume. */
enum vxd_status vxd_slac_volume_fill_cpu(struct vxd_queue *queue,
                                         const struct vxd_slac_volume_call *call,
                                         struct vxd_err *err);
enum vxd_status vxd_slac_volume_fill_cuda(struct vxd_queue *queue,
                                          const struct vxd_slac_volume_call *call,
                                          struct vxd_err *err);

#ifdef __cplusplus
}
#endif
#endif
