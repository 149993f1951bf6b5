// SPDX-License-Identifier: Apache-2.0
/* Float outputs: every voxel's points are reduced in point order.
 *
 * Voxels of up to VXD_SHORT_VOXEL points: a thread reduces one voxel and channel (or four
 * channels, where rows are 16-byte aligned) with four gathers in flight. Longer ones go to a
 * list of blocks of VXD_SUM_BLOCK points, each reduced by a warp that stages tiles of rows in
 * shared memory: adjacent lanes gather, then a lane for each channel adds them in order. Voxels
 * of several blocks leave partial rows, which a second pass reduces the same way. So the longest
 * chain of dependent additions is 1024 + n / 1024, not n.
 * Moved: 4 bytes of segment a voxel, 4 + 4 C a point, gathered, and the outputs. */
#include "gpu/voxel/voxelize_cuda.h"

#define N_THREADS 256
/* blocks that are reduced at a time: a block of the kernel has so many warps */
#define N_WARPS 4
#define TILE_FLOATS 1024 /* shared memory of a warp */
#define N_IN_FLIGHT 4U   /* gathers of a thread in flight, */
#define N_STAGED 8       /* and of a lane of a warp kernel; divides TILE_FLOATS / 32 */
#define N_PARTIAL_ROWS 3 /* sum, min, max */
#define NO_PARTIAL UINT32_MAX

/* One block of a long voxel. */
struct long_item {
    uint32_t rank;
    uint32_t block;
    uint32_t partial; /* row for the result, NO_PARTIAL where the voxel has one block */
};

/* A voxel of several blocks. */
struct fold_item {
    uint32_t rank;
    uint32_t partial; /* first of its rows */
};

struct counters {
    uint32_t n_items;
    uint32_t n_partials;
    uint32_t n_folds;
};

struct reduce_args {
    struct vxd_voxel_run run;
    struct counters *counters;
    struct long_item *items;
    struct fold_item *folds;
    float *partials; /* rows of N_PARTIAL_ROWS * n_channels */
};

struct fold {
    float sum;
    float min;
    float max;
};

/* A sum starts as -0, which leaves every first addend as it is. */
static __device__ __forceinline__ struct fold fold_start(float first)
{
    return {-0.0f, first, first};
}

static __device__ __forceinline__ void fold_point(struct fold *fold, float x)
{
    fold->sum = vxd_addf(fold->sum, x);
    fold->min = x < fold->min ? x : fold->min;
    fold->max = x > fold->max ? x : fold->max;
}

static __device__ __forceinline__ uint32_t n_kept(const struct vxd_voxel_run *run,
                                                  uint32_t rank, uint32_t place)
{
    uint32_t count = run->segments[rank + 1] - place;

    return count < run->max_points ? count : run->max_points;
}

/* WIDTH adjacent channels, moved at once. */
template <int WIDTH> struct lanes {
    float v[WIDTH];
};

template <int WIDTH>
static __device__ __forceinline__ struct lanes<WIDTH> load_lanes(const float *from) {
    struct lanes<WIDTH> x;

    if constexpr (WIDTH == 4) {
        float4 four = *(const float4 *)from;

        x.v[0] = four.x;
        x.v[1] = four.y;
        x.v[2] = four.z;
        x.v[3] = four.w;
    } else {
        x.v[0] = *from;
    }
    return x;
}

template <int WIDTH>
static __device__ __forceinline__ void store_lanes(float *to, struct lanes<WIDTH> x)
{
    if constexpr (WIDTH == 4) {
        *(float4 *)to = make_float4(x.v[0], x.v[1], x.v[2], x.v[3]);
    } else {
        *to = x.v[0];
    }
}

template <int WIDTH>
static __device__ __forceinline__ void
write_floats(const struct vxd_voxels *out, size_t at, uint32_t count,
             struct lanes<WIDTH> first, const struct fold folds[WIDTH])
{
    struct lanes<WIDTH> mean;
    struct lanes<WIDTH> sum;
    struct lanes<WIDTH> min;
    struct lanes<WIDTH> max;

