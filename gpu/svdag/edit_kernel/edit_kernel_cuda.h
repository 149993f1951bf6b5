// SPDX-License-Identifier: Apache-2.0
/* One way over a tree with an editor: one cooperative kernel, in stages with a barrier between.
 *
 * path   the first block: cubes that hold all of an edit whose bounds are known (expand_path_cuda.h), or of a
 *        ball the upper ones, as long as they are few (expand_top_cuda.h)
 * open   height by height, cubes become rows; the first block alone as long as they are few
 * join   of what was opened, children that are equal to another's take its row, and count for as
 *        many
 * meet   the first block tells the others how far it came
 * rows   blocks: down from some rows of height 4 (of a ball 3) to their leaves, and up again, in
 *        shared memory
 * close  the heights above, by the grid where rows are many; then the first block climbs to the root
 *        (climb_cuda.h; with slabs it closes a height a stage)
 *
 * In a stage a block takes batches of rows, or of pairs, and goes through them in phases
 * (batch_cuda.h).
 *
 * Rules that keep it right:
 * - Which barriers a thread comes to depends only on counts that a barrier stands behind, and on
 *   what the block's dealer told the others before one.
 * - Rows are written before a barrier, and only read by others after it.
 * - Items are found or stored by many at once (store_cuda.h); no warp is waited for beyond that.
 * - A fault makes blocks leave out what they have not begun; no node is made of a child that has no
 *   reference, so what is stored is whole, and is found again when the edit is repeated. */
#ifndef VXD_GPU_SVDAG_EDIT_KERNEL_EDIT_KERNEL_CUDA_H
#define VXD_GPU_SVDAG_EDIT_KERNEL_EDIT_KERNEL_CUDA_H

#include "gpu/svdag/edit_kernel/reduce_top_cuda.h"
#include "gpu/svdag/edit_kernel/expand_top_cuda.h"
#include "gpu/svdag/edit_kernel/expand_path_cuda.h"

/* Below pairs of this height warps go alone, where nothing but pairs is looked at. */
#define VXD_SVDAG_CHANGE_HEIGHT 4

/* Visits that a block counts for itself at most. */
#define VXD_SVDAG_VISITS_AT_ONCE 32768u

/* Batches --------------------------------------------------------------------------------- */

/* By a block's dealer: adds cubes that were looked at to the pass's, many at once; of all blocks
 * together no more than half of what an edit may look at are left out. */
VXD_SVDAG_DEVICE void vxd_svdag_count_visits(const struct vxd_svdag_kernel_args *args,
                                             struct vxd_svdag_batches *batches)
{
    const uint64_t share = args->max_visits / ((uint64_t)gridDim.x * 2);

    if (batches->n_visits > share || batches->n_visits > VXD_SVDAG_VISITS_AT_ONCE) {
        (void)vxd_svdag_atomic_add(&args->state->n_visits, batches->n_visits);
        batches->n_visits = 0;
    }
}

/* By a block's dealer: what there is to do in a stage. Batches are smaller where there would be
 * fewer than blocks. Returns the block's first one. */
