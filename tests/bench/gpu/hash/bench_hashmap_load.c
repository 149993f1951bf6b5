// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/gpu/hash/bench_hashmap_load.h"

#include <stdlib.h>

const char *const hash_operation_names[HASH_N_OPERATIONS] = {"insert any", "insert first",
                                                             "activate", "find", "erase"};

/* A bijection of the numbers below 2^n_bits, 32 <= n_bits <= 63: keys without repetition. */
static uint64_t scatter(uint64_t i, int n_bits)
{
    uint64_t mask = ((uint64_t)1 << n_bits) - 1;

    i = i * 0x9e3779b97f4a7c15ULL & mask;
    i ^= i >> n_bits / 2;
    i = i * 0xbf58476d1ce4e5b9ULL & mask;
    return i ^ i >> n_bits / 2;
}

static void write_key(bool is_scalar, uint64_t i, int32_t *out)
{
    uint64_t bits = scatter(i, is_scalar ? 32 : 63);

    if (is_scalar) {
        out[0] = (int32_t)(uint32_t)bits;
        return;
    }
    for (int c = 0; c < 3; c++) {
        out[c] = (int32_t)(bits >> 21 * c & 0x1fffff) - 0x100000;
    }
}

/* Key p is new where the count of distinct keys, uniqueness * p, reaches a new whole
 * number, else a random earlier one. Returns that count. */
static size_t write_keys(const struct hash_load_args *args, int32_t *keys)
{
    size_t n_components = args->is_scalar ? 1 : 3;
    uint64_t state = 1;
    size_t n_unique = 0;

    for (size_t p = 0; p < args->n; p++) {
        size_t target = (size_t)(args->uniqueness * (double)(p + 1) + 1e-6);
        uint64_t id = n_unique;

        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        if (target > n_unique || n_unique == 0) {
            n_unique++;
        } else {
            id = (state >> 32) * n_unique >> 32;
        }
        write_key(args->is_scalar, id, keys + p * n_components);
    }
    return n_unique;
}

static struct vxd_hashmap_spec spec_of(const struct hash_load_args *args)
{
    struct vxd_hashmap_spec spec = {.key_dtype = VXD_INT32,
                                    .n_components = args->is_scalar ? 1 : 3,
                                    .n_values = 1,
                                    .index = args->index,
                                    .capacity = args->n};

    spec.values[0] =
        (struct vxd_hashmap_array){VXD_FLOAT32, (uint32_t)(args->value_bytes / 4)};
    return spec;
}

size_t hash_load_bytes(const struct hash_load_args *args)
{
    /* Keys and values of the batch and of the map, an index and scratch. */
    return args->n * (2 * args->value_bytes + 2 * 12 + 5 + 64 + 64);
}

enum vxd_status hash_load_make(struct bench_device *device,
                               const struct hash_load_args *args, struct hash_load *out,
                               struct vxd_err *err)
{
    struct vxd_queue *queue = device->queue;
    struct vxd_hashmap_spec spec = spec_of(args);
    size_t n_bytes = args->n * (size_t)spec.n_components * sizeof(int32_t);
    int32_t *keys = malloc(n_bytes);
    enum vxd_status status;

    *out = (struct hash_load){.device = device, .args = *args};
    if (keys == NULL) {
        status = vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for %zu keys",
                          args->n);
        goto out;
    }
    out->n_unique = write_keys(args, keys);
    VXD_TRY(vxd_device_alloc(queue, n_bytes, &out->keys, err));
    VXD_TRY(vxd_device_alloc(queue, args->n * args->value_bytes, &out->values, err));
    VXD_TRY(vxd_device_alloc(queue, args->n * sizeof(int32_t), &out->indices, err));
    VXD_TRY(vxd_device_alloc(queue, args->n, &out->mask, err));
    VXD_TRY(vxd_queue_copy(queue, out->keys.ptr, keys, n_bytes, err));
    VXD_TRY(vxd_queue_fill(queue, out->values.ptr, 1, out->values.n_bytes, err));
    VXD_TRY(vxd_hashmap_create(queue, &spec, &out->map, err));
    VXD_TRY(vxd_queue_wait(queue, err));
