// SPDX-License-Identifier: Apache-2.0
/* Insert. A new key's slot first holds the position of the key, so that equal keys
 * after it find it. New keys are then counted and numbered in the order of their
 * positions and their rows are written in that order, which makes them adjacent. Last,
 * the slots and the answers of equal keys get the numbers. Order ANY does the same,
 * because that is as fast. */
#include "gpu/hash/open_cpu.h"

/* What vxd_queue_push copies. */
struct insert_args {
    struct vxd_hashmap map;
    struct vxd_hashmap_insert_args args;
    const void *values[VXD_HASHMAP_MAX_VALUES];
    uint32_t max_entries; /* upper bound of the entries afterwards */
    void *scratch;
};

/* One chunk: positions in `batch` count from `first`. */
struct chunk {
    struct vxd_open_batch batch;
    const struct insert_args *call;
    size_t first;
    const uint32_t *heap; /* from the first free number on */
    uint32_t n_given;     /* how many of the new keys get a number */
};

struct rebuild_args {
    struct vxd_hashmap map;
    void *scratch;
};

/* Takes the slot at `place` for a new key. */
static void take_slot(struct vxd_open_batch *batch, size_t place, uint64_t tag,
                      uint32_t entry, uint32_t *n_marks_used)
{
    struct vxd_open_slot *slot = &batch->table.slots[place];

    *n_marks_used += slot->tag == VXD_TAG_ERASED ? 1 : 0;
    slot->tag = tag;
    slot->entry = entry;
}

static void insert_item(struct vxd_open_batch *batch, struct vxd_open_region *counts,
                        struct vxd_open_item *item, enum vxd_open_outcome outcome,
                        size_t place)
{
    uint32_t entry = VXD_OPEN_NONE;
    uint8_t is_new = 0;

    item->slot = VXD_OPEN_SETTLED;
    if (outcome == VXD_OPEN_FOUND) {
        entry = batch->table.slots[place].entry;
        if ((entry & VXD_OPEN_PENDING) != 0) {
            item->slot = (uint32_t)place;
        }
    } else if (place == SIZE_MAX || counts->n_new >= batch->n_free) {
        counts->failed = true;
    } else {
        take_slot(batch, place, item->tag, VXD_OPEN_PENDING | item->position,
                  &counts->n_marks_used);
        counts->n_new++;
        item->slot = (uint32_t)place;
        is_new = 1;
    }
    batch->numbers[item->position] = entry;
    batch->flags[item->position] = is_new;
}

static void insert_walk(struct vxd_open_batch *batch, struct vxd_open_region *region,
                        bool alone)
{
    struct vxd_open_region counts = *region;

    for (size_t i = region->begin; i < region->end; i++) {
        struct vxd_open_item *item = &batch->items[i];
        enum vxd_open_outcome outcome;
        size_t place;

        if (i + VXD_OPEN_PREFETCH < region->end) {
            vxd_open_prefetch_home(batch, &item[VXD_OPEN_PREFETCH]);
        }
        if (alone && item->slot != VXD_OPEN_DEFERRED) {
            continue;
        }
        outcome = vxd_open_seek(batch, region, item, alone, &place);
        if (outcome == VXD_OPEN_OUT_OF_REGION) {
            item->slot = VXD_OPEN_DEFERRED;
            counts.n_deferred++;
        } else {
            insert_item(batch, &counts, item, outcome, place);
        }
    }
    *region = counts;
}

static void count_new(void *args, size_t begin, size_t end)
{
    const struct chunk *chunk = args;
    uint32_t n = 0;

    for (size_t i = begin; i < end; i++) {
        n += chunk->batch.flags[i];
    }
    chunk->batch.piece_new[begin / VXD_OPEN_PIECE] = n;
}

/* Writes the rows of new entries. Numbers ascend, so bits of one word are set
 * together. */
static void number_new(void *args, size_t begin, size_t end)
{
    const struct chunk *chunk = args;
    const struct vxd_open_batch *batch = &chunk->batch;
    const struct vxd_hashmap *map = batch->map;
    size_t row_bytes = (size_t)map->form.row_bytes;
    uint32_t rank = batch->piece_new[begin / VXD_OPEN_PIECE];
    size_t word = 0;
    uint32_t bits = 0;

    for (size_t i = begin; i < end; i++) {
        uint32_t number = VXD_OPEN_NONE;

        if (batch->flags[i] == 0) {
            continue;
        }
        if (rank < chunk->n_given) {
            number = chunk->heap[rank];
            vxd_row_copy((char *)map->keys.ptr + number * row_bytes,
                         batch->keys + i * row_bytes, row_bytes);
            for (int v = 0; chunk->call->args.values != NULL && v < map->spec.n_values;
                 v++) {
                size_t n_bytes = map->row_bytes[v];

                vxd_row_copy((char *)map->values[v].ptr + number * n_bytes,
                             (const char *)chunk->call->values[v] +
                                 (chunk->first + i) * n_bytes,
                             n_bytes);
            }
            if (number / 32 != word && bits != 0) {
                vxd_live_set(map, word, bits);
                bits = 0;
            }
            word = number / 32;
            bits |= (uint32_t)1 << number % 32;
        }
        batch->numbers[i] = number;
        rank++;
    }
    if (bits != 0) {
        vxd_live_set(map, word, bits);
    }
}

