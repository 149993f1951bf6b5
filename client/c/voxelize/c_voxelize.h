// SPDX-License-Identifier: Apache-2.0
/* Voxelizing: the reply, whose arrays are checked against the request and each other. */
#ifndef VXD_CLIENT_C_VOXELIZE_C_VOXELIZE_H
#define VXD_CLIENT_C_VOXELIZE_C_VOXELIZE_H

#include "client/c/call/call.h"

/* What a reply must hold to answer its request. */
struct vxd_voxelize_expect {
    size_t n_clouds;
    uint32_t outputs;
    uint32_t reduce; /* 0: no features */
    uint32_t max_points;
    bool merges;
};

struct vxd_voxelize_expect
vxd_voxelize_expect_of(const struct voxeld_voxelize_request *request);

/* Makes the result and checks every size before a pointer is handed out. Takes *take_reply, on
 * failure too.
 * errors  INTERNAL  the reply contradicts itself or the request */
enum vxd_status vxd_voxels_open(struct vxd_reply *take_reply,
                                const struct vxd_voxelize_expect *expect,
                                struct voxeld_voxels **out, struct vxd_err *err);

#endif
