// SPDX-License-Identifier: Apache-2.0
#include "tests/support/sparse/net_helpers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUST(expression)                                                                 \
    do {                                                                                 \
        if ((expression) != VXD_OK) {                                                    \
            (void)fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, err.field,      \
                          err.message);                                                  \
            exit(EXIT_FAILURE);                                                          \
        }                                                                                \
    } while (0)

/* --- layers ------------------------------------------------------------------------------ */

void gpu_net_init(struct gpu_net *out, int n_channels, const int32_t shape[3],
                  enum vxd_net_semantics semantics)
{
    memset(out, 0, sizeof *out);
    out->n_channels = n_channels;
    memcpy(out->shape, shape, sizeof out->shape);
    out->semantics = semantics;
    out->random = 11;
}

void gpu_net_free(struct gpu_net *net)
{
    for (int i = 0; i < net->n_layers; i++) {
        free((void *)net->layers[i].weights);
        free((void *)net->layers[i].scale);
        free((void *)net->layers[i].bias);
    }
}

struct vxd_net_layer gpu_net_layer(const struct gpu_net *net, enum vxd_net_op op, int in)
{
    struct vxd_net_layer layer = {.op = op,
                                  .semantics = net->semantics,
                                  .inputs = {in},
                                  .n_inputs = 1,
                                  .dilation = {1, 1, 1},
                                  .stride = {1, 1, 1},
                                  .of_map = VXD_NET_NONE,
                                  .onto = VXD_NET_NONE,
                                  .add = VXD_NET_NONE};

    return layer;
}

static float *copy_floats(const float *from, size_t n)
{
    float *copy = NULL;

    if (from != NULL) {
        copy = gpu_alloc(n * sizeof *copy);
        memcpy(copy, from, n * sizeof *copy);
    }
    return copy;
}

static int channels_of(const struct gpu_net *net, int layer)
{
    return layer < 0 ? net->n_channels : net->layer_channels[layer];
}

int gpu_net_add(struct gpu_net *net, const struct vxd_net_layer *layer)
{
    struct vxd_net_layer *to = &net->layers[net->n_layers];
    int n_channels = layer->n_channels;

    *to = *layer;
    (void)snprintf(to->name, sizeof to->name, "layer%d", net->n_layers);
    to->weights = copy_floats(layer->weights, layer->n_weights);
    to->scale = copy_floats(layer->scale, (size_t)layer->n_channels);
    to->bias = copy_floats(layer->bias, (size_t)layer->n_channels);
    if (layer->op == VXD_NET_CAT) {
        for (int i = 0; i < layer->n_inputs; i++) {
            n_channels += channels_of(net, layer->inputs[i]);
        }
    } else if (layer->op == VXD_NET_ATTENTION) {
        n_channels = channels_of(net, layer->inputs[2]);
    } else if (layer->op == VXD_NET_TOKENS) {
        n_channels = channels_of(net, layer->inputs[1]);
    } else if (n_channels == 0) {
        n_channels = channels_of(net, layer->inputs[0]);
    }
    net->layer_channels[net->n_layers] = n_channels;
    return net->n_layers++;
}

static float *random_floats(struct gpu_net *net, size_t n, float low, float high)
{
    float *values = gpu_alloc(n * sizeof *values);

    for (size_t i = 0; i < n; i++) {
        values[i] = gpu_random_float(&net->random, low, high);
    }
    return values;
}

int gpu_net_weighted(struct gpu_net *net, struct vxd_net_layer *layer)
{
    size_t n_in = (size_t)channels_of(net, layer->inputs[0]);
    size_t n_out = (size_t)layer->n_channels;
    size_t n_taps = 1;
    float bound;
    float *weights;
    float *scale = random_floats(net, n_out, 0.5f, 1.5f);
    float *bias = random_floats(net, n_out, -0.5f, 0.5f);
    int id;

    for (int axis = 0; axis < 3 && layer->op != VXD_NET_LINEAR; axis++) {
        n_taps *= (size_t)layer->kernel[axis];
    }
    bound = 1.2f / sqrtf((float)(n_taps > 6 ? 6 : n_taps) * (float)n_in);
    layer->n_weights = n_taps * n_in * n_out;
    weights = random_floats(net, layer->n_weights, -bound, bound);
    layer->weights = weights;
    layer->scale = net->n_layers % 3 != 0 ? scale : NULL;
    layer->bias = net->n_layers % 4 != 1 ? bias : NULL;
    id = gpu_net_add(net, layer);
    free(weights);
    free(scale);
    free(bias);
    return id;
}

