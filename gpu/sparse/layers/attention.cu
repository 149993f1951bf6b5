// SPDX-License-Identifier: Apache-2.0
/* CUDA backend of attention over the rows of a sample, in one pass with a running maximum (as
 * FlashAttention does), so no n x n matrix is stored.
 *
 * A block takes 16 queries of one sample and up to 64 channels of the values, a warp four of the
 * queries. Keys and values are processed in tiles of 64, in order: a lane scores two keys, then
 * accumulates one or two channels of its warp's sums, while the next tile is fetched. The
 * exponentials of a tile are added in a tree over lanes, its values key by key. The sums of
 * earlier tiles are rescaled to the new maximum. So the order of a sum depends only on the
 * positions of the keys in their sample.
 * Work: 2 n_q n_k (n_inner + n_channels) operations in float32; 1000 rows of 64 and 64 are
 * 0.26 GFLOP. Each block reads the keys and values once, from L2. */
#include "gpu/sparse/layers/layers_cuda.h"

#define N_WARPS 4
#define N_THREADS (32 * N_WARPS)
#define WARP_QUERIES 4
#define N_QUERIES (N_WARPS * WARP_QUERIES)
#define N_KEYS 64
#define LANE_KEYS (N_KEYS / 32)
#define N_INNER 64 /* channels of q and k processed at a time */
/* 4 more: lanes read adjacent rows, 16 bytes each, without bank conflicts */
#define INNER_STRIDE (N_INNER + 4)

struct attention_args {
    struct vxd_net_attention_call call;
    int n_chunks; /* number of chunks of N_INNER channels */
};

template <int LANE_CHANNELS> struct attention_tiles {
    float q[N_QUERIES][INNER_STRIDE];
    float k[N_KEYS][INNER_STRIDE];
    float v[N_KEYS][32 * LANE_CHANNELS];
    float weights[N_WARPS][WARP_QUERIES][N_KEYS];
};

/* A warp's running sums of its queries; a lane's values are its channels. */
template <int LANE_CHANNELS> struct attention_sums {
    float best[WARP_QUERIES];
    float weight[WARP_QUERIES];
    float values[WARP_QUERIES][LANE_CHANNELS];
};

/* A thread's part of N_ROWS x N_COLUMNS elements that are fetched from memory for the
 * next tile while the current one is still in use. */
template <typename FORM, int N_ROWS, int N_COLUMNS> struct staged_rows {
    static constexpr int row_vectors = N_COLUMNS / FORM::width;
    static constexpr int n = N_ROWS * row_vectors / N_THREADS;

    struct vxd_net_pack<typename FORM::element, FORM::width> packs[n];

    static_assert(N_ROWS * row_vectors % N_THREADS == 0, "threads have equal shares");
};

/* Channels [first_channel, + N_COLUMNS) of rows [first, first + n_rows), and zeros
 * beyond the rows and the channels. */
template <typename FORM, int N_ROWS, int N_COLUMNS>
static __device__ __forceinline__ void
fetch_rows(struct staged_rows<FORM, N_ROWS, N_COLUMNS> *staged,
           const struct vxd_rows *rows, size_t first, uint32_t n_rows, int first_channel)
{
    typedef struct staged_rows<FORM, N_ROWS, N_COLUMNS> staged_type;
    typedef struct vxd_net_pack<typename FORM::element, FORM::width> pack;

#pragma unroll
    for (int i = 0; i < staged_type::n; i++) {
        int at = (int)threadIdx.x + i * N_THREADS;
        uint32_t row = (uint32_t)(at / staged_type::row_vectors);
        int c = first_channel + at % staged_type::row_vectors * FORM::width;

        if (row < n_rows && c < rows->n_channels) {
            staged->packs[i] = *(const pack *)vxd_net_at<const typename FORM::element>(
                rows, first + row, c);
        } else {
#pragma unroll
            for (int j = 0; j < FORM::width; j++) {
                vxd_net_narrow(0.0f, &staged->packs[i].v[j]);
            }
        }
    }
}

