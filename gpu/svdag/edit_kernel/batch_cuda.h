// SPDX-License-Identifier: Apache-2.0
/* What a block does in a stage. It takes batches of entries, or of pairs, and goes
 * through each batch in phases with a barrier between. Subtrees are finished in shared
 * memory:
 *
 *     copy in; expand height 4, 3; leaves; reduce height 3, 4; copy out
 *
 * In other stages a batch has one height, which is expanded or reduced. Warps take steps
 * of a phase in turn: 32 items, or four cubes with a lane for each child. All warps run
 * the same code at the same time, and one piece of code finds or inserts all leaves and
 * nodes: the kernel is larger than the instruction caches, and warps at different places
 * of it would wait for instructions.
 *
 * Which phase is next is the same for all threads of a block: it depends on counts that a
 * barrier stands behind, and on what that barrier says of failures.
 * Bytes: those of frontier_cuda.h, leaves_cuda.h and reduce_cuda.h. */
#ifndef VXD_GPU_SVDAG_EDIT_KERNEL_BATCH_CUDA_H
#define VXD_GPU_SVDAG_EDIT_KERNEL_BATCH_CUDA_H

#include "gpu/svdag/edit_kernel/expand_cuda.h"
#include "gpu/svdag/edit_kernel/leaves_cuda.h"
#include "gpu/svdag/edit_kernel/reduce_cuda.h"

/* Items of a phase, up to which all warps take a share of them. */
#define VXD_SVDAG_FEW_ITEMS 64u

/* Visits that a block counts for itself at most. */
#define VXD_SVDAG_VISITS_AT_ONCE 32768u

/* Items ----------------------------------------------------------------------------------- */

/* By all lanes of a warp: finds or inserts what lanes have made; blocks of materials
 * before the leaves that they belong to. False: the store has no capacity for some of
 * it. */
template <class Store, class Editor>
VXD_SVDAG_DEVICE bool
vxd_svdag_find_or_insert_made(struct vxd_svdag_worker<Store, Editor> *worker, int height,
                              const uint32_t *words, struct vxd_svdag_new_item *item)
{
    const bool has_blocks =
        height == VXD_SVDAG_LEAF_HEIGHT && worker->args->view.value_bits > 4;

#pragma unroll 1
    for (int number = has_blocks ? 0 : height;; number = height) {
        if (__any_sync(UINT32_MAX, item->n_words > 0)) {
            const struct vxd_svdag_lane_key lookup = {
                words, item->n_words,
                number == 0                       ? VXD_SVDAG_BLOCK
                : number == VXD_SVDAG_LEAF_HEIGHT ? VXD_SVDAG_LEAF
                                                  : VXD_SVDAG_INNER,
                &worker->block->word_pools[threadIdx.x / 32]};
            bool is_new;
            const uint32_t ref =
                Store::find_or_insert(worker->args, &lookup, &worker->spare, &is_new);
            const bool is_bad = item->n_words > 0 && ref == VXD_SVDAG_EMPTY;

            vxd_svdag_count_lookups(worker->counts, number, item->n_words, is_new);
            item->ref = item->n_words > 0 ? ref : item->ref;
            item->is_new = is_new;
            if (__any_sync(UINT32_MAX, is_bad)) {
                return false;
            }
        }
        if (number == height) {
            return true;
        }
        vxd_svdag_make_leaf_of_block(item);
    }
}

/* By all lanes of a warp: finds or inserts leaves that were edited, or nodes whose words
 * are made, of 32 items. False: the store has no capacity. */
