// SPDX-License-Identifier: Apache-2.0
/* Finding or storing the items of one height, by all threads of a team; the rules are told in
 * pass_cuda.h. A lookup reads a bucket, 32 bytes, and the words of the one item in some
 * hundreds whose tag is equal but is another. */
#ifndef VXD_GPU_DAG_ITEMS_CUDA_H
#define VXD_GPU_DAG_ITEMS_CUDA_H

#include "gpu/dag/device.h"
#include "gpu/dag/team_cuda.h"

/* Words that a warp takes at most at once. */
#define VXD_DAG_WARP_WORDS ((uint64_t)32 * VXD_DAG_MAX_ITEM_WORDS)

VXD_DAG_DEVICE bool vxd_dag_has_fault(const struct vxd_dag_pass *pass)
{
    return vxd_dag_load_now(&pass->state->fault) != 0;
}

VXD_DAG_DEVICE void vxd_dag_raise(const struct vxd_dag_pass *pass, uint32_t fault)
{
    vxd_dag_atomic_or(&pass->state->fault, fault);
}

/* A row's words are there: they are to be found or stored. */
VXD_DAG_DEVICE void vxd_dag_item_wait(const struct vxd_dag_item_rows *rows, uint64_t row,
                                      enum vxd_dag_kind kind, int n_words)
{
    rows->hashes[row] =
        vxd_dag_hash((uint32_t)kind, rows->words + row * rows->stride, n_words);
    rows->marks[row] = VXD_DAG_MARK_WAITING;
}

/* What a row's item has become. */
VXD_DAG_DEVICE uint32_t vxd_dag_item_ref(const struct vxd_dag_item_rows *rows,
                                         uint32_t row)
{
    uint32_t ref = rows->refs[row];

    return rows->marks[row] == VXD_DAG_MARK_SAME ? rows->refs[ref] : ref;
}

/* Whether a row that took a slot holds the same words. */
VXD_DAG_DEVICE bool vxd_dag_is_same_row(const struct vxd_dag_item_rows *rows,
                                        uint32_t other, uint64_t hash,
                                        const uint32_t *words, int n_words)
{
    return rows->hashes[other] == hash &&
           vxd_dag_words_equal(rows->words + (uint64_t)other * rows->stride, words,
                               n_words);
}

/* Looks at a slot for a row's item, and takes it where it is free. True: the row's ref and
 * mark are set; else the next slot is to be looked at. */
VXD_DAG_DEVICE bool vxd_dag_try_slot(const struct vxd_dag_pass *pass,
                                     const struct vxd_dag_item_rows *rows, uint32_t row,
                                     uint32_t ref, uint32_t tag, uint32_t wanted_tag,
                                     const uint32_t *words, int n_words, uint32_t slot)
{
    if (ref == VXD_DAG_EMPTY) {
        ref = vxd_dag_atomic_cas(
            &pass->buckets[slot / VXD_DAG_INDEX_SLOTS].refs[slot % VXD_DAG_INDEX_SLOTS],
            VXD_DAG_EMPTY, row + 1);
        if (ref == VXD_DAG_EMPTY) {
            rows->marks[row] = slot;
            return true;
        }
    }
    if (tag == VXD_DAG_INDEX_NO_TAG) {
        if (!vxd_dag_is_same_row(rows, ref - 1, rows->hashes[row], words, n_words)) {
            return false;
        }
        rows->refs[row] = ref - 1;
        rows->marks[row] = VXD_DAG_MARK_SAME;
        return true;
    }
    if (tag != wanted_tag ||
        !vxd_dag_words_equal(vxd_dag_words(&pass->view, ref), words, n_words)) {
        return false;
    }
    rows->refs[row] = ref;
    rows->marks[row] = VXD_DAG_MARK_DONE;
    return true;
}

/* Finds a row's item, or takes a slot for it. */
static __device__ void vxd_dag_find_or_take(const struct vxd_dag_pass *pass,
                                            const struct vxd_dag_item_rows *rows,
                                            uint32_t row, enum vxd_dag_kind kind,
                                            int n_words)
{
    const uint32_t *words = rows->words + (uint64_t)row * rows->stride;
    const uint64_t hash = rows->hashes[row];
    const uint32_t tag = vxd_dag_tag_of(hash, kind);
    uint32_t at = vxd_dag_home(hash, pass->n_buckets);

    for (uint32_t i = 0; i < pass->n_buckets && i < VXD_DAG_INDEX_PROBES; i++) {
        const struct vxd_dag_index_bucket bucket =
            vxd_dag_load_bucket_now(&pass->buckets[at]);

#pragma unroll
        for (int slot = 0; slot < VXD_DAG_INDEX_SLOTS; slot++) {
            if (vxd_dag_try_slot(pass, rows, row, bucket.refs[slot],
                                 vxd_dag_tag_at(bucket.tags, slot), tag, words, n_words,
                                 at * VXD_DAG_INDEX_SLOTS + (uint32_t)slot)) {
                return;
            }
        }
        at = at + 1 < pass->n_buckets ? at + 1 : 0;
    }
    rows->refs[row] = VXD_DAG_EMPTY;
    rows->marks[row] = VXD_DAG_MARK_DONE;
    vxd_dag_raise(pass, VXD_DAG_NO_SLOTS);
}

