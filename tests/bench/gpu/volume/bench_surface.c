// SPDX-License-Identifier: Apache-2.0
/* Times surfaces of a volume: the whole as a mesh and as points, and the blocks that the last
 * image changed. The volume is fused from images of a room with two balls, or from a file of
 * real ones. Prints Markdown; the floor is the copy rate of the same run times the bytes that
 * are read once (distances, weights, colours) and written once (the outputs).
 *
 * Times contain the counts that are read in between, since they are waited for; CPU ms are
 * those of all threads of the process, which other programs of the machine hardly change.
 * usage: bench_surface [--backend cpu|cuda] [--threads N] [--repeat N] [--images N]
 *                      [--size MICROMETRES] [--block 8|16] [--compact 0|1] [--colour 0|1]
 *                      [--frames FILE]
 * FILE: for each image 16 float64, the pose's matrix, and 640 x 480 uint16 millimetres; the
 * camera is fx = fy = 585, cx = 320, cy = 240. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu/surface/surface.h"
#include "tests/bench/support/bench_device.h"

#define MAX_REPEAT 100
#define WIDTH 640
#define HEIGHT 480
#define N_PIXELS (WIDTH * HEIGHT)

static const struct vxd_volume_camera camera = {
    .width = WIDTH, .height = HEIGHT, .fx = 585, .fy = 585, .cx = 320, .cy = 240};

struct options {
    enum vxd_backend backend;
    int n_threads;
    int n_repeat;
    int n_images;
    int block;
    bool is_compact;
    bool has_colour;
    double size_m;
    const char *frames;
};

struct bench {
    struct options options;
    struct bench_device device;
    struct bench_floors floors;
    struct vxd_volume *volume;
    uint64_t last_version; /* before the last image */
    uint16_t *depth;
    uint8_t *colour;
};

static void usage(void)
{
    (void)fputs("usage: bench_surface [--backend cpu|cuda] [--threads N] [--repeat N] "
                "[--images N] [--size MICROMETRES] [--block 8|16] [--compact 0|1] "
                "[--colour 0|1] [--frames FILE]\n",
                stderr);
    exit(2);
}

/* --- images ------------------------------------------------------------------------------ */

/* The way along a ray to the ball; 1e9 where it passes. */
static double ball(const double o[3], const double d[3], const double c[3], double r)
{
    double m[3] = {o[0] - c[0], o[1] - c[1], o[2] - c[2]};
    double a = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
    double b = m[0] * d[0] + m[1] * d[1] + m[2] * d[2];
    double q = m[0] * m[0] + m[1] * m[1] + m[2] * m[2] - r * r;
    double root = b * b - a * q;
    double t = root < 0 ? 1e9 : (-b - sqrt(root)) / a;

    return t > 0 ? t : 1e9;
}

/* The way to the room's walls: 6 x 3 x 6 m around the zero. */
static double room(const double o[3], const double d[3])
{
    static const double half[3] = {3, 1.5, 3};
    double t = 1e9;

    for (int i = 0; i < 3; i++) {
        double wall = ((d[i] > 0 ? half[i] : -half[i]) - o[i]) / d[i];

        t = wall > 0 && wall < t ? wall : t;
    }
    return t;
}

/* Image `i` of n in a circle: from within the room, looking outwards. */
static void render(const struct bench *bench, int i, struct vxd_volume_pose *pose)
{
    static const double balls[2][3] = {{1.2, 0.3, 0.9}, {-1.1, -0.2, -1.3}};
    double angle = 2 * acos(-1) * i / bench->options.n_images;
    double c = cos(angle);
    double s = sin(angle);
    const double rotation[9] = {c, 0, s, 0, 1, 0, -s, 0, c};

    memcpy(pose->rotation, rotation, sizeof rotation);
    pose->translation[0] = 0.3 * s;
    pose->translation[1] = 0;
    pose->translation[2] = 0.3 * c;
    for (int p = 0; p < N_PIXELS; p++) {
        double x = (p % WIDTH - camera.cx) / camera.fx;
        double y = (p / WIDTH - camera.cy) / camera.fy;
        double d[3] = {c * x + s, y, -s * x + c}; /* z of the camera is 1 */
        double z = room(pose->translation, d);

        for (int k = 0; k < 2; k++) {
            z = fmin(z, ball(pose->translation, d, balls[k], 0.5));
        }
        bench->depth[p] = (uint16_t)(z * 1000 + 0.5);
    }
}