template <class Store, class Editor>
VXD_SVDAG_DEVICE bool
vxd_svdag_insert_items(struct vxd_svdag_worker<Store, Editor> *worker,
                       const struct vxd_svdag_phase *phase, uint32_t first,
                       const struct vxd_svdag_visited<typename Editor::state> *at,
                       struct vxd_svdag_new_item *item)
{
    typedef struct vxd_svdag_entry<typename Editor::state> entry_t;
    const bool is_leaf = phase->kind == VXD_SVDAG_PHASE_LEAVES;
    const uint32_t i = first + vxd_svdag_lane();
    const bool is_there = i < phase->n;
    entry_t *entry =
        vxd_svdag_entry_at(worker->args, worker->block, phase,
                           is_leaf ? at->parent : phase->begin + (is_there ? i : 0));
    const uint32_t *words = item->words;
    bool has_capacity;

    if (!is_leaf && is_there) {
        const entry_t *from = vxd_svdag_block_entry(worker->block, phase, i);

        words = from->words;
        item->ref = entry->ref;
        if (phase->kind == VXD_SVDAG_PHASE_INSERT) {
            item->n_words = (from->marks & VXD_SVDAG_MARK_NODE) != 0
                                ? 1 + __popc(from->words[0] & 0xffu)
                                : 0;
        }
    }
    __syncwarp();
    has_capacity = vxd_svdag_find_or_insert_made(
        worker, is_leaf ? VXD_SVDAG_LEAF_HEIGHT : phase->height, words, item);
    if (is_leaf && is_there) {
        vxd_svdag_set_leaf_ref(worker->block, at, item->ref);
    } else if (is_there) {
        entry->ref = item->ref;
        if (item->is_new) {
            entry->marks |= VXD_SVDAG_MARK_NEW;
        }
    }
    __syncwarp();
    return has_capacity;
}

/* Steps ----------------------------------------------------------------------------------- */

/* Whether a lane has an item of the phase, not a child of one. */
VXD_SVDAG_DEVICE bool vxd_svdag_phase_is_by_item(enum vxd_svdag_phase_kind kind)
{
    return kind != VXD_SVDAG_PHASE_EXPAND && kind != VXD_SVDAG_PHASE_COMPOSE &&
           kind != VXD_SVDAG_PHASE_PAIRS;
}

/* Whether a step of the phase ends with finding or inserting items. */
VXD_SVDAG_DEVICE bool vxd_svdag_phase_stores(enum vxd_svdag_phase_kind kind)
{
    return kind == VXD_SVDAG_PHASE_LEAVES || kind == VXD_SVDAG_PHASE_REDUCE ||
           kind == VXD_SVDAG_PHASE_INSERT;
}

/* How many of n items a warp takes, one a lane. Of few items every warp takes a share: a
 * warp whose lanes diverge would make the others wait. */
VXD_SVDAG_DEVICE uint32_t vxd_svdag_items_of_warp(uint32_t n)
{
    const uint32_t n_warps = blockDim.x / 32;

    return n <= VXD_SVDAG_FEW_ITEMS ? (n + n_warps - 1) / n_warps : 32;
}

/* How many items a step has. Pairs that a warp finishes alone it takes one by one where
 * there are few. */
template <class Editor>
VXD_SVDAG_DEVICE uint32_t vxd_svdag_step_size(const struct vxd_svdag_phase *phase)
{
    if (vxd_svdag_phase_is_by_item(phase->kind)) {
        return vxd_svdag_items_of_warp(phase->n);
    }
    return phase->kind == VXD_SVDAG_PHASE_PAIRS && phase->is_local &&
                   phase->n < 4 * (blockDim.x / 32)
               ? 1
               : 4;
}

/* By all lanes of a warp: expands four open cubes and counts their pairs, or counts pairs
 * of the frontier. */
template <class Store, class Editor>
VXD_SVDAG_DEVICE void
vxd_svdag_expand_four(struct vxd_svdag_worker<Store, Editor> *worker,
                      const struct vxd_svdag_phase *phase, uint32_t first,
                      const struct vxd_svdag_visited<typename Editor::state> *at,
                      struct vxd_svdag_change *change)
{
    const struct vxd_svdag_kernel_args *args = worker->args;
    struct vxd_svdag_block_memory<Editor> *block = worker->block;
    struct vxd_svdag_pair_list *list = &block->warp_lists[threadIdx.x / 32].pairs;
    const struct vxd_svdag_pairs_to to = {
        phase->is_local ? NULL : vxd_svdag_next_n_pairs(args, block, phase),
        block->batches.next_pairs};
    struct vxd_svdag_pair pair = {false, 0, VXD_SVDAG_EMPTY, VXD_SVDAG_EMPTY, 0};
    uint32_t n_listed = 0;

