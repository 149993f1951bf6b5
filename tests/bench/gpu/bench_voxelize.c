// SPDX-License-Identifier: Apache-2.0
/* Times voxelization with Morton order, inverse map, counts and mean features, or, with
 * --outputs coords, of the coordinates alone, or, with --outputs hard, of coordinates, counts and
 * hard voxels at SECOND's settings for KITTI, whatever --sizes and --range say.
 *
 * One line a case: the median time of the device (CUDA events around the call, caches flushed
 * before) or of the CPU (wall clock), the time from the call to the end of the wait, the floor
 * (compulsory bytes over the copy bandwidth measured in this run), their ratio, the peak of device
 * memory, and a digest of all outputs, which is equal on every backend. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/voxel/voxel.h"
#include "tests/bench/support/bench_cloud.h"
#include "tests/bench/support/bench_device.h"

#define MAX_CASES 32
#define MAX_REPEAT 1000
#define FLOOR_BYTES ((size_t)256 << 20)
#define HARD_POINTS 5 /* a voxel; SECOND keeps 40,000 voxels of a scan where it infers */
#define HARD_VOXELS 40000

struct options {
    enum vxd_backend backend;
    const char *file;
    int bin_columns;
    int n_channels;
    int n_repeat;
    int n_threads; /* of the CPU backend, 0 = all cores */
    bool has_range;
    bool
        /* the cloud: scans of a drive at their true places, not side by side */
        is_scene;
    bool
        /* the outputs: inverse map, counts and means too, not only coordinates */
        wants_all;
    bool wants_hard; /* hard voxels at SECOND's settings */
    size_t n_points[MAX_CASES];
    int n_sets;
    double sizes[MAX_CASES];
    int n_sizes;
};

struct bench {
    struct options options;
    struct bench_cloud cloud;
    struct bench_device device;
    struct bench_floors floors;
};

/* One cloud in device memory, and arrays for the outputs. */
struct arrays {
    struct vxd_buffer positions, features, totals, starts, coords, counts, inverse, mean,
        points;
    uint32_t batch_starts[2];
};

static void free_arrays(struct bench *bench, struct arrays *a)
{
    struct vxd_buffer *all[] = {&a->positions, &a->features, &a->totals,
                                &a->starts,    &a->coords,   &a->counts,
                                &a->inverse,   &a->mean,     &a->points};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        vxd_device_free(bench->device.queue, all[i]);
    }
}

static enum vxd_status fill_arrays(struct bench *bench, size_t n, struct arrays *a,
                                   struct vxd_err *err)
{
    size_t n_channels = (size_t)bench->options.n_channels;
    struct vxd_queue *queue = bench->device.queue;
    enum vxd_status status = VXD_OK;
    float *positions = malloc(n * 3 * sizeof *positions);
    float *features = malloc(n * n_channels * sizeof *features);

    if (positions == NULL || features == NULL) {
        status =
            vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for %zu points", n);
        goto out;
    }
    if (bench->options.is_scene) {
        bench_cloud_drive(&bench->cloud, n, (int)n_channels, positions, features);
    } else {
        bench_cloud_tile(&bench->cloud, n, (int)n_channels, positions, features);
    }
    a->batch_starts[1] = (uint32_t)n;
    VXD_TRY(vxd_device_alloc(queue, n * 3 * sizeof(float), &a->positions, err));
    VXD_TRY(vxd_device_alloc(queue, n * n_channels * sizeof(float), &a->features, err));
    VXD_TRY(vxd_device_alloc(queue, sizeof(struct vxd_voxel_totals), &a->totals, err));
    VXD_TRY(vxd_device_alloc(queue, 2 * sizeof(uint32_t), &a->starts, err));
    VXD_TRY(vxd_device_alloc(queue, n * 4 * sizeof(int32_t), &a->coords, err));
    VXD_TRY(vxd_device_alloc(queue, n * sizeof(uint32_t), &a->counts, err));
    VXD_TRY(vxd_device_alloc(queue, n * sizeof(int32_t), &a->inverse, err));
    VXD_TRY(vxd_device_alloc(queue, n * n_channels * sizeof(float), &a->mean, err));
    if (bench->options.wants_hard) {
        VXD_TRY(vxd_device_alloc(
            queue, (size_t)HARD_VOXELS * HARD_POINTS * n_channels * sizeof(float),
            &a->points, err));
    }
    VXD_TRY(
        vxd_queue_copy(queue, a->positions.ptr, positions, a->positions.n_bytes, err));
    VXD_TRY(vxd_queue_copy(queue, a->features.ptr, features, a->features.n_bytes, err));
    VXD_TRY(vxd_queue_wait(queue, err));
out:
    free(features);
    free(positions);
    return status;
}

