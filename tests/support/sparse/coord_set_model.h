// SPDX-License-Identifier: Apache-2.0
/* The model of a coordinate set: a sorted list of keys. */
#ifndef VXD_TESTS_SUPPORT_SPARSE_COORD_SET_MODEL_H
#define VXD_TESTS_SUPPORT_SPARSE_COORD_SET_MODEL_H

#include "tests/support/sparse/sparse_helpers.h"

struct gpu_model {
    uint64_t *keys;
    size_t n;
};

/* The key of a row, and the row of a key. */
uint64_t gpu_model_key(const int32_t c[4]);
void gpu_model_coords(uint64_t key, int32_t c[4]);
/* Compares two keys, for qsort. */
int gpu_model_compare(const void *a, const void *b);
/* Sorts, drops duplicates. */
void gpu_model_deduplicate(struct gpu_model *model);
/* Model of rows in any order; those outside the shape (0: unbounded) are left out. The
 * caller frees keys, also those of gpu_model_floors. */
struct gpu_model gpu_model_of(const int32_t *coords, size_t n, int n_samples,
                              const int32_t shape[3]);
/* Row of a key, or -1. */
int32_t gpu_model_row(const struct gpu_model *model, uint64_t key);
/* How many rows, or blocks, differ from the model. */
size_t gpu_model_other_rows(const struct gpu_coord_set *coord_set,
                            const struct gpu_model *model);
size_t gpu_model_other_blocks(struct gpu_env *env, const struct gpu_coord_set *coord_set,
                              const struct gpu_model *model);
/* A cloud similar to a scan, with some rows out of range if has_strays; the caller
 * frees it. */
int32_t *gpu_model_random(size_t n, int n_samples, bool has_strays, uint64_t seed);
/* Every row divided by the stride, rounded down. */
struct gpu_model gpu_model_floors(const struct gpu_model *model, const int32_t stride[3]);

#endif
