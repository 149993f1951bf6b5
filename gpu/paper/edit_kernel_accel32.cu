// SPDX-License-Identifier: Apache-2.0
/* The passes of edits for scenes in the store ACCEL32. */
#include "gpu/paper/slab_store_cuda.h"

#define VXD_SVDAG_KERNEL_STORE struct vxd_svdag_slabs_cuda<VXD_SVDAG_ACCEL32>
#define VXD_SVDAG_KERNEL_FORM(name) name##_accel32

#include "gpu/svdag/edit_kernel/change_kernel.cu"
#include "gpu/svdag/edit_kernel/copy_kernel.cu"
#include "gpu/svdag/edit_kernel/morph_kernel.cu"
#include "gpu/svdag/edit_kernel/shapes_kernel.cu"
#include "gpu/svdag/edit_kernel/undo_kernel.cu"
