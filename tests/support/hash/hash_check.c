// SPDX-License-Identifier: Apache-2.0
/* The functions of hash_run.h that read whole maps: verify, set operations, images. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/hash/hash_run.h"

enum {
    N_STRANGE = 4 /* number of values that never name an entry */
};

static bool is_ok(struct hash_run *run, enum vxd_status status, const struct vxd_err *err)
{
    if (status != VXD_OK) {
        (void)fprintf(stderr, "status %d, %s: %s\n", (int)status, err->field,
                      err->message);
    }
    return HASH_EXPECT(run, status == VXD_OK);
}

static void verify_active(struct hash_run *run)
{
    struct gpu_env *env = run->env;
    size_t indices_capacity = vxd_hashmap_size_bound(run->map);
    struct vxd_buffer d_indices =
        gpu_to_device(env, NULL, indices_capacity * sizeof(int32_t));
    struct vxd_buffer d_n = gpu_to_device(env, NULL, sizeof(uint32_t));
    struct vxd_err err = {0};
    int32_t *indices;
    uint32_t *n;
    size_t at = 0;

    if (is_ok(run,
              vxd_hashmap_active(env->queue, run->map, d_indices.ptr, indices_capacity,
                                 d_n.ptr, &err),
              &err)) {
        indices = gpu_to_host(env, &d_indices);
        n = gpu_to_host(env, &d_n);
        if (HASH_EXPECT(run, *n == run->model.n_entries)) {
            for (size_t i = 0; i < run->model.capacity; i++) {
                if (run->model.lives[i] &&
                    !HASH_EXPECT(run, indices[at++] == (int32_t)i)) {
                    break;
                }
            }
        }
        free(indices);
        free(n);
    }
    vxd_device_free(env->queue, &d_indices);
    vxd_device_free(env->queue, &d_n);
}

static const int32_t *all_numbers(const struct hash_run *run, size_t *n)
{
    size_t capacity = run->model.capacity;
    int32_t *numbers = gpu_alloc((capacity + N_STRANGE) * sizeof *numbers);

    for (size_t i = 0; i < capacity; i++) {
        numbers[i] = (int32_t)(capacity - 1 - i);
    }
    numbers[capacity] = VXD_NO_ENTRY;
    numbers[capacity + 1] = (int32_t)capacity;
    numbers[capacity + 2] = INT32_MAX;
    numbers[capacity + 3] = INT32_MIN;
    *n = capacity + N_STRANGE;
    return numbers;
}

/* Checks rows by descending number, then zero rows. */
static bool rows_agree(const struct hash_run *run, const void *gathered,
                       const unsigned char *model_rows, size_t row_bytes)
{
    static const unsigned char zero[VXD_HASHMAP_MAX_ROW_BYTES];
    const unsigned char *row = gathered;
    size_t capacity = run->model.capacity;
    bool agrees = true;

    for (size_t i = 0; i < capacity; i++) {
        agrees =
            agrees && memcmp(row + i * row_bytes,
                             model_rows + (capacity - 1 - i) * row_bytes, row_bytes) == 0;
    }
    for (size_t i = 0; i < N_STRANGE; i++) {
        agrees = agrees && memcmp(row + (capacity + i) * row_bytes, zero, row_bytes) == 0;
    }
    return agrees;
}

static void verify_rows(struct hash_run *run)
{
    struct gpu_env *env = run->env;
    size_t n;
    const int32_t *numbers = all_numbers(run, &n);
    struct vxd_buffer d_numbers = gpu_to_device(env, numbers, n * sizeof *numbers);
    struct vxd_buffer d_keys = gpu_to_device(env, NULL, n * run->model.key_bytes);
    struct vxd_buffer d_valid = gpu_to_device(env, NULL, n);
    struct vxd_buffer d_values[VXD_HASHMAP_MAX_VALUES] = {{0}};
    void *values[VXD_HASHMAP_MAX_VALUES] = {NULL};
    int skipped = run->step % 5; /* one array is not requested */
    struct vxd_err err = {0};
    uint8_t *valid;
    void *rows;

    for (int v = 0; v < run->model.spec.n_values; v++) {
        if (v != skipped) {
            d_values[v] = gpu_to_device(env, NULL, n * run->model.row_bytes[v]);
            values[v] = d_values[v].ptr;
        }
    }
    if (!is_ok(run,
               vxd_hashmap_gather(env->queue, run->map, d_numbers.ptr, n, d_keys.ptr,
                                  run->model.spec.n_values > 0 ? values : NULL,
                                  d_valid.ptr, &err),
               &err)) {
        exit(EXIT_FAILURE);
    }
    rows = gpu_to_host(env, &d_keys);
    HASH_EXPECT(run, rows_agree(run, rows, run->model.keys, run->model.key_bytes));
    free(rows);
    valid = gpu_to_host(env, &d_valid);
    HASH_EXPECT(run, rows_agree(run, valid, run->model.lives, 1));
    free(valid);
    for (int v = 0; v < run->model.spec.n_values; v++) {
        if (v != skipped) {
            rows = gpu_to_host(env, &d_values[v]);
            HASH_EXPECT(run, rows_agree(run, rows, run->model.values[v],
                                        run->model.row_bytes[v]));
            free(rows);
        }
        vxd_device_free(env->queue, &d_values[v]);
    }
    vxd_device_free(env->queue, &d_numbers);
    vxd_device_free(env->queue, &d_keys);
    vxd_device_free(env->queue, &d_valid);
    free((void *)(uintptr_t)numbers);
}

