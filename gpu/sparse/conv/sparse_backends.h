// SPDX-License-Identifier: Apache-2.0
/* The twins behind set.h, kernel_map.h and conv.h. The public entries check every argument;
 * the twins only compute. */
#ifndef VXD_GPU_SPARSE_BACKENDS_H
#define VXD_GPU_SPARSE_BACKENDS_H

#include "gpu/core/internal.h"
#include "gpu/sparse/conv.h"

#ifdef __cplusplus
extern "C" {
#endif

/* vxd_..._cpu or vxd_..._cuda, as the queue's backend is. */
#if defined(VXD_WITH_CUDA)
#define VXD_SPARSE_TWIN(queue, name)                                                     \
    (VXD_ON_CUDA((queue)->context) ? name##_cuda : name##_cpu)
#else
#define VXD_SPARSE_TWIN(queue, name) ((void)(queue), name##_cpu)
#endif

/* n_candidates and capacity are at most 2^31 - 1 here. */
size_t vxd_sparse_set_scratch_bytes_cpu(const struct vxd_queue *queue,
                                        size_t n_candidates, size_t capacity);
size_t vxd_sparse_set_scratch_bytes_cuda(const struct vxd_queue *queue,
                                         size_t n_candidates, size_t capacity);

/* Everything a twin needs. n_candidates is what the scratch was sized for. */
struct vxd_sparse_make_call {
    const int32_t *coords;
    size_t n;
    int n_samples;
    struct vxd_sparse_set set;
    int32_t *rows;
    void *scratch;
    size_t scratch_bytes;
};

struct vxd_sparse_derive_call {
    enum vxd_sparse_derive rule;
    struct vxd_sparse_geometry geometry;
    struct vxd_sparse_set in;
    struct vxd_sparse_set out;
    size_t n_candidates;
    void *scratch;
    size_t scratch_bytes;
};

struct vxd_sparse_union_call {
    struct vxd_sparse_set a;
    struct vxd_sparse_set b;
    struct vxd_sparse_set out;
    int32_t *rows_a;
    int32_t *rows_b;
    void *scratch;
    size_t scratch_bytes;
};

struct vxd_sparse_subset_call {
    struct vxd_sparse_set a;
    const uint8_t *keep;
    struct vxd_sparse_set out;
    int32_t *rows_a;
    void *scratch;
    size_t scratch_bytes;
};

struct vxd_sparse_coords_call {
    struct vxd_sparse_set set;
    int32_t times[3];
    int n_samples;
    int32_t *coords;
    uint32_t *sample_starts;
};

enum vxd_status vxd_sparse_set_make_cpu(struct vxd_queue *queue,
                                        const struct vxd_sparse_make_call *call,
                                        struct vxd_err *err);
enum vxd_status vxd_sparse_set_make_cuda(struct vxd_queue *queue,
                                         const struct vxd_sparse_make_call *call,
                                         struct vxd_err *err);
/* n calls, at most VXD_SPARSE_SETS_AT_ONCE, in this order; all use the same scratch. */
#define VXD_SPARSE_SETS_AT_ONCE 8
enum vxd_status vxd_sparse_sets_derive_cpu(struct vxd_queue *queue,
                                           const struct vxd_sparse_derive_call *calls,
                                           int n, struct vxd_err *err);
enum vxd_status vxd_sparse_sets_derive_cuda(struct vxd_queue *queue,
                                            const struct vxd_sparse_derive_call *calls,
                                            int n, struct vxd_err *err);
enum vxd_status vxd_sparse_set_union_cpu(struct vxd_queue *queue,
                                         const struct vxd_sparse_union_call *call,
                                         struct vxd_err *err);
enum vxd_status vxd_sparse_set_union_cuda(struct vxd_queue *queue,
                                          const struct vxd_sparse_union_call *call,
                                          struct vxd_err *err);
enum vxd_status vxd_sparse_set_subset_cpu(struct vxd_queue *queue,
                                          const struct vxd_sparse_subset_call *call,
                                          struct vxd_err *err);
enum vxd_status vxd_sparse_set_subset_cuda(struct vxd_queue *queue,
                                           const struct vxd_sparse_subset_call *call,
                                           struct vxd_err *err);
enum vxd_status vxd_sparse_set_coords_cpu(struct vxd_queue *queue,
                                          const struct vxd_sparse_coords_call *call,
                                          struct vxd_err *err);
enum vxd_status vxd_sparse_set_coords_cuda(struct vxd_queue *queue,
                                           const struct vxd_sparse_coords_call *call,
                                           struct vxd_err *err);

struct vxd_kernel_map_call {
    struct vxd_sparse_geometry geometry;
    struct vxd_sparse_set in;
    struct vxd_sparse_set out;
    struct vxd_kernel_map map;
    void *scratch;
    size_t scratch_bytes;
};

/* n_rows is a multiple of VXD_SPARSE_ROW_PAD here. */
size_t vxd_kernel_map_scratch_bytes_cpu(const struct vxd_queue *queue, int n_taps,
                                        size_t n_rows);
size_t vxd_kernel_map_scratch_bytes_cuda(const struct vxd_queue *queue, int n_taps,
                                         size_t n_rows);
/* n calls, at most VXD_KERNEL_MAPS_AT_ONCE. */
#define VXD_KERNEL_MAPS_AT_ONCE 16
enum vxd_status vxd_kernel_maps_build_cpu(struct vxd_queue *queue,
                                          const struct vxd_kernel_map_call *calls, int n,
                                          struct vxd_err *err);
enum vxd_status vxd_kernel_maps_build_cuda(struct vxd_queue *queue,
                                           const struct vxd_kernel_map_call *calls, int n,
                                           struct vxd_err *err);

/* Bytes of packed weights, 0 on overflow; then packs into out->data, which has that many and
 * whose counts are set. The source is read before the queue's next wait returns. */
size_t vxd_conv_weights_bytes_cpu(int n_taps, int n_in, int n_out,
                                  enum vxd_net_precision precision);
size_t vxd_conv_weights_bytes_cuda(int n_taps, int n_in, int n_out,
                                   enum vxd_net_precision precision);
enum vxd_status vxd_conv_weights_pack_cpu(struct vxd_queue *queue, const float *weights,
                                          const struct vxd_conv_weights *out,
                                          struct vxd_err *err);
enum vxd_status vxd_conv_weights_pack_cuda(struct vxd_queue *queue, const float *weights,
                                           const struct vxd_conv_weights *out,
                                           struct vxd_err *err);

/* args with what its pointers to structs mean; args.map and args.weights are not valid.
 * has_map false: map is empty and row i reads row i. */
struct vxd_conv_call {
    struct vxd_conv_args args;
    bool has_map;
    struct vxd_kernel_map map;
    struct vxd_conv_weights weights;
};
enum vxd_status vxd_conv_run_cpu(struct vxd_queue *queue,
                                 const struct vxd_conv_call *call, struct vxd_err *err);
enum vxd_status vxd_conv_run_cuda(struct vxd_queue *queue,
                                  const struct vxd_conv_call *call, struct vxd_err *err);

#ifdef __cplusplus
}
#endif
#endif
