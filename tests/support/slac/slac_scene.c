// SPDX-License-Identifier: Apache-2.0
#include "tests/support/slac/slac_scene.h"
#include "tests/support/track/track_scene.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_STEPS 24 /* of the loop, so that neighbours overlap */

/* ---- The distortion ---- */

void slac_distort(const double p[3], double amplitude_m, double out[3])
{
    double r2 = p[0] * p[0] + p[1] * p[1];

    out[0] = p[0] + amplitude_m * sin(1.7 * p[1] + 0.9 * p[2]);
    out[1] = p[1] + amplitude_m * 0.8 * sin(1.5 * p[0] - 1.1 * p[2] + 0.5);
    out[2] =
        p[2] + amplitude_m * (cos(1.9 * p[0] + 0.4) * cos(1.6 * p[1]) + 0.3 * r2 - 0.5);
}

void slac_undistort(const double p[3], double amplitude_m, double out[3])
{
    memcpy(out, p, 3 * sizeof *p);
    for (int step = 0; step < 60; step++) {
        double at[3];

        slac_distort(out, amplitude_m, at);
        for (int a = 0; a < 3; a++) {
            out[a] += p[a] - at[a];
        }
    }
}

/* ---- Fragments ---- */

static struct vxd_volume_pose loop_pose(size_t i, size_t n)
{
    double a = (double)i / (double)n;

    /* The camera is turned about its axis too: what distorts it alike in all directions shows only so. */
    return track_pose(0.5 * sin(6.28 * a), 0.15 * sin(20 * a), 0.5 * cos(6.28 * a),
                      360 * a + 180, 15 * sin(25 * a) + 8, 90 * sin(19 * a));
}

static void move(const struct vxd_volume_pose *pose, const double p[3], double out[3])
{
    for (int a = 0; a < 3; a++) {
        const double *r = &pose->rotation[3 * a];

        out[a] = r[0] * p[0] + r[1] * p[1] + r[2] * p[2] + pose->translation[a];
    }
}

/* The true point of a pixel, camera frame; false where there is none. */
static bool pixel_point(const struct track_shot *shot, int u, int v, double out[3])
{
    const struct vxd_volume_camera *camera = &shot->frame.camera;
    double z;

    if (u < 0 || v < 0 || u >= camera->width || v >= camera->height) {
        return false;
    }
    z = (double)shot->depth[v * camera->width + u];
    out[0] = (u - camera->cx) / camera->fx * z;
    out[1] = (v - camera->cy) / camera->fy * z;
    out[2] = z;
    return z > 0;
}

static bool pixel_normal(const struct track_shot *shot, int u, int v, double out[3])
{
    double p[3];
    double right[3];
    double down[3];
    double length;

    if (!pixel_point(shot, u, v, p) || !pixel_point(shot, u + 1, v, right) ||
        !pixel_point(shot, u, v + 1, down) || fabs(right[2] - p[2]) > 0.08 * p[2] ||
        fabs(down[2] - p[2]) > 0.08 * p[2]) {
        return false;
    }
    for (int a = 0; a < 3; a++) {
        right[a] -= p[a];
        down[a] -= p[a];
    }
    out[0] = down[1] * right[2] - down[2] * right[1];
    out[1] = down[2] * right[0] - down[0] * right[2];
    out[2] = down[0] * right[1] - down[1] * right[0];
    length = sqrt(out[0] * out[0] + out[1] * out[1] + out[2] * out[2]);
    for (int a = 0; a < 3; a++) {
        out[a] /= length;
    }
    return out[0] * p[0] + out[1] * p[1] + out[2] * p[2] < 0;
}

