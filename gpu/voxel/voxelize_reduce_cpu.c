// SPDX-License-Identifier: Apache-2.0
/* One pass over the voxels in key order. A voxel's points are its range of sorted
 * pairs, in index order. All threads share a large voxel, a block of points a piece:
 * block results do not depend on which thread computes them, so the total does not
 * either. */
#include <string.h>

#include "gpu/voxel/voxelize_cpu.h"

#define VOXELS_PER_PIECE ((size_t)2048)
#define LARGE_POINTS ((uint32_t)(16 * VXD_SUM_BLOCK))
#define N_PREFETCH 16 /* pairs */

/* Some points of one voxel. */
struct rows {
    const float *features;
    const uint32_t *indices;
    uint32_t n;
    size_t n_channels;
};

/* A large voxel; partial holds sum, min and max of each block. */
struct large {
    struct rows rows;
    float *partial;
    bool needs_sum;
    bool needs_extremes;
};

/* What write_inverse writes. */
struct inverse {
    int32_t *inverse;
    const uint32_t *indices;
    int32_t id;
};

bool vxd_voxelize_partial_items(const struct vxd_voxelize_args *args, size_t *n_items)
{
    /* Slot of a voxel's first block: its first pair / (VXD_SUM_BLOCK / 2). A large
     * voxel has fewer blocks than there are slots up to the next one, so slots never
     * overlap. */
    return vxd_size_mul(args->n_points / (VXD_SUM_BLOCK / 2) + 1,
                        3 * (size_t)args->n_channels, n_items);
}

static const float *row_of(const struct rows *rows, uint32_t i)
{
    return rows->features + (size_t)rows->indices[i] * rows->n_channels;
}

/* Sum of the points [begin, end), end > begin, in order. */
static void sum_block(const struct rows *rows, uint32_t begin, uint32_t end, float *sum)
{
    vxd_copy_row(sum, row_of(rows, begin), rows->n_channels);
    for (uint32_t i = begin + 1; i < end; i++) {
        vxd_add_rows(row_of(rows, i), rows->n_channels, sum);
    }
}

static void fold_extremes(const float *low, const float *high, size_t n_channels,
                          float *min, float *max)
{
    vxd_fold_low(low, n_channels, min);
    vxd_fold_high(high, n_channels, max);
}

/* Every block starts from the voxel's first point, not from its own, because a NaN may
 * only remain from there. */
static void fold_block(const struct rows *rows, uint32_t begin, uint32_t end, float *min,
                       float *max)
{
    vxd_copy_row(min, row_of(rows, 0), rows->n_channels);
    vxd_copy_row(max, row_of(rows, 0), rows->n_channels);
    for (uint32_t i = begin; i < end; i++) {
        const float *row = row_of(rows, i);

        fold_extremes(row, row, rows->n_channels, min, max);
    }
}

static void large_block(void *args, size_t begin, size_t end)
{
    const struct large *large = args;
    const struct rows *rows = &large->rows;
    float *partial = large->partial + begin / VXD_SUM_BLOCK * 3 * rows->n_channels;

    if (large->needs_sum) {
        sum_block(rows, (uint32_t)begin, (uint32_t)end, partial);
    }
    if (large->needs_extremes) {
        fold_block(rows, (uint32_t)begin, (uint32_t)end, partial + rows->n_channels,
                   partial + 2 * rows->n_channels);
    }
}

static void write_inverse(void *args, size_t begin, size_t end)
{
    const struct inverse *inverse = args;

    for (size_t i = begin; i < end; i++) {
        inverse->inverse[inverse->indices[i]] = inverse->id;
    }
}

/* Computes the blocks' results, then combines them into the first block's, in order. */
static void reduce_large(struct vxd_pool *pool, struct large *large)
{
    size_t n_channels = large->rows.n_channels;
    float *total = large->partial;

    vxd_parallel_for(pool, large->rows.n, VXD_SUM_BLOCK, large_block, large);
    for (uint32_t begin = VXD_SUM_BLOCK; begin < large->rows.n; begin += VXD_SUM_BLOCK) {
        const float *block = total + (size_t)(begin / VXD_SUM_BLOCK) * 3 * n_channels;

        if (large->needs_sum) {
            vxd_add_rows(block, n_channels, total);
        }
        if (large->needs_extremes) {
            fold_extremes(block + n_channels, block + 2 * n_channels, n_channels,
                          total + n_channels, total + 2 * n_channels);
        }
    }
}