/* Checks that rows of entries that do not live are zero in the buffers themselves. */
static void verify_buffers(struct hash_run *run)
{
    const unsigned char *key_rows;
    size_t n_bytes = run->model.capacity * run->model.key_bytes;
    struct vxd_buffer buffer = {.ptr = (void *)(uintptr_t)vxd_hashmap_keys(run->map),
                                .n_bytes = n_bytes};
    unsigned char *host;
    bool agrees = true;

    if (run->model.capacity == 0) {
        return;
    }
    host = gpu_to_host(run->env, &buffer);
    for (size_t i = 0; i < run->model.capacity; i++) {
        key_rows = run->model.keys + i * run->model.key_bytes;
        agrees = agrees &&
                 (!run->model.lives[i] || memcmp(host + i * run->model.key_bytes,
                                                 key_rows, run->model.key_bytes) == 0);
    }
    HASH_EXPECT(run, agrees);
    free(host);
    for (int v = 0; v < run->model.spec.n_values; v++) {
        buffer.ptr = vxd_hashmap_values(run->map, v);
        buffer.n_bytes = run->model.capacity * run->model.row_bytes[v];
        host = gpu_to_host(run->env, &buffer);
        HASH_EXPECT(run, memcmp(host, run->model.values[v], buffer.n_bytes) == 0);
        free(host);
    }
}

static void verify_stats(struct hash_run *run)
{
    size_t n_entries = run->model.n_entries;
    struct vxd_hashmap_stats stats;
    struct vxd_err err = {0};
    uint64_t n_probed = 0;

    if (!is_ok(run, vxd_hashmap_get_stats(run->env->queue, run->map, &stats, &err),
               &err)) {
        return;
    }
    for (int i = 0; i < VXD_PROBE_BINS; i++) {
        n_probed += stats.probes[i];
    }
    HASH_EXPECT(run, stats.n_entries == n_entries);
    HASH_EXPECT(run, stats.capacity == run->model.capacity);
    HASH_EXPECT(run, stats.n_bytes == vxd_hashmap_n_bytes(run->map));
    HASH_EXPECT(run, stats.index_bytes <= stats.n_bytes);
    HASH_EXPECT(run, stats.load >= 0.0 && stats.load <= 1.0);
    HASH_EXPECT(run, n_probed == n_entries);
    HASH_EXPECT(run, (stats.max_probes >= 1) == (n_entries > 0));
    HASH_EXPECT(run, stats.mean_probes <= (double)stats.max_probes);
    HASH_EXPECT(run, n_entries == 0 || stats.mean_probes >= 1.0);
    HASH_EXPECT(run, (stats.load > 0.0) == (n_entries > 0));
    HASH_EXPECT(run, n_entries > 0 ? stats.bytes_per_key ==
                                         (double)stats.index_bytes / (double)n_entries
                                   : stats.bytes_per_key == 0.0);
}

void hash_run_verify(struct hash_run *run)
{
    struct vxd_err err = {0};
    size_t n_entries = 0;

    HASH_EXPECT(run, vxd_hashmap_size_bound(run->map) >= run->model.n_entries);
    verify_active(run);
    if (is_ok(run, vxd_hashmap_size(run->env->queue, run->map, &n_entries, &err), &err)) {
        HASH_EXPECT(run, n_entries == run->model.n_entries);
        HASH_EXPECT(run, vxd_hashmap_size_bound(run->map) == n_entries);
    }
    HASH_EXPECT(run, vxd_hashmap_capacity(run->map) == run->model.capacity);
    HASH_EXPECT(run, vxd_hashmap_erase_epoch(run->map) == run->epoch);
    verify_rows(run);
    verify_buffers(run);
    verify_stats(run);
    gpu_wait(run->env);
}

