// SPDX-License-Identifier: Apache-2.0
/* Times edits of scenes: the paper's large ball into an empty scene; the twelve balls of
 * its replay, one after the other; small brush strokes on the resulting scene (with cold
 * and with warm caches); copies of a box that contains a thin shell. Also prints the
 * memory per node. With --live, strokes and the replay also run in a scene of that many
 * nodes, and the replay into an empty scene of a store that holds such a scene. Only
 * edits that did not run out of capacity are timed. On a GPU the shares of their stages
 * are printed too. Warm times include the time in which the host queues the edit;
 * emptying the caches hides it.
 *
 * Prints Markdown. The scene is 2^17 voxels a side. Replays are at half scale: positions
 * and radii are doubled, and balls stand on voxel centres.
 * usage: bench_gpu_svdag [--backend cpu|cuda] [--threads N] [--repeat N] [--radius VOXELS]
 *                      [--bits 0|4|8|16] [--replay FILE.csv] [--live MILLION_NODES] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/svdag/edit/edit.h"
#include "tests/bench/support/bench_device.h"

#define DEPTH 17
#define MAX_REPEAT 1000
#define MAX_BALLS 256
#define BRUSH_RADIUS 32
#define N_STROKES 200
#define COPY_SIDE 380
#define N_COPIES 20
#define MAX_LIVE_BALLS 4096

struct options {
    enum vxd_backend backend;
    int n_threads;
    int n_repeat;
    int radius;
    int bits; /* bits of a material, in the replay */
    int live; /* millions of nodes of the large scene; 0: none */
    const char *replay;
};

struct ball {
    int64_t centre[3]; /* voxels */
    int64_t r;
    bool is_added;
};

struct bench {
    struct options options;
    struct bench_device device;
    struct vxd_buffer
        memory; /* of the result; page-locked, so that copies to it are asynchronous */
    struct vxd_svdag_needs needs; /* the largest needs of all edits */
    bool is_warm;                 /* caches are not emptied before an edit */
    double cycles
        [VXD_SVDAG_N_STAGES]; /* times of the stages, summed over the edits of this line of output */
    struct ball balls[MAX_BALLS];
    int n_balls;
};

/* The first ball of epiccitadel_large_edits.csv; --replay reads the whole file. */
static const int64_t large_centre[3] = {27390, 67726, 43404};

static struct vxd_svdag_op op_of(const struct ball *ball, uint32_t value)
{
    struct vxd_svdag_op op = {.action = ball->is_added ? VXD_SVDAG_FILL : VXD_SVDAG_ERASE,
                              .value = value};

    op.shape.kind = VXD_SVDAG_BALL;
    op.shape.r = ball->r * VXD_SVDAG_UNIT;
    for (int axis = 0; axis < 3; axis++) {
        op.shape.a[axis] = ball->centre[axis] * VXD_SVDAG_UNIT + VXD_SVDAG_UNIT / 2;
    }
    return op;
}

static void note_needs(struct vxd_svdag_needs *most, const struct vxd_svdag_needs *needs)
{
    most->n_entries =
        most->n_entries > needs->n_entries ? most->n_entries : needs->n_entries;
    most->n_pairs = most->n_pairs > needs->n_pairs ? most->n_pairs : needs->n_pairs;
    most->n_items = most->n_items > needs->n_items ? most->n_items : needs->n_items;
    most->n_words = most->n_words > needs->n_words ? most->n_words : needs->n_words;
}

/* Runs an edit, waits for it, and repeats it until capacity suffices. *seconds is the
 * time of the last attempt, *n_tries the number of attempts. */
static enum vxd_status time_edit(struct bench *bench, struct vxd_svdag *svdag,
                                 uint32_t root, const struct vxd_svdag_op *op,
                                 int *n_tries, struct vxd_svdag_edit_result *result,
                                 double *seconds, struct vxd_err *err)
{
    struct vxd_svdag_edit_result *own = bench->memory.ptr;
    struct vxd_queue *queue = bench->device.queue;
    enum vxd_status status;

    for (*n_tries = 1;; (*n_tries)++) {
        if (!bench->is_warm) {
            VXD_TRY(bench_device_flush(&bench->device, err));
        }
        (void)bench_device_start(&bench->device);
        VXD_TRY(vxd_svdag_edit(queue, svdag, root, op, 1, own, err));
        (void)bench_device_stop(&bench->device);
        VXD_TRY(vxd_queue_wait(queue, err));
        *seconds = bench_device_seconds(&bench->device);
        if (!own->needs_capacity) {
            break;
        }
        note_needs(&bench->needs, &own->needs);
        VXD_TRY(vxd_svdag_reserve(queue, svdag, own, err));
    }
    *result = *own;
    for (int i = 0; i < VXD_SVDAG_N_STAGES; i++) {
        bench->cycles[i] += (double)own->stage_cycles[i];
    }
out:
    return status;
}

