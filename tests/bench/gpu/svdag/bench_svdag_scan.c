// SPDX-License-Identifier: Apache-2.0
/* Times what a robot does ten times a second: a scan of points is decoded, its rays are
 * cast, and it is edited into a scene as one version. The scan (generated, or files in
 * turn) is integrated again and again along a drive. Prints a line per stage: medians,
 * and the first scan separately, because its scene is empty.
 * usage: bench_gpu_svdag_scan [--backend cpu|cuda] [--threads N] [--scans N] [--bits 0|4|8|16]
 *                           [--free 0|1] [--size METRES] [--range METRES] [--step METRES]
 *                           [--rays each|discretized] [--fusion last|log-odds]
 *                           [--cloud FILE.bin|FILE.npy] [--second FILE.bin|FILE.npy] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu/occupancy/occupancy.h"
#include "gpu/svdag/scan/scan.h"
#include "gpu/svdag/edit/edit.h"
#include "gpu/voxel/voxel.h"
#include "tests/bench/support/bench_cloud.h"
#include "tests/bench/support/bench_device.h"

#define MAX_SCANS 1000
#define DEPTH 17

enum stage {
    STAGE_DECODE,
    STAGE_SCAN,
    STAGE_FUSE, /* of log-odds */
    STAGE_EDIT,
    STAGE_ALL,
    STAGE_PART, /* the longest between two borders, where work ends that nobody waits for */
    STAGE_PART_CPU, /* the longest by what all threads computed */
    N_STAGES
};

static const char *const stage_names[N_STAGES] = {"decode",
                                                  "cast",
                                                  "fuse",
                                                  "edit",
                                                  "all",
                                                  "longest part",
                                                  "longest part, all threads' time"};

struct bench {
    enum vxd_backend backend;
    int n_threads;
    int n_scans;
    int bits;
    bool tracks_free;
    bool discretize;
    bool fuses;
    double size_m;
    double range_m;
    double step_m;
    const char *names[2];
    struct bench_cloud clouds[2];
    struct bench_device device;
    struct vxd_buffer records[2];
    struct vxd_buffer points;
    struct vxd_svdag *svdag;
    struct vxd_occupancy *layer; /* NULL: the last word */
    uint32_t root;
    double times[N_STAGES][MAX_SCANS]; /* ms */
    double border_s;                   /* when the last border was */
    double longest_ms;
    double border_cpu_s; /* the processors' time then */
    double longest_cpu_ms;
    struct vxd_svdag_scan_result last; /* its numbers */
    struct vxd_svdag_edit_result change;
};

static enum vxd_status load(struct bench *bench, struct vxd_err *err)
{
    struct vxd_queue *queue = bench->device.queue;
    size_t most = 0;
    enum vxd_status status = VXD_OK;

    for (int k = 0; k < 2; k++) {
        struct bench_cloud *cloud = &bench->clouds[k];
        const char *name = bench->names[k] != NULL ? bench->names[k] : bench->names[0];
        size_t n_bytes;

        if (name != NULL ? !bench_cloud_read(name, 4, cloud) : !bench_cloud_make(cloud)) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "cloud", "could not be read");
        }
        n_bytes = cloud->n_points * (size_t)cloud->n_columns * sizeof(float);
        VXD_TRY(vxd_device_alloc(queue, n_bytes, &bench->records[k], err));
        VXD_TRY(vxd_queue_copy(queue, bench->records[k].ptr, cloud->rows, n_bytes, err));
        most = cloud->n_points > most ? cloud->n_points : most;
    }
    VXD_TRY(vxd_device_alloc(queue, most * 3 * sizeof(float), &bench->points, err));
    VXD_TRY(vxd_queue_wait(queue, err));
out:
    return status;
}

/* From the sensor's frame to voxels; the scan's base is the scene's origin. */
static enum vxd_status decode(struct bench *bench, int scan, struct vxd_err *err)
{
    const struct bench_cloud *cloud = &bench->clouds[scan % 2];
    struct vxd_cloud args = {.data = bench->records[scan % 2].ptr,
                             .n_points = cloud->n_points,
                             .point_step = (uint32_t)cloud->n_columns * 4};
    enum vxd_status status;

