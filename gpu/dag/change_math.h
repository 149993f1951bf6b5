// SPDX-License-Identifier: Apache-2.0
/* How many voxels differ between two references, as far as it can be told without a walk. */
#ifndef VXD_GPU_DAG_CHANGE_MATH_H
#define VXD_GPU_DAG_CHANGE_MATH_H

#include "gpu/dag/tree_math.h"

/* Voxels, as in struct vxd_dag_edit_result. */
struct vxd_dag_change {
    uint64_t n_added;
    uint64_t n_removed;
    uint64_t n_changed;
    uint64_t n_freed;
};

/* What is known of a reference without a walk. */
struct vxd_dag_known {
    uint64_t n_voxels;
    uint64_t n_occupied; /* where has_count is set */
    bool has_count;
    bool is_node;
    bool may_have_free;
};

VXD_HD struct vxd_dag_known vxd_dag_know(const struct vxd_dag_view *view, uint32_t ref,
                                         int height)
{
    struct vxd_dag_known known = {(uint64_t)1 << 3 * height, 0, true, false, false};
    uint32_t head;

    if (!vxd_dag_is_node(ref)) {
        unsigned state = vxd_dag_uniform_state(view, ref);

        known.n_occupied = state == VXD_DAG_OCCUPIED ? known.n_voxels : 0;
        known.may_have_free = state == VXD_DAG_FREE;
        return known;
    }
    known.is_node = true;
    if (height == VXD_DAG_LEAF_HEIGHT) {
        known.has_count = false;
        known.may_have_free = view->free_value >= 0;
        return known;
    }
    head = vxd_dag_words(view, ref)[0];
    known.has_count =
        height <= VXD_DAG_COUNT_HEIGHT || (head & VXD_DAG_HAS_OCCUPIED) == 0;
    known.n_occupied = head >> 10;
    known.may_have_free = (head & VXD_DAG_HAS_FREE) != 0;
    return known;
}

/* Changes between two references of which one at least is no node; false where the other's
 * parts have to be looked at. */
VXD_HD bool vxd_dag_change_known(const struct vxd_dag_view *view, uint32_t from,
                                 uint32_t to, int height, struct vxd_dag_change *change)
{
    struct vxd_dag_known before = vxd_dag_know(view, from, height);
    struct vxd_dag_known after = vxd_dag_know(view, to, height);
    const bool is_from = before.is_node; /* the node */
    const struct vxd_dag_known node = is_from ? before : after;
    const struct vxd_dag_known even = is_from ? after : before;
    uint64_t n = node.n_voxels;
    uint64_t n_gone = 0;

    change->n_added = 0;
    change->n_removed = 0;
    change->n_changed = 0;
    change->n_freed = 0;
    if (!node.has_count) {
        return false;
    }
    if (even.n_occupied > 0 && node.n_occupied > 0) {
        /* Occupied and occupied: of which material, only a look tells; of two regions, or
         * where there are no materials, none is needed. */
        if (node.is_node && view->value_bits > 1) {
            return false;
        }
        change->n_changed = node.is_node || view->value_bits <= 1 ? 0 : n;
    }
    n_gone = even.n_occupied > 0 ? n - node.n_occupied : node.n_occupied;
    if (even.n_occupied > 0 ? is_from : !is_from) {
        change->n_added = n_gone;
    } else {
        change->n_removed = n_gone;
    }
    /* FREE afterwards: nothing to count where nothing can be, or all was before. */
    if (after.may_have_free && !(!is_from && before.may_have_free)) {
        if (node.is_node && node.may_have_free) {
            return false;
        }
        change->n_freed = n;
    }
    return true;
}

/* Changes between what stands at two references of leaf height. */
VXD_HD void vxd_dag_change_leaves(const struct vxd_dag_view *view, uint32_t from,
                                  uint32_t to, struct vxd_dag_change *change)
{
    uint64_t occupied[2];
    uint64_t free[2];

    vxd_dag_spot_masks(view, from, &occupied[0], &free[0]);
    vxd_dag_spot_masks(view, to, &occupied[1], &free[1]);
    change->n_added = (uint64_t)vxd_dag_popc(occupied[1] & ~occupied[0]);
    change->n_removed = (uint64_t)vxd_dag_popc(occupied[0] & ~occupied[1]);
    change->n_freed = (uint64_t)vxd_dag_popc(free[1] & ~free[0]);
    change->n_changed = 0;
    if (view->value_bits <= 1) {
        return;
    }
    for (uint64_t rest = occupied[0] & occupied[1]; rest != 0; rest &= rest - 1) {
        int bit = vxd_dag_low_bit(rest);

        change->n_changed +=
            vxd_dag_spot_value(view, from, bit) != vxd_dag_spot_value(view, to, bit);
    }
}

/* Adds the changes from what stands at a reference of leaf height to a leaf. False where they
 * are equal in all, what is not set (which no number tells) included. */
VXD_HD bool vxd_dag_change_add_edited(const struct vxd_dag_view *view, uint32_t from,
                                      const struct vxd_dag_leaf *to,
                                      struct vxd_dag_change *sum)
{
    const uint64_t after = to->set & ~to->free;
    uint64_t n_changed = 0;
    uint64_t before;
    uint64_t free;

    vxd_dag_spot_masks(view, from, &before, &free);
    if (view->value_bits > 1) {
        for (uint64_t rest = before & after; rest != 0; rest &= rest - 1) {
            int bit = vxd_dag_low_bit(rest);

            n_changed += vxd_dag_spot_value(view, from, bit) != to->values[bit];
        }
    }
    sum->n_added += (uint64_t)vxd_dag_popc(after & ~before);
    sum->n_removed += (uint64_t)vxd_dag_popc(before & ~after);
    sum->n_changed += n_changed;
    sum->n_freed += (uint64_t)vxd_dag_popc(to->free & ~free);
    return n_changed > 0 || before != after || free != to->free;
}

/* Changes of a pair without going below it; false where its children have to be asked. */
VXD_HD bool vxd_dag_change_at_once(const struct vxd_dag_view *view, uint32_t from,
                                   uint32_t to, int height, struct vxd_dag_change *change)
{
    change->n_added = 0;
    change->n_removed = 0;
    change->n_changed = 0;
    change->n_freed = 0;
    if (from == to) {
        return true;
    }
    if (!(vxd_dag_is_node(from) && vxd_dag_is_node(to)) &&
        vxd_dag_change_known(view, from, to, height, change)) {
        return true;
    }
    if (height == VXD_DAG_LEAF_HEIGHT) {
        vxd_dag_change_leaves(view, from, to, change);
        return true;
    }
    return false;
}

VXD_HD void vxd_dag_change_sum(struct vxd_dag_change *sum,
                               const struct vxd_dag_change *more)
{
    sum->n_added += more->n_added;
    sum->n_removed += more->n_removed;
    sum->n_changed += more->n_changed;
    sum->n_freed += more->n_freed;
}

#endif
