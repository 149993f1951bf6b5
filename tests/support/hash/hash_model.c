// SPDX-License-Identifier: Apache-2.0
#include "tests/support/hash/hash_model.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/gpu/gpu_helpers.h"

static void *zeros(size_t n_bytes)
{
    void *bytes = gpu_alloc(n_bytes);

    memset(bytes, 0, n_bytes > 0 ? n_bytes : 1);
    return bytes;
}

static size_t bucket_of(const struct hash_model *model, const void *key)
{
    return gpu_digest(GPU_FNV_START, key, model->key_bytes) % model->n_buckets;
}

static void link_entry(struct hash_model *model, size_t number)
{
    size_t bucket = bucket_of(model, model->keys + number * model->key_bytes);

    model->next[number] = model->heads[bucket];
    model->heads[bucket] = (int32_t)number;
}

static void make_buckets(struct hash_model *model)
{
    model->n_buckets = 2 * model->capacity + 1;
    model->heads = gpu_alloc(model->n_buckets * sizeof *model->heads);
    model->next = gpu_alloc(model->capacity * sizeof *model->next);
    for (size_t i = 0; i < model->n_buckets; i++) {
        model->heads[i] = VXD_NO_ENTRY;
    }
}

void hash_model_init(struct hash_model *model, const struct vxd_hashmap_spec *spec,
                     size_t capacity)
{
    *model = (struct hash_model){.spec = *spec, .capacity = capacity};
    model->key_bytes = (size_t)spec->n_components * vxd_dtype_bytes(spec->key_dtype);
    model->keys = zeros(capacity * model->key_bytes);
    model->lives = zeros(capacity);
    for (int v = 0; v < spec->n_values; v++) {
        model->row_bytes[v] =
            spec->values[v].n_elements * vxd_dtype_bytes(spec->values[v].dtype);
        model->values[v] = zeros(capacity * model->row_bytes[v]);
    }
    make_buckets(model);
}

void hash_model_free(struct hash_model *model)
{
    free(model->keys);
    free(model->lives);
    for (int v = 0; v < model->spec.n_values; v++) {
        free(model->values[v]);
    }
    free(model->heads);
    free(model->next);
}

static unsigned char *grow_rows(unsigned char *rows, size_t n_old, size_t n_new,
                                size_t row_bytes)
{
    unsigned char *out = zeros(n_new * row_bytes);

    memcpy(out, rows, n_old * row_bytes);
    free(rows);
    return out;
}

void hash_model_grow(struct hash_model *model, size_t capacity)
{
    size_t old = model->capacity;

    if (capacity <= old) {
        return;
    }
    model->keys = grow_rows(model->keys, old, capacity, model->key_bytes);
    model->lives = grow_rows(model->lives, old, capacity, 1);
    for (int v = 0; v < model->spec.n_values; v++) {
        model->values[v] =
            grow_rows(model->values[v], old, capacity, model->row_bytes[v]);
    }
    free(model->heads);
    free(model->next);
    model->capacity = capacity;
    make_buckets(model);
    for (size_t i = 0; i < old; i++) {
        if (model->lives[i]) {
            link_entry(model, i);
        }
    }
}

int32_t hash_model_find(const struct hash_model *model, const void *key)
{
    int32_t at = model->heads[bucket_of(model, key)];

    while (at != VXD_NO_ENTRY && memcmp(model->keys + (size_t)at * model->key_bytes, key,
                                        model->key_bytes) != 0) {
        at = model->next[at];
    }
    return at;
}

int32_t hash_model_add(struct hash_model *model, const void *key, int32_t number,
                       const void *const *values, size_t row)
{
    size_t at = (size_t)number;

    if (number == VXD_NO_ENTRY) {
        while (model->lowest < model->capacity && model->lives[model->lowest]) {
            model->lowest++;
        }
        at = model->lowest;
    }
    if (at >= model->capacity || model->lives[at]) {
        (void)fprintf(stderr, "the model has no room for entry %zu\n", at);
        exit(EXIT_FAILURE);
    }
    model->lives[at] = 1;
    model->n_entries++;
    memcpy(model->keys + at * model->key_bytes, key, model->key_bytes);
    for (int v = 0; v < model->spec.n_values && values != NULL; v++) {
        size_t n = model->row_bytes[v];

        memcpy(model->values[v] + at * n, (const unsigned char *)values[v] + row * n, n);
    }
    link_entry(model, at);
    return (int32_t)at;
}

