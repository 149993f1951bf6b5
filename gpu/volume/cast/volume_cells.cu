// SPDX-License-Identifier: Apache-2.0
/* Ray casting by cells on a GPU. First a warp takes a cube of 8^3 cells: it loads the voxels around them
 * into shared memory, finds the cells that the surface goes through by bits, and lists them with the
 * pixels that they project to; those near the camera in pieces, so that no entry has much more work than
 * another. Then four threads take an entry and try the rays of its pixels. A pixel keeps its nearest
 * crossing by an atomic minimum. Where the list is full, the cube's warp tries the rays itself. Last, a
 * thread shows a pixel. All arithmetic is in volume_cells_math.h.
 *
 * Moved: the distances of the blocks in view, once and a ninth of a row more on each side; 64 bytes
 * an entry, out and in; 24 bytes a pixel and 8 a crossing; 4 to 32 bytes out a pixel. */
#include <cfloat>

#include "gpu/core/core_cuda.h"
#include "gpu/volume/cast/volume_cast_internal.h"

#define N_THREADS 128
#define N_WARPS 4 /* that take cubes together */
#define SIDE VXD_CELLS_SIDE
#define VOXELS VXD_CELLS_VOXELS
#define ROWS VXD_CELLS_ROWS
#define N_CELLS (SIDE * SIDE * SIDE)

/* So many threads try the pixels of an entry, which has no more than MOST_PIXELS or one row. */
#define N_TOGETHER 2
#define MOST_PIXELS 8
#define TRY_BLOCKS_A_MULTIPROCESSOR 9 /* as many as fit */

/* What is the same for all rays of a kind of volume is a constant of its kernel. */
template <int SHIFT, bool IS_COMPACT>
static __device__ __forceinline__ void specialise(struct vxd_cells_call *call)
{
    call->cast.view.shift = SHIFT;
    call->cast.view.edge = 1 << SHIFT;
    call->cast.view.is_compact = IS_COMPACT ? 1 : 0;
}

/* The pixels to try for a cell. */
struct pixels {
    uint16_t first_u;
    uint16_t first_v;
    uint16_t n_u;
    uint16_t n_v;
};

/* A warp's cube in shared memory. */
struct cube {
    float d[ROWS * VOXELS]; /* NaN: not known */
    uint32_t fronts[ROWS];
    uint32_t backs[ROWS];
    uint16_t cells[N_CELLS]; /* x, y << 3, z << 6 in the cube */
    /* First voxels of the cube and of those beside it, by the axes on which they are the next one: bits
     * x 1, y 2, z 4; NO_ROW: it is in a block that is not there. */
    size_t rows[8];
};
#define NO_ROW SIZE_MAX

/* The distances of four voxels of a row; the row of the first is a multiple of four. */
static __device__ __forceinline__ void load_four(const struct vxd_cast_call *call,
                                                 size_t row, float d[4])
{
    if (call->view.is_compact != 0) {
        ushort4 four = *(const ushort4 *)((const uint16_t *)call->view.distances + row);

        d[0] = vxd_float_of_half(four.x);
        d[1] = vxd_float_of_half(four.y);
        d[2] = vxd_float_of_half(four.z);
        d[3] = vxd_float_of_half(four.w);
    } else {
        float4 four = *(const float4 *)((const float *)call->view.distances + row);

        d[0] = four.x;
        d[1] = four.y;
        d[2] = four.z;
        d[3] = four.w;
    }
}

/* Where the voxels of a cube begin, and of those beside it. at: its low voxel in its block. */
static __device__ __forceinline__ size_t next_row(const struct vxd_cast_call *call,
                                                  int32_t entry, const int32_t at[3],
                                                  int next)
{
    const int edge = call->view.edge;
    int32_t low[3];
    int across = 0;

    for (int axis = 0; axis < 3; axis++) {
        low[axis] = at[axis] + ((next >> axis & 1) != 0 ? SIDE : 0);
        if (low[axis] == edge) {
            low[axis] = 0;
            across |= 1 << axis;
        }
    }
    if (across != 0) {
        entry = vxd_block_neighbour(&call->view, entry, vxd_cells_column(across));
    }
    return entry == VXD_NO_ENTRY
               ? NO_ROW
               : vxd_voxel_row(&call->view, entry,
                               vxd_voxel_index(&call->view, low[0], low[1], low[2]));
}

/* The greatest and the least of a lane's known distances. */
struct range {
    float most;
    float least;
};

