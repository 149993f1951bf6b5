// SPDX-License-Identifier: Apache-2.0
#include "tests/support/track/track_scene.h"
#include "tests/support/volume/volume_helpers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FAR 1e9
#define PI 3.14159265358979323846

/* Boxes from low to high; the first one is the room, seen from inside. */
static const double boxes[][6] = {
    {-2, -1.2, -2, 2, 1.2, 2},          {-1.6, 0.4, 1.0, -0.7, 1.2, 1.7},
    {0.6, -0.1, 1.3, 1.2, 1.2, 1.8},    {1.2, 0.5, -0.6, 1.9, 1.2, 0.2},
    {-1.9, 0.2, -0.9, -1.3, 1.2, -0.1}, {-0.5, 0.6, -1.8, 0.6, 1.2, -1.3},
    {-2, -0.9, 0.2, -1.7, -0.5, 0.9},   {1.0, -1.0, -1.9, 1.5, 0.2, -1.6}};
static const double balls[][4] = {{0.0, 0.7, 1.5, 0.45},
                                  {-1.1, 0.1, 1.3, 0.28},
                                  {1.5, 0.25, -0.2, 0.25},
                                  {-1.3, 0.75, -1.5, 0.4},
                                  {1.6, -0.7, 1.0, 0.35}};

struct vxd_volume_camera track_camera(int width, int height)
{
    return (struct vxd_volume_camera){.width = width,
                                      .height = height,
                                      .fx = 0.9 * width,
                                      .fy = 0.9 * width,
                                      .cx = 0.5 * width - 0.5,
                                      .cy = 0.5 * height - 0.5};
}

struct vxd_volume_pose track_pose(double x, double y, double z, double yaw, double pitch,
                                  double roll)
{
    double cy = cos(yaw * PI / 180);
    double sy = sin(yaw * PI / 180);
    double cp = cos(pitch * PI / 180);
    double sp = sin(pitch * PI / 180);
    double cr = cos(roll * PI / 180);
    double sr = sin(roll * PI / 180);
    /* About y, then x, then z of the camera. */
    const double r[9] = {
        cy * cr + sy * sp * sr, sy * sp * cr - cy * sr, sy * cp, cp * sr, cp * cr, -sp,
        cy * sp * sr - sy * cr, cy * sp * cr + sy * sr, cy * cp};
    struct vxd_volume_pose pose = {.translation = {x, y, z}};

    memcpy(pose.rotation, r, sizeof r);
    return pose;
}

struct vxd_volume_pose track_loop_pose(int i, int n)
{
    double a = 2 * PI * i / n;

    return track_pose(0.3 * sin(a), 0.06 * sin(2 * a), -0.3 - 0.2 * (1 - cos(a)),
                      12 * sin(a), 3 * sin(2 * a) + 5, 3 * sin(a));
}

/* ---- Rays ---- */

static void hit_box(const double *box, bool from_inside, const double o[3],
                    const double d[3], double *t)
{
    double enter = -FAR;
    double leave = FAR;
    double at;

    for (int i = 0; i < 3; i++) {
        double a = (box[i] - o[i]) / d[i];
        double b = (box[3 + i] - o[i]) / d[i];

        enter = fmax(enter, fmin(a, b));
        leave = fmin(leave, fmax(a, b));
    }
    at = from_inside ? leave : enter;
    if (enter <= leave && at > 1e-6 && at < *t) {
        *t = at;
    }
}

static void hit_ball(const double *ball, const double o[3], const double d[3], double *t)
{
    double m[3] = {o[0] - ball[0], o[1] - ball[1], o[2] - ball[2]};
    double a = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
    double b = d[0] * m[0] + d[1] * m[1] + d[2] * m[2];
    double c = m[0] * m[0] + m[1] * m[1] + m[2] * m[2] - ball[3] * ball[3];
    double root = b * b - a * c;

    if (root >= 0) {
        double at = (-b - sqrt(root)) / a;

        if (at > 1e-6 && at < *t) {
            *t = at;
        }
    }
}

