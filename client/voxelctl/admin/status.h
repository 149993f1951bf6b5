// SPDX-License-Identifier: Apache-2.0
/* What status and top print of a daemon's status, on standard output. */
#ifndef VXD_CLIENT_VOXELCTL_ADMIN_STATUS_H
#define VXD_CLIENT_VOXELCTL_ADMIN_STATUS_H

#include "client/voxelctl/cli/cli.h"

/* State, load and queue in a line. */
void ctl_status_print_head(const struct voxeld_server_status *status);
void ctl_status_print_memory(const struct voxeld_server_status *status);
/* The first n_most requests that run or wait; nothing where there are none. */
void ctl_status_print_current(const struct voxeld_server_status *status, size_t n_most);
/* The n_most newest slow requests; nothing where there are none. */
void ctl_status_print_slow(const struct voxeld_server_status *status, size_t n_most);

#endif
