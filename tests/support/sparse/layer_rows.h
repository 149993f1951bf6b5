// SPDX-License-Identifier: Apache-2.0
/* What the tests of network layers share: rows on the device with gaps between them
 * that no kernel may write, and samples of chosen sizes. */
#ifndef VXD_TESTS_SUPPORT_SPARSE_LAYER_ROWS_H
#define VXD_TESTS_SUPPORT_SPARSE_LAYER_ROWS_H

#include "gpu/sparse/layers/layers.h"
#include "tests/support/sparse/sparse_helpers.h"

/* Rows of a precision. Row 0 starts `offset` elements into the buffer, and the buffer
 * has one row more than n_rows, so that a write outside the rows is detected. */
struct gpu_rows {
    enum vxd_net_precision precision;
    size_t n_rows;
    size_t offset;
    struct vxd_rows rows;
    struct vxd_buffer buffer;
};

/* Layouts of rows: 0 = packed, 1 = gaps that keep 16 bytes' alignment, 2 = gaps that
 * do not. */
#define GPU_N_LAYOUTS 3

/* values: n_rows x n_channels, rounded to the precision; NULL = undefined values. */
struct gpu_rows gpu_rows_make(struct gpu_env *env, enum vxd_net_precision precision,
                              const float *values, size_t n_rows, int n_channels,
                              int layout);
/* Returns malloc'ed n_rows x n_channels; ends the program where bytes outside the rows
 * were written. */
float *gpu_rows_fetch(struct gpu_env *env, const struct gpu_rows *rows);
void gpu_rows_free(struct gpu_env *env, struct gpu_rows *rows);

/* The same rows from `first` on. */
struct vxd_rows gpu_rows_from(const struct gpu_rows *rows, size_t first);

/* Samples of rows, on the host and on the device. */
struct gpu_samples {
    int n_samples;
    uint32_t starts[16];
    struct vxd_net_extent extent;
    struct vxd_buffer d_starts;
};

/* max_rows is larger than the number of rows. */
void gpu_samples_make(struct gpu_env *env, struct gpu_samples *out, const uint32_t *sizes,
                      int n_samples);
void gpu_samples_free(struct gpu_env *env, struct gpu_samples *samples);
static inline size_t gpu_samples_n_rows(const struct gpu_samples *samples)
{
    return samples->starts[samples->n_samples];
}

/* One sample of n_rows. */
struct gpu_samples gpu_samples_of_one(struct gpu_env *env, size_t n_rows);

/* What differs between the cases of a layer. */
struct gpu_rows_case {
    enum vxd_net_precision precision;
    size_t n_rows;
    int n_channels;
    int layout;
    uint64_t state;
};
#define GPU_ROWS_CASES 48
#define GPU_ROWS_MAX_CHANNELS 300
struct gpu_rows_case gpu_rows_case(int number);

/* n random floats that the precision represents exactly; malloc'ed. */
float *gpu_rounded_floats(uint64_t *state, enum vxd_net_precision precision, size_t n);

/* Ends the program unless status is OK. */
void gpu_must(enum vxd_status status, const struct vxd_err *err, const char *what);

/* Calls the function of the environment's backend, which must succeed; then waits. */
#define GPU_BACKEND_CALL(env, name, call)                                                \
    do {                                                                                 \
        struct vxd_err gpu_err = {0};                                                    \
        gpu_must(                                                                        \
            VXD_BACKEND_FN((env)->queue, vxd_net_##name)((env)->queue, call, &gpu_err),  \
            &gpu_err, #name);                                                            \
        gpu_wait(env);                                                                   \
    } while (0)

/* Scratch of a layer. */
#define GPU_SCRATCH_BYTES(env, name, ...)                                                \
    VXD_BACKEND_FN((env)->queue, vxd_net_##name##_scratch_bytes)(__VA_ARGS__)

#endif
