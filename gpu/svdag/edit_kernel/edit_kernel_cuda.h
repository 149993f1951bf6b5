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
VXD_SVDAG_DEVICE void vxd_svdag_count_visits(const struct vxd_svdag_pass *pass,
                                             struct vxd_svdag_jobs *jobs)
{
    const uint64_t share = pass->max_visits / ((uint64_t)gridDim.x * 2);

    if (jobs->n_visits > share || jobs->n_visits > VXD_SVDAG_VISITS_AT_ONCE) {
        (void)vxd_svdag_atomic_add(&pass->state->n_visits, jobs->n_visits);
        jobs->n_visits = 0;
    }
}

/* By a block's dealer: what there is to do in a stage. Batches are smaller where there would be
 * fewer than blocks. Returns the block's first one. */
template <class Editor>
VXD_SVDAG_DEVICE uint32_t vxd_svdag_begin_jobs(const struct vxd_svdag_stage *stage,
                                               struct vxd_svdag_jobs *jobs)
{
    const bool is_rows = stage->kind == VXD_SVDAG_STAGE_ROWS;
    const uint32_t n_blocks = stage->is_grid ? gridDim.x : 1;
    const uint32_t most = vxd_svdag_sizes<Editor>::CUBES;
    const uint32_t each = is_rows && stage->n_pairs / 64 > n_blocks ? 8 : 1;
    const uint32_t n_pairs = (stage->n_pairs + each - 1) / each;
    const uint32_t all = stage->n_cubes + n_pairs;
    uint32_t at_once = most;

    if (stage->is_grid) {
        at_once = (all + n_blocks - 1) / n_blocks;
        at_once = is_rows ? at_once : (at_once + 3) / 4 * 4;
        at_once = at_once > most ? most : at_once == 0 ? 1 : at_once;
    } else {
        jobs->n_below[(stage->height - 1) & 1] = {0, 0};
    }
    jobs->at_once = at_once;
    jobs->pairs = (stage->n_cubes + at_once - 1) / at_once * at_once;
    jobs->pairs_each = each;
    jobs->n = jobs->pairs + n_pairs;
    jobs->stride = n_blocks * at_once;
    jobs->cubes_below = stage->cubes + stage->n_cubes;
    jobs->pairs_below = stage->pairs + stage->n_pairs;
    return stage->is_grid ? blockIdx.x * at_once : 0;
}

/* By a block's dealer: the batch after this one. Rows are dealt out, as some have more below them
 * than others. */
VXD_SVDAG_DEVICE uint32_t vxd_svdag_jobs_after(const struct vxd_svdag_pass *pass,
                                               const struct vxd_svdag_stage *stage,
                                               const struct vxd_svdag_jobs *jobs,
                                               uint32_t first)
{
    return stage->kind != VXD_SVDAG_STAGE_ROWS || jobs->n <= jobs->stride
               ? first + jobs->stride
               : jobs->stride + atomicAdd(&pass->state->n_dealt, jobs->at_once);
}

/* By a block's dealer: whether the block is to go on with a stage: without a fault, or to count
 * what is needed. The first block does not ask anew while it is alone: it would wait for the
 * answer at each height; nor does any at the beginning of a stage, as all asked after the last
 * one. */
VXD_SVDAG_DEVICE bool vxd_svdag_goes_on(const struct vxd_svdag_pass *pass,
                                        const struct vxd_svdag_stage *stage,
                                        const struct vxd_svdag_jobs *jobs, bool is_begun)
{
    const uint32_t counts = VXD_SVDAG_NO_CUBES | VXD_SVDAG_NO_PAIRS;
    uint32_t fault;
    bool is_over;

    if (stage->kind == VXD_SVDAG_STAGE_CLOSE) {
        return jobs->is_bad == 0;
    }
    if (!stage->is_grid) {
        return true;
    }
    fault = is_begun ? vxd_svdag_load_now(&pass->state->fault) : jobs->fault;
    is_over = (is_begun ? vxd_svdag_load_now64(&pass->state->n_visits)
                        : jobs->n_visits_of_all) > pass->max_visits;
    if (is_over && (fault & VXD_SVDAG_NO_CUBES) == 0) {
        vxd_svdag_raise(pass, VXD_SVDAG_NO_CUBES);
    }
    return !is_over && (fault == 0 ||
                        (stage->kind == VXD_SVDAG_STAGE_OPEN && (fault & ~counts) == 0));
}

