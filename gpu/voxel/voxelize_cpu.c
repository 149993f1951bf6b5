// SPDX-License-Identifier: Apache-2.0
/* Computes a key for every point, narrows the keys to the bits that the occurring
 * coordinates need (an unbounded scan of 200 m at 0.1 m takes 36 bits instead of 63),
 * packs the kept points, sorts, and passes over the voxels once. Moves about 150 bytes
 * a point. */
#include <string.h>

#include "gpu/core/core_cpu.h"
#include "gpu/voxel/voxelize_cpu.h"

struct layout {
    size_t keys[3];
    size_t indices[3];
    size_t key_pieces;
    size_t piece_voxels;
    size_t partial;
    size_t sort_scratch;
    size_t scan_scratch;
    size_t table;
    size_t total;
};

static int batch_bits_of(const struct vxd_voxelize_args *args)
{
    return vxd_bits_of((uint32_t)args->n_batch - 1);
}

static bool may_be_wide(const struct vxd_voxelize_args *args,
                        const struct vxd_voxel_lattice *lattice)
{
    return batch_bits_of(args) + 3 * lattice->levels > 64;
}

static bool lay_out(int n_threads, const struct vxd_voxelize_args *args,
                    const struct vxd_voxel_lattice *lattice, struct layout *out)
{
    size_t n = args->n_points;
    size_t n_pieces = n / VXD_VOXELIZE_PIECE + 1;
    int n_arrays = may_be_wide(args, lattice) ? 3 : 2;
    size_t n_partial;
    bool fits = true;

    *out = (struct layout){.total = 0};
    if (vxd_voxelize_is_hashed(n_threads, args)) {
        return vxd_layout_add(&out->total, n + 1, 8, &out->keys[0]) &&
               vxd_layout_add(&out->total, n + 1, 4, &out->indices[0]) &&
               vxd_layout_add(&out->total, n + 1, 4, &out->indices[1]) &&
               vxd_layout_add(&out->total, n_pieces, sizeof(struct vxd_key_piece),
                              &out->key_pieces) &&
               vxd_layout_add(&out->total, vxd_voxelize_table_bytes(args), 1,
                              &out->table);
    }
    for (int i = 0; i < n_arrays; i++) {
        fits = fits && vxd_layout_add(&out->total, n + 1, 8, &out->keys[i]) &&
               vxd_layout_add(&out->total, n + 1, 4, &out->indices[i]);
    }
    return fits && vxd_voxelize_partial_items(args, &n_partial) &&
           vxd_layout_add(&out->total, n_pieces, sizeof(struct vxd_key_piece),
                          &out->key_pieces) &&
           vxd_layout_add(&out->total, n_pieces + 1, 4, &out->piece_voxels) &&
           vxd_layout_add(&out->total, n_partial, sizeof(float), &out->partial) &&
           vxd_layout_add(&out->total, vxd_sort_pairs_scratch_bytes_cpu(n_threads, n), 1,
                          &out->sort_scratch) &&
           vxd_layout_add(&out->total, vxd_scan_scratch_bytes_cpu(n_threads, n + 1), 1,
                          &out->scan_scratch);
}

size_t vxd_voxelize_scratch_bytes_cpu(const struct vxd_queue *queue,
                                      const struct vxd_voxelize_args *args,
                                      const struct vxd_voxel_lattice *lattice)
{
    struct layout layout;

    /* With at most 2^31 points of 64 channels nothing overflows 64 bits. */
    if (!lay_out(queue->context->info.n_threads, args, lattice, &layout)) {
        return SIZE_MAX;
    }
    return layout.total;
}

/* Computes keys of the points [begin, end) of one sample by the rule DOUBLE; kept points follow
 * those already in `piece`. The other rules' are vectors (voxelize_keys_cpu.c). */
static void key_exact_points(struct vxd_voxelize_run *run, size_t piece_begin,
                             size_t begin, size_t end, struct vxd_voxel_totals *totals,
                             struct vxd_key_piece *piece)
{
    const struct vxd_voxel_lattice *lattice = &run->call->lattice;
    const double *exact = run->call->args.exact;
    int32_t *inverse = run->call->out.inverse;
    uint64_t *keys = run->keys + piece_begin;
    uint32_t *indices = run->indices + piece_begin;
    uint32_t n_kept = piece->n_kept;
    uint32_t n_non_finite = 0;
    int32_t sign = 0;
    uint32_t magnitude = 0;

