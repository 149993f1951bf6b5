// SPDX-License-Identifier: Apache-2.0
/* Times whole networks with random weights; coordinate sets and kernel maps are made anew in
 * every run.
 *
 * usage: bench_network [--backend cpu|cuda] [--network second|centerpoint|minkunet42]
 *                      [--precision fp32|tf32|fp16|bf16] [--cloud FILE --size M |
 *                      --coords FILE] [--channels N] [--samples N] [--repeat N]
 *                      [--threads N] [--bandwidth GB/s] [--soak N] [--loads N]
 * A cloud (.npy, .bin) is divided into voxels of that size, counted from its low corner.
 * Coordinates are a .npy of n x 4 int32 (sample, x, y, z) or a .tensor of (sample, z, y, x).
 * --samples repeats the same frame in a batch. The floor is the least that the layers must read
 * and write, divided by the bandwidth, which is measured by a copy where none is given. --soak
 * and --loads measure memory instead, over that many runs of varying size and that many loads
 * (bench_soak.h). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/support/bench_cloud.h"
#include "tests/bench/support/bench_device.h"
#include "tests/bench/gpu/sparse/bench_nets.h"
#include "tests/bench/gpu/sparse/bench_soak.h"

struct options {
    enum vxd_backend backend;
    const char *network;
    enum vxd_net_precision precision;
    const char *cloud;
    double size_m;
    const char *coords;
    int n_channels;
    int n_samples;
    int n_repeat;
    int n_threads;
    double bandwidth; /* bytes a second, 0 = measured */
    int n_soak;
    int n_loads;
};

struct bench {
    struct options options;
    struct bench_device device;
    int32_t *raw; /* n_raw x 4, any order, duplicates too; one frame */
    size_t n_raw;
    int32_t shape[3];
    struct vxd_buffer coords; /* of all samples, in order */
    struct vxd_buffer features;
    size_t n_rows;
    struct vxd_net *net;
    struct vxd_net_cost cost;
    double *maps_ms;
    double *layers_ms;
    double *whole_ms;
    double *cpu_ms; /* of the whole, of all processors */
};

static void must(enum vxd_status status, const struct vxd_err *err)
{
    if (status != VXD_OK) {
        (void)fprintf(stderr, "bench_network: %s: %s\n", err->field, err->message);
        exit(EXIT_FAILURE);
    }
}

static void die(const char *what, const char *which)
{
    (void)fprintf(stderr, "bench_network: %s: %s\n", which, what);
    exit(EXIT_FAILURE);
}

static void *allocate(size_t n_bytes)
{
    void *ptr = calloc(n_bytes > 0 ? n_bytes : 1, 1);

    if (ptr == NULL) {
        die("no memory", "coordinates");
    }
    return ptr;
}

/* --- coordinates ------------------------------------------------------------------------- */

static void cut_cloud(struct bench *bench)
{
    const struct options *options = &bench->options;
    struct bench_cloud cloud;
    double lo[3] = {1e30, 1e30, 1e30};
    bool ok = options->cloud != NULL ? bench_cloud_read(options->cloud, 4, &cloud)
                                     : bench_cloud_make(&cloud);

    if (!ok) {
        exit(EXIT_FAILURE);
    }
    for (size_t i = 0; i < cloud.n_points; i++) {
        for (int axis = 0; axis < 3; axis++) {
            double x = (double)cloud.rows[i * (size_t)cloud.n_columns + (size_t)axis];

            lo[axis] = x < lo[axis] ? x : lo[axis];
        }
    }
    bench->raw = allocate(cloud.n_points * 16);
    bench->n_raw = cloud.n_points;
    for (size_t i = 0; i < cloud.n_points; i++) {
        for (int axis = 0; axis < 3; axis++) {
            double x = (double)cloud.rows[i * (size_t)cloud.n_columns + (size_t)axis];

            bench->raw[4 * i + 1 + (size_t)axis] =
                (int32_t)floor((x - lo[axis]) / options->size_m);
        }
    }
    bench_cloud_free(&cloud);
}

