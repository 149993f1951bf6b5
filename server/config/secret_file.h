// SPDX-License-Identifier: Apache-2.0
/* Files with secrets. */
#ifndef VXD_SERVER_CONFIG_SECRET_FILE_H
#define VXD_SERVER_CONFIG_SECRET_FILE_H

#include "proto/base/base.h"

/* Checks that an open file cannot be read or written by every user of the machine. Its group may, so
 * that root can own what the daemon reads.
 *
 * in      fd     of a file
 *         path   for the message
 *         field  the key of the configuration that names it
 * errors  PERMISSION_DENIED  it can be; says its mode and the command that mends it */
enum vxd_status vxd_secret_file_check(int fd, const char *path, const char *field,
                                      struct vxd_err *err);

#endif
