// SPDX-License-Identifier: Apache-2.0
/* Coordinate sets: the voxels for which a sparse tensor has rows.
 *
 * The rows of a coordinate set are unique coordinates (sample, x, y, z), sample major and then in
 * Morton order, so the 64 cells of a 4x4x4 block are consecutive. Where several convolutions have
 * reduced the resolution of a tensor, coordinates count in cells of that tensor's stride (those of
 * MinkowskiEngine, ME for short, are ours times the stride).
 *
 * Counts stay on the device: the host does not know how many rows an operation makes, only the
 * largest possible number (the capacity). The wait may return RESOURCE_EXHAUSTED for a set that
 * would exceed its capacity, or OUT_OF_RANGE where an unbounded one would exceed the 18 bits. All
 * functions are asynchronous: the sets passed to them are read or written when they run, the
 * structs themselves only before the call returns. Results are equal on every backend, bit for
 * bit. */
#ifndef VXD_GPU_SPARSE_COORDS_COORDS_H
#define VXD_GPU_SPARSE_COORDS_COORDS_H

#include "gpu/core/core.h"

#ifdef __cplusplus
extern "C" {
#endif

#define VXD_SPARSE_MAX_SAMPLES 1023
#define VXD_SPARSE_COORD_BITS 18 /* coordinates are in [-2^17, 2^17) */
#define VXD_SPARSE_MAX_KERNEL 7  /* an axis */
#define VXD_SPARSE_MAX_STRIDE 64
#define VXD_SPARSE_MAX_PADDING 64
#define VXD_SPARSE_MAX_DILATION 16
#define VXD_SPARSE_MAX_TAPS                                                              \
    (VXD_SPARSE_MAX_KERNEL * VXD_SPARSE_MAX_KERNEL * VXD_SPARSE_MAX_KERNEL)

/* A row's key: sample << 54 | Morton code of the coordinate biased by 2^17, per bit
 * level x*4 + y*2 + z. Rows ascend by it; key >> 6 names the block, key & 63 the cell
 * in it. */

/* Device memory, borrowed from the caller that laid it out (vxd_coord_set_layout).
 * From n_rows (from n_blocks) on the contents of arrays are undefined. */
struct vxd_coord_set {
    size_t capacity;      /* largest number of rows, at most 2^31 - 1 */
    size_t n_slots;       /* of the block table, a power of two */
    uint32_t *n_rows;     /* one value */
    uint32_t *n_blocks;   /* one value */
    uint64_t *keys;       /* capacity, ascending */
    uint64_t *block_keys; /* capacity: block names, ascending */
    uint64_t *block_mask; /* capacity: which of the 64 cells have a row, a bit each */
    uint32_t *block_row;  /* capacity: row of the block's first cell */
    uint64_t *slots;      /* n_slots: hash table of blocks, the backend's own layout */
    /* Cells per axis where the tensor is bounded (spconv): 0 <= c < shape. 0 = unbounded. */
    int32_t shape[3];
};

/* How cells of an output correspond to cells of an input, for each axis: input = output * stride -
 * padding + tap * dilation (research, 1.1; all libraries correlate, none flips). `transposed`
 * swaps the two: output = input * stride - padding + tap * dilation. Taps are numbered
 * (rx * kernel[1] + ry) * kernel[2] + rz.
 * Submanifold: stride 1, padding (kernel / 2) * dilation, output set = input set.
 * Minkowski: padding (kernel / 2) * dilation for odd kernels, 0 for even ones. */
struct vxd_sparse_geometry {
    int kernel[3];   /* 1 to VXD_SPARSE_MAX_KERNEL */
    int stride[3];   /* 1 to VXD_SPARSE_MAX_STRIDE */
    int padding[3];  /* 0 to VXD_SPARSE_MAX_PADDING */
    int dilation[3]; /* 1 to VXD_SPARSE_MAX_DILATION */
    bool transposed;
};

/* errors  INVALID_ARGUMENT  a value outside its range; field is "kernel", "stride", ... */
enum vxd_status vxd_sparse_geometry_check(const struct vxd_sparse_geometry *geometry,
                                          struct vxd_err *err);

/* Device bytes of a set (0: capacity above 2^31 - 1), and the set with its arrays laid out in
 * one 256-aligned block of that size. Its n_rows is undefined until an operation makes the set.
 * errors of the latter  INVALID_ARGUMENT  capacity above 2^31 - 1; a shape not 0 to 2^17 */
size_t vxd_coord_set_bytes(size_t capacity);
enum vxd_status vxd_coord_set_layout(void *block, size_t capacity, const int32_t shape[3],
                                     struct vxd_coord_set *out, struct vxd_err *err);

/* Scratch of the functions below, in device bytes, for a result of at most `capacity`
 * rows made from at most n_candidates coordinates: n for make,
 * vxd_sparse_derive_candidates(in->capacity) for derive, both capacities for union,
 * a's for subset. 0: a count above 2^31 - 1. The functions refuse less scratch than
 * that (INVALID_ARGUMENT). */
size_t vxd_coord_set_scratch_bytes(const struct vxd_queue *queue, size_t n_candidates,
                                   size_t capacity);

/* Makes the set of n coordinates, which may be in any order and contain duplicates.
 *
 * in      coords  n x 4 int32 (sample, x, y, z), device memory
 * out     set     laid out; rows, blocks and table are made
 *         rows    n int32: the row of each coordinate; -1 = outside the shape, the 18 bits or
 *                 n_samples; may be NULL
 * errors  INVALID_ARGUMENT  n_samples not 1 to VXD_SPARSE_MAX_SAMPLES */
enum vxd_status vxd_coord_set_make(struct vxd_queue *queue, const int32_t *coords,
                                   size_t n, int n_samples,
                                   struct vxd_coord_set *coord_set, int32_t *rows,
                                   void *scratch, size_t scratch_bytes,
                                   struct vxd_err *err);

enum vxd_sparse_derive {
    /* Every cell of the output's shape that some tap connects with an input row:
     * spconv's strided convolution, and (geometry->transposed) its transposed one. */
    VXD_DERIVE_SUPPORT = 0,
    /* floor(c / stride): MinkowskiEngine's strided convolution and pooling. */
    VXD_DERIVE_FLOOR = 1
};

/* The largest number of coordinates that the rule produces from n_rows, and of
 * different ones: a bounded shape limits it to its cells. Both saturate at SIZE_MAX. */
size_t vxd_sparse_derive_candidates(enum vxd_sparse_derive rule,
                                    const struct vxd_sparse_geometry *geometry,
                                    size_t n_rows);
size_t vxd_sparse_derive_bound(enum vxd_sparse_derive rule,
                               const struct vxd_sparse_geometry *geometry, size_t n_rows,
                               const int32_t shape[3], int n_samples);

/* out->shape must be set: vxd_sparse_out_shape.
 * errors  INVALID_ARGUMENT  the geometry; FLOOR of a transposed one */
enum vxd_status vxd_coord_set_derive(struct vxd_queue *queue, enum vxd_sparse_derive rule,
                                     const struct vxd_sparse_geometry *geometry,
                                     const struct vxd_coord_set *in,
                                     struct vxd_coord_set *out, void *scratch,
                                     size_t scratch_bytes, struct vxd_err *err);

/* Several derived sets, one after another; a later one may be derived from an earlier
 * one. On a GPU, adjacent floors of one set by powers of two (a U-Net's levels) are
 * one launch. Scratch: the maximum over the requests. */
struct vxd_sparse_derive_request {
    enum vxd_sparse_derive rule;
    struct vxd_sparse_geometry geometry;
    const struct vxd_coord_set *in;
    struct vxd_coord_set *out;
};
enum vxd_status vxd_coord_sets_derive(struct vxd_queue *queue,
                                      const struct vxd_sparse_derive_request *requests,
                                      size_t n, void *scratch, size_t scratch_bytes,
                                      struct vxd_err *err);

/* Shape of the output of a bounded tensor (spconv): floor((S + 2p - d(k-1) - 1) / s) + 1, or
 * transposed (S-1)s - 2p + d(k-1) + 1 + output_padding (ignored otherwise; NULL = 0). An
 * unbounded axis (0) stays unbounded.
 * errors  INVALID_ARGUMENT  the geometry; output_padding not 0 to 64; the shape would be less
 *                           than 1 or above 2^17 on an axis */
enum vxd_status vxd_sparse_out_shape(const struct vxd_sparse_geometry *geometry,
                                     const int32_t in[3], const int32_t output_padding[3],
                                     int32_t out[3], struct vxd_err *err);

/* Rows of a or b.
 * out     rows_a, rows_b  for each row of the union the row of a (of b), or -1; out's
 *                         capacity each, or NULL */
enum vxd_status vxd_coord_set_union(struct vxd_queue *queue,
                                    const struct vxd_coord_set *a,
                                    const struct vxd_coord_set *b,
                                    struct vxd_coord_set *out, int32_t *rows_a,
                                    int32_t *rows_b, void *scratch, size_t scratch_bytes,
                                    struct vxd_err *err);

/* Rows of a whose keep (a->capacity bytes, device memory) is not 0.
 * out     rows_a  for each row of the subset the row of a; out's capacity, or NULL */
enum vxd_status vxd_coord_set_subset(struct vxd_queue *queue,
                                     const struct vxd_coord_set *a, const uint8_t *keep,
                                     struct vxd_coord_set *out, int32_t *rows_a,
                                     void *scratch, size_t scratch_bytes,
                                     struct vxd_err *err);

/* Coordinates of all rows, capacity x 4 int32 (sample, x, y, z), each axis times `times` (the
 * tensor stride of MinkowskiEngine; 1 for ours), and the first row of each sample, n_samples + 1.
 * Either may be NULL.
 * errors  INVALID_ARGUMENT  n_samples not 1 to VXD_SPARSE_MAX_SAMPLES; times not 1 to 2^13 */
enum vxd_status vxd_coord_set_coords(struct vxd_queue *queue,
                                     const struct vxd_coord_set *coord_set,
                                     const int32_t times[3], int n_samples,
                                     int32_t *coords, uint32_t *sample_starts,
                                     struct vxd_err *err);

#ifdef __cplusplus
}
#endif
#endif
