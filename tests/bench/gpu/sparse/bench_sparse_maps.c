// SPDX-License-Identifier: Apache-2.0
/* Times all coordinate sets and kernel maps of MinkUNet42 for one scan: five levels, each at half
 * the resolution of the previous one; kernel 3 on each, kernel 2 stride 2 down and up between them.
 *
 * Prints Markdown: the median device time of each operation alone (caches flushed before), of
 * all in sequence, and of all as one CUDA graph; beside it the bytes that must be moved (keys
 * read, sets and tables written, each once) and the time that this takes at the copy bandwidth
 * measured in this run.
 * usage: bench_sparse_maps [--backend cpu|cuda] [--file SCAN.npy] [--size M] [--threads N]
 *                          [--repeat N] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/sparse/layers/layers.h"
#include "gpu/voxel/voxel.h"
#include "tests/bench/support/bench_cloud.h"
#include "tests/bench/support/bench_device.h"

#define N_LEVELS 5
#define MAX_REPEAT 1000
#define FLOOR_BYTES ((size_t)256 << 20)

struct options {
    enum vxd_backend backend;
    const char *file; /* NULL: a synthetic scan */
    float size_m;
    int n_threads;
    int n_repeat;
};

enum step_kind {
    STEP_MAKE,
    STEP_FLOOR,
    STEP_SUBM,
    STEP_DOWN,
    STEP_UP
};

static const char *const step_names[] = {"set", "floor set", "map 3^3", "map down",
                                         "map up"};

struct step {
    enum step_kind kind;
    int level; /* of the finer set */
};

#define N_STEPS (1 + 4 + 5 + 4 + 4)

struct bench {
    struct options options;
    struct bench_device device;
    struct bench_floors floors;
    struct vxd_buffer coords;
    struct vxd_buffer scratch;
    size_t n;
    struct vxd_coord_set coord_sets[N_LEVELS];
    struct vxd_buffer coord_set_blocks[N_LEVELS];
    struct step steps[N_STEPS];
    struct vxd_kernel_map maps[N_STEPS]; /* by step */
    struct vxd_sparse_derive_request floors_of_first[N_LEVELS - 1];
    struct vxd_kernel_map_request requests[N_STEPS - N_LEVELS];
    struct vxd_buffer map_blocks[N_STEPS];
};

