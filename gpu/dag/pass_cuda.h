// SPDX-License-Identifier: Apache-2.0
/* One way over a tree with an editor: one cooperative kernel, in stages with a barrier between.
 *
 * open   height by height, cubes become rows; the first block alone as long as they are few
 * join   of what was opened, children that are equal to another's take its row, and count for as
 *        many
 * meet   the first block tells the others how far it came
 * rows   a warp each: down from a row of height 5 to its leaves, and up again, in shared memory
 * close  the heights above, by the grid where rows are many, then by the first block
 *
 * Rules that keep it right:
 * - Which barriers a thread comes to depends only on counts that a barrier stands behind.
 * - Rows are written before a barrier, and only read by others after it.
 * - Items are found or stored by many at once (store_cuda.h); no warp is waited for beyond that.
 * - A fault makes warps leave out what they have not begun; no node is made of a child that has no
 *   reference, so what is stored is whole, and is found again when the edit is repeated. */
#ifndef VXD_GPU_DAG_PASS_CUDA_H
#define VXD_GPU_DAG_PASS_CUDA_H

#include "gpu/dag/close_cuda.h"
#include "gpu/dag/stage_cuda.h"

/* Rows of a height that a warp opens or closes at once. */
#define VXD_DAG_JOB_ROWS 4u

/* Visits that a warp counts for itself at most. */
#define VXD_DAG_VISITS_AT_ONCE 4096u

/* Jobs ------------------------------------------------------------------------------------ */

/* By all lanes of a warp. */
template <class State>
VXD_DAG_DEVICE void vxd_dag_copy_row(const struct vxd_dag_row<State> *from,
                                     struct vxd_dag_row<State> *to)
{
    const uint32_t *words = (const uint32_t *)(const void *)from;

    for (uint32_t i = vxd_dag_lane(); i < sizeof *from / sizeof *words; i += 32) {
        ((uint32_t *)(void *)to)[i] = words[i];
    }
    __syncwarp();
}

/* A warp. */
template <class Store, class Editor> struct vxd_dag_worker {
    const struct vxd_dag_pass *pass;
    const Editor *editor;
    struct vxd_dag_board *board;
    struct vxd_dag_desk<Editor> *desk;
    typename Store::spare spare;
    uint32_t n_visits;       /* cubes looked at, not yet among the pass's, */
    uint32_t visits_at_once; /* where they are fewer */
    bool is_bad;             /* a stage before this one had a fault */
};

/* Of all warps together no more than half of what an edit may look at. */
VXD_DAG_DEVICE uint32_t vxd_dag_visits_at_once(const struct vxd_dag_pass *pass)
{
    const uint64_t n = pass->max_visits / ((uint64_t)gridDim.x * (blockDim.x / 32) * 2);

    return n < VXD_DAG_VISITS_AT_ONCE ? (uint32_t)n : VXD_DAG_VISITS_AT_ONCE;
}

/* By all lanes of a warp: counts cubes that were looked at, many at once. */
template <class Store, class Editor>
VXD_DAG_DEVICE void vxd_dag_count_visits(struct vxd_dag_worker<Store, Editor> *worker,
                                         uint32_t n)
{
    worker->n_visits += n;
    if (worker->n_visits > worker->visits_at_once) {
        if (vxd_dag_lane() == 0) {
            (void)vxd_dag_atomic_add(&worker->pass->state->n_visits, worker->n_visits);
        }
        worker->n_visits = 0;
    }
}

/* Cubes of a stage's height, or of one below in a warp's own rows, and where the next ones go. */
template <class Store, class Editor>
VXD_DAG_DEVICE void vxd_dag_set_span(const struct vxd_dag_worker<Store, Editor> *worker,
                                     const struct vxd_dag_stage *stage, int height,
                                     uint32_t begin, uint32_t n, uint64_t weight,
                                     struct vxd_dag_span<typename Editor::state> *span)
{
    typedef struct vxd_dag_row<typename Editor::state> row_t;
    const bool is_local = stage->kind == VXD_DAG_STAGE_ROWS;

