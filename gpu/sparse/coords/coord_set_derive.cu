// SPDX-License-Identifier: Apache-2.0
/* CUDA backend of derived coordinate sets. Floors of a set's rows by a power of two
 * ascend already (coord_set_floor.cu). Other candidates within a shape are marked in a
 * table of the shape if it fits the scratch (coord_set_dense_cuda.h); otherwise they
 * are counted, written and sorted by the bits in which they differ. A thread handles
 * one row of the input; each block of the launch takes a consecutive range of them
 * (grid_cuda.h). */
#include "gpu/sparse/coords/coord_set_dense_cuda.h"
#include "gpu/sparse/coords/coord_set_floor_cuda.h"
#include "gpu/sparse/coords/coord_set_sort_cuda.h"

namespace cg = cooperative_groups;

/* One set ------------------------------------------------------------------------------ */

struct derive_run {
    enum vxd_sparse_derive rule;
    struct vxd_sparse_geometry geometry;
    struct vxd_coord_set in;
    struct vxd_coord_set_level level;
    uint32_t *error_word;
    struct vxd_coord_set_scratch scratch;
    struct vxd_dense_plan dense;
};

/* The keys that a row of the input produces: every combination of one part for each
 * axis. */
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
        int32_t shape = run->level.coord_set.shape[axis];
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

/* Returns false where a candidate is out of range; *n is the number of all candidates. */
static __device__ bool count_candidates(const struct derive_run *run, cg::grid_group grid,
                                        uint32_t n_in, uint64_t *before, uint64_t *n)
{
    struct vxd_block_range range = vxd_block_range_of(n_in, vxd_block_group_of_grid());
    bool out_of_range = false;
    struct vxd_sums sums;
    uint64_t n_mine = 0;

    for (uint32_t i = range.begin + threadIdx.x; i < range.end; i += VXD_GRID_THREADS) {
        struct shares shares;

        shares_of(run, run->in.keys[i], &shares, &out_of_range);
        n_mine += (uint64_t)(shares.n[0] * shares.n[1] * shares.n[2]);
    }
    n_mine = vxd_block_sum(n_mine);
    out_of_range = __syncthreads_or(out_of_range) != 0;
    if (threadIdx.x == 0) {
        run->scratch.words[VXD_WORDS_CANDIDATES][blockIdx.x] = n_mine;
        run->scratch.words[VXD_WORDS_DESCENTS][blockIdx.x] = out_of_range;
    }
    grid.sync();
    sums = vxd_grid_sum(run->scratch.words[VXD_WORDS_CANDIDATES]);
    *before = sums.before;
    *n = sums.total;
    return vxd_grid_or(run->scratch.words[VXD_WORDS_DESCENTS]) == 0;
}

