// SPDX-License-Identifier: Apache-2.0
/* One hash map under load: keys on the device and the operations that are timed. */
#ifndef VXD_TESTS_BENCH_GPU_BENCH_HASHMAP_LOAD_H
#define VXD_TESTS_BENCH_GPU_BENCH_HASHMAP_LOAD_H

#include "gpu/hash/hash.h"
#include "tests/bench/support/bench_device.h"

#define HASH_MAX_REPEAT 1000

enum hash_operation {
    HASH_INSERT_ANY,
    HASH_INSERT_FIRST,
    HASH_ACTIVATE, /* order ANY, no values */
    HASH_FIND,
    HASH_ERASE, /* order ANY */
    HASH_N_OPERATIONS
};

/* As they are printed in tables and CSV files. */
extern const char *const hash_operation_names[HASH_N_OPERATIONS];

struct hash_load_args {
    enum vxd_hash_index index;
    size_t n;          /* keys in a batch, and the map's capacity */
    double uniqueness; /* distinct keys / n */
    bool is_scalar;    /* int32 keys; else int32 x 3, 21 bits each */
    /* One array: float32 x value_bytes / 4. */
    size_t value_bytes;
};

struct hash_load {
    struct bench_device *device; /* borrowed */
    struct hash_load_args args;
    size_t n_unique;
    struct vxd_hashmap *map;
    struct vxd_buffer keys, values, indices, mask;
};

/* Distinct keys come from a bijection of a counter, and equal ones are scattered over
 * the batch. On failure nothing stays allocated. */
enum vxd_status hash_load_make(struct bench_device *device,
                               const struct hash_load_args *args, struct hash_load *out,
                               struct vxd_err *err);
void hash_load_free(struct hash_load *load);

/* Approximate device bytes that a load takes, rather too many. */
size_t hash_load_bytes(const struct hash_load_args *args);

/* Medians of n_repeat runs, each on a map in the same state (empty for inserts, full
 * for find and erase). wall_s: from the call to the end of the wait; may be NULL. */
enum vxd_status hash_load_time(struct hash_load *load, enum hash_operation operation,
                               int n_repeat, double *device_s, double *wall_s,
                               struct vxd_err *err);

#endif