/* The scan's own bounds, as a user who knows the sensor would give them. */
static void set_range(const struct bench *bench, size_t n, struct vxd_voxelize_args *args)
{
    size_t n_tiles = (n + bench->cloud.n_points - 1) / bench->cloud.n_points;
    float side = n_tiles > 1 ? 1280.0f : 80.0f;

    for (int axis = 0; axis < 3; axis++) {
        args->range_lo_m[axis] = axis < 2 ? -80.0f : -4.0f;
        args->range_hi_m[axis] = axis < 2 ? side : 12.0f;
    }
    args->rule = VXD_RULE_SPCONV;
    args->has_range = true;
}

/* As OpenPCDet's second.yaml has them. */
static void set_second(struct vxd_voxelize_args *args, const struct arrays *a,
                       struct vxd_voxels *out)
{
    static const float low[3] = {0, -40, -3};
    static const float high[3] = {70.4F, 40, 1};
    static const float size[3] = {0.05F, 0.05F, 0.1F};

    memcpy(args->range_lo_m, low, sizeof low);
    memcpy(args->range_hi_m, high, sizeof high);
    memcpy(args->size_m, size, sizeof size);
    args->rule = VXD_RULE_SPCONV;
    args->has_range = true;
    args->order = VXD_ORDER_FIRST_POINT;
    args->max_points = HARD_POINTS;
    args->max_voxels = HARD_VOXELS;
    out->inverse = NULL;
    out->mean = NULL;
    out->points = a->points.ptr;
}

static void bind(const struct bench *bench, const struct arrays *a, size_t n, double size,
                 struct vxd_voxelize_args *args, struct vxd_voxels *out)
{
    *args = (struct vxd_voxelize_args){.positions = a->positions.ptr,
                                       .features = a->features.ptr,
                                       .n_points = n,
                                       .n_channels = bench->options.n_channels,
                                       .batch_starts = a->batch_starts,
                                       .n_batch = 1,
                                       .rule = VXD_RULE_MINKOWSKI,
                                       .order = VXD_ORDER_MORTON,
                                       .size_m = {(float)size, (float)size, (float)size}};
    if (bench->options.has_range) {
        set_range(bench, n, args);
    }
    *out = (struct vxd_voxels){.capacity = n,
                               .totals = a->totals.ptr,
                               .starts = a->starts.ptr,
                               .coords = a->coords.ptr};
    if (bench->options.wants_all) {
        out->counts = a->counts.ptr;
        out->inverse = a->inverse.ptr;
        out->mean = a->mean.ptr;
    } else {
        args->n_channels = 0;
        args->features = NULL;
    }
    if (bench->options.wants_hard) {
        set_second(args, a, out);
    }
}

/* FNV-1a over 64-bit pieces, 4-byte tail included. */
static uint64_t digest_bytes(uint64_t hash, const void *bytes, size_t n_bytes)
{
    const char *p = bytes;

    for (size_t i = 0; i < n_bytes; i += 8) {
        uint64_t piece = 0;

        memcpy(&piece, p + i, n_bytes - i < 8 ? n_bytes - i : 8);
        hash = (hash ^ piece) * 0x100000001b3ULL;
        hash ^= hash >> 32;
    }
    return hash;
}

