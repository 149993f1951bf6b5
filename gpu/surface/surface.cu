// SPDX-License-Identifier: Apache-2.0
/* Surfaces on a GPU.
 *
 * Keys      Which blocks are chosen, picked and listed: a thread a block.
 * Counts    A thread block a voxel block, a thread a row (y, z) of it. The block's rows of bits,
 *           border included, lie in shared memory; each thread then finds the edges and cut cells
 *           of its row by bit operations, and the threads' numbers are summed. Bytes moved: the
 *           distances and weights once, the border again, and 12 bytes a row.
 * Outputs   Vertices: a thread a vertex, whose row it finds by its rank. Triangles: rows as above.
 *           Bytes moved: the outputs once, beside reads that the caches serve.
 * source    ASH, section 6.2.5 */
#include "gpu/core/core_cuda.h"
#include "gpu/surface/surface_math.h"

#define N_KEY_THREADS 256
#define MAX_THREADS 256 /* rows of a block of 16 */

static __device__ const uint64_t cases[256] = VXD_SURFACE_CASES;

/* Shared memory of a thread block. */
struct tile {
    uint32_t negative[VXD_SURFACE_MAX_ROWS];
    uint32_t known[VXD_SURFACE_MAX_ROWS];
    uint32_t sums[MAX_THREADS / 32];
    int32_t neighbours[27];
};

static __global__ void __launch_bounds__(N_KEY_THREADS)
    choose_kernel(const __grid_constant__ struct vxd_surface_work work)
{
    uint32_t i = blockIdx.x * N_KEY_THREADS + threadIdx.x;

    if (i < work.n) {
        work.is_chosen[work.entries[i]] = (uint8_t)vxd_surface_is_asked(&work, i);
    }
}

static __global__ void __launch_bounds__(N_KEY_THREADS)
    pick_kernel(const __grid_constant__ struct vxd_surface_work work)
{
    uint32_t i = blockIdx.x * N_KEY_THREADS + threadIdx.x;

    if (i < work.n) {
        work.picked[i] = (uint32_t)vxd_surface_is_picked(&work, i);
    }
}

static __global__ void __launch_bounds__(N_KEY_THREADS)
    list_kernel(const __grid_constant__ struct vxd_surface_work work)
{
    uint32_t i = blockIdx.x * N_KEY_THREADS + threadIdx.x;

    if (i < work.n && work.picked[i + 1] > work.picked[i]) {
        work.list[work.picked[i]] = i;
        work.places[work.entries[i]] = (int32_t)work.picked[i];
    }
}

static unsigned key_grid(const struct vxd_surface_work *work)
{
    return (work->n + N_KEY_THREADS - 1) / N_KEY_THREADS;
}

enum vxd_status vxd_surface_choose_cuda(struct vxd_queue *queue,
                                        const struct vxd_surface_work *work,
                                        struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    choose_kernel<<<key_grid(work), N_KEY_THREADS, 0, (cudaStream_t)queue->stream>>>(
        *work);
    VXD_TRY(vxd_cuda_launched(queue->context, "choose_kernel", err));
out:
    return status;
}

enum vxd_status vxd_surface_pick_cuda(struct vxd_queue *queue,
                                      const struct vxd_surface_work *work,
                                      struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    pick_kernel<<<key_grid(work), N_KEY_THREADS, 0, (cudaStream_t)queue->stream>>>(*work);
    VXD_TRY(vxd_cuda_launched(queue->context, "pick_kernel", err));
out:
    return status;
}

enum vxd_status vxd_surface_list_cuda(struct vxd_queue *queue,
                                      const struct vxd_surface_work *work,
                                      struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    list_kernel<<<key_grid(work), N_KEY_THREADS, 0, (cudaStream_t)queue->stream>>>(*work);
    VXD_TRY(vxd_cuda_launched(queue->context, "list_kernel", err));
out:
    return status;
}

/* Reads the block's rows into shared memory, by all threads. */
static __device__ void read_tile(const struct vxd_surface_work *work, uint32_t place,
                                 struct tile *tile)
{
    int edge = work->view.edge;
    int side = edge + 2;

