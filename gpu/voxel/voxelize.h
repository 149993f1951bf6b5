// SPDX-License-Identifier: Apache-2.0
/* Voxelization: points to unique voxels with reduced features and an inverse map. */
#ifndef VXD_GPU_VOXEL_VOXELIZE_H
#define VXD_GPU_VOXEL_VOXELIZE_H

#include "gpu/core/core.h"

#ifdef __cplusplus
extern "C" {
#endif

#define VXD_MAX_BATCH 65536
#define VXD_COORD_BITS 21 /* signed voxel coordinates lie in [-2^20, 2^20) */

/* How a position becomes a voxel coordinate. Each operation rounds once, to float32 but for DOUBLE,
 * and the formulas are exactly those of the libraries named.
 *
 * SPCONV (spconv, OpenPCDet, NVIDIA's CenterPoint)  needs a range.
 *     c = floor((p - lo) / size), kept if 0 <= c < grid, grid = round((hi - lo) / size);
 *     coordinates count from the range's low corner.
 * MINKOWSKI (MinkowskiEngine, TorchSparse quantize)  signed, no range needed.
 *     c = floor(p / size); with a range, points outside lo <= p < hi are dropped first.
 * DOUBLE (Open3D's voxel_down_sample)  as MINKOWSKI, in float64, of positions that were not
 *     rounded: points near a border fall where float64 has them. */
enum vxd_voxel_rule {
    VXD_RULE_SPCONV = 0,
    VXD_RULE_MINKOWSKI = 1,
    VXD_RULE_DOUBLE = 2
};

/* Order of the voxels within a sample; samples are always in ascending order. */
enum vxd_voxel_order {
    VXD_ORDER_MORTON = 0,     /* per bit level from the top: x*4 + y*2 + z of c + 2^20 */
    VXD_ORDER_FIRST_POINT = 1 /* by the index of each voxel's first point */
};

struct vxd_voxelize_args {
    const float *positions; /* n x 3, metres; device memory, borrowed */
    const float *features;  /* n x n_channels; device memory; NULL when n_channels is 0 */
    size_t n_points;        /* at most 2^31 - 1 */
    int n_channels;         /* 0 to VXD_MAX_CHANNELS */
    /* n_batch + 1 point indices: 0 first, n_points last, ascending or equal; host
     * memory, borrowed until the wait */
    const uint32_t *batch_starts;
    int n_batch; /* samples, 1 to VXD_MAX_BATCH */
    enum vxd_voxel_rule rule;
    enum vxd_voxel_order order;
    float size_m[3]; /* voxel edge per axis, metres, > 0 and finite */
    bool has_range;
    float range_lo_m[3]; /* finite, lo < hi */
    float range_hi_m[3];
    uint32_t max_points; /* points kept a voxel, 0 = all; those with the lowest indices */
    uint32_t max_voxels; /* voxels kept a sample, 0 = all; those with the first points */
    /* DOUBLE only: what the rule reads in place of positions and size_m, which are as above. */
    const double *exact;    /* n x 3, metres; device memory, borrowed */
    double exact_size_m[3]; /* > 0 and finite */
};

/* What happened to the points of one sample. The sum of the first five is the sample's
 * number of points. */
struct vxd_voxel_totals {
    uint32_t n_used;            /* kept in a voxel */
    uint32_t n_non_finite;      /* dropped: NaN or infinite position */
    uint32_t n_out_of_range;    /* dropped: outside the range, the grid or 21 bits */
    uint32_t n_over_max_voxels; /* dropped: their voxel came after max_voxels others */
    /* their voxel had max_points already: not in counts and features, but the inverse
     * map names the voxel */
    uint32_t n_over_max_points;
    uint32_t n_voxels; /* voxels of the sample */
};

/* Output arrays, device memory owned by the caller, each for `capacity` voxels, which
 * is at least vxd_voxelize_capacity(args). NULL: the output is not computed; totals
 * and starts are required. m below is the number of voxels, starts[n_batch]; rows from
 * m on are not written. */
struct vxd_voxels {
    size_t capacity;
    struct vxd_voxel_totals *totals; /* n_batch */
    uint32_t *starts;                /* n_batch + 1: first voxel of each sample */
    int32_t *coords;                 /* m x 4: sample, x, y, z */
    uint32_t *counts;                /* m: points reduced (at most max_points) */
    int32_t *inverse;                /* n_points: voxel of each point, -1 = dropped */
    uint32_t *first_point;           /* m: index of the voxel's first point */
    float *mean;                     /* m x n_channels: sum / count */
    float *sum;                      /* m x n_channels */
    float *min;                      /* m x n_channels */
    float *max;                      /* m x n_channels */
    float *first;                    /* m x n_channels: features of the first point */
    float *points; /* m x max_points x n_channels: kept points in index order, then
                    * zeros ("hard voxels"); needs max_points and max_voxels > 0 */
};

/* The largest number of voxels for these arguments: min(n_points, n_batch *
 * max_voxels). */
size_t vxd_voxelize_capacity(const struct vxd_voxelize_args *args);

/* Device bytes that vxd_voxelize takes from the pool while it runs, for admission; 0
 * for arguments that it would refuse. */
size_t vxd_voxelize_scratch_bytes(const struct vxd_queue *queue,
                                  const struct vxd_voxelize_args *args);

/* Cells per axis of the SPCONV rule: round((hi - lo) / size) in float32.
 * errors  INVALID_ARGUMENT  not 1 to 2^20 on some axis; err.field "size_m" or "range" */
enum vxd_status vxd_voxelize_grid(const struct vxd_voxelize_args *args, int32_t grid[3],
                                  struct vxd_err *err);

/* Groups points by voxel and reduces their features.
 *
 * Sums are taken in point order in float32: blocks of 1024 points of a voxel are summed from the
 * first to the last, then the block sums in order (for voxels of up to 1024 points that is the
 * plain sum of the libraries). There are no float atomics, so results are equal on every backend
 * and from run to run, bit for bit. min and max compare in point order by a < b (a > b), starting
 * with the first point, so a NaN feature remains only as the first value. A sum or mean that is
 * NaN is 0x7fc00000, since its bits would otherwise depend on the device.
 *
 * errors  INVALID_ARGUMENT     arguments outside the ranges stated above; err.field names it
 *                              ("size_m", "range", "max_points", "batch_starts", ...)
 *         RESOURCE_EXHAUSTED   scratch above the context's budget; nothing was written
 * order   sample, then args->order; inverse in point order
 * sync    asynchronous; outputs valid after vxd_queue_wait
 * source  ASH, section 6.1, algorithm 1; rules: research/sparse_convolution.md, 1.2 */
enum vxd_status vxd_voxelize(struct vxd_queue *queue,
                             const struct vxd_voxelize_args *args,
                             const struct vxd_voxels *out, struct vxd_err *err);

#ifdef __cplusplus
}
#endif
#endif
