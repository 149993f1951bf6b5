// SPDX-License-Identifier: Apache-2.0
/* Passes of shapes: the kernel of pass_cuda.h with the editor of shapes_math.h. */
#include "gpu/svdag/edit_kernel/editors_cuda.h"
#include "gpu/svdag/edit_kernel/edit_launch_cuda.h"

static __global__ void
__launch_bounds__(VXD_SVDAG_BLOCK_THREADS,
                  vxd_svdag_blocks_per_sm<struct vxd_svdag_shapes_cuda>())
    shapes_kernel(const __grid_constant__ struct vxd_svdag_kernel_args args,
                  const __grid_constant__ struct vxd_svdag_shapes_cuda editor)
{
    vxd_svdag_run_edit_kernel<VXD_SVDAG_KERNEL_STORE>(&args, editor);
}

static __global__ void
__launch_bounds__(VXD_SVDAG_BLOCK_THREADS,
                  vxd_svdag_blocks_per_sm<struct vxd_svdag_lists_cuda>())
    lists_kernel(const __grid_constant__ struct vxd_svdag_kernel_args args,
                 const __grid_constant__ struct vxd_svdag_lists_cuda editor)
{
    vxd_svdag_run_edit_kernel<VXD_SVDAG_KERNEL_STORE>(&args, editor);
}

static __global__ void
__launch_bounds__(VXD_SVDAG_BLOCK_THREADS,
                  vxd_svdag_blocks_per_sm<struct vxd_svdag_ball_cuda>())
    ball_kernel(const __grid_constant__ struct vxd_svdag_kernel_args args,
                const __grid_constant__ struct vxd_svdag_ball_cuda editor)
{
    vxd_svdag_run_edit_kernel<VXD_SVDAG_KERNEL_STORE>(&args, editor);
}

size_t
VXD_SVDAG_KERNEL_FORM(vxd_svdag_shapes_entry_bytes)(enum vxd_svdag_shapes_form form)
{
    return form == VXD_SVDAG_FORM_LISTS
               ? sizeof(struct vxd_svdag_frontier_entry<vxd_svdag_lists_cuda::state>)
           : form == VXD_SVDAG_FORM_BALL
               ? sizeof(struct vxd_svdag_frontier_entry<vxd_svdag_ball_cuda::state>)
               : sizeof(struct vxd_svdag_frontier_entry<vxd_svdag_shapes_cuda::state>);
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

enum vxd_status VXD_SVDAG_KERNEL_FORM(vxd_svdag_launch_shapes)(
    struct vxd_queue *queue, const struct vxd_svdag_kernel_args *args,
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
        const struct vxd_svdag_ball_cuda ball = ball_of(&args->view, ops);

        return vxd_svdag_launch_edit_kernel(queue, &ball_pass, args, &ball, err);
    }
    return form == VXD_SVDAG_FORM_LISTS
               ? vxd_svdag_launch_edit_kernel(queue, &lists_pass, args, &lists, err)
               : vxd_svdag_launch_edit_kernel(queue, &shapes_pass, args, &shapes, err);
}
