// SPDX-License-Identifier: Apache-2.0
/* The frame map on a GPU: the blocks that the rays of a frame's pixels touch.
 *
 * A thread takes two pixels, one below the other, a thread block a tile of 32 x 16. It writes the
 * pixels' depths in metres for the integration and finds the ends of their rays; a pixel that takes
 * the way of the one to the left or above is left out. The others are walked, cell by cell. The rays
 * of a tile touch the same few cells, so a small table in shared memory, whose slots are exchanged,
 * drops nearly all repetitions in front of the frame map in global memory. Blocks that a tile is the
 * first to claim there are kept until its rays are walked: then the tile looks them up in the volume
 * together, and lists them in places that it reserves once, since thousands of additions to one word
 * would wait for each other.
 *
 * There are two frame maps: a touch empties the other one, which the next touch uses, so that no
 * launch has to do only that.
 *
 * Moved: 2 to 4 bytes in and 4 out a pixel, and 8 bytes a slot of the frame map. */
#include "gpu/core/core_cuda.h"
#include "gpu/volume/volume_internal.h"

#define TILE_WIDTH 32
#define TILE_HEIGHT 16
#define ROWS 2 /* of pixels a thread */
#define N_THREADS 256
#define TILE_PIXELS (TILE_WIDTH * TILE_HEIGHT)
#define N_RECENT 1024 /* a power of two */

/* So many claims of a tile are reported at once, a power of two, and as few as that the claims that are
 * not reported yet, of all tiles that run at once, are fewer than half of the slots. */
#define N_REPORTED 16
#define PROBES_BETWEEN_READS 64

struct tile {
    unsigned long long recent[N_RECENT];
    uint64_t claimed[N_THREADS];
    float ends[6][TILE_PIXELS]; /* of the rays that are walked: from, to */
    uint32_t n_walks;
    uint32_t n_claimed; /* may be more: those are listed one by one */
    uint32_t n_taken;   /* slots of the frame map, as last seen */
    uint32_t n[2];      /* of what is claimed: known blocks, new ones */
    uint32_t first[2];  /* places in the lists */
};

static __device__ __forceinline__ void
list_block(const struct vxd_touch_call *call, uint64_t tag, int32_t entry, uint32_t at)
{
    if (at >= (call->slot_mask + 1) / 2) {
        return;
    }
    if (entry != VXD_NO_ENTRY) {
        call->entries[at] = entry;
    } else {
        call->codes[at] = vxd_block_morton(tag);
    }
}

static __device__ void keep_claimed(const struct vxd_touch_call *call, uint64_t tag,
                                    struct tile *tile)
{
    uint32_t at = atomicAdd(&tile->n_claimed, 1u);

    if (at % N_REPORTED == N_REPORTED - 1) {
        *(volatile uint32_t *)&tile->n_taken =
            atomicAdd(&call->counts->n_taken, (uint32_t)N_REPORTED) + N_REPORTED;
    }
    if (at < N_THREADS) {
        tile->claimed[at] = tag;
    } else {
        int32_t entry = vxd_volume_find_block(&call->view, tag);

        list_block(call, tag, entry,
                   atomicAdd(entry != VXD_NO_ENTRY ? &call->counts->n_known
                                                   : &call->counts->n_new,
                             1u));
    }
}

/* Where more than half of the slots are taken nothing is claimed, so probe sequences end. */
static __device__ void put_block(const struct vxd_touch_call *call, uint64_t tag,
                                 struct tile *tile)
{
    uint32_t slot = vxd_block_hash(tag) & call->slot_mask;

    for (uint32_t step = 1; step <= call->slot_mask; step++) {
        uint64_t here = *(volatile uint64_t *)&call->tags[slot];

        if (*(volatile uint32_t *)&tile->n_taken > (call->slot_mask + 1) / 2) {
            return;
        }
        if (here == VXD_BLOCK_EMPTY) {
            here =
                atomicCAS((unsigned long long *)&call->tags[slot],
                          (unsigned long long)VXD_BLOCK_EMPTY, (unsigned long long)tag);
            if (here == VXD_BLOCK_EMPTY) {
                keep_claimed(call, tag, tile);
                return;
            }
        }
        if (here == tag) {
            return;
        }
        if (step % PROBES_BETWEEN_READS == 0) {
            *(volatile uint32_t *)&tile->n_taken =
                *(volatile uint32_t *)&call->counts->n_taken;
        }
        slot = (slot + 1) & call->slot_mask;
    }
}