static void sum_rows(const struct rows *rows, float *sum)
{
    float block[VXD_MAX_CHANNELS];

    sum_block(rows, 0, rows->n < VXD_SUM_BLOCK ? rows->n : VXD_SUM_BLOCK, sum);
    for (uint32_t begin = VXD_SUM_BLOCK; begin < rows->n; begin += VXD_SUM_BLOCK) {
        uint32_t end = rows->n - begin < VXD_SUM_BLOCK ? rows->n : begin + VXD_SUM_BLOCK;

        sum_block(rows, begin, end, block);
        vxd_add_rows(block, rows->n_channels, sum);
    }
}

/* Sum and mean; `sum` is a working row and is overwritten. */
static void write_sums(const struct vxd_voxels *out, uint32_t id, uint32_t n,
                       size_t n_channels, float *sum)
{
    size_t to = (size_t)id * n_channels;

    for (size_t c = 0; out->mean != NULL && c < n_channels; c++) {
        out->mean[to + c] = vxd_voxel_mean(sum[c], n);
    }
    for (size_t c = 0; out->sum != NULL && c < n_channels; c++) {
        out->sum[to + c] = vxd_canonical_nanf(sum[c]);
    }
}

static void write_extremes(const struct vxd_voxels *out, uint32_t id, size_t n_channels,
                           const float *min, const float *max)
{
    size_t to = (size_t)id * n_channels;

    if (out->min != NULL) {
        vxd_copy_row(out->min + to, min, n_channels);
    }
    if (out->max != NULL) {
        vxd_copy_row(out->max + to, max, n_channels);
    }
}

/* Hard voxels: the kept points' rows, then zeros. */
static void write_points(const struct vxd_voxels *out, uint32_t id, uint32_t max_points,
                         const struct rows *rows)
{
    size_t row_floats = rows->n_channels;
    float *to = out->points + (size_t)id * max_points * row_floats;

    for (uint32_t i = 0; i < rows->n; i++) {
        vxd_copy_row(to + i * row_floats, row_of(rows, i), row_floats);
    }
    memset(to + rows->n * row_floats, 0,
           (size_t)(max_points - rows->n) * row_floats * sizeof *to);
}

/* Features of a voxel from the rows it keeps; first_pair is its place among the pairs. */
static void reduce_features(struct vxd_voxelize_run *run, uint32_t id, size_t first_pair,
                            const struct rows *rows)
{
    const struct vxd_voxels *out = &run->call->out;
    size_t n_channels = rows->n_channels;
    bool needs_sum = out->mean != NULL || out->sum != NULL;
    bool needs_extremes = out->min != NULL || out->max != NULL;
    float sum[VXD_MAX_CHANNELS];
    float extreme[VXD_MAX_CHANNELS];

    if (rows->n >= LARGE_POINTS && (needs_sum || needs_extremes)) {
        struct large large = {
            *rows, run->partial + first_pair / (VXD_SUM_BLOCK / 2) * 3 * n_channels,
            needs_sum, needs_extremes};

        reduce_large(run->pool, &large);
        write_sums(out, id, rows->n, n_channels, large.partial);
        write_extremes(out, id, n_channels, large.partial + n_channels,
                       large.partial + 2 * n_channels);
    } else {
        if (needs_sum) {
            sum_rows(rows, sum);
            write_sums(out, id, rows->n, n_channels, sum);
        }
        if (needs_extremes) {
            fold_block(rows, 1, rows->n, sum, extreme);
            write_extremes(out, id, n_channels, sum, extreme);
        }
    }
    if (out->first != NULL) {
        vxd_copy_row(out->first + (size_t)id * n_channels, row_of(rows, 0), n_channels);
    }
    if (out->points != NULL) {
        write_points(out, id, run->call->args.max_points, rows);
    }
}

/* Row of a voxel, or UINT32_MAX where max_voxels dropped it. */
static uint32_t id_of(const struct vxd_voxelize_run *run, size_t voxel)
{
    switch (run->numbering) {
    case VXD_NUMBER_GIVEN:
        return run->ids[voxel];
    case VXD_NUMBER_COUNT:
        return run->ids[voxel] != run->ids[voxel + 1] ? run->ids[voxel] : UINT32_MAX;
    case VXD_NUMBER_SAME:
        break;
    }
    return (uint32_t)voxel;
}

