// SPDX-License-Identifier: Apache-2.0
/* The stages of a pass (pass_cuda.h), one after the other with a barrier between, and where the
 * rows of each are: told by counts of rows alone, which no stage changes that comes after. */
#ifndef VXD_GPU_SVDAG_EDIT_KERNEL_STAGE_CUDA_H
#define VXD_GPU_SVDAG_EDIT_KERNEL_STAGE_CUDA_H

#include "gpu/svdag/edit_kernel/frontier_cuda.h"

enum vxd_svdag_stage_kind {
    VXD_SVDAG_STAGE_PATH, /* opens the rows of a path */
    VXD_SVDAG_STAGE_OPEN,
    VXD_SVDAG_STAGE_JOIN,
    VXD_SVDAG_STAGE_MEET,
    VXD_SVDAG_STAGE_ROWS,
    VXD_SVDAG_STAGE_CLOSE,
    VXD_SVDAG_STAGE_END
};

/* A stage, and where the rows of its height are. */
struct vxd_svdag_stage {
    enum vxd_svdag_stage_kind kind;
    bool is_grid;
    int height;
    uint32_t cubes;
    uint32_t n_cubes;
    uint32_t pairs;
    uint32_t n_pairs;
    /* On the way up: how many cubes the height has that is this lane's number, and which heights
     * have many. */
    uint32_t n_closed;
    uint32_t many;
    int row_height; /* of the stage ROWS */
};

/* Stages ---------------------------------------------------------------------------------- */

/* Rows of a height that are there, of those wanted. */
VXD_SVDAG_DEVICE uint32_t vxd_svdag_rows_here(uint64_t n_wanted, uint32_t begin,
                                              uint32_t capacity)
{
    return n_wanted < capacity - begin ? (uint32_t)n_wanted : capacity - begin;
}

/* As the block found alone, or the pass has them (`alone` is NULL). */
VXD_SVDAG_DEVICE void vxd_svdag_count_rows(const struct vxd_svdag_pass *pass,
                                           const struct vxd_svdag_below *alone,
                                           struct vxd_svdag_stage *stage)
{
    const struct vxd_svdag_pass_state *state = pass->state;

    stage->n_cubes = vxd_svdag_rows_here(
        alone != NULL ? alone[stage->height & 1].n_cubes
                      : vxd_svdag_load_now64(&state->n_cubes[stage->height]),
        stage->cubes, pass->cubes_capacity);
    stage->n_pairs = vxd_svdag_rows_here(
        alone != NULL ? alone[stage->height & 1].n_pairs
                      : vxd_svdag_load_now64(&state->n_pairs[stage->height]),
        stage->pairs, pass->pairs_capacity);
}

VXD_SVDAG_DEVICE void vxd_svdag_stage_top(const struct vxd_svdag_pass *pass,
                                          struct vxd_svdag_stage *stage)
{
    stage->height = pass->view.depth;
    stage->cubes = 0;
    stage->pairs = 0;
    vxd_svdag_count_rows(pass, NULL, stage);
}

/* To the next height, once the team has opened this one and met. */
VXD_SVDAG_DEVICE void vxd_svdag_stage_down(const struct vxd_svdag_pass *pass,
                                           const struct vxd_svdag_below *alone,
                                           struct vxd_svdag_stage *stage)
{
    stage->cubes += stage->n_cubes;
    stage->pairs += stage->n_pairs;
    stage->height--;
    vxd_svdag_count_rows(pass, alone, stage);
}

/* By one thread of the first block, which has opened what it opens: tells the grid where to go on. */
VXD_SVDAG_DEVICE void vxd_svdag_tell_meeting(const struct vxd_svdag_pass *pass,
                                             const struct vxd_svdag_stage *stage)
{
    pass->state->meeting = {(uint32_t)stage->height, stage->cubes, stage->n_cubes,
                            stage->pairs, stage->n_pairs};
}

/* After the rows, or a height that was closed: the one above. Those with many rows, and all below
 * them, are the grid's. By all lanes of a warp. */
VXD_SVDAG_DEVICE void vxd_svdag_stage_up(const struct vxd_svdag_pass *pass,
                                         const struct vxd_svdag_jobs *jobs,
                                         struct vxd_svdag_stage *stage)
{
    const int depth = pass->view.depth;

    if (stage->kind == VXD_SVDAG_STAGE_ROWS) {
        stage->n_closed =
            vxd_svdag_lane() < VXD_SVDAG_N_HEIGHTS ? jobs->n_closed[vxd_svdag_lane()] : 0;
        stage->many = __ballot_sync(UINT32_MAX, stage->n_closed > VXD_SVDAG_FEW_ROWS);
    }
    stage->kind = VXD_SVDAG_STAGE_CLOSE;
    stage->height++;
    stage->is_grid = stage->many >> stage->height != 0;
    if (stage->height > depth || (!stage->is_grid && !vxd_svdag_is_first_block())) {
        stage->kind = VXD_SVDAG_STAGE_END;
        return;
    }
    /* Of a pass without a fault: else nothing is closed. */
    stage->n_cubes = __shfl_sync(UINT32_MAX, stage->n_closed, stage->height);
    stage->cubes -= stage->n_cubes;
    stage->n_pairs = 0;
}

