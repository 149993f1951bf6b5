// SPDX-License-Identifier: Apache-2.0
/* The steps of odometry that the backends compute. odometry.c has checked everything and sized every
 * array; all pointers are device memory. */
#ifndef VXD_GPU_ODOMETRY_ODOMETRY_INTERNAL_H
#define VXD_GPU_ODOMETRY_ODOMETRY_INTERNAL_H

#include "gpu/core/core_cpu.h"
#include "gpu/odometry/odometry.h"
#include "gpu/odometry/odometry_math.h"

#ifdef __cplusplus
extern "C" {
#endif

#define VXD_ODOMETRY_END 0xffffffffu
#define VXD_ODOMETRY_PIECE ((size_t)8192)

/* ---- The scan: used points, downsampled twice ---- */

/* Finds the first point of each voxel: a slot's tag is claimed by a compare-and-swap, and the least
 * index stays. All bits of both arrays are set before. */
struct vxd_odometry_table {
    uint64_t *tags;
    uint32_t *first;
    size_t n_slots; /* a power of two above the number of points */
};

struct vxd_odometry_scan_call {
    const float *points; /* n x 3 */
    size_t n;
    float min2;
    float max2;
    float inverse_fine; /* edges of voxels of the first and second downsampling */
    float inverse_coarse;
    float *map_points;        /* out: n x 3, in the scan's order; work->n_map of them */
    float *registered_points; /* out: likewise, n x 3; work->n_registered */
    /* Scratch. */
    struct vxd_odometry_table tables[2];
    /* 2 n + 1: slots of the points in both tables, VXD_ODOMETRY_END where there is none; then, on
     * CUDA, flags of those that are first, and their sums. */
    uint32_t *slots;
    uint32_t *pieces;  /* CPU: 2 for each piece of VXD_ODOMETRY_PIECE, and 2 */
    void *sum_scratch; /* CUDA: of a sum of 2 n */
    size_t sum_scratch_bytes;
    struct vxd_odometry_work *work;
};

enum vxd_status vxd_odometry_scan_cpu(struct vxd_queue *queue,
                                      const struct vxd_odometry_scan_call *call,
                                      struct vxd_err *err);
enum vxd_status vxd_odometry_scan_cuda(struct vxd_queue *queue,
                                       const struct vxd_odometry_scan_call *call,
                                       struct vxd_err *err);

/* ---- Registration ---- */

/* What is kept of a point from one step to the next. */
struct vxd_odometry_kept {
    uint32_t match; /* entry * 32 + slot of the point whose plane this is */
    enum vxd_odometry_shape shape;
    float normal[3];
};

/* CPU: the neighbours of the voxel that a point was in; they are looked up when they are needed. */
struct vxd_odometry_cell {
    int32_t cell[3];
    int32_t entries[27]; /* VXD_ODOMETRY_UNKNOWN until then */
    uint32_t last;       /* the last match; an id of struct vxd_odometry_match */
};
#define VXD_ODOMETRY_UNKNOWN (-2)

struct vxd_odometry_align_call {
    struct vxd_odometry_grid grid;
    struct vxd_odometry_rule rule;
    const float *points; /* those to register */
    size_t capacity;     /* at least work->n_registered, which the host does not know */
    struct vxd_odometry_kept *kept;
    struct vxd_odometry_cell *cells; /* CPU */
    float *strips; /* a strip's VXD_ODOMETRY_N_SUMS, for each of capacity */
    struct vxd_odometry_work *work;
    int n;         /* steps at most; rule.is_last: 0, the sums at the pose as it is */
    bool is_begin; /* nothing is kept yet */
};

/* Up to n steps. Stops early where a step is short, or the system singular. */
enum vxd_status vxd_odometry_align_cpu(struct vxd_queue *queue,
                                       const struct vxd_odometry_align_call *call,
                                       struct vxd_err *err);
enum vxd_status vxd_odometry_align_cuda(struct vxd_queue *queue,
                                        const struct vxd_odometry_align_call *call,
                                        struct vxd_err *err);

/* ---- The map ---- */

/* Voxels of the points to add, and where they are in them. */
struct vxd_odometry_place_call {
    struct vxd_odometry_grid grid; /* size and base alone */
    const float *points;
    size_t n;
    float T[12];
    int32_t *keys; /* out: n x 3 */
    float *locals; /* out: n x 3 */
};
/* Adds points to their voxels, in the scan's order. */
struct vxd_odometry_add_call {
    const int32_t *entries; /* n: of the points' voxels */
    const float *locals;
    size_t n;
    uint32_t *counts; /* of the map */
    float *points;
    uint32_t max_points;
    float min_d2;
    /* Scratch: a list for each voxel. */
    uint32_t *next; /* n */
    uint32_t *head; /* capacity of the map; VXD_ODOMETRY_END before */
};

/* Lists the voxels that are far from the sensor. */
struct vxd_odometry_far_call {
    const uint32_t *counts; /* of the map: 0 where there is no voxel */
    const int32_t *keys;
    size_t capacity;
    double sensor[3]; /* voxels */
    double max_voxels2;
    int32_t *far_keys; /* out: n x 3, in any order */
    uint32_t *n_far;   /* out: one; 0 before */
};

enum vxd_status vxd_odometry_place_cpu(struct vxd_queue *queue,
                                       const struct vxd_odometry_place_call *call,
                                       struct vxd_err *err);
enum vxd_status vxd_odometry_place_cuda(struct vxd_queue *queue,
                                        const struct vxd_odometry_place_call *call,
                                        struct vxd_err *err);
enum vxd_status vxd_odometry_add_cpu(struct vxd_queue *queue,
                                     const struct vxd_odometry_add_call *call,
                                     struct vxd_err *err);
enum vxd_status vxd_odometry_add_cuda(struct vxd_queue *queue,
                                      const struct vxd_odometry_add_call *call,
                                      struct vxd_err *err);
enum vxd_status vxd_odometry_far_cpu(struct vxd_queue *queue,
                                     const struct vxd_odometry_far_call *call,
                                     struct vxd_err *err);
enum vxd_status vxd_odometry_far_cuda(struct vxd_queue *queue,
                                      const struct vxd_odometry_far_call *call,
                                      struct vxd_err *err);

/* ---- odometry_motion.c: what is known from one scan to the next; host code ---- */

struct vxd_odometry_motion {
    struct vxd_volume_pose
        last; /* of the last scan: found, predicted, or the initial one */
    struct vxd_volume_pose found; /* of the last scan that was found */
    struct vxd_volume_pose step;  /* between two scans */
    double squares;               /* of deviations that count, their sum and number */
    double n_squares;
    int64_t stamp_ns;       /* of the last scan; 0: none had one */
    int64_t found_stamp_ns; /* of the last one that was found */
    int64_t step_ns;        /* in which `step` was made; 0: not known */
    size_t n_lost_in_a_row;
    bool has_step;
};

void vxd_pose_invert(const struct vxd_volume_pose *pose, struct vxd_volume_pose *out);

void vxd_odometry_motion_init(const struct vxd_odometry_options *options,
                              const struct vxd_volume_pose *initial,
                              struct vxd_odometry_motion *out);
void vxd_odometry_motion_predict(const struct vxd_odometry_motion *motion,
                                 int64_t stamp_ns, struct vxd_volume_pose *out);
double vxd_odometry_motion_threshold(const struct vxd_odometry_options *options,
                                     const struct vxd_odometry_motion *motion);
/* A scan was found at `pose`, another than the first. */
void vxd_odometry_motion_accept(const struct vxd_odometry_options *options,
                                const struct vxd_volume_pose *predicted,
                                const struct vxd_volume_pose *pose, int64_t stamp_ns,
                                struct vxd_odometry_motion *motion);
void vxd_odometry_motion_lose(const struct vxd_volume_pose *predicted, int64_t stamp_ns,
                              struct vxd_odometry_motion *motion);

/* ---- odometry_verdict.c ---- */

/* Fills in a result from the sums at the last pose. base_m: of the base voxel's low corner. n_lost:
 * scans that were lost just before. */
void vxd_odometry_judge(const struct vxd_odometry_options *options,
                        const struct vxd_odometry_work *work, const double base_m[3],
                        size_t n_lost, struct vxd_odometry_result *out);

#ifdef __cplusplus
}
#endif
#endif
