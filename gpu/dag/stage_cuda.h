// SPDX-License-Identifier: Apache-2.0
/* The stages of a pass (pass_cuda.h), one after the other with a barrier between, and where the rows
 * of each are: told by counts of rows alone, which no stage changes that comes after. */
#ifndef VXD_GPU_DAG_STAGE_CUDA_H
#define VXD_GPU_DAG_STAGE_CUDA_H

#include "gpu/dag/rows_cuda.h"

/* Rows of a height up to which the first block goes on alone. */
#define VXD_DAG_FEW_ROWS 32u

enum vxd_dag_stage_kind {
    VXD_DAG_STAGE_PATH, /* opens the rows of a path, or a fan */
    VXD_DAG_STAGE_OPEN,
    VXD_DAG_STAGE_JOIN,
    VXD_DAG_STAGE_MEET,
    VXD_DAG_STAGE_ROWS,
    VXD_DAG_STAGE_CLOSE,
    VXD_DAG_STAGE_CLOSE_PATH,
    VXD_DAG_STAGE_END
};

/* A stage, and where the rows of its height are. */
struct vxd_dag_stage {
    enum vxd_dag_stage_kind kind;
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
    int chain;      /* the lowest height from which on up each has one cube */
    int row_height; /* of the stage ROWS */
    int top;        /* of CLOSE: up to which height the block goes in one stage */
};

VXD_DAG_DEVICE bool vxd_dag_stage_is_up(enum vxd_dag_stage_kind kind)
{
    return kind == VXD_DAG_STAGE_CLOSE || kind == VXD_DAG_STAGE_CLOSE_PATH;
}

/* Stages ---------------------------------------------------------------------------------- */

/* Rows of a height that are there, of those wanted. */
VXD_DAG_DEVICE uint32_t vxd_dag_rows_here(uint64_t n_wanted, uint32_t begin,
                                          uint32_t capacity)
{
    return n_wanted < capacity - begin ? (uint32_t)n_wanted : capacity - begin;
}

/* As the block found alone, or the pass has them (`alone` is NULL). */
VXD_DAG_DEVICE void vxd_dag_count_rows(const struct vxd_dag_pass *pass,
                                       const struct vxd_dag_below *alone,
                                       struct vxd_dag_stage *stage)
{
    const struct vxd_dag_pass_state *state = pass->state;

    stage->n_cubes = vxd_dag_rows_here(
        alone != NULL ? alone[stage->height & 1].n_cubes
                      : vxd_dag_load_now64(&state->n_cubes[stage->height]),
        stage->cubes, pass->cubes_capacity);
    stage->n_pairs = vxd_dag_rows_here(
        alone != NULL ? alone[stage->height & 1].n_pairs
                      : vxd_dag_load_now64(&state->n_pairs[stage->height]),
        stage->pairs, pass->pairs_capacity);
}

VXD_DAG_DEVICE void vxd_dag_stage_top(const struct vxd_dag_pass *pass,
                                      struct vxd_dag_stage *stage)
{
    stage->height = pass->view.depth;
    stage->cubes = 0;
    stage->pairs = 0;
    vxd_dag_count_rows(pass, NULL, stage);
}

/* To the next height, once the team has opened this one and met. */
VXD_DAG_DEVICE void vxd_dag_stage_down(const struct vxd_dag_pass *pass,
                                       const struct vxd_dag_below *alone,
                                       struct vxd_dag_stage *stage)
{
    stage->cubes += stage->n_cubes;
    stage->pairs += stage->n_pairs;
    stage->height--;
    vxd_dag_count_rows(pass, alone, stage);
}

/* By one thread of the first block, which has opened what it opens: tells the grid where to go on. */
VXD_DAG_DEVICE void vxd_dag_tell_meeting(const struct vxd_dag_pass *pass,
                                         const struct vxd_dag_stage *stage)
{
    pass->state->meeting = {(uint32_t)stage->height, stage->cubes, stage->n_cubes,
                            stage->pairs, stage->n_pairs};
}

/* By the grid, once all have met; by all lanes of a warp, as one request of each: those of all warps
 * go to one place. */
VXD_DAG_DEVICE void vxd_dag_stage_meet(const struct vxd_dag_pass *pass,
                                       struct vxd_dag_stage *stage)
{
    const struct vxd_dag_meeting *meeting = &pass->state->meeting;
    const uint32_t n = sizeof *meeting / sizeof(uint32_t);
    const uint32_t word =
        vxd_dag_load_now(&meeting->height + (vxd_dag_lane() < n ? vxd_dag_lane() : 0));

    stage->height = (int)__shfl_sync(UINT32_MAX, word, 0);
    stage->cubes = __shfl_sync(UINT32_MAX, word, 1);
    stage->n_cubes = __shfl_sync(UINT32_MAX, word, 2);
    stage->pairs = __shfl_sync(UINT32_MAX, word, 3);
    stage->n_pairs = __shfl_sync(UINT32_MAX, word, 4);
}

/* After the rows, or a height that was closed: the one above. Those with many rows, and all below
 * them, are the grid's. By all lanes of a warp. */
VXD_DAG_DEVICE void vxd_dag_stage_up(const struct vxd_dag_pass *pass,
                                     struct vxd_dag_stage *stage)
{
    const int depth = pass->view.depth;

