// SPDX-License-Identifier: Apache-2.0
/* Arithmetic of tracking, the same bits on both backends: points and normals of an image, pairs of
 * image and model, rows of the normal equations and their sums, and one Gauss-Newton step.
 *
 * All points are in the frame of the camera that the model was cast for, but those of the image,
 * which are in its own; T moves these there. A row is the derivative of a residual with respect to
 * x = (translation, rotation), where exp(x) T replaces T. Functions of one pixel have no branches,
 * so that loops over them become vector code. */
#ifndef VXD_GPU_TRACK_TRACK_MATH_H
#define VXD_GPU_TRACK_TRACK_MATH_H

#include "gpu/volume/volume_math.h"

/* ---- Images ---- */

/* Planes of an image; each has width * height float32. */
enum vxd_track_plane {
    VXD_TRACK_X = 0, /* the point, metres; z = 0: there is none */
    VXD_TRACK_Y = 1,
    VXD_TRACK_Z = 2,
    VXD_TRACK_NX = 3, /* the surface's normal, unit length; zeros: there is none */
    VXD_TRACK_NY = 4,
    VXD_TRACK_NZ = 5,
    VXD_TRACK_GREY = 6, /* 0 to 1; negative: there is none */
    VXD_TRACK_N_PLANES = 7
};

struct vxd_track_image {
    float *planes;
    size_t n; /* pixels: of a plane */
    int width;
    int height;
};

/* Neighbours whose depths differ by more than this part of the depth lie on another surface. */
#define VXD_TRACK_EDGE 0.05f
/* Normals are taken from points so many pixels on both sides: the noise of a pixel's depth is larger
 * than the distance to the next one. */
#define VXD_TRACK_NORMAL_STEP 2
/* Radius of the bilateral filter, pixels. */
#define VXD_TRACK_FILTER_RADIUS 2

VXD_HD float vxd_track_dot(const float a[3], const float b[3])
{
    return vxd_addf(vxd_addf(vxd_mulf(a[0], b[0]), vxd_mulf(a[1], b[1])),
                    vxd_mulf(a[2], b[2]));
}

/* An image as it comes, and how its points are made. */
struct vxd_track_source {
    struct vxd_camera_form camera;
    struct vxd_camera_form colour_camera; /* where has_colour_camera is set */
    const void *depth;
    const uint8_t *mask;
    const uint8_t *colour; /* NULL: no greys */
    int is_u16;
    int has_colour_camera;
    float depth_scale;
    float depth_min;
    float depth_max;
    float to_colour[12]; /* depth camera to colour camera */
    int stride;          /* pixels of the source a pixel, on each axis */
};

/* Depth of a pixel of the source in metres, 0 where there is none: what integration takes. */
VXD_HD float vxd_track_depth(const struct vxd_track_source *source, size_t pixel)
{
    uint16_t whole = source->is_u16 != 0 ? ((const uint16_t *)source->depth)[pixel] : 0;
    float raw = source->is_u16 != 0 ? (whole == 65535 ? 0 : (float)whole)
                                    : ((const float *)source->depth)[pixel];
    float z = vxd_divf(raw, source->depth_scale);
    bool is_there = z >= source->depth_min && z <= source->depth_max && z > 0;

    is_there = is_there && (source->mask == NULL || source->mask[pixel] != 0);
    return is_there ? z : 0;
}

VXD_HD float vxd_track_mean_of_four(const float z[4])
{
    float nearest = 1e30f;
    float sum = 0;
    float count = 0;

    VXD_UNROLL
    for (int i = 0; i < 4; i++) {
        nearest = z[i] > 0 && z[i] < nearest ? z[i] : nearest;
    }
    nearest = vxd_mulf(nearest, 1.0f + VXD_TRACK_EDGE);
    VXD_UNROLL
    for (int i = 0; i < 4; i++) {
        bool is_near = z[i] > 0 && z[i] <= nearest;

        sum = vxd_addf(sum, is_near ? z[i] : 0);
        count = vxd_addf(count, is_near ? 1.0f : 0.0f);
    }
    return count > 0 ? vxd_divf(sum, count) : 0;
}

/* Depth of pixel (u, v): the mean of those of its pixels of the source that lie on the nearest
 * surface. */
VXD_HD float vxd_track_mean_depth(const struct vxd_track_source *source, int u, int v)
{
    int s = source->stride;
    size_t width = (size_t)source->camera.width;
    size_t first = (size_t)(s * v) * width + (size_t)(s * u);
    float nearest = 1e30f;
    float sum = 0;
    float count = 0;

    if (s == 1) {
        return vxd_track_depth(source, first);
    }
    if (s == 2) { /* each depth is computed once */
        const float z[4] = {vxd_track_depth(source, first),
                            vxd_track_depth(source, first + 1),
                            vxd_track_depth(source, first + width),
                            vxd_track_depth(source, first + width + 1)};

        return vxd_track_mean_of_four(z);
    }
    for (int y = 0; y < s; y++) {
        for (int x = 0; x < s; x++) {
            float z = vxd_track_depth(source, first + (size_t)y * width + (size_t)x);

            nearest = z > 0 && z < nearest ? z : nearest;
        }
    }
    nearest = vxd_mulf(nearest, 1.0f + VXD_TRACK_EDGE);
    for (int y = 0; y < s; y++) {
        for (int x = 0; x < s; x++) {
            float z = vxd_track_depth(source, first + (size_t)y * width + (size_t)x);
            bool is_near = z > 0 && z <= nearest;

            sum = vxd_addf(sum, is_near ? z : 0);
            count = vxd_addf(count, is_near ? 1.0f : 0.0f);
        }
    }
    return count > 0 ? vxd_divf(sum, count) : 0;
}