    span->rows = is_local ? worker->desk->rows : (row_t *)worker->pass->cubes;
    span->is_local = is_local;
    span->height = height;
    span->begin = is_local ? vxd_dag_local_begin(stage->height, height) : begin;
    span->n = n;
    span->begin_below = is_local ? vxd_dag_local_begin(stage->height, height - 1)
                                 : stage->cubes + stage->n_cubes;
    span->weight = weight;
    span->pairs.local = is_local ? worker->desk->pairs + span->begin_below : NULL;
    span->pairs.n = &worker->pass->state->n_pairs[height - 1];
    span->pairs.begin = stage->pairs + stage->n_pairs;
}

/* A job of a stage, by all lanes of a warp: cubes of a height to be opened or closed, or a row. The
 * three are one function, as code that is not in the caches yet takes longer than it runs. */
template <class Store, class Editor>
VXD_DAG_DEVICE void vxd_dag_run_cubes(struct vxd_dag_worker<Store, Editor> *worker,
                                      const struct vxd_dag_stage *stage, uint32_t begin,
                                      uint32_t n)
{
    typedef struct vxd_dag_row<typename Editor::state> row_t;
    const struct vxd_dag_pass *pass = worker->pass;
    const bool is_row = stage->kind == VXD_DAG_STAGE_ROWS;
    row_t *const all = (row_t *)pass->cubes;
    row_t *const rows = is_row ? worker->desk->rows : all;
    const int lowest = is_row ? VXD_DAG_LEAF_HEIGHT + 1 : stage->height;
    const uint64_t weight = is_row ? vxd_dag_weight(pass->cube_weights, begin) : 1;
    uint32_t n_at = n << 8 * (stage->height - lowest); /* open cubes by height */
    uint32_t n_pairs_at = 0;
    uint32_t n_visits = 0;
    bool has_room = true;

    if (is_row) {
        vxd_dag_copy_row(&all[begin], &rows[0]);
    }
    for (int height = stage->height;
         height >= lowest && stage->kind != VXD_DAG_STAGE_CLOSE && has_room; height--) {
        const int shift = 8 * (height - lowest);
        const uint32_t n_here = n_at >> shift & 0xffu;
        struct vxd_dag_span<typename Editor::state> span;
        struct vxd_dag_found found;

        vxd_dag_set_span(worker, stage, height, begin, n_here, weight, &span);
        found = vxd_dag_open_cubes<Store>(pass, *worker->editor, worker->board,
                                          worker->desk, &span, 0, &worker->spare);
        n_visits += n_here * 8;
        has_room = !found.has_failed;
        if (height > lowest) {
            n_at |= found.n_rows << (shift - 8);
            n_pairs_at |= found.n_pairs << 8 * (height - 1 - VXD_DAG_LEAF_HEIGHT);
        }
    }
    if (is_row) {
        vxd_dag_open_local_pairs(pass, worker->board, worker->desk->pairs, weight,
                                 stage->height, n_pairs_at);
    }
    for (int height = lowest;
         height <= stage->height && stage->kind != VXD_DAG_STAGE_OPEN && has_room;
         height++) {
        has_room = vxd_dag_close_cubes<Store, Editor>(
            pass, worker->board, worker->desk, rows, is_row, height,
            is_row ? vxd_dag_local_begin(stage->height, height) : begin,
            n_at >> 8 * (height - lowest) & 0xffu, &worker->spare);
    }
    if (is_row && has_room) {
        vxd_dag_copy_row(&rows[0], &all[begin]);
    } else if (!has_room && vxd_dag_lane() == 0) {
        (void)atomicOr(&worker->board->has_failed, 1u);
    }
    if (stage->kind != VXD_DAG_STAGE_CLOSE) {
        vxd_dag_count_visits(worker, n_visits);
    }
}