    if (stage->kind == VXD_DAG_STAGE_ROWS) {
        stage->n_closed =
            vxd_dag_lane() < VXD_DAG_N_HEIGHTS
                ? (uint32_t)vxd_dag_load_now64(&pass->state->n_cubes[vxd_dag_lane()])
                : 0;
        stage->many = __ballot_sync(UINT32_MAX, stage->n_closed > VXD_DAG_FEW_ROWS);
        stage->chain =
            32 - __clz((int)__ballot_sync(UINT32_MAX, vxd_dag_lane() <= (uint32_t)depth &&
                                                          stage->n_closed != 1));
    }
    stage->kind = VXD_DAG_STAGE_CLOSE;
    stage->height++;
    stage->is_grid = stage->many >> stage->height != 0;
    if (stage->height > depth || (!stage->is_grid && !vxd_dag_is_first_block())) {
        stage->kind = VXD_DAG_STAGE_END;
        return;
    }
    /* Of a pass without a fault: else nothing is closed. */
    stage->n_cubes = __shfl_sync(UINT32_MAX, stage->n_closed, stage->height);
    stage->cubes -= stage->n_cubes;
    stage->n_pairs = 0;
    stage->top = stage->height;
}

/* After a stage that closed more heights than its own: it was the last one. By all lanes of a warp. */
VXD_DAG_DEVICE void vxd_dag_stage_to_top(struct vxd_dag_stage *stage)
{
    while (stage->height < stage->top) {
        stage->height++;
        stage->n_cubes = __shfl_sync(UINT32_MAX, stage->n_closed, stage->height);
        stage->cubes -= stage->n_cubes;
    }
}

/* After rows that were opened at once: those below them, which may have been opened too. */
VXD_DAG_DEVICE void vxd_dag_path_after(const struct vxd_dag_path *path,
                                       struct vxd_dag_stage *stage)
{
    stage->kind = stage->n_cubes > path->n_rows ? VXD_DAG_STAGE_OPEN : VXD_DAG_STAGE_PATH;
    stage->height = path->height;
    stage->cubes = path->n_rows;
    stage->n_cubes = path->n_cubes;
}

/* The next stage of a block, after the barrier behind this one; `below` is what the first block found
 * alone. */
VXD_DAG_DEVICE void vxd_dag_stage_next(const struct vxd_dag_pass *pass,
                                       const struct vxd_dag_below *below,
                                       struct vxd_dag_stage *stage)
{
    const struct vxd_dag_below *alone = stage->is_grid ? NULL : below;
    bool is_few;

    switch (stage->kind) {
    case VXD_DAG_STAGE_PATH:
        break; /* it is at what comes next (vxd_dag_path_after) */
    case VXD_DAG_STAGE_OPEN:
        if (pass->signs.n > 0) {
            stage->kind = VXD_DAG_STAGE_JOIN;
            return;
        }
        vxd_dag_stage_down(pass, alone, stage);
        break;
    case VXD_DAG_STAGE_JOIN:
        vxd_dag_stage_down(pass, alone, stage);
        break;
    case VXD_DAG_STAGE_MEET:
        vxd_dag_stage_meet(pass, stage);
        break;
    case VXD_DAG_STAGE_ROWS:
    case VXD_DAG_STAGE_CLOSE:
        vxd_dag_stage_up(pass, stage);
        return;
    case VXD_DAG_STAGE_CLOSE_PATH:
    case VXD_DAG_STAGE_END:
        stage->kind = VXD_DAG_STAGE_END;
        return;
    }
    is_few = stage->n_cubes <= VXD_DAG_FEW_ROWS && stage->n_pairs <= VXD_DAG_FEW_ROWS;
    stage->kind =
        stage->height > stage->row_height ? VXD_DAG_STAGE_OPEN : VXD_DAG_STAGE_ROWS;
    if (!stage->is_grid && (stage->height == stage->row_height || !is_few)) {
        stage->kind = VXD_DAG_STAGE_MEET;
        stage->is_grid = true;
        if (threadIdx.x == 0) {
            vxd_dag_tell_meeting(pass, stage);
        }
    }
}

/* What a stage is to who measures. */
VXD_DAG_DEVICE enum vxd_dag_edit_stage
vxd_dag_stage_name(const struct vxd_dag_stage *stage)
{
    switch (stage->kind) {
    case VXD_DAG_STAGE_ROWS:
        return VXD_DAG_EDIT_ROWS;
    case VXD_DAG_STAGE_CLOSE:
    case VXD_DAG_STAGE_CLOSE_PATH:
        return stage->is_grid ? VXD_DAG_CLOSE_BY_GRID : VXD_DAG_CLOSE_BY_BLOCK;
    case VXD_DAG_STAGE_PATH:
    case VXD_DAG_STAGE_OPEN:
    case VXD_DAG_STAGE_JOIN:
    case VXD_DAG_STAGE_MEET:
    case VXD_DAG_STAGE_END:
        break;
    }
    return stage->is_grid ? VXD_DAG_OPEN_BY_GRID : VXD_DAG_OPEN_BY_BLOCK;
}

#endif
