// SPDX-License-Identifier: Apache-2.0
/* Pools over kernel maps, and operations over the rows of a sample: global pools,
 * batch norm. The latter are computed in pieces of VXD_NET_PIECE rows a task, whose
 * sums are added in order. */
#include <string.h>

#include "gpu/sparse/layers/layers_cpu.h"

struct pooled {
    float values[VXD_NET_MAX_CHANNELS];
    int n; /* taps that read a row */
};

static void pool_tap(enum vxd_net_pool pool, int n_channels, const float *x,
                     struct pooled *to)
{
    for (int j = 0; j < n_channels; j++) {
        switch (pool) {
        case VXD_NET_POOL_OF_MAX:
        case VXD_NET_POOL_OF_FIRST:
            to->values[j] = to->n == 0 ? x[j] : vxd_net_max(to->values[j], x[j]);
            break;
        case VXD_NET_POOL_OF_MAX_AND_0:
            to->values[j] = vxd_net_max(to->values[j], x[j]);
            break;
        case VXD_NET_POOL_OF_AVG:
        case VXD_NET_POOL_OF_SUM:
            to->values[j] = vxd_addf(to->values[j], x[j]);
            break;
        }
    }
    to->n++;
}

static void pool_rows(void *args, size_t begin, size_t end)
{
    const struct vxd_net_pool_call *call = args;
    int n_channels = call->out.n_channels;
    float widened_row[VXD_NET_MAX_CHANNELS] = {0};
    struct pooled pooled;

    for (size_t row = begin; row < end; row++) {
        pooled.n = 0;
        memset(pooled.values, 0, (size_t)n_channels * sizeof(float));
        for (int tap = 0; tap < call->map.n_taps; tap++) {
            int32_t from = call->map.table[(size_t)tap * call->map.capacity + row];

            if (from < 0) {
                continue;
            }
            pool_tap(call->pool, n_channels,
                     vxd_net_row(call->precision, &call->in, (size_t)from, widened_row),
                     &pooled);
            if (call->pool == VXD_NET_POOL_OF_FIRST) {
                break;
            }
        }
        for (int j = 0; j < n_channels && call->pool == VXD_NET_POOL_OF_AVG; j++) {
            pooled.values[j] =
                vxd_divf(pooled.values[j], pooled.n > 0 ? (float)pooled.n : 1.0f);
        }
        vxd_net_row_store(call->precision, &call->out, row, pooled.values);
    }
}

static enum vxd_status pool_job(struct vxd_pool *pool, const void *args,
                                struct vxd_err *err)
{
    struct vxd_net_pool_call call = *(const struct vxd_net_pool_call *)args;

    (void)err;
    vxd_parallel_for(pool, *call.extent.n_rows, VXD_NET_GRAIN, pool_rows, &call);
    return VXD_OK;
}

enum vxd_status vxd_net_pool_cpu(struct vxd_queue *queue,
                                 const struct vxd_net_pool_call *call,
                                 struct vxd_err *err)
{
    return vxd_queue_push(queue, pool_job, call, sizeof *call, err);
}

/* For a global pool: writes the sums or maxima of pieces to their places in the
 * scratch. */
static void global_pieces(void *args, size_t begin, size_t end)
{
    const struct vxd_net_global_call *call = args;
    size_t n_channels = (size_t)call->in.n_channels;
    float widened_row[VXD_NET_MAX_CHANNELS] = {0};

    for (size_t place = begin; place < end; place++) {
        struct vxd_net_piece piece = vxd_net_piece_at(&call->extent, place);
        float *to = (float *)call->scratch + place * n_channels;

        memset(to, 0, n_channels * sizeof *to);
        for (size_t row = piece.begin; row < piece.end; row++) {
            const float *x = vxd_net_row(call->precision, &call->in, row, widened_row);

            for (size_t j = 0; j < n_channels; j++) {
                if (call->global == VXD_NET_GLOBAL_OF_MAX) {
                    to[j] = row == piece.begin ? x[j] : vxd_net_max(to[j], x[j]);
                } else if (call->global == VXD_NET_GLOBAL_OF_AVG) {
                    to[j] = vxd_addf(to[j], x[j]);
                } else {
                    to[j] = vxd_addf(to[j], vxd_net_gem_power(x[j], call->p, call->eps));
                }
            }
        }
    }
}