out:
    free(keys);
    if (status != VXD_OK) {
        hash_load_free(out);
    }
    return status;
}

void hash_load_free(struct hash_load *load)
{
    struct vxd_queue *queue = load->device->queue;

    vxd_hashmap_destroy(queue, load->map);
    vxd_device_free(queue, &load->keys);
    vxd_device_free(queue, &load->values);
    vxd_device_free(queue, &load->indices);
    vxd_device_free(queue, &load->mask);
    load->map = NULL;
}

static enum vxd_status call(struct hash_load *load, enum hash_operation operation,
                            struct vxd_err *err)
{
    struct vxd_queue *queue = load->device->queue;
    const void *values = load->values.ptr;
    struct vxd_hashmap_insert_args insert = {
        .keys = load->keys.ptr,
        .n = load->args.n,
        .values = operation == HASH_ACTIVATE ? NULL : &values,
        .order = operation == HASH_INSERT_FIRST ? VXD_HASH_FIRST : VXD_HASH_ANY,
        .indices = load->indices.ptr,
        .is_new = load->mask.ptr};

    switch (operation) {
    case HASH_FIND:
        return vxd_hashmap_find(queue, load->map, load->keys.ptr, load->args.n,
                                load->indices.ptr, load->mask.ptr, err);
    case HASH_ERASE:
        return vxd_hashmap_erase(queue, load->map, load->keys.ptr, load->args.n,
                                 VXD_HASH_ANY, load->mask.ptr, err);
    default:
        return vxd_hashmap_insert(queue, load->map, &insert, err);
    }
}

/* Brings the map to the state in which the operation is timed. */
static enum vxd_status bring(struct hash_load *load, enum hash_operation operation,
                             bool is_first_run, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    if (operation == HASH_FIND && !is_first_run) {
        return VXD_OK;
    }
    VXD_TRY(vxd_hashmap_clear(load->device->queue, load->map, err));
    if (operation == HASH_FIND || operation == HASH_ERASE) {
        VXD_TRY(call(load, HASH_INSERT_ANY, err));
    }
out:
    return status;
}

enum vxd_status hash_load_time(struct hash_load *load, enum hash_operation operation,
                               int n_repeat, double *device_s, double *wall_s,
                               struct vxd_err *err)
{
    struct bench_device *device = load->device;
    enum vxd_status status = VXD_OK;
    double on_device[HASH_MAX_REPEAT];
    double wall[HASH_MAX_REPEAT];
    double start;

    for (int i = -2; i < n_repeat; i++) {
        int slot = i < 0 ? 0 : i;

        VXD_TRY(bring(load, operation, i == -2, err));
        VXD_TRY(bench_device_flush(device, err));
        if (device->clock == NULL) { /* the CPU runs queued work in the wait */
            VXD_TRY(vxd_queue_wait(device->queue, err));
        }
        (void)bench_device_start(device);
        VXD_TRY(call(load, operation, err));
        (void)bench_device_stop(device);
        VXD_TRY(vxd_queue_wait(device->queue, err));
        on_device[slot] = bench_device_seconds(device);
        if (wall_s == NULL) {
            continue;
        }
        VXD_TRY(bring(load, operation, false, err));
        VXD_TRY(vxd_queue_wait(device->queue, err));
        start = bench_now_s();
        VXD_TRY(call(load, operation, err));
        VXD_TRY(vxd_queue_wait(device->queue, err));
        wall[slot] = bench_now_s() - start;
    }
    *device_s = bench_median(on_device, n_repeat);
    if (wall_s != NULL) {
        *wall_s = bench_median(wall, n_repeat);
    }
out:
    return status;
}