static void fill_fragment(struct slac_fragment *fragment, const struct track_shot *clean,
                          const struct track_shot *noisy, double amplitude_m)
{
    int width = clean->frame.camera.width;
    int height = clean->frame.camera.height;
    size_t most = (size_t)(width * height);

    fragment->points = gpu_alloc(most * 3 * sizeof(float));
    fragment->normals = gpu_alloc(most * 3 * sizeof(float));
    fragment->truth = gpu_alloc(most * 3 * sizeof(float));
    for (int v = 0; v < height; v++) {
        for (int u = 0; u < width; u++) {
            double p[3];
            double normal[3];
            double seen[3];
            double at[3];
            double map[3];

            if (!pixel_normal(clean, u, v, normal) || !pixel_point(noisy, u, v, seen)) {
                continue;
            }
            (void)pixel_point(clean, u, v, p);
            slac_undistort(seen, amplitude_m, at);
            move(&fragment->true_pose, p, map);
            for (int a = 0; a < 3; a++) {
                fragment->points[3 * fragment->n + (size_t)a] = (float)at[a];
                fragment->normals[3 * fragment->n + (size_t)a] = (float)normal[a];
                fragment->truth[3 * fragment->n + (size_t)a] = (float)map[a];
            }
            fragment->n++;
        }
    }
}

/* A pose that is wrong by some length and a tenth of it in radians a metre. */
static struct vxd_volume_pose wrong_pose(const struct vxd_volume_pose *pose,
                                         double error_m, uint64_t *state)
{
    struct vxd_volume_pose by =
        track_pose(0, 0, 0, error_m * 20 * (double)gpu_random_float(state, -1, 1),
                   error_m * 20 * (double)gpu_random_float(state, -1, 1),
                   error_m * 20 * (double)gpu_random_float(state, -1, 1));
    struct vxd_volume_pose out = *pose;

    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
            out.rotation[3 * i + j] = 0;
            for (int k = 0; k < 3; k++) {
                out.rotation[3 * i + j] +=
                    pose->rotation[3 * i + k] * by.rotation[3 * k + j];
            }
        }
        out.translation[i] += error_m * (double)gpu_random_float(state, -1, 1);
    }
    return out;
}

void slac_scene_make(struct slac_scene *out, size_t n_fragments, int width,
                     double amplitude_m, double noise, double pose_error_m)
{
    const struct vxd_volume_camera camera = track_camera(width, width * 3 / 4);
    uint64_t state = 11;

    memset(out, 0, sizeof *out);
    out->n_fragments = n_fragments;
    for (size_t i = 0; i < n_fragments; i++) {
        struct slac_fragment *fragment = &out->fragments[i];
        struct track_shot clean;
        struct track_shot noisy;

        (void)snprintf(fragment->name, sizeof fragment->name, "part-%zu", i);
        fragment->true_pose =
            loop_pose(i, n_fragments < LEAST_STEPS ? LEAST_STEPS : n_fragments);
        fragment->pose = i == 0 ? fragment->true_pose
                                : wrong_pose(&fragment->true_pose, pose_error_m, &state);
        track_shoot(TRACK_ROOM, &camera, &fragment->true_pose, 0, 1, &clean);
        track_shoot(TRACK_ROOM, &camera, &fragment->true_pose, noise, 100 + i, &noisy);
        fill_fragment(fragment, &clean, &noisy, amplitude_m);
        track_shot_free(&noisy);
        track_shot_free(&clean);
    }
}

void slac_scene_free(struct slac_scene *scene)
{
    for (size_t i = 0; i < scene->n_fragments; i++) {
        free(scene->fragments[i].points);
        free(scene->fragments[i].normals);
        free(scene->fragments[i].truth);
    }
    scene->n_fragments = 0;
}

void slac_scene_upload(struct gpu_env *env, const struct slac_scene *scene,
                       struct vxd_slac_fragment *fragments, struct vxd_buffer **buffers)
{
    *buffers = gpu_alloc(2 * scene->n_fragments * sizeof **buffers);
    for (size_t i = 0; i < scene->n_fragments; i++) {
        const struct slac_fragment *from = &scene->fragments[i];

        (*buffers)[2 * i] = gpu_to_device(env, from->points, from->n * 12);
        (*buffers)[2 * i + 1] = gpu_to_device(env, from->normals, from->n * 12);
        fragments[i] = (struct vxd_slac_fragment){.name = from->name,
                                                  .points = (*buffers)[2 * i].ptr,
                                                  .normals = (*buffers)[2 * i + 1].ptr,
                                                  .n = from->n,
                                                  .T_map_fragment = from->pose};
    }
}

