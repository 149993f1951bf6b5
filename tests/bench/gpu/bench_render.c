// SPDX-License-Identifier: Apache-2.0
/* Times pictures of a scene: hills with boulders made of shapes, or a scan from a file. The camera
 * stands on the ground and sees the scene to its far edge. Prints Markdown; rates are those of
 * the median run, of rays that were cast at most. The first row casts the same rays as queries.
 * usage: bench_render [--backend cpu|cuda] [--threads N] [--repeat N] [--depth N] [--bits 4|8|16]
 *                     [--width PIXELS] [--height PIXELS] [--detail PIXELS] [--cloud FILE.npy]
 *                     [--size METRES] [--out FOLDER, for the pictures as PPM files]
 *                     [--quick 1: primary rays and shadows alone]
 * Beside wall time stands the time of all processors, which a busy machine changes less. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu/render/render.h"
#include "gpu/svdag/edit/edit.h"
#include "gpu/svdag/query/query.h"
#include "gpu/svdag/scan/scan.h"
#include "tests/bench/support/bench_cloud.h"
#include "tests/bench/support/bench_device.h"

#define MAX_REPEAT 100
#define N_COLOURS 8

struct options {
    enum vxd_backend backend;
    int n_threads;
    int n_repeat;
    int depth;
    int bits;
    uint32_t width, height;
    double detail;
    double size_m;
    const char *cloud;
    const char *out;
    int is_quick;
};

struct bench {
    struct options options;
    struct bench_device device;
    struct vxd_svdag *svdag;
    uint32_t root;
    struct vxd_render_picture picture;
    struct vxd_buffer pixels;
    uint32_t *copy; /* of them, host */
};

static const uint32_t palette[N_COLOURS] = {0x8d8478, 0x4f7a3a, 0x6f8f46, 0xc2b280,
                                            0x7d6a55, 0xf2f2f0, 0xb5482f, 0x5d8aa8};

/* --- scenes ----------------------------------------------------------------------------- */

static enum vxd_status apply(struct bench *bench, const struct vxd_svdag_op *ops,
                             size_t n_ops, struct vxd_err *err)
{
    struct vxd_svdag_edit_result edit = {0};
    enum vxd_status status = vxd_svdag_edit_wait(bench->device.queue, bench->svdag,
                                                 bench->root, ops, n_ops, &edit, err);

    bench->root = status == VXD_OK ? edit.root : bench->root;
    return status;
}

/* Height of the ground at a place, of a scene of side 1. */
static double ground(double x, double y)
{
    double h = 0.16 + 0.05 * sin(7 * x + 2) * cos(5 * y) + 0.02 * sin(23 * x + 11 * y);

    return h + 0.006 * sin(61 * x) * sin(67 * y + 1) + 0.22 * pow(fabs(x - 0.5) * 1.9, 3);
}

static enum vxd_status make_ground(struct bench *bench, struct vxd_err *err)
{
    int64_t side = (int64_t)1 << bench->options.depth;
    uint32_t n = side < 2048 ? (uint32_t)side : 2048;
    int64_t *heights = malloc((size_t)n * n * sizeof *heights);
    struct vxd_svdag_op ops[5] = {0};
    enum vxd_status status;

    if (heights == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for heights");
    }
    for (size_t i = 0; i < (size_t)n * n; i++) {
        double h = ground((double)(i / n) / n, (double)(i % n) / n);

        heights[i] = (int64_t)(h * (double)side * VXD_SVDAG_UNIT);
    }
    ops[0].shape.kind = VXD_SVDAG_HEIGHTFIELD;
    ops[0].shape.field =
        (struct vxd_svdag_heights){heights, n, n, (uint32_t)(side / n), 0, 0};
    ops[0].value = 1;
    for (int i = 1; i < 5; i++) { /* layers of paint, from below */
        static const double low[5] = {0, 0.0, 0.1, 0.22, 0.3};
        static const uint32_t value[5] = {0, 3, 1, 4, 5};

        ops[i].shape.kind = VXD_SVDAG_BOX;
        ops[i].action = VXD_SVDAG_PAINT;
        ops[i].value = value[i];
        ops[i].shape.high[0] = ops[i].shape.high[1] = side * VXD_SVDAG_UNIT;
        ops[i].shape.low[2] = (int64_t)(low[i] * (double)side * VXD_SVDAG_UNIT);
        ops[i].shape.high[2] =
            (int64_t)((i < 4 ? low[i + 1] : 1.0) * (double)side * VXD_SVDAG_UNIT);
    }
    status = apply(bench, ops, 5, err);
    free(heights);
    return status;
}

