// SPDX-License-Identifier: Apache-2.0
/* What the public entry hands to the backends: a checked picture as numbers and tables. */
#ifndef VXD_GPU_RENDER_RENDER_BACKENDS_H
#define VXD_GPU_RENDER_RENDER_BACKENDS_H

#include "gpu/render/render.h"
#include "gpu/svdag/node/node_math.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    VXD_RENDER_ANGLES = 1024,     /* directions of the table of angles */
    VXD_RENDER_RAMP_COLOURS = 256 /* of HEIGHT */
};

/* Kernels take it by value. */
struct vxd_render_params {
    enum vxd_render_camera_kind kind;
    uint32_t width, height;
    uint32_t samples, ao_samples, bounces, seed;
    bool has_shadows;
    float voxel_size_m;

    /* The direction of pixel position (x, y), its left and top edges at whole numbers: corner
     * + x right + y down. On spheres these are the axes of the table's angles: forward, right
     * and up. */
    float direction[3], direction_x[3], direction_y[3];
    int32_t eye_cell[3];                        /* the voxel of the eye ... */
    float eye_offset[3];                        /* ... and the eye in it */
    double origin[3], origin_x[3], origin_y[3]; /* orthographic: likewise */
    const float *columns; /* spheres: cosine and sine of each column */
    const float *rows;    /* and of each row */

    float detail_base,
        detail_slope; /* size of the smallest cube at t: base + t * slope */
    float sun[3];     /* towards it, of unit length */
    float sun_light, ambient, sky_light;
    float sky_zenith[3], sky_horizon[3], sky_ground[3]; /* linear */
    float ao_most;                                      /* voxels, or infinite */
    float ramp_low, ramp_scale;
    float variation;

    const float *angles; /* cosine and sine of VXD_RENDER_ANGLES angles */
    const float *ramp;   /* VXD_RENDER_RAMP_COLOURS linear colours of three */
    const float *palette;
    uint32_t n_palette;
};

struct vxd_render_call {
    struct vxd_svdag_view view;
    uint32_t root;
    enum vxd_render_mode mode;
    struct vxd_render_rect part; /* not empty */
    uint32_t *pixels;            /* of the whole picture */
    struct vxd_render_params params;
};

enum vxd_status vxd_render_draw_cpu(struct vxd_queue *queue,
                                    const struct vxd_render_call *call,
                                    struct vxd_err *err);
enum vxd_status vxd_render_draw_cuda(struct vxd_queue *queue,
                                     const struct vxd_render_call *call,
                                     struct vxd_err *err);
enum vxd_status vxd_render_draw_any_cuda(struct vxd_queue *queue,
                                         const struct vxd_render_call *call,
                                         struct vxd_err *err);

#ifdef __cplusplus
}
#endif
#endif