static bool read_image(const struct bench *bench, FILE *file,
                       struct vxd_volume_pose *pose)
{
    double m[16];

    if (fread(m, sizeof m, 1, file) != 1 ||
        fread(bench->depth, sizeof *bench->depth, N_PIXELS, file) != N_PIXELS) {
        return false;
    }
    for (int i = 0; i < 3; i++) {
        memcpy(pose->rotation + 3 * i, m + 4 * i, 3 * sizeof *m);
        pose->translation[i] = m[4 * i + 3];
    }
    return true;
}

static enum vxd_status fuse(struct bench *bench, const struct vxd_volume_pose *pose,
                            struct vxd_err *err)
{
    struct vxd_queue *queue = bench->device.queue;
    struct vxd_volume_frame frame = {.camera = camera,
                                     .T_map_camera = *pose,
                                     .dtype = VXD_UINT16,
                                     .depth_min_m = 0.2,
                                     .depth_max_m =
                                         bench->options.frames != NULL ? 3 : 5};
    struct vxd_buffer buffers[2] = {{NULL, 0, VXD_SPACE_DEVICE}};
    struct vxd_volume_activation activation;
    struct vxd_volume_info info;
    const void *device;
    enum vxd_status status;

    vxd_volume_get_info(bench->volume, &info);
    bench->last_version = info.version;
    VXD_TRY(vxd_upload(queue, bench->depth, N_PIXELS * sizeof *bench->depth, &buffers[0],
                       &device, err));
    frame.depth = device;
    VXD_TRY(vxd_upload(queue, bench->colour, 3 * (size_t)N_PIXELS, &buffers[1], &device,
                       err));
    frame.colour = device;
    VXD_TRY(vxd_volume_integrate(queue, bench->volume, &frame, &activation, err));
    VXD_TRY(vxd_queue_wait(queue, err));
out:
    vxd_device_free(queue, &buffers[0]);
    vxd_device_free(queue, &buffers[1]);
    return status;
}

static enum vxd_status make_volume(struct bench *bench, struct vxd_err *err)
{
    const struct options *o = &bench->options;
    struct vxd_volume_spec spec = {.voxel_size_m = o->size_m,
                                   .block_edge = o->block,
                                   .truncation_m = fmax(0.04, o->size_m),
                                   .form = o->is_compact ? VXD_VOLUME_COMPACT
                                                         : VXD_VOLUME_FULL,
                                   .has_colour = o->has_colour};
    FILE *file = o->frames != NULL ? fopen(o->frames, "rb") : NULL;
    struct vxd_volume_pose pose;
    enum vxd_status status = VXD_OK;

    if (o->frames != NULL && file == NULL) {
        return vxd_fail(err, VXD_NOT_FOUND, NULL, "%s cannot be read", o->frames);
    }
    VXD_TRY(vxd_volume_create(bench->device.queue, &spec, &bench->volume, err));
    for (int i = 0; file != NULL || i < o->n_images; i++) {
        if (file == NULL) {
            render(bench, i, &pose);
        } else if (!read_image(bench, file, &pose)) {
            break;
        }
        VXD_TRY(fuse(bench, &pose, err));
    }
out:
    if (file != NULL) {
        (void)fclose(file);
    }
    return status;
}

/* --- surfaces ----------------------------------------------------------------------------- */

/* How long something took: by the wall clock, and in the process's threads together. */
struct took {
    double wall_s;
    double cpu_s;
};

