// SPDX-License-Identifier: Apache-2.0
/* CUDA twins of sets of any coordinates and of derived sets: candidates as keys, a sort where
 * they do not ascend, rows where a key differs from the one before, blocks where a row does.
 *
 * Coordinates of a voxelization ascend already, which a look finds out; so do floors of a
 * set's rows by a power of two (set_floor.cu). Other candidates within a shape are
 * marked in a table of it where there is room for one (set_dense_cuda.h), otherwise counted,
 * written and sorted by the bits in which they differ. Threads: a candidate each, a part of
 * them a block (sparse_cuda.h). */
#include "gpu/sparse/set_cuda.h"
#include "gpu/sparse/set_dense_cuda.h"
#include "gpu/sparse/set_floor_cuda.h"
#include "gpu/sparse/sort_cuda.h"

namespace cg = cooperative_groups;

struct layout {
    size_t keys[2];
    size_t values[2];
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
    return fits && vxd_layout_add(&out->total, n_blocks * VXD_SORT_BINS, 4, &out->counts);
}

size_t vxd_sparse_set_scratch_bytes_cuda(const struct vxd_queue *queue,
                                         size_t n_candidates, size_t capacity)
{
    struct layout layout;

    (void)capacity;
    return lay_out(queue, n_candidates, &layout) ? layout.total : 0;
}

enum vxd_status vxd_set_scratch_open(const struct vxd_queue *queue, size_t n_candidates,
                                     void *scratch, size_t scratch_bytes,
                                     struct vxd_set_scratch *out, struct vxd_err *err)
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
    out->counts = (uint32_t *)(void *)(bytes + layout.counts);
    return VXD_OK;
}

/* Sorts keys[0] by the bits that vary, through both buffers; returns where the result is. */
static __device__ int sort_candidates(cg::grid_group grid,
                                      const struct vxd_set_scratch *scratch, uint32_t n,
                                      uint64_t varying, bool has_values,
                                      struct vxd_sort_shared *shared)
{
    struct vxd_sort_items<uint64_t> items;
    int at = 0;

    for (bool is_first = true; varying != 0; is_first = false) {
        int shift = __ffsll((long long)varying) - 1;
        struct vxd_sort_pass<uint64_t> pass = {
            scratch->keys[at], is_first ? NULL : scratch->values[at],
                scratch->keys[1 - at], has_values ? scratch->values[1 - at] : NULL, n,
                shift, scratch->counts
        };

        vxd_sort_count(&pass, vxd_team_of_grid(), &items, shared);
        grid.sync();
        vxd_sort_scatter(&pass, vxd_team_of_grid(), &items, shared);
        grid.sync();
        varying = shift + VXD_SORT_BITS < 64
                      ? varying >> (shift + VXD_SORT_BITS) << (shift + VXD_SORT_BITS)
                      : 0;
        at = 1 - at;
    }
    return at;
}

/* The set of n sorted keys, duplicates and keys of nothing included. */
static __device__ void make_of_sorted(cg::grid_group grid,
                                      const struct vxd_set_level *level,
                                      const uint64_t *keys, const uint32_t *places,
                                      uint32_t n, int32_t *rows, uint32_t *error_word)
{
    uint64_t total;

    vxd_level_count(level, keys, n);
    grid.sync();
    total = vxd_level_write(level, keys, places, n, rows, error_word);
    grid.sync();
    vxd_set_fill_slots(&level->set, (uint32_t)total);
}

/* Of any coordinates -------------------------------------------------------------------- */

struct make_run {
    const int32_t *coords;
    uint32_t n;
    int n_samples;
    struct vxd_set_level level;
    int32_t *rows;
    uint32_t *error_word;
    struct vxd_set_scratch scratch;
};

