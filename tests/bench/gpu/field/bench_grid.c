// SPDX-License-Identifier: Apache-2.0
/* Times grids of a scene: columns, costs, heights, slopes and frontiers. Scans (generated, or a
 * file) are integrated along a drive with free space; then a square grid around its beginning is
 * made of a band from 1.5 m below the sensor to 0.5 m above it. Prints Markdown. The floor is the
 * bytes that must move at the copy rate of the same run: what is written, and of columns 8 bytes
 * for each leaf of the band. Scans are converted to lists of voxels on the CPU.
 * usage: bench_grid [--backend cpu|cuda] [--threads N] [--repeat N] [--cloud FILE.bin|FILE.npy]
 *                   [--scans N] [--bits 0|4|8|16] [--size METRES] [--cells N]
 *                   [--inflation METRES] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/grid/grid.h"
#include "gpu/svdag/diff/diff.h"
#include "gpu/svdag/edit/edit.h"
#include "gpu/svdag/scan/scan.h"
#include "tests/bench/support/bench_cloud.h"
#include "tests/bench/support/bench_device.h"

#define MAX_REPEAT 1000
#define RANGE_M 50.0
#define STEP_M 2.0 /* between consecutive scans */
#define BELOW_M 1.5
#define ABOVE_M 0.5
#define DEPTH 12

struct options {
    enum vxd_backend backend;
    int n_threads;
    int n_repeat;
    int n_scans;
    int bits;
    long n_cells; /* of a side */
    double size_m;
    double inflation_m;
    const char *cloud;
};

struct bench {
    struct options options;
    struct bench_device scanner; /* CPU */
    struct bench_device device;
    double copy_bytes_per_s;
    struct vxd_svdag *svdag;
    uint32_t root;
    struct vxd_grid_box box;
    uint32_t n; /* cells of a side */
    uint32_t n_z;
    uint32_t radius;
    struct vxd_buffer states, squares, table, costs, heights, slope, dense, marks;
};

/* --- the map ----------------------------------------------------------------------------- */

/* Arrays of a list in the map's device memory; wait for the device before freeing them. */
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

static enum vxd_status integrate(struct bench *bench, const float *points, size_t n,
                                 int scan, struct vxd_err *err)
{
    struct vxd_queue *queue = bench->scanner.queue;
    const struct vxd_svdag_format *format = &vxd_svdag_get_spec(bench->svdag)->format;
    struct vxd_svdag_scan args = {.points = points, .n = n, .carve = true};
    struct vxd_svdag_scan_result lists = {0};
    struct moved_list moved[2] = {0};
    struct vxd_svdag_edit_result edit = {0};
    struct vxd_svdag_op ops[2] = {{.action = VXD_SVDAG_SET_FREE},
                                  {.action = VXD_SVDAG_FILL}};
    enum vxd_status status;

    args.value = (uint32_t)scan % vxd_svdag_n_materials(format);
    for (int axis = 0; axis < 3; axis++) {
        args.base[axis] = 1 << (DEPTH - 1);
    }
    args.base[0] += (int64_t)(scan * STEP_M / bench->options.size_m);
    args.max_range = RANGE_M / bench->options.size_m;
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
    VXD_TRY(vxd_svdag_edit_wait(bench->device.queue, bench->svdag, bench->root, ops, 2,
                                &edit, err));
    bench->root = edit.root;
out:
    /* Copies of the lists may still be under way after an error. */
    (void)vxd_queue_wait(bench->device.queue, NULL);
    for (int i = 0; i < 8; i++) {
        vxd_device_free(bench->device.queue, &moved[i / 4].arrays[i % 4]);
    }
    vxd_svdag_voxel_list_free(queue, &lists.hits);
    vxd_svdag_voxel_list_free(queue, &lists.passed);
    return status;
}

static enum vxd_status make_map(struct bench *bench, struct vxd_err *err)
{
    const struct options *options = &bench->options;
    struct vxd_svdag_spec spec = {.format = {DEPTH, options->bits, true}};
    struct bench_cloud cloud = {0};
    enum vxd_status status;

    if (options->cloud != NULL ? !bench_cloud_read(options->cloud, 4, &cloud)
                               : !bench_cloud_make(&cloud)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "cloud", "could not be read");
    }
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

