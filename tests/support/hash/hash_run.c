// SPDX-License-Identifier: Apache-2.0
#include "tests/support/hash/hash_run.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAX_MESSAGES = 10
};

bool hash_run_expect(struct hash_run *run, bool holds, const char *what, const char *file,
                     int line)
{
    if (!holds && run->n_failures++ < MAX_MESSAGES) {
        (void)fprintf(stderr, "%s:%d: %s, %s index, %s, seed %llu, step %d: not so: %s\n",
                      file, line, run->env->name,
                      run->model.spec.index == VXD_HASH_OPEN ? "open" : "slab", run->why,
                      (unsigned long long)run->seed, run->step, what);
    }
    return holds;
}

static void (*each_body)(struct gpu_env *env, enum vxd_hash_index index);

static void each_index(struct gpu_env *env)
{
    each_body(env, VXD_HASH_OPEN);
    if (GPU_OTHER_INDEX != VXD_HASH_OPEN) {
        each_body(env, GPU_OTHER_INDEX);
    }
}

void hash_each(void (*body)(struct gpu_env *env, enum vxd_hash_index index))
{
    each_body = body;
    gpu_each_backend(each_index);
}

static void require(struct hash_run *run, enum vxd_status status,
                    const struct vxd_err *err)
{
    if (status != VXD_OK) {
        (void)fprintf(stderr, "%s, %s, seed %llu, step %d: status %d, %s: %s\n",
                      run->env->name, run->why, (unsigned long long)run->seed, run->step,
                      (int)status, err->field, err->message);
        exit(EXIT_FAILURE);
    }
}

void hash_run_create(struct hash_run *run, struct gpu_env *env,
                     const struct vxd_hashmap_spec *spec, const char *why)
{
    struct vxd_err err = {0};

    *run = (struct hash_run){.env = env, .why = why};
    require(run, vxd_hashmap_create(env->queue, spec, &run->map, &err), &err);
    hash_model_init(&run->model, spec, vxd_hashmap_capacity(run->map));
    run->epoch = vxd_hashmap_erase_epoch(run->map);
    HASH_EXPECT(run, run->model.capacity >= spec->capacity);
    HASH_EXPECT(run, vxd_hashmap_size_bound(run->map) == 0);
}

void hash_run_destroy(struct hash_run *run)
{
    vxd_hashmap_destroy(run->env->queue, run->map);
    hash_model_free(&run->model);
    gpu_wait(run->env);
}

/* Device copy of a host array; an empty buffer where that is NULL. */
static struct vxd_buffer upload(struct hash_run *run, const void *host, size_t n_bytes)
{
    struct vxd_buffer buffer = {0};

    return host != NULL ? gpu_to_device(run->env, host, n_bytes) : buffer;
}

/* Checks what prepare promises; the model then takes over the new capacity. */
static size_t prepare(struct hash_run *run, const void *d_keys,
                      const struct hash_batch *batch)
{
    size_t bound = vxd_hashmap_size_bound(run->map);
    size_t capacity = run->model.capacity;
    size_t n_new = 0;
    size_t grown;
    struct vxd_err err = {0};

    require(
        run,
        vxd_hashmap_prepare(run->env->queue, run->map, d_keys, batch->n, &n_new, &err),
        &err);
    grown = vxd_hashmap_capacity(run->map);
    if (bound + batch->n <= capacity || run->model.n_entries + batch->n <= capacity) {
        HASH_EXPECT(run,
                    /* it returned at once, or after the bound was made exact */
                    n_new == batch->n);
        HASH_EXPECT(run, grown == capacity);
    } else {
        size_t exact = hash_model_count_new(&run->model, batch->keys, batch->n);
        size_t needed = run->model.n_entries + exact;

        HASH_EXPECT(run, n_new == (exact > 0 ? exact : VXD_NONE_NEW));
        HASH_EXPECT(run, needed <= capacity
                             ? grown == capacity
                             : grown >= needed && grown >= capacity + capacity / 2);
    }
    hash_model_grow(&run->model, grown);
    return n_new;
}