void slac_buffers_free(struct gpu_env *env, const struct slac_scene *scene,
                       struct vxd_buffer *buffers)
{
    for (size_t i = 0; i < 2 * scene->n_fragments; i++) {
        vxd_device_free(env->queue, &buffers[i]);
    }
    free(buffers);
}

/* ---- Results ---- */

static void set_pose(struct vxd_deform_pose *to, const struct vxd_volume_pose *from)
{
    memcpy(to->rotation, from->rotation, sizeof to->rotation);
    memcpy(to->translation, from->translation, sizeof to->translation);
}

/* Moves n points in place; deform NULL: by the pose alone. */
static void move_points(struct gpu_env *env, const struct vxd_deform *deform,
                        const struct vxd_volume_pose *pose, float *points, size_t n)
{
    struct vxd_deform_apply_args args = {.n = n};
    struct vxd_buffer buffer;
    struct vxd_err err = {0};
    float *moved;

    if (deform == NULL) {
        for (size_t i = 0; i < n; i++) {
            const double p[3] = {(double)points[3 * i], (double)points[3 * i + 1],
                                 (double)points[3 * i + 2]};
            double out[3];

            move(pose, p, out);
            for (int a = 0; a < 3; a++) {
                points[3 * i + (size_t)a] = (float)out[a];
            }
        }
        return;
    }
    buffer = gpu_to_device(env, points, n * 12);
    args.points = buffer.ptr;
    args.out_points = buffer.ptr;
    for (int a = 0; a < 3; a++) {
        args.T_grid_in.rotation[4 * a] = 1;
    }
    set_pose(&args.T_out_grid, pose);
    if (vxd_deform_apply(env->queue, deform, &args, &err) != VXD_OK) {
        (void)fprintf(stderr, "apply: %s\n", err.message);
        exit(1);
    }
    moved = gpu_to_host(env, &buffer);
    memcpy(points, moved, n * 12);
    free(moved);
    vxd_device_free(env->queue, &buffer);
}

static struct vxd_deform *make_deform(struct gpu_env *env, const struct vxd_hashmap *grid,
                                      double cell_m)
{
    const struct vxd_deform_lattice lattice = {.cell_m = cell_m};
    struct vxd_deform *deform = NULL;
    struct vxd_err err = {0};

    if (grid != NULL && vxd_deform_create(env->queue, grid, VXD_SLAC_OFFSETS, &lattice,
                                          &deform, &err) != VXD_OK) {
        (void)fprintf(stderr, "deform: %s\n", err.message);
        exit(1);
    }
    return deform;
}

float *slac_scene_map(struct gpu_env *env, const struct slac_scene *scene,
                      const struct vxd_hashmap *grid, double cell_m,
                      const struct vxd_volume_pose *poses, size_t *n)
{
    struct vxd_deform *deform = make_deform(env, grid, cell_m);
    float *out;

    *n = 0;
    for (size_t i = 0; i < scene->n_fragments; i++) {
        *n += scene->fragments[i].n;
    }
    out = gpu_alloc(*n * 12);
    *n = 0;
    for (size_t i = 0; i < scene->n_fragments; i++) {
        const struct slac_fragment *fragment = &scene->fragments[i];

        memcpy(out + 3 * *n, fragment->points, fragment->n * 12);
        move_points(env, deform, &poses[i], out + 3 * *n, fragment->n);
        *n += fragment->n;
    }
    vxd_deform_destroy(env->queue, deform);
    return out;
}