/* --- the grids --------------------------------------------------------------------------- */

static enum vxd_status prepare(struct bench *bench, struct vxd_err *err)
{
    const struct options *options = &bench->options;
    const struct vxd_grid_inflation inflation = {
        options->size_m, fmin(0.25, options->inflation_m), options->inflation_m, 10};
    static uint8_t table[VXD_GRID_COST_ENTRIES];
    size_t n = (size_t)options->n_cells * (size_t)options->n_cells;
    const int64_t middle = (int64_t)1 << (DEPTH - 1);
    enum vxd_status status;

    for (int axis = 0; axis < 2; axis++) {
        bench->box.low[axis] = middle - options->n_cells / 2;
        bench->box.high[axis] = bench->box.low[axis] + options->n_cells;
    }
    bench->box.low[2] = middle - (int64_t)(BELOW_M / options->size_m);
    bench->box.high[2] = middle + (int64_t)(ABOVE_M / options->size_m);
    bench->n = (uint32_t)options->n_cells;
    bench->n_z = (uint32_t)(bench->box.high[2] - bench->box.low[2]);
    VXD_TRY(vxd_grid_cost_table(&inflation, &bench->radius, table, err));
    {
        const struct {
            struct vxd_buffer *buffer;
            size_t n_bytes;
        } all[] = {{&bench->states, n},
                   {&bench->squares, 2 * n},
                   {&bench->table, sizeof table},
                   {&bench->costs, n},
                   {&bench->heights, 16 * n},
                   {&bench->slope, 4 * n},
                   {&bench->dense, n * bench->n_z},
                   {&bench->marks, (n * bench->n_z + 31) / 32 * 4}};

        for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
            VXD_TRY(vxd_device_alloc(bench->device.queue, all[i].n_bytes, all[i].buffer,
                                     err));
        }
    }
    VXD_TRY(
        vxd_queue_copy(bench->device.queue, bench->table.ptr, table, sizeof table, err));
    VXD_TRY(vxd_queue_wait(bench->device.queue, err));
out:
    return status;
}

static void free_all(struct bench *bench)
{
    struct vxd_buffer *all[] = {&bench->states, &bench->squares, &bench->table,
                                &bench->costs,  &bench->heights, &bench->slope,
                                &bench->dense,  &bench->marks};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        vxd_device_free(bench->device.queue, all[i]);
    }
}

static enum vxd_status make_states(struct bench *bench, struct vxd_err *err)
{
    const struct vxd_grid_rows rows = {0, bench->n};

    return vxd_grid_states(bench->device.queue, bench->svdag, bench->root, &bench->box,
                           &rows, bench->states.ptr, err);
}

static enum vxd_status make_costs(struct bench *bench, struct vxd_err *err)
{
    struct vxd_queue *queue = bench->device.queue;
    const struct vxd_grid_rows rows = {0, bench->n};
    enum vxd_status status;

    VXD_TRY(vxd_grid_row_squares(queue, bench->states.ptr, bench->n, bench->n, &rows,
                                 bench->radius, VXD_GRID_UNKNOWN_KEPT, bench->squares.ptr,
                                 err));
    VXD_TRY(vxd_grid_costs(queue, bench->states.ptr, bench->squares.ptr, bench->n,
                           bench->n, &rows, bench->radius, VXD_GRID_UNKNOWN_KEPT,
                           bench->table.ptr, bench->costs.ptr, err));
out:
    return status;
}

static enum vxd_status make_costmap(struct bench *bench, struct vxd_err *err)
{
    enum vxd_status status = make_states(bench, err);

    return status == VXD_OK ? make_costs(bench, err) : status;
}

static enum vxd_status make_heights(struct bench *bench, struct vxd_err *err)
{
    const struct vxd_grid_rows rows = {0, bench->n};
    size_t n = (size_t)bench->n * bench->n;
    float *at = bench->heights.ptr;
    const struct vxd_grid_heights heights = {
        0, bench->options.size_m, at, at + n, at + 2 * n, (int32_t *)(at + 3 * n)};
    enum vxd_status status;

