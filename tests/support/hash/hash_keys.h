// SPDX-License-Identifier: Apache-2.0
/* Keys that are hard on a hash map. */
#ifndef VXD_TESTS_SUPPORT_HASH_HASH_KEYS_H
#define VXD_TESTS_SUPPORT_HASH_HASH_KEYS_H

#include "gpu/hash/hash.h"

enum hash_key_kind {
    HASH_KEYS_SMALL, /* components near 0, negative ones too: many equal */
    HASH_KEYS_EDGES, /* extremes of the dtype, of the packed form, and next to them */
    HASH_KEYS_MIXED, /* half near 0, half anywhere in the dtype: packed and wide */
    HASH_KEYS_HIGH,  /* mixed tags that agree in their high bits: one bucket */
    HASH_KEYS_LOW,   /* in their low bits */
    HASH_KEYS_TWINS, /* distinct wide keys of one fingerprint; int64 with 2 components or
                      * more, others get MIXED */
    HASH_N_KEY_KINDS
};

/* n rows of the spec's keys at `out`; some may be equal. Bits that agree (HIGH, LOW): for
 * int32 x 3, 40; otherwise 7. */
void hash_keys_make(const struct vxd_hashmap_spec *spec, enum hash_key_kind kind,
                    uint64_t *random, void *out, size_t n);

#endif
