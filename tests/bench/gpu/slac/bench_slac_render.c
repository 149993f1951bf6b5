// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/gpu/slac/bench_slac_render.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/slac/slac_scene.h"
#include "tests/support/track/track_scene.h"

#define NEAR 0.05
#define PI 3.14159265358979323846

bool bench_mesh_read(const char *path, struct bench_mesh *out)
{
    FILE *file = fopen(path, "rb");
    long n_bytes;

    *out = (struct bench_mesh){0};
    if (file == NULL || fseek(file, 0, SEEK_END) != 0 || (n_bytes = ftell(file)) < 36 ||
        fseek(file, 0, SEEK_SET) != 0) {
        (void)fprintf(stderr, "bench_slac: %s: no triangles there\n", path);
        if (file != NULL) {
            (void)fclose(file);
        }
        return false;
    }
    out->n = (size_t)n_bytes / 36;
    out->corners = gpu_alloc(out->n * 36);
    if (fread(out->corners, 36, out->n, file) != out->n) {
        out->n = 0;
    }
    (void)fclose(file);
    return out->n > 0;
}

/* ---- Poses ---- */

struct vxd_volume_pose bench_pose_times(const struct vxd_volume_pose *a,
                                        const struct vxd_volume_pose *b)
{
    struct vxd_volume_pose out = {{0}, {0}};

    for (int i = 0; i < 3; i++) {
        out.translation[i] = a->translation[i];
        for (int k = 0; k < 3; k++) {
            out.translation[i] += a->rotation[3 * i + k] * b->translation[k];
            for (int j = 0; j < 3; j++) {
                out.rotation[3 * i + j] +=
                    a->rotation[3 * i + k] * b->rotation[3 * k + j];
            }
        }
    }
    return out;
}

struct vxd_volume_pose bench_pose_inverse(const struct vxd_volume_pose *a)
{
    struct vxd_volume_pose out = {{0}, {0}};

    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
            out.rotation[3 * i + j] = a->rotation[3 * j + i];
            out.translation[i] -= a->rotation[3 * j + i] * a->translation[j];
        }
    }
    return out;
}

struct vxd_volume_pose bench_path_pose(const double middle[3], size_t i, size_t n)
{
    /* Camera x right, y down, z forward, in a map with z up. */
    static const struct vxd_volume_pose level = {{1, 0, 0, 0, 0, 1, 0, -1, 0}, {0, 0, 0}};
    double t = (double)i / (double)n;
    struct vxd_volume_pose local =
        track_pose(0.5 * sin(4 * PI * t), 0.15 * sin(22 * t), 0.5 * cos(4 * PI * t),
                   720 * t, 20 * sin(31 * t), 85 * sin(23 * t));
    struct vxd_volume_pose pose = bench_pose_times(&level, &local);

    for (int a = 0; a < 3; a++) {
        pose.translation[a] += middle[a];
    }
    return pose;
}

static void move(const struct vxd_volume_pose *pose, const double p[3], double out[3])
{
    for (int a = 0; a < 3; a++) {
        const double *r = &pose->rotation[3 * a];

        out[a] = r[0] * p[0] + r[1] * p[1] + r[2] * p[2] + pose->translation[a];
    }
}

/* ---- Rasterisation ---- */

struct corner {
    double u;
    double v;
    double w; /* 1 / z */
};

static void fill(const struct vxd_volume_camera *camera, const struct corner *a,
                 const struct corner *b, const struct corner *c, float *depth)
{
    double area = (b->u - a->u) * (c->v - a->v) - (b->v - a->v) * (c->u - a->u);
    double low_u = fmax(0, ceil(fmin(a->u, fmin(b->u, c->u))));
    double low_v = fmax(0, ceil(fmin(a->v, fmin(b->v, c->v))));
    double high_u = fmin(camera->width - 1, floor(fmax(a->u, fmax(b->u, c->u))));
    double high_v = fmin(camera->height - 1, floor(fmax(a->v, fmax(b->v, c->v))));

    if (!(fabs(area) > 1e-12)) {
        return;
    }
    for (int v = (int)low_v; v <= (int)high_v; v++) {
        for (int u = (int)low_u; u <= (int)high_u; u++) {
            double p = ((b->u - u) * (c->v - v) - (b->v - v) * (c->u - u)) / area;
            double q = ((c->u - u) * (a->v - v) - (c->v - v) * (a->u - u)) / area;
            double r = 1 - p - q;
            float *at = &depth[v * camera->width + u];
            double w = p * a->w + q * b->w + r * c->w;

            if (p >= -1e-9 && q >= -1e-9 && r >= -1e-9 &&
                (*at == 0 || w * (double)*at > 1)) {
                *at = (float)(1 / w);
            }
        }
    }
}

