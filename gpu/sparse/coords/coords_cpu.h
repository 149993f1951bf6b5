// SPDX-License-Identifier: Apache-2.0
/* What the CPU's set operations and kernel maps share: how a set is made from sorted keys, and how
 * blocks are looked up.
 *
 * A slot of the block table is 0 (empty) or has the upper half of the block's hash above the
 * block's number plus one. The table uses the least power of two that leaves half of it empty,
 * even if the set has more slots, so a large capacity costs nothing. */
#ifndef VXD_GPU_SPARSE_COORDS_COORDS_CPU_H
#define VXD_GPU_SPARSE_COORDS_COORDS_CPU_H

#include <string.h>

#include "gpu/core/core.h"
#include "gpu/sparse/coords/coord_set_backends.h"
#include "gpu/sparse/coords/coords_math.h"

#define VXD_SPARSE_PIECE ((size_t)8192)
#define VXD_SPARSE_NO_BLOCK UINT32_MAX

/* Scratch of one operation, with n_candidates items in each array but those of pieces. */
struct vxd_sparse_scratch {
    uint64_t *keys;
    uint64_t *spare_keys;
    uint32_t *indices;
    uint32_t *spare_indices;
    uint32_t *piece_rows; /* one a piece, n_candidates / VXD_SPARSE_PIECE + 2 */
    uint32_t *piece_blocks;
    void *sort;
};

/* errors  INTERNAL  scratch_bytes differs from what the public entry computes */
enum vxd_status vxd_sparse_scratch_init(struct vxd_pool *pool, size_t n_candidates,
                                        void *scratch, size_t scratch_bytes,
                                        struct vxd_sparse_scratch *out,
                                        struct vxd_err *err);

/* Makes the set of n ascending keys, which may contain duplicates: rows, blocks, table.
 *
 * in      keys     may be set->keys itself, but then without duplicates
 *         indices  of each key; NULL where rows is NULL
 * out     rows     rows[indices[i]] = row of keys[i]
 * errors  RESOURCE_EXHAUSTED  more rows than the capacity; the set is empty */
enum vxd_status vxd_coord_set_finish(struct vxd_pool *pool, const uint64_t *keys,
                                     const uint32_t *indices, size_t n,
                                     const struct vxd_coord_set *coord_set, int32_t *rows,
                                     const struct vxd_sparse_scratch *scratch,
                                     struct vxd_err *err);

/* Turns the counts of pieces into the offsets where they begin; returns the total. */
size_t vxd_sparse_counts_to_starts(uint32_t *counts, size_t n_pieces);

/* Index of the first of n ascending keys that is not less than `key`; n if there is
 * none. */
size_t vxd_sparse_lower_bound(const uint64_t *keys, size_t n, uint64_t key);

static inline size_t vxd_sparse_n_pieces(size_t n)
{
    return (n + VXD_SPARSE_PIECE - 1) / VXD_SPARSE_PIECE;
}

/* Number of slots that the table uses, minus one. */
static inline uint64_t vxd_sparse_slot_mask(uint32_t n_blocks)
{
    uint64_t n_slots = 2;

    while (n_slots < 2 * (uint64_t)n_blocks) {
        n_slots *= 2;
    }
    return n_slots - 1;
}

static inline uint32_t vxd_sparse_find_block(const struct vxd_coord_set *coord_set,
                                             uint64_t slot_mask, uint64_t block)
{
    uint64_t hash = vxd_sparse_block_hash(block);

    for (uint64_t at = hash & slot_mask;; at = (at + 1) & slot_mask) {
        uint64_t slot = coord_set->slots[at];
        uint32_t number = (uint32_t)slot - 1;

        if (slot == 0) {
            return VXD_SPARSE_NO_BLOCK;
        }
        if (slot >> 32 == hash >> 32 && coord_set->block_keys[number] == block) {
            return number;
        }
    }
}

#endif
