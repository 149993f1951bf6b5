// SPDX-License-Identifier: Apache-2.0
/* Runs a network of a directory on voxels from a file, without a daemon, so that the tests can
 * hold the loader and the engine against other implementations.
 *
 * usage: net_run DIRECTORY NAME IN.safetensors OUT.safetensors [PRECISION [BACKEND]]
 * IN has "coords", n x 4 int32 (sample, x, y, z) in Morton order, and "features", n x channels
 * float32. OUT gets for each output NAME what it has of NAME.coords, NAME.values,
 * NAME.labels. */
#include <stdlib.h>
#include <string.h>

#include "server/model/model.h"
#include "server/model/safetensors_read.h"

enum {
    MAX_TENSORS = 3 * VXD_NET_MAX_OUTPUTS,
    HEADER_CAPACITY = MAX_TENSORS * 256
};

struct run {
    struct vxd_context *context;
    struct vxd_queue *queue;
    struct vxd_model *model;
    struct vxd_net *net;
    struct vxd_net_run *run;
    struct vxd_buffer coords;
    struct vxd_buffer features;
    uint8_t *bytes;
    struct vxd_safetensors in;
};

/* The contents of the output file. */
struct out {
    char header[HEADER_CAPACITY];
    size_t n_header;
    uint8_t *data;
    size_t n_data;
};

static uint8_t *read_file(const char *path, size_t *n_bytes)
{
    FILE *file = fopen(path, "rb");
    uint8_t *bytes = NULL;
    long n = -1;

    *n_bytes = 0;
    if (file == NULL) {
        return NULL;
    }
    if (fseek(file, 0, SEEK_END) == 0) {
        n = ftell(file);
    }
    if (n >= 0 && fseek(file, 0, SEEK_SET) == 0) {
        bytes = malloc((size_t)n + 1);
    }
    if (bytes != NULL) {
        *n_bytes = fread(bytes, 1, (size_t)n, file);
    }
    (void)fclose(file);
    return bytes;
}

static enum vxd_status read_input(struct run *run, const char *path,
                                  struct vxd_net_input *input, struct vxd_err *err)
{
    int n_channels = vxd_model_input(run->model)->n_features;
    const struct vxd_tensor *coords;
    const struct vxd_tensor *features;
    size_t n_bytes;
    enum vxd_status status;

    run->bytes = read_file(path, &n_bytes);
    if (run->bytes == NULL) {
        return vxd_fail(err, VXD_NOT_FOUND, NULL, "cannot read %.100s", path);
    }
    VXD_TRY(vxd_safetensors_parse(path, run->bytes, n_bytes, &run->in, err));
    coords = vxd_safetensors_find(&run->in, "coords");
    features = vxd_safetensors_find(&run->in, "features");
    if (coords == NULL || features == NULL || coords->n_dims != 2 ||
        features->n_dims != 2 || coords->shape[1] != 4 ||
        strcmp(coords->dtype, "I32") != 0 || strcmp(features->dtype, "F32") != 0 ||
        features->shape[0] != coords->shape[0] ||
        features->shape[1] != (size_t)n_channels) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, NULL,
                        "%.100s: needs coords n x 4 I32 and features n x %d F32", path,
                        n_channels);
    }
    input->n_rows = coords->shape[0];
    input->n_samples = 1;
    for (size_t i = 0; i < input->n_rows; i++) {
        int32_t sample;

        memcpy(&sample, run->bytes + coords->begin + 16 * i, sizeof sample);
        input->n_samples = sample >= input->n_samples ? sample + 1 : input->n_samples;
    }
    VXD_TRY(vxd_device_alloc(run->queue, coords->n_bytes, &run->coords, err));
    VXD_TRY(vxd_device_alloc(run->queue, features->n_bytes, &run->features, err));
    VXD_TRY(vxd_queue_copy(run->queue, run->coords.ptr, run->bytes + coords->begin,
                           coords->n_bytes, err));
    VXD_TRY(vxd_queue_copy(run->queue, run->features.ptr, run->bytes + features->begin,
                           features->n_bytes, err));
    input->coords = run->coords.ptr;
    input->features = run->features.ptr;
out:
    return status;
}

/* Adds one tensor of 4-byte elements from the device. */
static enum vxd_status put(struct run *run, struct out *out, const char *output,
                           const char *part, const char *dtype, const size_t *shape,
                           int n_dims, const void *device, struct vxd_err *err)
{
    char *header = out->header + out->n_header;
    size_t n_free = sizeof out->header - out->n_header;
    size_t n_bytes = 4;
    size_t n;
    uint8_t *more;
    enum vxd_status status;

    n = (size_t)snprintf(header, n_free, "%s\"%s.%s\":{\"dtype\":\"%s\",\"shape\":[",
                         out->n_header > 1 ? "," : "", output, part, dtype);
    for (int i = 0; i < n_dims; i++) {
        n +=
            (size_t)snprintf(header + n, n_free - n, "%s%zu", i > 0 ? "," : "", shape[i]);
        n_bytes *= shape[i];
    }
    n += (size_t)snprintf(header + n, n_free - n, "],\"data_offsets\":[%zu,%zu]}",
                          out->n_data, out->n_data + n_bytes);
    out->n_header += n;
    more = realloc(out->data, out->n_data + n_bytes + 1);
    if (more == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory");
    }
    out->data = more;
    VXD_TRY(vxd_queue_copy(run->queue, out->data + out->n_data, device, n_bytes, err));
    VXD_TRY(vxd_queue_wait(run->queue, err));
    out->n_data += n_bytes;
out:
    return status;
}

