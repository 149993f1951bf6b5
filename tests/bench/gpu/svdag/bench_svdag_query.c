// SPDX-License-Identifier: Apache-2.0
/* Times queries of a scene. One scan (generated, or a file) is integrated again and again
 * along a drive, with or without carving of free space; then rays, values, nearest
 * voxels, balls, counts and exports of the map are timed. Prints Markdown; rates are
 * those of the median run. Scans are converted to lists of voxels on the CPU, whatever
 * device the map is on.
 * usage: bench_gpu_svdag_query [--backend cpu|cuda] [--threads N] [--repeat N]
 *                            [--cloud FILE.bin|FILE.npy] [--scans N] [--bits 0|4|8|16]
 *                            [--carve 0|1] [--size METRES] [--depth N] [--queries N] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/svdag/scan/scan.h"
#include "gpu/svdag/diff/diff.h"
#include "gpu/svdag/edit/edit.h"
#include "gpu/svdag/query/query.h"
#include "tests/bench/support/bench_cloud.h"
#include "tests/bench/support/bench_device.h"

#define MAX_REPEAT 100
#define RANGE_M 50.0
#define STEP_M 2.0 /* distance between consecutive scans */
#define SENSOR_M                                                                         \
    1.7 /* points of a scan made from a car lie at most this far below the sensor */

struct options {
    enum vxd_backend backend;
    int n_threads;
    int n_repeat;
    int n_scans;
    int bits;
    int carve;
    int depth;
    double size_m;
    size_t n; /* queries of each kind; fewer of the expensive kinds */
    const char *cloud;
};

/* Queries of all kinds, and memory for all results. */
struct bench {
    struct options options;
    struct bench_device scanner; /* CPU */
    struct bench_device device;
    struct vxd_svdag *svdag;
    uint32_t root;
    int64_t centre; /* voxel where the drive begins, on every axis */
    uint64_t random;
    struct vxd_buffer origins, directions, hits;
    struct vxd_buffer voxels, states, values;
    struct vxd_buffer points, radii, squares;
    struct vxd_buffer regions, counts, n_cells;
};

