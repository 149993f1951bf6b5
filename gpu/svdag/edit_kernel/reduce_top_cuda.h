// SPDX-License-Identifier: Apache-2.0
/* The end of the way up of a pass, where no height has many rows: the first block alone, eight lanes a
 * row. What a height became stays in shared memory for the next; rows are loaded one height ahead.
 *
 * A row above a node that was not there before becomes one that was not there either: it takes an
 * address, and the next height goes on; such nodes enter the index all at once after the last
 * height. Of others that have to be stored a node of a height above may have the same words, so
 * they enter before that is looked for. Equal ones of a height are found by comparing them. */
#ifndef VXD_GPU_SVDAG_EDIT_KERNEL_REDUCE_TOP_CUDA_H
#define VXD_GPU_SVDAG_EDIT_KERNEL_REDUCE_TOP_CUDA_H

#include "gpu/svdag/edit_kernel/reduce_top_nodes_cuda.h"
#include "gpu/svdag/edit_kernel/stage_cuda.h"

/* By all lanes of a warp, after a barrier: the node of a row that is stored but not in the index;
 * *ref is where. */
template <class Editor>
VXD_SVDAG_DEVICE void
vxd_svdag_reduce_top_stored(const struct vxd_svdag_kernel_args *args,
                            struct vxd_svdag_reduce_top *reduce_top, uint32_t entry,
                            bool is_there, struct vxd_svdag_8lanes_key *at, uint32_t *ref)
{
    typedef struct vxd_svdag_frontier_entry<typename Editor::state> entry_t;
    const entry_t *from = (const entry_t *)args->entries + (is_there ? entry : 0);
    const bool is_stored = is_there && (from->marks & VXD_SVDAG_MARK_STORED) != 0;
    uint32_t *words = reduce_top->words[vxd_svdag_reduce_top_number()];
    int n_words = 0;

    *ref = is_stored ? from->ref : (uint32_t)VXD_SVDAG_EMPTY;
    if (is_stored) {
        const uint32_t *stored = vxd_svdag_words_to(args, *ref);

        n_words = 1 + __popc(__ldcg(stored) & 0xffu);
        for (int i = (int)vxd_svdag_8lanes_lane(); i < n_words; i += 8) {
            words[i] = __ldcg(&stored[i]);
        }
    }
    __syncwarp();
    *at = vxd_svdag_8lanes_key_of(words, n_words, is_stored, is_stored);
}

/* By all lanes of a warp, after a search for it: it enters the index. False: not yet. */
template <class Editor>
VXD_SVDAG_DEVICE bool vxd_svdag_reduce_top_enter(const struct vxd_svdag_kernel_args *args,
                                                 uint32_t entry,
                                                 const struct vxd_svdag_8lanes_key *at,
                                                 uint32_t ref, bool *has_capacity)
{
    typedef struct vxd_svdag_frontier_entry<typename Editor::state> entry_t;
    const bool enters = ref != VXD_SVDAG_EMPTY;
    const bool is_done = vxd_svdag_8lanes_enter(args, at, ref, enters, has_capacity);

    if (enters && is_done && vxd_svdag_8lanes_lane() == 0) {
        ((entry_t *)args->entries)[entry].marks &= ~VXD_SVDAG_MARK_STORED;
    }
    return is_done;
}

/* By all that climb: the block, or its first warp alone; a barrier. Whether one of them has this. */
VXD_SVDAG_DEVICE bool vxd_svdag_reduce_top_any(bool is_block, bool has)
{
    bool any;

    if (is_block) {
        return __syncthreads_or(has) != 0;
    }
    any = __any_sync(UINT32_MAX, has);
    __syncwarp();
    return any;
}

/* By the lanes of a row, whose node has so many words (0: it needs none) and may be new. */
VXD_SVDAG_DEVICE void
vxd_svdag_reduce_top_count(struct vxd_svdag_block_counts *block_counts,
                           struct vxd_svdag_reduce_top *reduce_top, int height,
                           int n_words, bool is_new)
{
    if (n_words > 0 && vxd_svdag_8lanes_lane() == 0) {
        (void)atomicAdd(&block_counts->n_lookups[height], 1u);
    }
    if (is_new && vxd_svdag_8lanes_lane() == 0) {
        (void)atomicAdd(&block_counts->n_new[height], 1u);
        (void)atomicAdd(&reduce_top->n_new_words, (uint32_t)n_words);
    }
}