int gpu_net_conv(struct gpu_net *net, enum vxd_net_op op, int in, int n_channels,
                 int kernel, int stride, int padding)
{
    struct vxd_net_layer layer = gpu_net_layer(net, op, in);

    layer.n_channels = n_channels;
    for (int axis = 0; axis < 3; axis++) {
        layer.kernel[axis] = kernel;
        layer.stride[axis] = stride;
        layer.padding[axis] = padding;
    }
    layer.act = net->n_layers % 2 == 0 ? VXD_ACT_RELU : VXD_ACT_NONE;
    return gpu_net_weighted(net, &layer);
}

int gpu_net_two(struct gpu_net *net, enum vxd_net_op op, int a, int b)
{
    struct vxd_net_layer layer = gpu_net_layer(net, op, a);

    layer.n_inputs = 2;
    layer.inputs[1] = b;
    return gpu_net_add(net, &layer);
}

void gpu_net_output(struct gpu_net *net, int layer, enum vxd_net_output_kind kind)
{
    struct vxd_net_output *output = &net->outputs[net->n_outputs];

    (void)snprintf(output->name, sizeof output->name, "out%d", net->n_outputs++);
    output->kind = kind;
    output->layer = layer;
}

/* --- clouds ------------------------------------------------------------------------------ */

/* The order of vxd_voxelize: per bit level x, y, z. */
static int compare_coords(const void *a, const void *b)
{
    const int32_t *p = a;
    const int32_t *q = b;

    if (p[0] != q[0]) {
        return p[0] < q[0] ? -1 : 1;
    }
    for (int bit = 20; bit >= 0; bit--) {
        for (int axis = 1; axis < 4; axis++) {
            int x =
                ((p[axis] + (1 << 20)) >> bit & 1) - ((q[axis] + (1 << 20)) >> bit & 1);

            if (x != 0) {
                return x;
            }
        }
    }
    return 0;
}

void gpu_net_make_base(struct gpu_net *net)
{
    static const int32_t bounded[3] = {16, 16, 16};
    struct vxd_net_layer layer;

    gpu_net_init(net, 2, bounded, VXD_NET_SPCONV);
    (void)gpu_net_conv(net, VXD_NET_SUBM, VXD_NET_INPUT, 2, 3, 1, 1);
    (void)gpu_net_conv(net, VXD_NET_CONV, 0, 2, 2, 2, 0);
    layer = gpu_net_layer(net, VXD_NET_GLOBAL_AVG, 0);
    (void)gpu_net_add(net, &layer);
    (void)gpu_net_conv(net, VXD_NET_LINEAR, 1, 3, 1, 1, 0);
    gpu_net_output(net, 0, VXD_NET_OUT_ROWS);
}

