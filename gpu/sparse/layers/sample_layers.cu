// SPDX-License-Identifier: Apache-2.0
/* CUDA backend of reductions over all rows of a sample: global pools and batch norm.
 *
 * A block reduces a piece of VXD_NET_PIECE rows, 32 channels of it: all threads fetch them into
 * shared memory at once, then a lane for each channel processes the rows in order. A second
 * kernel reduces the pieces of a sample in the same way. So the order equals that of the CPU, and
 * the chain of dependent additions, of length 256 + n / 256, reads shared memory.
 * Moved: every element read once (batch norm: read three times, written once). */
#include "gpu/sparse/layers/layers_cuda.h"

#define N_COLUMNS 32 /* channels of a block */

/* What is summed of each element. */
enum term {
    TERM_MAX,
    TERM_SUM,
    TERM_GEM_POWER,
    TERM_SQUARE /* the squared deviation from the mean */
};

struct piece_args {
    enum vxd_net_precision precision;
    enum term term;
    float p;
    float eps;
    struct vxd_net_extent extent;
    struct vxd_rows in;
    const float *mean; /* TERM_SQUARE: a row for each sample */
    float *pieces;     /* a row for each place */
};

struct __align__(16) tile
{
    float v[VXD_NET_PIECE][N_COLUMNS];
};

/* Reduces column threadIdx.x of the tile's first n_rows rows, starting from `folded`;
 * without an earlier row, a maximum begins with the first row. */
static __device__ __forceinline__ float fold_column(const struct tile *tile,
                                                    uint32_t n_rows, bool is_max,
                                                    bool is_begun, float folded)
{
    const int column = (int)threadIdx.x;

    if (is_max) {
        folded = is_begun ? folded : tile->v[0][column];
#pragma unroll 8
        for (uint32_t row = 0; row < n_rows; row++) {
            folded = vxd_net_max(folded, tile->v[row][column]);
        }
        return folded;
    }
#pragma unroll 8
    for (uint32_t row = 0; row < n_rows; row++) {
        folded = vxd_addf(folded, tile->v[row][column]);
    }
    return folded;
}

static __device__ __forceinline__ float term_of(const struct piece_args *args, float x,
                                                int sample, int c)
{
    switch (args->term) {
    case TERM_GEM_POWER:
        return vxd_net_gem_power(x, args->p, args->eps);
    case TERM_SQUARE:
        x = vxd_subf(x, args->mean[(size_t)sample * (size_t)args->in.n_channels + c]);
        return vxd_mulf(x, x);
    default:
        return x;
    }
}

template <typename FORM>
static __global__ void __launch_bounds__(VXD_NET_THREADS)
    piece_kernel(const __grid_constant__ struct piece_args args)
{
    __shared__ struct tile tile;
    const int base = (int)blockIdx.y * N_COLUMNS;
    const int n_columns = min(args.in.n_channels - base, N_COLUMNS);
    const uint32_t n_vectors = (uint32_t)(n_columns / FORM::width);
    const struct vxd_net_span span =
        vxd_net_find_span<VXD_NET_PIECE>(&args.extent, blockIdx.x);
    const uint32_t n_rows = span.end - span.begin;

    if (n_rows == 0) {
        return;
    }
#pragma unroll 4
    for (uint32_t i = threadIdx.x; i < n_rows * n_vectors; i += VXD_NET_THREADS) {
        uint32_t row = i / n_vectors;
        int column = (int)(i % n_vectors) * FORM::width;
        struct vxd_lanes<FORM::width> x =
            vxd_net_load<FORM>(vxd_net_at<const typename FORM::element>(
                &args.in, span.begin + row, base + column));

#pragma unroll
        for (int j = 0; j < FORM::width; j++) {
            x.v[j] = term_of(&args, x.v[j], span.sample, base + column + j);
        }
        vxd_net_store_floats<FORM::width>(&tile.v[row][column], x);
    }
    __syncthreads();
    if ((int)threadIdx.x < n_columns) {
        args.pieces[(size_t)blockIdx.x * (size_t)args.in.n_channels + base +
                    threadIdx.x] =
            fold_column(&tile, n_rows, args.term == TERM_MAX, false, 0.0f);
    }
}

static enum vxd_status fold_pieces(struct vxd_queue *queue, const struct piece_args *args,
                                   struct vxd_err *err)
{
    const struct vxd_rows *rows[] = {&args->in};
    int width = vxd_net_width(args->precision, rows, 1, NULL, 0);
    dim3 grid((unsigned)vxd_net_n_pieces(args->extent.max_rows, args->extent.n_samples),
              (unsigned)((args->in.n_channels + N_COLUMNS - 1) / N_COLUMNS));

    vxd_net_by_form(args->precision, width, [&](auto form) {
        piece_kernel<decltype(form)>
            <<<grid, VXD_NET_THREADS, 0, (cudaStream_t)queue->stream>>>(*args);
    });
    return vxd_cuda_launched(queue->context, "piece_kernel", err);
}

/* Reduces the pieces of one channel of a sample; lanes up to N_COLUMNS - 1 hold a
 * result. All threads of a block call together. */
