// SPDX-License-Identifier: Apache-2.0
/* The kernels of pictures, for .cu files: first a thread a tile finds how far its rays hit nothing,
 * then a thread a pixel casts all its samples and secondary rays.
 *
 * A warp has 8 x 4 neighbouring pixels, so that its rays go through the same nodes and mostly
 * take the same branches; a block has 16 x 8. The inner nodes above a ray are in shared memory,
 * a column a thread, and a leaf's mask of 4^3 voxels in two registers. Kernels are compiled by
 * mode: those without light need far fewer registers than paths. They are compiled twice: once
 * for scenes that track no free space and pictures without a limit of detail
 * (VXD_RENDER_PLAIN), where no function is called, and once for all.
 *
 * Bytes: 4 out a pixel, 4 out and in a tile; nodes come from L1 and L2.
 * Source: beam_math.h, shade_math.h and trace_math.h, which the CPU compiles too. */
#ifndef VXD_GPU_RENDER_RENDER_CUDA_H
#define VXD_GPU_RENDER_RENDER_CUDA_H

#include "gpu/core/core_cuda.h"
#include "gpu/render/beam_math.h"

#define VXD_RENDER_BLOCK_X 16
#define VXD_RENDER_BLOCK_Y 8
#define VXD_RENDER_BLOCK_THREADS (VXD_RENDER_BLOCK_X * VXD_RENDER_BLOCK_Y)
#define VXD_RENDER_BEAM_THREADS 64

/* A thread a tile that the part has pixels of. */
static __global__ void __launch_bounds__(VXD_RENDER_BEAM_THREADS)
    beam_kernel(const __grid_constant__ struct vxd_render_call call, uint32_t n_x,
                uint32_t n_tiles)
{
    extern __shared__ uint32_t nodes[];
    uint32_t i = blockIdx.x * VXD_RENDER_BEAM_THREADS + threadIdx.x;
    uint32_t x = call.part.x / VXD_RENDER_BEAM + i % n_x;
    uint32_t y = call.part.y / VXD_RENDER_BEAM + i / n_x;
    uint32_t n_row = (call.params.width - 1) / VXD_RENDER_BEAM + 1;

    if (i < n_tiles) {
        call.starts[(size_t)y * n_row + x] =
            vxd_render_tile_start(&call, x * VXD_RENDER_BEAM, y * VXD_RENDER_BEAM,
                                  nodes + threadIdx.x, VXD_RENDER_BEAM_THREADS);
    }
}

static void vxd_render_launch_beams(struct vxd_queue *queue,
                                    const struct vxd_render_call *call)
{
    const struct vxd_render_rect *part = &call->part;
    uint32_t n_x =
        (part->x + part->width - 1) / VXD_RENDER_BEAM - part->x / VXD_RENDER_BEAM + 1;
    uint32_t n_y =
        (part->y + part->height - 1) / VXD_RENDER_BEAM - part->y / VXD_RENDER_BEAM + 1;
    size_t n_nodes = 2 * (size_t)(call->view.depth - VXD_SVDAG_LEAF_HEIGHT);

    beam_kernel<<<(n_x * n_y - 1) / VXD_RENDER_BEAM_THREADS + 1, VXD_RENDER_BEAM_THREADS,
                  n_nodes * VXD_RENDER_BEAM_THREADS * sizeof(uint32_t),
                  (cudaStream_t)queue->stream>>>(*call, n_x, n_x * n_y);
}

template <int MODE>
static __global__ void __launch_bounds__(VXD_RENDER_BLOCK_THREADS)
    render_kernel(const __grid_constant__ struct vxd_render_call call)
{
    extern __shared__ uint32_t nodes[];
    uint32_t lane = threadIdx.x % 32;
    uint32_t warp = threadIdx.x / 32;
    uint32_t x = blockIdx.x * VXD_RENDER_BLOCK_X + warp % 2 * 8 + lane % 8;
    uint32_t y = blockIdx.y * VXD_RENDER_BLOCK_Y + warp / 2 * 4 + lane / 8;

    if (x < call.part.width && y < call.part.height) {
        x += call.part.x;
        y += call.part.y;
        call.pixels[(size_t)y * call.params.width + x] =
            vxd_render_pixel(&call, (enum vxd_render_mode)MODE, x, y, nodes + threadIdx.x,
                             VXD_RENDER_BLOCK_THREADS);
    }
}

template <int MODE>
static void vxd_render_launch_mode(struct vxd_queue *queue,
                                   const struct vxd_render_call *call)
{
    dim3 n_blocks((call->part.width - 1) / VXD_RENDER_BLOCK_X + 1,
                  (call->part.height - 1) / VXD_RENDER_BLOCK_Y + 1);
    size_t n_nodes = (size_t)(call->view.depth - VXD_SVDAG_LEAF_HEIGHT);

    render_kernel<MODE><<<n_blocks, VXD_RENDER_BLOCK_THREADS,
                          n_nodes * VXD_RENDER_BLOCK_THREADS * sizeof(uint32_t),
                          (cudaStream_t)queue->stream>>>(*call);
}

static enum vxd_status vxd_render_launch(struct vxd_queue *queue,
                                         const struct vxd_render_call *call,
                                         struct vxd_err *err)
{
    static void (*const launches[VXD_RENDER_N_MODES])(struct vxd_queue *,
                                                      const struct vxd_render_call *) = {
        vxd_render_launch_mode<VXD_RENDER_DEPTH>,
        vxd_render_launch_mode<VXD_RENDER_NORMAL>,
        vxd_render_launch_mode<VXD_RENDER_MATERIAL>,
        vxd_render_launch_mode<VXD_RENDER_COLOUR>,
        vxd_render_launch_mode<VXD_RENDER_HEIGHT>,
        vxd_render_launch_mode<VXD_RENDER_AO>,
        vxd_render_launch_mode<VXD_RENDER_PATH>,
        vxd_render_launch_mode<VXD_RENDER_AGE>,
        vxd_render_launch_mode<VXD_RENDER_LABEL>};
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    if (call->starts != NULL) {
        vxd_render_launch_beams(queue, call);
        VXD_TRY(vxd_cuda_launched(queue->context, "beam_kernel", err));
    }
    launches[call->mode](queue, call);
    VXD_TRY(vxd_cuda_launched(queue->context, "render_kernel", err));
out:
    return status;
}

#endif
