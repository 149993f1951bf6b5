// SPDX-License-Identifier: Apache-2.0
/* The frame map on a GPU: the blocks that the rays of a frame's pixels touch.
 *
 * A thread takes a pixel, a thread block a tile of 32 x 8 pixels. It writes the pixel's depth in
 * metres for the integration and walks the cells of the ray; a pixel that takes the way of the one
 * before is left out at once. The rays of a tile touch the same few cells, so a small table in
 * shared memory, whose slots are exchanged, drops nearly all repetitions in front of the frame map
 * in global memory. The first thread to claim a block there looks it up in the volume and lists it.
 *
 * Moved: 2 to 4 bytes in and 4 out a pixel, and 8 bytes a slot of the frame map. */
#include "gpu/core/core_cuda.h"
#include "gpu/volume/volume_internal.h"

#define TILE_WIDTH 32
#define TILE_HEIGHT 8
#define N_THREADS (TILE_WIDTH * TILE_HEIGHT)
#define N_RECENT 1024 /* a power of two */

static __device__ void list_block(const struct vxd_touch_call *call, uint64_t tag)
{
    int32_t entry = vxd_volume_find_block(&call->view, tag);
    uint32_t most = (call->slot_mask + 1) / 2;
    uint32_t at;

    if (entry != VXD_NO_ENTRY) {
        at = atomicAdd(&call->counts->n_known, 1u);
        if (at < most) {
            call->entries[at] = entry;
        }
    } else {
        at = atomicAdd(&call->counts->n_new, 1u);
        if (at < most) {
            call->codes[at] = vxd_block_morton(tag);
        }
    }
}

/* Past half of the slots nothing is claimed, so probe sequences end; claims under way are fewer
 * than the other half. */
static __device__ void put_block(const struct vxd_touch_call *call, uint64_t tag)
{
    uint32_t slot = vxd_block_hash(tag) & call->slot_mask;

    for (uint32_t step = 0; step <= call->slot_mask; step++) {
        uint64_t here = *(volatile uint64_t *)&call->tags[slot];

        if (here == VXD_BLOCK_EMPTY) {
            if (*(volatile uint32_t *)&call->counts->n_taken >
                (call->slot_mask + 1) / 2) {
                return;
            }
            here =
                atomicCAS((unsigned long long *)&call->tags[slot],
                          (unsigned long long)VXD_BLOCK_EMPTY, (unsigned long long)tag);
            if (here == VXD_BLOCK_EMPTY) {
                (void)atomicAdd(&call->counts->n_taken, 1u);
                list_block(call, tag);
                return;
            }
        }
        if (here == tag) {
            return;
        }
        slot = (slot + 1) & call->slot_mask;
    }
}

/* A pixel's segment in blocks. */
struct segment {
    float from[3];
    float to[3];
    int32_t from_cell[3];
    int32_t to_cell[3];
};

static __device__ __forceinline__ void aim(const struct vxd_frame_form *frame, float u,
                                           float v, float z, struct segment *segment)
{
    float x;
    float y;

    vxd_camera_ray(&frame->camera, u, v, &x, &y);
    for (int axis = 0; axis < 3; axis++) {
        float direction = vxd_frame_direction(frame, axis, x, y);

        segment->from[axis] =
            vxd_frame_position(frame, axis, direction, vxd_frame_near(frame, z));
        segment->to[axis] =
            vxd_frame_position(frame, axis, direction, vxd_frame_far(frame, z));
        segment->from_cell[axis] = vxd_frame_floor(segment->from[axis]);
        segment->to_cell[axis] = vxd_frame_floor(segment->to[axis]);
    }
    if (frame->is_deformed != 0 && z > 0) {
        struct vxd_deform_cell cell;
        float shift[3];

        cell.is_loaded = 0;
        vxd_frame_shift(frame, &cell, x, y, z, shift);
        for (int axis = 0; axis < 3; axis++) {
            segment->from[axis] = vxd_frame_shifted(segment->from[axis], shift[axis]);
            segment->to[axis] = vxd_frame_shifted(segment->to[axis], shift[axis]);
            segment->from_cell[axis] = vxd_frame_floor(segment->from[axis]);
            segment->to_cell[axis] = vxd_frame_floor(segment->to[axis]);
        }
    }
}

/* Whether the pixel to the left, which is the lane before, takes the same way: the same end cells,
 * on one line of the grid. All lanes of the warp call it. */
static __device__ __forceinline__ bool as_before(const struct segment *segment,
                                                 bool is_kept)
{
    int n_axes = 0;
    bool is_same = __shfl_up_sync(0xffffffffu, is_kept ? 1 : 0, 1) != 0;

    for (int axis = 0; axis < 3; axis++) {
        int32_t from = __shfl_up_sync(0xffffffffu, segment->from_cell[axis], 1);
        int32_t to = __shfl_up_sync(0xffffffffu, segment->to_cell[axis], 1);

        is_same =
            is_same && from == segment->from_cell[axis] && to == segment->to_cell[axis];
        n_axes += from != to ? 1 : 0;
    }
    return is_same && n_axes <= 1 && (threadIdx.x & 31) != 0;
}

