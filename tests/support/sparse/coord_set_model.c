// SPDX-License-Identifier: Apache-2.0
#include "tests/support/sparse/coord_set_model.h"

#include <stdio.h>
#include <stdlib.h>

#define MUST(expression)                                                                 \
    do {                                                                                 \
        if ((expression) != VXD_OK) {                                                    \
            (void)fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, err.message);       \
            exit(EXIT_FAILURE);                                                          \
        }                                                                                \
    } while (0)

/* Computes the key of a row bit by bit; a list of keys is the model of a coordinate
 * set. */
uint64_t gpu_model_key(const int32_t c[4])
{
    uint64_t code = 0;

    for (int bit = 17; bit >= 0; bit--) {
        for (int axis = 0; axis < 3; axis++) {
            code = code << 1 | ((uint64_t)(c[1 + axis] + 131072) >> bit & 1);
        }
    }
    return (uint64_t)c[0] << 54 | code;
}

void gpu_model_coords(uint64_t key, int32_t c[4])
{
    c[0] = (int32_t)(key >> 54);
    for (int axis = 0; axis < 3; axis++) {
        int32_t code = 0;

        for (int bit = 17; bit >= 0; bit--) {
            code = code * 2 + (int32_t)(key >> (3 * bit + 2 - axis) & 1);
        }
        c[1 + axis] = code - 131072;
    }
}

int gpu_model_compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Sorts, drops duplicates. */
void gpu_model_deduplicate(struct gpu_model *model)
{
    size_t n = 0;

    qsort(model->keys, model->n, sizeof *model->keys, gpu_model_compare);
    for (size_t i = 0; i < model->n; i++) {
        if (i == 0 || model->keys[i] != model->keys[i - 1]) {
            model->keys[n++] = model->keys[i];
        }
    }
    model->n = n;
}

struct gpu_model gpu_model_of(const int32_t *coords, size_t n, int n_samples,
                              const int32_t shape[3])
{
    struct gpu_model model = {gpu_alloc((n + 1) * sizeof(uint64_t)), 0};

    for (size_t i = 0; i < n; i++) {
        const int32_t *c = coords + 4 * i;
        bool is_in = c[0] >= 0 && c[0] < n_samples;

        for (int axis = 1; axis < 4; axis++) {
            int32_t cells = shape[axis - 1];

            is_in = is_in && c[axis] >= -131072 && c[axis] < 131072 &&
                    (cells == 0 || (c[axis] >= 0 && c[axis] < cells));
        }
        if (is_in) {
            model.keys[model.n++] = gpu_model_key(c);
        }
    }
    gpu_model_deduplicate(&model);
    return model;
}

/* Row of a key, or -1. */
int32_t gpu_model_row(const struct gpu_model *model, uint64_t key)
{
    const uint64_t *at = model->n == 0 ? NULL
                                       : bsearch(&key, model->keys, model->n, sizeof key,
                                                 gpu_model_compare);

    return at != NULL ? (int32_t)(at - model->keys) : -1;
}

size_t gpu_model_other_rows(const struct gpu_coord_set *coord_set,
                            const struct gpu_model *model)
{
    size_t n_wrong = coord_set->n_rows != model->n;

    for (size_t i = 0; i < coord_set->n_rows && i < model->n; i++) {
        n_wrong += gpu_model_key(coord_set->coords + 4 * i) != model->keys[i];
    }
    return n_wrong;
}

/* Compares blocks with the description in coords.h. The hash table has the backend's
 * own layout; tests of kernel maps cover it. */
size_t gpu_model_other_blocks(struct gpu_env *env, const struct gpu_coord_set *coord_set,
                              const struct gpu_model *model)
{
    uint64_t *keys = gpu_alloc((model->n + 1) * sizeof *keys);
    uint64_t *masks = gpu_alloc((model->n + 1) * sizeof *masks);
    uint32_t *rows = gpu_alloc((model->n + 1) * sizeof *rows);
    uint32_t n_blocks = 0;
    size_t n = 0;
    size_t n_wrong = 0;
    struct vxd_err err = {0};

    MUST(vxd_queue_copy(env->queue, keys, coord_set->coord_set.block_keys, model->n * 8,
                        &err));
    MUST(vxd_queue_copy(env->queue, masks, coord_set->coord_set.block_mask, model->n * 8,
                        &err));
    MUST(vxd_queue_copy(env->queue, rows, coord_set->coord_set.block_row, model->n * 4,
                        &err));
    MUST(vxd_queue_copy(env->queue, &n_blocks, coord_set->coord_set.n_blocks, 4, &err));
    gpu_wait(env);
    for (size_t i = 0; i < model->n; n++) {
        uint64_t mask = 0;
        size_t first = i;

        for (; i < model->n && model->keys[i] >> 6 == model->keys[first] >> 6; i++) {
            mask |= (uint64_t)1 << (model->keys[i] & 63);
        }
        n_wrong += n >= n_blocks || keys[n] != model->keys[first] >> 6 ||
                   masks[n] != mask || rows[n] != first;
    }
    free(keys);
    free(masks);
    free(rows);
    return n_wrong + (n_blocks != n);
}

/* A cloud similar to a scan: cells along walls, in sample order or not, a few of them
 * out of range. */
int32_t *gpu_model_random(size_t n, int n_samples, bool has_strays, uint64_t seed)
{
    uint64_t state = seed;
    int32_t *coords = gpu_alloc((n + 1) * 4 * sizeof *coords);

    for (size_t i = 0; i < n; i++) {
        uint64_t bits = gpu_random(&state);
        int32_t *c = coords + 4 * i;

        c[0] = (int32_t)(bits % (uint64_t)n_samples);
        c[1] = (int32_t)(bits >> 8 & 1023) - 300;
        c[2] = c[1] / 2 + (int32_t)(bits >> 20 & 15);
        c[3] = (int32_t)(bits >> 30 & 63) - 32;
        if (has_strays && (bits >> 40 & 31) == 0) {
            c[bits >> 50 & 3] = (int32_t)(bits >> 45 & 1) == 0 ? -131073 : 131072;
        }
    }
    return coords;
}

/* floor(c / stride), by steps of one. */
struct gpu_model gpu_model_floors(const struct gpu_model *model, const int32_t stride[3])
{
    struct gpu_model out = {gpu_alloc((model->n + 1) * sizeof(uint64_t)), model->n};

    for (size_t i = 0; i < model->n; i++) {
        int32_t c[4];

        gpu_model_coords(model->keys[i], c);
        for (int axis = 0; axis < 3; axis++) {
            while (c[1 + axis] % stride[axis] != 0) {
                c[1 + axis]--;
            }
            c[1 + axis] /= stride[axis];
        }
        out.keys[i] = gpu_model_key(c);
    }
    gpu_model_deduplicate(&out);
    return out;
}
