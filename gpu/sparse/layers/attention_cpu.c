// SPDX-License-Identifier: Apache-2.0
/* Attention: a task is a few queries. The keys of their sample are processed in blocks, in order,
 * and each block rescales the sums of earlier blocks, so nothing of size n x n is stored.
 * Tokens: the same sums over a sample's rows, in pieces.
 *
 * A product of two vectors is summed in eight lanes, channel j in lane j % 8, and the lanes are
 * added pairwise: the order is the same for every vector unit. */
#include <string.h>

#include "gpu/sparse/layers/layers_cpu.h"

#define BLOCK 64 /* keys */
#define GROUP 4  /* queries */
#define LANES 8

static float dot(const float *a, const float *b, int n)
{
    float lanes[LANES] = {0};
    int j = 0;

    for (; j + LANES <= n; j += LANES) {
        for (int l = 0; l < LANES; l++) {
            lanes[l] += a[j + l] * b[j + l];
        }
    }
    for (int l = 0; j + l < n; l++) {
        lanes[l] += a[j + l] * b[j + l];
    }
    return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) +
           ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

/* A query's softmax over the keys so far. */
struct query {
    float best;
    float sum;
    float weights[BLOCK];
    float q[VXD_NET_MAX_CHANNELS];
    float values[VXD_NET_MAX_CHANNELS];
};

/* Computes the weights of a block's keys from their scores, and rescales earlier sums
 * to the new maximum. */
static void rescale(struct query *query, int n_keys, int n_channels, bool is_first)
{
    float best = is_first ? query->weights[0] : query->best;

    for (int j = 0; j < n_keys; j++) {
        best = vxd_net_max(best, query->weights[j]);
    }
    if (!is_first && best != query->best) {
        float factor = expf(query->best - best);

        query->sum *= factor;
        for (int c = 0; c < n_channels; c++) {
            query->values[c] *= factor;
        }
    }
    query->best = best;
    for (int j = 0; j < n_keys; j++) {
        query->weights[j] = expf(query->weights[j] - best);
        query->sum += query->weights[j];
    }
}

static void attend_block(const struct vxd_net_attention_call *call,
                         struct query queries[GROUP], int n_queries, size_t begin,
                         size_t end, bool is_first)
{
    float widened_row[VXD_NET_MAX_CHANNELS] = {0};

    for (size_t row = begin; row < end; row++) {
        const float *k = vxd_net_row(call->precision, &call->k, row, widened_row);

        for (int i = 0; i < n_queries; i++) {
            queries[i].weights[row - begin] =
                call->scale * dot(queries[i].q, k, call->k.n_channels);
        }
    }
    for (int i = 0; i < n_queries; i++) {
        rescale(&queries[i], (int)(end - begin), call->v.n_channels, is_first);
    }
    for (size_t row = begin; row < end; row++) {
        const float *v = vxd_net_row(call->precision, &call->v, row, widened_row);

        for (int i = 0; i < n_queries; i++) {
            float weight = queries[i].weights[row - begin];

            for (int c = 0; c < call->v.n_channels; c++) {
                queries[i].values[c] += weight * v[c];
            }
        }
    }
}

/* Queries of one sample. */
static void attend(const struct vxd_net_attention_call *call, int sample, size_t first,
                   int n_queries)
{
    size_t begin = call->of_k.starts[sample];
    size_t end = call->of_k.starts[sample + 1];
    size_t n_channels = (size_t)call->out.n_channels;
    struct query queries[GROUP];

    for (int i = 0; i < n_queries; i++) {
        const float *q =
            vxd_net_row(call->precision, &call->q, first + (size_t)i, queries[i].q);

        if (q != queries[i].q) {
            memcpy(queries[i].q, q, (size_t)call->q.n_channels * sizeof *q);
        }
        queries[i].best = 0.0f;
        queries[i].sum = 0.0f;
        memset(queries[i].values, 0, n_channels * sizeof(float));
    }
    for (size_t row = begin; row < end; row += BLOCK) {
        attend_block(call, queries, n_queries, row, end - row < BLOCK ? end : row + BLOCK,
                     row == begin);
    }
    for (int i = 0; i < n_queries; i++) {
        for (size_t c = 0; c < n_channels && begin < end; c++) {
            queries[i].values[c] /= queries[i].sum;
        }
        vxd_net_row_store(call->precision, &call->out, first + (size_t)i,
                          queries[i].values);
    }
}