/* The weights of four voxels of a row, where they decide whether the voxels are known. */
static __device__ __forceinline__ void
load_weights(const struct vxd_cast_call *call, size_t row, const float d[4], float w[4])
{
    bool are_known = row == NO_ROW || (d[0] != 0 && d[1] != 0 && d[2] != 0 && d[3] != 0 &&
                                       !(call->weight_threshold > 0));

    w[0] = w[1] = w[2] = w[3] = row == NO_ROW ? 0.0f : FLT_MAX;
    if (!are_known && call->view.is_compact != 0) {
        uchar4 four = *(const uchar4 *)((const uint8_t *)call->view.weights + row);

        w[0] = four.x;
        w[1] = four.y;
        w[2] = four.z;
        w[3] = four.w;
    } else if (!are_known) {
        float4 four = *(const float4 *)((const float *)call->view.weights + row);

        w[0] = four.x;
        w[1] = four.y;
        w[2] = four.z;
        w[3] = four.w;
    }
}

/* That of one. */
static __device__ __forceinline__ float load_weight(const struct vxd_cast_call *call,
                                                    size_t row, float d)
{
    bool is_known = row == NO_ROW || (d != 0 && !(call->weight_threshold > 0));
    float w = row == NO_ROW ? 0.0f : FLT_MAX;

    return is_known ? w : vxd_volume_weight(&call->view, row);
}

/* As vxd_cast_is_known, of a weight that is loaded. */
static __device__ __forceinline__ void keep(const struct vxd_cast_call *call, float d,
                                            float w, float *to, struct range *range)
{
    d = w > 0 && w >= call->weight_threshold ? d : NAN;
    range->most = fmaxf(range->most, d); /* NaN is passed over */
    range->least = fminf(range->least, d);
    *to = d;
}

static __device__ __forceinline__ float load(const struct vxd_cast_call *call, size_t row)
{
    return row != NO_ROW ? vxd_volume_distance(&call->view, row) : 0;
}

/* The voxels of the cube itself, sixteen a lane: they are asked for as soon as the block is known, and
 * written when it is known that the cube is in view. */
#define N_INNER 4

static __device__ __forceinline__ size_t inner_row(const struct vxd_cast_call *call,
                                                   size_t first, int i, int *to)
{
    int quad = i * 32 + (int)(threadIdx.x % 32);
    int x = (quad & 1) * 4;
    int y = quad >> 1 & (SIDE - 1);
    int z = quad >> 4;

    *to = (z * VOXELS + y) * VOXELS + x;
    return first + vxd_voxel_index(&call->view, x, y, z);
}

/* Where a voxel beside the cube is, (x, y, z) from the cube's low voxel; NO_ROW: nowhere. */
static __device__ __forceinline__ size_t side_row(const struct vxd_cast_call *call,
                                                  const struct cube *cube, int x, int y,
                                                  int z, int *to)
{
    size_t first =
        cube->rows[(x == SIDE ? 1 : 0) | (y == SIDE ? 2 : 0) | (z == SIDE ? 4 : 0)];

    *to = (z * VOXELS + y) * VOXELS + x;
    return first != NO_ROW ? first + vxd_voxel_index(&call->view, x & (SIDE - 1),
                                                     y & (SIDE - 1), z & (SIDE - 1))
                           : NO_ROW;
}

/* The voxels on the three high sides: those of y and of z four a lane, of x two a lane, and of the
 * edges one. */
static __device__ __forceinline__ void load_sides(const struct vxd_cast_call *call,
                                                  struct cube *cube, struct range *range)
{
    int lane = (int)(threadIdx.x % 32);
    int at = lane >> 1 & (SIDE - 1);
    int along = lane & (SIDE - 1);
    int which = lane / SIDE; /* of the edges */
    float four[4] = {0, 0, 0, 0};
    float weights[4];
    float d[3];
    float w[3];
    size_t rows[4];
    int to[4];

