// SPDX-License-Identifier: Apache-2.0
/* The table of rates: int3 keys, an int32-sized value, capacity = number of keys, so that the
 * load is the highest that the index reaches.
 *
 * Floors, measured in the same run over a table of the same size as the index's slots (the index
 * without heap and live bits):
 *   find               a random read of 32 bytes a key
 *   insert any, 0.99   a random 64-bit compare-and-swap a key; the same for activate and erase
 *   insert any, 0.10   a random read a key and a compare-and-swap a distinct key
 *   insert first       its passes: claim (a compare-and-swap a key), settle (a random read a
 *                      key, because only then the first by position is known), number (a random
 *                      write a distinct key, at the rate of reads), answer (a random read for
 *                      every other key), and the streamed bytes: keys twice, 5 bytes out a
 *                      key, 24 + 4 a distinct one (row of key and value written, value and
 *                      number read) */
#include "tests/bench/gpu/hash/bench_hashmap.h"

struct row {
    size_t n;
    double uniqueness;
    size_t n_unique;
    struct bench_floors floors;
};

/* Billions of keys a second on an H200: shared/research/floors_and_peers.md, 2026-11-21;
 * 0 = not measured. cuCollections: static_map 64 to 64 bits, no dense index. stdgpu: the
 * backend of ASH, int3 to int32. */
struct peer {
    double n;
    double uniqueness;
    double cuco_find, cuco_insert;
    double stdgpu_find, stdgpu_insert;
};

static const struct peer peers[] = {
    {1e6, 0.99, 23.3, 15.7, 16.1, 1.8}, {1e6, 0.10, 29.0, 28.9, 21.8, 8.8},
    {1e7, 0.99, 22.6, 13.3, 18.9, 2.2}, {1e7, 0.10, 24.0, 24.8, 23.4, 11.6},
    {1e8, 0.99, 22.0, 12.5, 0.0, 0.0},  {1e8, 0.10, 23.6, 24.4, 0.0, 0.0},
};

static double floor_seconds(const struct row *row, enum hash_operation operation)
{
    double n = (double)row->n;
    double n_unique = (double)row->n_unique;
    double read_s = n / row->floors.gather_per_s;
    double cas_s = n / row->floors.cas_per_s;

    switch (operation) {
    case HASH_FIND:
        return read_s;
    case HASH_INSERT_FIRST:
        return cas_s + read_s + n_unique / row->floors.gather_per_s +
               (n - n_unique) / row->floors.gather_per_s +
               (29.0 * n + 28.0 * n_unique) / row->floors.copy_bytes_per_s;
    default:
        return row->uniqueness > 0.5 ? cas_s : read_s + n_unique / row->floors.cas_per_s;
    }
}

/* The rate to reach, in billions of keys a second; 0 = none. */
static double goal(const struct row *row, enum hash_operation operation,
                   double insert_any_s)
{
    double floor_rate = (double)row->n / floor_seconds(row, operation) * 1e-9;

    switch (operation) {
    case HASH_FIND:
        return row->n >= 10000000 ? 0.9 * floor_rate : 0.0;
    case HASH_INSERT_ANY:
        return row->uniqueness > 0.5 ? 0.6 * floor_rate : 24.0;
    case HASH_INSERT_FIRST:
        return 0.9 * floor_rate;
    default:
        return 0.8 * (double)row->n / insert_any_s * 1e-9;
    }
}

static void print_peers(const struct row *row, enum hash_operation operation)
{
    for (size_t i = 0; i < sizeof peers / sizeof peers[0]; i++) {
        const struct peer *peer = &peers[i];
        bool is_find = operation == HASH_FIND;
        double cuco = is_find ? peer->cuco_find : peer->cuco_insert;
        double stdgpu = is_find ? peer->stdgpu_find : peer->stdgpu_insert;

        if (peer->n != (double)row->n || peer->uniqueness != row->uniqueness ||
            (!is_find && operation != HASH_INSERT_ANY)) {
            continue;
        }
        (void)printf(" %.1f |", cuco);
        if (stdgpu > 0.0) {
            (void)printf(" %.1f |\n", stdgpu);
        } else {
            (void)printf(" |\n");
        }
        return;
    }
    (void)printf(" | |\n");
}

static void print_row(const struct hash_load *load, const struct row *row,
                      enum hash_operation operation, double seconds, double insert_any_s)
{
    double rate = (double)row->n / seconds * 1e-9;