/* Ends a line of output with the shares of the stages (Figure 9 of the paper) of the
 * edits since the last one. */
static void print_stages(struct bench *bench)
{
    double sum = 0;

    for (int i = 0; i < VXD_SVDAG_N_STAGES; i++) {
        sum += bench->cycles[i];
    }
    for (int i = 0; i < VXD_SVDAG_N_STAGES; i++) {
        if (sum > 0) {
            (void)printf(" %.0f", 100 * bench->cycles[i] / sum);
        }
        bench->cycles[i] = 0;
    }
    (void)printf(" |\n");
}

static enum vxd_status make_svdag(struct bench *bench, int bits, struct vxd_svdag **out,
                                  struct vxd_err *err)
{
    struct vxd_svdag_spec spec = {.format = {DEPTH, bits, false}};

    return vxd_svdag_create(bench->device.queue, &spec, out, err);
}

/* Prints the memory of a store that holds nodes. */
static void print_memory(const struct vxd_svdag *svdag, const char *name)
{
    struct vxd_svdag_usage usage;
    double n;

    vxd_svdag_get_usage(svdag, &usage);
    n = (double)(usage.n_leaves + usage.n_inner + usage.n_blocks);
    (void)printf("| %s | %llu | %llu | %.1f | %.1f | %.1f | %.1f | %.2f |\n", name,
                 (unsigned long long)usage.n_leaves, (unsigned long long)usage.n_inner,
                 (double)usage.node_bytes / 1048576, (double)usage.n_bytes / 1048576,
                 (double)(usage.n_bytes - usage.used_bytes) / 1048576,
                 (double)usage.n_bytes / n,
                 (double)usage.n_bytes / (double)usage.node_bytes);
}

/* A new store with the capacity that earlier ones came to need. */
static enum vxd_status make_roomy_svdag(struct bench *bench, int bits,
                                        struct vxd_svdag **out, struct vxd_err *err)
{
    struct vxd_svdag_edit_result result = {.needs_capacity = true, .needs = bench->needs};
    enum vxd_status status = make_svdag(bench, bits, out, err);

    return status != VXD_OK ? status
                            : vxd_svdag_reserve(bench->device.queue, *out, &result, err);
}

/* Adds the ball to an empty scene, each time in a new store; *out is the last store. */
static enum vxd_status run_ball(struct bench *bench, struct vxd_svdag **out,
                                struct vxd_err *err)
{
    struct ball ball = {.r = bench->options.radius, .is_added = true};
    double times[MAX_REPEAT];
    struct vxd_svdag_edit_result result = {0};
    struct vxd_svdag_op op;
    int n_times = 0;
    enum vxd_status status = VXD_OK;

    memcpy(ball.centre, large_centre, sizeof ball.centre);
    op = op_of(&ball, 0);
    /* A store that needed more than one attempt also holds items of the failed ones. */
    for (int i = 0; n_times < bench->options.n_repeat && i < 2 * MAX_REPEAT; i++) {
        int n_tries;

        vxd_svdag_destroy(bench->device.queue, *out);
        *out = NULL;
        VXD_TRY(make_roomy_svdag(bench, 0, out, err));
        VXD_TRY(time_edit(bench, *out, VXD_SVDAG_EMPTY, &op, &n_tries, &result,
                          &times[n_times], err));
        n_times += n_tries == 1 ? 1 : 0;
    }
    (void)printf("| ball r = %d, empty scene, 0 bits | %llu | %.3f |",
                 bench->options.radius, (unsigned long long)result.n_added,
                 1e3 * bench_median(times, n_times));
    print_stages(bench);
out:
    return status;
}

/* Applies the balls of the replay one after the other, with alternating materials; *root
 * is the last version. */
