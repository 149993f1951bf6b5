// SPDX-License-Identifier: Apache-2.0
/* The editor of undos. It descends in three trees together: the head (the current root),
 * and the roots before and after the edit that is undone. */
#ifndef VXD_GPU_SVDAG_BRUSH_UNDO_EDITOR_MATH_H
#define VXD_GPU_SVDAG_BRUSH_UNDO_EDITOR_MATH_H

#include "gpu/svdag/node/node_math.h"

/* The two other references of a cube. */
struct vxd_svdag_undo_state {
    uint32_t before;
    uint32_t after;
};

VXD_HD struct vxd_svdag_undo_state
vxd_svdag_undo_child(const struct vxd_svdag_view *view,
                     const struct vxd_svdag_undo_state *state, int octant)
{
    struct vxd_svdag_undo_state child;

    child.before = vxd_svdag_child_ref(view, state->before, octant);
    child.after = vxd_svdag_child_ref(view, state->after, octant);
    return child;
}

/* With VXD_SVDAG_SET *ref may be a node. */
VXD_HD enum vxd_svdag_visit vxd_svdag_undo_visit(const struct vxd_svdag_undo_state *state,
                                                 uint32_t head, uint32_t *ref)
{
    if (state->before == state->after) {
        return VXD_SVDAG_KEEP;
    }
    if (head == state->after) {
        *ref = state->before;
        return VXD_SVDAG_SET;
    }
    /* If both are uniform and differ, no voxel is as it was after the edit. */
    return vxd_svdag_is_node(head) || vxd_svdag_is_node(state->after) ? VXD_SVDAG_DESCEND
                                                                      : VXD_SVDAG_KEEP;
}

/* The edit key: besides the head only these two references decide. */
VXD_HD int vxd_svdag_undo_edit_key(const struct vxd_svdag_undo_state *state,
                                   uint64_t *words)
{
    words[0] = (uint64_t)state->before << 32 | state->after;
    return 1;
}

/* Compares values of the voxels in `both`, which are occupied in the head and after the
 * edit. Adds to *same those with equal values, and to *differ those of them that had
 * another value before. */
VXD_HD void vxd_svdag_undo_compare(const struct vxd_svdag_view *view,
                                   const struct vxd_svdag_undo_state *state,
                                   const struct vxd_svdag_leaf *head, uint64_t both,
                                   uint64_t before, uint64_t *same, uint64_t *differ)
{
    struct vxd_svdag_values were = vxd_svdag_values_of(view, state->before);
    struct vxd_svdag_values are = vxd_svdag_values_of(view, state->after);

    for (uint64_t rest = both; rest != 0; rest &= rest - 1) {
        const int at = vxd_svdag_low_bit(rest);
        const uint64_t bit = (uint64_t)1 << at;
        const uint32_t value = vxd_svdag_values_get(view, &are, at);

        if (value != vxd_svdag_leaf_value(head, at)) {
            continue;
        }
        *same |= bit;
        if ((before & bit) != 0 && vxd_svdag_values_get(view, &were, at) != value) {
            *differ |= bit;
        }
    }
}

VXD_SVDAG_RARE void vxd_svdag_undo_take_values(const struct vxd_svdag_view *view,
                                               uint32_t before, uint64_t taken,
                                               uint16_t *values)
{
    struct vxd_svdag_values were = vxd_svdag_values_of(view, before);

    for (uint64_t rest = taken; rest != 0; rest &= rest - 1) {
        const int at = vxd_svdag_low_bit(rest);

        values[at] = (uint16_t)vxd_svdag_values_get(view, &were, at);
    }
}

/* The same for packed values. */
VXD_SVDAG_RARE void vxd_svdag_undo_take_octets(const struct vxd_svdag_view *view,
                                               uint32_t before, uint64_t taken,
                                               uint16_t *values)
{
    struct vxd_svdag_octets were = vxd_svdag_octets_of(view, before);

    VXD_SVDAG_ROLLED
    for (int octant = 0; octant < 8; octant++) {
        const uint32_t at = 15u * vxd_svdag_octet_mask(taken, octant);

        vxd_svdag_octet_put(values, octant,
                            (vxd_svdag_octet_get(values, octant) & ~at) |
                                (vxd_svdag_octets_next(&were) & at));
    }
}

/* Undoes the edit in a leaf; `leaf` is the head's. */
VXD_HD void vxd_svdag_undo_edit_leaf(const struct vxd_svdag_view *view,
                                     const struct vxd_svdag_undo_state *state,
                                     struct vxd_svdag_leaf *leaf)
{
    const bool has_materials = view->value_bits > 1;
    struct vxd_svdag_leaf were;
    struct vxd_svdag_leaf are;
    uint64_t occupied[2]; /* before and after the edit */
    uint64_t same;        /* voxels that in the head are as after the edit */
    uint64_t differ;
    uint64_t both;
    uint64_t taken;

    (void)vxd_svdag_leaf_peek(view, state->before, &were);
    (void)vxd_svdag_leaf_peek(view, state->after, &are);
    occupied[0] = were.set & ~were.free;
    occupied[1] = are.set & ~are.free;
    same = ~(leaf->set | are.set) | (leaf->free & are.free);
    differ = (occupied[0] ^ occupied[1]) | (were.free ^ are.free);
    both = leaf->set & ~leaf->free & occupied[1];
    if (has_materials && (leaf->is_mixed || are.is_mixed || were.is_mixed)) {
        vxd_svdag_undo_compare(view, state, leaf, both, occupied[0], &same, &differ);
    } else if (has_materials) {
        same |= vxd_svdag_leaf_find_value(leaf, both, are.first);
        differ |= were.first != are.first ? both & occupied[0] : 0;
    } else {
        same |= both;
    }
    taken = same & differ;
    leaf->set = (leaf->set & ~taken) | (were.set & taken);
    leaf->free = (leaf->free & ~taken) | (were.free & taken);
    taken &= occupied[0];
    if (!has_materials || taken == 0) {
        return;
    }
    if (!were.is_mixed) {
        vxd_svdag_leaf_set_value(leaf, taken, were.first);
        return;
    }
    vxd_svdag_leaf_mix(leaf, leaf->set & ~leaf->free & ~taken, 0, 0);
    if (leaf->is_packed) {
        vxd_svdag_undo_take_octets(view, state->before, taken, leaf->values);
    } else {
        vxd_svdag_undo_take_values(view, state->before, taken, leaf->values);
    }
}

#endif
