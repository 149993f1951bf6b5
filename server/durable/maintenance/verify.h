// SPDX-License-Identifier: Apache-2.0
/* What is wrong with a data directory, without changing a byte of it: for `verify` and
 * `repair --dry-run`. */
#ifndef VXD_SERVER_DURABLE_MAINTENANCE_VERIFY_H
#define VXD_SERVER_DURABLE_MAINTENANCE_VERIFY_H

#include "server/durable/data_dir/data_dir.h"

enum vxd_problem_weight {
    VXD_PROBLEM_NOTE = 1,  /* nothing is lost: left-over files, an unclean end */
    VXD_PROBLEM_SPARE = 2, /* something that the start does without: an older snapshot */
    VXD_PROBLEM_LOSS = 3   /* the start would lose something; says what it would do */
};

struct vxd_problem {
    enum vxd_problem_weight weight;
    char where
        [160]; /* "voxeld.db, family yard", "snapshots/00000001.0000000000000007.vxs" */
    char message[240]; /* what, and what the start would do about it */
};

struct vxd_verify_result {
    size_t n_notes;
    size_t n_spares;
    size_t n_losses;
    size_t n_families;
    uint64_t n_records;
    size_t n_snapshots;
};

/* Looks at everything: SQLite's own check, every row's CRC, gaps, every record's bytes, every
 * chunk of every snapshot. No server may run on it (it takes the lock while it looks). Blocking.
 *
 * in      problem  called for each, in order
 * errors  FAILED_PRECONDITION  a server has it, or a newer one made it
 *         NOT_FOUND            no such directory, or no voxeld.db in it
 *         UNAVAILABLE, RESOURCE_EXHAUSTED */
enum vxd_status
vxd_verify_data_dir(const struct vxd_file_ops *ops, const char *path,
                    void (*problem)(void *user, const struct vxd_problem *problem),
                    void *user, struct vxd_verify_result *out, struct vxd_err *err);

#endif
