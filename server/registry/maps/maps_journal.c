// SPDX-License-Identifier: Apache-2.0
/* Hands changes of maps over to the journal. Sequence numbers are counted for each map,
 * in the order of the write lane, so the changes of a map are decided in the order in
 * which they were made. */
#include "server/registry/maps/maps_journal.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"
#include "server/request/request.h"
#include "server/observe/log/log.h"
#include "server/registry/maps/maps_internal.h"

enum {
    MAX_WAITING_BYTES = 128 << 20 /* of the journal's queue, which takes twice as much */
};

void vxd_map_get_description(const struct vxd_map *map, struct vxd_map_described *out)
{
    out->terms = map->terms;
    out->spec = map->spec;
    out->generation = map->generation;
    out->first_epoch = map->first_epoch;
    out->created_unix_ns = map->created_unix_ns;
}

/* --- a map that is not what the disk has --------------------------------------------------- */

/* Empties the map before it is brought back, since the old and the new entries may not
 * both fit. */
static enum vxd_status empty(struct vxd_maps *maps, struct vxd_map *map,
                             struct vxd_err *err)
{
    struct vxd_hashmap_spec spec = map->spec.engine;
    struct vxd_hashmap *hashmap;
    enum vxd_status status;

    spec.capacity = 0;
    spec.max_bytes = 0;
    VXD_TRY(vxd_hashmap_create(maps->queue, &spec, &hashmap, err));
    vxd_hashmap_destroy(maps->queue, map->hashmap);
    map->hashmap = hashmap;
    map->n_entries = 0;
    status = vxd_queue_wait(maps->queue, err);
    vxd_maps_account(maps, map);
out:
    return status;
}

static enum vxd_status bring_back(struct vxd_maps *maps, struct vxd_map *map,
                                  struct vxd_err *err)
{
    struct vxd_map_described described;
    struct vxd_hashmap *hashmap = NULL;
    size_t n_entries = 0;
    enum vxd_status status;

    vxd_map_get_description(map, &described);
    VXD_TRY(empty(maps, map, err));
    VXD_TRY(vxd_map_bring_back(maps->queue, vxd_registry_get_journal(maps->registry),
                               vxd_registry_get_data_dir(maps->registry),
                               map->durable.journal_id, &described, map->durable.decided,
                               &hashmap, err));
    vxd_hashmap_destroy(maps->queue, map->hashmap);
    map->hashmap = hashmap;
    VXD_TRY(vxd_hashmap_size(maps->queue, map->hashmap, &n_entries, err));
    map->n_entries = n_entries;
    map->durable.sequence = map->durable.decided;
    map->durable.is_broken = false;
    vxd_log(VXD_LOG_INFO, "a map was brought back from the disk", "map", map->terms.name);
out:
    (void)vxd_queue_wait(maps->queue, NULL);
    vxd_maps_account(maps, map);
    if (status != VXD_OK) {
        vxd_log(VXD_LOG_ERROR, "a map could not be brought back from the disk", "map",
                map->terms.name, "error", err->message);
    }
    return status;
}

/* Brings a broken map back, once no change waits that was built on the one that failed. */
static void bring_back_when_possible(struct vxd_maps *maps, struct vxd_map *map)
{
    struct vxd_err err = {0};

    if (map->durable.is_broken && map->durable.n_waiting == 0 && !map->durable.is_gone) {
        (void)bring_back(maps, map, &err);
    }
}

void vxd_map_mark_broken(struct vxd_maps *maps, struct vxd_map *map)
{
    if (map->durable.journal_id != 0) {
        map->durable.is_broken = true;
        bring_back_when_possible(maps, map);
    }
}

enum vxd_status vxd_map_check_visible(struct vxd_maps *maps, struct vxd_map *map,
                                      struct vxd_err *err)
{
    if (map->durable.is_leaving) {
        return vxd_fail(err, VXD_UNAVAILABLE, NULL,
                        "the map \"%s\" is being dropped; try again", map->terms.name);
    }
    bring_back_when_possible(maps, map);
    return !map->durable.is_broken
               ? VXD_OK
               : vxd_fail(
                     err, VXD_UNAVAILABLE, NULL,
                     "a change of the map could not be written to the disk, and what "
                     "was built on it goes with it; try again");
}

enum vxd_status vxd_map_check_journal(struct vxd_maps *maps, const struct vxd_map *map,
                                      size_t n_bytes, struct vxd_err *err)
{
    struct vxd_journal_stats stats;
    enum vxd_status status;

    if (map->durable.journal_id == 0) {
        return VXD_OK;
    }
    VXD_TRY(vxd_registry_check_disk(maps->registry, &stats, err));
    if (stats.n_queued > 0 && (n_bytes > MAX_WAITING_BYTES ||
                               stats.n_queued_bytes > MAX_WAITING_BYTES - n_bytes)) {
        return vxd_fail(err, VXD_UNAVAILABLE, NULL,
                        "%zu bytes of changes wait for the disk already; try again",
                        stats.n_queued_bytes);
    }
out:
    return status;
}

bool vxd_map_is_waiting(struct vxd_maps *maps, const struct vxd_map *map)
{
    if (map != NULL) {
        return map->durable.n_waiting > 0;
    }
    for (const struct vxd_map *m = maps->first; m != NULL; m = m->next) {
        if (m->durable.n_waiting > 0) {
            return true;
        }
    }
    return false;
}

/* --- handing over --------------------------------------------------------------------------- */