template <typename FORM, int N_ROWS, int N_COLUMNS, int STRIDE>
static __device__ __forceinline__ void
put_rows(const struct staged_rows<FORM, N_ROWS, N_COLUMNS> *staged, float (*tile)[STRIDE])
{
    typedef struct staged_rows<FORM, N_ROWS, N_COLUMNS> staged_type;

#pragma unroll
    for (int i = 0; i < staged_type::n; i++) {
        int at = (int)threadIdx.x + i * N_THREADS;
        struct vxd_lanes<FORM::width> x;

#pragma unroll
        for (int j = 0; j < FORM::width; j++) {
            x.v[j] = vxd_net_widen(staged->packs[i].v[j]);
        }
        vxd_net_store_floats<FORM::width>(
            &tile[at / staged_type::row_vectors]
                 [at % staged_type::row_vectors * FORM::width],
            x);
    }
}

static __device__ __forceinline__ float dot4(float sum, float4 a, float4 b)
{
    sum = fmaf(a.x, b.x, sum);
    sum = fmaf(a.y, b.y, sum);
    sum = fmaf(a.z, b.z, sum);
    return fmaf(a.w, b.w, sum);
}

/* Adds the products of one chunk of channels to the scores of a lane's keys. */
template <typename TILES>
static __device__ __forceinline__ void score_chunk(const TILES *tiles,
                                                   float scores[WARP_QUERIES][LANE_KEYS])
{
    const int warp = (int)threadIdx.x / 32;
    const int lane = (int)threadIdx.x % 32;

#pragma unroll 4
    for (int c = 0; c < N_INNER; c += 4) {
        float4 k[LANE_KEYS];

#pragma unroll
        for (int i = 0; i < LANE_KEYS; i++) {
            k[i] = *(const float4 *)&tiles->k[lane + 32 * i][c];
        }
#pragma unroll
        for (int r = 0; r < WARP_QUERIES; r++) {
            float4 q = *(const float4 *)&tiles->q[WARP_QUERIES * warp + r][c];

#pragma unroll
            for (int i = 0; i < LANE_KEYS; i++) {
                scores[r][i] = dot4(scores[r][i], q, k[i]);
            }
        }
    }
}

/* Turns the scores of a tile into weights, and rescales the earlier sums to the new
 * maximum. All weights are 0 while every score is minus infinity. */
template <int LANE_CHANNELS>
static __device__ __forceinline__ void
classify_tile(struct attention_tiles<LANE_CHANNELS> *tiles,
              struct attention_sums<LANE_CHANNELS> *sums,
              const float scores[WARP_QUERIES][LANE_KEYS], float scale, uint32_t n_keys)
{
    const int warp = (int)threadIdx.x / 32;
    const int lane = (int)threadIdx.x % 32;

#pragma unroll
    for (int r = 0; r < WARP_QUERIES; r++) {
        float best = sums->best[r];
        float weight = 0.0f;
        float x[LANE_KEYS];
        float factor;
        float base;

#pragma unroll
        for (int i = 0; i < LANE_KEYS; i++) {
            x[i] = (uint32_t)(lane + 32 * i) < n_keys ? vxd_mulf(scale, scores[r][i])
                                                      : -INFINITY;
            best = fmaxf(best, x[i]);
        }
#pragma unroll
        for (int apart = 16; apart > 0; apart /= 2) {
            best = fmaxf(best, __shfl_xor_sync(UINT32_MAX, best, apart));
        }
        base = best == -INFINITY ? 0.0f : best;
#pragma unroll
        for (int i = 0; i < LANE_KEYS; i++) {
            x[i] = expf(x[i] - base);
            weight += x[i];
            tiles->weights[warp][r][lane + 32 * i] = x[i];
        }
#pragma unroll
        for (int apart = 16; apart > 0; apart /= 2) {
            weight += __shfl_xor_sync(UINT32_MAX, weight, apart);
        }
        factor = expf(sums->best[r] - base);
        sums->best[r] = best;
        sums->weight[r] = fmaf(sums->weight[r], factor, weight);
#pragma unroll
        for (int i = 0; i < LANE_CHANNELS; i++) {
            sums->values[r][i] *= factor;
        }
    }
    __syncwarp();
}

