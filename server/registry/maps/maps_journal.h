// SPDX-License-Identifier: Apache-2.0
/* Durable maps: what changes them is in the journal (server/durable) before anybody sees it or is
 * answered, and comes back from there, or from a snapshot file and what follows it, at the next
 * start.
 *
 *   change    is made in memory, its record and its reply are handed over as one transaction, and
 *             the reply is given when that is decided. Who reads in between is answered when all
 *             that it saw is decided
 *   a failure leaves in memory what is not on the disk: from then on nobody sees the map until it
 *             has been brought back from the disk, which is tried at once and at each request
 *   start     newest valid snapshot, then the records after it, in order
 *   snapshot  on the registry's thread (registry_saver.c), from the last snapshot and the records
 *             after it, in a map of its own on the CPU: no request waits for it */
#ifndef VXD_SERVER_REGISTRY_MAPS_MAPS_JOURNAL_H
#define VXD_SERVER_REGISTRY_MAPS_MAPS_JOURNAL_H

#include "server/durable/record/record.h"
#include "server/registry/maps/named_maps.h"

/* --- on the write lane ------------------------------------------------------------------- */

/* Whether anybody may see the map: brings it back where that is due.
 * errors  UNAVAILABLE  a change could not be written, and what it left is not gone yet; it is
 *                      being dropped */
enum vxd_status vxd_map_check_visible(struct vxd_maps *maps, struct vxd_map *map,
                                      struct vxd_err *err);

/* Whether a change of so many bytes can be handed over now. Harmless for other maps.
 * errors  UNAVAILABLE  the disk does not take it, or too much waits for it */
enum vxd_status vxd_map_check_journal(struct vxd_maps *maps, const struct vxd_map *map,
                                      size_t n_bytes, struct vxd_err *err);

enum vxd_map_change_kind {
    VXD_MAP_CHANGED = 0,
    VXD_MAP_MADE = 1,
    VXD_MAP_DROPPED = 2,
    VXD_MAP_READ = 3 /* nothing: what was read is to be decided first */
};

/* What the journal gets of a request. Zero-initialised = nothing. */
struct vxd_map_entry {
    enum vxd_map_change_kind kind;
    enum vxd_map_record_kind record_kind; /* CHANGED */
    struct vxd_record_bytes record;       /* CHANGED; freed by who has the entry */
    uint64_t sequence;                    /* that it got */
    bool is_handed_over;
};

/* A new map's place in the journal. Before it is published. */
void vxd_map_enter_journal(struct vxd_maps *maps, struct vxd_map *map);

/* Hands a change over with the request's outcome (its output is complete);
 * vxd_commit_decide follows.
 * in      map  NULL for READ: all maps
 * errors  UNAVAILABLE, RESOURCE_EXHAUSTED; then it does not follow */
enum vxd_status vxd_map_hand_over(struct vxd_maps *maps, struct vxd_map *map,
                                  struct vxd_request *request,
                                  struct vxd_map_entry *entry, struct vxd_err *err);

/* It is decided, in this order; also where it could not be handed over. */
void vxd_map_end_change(struct vxd_maps *maps, struct vxd_map *map,
                        struct vxd_map_entry *entry, bool committed);

/* Memory has a change that will never be handed over. */
void vxd_map_mark_broken(struct vxd_maps *maps, struct vxd_map *map);

/* Whether somebody who looks at the map now, NULL = at all, sees what is not decided. */
bool vxd_map_is_waiting(struct vxd_maps *maps, const struct vxd_map *map);

#endif