/* By a block's dealer: says which batch is next; is_begun: it has had one of this stage. */
VXD_SVDAG_DEVICE void vxd_svdag_deal(const struct vxd_svdag_pass *pass,
                                     const struct vxd_svdag_stage *stage,
                                     struct vxd_svdag_jobs *jobs, bool is_begun,
                                     uint32_t turn, uint32_t first)
{
    jobs->next[turn] = first < jobs->n && vxd_svdag_goes_on(pass, stage, jobs, is_begun)
                           ? first
                           : VXD_SVDAG_NO_JOB;
}

/* The first phase of a batch. */
template <class Editor>
VXD_SVDAG_DEVICE void vxd_svdag_begin_batch(const struct vxd_svdag_stage *stage,
                                            const struct vxd_svdag_jobs *jobs,
                                            uint32_t first, struct vxd_svdag_phase *phase)
{
    const bool is_pairs = first >= jobs->pairs;
    const uint32_t each = is_pairs ? jobs->pairs_each : 1;
    const uint32_t before = is_pairs ? (first - jobs->pairs) * each : first;
    const uint32_t left = (is_pairs ? stage->n_pairs : stage->n_cubes) - before;

    phase->kind = is_pairs                               ? VXD_SVDAG_PHASE_PAIRS
                  : stage->kind != VXD_SVDAG_STAGE_CLOSE ? vxd_svdag_phase_down<Editor>()
                  : Editor::TELLS_ALL                    ? VXD_SVDAG_PHASE_CLOSE
                                                         : VXD_SVDAG_PHASE_COMPOSE;
    phase->is_local = stage->kind == VXD_SVDAG_STAGE_ROWS;
    phase->is_alone = !stage->is_grid;
    phase->is_path = stage->kind == VXD_SVDAG_STAGE_PATH;
    phase->top = stage->height;
    phase->height = stage->height;
    phase->begin = (is_pairs ? stage->pairs : stage->cubes) + before;
    phase->n = left < jobs->at_once * each ? left : jobs->at_once * each;
}

/* By a block's dealer: counts rows that are about to become nodes. */
VXD_SVDAG_DEVICE void vxd_svdag_count_closed(const struct vxd_svdag_pass *pass,
                                             const struct vxd_svdag_stage *stage,
                                             const struct vxd_svdag_phase *phase)
{
    if (stage->kind == VXD_SVDAG_STAGE_CLOSE) {
        (void)atomicAdd(&pass->state->n_closed, phase->n);
    } else if (phase->kind == VXD_SVDAG_PHASE_CLOSE) {
        (void)atomicAdd(&pass->state->n_rows_closed, phase->n);
    }
}

/* By all threads of a block: a batch, a barrier behind each of its phases. In the last one the
 * dealer asks for the next batch. False: the store had no room, a fault is raised. */
template <class Store, class Editor>
VXD_SVDAG_DEVICE bool vxd_svdag_run_batch(struct vxd_svdag_worker<Store, Editor> *worker,
                                          const struct vxd_svdag_stage *stage,
                                          uint32_t turn)
{
    struct vxd_svdag_desk<Editor> *desk = worker->desk;
    const uint32_t first = desk->jobs.next[turn];
    const bool is_rows = stage->kind == VXD_SVDAG_STAGE_ROWS && first < desk->jobs.pairs;
    struct vxd_svdag_phase phase;

    vxd_svdag_begin_batch<Editor>(stage, &desk->jobs, first, &phase);
    if (is_rows) {
        vxd_svdag_copy_in(worker->pass, desk, phase.begin, phase.n);
    }
#pragma unroll 1
    while (phase.kind != VXD_SVDAG_PHASE_END) {
        bool has_room = true;
        uint32_t size;
        uint32_t n;

        if (is_rows) {
            vxd_svdag_phase_find_rows(desk, &phase);
        }
        if (phase.n == 0) {
            vxd_svdag_phase_next<Editor>(&phase);
            continue;
        }
        if (vxd_svdag_is_dealer()) {
            if (phase.kind == VXD_SVDAG_PHASE_OPEN ||
                phase.kind == VXD_SVDAG_PHASE_TELL) {
                desk->jobs.n_visits += phase.n * 8;
                vxd_svdag_count_visits(worker->pass, &desk->jobs);
            }
            if (vxd_svdag_phase_is_last(&phase)) {
                vxd_svdag_count_closed(worker->pass, stage, &phase);
                vxd_svdag_deal(
                    worker->pass, stage, &desk->jobs, true, turn ^ 1,
                    vxd_svdag_jobs_after(worker->pass, stage, &desk->jobs, first));
            }
        }
        __syncwarp();
        size = vxd_svdag_step_size<Editor>(&phase);
        n = phase.n;
#pragma unroll 1
        for (uint32_t i = threadIdx.x / 32 * size; i < n && has_room;
             i += blockDim.x / 32 * size) {
            phase.n = n - i < size ? n : i + size;
            has_room = vxd_svdag_run_step(worker, &phase, i);
        }
        phase.n = n;
        if (__syncthreads_or(!has_room) != 0) {
            return false;
        }
        vxd_svdag_phase_next<Editor>(&phase);
    }
    if (is_rows) {
        vxd_svdag_copy_out(worker->pass, desk, stage->cubes + first, desk->n_rows[0]);
    }
    return true;
}