    VXD_TRY(vxd_grid_heights(bench->device.queue, bench->svdag, bench->root, &bench->box,
                             &rows, &heights, err));
    VXD_TRY(vxd_grid_slope(bench->device.queue, heights.top, bench->n, bench->n, &rows,
                           bench->slope.ptr, err));
out:
    return status;
}

static enum vxd_status mark_plane(struct bench *bench, struct vxd_err *err)
{
    const uint32_t n[3] = {1, bench->n, bench->n};
    const struct vxd_grid_rows words = {0, (bench->n * bench->n + 31) / 32};

    return vxd_grid_mark_frontiers(bench->device.queue, bench->states.ptr, n, &words,
                                   bench->marks.ptr, err);
}

static enum vxd_status mark_space(struct bench *bench, struct vxd_err *err)
{
    const struct vxd_svdag_export box = {
        {bench->box.low[0], bench->box.low[1], bench->box.low[2]},
        {bench->box.high[0], bench->box.high[1], bench->box.high[2]},
        0,
        false};
    const uint32_t n[3] = {bench->n, bench->n, bench->n_z};
    const struct vxd_grid_rows words = {0, (bench->n * bench->n * bench->n_z + 31) / 32};
    enum vxd_status status;

    VXD_TRY(vxd_svdag_export_dense(bench->device.queue, bench->svdag, bench->root, &box,
                                   bench->dense.ptr, NULL, err));
    VXD_TRY(vxd_grid_mark_frontiers(bench->device.queue, bench->dense.ptr, n, &words,
                                    bench->marks.ptr, err));
out:
    return status;
}

struct measured {
    const char *name;
    enum vxd_status (*run)(struct bench *bench, struct vxd_err *err);
    double bytes_a_cell; /* of the floor */
    bool reads_leaves;
    bool is_space; /* bytes a voxel of the band, not a cell */
};

static enum vxd_status measure(struct bench *bench, const struct measured *what,
                               struct vxd_err *err)
{
    struct bench_device *device = &bench->device;
    double cells = (double)bench->n * bench->n;
    double bytes = what->bytes_a_cell * cells * (what->is_space ? bench->n_z : 1) +
                   (what->reads_leaves ? cells / 16 * (bench->n_z / 4.0) * 8 : 0);
    double times[MAX_REPEAT];
    double ms;
    enum vxd_status status;

    VXD_TRY(what->run(bench, err));
    VXD_TRY(vxd_queue_wait(device->queue, err));
    for (int i = 0; i < bench->options.n_repeat; i++) {
        VXD_TRY(bench_device_flush(device, err));
        if (!bench_device_start(device)) {
            VXD_TRY(vxd_fail(err, VXD_INTERNAL, NULL, "no clock"));
        }
        VXD_TRY(what->run(bench, err));
        if (!bench_device_stop(device)) {
            VXD_TRY(vxd_fail(err, VXD_INTERNAL, NULL, "no clock"));
        }
        VXD_TRY(vxd_queue_wait(device->queue, err));
        times[i] = bench_device_seconds(device);
    }
    ms = bench_median(times, bench->options.n_repeat) * 1e3;
    (void)printf("| %s | %.4f | %.5f | %.1f |\n", what->name, ms,
                 bytes / bench->copy_bytes_per_s * 1e3,
                 ms / (bytes / bench->copy_bytes_per_s * 1e3));
out:
    return status;
}

/* Joins the marks that the device made last, on the host. */
static enum vxd_status cluster(struct bench *bench, const char *name, const uint32_t n[3],
                               struct vxd_err *err)
{
    size_t n_words = ((size_t)n[0] * n[1] * n[2] + 31) / 32;
    uint32_t *marks = malloc(n_words * sizeof *marks);
    struct vxd_clusters *clusters = NULL;
    const struct vxd_cluster *list;
    size_t n_list = 0;
    double start;
    enum vxd_status status;

