// SPDX-License-Identifier: Apache-2.0
/* Times distance fields: one of 20 x 20 x 3.2 m around a sensor whose scan (generated, or a file)
 * is in a scene, made from scratch, again after another scan from 0.5 m farther on, which changes
 * nearly every block, and again after an obstacle of 768 voxels has come or gone; then queries,
 * contacts and trajectories. Prints Markdown with the time that the process's threads
 * computed, and the floor of the same run: the bytes that a full update moves, at the rate of
 * copies. Scans are converted to lists of voxels on the
 * CPU, whatever device the scene is on.
 * usage: bench_field [--backend cpu|cuda] [--threads N] [--repeat N] [--size METRES]
 *                    [--cloud FILE.bin|FILE.npy] [--distance METRES] [--queries N]
 *                    [--dump FILE]   (the box's obstacles, a byte each, and then the squares
 *                    of the field, int32 each, for compare_edt.py) */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu/field/field.h"
#include "gpu/svdag/edit/edit.h"
#include "gpu/svdag/scan/scan.h"
#include "tests/bench/support/bench_cloud.h"
#include "tests/bench/support/bench_device.h"

#define MAX_REPEAT 100
#define DEPTH 12
#define STEP_M 0.5
/* What a full update reads and writes of a voxel (gpu/field/README.md). */
#define BYTES_A_VOXEL 15.0

struct options {
    enum vxd_backend backend;
    int n_threads;
    int n_repeat;
    double size_m;
    double distance_m;
    size_t n;
    const char *cloud;
    const char *dump;
};

struct bench {
    struct options options;
    struct bench_device scanner; /* CPU */
    struct bench_device device;
    struct vxd_svdag *svdag;
    uint32_t roots[3]; /* with one scan, with two, and with one and the obstacle */
    struct vxd_field *field;
    uint64_t random;
    struct vxd_buffer points, shapes, poses, spheres;
    struct vxd_buffer distances, gradients, nearest, hits, first;
};

static double random_unit(struct bench *bench)
{
    uint64_t z = bench->random += 0x9e3779b97f4a7c15ULL;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

/* --- the scene ------------------------------------------------------------------------- */

static enum vxd_status add_scan(struct bench *bench, const struct bench_cloud *cloud,
                                int scan, struct vxd_err *err)
{
    struct vxd_queue *queue = bench->device.queue;
    const struct vxd_svdag_format *format = &vxd_svdag_get_spec(bench->svdag)->format;
    double centre = 1 << (DEPTH - 1);
    struct vxd_svdag_scan args = {
        .points = cloud->rows,
        .n = cloud->n_points,
        .base = {(int64_t)(centre + scan * STEP_M / bench->options.size_m),
                 (int64_t)centre, (int64_t)centre},
        .max_range = 30 / bench->options.size_m};
    struct vxd_svdag_scan_result lists = {0};
    struct vxd_buffer arrays[2] = {{0}, {0}};
    const void *to[2] = {NULL, NULL};
    struct vxd_svdag_op op = {.action = VXD_SVDAG_FILL,
                              .shape = {.kind = VXD_SVDAG_VOXELS}};
    struct vxd_svdag_edit_result edit = {0};
    enum vxd_status status;

    VXD_TRY(vxd_svdag_scan_voxels(bench->scanner.queue, format, &args, &lists, err));
    VXD_TRY(vxd_queue_wait(bench->scanner.queue, err));
    VXD_TRY(vxd_upload(queue, lists.hits.voxels.codes,
                       lists.hits.voxels.n * sizeof(uint64_t), &arrays[0], &to[0], err));
    VXD_TRY(vxd_upload(queue, lists.hits.voxels.masks,
                       lists.hits.voxels.n * sizeof(uint64_t), &arrays[1], &to[1], err));
    op.shape.voxels =
        (struct vxd_svdag_voxels){to[0], to[1], NULL, NULL, lists.hits.voxels.n};
    VXD_TRY(vxd_svdag_edit_wait(queue, bench->svdag, scan > 0 ? bench->roots[0] : 0, &op,
                                1, &edit, err));
    bench->roots[scan] = edit.root;
out:
    /* Copies of the lists may still be under way after an error. */
    (void)vxd_queue_wait(queue, NULL);
    vxd_device_free(queue, &arrays[0]);
    vxd_device_free(queue, &arrays[1]);
    vxd_svdag_voxel_list_free(bench->scanner.queue, &lists.hits);
    vxd_svdag_voxel_list_free(bench->scanner.queue, &lists.passed);
    return status;
}

/* A box of 0.4 x 0.4 x 0.6 m on the ground, 3 m in front of the first scan's sensor. */
static enum vxd_status add_obstacle(struct bench *bench, struct vxd_err *err)
{
    const int64_t centre = 1 << (DEPTH - 1);
    const int64_t low[3] = {centre + (int64_t)(3 / bench->options.size_m), centre,
                            centre - (int64_t)(1.6 / bench->options.size_m)};
    const int64_t size[3] = {8, 8, 12};
    struct vxd_svdag_op op = {.action = VXD_SVDAG_FILL, .shape = {.kind = VXD_SVDAG_BOX}};
    struct vxd_svdag_edit_result edit = {0};
    enum vxd_status status;

    for (int axis = 0; axis < 3; axis++) {
        op.shape.low[axis] = low[axis] * VXD_SVDAG_UNIT;
        op.shape.high[axis] = (low[axis] + size[axis]) * VXD_SVDAG_UNIT;
    }
    VXD_TRY(vxd_svdag_edit_wait(bench->device.queue, bench->svdag, bench->roots[0], &op,
                                1, &edit, err));
    bench->roots[2] = edit.root;
out:
    return status;
}

static enum vxd_status make_scene(struct bench *bench, struct vxd_err *err)
{
    const struct options *options = &bench->options;
    struct vxd_svdag_spec spec = {.format = {DEPTH, 0, false}};
    struct bench_cloud cloud = {0};
    enum vxd_status status;

    if (options->cloud != NULL ? !bench_cloud_read(options->cloud, 4, &cloud)
                               : !bench_cloud_make(&cloud)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "cloud", "could not be read");
    }
    VXD_TRY(vxd_svdag_create(bench->device.queue, &spec, &bench->svdag, err));
    for (size_t i = 0; i < cloud.n_points; i++) {
        for (size_t axis = 0; axis < 3; axis++) {
            cloud.rows[3 * i + axis] =
                (float)((double)cloud.rows[i * (size_t)cloud.n_columns + axis] /
                        options->size_m);
        }
    }
    VXD_TRY(add_scan(bench, &cloud, 0, err));
    VXD_TRY(add_scan(bench, &cloud, 1, err));
    VXD_TRY(add_obstacle(bench, err));
out:
    bench_cloud_free(&cloud);
    return status;
}