void vxd_map_enter_journal(struct vxd_maps *maps, struct vxd_map *map)
{
    map->durable.journal_id =
        vxd_journal_new_family(vxd_registry_get_journal(maps->registry));
}

static enum vxd_status put_family(const struct vxd_map *map, struct vxd_journal_txn *txn,
                                  struct vxd_err *err)
{
    struct vxd_journal_family row = {.id = map->durable.journal_id,
                                     .fsync = map->terms.fsync,
                                     .max_bytes = map->terms.journal_max_bytes,
                                     .epoch = map->generation};
    struct vxd_bytes_out bytes = {0};
    struct vxd_map_described described;
    enum vxd_status status;

    vxd_registry_family_name(&vxd_maps_kind, map->terms.name, row.name);
    vxd_map_get_description(map, &described);
    vxd_map_describe(&bytes, &described);
    row.spec = bytes.bytes;
    row.n_spec_bytes = bytes.n;
    status = !bytes.is_out_of_memory ? vxd_journal_put_family(txn, &row, err)
                                     : vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                                                "no memory for a map's description");
    free(bytes.bytes);
    return status;
}

static enum vxd_status need(const struct vxd_map *map, struct vxd_journal_txn *txn,
                            struct vxd_err *err)
{
    return vxd_journal_need(txn, map->durable.journal_id, map->durable.sequence, err);
}

/* Makes a read wait for all changes that it saw: of this map, or of all maps where it is
 * NULL. */
static enum vxd_status need_seen(const struct vxd_maps *maps, const struct vxd_map *map,
                                 struct vxd_journal_txn *txn, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    if (map != NULL) {
        return need(map, txn, err);
    }
    for (const struct vxd_map *m = maps->first; m != NULL && status == VXD_OK;
         m = m->next) {
        /* A map that is being dropped may be gone by then, which is no error. */
        status = m->durable.n_waiting > 0 && !m->durable.is_leaving ? need(m, txn, err)
                                                                    : VXD_OK;
    }
    return status;
}

static enum vxd_status put_change(const struct vxd_maps *maps, struct vxd_map *map,
                                  struct vxd_map_entry *entry,
                                  struct vxd_journal_txn *txn, struct vxd_err *err)
{
    struct vxd_journal_record record = {.rules_version = VXD_MAP_RULES_VERSION,
                                        .kind = (uint32_t)entry->record_kind,
                                        .bytes = entry->record.bytes,
                                        .n_bytes = entry->record.n_bytes};

    switch (entry->kind) {
    case VXD_MAP_MADE:
        return put_family(map, txn, err);
    case VXD_MAP_DROPPED:
        return vxd_journal_drop_family(txn, map->durable.journal_id, err);
    case VXD_MAP_READ:
        return need_seen(maps, map, txn, err);
    case VXD_MAP_CHANGED:
    default:
        record.family = map->durable.journal_id;
        record.sequence = map->durable.sequence + 1;
        return vxd_journal_add_record(txn, &record, err);
    }
}

enum vxd_status vxd_map_hand_over(struct vxd_maps *maps, struct vxd_map *map,
                                  struct vxd_request *request,
                                  struct vxd_map_entry *entry, struct vxd_err *err)
{
    struct vxd_journal_txn *txn = NULL;
    enum vxd_status status;

    VXD_TRY(vxd_journal_begin(vxd_registry_get_journal(maps->registry), &txn, err));
    VXD_TRY(put_change(maps, map, entry, txn, err));
    status = vxd_registry_hand_over(txn, request, vxd_clock_unix_ns(), err);
    txn = NULL;
    if (status == VXD_OK && entry->kind != VXD_MAP_READ) {
        entry->is_handed_over = true;
        map->durable.n_waiting++;
        map->durable.is_leaving = entry->kind == VXD_MAP_DROPPED;
        map->durable.sequence += entry->kind == VXD_MAP_CHANGED ? 1 : 0;
        entry->sequence = map->durable.sequence;
    }
out:
    vxd_journal_abandon(txn);
    return status;
}

/* --- what is decided ------------------------------------------------------------------------ */

/* Removes the map, so that its name is free again. */
static void remove_map(struct vxd_maps *maps, struct vxd_map *map)
{
    if (!map->durable.is_gone) {
        map->durable.is_gone = true;
        vxd_maps_remove(maps, maps->queue, map);
        (void)vxd_queue_wait(maps->queue, NULL);
    }
}

void vxd_map_end_change(struct vxd_maps *maps, struct vxd_map *map,
                        struct vxd_map_entry *entry, bool committed)
{
    struct vxd_map_durable *durable;

    if (entry->kind == VXD_MAP_READ) {
        return; /* a list has no map of its own */
    }
    durable = &map->durable;
    durable->n_waiting -= entry->is_handed_over ? 1 : 0;
    if (entry->kind == VXD_MAP_CHANGED) {
        durable->decided = committed ? entry->sequence : durable->decided;
        durable->is_broken = durable->is_broken || !committed;
    } else if (entry->kind == VXD_MAP_MADE && !committed) {
        durable->is_broken = true;
        remove_map(maps, map);
    } else if (entry->kind == VXD_MAP_DROPPED) {
        durable->is_leaving = false;
        if (committed) {
            /* This comes before the map is removed, since its id is lost with its last
             * reference. */
            vxd_registry_ask_snapshot(maps->registry, durable->journal_id);
            remove_map(maps, map);
            return;
        }
    }
    bring_back_when_possible(maps, map);
}