    for (int c = 0; c < WIDTH; c++) {
        mean.v[c] = vxd_voxel_mean(folds[c].sum, count);
        sum.v[c] = vxd_canonical_nanf(folds[c].sum);
        min.v[c] = folds[c].min;
        max.v[c] = folds[c].max;
    }
    if (out->mean != NULL) {
        store_lanes<WIDTH>(out->mean + at, mean);
    }
    if (out->sum != NULL) {
        store_lanes<WIDTH>(out->sum + at, sum);
    }
    if (out->min != NULL) {
        store_lanes<WIDTH>(out->min + at, min);
    }
    if (out->max != NULL) {
        store_lanes<WIDTH>(out->max + at, max);
    }
    if (out->first != NULL) {
        store_lanes<WIDTH>(out->first + at, first);
    }
}

/* Lists a voxel that is too long for one thread; each item of the list is a warp's
 * work. */
static __device__ void list_long_voxel(const struct reduce_args *args, uint32_t rank,
                                       uint32_t count)
{
    uint32_t n_blocks = (count - 1) / VXD_SUM_BLOCK + 1;
    uint32_t item = atomicAdd(&args->counters->n_items, n_blocks);
    uint32_t partial = NO_PARTIAL;

    if (n_blocks > 1) {
        partial = atomicAdd(&args->counters->n_partials, n_blocks);
        args->folds[atomicAdd(&args->counters->n_folds, 1)] = {rank, partial};
    }
    for (uint32_t b = 0; b < n_blocks; b++) {
        args->items[item + b] = {rank, b, n_blocks > 1 ? partial + b : NO_PARTIAL};
    }
}

/* Reduces points [place, place + count) of WIDTH channels that start at `features`.
 * After the end the last row is fetched again rather than skipped: a branch would make
 * each gather wait for the previous one. */
template <int WIDTH>
static __device__ __forceinline__ void
fold_short(const struct vxd_voxel_run *run, const float *features, uint32_t place,
           uint32_t count, struct lanes<WIDTH> *first, struct fold folds[WIDTH])
{
    const size_t n_channels = (size_t)run->n_channels;

    *first =
        load_lanes<WIDTH>(features + vxd_sorted_index(&run->sorted, place) * n_channels);
    for (int c = 0; c < WIDTH; c++) {
        folds[c] = {first->v[c], first->v[c], first->v[c]};
    }
    for (uint32_t k = 1; k < count; k += N_IN_FLIGHT) {
        struct lanes<WIDTH> x[N_IN_FLIGHT];

#pragma unroll
        for (uint32_t j = 0; j < N_IN_FLIGHT; j++) {
            size_t at = (size_t)place + min(k + j, count - 1);

            x[j] = load_lanes<WIDTH>(features +
                                     vxd_sorted_index(&run->sorted, at) * n_channels);
        }
#pragma unroll
        for (uint32_t j = 0; j < N_IN_FLIGHT; j++) {
            for (int c = 0; c < WIDTH && k + j < count; c++) {
                fold_point(&folds[c], x[j].v[c]);
            }
        }
    }
}

/* A block handles (n_channels / WIDTH) x some ranks. */
template <int WIDTH>
static __global__ void __launch_bounds__(N_THREADS)
    short_kernel(const __grid_constant__ struct reduce_args args)
{
    const struct vxd_voxel_run &run = args.run;
    uint32_t n_ranks = run.sample_voxels[run.n_batch];
    size_t stride = (size_t)gridDim.x * blockDim.y;
    size_t channel = (size_t)threadIdx.x * WIDTH;

    for (size_t r = (size_t)blockIdx.x * blockDim.y + threadIdx.y; r < n_ranks;
         r += stride) {
        uint32_t rank = (uint32_t)r;
        uint32_t place = run.segments[rank];
        uint32_t count = n_kept(&run, rank, place);
        uint32_t voxel = vxd_run_voxel(&run, rank);
        struct lanes<WIDTH> first;
        struct fold folds[WIDTH];

        if (voxel == VXD_NO_VOXEL) {
            continue;
        }
        if (count > VXD_SHORT_VOXEL) {
            if (threadIdx.x == 0) {
                list_long_voxel(&args, rank, count);
            }
            continue;
        }
        fold_short<WIDTH>(&run, run.features + channel, place, count, &first, folds);
        write_floats<WIDTH>(&run.out, voxel * (size_t)run.n_channels + channel, count,
                            first, folds);
    }
}