static enum vxd_status make_boulders(struct bench *bench, struct vxd_err *err)
{
    double units = (double)((int64_t)1 << bench->options.depth) * VXD_SVDAG_UNIT;
    struct vxd_svdag_op ops[96] = {0};
    uint64_t random = 1;

    for (int i = 0; i < 96; i++) {
        double at[3];

        for (int axis = 0; axis < 2; axis++) {
            random = random * 6364136223846793005ULL + 1442695040888963407ULL;
            at[axis] = (double)(random >> 40) * 0x1p-24;
        }
        at[2] = ground(at[0], at[1]) + 0.004;
        ops[i].shape.kind = VXD_SVDAG_NOISE_BALL;
        for (int axis = 0; axis < 3; axis++) {
            ops[i].shape.a[axis] = (int64_t)(at[axis] * units);
        }
        ops[i].shape.r = (int64_t)(units * (0.006 + 0.012 * (double)(random >> 60) / 16));
        ops[i].shape.amplitude = ops[i].shape.r / 3;
        ops[i].shape.cell_bits = bench->options.depth - 7;
        ops[i].shape.cell_bits = ops[i].shape.cell_bits > 1 ? ops[i].shape.cell_bits : 1;
        ops[i].shape.seed = (uint32_t)i;
        ops[i].value = i % 8 == 0 ? 6 : i % 8 == 1 ? 7 : 0;
    }
    return apply(bench, ops, 96, err);
}

static enum vxd_status make_scan(struct bench *bench, struct vxd_err *err)
{
    struct bench_device scanner = {0};
    struct vxd_svdag_spec spec = *vxd_svdag_get_spec(bench->svdag);
    struct vxd_svdag_scan args = {.value = 0};
    struct vxd_svdag_scan_result lists = {0};
    struct vxd_buffer moved[3] = {{0}};
    struct vxd_svdag_op op = {.action = VXD_SVDAG_FILL};
    struct bench_cloud cloud = {0};
    const void *to[2] = {NULL, NULL};
    enum vxd_status status = VXD_OK;

    if (!bench_cloud_read(bench->options.cloud, 4, &cloud)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "cloud", "could not be read");
    }
    VXD_TRY(bench_device_create(VXD_BACKEND_CPU, 0, &scanner, err));
    for (size_t i = 0; i < cloud.n_points; i++) {
        for (size_t axis = 0; axis < 3; axis++) {
            cloud.rows[3 * i + axis] =
                (float)(cloud.rows[i * (size_t)cloud.n_columns + axis] /
                        bench->options.size_m);
        }
    }
    args.points = cloud.rows; /* the CPU's device memory is the host's */
    args.n = cloud.n_points;
    for (int axis = 0; axis < 3; axis++) {
        args.base[axis] = (int64_t)1 << (bench->options.depth - 1);
    }
    VXD_TRY(vxd_svdag_scan_voxels(scanner.queue, &spec.format, &args, &lists, err));
    VXD_TRY(vxd_queue_wait(scanner.queue, err));
    VXD_TRY(vxd_upload(bench->device.queue, lists.hits.voxels.codes,
                       lists.hits.voxels.n * sizeof(uint64_t), &moved[0], &to[0], err));
    VXD_TRY(vxd_upload(bench->device.queue, lists.hits.voxels.masks,
                       lists.hits.voxels.n * sizeof(uint64_t), &moved[1], &to[1], err));
    op.shape.kind = VXD_SVDAG_VOXELS;
    op.shape.voxels =
        (struct vxd_svdag_voxels){to[0], to[1], NULL, NULL, lists.hits.voxels.n};
    status = apply(bench, &op, 1, err);
out:
    if (bench->device.queue != NULL) {
        (void)vxd_queue_wait(bench->device.queue, NULL);
        vxd_device_free(bench->device.queue, &moved[0]);
        vxd_device_free(bench->device.queue, &moved[1]);
    }
    if (scanner.queue != NULL) {
        vxd_svdag_voxel_list_free(scanner.queue, &lists.hits);
        vxd_svdag_voxel_list_free(scanner.queue, &lists.passed);
    }
    bench_device_destroy(&scanner);
    bench_cloud_free(&cloud);
    return status;
}