/* The nearest multiple of a block. */
static int32_t in_blocks(double voxels)
{
    return (int32_t)lround(voxels / VXD_FIELD_BLOCK) * VXD_FIELD_BLOCK;
}

static enum vxd_status make_field(struct bench *bench, struct vxd_err *err)
{
    const struct options *options = &bench->options;
    struct vxd_field_spec spec = {.voxel_size_m = options->size_m};
    double centre = 1 << (DEPTH - 1);

    for (int axis = 0; axis < 2; axis++) {
        spec.low[axis] = in_blocks(centre - 10 / options->size_m);
        spec.high[axis] = in_blocks(centre + 10 / options->size_m);
    }
    spec.low[2] = in_blocks(centre - 2 / options->size_m);
    spec.high[2] = spec.low[2] + in_blocks(3.2 / options->size_m);
    spec.max_distance = (int)lround(options->distance_m / options->size_m);
    return vxd_field_create(bench->device.queue, &spec, &bench->field, err);
}

/* --- questions ------------------------------------------------------------------------- */

static void random_place(struct bench *bench, double place[3])
{
    const struct vxd_field_spec *spec = vxd_field_get_spec(bench->field);

    for (int axis = 0; axis < 3; axis++) {
        place[axis] = spec->low[axis] +
                      random_unit(bench) * (double)(spec->high[axis] - spec->low[axis]);
    }
}

/* A third spheres of 0.3 m, a third boxes of 1 x 0.6 x 0.4 m turned anyhow, a third capsules of
 * 1 m and 0.2 m radius. */
static void random_shape(struct bench *bench, size_t i, struct vxd_field_shape *out)
{
    double length = 0;

    memset(out, 0, sizeof *out);
    random_place(bench, out->a);
    out->kind = (int32_t)(i % 3);
    out->r = (out->kind == VXD_FIELD_SPHERE ? 0.3 : 0.2) / bench->options.size_m;
    for (int axis = 0; axis < 4; axis++) {
        out->q[axis] = random_unit(bench) - 0.5;
        length += out->q[axis] * out->q[axis];
    }
    for (int axis = 0; axis < 4; axis++) {
        out->q[axis] /= sqrt(length);
    }
    for (int axis = 0; axis < 3; axis++) {
        out->b[axis] = out->kind == VXD_FIELD_BOX
                           ? (0.5 - 0.1 * axis) / bench->options.size_m
                           : out->a[axis] + out->q[axis] / bench->options.size_m;
    }
}

