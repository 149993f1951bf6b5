// SPDX-License-Identifier: Apache-2.0
/* Unions, subsets and coordinates of sets. Keys are sorted already, so pieces are
 * merged or compacted at offsets that an earlier count gives. */
#include "gpu/sparse/coords/coords_cpu.h"

/* Union --------------------------------------------------------------------------------- */

struct merge {
    const struct vxd_sparse_union_call *call;
    size_t n_a;
    size_t n_b;
    uint32_t *piece_rows;
    bool is_counting;
};

/* Merges a's rows [begin, end) with those of b that are between them. a's first piece
 * takes all of b below it, its last piece (which may be empty) all above. */
static void merge_piece(void *args, size_t begin, size_t end)
{
    const struct merge *merge = args;
    const struct vxd_sparse_union_call *call = merge->call;
    const uint64_t *a = call->a.keys;
    const uint64_t *b = call->b.keys;
    size_t i = begin;
    size_t i_end = end < merge->n_a ? end : merge->n_a;
    size_t j = begin == 0 ? 0 : vxd_sparse_lower_bound(b, merge->n_b, a[begin]);
    size_t j_end =
        end >= merge->n_a ? merge->n_b : vxd_sparse_lower_bound(b, merge->n_b, a[end]);
    size_t at = merge->is_counting ? 0 : merge->piece_rows[begin / VXD_SPARSE_PIECE];

    while (i < i_end || j < j_end) {
        bool has_a = i < i_end && (j >= j_end || a[i] <= b[j]);
        bool has_b = j < j_end && (i >= i_end || b[j] <= a[i]);

        if (!merge->is_counting) {
            call->out.keys[at] = has_a ? a[i] : b[j];
            if (call->rows_a != NULL) {
                call->rows_a[at] = has_a ? (int32_t)i : -1;
            }
            if (call->rows_b != NULL) {
                call->rows_b[at] = has_b ? (int32_t)j : -1;
            }
        }
        i += has_a;
        j += has_b;
        at++;
    }
    if (merge->is_counting) {
        merge->piece_rows[begin / VXD_SPARSE_PIECE] = (uint32_t)at;
    }
}

static enum vxd_status too_many(const struct vxd_coord_set *coord_set, size_t n,
                                struct vxd_err *err)
{
    return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                    "a coordinate set of %zu rows exceeds its capacity of %zu", n,
                    coord_set->capacity);
}

static enum vxd_status union_job(struct vxd_pool *pool, const void *args,
                                 struct vxd_err *err)
{
    const struct vxd_sparse_union_call *call = args;
    struct merge merge = {call, *call->a.n_rows, *call->b.n_rows, NULL, true};
    /* even where a has no rows, b's rows need a piece of a */
    size_t n_loop = merge.n_a > 0 ? merge.n_a : 1;
    struct vxd_sparse_scratch scratch;
    size_t n;
    enum vxd_status status;

    *call->out.n_rows = 0;
    *call->out.n_blocks = 0;
    VXD_TRY(vxd_sparse_scratch_init(pool, call->a.capacity + call->b.capacity,
                                    call->scratch, call->scratch_bytes, &scratch, err));
    merge.piece_rows = scratch.piece_rows;
    vxd_parallel_for(pool, n_loop, VXD_SPARSE_PIECE, merge_piece, &merge);
    n = vxd_sparse_counts_to_starts(merge.piece_rows, vxd_sparse_n_pieces(n_loop));
    if (n > call->out.capacity) {
        return too_many(&call->out, n, err);
    }
    merge.is_counting = false;
    vxd_parallel_for(pool, n_loop, VXD_SPARSE_PIECE, merge_piece, &merge);
    VXD_TRY(vxd_coord_set_finish(pool, call->out.keys, NULL, n, &call->out, NULL,
                                 &scratch, err));
out:
    return status;
}

enum vxd_status vxd_coord_set_union_cpu(struct vxd_queue *queue,
                                        const struct vxd_sparse_union_call *call,
                                        struct vxd_err *err)
{
    return vxd_queue_push(queue, union_job, call, sizeof *call, err);
}