static double random_unit(struct bench *bench)
{
    uint64_t z = bench->random += 0x9e3779b97f4a7c15ULL;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

/* --- the map --------------------------------------------------------------------------- */

/* Arrays of a list in the map's device memory; wait for the device before freeing
 * them. */
struct moved_list {
    struct vxd_svdag_voxels voxels;
    struct vxd_buffer arrays[4];
};

static enum vxd_status move_list(struct bench *bench, const struct vxd_svdag_voxels *list,
                                 uint64_t n_voxels, struct moved_list *out,
                                 struct vxd_err *err)
{
    const size_t n = list->n;
    const struct {
        const void *from;
        size_t n_bytes;
    } arrays[4] = {{list->codes, n * sizeof *list->codes},
                   {list->masks, n * sizeof *list->masks},
                   {list->first_value, n * sizeof *list->first_value},
                   {list->values, (size_t)n_voxels * sizeof *list->values}};
    const void *to[4] = {NULL, NULL, NULL, NULL};
    enum vxd_status status = VXD_OK;

    for (int i = 0; i < 4; i++) {
        if (n > 0 && arrays[i].from != NULL) {
            VXD_TRY(vxd_upload(bench->device.queue, arrays[i].from, arrays[i].n_bytes,
                               &out->arrays[i], &to[i], err));
        }
    }
    out->voxels = (struct vxd_svdag_voxels){to[0], to[1], to[2], to[3], n};
out:
    return status;
}

static void free_moved(struct bench *bench, struct moved_list *list)
{
    for (int i = 0; i < 4; i++) {
        vxd_device_free(bench->device.queue, &list->arrays[i]);
    }
}

static enum vxd_status integrate(struct bench *bench, const float *points, size_t n,
                                 int scan, struct vxd_err *err)
{
    struct vxd_queue *queue = bench->scanner.queue;
    const struct vxd_svdag_format *format = &vxd_svdag_get_spec(bench->svdag)->format;
    struct vxd_svdag_scan args = {.points = points, .n = n};
    struct vxd_svdag_scan_result lists = {0};
    struct moved_list moved[2] = {0};
    struct vxd_svdag_edit_result edit = {0};
    struct vxd_svdag_op ops[2] = {{.action = VXD_SVDAG_SET_FREE},
                                  {.action = VXD_SVDAG_FILL}};
    enum vxd_status status;

    args.value = (uint32_t)scan % vxd_svdag_n_materials(format);
    args.base[0] = bench->centre + (int64_t)(scan * STEP_M / bench->options.size_m);
    args.base[1] = bench->centre;
    args.base[2] = bench->centre;
    args.max_range = RANGE_M / bench->options.size_m;
    args.carve = bench->options.carve != 0;
    VXD_TRY(vxd_svdag_scan_voxels(queue, format, &args, &lists, err));
    VXD_TRY(vxd_queue_wait(queue, err));
    VXD_TRY(
        move_list(bench, &lists.passed.voxels, lists.n_passed_voxels, &moved[0], err));
    VXD_TRY(move_list(bench, &lists.hits.voxels, lists.n_hit_voxels, &moved[1], err));
    for (int i = 0; i < 2; i++) {
        ops[i].value = args.value;
        ops[i].shape.kind = VXD_SVDAG_VOXELS;
        ops[i].shape.voxels = moved[i].voxels;
    }
    VXD_TRY(vxd_svdag_edit_wait(bench->device.queue, bench->svdag, bench->root,
                                ops + !args.carve, args.carve ? 2 : 1, &edit, err));
    bench->root = edit.root;
out:
    /* Copies of the lists may still be under way after an error. */
    (void)vxd_queue_wait(bench->device.queue, NULL);
    free_moved(bench, &moved[0]);
    free_moved(bench, &moved[1]);
    vxd_svdag_voxel_list_free(queue, &lists.hits);
    vxd_svdag_voxel_list_free(queue, &lists.passed);
    return status;
}

static enum vxd_status make_map(struct bench *bench, struct vxd_err *err)
{
    const struct options *options = &bench->options;
    struct vxd_svdag_spec spec = {
        .format = {options->depth, options->bits, options->carve != 0}};
    struct bench_cloud cloud = {0};
    enum vxd_status status;

    if (options->cloud != NULL ? !bench_cloud_read(options->cloud, 4, &cloud)
                               : !bench_cloud_make(&cloud)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "cloud", "could not be read");
    }
    bench->centre = (int64_t)1 << (options->depth - 1);
    VXD_TRY(vxd_svdag_create(bench->device.queue, &spec, &bench->svdag, err));
    for (size_t i = 0; i < cloud.n_points; i++) {
        for (int axis = 0; axis < 3; axis++) {
            cloud.rows[3 * i + (size_t)axis] =
                (float)(cloud.rows[i * (size_t)cloud.n_columns + (size_t)axis] /
                        options->size_m);
        }
    }
    /* The CPU's device memory is the host's. */
    for (int scan = 0; scan < options->n_scans; scan++) {
        VXD_TRY(integrate(bench, cloud.rows, cloud.n_points, scan, err));
    }
out:
    bench_cloud_free(&cloud);
    return status;
}

/* --- the queries
 * ----------------------------------------------------------------------- */

/* A random position near the drive, in voxels: the origin of a ray, or a query point. */
static void random_place(struct bench *bench, double place[3])
{
    const struct options *options = &bench->options;
    double side = 2 * (double)bench->centre;
    double drive_m = (options->n_scans - 1) * STEP_M;

    place[0] = random_unit(bench) * (drive_m + 40) - 20;
    place[1] = random_unit(bench) * 40 - 20;
    place[2] = random_unit(bench) * 4 - SENSOR_M;
    for (int axis = 0; axis < 3; axis++) {
        place[axis] = (double)bench->centre + place[axis] / options->size_m;
        place[axis] = fmin(fmax(place[axis], 0), side - 1);
    }
}

/* A direction uniform over the sphere. */
static void random_direction(struct bench *bench, double direction[3])
{
    double square;

    do {
        square = 0;
        for (int axis = 0; axis < 3; axis++) {
            direction[axis] = random_unit(bench) * 2 - 1;
            square += direction[axis] * direction[axis];
        }
    } while (square > 1 || square < 1e-3);
}

