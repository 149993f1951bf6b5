// SPDX-License-Identifier: Apache-2.0
/* The way up of a pass (batch_cuda.h): nodes are made of what the children of open cubes
 * became, of a block's own (and all of a ball's) by a lane each, of others four a warp at a
 * time with a lane for each child. Headers come from the rows, so that no child's words are
 * read. */
#ifndef VXD_GPU_SVDAG_EDIT_KERNEL_REDUCE_CUDA_H
#define VXD_GPU_SVDAG_EDIT_KERNEL_REDUCE_CUDA_H

#include "gpu/svdag/edit_kernel/edit_leaves_cuda.h"

#define VXD_SVDAG_HEADER_FLAGS ((1u << 10) - 1)

/* The header of what is in two, where masks of children are left out. */
VXD_SVDAG_DEVICE uint32_t vxd_svdag_merge_headers(uint32_t one, uint32_t other)
{
    return ((one | (other & VXD_SVDAG_HEADER_FLAGS)) & ~0xffu) +
           (other & ~VXD_SVDAG_HEADER_FLAGS);
}

/* The header of a node of this height that tells of what it has below. */
VXD_SVDAG_DEVICE uint32_t vxd_svdag_header_at(uint32_t header, int height)
{
    return height > VXD_SVDAG_COUNT_HEIGHT ? header & VXD_SVDAG_HEADER_FLAGS : header;
}

/* What a parent takes of a child that is a row, or a slot of leaves. */
struct vxd_svdag_reduced {
    uint32_t ref;
    uint32_t header;
    bool is_changed;
};

/* Of the child of a row whose word tells of one. Counts of a slot are added to two times two of 16
 * bits. */
template <class Editor>
VXD_SVDAG_DEVICE struct vxd_svdag_reduced
vxd_svdag_reduced_at(const struct vxd_svdag_kernel_args *args,
                     struct vxd_svdag_block_shared<Editor> *shared,
                     const struct vxd_svdag_phase *phase, uint32_t word,
                     uint32_t counts[2])
{
    const struct vxd_svdag_frontier_entry<typename Editor::state> *child;

    if constexpr (Editor::CLASSIFIES_ALL) {
        if (phase->is_local) {
            const struct vxd_svdag_leaf_memo *memo = &shared->memo;
            const uint32_t ref = memo->refs[word];

            counts[0] += memo->counts[word] & 0x00ff00ffu;
            counts[1] += memo->counts[word] >> 8 & 0x00ff00ffu;
            return {ref, memo->headers[word], ref != vxd_svdag_leaf_memo_old(memo, word)};
        }
    }
    child = vxd_svdag_entry_at(args, shared, phase, word);
    return {child->ref, child->words[0], (child->marks & VXD_SVDAG_MARK_CHANGED) != 0};
}

/* Makes the words of the node of row i of a phase, of which all that is below is closed, in
 * what the block keeps of it; where no node is needed, the row has what it became, and *n_words
 * is 0. Adds what changed in leaves that have slots. Loads do not wait for each other. */
template <class Editor>
VXD_SVDAG_DEVICE void
vxd_svdag_reduce_entry(const struct vxd_svdag_kernel_args *args,
                       struct vxd_svdag_block_shared<Editor> *shared,
                       const struct vxd_svdag_phase *phase, uint32_t i, int *n_words,
                       struct vxd_svdag_change *sum)
{
    struct vxd_svdag_frontier_entry<typename Editor::state> *entry =
        vxd_svdag_entry_at(args, shared, phase, phase->begin + i);
    struct vxd_svdag_frontier_entry<typename Editor::state> *to =
        vxd_svdag_local_copy(shared, phase, i);
    const uint32_t marks = entry->marks;
    struct vxd_svdag_reduced children[8];
    uint32_t counts[2] = {0, 0};
    uint32_t header = entry->words[0] & ~0xffu;
    uint32_t mask = 0;
    uint32_t differ = 0;
    bool is_changed = (marks & VXD_SVDAG_MARK_CHANGED) != 0;
    int n = 1;

#pragma unroll
    for (int octant = 0; octant < 8; octant++) {
        children[octant] = {entry->words[1 + octant], 0, false};
    }
#pragma unroll
    for (int octant = 0; octant < 8; octant++) {
        if ((marks >> octant & 1) != 0) {
            children[octant] =
                vxd_svdag_reduced_at(args, shared, phase, children[octant].ref, counts);
        }
    }
#pragma unroll
    for (int octant = 0; octant < 8; octant++) {
        const struct vxd_svdag_reduced *child = &children[octant];

        header = vxd_svdag_merge_headers(header, child->header);
        is_changed = is_changed || child->is_changed;
        differ |= child->ref ^ children[0].ref;
        mask |= (child->ref != VXD_SVDAG_EMPTY ? 1u : 0u) << octant;
        if (child->ref != VXD_SVDAG_EMPTY) {
            to->words[n++] = child->ref;
        }
    }
    header = vxd_svdag_header_at(header, phase->height) | mask;
    *n_words = 0;
    to->words[0] = header;
    entry->words[0] = header;
    entry->marks = is_changed ? VXD_SVDAG_MARK_CHANGED : 0;
    if (is_changed && differ == 0 && !vxd_svdag_is_node(children[0].ref)) {
        entry->ref = children[0].ref;
    } else if (is_changed) {
        *n_words = n;
    }
    sum->n_added += counts[0] & 0xffffu;
    sum->n_removed += counts[1] & 0xffffu;
    sum->n_changed += counts[0] >> 16;
    sum->n_freed += counts[1] >> 16;
}