/* Subset -------------------------------------------------------------------------------- */

struct compact {
    const struct vxd_sparse_subset_call *call;
    uint32_t *piece_rows;
};

static void count_kept(void *args, size_t begin, size_t end)
{
    const struct compact *compact = args;
    uint32_t n = 0;

    for (size_t i = begin; i < end; i++) {
        n += compact->call->keep[i] != 0;
    }
    compact->piece_rows[begin / VXD_SPARSE_PIECE] = n;
}

static void compact_piece(void *args, size_t begin, size_t end)
{
    const struct compact *compact = args;
    const struct vxd_sparse_subset_call *call = compact->call;
    size_t at = compact->piece_rows[begin / VXD_SPARSE_PIECE];

    for (size_t i = begin; i < end; i++) {
        if (call->keep[i] != 0) {
            call->out.keys[at] = call->a.keys[i];
            if (call->rows_a != NULL) {
                call->rows_a[at] = (int32_t)i;
            }
            at++;
        }
    }
}

static enum vxd_status subset_job(struct vxd_pool *pool, const void *args,
                                  struct vxd_err *err)
{
    const struct vxd_sparse_subset_call *call = args;
    struct compact compact = {.call = call};
    size_t n_a = *call->a.n_rows;
    struct vxd_sparse_scratch scratch;
    size_t n;
    enum vxd_status status;

    *call->out.n_rows = 0;
    *call->out.n_blocks = 0;
    VXD_TRY(vxd_sparse_scratch_init(pool, call->a.capacity, call->scratch,
                                    call->scratch_bytes, &scratch, err));
    compact.piece_rows = scratch.piece_rows;
    vxd_parallel_for(pool, n_a, VXD_SPARSE_PIECE, count_kept, &compact);
    n = vxd_sparse_counts_to_starts(compact.piece_rows, vxd_sparse_n_pieces(n_a));
    if (n > call->out.capacity) {
        return too_many(&call->out, n, err);
    }
    vxd_parallel_for(pool, n_a, VXD_SPARSE_PIECE, compact_piece, &compact);
    VXD_TRY(vxd_coord_set_finish(pool, call->out.keys, NULL, n, &call->out, NULL,
                                 &scratch, err));
out:
    return status;
}

enum vxd_status vxd_coord_set_subset_cpu(struct vxd_queue *queue,
                                         const struct vxd_sparse_subset_call *call,
                                         struct vxd_err *err)
{
    return vxd_queue_push(queue, subset_job, call, sizeof *call, err);
}

/* Coordinates --------------------------------------------------------------------------- */

static void coords_piece(void *args, size_t begin, size_t end)
{
    const struct vxd_sparse_coords_call *call = args;

    for (size_t i = begin; i < end; i++) {
        int32_t *c = call->coords + 4 * i;

        vxd_sparse_from_key(call->coord_set.keys[i], c);
        for (int axis = 0; axis < 3; axis++) {
            c[1 + axis] *= call->times[axis];
        }
    }
}

static enum vxd_status coords_job(struct vxd_pool *pool, const void *args,
                                  struct vxd_err *err)
{
    struct vxd_sparse_coords_call call = *(const struct vxd_sparse_coords_call *)args;
    size_t n = *call.coord_set.n_rows;

    (void)err;
    if (call.coords != NULL) {
        vxd_parallel_for(pool, n, VXD_SPARSE_PIECE, coords_piece, &call);
    }
    if (call.sample_starts != NULL) {
        for (int sample = 0; sample <= call.n_samples; sample++) {
            call.sample_starts[sample] = (uint32_t)vxd_sparse_lower_bound(
                call.coord_set.keys, n, vxd_sparse_key_sample(sample));
        }
    }
    return VXD_OK;
}

enum vxd_status vxd_coord_set_coords_cpu(struct vxd_queue *queue,
                                         const struct vxd_sparse_coords_call *call,
                                         struct vxd_err *err)
{
    return vxd_queue_push(queue, coords_job, call, sizeof *call, err);
}