/* Items of the store, those of the pass's heights before this one among them. */
VXD_DAG_DEVICE uint64_t vxd_dag_count_items(const struct vxd_dag_pass *pass, int number)
{
    const struct vxd_dag_store_state *store = pass->store;
    uint64_t n = store->n_items[VXD_DAG_LEAF] + store->n_items[VXD_DAG_INNER] +
                 store->n_items[VXD_DAG_BLOCK];

    for (int i = 0; i < number; i++) {
        n += vxd_dag_load_now64(&pass->state->n_claimed[i]);
    }
    return n;
}

/* All rows of a height. `number` is the height, 0 of blocks. */
VXD_DAG_STEP void vxd_dag_find_items(const struct vxd_dag_pass *pass,
                                     const struct vxd_dag_item_rows *rows,
                                     const struct vxd_dag_team *team,
                                     enum vxd_dag_kind kind, int number, uint32_t begin,
                                     uint32_t n)
{
    uint64_t n_lookups = 0;
    uint64_t n_claimed = 0;
    uint64_t n_words_claimed = 0;

    /* Searches get long beyond; all threads see the same numbers. */
    if (vxd_dag_count_items(pass, number) * 10 >
        (uint64_t)pass->n_buckets * VXD_DAG_INDEX_SLOTS * 9) {
        vxd_dag_raise(pass, VXD_DAG_NO_SLOTS);
        return;
    }
    for (uint64_t i = (uint64_t)team->first + team->thread; i < n; i += team->size) {
        const uint32_t row = begin + (uint32_t)i;

        if (rows->marks[row] == VXD_DAG_MARK_WAITING) {
            const int n_words = vxd_dag_item_words(
                pass->view.value_bits, kind, rows->words + (uint64_t)row * rows->stride);

            vxd_dag_find_or_take(pass, rows, row, kind, n_words);
            n_lookups++;
            if (rows->marks[row] < VXD_DAG_MAX_MARK) {
                n_claimed++;
                n_words_claimed += (uint64_t)n_words;
            }
        }
    }
    vxd_dag_warp_add(&pass->state->n_lookups[number], n_lookups);
    vxd_dag_warp_add(&pass->state->n_claimed[number], n_claimed);
    vxd_dag_warp_add(&pass->state->n_claimed_words[number], n_words_claimed);
}

/* The first word that heights before this one left free. */
VXD_DAG_DEVICE uint64_t vxd_dag_next_word(const struct vxd_dag_pass *pass, int number)
{
    uint64_t next = pass->store->next;

    for (int i = 0; i < number; i++) {
        next += vxd_dag_load_now64(&pass->state->n_taken_words[i]);
    }
    return next;
}

/* More than any height of so many words takes: warps take some in vain at the ends of chunks,
 * once at each end. */
VXD_DAG_DEVICE uint64_t vxd_dag_most_words(uint64_t n_words)
{
    return n_words + VXD_DAG_WARP_WORDS *
                         (n_words / (VXD_DAG_CHUNK_WORDS - VXD_DAG_WARP_WORDS) + 2);
}

/* By all lanes of a warp: n words for each in one chunk, from `next` on. Where a chunk ends
 * within those of the warp, they are left out and it takes others; vxd_dag_most_words says
 * that there are enough, and chunks bound how often. */
VXD_DAG_DEVICE uint32_t vxd_dag_take_words(uint64_t *n_taken, uint64_t next, uint32_t n)
{
    uint32_t total;
    uint64_t begin;
    uint64_t first;

    do {
        begin = next + vxd_dag_warp_take(n_taken, n, &total);
        first = vxd_dag_warp_first(begin);
    } while (total > 0 &&
             first >> VXD_DAG_CHUNK_BITS != (first + total - 1) >> VXD_DAG_CHUNK_BITS);
    return (uint32_t)begin;
}

