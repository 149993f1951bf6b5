// SPDX-License-Identifier: Apache-2.0
/* Times the convolutions of MinkUNet42 one by one, on spconv's benchmark scan, with their floors
 * beside; then all of them in sequence. Coordinate sets and maps are made once, before.
 * usage: bench_conv [--backend cpu|cuda] [--precision 0..3] [--voxel-mm N] [--threads N]
 *                   [--repeat N] [--only LAYER] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/core/core_math.h"
#include "gpu/sparse/conv/conv.h"
#include "tests/bench/support/bench_device.h"

#define N_LEVELS 5
#define N_POINTS 198130
#define MAX_REPEAT 200

/* What an H200 reaches, measured: matrix units and memory; and the research file's
 * estimate of the bandwidth of gathers from its second-level cache. */
#define FLOP_PER_S 790e12
#define BYTES_PER_S 4.3e12
#define GATHER_BYTES_PER_S 5.5e12

enum kind {
    SUBM, /* 3^3 */
    DOWN, /* 2^3 from the next finer level */
    UP,   /* 2^3 transposed, from the next coarser level */
    LINEAR
};

struct layer {
    const char *name;
    enum kind kind;
    int level; /* of the output */
    int n_in;
    int n_out;
    int n_times;
    bool has_add;
};

/* spvnas' MinkUNet42: its 50 convolutions and linear layers. */
static const struct layer layers[] = {{"stem", SUBM, 0, 4, 32, 1, false},
                                      {"stem 2", SUBM, 0, 32, 32, 1, false},
                                      {"down 1", DOWN, 1, 32, 32, 1, false},
                                      {"block 1", SUBM, 1, 32, 32, 4, true},
                                      {"down 2", DOWN, 2, 32, 32, 1, false},
                                      {"widen 2", SUBM, 2, 32, 64, 1, false},
                                      {"skip 2", LINEAR, 2, 32, 64, 1, false},
                                      {"block 2", SUBM, 2, 64, 64, 3, true},
                                      {"down 3", DOWN, 3, 64, 64, 1, false},
                                      {"widen 3", SUBM, 3, 64, 128, 1, false},
                                      {"skip 3", LINEAR, 3, 64, 128, 1, false},
                                      {"block 3", SUBM, 3, 128, 128, 3, true},
                                      {"down 4", DOWN, 4, 128, 128, 1, false},
                                      {"widen 4", SUBM, 4, 128, 256, 1, false},
                                      {"skip 4", LINEAR, 4, 128, 256, 1, false},
                                      {"block 4", SUBM, 4, 256, 256, 3, true},
                                      {"up 3", UP, 3, 256, 256, 1, false},
                                      {"merge 3", SUBM, 3, 384, 256, 1, false},
                                      {"skip 3 u", LINEAR, 3, 384, 256, 1, false},
                                      {"block 3 u", SUBM, 3, 256, 256, 3, true},
                                      {"up 2", UP, 2, 256, 128, 1, false},
                                      {"merge 2", SUBM, 2, 192, 128, 1, false},
                                      {"skip 2 u", LINEAR, 2, 192, 128, 1, false},
                                      {"block 2 u", SUBM, 2, 128, 128, 3, true},
                                      {"up 1", UP, 1, 128, 96, 1, false},
                                      {"merge 1", SUBM, 1, 128, 96, 1, false},
                                      {"skip 1 u", LINEAR, 1, 128, 96, 1, false},
                                      {"block 1 u", SUBM, 1, 96, 96, 3, true},
                                      {"up 0", UP, 0, 96, 96, 1, false},
                                      {"merge 0", SUBM, 0, 128, 96, 1, false},
                                      {"skip 0 u", LINEAR, 0, 128, 96, 1, false},
                                      {"block 0 u", SUBM, 0, 96, 96, 3, true},
                                      {"classes", LINEAR, 0, 96, 19, 1, false}};

#define N_LAYERS ((int)(sizeof layers / sizeof layers[0]))
#define MAX_CHANNELS 384

