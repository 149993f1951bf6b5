// SPDX-License-Identifier: Apache-2.0
/* Ray casting by cells on a GPU. First a thread block takes a cube of 8^3 cells: it loads the voxels
 * around them into shared memory, finds the cells that the surface goes through by bits, and lists
 * them with the pixels that they project to; those near the camera in pieces, so that no entry has
 * much more work than another. Then a warp takes 32 entries and tries the rays of their pixels, a pixel a
 * lane. A pixel keeps its nearest crossing by an atomic minimum. Where the list is full, the thread block
 * tries the rays itself. Last, a thread shows a pixel. All arithmetic is in volume_cells_math.h.
 *
 * Moved: the distances of the blocks in view, once and a ninth of a row more on each side; 64 bytes
 * an entry, out and in; 24 bytes a pixel and 8 a crossing; 4 to 32 bytes out a pixel. */
#include "gpu/core/core_cuda.h"
#include "gpu/volume/cast/volume_cast_internal.h"

#define N_THREADS 128
#define SIDE VXD_CELLS_SIDE
#define VOXELS VXD_CELLS_VOXELS
#define ROWS VXD_CELLS_ROWS
#define N_CELLS (SIDE * SIDE * SIDE)

/* An entry has no more pixels than these, or one row. */
#define MOST_PIXELS 64
#define MOST_TRY_BLOCKS 2048

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

/* A cube in shared memory. */
struct cube {
    float d[ROWS * VOXELS];
    uint32_t fronts[ROWS];
    uint32_t backs[ROWS];
    struct pixels pixels[N_CELLS];
    uint32_t entries[N_CELLS]; /* the first of each cell's among the cube's */
    uint16_t cells[N_CELLS];   /* x, y << 3, z << 6 in the cube */
    int32_t next[8];
    int n_cells;
    uint32_t n_entries;
    uint32_t first_entry;
    int is_in_view;
};

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

/* The voxels of the cube itself, four a thread: they are asked for as soon as the block is known, and
 * written when the thread block has found out whether it is in view. */
struct inner {
    size_t row;
    float *to;
    float d[4];
};

static __device__ __forceinline__ void load_inner(const struct vxd_cast_call *call,
                                                  int32_t entry, const int32_t at[3],
                                                  struct cube *cube, struct inner *inner)
{
    int x = (int)(threadIdx.x & 1) * 4;
    int y = (int)(threadIdx.x >> 1) % SIDE;
    int z = (int)(threadIdx.x >> 1) / SIDE;

    inner->row =
        vxd_voxel_row(&call->view, entry,
                      vxd_voxel_index(&call->view, at[0] + x, at[1] + y, at[2] + z));
    inner->to = cube->d + (z * VOXELS + y) * VOXELS + x;
    load_four(call, inner->row, inner->d);
}

static __device__ __forceinline__ void keep_inner(const struct vxd_cast_call *call,
                                                  const struct inner *inner)
{
#pragma unroll
    for (int i = 0; i < 4; i++) {
        inner->to[i] = vxd_cast_is_known(call, inner->row + (size_t)i, inner->d[i])
                           ? inner->d[i]
                           : NAN;
    }
}

/* Those on its three high sides. */
static __device__ __forceinline__ void load_sides(const struct vxd_cast_call *call,
                                                  const int32_t at[3], struct cube *cube)
{
    const int n_z = VOXELS * VOXELS;      /* the side of high z, with its edges */
    const int n_zy = n_z + SIDE * VOXELS; /* and that of high y */
    const int n = n_zy + SIDE * SIDE;

    for (int i = (int)threadIdx.x; i < n; i += N_THREADS) {
        int x = i < n_zy ? i % VOXELS : SIDE;
        int y = i < n_z ? i / VOXELS : i < n_zy ? SIDE : (i - n_zy) % SIDE;
        int z = i < n_z ? SIDE : i < n_zy ? (i - n_z) / VOXELS : (i - n_zy) / SIDE;

        cube->d[(z * VOXELS + y) * VOXELS + x] =
            vxd_cells_voxel(call, cube->next, at[0] + x, at[1] + y, at[2] + z);
    }
}