/* By all threads of a block. */
template <class Store, class Editor>
VXD_SVDAG_DEVICE void vxd_svdag_run_stage(struct vxd_svdag_worker<Store, Editor> *worker,
                                          const struct vxd_svdag_stage *stage)
{
    struct vxd_svdag_jobs *jobs = &worker->desk->jobs;
    bool has_room = true;

    if (vxd_svdag_is_dealer()) {
        vxd_svdag_deal(worker->pass, stage, jobs, false, 0,
                       vxd_svdag_begin_jobs<Editor>(stage, jobs));
    }
    __syncthreads();
#pragma unroll 1
    for (uint32_t turn = 0; has_room && jobs->next[turn] != VXD_SVDAG_NO_JOB; turn ^= 1) {
        has_room = vxd_svdag_run_batch(worker, stage, turn);
    }
    if (!has_room && vxd_svdag_is_dealer()) {
        worker->board->has_failed = 1;
    }
}

/* The pass -------------------------------------------------------------------------------- */

/* What a pass with a fault would need, as far as it came; by one thread after all others. */
template <class Store>
static __device__ void vxd_svdag_tell_needs(const struct vxd_svdag_pass *pass,
                                            int row_height, uint32_t fault)
{
    const struct vxd_svdag_pass_state *state = pass->state;
    struct vxd_svdag_needs *needs = &pass->progress->needs;
    const uint64_t n_visits = vxd_svdag_load_now64(&state->n_visits);
    uint64_t n_cubes = 0;
    uint64_t n_pairs = 0;

    for (int i = 0; i < VXD_SVDAG_N_HEIGHTS; i++) {
        n_cubes += vxd_svdag_load_now64(&state->n_cubes[i]);
        n_pairs += vxd_svdag_load_now64(&state->n_pairs[i]);
    }
    needs->n_cubes = (fault & VXD_SVDAG_NO_CUBES) == 0 ? 0
                     : n_visits > pass->max_visits     ? n_visits
                                                       : n_cubes;
    needs->n_pairs = (fault & VXD_SVDAG_NO_PAIRS) != 0 ? n_pairs : 0;
    Store::tell_needs(pass, fault, vxd_svdag_load_now(&state->n_rows_closed),
                      vxd_svdag_load_now64(&state->n_cubes[row_height]),
                      n_cubes - vxd_svdag_load_now64(&state->n_cubes[row_height]) -
                          vxd_svdag_load_now(&state->n_closed));
}

/* By one thread after all others. */
template <class Store, class Editor>
static __device__ void vxd_svdag_end_pass(const struct vxd_svdag_pass *pass)
{
    typedef struct vxd_svdag_row<typename Editor::state> row_t;
    struct vxd_svdag_progress *progress = pass->progress;
    const uint32_t fault = vxd_svdag_load_now(&pass->state->fault);

    if (fault != 0) {
        progress->fault = fault;
        vxd_svdag_tell_needs<Store>(pass, vxd_svdag_sizes<Editor>::ROW_HEIGHT, fault);
    } else {
        progress->root = ((const row_t *)pass->cubes)[0].ref;
    }
    Store::end(pass);
}

/* The root's cube, which is always gone into, by one thread. */
template <class Editor>
static __device__ void vxd_svdag_open_root(const struct vxd_svdag_pass *pass,
                                           const Editor &editor)
{
    typedef struct vxd_svdag_row<typename Editor::state> row_t;
    row_t *row = (row_t *)pass->cubes;

    row->place = 0;
    row->marks = 0;
    row->ref = pass->progress->root;
    editor.begin(&pass->view, row->ref, &row->state);
    if (pass->cube_weights != NULL) {
        pass->cube_weights[0] = 1;
    }
    pass->state->n_cubes[pass->view.depth] = 1;
}

