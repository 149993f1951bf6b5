// SPDX-License-Identifier: Apache-2.0
/* Durable maps as bytes: what a map is (of families' rows and snapshot files), and all its
 * entries (of snapshot files). Told byte by byte in map_catalogue.c. */
#ifndef VXD_SERVER_REGISTRY_MAPS_MAP_CATALOGUE_H
#define VXD_SERVER_REGISTRY_MAPS_MAP_CATALOGUE_H

#include "proto/base/bytes.h"
#include "proto/base/name.h"
#include "server/durable/journal/journal.h"
#include "server/durable/snapshot/snapshot.h"
#include "server/registry/maps/named_maps.h"

/* What the journal's row has of a map; of the engine's spec neither index nor max_bytes. */
struct vxd_map_described {
    struct vxd_map_terms terms;
    struct vxd_map_spec spec;
    uint64_t generation;
    uint64_t first_epoch;
    int64_t created_unix_ns;
};

/* Adds a description; out of memory shows at the end (vxd_bytes_out). */
void vxd_map_describe(struct vxd_bytes_out *out, const struct vxd_map_described *map);

/* errors  DATA_LOSS */
enum vxd_status vxd_map_read_description(const void *bytes, size_t n_bytes,
                                         struct vxd_map_described *out,
                                         struct vxd_err *err);

/* The same of a snapshot file that was just opened.
 * errors  DATA_LOSS, RESOURCE_EXHAUSTED, UNAVAILABLE */
enum vxd_status vxd_map_read_catalogue(struct vxd_snapshot_reader *reader,
                                       struct vxd_map_described *out,
                                       struct vxd_err *err);

/* Writes the description and the entries of a map that nobody changes meanwhile, piece by piece;
 * what it takes of memory does not grow with the rows. Blocking.
 * errors  RESOURCE_EXHAUSTED, UNAVAILABLE */
enum vxd_status vxd_map_write_snapshot(struct vxd_snapshot_writer *writer,
                                       const struct vxd_map_described *map,
                                       struct vxd_queue *queue,
                                       struct vxd_hashmap *hashmap, struct vxd_err *err);

/* The map of a snapshot file, on the queue's context; its end is left to be checked. Its keys and
 * arrays are as *map says. Blocking.
 * errors  DATA_LOSS, RESOURCE_EXHAUSTED, UNAVAILABLE */
enum vxd_status vxd_map_read_snapshot(struct vxd_snapshot_reader *reader,
                                      const struct vxd_map_described *map,
                                      struct vxd_queue *queue, struct vxd_hashmap **out,
                                      struct vxd_err *err);

#endif
