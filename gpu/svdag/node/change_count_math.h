// SPDX-License-Identifier: Apache-2.0
/* Counts the voxels in which two references differ, as far as that is possible without a
 * traversal. */
#ifndef VXD_GPU_SVDAG_NODE_CHANGE_COUNT_MATH_H
#define VXD_GPU_SVDAG_NODE_CHANGE_COUNT_MATH_H

#include "gpu/svdag/node/inner_math.h"

/* Voxels, as in struct vxd_svdag_edit_result. */
struct vxd_svdag_change {
    uint64_t n_added;
    uint64_t n_removed;
    uint64_t n_changed;
    uint64_t n_freed;
};

/* What the reference itself and the first word of its node say about its voxels. */
struct vxd_svdag_known {
    uint64_t n_voxels;
    uint64_t n_occupied; /* valid where has_count is set */
    bool has_count;
    bool is_node;
    bool may_have_free;
};

VXD_HD struct vxd_svdag_known vxd_svdag_know(const struct vxd_svdag_view *view,
                                             uint32_t ref, int height)
{
    struct vxd_svdag_known known = {(uint64_t)1 << 3 * height, 0, true, false, false};
    uint32_t head;

    if (!vxd_svdag_is_node(ref)) {
        unsigned state = vxd_svdag_uniform_state(view, ref);

        known.n_occupied = state == VXD_SVDAG_OCCUPIED ? known.n_voxels : 0;
        known.may_have_free = state == VXD_SVDAG_FREE;
        return known;
    }
    known.is_node = true;
    if (height == VXD_SVDAG_LEAF_HEIGHT) {
        known.has_count = false;
        known.may_have_free = view->free_value >= 0;
        return known;
    }
    head = vxd_svdag_words(view, ref)[0];
    known.has_count =
        height <= VXD_SVDAG_COUNT_HEIGHT || (head & VXD_SVDAG_HAS_OCCUPIED) == 0;
    known.n_occupied = head >> 10;
    known.may_have_free = (head & VXD_SVDAG_HAS_FREE) != 0;
    return known;
}

/* Counts the changes between two references, at least one of which is empty or uniform.
 * False where the children of the other have to be compared. */
VXD_HD bool vxd_svdag_change_known(const struct vxd_svdag_view *view, uint32_t from,
                                   uint32_t to, int height,
                                   struct vxd_svdag_change *change)
{
    struct vxd_svdag_known before = vxd_svdag_know(view, from, height);
    struct vxd_svdag_known after = vxd_svdag_know(view, to, height);
    const bool is_from = before.is_node; /* whether `from` is the node */
    const struct vxd_svdag_known node = is_from ? before : after;
    const struct vxd_svdag_known even = is_from ? after : before;
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
        /* Both sides have occupied voxels. Whether the materials differ is known for two
         * uniform regions, or where the scene has no materials; else the voxels have to
         * be compared. */
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
    /* Voxels that are FREE afterwards. There is nothing to count where no voxel can be
     * FREE, or where all were FREE before. */
    if (after.may_have_free && !(!is_from && before.may_have_free)) {
        if (node.is_node && node.may_have_free) {
            return false;
        }
        change->n_freed = n;
    }
    return true;
}

/* Number of the voxels in `both`, which are occupied at two references of leaf height,
 * whose values differ. */
VXD_SVDAG_RARE uint32_t vxd_svdag_values_differ(const struct vxd_svdag_view *view,
                                                uint32_t from, uint32_t to, uint64_t both)
{
    struct vxd_svdag_values were = vxd_svdag_values_of(view, from);
    struct vxd_svdag_values are = vxd_svdag_values_of(view, to);
    uint32_t n = 0;

    for (uint64_t rest = both; rest != 0; rest &= rest - 1) {
        const int bit = vxd_svdag_low_bit(rest);

        n += vxd_svdag_values_get(view, &were, bit) !=
             vxd_svdag_values_get(view, &are, bit);
    }
    return n;
}

/* The same for values of 4 bits. */
VXD_SVDAG_RARE uint32_t vxd_svdag_octets_differ(const struct vxd_svdag_view *view,
                                                uint32_t from, uint32_t to, uint64_t both)
{
    struct vxd_svdag_octets were = vxd_svdag_octets_of(view, from);
    struct vxd_svdag_octets are = vxd_svdag_octets_of(view, to);
    uint32_t n = 0;

    VXD_SVDAG_ROLLED
    for (int octant = 0; octant < 8; octant++) {
        const uint32_t nibbles =
            vxd_svdag_octets_next(&were) ^ vxd_svdag_octets_next(&are);

        n += (uint32_t)vxd_svdag_popc(vxd_svdag_nibbles_any(nibbles) &
                                      (uint32_t)(both >> 8 * octant));
    }
    return n;
}

/* The same between a reference of mixed values and an edited leaf of packed values. */
VXD_SVDAG_RARE uint32_t vxd_svdag_octets_edited(const struct vxd_svdag_view *view,
                                                uint32_t from, const uint16_t *values,
                                                uint64_t others, uint32_t first,
                                                uint32_t other, uint64_t both)
{
    struct vxd_svdag_octets were = vxd_svdag_octets_of(view, from);
    uint32_t n = 0;

    VXD_SVDAG_ROLLED
    for (int octant = 0; octant < 8; octant++) {
        const uint32_t are =
            values != NULL ? vxd_svdag_octet_get(values, octant)
                           : vxd_svdag_nibbles_of(first) ^
                                 vxd_svdag_octet_mask(others, octant) * (first ^ other);
        const uint32_t nibbles = vxd_svdag_octets_next(&were) ^ are;

        n += (uint32_t)vxd_svdag_popc(vxd_svdag_nibbles_any(nibbles) &
                                      (uint32_t)(both >> 8 * octant));
    }
    return n;
}

