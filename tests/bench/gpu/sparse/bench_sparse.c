// SPDX-License-Identifier: Apache-2.0
/* Times coordinate sets, kernel maps and one submanifold convolution for a .tensor file of
 * coordinates (batch, z, y, x), or for a synthetic surface.
 * usage: bench_sparse [--backend cpu|cuda] [--tensor FILE] [--channels IN,OUT]
 *                     [--precision 0..3] [--threads N] [--repeat N] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu/sparse/conv/conv.h"

struct options {
    enum vxd_backend backend;
    const char *tensor;
    int n_in;
    int n_out;
    enum vxd_net_precision precision;
    int n_threads;
    int n_repeat;
};

struct bench {
    struct options options;
    struct vxd_context *context;
    struct vxd_queue *queue;
    struct vxd_buffer coords;
    size_t n;
    int n_samples;
    struct vxd_coord_set coord_set;
    struct vxd_buffer coord_set_block;
    struct vxd_coord_set derived;
    struct vxd_buffer derived_block;
    struct vxd_kernel_map map;
    struct vxd_buffer map_block;
    struct vxd_buffer scratch;
    struct vxd_conv_weights weights;
    struct vxd_buffer in;
    struct vxd_buffer out;
};

static const struct vxd_sparse_geometry subm = {
    {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, false};
static const struct vxd_sparse_geometry strided = {
    {3, 3, 3}, {2, 2, 2}, {1, 1, 1}, {1, 1, 1}, false};

static void must(enum vxd_status status, const struct vxd_err *err)
{
    if (status != VXD_OK) {
        (void)fprintf(stderr, "bench_sparse: %s: %s\n", err->field, err->message);
        exit(EXIT_FAILURE);
    }
}

static double now_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void *allocate(size_t n_bytes)
{
    void *ptr = malloc(n_bytes);

    if (ptr == NULL) {
        (void)fprintf(stderr, "bench_sparse: no memory\n");
        exit(EXIT_FAILURE);
    }
    return ptr;
}

/* Header: magic, ndim, dtype, dims; then rows of (batch, z, y, x). */
static int32_t *read_tensor(const char *path, size_t *n)
{
    int32_t header[5];
    FILE *file = fopen(path, "rb");
    int32_t *coords = NULL;

    if (file != NULL && fread(header, sizeof header, 1, file) == 1 &&
        header[0] == 0x33ff1101 && header[1] == 2 && header[2] == 1 && header[4] == 4 &&
        header[3] > 0) {
        *n = (size_t)header[3];
        coords = allocate(*n * 16);
        if (fread(coords, 16, *n, file) != *n) {
            free(coords);
            coords = NULL;
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    for (size_t i = 0; i < *n && coords != NULL; i++) {
        int32_t z = coords[4 * i + 1];

        coords[4 * i + 1] = coords[4 * i + 3];
        coords[4 * i + 3] = z;
    }
    return coords;
}

/* An uneven floor of 200 x 200 cells, with about seven neighbours each, as in lidar
 * scans. */
static int32_t *make_surface(size_t *n)
{
    int32_t *coords = allocate((size_t)40000 * 16);

    *n = 0;
    for (int32_t x = 0; x < 200; x++) {
        for (int32_t y = 0; y < 200; y++) {
            int32_t c[4] = {0, x, y, (x * 7 + y * 13) % 17 / 8};

            memcpy(coords + 4 * (*n)++, c, sizeof c);
        }
    }
    return coords;
}

static void alloc(struct bench *bench, size_t n_bytes, struct vxd_buffer *out)
{
    struct vxd_err err = {0};

    must(vxd_device_alloc(bench->queue, n_bytes, out, &err), &err);
}

static void make_coord_set(struct bench *bench)
{
    struct vxd_err err = {0};

    must(vxd_coord_set_make(bench->queue, bench->coords.ptr, bench->n, bench->n_samples,
                            &bench->coord_set, NULL, bench->scratch.ptr,
                            bench->scratch.n_bytes, &err),
         &err);
}

static void derive_coord_set(struct bench *bench)
{
    struct vxd_err err = {0};

    must(vxd_coord_set_derive(bench->queue, VXD_DERIVE_SUPPORT, &strided,
                              &bench->coord_set, &bench->derived, bench->scratch.ptr,
                              bench->scratch.n_bytes, &err),
         &err);
}

static void build_map(struct bench *bench)
{
    struct vxd_err err = {0};

    must(vxd_kernel_map_build(bench->queue, &subm, &bench->coord_set, &bench->coord_set,
                              &bench->map, bench->scratch.ptr, bench->scratch.n_bytes,
                              &err),
         &err);
}

static void convolve(struct bench *bench)
{
    struct vxd_conv_args args = {
        .map = &bench->map,
        .n_rows = bench->coord_set.n_rows,
        .max_rows = bench->n,
        .weights = &bench->weights,
        .in = {bench->in.ptr, bench->options.n_in, (size_t)bench->options.n_in},
        .out = {bench->out.ptr, bench->options.n_out, (size_t)bench->options.n_out},
        .act = VXD_ACT_RELU};
    struct vxd_err err = {0};

    must(vxd_conv_run(bench->queue, &args, &err), &err);
}

/* Least time of several runs. */
static double time_ms(struct bench *bench, void (*run)(struct bench *bench))
{
    double best = 1e30;

    for (int i = 0; i < bench->options.n_repeat; i++) {
        double start = now_ms();
        double took;
        struct vxd_err err = {0};

        run(bench);
        must(vxd_queue_wait(bench->queue, &err), &err);
        took = now_ms() - start;
        best = took < best ? took : best;
    }
    return best;
}

static void set_up(struct bench *bench)
{
    static const int32_t unbounded[3] = {0, 0, 0};
    const struct options *options = &bench->options;
    struct vxd_context_options context = {.backend = options->backend,
                                          .n_threads = options->n_threads};
    size_t n_weights = (size_t)27 * (size_t)options->n_in * (size_t)options->n_out;
    size_t element = vxd_net_element_bytes(options->precision);
    size_t n_candidates;
    int32_t *coords;
    float *weights = allocate(n_weights * sizeof *weights);
    size_t scratch_bytes;
    size_t map_scratch_bytes;
    struct vxd_err err = {0};

    coords = options->tensor != NULL ? read_tensor(options->tensor, &bench->n)
                                     : make_surface(&bench->n);
    if (coords == NULL) {
        (void)fprintf(stderr, "bench_sparse: cannot read %s\n", options->tensor);
        exit(EXIT_FAILURE);
    }
    bench->n_samples = 1;
    must(vxd_context_create(&context, &bench->context, &err), &err);
    must(vxd_queue_create(bench->context, &bench->queue, &err), &err);
    n_candidates = vxd_sparse_derive_candidates(VXD_DERIVE_SUPPORT, &strided, bench->n);
    scratch_bytes = vxd_coord_set_scratch_bytes(bench->queue, n_candidates, 8 * bench->n);
    map_scratch_bytes = vxd_kernel_map_scratch_bytes(bench->queue, 27, bench->n);
    alloc(bench, bench->n * 16, &bench->coords);
    alloc(bench, vxd_coord_set_bytes(bench->n), &bench->coord_set_block);
    alloc(bench, vxd_coord_set_bytes(8 * bench->n), &bench->derived_block);
    alloc(bench, vxd_kernel_map_bytes(bench->queue, 27, bench->n), &bench->map_block);
    alloc(bench, scratch_bytes > map_scratch_bytes ? scratch_bytes : map_scratch_bytes,
          &bench->scratch);
    alloc(bench, bench->n * (size_t)options->n_in * element, &bench->in);
    alloc(bench, bench->n * (size_t)options->n_out * element, &bench->out);
    must(vxd_coord_set_layout(bench->coord_set_block.ptr, bench->n, unbounded,
                              &bench->coord_set, &err),
         &err);
    must(vxd_coord_set_layout(bench->derived_block.ptr, 8 * bench->n, unbounded,
                              &bench->derived, &err),
         &err);
    must(vxd_kernel_map_layout(bench->queue, bench->map_block.ptr, 27, bench->n,
                               &bench->map, &err),
         &err);
    must(vxd_queue_copy(bench->queue, bench->coords.ptr, coords, bench->n * 16, &err),
         &err);
    /* 0x3c3c is about 1 as float16, 0.01 as bfloat16 and as float32. */
    must(vxd_queue_fill(bench->queue, bench->in.ptr, 0x3c, bench->in.n_bytes, &err),
         &err);
    for (size_t i = 0; i < n_weights; i++) {
        weights[i] = (float)(i % 13) * 0.01f - 0.06f;
    }
    must(vxd_conv_weights_pack(bench->queue, weights, 27, options->n_in, options->n_out,
                               options->precision, &bench->weights, &err),
         &err);
    free(weights);
    free(coords);
}

static void tear_down(struct bench *bench)
{
    struct vxd_buffer *buffers[8] = {&bench->coords,        &bench->coord_set_block,
                                     &bench->derived_block, &bench->map_block,
                                     &bench->scratch,       &bench->in,
                                     &bench->out,           &bench->weights.data};

    for (int i = 0; i < 8; i++) {
        vxd_device_free(bench->queue, buffers[i]);
    }
    vxd_queue_destroy(bench->queue);
    vxd_context_destroy(bench->context);
}

static void report(struct bench *bench)
{
    double coord_set_ms = time_ms(bench, make_coord_set);
    double derive_ms = time_ms(bench, derive_coord_set);
    double map_ms = time_ms(bench, build_map);
    double conv_ms = time_ms(bench, convolve);
    struct vxd_context_info info;
    uint64_t n_pairs = 0;
    uint32_t n_rows = 0;
    uint32_t n_derived = 0;
    struct vxd_err err = {0};
    double gflop;

    must(vxd_queue_copy(bench->queue, &n_pairs, bench->map.n_pairs, sizeof n_pairs, &err),
         &err);
    must(vxd_queue_copy(bench->queue, &n_rows, bench->coord_set.n_rows, sizeof n_rows,
                        &err),
         &err);
    must(vxd_queue_copy(bench->queue, &n_derived, bench->derived.n_rows, sizeof n_derived,
                        &err),
         &err);
    must(vxd_queue_wait(bench->queue, &err), &err);
    vxd_context_get_info(bench->context, &info);
    gflop = 2e-9 * (double)n_pairs * bench->options.n_in * bench->options.n_out;
    (void)printf("%s, %d threads\n", info.name, info.n_threads);
    (void)printf("set      %8.3f ms  %u rows of %zu\n", coord_set_ms, n_rows, bench->n);
    (void)printf("stride 2 %8.3f ms  %u rows\n", derive_ms, n_derived);
    (void)printf("map 3^3  %8.3f ms  %llu pairs\n", map_ms, (unsigned long long)n_pairs);
    (void)printf("subm     %8.3f ms  %d to %d, precision %d: %.2f GFLOP, %.1f GFLOP/s\n",
                 conv_ms, bench->options.n_in, bench->options.n_out,
                 (int)bench->options.precision, gflop, gflop / conv_ms * 1e3);
}

static void usage(void)
{
    (void)fprintf(stderr, "usage: bench_sparse [--backend cpu|cuda] [--tensor FILE] "
                          "[--channels IN,OUT] [--precision 0..3] [--threads N] "
                          "[--repeat N]\n");
    exit(EXIT_FAILURE);
}

static int number_of(const char *text, char **end, long least, long most)
{
    long value = strtol(text, end, 10);

    if (*end == text || value < least || value > most) {
        usage();
    }
    return (int)value;
}

int main(int argc, char **argv)
{
    struct bench bench = {.options = {VXD_BACKEND_CPU, NULL, 64, 64, VXD_NET_FP32, 0, 5}};
    struct options *options = &bench.options;

    for (int i = 1; i + 1 < argc; i += 2) {
        const char *name = argv[i];
        char *value = argv[i + 1];
        char *end = value;

        if (strcmp(name, "--backend") == 0) {
            options->backend =
                strcmp(value, "cuda") == 0 ? VXD_BACKEND_CUDA : VXD_BACKEND_CPU;
        } else if (strcmp(name, "--tensor") == 0) {
            options->tensor = value;
        } else if (strcmp(name, "--channels") == 0) {
            options->n_in = number_of(value, &end, 1, 4096);
            options->n_out = *end == ',' ? number_of(end + 1, &end, 1, 4096) : 0;
        } else if (strcmp(name, "--precision") == 0) {
            options->precision = (enum vxd_net_precision)number_of(value, &end, 0, 3);
        } else if (strcmp(name, "--threads") == 0) {
            options->n_threads = number_of(value, &end, 0, 256);
        } else if (strcmp(name, "--repeat") == 0) {
            options->n_repeat = number_of(value, &end, 1, 100000);
        } else {
            usage();
        }
    }
    if (argc % 2 == 0 || options->n_out < 1) {
        usage();
    }
    set_up(&bench);
    report(&bench);
    tear_down(&bench);
    return EXIT_SUCCESS;
}