float *slac_scene_truth(const struct slac_scene *scene, size_t *n)
{
    float *out;

    *n = 0;
    for (size_t i = 0; i < scene->n_fragments; i++) {
        *n += scene->fragments[i].n;
    }
    out = gpu_alloc(*n * 12);
    *n = 0;
    for (size_t i = 0; i < scene->n_fragments; i++) {
        memcpy(out + 3 * *n, scene->fragments[i].truth, scene->fragments[i].n * 12);
        *n += scene->fragments[i].n;
    }
    return out;
}

/* Horn's unit quaternion: the eigenvector of the largest eigenvalue, by powers of the matrix. */
static void best_rotation(const double s[9], double r[9])
{
    double m[16] = {
        s[0] + s[4] + s[8], s[7] - s[5],        s[2] - s[6],        s[3] - s[1],
        s[7] - s[5],        s[0] - s[4] - s[8], s[1] + s[3],        s[2] + s[6],
        s[2] - s[6],        s[1] + s[3],        s[4] - s[0] - s[8], s[5] + s[7],
        s[3] - s[1],        s[2] + s[6],        s[5] + s[7],        s[8] - s[0] - s[4]};
    double q[4] = {1, 0.01, 0.02, 0.03};
    double shift = 0;

    for (int i = 0; i < 16; i++) {
        shift += fabs(m[i]);
    }
    for (int step = 0; step < 20000; step++) {
        double out[4];
        double length = 0;

        for (int i = 0; i < 4; i++) {
            out[i] = shift * q[i];
            for (int j = 0; j < 4; j++) {
                out[i] += m[4 * i + j] * q[j];
            }
            length += out[i] * out[i];
        }
        for (int i = 0; i < 4; i++) {
            q[i] = out[i] / sqrt(length);
        }
    }
    r[0] = q[0] * q[0] + q[1] * q[1] - q[2] * q[2] - q[3] * q[3];
    r[1] = 2 * (q[1] * q[2] - q[0] * q[3]);
    r[2] = 2 * (q[1] * q[3] + q[0] * q[2]);
    r[3] = 2 * (q[1] * q[2] + q[0] * q[3]);
    r[4] = q[0] * q[0] - q[1] * q[1] + q[2] * q[2] - q[3] * q[3];
    r[5] = 2 * (q[2] * q[3] - q[0] * q[1]);
    r[6] = 2 * (q[1] * q[3] - q[0] * q[2]);
    r[7] = 2 * (q[2] * q[3] + q[0] * q[1]);
    r[8] = q[0] * q[0] - q[1] * q[1] - q[2] * q[2] + q[3] * q[3];
}

double slac_align(float *points, const float *truth, size_t n)
{
    double from[3] = {0};
    double to[3] = {0};
    double s[9] = {0};
    double r[9];
    double squares = 0;

    for (size_t i = 0; i < n; i++) {
        for (size_t a = 0; a < 3; a++) {
            from[a] += (double)points[3 * i + a] / (double)n;
            to[a] += (double)truth[3 * i + a] / (double)n;
        }
    }
    for (size_t i = 0; i < n; i++) { /* truth times point transposed */
        for (size_t a = 0; a < 3; a++) {
            for (size_t b = 0; b < 3; b++) {
                s[3 * a + b] += ((double)truth[3 * i + a] - to[a]) *
                                ((double)points[3 * i + b] - from[b]);
            }
        }
    }
    best_rotation(s, r);
    for (size_t i = 0; i < n; i++) {
        double p[3];

        for (size_t a = 0; a < 3; a++) {
            p[a] = (double)points[3 * i + a] - from[a];
        }
        for (size_t a = 0; a < 3; a++) {
            double at =
                r[3 * a] * p[0] + r[3 * a + 1] * p[1] + r[3 * a + 2] * p[2] + to[a];
            double d = at - (double)truth[3 * i + a];

            points[3 * i + a] = (float)at;
            squares += d * d;
        }
    }
    return sqrt(squares / (double)n);
}