/* The same between a reference of mixed values and an edited leaf of unpacked values. */
VXD_SVDAG_RARE uint32_t vxd_svdag_values_edited(const struct vxd_svdag_view *view,
                                                uint32_t from, const uint16_t *values,
                                                uint64_t others, uint32_t first,
                                                uint32_t other, uint64_t both)
{
    struct vxd_svdag_values were = vxd_svdag_values_of(view, from);
    uint32_t n = 0;

    for (uint64_t rest = both; rest != 0; rest &= rest - 1) {
        const int bit = vxd_svdag_low_bit(rest);

        n += vxd_svdag_values_get(view, &were, bit) != (values != NULL ? values[bit]
                                                        : (others >> bit & 1) != 0
                                                            ? other
                                                            : first);
    }
    return n;
}

/* Bits of a mask. Most masks are 0, and the count is skipped for these. */
VXD_HD uint64_t vxd_svdag_n_voxels(uint64_t mask)
{
    return mask == 0 ? 0 : (uint64_t)vxd_svdag_popc(mask);
}

/* Adds the changes between two leaves. Returns false where the leaves are equal,
 * including which voxels are not set (for that there is no count). */
VXD_HD bool vxd_svdag_change_add_masks(const struct vxd_svdag_leaf *from,
                                       const struct vxd_svdag_leaf *to,
                                       uint64_t n_changed, struct vxd_svdag_change *sum)
{
    const uint64_t before = from->set & ~from->free;
    const uint64_t after = to->set & ~to->free;

    sum->n_added += vxd_svdag_n_voxels(after & ~before);
    sum->n_removed += vxd_svdag_n_voxels(before & ~after);
    sum->n_changed += n_changed;
    sum->n_freed += vxd_svdag_n_voxels(to->free & ~from->free);
    return n_changed > 0 || from->set != to->set || from->free != to->free;
}

/* Counts the changes between two references of leaf height. */
VXD_SVDAG_RARE struct vxd_svdag_change
vxd_svdag_change_leaves(const struct vxd_svdag_view *view, uint32_t from, uint32_t to)
{
    struct vxd_svdag_leaf before;
    struct vxd_svdag_leaf after;
    struct vxd_svdag_change change = {0, 0, 0, 0};
    uint64_t n_changed = 0;
    uint64_t both;

    (void)vxd_svdag_leaf_peek(view, from, &before);
    (void)vxd_svdag_leaf_peek(view, to, &after);
    both = before.set & ~before.free & after.set & ~after.free;
    if (both != 0 && view->value_bits > 1) {
        n_changed = !before.is_mixed && !after.is_mixed
                        ? (before.first != after.first ? vxd_svdag_n_voxels(both) : 0)
                    : before.is_packed ? vxd_svdag_octets_differ(view, from, to, both)
                                       : vxd_svdag_values_differ(view, from, to, both);
    }
    (void)vxd_svdag_change_add_masks(&before, &after, n_changed, &change);
    return change;
}

/* Adds the changes from a leaf before an edit to the leaf after it. `from` is the
 * reference that `before` was split from. The values of `before` are not read, as they
 * may share memory with those of `to`. Returns false where the leaves are equal,
 * including which voxels are not set. */
VXD_HD bool vxd_svdag_change_add_edited(const struct vxd_svdag_view *view, uint32_t from,
                                        const struct vxd_svdag_leaf *before,
                                        const struct vxd_svdag_leaf *to,
                                        struct vxd_svdag_change *sum)
{
    const uint64_t both = before->set & ~before->free & to->set & ~to->free;
    uint64_t n_changed = 0;

    if (both != 0 && view->value_bits > 1) {
        const uint16_t *values = to->is_mixed ? to->values : NULL;

        n_changed = !before->is_mixed
                        ? vxd_svdag_n_voxels(
                              both & ~vxd_svdag_leaf_find_value(to, both, before->first))
                    : before->is_packed
                        ? vxd_svdag_octets_edited(view, from, values, to->others,
                                                  to->first, to->other, both)
                        : vxd_svdag_values_edited(view, from, values, to->others,
                                                  to->first, to->other, both);
    }
    return vxd_svdag_change_add_masks(before, to, n_changed, sum);
}

/* Counts the changes of a pair where that needs no descent. False where the children have
 * to be compared. */
VXD_HD bool vxd_svdag_change_at_once(const struct vxd_svdag_view *view, uint32_t from,
                                     uint32_t to, int height,
                                     struct vxd_svdag_change *change)
{
    change->n_added = 0;
    change->n_removed = 0;
    change->n_changed = 0;
    change->n_freed = 0;
    if (from == to) {
        return true;
    }
    if (!(vxd_svdag_is_node(from) && vxd_svdag_is_node(to)) &&
        vxd_svdag_change_known(view, from, to, height, change)) {
        return true;
    }
    if (height == VXD_SVDAG_LEAF_HEIGHT) {
        *change = vxd_svdag_change_leaves(view, from, to);
        return true;
    }
    return false;
}

VXD_HD void vxd_svdag_change_sum(struct vxd_svdag_change *sum,
                                 const struct vxd_svdag_change *more)
{
    sum->n_added += more->n_added;
    sum->n_removed += more->n_removed;
    sum->n_changed += more->n_changed;
    sum->n_freed += more->n_freed;
}

#endif
