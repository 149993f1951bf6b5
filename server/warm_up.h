// SPDX-License-Identifier: Apache-2.0
/* Runs the engine's main job once, on a small cloud, before the daemon says that it is
 * ready. */
#ifndef VXD_SERVER_WARM_UP_H
#define VXD_SERVER_WARM_UP_H

#include "gpu/core/core.h"

/* Decodes and voxelizes a few points, so that a GPU loads its kernels now (about 9 ms)
 * and not in the first robot's request. Blocking.
 * errors  those of the engine: a daemon that cannot do this cannot serve */
enum vxd_status vxd_warm_up(struct vxd_context *context, struct vxd_err *err);

#endif
