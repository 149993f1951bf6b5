// SPDX-License-Identifier: Apache-2.0
/* Files of a data directory copied into another one; private to this folder. */
#ifndef VXD_SERVER_DURABLE_MAINTENANCE_COPY_FILES_H
#define VXD_SERVER_DURABLE_MAINTENANCE_COPY_FILES_H

#include "server/durable/data_dir/data_dir.h"

/* Copies a file's bytes into one that is not there, and syncs it.
 * errors  as vxd_file_fail */
enum vxd_status vxd_copy_file(const struct vxd_file_ops *ops, const char *from,
                              const char *to, struct vxd_err *err);

/* Makes another name of a file that is never changed, or a copy where that cannot be.
 * errors  NOT_FOUND (from), ALREADY_EXISTS (to); as vxd_file_fail */
enum vxd_status vxd_link_file(const struct vxd_file_ops *ops, const char *from,
                              const char *to, bool *is_linked, struct vxd_err *err);

#endif