VXD_HD float vxd_track_grey(const uint8_t *rgb)
{
    float sum = vxd_addf(
        vxd_addf(vxd_mulf(0.299f, (float)rgb[0]), vxd_mulf(0.587f, (float)rgb[1])),
        vxd_mulf(0.114f, (float)rgb[2]));

    return vxd_mulf(sum, 1.0f / 255);
}

VXD_HD float vxd_track_grey_of(const struct vxd_track_source *source, int u, int v,
                               const float p[3])
{
    int s = source->stride;
    size_t first = (size_t)(s * v) * (size_t)source->camera.width + (size_t)(s * u);
    float sum = 0;

    if (source->has_colour_camera != 0) {
        float q[3];
        int32_t pixel;

        for (int i = 0; i < 3; i++) {
            const float *row = source->to_colour + 4 * (size_t)i;

            q[i] = vxd_addf(vxd_track_dot(row, p), row[3]);
        }
        pixel = vxd_camera_pixel(&source->colour_camera, q[0], q[1], q[2]);
        return p[2] > 0 && pixel >= 0 ? vxd_track_grey(source->colour + 3 * (size_t)pixel)
                                      : -1;
    }
    for (int i = 0; i < s * s; i++) {
        size_t pixel =
            first + (size_t)(i / s) * (size_t)source->camera.width + (size_t)(i % s);

        sum = vxd_addf(sum, vxd_track_grey(source->colour + 3 * pixel));
    }
    return vxd_divf(sum, (float)(s * s));
}

/* Adds a neighbour to a pixel's filtered depth: the sum of weighted differences, and of weights. The
 * weight is a polynomial bell of both distances, which needs no exp. inverse: 1 / (EDGE * z). */
VXD_HD void vxd_track_add_neighbour(float z, float inverse, float neighbour, float r2,
                                    float *sum, float *weights)
{
    float difference = vxd_subf(neighbour, z);
    float d = vxd_mulf(difference, inverse);
    float a = vxd_subf(1.0f, vxd_mulf(d, d));
    float b = vxd_subf(
        1.0f, vxd_mulf(r2, 1.0f / (2 * VXD_TRACK_FILTER_RADIUS * VXD_TRACK_FILTER_RADIUS +
                                   2 * VXD_TRACK_FILTER_RADIUS)));
    float w = vxd_mulf(vxd_mulf(a, a), b);

    w = neighbour > 0 && a > 0 ? w : 0;
    *sum = vxd_addf(*sum, vxd_mulf(w, difference));
    *weights = vxd_addf(*weights, w);
}

VXD_HD float vxd_track_filter_inverse(float z)
{
    return vxd_divf(1.0f, vxd_mulf(VXD_TRACK_EDGE, z));
}

VXD_HD float vxd_track_filtered(float z, float sum, float weights)
{
    return z > 0 ? vxd_addf(z, vxd_divf(sum, weights)) : 0;
}

/* The filtered depth of pixel (u, v) of a picture of depths. */
VXD_HD float vxd_track_filter(const float *depths, int width, int height, int u, int v)
{
    float z = depths[(size_t)v * (size_t)width + (size_t)u];
    float inverse = vxd_track_filter_inverse(z);
    float sum = 0;
    float weights = 0;

    for (int dv = -VXD_TRACK_FILTER_RADIUS; dv <= VXD_TRACK_FILTER_RADIUS; dv++) {
        for (int du = -VXD_TRACK_FILTER_RADIUS; du <= VXD_TRACK_FILTER_RADIUS; du++) {
            int x = u + du < 0 ? 0 : u + du >= width ? width - 1 : u + du;
            int y = v + dv < 0 ? 0 : v + dv >= height ? height - 1 : v + dv;

            vxd_track_add_neighbour(z, inverse,
                                    depths[(size_t)y * (size_t)width + (size_t)x],
                                    (float)(du * du + dv * dv), &sum, &weights);
        }
    }
    return vxd_track_filtered(z, sum, weights);
}

/* The point of pixel (u, v) at a depth. */
VXD_HD void vxd_track_point(const struct vxd_track_source *source, int u, int v, float z,
                            float p[3])
{
    float at = vxd_mulf(0.5f, (float)(source->stride - 1));
    float x;
    float y;

    vxd_camera_ray(&source->camera, vxd_addf((float)(source->stride * u), at),
                   vxd_addf((float)(source->stride * v), at), &x, &y);
    p[0] = vxd_mulf(x, z);
    p[1] = vxd_mulf(y, z);
    p[2] = z;
}

/* Writes the point of pixel (u, v), and its grey. */
VXD_HD void vxd_track_put_point(const struct vxd_track_source *source,
                                const struct vxd_track_image *image, int u, int v,
                                const float p[3])
{
    float *planes = image->planes + (size_t)v * (size_t)image->width + (size_t)u;

    for (int i = 0; i < 3; i++) {
        planes[(size_t)i * image->n] = p[i];
    }
    planes[VXD_TRACK_GREY * image->n] =
        source->colour != NULL ? vxd_track_grey_of(source, u, v, p) : -1;
}