static enum vxd_status put_output(struct run *run, const struct vxd_model_output *output,
                                  struct out *out, struct vxd_err *err)
{
    struct vxd_net_result result;
    size_t shape[4];
    enum vxd_status status;

    VXD_TRY(vxd_net_run_result(run->run, output->engine_output, &result, err));
    shape[0] = result.n_rows;
    if (output->kind == VXD_MODEL_DENSE) {
        for (int i = 0; i < 4; i++) {
            shape[i] = (size_t)result.dense_shape[i];
        }
        return put(run, out, output->name, "values", "F32", shape, 4, result.values, err);
    }
    if (result.coords != NULL) {
        shape[1] = 4;
        VXD_TRY(
            put(run, out, output->name, "coords", "I32", shape, 2, result.coords, err));
    }
    shape[1] = output->argmax ? 1 : (size_t)result.n_channels;
    VXD_TRY(put(run, out, output->name, "values", "F32", shape, 2, result.values, err));
    if (output->argmax) {
        VXD_TRY(
            put(run, out, output->name, "labels", "I32", shape, 1, result.labels, err));
    }
out:
    return status;
}

static enum vxd_status write_output(const char *path, const struct out *out,
                                    struct vxd_err *err)
{
    FILE *file = fopen(path, "wb");
    uint64_t n = out->n_header;
    bool ok = file != NULL && fwrite(&n, sizeof n, 1, file) == 1 &&
              fwrite(out->header, 1, out->n_header, file) == out->n_header &&
              (out->n_data == 0 || fwrite(out->data, out->n_data, 1, file) == 1);

    if (file != NULL) {
        ok = fclose(file) == 0 && ok;
    }
    return ok ? VXD_OK
              : vxd_fail(err, VXD_UNAVAILABLE, NULL, "cannot write %.100s", path);
}

static enum vxd_status run_network(struct run *run, char **args, int precision,
                                   struct out *out, struct vxd_err *err)
{
    struct vxd_net_input input = {0};
    struct vxd_net_options options = {.precision = (enum vxd_net_precision)precision};
    bool more = true;
    enum vxd_status status;

    VXD_TRY(vxd_queue_create(run->context, &run->queue, err));
    VXD_TRY(vxd_model_read(args[1], args[2], &run->model, err));
    VXD_TRY(read_input(run, args[3], &input, err));
    options.max_rows = input.n_rows > 0 ? input.n_rows : 1;
    options.max_samples = input.n_samples;
    VXD_TRY(vxd_net_create(run->queue, vxd_model_builder(run->model), &options, &run->net,
                           err));
    VXD_TRY(vxd_net_run_create(run->queue, run->net, &input, &run->run, err));
    while (more) {
        VXD_TRY(vxd_net_run_step(run->queue, run->run, &more, err));
        VXD_TRY(vxd_queue_wait(run->queue, err));
    }
    out->header[out->n_header++] = '{';
    for (size_t i = 0; i < vxd_model_n_outputs(run->model); i++) {
        VXD_TRY(put_output(run, vxd_model_output(run->model, i), out, err));
    }
    out->header[out->n_header++] = '}';
    VXD_TRY(write_output(args[4], out, err));
out:
    return status;
}

int main(int argc, char **argv)
{
    static const char *const precisions[] = {"fp32", "tf32", "fp16", "bf16"};
    static struct out out;
    const struct vxd_context_options options = {
        .backend =
            argc > 6 && strcmp(argv[6], "cpu") != 0 ? VXD_BACKEND_CUDA : VXD_BACKEND_CPU};
    struct run run = {0};
    struct vxd_err err = {0};
    int precision = 0;
    enum vxd_status status;

    if (argc < 5 || argc > 7) {
        (void)fprintf(stderr, "usage: net_run DIRECTORY NAME IN.safetensors "
                              "OUT.safetensors [PRECISION [BACKEND]]\n");
        return 2;
    }
    for (int i = 0; argc > 5 && i < 4; i++) {
        precision = strcmp(argv[5], precisions[i]) == 0 ? i : precision;
    }
    status = vxd_context_create(&options, &run.context, &err);
    if (status == VXD_OK) {
        status = run_network(&run, argv, precision, &out, &err);
    }
    if (status != VXD_OK) {
        (void)fprintf(stderr, "net_run: %s: %s\n", err.field, err.message);
    }
    if (run.queue != NULL) {
        vxd_net_run_destroy(run.queue, run.run);
        vxd_net_destroy(run.queue, run.net);
        vxd_device_free(run.queue, &run.coords);
        vxd_device_free(run.queue, &run.features);
    }
    vxd_queue_destroy(run.queue);
    vxd_context_destroy(run.context);
    vxd_model_destroy(run.model);
    vxd_safetensors_free(&run.in);
    free(run.bytes);
    free(out.data);
    return status == VXD_OK ? 0 : 1;
}
