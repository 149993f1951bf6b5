// SPDX-License-Identifier: Apache-2.0
/* The steps of tracking that the backends compute. track.c has checked everything and sized every
 * array; all pointers are device memory. */
#ifndef VXD_GPU_TRACK_TRACK_INTERNAL_H
#define VXD_GPU_TRACK_TRACK_INTERNAL_H

#include "gpu/core/core_cpu.h"
#include "gpu/track/track.h"
#include "gpu/track/track_math.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A level each, and sums at the pose that was found, of two kinds. */
#define VXD_TRACK_N_ITERATE_CALLS (VXD_TRACK_MAX_LEVELS + 2)

/* Makes points, normals and greys of an image, and what the steps begin with. */
struct vxd_track_live_call {
    struct vxd_track_source source;
    struct vxd_track_image image;
    bool is_filtered;
    float *depths;   /* scratch of the CPU: n float32 */
    float *filtered; /* likewise */
    struct vxd_track_work *work;
    uint32_t *arrived; /* VXD_TRACK_N_ITERATE_CALLS, which become 0 */
};

/* Makes the same of what the rays met, and of both images those of half the width and height,
 * rounded down, and so on. */
struct vxd_track_pyramids_call {
    struct vxd_track_image live[VXD_TRACK_MAX_LEVELS]; /* the first is there */
    struct vxd_track_image model[VXD_TRACK_MAX_LEVELS];
    int n_levels;
    struct vxd_track_camera camera; /* of the first */
    const float *depth;             /* n: z, 0 = nothing */
    const float *normal;            /* n x 3, map frame */
    const uint8_t *colour;          /* n x 3; NULL: no greys */
    float to_camera[12];            /* from the map; its translation is not used */
};

/* Up to n steps on one level, and then, if so chosen, the sums at the pose that they found; 0: only the
 * sums at the pose as it is. Of a level whose work is singular nothing is done. Starts and, after sums,
 * ends with work->is_done = 0. */
struct vxd_track_iterate_call {
    struct vxd_track_level level;
    int n;
    bool sums_after;
    uint32_t *arrived; /* CUDA: a word of 0 for this call alone */
    /* Where the work is copied to at the end, in host memory that the device writes; NULL: nowhere. */
    struct vxd_track_work *report;
};

enum vxd_status vxd_track_live_cpu(struct vxd_queue *queue,
                                   const struct vxd_track_live_call *call,
                                   struct vxd_err *err);
enum vxd_status vxd_track_live_cuda(struct vxd_queue *queue,
                                    const struct vxd_track_live_call *call,
                                    struct vxd_err *err);
enum vxd_status vxd_track_pyramids_cpu(struct vxd_queue *queue,
                                       const struct vxd_track_pyramids_call *call,
                                       struct vxd_err *err);
enum vxd_status vxd_track_pyramids_cuda(struct vxd_queue *queue,
                                        const struct vxd_track_pyramids_call *call,
                                        struct vxd_err *err);
enum vxd_status vxd_track_iterate_cpu(struct vxd_queue *queue,
                                      const struct vxd_track_iterate_call *call,
                                      struct vxd_err *err);
enum vxd_status vxd_track_iterate_cuda(struct vxd_queue *queue,
                                       const struct vxd_track_iterate_call *call,
                                       struct vxd_err *err);

/* --- track_verdict.c ------------------------------------------------------------------ */

/* Fills in a result from the sums at the last pose. planes: the same of distances to planes alone,
 * as sums of a method that has greys. */
void vxd_track_judge(const struct vxd_track_options *options,
                     const struct vxd_volume_pose *prior,
                     const struct vxd_track_work *work, const double *planes,
                     struct vxd_track_result *out);

#ifdef __cplusplus
}
#endif
#endif
