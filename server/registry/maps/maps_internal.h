// SPDX-License-Identifier: Apache-2.0
/* What the files behind maps.h and maps_journal.h share. */
#ifndef VXD_SERVER_REGISTRY_MAPS_MAPS_INTERNAL_H
#define VXD_SERVER_REGISTRY_MAPS_MAPS_INTERNAL_H

#include <pthread.h>

#include "server/registry/maps/map_catalogue.h"
#include "server/registry/maps/named_maps.h"
#include "server/registry/registry.h"

struct vxd_maps {
    uint64_t limit_bytes;
    uint64_t token_limit_bytes;
    uint64_t n_made;     /* generations are counted by it */
    uint64_t next_epoch; /* above the epochs of all maps that were dropped */
    _Atomic size_t n_maps;
    _Atomic uint64_t n_bytes; /* of all maps that exist, with a name or without */
    _Atomic int64_t next_reap_ns;
    struct vxd_queue *queue; /* frees what is left at the end */
    pthread_mutex_t mutex;   /* guards list and sizes against vxd_maps_estimate */
    struct vxd_map *first;
    struct vxd_map *unnamed;       /* maps that have no name yet, or no longer have one */
    struct vxd_registry *registry; /* borrowed; has the journal */
    struct vxd_auth *auth;         /* borrowed; has the quotas */
    bool is_recovering; /* limits do not count, so that all on the disk comes back */
    _Atomic size_t n_durable;
};

/* named_maps.c. Chooses a new map's first epoch; see vxd_map_epoch. */
uint64_t vxd_maps_choose_epoch(struct vxd_maps *maps, const struct vxd_map *made);

/* maps_replay.c. Applies a record to a map that only this queue uses, with the same
 * result as at first. Blocking.
 * errors  DATA_LOSS            damaged, or of another map
 *         FAILED_PRECONDITION  of newer rules
 *         RESOURCE_EXHAUSTED   no memory: the map is to be thrown away */
enum vxd_status vxd_map_apply(struct vxd_queue *queue, struct vxd_hashmap *hashmap,
                              const struct vxd_journal_record *record,
                              struct vxd_err *err);

/* maps_replay.c. Makes a map as the disk has it up to a sequence number, from its newest
 * valid snapshot of at most that and the records after it. It only reads, beside the
 * journal's writer. Blocking.
 * errors  DATA_LOSS, NOT_FOUND, RESOURCE_EXHAUSTED, UNAVAILABLE */
enum vxd_status vxd_map_bring_back(struct vxd_queue *queue, struct vxd_journal *journal,
                                   const struct vxd_data_dir *dir, uint32_t family,
                                   const struct vxd_map_described *map, uint64_t sequence,
                                   struct vxd_hashmap **out, struct vxd_err *err);

/* maps_recover.c. What the registry of durable things needs of maps. */
extern const struct vxd_durable_kind vxd_maps_kind;

/* maps_save.c. Writes a map's snapshot file.
 * in      owner  struct vxd_maps
 * errors  as save of struct vxd_durable_kind */
enum vxd_status vxd_maps_save(void *owner, struct vxd_registry_save *save,
                              struct vxd_err *err);

/* maps_journal.c. Fills in what the journal's row says of a map. */
void vxd_map_get_description(const struct vxd_map *map, struct vxd_map_described *out);

#endif
