// SPDX-License-Identifier: Apache-2.0
#include "tests/support/refine/refine_scene.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/surface/surface.h"

#define PI 3.14159265358979323846
#define DISTANCE 5.0 /* radii from the ball's centre to the cameras */
#define GOLDEN 2.399963229728653
#define N_DEPTHS 24

/* ---- The object ---- */

/* Height of the relief at a place, and its gradient. */
static double relief(const struct refine_scene *scene, const double p[3], double g[3])
{
    double w = 2 * PI / scene->wavelength_m;
    double sx = sin(w * p[0]);
    double sy = sin(w * p[1] + 1);
    double sz = sin(w * p[2] + 2);
    double a = scene->relief_m / 4;

    g[0] = a * w * cos(w * p[0]) * sy;
    g[1] = a * w * cos(w * p[1] + 1) * (sx + sz);
    g[2] = a * w * sy * cos(w * p[2] + 2);
    return a * sy * (sx + sz);
}

/* The signed distance to the surface, about, and its gradient. */
static double field(const struct refine_scene *scene, const double p[3], double g[3])
{
    double length = sqrt(p[0] * p[0] + p[1] * p[1] + p[2] * p[2]);
    double height = relief(scene, p, g);

    for (int k = 0; k < 3; k++) {
        g[k] = p[k] / length - g[k];
    }
    return length - scene->radius_m - height;
}

static void normalize(double v[3])
{
    double length = sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);

    for (int k = 0; k < 3; k++) {
        v[k] /= length;
    }
}

static const double *paint(const struct refine_scene *scene, const double p[3])
{
    static const double colours[5][3] = {{0.8, 0.42, 0.3},
                                         {0.3, 0.6, 0.42},
                                         {0.25, 0.3, 0.7},
                                         {0.75, 0.7, 0.35},
                                         {0.6, 0.6, 0.6}};
    double azimuth = atan2(p[1], p[0]) * 3 / PI;
    int column = (int)floor(azimuth + 3) % 6;
    int row = p[2] > 0.1 * scene->radius_m ? 1 : 0;

    return colours[scene->is_plain ? 4 : (column + row) % 4];
}

/* The light that a place with a normal gets. */
static double shading(const struct refine_scene *scene, const double p[3],
                      const double n[3])
{
    static const double dirs[2][3] = {{0.8, 0.48, 0.36}, {-0.6, 0.64, -0.48}};
    double sum = 0.35;

    if (!scene->has_lamps) {
        double a = n[0] * dirs[0][0] + n[1] * dirs[0][1] + n[2] * dirs[0][2];
        double b = n[0] * dirs[1][0] + n[1] * dirs[1][1] + n[2] * dirs[1][2];

        return sum + 0.45 * (0.5 + 0.5 * a) * (0.5 + 0.5 * a) + 0.25 * (0.5 + 0.5 * b);
    }
    for (int lamp = 0; lamp < 2; lamp++) {
        double to[3];
        double squares = 0;
        double cosine = 0;

        for (int k = 0; k < 3; k++) {
            to[k] = 1.9 * scene->radius_m * dirs[lamp][k] - p[k];
            squares += to[k] * to[k];
        }
        normalize(to);
        for (int k = 0; k < 3; k++) {
            cosine += n[k] * to[k];
        }
        sum += 0.8 * (0.5 + 0.5 * cosine) * (0.5 + 0.5 * cosine) * scene->radius_m *
               scene->radius_m / squares;
    }
    return sum;
}

/* ---- Cameras ---- */

static struct vxd_volume_camera camera_of(const struct refine_scene *scene)
{
    /* The ball fills three quarters of the height. */
    double f = 0.375 * scene->height * sqrt(DISTANCE * DISTANCE - 1);

    return (struct vxd_volume_camera){.width = scene->width,
                                      .height = scene->height,
                                      .fx = f,
                                      .fy = f,
                                      .cx = scene->width / 2.0 - 0.5,
                                      .cy = scene->height / 2.0 - 0.5};
}

/* The i-th of n cameras spread over a sphere, which look at the ball. */
static struct vxd_volume_pose pose_of(const struct refine_scene *scene, int i, int n)
{
    double z = 1 - 2 * (i + 0.5) / n;
    double r = sqrt(1 - z * z);
    double at[3] = {r * cos(GOLDEN * i), r * sin(GOLDEN * i), z};
    double up[3] = {0.1, 0.2, 1};
    double x[3];
    double y[3];
    struct vxd_volume_pose pose;

