// SPDX-License-Identifier: Apache-2.0
/* A network: layers as data, checked and planned once, run many times.
 *
 * A builder takes layers in order. Each names its inputs by the numbers that adding them returned
 * (VXD_NET_INPUT is the network's input). vxd_net_create checks every shape, folds constants,
 * shares coordinate sets and kernel maps by content and uploads the weights. A run has two
 * parts: all coordinate sets and kernel maps, made from the input's coordinates; then, once the
 * host has read how many rows each set has, the layers.
 *
 * Three-vectors are x, y, z and taps are numbered (rx * ky + ry) * kz + rz everywhere in this
 * header: code that reads a config permutes them. */
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

/* The rows of a layer's result belong to a coordinate set, or are n_tokens for each
 * sample, or one for each sample (n_tokens 1). */
enum vxd_net_op {
    /* Convolutions: weights n_taps x in x channels. */
    VXD_NET_SUBM = 0,
    VXD_NET_CONV = 1,
    /* of_map: the layer whose map is used in reverse, with the same taps */
    VXD_NET_INVERSE = 2,
    VXD_NET_TRANSPOSE = 3, /* generates coordinates, or uses the set of layer `onto` */
    VXD_NET_LINEAR = 4,    /* rows of any kind */
    /* Pools: the maximum of SPCONV starts at 0 (negative values become 0), as in the
     * library. */
    VXD_NET_POOL_MAX = 5,
    VXD_NET_POOL_AVG = 6, /* over the existing rows */
    VXD_NET_POOL_SUM = 7,
    VXD_NET_UNPOOL = 8, /* of_map: a pool; every fine row takes its coarse row's value */
    VXD_NET_GLOBAL_MAX = 9, /* to one row a sample; 0 for a sample without rows */
    VXD_NET_GLOBAL_AVG = 10,
    VXD_NET_GLOBAL_GEM = 11, /* (mean of max(x, eps)^p)^(1/p); p in alpha */
    /* Several inputs. */
    VXD_NET_ADD = 12,       /* same rows */
    VXD_NET_ADD_UNION = 13, /* different sets: zeros where a row is missing */
    VXD_NET_CAT = 14,       /* concatenates channels; same rows */
    /* Row by row. */
    /* x * scale + bias for each channel (a batch norm that could not be folded into a
     * convolution) */
    VXD_NET_AFFINE = 15,
    /* with the batch's own mean and biased variance; scale, bias, eps */
    VXD_NET_BATCH_NORM = 16,
    VXD_NET_ACT = 17,
    VXD_NET_SOFTMAX = 18, /* over channels */
    /* input channel 0, rounded, selects a row of `weights` (n x channels); zeros
     * outside */
    VXD_NET_EMBEDDING = 19,
    VXD_NET_PRUNE = 20,   /* keeps rows whose channel 0 of input 1 is above alpha */
    VXD_NET_L2_NORM = 21, /* x / max(|x|, eps) */
    /* Over the rows of a sample (SVT-Net's ASVT and CSVT are made of these and LINEAR). */
    /* inputs q, k, v: softmax over k's rows of alpha * q k^T, times v; q's rows and
     * k's may be of different sets or tokens */
    VXD_NET_ATTENTION = 22,
    VXD_NET_TOKENS = 23 /* inputs scores (n x T), values (n x C): T tokens a sample, each
                             * the sum over rows of softmax over rows of its score * value */
};

