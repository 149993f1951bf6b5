// SPDX-License-Identifier: Apache-2.0
/* The backends behind coords.h. The public entries check every argument; the backends
 * only compute. */
#ifndef VXD_GPU_SPARSE_COORDS_COORD_SET_BACKENDS_H
#define VXD_GPU_SPARSE_COORDS_COORD_SET_BACKENDS_H

#include "gpu/core/core_cpu.h"
#include "gpu/sparse/coords/coords.h"

#ifdef __cplusplus
extern "C" {
#endif

/* n_candidates and capacity are at most 2^31 - 1 here. */
size_t vxd_coord_set_scratch_bytes_cpu(const struct vxd_queue *queue, size_t n_candidates,
                                       size_t capacity);
size_t vxd_coord_set_scratch_bytes_cuda(const struct vxd_queue *queue,
                                        size_t n_candidates, size_t capacity);

/* Everything a backend needs. The scratch was sized for n_candidates. */
struct vxd_sparse_make_call {
    const int32_t *coords;
    size_t n;
    int n_samples;
    struct vxd_coord_set coord_set;
    int32_t *rows;
    void *scratch;
    size_t scratch_bytes;
};

struct vxd_sparse_derive_call {
    enum vxd_sparse_derive rule;
    struct vxd_sparse_geometry geometry;
    struct vxd_coord_set in;
    struct vxd_coord_set out;
    size_t n_candidates;
    void *scratch;
    size_t scratch_bytes;
};

struct vxd_sparse_union_call {
    struct vxd_coord_set a;
    struct vxd_coord_set b;
    struct vxd_coord_set out;
    int32_t *rows_a;
    int32_t *rows_b;
    void *scratch;
    size_t scratch_bytes;
};

struct vxd_sparse_subset_call {
    struct vxd_coord_set a;
    const uint8_t *keep;
    struct vxd_coord_set out;
    int32_t *rows_a;
    void *scratch;
    size_t scratch_bytes;
};

struct vxd_sparse_coords_call {
    struct vxd_coord_set coord_set;
    int32_t times[3];
    int n_samples;
    int32_t *coords;
    uint32_t *sample_starts;
};

enum vxd_status vxd_coord_set_make_cpu(struct vxd_queue *queue,
                                       const struct vxd_sparse_make_call *call,
                                       struct vxd_err *err);
enum vxd_status vxd_coord_set_make_cuda(struct vxd_queue *queue,
                                        const struct vxd_sparse_make_call *call,
                                        struct vxd_err *err);
/* Makes n coordinate sets, at most VXD_COORD_SETS_AT_ONCE, in this order; all calls
 * use the same scratch. */
#define VXD_COORD_SETS_AT_ONCE 8
enum vxd_status vxd_coord_sets_derive_cpu(struct vxd_queue *queue,
                                          const struct vxd_sparse_derive_call *calls,
                                          int n, struct vxd_err *err);
enum vxd_status vxd_coord_sets_derive_cuda(struct vxd_queue *queue,
                                           const struct vxd_sparse_derive_call *calls,
                                           int n, struct vxd_err *err);
enum vxd_status vxd_coord_set_union_cpu(struct vxd_queue *queue,
                                        const struct vxd_sparse_union_call *call,
                                        struct vxd_err *err);
enum vxd_status vxd_coord_set_union_cuda(struct vxd_queue *queue,
                                         const struct vxd_sparse_union_call *call,
                                         struct vxd_err *err);
enum vxd_status vxd_coord_set_subset_cpu(struct vxd_queue *queue,
                                         const struct vxd_sparse_subset_call *call,
                                         struct vxd_err *err);
enum vxd_status vxd_coord_set_subset_cuda(struct vxd_queue *queue,
                                          const struct vxd_sparse_subset_call *call,
                                          struct vxd_err *err);
enum vxd_status vxd_coord_set_coords_cpu(struct vxd_queue *queue,
                                         const struct vxd_sparse_coords_call *call,
                                         struct vxd_err *err);
enum vxd_status vxd_coord_set_coords_cuda(struct vxd_queue *queue,
                                          const struct vxd_sparse_coords_call *call,
                                          struct vxd_err *err);

#ifdef __cplusplus
}
#endif
#endif
