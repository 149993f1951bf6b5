// SPDX-License-Identifier: Apache-2.0
#include "tests/support/gpu/gpu_helpers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/paper/paper.h"

static void require(enum vxd_status status, const struct vxd_err *err, const char *what)
{
    if (status != VXD_OK) {
        (void)fprintf(stderr, "%s: status %d, %s: %s\n", what, (int)status, err->field,
                      err->message);
        exit(EXIT_FAILURE);
    }
}

void *gpu_alloc(size_t n_bytes)
{
    void *ptr = malloc(n_bytes > 0 ? n_bytes : 1);

    if (ptr == NULL) {
        (void)fprintf(stderr, "no memory for a test\n");
        exit(EXIT_FAILURE);
    }
    return ptr;
}

void gpu_env_create(struct gpu_env *env, enum vxd_backend backend, int n_threads,
                    size_t device_bytes, size_t host_bytes)
{
    struct vxd_context_options options = {.backend = backend,
                                          .n_threads = n_threads,
                                          .device_bytes = device_bytes,
                                          .host_bytes = host_bytes,
                                          .extras = vxd_paper_stores()};
    struct vxd_err err = {0};

    env->name = backend == VXD_BACKEND_CUDA ? "cuda" : n_threads == 1 ? "cpu x1" : "cpu";
    require(vxd_context_create(&options, &env->context, &err), &err, "context");
    require(vxd_queue_create(env->context, &env->queue, &err), &err, "queue");
}

bool gpu_is_cuda(const struct gpu_env *env)
{
    return vxd_context_backend(env->context) == VXD_BACKEND_CUDA;
}

void gpu_env_destroy(struct gpu_env *env)
{
    vxd_queue_destroy(env->queue);
    vxd_context_destroy(env->context);
}

void gpu_each_backend(void (*body)(struct gpu_env *env))
{
    static bool has_said;
    struct gpu_env env;
    char why[160] = "";

    for (int n_threads = 1; n_threads <= 3; n_threads += 2) {
        gpu_env_create(&env, VXD_BACKEND_CPU, n_threads, 0, 0);
        body(&env);
        gpu_env_destroy(&env);
    }
    if (vxd_cuda_device_count(why, sizeof why) > 0) {
        gpu_env_create(&env, VXD_BACKEND_CUDA, 2, 0, 0);
        body(&env);
        gpu_env_destroy(&env);
    } else if (!has_said) {
        has_said = true;
        (void)printf("skip the CUDA backend: %s\n", why);
    }
}

void gpu_wait(struct gpu_env *env)
{
    struct vxd_err err = {0};

    require(vxd_queue_wait(env->queue, &err), &err, "wait");
}

struct vxd_buffer gpu_to_device(struct gpu_env *env, const void *host, size_t n_bytes)
{
    struct vxd_buffer buffer;
    struct vxd_err err = {0};

    require(vxd_device_alloc(env->queue, n_bytes, &buffer, &err), &err, "device memory");
    if (host != NULL) {
        require(vxd_queue_copy(env->queue, buffer.ptr, host, n_bytes, &err), &err,
                "copy");
        gpu_wait(env);
    } else {
        require(vxd_queue_fill(env->queue, buffer.ptr, 0xa5, n_bytes, &err), &err,
                "fill");
    }
    return buffer;
}

void *gpu_to_host(struct gpu_env *env, const struct vxd_buffer *buffer)
{
    struct vxd_err err = {0};
    void *host = gpu_alloc(buffer->n_bytes);

    require(vxd_queue_copy(env->queue, host, buffer->ptr, buffer->n_bytes, &err), &err,
            "copy");
    gpu_wait(env);
    return host;
}

uint64_t gpu_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15ULL;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
    return z ^ z >> 31;
}

float gpu_random_float(uint64_t *state, float low, float high)
{
    float unit = (float)(gpu_random(state) >> 40) / 16777216.0f;

    return low + unit * (high - low);
}

uint64_t gpu_digest(uint64_t digest, const void *bytes, size_t n_bytes)
{
    const unsigned char *p = bytes;

    for (size_t i = 0; i < n_bytes; i++) {
        digest = (digest ^ p[i]) * 0x100000001b3ULL;
    }
    return digest;
}

enum {
    N_OUTPUTS = 12
};

void gpu_voxelize(struct gpu_env *env, const struct vxd_voxelize_args *args,
                  struct gpu_voxels *out)
{
    size_t n = args->n_points;
    size_t m = vxd_voxelize_capacity(args);
    size_t row = (size_t)args->n_channels * sizeof(float);
    size_t n_batch = (size_t)args->n_batch;
    bool is_hard = args->max_points > 0 && args->max_voxels > 0;
    size_t n_bytes[N_OUTPUTS] = {n_batch * sizeof *out->totals,
                                 (n_batch + 1) * sizeof *out->starts,
                                 m * 4 * sizeof *out->coords,
                                 m * sizeof *out->counts,
                                 n * sizeof *out->inverse,
                                 m * sizeof *out->first_point,
                                 m * row,
                                 m * row,
                                 m * row,
                                 m * row,
                                 m * row,
                                 is_hard ? m * args->max_points * row : 0};
    struct vxd_buffer buffers[N_OUTPUTS];
    struct vxd_buffer positions =
        gpu_to_device(env, args->positions, n * 3 * sizeof(float));
    struct vxd_buffer features = gpu_to_device(env, args->features, n * row);
    struct vxd_voxelize_args device_args = *args;
    struct vxd_voxels voxels = {.capacity = m};
    struct vxd_err err = {0};
    void *host[N_OUTPUTS];