    if (!Editor::CLASSIFIES_ALL && phase->kind == VXD_SVDAG_PHASE_EXPAND) {
        vxd_svdag_put_children(args, *worker->editor, block, phase, at, &pair);
    } else {
        n_listed = phase->n - first;
        vxd_svdag_list_pairs(args, phase->begin + first, n_listed, phase->height, list);
    }
    vxd_svdag_count_pairs(args, &to, &pair, list, n_listed, change);
}

/* By all lanes of a warp: visits children of open cubes, edits leaves, or counts
 * pairs. */
template <class Store, class Editor>
VXD_SVDAG_DEVICE void
vxd_svdag_run_children(struct vxd_svdag_worker<Store, Editor> *worker,
                       const struct vxd_svdag_phase *phase, uint32_t first,
                       struct vxd_svdag_visited<typename Editor::state> *at,
                       struct vxd_svdag_new_item *item, struct vxd_svdag_change *sum)
{
    const struct vxd_svdag_kernel_args *args = worker->args;
    struct vxd_svdag_block_memory<Editor> *block = worker->block;

    if (phase->kind != VXD_SVDAG_PHASE_PAIRS) {
        uint32_t class_words[2];

        vxd_svdag_find_child(args, block, phase, first, class_words, at);
        if (at->is_there) {
            vxd_svdag_visit(args, *worker->editor, block, phase, class_words, at);
        }
        __syncwarp();
    }
    if (phase->kind != VXD_SVDAG_PHASE_LEAVES) {
        vxd_svdag_expand_four(worker, phase, first, at, sum);
    } else if (at->is_there) {
        struct vxd_svdag_change change = {0, 0, 0, 0};
        uint32_t header;

        item->ref = at->old;
        header = vxd_svdag_edit_leaf(&args->view, *worker->editor, at, item, &change);
        vxd_svdag_record_leaf(block, at, header, &change, sum);
    }
}

/* By all lanes of a warp: a step, the items of a phase from `first` on. False: the store
 * has no capacity. */
template <class Store, class Editor>
VXD_SVDAG_DEVICE bool vxd_svdag_run_step(struct vxd_svdag_worker<Store, Editor> *worker,
                                         const struct vxd_svdag_phase *phase,
                                         uint32_t first)
{
    const struct vxd_svdag_kernel_args *args = worker->args;
    struct vxd_svdag_block_memory<Editor> *block = worker->block;
    struct vxd_svdag_change change = {0, 0, 0, 0};
    struct vxd_svdag_visited<typename Editor::state> at;
    struct vxd_svdag_new_item item;

    item.ref = VXD_SVDAG_EMPTY;
    item.n_words = 0;
    item.is_block = false;
    item.is_new = false;
    if (phase->kind == VXD_SVDAG_PHASE_REDUCE) {
        if (first + vxd_svdag_lane() < phase->n) {
            vxd_svdag_reduce_entry(args, block, phase, first + vxd_svdag_lane(),
                                   &item.n_words, &change);
        }
    } else if constexpr (Editor::CLASSIFIES_ALL) {
        if (phase->kind == VXD_SVDAG_PHASE_EXPAND_CLASSIFIED) {
            vxd_svdag_expand_classified(args, *worker->editor, block, phase, first,
                                        &change);
        } else {
            vxd_svdag_run_children(worker, phase, first, &at, &item, &change);
        }
    } else if (phase->kind == VXD_SVDAG_PHASE_COMPOSE) {
        vxd_svdag_compose(args, block, phase, first);
        return true;
    } else if (phase->kind == VXD_SVDAG_PHASE_CLASSIFY) {
        if (Editor::CLASSIFIES) {
            vxd_svdag_classify_entry(args, *worker->editor, block, phase,
                                     first + vxd_svdag_lane());
            __syncwarp();
        }
        return true;
    } else if (phase->kind != VXD_SVDAG_PHASE_INSERT) {
        vxd_svdag_run_children(worker, phase, first, &at, &item, &change);
    }
    __syncwarp();
    if (args->counts_changes && phase->kind != VXD_SVDAG_PHASE_INSERT) {
        vxd_svdag_count_change(worker->counts, &change);
    }
    if (!vxd_svdag_phase_stores(phase->kind)) {
        return true;
    }
    return vxd_svdag_insert_items(worker, phase, first, &at, &item);
}