static enum vxd_status run_replay(struct bench *bench, struct vxd_svdag *svdag,
                                  const char *name, uint32_t *root, struct vxd_err *err)
{
    uint32_t n_values = bench->options.bits == 0 ? 1 : 15;
    double times[MAX_BALLS];
    struct vxd_svdag_edit_result result = {0};
    enum vxd_status status = VXD_OK;

    for (int i = 0; i < bench->n_balls; i++) {
        const struct ball *ball = &bench->balls[i];
        struct vxd_svdag_op op = op_of(ball, (uint32_t)i % n_values);
        int n_tries;

        VXD_TRY(time_edit(bench, svdag, *root, &op, &n_tries, &result, &times[i], err));
        *root = result.root;
        (void)printf("| replay %s, %d, r = %lld, %d bits | %llu | %.3f |", name, i + 1,
                     (long long)ball->r, bench->options.bits,
                     (unsigned long long)(result.n_added + result.n_removed),
                     1e3 * times[i]);
        print_stages(bench);
    }
    (void)printf("| replay %s, median of %d | | %.3f | |\n", name, bench->n_balls,
                 1e3 * bench_median(times, bench->n_balls));
out:
    return status;
}

/* Brush strokes along the last ball's surface, alternately adding and removing. */
static enum vxd_status run_brush(struct bench *bench, struct vxd_svdag *svdag,
                                 const char *name, uint32_t root, struct vxd_err *err)
{
    const struct ball *last = &bench->balls[bench->n_balls - 1];
    double times[N_STROKES];
    struct vxd_svdag_edit_result result = {0};
    enum vxd_status status = VXD_OK;

    for (int i = 0; i < N_STROKES; i++) {
        struct ball stroke = {.r = BRUSH_RADIUS, .is_added = i % 2 == 0};
        struct vxd_svdag_op op;
        int n_tries;

        memcpy(stroke.centre, last->centre, sizeof stroke.centre);
        stroke.centre[i % 3] += i % 6 < 3 ? last->r : -last->r;
        stroke.centre[(i + 1) % 3] += 2 * i;
        op = op_of(&stroke, 1);
        op.value = bench->options.bits == 0 ? 0 : 1;
        VXD_TRY(time_edit(bench, svdag, root, &op, &n_tries, &result, &times[i], err));
        root = result.root;
    }
    (void)printf("| brush r = %d %s, %s, median of %d | | %.3f |", BRUSH_RADIUS, name,
                 bench->is_warm ? "warm" : "caches emptied", N_STROKES,
                 1e3 * bench_median(times, N_STROKES));
    print_stages(bench);
out:
    return status;
}

/* Copies boxes of COPY_SIDE voxels a side, which contain a shell of two voxels, from
 * place to place. */
static enum vxd_status run_copies(struct bench *bench, struct vxd_svdag *svdag,
                                  struct vxd_err *err)
{
    const int64_t first = 4001; /* corners of the boxes; none is the corner of a node */
    double times[N_COPIES];
    struct vxd_svdag_edit_result result = {.root = VXD_SVDAG_EMPTY};
    enum vxd_status status = VXD_OK;