static void attend_rows(void *args, size_t begin, size_t end)
{
    const struct vxd_net_attention_call *call = args;
    size_t row = begin;

    while (row < end) {
        int sample = vxd_net_sample_of_row(call->of_q.starts, call->of_q.n_samples, row);
        size_t last = call->of_q.starts[sample + 1];
        size_t n = (last < end ? last : end) - row;

        n = n < GROUP ? n : GROUP;
        attend(call, sample, row, (int)n);
        row += n;
    }
}

static enum vxd_status attention_job(struct vxd_pool *pool, const void *args,
                                     struct vxd_err *err)
{
    struct vxd_net_attention_call call = *(const struct vxd_net_attention_call *)args;

    (void)err;
    vxd_parallel_for(pool, *call.of_q.n_rows, (size_t)4 * GROUP, attend_rows, &call);
    return VXD_OK;
}

size_t vxd_net_attention_scratch_bytes_cpu(size_t max_q, size_t max_k, int n_samples,
                                           int n_inner, int n_channels)
{
    (void)max_q;
    (void)max_k;
    (void)n_samples;
    (void)n_inner;
    (void)n_channels;
    return 0;
}

enum vxd_status vxd_net_attention_cpu(struct vxd_queue *queue,
                                      const struct vxd_net_attention_call *call,
                                      struct vxd_err *err)
{
    return vxd_queue_push(queue, attention_job, call, sizeof *call, err);
}

/* Scratch: the greatest score of each piece, then of each sample, then the sums of
 * each piece: for each token the sum of its weights, then of its values. */
struct tokens {
    struct vxd_net_tokens_call call;
    size_t n_tokens;
    size_t n_channels;
    float *piece_best;
    float *best;
    float *sums;
};

static void find_piece_best(void *args, size_t begin, size_t end)
{
    const struct tokens *tokens = args;
    float widened_row[VXD_NET_MAX_CHANNELS] = {0};

    for (size_t place = begin; place < end; place++) {
        struct vxd_net_piece piece = vxd_net_piece_at(&tokens->call.extent, place);
        float *to = tokens->piece_best + place * tokens->n_tokens;

        for (size_t row = piece.begin; row < piece.end; row++) {
            const float *x = vxd_net_row(tokens->call.precision, &tokens->call.scores,
                                         row, widened_row);

            for (size_t t = 0; t < tokens->n_tokens; t++) {
                to[t] = row == piece.begin ? x[t] : vxd_net_max(to[t], x[t]);
            }
        }
    }
}

static void find_best(void *args, size_t begin, size_t end)
{
    const struct tokens *tokens = args;
    const struct vxd_net_extent *extent = &tokens->call.extent;

    for (size_t s = begin; s < end; s++) {
        size_t n_pieces = vxd_net_n_pieces_of(extent, (int)s);
        const float *from =
            tokens->piece_best +
            vxd_net_piece_place(extent->starts[s], (int)s, 0) * tokens->n_tokens;
        float *to = tokens->best + s * tokens->n_tokens;

        for (size_t piece = 0; piece < n_pieces; piece++) {
            for (size_t t = 0; t < tokens->n_tokens; t++) {
                float x = from[piece * tokens->n_tokens + t];

                to[t] = piece == 0 ? x : vxd_net_max(to[t], x);
            }
        }
    }
}

