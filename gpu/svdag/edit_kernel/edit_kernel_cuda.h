// SPDX-License-Identifier: Apache-2.0
/* A traversal of a tree with an editor: a cooperative kernel, in stages with barriers.
 *
 * EXPAND_PATH  the first block: the top of the tree, where an editor knows it at once
 * EXPAND       height by height; the first block alone as long as entries are few
 * DEDUP        children that duplicate another one take its entry
 * HAND_OVER    the first block says how far it came
 * SUBTREES     blocks: from entries of height 4 (of a ball 3) down to leaves and up again
 * REDUCE       the heights above, by the grid where entries are many, then by block 0
 *
 * Rules: which barriers a thread comes to depends only on counts that a barrier stands
 * behind. Entries are written before a barrier, and read by others after it. Many find or
 * insert at once, and no warp waits for another beyond that (store_cuda.h). After a fault
 * blocks leave out what they have not begun; no node is made of a child without a
 * reference, so what is stored is whole and is found when the edit is repeated. Templates
 * over the store and the editor, for .cu files. Source: SVDAG editing, 4.3. */
#ifndef VXD_GPU_SVDAG_EDIT_KERNEL_EDIT_KERNEL_CUDA_H
#define VXD_GPU_SVDAG_EDIT_KERNEL_EDIT_KERNEL_CUDA_H

#include "gpu/core/core_cuda.h"
#include "gpu/svdag/edit_kernel/batch_cuda.h"
#include "gpu/svdag/edit_kernel/changes_cuda.h"
#include "gpu/svdag/edit_kernel/dedup_cuda.h"
#include "gpu/svdag/edit_kernel/editors_cuda.h"
#include "gpu/svdag/edit_kernel/expand_cuda.h"
#include "gpu/svdag/edit_kernel/reduce_cuda.h"

/* Stages ---------------------------------------------------------------------------------- */

/* How many of the entries that a height wants fit into the frontier. */
VXD_SVDAG_DEVICE uint32_t vxd_svdag_entries_that_fit(uint64_t n_wanted, uint32_t begin,
                                                     uint32_t capacity)
{
    return n_wanted < capacity - begin ? (uint32_t)n_wanted : capacity - begin;
}

/* Counts the entries of a height, as the first block found them alone, or (`alone` is
 * NULL) as the edit has them. */
VXD_SVDAG_DEVICE void vxd_svdag_count_entries(const struct vxd_svdag_kernel_args *args,
                                              const struct vxd_svdag_level_counts *alone,
                                              struct vxd_svdag_stage *stage)
{
    const struct vxd_svdag_kernel_state *state = args->state;

    stage->n_entries = vxd_svdag_entries_that_fit(
        alone != NULL ? alone[stage->height & 1].n_entries
                      : vxd_svdag_load_volatile64(&state->n_entries[stage->height]),
        stage->entries, args->entries_capacity);
    stage->n_pairs = vxd_svdag_entries_that_fit(
        alone != NULL ? alone[stage->height & 1].n_pairs
                      : vxd_svdag_load_volatile64(&state->n_pairs[stage->height]),
        stage->pairs, args->pairs_capacity);
}

/* The stage of the root. */
VXD_SVDAG_DEVICE void vxd_svdag_stage_top(const struct vxd_svdag_kernel_args *args,
                                          struct vxd_svdag_stage *stage)
{
    stage->height = args->view.depth;
    stage->entries = 0;
    stage->pairs = 0;
    vxd_svdag_count_entries(args, NULL, stage);
}

/* To the next height, after the barrier behind the one that was expanded. */
VXD_SVDAG_DEVICE void vxd_svdag_stage_down(const struct vxd_svdag_kernel_args *args,
                                           const struct vxd_svdag_level_counts *alone,
                                           struct vxd_svdag_stage *stage)
{
    stage->entries += stage->n_entries;
    stage->pairs += stage->n_pairs;
    stage->height--;
    vxd_svdag_count_entries(args, alone, stage);
}

/* By one thread of the first block: says where the grid goes on. */
VXD_SVDAG_DEVICE void vxd_svdag_hand_over(const struct vxd_svdag_kernel_args *args,
                                          const struct vxd_svdag_stage *stage)
{
    args->state->handover = {(uint32_t)stage->height, stage->entries, stage->n_entries,
                             stage->pairs, stage->n_pairs};
}

/* By all lanes of a warp, after the subtrees or a height that was reduced: the height
 * above. The grid takes heights with many entries and all below them. */
VXD_SVDAG_DEVICE void vxd_svdag_stage_up(const struct vxd_svdag_kernel_args *args,
                                         const struct vxd_svdag_batches *batches,
                                         struct vxd_svdag_stage *stage)
{
    const int depth = args->view.depth;