    for (int a = 0; a < 3; a++) {
        args.position[a] = (struct vxd_field){(uint32_t)a * 4, VXD_FLOAT32, 1, 0};
        args.rotation[4 * a] = 1 / bench->size_m;
    }
    VXD_TRY(vxd_cloud_decode(bench->device.queue, &args, bench->points.ptr, NULL, err));
    VXD_TRY(vxd_queue_wait(bench->device.queue, err));
out:
    return status;
}

/* Without log-odds the passed voxels become free and then the hit ones occupied; with them,
 * the hit ones are filled and then those freed that the plan says. */
static enum vxd_status edit(struct bench *bench, double at[N_STAGES], struct vxd_err *err)
{
    struct vxd_queue *queue = bench->device.queue;
    const struct vxd_svdag_voxels *hits = &bench->last.hits.voxels;
    const struct vxd_svdag_voxels *passed = &bench->last.passed.voxels;
    const enum vxd_svdag_action frees =
        bench->tracks_free ? VXD_SVDAG_SET_FREE : VXD_SVDAG_ERASE;
    struct vxd_svdag_op ops[2] = {
        {.shape = {.kind = VXD_SVDAG_VOXELS, .voxels = *passed}, .action = frees},
        {.shape = {.kind = VXD_SVDAG_VOXELS, .voxels = *hits}, .action = VXD_SVDAG_FILL}};
    struct vxd_occupancy_plan *plan = NULL;
    double since;
    enum vxd_status status = VXD_OK;

    at[STAGE_FUSE] = bench_now_s();
    if (bench->layer != NULL) {
        ops[0] = ops[1];
        ops[1].action = frees;
        VXD_TRY(vxd_occupancy_plan_scan(queue, bench->layer, bench->svdag, bench->root,
                                        hits, 1, passed, 1, &plan, &ops[1].shape.voxels,
                                        err));
    }
    at[STAGE_EDIT] = bench_now_s();
    VXD_TRY(vxd_svdag_edit_wait(queue, bench->svdag, bench->root, ops, 2, &bench->change,
                                err));
    at[STAGE_ALL] = bench_now_s();
    if (plan != NULL) {
        VXD_TRY(vxd_occupancy_apply(queue, bench->layer, plan, err));
        since = at[STAGE_ALL];
        at[STAGE_ALL] = bench_now_s();
        /* Counts as fusing. */
        at[STAGE_EDIT] += at[STAGE_ALL] - since;
    }
out:
    vxd_occupancy_plan_free(queue, plan);
    return status;
}