/* By all that climb, a barrier before and behind: what a row became, to the height above and the
 * pass. */
template <class Editor>
VXD_SVDAG_DEVICE void vxd_svdag_reduce_top_put(
    const struct vxd_svdag_kernel_args *args, struct vxd_svdag_reduce_top *reduce_top,
    const struct vxd_svdag_reduce_top_entries *entries,
    const struct vxd_svdag_reduce_top_node *node, uint32_t ref, uint32_t marks)
{
    typedef struct vxd_svdag_frontier_entry<typename Editor::state> entry_t;
    const uint32_t i = vxd_svdag_reduce_top_number();
    entry_t *entry = (entry_t *)args->entries + entries->begin + i;

    if (i < entries->n && vxd_svdag_8lanes_lane() == 0) {
        reduce_top->refs[i] = ref;
        reduce_top->headers[i] = node->header;
        reduce_top->marks[i] = marks & ~VXD_SVDAG_MARK_STORED;
        entry->ref = ref;
        entry->marks = marks;
    }
}

/* By all that climb: what the rows of a height become, as far as their children tell, and what
 * is to be looked for. */
template <class Editor>
VXD_SVDAG_DEVICE struct vxd_svdag_reduce_top_node
vxd_svdag_reduce_top_seek(const struct vxd_svdag_kernel_args *args,
                          struct vxd_svdag_reduce_top *reduce_top,
                          const struct vxd_svdag_reduce_top_entries *entries,
                          const struct vxd_svdag_reduce_top_entry *entry, bool is_first,
                          struct vxd_svdag_8lanes_key *at)
{
    const struct vxd_svdag_reduce_top_entry child =
        vxd_svdag_reduce_top_child<Editor>(args, reduce_top, entries, entry, is_first);
    const struct vxd_svdag_reduce_top_node node =
        vxd_svdag_reduce_top_compose(reduce_top, entries->height, entry, &child);
    const bool is_one = entries->n <= 1;

    *at = vxd_svdag_8lanes_key_of(reduce_top->words[vxd_svdag_reduce_top_number()],
                                  node.n_words,
                                  node.n_words > 0 && (!node.is_sure || !is_one),
                                  node.n_words > 0 && !node.is_sure);
    return node;
}

/* By all that climb, after the search: what the rows of a height become. *is_missing: the node
 * of one has to enter the index now. False: there is no room. */
template <class Editor>
VXD_SVDAG_DEVICE bool vxd_svdag_reduce_top_height(
    const struct vxd_svdag_kernel_args *args, struct vxd_svdag_block_counts *block_counts,
    struct vxd_svdag_reduce_top *reduce_top,
    const struct vxd_svdag_reduce_top_entries *entries,
    const struct vxd_svdag_reduce_top_node *node, const struct vxd_svdag_8lanes_key *at,
    bool is_block, bool *is_missing)
{
    const uint32_t i = vxd_svdag_reduce_top_number();
    const bool is_one = entries->n <= 1;
    const bool wants = node->n_words > 0 && at->ref == VXD_SVDAG_EMPTY;
    uint32_t ref = at->ref != VXD_SVDAG_EMPTY ? at->ref : node->ref;
    uint32_t duplicate = i;
    uint32_t marks;
    bool has_capacity;

    if (!is_one) {
        if (vxd_svdag_8lanes_lane() == 0) {
            reduce_top->hashes[i] = at->hash;
            reduce_top->n_words[i] = wants ? (uint32_t)node->n_words : 0;
        }
        (void)vxd_svdag_reduce_top_any(is_block, false);
        duplicate = vxd_svdag_reduce_top_duplicate(reduce_top, at, wants);
    }
    has_capacity =
        vxd_svdag_reduce_top_place(args, reduce_top, at, wants && duplicate == i, &ref);
    marks = (node->is_changed ? VXD_SVDAG_MARK_CHANGED : 0) |
            (wants ? VXD_SVDAG_MARK_NEW : 0) |
            (wants && duplicate == i ? VXD_SVDAG_MARK_STORED : 0);
    vxd_svdag_reduce_top_put<Editor>(args, reduce_top, entries, node, ref, marks);
    vxd_svdag_reduce_top_count(block_counts, reduce_top, entries->height, node->n_words,
                               wants && duplicate == i);
    if (vxd_svdag_reduce_top_any(is_block, !has_capacity)) {
        return false;
    }
    if (!is_one) {
        if (duplicate != i) {
            vxd_svdag_reduce_top_put<Editor>(args, reduce_top, entries, node,
                                             reduce_top->refs[duplicate], marks);
        }
        (void)vxd_svdag_reduce_top_any(is_block, false);
    }
    *is_missing = vxd_svdag_reduce_top_any(is_block, wants && !node->is_sure);
    return true;
}