    if (stage->kind == VXD_SVDAG_STAGE_SUBTREES) {
        stage->n_cubes_at = vxd_svdag_lane() < VXD_SVDAG_N_HEIGHTS
                                ? batches->n_cubes_at[vxd_svdag_lane()]
                                : 0;
        stage->many =
            __ballot_sync(UINT32_MAX, stage->n_cubes_at > VXD_SVDAG_FEW_ENTRIES);
    }
    stage->kind = VXD_SVDAG_STAGE_REDUCE;
    stage->height++;
    stage->is_grid = stage->many >> stage->height != 0;
    if (stage->height > depth || (!stage->is_grid && !vxd_svdag_is_first_block())) {
        stage->kind = VXD_SVDAG_STAGE_END;
        return;
    }
    /* These counts are right where there was no fault; else nothing is reduced. */
    stage->n_entries = __shfl_sync(UINT32_MAX, stage->n_cubes_at, stage->height);
    stage->entries -= stage->n_entries;
    stage->n_pairs = 0;
}

/* After the top was expanded at once: the height below it. */
VXD_SVDAG_DEVICE void vxd_svdag_stage_after_top(const struct vxd_svdag_top *expanded_top,
                                                struct vxd_svdag_stage *stage)
{
    stage->kind = VXD_SVDAG_STAGE_EXPAND_PATH;
    stage->height = expanded_top->height;
    stage->entries = expanded_top->n_expanded;
    stage->n_entries = expanded_top->n_entries;
    stage->n_pairs = expanded_top->n_pairs;
}

/* By all threads of a block, after a stage of the grid: fetches what others found, one
 * request a block for each word, as all blocks ask for the same ones. That is which
 * entries the next stage has, and whether there was a fault. */
VXD_SVDAG_DEVICE void vxd_svdag_fetch_counts(const struct vxd_svdag_kernel_args *args,
                                             const struct vxd_svdag_stage *stage,
                                             struct vxd_svdag_batches *batches)
{
    const struct vxd_svdag_kernel_state *state = args->state;
    const uint32_t n_handover = sizeof state->handover / sizeof(uint32_t);
    const uint32_t lane = threadIdx.x;
    const int child_height = stage->height - 1;

    if (lane == 31) {
        batches->fault = vxd_svdag_load_volatile(&state->fault);
        batches->is_bad |= batches->fault != 0;
    } else if (lane == 30) {
        batches->n_visits_of_all = vxd_svdag_load_volatile64(&state->n_visits);
    } else if (stage->kind == VXD_SVDAG_STAGE_HAND_OVER && lane < n_handover) {
        (&batches->handover.height)[lane] =
            vxd_svdag_load_volatile(&state->handover.height + lane);
    } else if (stage->kind == VXD_SVDAG_STAGE_SUBTREES && lane < VXD_SVDAG_N_HEIGHTS) {
        batches->n_cubes_at[lane] =
            (uint32_t)vxd_svdag_load_volatile64(&state->n_entries[lane]);
    } else if (stage->kind <= VXD_SVDAG_STAGE_DEDUP && lane == 0) {
        batches->level_counts[child_height & 1].n_entries =
            vxd_svdag_load_volatile64(&state->n_entries[child_height]);
    } else if (stage->kind <= VXD_SVDAG_STAGE_DEDUP && lane == 1) {
        batches->level_counts[child_height & 1].n_pairs =
            vxd_svdag_load_volatile64(&state->n_pairs[child_height]);
    }
    __syncthreads();
}

/* The next stage of a block, after the barrier behind this one. */
VXD_SVDAG_DEVICE void vxd_svdag_stage_next(const struct vxd_svdag_kernel_args *args,
                                           const struct vxd_svdag_batches *batches,
                                           struct vxd_svdag_stage *stage)
{
    bool is_few;

    switch (stage->kind) {
    case VXD_SVDAG_STAGE_EXPAND_PATH:
        break; /* vxd_svdag_stage_after_top has set what comes next */
    case VXD_SVDAG_STAGE_EXPAND:
        if (args->dedup.n > 0) {
            stage->kind = VXD_SVDAG_STAGE_DEDUP;
            return;
        }
        vxd_svdag_stage_down(args, batches->level_counts, stage);
        break;
    case VXD_SVDAG_STAGE_DEDUP:
        vxd_svdag_stage_down(args, batches->level_counts, stage);
        break;
    case VXD_SVDAG_STAGE_HAND_OVER:
        stage->height = (int)batches->handover.height;
        stage->entries = batches->handover.entries;
        stage->n_entries = batches->handover.n_entries;
        stage->pairs = batches->handover.pairs;
        stage->n_pairs = batches->handover.n_pairs;
        break;
    case VXD_SVDAG_STAGE_SUBTREES:
    case VXD_SVDAG_STAGE_REDUCE:
        vxd_svdag_stage_up(args, batches, stage);
        return;
    case VXD_SVDAG_STAGE_END:
        stage->kind = VXD_SVDAG_STAGE_END;
        return;
    }
    is_few = stage->n_entries <= VXD_SVDAG_FEW_ENTRIES &&
             stage->n_pairs <= VXD_SVDAG_FEW_ENTRIES;
    stage->kind = stage->height > stage->subtree_height ? VXD_SVDAG_STAGE_EXPAND
                                                        : VXD_SVDAG_STAGE_SUBTREES;
    if (!stage->is_grid && (stage->height == stage->subtree_height || !is_few)) {
        stage->kind = VXD_SVDAG_STAGE_HAND_OVER;
        stage->is_grid = true;
        if (threadIdx.x == 0) {
            vxd_svdag_hand_over(args, stage);
        }
    }
}

