// SPDX-License-Identifier: Apache-2.0
/* Pictures of scenes by ray tracing.
 *
 * Space. All lengths are voxels from the scene's low corner, double; voxel (x, y, z) covers
 * [x, x + 1) and so on. Pixel (0, 0) is the top left one, and the ray of a pixel goes through
 * its centre.
 *
 * The ray of a pixel. Its direction d is three float32 (of a pinhole camera not of unit length:
 * its part along the view is 1), its origin a voxel and a float32 offset from it. With o the
 * origin, plane k of an axis is crossed at t = ((k - o) * (1 / |d|)), one rounding to float32 an
 * operation, and a component below 2^-60 counts as 2^-60. A voxel is visited when the last of
 * the planes behind it, by (t, axis), comes before the first of the planes ahead of it; a ray
 * that begins in a voxel visits it where it has a length in it. The hit is the first visited
 * voxel that is occupied. So a voxel is found or missed rightly except within 2^-21 of its
 * distance from the eye: far less than a pixel. Rays from surfaces (shadows, occlusion, paths)
 * begin on the face itself and follow the same rule.
 *
 * Both backends compute the same bits in all modes: every float operation that counts is rounded
 * once, sums run in one order, and tables are made on the host.
 *
 * A clipped picture is that of the scene's voxels in a box: a ray begins where it enters the box,
 * with the normal of the box's face where a voxel is cut there, and what it would reach at the very
 * point where it leaves the box is not hit.
 *
 * Light is computed in the square of what is stored (gamma 2, close to sRGB): a surface that
 * gets light 1 shows its palette's colour exactly.
 *
 * source  SVDAG editing, sections 4 and 6 (ray tracing, materials, position-dependent
 *         palettes); Laine and Karras, Efficient Sparse Voxel Octrees, 2010 (the mirrored
 *         traversal); Wald et al., Interactive Rendering with Coherent Ray Tracing, 2001
 *         (packets, on the CPU) */
#ifndef VXD_GPU_RENDER_RENDER_H
#define VXD_GPU_RENDER_RENDER_H

#include "gpu/svdag/svdag.h"

