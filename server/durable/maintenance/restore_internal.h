// SPDX-License-Identifier: Apache-2.0
#ifndef VXD_SERVER_DURABLE_MAINTENANCE_RESTORE_INTERNAL_H
#define VXD_SERVER_DURABLE_MAINTENANCE_RESTORE_INTERNAL_H

#include "server/durable/journal/journal.h"
#include "server/durable/maintenance/restore.h"

/* restore_fill.c. Applies what the archive has of a line from `next` on to a journal that is as the
 * backup was, up to the target. *out is what was applied, on failure too.
 * errors  as vxd_restore */
enum vxd_status vxd_restore_fill(const struct vxd_file_ops *ops, const char *archive,
                                 uint64_t line, uint64_t next,
                                 const struct vxd_restore_target *target,
                                 struct vxd_journal *journal,
                                 struct vxd_restore_result *out, struct vxd_err *err);

#endif
