// SPDX-License-Identifier: Apache-2.0
/* The edits of scenes in the store ACCEL32. */
#include "gpu/paper/slab_store_cuda.h"
#include "gpu/svdag/edit_kernel/edit_kernel_cuda.h"

const struct vxd_svdag_edit_kernels vxd_paper_accel32_kernels =
    vxd_svdag_edit_kernels_for<struct vxd_svdag_slabs_cuda<VXD_SVDAG_ACCEL32>>();
