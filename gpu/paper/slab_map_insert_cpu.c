// SPDX-License-Identifier: Apache-2.0
/* Insertion goes in the passes of ASH, section 4.4.2, but candidates are delegated by their
 * position in the batch, whose rows nobody writes, rather than by entries that every
 * candidate, winner or not, is copied to: no number is taken to be given back, and a batch
 * may be longer than the map has room for.
 * 1  claim    every key that is not there claims a place; of equal keys one does. FIRST:
 *             later ones lower the claim to the smallest position
 * 2  number   winners are counted and take heap[n_live + rank], in position order under
 *             both orders; their rows are copied and the place names the entry
 * 3  resolve  the others read the number at the place they lost */
#include "gpu/paper/slab_map_cpu.h"

struct insert {
    struct vxd_hashmap map; /* a copy */
    struct vxd_slab_view view;
    struct vxd_hashmap_insert_args args;
    int n_values;
    const uint8_t *values[VXD_HASHMAP_MAX_VALUES];
    uint32_t *places;    /* n: place of a key's claim, or NO_PLACE */
    uint32_t *piece_new; /* winners of each piece, then of all before it */
    uint32_t most;       /* entries there may be after */
    uint32_t n_allowed;  /* winners that get numbers */
};

static const uint8_t *row_of(const struct insert *insert, size_t i)
{
    return (const uint8_t *)insert->args.keys + i * (size_t)insert->view.form.row_bytes;
}

static void put(const struct insert *insert, size_t i, uint32_t index, uint8_t is_new)
{
    if (insert->args.indices != NULL) {
        insert->args.indices[i] = (int32_t)index;
    }
    if (insert->args.is_new != NULL) {
        insert->args.is_new[i] = is_new;
    }
}

/* Lowers a claim to position i, where a later one holds it. */
static void lower_claim(uint64_t *word, uint64_t seen, uint64_t mine)
{
    while (vxd_slab_delegate(seen) > vxd_slab_delegate(mine) &&
           !vxd_slab_swap(word, &seen, mine)) {
    }
}

static void claim_key(struct insert *insert, size_t i, struct vxd_slab_home home,
                      uint32_t *n_reused)
{
    const struct vxd_slab_view *view = &insert->view;
    uint32_t delegate = VXD_SLAB_CLAIM | (uint32_t)i;
    struct vxd_slab_claim claim = {row_of(insert, i), home, delegate, 0, false};
    uint32_t place = vxd_slab_claim_place(view, insert->args.keys, &claim);

    *n_reused += claim.reused;
    if (place == VXD_SLAB_NO_PLACE) {
        __atomic_store_n(&view->counters->scratch[VXD_SLAB_FAILED], 1, __ATOMIC_RELAXED);
        put(insert, i, (uint32_t)VXD_NO_ENTRY, 0);
    } else if (vxd_slab_delegate(claim.seen) < VXD_SLAB_CLAIM) {
        put(insert, i, vxd_slab_delegate(claim.seen), 0);
        place = VXD_SLAB_NO_PLACE;
    } else if (insert->args.order == VXD_HASH_FIRST) {
        lower_claim(view->words + place, claim.seen,
                    vxd_slab_place(home.fragment, delegate));
    }
    insert->places[i] = place;
}

static void claim_keys(void *args, size_t begin, size_t end)
{
    struct insert *insert = args;
    struct vxd_slab_home homes[VXD_SLAB_PREFETCH_ROWS];
    uint32_t n_reused = 0;

    for (size_t at = begin; at < end; at += VXD_SLAB_PREFETCH_ROWS) {
        size_t n = end - at < VXD_SLAB_PREFETCH_ROWS ? end - at : VXD_SLAB_PREFETCH_ROWS;

        vxd_slab_prefetch_rows(&insert->view, row_of(insert, at), n, homes);
        for (size_t i = 0; i < n; i++) {
            claim_key(insert, at + i, homes[i], &n_reused);
        }
    }
    if (n_reused > 0) {
        (void)__atomic_fetch_sub(&insert->view.counters->n_erased_marks, n_reused,
                                 __ATOMIC_RELAXED);
    }
}

static bool is_winner(const struct insert *insert, size_t i)
{
    uint32_t place = insert->places[i];

    return place != VXD_SLAB_NO_PLACE &&
           vxd_slab_delegate(vxd_slab_load(insert->view.words + place)) ==
               (VXD_SLAB_CLAIM | (uint32_t)i);
}

static void count_winners(void *args, size_t begin, size_t end)
{
    struct insert *insert = args;
    uint32_t count = 0;

    for (size_t i = begin; i < end; i++) {
        count += is_winner(insert, i);
    }
    insert->piece_new[begin / VXD_SLAB_PIECE] = count;
}

/* The winner's rows go to its entry, the place names it. */
static void number_key(const struct insert *insert, size_t i, uint32_t number)
{
    const struct vxd_slab_view *view = &insert->view;
    size_t row_bytes = (size_t)view->form.row_bytes;
    uint64_t *word = view->words + insert->places[i];

    vxd_row_copy(view->keys + number * row_bytes, row_of(insert, i), row_bytes);
    for (int v = 0; v < insert->n_values; v++) {
        size_t n_bytes = insert->map.row_bytes[v];

        vxd_row_copy((uint8_t *)insert->map.values[v].ptr + number * n_bytes,
                     insert->values[v] + i * n_bytes, n_bytes);
    }
    vxd_live_set(&insert->map, number / 32, (uint32_t)1 << number % 32);
    vxd_slab_store(word, vxd_slab_place((uint32_t)(vxd_slab_load(word) >> 32), number));
    put(insert, i, number, 1);
}