static void global_samples(void *args, size_t begin, size_t end)
{
    const struct vxd_net_global_call *call = args;
    size_t n_channels = (size_t)call->in.n_channels;
    float out[VXD_NET_MAX_CHANNELS] = {0};

    for (size_t s = begin; s < end; s++) {
        uint32_t start = call->extent.starts[s];
        float n_rows = (float)(call->extent.starts[s + 1] - start);
        size_t n_pieces = vxd_net_n_pieces_of(&call->extent, (int)s);
        const float *from =
            (float *)call->scratch + vxd_net_piece_place(start, (int)s, 0) * n_channels;

        memset(out, 0, n_channels * sizeof *out);
        for (size_t piece = 0; piece < n_pieces; piece++) {
            for (size_t j = 0; j < n_channels; j++) {
                float x = from[piece * n_channels + j];

                if (piece == 0) {
                    out[j] = x;
                } else if (call->global == VXD_NET_GLOBAL_OF_MAX) {
                    out[j] = vxd_net_max(out[j], x);
                } else {
                    out[j] = vxd_addf(out[j], x);
                }
            }
        }
        for (size_t j = 0; j < n_channels && n_pieces > 0; j++) {
            if (call->global != VXD_NET_GLOBAL_OF_MAX) {
                out[j] = vxd_divf(out[j], n_rows);
            }
            if (call->global == VXD_NET_GLOBAL_OF_GEM) {
                out[j] = vxd_net_gem_root(out[j], call->p);
            }
        }
        vxd_net_row_store(call->precision, &call->out, s, out);
    }
}

static enum vxd_status global_job(struct vxd_pool *pool, const void *args,
                                  struct vxd_err *err)
{
    struct vxd_net_global_call call = *(const struct vxd_net_global_call *)args;

    (void)err;
    vxd_parallel_for(pool, vxd_net_n_places(&call.extent), 1, global_pieces, &call);
    vxd_parallel_for(pool, (size_t)call.extent.n_samples, 1, global_samples, &call);
    return VXD_OK;
}

size_t vxd_net_global_scratch_bytes_cpu(size_t max_rows, int n_samples, int n_channels)
{
    return vxd_net_n_pieces(max_rows, n_samples) * (size_t)n_channels * sizeof(float);
}

enum vxd_status vxd_net_global_cpu(struct vxd_queue *queue,
                                   const struct vxd_net_global_call *call,
                                   struct vxd_err *err)
{
    return vxd_queue_push(queue, global_job, call, sizeof *call, err);
}

/* Scratch: the sums of pieces, then each sample's mean, then the factor of its rows. */
struct batch_norm {
    struct vxd_net_batch_norm_call call;
    size_t n_channels;
    float *pieces;
    float *mean;
    float *factor;
    bool has_mean; /* the first pass is done */
};

static void norm_pieces(void *args, size_t begin, size_t end)
{
    const struct batch_norm *norm = args;
    float widened_row[VXD_NET_MAX_CHANNELS] = {0};

    for (size_t place = begin; place < end; place++) {
        struct vxd_net_piece piece = vxd_net_piece_at(&norm->call.extent, place);
        const float *mean = norm->mean + (size_t)piece.sample * norm->n_channels;
        float *to = norm->pieces + place * norm->n_channels;

        memset(to, 0, norm->n_channels * sizeof *to);
        for (size_t row = piece.begin; row < piece.end; row++) {
            const float *x =
                vxd_net_row(norm->call.precision, &norm->call.in, row, widened_row);

            for (size_t j = 0; j < norm->n_channels; j++) {
                float d = norm->has_mean ? vxd_subf(x[j], mean[j]) : x[j];

                to[j] = vxd_addf(to[j], norm->has_mean ? vxd_mulf(d, d) : d);
            }
        }
    }
}