static enum vxd_status digest_array(struct bench *bench, const struct vxd_buffer *buffer,
                                    size_t n_bytes, uint64_t *hash, struct vxd_err *err)
{
    struct vxd_buffer host = {0};
    enum vxd_status status = VXD_OK;
    const void *bytes;

    VXD_TRY(vxd_download(bench->device.queue, buffer->ptr, n_bytes, &host, &bytes, err));
    VXD_TRY(vxd_queue_wait(bench->device.queue, err));
    *hash = digest_bytes(*hash, bytes, n_bytes);
out:
    vxd_host_free(bench->device.context, &host);
    return status;
}

static enum vxd_status check_outputs(struct bench *bench, const struct arrays *a,
                                     size_t n, uint32_t *n_voxels, uint64_t *hash,
                                     struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;
    struct vxd_buffer host = {0};
    const void *starts;
    size_t m;

    VXD_TRY(vxd_download(bench->device.queue, a->starts.ptr, a->starts.n_bytes, &host,
                         &starts, err));
    VXD_TRY(vxd_queue_wait(bench->device.queue, err));
    *n_voxels = ((const uint32_t *)starts)[1];
    m = *n_voxels;
    *hash = 0xcbf29ce484222325ULL;
    VXD_TRY(digest_array(bench, &a->totals, a->totals.n_bytes, hash, err));
    VXD_TRY(digest_array(bench, &a->coords, m * 4 * sizeof(int32_t), hash, err));
    if (!bench->options.wants_all) {
        goto out;
    }
    VXD_TRY(digest_array(bench, &a->counts, m * sizeof(uint32_t), hash, err));
    if (bench->options.wants_hard) {
        status = digest_array(bench, &a->points,
                              m * HARD_POINTS * (size_t)bench->options.n_channels *
                                  sizeof(float),
                              hash, err);
        goto out;
    }
    VXD_TRY(digest_array(bench, &a->inverse, n * sizeof(int32_t), hash, err));
    VXD_TRY(digest_array(bench, &a->mean,
                         m * (size_t)bench->options.n_channels * sizeof(float), hash,
                         err));
out:
    vxd_host_free(bench->device.context, &host);
    return status;
}

/* Device time with cold caches, then the time that a waiting caller sees. */
static enum vxd_status time_calls(struct bench *bench,
                                  const struct vxd_voxelize_args *args,
                                  const struct vxd_voxels *out, double *device_s,
                                  double *wall_s, struct vxd_err *err)
{
    int n_repeat = bench->options.n_repeat;
    struct vxd_queue *queue = bench->device.queue;
    enum vxd_status status = VXD_OK;
    double device[MAX_REPEAT] = {0};
    double wall[MAX_REPEAT] = {0};
    double start;

    for (int i = -2; i < n_repeat; i++) {
        int slot = i < 0 ? 0 : i;

        VXD_TRY(bench_device_flush(&bench->device, err));
        (void)bench_device_start(&bench->device);
        VXD_TRY(vxd_voxelize(queue, args, out, err));
        (void)bench_device_stop(&bench->device);
        VXD_TRY(vxd_queue_wait(queue, err));
        device[slot] = bench_device_seconds(&bench->device);
        start = bench_now_s();
        VXD_TRY(vxd_voxelize(queue, args, out, err));
        VXD_TRY(vxd_queue_wait(queue, err));
        wall[slot] = bench_now_s() - start;
    }
    *device_s = bench_median(device, n_repeat);
    *wall_s = bench_median(wall, n_repeat);
out:
    return status;
}

static enum vxd_status run_case(struct bench *bench, size_t n, double size,
                                struct vxd_err *err)
{
    size_t n_channels = (size_t)bench->options.n_channels;
    struct vxd_memory_usage usage;
    struct vxd_voxelize_args args;
    struct vxd_voxels out;
    enum vxd_status status = VXD_OK;
    struct arrays a = {0};
    uint32_t n_voxels;
    uint64_t hash;
    double device_s;
    double wall_s;
    double floor_s;

