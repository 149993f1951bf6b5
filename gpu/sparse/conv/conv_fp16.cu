// SPDX-License-Identifier: Apache-2.0
/* The tiles of conv_tiles_cuda.h in float16. */
#include "gpu/sparse/conv/conv_tiles_cuda.h"

enum vxd_status vxd_conv_tiles_fp16(struct vxd_queue *queue,
                                    const struct vxd_conv_tiles *tiles, int n_tile,
                                    struct vxd_err *err)
{
    return launch_tiles<VXD_NET_FP16>(queue, tiles, n_tile, err);
}
