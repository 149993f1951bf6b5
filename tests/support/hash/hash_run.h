// SPDX-License-Identifier: Apache-2.0
/* A map of gpu/hash and its model: every operation runs on both, and the results are
 * compared. Differences are counted in n_failures and printed to stderr. */
#ifndef VXD_TESTS_SUPPORT_HASH_HASH_RUN_H
#define VXD_TESTS_SUPPORT_HASH_HASH_RUN_H

#include "tests/support/hash/hash_model.h"
#include "tests/support/gpu/gpu_helpers.h"

struct hash_run {
    struct gpu_env *env;
    struct vxd_hashmap *map;
    struct hash_model model;
    uint64_t epoch;  /* its value after the last operation */
    const char *why; /* name of the running test, for messages */
    uint64_t seed;   /* likewise */
    int step;        /* likewise */
    int n_failures;
};

/* Host arrays of one batch. */
struct hash_batch {
    size_t n;
    unsigned char *keys;
    void *values[VXD_HASHMAP_MAX_VALUES];
};

enum hash_insert_flag {
    HASH_ACTIVATE = 1,   /* inserts without values */
    HASH_NO_INDICES = 2, /* the output is not requested; likewise the next */
    HASH_NO_MASK = 4,
    HASH_UNPREPARED = 8 /* inserts without prepare; only the bound may cause a refusal */
};

#define HASH_EXPECT(run, condition)                                                      \
    hash_run_expect((run), (condition), #condition, __FILE__, __LINE__)
bool hash_run_expect(struct hash_run *run, bool holds, const char *what, const char *file,
                     int line);

/* Calls body for both indices on every backend. */
void hash_each(void (*body)(struct gpu_env *env, enum vxd_hash_index index));

void hash_run_create(struct hash_run *run, struct gpu_env *env,
                     const struct vxd_hashmap_spec *spec, const char *why);
void hash_run_destroy(struct hash_run *run);

/* flags: bits of enum hash_insert_flag. */
void hash_run_insert(struct hash_run *run, const struct hash_batch *batch,
                     enum vxd_hash_order order, int flags);
void hash_run_find(struct hash_run *run, const void *keys, size_t n);
void hash_run_erase(struct hash_run *run, const void *keys, size_t n,
                    enum vxd_hash_order order, bool wants_mask);
void hash_run_clear(struct hash_run *run);
void hash_run_reserve(struct hash_run *run, size_t capacity);
/* args: host arrays; updated is not used. */
void hash_run_update(struct hash_run *run, const struct vxd_hashmap_update_args *args);
void hash_run_neighbours(struct hash_run *run, const void *keys, size_t n, int kind);

/* Verifies everything that can be read: size, bound, active numbers, every row,
 * statistics. */
void hash_run_verify(struct hash_run *run);

enum hash_set_operation {
    HASH_UNION,
    HASH_INTERSECTION,
    HASH_DIFFERENCE
};
void hash_run_combine(struct hash_run *a, struct hash_run *b,
                      enum hash_set_operation operation);

/* Replaces the map by the result of an export and an import with the index; then
 * checks that the bytes of an image depend on the model alone. */
void hash_run_through_image(struct hash_run *run, enum vxd_hash_index index);
void hash_run_through_copy(struct hash_run *run, enum vxd_hash_index index);

#endif