/* One extraction, its outputs allocated as a server does. */
static enum vxd_status extract(struct bench *bench, const struct vxd_surface_args *args,
                               struct vxd_surface_counts *n, struct took *took,
                               struct vxd_err *err)
{
    struct vxd_queue *queue = bench->device.queue;
    struct vxd_buffer buffers[5] = {{NULL, 0, VXD_SPACE_DEVICE}};
    struct vxd_surface *surface = NULL;
    struct vxd_surface_outputs out;
    bool is_mesh = args->kind == VXD_SURFACE_MESH;
    double begin = 0;
    clock_t cpu_begin = 0;
    enum vxd_status status;

    VXD_TRY(bench_device_flush(&bench->device, err));
    VXD_TRY(vxd_queue_wait(queue, err));
    begin = bench_now_s();
    cpu_begin = clock();
    VXD_TRY(vxd_surface_create(queue, bench->volume, args, &surface, err));
    vxd_surface_get_counts(surface, n);
    VXD_TRY(vxd_device_alloc(queue, n->n_vertices * 12, &buffers[0], err));
    VXD_TRY(vxd_device_alloc(queue, n->n_vertices * 12, &buffers[1], err));
    VXD_TRY(vxd_device_alloc(queue, bench->options.has_colour ? n->n_vertices * 3 : 0,
                             &buffers[2], err));
    VXD_TRY(vxd_device_alloc(queue, n->n_triangles * 12, &buffers[3], err));
    VXD_TRY(vxd_device_alloc(queue, n->n_blocks * 16, &buffers[4], err));
    out = (struct vxd_surface_outputs){.vertices = buffers[0].ptr,
                                       .normals = buffers[1].ptr,
                                       .colours = buffers[2].ptr,
                                       .triangles = is_mesh ? buffers[3].ptr : NULL,
                                       .blocks = buffers[4].ptr};
    VXD_TRY(vxd_surface_write(queue, surface, &out, err));
    VXD_TRY(vxd_queue_wait(queue, err));
    took->wall_s = bench_now_s() - begin;
    took->cpu_s = (double)(clock() - cpu_begin) / CLOCKS_PER_SEC;
out:
    vxd_surface_destroy(queue, surface);
    for (int i = 0; i < 5; i++) {
        vxd_device_free(queue, &buffers[i]);
    }
    return status;
}

static double floor_ms(const struct bench *bench, const struct vxd_surface_counts *n)
{
    double voxels = pow(bench->options.block, 3) * (double)n->n_blocks;
    double read = voxels * (bench->options.is_compact ? 3 : 8);
    double colour = bench->options.has_colour ? 3 + 16 : 0; /* of two voxels */
    double bytes = read + (double)n->n_vertices * (24 + colour) +
                   12 * (double)n->n_triangles + 16 * (double)n->n_blocks;

    return bytes / bench->floors.copy_bytes_per_s * 1e3;
}

static enum vxd_status run(struct bench *bench, const char *what,
                           const struct vxd_surface_args *args, struct vxd_err *err)
{
    double wall_s[MAX_REPEAT];
    double cpu_s[MAX_REPEAT];
    struct vxd_surface_counts n = {0};
    int n_repeat = bench->options.n_repeat;
    enum vxd_status status = VXD_OK;

    for (int i = -1; i < n_repeat; i++) { /* the first is not counted */
        struct took took = {0, 0};

        VXD_TRY(extract(bench, args, &n, &took, err));
        wall_s[i < 0 ? 0 : i] = took.wall_s;
        cpu_s[i < 0 ? 0 : i] = took.cpu_s;
    }
    (void)printf("| %s | %zu | %zu | %zu | %.3f | %.3f | %.3f |\n", what, n.n_blocks,
                 n.n_vertices, n.n_triangles, bench_median(wall_s, n_repeat) * 1e3,
                 bench_median(cpu_s, n_repeat) * 1e3, floor_ms(bench, &n));
    (void)fflush(stdout);
out:
    return status;
}

