// SPDX-License-Identifier: Apache-2.0
/* A network: layers as data, checked and planned once, run many times.
 *
 * A builder takes layers in order; each names its inputs by the numbers that adding gave
 * (VXD_NET_INPUT is the network's input). vxd_net_create checks every shape, folds constants,
 * shares coordinate sets and kernel maps by content and uploads the weights. A run has two
 * parts: all coordinate sets and kernel maps from the input's coordinates; then, once the
 * host has read how many rows each set has, the layers.
 *
 * Three-vectors are x, y, z and taps are numbered (rx * ky + ry) * kz + rz everywhere here:
 * whoever reads a config permutes. */
#ifndef VXD_GPU_SPARSE_EXECUTOR_NET_H
#define VXD_GPU_SPARSE_EXECUTOR_NET_H

#include "gpu/sparse/conv/conv.h"

#ifdef __cplusplus
extern "C" {
#endif

#define VXD_NET_MAX_LAYERS 1024
#define VXD_NET_MAX_OUTPUTS 32
#define VXD_NET_NAME_BYTES 64
#define VXD_NET_INPUT (-1)
#define VXD_NET_NONE (-2)

enum vxd_net_semantics {
    VXD_NET_SPCONV = 0,   /* explicit padding, output set = support within a shape */
    VXD_NET_MINKOWSKI = 1 /* centred kernels, floor sets, unbounded and signed */
};

/* Rows of a layer's result: of a coordinate set, of n_tokens a sample, or one a sample
 * (n_tokens 1). */
enum vxd_net_op {
    /* Convolutions: weights n_taps x in x channels. */
    VXD_NET_SUBM = 0,
    VXD_NET_CONV = 1,
    VXD_NET_INVERSE = 2,   /* of_map: the layer whose map is read backwards, same taps */
    VXD_NET_TRANSPOSE = 3, /* generative; or onto the set of layer `onto` */
    VXD_NET_LINEAR = 4,    /* any rows */
    /* Pools: spconv's max starts at 0 (negatives become 0), as the library does. */
    VXD_NET_POOL_MAX = 5,
    VXD_NET_POOL_AVG = 6, /* over the rows that are there */
    VXD_NET_POOL_SUM = 7,
    VXD_NET_UNPOOL = 8, /* of_map: a pool; every fine row takes its coarse row's value */
    VXD_NET_GLOBAL_MAX = 9, /* to one row a sample; 0 without rows */
    VXD_NET_GLOBAL_AVG = 10,
    VXD_NET_GLOBAL_GEM = 11, /* (mean of max(x, eps)^p)^(1/p); p in alpha */
    /* Several inputs. */
    VXD_NET_ADD = 12,       /* same rows */
    VXD_NET_ADD_UNION = 13, /* other sets: zeros where a row is missing */
    VXD_NET_CAT = 14,       /* channels, same rows */
    /* Row by row. */
    VXD_NET_AFFINE = 15, /* x * scale + bias, a channel each (a batch norm that no
                              * convolution could take in) */
    VXD_NET_BATCH_NORM =
        16, /* with the batch's own mean and biased variance; scale, bias,
                              * eps */
    VXD_NET_ACT = 17,
    VXD_NET_SOFTMAX = 18, /* over channels */
    VXD_NET_EMBEDDING =
        19,             /* input channel 0, rounded to a row of `weights` (n x channels);
                             * outside: zeros */
    VXD_NET_PRUNE = 20, /* rows whose channel 0 of input 1 is above alpha */
    VXD_NET_L2_NORM = 21, /* x / max(|x|, eps) */
    /* Over the rows of a sample (SVT-Net's ASVT and CSVT are made of these and LINEAR). */
    VXD_NET_ATTENTION =
        22, /* inputs q, k, v: softmax over k's rows of alpha * q k^T, times v;
                             * q's rows and k's may be of different sets or tokens */
    VXD_NET_TOKENS = 23 /* inputs scores (n x T), values (n x C): T tokens a sample, each
                             * the sum over rows of softmax over rows of its score * value */
};

struct vxd_net_layer {
    char name[VXD_NET_NAME_BYTES]; /* for errors and timings; unique, not empty */
    enum vxd_net_op op;
    enum vxd_net_semantics semantics;
    int inputs[VXD_NET_MAX_INPUTS];
    int n_inputs;
    int n_channels; /* of the result; 0 where the op decides (add, act, pools, ...) */
    int kernel[3];
    int stride[3];
    int padding[3]; /* SPCONV; MINKOWSKI and SUBM derive it */
    int dilation[3];
    int output_padding[3]; /* SPCONV transpose */
    int of_map;            /* INVERSE, UNPOOL: layer number, else VXD_NET_NONE */
    int onto; /* TRANSPOSE: layer whose set the result has, else VXD_NET_NONE */
    int add;  /* residual summed before the activation, else VXD_NET_NONE */
    enum vxd_net_act act;
    float alpha;
    float eps;
    /* BATCH_NORM: statistics over all rows of the run, as torch in training mode (the spconv
     * recording: four samples, one mean). Else each sample's own, so that a companion in the
     * batch changes nothing. */
    bool whole_batch;
    /* Host memory, copied by vxd_net_builder_add. */
    const float *weights; /* n_taps x n_in x n_channels */
    size_t n_weights;     /* floats; must be exactly that */
    const float
        *scale; /* n_channels or NULL: AFFINE, BATCH_NORM; a convolution's folded batch
                           * norm (multiplied into the weights in double) */
    const float *bias; /* n_channels or NULL; after scale */
};

enum vxd_net_output_kind {
    VXD_NET_OUT_ROWS = 0, /* n x channels float32 with coordinates (voxels) or without */
    /* samples x (channels * depth) x height x width float32: spconv's dense() with z folded into
     * the channels (index c * D + z), y, x; needs a bounded set */
    VXD_NET_OUT_DENSE_BEV = 1,
    VXD_NET_OUT_ARGMAX = 2 /* n int32 label and n float32 score (the channel's value) */
};

struct vxd_net_output {
    char name[VXD_NET_NAME_BYTES];
    enum vxd_net_output_kind kind;
    int layer;
};

struct vxd_net_builder;
struct vxd_net;
struct vxd_net_run;

/* n_channels of the input's features; shape: cells per axis where bounded (SPCONV), zeros =
 * unbounded. errors  INVALID_ARGUMENT, RESOURCE_EXHAUSTED */
enum vxd_status vxd_net_builder_create(int n_channels, const int32_t shape[3],
                                       struct vxd_net_builder **out, struct vxd_err *err);
void vxd_net_builder_destroy(struct vxd_net_builder *builder);

/* Checks what can be checked without the others; *id numbers layers from 0.
 * errors  INVALID_ARGUMENT  err.field is "layers[NAME].kernel" or the like */
enum vxd_status vxd_net_builder_add(struct vxd_net_builder *builder,
                                    const struct vxd_net_layer *layer, int *id,
                                    struct vxd_err *err);
enum vxd_status vxd_net_builder_output(struct vxd_net_builder *builder,
                                       const struct vxd_net_output *output,
                                       struct vxd_err *err);

struct vxd_net_options {
    enum vxd_net_precision precision;
    size_t max_rows; /* input voxels a run takes, 1 to 2^27 */
    int max_samples; /* 1 to VXD_SPARSE_MAX_SAMPLES */
    size_t
        max_bytes; /* device memory of weights plus one run; 0 = the context's budget */
};

/* Weights go to the device. Blocking.
 * errors  INVALID_ARGUMENT    a layer that does not fit the others: names it
 *         RESOURCE_EXHAUSTED
 * owner   the caller; the builder stays the caller's too */
enum vxd_status vxd_net_create(struct vxd_queue *queue,
                               const struct vxd_net_builder *builder,
                               const struct vxd_net_options *options,
                               struct vxd_net **out, struct vxd_err *err);
/* No run of it may be alive. */
void vxd_net_destroy(struct vxd_queue *queue, struct vxd_net *net);

struct vxd_net_info {
    size_t n_layers;
    size_t n_parameters;
    size_t weight_bytes; /* on the device */
    size_t n_coord_sets;
    size_t n_maps;
    int n_outputs;
    bool
        whole_batch; /* some batch norm's statistics are the run's: samples are not alone */
};
void vxd_net_get_info(const struct vxd_net *net, struct vxd_net_info *out);
const struct vxd_net_output *vxd_net_get_output(const struct vxd_net *net, int output);

struct vxd_net_input {
    const int32_t
        *coords; /* n x 4 (sample, x, y, z), unique, in vxd_voxelize's Morton order;
                            * device memory, borrowed until the run is over */
    const float *features; /* n x n_channels float32; device memory */
    size_t n_rows;
    int n_samples; /* those without rows are fine */
    /* For measuring: kernel maps and layers are parts of their own on a GPU, too. */
    bool maps_apart;
};

/* Begins a run; its steps take device memory as they learn how much they need. Several runs
 * of one network may be alive, each on its own queue.
 * errors  INVALID_ARGUMENT    more rows or samples than the options say
 *         RESOURCE_EXHAUSTED  memory
 * owner   the caller */
enum vxd_status vxd_net_run_create(struct vxd_queue *queue, const struct vxd_net *net,
                                   const struct vxd_net_input *input,
                                   struct vxd_net_run **out, struct vxd_err *err);

/* Enqueues the next part; *more says that another call must follow once the queue was waited
 * for. The first part is the coordinate sets. On the CPU parts are a set, or maps, or a few
 * layers (about 20 ms), so that other work runs between them; on a GPU sets are one part and
 * maps and layers another, a prune begins anew; but where earlier runs tell how many rows there
 * will be, all is one part, and the next call only looks whether it had room (if not, the run
 * begins anew by what it counts).
 * errors  RESOURCE_EXHAUSTED  the network's max_bytes, or memory; names the layer
 *         FAILED_PRECONDITION  the run is over
 *         by the wait: INVALID_ARGUMENT for coordinates that are not unique, not in order or
 *         outside; a run that has failed can only be destroyed */
enum vxd_status vxd_net_run_step(struct vxd_queue *queue, struct vxd_net_run *run,
                                 bool *more, struct vxd_err *err);

/* Whether all sets and kernel maps have been enqueued (those of the first part, where a prune
 * begins another). */
bool vxd_net_run_is_mapped(const struct vxd_net_run *run);

/* A result, once the last step has run; device memory of the run, valid until it is
 * destroyed. */
struct vxd_net_result {
    size_t n_rows;
    int n_channels;
    const int32_t
        *coords; /* n_rows x 4; ME's coordinates times the tensor stride; NULL where
                            * rows are tokens or samples */
    const uint32_t *sample_starts; /* n_samples + 1: first row of each sample */
    const float *values; /* ROWS: n_rows x n_channels; DENSE_BEV; ARGMAX: n_rows scores */
    const int32_t *labels;  /* ARGMAX */
    int32_t dense_shape[4]; /* DENSE_BEV: samples, channels, height, width */
};
enum vxd_status vxd_net_run_result(const struct vxd_net_run *run, int output,
                                   struct vxd_net_result *out, struct vxd_err *err);

/* What the run took, once it is over; blocking. */
struct vxd_net_cost {
    double useful_flops; /* convolutions: 2 x pairs x channels in x channels out */
    double
        compulsory_bytes; /* each layer reads its inputs and weights and writes its result */
    uint64_t n_pairs;     /* of all kernel maps */
    size_t peak_bytes;    /* device memory of the run at most */
    size_t live_bytes;    /* what was needed at one time at most, without any slack */
};
enum vxd_status vxd_net_run_get_cost(struct vxd_queue *queue,
                                     const struct vxd_net_run *run,
                                     struct vxd_net_cost *out, struct vxd_err *err);

/* In queue order; waits for the queue where the run is not over, and on a GPU. NULL is fine. */
void vxd_net_run_destroy(struct vxd_queue *queue, struct vxd_net_run *run);

#ifdef __cplusplus
}
#endif
#endif
