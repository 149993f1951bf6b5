// SPDX-License-Identifier: Apache-2.0
/* What the daemon adds to the engine, measured from a client of a running one: the round
 * trip of a 3 MB cloud less the reply's engine_ms, beside nng's bare round trip of the same
 * sizes; a status round trip; and the daemon's memory and CPU time before and after.
 *
 *   bench_daemon --url ipc:///path [--pid PID] [--repeat N] [--points N] [--cloud FILE]
 *                [--size M] [--memory N] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/c/include/voxeld.h"
#include "tests/bench/server/bench_client.h"

enum {
    WARM_UP = 20,
    IDLE_S = 2
};

struct bench {
    const char *url;
    long pid;
    long n_repeat;
    long n_points;
    const char *cloud; /* a file in place of random points */
    double size_m;
    long n_memory; /* requests between the two readings of resident memory */
    struct nng_floor *floor;
};

/* Reads VmRSS of the daemon in KiB, 0 where that fails. */
static long resident_kib(long pid)
{
    char path[64];
    char line[256];
    long kib = 0;
    FILE *file;

    (void)snprintf(path, sizeof path, "/proc/%ld/status", pid);
    file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "VmRSS:", 6) == 0) {
            kib = strtol(line + 6, NULL, 10);
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return kib;
}

/* Reads the CPU time of the daemon in clock ticks: fields 14 and 15 of its stat. */
static long cpu_ticks(long pid)
{
    char path[64];
    char line[1024] = "";
    const char *at;
    long user = 0;
    long system_ticks = 0;
    FILE *file;

    (void)snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    file = fopen(path, "r");
    if (file == NULL) {
        return 0;
    }
    if (fgets(line, sizeof line, file) == NULL) {
        line[0] = '\0';
    }
    (void)fclose(file);
    at = strrchr(line, ')');
    if (at == NULL ||
        sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld", &user,
               &system_ticks) != 2) {
        return 0;
    }
    return user + system_ticks;
}

/* Random points in a box of 80 x 80 x 4 metres. */
static void make_cloud(float *points, long n)
{
    uint64_t state = 1;

    for (long i = 0; i < 3 * n; i++) {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
        points[i] = (float)(state >> 40) / 16777216.0f * (i % 3 == 2 ? 4.0f : 80.0f);
    }
}

/* The parts of a request's time; n values each. */
struct series {
    double *total;    /* round trip */
    double *overhead; /* less the engine's time */
    double *inside;   /* of that in the daemon, from the message's arrival to packing */
    size_t n_reply;   /* bytes of the reply's arrays */
};

static int voxelize_often(struct voxeld_client *client,
                          const struct voxeld_voxelize_request *request, long n,
                          struct series *out)
{
    struct voxeld_error error = {0};

    for (long i = -WARM_UP; i < n; i++) {
        struct voxeld_voxels *voxels;
        double begin = bench_now_ms();
        double ms;

        if (voxeld_voxelize(client, request, &voxels, &error) != VOXELD_OK) {
            return bench_fail("voxelize", &error);
        }
        ms = bench_now_ms() - begin;
        if (i >= 0) {
            out->total[i] = ms;
            out->overhead[i] = ms - voxels->engine_ms;
            out->inside[i] = voxels->total_ms - voxels->engine_ms;
        }
        out->n_reply = voxels->n_voxels * (sizeof(int32_t) * 4 + sizeof(uint32_t) +
                                           sizeof(float) * voxels->n_channels);
        voxeld_voxels_free(voxels);
    }
    return EXIT_SUCCESS;
}

static int status_often(struct voxeld_client *client, long n, double *total)
{
    struct voxeld_error error = {0};

    for (long i = -WARM_UP; i < n; i++) {
        struct voxeld_server_status *status;
        double begin = bench_now_ms();

        if (voxeld_get_status(client, NULL, &status, &error) != VOXELD_OK) {
            return bench_fail("status", &error);
        }
        if (i >= 0) {
            total[i] = bench_now_ms() - begin;
        }
        voxeld_server_status_free(status);
    }
    return EXIT_SUCCESS;
}

/* Allocates all series as one block, freed by free(series->total). */
static bool series_create(struct series *series, long n)
{
    series->total = calloc((size_t)n, 3 * sizeof *series->total);
    if (series->total == NULL) {
        return false;
    }
    series->overhead = series->total + n;
    series->inside = series->overhead + n;
    return true;
}

static int measure_memory(struct voxeld_client *client,
                          const struct voxeld_voxelize_request *request,
                          const struct bench *bench)
{
    struct series ignored = {0};
    long before = resident_kib(bench->pid);
    int result = EXIT_FAILURE;

    if (series_create(&ignored, bench->n_memory)) {
        result = voxelize_often(client, request, bench->n_memory, &ignored);
    }
    free(ignored.total);
    (void)printf("resident memory: %ld KiB, after %ld requests more %ld KiB\n", before,
                 bench->n_memory, resident_kib(bench->pid));
    return result;
}

static void measure_idle(long pid)
{
    const struct timespec pause = {.tv_sec = IDLE_S};
    long before = cpu_ticks(pid);

    (void)nanosleep(&pause, NULL);
    (void)printf("idle: %ld clock ticks of CPU in %d s\n", cpu_ticks(pid) - before,
                 IDLE_S);
}