/* Lists what the tile claimed. All threads of the thread block call it. */
static __device__ __forceinline__ void list_claimed(const struct vxd_touch_call *call,
                                                    struct tile *tile)
{
    uint32_t n = tile->n_claimed < N_THREADS ? tile->n_claimed : N_THREADS;
    uint64_t tag = threadIdx.x < n ? tile->claimed[threadIdx.x] : VXD_BLOCK_EMPTY;
    int32_t entry = VXD_NO_ENTRY;
    int kind = 0;
    uint32_t at = 0;

    if (threadIdx.x < n) {
        entry = vxd_volume_find_block(&call->view, tag);
        kind = entry != VXD_NO_ENTRY ? 0 : 1;
        at = atomicAdd(&tile->n[kind], 1u);
    }
    __syncthreads();
    if (threadIdx.x < 2 && tile->n[threadIdx.x] > 0) {
        tile->first[threadIdx.x] =
            atomicAdd(threadIdx.x == 0 ? &call->counts->n_known : &call->counts->n_new,
                      tile->n[threadIdx.x]);
    }
    if (threadIdx.x == 2 && tile->n_claimed % N_REPORTED != 0) {
        (void)atomicAdd(&call->counts->n_taken, tile->n_claimed % N_REPORTED);
    }
    __syncthreads();
    if (threadIdx.x < n) {
        list_block(call, tag, entry, tile->first[kind] + at);
    }
}

/* The last tile copies the counts to the host, which a copy behind the kernel would do later. */
static __device__ __forceinline__ void report(const struct vxd_touch_call *call)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        volatile struct vxd_frame_counts *counts = call->counts;
        uint32_t n_tiles = gridDim.x * gridDim.y;

        __threadfence();
        if (atomicAdd(&call->counts->n_tiles, 1u) + 1 == n_tiles) {
            call->report->n_known = counts->n_known;
            call->report->n_new = counts->n_new;
            call->report->n_dropped = counts->n_dropped;
            call->report->n_taken = counts->n_taken;
        }
    }
}

/* A pixel's segment in blocks. */
struct segment {
    float from[3];
    float to[3];
    int32_t from_cell[3];
    int32_t to_cell[3];
};

/* IS_BENT: moved by a control grid. */
template <bool IS_BENT>
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
    if (IS_BENT && z > 0) {
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

/* Whether a pixel takes the way of another one, whose end cells are given: the same end cells, on one line
 * of the grid. */
static __device__ __forceinline__ bool
is_same_way(const struct segment *segment, const int32_t from[3], const int32_t to[3])
{
    bool is_same = true;
    int n_axes = 0;

    for (int axis = 0; axis < 3; axis++) {
        is_same = is_same && from[axis] == segment->from_cell[axis] &&
                  to[axis] == segment->to_cell[axis];
        n_axes += from[axis] != to[axis] ? 1 : 0;
    }
    return is_same && n_axes <= 1;
}

/* Whether the pixel to the left, which is the lane before, takes the same way. All lanes of the warp call
 * it. */
static __device__ __forceinline__ bool as_before(const struct segment *segment,
                                                 bool is_kept)
{
    bool has_left = __shfl_up_sync(0xffffffffu, is_kept ? 1 : 0, 1) != 0;
    int32_t from[3];
    int32_t to[3];

    for (int axis = 0; axis < 3; axis++) {
        from[axis] = __shfl_up_sync(0xffffffffu, segment->from_cell[axis], 1);
        to[axis] = __shfl_up_sync(0xffffffffu, segment->to_cell[axis], 1);
    }
    return has_left && (threadIdx.x & 31) != 0 && is_same_way(segment, from, to);
}

static __device__ __forceinline__ void touch_ray(const struct vxd_touch_call *call,
                                                 const struct segment *segment,
                                                 struct tile *tile)
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

        if (((volatile unsigned long long *)tile->recent)[place] != tag &&
            atomicExch(&tile->recent[place], (unsigned long long)tag) != tag) {
            put_block(call, tag, tile);
        }
        if (n_left-- == 0) {
            return;
        }
        vxd_cell_walk_next(&walk);
    }
}

