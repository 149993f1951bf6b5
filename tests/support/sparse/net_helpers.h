// SPDX-License-Identifier: Apache-2.0
/* What the tests of networks share: a network as a list of layers, run by the engine
 * and by an oracle in double that identifies rows by their coordinates only, without
 * coordinate sets, kernel maps, order or plan. */
#ifndef VXD_TESTS_SUPPORT_SPARSE_NET_HELPERS_H
#define VXD_TESTS_SUPPORT_SPARSE_NET_HELPERS_H

#include "gpu/sparse/executor/executor.h"
#include "tests/support/gpu/gpu_helpers.h"

#define GPU_NET_MAX_LAYERS 48

struct gpu_net {
    int n_channels;
    int32_t shape[3];
    enum vxd_net_semantics semantics; /* of the layers added next */
    uint64_t random;
    struct vxd_net_layer layers[GPU_NET_MAX_LAYERS]; /* with arrays of their own */
    int layer_channels[GPU_NET_MAX_LAYERS];
    int n_layers;
    struct vxd_net_output outputs[VXD_NET_MAX_OUTPUTS];
    int n_outputs;
};

void gpu_net_init(struct gpu_net *out, int n_channels, const int32_t shape[3],
                  enum vxd_net_semantics semantics);
void gpu_net_free(struct gpu_net *net);

/* A layer of one input with defaults in all other fields; the caller changes some and
 * passes it to gpu_net_add, which names it and returns its number. */
struct vxd_net_layer gpu_net_layer(const struct gpu_net *net, enum vxd_net_op op, int in);
int gpu_net_add(struct gpu_net *net, const struct vxd_net_layer *layer);

/* Random weights, and in some cases bias, scale and activation. */
int gpu_net_conv(struct gpu_net *net, enum vxd_net_op op, int in, int n_channels,
                 int kernel, int stride, int padding);
/* Adds random weights, bias and scale to a convolution or linear layer that is
 * otherwise complete. */
int gpu_net_weighted(struct gpu_net *net, struct vxd_net_layer *layer);
int gpu_net_two(struct gpu_net *net, enum vxd_net_op op, int a, int b);
void gpu_net_output(struct gpu_net *net, int layer, enum vxd_net_output_kind kind);

/* Voxels with features, in order. */
struct gpu_net_cloud {
    size_t n_rows;
    int n_samples;
    int n_channels;
    int32_t *coords;
    float *features;
};

/* A network of four layers: layer0: submanifold, 2 channels; layer1: strided, from
 * layer0; layer2: 1 row a sample; layer3: a tensor of 2 channels on other rows. The
 * output is layer0's rows; the shape is 16 cells a side. */
void gpu_net_make_base(struct gpu_net *net);

/* About the fraction `share` of the cells of a box beginning at lo; samples in `empty`
 * (a bit each) get none. */
void gpu_net_cloud_make(struct gpu_net_cloud *out, uint64_t seed, int n_samples,
                        unsigned empty, int n_channels, const int32_t lo[3],
                        const int32_t n[3], double share);
/* One sample of the cloud, as sample 0. */
void gpu_net_cloud_sample(const struct gpu_net_cloud *cloud, int sample,
                          struct gpu_net_cloud *out);
void gpu_net_cloud_free(struct gpu_net_cloud *cloud);

/* A tensor of the oracle: rows ascend by (sample, x, y, z); tokens are (sample, t, 0, 0). */
struct gpu_net_rows {
    bool are_voxels;
    int n_tokens;
    int n_channels;
    size_t n_rows;
    int32_t *coords; /* cells of its own stride */
    int32_t shape[3];
    int32_t times[3];
    double *values;
};

/* Every tensor, 0 the input; malloc'ed array of n_layers + 1. */
struct gpu_net_rows *gpu_net_oracle(const struct gpu_net *net,
                                    const struct gpu_net_cloud *cloud);
void gpu_net_oracle_free(const struct gpu_net *net, struct gpu_net_rows *tensors);

/* An output on the host. */
struct gpu_net_result {
    size_t n_rows;
    int n_channels;
    int32_t *coords; /* NULL where rows are not voxels */
    uint32_t *starts;
    float *values;
    int32_t *labels;
    int32_t dense_shape[4];
    size_t n_values;
};
void gpu_net_result_free(struct gpu_net_result *result);

/* Builds the network; returns the status of the builder or of vxd_net_create. */
enum vxd_status gpu_net_create(struct gpu_env *env, const struct gpu_net *net,
                               const struct vxd_net_options *options,
                               struct vxd_net **out, struct vxd_err *err);
/* A whole run; results has one item for every output. Returns the status of a step or
 * a wait. */
enum vxd_status gpu_net_run(struct gpu_env *env, const struct vxd_net *net,
                            const struct gpu_net_cloud *cloud,
                            struct gpu_net_result *results, struct vxd_err *err);
/* Copies an output of a finished run. */
void gpu_net_fetch(struct gpu_env *env, const struct vxd_net *net,
                   const struct vxd_net_run *run, int n_samples, int output,
                   struct gpu_net_result *out);

/* Builds, runs, compares every output with the oracle's; returns how many values differ by
 * more than tolerance * (1 + |exact|), and rows that are missing or too many. */
size_t gpu_net_compare(struct gpu_env *env, const struct gpu_net *net,
                       const struct gpu_net_cloud *cloud,
                       enum vxd_net_precision precision, double tolerance);

#endif
