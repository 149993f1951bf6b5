// SPDX-License-Identifier: Apache-2.0
/* Times edits, undo and diff of versions: brush strokes in a scene of many nodes (leaves
 * of noise, all different); their undo right afterwards; undo of an earlier stroke below
 * later ones, and its redo; diffs of two versions that differ by one stroke or by a large
 * ball. Prints Markdown: medians, by the device's clock and by wall clock from the call
 * until the results are in host memory.
 *
 * The scene is 2^17 voxels a side.
 * usage: bench_gpu_svdag_versions [--backend cpu|cuda] [--threads N] [--repeat N] [--leaves N]
 *                               [--bits 0|4|8|16] [--radius VOXELS] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/svdag/diff/diff.h"
#include "gpu/svdag/edit/edit.h"
#include "tests/bench/support/bench_device.h"

#define DEPTH 17
#define MAX_REPEAT 100
#define BATCH ((size_t)1 << 20) /* leaves per edit */
#define CORNER                                                                           \
    ((int64_t)1 << 16) /* corner of the noise, in voxels; Morton codes count from there */
#define MAX_ROWS ((size_t)1 << 22)
#define BRUSH_RADIUS 32

struct options {
    enum vxd_backend backend;
    int n_threads;
    int n_repeat;
    int bits;
    int radius; /* radius of the large ball */
    size_t n_leaves;
};

struct bench {
    struct options options;
    struct bench_device device;
    struct vxd_svdag *svdag;
    uint32_t root;
    int64_t centre;           /* extent of the noise, on every axis */
    struct vxd_buffer result; /* page-locked, like the following members */
    struct vxd_buffer h_rows;
    struct vxd_buffer h_counts;
    struct vxd_buffer cells; /* device */
    struct vxd_buffer changes;
    struct vxd_buffer counts;
};

/* Seconds by the device's clock and by wall clock. */
struct times {
    double device[MAX_REPEAT];
    double wall[MAX_REPEAT];
    int n;
};

static void print_times(const char *name, uint64_t n, struct times *times)
{
    (void)printf("| %s | %llu | %.3f | %.3f |\n", name, (unsigned long long)n,
                 1e3 * bench_median(times->device, times->n),
                 1e3 * bench_median(times->wall, times->n));
}

/* --- edits ----------------------------------------------------------------------------- */

/* Runs an edit of one operation, or an undo. */
struct change {
    const struct vxd_svdag_op *op; /* NULL: an undo */
    uint32_t head;
    uint32_t before;
    uint32_t after;
};

/* Repeats the edit until capacity suffices; the time is that of the last attempt. */
static enum vxd_status run_change(struct bench *bench, const struct change *change,
                                  struct vxd_svdag_edit_result *result,
                                  struct times *times, struct vxd_err *err)
{
    struct vxd_queue *queue = bench->device.queue;
    struct vxd_svdag_edit_result *own = bench->result.ptr;
    double begin;
    enum vxd_status status;

    for (;;) {
        VXD_TRY(bench_device_flush(&bench->device, err));
        VXD_TRY(vxd_queue_wait(queue, err));
        begin = bench_now_s();
        (void)bench_device_start(&bench->device);
        if (change->op != NULL) {
            VXD_TRY(vxd_svdag_edit(queue, bench->svdag, change->head, change->op, 1, own,
                                   err));
        } else {
            VXD_TRY(vxd_svdag_undo(queue, bench->svdag, change->head, change->before,
                                   change->after, own, err));
        }
        (void)bench_device_stop(&bench->device);
        VXD_TRY(vxd_queue_wait(queue, err));
        if (!own->needs_capacity) {
            break;
        }
        VXD_TRY(vxd_svdag_reserve(queue, bench->svdag, own, err));
    }
    if (times != NULL && times->n < MAX_REPEAT) {
        times->wall[times->n] = bench_now_s() - begin;
        times->device[times->n++] = bench_device_seconds(&bench->device);
    }
    *result = *own;
out:
    return status;
}

static uint64_t random_next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15ULL;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
    return z ^ z >> 31;
}

/* Adds consecutive leaves of noise, batch by batch. */
static enum vxd_status make_scene(struct bench *bench, struct vxd_err *err)
{
    struct vxd_svdag_spec spec = {.format = {DEPTH, bench->options.bits, false}};
    struct vxd_queue *queue = bench->device.queue;
    const uint64_t first = (uint64_t)7 << 3 * 14; /* of CORNER */
    uint64_t *lists = malloc(2 * BATCH * sizeof *lists);
    struct vxd_buffer d_lists = {0};
    struct vxd_svdag_edit_result result = {.root = VXD_SVDAG_EMPTY};
    uint64_t state = 1;
    enum vxd_status status = VXD_OK;

