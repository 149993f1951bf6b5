// SPDX-License-Identifier: Apache-2.0
/* A data directory on the disk of scenes_disk.h that is damaged, and its repair. */
#ifndef VXD_TESTS_SUPPORT_SERVER_REPAIR_DISK_H
#define VXD_TESTS_SUPPORT_SERVER_REPAIR_DISK_H

#include "server/durable/maintenance/maintenance.h"
#include "tests/support/server/scenes_disk.h"

#define REPAIR_DATABASE WORLD_DIR "/voxeld.db"

enum {
    REPAIR_AT_FILE = 4, /* the version in the snapshot file, */
    REPAIR_AT_END = 6   /* and the last one */
};

/* Two scenes: "a" with three edits in a snapshot file, two after it and a name, "b" without a
 * file. Stopped. What "a" is is given. */
struct seen repair_make(struct world *world);

/* Changes the database of a server that is stopped; in the second the WAL keeps all, so that the
 * database is nothing without it. */
void repair_sql(struct world *world, const char *sql);
void repair_sql_in_wal(struct world *world, const char *sql);

/* A repair, which must end well. */
struct vxd_repair_result repair_now(struct world *world);

/* Behind a repair: another one changes nothing, and a start goes on with "a" at this version. The
 * server runs then. */
void repair_check_mended(struct world *world, struct seen before, uint64_t version,
                         bool is_new_generation);

/* A start that may fail; true where the server runs. */
bool repair_try_start(struct world *world);

#endif
