// SPDX-License-Identifier: Apache-2.0
/* What a block of a pass (pass_cuda.h) does with some rows, in phases with a barrier between.
 * Rows of height 4 it takes down to their leaves and up again, all in its shared memory:
 *
 *     copy in; open height 4, 3; leaves; close height 3, 4; copy out
 *
 * Of rows above it opens, or closes, their height alone. Warps take steps of a phase in turn,
 * of 32 items, or of four cubes with a lane for each child; a ball's cubes are opened by a lane
 * each (told_cuda.h). All go through the same code at the same time, and what is found or
 * stored, leaves or nodes, by one piece of it: the code of a pass is larger than the caches,
 * and warps at different places of it would wait for it most of the time.
 *
 * Which phase is next is the same to all threads of the block: it depends on counts that a
 * barrier stands behind, and on what that barrier says about failures. */
#ifndef VXD_GPU_SVDAG_EDIT_KERNEL_BATCH_CUDA_H
#define VXD_GPU_SVDAG_EDIT_KERNEL_BATCH_CUDA_H

#include "gpu/svdag/edit_kernel/reduce_cuda.h"
#include "gpu/svdag/edit_kernel/expand_classified_cuda.h"

/* Of a phase, up to which all warps have a share of them. */
#define VXD_SVDAG_FEW_ITEMS 64u

/* A thread of a block. */
template <class Store, class Editor> struct vxd_svdag_worker {
    const struct vxd_svdag_kernel_args *args;
    const Editor *editor;
    struct vxd_svdag_block_counts *block_counts;
    struct vxd_svdag_block_shared<Editor> *shared;
    typename Store::spare spare;
};

/* Items ----------------------------------------------------------------------------------- */

/* By all lanes of a warp: finds or stores what lanes have made, blocks before the leaves that they
 * are of. False: there was no room for some. */
template <class Store, class Editor>
VXD_SVDAG_DEVICE bool
vxd_svdag_insert_made(struct vxd_svdag_worker<Store, Editor> *worker, int height,
                      const uint32_t *words, struct vxd_svdag_leaf_made *made)
{
    const bool has_blocks =
        height == VXD_SVDAG_LEAF_HEIGHT && worker->args->view.value_bits > 4;

#pragma unroll 1
    for (int number = has_blocks ? 0 : height;; number = height) {
        if (__any_sync(UINT32_MAX, made->n_words > 0)) {
            const struct vxd_svdag_lane_key key = {
                words, made->n_words,
                number == 0                       ? VXD_SVDAG_BLOCK
                : number == VXD_SVDAG_LEAF_HEIGHT ? VXD_SVDAG_LEAF
                                                  : VXD_SVDAG_INNER,
                &worker->shared->pools[threadIdx.x / 32]};
            bool is_new;
            const uint32_t ref =
                Store::find_or_insert(worker->args, &key, &worker->spare, &is_new);
            const bool is_bad = made->n_words > 0 && ref == VXD_SVDAG_EMPTY;

            vxd_svdag_count_items_of(worker->block_counts, number, made->n_words, is_new);
            made->ref = made->n_words > 0 ? ref : made->ref;
            made->is_new = is_new;
            if (__any_sync(UINT32_MAX, is_bad)) {
                return false;
            }
        }
        if (number == height) {
            return true;
        }
        vxd_svdag_compose_block_leaf(made);
    }
}

/* By all lanes of a warp: stores leaves that were edited, or else nodes whose words are made, of 32
 * items. False: the store has no room. */
template <class Store, class Editor>
VXD_SVDAG_DEVICE bool
vxd_svdag_run_items(struct vxd_svdag_worker<Store, Editor> *worker,
                    const struct vxd_svdag_phase *phase, uint32_t first,
                    const struct vxd_svdag_visited<typename Editor::state> *at,
                    struct vxd_svdag_leaf_made *made)
{
    typedef struct vxd_svdag_frontier_entry<typename Editor::state> entry_t;
    const bool is_leaf = phase->kind == VXD_SVDAG_PHASE_LEAVES;
    const uint32_t i = first + vxd_svdag_lane();
    const bool is_there = i < phase->n;
    entry_t *entry =
        vxd_svdag_entry_at(worker->args, worker->shared, phase,
                           is_leaf ? at->parent : phase->begin + (is_there ? i : 0));
    const uint32_t *words = made->words;
    bool has_capacity;