/* By one thread: items that the store has. */
static __device__ void vxd_svdag_count_items(const struct vxd_svdag_pass *pass)
{
    pass->state->n_items = pass->store->n_items[VXD_SVDAG_LEAF] +
                           pass->store->n_items[VXD_SVDAG_INNER] +
                           pass->store->n_items[VXD_SVDAG_BLOCK];
}

/* By the first block: its first stage, with the rows that it begins with: a fan that is open; */
template <class Editor>
VXD_SVDAG_DEVICE void
vxd_svdag_begin_fan(const struct vxd_svdag_pass *pass, const Editor &editor,
                    struct vxd_svdag_board *board, struct vxd_svdag_desk<Editor> *desk,
                    struct vxd_svdag_stage *stage)
{
    if (vxd_svdag_is_dealer()) {
        vxd_svdag_count_items(pass);
    }
    vxd_svdag_put_fan(pass, editor, board, desk);
    __syncthreads();
    stage->is_grid = false;
    vxd_svdag_path_after(&desk->path, stage);
    stage->n_pairs = vxd_svdag_rows_here(stage->n_pairs, 0, pass->pairs_capacity);
    vxd_svdag_stage_next(pass, &desk->jobs, stage);
}

/* else a path, or the root. */
template <class Editor>
VXD_SVDAG_DEVICE void
vxd_svdag_begin_pass(const struct vxd_svdag_pass *pass, const Editor &editor,
                     struct vxd_svdag_desk<Editor> *desk, struct vxd_svdag_stage *stage)
{
    if (vxd_svdag_is_dealer()) {
        vxd_svdag_count_items(pass);
    }
    if (threadIdx.x == 0) {
        if constexpr (Editor::HAS_BOUNDS) {
            struct vxd_svdag_cube end;

            (void)vxd_svdag_path_end(editor, pass->view.depth, &end);
            desk->path = vxd_svdag_put_path(pass, editor, &end);
        } else {
            vxd_svdag_open_root(pass, editor);
            desk->path = {0, pass->view.depth, 1, 0};
        }
    }
    __syncthreads();
    vxd_svdag_stage_top(pass, stage);
    if (stage->height > stage->row_height) {
        stage->kind = VXD_SVDAG_STAGE_OPEN;
        stage->is_grid = false;
    } else if (threadIdx.x == 0) {
        vxd_svdag_tell_meeting(pass, stage);
    }
    if (desk->path.n_rows > 0) {
        stage->kind = VXD_SVDAG_STAGE_PATH;
        stage->n_cubes = desk->path.n_rows;
    }
}

/* Whether the first block takes this stage, and all above it, by itself. */
template <class Store>
VXD_SVDAG_DEVICE bool vxd_svdag_is_climb(const struct vxd_svdag_stage *stage)
{
    return Store::RESERVES && stage->kind == VXD_SVDAG_STAGE_CLOSE && !stage->is_grid;
}

/* By all threads of a block, after the barrier behind a stage: the next one. What the first block
 * found alone it tells the others. */
template <class Store, class Editor>
VXD_SVDAG_DEVICE void vxd_svdag_go_on(struct vxd_svdag_worker<Store, Editor> *worker,
                                      struct vxd_svdag_stage *stage)
{
    const struct vxd_svdag_pass *pass = worker->pass;
    const struct vxd_svdag_below *n_below = worker->desk->jobs.n_below;

    if (stage->kind == VXD_SVDAG_STAGE_PATH) {
        vxd_svdag_path_after(&worker->desk->path, stage);
    }
    if (!stage->is_grid && stage->kind == VXD_SVDAG_STAGE_OPEN && threadIdx.x == 0) {
        const int below = stage->height - 1;

        pass->state->n_cubes[below] = n_below[below & 1].n_cubes;
        pass->state->n_pairs[below] = n_below[below & 1].n_pairs;
    }
    if (vxd_svdag_is_climb<Store>(stage)) {
        stage->kind = VXD_SVDAG_STAGE_END;
    } else {
        vxd_svdag_stage_next(pass, &worker->desk->jobs, stage);
    }
}

/* By all threads of a block, after a barrier: adds the time since *begin to a stage's. */
VXD_SVDAG_DEVICE void vxd_svdag_note_time(struct vxd_svdag_board *board,
                                          enum vxd_svdag_edit_stage stage,
                                          long long *begin)
{
    const long long end = clock64();

    if (threadIdx.x == 0) {
        board->cycles[stage] += (uint64_t)(end - *begin);
    }
    *begin = end;
}

