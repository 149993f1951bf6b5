// SPDX-License-Identifier: Apache-2.0
/* Leaves that are edited, a lane each, and what of them goes to the store. */
#ifndef VXD_GPU_SVDAG_EDIT_KERNEL_EDIT_LEAVES_CUDA_H
#define VXD_GPU_SVDAG_EDIT_KERNEL_EDIT_LEAVES_CUDA_H

#include "gpu/svdag/edit_kernel/expand_cuda.h"

/* A leaf that was edited, and what it becomes as far as that is known without the store. */
struct vxd_svdag_leaf_made {
    uint32_t words
        [VXD_SVDAG_MAX_ITEM_WORDS]; /* of the item that is to be found or stored next */
    uint64_t set;
    int n_words; /* 0: none */
    bool is_block;
    uint32_t ref; /* where there is none */
    bool is_new;  /* of the last one */
};

VXD_SVDAG_DEVICE void vxd_svdag_make_leaf(const struct vxd_svdag_view *view,
                                          const struct vxd_svdag_leaf *leaf,
                                          struct vxd_svdag_leaf_made *made)
{
    const int bits = view->value_bits;
    uint32_t value;

    made->set = leaf->set;
    if (leaf->set == 0) {
        made->ref = VXD_SVDAG_EMPTY;
    } else if (bits <= 4) {
        if (vxd_svdag_leaf_compose(view, leaf, made->words, &made->ref)) {
            made->n_words = vxd_svdag_leaf_words(bits, leaf->set);
        }
    } else if (!vxd_svdag_leaf_pack(view, leaf, made->words + 1, &value)) {
        made->words[0] = (uint32_t)vxd_svdag_popc(leaf->set);
        made->n_words = vxd_svdag_block_words(bits, (int)made->words[0]);
        made->is_block = true;
    } else {
        made->ref = VXD_SVDAG_UNIFORM | value;
        made->is_block = leaf->set != ~(uint64_t)0;
    }
}

/* Once its block has a reference, or is uniform: the leaf's words. */
VXD_SVDAG_DEVICE void vxd_svdag_compose_block_leaf(struct vxd_svdag_leaf_made *made)
{
    made->n_words = 0;
    if (made->is_block) {
        made->words[0] = (uint32_t)made->set;
        made->words[1] = (uint32_t)(made->set >> 32);
        made->words[2] = made->ref;
        made->n_words = 3;
    }
}

/* Edits the leaf of this lane: what changed, and what its parent's header has of it. */
template <class Editor>
VXD_SVDAG_DEVICE uint32_t
vxd_svdag_edit_leaf(const struct vxd_svdag_view *view, const Editor &editor,
                    const struct vxd_svdag_visited<typename Editor::state> *at,
                    struct vxd_svdag_leaf_made *made, struct vxd_svdag_change *change)
{
    struct vxd_svdag_leaf leaf;
    struct vxd_svdag_leaf before;
    uint16_t values[64];
    uint64_t occupied;

    vxd_svdag_leaf_split(view, at->old, values, &leaf);
    before = leaf;
    editor.leaf(view, &at->cube, &at->state, &leaf);
    if (vxd_svdag_change_add_edited(view, at->old, &before, &leaf, change)) {
        vxd_svdag_make_leaf(view, &leaf, made);
    }
    occupied = leaf.set & ~leaf.free;
    return (uint32_t)vxd_svdag_popc(occupied) << 10 |
           (occupied != 0 ? VXD_SVDAG_HAS_OCCUPIED : 0) |
           (leaf.free != 0 ? VXD_SVDAG_HAS_FREE : 0);
}

/* Keeps what became of a leaf, but its reference: in its row, and adds what changed; or in its
 * slot. */
template <class Editor>
VXD_SVDAG_DEVICE void
vxd_svdag_keep_leaf(struct vxd_svdag_block_shared<Editor> *shared,
                    const struct vxd_svdag_visited<typename Editor::state> *at,
                    uint32_t header, const struct vxd_svdag_change *change,
                    struct vxd_svdag_change *sum)
{
    if constexpr (Editor::CLASSIFIES_ALL) {
        if (at->slot != VXD_SVDAG_NO_SLOT) {
            shared->memo.headers[at->slot] = header;
            shared->memo.counts[at->slot] =
                (uint32_t)change->n_added | (uint32_t)change->n_removed << 8 |
                (uint32_t)change->n_changed << 16 | (uint32_t)change->n_freed << 24;
            return;
        }
    }
    vxd_svdag_add_times(sum, change, shared->weights[at->top]);
    (void)atomicAdd(&shared->entries[at->parent].words[0], header & ~((1u << 10) - 1));
    (void)atomicOr(&shared->entries[at->parent].words[0], header & ((1u << 10) - 1));
}

/* The same of its reference. */
template <class Editor>
VXD_SVDAG_DEVICE void
vxd_svdag_put_leaf(struct vxd_svdag_block_shared<Editor> *shared,
                   const struct vxd_svdag_visited<typename Editor::state> *at,
                   uint32_t ref)
{
    struct vxd_svdag_frontier_entry<typename Editor::state> *entry =
        &shared->entries[at->parent];

    if constexpr (Editor::CLASSIFIES_ALL) {
        if (at->slot != VXD_SVDAG_NO_SLOT) {
            shared->memo.refs[at->slot] = ref;
            return;
        }
    }
    if (ref != at->old) {
        entry->words[1 + at->octant] = ref;
        (void)atomicOr(&entry->marks, VXD_SVDAG_MARK_CHANGED);
    }
}

#endif
