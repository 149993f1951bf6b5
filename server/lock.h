// SPDX-License-Identifier: Apache-2.0
/* The data directory belongs to one daemon at a time. */
#ifndef VXD_SERVER_LOCK_H
#define VXD_SERVER_LOCK_H

#include "proto/base.h"

/* Makes the directory where it is missing (its parent must exist) and locks DIR/lock.
 *
 * out     fd  to be given to vxd_lock_release; the lock also ends with the process
 * errors  FAILED_PRECONDITION  another daemon has it; names its process id
 *         INVALID_ARGUMENT     the directory cannot be made or written; says why */
enum vxd_status vxd_lock_take(const char *directory, int *fd, struct vxd_err *err);

/* -1 is fine. */
void vxd_lock_release(int fd);

#endif