/* Phases ---------------------------------------------------------------------------------- */

/* The first phase of entries on the way down. */
template <class Editor>
VXD_SVDAG_DEVICE enum vxd_svdag_phase_kind vxd_svdag_phase_expand(void)
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
            phase->kind = vxd_svdag_phase_expand<Editor>();
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

/* Of entries in shared memory: where those of the phase are, and how many. */
template <class Editor>
VXD_SVDAG_DEVICE void
vxd_svdag_phase_find_entries(const struct vxd_svdag_block_memory<Editor> *block,
                             struct vxd_svdag_phase *phase)
{
    phase->begin = vxd_svdag_local_begin<Editor>(phase->height);
    phase->n = phase->kind == VXD_SVDAG_PHASE_LEAVES
                   ? block->n_leaves
                   : block->n_local[phase->top - phase->height];
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

/* Batches --------------------------------------------------------------------------------- */

/* By all threads of a block: copies entries of the frontier into shared memory. */
template <class Editor>
VXD_SVDAG_DEVICE void vxd_svdag_copy_in(const struct vxd_svdag_kernel_args *args,
                                        struct vxd_svdag_block_memory<Editor> *block,
                                        uint32_t begin, uint32_t n)
{
    typedef struct vxd_svdag_entry<typename Editor::state> entry_t;
    const entry_t *entries = (const entry_t *)args->entries + begin;

    if constexpr (Editor::CLASSIFIES_ALL) {
        vxd_svdag_leaf_memo_clear(&block->leaf_memo, false);
        if (threadIdx.x < n) {
            entry_t *to = &block->entries[threadIdx.x];

            to->place = entries[threadIdx.x].place;
            to->state = entries[threadIdx.x].state;
            to->ref = entries[threadIdx.x].ref;
            to->marks = 0;
        }
    } else {
        const uint32_t n_words = sizeof(entry_t) / sizeof(uint32_t);
        const uint32_t marks = offsetof(entry_t, marks) / sizeof(uint32_t);
        const uint32_t *from = (const uint32_t *)(const void *)entries;
        uint32_t *to = (uint32_t *)(void *)block->entries;

#pragma unroll 1
        for (uint32_t i = threadIdx.x; i < n * n_words; i += blockDim.x) {
            to[i] =
                i % n_words == marks ? (i / n_words) << VXD_SVDAG_MARK_SUBTREE : from[i];
        }
    }
    if (threadIdx.x < n) {
        block->weights[threadIdx.x] =
            Editor::CLASSIFIES_ALL
                ? 1
                : vxd_svdag_weight(args->entry_weights, begin + threadIdx.x);
    }
    if (threadIdx.x < vxd_svdag_batch_sizes<Editor>::LEVELS) {
        block->n_local[threadIdx.x] = threadIdx.x == 0 ? n : 0;
    }
    if (threadIdx.x == 0) {
        block->n_leaves = 0;
    }
    __syncthreads();
}

/* By all threads of a block: copies out what its entries became; they are free after
 * that. */
template <class Editor>
VXD_SVDAG_DEVICE void
vxd_svdag_copy_out(const struct vxd_svdag_kernel_args *args,
                   const struct vxd_svdag_block_memory<Editor> *block, uint32_t begin,
                   uint32_t n)
{
    typedef struct vxd_svdag_entry<typename Editor::state> entry_t;

    if (threadIdx.x < n) {
        entry_t *to = (entry_t *)args->entries + begin + threadIdx.x;

        to->ref = block->entries[threadIdx.x].ref;
        to->marks = block->entries[threadIdx.x].marks;
        to->words[0] = block->entries[threadIdx.x].words[0];
    }
    __syncthreads();
}

/* By the scheduling thread of a block: adds the cubes that it looked at to those of the
 * edit, many at once. All blocks together leave out at most half of what an edit may look
 * at. */
VXD_SVDAG_DEVICE void vxd_svdag_count_visits(const struct vxd_svdag_kernel_args *args,
                                             struct vxd_svdag_batches *batches)
{
    const uint64_t share = args->max_visits / ((uint64_t)gridDim.x * 2);