/* Keeps the segments of the rays that are walked, one behind the other, so that the warps that walk them
 * are full. All lanes of the warp call it. */
static __device__ __forceinline__ void keep_walk(const struct segment *segment,
                                                 bool walks, struct tile *tile)
{
    unsigned lane = threadIdx.x % 32;
    unsigned all = __ballot_sync(0xffffffffu, walks ? 1 : 0);
    unsigned at = 0;

    if (lane == 0 && all != 0) {
        at = atomicAdd(&tile->n_walks, (uint32_t)__popc(all));
    }
    at = __shfl_sync(0xffffffffu, at, 0) + (unsigned)__popc(all & ((1u << lane) - 1));
    for (int axis = 0; walks && axis < 3; axis++) {
        tile->ends[axis][at] = segment->from[axis];
        tile->ends[3 + axis][at] = segment->to[axis];
    }
}

static __device__ __forceinline__ void take_walk(const struct tile *tile, unsigned at,
                                                 struct segment *segment)
{
    for (int axis = 0; axis < 3; axis++) {
        segment->from[axis] = tile->ends[axis][at];
        segment->to[axis] = tile->ends[3 + axis][at];
        segment->from_cell[axis] = vxd_frame_floor(segment->from[axis]);
        segment->to_cell[axis] = vxd_frame_floor(segment->to[axis]);
    }
}

/* Empties a frame map, two slots at a time, by n threads of which this is number i. */
static __device__ __forceinline__ void empty_map(uint64_t *tags, uint32_t slot_mask,
                                                 struct vxd_frame_counts *counts,
                                                 size_t i, size_t n)
{
    if (i == 0) {
        *counts = {};
    }
    for (; i <= slot_mask / 2; i += n) {
        ((ulonglong2 *)tags)[i] = make_ulonglong2(VXD_BLOCK_EMPTY, VXD_BLOCK_EMPTY);
    }
}

static __global__ void __launch_bounds__(N_THREADS)
    empty_kernel(const __grid_constant__ struct vxd_touch_call call)
{
    empty_map(call.tags, call.slot_mask, call.counts,
              (size_t)blockIdx.x * N_THREADS + threadIdx.x,
              (size_t)gridDim.x * N_THREADS);
}

static __device__ __forceinline__ float read_depth(const struct vxd_touch_call *call,
                                                   int u, int v)
{
    const struct vxd_frame_form *frame = &call->frame;

    return u < frame->camera.width && v < frame->camera.height
               ? vxd_frame_depth(frame,
                                 (size_t)v * (size_t)frame->camera.width + (size_t)u)
               : 0;
}