    rows[3] = lane < 16 ? side_row(call, cube, (lane & 1) * 4, SIDE, at, &to[3])
                        : side_row(call, cube, (lane & 1) * 4, at, SIDE, &to[3]);
    rows[0] = side_row(call, cube, SIDE, along, which, &to[0]);
    rows[1] = side_row(call, cube, SIDE, along, which + 4, &to[1]);
    rows[2] = side_row(call, cube, which == 2 ? along : SIDE, which == 1 ? along : SIDE,
                       which == 0 ? along : SIDE, &to[2]);
    if (rows[3] != NO_ROW) {
        load_four(call, rows[3], four);
    }
#pragma unroll
    for (int i = 0; i < 3; i++) {
        d[i] = load(call, rows[i]);
    }
    load_weights(call, rows[3], four, weights);
#pragma unroll
    for (int i = 0; i < 3; i++) {
        w[i] = load_weight(call, rows[i], d[i]);
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        keep(call, four[i], weights[i], cube->d + to[3] + i, range);
    }
#pragma unroll
    for (int i = 0; i < 3; i++) {
        if (i < 2 || lane <= 3 * SIDE) { /* the last is the corner */
            keep(call, d[i], w[i], cube->d + to[i], range);
        }
    }
    __syncwarp();
}

/* Which voxels are in front of the surface and which behind it. */
static __device__ __forceinline__ void mark(struct cube *cube)
{
    for (unsigned row = threadIdx.x % 32; row < ROWS; row += 32) {
        const float *d = cube->d + row * VOXELS;
        uint32_t front = 0;
        uint32_t back = 0;

#pragma unroll
        for (int x = 0; x < VOXELS; x++) {
            front |= d[x] > 0 ? 1u << x : 0u;
            back |= d[x] <= 0 ? 1u << x : 0u;
        }
        cube->fronts[row] = front;
        cube->backs[row] = back;
    }
    __syncwarp();
}

/* The sum of the lanes up to this one. */
static __device__ __forceinline__ int sum_to(int value)
{
    for (unsigned step = 1; step < 32; step *= 2) {
        int before = __shfl_up_sync(0xffffffffu, value, step);

        value += threadIdx.x % 32 >= step ? before : 0;
    }
    return value;
}

/* Lists the cells that the surface goes through, and returns how many there are. */
static __device__ __forceinline__ int list_cells(struct cube *cube)
{
    uint32_t left[2];
    int n;
    int end;

#pragma unroll
    for (int i = 0; i < 2; i++) {
        int row = (int)(threadIdx.x % 32) + 32 * i;

        left[i] = vxd_cells_of_rows(cube->fronts, cube->backs,
                                    row / SIDE * VOXELS + row % SIDE);
    }
    n = __popc(left[0]) + __popc(left[1]);
    end = sum_to(n);
#pragma unroll
    for (int i = 0; i < 2; i++) {
        int row = (int)(threadIdx.x % 32) + 32 * i;

        for (; left[i] != 0; left[i] &= left[i] - 1) {
            cube->cells[end - n--] = (uint16_t)(__ffs((int)left[i]) - 1 + (row << 3));
        }
    }
    __syncwarp();
    return __shfl_sync(0xffffffffu, end, 31);
}

/* Rows of pixels of an entry, for a cell with n_u pixels in a row. */
static __device__ __forceinline__ int rows_together(int n_u)
{
    return n_u < MOST_PIXELS ? MOST_PIXELS / n_u : 1;
}

/* A cell, as rays meet it. */
struct cell {
    int32_t low[3];
    uint32_t number;
    float d[8];
};

/* An entry of the list: VXD_CELLS_ENTRY_BYTES. */
struct alignas(16) entry {
    struct cell cell;
    struct pixels pixels;
    float inverse; /* 1 / n_u */
    uint32_t unused;
};
static_assert(sizeof(struct entry) == VXD_CELLS_ENTRY_BYTES,
              "entries are read as a whole");

static __device__ __forceinline__ void take_cell(const struct vxd_cells_call *call,
                                                 const struct cube *cube,
                                                 const int32_t low[3], int packed,
                                                 struct cell *cell)
{
    int x = packed & (SIDE - 1);
    int y = packed >> 3 & (SIDE - 1);
    int z = packed >> 6;
    const float *d = cube->d + (z * VOXELS + y) * VOXELS + x;

    cell->low[0] = low[0] + x;
    cell->low[1] = low[1] + y;
    cell->low[2] = low[2] + z;
    cell->number = (uint32_t)cube->rows[0] + vxd_voxel_index(&call->cast.view, x, y, z);
#pragma unroll
    for (int corner = 0; corner < 8; corner++) {
        cell->d[corner] =
            d[((corner >> 2) * VOXELS + (corner >> 1 & 1)) * VOXELS + (corner & 1)];
    }
}

/* The pixels to try for a cell, and the number of entries that take them. */
static __device__ __forceinline__ int project_cell(const struct vxd_cells_call *call,
                                                   const struct cell *cell,
                                                   struct pixels *pixels)
{
    struct vxd_cells_rect rect;
    int rows;