    x[0] = -(at[1] * up[2] - at[2] * up[1]);
    x[1] = -(at[2] * up[0] - at[0] * up[2]);
    x[2] = -(at[0] * up[1] - at[1] * up[0]);
    normalize(x);
    y[0] = -(at[1] * x[2] - at[2] * x[1]);
    y[1] = -(at[2] * x[0] - at[0] * x[2]);
    y[2] = -(at[0] * x[1] - at[1] * x[0]);
    for (int k = 0; k < 3; k++) {
        pose.rotation[3 * k] = x[k];
        pose.rotation[3 * k + 1] = y[k];
        pose.rotation[3 * k + 2] = -at[k];
        pose.translation[k] = DISTANCE * scene->radius_m * at[k];
    }
    return pose;
}

/* Where a ray meets the surface; false where it does not. */
static bool trace(const struct refine_scene *scene,
                  const struct vxd_volume_camera *camera,
                  const struct vxd_volume_pose *pose, double u, double v, double p[3],
                  double n[3], double *z)
{
    const double ray[3] = {(u - camera->cx) / camera->fx, (v - camera->cy) / camera->fy,
                           1};
    double length = sqrt(ray[0] * ray[0] + ray[1] * ray[1] + 1);
    double dir[3];
    double t = (DISTANCE - 1.1) * scene->radius_m;

    for (int k = 0; k < 3; k++) {
        dir[k] = (pose->rotation[3 * k] * ray[0] + pose->rotation[3 * k + 1] * ray[1] +
                  pose->rotation[3 * k + 2] * ray[2]) /
                 length;
    }
    for (int i = 0; i < 200 && t < (DISTANCE + 1) * scene->radius_m; i++) {
        double d;

        for (int k = 0; k < 3; k++) {
            p[k] = pose->translation[k] + t * dir[k];
        }
        d = field(scene, p, n);
        if (fabs(d) < 1e-7 * scene->radius_m) {
            normalize(n);
            *z = t / length;
            return true;
        }
        t += 0.7 * d;
    }
    return false;
}

static void render(const struct refine_scene *scene,
                   const struct vxd_volume_camera *camera,
                   const struct vxd_volume_pose *pose, uint8_t *rgb)
{
    for (int v = 0; v < camera->height; v++) {
        for (int u = 0; u < camera->width; u++) {
            uint8_t *out = rgb + 3 * ((size_t)v * (size_t)camera->width + (size_t)u);
            double sums[3] = {0, 0, 0};

            for (int s = 0; s < 4; s++) {
                double p[3];
                double n[3];
                double z;

                if (trace(scene, camera, pose, u + 0.5 * (s % 2) - 0.25,
                          v + 0.5 * (s / 2) - 0.25, p, n, &z)) {
                    const double *colour = paint(scene, p);
                    double light = shading(scene, p, n);

                    for (int k = 0; k < 3; k++) {
                        sums[k] += fmin(255 * colour[k] * light, 255) / 4;
                    }
                }
            }
            for (int k = 0; k < 3; k++) {
                out[k] = (uint8_t)(sums[k] + 0.5);
            }
        }
    }
}

void refine_scene_shoot(const struct refine_scene *scene,
                        struct vxd_refine_keyframe *keyframes, uint8_t **take_images)
{
    size_t n_bytes = 3 * (size_t)scene->width * (size_t)scene->height;
    uint8_t *images = malloc(n_bytes * (size_t)scene->n_keyframes);

    for (int i = 0; images != NULL && i < scene->n_keyframes; i++) {
        keyframes[i] = (struct vxd_refine_keyframe){
            .camera = camera_of(scene),
            .T_map_camera = pose_of(scene, i, scene->n_keyframes),
            .colour = images + n_bytes * (size_t)i};
        render(scene, &keyframes[i].camera, &keyframes[i].T_map_camera,
               images + n_bytes * (size_t)i);
    }
    *take_images = images;
}

enum vxd_status refine_scene_integrate(const struct refine_scene *scene,
                                       struct vxd_queue *queue, struct vxd_volume *volume,
                                       struct vxd_err *err)
{
    struct refine_scene smooth = *scene;
    struct vxd_volume_frame frame = {.dtype = VXD_FLOAT32, .depth_max_m = 100};
    size_t n = (size_t)scene->width * (size_t)scene->height;
    float *depth = malloc(n * sizeof *depth);
    struct vxd_buffer device = {NULL, 0, VXD_SPACE_DEVICE};
    struct vxd_volume_activation done;
    const void *at;
    enum vxd_status status = VXD_RESOURCE_EXHAUSTED;