template <int LANE_CHANNELS>
static __device__ __forceinline__ void
add_values(const struct attention_tiles<LANE_CHANNELS> *tiles,
           struct attention_sums<LANE_CHANNELS> *sums, uint32_t n_keys)
{
    const int warp = (int)threadIdx.x / 32;
    const int lane = (int)threadIdx.x % 32;

#pragma unroll 2
    for (uint32_t key = 0; key < n_keys; key += 4) {
        float4 weights[WARP_QUERIES];

#pragma unroll
        for (int r = 0; r < WARP_QUERIES; r++) {
            weights[r] = *(const float4 *)&tiles->weights[warp][r][key];
        }
#pragma unroll
        for (int j = 0; j < 4; j++) {
#pragma unroll
            for (int i = 0; i < LANE_CHANNELS; i++) {
                float v = tiles->v[key + (uint32_t)j][lane + 32 * i];

#pragma unroll
                for (int r = 0; r < WARP_QUERIES; r++) {
                    sums->values[r][i] = fmaf((&weights[r].x)[j], v, sums->values[r][i]);
                }
            }
        }
    }
}

template <typename FORM, int LANE_CHANNELS>
static __device__ __forceinline__ void
store_queries(const struct vxd_net_attention_call *call, struct vxd_net_span span,
              int first_channel, bool has_keys,
              const struct attention_sums<LANE_CHANNELS> *sums)
{
    const uint32_t first = span.begin + threadIdx.x / 32 * WARP_QUERIES;
    const int lane = (int)threadIdx.x % 32;

#pragma unroll
    for (int r = 0; r < WARP_QUERIES; r++) {
#pragma unroll
        for (int i = 0; i < LANE_CHANNELS; i++) {
            int c = first_channel + lane + 32 * i;

            if (first + (uint32_t)r < span.end && c < call->out.n_channels) {
                float x = sums->values[r][i];

                vxd_net_narrow(
                    has_keys ? vxd_divf(x, sums->weight[r]) : 0.0f,
                    vxd_net_at<typename FORM::element>(&call->out, first + (size_t)r, c));
            }
        }
    }
}

/* The steps of a block: its keys tile by tile, and the channels of a tile chunk by
 * chunk. */
struct attention_step {
    uint32_t key;    /* first of the tile */
    uint32_t n_keys; /* 0 after the last tile */
    int chunk;
};

static __device__ __forceinline__ void next_step(struct attention_step *step,
                                                 int n_chunks, uint32_t end_key)
{
    if (++step->chunk == n_chunks) {
        step->chunk = 0;
        step->key += step->n_keys;
        step->n_keys = min(end_key - step->key, (uint32_t)N_KEYS);
    }
}