/* Expects that the first by position is inserted and gets the lowest free number. */
static void expect_first(struct hash_run *run, const struct hash_batch *batch,
                         const void *const *values, const int32_t *indices,
                         const uint8_t *is_new)
{
    for (size_t i = 0; i < batch->n; i++) {
        const unsigned char *key = batch->keys + i * run->model.key_bytes;
        int32_t number = hash_model_find(&run->model, key);
        bool is_fresh = number == VXD_NO_ENTRY;

        if (is_fresh) {
            number = hash_model_add(&run->model, key, VXD_NO_ENTRY, values, i);
        }
        if ((indices != NULL && !HASH_EXPECT(run, indices[i] == number)) ||
            (is_new != NULL && !HASH_EXPECT(run, is_new[i] == is_fresh))) {
            return;
        }
    }
}

/* Expects any numbers that the rules allow; the model takes them over. */
static void expect_any(struct hash_run *run, const struct hash_batch *batch,
                       const void *const *values, const int32_t *indices,
                       const uint8_t *is_new)
{
    size_t n_old = run->model.n_entries;
    size_t n_new = hash_model_count_new(&run->model, batch->keys, batch->n);

    for (size_t i = 0; i < batch->n; i++) {
        const unsigned char *key = batch->keys + i * run->model.key_bytes;
        int32_t number = indices[i];

        if (!is_new[i]) {
            continue;
        }
        if (!HASH_EXPECT(run, hash_model_find(&run->model, key) == VXD_NO_ENTRY) ||
            !HASH_EXPECT(run, number >= 0 && (size_t)number < run->model.capacity) ||
            !HASH_EXPECT(run, !run->model.lives[number])) {
            return;
        }
        (void)hash_model_add(&run->model, key, number, values, i);
    }
    HASH_EXPECT(run, run->model.n_entries - n_old == n_new);
    for (size_t i = 0; i < batch->n; i++) {
        const unsigned char *key = batch->keys + i * run->model.key_bytes;

        if (!HASH_EXPECT(run, indices[i] == hash_model_find(&run->model, key)) ||
            !HASH_EXPECT(run, is_new[i] <= 1)) {
            return;
        }
    }
}

/* Whether entry `number` holds row `row` of the batch at present. */
static bool has_row(const struct hash_run *run, void *const *rows,
                    const void *const *values, size_t number, size_t row)
{
    for (int v = 0; v < run->model.spec.n_values && values != NULL; v++) {
        size_t n = run->model.row_bytes[v];

        if (memcmp((const char *)rows[v] + number * n, (const char *)values[v] + row * n,
                   n) != 0) {
            return false;
        }
    }
    return true;
}

/* ANY without its outputs: find returns the numbers, and the values show which of
 * equal keys was inserted. */
static void learn_any(struct hash_run *run, const struct hash_batch *batch,
                      const void *d_keys, const void *const *values)
{
    struct gpu_env *env = run->env;
    struct vxd_buffer numbers = gpu_to_device(env, NULL, batch->n * sizeof(int32_t));
    uint8_t *is_new = gpu_alloc(batch->n);
    void *rows[VXD_HASHMAP_MAX_VALUES] = {NULL};
    struct vxd_err err = {0};
    int32_t *indices;

    require(
        run,
        vxd_hashmap_find(env->queue, run->map, d_keys, batch->n, numbers.ptr, NULL, &err),
        &err);
    indices = gpu_to_host(env, &numbers);
    for (int v = 0; v < run->model.spec.n_values; v++) {
        struct vxd_buffer all = {.ptr = vxd_hashmap_values(run->map, v),
                                 .n_bytes =
                                     run->model.capacity * run->model.row_bytes[v]};

        rows[v] = gpu_to_host(env, &all);
    }
    for (size_t i = 0; i < batch->n; i++) {
        const unsigned char *key = batch->keys + i * run->model.key_bytes;
        bool is_in = indices[i] >= 0 && (size_t)indices[i] < run->model.capacity;

        is_new[i] = hash_model_find(&run->model, key) == VXD_NO_ENTRY && is_in &&
                    has_row(run, rows, values, (size_t)indices[i], i);
        for (size_t k = 0; k < i && is_new[i]; k++) {
            is_new[i] = !(is_new[k] && indices[k] == indices[i]);
        }
    }
    expect_any(run, batch, values, indices, is_new);
    for (int v = 0; v < run->model.spec.n_values; v++) {
        free(rows[v]);
    }
    free(is_new);
    free(indices);
    vxd_device_free(env->queue, &numbers);
}