/* Under which name the time of a stage is counted. */
VXD_SVDAG_DEVICE enum vxd_svdag_edit_stage
vxd_svdag_stage_timed(const struct vxd_svdag_stage *stage)
{
    switch (stage->kind) {
    case VXD_SVDAG_STAGE_SUBTREES:
        return VXD_SVDAG_EDIT_SUBTREES;
    case VXD_SVDAG_STAGE_REDUCE:
        return stage->is_grid ? VXD_SVDAG_REDUCE_BY_GRID : VXD_SVDAG_REDUCE_BY_BLOCK;
    case VXD_SVDAG_STAGE_EXPAND_PATH:
    case VXD_SVDAG_STAGE_EXPAND:
    case VXD_SVDAG_STAGE_DEDUP:
    case VXD_SVDAG_STAGE_HAND_OVER:
    case VXD_SVDAG_STAGE_END:
        break;
    }
    return stage->is_grid ? VXD_SVDAG_EXPAND_BY_GRID : VXD_SVDAG_EXPAND_BY_BLOCK;
}

/* By all threads of a block, after a barrier: adds the time since *begin to that of a
 * stage. */
VXD_SVDAG_DEVICE void vxd_svdag_add_time(struct vxd_svdag_block_counts *counts,
                                         enum vxd_svdag_edit_stage stage,
                                         long long *begin)
{
    const long long end = clock64();

    if (threadIdx.x == 0) {
        counts->cycles[stage] += (uint64_t)(end - *begin);
    }
    *begin = end;
}

/* Begin and end --------------------------------------------------------------------------- */

/* By one thread after all others: what an edit with a fault would need, as far as it
 * came. */
template <class Store>
static __device__ void vxd_svdag_report_needs(const struct vxd_svdag_kernel_args *args,
                                              int subtree_height, uint32_t fault)
{
    const struct vxd_svdag_kernel_state *state = args->state;
    struct vxd_svdag_needs *needs = &args->progress->needs;
    const uint64_t n_visits = vxd_svdag_load_volatile64(&state->n_visits);
    uint64_t n_entries = 0;
    uint64_t n_pairs = 0;

    for (int i = 0; i < VXD_SVDAG_N_HEIGHTS; i++) {
        n_entries += vxd_svdag_load_volatile64(&state->n_entries[i]);
        n_pairs += vxd_svdag_load_volatile64(&state->n_pairs[i]);
    }
    needs->n_entries = (fault & VXD_SVDAG_NO_ENTRIES) == 0 ? 0
                       : n_visits > args->max_visits       ? n_visits
                                                           : n_entries;
    needs->n_pairs = (fault & VXD_SVDAG_NO_PAIRS) != 0 ? n_pairs : 0;
    Store::report_needs(args, fault, vxd_svdag_load_volatile(&state->n_local_reduced),
                        vxd_svdag_load_volatile64(&state->n_entries[subtree_height]),
                        n_entries -
                            vxd_svdag_load_volatile64(&state->n_entries[subtree_height]) -
                            vxd_svdag_load_volatile(&state->n_reduced));
}

/* By one thread after all others: the edit's root, or its fault. */
template <class Store, class Editor>
static __device__ void vxd_svdag_end_edit(const struct vxd_svdag_kernel_args *args)
{
    typedef struct vxd_svdag_entry<typename Editor::state> entry_t;
    struct vxd_svdag_progress *progress = args->progress;
    const uint32_t fault = vxd_svdag_load_volatile(&args->state->fault);

    if (fault != 0) {
        progress->fault = fault;
        vxd_svdag_report_needs<Store>(args, vxd_svdag_batch_sizes<Editor>::SUBTREE_HEIGHT,
                                      fault);
    } else {
        progress->root = ((const entry_t *)args->entries)[0].ref;
    }
    Store::end(args);
}