    for (int i = 0; i < 2; i++) {
        struct ball ball = {.r = COPY_SIDE / 2 - 2 * i, .is_added = i == 0};
        struct vxd_svdag_op op;
        double seconds;
        int n_tries;

        for (int axis = 0; axis < 3; axis++) {
            ball.centre[axis] = first + COPY_SIDE / 2;
        }
        op = op_of(&ball, 0);
        VXD_TRY(
            time_edit(bench, svdag, result.root, &op, &n_tries, &result, &seconds, err));
    }
    for (int i = 0; i < N_COPIES; i++) {
        struct vxd_svdag_op op = {.action = VXD_SVDAG_COPY,
                                  .shape = {.kind = VXD_SVDAG_BOX},
                                  .from_voxel = {first, first, first},
                                  .matrix = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
        int n_tries;

        for (int axis = 0; axis < 3; axis++) {
            op.shape.low[axis] = (first + 401 * (i + 1) + axis * 37 * i) * VXD_SVDAG_UNIT;
            op.shape.high[axis] = op.shape.low[axis] + COPY_SIDE * VXD_SVDAG_UNIT;
        }
        VXD_TRY(
            time_edit(bench, svdag, result.root, &op, &n_tries, &result, &times[i], err));
    }
    (void)printf("| copy of %d^3, thin shell, median of %d | %llu | %.3f |", COPY_SIDE,
                 N_COPIES, (unsigned long long)result.n_added,
                 1e3 * bench_median(times, N_COPIES));
    print_stages(bench);
out:
    return status;
}

/* Brush strokes with cold, then with warm caches. */
static enum vxd_status run_brushes(struct bench *bench, struct vxd_svdag *svdag,
                                   const char *name, uint32_t root, struct vxd_err *err)
{
    enum vxd_status status = run_brush(bench, svdag, name, root, err);

    bench->is_warm = true;
    if (status == VXD_OK) {
        status = run_brush(bench, svdag, name, root, err);
    }
    bench->is_warm = false;
    return status;
}

static uint64_t count_nodes(const struct vxd_svdag *svdag)
{
    struct vxd_svdag_usage usage;

    vxd_svdag_get_usage(svdag, &usage);
    return usage.n_leaves + usage.n_inner + usage.n_blocks;
}

/* Adds scattered balls, away from the replay's, until the scene has that many nodes. */
static enum vxd_status fill_scene(struct bench *bench, struct vxd_svdag *svdag,
                                  uint32_t *root, struct vxd_err *err)
{
    const uint64_t n_nodes = (uint64_t)bench->options.live * 1000000;
    struct vxd_svdag_edit_result result = {.root = *root};
    enum vxd_status status = VXD_OK;

    for (int i = 0; i < MAX_LIVE_BALLS && count_nodes(svdag) < n_nodes; i++) {
        struct ball ball = {.r = 1500 + 7 * i % 500, .is_added = true};
        struct vxd_svdag_op op;
        double seconds;
        int n_tries;

        ball.centre[0] = 3001 + (int64_t)i * 4099 % 120000;
        ball.centre[1] = 3001 + (int64_t)i * 7919 % 120000;
        ball.centre[2] = 3001 + (int64_t)i * 5003 % 120000;
        op = op_of(&ball, bench->options.bits == 0 ? 0 : (uint32_t)i % 15);
        VXD_TRY(
            time_edit(bench, svdag, result.root, &op, &n_tries, &result, &seconds, err));
    }
    *root = result.root;
    memset(bench->cycles, 0, sizeof bench->cycles);
out:
    return status;
}

/* Runs the replay in a large scene, and in an empty scene of a store that holds a large
 * one. */
static enum vxd_status run_live(struct bench *bench, struct vxd_err *err)
{
    struct vxd_svdag *svdag = NULL;
    uint32_t live = VXD_SVDAG_EMPTY;
    uint32_t root = VXD_SVDAG_EMPTY;
    enum vxd_status status;

    VXD_TRY(make_svdag(bench, bench->options.bits, &svdag, err));
    VXD_TRY(fill_scene(bench, svdag, &live, err));
    (void)printf("| nodes of the live scene's store | %llu | | |\n",
                 (unsigned long long)count_nodes(svdag));
    VXD_TRY(run_replay(bench, svdag, "in a full store", &root, err));
    VXD_TRY(run_brushes(bench, svdag, "in the live scene", live, err));
    VXD_TRY(run_replay(bench, svdag, "in the live scene", &live, err));
out:
    vxd_svdag_destroy(bench->device.queue, svdag);
    return status;
}

static enum vxd_status run(struct bench *bench, struct vxd_err *err)
{
    struct vxd_queue *queue = bench->device.queue;
    struct vxd_svdag *alone = NULL;
    struct vxd_svdag *svdag = NULL;
    struct vxd_svdag *copies = NULL;
    struct vxd_context_info info;
    uint32_t root = VXD_SVDAG_EMPTY;
    enum vxd_status status;