static void compare_insert(struct hash_run *run, const struct hash_batch *batch,
                           const struct vxd_hashmap_insert_args *args,
                           const void *const *values, const struct vxd_buffer *indices,
                           const struct vxd_buffer *is_new)
{
    int32_t *host_indices = indices->ptr != NULL ? gpu_to_host(run->env, indices) : NULL;
    uint8_t *host_new = is_new->ptr != NULL ? gpu_to_host(run->env, is_new) : NULL;

    if (args->order == VXD_HASH_FIRST) {
        expect_first(run, batch, values, host_indices, host_new);
    } else if ((host_indices != NULL && host_new != NULL) || batch->n == 0) {
        expect_any(run, batch, values, host_indices, host_new);
    } else {
        learn_any(run, batch, args->keys, values);
    }
    free(host_indices);
    free(host_new);
}

void hash_run_insert(struct hash_run *run, const struct hash_batch *batch,
                     enum vxd_hash_order order, int flags)
{
    struct gpu_env *env = run->env;
    size_t n = batch->n;
    bool is_activate = (flags & HASH_ACTIVATE) != 0 || run->model.spec.n_values == 0;
    struct vxd_buffer keys = upload(run, batch->keys, n * run->model.key_bytes);
    struct vxd_buffer values[VXD_HASHMAP_MAX_VALUES] = {{0}};
    struct vxd_buffer indices = {0};
    struct vxd_buffer is_new = {0};
    const void *d_values[VXD_HASHMAP_MAX_VALUES];
    const void *rows[VXD_HASHMAP_MAX_VALUES] = {NULL};
    struct vxd_hashmap_insert_args args = {.keys = keys.ptr, .n = n, .order = order};
    struct vxd_err err = {0};
    enum vxd_status status;
    bool fits;

    for (int v = 0; v < run->model.spec.n_values && !is_activate; v++) {
        rows[v] = batch->values[v];
        values[v] = upload(run, rows[v], n * run->model.row_bytes[v]);
        d_values[v] = values[v].ptr;
    }
    if ((flags & HASH_NO_INDICES) == 0) {
        indices = gpu_to_device(env, NULL, n * sizeof(int32_t));
    }
    if ((flags & HASH_NO_MASK) == 0) {
        is_new = gpu_to_device(env, NULL, n);
    }
    if ((flags & HASH_UNPREPARED) == 0) {
        args.max_new = prepare(run, keys.ptr, batch);
    }
    args.values = is_activate ? NULL : d_values;
    args.indices = indices.ptr;
    args.is_new = is_new.ptr;
    fits = (flags & HASH_UNPREPARED) == 0 ||
           vxd_hashmap_size_bound(run->map) + n <= run->model.capacity;
    status = vxd_hashmap_insert(env->queue, run->map, &args, &err);
    if (fits) {
        require(run, status, &err);
        compare_insert(run, batch, &args, is_activate ? NULL : rows, &indices, &is_new);
    } else {
        HASH_EXPECT(run, status == VXD_RESOURCE_EXHAUSTED);
    }
    HASH_EXPECT(run, vxd_hashmap_size_bound(run->map) >= run->model.n_entries);
    HASH_EXPECT(run, vxd_hashmap_size_bound(run->map) <= run->model.capacity);
    HASH_EXPECT(run, vxd_hashmap_erase_epoch(run->map) == run->epoch);
    for (int v = 0; v < run->model.spec.n_values; v++) {
        vxd_device_free(env->queue, &values[v]);
    }
    vxd_device_free(env->queue, &keys);
    vxd_device_free(env->queue, &indices);
    vxd_device_free(env->queue, &is_new);
    gpu_wait(env);
}

