// SPDX-License-Identifier: Apache-2.0
/* All methods of the daemon, for main.c and tests to hand in; everybody else finds them in
 * the server's instance. */
#ifndef VXD_SERVER_METHOD_TABLE_H
#define VXD_SERVER_METHOD_TABLE_H

#include "server/request/request.h"

/* Lives as long as the process. */
const struct vxd_method_table *vxd_method_table(void);

#endif