    (void)printf("| %s | %zu | %.2f | %-12s | %9.3f | %7.3f |",
                 hash_index_name(load->args.index), row->n, row->uniqueness,
                 hash_operation_names[operation], 1e3 * seconds, rate);
    if (row->floors.gather_per_s > 0.0) {
        double floor_rate = (double)row->n / floor_seconds(row, operation) * 1e-9;
        double least = goal(row, operation, insert_any_s);

        (void)printf(" %.1f | %.2f |", floor_rate, rate / floor_rate);
        if (least > 0.0) {
            (void)printf(" %.1f %s |", least, rate >= least ? "met" : "missed");
        } else {
            (void)printf(" |");
        }
        print_peers(row, operation);
    } else {
        (void)printf(" | | %s | | |\n",
                     operation == HASH_FIND || operation == HASH_INSERT_ANY
                         ? rate >= 0.02 ? "0.020 met" : "0.020 missed"
                         : "");
    }
    (void)fflush(stdout);
}

static enum vxd_status run_rows(const struct hash_options *options,
                                struct bench_device *device, enum vxd_hash_index index,
                                size_t n, double uniqueness, struct vxd_err *err)
{
    struct hash_load_args args = {
        .index = index, .n = n, .uniqueness = uniqueness, .value_bytes = 4};
    struct row row = {.n = n, .uniqueness = uniqueness};
    struct vxd_hashmap_stats stats;
    struct hash_load load = {.device = device};
    enum vxd_status status;
    double seconds = 0.0;
    double insert_any_s = 0.0;

    VXD_TRY(hash_load_make(device, &args, &load, err));
    row.n_unique = load.n_unique;
    VXD_TRY(vxd_hashmap_get_stats(device->queue, load.map, &stats, err));
    if (device->clock != NULL) {
        size_t others = stats.capacity * 4 + stats.capacity / 8;

        VXD_TRY(
            bench_device_floors(device, stats.index_bytes - others, n, &row.floors, err));
    }
    for (int i = 0; i < HASH_N_OPERATIONS; i++) {
        enum hash_operation operation = (enum hash_operation)i;

        VXD_TRY(hash_load_time(&load, operation, options->n_repeat, &seconds, NULL, err));
        if (operation == HASH_INSERT_ANY) {
            insert_any_s = seconds;
        }
        print_row(&load, &row, operation, seconds, insert_any_s);
    }
    if (device->clock != NULL) {
        (void)printf("| %s | %zu | %.2f | floors: %.1f G reads/s, %.1f G swaps/s, copy "
                     "%.0f GB/s | | | | | | | |\n",
                     hash_index_name(index), n, uniqueness,
                     row.floors.gather_per_s * 1e-9, row.floors.cas_per_s * 1e-9,
                     row.floors.copy_bytes_per_s * 1e-9);
    }
out:
    hash_load_free(&load);
    return status;
}

/* A batch of 1,000 keys that are already in device memory, in a map of capacity one
 * million. */
static enum vxd_status run_latency(const struct hash_options *options,
                                   struct bench_device *device, enum vxd_hash_index index,
                                   struct vxd_err *err)
{
    static const enum hash_operation operations[] = {HASH_FIND, HASH_INSERT_ANY,
                                                     HASH_INSERT_FIRST};
    struct hash_load_args args = {
        .index = index, .n = 1000, .uniqueness = 0.99, .value_bytes = 4};
    struct hash_load load = {.device = device};
    enum vxd_status status;
    double device_s = 0.0;
    double wall_s = 0.0;

    VXD_TRY(hash_load_make(device, &args, &load, err));
    VXD_TRY(vxd_hashmap_reserve(device->queue, load.map, 1000000, err));
    for (int i = 0; i < 3; i++) {
        VXD_TRY(hash_load_time(&load, operations[i], options->n_repeat, &device_s,
                               &wall_s, err));
        (void)printf("| %s | %s of 1,000 keys, capacity 10^6 | %.1f | %.1f | %s |\n",
                     hash_index_name(index), hash_operation_names[operations[i]],
                     1e6 * device_s, 1e6 * wall_s,
                     operations[i] == HASH_INSERT_FIRST ? "" : "10 on the device");
    }
out:
    hash_load_free(&load);
    return status;
}

static enum vxd_status run_creation(const struct hash_options *options,
                                    struct bench_device *device,
                                    enum vxd_hash_index index, struct vxd_err *err)
{
    struct vxd_hashmap_spec spec = {.key_dtype = VXD_INT32,
                                    .n_components = 3,
                                    .n_values = 1,
                                    .values = {{VXD_INT32, 1}},
                                    .index = index,
                                    .capacity = 1000000};
    enum vxd_status status = VXD_OK;
    double on_device[HASH_MAX_REPEAT];
    double wall[HASH_MAX_REPEAT];

    for (int i = -2; i < options->n_repeat; i++) {
        int slot = i < 0 ? 0 : i;
        struct vxd_hashmap *map;
        double start = bench_now_s();

        (void)bench_device_start(device);
        VXD_TRY(vxd_hashmap_create(device->queue, &spec, &map, err));
        vxd_hashmap_destroy(device->queue, map);
        (void)bench_device_stop(device);
        VXD_TRY(vxd_queue_wait(device->queue, err));
        wall[slot] = bench_now_s() - start;
        on_device[slot] = bench_device_seconds(device);
    }
    (void)printf("| %s | create and destroy, capacity 10^6 | %.1f | %.1f | 100 |\n",
                 hash_index_name(index), 1e6 * bench_median(on_device, options->n_repeat),
                 1e6 * bench_median(wall, options->n_repeat));
out:
    return status;
}