    for (int i = 0; i < N_OUTPUTS; i++) {
        buffers[i] = gpu_to_device(env, NULL, n_bytes[i]);
    }
    device_args.positions = positions.ptr;
    device_args.features = features.ptr;
    voxels.totals = buffers[0].ptr;
    voxels.starts = buffers[1].ptr;
    voxels.coords = buffers[2].ptr;
    voxels.counts = buffers[3].ptr;
    voxels.inverse = buffers[4].ptr;
    voxels.first_point = buffers[5].ptr;
    voxels.mean = buffers[6].ptr;
    voxels.sum = buffers[7].ptr;
    voxels.min = buffers[8].ptr;
    voxels.max = buffers[9].ptr;
    voxels.first = buffers[10].ptr;
    voxels.points = buffers[11].ptr;
    require(vxd_voxelize(env->queue, &device_args, &voxels, &err), &err, "voxelize");
    gpu_wait(env);
    for (int i = 0; i < N_OUTPUTS; i++) {
        host[i] = gpu_to_host(env, &buffers[i]);
        vxd_device_free(env->queue, &buffers[i]);
    }
    vxd_device_free(env->queue, &positions);
    vxd_device_free(env->queue, &features);
    gpu_wait(env);
    *out = (struct gpu_voxels){((uint32_t *)host[1])[n_batch],
                               host[0],
                               host[1],
                               host[2],
                               host[3],
                               host[4],
                               host[5],
                               host[6],
                               host[7],
                               host[8],
                               host[9],
                               host[10],
                               host[11]};
}

void gpu_voxels_free(struct gpu_voxels *voxels)
{
    free(voxels->totals);
    free(voxels->starts);
    free(voxels->coords);
    free(voxels->counts);
    free(voxels->inverse);
    free(voxels->first_point);
    free(voxels->mean);
    free(voxels->sum);
    free(voxels->min);
    free(voxels->max);
    free(voxels->first);
    free(voxels->points);
}

uint64_t gpu_voxels_digest(const struct gpu_voxels *voxels,
                           const struct vxd_voxelize_args *args)
{
    uint64_t digest = GPU_FNV_START;
    size_t m = voxels->n_voxels;
    size_t n_batch = (size_t)args->n_batch;

    digest = gpu_digest(digest, voxels->totals, n_batch * sizeof *voxels->totals);
    digest = gpu_digest(digest, voxels->starts, (n_batch + 1) * sizeof *voxels->starts);
    digest = gpu_digest(digest, voxels->coords, m * 4 * sizeof *voxels->coords);
    digest = gpu_digest(digest, voxels->counts, m * sizeof *voxels->counts);
    digest = gpu_digest(digest, voxels->inverse, args->n_points * sizeof(int32_t));
    return gpu_digest(digest, voxels->first_point, m * sizeof *voxels->first_point);
}

static void *read_file(const char *path, size_t *n_bytes)
{
    FILE *file = fopen(path, "rb");
    void *bytes = NULL;
    long size;

    if (file == NULL) {
        return NULL;
    }
    if (fseek(file, 0, SEEK_END) == 0 && (size = ftell(file)) >= 0 &&
        fseek(file, 0, SEEK_SET) == 0) {
        bytes = gpu_alloc((size_t)size);
        *n_bytes = fread(bytes, 1, (size_t)size, file);
        if (*n_bytes != (size_t)size) {
            free(bytes);
            bytes = NULL;
        }
    }
    (void)fclose(file);
    return bytes;
}

void *gpu_read_data(const char *name, size_t *n_bytes)
{
    const char *directory = getenv("VOXELD_DATA");
    char path[1024];

    if (directory == NULL) {
        directory = VOXELD_SOURCE_DIR "/../shared/data";
    }
    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    return read_file(path, n_bytes);
}

void *gpu_read_test_data(const char *name, size_t *n_bytes)
{
    char path[1024];

    (void)snprintf(path, sizeof path, "%s/%s", VOXELD_SOURCE_DIR "/tests/data", name);
    return read_file(path, n_bytes);
}

/* Reads the file in tests/data. The header of a .npy file gives its own length. */
float *gpu_read_spconv_scan(size_t *n_points)
{
    size_t n_bytes = 0;
    unsigned char *bytes =
        read_file(VOXELD_SOURCE_DIR "/tests/data/spconv_benchmark_pc.npy", &n_bytes);
    size_t want = (size_t)198130 * 3 * sizeof(float);
    float *points = NULL;

    if (bytes != NULL && n_bytes > 10 && memcmp(bytes, "\x93NUMPY", 6) == 0) {
        size_t at = 10 + (size_t)bytes[8] + 256 * (size_t)bytes[9];

        if (at <= n_bytes && n_bytes - at >= want) {
            points = gpu_alloc(want);
            memcpy(points, bytes + at, want);
            *n_points = want / (3 * sizeof(float));
        }
    }
    free(bytes);
    return points;
}
