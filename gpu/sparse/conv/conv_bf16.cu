// SPDX-License-Identifier: Apache-2.0
/* The tiles of conv_tiles_cuda.h in bfloat16. */
#include "gpu/sparse/conv/conv_tiles_cuda.h"

enum vxd_status vxd_conv_tiles_bf16(struct vxd_queue *queue,
                                    const struct vxd_conv_tiles *tiles, int n_tile,
                                    struct vxd_err *err)
{
    return launch_tiles<VXD_NET_BF16>(queue, tiles, n_tile, err);
}