    VXD_TRY(bench_device_create(bench->options.backend, bench->options.n_threads,
                                &bench->device, err));
    VXD_TRY(fill_arrays(bench, n, &a, err));
    bind(bench, &a, n, size, &args, &out);
    VXD_TRY(time_calls(bench, &args, &out, &device_s, &wall_s, err));
    VXD_TRY(check_outputs(bench, &a, n, &n_voxels, &hash, err));
    vxd_context_get_memory(bench->device.context, &usage);
    floor_s =
        (double)(bench->options.wants_hard
                     ? n * 4 * n_channels + n_voxels * (20 + 4 * HARD_POINTS * n_channels)
                 : bench->options.wants_all
                     ? n * (12 + 4 * n_channels + 4) + n_voxels * (20 + 4 * n_channels)
                     : n * 12 + n_voxels * (size_t)16) /
        bench->floors.copy_bytes_per_s;
    (void)printf(
        "| %9zu | %6g | %8u | %8.3f | %8.3f | %8.4f | %6.1f | %8.1f | %016llx |\n", n,
        size, n_voxels, 1e3 * device_s, 1e3 * wall_s, 1e3 * floor_s, device_s / floor_s,
        (double)(usage.device_peak_bytes - bench->device.flush.n_bytes) / 1048576.0,
        (unsigned long long)hash);
    (void)fflush(stdout);
out:
    if (bench->device.queue != NULL) {
        free_arrays(bench, &a);
    }
    bench_device_destroy(&bench->device);
    return status;
}

static enum vxd_status run_all(struct bench *bench, struct vxd_err *err)
{
    const struct options *options = &bench->options;
    struct vxd_context_info info;
    enum vxd_status status = VXD_OK;

    VXD_TRY(bench_device_create(bench->options.backend, bench->options.n_threads,
                                &bench->device, err));
    vxd_context_get_info(bench->device.context, &info);
    VXD_TRY(bench_device_floors(&bench->device, FLOOR_BYTES, FLOOR_BYTES / 32,
                                &bench->floors, err));
    bench_device_destroy(&bench->device);
    (void)printf(
        "%s; %s, %zu points, %s; %s; %s, %d channels; median of %d\n", info.name,
        options->file != NULL ? options->file : "made-up scan", bench->cloud.n_points,
        options->is_scene ? "accumulated over a drive" : "tiled",
        options->has_range ? "SPCONV rule with a range" : "MINKOWSKI rule, no range",
        options->wants_hard  ? "coordinates, counts, hard voxels (SECOND's settings)"
        : options->wants_all ? "coordinates, inverse, counts, means"
                             : "coordinates alone",
        options->wants_all ? options->n_channels : 0, options->n_repeat);
    (void)printf("copy %.1f GB/s (read + written)",
                 bench->floors.copy_bytes_per_s * 1e-9);
    if (bench->floors.gather_per_s > 0.0) {
        (void)printf(", random 32-byte reads %.1f GB/s",
                     bench->floors.gather_per_s * 32e-9);
    }
    (void)printf("\n\n| points | size, m | voxels | ms | call to wait, ms | floor, ms | "
                 "ratio | peak, MiB | digest |\n"
                 "|---:|---:|---:|---:|---:|---:|---:|---:|---|\n");
    for (int i = 0; i < options->n_sets; i++) {
        for (int k = 0; k < options->n_sizes; k++) {
            VXD_TRY(run_case(bench, options->n_points[i], options->sizes[k], err));
        }
    }
out:
    bench_device_destroy(&bench->device);
    return status;
}

/* Parses comma-separated positive numbers; returns their count, 0 on anything else. */
static int parse_list(const char *text, double *out)
{
    int n = 0;

    for (;;) {
        char *end;
        double value = strtod(text, &end);

        if (end == text || !(value > 0.0 && value <= 2147483647.0) || n == MAX_CASES) {
            return 0;
        }
        out[n++] = value;
        if (*end == '\0') {
            return n;
        }
        if (*end != ',') {
            return 0;
        }
        text = end + 1;
    }
}