/* Trajectories of 100 steps of 0.05 m straight on in any direction across the ground. */
static void make_poses(struct bench *bench, double *poses, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double at[3];
        double yaw = random_unit(bench) * 6.283185307179586;

        random_place(bench, at);
        for (size_t step = 0; step < 100; step++) {
            double *pose = poses + 7 * (100 * i + step);
            double way = 0.05 * (double)step / bench->options.size_m;

            pose[0] = at[0] + cos(yaw) * way;
            pose[1] = at[1] + sin(yaw) * way;
            pose[2] = at[2];
            pose[3] = 0;
            pose[4] = 0;
            pose[5] = sin(yaw / 2);
            pose[6] = cos(yaw / 2);
        }
    }
}

static enum vxd_status upload(struct bench *bench, struct vxd_buffer *to,
                              const void *from, size_t n_bytes, struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(vxd_device_alloc(bench->device.queue, n_bytes, to, err));
    VXD_TRY(vxd_queue_copy(bench->device.queue, to->ptr, from, n_bytes, err));
    VXD_TRY(vxd_queue_wait(bench->device.queue, err));
out:
    return status;
}

static enum vxd_status make_questions(struct bench *bench, struct vxd_err *err)
{
    size_t n = bench->options.n;
    size_t n_poses = n / 100 * 100;
    double *points = malloc(n * 3 * sizeof *points);
    struct vxd_field_shape *shapes = malloc(n * sizeof *shapes);
    double *poses = malloc((n_poses + 1) * 7 * sizeof *poses);
    double sphere[4] = {0, 0, 0, 0.3 / bench->options.size_m};
    enum vxd_status status;

    if (points == NULL || shapes == NULL || poses == NULL) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for questions"));
    }
    for (size_t i = 0; i < n; i++) {
        random_place(bench, points + 3 * i);
        random_shape(bench, i, shapes + i);
    }
    make_poses(bench, poses, n_poses / 100);
    VXD_TRY(upload(bench, &bench->points, points, n * 24, err));
    VXD_TRY(upload(bench, &bench->shapes, shapes, n * sizeof *shapes, err));
    VXD_TRY(upload(bench, &bench->poses, poses, (n_poses + 1) * 56, err));
    VXD_TRY(upload(bench, &bench->spheres, sphere, sizeof sphere, err));
    VXD_TRY(vxd_device_alloc(bench->device.queue, n * 4, &bench->distances, err));
    VXD_TRY(vxd_device_alloc(bench->device.queue, n * 12, &bench->gradients, err));
    VXD_TRY(vxd_device_alloc(bench->device.queue, n * 12, &bench->nearest, err));
    VXD_TRY(vxd_device_alloc(bench->device.queue, n, &bench->hits, err));
    VXD_TRY(vxd_device_alloc(bench->device.queue, n * 4, &bench->first, err));
out:
    free(poses);
    free(shapes);
    free(points);
    return status;
}

/* --- runs ------------------------------------------------------------------------------ */

enum work {
    FULL,
    AFTER_SCAN,
    AFTER_OBSTACLE,
    NO_CHANGE,
    LONGEST_PART,
    NEAREST,
    TRILINEAR,
    SURFACE,
    SHAPES,
    TRAJECTORIES,
    N_WORK
};

static const char *const names[N_WORK] = {"field from scratch, voxels",
                                          "field after a scan, voxels",
                                          "field after an obstacle, voxels",
                                          "field of the same version, voxels",
                                          "longest part of one from scratch, voxels",
                                          "distance, gradient, nearest voxel",
                                          "the same, trilinear",
                                          "the same, to surfaces",
                                          "contacts of spheres, boxes, capsules",
                                          "poses of trajectories of 100"};

static enum vxd_status update(struct bench *bench, uint32_t root, struct vxd_err *err)
{
    return vxd_field_update(bench->device.queue, bench->field, bench->svdag, root, 0,
                            vxd_field_n_parts(bench->field), err);
}

static enum vxd_status do_work(struct bench *bench, enum work work, int repeat,
                               struct vxd_err *err)
{
    struct vxd_queue *queue = bench->device.queue;
    size_t n = bench->options.n;
    struct vxd_field_trajectories in = {bench->spheres.ptr, bench->poses.ptr, 1, 100,
                                        n / 100};