/* Reads n from the header and leaves the file at the first number; false where the
 * format is neither. */
static bool read_header(FILE *file, size_t *n, bool *is_tensor)
{
    unsigned char start[20];
    int32_t tensor[5];
    char header[1024];
    size_t n_header;
    char *shape;

    if (fread(start, 1, sizeof start, file) != sizeof start) {
        return false;
    }
    memcpy(tensor, start, sizeof tensor);
    *is_tensor = tensor[0] == 0x33ff1101;
    if (*is_tensor) {
        *n = (size_t)(tensor[3] > 0 ? tensor[3] : 0);
        return tensor[1] == 2 && tensor[2] == 1 && tensor[4] == 4;
    }
    n_header = (size_t)start[8] | (size_t)start[9] << 8;
    if (memcmp(start, "\x93NUMPY\x01", 7) != 0 || n_header >= sizeof header ||
        fseek(file, 10, SEEK_SET) != 0 || fread(header, 1, n_header, file) != n_header) {
        return false;
    }
    header[n_header] = '\0';
    shape = strstr(header, "'shape': (");
    if (strstr(header, "'<i4'") == NULL || strstr(header, "False") == NULL ||
        shape == NULL) {
        return false;
    }
    *n = strtoul(shape + strlen("'shape': ("), &shape, 10);
    return strncmp(shape, ", 4)", 4) == 0;
}

static void read_coords(struct bench *bench)
{
    const char *path = bench->options.coords;
    FILE *file = fopen(path, "rb");
    bool is_tensor = false;

    if (file == NULL || !read_header(file, &bench->n_raw, &is_tensor)) {
        die("is no .npy of n x 4 int32 and no .tensor", path);
    }
    bench->raw = allocate(bench->n_raw * 16);
    if (fread(bench->raw, 16, bench->n_raw, file) != bench->n_raw) {
        die("is cut", path);
    }
    (void)fclose(file);
    for (size_t i = 0; i < bench->n_raw && is_tensor; i++) {
        int32_t z = bench->raw[4 * i + 1];

        bench->raw[4 * i + 1] = bench->raw[4 * i + 3];
        bench->raw[4 * i + 3] = z;
    }
}

/* A shape that contains all coordinates, and is high enough for the strides of a
 * backbone. */
static void find_shape(struct bench *bench)
{
    static const int32_t least[3] = {64, 64, 41};

    for (int axis = 0; axis < 3; axis++) {
        bench->shape[axis] = least[axis];
        for (size_t i = 0; i < bench->n_raw; i++) {
            int32_t c = bench->raw[4 * i + 1 + (size_t)axis];

            if (c + 1 > bench->shape[axis]) {
                bench->shape[axis] = c + 1;
            }
        }
    }
}

static void alloc(struct bench *bench, size_t n_bytes, struct vxd_buffer *out)
{
    struct vxd_err err = {0};

    must(vxd_device_alloc(bench->device.queue, n_bytes, out, &err), &err);
}

static void copy(struct bench *bench, void *to, const void *from, size_t n_bytes)
{
    struct vxd_err err = {0};

    must(vxd_queue_copy(bench->device.queue, to, from, n_bytes, &err), &err);
    must(vxd_queue_wait(bench->device.queue, &err), &err);
}

