// SPDX-License-Identifier: Apache-2.0
#include "tests/support/volume/volume_helpers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct vxd_volume_camera volume_camera(int width, int height)
{
    return (struct vxd_volume_camera){.width = width,
                                      .height = height,
                                      .fx = 0.9 * width,
                                      .fy = 0.91 * width,
                                      .cx = 0.49 * width,
                                      .cy = 0.52 * height};
}

/* Rotation about y, then x, by small angles: columns are the camera's axes in the map. */
struct vxd_volume_pose volume_pose(int i)
{
    double yaw = 0.13 * (i - 2);
    double pitch = 0.07 * (i % 3 - 1);
    double c = cos(yaw);
    double s = sin(yaw);
    double a = cos(pitch);
    double b = sin(pitch);
    struct vxd_volume_pose pose = {
        .rotation = {c, s * b, s * a, 0, a, -b, -s, c * b, c * a}};
    double at[3] = {pose.rotation[2], pose.rotation[5], pose.rotation[8]};

    for (int axis = 0; axis < 3; axis++) { /* 1.1 m before the ball */
        pose.translation[axis] = (axis == 2 ? VOLUME_BALL_Z : 0) - 1.1 * at[axis];
    }
    return pose;
}

static void to_map(const struct vxd_volume_pose *pose, const double p[3], double out[3])
{
    for (int i = 0; i < 3; i++) {
        const double *r = &pose->rotation[3 * i];

        out[i] = r[0] * p[0] + r[1] * p[1] + r[2] * p[2] + pose->translation[i];
    }
}

static void to_camera(const struct vxd_volume_pose *pose, const double p[3],
                      double out[3])
{
    for (int i = 0; i < 3; i++) {
        out[i] = 0;
        for (int j = 0; j < 3; j++) {
            out[i] += pose->rotation[3 * j + i] * (p[j] - pose->translation[j]);
        }
    }
}

double volume_scene_depth(const struct vxd_volume_pose *pose, double x, double y)
{
    double d[3];
    double o[3] = {pose->translation[0], pose->translation[1],
                   pose->translation[2] - VOLUME_BALL_Z};
    double a = 0;
    double b = 0;
    double c = -VOLUME_BALL_RADIUS * VOLUME_BALL_RADIUS;
    double root;
    double wall;

    for (int i = 0; i < 3; i++) {
        const double *r = &pose->rotation[3 * i];

        d[i] = r[0] * x + r[1] * y + r[2];
        a += d[i] * d[i];
        b += d[i] * o[i];
        c += o[i] * o[i];
    }
    root = b * b - a * c;
    if (root >= 0 && (-b - sqrt(root)) / a > 0) {
        return (-b - sqrt(root)) / a;
    }
    wall = (VOLUME_WALL_Z - pose->translation[2]) / d[2];
    return wall > 0 ? wall : 0;
}

double volume_scene_distance(const double p[3])
{
    double z = p[2] - VOLUME_BALL_Z;
    double ball = fabs(sqrt(p[0] * p[0] + p[1] * p[1] + z * z) - VOLUME_BALL_RADIUS);
    double wall = fabs(p[2] - VOLUME_WALL_Z);

    return ball < wall ? ball : wall;
}

static void distort(const double k[8], double x, double y, double *u, double *v)
{
    double r2 = x * x + y * y;
    double radial = (1 + k[0] * r2 + k[1] * r2 * r2 + k[4] * r2 * r2 * r2) /
                    (1 + k[5] * r2 + k[6] * r2 * r2 + k[7] * r2 * r2 * r2);

    *u = x * radial + 2 * k[2] * x * y + k[3] * (r2 + 2 * x * x);
    *v = y * radial + k[2] * (r2 + 2 * y * y) + 2 * k[3] * x * y;
}

void volume_ray(const struct vxd_volume_camera *camera, double u, double v, double *x,
                double *y)
{
    double a = (u - camera->cx) / camera->fx;
    double b = (v - camera->cy) / camera->fy;

    *x = a;
    *y = b;
    for (int i = 0; camera->distortion[0] != 0 && i < 60; i++) {
        double at_x;
        double at_y;

        distort(camera->distortion, *x, *y, &at_x, &at_y);
        *x += 0.7 * (a - at_x);
        *y += 0.7 * (b - at_y);
    }
}

