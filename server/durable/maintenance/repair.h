// SPDX-License-Identifier: Apache-2.0
/* Mends a data directory that a start refuses. Nothing is deleted: a database that SQLite cannot
 * read whole is renamed to voxeld.db.damaged.N and what can be read of it goes to a new one,
 * damaged rows go to tables quarantine_*, damaged snapshot files are renamed to .bad. What is
 * left is the newest state that is whole, which the next start goes on from. Wherever it is cut
 * off, a start or another repair finds the state before or the one behind it, never one between
 * (database_repaired.c). */
#ifndef VXD_SERVER_DURABLE_MAINTENANCE_REPAIR_H
#define VXD_SERVER_DURABLE_MAINTENANCE_REPAIR_H

#include "server/durable/maintenance/verify.h"

struct vxd_repair_result {
    size_t n_mended;    /* families whose rows were made anew from what is there */
    size_t n_set_aside; /* rows and files */
    size_t n_lost;      /* families of which nothing is left, names, databases */
};

/* No server may run on it: takes the lock. After a repair that set something aside or lost it the
 * next start gives every scene another generation, since more may have been acknowledged. Records
 * that are damaged are left to that start, which sets them aside with what follows them. Blocking.
 *
 * in      said    called for each thing done, in order; of weight NOTE where it was mended, SPARE
 *                 where it was set aside, LOSS where it is lost
 * errors  FAILED_PRECONDITION  a server has it, or a newer one made it
 *         NOT_FOUND            no such directory, or nothing of ours in it
 *         UNAVAILABLE, RESOURCE_EXHAUSTED; the database is as it was then, or
 *                              the next start, or repair, finishes this one */
enum vxd_status
vxd_repair_data_dir(const struct vxd_file_ops *ops, const char *path,
                    void (*said)(void *user, const struct vxd_problem *problem),
                    void *user, struct vxd_repair_result *out, struct vxd_err *err);

#endif