template <class Editor>
VXD_SVDAG_DEVICE uint32_t vxd_svdag_begin_batches(const struct vxd_svdag_stage *stage,
                                                  struct vxd_svdag_batches *batches)
{
    const bool is_subtrees = stage->kind == VXD_SVDAG_STAGE_SUBTREES;
    const uint32_t n_blocks = stage->is_grid ? gridDim.x : 1;
    const uint32_t most = vxd_svdag_sizes<Editor>::BATCH_ENTRIES;
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

/* By a block's dealer: the batch after this one. Rows are dealt out, as some have more below them
 * than others. */
VXD_SVDAG_DEVICE uint32_t vxd_svdag_batch_after(const struct vxd_svdag_kernel_args *args,
                                                const struct vxd_svdag_stage *stage,
                                                const struct vxd_svdag_batches *batches,
                                                uint32_t first)
{
    return stage->kind != VXD_SVDAG_STAGE_SUBTREES || batches->n <= batches->stride
               ? first + batches->stride
               : batches->stride +
                     atomicAdd(&args->state->n_scheduled, batches->batch_size);
}

/* By a block's dealer: whether the block is to go on with a stage: without a fault, or to count
 * what is needed. The first block does not ask anew while it is alone: it would wait for the
 * answer at each height; nor does any at the beginning of a stage, as all asked after the last
 * one. */
VXD_SVDAG_DEVICE bool vxd_svdag_may_continue(const struct vxd_svdag_kernel_args *args,
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

/* By a block's dealer: says which batch is next; is_begun: it has had one of this stage. */
VXD_SVDAG_DEVICE void vxd_svdag_set_next_batch(const struct vxd_svdag_kernel_args *args,
                                               const struct vxd_svdag_stage *stage,
                                               struct vxd_svdag_batches *batches,
                                               bool is_begun, uint32_t buffer,
                                               uint32_t first)
{
    batches->next[buffer] =
        first < batches->n && vxd_svdag_may_continue(args, stage, batches, is_begun)
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

    phase->kind = is_pairs                                ? VXD_SVDAG_PHASE_PAIRS
                  : stage->kind != VXD_SVDAG_STAGE_REDUCE ? vxd_svdag_phase_down<Editor>()
                  : Editor::CLASSIFIES_ALL                ? VXD_SVDAG_PHASE_REDUCE
                                                          : VXD_SVDAG_PHASE_COMPOSE;
    phase->is_local = stage->kind == VXD_SVDAG_STAGE_SUBTREES;
    phase->is_alone = !stage->is_grid;
    phase->is_path = stage->kind == VXD_SVDAG_STAGE_PATH;
    phase->top = stage->height;
    phase->height = stage->height;
    phase->begin = (is_pairs ? stage->pairs : stage->entries) + before;
    phase->n = left < batches->batch_size * each ? left : batches->batch_size * each;
}

/* By a block's dealer: counts rows that are about to become nodes. */
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

/* By all threads of a block: a batch, a barrier behind each of its phases. In the last one the
 * dealer asks for the next batch. False: the store had no room, a fault is raised. */
template <class Store, class Editor>
VXD_SVDAG_DEVICE bool vxd_svdag_run_batch(struct vxd_svdag_worker<Store, Editor> *worker,
                                          const struct vxd_svdag_stage *stage,
                                          uint32_t buffer)
{
    struct vxd_svdag_block_shared<Editor> *shared = worker->shared;
    const uint32_t first = shared->batches.next[buffer];
    const bool is_subtrees =
        stage->kind == VXD_SVDAG_STAGE_SUBTREES && first < shared->batches.pairs;
    struct vxd_svdag_phase phase;

    vxd_svdag_begin_batch<Editor>(stage, &shared->batches, first, &phase);
    if (is_subtrees) {
        vxd_svdag_copy_in(worker->args, shared, phase.begin, phase.n);
    }
#pragma unroll 1
    while (phase.kind != VXD_SVDAG_PHASE_END) {
        bool has_capacity = true;
        uint32_t size;
        uint32_t n;

        if (is_subtrees) {
            vxd_svdag_phase_find_entries(shared, &phase);
        }
        if (phase.n == 0) {
            vxd_svdag_phase_next<Editor>(&phase);
            continue;
        }
        if (vxd_svdag_is_scheduler()) {
            if (phase.kind == VXD_SVDAG_PHASE_EXPAND ||
                phase.kind == VXD_SVDAG_PHASE_EXPAND_CLASSIFIED) {
                shared->batches.n_visits += phase.n * 8;
                vxd_svdag_count_visits(worker->args, &shared->batches);
            }
            if (vxd_svdag_phase_is_last(&phase)) {
                vxd_svdag_count_reduced(worker->args, stage, &phase);
                vxd_svdag_set_next_batch(
                    worker->args, stage, &shared->batches, true, buffer ^ 1,
                    vxd_svdag_batch_after(worker->args, stage, &shared->batches, first));
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
        vxd_svdag_copy_out(worker->args, shared, stage->entries + first,
                           shared->n_local[0]);
    }
    return true;
}

/* By all threads of a block. */
template <class Store, class Editor>
VXD_SVDAG_DEVICE void vxd_svdag_run_stage(struct vxd_svdag_worker<Store, Editor> *worker,
                                          const struct vxd_svdag_stage *stage)
{
    struct vxd_svdag_batches *batches = &worker->shared->batches;
    bool has_capacity = true;

    if (vxd_svdag_is_scheduler()) {
        vxd_svdag_set_next_batch(worker->args, stage, batches, false, 0,
                                 vxd_svdag_begin_batches<Editor>(stage, batches));
    }
    __syncthreads();
#pragma unroll 1
    for (uint32_t buffer = 0; has_capacity && batches->next[buffer] != VXD_SVDAG_NO_BATCH;
         buffer ^= 1) {
        has_capacity = vxd_svdag_run_batch(worker, stage, buffer);
    }
    if (!has_capacity && vxd_svdag_is_scheduler()) {
        worker->block_counts->has_failed = 1;
    }
}

/* The pass -------------------------------------------------------------------------------- */

/* What a pass with a fault would need, as far as it came; by one thread after all others. */
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

/* By one thread after all others. */
template <class Store, class Editor>
static __device__ void vxd_svdag_end_edit_kernel(const struct vxd_svdag_kernel_args *args)
{
    typedef struct vxd_svdag_frontier_entry<typename Editor::state> entry_t;
    struct vxd_svdag_progress *progress = args->progress;
    const uint32_t fault = vxd_svdag_load_volatile(&args->state->fault);

    if (fault != 0) {
        progress->fault = fault;
        vxd_svdag_report_needs<Store>(args, vxd_svdag_sizes<Editor>::SUBTREE_HEIGHT,
                                      fault);
    } else {
        progress->root = ((const entry_t *)args->entries)[0].ref;
    }
    Store::end(args);
}

/* The root's cube, which is always gone into, by one thread. */
template <class Editor>
static __device__ void vxd_svdag_put_root(const struct vxd_svdag_kernel_args *args,
                                          const Editor &editor)
{
    typedef struct vxd_svdag_frontier_entry<typename Editor::state> entry_t;
    entry_t *entry = (entry_t *)args->entries;

    entry->place = 0;
    entry->marks = 0;
    entry->ref = args->progress->root;
    editor.begin(&args->view, entry->ref, &entry->state);
    if (args->entry_weights != NULL) {
        args->entry_weights[0] = 1;
    }
    args->state->n_entries[args->view.depth] = 1;
}

/* By one thread: items that the store has. */
static __device__ void vxd_svdag_count_items(const struct vxd_svdag_kernel_args *args)
{
    args->state->n_items = args->store->n_items[VXD_SVDAG_LEAF] +
                           args->store->n_items[VXD_SVDAG_INNER] +
                           args->store->n_items[VXD_SVDAG_BLOCK];
}

/* By the first block: its first stage, with the rows that it begins with: a fan that is open; */
template <class Editor>
VXD_SVDAG_DEVICE void vxd_svdag_begin_top(const struct vxd_svdag_kernel_args *args,
                                          const Editor &editor,
                                          struct vxd_svdag_block_counts *block_counts,
                                          struct vxd_svdag_block_shared<Editor> *shared,
                                          struct vxd_svdag_stage *stage)
{
    if (vxd_svdag_is_scheduler()) {
        vxd_svdag_count_items(args);
    }
    vxd_svdag_put_top(args, editor, block_counts, shared);
    __syncthreads();
    stage->is_grid = false;
    vxd_svdag_path_after(&shared->path, stage);
    stage->n_pairs = vxd_svdag_entries_kept(stage->n_pairs, 0, args->pairs_capacity);
    vxd_svdag_stage_next(args, &shared->batches, stage);
}

/* else a path, or the root. */
template <class Editor>
VXD_SVDAG_DEVICE void vxd_svdag_begin_path(const struct vxd_svdag_kernel_args *args,
                                           const Editor &editor,
                                           struct vxd_svdag_block_shared<Editor> *shared,
                                           struct vxd_svdag_stage *stage)
{
    if (vxd_svdag_is_scheduler()) {
        vxd_svdag_count_items(args);
    }
    if (threadIdx.x == 0) {
        if constexpr (Editor::HAS_BOUNDS) {
            struct vxd_svdag_cube end;

            (void)vxd_svdag_path_end(editor, args->view.depth, &end);
            shared->path = vxd_svdag_put_path(args, editor, &end);
        } else {
            vxd_svdag_put_root(args, editor);
            shared->path = {0, args->view.depth, 1, 0};
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
    if (shared->path.n_expanded > 0) {
        stage->kind = VXD_SVDAG_STAGE_PATH;
        stage->n_entries = shared->path.n_expanded;
    }
}

/* Whether the first block takes this stage, and all above it, by itself. */
template <class Store>
VXD_SVDAG_DEVICE bool vxd_svdag_is_reduce_top(const struct vxd_svdag_stage *stage)
{
    return Store::RESERVES && stage->kind == VXD_SVDAG_STAGE_REDUCE && !stage->is_grid;
}

/* By all threads of a block, after the barrier behind a stage: the next one. What the first block
 * found alone it tells the others. */
template <class Store, class Editor>
VXD_SVDAG_DEVICE void vxd_svdag_advance(struct vxd_svdag_worker<Store, Editor> *worker,
                                        struct vxd_svdag_stage *stage)
{
    const struct vxd_svdag_kernel_args *args = worker->args;
    const struct vxd_svdag_level_counts *level_counts =
        worker->shared->batches.level_counts;

    if (stage->kind == VXD_SVDAG_STAGE_PATH) {
        vxd_svdag_path_after(&worker->shared->path, stage);
    }
    if (!stage->is_grid && stage->kind == VXD_SVDAG_STAGE_EXPAND && threadIdx.x == 0) {
        const int child_height = stage->height - 1;

        args->state->n_entries[child_height] = level_counts[child_height & 1].n_entries;
        args->state->n_pairs[child_height] = level_counts[child_height & 1].n_pairs;
    }
    if (vxd_svdag_is_reduce_top<Store>(stage)) {
        stage->kind = VXD_SVDAG_STAGE_END;
    } else {
        vxd_svdag_stage_next(args, &worker->shared->batches, stage);
    }
}

/* By all threads of a block, after a barrier: adds the time since *begin to a stage's. */
VXD_SVDAG_DEVICE void vxd_svdag_note_time(struct vxd_svdag_block_counts *block_counts,
                                          enum vxd_svdag_edit_stage stage,
                                          long long *begin)
{
    const long long end = clock64();

    if (threadIdx.x == 0) {
        block_counts->cycles[stage] += (uint64_t)(end - *begin);
    }
    *begin = end;
}

/* Bytes of a block's shared memory. */
template <class Editor> constexpr size_t vxd_svdag_shared_bytes(void)
{
    return sizeof(struct vxd_svdag_block_counts) +
           sizeof(struct vxd_svdag_block_shared<Editor>);
}

/* Blocks that a multiprocessor of 227 KiB has room for, at most VXD_SVDAG_MAX_BLOCKS_PER_SM. */
template <class Editor> constexpr int vxd_svdag_blocks_per_sm(void)
{
    return (227 << 10) / (vxd_svdag_shared_bytes<Editor>() + 1024) <
                   VXD_SVDAG_MAX_BLOCKS_PER_SM
               ? (int)((227 << 10) / (vxd_svdag_shared_bytes<Editor>() + 1024))
               : VXD_SVDAG_MAX_BLOCKS_PER_SM;
}

/* The whole pass, by all threads of a cooperative grid, with that much dynamic shared memory. */
template <class Store, class Editor>
static __device__ __forceinline__ void
vxd_svdag_run_edit_kernel(const struct vxd_svdag_kernel_args *args, const Editor &editor)
{
    extern __shared__ uint4 vxd_svdag_shared[];
    typedef struct vxd_svdag_frontier_entry<typename Editor::state> entry_t;
    struct vxd_svdag_worker<Store, Editor> worker;
    struct vxd_svdag_stage stage = {};
    long long begin = clock64();

    /* Of passes before this one; changes only once all blocks of this one have met. */
    if (vxd_svdag_load_volatile(&args->progress->fault) != 0) {
        return;
    }
    stage.kind = VXD_SVDAG_STAGE_HANDOVER;
    stage.is_grid = true;
    stage.subtree_height = vxd_svdag_sizes<Editor>::SUBTREE_HEIGHT;
    worker.args = args;
    worker.editor = &editor;
    worker.block_counts = (struct vxd_svdag_block_counts *)(void *)vxd_svdag_shared;
    worker.shared =
        (struct vxd_svdag_block_shared<Editor> *)((char *)vxd_svdag_shared +
                                                  sizeof(struct vxd_svdag_block_counts));
    worker.spare = Store::no_spare();
    vxd_svdag_pool_clear(&worker.shared->pools[threadIdx.x / 32]);
    if (vxd_svdag_is_scheduler()) {
        worker.shared->batches.n_visits = 0;
        worker.shared->batches.is_bad = 0;
    }
    vxd_svdag_block_counts_clear(worker.block_counts);
    if constexpr (Editor::CLASSIFIES_ALL) {
        vxd_svdag_leaf_memo_clear(&worker.shared->memo, true);
    }
    if (vxd_svdag_is_first_block()) {
        if constexpr (Editor::CLASSIFIES_ALL) {
            vxd_svdag_begin_top(args, editor, worker.block_counts, worker.shared, &stage);
            vxd_svdag_note_time(worker.block_counts, VXD_SVDAG_EXPAND_BY_BLOCK, &begin);
        } else {
            vxd_svdag_begin_path(args, editor, worker.shared, &stage);
        }
    }
    while (stage.kind != VXD_SVDAG_STAGE_END) {
        if (stage.kind == VXD_SVDAG_STAGE_DEDUP) {
            /* Rows that had no room are not there. */
            if (!vxd_svdag_has_fault(args)) {
                vxd_svdag_join_duplicates(
                    args, (entry_t *)args->entries, stage.entries, stage.n_entries,
                    threadIdx.x + (stage.is_grid ? blockIdx.x * blockDim.x : 0),
                    blockDim.x * (stage.is_grid ? gridDim.x : 1));
            }
        } else if (vxd_svdag_is_reduce_top<Store>(&stage)) {
            if constexpr (Store::RESERVES) {
                vxd_svdag_reduce_top_heights(&worker, &stage);
            }
        } else if (stage.kind != VXD_SVDAG_STAGE_HANDOVER) {
            vxd_svdag_run_stage(&worker, &stage);
        }
        if (stage.is_grid) {
            cooperative_groups::this_grid().sync();
            vxd_svdag_fetch(args, &stage, &worker.shared->batches);
        } else {
            __syncthreads();
            if (vxd_svdag_is_scheduler()) {
                worker.shared->batches.is_bad |= worker.block_counts->has_failed;
            }
        }
        if (vxd_svdag_is_first_block()) {
            vxd_svdag_note_time(worker.block_counts, vxd_svdag_stage_name(&stage),
                                &begin);
        }
        vxd_svdag_advance(&worker, &stage);
    }
    vxd_svdag_block_counts_add(args, worker.block_counts, args->counts_changes);
    if (vxd_svdag_is_first_block() && threadIdx.x == 0) {
        for (int i = 0; i < VXD_SVDAG_N_STAGES; i++) {
            args->progress->stage_cycles[i] += worker.block_counts->cycles[i];
        }
        vxd_svdag_end_edit_kernel<Store, Editor>(args);
    }
}

/* By all lanes of a warp: its share of the pairs of a height; of the last one dealt out, as some
 * have more below them than others. */
VXD_SVDAG_DEVICE void vxd_svdag_change_stage(const struct vxd_svdag_kernel_args *args,
                                             struct vxd_svdag_block_counts *block_counts,
                                             struct vxd_svdag_pair_list *list,
                                             const struct vxd_svdag_stage *stage)
{
    const bool is_subtrees = stage->kind == VXD_SVDAG_STAGE_SUBTREES;
    const uint32_t batch_size = is_subtrees ? 1 : 4;
    const uint32_t n_warps = blockDim.x / 32 * gridDim.x;
    const struct vxd_svdag_pairs_to to = {
        is_subtrees ? NULL : &args->state->n_pairs[stage->height - 1],
        stage->pairs + stage->n_pairs};
    /* Few pairs go to a warp each of many blocks. */
    uint32_t first = (threadIdx.x / 32 * gridDim.x + blockIdx.x) * batch_size;

    while (first < stage->n_pairs) {
        const uint32_t left = stage->n_pairs - first;
        const uint32_t n = left < batch_size ? left : batch_size;
        struct vxd_svdag_change change = {0, 0, 0, 0};
        struct vxd_svdag_pair pair = {false, 0, VXD_SVDAG_EMPTY, VXD_SVDAG_EMPTY, 0};

        vxd_svdag_list_pairs(args, stage->pairs + first, n, stage->height, list);
        vxd_svdag_count_pairs(args, &to, &pair, list, n, &change);
        vxd_svdag_count_change(block_counts, &change);
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

/* What changed from the edit's first root to its last, by all threads of a cooperative grid: pairs
 * alone. */
static __device__ __forceinline__ void
vxd_svdag_run_change(const struct vxd_svdag_kernel_args *args)
{
    __shared__ struct vxd_svdag_block_counts block_counts;
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
    vxd_svdag_block_counts_clear(&block_counts);
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
        vxd_svdag_change_stage(args, &block_counts, &lists[threadIdx.x / 32], &stage);
        cooperative_groups::this_grid().sync();
        if (stage.kind == VXD_SVDAG_STAGE_SUBTREES) {
            stage.kind = VXD_SVDAG_STAGE_END;
        } else {
            vxd_svdag_stage_down(args, NULL, &stage);
        }
    }
    vxd_svdag_block_counts_add(args, &block_counts, true);
    if (is_first && vxd_svdag_has_fault(args)) {
        progress->fault = vxd_svdag_load_volatile(&args->state->fault);
        for (int i = 0; i < VXD_SVDAG_N_HEIGHTS; i++) {
            progress->needs.n_pairs +=
                vxd_svdag_load_volatile64(&args->state->n_pairs[i]);
        }
    }
}

#endif