/* Makes the coordinates unique and sorts them, through a coordinate set. */
static void order_coords(struct bench *bench)
{
    static const int32_t once[3] = {1, 1, 1};
    struct vxd_queue *queue = bench->device.queue;
    size_t n_samples = (size_t)bench->options.n_samples;
    size_t n = bench->n_raw * n_samples;
    int32_t *all = allocate(n * 16);
    struct vxd_buffer raw;
    struct vxd_buffer block;
    struct vxd_buffer scratch;
    struct vxd_coord_set coord_set;
    uint32_t n_rows = 0;
    struct vxd_err err = {0};

    for (size_t i = 0; i < n; i++) {
        memcpy(all + 4 * i, bench->raw + i % bench->n_raw * 4, 16);
        all[4 * i] = (int32_t)(i / bench->n_raw);
    }
    alloc(bench, n * 16, &raw);
    alloc(bench, n * 16, &bench->coords);
    alloc(bench, vxd_coord_set_bytes(n), &block);
    alloc(bench, vxd_coord_set_scratch_bytes(queue, n, n), &scratch);
    copy(bench, raw.ptr, all, n * 16);
    must(vxd_coord_set_layout(block.ptr, n, bench->shape, &coord_set, &err), &err);
    must(vxd_coord_set_make(queue, raw.ptr, n, bench->options.n_samples, &coord_set, NULL,
                            scratch.ptr, scratch.n_bytes, &err),
         &err);
    must(vxd_coord_set_coords(queue, &coord_set, once, bench->options.n_samples,
                              bench->coords.ptr, NULL, &err),
         &err);
    copy(bench, &n_rows, coord_set.n_rows, sizeof n_rows);
    bench->n_rows = n_rows;
    vxd_device_free(queue, &raw);
    vxd_device_free(queue, &block);
    vxd_device_free(queue, &scratch);
    free(all);
}

static void make_features(struct bench *bench)
{
    size_t n = bench->n_rows * (size_t)bench->options.n_channels;
    float *values = allocate(n * sizeof *values);

    for (size_t i = 0; i < n; i++) {
        values[i] = (float)(i * 2654435761U % 1000) * 0.002f - 1.0f;
    }
    alloc(bench, n * sizeof *values, &bench->features);
    copy(bench, bench->features.ptr, values, n * sizeof *values);
    free(values);
}

/* --- the network ------------------------------------------------------------------------- */

static struct vxd_net_options net_options(const struct bench *bench)
{
    struct vxd_net_options options = {.precision = bench->options.precision,
                                      .max_rows = bench->n_rows,
                                      .max_samples = bench->options.n_samples};

    return options;
}

static void soak(struct bench *bench)
{
    struct bench_soak soak = {
        .device = &bench->device,
        .network = bench->options.network,
        .n_channels = bench->options.n_channels,
        .shape = {bench->shape[0], bench->shape[1], bench->shape[2]},
        .options = net_options(bench),
        .coords = bench->coords.ptr,
        .features = bench->features.ptr,
        .n_rows = bench->n_rows};
    struct vxd_err err = {0};

    must(bench_soak_run(&soak, bench->options.n_soak, bench->options.n_loads, &err),
         &err);
}

static void make_net(struct bench *bench)
{
    struct vxd_net_options options = net_options(bench);
    struct vxd_net_builder *builder;
    struct vxd_err err = {0};

    must(bench_net_build(bench->options.network, bench->options.n_channels, bench->shape,
                         &builder, &err),
         &err);
    must(vxd_net_create(bench->device.queue, builder, &options, &bench->net, &err), &err);
    vxd_net_builder_destroy(builder);
}

/* One run; *maps_ms is when its sets and maps were done, if they are enqueued
 * separately. */
static double run_once(struct bench *bench, bool maps_apart, double *maps_ms)
{
    struct vxd_queue *queue = bench->device.queue;
    struct vxd_net_input input = {.coords = bench->coords.ptr,
                                  .features = bench->features.ptr,
                                  .n_rows = bench->n_rows,
                                  .n_samples = bench->options.n_samples,
                                  .maps_apart = maps_apart};
    struct vxd_net_run *run;
    double start = bench_now_s();
    double took;
    bool more = true;
    struct vxd_err err = {0};

    must(vxd_net_run_create(queue, bench->net, &input, &run, &err), &err);
    while (more) {
        must(vxd_net_run_step(queue, run, &more, &err), &err);
        must(vxd_queue_wait(queue, &err), &err);
        if (vxd_net_run_is_mapped(run) && *maps_ms == 0.0) {
            *maps_ms = (bench_now_s() - start) * 1e3;
        }
    }
    took = (bench_now_s() - start) * 1e3;
    if (bench->cost.n_pairs == 0) {
        must(vxd_net_run_get_cost(queue, run, &bench->cost, &err), &err);
    }
    vxd_net_run_destroy(queue, run);
    must(vxd_queue_wait(queue, &err), &err);
    return took;
}