/* A warp reduces rows 0 to n_rows - 1, of `width` <= 32 floats each, in order; lane c
 * < width gets the result of column c. load(row, column) fetches; all lanes call
 * together. */
template <typename LOAD>
static __device__ __forceinline__ void fold_rows(float *tile, uint32_t n_rows, int width,
                                                 LOAD load, struct fold *fold)
{
    const int lane = (int)(threadIdx.x & 31);
    const uint32_t tile_rows = (uint32_t)(TILE_FLOATS / width);
    /* e / width = e * inverse >> 16 for every e < 1024 and width <= 32. */
    const int inverse = 65536 / width + 1;

    for (uint32_t start = 0; start < n_rows; start += tile_rows) {
        uint32_t rows = n_rows - start < tile_rows ? n_rows - start : tile_rows;
        int n_floats = (int)rows * width;

        for (int first = lane; first < n_floats; first += 32 * N_STAGED) {
            float staged[N_STAGED];

#pragma unroll
            for (int j = 0; j < N_STAGED; j++) {
                int e = min(first + 32 * j, n_floats - 1);
                int row = e * inverse >> 16;

                staged[j] = load(start + (uint32_t)row, e - row * width);
            }
#pragma unroll
            for (int j = 0; j < N_STAGED; j++) {
                tile[first + 32 * j] = staged[j];
            }
        }
        __syncwarp();
        if (lane < width) {
#pragma unroll 8
            for (uint32_t row = 0; row < rows; row++) {
                fold_point(fold, tile[(int)row * width + lane]);
            }
        }
        __syncwarp();
    }
}

/* One block of a long voxel, channels [base, base + width). */
static __device__ void fold_long_item(const struct reduce_args *args,
                                      struct long_item item, int base, int width,
                                      float *tile)
{
    const struct vxd_voxel_run *run = &args->run;
    const size_t n_channels = (size_t)run->n_channels;
    uint32_t place = run->segments[item.rank];
    uint32_t count = n_kept(run, item.rank, place);
    uint32_t skip = item.block * VXD_SUM_BLOCK;
    uint32_t n_rows = count - skip < VXD_SUM_BLOCK ? count - skip : VXD_SUM_BLOCK;
    int channel = base + (int)(threadIdx.x & 31);
    const float *features = run->features + base;
    struct fold fold;
    float first = 0.0f;

    if (channel < base + width) {
        first = run->features[vxd_sorted_index(&run->sorted, place) * n_channels +
                              (size_t)channel];
    }
    fold = fold_start(first);
    fold_rows(
        tile, n_rows, width,
        [=](uint32_t row, int column) {
            size_t point = vxd_sorted_index(&run->sorted, (size_t)place + skip + row);

            return features[point * n_channels + (size_t)column];
        },
        &fold);
    if (channel >= base + width) {
        return;
    }
    if (item.partial == NO_PARTIAL) {
        write_floats<1>(&run->out,
                        vxd_run_voxel(run, item.rank) * n_channels + (size_t)channel,
                        count, {first}, &fold);
    } else {
        float *row = args->partials + item.partial * (N_PARTIAL_ROWS * n_channels) +
                     (size_t)channel;

        row[0] = fold.sum;
        row[n_channels] = fold.min;
        row[2 * n_channels] = fold.max;
    }
}

static __global__ void __launch_bounds__(N_WARPS * 32)
    long_kernel(const __grid_constant__ struct reduce_args args)
{
    __shared__ float tiles[N_WARPS][TILE_FLOATS];
    uint32_t n_items = args.counters->n_items;
    int n_channels = args.run.n_channels;
    int warp = (int)(threadIdx.x / 32);

    for (uint32_t i = blockIdx.x * N_WARPS + (uint32_t)warp; i < n_items;
         i += gridDim.x * N_WARPS) {
        for (int base = 0; base < n_channels; base += 32) {
            int width = n_channels - base < 32 ? n_channels - base : 32;

            fold_long_item(&args, args.items[i], base, width, tiles[warp]);
        }
    }
}