/* By all lanes of a warp: makes the words of the nodes of up to four rows from `first` on, of which
 * all that is below is closed, in what the block keeps of them. Where no node is needed, the row
 * has what it became. */
template <class Editor>
VXD_SVDAG_DEVICE void vxd_svdag_compose(const struct vxd_svdag_kernel_args *args,
                                        struct vxd_svdag_block_shared<Editor> *shared,
                                        const struct vxd_svdag_phase *phase,
                                        uint32_t first)
{
    const uint32_t shift = vxd_svdag_lane() & 24;
    const uint32_t octant = vxd_svdag_lane() % 8;
    const uint32_t i = first + vxd_svdag_lane() / 8;
    const bool is_there = i < phase->n;
    struct vxd_svdag_frontier_entry<typename Editor::state> *entry =
        vxd_svdag_entry_at(args, shared, phase, phase->begin + (is_there ? i : 0));
    struct vxd_svdag_frontier_entry<typename Editor::state> *to =
        vxd_svdag_local_copy(shared, phase, is_there ? i : 0);
    uint32_t ref = VXD_SVDAG_EMPTY;
    uint32_t header =
        0; /* a row's; of the first child what the row itself was told too */
    uint32_t n_occupied;
    bool is_changed = false;
    uint32_t even;
    uint32_t mask;
    uint32_t flags;
    uint32_t changed;
    uint32_t differ;

    if (is_there) {
        const uint32_t marks = entry->marks;

        ref = entry->words[1 + octant];
        is_changed = (marks & VXD_SVDAG_MARK_CHANGED) != 0;
        if ((marks >> octant & 1) != 0) {
            const struct vxd_svdag_frontier_entry<typename Editor::state> *child =
                vxd_svdag_entry_at(args, shared, phase, ref);

            ref = child->ref;
            header = child->words[0];
            is_changed = is_changed || (child->marks & VXD_SVDAG_MARK_CHANGED) != 0;
        }
    }
    n_occupied = header >> 10;
    if (is_there && octant == 0) {
        n_occupied += entry->words[0] >> 10;
        header |= entry->words[0];
    }
#pragma unroll 1
    for (int step = 1; step < 8; step *= 2) {
        n_occupied += __shfl_xor_sync(UINT32_MAX, n_occupied, step);
    }
    even = __shfl_sync(UINT32_MAX, ref, (int)shift);
    mask = __ballot_sync(UINT32_MAX, ref != VXD_SVDAG_EMPTY) >> shift & 0xffu;
    differ = __ballot_sync(UINT32_MAX, ref != even) >> shift & 0xffu;
    changed = __ballot_sync(UINT32_MAX, is_changed) >> shift & 0xffu;
    flags =
        ((__ballot_sync(UINT32_MAX, (header & VXD_SVDAG_HAS_OCCUPIED) != 0) >> shift &
          0xffu)
             ? VXD_SVDAG_HAS_OCCUPIED
             : 0) |
        ((__ballot_sync(UINT32_MAX, (header & VXD_SVDAG_HAS_FREE) != 0) >> shift & 0xffu)
             ? VXD_SVDAG_HAS_FREE
             : 0);
    header =
        mask | flags | (phase->height <= VXD_SVDAG_COUNT_HEIGHT ? n_occupied << 10 : 0);
    /* All lanes have read what some write now. */
    __syncwarp();
    if (is_there && ref != VXD_SVDAG_EMPTY) {
        to->words[1 + __popc(mask & ((1u << octant) - 1))] = ref;
    }
    if (is_there && octant == 0) {
        const bool is_even = differ == 0 && !vxd_svdag_is_node(even);

        entry->words[0] = header;
        entry->marks = changed != 0 ? VXD_SVDAG_MARK_CHANGED : 0;
        if (changed != 0 && is_even) {
            entry->ref = even;
        }
        to->words[0] = header;
        to->marks = changed == 0 ? 0
                    : is_even    ? VXD_SVDAG_MARK_CHANGED
                                 : VXD_SVDAG_MARK_CHANGED | VXD_SVDAG_MARK_NODE;
    }
    __syncwarp();
}

#endif
