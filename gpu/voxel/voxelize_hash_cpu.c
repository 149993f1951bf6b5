// SPDX-License-Identifier: Apache-2.0
/* Voxels in the order of their first points, as spconv's CPU code makes them: points go through a
 * hash table one after the other, and a voxel that is new takes the next row. One thread does it,
 * in one pass over the points, so it is for few threads and for voxels whose table stays in the
 * cache; the sort (voxelize_group_cpu.c) is for all else and gives the same. spconv has an array of
 * all cells of the grid in place of the table, 360 MB for 1408 x 1600 x 40 of them. */
#include <string.h>

#include "gpu/core/core_cpu.h"
#include "gpu/voxel/voxelize_cpu.h"

enum {
    MAX_THREADS = 4,
    MAX_TABLE_VOXELS = 1 << 17,
    N_PREFETCH = 12 /* points */
};

/* One voxel of a sample; of another sample, it is free. */
struct slot {
    uint64_t key;
    uint32_t id;
    uint32_t sample; /* plus one; 0: none yet */
};

/* The table, and what the points of the current sample have become. */
struct numbering {
    struct vxd_voxelize_run *run;
    struct slot *slots;
    int shift; /* 64 less the bits of a slot's index */
    uint32_t sample;
    uint32_t first; /* row of the sample's first voxel */
    uint32_t n_voxels;
    uint32_t *counts;
    float *sums; /* rows to add to; NULL: none */
};

/* The most voxels that the table ever has. */
static size_t most_voxels(const struct vxd_voxelize_args *args)
{
    return args->max_voxels != 0 && args->max_voxels < args->n_points ? args->max_voxels
                                                                      : args->n_points;
}

static int table_bits(const struct vxd_voxelize_args *args)
{
    return vxd_bits_of((uint32_t)(2 * most_voxels(args)));
}

bool vxd_voxelize_is_hashed(int n_threads, const struct vxd_voxelize_args *args)
{
    return args->order == VXD_ORDER_FIRST_POINT && n_threads <= MAX_THREADS &&
           args->max_points != 0 && args->max_points <= VXD_SUM_BLOCK &&
           most_voxels(args) <= MAX_TABLE_VOXELS;
}

size_t vxd_voxelize_table_bytes(const struct vxd_voxelize_args *args)
{
    return sizeof(struct slot) << table_bits(args);
}

static size_t slot_of(const struct numbering *numbering, uint64_t key)
{
    return (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> numbering->shift);
}

/* Writes what a voxel has of its first point. */
static void begin_voxel(const struct numbering *numbering, uint64_t key, uint32_t point,
                        uint32_t id)
{
    const struct vxd_voxelize_run *run = numbering->run;
    const struct vxd_voxels *out = &run->call->out;
    const size_t n_channels = (size_t)run->call->args.n_channels;
    const float *row = run->call->args.features + point * n_channels;
    const size_t to = (size_t)id * n_channels;

    numbering->counts[id] = 1;
    if (out->coords != NULL) {
        out->coords[4 * (size_t)id] = (int32_t)numbering->sample;
        vxd_voxel_from_key(&run->call->lattice, key, out->coords + 4 * (size_t)id + 1);
    }
    if (out->first_point != NULL) {
        out->first_point[id] = point;
    }
    if (n_channels == 0) {
        return;
    }
    if (numbering->sums != NULL) {
        vxd_copy_row(numbering->sums + to, row, n_channels);
    }
    if (out->min != NULL) {
        vxd_copy_row(out->min + to, row, n_channels);
    }
    if (out->max != NULL) {
        vxd_copy_row(out->max + to, row, n_channels);
    }
    if (out->first != NULL) {
        vxd_copy_row(out->first + to, row, n_channels);
    }
    if (out->points != NULL) {
        vxd_copy_row(out->points + to * run->call->args.max_points, row, n_channels);
    }
}

/* Adds another point to a voxel that has n. */
static void add_point(const struct numbering *numbering, uint32_t point, uint32_t id,
                      uint32_t n)
{
    const struct vxd_voxelize_run *run = numbering->run;
    const struct vxd_voxels *out = &run->call->out;
    const size_t n_channels = (size_t)run->call->args.n_channels;
    const float *row = run->call->args.features + point * n_channels;
    const size_t to = (size_t)id * n_channels;

    numbering->counts[id] = n + 1;
    if (n_channels == 0) {
        return;
    }
    if (numbering->sums != NULL) {
        vxd_add_rows(row, n_channels, numbering->sums + to);
    }
    if (out->min != NULL) {
        vxd_fold_low(row, n_channels, out->min + to);
    }
    if (out->max != NULL) {
        vxd_fold_high(row, n_channels, out->max + to);
    }
    if (out->points != NULL) {
        vxd_copy_row(out->points + to * run->call->args.max_points + n * n_channels, row,
                     n_channels);
    }
}