static __device__ __forceinline__ uint64_t key_of(const struct make_run *run, uint32_t i)
{
    const int32_t *from = run->coords + 4 * (size_t)i;
    int32_t c[4] = {from[0], from[1], from[2], from[3]};
    bool is_in = c[0] >= 0 && c[0] < run->n_samples;

    for (int axis = 0; axis < 3; axis++) {
        is_in = is_in && vxd_sparse_in_range(c[1 + axis]) &&
                vxd_sparse_in_shape(run->level.set.shape[axis], c[1 + axis]);
    }
    return is_in ? vxd_sparse_key(c) : VXD_SPARSE_NO_KEY;
}

/* Keys of this block's part; whether any is below the one before it, and the bits in which
 * neighbours differ. */
static __device__ __forceinline__ void make_keys(const struct make_run *run)
{
    struct vxd_part part = vxd_part_of(run->n, vxd_team_of_grid());
    uint64_t varying = 0;
    bool falls = false;

    for (uint32_t base = part.begin; base < part.end; base += VXD_GRID_THREADS) {
        uint32_t i = base + threadIdx.x;
        uint64_t key = i < part.end ? key_of(run, i) : 0;
        uint64_t before = __shfl_up_sync(UINT32_MAX, key, 1);

        if (i < part.end) {
            if (threadIdx.x % 32 == 0) {
                before = i > 0 ? key_of(run, i - 1) : key;
            }
            run->scratch.keys[0][i] = key;
            varying |= key ^ before;
            falls = falls || key < before;
        }
    }
    varying = vxd_block_or(varying);
    falls = __syncthreads_or(falls) != 0;
    if (threadIdx.x == 0) {
        run->scratch.words[VXD_WORDS_FALLS][blockIdx.x] = falls;
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
    if (vxd_grid_or(run.scratch.words[VXD_WORDS_FALLS]) != 0) {
        uint64_t varying = vxd_grid_or(run.scratch.words[VXD_WORDS_VARYING]);
        int at = sort_candidates(grid, &run.scratch, run.n, varying, run.rows != NULL,
                                 &shared);

        keys = run.scratch.keys[at];
        places = run.scratch.values[at];
    }
    make_of_sorted(grid, &run.level, keys, places, run.n, run.rows, run.error_word);
}

enum vxd_status vxd_sparse_set_make_cuda(struct vxd_queue *queue,
                                         const struct vxd_sparse_make_call *call,
                                         struct vxd_err *err)
{
    struct make_run run = {call->coords,
                           (uint32_t)call->n,
                           call->n_samples,
                           {0, call->set, NULL},
                           call->rows,
                           queue->error_word,
                           {}};
    enum vxd_status status = VXD_OK;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    VXD_TRY(vxd_set_scratch_open(queue, call->n, call->scratch, call->scratch_bytes,
                                 &run.scratch, err));
    run.level.words = run.scratch.words[VXD_WORDS_LEVELS];
    VXD_TRY(vxd_grid_launch(queue, (const void *)make_kernel, &run, call->n, 0,
                            "make_kernel", err));
out:
    return status;
}

/* Any other rule ------------------------------------------------------------------------ */

struct derive_run {
    enum vxd_sparse_derive rule;
    struct vxd_sparse_geometry geometry;
    struct vxd_sparse_set in;
    struct vxd_set_level level;
    uint32_t *error_word;
    struct vxd_set_scratch scratch;
    struct vxd_dense_plan dense;
};

/* Keys that a row of the input makes: every choice of one share an axis. */
struct shares {
    uint64_t axis[3][VXD_SPARSE_MAX_KERNEL];
    int n[3];
};

static __device__ void shares_of(const struct derive_run *run, uint64_t key,
                                 struct shares *out, bool *out_of_range)
{
    const struct vxd_sparse_geometry *g = &run->geometry;

    for (int axis = 0; axis < 3; axis++) {
        int32_t c = vxd_sparse_key_coord(key, axis);
        int32_t shape = run->level.set.shape[axis];
        int32_t outputs[VXD_SPARSE_MAX_KERNEL];

        if (run->rule == VXD_DERIVE_SUPPORT) {
            out->n[axis] =
                vxd_sparse_tap_outputs(g, axis, c, shape, outputs, out_of_range);
        } else {
            outputs[0] = vxd_sparse_floor_div(c, g->stride[axis]);
            out->n[axis] = vxd_sparse_in_shape(shape, outputs[0]) ? 1 : 0;
        }
        for (int i = 0; i < out->n[axis]; i++) {
            out->axis[axis][i] = vxd_sparse_key_axis(axis, outputs[i]);
        }
    }
}

/* Returns false where a candidate is out of range; *n is the number of all. */
static __device__ bool count_candidates(const struct derive_run *run, cg::grid_group grid,
                                        uint32_t n_in, uint64_t *before, uint64_t *n)
{
    struct vxd_part part = vxd_part_of(n_in, vxd_team_of_grid());
    bool out_of_range = false;
    struct vxd_sums sums;
    uint64_t n_mine = 0;

    for (uint32_t i = part.begin + threadIdx.x; i < part.end; i += VXD_GRID_THREADS) {
        struct shares shares;

        shares_of(run, run->in.keys[i], &shares, &out_of_range);
        n_mine += (uint64_t)(shares.n[0] * shares.n[1] * shares.n[2]);
    }
    n_mine = vxd_block_sum(n_mine);
    out_of_range = __syncthreads_or(out_of_range) != 0;
    if (threadIdx.x == 0) {
        run->scratch.words[VXD_WORDS_CANDIDATES][blockIdx.x] = n_mine;
        run->scratch.words[VXD_WORDS_FALLS][blockIdx.x] = out_of_range;
    }
    grid.sync();
    sums = vxd_grid_sum(run->scratch.words[VXD_WORDS_CANDIDATES]);
    *before = sums.before;
    *n = sums.total;
    return vxd_grid_or(run->scratch.words[VXD_WORDS_FALLS]) == 0;
}

/* Writes this block's candidates from `before` on, in no order. */
static __device__ void write_candidates(const struct derive_run *run, uint32_t n_in,
                                        uint64_t before)
{
    __shared__ unsigned long long next;
    struct vxd_part part = vxd_part_of(n_in, vxd_team_of_grid());
    uint64_t *keys = run->scratch.keys[0];
    uint64_t varying = 0;

    if (threadIdx.x == 0) {
        next = before;
    }
    __syncthreads();
    for (uint32_t i = part.begin + threadIdx.x; i < part.end; i += VXD_GRID_THREADS) {
        uint64_t sample = vxd_sparse_key_sample_part(run->in.keys[i]);
        bool out_of_range = false;
        struct shares shares;
        uint64_t at;

        shares_of(run, run->in.keys[i], &shares, &out_of_range);
        at = atomicAdd(&next,
                       (unsigned long long)(shares.n[0] * shares.n[1] * shares.n[2]));
        for (int x = 0; x < shares.n[0]; x++) {
            for (int y = 0; y < shares.n[1]; y++) {
                for (int z = 0; z < shares.n[2]; z++) {
                    uint64_t key = sample | shares.axis[0][x] | shares.axis[1][y] |
                                   shares.axis[2][z];

                    keys[at++] = key;
                    varying |= key ^ run->in.keys[0];
                }
            }
        }
    }
    varying = vxd_block_or(varying);
    if (threadIdx.x == 0) {
        run->scratch.words[VXD_WORDS_VARYING][blockIdx.x] = varying;
    }
}

/* Sets the bits of this block's candidates in the table; those of one row are in few words. */
static __device__ void mark_candidates(const struct derive_run *run, uint32_t n_in)
{
    struct vxd_part part = vxd_part_of(n_in, vxd_team_of_grid());
    unsigned long long *words = (unsigned long long *)run->dense.words;

    for (uint32_t i = part.begin + threadIdx.x; i < part.end; i += VXD_GRID_THREADS) {
        uint64_t sample = vxd_sparse_key_sample_part(run->in.keys[i]);
        uint64_t block = VXD_SPARSE_NO_KEY;
        unsigned long long bits = 0;
        bool out_of_range = false;
        struct shares shares;

        shares_of(run, run->in.keys[i], &shares, &out_of_range);
        for (int x = 0; x < shares.n[0]; x++) {
            for (int y = 0; y < shares.n[1]; y++) {
                for (int z = 0; z < shares.n[2]; z++) {
                    uint64_t key = sample | shares.axis[0][x] | shares.axis[1][y] |
                                   shares.axis[2][z];

                    if (key >> 6 != block) {
                        if (bits != 0) {
                            (void)atomicOr(&words[vxd_dense_number(&run->dense, block)],
                                           bits);
                        }
                        block = key >> 6;
                        bits = 0;
                    }
                    bits |= 1ULL << (key & 63);
                }
            }
        }
        if (bits != 0) {
            (void)atomicOr(&words[vxd_dense_number(&run->dense, block)], bits);
        }
    }
}

static __global__ void __launch_bounds__(VXD_GRID_THREADS, 1)
    derive_kernel(const __grid_constant__ struct derive_run run)
{
    __shared__ struct vxd_sort_shared shared;
    cg::grid_group grid = cg::this_grid();
    uint32_t n_in = *run.in.n_rows;
    uint64_t n_words = vxd_dense_n_words(&run.dense, &run.in, n_in);
    uint64_t varying;
    uint64_t before;
    uint64_t n;
    int at;

    if (n_words > 0) {
        vxd_dense_clear(&run.dense, n_words);
        grid.sync();
        mark_candidates(&run, n_in);
        grid.sync();
        vxd_dense_finish(grid, &run.level.set, &run.dense, (uint32_t)n_words,
                         run.level.words, run.error_word);
        return;
    }
    if (!count_candidates(&run, grid, n_in, &before, &n)) {
        vxd_set_fail(&run.level.set, run.error_word, VXD_OUT_OF_RANGE);
        return;
    }
    write_candidates(&run, n_in, before);
    grid.sync();
    varying = vxd_grid_or(run.scratch.words[VXD_WORDS_VARYING]);
    at = sort_candidates(grid, &run.scratch, (uint32_t)n, varying, false, &shared);
    make_of_sorted(grid, &run.level, run.scratch.keys[at], NULL, (uint32_t)n, NULL,
                   run.error_word);
}

static enum vxd_status derive(struct vxd_queue *queue,
                              const struct vxd_sparse_derive_call *call,
                              struct vxd_err *err)
{
    struct derive_run run = {
        call->rule, call->geometry, call->in, {0, call->out, NULL}, queue->error_word, {},
        {}};
    size_t n_words;
    enum vxd_status status = VXD_OK;

    VXD_TRY(vxd_set_scratch_open(queue, call->n_candidates, call->scratch,
                                 call->scratch_bytes, &run.scratch, err));
    run.level.words = run.scratch.words[VXD_WORDS_LEVELS];
    /* The table takes the place of both key arrays, and of the values between them. */
    n_words = (size_t)(run.scratch.keys[1] - run.scratch.keys[0]) + call->n_candidates;
    vxd_dense_plan_make(call->out.shape, run.scratch.keys[0], n_words, &run.dense);
    VXD_TRY(vxd_grid_launch(queue, (const void *)derive_kernel, &run, call->n_candidates,
                            0, "derive_kernel", err));
out:
    return status;
}

enum vxd_status vxd_sparse_sets_derive_cuda(struct vxd_queue *queue,
                                            const struct vxd_sparse_derive_call *calls,
                                            int n, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    for (int i = 0; i < n;) {
        int n_done;

        VXD_TRY(vxd_set_floors(queue, calls + i, n - i, &n_done, err));
        if (n_done == 0) {
            VXD_TRY(derive(queue, &calls[i], err));
            n_done = 1;
        }
        i += n_done;
    }
out:
    return status;
}