/* Pairs of a height, from `begin` on: all opened, or one with all that is below it. */
VXD_DAG_DEVICE void vxd_dag_run_pairs(const struct vxd_dag_pass *pass,
                                      struct vxd_dag_board *board, uint64_t *local,
                                      const struct vxd_dag_stage *stage, uint32_t begin,
                                      uint32_t n)
{
    const uint64_t *weights =
        pass->pair_weights != NULL ? pass->pair_weights + begin : NULL;
    const struct vxd_dag_pairs_to to = {NULL, &pass->state->n_pairs[stage->height - 1],
                                        stage->pairs + stage->n_pairs};
    uint32_t n_local = 0;

    if (stage->kind == VXD_DAG_STAGE_OPEN) {
        vxd_dag_open_pairs(pass, board, pass->pairs + begin, weights, 1, n, stage->height,
                           &to, &n_local);
        return;
    }
    if (vxd_dag_lane() == 0) {
        local[0] = pass->pairs[begin];
    }
    __syncwarp();
    vxd_dag_open_local_pairs(pass, board, local, vxd_dag_weight(weights, 0),
                             stage->height,
                             1u << 8 * (stage->height - VXD_DAG_LEAF_HEIGHT));
}

/* The jobs of a stage are numbered: those of cubes, then those of pairs. */
struct vxd_dag_jobs {
    uint32_t n_rows; /* a job */
    uint32_t n_cubes;
    uint32_t n;
    uint32_t next; /* of this warp */
    uint32_t n_warps;
};

VXD_DAG_DEVICE struct vxd_dag_jobs vxd_dag_jobs_of(const struct vxd_dag_stage *stage)
{
    const uint32_t n_warps = blockDim.x / 32;
    const uint32_t warp = threadIdx.x / 32;
    struct vxd_dag_jobs jobs;

    jobs.n_rows = stage->kind == VXD_DAG_STAGE_ROWS ? 1 : VXD_DAG_JOB_ROWS;
    jobs.n_cubes = (stage->n_cubes + jobs.n_rows - 1) / jobs.n_rows;
    jobs.n = jobs.n_cubes + (stage->n_pairs + jobs.n_rows - 1) / jobs.n_rows;
    /* Few jobs go to a warp each of many blocks. */
    jobs.next = stage->is_grid ? warp * gridDim.x + blockIdx.x : warp;
    jobs.n_warps = stage->is_grid ? n_warps * gridDim.x : n_warps;
    return jobs;
}

/* By all lanes of a warp: the job after this one. Rows are dealt out, as some have more below them
 * than others. */
VXD_DAG_DEVICE void vxd_dag_jobs_next(const struct vxd_dag_pass *pass,
                                      const struct vxd_dag_stage *stage,
                                      struct vxd_dag_jobs *jobs)
{
    uint32_t n_dealt = 0;

    if (stage->kind != VXD_DAG_STAGE_ROWS || jobs->n <= jobs->n_warps) {
        jobs->next += jobs->n_warps;
        return;
    }
    if (vxd_dag_lane() == 0) {
        n_dealt = atomicAdd(&pass->state->n_dealt, 1u);
    }
    jobs->next = jobs->n_warps + __shfl_sync(UINT32_MAX, n_dealt, 0);
}

/* Whether a warp is to go on with a stage: without a fault, or to count what is needed. The first
 * block does not ask anew while it is alone: it would wait for the answer at each height. */
