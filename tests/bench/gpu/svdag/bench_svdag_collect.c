// SPDX-License-Identifier: Apache-2.0
/* Times collection and images. A store is filled with many noisy balls, a third of which
 * are removed again; the last version is kept. What it reaches is collected into a new
 * store in slices, then what one more edit made; then an image of it is saved, checked
 * and loaded.
 *
 * Prints Markdown. Times are wall-clock, waits included.
 * usage: bench_gpu_svdag_collect [--backend cpu|cuda] [--threads N] [--nodes N] [--bits 0|4|8|16]
 *                              [--slice-us N] [--repeat N] [--verify] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/svdag/edit/edit.h"
#include "gpu/svdag/image/image.h"
#include "gpu/svdag/collect/collect.h"
#include "tests/bench/support/bench_device.h"

#define DEPTH 17
#define MAX_BALLS 4096
#define RADIUS 400
#define AMPLITUDE 60

struct options {
    enum vxd_backend backend;
    int n_threads;
    uint64_t n_nodes;
    int bits;
    uint64_t slice_us;
    int n_repeat;
    bool verifies;
};

struct bench {
    struct options options;
    struct bench_device device;
    struct vxd_svdag *svdag;
    uint32_t root; /* the last version */
    int n_balls;
    uint32_t *words; /* the image */
    uint64_t n_words;
    uint64_t capacity;
};

static uint64_t count_nodes(const struct vxd_svdag *svdag)
{
    struct vxd_svdag_usage usage;

    vxd_svdag_get_usage(svdag, &usage);
    return usage.n_leaves + usage.n_inner + usage.n_blocks;
}

static struct vxd_svdag_op ball(int number, bool is_added, int bits)
{
    uint32_t random = (uint32_t)number * 2654435761u;
    struct vxd_svdag_op op = {.action = is_added ? VXD_SVDAG_FILL : VXD_SVDAG_ERASE,
                              .value = bits == 0 ? 0 : (uint32_t)number % 15};

    op.shape.kind = VXD_SVDAG_NOISE_BALL;
    op.shape.seed = (uint32_t)number;
    op.shape.amplitude = AMPLITUDE * VXD_SVDAG_UNIT;
    op.shape.cell_bits = 4;
    op.shape.r = (RADIUS + (is_added ? 0 : 2 * AMPLITUDE)) * VXD_SVDAG_UNIT;
    for (int axis = 0; axis < 3; axis++) {
        random = random * 1664525u + 1013904223u;
        op.shape.a[axis] =
            (int64_t)(2000 + (random >> 16) % ((1u << DEPTH) - 4000)) * VXD_SVDAG_UNIT;
    }
    return op;
}

static enum vxd_status edit(struct bench *bench, const struct vxd_svdag_op *op,
                            struct vxd_err *err)
{
    struct vxd_svdag_edit_result result;
    enum vxd_status status = vxd_svdag_edit_wait(bench->device.queue, bench->svdag,
                                                 bench->root, op, 1, &result, err);

    if (status == VXD_OK) {
        bench->root = result.root;
    }
    return status;
}

/* Adds balls, and removes every third one again two balls later. */
static enum vxd_status fill(struct bench *bench, struct vxd_err *err)
{
    const struct options *options = &bench->options;
    struct vxd_svdag_spec spec = {.format = {DEPTH, options->bits, false}};
    double begin_s = bench_now_s();
    enum vxd_status status;

    VXD_TRY(vxd_svdag_create(bench->device.queue, &spec, &bench->svdag, err));
    while (count_nodes(bench->svdag) < options->n_nodes && bench->n_balls < MAX_BALLS) {
        struct vxd_svdag_op op = ball(bench->n_balls, true, options->bits);

        VXD_TRY(edit(bench, &op, err));
        if (bench->n_balls % 3 == 2) {
            op = ball(bench->n_balls - 2, false, options->bits);
            VXD_TRY(edit(bench, &op, err));
        }
        bench->n_balls++;
    }
    (void)printf("%d balls, %.2f M nodes in %.1f s\n\n", bench->n_balls,
                 1e-6 * (double)count_nodes(bench->svdag), bench_now_s() - begin_s);
out:
    return status;
}

/* Runs slices until the collection is done; *most_s is the longest slice. */
static enum vxd_status run_steps(struct bench *bench,
                                 struct vxd_svdag_collection *collection, int *n_steps,
                                 double *total_s, double *most_s, struct vxd_err *err)
{
    bool is_done = false;
    enum vxd_status status = VXD_OK;

    *n_steps = 0;
    *total_s = 0;
    *most_s = 0;
    while (!is_done) {
        double begin_s = bench_now_s();
        double s;

        VXD_TRY(vxd_svdag_collect_step(bench->device.queue, collection,
                                       bench->options.slice_us * 1000, &is_done, err));
        s = bench_now_s() - begin_s;
        *total_s += s;
        *most_s = s > *most_s ? s : *most_s;
        (*n_steps)++;
    }
out:
    return status;
}