/* A triangle in the camera's frame, cut at the near plane. */
static void draw(const struct vxd_volume_camera *camera, double (*p)[3], float *depth)
{
    double kept[4][3];
    struct corner corners[4];
    int n = 0;

    for (int i = 0; i < 3; i++) {
        const double *a = p[i];
        const double *b = p[(i + 1) % 3];

        if (a[2] >= NEAR) {
            memcpy(kept[n++], a, sizeof kept[0]);
        }
        if ((a[2] >= NEAR) != (b[2] >= NEAR)) {
            double t = (NEAR - a[2]) / (b[2] - a[2]);

            for (int k = 0; k < 3; k++) {
                kept[n][k] = a[k] + t * (b[k] - a[k]);
            }
            n++;
        }
    }
    for (int i = 0; i < n; i++) {
        corners[i] = (struct corner){camera->fx * kept[i][0] / kept[i][2] + camera->cx,
                                     camera->fy * kept[i][1] / kept[i][2] + camera->cy,
                                     1 / kept[i][2]};
    }
    for (int i = 2; i < n; i++) {
        fill(camera, &corners[0], &corners[i - 1], &corners[i], depth);
    }
}

void bench_render(const struct bench_mesh *mesh, const struct vxd_volume_camera *camera,
                  const struct vxd_volume_pose *T_map_camera, float *depth)
{
    struct vxd_volume_pose back = bench_pose_inverse(T_map_camera);

    memset(depth, 0, (size_t)camera->width * (size_t)camera->height * sizeof *depth);
    for (size_t i = 0; i < mesh->n; i++) {
        double p[3][3];

        for (size_t k = 0; k < 3; k++) {
            const float *at = mesh->corners + 9 * i + 3 * k;
            const double map[3] = {(double)at[0], (double)at[1], (double)at[2]};

            move(&back, map, p[k]);
        }
        draw(camera, p, depth);
    }
}

/* ---- The sensor ---- */

/* Depth at a place in an image, between four pixels of one surface; 0: none. */
static double depth_at(const struct vxd_volume_camera *camera, const float *depth,
                       double u, double v)
{
    int x = (int)floor(u);
    int y = (int)floor(v);
    const float *at = depth + y * camera->width + x;
    double low = 1e9;
    double high = 0;
    double w[4];

    if (!(u >= 0 && v >= 0 && x < camera->width - 1 && y < camera->height - 1)) {
        return 0;
    }
    w[0] = (double)at[0];
    w[1] = (double)at[1];
    w[2] = (double)at[camera->width];
    w[3] = (double)at[camera->width + 1];
    for (int i = 0; i < 4; i++) {
        low = fmin(low, w[i]);
        high = fmax(high, w[i]);
    }
    if (!(low > 0) || high > 1.05 * low) {
        return 0;
    }
    u -= x;
    v -= y;
    return (w[0] * (1 - u) + w[1] * u) * (1 - v) + (w[2] * (1 - u) + w[3] * u) * v;
}

/* Normal noise, by the sum of twelve uniform numbers. */
static double noise_of(uint64_t *state)
{
    double sum = -6;

    for (int i = 0; i < 12; i++) {
        sum += (double)gpu_random_float(state, 0, 1);
    }
    return sum;
}

static double sense(const struct vxd_volume_camera *camera,
                    const struct vxd_volume_pose *T_fragment_camera,
                    const struct vxd_volume_pose *T_camera_fragment, double amplitude_m,
                    const float *truth, double u, double v)
{
    double z = depth_at(camera, truth, u, v);

    for (int step = 0; step < 6 && z > 0; step++) {
        const double p[3] = {(u - camera->cx) / camera->fx * z,
                             (v - camera->cy) / camera->fy * z, z};
        double in[3];
        double moved[3];
        double q[3];
        double there;

        move(T_fragment_camera, p, in);
        slac_distort(in, amplitude_m, moved);
        move(T_camera_fragment, moved, q);
        there = depth_at(camera, truth, camera->fx * q[0] / q[2] + camera->cx,
                         camera->fy * q[1] / q[2] + camera->cy);
        z = there > 0 ? z + there - q[2] : 0;
    }
    return z;
}

void bench_sense(const struct vxd_volume_camera *camera,
                 const struct vxd_volume_pose *T_fragment_camera, double amplitude_m,
                 double noise, uint64_t seed, const float *truth, float *depth)
{
    struct vxd_volume_pose back = bench_pose_inverse(T_fragment_camera);

    for (int v = 0; v < camera->height; v++) {
        for (int u = 0; u < camera->width; u++) {
            double shift_u = noise * 0.5 * noise_of(&seed);
            double shift_v = noise * 0.5 * noise_of(&seed);
            double z = sense(camera, T_fragment_camera, &back, amplitude_m, truth,
                             u + shift_u, v + shift_v);
            double sigma = 0.0012 + 0.0019 * (z - 0.4) * (z - 0.4);

            depth[v * camera->width + u] =
                (float)(z > 0 ? z + noise * sigma * noise_of(&seed) : 0);
        }
    }
}