    if (lists == NULL) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for leaves"));
    }
    VXD_TRY(vxd_svdag_create(queue, &spec, &bench->svdag, err));
    VXD_TRY(vxd_device_alloc(queue, 2 * BATCH * sizeof *lists, &d_lists, err));
    for (size_t at = 0; at < bench->options.n_leaves; at += BATCH) {
        uint64_t *d_codes = d_lists.ptr;
        struct vxd_svdag_op op = {
            .action = VXD_SVDAG_FILL,
            .value = bench->options.bits == 0 ? 0 : (uint32_t)(at / BATCH % 13)};
        size_t n = bench->options.n_leaves - at;

        n = n < BATCH ? n : BATCH;
        for (size_t i = 0; i < n; i++) {
            lists[i] = first + at + i;
            lists[BATCH + i] = random_next(&state) | 1;
        }
        VXD_TRY(vxd_queue_copy(queue, d_codes, lists, 2 * BATCH * sizeof *lists, err));
        op.shape.kind = VXD_SVDAG_VOXELS;
        op.shape.voxels =
            (struct vxd_svdag_voxels){.codes = d_codes, .masks = d_codes + BATCH, .n = n};
        VXD_TRY(
            vxd_svdag_edit_wait(queue, bench->svdag, result.root, &op, 1, &result, err));
    }
    bench->root = result.root;
    bench->centre = 2;
    while ((bench->centre * bench->centre * bench->centre) <=
           (int64_t)bench->options.n_leaves) {
        bench->centre *= 2;
    }
    bench->centre += CORNER;
out:
    vxd_device_free(queue, &d_lists);
    free(lists);
    return status;
}

static struct vxd_svdag_op ball_of(const struct bench *bench, int64_t r, int64_t x,
                                   int64_t y, uint32_t value)
{
    struct vxd_svdag_op op = {.action = VXD_SVDAG_FILL,
                              .value = bench->options.bits == 0 ? 0 : value};

    op.shape.kind = VXD_SVDAG_BALL;
    op.shape.r = r * VXD_SVDAG_UNIT;
    op.shape.a[0] = (bench->centre + x) * VXD_SVDAG_UNIT;
    op.shape.a[1] = (bench->centre + y) * VXD_SVDAG_UNIT;
    op.shape.a[2] = bench->centre * VXD_SVDAG_UNIT;
    return op;
}

/* Strokes at different places, each applied to the original scene. */
static enum vxd_status run_strokes(struct bench *bench, struct vxd_err *err)
{
    struct times times[4] = {{.n = 0}, {.n = 0}, {.n = 0}, {.n = 0}};
    uint64_t n_voxels[4] = {0, 0, 0, 0};
    enum vxd_status status = VXD_OK;

    for (int i = 0; i < bench->options.n_repeat; i++) {
        const struct vxd_svdag_op stroke = ball_of(bench, BRUSH_RADIUS, 5 * i, 3 * i, 13);
        const struct vxd_svdag_op later =
            ball_of(bench, BRUSH_RADIUS, 5 * i + 20, 3 * i + 7, 14);
        struct vxd_svdag_edit_result result;
        struct change change = {.op = &stroke, .head = bench->root};
        uint32_t roots[2] = {bench->root, bench->root};
        uint32_t head;

        VXD_TRY(run_change(bench, &change, &result, &times[0], err));
        n_voxels[0] = result.n_added + result.n_changed;
        roots[1] = result.root;
        change = (struct change){NULL, roots[1], roots[0], roots[1]};
        VXD_TRY(run_change(bench, &change, &result, &times[1], err));
        n_voxels[1] = result.n_removed + result.n_changed;
        change = (struct change){.op = &later, .head = roots[1]};
        VXD_TRY(run_change(bench, &change, &result, NULL, err));
        head = result.root;
        change = (struct change){NULL, head, roots[0], roots[1]};
        VXD_TRY(run_change(bench, &change, &result, &times[2], err));
        n_voxels[2] = result.n_removed + result.n_changed;
        change = (struct change){NULL, result.root, roots[1], roots[0]};
        VXD_TRY(run_change(bench, &change, &result, &times[3], err));
        n_voxels[3] = result.n_added + result.n_changed;
        if (result.root != head) {
            VXD_TRY(vxd_fail(err, VXD_INTERNAL, NULL, "a redo gave another root"));
        }
    }
    print_times("brush r = 32, an edit", n_voxels[0], &times[0]);
    print_times("its undo at once", n_voxels[1], &times[1]);
    print_times("its undo below a later stroke", n_voxels[2], &times[2]);
    print_times("the redo of that", n_voxels[3], &times[3]);
out:
    return status;
}