void gpu_net_cloud_make(struct gpu_net_cloud *out, uint64_t seed, int n_samples,
                        unsigned empty, int n_channels, const int32_t lo[3],
                        const int32_t n[3], double share)
{
    size_t n_cells = (size_t)n[0] * (size_t)n[1] * (size_t)n[2];
    size_t capacity = n_cells * (size_t)n_samples;

    *out = (struct gpu_net_cloud){.n_samples = n_samples, .n_channels = n_channels};
    out->coords = gpu_alloc(capacity * 16 + 16);
    for (size_t i = 0; i < capacity; i++) {
        int sample = (int)(i / n_cells);
        size_t cell = i % n_cells;
        int32_t *c = out->coords + 4 * out->n_rows;

        if ((empty >> sample & 1) != 0 ||
            (double)gpu_random_float(&seed, 0.0f, 1.0f) >= share) {
            continue;
        }
        c[0] = sample;
        c[1] = lo[0] + (int32_t)(cell % (size_t)n[0]);
        c[2] = lo[1] + (int32_t)(cell / (size_t)n[0] % (size_t)n[1]);
        c[3] = lo[2] + (int32_t)(cell / (size_t)n[0] / (size_t)n[1]);
        out->n_rows++;
    }
    qsort(out->coords, out->n_rows, 16, compare_coords);
    out->features =
        gpu_alloc((out->n_rows * (size_t)n_channels + 1) * sizeof *out->features);
    for (size_t i = 0; i < out->n_rows * (size_t)n_channels; i++) {
        out->features[i] = gpu_random_float(&seed, -1.0f, 1.0f);
    }
}

void gpu_net_cloud_sample(const struct gpu_net_cloud *cloud, int sample,
                          struct gpu_net_cloud *out)
{
    size_t n_channels = (size_t)cloud->n_channels;

    *out = (struct gpu_net_cloud){.n_samples = 1, .n_channels = cloud->n_channels};
    out->coords = gpu_alloc(cloud->n_rows * 16 + 16);
    out->features = gpu_alloc((cloud->n_rows * n_channels + 1) * sizeof(float));
    for (size_t i = 0; i < cloud->n_rows; i++) {
        if (cloud->coords[4 * i] != sample) {
            continue;
        }
        memcpy(out->coords + 4 * out->n_rows, cloud->coords + 4 * i, 16);
        out->coords[4 * out->n_rows] = 0;
        memcpy(out->features + n_channels * out->n_rows, cloud->features + n_channels * i,
               n_channels * sizeof(float));
        out->n_rows++;
    }
}

void gpu_net_cloud_free(struct gpu_net_cloud *cloud)
{
    free(cloud->coords);
    free(cloud->features);
}

/* --- runs -------------------------------------------------------------------------------- */

void gpu_net_result_free(struct gpu_net_result *result)
{
    free(result->coords);
    free(result->starts);
    free(result->values);
    free(result->labels);
    *result = (struct gpu_net_result){0};
}

enum vxd_status gpu_net_create(struct gpu_env *env, const struct gpu_net *net,
                               const struct vxd_net_options *options,
                               struct vxd_net **out, struct vxd_err *err)
{
    struct vxd_net_builder *builder = NULL;
    enum vxd_status status;

    *out = NULL;
    VXD_TRY(vxd_net_builder_create(net->n_channels, net->shape, &builder, err));
    for (int i = 0; i < net->n_layers; i++) {
        int id;

        VXD_TRY(vxd_net_builder_add(builder, &net->layers[i], &id, err));
    }
    for (int i = 0; i < net->n_outputs; i++) {
        VXD_TRY(vxd_net_builder_output(builder, &net->outputs[i], err));
    }
    VXD_TRY(vxd_net_create(env->queue, builder, options, out, err));
out:
    vxd_net_builder_destroy(builder);
    return status;
}

static void *fetch(struct gpu_env *env, const void *from, size_t n_bytes)
{
    void *to = gpu_alloc(n_bytes + 1);
    struct vxd_err err = {0};

    if (n_bytes > 0) {
        MUST(vxd_queue_copy(env->queue, to, from, n_bytes, &err));
    }
    gpu_wait(env);
    return to;
}

void gpu_net_fetch(struct gpu_env *env, const struct vxd_net *net,
                   const struct vxd_net_run *run, int n_samples, int output,
                   struct gpu_net_result *out)
{
    enum vxd_net_output_kind kind = vxd_net_get_output(net, output)->kind;
    struct vxd_net_result result;
    struct vxd_err err = {0};