/* Index bytes for each key when the map is full, and after it grew by itself for one
 * more key. */
static enum vxd_status run_memory(struct bench_device *device, enum vxd_hash_index index,
                                  struct vxd_err *err)
{
    struct hash_load_args args = {
        .index = index, .n = 1000000, .uniqueness = 1.0, .value_bytes = 4};
    struct vxd_hashmap_insert_args insert = {.n = 1, .order = VXD_HASH_ANY};
    struct hash_load load = {.device = device};
    struct vxd_hashmap_stats full;
    struct vxd_hashmap_stats grown;
    enum vxd_status status;
    double seconds = 0.0;
    int32_t key[3] = {1 << 30, 0, 0};

    VXD_TRY(hash_load_make(device, &args, &load, err));
    VXD_TRY(hash_load_time(&load, HASH_INSERT_ANY, 1, &seconds, NULL, err));
    VXD_TRY(vxd_hashmap_get_stats(device->queue, load.map, &full, err));
    VXD_TRY(vxd_queue_copy(device->queue, load.keys.ptr, key, sizeof key, err));
    VXD_TRY(vxd_queue_wait(device->queue, err));
    insert.keys = load.keys.ptr;
    VXD_TRY(vxd_hashmap_prepare(device->queue, load.map, load.keys.ptr, 1,
                                &insert.max_new, err));
    VXD_TRY(vxd_hashmap_insert(device->queue, load.map, &insert, err));
    VXD_TRY(vxd_hashmap_get_stats(device->queue, load.map, &grown, err));
    (void)printf("| %s | %zu | %zu | %.2f | %.1f | %.2f | %u | 40 |\n",
                 hash_index_name(index), full.n_entries, full.capacity, full.load,
                 full.bytes_per_key, full.mean_probes, full.max_probes);
    (void)printf("| %s | %zu | %zu | %.2f | %.1f | %.2f | %u | 64 |\n",
                 hash_index_name(index), grown.n_entries, grown.capacity, grown.load,
                 grown.bytes_per_key, grown.mean_probes, grown.max_probes);
out:
    hash_load_free(&load);
    return status;
}

static enum vxd_status run_small(const struct hash_options *options,
                                 struct bench_device *device, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    (void)printf("\n| index | what | device, us | call to wait, us | goal, us |\n"
                 "|---|---|---:|---:|---|\n");
    for (int i = 0; i < 2; i++) {
        if (options->has_index[i]) {
            VXD_TRY(run_latency(options, device, (enum vxd_hash_index)i, err));
            VXD_TRY(run_creation(options, device, (enum vxd_hash_index)i, err));
        }
    }
    (void)printf("\nThe index's bytes a key (slots or slabs, heap and live bits; not the "
                 "rows of keys and values), full and just after growth:\n\n"
                 "| index | entries | capacity | load | bytes a key | mean probes | most "
                 "probes | goal |\n|---|---:|---:|---:|---:|---:|---:|---:|\n");
    for (int i = 0; i < 2; i++) {
        if (options->has_index[i]) {
            VXD_TRY(run_memory(device, (enum vxd_hash_index)i, err));
        }
    }
out:
    return status;
}

enum vxd_status hash_table_run(const struct hash_options *options, struct vxd_err *err)
{
    static const double ratios[] = {0.99, 0.10};
    struct bench_device device;
    struct vxd_context_info info;
    enum vxd_status status;

    VXD_TRY(bench_device_create(options->backend, options->n_threads, &device, err));
    vxd_context_get_info(device.context, &info);
    (void)printf("%s; int3 keys within 21 bits an axis, 4-byte value, capacity = keys; "
                 "median of %d\n\n"
                 "| index | keys | unique | operation | ms | G keys/s | floor | of the "
                 "floor | goal | cuCollections | stdgpu |\n"
                 "|---|---:|---:|---|---:|---:|---:|---:|---|---:|---:|\n",
                 info.name, options->n_repeat);
    for (int k = 0; k < options->n_n_keys && status == VXD_OK; k++) {
        for (int i = 0; i < 4 && status == VXD_OK; i++) {
            if (options->has_index[i / 2]) {
                status = run_rows(options, &device, (enum vxd_hash_index)(i / 2),
                                  (size_t)options->n_keys[k], ratios[i % 2], err);
            }
        }
    }
    if (status == VXD_OK) {
        status = run_small(options, &device, err);
    }
    bench_device_destroy(&device);
out:
    return status;
}