/* Reduces the block sums and block extremes of one voxel in order. The extremes of
 * every block started from the voxel's first point, so the result equals that of the
 * points in order. */
static __device__ void fold_partials(const struct reduce_args *args,
                                     struct fold_item item, int base, int width,
                                     float *tile)
{
    const struct vxd_voxel_run *run = &args->run;
    const size_t n_channels = (size_t)run->n_channels;
    const size_t row_floats = N_PARTIAL_ROWS * n_channels;
    uint32_t place = run->segments[item.rank];
    uint32_t count = n_kept(run, item.rank, place);
    uint32_t n_rows = (count - 1) / VXD_SUM_BLOCK + 1;
    int lane = (int)(threadIdx.x & 31);
    size_t channel = (size_t)base + (size_t)(lane < width ? lane : 0);
    const float *rows = args->partials + item.partial * row_floats;
    struct fold folds[N_PARTIAL_ROWS];
    struct fold result;

#pragma unroll
    for (size_t kind = 0; kind < N_PARTIAL_ROWS; kind++) {
        const float *columns = rows + kind * n_channels + base;

        folds[kind] = fold_start(rows[kind * n_channels + channel]);
        fold_rows(
            tile, n_rows, width,
            [=](uint32_t row, int column) { return columns[row * row_floats + column]; },
            &folds[kind]);
    }
    if (lane < width) {
        result = {folds[0].sum, folds[1].min, folds[2].max};
        write_floats<1>(
            &run->out, vxd_run_voxel(run, item.rank) * n_channels + channel, count,
            {run->features[vxd_sorted_index(&run->sorted, place) * n_channels + channel]},
            &result);
    }
}

static __global__ void __launch_bounds__(N_WARPS * 32)
    partial_kernel(const __grid_constant__ struct reduce_args args)
{
    __shared__ float tiles[N_WARPS][TILE_FLOATS];
    uint32_t n_folds = args.counters->n_folds;
    int n_channels = args.run.n_channels;
    int warp = (int)(threadIdx.x / 32);

    for (uint32_t i = blockIdx.x * N_WARPS + (uint32_t)warp; i < n_folds;
         i += gridDim.x * N_WARPS) {
        for (int base = 0; base < n_channels; base += 32) {
            int width = n_channels - base < 32 ? n_channels - base : 32;

            fold_partials(&args, args.folds[i], base, width, tiles[warp]);
        }
    }
}

/* Hard voxels: a warp copies a voxel's kept points and pads with zeros. */
static __global__ void __launch_bounds__(N_THREADS)
    points_kernel(const __grid_constant__ struct vxd_voxel_run run)
{
    const size_t n_channels = (size_t)run.n_channels;
    const size_t row_floats = (size_t)run.max_points * n_channels;
    const size_t n_warps = N_THREADS / 32;
    uint32_t n_ranks = run.sample_voxels[run.n_batch];

    for (size_t r = (size_t)blockIdx.x * n_warps + threadIdx.x / 32; r < n_ranks;
         r += (size_t)gridDim.x * n_warps) {
        uint32_t place = run.segments[r];
        uint32_t count = n_kept(&run, (uint32_t)r, place);
        uint32_t voxel = vxd_run_voxel(&run, (uint32_t)r);
        float *row = run.out.points + voxel * row_floats;

        for (size_t e = threadIdx.x & 31; voxel != VXD_NO_VOXEL && e < row_floats;
             e += 32) {
            size_t slot = e / n_channels;
            float value = 0.0f;

            if (slot < count) {
                value = run.features[vxd_sorted_index(&run.sorted, place + slot) *
                                         n_channels +
                                     (e - slot * n_channels)];
            }
            row[e] = value;
        }
    }
}

bool vxd_voxelize_reduce_layout(struct vxd_voxel_plan *plan, size_t n_points,
                                int n_channels)
{
    size_t *total = &plan->total_bytes;
    /* A listed voxel of c points has c > VXD_SHORT_VOXEL and at most c / VXD_SHORT_VOXEL
     * blocks; one of several blocks has at most 2 c / VXD_SUM_BLOCK. */
    size_t n_items = n_points / VXD_SHORT_VOXEL;
    size_t n_partials = 2 * (n_points / VXD_SUM_BLOCK + 1);
    size_t n_folds = n_points / VXD_SUM_BLOCK;

    return vxd_layout_add(total, 1, sizeof(struct counters), &plan->counters) &&
           vxd_layout_add(total, n_items, sizeof(struct long_item), &plan->items) &&
           vxd_layout_add(total, n_folds, sizeof(struct fold_item), &plan->folds) &&
           vxd_layout_add(total, n_partials * (size_t)n_channels,
                          N_PARTIAL_ROWS * sizeof(float), &plan->partials);
}