static const struct vxd_sparse_geometry geometries[] = {
    [STEP_MAKE] = {{1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}, false},
    [STEP_FLOOR] = {{2, 2, 2}, {2, 2, 2}, {0, 0, 0}, {1, 1, 1}, false},
    [STEP_SUBM] = {{3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, false},
    [STEP_DOWN] = {{2, 2, 2}, {2, 2, 2}, {0, 0, 0}, {1, 1, 1}, false},
    [STEP_UP] = {{2, 2, 2}, {2, 2, 2}, {0, 0, 0}, {1, 1, 1}, true}};

/* The scan's voxels; *n is their number. */
static enum vxd_status voxelize(struct bench *bench, const struct bench_cloud *cloud,
                                struct vxd_err *err)
{
    struct vxd_queue *queue = bench->device.queue;
    size_t n_points = cloud->n_points;
    float size = bench->options.size_m;
    float *xyz = malloc((n_points + 1) * 3 * sizeof *xyz);
    uint32_t batch_starts[2] = {0, (uint32_t)n_points};
    uint32_t voxel_starts[2] = {0, 0};
    struct vxd_buffer positions = {0};
    struct vxd_buffer totals = {0};
    struct vxd_buffer starts = {0};
    struct vxd_voxelize_args args = {.n_points = n_points,
                                     .batch_starts = batch_starts,
                                     .n_batch = 1,
                                     .rule = VXD_RULE_MINKOWSKI,
                                     .order = VXD_ORDER_MORTON,
                                     .size_m = {size, size, size}};
    struct vxd_voxels out = {.capacity = n_points};
    enum vxd_status status;

    if (xyz == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory");
    }
    for (size_t i = 0; i < n_points; i++) {
        memcpy(xyz + 3 * i, cloud->rows + i * (size_t)cloud->n_columns, 3 * sizeof *xyz);
    }
    VXD_TRY(vxd_device_alloc(queue, n_points * 12, &positions, err));
    VXD_TRY(vxd_device_alloc(queue, n_points * 16, &bench->coords, err));
    VXD_TRY(vxd_device_alloc(queue, sizeof(struct vxd_voxel_totals), &totals, err));
    VXD_TRY(vxd_device_alloc(queue, sizeof voxel_starts, &starts, err));
    VXD_TRY(vxd_queue_copy(queue, positions.ptr, xyz, n_points * 12, err));
    args.positions = positions.ptr;
    out.totals = totals.ptr;
    out.starts = starts.ptr;
    out.coords = bench->coords.ptr;
    VXD_TRY(vxd_voxelize(queue, &args, &out, err));
    VXD_TRY(vxd_queue_copy(queue, voxel_starts, starts.ptr, sizeof voxel_starts, err));
    VXD_TRY(vxd_queue_wait(queue, err));
    bench->n = voxel_starts[1];
out:
    vxd_device_free(queue, &starts);
    vxd_device_free(queue, &totals);
    vxd_device_free(queue, &positions);
    (void)vxd_queue_wait(queue, NULL);
    free(xyz);
    return status;
}

static void list_steps(struct bench *bench)
{
    int n = 0;

    bench->steps[n++] = (struct step){STEP_MAKE, 0};
    for (int level = 0; level + 1 < N_LEVELS; level++) {
        bench->steps[n++] = (struct step){STEP_FLOOR, level};
    }
    for (int level = 0; level < N_LEVELS; level++) {
        bench->steps[n++] = (struct step){STEP_SUBM, level};
    }
    for (int level = 0; level + 1 < N_LEVELS; level++) {
        bench->steps[n++] = (struct step){STEP_DOWN, level};
        bench->steps[n++] = (struct step){STEP_UP, level};
    }
}

static int n_taps_of(enum step_kind kind)
{
    const int *kernel = geometries[kind].kernel;

    return kernel[0] * kernel[1] * kernel[2];
}

static void find_coord_sets(struct bench *bench, int number, struct vxd_coord_set **in,
                            struct vxd_coord_set **out)
{
    struct step step = bench->steps[number];
    bool is_down = step.kind == STEP_FLOOR || step.kind == STEP_DOWN;

    *in = &bench->coord_sets[step.kind == STEP_UP ? step.level + 1 : step.level];
    *out = &bench->coord_sets[is_down ? step.level + 1 : step.level];
}

/* Everything has capacity for the rows of the input, because only the device knows the
 * counts. */
static enum vxd_status set_up(struct bench *bench, struct vxd_err *err)
{
    static const int32_t unbounded[3] = {0, 0, 0};
    struct vxd_queue *queue = bench->device.queue;
    size_t n_scratch = vxd_coord_set_scratch_bytes(queue, bench->n, bench->n);
    size_t n_bytes;
    enum vxd_status status;

    for (int level = 0; level < N_LEVELS; level++) {
        VXD_TRY(vxd_device_alloc(queue, vxd_coord_set_bytes(bench->n),
                                 &bench->coord_set_blocks[level], err));
        VXD_TRY(vxd_coord_set_layout(bench->coord_set_blocks[level].ptr, bench->n,
                                     unbounded, &bench->coord_sets[level], err));
    }
    for (int level = 0; level + 1 < N_LEVELS; level++) {
        bench->floors_of_first[level] = (struct vxd_sparse_derive_request){
            VXD_DERIVE_FLOOR, geometries[STEP_FLOOR], &bench->coord_sets[level],
            &bench->coord_sets[level + 1]};
    }
    list_steps(bench);
    for (int i = N_LEVELS; i < N_STEPS; i++) {
        const struct vxd_sparse_geometry *geometry = &geometries[bench->steps[i].kind];
        int n_taps = n_taps_of(bench->steps[i].kind);
        struct vxd_coord_set *in;
        struct vxd_coord_set *out;

        n_bytes = vxd_kernel_map_bytes(queue, n_taps, bench->n);
        VXD_TRY(vxd_device_alloc(queue, n_bytes, &bench->map_blocks[i], err));
        VXD_TRY(vxd_kernel_map_layout(queue, bench->map_blocks[i].ptr, n_taps, bench->n,
                                      &bench->maps[i], err));
        find_coord_sets(bench, i, &in, &out);
        bench->requests[i - N_LEVELS] =
            (struct vxd_kernel_map_request){*geometry, in, out, &bench->maps[i]};
    }
    n_bytes = vxd_kernel_maps_scratch_bytes(queue, bench->requests, N_STEPS - N_LEVELS);
    VXD_TRY(vxd_device_alloc(queue, n_scratch > n_bytes ? n_scratch : n_bytes,
                             &bench->scratch, err));
    VXD_TRY(vxd_queue_wait(queue, err));
out:
    return status;
}

static enum vxd_status run_step(struct bench *bench, struct vxd_queue *queue, int number,
                                struct vxd_err *err)
{
    enum step_kind kind = bench->steps[number].kind;
    void *scratch = bench->scratch.ptr;
    size_t n_scratch = bench->scratch.n_bytes;
    struct vxd_coord_set *in;
    struct vxd_coord_set *out;

    find_coord_sets(bench, number, &in, &out);
    if (kind == STEP_MAKE) {
        return vxd_coord_set_make(queue, bench->coords.ptr, bench->n, 1, out, NULL,
                                  scratch, n_scratch, err);
    }
    if (kind == STEP_FLOOR) {
        return vxd_coord_set_derive(queue, VXD_DERIVE_FLOOR, &geometries[kind], in, out,
                                    scratch, n_scratch, err);
    }
    return vxd_kernel_map_build(queue, &geometries[kind], in, out, &bench->maps[number],
                                scratch, n_scratch, err);
}

/* As the executor does: floors together, then maps together. */
static enum vxd_status run_all(struct vxd_queue *queue, void *args, struct vxd_err *err)
{
    struct bench *bench = args;
    enum vxd_status status = VXD_OK;

    VXD_TRY(run_step(bench, queue, 0, err));
    VXD_TRY(vxd_coord_sets_derive(queue, bench->floors_of_first, N_LEVELS - 1,
                                  bench->scratch.ptr, bench->scratch.n_bytes, err));
    VXD_TRY(vxd_kernel_maps_build(queue, bench->requests, N_STEPS - N_LEVELS,
                                  bench->scratch.ptr, bench->scratch.n_bytes, err));
out:
    return status;
}

/* What is timed: one step, all of them (-1), or all as a graph. */
struct work {
    int step;
    const struct vxd_net_graph *graph;
};

static enum vxd_status run_work(struct bench *bench, const struct work *work,
                                struct vxd_err *err)
{
    struct vxd_queue *queue = bench->device.queue;

#ifdef VXD_WITH_CUDA
    if (work->graph != NULL) {
        return vxd_net_graph_launch_cuda(queue, work->graph, err);
    }
#endif
    return work->step < 0 ? run_all(queue, bench, err)
                          : run_step(bench, queue, work->step, err);
}

static enum vxd_status time_work(struct bench *bench, const struct work *work,
                                 double *seconds, struct vxd_err *err)
{
    double times[MAX_REPEAT] = {0};
    enum vxd_status status = VXD_OK;

    for (int i = -1; i < bench->options.n_repeat; i++) {
        VXD_TRY(bench_device_flush(&bench->device, err));
        (void)bench_device_start(&bench->device);
        VXD_TRY(run_work(bench, work, err));
        (void)bench_device_stop(&bench->device);
        VXD_TRY(vxd_queue_wait(bench->device.queue, err));
        times[i < 0 ? 0 : i] = bench_device_seconds(&bench->device);
    }
    *seconds = bench_median(times, bench->options.n_repeat);
out:
    return status;
}

static enum vxd_status time_graph(struct bench *bench, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

#ifdef VXD_WITH_CUDA
    struct vxd_net_graph *graph = NULL;
    struct work work = {-1, NULL};
    double seconds;

    if (bench->options.backend != VXD_BACKEND_CUDA) {
        return VXD_OK;
    }
    VXD_TRY(vxd_net_graph_record_cuda(bench->device.queue, run_all, bench, false, &graph,
                                      err));
    work.graph = graph;
    VXD_TRY(time_work(bench, &work, &seconds, err));
    (void)printf("| all, one graph | | | %.1f | |\n", 1e6 * seconds);
out:
    vxd_net_graph_destroy_cuda(bench->device.context, graph);
#else
    (void)bench;
    (void)err;
#endif
    return status;
}

/* Number of rows of a step's result, of rows that it read, and of pairs. */
static enum vxd_status count(struct bench *bench, int number, uint32_t *n_in,
                             uint32_t *n_out, uint64_t *n_pairs, struct vxd_err *err)
{
    struct vxd_coord_set *in;
    struct vxd_coord_set *out;
    struct vxd_queue *queue = bench->device.queue;
    enum vxd_status status;

    *n_pairs = 0;
    find_coord_sets(bench, number, &in, &out);
    VXD_TRY(vxd_queue_copy(queue, n_in, in->n_rows, 4, err));
    VXD_TRY(vxd_queue_copy(queue, n_out, out->n_rows, 4, err));
    if (bench->steps[number].kind >= STEP_SUBM) {
        VXD_TRY(vxd_queue_copy(queue, n_pairs, bench->maps[number].n_pairs, 8, err));
    }
    VXD_TRY(vxd_queue_wait(queue, err));
out:
    return status;
}

/* Keys read, keys or table, masks and order written. */
static double bytes_of(const struct bench *bench, int number, uint32_t n_in,
                       uint32_t n_out)
{
    enum step_kind kind = bench->steps[number].kind;
    double order = bench->maps[number].order != NULL ? 8.0 : 0.0;

    if (kind < STEP_SUBM) {
        return (kind == STEP_MAKE ? 16.0 : 8.0) * n_in + 8.0 * n_out;
    }
    return 8.0 * n_in + (8.0 + order + 4.0 * n_taps_of(kind)) * n_out;
}

static enum vxd_status report(struct bench *bench, struct vxd_err *err)
{
    struct work all = {-1, NULL};
    struct vxd_context_info info;
    double n_bytes = 0;
    double seconds;
    enum vxd_status status;

    VXD_TRY(run_all(bench->device.queue, bench, err));
    VXD_TRY(vxd_queue_wait(bench->device.queue, err));
    vxd_context_get_info(bench->device.context, &info);
    (void)printf("%s; %zu voxels of %g m; copies at %.2f TB/s\n\n", info.name, bench->n,
                 (double)bench->options.size_m, 1e-12 * bench->floors.copy_bytes_per_s);
    (void)printf("| step | rows | pairs | us | floor us |\n|---|---|---|---|---|\n");
    for (int i = 0; i < N_STEPS; i++) {
        struct work work = {i, NULL};
        uint32_t n_in;
        uint32_t n_out;
        uint64_t n_pairs;

        VXD_TRY(time_work(bench, &work, &seconds, err));
        VXD_TRY(count(bench, i, &n_in, &n_out, &n_pairs, err));
        n_bytes += bytes_of(bench, i, n_in, n_out);
        (void)printf(
            "| %s %d | %u | %llu | %.1f | %.2f |\n", step_names[bench->steps[i].kind],
            bench->steps[i].level, n_out, (unsigned long long)n_pairs, 1e6 * seconds,
            1e6 * bytes_of(bench, i, n_in, n_out) / bench->floors.copy_bytes_per_s);
    }
    VXD_TRY(time_work(bench, &all, &seconds, err));
    (void)printf("| all | | | %.1f | %.1f |\n", 1e6 * seconds,
                 1e6 * n_bytes / bench->floors.copy_bytes_per_s);
    VXD_TRY(time_graph(bench, err));
out:
    return status;
}

static void tear_down(struct bench *bench)
{
    struct vxd_queue *queue = bench->device.queue;

    for (int i = 0; i < N_STEPS && queue != NULL; i++) {
        vxd_device_free(queue, &bench->map_blocks[i]);
    }
    for (int i = 0; i < N_LEVELS && queue != NULL; i++) {
        vxd_device_free(queue, &bench->coord_set_blocks[i]);
    }
    if (queue != NULL) {
        vxd_device_free(queue, &bench->scratch);
        vxd_device_free(queue, &bench->coords);
    }
    bench_device_destroy(&bench->device);
}

static void usage(void)
{
    (void)fprintf(stderr,
                  "usage: bench_sparse_maps [--backend cpu|cuda] [--file SCAN.npy] "
                  "[--size M] [--threads N] [--repeat N]\n");
    exit(EXIT_FAILURE);
}

static int number_of(const char *text, long least, long most)
{
    return (int)bench_number(text, least, most, usage);
}

static void parse(int argc, char **argv, struct options *out)
{
    *out = (struct options){VXD_BACKEND_CPU, NULL, 0.05f, 0, 20};
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *name = argv[i];
        const char *value = argv[i + 1];

        if (strcmp(name, "--backend") == 0) {
            out->backend =
                strcmp(value, "cuda") == 0 ? VXD_BACKEND_CUDA : VXD_BACKEND_CPU;
        } else if (strcmp(name, "--file") == 0) {
            out->file = value;
        } else if (strcmp(name, "--size") == 0) {
            out->size_m = strtof(value, NULL);
        } else if (strcmp(name, "--threads") == 0) {
            out->n_threads = number_of(value, 0, 256);
        } else if (strcmp(name, "--repeat") == 0) {
            out->n_repeat = number_of(value, 1, MAX_REPEAT);
        } else {
            usage();
        }
    }
    if (argc % 2 == 0) {
        usage();
    }
}

int main(int argc, char **argv)
{
    static struct bench bench;
    struct bench_cloud cloud = {0};
    struct vxd_err err = {0};
    enum vxd_status status = VXD_UNAVAILABLE;
    bool is_read;

    parse(argc, argv, &bench.options);
    is_read = bench.options.file != NULL ? bench_cloud_read(bench.options.file, 0, &cloud)
                                         : bench_cloud_make(&cloud);
    if (!is_read) {
        return EXIT_FAILURE;
    }
    VXD_TRY(bench_device_create(bench.options.backend, bench.options.n_threads,
                                &bench.device, &err));
    VXD_TRY(bench_device_floors(&bench.device, FLOOR_BYTES, 1, &bench.floors, &err));
    VXD_TRY(voxelize(&bench, &cloud, &err));
    VXD_TRY(set_up(&bench, &err));
    VXD_TRY(report(&bench, &err));
out:
    if (status != VXD_OK) {
        (void)fprintf(stderr, "bench_sparse_maps: %s: %s\n", err.field, err.message);
    }
    tear_down(&bench);
    bench_cloud_free(&cloud);
    return status == VXD_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