static void print_steps(const char *name, uint64_t n_nodes, int n_steps, double total_s,
                        double most_s)
{
    (void)printf("| %s | %llu | %d | %.2f | %.2f | %.0f |\n", name,
                 (unsigned long long)n_nodes, n_steps, 1e3 * total_s, 1e3 * most_s,
                 1e-6 * (double)n_nodes / total_s);
}

static enum vxd_status compare(struct bench *bench, const struct vxd_svdag *to,
                               uint32_t root, struct vxd_err *err)
{
    struct vxd_svdag_summary a;
    struct vxd_svdag_summary b;
    enum vxd_status status = VXD_OK;

    if (bench->options.verifies) {
        VXD_TRY(
            vxd_svdag_verify(bench->device.queue, bench->svdag, bench->root, &a, err));
        VXD_TRY(vxd_svdag_verify(bench->device.queue, to, root, &b, err));
        if (memcmp(&a, &b, sizeof a) != 0) {
            status = vxd_fail(err, VXD_INTERNAL, NULL, "the scenes differ");
        }
    }
out:
    return status;
}

/* Times one collection, in the middle of which an edit adds to the scene. */
static enum vxd_status collect(struct bench *bench, struct vxd_err *err)
{
    struct vxd_svdag_spec spec = {.format = {DEPTH, bench->options.bits, false}};
    const struct vxd_svdag_op op = ball(bench->n_balls++, true, bench->options.bits);
    struct vxd_svdag_collection *collection = NULL;
    struct vxd_svdag *to = NULL;
    struct vxd_svdag_collect_stats stats;
    struct vxd_svdag_usage usages[2];
    uint64_t n_before;
    uint32_t moved;
    int n_steps;
    double total_s;
    double most_s;
    double begin_s = bench_now_s();
    enum vxd_status status;

    VXD_TRY(vxd_svdag_create(bench->device.queue, &spec, &to, err));
    VXD_TRY(
        vxd_svdag_collect_begin(bench->device.queue, bench->svdag, to, &collection, err));
    VXD_TRY(vxd_svdag_collect_add(collection, bench->root, err));
    (void)printf("| begin | | 1 | %.2f | | |\n", 1e3 * (bench_now_s() - begin_s));
    VXD_TRY(run_steps(bench, collection, &n_steps, &total_s, &most_s, err));
    vxd_svdag_collect_get_stats(collection, &stats);
    print_steps("collect", stats.n_nodes, n_steps, total_s, most_s);
    n_before = stats.n_nodes;
    VXD_TRY(edit(bench, &op, err));
    VXD_TRY(vxd_svdag_collect_add(collection, bench->root, err));
    VXD_TRY(run_steps(bench, collection, &n_steps, &total_s, &most_s, err));
    vxd_svdag_collect_get_stats(collection, &stats);
    print_steps("and one more ball", stats.n_nodes - n_before, n_steps, total_s, most_s);
    (void)vxd_svdag_collect_root(collection, bench->root, &moved);
    VXD_TRY(compare(bench, to, moved, err));
    vxd_svdag_get_usage(bench->svdag, &usages[0]);
    vxd_svdag_get_usage(to, &usages[1]);
    (void)printf("| of %.2f M nodes %.2f M dead; %.0f MiB of %.0f | | | | | |\n",
                 1e-6 * (double)(stats.n_nodes + stats.n_dead_nodes),
                 1e-6 * (double)stats.n_dead_nodes, (double)usages[1].n_bytes / 1048576,
                 (double)usages[0].n_bytes / 1048576);
    begin_s = bench_now_s();
    vxd_svdag_collect_end(bench->device.queue, collection);
    collection = NULL;
    (void)printf("| end | | 1 | %.2f | | |\n", 1e3 * (bench_now_s() - begin_s));
out:
    vxd_svdag_collect_end(bench->device.queue, collection);
    vxd_svdag_destroy(bench->device.queue, to);
    return status;
}

/* Images ---------------------------------------------------------------------------------- */

static enum vxd_status take_piece(void *args, uint64_t first, const uint32_t *words,
                                  size_t n_words, struct vxd_err *err)
{
    struct bench *bench = args;

    if (first + n_words > bench->capacity) {
        return vxd_fail(err, VXD_INTERNAL, NULL,
                        "the image has more words than the store");
    }
    memcpy(bench->words + first, words, n_words * sizeof *words);
    bench->n_words = first + n_words;
    return VXD_OK;
}

static void print_bytes(const char *name, const struct bench *bench, int n_steps,
                        double s, double most_s)
{
    double n_bytes = (double)bench->n_words * 4;

    (void)printf("| %s | %.1f MB | %d | %.1f | %.2f | %.0f MB/s |\n", name,
                 1e-6 * n_bytes, n_steps, 1e3 * s, 1e3 * most_s, 1e-6 * n_bytes / s);
}