static __device__ __forceinline__ float fold_sample(const struct vxd_net_extent *extent,
                                                    const float *pieces, int n_channels,
                                                    int sample, int base, bool is_max,
                                                    struct tile *tile)
{
    const uint32_t start = vxd_net_start(extent, sample);
    const uint32_t n_rows = vxd_net_start(extent, sample + 1) - start;
    const uint32_t n_pieces = (n_rows + VXD_NET_PIECE - 1) / VXD_NET_PIECE;
    const int n_columns = min(n_channels - base, N_COLUMNS);
    const uint32_t lane = threadIdx.x % N_COLUMNS;
    float folded = 0.0f;

    pieces += vxd_net_piece_place(start, sample, 0) * (size_t)n_channels + base;
    for (uint32_t first = 0; first < n_pieces; first += VXD_NET_PIECE) {
        uint32_t n = min(n_pieces - first, (uint32_t)VXD_NET_PIECE);

        __syncthreads();
#pragma unroll 8
        for (uint32_t i = threadIdx.x / N_COLUMNS; i < n;
             i += VXD_NET_THREADS / N_COLUMNS) {
            if ((int)lane < n_columns) {
                tile->v[i][lane] = pieces[(size_t)(first + i) * n_channels + lane];
            }
        }
        __syncthreads();
        if (threadIdx.x < N_COLUMNS && (int)lane < n_columns) {
            /* The sum starts as -0, which leaves the first addend as it is. */
            folded = fold_column(tile, n, is_max, first > 0, first > 0 ? folded : -0.0f);
        }
    }
    return folded;
}

template <typename FORM>
static __global__ void __launch_bounds__(VXD_NET_THREADS)
    global_kernel(const __grid_constant__ struct vxd_net_global_call call)
{
    __shared__ struct tile tile;
    const int sample = (int)blockIdx.x;
    const int base = (int)blockIdx.y * N_COLUMNS;
    const int c = base + (int)threadIdx.x;
    const uint32_t n_rows =
        vxd_net_start(&call.extent, sample + 1) - vxd_net_start(&call.extent, sample);
    float x = fold_sample(&call.extent, (const float *)call.scratch, call.in.n_channels,
                          sample, base, call.global == VXD_NET_GLOBAL_OF_MAX, &tile);

    if (threadIdx.x >= N_COLUMNS || c >= call.in.n_channels) {
        return;
    }
    if (n_rows > 0 && call.global != VXD_NET_GLOBAL_OF_MAX) {
        x = vxd_divf(x, (float)n_rows);
        if (call.global == VXD_NET_GLOBAL_OF_GEM) {
            x = vxd_net_gem_root(x, call.p);
        }
    }
    vxd_net_narrow(x, vxd_net_at<typename FORM::element>(&call.out, (size_t)sample, c));
}

size_t vxd_net_global_scratch_bytes_cuda(size_t max_rows, int n_samples, int n_channels)
{
    return vxd_net_n_pieces(max_rows, n_samples) * (size_t)n_channels * sizeof(float);
}

enum vxd_status vxd_net_global_cuda(struct vxd_queue *queue,
                                    const struct vxd_net_global_call *call,
                                    struct vxd_err *err)
{
    static const enum term terms[] = {TERM_MAX, TERM_SUM, TERM_GEM_POWER};
    dim3 grid((unsigned)call->extent.n_samples,
              (unsigned)((call->in.n_channels + N_COLUMNS - 1) / N_COLUMNS));
    enum vxd_status status = VXD_OK;
    struct piece_args args = {};

    args.precision = call->precision;
    args.term = terms[call->global];
    args.p = call->p;
    args.eps = call->eps;
    args.extent = call->extent;
    args.in = call->in;
    args.pieces = (float *)call->scratch;
    VXD_TRY(vxd_cuda_enter(queue->context, err));
    VXD_TRY(fold_pieces(queue, &args, err));
    vxd_net_by_element(call->precision, [&](auto form) {
        global_kernel<decltype(form)>
            <<<grid, VXD_NET_THREADS, 0, (cudaStream_t)queue->stream>>>(*call);
    });
    VXD_TRY(vxd_cuda_launched(queue->context, "global_kernel", err));
out:
    return status;
}

/* Computes a sample's mean, or the factor of its rows. */
struct moment_args {
    struct vxd_net_extent extent;
    int n_channels;
    const float *pieces;
    float *mean;   /* NULL in the second pass, */
    float *factor; /* which computes this one */
    const float *scale;
    float eps;
};

static __global__ void __launch_bounds__(VXD_NET_THREADS)
    moment_kernel(const __grid_constant__ struct moment_args args)
{
    __shared__ struct tile tile;
    const int sample = (int)blockIdx.x;
    const int base = (int)blockIdx.y * N_COLUMNS;
    const int c = base + (int)threadIdx.x;
    const uint32_t n_rows =
        vxd_net_start(&args.extent, sample + 1) - vxd_net_start(&args.extent, sample);
    const size_t at = (size_t)sample * (size_t)args.n_channels + (size_t)c;
    float x = fold_sample(&args.extent, args.pieces, args.n_channels, sample, base, false,
                          &tile);

    if (threadIdx.x >= N_COLUMNS || c >= args.n_channels || n_rows == 0) {
        return;
    }
    x = vxd_divf(x, (float)n_rows);
    if (args.mean != NULL) {
        args.mean[at] = x;
    } else {
        args.factor[at] = vxd_divf(args.scale != NULL ? args.scale[c] : 1.0f,
                                   __fsqrt_rn(vxd_addf(x, args.eps)));
    }
}

