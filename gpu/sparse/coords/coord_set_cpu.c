// SPDX-License-Identifier: Apache-2.0
/* Coordinate sets of any coordinates, and sets derived from others: candidates become
 * keys, a radix sort orders them by the bits in which they differ, and one pass drops
 * duplicates and collects blocks. Moves about 100 bytes a candidate. */
#include "gpu/sparse/coords/coords_cpu.h"

struct layout {
    size_t keys[2];
    size_t indices[2];
    size_t piece_rows;
    size_t piece_blocks;
    size_t sort;
    size_t total;
};

static bool lay_out(int n_threads, size_t n_candidates, struct layout *out)
{
    size_t n_pieces = vxd_sparse_n_pieces(n_candidates) + 1;
    bool fits = true;

    *out = (struct layout){.total = 0};
    for (int i = 0; i < 2; i++) {
        fits = fits && vxd_layout_add(&out->total, n_candidates, 8, &out->keys[i]) &&
               vxd_layout_add(&out->total, n_candidates, 4, &out->indices[i]);
    }
    return fits && vxd_layout_add(&out->total, n_pieces, 4, &out->piece_rows) &&
           vxd_layout_add(&out->total, n_pieces, 4, &out->piece_blocks) &&
           vxd_layout_add(&out->total,
                          vxd_sort_pairs_scratch_bytes_cpu(n_threads, n_candidates), 1,
                          &out->sort);
}

size_t vxd_coord_set_scratch_bytes_cpu(const struct vxd_queue *queue, size_t n_candidates,
                                       size_t capacity)
{
    struct layout layout;

    (void)capacity;
    return lay_out(queue->context->info.n_threads, n_candidates, &layout) ? layout.total
                                                                          : 0;
}

enum vxd_status vxd_sparse_scratch_init(struct vxd_pool *pool, size_t n_candidates,
                                        void *scratch, size_t scratch_bytes,
                                        struct vxd_sparse_scratch *out,
                                        struct vxd_err *err)
{
    char *bytes = scratch;
    struct layout layout;

    if (!lay_out(vxd_pool_n_threads(pool), n_candidates, &layout) ||
        layout.total > scratch_bytes) {
        return vxd_fail(err, VXD_INTERNAL, NULL, "scratch of %zu bytes, needed are %zu",
                        scratch_bytes, layout.total);
    }
    out->keys = (uint64_t *)(void *)(bytes + layout.keys[0]);
    out->spare_keys = (uint64_t *)(void *)(bytes + layout.keys[1]);
    out->indices = (uint32_t *)(void *)(bytes + layout.indices[0]);
    out->spare_indices = (uint32_t *)(void *)(bytes + layout.indices[1]);
    out->piece_rows = (uint32_t *)(void *)(bytes + layout.piece_rows);
    out->piece_blocks = (uint32_t *)(void *)(bytes + layout.piece_blocks);
    out->sort = bytes + layout.sort;
    return VXD_OK;
}

size_t vxd_sparse_counts_to_starts(uint32_t *counts, size_t n_pieces)
{
    size_t total = 0;

    for (size_t i = 0; i < n_pieces; i++) {
        uint32_t n = counts[i];

        counts[i] = (uint32_t)total;
        total += n;
    }
    return total;
}

