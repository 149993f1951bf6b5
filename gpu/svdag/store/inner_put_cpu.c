// SPDX-License-Identifier: Apache-2.0
/* Inserting inner nodes, and counting the voxels of a reference. */
#include <assert.h>

#include "gpu/svdag/store/store.h"

enum {
    N_MEMO = 512 /* memo entries */
};

enum vxd_status vxd_svdag_inner_put(struct vxd_svdag_writer *writer, int height,
                                    const uint32_t children[8], uint32_t *ref,
                                    struct vxd_err *err)
{
    const struct vxd_svdag_view *view = &writer->svdag->view;
    uint32_t words[9];

    assert(height > VXD_SVDAG_LEAF_HEIGHT && height <= view->depth);
    return vxd_svdag_inner_compose(view, height, children, words, ref)
               ? vxd_svdag_put(writer, VXD_SVDAG_INNER, height, words,
                               vxd_svdag_inner_words(words), ref, err)
               : VXD_OK;
}

struct counts {
    uint64_t n_occupied;
    uint64_t n_free;
};

/* Counts of a reference that need no traversal; false where its children have to be
 * counted. */
static bool counts_known(const struct vxd_svdag_view *view, uint32_t ref, int height,
                         struct counts *out)
{
    const uint32_t *words;

    *out = (struct counts){0};
    if (ref == VXD_SVDAG_EMPTY) {
        return true;
    }
    if (vxd_svdag_is_uniform(ref)) {
        uint64_t n = (uint64_t)1 << (3 * height);

        if (vxd_svdag_uniform_state(view, ref) == VXD_SVDAG_FREE) {
            out->n_free = n;
        } else {
            out->n_occupied = n;
        }
        return true;
    }
    words = vxd_svdag_words(view, ref);
    if (height == VXD_SVDAG_LEAF_HEIGHT) {
        struct vxd_svdag_item leaf = vxd_svdag_leaf_item(view, ref);
        uint64_t occupied = vxd_svdag_item_occupied(view, &leaf);

        out->n_occupied = (uint64_t)vxd_svdag_popc(occupied);
        out->n_free =
            (uint64_t)vxd_svdag_popc(vxd_svdag_leaf_mask(words)) - out->n_occupied;
        return true;
    }
    out->n_occupied = words[0] >> 10;
    return height <= VXD_SVDAG_COUNT_HEIGHT && (words[0] & VXD_SVDAG_HAS_FREE) == 0;
}

/* A node on the stack, with the counts of the children visited so far. */
struct frame {
    uint32_t ref;
    int octant;
    struct counts sum;
};

struct memo {
    uint32_t ref; /* VXD_SVDAG_EMPTY: none */
    int height;
    struct counts counts;
};

static struct memo *memo_slot(struct memo memo[N_MEMO], uint32_t ref, int height)
{
    uint32_t hash = (ref ^ (uint32_t)height << 27) * 0x9e3779b1u;

    return &memo[hash >> 23];
}

void vxd_svdag_ref_count(const struct vxd_svdag_view *view, uint32_t ref, int height,
                         uint64_t *n_occupied, uint64_t *n_free)
{
    struct frame stack[VXD_SVDAG_MAX_DEPTH + 1]; /* by height */
    struct memo
        memo[N_MEMO]; /* a DAG has more paths than nodes, so nodes are visited once */
    struct counts counts;
    int top = height;

    if (counts_known(view, ref, height, &counts)) {
        *n_occupied = counts.n_occupied;
        *n_free = counts.n_free;
        return;
    }
    for (int i = 0; i < N_MEMO; i++) {
        memo[i].ref = VXD_SVDAG_EMPTY;
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
        child = vxd_svdag_child_of(view, frame->ref, frame->octant++);
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