    if (!is_leaf && is_there) {
        const entry_t *from = vxd_svdag_local_copy(worker->shared, phase, i);

        words = from->words;
        made->ref = entry->ref;
        if (phase->kind == VXD_SVDAG_PHASE_INSERT) {
            made->n_words = (from->marks & VXD_SVDAG_MARK_NODE) != 0
                                ? 1 + __popc(from->words[0] & 0xffu)
                                : 0;
        }
    }
    __syncwarp();
    has_capacity = vxd_svdag_insert_made(
        worker, is_leaf ? VXD_SVDAG_LEAF_HEIGHT : phase->height, words, made);
    if (is_leaf && is_there) {
        vxd_svdag_put_leaf(worker->shared, at, made->ref);
    } else if (is_there) {
        entry->ref = made->ref;
        if (made->is_new) {
            entry->marks |= VXD_SVDAG_MARK_NEW;
        }
    }
    __syncwarp();
    return has_capacity;
}

/* Steps ----------------------------------------------------------------------------------- */

/* How many of n items a warp takes, one a lane. Of few all have a share: they would wait for one,
 * whose lanes go different ways. */
VXD_SVDAG_DEVICE uint32_t vxd_svdag_share(uint32_t n)
{
    const uint32_t n_warps = blockDim.x / 32;

    return n <= VXD_SVDAG_FEW_ITEMS ? (n + n_warps - 1) / n_warps : 32;
}

/* How many items a step has. Pairs below which a warp goes alone it takes one by one where there
 * are few. */
template <class Editor>
VXD_SVDAG_DEVICE uint32_t vxd_svdag_step_size(const struct vxd_svdag_phase *phase)
{
    if (vxd_svdag_phase_is_by_item(phase->kind)) {
        return vxd_svdag_share(phase->n);
    }
    return phase->kind == VXD_SVDAG_PHASE_PAIRS && phase->is_local &&
                   phase->n < 4 * (blockDim.x / 32)
               ? 1
               : 4;
}

/* By all lanes of a warp: the children of four open cubes, whose pairs are gone into, or rows of
 * pairs. */
template <class Store, class Editor>
VXD_SVDAG_DEVICE void
vxd_svdag_expand_four(struct vxd_svdag_worker<Store, Editor> *worker,
                      const struct vxd_svdag_phase *phase, uint32_t first,
                      const struct vxd_svdag_visited<typename Editor::state> *at,
                      struct vxd_svdag_change *change)
{
    const struct vxd_svdag_kernel_args *args = worker->args;
    struct vxd_svdag_block_shared<Editor> *shared = worker->shared;
    struct vxd_svdag_pair_list *list = &shared->lists[threadIdx.x / 32].pairs;
    const struct vxd_svdag_pairs_to to = {
        phase->is_local ? NULL : vxd_svdag_next_n_pairs(args, shared, phase),
        shared->batches.next_pairs};
    struct vxd_svdag_pair pair = {false, 0, VXD_SVDAG_EMPTY, VXD_SVDAG_EMPTY, 0};
    uint32_t n_listed = 0;

    if (!Editor::CLASSIFIES_ALL && phase->kind == VXD_SVDAG_PHASE_EXPAND) {
        vxd_svdag_put_children(args, *worker->editor, shared, phase, at, &pair);
    } else {
        n_listed = phase->n - first;
        vxd_svdag_list_pairs(args, phase->begin + first, n_listed, phase->height, list);
    }
    vxd_svdag_count_pairs(args, &to, &pair, list, n_listed, change);
}

/* By all lanes of a warp: goes to children of open cubes, edits leaves, or goes into pairs. */
template <class Store, class Editor>
VXD_SVDAG_DEVICE void
vxd_svdag_run_children(struct vxd_svdag_worker<Store, Editor> *worker,
                       const struct vxd_svdag_phase *phase, uint32_t first,
                       struct vxd_svdag_visited<typename Editor::state> *at,
                       struct vxd_svdag_leaf_made *made, struct vxd_svdag_change *sum)
{
    const struct vxd_svdag_kernel_args *args = worker->args;
    struct vxd_svdag_block_shared<Editor> *shared = worker->shared;

