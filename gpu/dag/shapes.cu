// SPDX-License-Identifier: Apache-2.0
/* Passes of shapes: the kernel of pass_cuda.h with the editor of shapes_math.h. */
#include "gpu/dag/editors_cuda.h"
#include "gpu/dag/launch_cuda.h"

static __global__ void
__launch_bounds__(VXD_DAG_TEAM_THREADS, vxd_dag_team_blocks<struct vxd_dag_shapes_cuda>())
    shapes_kernel(const __grid_constant__ struct vxd_dag_pass pass,
                  const __grid_constant__ struct vxd_dag_shapes_cuda editor)
{
    vxd_dag_run_pass<VXD_DAG_PASS_STORE>(&pass, editor);
}

static __global__ void __launch_bounds__(VXD_DAG_TEAM_THREADS,
                                         vxd_dag_team_blocks<struct vxd_dag_lists_cuda>())
    lists_kernel(const __grid_constant__ struct vxd_dag_pass pass,
                 const __grid_constant__ struct vxd_dag_lists_cuda editor)
{
    vxd_dag_run_pass<VXD_DAG_PASS_STORE>(&pass, editor);
}

size_t VXD_DAG_PASS_FORM(vxd_dag_shapes_row_bytes)(bool has_lists)
{
    return has_lists ? sizeof(struct vxd_dag_row<vxd_dag_lists_cuda::state>)
                     : sizeof(struct vxd_dag_row<vxd_dag_shapes_cuda::state>);
}

enum vxd_status VXD_DAG_PASS_FORM(vxd_dag_shapes_pass)(
    struct vxd_queue *queue, const struct vxd_dag_pass *pass,
    const struct vxd_dag_shapes_run *run, bool has_lists, struct vxd_err *err)
{
    const struct vxd_dag_lists_cuda lists = {run};
    const struct vxd_dag_shapes_cuda shapes = {run};

    return has_lists
               ? vxd_dag_launch_pass(queue, (const void *)lists_kernel, pass, &lists,
                                     vxd_dag_shared_bytes<struct vxd_dag_lists_cuda>(),
                                     "lists_kernel", err)
               : vxd_dag_launch_pass(queue, (const void *)shapes_kernel, pass, &shapes,
                                     vxd_dag_shared_bytes<struct vxd_dag_shapes_cuda>(),
                                     "shapes_kernel", err);
}
