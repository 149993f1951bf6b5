// SPDX-License-Identifier: Apache-2.0
#include "tests/support/hash/hash_digest.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/hash/hash_keys.h"

struct hash_case {
    const char *name;
    enum vxd_dtype key_dtype;
    int n_components;
    enum hash_key_kind kind;
    size_t n;
    struct vxd_hashmap_array values[2];
};

static const struct hash_case cases[GPU_N_HASH_CASES] = {
    {"hashmap/int3/100000",
     VXD_INT32,
     3,
     HASH_KEYS_MIXED,
     100000,
     {{VXD_FLOAT32, 1}, {VXD_UINT64, 1}}},
    {"hashmap/int3-duplicates/100000",
     VXD_INT32,
     3,
     HASH_KEYS_SMALL,
     100000,
     {{VXD_FLOAT64, 2}, {VXD_INT8, 3}}},
    {"hashmap/int3-bucket/3000",
     VXD_INT32,
     3,
     HASH_KEYS_HIGH,
     3000,
     {{VXD_FLOAT16, 5}, {VXD_INT64, 1}}},
    {"hashmap/long4-edges/30000",
     VXD_INT64,
     4,
     HASH_KEYS_EDGES,
     30000,
     {{VXD_BFLOAT16, 1}, {VXD_INT16, 2}}},
    {"hashmap/short8/30000",
     VXD_INT16,
     8,
     HASH_KEYS_MIXED,
     30000,
     {{VXD_INT32, 4}, {VXD_UINT8, 1}}},
};

struct session {
    struct gpu_env *env;
    struct vxd_hashmap *map;
    const struct hash_case *item;
    struct vxd_buffer keys, values[2], indices, mask;
    uint64_t digest;
};

static void require(enum vxd_status status, const struct vxd_err *err)
{
    if (status != VXD_OK) {
        (void)fprintf(stderr, "hash digest: status %d, %s: %s\n", (int)status, err->field,
                      err->message);
        exit(EXIT_FAILURE);
    }
}

static void add_outputs(struct session *s, size_t n)
{
    int32_t *indices = gpu_to_host(s->env, &s->indices);
    uint8_t *mask = gpu_to_host(s->env, &s->mask);

    s->digest = gpu_digest(s->digest, indices, n * sizeof *indices);
    s->digest = gpu_digest(s->digest, mask, n);
    free(indices);
    free(mask);
}

static void insert(struct session *s, size_t first, size_t n)
{
    size_t key_bytes =
        (size_t)s->item->n_components * vxd_dtype_bytes(s->item->key_dtype);
    const void *values[2];
    struct vxd_hashmap_insert_args args = {.keys =
                                               (char *)s->keys.ptr + first * key_bytes,
                                           .n = n,
                                           .values = values,
                                           .order = VXD_HASH_FIRST,
                                           .indices = s->indices.ptr,
                                           .is_new = s->mask.ptr};
    struct vxd_err err = {0};

    values[0] = s->values[0].ptr;
    values[1] = s->values[1].ptr;
    require(vxd_hashmap_prepare(s->env->queue, s->map, args.keys, n, &args.max_new, &err),
            &err);
    require(vxd_hashmap_insert(s->env->queue, s->map, &args, &err), &err);
    add_outputs(s, n);
}

/* Updates entries with the values of the batch, several of which share a key. */
static void update(struct session *s)
{
    size_t n = s->item->n;
    struct vxd_hashmap_update_args args = {.n = n,
                                           .indices = s->indices.ptr,
                                           .combine = VXD_COMBINE_ADD,
                                           .updated = s->mask.ptr};
    struct vxd_err err = {0};

    require(vxd_hashmap_find(s->env->queue, s->map, s->keys.ptr, n, s->indices.ptr,
                             s->mask.ptr, &err),
            &err);
    add_outputs(s, n);
    for (args.array = 0; args.array < 2; args.array++) {
        args.rows = s->values[args.array].ptr;
        args.dtype = s->item->values[args.array].dtype;
        require(vxd_hashmap_update(s->env->queue, s->map, &args, &err), &err);
    }
    add_outputs(s, n);
}