/* By one thread: counts the items of the store before the edit. */
static __device__ void vxd_svdag_count_items(const struct vxd_svdag_kernel_args *args)
{
    args->state->n_items = args->store->n_items[VXD_SVDAG_LEAF] +
                           args->store->n_items[VXD_SVDAG_INNER] +
                           args->store->n_items[VXD_SVDAG_BLOCK];
}

/* By the first block: its first stage, after it expanded the top of an edit that
 * classifies all cubes. */
template <class Editor>
VXD_SVDAG_DEVICE void
vxd_svdag_begin_after_top(const struct vxd_svdag_kernel_args *args, const Editor &editor,
                          struct vxd_svdag_block_counts *counts,
                          struct vxd_svdag_block_memory<Editor> *block,
                          struct vxd_svdag_stage *stage)
{
    if (vxd_svdag_is_scheduler()) {
        vxd_svdag_count_items(args);
    }
    vxd_svdag_expand_top(args, editor, counts, block);
    __syncthreads();
    stage->is_grid = false;
    vxd_svdag_stage_after_top(&block->expanded_top, stage);
    stage->n_pairs = vxd_svdag_entries_that_fit(stage->n_pairs, 0, args->pairs_capacity);
    vxd_svdag_stage_next(args, &block->batches, stage);
}

/* By the first block: its first stage with another editor, which begins with a path or
 * with the root. */
template <class Editor>
VXD_SVDAG_DEVICE void
vxd_svdag_begin_at_root(const struct vxd_svdag_kernel_args *args, const Editor &editor,
                        struct vxd_svdag_block_memory<Editor> *block,
                        struct vxd_svdag_stage *stage)
{
    if (vxd_svdag_is_scheduler()) {
        vxd_svdag_count_items(args);
    }
    if (threadIdx.x == 0) {
        if constexpr (Editor::HAS_BOUNDS) {
            struct vxd_svdag_cube end;

            (void)vxd_svdag_path_end(editor, args->view.depth, &end);
            block->expanded_top = vxd_svdag_put_path(args, editor, &end);
        } else {
            vxd_svdag_put_root(args, editor);
            block->expanded_top = {0, args->view.depth, 1, 0};
        }
    }
    __syncthreads();
    vxd_svdag_stage_top(args, stage);
    if (stage->height > stage->subtree_height) {
        stage->kind = VXD_SVDAG_STAGE_EXPAND;
        stage->is_grid = false;
    } else if (threadIdx.x == 0) {
        vxd_svdag_hand_over(args, stage);
    }
    if (block->expanded_top.n_expanded > 0) {
        stage->kind = VXD_SVDAG_STAGE_EXPAND_PATH;
        stage->n_entries = block->expanded_top.n_expanded;
    }
}

/* Whether the first block takes this stage, and all above it, by itself. */
template <class Store>
VXD_SVDAG_DEVICE bool vxd_svdag_is_reduce_top(const struct vxd_svdag_stage *stage)
{
    return Store::RESERVES && stage->kind == VXD_SVDAG_STAGE_REDUCE && !stage->is_grid;
}

/* By all threads of a block, after the barrier behind a stage: the next one. What the
 * first block found alone it also counts for the others. */
template <class Store, class Editor>
VXD_SVDAG_DEVICE void
vxd_svdag_to_next_stage(struct vxd_svdag_worker<Store, Editor> *worker,
                        struct vxd_svdag_stage *stage)
{
    const struct vxd_svdag_kernel_args *args = worker->args;
    const struct vxd_svdag_level_counts *level_counts =
        worker->block->batches.level_counts;

    if (stage->kind == VXD_SVDAG_STAGE_EXPAND_PATH) {
        vxd_svdag_stage_after_top(&worker->block->expanded_top, stage);
    }
    if (!stage->is_grid && stage->kind == VXD_SVDAG_STAGE_EXPAND && threadIdx.x == 0) {
        const int child_height = stage->height - 1;

        args->state->n_entries[child_height] = level_counts[child_height & 1].n_entries;
        args->state->n_pairs[child_height] = level_counts[child_height & 1].n_pairs;
    }
    if (vxd_svdag_is_reduce_top<Store>(stage)) {
        stage->kind = VXD_SVDAG_STAGE_END;
    } else {
        vxd_svdag_stage_next(args, &worker->block->batches, stage);
    }
}

/* The kernel ------------------------------------------------------------------------------ */

/* Bytes of shared memory of a block. */
template <class Editor> constexpr size_t vxd_svdag_shared_bytes(void)
{
    return sizeof(struct vxd_svdag_block_counts) +
           sizeof(struct vxd_svdag_block_memory<Editor>);
}

/* Blocks that a multiprocessor with 227 KiB of shared memory has space for; at most
 * VXD_SVDAG_MAX_BLOCKS_PER_SM. */