static void set_inverse(struct vxd_voxelize_run *run, uint32_t begin, uint32_t end,
                        int32_t id)
{
    struct inverse inverse = {run->call->out.inverse, run->indices + begin, id};

    if (inverse.inverse == NULL) {
        return;
    }
    if (end - begin >= LARGE_POINTS) {
        vxd_parallel_for(run->pool, end - begin, LARGE_POINTS, write_inverse, &inverse);
    } else {
        write_inverse(&inverse, 0, end - begin);
    }
}

/* Writes the rows of one voxel and returns how many points it keeps. */
static uint32_t write_voxel(struct vxd_voxelize_run *run, size_t voxel, uint32_t id,
                            int sample)
{
    const struct vxd_voxelize_args *args = &run->call->args;
    const struct vxd_voxels *out = &run->call->out;
    uint32_t begin = run->voxel_begin[voxel];
    uint32_t n = run->voxel_begin[voxel + 1] - begin;

    if (args->max_points != 0 && n > args->max_points) {
        n = args->max_points;
    }
    if (out->coords != NULL) {
        int32_t *coord = out->coords + 4 * (size_t)id;
        uint64_t code =
            run->keys[begin] & (((uint64_t)1 << (3 * run->lattice.levels)) - 1);

        coord[0] = sample;
        vxd_voxel_from_key(&run->lattice, code, coord + 1);
    }
    if (out->counts != NULL) {
        out->counts[id] = n;
    }
    if (out->first_point != NULL) {
        out->first_point[id] = run->indices[begin];
    }
    if (args->n_channels > 0) {
        struct rows rows = {args->features, run->indices + begin, n,
                            (size_t)args->n_channels};

        reduce_features(run, id, begin, &rows);
    }
    return n;
}

static void add_totals(struct vxd_voxel_totals *to, const struct vxd_voxel_totals *from)
{
    vxd_count_add(&to->n_used, from->n_used);
    vxd_count_add(&to->n_over_max_voxels, from->n_over_max_voxels);
    vxd_count_add(&to->n_over_max_points, from->n_over_max_points);
}

/* Prefetches a row that is needed soon: the rows are scattered in memory. */
static inline void prefetch(const struct vxd_voxelize_run *run, size_t pair)
{
    const struct vxd_voxelize_args *args = &run->call->args;

    if (args->n_channels > 0 && pair < run->n_kept) {
        __builtin_prefetch(args->features +
                           run->indices[pair] * (size_t)args->n_channels);
    }
}

static void reduce_piece(void *args, size_t begin, size_t end)
{
    struct vxd_voxelize_run *run = args;
    const uint32_t *starts = run->call->batch_starts;
    struct vxd_voxel_totals *totals = run->call->out.totals;
    struct vxd_voxel_totals sums = {0};
    int sample = vxd_voxel_sample(starts, run->call->args.n_batch,
                                  run->indices[run->voxel_begin[begin]]);

    for (size_t voxel = begin; voxel < end; voxel++) {
        uint32_t first_pair = run->voxel_begin[voxel];
        uint32_t end_pair = run->voxel_begin[voxel + 1];
        uint32_t id = id_of(run, voxel);

        prefetch(run, (size_t)first_pair + N_PREFETCH);
        if (run->indices[first_pair] >= starts[sample + 1]) {
            add_totals(&totals[sample], &sums);
            sums = (struct vxd_voxel_totals){0};
            sample = vxd_voxel_sample(starts, run->call->args.n_batch,
                                      run->indices[first_pair]);
        }
        if (id == UINT32_MAX) {
            sums.n_over_max_voxels += end_pair - first_pair;
            set_inverse(run, first_pair, end_pair, -1);
        } else {
            uint32_t n = write_voxel(run, voxel, id, sample);

            sums.n_used += n;
            sums.n_over_max_points += end_pair - first_pair - n;
            set_inverse(run, first_pair, end_pair, (int32_t)id);
        }
    }
    add_totals(&totals[sample], &sums);
}

void vxd_voxelize_reduce(struct vxd_voxelize_run *run)
{
    vxd_parallel_for(run->pool, run->n_found, VOXELS_PER_PIECE, reduce_piece, run);
}
