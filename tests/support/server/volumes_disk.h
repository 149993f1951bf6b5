// SPDX-License-Identifier: Apache-2.0
/* Durable volumes in the server of scenes_disk.h. */
#ifndef VXD_TESTS_SUPPORT_SERVER_VOLUMES_DISK_H
#define VXD_TESTS_SUPPORT_SERVER_VOLUMES_DISK_H

#include "tests/support/server/scenes_disk.h"

enum {
    VOLUME_JSON_BYTES = 800
};

/* What everybody sees of a volume. */
struct volume_view {
    enum vxd_status status;
    uint64_t digest; /* of entries, keys and all layers */
    uint64_t stamp;
    uint64_t generation;
};

/* More fields of a volume that is durable. */
extern const char world_durable_volume[];

/* Makes a volume of few blocks; `more` is further fields, each behind a comma. */
void world_make_volume(struct world *world, const char *name, const char *more);

/* The i-th of changes that are all different, of every kind: its parameter, and its method. */
const char *world_volume_change(const char *name, int i, char json[VOLUME_JSON_BYTES]);
enum vxd_status world_change_volume(struct world *world, const char *name, int i,
                                    uint64_t sequence);

/* Waits where a failure left what has to go first, at most 5 s. */
struct volume_view world_view_volume(struct world *world, const char *name);

#endif
