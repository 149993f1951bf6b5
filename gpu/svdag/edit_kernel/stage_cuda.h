// SPDX-License-Identifier: Apache-2.0
/* The stages of a pass (pass_cuda.h), one after the other with a barrier between, and where the
 * rows of each are: told by counts of rows alone, which no stage changes that comes after. */
#ifndef VXD_GPU_SVDAG_EDIT_KERNEL_STAGE_CUDA_H
#define VXD_GPU_SVDAG_EDIT_KERNEL_STAGE_CUDA_H

#include "gpu/svdag/edit_kernel/frontier_cuda.h"

enum vxd_svdag_stage_kind {
    VXD_SVDAG_STAGE_PATH, /* opens the rows of a path */
    VXD_SVDAG_STAGE_EXPAND,
    VXD_SVDAG_STAGE_DEDUP,
    VXD_SVDAG_STAGE_HANDOVER,
    VXD_SVDAG_STAGE_SUBTREES,
    VXD_SVDAG_STAGE_REDUCE,
    VXD_SVDAG_STAGE_END
};

/* A stage, and where the rows of its height are. */
struct vxd_svdag_stage {
    enum vxd_svdag_stage_kind kind;
    bool is_grid;
    int height;
    uint32_t entries;
    uint32_t n_entries;
    uint32_t pairs;
    uint32_t n_pairs;
    /* On the way up: how many cubes the height has that is this lane's number, and which heights
     * have many. */
    uint32_t n_reduced;
    uint32_t many;
    int subtree_height; /* of the stage ROWS */
};

/* Stages ---------------------------------------------------------------------------------- */

/* Rows of a height that are there, of those wanted. */
VXD_SVDAG_DEVICE uint32_t vxd_svdag_entries_kept(uint64_t n_wanted, uint32_t begin,
                                                 uint32_t capacity)
{
    return n_wanted < capacity - begin ? (uint32_t)n_wanted : capacity - begin;
}

/* As the block found alone, or the pass has them (`alone` is NULL). */
VXD_SVDAG_DEVICE void vxd_svdag_count_entries(const struct vxd_svdag_kernel_args *args,
                                              const struct vxd_svdag_level_counts *alone,
                                              struct vxd_svdag_stage *stage)
{
    const struct vxd_svdag_kernel_state *state = args->state;

    stage->n_entries = vxd_svdag_entries_kept(
        alone != NULL ? alone[stage->height & 1].n_entries
                      : vxd_svdag_load_volatile64(&state->n_entries[stage->height]),
        stage->entries, args->entries_capacity);
    stage->n_pairs = vxd_svdag_entries_kept(
        alone != NULL ? alone[stage->height & 1].n_pairs
                      : vxd_svdag_load_volatile64(&state->n_pairs[stage->height]),
        stage->pairs, args->pairs_capacity);
}

VXD_SVDAG_DEVICE void vxd_svdag_stage_top(const struct vxd_svdag_kernel_args *args,
                                          struct vxd_svdag_stage *stage)
{
    stage->height = args->view.depth;
    stage->entries = 0;
    stage->pairs = 0;
    vxd_svdag_count_entries(args, NULL, stage);
}

/* To the next height, once the team has opened this one and met. */
VXD_SVDAG_DEVICE void vxd_svdag_stage_down(const struct vxd_svdag_kernel_args *args,
                                           const struct vxd_svdag_level_counts *alone,
                                           struct vxd_svdag_stage *stage)
{
    stage->entries += stage->n_entries;
    stage->pairs += stage->n_pairs;
    stage->height--;
    vxd_svdag_count_entries(args, alone, stage);
}

/* By one thread of the first block, which has opened what it opens: tells the grid where to go on. */
VXD_SVDAG_DEVICE void vxd_svdag_hand_over(const struct vxd_svdag_kernel_args *args,
                                          const struct vxd_svdag_stage *stage)
{
    args->state->handover = {(uint32_t)stage->height, stage->entries, stage->n_entries,
                             stage->pairs, stage->n_pairs};
}

