// SPDX-License-Identifier: Apache-2.0
/* A plain map with which gpu/hash is compared: chained buckets over the keys' bytes,
 * one key at a time, written from the contract in gpu/hash/hash.h and from nothing
 * else. All arrays are host memory. */
#ifndef VXD_TESTS_SUPPORT_HASH_HASH_MODEL_H
#define VXD_TESTS_SUPPORT_HASH_HASH_MODEL_H

#include "gpu/hash/hash.h"

struct hash_model {
    struct vxd_hashmap_spec spec;
    size_t key_bytes;
    size_t row_bytes[VXD_HASHMAP_MAX_VALUES];
    size_t capacity;
    size_t n_entries;
    size_t lowest; /* no number less than this is free */
    size_t n_buckets;
    unsigned char *keys; /* capacity rows, zero where no entry lives; values likewise */
    unsigned char *values[VXD_HASHMAP_MAX_VALUES];
    unsigned char *lives;
    int32_t *heads;
    int32_t *next;
};

/* A failed allocation ends the program, as in the other helpers. */
void hash_model_init(struct hash_model *model, const struct vxd_hashmap_spec *spec,
                     size_t capacity);
void hash_model_free(struct hash_model *model);

/* Entries keep their numbers. */
void hash_model_grow(struct hash_model *model, size_t capacity);

int32_t hash_model_find(const struct hash_model *model, const void *key);

/* Adds a key that is not in the model, with the lowest free number when `number` is
 * VXD_NO_ENTRY; returns the number. Row `row` of every array of `values` is copied;
 * NULL: zeros. */
int32_t hash_model_add(struct hash_model *model, const void *key, int32_t number,
                       const void *const *values, size_t row);

/* Returns the number that became free, or VXD_NO_ENTRY. */
int32_t hash_model_erase(struct hash_model *model, const void *key);
void hash_model_clear(struct hash_model *model);

/* How many of n keys are not in the model; equal keys count once. */
size_t hash_model_count_new(const struct hash_model *model, const void *keys, size_t n);

/* vxd_hashmap_update over host arrays; args->updated may be NULL. */
void hash_model_update(struct hash_model *model,
                       const struct vxd_hashmap_update_args *args);

/* The key of neighbour `column`; false where it is out of the dtype's range. */
bool hash_model_neighbour(const struct hash_model *model, const void *key, int kind,
                          int column, void *out);

int64_t hash_model_component(const struct vxd_hashmap_spec *spec, const void *key, int c);
/* Returns false where the dtype cannot hold the value, and then writes nothing. */
bool hash_model_set_component(const struct vxd_hashmap_spec *spec, void *key, int c,
                              int64_t value);

#endif
