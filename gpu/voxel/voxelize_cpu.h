// SPDX-License-Identifier: Apache-2.0
/* The state of one voxelization on the CPU, shared by its steps:
 *
 *   voxelize_cpu.c         the order of the steps
 *   voxelize_keys_cpu.c    point keys, dropped points
 *   voxelize_hash_cpu.c    the rest in one pass over the points, where few threads are to number
 *                          voxels by their first points
 *   voxelize_group_cpu.c   sort by key, voxel boundaries, caps and numbering
 *   voxelize_reduce_cpu.c  one pass over the voxels that writes every output */
#ifndef VXD_GPU_VOXEL_VOXELIZE_CPU_H
#define VXD_GPU_VOXEL_VOXELIZE_CPU_H

#include <string.h>

#include "gpu/core/core.h"
#include "gpu/voxel/voxel_backends.h"
#include "gpu/voxel/voxelize_math.h"

/* Number of points, or of sorted pairs, in one piece of a loop. */
#define VXD_VOXELIZE_PIECE ((size_t)8192)

/* What computing the keys of one piece found. */
struct vxd_key_piece {
    uint32_t n_kept;
    uint32_t begin;     /* index of its first kept point among all kept ones */
    uint32_t magnitude; /* bitwise or of all coordinates c, of ~c where c < 0 */
    bool has_negative;
};

/* How voxels in key order become rows of the output. */
enum vxd_numbering {
    VXD_NUMBER_SAME,  /* row = place in key order */
    VXD_NUMBER_GIVEN, /* row = ids[voxel], UINT32_MAX where the cap dropped it */
    VXD_NUMBER_COUNT  /* row = ids[voxel], dropped where ids[voxel + 1] is the same */
};

struct vxd_voxelize_run {
    const struct vxd_voxelize_call *call;
    struct vxd_pool *pool;
    struct vxd_voxel_lattice lattice; /* narrowed to the coordinates that occur */
    int batch_bits;
    bool is_wide;      /* sample and Morton code exceed 64 bits: sorted in two steps */
    uint64_t key_mask; /* turns keys of the call's lattice into keys of the narrow one */
    uint64_t key_flip;
    size_t n_kept;
    size_t n_found; /* voxels before the cap */
    enum vxd_numbering numbering;

    /* Scratch. The key and index arrays have n_points + 1 items and swap roles. */
    uint64_t *keys;
    uint32_t *indices; /* of points, in key order after the sort */
    uint64_t *spare_keys;
    uint32_t *spare_indices;
    uint64_t *wide_keys;
    uint32_t *wide_indices;
    struct vxd_key_piece *key_pieces;
    /* voxels that begin in a piece of sorted pairs, then voxels before the piece */
    uint32_t *piece_voxels;
    float *partial; /* sums, minima, maxima of the blocks of large voxels */
    void *sort_scratch;
    void *scan_scratch;
    void *table; /* of voxelize_hash_cpu.c */

    /* In the spare arrays, once the points are sorted. */
    uint32_t *voxel_begin; /* n_found + 1: first of its sorted pairs */
    uint32_t *ranks;       /* n_points + 1: voxels whose first point comes before */
    uint32_t *ids;         /* n_found + 1, see enum vxd_numbering */
};

/* Computes keys of the points [begin, end) of one sample; kept points follow those already in
 * `piece`, which begins at point piece_begin. */
void vxd_voxelize_keys(struct vxd_voxelize_run *run, size_t piece_begin, size_t begin,
                       size_t end, struct vxd_voxel_totals *totals,
                       struct vxd_key_piece *piece);

/* Whether so many threads put these points through a hash table instead of sorting them, and the
 * bytes of that table. */
bool vxd_voxelize_is_hashed(int n_threads, const struct vxd_voxelize_args *args);
size_t vxd_voxelize_table_bytes(const struct vxd_voxelize_args *args);

/* Writes all outputs from the keys of the pieces. */
void vxd_voxelize_hash(struct vxd_voxelize_run *run);

/* Sorts the kept points and finds the voxels; then numbers them, applies max_voxels and
 * writes starts and the totals' n_voxels. */
void vxd_voxelize_group(struct vxd_voxelize_run *run);

/* Writes all outputs except starts, and the totals of points in voxels. */
void vxd_voxelize_reduce(struct vxd_voxelize_run *run);

/* Number of floats of `partial`. False on overflow. */
bool vxd_voxelize_partial_items(const struct vxd_voxelize_args *args, size_t *n_items);

static inline void vxd_count_add(uint32_t *count, uint32_t n)
{
    if (n != 0) {
        (void)__atomic_fetch_add(count, n, __ATOMIC_RELAXED);
    }
}

/* Copies the usual widths inline, because a call of memcpy would take longer than most
 * rows. */
static inline void vxd_copy_row(float *to, const float *from, size_t n_channels)
{
    switch (n_channels) {
    case 1:
        to[0] = from[0];
        break;
    case 2:
        memcpy(to, from, 2 * sizeof *to);
        break;
    case 3:
        memcpy(to, from, 3 * sizeof *to);
        break;
    case 4:
        memcpy(to, from, 4 * sizeof *to);
        break;
    case 5:
        memcpy(to, from, 5 * sizeof *to);
        break;
    default:
        memcpy(to, from, n_channels * sizeof *to);
        break;
    }
}

static inline void vxd_add_rows(const float *row, size_t n_channels, float *sum)
{
    for (size_t c = 0; c < n_channels; c++) {
        sum[c] = vxd_addf(sum[c], row[c]);
    }
}

static inline void vxd_fold_low(const float *row, size_t n_channels, float *min)
{
    for (size_t c = 0; c < n_channels; c++) {
        min[c] = row[c] < min[c] ? row[c] : min[c];
    }
}

static inline void vxd_fold_high(const float *row, size_t n_channels, float *max)
{
    for (size_t c = 0; c < n_channels; c++) {
        max[c] = row[c] > max[c] ? row[c] : max[c];
    }
}

#endif
