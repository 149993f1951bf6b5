// SPDX-License-Identifier: Apache-2.0
/* CUDA twin of sets derived by floors of powers of two, several at once: a U-Net's levels are
 * all floors of its finest one, by 2, 4, 8, ...
 *
 * Keys ascend, so their floors do, and a row of a level begins where a key differs from the one
 * before in a bit above that level's; a block where it does six bits higher. One pass over the
 * finest keys counts rows and blocks of all levels, one writes them, and one makes each
 * level's blocks: two barriers over the grid. Threads: a row of the finest set each, then a
 * block each. */
#include "gpu/sparse/set_floor_cuda.h"

namespace cg = cooperative_groups;

/* One level's set, of floors by 2^levels. */
struct level {
    int levels;
    struct vxd_sparse_set set;
    uint64_t *words; /* rows << 32 | blocks, a word a block of the launch */
};

struct floor_run {
    struct vxd_sparse_set in;
    int n_levels;
    struct level levels[VXD_FLOORS_AT_ONCE];
    uint32_t *error_word;
};

static __device__ __forceinline__ uint64_t begins_at(const struct floor_run *run,
                                                     uint32_t i, int level)
{
    uint64_t differs = i == 0 ? UINT64_MAX : run->in.keys[i] ^ run->in.keys[i - 1];
    int low = 3 * run->levels[level].levels;

    return (uint64_t)(differs >> low != 0) << 32 | (uint64_t)(differs >> (low + 6) != 0);
}

static __device__ __forceinline__ void count_levels(const struct floor_run *run,
                                                    struct vxd_part part)
{
    for (int level = 0; level < run->n_levels; level++) {
        uint64_t n_begins = 0;

        for (uint32_t i = part.begin + threadIdx.x; i < part.end; i += VXD_GRID_THREADS) {
            n_begins += begins_at(run, i, level);
        }
        n_begins = vxd_block_sum(n_begins);
        if (threadIdx.x == 0) {
            run->levels[level].words[blockIdx.x] = n_begins;
        }
    }
}

/* Writes a level's rows, and of its blocks all but the masks. Returns how many there are of
 * both; none where there is no room. */
static __device__ uint64_t write_level(const struct floor_run *run, struct vxd_part part,
                                       int level)
{
    const struct vxd_sparse_set *set = &run->levels[level].set;
    struct vxd_sums sums = vxd_grid_sum(run->levels[level].words);

    if (sums.total >> 32 > set->capacity) {
        vxd_set_count(set, 0, 0);
        if (blockIdx.x == 0 && threadIdx.x == 0) {
            vxd_sparse_fault(run->error_word, VXD_RESOURCE_EXHAUSTED);
        }
        return 0;
    }
    vxd_set_count(set, (uint32_t)(sums.total >> 32), (uint32_t)sums.total);
    vxd_set_clear_slots(set, (uint32_t)sums.total);
    for (uint32_t base = part.begin; base < part.end; base += VXD_GRID_THREADS) {
        uint32_t i = base + threadIdx.x;
        uint64_t begins = i < part.end ? begins_at(run, i, level) : 0;
        struct vxd_sums in_tile = vxd_block_scan(begins);
        uint64_t at = sums.before + in_tile.before;

        if (begins != 0) {
            uint32_t row = (uint32_t)(at >> 32);
            uint64_t key =
                vxd_sparse_key_floor(run->in.keys[i], run->levels[level].levels);

            set->keys[row] = key;
            if ((uint32_t)begins != 0) {
                set->block_keys[(uint32_t)at] = key >> 6;
                set->block_row[(uint32_t)at] = row;
            }
        }
        sums.before += in_tile.total;
    }
    return sums.total;
}

/* Masks and slots of a level's blocks. */
static __device__ void make_blocks(const struct vxd_sparse_set *set, uint64_t total)
{
    uint32_t n_rows = (uint32_t)(total >> 32);
    uint32_t n_blocks = (uint32_t)total;
    uint32_t slot_mask = vxd_sparse_slot_mask(n_blocks);
    struct vxd_part part = vxd_part_of(n_blocks, vxd_team_of_grid());

    for (uint32_t i = part.begin + threadIdx.x; i < part.end; i += VXD_GRID_THREADS) {
        uint32_t end = i + 1 < n_blocks ? set->block_row[i + 1] : n_rows;
        uint64_t mask = 0;

        for (uint32_t row = set->block_row[i]; row < end; row++) {
            mask |= (uint64_t)1 << (set->keys[row] & 63);
        }
        set->block_mask[i] = mask;
        vxd_set_add_slot(set, slot_mask, set->block_keys[i], i);
    }
}

static __global__ void __launch_bounds__(VXD_GRID_THREADS, 1)
    floors_kernel(const __grid_constant__ struct floor_run run)
{
    cg::grid_group grid = cg::this_grid();
    struct vxd_part part = vxd_part_of(*run.in.n_rows, vxd_team_of_grid());
    __shared__ uint64_t totals[VXD_FLOORS_AT_ONCE];

    count_levels(&run, part);
    grid.sync();
    for (int level = 0; level < run.n_levels; level++) {
        uint64_t total = write_level(&run, part, level);

        if (threadIdx.x == 0) {
            totals[level] = total;
        }
    }
    grid.sync();
    for (int level = 0; level < run.n_levels; level++) {
        make_blocks(&run.levels[level].set, totals[level]);
    }
}

int vxd_set_floor_levels(const struct vxd_sparse_derive_call *call)
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

/* By what power the call's set is a floor of the run's input; -1: it is not one, or not to be
 * had in this run. */
static int levels_below(const struct floor_run *run,
                        const struct vxd_sparse_derive_call *call)
{
    int levels = vxd_set_floor_levels(call);
    int above = call->in.keys == run->in.keys ? 0 : -1;

    for (int i = 0; i < run->n_levels && above < 0; i++) {
        if (run->levels[i].set.keys == call->in.keys) {
            above = run->levels[i].levels;
        }
    }
    if (levels < 0 || above < 0 || above + levels >= VXD_SPARSE_COORD_BITS) {
        return -1;
    }
    return above + levels;
}

enum vxd_status vxd_set_floors(struct vxd_queue *queue,
                               const struct vxd_sparse_derive_call *calls, int n,
                               int *n_done, struct vxd_err *err)
{
    struct floor_run run = {calls[0].in, 0, {}, queue->error_word};
    struct vxd_set_scratch scratch;
    enum vxd_status status = VXD_OK;

    VXD_TRY(vxd_set_scratch_open(queue, calls[0].n_candidates, calls[0].scratch,
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
        VXD_TRY(vxd_grid_launch(queue, (const void *)floors_kernel, &run,
                                calls[0].in.capacity, 0, "floors_kernel", err));
    }
out:
    return status;
}