    for (size_t i = begin; i < end; i++) {
        int32_t c[3] = {0, 0, 0};
        enum vxd_point_class point_class =
            vxd_voxel_coord_exact(lattice, exact + 3 * i, c);

        if (point_class == VXD_POINT_KEPT) {
            sign |= c[0] | c[1] | c[2];
            magnitude |= (uint32_t)(c[0] < 0 ? ~c[0] : c[0]) |
                         (uint32_t)(c[1] < 0 ? ~c[1] : c[1]) |
                         (uint32_t)(c[2] < 0 ? ~c[2] : c[2]);
            keys[n_kept] = vxd_voxel_key(lattice, c);
            indices[n_kept] = (uint32_t)i;
            n_kept++;
            continue;
        }
        n_non_finite += point_class == VXD_POINT_NON_FINITE ? 1 : 0;
        if (inverse != NULL) {
            inverse[i] = -1;
        }
    }
    vxd_count_add(&totals->n_non_finite, n_non_finite);
    vxd_count_add(&totals->n_out_of_range,
                  (uint32_t)(end - begin) - (n_kept - piece->n_kept) - n_non_finite);
    piece->n_kept = n_kept;
    piece->magnitude |= magnitude;
    piece->has_negative = piece->has_negative || sign < 0;
}

static void key_piece(void *args, size_t begin, size_t end)
{
    struct vxd_voxelize_run *run = args;
    const uint32_t *starts = run->call->batch_starts;
    struct vxd_key_piece *piece = &run->key_pieces[begin / VXD_VOXELIZE_PIECE];
    int sample = vxd_voxel_sample(starts, run->call->args.n_batch, (uint32_t)begin);

    *piece = (struct vxd_key_piece){0, 0, 0, false};
    for (size_t i = begin; i < end; sample++) {
        size_t stop = starts[sample + 1] < end ? starts[sample + 1] : end;

        if (stop > i) {
            struct vxd_voxel_totals *totals = &run->call->out.totals[sample];

            if (run->call->args.rule == VXD_RULE_DOUBLE) {
                key_exact_points(run, begin, i, stop, totals, piece);
            } else {
                vxd_voxelize_keys(run, begin, i, stop, totals, piece);
            }
            i = stop;
        }
    }
}

/* With |c| < 2^k, c + bias and c + 2^k agree in their low k bits and differ in bit k
 * only, by the missing carry. So a mask and a flip narrow a key. */
static void narrow_keys(struct vxd_voxelize_run *run, uint32_t magnitude,
                        bool has_negative)
{
    struct vxd_voxel_lattice *lattice = &run->lattice;
    int k = vxd_bits_of(magnitude);
    int old_levels = lattice->levels;

    run->key_flip = 0;
    if (has_negative) {
        run->key_mask = ((uint64_t)1 << (3 * (k + 1))) - 1;
        if (k + 1 < old_levels) {
            run->key_flip = (uint64_t)7 << (3 * k);
        }
        lattice->bias = (int32_t)1 << k;
        lattice->levels = k + 1;
    } else {
        run->key_mask = ((uint64_t)1 << (3 * k)) - 1;
        lattice->bias = 0;
        lattice->levels = k > 0 ? k : 1;
    }
    run->batch_bits = batch_bits_of(&run->call->args);
    run->is_wide = run->batch_bits + 3 * lattice->levels > 64;
}