#ifdef __cplusplus
extern "C" {
#endif

#define VXD_RENDER_MAX_SIDE 8192u     /* pixels of a picture's side */
#define VXD_RENDER_MAX_SAMPLES 4096u  /* of a pixel */
#define VXD_RENDER_MAX_BOUNCES 64u    /* of a path */
#define VXD_RENDER_MAX_PLACE 4194304. /* voxels an eye may be from the low corner: 2^22 */
#define VXD_RENDER_MAX_ROOTS 1024u    /* of AGE */
#define VXD_RENDER_MAX_TEXTURES 64u
#define VXD_RENDER_MAX_TEXELS ((size_t)1 << 22) /* of all textures together */
#define VXD_RENDER_MAX_REGIONS 16u
#define VXD_RENDER_N_SIDES 8 /* corners of a box that it is seen from */

enum vxd_render_camera_kind {
    VXD_RENDER_PINHOLE = 0, /* fov_y_deg between the top and the bottom edge */
    VXD_RENDER_ORTHOGRAPHIC =
        1, /* view_height voxels between them; rays begin at the eye's plane */
    VXD_RENDER_EQUIRECTANGULAR =
        2,               /* all around: the target in the middle, up at the top */
    VXD_RENDER_LIDAR = 3 /* a beam a row, of an elevation each, all around as above */
};

struct vxd_render_camera {
    enum vxd_render_camera_kind kind;
    double eye[3];      /* voxels, finite, magnitudes up to VXD_RENDER_MAX_PLACE */
    double target[3];   /* voxels, another point than the eye */
    double up[3];       /* any length, not 0; along the view another one is chosen */
    double fov_y_deg;   /* pinhole: above 0 and below 180 */
    double view_height; /* orthographic: above 0 */
    const double *elevations_deg; /* lidar: of each row, -90 to 90, top row first */
};

/* What a pixel is: four bytes in every mode. */
enum vxd_render_mode {
    VXD_RENDER_DEPTH =
        0, /* float32 metres: along the view for pinhole and orthographic cameras,
                           * else along the ray; infinite where nothing is */
    VXD_RENDER_NORMAL =
        1, /* int8 x, y, z of the face, and 0; all 0 where nothing is, or inside */
    VXD_RENDER_MATERIAL = 2, /* int32, -1 where nothing is */
    VXD_RENDER_COLOUR =
        3, /* uint8 r, g, b, and 255 (0 where a pixel shows sky alone): the palette in the light */
    VXD_RENDER_HEIGHT = 4, /* the same, coloured by z */
    VXD_RENDER_AO = 5,     /* the same: the share of the hemisphere that is open */
    VXD_RENDER_PATH = 6,   /* the same: path tracing with diffuse materials */
    VXD_RENDER_AGE =
        7, /* COLOUR, coloured by the newest of `roots` in which the voxel changed */
    VXD_RENDER_LABEL = 8, /* the palette's colours themselves, without light */
    VXD_RENDER_N_MODES = 9
};

/* A picture that all faces of a material show: a texel is texel_voxels voxels a side, and the
 * texture repeats from the scene's low corner on. Its first row is the highest on upright faces and
 * that of the highest y on others; its columns run along x, on faces across x along y. */
struct vxd_render_texture {
    uint32_t material;
    uint32_t width, height; /* texels, at least 1 */
    uint32_t texel_voxels;  /* at least 1 */
    const uint32_t *texels; /* height x width, 0xRRGGBB */
};

/* A box in which materials have the colours of another palette; of boxes that overlap the last one
 * counts. */
struct vxd_render_region {
    uint32_t low[3], high[3]; /* voxels, half open */
    const uint32_t *palette;  /* n_palette colours; materials beyond it keep theirs */
    uint32_t n_palette;
};

/* Colours are 0xRRGGBB, strengths are factors of light. */
struct vxd_render_picture {
    struct vxd_render_camera camera;
    enum vxd_render_mode mode;
    uint32_t width, height; /* 1 to VXD_RENDER_MAX_SIDE */
    double voxel_size_m;    /* of DEPTH; > 0 */

    uint32_t
        samples; /* rays of a pixel, spread over it, 1 to VXD_RENDER_MAX_SAMPLES: COLOUR,
                       * HEIGHT, PATH */
    uint32_t
        ao_samples; /* of AO, at least 1; and of the ambient light of COLOUR and HEIGHT, 0 =
                          * all of it is there */
    double ao_radius; /* voxels, how far something occludes; 0 = any distance */
    uint32_t bounces; /* of PATH, 1 to VXD_RENDER_MAX_BOUNCES */
    uint32_t seed;    /* of all random numbers */

    bool shadows;            /* of the sun; COLOUR and HEIGHT. Paths always have them */
    double sun_direction[3]; /* towards the sun, not 0 */
    double sun;              /* at least 0 */
    double ambient;          /* at least 0; COLOUR and HEIGHT */
    uint32_t sky_zenith, sky_horizon, sky_ground; /* upwards, level, downwards */
    double sky;                                   /* the sky's light to paths */

    const uint32_t
        *palette; /* n_palette colours; materials beyond it get one by their number */
    uint32_t n_palette;
    const struct vxd_render_texture *textures; /* COLOUR, LABEL and PATH */
    uint32_t n_textures;                       /* at most VXD_RENDER_MAX_TEXTURES */
    const struct vxd_render_region *regions;
    uint32_t n_regions; /* at most VXD_RENDER_MAX_REGIONS */
    const uint32_t
        *roots; /* AGE: of the versions, newest first, the first one that is drawn */
    uint32_t n_roots; /* AGE: 1 to VXD_RENDER_MAX_ROOTS */
    bool has_clip;    /* only what is in this box is there: voxels, half open */
    uint32_t clip_low[3], clip_high[3];
    double variation;     /* 0 to 1: by how much a colour varies from voxel to voxel */
    double z_low, z_high; /* voxels, HEIGHT: the ends of the colours */
    double
        detail; /* pixels, at least 0: a cube below this size is one voxel, whose material is
                    * that of the first voxel in it; 0 = never */
};

/* Sets a clear day: the sun's direction and strength, the ambient light, the colours of the sky. */
void vxd_render_set_sky(struct vxd_render_picture *picture);

/* The axes of a camera, of unit length; for cameras that look all around level: up is `up`, and
 * forward what of the view is across it. */
struct vxd_render_axes {
    double forward[3], right[3], up[3];
};

/* in      camera  whose eye, target and up are as a picture needs them */
void vxd_render_find_axes(const struct vxd_render_camera *camera,
                          struct vxd_render_axes *out);

/* Half of a box's diagonal. */
double vxd_render_box_radius(const double low[3], const double high[3]);

/* Puts an eye so far from a target that all of a box is in the picture, as seen from above a corner,
 * and at least `least` away; cameras that look all around stand above the target and the box. Of the
 * picture its size, and the camera's kind and fov_y_deg are read; lengths are of any unit.
 * in      side  which corner, 0 to VXD_RENDER_N_SIDES - 1: bit 0 that of high x, bit 1 of high y,
 *               bit 2 from below */
void vxd_render_stand_back(const struct vxd_render_picture *picture, int side,
                           const double low[3], const double high[3],
                           const double target[3], double least, double eye[3]);

/* A picture that was checked, with its tables on the device. */
struct vxd_render_plan;

/* Checks a picture and makes its tables, which the queue uploads; nothing of *picture is kept.
 * errors  INVALID_ARGUMENT    a value outside the ranges above, not finite or without direction;
 *                             err.field "camera.eye", "samples", ...
 *         RESOURCE_EXHAUSTED  no memory for the tables
 * owner   the caller */
enum vxd_status vxd_render_plan_create(struct vxd_queue *queue,
                                       const struct vxd_render_picture *picture,
                                       struct vxd_render_plan **out, struct vxd_err *err);

/* What was queued with it must have run. NULL is fine. */
void vxd_render_plan_destroy(struct vxd_queue *queue, struct vxd_render_plan *plan);

/* Rays that a pixel casts at most, the first one included. */
uint64_t vxd_render_rays_of_pixel(const struct vxd_render_picture *picture);

/* A part of a picture, in pixels. */
struct vxd_render_rect {
    uint32_t x, y, width, height;
};

/* Draws a part of a picture of a root. Parts may be drawn in any order, and give the pixels of the
 * whole.
 * out     pixels  device memory, height x width uint32 of the whole picture; those of the part
 *                 are written. Bytes of colours and normals are in the order of enum
 *                 vxd_render_mode
 * errors  INVALID_ARGUMENT    a part beyond the picture, or no pixels
 *         RESOURCE_EXHAUSTED  no memory for the job
 * sync    asynchronous; beside edits, as all queries */
enum vxd_status vxd_render_draw(struct vxd_queue *queue,
                                const struct vxd_render_plan *plan,
                                const struct vxd_svdag *svdag, uint32_t root,
                                const struct vxd_render_rect *part, uint32_t *pixels,
                                struct vxd_err *err);

/* What a camera sees of a smooth surface, that something else found by the rays of the picture's
 * pixels. Arrays are of the whole picture, a row a pixel, in host memory. */
struct vxd_render_seen {
    const float *depths;    /* 0: nothing is there */
    const float *normals;   /* x 3, of unit length */
    const float *places;    /* x 3; HEIGHT */
    const uint8_t *colours; /* x 3, red, green, blue; NULL: stone */
    const uint8_t *labels;  /* LABEL: a colour's number, 0: stone */
};

/* Lights n rows of such a picture, without shadows: COLOUR, HEIGHT, LABEL and NORMAL, the latter as
 * (n + 1) / 2 in red, green, blue, black where nothing is. Up gets all of the ambient light, down
 * half of it.
 * in      first, n  rows of the picture
 * out     rgb       n x width x 3 bytes */
void vxd_render_light_rows(const struct vxd_render_plan *plan,
                           const struct vxd_render_seen *seen, uint32_t first, uint32_t n,
                           uint8_t *rgb);

/* Puts such a surface into a picture that is there already, in the modes above and DEPTH: where it is
 * nearer, the pixel becomes its own. n rows of the picture.
 * in/out  depths  float32 of the picture's pixels as DEPTH has them: infinite where nothing is
 *         pixels  in the order of enum vxd_render_mode, normals in 127ths; of DEPTH NULL */
void vxd_render_compose_rows(const struct vxd_render_plan *plan,
                             const struct vxd_render_seen *seen, uint32_t first,
                             uint32_t n, float *depths, uint32_t *pixels);

/* The ray of a pixel's centre as it is cast: voxels, exactly. Not PATH's, which begin anywhere in
 * a pixel. */
void vxd_render_pixel_ray(const struct vxd_render_plan *plan, uint32_t x, uint32_t y,
                          double origin[3], double direction[3]);

#ifdef __cplusplus
}
#endif
#endif
