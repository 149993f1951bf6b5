// SPDX-License-Identifier: Apache-2.0
/* A data directory as of a moment: a backup, and the transactions that the archive has after it, up
 * to that moment. A server that starts from it gives everything another generation, as from a
 * backup. */
#ifndef VXD_SERVER_DURABLE_MAINTENANCE_RESTORE_H
#define VXD_SERVER_DURABLE_MAINTENANCE_RESTORE_H

#include "proto/base/name.h"
#include "server/durable/data_dir/data_dir.h"

enum vxd_restore_until {
    VXD_RESTORE_END = 0,  /* all that the archive has */
    VXD_RESTORE_TIME = 1, /* what was committed up to unix_ns */
    VXD_RESTORE_VERSION =
        2 /* up to the change that made a version of a scene, included */
};

struct vxd_restore_target {
    enum vxd_restore_until until;
    int64_t unix_ns;
    char scene[VXD_NAME_BYTES];
    uint64_t version;
};

/* Reads "end"; a time, 2026-11-27T10:15:00Z or with a fraction; or SCENE@VERSION.
 * errors  INVALID_ARGUMENT */
enum vxd_status vxd_restore_parse(const char *text, struct vxd_restore_target *out,
                                  struct vxd_err *err);

struct vxd_restore_result {
    uint64_t n_transactions; /* taken from the archive */
    size_t n_segments;
    int64_t unix_ns; /* of the last change that is in it; 0 = unknown */
};

/* Makes the directory `to`, which must not be there and whose parent must, beside its name first, so
 * that one that is cut off is none. Neither the backup nor the archive is changed; nobody needs to
 * run. Where the moment cannot be reached nothing is made, *out says how far the archive leads,
 * and the message says what is in the way.
 *
 * in      ops     NULL = the system's
 *         backup  a backup in which no daemon has run
 * errors  ALREADY_EXISTS       to
 *         INVALID_ARGUMENT     a path that is too long
 *         FAILED_PRECONDITION  the backup is none, was made without an archive, or is newer than the
 *                              moment
 *         NOT_FOUND            the archive ends before the moment
 *         DATA_LOSS            segments are missing or damaged: which
 *         others of the disk */
enum vxd_status vxd_restore(const struct vxd_file_ops *ops, const char *backup,
                            const char *archive, const char *to,
                            const struct vxd_restore_target *target,
                            struct vxd_restore_result *out, struct vxd_err *err);

#endif