    if (!vxd_cells_project_surface(call, cell->low, cell->d, &rect)) {
        return 0;
    }
    pixels->first_u = (uint16_t)rect.first_u;
    pixels->first_v = (uint16_t)rect.first_v;
    pixels->n_u = (uint16_t)(rect.last_u - rect.first_u + 1);
    pixels->n_v = (uint16_t)(rect.last_v - rect.first_v + 1);
    rows = rows_together(pixels->n_u);
    return (pixels->n_v + rows - 1) / rows;
}

static __device__ __forceinline__ void meet(const struct vxd_cells_call *call,
                                            const struct cell *cell, int u, int v)
{
    size_t row = (size_t)(v - call->cast.first_row * VXD_CAST_TILE);
    size_t pixel = row * (size_t)call->cast.camera.width + (size_t)u;
    struct vxd_cells_ray ray;
    uint64_t word;

    vxd_cells_aim(call, u, v, &ray);
    word = vxd_cells_crossing(call, &ray, cell->low, cell->d, cell->number);
    if (word != VXD_CELLS_NONE) {
        (void)atomicMin((unsigned long long *)&call->crossings[pixel],
                        (unsigned long long)word);
    }
}

/* Writes the entries of a cell, whose places are reserved. */
static __device__ __forceinline__ void list_entries(const struct vxd_cells_call *call,
                                                    const struct cell *cell,
                                                    const struct pixels *all, uint32_t at)
{
    struct entry *to = (struct entry *)call->entries + at;
    struct entry entry = {};
    int rows = rows_together(all->n_u);

    entry.cell = *cell;
    entry.pixels = *all;
    entry.inverse = 1.0f / (float)all->n_u;
    for (int v = 0; v < all->n_v; v += rows) {
        entry.pixels.first_v = (uint16_t)(all->first_v + v);
        entry.pixels.n_v = (uint16_t)(all->n_v - v < rows ? all->n_v - v : rows);
        *to++ = entry;
    }
}

/* The list has no place: the places from first on that were reserved are emptied, and the warp tries the
 * pixels of its lanes' cells itself. */
static __device__ __noinline__ void
try_cells(const struct vxd_cells_call *call, const struct cube *cube,
          const int32_t low[3], int packed, struct pixels own, uint32_t first, uint32_t n)
{
    int lane = (int)(threadIdx.x % 32);

    for (uint32_t i = first + (uint32_t)lane; i < call->max_entries && i < first + n;
         i += 32) {
        ((struct entry *)call->entries)[i].pixels.n_u = 0;
    }
    for (int i = 0; i < 32; i++) {
        int n_u = __shfl_sync(0xffffffffu, (int)own.n_u, i);
        int n_v = __shfl_sync(0xffffffffu, (int)own.n_v, i);
        int first_u = __shfl_sync(0xffffffffu, (int)own.first_u, i);
        int first_v = __shfl_sync(0xffffffffu, (int)own.first_v, i);
        struct cell cell;

        take_cell(call, cube, low, __shfl_sync(0xffffffffu, packed, i), &cell);
        for (int pixel = lane; pixel < n_u * n_v; pixel += 32) {
            meet(call, &cell, first_u + pixel % n_u, first_v + pixel / n_u);
        }
        __syncwarp();
    }
}

/* Reserves places for the entries of 32 cells of the cube, a cell a lane, and writes them. all: the call
 * as the kernel got it, which needs no copy in memory to be passed on. */
static __device__ __forceinline__ void
hand_on(const struct vxd_cells_call *all, const struct vxd_cells_call *call,
        const struct cube *cube, const int32_t low[3], int which, int n_cells)
{
    int packed = cube->cells[which < n_cells ? which : 0];
    struct pixels pixels = {0, 0, 0, 0};
    struct cell cell;
    uint32_t first = 0;
    int total;
    int end;
    int n;

    take_cell(call, cube, low, packed, &cell);
    n = which < n_cells ? project_cell(call, &cell, &pixels) : 0;
    end = sum_to(n);
    total = __shfl_sync(0xffffffffu, end, 31);

    if (total == 0) {
        return;
    }
    if (threadIdx.x % 32 == 0) {
        first = atomicAdd(call->n_entries, (uint32_t)total);
    }
    first = __shfl_sync(0xffffffffu, first, 0);
    if (first > call->max_entries || (uint32_t)total > call->max_entries - first) {
        try_cells(all, cube, low, packed, pixels, first, (uint32_t)total);
    } else if (n > 0) {
        list_entries(call, &cell, &pixels, first + (uint32_t)(end - n));
    }
    __syncwarp();
}

