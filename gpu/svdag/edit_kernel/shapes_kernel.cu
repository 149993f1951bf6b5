// SPDX-License-Identifier: Apache-2.0
/* Passes of shapes: the kernel of pass_cuda.h with the editor of shapes_math.h. */
#include "gpu/svdag/edit_kernel/editors_cuda.h"
#include "gpu/svdag/edit_kernel/edit_launch_cuda.h"

static __global__ void
__launch_bounds__(VXD_SVDAG_TEAM_THREADS,
                  vxd_svdag_team_blocks<struct vxd_svdag_shapes_cuda>())
    shapes_kernel(const __grid_constant__ struct vxd_svdag_pass pass,
                  const __grid_constant__ struct vxd_svdag_shapes_cuda editor)
{
    vxd_svdag_run_pass<VXD_SVDAG_PASS_STORE>(&pass, editor);
}

static __global__ void
__launch_bounds__(VXD_SVDAG_TEAM_THREADS,
                  vxd_svdag_team_blocks<struct vxd_svdag_lists_cuda>())
    lists_kernel(const __grid_constant__ struct vxd_svdag_pass pass,
                 const __grid_constant__ struct vxd_svdag_lists_cuda editor)
{
    vxd_svdag_run_pass<VXD_SVDAG_PASS_STORE>(&pass, editor);
}

static __global__ void
__launch_bounds__(VXD_SVDAG_TEAM_THREADS,
                  vxd_svdag_team_blocks<struct vxd_svdag_ball_cuda>())
    ball_kernel(const __grid_constant__ struct vxd_svdag_pass pass,
                const __grid_constant__ struct vxd_svdag_ball_cuda editor)
{
    vxd_svdag_run_pass<VXD_SVDAG_PASS_STORE>(&pass, editor);
}

size_t VXD_SVDAG_PASS_FORM(vxd_svdag_shapes_row_bytes)(enum vxd_svdag_shapes_form form)
{
    return form == VXD_SVDAG_FORM_LISTS
               ? sizeof(struct vxd_svdag_row<vxd_svdag_lists_cuda::state>)
           : form == VXD_SVDAG_FORM_BALL
               ? sizeof(struct vxd_svdag_row<vxd_svdag_ball_cuda::state>)
               : sizeof(struct vxd_svdag_row<vxd_svdag_shapes_cuda::state>);
}

/* The editor of a ball. */
static struct vxd_svdag_ball_cuda ball_of(const struct vxd_svdag_view *view,
                                          const struct vxd_svdag_op *op)
{
    const struct vxd_svdag_shapes_run run = {NULL, 1, view->value_bits > 1,
                                             view->free_value, 1};

    return {op->shape, op->action, vxd_svdag_shapes_apply_even(&run, op, VXD_SVDAG_EMPTY),
            (uint16_t)op->value, run.has_materials};
}

enum vxd_status VXD_SVDAG_PASS_FORM(vxd_svdag_shapes_pass)(
    struct vxd_queue *queue, const struct vxd_svdag_pass *pass,
    const struct vxd_svdag_shapes_run *run, enum vxd_svdag_shapes_form form,
    const struct vxd_svdag_op *ops, struct vxd_err *err)
{
    static struct vxd_svdag_kernel ball_pass = {
        (const void *)ball_kernel, vxd_svdag_shared_bytes<struct vxd_svdag_ball_cuda>(),
        "ball_kernel", 0};
    static struct vxd_svdag_kernel lists_pass = {
        (const void *)lists_kernel, vxd_svdag_shared_bytes<struct vxd_svdag_lists_cuda>(),
        "lists_kernel", 0};
    static struct vxd_svdag_kernel shapes_pass = {
        (const void *)shapes_kernel,
        vxd_svdag_shared_bytes<struct vxd_svdag_shapes_cuda>(), "shapes_kernel", 0};
    const struct vxd_svdag_lists_cuda lists = {run};
    const struct vxd_svdag_shapes_cuda shapes = {run};

    if (form == VXD_SVDAG_FORM_BALL) {
        const struct vxd_svdag_ball_cuda ball = ball_of(&pass->view, ops);

        return vxd_svdag_launch_pass(queue, &ball_pass, pass, &ball, err);
    }
    return form == VXD_SVDAG_FORM_LISTS
               ? vxd_svdag_launch_pass(queue, &lists_pass, pass, &lists, err)
               : vxd_svdag_launch_pass(queue, &shapes_pass, pass, &shapes, err);
}