template <bool IS_BENT>
static __global__ void __launch_bounds__(N_THREADS, IS_BENT ? 3 : 5)
    touch_kernel(const __grid_constant__ struct vxd_touch_call call)
{
    __shared__ struct tile tile;
    unsigned block = blockIdx.y * gridDim.x + blockIdx.x;
    int u = (int)(blockIdx.x * TILE_WIDTH + threadIdx.x % TILE_WIDTH);
    int v =
        (int)(blockIdx.y * (N_THREADS / TILE_WIDTH) + threadIdx.x / TILE_WIDTH) * ROWS;
    struct segment segment;
    bool was_kept = false;
    float z[ROWS];

#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        z[i] = read_depth(&call, u, v + i);
    }
    for (unsigned i = threadIdx.x; i < N_RECENT; i += N_THREADS) {
        tile.recent[i] = VXD_BLOCK_EMPTY;
    }
    if (threadIdx.x == 0) {
        tile.n_walks = 0;
        tile.n_claimed = 0;
        tile.n_taken = *(volatile uint32_t *)&call.counts->n_taken;
        tile.n[0] = 0;
        tile.n[1] = 0;
    }
    empty_map(call.next_tags, call.slot_mask, call.next_counts,
              (size_t)block * N_THREADS + threadIdx.x,
              (size_t)gridDim.x * gridDim.y * N_THREADS);
    if (block == 0 && threadIdx.x == 0) {
        call.depth[0] = 0;
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        const struct segment before = segment;
        bool is_kept;
        bool walks;

        if (u < call.frame.camera.width && v + i < call.frame.camera.height) {
            call.depth[1 + (size_t)(v + i) * (size_t)call.frame.camera.width +
                       (size_t)u] = z[i];
        }
        aim<IS_BENT>(&call.frame, (float)u, (float)(v + i), z[i], &segment);
        is_kept =
            z[i] > 0 && vxd_frame_keeps(&call.frame, segment.from_cell, segment.to_cell);
        if (z[i] > 0 && !is_kept) {
            (void)atomicAdd(&call.counts->n_dropped, 1u);
        }
        walks = !as_before(&segment, is_kept) && is_kept;
        if (i > 0) {
            walks = walks && !(was_kept &&
                               is_same_way(&segment, before.from_cell, before.to_cell));
        }
        was_kept = is_kept;
        keep_walk(&segment, walks, &tile);
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < tile.n_walks; i += N_THREADS) {
        take_walk(&tile, i, &segment);
        touch_ray(&call, &segment, &tile);
    }
    __syncthreads();
    if (tile.n_claimed > 0) {
        list_claimed(&call, &tile);
    }
    report(&call);
}

enum vxd_status vxd_volume_touch_cuda(struct vxd_queue *queue,
                                      const struct vxd_touch_call *call,
                                      struct vxd_err *err)
{
    dim3 grid((unsigned)(call->frame.camera.width + TILE_WIDTH - 1) / TILE_WIDTH,
              (unsigned)(call->frame.camera.height + TILE_HEIGHT - 1) / TILE_HEIGHT);
    unsigned n_empty = ((call->slot_mask + 1) / 2 + N_THREADS - 1) / N_THREADS;
    cudaStream_t stream = (cudaStream_t)queue->stream;
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    if (!call->is_empty) {
        empty_kernel<<<n_empty, N_THREADS, 0, stream>>>(*call);
        VXD_TRY(vxd_cuda_launched(queue->context, "empty_kernel", err));
    }
    if (call->frame.is_deformed != 0) {
        touch_kernel<true><<<grid, N_THREADS, 0, stream>>>(*call);
    } else {
        touch_kernel<false><<<grid, N_THREADS, 0, stream>>>(*call);
    }
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

/* A warp ranks a code: how many are less than it. */
static __global__ void __launch_bounds__(N_THREADS)
    rank_keys_kernel(const uint64_t *codes, size_t n, int32_t *keys)
{
    size_t which = (size_t)blockIdx.x * (N_THREADS / 32) + threadIdx.x / 32;
    uint64_t code = codes[which < n ? which : 0];
    unsigned rank = 0;

    for (size_t i = threadIdx.x % 32; i < n; i += 32) {
        rank += codes[i] < code ? 1 : 0;
    }
    rank = __reduce_add_sync(0xffffffffu, rank);
    if (which < n && threadIdx.x % 32 == 0) {
        vxd_block_key(vxd_block_tag_of_morton(code), keys + 3 * (size_t)rank);
    }
}

enum vxd_status vxd_volume_rank_keys_cuda(struct vxd_queue *queue, const uint64_t *codes,
                                          size_t n, int32_t *keys, struct vxd_err *err)
{
    const size_t a_block = N_THREADS / 32;
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    rank_keys_kernel<<<(unsigned)((n + a_block - 1) / a_block), N_THREADS, 0,
                       (cudaStream_t)queue->stream>>>(codes, n, keys);
    VXD_TRY(vxd_cuda_launched(queue->context, "rank_keys_kernel", err));
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
