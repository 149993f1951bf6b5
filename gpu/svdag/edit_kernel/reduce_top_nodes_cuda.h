// SPDX-License-Identifier: Apache-2.0
/* Rows as the first block has them while it climbs (climb_cuda.h), eight lanes each, a lane for a
 * child; the nodes they become, which of a height are equal, and where those go that are new. */
#ifndef VXD_GPU_SVDAG_EDIT_KERNEL_REDUCE_TOP_NODES_CUDA_H
#define VXD_GPU_SVDAG_EDIT_KERNEL_REDUCE_TOP_NODES_CUDA_H

#include "gpu/svdag/edit_kernel/batch_cuda.h"
#include "gpu/svdag/store/store_cuda.h"

/* A row, as eight lanes have it. */
struct vxd_svdag_reduce_top_entry {
    uint32_t word; /* of the lane's child */
    uint32_t header;
    uint32_t marks;
    uint32_t ref;
};

/* What becomes of it, the same to all eight. */
struct vxd_svdag_reduce_top_node {
    uint32_t ref; /* where it is known */
    uint32_t header;
    int n_words;     /* of a node that is to be found or stored; else 0 */
    bool is_changed; /* something below is not what it was */
    bool is_sure;    /* the node was not there before */
};

/* The rows of a height: where they are in the pass, and how many. */
struct vxd_svdag_reduce_top_entries {
    int height;
    uint32_t begin;
    uint32_t n;
};

VXD_SVDAG_DEVICE uint32_t vxd_svdag_reduce_top_number(void)
{
    return threadIdx.x / 8;
}

template <class Editor>
VXD_SVDAG_DEVICE struct vxd_svdag_reduce_top_entry
vxd_svdag_reduce_top_load(const struct vxd_svdag_kernel_args *args,
                          const struct vxd_svdag_reduce_top_entries *entries)
{
    typedef struct vxd_svdag_frontier_entry<typename Editor::state> entry_t;
    const entry_t *entry =
        (const entry_t *)args->entries + entries->begin + vxd_svdag_reduce_top_number();

    if (vxd_svdag_reduce_top_number() >= entries->n) {
        return {VXD_SVDAG_EMPTY, 0, 0, VXD_SVDAG_EMPTY};
    }
    return {entry->words[1 + vxd_svdag_8lanes_lane()], entry->words[0], entry->marks,
            entry->ref};
}

/* What the lane's child became: of the height below, which is in shared memory but for the
 * first one (is_first). */
template <class Editor>
VXD_SVDAG_DEVICE struct vxd_svdag_reduce_top_entry
vxd_svdag_reduce_top_child(const struct vxd_svdag_kernel_args *args,
                           const struct vxd_svdag_reduce_top *reduce_top,
                           const struct vxd_svdag_reduce_top_entries *entries,
                           const struct vxd_svdag_reduce_top_entry *entry, bool is_first)
{
    typedef struct vxd_svdag_frontier_entry<typename Editor::state> entry_t;
    const bool is_entry = (entry->marks >> vxd_svdag_8lanes_lane() & 1) != 0;

    if (is_entry && is_first) {
        const entry_t *child = (const entry_t *)args->entries + entry->word;

        return {0, child->words[0], child->marks, child->ref};
    }
    if (is_entry) {
        const uint32_t i = entry->word - (entries->begin + entries->n);

        return {0, reduce_top->headers[i], reduce_top->marks[i], reduce_top->refs[i]};
    }
    return {0, 0, 0, entry->word};
}

/* By all lanes of a warp: what a row becomes, as far as its children tell; words of a node go to
 * shared memory. */
VXD_SVDAG_DEVICE struct vxd_svdag_reduce_top_node
vxd_svdag_reduce_top_compose(struct vxd_svdag_reduce_top *reduce_top, int height,
                             const struct vxd_svdag_reduce_top_entry *entry,
                             const struct vxd_svdag_reduce_top_entry *child)
{
    const uint32_t lane = vxd_svdag_8lanes_lane();
    const uint32_t even = vxd_svdag_8lanes_get(child->ref, 0);
    const uint32_t mask = vxd_svdag_8lanes_ballot(child->ref != VXD_SVDAG_EMPTY);
    const bool is_even =
        vxd_svdag_8lanes_ballot(child->ref != even) == 0 && !vxd_svdag_is_node(even);
    const bool is_changed = vxd_svdag_8lanes_ballot(((child->marks | entry->marks) &
                                                     VXD_SVDAG_MARK_CHANGED) != 0) != 0;
    const bool is_above_new =
        vxd_svdag_8lanes_ballot((child->marks & VXD_SVDAG_MARK_NEW) != 0) != 0;
    uint32_t header =
        vxd_svdag_merge_headers(lane == 0 ? entry->header : 0, child->header);
    struct vxd_svdag_reduce_top_node node;

#pragma unroll
    for (int step = 1; step < 8; step *= 2) {
        header =
            vxd_svdag_merge_headers(header, __shfl_xor_sync(UINT32_MAX, header, step));
    }
    node.header = vxd_svdag_header_at(header, height) | mask;
    node.ref = is_changed ? even : entry->ref;
    node.n_words = is_changed && !is_even ? 1 + __popc(mask) : 0;
    node.is_changed = is_changed;
    node.is_sure = node.n_words > 0 && is_above_new;
    if (node.n_words > 0) {
        uint32_t *words = reduce_top->words[vxd_svdag_reduce_top_number()];

        if (child->ref != VXD_SVDAG_EMPTY) {
            words[1 + __popc(mask & ((1u << lane) - 1))] = child->ref;
        }
        if (lane == 0) {
            words[0] = node.header;
        }
    }
    __syncwarp();
    return node;
}