template <class Editor> constexpr int vxd_svdag_blocks_per_multiprocessor(void)
{
    return (227 << 10) / (vxd_svdag_shared_bytes<Editor>() + 1024) <
                   VXD_SVDAG_MAX_BLOCKS_PER_SM
               ? (int)((227 << 10) / (vxd_svdag_shared_bytes<Editor>() + 1024))
               : VXD_SVDAG_MAX_BLOCKS_PER_SM;
}

/* By all threads of a block: what they work with, and what its memory has at first. */
template <class Store, class Editor>
VXD_SVDAG_DEVICE void
vxd_svdag_begin_worker(const struct vxd_svdag_kernel_args *args, const Editor &editor,
                       struct vxd_svdag_worker<Store, Editor> *worker)
{
    extern __shared__ uint4 vxd_svdag_shared[];

    worker->args = args;
    worker->editor = &editor;
    worker->counts = (struct vxd_svdag_block_counts *)(void *)vxd_svdag_shared;
    worker->block =
        (struct vxd_svdag_block_memory<Editor> *)((char *)vxd_svdag_shared +
                                                  sizeof(struct vxd_svdag_block_counts));
    worker->spare = Store::no_spare();
    vxd_svdag_pool_clear(&worker->block->word_pools[threadIdx.x / 32]);
    if (vxd_svdag_is_scheduler()) {
        worker->block->batches.n_visits = 0;
        worker->block->batches.is_bad = 0;
    }
    vxd_svdag_block_counts_clear(worker->counts);
    if constexpr (Editor::CLASSIFIES_ALL) {
        vxd_svdag_leaf_memo_clear(&worker->block->leaf_memo, true);
    }
}

/* By all threads of a block: a stage, up to the barrier behind it. */
template <class Store, class Editor>
VXD_SVDAG_DEVICE void
vxd_svdag_run_any_stage(struct vxd_svdag_worker<Store, Editor> *worker,
                        const struct vxd_svdag_stage *stage)
{
    typedef struct vxd_svdag_entry<typename Editor::state> entry_t;
    const struct vxd_svdag_kernel_args *args = worker->args;

    if (stage->kind == VXD_SVDAG_STAGE_DEDUP) {
        /* After a fault some entries are missing. */
        if (!vxd_svdag_has_fault(args)) {
            vxd_svdag_dedup_entries(
                args, (entry_t *)args->entries, stage->entries, stage->n_entries,
                threadIdx.x + (stage->is_grid ? blockIdx.x * blockDim.x : 0),
                blockDim.x * (stage->is_grid ? gridDim.x : 1));
        }
    } else if (vxd_svdag_is_reduce_top<Store>(stage)) {
        if constexpr (Store::RESERVES) {
            vxd_svdag_reduce_top(worker, stage);
        }
    } else if (stage->kind != VXD_SVDAG_STAGE_HAND_OVER) {
        vxd_svdag_run_stage(worker, stage);
    }
    if (stage->is_grid) {
        cooperative_groups::this_grid().sync();
        vxd_svdag_fetch_counts(args, stage, &worker->block->batches);
    } else {
        __syncthreads();
        if (vxd_svdag_is_scheduler()) {
            worker->block->batches.is_bad |= worker->counts->has_failed;
        }
    }
}

/* The whole edit, by all threads of a cooperative grid. */
template <class Store, class Editor>
static __device__ __forceinline__ void
vxd_svdag_run_edit(const struct vxd_svdag_kernel_args *args, const Editor &editor)
{
    struct vxd_svdag_worker<Store, Editor> worker;
    struct vxd_svdag_stage stage = {};
    long long begin = clock64();

    /* A fault of an earlier kernel of the edit; this one sets it only after a barrier. */
    if (vxd_svdag_load_volatile(&args->progress->fault) != 0) {
        return;
    }
    stage.kind = VXD_SVDAG_STAGE_HAND_OVER;
    stage.is_grid = true;
    stage.subtree_height = vxd_svdag_batch_sizes<Editor>::SUBTREE_HEIGHT;
    vxd_svdag_begin_worker(args, editor, &worker);
    if (vxd_svdag_is_first_block()) {
        if constexpr (Editor::CLASSIFIES_ALL) {
            vxd_svdag_begin_after_top(args, editor, worker.counts, worker.block, &stage);
            vxd_svdag_add_time(worker.counts, VXD_SVDAG_EXPAND_BY_BLOCK, &begin);
        } else {
            vxd_svdag_begin_at_root(args, editor, worker.block, &stage);
        }
    }
    while (stage.kind != VXD_SVDAG_STAGE_END) {
        vxd_svdag_run_any_stage(&worker, &stage);
        if (vxd_svdag_is_first_block()) {
            vxd_svdag_add_time(worker.counts, vxd_svdag_stage_timed(&stage), &begin);
        }
        vxd_svdag_to_next_stage(&worker, &stage);
    }
    vxd_svdag_block_counts_add(args, worker.counts, args->counts_changes);
    if (vxd_svdag_is_first_block() && threadIdx.x == 0) {
        for (int i = 0; i < VXD_SVDAG_N_STAGES; i++) {
            args->progress->stage_cycles[i] += worker.counts->cycles[i];
        }
        vxd_svdag_end_edit<Store, Editor>(args);
    }
}