/* Several blocks share a piece, so that the rows of a block share their sample's
 * moments. */
template <typename FORM>
static __global__ void __launch_bounds__(VXD_NET_THREADS)
    batch_norm_kernel(const __grid_constant__ struct vxd_net_batch_norm_call call,
                      const float *mean, const float *factor)
{
    const int n_channels = call.in.n_channels;
    const struct vxd_net_span span =
        vxd_net_find_span<VXD_NET_PIECE>(&call.extent, blockIdx.x);

    mean += (size_t)span.sample * (size_t)n_channels;
    factor += (size_t)span.sample * (size_t)n_channels;
    for (uint32_t row = span.begin + blockIdx.y * blockDim.y + threadIdx.y;
         row < span.end; row += gridDim.y * blockDim.y) {
        for (int c = (int)threadIdx.x * FORM::width; c < n_channels;
             c += (int)blockDim.x * FORM::width) {
            struct vxd_lanes<FORM::width> x = vxd_net_load<FORM>(
                vxd_net_at<const typename FORM::element>(&call.in, row, c));

#pragma unroll
            for (int i = 0; i < FORM::width; i++) {
                float y = vxd_mulf(vxd_subf(x.v[i], mean[c + i]), factor[c + i]);

                y = call.bias != NULL ? vxd_addf(y, call.bias[c + i]) : y;
                x.v[i] = vxd_activate(call.act, call.alpha, y);
            }
            vxd_net_store<FORM>(vxd_net_at<typename FORM::element>(&call.out, row, c), x);
        }
    }
}

size_t vxd_net_batch_norm_scratch_bytes_cuda(size_t max_rows, int n_samples,
                                             int n_channels)
{
    return (vxd_net_n_pieces(max_rows, n_samples) + 2 * (size_t)n_samples) *
           (size_t)n_channels * sizeof(float);
}

/* The mean of every sample, then the factors; args.pieces is used twice. */
static enum vxd_status find_moments(struct vxd_queue *queue, struct piece_args *args,
                                    struct moment_args *moments, float *mean,
                                    struct vxd_err *err)
{
    dim3 grid((unsigned)moments->extent.n_samples,
              (unsigned)((moments->n_channels + N_COLUMNS - 1) / N_COLUMNS));
    enum vxd_status status = VXD_OK;

    for (int pass = 0; pass < 2; pass++) {
        args->term = pass == 0 ? TERM_SUM : TERM_SQUARE;
        moments->mean = pass == 0 ? mean : NULL;
        VXD_TRY(fold_pieces(queue, args, err));
        moment_kernel<<<grid, VXD_NET_THREADS, 0, (cudaStream_t)queue->stream>>>(
            *moments);
        VXD_TRY(vxd_cuda_launched(queue->context, "moment_kernel", err));
    }
out:
    return status;
}

enum vxd_status vxd_net_batch_norm_cuda(struct vxd_queue *queue,
                                        const struct vxd_net_batch_norm_call *call,
                                        struct vxd_err *err)
{
    const struct vxd_rows *rows[] = {&call->in, &call->out};
    const int n_channels = call->in.n_channels;
    int width = vxd_net_width(call->precision, rows, 2, NULL, 0);
    size_t n_places = vxd_net_n_pieces(call->extent.max_rows, call->extent.n_samples);
    float *pieces = (float *)call->scratch;
    float *mean = pieces + n_places * (size_t)n_channels;
    float *factor = mean + (size_t)call->extent.n_samples * (size_t)n_channels;
    dim3 threads = vxd_net_row_grid(queue, 0, n_channels / width).threads;
    /* A thread takes up to four rows. */
    dim3 blocks((unsigned)n_places, (VXD_NET_PIECE / 4 + threads.y - 1) / threads.y);
    enum vxd_status status = VXD_OK;
    struct piece_args args = {};
    struct moment_args moments = {};

    args.precision = call->precision;
    args.extent = call->extent;
    args.in = call->in;
    args.mean = mean;
    args.pieces = pieces;
    moments.extent = call->extent;
    moments.n_channels = n_channels;
    moments.pieces = pieces;
    moments.factor = factor;
    moments.scale = call->scale;
    moments.eps = call->eps;
    VXD_TRY(vxd_cuda_enter(queue->context, err));
    VXD_TRY(find_moments(queue, &args, &moments, mean, err));
    vxd_net_by_form(call->precision, width, [&](auto form) {
        batch_norm_kernel<decltype(form)>
            <<<blocks, threads, 0, (cudaStream_t)queue->stream>>>(*call, mean, factor);
    });
    VXD_TRY(vxd_cuda_launched(queue->context, "batch_norm_kernel", err));
out:
    return status;
}