/* By all lanes of warps whose rows' nodes are all in shared memory: the first of the rows before
 * this one that are to be stored too and have an equal node; else this one. */
VXD_SVDAG_DEVICE uint32_t
vxd_svdag_reduce_top_duplicate(const struct vxd_svdag_reduce_top *reduce_top,
                               const struct vxd_svdag_8lanes_key *at, bool wants)
{
    const uint32_t i = vxd_svdag_reduce_top_number();
    uint32_t first = i;

#pragma unroll 1
    for (uint32_t begin = 0; begin < VXD_SVDAG_FEW_ENTRIES; begin += 8) {
        const uint32_t other = begin + vxd_svdag_8lanes_lane();
        const bool is_duplicate =
            wants && other < i && reduce_top->n_words[other] == (uint32_t)at->n_words &&
            reduce_top->hashes[other] == at->hash &&
            vxd_svdag_words_equal(reduce_top->words[other], at->words, at->n_words);
        const uint32_t duplicates = vxd_svdag_8lanes_ballot(is_duplicate);

        if (duplicates != 0 && first == i) {
            first = begin + (uint32_t)__ffs((int)duplicates) - 1;
        }
    }
    return first;
}

/* What a climb takes, in one word: words, at most ten of each row's, and from this bit on items. */
#define VXD_SVDAG_REDUCE_TOP_ITEMS 20

VXD_SVDAG_DEVICE uint32_t vxd_svdag_reduce_top_words(uint32_t taken)
{
    return taken & ((1u << VXD_SVDAG_REDUCE_TOP_ITEMS) - 1);
}

/* By all lanes of a warp: words and items that it takes, at *first; they lie in one chunk. False:
 * there is no room, a fault is raised. */
VXD_SVDAG_DEVICE bool
vxd_svdag_reduce_top_reserve(const struct vxd_svdag_kernel_args *args,
                             struct vxd_svdag_reduce_top *reduce_top, uint32_t n_words,
                             uint32_t n_items, uint32_t *first)
{
    uint32_t taken;
    uint32_t fault;
    uint64_t begin;

    do {
        taken = 0;
        if (vxd_svdag_lane() == 0) {
            taken = atomicAdd(&reduce_top->n_taken,
                              n_words + (n_items << VXD_SVDAG_REDUCE_TOP_ITEMS));
        }
        taken = __shfl_sync(UINT32_MAX, taken, 0);
        begin = reduce_top->next + vxd_svdag_reduce_top_words(taken);
    } while (begin >> VXD_SVDAG_CHUNK_BITS !=
             (begin + n_words - 1) >> VXD_SVDAG_CHUNK_BITS);
    fault = (taken >> VXD_SVDAG_REDUCE_TOP_ITEMS) + n_items > reduce_top->n_items_left
                ? VXD_SVDAG_NO_SLOTS
                : 0;
    fault |= begin + n_words > args->capacity_words ? VXD_SVDAG_NO_WORDS : 0;
    if (fault != 0) {
        vxd_svdag_set_fault(args, fault);
    }
    *first = (uint32_t)begin;
    return fault == 0;
}

/* By all lanes of a warp: addresses for nodes that are to be stored (takes), and their words
 * there. False: there is no room. */
VXD_SVDAG_DEVICE bool vxd_svdag_reduce_top_place(const struct vxd_svdag_kernel_args *args,
                                                 struct vxd_svdag_reduce_top *reduce_top,
                                                 const struct vxd_svdag_8lanes_key *at,
                                                 bool takes, uint32_t *ref)
{
    const uint32_t own = takes ? (uint32_t)at->n_words : 0;
    const uint32_t number = threadIdx.x % 32 / 8;
    uint32_t n_words = 0; /* of the warp, */
    uint32_t before = 0;  /* and of rows before this one */
    uint32_t n_items = 0;
    uint32_t first;

#pragma unroll
    for (uint32_t k = 0; k < 4; k++) {
        const uint32_t other = __shfl_sync(UINT32_MAX, own, (int)k * 8);

        before += k < number ? other : 0;
        n_words += other;
        n_items += other > 0;
    }
    if (n_words == 0) {
        return true;
    }
    if (!vxd_svdag_reduce_top_reserve(args, reduce_top, n_words, n_items, &first)) {
        return false;
    }
    if (takes) {
        uint32_t *to;

        *ref = first + before;
        to = vxd_svdag_words_to(args, *ref);
        for (uint32_t i = vxd_svdag_8lanes_lane(); i < own; i += 8) {
            to[i] = at->words[i];
        }
    }
    __syncwarp();
    return true;
}

#endif
