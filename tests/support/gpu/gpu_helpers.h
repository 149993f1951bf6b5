// SPDX-License-Identifier: Apache-2.0
/* What the engine's tests share. Every test runs on each available backend, with the
 * same seeds. Failures of the helpers themselves end the test program. */
#ifndef VXD_TESTS_SUPPORT_GPU_GPU_HELPERS_H
#define VXD_TESTS_SUPPORT_GPU_GPU_HELPERS_H

#include "gpu/core/core.h"
#include "gpu/svdag/svdag.h"
#include "gpu/hash/hash.h"
#include "gpu/voxel/voxel.h"

/* The stores of scenes are 0 to GPU_N_STORES - 1, and GPU_OTHER_INDEX is an index of
 * maps other than open addressing. Builds without the papers' code have one store and
 * one index. */
#if defined(VXD_WITH_PAPER)
#define GPU_N_STORES VXD_SVDAG_N_STORES
#define GPU_OTHER_INDEX VXD_HASH_SLAB
#else
#define GPU_N_STORES 1
#define GPU_OTHER_INDEX VXD_HASH_OPEN
#endif

struct gpu_env {
    const char *name; /* "cpu x2", "cuda" */
    struct vxd_context *context;
    struct vxd_queue *queue;
};

/* Runs body on the CPU with 1 and 3 threads and on the first CUDA device; prints once
 * where there is none. */
void gpu_each_backend(void (*body)(struct gpu_env *env));

bool gpu_is_cuda(const struct gpu_env *env);

/* An environment on one backend, with budgets in bytes or 0. */
void gpu_env_create(struct gpu_env *env, enum vxd_backend backend, int n_threads,
                    size_t device_bytes, size_t host_bytes);
void gpu_env_destroy(struct gpu_env *env);

/* Waits; a fault ends the program. */
void gpu_wait(struct gpu_env *env);

/* Device memory with a copy of the host's bytes (host NULL: filled with 0xa5, so that
 * unwritten bytes show). */
struct vxd_buffer gpu_to_device(struct gpu_env *env, const void *host, size_t n_bytes);

/* A malloc'ed copy of a device buffer, after a wait. */
void *gpu_to_host(struct gpu_env *env, const struct vxd_buffer *buffer);

void *gpu_alloc(size_t n_bytes);

/* splitmix64. */
uint64_t gpu_random(uint64_t *state);
/* A float in [low, high). */
float gpu_random_float(uint64_t *state, float low, float high);

#define GPU_FNV_START 0xcbf29ce484222325ULL
/* FNV-1a over bytes. */
uint64_t gpu_digest(uint64_t digest, const void *bytes, size_t n_bytes);

/* Every output of one voxelization, on the host; m = starts[n_batch] rows are valid. */
struct gpu_voxels {
    uint32_t n_voxels;
    struct vxd_voxel_totals *totals;
    uint32_t *starts;
    int32_t *coords;
    uint32_t *counts;
    int32_t *inverse;
    uint32_t *first_point;
    float *mean;
    float *sum;
    float *min;
    float *max;
    float *first;
    float *points; /* NULL unless both caps are positive */
};

/* Runs vxd_voxelize with every output; positions and features of args are host memory. */
void gpu_voxelize(struct gpu_env *env, const struct vxd_voxelize_args *args,
                  struct gpu_voxels *out);
void gpu_voxels_free(struct gpu_voxels *voxels);

/* Digest of the integer outputs. */
uint64_t gpu_voxels_digest(const struct gpu_voxels *voxels,
                           const struct vxd_voxelize_args *args);

/* A file of the data directory ($VOXELD_DATA or ../shared/data), malloc'ed, or NULL. */
void *gpu_read_data(const char *name, size_t *n_bytes);

/* A file of tests/data, malloc'ed, or NULL. */
void *gpu_read_test_data(const char *name, size_t *n_bytes);

/* Points of spconv's benchmark scan (n x 3 float32), which is in tests/data; else NULL. */
float *gpu_read_spconv_scan(size_t *n_points);

#endif