static double processors_s(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* A border, where work ends that nobody waits for: notes how long the part before it took. */
static bool at_border(void *user)
{
    struct bench *bench = user;
    double now = bench_now_s();
    double cpu = processors_s();
    double ms = (now - bench->border_s) * 1e3;
    double cpu_ms = (cpu - bench->border_cpu_s) * 1e3;

    bench->border_s = now;
    bench->border_cpu_s = cpu;
    bench->longest_cpu_ms =
        cpu_ms > bench->longest_cpu_ms ? cpu_ms : bench->longest_cpu_ms;
    bench->longest_ms = ms > bench->longest_ms ? ms : bench->longest_ms;
    return false;
}

static enum vxd_status
scan_in_steps(struct bench *bench, const struct vxd_svdag_scan *scan, struct vxd_err *err)
{
    struct vxd_queue *queue = bench->device.queue;
    struct vxd_svdag_scanning *scanning;
    bool is_done = false;
    enum vxd_status status;

    VXD_TRY(vxd_svdag_scan_begin(queue, &vxd_svdag_get_spec(bench->svdag)->format, scan,
                                 &scanning, err));
    while (!is_done) {
        VXD_TRY(vxd_svdag_scan_step(queue, scanning, &bench->last, &is_done, err));
        (void)at_border(bench);
    }
out:
    vxd_svdag_scan_end(scanning);
    return status;
}

static enum vxd_status integrate(struct bench *bench, int scan, struct vxd_err *err)
{
    struct vxd_queue *queue = bench->device.queue;
    const int64_t centre = (int64_t)1 << (DEPTH - 1);
    struct vxd_svdag_scan args = {.points = bench->points.ptr,
                                  .n = bench->clouds[scan % 2].n_points,
                                  .base = {centre, centre, centre},
                                  .max_range = bench->range_m / bench->size_m,
                                  .carve = true,
                                  .discretize = bench->discretize};
    double at[N_STAGES];
    enum vxd_status status;

    bench->last = (struct vxd_svdag_scan_result){0};
    args.base[0] += (int64_t)(scan * bench->step_m / bench->size_m);
    at[STAGE_DECODE] = bench_now_s();
    VXD_TRY(decode(bench, scan, err));
    at[STAGE_SCAN] = bench_now_s();
    bench->border_s = at[STAGE_SCAN];
    bench->border_cpu_s = processors_s();
    bench->longest_ms = 0;
    bench->longest_cpu_ms = 0;
    VXD_TRY(scan_in_steps(bench, &args, err));
    VXD_TRY(edit(bench, at, err));
    (void)at_border(bench);
    bench->times[STAGE_PART][scan] = bench->longest_ms;
    bench->times[STAGE_PART_CPU][scan] = bench->longest_cpu_ms;
    bench->root = bench->change.root;
    for (int stage = 0; stage < STAGE_ALL; stage++) {
        bench->times[stage][scan] = (at[stage + 1] - at[stage]) * 1e3;
    }
    bench->times[STAGE_ALL][scan] = (at[STAGE_ALL] - at[STAGE_DECODE]) * 1e3;
out:
    vxd_svdag_voxel_list_free(queue, &bench->last.hits);
    vxd_svdag_voxel_list_free(queue, &bench->last.passed);
    return status;
}

static void print_layer(struct bench *bench)
{
    struct vxd_occupancy_stats stats;

    if (bench->layer != NULL && vxd_occupancy_get_stats(bench->device.queue, bench->layer,
                                                        &stats, NULL) == VXD_OK) {
        (void)printf("log-odds: %zu blocks, %llu observed voxels, %zu bytes: %.2f each\n",
                     stats.n_blocks, (unsigned long long)stats.n_observed, stats.n_bytes,
                     (double)stats.n_bytes / (double)stats.n_observed);
    }
}

static void print(struct bench *bench)
{
    struct vxd_svdag_usage usage;

    vxd_svdag_get_usage(bench->svdag, &usage);
    (void)printf(
        "%zu points, range %g m, voxels %g m, %d material bits, free space %s; of "
        "the last scan: %llu hit voxels, %llu passed, %llu added, %llu removed, "
        "%llu freed; store %.1f MiB\n\n| stage | first scan, ms | median, ms | longest "
        "after the first, ms |\n"
        "|---|---|---|---|\n",
        bench->clouds[0].n_points, bench->range_m, bench->size_m, bench->bits,
        bench->tracks_free ? "tracked" : "not tracked",
        (unsigned long long)bench->last.n_hit_voxels,
        (unsigned long long)bench->last.n_passed_voxels,
        (unsigned long long)bench->change.n_added,
        (unsigned long long)bench->change.n_removed,
        (unsigned long long)bench->change.n_freed, (double)usage.n_bytes / 1048576);
    for (int stage = 0; stage < N_STAGES; stage++) {
        double *times = bench->times[stage];
        double first = times[0];
        double longest = bench->n_scans > 1 ? times[1] : first;

        for (int scan = 2; scan < bench->n_scans; scan++) {
            longest = times[scan] > longest ? times[scan] : longest;
        }
        (void)printf("| %s | %.2f | %.2f | %.2f |\n", stage_names[stage], first,
                     bench->n_scans > 1 ? bench_median(times + 1, bench->n_scans - 1)
                                        : first,
                     longest);
    }
}

static enum vxd_status run(struct bench *bench, struct vxd_err *err)
{
    struct vxd_svdag_spec spec = {.format = {DEPTH, bench->bits, bench->tracks_free}};
    struct vxd_occupancy_odds odds = {0};
    struct vxd_occupancy_rule rule;
    enum vxd_status status;

    VXD_TRY(bench_device_create(bench->backend, bench->n_threads, &bench->device, err));
    VXD_TRY(load(bench, err));
    VXD_TRY(vxd_svdag_create(bench->device.queue, &spec, &bench->svdag, err));
    vxd_svdag_set_stop(bench->svdag, at_border, bench);
    if (bench->fuses) {
        VXD_TRY(vxd_occupancy_rule_of(&odds, &rule, err));
        VXD_TRY(
            vxd_occupancy_create(bench->device.queue, &rule, DEPTH, &bench->layer, err));
    }
    for (int scan = 0; scan < bench->n_scans; scan++) {
        VXD_TRY(integrate(bench, scan, err));
        if (scan == 0) {
            print_layer(bench);
        }
    }
    print_layer(bench);
    print(bench);
out:
    if (bench->device.queue != NULL) {
        vxd_occupancy_destroy(bench->device.queue, bench->layer);
        vxd_svdag_destroy(bench->device.queue, bench->svdag);
        vxd_device_free(bench->device.queue, &bench->points);
        vxd_device_free(bench->device.queue, &bench->records[0]);
        vxd_device_free(bench->device.queue, &bench->records[1]);
    }
    bench_cloud_free(&bench->clouds[0]);
    bench_cloud_free(&bench->clouds[1]);
    bench_device_destroy(&bench->device);
    return status;
}

static bool parse(int argc, char **argv, struct bench *bench)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *name = argv[i];
        const char *value = argv[i + 1];
        double number = strtod(value, NULL);

        if (strcmp(name, "--backend") == 0) {
            bench->backend =
                strcmp(value, "cuda") == 0 ? VXD_BACKEND_CUDA : VXD_BACKEND_CPU;
        } else if (strcmp(name, "--threads") == 0) {
            bench->n_threads = (int)number;
        } else if (strcmp(name, "--scans") == 0) {
            bench->n_scans = (int)number;
        } else if (strcmp(name, "--bits") == 0) {
            bench->bits = (int)number;
        } else if (strcmp(name, "--free") == 0) {
            bench->tracks_free = number != 0;
        } else if (strcmp(name, "--rays") == 0) {
            bench->discretize = strcmp(value, "discretized") == 0;
        } else if (strcmp(name, "--fusion") == 0) {
            bench->fuses = strcmp(value, "log-odds") == 0;
        } else if (strcmp(name, "--size") == 0) {
            bench->size_m = number;
        } else if (strcmp(name, "--range") == 0) {
            bench->range_m = number;
        } else if (strcmp(name, "--step") == 0) {
            bench->step_m = number;
        } else if (strcmp(name, "--cloud") == 0) {
            bench->names[0] = value;
        } else if (strcmp(name, "--second") == 0) {
            bench->names[1] = value;
        } else {
            return false;
        }
    }
    return argc % 2 == 1 && bench->n_scans >= 1 && bench->n_scans <= MAX_SCANS &&
           bench->size_m > 0 && bench->range_m >= 0;
}

int main(int argc, char **argv)
{
    struct bench *bench = calloc(1, sizeof *bench);
    struct vxd_err err = {0};
    int code = EXIT_FAILURE;

    if (bench == NULL) {
        return EXIT_FAILURE;
    }
    bench->n_scans = 11;
    bench->tracks_free = true;
    bench->size_m = 0.1;
    bench->range_m = 50;
    bench->step_m = 1;
    if (!parse(argc, argv, bench)) {
        (void)fprintf(stderr, "usage: the head of bench_svdag_scan.c says\n");
    } else if (run(bench, &err) != VXD_OK) {
        (void)fprintf(stderr, "bench_gpu_svdag_scan: %s: %s\n", err.field, err.message);
    } else {
        code = EXIT_SUCCESS;
    }
    free(bench);
    return code;
}