/* By one thread: what there is room for. */
VXD_SVDAG_DEVICE void vxd_svdag_reduce_top_begin(const struct vxd_svdag_kernel_args *args,
                                                 struct vxd_svdag_reduce_top *reduce_top)
{
    const uint64_t taken = vxd_svdag_load_volatile64(&args->state->n_taken);
    const uint64_t n_slots = (uint64_t)args->index.n_buckets * VXD_SVDAG_INDEX_SLOTS;
    const uint64_t n_most = vxd_svdag_index_most(n_slots);
    const uint64_t n_items = args->state->n_items + vxd_svdag_taken_items(taken);

    reduce_top->next = args->store->next + vxd_svdag_taken_words(taken);
    reduce_top->n_items_left = n_items < n_most ? n_most - n_items : 0;
    reduce_top->n_taken = 0;
    reduce_top->n_new_words = 0;
    reduce_top->has_failed = 0;
}

/* By one thread: what was taken. */
VXD_SVDAG_DEVICE void
vxd_svdag_reduce_top_end(const struct vxd_svdag_kernel_args *args,
                         struct vxd_svdag_block_counts *block_counts,
                         const struct vxd_svdag_reduce_top *reduce_top, uint32_t n_all)
{
    args->state->n_taken += vxd_svdag_reduce_top_words(reduce_top->n_taken) +
                            ((uint64_t)(reduce_top->n_taken >> VXD_SVDAG_REDUCE_TOP_ITEMS)
                             << VXD_SVDAG_TAKEN_ITEMS);
    block_counts->n_new_words += reduce_top->n_new_words;
    args->state->n_reduced += n_all;
}

/* What a turn looks for: nodes of a height, or such as are to enter the index. */
struct vxd_svdag_reduce_top_round {
    bool is_block; /* else the first warp is alone */
    bool enters;
    uint32_t entry; /* the first one that enters, */
    uint32_t end;   /* and that behind the last one */
};

/* The turn after this one: what is missing enters before the height above is looked for, and all
 * that is stored at the end. False: there is none. */
VXD_SVDAG_DEVICE bool
vxd_svdag_reduce_top_next_round(const struct vxd_svdag_reduce_top_entries *entries,
                                uint32_t n_all, bool is_root, bool is_missing,
                                bool is_done, struct vxd_svdag_reduce_top_round *round)
{
    if (round->enters) {
        round->entry += is_done ? VXD_SVDAG_FEW_ENTRIES : 0;
        round->enters = round->entry < round->end;
        return round->enters || !is_root;
    }
    round->enters = is_root || is_missing;
    round->entry = is_root ? 0 : entries->begin;
    round->end = is_root ? n_all : entries->begin + entries->n;
    return true;
}

/* By all lanes of a warp: the height above. */
VXD_SVDAG_DEVICE struct vxd_svdag_reduce_top_entries
vxd_svdag_reduce_top_above(const struct vxd_svdag_reduce_top_entries *entries,
                           const struct vxd_svdag_stage *stage)
{
    const uint32_t n = __shfl_sync(UINT32_MAX, stage->n_reduced, entries->height + 1);

    return {entries->height + 1, entries->begin - n, n};
}