template <class Store, class Editor>
static __global__ void __launch_bounds__(VXD_SVDAG_BLOCK_THREADS,
                                         vxd_svdag_blocks_per_multiprocessor<Editor>())
    edit_kernel(const __grid_constant__ struct vxd_svdag_kernel_args args,
                const __grid_constant__ Editor editor)
{
    vxd_svdag_run_edit<Store>(&args, editor);
}

/* What an edit of several traversals changed ------------------------------------------------ */

/* The height of pairs from which warps go on alone. */
#define VXD_SVDAG_CHANGE_HEIGHT 4

/* By all lanes of a warp: its share of the pairs of a height. At the last height they are
 * handed out by a counter, as some pairs have more below them than others. */
VXD_SVDAG_DEVICE void vxd_svdag_change_stage(const struct vxd_svdag_kernel_args *args,
                                             struct vxd_svdag_block_counts *counts,
                                             struct vxd_svdag_pair_list *list,
                                             const struct vxd_svdag_stage *stage)
{
    const bool is_subtrees = stage->kind == VXD_SVDAG_STAGE_SUBTREES;
    const uint32_t batch_size = is_subtrees ? 1 : 4;
    const uint32_t n_warps = blockDim.x / 32 * gridDim.x;
    const struct vxd_svdag_pairs_to to = {
        is_subtrees ? NULL : &args->state->n_pairs[stage->height - 1],
        stage->pairs + stage->n_pairs};
    /* Where pairs are few, each goes to a warp of another block. */
    uint32_t first = (threadIdx.x / 32 * gridDim.x + blockIdx.x) * batch_size;

    while (first < stage->n_pairs) {
        const uint32_t left = stage->n_pairs - first;
        const uint32_t n = left < batch_size ? left : batch_size;
        struct vxd_svdag_change change = {0, 0, 0, 0};
        struct vxd_svdag_pair pair = {false, 0, VXD_SVDAG_EMPTY, VXD_SVDAG_EMPTY, 0};

        vxd_svdag_list_pairs(args, stage->pairs + first, n, stage->height, list);
        vxd_svdag_count_pairs(args, &to, &pair, list, n, &change);
        vxd_svdag_count_change(counts, &change);
        if (is_subtrees) {
            if (vxd_svdag_lane() == 0) {
                first = atomicAdd(&args->state->n_scheduled, 1u);
            }
            first = n_warps + __shfl_sync(UINT32_MAX, first, 0);
        } else {
            first += n_warps * batch_size;
        }
    }
}

/* Counts what changed from the edit's first root to its last, by all threads of a
 * cooperative grid: pairs alone are expanded. */
static __device__ __forceinline__ void
vxd_svdag_run_change(const struct vxd_svdag_kernel_args *args)
{
    __shared__ struct vxd_svdag_block_counts counts;
    __shared__ struct vxd_svdag_pair_list lists[VXD_SVDAG_BLOCK_THREADS / 32];
    const bool is_first = vxd_svdag_is_first_block() && threadIdx.x == 0;
    struct vxd_svdag_progress *progress = args->progress;
    struct vxd_svdag_stage stage = {};

    if (vxd_svdag_load_volatile(&progress->fault) != 0) {
        return;
    }
    stage.kind = VXD_SVDAG_STAGE_EXPAND;
    stage.is_grid = true;
    stage.subtree_height = VXD_SVDAG_CHANGE_HEIGHT;
    vxd_svdag_block_counts_clear(&counts);
    if (is_first) {
        args->pairs[0] = (uint64_t)progress->first_root << 32 | progress->root;
        if (args->pair_weights != NULL) {
            args->pair_weights[0] = 1;
        }
        args->state->n_pairs[args->view.depth] = 1;
    }
    cooperative_groups::this_grid().sync();
    vxd_svdag_stage_top(args, &stage);
    for (; stage.kind != VXD_SVDAG_STAGE_END;) {
        stage.kind = stage.height > stage.subtree_height ? VXD_SVDAG_STAGE_EXPAND
                                                         : VXD_SVDAG_STAGE_SUBTREES;
        vxd_svdag_change_stage(args, &counts, &lists[threadIdx.x / 32], &stage);
        cooperative_groups::this_grid().sync();
        if (stage.kind == VXD_SVDAG_STAGE_SUBTREES) {
            stage.kind = VXD_SVDAG_STAGE_END;
        } else {
            vxd_svdag_stage_down(args, NULL, &stage);
        }
    }
    vxd_svdag_block_counts_add(args, &counts, true);
    if (is_first && vxd_svdag_has_fault(args)) {
        progress->fault = vxd_svdag_load_volatile(&args->state->fault);
        for (int i = 0; i < VXD_SVDAG_N_HEIGHTS; i++) {
            progress->needs.n_pairs +=
                vxd_svdag_load_volatile64(&args->state->n_pairs[i]);
        }
    }
}