    switch (work) {
    case FULL:
        vxd_field_forget(bench->field);
        return update(bench, bench->roots[0], err);
    case AFTER_SCAN:
        return update(bench, bench->roots[repeat & 1], err);
    case AFTER_OBSTACLE:
        return update(bench, bench->roots[(repeat & 1) != 0 ? 2 : 0], err);
    case NO_CHANGE:
        return update(bench, bench->roots[0], err);
    case SHAPES:
        return vxd_field_collide(queue, bench->field, bench->shapes.ptr, n,
                                 bench->hits.ptr, bench->distances.ptr, err);
    case TRAJECTORIES:
        return vxd_field_follow(queue, bench->field, &in, bench->first.ptr,
                                bench->distances.ptr, err);
    default:
        return vxd_field_query(queue, bench->field, bench->points.ptr, n,
                               (enum vxd_field_mode)(work - NEAREST),
                               bench->distances.ptr, bench->gradients.ptr,
                               bench->nearest.ptr, err);
    }
}

/* The longest of an update's parts, which is what a stage of the daemon cannot be below. */
static enum vxd_status time_parts(struct bench *bench, double *longest,
                                  struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    *longest = 0;
    vxd_field_forget(bench->field);
    for (size_t i = 0; i < vxd_field_n_parts(bench->field); i++) {
        double seconds;

        (void)bench_device_start(&bench->device);
        VXD_TRY(vxd_field_update(bench->device.queue, bench->field, bench->svdag,
                                 bench->roots[0], i, 1, err));
        (void)bench_device_stop(&bench->device);
        VXD_TRY(vxd_queue_wait(bench->device.queue, err));
        seconds = bench_device_seconds(&bench->device);
        *longest = seconds > *longest ? seconds : *longest;
    }
out:
    return status;
}

static double processors_s(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static size_t n_voxels(const struct bench *bench)
{
    const struct vxd_field_spec *spec = vxd_field_get_spec(bench->field);
    size_t n = 1;

    for (int axis = 0; axis < 3; axis++) {
        n *= (size_t)(spec->high[axis] - spec->low[axis]);
    }
    return n;
}

static enum vxd_status run_work(struct bench *bench, enum work work, double floor_s,
                                struct vxd_err *err)
{
    size_t n = work <= LONGEST_PART ? n_voxels(bench) : bench->options.n;
    double times[MAX_REPEAT];
    double cpu_times[MAX_REPEAT];
    double seconds;
    enum vxd_status status = VXD_OK;

    for (int i = -1; i < bench->options.n_repeat; i++) {
        double *time = &times[i < 0 ? 0 : i];
        double *cpu_time = &cpu_times[i < 0 ? 0 : i];

        VXD_TRY(bench_device_flush(&bench->device, err));
        *cpu_time = processors_s();
        if (work == LONGEST_PART) {
            VXD_TRY(time_parts(bench, time, err));
            *cpu_time = 0;
            continue;
        }
        (void)bench_device_start(&bench->device);
        VXD_TRY(do_work(bench, work, i, err));
        (void)bench_device_stop(&bench->device);
        VXD_TRY(vxd_queue_wait(bench->device.queue, err));
        *time = bench_device_seconds(&bench->device);
        *cpu_time = processors_s() - *cpu_time;
    }
    seconds = bench_median(times, bench->options.n_repeat);
    (void)printf("| %s | %zu | %.3f | %.1f | %.2f |", names[work], n, seconds * 1e3,
                 (double)n / seconds * 1e-6,
                 bench_median(cpu_times, bench->options.n_repeat) * 1e3);
    if (work == FULL) {
        (void)printf(" %.3f | %.1f |\n", floor_s * 1e3, seconds / floor_s);
    } else {
        (void)printf(" | |\n");
    }
out:
    return status;
}

/* Writes what a read of the field gives for the first version: x slowest. */
static enum vxd_status dump(struct bench *bench, struct vxd_err *err)
{
    const struct vxd_field_spec *spec = vxd_field_get_spec(bench->field);
    size_t n = n_voxels(bench);
    struct vxd_buffer d_squares = {0};
    struct vxd_buffer d_distances = {0};
    int32_t *squares = malloc(n * sizeof *squares);
    float *distances = malloc(n * sizeof *distances);
    FILE *file = fopen(bench->options.dump, "wb");
    struct vxd_field_arrays out = {0};
    enum vxd_status status;

    if (squares == NULL || distances == NULL || file == NULL) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "dump", "cannot be written"));
    }
    VXD_TRY(vxd_device_alloc(bench->device.queue, n * 4, &d_squares, err));
    VXD_TRY(vxd_device_alloc(bench->device.queue, n * 4, &d_distances, err));
    out.squares = d_squares.ptr;
    out.distances = d_distances.ptr;
    VXD_TRY(update(bench, bench->roots[0], err));
    VXD_TRY(vxd_field_read(bench->device.queue, bench->field, spec->low, spec->high, &out,
                           err));
    VXD_TRY(vxd_queue_copy(bench->device.queue, squares, d_squares.ptr, n * 4, err));
    VXD_TRY(vxd_queue_copy(bench->device.queue, distances, d_distances.ptr, n * 4, err));
    VXD_TRY(vxd_queue_wait(bench->device.queue, err));
    for (size_t i = 0; i < n; i++) {
        (void)fputc(distances[i] < 0 ? 1 : 0, file);
    }
    if (fwrite(squares, sizeof *squares, n, file) != n) {
        VXD_TRY(vxd_fail(err, VXD_UNAVAILABLE, "dump", "the disk is full"));
    }