static enum vxd_status make_questions(struct bench *bench, struct vxd_err *err)
{
    struct vxd_queue *queue = bench->device.queue;
    size_t n = bench->options.n;
    double *origins = malloc(n * 6 * sizeof *origins);
    int32_t *voxels = malloc(n * 3 * sizeof *voxels);
    int64_t *points = malloc(n * 4 * sizeof *points);
    struct vxd_svdag_region *regions = malloc(n * sizeof *regions);
    enum vxd_status status = VXD_OK;

    if (origins == NULL || voxels == NULL || points == NULL || regions == NULL) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for questions"));
    }
    for (size_t i = 0; i < n; i++) {
        struct vxd_svdag_region region = {
            .r = (int64_t)(0.5 / bench->options.size_m * 256)};

        random_place(bench, origins + 3 * i);
        random_direction(bench, origins + 3 * (n + i));
        for (size_t axis = 0; axis < 3; axis++) {
            voxels[3 * i + axis] = (int32_t)origins[3 * i + axis];
            points[3 * i + axis] = (int64_t)(origins[3 * i + axis] * VXD_SVDAG_UNIT);
            region.centre[axis] = points[3 * i + axis];
        }
        points[3 * n + i] = (int64_t)(2 / bench->options.size_m * VXD_SVDAG_UNIT);
        regions[i] = region;
    }
    VXD_TRY(vxd_queue_copy(queue, bench->origins.ptr, origins, n * 24, err));
    VXD_TRY(vxd_queue_copy(queue, bench->directions.ptr, origins + 3 * n, n * 24, err));
    VXD_TRY(vxd_queue_copy(queue, bench->voxels.ptr, voxels, n * 12, err));
    VXD_TRY(vxd_queue_copy(queue, bench->points.ptr, points, n * 24, err));
    VXD_TRY(vxd_queue_copy(queue, bench->radii.ptr, points + 3 * n, n * 8, err));
    VXD_TRY(vxd_queue_copy(queue, bench->regions.ptr, regions, n * sizeof *regions, err));
    VXD_TRY(vxd_queue_wait(queue, err));
out:
    free(regions);
    free(points);
    free(voxels);
    free(origins);
    return status;
}

static enum vxd_status alloc_all(struct bench *bench, struct vxd_err *err)
{
    size_t n = bench->options.n;
    struct {
        struct vxd_buffer *buffer;
        size_t n_bytes;
    } all[] = {{&bench->origins, n * 24},
               {&bench->directions, n * 24},
               {&bench->hits, n * sizeof(struct vxd_svdag_hit)},
               {&bench->voxels, n * 12},
               {&bench->states, n},
               {&bench->values, n * 2},
               {&bench->points, n * 24},
               {&bench->radii, n * 8},
               {&bench->squares, n * 8},
               {&bench->counts, n * 16},
               {&bench->n_cells, 8},
               {&bench->regions, n * sizeof(struct vxd_svdag_region)}};
    enum vxd_status status = VXD_OK;

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        VXD_TRY(
            vxd_device_alloc(bench->device.queue, all[i].n_bytes, all[i].buffer, err));
    }
out:
    return status;
}

static void free_all(struct bench *bench)
{
    struct vxd_buffer *all[] = {&bench->origins, &bench->directions, &bench->hits,
                                &bench->voxels,  &bench->states,     &bench->values,
                                &bench->points,  &bench->radii,      &bench->squares,
                                &bench->counts,  &bench->n_cells,    &bench->regions};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        vxd_device_free(bench->device.queue, all[i]);
    }
}

/* --- runs ------------------------------------------------------------------------------ */

enum question {
    RAYS,
    RANGED_RAYS,
    VALUES,
    NEAREST,
    BALLS,
    COUNTS,
    MAP_COUNT,
    CELLS,
    N_QUESTIONS
};

static const char *const names[N_QUESTIONS] = {"rays",
                                               "rays of at most 2 m",
                                               "values",
                                               "nearest within 2 m",
                                               "balls of 0.5 m, overlap",
                                               "balls of 0.5 m, counted",
                                               "the whole map, counted",
                                               "cells, exported"};