    if (phase->kind != VXD_SVDAG_PHASE_PAIRS) {
        uint32_t class_words[2];

        vxd_svdag_find_child(args, shared, phase, first, class_words, at);
        if (at->is_there) {
            vxd_svdag_visit(args, *worker->editor, shared, phase, class_words, at);
        }
        __syncwarp();
    }
    if (phase->kind != VXD_SVDAG_PHASE_LEAVES) {
        vxd_svdag_expand_four(worker, phase, first, at, sum);
    } else if (at->is_there) {
        struct vxd_svdag_change change = {0, 0, 0, 0};
        uint32_t header;

        made->ref = at->old;
        header = vxd_svdag_edit_leaf(&args->view, *worker->editor, at, made, &change);
        vxd_svdag_keep_leaf(shared, at, header, &change, sum);
    }
}

/* By all lanes of a warp: items of a phase from `first` on, 32, or four. False: the store has no
 * room. */
template <class Store, class Editor>
VXD_SVDAG_DEVICE bool vxd_svdag_run_step(struct vxd_svdag_worker<Store, Editor> *worker,
                                         const struct vxd_svdag_phase *phase,
                                         uint32_t first)
{
    const struct vxd_svdag_kernel_args *args = worker->args;
    struct vxd_svdag_block_shared<Editor> *shared = worker->shared;
    struct vxd_svdag_change change = {0, 0, 0, 0};
    struct vxd_svdag_visited<typename Editor::state> at;
    struct vxd_svdag_leaf_made made;

    made.ref = VXD_SVDAG_EMPTY;
    made.n_words = 0;
    made.is_block = false;
    made.is_new = false;
    if (phase->kind == VXD_SVDAG_PHASE_REDUCE) {
        if (first + vxd_svdag_lane() < phase->n) {
            vxd_svdag_reduce_entry(args, shared, phase, first + vxd_svdag_lane(),
                                   &made.n_words, &change);
        }
    } else if constexpr (Editor::CLASSIFIES_ALL) {
        if (phase->kind == VXD_SVDAG_PHASE_EXPAND_CLASSIFIED) {
            vxd_svdag_expand_classified(args, *worker->editor, shared, phase, first,
                                        &change);
        } else {
            vxd_svdag_run_children(worker, phase, first, &at, &made, &change);
        }
    } else if (phase->kind == VXD_SVDAG_PHASE_COMPOSE) {
        vxd_svdag_compose(args, shared, phase, first);
        return true;
    } else if (phase->kind == VXD_SVDAG_PHASE_CLASSIFY) {
        if (Editor::CLASSIFIES) {
            vxd_svdag_classify(args, *worker->editor, shared, phase,
                               first + vxd_svdag_lane());
            __syncwarp();
        }
        return true;
    } else if (phase->kind != VXD_SVDAG_PHASE_INSERT) {
        vxd_svdag_run_children(worker, phase, first, &at, &made, &change);
    }
    __syncwarp();
    if (args->counts_changes && phase->kind != VXD_SVDAG_PHASE_INSERT) {
        vxd_svdag_count_change(worker->block_counts, &change);
    }
    if (!vxd_svdag_phase_stores(phase->kind)) {
        return true;
    }
    return vxd_svdag_run_items(worker, phase, first, &at, &made);
}

/* Phases ---------------------------------------------------------------------------------- */

/* The first phase of rows on the way down. */
template <class Editor>
VXD_SVDAG_DEVICE enum vxd_svdag_phase_kind vxd_svdag_phase_down(void)
{
    return Editor::CLASSIFIES_ALL ? VXD_SVDAG_PHASE_EXPAND_CLASSIFIED
           : Editor::CLASSIFIES   ? VXD_SVDAG_PHASE_CLASSIFY
                                  : VXD_SVDAG_PHASE_EXPAND;
}

/* The phase after this one. */
template <class Editor>
VXD_SVDAG_DEVICE void vxd_svdag_phase_next(struct vxd_svdag_phase *phase)
{
    switch (phase->kind) {
    case VXD_SVDAG_PHASE_CLASSIFY:
        phase->kind = VXD_SVDAG_PHASE_EXPAND;
        return;
    case VXD_SVDAG_PHASE_EXPAND_CLASSIFIED:
    case VXD_SVDAG_PHASE_EXPAND:
        if (phase->is_local && phase->height > VXD_SVDAG_LEAF_HEIGHT + 1) {
            phase->height--;
            phase->kind = vxd_svdag_phase_down<Editor>();
            return;
        }
        phase->kind = phase->is_local ? VXD_SVDAG_PHASE_LEAVES : VXD_SVDAG_PHASE_END;
        return;
    case VXD_SVDAG_PHASE_LEAVES:
        phase->kind = VXD_SVDAG_PHASE_REDUCE;
        return;
    case VXD_SVDAG_PHASE_REDUCE:
        if (phase->height < phase->top) {
            phase->height++;
            return;
        }
        break;
    case VXD_SVDAG_PHASE_COMPOSE:
        phase->kind = VXD_SVDAG_PHASE_INSERT;
        return;
    case VXD_SVDAG_PHASE_INSERT:
    case VXD_SVDAG_PHASE_PAIRS:
    case VXD_SVDAG_PHASE_END:
        break;
    }
    phase->kind = VXD_SVDAG_PHASE_END;
}

