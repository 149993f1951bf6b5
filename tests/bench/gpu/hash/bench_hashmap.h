// SPDX-License-Identifier: Apache-2.0
/* The sections of bench_hashmap. Each creates its own device and prints Markdown to
 * stdout. */
#ifndef VXD_TESTS_BENCH_GPU_BENCH_HASHMAP_H
#define VXD_TESTS_BENCH_GPU_BENCH_HASHMAP_H

#include "tests/bench/gpu/hash/bench_hashmap_load.h"

#define HASH_MAX_LIST 32

struct hash_options {
    enum vxd_backend backend;
    int n_threads; /* of the CPU backend, 0 = all cores */
    int n_repeat;
    bool has_index[2]; /* by enum vxd_hash_index */
    double n_keys[HASH_MAX_LIST];
    int n_n_keys;
    double capacities[HASH_MAX_LIST];
    int n_capacities;
    FILE *csv; /* of the set-ups; NULL = none */
};

/* Rates of every operation beside the floors and the peers, then latency, creation
 * time and memory. */
enum vxd_status hash_table_run(const struct hash_options *options, struct vxd_err *err);

/* ASH's set-ups 1 (Figures 5, 6, 8) and 2 (Figure 7). */
enum vxd_status hash_setup1_run(const struct hash_options *options, struct vxd_err *err);
enum vxd_status hash_setup2_run(const struct hash_options *options, struct vxd_err *err);

const char *hash_index_name(enum vxd_hash_index index);

#endif
