// SPDX-License-Identifier: Apache-2.0
/* Erase: the slots become erased marks, then the entries are freed and the heap is
 * rebuilt. The index is rebuilt where a quarter of its slots are marks, so that
 * probing always reaches an empty slot soon. */
#include "gpu/hash/open_cpu.h"

/* What vxd_queue_push copies. */
struct erase_args {
    struct vxd_hashmap map;
    const char *keys;
    size_t n;
    uint8_t *erased;
    void *scratch;
};

static void erase_walk(struct vxd_open_batch *batch, struct vxd_open_region *region,
                       bool alone)
{
    uint32_t n_deferred = region->n_deferred;

    for (size_t i = region->begin; i < region->end; i++) {
        struct vxd_open_item *item = &batch->items[i];
        enum vxd_open_outcome outcome;
        uint32_t number = VXD_OPEN_NONE;
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
            n_deferred++;
            continue;
        }
        item->slot = VXD_OPEN_SETTLED;
        if (outcome == VXD_OPEN_FOUND) {
            struct vxd_open_slot *slot = &batch->table.slots[place];

            number = slot->entry;
            slot->tag = VXD_TAG_ERASED;
            slot->entry = VXD_OPEN_NONE;
        }
        batch->numbers[item->position] = number;
        batch->flags[item->position] = number != VXD_OPEN_NONE ? 1 : 0;
    }
    region->n_deferred = n_deferred;
}

static enum vxd_status erase_job(struct vxd_pool *pool, const void *args,
                                 struct vxd_err *err)
{
    const struct erase_args *call = args;
    const struct vxd_hashmap *map = &call->map;
    struct vxd_hash_counters *counters = vxd_counters_of(map);
    struct vxd_open_batch batch = {.pool = pool};
    uint32_t n_erased = 0;

    for (size_t i = 0; i < call->n; i += VXD_OPEN_CHUNK) {
        size_t n = call->n - i < VXD_OPEN_CHUNK ? call->n - i : VXD_OPEN_CHUNK;

        vxd_open_batch_start(&batch, pool, map,
                             call->keys + i * (size_t)map->form.row_bytes, NULL, n,
                             call->scratch);
        if (call->erased != NULL) {
            batch.flags = call->erased + i;
        }
        vxd_open_batch_walk(&batch, erase_walk);
        n_erased +=
            vxd_hash_entries_free_run(pool, map, (const int32_t *)batch.numbers, n);
    }
    if (n_erased == 0) {
        return VXD_OK;
    }
    counters->n_erased_marks += n_erased;
    vxd_hash_heap_return_run(pool, map, (int32_t *)batch.numbers, call->n, n_erased,
                             call->scratch);
    if (vxd_open_needs_rebuild(map)) {
        return vxd_open_rebuild_run(pool, map, VXD_OPEN_REBUILD_CHUNK, call->scratch,
                                    err);
    }
    return VXD_OK;
}

enum vxd_status vxd_open_erase_cpu(struct vxd_queue *queue, struct vxd_hashmap *map,
                                   const void *keys, size_t n, enum vxd_hash_order order,
                                   uint8_t *erased, void *scratch, size_t scratch_bytes,
                                   struct vxd_err *err)
{
    struct erase_args args = {*map, keys, n, erased, scratch};

    (void)order; /* of equal keys the first is always the one reported */
    (void)scratch_bytes;
    return vxd_queue_push(queue, erase_job, &args, sizeof args, err);
}
