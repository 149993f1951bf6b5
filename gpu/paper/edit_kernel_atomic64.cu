// SPDX-License-Identifier: Apache-2.0
/* The passes of edits for scenes in the store ATOMIC64, which splits items (vxd_dag_reads_split). */
#define VXD_DAG_SPLIT_FORM

#include "gpu/paper/slab_store_cuda.h"

#define VXD_DAG_PASS_STORE struct vxd_dag_slabs_cuda<VXD_DAG_ATOMIC64>
#define VXD_DAG_PASS_FORM(name) name##_atomic64

#include "gpu/svdag/edit_kernel/change_kernel.cu"
#include "gpu/svdag/edit_kernel/copy_kernel.cu"
#include "gpu/svdag/edit_kernel/morph_kernel.cu"
#include "gpu/svdag/edit_kernel/shapes_kernel.cu"
#include "gpu/svdag/edit_kernel/undo_kernel.cu"