    MUST(vxd_net_run_result(run, output, &result, &err));
    *out =
        (struct gpu_net_result){.n_rows = result.n_rows, .n_channels = result.n_channels};
    memcpy(out->dense_shape, result.dense_shape, sizeof out->dense_shape);
    out->n_values = result.n_rows;
    if (kind == VXD_NET_OUT_ROWS) {
        out->n_values *= (size_t)result.n_channels;
    } else if (kind == VXD_NET_OUT_DENSE_BEV) {
        out->n_values = 1;
        for (int i = 0; i < 4; i++) {
            out->n_values *= (size_t)result.dense_shape[i];
        }
    }
    out->values = fetch(env, result.values, out->n_values * sizeof(float));
    if (result.labels != NULL) {
        out->labels = fetch(env, result.labels, result.n_rows * sizeof(int32_t));
    }
    if (result.coords != NULL) {
        out->coords = fetch(env, result.coords, result.n_rows * 16);
    }
    if (result.sample_starts != NULL) {
        out->starts =
            fetch(env, result.sample_starts, ((size_t)n_samples + 1) * sizeof(uint32_t));
    }
}

enum vxd_status gpu_net_run(struct gpu_env *env, const struct vxd_net *net,
                            const struct gpu_net_cloud *cloud,
                            struct gpu_net_result *results, struct vxd_err *err)
{
    struct vxd_buffer coords = gpu_to_device(env, cloud->coords, cloud->n_rows * 16);
    struct vxd_buffer features = gpu_to_device(
        env, cloud->features, cloud->n_rows * (size_t)cloud->n_channels * sizeof(float));
    struct vxd_net_input input = {.coords = coords.ptr,
                                  .features = features.ptr,
                                  .n_rows = cloud->n_rows,
                                  .n_samples = cloud->n_samples};
    struct vxd_net_run *run = NULL;
    struct vxd_net_info info;
    bool more = true;
    enum vxd_status status;

    VXD_TRY(vxd_net_run_create(env->queue, net, &input, &run, err));
    while (more) {
        VXD_TRY(vxd_net_run_step(env->queue, run, &more, err));
        VXD_TRY(vxd_queue_wait(env->queue, err));
    }
    vxd_net_get_info(net, &info);
    for (int i = 0; i < info.n_outputs; i++) {
        gpu_net_fetch(env, net, run, cloud->n_samples, i, &results[i]);
    }
out:
    vxd_net_run_destroy(env->queue, run);
    vxd_device_free(env->queue, &coords);
    vxd_device_free(env->queue, &features);
    gpu_wait(env);
    return status;
}

/* --- comparing --------------------------------------------------------------------------- */

static bool is_near(float actual, double exact, double tolerance)
{
    return fabs((double)actual - exact) <= tolerance * (1.0 + fabs(exact));
}

static size_t find_row(const struct gpu_net_rows *rows, const int32_t *c)
{
    for (size_t i = 0; i < rows->n_rows; i++) {
        const int32_t *at = rows->coords + 4 * i;

        if (at[0] == c[0] && at[1] * rows->times[0] == c[1] &&
            at[2] * rows->times[1] == c[2] && at[3] * rows->times[2] == c[3]) {
            return i;
        }
    }
    return SIZE_MAX;
}

static size_t compare_row(const struct gpu_net_result *result,
                          const struct gpu_net_rows *exact, size_t row, size_t from,
                          double tolerance)
{
    const double *y = exact->values + from * (size_t)exact->n_channels;
    size_t n_wrong = 0;

    if (result->labels != NULL) {
        int32_t label = result->labels[row];
        double best = y[0];

        for (int j = 1; j < exact->n_channels; j++) {
            best = y[j] > best ? y[j] : best;
        }
        /* Of nearly equal values either may win. */
        return label < 0 || label >= exact->n_channels ||
                       !is_near((float)best, y[label], tolerance) ||
                       !is_near(result->values[row], y[label], tolerance)
                   ? 1
                   : 0;
    }
    for (int j = 0; j < exact->n_channels; j++) {
        n_wrong += !is_near(result->values[row * (size_t)exact->n_channels + (size_t)j],
                            y[j], tolerance);
    }
    return n_wrong;
}