static void set_picture(struct bench *bench)
{
    double side = (double)((int64_t)1 << bench->options.depth);
    bool is_scan = bench->options.cloud != NULL;
    /* A scan's sensor is in the middle of the scene; hills are seen from a corner. */
    double metre = 1 / bench->options.size_m;
    double eye[3] = {side / 2 - 25 * metre, side / 2 - 12 * metre, side / 2 + 14 * metre};
    double target[3] = {side / 2, side / 2, side / 2 - 2 * metre};
    struct vxd_render_picture *picture = &bench->picture;

    *picture = (struct vxd_render_picture){
        .camera = {.kind = VXD_RENDER_PINHOLE, .up = {0, 0, 1}, .fov_y_deg = 50},
        .width = bench->options.width,
        .height = bench->options.height,
        .voxel_size_m = bench->options.size_m,
        .samples = 1,
        .bounces = 3,
        .shadows = true,
        .sun_direction = {-0.5, 0.55, 0.75},
        .sun = 0.85,
        .ambient = 0.35,
        .sky_zenith = 0x5c8fd6,
        .sky_horizon = 0xdfe9f3,
        .sky_ground = 0xc2c6ca,
        .sky = 1,
        .palette = palette,
        .n_palette = N_COLOURS,
        .variation = is_scan ? 0.0 : 0.12,
        .z_low = is_scan ? side / 2 - 3 * metre : 0.05 * side,
        .z_high = is_scan ? side / 2 + 5 * metre : 0.4 * side,
        .detail = bench->options.detail};
    for (int i = 0; i < 3; i++) {
        static const double at[2][3] = {{0.12, 0.1, 0.38}, {0.6, 0.75, 0.1}};

        picture->camera.eye[i] = is_scan ? eye[i] : at[0][i] * side;
        picture->camera.target[i] = is_scan ? target[i] : at[1][i] * side;
    }
}

static enum vxd_status make_scene(struct bench *bench, struct vxd_err *err)
{
    struct vxd_svdag_spec spec = {
        .format = {bench->options.depth, bench->options.bits, false}};
    enum vxd_status status;

    VXD_TRY(vxd_svdag_create(bench->device.queue, &spec, &bench->svdag, err));
    if (bench->options.cloud != NULL) {
        VXD_TRY(make_scan(bench, err));
    } else {
        VXD_TRY(make_ground(bench, err));
        VXD_TRY(make_boulders(bench, err));
    }
    set_picture(bench);
out:
    return status;
}

/* --- runs ------------------------------------------------------------------------------- */

static size_t n_pixels(const struct bench *bench)
{
    return (size_t)bench->options.width * bench->options.height;
}

/* The median of the runs, by wall and by processors. */
struct timing {
    double wall[MAX_REPEAT];
    double processors[MAX_REPEAT];
};

static void print_row(const struct bench *bench, const char *name, struct timing *timing,
                      double n_rays)
{
    double seconds = bench_median(timing->wall, bench->options.n_repeat);
    double busy = bench_median(timing->processors, bench->options.n_repeat);

    (void)printf("| %s | %.3f | %.1f | %.1f |\n", name, seconds * 1e3,
                 n_rays / seconds * 1e-6, busy * 1e3);
}

static enum vxd_status begin_run(struct bench *bench, struct timing *timing, int run,
                                 struct vxd_err *err)
{
    enum vxd_status status = bench_device_flush(&bench->device, err);

    timing->processors[run < 0 ? 0 : run] = (double)clock() / CLOCKS_PER_SEC;
    (void)bench_device_start(&bench->device);
    return status;
}

static enum vxd_status end_run(struct bench *bench, struct timing *timing, int run,
                               struct vxd_err *err)
{
    int i = run < 0 ? 0 : run; /* the first run warms up */
    enum vxd_status status;

    (void)bench_device_stop(&bench->device);
    status = vxd_queue_wait(bench->device.queue, err);
    timing->wall[i] = bench_device_seconds(&bench->device);
    timing->processors[i] = (double)clock() / CLOCKS_PER_SEC - timing->processors[i];
    return status;
}

static bool write_ppm(const struct bench *bench, const char *name)
{
    char path[512];
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/%s.ppm", bench->options.out, name);
    file = fopen(path, "wb");
    if (file == NULL) {
        return false;
    }
    (void)fprintf(file, "P6\n%u %u\n255\n", bench->options.width, bench->options.height);
    for (size_t i = 0; i < n_pixels(bench); i++) {
        unsigned char rgb[3] = {(unsigned char)bench->copy[i],
                                (unsigned char)(bench->copy[i] >> 8),
                                (unsigned char)(bench->copy[i] >> 16)};

        (void)fwrite(rgb, 1, 3, file);
    }
    return fclose(file) == 0;
}

