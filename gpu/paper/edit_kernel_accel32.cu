// SPDX-License-Identifier: Apache-2.0
/* The passes of edits for scenes in the store ACCEL32. */
#include "gpu/paper/slab_store_cuda.h"

#define VXD_DAG_PASS_STORE struct vxd_dag_slabs_cuda<VXD_DAG_ACCEL32>
#define VXD_DAG_PASS_FORM(name) name##_accel32

#include "gpu/dag/change.cu"
#include "gpu/dag/copy.cu"
#include "gpu/dag/morph.cu"
#include "gpu/dag/shapes.cu"
#include "gpu/dag/undo.cu"
