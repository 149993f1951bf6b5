// SPDX-License-Identifier: Apache-2.0
/* What the tests of sparse convolutions share: coordinate sets, maps and convolutions
 * with their results on the host, and dense grids in double as the oracle, which does
 * not use coordinate sets. */
#ifndef VXD_TESTS_SUPPORT_SPARSE_SPARSE_HELPERS_H
#define VXD_TESTS_SUPPORT_SPARSE_SPARSE_HELPERS_H

#include "gpu/sparse/conv/conv.h"
#include "tests/support/gpu/gpu_helpers.h"

/* A coordinate set and a copy of its contents on the host. */
struct gpu_coord_set {
    struct vxd_coord_set coord_set;
    struct vxd_buffer block;
    uint32_t n_rows;
    int32_t *coords; /* n_rows x 4 */
};

/* Lays out a set without making it. */
void gpu_coord_set_alloc(struct gpu_env *env, struct gpu_coord_set *out, size_t capacity,
                         const int32_t shape[3]);
void gpu_coord_set_free(struct gpu_env *env, struct gpu_coord_set *coord_set);

/* Copies rows to the host. */
void gpu_coord_set_fetch(struct gpu_env *env, struct gpu_coord_set *coord_set);

/* Lays out and makes a set and, when that succeeds, fetches it; returns the status of
 * the call or the wait. coords are host memory; rows (n, host) may be NULL. */
enum vxd_status gpu_coord_set_make(struct gpu_env *env, const int32_t *coords, size_t n,
                                   int n_samples, const int32_t shape[3], size_t capacity,
                                   int32_t *rows, struct gpu_coord_set *out);
enum vxd_status gpu_coord_set_derive(struct gpu_env *env, enum vxd_sparse_derive rule,
                                     const struct vxd_sparse_geometry *geometry,
                                     const struct gpu_coord_set *in,
                                     const int32_t shape[3], size_t capacity,
                                     struct gpu_coord_set *out);

struct gpu_map {
    struct vxd_kernel_map map;
    struct vxd_buffer block;
    int32_t *table; /* host: n_taps x map.capacity */
    uint64_t n_pairs;
};

void gpu_map_build(struct gpu_env *env, const struct vxd_sparse_geometry *geometry,
                   const struct gpu_coord_set *in, const struct gpu_coord_set *out,
                   struct gpu_map *map);
void gpu_map_free(struct gpu_env *env, struct gpu_map *map);

/* A box of cells of every sample, channels fastest. */
struct gpu_grid {
    int32_t lo[3];
    int32_t n[3];
    int n_samples;
    int n_channels;
    double *values;
};

void gpu_grid_make(struct gpu_grid *out, const int32_t lo[3], const int32_t n[3],
                   int n_samples, int n_channels);
void gpu_grid_free(struct gpu_grid *grid);
/* c is (sample, x, y, z); NULL outside the grid. */
double *gpu_grid_at(const struct gpu_grid *grid, const int32_t c[4]);

/* The dense convolution, or transposed convolution, of research 1.1 in double; weights
 * are n_taps x in channels x out channels, NULL = all 1. */
void gpu_grid_conv(const struct gpu_grid *in, const struct vxd_sparse_geometry *geometry,
                   const float *weights, struct gpu_grid *out);

/* A random case: geometry, whether bounded, and unique coordinates in no particular
 * order. */
struct gpu_sparse_case {
    struct vxd_sparse_geometry geometry;
    enum vxd_sparse_derive rule;
    int32_t shape[3]; /* of the input; 0 = unbounded */
    int32_t out_shape[3];
    int n_samples;
    size_t n;
    int32_t *coords; /* n x 4 */
    /* Boxes that contain every input, and every output that a rule could make. */
    int32_t in_lo[3];
    int32_t in_n[3];
    int32_t out_lo[3];
    int32_t out_n[3];
};

/* Case `number` of an endless list: kernels, strides, paddings and dilations of all
 * kinds, submanifold (every fifth), floor sets (unbounded), transposed. */
void gpu_sparse_case_make(struct gpu_sparse_case *out, int number);
void gpu_sparse_case_free(struct gpu_sparse_case *item);
bool gpu_sparse_case_is_subm(const struct gpu_sparse_case *item);

/* The input's set and the output's (the same rows where submanifold). */
void gpu_sparse_case_coord_sets(struct gpu_env *env, const struct gpu_sparse_case *item,
                                struct gpu_coord_set *in, struct gpu_coord_set *out);

/* A convolution of host arrays without gaps, run on rows with gaps, which it checks to
 * be unchanged. */
struct gpu_conv {
    const struct gpu_map *map; /* NULL: n_out_rows of one tap */
    uint32_t n_in_rows;
    uint32_t n_out_rows;
    int n_taps;
    int n_in;
    int n_out;
    enum vxd_net_precision precision;
    const float *in;
    const float *weights;
    const float *bias; /* or NULL */
    const float *add;  /* or NULL */
    enum vxd_net_act act;
    float alpha;
};

/* malloc'ed n_out_rows x n_out. */
float *gpu_conv_run(struct gpu_env *env, const struct gpu_conv *conv);

/* The value as the precision stores it. */
float gpu_rounded(enum vxd_net_precision precision, float value);

/* n floats in [-1, 1), or whole numbers in -3 .. 3. */
float *gpu_random_floats(uint64_t *state, size_t n, bool are_whole);

#endif
