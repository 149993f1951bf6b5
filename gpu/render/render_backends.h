// SPDX-License-Identifier: Apache-2.0
/* What the public entry hands to the backends: a checked picture as numbers and tables. */
#ifndef VXD_GPU_RENDER_RENDER_BACKENDS_H
#define VXD_GPU_RENDER_RENDER_BACKENDS_H

#include "gpu/render/render.h"
#include "gpu/render/trace_math.h"
#include "gpu/svdag/node/node_math.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What gives a voxel another colour than its palette's entry. */
struct vxd_render_materials {
    const uint32_t *roots; /* of AGE, newest first */
    uint32_t n_roots;
    const uint32_t *texture_of; /* of each material: 0, or 1 and the texture's number */
    uint32_t n_texture_of;
    const uint32_t
        *textures; /* VXD_RENDER_TEXTURE_WORDS each: first texel, width, height, voxels */
    const float *texels; /* linear colours of three */
    uint32_t n_regions;
    const uint32_t
        *regions; /* VXD_RENDER_REGION_WORDS each: low, high, first colour, colours */
    const float *region_colours;
};

enum {
    VXD_RENDER_TEXTURE_WORDS = 4,
    VXD_RENDER_REGION_WORDS = 8,
    VXD_RENDER_BEAM = 8,          /* pixels of the side of a beam's tile */
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
    struct vxd_render_materials materials;
    bool has_clip;
    struct vxd_render_clip clip;
};

/* Words of the tables of materials; writes them; points to them where they are. */
size_t vxd_render_materials_words(const struct vxd_render_picture *picture);
void vxd_render_materials_write(const struct vxd_render_picture *picture,
                                uint32_t *words);
void vxd_render_materials_place(const struct vxd_render_picture *picture,
                                const uint32_t *words, struct vxd_render_materials *out);
/* errors  INVALID_ARGUMENT  err.field "roots", "textures", "regions" or "clip" */
enum vxd_status vxd_render_materials_check(const struct vxd_render_picture *picture,
                                           struct vxd_err *err);
/* Whether surfaces have other colours than those of the palette or of heights. */
VXD_HD bool vxd_render_has_materials(const struct vxd_render_params *params)
{
    return params->materials.n_roots > 0 || params->materials.n_texture_of > 0 ||
           params->materials.n_regions > 0;
}

struct vxd_render_plan {
    struct vxd_context *context;
    enum vxd_render_mode mode;
    struct vxd_render_params params;
    struct vxd_buffer host; /* the tables */
    struct vxd_buffer device;
    const float *columns; /* the host's, of params.columns and rows */
    const float *rows;
};

/* The tables of a plan on the host, in their order. */
static inline const float *vxd_render_host_ramp(const struct vxd_render_plan *plan)
{
    return (const float *)plan->host.ptr + 2 * (size_t)VXD_RENDER_ANGLES;
}
static inline const float *vxd_render_host_palette(const struct vxd_render_plan *plan)
{
    return vxd_render_host_ramp(plan) + 3 * (size_t)VXD_RENDER_RAMP_COLOURS;
}

/* Makes the length 1; false where there is none. Scaled first, so that squares stay finite. */
bool vxd_render_normalize(double v[3]);

struct vxd_render_call {
    struct vxd_svdag_view view;
    uint32_t root;
    enum vxd_render_mode mode;
    struct vxd_render_rect part; /* not empty */
    uint32_t *pixels;            /* of the whole picture */
    /* Of its tiles, row by row: rays from the eye hit nothing before this t. NULL: they begin at the
     * eye. */
    float *starts;
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