static enum vxd_status run_picture(struct bench *bench, const char *name,
                                   const char *file, struct vxd_err *err)
{
    struct vxd_queue *queue = bench->device.queue;
    const struct vxd_render_rect whole = {0, 0, bench->options.width,
                                          bench->options.height};
    struct vxd_render_plan *plan = NULL;
    struct timing timing;
    enum vxd_status status;

    VXD_TRY(vxd_render_plan_create(queue, &bench->picture, &plan, err));
    VXD_TRY(vxd_queue_wait(queue, err));
    for (int i = -1; i < bench->options.n_repeat; i++) {
        VXD_TRY(begin_run(bench, &timing, i, err));
        VXD_TRY(vxd_render_draw(queue, plan, bench->svdag, bench->root, &whole,
                                bench->pixels.ptr, err));
        VXD_TRY(end_run(bench, &timing, i, err));
    }
    print_row(bench, name, &timing,
              (double)n_pixels(bench) *
                  (double)vxd_render_rays_of_pixel(&bench->picture));
    VXD_TRY(vxd_queue_copy(queue, bench->copy, bench->pixels.ptr, bench->pixels.n_bytes,
                           err));
    VXD_TRY(vxd_queue_wait(queue, err));
    if (bench->options.out != NULL && file != NULL && !write_ppm(bench, file)) {
        VXD_TRY(
            vxd_fail(err, VXD_INVALID_ARGUMENT, "out", "%s.ppm cannot be written", file));
    }
out:
    vxd_render_plan_destroy(queue, plan);
    return status;
}

/* The same rays as the picture's, by the queries' exact rule. */
static enum vxd_status run_queries(struct bench *bench, struct vxd_err *err)
{
    struct vxd_queue *queue = bench->device.queue;
    size_t n = n_pixels(bench);
    double *rays = malloc(6 * n * sizeof *rays);
    struct vxd_buffer arrays[2] = {{0}};
    struct vxd_buffer hits = {0};
    struct vxd_render_plan *plan = NULL;
    struct timing timing;
    enum vxd_status status = VXD_OK;

    if (rays == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for rays");
    }
    VXD_TRY(vxd_render_plan_create(queue, &bench->picture, &plan, err));
    for (size_t i = 0; i < n; i++) {
        vxd_render_pixel_ray(plan, (uint32_t)(i % bench->options.width),
                             (uint32_t)(i / bench->options.width), rays + 3 * i,
                             rays + 3 * (n + i));
    }
    VXD_TRY(vxd_device_alloc(queue, n * sizeof(struct vxd_svdag_hit), &hits, err));
    for (int i = 0; i < 2; i++) {
        VXD_TRY(vxd_device_alloc(queue, 3 * n * sizeof *rays, &arrays[i], err));
        VXD_TRY(vxd_queue_copy(queue, arrays[i].ptr, rays + 3 * n * (size_t)i,
                               3 * n * sizeof *rays, err));
    }
    VXD_TRY(vxd_queue_wait(queue, err));
    for (int i = -1; i < bench->options.n_repeat; i++) {
        VXD_TRY(begin_run(bench, &timing, i, err));
        VXD_TRY(vxd_svdag_cast_rays(queue, bench->svdag, bench->root, arrays[0].ptr,
                                    arrays[1].ptr, NULL, n, hits.ptr, err));
        VXD_TRY(end_run(bench, &timing, i, err));
    }
    print_row(bench, "primary rays as queries", &timing, (double)n);
out:
    (void)vxd_queue_wait(queue, NULL);
    vxd_render_plan_destroy(queue, plan);
    vxd_device_free(queue, &arrays[0]);
    vxd_device_free(queue, &arrays[1]);
    vxd_device_free(queue, &hits);
    free(rays);
    return status;
}

static enum vxd_status run_all(struct bench *bench, struct vxd_err *err)
{
    struct vxd_render_picture *picture = &bench->picture;
    enum vxd_status status;

    VXD_TRY(run_queries(bench, err));
    picture->mode = VXD_RENDER_MATERIAL;
    VXD_TRY(run_picture(bench, "primary", NULL, err));
    picture->mode = VXD_RENDER_COLOUR;
    VXD_TRY(run_picture(bench, "primary + shadow", "colour", err));
    if (bench->options.is_quick != 0) {
        return VXD_OK;
    }
    picture->mode = VXD_RENDER_HEIGHT;
    VXD_TRY(run_picture(bench, "primary + shadow, by height", "height", err));
    picture->mode = VXD_RENDER_AO;
    picture->ao_samples = 16;
    VXD_TRY(run_picture(bench, "AO, 16 samples", "ao", err));
    picture->mode = VXD_RENDER_COLOUR;
    picture->samples = 4;
    picture->ao_samples = 4;
    VXD_TRY(run_picture(bench, "4 samples, 4 of AO each", "best", err));
    picture->mode = VXD_RENDER_PATH;
    picture->samples = 16;
    VXD_TRY(run_picture(bench, "paths, 16 samples, 3 bounces", "path", err));
out:
    return status;
}