    if (batches->n_visits > share || batches->n_visits > VXD_SVDAG_VISITS_AT_ONCE) {
        (void)vxd_svdag_atomic_add(&args->state->n_visits, batches->n_visits);
        batches->n_visits = 0;
    }
}

/* By the scheduling thread of a block: lays out the work of a stage. Batches are smaller
 * where there would be fewer of them than blocks. Returns the block's first one. */
template <class Editor>
VXD_SVDAG_DEVICE uint32_t vxd_svdag_begin_batches(const struct vxd_svdag_stage *stage,
                                                  struct vxd_svdag_batches *batches)
{
    const bool is_subtrees = stage->kind == VXD_SVDAG_STAGE_SUBTREES;
    const uint32_t n_blocks = stage->is_grid ? gridDim.x : 1;
    const uint32_t most = vxd_svdag_batch_sizes<Editor>::BATCH_ENTRIES;
    const uint32_t each = is_subtrees && stage->n_pairs / 64 > n_blocks ? 8 : 1;
    const uint32_t n_pairs = (stage->n_pairs + each - 1) / each;
    const uint32_t all = stage->n_entries + n_pairs;
    uint32_t batch_size = most;

    if (stage->is_grid) {
        batch_size = (all + n_blocks - 1) / n_blocks;
        batch_size = is_subtrees ? batch_size : (batch_size + 3) / 4 * 4;
        batch_size = batch_size > most ? most : batch_size == 0 ? 1 : batch_size;
    } else {
        batches->level_counts[(stage->height - 1) & 1] = {0, 0};
    }
    batches->batch_size = batch_size;
    batches->pairs = (stage->n_entries + batch_size - 1) / batch_size * batch_size;
    batches->pairs_each = each;
    batches->n = batches->pairs + n_pairs;
    batches->stride = n_blocks * batch_size;
    batches->next_entries = stage->entries + stage->n_entries;
    batches->next_pairs = stage->pairs + stage->n_pairs;
    return stage->is_grid ? blockIdx.x * batch_size : 0;
}

/* By the scheduling thread of a block: the batch after this one. Subtrees are handed out
 * by a counter, as some are larger than others. */
VXD_SVDAG_DEVICE uint32_t vxd_svdag_next_batch(const struct vxd_svdag_kernel_args *args,
                                               const struct vxd_svdag_stage *stage,
                                               const struct vxd_svdag_batches *batches,
                                               uint32_t first)
{
    return stage->kind != VXD_SVDAG_STAGE_SUBTREES || batches->n <= batches->stride
               ? first + batches->stride
               : batches->stride +
                     atomicAdd(&args->state->n_scheduled, batches->batch_size);
}

/* By the scheduling thread of a block: whether the block goes on with a stage, because
 * there is no fault, or to count what would be needed. The first block does not ask again
 * while it is alone: it would wait for the answer at each height. No block asks at the
 * beginning of a stage, as all asked after the last one. */
VXD_SVDAG_DEVICE bool vxd_svdag_stage_continues(const struct vxd_svdag_kernel_args *args,
                                                const struct vxd_svdag_stage *stage,
                                                const struct vxd_svdag_batches *batches,
                                                bool is_begun)
{
    const uint32_t counts = VXD_SVDAG_NO_ENTRIES | VXD_SVDAG_NO_PAIRS;
    uint32_t fault;
    bool is_over;

    if (stage->kind == VXD_SVDAG_STAGE_REDUCE) {
        return batches->is_bad == 0;
    }
    if (!stage->is_grid) {
        return true;
    }
    fault = is_begun ? vxd_svdag_load_volatile(&args->state->fault) : batches->fault;
    is_over = (is_begun ? vxd_svdag_load_volatile64(&args->state->n_visits)
                        : batches->n_visits_of_all) > args->max_visits;
    if (is_over && (fault & VXD_SVDAG_NO_ENTRIES) == 0) {
        vxd_svdag_set_fault(args, VXD_SVDAG_NO_ENTRIES);
    }
    return !is_over && (fault == 0 || (stage->kind == VXD_SVDAG_STAGE_EXPAND &&
                                       (fault & ~counts) == 0));
}

/* By the scheduling thread of a block: sets which batch is next. is_begun: the block has
 * had one of this stage. */
VXD_SVDAG_DEVICE void vxd_svdag_set_next_batch(const struct vxd_svdag_kernel_args *args,
                                               const struct vxd_svdag_stage *stage,
                                               struct vxd_svdag_batches *batches,
                                               bool is_begun, uint32_t turn,
                                               uint32_t first)
{
    batches->next[turn] =
        first < batches->n && vxd_svdag_stage_continues(args, stage, batches, is_begun)
            ? first
            : VXD_SVDAG_NO_BATCH;
}

/* The first phase of a batch. */
template <class Editor>
VXD_SVDAG_DEVICE void vxd_svdag_begin_batch(const struct vxd_svdag_stage *stage,
                                            const struct vxd_svdag_batches *batches,
                                            uint32_t first, struct vxd_svdag_phase *phase)
{
    const bool is_pairs = first >= batches->pairs;
    const uint32_t each = is_pairs ? batches->pairs_each : 1;
    const uint32_t before = is_pairs ? (first - batches->pairs) * each : first;
    const uint32_t left = (is_pairs ? stage->n_pairs : stage->n_entries) - before;

    phase->kind = is_pairs ? VXD_SVDAG_PHASE_PAIRS
                  : stage->kind != VXD_SVDAG_STAGE_REDUCE
                      ? vxd_svdag_phase_expand<Editor>()
                  : Editor::CLASSIFIES_ALL ? VXD_SVDAG_PHASE_REDUCE
                                           : VXD_SVDAG_PHASE_COMPOSE;
    phase->is_local = stage->kind == VXD_SVDAG_STAGE_SUBTREES;
    phase->is_alone = !stage->is_grid;
    phase->is_path = stage->kind == VXD_SVDAG_STAGE_EXPAND_PATH;
    phase->top = stage->height;
    phase->height = stage->height;
    phase->begin = (is_pairs ? stage->pairs : stage->entries) + before;
    phase->n = left < batches->batch_size * each ? left : batches->batch_size * each;
}

/* By the scheduling thread of a block: counts entries that are about to become nodes. */
VXD_SVDAG_DEVICE void vxd_svdag_count_reduced(const struct vxd_svdag_kernel_args *args,
                                              const struct vxd_svdag_stage *stage,
                                              const struct vxd_svdag_phase *phase)
{
    if (stage->kind == VXD_SVDAG_STAGE_REDUCE) {
        (void)atomicAdd(&args->state->n_reduced, phase->n);
    } else if (phase->kind == VXD_SVDAG_PHASE_REDUCE) {
        (void)atomicAdd(&args->state->n_local_reduced, phase->n);
    }
}

/* By all threads of a block: a batch, with a barrier behind each of its phases. In the
 * last phase the scheduling thread asks for the next batch. False: the store had no
 * capacity, and a fault is set. */
template <class Store, class Editor>
VXD_SVDAG_DEVICE bool vxd_svdag_run_batch(struct vxd_svdag_worker<Store, Editor> *worker,
                                          const struct vxd_svdag_stage *stage,
                                          uint32_t turn)
{
    struct vxd_svdag_block_memory<Editor> *block = worker->block;
    const uint32_t first = block->batches.next[turn];
    const bool is_subtrees =
        stage->kind == VXD_SVDAG_STAGE_SUBTREES && first < block->batches.pairs;
    struct vxd_svdag_phase phase;

    vxd_svdag_begin_batch<Editor>(stage, &block->batches, first, &phase);
    if (is_subtrees) {
        vxd_svdag_copy_in(worker->args, block, phase.begin, phase.n);
    }
#pragma unroll 1
    while (phase.kind != VXD_SVDAG_PHASE_END) {
        bool has_capacity = true;
        uint32_t size;
        uint32_t n;

        if (is_subtrees) {
            vxd_svdag_phase_find_entries(block, &phase);
        }
        if (phase.n == 0) {
            vxd_svdag_phase_next<Editor>(&phase);
            continue;
        }
        if (vxd_svdag_is_scheduler()) {
            if (phase.kind == VXD_SVDAG_PHASE_EXPAND ||
                phase.kind == VXD_SVDAG_PHASE_EXPAND_CLASSIFIED) {
                block->batches.n_visits += phase.n * 8;
                vxd_svdag_count_visits(worker->args, &block->batches);
            }
            if (vxd_svdag_phase_is_last(&phase)) {
                vxd_svdag_count_reduced(worker->args, stage, &phase);
                vxd_svdag_set_next_batch(
                    worker->args, stage, &block->batches, true, turn ^ 1,
                    vxd_svdag_next_batch(worker->args, stage, &block->batches, first));
            }
        }
        __syncwarp();
        size = vxd_svdag_step_size<Editor>(&phase);
        n = phase.n;
#pragma unroll 1
        for (uint32_t i = threadIdx.x / 32 * size; i < n && has_capacity;
             i += blockDim.x / 32 * size) {
            phase.n = n - i < size ? n : i + size;
            has_capacity = vxd_svdag_run_step(worker, &phase, i);
        }
        phase.n = n;
        if (__syncthreads_or(!has_capacity) != 0) {
            return false;
        }
        vxd_svdag_phase_next<Editor>(&phase);
    }
    if (is_subtrees) {
        vxd_svdag_copy_out(worker->args, block, stage->entries + first,
                           block->n_local[0]);
    }
    return true;
}

/* By all threads of a block: its batches of a stage. */
template <class Store, class Editor>
VXD_SVDAG_DEVICE void vxd_svdag_run_stage(struct vxd_svdag_worker<Store, Editor> *worker,
                                          const struct vxd_svdag_stage *stage)
{
    struct vxd_svdag_batches *batches = &worker->block->batches;
    bool has_capacity = true;

    if (vxd_svdag_is_scheduler()) {
        vxd_svdag_set_next_batch(worker->args, stage, batches, false, 0,
                                 vxd_svdag_begin_batches<Editor>(stage, batches));
    }
    __syncthreads();
#pragma unroll 1
    for (uint32_t turn = 0; has_capacity && batches->next[turn] != VXD_SVDAG_NO_BATCH;
         turn ^= 1) {
        has_capacity = vxd_svdag_run_batch(worker, stage, turn);
    }
    if (!has_capacity && vxd_svdag_is_scheduler()) {
        worker->counts->has_failed = 1;
    }
}

#endif
