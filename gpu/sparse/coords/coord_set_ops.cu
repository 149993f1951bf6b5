// SPDX-License-Identifier: Apache-2.0
/* CUDA backend of unions, subsets and coordinates of sets. Keys ascend already, so the
 * place of a row follows from a search in the other set, or from the count of rows
 * kept before. A thread handles one row. */
#include "gpu/sparse/coords/coord_set_cuda.h"

namespace cg = cooperative_groups;

#define COORDS_THREADS 256

/* Blocks and table of n_rows unique keys that are already in the set. */
static __device__ void
make_of_rows(cg::grid_group grid, const struct vxd_coord_set *coord_set, uint32_t n_rows,
             const struct vxd_coord_set_scratch *scratch, uint32_t *error_word)
{
    struct vxd_coord_set_level level = {0, *coord_set, scratch->words[VXD_WORDS_LEVELS]};

    vxd_level_make(grid, &level, coord_set->keys, NULL, n_rows, NULL, error_word);
}

/* Union --------------------------------------------------------------------------------- */

struct union_run {
    struct vxd_coord_set a;
    struct vxd_coord_set b;
    int32_t *rows_a;
    int32_t *rows_b;
    /* for each row of b, and once at the end: how many rows before it are not in a */
    uint32_t *only_b;
    struct vxd_coord_set out;
    uint32_t *error_word;
    struct vxd_coord_set_scratch scratch;
};

static __device__ __forceinline__ bool is_only_in_b(const struct union_run *run,
                                                    uint32_t n_a, uint32_t row)
{
    uint64_t key = run->b.keys[row];
    uint32_t at = vxd_sparse_lower_bound(run->a.keys, n_a, key);

    return at == n_a || run->a.keys[at] != key;
}

/* Fills only_b; returns its last word. */
static __device__ uint32_t number_only_b(cg::grid_group grid, const struct union_run *run,
                                         uint32_t n_a, uint32_t n_b)
{
    struct vxd_block_range range = vxd_block_range_of(n_b, vxd_block_group_of_grid());
    uint32_t n_only = 0;
    struct vxd_sums sums;
    uint64_t sum;

    for (uint32_t i = range.begin + threadIdx.x; i < range.end; i += VXD_GRID_THREADS) {
        n_only += is_only_in_b(run, n_a, i);
    }
    sum = vxd_block_sum(n_only);
    if (threadIdx.x == 0) {
        run->scratch.words[VXD_WORDS_CANDIDATES][blockIdx.x] = sum;
    }
    grid.sync();
    sums = vxd_grid_sum(run->scratch.words[VXD_WORDS_CANDIDATES]);
    for (uint32_t base = range.begin; base < range.end; base += VXD_GRID_THREADS) {
        uint32_t i = base + threadIdx.x;
        uint32_t n_in_tile;
        uint32_t rank =
            vxd_block_rank(i < range.end && is_only_in_b(run, n_a, i), &n_in_tile);

        if (i < range.end) {
            run->only_b[i] = (uint32_t)sums.before + rank;
        }
        sums.before += n_in_tile;
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        run->only_b[n_b] = (uint32_t)sums.total;
    }
    return (uint32_t)sums.total;
}

static __device__ __forceinline__ void put_union_row(const struct union_run *run,
                                                     uint32_t at, uint64_t key,
                                                     int32_t row_a, int32_t row_b)
{
    run->out.keys[at] = key;
    if (run->rows_a != NULL) {
        run->rows_a[at] = row_a;
    }
    if (run->rows_b != NULL) {
        run->rows_b[at] = row_b;
    }
}

static __device__ void merge_rows(const struct union_run *run, uint32_t n_a, uint32_t n_b)
{
    struct vxd_block_range range = vxd_block_range_of(n_a, vxd_block_group_of_grid());

    for (uint32_t i = range.begin + threadIdx.x; i < range.end; i += VXD_GRID_THREADS) {
        uint64_t key = run->a.keys[i];
        uint32_t j = vxd_sparse_lower_bound(run->b.keys, n_b, key);
        bool is_in_b = j < n_b && run->b.keys[j] == key;

        put_union_row(run, i + run->only_b[j], key, (int32_t)i,
                      is_in_b ? (int32_t)j : -1);
    }
    range = vxd_block_range_of(n_b, vxd_block_group_of_grid());
    for (uint32_t j = range.begin + threadIdx.x; j < range.end; j += VXD_GRID_THREADS) {
        uint32_t before = run->only_b[j];

        if (run->only_b[j + 1] != before) {
            uint64_t key = run->b.keys[j];
            uint32_t i = vxd_sparse_lower_bound(run->a.keys, n_a, key);

            put_union_row(run, i + before, key, -1, (int32_t)j);
        }
    }
}

static __global__ void __launch_bounds__(VXD_GRID_THREADS, 1)
    union_kernel(const __grid_constant__ struct union_run run)
{
    cg::grid_group grid = cg::this_grid();
    uint32_t n_a = *run.a.n_rows;
    uint32_t n_b = *run.b.n_rows;
    uint32_t n_rows = n_a + number_only_b(grid, &run, n_a, n_b);

    if (n_rows > run.out.capacity) {
        vxd_coord_set_fail(&run.out, run.error_word, VXD_RESOURCE_EXHAUSTED);
        return;
    }
    grid.sync();
    merge_rows(&run, n_a, n_b);
    grid.sync();
    make_of_rows(grid, &run.out, n_rows, &run.scratch, run.error_word);
}

