// SPDX-License-Identifier: Apache-2.0
/* Compares the stores of scenes by the paper's Table 2 (find and insert in a table of
 * items of one length), Figure 8 (the same at other loads) and Table 1 (memory of a
 * scene).
 *
 * Prints Markdown. Numbers in brackets are those of the paper's own code on the same
 * H200, with 2^25 items and batches of 2^23. Memory is that of whole slabs and their list
 * heads, or of words and index. It is counted on the CPU, whose stores have the same
 * layout as a GPU's.
 * usage: bench_gpu_svdag_tables [--backend cpu|cuda] [--threads N] [--repeat N] [--items N]
 *                             [--batch N] [--words N] [--radius VOXELS]
 *                             [--part all|table|load|memory] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/svdag/edit/edit.h"
#include "gpu/svdag/table/table.h"
#include "tests/bench/support/bench_device.h"

#define MAX_REPEAT 100
#define N_RATES 3
#define PIECE ((size_t)1 << 20) /* items generated per chunk */
#define MIB 1048576.0
#define PEER_ITEMS ((size_t)1 << 25)
#define PEER_BATCH ((size_t)1 << 23)

struct options {
    enum vxd_backend backend;
    int n_threads;
    int n_repeat;
    size_t n_items;
    size_t n_batch;
    int n_words; /* 0: all */
    int radius;
    bool has_table, has_load, has_memory;
};

struct bench {
    struct options options;
    struct bench_device device;
    /* Items of the length under test. */
    struct vxd_buffer items; /* n_items + n_batch rows */
    struct vxd_buffer queries[N_RATES];
    struct vxd_buffer refs;
};

/* The measurements of one line of output. */
struct cell {
    double insert_s;
    double find_s[N_RATES];
    struct vxd_svdag_table_usage usage;
};

static const int rates[N_RATES] = {25, 50, 75}; /* percentages of queries that hit */

static const char *const store_names[VXD_SVDAG_N_STORES] = {"arena", "atomic64", "ticket",
                                                            "accel32", "accel8"};

/* Times of the paper's own code, in milliseconds. */
static const struct {
    int n_words;
    enum vxd_svdag_store store;
    double insert;
    double find[N_RATES];
} peers[] = {
    {2, VXD_SVDAG_ATOMIC64, 2.23, {1.79, 1.65, 1.51}},
    {2, VXD_SVDAG_TICKET, 2.37, {2.87, 2.65, 2.43}},
    {2, VXD_SVDAG_ACCEL32, 2.21, {1.74, 1.75, 1.76}},
    {2, VXD_SVDAG_ACCEL8, 2.24, {2.06, 2.01, 1.96}},
    {6, VXD_SVDAG_ATOMIC64, 2.51, {2.04, 2.08, 2.12}},
    {6, VXD_SVDAG_TICKET, 2.50, {4.08, 3.82, 3.56}},
    {6, VXD_SVDAG_ACCEL32, 2.30, {1.96, 2.12, 2.28}},
    {6, VXD_SVDAG_ACCEL8, 2.34, {2.28, 2.38, 2.48}},
    {10, VXD_SVDAG_ATOMIC64, 2.51, {2.25, 2.39, 2.55}},
    {10, VXD_SVDAG_TICKET, 2.65, {5.92, 5.51, 5.09}},
    {10, VXD_SVDAG_ACCEL32, 2.44, {2.21, 2.50, 2.81}},
    {10, VXD_SVDAG_ACCEL8, 2.47, {2.51, 2.75, 2.99}},
    {6, VXD_SVDAG_ARENA, 1.0, {0.9, 0.9, 0.9}}, /* our goal */
};

/* --- items ------------------------------------------------------------------------------ */

static uint64_t mix(uint64_t v)
{
    v ^= v >> 30;
    v *= 0xbf58476d1ce4e5b9ULL;
    v ^= v >> 27;
    v *= 0x94d049bb133111ebULL;
    return v ^ v >> 31;
}