static enum vxd_status run_all(struct bench *bench, struct vxd_err *err)
{
    struct vxd_surface_args args = {.kind = VXD_SURFACE_MESH};
    enum vxd_status status;

    VXD_TRY(bench_device_create(bench->options.backend, bench->options.n_threads,
                                &bench->device, err));
    VXD_TRY(bench_device_floors(&bench->device, (size_t)256 << 20, 1000, &bench->floors,
                                err));
    VXD_TRY(make_volume(bench, err));
    (void)printf("voxels of %g mm, blocks of %d, %s%s; copies run at %.1f GB/s\n\n"
                 "| surface | blocks | vertices | triangles | ms | CPU ms | floor ms |\n"
                 "|---|---:|---:|---:|---:|---:|---:|\n",
                 bench->options.size_m * 1e3, bench->options.block,
                 bench->options.is_compact ? "compact" : "float32",
                 bench->options.has_colour ? ", colour" : "",
                 bench->floors.copy_bytes_per_s / 1e9);
    VXD_TRY(run(bench, "mesh", &args, err));
    args.since = bench->last_version;
    VXD_TRY(run(bench, "mesh of the last image's blocks", &args, err));
    args = (struct vxd_surface_args){.kind = VXD_SURFACE_POINTS};
    VXD_TRY(run(bench, "points", &args, err));
out:
    vxd_volume_destroy(bench->device.queue, bench->volume);
    bench_device_destroy(&bench->device);
    return status;
}

static struct options parse(int argc, char **argv)
{
    struct options o = {.n_repeat = 10, .n_images = 45, .block = 8, .size_m = 0.0058};

    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";

        if (strcmp(argv[i], "--backend") == 0 && strcmp(value, "cuda") == 0) {
            o.backend = VXD_BACKEND_CUDA;
        } else if (strcmp(argv[i], "--backend") == 0 && strcmp(value, "cpu") == 0) {
            o.backend = VXD_BACKEND_CPU;
        } else if (strcmp(argv[i], "--threads") == 0) {
            o.n_threads = (int)bench_number(value, 0, 256, usage);
        } else if (strcmp(argv[i], "--repeat") == 0) {
            o.n_repeat = (int)bench_number(value, 1, MAX_REPEAT, usage);
        } else if (strcmp(argv[i], "--images") == 0) {
            o.n_images = (int)bench_number(value, 1, 10000, usage);
        } else if (strcmp(argv[i], "--size") == 0) {
            o.size_m = (double)bench_number(value, 100, 10000000, usage) / 1e6;
        } else if (strcmp(argv[i], "--block") == 0) {
            o.block = bench_number(value, 8, 16, usage) == 16 ? 16 : 8;
        } else if (strcmp(argv[i], "--compact") == 0) {
            o.is_compact = bench_number(value, 0, 1, usage) == 1;
        } else if (strcmp(argv[i], "--colour") == 0) {
            o.has_colour = bench_number(value, 0, 1, usage) == 1;
        } else if (strcmp(argv[i], "--frames") == 0 && value[0] != '\0') {
            o.frames = value;
        } else {
            usage();
        }
    }
    return o;
}

int main(int argc, char **argv)
{
    struct bench bench = {.options = parse(argc, argv)};
    struct vxd_err err = {VXD_OK, "", ""};
    enum vxd_status status = VXD_RESOURCE_EXHAUSTED;

    bench.depth = calloc(N_PIXELS, sizeof *bench.depth);
    bench.colour = calloc(N_PIXELS, 3);
    if (bench.depth != NULL && bench.colour != NULL) {
        status = run_all(&bench, &err);
    }
    free(bench.depth);
    free(bench.colour);
    if (status != VXD_OK) {
        (void)fprintf(stderr, "bench_surface: %s\n", err.message);
    }
    return status == VXD_OK ? 0 : 1;
}