/* Writes numbers to the slots of new keys and to the answers of equal keys. */
static void settle_region(void *args, size_t begin, size_t end)
{
    const struct vxd_open_batch *batch = &((const struct chunk *)args)->batch;
    size_t n_items = batch->regions[end - 1].end;

    for (size_t i = batch->regions[begin].begin; i < n_items; i++) {
        const struct vxd_open_item *item = &batch->items[i];
        struct vxd_open_slot *slot;

        if (i + VXD_OPEN_PREFETCH < n_items) {
            vxd_open_prefetch_home(batch, &item[VXD_OPEN_PREFETCH]);
        }
        if (item->slot == VXD_OPEN_SETTLED) {
            continue;
        }
        slot = &batch->table.slots[item->slot];
        if (slot->tag == item->tag && (slot->entry & VXD_OPEN_PENDING) != 0) {
            slot->entry = batch->numbers[slot->entry & ~VXD_OPEN_PENDING];
            if (slot->entry == VXD_OPEN_NONE) {
                slot->tag = VXD_TAG_ERASED;
            }
        }
        batch->numbers[item->position] = slot->entry;
    }
}

/* Returns whether all new keys of the chunk were inserted. */
static bool insert_chunk(struct chunk *chunk)
{
    struct vxd_open_batch *batch = &chunk->batch;
    const struct vxd_hashmap *map = batch->map;
    struct vxd_hash_counters *counters = vxd_counters_of(map);
    size_t n_pieces = (batch->n + VXD_OPEN_PIECE - 1) / VXD_OPEN_PIECE;
    struct vxd_open_region sum;
    uint32_t n_before = 0;
    bool fits;

    batch->n_free = chunk->call->max_entries - counters->n_live;
    chunk->heap = (const uint32_t *)map->heap.ptr + counters->n_live;
    vxd_open_batch_walk(batch, insert_walk);
    sum = vxd_open_batch_sum(batch);
    fits = !sum.failed && sum.n_new <= batch->n_free;
    chunk->n_given = sum.n_new < batch->n_free ? sum.n_new : batch->n_free;
    if (!fits && chunk->call->args.order == VXD_HASH_FIRST) {
        chunk->n_given = 0;
    }
    if (sum.n_new > 0) {
        vxd_parallel_for(batch->pool, batch->n, VXD_OPEN_PIECE, count_new, chunk);
        for (size_t i = 0; i < n_pieces; i++) {
            uint32_t n = batch->piece_new[i];

            batch->piece_new[i] = n_before;
            n_before += n;
        }
        vxd_parallel_for(batch->pool, batch->n, VXD_OPEN_PIECE, number_new, chunk);
        vxd_parallel_for(batch->pool, batch->n_regions, 1, settle_region, chunk);
    }
    counters->n_live += chunk->n_given;
    counters->n_erased_marks += sum.n_new - chunk->n_given - sum.n_marks_used;
    return fits;
}

/* Removes the entries heap[n_before .. n_live) again. */
static void roll_back(const struct vxd_hashmap *map, uint32_t n_before)
{
    struct vxd_open_table table = vxd_open_table_of(map);
    struct vxd_hash_counters *counters = vxd_counters_of(map);
    const uint32_t *heap = map->heap.ptr;

    for (uint32_t i = n_before; i < counters->n_live; i++) {
        const char *row = vxd_key_row(map, heap[i]);
        size_t place = vxd_open_find(&table, vxd_open_tag(&map->form, row), row, NULL);

        table.slots[place].tag = VXD_TAG_ERASED;
        table.slots[place].entry = VXD_OPEN_NONE;
        vxd_live_clear(map, heap[i]);
        vxd_rows_clear(map, heap[i]);
    }
    counters->n_erased_marks += counters->n_live - n_before;
    counters->n_live = n_before;
}

static enum vxd_status insert_job(struct vxd_pool *pool, const void *args,
                                  struct vxd_err *err)
{
    const struct insert_args *call = args;
    const struct vxd_hashmap_insert_args *insert = &call->args;
    const char *keys = insert->keys;
    size_t row_bytes = (size_t)call->map.form.row_bytes;
    uint32_t n_before = vxd_counters_of(&call->map)->n_live;
    bool fits = true;