template <class Store, class Editor>
VXD_DAG_DEVICE bool vxd_dag_goes_on(const struct vxd_dag_worker<Store, Editor> *worker,
                                    const struct vxd_dag_stage *stage)
{
    const struct vxd_dag_pass *pass = worker->pass;
    const uint32_t counts = VXD_DAG_NO_CUBES | VXD_DAG_NO_PAIRS;
    uint32_t fault;
    bool is_over;

    if (stage->kind == VXD_DAG_STAGE_CLOSE) {
        return __all_sync(UINT32_MAX, !worker->is_bad);
    }
    if (!stage->is_grid) {
        return true;
    }
    fault = vxd_dag_load_now(&pass->state->fault);
    is_over = vxd_dag_load_now64(&pass->state->n_visits) > pass->max_visits;
    if (is_over && (fault & VXD_DAG_NO_CUBES) == 0 && vxd_dag_lane() == 0) {
        vxd_dag_raise(pass, VXD_DAG_NO_CUBES);
    }
    return __all_sync(UINT32_MAX,
                      !is_over && (fault == 0 || (stage->kind == VXD_DAG_STAGE_OPEN &&
                                                  (fault & ~counts) == 0)));
}

template <class Store, class Editor>
VXD_DAG_DEVICE void vxd_dag_run_stage(struct vxd_dag_worker<Store, Editor> *worker,
                                      const struct vxd_dag_stage *stage)
{
    const struct vxd_dag_pass *pass = worker->pass;
    struct vxd_dag_jobs jobs = vxd_dag_jobs_of(stage);

    for (; jobs.next < jobs.n && vxd_dag_goes_on(worker, stage);
         vxd_dag_jobs_next(pass, stage, &jobs)) {
        if (jobs.next < jobs.n_cubes) {
            const uint32_t begin = jobs.next * jobs.n_rows;
            const uint32_t left = stage->n_cubes - begin;

            vxd_dag_run_cubes(worker, stage, stage->cubes + begin,
                              left < jobs.n_rows ? left : jobs.n_rows);
        } else {
            const uint32_t begin = (jobs.next - jobs.n_cubes) * jobs.n_rows;
            const uint32_t left = stage->n_pairs - begin;

            vxd_dag_run_pairs(pass, worker->board, worker->desk->pairs, stage,
                              stage->pairs + begin,
                              left < jobs.n_rows ? left : jobs.n_rows);
        }
        __syncwarp();
    }
}

/* The pass -------------------------------------------------------------------------------- */

/* What a pass with a fault would need, as far as it came; by one thread after all others. */
template <class Store>
static __device__ void vxd_dag_tell_needs(const struct vxd_dag_pass *pass, uint32_t fault)
{
    const struct vxd_dag_pass_state *state = pass->state;
    struct vxd_dag_needs *needs = &pass->progress->needs;
    const int row_height = vxd_dag_row_height(pass);
    const uint64_t n_visits = vxd_dag_load_now64(&state->n_visits);
    uint64_t n_cubes = 0;
    uint64_t n_pairs = 0;

    for (int i = 0; i < VXD_DAG_N_HEIGHTS; i++) {
        n_cubes += vxd_dag_load_now64(&state->n_cubes[i]);
        n_pairs += vxd_dag_load_now64(&state->n_pairs[i]);
    }
    needs->n_cubes = (fault & VXD_DAG_NO_CUBES) == 0 ? 0
                     : n_visits > pass->max_visits   ? n_visits
                                                     : n_cubes;
    needs->n_pairs = (fault & VXD_DAG_NO_PAIRS) != 0 ? n_pairs : 0;
    Store::tell_needs(pass, fault, vxd_dag_load_now(&state->n_dealt),
                      vxd_dag_load_now64(&state->n_cubes[row_height]),
                      n_cubes - vxd_dag_load_now64(&state->n_cubes[row_height]));
}

/* By one thread after all others. */
template <class Store, class Editor>
static __device__ void vxd_dag_end_pass(const struct vxd_dag_pass *pass)
{
    typedef struct vxd_dag_row<typename Editor::state> row_t;
    struct vxd_dag_progress *progress = pass->progress;
    const uint32_t fault = vxd_dag_load_now(&pass->state->fault);

    if (fault != 0) {
        progress->fault = fault;
        vxd_dag_tell_needs<Store>(pass, fault);
    } else {
        progress->root = ((const row_t *)pass->cubes)[0].ref;
    }
    Store::end(pass);
}