/* Adds a large ball and thirty strokes over it, then undoes the ball. */
static enum vxd_status run_large(struct bench *bench, uint32_t *ball, struct vxd_err *err)
{
    const struct vxd_svdag_op op = ball_of(bench, bench->options.radius, 0, 0, 13);
    struct times times[2] = {{.n = 0}, {.n = 0}};
    struct vxd_svdag_edit_result result;
    struct change change = {.op = &op, .head = bench->root};
    uint64_t n_voxels;
    enum vxd_status status;

    VXD_TRY(run_change(bench, &change, &result, &times[0], err));
    n_voxels = result.n_added + result.n_changed;
    *ball = result.root;
    for (int i = 0; i < 30; i++) {
        const struct vxd_svdag_op stroke =
            ball_of(bench, BRUSH_RADIUS, bench->options.radius, 9 * i, 14);

        change = (struct change){.op = &stroke, .head = result.root};
        VXD_TRY(run_change(bench, &change, &result, NULL, err));
    }
    print_times("a large ball, an edit", n_voxels, &times[0]);
    change = (struct change){NULL, result.root, bench->root, *ball};
    VXD_TRY(run_change(bench, &change, &result, &times[1], err));
    n_voxels = result.n_removed + result.n_changed;
    print_times("its undo below 30 later strokes", n_voxels, &times[1]);
out:
    return status;
}

/* --- diffs ----------------------------------------------------------------------------- */

static enum vxd_status run_diff(struct bench *bench, const char *name, uint32_t after,
                                int level, struct vxd_err *err)
{
    const int64_t side = (int64_t)1 << DEPTH;
    const struct vxd_svdag_diff_box box = {{0, 0, 0}, {side, side, side}, level};
    struct vxd_queue *queue = bench->device.queue;
    const uint64_t *counts = bench->h_counts.ptr;
    struct times times = {.n = bench->options.n_repeat};
    char text[64];
    enum vxd_status status = VXD_OK;

    for (int i = 0; i < times.n; i++) {
        double begin;

        VXD_TRY(bench_device_flush(&bench->device, err));
        VXD_TRY(vxd_queue_wait(queue, err));
        begin = bench_now_s();
        (void)bench_device_start(&bench->device);
        VXD_TRY(vxd_svdag_diff(queue, bench->svdag, bench->root, after, &box, 0, MAX_ROWS,
                               bench->cells.ptr, bench->changes.ptr, bench->counts.ptr,
                               err));
        (void)bench_device_stop(&bench->device);
        VXD_TRY(vxd_queue_copy(queue, bench->h_counts.ptr, bench->counts.ptr,
                               2 * sizeof *counts, err));
        VXD_TRY(vxd_queue_wait(queue, err));
        times.device[i] = bench_device_seconds(&bench->device);
        VXD_TRY(vxd_queue_copy(queue, bench->h_rows.ptr, bench->cells.ptr,
                               counts[0] * 3 * sizeof(int32_t), err));
        VXD_TRY(vxd_queue_copy(queue, (int32_t *)bench->h_rows.ptr + 3 * MAX_ROWS,
                               bench->changes.ptr, counts[0], err));
        VXD_TRY(vxd_queue_wait(queue, err));
        times.wall[i] = bench_now_s() - begin;
    }
    (void)snprintf(text, sizeof text, "diff by %s, level %d", name, level);
    print_times(text, counts[1], &times);
out:
    return status;
}

static enum vxd_status alloc_all(struct bench *bench, struct vxd_err *err)
{
    struct vxd_context *context = bench->device.context;
    struct vxd_queue *queue = bench->device.queue;
    const size_t row_bytes = 3 * sizeof(int32_t);
    enum vxd_status status;

    VXD_TRY(vxd_host_alloc(context, sizeof(struct vxd_svdag_edit_result), &bench->result,
                           err));
    VXD_TRY(vxd_host_alloc(context, MAX_ROWS * (row_bytes + 1), &bench->h_rows, err));
    VXD_TRY(vxd_host_alloc(context, 2 * sizeof(uint64_t), &bench->h_counts, err));
    VXD_TRY(vxd_device_alloc(queue, MAX_ROWS * row_bytes, &bench->cells, err));
    VXD_TRY(vxd_device_alloc(queue, MAX_ROWS, &bench->changes, err));
    VXD_TRY(vxd_device_alloc(queue, 2 * sizeof(uint64_t), &bench->counts, err));
out:
    return status;
}