static enum vxd_status run(struct bench *bench, struct vxd_err *err)
{
    struct vxd_svdag_summary summary;
    struct bench_floors floors = {0};
    enum vxd_status status;

    VXD_TRY(bench_device_create(bench->options.backend, bench->options.n_threads,
                                &bench->device, err));
    VXD_TRY(make_scene(bench, err));
    VXD_TRY(
        vxd_svdag_verify(bench->device.queue, bench->svdag, bench->root, &summary, err));
    VXD_TRY(bench_device_floors(&bench->device, (size_t)1 << 26, (size_t)1 << 22, &floors,
                                err));
    (void)printf(
        "%llu occupied voxels in %.1f MiB of nodes, depth %d, %d bits; %u x %u "
        "pixels, detail %g. Writing the pixels alone takes %.3f ms (copies), %.0f M "
        "random reads/s.\n\n| picture | ms | M rays/s | processors, ms "
        "|\n|---|---|---|---|\n",
        (unsigned long long)summary.n_occupied, (double)summary.node_bytes / 1048576,
        bench->options.depth, bench->options.bits, bench->options.width,
        bench->options.height, bench->options.detail,
        4e3 * (double)n_pixels(bench) / (floors.copy_bytes_per_s + 1e-9),
        floors.gather_per_s * 1e-6);
    VXD_TRY(
        vxd_device_alloc(bench->device.queue, n_pixels(bench) * 4, &bench->pixels, err));
    bench->copy = malloc(n_pixels(bench) * 4);
    if (bench->copy == NULL) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for pixels"));
    }
    status = run_all(bench, err);
out:
    if (bench->device.queue != NULL) {
        (void)vxd_queue_wait(bench->device.queue, NULL);
        vxd_device_free(bench->device.queue, &bench->pixels);
        vxd_svdag_destroy(bench->device.queue, bench->svdag);
    }
    free(bench->copy);
    bench_device_destroy(&bench->device);
    return status;
}

static bool parse(int argc, char **argv, struct options *out)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *name = argv[i];
        const char *value = argv[i + 1];
        long number = strtol(value, NULL, 10);

        if (strcmp(name, "--backend") == 0) {
            out->backend =
                strcmp(value, "cuda") == 0 ? VXD_BACKEND_CUDA : VXD_BACKEND_CPU;
        } else if (strcmp(name, "--threads") == 0) {
            out->n_threads = (int)number;
        } else if (strcmp(name, "--repeat") == 0) {
            out->n_repeat = (int)number;
        } else if (strcmp(name, "--depth") == 0) {
            out->depth = (int)number;
        } else if (strcmp(name, "--bits") == 0) {
            out->bits = (int)number;
        } else if (strcmp(name, "--width") == 0) {
            out->width = (uint32_t)number;
        } else if (strcmp(name, "--height") == 0) {
            out->height = (uint32_t)number;
        } else if (strcmp(name, "--detail") == 0) {
            out->detail = strtod(value, NULL);
        } else if (strcmp(name, "--size") == 0) {
            out->size_m = strtod(value, NULL);
        } else if (strcmp(name, "--cloud") == 0) {
            out->cloud = value;
        } else if (strcmp(name, "--quick") == 0) {
            out->is_quick = (int)number;
        } else if (strcmp(name, "--out") == 0) {
            out->out = value;
        } else {
            return false;
        }
    }
    return argc % 2 == 1 && out->n_repeat >= 1 && out->n_repeat <= MAX_REPEAT &&
           out->depth >= 7 && out->depth <= 17 && out->size_m > 0 && out->width >= 1 &&
           out->width <= VXD_RENDER_MAX_SIDE && out->height >= 1 &&
           out->height <= VXD_RENDER_MAX_SIDE;
}

int main(int argc, char **argv)
{
    struct bench bench = {.options = {.n_repeat = 5,
                                      .depth = 11,
                                      .bits = 8,
                                      .width = 640,
                                      .height = 360,
                                      .size_m = 0.1}};
    struct vxd_err err = {0};

    if (!parse(argc, argv, &bench.options)) {
        (void)fprintf(stderr, "usage: the head of bench_render.c says\n");
        return EXIT_FAILURE;
    }
    if (run(&bench, &err) != VXD_OK) {
        (void)fprintf(stderr, "bench_render: %s: %s\n", err.field, err.message);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