template <typename FORM, int LANE_CHANNELS>
static __global__ void __launch_bounds__(N_THREADS, 2)
    attention_kernel(const __grid_constant__ struct attention_args args)
{
    __shared__ __align__(16) struct attention_tiles<LANE_CHANNELS> tiles;
    const struct vxd_net_attention_call &call = args.call;
    const struct vxd_net_span span = vxd_net_find_span<N_QUERIES>(&call.of_q, blockIdx.x);
    const uint32_t first_key = vxd_net_start(&call.of_k, span.sample);
    const uint32_t end_key = vxd_net_start(&call.of_k, span.sample + 1);
    const int first_channel = (int)blockIdx.y * 32 * LANE_CHANNELS;
    struct attention_step step = {first_key, min(end_key - first_key, (uint32_t)N_KEYS),
                                  0};
    struct attention_sums<LANE_CHANNELS> sums = {
    };
    struct staged_rows<FORM, N_QUERIES, N_INNER> q;
    struct staged_rows<FORM, N_KEYS, N_INNER> k;
    struct staged_rows<FORM, N_KEYS, 32 * LANE_CHANNELS> v;
    float scores[WARP_QUERIES][LANE_KEYS] = {};

    if (span.begin == span.end) {
        return;
    }
    for (int r = 0; r < WARP_QUERIES; r++) {
        sums.best[r] = -INFINITY;
    }
    fetch_rows(&q, &call.q, span.begin, span.end - span.begin, 0);
    fetch_rows(&k, &call.k, step.key, step.n_keys, 0);
    fetch_rows(&v, &call.v, step.key, step.n_keys, first_channel);
    while (step.n_keys > 0) {
        const struct attention_step now = step;

        __syncthreads(); /* no thread reads the previous tiles any more */
        if (now.key == first_key || args.n_chunks > 1) {
            put_rows(&q, tiles.q);
        }
        put_rows(&k, tiles.k);
        if (now.chunk == 0) {
            put_rows(&v, tiles.v);
        }
        __syncthreads();
        next_step(&step, args.n_chunks, end_key);
        if (args.n_chunks > 1) {
            fetch_rows(&q, &call.q, span.begin, span.end - span.begin,
                       step.chunk * N_INNER);
        }
        fetch_rows(&k, &call.k, step.key, step.n_keys, step.chunk * N_INNER);
        if (step.chunk == 0) {
            fetch_rows(&v, &call.v, step.key, step.n_keys, first_channel);
        }
        score_chunk(&tiles, scores);
        if (step.chunk == 0) { /* the last chunk of the tile */
            classify_tile(&tiles, &sums, scores, call.scale, now.n_keys);
            add_values(&tiles, &sums, now.n_keys);
            memset(scores, 0, sizeof scores);
        }
    }
    store_queries<FORM>(&call, span, first_channel, first_key < end_key, &sums);
}

template <typename FORM>
static void launch(struct vxd_queue *queue, const struct attention_args *args)
{
    const int n_channels = args->call.out.n_channels;
    const struct vxd_net_extent *extent = &args->call.of_q;
    cudaStream_t stream = (cudaStream_t)queue->stream;
    dim3 grid((unsigned)(extent->max_rows / N_QUERIES + (size_t)extent->n_samples));

    if (n_channels <= 32) {
        attention_kernel<FORM, 1><<<grid, N_THREADS, 0, stream>>>(*args);
    } else {
        grid.y = (unsigned)((n_channels + 63) / 64);
        attention_kernel<FORM, 2><<<grid, N_THREADS, 0, stream>>>(*args);
    }
}

size_t vxd_net_attention_scratch_bytes_cuda(size_t max_q, size_t max_k, int n_samples,
                                            int n_inner, int n_channels)
{
    (void)max_q;
    (void)max_k;
    (void)n_samples;
    (void)n_inner;
    (void)n_channels;
    return 0;
}

enum vxd_status vxd_net_attention_cuda(struct vxd_queue *queue,
                                       const struct vxd_net_attention_call *call,
                                       struct vxd_err *err)
{
    const struct vxd_rows *rows[] = {&call->q, &call->k, &call->v};
    int width = vxd_net_width(call->precision, rows, 3, NULL, 0);
    enum vxd_status status = VXD_OK;
    struct attention_args args = {*call, (call->k.n_channels + N_INNER - 1) / N_INNER};

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    vxd_net_by_form(call->precision, width,
                    [&](auto form) { launch<decltype(form)>(queue, &args); });
    VXD_TRY(vxd_cuda_launched(queue->context, "attention_kernel", err));
out:
    return status;
}
