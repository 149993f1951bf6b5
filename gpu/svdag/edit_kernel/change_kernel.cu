// SPDX-License-Identifier: Apache-2.0
/* What an edit of several passes changed: pairs of references, from its first root and its last
 * one down (pairs_cuda.h). */
#include "gpu/svdag/edit_kernel/edit_launch_cuda.h"

static __global__ void __launch_bounds__(VXD_DAG_TEAM_THREADS, VXD_DAG_TEAM_BLOCKS)
    change_kernel(const __grid_constant__ struct vxd_dag_pass pass)
{
    vxd_dag_run_change(&pass);
}

enum vxd_status VXD_DAG_PASS_FORM(vxd_dag_change_pass)(struct vxd_queue *queue,
                                                       const struct vxd_dag_pass *pass,
                                                       struct vxd_err *err)
{
    static struct vxd_dag_kernel kernel = {(const void *)change_kernel, 0,
                                           "change_kernel", 0};

    return vxd_dag_launch_pass(queue, &kernel, pass, NULL, err);
}