    vxd_context_get_info(bench->device.context, &info);
    (void)printf("%s; scenes of 2^%d voxels a side\n\n", info.name, DEPTH);
    (void)printf(
        "| edit | voxels changed | ms | %% opened by a block, by the grid, rows, "
        "closed by the grid, by a block |\n|---|---|---|---|\n");
    VXD_TRY(vxd_host_alloc(bench->device.context, sizeof(struct vxd_svdag_edit_result),
                           &bench->memory, err));
    VXD_TRY(run_ball(bench, &alone, err));
    VXD_TRY(make_svdag(bench, 0, &copies, err));
    VXD_TRY(run_copies(bench, copies, err));
    VXD_TRY(make_svdag(bench, bench->options.bits, &svdag, err));
    if (bench->n_balls > 0) {
        VXD_TRY(run_replay(bench, svdag, "in a new store", &root, err));
        VXD_TRY(run_brushes(bench, svdag, "on its last ball", root, err));
        if (bench->options.live > 0) {
            VXD_TRY(run_live(bench, err));
        }
    }
    (void)printf("\n| store | leaves | inner nodes | raw MiB | taken MiB | of these not "
                 "handed out | "
                 "bytes a node | taken / raw |\n|---|---|---|---|---|---|---|---|\n");
    print_memory(alone, "ball, 0 bits");
    if (bench->n_balls > 0) {
        print_memory(svdag, "replay and brush");
    }
out:
    vxd_svdag_destroy(queue, alone);
    vxd_svdag_destroy(queue, svdag);
    vxd_svdag_destroy(queue, copies);
    vxd_host_free(bench->device.context, &bench->memory);
    return status;
}

static void usage(void)
{
    (void)fprintf(stderr, "usage: bench_gpu_svdag [--backend cpu|cuda] [--threads N] "
                          "[--repeat N] [--radius VOXELS] [--bits 0|4|8|16] "
                          "[--replay FILE.csv] [--live MILLION_NODES]\n");
    exit(EXIT_FAILURE);
}

static int number_of(const char *text, long least, long most)
{
    return (int)bench_number(text, least, most, usage);
}

static void parse(int argc, char **argv, struct options *out)
{
    *out = (struct options){VXD_BACKEND_CPU, 0, 5, 1820, 4, 0, NULL};
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *name = argv[i];
        const char *value = argv[i + 1];

        if (strcmp(name, "--backend") == 0) {
            out->backend =
                strcmp(value, "cuda") == 0 ? VXD_BACKEND_CUDA : VXD_BACKEND_CPU;
        } else if (strcmp(name, "--threads") == 0) {
            out->n_threads = number_of(value, 0, 256);
        } else if (strcmp(name, "--repeat") == 0) {
            out->n_repeat = number_of(value, 1, MAX_REPEAT);
        } else if (strcmp(name, "--radius") == 0) {
            out->radius = number_of(value, 1, 20000);
        } else if (strcmp(name, "--bits") == 0) {
            out->bits = number_of(value, 0, 16);
        } else if (strcmp(name, "--live") == 0) {
            out->live = number_of(value, 0, 400);
        } else if (strcmp(name, "--replay") == 0) {
            out->replay = value;
        } else {
            usage();
        }
    }
    if (argc % 2 == 0) {
        usage();
    }
}

/* Reads lines EditSphere,x,y,z,r,TRUE|FALSE; other actions do not change the scene. */
static bool read_replay(struct bench *bench)
{
    FILE *file = fopen(bench->options.replay, "r");
    char line[512];

    if (file == NULL) {
        (void)fprintf(stderr, "%s cannot be read\n", bench->options.replay);
        return false;
    }
    while (fgets(line, sizeof line, file) != NULL && bench->n_balls < MAX_BALLS) {
        static const char name[] = "EditSphere";
        char *at = line + sizeof name - 1;
        double numbers[4];

        if (strncmp(line, name, sizeof name - 1) != 0) {
            continue;
        }
        for (int i = 0; i < 4; i++) {
            numbers[i] = *at == ',' ? 2 * strtod(at + 1, &at) : 0;
        }
        bench->balls[bench->n_balls++] =
            (struct ball){{(int64_t)numbers[0], (int64_t)numbers[1], (int64_t)numbers[2]},
                          (int64_t)numbers[3],
                          strncmp(at, ",TRUE", 5) == 0};
    }
    (void)fclose(file);
    return true;
}

int main(int argc, char **argv)
{
    static struct bench bench;
    struct vxd_err err = {0};
    enum vxd_status status;

    parse(argc, argv, &bench.options);
    if (bench.options.replay != NULL && !read_replay(&bench)) {
        return EXIT_FAILURE;
    }
    status = bench_device_create(bench.options.backend, bench.options.n_threads,
                                 &bench.device, &err);
    if (status == VXD_OK) {
        status = run(&bench, &err);
        bench_device_destroy(&bench.device);
    }
    if (status != VXD_OK) {
        (void)fprintf(stderr, "bench_gpu_svdag: %s\n", err.message);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
