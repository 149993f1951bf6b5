// SPDX-License-Identifier: Apache-2.0
#include "tests/support/volume/volume_make.h"

#include <stdio.h>
#include <stdlib.h>

#include "gpu/core/core_math.h"

static void must(enum vxd_status status, const struct vxd_err *err)
{
    if (status != VXD_OK) {
        (void)fprintf(stderr, "volume_make: %s\n", err->message);
        exit(1);
    }
}

struct volume_blocks volume_box(const int32_t low[3], const int32_t high[3])
{
    size_t n = (size_t)(high[0] - low[0]) * (size_t)(high[1] - low[1]) *
               (size_t)(high[2] - low[2]);
    struct volume_blocks blocks = {.keys = gpu_alloc((n + 1) * 3 * sizeof(int32_t))};

    for (int32_t x = low[0]; x < high[0]; x++) {
        for (int32_t y = low[1]; y < high[1]; y++) {
            for (int32_t z = low[2]; z < high[2]; z++) {
                blocks.keys[3 * blocks.n] = x;
                blocks.keys[3 * blocks.n + 1] = y;
                blocks.keys[3 * blocks.n++ + 2] = z;
            }
        }
    }
    return blocks;
}

/* The arrays of all blocks in host memory. */
struct arrays {
    uint64_t *stamps;
    float *distances;
    uint16_t *half_distances;
    float *weights;
    uint8_t *byte_weights;
    uint16_t *colours;
};

static void fill_block(const struct arrays *a, const struct vxd_volume_spec *spec,
                       const int32_t *key, size_t block, volume_fn fn, const void *user)
{
    int edge = spec->block_edge;
    size_t at = block * (size_t)(edge * edge * edge);

    for (int z = 0; z < edge; z++) {
        for (int y = 0; y < edge; y++) {
            for (int x = 0; x < edge; x++, at++) {
                struct volume_voxel voxel =
                    fn(user, key[0] * edge + x, key[1] * edge + y, key[2] * edge + z);

                a->distances[at] = voxel.distance;
                a->half_distances[at] = vxd_half_of_float(voxel.distance);
                a->weights[at] = voxel.weight;
                a->byte_weights[at] = (uint8_t)voxel.weight;
                for (int i = 0; i < 3; i++) {
                    a->colours[4 * at + (size_t)i] = (uint16_t)(voxel.colour[i] << 8);
                }
                a->colours[4 * at + 3] = voxel.weight > 0 ? 1 : 0;
            }
        }
    }
}

static struct arrays arrays_of(const struct vxd_volume_spec *spec,
                               const struct volume_blocks *blocks, volume_fn fn,
                               const void *user)
{
    size_t n =
        blocks->n * (size_t)(spec->block_edge * spec->block_edge * spec->block_edge);
    struct arrays a = {.stamps = gpu_alloc((blocks->n + 1) * sizeof(uint64_t)),
                       .distances = gpu_alloc((n + 1) * sizeof(float)),
                       .half_distances = gpu_alloc((n + 1) * sizeof(uint16_t)),
                       .weights = gpu_alloc((n + 1) * sizeof(float)),
                       .byte_weights = gpu_alloc(n + 1),
                       .colours = gpu_alloc((n + 1) * 8)};

    for (size_t i = 0; i < blocks->n; i++) {
        a.stamps[i] = i + 1;
        fill_block(&a, spec, blocks->keys + 3 * i, i, fn, user);
    }
    return a;
}

struct vxd_volume *volume_make(struct gpu_env *env, const struct vxd_volume_spec *spec,
                               const struct volume_blocks *blocks, volume_fn fn,
                               const void *user)
{
    uint32_t n_voxels =
        (uint32_t)(spec->block_edge * spec->block_edge * spec->block_edge);
    bool is_compact = spec->form == VXD_VOLUME_COMPACT;
    struct vxd_hashmap_spec map_spec = {
        .key_dtype = VXD_INT32,
        .n_components = 3,
        .n_values = spec->has_colour ? 4 : 3,
        .values = {{VXD_UINT64, 1},
                   {is_compact ? VXD_FLOAT16 : VXD_FLOAT32, n_voxels},
                   {is_compact ? VXD_UINT8 : VXD_FLOAT32, n_voxels},
                   {VXD_UINT16, 4 * n_voxels}},
        .capacity = blocks->n};
    struct arrays a = arrays_of(spec, blocks, fn, user);
    struct vxd_buffer buffers[5];
    const void *values[4];
    struct vxd_hashmap *map;
    struct vxd_volume *volume;
    struct vxd_err err;

    buffers[0] = gpu_to_device(env, blocks->keys, blocks->n * 12);
    buffers[1] = gpu_to_device(env, a.stamps, blocks->n * 8);
    buffers[2] =
        gpu_to_device(env, is_compact ? (void *)a.half_distances : (void *)a.distances,
                      blocks->n * n_voxels * (is_compact ? 2 : 4));
    buffers[3] =
        gpu_to_device(env, is_compact ? (void *)a.byte_weights : (void *)a.weights,
                      blocks->n * n_voxels * (is_compact ? 1 : 4));
    buffers[4] = gpu_to_device(env, a.colours, blocks->n * n_voxels * 8);
    for (int i = 0; i < 4; i++) {
        values[i] = buffers[i + 1].ptr;
    }
    must(vxd_hashmap_create(env->queue, &map_spec, &map, &err), &err);
    if (blocks->n > 0) {
        struct vxd_hashmap_insert_args insert = {
            .keys = buffers[0].ptr, .n = blocks->n, .values = values};

        must(vxd_hashmap_insert(env->queue, map, &insert, &err), &err);
    }
    must(vxd_volume_adopt(env->queue, spec, blocks->n, 0, map, &volume, &err), &err);
    gpu_wait(env);
    for (int i = 0; i < 5; i++) {
        vxd_device_free(env->queue, &buffers[i]);
    }
    free(a.stamps);
    free(a.distances);
    free(a.half_distances);
    free(a.weights);
    free(a.byte_weights);
    free(a.colours);
    return volume;
}