/* Of a block's own: where the rows of the phase are, and how many. */
template <class Editor>
VXD_SVDAG_DEVICE void
vxd_svdag_phase_find_entries(const struct vxd_svdag_block_shared<Editor> *shared,
                             struct vxd_svdag_phase *phase)
{
    phase->begin = vxd_svdag_local_begin<Editor>(phase->height);
    phase->n = phase->kind == VXD_SVDAG_PHASE_LEAVES
                   ? shared->n_leaves
                   : shared->n_local[phase->top - phase->height];
}

/* By all threads of a block: rows of the pass become its own. */
template <class Editor>
VXD_SVDAG_DEVICE void vxd_svdag_copy_in(const struct vxd_svdag_kernel_args *args,
                                        struct vxd_svdag_block_shared<Editor> *shared,
                                        uint32_t begin, uint32_t n)
{
    typedef struct vxd_svdag_frontier_entry<typename Editor::state> entry_t;
    const entry_t *entries = (const entry_t *)args->entries + begin;

    if constexpr (Editor::CLASSIFIES_ALL) {
        vxd_svdag_leaf_memo_clear(&shared->memo, false);
        if (threadIdx.x < n) {
            entry_t *to = &shared->entries[threadIdx.x];

            to->place = entries[threadIdx.x].place;
            to->state = entries[threadIdx.x].state;
            to->ref = entries[threadIdx.x].ref;
            to->marks = 0;
        }
    } else {
        const uint32_t n_words = sizeof(entry_t) / sizeof(uint32_t);
        const uint32_t marks = offsetof(entry_t, marks) / sizeof(uint32_t);
        const uint32_t *from = (const uint32_t *)(const void *)entries;
        uint32_t *to = (uint32_t *)(void *)shared->entries;

#pragma unroll 1
        for (uint32_t i = threadIdx.x; i < n * n_words; i += blockDim.x) {
            to[i] =
                i % n_words == marks ? (i / n_words) << VXD_SVDAG_MARK_SUBTREE : from[i];
        }
    }
    if (threadIdx.x < n) {
        shared->weights[threadIdx.x] =
            Editor::CLASSIFIES_ALL
                ? 1
                : vxd_svdag_weight(args->entry_weights, begin + threadIdx.x);
    }
    if (threadIdx.x < vxd_svdag_sizes<Editor>::LEVELS) {
        shared->n_local[threadIdx.x] = threadIdx.x == 0 ? n : 0;
    }
    if (threadIdx.x == 0) {
        shared->n_leaves = 0;
    }
    __syncthreads();
}

/* By all threads of a block: what its own became. Then they are free. */
template <class Editor>
VXD_SVDAG_DEVICE void
vxd_svdag_copy_out(const struct vxd_svdag_kernel_args *args,
                   const struct vxd_svdag_block_shared<Editor> *shared, uint32_t begin,
                   uint32_t n)
{
    typedef struct vxd_svdag_frontier_entry<typename Editor::state> entry_t;

    if (threadIdx.x < n) {
        entry_t *to = (entry_t *)args->entries + begin + threadIdx.x;

        to->ref = shared->entries[threadIdx.x].ref;
        to->marks = shared->entries[threadIdx.x].marks;
        to->words[0] = shared->entries[threadIdx.x].words[0];
    }
    __syncthreads();
}

/* Whether no phase comes after this one. */
VXD_SVDAG_DEVICE bool vxd_svdag_phase_is_last(const struct vxd_svdag_phase *phase)
{
    return phase->kind == VXD_SVDAG_PHASE_PAIRS ||
           ((phase->kind == VXD_SVDAG_PHASE_EXPAND ||
             phase->kind == VXD_SVDAG_PHASE_EXPAND_CLASSIFIED) &&
            !phase->is_local) ||
           phase->kind == VXD_SVDAG_PHASE_INSERT ||
           (phase->kind == VXD_SVDAG_PHASE_REDUCE && phase->height == phase->top);
}

#endif