size_t vxd_sparse_lower_bound(const uint64_t *keys, size_t n, uint64_t key)
{
    size_t low = 0;

    while (n > 0) {
        size_t half = n / 2;

        if (keys[low + half] < key) {
            low += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return low;
}

/* Finishing ----------------------------------------------------------------------------- */

struct finish {
    const uint64_t *keys;
    const uint32_t *indices;
    size_t n;
    struct vxd_coord_set coord_set;
    int32_t *rows;
    uint32_t *piece_rows;
    uint32_t *piece_blocks;
    uint64_t slot_mask;
};

static void count_piece(void *args, size_t begin, size_t end)
{
    const struct finish *finish = args;
    const uint64_t *keys = finish->keys;
    uint32_t n_rows = 0;
    uint32_t n_blocks = 0;

    for (size_t i = begin; i < end; i++) {
        n_rows += i == 0 || keys[i] != keys[i - 1];
        n_blocks += i == 0 || keys[i] >> 6 != keys[i - 1] >> 6;
    }
    finish->piece_rows[begin / VXD_SPARSE_PIECE] = n_rows;
    finish->piece_blocks[begin / VXD_SPARSE_PIECE] = n_blocks;
}

/* The piece that has a block's first key makes the block, even where its other keys
 * are in the next piece. */
static uint64_t block_mask_at(const struct finish *finish, size_t i)
{
    uint64_t block = finish->keys[i] >> 6;
    uint64_t mask = 0;

    for (; i < finish->n && finish->keys[i] >> 6 == block; i++) {
        mask |= (uint64_t)1 << (finish->keys[i] & 63);
    }
    return mask;
}

static void fill_piece(void *args, size_t begin, size_t end)
{
    const struct finish *finish = args;
    const struct vxd_coord_set *coord_set = &finish->coord_set;
    const uint64_t *keys = finish->keys;
    uint32_t n_rows = finish->piece_rows[begin / VXD_SPARSE_PIECE];
    uint32_t n_blocks = finish->piece_blocks[begin / VXD_SPARSE_PIECE];

    for (size_t i = begin; i < end; i++) {
        if (i == 0 || keys[i] != keys[i - 1]) {
            if (keys != coord_set->keys) {
                coord_set->keys[n_rows] = keys[i];
            }
            if (i == 0 || keys[i] >> 6 != keys[i - 1] >> 6) {
                coord_set->block_keys[n_blocks] = keys[i] >> 6;
                coord_set->block_mask[n_blocks] = block_mask_at(finish, i);
                coord_set->block_row[n_blocks] = n_rows;
                n_blocks++;
            }
            n_rows++;
        }
        if (finish->rows != NULL) {
            finish->rows[finish->indices[i]] = (int32_t)n_rows - 1;
        }
    }
}

static void clear_slots(void *args, size_t begin, size_t end)
{
    const struct finish *finish = args;

    memset(finish->coord_set.slots + begin, 0,
           (end - begin) * sizeof *finish->coord_set.slots);
}

static void insert_blocks(void *args, size_t begin, size_t end)
{
    const struct finish *finish = args;
    uint64_t *slots = finish->coord_set.slots;

    for (size_t i = begin; i < end; i++) {
        uint64_t hash = vxd_sparse_block_hash(finish->coord_set.block_keys[i]);
        uint64_t slot = hash >> 32 << 32 | (uint64_t)(i + 1);
        uint64_t at = hash & finish->slot_mask;
        uint64_t empty = 0;

        while (!__atomic_compare_exchange_n(&slots[at], &empty, slot, false,
                                            __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
            at = (at + 1) & finish->slot_mask;
            empty = 0;
        }
    }
}

enum vxd_status vxd_coord_set_finish(struct vxd_pool *pool, const uint64_t *keys,
                                     const uint32_t *indices, size_t n,
                                     const struct vxd_coord_set *coord_set, int32_t *rows,
                                     const struct vxd_sparse_scratch *scratch,
                                     struct vxd_err *err)
{
    struct finish finish = {
        keys, indices, n, *coord_set, rows, scratch->piece_rows, scratch->piece_blocks,
        0};
    size_t n_rows;
    size_t n_blocks;

    *coord_set->n_rows = 0;
    *coord_set->n_blocks = 0;
    vxd_parallel_for(pool, n, VXD_SPARSE_PIECE, count_piece, &finish);
    n_rows = vxd_sparse_counts_to_starts(finish.piece_rows, vxd_sparse_n_pieces(n));
    n_blocks = vxd_sparse_counts_to_starts(finish.piece_blocks, vxd_sparse_n_pieces(n));
    if (n_rows > coord_set->capacity) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "a coordinate set of %zu rows exceeds its capacity of %zu",
                        n_rows, coord_set->capacity);
    }
    vxd_parallel_for(pool, n, VXD_SPARSE_PIECE, fill_piece, &finish);
    finish.slot_mask = vxd_sparse_slot_mask((uint32_t)n_blocks);
    vxd_parallel_for(pool, (size_t)finish.slot_mask + 1, VXD_SPARSE_PIECE, clear_slots,
                     &finish);
    vxd_parallel_for(pool, n_blocks, VXD_SPARSE_PIECE, insert_blocks, &finish);
    *coord_set->n_rows = (uint32_t)n_rows;
    *coord_set->n_blocks = (uint32_t)n_blocks;
    return VXD_OK;
}

/* Afterwards the sorted keys and their indices are in *keys and *indices. */
static void sort_candidates(struct vxd_pool *pool,
                            const struct vxd_sparse_scratch *scratch, size_t n,
                            const uint64_t **keys, const uint32_t **indices)
{
    bool in_spare =
        vxd_sort_pairs_run(pool, scratch->keys, scratch->indices, scratch->spare_keys,
                           scratch->spare_indices, n, 0, 64, scratch->sort);

    *keys = in_spare ? scratch->spare_keys : scratch->keys;
    *indices = in_spare ? scratch->spare_indices : scratch->indices;
}

/* Of any coordinates -------------------------------------------------------------------- */

struct make {
    const struct vxd_sparse_make_call *call;
    struct vxd_sparse_scratch scratch;
};

static void key_piece(void *args, size_t begin, size_t end)
{
    const struct make *make = args;
    const int32_t *shape = make->call->coord_set.shape;

    for (size_t i = begin; i < end; i++) {
        const int32_t *c = make->call->coords + 4 * i;
        bool is_in = c[0] >= 0 && c[0] < make->call->n_samples;

        for (int axis = 0; axis < 3; axis++) {
            is_in = is_in && vxd_sparse_in_range(c[1 + axis]) &&
                    vxd_sparse_in_shape(shape[axis], c[1 + axis]);
        }
        make->scratch.keys[i] = is_in ? vxd_sparse_key(c) : VXD_SPARSE_NO_KEY;
        make->scratch.indices[i] = (uint32_t)i;
        if (!is_in && make->call->rows != NULL) {
            make->call->rows[i] = -1;
        }
    }
}

/* Checks whether keys descend anywhere: voxelizations come sorted, and checking costs
 * less than a sort. */
static void find_descents(void *args, size_t begin, size_t end)
{
    const struct make *make = args;
    const uint64_t *keys = make->scratch.keys;
    uint32_t descends = 0;

    for (size_t i = begin > 0 ? begin : 1; i < end; i++) {
        descends |= keys[i] < keys[i - 1];
    }
    make->scratch.piece_rows[begin / VXD_SPARSE_PIECE] = descends;
}

static enum vxd_status make_job(struct vxd_pool *pool, const void *args,
                                struct vxd_err *err)
{
    const struct vxd_sparse_make_call *call = args;
    struct make make = {.call = call};
    const uint64_t *keys;
    const uint32_t *indices;
    size_t n = call->n;
    enum vxd_status status;

    VXD_TRY(vxd_sparse_scratch_init(pool, n, call->scratch, call->scratch_bytes,
                                    &make.scratch, err));
    vxd_parallel_for(pool, n, VXD_SPARSE_PIECE, key_piece, &make);
    vxd_parallel_for(pool, n, VXD_SPARSE_PIECE, find_descents, &make);
    keys = make.scratch.keys;
    indices = make.scratch.indices;
    if (vxd_sparse_counts_to_starts(make.scratch.piece_rows, vxd_sparse_n_pieces(n)) >
        0) {
        sort_candidates(pool, &make.scratch, n, &keys, &indices);
    }
    n = vxd_sparse_lower_bound(keys, n, VXD_SPARSE_NO_KEY);
    VXD_TRY(vxd_coord_set_finish(pool, keys, indices, n, &call->coord_set, call->rows,
                                 &make.scratch, err));
out:
    return status;
}

enum vxd_status vxd_coord_set_make_cpu(struct vxd_queue *queue,
                                       const struct vxd_sparse_make_call *call,
                                       struct vxd_err *err)
{
    return vxd_queue_push(queue, make_job, call, sizeof *call, err);
}

/* Derived ------------------------------------------------------------------------------- */

struct derive {
    const struct vxd_sparse_derive_call *call;
    struct vxd_sparse_scratch scratch;
    bool is_counting;
};

/* Keys of the cells that taps connect with one row; writes them where `to` is not
 * NULL. */
static size_t support_of(const struct vxd_sparse_derive_call *call, uint64_t key,
                         uint64_t *to, bool *out_of_range)
{
    uint64_t range[3][VXD_SPARSE_MAX_KERNEL];
    int n[3];
    size_t at = 0;

    for (int axis = 0; axis < 3; axis++) {
        int32_t outputs[VXD_SPARSE_MAX_KERNEL];

        n[axis] =
            vxd_sparse_tap_outputs(&call->geometry, axis, vxd_sparse_key_coord(key, axis),
                                   call->out.shape[axis], outputs, out_of_range);
        for (int i = 0; i < n[axis]; i++) {
            range[axis][i] = vxd_sparse_key_axis(axis, outputs[i]);
        }
    }
    if (to == NULL) {
        return (size_t)n[0] * (size_t)n[1] * (size_t)n[2];
    }
    for (int x = 0; x < n[0]; x++) {
        for (int y = 0; y < n[1]; y++) {
            for (int z = 0; z < n[2]; z++) {
                to[at++] = vxd_sparse_key_sample_part(key) | range[0][x] | range[1][y] |
                           range[2][z];
            }
        }
    }
    return at;
}

static uint64_t floor_of(const struct vxd_sparse_derive_call *call, uint64_t key)
{
    uint64_t out = vxd_sparse_key_sample_part(key);

    for (int axis = 0; axis < 3; axis++) {
        int32_t c = vxd_sparse_floor_div(vxd_sparse_key_coord(key, axis),
                                         call->geometry.stride[axis]);

        if (!vxd_sparse_in_shape(call->out.shape[axis], c)) {
            return VXD_SPARSE_NO_KEY;
        }
        out |= vxd_sparse_key_axis(axis, c);
    }
    return out;
}

/* Both passes over a piece of the input's rows: the first counts candidates, the
 * second writes them at the offsets that the counts give. Adjacent rows in Morton
 * order mostly have the same floor. */
static void derive_piece(void *args, size_t begin, size_t end)
{
    const struct derive *derive = args;
    const struct vxd_sparse_derive_call *call = derive->call;
    uint32_t *count = &derive->scratch.piece_rows[begin / VXD_SPARSE_PIECE];
    uint64_t *to = derive->is_counting ? NULL : derive->scratch.keys + *count;
    uint64_t last = VXD_SPARSE_NO_KEY;
    bool out_of_range = false;
    size_t n = 0;

    for (size_t i = begin; i < end; i++) {
        uint64_t key = call->in.keys[i];

        if (call->rule == VXD_DERIVE_SUPPORT) {
            n += support_of(call, key, to != NULL ? to + n : NULL, &out_of_range);
            continue;
        }
        key = floor_of(call, key);
        if (key != VXD_SPARSE_NO_KEY && key != last) {
            if (to != NULL) {
                to[n] = key;
            }
            last = key;
            n++;
        }
    }
    if (derive->is_counting) {
        *count = (uint32_t)n;
        derive->scratch.piece_blocks[begin / VXD_SPARSE_PIECE] = out_of_range;
    }
}

static void number_piece(void *args, size_t begin, size_t end)
{
    uint32_t *indices = args;

    for (size_t i = begin; i < end; i++) {
        indices[i] = (uint32_t)i;
    }
}

static enum vxd_status derive_job(struct vxd_pool *pool, const void *args,
                                  struct vxd_err *err)
{
    const struct vxd_sparse_derive_call *call = args;
    struct derive derive = {.call = call, .is_counting = true};
    size_t n_in = *call->in.n_rows;
    size_t n_pieces = vxd_sparse_n_pieces(n_in);
    const uint64_t *keys;
    const uint32_t *indices;
    size_t n;
    enum vxd_status status;

    *call->out.n_rows = 0;
    *call->out.n_blocks = 0;
    VXD_TRY(vxd_sparse_scratch_init(pool, call->n_candidates, call->scratch,
                                    call->scratch_bytes, &derive.scratch, err));
    vxd_parallel_for(pool, n_in, VXD_SPARSE_PIECE, derive_piece, &derive);
    if (vxd_sparse_counts_to_starts(derive.scratch.piece_blocks, n_pieces) > 0) {
        return vxd_fail(err, VXD_OUT_OF_RANGE, NULL,
                        "a derived coordinate is outside [-2^17, 2^17)");
    }
    n = vxd_sparse_counts_to_starts(derive.scratch.piece_rows, n_pieces);
    derive.is_counting = false;
    vxd_parallel_for(pool, n_in, VXD_SPARSE_PIECE, derive_piece, &derive);
    vxd_parallel_for(pool, n, VXD_SPARSE_PIECE, number_piece, derive.scratch.indices);
    sort_candidates(pool, &derive.scratch, n, &keys, &indices);
    VXD_TRY(vxd_coord_set_finish(pool, keys, indices, n, &call->out, NULL,
                                 &derive.scratch, err));
out:
    return status;
}

enum vxd_status vxd_coord_sets_derive_cpu(struct vxd_queue *queue,
                                          const struct vxd_sparse_derive_call *calls,
                                          int n, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    for (int i = 0; i < n; i++) {
        VXD_TRY(vxd_queue_push(queue, derive_job, &calls[i], sizeof calls[i], err));
    }
out:
    return status;
}