/* Reads nodes as the store of this translation unit keeps them; the store itself is not
 * used. */
template <class Store>
static __global__ void __launch_bounds__(VXD_SVDAG_BLOCK_THREADS,
                                         VXD_SVDAG_MAX_BLOCKS_PER_SM)
    change_kernel(const __grid_constant__ struct vxd_svdag_kernel_args args)
{
    vxd_svdag_run_change(&args);
}

/* Launches -------------------------------------------------------------------------------- */

/* A kernel, and how many of its blocks a multiprocessor runs at once. That is asked for
 * once, as the answer takes as long as a launch. */
struct vxd_svdag_kernel {
    const void *function;
    size_t shared_bytes; /* dynamic */
    const char *name;
    /* 0 at first; then the device that ran it last << 8 | blocks of a multiprocessor +
     * 1. */
    uint32_t fits;
};

/* Blocks of the kernel that a multiprocessor runs at once. Several threads may ask. */
static inline enum vxd_status vxd_svdag_kernel_fits(struct vxd_queue *queue,
                                                    struct vxd_svdag_kernel *kernel,
                                                    int *out, struct vxd_err *err)
{
    const uint32_t device = (uint32_t)queue->context->device << 8;
    const uint32_t known = __atomic_load_n(&kernel->fits, __ATOMIC_ACQUIRE);
    enum vxd_status status = VXD_OK;

    if (known != 0 && (known & ~0xffu) == device) {
        *out = (int)(known & 0xffu) - 1;
        return VXD_OK;
    }
    VXD_TRY(VXD_CUDA(queue->context,
                     cudaFuncSetAttribute(kernel->function,
                                          cudaFuncAttributeMaxDynamicSharedMemorySize,
                                          (int)kernel->shared_bytes),
                     err));
    VXD_TRY(VXD_CUDA(
        queue->context,
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(
            out, kernel->function, VXD_SVDAG_BLOCK_THREADS, kernel->shared_bytes),
        err));
    __atomic_store_n(&kernel->fits, device | (uint32_t)(*out + 1), __ATOMIC_RELEASE);
out:
    return status;
}

/* Launches a kernel with an edit, and with a second argument where it has one. */
static inline enum vxd_status
vxd_svdag_launch_kernel(struct vxd_queue *queue, struct vxd_svdag_kernel *kernel,
                        const struct vxd_svdag_kernel_args *args, const void *editor,
                        struct vxd_err *err)
{
    /* Neither is written through these. */
    void *parameters[2] = {(void *)args, (void *)editor};
    int n_blocks = 0;
    enum vxd_status status = VXD_OK;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    VXD_TRY(vxd_svdag_kernel_fits(queue, kernel, &n_blocks, err));
    if (n_blocks < 1) {
        status = vxd_fail(err, VXD_INTERNAL, NULL, "%s does not fit on the device",
                          kernel->name);
        goto out;
    }
    n_blocks *= queue->context->info.n_multiprocessors;
    VXD_TRY(vxd_cuda_status(
        queue->context,
        cudaLaunchCooperativeKernel(kernel->function, dim3((unsigned)n_blocks),
                                    dim3(VXD_SVDAG_BLOCK_THREADS), parameters,
                                    kernel->shared_bytes, (cudaStream_t)queue->stream),
        kernel->name, err));
out:
    return status;
}

/* The editor of a ball. */
static inline struct vxd_svdag_ball_editor_cuda
vxd_svdag_ball_of(const struct vxd_svdag_view *view, const struct vxd_svdag_op *op)
{
    const struct vxd_svdag_shapes_run run = {NULL, 1, view->value_bits > 1,
                                             view->free_value, 1};

    return {op->shape, op->action, vxd_svdag_shapes_apply_even(&run, op, VXD_SVDAG_EMPTY),
            (uint16_t)op->value, run.has_materials};
}