static void time_net(struct bench *bench)
{
    int n = bench->options.n_repeat;
    double unused = 1.0;

    bench->maps_ms = allocate((size_t)n * sizeof(double));
    bench->layers_ms = allocate((size_t)n * sizeof(double));
    bench->whole_ms = allocate((size_t)n * sizeof(double));
    bench->cpu_ms = allocate((size_t)n * sizeof(double));
    (void)run_once(bench, false, &unused); /* loads kernels and allocates memory */
    for (int i = 0; i < n; i++) {
        double maps_ms = 0.0;
        double both_ms = run_once(bench, true, &maps_ms);
        double cpu_s = bench_cpu_s();

        bench->maps_ms[i] = maps_ms;
        bench->layers_ms[i] = both_ms - maps_ms;
        bench->whole_ms[i] = run_once(bench, false, &unused);
        bench->cpu_ms[i] = (bench_cpu_s() - cpu_s) * 1e3;
    }
}

static double find_bandwidth(struct bench *bench)
{
    struct bench_floors floors;
    struct vxd_err err = {0};

    if (bench->options.bandwidth > 0.0) {
        return bench->options.bandwidth;
    }
    must(bench_device_floors(&bench->device, (size_t)256 << 20, (size_t)1 << 20, &floors,
                             &err),
         &err);
    return floors.copy_bytes_per_s;
}

static void report(struct bench *bench)
{
    static const char *const precisions[4] = {"fp32", "tf32", "fp16", "bf16"};
    int n = bench->options.n_repeat;
    double whole_ms;
    double bandwidth = find_bandwidth(bench);
    double floor_ms = bench->cost.compulsory_bytes / bandwidth * 1e3;
    struct vxd_net_info info;
    struct vxd_context_info device;

    vxd_net_get_info(bench->net, &info);
    vxd_context_get_info(bench->device.context, &device);
    whole_ms = bench_median(bench->whole_ms, n);
    (void)printf("%s, %d threads; %s, %s, %zu voxels in %d samples\n", device.name,
                 device.n_threads, bench->options.network,
                 precisions[bench->options.precision], bench->n_rows,
                 bench->options.n_samples);
    (void)printf("layers %zu, parameters %zu, sets %zu, maps %zu, pairs %llu\n",
                 info.n_layers, info.n_parameters, info.n_coord_sets, info.n_maps,
                 (unsigned long long)bench->cost.n_pairs);
    (void)printf("maps   %9.3f ms (sets and maps, waited for)\n",
                 bench_median(bench->maps_ms, n));
    (void)printf("layers %9.3f ms\n", bench_median(bench->layers_ms, n));
    (void)printf("whole  %9.3f ms (median of %d), best %.3f ms, of processors %.3f ms\n",
                 whole_ms, n, bench->whole_ms[0], bench_median(bench->cpu_ms, n));
    (void)printf("useful %9.3f GFLOP, %.1f GFLOP/s\n", bench->cost.useful_flops * 1e-9,
                 bench->cost.useful_flops / whole_ms * 1e-6);
    (void)printf("floor  %9.3f ms: %.1f MB at %.1f GB/s; whole / floor %.1f\n", floor_ms,
                 bench->cost.compulsory_bytes * 1e-6, bandwidth * 1e-9,
                 whole_ms / floor_ms);
    (void)printf("memory %9.1f MB at most, %.1f MB needed at one time (%.2f times), "
                 "weights %.1f MB\n",
                 (double)bench->cost.peak_bytes * 1e-6,
                 (double)bench->cost.live_bytes * 1e-6,
                 (double)bench->cost.peak_bytes / (double)bench->cost.live_bytes,
                 (double)info.weight_bytes * 1e-6);
}

/* --- options ----------------------------------------------------------------------------- */

