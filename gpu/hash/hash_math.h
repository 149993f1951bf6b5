// SPDX-License-Identifier: Apache-2.0
/* What code outside this folder compiles on both backends: keys and tags, the map behind the opaque
 * name, the tables of functions of an index, and how one key is looked up between steps of others. */
#ifndef VXD_GPU_HASH_HASH_MATH_H
#define VXD_GPU_HASH_HASH_MATH_H

#include "gpu/hash/hash_internal.h"
#include "gpu/hash/hashmap_math.h"

/* A map with open addressing whose keys are three int32, for kernels that look keys up themselves
 * while nothing changes the map. The slots of both backends are 16 bytes, four a line: the tag, then
 * the entry's number in the lower half of the second word. */
struct vxd_hash_lookup {
    const uint64_t *slots;
    uint32_t n_lines;
    uint32_t is_cuda; /* whose home line follows from all bits of the hash */
};

/* The lookup of a map as it is until it grows. */
static inline struct vxd_hash_lookup vxd_hash_lookup_of(const struct vxd_hashmap *map)
{
    return (struct vxd_hash_lookup){
        (const uint64_t *)map->index.ptr, (uint32_t)(map->index.n_bytes / 64),
        vxd_context_backend(map->context) == VXD_BACKEND_CUDA ? 1u : 0u};
}

/* The packed tag of a key; false where a component is outside 21 bits. */
VXD_HD bool vxd_hash_tag3(const int32_t key[3], uint64_t *tag)
{
    uint64_t x = (uint64_t)(int64_t)key[0] + (1u << 20);
    uint64_t y = (uint64_t)(int64_t)key[1] + (1u << 20);
    uint64_t z = (uint64_t)(int64_t)key[2] + (1u << 20);

    *tag = x << 42 | y << 21 | z;
    return (x | y | z) >> 21 == 0;
}

VXD_HD uint32_t vxd_hash_home3(const struct vxd_hash_lookup *lookup, uint64_t tag)
{
    uint64_t hash = vxd_mix64(tag);
    uint64_t carry =
        lookup->is_cuda != 0 ? (hash & 0xffffffffu) * lookup->n_lines >> 32 : 0;

    return (uint32_t)(((hash >> 32) * lookup->n_lines + carry) >> 32);
}

/* The entry of a packed key, or VXD_NO_ENTRY. An insert fills a line before it goes on to the next
 * one, and an erase leaves no slot EMPTY, so a line with an EMPTY slot is the last one. */
VXD_HD int32_t vxd_hash_find3(const struct vxd_hash_lookup *lookup, uint64_t tag)
{
    uint32_t line = vxd_hash_home3(lookup, tag);

    for (uint32_t n = lookup->n_lines; n > 0; n--) {
        const uint64_t *slot = lookup->slots + (size_t)line * 8;
        bool is_last = false;

        for (int i = 0; i < 4; i++) {
            if (slot[2 * (size_t)i] == tag) {
                return (int32_t)(uint32_t)slot[2 * (size_t)i + 1];
            }
            is_last = is_last || slot[2 * (size_t)i] == VXD_TAG_EMPTY;
        }
        if (is_last) {
            break;
        }
        line = line + 1 < lookup->n_lines ? line + 1 : 0;
    }
    return VXD_NO_ENTRY;
}

#endif
