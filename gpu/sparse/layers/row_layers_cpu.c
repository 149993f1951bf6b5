// SPDX-License-Identifier: Apache-2.0
/* Layers that process rows one by one: a task is some hundred rows. */
#include <math.h>
#include <string.h>

#include "gpu/sparse/layers/layers_cpu.h"
#include "gpu/sparse/coords/coords_math.h"

static void load_rows(void *args, size_t begin, size_t end)
{
    const struct vxd_net_load_call *call = args;
    size_t n_channels = (size_t)call->out.n_channels;

    for (size_t row = begin; row < end; row++) {
        vxd_net_row_store(call->precision, &call->out, row,
                          call->features + row * n_channels);
    }
}

static enum vxd_status load_job(struct vxd_pool *pool, const void *args,
                                struct vxd_err *err)
{
    struct vxd_net_load_call call = *(const struct vxd_net_load_call *)args;

    for (size_t i = 0; i < call.n; i++) {
        if (call.rows[i] < 0) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "coords",
                            "voxel %zu is outside the network's samples or shape", i);
        }
        if ((size_t)call.rows[i] != i) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "coords",
                            "voxel %zu is a duplicate or not in Morton order", i);
        }
    }
    vxd_parallel_for(pool, call.n, VXD_NET_GRAIN, load_rows, &call);
    return VXD_OK;
}

enum vxd_status vxd_net_load_cpu(struct vxd_queue *queue,
                                 const struct vxd_net_load_call *call,
                                 struct vxd_err *err)
{
    return vxd_queue_push(queue, load_job, call, sizeof *call, err);
}

static void save_rows(void *args, size_t begin, size_t end)
{
    const struct vxd_net_save_call *call = args;
    size_t n_channels = (size_t)call->in.n_channels;
    float widened_row[VXD_NET_MAX_CHANNELS] = {0};

    for (size_t row = begin; row < end; row++) {
        memcpy(call->out + row * n_channels,
               vxd_net_row(call->precision, &call->in, row, widened_row),
               n_channels * sizeof(float));
    }
}

static enum vxd_status save_job(struct vxd_pool *pool, const void *args,
                                struct vxd_err *err)
{
    struct vxd_net_save_call call = *(const struct vxd_net_save_call *)args;

    (void)err;
    vxd_parallel_for(pool, *call.extent.n_rows, VXD_NET_GRAIN, save_rows, &call);
    return VXD_OK;
}

enum vxd_status vxd_net_save_cpu(struct vxd_queue *queue,
                                 const struct vxd_net_save_call *call,
                                 struct vxd_err *err)
{
    return vxd_queue_push(queue, save_job, call, sizeof *call, err);
}

static void count_rows(void *args, size_t begin, size_t end)
{
    const struct vxd_net_count_call *call = args;
    float widened_row[VXD_NET_MAX_CHANNELS] = {0};
    uint32_t n_bad = 0;

    for (size_t row = begin; row < end; row++) {
        const float *values = vxd_net_row(call->precision, &call->in, row, widened_row);

        for (int c = 0; c < call->in.n_channels; c++) {
            n_bad += isfinite(values[c]) ? 0 : 1;
        }
    }
    if (n_bad > 0) {
        (void)__atomic_fetch_add(call->n_bad, n_bad, __ATOMIC_RELAXED);
    }
}

static enum vxd_status count_job(struct vxd_pool *pool, const void *args,
                                 struct vxd_err *err)
{
    struct vxd_net_count_call call = *(const struct vxd_net_count_call *)args;

    (void)err;
    vxd_parallel_for(pool, *call.extent.n_rows, VXD_NET_GRAIN, count_rows, &call);
    return VXD_OK;
}

enum vxd_status vxd_net_count_cpu(struct vxd_queue *queue,
                                  const struct vxd_net_count_call *call,
                                  struct vxd_err *err)
{
    return vxd_queue_push(queue, count_job, call, sizeof *call, err);
}