static void project(const struct vxd_volume_camera *camera, const double p[3], double *u,
                    double *v)
{
    double x;
    double y;

    distort(camera->distortion, p[0] / p[2], p[1] / p[2], &x, &y);
    *u = camera->fx * x + camera->cx;
    *v = camera->fy * y + camera->cy;
}

static double depth_of(const struct volume_shot *shot, size_t pixel)
{
    const struct vxd_volume_frame *frame = &shot->frame;
    double z;

    if (frame->dtype == VXD_UINT16) {
        uint16_t raw = ((const uint16_t *)shot->depth)[pixel];

        z = raw == 65535 ? 0 : raw / 1000.0;
    } else {
        z = ((const float *)shot->depth)[pixel];
    }
    return z > 0 && z >= frame->depth_min_m && z <= frame->depth_max_m ? z : 0;
}

void volume_shoot(struct gpu_env *env, const struct vxd_volume_camera *camera,
                  const struct vxd_volume_pose *pose, enum vxd_dtype dtype,
                  bool has_colour, struct volume_shot *out)
{
    size_t n = (size_t)camera->width * (size_t)camera->height;
    size_t n_bytes = n * vxd_dtype_bytes(dtype);

    *out = (struct volume_shot){.depth = gpu_alloc(n_bytes)};
    for (int v = 0; v < camera->height; v++) {
        for (int u = 0; u < camera->width; u++) {
            size_t pixel = (size_t)v * (size_t)camera->width + (size_t)u;
            double x;
            double y;
            double z;

            volume_ray(camera, u, v, &x, &y);
            z = volume_scene_depth(pose, x, y);
            if (dtype == VXD_UINT16) {
                ((uint16_t *)out->depth)[pixel] = (uint16_t)lround(z * 1000);
            } else {
                ((float *)out->depth)[pixel] = (float)z;
            }
        }
    }
    if (has_colour) {
        out->colour = gpu_alloc(3 * n);
        for (size_t i = 0; i < 3 * n; i++) {
            out->colour[i] = (uint8_t)(i * 7 + i / 50 * 13);
        }
        out->d_colour = gpu_to_device(env, out->colour, 3 * n);
    }
    out->d_depth = gpu_to_device(env, out->depth, n_bytes);
    out->frame = (struct vxd_volume_frame){.camera = *camera,
                                           .T_map_camera = *pose,
                                           .depth = out->d_depth.ptr,
                                           .dtype = dtype,
                                           .depth_min_m = 0.2,
                                           .depth_max_m = 3,
                                           .colour = out->d_colour.ptr};
}

void volume_shot_free(struct gpu_env *env, struct volume_shot *shot)
{
    vxd_device_free(env->queue, &shot->d_depth);
    vxd_device_free(env->queue, &shot->d_colour);
    free(shot->depth);
    free(shot->colour);
}

static void *copy_of(const void *bytes, size_t n_bytes)
{
    void *copy = gpu_alloc(n_bytes + 1);

    if (n_bytes > 0) {
        memcpy(copy, bytes, n_bytes);
    }
    return copy;
}

