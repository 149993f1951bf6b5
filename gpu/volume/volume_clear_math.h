// SPDX-License-Identifier: Apache-2.0
/* What a removal does with a block, the same on both backends. */
#ifndef VXD_GPU_VOLUME_VOLUME_CLEAR_MATH_H
#define VXD_GPU_VOLUME_VOLUME_CLEAR_MATH_H

#include "gpu/volume/volume_internal.h"

enum vxd_clear_what {
    VXD_CLEAR_NOTHING,
    VXD_CLEAR_PART, /* voxels from[] to to[], half-open, of the block */
    VXD_CLEAR_BLOCK
};

VXD_HD enum vxd_clear_what vxd_clear_of(const struct vxd_clear_call *call,
                                        const int32_t key[3], int from[3], int to[3])
{
    int edge = call->view.edge;
    double squares = 0;
    bool is_whole = true;

    if (call->is_ball != 0) {
        for (int axis = 0; axis < 3; axis++) {
            double at =
                vxd_addd(vxd_muld(vxd_addd((double)key[axis], 0.5), call->block_size),
                         -call->centre[axis]);

            squares = vxd_addd(squares, vxd_muld(at, at));
        }
        return squares > vxd_muld(call->radius, call->radius) ? VXD_CLEAR_BLOCK
                                                              : VXD_CLEAR_NOTHING;
    }
    for (int axis = 0; axis < 3; axis++) {
        int64_t first = (int64_t)key[axis] * edge;
        int64_t low = call->low[axis] - first;
        int64_t high = call->high[axis] - first;

        from[axis] = (int)(low < 0 ? 0 : low < edge ? low : edge);
        to[axis] = (int)(high < 0 ? 0 : high < edge ? high : edge);
        if (from[axis] >= to[axis]) {
            return VXD_CLEAR_NOTHING;
        }
        is_whole = is_whole && from[axis] == 0 && to[axis] == edge;
    }
    return is_whole ? VXD_CLEAR_BLOCK : VXD_CLEAR_PART;
}

/* Forgets one voxel. */
VXD_HD void vxd_clear_voxel(const struct vxd_volume_view *view, size_t row)
{
    if (view->is_compact != 0) {
        ((uint16_t *)view->distances)[row] = 0;
        ((uint8_t *)view->weights)[row] = 0;
    } else {
        ((float *)view->distances)[row] = 0;
        ((float *)view->weights)[row] = 0;
    }
    for (int c = 0; view->colours != NULL && c < 4; c++) {
        view->colours[4 * row + (size_t)c] = 0;
    }
    for (int c = 0; view->labels != NULL && c < 4; c++) {
        view->labels[4 * row + (size_t)c] = 0;
    }
}

#endif
