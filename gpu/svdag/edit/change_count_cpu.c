// SPDX-License-Identifier: Apache-2.0
/* Goes down both sides together, skips what is equal, and stops where counts that nodes carry
 * say enough: below a cube that became empty nobody looks at a leaf. */
#include "gpu/svdag/edit/change_count.h"

/* A pair on the way down, with what its first children differ in. */
struct frame {
    uint32_t from;
    uint32_t to;
    int octant;
    struct vxd_svdag_change sum;
};

/* Where the memory has a pair, or would have it. */
static struct vxd_svdag_change_pair *place_of(struct vxd_svdag_change_memo *memo,
                                              const struct frame *pair, int height)
{
    const struct vxd_svdag_change_pair none = {VXD_SVDAG_EMPTY, VXD_SVDAG_EMPTY, 0, {0}};
    uint64_t key = ((uint64_t)pair->from << 32 | pair->to) + (uint64_t)height;

    if (!memo->is_made) {
        for (int i = 0; i < VXD_SVDAG_CHANGE_MEMO; i++) {
            memo->pairs[i] = none;
        }
        memo->is_made = true;
    }
    return &memo->pairs[(key * 0x9e3779b97f4a7c15ULL >> 32) % VXD_SVDAG_CHANGE_MEMO];
}

/* Changes of a pair without going down; false where its children have to be asked. */
static bool change_at_once(const struct vxd_svdag_view *view,
                           struct vxd_svdag_change_memo *memo, const struct frame *pair,
                           int height, struct vxd_svdag_change *change)
{
    const struct vxd_svdag_change_pair *memo_entry;

    if (pair->from == pair->to) {
        *change = (struct vxd_svdag_change){0};
        return true;
    }
    if (!(vxd_svdag_is_node(pair->from) && vxd_svdag_is_node(pair->to)) &&
        vxd_svdag_change_known(view, pair->from, pair->to, height, change)) {
        return true;
    }
    if (height == VXD_SVDAG_LEAF_HEIGHT) {
        *change = vxd_svdag_change_leaves(view, pair->from, pair->to);
        return true;
    }
    memo_entry = place_of(memo, pair, height);
    if (memo_entry->from == pair->from && memo_entry->to == pair->to &&
        memo_entry->height == height) {
        *change = memo_entry->change;
        return true;
    }
    return false;
}

void vxd_svdag_change_add(const struct vxd_svdag_view *view,
                          struct vxd_svdag_change_memo *memo, uint32_t from, uint32_t to,
                          int height, struct vxd_svdag_change *sum)
{
    struct frame stack[VXD_SVDAG_MAX_DEPTH + 2]; /* by height, the sum of all on top */
    int at = height;

    stack[height + 1] = (struct frame){0};
    stack[height] = (struct frame){.from = from, .to = to};
    while (at >= VXD_SVDAG_LEAF_HEIGHT && at <= height) {
        struct frame *pair = &stack[at];
        struct vxd_svdag_change change;

        if (pair->octant == 0 && change_at_once(view, memo, pair, at, &change)) {
            vxd_svdag_change_sum(&stack[++at].sum, &change);
        } else if (pair->octant == 8) {
            *place_of(memo, pair, at) =
                (struct vxd_svdag_change_pair){pair->from, pair->to, at, pair->sum};
            vxd_svdag_change_sum(&stack[++at].sum, &pair->sum);
        } else {
            stack[--at] = (struct frame){
                .from = vxd_svdag_child_ref(view, pair->from, pair->octant),
                .to = vxd_svdag_child_ref(view, pair->to, pair->octant)};
            pair->octant++;
        }
    }
    vxd_svdag_change_sum(sum, &stack[height + 1].sum);
}
