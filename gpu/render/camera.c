// SPDX-License-Identifier: Apache-2.0
/* Where a camera stands, and what is up there. */
#include "gpu/render/render.h"

#include <math.h>
#include <string.h>

#include "gpu/render/render_backends.h"

#define PI 3.14159265358979323846

static double dot(const double a[3], const double b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static void cross(const double a[3], const double b[3], double out[3])
{
    for (int i = 0; i < 3; i++) {
        int j = (i + 1) % 3;
        int k = (i + 2) % 3;

        out[i] = a[j] * b[k] - a[k] * b[j];
    }
}

bool vxd_render_normalize(double v[3])
{
    double largest = fmax(fmax(fabs(v[0]), fabs(v[1])), fabs(v[2]));
    double length;

    if (!(largest > 0) || !isfinite(largest)) {
        return false;
    }
    for (int i = 0; i < 3; i++) {
        v[i] /= largest;
    }
    length = sqrt(dot(v, v));
    for (int i = 0; i < 3; i++) {
        v[i] /= length;
    }
    return true;
}

void vxd_render_find_axes(const struct vxd_render_camera *camera,
                          struct vxd_render_axes *out)
{
    static const double others[2][3] = {{0, 0, 1}, {0, 1, 0}};
    double up[3];

    for (int i = 0; i < 3; i++) {
        out->forward[i] = camera->target[i] - camera->eye[i];
        up[i] = camera->up[i];
    }
    (void)vxd_render_normalize(out->forward);
    (void)vxd_render_normalize(up);
    for (int k = 0;; k++) {
        cross(out->forward, up, out->right);
        /* Nearer to the view than this, rounding would turn the picture. */
        if (dot(out->right, out->right) > 1e-20 || k == 2) {
            break;
        }
        memcpy(up, others[k], sizeof up);
    }
    (void)vxd_render_normalize(out->right);
    cross(out->right, out->forward, out->up);
    if (camera->kind >= VXD_RENDER_EQUIRECTANGULAR) {
        /* Level: up is up, and forward what of the view is across it. */
        memcpy(out->up, up, sizeof up);
        cross(up, out->right, out->forward);
    }
}

void vxd_render_set_sky(struct vxd_render_picture *picture)
{
    static const double sun[3] = {-0.5, -0.35, 0.8};

    memcpy(picture->sun_direction, sun, sizeof sun);
    picture->sun = 0.8;
    picture->ambient = 0.4;
    picture->sky_zenith = 0x6f9ad3;
    picture->sky_horizon = 0xe3ebf2;
    picture->sky_ground = 0xbfc4c9;
}

/* How far from the target the eye has to be, against `from`, that all corners of the box are in a
 * picture: its half height and half width where the view has length 1. */
static double distance_for(const double low[3], const double high[3],
                           const double target[3], const double from[3], double half,
                           double aspect, double least)
{
    const double across = sqrt(from[0] * from[0] + from[1] * from[1]);
    const double right[3] = {-from[1] / across, from[0] / across, 0};
    const double up[3] = {-from[0] * from[2] / across, -from[1] * from[2] / across,
                          across};
    double distance = least;

    for (int k = 0; k < 8; k++) {
        double corner[3];
        double needed;

        for (int i = 0; i < 3; i++) {
            corner[i] = ((k >> i & 1) != 0 ? high[i] : low[i]) - target[i];
        }
        needed = fmax(fabs(dot(corner, right)) / (half * aspect),
                      fabs(dot(corner, up)) / half);
        distance = fmax(distance, needed + dot(corner, from));
    }
    return distance;
}

double vxd_render_box_radius(const double low[3], const double high[3])
{
    const double diagonal[3] = {high[0] - low[0], high[1] - low[1], high[2] - low[2]};

    return sqrt(dot(diagonal, diagonal)) / 2;
}

void vxd_render_stand_back(const struct vxd_render_picture *picture, int side,
                           const double low[3], const double high[3],
                           const double target[3], double least, double eye[3])
{
    /* Of length 1. */
    const double from[3] = {(side & 1) != 0 ? 0.62 : -0.62,
                            (side & 2) != 0 ? 0.54 : -0.54,
                            (side & 4) != 0 ? -0.569386 : 0.569386};
    const struct vxd_render_camera *camera = &picture->camera;
    double radius = vxd_render_box_radius(low, high);
    double half = tan(camera->fov_y_deg * PI / 360);
    double aspect = (double)picture->width / picture->height;
    double distance = 2 * radius;

    if (camera->kind >= VXD_RENDER_EQUIRECTANGULAR) {
        eye[0] = target[0];
        eye[1] = target[1];
        eye[2] = high[2] + 0.05 * radius + least;
        return;
    }
    if (camera->kind == VXD_RENDER_PINHOLE) {
        distance = 1.03 * distance_for(low, high, target, from, half, aspect, least);
    }
    for (int i = 0; i < 3; i++) {
        eye[i] = target[i] + from[i] * distance;
        eye[i] = fmin(fmax(eye[i], -VXD_RENDER_MAX_PLACE), VXD_RENDER_MAX_PLACE);
    }
}