static size_t compare_dense(const struct gpu_net_result *result,
                            const struct gpu_net_rows *exact, double tolerance)
{
    size_t n_wrong = 0;
    size_t n_other = 0;
    size_t n_z = (size_t)exact->shape[2];
    size_t n_y = (size_t)exact->shape[1];
    size_t n_x = (size_t)exact->shape[0];

    n_wrong += result->dense_shape[1] != exact->n_channels * exact->shape[2];
    n_wrong += result->dense_shape[2] != exact->shape[1];
    n_wrong += result->dense_shape[3] != exact->shape[0];
    for (size_t i = 0; i < exact->n_rows && n_wrong == 0; i++) {
        const int32_t *c = exact->coords + 4 * i;

        for (int j = 0; j < exact->n_channels; j++) {
            size_t channel = (size_t)c[0] * (size_t)exact->n_channels + (size_t)j;
            size_t plane = channel * n_z + (size_t)c[3];
            float *at =
                result->values + (plane * n_y + (size_t)c[2]) * n_x + (size_t)c[1];

            n_wrong += !is_near(
                *at, exact->values[i * (size_t)exact->n_channels + (size_t)j], tolerance);
            *at = 0.0f;
        }
    }
    for (size_t i = 0; i < result->n_values; i++) {
        n_other += result->values[i] != 0.0f;
    }
    return n_wrong + n_other;
}

static size_t compare_output(const struct gpu_net_result *result,
                             const struct gpu_net_rows *exact, double tolerance)
{
    size_t n_wrong = 0;
    size_t sample = 0;

    if (result->n_rows != exact->n_rows || result->n_channels != exact->n_channels) {
        (void)fprintf(stderr, "%zu rows of %d channels, expected %zu of %d\n",
                      result->n_rows, result->n_channels, exact->n_rows,
                      exact->n_channels);
        return 1 + result->n_rows + exact->n_rows;
    }
    for (size_t i = 0; i < result->n_rows; i++) {
        size_t from = i;

        while (result->starts[sample + 1] <= i) {
            sample++;
        }
        if (exact->are_voxels) {
            from = find_row(exact, result->coords + 4 * i);
            n_wrong += (size_t)result->coords[4 * i] != sample;
        }
        n_wrong += from == SIZE_MAX ? 1 : compare_row(result, exact, i, from, tolerance);
    }
    return n_wrong;
}

size_t gpu_net_compare(struct gpu_env *env, const struct gpu_net *net,
                       const struct gpu_net_cloud *cloud,
                       enum vxd_net_precision precision, double tolerance)
{
    struct vxd_net_options options = {.precision = precision,
                                      .max_rows = cloud->n_rows + 1,
                                      .max_samples = cloud->n_samples};
    struct gpu_net_result results[VXD_NET_MAX_OUTPUTS];
    struct gpu_net_rows *exact = gpu_net_oracle(net, cloud);
    struct vxd_net *built;
    size_t n_wrong = 0;
    struct vxd_err err = {0};

    MUST(gpu_net_create(env, net, &options, &built, &err));
    MUST(gpu_net_run(env, built, cloud, results, &err));
    for (int i = 0; i < net->n_outputs; i++) {
        const struct gpu_net_rows *expected = &exact[net->outputs[i].layer + 1];
        size_t n = net->outputs[i].kind == VXD_NET_OUT_DENSE_BEV
                       ? compare_dense(&results[i], expected, tolerance)
                       : compare_output(&results[i], expected, tolerance);

        if (n > 0) {
            (void)fprintf(stderr, "%s: output %d, layer %d: %zu wrong\n", env->name, i,
                          net->outputs[i].layer, n);
        }
        n_wrong += n;
        gpu_net_result_free(&results[i]);
    }
    vxd_net_destroy(env->queue, built);
    gpu_wait(env);
    gpu_net_oracle_free(net, exact);
    return n_wrong;
}