/* IEEE half to float, by arithmetic. */
static float of_half(uint16_t bits)
{
    int exponent = bits >> 10 & 31;
    float magnitude = exponent == 0
                          ? ldexpf((float)(bits & 1023), -24)
                          : ldexpf((float)((bits & 1023) + 1024), exponent - 25);

    return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

void volume_read(struct gpu_env *env, struct vxd_volume *volume, struct volume_host *out)
{
    struct vxd_hashmap_image image;
    struct vxd_err err = {0};
    size_t n_voxels;

    gpu_wait(env);
    if (vxd_hashmap_export(env->queue, vxd_volume_map(volume), &image, &err) != VXD_OK) {
        (void)fprintf(stderr, "export: %s\n", err.message);
        exit(EXIT_FAILURE);
    }
    *out = (struct volume_host){.n = image.n_entries};
    vxd_volume_get_info(volume, &out->info);
    n_voxels = (size_t)(out->info.spec.block_edge * out->info.spec.block_edge *
                        out->info.spec.block_edge) *
               out->n;
    out->entries = copy_of(image.indices.ptr, out->n * sizeof(int32_t));
    out->keys = copy_of(image.keys.ptr, 3 * out->n * sizeof(int32_t));
    out->stamps = copy_of(image.values[0].ptr, out->n * sizeof(uint64_t));
    if (out->info.spec.form == VXD_VOLUME_COMPACT) {
        out->distances = gpu_alloc(n_voxels * sizeof(float) + 1);
        out->weights = gpu_alloc(n_voxels * sizeof(float) + 1);
        for (size_t i = 0; i < n_voxels; i++) {
            out->distances[i] = of_half(((const uint16_t *)image.values[1].ptr)[i]);
            out->weights[i] = (float)((const uint8_t *)image.values[2].ptr)[i];
        }
    } else {
        out->distances = copy_of(image.values[1].ptr, n_voxels * sizeof(float));
        out->weights = copy_of(image.values[2].ptr, n_voxels * sizeof(float));
    }
    if (out->info.spec.has_colour) {
        out->colours = copy_of(image.values[3].ptr, 4 * n_voxels * sizeof(uint16_t));
    }
    if (out->info.spec.has_labels) {
        out->labels = copy_of(image.values[out->info.spec.has_colour ? 4 : 3].ptr,
                              n_voxels * sizeof(uint64_t));
    }
    vxd_hashmap_image_free(&image);
}

void volume_host_free(struct volume_host *host)
{
    free(host->entries);
    free(host->keys);
    free(host->stamps);
    free(host->distances);
    free(host->weights);
    free(host->colours);
    free(host->labels);
}

uint64_t volume_digest(const struct volume_host *host)
{
    int edge = host->info.spec.block_edge;
    size_t n_voxels = (size_t)(edge * edge * edge) * host->n;
    uint64_t digest = GPU_FNV_START;

    digest = gpu_digest(digest, host->entries, host->n * sizeof(int32_t));
    digest = gpu_digest(digest, host->keys, 3 * host->n * sizeof(int32_t));
    digest = gpu_digest(digest, host->stamps, host->n * sizeof(uint64_t));
    digest = gpu_digest(digest, host->distances, n_voxels * sizeof(float));
    digest = gpu_digest(digest, host->weights, n_voxels * sizeof(float));
    if (host->colours != NULL) {
        digest = gpu_digest(digest, host->colours, 4 * n_voxels * sizeof(uint16_t));
    }
    if (host->labels != NULL) {
        digest = gpu_digest(digest, host->labels, n_voxels * sizeof(uint64_t));
    }
    return digest;
}

/* Whether a coordinate is so near to the border of two pixels that float32 may round it to
 * either. */
static bool is_near_border(double pixel)
{
    return fabs(pixel + 0.5 - floor(pixel + 0.5)) < 2e-4 ||
           fabs(pixel + 0.5 - ceil(pixel + 0.5)) < 2e-4;
}

static void observe_colour(const struct volume_shot *shot, const double p[3],
                           size_t pixel, double max_weight, struct volume_voxel *out)
{
    const struct vxd_volume_frame *frame = &shot->frame;
    double sum;

    if (shot->colour == NULL) {
        return;
    }
    if (frame->has_colour_camera) {
        double at[3];
        double u;
        double v;

        to_camera(&frame->T_depth_colour, p, at);
        if (at[2] <= 0) {
            return;
        }
        project(&frame->colour_camera, at, &u, &v);
        out->is_tie = out->is_tie || is_near_border(u) || is_near_border(v);
        if (u < -0.5 || v < -0.5 || u >= frame->colour_camera.width - 0.5 ||
            v >= frame->colour_camera.height - 0.5) {
            return;
        }
        pixel = (size_t)floor(v + 0.5) * (size_t)frame->colour_camera.width +
                (size_t)floor(u + 0.5);
    }
    sum = out->colour_weight + 1;
    for (int c = 0; c < 3; c++) {
        out->colour[c] =
            (out->colour[c] * out->colour_weight + shot->colour[3 * pixel + (size_t)c]) /
            sum;
    }
    out->colour_weight = sum < max_weight ? sum : max_weight;
}

static void observe(const struct vxd_volume_spec *spec, const struct volume_shot *shot,
                    const double map[3], struct volume_voxel *out)
{
    const struct vxd_volume_frame *frame = &shot->frame;
    double max_weight = spec->max_weight != 0 ? spec->max_weight : 255;
    double weight = frame->weight != 0 ? frame->weight : 1;
    double p[3];
    double u;
    double v;
    double z;
    double d;
    size_t pixel;

    to_camera(&frame->T_map_camera, map, p);
    if (p[2] <= 0) {
        return;
    }
    project(&frame->camera, p, &u, &v);
    if (u < -0.6 || v < -0.6 || u > frame->camera.width || v > frame->camera.height) {
        return;
    }
    out->is_tie = out->is_tie || is_near_border(u) || is_near_border(v);
    if (u < -0.5 || v < -0.5 || u >= frame->camera.width - 0.5 ||
        v >= frame->camera.height - 0.5) {
        return;
    }
    pixel = (size_t)floor(v + 0.5) * (size_t)frame->camera.width + (size_t)floor(u + 0.5);
    z = depth_of(shot, pixel);
    d = (z - p[2]) / spec->truncation_m;
    if (z == 0) {
        return;
    }
    out->is_tie =
        out->is_tie || fabs(d + 1) < 2e-5 || (shot->colour != NULL && fabs(d - 1) < 2e-5);
    if (d < -1) {
        return;
    }
    if (frame->weighting == VXD_VOLUME_WEIGHT_INV_Z2) {
        weight /= z * z;
    }
    weight = weight < max_weight ? weight : max_weight;
    if (spec->form == VXD_VOLUME_COMPACT) {
        weight = floor(weight + 0.5) > 1 ? floor(weight + 0.5) : 1;
    }
    out->distance =
        (out->distance * out->weight + (d < 1 ? d : 1) * weight) / (out->weight + weight);
    out->weight = out->weight + weight < max_weight ? out->weight + weight : max_weight;
    if (d < 1 && spec->has_colour) {
        observe_colour(shot, p, pixel, max_weight, out);
    }
}

void volume_oracle(const struct vxd_volume_spec *spec, const struct volume_shot *shots,
                   unsigned touching, const int32_t key[3], int index,
                   struct volume_voxel *out)
{
    int edge = spec->block_edge;
    int at[3] = {index % edge, index / edge % edge, index / edge / edge};
    double map[3];

    for (int axis = 0; axis < 3; axis++) {
        map[axis] = ((double)key[axis] * edge + at[axis] + 0.5) * spec->voxel_size_m +
                    spec->origin_m[axis];
    }
    *out = (struct volume_voxel){0};
    for (int i = 0; touching >> i != 0; i++) {
        if ((touching >> i & 1) != 0) {
            observe(spec, &shots[i], map, out);
        }
    }
}

/* The part of a block's edge that is in doubt. */
#define SLACK 1e-4

/* Whether a segment meets a cube that is larger by `grow` of its edge on each side. */
static bool meets(const double a[3], const double b[3], const int32_t key[3], double grow)
{
    double from = 0;
    double to = 1;

    for (int axis = 0; axis < 3; axis++) {
        double low = key[axis] - grow;
        double high = key[axis] + 1 + grow;
        double d = b[axis] - a[axis];
        double t0 = (low - a[axis]) / d;
        double t1 = (high - a[axis]) / d;

        if (d == 0) {
            if (a[axis] < low || a[axis] >= high) {
                return false;
            }
            continue;
        }
        from = fmax(from, fmin(t0, t1));
        to = fmin(to, fmax(t0, t1));
    }
    return from <= to;
}

double *volume_segments(const struct vxd_volume_spec *spec,
                        const struct volume_shot *shot)
{
    const struct vxd_volume_frame *frame = &shot->frame;
    int width = frame->camera.width;
    size_t n = (size_t)width * (size_t)frame->camera.height;
    double block_m = spec->voxel_size_m * spec->block_edge;
    double *segments = gpu_alloc(6 * n * sizeof *segments);

    for (size_t pixel = 0; pixel < n; pixel++) {
        double z = depth_of(shot, pixel);
        double ends[2] = {fmax(z - spec->truncation_m, 0), z + spec->truncation_m};
        double x;
        double y;

        volume_ray(&frame->camera, (double)(pixel % (size_t)width),
                   (double)(pixel / (size_t)width), &x, &y);
        for (int i = 0; i < 2; i++) {
            double at[3] = {x * ends[i], y * ends[i], ends[i]};
            double *out = segments + 6 * pixel + 3 * i;

            to_map(&frame->T_map_camera, at, out);
            for (int axis = 0; axis < 3; axis++) {
                out[axis] = z > 0 ? (out[axis] - spec->origin_m[axis]) / block_m : NAN;
            }
        }
    }
    return segments;
}

int volume_meets(const double *segments, size_t n, const int32_t key[3])
{
    int answer = 0;

    for (size_t i = 0; i < n; i++) {
        const double *ends = segments + 6 * i;

        if (!isnan(ends[0]) && meets(ends, ends + 3, key, SLACK)) {
            if (meets(ends, ends + 3, key, -SLACK)) {
                return 1;
            }
            answer = -1;
        }
    }
    return answer;
}
