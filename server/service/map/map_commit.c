// SPDX-License-Identifier: Apache-2.0
/* What the journal gets of requests on durable maps. */

#include "proto/base/clock.h"
#include "server/instance/instance.h"
#include "server/service/map/map.h"

enum vxd_status vxd_map_pack_change(struct vxd_request *request,
                                    struct vxd_named_commit *commit, struct vxd_map *map,
                                    struct vxd_map_record *record, struct vxd_err *err)
{
    struct vxd_named_entry *entry = &commit->entry;
    enum vxd_status status = VXD_OK;

    commit->named = &map->named;
    if (map->named.durable.journal_id == 0) {
        return VXD_OK;
    }
    /* Checks first without the record, whose packing may be long work for nothing. */
    VXD_TRY(vxd_named_check_journal(&map->named, 0, err));
    record->unix_ns = vxd_clock_unix_ns();
    (void)snprintf(record->author, sizeof record->author, "%s", request->principal.name);
    (void)snprintf(record->client, sizeof record->client, "%s", request->client_id);
    record->key_dtype = map->spec.engine.key_dtype;
    record->n_components = map->spec.engine.n_components;
    for (int i = 0; i < VXD_HASHMAP_MAX_VALUES; i++) {
        record->rows[i].n_elements = map->spec.engine.values[i].n_elements;
    }
    entry->record_kind = (uint32_t)record->kind;
    VXD_TRY(vxd_map_record_encode(record, &entry->record, err));
    status = vxd_named_check_journal(&map->named, entry->record.n_bytes, err);
out:
    return status;
}

void vxd_map_conclude(struct vxd_request *request, struct vxd_named_commit *commit,
                      struct vxd_map *map, enum vxd_named_change kind)
{
    vxd_named_conclude(request, commit, request->server->maps,
                       map != NULL ? &map->named : NULL, kind);
}
