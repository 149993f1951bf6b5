// SPDX-License-Identifier: Apache-2.0
/* CUDA backend of grids.
 *
 * Columns: eight lanes a tile of 4 x 4 columns. Each takes an eighth of the band's leaves, goes down
 * from the root to every one of them (the upper levels stay in the caches) and past whole regions
 * that are empty or uniform. States are reduced by shuffles, heights by integer atomics in shared
 * memory, which give the same in any order. Bytes: the path to each leaf, and a byte a cell.
 *
 * Squares: a block a row, which keeps the row's obstacles as bits in shared memory; a thread finds
 * the nearest bit on either side by words. Costs: a thread a cell, outwards over the rows until none
 * can be nearer; neighbours read neighbouring squares. Bytes: 1 + 2 + 2 a cell and pass.
 *
 * Marks: a warp a word, by a vote. */
#define VXD_SVDAG_ANY_FORM

#include "gpu/core/core_cuda.h"
#include "gpu/grid/grid_backends.h"

enum {
    THREADS = 128,
    LANES = 8, /* of a tile */
    TILES = THREADS / LANES,
    ROW_THREADS = 256,
    ROW_WORDS = VXD_GRID_MAX_SIDE / 32
};

static cudaStream_t stream_of(const struct vxd_queue *queue)
{
    return (cudaStream_t)queue->stream;
}

static unsigned blocks_of(uint64_t n, unsigned threads)
{
    return (unsigned)((n + threads - 1) / threads);
}

/* --- columns ----------------------------------------------------------------------------- */

/* The tiles of an area, x fastest, and the leaves of its band. */
struct grid_tiles {
    struct vxd_grid_columns_call call;
    uint32_t low[3]; /* in leaves */
    uint32_t n[3];
    uint32_t n_lane; /* leaves of a lane */
};

/* What a lane visits: part of the band above a tile. */
struct grid_lane {
    uint32_t x, y; /* voxels of the tile's low corner */
    uint32_t z;    /* next leaf */
    uint32_t end;  /* leaf after the last */
};

static __device__ struct grid_lane lane_of(const struct grid_tiles *tiles, uint32_t tile)
{
    uint32_t part = threadIdx.x % LANES;
    uint32_t top = tiles->low[2] + tiles->n[2];
    struct grid_lane lane;

    lane.x = (tiles->low[0] + tile % tiles->n[0]) * 4;
    lane.y = (tiles->low[1] + tile / tiles->n[0]) * 4;
    lane.z = min(top, tiles->low[2] + part * tiles->n_lane);
    lane.end = min(top, lane.z + tiles->n_lane);
    return lane;
}

/* Takes the lane's next leaf, or region above it as far as the lane's end: its reference, and the
 * voxels [low, high) of the band in it. The lane moves on behind it. */
static __device__ uint32_t next_region(const struct grid_tiles *tiles,
                                       struct grid_lane *lane, int32_t *low,
                                       int32_t *high)
{
    const struct vxd_svdag_area *area = &tiles->call.area;
    int height = tiles->call.view.depth;
    uint32_t z = lane->z * 4;
    uint32_t ref = vxd_svdag_descend(&tiles->call.view, tiles->call.root, lane->x,
                                     lane->y, z, &height);
    uint32_t leaves = 1u << (height - VXD_SVDAG_LEAF_HEIGHT);

    lane->z = min(lane->end, (lane->z & ~(leaves - 1)) + leaves);
    *low = max((int32_t)z, area->low[2]);
    *high = min((int32_t)(lane->z * 4), area->high[2]);
    return ref;
}