void hash_run_find(struct hash_run *run, const void *keys, size_t n)
{
    struct gpu_env *env = run->env;
    struct vxd_buffer d_keys = upload(run, keys, n * run->model.key_bytes);
    struct vxd_buffer d_indices = gpu_to_device(env, NULL, n * sizeof(int32_t));
    struct vxd_buffer d_found = gpu_to_device(env, NULL, n);
    bool wants_indices = run->step % 3 != 1;
    bool wants_found = run->step % 3 != 2;
    struct vxd_err err = {0};
    int32_t *indices;
    uint8_t *found;

    require(run,
            vxd_hashmap_find(env->queue, run->map, d_keys.ptr, n,
                             wants_indices ? d_indices.ptr : NULL,
                             wants_found ? d_found.ptr : NULL, &err),
            &err);
    indices = gpu_to_host(env, &d_indices);
    found = gpu_to_host(env, &d_found);
    for (size_t i = 0; i < n; i++) {
        int32_t number = hash_model_find(&run->model, (const unsigned char *)keys +
                                                          i * run->model.key_bytes);

        if ((wants_indices && !HASH_EXPECT(run, indices[i] == number)) ||
            (wants_found && !HASH_EXPECT(run, found[i] == (number != VXD_NO_ENTRY)))) {
            break;
        }
    }
    free(indices);
    free(found);
    vxd_device_free(env->queue, &d_keys);
    vxd_device_free(env->queue, &d_indices);
    vxd_device_free(env->queue, &d_found);
    gpu_wait(env);
}

/* erased: the map's output, or NULL. */
static size_t erase_model(struct hash_run *run, const unsigned char *keys, size_t n,
                          enum vxd_hash_order order, const uint8_t *erased)
{
    size_t n_erased = 0;
    size_t n_said = 0;

    /* ANY may report any one of equal keys that were in the map. */
    for (size_t i = 0; i < n && erased != NULL && order == VXD_HASH_ANY; i++) {
        const unsigned char *key = keys + i * run->model.key_bytes;

        n_said += erased[i] != 0;
        if (erased[i] != 0 &&
            !HASH_EXPECT(run, erased[i] == 1 &&
                                  hash_model_erase(&run->model, key) != VXD_NO_ENTRY)) {
            return n_said;
        }
    }
    for (size_t i = 0; i < n; i++) {
        const unsigned char *key = keys + i * run->model.key_bytes;
        bool is_erased = hash_model_erase(&run->model, key) != VXD_NO_ENTRY;

        n_erased += is_erased;
        if (order == VXD_HASH_FIRST && erased != NULL &&
            !HASH_EXPECT(run, erased[i] == is_erased)) {
            break;
        }
    }
    if (order == VXD_HASH_ANY && erased != NULL) {
        HASH_EXPECT(run, n_erased == 0); /* an earlier key has reported each entry */
    }
    return n_said + n_erased;
}

void hash_run_erase(struct hash_run *run, const void *keys, size_t n,
                    enum vxd_hash_order order, bool wants_mask)
{
    struct gpu_env *env = run->env;
    struct vxd_buffer d_keys = upload(run, keys, n * run->model.key_bytes);
    struct vxd_buffer d_erased = gpu_to_device(env, NULL, n);
    uint8_t *erased = NULL;
    struct vxd_err err = {0};
    uint64_t epoch;
    size_t n_erased;

    require(run,
            vxd_hashmap_erase(env->queue, run->map, d_keys.ptr, n, order,
                              wants_mask ? d_erased.ptr : NULL, &err),
            &err);
    if (wants_mask) {
        erased = gpu_to_host(env, &d_erased);
    }
    n_erased = erase_model(run, keys, n, order, erased);
    epoch = vxd_hashmap_erase_epoch(run->map);
    HASH_EXPECT(run, n_erased > 0 ? epoch > run->epoch : epoch >= run->epoch);
    HASH_EXPECT(run, n > 0 || epoch == run->epoch);
    run->epoch = epoch;
    free(erased);
    vxd_device_free(env->queue, &d_keys);
    vxd_device_free(env->queue, &d_erased);
    gpu_wait(env);
}