static enum vxd_status ask(struct bench *bench, enum question question, size_t n,
                           struct vxd_err *err)
{
    struct vxd_queue *queue = bench->device.queue;
    const struct vxd_svdag *svdag = bench->svdag;
    int64_t side = 2 * bench->centre;
    struct vxd_svdag_export box = {.high = {side, side, side}};

    switch (question) {
    case RAYS:
        return vxd_svdag_cast_rays(queue, svdag, bench->root, bench->origins.ptr,
                                   bench->directions.ptr, NULL, n, bench->hits.ptr, err);
    case RANGED_RAYS:
        return vxd_svdag_cast_rays(queue, svdag, bench->root, bench->origins.ptr,
                                   bench->directions.ptr, bench->squares.ptr, n,
                                   bench->hits.ptr, err);
    case VALUES:
        return vxd_svdag_values(queue, svdag, bench->root, bench->voxels.ptr, n,
                                bench->states.ptr, bench->values.ptr, err);
    case NEAREST:
        return vxd_svdag_nearest(queue, svdag, bench->root, bench->points.ptr,
                                 bench->radii.ptr, n, bench->voxels.ptr,
                                 bench->squares.ptr, bench->values.ptr, err);
    case BALLS:
        return vxd_svdag_overlap(queue, svdag, bench->root, bench->regions.ptr, n,
                                 bench->states.ptr, err);
    case COUNTS:
        return vxd_svdag_count(queue, svdag, bench->root, bench->regions.ptr, n,
                               bench->counts.ptr, err);
    case MAP_COUNT:
        return vxd_svdag_count_cells(queue, svdag, bench->root, &box, bench->n_cells.ptr,
                                     err);
    default:
        return vxd_svdag_export_cells(queue, svdag, bench->root, &box, 0, n,
                                      bench->voxels.ptr, bench->values.ptr, NULL,
                                      bench->n_cells.ptr, err);
    }
}

static enum vxd_status run_question(struct bench *bench, enum question question,
                                    struct vxd_err *err)
{
    size_t n = question == NEAREST     ? bench->options.n / 10
               : question == MAP_COUNT ? 1
                                       : bench->options.n;
    double times[MAX_REPEAT];
    double cpu[MAX_REPEAT];
    double seconds;
    enum vxd_status status = VXD_OK;

    for (int i = -1; i < bench->options.n_repeat; i++) {
        double cpu_s = bench_cpu_s();

        VXD_TRY(bench_device_flush(&bench->device, err));
        (void)bench_device_start(&bench->device);
        VXD_TRY(ask(bench, question, n, err));
        (void)bench_device_stop(&bench->device);
        VXD_TRY(vxd_queue_wait(bench->device.queue, err));
        times[i < 0 ? 0 : i] = bench_device_seconds(&bench->device);
        cpu[i < 0 ? 0 : i] = bench_cpu_s() - cpu_s;
    }
    if (question == CELLS || question == MAP_COUNT) {
        uint64_t n_cells;

        VXD_TRY(vxd_queue_copy(bench->device.queue, &n_cells, bench->n_cells.ptr,
                               sizeof n_cells, err));
        VXD_TRY(vxd_queue_wait(bench->device.queue, err));
        n = (size_t)n_cells;
    }
    seconds = bench_median(times, bench->options.n_repeat);
    (void)printf("| %s | %zu | %.3f | %.1f | %.3f |\n", names[question], n, seconds * 1e3,
                 (double)n / seconds * 1e-6,
                 bench_median(cpu, bench->options.n_repeat) * 1e3);
out:
    return status;
}

/* Prints how many rays hit, which the rates depend on. */
static enum vxd_status print_hits(struct bench *bench, struct vxd_err *err)
{
    size_t n = bench->options.n;
    struct vxd_svdag_hit *hits = malloc(n * sizeof *hits);
    size_t n_hits = 0;
    double sum = 0;
    enum vxd_status status = VXD_OK;

    if (hits == NULL) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for hits"));
    }
    VXD_TRY(ask(bench, RAYS, n, err));
    VXD_TRY(vxd_queue_copy(bench->device.queue, hits, bench->hits.ptr, n * sizeof *hits,
                           err));
    VXD_TRY(vxd_queue_wait(bench->device.queue, err));
    for (size_t i = 0; i < n; i++) {
        if (hits[i].distance >= 0) {
            n_hits++;
            sum += hits[i].distance;
        }
    }
    (void)printf("\n%.1f %% of the rays hit, on average after %.1f voxels.\n",
                 100.0 * (double)n_hits / (double)n, sum / ((double)n_hits + 1e-9));