/* Which voxels are in front of the surface and which behind it. */
static __device__ __forceinline__ void mark(struct cube *cube)
{
    if (threadIdx.x < ROWS) {
        const float *d = cube->d + threadIdx.x * VOXELS;
        uint32_t front = 0;
        uint32_t back = 0;

#pragma unroll
        for (int x = 0; x < VOXELS; x++) {
            front |= d[x] > 0 ? 1u << x : 0u;
            back |= d[x] <= 0 ? 1u << x : 0u;
        }
        cube->fronts[threadIdx.x] = front;
        cube->backs[threadIdx.x] = back;
    }
    __syncthreads();
}

static __device__ __forceinline__ void list_cells(struct cube *cube)
{
    if (threadIdx.x < SIDE * SIDE) {
        int y = (int)(threadIdx.x % SIDE);
        int z = (int)(threadIdx.x / SIDE);
        uint32_t left = vxd_cells_of_rows(cube->fronts, cube->backs, z * VOXELS + y);
        int at = left != 0 ? atomicAdd(&cube->n_cells, __popc(left)) : 0;

        for (; left != 0; left &= left - 1) {
            cube->cells[at++] =
                (uint16_t)(__ffs((int)left) - 1 + (int)(threadIdx.x << 3));
        }
    }
    __syncthreads();
}

/* Rows of pixels of an entry, for a cell with n_u pixels in a row. */
static __device__ __forceinline__ int rows_together(int n_u)
{
    return n_u < MOST_PIXELS ? MOST_PIXELS / n_u : 1;
}

