// SPDX-License-Identifier: Apache-2.0
/* Leaves that are edited, a lane each, and what of them goes to the store. */
#ifndef VXD_GPU_DAG_LEAVES_CUDA_H
#define VXD_GPU_DAG_LEAVES_CUDA_H

#include "gpu/dag/open_cuda.h"

/* A leaf that was edited, and what it becomes as far as that is known without the store. */
struct vxd_dag_leaf_made {
    uint32_t words
        [VXD_DAG_MAX_ITEM_WORDS]; /* of the item that is to be found or stored next */
    uint64_t set;
    int n_words; /* 0: none */
    bool is_block;
    uint32_t ref; /* where there is none */
};

VXD_DAG_DEVICE void vxd_dag_make_leaf(const struct vxd_dag_view *view,
                                      const struct vxd_dag_leaf *leaf,
                                      struct vxd_dag_leaf_made *made)
{
    const int bits = view->value_bits;
    uint32_t value;

    made->set = leaf->set;
    if (leaf->set == 0) {
        made->ref = VXD_DAG_EMPTY;
    } else if (bits <= 4) {
        if (vxd_dag_leaf_compose(view, leaf, made->words, &made->ref)) {
            made->n_words = vxd_dag_leaf_words(bits, leaf->set);
        }
    } else if (!vxd_dag_leaf_pack(view, leaf, made->words + 1, &value)) {
        made->words[0] = (uint32_t)vxd_dag_popc(leaf->set);
        made->n_words = vxd_dag_block_words(bits, (int)made->words[0]);
        made->is_block = true;
    } else {
        made->ref = VXD_DAG_UNIFORM | value;
        made->is_block = leaf->set != ~(uint64_t)0;
    }
}

/* Once its block has a reference, or is uniform: the leaf's words. */
VXD_DAG_DEVICE void vxd_dag_join_block(struct vxd_dag_leaf_made *made)
{
    made->n_words = 0;
    if (made->is_block) {
        made->words[0] = (uint32_t)made->set;
        made->words[1] = (uint32_t)(made->set >> 32);
        made->words[2] = made->ref;
        made->n_words = 3;
    }
}

/* Edits the leaf of this lane, a child of a block's own row, and adds what changed. */
template <class Editor>
VXD_DAG_DEVICE void
vxd_dag_edit_leaf(const struct vxd_dag_view *view, const Editor &editor,
                  const struct vxd_dag_visited<typename Editor::state> *at,
                  struct vxd_dag_row<typename Editor::state> *row, uint64_t weight,
                  struct vxd_dag_leaf_made *made, struct vxd_dag_change *sum)
{
    struct vxd_dag_change change = {0, 0, 0, 0};
    struct vxd_dag_leaf leaf;
    struct vxd_dag_leaf before;
    uint16_t values[64];
    uint64_t occupied;

    vxd_dag_leaf_split(view, at->old, values, &leaf);
    before = leaf;
    editor.leaf(view, &at->cube, &at->state, &leaf);
    if (vxd_dag_change_add_edited(view, at->old, &before, &leaf, &change)) {
        vxd_dag_make_leaf(view, &leaf, made);
    }
    vxd_dag_add_times(sum, &change, weight);
    occupied = leaf.set & ~leaf.free;
    (void)atomicAdd(&row->words[0], (uint32_t)vxd_dag_popc(occupied) << 10);
    (void)atomicOr(&row->words[0], (occupied != 0 ? VXD_DAG_HAS_OCCUPIED : 0) |
                                       (leaf.free != 0 ? VXD_DAG_HAS_FREE : 0));
}

#endif
