// SPDX-License-Identifier: Apache-2.0
/* Keys that are difficult for a hash map. */
#ifndef VXD_TESTS_SUPPORT_HASH_HASH_KEYS_H
#define VXD_TESTS_SUPPORT_HASH_HASH_KEYS_H

#include "gpu/hash/hash.h"

enum hash_key_kind {
    HASH_KEYS_SMALL, /* components near 0, also negative: many are equal */
    /* extremes of the dtype, of the packed form, and their neighbours */
    HASH_KEYS_EDGES,
    HASH_KEYS_MIXED, /* half near 0, half anywhere in the dtype: packed and wide */
    HASH_KEYS_HIGH,  /* hashed tags that agree in their high bits: one bucket */
    HASH_KEYS_LOW,   /* hashed tags that agree in their low bits */
    /* distinct wide keys with one fingerprint; int64 with 2 components or more, other
     * specs get MIXED */
    HASH_KEYS_SAME_FINGERPRINT,
    HASH_N_KEY_KINDS
};

/* Writes n rows of the spec's keys to `out`; some may be equal. Number of bits that
 * agree (HIGH, LOW): 40 for int32 x 3, otherwise 7. */
void hash_keys_make(const struct vxd_hashmap_spec *spec, enum hash_key_kind kind,
                    uint64_t *random, void *out, size_t n);

#endif
