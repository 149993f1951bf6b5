// SPDX-License-Identifier: Apache-2.0
/* What the files behind maps.h share. */
#ifndef VXD_SERVER_REGISTRY_MAPS_MAPS_INTERNAL_H
#define VXD_SERVER_REGISTRY_MAPS_MAPS_INTERNAL_H

#include "server/registry/maps/map_catalogue.h"
#include "server/registry/maps/named_maps.h"

/* maps_replay.c. Applies a record to a map that only this queue uses, with the same
 * result as at first. Blocking.
 * errors  DATA_LOSS            damaged, or of another map
 *         FAILED_PRECONDITION  of newer rules
 *         RESOURCE_EXHAUSTED   no memory: the map is to be thrown away */
enum vxd_status vxd_map_apply(struct vxd_queue *queue, struct vxd_hashmap *hashmap,
                              const struct vxd_journal_record *record,
                              struct vxd_err *err);

/* maps_durable.c. What the registry of durable things and the table need of maps. */
extern const struct vxd_durable_kind vxd_maps_kind;
extern const struct vxd_durable_calls vxd_maps_durable;
void vxd_maps_log(enum vxd_registry_event event, const char *name, const char *text);

#endif