/* Adds the entries of `from` that are (or are not) in `other`, by ascending number. */
static void add_entries(struct hash_model *to, const struct hash_model *from,
                        const struct hash_model *other, bool wants_both)
{
    for (size_t i = 0; i < from->capacity; i++) {
        const unsigned char *key = from->keys + i * from->key_bytes;

        if (from->lives[i] &&
            (hash_model_find(other, key) != VXD_NO_ENTRY) == wants_both) {
            (void)hash_model_add(to, key, VXD_NO_ENTRY, (const void *const *)from->values,
                                 i);
        }
    }
}

void hash_run_combine(struct hash_run *a, struct hash_run *b,
                      enum hash_set_operation operation)
{
    struct vxd_queue *queue = a->env->queue;
    struct hash_run out = *a;
    struct hash_model nothing;
    struct vxd_err err = {0};
    enum vxd_status status;

    if (operation == HASH_UNION) {
        status = vxd_hashmap_union(queue, a->map, b->map, &out.map, &err);
    } else if (operation == HASH_INTERSECTION) {
        status = vxd_hashmap_intersection(queue, a->map, b->map, &out.map, &err);
    } else {
        status = vxd_hashmap_difference(queue, a->map, b->map, &out.map, &err);
    }
    if (!is_ok(a, status, &err)) {
        return;
    }
    hash_model_init(&nothing, &a->model.spec, 0);
    hash_model_init(&out.model, &a->model.spec, vxd_hashmap_capacity(out.map));
    if (operation == HASH_UNION) {
        add_entries(&out.model, &a->model, &nothing, false);
        add_entries(&out.model, &b->model, &a->model, false);
    } else {
        add_entries(&out.model, &a->model, &b->model, operation == HASH_INTERSECTION);
    }
    out.epoch = vxd_hashmap_erase_epoch(out.map);
    hash_run_verify(&out);
    hash_run_find(&out, b->model.keys, b->model.capacity);
    a->n_failures = out.n_failures;
    hash_model_free(&nothing);
    hash_run_destroy(&out);
    hash_run_verify(
        b); /* neither map may have changed; the caller's next steps verify a */
}

static void expect_image(struct hash_run *run, const struct vxd_hashmap_image *image)
{
    const int32_t *indices = image->indices.ptr;
    const unsigned char *keys = image->keys.ptr;
    size_t at = 0;

    HASH_EXPECT(run, image->spec.capacity == run->model.capacity);
    HASH_EXPECT(run, image->spec.index == run->model.spec.index);
    HASH_EXPECT(run, image->erase_epoch == run->epoch);
    if (!HASH_EXPECT(run, image->n_entries == run->model.n_entries)) {
        return;
    }
    for (size_t i = 0; i < run->model.capacity; i++) {
        bool agrees;

        if (!run->model.lives[i]) {
            continue;
        }
        agrees =
            indices[at] == (int32_t)i &&
            memcmp(keys + at * run->model.key_bytes,
                   run->model.keys + i * run->model.key_bytes, run->model.key_bytes) == 0;
        for (int v = 0; v < run->model.spec.n_values; v++) {
            size_t n = run->model.row_bytes[v];

            agrees = agrees && memcmp((const char *)image->values[v].ptr + at * n,
                                      run->model.values[v] + i * n, n) == 0;
        }
        if (!HASH_EXPECT(run, agrees)) {
            return;
        }
        at++;
    }
}

/* Replaces the map of the run by `map`. */
static void replace(struct hash_run *run, struct vxd_hashmap *map,
                    enum vxd_hash_index index)
{
    vxd_hashmap_destroy(run->env->queue, run->map);
    run->map = map;
    run->model.spec.index = index;
    HASH_EXPECT(run, vxd_hashmap_get_spec(map)->index == index);
    HASH_EXPECT(run, vxd_hashmap_capacity(map) >= run->model.capacity);
    HASH_EXPECT(run, vxd_hashmap_erase_epoch(map) == run->epoch);
    hash_model_grow(&run->model, vxd_hashmap_capacity(map));
    hash_run_verify(run);
}

void hash_run_through_image(struct hash_run *run, enum vxd_hash_index index)
{
    struct vxd_hashmap_image image;
    struct vxd_hashmap *map;
    struct vxd_err err = {0};

    if (!is_ok(run, vxd_hashmap_export(run->env->queue, run->map, &image, &err), &err)) {
        return;
    }
    expect_image(run, &image);
    image.spec.index = index;
    if (is_ok(run, vxd_hashmap_import(run->env->queue, &image, &map, &err), &err)) {
        replace(run, map, index);
    }
    vxd_hashmap_image_free(&image);
}

void hash_run_through_copy(struct hash_run *run, enum vxd_hash_index index)
{
    struct vxd_queue *queue = run->env->queue;
    struct vxd_hashmap *map;
    struct vxd_err err = {0};

    if (is_ok(run, vxd_hashmap_copy(queue, run->map, queue, index, &map, &err), &err)) {
        replace(run, map, index);
    }
}