/* By all that climb: one turn. False: there is no room. */
template <class Store, class Editor>
VXD_SVDAG_DEVICE bool vxd_svdag_reduce_top_run_round(
    struct vxd_svdag_worker<Store, Editor> *worker, const struct vxd_svdag_stage *stage,
    const struct vxd_svdag_reduce_top_round *round,
    struct vxd_svdag_reduce_top_entries *entries,
    struct vxd_svdag_reduce_top_entry *entry, bool *is_missing, bool *is_done)
{
    const struct vxd_svdag_kernel_args *args = worker->args;
    struct vxd_svdag_reduce_top *reduce_top = &worker->shared->reduce_top;
    const uint32_t entering = round->entry + vxd_svdag_reduce_top_number();
    struct vxd_svdag_reduce_top_node node = {VXD_SVDAG_EMPTY, 0, 0, false, false};
    struct vxd_svdag_8lanes_key at;
    uint32_t ref = VXD_SVDAG_EMPTY;
    bool has_capacity = true;

    if (round->enters) {
        vxd_svdag_reduce_top_stored<Editor>(args, reduce_top, entering,
                                            entering < round->end, &at, &ref);
    } else {
        struct vxd_svdag_reduce_top_entries above;

        *entries = vxd_svdag_reduce_top_above(entries, stage);
        above = vxd_svdag_reduce_top_above(entries, stage);
        node = vxd_svdag_reduce_top_seek<Editor>(args, reduce_top, entries, entry,
                                                 entries->height == stage->height, &at);
        *entry = vxd_svdag_reduce_top_load<Editor>(args, &above);
    }
    vxd_svdag_8lanes_search(args, &at);
    *is_missing = false;
    *is_done = true;
    if (!round->enters) {
        return vxd_svdag_reduce_top_height<Editor>(args, worker->block_counts, reduce_top,
                                                   entries, &node, &at, round->is_block,
                                                   is_missing);
    }
    *is_done = !vxd_svdag_reduce_top_any(
        round->is_block,
        !vxd_svdag_reduce_top_enter<Editor>(args, entering, &at, ref, &has_capacity));
    return !vxd_svdag_reduce_top_any(round->is_block, !has_capacity);
}

/* By all lanes of a warp: whether each of the first n_rows rows has one child that is a row. */
template <class Editor>
VXD_SVDAG_DEVICE bool
vxd_svdag_reduce_top_is_chain(const struct vxd_svdag_kernel_args *args, uint32_t n_all)
{
    typedef struct vxd_svdag_frontier_entry<typename Editor::state> entry_t;
    const entry_t *entry = (const entry_t *)args->entries + vxd_svdag_lane();

    return __all_sync(UINT32_MAX, vxd_svdag_lane() >= n_all ||
                                      __popc(entry->marks & VXD_SVDAG_MARK_ENTRIES) == 1);
}

/* By the first warp, alone: all heights above one whose only row has a node that is new, where
 * each has one row with one child that is a row: their nodes are new, too. A lane takes a row;
 * what one has below it all above have. False: there is no room. */
template <class Editor>
VXD_SVDAG_DEVICE bool
vxd_svdag_reduce_top_chain(const struct vxd_svdag_kernel_args *args,
                           struct vxd_svdag_block_counts *block_counts,
                           struct vxd_svdag_reduce_top *reduce_top, uint32_t n_all)
{
    typedef struct vxd_svdag_frontier_entry<typename Editor::state> entry_t;
    const uint32_t lane = vxd_svdag_lane();
    const bool is_there = lane < n_all;
    entry_t *entry = (entry_t *)args->entries + (is_there ? lane : 0);
    const uint32_t marks = entry->marks & VXD_SVDAG_MARK_ENTRIES;
    const int height = args->view.depth - (int)lane;
    uint32_t header = is_there        ? entry->words[0]
                      : lane == n_all ? reduce_top->headers[0]
                                      : 0;
    uint32_t words[8];
    uint32_t mask = 0;
    uint32_t before;
    uint32_t total;
    uint32_t first;
    uint32_t child;

#pragma unroll
    for (int i = 0; i < 8; i++) {
        words[i] = entry->words[1 + i];
        mask |= words[i] != VXD_SVDAG_EMPTY ? 1u << i : 0;
    }
    before = vxd_svdag_sum_before(is_there ? 1 + (uint32_t)__popc(mask) : 0, &total);
    if (!vxd_svdag_reduce_top_reserve(args, reduce_top, total, n_all, &first)) {
        return false;
    }
#pragma unroll 1
    for (int step = 1; step < 32; step *= 2) {
        const uint32_t lower = __shfl_down_sync(UINT32_MAX, header, step);

        header = lane + (uint32_t)step < 32 ? vxd_svdag_merge_headers(header, lower)
                                            : header & ~0xffu;
    }
    child = __shfl_down_sync(UINT32_MAX, first + before, 1);
    child = lane + 1 == n_all ? reduce_top->refs[0] : child;
    if (is_there) {
        uint32_t *to = vxd_svdag_words_to(args, first + before);

        *to++ = vxd_svdag_header_at(header, height) | mask;
#pragma unroll
        for (int i = 0; i < 8; i++) {
            if (words[i] != VXD_SVDAG_EMPTY) {
                *to++ = (marks >> i & 1) != 0 ? child : words[i];
            }
        }
        entry->ref = first + before;
        entry->marks =
            VXD_SVDAG_MARK_CHANGED | VXD_SVDAG_MARK_NEW | VXD_SVDAG_MARK_STORED;
        block_counts->n_lookups[height]++;
        block_counts->n_new[height]++;
    }
    if (lane == 0) {
        reduce_top->n_new_words += total;
    }
    __syncwarp();
    return true;
}