/* The lanes of a warp go through their entries and pixels in step. */
static __global__ void __launch_bounds__(N_THREADS, TRY_BLOCKS_A_MULTIPROCESSOR)
    try_kernel(const __grid_constant__ struct vxd_cells_call call)
{
    uint32_t n = *call.n_entries;
    uint32_t n_steps = gridDim.x * (N_THREADS / N_TOGETHER);
    uint32_t own = (threadIdx.x & 31) / N_TOGETHER;

    n = n < call.max_entries ? n : call.max_entries;
    for (uint32_t i =
             blockIdx.x * (N_THREADS / N_TOGETHER) + threadIdx.x / N_TOGETHER - own;
         i < n; i += n_steps) {
        struct entry entry = {};
        int n_pixels;

        if (i + own < n) {
            entry = ((const struct entry *)call.entries)[i + own];
        }
        n_pixels = entry.pixels.n_u * entry.pixels.n_v;
        for (int pixel = (int)(threadIdx.x % N_TOGETHER);
             __any_sync(0xffffffffu, pixel < n_pixels ? 1 : 0) != 0;
             pixel += N_TOGETHER) {
            if (pixel < n_pixels) { /* few enough in an entry that this is exact */
                int v = (int)(((float)pixel + 0.5f) * entry.inverse);

                meet(&call, &entry.cell,
                     entry.pixels.first_u + pixel - v * entry.pixels.n_u,
                     entry.pixels.first_v + v);
            }
            __syncwarp();
        }
    }
}

/* No entries and no crossing yet. */
static __global__ void __launch_bounds__(N_THREADS)
    empty_kernel(uint64_t *crossings, unsigned n_pixels, uint32_t *n_entries)
{
    unsigned i = blockIdx.x * N_THREADS + threadIdx.x;

    if (i == 0) {
        *n_entries = 0;
    }
    if (2 * i + 1 < n_pixels) {
        ((ulonglong2 *)crossings)[i] = make_ulonglong2(VXD_CELLS_NONE, VXD_CELLS_NONE);
    } else if (2 * i < n_pixels) {
        crossings[2 * i] = VXD_CELLS_NONE;
    }
}

template <int SHIFT, bool IS_COMPACT>
static __global__ void __launch_bounds__(32 * N_WARPS, 32 / N_WARPS)
    cells_kernel(const __grid_constant__ struct vxd_cells_call all, unsigned n_cubes)
{
    constexpr int n_parts = 1 << 3 * (SHIFT - 3);
    __shared__ struct cube cubes[N_WARPS];
    struct cube *cube = &cubes[threadIdx.x / 32];
    unsigned which = blockIdx.x * N_WARPS + threadIdx.x / 32;
    int lane = (int)(threadIdx.x % 32);
    struct vxd_cells_call call = all;
    struct range range = {-1, 1};
    struct vxd_cells_rect rect;
    float inner[N_INNER][4];
    float weights[N_INNER][4];
    int32_t entry;
    int32_t at[3];
    int32_t low[3];
    size_t first;
    int n_cells;

    specialise<SHIFT, IS_COMPACT>(&call);
    if (which >= n_cubes) {
        return;
    }
    entry = call.cast.entries != NULL ? call.cast.entries[which / n_parts]
                                      : (int32_t)(which / n_parts);
    if (call.cast.view.stamps[entry] == 0) {
        return;
    }
    vxd_cells_part(&call.cast.view, (int)(which % n_parts), at);
    first = vxd_voxel_row(&call.cast.view, entry,
                          vxd_voxel_index(&call.cast.view, at[0], at[1], at[2]));
#pragma unroll
    for (int i = 0; i < N_INNER; i++) {
        int to;

        load_four(&call.cast, inner_row(&call.cast, first, i, &to), inner[i]);
    }
    if (lane < 8) {
        cube->rows[lane] = next_row(&call.cast, entry, at, lane);
    }
    vxd_cells_block_low(&call.cast, entry, low);
    for (int axis = 0; axis < 3; axis++) {
        low[axis] += at[axis];
    }
    __syncwarp();
    if (!vxd_cells_project(&call, low, SIDE, &rect)) {
        return;
    }
#pragma unroll
    for (int i = 0; i < N_INNER; i++) {
        int to;

        load_weights(&call.cast, inner_row(&call.cast, first, i, &to), inner[i],
                     weights[i]);
    }
#pragma unroll
    for (int i = 0; i < N_INNER; i++) {
        int to;

        (void)inner_row(&call.cast, first, i, &to);
#pragma unroll
        for (int j = 0; j < 4; j++) {
            keep(&call.cast, inner[i][j], weights[i][j], cube->d + to + j, &range);
        }
    }
    load_sides(&call.cast, cube, &range);
    if (!__any_sync(0xffffffffu, range.most > 0) ||
        !__any_sync(0xffffffffu, range.least <= 0)) {
        return;
    }
    mark(cube);
    n_cells = list_cells(cube);
    for (int i = 0; i < n_cells; i += 32) {
        hand_on(&all, &call, cube, low, i + lane, n_cells);
    }
}

