// SPDX-License-Identifier: Apache-2.0
/* Ray casting by cells on a GPU. A thread block takes a cube of 8^3 cells: it loads the voxels around
 * them into shared memory, finds the cells that the surface goes through by bits, and then each
 * thread takes such a cell and tries the rays of the pixels around it. A pixel keeps its nearest
 * crossing by an atomic minimum. Cells with many pixels, near the camera, are shared by all threads.
 * Last, a thread shows a pixel. All arithmetic is in volume_cells_math.h.
 *
 * Moved: the distances of the blocks in view, once and a ninth of a row more on each side; 8 bytes a
 * crossing; 4 to 32 bytes out a pixel. */
#include "gpu/core/core_cuda.h"
#include "gpu/volume/cast/volume_cast_internal.h"

#define N_THREADS 128
#define SIDE VXD_CELLS_SIDE
#define VOXELS VXD_CELLS_VOXELS
#define ROWS VXD_CELLS_ROWS
#define N_CELLS (SIDE * SIDE * SIDE)

/* At least so many threads try the pixels of a cell, and more where there are few cells; those of a
 * cell with more pixels than MOST_PIXELS are tried by all. */
#define LEAST_TOGETHER 4
#define MOST_PIXELS 64

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
    uint16_t cells[N_CELLS]; /* x, y << 3, z << 6 in the cube */
    uint16_t large[N_CELLS]; /* places in `cells` of those with many pixels */
    int32_t next[8];
    int n_cells;
    int n_large;
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

/* The voxels of the cube itself, four a thread. */
static __device__ __forceinline__ void load_inner(const struct vxd_cast_call *call,
                                                  const int32_t at[3], struct cube *cube)
{
    int x = (int)(threadIdx.x & 1) * 4;
    int y = (int)(threadIdx.x >> 1) % SIDE;
    int z = (int)(threadIdx.x >> 1) / SIDE;
    size_t row =
        vxd_voxel_row(&call->view, cube->next[0],
                      vxd_voxel_index(&call->view, at[0] + x, at[1] + y, at[2] + z));
    float *to = cube->d + (z * VOXELS + y) * VOXELS + x;
    float d[4];

    load_four(call, row, d);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        to[i] = vxd_cast_is_known(call, row + (size_t)i, d[i]) ? d[i] : NAN;
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

static __device__ __forceinline__ void load(const struct vxd_cast_call *call,
                                            const int32_t at[3], struct cube *cube)
{
    load_inner(call, at, cube);
    load_sides(call, at, cube);
    __syncthreads();
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

/* Finds the pixels to try for each cell, a cell a thread. */
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
            pixels.first_u = (uint16_t)rect.first_u;
            pixels.first_v = (uint16_t)rect.first_v;
            pixels.n_u = (uint16_t)(rect.last_u - rect.first_u + 1);
            pixels.n_v = (uint16_t)(rect.last_v - rect.first_v + 1);
            if (pixels.n_u * pixels.n_v > MOST_PIXELS) {
                cube->large[atomicAdd(&cube->n_large, 1)] = (uint16_t)which;
            }
        }
        cube->pixels[which] = pixels;
    }
    __syncthreads();
}

/* A cell of the cube, as rays meet it. */
struct cell {
    int32_t low[3];
    uint32_t number;
    float d[8];
};

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

/* Tries every n-th pixel of a cell from the first-th one. */
static __device__ __forceinline__ void meet_some(const struct vxd_cells_call *call,
                                                 const struct cell *cell,
                                                 const struct pixels *pixels, int first,
                                                 int n)
{
    int u = first;
    int v = 0;

    for (;;) {
        for (; u >= pixels->n_u; u -= pixels->n_u) {
            v++;
        }
        if (v >= pixels->n_v) {
            return;
        }
        meet(call, cell, pixels->first_u + u, pixels->first_v + v);
        u += n;
    }
}

static __device__ __forceinline__ void meet_cells(const struct vxd_cells_call *call,
                                                  const struct cube *cube,
                                                  const int32_t low[3],
                                                  const int32_t at[3])
{
    int n_cells = cube->n_cells;
    int n_large = cube->n_large;
    int n_together = LEAST_TOGETHER;
    struct cell cell;

    while (n_together < 32 && n_cells * n_together * 2 <= N_THREADS) {
        n_together *= 2;
    }
    for (int i = (int)threadIdx.x / n_together; i < n_cells;
         i += N_THREADS / n_together) {
        struct pixels pixels = cube->pixels[i];

        if (pixels.n_u != 0 && pixels.n_u * pixels.n_v <= MOST_PIXELS) {
            take_cell(call, cube, low, at, i, &cell);
            meet_some(call, &cell, &pixels, (int)threadIdx.x & (n_together - 1),
                      n_together);
        }
    }
    for (int i = 0; i < n_large; i++) {
        struct pixels pixels = cube->pixels[cube->large[i]];

        take_cell(call, cube, low, at, cube->large[i], &cell);
        meet_some(call, &cell, &pixels, (int)threadIdx.x, N_THREADS);
    }
}

/* No crossing yet, and the inverse direction of each pixel. */
static __global__ void __launch_bounds__(N_THREADS)
    aim_kernel(const __grid_constant__ struct vxd_cells_call call, unsigned n_pixels)
{
    unsigned pixel = blockIdx.x * N_THREADS + threadIdx.x;

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
static __global__ void __launch_bounds__(N_THREADS)
    cells_kernel(const __grid_constant__ struct vxd_cells_call all)
{
    constexpr int n_parts = 1 << 3 * (SHIFT - 3);
    __shared__ struct cube cube;
    struct vxd_cells_call call = all;
    size_t i = blockIdx.x / n_parts;
    int32_t entry = call.cast.entries != NULL ? call.cast.entries[i] : (int32_t)i;
    struct vxd_cells_rect rect;
    int32_t at[3];
    int32_t low[3];

    specialise<SHIFT, IS_COMPACT>(&call);
    if (call.cast.view.stamps[entry] == 0) {
        return;
    }
    vxd_cells_part(&call.cast.view, (int)(blockIdx.x % n_parts), at);
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
        cube.n_large = 0;
    }
    __syncthreads();
    if (cube.is_in_view == 0) {
        return;
    }
    load(&call.cast, at, &cube);
    list_cells(&cube);
    project_cells(&call, low, &cube);
    meet_cells(&call, &cube, low, at);
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
    dim3 grid((unsigned)(call->cast.camera.width + 15) / 16,
              (unsigned)(call->cast.end_row - call->cast.first_row));

    aim_kernel<<<(n_pixels + N_THREADS - 1) / N_THREADS, N_THREADS, 0, stream>>>(
        *call, n_pixels);
    if (n_cubes > 0) {
        cells_kernel<SHIFT, IS_COMPACT><<<n_cubes, N_THREADS, 0, stream>>>(*call);
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