out:
    vxd_device_free(bench->device.queue, &d_squares);
    vxd_device_free(bench->device.queue, &d_distances);
    free(squares);
    free(distances);
    if (file != NULL) {
        (void)fclose(file);
    }
    return status;
}

static enum vxd_status run(struct bench *bench, struct vxd_err *err)
{
    const struct vxd_field_spec *spec;
    struct bench_floors floors = {0};
    double floor_s;
    enum vxd_status status;

    VXD_TRY(bench_device_create(VXD_BACKEND_CPU, 0, &bench->scanner, err));
    VXD_TRY(bench_device_create(bench->options.backend, bench->options.n_threads,
                                &bench->device, err));
    VXD_TRY(make_scene(bench, err));
    VXD_TRY(make_field(bench, err));
    VXD_TRY(make_questions(bench, err));
    VXD_TRY(bench_device_floors(&bench->device, (size_t)64 << 20, 1 << 20, &floors, err));
    floor_s = (double)n_voxels(bench) * BYTES_A_VOXEL / floors.copy_bytes_per_s;
    spec = vxd_field_get_spec(bench->field);
    (void)printf(
        "%d x %d x %d voxels of %g m, distances to %d voxels; copies %.1f GB/s.\n\n"
        "| work | n | ms | M/s | CPU, ms | floor, ms | ratio "
        "|\n|---|---|---|---|---|---|---|\n",
        spec->high[0] - spec->low[0], spec->high[1] - spec->low[1],
        spec->high[2] - spec->low[2], spec->voxel_size_m, spec->max_distance,
        floors.copy_bytes_per_s * 1e-9);
    for (int work = 0; work < N_WORK; work++) {
        VXD_TRY(run_work(bench, (enum work)work, floor_s, err));
    }
    if (bench->options.dump != NULL) {
        VXD_TRY(dump(bench, err));
    }
out:
    if (bench->device.queue != NULL) {
        struct vxd_buffer *all[] = {&bench->points,  &bench->shapes,    &bench->poses,
                                    &bench->spheres, &bench->distances, &bench->gradients,
                                    &bench->nearest, &bench->hits,      &bench->first};

        for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
            vxd_device_free(bench->device.queue, all[i]);
        }
        vxd_field_destroy(bench->device.queue, bench->field);
        vxd_svdag_destroy(bench->device.queue, bench->svdag);
    }
    bench_device_destroy(&bench->device);
    bench_device_destroy(&bench->scanner);
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
        } else if (strcmp(name, "--size") == 0) {
            out->size_m = strtod(value, NULL);
        } else if (strcmp(name, "--distance") == 0) {
            out->distance_m = strtod(value, NULL);
        } else if (strcmp(name, "--queries") == 0) {
            out->n = (size_t)number;
        } else if (strcmp(name, "--cloud") == 0) {
            out->cloud = value;
        } else if (strcmp(name, "--dump") == 0) {
            out->dump = value;
        } else {
            return false;
        }
    }
    return argc % 2 == 1 && out->n_repeat >= 1 && out->n_repeat <= MAX_REPEAT &&
           out->size_m >= 0.02 && out->size_m <= 1 && out->distance_m > 0 &&
           out->n >= 100 && out->n <= (size_t)1 << 26;
}

int main(int argc, char **argv)
{
    struct bench bench = {
        .options = {.n_repeat = 5, .size_m = 0.05, .distance_m = 2, .n = 1000000},
        .random = 1};
    struct vxd_err err = {0};

    if (!parse(argc, argv, &bench.options)) {
        (void)fprintf(stderr, "usage: the head of bench_field.c says\n");
        return EXIT_FAILURE;
    }
    if (run(&bench, &err) != VXD_OK) {
        (void)fprintf(stderr, "bench_field: %s: %s\n", err.field, err.message);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