static bool parse_int(const char *text, int most, int *out)
{
    double values[MAX_CASES];

    if (parse_list(text, values) != 1 || values[0] > most || values[0] < 1.0) {
        return false;
    }
    *out = (int)values[0];
    return true;
}

static bool parse_option(struct options *options, const char *name, const char *value)
{
    double points[MAX_CASES];

    if (strcmp(name, "--backend") == 0) {
        options->backend =
            strcmp(value, "cuda") == 0 ? VXD_BACKEND_CUDA : VXD_BACKEND_CPU;
        return strcmp(value, "cuda") == 0 || strcmp(value, "cpu") == 0;
    }
    if (strcmp(name, "--file") == 0) {
        options->file = value;
        return true;
    }
    if (strcmp(name, "--columns") == 0) {
        return parse_int(value, 64, &options->bin_columns);
    }
    if (strcmp(name, "--channels") == 0) {
        return parse_int(value, 64, &options->n_channels);
    }
    if (strcmp(name, "--repeat") == 0) {
        return parse_int(value, MAX_REPEAT, &options->n_repeat);
    }
    if (strcmp(name, "--threads") == 0) {
        return parse_int(value, 256, &options->n_threads);
    }
    if (strcmp(name, "--sizes") == 0) {
        options->n_sizes = parse_list(value, options->sizes);
        return options->n_sizes > 0;
    }
    if (strcmp(name, "--points") == 0) {
        options->n_sets = parse_list(value, points);
        for (int i = 0; i < options->n_sets; i++) {
            options->n_points[i] = (size_t)points[i];
        }
        return options->n_sets > 0;
    }
    if (strcmp(name, "--cloud") == 0) {
        options->is_scene = strcmp(value, "drive") == 0;
        return options->is_scene || strcmp(value, "tiles") == 0;
    }
    if (strcmp(name, "--outputs") == 0) {
        options->wants_hard = strcmp(value, "hard") == 0;
        options->wants_all = options->wants_hard || strcmp(value, "all") == 0;
        return options->wants_all || strcmp(value, "coords") == 0;
    }
    if (strcmp(name, "--range") == 0) {
        options->has_range = strcmp(value, "yes") == 0;
        return options->has_range || strcmp(value, "no") == 0;
    }
    return false;
}

int main(int argc, char **argv)
{
    struct bench bench = {
        .options = {.backend = VXD_BACKEND_CPU,
                    .bin_columns = 4,
                    .n_channels = 4,
                    .n_repeat = 20,
                    .wants_all = true,
                    .n_points = {100000, 198130, 1000000, 8000000, 10000000},
                    .n_sets = 5,
                    .sizes = {0.005, 0.01, 0.05, 0.1, 0.5},
                    .n_sizes = 5}};
    struct vxd_err err = {0};
    enum vxd_status status;

    for (int i = 1; i < argc; i += 2) {
        if (i + 1 == argc || !parse_option(&bench.options, argv[i], argv[i + 1])) {
            (void)fprintf(
                stderr,
                "usage: %s [--backend cpu|cuda] [--file X.npy | X.bin] [--columns N]\n"
                "  [--points N,N] [--sizes M,M] [--channels N] [--range yes|no] "
                "[--repeat N] [--threads N]\n"
                "  [--cloud tiles|drive] [--outputs all|coords|hard]\n",
                argv[0]);
            return EXIT_FAILURE;
        }
    }
    if (bench.options.file != NULL
            ? !bench_cloud_read(bench.options.file, bench.options.bin_columns,
                                &bench.cloud)
            : !bench_cloud_make(&bench.cloud)) {
        return EXIT_FAILURE;
    }
    status = run_all(&bench, &err);
    bench_cloud_free(&bench.cloud);
    if (status != VXD_OK) {
        (void)fprintf(stderr, "bench_voxelize: %s (%s)\n", err.message, err.field);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
