// SPDX-License-Identifier: Apache-2.0
/* The image formation model of equations 16 to 18 and its derivatives, for both backends. The
 * test of the derivatives compiles the same lines in double. No operation is contracted (the .cu is
 * compiled with --fmad=false), so both backends give the same bits. */
#ifndef VXD_GPU_REFINE_REFINE_MATH_H
#define VXD_GPU_REFINE_REFINE_MATH_H

#include "gpu/core/core_math.h"

#ifndef VXD_REFINE_REAL
#define VXD_REFINE_REAL float
#define VXD_REFINE_SQRT sqrtf
#endif
typedef VXD_REFINE_REAL vxd_refine_real;

#define VXD_REFINE_HUBER ((vxd_refine_real)0.03)
#define VXD_REFINE_CHROMA_SCALE ((vxd_refine_real)40)
/* Shorter gradients have no direction that means anything. */
#define VXD_REFINE_MIN_GRADIENT ((vxd_refine_real)0.1)

/* ---- Spherical harmonics of three bands ---- */

VXD_HD void vxd_refine_harmonics(const vxd_refine_real n[3], vxd_refine_real h[9])
{
    const vxd_refine_real k1 = (vxd_refine_real)0.48860251190291992;
    const vxd_refine_real k2 = (vxd_refine_real)1.0925484305920792;

    h[0] = (vxd_refine_real)0.28209479177387814;
    h[1] = k1 * n[1];
    h[2] = k1 * n[2];
    h[3] = k1 * n[0];
    h[4] = k2 * n[0] * n[1];
    h[5] = k2 * n[1] * n[2];
    h[6] = (vxd_refine_real)0.31539156525252005 * (3 * n[2] * n[2] - 1);
    h[7] = k2 * n[0] * n[2];
    h[8] = (vxd_refine_real)0.54627421529603959 * (n[0] * n[0] - n[1] * n[1]);
}

/* The shading of a normal in a light, and its derivative by the normal. */
VXD_HD vxd_refine_real vxd_refine_shade(const vxd_refine_real light[9],
                                        const vxd_refine_real n[3],
                                        vxd_refine_real by_normal[3])
{
    const vxd_refine_real k1 = (vxd_refine_real)0.48860251190291992;
    const vxd_refine_real k2 = (vxd_refine_real)1.0925484305920792;
    const vxd_refine_real k3 = (vxd_refine_real)0.31539156525252005 * 6;
    const vxd_refine_real k4 = (vxd_refine_real)0.54627421529603959 * 2;
    vxd_refine_real h[9];
    vxd_refine_real sum = 0;

    vxd_refine_harmonics(n, h);
    for (int i = 0; i < 9; i++) {
        sum += light[i] * h[i];
    }
    by_normal[0] = light[3] * k1 + light[4] * k2 * n[1] + light[7] * k2 * n[2] +
                   light[8] * k4 * n[0];
    by_normal[1] = light[1] * k1 + light[4] * k2 * n[0] + light[5] * k2 * n[2] -
                   light[8] * k4 * n[1];
    by_normal[2] = light[2] * k1 + light[5] * k2 * n[1] + light[6] * k3 * n[2] +
                   light[7] * k2 * n[0];
    return sum;
}

/* ---- Normals (equation 18, normalized) ---- */

/* near: the distances at -x +x -y +y -z +z, voxels. Returns 1 / (2 |gradient|), or 0 where the
 * gradient means nothing. */
VXD_HD vxd_refine_real vxd_refine_normal(const vxd_refine_real near_d[6],
                                         vxd_refine_real n[3])
{
    vxd_refine_real squares = 0;
    vxd_refine_real length;

    for (int k = 0; k < 3; k++) {
        n[k] = (near_d[2 * (size_t)k + 1] - near_d[2 * (size_t)k]) / 2;
        squares += n[k] * n[k];
    }
    length = VXD_REFINE_SQRT(squares);
    if (!(length >= VXD_REFINE_MIN_GRADIENT)) {
        n[0] = 0;
        n[1] = 0;
        n[2] = 0;
        return 0;
    }
    for (int k = 0; k < 3; k++) {
        n[k] /= length;
    }
    return 1 / (2 * length);
}