static void sum_pieces(void *args, size_t begin, size_t end)
{
    const struct tokens *tokens = args;
    size_t n_sums = tokens->n_tokens * (tokens->n_channels + 1);
    float widened_scores[VXD_NET_MAX_CHANNELS] = {0};
    float widened_values[VXD_NET_MAX_CHANNELS] = {0};

    for (size_t place = begin; place < end; place++) {
        struct vxd_net_piece piece = vxd_net_piece_at(&tokens->call.extent, place);
        const float *best = tokens->best + (size_t)piece.sample * tokens->n_tokens;
        float *to = tokens->sums + place * n_sums;

        memset(to, 0, n_sums * sizeof *to);
        for (size_t row = piece.begin; row < piece.end; row++) {
            const float *score = vxd_net_row(tokens->call.precision, &tokens->call.scores,
                                             row, widened_scores);
            const float *value = vxd_net_row(tokens->call.precision, &tokens->call.values,
                                             row, widened_values);

            for (size_t t = 0; t < tokens->n_tokens; t++) {
                float weight = expf(score[t] - best[t]);
                float *sums = to + t * (tokens->n_channels + 1);

                sums[0] += weight;
                for (size_t c = 0; c < tokens->n_channels; c++) {
                    sums[1 + c] += weight * value[c];
                }
            }
        }
    }
}

static void store_tokens(void *args, size_t begin, size_t end)
{
    const struct tokens *tokens = args;
    const struct vxd_net_extent *extent = &tokens->call.extent;
    size_t n_sums = tokens->n_tokens * (tokens->n_channels + 1);
    float out[VXD_NET_MAX_CHANNELS] = {0};

    for (size_t token = begin; token < end; token++) {
        size_t s = token / tokens->n_tokens;
        size_t n_pieces = vxd_net_n_pieces_of(extent, (int)s);
        const float *from = tokens->sums +
                            vxd_net_piece_place(extent->starts[s], (int)s, 0) * n_sums +
                            token % tokens->n_tokens * (tokens->n_channels + 1);
        float sum = n_pieces > 0 ? from[0] : 1.0f;

        for (size_t piece = 1; piece < n_pieces; piece++) {
            sum += from[piece * n_sums];
        }
        for (size_t c = 0; c < tokens->n_channels; c++) {
            out[c] = n_pieces > 0 ? from[1 + c] : 0.0f;
            for (size_t piece = 1; piece < n_pieces; piece++) {
                out[c] += from[piece * n_sums + 1 + c];
            }
            out[c] /= sum;
        }
        vxd_net_row_store(tokens->call.precision, &tokens->call.out, token, out);
    }
}

static enum vxd_status tokens_job(struct vxd_pool *pool, const void *args,
                                  struct vxd_err *err)
{
    struct tokens tokens = {.call = *(const struct vxd_net_tokens_call *)args};
    const struct vxd_net_extent *extent = &tokens.call.extent;
    size_t n_places = vxd_net_n_places(extent);
    size_t n_samples = (size_t)extent->n_samples;

    (void)err;
    tokens.n_tokens = (size_t)tokens.call.scores.n_channels;
    tokens.n_channels = (size_t)tokens.call.values.n_channels;
    tokens.piece_best = tokens.call.scratch;
    tokens.best = tokens.piece_best + n_places * tokens.n_tokens;
    tokens.sums = tokens.best + n_samples * tokens.n_tokens;
    vxd_parallel_for(pool, n_places, 1, find_piece_best, &tokens);
    vxd_parallel_for(pool, n_samples, 1, find_best, &tokens);
    vxd_parallel_for(pool, n_places, 1, sum_pieces, &tokens);
    vxd_parallel_for(pool, n_samples * tokens.n_tokens, 1, store_tokens, &tokens);
    return VXD_OK;
}

size_t vxd_net_tokens_scratch_bytes_cpu(size_t max_rows, int n_samples, int n_tokens,
                                        int n_channels)
{
    size_t n_pieces = vxd_net_n_pieces(max_rows, n_samples);
    size_t n_floats = n_pieces * (size_t)n_tokens * ((size_t)n_channels + 2);

    return (n_floats + (size_t)n_samples * (size_t)n_tokens) * sizeof(float);
}

enum vxd_status vxd_net_tokens_cpu(struct vxd_queue *queue,
                                   const struct vxd_net_tokens_call *call,
                                   struct vxd_err *err)
{
    return vxd_queue_push(queue, tokens_job, call, sizeof *call, err);
}