/* Finds the pixels to try for each cell, a cell a thread, and counts the entries that take them. */
static __device__ __forceinline__ void
project_cells(const struct vxd_cells_call *call, const int32_t low[3], struct cube *cube)
{
    for (int which = (int)threadIdx.x; which < cube->n_cells; which += N_THREADS) {
        int packed = cube->cells[which];
        int32_t cell[3] = {low[0] + (packed & (SIDE - 1)),
                           low[1] + (packed >> 3 & (SIDE - 1)), low[2] + (packed >> 6)};
        struct pixels pixels = {0, 0, 0, 0};
        struct vxd_cells_rect rect;

        if (vxd_cells_project(call, cell, 1, &rect)) {
            int rows;

            pixels.first_u = (uint16_t)rect.first_u;
            pixels.first_v = (uint16_t)rect.first_v;
            pixels.n_u = (uint16_t)(rect.last_u - rect.first_u + 1);
            pixels.n_v = (uint16_t)(rect.last_v - rect.first_v + 1);
            rows = rows_together(pixels.n_u);
            cube->entries[which] =
                atomicAdd(&cube->n_entries, (uint32_t)((pixels.n_v + rows - 1) / rows));
        }
        cube->pixels[which] = pixels;
    }
    __syncthreads();
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

static __device__ __forceinline__ void
take_cell(const struct vxd_cells_call *call, const struct cube *cube,
          const int32_t low[3], const int32_t at[3], int which, struct cell *cell)
{
    int packed = cube->cells[which];
    int x = packed & (SIDE - 1);
    int y = packed >> 3 & (SIDE - 1);
    int z = packed >> 6;
    const float *d = cube->d + (z * VOXELS + y) * VOXELS + x;

    cell->low[0] = low[0] + x;
    cell->low[1] = low[1] + y;
    cell->low[2] = low[2] + z;
    cell->number = ((uint32_t)cube->next[0] << 3 * call->cast.view.shift) +
                   vxd_voxel_index(&call->cast.view, at[0] + x, at[1] + y, at[2] + z);
#pragma unroll
    for (int corner = 0; corner < 8; corner++) {
        cell->d[corner] =
            d[((corner >> 2) * VOXELS + (corner >> 1 & 1)) * VOXELS + (corner & 1)];
    }
}

static __device__ __forceinline__ void meet(const struct vxd_cells_call *call,
                                            const struct cell *cell, int u, int v)
{
    size_t row = (size_t)(v - call->cast.first_row * VXD_CAST_TILE);
    size_t pixel = row * (size_t)call->cast.camera.width + (size_t)u;
    float4 inverse = ((const float4 *)call->inverses)[pixel];
    struct vxd_cells_ray ray = {{vxd_cells_direction(call, 0, u, v),
                                 vxd_cells_direction(call, 1, u, v),
                                 vxd_cells_direction(call, 2, u, v)},
                                {inverse.x, inverse.y, inverse.z}};
    uint64_t word = vxd_cells_crossing(call, &ray, cell->low, cell->d, cell->number);

    if (word != VXD_CELLS_NONE) {
        (void)atomicMin((unsigned long long *)&call->crossings[pixel],
                        (unsigned long long)word);
    }
}

/* Writes the entries of the cube's cells, whose places are reserved. */
static __device__ __forceinline__ void list_entries(const struct vxd_cells_call *call,
                                                    const struct cube *cube,
                                                    const int32_t low[3],
                                                    const int32_t at[3])
{
    for (int which = (int)threadIdx.x; which < cube->n_cells; which += N_THREADS) {
        struct pixels all = cube->pixels[which];
        struct entry *to =
            (struct entry *)call->entries + cube->first_entry + cube->entries[which];
        struct entry entry = {};

        if (all.n_u == 0) {
            continue;
        }
        take_cell(call, cube, low, at, which, &entry.cell);
        entry.inverse = 1.0f / (float)all.n_u;
        for (int v = 0; v < all.n_v; v += rows_together(all.n_u)) {
            int rows = rows_together(all.n_u);

            entry.pixels = all;
            entry.pixels.first_v = (uint16_t)(all.first_v + v);
            entry.pixels.n_v = (uint16_t)(all.n_v - v < rows ? all.n_v - v : rows);
            *to++ = entry;
        }
    }
}

/* Reserves places for the cube's entries. Where the list has no place for them all, those that are
 * left are emptied, and the thread block tries the rays itself. */
static __device__ __forceinline__ void hand_on(const struct vxd_cells_call *call,
                                               struct cube *cube, const int32_t low[3],
                                               const int32_t at[3])
{
    uint32_t first;
    struct cell cell;

    if (threadIdx.x == 0) {
        cube->first_entry = atomicAdd(call->n_entries, cube->n_entries);
    }
    __syncthreads();
    first = cube->first_entry;
    if (first <= call->max_entries && cube->n_entries <= call->max_entries - first) {
        list_entries(call, cube, low, at);
        return;
    }
    for (uint32_t i = first + threadIdx.x;
         i < call->max_entries && i < first + cube->n_entries; i += N_THREADS) {
        ((struct entry *)call->entries)[i].pixels.n_u = 0;
    }
    for (int i = 0; i < cube->n_cells; i++) {
        struct pixels pixels = cube->pixels[i];

        if (pixels.n_u != 0) {
            take_cell(call, cube, low, at, i, &cell);
        }
        for (int pixel = (int)threadIdx.x; pixel < pixels.n_u * pixels.n_v;
             pixel += N_THREADS) {
            meet(call, &cell, pixels.first_u + pixel % pixels.n_u,
                 pixels.first_v + pixel / pixels.n_u);
        }
    }
}

/* What a warp keeps of 32 entries, each with a gap behind it, so that lanes with different entries
 * read different banks. */
#define ENTRY_QUADS (VXD_CELLS_ENTRY_BYTES / 16)
#define ENTRY_STRIDE (ENTRY_QUADS + 1)

static __device__ __forceinline__ void
load_entries(const struct vxd_cells_call *call, uint32_t first, uint32_t n, uint4 *kept)
{
    const uint4 *from = (const uint4 *)call->entries + (size_t)first * ENTRY_QUADS;

#pragma unroll
    for (unsigned i = 0; i < ENTRY_QUADS; i++) {
        unsigned quad = i * 32 + threadIdx.x % 32;

        if (first + quad / ENTRY_QUADS < n) {
            kept[quad / ENTRY_QUADS * ENTRY_STRIDE + quad % ENTRY_QUADS] = from[quad];
        }
    }
    __syncwarp();
}

/* Tries the pixels of 32 entries, a pixel a lane, one entry's behind the other's, so that no lane waits
 * for an entry with more pixels. Of the pixels of a step a bit is set where an entry begins: those up
 * to a lane's own say which entry the lane has. */
static __device__ __forceinline__ void try_entries(const struct vxd_cells_call *call,
                                                   uint32_t n, const uint4 *kept)
{
    unsigned lane = threadIdx.x % 32;
    const struct entry *own = (const struct entry *)(kept + lane * ENTRY_STRIDE);
    int n_own = 0;
    int end;
    int first;
    int total;

    if (lane < n) { /* an entry that was emptied has a pixel that is not tried */
        n_own = own->pixels.n_u * own->pixels.n_v;
        n_own = n_own > 0 ? n_own : 1;
    }
    end = n_own;
    for (unsigned step = 1; step < 32; step *= 2) {
        int before = __shfl_up_sync(0xffffffffu, end, step);

        end += lane >= step ? before : 0;
    }
    first = end - n_own;
    total = __shfl_sync(0xffffffffu, end, 31);
    for (int base = 0; base < total; base += 32) {
        bool begins = n_own > 0 && first >= base && first < base + 32;
        unsigned begun = __ballot_sync(0xffffffffu, n_own > 0 && first < base ? 1 : 0);
        unsigned begin =
            __reduce_add_sync(0xffffffffu, begins ? 1u << (first - base) : 0u);
        int which = __popc(begun) + __popc(begin & (0xffffffffu >> (31 - lane))) - 1;
        int pixel = base + (int)lane - __shfl_sync(0xffffffffu, first, which);
        const struct entry *entry = (const struct entry *)(kept + which * ENTRY_STRIDE);

        if (base + (int)lane < total && entry->pixels.n_u != 0) {
            /* few enough in an entry that this is exact */
            int v = (int)(((float)pixel + 0.5f) * entry->inverse);

            meet(call, &entry->cell,
                 entry->pixels.first_u + pixel - v * entry->pixels.n_u,
                 entry->pixels.first_v + v);
        }
        __syncwarp();
    }
}

static __global__ void __launch_bounds__(N_THREADS)
    try_kernel(const __grid_constant__ struct vxd_cells_call call)
{
    __shared__ uint4 kept[N_THREADS / 32][32 * ENTRY_STRIDE];
    uint32_t warp = threadIdx.x / 32;
    uint32_t n = *call.n_entries;

    n = n < call.max_entries ? n : call.max_entries;
    for (uint32_t first = blockIdx.x * N_THREADS + warp * 32; first < n;
         first += gridDim.x * N_THREADS) {
        load_entries(&call, first, n, kept[warp]);
        try_entries(&call, n - first, kept[warp]);
    }
}

/* No entries and no crossing yet, and the inverse direction of each pixel. */
static __global__ void __launch_bounds__(N_THREADS)
    aim_kernel(const __grid_constant__ struct vxd_cells_call call, unsigned n_pixels)
{
    unsigned pixel = blockIdx.x * N_THREADS + threadIdx.x;

    if (pixel == 0) {
        *call.n_entries = 0;
    }
    if (pixel < n_pixels) {
        int u = (int)(pixel % (unsigned)call.cast.camera.width);
        int v = (int)(pixel / (unsigned)call.cast.camera.width) +
                call.cast.first_row * VXD_CAST_TILE;
        struct vxd_cells_ray ray;

        vxd_cells_aim(&call, u, v, &ray);
        ((float4 *)call.inverses)[pixel] =
            make_float4(ray.inverse[0], ray.inverse[1], ray.inverse[2], 0);
        call.crossings[pixel] = VXD_CELLS_NONE;
    }
}

template <int SHIFT, bool IS_COMPACT>
static __global__ void __launch_bounds__(N_THREADS, 12)
    cells_kernel(const __grid_constant__ struct vxd_cells_call all)
{
    constexpr int n_parts = 1 << 3 * (SHIFT - 3);
    __shared__ struct cube cube;
    struct vxd_cells_call call = all;
    size_t i = blockIdx.x / n_parts;
    int32_t entry = call.cast.entries != NULL ? call.cast.entries[i] : (int32_t)i;
    struct vxd_cells_rect rect;
    struct inner inner;
    int32_t at[3];
    int32_t low[3];

    specialise<SHIFT, IS_COMPACT>(&call);
    if (call.cast.view.stamps[entry] == 0) {
        return;
    }
    vxd_cells_part(&call.cast.view, (int)(blockIdx.x % n_parts), at);
    load_inner(&call.cast, entry, at, &cube, &inner);
    vxd_cells_block_low(&call.cast, entry, low);
    for (int axis = 0; axis < 3; axis++) {
        low[axis] += at[axis];
    }
    if (threadIdx.x < 32) { /* the other warps need not compute the same */
        if (threadIdx.x < 8) {
            cube.next[threadIdx.x] =
                threadIdx.x == 0
                    ? entry
                    : vxd_block_neighbour(&call.cast.view, entry,
                                          vxd_cells_column((int)threadIdx.x));
        }
        cube.is_in_view = vxd_cells_project(&call, low, SIDE, &rect) ? 1 : 0;
        cube.n_cells = 0;
        cube.n_entries = 0;
    }
    __syncthreads();
    if (cube.is_in_view == 0) {
        return;
    }
    keep_inner(&call.cast, &inner);
    load_sides(&call.cast, at, &cube);
    __syncthreads();
    mark(&cube);
    list_cells(&cube);
    if (cube.n_cells == 0) {
        return;
    }
    project_cells(&call, low, &cube);
    hand_on(&call, &cube, low, at);
}

/* A warp takes 8 x 4 pixels, so that what it reads is near together. */
template <int SHIFT, bool IS_COMPACT, bool HAS_COLOUR>
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
    if (u < call.cast.camera.width && v < call.cast.camera.height) {
        vxd_cells_pixel(&call, u, v);
    }
}