/* The normal of a pixel from the points left, right, above and below; zeros at edges. */
VXD_HD void vxd_track_normal(const float at[3], const float left[3], const float right[3],
                             const float up[3], const float down[3], float out[3])
{
    float limit = vxd_mulf(VXD_TRACK_EDGE, at[2]);
    float du[3];
    float dv[3];
    float n[3];
    float length;
    float inverse;
    bool is_there;

    for (int i = 0; i < 3; i++) {
        du[i] = vxd_subf(right[i], left[i]);
        dv[i] = vxd_subf(down[i], up[i]);
    }
    n[0] = vxd_subf(vxd_mulf(dv[1], du[2]), vxd_mulf(dv[2], du[1]));
    n[1] = vxd_subf(vxd_mulf(dv[2], du[0]), vxd_mulf(dv[0], du[2]));
    n[2] = vxd_subf(vxd_mulf(dv[0], du[1]), vxd_mulf(dv[1], du[0]));
    length = vxd_volume_sqrtf(vxd_track_dot(n, n));
    inverse = vxd_divf(1.0f, length);
    is_there = at[2] > 0 && left[2] > 0 && right[2] > 0 && up[2] > 0 && down[2] > 0 &&
               fabsf(du[2]) < vxd_mulf(2 * VXD_TRACK_NORMAL_STEP, limit) &&
               fabsf(dv[2]) < vxd_mulf(2 * VXD_TRACK_NORMAL_STEP, limit) && length > 0;
    for (int i = 0; i < 3; i++) {
        out[i] = is_there ? vxd_mulf(n[i], inverse) : 0;
    }
}

/* One pixel of half the width: the mean of those of the four that lie on the nearest surface. */
VXD_HD void vxd_track_halve(const struct vxd_track_image *from, int u, int v, float out[])
{
    float nearest = 1e30f;
    float sum[VXD_TRACK_N_PLANES] = {0};
    float count = 0;
    float n_grey = 0;
    float length;
    float inverse;

    for (int k = 0; k < 4; k++) {
        size_t pixel =
            (size_t)(2 * v + k / 2) * (size_t)from->width + (size_t)(2 * u + k % 2);
        float z = from->planes[VXD_TRACK_Z * from->n + pixel];

        nearest = z > 0 && z < nearest ? z : nearest;
    }
    for (int k = 0; k < 4; k++) {
        size_t pixel =
            (size_t)(2 * v + k / 2) * (size_t)from->width + (size_t)(2 * u + k % 2);
        float z = from->planes[VXD_TRACK_Z * from->n + pixel];
        float grey = from->planes[VXD_TRACK_GREY * from->n + pixel];
        bool is_near = z > 0 && z <= vxd_mulf(nearest, 1.0f + VXD_TRACK_EDGE);

        for (int p = 0; p < VXD_TRACK_GREY; p++) {
            float value = from->planes[(size_t)p * from->n + pixel];

            sum[p] = vxd_addf(sum[p], is_near ? value : 0);
        }
        sum[VXD_TRACK_GREY] = vxd_addf(sum[VXD_TRACK_GREY], grey >= 0 ? grey : 0);
        count = vxd_addf(count, is_near ? 1.0f : 0.0f);
        n_grey = vxd_addf(n_grey, grey >= 0 ? 1.0f : 0.0f);
    }
    for (int p = 0; p < VXD_TRACK_NX; p++) {
        out[p] = count > 0 ? vxd_divf(sum[p], count) : 0;
    }
    length = vxd_volume_sqrtf(vxd_track_dot(sum + VXD_TRACK_NX, sum + VXD_TRACK_NX));
    inverse = length > 0 ? vxd_divf(1.0f, length) : 0;
    for (int p = VXD_TRACK_NX; p < VXD_TRACK_GREY; p++) {
        out[p] = vxd_mulf(sum[p], inverse);
    }
    /* A sample between a surface and nothing would be an edge that moves with the camera. */
    out[VXD_TRACK_GREY] = n_grey == 4 ? vxd_mulf(sum[VXD_TRACK_GREY], 0.25f) : -1;
}

VXD_HD void vxd_track_put_half(const struct vxd_track_image *from,
                               const struct vxd_track_image *to, int u, int v)
{
    float out[VXD_TRACK_N_PLANES];

    vxd_track_halve(from, u, v, out);
    for (int p = 0; p < VXD_TRACK_N_PLANES; p++) {
        to->planes[(size_t)p * to->n + (size_t)v * (size_t)to->width + (size_t)u] =
            out[p];
    }
}

/* Whether a pixel is so near to the rim of its image that it has no normal. */
VXD_HD bool vxd_track_is_rim(const struct vxd_track_image *image, int u, int v)
{
    int last_u = image->width - 1 - VXD_TRACK_NORMAL_STEP;
    int last_v = image->height - 1 - VXD_TRACK_NORMAL_STEP;

    return u < VXD_TRACK_NORMAL_STEP || v < VXD_TRACK_NORMAL_STEP || u > last_u ||
           v > last_v;
}