/* Item i, below 2^32: distinct, as random as its length allows. */
static void make_item(uint64_t i, int n_words, uint32_t *words)
{
    uint32_t distinct = (uint32_t)i * 0x9e3779b1u;

    for (int k = 0; k < n_words; k++) {
        words[k] = (uint32_t)(mix(i * 16 + (uint64_t)k + 1) >> 32);
    }
    if (n_words == VXD_SVDAG_TABLE_MAX_WORDS) {
        uint64_t mask = UINT64_MAX;
        uint64_t random = mix(~i);

        for (int k = 0; k < 7; k++) {
            mask &= ~((uint64_t)1 << (random >> (6 * k) & 63));
        }
        words[0] = (uint32_t)mask;
        words[1] = (uint32_t)(mask >> 32);
        words[2] = distinct;
        return;
    }
    /* Of the low eight bits n_words - 1 are set, rotated at random: a child mask. */
    words[0] = (words[0] & 0xffffff00u) |
               (((1u << (n_words - 1)) - 1) * 0x101u >> (words[0] & 7u) & 0xffu);
    words[1] = distinct;
}

/* The item that query q looks up at a given hit rate; *hits says whether it is in the
 * table. */
static uint64_t query_of(const struct options *options, int rate, uint64_t q, bool *hits)
{
    uint64_t random = mix(q * N_RATES + (uint64_t)rate);

    *hits = (int)(random % 100) < rates[rate];
    return *hits ? (random >> 8) % options->n_items
                 : options->n_items + options->n_batch + q;
}

/* Fills a device array with items: the queries of a hit rate, or for rate -1 the items by
 * number. */
static enum vxd_status make_rows(struct bench *bench, int n_words, int rate, size_t n,
                                 struct vxd_buffer *rows, struct vxd_err *err)
{
    struct vxd_queue *queue = bench->device.queue;
    size_t row_bytes = (size_t)n_words * sizeof(uint32_t);
    size_t piece = n < PIECE ? n : PIECE;
    struct vxd_buffer host = {0};
    enum vxd_status status;

    VXD_TRY(vxd_device_alloc(queue, n * row_bytes, rows, err));
    VXD_TRY(vxd_host_alloc(bench->device.context, piece * row_bytes, &host, err));
    for (size_t first = 0; first < n; first += piece) {
        size_t n_here = n - first < piece ? n - first : piece;
        uint32_t *words = host.ptr;

        for (size_t i = 0; i < n_here; i++) {
            bool hits;
            uint64_t item =
                rate < 0 ? first + i : query_of(&bench->options, rate, first + i, &hits);

            make_item(item, n_words, words + i * (size_t)n_words);
        }
        VXD_TRY(vxd_queue_copy(queue, (char *)rows->ptr + first * row_bytes, words,
                               n_here * row_bytes, err));
        VXD_TRY(vxd_queue_wait(queue, err));
    }
out:
    vxd_host_free(bench->device.context, &host);
    return status;
}

static void free_items(struct bench *bench)
{
    vxd_device_free(bench->device.queue, &bench->items);
    vxd_device_free(bench->device.queue, &bench->refs);
    for (int rate = 0; rate < N_RATES; rate++) {
        vxd_device_free(bench->device.queue, &bench->queries[rate]);
    }
}

static enum vxd_status make_items(struct bench *bench, int n_words, struct vxd_err *err)
{
    const struct options *options = &bench->options;
    enum vxd_status status;

    VXD_TRY(make_rows(bench, n_words, -1, options->n_items + options->n_batch,
                      &bench->items, err));
    for (int rate = 0; rate < N_RATES; rate++) {
        VXD_TRY(make_rows(bench, n_words, rate, options->n_batch, &bench->queries[rate],
                          err));
    }
    VXD_TRY(vxd_device_alloc(bench->device.queue, options->n_batch * sizeof(uint32_t),
                             &bench->refs, err));
out:
    return status;
}

