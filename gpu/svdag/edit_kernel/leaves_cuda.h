// SPDX-License-Identifier: Apache-2.0
/* Leaves that are edited, a lane each: the leaf's voxels, what of it goes to the store,
 * and what its parent has to know of it. A leaf of up to 4 bits is one item. With 8 or 16
 * bits its materials are a block, an item of its own that is found or inserted before the
 * leaf.
 *
 * Bytes: the words of the leaf are read once; what it becomes stays in registers until
 * the warp finds or inserts it (batch_cuda.h). Source: SVDAG editing, section 4.3. */
#ifndef VXD_GPU_SVDAG_EDIT_KERNEL_LEAVES_CUDA_H
#define VXD_GPU_SVDAG_EDIT_KERNEL_LEAVES_CUDA_H

#include "gpu/svdag/edit_kernel/changes_cuda.h"
#include "gpu/svdag/edit_kernel/dedup_cuda.h"

/* Makes the words of a leaf, or of its block of materials, or decides that none are
 * needed. */
VXD_SVDAG_DEVICE void vxd_svdag_make_leaf(const struct vxd_svdag_view *view,
                                          const struct vxd_svdag_leaf *leaf,
                                          struct vxd_svdag_new_item *item)
{
    const int bits = view->value_bits;
    uint32_t value;

    item->set = leaf->set;
    if (leaf->set == 0) {
        item->ref = VXD_SVDAG_EMPTY;
    } else if (bits <= 4) {
        if (vxd_svdag_leaf_compose(view, leaf, item->words, &item->ref)) {
            item->n_words = vxd_svdag_leaf_words(bits, leaf->set);
        }
    } else if (!vxd_svdag_leaf_pack(view, leaf, item->words + 1, &value)) {
        item->words[0] = (uint32_t)vxd_svdag_popc(leaf->set);
        item->n_words = vxd_svdag_block_words(bits, (int)item->words[0]);
        item->is_block = true;
    } else {
        item->ref = VXD_SVDAG_UNIFORM | value;
        item->is_block = leaf->set != ~(uint64_t)0;
    }
}

/* After the block of a leaf has a reference, or is uniform: makes the words of the leaf
 * itself. */
VXD_SVDAG_DEVICE void vxd_svdag_make_leaf_of_block(struct vxd_svdag_new_item *item)
{
    item->n_words = 0;
    if (item->is_block) {
        item->words[0] = (uint32_t)item->set;
        item->words[1] = (uint32_t)(item->set >> 32);
        item->words[2] = item->ref;
        item->n_words = 3;
    }
}

/* Edits the leaf of this lane. Adds what changed to *change; returns what the header of
 * its parent has of it. */
template <class Editor>
VXD_SVDAG_DEVICE uint32_t
vxd_svdag_edit_leaf(const struct vxd_svdag_view *view, const Editor &editor,
                    const struct vxd_svdag_visited<typename Editor::state> *at,
                    struct vxd_svdag_new_item *item, struct vxd_svdag_change *change)
{
    struct vxd_svdag_leaf leaf;
    struct vxd_svdag_leaf before;
    uint16_t values[64];
    uint64_t occupied;

    vxd_svdag_leaf_split(view, at->old, values, &leaf);
    before = leaf;
    editor.leaf(view, &at->cube, &at->state, &leaf);
    if (vxd_svdag_change_add_edited(view, at->old, &before, &leaf, change)) {
        vxd_svdag_make_leaf(view, &leaf, item);
    }
    occupied = leaf.set & ~leaf.free;
    return (uint32_t)vxd_svdag_popc(occupied) << 10 |
           (occupied != 0 ? VXD_SVDAG_HAS_OCCUPIED : 0) |
           (leaf.free != 0 ? VXD_SVDAG_HAS_FREE : 0);
}

/* Keeps what became of a leaf, except for its reference: in its slot of the memo, or in
 * the header of its parent and in *sum. */
template <class Editor>
VXD_SVDAG_DEVICE void
vxd_svdag_record_leaf(struct vxd_svdag_block_memory<Editor> *block,
                      const struct vxd_svdag_visited<typename Editor::state> *at,
                      uint32_t header, const struct vxd_svdag_change *change,
                      struct vxd_svdag_change *sum)
{
    if constexpr (Editor::CLASSIFIES_ALL) {
        if (at->slot != VXD_SVDAG_NO_MEMO_SLOT) {
            block->leaf_memo.headers[at->slot] = header;
            block->leaf_memo.counts[at->slot] =
                (uint32_t)change->n_added | (uint32_t)change->n_removed << 8 |
                (uint32_t)change->n_changed << 16 | (uint32_t)change->n_freed << 24;
            return;
        }
    }
    vxd_svdag_add_times(sum, change, block->weights[at->top]);
    (void)atomicAdd(&block->entries[at->parent].words[0], header & ~((1u << 10) - 1));
    (void)atomicOr(&block->entries[at->parent].words[0], header & ((1u << 10) - 1));
}

/* Keeps the reference of a leaf, likewise. */
template <class Editor>
VXD_SVDAG_DEVICE void
vxd_svdag_set_leaf_ref(struct vxd_svdag_block_memory<Editor> *block,
                       const struct vxd_svdag_visited<typename Editor::state> *at,
                       uint32_t ref)
{
    struct vxd_svdag_entry<typename Editor::state> *entry = &block->entries[at->parent];

    if constexpr (Editor::CLASSIFIES_ALL) {
        if (at->slot != VXD_SVDAG_NO_MEMO_SLOT) {
            block->leaf_memo.refs[at->slot] = ref;
            return;
        }
    }
    if (ref != at->old) {
        entry->words[1 + at->octant] = ref;
        (void)atomicOr(&entry->marks, VXD_SVDAG_MARK_CHANGED);
    }
}

#endif
