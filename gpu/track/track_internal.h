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

/* Makes points, normals and greys of an image. */
struct vxd_track_live_call {
    struct vxd_track_source source;
    struct vxd_track_image image;
    float *depths;   /* scratch: n float32 */
    float *filtered; /* scratch: n float32; NULL: the depths are not filtered */
};

/* Makes the same of what the rays met. */
struct vxd_track_model_call {
    struct vxd_track_image image;
    struct vxd_track_camera camera;
    const float *depth;    /* n: z, 0 = nothing */
    const float *normal;   /* n x 3, map frame */
    const uint8_t *colour; /* n x 3; NULL: no greys */
    float to_camera[12];   /* from the map; its translation is not used */
};

/* Makes an image of half the width and height, rounded down. */
struct vxd_track_halve_call {
    struct vxd_track_image from;
    struct vxd_track_image to;
};

/* Up to n steps on one level; 0: only the sums at the pose as it is, of a level whose work is
 * neither done nor singular. Starts with work->is_done = 0. */
struct vxd_track_iterate_call {
    struct vxd_track_level level;
    int n;
};

enum vxd_status vxd_track_live_cpu(struct vxd_queue *queue,
                                   const struct vxd_track_live_call *call,
                                   struct vxd_err *err);
enum vxd_status vxd_track_live_cuda(struct vxd_queue *queue,
                                    const struct vxd_track_live_call *call,
                                    struct vxd_err *err);
enum vxd_status vxd_track_model_cpu(struct vxd_queue *queue,
                                    const struct vxd_track_model_call *call,
                                    struct vxd_err *err);
enum vxd_status vxd_track_model_cuda(struct vxd_queue *queue,
                                     const struct vxd_track_model_call *call,
                                     struct vxd_err *err);
enum vxd_status vxd_track_halve_cpu(struct vxd_queue *queue,
                                    const struct vxd_track_halve_call *call,
                                    struct vxd_err *err);
enum vxd_status vxd_track_halve_cuda(struct vxd_queue *queue,
                                     const struct vxd_track_halve_call *call,
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