static void number_winners(void *args, size_t begin, size_t end)
{
    struct insert *insert = args;
    const struct vxd_slab_view *view = &insert->view;
    uint32_t rank = insert->piece_new[begin / VXD_SLAB_PIECE];

    for (size_t i = begin; i < end; i++) {
        if (!is_winner(insert, i)) {
            continue;
        }
        if (rank < insert->n_allowed) {
            number_key(insert, i, view->heap[view->counters->n_live + rank]);
        } else {
            vxd_slab_store(view->words + insert->places[i], VXD_SLAB_ERASED);
            put(insert, i, (uint32_t)VXD_NO_ENTRY, 0);
        }
        insert->places[i] = VXD_SLAB_NO_PLACE;
        rank++;
    }
}

static void resolve_losers(void *args, size_t begin, size_t end)
{
    struct insert *insert = args;

    for (size_t i = begin; i < end; i++) {
        uint32_t place = insert->places[i];

        if (place != VXD_SLAB_NO_PLACE) {
            uint64_t winner = vxd_slab_load(insert->view.words + place);

            put(insert, i,
                vxd_slab_is_free(winner) ? (uint32_t)VXD_NO_ENTRY
                                         : vxd_slab_delegate(winner),
                0);
        }
    }
}

/* Winners of all pieces before each; returns how many there are. */
static uint64_t sum_pieces(uint32_t *piece_new, size_t n)
{
    uint64_t total = 0;

    for (size_t i = 0; i < (n + VXD_SLAB_PIECE - 1) / VXD_SLAB_PIECE; i++) {
        uint32_t count = piece_new[i];

        piece_new[i] = (uint32_t)total;
        total += count;
    }
    return total;
}

static enum vxd_status insert_job(struct vxd_pool *pool, const void *args,
                                  struct vxd_err *err)
{
    struct insert insert = *(const struct insert *)args;
    struct vxd_slab_view *view = &insert.view;
    struct vxd_hash_counters *counters = view->counters;
    uint32_t n_left = insert.most - counters->n_live;
    size_t n = insert.args.n;
    enum vxd_status status;
    uint64_t n_new;
    bool failed;

    vxd_parallel_for(pool, n, VXD_SLAB_PIECE, claim_keys, &insert);
    vxd_parallel_for(pool, n, VXD_SLAB_PIECE, count_winners, &insert);
    n_new = sum_pieces(insert.piece_new, n);
    failed = counters->scratch[VXD_SLAB_FAILED] != 0 || n_new > n_left;
    counters->scratch[VXD_SLAB_FAILED] = 0;
    insert.n_allowed = n_new > n_left ? n_left : (uint32_t)n_new;
    if (failed && insert.args.order == VXD_HASH_FIRST) {
        insert.n_allowed = 0;
    }
    vxd_parallel_for(pool, n, VXD_SLAB_PIECE, number_winners, &insert);
    vxd_parallel_for(pool, n, VXD_SLAB_PIECE, resolve_losers, &insert);
    counters->n_live += insert.n_allowed;
    if (!failed) {
        return VXD_OK;
    }
    status = vxd_slab_rebuild_run(pool, view, err);
    return status != VXD_OK
               ? status
               : vxd_fail(err, VXD_INTERNAL, NULL,
                          "more new keys than the %zu that max_new said, and than the %u "
                          "that the bound leaves room for",
                          insert.args.max_new, n_left);
}

static bool lay_out(size_t n, size_t *piece_new, size_t *total)
{
    size_t places;

    *piece_new = *total = 0;
    return vxd_layout_add(total, n, sizeof(uint32_t), &places) &&
           vxd_layout_add(total, (n + VXD_SLAB_PIECE - 1) / VXD_SLAB_PIECE,
                          sizeof(uint32_t), piece_new);
}

size_t vxd_slab_insert_bytes(size_t n)
{
    size_t piece_new;
    size_t total;

    return lay_out(n, &piece_new, &total) ? total : SIZE_MAX;
}

enum vxd_status vxd_slab_insert_cpu(struct vxd_queue *queue, struct vxd_hashmap *map,
                                    const struct vxd_hashmap_insert_args *args,
                                    void *scratch, size_t scratch_bytes,
                                    struct vxd_err *err)
{
    struct insert insert = {.map = *map,
                            .view = vxd_slab_view_of(map),
                            .args = *args,
                            .n_values = args->values != NULL ? map->spec.n_values : 0,
                            .most = (uint32_t)(map->size_bound + args->max_new),
                            .places = scratch};
    size_t piece_new;

    /* The same sizes were laid out when the scratch was allocated. */
    (void)lay_out(args->n, &piece_new, &scratch_bytes);
    insert.piece_new = (uint32_t *)((uint8_t *)scratch + piece_new);
    for (int v = 0; v < insert.n_values; v++) {
        insert.values[v] = args->values[v];
    }
    return vxd_queue_push(queue, insert_job, &insert, sizeof insert, err);
}