/* Writes this block's candidates, beginning at `before`, in no particular order. */
static __device__ void write_candidates(const struct derive_run *run, uint32_t n_in,
                                        uint64_t before)
{
    __shared__ unsigned long long next;
    struct vxd_block_range range = vxd_block_range_of(n_in, vxd_block_group_of_grid());
    uint64_t *keys = run->scratch.keys[0];
    uint64_t varying = 0;

    if (threadIdx.x == 0) {
        next = before;
    }
    __syncthreads();
    for (uint32_t i = range.begin + threadIdx.x; i < range.end; i += VXD_GRID_THREADS) {
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

/* Sets the bits of this block's candidates in the table; the candidates of one row are
 * in few words. */
static __device__ void mark_candidates(const struct derive_run *run, uint32_t n_in)
{
    struct vxd_block_range range = vxd_block_range_of(n_in, vxd_block_group_of_grid());
    unsigned long long *words = (unsigned long long *)run->dense.words;

    for (uint32_t i = range.begin + threadIdx.x; i < range.end; i += VXD_GRID_THREADS) {
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
                            vxd_dense_or(&words[vxd_dense_number(&run->dense, block)],
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
            vxd_dense_or(&words[vxd_dense_number(&run->dense, block)], bits);
        }
    }
}

static __device__ void derive_coord_set(cg::grid_group grid, const struct derive_run *run,
                                        struct vxd_dense_tables *tables,
                                        struct vxd_sort_shared *shared)
{
    uint32_t n_in = *run->in.n_rows;
    uint64_t n_words = vxd_dense_n_words(&run->dense, &run->in, n_in);
    const struct vxd_coord_set *coord_set = &run->level.coord_set;
    uint64_t varying;
    uint64_t before;
    uint64_t n;
    int at;

    if (n_words > 0) {
        if (threadIdx.x == 0) {
            tables->n = 1;
            tables->plans[0] = run->dense;
            tables->n_words[0] = (uint32_t)n_words;
            vxd_dense_number_groups(tables);
        }
        vxd_dense_clear(&run->dense, n_words);
        grid.sync();
        mark_candidates(run, n_in);
        grid.sync();
        vxd_dense_finish(grid, tables, &coord_set,
                         (uint64_t *)(void *)run->scratch.values[1],
                         (uint64_t *)(void *)shared->warps, run->error_word);
        return;
    }
    if (!count_candidates(run, grid, n_in, &before, &n)) {
        vxd_coord_set_fail(coord_set, run->error_word, VXD_OUT_OF_RANGE);
        return;
    }
    write_candidates(run, n_in, before);
    grid.sync();
    varying = vxd_grid_or(run->scratch.words[VXD_WORDS_VARYING]);
    at = vxd_coord_set_sort(grid, &run->scratch, (uint32_t)n, varying, false, shared);
    vxd_level_make(grid, &run->level, run->scratch.keys[at], NULL, (uint32_t)n, NULL,
                   run->error_word);
}

/* Chains ---------------------------------------------------------------------------------
 *
 * The sets of a backbone are derived one from the other. The outputs that taps connect with an
 * input cell are a product over the three axes. Where the kernel is at least as large as the
 * stride they are a range on each axis, and so are the outputs of a range. What a row contributes
 * to a set three steps on is therefore a box again, of some two cells an axis. So all sets of a
 * chain are marked directly from the input of the first, each in a table of its own, and are made
 * together. */

#define MAX_CHAIN VXD_DENSE_MAX_TABLES

struct chain_run {
    int n;
    uint64_t n_words_max; /* of all tables together */
    struct derive_run runs[MAX_CHAIN];
};

static_assert(sizeof(struct chain_run) <= 4096, "what a kernel's arguments may take");

/* Places the tables one behind the other; false where they exceed the capacity. */
static __device__ bool place_tables(const struct chain_run *chain, uint32_t n_in,
                                    struct vxd_dense_tables *tables)
{
    uint64_t used = 0;

    for (int i = 0; i < chain->n; i++) {
        uint64_t n = vxd_dense_n_words(&chain->runs[i].dense, &chain->runs[0].in, n_in);

        tables->plans[i] = chain->runs[i].dense;
        tables->plans[i].words = chain->runs[0].dense.words + used;
        tables->n_words[i] = (uint32_t)n;
        used += n;
        if (n == 0 || used > chain->n_words_max) {
            return false;
        }
    }
    tables->n = chain->n;
    vxd_dense_number_groups(tables);
    return true;
}

static __device__ __forceinline__ int32_t divide_down(int32_t a, int32_t b)
{
    return (b & (b - 1)) == 0 ? a >> (__ffs(b) - 1) : vxd_sparse_floor_div(a, b);
}

/* Turns a range of input cells into one of outputs within the shape; false: it is
 * empty. */
static __device__ __forceinline__ bool next_range(const struct vxd_sparse_geometry *g,
                                                  int axis, int32_t shape, int32_t *first,
                                                  int32_t *last)
{
    int32_t stride = g->stride[axis];
    int32_t padding = g->padding[axis];

    *first = max(divide_down(*first + padding - g->kernel[axis] + stride, stride), 0);
    *last = min(divide_down(*last + padding, stride), shape - 1);
    return *first <= *last;
}

static __device__ void mark_chain(const struct chain_run *chain, uint32_t n_in,
                                  const struct vxd_dense_tables *tables)
{
    uint32_t step = gridDim.x * VXD_GRID_THREADS;
    /* Consecutive warps of work go to different blocks of the launch. */
    uint32_t at = (threadIdx.x / 32 * gridDim.x + blockIdx.x) * 32;

    for (uint32_t base = at; base < n_in; base += step) {
        uint32_t i = base + threadIdx.x % 32;
        bool has = i < n_in;
        uint64_t key = chain->runs[0].in.keys[has ? i : base];
        uint64_t sample = key >> VXD_SPARSE_KEY_SAMPLE_BIT;
        int32_t first[3];
        int32_t last[3];

        for (int axis = 0; axis < 3; axis++) {
            first[axis] = vxd_sparse_key_coord(key, axis);
            last[axis] = first[axis];
        }
        for (int j = 0; j < chain->n; j++) {
            const struct derive_run *run = &chain->runs[j];

#pragma unroll
            for (int axis = 0; axis < 3; axis++) {
                has = next_range(&run->geometry, axis, run->level.coord_set.shape[axis],
                                 &first[axis], &last[axis]) &&
                      has;
            }
#pragma unroll
            for (int axis = 0; axis < 3; axis++) {
                first[axis] = has ? first[axis] : 0;
                last[axis] = has ? last[axis] : 0;
            }
            vxd_dense_mark(&tables->plans[j], has, sample, first, last);
        }
    }
}

static __device__ void derive_chain(cg::grid_group grid, const struct chain_run *chain,
                                    uint32_t n_in, struct vxd_dense_tables *tables,
                                    uint64_t *before)
{
    const struct vxd_coord_set *coord_sets[MAX_CHAIN];
    uint64_t n_all = 0;

    for (int j = 0; j < chain->n; j++) {
        coord_sets[j] = &chain->runs[j].level.coord_set;
        n_all += tables->n_words[j];
    }
    vxd_dense_clear(&tables->plans[0], n_all);
    grid.sync();
    mark_chain(chain, n_in, tables);
    grid.sync();
    vxd_dense_finish(grid, tables, coord_sets,
                     (uint64_t *)(void *)chain->runs[0].scratch.values[1], before,
                     chain->runs[0].error_word);
}

static __global__ void __launch_bounds__(VXD_GRID_THREADS, 1)
    derive_kernel(const __grid_constant__ struct chain_run chain)
{
    __shared__ struct vxd_sort_shared shared;
    __shared__ struct vxd_dense_tables tables;
    __shared__ bool is_chain;
    cg::grid_group grid = cg::this_grid();

    if (chain.n > 1) {
        uint32_t n_in = *chain.runs[0].in.n_rows;

        if (threadIdx.x == 0) {
            is_chain = place_tables(&chain, n_in, &tables);
        }
        __syncthreads();
        if (is_chain) {
            derive_chain(grid, &chain, n_in, &tables, (uint64_t *)(void *)shared.warps);
            return;
        }
    }
    for (int j = 0; j < chain.n; j++) {
        derive_coord_set(grid, &chain.runs[j], &tables, &shared);
        if (j + 1 < chain.n) {
            grid.sync();
        }
    }
}

/* Whether the outputs of a range of cells are a range, within a bounded shape. */
static bool keeps_ranges(const struct vxd_sparse_derive_call *call)
{
    const struct vxd_sparse_geometry *g = &call->geometry;

    for (int axis = 0; axis < 3; axis++) {
        if (g->kernel[axis] < g->stride[axis] || call->out.shape[axis] == 0 ||
            call->out.shape[axis] > VXD_DENSE_MARK_CELLS ||
            (g->kernel[axis] > 1 && g->dilation[axis] != 1)) {
            return false;
        }
    }
    return call->rule == VXD_DERIVE_SUPPORT && !g->transposed;
}

/* How many of n >= 1 calls, each of which derives from the result of the previous one,
 * one launch can make. */
static int chain_length(const struct vxd_sparse_derive_call *calls, int n)
{
    int length = 1;

    if (!keeps_ranges(&calls[0])) {
        return 1;
    }
    while (length < n && length < MAX_CHAIN && keeps_ranges(&calls[length]) &&
           calls[length].in.keys == calls[length - 1].out.keys) {
        length++;
    }
    return length;
}

static enum vxd_status derive(struct vxd_queue *queue,
                              const struct vxd_sparse_derive_call *calls, int n,
                              struct vxd_err *err)
{
    struct chain_run chain = {n, 0, {}};
    struct vxd_coord_set_scratch scratch;
    size_t n_candidates = 0;
    uint64_t n_words_most;
    enum vxd_status status = VXD_OK;

    for (int i = 0; i < n; i++) {
        n_candidates =
            calls[i].n_candidates > n_candidates ? calls[i].n_candidates : n_candidates;
    }
    VXD_TRY(vxd_coord_set_scratch_init(queue, n_candidates, calls[0].scratch,
                                       calls[0].scratch_bytes, &scratch, err));
    /* The tables use the memory of both key arrays and of the values between them; the
     * counts of their groups use that of the other values. */
    n_words_most =
        ((uint64_t)vxd_grid_blocks(queue, n_candidates) * VXD_DENSE_MAX_GROUPS -
         MAX_CHAIN) *
        VXD_DENSE_GROUP;
    chain.n_words_max = (size_t)(scratch.keys[1] - scratch.keys[0]) + n_candidates;
    chain.n_words_max =
        chain.n_words_max < n_words_most ? chain.n_words_max : n_words_most;
    for (int i = 0; i < n; i++) {
        struct derive_run *run = &chain.runs[i];

        *run = {calls[i].rule,
                calls[i].geometry,
                calls[i].in,
                {0, calls[i].out, scratch.words[VXD_WORDS_LEVELS + i]},
                queue->error_word,
                scratch,
                {}};
        vxd_dense_plan_make(calls[i].out.shape, scratch.keys[0], chain.n_words_max,
                            &run->dense);
    }
    VXD_TRY(vxd_grid_launch(queue, (const void *)derive_kernel, &chain, n_candidates, 0,
                            "derive_kernel", err));
out:
    return status;
}

enum vxd_status vxd_coord_sets_derive_cuda(struct vxd_queue *queue,
                                           const struct vxd_sparse_derive_call *calls,
                                           int n, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    for (int i = 0; i < n;) {
        int n_done;

        VXD_TRY(vxd_coord_set_floors(queue, calls + i, n - i, &n_done, err));
        if (n_done == 0) {
            n_done = chain_length(calls + i, n - i);
            VXD_TRY(derive(queue, &calls[i], n_done, err));
        }
        i += n_done;
    }
out:
    return status;
}