/* Whether every row of every float array starts on 16 bytes. */
static bool rows_are_aligned(const struct vxd_voxel_run *run)
{
    const float *arrays[] = {run->features, run->out.mean, run->out.sum,
                             run->out.min,  run->out.max,  run->out.first};
    uintptr_t bits = (uintptr_t)run->n_channels * sizeof(float);

    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) {
        bits |= (uintptr_t)arrays[i];
    }
    return bits % 16 == 0;
}

static enum vxd_status launch_folds(struct vxd_queue *queue,
                                    const struct reduce_args *args, struct vxd_err *err)
{
    struct vxd_context *context = queue->context;
    cudaStream_t stream = (cudaStream_t)queue->stream;
    int n_channels = args->run.n_channels;
    size_t n = args->run.n_points;
    bool is_aligned = rows_are_aligned(&args->run);
    dim3 threads((unsigned)(is_aligned ? n_channels / 4 : n_channels));
    enum vxd_status status = VXD_OK;
    unsigned n_blocks;

    threads.y = N_THREADS / threads.x;
    n_blocks = vxd_voxelize_blocks(queue, n, (int)threads.y);
    if (is_aligned) {
        short_kernel<4><<<n_blocks, threads, 0, stream>>>(*args);
    } else {
        short_kernel<1><<<n_blocks, threads, 0, stream>>>(*args);
    }
    VXD_TRY(vxd_cuda_launched(context, "short_kernel", err));
    if (n <= VXD_SHORT_VOXEL || args->run.max_points <= VXD_SHORT_VOXEL) {
        goto out;
    }
    n_blocks = vxd_voxelize_blocks(queue, n / VXD_SHORT_VOXEL, N_WARPS);
    long_kernel<<<n_blocks, N_WARPS * 32, 0, stream>>>(*args);
    VXD_TRY(vxd_cuda_launched(context, "long_kernel", err));
    if (n <= VXD_SUM_BLOCK || args->run.max_points <= VXD_SUM_BLOCK) {
        goto out;
    }
    n_blocks = vxd_voxelize_blocks(queue, n / VXD_SUM_BLOCK, N_WARPS);
    partial_kernel<<<n_blocks, N_WARPS * 32, 0, stream>>>(*args);
    VXD_TRY(vxd_cuda_launched(context, "partial_kernel", err));
out:
    return status;
}

enum vxd_status vxd_voxelize_reduce(struct vxd_queue *queue,
                                    const struct vxd_voxel_plan *plan,
                                    const struct vxd_voxel_run *run, void *scratch,
                                    struct vxd_err *err)
{
    const struct vxd_voxels *out = &run->out;
    uint8_t *base = (uint8_t *)scratch;
    enum vxd_status status = VXD_OK;
    struct reduce_args args = {};

    args.run = *run;
    args.counters = (struct counters *)(base + plan->counters);
    args.items = (struct long_item *)(base + plan->items);
    args.folds = (struct fold_item *)(base + plan->folds);
    args.partials = (float *)(base + plan->partials);
    if (out->mean != NULL || out->sum != NULL || out->min != NULL || out->max != NULL ||
        out->first != NULL) {
        VXD_TRY(vxd_cuda_fill(queue, args.counters, 0, sizeof *args.counters, err));
        VXD_TRY(launch_folds(queue, &args, err));
    }
    if (out->points != NULL) {
        points_kernel<<<vxd_voxelize_blocks(queue, run->n_points, N_THREADS / 32),
                        N_THREADS, 0, (cudaStream_t)queue->stream>>>(*run);
        VXD_TRY(vxd_cuda_launched(queue->context, "points_kernel", err));
    }
out:
    return status;
}