static void combine_rows(void *args, size_t begin, size_t end)
{
    const struct vxd_net_combine_call *call = args;
    int n_channels = call->out.n_channels;
    float widened_row[VXD_NET_MAX_CHANNELS] = {0};
    float sums[VXD_NET_MAX_CHANNELS] = {0};

    for (size_t row = begin; row < end; row++) {
        memset(sums, 0, (size_t)n_channels * sizeof *sums);
        for (int i = 0; i < call->n_inputs; i++) {
            int64_t from = call->rows[i] != NULL ? call->rows[i][row] : (int64_t)row;
            const float *x;

            if (from < 0) {
                continue;
            }
            x = vxd_net_row(call->precision, &call->in[i], (size_t)from, widened_row);
            for (int j = 0; j < n_channels; j++) {
                sums[j] = i == 0 ? x[j] : sums[j] + x[j];
            }
        }
        for (int j = 0; j < n_channels; j++) {
            float x = sums[j];

            x = call->scale != NULL ? vxd_mulf(x, call->scale[j]) : x;
            x = call->bias != NULL ? vxd_addf(x, call->bias[j]) : x;
            sums[j] = vxd_activate(call->act, call->alpha, x);
        }
        vxd_net_row_store(call->precision, &call->out, row, sums);
    }
}

static enum vxd_status combine_job(struct vxd_pool *pool, const void *args,
                                   struct vxd_err *err)
{
    struct vxd_net_combine_call call = *(const struct vxd_net_combine_call *)args;

    (void)err;
    vxd_parallel_for(pool, *call.extent.n_rows, VXD_NET_GRAIN, combine_rows, &call);
    return VXD_OK;
}

enum vxd_status vxd_net_combine_cpu(struct vxd_queue *queue,
                                    const struct vxd_net_combine_call *call,
                                    struct vxd_err *err)
{
    return vxd_queue_push(queue, combine_job, call, sizeof *call, err);
}

static void softmax(const float *x, int n, float *out)
{
    float best = x[0];
    float sum = 0.0f;

    for (int j = 1; j < n; j++) {
        best = vxd_net_max(best, x[j]);
    }
    for (int j = 0; j < n; j++) {
        out[j] = expf(vxd_subf(x[j], best));
        sum = vxd_addf(sum, out[j]);
    }
    for (int j = 0; j < n; j++) {
        out[j] = vxd_divf(out[j], sum);
    }
}

static void normalize_l2(const float *x, int n, float eps, float *out)
{
    float sum = 0.0f;
    float length;

    for (int j = 0; j < n; j++) {
        sum = vxd_addf(sum, vxd_mulf(x[j], x[j]));
    }
    length = sqrtf(sum);
    length = length < eps ? eps : length;
    for (int j = 0; j < n; j++) {
        out[j] = vxd_divf(x[j], length);
    }
}

static void norm_rows(void *args, size_t begin, size_t end)
{
    const struct vxd_net_norm_call *call = args;
    int n_channels = call->in.n_channels;
    float widened_row[VXD_NET_MAX_CHANNELS] = {0};
    float out[VXD_NET_MAX_CHANNELS] = {0};

    for (size_t row = begin; row < end; row++) {
        const float *x = vxd_net_row(call->precision, &call->in, row, widened_row);

        if (call->norm == VXD_NET_NORM_SOFTMAX) {
            softmax(x, n_channels, out);
        } else {
            normalize_l2(x, n_channels, call->eps, out);
        }
        vxd_net_row_store(call->precision, &call->out, row, out);
    }
}

static enum vxd_status norm_job(struct vxd_pool *pool, const void *args,
                                struct vxd_err *err)
{
    struct vxd_net_norm_call call = *(const struct vxd_net_norm_call *)args;

    (void)err;
    vxd_parallel_for(pool, *call.extent.n_rows, VXD_NET_GRAIN, norm_rows, &call);
    return VXD_OK;
}

enum vxd_status vxd_net_norm_cpu(struct vxd_queue *queue,
                                 const struct vxd_net_norm_call *call,
                                 struct vxd_err *err)
{
    return vxd_queue_push(queue, norm_job, call, sizeof *call, err);
}

static void embed_rows(void *args, size_t begin, size_t end)
{
    const struct vxd_net_embedding_call *call = args;
    size_t n_channels = (size_t)call->out.n_channels;
    size_t element = vxd_net_element_bytes(call->precision);
    float zeros[VXD_NET_MAX_CHANNELS];

    memset(zeros, 0, n_channels * sizeof *zeros);
    for (size_t row = begin; row < end; row++) {
        const char *in = (const char *)call->in.data + row * call->in.stride * element;
        int entry = vxd_net_embedding_row(vxd_element_load(call->precision, in, 0),
                                          call->n_entries);

        vxd_net_row_store(call->precision, &call->out, row,
                          entry < 0 ? zeros : call->table + (size_t)entry * n_channels);
    }
}