/* A warp takes 8 x 4 pixels, so that what it reads is near together. */
template <int SHIFT, bool IS_COMPACT, bool HAS_COLOUR, bool IS_LINKED>
static __global__ void __launch_bounds__(N_THREADS)
    show_kernel(const __grid_constant__ struct vxd_cells_call all)
{
    struct vxd_cells_call call = all;
    unsigned lane = threadIdx.x & 31;
    unsigned warp = threadIdx.x >> 5;
    int u = (int)(blockIdx.x * 16 + (warp & 1) * 8 + (lane & 7));
    int v = (int)((blockIdx.y + call.cast.first_row) * VXD_CAST_TILE + (warp >> 1) * 4 +
                  (lane >> 3));

    specialise<SHIFT, IS_COMPACT>(&call);
    call.cast.colour = HAS_COLOUR ? all.cast.colour : NULL;
    if (IS_LINKED && call.cast.view.neighbours == NULL) {
        return; /* never: but now the table is not looked into */
    }
    if (u < call.cast.camera.width && v < call.cast.camera.height) {
        vxd_cells_pixel(&call, u, v);
    }
}

template <int SHIFT, bool IS_COMPACT>
static void launch(const struct vxd_cells_call *call, int n_multiprocessors,
                   cudaStream_t stream)
{
    unsigned n_cubes = (unsigned)(call->cast.n << 3 * (SHIFT - 3));
    unsigned n_pixels =
        (unsigned)(vxd_cast_end_row(&call->cast) - call->cast.first_row * VXD_CAST_TILE) *
        (unsigned)call->cast.camera.width;
    unsigned n_try_blocks = TRY_BLOCKS_A_MULTIPROCESSOR * (unsigned)n_multiprocessors;
    dim3 grid((unsigned)(call->cast.camera.width + 15) / 16,
              (unsigned)(call->cast.end_row - call->cast.first_row));

    empty_kernel<<<(n_pixels / 2 + N_THREADS) / N_THREADS, N_THREADS, 0, stream>>>(
        call->crossings, n_pixels, call->n_entries);
    if (n_cubes > 0) {
        cells_kernel<SHIFT, IS_COMPACT>
            <<<(n_cubes + N_WARPS - 1) / N_WARPS, 32 * N_WARPS, 0, stream>>>(*call,
                                                                             n_cubes);
        try_kernel<<<n_try_blocks, N_THREADS, 0, stream>>>(*call);
    }
    if (call->cast.view.neighbours == NULL) {
        show_kernel<SHIFT, IS_COMPACT, true, false>
            <<<grid, N_THREADS, 0, stream>>>(*call);
    } else if (call->cast.colour != NULL) {
        show_kernel<SHIFT, IS_COMPACT, true, true><<<grid, N_THREADS, 0, stream>>>(*call);
    } else {
        show_kernel<SHIFT, IS_COMPACT, false, true>
            <<<grid, N_THREADS, 0, stream>>>(*call);
    }
}

enum vxd_status vxd_volume_cells_cuda(struct vxd_queue *queue,
                                      const struct vxd_cells_call *call,
                                      struct vxd_err *err)
{
    cudaStream_t stream = (cudaStream_t)queue->stream;
    int n_multiprocessors = queue->context->info.n_multiprocessors;
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    if (call->cast.view.shift == 3) {
        (call->cast.view.is_compact != 0
             ? launch<3, true>
             : launch<3, false>)(call, n_multiprocessors, stream);
    } else {
        (call->cast.view.is_compact != 0
             ? launch<4, true>
             : launch<4, false>)(call, n_multiprocessors, stream);
    }
    VXD_TRY(vxd_cuda_launched(queue->context, "cells_kernel", err));
out:
    return status;
}