/* Bytes of a block's shared memory. */
template <class Editor> constexpr size_t vxd_svdag_shared_bytes(void)
{
    return sizeof(struct vxd_svdag_board) + sizeof(struct vxd_svdag_desk<Editor>);
}

/* Blocks that a multiprocessor of 227 KiB has room for, at most VXD_SVDAG_TEAM_BLOCKS. */
template <class Editor> constexpr int vxd_svdag_team_blocks(void)
{
    return (227 << 10) / (vxd_svdag_shared_bytes<Editor>() + 1024) < VXD_SVDAG_TEAM_BLOCKS
               ? (int)((227 << 10) / (vxd_svdag_shared_bytes<Editor>() + 1024))
               : VXD_SVDAG_TEAM_BLOCKS;
}

/* The whole pass, by all threads of a cooperative grid, with that much dynamic shared memory. */
template <class Store, class Editor>
static __device__ __forceinline__ void
vxd_svdag_run_pass(const struct vxd_svdag_pass *pass, const Editor &editor)
{
    extern __shared__ uint4 vxd_svdag_shared[];
    typedef struct vxd_svdag_row<typename Editor::state> row_t;
    struct vxd_svdag_worker<Store, Editor> worker;
    struct vxd_svdag_stage stage = {};
    long long begin = clock64();

    /* Of passes before this one; changes only once all blocks of this one have met. */
    if (vxd_svdag_load_now(&pass->progress->fault) != 0) {
        return;
    }
    stage.kind = VXD_SVDAG_STAGE_MEET;
    stage.is_grid = true;
    stage.row_height = vxd_svdag_sizes<Editor>::ROW_HEIGHT;
    worker.pass = pass;
    worker.editor = &editor;
    worker.board = (struct vxd_svdag_board *)(void *)vxd_svdag_shared;
    worker.desk = (struct vxd_svdag_desk<Editor> *)((char *)vxd_svdag_shared +
                                                    sizeof(struct vxd_svdag_board));
    worker.spare = Store::no_spare();
    vxd_svdag_pool_clear(&worker.desk->pools[threadIdx.x / 32]);
    if (vxd_svdag_is_dealer()) {
        worker.desk->jobs.n_visits = 0;
        worker.desk->jobs.is_bad = 0;
    }
    vxd_svdag_board_clear(worker.board);
    if constexpr (Editor::TELLS_ALL) {
        vxd_svdag_table_clear(&worker.desk->table, true);
    }
    if (vxd_svdag_is_first_block()) {
        if constexpr (Editor::TELLS_ALL) {
            vxd_svdag_begin_fan(pass, editor, worker.board, worker.desk, &stage);
            vxd_svdag_note_time(worker.board, VXD_SVDAG_OPEN_BY_BLOCK, &begin);
        } else {
            vxd_svdag_begin_pass(pass, editor, worker.desk, &stage);
        }
    }
    while (stage.kind != VXD_SVDAG_STAGE_END) {
        if (stage.kind == VXD_SVDAG_STAGE_JOIN) {
            /* Rows that had no room are not there. */
            if (!vxd_svdag_has_fault(pass)) {
                vxd_svdag_join_likes(
                    pass, (row_t *)pass->cubes, stage.cubes, stage.n_cubes,
                    threadIdx.x + (stage.is_grid ? blockIdx.x * blockDim.x : 0),
                    blockDim.x * (stage.is_grid ? gridDim.x : 1));
            }
        } else if (vxd_svdag_is_climb<Store>(&stage)) {
            if constexpr (Store::RESERVES) {
                vxd_svdag_climb_up(&worker, &stage);
            }
        } else if (stage.kind != VXD_SVDAG_STAGE_MEET) {
            vxd_svdag_run_stage(&worker, &stage);
        }
        if (stage.is_grid) {
            cooperative_groups::this_grid().sync();
            vxd_svdag_fetch(pass, &stage, &worker.desk->jobs);
        } else {
            __syncthreads();
            if (vxd_svdag_is_dealer()) {
                worker.desk->jobs.is_bad |= worker.board->has_failed;
            }
        }
        if (vxd_svdag_is_first_block()) {
            vxd_svdag_note_time(worker.board, vxd_svdag_stage_name(&stage), &begin);
        }
        vxd_svdag_go_on(&worker, &stage);
    }
    vxd_svdag_board_add(pass, worker.board, pass->counts_changes);
    if (vxd_svdag_is_first_block() && threadIdx.x == 0) {
        for (int i = 0; i < VXD_SVDAG_N_STAGES; i++) {
            pass->progress->stage_cycles[i] += worker.board->cycles[i];
        }
        vxd_svdag_end_pass<Store, Editor>(pass);
    }
}