/* Stores the item of a row that took a slot. */
VXD_DAG_DEVICE void vxd_dag_store_item(const struct vxd_dag_pass *pass,
                                       const struct vxd_dag_item_rows *rows, uint32_t row,
                                       enum vxd_dag_kind kind, int n_words, uint32_t ref)
{
    const uint32_t slot = rows->marks[row];
    const uint32_t *words = rows->words + (uint64_t)row * rows->stride;
    struct vxd_dag_index_bucket *bucket = &pass->buckets[slot / VXD_DAG_INDEX_SLOTS];
    uint32_t *to =
        pass->chunks[ref >> VXD_DAG_CHUNK_BITS] + (ref & (VXD_DAG_CHUNK_WORDS - 1));

    for (int i = 0; i < n_words; i++) {
        to[i] = words[i];
    }
    bucket->refs[slot % VXD_DAG_INDEX_SLOTS] = ref;
    vxd_dag_atomic_or64(&bucket->tags,
                        vxd_dag_tag_bits(vxd_dag_tag_of(rows->hashes[row], kind),
                                         (int)(slot % VXD_DAG_INDEX_SLOTS)));
    rows->refs[row] = ref;
    rows->marks[row] = VXD_DAG_MARK_DONE;
}

/* Gives the slots back that a height's rows took. */
static __device__ void vxd_dag_give_slots(const struct vxd_dag_pass *pass,
                                          const struct vxd_dag_item_rows *rows,
                                          const struct vxd_dag_team *team, uint32_t begin,
                                          uint32_t n)
{
    for (uint64_t i = (uint64_t)team->first + team->thread; i < n; i += team->size) {
        const uint32_t slot = rows->marks[begin + i];

        if (slot < VXD_DAG_MAX_MARK) {
            pass->buckets[slot / VXD_DAG_INDEX_SLOTS].refs[slot % VXD_DAG_INDEX_SLOTS] =
                VXD_DAG_EMPTY;
        }
    }
}

/* Stores what took slots: all rows of a height, or none. */
VXD_DAG_STEP void vxd_dag_put_items(const struct vxd_dag_pass *pass,
                                    const struct vxd_dag_item_rows *rows,
                                    const struct vxd_dag_team *team,
                                    enum vxd_dag_kind kind, int number, uint32_t begin,
                                    uint32_t n)
{
    struct vxd_dag_pass_state *state = pass->state;
    const uint64_t next = vxd_dag_next_word(pass, number);
    const uint64_t n_words = vxd_dag_load_now64(&state->n_claimed_words[number]);
    const bool has_room = next + vxd_dag_most_words(n_words) <= pass->capacity_words;

    /* No thread sees another answer: a fault of this step is raised only where there is no
     * room, which all see. */
    if (!has_room || vxd_dag_has_fault(pass)) {
        if (!has_room) {
            vxd_dag_raise(pass, VXD_DAG_NO_WORDS);
        }
        vxd_dag_give_slots(pass, rows, team, begin, n);
        return;
    }
    for (uint64_t first = team->first; first < n; first += team->size) {
        const uint64_t i = first + team->thread;
        const uint32_t row = begin + (uint32_t)i;
        const bool is_new = i < n && rows->marks[row] < VXD_DAG_MAX_MARK;
        const int n_own =
            is_new ? vxd_dag_item_words(pass->view.value_bits, kind,
                                        rows->words + (uint64_t)row * rows->stride)
                   : 0;
        const uint32_t ref =
            vxd_dag_take_words(&state->n_taken_words[number], next, (uint32_t)n_own);

        if (is_new) {
            vxd_dag_store_item(pass, rows, row, kind, n_own, ref);
        }
    }
    if (team->first + team->thread == 0) {
        state->is_stored[number] = 1;
    }
}

/* Adds what was stored to the store's counts; by one thread after all others. */
static __device__ void vxd_dag_add_stored(const struct vxd_dag_pass *pass)
{
    const struct vxd_dag_pass_state *state = pass->state;
    struct vxd_dag_store_state *store = pass->store;

    for (int i = 0; i < VXD_DAG_N_HEIGHTS; i++) {
        const int kind = i == 0                     ? VXD_DAG_BLOCK
                         : i == VXD_DAG_LEAF_HEIGHT ? VXD_DAG_LEAF
                                                    : VXD_DAG_INNER;

        if (vxd_dag_load_now(&state->is_stored[i]) != 0) {
            store->next += vxd_dag_load_now64(&state->n_taken_words[i]);
            store->n_items[kind] += vxd_dag_load_now64(&state->n_claimed[i]);
            store->n_words += vxd_dag_load_now64(&state->n_claimed_words[i]);
        }
    }
}

/* What the pass would need, as far as it came; likewise, after that. Heights above the first one
 * that is not stored are counted by their cubes: what of them is there already, or equal, is not
 * known yet. */