static __global__ void __launch_bounds__(THREADS)
    states_kernel(const __grid_constant__ struct grid_tiles tiles)
{
    const struct vxd_grid_columns_call *call = &tiles.call;
    const struct vxd_svdag_area *area = &call->area;
    uint32_t tile = blockIdx.x * TILES + threadIdx.x / LANES;
    bool is_tile = tile < tiles.n[0] * tiles.n[1];
    struct grid_lane lane = lane_of(&tiles, is_tile ? tile : 0);
    uint64_t occupied = 0;
    uint64_t free = 0;

    while (is_tile && lane.z < lane.end && occupied != VXD_GRID_COLUMNS) {
        int32_t low;
        int32_t high;
        uint32_t z = lane.z * 4;
        uint32_t ref = next_region(&tiles, &lane, &low, &high);
        uint64_t set;
        uint64_t clear;

        if (ref != VXD_SVDAG_EMPTY) {
            vxd_svdag_tree_cube_masks(&call->view, ref, &set, &clear);
            if (vxd_svdag_is_node(ref)) {
                uint64_t band = vxd_grid_band_mask(z, low, high);

                set &= band;
                clear &= band;
            }
            occupied |= vxd_grid_flatten(set);
            free |= vxd_grid_flatten(clear);
        }
    }
    for (int step = 1; step < LANES; step *= 2) {
        occupied |= __shfl_xor_sync(UINT32_MAX, occupied, step);
        free |= __shfl_xor_sync(UINT32_MAX, free, step);
    }
    /* Two columns a lane, neighbours along x. */
    for (uint32_t i = threadIdx.x % LANES * 2, k = 0; is_tile && k < 2; k++) {
        int32_t x = (int32_t)(lane.x + (i + k) % 4);
        int32_t y = (int32_t)(lane.y + (i + k) / 4);
        int bit = vxd_grid_column_bit((uint32_t)x, (uint32_t)y);

        if (x >= area->low[0] && x < area->high[0] && y >= area->low[1] &&
            y < area->high[1]) {
            call->states[(size_t)(y - call->low[1]) * call->n_x +
                         (size_t)(x - call->low[0])] =
                vxd_grid_state((occupied >> bit & 1) != 0, (free >> bit & 1) != 0);
        }
    }
}

/* The columns of a block's tiles, in the order of their bits. */
struct grid_shared_spans {
    int32_t low[TILES * 16];
    int32_t high[TILES * 16];
    unsigned long long n[TILES * 16];
    unsigned long long sum[TILES * 16];
};

static __device__ void add_span(struct grid_shared_spans *spans, uint32_t column,
                                int32_t low, int32_t last)
{
    unsigned long long n = (unsigned long long)(last - low) + 1;

    (void)atomicMin(&spans->low[column], low);
    (void)atomicMax(&spans->high[column], last);
    (void)atomicAdd(&spans->n[column], n);
    (void)atomicAdd(&spans->sum[column],
                    n * (unsigned long long)((long long)low + last) / 2);
}

/* Adds the occupied voxels of a leaf to the 16 columns from `first` on: y * 4 + x. */
static __device__ void add_leaf(struct grid_shared_spans *spans, uint32_t first,
                                uint64_t occupied, int32_t z)
{
    for (uint32_t i = 0; i < 16; i++) {
        unsigned column = vxd_grid_column(occupied, vxd_grid_column_bit(i % 4, i / 4));

        for (int k = 0; k < 4; k++) {
            if ((column >> k & 1) != 0) {
                add_span(spans, first + i, z + k, z + k);
            }
        }
    }
}

static __global__ void __launch_bounds__(THREADS)
    heights_kernel(const __grid_constant__ struct grid_tiles tiles)
{
    __shared__ struct grid_shared_spans spans;
    const struct vxd_grid_columns_call *call = &tiles.call;
    const struct vxd_svdag_area *area = &call->area;
    uint32_t tile = blockIdx.x * TILES + threadIdx.x / LANES;
    uint32_t first = threadIdx.x / LANES * 16;
    bool is_tile = tile < tiles.n[0] * tiles.n[1];
    struct grid_lane lane = lane_of(&tiles, is_tile ? tile : 0);

    for (uint32_t i = threadIdx.x; i < TILES * 16; i += THREADS) {
        spans.low[i] = INT32_MAX;
        spans.high[i] = INT32_MIN;
        spans.n[i] = 0;
        spans.sum[i] = 0;
    }
    __syncthreads();
    while (is_tile && lane.z < lane.end) {
        int32_t low;
        int32_t high;
        uint32_t z = lane.z * 4;
        uint32_t ref = next_region(&tiles, &lane, &low, &high);
        uint64_t set;
        uint64_t clear;

        if (ref == VXD_SVDAG_EMPTY || low >= high) {
            continue;
        }
        vxd_svdag_tree_cube_masks(&call->view, ref, &set, &clear);
        if (vxd_svdag_is_node(ref)) {
            add_leaf(&spans, first, set & vxd_grid_band_mask(z, low, high), (int32_t)z);
        } else if (set != 0) {
            for (uint32_t i = 0; i < 16; i++) {
                add_span(&spans, first + i, low, high - 1);
            }
        }
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x % LANES; is_tile && i < 16; i += LANES) {
        int32_t x = (int32_t)(lane.x + i % 4);
        int32_t y = (int32_t)(lane.y + i / 4);
        struct vxd_grid_span span;

        span.low = spans.low[first + i];
        span.high = spans.high[first + i];
        span.n = spans.n[first + i];
        span.sum = spans.sum[first + i];
        if (x >= area->low[0] && x < area->high[0] && y >= area->low[1] &&
            y < area->high[1]) {
            vxd_grid_put_heights(&call->heights,
                                 (size_t)(y - call->low[1]) * call->n_x +
                                     (size_t)(x - call->low[0]),
                                 &span);
        }
    }
}