/* Writes the normal of a pixel of an image whose points are there. */
VXD_HD void vxd_track_put_normal(const struct vxd_track_image *image, int u, int v)
{
    size_t width = (size_t)image->width;
    size_t pixel = (size_t)v * width + (size_t)u;
    bool is_rim = vxd_track_is_rim(image, u, v);
    size_t across = is_rim ? 0 : VXD_TRACK_NORMAL_STEP;
    size_t along = is_rim ? 0 : VXD_TRACK_NORMAL_STEP * width;
    const float *x = image->planes + pixel;
    const float *y = x + image->n;
    const float *z = y + image->n;
    const float at[3] = {*x, *y, is_rim ? 0 : *z};
    const float left[3] = {*(x - across), *(y - across), *(z - across)};
    const float right[3] = {x[across], y[across], z[across]};
    const float up[3] = {*(x - along), *(y - along), *(z - along)};
    const float down[3] = {x[along], y[along], z[along]};
    float normal[3];

    vxd_track_normal(at, left, right, up, down, normal);
    for (int i = 0; i < 3; i++) {
        image->planes[(size_t)(VXD_TRACK_NX + i) * image->n + pixel] = normal[i];
    }
}

/* ---- Rows ---- */

/* What decides which pixels count, and how much. */
struct vxd_track_rule {
    int use_plane;
    int use_grey;
    float robust[3];     /* 1 for that of enum vxd_track_robust, else 0 */
    float max_distance2; /* of a pair, square metres */
    float min_cosine;    /* between the normals of a pair */
    float plane_scale;   /* metres */
    float grey_scale;    /* grey */
    float grey_m;        /* metres a unit of grey */
};

#define VXD_TRACK_MIN_COSINE 0.5f

/* A pinhole camera of a level. */
struct vxd_track_camera {
    int width;
    int height;
    float fx;
    float fy;
    float cx;
    float cy;
};

/* Writes a pixel of what rays met: its point, normal in the camera's frame, and grey. Black is what
 * the rays give where no colour is known, so it counts as none. colour NULL: there are none. */
VXD_HD void vxd_track_put_model(const struct vxd_track_image *image,
                                const struct vxd_track_camera *camera,
                                const float to_camera[12], const float *depth,
                                const float *normal, const uint8_t *colour, int u, int v)
{
    size_t pixel = (size_t)v * (size_t)image->width + (size_t)u;
    float *planes = image->planes + pixel;
    float z = depth[pixel];
    float x = vxd_divf(vxd_subf((float)u, camera->cx), camera->fx);
    float y = vxd_divf(vxd_subf((float)v, camera->cy), camera->fy);
    float grey = -1;

    planes[0] = vxd_mulf(x, z);
    planes[image->n] = vxd_mulf(y, z);
    planes[2 * image->n] = z;
    for (int i = 0; i < 3; i++) {
        planes[(size_t)(VXD_TRACK_NX + i) * image->n] =
            vxd_track_dot(to_camera + 4 * (size_t)i, normal + 3 * pixel);
    }
    if (colour != NULL && z > 0) {
        grey = vxd_track_grey(colour + 3 * pixel);
        grey = grey > 0 ? grey : -1;
    }
    planes[VXD_TRACK_GREY * image->n] = grey;
}

/* A row: derivative with respect to translation and rotation, residual in metres, weight. */
struct vxd_track_row {
    float t[3];
    float r[3];
    float residual;
    float weight; /* 0: does not count */
};

VXD_HD void vxd_track_rotate(const float T[12], const float p[3], float out[3])
{
    for (int i = 0; i < 3; i++) {
        const float *row = T + 4 * (size_t)i;

        out[i] = vxd_track_dot(row, p);
    }
}

VXD_HD void vxd_track_move(const float T[12], const float p[3], float out[3])
{
    for (int i = 0; i < 3; i++) {
        const float *row = T + 4 * (size_t)i;

        out[i] = vxd_addf(vxd_track_dot(row, p), row[3]);
    }
}

/* Where a point projects to; 0 outside of the image, where (u, v) is (0, 0), else 1. */
VXD_HD int vxd_track_project(const struct vxd_track_camera *camera, const float q[3],
                             float *u, float *v)
{
    int is_ahead = q[2] > 1e-3f;
    float z = is_ahead ? q[2] : 1e-3f;
    float inverse = vxd_divf(1.0f, z);
    float at_u = vxd_addf(vxd_mulf(vxd_mulf(camera->fx, q[0]), inverse), camera->cx);
    float at_v = vxd_addf(vxd_mulf(vxd_mulf(camera->fy, q[1]), inverse), camera->cy);
    int is_right = at_u >= -0.5f;
    int is_below = at_v >= -0.5f;
    int is_left = at_u < vxd_subf((float)camera->width, 0.5f);
    int is_above = at_v < vxd_subf((float)camera->height, 0.5f);
    int is_inside = is_ahead & is_right & is_below & is_left & is_above;

    *u = is_inside ? at_u : 0;
    *v = is_inside ? at_v : 0;
    return is_inside;
}

/* The pixel nearest to a projection that is inside. */
VXD_HD int32_t vxd_track_pixel(const struct vxd_track_camera *camera, float u, float v)
{
    return (int32_t)vxd_addf(v, 0.5f) * camera->width + (int32_t)vxd_addf(u, 0.5f);
}

