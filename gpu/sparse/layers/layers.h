// SPDX-License-Identifier: Apache-2.0
/* The backends behind net.h: how layers run that are not convolutions. The executor has checked
 * everything; the backends only compute, allocate nothing and wait for nothing. A call's struct
 * is copied before the function returns; its pointers name device memory, which is used when the
 * queue reaches the call.
 *
 * Features are elements of the precision's type, read to float32, computed in float32 and rounded
 * once when stored (conv_math.h). The order of every sum depends on the layer and, where it runs
 * over rows, on the sample alone: see VXD_NET_PIECE of layers_math.h. `out` overlaps no input,
 * except that vxd_net_combine's may be one of its inputs where rows is NULL. */
#ifndef VXD_GPU_SPARSE_LAYERS_LAYERS_H
#define VXD_GPU_SPARSE_LAYERS_LAYERS_H

#include "gpu/core/core_cpu.h"
#include "gpu/sparse/conv/conv.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The rows of a coordinate set, or tokens. */
struct vxd_net_extent {
    const uint32_t *n_rows; /* device memory */
    size_t max_rows;        /* host: upper bound of *n_rows; sizes the launch */
    /* n_samples + 1, first row of each sample; NULL where the op works row by row. */
    const uint32_t *starts;
    int n_samples;
};

/* Converts n x n_channels float32 in the caller's order to features. rows: row of
 * each, from vxd_coord_set_make. The queue reports INVALID_ARGUMENT unless rows[i] ==
 * i for all n, that is for coordinates that are out of order, duplicate or out of
 * range. */
struct vxd_net_load_call {
    enum vxd_net_precision precision;
    const float *features;
    const int32_t *rows;
    size_t n;
    struct vxd_rows out;
};

/* Converts features to n x n_channels float32. */
struct vxd_net_save_call {
    enum vxd_net_precision precision;
    struct vxd_net_extent extent;
    struct vxd_rows in;
    float *out;
};

/* Adds to *n_bad how many values are not finite. */
struct vxd_net_count_call {
    enum vxd_net_precision precision;
    struct vxd_net_extent extent;
    struct vxd_rows in;
    uint32_t *n_bad; /* device memory */
};

/* out[i] = act((in[0][rows[0][i]] + in[1][rows[1][i]] + ...) * scale + bias), with the
 * sum in the order of the inputs: ADD, ADD_UNION, AFFINE, ACT, and the copies of CAT
 * and PRUNE. */
struct vxd_net_combine_call {
    enum vxd_net_precision precision;
    struct vxd_net_extent extent;
    int n_inputs; /* 1 to VXD_NET_MAX_INPUTS */
    struct vxd_rows in[VXD_NET_MAX_INPUTS];
    const int32_t *rows[VXD_NET_MAX_INPUTS]; /* -1 = zeros; NULL = row i itself */
    const float *scale;                      /* n_channels float32 each, or NULL */
    const float *bias;
    enum vxd_net_act act;
    float alpha;
    struct vxd_rows out;
};

enum vxd_net_pool {
    VXD_NET_POOL_OF_MAX = 0,       /* 0 where no tap reads a row */
    VXD_NET_POOL_OF_MAX_AND_0 = 1, /* as in spconv: the maximum starts at 0 */
    /* sum over taps ascending / number of taps that read a row; 0 where none does */
    VXD_NET_POOL_OF_AVG = 2,
    VXD_NET_POOL_OF_SUM = 3,
    /* of the lowest tap that reads a row, 0 where none does: UNPOOL */
    VXD_NET_POOL_OF_FIRST = 4
};

/* A pool over the taps of a kernel map. */
struct vxd_net_pool_call {
    enum vxd_net_precision precision;
    enum vxd_net_pool pool;
    struct vxd_net_extent extent; /* of the output */
    struct vxd_kernel_map map;
    struct vxd_rows in;
    struct vxd_rows out;
};

enum vxd_net_global {
    VXD_NET_GLOBAL_OF_MAX = 0,
    VXD_NET_GLOBAL_OF_AVG = 1,
    VXD_NET_GLOBAL_OF_GEM = 2
};

