// SPDX-License-Identifier: Apache-2.0
/* What the files of repairs share. */
#ifndef VXD_SERVER_DURABLE_MAINTENANCE_REPAIR_INTERNAL_H
#define VXD_SERVER_DURABLE_MAINTENANCE_REPAIR_INTERNAL_H

#include "server/durable/database/database.h"
#include "server/durable/maintenance/repair.h"
#include "server/durable/snapshot/snapshot.h"

struct vxd_repair {
    struct vxd_data_dir dir;
    sqlite3 *db;      /* that is mended */
    bool is_salvaged; /* it is made beside, and may lack families that have files */
    char made[VXD_DURABLE_PATH_BYTES]; /* its path, if it is */
    char why[160]; /* and what was wrong with the old one, if there was one */
    void (*said)(void *user, const struct vxd_problem *problem);
    void *user;
    struct vxd_repair_result *result;
};

#if defined(__GNUC__)
__attribute__((format(printf, 4, 5)))
#endif
void vxd_repair_say(struct vxd_repair *repair, enum vxd_problem_weight weight,
                    const char *where, const char *format, ...);

/* repair_salvage.c. Opens the database; where SQLite does not find it whole, or it is missing, one
 * is made beside it, and gets what can be read of it.
 * errors  FAILED_PRECONDITION, UNAVAILABLE, RESOURCE_EXHAUSTED */
enum vxd_status vxd_repair_open(struct vxd_repair *repair, struct vxd_err *err);

/* repair_salvage.c. All that was mended is on the disk and, where it was made beside, in its place,
 * and the old one aside. Closes it; a failure before that leaves the old one as it was.
 * errors  FAILED_PRECONDITION, UNAVAILABLE, RESOURCE_EXHAUSTED */
enum vxd_status vxd_repair_close(struct vxd_repair *repair, struct vxd_err *err);

/* repair_salvage.c. Rows of families whose numbers no family has go to quarantine; how many. Cut to
 * what a number may be they would be taken for those of another family.
 * errors  UNAVAILABLE */
enum vxd_status vxd_repair_strange_families(struct vxd_repair *repair, int64_t *n,
                                            struct vxd_err *err);

/* repair_files.c. The newest file of a family that is whole; those that are damaged are set aside.
 * False: there is none. *unknown says why where one cannot be judged now, else its code is OK: it
 * is a newer server's, or the disk does not give it. */
bool vxd_repair_check_files(struct vxd_repair *repair, uint32_t family,
                            struct vxd_snapshot_head *newest, struct vxd_err *unknown);

/* repair.c. Steps through `sql` with one argument; DONE and ROW are fine, the first row's number
 * is given. */
enum vxd_status vxd_repair_run(struct vxd_repair *repair, const char *sql,
                               int64_t argument, int64_t *out, struct vxd_err *err);

#endif
