// SPDX-License-Identifier: Apache-2.0
/* Durable maps as bytes: the description of a map (in families' rows and snapshot files)
 * and all its entries (in snapshot files). map_catalogue.c describes them byte by
 * byte. */
#ifndef VXD_SERVER_REGISTRY_MAPS_MAP_CATALOGUE_H
#define VXD_SERVER_REGISTRY_MAPS_MAP_CATALOGUE_H

#include "proto/base/bytes.h"
#include "proto/base/name.h"
#include "server/durable/journal/journal.h"
#include "server/durable/snapshot/snapshot.h"
#include "server/registry/maps/named_maps.h"

/* What the journal's row says of a map. The engine's index and max_bytes are not in it. */
struct vxd_map_described {
    struct vxd_described base; /* first: a struct vxd_described of a map is one */
    struct vxd_map_spec spec;
    uint64_t first_epoch;
};

/* Adds a description. A lack of memory shows at the end (vxd_bytes_out). */
void vxd_map_describe(struct vxd_bytes_out *out, const struct vxd_map_described *map);

/* errors  DATA_LOSS */
enum vxd_status vxd_map_read_description(const void *bytes, size_t n_bytes,
                                         struct vxd_map_described *out,
                                         struct vxd_err *err);

/* Reads the description from a snapshot file that was just opened.
 * errors  DATA_LOSS, RESOURCE_EXHAUSTED, UNAVAILABLE */
enum vxd_status vxd_map_read_catalogue(struct vxd_snapshot_reader *reader,
                                       struct vxd_map_described *out,
                                       struct vxd_err *err);

/* Writes the description and the entries of a map that nobody changes meanwhile, piece by
 * piece, so that the memory it takes does not grow with the rows. Blocking.
 * errors  RESOURCE_EXHAUSTED, UNAVAILABLE */
enum vxd_status vxd_map_write_snapshot(struct vxd_snapshot_writer *writer,
                                       const struct vxd_map_described *map,
                                       struct vxd_queue *queue,
                                       struct vxd_hashmap *hashmap, struct vxd_err *err);

/* Makes the map of a snapshot file, on the queue's context. The caller checks the file's
 * end. Keys and arrays are as *map says. Blocking.
 * errors  DATA_LOSS, RESOURCE_EXHAUSTED, UNAVAILABLE */
enum vxd_status vxd_map_read_snapshot(struct vxd_snapshot_reader *reader,
                                      const struct vxd_map_described *map,
                                      struct vxd_queue *queue, struct vxd_hashmap **out,
                                      struct vxd_err *err);

#endif
