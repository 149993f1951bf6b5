// SPDX-License-Identifier: Apache-2.0
/* CUDA backend of coordinate sets derived by floors of powers of two, several at once: the levels
 * of a U-Net are all floors of its finest one, by 2, 4, 8, ...
 *
 * Keys ascend, so their floors do. A row of a level begins where a key differs from the previous
 * one in a bit above that level's bits, and a block where it differs six bits higher. One step
 * counts rows and blocks of all levels, one writes them, one fills the tables: two barriers over
 * the grid. A thread handles one row of the finest set, then one block. */
#include "gpu/sparse/coords/coord_set_floor_cuda.h"

namespace cg = cooperative_groups;

struct floor_run {
    struct vxd_coord_set in;
    int n_levels;
    struct vxd_coord_set_level levels[VXD_FLOORS_AT_ONCE];
    uint32_t *error_word;
};

/* N: the largest number of levels; all are handled in one pass. */
template <int N>
static __global__ void __launch_bounds__(VXD_GRID_THREADS, 1)
    floors_kernel(const __grid_constant__ struct floor_run run)
{
    __shared__ struct vxd_level_shared shared;
    __shared__ struct vxd_tables tables;
    cg::grid_group grid = cg::this_grid();
    uint32_t n = *run.in.n_rows;

    vxd_levels_count<N>(run.levels, run.n_levels, run.in.keys, n, &shared);
    grid.sync();
    vxd_levels_write<N>(run.levels, run.n_levels, run.in.keys, NULL, n, NULL,
                        run.error_word, &shared);
    if (threadIdx.x == 0) {
        tables.n_coord_sets = run.n_levels;
    }
    if (threadIdx.x < VXD_FLOORS_AT_ONCE) {
        tables.coord_sets[threadIdx.x] = &run.levels[threadIdx.x].coord_set;
        tables.n_blocks[threadIdx.x] =
            (int)threadIdx.x < run.n_levels ? shared.n_blocks[threadIdx.x] : 0;
    }
    grid.sync();
    vxd_coord_set_fill_tables(&tables);
}

int vxd_coord_set_floor_levels(const struct vxd_sparse_derive_call *call)
{
    const struct vxd_sparse_geometry *g = &call->geometry;
    int stride = g->stride[0];
    int levels = 0;

    if ((stride & (stride - 1)) != 0) {
        return -1;
    }
    for (int axis = 0; axis < 3; axis++) {
        int32_t in_cells = call->in.shape[axis];
        int32_t out_cells = call->out.shape[axis];

        if (g->stride[axis] != stride ||
            (call->rule == VXD_DERIVE_SUPPORT &&
             (g->transposed || g->kernel[axis] != stride || g->padding[axis] != 0 ||
              g->dilation[axis] != 1)) ||
            (out_cells != 0 && (in_cells == 0 || in_cells > out_cells * stride))) {
            return -1;
        }
    }
    while (1 << levels < stride) {
        levels++;
    }
    return levels;
}

/* The power of two by which the call's set is a floor of the run's input; -1: it is no
 * such floor, or this run cannot make it. */
static int levels_below(const struct floor_run *run,
                        const struct vxd_sparse_derive_call *call)
{
    int levels = vxd_coord_set_floor_levels(call);
    int above = call->in.keys == run->in.keys ? 0 : -1;

    for (int i = 0; i < run->n_levels && above < 0; i++) {
        if (run->levels[i].coord_set.keys == call->in.keys) {
            above = run->levels[i].levels;
        }
    }
    if (levels < 0 || above < 0 || above + levels >= VXD_SPARSE_COORD_BITS) {
        return -1;
    }
    return above + levels;
}

enum vxd_status vxd_coord_set_floors(struct vxd_queue *queue,
                                     const struct vxd_sparse_derive_call *calls, int n,
                                     int *n_done, struct vxd_err *err)
{
    struct floor_run run = {calls[0].in, 0, {}, queue->error_word};
    struct vxd_coord_set_scratch scratch;
    enum vxd_status status = VXD_OK;

    VXD_TRY(vxd_coord_set_scratch_init(queue, calls[0].n_candidates, calls[0].scratch,
                                       calls[0].scratch_bytes, &scratch, err));
    while (run.n_levels < n && run.n_levels < VXD_FLOORS_AT_ONCE) {
        const struct vxd_sparse_derive_call *call = &calls[run.n_levels];
        int levels = levels_below(&run, call);

        if (levels < 0) {
            break;
        }
        run.levels[run.n_levels] = {levels, call->out,
                                    scratch.words[VXD_WORDS_LEVELS + run.n_levels]};
        run.n_levels++;
    }
    *n_done = run.n_levels;
    if (run.n_levels > 0) {
        VXD_TRY(vxd_grid_launch(queue,
                                run.n_levels <= 4 ? (const void *)floors_kernel<4>
                                                  : (const void *)floors_kernel<8>,
                                &run, calls[0].in.capacity, 0, "floors_kernel", err));
    }
out:
    return status;
}