void hash_run_clear(struct hash_run *run)
{
    struct vxd_err err = {0};

    require(run, vxd_hashmap_clear(run->env->queue, run->map, &err), &err);
    gpu_wait(run->env);
    hash_model_clear(&run->model);
    HASH_EXPECT(run, vxd_hashmap_erase_epoch(run->map) > run->epoch);
    HASH_EXPECT(run, vxd_hashmap_size_bound(run->map) == 0);
    HASH_EXPECT(run, vxd_hashmap_capacity(run->map) == run->model.capacity);
    run->epoch = vxd_hashmap_erase_epoch(run->map);
}

void hash_run_reserve(struct hash_run *run, size_t capacity)
{
    size_t old = run->model.capacity;
    struct vxd_err err = {0};
    size_t grown;

    require(run, vxd_hashmap_reserve(run->env->queue, run->map, capacity, &err), &err);
    grown = vxd_hashmap_capacity(run->map);
    HASH_EXPECT(run, capacity <= old ? grown == old : grown >= capacity);
    HASH_EXPECT(run, vxd_hashmap_erase_epoch(run->map) == run->epoch);
    hash_model_grow(&run->model, grown);
    gpu_wait(run->env);
}

void hash_run_update(struct hash_run *run, const struct vxd_hashmap_update_args *args)
{
    struct gpu_env *env = run->env;
    size_t n = args->n;
    size_t row_bytes =
        run->model.spec.values[args->array].n_elements * vxd_dtype_bytes(args->dtype);
    struct vxd_buffer indices = upload(run, args->indices, n * sizeof(int32_t));
    struct vxd_buffer rows = upload(run, args->rows, n * row_bytes);
    struct vxd_buffer d_updated = gpu_to_device(env, NULL, n);
    struct vxd_hashmap_update_args device_args = *args;
    struct vxd_hashmap_update_args model_args = *args;
    bool wants_mask = run->step % 2 == 0;
    struct vxd_err err = {0};
    uint8_t *updated;

    device_args.indices = indices.ptr;
    device_args.rows = rows.ptr;
    device_args.updated = wants_mask ? d_updated.ptr : NULL;
    require(run, vxd_hashmap_update(env->queue, run->map, &device_args, &err), &err);
    updated = gpu_to_host(env, &d_updated);
    model_args.updated = gpu_alloc(n);
    hash_model_update(&run->model, &model_args);
    if (wants_mask) {
        HASH_EXPECT(run, memcmp(updated, model_args.updated, n) == 0);
    }
    free(updated);
    free(model_args.updated);
    vxd_device_free(env->queue, &indices);
    vxd_device_free(env->queue, &rows);
    vxd_device_free(env->queue, &d_updated);
    gpu_wait(env);
}

void hash_run_neighbours(struct hash_run *run, const void *keys, size_t n, int kind)
{
    struct gpu_env *env = run->env;
    size_t n_columns = (size_t)kind;
    struct vxd_buffer d_keys = upload(run, keys, n * run->model.key_bytes);
    struct vxd_buffer d_indices =
        gpu_to_device(env, NULL, n * n_columns * sizeof(int32_t));
    unsigned char neighbour[8 * VXD_HASHMAP_MAX_COMPONENTS];
    struct vxd_err err = {0};
    bool is_same = true;
    int32_t *indices;

    require(run,
            vxd_hashmap_neighbours(env->queue, run->map, d_keys.ptr, n,
                                   (enum vxd_hash_neighbours)kind, d_indices.ptr, &err),
            &err);
    indices = gpu_to_host(env, &d_indices);
    for (size_t i = 0; i < n * n_columns && is_same; i++) {
        const unsigned char *key =
            (const unsigned char *)keys + i / n_columns * run->model.key_bytes;
        int32_t number = VXD_NO_ENTRY;

        if (hash_model_neighbour(&run->model, key, kind, (int)(i % n_columns),
                                 neighbour)) {
            number = hash_model_find(&run->model, neighbour);
        }
        is_same = HASH_EXPECT(run, indices[i] == number);
    }
    free(indices);
    vxd_device_free(env->queue, &d_keys);
    vxd_device_free(env->queue, &d_indices);
    gpu_wait(env);
}