/* --- one table -------------------------------------------------------------------------- */

/* Checks that queries of a hit rate found exactly the items that are in the table. */
static enum vxd_status check_refs(struct bench *bench, int rate, struct vxd_err *err)
{
    struct vxd_buffer host = {0};
    const void *refs;
    enum vxd_status status;

    VXD_TRY(vxd_download(bench->device.queue, bench->refs.ptr, bench->refs.n_bytes, &host,
                         &refs, err));
    VXD_TRY(vxd_queue_wait(bench->device.queue, err));
    for (size_t q = 0; q < bench->options.n_batch; q++) {
        bool hits;

        (void)query_of(&bench->options, rate, q, &hits);
        if (hits != (((const uint32_t *)refs)[q] != VXD_SVDAG_EMPTY)) {
            status = vxd_fail(err, VXD_INTERNAL, NULL, "query %zu of %d %%: wrongly %s",
                              q, rates[rate], hits ? "missed" : "found");
            goto out;
        }
    }
out:
    vxd_host_free(bench->device.context, &host);
    return status;
}

static enum vxd_status time_finds(struct bench *bench,
                                  const struct vxd_svdag_table *table, struct cell *out,
                                  struct vxd_err *err)
{
    struct bench_device *device = &bench->device;
    double times[MAX_REPEAT];
    enum vxd_status status = VXD_OK;

    for (int rate = 0; rate < N_RATES; rate++) {
        for (int i = 0; i < bench->options.n_repeat; i++) {
            VXD_TRY(bench_device_flush(device, err));
            (void)bench_device_start(device);
            VXD_TRY(vxd_svdag_table_find(device->queue, table, bench->queries[rate].ptr,
                                         bench->options.n_batch, bench->refs.ptr, err));
            (void)bench_device_stop(device);
            VXD_TRY(vxd_queue_wait(device->queue, err));
            times[i] = bench_device_seconds(device);
        }
        VXD_TRY(check_refs(bench, rate, err));
        out->find_s[rate] = bench_median(times, bench->options.n_repeat);
    }
out:
    return status;
}

/* Every run of the insertion uses a new table; the first is also searched. */
static enum vxd_status run_cell(struct bench *bench, enum vxd_svdag_store store,
                                int n_words, uint32_t load, struct cell *out,
                                struct vxd_err *err)
{
    const struct options *options = &bench->options;
    struct bench_device *device = &bench->device;
    struct vxd_svdag_table_spec spec = {store, n_words,
                                        options->n_items + options->n_batch, load};
    const uint32_t *items = bench->items.ptr;
    struct vxd_svdag_table *table = NULL;
    double times[MAX_REPEAT];
    enum vxd_status status = VXD_OK;

    for (int i = 0; i < options->n_repeat; i++) {
        VXD_TRY(vxd_svdag_table_create(device->queue, &spec, &table, err));
        VXD_TRY(vxd_svdag_table_insert(device->queue, table, items, options->n_items,
                                       NULL, err));
        VXD_TRY(vxd_queue_wait(device->queue, err));
        if (i == 0) {
            VXD_TRY(time_finds(bench, table, out, err));
        }
        VXD_TRY(bench_device_flush(device, err));
        (void)bench_device_start(device);
        VXD_TRY(vxd_svdag_table_insert(device->queue, table,
                                       items + options->n_items * (size_t)n_words,
                                       options->n_batch, bench->refs.ptr, err));
        (void)bench_device_stop(device);
        VXD_TRY(vxd_queue_wait(device->queue, err));
        times[i] = bench_device_seconds(device);
        VXD_TRY(vxd_svdag_table_get_usage(device->queue, table, &out->usage, err));
        vxd_svdag_table_destroy(device->queue, table);
        table = NULL;
    }
    out->insert_s = bench_median(times, options->n_repeat);
out:
    vxd_svdag_table_destroy(device->queue, table);
    return status;
}