int32_t hash_model_erase(struct hash_model *model, const void *key)
{
    int32_t number = hash_model_find(model, key);
    size_t at = (size_t)number;
    int32_t *link;

    if (number == VXD_NO_ENTRY) {
        return number;
    }
    link = &model->heads[bucket_of(model, key)];
    while (*link != number) {
        link = &model->next[*link];
    }
    *link = model->next[at];
    model->lives[at] = 0;
    model->n_entries--;
    if (at < model->lowest) {
        model->lowest = at;
    }
    memset(model->keys + at * model->key_bytes, 0, model->key_bytes);
    for (int v = 0; v < model->spec.n_values; v++) {
        memset(model->values[v] + at * model->row_bytes[v], 0, model->row_bytes[v]);
    }
    return number;
}

void hash_model_clear(struct hash_model *model)
{
    struct vxd_hashmap_spec spec = model->spec;
    size_t capacity = model->capacity;

    hash_model_free(model);
    hash_model_init(model, &spec, capacity);
}

size_t hash_model_count_new(const struct hash_model *model, const void *keys, size_t n)
{
    struct vxd_hashmap_spec spec = model->spec;
    const unsigned char *rows = keys;
    struct hash_model fresh;
    size_t n_new;

    spec.n_values = 0;
    hash_model_init(&fresh, &spec, n);
    for (size_t i = 0; i < n; i++) {
        const unsigned char *key = rows + i * model->key_bytes;

        if (hash_model_find(model, key) == VXD_NO_ENTRY &&
            hash_model_find(&fresh, key) == VXD_NO_ENTRY) {
            (void)hash_model_add(&fresh, key, VXD_NO_ENTRY, NULL, 0);
        }
    }
    n_new = fresh.n_entries;
    hash_model_free(&fresh);
    return n_new;
}

int64_t hash_model_component(const struct vxd_hashmap_spec *spec, const void *key, int c)
{
    int16_t short_value;
    int32_t int_value;
    int64_t long_value;

    switch (spec->key_dtype) {
    case VXD_INT16:
        memcpy(&short_value, (const char *)key + 2 * (size_t)c, sizeof short_value);
        return short_value;
    case VXD_INT32:
        memcpy(&int_value, (const char *)key + 4 * (size_t)c, sizeof int_value);
        return int_value;
    default:
        memcpy(&long_value, (const char *)key + 8 * (size_t)c, sizeof long_value);
        return long_value;
    }
}

bool hash_model_set_component(const struct vxd_hashmap_spec *spec, void *key, int c,
                              int64_t value)
{
    int16_t short_value = (int16_t)value;
    int32_t int_value = (int32_t)value;

    switch (spec->key_dtype) {
    case VXD_INT16:
        if (value < INT16_MIN || value > INT16_MAX) {
            return false;
        }
        memcpy((char *)key + 2 * (size_t)c, &short_value, sizeof short_value);
        return true;
    case VXD_INT32:
        if (value < INT32_MIN || value > INT32_MAX) {
            return false;
        }
        memcpy((char *)key + 4 * (size_t)c, &int_value, sizeof int_value);
        return true;
    default:
        memcpy((char *)key + 8 * (size_t)c, &value, sizeof value);
        return true;
    }
}

bool hash_model_neighbour(const struct hash_model *model, const void *key, int kind,
                          int column, void *out)
{
    static const int faces[6][3] = {{-1, 0, 0}, {1, 0, 0},  {0, -1, 0},
                                    {0, 1, 0},  {0, 0, -1}, {0, 0, 1}};
    int first = model->spec.n_components - 3;
    int low = kind == 27 ? -1 : 0;
    int base = kind == 27 ? 3 : 2;

    memcpy(out, key, model->key_bytes);
    for (int axis = 0; axis < 3; axis++) {
        int place = axis == 0 ? base * base : axis == 1 ? base : 1;
        int step = kind == 6 ? faces[column][axis] : column / place % base + low;
        int64_t value = hash_model_component(&model->spec, key, first + axis);

        if ((step > 0 && value == INT64_MAX) || (step < 0 && value == INT64_MIN) ||
            !hash_model_set_component(&model->spec, out, first + axis, value + step)) {
            return false;
        }
    }
    return true;
}