static void norm_samples(void *args, size_t begin, size_t end)
{
    const struct batch_norm *norm = args;
    const struct vxd_net_extent *extent = &norm->call.extent;
    size_t n_channels = norm->n_channels;

    for (size_t s = begin; s < end; s++) {
        size_t n_pieces = vxd_net_n_pieces_of(extent, (int)s);
        float n_rows = (float)(extent->starts[s + 1] - extent->starts[s]);
        const float *from =
            norm->pieces + vxd_net_piece_place(extent->starts[s], (int)s, 0) * n_channels;

        for (size_t j = 0; j < n_channels && n_pieces > 0; j++) {
            float sum = from[j];

            for (size_t piece = 1; piece < n_pieces; piece++) {
                sum = vxd_addf(sum, from[piece * n_channels + j]);
            }
            sum = vxd_divf(sum, n_rows);
            if (norm->has_mean) {
                const float *scale = norm->call.scale;

                norm->factor[s * n_channels + j] =
                    vxd_divf(scale != NULL ? scale[j] : 1.0f,
                             sqrtf(vxd_addf(sum, norm->call.eps)));
            } else {
                norm->mean[s * n_channels + j] = sum;
            }
        }
    }
}

static void norm_rows(void *args, size_t begin, size_t end)
{
    const struct batch_norm *norm = args;
    const struct vxd_net_batch_norm_call *call = &norm->call;
    float widened_row[VXD_NET_MAX_CHANNELS] = {0};
    float out[VXD_NET_MAX_CHANNELS] = {0};

    for (size_t row = begin; row < end; row++) {
        size_t sample = (size_t)vxd_net_sample_of_row(call->extent.starts,
                                                      call->extent.n_samples, row);
        const float *mean = norm->mean + sample * norm->n_channels;
        const float *factor = norm->factor + sample * norm->n_channels;
        const float *x = vxd_net_row(call->precision, &call->in, row, widened_row);

        for (size_t j = 0; j < norm->n_channels; j++) {
            float y = vxd_mulf(vxd_subf(x[j], mean[j]), factor[j]);

            y = call->bias != NULL ? vxd_addf(y, call->bias[j]) : y;
            out[j] = vxd_activate(call->act, call->alpha, y);
        }
        vxd_net_row_store(call->precision, &call->out, row, out);
    }
}

static enum vxd_status batch_norm_job(struct vxd_pool *pool, const void *args,
                                      struct vxd_err *err)
{
    struct batch_norm norm = {.call = *(const struct vxd_net_batch_norm_call *)args};
    const struct vxd_net_extent *extent = &norm.call.extent;
    size_t n_places = vxd_net_n_places(extent);

    (void)err;
    norm.n_channels = (size_t)norm.call.in.n_channels;
    norm.pieces = norm.call.scratch;
    norm.mean = norm.pieces + n_places * norm.n_channels;
    norm.factor = norm.mean + (size_t)extent->n_samples * norm.n_channels;
    for (int pass = 0; pass < 2; pass++) {
        norm.has_mean = pass == 1;
        vxd_parallel_for(pool, n_places, 1, norm_pieces, &norm);
        vxd_parallel_for(pool, (size_t)extent->n_samples, 1, norm_samples, &norm);
    }
    vxd_parallel_for(pool, *extent->n_rows, VXD_NET_GRAIN, norm_rows, &norm);
    return VXD_OK;
}

size_t vxd_net_batch_norm_scratch_bytes_cpu(size_t max_rows, int n_samples,
                                            int n_channels)
{
    return (vxd_net_n_pieces(max_rows, n_samples) + 2 * (size_t)n_samples) *
           (size_t)n_channels * sizeof(float);
}

enum vxd_status vxd_net_batch_norm_cpu(struct vxd_queue *queue,
                                       const struct vxd_net_batch_norm_call *call,
                                       struct vxd_err *err)
{
    return vxd_queue_push(queue, batch_norm_job, call, sizeof *call, err);
}