static void print_time(double seconds, double peer, bool has_peer, bool *is_goal_met)
{
    (void)printf(" %.2f", 1e3 * seconds);
    if (has_peer) {
        (void)printf(" (%.2f)", peer);
        *is_goal_met = *is_goal_met && 1e3 * seconds <= peer;
    }
    (void)printf(" |");
}

static void print_cell(const struct bench *bench, enum vxd_svdag_store store, int n_words,
                       uint32_t load, const struct cell *cell)
{
    size_t n_peers = sizeof peers / sizeof peers[0];
    size_t i = 0;
    bool has_peer;
    bool is_goal_met = true;

    while (i < n_peers && (peers[i].n_words != n_words || peers[i].store != store)) {
        i++;
    }
    has_peer = i < n_peers && load == VXD_SVDAG_LOAD && bench->device.clock != NULL &&
               bench->options.n_items == PEER_ITEMS &&
               bench->options.n_batch == PEER_BATCH;
    (void)printf("| %d | %s | %u |", n_words, store_names[store], load);
    print_time(cell->insert_s, has_peer ? peers[i].insert : 0, has_peer, &is_goal_met);
    for (int rate = 0; rate < N_RATES; rate++) {
        print_time(cell->find_s[rate], has_peer ? peers[i].find[rate] : 0, has_peer,
                   &is_goal_met);
    }
    (void)printf(" %.0f | %.2f | %s |\n", (double)cell->usage.used_bytes / MIB,
                 (double)cell->usage.used_bytes / (double)cell->usage.node_bytes,
                 !has_peer     ? ""
                 : is_goal_met ? "met"
                               : "missed");
    (void)fflush(stdout);
}

static void print_heading(const struct bench *bench, const char *what)
{
    struct vxd_context_info info;

    vxd_context_get_info(bench->device.context, &info);
    (void)printf("\n%s: %s; %zu items, then %zu found and %zu inserted; median of %d\n\n"
                 "| words | store | load | insert, ms | find 25 %%, ms | 50 %% | 75 %% | "
                 "used MiB | used / raw | goal |\n"
                 "|---:|---|---:|---:|---:|---:|---:|---:|---:|---|\n",
                 what, info.name, bench->options.n_items, bench->options.n_batch,
                 bench->options.n_batch, bench->options.n_repeat);
}

static enum vxd_status run_table(struct bench *bench, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    print_heading(bench, "Table 2");
    for (int n_words = VXD_SVDAG_TABLE_MIN_WORDS; n_words <= VXD_SVDAG_TABLE_MAX_WORDS;
         n_words++) {
        if (bench->options.n_words != 0 && bench->options.n_words != n_words) {
            continue;
        }
        VXD_TRY(make_items(bench, n_words, err));
        for (int store = 0; store < VXD_SVDAG_N_STORES; store++) {
            struct cell cell = {0};

            VXD_TRY(run_cell(bench, (enum vxd_svdag_store)store, n_words, VXD_SVDAG_LOAD,
                             &cell, err));
            print_cell(bench, (enum vxd_svdag_store)store, n_words, VXD_SVDAG_LOAD,
                       &cell);
        }
        free_items(bench);
    }
out:
    free_items(bench);
    return status;
}

static enum vxd_status run_loads(struct bench *bench, struct vxd_err *err)
{
    static const uint32_t loads[] = {16, 32, 64, 96, 128, 192, 256};
    int n_words = bench->options.n_words != 0 ? bench->options.n_words : 6;
    enum vxd_status status;

    print_heading(bench, "Figure 8");
    VXD_TRY(make_items(bench, n_words, err));
    for (int store = VXD_SVDAG_ATOMIC64; store < VXD_SVDAG_N_STORES; store++) {
        for (size_t i = 0; i < sizeof loads / sizeof loads[0]; i++) {
            struct cell cell = {0};

            VXD_TRY(run_cell(bench, (enum vxd_svdag_store)store, n_words, loads[i], &cell,
                             err));
            print_cell(bench, (enum vxd_svdag_store)store, n_words, loads[i], &cell);
        }
    }
out:
    free_items(bench);
    return status;
}