/* A choice by factors of 0 and 1 is vector code, too. */
VXD_HD float vxd_track_weight(const float robust[3], float scale, float residual)
{
    float a = fabsf(residual);
    float part = vxd_divf(a, scale);
    float bell = vxd_subf(1.0f, vxd_mulf(part, part));
    float slope = vxd_divf(scale, a);
    float square = vxd_mulf(bell, bell);
    float huber = a > scale ? slope : 1.0f;
    float tukey = a < scale ? square : 0.0f;

    return vxd_addf(vxd_addf(vxd_mulf(robust[0], huber), vxd_mulf(robust[1], tukey)),
                    robust[2]);
}

/* Completes a row from the residual's gradient with respect to the point q. */
VXD_HD void vxd_track_complete(const float q[3], const float gradient[3],
                               struct vxd_track_row *row)
{
    for (int i = 0; i < 3; i++) {
        row->t[i] = gradient[i];
    }
    row->r[0] = vxd_subf(vxd_mulf(q[1], gradient[2]), vxd_mulf(q[2], gradient[1]));
    row->r[1] = vxd_subf(vxd_mulf(q[2], gradient[0]), vxd_mulf(q[0], gradient[2]));
    row->r[2] = vxd_subf(vxd_mulf(q[0], gradient[1]), vxd_mulf(q[1], gradient[0]));
}

/* Whether a point q of the image, with the normal m, and the model's point with its normal n are
 * on the same surface: 1 or 0. */
VXD_HD int vxd_track_is_pair(const struct vxd_track_rule *rule, const float q[3],
                             const float m[3], const float at[3], const float n[3])
{
    const float d[3] = {vxd_subf(q[0], at[0]), vxd_subf(q[1], at[1]),
                        vxd_subf(q[2], at[2])};
    int is_near = vxd_track_dot(d, d) < rule->max_distance2;
    int is_parallel = vxd_track_dot(m, n) > rule->min_cosine;

    return is_near & is_parallel;
}

/* Distance of q to the plane through `at` with the normal n. */
VXD_HD void vxd_track_plane_row(const struct vxd_track_rule *rule, const float q[3],
                                const float at[3], const float n[3],
                                struct vxd_track_row *row)
{
    float d[3];

    for (int i = 0; i < 3; i++) {
        d[i] = vxd_subf(q[i], at[i]);
    }
    row->residual = vxd_track_dot(d, n);
    row->weight = vxd_track_weight(rule->robust, rule->plane_scale, row->residual);
    vxd_track_complete(q, n, row);
}

/* The model's grey at (u, v), bilinear, minus that of the image. corners: of the pixels (floor u,
 * floor v), right of it, below it, and below right. */
VXD_HD void vxd_track_grey_row(const struct vxd_track_rule *rule,
                               const struct vxd_track_camera *camera, const float q[3],
                               float part_u, float part_v, const float corners[4],
                               float grey, struct vxd_track_row *row)
{
    float across_top = vxd_subf(corners[1], corners[0]);
    float across_low = vxd_subf(corners[3], corners[2]);
    float top = vxd_addf(corners[0], vxd_mulf(part_u, across_top));
    float low = vxd_addf(corners[2], vxd_mulf(part_u, across_low));
    float by_v = vxd_subf(low, top);
    float by_u = vxd_addf(across_top, vxd_mulf(part_v, vxd_subf(across_low, across_top)));
    float difference = vxd_subf(vxd_addf(top, vxd_mulf(part_v, by_v)), grey);
    float z = q[2] > 1e-3f ? q[2] : 1; /* no pair is so near */
    float inverse = vxd_divf(rule->grey_m, z);
    float gradient[3];

    gradient[0] = vxd_mulf(vxd_mulf(by_u, camera->fx), inverse);
    gradient[1] = vxd_mulf(vxd_mulf(by_v, camera->fy), inverse);
    gradient[2] =
        -vxd_divf(vxd_addf(vxd_mulf(gradient[0], q[0]), vxd_mulf(gradient[1], q[1])), z);
    row->residual = vxd_mulf(difference, rule->grey_m);
    row->weight = vxd_track_weight(rule->robust, rule->grey_scale, difference);
    vxd_track_complete(q, gradient, row);
}

/* ---- Sums ---- */

/* Sums of a level: the upper triangle of J^T W J by rows, J^T W r, and what the verdict needs. */
enum vxd_track_sum {
    VXD_TRACK_SUM_GRADIENT = 21,
    VXD_TRACK_SUM_SQUARES = 27, /* of distances to planes of inliers */
    VXD_TRACK_SUM_INLIERS = 28,
    VXD_TRACK_SUM_OVERLAP = 29, /* pixels that project to a surface */
    VXD_TRACK_SUM_VALID = 30,   /* pixels with depth */
    VXD_TRACK_SUM_DEPTH = 31,   /* of inliers' distances from the camera */
    /* Of inliers whose grey is known in both: how many, and of the image's grey, its square, and
     * the square of the difference in metres. */
    VXD_TRACK_SUM_GREYS = 32,
    VXD_TRACK_SUM_GREY = 33,
    VXD_TRACK_SUM_GREY2 = 34,
    VXD_TRACK_SUM_DIFFERENCE2 = 35,
    VXD_TRACK_N_SUMS = 36
};

/* Pixels are summed in strips: pixel i of a strip in lane i % LANES, the lanes pairwise, then the
 * strips in double by LANES of another tree. This order is what makes sums equal everywhere. */
