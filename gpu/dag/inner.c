// SPDX-License-Identifier: Apache-2.0
/* Inner nodes: their canonical form, and what lies below them. */
#include <assert.h>

#include "gpu/dag/internal.h"

enum {
    N_MEMO = 512 /* nodes whose counts are remembered */
};

/* What of a node the header of its parent repeats. */
struct part {
    uint32_t flags;
    uint32_t n_occupied; /* where the height is below VXD_DAG_COUNT_HEIGHT */
};

static struct part part_of(const struct vxd_dag_view *view, uint32_t ref, int height)
{
    const uint32_t *words;
    struct part part = {0};

    if (ref == VXD_DAG_EMPTY) {
        return part;
    }
    if (vxd_dag_is_uniform(ref)) {
        if (vxd_dag_uniform_state(view, ref) == VXD_DAG_FREE) {
            part.flags = VXD_DAG_HAS_FREE;
            return part;
        }
        part.flags = VXD_DAG_HAS_OCCUPIED;
        part.n_occupied = height < VXD_DAG_COUNT_HEIGHT ? 1u << (3 * height) : 0;
        return part;
    }
    words = vxd_dag_words(view, ref);
    if (height == VXD_DAG_LEAF_HEIGHT) {
        struct vxd_dag_item leaf = vxd_dag_leaf_item(view, ref);
        uint64_t occupied = vxd_dag_item_occupied(view, &leaf);

        part.n_occupied = (uint32_t)vxd_dag_popc(occupied);
        part.flags = (occupied != 0 ? VXD_DAG_HAS_OCCUPIED : 0) |
                     (occupied != vxd_dag_leaf_mask(words) ? VXD_DAG_HAS_FREE : 0);
        return part;
    }
    part.flags = words[0] & (VXD_DAG_HAS_OCCUPIED | VXD_DAG_HAS_FREE);
    part.n_occupied = words[0] >> 10;
    return part;
}

enum vxd_status vxd_dag_inner_put(struct vxd_dag_writer *writer, int height,
                                  const uint32_t children[8], uint32_t *ref,
                                  struct vxd_err *err)
{
    const struct vxd_dag_view *view = &writer->dag->view;
    uint32_t words[9] = {0};
    uint32_t n_occupied = 0;
    uint32_t differ = 0;
    int n = 0;

    assert(height > VXD_DAG_LEAF_HEIGHT && height <= view->depth);
    for (int i = 0; i < 8; i++) {
        differ |= children[i] ^ children[0];
        if (children[i] != VXD_DAG_EMPTY) {
            struct part part = part_of(view, children[i], height - 1);

            words[0] |= 1u << i | part.flags;
            words[++n] = children[i];
            n_occupied += part.n_occupied;
        }
    }
    if (differ == 0 && !vxd_dag_is_node(children[0])) {
        *ref = children[0];
        return VXD_OK;
    }
    if (height <= VXD_DAG_COUNT_HEIGHT) {
        words[0] |= n_occupied << 10;
    }
    return vxd_dag_put(writer, VXD_DAG_INNER, height, words, n + 1, ref, err);
}

struct counts {
    uint64_t n_occupied;
    uint64_t n_free;
};

/* Counts of a reference that need no walk; false where its children have to be asked. */
static bool counts_known(const struct vxd_dag_view *view, uint32_t ref, int height,
                         struct counts *out)
{
    const uint32_t *words;

    *out = (struct counts){0};
    if (ref == VXD_DAG_EMPTY) {
        return true;
    }
    if (vxd_dag_is_uniform(ref)) {
        uint64_t n = (uint64_t)1 << (3 * height);

        if (vxd_dag_uniform_state(view, ref) == VXD_DAG_FREE) {
            out->n_free = n;
        } else {
            out->n_occupied = n;
        }
        return true;
    }
    words = vxd_dag_words(view, ref);
    if (height == VXD_DAG_LEAF_HEIGHT) {
        struct vxd_dag_item leaf = vxd_dag_leaf_item(view, ref);
        uint64_t occupied = vxd_dag_item_occupied(view, &leaf);

        out->n_occupied = (uint64_t)vxd_dag_popc(occupied);
        out->n_free = (uint64_t)vxd_dag_popc(vxd_dag_leaf_mask(words)) - out->n_occupied;
        return true;
    }
    out->n_occupied = words[0] >> 10;
    return height <= VXD_DAG_COUNT_HEIGHT && (words[0] & VXD_DAG_HAS_FREE) == 0;
}

/* A node on the way down, with what its first children hold. */
struct frame {
    uint32_t ref;
    int octant;
    struct counts sum;
};

struct memo {
    uint32_t ref; /* VXD_DAG_EMPTY: none */
    int height;
    struct counts counts;
};

static struct memo *memo_slot(struct memo memo[N_MEMO], uint32_t ref, int height)
{
    uint32_t hash = (ref ^ (uint32_t)height << 27) * 0x9e3779b1u;

    return &memo[hash >> 23];
}

void vxd_dag_ref_count(const struct vxd_dag_view *view, uint32_t ref, int height,
                       uint64_t *n_occupied, uint64_t *n_free)
{
    struct frame stack[VXD_DAG_MAX_DEPTH + 1]; /* by height */
    struct memo memo[N_MEMO];                  /* a DAG has more paths than nodes */
    struct counts counts;
    int top = height;

    if (counts_known(view, ref, height, &counts)) {
        *n_occupied = counts.n_occupied;
        *n_free = counts.n_free;
        return;
    }
    for (int i = 0; i < N_MEMO; i++) {
        memo[i].ref = VXD_DAG_EMPTY;
    }
    stack[height] = (struct frame){.ref = ref};
    for (;;) {
        struct frame *frame = &stack[top];
        struct memo *known;
        uint32_t child;

        if (frame->octant == 8) {
            counts = frame->sum;
            *memo_slot(memo, frame->ref, top) = (struct memo){frame->ref, top, counts};
            if (top == height) {
                break;
            }
            top++;
            stack[top].sum.n_occupied += counts.n_occupied;
            stack[top].sum.n_free += counts.n_free;
            continue;
        }
        child = vxd_dag_child_of(view, frame->ref, frame->octant++);
        if (!counts_known(view, child, top - 1, &counts)) {
            known = memo_slot(memo, child, top - 1);
            if (known->ref != child || known->height != top - 1) {
                top--;
                stack[top] = (struct frame){.ref = child};
                continue;
            }
            counts = known->counts;
        }
        frame->sum.n_occupied += counts.n_occupied;
        frame->sum.n_free += counts.n_free;
    }
    *n_occupied = counts.n_occupied;
    *n_free = counts.n_free;
}
