// SPDX-License-Identifier: Apache-2.0
/* CUDA backend of tokens: every token is the sum of a sample's values weighted by a softmax over
 * its rows.
 *
 * A block takes a piece of VXD_NET_PIECE rows, 8 tokens and 64 channels of the values. A thread
 * for each row turns scores into weights with the piece's own maximum; then a thread for each
 * channel adds up weight times value over a quarter of the rows, and the quarters are added in
 * order. A second kernel rescales the pieces of a sample to their common maximum and adds them in
 * order. So the order depends on the sample alone.
 * Moved: scores and values once (values once for every 8 tokens, from L2), and a row of
 * n_channels + 2 floats for each piece and token. */
#include "gpu/sparse/layers/layers_cuda.h"

#define N_TOKENS 8
#define N_COLUMNS 64
#define N_QUARTERS (VXD_NET_THREADS / N_COLUMNS)
#define QUARTER_ROWS (VXD_NET_PIECE / N_QUARTERS)
#define N_WARPS (VXD_NET_THREADS / 32)

static_assert(VXD_NET_THREADS == VXD_NET_PIECE, "a thread weighs one row of a piece");

/* A piece's scratch, for each token: the greatest score, the sum of the weights, and
 * n_channels sums of weighted values. */
static __device__ __forceinline__ float *
partial_at(const struct vxd_net_tokens_call *call, size_t place, int token)
{
    return (float *)call->scratch + (place * (size_t)call->scores.n_channels + token) *
                                        ((size_t)call->values.n_channels + 2);
}

struct token_tiles {
    float weights[VXD_NET_PIECE][N_TOKENS];
    float sums[N_QUARTERS][N_TOKENS][N_COLUMNS];
    float warp_best[N_WARPS][N_TOKENS];
};

/* Weights of the piece's rows, a row a thread; returns the greatest score of each
 * token in best. Weights are 0 where all scores are minus infinity. All threads call
 * together. */
template <typename FORM>
static __device__ __forceinline__ void
classify_rows(const struct vxd_net_tokens_call *call, struct vxd_net_span span,
              int first_token, struct token_tiles *tiles, float best[N_TOKENS])
{
    const int warp = (int)threadIdx.x / 32;
    const uint32_t row = span.begin + threadIdx.x;
    float x[N_TOKENS];

#pragma unroll
    for (int t = 0; t < N_TOKENS; t++) {
        x[t] = -INFINITY;
        if (row < span.end && first_token + t < call->scores.n_channels) {
            x[t] = vxd_net_widen(*vxd_net_at<const typename FORM::element>(
                &call->scores, row, first_token + t));
        }
        best[t] = x[t];
        for (int apart = 16; apart > 0; apart /= 2) {
            best[t] = fmaxf(best[t], __shfl_xor_sync(UINT32_MAX, best[t], apart));
        }
        tiles->warp_best[warp][t] = best[t];
    }
    __syncthreads();
#pragma unroll
    for (int t = 0; t < N_TOKENS; t++) {
        best[t] = tiles->warp_best[0][t];
#pragma unroll
        for (int other = 1; other < N_WARPS; other++) {
            best[t] = fmaxf(best[t], tiles->warp_best[other][t]);
        }
        tiles->weights[threadIdx.x][t] =
            expf(x[t] - (best[t] == -INFINITY ? 0.0f : best[t]));
    }
    __syncthreads();
}

/* One channel's weighted values over a quarter of the rows, for all tokens. */
template <typename FORM>
static __device__ __forceinline__ void add_quarter(const struct vxd_net_tokens_call *call,
                                                   struct vxd_net_span span, int c,
                                                   struct token_tiles *tiles)
{
    const int quarter = (int)threadIdx.x / N_COLUMNS;
    const uint32_t first = (uint32_t)(quarter * QUARTER_ROWS);
    const uint32_t n_rows = span.end - span.begin;
    const uint32_t end = min(first + QUARTER_ROWS, n_rows);
    float sums[N_TOKENS] = {};

    if (c < call->values.n_channels) {
#pragma unroll 8
        for (uint32_t row = first; row < end; row++) {
            float value = vxd_net_widen(*vxd_net_at<const typename FORM::element>(
                &call->values, span.begin + (size_t)row, c));

#pragma unroll
            for (int t = 0; t < N_TOKENS; t++) {
                sums[t] = fmaf(tiles->weights[row][t], value, sums[t]);
            }
        }
    }
#pragma unroll
    for (int t = 0; t < N_TOKENS; t++) {
        tiles->sums[quarter][t][threadIdx.x % N_COLUMNS] = sums[t];
    }
}

/* Adds the weights of one token, quarter by quarter. */
static __device__ __forceinline__ float add_weights(const struct token_tiles *tiles,
                                                    int token)
{
    float total = 0.0f;

    for (int quarter = 0; quarter < N_QUARTERS; quarter++) {
        float sum = 0.0f;

#pragma unroll 8
        for (int row = 0; row < QUARTER_ROWS; row++) {
            sum += tiles->weights[quarter * QUARTER_ROWS + row][token];
        }
        total += sum;
    }
    return total;
}