enum {
    VXD_TRACK_LANES = 128,
    VXD_TRACK_STRIP = 512,
    VXD_TRACK_STRIP_LANES = 32
};

/* One level, as the backends get it. */
struct vxd_track_work;
struct vxd_track_level {
    struct vxd_track_image live;
    struct vxd_track_image model;
    struct vxd_track_camera camera; /* of the model */
    struct vxd_track_rule rule;
    float *strips; /* VXD_TRACK_N_SUMS x n_strips, twice */
    size_t n_strips;
    struct vxd_track_work *work;
};

VXD_HD void vxd_track_add(float *sum, float value)
{
    *sum = vxd_addf(*sum, value);
}

/* Adds a row to sums that lie `stride` apart. */
VXD_HD void vxd_track_add_row(float *sums, size_t stride, const struct vxd_track_row *row)
{
    const float w = row->weight;
    const float a = vxd_mulf(w, row->t[0]);
    const float b = vxd_mulf(w, row->t[1]);
    const float c = vxd_mulf(w, row->t[2]);
    const float d = vxd_mulf(w, row->r[0]);
    const float e = vxd_mulf(w, row->r[1]);
    const float f = vxd_mulf(w, row->r[2]);
    const float g = row->residual;

    vxd_track_add(sums, vxd_mulf(a, row->t[0]));
    vxd_track_add(sums + stride, vxd_mulf(a, row->t[1]));
    vxd_track_add(sums + 2 * stride, vxd_mulf(a, row->t[2]));
    vxd_track_add(sums + 3 * stride, vxd_mulf(a, row->r[0]));
    vxd_track_add(sums + 4 * stride, vxd_mulf(a, row->r[1]));
    vxd_track_add(sums + 5 * stride, vxd_mulf(a, row->r[2]));
    vxd_track_add(sums + 6 * stride, vxd_mulf(b, row->t[1]));
    vxd_track_add(sums + 7 * stride, vxd_mulf(b, row->t[2]));
    vxd_track_add(sums + 8 * stride, vxd_mulf(b, row->r[0]));
    vxd_track_add(sums + 9 * stride, vxd_mulf(b, row->r[1]));
    vxd_track_add(sums + 10 * stride, vxd_mulf(b, row->r[2]));
    vxd_track_add(sums + 11 * stride, vxd_mulf(c, row->t[2]));
    vxd_track_add(sums + 12 * stride, vxd_mulf(c, row->r[0]));
    vxd_track_add(sums + 13 * stride, vxd_mulf(c, row->r[1]));
    vxd_track_add(sums + 14 * stride, vxd_mulf(c, row->r[2]));
    vxd_track_add(sums + 15 * stride, vxd_mulf(d, row->r[0]));
    vxd_track_add(sums + 16 * stride, vxd_mulf(d, row->r[1]));
    vxd_track_add(sums + 17 * stride, vxd_mulf(d, row->r[2]));
    vxd_track_add(sums + 18 * stride, vxd_mulf(e, row->r[1]));
    vxd_track_add(sums + 19 * stride, vxd_mulf(e, row->r[2]));
    vxd_track_add(sums + 20 * stride, vxd_mulf(f, row->r[2]));
    vxd_track_add(sums + 21 * stride, vxd_mulf(a, g));
    vxd_track_add(sums + 22 * stride, vxd_mulf(b, g));
    vxd_track_add(sums + 23 * stride, vxd_mulf(c, g));
    vxd_track_add(sums + 24 * stride, vxd_mulf(d, g));
    vxd_track_add(sums + 25 * stride, vxd_mulf(e, g));
    vxd_track_add(sums + 26 * stride, vxd_mulf(f, g));
}

/* A pixel of the image and the pixel of the model that it projects to. */
struct vxd_track_pair {
    float q[3];  /* the image's point, moved */
    float m[3];  /* its normal, turned */
    float at[3]; /* the model's point and normal */
    float n[3];
    float grey;       /* of the image */
    float corners[4]; /* of the model, around the projection */
    float part_u;     /* of the projection between the corners */
    float part_v;
    int is_valid;   /* the pixel has depth */
    int is_overlap; /* both are there, with normals */
};

/* Moves pixel `i` of the image. Returns the model's pixel, 0 where there is none (is_overlap is
 * 0 then); *corner is the pixel of the first corner, -1 where the four are not in the image. */
VXD_HD int32_t vxd_track_associate(const struct vxd_track_level *level, const float T[12],
                                   size_t i, struct vxd_track_pair *pair, int32_t *corner)
{
    const float *planes = level->live.planes;
    size_t n = level->live.n;
    const float p[3] = {planes[i], planes[n + i], planes[2 * n + i]};
    const float normal[3] = {planes[3 * n + i], planes[4 * n + i], planes[5 * n + i]};
    float u;
    float v;
    int is_inside;
    int has_normal = vxd_track_dot(normal, normal) > 0.5f;
    int has_corners;
    int32_t pixel;
    int32_t left;
    int32_t top;

    vxd_track_move(T, p, pair->q);
    vxd_track_rotate(T, normal, pair->m);
    pair->grey = planes[6 * n + i];
    is_inside = vxd_track_project(&level->camera, pair->q, &u, &v);
    pair->is_valid = p[2] > 0;
    pair->is_overlap = is_inside & pair->is_valid & has_normal;
    left = (int32_t)u; /* of -0.5 to 0 it is 0 */
    top = (int32_t)v;
    has_corners = is_inside & (u >= 0) & (v >= 0) & (left < level->camera.width - 1) &
                  (top < level->camera.height - 1);
    pair->part_u = vxd_subf(u, (float)left);
    pair->part_v = vxd_subf(v, (float)top);
    *corner = has_corners ? top * level->camera.width + left : -1;
    pixel = vxd_track_pixel(&level->camera, u, v);
    return pair->is_overlap ? pixel : 0;
}