    for (size_t i = 0; i < insert->n && fits; i += VXD_OPEN_CHUNK) {
        struct chunk chunk = {.call = call, .first = i};
        size_t n = insert->n - i < VXD_OPEN_CHUNK ? insert->n - i : VXD_OPEN_CHUNK;

        vxd_open_batch_start(&chunk.batch, pool, &call->map, keys + i * row_bytes, NULL,
                             n, call->scratch);
        if (insert->indices != NULL) {
            chunk.batch.numbers = (uint32_t *)insert->indices + i;
        }
        if (insert->is_new != NULL) {
            chunk.batch.flags = insert->is_new + i;
        }
        fits = insert_chunk(&chunk);
    }
    if (fits) {
        return VXD_OK;
    }
    if (insert->order == VXD_HASH_FIRST) {
        roll_back(&call->map, n_before);
    }
    /* The slots of keys that did not fit are erased marks. The batch's scratch is
     * enough to rebuild the index; a batch of fewer than 32 keys leaves that to a
     * later call. */
    if (vxd_open_needs_rebuild(&call->map) && insert->n >= 32) {
        size_t chunk = insert->n < VXD_OPEN_REBUILD_CHUNK ? insert->n / 32 * 32
                                                          : VXD_OPEN_REBUILD_CHUNK;
        enum vxd_status status =
            vxd_open_rebuild_run(pool, &call->map, chunk, call->scratch, err);

        if (status != VXD_OK) {
            return status;
        }
    }
    return vxd_fail(
        err, VXD_INTERNAL, NULL,
        "more new keys than the %zu of max_new: %u entries before, and at most %u "
        "allowed after",
        insert->max_new, n_before, call->max_entries);
}

enum vxd_status vxd_open_insert_cpu(struct vxd_queue *queue, struct vxd_hashmap *map,
                                    const struct vxd_hashmap_insert_args *args,
                                    void *scratch, size_t scratch_bytes,
                                    struct vxd_err *err)
{
    struct insert_args call = {.map = *map,
                               .args = *args,
                               .max_entries = (uint32_t)(map->size_bound + args->max_new),
                               .scratch = scratch};

    (void)scratch_bytes;
    for (int i = 0; args->values != NULL && i < map->spec.n_values; i++) {
        call.values[i] = args->values[i];
    }
    return vxd_queue_push(queue, insert_job, &call, sizeof call, err);
}

static void rebuild_walk(struct vxd_open_batch *batch, struct vxd_open_region *region,
                         bool alone)
{
    struct vxd_open_region counts = *region;

    for (size_t i = region->begin; i < region->end; i++) {
        struct vxd_open_item *item = &batch->items[i];
        enum vxd_open_outcome outcome;
        size_t place;

        if (i + VXD_OPEN_PREFETCH < region->end) {
            vxd_open_prefetch_home(batch, &item[VXD_OPEN_PREFETCH]);
        }
        if (alone && item->slot != VXD_OPEN_DEFERRED) {
            continue;
        }
        outcome = vxd_open_seek(batch, region, item, alone, &place);
        if (outcome == VXD_OPEN_OUT_OF_REGION) {
            item->slot = VXD_OPEN_DEFERRED;
            counts.n_deferred++;
        } else if (outcome == VXD_OPEN_FOUND) {
            item->slot = VXD_OPEN_SETTLED;
            counts.failed = true;
        } else {
            item->slot = VXD_OPEN_SETTLED;
            take_slot(batch, place, item->tag, batch->first_number + item->position,
                      &counts.n_marks_used);
        }
    }
    *region = counts;
}

enum vxd_status vxd_open_rebuild_run(struct vxd_pool *pool, const struct vxd_hashmap *map,
                                     size_t chunk, void *scratch, struct vxd_err *err)
{
    const uint32_t *live = map->live.ptr;

    vxd_open_clear_run(pool, map);
    for (size_t i = 0; i < map->capacity; i += chunk) {
        size_t n_left = map->capacity - i;
        size_t n = n_left < chunk ? n_left : chunk;
        struct vxd_open_batch batch;

        vxd_open_batch_start(&batch, pool, map, vxd_key_row(map, i), live + i / 32, n,
                             scratch);
        batch.first_number = (uint32_t)i;
        vxd_open_batch_walk(&batch, rebuild_walk);
        if (vxd_open_batch_sum(&batch).failed) {
            return vxd_fail(err, VXD_DATA_LOSS, "keys", "two entries have the same key");
        }
    }
    return VXD_OK;
}

static enum vxd_status rebuild_job(struct vxd_pool *pool, const void *args,
                                   struct vxd_err *err)
{
    const struct rebuild_args *rebuild = args;

    return vxd_open_rebuild_run(pool, &rebuild->map, VXD_OPEN_REBUILD_CHUNK,
                                rebuild->scratch, err);
}

enum vxd_status vxd_open_rebuild_cpu(struct vxd_queue *queue, struct vxd_hashmap *map,
                                     void *scratch, size_t scratch_bytes,
                                     struct vxd_err *err)
{
    struct rebuild_args args = {*map, scratch};

    (void)scratch_bytes;
    return vxd_queue_push(queue, rebuild_job, &args, sizeof args, err);
}