static double cast(enum track_scene scene, const double o[3], const double d[3])
{
    double t = FAR;

    if (scene != TRACK_ROOM) {
        double at = (1.5 - o[2]) / d[2];

        return at > 0 ? at : FAR;
    }
    for (size_t i = 0; i < sizeof boxes / sizeof boxes[0]; i++) {
        hit_box(boxes[i], i == 0, o, d, &t);
    }
    for (size_t i = 0; i < sizeof balls / sizeof balls[0]; i++) {
        hit_ball(balls[i], o, d, &t);
    }
    return t;
}

/* A smooth pattern of waves of 0.2 to 0.7 m. */
static void paint(enum track_scene scene, const double p[3], uint8_t out[3])
{
    for (int c = 0; c < 3; c++) {
        double wave = sin(9 * p[0] + 5 * p[1] + c) + sin(13 * p[1] - 7 * p[2] + 2 * c) +
                      sin(11 * p[2] + 17 * p[0] - 6 * p[1]);

        out[c] = scene == TRACK_WALL ? 128 : (uint8_t)lround(128 + 38 * wave);
    }
}

/* Nearly normal: the sum of four uniform numbers. */
static double random_normal(uint64_t *state)
{
    double sum = 0;

    for (int i = 0; i < 4; i++) {
        sum += (double)gpu_random_float(state, -1, 1);
    }
    return sum * sqrt(0.75);
}

void track_shoot(enum track_scene scene, const struct vxd_volume_camera *camera,
                 const struct vxd_volume_pose *pose, double noise, uint64_t seed,
                 struct track_shot *out)
{
    size_t n = (size_t)camera->width * (size_t)camera->height;
    const double *r = pose->rotation;

    out->depth = gpu_alloc(n * sizeof *out->depth);
    out->colour = gpu_alloc(3 * n);
    for (size_t i = 0; i < n; i++) {
        double x;
        double y;
        double d[3];
        double p[3];
        double z;

        volume_ray(camera, (double)(i % (size_t)camera->width),
                   (double)(i / (size_t)camera->width), &x, &y);
        for (int k = 0; k < 3; k++) {
            d[k] = r[3 * k] * x + r[3 * k + 1] * y + r[3 * k + 2];
        }
        z = cast(scene, pose->translation, d);
        for (int k = 0; k < 3; k++) {
            p[k] = pose->translation[k] + z * d[k];
        }
        paint(scene, p, out->colour + 3 * i);
        for (int k = 0; scene == TRACK_WALL && k < 3; k++) { /* what a sensor adds */
            out->colour[3 * i + (size_t)k] =
                (uint8_t)lround(128 + 3 * random_normal(&seed));
        }
        z += noise * z * z * random_normal(&seed);
        out->depth[i] = z < 100 ? (float)z : 0;
    }
    out->frame = (struct vxd_volume_frame){.camera = *camera,
                                           .T_map_camera = *pose,
                                           .depth = out->depth,
                                           .dtype = VXD_FLOAT32,
                                           .depth_max_m = 5,
                                           .colour = out->colour};
}

void track_shot_free(struct track_shot *shot)
{
    free(shot->depth);
    free(shot->colour);
}

/* ---- Poses ---- */

double track_apart_m(const struct vxd_volume_pose *a, const struct vxd_volume_pose *b)
{
    double sum = 0;

    for (int i = 0; i < 3; i++) {
        sum += (a->translation[i] - b->translation[i]) *
               (a->translation[i] - b->translation[i]);
    }
    return sqrt(sum);
}

double track_apart_deg(const struct vxd_volume_pose *a, const struct vxd_volume_pose *b)
{
    double sum = 0;

    for (int i = 0; i < 9; i++) { /* the chord, which is exact for small angles */
        sum += (a->rotation[i] - b->rotation[i]) * (a->rotation[i] - b->rotation[i]);
    }
    return 2 * asin(fmin(sqrt(sum / 8), 1)) * 180 / PI;
}