/* Reads the model's pixel of a pair. */
VXD_HD void vxd_track_fetch(const struct vxd_track_level *level, int32_t pixel,
                            struct vxd_track_pair *pair)
{
    const float *planes = level->model.planes + pixel;
    size_t n = level->model.n;

    pair->at[0] = planes[0];
    pair->at[1] = planes[n];
    pair->at[2] = planes[2 * n];
    pair->n[0] = planes[3 * n];
    pair->n[1] = planes[4 * n];
    pair->n[2] = planes[5 * n];
}

/* Reads the four corners; all are -1 where there are none. */
VXD_HD void vxd_track_fetch_corners(const struct vxd_track_level *level, int32_t corner,
                                    struct vxd_track_pair *pair)
{
    const float *grey = level->model.planes + VXD_TRACK_GREY * level->model.n;
    size_t at = (size_t)(corner >= 0 ? corner : 0);
    size_t width = (size_t)(corner >= 0 ? level->camera.width : 0);
    size_t right = corner >= 0 ? 1 : 0;

    pair->corners[0] = corner >= 0 ? grey[at] : -1;
    pair->corners[1] = grey[at + right];
    pair->corners[2] = grey[at + width];
    pair->corners[3] = grey[at + width + right];
}

/* Adds what a pair says to sums that lie `stride` apart. With planes and greys there are two additions
 * to most sums: those of a pixel are added to zeros first. */
VXD_HD void vxd_track_add_pair(const struct vxd_track_level *level,
                               const struct vxd_track_pair *pair, float *sums,
                               size_t stride)
{
    const struct vxd_track_rule *rule = &level->rule;
    int has_normal = vxd_track_dot(pair->n, pair->n) > 0.5f;
    int is_overlap = pair->is_overlap & (pair->at[2] > 0) & has_normal;
    int is_inlier =
        is_overlap & vxd_track_is_pair(rule, pair->q, pair->m, pair->at, pair->n);
    float one = is_inlier ? 1.0f : 0.0f;
    struct vxd_track_row row;

    vxd_track_plane_row(rule, pair->q, pair->at, pair->n, &row);
    vxd_track_add(sums + VXD_TRACK_SUM_SQUARES * stride,
                  vxd_mulf(one, vxd_mulf(row.residual, row.residual)));
    vxd_track_add(sums + VXD_TRACK_SUM_INLIERS * stride, one);
    vxd_track_add(sums + VXD_TRACK_SUM_OVERLAP * stride, is_overlap ? 1.0f : 0.0f);
    vxd_track_add(sums + VXD_TRACK_SUM_VALID * stride, pair->is_valid ? 1.0f : 0.0f);
    vxd_track_add(sums + VXD_TRACK_SUM_DEPTH * stride, vxd_mulf(one, pair->q[2]));
    if (rule->use_plane != 0) {
        row.weight = vxd_mulf(one, row.weight);
        vxd_track_add_row(sums, stride, &row);
    }
    if (rule->use_grey != 0) {
        int is_grey = (pair->corners[0] >= 0) & (pair->corners[1] >= 0) &
                      (pair->corners[2] >= 0) & (pair->corners[3] >= 0) &
                      (pair->grey >= 0) & is_inlier;
        float known = is_grey ? 1.0f : 0.0f;
        float grey = vxd_mulf(known, pair->grey);

        vxd_track_grey_row(rule, &level->camera, pair->q, pair->part_u, pair->part_v,
                           pair->corners, pair->grey, &row);
        vxd_track_add(sums + VXD_TRACK_SUM_GREYS * stride, known);
        vxd_track_add(sums + VXD_TRACK_SUM_GREY * stride, grey);
        vxd_track_add(sums + VXD_TRACK_SUM_GREY2 * stride, vxd_mulf(grey, pair->grey));
        vxd_track_add(sums + VXD_TRACK_SUM_DIFFERENCE2 * stride,
                      vxd_mulf(known, vxd_mulf(row.residual, row.residual)));
        row.weight = vxd_mulf(known, row.weight);
        vxd_track_add_row(sums, stride, &row);
    }
}

/* What Gauss-Newton keeps, in device memory. Of 12 numbers, three rows of four are the rotation and
 * the translation. */
struct vxd_track_work {
    double pose[12];
    float T[12]; /* the same in float32, for the pixels */
    double sums[VXD_TRACK_N_SUMS];
    int32_t is_done; /* the step was short: the level is at its end */
    int32_t is_singular;
    int32_t n_iterations;
    int32_t unused;
};