template <int SHIFT, bool IS_COMPACT>
static void launch(const struct vxd_cells_call *call, cudaStream_t stream)
{
    unsigned n_cubes = (unsigned)(call->cast.n << 3 * (SHIFT - 3));
    unsigned n_pixels =
        (unsigned)(vxd_cast_end_row(&call->cast) - call->cast.first_row * VXD_CAST_TILE) *
        (unsigned)call->cast.camera.width;
    unsigned n_try_blocks = call->max_entries / N_THREADS + 1;
    dim3 grid((unsigned)(call->cast.camera.width + 15) / 16,
              (unsigned)(call->cast.end_row - call->cast.first_row));

    aim_kernel<<<(n_pixels + N_THREADS - 1) / N_THREADS, N_THREADS, 0, stream>>>(
        *call, n_pixels);
    n_try_blocks = n_try_blocks < MOST_TRY_BLOCKS ? n_try_blocks : MOST_TRY_BLOCKS;
    if (n_cubes > 0) {
        cells_kernel<SHIFT, IS_COMPACT><<<n_cubes, N_THREADS, 0, stream>>>(*call);
        try_kernel<<<n_try_blocks, N_THREADS, 0, stream>>>(*call);
    }
    if (call->cast.colour != NULL) {
        show_kernel<SHIFT, IS_COMPACT, true><<<grid, N_THREADS, 0, stream>>>(*call);
    } else {
        show_kernel<SHIFT, IS_COMPACT, false><<<grid, N_THREADS, 0, stream>>>(*call);
    }
}

enum vxd_status vxd_volume_cells_cuda(struct vxd_queue *queue,
                                      const struct vxd_cells_call *call,
                                      struct vxd_err *err)
{
    cudaStream_t stream = (cudaStream_t)queue->stream;
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    if (call->cast.view.shift == 3) {
        (call->cast.view.is_compact != 0 ? launch<3, true> : launch<3, false>)(call,
                                                                               stream);
    } else {
        (call->cast.view.is_compact != 0 ? launch<4, true> : launch<4, false>)(call,
                                                                               stream);
    }
    VXD_TRY(vxd_cuda_launched(queue->context, "cells_kernel", err));
out:
    return status;
}