static __device__ void vxd_dag_tell_needs(const struct vxd_dag_pass *pass, uint32_t fault)
{
    const struct vxd_dag_pass_state *state = pass->state;
    struct vxd_dag_needs *needs = &pass->progress->needs;
    int number = pass->view.value_bits > 4 ? 0 : VXD_DAG_LEAF_HEIGHT;
    uint64_t n_cubes = 0;
    uint64_t n_above = 0;
    uint64_t n_pairs = 0;
    uint64_t n_items;

    while (number <= pass->view.depth &&
           vxd_dag_load_now(&state->is_stored[number]) != 0) {
        number += number == 0 ? VXD_DAG_LEAF_HEIGHT : 1;
    }
    for (int i = 0; i < VXD_DAG_N_HEIGHTS; i++) {
        const uint64_t n = vxd_dag_load_now64(&state->n_cubes[i]);

        n_cubes += i > VXD_DAG_LEAF_HEIGHT ? n : 0;
        n_above += i > VXD_DAG_LEAF_HEIGHT && i > number ? n : 0;
        n_pairs += vxd_dag_load_now64(&state->n_pairs[i]);
    }
    number = number <= pass->view.depth ? number : pass->view.depth;
    /* Of leaves and blocks most are equal. */
    n_items = number > VXD_DAG_LEAF_HEIGHT
                  ? vxd_dag_load_now64(&state->n_cubes[number])
                  : 2 * vxd_dag_load_now64(&state->n_claimed[number]);
    needs->n_cubes = (fault & VXD_DAG_NO_CUBES) != 0 ? n_cubes : 0;
    needs->n_leaves = (fault & VXD_DAG_NO_LEAVES) != 0
                          ? vxd_dag_load_now64(&state->n_cubes[VXD_DAG_LEAF_HEIGHT])
                          : 0;
    needs->n_pairs = (fault & VXD_DAG_NO_PAIRS) != 0 ? n_pairs : 0;
    needs->n_items = (fault & VXD_DAG_NO_SLOTS) != 0
                         ? vxd_dag_count_items(pass, 0) + n_items + n_above
                         : 0;
    /* Inner nodes are of six or seven words. */
    needs->n_words =
        (fault & VXD_DAG_NO_WORDS) != 0
            ? pass->store->next +
                  vxd_dag_most_words(vxd_dag_load_now64(&state->n_claimed_words[number]) +
                                     6 * n_above)
            : 0;
}

/* Finds or stores the items of a height whose rows are made, unless a fault is_bad. */
static __device__ void vxd_dag_store_items(const struct vxd_dag_pass *pass,
                                           const struct vxd_dag_item_rows *rows,
                                           const struct vxd_dag_team *team,
                                           enum vxd_dag_kind kind, int number,
                                           uint32_t begin, uint32_t n, bool is_bad)
{
    if (!is_bad) {
        vxd_dag_find_items(pass, rows, team, kind, number, begin, n);
    }
    vxd_dag_team_sync(team);
    if (!is_bad) {
        vxd_dag_put_items(pass, rows, team, kind, number, begin, n);
    }
    vxd_dag_team_sync(team);
}

/* Enters the item of a slot into a larger table, which nobody searches meanwhile and in which
 * it is not; several may. False: it has no place. */
static __device__ bool vxd_dag_move_slot(const struct vxd_dag_view *view,
                                         const struct vxd_dag_index_bucket *from,
                                         int slot, struct vxd_dag_index_bucket *to,
                                         uint32_t n_to)
{
    const uint32_t ref = from->refs[slot];
    const uint32_t tag = vxd_dag_tag_at(from->tags, slot);
    const enum vxd_dag_kind kind = vxd_dag_tag_kind(tag);
    const uint32_t *words;
    uint32_t at;

    if (ref == VXD_DAG_EMPTY) {
        return true;
    }
    words = vxd_dag_words(view, ref);
    at = vxd_dag_home(vxd_dag_hash((uint32_t)kind, words,
                                   vxd_dag_item_words(view->value_bits, kind, words)),
                      n_to);
    for (uint32_t i = 0; i < n_to && i < VXD_DAG_INDEX_PROBES; i++) {
        for (int k = 0; k < VXD_DAG_INDEX_SLOTS; k++) {
            if (vxd_dag_load_now(&to[at].refs[k]) == VXD_DAG_EMPTY &&
                vxd_dag_atomic_cas(&to[at].refs[k], VXD_DAG_EMPTY, ref) ==
                    VXD_DAG_EMPTY) {
                vxd_dag_atomic_or64(&to[at].tags, vxd_dag_tag_bits(tag, k));
                return true;
            }
        }
        at = at + 1 < n_to ? at + 1 : 0;
    }
    return false;
}

#endif