/* --- memory of a scene ------------------------------------------------------------------ */

#define N_BALLS 12

/* Overlapping noisy balls of several materials in a scene of 2^17 voxels a side. */
static void make_ops(int radius, int bits, struct vxd_svdag_op ops[N_BALLS])
{
    for (int i = 0; i < N_BALLS; i++) {
        struct vxd_svdag_op op = {.action = VXD_SVDAG_FILL,
                                  .value = bits == 0 ? 0 : (uint32_t)i};

        op.shape.kind = VXD_SVDAG_NOISE_BALL;
        op.shape.r = radius * (int64_t)VXD_SVDAG_UNIT;
        op.shape.seed = (uint32_t)i + 1;
        op.shape.amplitude = op.shape.r / 16;
        op.shape.cell_bits = 4;
        for (int axis = 0; axis < 3; axis++) {
            op.shape.a[axis] =
                (65536 + (int64_t)(mix((uint64_t)(3 * i + axis)) % 4) * radius / 2) *
                VXD_SVDAG_UNIT;
        }
        ops[i] = op;
    }
}

static enum vxd_status run_scene(struct bench_device *device, int bits,
                                 enum vxd_svdag_store store, int radius,
                                 struct vxd_svdag_usage *usage, struct vxd_err *err)
{
    /* The arena comes first, because its number of nodes, spread evenly, is the expected
     * number that the other stores are created for. */
    uint64_t n_nodes = usage->n_leaves + usage->n_inner;
    struct vxd_svdag_spec spec = {.format = {17, bits, false},
                                  .store = store,
                                  .table_items = n_nodes / (bits == 0 ? 9 : 16)};
    struct vxd_svdag_op ops[N_BALLS];
    struct vxd_svdag_edit_result result;
    struct vxd_svdag *svdag = NULL;
    enum vxd_status status;

    make_ops(radius, bits, ops);
    VXD_TRY(vxd_svdag_create(device->queue, &spec, &svdag, err));
    VXD_TRY(vxd_svdag_edit_wait(device->queue, svdag, VXD_SVDAG_EMPTY, ops, N_BALLS,
                                &result, err));
    vxd_svdag_get_usage(svdag, usage);
out:
    vxd_svdag_destroy(device->queue, svdag);
    return status;
}

static enum vxd_status run_memory(const struct options *options, struct vxd_err *err)
{
    static const int all_bits[2] = {0, 4};
    struct bench_device device;
    enum vxd_status status;

    VXD_TRY(bench_device_create(VXD_BACKEND_CPU, options->n_threads, &device, err));
    (void)printf("\nTable 1: %d rough balls of r = %d; load about %u\n\n"
                 "| material bits | store | nodes | raw MiB | used MiB | used / raw |\n"
                 "|---:|---|---:|---:|---:|---:|\n",
                 N_BALLS, options->radius, VXD_SVDAG_LOAD);
    for (int i = 0; i < 2 && status == VXD_OK; i++) {
        struct vxd_svdag_usage usage = {0};

        for (int store = 0; store < VXD_SVDAG_N_STORES && status == VXD_OK; store++) {
            status = run_scene(&device, all_bits[i], (enum vxd_svdag_store)store,
                               options->radius, &usage, err);
            if (status == VXD_OK) {
                (void)printf("| %d | %s | %llu | %.1f | %.1f | %.2f |\n", all_bits[i],
                             store_names[store],
                             (unsigned long long)(usage.n_leaves + usage.n_inner),
                             (double)usage.node_bytes / MIB,
                             (double)usage.used_bytes / MIB,
                             (double)usage.used_bytes / (double)usage.node_bytes);
                (void)fflush(stdout);
            }
        }
    }
    bench_device_destroy(&device);
out:
    return status;
}