/* By all lanes of a warp: its share of the pairs of a height; of the last one dealt out, as some
 * have more below them than others. */
VXD_SVDAG_DEVICE void vxd_svdag_change_stage(const struct vxd_svdag_pass *pass,
                                             struct vxd_svdag_board *board,
                                             struct vxd_svdag_pair_list *list,
                                             const struct vxd_svdag_stage *stage)
{
    const bool is_rows = stage->kind == VXD_SVDAG_STAGE_ROWS;
    const uint32_t at_once = is_rows ? 1 : 4;
    const uint32_t n_warps = blockDim.x / 32 * gridDim.x;
    const struct vxd_svdag_pairs_to to = {
        is_rows ? NULL : &pass->state->n_pairs[stage->height - 1],
        stage->pairs + stage->n_pairs};
    /* Few pairs go to a warp each of many blocks. */
    uint32_t first = (threadIdx.x / 32 * gridDim.x + blockIdx.x) * at_once;

    while (first < stage->n_pairs) {
        const uint32_t left = stage->n_pairs - first;
        const uint32_t n = left < at_once ? left : at_once;
        struct vxd_svdag_change change = {0, 0, 0, 0};
        struct vxd_svdag_pair pair = {false, 0, VXD_SVDAG_EMPTY, VXD_SVDAG_EMPTY, 0};

        vxd_svdag_list_pairs(pass, stage->pairs + first, n, stage->height, list);
        vxd_svdag_count_pairs(pass, &to, &pair, list, n, &change);
        vxd_svdag_count_change(board, &change);
        if (is_rows) {
            if (vxd_svdag_lane() == 0) {
                first = atomicAdd(&pass->state->n_dealt, 1u);
            }
            first = n_warps + __shfl_sync(UINT32_MAX, first, 0);
        } else {
            first += n_warps * at_once;
        }
    }
}

/* What changed from the edit's first root to its last, by all threads of a cooperative grid: pairs
 * alone. */
static __device__ __forceinline__ void
vxd_svdag_run_change(const struct vxd_svdag_pass *pass)
{
    __shared__ struct vxd_svdag_board board;
    __shared__ struct vxd_svdag_pair_list lists[VXD_SVDAG_TEAM_THREADS / 32];
    const bool is_first = vxd_svdag_is_first_block() && threadIdx.x == 0;
    struct vxd_svdag_progress *progress = pass->progress;
    struct vxd_svdag_stage stage = {};

    if (vxd_svdag_load_now(&progress->fault) != 0) {
        return;
    }
    stage.kind = VXD_SVDAG_STAGE_OPEN;
    stage.is_grid = true;
    stage.row_height = VXD_SVDAG_CHANGE_HEIGHT;
    vxd_svdag_board_clear(&board);
    if (is_first) {
        pass->pairs[0] = (uint64_t)progress->first_root << 32 | progress->root;
        if (pass->pair_weights != NULL) {
            pass->pair_weights[0] = 1;
        }
        pass->state->n_pairs[pass->view.depth] = 1;
    }
    cooperative_groups::this_grid().sync();
    vxd_svdag_stage_top(pass, &stage);
    for (; stage.kind != VXD_SVDAG_STAGE_END;) {
        stage.kind =
            stage.height > stage.row_height ? VXD_SVDAG_STAGE_OPEN : VXD_SVDAG_STAGE_ROWS;
        vxd_svdag_change_stage(pass, &board, &lists[threadIdx.x / 32], &stage);
        cooperative_groups::this_grid().sync();
        if (stage.kind == VXD_SVDAG_STAGE_ROWS) {
            stage.kind = VXD_SVDAG_STAGE_END;
        } else {
            vxd_svdag_stage_down(pass, NULL, &stage);
        }
    }
    vxd_svdag_board_add(pass, &board, true);
    if (is_first && vxd_svdag_has_fault(pass)) {
        progress->fault = vxd_svdag_load_now(&pass->state->fault);
        for (int i = 0; i < VXD_SVDAG_N_HEIGHTS; i++) {
            progress->needs.n_pairs += vxd_svdag_load_now64(&pass->state->n_pairs[i]);
        }
    }
}

#endif