/* A pool over the rows of each sample, to row `sample` of out; zeros where the sample
 * has no rows. */
struct vxd_net_global_call {
    enum vxd_net_precision precision;
    enum vxd_net_global global;
    float p; /* the exponent of GeM */
    float eps;
    struct vxd_net_extent extent; /* of the input, with starts */
    struct vxd_rows in;
    struct vxd_rows out;
    void *scratch; /* vxd_net_global_scratch_bytes */
    size_t scratch_bytes;
};

/* Normalises each sample by its own mean and biased variance (two passes: the mean,
 * then the mean square of the deviation): act((x - mean) / sqrt(variance + eps) *
 * scale + bias). Other samples in the batch change nothing. */
struct vxd_net_batch_norm_call {
    enum vxd_net_precision precision;
    float eps;
    struct vxd_net_extent extent; /* with starts */
    const float *scale;           /* NULL = 1 */
    const float *bias;            /* NULL = 0 */
    enum vxd_net_act act;
    float alpha;
    struct vxd_rows in;
    struct vxd_rows out;
    void *scratch; /* vxd_net_batch_norm_scratch_bytes */
    size_t scratch_bytes;
};

enum vxd_net_norm {
    VXD_NET_NORM_SOFTMAX = 0, /* over channels, after subtracting their maximum */
    VXD_NET_NORM_L2 = 1       /* x / max(sqrt(sum of x * x), eps) */
};

/* A norm over the channels of each row. */
struct vxd_net_norm_call {
    enum vxd_net_precision precision;
    enum vxd_net_norm norm;
    float eps;
    struct vxd_net_extent extent;
    struct vxd_rows in;
    struct vxd_rows out;
};

/* Rows of a table, chosen by channel 0 of the input (vxd_net_embedding_row); zeros
 * where the table has no such row. */
struct vxd_net_embedding_call {
    enum vxd_net_precision precision;
    struct vxd_net_extent extent;
    const float *table; /* n_entries x out.n_channels float32 */
    int n_entries;
    struct vxd_rows in;
    struct vxd_rows out;
};

/* keep[i] = channel 0 of row i > threshold, for all existing rows. */
struct vxd_net_keep_call {
    enum vxd_net_precision precision;
    float threshold;
    struct vxd_net_extent extent;
    struct vxd_rows in;
    uint8_t *keep;
};

/* out[i] = sum over the rows j of k that are in the sample of row i: softmax_j(scale *
 * q[i].k[j]) v[j]; zeros where the sample has no such rows. k and v have the same
 * rows. No n x n matrix is stored: keys are processed in blocks, in order, with a
 * running maximum. */
struct vxd_net_attention_call {
    enum vxd_net_precision precision;
    float scale;
    /* both with starts, and with the same number of samples */
    struct vxd_net_extent of_q;
    struct vxd_net_extent of_k;
    struct vxd_rows q;
    struct vxd_rows k; /* has the channels of q */
    struct vxd_rows v; /* has the channels of out */
    struct vxd_rows out;
    void *scratch; /* vxd_net_attention_scratch_bytes */
    size_t scratch_bytes;
};

/* Row sample * T + t of out = sum over the sample's rows i of softmax_i(scores[i][t])
 * * values[i], where T is the number of the scores' channels; zeros where the sample
 * has no rows. */
struct vxd_net_tokens_call {
    enum vxd_net_precision precision;
    struct vxd_net_extent extent; /* of scores and values, with starts */
    struct vxd_rows scores;
    struct vxd_rows values;
    struct vxd_rows out;
    void *scratch; /* vxd_net_tokens_scratch_bytes */
    size_t scratch_bytes;
};

/* Label and value of each row's greatest channel by vxd_net_is_better, starting with
 * channel 0. */
struct vxd_net_argmax_call {
    enum vxd_net_precision precision;
    struct vxd_net_extent extent;
    struct vxd_rows in;
    int32_t *labels; /* max_rows each */
    float *scores;
};