/* ---- Cameras ---- */

/* A keyframe as kernels see it: an image without distortion, and a pose in voxels. */
struct vxd_refine_eye {
    vxd_refine_real rotation[9]; /* from the voxel set to the camera */
    vxd_refine_real translation[3];
    vxd_refine_real fx;
    vxd_refine_real fy;
    vxd_refine_real cx;
    vxd_refine_real cy;
    int width;
    int height;
    const float *grey;   /* 0 to 1 */
    const uint8_t *rgb8; /* of the same size */
};

/* The bilinear value of a picture and its derivative by u and v; positions outside count as its
 * rim. */
VXD_HD vxd_refine_real vxd_refine_sample(const float *grey, int width, int height,
                                         vxd_refine_real u, vxd_refine_real v,
                                         vxd_refine_real *by_u, vxd_refine_real *by_v)
{
    vxd_refine_real most_u = (vxd_refine_real)(width - 1);
    vxd_refine_real most_v = (vxd_refine_real)(height - 1);
    const float *at;
    vxd_refine_real top;
    vxd_refine_real bottom;
    int x;
    int y;

    u = u > 0 ? (u < most_u ? u : most_u) : 0;
    v = v > 0 ? (v < most_v ? v : most_v) : 0;
    x = (int)u < width - 2 ? (int)u : width - 2;
    y = (int)v < height - 2 ? (int)v : height - 2;
    u -= (vxd_refine_real)x;
    v -= (vxd_refine_real)y;
    at = grey + (size_t)y * (size_t)width + (size_t)x;
    top = (vxd_refine_real)at[0] + ((vxd_refine_real)at[1] - (vxd_refine_real)at[0]) * u;
    bottom = (vxd_refine_real)at[width] +
             ((vxd_refine_real)at[width + 1] - (vxd_refine_real)at[width]) * u;
    *by_u = ((vxd_refine_real)at[1] - (vxd_refine_real)at[0]) * (1 - v) +
            ((vxd_refine_real)at[width + 1] - (vxd_refine_real)at[width]) * v;
    *by_v = bottom - top;
    return top + (bottom - top) * v;
}

/* A point of the voxel set in the camera's frame. */
VXD_HD void vxd_refine_to_camera(const struct vxd_refine_eye *eye,
                                 const vxd_refine_real x[3], vxd_refine_real out[3])
{
    for (int k = 0; k < 3; k++) {
        out[k] = eye->rotation[3 * (size_t)k] * x[0] +
                 eye->rotation[3 * (size_t)k + 1] * x[1] +
                 eye->rotation[3 * (size_t)k + 2] * x[2] + eye->translation[k];
    }
}

/* The intensity that a keyframe shows of a point, and its derivative by the point; false behind the
 * camera. */
VXD_HD int vxd_refine_look(const struct vxd_refine_eye *eye, const vxd_refine_real x[3],
                           vxd_refine_real *intensity, vxd_refine_real by_x[3])
{
    vxd_refine_real p[3];
    vxd_refine_real by_u;
    vxd_refine_real by_v;
    vxd_refine_real g[3];
    vxd_refine_real inverse;

    vxd_refine_to_camera(eye, x, p);
    if (!(p[2] > (vxd_refine_real)0.5)) {
        return 0;
    }
    inverse = 1 / p[2];
    *intensity = vxd_refine_sample(eye->grey, eye->width, eye->height,
                                   eye->fx * (p[0] * inverse) + eye->cx,
                                   eye->fy * (p[1] * inverse) + eye->cy, &by_u, &by_v);
    g[0] = by_u * eye->fx * inverse;
    g[1] = by_v * eye->fy * inverse;
    g[2] = -(g[0] * p[0] + g[1] * p[1]) * inverse;
    for (int k = 0; k < 3; k++) {
        by_x[k] = eye->rotation[k] * g[0] + eye->rotation[3 + k] * g[1] +
                  eye->rotation[6 + k] * g[2];
    }
    return 1;
}