static void usage(void)
{
    (void)fprintf(stderr, "usage: bench_network [--backend cpu|cuda] [--network second|"
                          "centerpoint|minkunet42]\n"
                          "  [--precision fp32|tf32|fp16|bf16] [--cloud FILE --size M | "
                          "--coords FILE]\n"
                          "  [--channels N] [--samples N] [--repeat N] [--threads N] "
                          "[--bandwidth GB/s] [--soak N] [--loads N]\n");
    exit(EXIT_FAILURE);
}

static int number_of(const char *text, long least, long most)
{
    return (int)bench_number(text, least, most, usage);
}

static double real_of(const char *text)
{
    char *end;
    double value = strtod(text, &end);

    if (*end != '\0' || end == text || !(value > 0.0)) {
        usage();
    }
    return value;
}

static enum vxd_net_precision precision_of(const char *text)
{
    if (strcmp(text, "fp32") == 0) {
        return VXD_NET_FP32;
    }
    if (strcmp(text, "tf32") == 0) {
        return VXD_NET_TF32;
    }
    if (strcmp(text, "fp16") == 0) {
        return VXD_NET_FP16;
    }
    if (strcmp(text, "bf16") != 0) {
        usage();
    }
    return VXD_NET_BF16;
}

static void read_option(struct options *options, const char *name, const char *value)
{
    if (strcmp(name, "--backend") == 0) {
        options->backend =
            strcmp(value, "cuda") == 0 ? VXD_BACKEND_CUDA : VXD_BACKEND_CPU;
    } else if (strcmp(name, "--network") == 0) {
        options->network = value;
    } else if (strcmp(name, "--precision") == 0) {
        options->precision = precision_of(value);
    } else if (strcmp(name, "--cloud") == 0) {
        options->cloud = value;
    } else if (strcmp(name, "--size") == 0) {
        options->size_m = real_of(value);
    } else if (strcmp(name, "--coords") == 0) {
        options->coords = value;
    } else if (strcmp(name, "--channels") == 0) {
        options->n_channels = number_of(value, 1, VXD_NET_MAX_CHANNELS);
    } else if (strcmp(name, "--samples") == 0) {
        options->n_samples = number_of(value, 1, VXD_SPARSE_MAX_SAMPLES);
    } else if (strcmp(name, "--repeat") == 0) {
        options->n_repeat = number_of(value, 1, 100000);
    } else if (strcmp(name, "--threads") == 0) {
        options->n_threads = number_of(value, 0, 256);
    } else if (strcmp(name, "--bandwidth") == 0) {
        options->bandwidth = real_of(value) * 1e9;
    } else if (strcmp(name, "--soak") == 0) {
        options->n_soak = number_of(value, 1, 1000000);
    } else if (strcmp(name, "--loads") == 0) {
        options->n_loads = number_of(value, 1, 1000000);
    } else {
        usage();
    }
}

int main(int argc, char **argv)
{
    struct bench bench = {.options = {VXD_BACKEND_CPU, "second", VXD_NET_FP32, NULL, 0.1,
                                      NULL, 4, 1, 5, 0, 0.0, 0, 0}};
    struct vxd_err err = {0};

    if (argc % 2 == 0) {
        usage();
    }
    for (int i = 1; i < argc; i += 2) {
        read_option(&bench.options, argv[i], argv[i + 1]);
    }
    must(bench_device_create(bench.options.backend, bench.options.n_threads,
                             &bench.device, &err),
         &err);
    if (bench.options.coords != NULL) {
        read_coords(&bench);
    } else {
        cut_cloud(&bench);
    }
    find_shape(&bench);
    order_coords(&bench);
    make_features(&bench);
    if (bench.options.n_soak > 0 || bench.options.n_loads > 0) {
        soak(&bench);
    } else {
        make_net(&bench);
        time_net(&bench);
        report(&bench);
        vxd_net_destroy(bench.device.queue, bench.net);
    }
    vxd_device_free(bench.device.queue, &bench.coords);
    vxd_device_free(bench.device.queue, &bench.features);
    bench_device_destroy(&bench.device);
    free(bench.raw);
    free(bench.maps_ms);
    free(bench.layers_ms);
    free(bench.whole_ms);
    free(bench.cpu_ms);
    return EXIT_SUCCESS;
}