static __global__ void __launch_bounds__(THREADS)
    clear_heights_kernel(const __grid_constant__ struct vxd_grid_columns_call call)
{
    uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    struct vxd_grid_span none = {INT32_MAX, INT32_MIN, 0, 0};

    if (i < (uint64_t)(call.rows.end - call.rows.begin) * call.n_x) {
        vxd_grid_put_heights(&call.heights, (size_t)call.rows.begin * call.n_x + i,
                             &none);
    }
}

/* Says how an area is shared out; false where it is empty. */
static bool make_tiles(const struct vxd_grid_columns_call *call, struct grid_tiles *out)
{
    const struct vxd_svdag_area *area = &call->area;

    if (vxd_svdag_area_is_empty(area)) {
        return false;
    }
    out->call = *call;
    for (int axis = 0; axis < 3; axis++) {
        out->low[axis] = (uint32_t)area->low[axis] / 4;
        out->n[axis] = (uint32_t)(area->high[axis] - 1) / 4 - out->low[axis] + 1;
    }
    out->n_lane = (out->n[2] + LANES - 1) / LANES;
    return true;
}

enum vxd_status vxd_grid_columns_cuda(struct vxd_queue *queue,
                                      const struct vxd_grid_columns_call *call,
                                      struct vxd_err *err)
{
    uint64_t n_cells = (uint64_t)(call->rows.end - call->rows.begin) * call->n_x;
    bool is_states = call->states != NULL;
    struct grid_tiles tiles;
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    if (!is_states) {
        clear_heights_kernel<<<blocks_of(n_cells, THREADS), THREADS, 0,
                               stream_of(queue)>>>(*call);
        VXD_TRY(vxd_cuda_launched(queue->context, "clear_heights_kernel", err));
    }
    if (make_tiles(call, &tiles)) {
        unsigned n_blocks = blocks_of((uint64_t)tiles.n[0] * tiles.n[1], TILES);

        if (is_states) {
            states_kernel<<<n_blocks, THREADS, 0, stream_of(queue)>>>(tiles);
        } else {
            heights_kernel<<<n_blocks, THREADS, 0, stream_of(queue)>>>(tiles);
        }
        VXD_TRY(vxd_cuda_launched(queue->context,
                                  is_states ? "states_kernel" : "heights_kernel", err));
    }
out:
    return status;
}

/* --- slopes, costs, marks ------------------------------------------------------------------ */

static __global__ void __launch_bounds__(THREADS)
    slope_kernel(const __grid_constant__ struct vxd_grid_slope_call call)
{
    uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (i < (uint64_t)(call.rows.end - call.rows.begin) * call.n_x) {
        uint64_t cell = (uint64_t)call.rows.begin * call.n_x + i;

        call.slope[cell] =
            vxd_grid_slope_of(call.top, call.n_x, call.n_y, (uint32_t)(cell % call.n_x),
                              (uint32_t)(cell / call.n_x));
    }
}

enum vxd_status vxd_grid_slope_cuda(struct vxd_queue *queue,
                                    const struct vxd_grid_slope_call *call,
                                    struct vxd_err *err)
{
    uint64_t n_cells = (uint64_t)(call->rows.end - call->rows.begin) * call->n_x;
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    slope_kernel<<<blocks_of(n_cells, THREADS), THREADS, 0, stream_of(queue)>>>(*call);
    VXD_TRY(vxd_cuda_launched(queue->context, "slope_kernel", err));
out:
    return status;
}

/* Distance from a cell to the nearest obstacle at or below it, and above it; at most `beyond`. */
static __device__ uint32_t distance_below(const uint32_t *words, uint32_t x,
                                          uint32_t beyond)
{
    uint32_t w = x / 32;
    uint32_t bits = words[w] << (31 - x % 32);
    uint32_t distance = 0;

    while (bits == 0) {
        distance = x - w * 32 + 1; /* of the word below's last cell */
        if (w == 0 || distance >= beyond) {
            return beyond;
        }
        bits = words[--w];
    }
    return min(beyond, distance + (uint32_t)__clz((int)bits));
}