static void free_all(struct bench *bench)
{
    struct vxd_context *context = bench->device.context;
    struct vxd_queue *queue = bench->device.queue;

    vxd_svdag_destroy(queue, bench->svdag);
    vxd_device_free(queue, &bench->cells);
    vxd_device_free(queue, &bench->changes);
    vxd_device_free(queue, &bench->counts);
    (void)vxd_queue_wait(queue, NULL);
    vxd_host_free(context, &bench->result);
    vxd_host_free(context, &bench->h_rows);
    vxd_host_free(context, &bench->h_counts);
}

static enum vxd_status run(struct bench *bench, struct vxd_err *err)
{
    static const int levels[4] = {0, 3, 6, DEPTH};
    struct vxd_context_info info;
    struct vxd_svdag_usage usage;
    struct vxd_svdag_edit_result result;
    struct vxd_svdag_op stroke;
    uint32_t ball;
    enum vxd_status status;

    vxd_context_get_info(bench->device.context, &info);
    VXD_TRY(alloc_all(bench, err));
    VXD_TRY(make_scene(bench, err));
    vxd_svdag_get_usage(bench->svdag, &usage);
    (void)printf("%s; %.1f M nodes, %d bits, 2^%d voxels a side\n\n", info.name,
                 (double)(usage.n_leaves + usage.n_inner + usage.n_blocks) * 1e-6,
                 bench->options.bits, DEPTH);
    (void)printf("| what | voxels or cells | device ms | wall ms |\n|---|---|---|---|\n");
    VXD_TRY(run_strokes(bench, err));
    stroke = ball_of(bench, BRUSH_RADIUS, 0, 0, 13);
    VXD_TRY(vxd_svdag_edit_wait(bench->device.queue, bench->svdag, bench->root, &stroke,
                                1, &result, err));
    for (int i = 0; i < 4; i++) {
        VXD_TRY(run_diff(bench, "one stroke", result.root, levels[i], err));
    }
    VXD_TRY(run_large(bench, &ball, err));
    for (int i = 1; i < 4; i++) {
        VXD_TRY(run_diff(bench, "the ball", ball, levels[i], err));
    }
out:
    free_all(bench);
    return status;
}

static void usage_and_exit(void)
{
    (void)fprintf(stderr, "usage: the head of bench_svdag_versions.c says\n");
    exit(EXIT_FAILURE);
}

static long number_of(const char *text, long least, long most)
{
    return bench_number(text, least, most, usage_and_exit);
}

static void parse(int argc, char **argv, struct options *out)
{
    *out = (struct options){VXD_BACKEND_CPU, 0, 20, 4, 1000, (size_t)1 << 20};
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *name = argv[i];
        const char *value = argv[i + 1];

        if (strcmp(name, "--backend") == 0) {
            out->backend =
                strcmp(value, "cuda") == 0 ? VXD_BACKEND_CUDA : VXD_BACKEND_CPU;
        } else if (strcmp(name, "--threads") == 0) {
            out->n_threads = (int)number_of(value, 0, 256);
        } else if (strcmp(name, "--repeat") == 0) {
            out->n_repeat = (int)number_of(value, 1, MAX_REPEAT);
        } else if (strcmp(name, "--bits") == 0) {
            out->bits = (int)number_of(value, 0, 16);
        } else if (strcmp(name, "--radius") == 0) {
            out->radius = (int)number_of(value, 1, 20000);
        } else if (strcmp(name, "--leaves") == 0) {
            out->n_leaves = (size_t)number_of(value, 8, 1L << 30);
        } else {
            usage_and_exit();
        }
    }
    if (argc % 2 == 0) {
        usage_and_exit();
    }
}

int main(int argc, char **argv)
{
    static struct bench bench;
    struct vxd_err err = {0};
    enum vxd_status status;

    parse(argc, argv, &bench.options);
    status = bench_device_create(bench.options.backend, bench.options.n_threads,
                                 &bench.device, &err);
    if (status == VXD_OK) {
        status = run(&bench, &err);
        bench_device_destroy(&bench.device);
    }
    if (status != VXD_OK) {
        (void)fprintf(stderr, "bench_gpu_svdag_versions: %s\n", err.message);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