/* Copies rows to vxd_net_bev_place of their cells. All n_floats are written, zeros
 * elsewhere. The set's shape is bounded on every axis. */
struct vxd_net_bev_call {
    enum vxd_net_precision precision;
    struct vxd_net_extent extent;
    const uint64_t *keys; /* of the set */
    int32_t shape[3];
    struct vxd_rows in;
    float *out;
    size_t n_floats;
};

/* Device bytes of scratch; 0 = none. max_rows as in the extents. */
size_t vxd_net_global_scratch_bytes_cpu(size_t max_rows, int n_samples, int n_channels);
size_t vxd_net_global_scratch_bytes_cuda(size_t max_rows, int n_samples, int n_channels);
size_t vxd_net_batch_norm_scratch_bytes_cpu(size_t max_rows, int n_samples,
                                            int n_channels);
size_t vxd_net_batch_norm_scratch_bytes_cuda(size_t max_rows, int n_samples,
                                             int n_channels);
size_t vxd_net_attention_scratch_bytes_cpu(size_t max_q, size_t max_k, int n_samples,
                                           int n_inner, int n_channels);
size_t vxd_net_attention_scratch_bytes_cuda(size_t max_q, size_t max_k, int n_samples,
                                            int n_inner, int n_channels);
size_t vxd_net_tokens_scratch_bytes_cpu(size_t max_rows, int n_samples, int n_tokens,
                                        int n_channels);
size_t vxd_net_tokens_scratch_bytes_cuda(size_t max_rows, int n_samples, int n_tokens,
                                         int n_channels);

#define VXD_NET_BACKEND_FNS(name)                                                        \
    enum vxd_status vxd_net_##name##_cpu(struct vxd_queue *queue,                        \
                                         const struct vxd_net_##name##_call *call,       \
                                         struct vxd_err *err);                           \
    enum vxd_status vxd_net_##name##_cuda(struct vxd_queue *queue,                       \
                                          const struct vxd_net_##name##_call *call,      \
                                          struct vxd_err *err)

VXD_NET_BACKEND_FNS(load);
VXD_NET_BACKEND_FNS(save);
VXD_NET_BACKEND_FNS(count);
VXD_NET_BACKEND_FNS(combine);
VXD_NET_BACKEND_FNS(pool);
VXD_NET_BACKEND_FNS(global);
VXD_NET_BACKEND_FNS(batch_norm);
VXD_NET_BACKEND_FNS(norm);
VXD_NET_BACKEND_FNS(embedding);
VXD_NET_BACKEND_FNS(keep);
VXD_NET_BACKEND_FNS(attention);
VXD_NET_BACKEND_FNS(tokens);
VXD_NET_BACKEND_FNS(argmax);
VXD_NET_BACKEND_FNS(bev);

#undef VXD_NET_BACKEND_FNS

/* CUDA only: the work that `enqueue` puts on the queue, recorded once and launched
 * many times. enqueue only calls backends (of this header and of the *_backends.h);
 * its error is returned, and then nothing stays recorded. The graph may be launched on
 * any queue of the context while earlier launches still run. Destroying it waits for
 * none, so no launch may be in flight. Faults are set in the word of the queue on
 * which it is launched. With has_own_word none of its kernels uses the queue's word,
 * and none is passed on. */
struct vxd_net_graph;
typedef enum vxd_status (*vxd_net_enqueue_fn)(struct vxd_queue *queue, void *args,
                                              struct vxd_err *err);
enum vxd_status vxd_net_graph_record_cuda(struct vxd_queue *queue,
                                          vxd_net_enqueue_fn enqueue, void *args,
                                          bool has_own_word, struct vxd_net_graph **out,
                                          struct vxd_err *err);
enum vxd_status vxd_net_graph_launch_cuda(struct vxd_queue *queue,
                                          const struct vxd_net_graph *graph,
                                          struct vxd_err *err);
void vxd_net_graph_destroy_cuda(struct vxd_context *context, struct vxd_net_graph *graph);

#ifdef __cplusplus
}
#endif
#endif
