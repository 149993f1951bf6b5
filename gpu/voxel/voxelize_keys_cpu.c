// SPDX-License-Identifier: Apache-2.0
/* Keys of points, a block at a time: every step is a loop without branches over arrays of a block,
 * so that the compiler uses the processor's vectors, and one loop then keeps the points that have a
 * voxel. Dropped points cost as much as kept ones, and no branch is mispredicted. */
#include "gpu/voxel/voxelize_cpu.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define HAS_AVX2 1
#else
#define HAS_AVX2 0
#endif
/* Into each of the functions that are compiled for a processor. */
#define INLINE static inline __attribute__((always_inline))

enum {
    BLOCK = 256,
    LANES = 8 /* a block's points are filled up to a multiple of these */
};

struct block {
    float position[3][BLOCK];
    int32_t coord[3][BLOCK];
    uint64_t key[BLOCK];
    uint32_t is_finite[BLOCK]; /* 1 or 0 */
    uint32_t is_kept[BLOCK];
};

/* What all blocks of a piece add up to. */
struct sums {
    uint32_t n_finite;
    uint32_t magnitude;
    int32_t sign;
};

/* Coordinates along one axis; those of points that have none are 0. */
INLINE void find_coords(const struct vxd_voxel_lattice *lattice, enum vxd_voxel_rule rule,
                        int axis, size_t n, struct block *block)
{
    const struct vxd_voxel_axis bounds = vxd_voxel_axis_of(lattice, rule, axis);

    for (size_t i = 0; i < n; i++) {
        const float p = block->position[axis][i];
        const float q = vxd_voxel_cell(&bounds, p);
        const uint32_t is_inside = vxd_voxel_has_cell(&bounds, p, q) ? 1 : 0;

        /* The difference is NaN where p is not finite. */
        block->is_finite[i] &= p - p == 0.0F ? 1 : 0;
        block->is_kept[i] &= is_inside;
        block->coord[axis][i] = (int32_t)(is_inside != 0 ? q : 0.0F);
    }
}

INLINE void find_keys(const struct vxd_voxel_lattice *lattice, size_t n,
                      struct block *block, struct sums *sums)
{
    for (size_t i = 0; i < n; i++) {
        const int32_t mask = -(int32_t)block->is_kept[i];

        for (int a = 0; a < 3; a++) {
            const int32_t c = block->coord[a][i] & mask;

            sums->sign |= c;
            sums->magnitude |=
                (uint32_t)(c ^ -(int32_t)(c < 0)); /* ~c where it is negative */
        }
        sums->n_finite += block->is_finite[i];
    }
    for (size_t i = 0; i < n; i++) {
        const int32_t c[3] = {block->coord[0][i], block->coord[1][i], block->coord[2][i]};

        block->key[i] = vxd_voxel_key(lattice, c);
    }
}

INLINE void key_block(const struct vxd_voxel_lattice *lattice, const float *positions,
                      size_t n, struct block *block, struct sums *sums)
{
    const size_t n_full = (n + LANES - 1) / LANES * LANES;

    for (size_t i = 0; i < n; i++) {
        for (size_t a = 0; a < 3; a++) {
            block->position[a][i] = positions[3 * i + a];
        }
    }
    for (size_t i = 0; i < n_full; i++) {
        block->is_finite[i] = i < n;
        block->is_kept[i] = i < n;
    }
    for (size_t i = n; i < n_full; i++) {
        block->position[0][i] = block->position[1][i] = block->position[2][i] = 0;
    }
    for (int a = 0; a < 3; a++) {
        if (lattice->rule == VXD_RULE_SPCONV) {
            find_coords(lattice, VXD_RULE_SPCONV, a, n_full, block);
        } else {
            find_coords(lattice, VXD_RULE_MINKOWSKI, a, n_full, block);
        }
    }
    for (size_t i = 0; i < n_full; i++) {
        block->is_kept[i] &= block->is_finite[i];
    }
    find_keys(lattice, n_full, block, sums);
}

static void key_block_any(const struct vxd_voxel_lattice *lattice, const float *positions,
                          size_t n, struct block *block, struct sums *sums)
{
    key_block(lattice, positions, n, block, sums);
}

#if HAS_AVX2
__attribute__((target("avx2"))) static void
key_block_avx2(const struct vxd_voxel_lattice *lattice, const float *positions, size_t n,
               struct block *block, struct sums *sums)
{
    key_block(lattice, positions, n, block, sums);
}
#endif

/* Keeps the points of a block that have a voxel; the others' inverse is -1. Places are written
 * whether a point is kept or not, and the next one overwrites those that are not. */
static uint32_t keep_block(const struct block *block, size_t n, size_t first,
                           int32_t *inverse, uint64_t *keys, uint32_t *indices)
{
    uint32_t n_kept = 0;

    for (size_t i = 0; i < n; i++) {
        keys[n_kept] = block->key[i];
        indices[n_kept] = (uint32_t)(first + i);
        n_kept += block->is_kept[i];
    }
    for (size_t i = 0; inverse != NULL && n_kept < n && i < n; i++) {
        if (block->is_kept[i] == 0) {
            inverse[first + i] = -1;
        }
    }
    return n_kept;
}

void vxd_voxelize_keys(struct vxd_voxelize_run *run, size_t piece_begin, size_t begin,
                       size_t end, struct vxd_voxel_totals *totals,
                       struct vxd_key_piece *piece)
{
    const struct vxd_voxel_lattice *lattice = &run->call->lattice;
    const uint32_t n_before = piece->n_kept;
    struct block block;
    struct sums sums = {0, 0, 0};
    uint32_t n_points = (uint32_t)(end - begin);

    for (size_t at = begin; at < end; at += BLOCK) {
        const float *positions = run->call->args.positions + 3 * at;
        const size_t n = end - at < BLOCK ? end - at : BLOCK;

#if HAS_AVX2
        if (__builtin_cpu_supports("avx2")) {
            key_block_avx2(lattice, positions, n, &block, &sums);
        } else
#endif
        {
            key_block_any(lattice, positions, n, &block, &sums);
        }
        piece->n_kept += keep_block(&block, n, at, run->call->out.inverse,
                                    run->keys + piece_begin + piece->n_kept,
                                    run->indices + piece_begin + piece->n_kept);
    }
    vxd_count_add(&totals->n_non_finite, n_points - sums.n_finite);
    vxd_count_add(&totals->n_out_of_range, sums.n_finite - (piece->n_kept - n_before));
    piece->magnitude |= sums.magnitude;
    piece->has_negative = piece->has_negative || sums.sign < 0;
}
