// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "gpu/core/core_cpu.h"
#include "gpu/voxel/voxelize_cpu.h"

#define PIECE VXD_VOXELIZE_PIECE

static void swap_spare(struct vxd_voxelize_run *run)
{
    uint64_t *keys = run->keys;
    uint32_t *indices = run->indices;

    run->keys = run->spare_keys;
    run->indices = run->spare_indices;
    run->spare_keys = keys;
    run->spare_indices = indices;
}

static void key_by_sample(void *args, size_t begin, size_t end)
{
    struct vxd_voxelize_run *run = args;

    for (size_t i = begin; i < end; i++) {
        run->spare_keys[i] = (uint64_t)(uint32_t)vxd_voxel_sample(
            run->call->batch_starts, run->call->args.n_batch, run->indices[i]);
        run->spare_indices[i] = (uint32_t)i;
    }
}

static void permute_pairs(void *args, size_t begin, size_t end)
{
    struct vxd_voxelize_run *run = args;

    for (size_t i = begin; i < end; i++) {
        uint32_t from = run->spare_indices[i];

        run->wide_keys[i] = run->keys[from];
        run->wide_indices[i] = run->indices[from];
    }
}

/* The second step of a wide sort, stable by sample. Its values are the sorted places
 * of the first step; then keys and point indices are permuted by them. */
static void sort_by_sample(struct vxd_voxelize_run *run)
{
    vxd_parallel_for(run->pool, run->n_kept, PIECE, key_by_sample, run);
    if (vxd_sort_pairs_run(run->pool, run->spare_keys, run->spare_indices, run->wide_keys,
                           run->wide_indices, run->n_kept, 0, run->batch_bits,
                           run->sort_scratch)) {
        uint64_t *keys = run->spare_keys;
        uint32_t *indices = run->spare_indices;

        run->spare_keys = run->wide_keys;
        run->spare_indices = run->wide_indices;
        run->wide_keys = keys;
        run->wide_indices = indices;
    }
    vxd_parallel_for(run->pool, run->n_kept, PIECE, permute_pairs, run);
    run->keys = run->wide_keys;
    run->indices = run->wide_indices;
}

static void sort_points(struct vxd_voxelize_run *run)
{
    int n_bits = 3 * run->lattice.levels + (run->is_wide ? 0 : run->batch_bits);

    if (vxd_sort_pairs_run(run->pool, run->keys, run->indices, run->spare_keys,
                           run->spare_indices, run->n_kept, 0, n_bits,
                           run->sort_scratch)) {
        swap_spare(run);
    }
    if (run->is_wide) {
        sort_by_sample(run);
    }
}

/* Returns 1 where a voxel begins at sorted pair i > 0, a pair of the sample that
 * starts at point sample_start. Keys of wide sorts repeat from sample to sample. It
 * has no branch, because no predictor can know which pair begins a voxel. */
static uint32_t begins_voxel(const struct vxd_voxelize_run *run, size_t i,
                             uint32_t sample_start)
{
    return (uint32_t)(run->keys[i] != run->keys[i - 1]) |
           (uint32_t)(run->indices[i - 1] < sample_start);
}

static void count_voxels(void *args, size_t begin, size_t end)
{
    struct vxd_voxelize_run *run = args;
    const uint32_t *starts = run->call->batch_starts;
    struct vxd_voxel_totals *totals = run->call->out.totals;
    int sample = vxd_voxel_sample(starts, run->call->args.n_batch, run->indices[begin]);
    uint32_t n_piece = 0;
    uint32_t n_sample = 0;

    for (size_t i = begin; i < end; i++) {
        if (run->indices[i] >= starts[sample + 1]) {
            vxd_count_add(&totals[sample].n_voxels, n_sample);
            n_piece += n_sample;
            n_sample = 0;
            sample = vxd_voxel_sample(starts, run->call->args.n_batch, run->indices[i]);
        }
        n_sample += i == 0 ? 1 : begins_voxel(run, i, starts[sample]);
    }
    vxd_count_add(&totals[sample].n_voxels, n_sample);
    run->piece_voxels[begin / PIECE] = n_piece + n_sample;
}

/* Writes every pair to the place of the next voxel's first pair, where a later pair
 * overwrites it unless it begins a voxel. The loop ends with the piece's last voxel,
 * so no place belongs to another piece. */