/* The root's cube, which is always gone into, by one thread. */
template <class Editor>
static __device__ void vxd_dag_open_root(const struct vxd_dag_pass *pass,
                                         const Editor &editor)
{
    typedef struct vxd_dag_row<typename Editor::state> row_t;
    row_t *row = (row_t *)pass->cubes;

    row->place = 0;
    row->ref = pass->progress->root;
    editor.begin(&pass->view, row->ref, &row->state);
    if (pass->cube_weights != NULL) {
        pass->cube_weights[0] = 1;
    }
    pass->state->n_cubes[pass->view.depth] = 1;
    pass->state->n_items = pass->store->n_items[VXD_DAG_LEAF] +
                           pass->store->n_items[VXD_DAG_INNER] +
                           pass->store->n_items[VXD_DAG_BLOCK];
}

/* Bytes of a block's shared memory. */
template <class Editor> constexpr size_t vxd_dag_shared_bytes(void)
{
    return sizeof(struct vxd_dag_board) +
           sizeof(struct vxd_dag_desk<Editor>) * (VXD_DAG_TEAM_THREADS / 32);
}

/* Blocks that a multiprocessor of 227 KiB has room for, at most VXD_DAG_TEAM_BLOCKS. */
template <class Editor> constexpr int vxd_dag_team_blocks(void)
{
    return (227 << 10) / (vxd_dag_shared_bytes<Editor>() + 1024) < VXD_DAG_TEAM_BLOCKS
               ? (int)((227 << 10) / (vxd_dag_shared_bytes<Editor>() + 1024))
               : VXD_DAG_TEAM_BLOCKS;
}

/* The whole pass, by all threads of a cooperative grid, with that much dynamic shared memory. */
template <class Store, class Editor>
static __device__ __forceinline__ void vxd_dag_run_pass(const struct vxd_dag_pass *pass,
                                                        const Editor &editor)
{
    extern __shared__ uint4 vxd_dag_shared[];
    typedef struct vxd_dag_row<typename Editor::state> row_t;
    struct vxd_dag_worker<Store, Editor> worker;
    struct vxd_dag_stage stage = {VXD_DAG_STAGE_MEET, true, 0, 0, 0, 0, 0, 0, 0};
    long long begin = clock64();

    /* Of passes before this one; changes only once all blocks of this one have met. */
    if (vxd_dag_load_now(&pass->progress->fault) != 0) {
        return;
    }
    worker.pass = pass;
    worker.editor = &editor;
    worker.board = (struct vxd_dag_board *)(void *)vxd_dag_shared;
    worker.desk = (struct vxd_dag_desk<Editor> *)((char *)vxd_dag_shared +
                                                  sizeof(struct vxd_dag_board)) +
                  threadIdx.x / 32;
    worker.spare = Store::no_spare();
    worker.n_visits = 0;
    worker.visits_at_once = vxd_dag_visits_at_once(pass);
    worker.is_bad = false;
    vxd_dag_board_clear(worker.board);
    if (vxd_dag_is_first_block()) {
        if (threadIdx.x == 0) {
            vxd_dag_open_root(pass, editor);
        }
        __syncthreads();
        vxd_dag_stage_top(pass, &stage);
        if (stage.height > vxd_dag_row_height(pass)) {
            stage.kind = VXD_DAG_STAGE_OPEN;
            stage.is_grid = false;
        } else if (threadIdx.x == 0) {
            pass->state->grid_height = (uint32_t)stage.height;
        }
    }
    while (stage.kind != VXD_DAG_STAGE_END) {
        if (stage.kind == VXD_DAG_STAGE_JOIN) {
            /* Rows that had no room are not there. */
            if (!vxd_dag_has_fault(pass)) {
                vxd_dag_join_likes(pass, (row_t *)pass->cubes, stage.cubes, stage.n_cubes,
                                   threadIdx.x +
                                       (stage.is_grid ? blockIdx.x * blockDim.x : 0),
                                   blockDim.x * (stage.is_grid ? gridDim.x : 1));
            }
        } else if (stage.kind != VXD_DAG_STAGE_MEET) {
            vxd_dag_run_stage(&worker, &stage);
        }
        if (stage.is_grid) {
            cooperative_groups::this_grid().sync();
            worker.is_bad = vxd_dag_has_fault(pass);
        } else {
            __syncthreads();
            worker.is_bad = worker.is_bad || worker.board->has_failed != 0;
        }
        if (vxd_dag_is_first_block() && threadIdx.x == 0) {
            const long long end = clock64();

            worker.board->cycles[vxd_dag_stage_name(&stage)] += (uint64_t)(end - begin);
            begin = end;
        }
        vxd_dag_stage_next(pass, &stage);
    }
    vxd_dag_board_add(pass, worker.board, pass->counts_changes);
    if (vxd_dag_is_first_block() && threadIdx.x == 0) {
        for (int i = 0; i < VXD_DAG_N_STAGES; i++) {
            pass->progress->stage_cycles[i] += worker.board->cycles[i];
        }
        vxd_dag_end_pass<Store, Editor>(pass);
    }
}

