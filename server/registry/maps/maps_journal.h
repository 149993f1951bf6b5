// SPDX-License-Identifier: Apache-2.0
/* Durable maps. A change is in the journal (server/durable) before anybody sees it or is
 * answered. At the next start maps come back from the journal, or from a snapshot file
 * and the records after it.
 *
 *   change    the map is changed in memory, record and reply are handed over as one transaction, and
 *             the reply is given when that is decided. A read in between is answered when all
 *             changes that it saw are decided
 *   failure   memory has a change that the disk has not: nobody sees the map until it has been
 *             brought back from the disk, which is tried at once and at each request
 *   start     the newest valid snapshot, then the records after it, in order
 *   snapshot  on the registry's thread (registry_saver.c), from the last snapshot and the records
 *             after it, in a map of its own on the CPU, so no request waits for it */
#ifndef VXD_SERVER_REGISTRY_MAPS_MAPS_JOURNAL_H
#define VXD_SERVER_REGISTRY_MAPS_MAPS_JOURNAL_H

#include "server/durable/record/record.h"
#include "server/registry/maps/named_maps.h"

/* --- on the write lane ------------------------------------------------------------------- */

/* Checks that requests may see the map, and brings it back where it is broken.
 * errors  UNAVAILABLE  the disk lacks a change that the map has, or the map is being
 * dropped */
enum vxd_status vxd_map_check_visible(struct vxd_maps *maps, struct vxd_map *map,
                                      struct vxd_err *err);

/* Checks that a change of so many bytes can be handed over now. Maps that are not durable
 * always pass.
 * errors  UNAVAILABLE  the disk does not take it, or too much waits for it */
enum vxd_status vxd_map_check_journal(struct vxd_maps *maps, const struct vxd_map *map,
                                      size_t n_bytes, struct vxd_err *err);

enum vxd_map_change_kind {
    VXD_MAP_CHANGED = 0,
    VXD_MAP_MADE = 1,
    VXD_MAP_DROPPED = 2,
    VXD_MAP_READ = 3 /* nothing changes, but all that was read has to be decided first */
};

/* What a request hands over to the journal. Zero-initialised it is nothing. */
struct vxd_map_entry {
    enum vxd_map_change_kind kind;
    enum vxd_map_record_kind record_kind; /* CHANGED */
    struct vxd_record_bytes record;       /* CHANGED; the owner of the entry frees it */
    uint64_t sequence;                    /* the number that it got */
    bool is_handed_over;
};

/* Gives a new map its number in the journal. To be called before the map is published. */
void vxd_map_enter_journal(struct vxd_maps *maps, struct vxd_map *map);

/* Hands a change over with the request's outcome (its output is complete);
 * vxd_commit_decide follows.
 * in      map  NULL for READ: all maps
 * errors  UNAVAILABLE, RESOURCE_EXHAUSTED; then it does not follow */
enum vxd_status vxd_map_hand_over(struct vxd_maps *maps, struct vxd_map *map,
                                  struct vxd_request *request,
                                  struct vxd_map_entry *entry, struct vxd_err *err);

/* Ends a change once it is decided, or could not be handed over. Changes end in the order
 * in which they were made. */
void vxd_map_end_change(struct vxd_maps *maps, struct vxd_map *map,
                        struct vxd_map_entry *entry, bool committed);

/* Says that the map has a change in memory that will never be handed over. */
void vxd_map_mark_broken(struct vxd_maps *maps, struct vxd_map *map);

/* Whether a read of the map, or of all maps where it is NULL, sees changes that are not
 * decided. */
bool vxd_map_is_waiting(struct vxd_maps *maps, const struct vxd_map *map);

#endif