static void write_voxel_begins(void *args, size_t begin, size_t end)
{
    struct vxd_voxelize_run *run = args;
    const uint32_t *starts = run->call->batch_starts;
    const uint32_t *before = run->piece_voxels + begin / PIECE;
    int sample = vxd_voxel_sample(starts, run->call->args.n_batch, run->indices[begin]);
    uint32_t *to = run->voxel_begin + before[0];
    uint32_t n_voxels = before[1] - before[0];
    uint32_t n = 0;

    for (size_t i = begin; n < n_voxels && i < end; i++) {
        if (run->indices[i] >= starts[sample + 1]) {
            sample = vxd_voxel_sample(starts, run->call->args.n_batch, run->indices[i]);
        }
        to[n] = (uint32_t)i;
        n += i == 0 ? 1 : begins_voxel(run, i, starts[sample]);
    }
}

static void find_voxels(struct vxd_voxelize_run *run)
{
    size_t n_pieces = (run->n_kept + PIECE - 1) / PIECE;

    run->voxel_begin = run->spare_indices;
    run->ranks = (uint32_t *)(void *)run->spare_keys;
    run->ids = run->ranks + run->call->args.n_points + 1;
    vxd_parallel_for(run->pool, run->n_kept, PIECE, count_voxels, run);
    run->n_found = 0;
    for (size_t i = 0; i < n_pieces; i++) {
        uint32_t n = run->piece_voxels[i];

        run->piece_voxels[i] = (uint32_t)run->n_found;
        run->n_found += n;
    }
    run->piece_voxels[n_pieces] = (uint32_t)run->n_found;
    vxd_parallel_for(run->pool, run->n_kept, PIECE, write_voxel_begins, run);
    run->voxel_begin[run->n_found] = (uint32_t)run->n_kept;
}

static void clear_ranks(void *args, size_t begin, size_t end)
{
    struct vxd_voxelize_run *run = args;

    memset(run->ranks + begin, 0, (end - begin) * sizeof *run->ranks);
}

static void mark_first_points(void *args, size_t begin, size_t end)
{
    struct vxd_voxelize_run *run = args;

    for (size_t voxel = begin; voxel < end; voxel++) {
        run->ranks[run->indices[run->voxel_begin[voxel]]] = 1;
    }
}

/* Samples are ranges of points, so the rank of a voxel within its sample is the number
 * of first points between the sample's start and its own. */
static void assign_ids(void *args, size_t begin, size_t end)
{
    struct vxd_voxelize_run *run = args;
    const struct vxd_voxelize_args *a = &run->call->args;
    const uint32_t *starts = run->call->batch_starts;

    for (size_t voxel = begin; voxel < end; voxel++) {
        uint32_t first = run->indices[run->voxel_begin[voxel]];
        int sample = vxd_voxel_sample(starts, a->n_batch, first);
        uint32_t rank = run->ranks[first] - run->ranks[starts[sample]];
        bool survives = a->max_voxels == 0 || rank < a->max_voxels;

        if (run->numbering == VXD_NUMBER_COUNT) {
            run->ids[voxel] = survives ? 1 : 0;
        } else {
            run->ids[voxel] =
                survives ? run->call->out.starts[sample] + rank : UINT32_MAX;
        }
    }
}

static void number_voxels(struct vxd_voxelize_run *run)
{
    const struct vxd_voxelize_args *args = &run->call->args;
    const struct vxd_voxels *out = &run->call->out;
    bool is_capped = false;
    uint32_t n = 0;

    for (int i = 0; i < args->n_batch; i++) {
        if (args->max_voxels != 0 && out->totals[i].n_voxels > args->max_voxels) {
            out->totals[i].n_voxels = args->max_voxels;
            is_capped = true;
        }
        out->starts[i] = n;
        n += out->totals[i].n_voxels;
    }
    out->starts[args->n_batch] = n;
    run->numbering = args->order == VXD_ORDER_FIRST_POINT ? VXD_NUMBER_GIVEN
                     : is_capped                          ? VXD_NUMBER_COUNT
                                                          : VXD_NUMBER_SAME;
    if (run->numbering == VXD_NUMBER_SAME) {
        return;
    }
    vxd_parallel_for(run->pool, args->n_points + 1, PIECE, clear_ranks, run);
    vxd_parallel_for(run->pool, run->n_found, PIECE, mark_first_points, run);
    vxd_scan_exclusive_run(run->pool, run->ranks, run->ranks, args->n_points,
                           run->scan_scratch);
    vxd_parallel_for(run->pool, run->n_found, PIECE, assign_ids, run);
    if (run->numbering == VXD_NUMBER_COUNT) {
        vxd_scan_exclusive_run(run->pool, run->ids, run->ids, run->n_found,
                               run->scan_scratch);
    }
}

void vxd_voxelize_group(struct vxd_voxelize_run *run)
{
    sort_points(run);
    find_voxels(run);
    number_voxels(run);
}