/* By all threads of the first block, alone: the stage that closes what is left, from its height on
 * up to the root. From where on all heights have up to four rows the first warp goes on alone
 * (above a new node of one row, all at once), and the others help again when all that is stored
 * enters. */
template <class Store, class Editor>
VXD_SVDAG_DEVICE void
vxd_svdag_reduce_top_heights(struct vxd_svdag_worker<Store, Editor> *worker,
                             const struct vxd_svdag_stage *stage)
{
    const struct vxd_svdag_kernel_args *args = worker->args;
    struct vxd_svdag_reduce_top *reduce_top = &worker->shared->reduce_top;
    const uint32_t n_all = stage->entries + stage->n_entries;
    const uint32_t many = __ballot_sync(UINT32_MAX, stage->n_reduced > 4);
    const uint32_t several = __ballot_sync(UINT32_MAX, stage->n_reduced > 1);
    struct vxd_svdag_reduce_top_entries entries = {stage->height - 1, n_all, 0};
    struct vxd_svdag_reduce_top_entries first = {stage->height, stage->entries,
                                                 stage->n_entries};
    struct vxd_svdag_reduce_top_round round = {true, false, 0, 0};
    struct vxd_svdag_reduce_top_entry entry;
    bool goes_on = true;

    if (threadIdx.x == 0) {
        vxd_svdag_reduce_top_begin(args, reduce_top);
    }
    __syncthreads();
    if (worker->shared->batches.is_bad != 0) {
        return; /* rows may not even be there */
    }
    entry = vxd_svdag_reduce_top_load<Editor>(args, &first);
#pragma unroll 1
    while (goes_on) {
        bool is_missing = false;
        bool is_done = true;
        bool has_capacity;

        if (!round.enters) {
            round.is_block = many >> (entries.height + 1) != 0;
        }
        if (round.is_block || threadIdx.x < 32) {
            has_capacity = vxd_svdag_reduce_top_run_round(worker, stage, &round, &entries,
                                                          &entry, &is_missing, &is_done);
            if (has_capacity && !round.enters && entries.height < args->view.depth &&
                entries.n == 1 && several >> entries.height == 0 &&
                (reduce_top->marks[0] & VXD_SVDAG_MARK_NEW) != 0 &&
                vxd_svdag_reduce_top_is_chain<Editor>(args, entries.begin)) {
                has_capacity = vxd_svdag_reduce_top_chain<Editor>(
                    args, worker->block_counts, reduce_top, entries.begin);
                entries = {args->view.depth, 0, 1};
            }
            if (!has_capacity && threadIdx.x == 0) {
                reduce_top->has_failed = 1;
            }
        } else {
            entries.height = args->view.depth;
            has_capacity = true;
        }
        goes_on = has_capacity && vxd_svdag_reduce_top_next_round(
                                      &entries, n_all, entries.height == args->view.depth,
                                      is_missing, is_done, &round);
        if (!round.is_block &&
            (!goes_on || (round.enters && entries.height == args->view.depth))) {
            __syncthreads(); /* the first warp is through */
            goes_on = reduce_top->has_failed == 0;
            round.is_block = true;
        }
    }
    if (threadIdx.x == 0) {
        vxd_svdag_reduce_top_end(args, worker->block_counts, reduce_top,
                                 n_all - entries.begin);
    }
}

#endif