static enum vxd_status save(struct bench *bench, struct vxd_svdag_image_info *info,
                            uint32_t *root, struct vxd_err *err)
{
    struct vxd_svdag_saving *saving = NULL;
    struct vxd_svdag_usage usage;
    double begin_s;
    double most_s = 0;
    int n_steps = 0;
    bool is_done = false;
    enum vxd_status status;

    vxd_svdag_get_usage(bench->svdag, &usage);
    bench->capacity = usage.n_bytes / sizeof *bench->words;
    bench->words = calloc(bench->capacity, sizeof *bench->words);
    if (bench->words == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory");
    }
    memset(bench->words, 1, usage.n_bytes);
    begin_s = bench_now_s();
    VXD_TRY(vxd_svdag_image_begin(bench->device.queue, bench->svdag, &bench->root, 1,
                                  &saving, err));
    while (!is_done) {
        double step_s = bench_now_s();

        VXD_TRY(vxd_svdag_image_step(bench->device.queue, saving,
                                     bench->options.slice_us * 1000, take_piece, bench,
                                     &is_done, err));
        step_s = bench_now_s() - step_s;
        most_s = step_s > most_s ? step_s : most_s;
        n_steps++;
    }
    vxd_svdag_image_result(saving, info, root);
    print_bytes("save", bench, n_steps, bench_now_s() - begin_s, most_s);
out:
    vxd_svdag_image_end(bench->device.queue, saving);
    return status;
}

static enum vxd_status image(struct bench *bench, struct vxd_err *err)
{
    struct vxd_svdag_spec spec = {.format = {DEPTH, bench->options.bits, false}};
    struct vxd_svdag_image_info info;
    struct vxd_svdag *to = NULL;
    uint32_t root;
    uint32_t loaded;
    double begin_s;
    enum vxd_status status;

    VXD_TRY(save(bench, &info, &root, err));
    begin_s = bench_now_s();
    VXD_TRY(
        vxd_svdag_image_check(bench->device.context, &info, bench->words, &root, 1, err));
    print_bytes("check", bench, 1, bench_now_s() - begin_s, 0);
    for (int i = 0; i < bench->options.n_repeat; i++) {
        vxd_svdag_destroy(bench->device.queue, to);
        to = NULL;
        VXD_TRY(vxd_svdag_create(bench->device.queue, &spec, &to, err));
        loaded = root;
        begin_s = bench_now_s();
        VXD_TRY(vxd_svdag_image_load(bench->device.queue, to, &info, bench->words,
                                     &loaded, 1, err));
        print_bytes("check and load", bench, 1, bench_now_s() - begin_s, 0);
    }
    VXD_TRY(compare(bench, to, loaded, err));
out:
    vxd_svdag_destroy(bench->device.queue, to);
    return status;
}

/* ----------------------------------------------------------------------------------------- */

static enum vxd_status run(struct bench *bench, struct vxd_err *err)
{
    const struct options *options = &bench->options;
    enum vxd_status status;

    VXD_TRY(
        bench_device_create(options->backend, options->n_threads, &bench->device, err));
    VXD_TRY(fill(bench, err));
    (void)printf("| what | nodes | steps | ms | longest ms | M nodes/s |\n"
                 "|---|---|---|---|---|---|\n");
    for (int i = 0; i < options->n_repeat; i++) {
        VXD_TRY(collect(bench, err));
    }
    VXD_TRY(image(bench, err));
out:
    if (bench->device.queue != NULL) {
        vxd_svdag_destroy(bench->device.queue, bench->svdag);
    }
    bench_device_destroy(&bench->device);
    free(bench->words);
    return status;
}

static bool parse(int argc, char **argv, struct options *out)
{
    *out = (struct options){
        .backend = VXD_BACKEND_CPU, .n_nodes = 1000000, .slice_us = 2000, .n_repeat = 3};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";

        if (strcmp(argv[i], "--verify") == 0) {
            out->verifies = true;
            continue;
        }
        if (strcmp(argv[i], "--backend") == 0) {
            out->backend =
                strcmp(value, "cuda") == 0 ? VXD_BACKEND_CUDA : VXD_BACKEND_CPU;
        } else if (strcmp(argv[i], "--threads") == 0) {
            out->n_threads = (int)strtol(value, NULL, 10);
        } else if (strcmp(argv[i], "--nodes") == 0) {
            out->n_nodes = strtoull(value, NULL, 10);
        } else if (strcmp(argv[i], "--bits") == 0) {
            out->bits = (int)strtol(value, NULL, 10);
        } else if (strcmp(argv[i], "--slice-us") == 0) {
            out->slice_us = strtoull(value, NULL, 10);
        } else if (strcmp(argv[i], "--repeat") == 0) {
            out->n_repeat = (int)strtol(value, NULL, 10);
        } else {
            return false;
        }
        i++;
    }
    return out->n_repeat > 0;
}

int main(int argc, char **argv)
{
    static struct bench bench;
    struct vxd_err err = {0};

    if (!parse(argc, argv, &bench.options)) {
        (void)fprintf(stderr, "usage: see the head of bench_svdag_collect.c\n");
        return EXIT_FAILURE;
    }
    if (run(&bench, &err) != VXD_OK) {
        (void)fprintf(stderr, "bench_gpu_svdag_collect: %s\n", err.message);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