/* The work at the prior pose. */
VXD_HD void vxd_track_begin(struct vxd_track_work *work)
{
    for (int i = 0; i < 12; i++) {
        work->pose[i] = i % 5 == 0 ? 1 : 0;
        work->T[i] = i % 5 == 0 ? 1.0f : 0.0f;
    }
    for (int i = 0; i < VXD_TRACK_N_SUMS; i++) {
        work->sums[i] = 0;
    }
    work->is_done = 0;
    work->is_singular = 0;
    work->n_iterations = 0;
    work->unused = 0;
}

/* Steps shorter than this, in metres and radians, end a level. */
#define VXD_TRACK_SHORT 2e-5

VXD_HD double vxd_track_subd(double a, double b)
{
    return vxd_addd(a, -b);
}

/* Solves H x = -g by LDL^T; false where H is not positive definite in double. */
VXD_HD bool vxd_track_solve(const double sums[VXD_TRACK_N_SUMS], double x[6])
{
    double l[6][6];
    double d[6];
    double inverse[6]; /* a division takes as long as all other operations of a column */
    int at = 0;
    bool is_positive = true;

    for (int i = 0; i < 6; i++) {
        for (int j = i; j < 6; j++) {
            l[j][i] = sums[at++];
        }
    }
    for (int j = 0; j < 6; j++) {
        double whole = l[j][j];

        d[j] = whole;
        for (int k = 0; k < j; k++) {
            d[j] = vxd_track_subd(d[j], vxd_muld(vxd_muld(l[j][k], l[j][k]), d[k]));
        }
        is_positive = is_positive && d[j] > whole * 1e-7 && whole > 0;
        inverse[j] = 1 / d[j];
        for (int i = j + 1; i < 6; i++) {
            for (int k = 0; k < j; k++) {
                l[i][j] =
                    vxd_track_subd(l[i][j], vxd_muld(vxd_muld(l[i][k], l[j][k]), d[k]));
            }
            l[i][j] = vxd_muld(l[i][j], inverse[j]);
        }
    }
    for (int i = 0; i < 6; i++) {
        x[i] = -sums[VXD_TRACK_SUM_GRADIENT + i];
        for (int k = 0; k < i; k++) {
            x[i] = vxd_track_subd(x[i], vxd_muld(l[i][k], x[k]));
        }
    }
    for (int i = 5; i >= 0; i--) {
        x[i] = vxd_muld(x[i], inverse[i]);
        for (int k = i + 1; k < 6; k++) {
            x[i] = vxd_track_subd(x[i], vxd_muld(l[k][i], x[k]));
        }
    }
    return is_positive;
}

/* The rotation of a small vector: that of the quaternion (1, w / 2). */
VXD_HD void vxd_track_rotation(const double w[3], double out[9])
{
    double x = vxd_muld(w[0], 0.5);
    double y = vxd_muld(w[1], 0.5);
    double z = vxd_muld(w[2], 0.5);
    double xx = vxd_muld(x, x);
    double yy = vxd_muld(y, y);
    double zz = vxd_muld(z, z);
    double s = 2 / vxd_addd(vxd_addd(vxd_addd(xx, yy), zz), 1);

    out[0] = vxd_track_subd(1, vxd_muld(s, vxd_addd(yy, zz)));
    out[1] = vxd_muld(s, vxd_track_subd(vxd_muld(x, y), z));
    out[2] = vxd_muld(s, vxd_addd(vxd_muld(x, z), y));
    out[3] = vxd_muld(s, vxd_addd(vxd_muld(x, y), z));
    out[4] = vxd_track_subd(1, vxd_muld(s, vxd_addd(xx, zz)));
    out[5] = vxd_muld(s, vxd_track_subd(vxd_muld(y, z), x));
    out[6] = vxd_muld(s, vxd_track_subd(vxd_muld(x, z), y));
    out[7] = vxd_muld(s, vxd_addd(vxd_muld(y, z), x));
    out[8] = vxd_track_subd(1, vxd_muld(s, vxd_addd(xx, yy)));
}

/* pose = exp(x) * pose */
VXD_HD void vxd_track_apply(const double x[6], double pose[12])
{
    double r[9];

    vxd_track_rotation(x + 3, r);
    for (int j = 0; j < 4; j++) {
        double column[3] = {pose[j], pose[4 + j], pose[8 + j]};

        for (int i = 0; i < 3; i++) {
            const double *row = r + 3 * (size_t)i;

            pose[4 * i + j] = vxd_addd(
                vxd_addd(vxd_muld(row[0], column[0]), vxd_muld(row[1], column[1])),
                vxd_muld(row[2], column[2]));
        }
    }
    for (int i = 0; i < 3; i++) {
        pose[4 * i + 3] = vxd_addd(pose[4 * i + 3], x[i]);
    }
}

/* One step with the sums in place. */
VXD_HD void vxd_track_step(struct vxd_track_work *work)
{
    double x[6];
    bool is_short = true;

    work->n_iterations++;
    if (!vxd_track_solve(work->sums, x)) {
        work->is_singular = 1;
        return;
    }
    for (int i = 0; i < 6; i++) {
        if (!(x[i] > -1 && x[i] < 1)) { /* NaN, too */
            work->is_singular = 1;
            return;
        }
        is_short = is_short && x[i] > -VXD_TRACK_SHORT && x[i] < VXD_TRACK_SHORT;
    }
    vxd_track_apply(x, work->pose);
    for (int i = 0; i < 12; i++) {
        work->T[i] = (float)work->pose[i];
    }
    work->is_done = is_short ? 1 : 0;
}

#endif
