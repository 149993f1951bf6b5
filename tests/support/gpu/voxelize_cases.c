// SPDX-License-Identifier: Apache-2.0
#include "tests/support/gpu/voxelize_cases.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct config {
    const char *name;
    enum vxd_voxel_rule rule;
    enum vxd_voxel_order order;
    int n_batch;
    int n_channels;
    bool has_range;
    float lo[3];
    float hi[3];
    float size[3];
    uint32_t max_points;
    uint32_t max_voxels;
};

#define BOX                                                                              \
    true, {-10, -10, -2}, {10, 10, 6},                                                   \
    {                                                                                    \
        0.1f, 0.1f, 0.2f                                                                 \
    }
#define OPEN                                                                             \
    false, {0, 0, 0}, {0, 0, 0},                                                         \
    {                                                                                    \
        0.1f, 0.1f, 0.1f                                                                 \
    }

static const struct config configs[GPU_N_CONFIGS] = {
    {"mink", VXD_RULE_MINKOWSKI, VXD_ORDER_MORTON, 1, 3, OPEN, 0, 0},
    {"spconv", VXD_RULE_SPCONV, VXD_ORDER_MORTON, 1, 3, BOX, 0, 0},
    {"spconv-first-b3", VXD_RULE_SPCONV, VXD_ORDER_FIRST_POINT, 3, 4, BOX, 0, 0},
    {"mink-box-first-p5", VXD_RULE_MINKOWSKI, VXD_ORDER_FIRST_POINT, 1, 1, BOX, 5, 0},
    {"spconv-b4-hard", VXD_RULE_SPCONV, VXD_ORDER_MORTON, 4, 3, BOX, 3, 40},
    {"spconv-first-b4-hard", VXD_RULE_SPCONV, VXD_ORDER_FIRST_POINT, 4, 5, BOX, 3, 40},
    {"mink-b70", VXD_RULE_MINKOWSKI, VXD_ORDER_MORTON, 70, 2, OPEN, 0, 0},
    {"mink-first-b70-v7", VXD_RULE_MINKOWSKI, VXD_ORDER_FIRST_POINT, 70, 1, OPEN, 0, 7},
    {"mink-positive-b2",
     VXD_RULE_MINKOWSKI,
     VXD_ORDER_MORTON,
     2,
     3,
     true,
     {0, 0.5f, 1},
     {9, 8, 7},
     {0.25f, 0.05f, 1},
     0,
     0},
    {"mink-p1", VXD_RULE_MINKOWSKI, VXD_ORDER_MORTON, 1, 3, OPEN, 1, 0},
    {"spconv-bare", VXD_RULE_SPCONV, VXD_ORDER_MORTON, 1, 0, BOX, 0, 0},
    {"spconv-c64-b5", VXD_RULE_SPCONV, VXD_ORDER_MORTON, 5, 64, BOX, 0, 0},
    /* Coordinates of 20 bits: with 70 samples, keys have more than 64 bits. */
    {"mink-fine-b70",
     VXD_RULE_MINKOWSKI,
     VXD_ORDER_MORTON,
     70,
     3,
     false,
     {0, 0, 0},
     {0, 0, 0},
     {3e-5f, 3e-5f, 3e-5f},
     0,
     0},
    {"mink-v9", VXD_RULE_MINKOWSKI, VXD_ORDER_MORTON, 1, 3, OPEN, 0, 9},
};

static float from_bits(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static float nasty_number(uint64_t *seed)
{
    switch (gpu_random(seed) % 16) {
    case 0:
        return from_bits(0x7fc12345u);
    case 1:
        return INFINITY;
    case 2:
        return -INFINITY;
    case 3:
        return 1e30f;
    case 4:
        return -1e30f;
    case 5:
        return -0.0f;
    case 6:
        return 10.0f;
    case 7:
        return -10.0f;
    case 8:
        return 1e-42f;
    case 9:
        return -1e-42f;
    case 10:
        return 104857.6f;
    case 11:
        return -104857.6f;
    default:
        /* Near the borders of voxels: multiples of 0.1 in float32. */
        return (float)((int)(gpu_random(seed) % 200) - 100) * 0.1f;
    }
}

static void fill_cloud(enum gpu_cloud_kind kind, size_t n, int n_channels,
                       float *positions, float *features)
{
    uint64_t seed = 1000 + (uint64_t)kind;

    for (size_t i = 0; i < n; i++) {
        bool is_nasty = kind == GPU_CLOUD_NASTY && gpu_random(&seed) % 4 != 0;
        bool is_same = kind == GPU_CLOUD_SAME ||
                       (kind == GPU_CLOUD_MIXED && gpu_random(&seed) % 2 == 0);
        float reach = kind == GPU_CLOUD_DENSE ? 0.5f : 12.0f;

        for (int axis = 0; axis < 3; axis++) {
            float *p = &positions[3 * i + (size_t)axis];

            *p = gpu_random_float(&seed, -reach, reach);
            if (is_same) {
                *p = 1.23f;
            } else if (is_nasty && gpu_random(&seed) % 3 == 0) {
                *p = nasty_number(&seed);
            }
        }
        for (size_t c = 0; c < (size_t)n_channels; c++) {
            float *f = &features[i * (size_t)n_channels + c];

            *f = gpu_random_float(&seed, -100, 100);
            if (kind == GPU_CLOUD_NASTY && gpu_random(&seed) % 8 == 0) {
                *f = nasty_number(&seed);
            }
        }
    }
}

/* Uneven samples, every third of them empty. */
static void fill_starts(size_t n, int n_batch, uint32_t *starts)
{
    uint64_t seed = 77;
    size_t at = 0;

    starts[0] = 0;
    for (int i = 0; i < n_batch; i++) {
        if (i % 3 != 1) {
            size_t share = 2 * n / (size_t)n_batch + 1;

            at += gpu_random(&seed) % share;
        }
        at = at < n ? at : n;
        starts[i + 1] = (uint32_t)at;
    }
    starts[n_batch] = (uint32_t)n;
}

void gpu_case_make(struct gpu_case *out, enum gpu_cloud_kind kind, size_t n, int index)
{
    static const char *const kinds[] = {"spread", "dense", "same", "mixed", "nasty"};
    const struct config *config = &configs[index];
    struct vxd_voxelize_args *args = &out->args;

    *out = (struct gpu_case){.name = ""};
    (void)snprintf(out->name, sizeof out->name, "voxelize/%s/%zu/%s", kinds[kind], n,
                   config->name);
    out->positions = gpu_alloc(n * 3 * sizeof(float));
    out->features = gpu_alloc(n * (size_t)config->n_channels * sizeof(float));
    out->batch_starts = gpu_alloc(((size_t)config->n_batch + 1) * sizeof(uint32_t));
    fill_cloud(kind, n, config->n_channels, out->positions, out->features);
    fill_starts(n, config->n_batch, out->batch_starts);
    args->positions = out->positions;
    args->features = out->features;
    args->n_points = n;
    args->n_channels = config->n_channels;
    args->batch_starts = out->batch_starts;
    args->n_batch = config->n_batch;
    args->rule = config->rule;
    args->order = config->order;
    args->has_range = config->has_range;
    memcpy(args->size_m, config->size, sizeof args->size_m);
    memcpy(args->range_lo_m, config->lo, sizeof args->range_lo_m);
    memcpy(args->range_hi_m, config->hi, sizeof args->range_hi_m);
    args->max_points = config->max_points;
    args->max_voxels = config->max_voxels;
}

void gpu_case_free(struct gpu_case *item)
{
    free(item->positions);
    free(item->features);
    free(item->batch_starts);
}