/* Sorts the round trips' series, so it comes last. */
static int measure_floor(const struct bench *bench, size_t n_request, struct series *ms,
                         double overhead_ms)
{
    long n = bench->n_repeat;

    int result = bench_print_floor(bench->floor, n_request, ms->n_reply, n, ms->total);

    if (result != EXIT_SUCCESS) {
        return result;
    }
    (void)printf("ratio at p50: %.2f\n", overhead_ms / ms->total[n / 2]);
    return EXIT_SUCCESS;
}

static int measure(struct voxeld_client *client, const struct bench *bench,
                   const struct voxeld_cloud *cloud, struct series *ms)
{
    const struct voxeld_voxelize_request request = {
        .clouds = cloud,
        .n_clouds = 1,
        .size_m = {bench->size_m, bench->size_m, bench->size_m}};
    long n = bench->n_repeat;
    int result = voxelize_often(client, &request, n, ms);

    (void)printf("%zu points, %.1f MB a request, %.1f MB a reply, %ld requests\n",
                 cloud->n_points, 1e-6 * (double)(cloud->n_points * cloud->point_step),
                 1e-6 * (double)ms->n_reply, n);
    if (result != EXIT_SUCCESS) {
        return result;
    }
    bench_print_head();
    bench_print_row("voxelize, round trip", ms->total, n);
    bench_print_row("voxelize, less the engine's time", ms->overhead, n);
    bench_print_row("  of that inside the daemon", ms->inside, n);
    result = measure_floor(bench, cloud->n_points * cloud->point_step, ms,
                           ms->overhead[n / 2]);
    if (result != EXIT_SUCCESS) {
        return result;
    }
    result = status_often(client, n, ms->total);
    if (result != EXIT_SUCCESS) {
        return result;
    }
    bench_print_row("status, round trip", ms->total, n);
    if (bench->pid > 0) {
        result = measure_memory(client, &request, bench);
        measure_idle(bench->pid);
    }
    return result;
}

static int run(struct voxeld_client *client, const struct bench *bench)
{
    static const struct voxeld_field fields[] = {
        {.name = "x", .offset = 0, .dtype = VOXELD_FLOAT32},
        {.name = "y", .offset = 4, .dtype = VOXELD_FLOAT32},
        {.name = "z", .offset = 8, .dtype = VOXELD_FLOAT32},
    };
    float *points = calloc((size_t)bench->n_points, 3 * sizeof *points);
    struct voxeld_cloud made = {.fields = fields,
                                .n_fields = 3,
                                .point_step = 12,
                                .data = points,
                                .n_points = (size_t)bench->n_points};
    struct voxeld_cloud *read = NULL;
    struct voxeld_error error = {0};
    struct series ms = {0};
    int result = EXIT_FAILURE;

    if (bench->cloud != NULL &&
        voxeld_cloud_read_file(bench->cloud, NULL, &read, &error) != VOXELD_OK) {
        (void)bench_fail(bench->cloud, &error);
    } else if (points != NULL && series_create(&ms, bench->n_repeat)) {
        make_cloud(points, bench->n_points);
        result = measure(client, bench, read != NULL ? read : &made, &ms);
    }
    voxeld_cloud_free(read);
    free(points);
    free(ms.total);
    return result;
}

static bool parse(int argc, char **argv, struct bench *bench)
{
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        long number = value != NULL ? strtol(value, NULL, 10) : 0;

        if (value == NULL) {
            return false;
        }
        if (strcmp(argv[i], "--url") == 0) {
            bench->url = value;
        } else if (strcmp(argv[i], "--pid") == 0) {
            bench->pid = number;
        } else if (strcmp(argv[i], "--repeat") == 0) {
            bench->n_repeat = number;
        } else if (strcmp(argv[i], "--points") == 0) {
            bench->n_points = number;
        } else if (strcmp(argv[i], "--cloud") == 0) {
            bench->cloud = value;
        } else if (strcmp(argv[i], "--size") == 0) {
            bench->size_m = strtod(value, NULL);
        } else if (strcmp(argv[i], "--memory") == 0) {
            bench->n_memory = number;
        } else {
            return false;
        }
    }
    return bench->n_repeat > 0 && bench->n_points > 0 && bench->n_memory > 0;
}

int main(int argc, char **argv)
{
    struct bench bench = {
        .n_repeat = 200, .n_points = 250000, .size_m = 0.5, .n_memory = 1000};
    struct voxeld_options options = {.timeout_ms = 10000};
    struct voxeld_client *client;
    struct voxeld_error error = {0};
    int result;

    if (!parse(argc, argv, &bench)) {
        (void)fputs("usage: bench_daemon --url URL [--pid PID] [--repeat N] [--points N] "
                    "[--cloud FILE] [--size M] [--memory N]\n",
                    stderr);
        return 2;
    }
    bench.floor = nng_floor_start();
    if (bench.floor == NULL) {
        (void)fputs("cannot start the other process of the floor\n", stderr);
        return EXIT_FAILURE;
    }
    options.url = bench.url;
    if (voxeld_connect(&options, &client, &error) == VOXELD_OK) {
        result = run(client, &bench);
        voxeld_close(client);
    } else {
        result = bench_fail("connect", &error);
    }
    nng_floor_stop(bench.floor);
    return result;
}