/* Moves one piece's kept points to their places, with narrow keys below the sample. */
static void pack_piece(void *args, size_t begin, size_t end)
{
    struct vxd_voxelize_run *run = args;
    const struct vxd_key_piece *piece = &run->key_pieces[begin / VXD_VOXELIZE_PIECE];
    const uint32_t *starts = run->call->batch_starts;
    const uint64_t *keys = run->keys + begin;
    const uint32_t *indices = run->indices + begin;
    uint64_t *to_keys = run->spare_keys + piece->begin;
    uint32_t *to_indices = run->spare_indices + piece->begin;
    int shift = 3 * run->lattice.levels;
    int sample = vxd_voxel_sample(starts, run->call->args.n_batch, (uint32_t)begin);
    uint64_t high = 0;

    (void)end;
    for (uint32_t i = 0; i < piece->n_kept; i++) {
        if (!run->is_wide && run->batch_bits > 0) {
            while (indices[i] >= starts[sample + 1]) {
                sample++;
            }
            high = (uint64_t)(uint32_t)sample << shift;
        }
        to_keys[i] = ((keys[i] & run->key_mask) ^ run->key_flip) | high;
        to_indices[i] = indices[i];
    }
}

static void key_and_pack(struct vxd_voxelize_run *run)
{
    size_t n = run->call->args.n_points;
    uint32_t magnitude = 0;
    bool has_negative = false;
    uint64_t *keys = run->keys;
    uint32_t *indices = run->indices;

    vxd_parallel_for(run->pool, n, VXD_VOXELIZE_PIECE, key_piece, run);
    run->n_kept = 0;
    for (size_t i = 0; i * VXD_VOXELIZE_PIECE < n; i++) {
        struct vxd_key_piece *piece = &run->key_pieces[i];

        piece->begin = (uint32_t)run->n_kept;
        run->n_kept += piece->n_kept;
        magnitude |= piece->magnitude;
        has_negative = has_negative || piece->has_negative;
    }
    narrow_keys(run, magnitude, has_negative);
    vxd_parallel_for(run->pool, n, VXD_VOXELIZE_PIECE, pack_piece, run);
    run->keys = run->spare_keys;
    run->indices = run->spare_indices;
    run->spare_keys = keys;
    run->spare_indices = indices;
}

static enum vxd_status voxelize_job(struct vxd_pool *pool, const void *args,
                                    struct vxd_err *err)
{
    const struct vxd_voxelize_call *call = args;
    struct vxd_voxelize_run run = {.call = call, .pool = pool, .lattice = call->lattice};
    char *scratch = call->scratch;
    struct layout layout;

    if (!lay_out(vxd_pool_n_threads(pool), &call->args, &call->lattice, &layout) ||
        layout.total > call->scratch_bytes) {
        return vxd_fail(err, VXD_INTERNAL, NULL, "scratch of %zu bytes, needed are %zu",
                        call->scratch_bytes, layout.total);
    }
    run.keys = (uint64_t *)(void *)(scratch + layout.keys[0]);
    run.spare_keys = (uint64_t *)(void *)(scratch + layout.keys[1]);
    run.wide_keys = (uint64_t *)(void *)(scratch + layout.keys[2]);
    run.indices = (uint32_t *)(void *)(scratch + layout.indices[0]);
    run.spare_indices = (uint32_t *)(void *)(scratch + layout.indices[1]);
    run.wide_indices = (uint32_t *)(void *)(scratch + layout.indices[2]);
    run.key_pieces = (struct vxd_key_piece *)(void *)(scratch + layout.key_pieces);
    run.piece_voxels = (uint32_t *)(void *)(scratch + layout.piece_voxels);
    run.partial = (float *)(void *)(scratch + layout.partial);
    run.sort_scratch = scratch + layout.sort_scratch;
    run.scan_scratch = scratch + layout.scan_scratch;
    run.table = scratch + layout.table;

    memset(call->out.totals, 0, (size_t)call->args.n_batch * sizeof *call->out.totals);
    if (vxd_voxelize_is_hashed(vxd_pool_n_threads(pool), &call->args)) {
        vxd_parallel_for(pool, call->args.n_points, VXD_VOXELIZE_PIECE, key_piece, &run);
        vxd_voxelize_hash(&run);
        return VXD_OK;
    }
    key_and_pack(&run);
    vxd_voxelize_group(&run);
    vxd_voxelize_reduce(&run);
    return VXD_OK;
}

enum vxd_status vxd_voxelize_cpu(struct vxd_queue *queue,
                                 const struct vxd_voxelize_call *call,
                                 struct vxd_err *err)
{
    return vxd_queue_push(queue, voxelize_job, call, sizeof *call, err);
}