static __device__ uint32_t distance_above(const uint32_t *words, uint32_t n_words,
                                          uint32_t x, uint32_t beyond)
{
    uint32_t w = x / 32;
    uint32_t bits = words[w] >> x % 32;
    uint32_t distance = 0;

    while (bits == 0) {
        distance = (w + 1) * 32 - x; /* of the word above's first cell */
        if (w + 1 == n_words || distance >= beyond) {
            return beyond;
        }
        bits = words[++w];
    }
    return min(beyond, distance + (uint32_t)__ffs((int)bits) - 1);
}

static __global__ void __launch_bounds__(ROW_THREADS)
    squares_kernel(const __grid_constant__ struct vxd_grid_squares_call call)
{
    __shared__ uint32_t words[ROW_WORDS];
    size_t row = (size_t)(call.rows.begin + blockIdx.x) * call.n_x;
    uint32_t n_words = (call.n_x + 31) / 32;
    uint32_t beyond = call.radius + 1;

    for (uint32_t w = threadIdx.x / 32; w < n_words; w += ROW_THREADS / 32) {
        uint32_t x = w * 32 + threadIdx.x % 32;
        uint32_t word = __ballot_sync(
            UINT32_MAX,
            x < call.n_x && vxd_grid_is_lethal(call.states[row + x], call.unknown));

        if (threadIdx.x % 32 == 0) {
            words[w] = word;
        }
    }
    __syncthreads();
    for (uint32_t x = threadIdx.x; x < call.n_x; x += ROW_THREADS) {
        uint32_t distance = min(distance_below(words, x, beyond),
                                distance_above(words, n_words, x, beyond));

        call.squares[row + x] = (uint16_t)(distance * distance);
    }
}

enum vxd_status vxd_grid_row_squares_cuda(struct vxd_queue *queue,
                                          const struct vxd_grid_squares_call *call,
                                          struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    squares_kernel<<<call->rows.end - call->rows.begin, ROW_THREADS, 0,
                     stream_of(queue)>>>(*call);
    VXD_TRY(vxd_cuda_launched(queue->context, "squares_kernel", err));
out:
    return status;
}

static __global__ void __launch_bounds__(THREADS)
    costs_kernel(const __grid_constant__ struct vxd_grid_costs_call call)
{
    uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (i < (uint64_t)(call.rows.end - call.rows.begin) * call.n_x) {
        size_t cell = (size_t)call.rows.begin * call.n_x + i;
        uint32_t y = (uint32_t)(cell / call.n_x);
        const uint16_t *at = call.squares + cell;
        uint32_t nearest = *at;

        for (uint32_t d = 1; d <= call.radius && d * d < nearest; d++) {
            size_t apart = (size_t)d * call.n_x;

            if (d <= y) {
                nearest = min(nearest, *(at - apart) + d * d);
            }
            if (d < call.n_y - y) {
                nearest = min(nearest, at[apart] + d * d);
            }
        }
        call.out[cell] = vxd_grid_cost(call.costs, call.radius, nearest,
                                       call.states[cell], call.unknown);
    }
}

enum vxd_status vxd_grid_costs_cuda(struct vxd_queue *queue,
                                    const struct vxd_grid_costs_call *call,
                                    struct vxd_err *err)
{
    uint64_t n_cells = (uint64_t)(call->rows.end - call->rows.begin) * call->n_x;
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    costs_kernel<<<blocks_of(n_cells, THREADS), THREADS, 0, stream_of(queue)>>>(*call);
    VXD_TRY(vxd_cuda_launched(queue->context, "costs_kernel", err));
out:
    return status;
}

static __global__ void __launch_bounds__(THREADS)
    marks_kernel(const __grid_constant__ struct vxd_grid_marks_call call)
{
    uint32_t w = call.words.begin + blockIdx.x * (THREADS / 32) + threadIdx.x / 32;
    uint32_t cell = w * 32 + threadIdx.x % 32;
    uint32_t word;

    if (w < call.words.end) {
        word = __ballot_sync(UINT32_MAX,
                             cell < call.n_cells &&
                                 vxd_grid_is_frontier(call.states, call.n, cell));
        if (threadIdx.x % 32 == 0) {
            call.marks[w] = word;
        }
    }
}

enum vxd_status vxd_grid_mark_frontiers_cuda(struct vxd_queue *queue,
                                             const struct vxd_grid_marks_call *call,
                                             struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    marks_kernel<<<blocks_of(call->words.end - call->words.begin, THREADS / 32), THREADS,
                   0, stream_of(queue)>>>(*call);
    VXD_TRY(vxd_cuda_launched(queue->context, "marks_kernel", err));
out:
    return status;
}