double slac_distortion_left(struct gpu_env *env, const struct slac_scene *scene,
                            const struct vxd_hashmap *grid, double cell_m,
                            double amplitude_m)
{
    static const struct vxd_volume_pose none = {{1, 0, 0, 0, 1, 0, 0, 0, 1}, {0}};
    struct vxd_volume_pose poses[SLAC_MAX_FRAGMENTS];
    size_t n = 0;
    float *straight;
    float *seen;
    double left;

    for (size_t i = 0; i < scene->n_fragments; i++) {
        poses[i] = none;
    }
    seen = slac_scene_map(env, scene, NULL, cell_m, poses, &n);
    straight = slac_scene_map(env, scene, grid, cell_m, poses, &n);
    for (size_t i = 0; i < n; i++) {
        const double p[3] = {(double)seen[3 * i], (double)seen[3 * i + 1],
                             (double)seen[3 * i + 2]};
        double out[3];

        slac_distort(p, amplitude_m, out);
        for (size_t a = 0; a < 3; a++) {
            seen[3 * i + a] = (float)out[a];
        }
    }
    left = slac_align(straight, seen, n);
    free(straight);
    free(seen);
    return left;
}

/* ---- Scores ---- */

struct cloud_grid {
    size_t mask;
    int32_t *first; /* of each slot */
    int32_t *next;  /* of each point */
    const float *points;
    double cell;
};

static size_t slot_of(const struct cloud_grid *grid, const long key[3])
{
    return ((size_t)(key[0] * 73856093) ^ (size_t)(key[1] * 19349663) ^
            (size_t)(key[2] * 83492791)) &
           grid->mask;
}

static void key_of(const struct cloud_grid *grid, const float *p, long key[3])
{
    for (int a = 0; a < 3; a++) {
        key[a] = (long)floor((double)p[a] / grid->cell);
    }
}

static bool has_near(const struct cloud_grid *grid, const float *p)
{
    long base[3];

    key_of(grid, p, base);
    for (int k = 0; k < 27; k++) {
        const long key[3] = {base[0] + k / 9 - 1, base[1] + k / 3 % 3 - 1,
                             base[2] + k % 3 - 1};

        for (int32_t i = grid->first[slot_of(grid, key)]; i >= 0; i = grid->next[i]) {
            double squares = 0;

            for (size_t a = 0; a < 3; a++) {
                double d = (double)grid->points[3 * (size_t)i + a] - (double)p[a];

                squares += d * d;
            }
            if (squares <= grid->cell * grid->cell) {
                return true;
            }
        }
    }
    return false;
}

/* The part of `points` that is near to one of `others`. */
static double part_near(const float *points, size_t n, const float *others,
                        size_t n_others, double distance)
{
    struct cloud_grid grid = {.mask = 1023, .points = others, .cell = distance};
    size_t n_near = 0;

    while (grid.mask < n_others) {
        grid.mask = 2 * grid.mask + 1;
    }
    grid.first = gpu_alloc((grid.mask + 1) * sizeof *grid.first);
    grid.next = gpu_alloc((n_others + 1) * sizeof *grid.next);
    memset(grid.first, 0xff, (grid.mask + 1) * sizeof *grid.first);
    for (size_t i = 0; i < n_others; i++) {
        long key[3];
        size_t slot;

        key_of(&grid, others + 3 * i, key);
        slot = slot_of(&grid, key);
        grid.next[i] = grid.first[slot];
        grid.first[slot] = (int32_t)i;
    }
    for (size_t i = 0; i < n; i++) {
        n_near += has_near(&grid, points + 3 * i) ? 1 : 0;
    }
    free(grid.first);
    free(grid.next);
    return (double)n_near / (double)n;
}

struct slac_score slac_score(const float *points, size_t n_points, const float *truth,
                             size_t n_truth, double distance)
{
    struct slac_score score;

    score.precision = part_near(points, n_points, truth, n_truth, distance);
    score.recall = part_near(truth, n_truth, points, n_points, distance);
    score.f = score.precision + score.recall > 0
                  ? 2 * score.precision * score.recall / (score.precision + score.recall)
                  : 0;
    return score;
}