/* The row of a point's voxel, which is made if it is new; -1 where max_voxels are there. */
static int32_t take_point(struct numbering *numbering, uint64_t key, uint32_t point,
                          struct vxd_voxel_totals *totals)
{
    const struct vxd_voxelize_args *args = &numbering->run->call->args;
    const size_t mask = ((size_t)1 << (64 - numbering->shift)) - 1;
    size_t at = slot_of(numbering, key);
    struct slot *slot;
    uint32_t n;

    while ((slot = &numbering->slots[at])->sample == numbering->sample + 1 &&
           slot->key != key) {
        at = (at + 1) & mask;
    }
    if (slot->sample != numbering->sample + 1) {
        if (args->max_voxels != 0 && numbering->n_voxels == args->max_voxels) {
            totals->n_over_max_voxels++;
            return -1;
        }
        *slot = (struct slot){key, numbering->first + numbering->n_voxels++,
                              numbering->sample + 1};
        begin_voxel(numbering, key, point, slot->id);
        totals->n_used++;
        return (int32_t)slot->id;
    }
    n = numbering->counts[slot->id];
    if (n < args->max_points) {
        add_point(numbering, point, slot->id, n);
        totals->n_used++;
    } else {
        totals->n_over_max_points++;
    }
    return (int32_t)slot->id;
}

/* Ends the sample, and those without points behind it, up to `next`. */
static void end_samples(struct numbering *numbering, uint32_t next,
                        struct vxd_voxel_totals *totals)
{
    const struct vxd_voxels *out = &numbering->run->call->out;

    while (numbering->sample < next) {
        struct vxd_voxel_totals *to = &out->totals[numbering->sample];

        to->n_used = totals->n_used;
        to->n_over_max_voxels = totals->n_over_max_voxels;
        to->n_over_max_points = totals->n_over_max_points;
        to->n_voxels = numbering->n_voxels;
        *totals = (struct vxd_voxel_totals){0};
        numbering->first += numbering->n_voxels;
        numbering->n_voxels = 0;
        numbering->sample++;
        out->starts[numbering->sample] = numbering->first;
    }
}

/* All kept points in their order. */
static void take_points(struct numbering *numbering)
{
    const struct vxd_voxelize_run *run = numbering->run;
    const struct vxd_voxelize_args *args = &run->call->args;
    const uint32_t *starts = run->call->batch_starts;
    int32_t *inverse = run->call->out.inverse;
    struct vxd_voxel_totals totals = {0};

    run->call->out.starts[0] = 0;
    for (size_t begin = 0; begin < args->n_points; begin += VXD_VOXELIZE_PIECE) {
        const uint32_t n_kept = run->key_pieces[begin / VXD_VOXELIZE_PIECE].n_kept;
        const uint64_t *keys = run->keys + begin;
        const uint32_t *indices = run->indices + begin;

        for (uint32_t i = 0; i < n_kept; i++) {
            const uint32_t point = indices[i];
            int32_t id;

            if (i + N_PREFETCH < n_kept) {
                __builtin_prefetch(
                    &numbering->slots[slot_of(numbering, keys[i + N_PREFETCH])]);
            }
            if (point >= starts[numbering->sample + 1]) {
                end_samples(numbering,
                            (uint32_t)vxd_voxel_sample(starts, args->n_batch, point),
                            &totals);
            }
            id = take_point(numbering, keys[i], point, &totals);
            if (inverse != NULL) {
                inverse[point] = id;
            }
        }
    }
    end_samples(numbering, (uint32_t)args->n_batch, &totals);
}

/* What is known of a row once all points are in it. */
static void finish_piece(void *args, size_t begin, size_t end)
{
    const struct numbering *numbering = args;
    const struct vxd_voxels *out = &numbering->run->call->out;
    const size_t n_channels = (size_t)numbering->run->call->args.n_channels;
    const size_t max_points = numbering->run->call->args.max_points;

    for (size_t id = begin; id < end; id++) {
        const uint32_t n = numbering->counts[id];

        for (size_t c = id * n_channels; c < (id + 1) * n_channels; c++) {
            if (out->mean != NULL) {
                out->mean[c] = vxd_voxel_mean(numbering->sums[c], n);
            }
            if (out->sum != NULL) {
                out->sum[c] = vxd_canonical_nanf(numbering->sums[c]);
            }
        }
        if (out->points != NULL) {
            memset(out->points + (id * max_points + n) * n_channels, 0,
                   (max_points - n) * n_channels * sizeof *out->points);
        }
    }
}

void vxd_voxelize_hash(struct vxd_voxelize_run *run)
{
    const struct vxd_voxels *out = &run->call->out;
    struct numbering numbering = {.run = run,
                                  .slots = run->table,
                                  .shift = 64 - table_bits(&run->call->args),
                                  .counts = out->counts != NULL ? out->counts
                                                                : run->spare_indices,
                                  .sums = out->sum != NULL ? out->sum : out->mean};

    memset(numbering.slots, 0, vxd_voxelize_table_bytes(&run->call->args));
    take_points(&numbering);
    vxd_parallel_for(run->pool, numbering.first, VXD_VOXELIZE_PIECE, finish_piece,
                     &numbering);
}