out:
    free(hits);
    return status;
}

static enum vxd_status run(struct bench *bench, struct vxd_err *err)
{
    struct vxd_svdag_summary summary;
    double range = 2 / bench->options.size_m;
    double *ranges;
    enum vxd_status status;

    VXD_TRY(bench_device_create(VXD_BACKEND_CPU, 0, &bench->scanner, err));
    VXD_TRY(bench_device_create(bench->options.backend, bench->options.n_threads,
                                &bench->device, err));
    VXD_TRY(make_map(bench, err));
    VXD_TRY(
        vxd_svdag_verify(bench->device.queue, bench->svdag, bench->root, &summary, err));
    (void)printf("%d scans, %llu occupied and %llu free voxels of %g m in %.1f MiB of "
                 "nodes, depth %d, %d bits.\n\n| question | n | ms | M/s | ms of "
                 "processors |\n|---|---|---|---|---|\n",
                 bench->options.n_scans, (unsigned long long)summary.n_occupied,
                 (unsigned long long)summary.n_free, bench->options.size_m,
                 (double)summary.node_bytes / 1048576, bench->options.depth,
                 bench->options.bits);
    VXD_TRY(alloc_all(bench, err));
    VXD_TRY(make_questions(bench, err));
    ranges = malloc(bench->options.n * sizeof *ranges);
    if (ranges == NULL) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for ranges"));
    }
    for (size_t i = 0; i < bench->options.n; i++) {
        ranges[i] = range;
    }
    /* Results of nearest-voxel queries are written to the same place later. */
    status = vxd_queue_copy(bench->device.queue, bench->squares.ptr, ranges,
                            bench->options.n * sizeof *ranges, err);
    if (status == VXD_OK) {
        status = vxd_queue_wait(bench->device.queue, err);
    }
    free(ranges);
    VXD_TRY(status);
    for (int question = 0; question < N_QUESTIONS; question++) {
        VXD_TRY(run_question(bench, (enum question)question, err));
    }
    VXD_TRY(print_hits(bench, err));
out:
    if (bench->device.queue != NULL) {
        free_all(bench);
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
        } else if (strcmp(name, "--scans") == 0) {
            out->n_scans = (int)number;
        } else if (strcmp(name, "--bits") == 0) {
            out->bits = (int)number;
        } else if (strcmp(name, "--carve") == 0) {
            out->carve = (int)number;
        } else if (strcmp(name, "--depth") == 0) {
            out->depth = (int)number;
        } else if (strcmp(name, "--size") == 0) {
            out->size_m = strtod(value, NULL);
        } else if (strcmp(name, "--queries") == 0) {
            out->n = (size_t)number;
        } else if (strcmp(name, "--cloud") == 0) {
            out->cloud = value;
        } else {
            return false;
        }
    }
    return argc % 2 == 1 && out->n_repeat >= 1 && out->n_repeat <= MAX_REPEAT &&
           out->n_scans >= 1 && out->size_m > 0 && out->n >= 10 &&
           out->n <= (size_t)1 << 26 && out->depth >= VXD_SVDAG_MIN_DEPTH &&
           out->depth <= VXD_SVDAG_MAX_DEPTH;
}

int main(int argc, char **argv)
{
    struct bench bench = {.options = {.n_repeat = 5,
                                      .n_scans = 10,
                                      .bits = 4,
                                      .carve = 1,
                                      .depth = 14,
                                      .size_m = 0.1,
                                      .n = 1000000},
                          .random = 1};
    struct vxd_err err = {0};

    if (!parse(argc, argv, &bench.options)) {
        (void)fprintf(stderr, "usage: the head of bench_svdag_query.c says\n");
        return EXIT_FAILURE;
    }
    if (run(&bench, &err) != VXD_OK) {
        (void)fprintf(stderr, "bench_gpu_svdag_query: %s: %s\n", err.field, err.message);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