static enum vxd_status embedding_job(struct vxd_pool *pool, const void *args,
                                     struct vxd_err *err)
{
    struct vxd_net_embedding_call call = *(const struct vxd_net_embedding_call *)args;

    (void)err;
    vxd_parallel_for(pool, *call.extent.n_rows, VXD_NET_GRAIN, embed_rows, &call);
    return VXD_OK;
}

enum vxd_status vxd_net_embedding_cpu(struct vxd_queue *queue,
                                      const struct vxd_net_embedding_call *call,
                                      struct vxd_err *err)
{
    return vxd_queue_push(queue, embedding_job, call, sizeof *call, err);
}

static void keep_rows(void *args, size_t begin, size_t end)
{
    const struct vxd_net_keep_call *call = args;
    size_t element = vxd_net_element_bytes(call->precision);

    for (size_t row = begin; row < end; row++) {
        const char *in = (const char *)call->in.data + row * call->in.stride * element;

        call->keep[row] =
            vxd_element_load(call->precision, in, 0) > call->threshold ? 1 : 0;
    }
}

static enum vxd_status keep_job(struct vxd_pool *pool, const void *args,
                                struct vxd_err *err)
{
    struct vxd_net_keep_call call = *(const struct vxd_net_keep_call *)args;

    (void)err;
    vxd_parallel_for(pool, *call.extent.n_rows, VXD_NET_GRAIN, keep_rows, &call);
    return VXD_OK;
}

enum vxd_status vxd_net_keep_cpu(struct vxd_queue *queue,
                                 const struct vxd_net_keep_call *call,
                                 struct vxd_err *err)
{
    return vxd_queue_push(queue, keep_job, call, sizeof *call, err);
}

static void argmax_rows(void *args, size_t begin, size_t end)
{
    const struct vxd_net_argmax_call *call = args;
    float widened_row[VXD_NET_MAX_CHANNELS] = {0};

    for (size_t row = begin; row < end; row++) {
        const float *x = vxd_net_row(call->precision, &call->in, row, widened_row);
        int best = 0;

        for (int j = 1; j < call->in.n_channels; j++) {
            best = vxd_net_is_better(x[j], x[best]) ? j : best;
        }
        call->labels[row] = best;
        call->scores[row] = x[best];
    }
}

static enum vxd_status argmax_job(struct vxd_pool *pool, const void *args,
                                  struct vxd_err *err)
{
    struct vxd_net_argmax_call call = *(const struct vxd_net_argmax_call *)args;

    (void)err;
    vxd_parallel_for(pool, *call.extent.n_rows, VXD_NET_GRAIN, argmax_rows, &call);
    return VXD_OK;
}

enum vxd_status vxd_net_argmax_cpu(struct vxd_queue *queue,
                                   const struct vxd_net_argmax_call *call,
                                   struct vxd_err *err)
{
    return vxd_queue_push(queue, argmax_job, call, sizeof *call, err);
}

static void bev_rows(void *args, size_t begin, size_t end)
{
    const struct vxd_net_bev_call *call = args;
    int n_channels = call->in.n_channels;
    float widened_row[VXD_NET_MAX_CHANNELS] = {0};

    for (size_t row = begin; row < end; row++) {
        const float *x = vxd_net_row(call->precision, &call->in, row, widened_row);
        int32_t c[4];

        vxd_sparse_from_key(call->keys[row], c);
        for (int j = 0; j < n_channels; j++) {
            call->out[vxd_net_bev_place(call->shape, n_channels, c, j)] = x[j];
        }
    }
}

static enum vxd_status bev_job(struct vxd_pool *pool, const void *args,
                               struct vxd_err *err)
{
    struct vxd_net_bev_call call = *(const struct vxd_net_bev_call *)args;

    (void)err;
    vxd_parallel_for(pool, *call.extent.n_rows, VXD_NET_GRAIN, bev_rows, &call);
    return VXD_OK;
}

enum vxd_status vxd_net_bev_cpu(struct vxd_queue *queue,
                                const struct vxd_net_bev_call *call, struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(vxd_queue_fill(queue, call->out, 0, call->n_floats * sizeof(float), err));
    VXD_TRY(vxd_queue_push(queue, bev_job, call, sizeof *call, err));
out:
    return status;
}