/* After rows that were opened at once: those below them. */
VXD_SVDAG_DEVICE void vxd_svdag_path_after(const struct vxd_svdag_path *path,
                                           struct vxd_svdag_stage *stage)
{
    stage->kind = VXD_SVDAG_STAGE_PATH;
    stage->height = path->height;
    stage->cubes = path->n_rows;
    stage->n_cubes = path->n_cubes;
    stage->n_pairs = path->n_pairs;
}

/* By all threads of a block, after a stage of the grid: what others found, one request a block for
 * each: those of all go to one place. Which rows the next stage has, and whether there was a
 * fault. */
VXD_SVDAG_DEVICE void vxd_svdag_fetch(const struct vxd_svdag_pass *pass,
                                      const struct vxd_svdag_stage *stage,
                                      struct vxd_svdag_jobs *jobs)
{
    const struct vxd_svdag_pass_state *state = pass->state;
    const uint32_t n_meeting = sizeof state->meeting / sizeof(uint32_t);
    const uint32_t lane = threadIdx.x;
    const int below = stage->height - 1;

    if (lane == 31) {
        jobs->fault = vxd_svdag_load_now(&state->fault);
        jobs->is_bad |= jobs->fault != 0;
    } else if (lane == 30) {
        jobs->n_visits_of_all = vxd_svdag_load_now64(&state->n_visits);
    } else if (stage->kind == VXD_SVDAG_STAGE_MEET && lane < n_meeting) {
        (&jobs->meeting.height)[lane] = vxd_svdag_load_now(&state->meeting.height + lane);
    } else if (stage->kind == VXD_SVDAG_STAGE_ROWS && lane < VXD_SVDAG_N_HEIGHTS) {
        jobs->n_closed[lane] = (uint32_t)vxd_svdag_load_now64(&state->n_cubes[lane]);
    } else if (stage->kind <= VXD_SVDAG_STAGE_JOIN && lane == 0) {
        jobs->n_below[below & 1].n_cubes = vxd_svdag_load_now64(&state->n_cubes[below]);
    } else if (stage->kind <= VXD_SVDAG_STAGE_JOIN && lane == 1) {
        jobs->n_below[below & 1].n_pairs = vxd_svdag_load_now64(&state->n_pairs[below]);
    }
    __syncthreads();
}

/* The next stage of a block, after the barrier behind this one. */
VXD_SVDAG_DEVICE void vxd_svdag_stage_next(const struct vxd_svdag_pass *pass,
                                           const struct vxd_svdag_jobs *jobs,
                                           struct vxd_svdag_stage *stage)
{
    bool is_few;

    switch (stage->kind) {
    case VXD_SVDAG_STAGE_PATH:
        break; /* it is at what comes next (vxd_svdag_path_after) */
    case VXD_SVDAG_STAGE_OPEN:
        if (pass->signs.n > 0) {
            stage->kind = VXD_SVDAG_STAGE_JOIN;
            return;
        }
        vxd_svdag_stage_down(pass, jobs->n_below, stage);
        break;
    case VXD_SVDAG_STAGE_JOIN:
        vxd_svdag_stage_down(pass, jobs->n_below, stage);
        break;
    case VXD_SVDAG_STAGE_MEET:
        stage->height = (int)jobs->meeting.height;
        stage->cubes = jobs->meeting.cubes;
        stage->n_cubes = jobs->meeting.n_cubes;
        stage->pairs = jobs->meeting.pairs;
        stage->n_pairs = jobs->meeting.n_pairs;
        break;
    case VXD_SVDAG_STAGE_ROWS:
    case VXD_SVDAG_STAGE_CLOSE:
        vxd_svdag_stage_up(pass, jobs, stage);
        return;
    case VXD_SVDAG_STAGE_END:
        stage->kind = VXD_SVDAG_STAGE_END;
        return;
    }
    is_few = stage->n_cubes <= VXD_SVDAG_FEW_ROWS && stage->n_pairs <= VXD_SVDAG_FEW_ROWS;
    stage->kind =
        stage->height > stage->row_height ? VXD_SVDAG_STAGE_OPEN : VXD_SVDAG_STAGE_ROWS;
    if (!stage->is_grid && (stage->height == stage->row_height || !is_few)) {
        stage->kind = VXD_SVDAG_STAGE_MEET;
        stage->is_grid = true;
        if (threadIdx.x == 0) {
            vxd_svdag_tell_meeting(pass, stage);
        }
    }
}

/* What a stage is to who measures. */
VXD_SVDAG_DEVICE enum vxd_svdag_edit_stage
vxd_svdag_stage_name(const struct vxd_svdag_stage *stage)
{
    switch (stage->kind) {
    case VXD_SVDAG_STAGE_ROWS:
        return VXD_SVDAG_EDIT_ROWS;
    case VXD_SVDAG_STAGE_CLOSE:
        return stage->is_grid ? VXD_SVDAG_CLOSE_BY_GRID : VXD_SVDAG_CLOSE_BY_BLOCK;
    case VXD_SVDAG_STAGE_PATH:
    case VXD_SVDAG_STAGE_OPEN:
    case VXD_SVDAG_STAGE_JOIN:
    case VXD_SVDAG_STAGE_MEET:
    case VXD_SVDAG_STAGE_END:
        break;
    }
    return stage->is_grid ? VXD_SVDAG_OPEN_BY_GRID : VXD_SVDAG_OPEN_BY_BLOCK;
}

#endif
