// SPDX-License-Identifier: Apache-2.0
/* CUDA backend of coordinate sets of any coordinates: keys; a sort if they do not
 * ascend; a row where a key differs from the previous one; a block of cells where it
 * differs above the cell bits. The coordinates of a voxelization ascend already, and a
 * check detects that. A thread handles one coordinate; each block of the launch takes
 * a consecutive range of them (grid_cuda.h). */
#include "gpu/sparse/coords/coord_set_sort_cuda.h"

namespace cg = cooperative_groups;

struct layout {
    size_t keys[2];
    size_t values[2];
    size_t ranks;
    size_t counts;
    size_t words[VXD_N_WORDS];
    size_t total;
};

static bool lay_out(const struct vxd_queue *queue, size_t n_candidates,
                    struct layout *out)
{
    size_t n_blocks = vxd_grid_blocks(queue, n_candidates);
    bool fits = true;

    *out = {};
    for (int i = 0; i < 2; i++) {
        fits = fits && vxd_layout_add(&out->total, n_candidates, 8, &out->keys[i]) &&
               vxd_layout_add(&out->total, n_candidates, 4, &out->values[i]);
    }
    for (int i = 0; i < VXD_N_WORDS; i++) {
        fits = fits && vxd_layout_add(&out->total, n_blocks, 8, &out->words[i]);
    }
    fits = fits && vxd_layout_add(&out->total, n_candidates, 4, &out->ranks);
    return fits && vxd_layout_add(&out->total, VXD_SORT_WORDS(n_blocks), 4, &out->counts);
}

size_t vxd_coord_set_scratch_bytes_cuda(const struct vxd_queue *queue,
                                        size_t n_candidates, size_t capacity)
{
    struct layout layout;

    (void)capacity;
    return lay_out(queue, n_candidates, &layout) ? layout.total : 0;
}

enum vxd_status vxd_coord_set_scratch_init(const struct vxd_queue *queue,
                                           size_t n_candidates, void *scratch,
                                           size_t scratch_bytes,
                                           struct vxd_coord_set_scratch *out,
                                           struct vxd_err *err)
{
    char *bytes = (char *)scratch;
    struct layout layout;

    if (!lay_out(queue, n_candidates, &layout) || layout.total > scratch_bytes) {
        return vxd_fail(err, VXD_INTERNAL, NULL, "scratch of %zu bytes, needed are %zu",
                        scratch_bytes, layout.total);
    }
    for (int i = 0; i < 2; i++) {
        out->keys[i] = (uint64_t *)(void *)(bytes + layout.keys[i]);
        out->values[i] = (uint32_t *)(void *)(bytes + layout.values[i]);
    }
    for (int i = 0; i < VXD_N_WORDS; i++) {
        out->words[i] = (uint64_t *)(void *)(bytes + layout.words[i]);
    }
    out->ranks = (uint32_t *)(void *)(bytes + layout.ranks);
    out->counts = (uint32_t *)(void *)(bytes + layout.counts);
    return VXD_OK;
}

/* Of any coordinates -------------------------------------------------------------------- */

struct make_run {
    const int32_t *coords;
    uint32_t n;
    int n_samples;
    struct vxd_coord_set_level level;
    int32_t *rows;
    uint32_t *error_word;
    struct vxd_coord_set_scratch scratch;
};

static __device__ __forceinline__ uint64_t key_of(const struct make_run *run, uint32_t i)
{
    const int32_t *from = run->coords + 4 * (size_t)i;
    int32_t c[4] = {from[0], from[1], from[2], from[3]};
    bool is_in = c[0] >= 0 && c[0] < run->n_samples;

    for (int axis = 0; axis < 3; axis++) {
        is_in = is_in && vxd_sparse_in_range(c[1 + axis]) &&
                vxd_sparse_in_shape(run->level.coord_set.shape[axis], c[1 + axis]);
    }
    return is_in ? vxd_sparse_key(c) : VXD_SPARSE_NO_KEY;
}

/* Keys of this block's range; also finds whether any key is less than the previous
 * one, and the bits in which adjacent keys differ. */
static __device__ __forceinline__ void make_keys(const struct make_run *run)
{
    struct vxd_block_range range = vxd_block_range_of(run->n, vxd_block_group_of_grid());
    uint64_t varying = 0;
    bool descends = false;

    for (uint32_t base = range.begin; base < range.end; base += VXD_GRID_THREADS) {
        uint32_t i = base + threadIdx.x;
        uint64_t key = i < range.end ? key_of(run, i) : 0;
        uint64_t before = __shfl_up_sync(UINT32_MAX, key, 1);

        if (i < range.end) {
            if (threadIdx.x % 32 == 0) {
                before = i > 0 ? key_of(run, i - 1) : key;
            }
            run->scratch.keys[0][i] = key;
            varying |= key ^ before;
            descends = descends || key < before;
        }
    }
    varying = vxd_block_or(varying);
    descends = __syncthreads_or(descends) != 0;
    if (threadIdx.x == 0) {
        run->scratch.words[VXD_WORDS_DESCENTS][blockIdx.x] = descends;
        run->scratch.words[VXD_WORDS_VARYING][blockIdx.x] = varying;
    }
}

static __global__ void __launch_bounds__(VXD_GRID_THREADS, 1)
    make_kernel(const __grid_constant__ struct make_run run)
{
    __shared__ struct vxd_sort_shared shared;
    cg::grid_group grid = cg::this_grid();
    const uint64_t *keys = run.scratch.keys[0];
    const uint32_t *places = NULL;

    make_keys(&run);
    grid.sync();
    if (vxd_grid_or(run.scratch.words[VXD_WORDS_DESCENTS]) != 0) {
        uint64_t varying = vxd_grid_or(run.scratch.words[VXD_WORDS_VARYING]);
        int at = vxd_coord_set_sort(grid, &run.scratch, run.n, varying, run.rows != NULL,
                                    &shared);

        keys = run.scratch.keys[at];
        places = run.scratch.values[at];
    }
    vxd_level_make(grid, &run.level, keys, places, run.n, run.rows, run.error_word);
}

enum vxd_status vxd_coord_set_make_cuda(struct vxd_queue *queue,
                                        const struct vxd_sparse_make_call *call,
                                        struct vxd_err *err)
{
    struct make_run run = {call->coords,
                           (uint32_t)call->n,
                           call->n_samples,
                           {0, call->coord_set, NULL},
                           call->rows,
                           queue->error_word,
                           {}};
    enum vxd_status status = VXD_OK;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    VXD_TRY(vxd_coord_set_scratch_init(queue, call->n, call->scratch, call->scratch_bytes,
                                       &run.scratch, err));
    run.level.words = run.scratch.words[VXD_WORDS_LEVELS];
    VXD_TRY(vxd_grid_launch(queue, (const void *)make_kernel, &run, call->n, 0,
                            "make_kernel", err));
out:
    return status;
}
