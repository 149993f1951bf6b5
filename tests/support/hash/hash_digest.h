// SPDX-License-Identifier: Apache-2.0
/* One digest of the results of hash maps in order FIRST; it is equal on every backend
 * and index. */
#ifndef VXD_TESTS_SUPPORT_HASH_HASH_DIGEST_H
#define VXD_TESTS_SUPPORT_HASH_HASH_DIGEST_H

#include "gpu/hash/hash.h"
#include "tests/support/gpu/gpu_helpers.h"

enum {
    GPU_N_HASH_CASES = 5
};

/* Inserts, erases, inserts again with growth, updates and finds; returns the digest of
 * the outputs of every call and of the exported image. name: "hashmap/..." of the
 * case. */
uint64_t gpu_hash_digest(struct gpu_env *env, int hash_case, enum vxd_hash_index index);
const char *gpu_hash_digest_name(int hash_case);

#endif
