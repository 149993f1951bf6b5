// SPDX-License-Identifier: Apache-2.0
/* Passes of shapes: the kernel of pass_cuda.h with the editor of shapes_math.h. */
#include "gpu/dag/editors_cuda.h"
#include "gpu/dag/launch_cuda.h"

static __global__ void __launch_bounds__(VXD_DAG_TEAM_THREADS, 2)
    shapes_kernel(const __grid_constant__ struct vxd_dag_pass pass,
                  const __grid_constant__ struct vxd_dag_shapes_cuda editor)
{
    vxd_dag_run_pass(&pass, editor);
}

static __global__ void __launch_bounds__(VXD_DAG_TEAM_THREADS, 2)
    lists_kernel(const __grid_constant__ struct vxd_dag_pass pass,
                 const __grid_constant__ struct vxd_dag_lists_cuda editor)
{
    vxd_dag_run_pass(&pass, editor);
}

size_t vxd_dag_shapes_state_bytes(bool has_lists)
{
    return has_lists ? sizeof(vxd_dag_lists_cuda::state)
                     : sizeof(vxd_dag_shapes_cuda::state);
}

enum vxd_status vxd_dag_shapes_pass(struct vxd_queue *queue,
                                    const struct vxd_dag_pass *pass,
                                    const struct vxd_dag_shapes_run *run, bool has_lists,
                                    struct vxd_err *err)
{
    const struct vxd_dag_lists_cuda lists = {run};
    const struct vxd_dag_shapes_cuda shapes = {run};

    return has_lists ? vxd_dag_launch_pass(queue, (const void *)lists_kernel, pass,
                                           &lists, "lists_kernel", err)
                     : vxd_dag_launch_pass(queue, (const void *)shapes_kernel, pass,
                                           &shapes, "shapes_kernel", err);
}
