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
    for (int c = 0; view->albedo != NULL && c < 4; c++) {
        view->albedo[4 * row + (size_t)c] = 0;
    }
}

/* The weight of a voxel after a decay: whole numbers are rounded down. */
VXD_HD float vxd_decayed_weight(const struct vxd_decay_call *call, size_t row)
{
    const struct vxd_volume_view *view = &call->clear.view;

    if (view->is_compact != 0) {
        return (float)(int)vxd_mulf((float)((const uint8_t *)view->weights)[row],
                                    call->factor);
    }
    return vxd_mulf(((const float *)view->weights)[row], call->factor);
}

/* Lowers the weights of one voxel. */
VXD_HD void vxd_decay_voxel(const struct vxd_decay_call *call, size_t row)
{
    const struct vxd_volume_view *view = &call->clear.view;
    float weight = vxd_decayed_weight(call, row);

    if (weight == 0) {
        vxd_clear_voxel(view, row);
        return;
    }
    if (view->is_compact != 0) {
        ((uint8_t *)view->weights)[row] = (uint8_t)weight;
    } else {
        ((float *)view->weights)[row] = weight;
    }
    if (view->colours != NULL) {
        uint16_t *colour = view->colours + 4 * row;

        colour[3] = (uint16_t)vxd_mulf((float)colour[3], call->factor);
        for (int c = 0; colour[3] == 0 && c < 3; c++) {
            colour[c] = 0;
        }
    }
    if (view->labels != NULL && !call->keeps_votes) {
        uint64_t *votes = (uint64_t *)(void *)view->labels + row;

        *votes = vxd_label_decay(*votes, call->factor);
    }
}

/* The weight of a voxel of a block as a decay of the part from[] to to[] leaves it. */
VXD_HD float vxd_decay_weight_at(const struct vxd_decay_call *call, int32_t entry,
                                 uint32_t index, const int from[3], const int to[3])
{
    const struct vxd_volume_view *view = &call->clear.view;
    size_t row = vxd_voxel_row(view, entry, index);
    int x = (int)index & (view->edge - 1);
    int y = (int)(index >> view->shift) & (view->edge - 1);
    int z = (int)(index >> (2 * view->shift));

    if (x >= from[0] && x < to[0] && y >= from[1] && y < to[1] && z >= from[2] &&
        z < to[2]) {
        return vxd_decayed_weight(call, row);
    }
    return view->is_compact != 0 ? (float)((const uint8_t *)view->weights)[row]
                                 : ((const float *)view->weights)[row];
}

/* Finds the voxels of a block that a decay is about, from[] to to[]; false: none. */
VXD_HD bool vxd_decay_of(const struct vxd_decay_call *call, const int32_t key[3],
                         int from[3], int to[3])
{
    enum vxd_clear_what what = vxd_clear_of(&call->clear, key, from, to);

    for (int axis = 0; axis < 3 && what == VXD_CLEAR_BLOCK; axis++) {
        from[axis] = 0;
        to[axis] = call->clear.view.edge;
    }
    return what != VXD_CLEAR_NOTHING;
}

/* Whether a block goes of which no voxel weighs more than `most` after a decay. */
VXD_HD bool vxd_decay_removes(const struct vxd_decay_call *call, float most)
{
    return most == 0 || most < call->min_weight;
}

/* Rises with the distance of a block's centre from the point: the bits of the square. */
VXD_HD uint64_t vxd_rank_of(const struct vxd_rank_call *call, int32_t entry)
{
    const int32_t *key = call->view.keys + 3 * (size_t)entry;
    double squares = 0;
    uint64_t bits;

    if (call->is_touched[entry] != 0) {
        return 0;
    }
    for (int axis = 0; axis < 3; axis++) {
        double at = vxd_addd(vxd_muld(vxd_addd((double)key[axis], 0.5), call->block_size),
                             -call->point[axis]);

        squares = vxd_addd(squares, vxd_muld(at, at));
    }
    memcpy(&bits, &squares, sizeof bits);
    return bits + 1;
}

#endif
