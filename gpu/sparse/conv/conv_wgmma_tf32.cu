// SPDX-License-Identifier: Apache-2.0
/* The tiles of conv_wgmma_tiles_cuda.h in TF32; built for sm_90a. */
#include "gpu/sparse/conv/conv_wgmma_tiles_cuda.h"

enum vxd_status vxd_conv_wgmma_tf32(struct vxd_queue *queue,
                                    const struct vxd_conv_tiles *tiles, int n_tile,
                                    struct vxd_err *err)
{
    return launch_tiles<VXD_NET_TF32>(queue, tiles, n_tile, err);
}
