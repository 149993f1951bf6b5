// SPDX-License-Identifier: Apache-2.0
/* What voxelizing takes beside what is generated. */
#ifndef VXD_CLIENT_C_VOXELIZE_C_VOXELIZE_H
#define VXD_CLIENT_C_VOXELIZE_C_VOXELIZE_H

#include "client/c/call/call.h"

/* Opens the arrays of the reply that *voxels holds, whose items and numbers are there, and checks all
 * against each other and the request.
 * errors  INTERNAL  the reply contradicts itself or the request */
enum vxd_status vxd_voxels_check(const struct voxeld_voxelize_request *request,
                                 struct voxeld_voxels *voxels, struct vxd_err *err);

#endif