/* What changed from the edit's first root to its last, by all threads of a cooperative grid: pairs
 * alone. */
static __device__ __forceinline__ void vxd_dag_run_change(const struct vxd_dag_pass *pass)
{
    __shared__ struct vxd_dag_board board;
    __shared__ uint64_t lists[VXD_DAG_TEAM_THREADS / 32][VXD_DAG_LOCAL_ROWS];
    const bool is_first = vxd_dag_is_first_block() && threadIdx.x == 0;
    struct vxd_dag_progress *progress = pass->progress;
    struct vxd_dag_stage stage = {VXD_DAG_STAGE_OPEN, true, 0, 0, 0, 0, 0, 0, 0};

    if (vxd_dag_load_now(&progress->fault) != 0) {
        return;
    }
    vxd_dag_board_clear(&board);
    if (is_first) {
        pass->pairs[0] = (uint64_t)progress->first_root << 32 | progress->root;
        if (pass->pair_weights != NULL) {
            pass->pair_weights[0] = 1;
        }
        pass->state->n_pairs[pass->view.depth] = 1;
    }
    cooperative_groups::this_grid().sync();
    vxd_dag_stage_top(pass, &stage);
    for (; stage.kind != VXD_DAG_STAGE_END;) {
        struct vxd_dag_jobs jobs;

        stage.kind = stage.height > vxd_dag_row_height(pass) ? VXD_DAG_STAGE_OPEN
                                                             : VXD_DAG_STAGE_ROWS;
        jobs = vxd_dag_jobs_of(&stage);
        for (; jobs.next < jobs.n; vxd_dag_jobs_next(pass, &stage, &jobs)) {
            const uint32_t begin = jobs.next * jobs.n_rows;
            const uint32_t left = stage.n_pairs - begin;

            vxd_dag_run_pairs(pass, &board, lists[threadIdx.x / 32], &stage,
                              stage.pairs + begin,
                              left < jobs.n_rows ? left : jobs.n_rows);
        }
        cooperative_groups::this_grid().sync();
        if (stage.kind == VXD_DAG_STAGE_ROWS) {
            stage.kind = VXD_DAG_STAGE_END;
        } else {
            vxd_dag_stage_down(pass, &stage);
        }
    }
    vxd_dag_board_add(pass, &board, true);
    if (is_first && vxd_dag_has_fault(pass)) {
        progress->fault = vxd_dag_load_now(&pass->state->fault);
        for (int i = 0; i < VXD_DAG_N_HEIGHTS; i++) {
            progress->needs.n_pairs += vxd_dag_load_now64(&pass->state->n_pairs[i]);
        }
    }
}

#endif
