// SPDX-License-Identifier: Apache-2.0
/* The set-ups of ASH, section 5: a batch as large as the capacity, random keys.
 *   1  int3 keys, values of float32 x 2^j, j = 0 to 12; insert, activate, find
 *   2  int keys, one float32, uniqueness 0.1 to 0.99 (the paper includes the copies between host
 *      and device; here the arrays are in device memory)
 * Loads that would take more than half of the device's budget are left out. */
#include "tests/bench/gpu/hash/bench_hashmap.h"

#define N_SIZES 13

static bool fits(const struct bench_device *device, const struct hash_load_args *args)
{
    struct vxd_memory_usage usage;

    vxd_context_get_memory(device->context, &usage);
    return hash_load_bytes(args) <= usage.device_budget_bytes / 2;
}

static enum vxd_status run_load(const struct hash_options *options,
                                struct bench_device *device, int setup,
                                const struct hash_load_args *args, struct vxd_err *err)
{
    static const enum hash_operation operations[] = {HASH_INSERT_ANY, HASH_INSERT_FIRST,
                                                     HASH_ACTIVATE, HASH_FIND};
    struct hash_load load = {.device = device};
    enum vxd_status status = VXD_OK;
    double seconds[4] = {0};

    if (!fits(device, args)) {
        return VXD_OK;
    }
    VXD_TRY(hash_load_make(device, args, &load, err));
    for (int i = 0; i < 4; i++) {
        VXD_TRY(hash_load_time(&load, operations[i], options->n_repeat, &seconds[i], NULL,
                               err));
        if (options->csv != NULL) {
            (void)fprintf(options->csv, "%d,%s,%s,%zu,%zu,%.2f,%.6f\n", setup,
                          hash_index_name(args->index),
                          hash_operation_names[operations[i]], args->n, args->value_bytes,
                          args->uniqueness, 1e3 * seconds[i]);
        }
    }
    (void)printf("| %s | %zu | %.2f | %zu | %.4f | %.4f | %.4f | %.4f |\n",
                 hash_index_name(args->index), args->n, args->uniqueness,
                 args->value_bytes, 1e3 * seconds[0], 1e3 * seconds[1], 1e3 * seconds[2],
                 1e3 * seconds[3]);
    (void)fflush(stdout);
out:
    hash_load_free(&load);
    return status;
}

static void print_head(const struct bench_device *device,
                       const struct hash_options *options, int setup, const char *what)
{
    struct vxd_context_info info;

    vxd_context_get_info(device->context, &info);
    (void)printf("%s; ASH's set-up %d: %s; median of %d\n\n"
                 "| index | capacity | unique | value bytes | insert any, ms | insert "
                 "first, ms | activate, ms | find, ms |\n"
                 "|---|---:|---:|---:|---:|---:|---:|---:|\n",
                 info.name, setup, what, options->n_repeat);
}

enum vxd_status hash_setup1_run(const struct hash_options *options, struct vxd_err *err)
{
    struct bench_device device;
    enum vxd_status status;

    VXD_TRY(bench_device_create(options->backend, options->n_threads, &device, err));
    print_head(&device, options, 1, "int3 keys, float32 blocks");
    for (int index = 0; index < 2; index++) {
        for (int c = 0; c < options->n_capacities && options->has_index[index]; c++) {
            for (int k = 0; k < 2 * N_SIZES && status == VXD_OK; k++) {
                struct hash_load_args args = {.index = (enum vxd_hash_index)index,
                                              .n = (size_t)options->capacities[c],
                                              .uniqueness = k < N_SIZES ? 0.10 : 0.99,
                                              .value_bytes = (size_t)4 << k % N_SIZES};

                status = run_load(options, &device, 1, &args, err);
            }
        }
    }
    bench_device_destroy(&device);
out:
    return status;
}

enum vxd_status hash_setup2_run(const struct hash_options *options, struct vxd_err *err)
{
    struct bench_device device;
    enum vxd_status status;

    VXD_TRY(bench_device_create(options->backend, options->n_threads, &device, err));
    print_head(&device, options, 2, "int keys, one float32");
    for (int index = 0; index < 2; index++) {
        for (int c = 0; c < options->n_capacities && options->has_index[index]; c++) {
            for (int k = 1; k <= 10 && status == VXD_OK; k++) {
                struct hash_load_args args = {.index = (enum vxd_hash_index)index,
                                              .n = (size_t)options->capacities[c],
                                              .uniqueness = k < 10 ? 0.1 * k : 0.99,
                                              .is_scalar = true,
                                              .value_bytes = 4};

                status = run_load(options, &device, 2, &args, err);
            }
        }
    }
    bench_device_destroy(&device);
out:
    return status;
}
