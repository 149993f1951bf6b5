// SPDX-License-Identifier: Apache-2.0
/* Durable maps in the server of scenes_disk.h. */
#ifndef VXD_TESTS_SUPPORT_SERVER_MAPS_DISK_H
#define VXD_TESTS_SUPPORT_SERVER_MAPS_DISK_H

#include "tests/support/server/scenes_disk.h"

enum {
    MAP_JSON_BYTES = 600
};

/* What everybody sees of a map. */
struct map_view {
    enum vxd_status status;
    uint64_t digest; /* of numbers, keys and rows */
    uint64_t epoch;
    uint64_t generation;
};

/* More fields of a map that is durable. */
extern const char world_durable_map[];

/* Makes a map of one integer a key and one a row; `more` is further fields, each behind a
 * comma. */
void world_make_map(struct world *world, const char *name, const char *more);

/* The i-th of changes that are all different, of every kind: its parameter, and its method. */
const char *world_map_change(const char *name, int i, char json[MAP_JSON_BYTES]);
enum vxd_status world_change_map(struct world *world, const char *name, int i,
                                 uint64_t sequence);

/* Waits where a failure left what has to go first, at most 5 s. */
struct map_view world_view_map(struct world *world, const char *name);

#endif