    smooth.relief_m = 0;
    frame.camera = camera_of(scene);
    for (int i = 0; depth != NULL && i < N_DEPTHS; i++) {
        frame.T_map_camera = pose_of(scene, i, N_DEPTHS);
        for (size_t j = 0; j < n; j++) {
            double p[3];
            double normal[3];
            double z;

            depth[j] = trace(&smooth, &frame.camera, &frame.T_map_camera,
                             (double)(j % (size_t)scene->width),
                             (double)(j / (size_t)scene->width), p, normal, &z)
                           ? (float)z
                           : 0.0f;
        }
        VXD_TRY(vxd_upload(queue, depth, n * sizeof *depth, &device, &at, err));
        frame.depth = at;
        VXD_TRY(vxd_volume_integrate(queue, volume, &frame, &done, err));
        VXD_TRY(vxd_queue_wait(queue, err));
        vxd_device_free(queue, &device);
    }
out:
    vxd_device_free(queue, &device);
    free(depth);
    return status;
}

/* ---- Scores ---- */

static void score(const struct refine_scene *scene, const float *vertices,
                  const float *normals, const uint8_t *colours, size_t n,
                  const double origin[3], struct refine_score *out)
{
    double sums[6] = {0}; /* of albedo: 1, x, y, xx, yy, xy */

    for (size_t i = 0; i < n; i++) {
        double p[3];
        double g[3];
        double cosine = 0;
        double d;

        for (int k = 0; k < 3; k++) {
            p[k] = (double)vertices[3 * i + (size_t)k] + origin[k];
        }
        d = field(scene, p, g);
        normalize(g);
        for (int k = 0; k < 3; k++) {
            cosine += g[k] * (double)normals[3 * i + (size_t)k];
        }
        out->normal_deg += acos(fmax(-1, fmin(1, cosine))) * 180 / PI / (double)n;
        out->surface_mm += d * d * 1e6 / (double)n;
        if (colours != NULL) {
            const double *true_colour = paint(scene, p);
            double x =
                0.299 * true_colour[0] + 0.587 * true_colour[1] + 0.114 * true_colour[2];
            double y = (0.299 * colours[3 * i] + 0.587 * colours[3 * i + 1] +
                        0.114 * colours[3 * i + 2]) /
                       255;

            if (y > 0) {
                sums[0] += 1;
                sums[1] += x;
                sums[2] += y;
                sums[3] += x * x;
                sums[4] += y * y;
                sums[5] += x * y;
            }
        }
    }
    out->surface_mm = sqrt(out->surface_mm);
    if (sums[0] > 0) {
        double xx = sums[3] / sums[0] - sums[1] * sums[1] / sums[0] / sums[0];
        double yy = sums[4] / sums[0] - sums[2] * sums[2] / sums[0] / sums[0];
        double xy = sums[5] / sums[0] - sums[1] * sums[2] / sums[0] / sums[0];

        out->correlation = xx * yy > 0 ? xy / sqrt(xx * yy) : 0;
    }
}

enum vxd_status refine_scene_score(const struct refine_scene *scene,
                                   struct vxd_queue *queue, struct vxd_volume *volume,
                                   struct refine_score *out, struct vxd_err *err)
{
    struct vxd_surface_args args = {.kind = VXD_SURFACE_MESH};
    struct vxd_context *context = vxd_queue_context(queue);
    struct vxd_surface *surface = NULL;
    struct vxd_surface_counts counts = {0};
    struct vxd_surface_outputs outputs = {0};
    struct vxd_volume_info info;
    struct vxd_buffer device[3] = {{0}};
    struct vxd_buffer host[3] = {{0}};
    const void *read[3] = {NULL};
    size_t sizes[3];
    enum vxd_status status;

    *out = (struct refine_score){0};
    vxd_volume_get_info(volume, &info);
    VXD_TRY(vxd_surface_create(queue, volume, &args, &surface, err));
    vxd_surface_get_counts(surface, &counts);
    sizes[0] = counts.n_vertices * 3 * sizeof(float);
    sizes[1] = sizes[0];
    sizes[2] = info.spec.has_albedo ? counts.n_vertices * 3 : 0;
    for (int i = 0; i < 3; i++) {
        VXD_TRY(vxd_device_alloc(queue, sizes[i], &device[i], err));
    }
    outputs.vertices = device[0].ptr;
    outputs.normals = device[1].ptr;
    outputs.colours = device[2].ptr;
    outputs.has_albedo = info.spec.has_albedo;
    VXD_TRY(vxd_surface_write(queue, surface, &outputs, err));
    for (int i = 0; i < 3; i++) {
        if (sizes[i] > 0) {
            VXD_TRY(
                vxd_download(queue, device[i].ptr, sizes[i], &host[i], &read[i], err));
        }
    }
    VXD_TRY(vxd_queue_wait(queue, err));
    out->n_vertices = counts.n_vertices;
    score(scene, read[0], read[1], read[2], counts.n_vertices, info.spec.origin_m, out);
out:
    for (int i = 0; i < 3; i++) {
        vxd_host_free(context, &host[i]);
        vxd_device_free(queue, &device[i]);
    }
    vxd_surface_destroy(queue, surface);
    return status;
}