enum vxd_status vxd_coord_set_union_cuda(struct vxd_queue *queue,
                                         const struct vxd_sparse_union_call *call,
                                         struct vxd_err *err)
{
    size_t n = call->a.capacity + call->b.capacity;
    struct union_run run = {call->a, call->b,   call->rows_a,      call->rows_b,
                            NULL,    call->out, queue->error_word, {}};
    enum vxd_status status = VXD_OK;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    VXD_TRY(vxd_coord_set_scratch_init(queue, n, call->scratch, call->scratch_bytes,
                                       &run.scratch, err));
    run.only_b =
        (uint32_t *)(void *)run.scratch.keys[0]; /* n_b + 1 of 2 n words or more */
    VXD_TRY(vxd_grid_launch(queue, (const void *)union_kernel, &run, n, 0, "union_kernel",
                            err));
out:
    return status;
}

/* Subset -------------------------------------------------------------------------------- */

struct subset_run {
    struct vxd_coord_set a;
    const uint8_t *keep;
    struct vxd_coord_set out;
    int32_t *rows_a;
    uint32_t *error_word;
    struct vxd_coord_set_scratch scratch;
};

static __device__ __forceinline__ uint64_t count_kept(const struct subset_run *run,
                                                      struct vxd_block_range range)
{
    uint64_t n_kept = 0;

    for (uint32_t i = range.begin + threadIdx.x; i < range.end; i += VXD_GRID_THREADS) {
        n_kept += run->keep[i] != 0;
    }
    return vxd_block_sum(n_kept);
}

static __device__ __forceinline__ void
copy_kept(const struct subset_run *run, struct vxd_block_range range, uint32_t row)
{
    for (uint32_t base = range.begin; base < range.end; base += VXD_GRID_THREADS) {
        uint32_t i = base + threadIdx.x;
        bool is_kept = i < range.end && run->keep[i] != 0;
        uint32_t n_in_tile;
        uint32_t at = row + vxd_block_rank(is_kept, &n_in_tile);

        if (is_kept) {
            run->out.keys[at] = run->a.keys[i];
            if (run->rows_a != NULL) {
                run->rows_a[at] = (int32_t)i;
            }
        }
        row += n_in_tile;
    }
}

static __global__ void __launch_bounds__(VXD_GRID_THREADS, 1)
    subset_kernel(const __grid_constant__ struct subset_run run)
{
    cg::grid_group grid = cg::this_grid();
    struct vxd_block_range range =
        vxd_block_range_of(*run.a.n_rows, vxd_block_group_of_grid());
    uint64_t n_kept = count_kept(&run, range);
    struct vxd_sums sums;

    if (threadIdx.x == 0) {
        run.scratch.words[VXD_WORDS_ROWS][blockIdx.x] = n_kept;
    }
    grid.sync();
    sums = vxd_grid_sum(run.scratch.words[VXD_WORDS_ROWS]);
    if (sums.total > run.out.capacity) {
        vxd_coord_set_fail(&run.out, run.error_word, VXD_RESOURCE_EXHAUSTED);
        return;
    }
    copy_kept(&run, range, (uint32_t)sums.before);
    grid.sync();
    make_of_rows(grid, &run.out, (uint32_t)sums.total, &run.scratch, run.error_word);
}

enum vxd_status vxd_coord_set_subset_cuda(struct vxd_queue *queue,
                                          const struct vxd_sparse_subset_call *call,
                                          struct vxd_err *err)
{
    struct subset_run run = {call->a,      call->keep,        call->out,
                             call->rows_a, queue->error_word, {}};
    enum vxd_status status = VXD_OK;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    VXD_TRY(vxd_coord_set_scratch_init(queue, call->a.capacity, call->scratch,
                                       call->scratch_bytes, &run.scratch, err));
    VXD_TRY(vxd_grid_launch(queue, (const void *)subset_kernel, &run, call->a.capacity, 0,
                            "subset_kernel", err));
out:
    return status;
}

/* Coordinates --------------------------------------------------------------------------- */

static __global__ void __launch_bounds__(COORDS_THREADS)
    coords_kernel(const __grid_constant__ struct vxd_sparse_coords_call call)
{
    uint32_t n = *call.coord_set.n_rows;
    uint32_t first = blockIdx.x * COORDS_THREADS + threadIdx.x;
    uint32_t step = gridDim.x * COORDS_THREADS;

    for (uint32_t i = first; i < n && call.coords != NULL; i += step) {
        int32_t *to = call.coords + 4 * (size_t)i;
        int32_t c[4];

        vxd_sparse_from_key(call.coord_set.keys[i], c);
        to[0] = c[0];
        for (int axis = 0; axis < 3; axis++) {
            to[1 + axis] = c[1 + axis] * call.times[axis];
        }
    }
    for (uint32_t i = first; i <= (uint32_t)call.n_samples && call.sample_starts != NULL;
         i += step) {
        call.sample_starts[i] = vxd_sparse_lower_bound(call.coord_set.keys, n,
                                                       vxd_sparse_key_sample((int32_t)i));
    }
}

enum vxd_status vxd_coord_set_coords_cuda(struct vxd_queue *queue,
                                          const struct vxd_sparse_coords_call *call,
                                          struct vxd_err *err)
{
    size_t n = call->coord_set.capacity > (size_t)call->n_samples
                   ? call->coord_set.capacity
                   : (size_t)call->n_samples;
    size_t n_blocks = (n + COORDS_THREADS) / COORDS_THREADS;
    size_t most = (size_t)queue->context->info.n_multiprocessors * 8;
    enum vxd_status status = VXD_OK;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    coords_kernel<<<(unsigned)(n_blocks < most ? n_blocks : most), COORDS_THREADS, 0,
                    (cudaStream_t)queue->stream>>>(*call);
    VXD_TRY(vxd_cuda_launched(queue->context, "coords_kernel", err));
out:
    return status;
}
