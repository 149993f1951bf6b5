// SPDX-License-Identifier: Apache-2.0
/* Goes down both sides together, skips what is equal, and stops where counts that nodes carry
 * say enough: below a cube that became empty nobody looks at a leaf. */
#include "gpu/dag/change.h"

/* A pair on the way down, with what its first children differ in. */
struct frame {
    uint32_t from;
    uint32_t to;
    int octant;
    struct vxd_dag_change sum;
};

static void add(struct vxd_dag_change *sum, const struct vxd_dag_change *more)
{
    sum->n_added += more->n_added;
    sum->n_removed += more->n_removed;
    sum->n_changed += more->n_changed;
    sum->n_freed += more->n_freed;
}

bool vxd_dag_change_add_leaf(const struct vxd_dag_leaf *from,
                             const struct vxd_dag_leaf *to, bool has_materials,
                             struct vxd_dag_change *sum)
{
    uint64_t before = from->set & ~from->free;
    uint64_t after = to->set & ~to->free;
    uint64_t n_changed = 0;

    if (has_materials) {
        for (uint64_t rest = before & after; rest != 0; rest &= rest - 1) {
            int bit = __builtin_ctzll(rest);

            n_changed += from->values[bit] != to->values[bit];
        }
    }
    sum->n_added += (uint64_t)vxd_dag_popc(after & ~before);
    sum->n_removed += (uint64_t)vxd_dag_popc(before & ~after);
    sum->n_changed += n_changed;
    sum->n_freed += (uint64_t)vxd_dag_popc(to->free & ~from->free);
    return n_changed > 0 || from->set != to->set || from->free != to->free;
}

/* What is known of a reference without a walk. */
struct known {
    uint64_t n_voxels;
    uint64_t n_occupied; /* where has_count is set */
    bool has_count;
    bool is_node;
    bool may_have_free;
};

static struct known know(const struct vxd_dag_view *view, uint32_t ref, int height)
{
    struct known known = {.n_voxels = (uint64_t)1 << 3 * height, .has_count = true};
    const uint32_t *words;

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
    words = vxd_dag_words(view, ref);
    known.has_count =
        height <= VXD_DAG_COUNT_HEIGHT || (words[0] & VXD_DAG_HAS_OCCUPIED) == 0;
    known.n_occupied = words[0] >> 10;
    known.may_have_free = (words[0] & VXD_DAG_HAS_FREE) != 0;
    return known;
}

/* Changes between two references of which one at least is no node; false where the other's
 * parts have to be looked at. */
static bool change_known(const struct vxd_dag_view *view, uint32_t from, uint32_t to,
                         int height, struct vxd_dag_change *change)
{
    struct known before = know(view, from, height);
    struct known after = know(view, to, height);
    const struct known *node = before.is_node ? &before : &after;
    const struct known *even = before.is_node ? &after : &before;
    uint64_t n = node->n_voxels;

    *change = (struct vxd_dag_change){0};
    if (!node->has_count) {
        return false;
    }
    if (even->n_occupied > 0 && node->n_occupied > 0) {
        /* Occupied and occupied: of which material, only a look tells; of two regions, or
         * where there are no materials, none is needed. */
        if (node->is_node && view->value_bits > 1) {
            return false;
        }
        change->n_changed = node->is_node || view->value_bits <= 1 ? 0 : n;
    }
    if (even->n_occupied > 0 ? before.is_node : !before.is_node) {
        change->n_added = even->n_occupied > 0 ? n - node->n_occupied : node->n_occupied;
    } else {
        change->n_removed =
            even->n_occupied > 0 ? n - node->n_occupied : node->n_occupied;
    }
    /* FREE afterwards: nothing to count where nothing can be, or all was before. */
    if (after.may_have_free && !(even == &before && before.may_have_free)) {
        if (node->is_node && node->may_have_free) {
            return false;
        }
        change->n_freed = n;
    }
    return true;
}

static uint32_t child_of(const struct vxd_dag_view *view, uint32_t ref, int octant)
{
    return vxd_dag_is_node(ref) ? vxd_dag_child_of(view, ref, octant) : ref;
}

/* Where the memory has a pair, or would have it. */
static struct vxd_dag_change_pair *place_of(struct vxd_dag_change_memo *memo,
                                            const struct frame *pair, int height)
{
    uint64_t key = ((uint64_t)pair->from << 32 | pair->to) + (uint64_t)height;

    return &memo->pairs[(key * 0x9e3779b97f4a7c15ULL >> 32) % VXD_DAG_CHANGE_MEMO];
}

/* Changes of a pair without going down; false where its children have to be asked. */
static bool change_at_once(const struct vxd_dag_view *view,
                           struct vxd_dag_change_memo *memo, const struct frame *pair,
                           int height, struct vxd_dag_change *change)
{
    const struct vxd_dag_change_pair *place;

    if (pair->from == pair->to) {
        *change = (struct vxd_dag_change){0};
        return true;
    }
    if (!(vxd_dag_is_node(pair->from) && vxd_dag_is_node(pair->to)) &&
        change_known(view, pair->from, pair->to, height, change)) {
        return true;
    }
    if (height == VXD_DAG_LEAF_HEIGHT) {
        struct vxd_dag_leaf before;
        struct vxd_dag_leaf after;

        vxd_dag_leaf_read(view, pair->from, &before);
        vxd_dag_leaf_read(view, pair->to, &after);
        *change = (struct vxd_dag_change){0};
        (void)vxd_dag_change_add_leaf(&before, &after, view->value_bits > 1, change);
        return true;
    }
    place = place_of(memo, pair, height);
    if (place->from == pair->from && place->to == pair->to && place->height == height) {
        *change = place->change;
        return true;
    }
    return false;
}

void vxd_dag_change_add(const struct vxd_dag_view *view, struct vxd_dag_change_memo *memo,
                        uint32_t from, uint32_t to, int height,
                        struct vxd_dag_change *sum)
{
    struct frame stack[VXD_DAG_MAX_DEPTH + 2]; /* by height, the sum of all on top */
    int at = height;

    stack[height + 1] = (struct frame){0};
    stack[height] = (struct frame){.from = from, .to = to};
    while (at >= VXD_DAG_LEAF_HEIGHT && at <= height) {
        struct frame *pair = &stack[at];
        struct vxd_dag_change change;

        if (pair->octant == 0 && change_at_once(view, memo, pair, at, &change)) {
            add(&stack[++at].sum, &change);
        } else if (pair->octant == 8) {
            *place_of(memo, pair, at) =
                (struct vxd_dag_change_pair){pair->from, pair->to, at, pair->sum};
            add(&stack[++at].sum, &pair->sum);
        } else {
            stack[--at] = (struct frame){.from = child_of(view, pair->from, pair->octant),
                                         .to = child_of(view, pair->to, pair->octant)};
            pair->octant++;
        }
    }
    add(sum, &stack[height + 1].sum);
}