template <typename FORM>
static __global__ void __launch_bounds__(VXD_NET_THREADS)
    piece_kernel(const __grid_constant__ struct vxd_net_tokens_call call)
{
    __shared__ __align__(16) struct token_tiles tiles;
    const struct vxd_net_span span =
        vxd_net_find_span<VXD_NET_PIECE>(&call.extent, blockIdx.x);
    const int first_token = (int)blockIdx.y * N_TOKENS;
    const int n_tokens = min(call.scores.n_channels - first_token, N_TOKENS);
    const int first_channel = (int)blockIdx.z * N_COLUMNS;
    float best[N_TOKENS];

    if (span.begin == span.end) {
        return;
    }
    classify_rows<FORM>(&call, span, first_token, &tiles, best);
    add_quarter<FORM>(&call, span, first_channel + (int)threadIdx.x % N_COLUMNS, &tiles);
    __syncthreads();
    for (int i = (int)threadIdx.x; i < n_tokens * N_COLUMNS; i += VXD_NET_THREADS) {
        int token = i / N_COLUMNS;
        int column = i % N_COLUMNS;

        if (first_channel + column < call.values.n_channels) {
            float sum = tiles.sums[0][token][column];

            for (int quarter = 1; quarter < N_QUARTERS; quarter++) {
                sum += tiles.sums[quarter][token][column];
            }
            partial_at(&call, blockIdx.x,
                       first_token + token)[2 + first_channel + column] = sum;
        }
    }
    if (blockIdx.z == 0 && (int)threadIdx.x < n_tokens) {
        float *partial = partial_at(&call, blockIdx.x, first_token + (int)threadIdx.x);
        float best_of_piece = -INFINITY;

        for (int warp = 0; warp < N_WARPS; warp++) {
            best_of_piece = fmaxf(best_of_piece, tiles.warp_best[warp][threadIdx.x]);
        }
        partial[0] = best_of_piece;
        partial[1] = add_weights(&tiles, (int)threadIdx.x);
    }
}

/* A block handles one token and VXD_NET_THREADS channels. */
template <typename FORM>
static __global__ void __launch_bounds__(VXD_NET_THREADS)
    token_kernel(const __grid_constant__ struct vxd_net_tokens_call call)
{
    const int n_tokens = call.scores.n_channels;
    const int sample = (int)(blockIdx.x / (unsigned)n_tokens);
    const int token = (int)(blockIdx.x % (unsigned)n_tokens);
    const int c = (int)(blockIdx.y * VXD_NET_THREADS + threadIdx.x);
    const uint32_t start = vxd_net_start(&call.extent, sample);
    const uint32_t n_rows = vxd_net_start(&call.extent, sample + 1) - start;
    const uint32_t n_pieces = (n_rows + VXD_NET_PIECE - 1) / VXD_NET_PIECE;
    const size_t place = vxd_net_piece_place(start, sample, 0);
    const size_t stride = (size_t)(partial_at(&call, 1, 0) - partial_at(&call, 0, 0));
    const float *partial = partial_at(&call, place, token);
    float best = -INFINITY;
    float weight = 0.0f;
    float sum = 0.0f;

    if (c >= call.values.n_channels) {
        return;
    }
#pragma unroll 8
    for (uint32_t piece = 0; piece < n_pieces; piece++) {
        best = fmaxf(best, partial[piece * stride]);
    }
    best = best == -INFINITY ? 0.0f : best;
#pragma unroll 4
    for (uint32_t piece = 0; piece < n_pieces; piece++) {
        const float *of_piece = partial + piece * stride;
        float factor = expf(of_piece[0] - best);

        weight = fmaf(of_piece[1], factor, weight);
        sum = fmaf(of_piece[2 + c], factor, sum);
    }
    vxd_net_narrow(n_pieces > 0 ? vxd_divf(sum, weight) : 0.0f,
                   vxd_net_at<typename FORM::element>(&call.out, blockIdx.x, c));
}

size_t vxd_net_tokens_scratch_bytes_cuda(size_t max_rows, int n_samples, int n_tokens,
                                         int n_channels)
{
    return vxd_net_n_pieces(max_rows, n_samples) * (size_t)n_tokens *
           ((size_t)n_channels + 2) * sizeof(float);
}

enum vxd_status vxd_net_tokens_cuda(struct vxd_queue *queue,
                                    const struct vxd_net_tokens_call *call,
                                    struct vxd_err *err)
{
    const int n_tokens = call->scores.n_channels;
    const int n_channels = call->values.n_channels;
    dim3 pieces((unsigned)vxd_net_n_pieces(call->extent.max_rows, call->extent.n_samples),
                (unsigned)((n_tokens + N_TOKENS - 1) / N_TOKENS),
                (unsigned)((n_channels + N_COLUMNS - 1) / N_COLUMNS));
    dim3 tokens((unsigned)(call->extent.n_samples * n_tokens),
                (unsigned)((n_channels + VXD_NET_THREADS - 1) / VXD_NET_THREADS));
    enum vxd_status status = VXD_OK;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    vxd_net_by_element(call->precision, [&](auto form) {
        piece_kernel<decltype(form)>
            <<<pieces, VXD_NET_THREADS, 0, (cudaStream_t)queue->stream>>>(*call);
    });
    VXD_TRY(vxd_cuda_launched(queue->context, "piece_kernel", err));
    vxd_net_by_element(call->precision, [&](auto form) {
        token_kernel<decltype(form)>
            <<<tokens, VXD_NET_THREADS, 0, (cudaStream_t)queue->stream>>>(*call);
    });
    VXD_TRY(vxd_cuda_launched(queue->context, "token_kernel", err));
out:
    return status;
}