/* The members of struct vxd_svdag_edit_kernels, for a store. */
template <class Store>
static enum vxd_status vxd_svdag_launch_shapes_for(
    struct vxd_queue *queue, const struct vxd_svdag_kernel_args *args,
    const struct vxd_svdag_shapes_run *run, enum vxd_svdag_shapes_form form,
    const struct vxd_svdag_op *ops, struct vxd_err *err)
{
    static struct vxd_svdag_kernel ball_kernel = {
        (const void *)edit_kernel<Store, struct vxd_svdag_ball_editor_cuda>,
        vxd_svdag_shared_bytes<struct vxd_svdag_ball_editor_cuda>(),
        "edit_kernel of a ball", 0};
    static struct vxd_svdag_kernel lists_kernel = {
        (const void *)edit_kernel<Store, struct vxd_svdag_lists_editor_cuda>,
        vxd_svdag_shared_bytes<struct vxd_svdag_lists_editor_cuda>(),
        "edit_kernel of lists", 0};
    static struct vxd_svdag_kernel shapes_kernel = {
        (const void *)edit_kernel<Store, struct vxd_svdag_shapes_editor_cuda>,
        vxd_svdag_shared_bytes<struct vxd_svdag_shapes_editor_cuda>(),
        "edit_kernel of shapes", 0};
    const struct vxd_svdag_lists_editor_cuda lists = {run};
    const struct vxd_svdag_shapes_editor_cuda shapes = {run};

    if (form == VXD_SVDAG_FORM_BALL) {
        const struct vxd_svdag_ball_editor_cuda ball =
            vxd_svdag_ball_of(&args->view, ops);

        return vxd_svdag_launch_kernel(queue, &ball_kernel, args, &ball, err);
    }
    return form == VXD_SVDAG_FORM_LISTS
               ? vxd_svdag_launch_kernel(queue, &lists_kernel, args, &lists, err)
               : vxd_svdag_launch_kernel(queue, &shapes_kernel, args, &shapes, err);
}

template <class Store>
static enum vxd_status vxd_svdag_launch_copy_for(struct vxd_queue *queue,
                                                 const struct vxd_svdag_kernel_args *args,
                                                 const struct vxd_svdag_op *op,
                                                 struct vxd_err *err)
{
    static struct vxd_svdag_kernel kernel = {
        (const void *)edit_kernel<Store, struct vxd_svdag_copy_editor_cuda>,
        vxd_svdag_shared_bytes<struct vxd_svdag_copy_editor_cuda>(),
        "edit_kernel of a copy", 0};
    const struct vxd_svdag_copy_editor_cuda editor = {*op, args->view};

    return vxd_svdag_launch_kernel(queue, &kernel, args, &editor, err);
}

template <class Store>
static enum vxd_status
vxd_svdag_launch_morph_for(struct vxd_queue *queue,
                           const struct vxd_svdag_kernel_args *args,
                           const struct vxd_svdag_op *op, struct vxd_err *err)
{
    static struct vxd_svdag_kernel kernel = {
        (const void *)edit_kernel<Store, struct vxd_svdag_morph_editor_cuda>,
        vxd_svdag_shared_bytes<struct vxd_svdag_morph_editor_cuda>(),
        "edit_kernel of morphology", 0};
    const struct vxd_svdag_morph_editor_cuda editor = {op, args->view};

    return vxd_svdag_launch_kernel(queue, &kernel, args, &editor, err);
}

template <class Store>
static enum vxd_status vxd_svdag_launch_undo_for(struct vxd_queue *queue,
                                                 const struct vxd_svdag_kernel_args *args,
                                                 const struct vxd_svdag_undo_state *roots,
                                                 struct vxd_err *err)
{
    static struct vxd_svdag_kernel kernel = {
        (const void *)edit_kernel<Store, struct vxd_svdag_undo_editor_cuda>,
        vxd_svdag_shared_bytes<struct vxd_svdag_undo_editor_cuda>(),
        "edit_kernel of an undo", 0};
    const struct vxd_svdag_undo_editor_cuda editor = {*roots, args->view};

    return vxd_svdag_launch_kernel(queue, &kernel, args, &editor, err);
}

template <class Store>
static enum vxd_status
vxd_svdag_launch_change_for(struct vxd_queue *queue,
                            const struct vxd_svdag_kernel_args *args, struct vxd_err *err)
{
    static struct vxd_svdag_kernel kernel = {(const void *)change_kernel<Store>, 0,
                                             "change_kernel", 0};

    return vxd_svdag_launch_kernel(queue, &kernel, args, NULL, err);
}

/* The edits of a store: a .cu file instantiates all kernels by a table of them. Where the
 * store splits items the file defines VXD_SVDAG_SPLIT_FORM before its first include. */
template <class Store>
constexpr struct vxd_svdag_edit_kernels vxd_svdag_edit_kernels_for(void)
{
    return {vxd_svdag_launch_shapes_for<Store>, vxd_svdag_launch_copy_for<Store>,
            vxd_svdag_launch_morph_for<Store>, vxd_svdag_launch_undo_for<Store>,
            vxd_svdag_launch_change_for<Store>};
}

#endif
