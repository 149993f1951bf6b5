// SPDX-License-Identifier: Apache-2.0
/* Commits of requests on durable maps: what the journal gets of them, and what happens
 * when that is decided. */

#include "proto/base/clock.h"
#include "server/observe/log/log.h"
#include "server/instance/instance.h"
#include "server/service/map/map.h"

enum vxd_status vxd_map_pack_change(struct vxd_request *request,
                                    struct vxd_map_commit *commit, struct vxd_map *map,
                                    struct vxd_map_record *record, struct vxd_err *err)
{
    struct vxd_map_entry *entry = &commit->entry;
    enum vxd_status status = VXD_OK;

    commit->map = map;
    if (map->durable.journal_id == 0) {
        return VXD_OK;
    }
    /* Checks first without the record, whose packing may be long work for nothing. */
    VXD_TRY(vxd_map_check_journal(request->server->maps, map, 0, err));
    record->unix_ns = vxd_clock_unix_ns();
    (void)snprintf(record->author, sizeof record->author, "%s", request->principal.name);
    (void)snprintf(record->client, sizeof record->client, "%s", request->client_id);
    record->key_dtype = map->spec.engine.key_dtype;
    record->n_components = map->spec.engine.n_components;
    for (int i = 0; i < VXD_HASHMAP_MAX_VALUES; i++) {
        record->rows[i].n_elements = map->spec.engine.values[i].n_elements;
    }
    entry->record_kind = record->kind;
    VXD_TRY(vxd_map_record_encode(record, &entry->record, err));
    status =
        vxd_map_check_journal(request->server->maps, map, entry->record.n_bytes, err);
out:
    return status;
}

static enum vxd_status begin(struct vxd_request *request, struct vxd_err *err)
{
    struct vxd_map_commit *commit = (struct vxd_map_commit *)request->commit;

    return vxd_map_hand_over(request->server->maps, commit->map, request, &commit->entry,
                             err);
}

static void end(struct vxd_request *request, bool committed)
{
    struct vxd_map_commit *commit = (struct vxd_map_commit *)request->commit;
    struct vxd_map *map = commit->map;

    if (committed && commit->entry.kind == VXD_MAP_MADE) {
        vxd_log(VXD_LOG_INFO, "durable map made", "map", map->terms.name, "by",
                map->terms.owner);
    }
    commit->is_ended = true;
    vxd_map_end_change(request->server->maps, map, &commit->entry, committed);
}

void vxd_map_conclude(struct vxd_request *request, struct vxd_map_commit *commit,
                      struct vxd_map *map, enum vxd_map_change_kind kind)
{
    bool is_read = kind == VXD_MAP_READ;

    if ((map != NULL && map->durable.journal_id == 0) ||
        (is_read && !vxd_map_is_waiting(request->server->maps, map))) {
        return;
    }
    commit->map = map;
    commit->entry.kind = kind;
    commit->base.begin = begin;
    commit->base.end = end;
    request->commit = &commit->base;
}

void vxd_map_end_commit(struct vxd_request *request, struct vxd_map_commit *commit)
{
    if (commit->has_changed && !commit->is_ended) {
        vxd_map_mark_broken(request->server->maps, commit->map);
    }
    vxd_record_bytes_free(&commit->entry.record);
}