/* ---- Derivatives of a voxel's residual B(x) - I(x - d n) ----
 *
 * It is a function of the albedo, of the distance and of the six around it. Its change is
 * z[0] - g * z[1..3], where z[0] is the change of the shading and z[1..3] that of the surface's
 * point, which no keyframe has a part in, and g the image's derivative there. */
struct vxd_refine_node {
    vxd_refine_real normal[3];
    vxd_refine_real inverse;  /* 1 / (2 |gradient|); 0: no normal, and no data term */
    vxd_refine_real shade;    /* without albedo */
    vxd_refine_real slope[3]; /* albedo * derivative of the shading by the normal */
};

/* z of changes of albedo and distance, and of the differences of the distances on each axis. */
VXD_HD void vxd_refine_push(const struct vxd_refine_node *node, vxd_refine_real distance,
                            vxd_refine_real d_albedo, vxd_refine_real d_distance,
                            const vxd_refine_real difference[3], vxd_refine_real z[4])
{
    const vxd_refine_real *n = node->normal;
    vxd_refine_real along =
        n[0] * difference[0] + n[1] * difference[1] + n[2] * difference[2];

    z[0] = node->shade * d_albedo;
    for (int k = 0; k < 3; k++) {
        vxd_refine_real turned = (difference[k] - n[k] * along) * node->inverse;

        z[0] += node->slope[k] * turned;
        z[1 + k] = -(d_distance * n[k] + distance * turned);
    }
}

/* The transpose: from z to albedo, distance and differences. */
VXD_HD void vxd_refine_pull(const struct vxd_refine_node *node, vxd_refine_real distance,
                            const vxd_refine_real z[4], vxd_refine_real *d_albedo,
                            vxd_refine_real *d_distance, vxd_refine_real difference[3])
{
    const vxd_refine_real *n = node->normal;
    vxd_refine_real turned[3];
    vxd_refine_real along = 0;

    *d_albedo = node->shade * z[0];
    *d_distance = -(n[0] * z[1] + n[1] * z[2] + n[2] * z[3]);
    for (int k = 0; k < 3; k++) {
        turned[k] = (node->slope[k] * z[0] - distance * z[1 + k]) * node->inverse;
        along += n[k] * turned[k];
    }
    for (int k = 0; k < 3; k++) {
        difference[k] = turned[k] - n[k] * along;
    }
}

/* ---- Weights ---- */

/* Huber's weight of a residual, and its energy. */
VXD_HD vxd_refine_real vxd_refine_huber(vxd_refine_real r, vxd_refine_real *energy)
{
    vxd_refine_real size = r < 0 ? -r : r;

    if (size <= VXD_REFINE_HUBER) {
        *energy = r * r / 2;
        return 1;
    }
    *energy = VXD_REFINE_HUBER * (size - VXD_REFINE_HUBER / 2);
    return VXD_REFINE_HUBER / size;
}

/* The weight of two voxels' difference of albedo, by their mean colours. */
VXD_HD vxd_refine_real vxd_refine_chroma_weight(const vxd_refine_real a[3],
                                                const vxd_refine_real b[3])
{
    vxd_refine_real sum_a = a[0] + a[1] + a[2] + (vxd_refine_real)1e-3;
    vxd_refine_real sum_b = b[0] + b[1] + b[2] + (vxd_refine_real)1e-3;
    vxd_refine_real squares = 0;
    vxd_refine_real base;

    for (int k = 0; k < 3; k++) {
        vxd_refine_real difference = a[k] / sum_a - b[k] / sum_b;

        squares += difference * difference;
    }
    base = 1 / (1 + VXD_REFINE_CHROMA_SCALE * VXD_REFINE_SQRT(squares));
    return base * base * base;
}

/* Weight of corner c (x slowest, z fastest) of a cube at a place in it, 0 to 1 on each axis. */
VXD_HD vxd_refine_real vxd_refine_corner_weight(const vxd_refine_real at[3], int c)
{
    return ((c & 4) != 0 ? at[0] : 1 - at[0]) * ((c & 2) != 0 ? at[1] : 1 - at[1]) *
           ((c & 1) != 0 ? at[2] : 1 - at[2]);
}

#endif