    if (threadIdx.x < 27) {
        tile->neighbours[threadIdx.x] =
            work->neighbours[27 * (uint64_t)work->list[place] + threadIdx.x];
    }
    __syncthreads();
    for (int row = (int)threadIdx.x; row < side * side; row += (int)blockDim.x) {
        uint32_t negative;
        uint32_t known;

        vxd_surface_read_rows(work, tile->neighbours, row % side - 1, row / side - 1,
                              &negative, &known);
        tile->negative[row] = negative;
        tile->known[row] = known;
    }
    __syncthreads();
}

/* The sum of n over the threads before this one; *total over all. By all threads. */
static __device__ uint32_t sum_before(struct tile *tile, uint32_t n, uint32_t *total)
{
    uint32_t lane = threadIdx.x & 31;
    uint32_t warp = threadIdx.x >> 5;
    uint32_t sum = n;
    uint32_t before = 0;

    for (uint32_t step = 1; step < 32; step *= 2) {
        uint32_t other = __shfl_up_sync(UINT32_MAX, sum, step);

        sum += lane >= step ? other : 0;
    }
    if (lane == 31) {
        tile->sums[warp] = sum;
    }
    __syncthreads();
    *total = 0;
    for (uint32_t w = 0; w < blockDim.x / 32; w++) {
        before += w < warp ? tile->sums[w] : 0;
        *total += tile->sums[w];
    }
    __syncthreads();
    return before + sum - n;
}

/* The triangles of row (y, z) of the block. */
static __device__ uint32_t count_row(const struct vxd_surface_work *work,
                                     const struct tile *tile, int y, int z)
{
    uint32_t n = 0;

    for (uint32_t cut = vxd_surface_cut_cells(work, tile->neighbours, tile->negative,
                                              tile->known, y, z);
         cut != 0; cut &= cut - 1) {
        n += (uint32_t)(cases[vxd_surface_case(tile->negative, work->view.edge,
                                               vxd_surface_lowest(cut), y, z)] >>
                        60);
    }
    return n;
}

static __global__ void __launch_bounds__(MAX_THREADS)
    count_kernel(const __grid_constant__ struct vxd_surface_work work)
{
    __shared__ struct tile tile;
    uint32_t place = blockIdx.x;
    int edge = work.view.edge;
    int y = (int)threadIdx.x & (edge - 1);
    int z = (int)threadIdx.x >> work.view.shift;
    uint64_t row = ((uint64_t)place * blockDim.x + threadIdx.x) * 3;
    uint32_t edges[3];
    uint32_t n = 0;
    uint32_t rank;
    uint32_t total;
    int is_chosen;

    read_tile(&work, place, &tile);
    is_chosen = vxd_surface_chosen(&work, tile.neighbours, 1, 1, 1);
    vxd_surface_edges(&work, tile.neighbours, tile.negative, tile.known, y, z, edges);
    for (int axis = 0; axis < 3; axis++) {
        n += vxd_surface_n_bits(edges[axis]);
    }
    rank = sum_before(&tile, n, &total);
    for (int axis = 0; axis < 3; axis++) {
        work.edges[row + (uint64_t)axis] = (uint16_t)edges[axis];
        work.ranks[row + (uint64_t)axis] = (uint16_t)rank;
        rank += vxd_surface_n_bits(edges[axis]);
    }
    if (threadIdx.x == 0) {
        work.vertices[place] = total;
        work.chosen[place] = (uint32_t)is_chosen;
    }
    n = work.is_mesh && is_chosen ? count_row(&work, &tile, y, z) : 0;
    (void)sum_before(&tile, n, &total);
    if (threadIdx.x == 0) {
        work.triangles[place] = total;
    }
}

enum vxd_status vxd_surface_count_cuda(struct vxd_queue *queue,
                                       const struct vxd_surface_work *work,
                                       struct vxd_err *err)
{
    unsigned n_threads = (unsigned)(work->view.edge * work->view.edge);
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    count_kernel<<<work->n_picked, n_threads, 0, (cudaStream_t)queue->stream>>>(*work);
    VXD_TRY(vxd_cuda_launched(queue->context, "count_kernel", err));
out:
    return status;
}