static __device__ void touch_ray(const struct vxd_touch_call *call,
                                 const struct segment *segment,
                                 unsigned long long *recent)
{
    const int32_t *base = call->frame.base;
    struct vxd_cell_walk walk;
    int n_left;

    vxd_cell_walk_start(&walk, segment->from, segment->to, segment->from_cell,
                        segment->to_cell);
    n_left = vxd_cell_walk_n_left(&walk);
    for (;;) {
        uint64_t tag = vxd_block_tag(base[0] + walk.cell[0], base[1] + walk.cell[1],
                                     base[2] + walk.cell[2]);
        uint32_t place = (uint32_t)(tag ^ tag >> 18 ^ tag >> 36) & (N_RECENT - 1);

        if (((volatile unsigned long long *)recent)[place] != tag &&
            atomicExch(&recent[place], (unsigned long long)tag) != tag) {
            put_block(call, tag);
        }
        if (n_left-- == 0) {
            return;
        }
        vxd_cell_walk_next(&walk);
    }
}

static __global__ void __launch_bounds__(N_THREADS)
    touch_kernel(const __grid_constant__ struct vxd_touch_call call)
{
    __shared__ unsigned long long recent[N_RECENT];
    int u = (int)(blockIdx.x * TILE_WIDTH + threadIdx.x);
    int v = (int)(blockIdx.y * TILE_HEIGHT + threadIdx.y);
    struct segment segment;
    bool is_kept;
    float z = 0;

    for (unsigned i = threadIdx.y * TILE_WIDTH + threadIdx.x; i < N_RECENT;
         i += N_THREADS) {
        recent[i] = VXD_BLOCK_EMPTY;
    }
    __syncthreads();
    if (u < call.frame.camera.width && v < call.frame.camera.height) {
        size_t pixel = (size_t)v * (size_t)call.frame.camera.width + (size_t)u;

        z = vxd_frame_depth(&call.frame, pixel);
        call.depth[1 + pixel] = z;
        if (pixel == 0) {
            call.depth[0] = 0;
        }
    }
    aim(&call.frame, (float)u, (float)v, z, &segment);
    is_kept = z > 0 && vxd_frame_keeps(&call.frame, segment.from_cell, segment.to_cell);
    if (z > 0 && !is_kept) {
        (void)atomicAdd(&call.counts->n_dropped, 1u);
    }
    if (!as_before(&segment, is_kept) && is_kept) {
        touch_ray(&call, &segment, recent);
    }
}

enum vxd_status vxd_volume_touch_cuda(struct vxd_queue *queue,
                                      const struct vxd_touch_call *call,
                                      struct vxd_err *err)
{
    dim3 threads(TILE_WIDTH, TILE_HEIGHT);
    dim3 grid((unsigned)(call->frame.camera.width + TILE_WIDTH - 1) / TILE_WIDTH,
              (unsigned)(call->frame.camera.height + TILE_HEIGHT - 1) / TILE_HEIGHT);
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    touch_kernel<<<grid, threads, 0, (cudaStream_t)queue->stream>>>(*call);
    VXD_TRY(vxd_cuda_launched(queue->context, "touch_kernel", err));
out:
    return status;
}

static __global__ void __launch_bounds__(N_THREADS)
    code_keys_kernel(const uint64_t *codes, size_t n, int32_t *keys)
{
    size_t i = (size_t)blockIdx.x * N_THREADS + threadIdx.x;

    if (i < n) {
        vxd_block_key(vxd_block_tag_of_morton(codes[i]), keys + 3 * i);
    }
}

enum vxd_status vxd_volume_code_keys_cuda(struct vxd_queue *queue, const uint64_t *codes,
                                          size_t n, int32_t *keys, struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    code_keys_kernel<<<(unsigned)((n + N_THREADS - 1) / N_THREADS), N_THREADS, 0,
                       (cudaStream_t)queue->stream>>>(codes, n, keys);
    VXD_TRY(vxd_cuda_launched(queue->context, "code_keys_kernel", err));
out:
    return status;
}

static __global__ void __launch_bounds__(N_THREADS)
    reach_kernel(const __grid_constant__ struct vxd_reach_call call)
{
    size_t i = (size_t)blockIdx.x * N_THREADS + threadIdx.x;

    if (i < call.n && vxd_volume_reaches(&call, call.active[i])) {
        call.entries[atomicAdd(call.n_reached, 1u)] = call.active[i];
    }
}

enum vxd_status vxd_volume_reach_cuda(struct vxd_queue *queue,
                                      const struct vxd_reach_call *call,
                                      struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    reach_kernel<<<(unsigned)((call->n + N_THREADS - 1) / N_THREADS), N_THREADS, 0,
                   (cudaStream_t)queue->stream>>>(*call);
    VXD_TRY(vxd_cuda_launched(queue->context, "reach_kernel", err));
out:
    return status;
}