/* --- the program ------------------------------------------------------------------------ */

static void usage(void)
{
    (void)fprintf(stderr,
                  "usage: bench_gpu_svdag_tables [--backend cpu|cuda] [--threads N] "
                  "[--repeat N] [--items N] [--batch N] [--words N] [--radius VOXELS] "
                  "[--part all|table|load|memory]\n");
    exit(EXIT_FAILURE);
}

static long number_of(const char *text, long least, long most)
{
    return bench_number(text, least, most, usage);
}

static void parse_part(const char *value, struct options *out)
{
    bool is_all = strcmp(value, "all") == 0;

    out->has_table = is_all || strcmp(value, "table") == 0;
    out->has_load = is_all || strcmp(value, "load") == 0;
    out->has_memory = is_all || strcmp(value, "memory") == 0;
    if (!out->has_table && !out->has_load && !out->has_memory) {
        usage();
    }
}

static void parse_option(const char *name, const char *value, struct options *out)
{
    if (strcmp(name, "--backend") == 0) {
        out->backend = strcmp(value, "cuda") == 0 ? VXD_BACKEND_CUDA : VXD_BACKEND_CPU;
    } else if (strcmp(name, "--threads") == 0) {
        out->n_threads = (int)number_of(value, 0, 256);
    } else if (strcmp(name, "--repeat") == 0) {
        out->n_repeat = (int)number_of(value, 1, MAX_REPEAT);
    } else if (strcmp(name, "--items") == 0) {
        out->n_items = (size_t)number_of(value, 1, 1L << 28);
    } else if (strcmp(name, "--batch") == 0) {
        out->n_batch = (size_t)number_of(value, 1, 1L << 28);
    } else if (strcmp(name, "--words") == 0) {
        out->n_words =
            (int)number_of(value, VXD_SVDAG_TABLE_MIN_WORDS, VXD_SVDAG_TABLE_MAX_WORDS);
    } else if (strcmp(name, "--radius") == 0) {
        out->radius = (int)number_of(value, 16, 20000);
    } else if (strcmp(name, "--part") == 0) {
        parse_part(value, out);
    } else {
        usage();
    }
}

static void parse(int argc, char **argv, struct options *out)
{
    *out = (struct options){.backend = VXD_BACKEND_CPU,
                            .n_repeat = 5,
                            .radius = 600,
                            .has_table = true,
                            .has_load = true,
                            .has_memory = true};
    if (argc % 2 == 0) {
        usage();
    }
    for (int i = 1; i + 1 < argc; i += 2) {
        parse_option(argv[i], argv[i + 1], out);
    }
    if (out->n_items == 0) {
        out->n_items = out->backend == VXD_BACKEND_CUDA ? PEER_ITEMS : (size_t)1 << 20;
    }
    if (out->n_batch == 0) {
        out->n_batch = out->n_items / 4 == 0 ? 1 : out->n_items / 4;
    }
}

static enum vxd_status run(struct bench *bench, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    VXD_TRY(bench_device_create(bench->options.backend, bench->options.n_threads,
                                &bench->device, err));
    if (bench->options.has_table) {
        VXD_TRY(run_table(bench, err));
    }
    if (bench->options.has_load) {
        VXD_TRY(run_loads(bench, err));
    }
out:
    bench_device_destroy(&bench->device);
    return status;
}

int main(int argc, char **argv)
{
    static struct bench bench;
    struct vxd_err err = {0};
    enum vxd_status status = VXD_OK;

    parse(argc, argv, &bench.options);
    if (bench.options.has_table || bench.options.has_load) {
        status = run(&bench, &err);
    }
    if (status == VXD_OK && bench.options.has_memory) {
        status = run_memory(&bench.options, &err);
    }
    if (status != VXD_OK) {
        (void)fprintf(stderr, "bench_gpu_svdag_tables: %s\n", err.message);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