/* Writes the block's vertices, by all threads. */
static __device__ void write_vertices(const struct vxd_surface_work *work, uint32_t place,
                                      const int32_t *neighbours)
{
    int edge = work->view.edge;
    int n_rows = 3 * edge * edge;
    const uint16_t *edges = work->edges + (uint64_t)place * (uint64_t)n_rows;
    const uint16_t *ranks = work->ranks + (uint64_t)place * (uint64_t)n_rows;
    uint32_t first = work->vertices[place];
    uint32_t n = work->vertices[place + 1] - first;

    for (uint32_t k = threadIdx.x; k < n; k += blockDim.x) {
        int low = 0; /* the last row whose rank is at most k */
        int high = n_rows;
        uint32_t bits;

        while (high - low > 1) {
            int middle = (low + high) / 2;

            if (ranks[middle] <= k) {
                low = middle;
            } else {
                high = middle;
            }
        }
        bits = edges[low];
        for (uint32_t skip = k - ranks[low]; skip > 0; skip--) {
            bits &= bits - 1;
        }
        vxd_surface_write_vertex(work, neighbours, first + k, vxd_surface_lowest(bits),
                                 low / 3 % edge, low / 3 / edge, low % 3);
    }
}

/* Writes the triangles of row (y, z), from `out` on. */
static __device__ void write_row(const struct vxd_surface_work *work,
                                 const struct tile *tile, int y, int z, int32_t *out)
{
    int edge = work->view.edge;

    for (uint32_t cut = vxd_surface_cut_cells(work, tile->neighbours, tile->negative,
                                              tile->known, y, z);
         cut != 0; cut &= cut - 1) {
        int x = vxd_surface_lowest(cut);
        uint64_t word = cases[vxd_surface_case(tile->negative, edge, x, y, z)];

        for (int i = 0; i < 3 * (int)(word >> 60); i++) {
            *out++ = vxd_surface_vertex_number(work, tile->neighbours, x, y, z,
                                               (int)(word >> 4 * i & 15));
        }
    }
}

static __global__ void __launch_bounds__(MAX_THREADS)
    vertices_kernel(const __grid_constant__ struct vxd_surface_work work)
{
    __shared__ int32_t neighbours[27];
    uint32_t place = blockIdx.x;

    if (threadIdx.x < 27) {
        neighbours[threadIdx.x] =
            work.neighbours[27 * (uint64_t)work.list[place] + threadIdx.x];
    }
    __syncthreads();
    write_vertices(&work, place, neighbours);
    if (threadIdx.x == 0 && work.out.blocks != NULL &&
        work.chosen[place + 1] > work.chosen[place]) {
        vxd_surface_write_block(&work, neighbours, place);
    }
}

static __global__ void __launch_bounds__(MAX_THREADS)
    triangles_kernel(const __grid_constant__ struct vxd_surface_work work)
{
    __shared__ struct tile tile;
    uint32_t place = blockIdx.x;
    uint32_t first = work.triangles[place];
    int y = (int)threadIdx.x & (work.view.edge - 1);
    int z = (int)threadIdx.x >> work.view.shift;
    uint32_t before;
    uint32_t total;

    if (work.triangles[place + 1] == first) { /* of all threads */
        return;
    }
    read_tile(&work, place, &tile);
    before = sum_before(&tile, count_row(&work, &tile, y, z), &total);
    write_row(&work, &tile, y, z, work.out.triangles + 3 * ((uint64_t)first + before));
}

enum vxd_status vxd_surface_write_cuda(struct vxd_queue *queue,
                                       const struct vxd_surface_work *work,
                                       struct vxd_err *err)
{
    unsigned n_threads = (unsigned)(work->view.edge * work->view.edge);
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    vertices_kernel<<<work->n_picked, n_threads, 0, (cudaStream_t)queue->stream>>>(*work);
    VXD_TRY(vxd_cuda_launched(queue->context, "vertices_kernel", err));
    if (work->out.triangles != NULL) {
        triangles_kernel<<<work->n_picked, n_threads, 0, (cudaStream_t)queue->stream>>>(
            *work);
        VXD_TRY(vxd_cuda_launched(queue->context, "triangles_kernel", err));
    }
out:
    return status;
}