static const struct vxd_sparse_geometry subm = {
    {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, false};
static const struct vxd_sparse_geometry down = {
    {2, 2, 2}, {2, 2, 2}, {0, 0, 0}, {1, 1, 1}, false};
static const struct vxd_sparse_geometry up = {
    {2, 2, 2}, {2, 2, 2}, {0, 0, 0}, {1, 1, 1}, true};

struct map {
    struct vxd_kernel_map map;
    struct vxd_buffer block;
    uint64_t n_pairs;
};

struct level {
    struct vxd_coord_set coord_set;
    struct vxd_buffer block;
    uint32_t n_rows;
    struct map maps[3]; /* SUBM; DOWN and UP that end here */
};

struct bench {
    enum vxd_backend backend;
    enum vxd_net_precision precision;
    int voxel_mm;
    int n_threads;
    int n_repeat;
    int only; /* layer, or -1 */
    struct bench_device device;
    struct level levels[N_LEVELS];
    struct vxd_conv_weights weights[N_LAYERS];
    struct vxd_buffer in;
    struct vxd_buffer out;
    struct vxd_buffer bias;
};

static void must(enum vxd_status status, const struct vxd_err *err)
{
    if (status != VXD_OK) {
        (void)fprintf(stderr, "bench_conv: %s: %s\n", err->field, err->message);
        exit(EXIT_FAILURE);
    }
}

static void *allocate(size_t n_bytes)
{
    void *ptr = malloc(n_bytes);

    if (ptr == NULL) {
        (void)fprintf(stderr, "bench_conv: no memory\n");
        exit(EXIT_FAILURE);
    }
    return ptr;
}

/* splitmix64, to [-1, 1). */
static float random_float(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15ULL;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
    return (float)(z >> 40) * 0x1p-23f - 1.0f;
}

/* Cells of the scan's points, with duplicates: n x 4. */
static int32_t *read_scan(int voxel_mm)
{
    static const char path[] = VOXELD_SOURCE_DIR "/tests/data/spconv_benchmark_pc.npy";
    unsigned char head[10];
    int32_t *coords = allocate((size_t)N_POINTS * 4 * sizeof *coords);
    FILE *file = fopen(path, "rb");
    float point[3];
    bool ok = file != NULL && fread(head, 1, 10, file) == 10 &&
              fseek(file, 10 + head[8] + 256 * head[9], SEEK_SET) == 0;

    for (int i = 0; i < N_POINTS && ok; i++) {
        ok = fread(point, sizeof point, 1, file) == 1;
        coords[4 * i] = 0;
        for (int axis = 0; axis < 3 && ok; axis++) {
            coords[4 * i + 1 + axis] =
                (int32_t)floorf(point[axis] / ((float)voxel_mm * 0.001f));
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    if (!ok) {
        (void)fprintf(stderr, "bench_conv: cannot read %s\n", path);
        exit(EXIT_FAILURE);
    }
    return coords;
}

static void alloc(struct bench *bench, size_t n_bytes, struct vxd_buffer *out)
{
    struct vxd_err err = {0};

    must(vxd_device_alloc(bench->device.queue, n_bytes, out, &err), &err);
}

static void fetch(struct bench *bench, void *to, const void *from, size_t n_bytes)
{
    struct vxd_err err = {0};

    must(vxd_queue_copy(bench->device.queue, to, from, n_bytes, &err), &err);
    must(vxd_queue_wait(bench->device.queue, &err), &err);
}

static void make_level(struct bench *bench, int number)
{
    static const int32_t unbounded[3] = {0, 0, 0};
    struct vxd_queue *queue = bench->device.queue;
    struct level *level = &bench->levels[number];
    size_t n = number == 0 ? N_POINTS : bench->levels[number - 1].n_rows;
    struct vxd_buffer coords = {0};
    struct vxd_buffer scratch = {0};
    struct vxd_err err = {0};

    alloc(bench, vxd_coord_set_bytes(n), &level->block);
    must(vxd_coord_set_layout(level->block.ptr, n, unbounded, &level->coord_set, &err),
         &err);
    if (number == 0) {
        int32_t *cells = read_scan(bench->voxel_mm);

        alloc(bench, (size_t)N_POINTS * 16, &coords);
        alloc(bench, vxd_coord_set_scratch_bytes(queue, n, n), &scratch);
        must(vxd_queue_copy(queue, coords.ptr, cells, coords.n_bytes, &err), &err);
        must(vxd_coord_set_make(queue, coords.ptr, n, 1, &level->coord_set, NULL,
                                scratch.ptr, scratch.n_bytes, &err),
             &err);
        must(vxd_queue_wait(queue, &err), &err);
        free(cells);
    } else {
        struct vxd_coord_set *from = &bench->levels[number - 1].coord_set;
        size_t n_candidates =
            vxd_sparse_derive_candidates(VXD_DERIVE_FLOOR, &down, from->capacity);

        alloc(bench, vxd_coord_set_scratch_bytes(queue, n_candidates, n), &scratch);
        must(vxd_coord_set_derive(queue, VXD_DERIVE_FLOOR, &down, from, &level->coord_set,
                                  scratch.ptr, scratch.n_bytes, &err),
             &err);
    }
    fetch(bench, &level->n_rows, level->coord_set.n_rows, sizeof level->n_rows);
    vxd_device_free(queue, &coords);
    vxd_device_free(queue, &scratch);
}

static void make_map(struct bench *bench, const struct vxd_sparse_geometry *geometry,
                     const struct level *in, struct level *out, enum kind kind)
{
    struct vxd_queue *queue = bench->device.queue;
    int n_taps = kind == SUBM ? 27 : 8;
    struct map *map = &out->maps[kind];
    struct vxd_buffer scratch = {0};
    struct vxd_err err = {0};

    alloc(bench, vxd_kernel_map_bytes(queue, n_taps, out->n_rows), &map->block);
    alloc(bench, vxd_kernel_map_scratch_bytes(queue, n_taps, out->n_rows), &scratch);
    must(vxd_kernel_map_layout(queue, map->block.ptr, n_taps, out->n_rows, &map->map,
                               &err),
         &err);
    must(vxd_kernel_map_build(queue, geometry, &in->coord_set, &out->coord_set, &map->map,
                              scratch.ptr, scratch.n_bytes, &err),
         &err);
    fetch(bench, &map->n_pairs, map->map.n_pairs, sizeof map->n_pairs);
    vxd_device_free(queue, &scratch);
}

static void fill_random(struct bench *bench, const struct vxd_buffer *buffer)
{
    size_t element = vxd_net_element_bytes(bench->precision);
    char *bytes = allocate(buffer->n_bytes);
    struct vxd_err err = {0};
    uint64_t state = 1;

    for (size_t i = 0; i + element <= buffer->n_bytes; i += element) {
        float value = random_float(&state);
        uint16_t half = bench->precision == VXD_NET_FP16 ? vxd_half_of_float(value)
                                                         : vxd_bfloat_of_float(value);

        memcpy(bytes + i, element == 4 ? (const void *)&value : (const void *)&half,
               element);
    }
    must(vxd_queue_copy(bench->device.queue, buffer->ptr, bytes, buffer->n_bytes, &err),
         &err);
    must(vxd_queue_wait(bench->device.queue, &err), &err);
    free(bytes);
}

static int taps_of(const struct layer *layer)
{
    return layer->kind == SUBM ? 27 : layer->kind == LINEAR ? 1 : 8;
}

static void make_weights(struct bench *bench, int number)
{
    const struct layer *layer = &layers[number];
    size_t n = (size_t)(taps_of(layer) * layer->n_in * layer->n_out);
    float *weights = allocate(n * sizeof *weights);
    struct vxd_err err = {0};
    uint64_t state = 2;

    for (size_t i = 0; i < n; i++) {
        weights[i] = random_float(&state) * 0.05f;
    }
    must(vxd_conv_weights_pack(bench->device.queue, weights, taps_of(layer), layer->n_in,
                               layer->n_out, bench->precision, &bench->weights[number],
                               &err),
         &err);
    free(weights);
}

static void set_up(struct bench *bench)
{
    size_t element = vxd_net_element_bytes(bench->precision);
    size_t n_most = 0;
    struct vxd_err err = {0};

    must(bench_device_create(bench->backend, bench->n_threads, &bench->device, &err),
         &err);
    for (int i = 0; i < N_LEVELS; i++) {
        size_t n;

        make_level(bench, i);
        make_map(bench, &subm, &bench->levels[i], &bench->levels[i], SUBM);
        if (i > 0) {
            make_map(bench, &down, &bench->levels[i - 1], &bench->levels[i], DOWN);
            make_map(bench, &up, &bench->levels[i], &bench->levels[i - 1], UP);
        }
        n = (size_t)bench->levels[i].n_rows * (i == 0 ? 128 : MAX_CHANNELS);
        n_most = n > n_most ? n : n_most;
    }
    alloc(bench, n_most * element, &bench->in);
    alloc(bench, 2 * n_most * element, &bench->out); /* the sums, and a residual */
    alloc(bench, MAX_CHANNELS * sizeof(float), &bench->bias);
    fill_random(bench, &bench->in);
    fill_random(bench, &bench->out);
    must(vxd_queue_fill(bench->device.queue, bench->bias.ptr, 0, bench->bias.n_bytes,
                        &err),
         &err);
    for (int i = 0; i < N_LAYERS; i++) {
        make_weights(bench, i);
    }
}

static void tear_down(struct bench *bench)
{
    struct vxd_queue *queue = bench->device.queue;

    for (int i = 0; i < N_LAYERS; i++) {
        vxd_device_free(queue, &bench->weights[i].data);
    }
    for (int i = 0; i < N_LEVELS; i++) {
        vxd_device_free(queue, &bench->levels[i].block);
        for (int kind = SUBM; kind <= UP; kind++) {
            vxd_device_free(queue, &bench->levels[i].maps[kind].block);
        }
    }
    vxd_device_free(queue, &bench->in);
    vxd_device_free(queue, &bench->out);
    vxd_device_free(queue, &bench->bias);
    bench_device_destroy(&bench->device);
}

static void convolve(struct bench *bench, int number)
{
    const struct layer *layer = &layers[number];
    struct level *level = &bench->levels[layer->level];
    size_t n_in = (size_t)layer->n_in;
    size_t n_out = (size_t)layer->n_out;
    char *add = (char *)bench->out.ptr + bench->out.n_bytes / 2;
    struct vxd_conv_args args = {
        .map = layer->kind == LINEAR ? NULL : &level->maps[layer->kind].map,
        .n_rows = level->coord_set.n_rows,
        .max_rows = level->n_rows,
        .weights = &bench->weights[number],
        .bias = bench->bias.ptr,
        .in = {bench->in.ptr, layer->n_in, n_in},
        .out = {bench->out.ptr, layer->n_out, n_out},
        .add = {layer->has_add ? add : NULL, layer->n_out, n_out},
        .act = VXD_ACT_RELU};
    struct vxd_err err = {0};

    must(vxd_conv_run(bench->device.queue, &args, &err), &err);
}

/* Median of the seconds of layers first to last, each as often as in the network. */
static double time_layers(struct bench *bench, int first, int last)
{
    double times[MAX_REPEAT];
    struct vxd_err err = {0};

    for (int i = 0; i < bench->n_repeat; i++) {
        must(bench_device_flush(&bench->device, &err), &err);
        convolve(bench, first); /* in a network the input of a layer was just written */
        if (!bench_device_start(&bench->device)) {
            (void)fprintf(stderr, "bench_conv: the clock failed\n");
            exit(EXIT_FAILURE);
        }
        for (int layer = first; layer <= last; layer++) {
            for (int k = 0; k < layers[layer].n_times; k++) {
                convolve(bench, layer);
            }
        }
        (void)bench_device_stop(&bench->device);
        must(vxd_queue_wait(bench->device.queue, &err), &err);
        times[i] = bench_device_seconds(&bench->device);
    }
    return bench_median(times, bench->n_repeat);
}

struct work {
    double flop;
    double bytes;
    double gathered_bytes;
};

static struct work work_of(const struct bench *bench, const struct layer *layer)
{
    const struct level *level = &bench->levels[layer->level];
    double element = (double)vxd_net_element_bytes(bench->precision);
    int from = layer->level + (layer->kind == DOWN ? -1 : layer->kind == UP ? 1 : 0);
    double n_pairs = layer->kind == LINEAR ? (double)level->n_rows
                                           : (double)level->maps[layer->kind].n_pairs;
    struct work work;

    work.flop = 2 * n_pairs * layer->n_in * layer->n_out;
    work.gathered_bytes = n_pairs * (layer->n_in * element + 4);
    work.bytes = element * ((double)bench->levels[from].n_rows * layer->n_in +
                            (double)level->n_rows * layer->n_out * (1 + layer->has_add) +
                            (double)taps_of(layer) * layer->n_in * layer->n_out);
    return work;
}

static double floor_s(const struct work *work, const struct bench *bench)
{
    double rate = bench->precision == VXD_NET_FP32   ? 60e12
                  : bench->precision == VXD_NET_TF32 ? FLOP_PER_S / 2
                                                     : FLOP_PER_S;
    double most = work->flop / rate;

    most = fmax(most, work->bytes / BYTES_PER_S);
    return fmax(most, work->gathered_bytes / GATHER_BYTES_PER_S);
}

static void report(struct bench *bench)
{
    struct vxd_context_info info;
    struct work all = {0};
    double floors = 0;
    double sum = 0;

    vxd_context_get_info(bench->device.context, &info);
    (void)printf("%s, precision %d, voxels of %d mm\n", info.name, (int)bench->precision,
                 bench->voxel_mm);
    for (int i = 0; i < N_LEVELS; i++) {
        const struct level *level = &bench->levels[i];

        (void)printf("level %d: %u rows, %.2f pairs a row\n", i, level->n_rows,
                     (double)level->maps[SUBM].n_pairs / level->n_rows);
    }
    (void)printf(
        "  # layer      level  in out x      us   GFLOP TFLOP/s  floor us ratio\n");
    for (int i = 0; i < N_LAYERS; i++) {
        const struct layer *layer = &layers[i];
        struct work work = work_of(bench, layer);
        double floor = floor_s(&work, bench);
        double took;

        if (bench->only >= 0 && bench->only != i) {
            continue;
        }
        took = time_layers(bench, i, i) / layer->n_times;
        (void)printf("%3d %-10s %d %4d %4d %d %8.2f %7.3f %7.1f %8.2f %5.1f\n", i,
                     layer->name, layer->level, layer->n_in, layer->n_out, layer->n_times,
                     took * 1e6, work.flop * 1e-9, work.flop / took * 1e-12, floor * 1e6,
                     took / floor);
        sum += took * layer->n_times;
        floors += floor * layer->n_times;
        all.flop += work.flop * layer->n_times;
        all.gathered_bytes += work.gathered_bytes * layer->n_times;
    }
    (void)printf("sum %.1f us, %.1f GFLOP, %.1f TFLOP/s, floors %.1f us\n", sum * 1e6,
                 all.flop * 1e-9, all.flop / sum * 1e-12, floors * 1e6);
    if (bench->only < 0) {
        (void)printf("all in a row %.1f us\n", time_layers(bench, 0, N_LAYERS - 1) * 1e6);
    }
}

static void usage(void)
{
    (void)fprintf(stderr, "usage: bench_conv [--backend cpu|cuda] [--precision 0..3] "
                          "[--voxel-mm N] [--threads N] [--repeat N] [--only LAYER]\n");
    exit(EXIT_FAILURE);
}

static int number_of(const char *text, long least, long most)
{
    return (int)bench_number(text, least, most, usage);
}

int main(int argc, char **argv)
{
    struct bench bench = {
        .precision = VXD_NET_FP16, .voxel_mm = 100, .n_repeat = 5, .only = -1};

    for (int i = 1; i + 1 < argc; i += 2) {
        const char *name = argv[i];
        const char *value = argv[i + 1];

        if (strcmp(name, "--backend") == 0) {
            bench.backend =
                strcmp(value, "cuda") == 0 ? VXD_BACKEND_CUDA : VXD_BACKEND_CPU;
        } else if (strcmp(name, "--precision") == 0) {
            bench.precision = (enum vxd_net_precision)number_of(value, 0, 3);
        } else if (strcmp(name, "--voxel-mm") == 0) {
            bench.voxel_mm = number_of(value, 1, 10000);
        } else if (strcmp(name, "--threads") == 0) {
            bench.n_threads = number_of(value, 0, 256);
        } else if (strcmp(name, "--repeat") == 0) {
            bench.n_repeat = number_of(value, 1, MAX_REPEAT);
        } else if (strcmp(name, "--only") == 0) {
            bench.only = number_of(value, 0, N_LAYERS - 1);
        } else {
            usage();
        }
    }
    if (argc % 2 == 0) {
        usage();
    }
    set_up(&bench);
    report(&bench);
    tear_down(&bench);
    return EXIT_SUCCESS;
}