static void add_image(struct session *s)
{
    struct vxd_hashmap_image image;
    struct vxd_err err = {0};

    require(vxd_hashmap_export(s->env->queue, s->map, &image, &err), &err);
    s->digest = gpu_digest(s->digest, image.indices.ptr, image.indices.n_bytes);
    s->digest = gpu_digest(s->digest, image.keys.ptr, image.keys.n_bytes);
    for (int v = 0; v < 2; v++) {
        s->digest = gpu_digest(s->digest, image.values[v].ptr, image.values[v].n_bytes);
    }
    vxd_hashmap_image_free(&image);
}

/* Small numbers, so that float16 sums stay finite for a while. */
static void *make_values(const struct vxd_hashmap_array *array, size_t n,
                         uint64_t *random)
{
    size_t n_elements = n * array->n_elements;
    size_t size = vxd_dtype_bytes(array->dtype);
    char *rows = gpu_alloc(n_elements * size);

    for (size_t i = 0; i < n_elements; i++) {
        float single = gpu_random_float(random, -8.0f, 8.0f);
        double number = (double)single * 1.1;
        uint64_t bits = gpu_random(random);

        if (array->dtype == VXD_FLOAT16 || array->dtype == VXD_BFLOAT16) {
            bits &= 0xbbff; /* no infinities */
        }
        memcpy(rows + i * size,
               array->dtype == VXD_FLOAT32   ? (const void *)&single
               : array->dtype == VXD_FLOAT64 ? (const void *)&number
                                             : (const void *)&bits,
               size);
    }
    return rows;
}

static void open_session(struct session *s, enum vxd_hash_index index)
{
    const struct hash_case *item = s->item;
    struct vxd_hashmap_spec spec = {.key_dtype = item->key_dtype,
                                    .n_components = item->n_components,
                                    .n_values = 2,
                                    .values = {item->values[0], item->values[1]},
                                    .index = index,
                                    .capacity = 1000};
    size_t key_bytes = (size_t)item->n_components * vxd_dtype_bytes(item->key_dtype);
    char *keys = gpu_alloc(item->n * key_bytes);
    uint64_t random = item->n;
    struct vxd_err err = {0};

    hash_keys_make(&spec, item->kind, &random, keys, item->n);
    s->keys = gpu_to_device(s->env, keys, item->n * key_bytes);
    free(keys);
    for (int v = 0; v < 2; v++) {
        size_t row = item->values[v].n_elements * vxd_dtype_bytes(item->values[v].dtype);
        void *rows = make_values(&item->values[v], item->n, &random);

        s->values[v] = gpu_to_device(s->env, rows, item->n * row);
        free(rows);
    }
    s->indices = gpu_to_device(s->env, NULL, item->n * sizeof(int32_t));
    s->mask = gpu_to_device(s->env, NULL, item->n);
    require(vxd_hashmap_create(s->env->queue, &spec, &s->map, &err), &err);
}

uint64_t gpu_hash_digest(struct gpu_env *env, int hash_case, enum vxd_hash_index index)
{
    struct session s = {.env = env, .item = &cases[hash_case], .digest = GPU_FNV_START};
    size_t n = s.item->n;
    struct vxd_err err = {0};

    open_session(&s, index);
    insert(&s, 0, n / 2);
    require(vxd_hashmap_erase(env->queue, s.map, s.keys.ptr, n / 3, VXD_HASH_FIRST,
                              s.mask.ptr, &err),
            &err);
    add_outputs(&s, n / 3);
    insert(&s, n / 4, n - n / 4);
    update(&s);
    add_image(&s);
    vxd_hashmap_destroy(env->queue, s.map);
    vxd_device_free(env->queue, &s.keys);
    vxd_device_free(env->queue, &s.values[0]);
    vxd_device_free(env->queue, &s.values[1]);
    vxd_device_free(env->queue, &s.indices);
    vxd_device_free(env->queue, &s.mask);
    gpu_wait(env);
    return s.digest;
}

const char *gpu_hash_digest_name(int hash_case)
{
    return cases[hash_case].name;
}