    if (marks == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for marks");
    }
    VXD_TRY(vxd_queue_copy(bench->device.queue, marks, bench->marks.ptr,
                           n_words * sizeof *marks, err));
    VXD_TRY(vxd_queue_wait(bench->device.queue, err));
    start = bench_now_s();
    VXD_TRY(vxd_clusters_create(vxd_queue_context(bench->device.queue), marks, n,
                                &clusters, err));
    while (!vxd_clusters_step(clusters, n_words)) {
    }
    VXD_TRY(vxd_clusters_finish(clusters, 1, &list, &n_list, err));
    (void)printf("| clusters of %s on the host: %zu of %zu cells | %.4f | | |\n", name,
                 n_list, vxd_clusters_n_cells(clusters), (bench_now_s() - start) * 1e3);
out:
    vxd_clusters_destroy(clusters);
    free(marks);
    return status;
}

static enum vxd_status run(struct bench *bench, struct vxd_err *err)
{
    static const struct measured all[] = {
        {"states of columns", make_states, 1, true, false},
        {"costs of states", make_costs, 2, false, false},
        {"costmap: both", make_costmap, 1, true, false},
        {"heights and slope", make_heights, 16, true, false},
        {"frontiers in the plane, of states", mark_plane, 1.125, false, false},
        {"frontiers in space, with the dense array", mark_space, 0.125, true, true}};
    struct vxd_svdag_summary summary;
    struct bench_floors floors;
    enum vxd_status status;

    VXD_TRY(bench_device_create(VXD_BACKEND_CPU, 0, &bench->scanner, err));
    VXD_TRY(bench_device_create(bench->options.backend, bench->options.n_threads,
                                &bench->device, err));
    VXD_TRY(make_map(bench, err));
    VXD_TRY(
        vxd_svdag_verify(bench->device.queue, bench->svdag, bench->root, &summary, err));
    VXD_TRY(
        bench_device_floors(&bench->device, (size_t)256 << 20, 1 << 20, &floors, err));
    bench->copy_bytes_per_s = floors.copy_bytes_per_s;
    VXD_TRY(prepare(bench, err));
    (void)printf("%d scans, %llu occupied and %llu free voxels of %g m, %d bits; %u x %u "
                 "cells, %u voxels high, costs to %u cells; copy %.1f GB/s.\n\n"
                 "| what | ms | floor, ms | ratio |\n|---|---:|---:|---:|\n",
                 bench->options.n_scans, (unsigned long long)summary.n_occupied,
                 (unsigned long long)summary.n_free, bench->options.size_m,
                 bench->options.bits, bench->n, bench->n, bench->n_z, bench->radius,
                 bench->copy_bytes_per_s * 1e-9);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        VXD_TRY(measure(bench, &all[i], err));
        if (all[i].run == mark_plane) {
            VXD_TRY(
                cluster(bench, "the plane", (uint32_t[3]){1, bench->n, bench->n}, err));
        } else if (all[i].run == mark_space) {
            VXD_TRY(cluster(bench, "the space",
                            (uint32_t[3]){bench->n, bench->n, bench->n_z}, err));
        }
    }
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
        } else if (strcmp(name, "--cells") == 0) {
            out->n_cells = number;
        } else if (strcmp(name, "--size") == 0) {
            out->size_m = strtod(value, NULL);
        } else if (strcmp(name, "--inflation") == 0) {
            out->inflation_m = strtod(value, NULL);
        } else if (strcmp(name, "--cloud") == 0) {
            out->cloud = value;
        } else {
            return false;
        }
    }
    return argc % 2 == 1 && out->n_repeat >= 1 && out->n_repeat <= MAX_REPEAT &&
           out->n_scans >= 1 && out->size_m > 0 && out->n_cells >= 1 &&
           out->n_cells <= 1 << DEPTH && out->inflation_m >= 0;
}

int main(int argc, char **argv)
{
    struct bench bench = {.options = {.n_repeat = 21,
                                      .n_scans = 5,
                                      .bits = 4,
                                      .n_cells = 400,
                                      .size_m = 0.1,
                                      .inflation_m = 0.55}};
    struct vxd_err err = {0};

    if (!parse(argc, argv, &bench.options)) {
        (void)fprintf(stderr, "usage: the head of bench_grid.c says\n");
        return EXIT_FAILURE;
    }
    if (run(&bench, &err) != VXD_OK) {
        (void)fprintf(stderr, "bench_grid: %s: %s\n", err.field, err.message);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