/* After the rows, or a height that was closed: the one above. Those with many rows, and all below
 * them, are the grid's. By all lanes of a warp. */
VXD_SVDAG_DEVICE void vxd_svdag_stage_up(const struct vxd_svdag_kernel_args *args,
                                         const struct vxd_svdag_batches *batches,
                                         struct vxd_svdag_stage *stage)
{
    const int depth = args->view.depth;

    if (stage->kind == VXD_SVDAG_STAGE_SUBTREES) {
        stage->n_reduced = vxd_svdag_lane() < VXD_SVDAG_N_HEIGHTS
                               ? batches->n_reduced[vxd_svdag_lane()]
                               : 0;
        stage->many = __ballot_sync(UINT32_MAX, stage->n_reduced > VXD_SVDAG_FEW_ENTRIES);
    }
    stage->kind = VXD_SVDAG_STAGE_REDUCE;
    stage->height++;
    stage->is_grid = stage->many >> stage->height != 0;
    if (stage->height > depth || (!stage->is_grid && !vxd_svdag_is_first_block())) {
        stage->kind = VXD_SVDAG_STAGE_END;
        return;
    }
    /* Of a pass without a fault: else nothing is closed. */
    stage->n_entries = __shfl_sync(UINT32_MAX, stage->n_reduced, stage->height);
    stage->entries -= stage->n_entries;
    stage->n_pairs = 0;
}

/* After rows that were opened at once: those below them. */
VXD_SVDAG_DEVICE void vxd_svdag_path_after(const struct vxd_svdag_path *path,
                                           struct vxd_svdag_stage *stage)
{
    stage->kind = VXD_SVDAG_STAGE_PATH;
    stage->height = path->height;
    stage->entries = path->n_expanded;
    stage->n_entries = path->n_entries;
    stage->n_pairs = path->n_pairs;
}

/* By all threads of a block, after a stage of the grid: what others found, one request a block for
 * each: those of all go to one place. Which rows the next stage has, and whether there was a
 * fault. */
VXD_SVDAG_DEVICE void vxd_svdag_fetch(const struct vxd_svdag_kernel_args *args,
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
    } else if (stage->kind == VXD_SVDAG_STAGE_HANDOVER && lane < n_handover) {
        (&batches->handover.height)[lane] =
            vxd_svdag_load_volatile(&state->handover.height + lane);
    } else if (stage->kind == VXD_SVDAG_STAGE_SUBTREES && lane < VXD_SVDAG_N_HEIGHTS) {
        batches->n_reduced[lane] =
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
    case VXD_SVDAG_STAGE_PATH:
        break; /* it is at what comes next (vxd_svdag_path_after) */
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
    case VXD_SVDAG_STAGE_HANDOVER:
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
        stage->kind = VXD_SVDAG_STAGE_HANDOVER;
        stage->is_grid = true;
        if (threadIdx.x == 0) {
            vxd_svdag_hand_over(args, stage);
        }
    }
}

/* What a stage is to who measures. */
VXD_SVDAG_DEVICE enum vxd_svdag_edit_stage
vxd_svdag_stage_name(const struct vxd_svdag_stage *stage)
{
    switch (stage->kind) {
    case VXD_SVDAG_STAGE_SUBTREES:
        return VXD_SVDAG_EDIT_SUBTREES;
    case VXD_SVDAG_STAGE_REDUCE:
        return stage->is_grid ? VXD_SVDAG_REDUCE_BY_GRID : VXD_SVDAG_REDUCE_BY_BLOCK;
    case VXD_SVDAG_STAGE_PATH:
    case VXD_SVDAG_STAGE_EXPAND:
    case VXD_SVDAG_STAGE_DEDUP:
    case VXD_SVDAG_STAGE_HANDOVER:
    case VXD_SVDAG_STAGE_END:
        break;
    }
    return stage->is_grid ? VXD_SVDAG_EXPAND_BY_GRID : VXD_SVDAG_EXPAND_BY_BLOCK;
}

#endif