struct vxd_net_layer {
    char name[VXD_NET_NAME_BYTES]; /* for errors and timings; unique, not empty */
    enum vxd_net_op op;
    enum vxd_net_semantics semantics;
    int inputs[VXD_NET_MAX_INPUTS];
    int n_inputs;
    /* of the result; 0 where the op determines it (add, act, pools, ...) */
    int n_channels;
    int kernel[3];
    int stride[3];
    int padding[3]; /* SPCONV; MINKOWSKI and SUBM derive it */
    int dilation[3];
    int output_padding[3]; /* SPCONV transpose */
    int of_map;            /* INVERSE, UNPOOL: layer number, else VXD_NET_NONE */
    int onto; /* TRANSPOSE: layer whose set the result uses, else VXD_NET_NONE */
    int add;  /* residual added before the activation, else VXD_NET_NONE */
    enum vxd_net_act act;
    float alpha;
    float eps;
    /* BATCH_NORM: statistics over all rows of the run, as in torch's training mode
     * (the recording of spconv: four samples, one mean). Otherwise each sample uses
     * its own, so that other samples in the batch change nothing. */
    bool whole_batch;
    /* Host memory, copied by vxd_net_builder_add. */
    const float *weights; /* n_taps x n_in x n_channels */
    size_t n_weights;     /* number of floats; must be exactly that */
    /* n_channels or NULL: AFFINE, BATCH_NORM; a convolution's folded batch norm
     * (multiplied into the weights in double) */
    const float *scale;
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

/* Checks a layer as far as the other layers do not matter; *id numbers layers from 0.
 * errors  INVALID_ARGUMENT  err.field is "layers[NAME].kernel" or the like */
enum vxd_status vxd_net_builder_add(struct vxd_net_builder *builder,
                                    const struct vxd_net_layer *layer, int *id,
                                    struct vxd_err *err);
enum vxd_status vxd_net_builder_output(struct vxd_net_builder *builder,
                                       const struct vxd_net_output *output,
                                       struct vxd_err *err);

struct vxd_net_options {
    enum vxd_net_precision precision;
    size_t max_rows; /* input voxels of a run, 1 to 2^27 */
    int max_samples; /* 1 to VXD_SPARSE_MAX_SAMPLES */
    /* device memory of weights plus one run; 0 = the context's budget */
    size_t max_bytes;
};

/* Builds the network and copies its weights to the device. Blocking.
 * errors  INVALID_ARGUMENT    a layer that does not fit the others: names it
 *         RESOURCE_EXHAUSTED
 * owner   the caller; the caller also keeps the builder */
enum vxd_status vxd_net_create(struct vxd_queue *queue,
                               const struct vxd_net_builder *builder,
                               const struct vxd_net_options *options,
                               struct vxd_net **out, struct vxd_err *err);
/* No run of the network may exist any more. */
void vxd_net_destroy(struct vxd_queue *queue, struct vxd_net *net);

struct vxd_net_info {
    size_t n_layers;
    size_t n_parameters;
    size_t weight_bytes; /* on the device */
    size_t n_coord_sets;
    size_t n_maps;
    int n_outputs;
    /* some batch norm uses statistics of the whole run: samples are not independent */
    bool whole_batch;
};
void vxd_net_get_info(const struct vxd_net *net, struct vxd_net_info *out);
const struct vxd_net_output *vxd_net_get_output(const struct vxd_net *net, int output);

struct vxd_net_input {
    /* n x 4 (sample, x, y, z), unique, in vxd_voxelize's Morton order; device memory,
     * borrowed until the run is over */
    const int32_t *coords;
    const float *features; /* n x n_channels float32; device memory */
    size_t n_rows;
    int n_samples; /* samples without rows are allowed */
    /* For measuring: on a GPU, too, kernel maps and layers are enqueued as separate
     * parts. */
    bool maps_apart;
    /* For finding faults: the values of each layer are counted that are not finite; see
     * vxd_net_run_find_overflow. It takes more time, and no graph is kept of the run. */
    bool counts_overflow;
};

/* Begins a run; its steps allocate device memory as they learn how much they need. Several runs
 * of one network may exist at once, each on its own queue.
 * errors  INVALID_ARGUMENT    more rows or samples than the options allow
 *         RESOURCE_EXHAUSTED  memory
 * owner   the caller */
enum vxd_status vxd_net_run_create(struct vxd_queue *queue, const struct vxd_net *net,
                                   const struct vxd_net_input *input,
                                   struct vxd_net_run **out, struct vxd_err *err);

/* Enqueues the next part of the run; *more says that another call must follow once the queue was
 * waited for. On the CPU a part is a coordinate set, or some maps, or a few layers (about 20 ms),
 * so that other work runs between them. On a GPU coordinate sets are one part and maps and layers
 * another, and a prune begins the sequence anew. Where earlier runs predict how many rows there
 * will be, everything is one part, and the next call only checks that it fit (if not, the run
 * begins anew with exact counts).
 * errors  RESOURCE_EXHAUSTED  the network's max_bytes, or memory; names the layer
 *         FAILED_PRECONDITION  the run is over
 *         by the wait: INVALID_ARGUMENT for coordinates that are not unique, not in order or
 *         outside; a run that has failed can only be destroyed */
enum vxd_status vxd_net_run_step(struct vxd_queue *queue, struct vxd_net_run *run,
                                 bool *more, struct vxd_err *err);

/* Whether all coordinate sets and kernel maps have been enqueued (with a prune, those
 * of the first phase). */
bool vxd_net_run_is_mapped(const struct vxd_net_run *run);

/* A result, once the last step has run; device memory of the run, valid until the run
 * is destroyed. */
struct vxd_net_result {
    size_t n_rows;
    int n_channels;
    /* n_rows x 4; MinkowskiEngine's coordinates times the tensor stride; NULL where
     * rows are tokens or samples */
    const int32_t *coords;
    const uint32_t *sample_starts; /* n_samples + 1: first row of each sample */
    const float *values; /* ROWS: n_rows x n_channels; DENSE_BEV; ARGMAX: n_rows scores */
    const int32_t *labels;  /* ARGMAX */
    int32_t dense_shape[4]; /* DENSE_BEV: samples, channels, height, width */
};
enum vxd_status vxd_net_run_result(const struct vxd_net_run *run, int output,
                                   struct vxd_net_result *out, struct vxd_err *err);

/* Finds the first layer, in the order in which they run, that gave values which are not finite, of a
 * run with counts_overflow that is over; blocking.
 * out     layer     its name, which lives as long as the builder; NULL = none
 *         n_values  how many
 * errors  FAILED_PRECONDITION  the run is not over, or counted nothing; RESOURCE_EXHAUSTED */
enum vxd_status vxd_net_run_find_overflow(struct vxd_queue *queue,
                                          const struct vxd_net_run *run,
                                          const char **layer, uint32_t *n_values,
                                          struct vxd_err *err);

/* The cost of a run, once it is over; blocking. */
struct vxd_net_cost {
    double useful_flops; /* convolutions: 2 x pairs x channels in x channels out */
    /* each layer reads its inputs and weights once and writes its result once */
    double compulsory_bytes;
    uint64_t n_pairs;  /* of all kernel maps */
    size_t peak_bytes; /* peak of the run's device memory */
    /* peak of the memory needed at one time, without spare capacity */
    size_t live_bytes;
};
enum vxd_status vxd_net_run_get_cost(struct vxd_queue *queue,
                                     const struct vxd_net_run *run,
                                     struct vxd_net_cost *out, struct vxd_err *err);

/* In queue order; waits for the queue where the run is not over, and on a GPU. NULL is
 * fine. */
void vxd_net_run_destroy(struct vxd_queue *queue, struct vxd_net_run *run);

#ifdef __cplusplus
}
#endif
#endif
