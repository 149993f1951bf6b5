// SPDX-License-Identifier: Apache-2.0
/* Surfaces on a GPU.
 *
 * Keys      Which blocks are chosen, picked and listed: a thread a block.
 * Counts    A thread block a voxel block, a thread a row (y, z) of it. The block's rows of bits,
 *           border included, lie in shared memory; each thread then finds the edges and cut cells
 *           of its row by bit operations, and the threads' numbers are summed. Bytes moved: the
 *           distances and weights once, the border again, and 12 bytes a row.
 *           surface_plan.cu does both in one launch, and what lies between them.
 * Outputs   Vertices: a thread a vertex, whose row it finds by its rank. Triangles: threads list
 *           those of their rows in shared memory, then a thread takes a triangle, so that none of
 *           their reads waits for another triangle's.
 *           Bytes moved: the outputs once, beside reads that the caches serve.
 * source    ASH, section 6.2.5 */
#include "gpu/surface/surface_cuda.h"

#define N_KEY_THREADS 256

static __global__ void __launch_bounds__(N_KEY_THREADS)
    choose_kernel(const __grid_constant__ struct vxd_surface_work work)
{
    uint32_t i = blockIdx.x * N_KEY_THREADS + threadIdx.x;

    if (i < work.n) {
        int32_t entry = work.entries[i];

        work.is_chosen[entry] = (uint8_t)vxd_surface_is_asked(
            &work, i, entry, work.neighbours + 27 * (uint64_t)i);
    }
}

static __global__ void __launch_bounds__(N_KEY_THREADS)
    pick_kernel(const __grid_constant__ struct vxd_surface_work work)
{
    uint32_t i = blockIdx.x * N_KEY_THREADS + threadIdx.x;

    if (i < work.n) {
        work.picked[i] =
            (uint32_t)vxd_surface_is_picked(&work, work.neighbours + 27 * (uint64_t)i);
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

static __global__ void __launch_bounds__(VXD_SURFACE_MAX_THREADS)
    count_kernel(const __grid_constant__ struct vxd_surface_work work)
{
    __shared__ struct vxd_surface_tile tile;
    uint32_t place = blockIdx.x;
    struct vxd_surface_sums sums =
        vxd_surface_count_block(&work, place, threadIdx.x, blockDim.x, true, &tile);

    if (threadIdx.x == 0) {
        work.vertices[place] = sums.vertices;
        work.triangles[place] = sums.triangles;
        work.chosen[place] = sums.chosen;
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

#define MAX_EDGE_ROWS (3 * 16 * 16)
#define MOST_LISTED 2048

/* Shared memory of a thread block that writes vertices, or triangles. */
union shared {
    struct {
        uint16_t edges[MAX_EDGE_ROWS];
        uint16_t ranks[MAX_EDGE_ROWS];
        int32_t neighbours[27];
    } vertices;
    struct {
        struct vxd_surface_tile tile;
        uint16_t list[MOST_LISTED]; /* triangles: cell x, y, z, and which of the cell's */
    } triangles;
};

/* Writes the block's vertices, by all threads. */
static __device__ void write_vertices(const struct vxd_surface_work *work, uint32_t place,
                                      union shared *shared)
{
    int edge = work->view.edge;
    int n_rows = 3 * edge * edge;
    const uint16_t *edges = work->edges + (uint64_t)place * (uint64_t)n_rows;
    const uint16_t *ranks = work->ranks + (uint64_t)place * (uint64_t)n_rows;
    uint32_t first = work->vertices[place];
    uint32_t n = work->vertices[place + 1] - first;

    if (threadIdx.x < 27) {
        shared->vertices.neighbours[threadIdx.x] =
            work->neighbours[27 * (uint64_t)work->list[place] + threadIdx.x];
    }
    for (int row = (int)threadIdx.x; n > 0 && row < n_rows; row += (int)blockDim.x) {
        shared->vertices.edges[row] = edges[row];
        shared->vertices.ranks[row] = ranks[row];
    }
    __syncthreads();
    for (uint32_t k = threadIdx.x; k < n; k += blockDim.x) {
        int low = 0; /* the last row whose rank is at most k */
        int high = n_rows;
        uint32_t bits;

        while (high - low > 1) {
            int middle = (low + high) / 2;

            if (shared->vertices.ranks[middle] <= k) {
                low = middle;
            } else {
                high = middle;
            }
        }
        bits = shared->vertices.edges[low];
        for (uint32_t skip = k - shared->vertices.ranks[low]; skip > 0; skip--) {
            bits &= bits - 1;
        }
        vxd_surface_write_vertex(work, shared->vertices.neighbours, first + k,
                                 vxd_surface_lowest(bits), low / 3 % edge, low / 3 / edge,
                                 low % 3);
    }
    if (threadIdx.x == 0 && work->out.blocks != NULL &&
        work->chosen[place + 1] > work->chosen[place]) {
        vxd_surface_write_block(work, shared->vertices.neighbours, place);
    }
}

/* Lists those triangles of row (y, z) that are among [begin, begin + MOST_LISTED) of the block's; `at` is
 * the number of its first one. */
static __device__ __forceinline__ void list_triangles(const struct vxd_surface_work *work,
                                                      union shared *shared, int y, int z,
                                                      uint32_t at, uint32_t begin)
{
    const struct vxd_surface_tile *tile = &shared->triangles.tile;
    int edge = work->view.edge;
    int shift = work->view.shift;

    for (uint32_t cut = vxd_surface_cut_cells(work, tile->neighbours, tile->negative,
                                              tile->known, y, z);
         cut != 0; cut &= cut - 1) {
        int x = vxd_surface_lowest(cut);
        uint32_t n = (uint32_t)(vxd_surface_cases[vxd_surface_case(tile->negative, edge,
                                                                   x, y, z)] >>
                                60);
        uint32_t cell = (uint32_t)((z << shift | y) << shift | x);

        for (uint32_t i = 0; i < n; i++, at++) {
            if (at - begin < MOST_LISTED) {
                shared->triangles.list[at - begin] = (uint16_t)(cell << 3 | i);
            }
        }
    }
}

/* Writes a triangle that is listed. */
static __device__ __forceinline__ void write_triangle(const struct vxd_surface_work *work,
                                                      const struct vxd_surface_tile *tile,
                                                      uint32_t listed, int32_t *out)
{
    int edge = work->view.edge;
    int shift = work->view.shift;
    int which = (int)(listed & 7);
    int x = (int)(listed >> 3) & (edge - 1);
    int y = (int)(listed >> (3 + shift)) & (edge - 1);
    int z = (int)(listed >> (3 + 2 * shift));
    uint64_t word = vxd_surface_cases[vxd_surface_case(tile->negative, edge, x, y, z)];
    int32_t numbers[3];

#pragma unroll
    for (int i = 0; i < 3; i++) {
        numbers[i] = vxd_surface_vertex_number(work, tile->neighbours, x, y, z,
                                               (int)(word >> 4 * (3 * which + i) & 15));
    }
#pragma unroll
    for (int i = 0; i < 3; i++) {
        out[i] = numbers[i];
    }
}

/* Writes the triangles of the block at a place, a thread a triangle. */
static __device__ void write_triangles(const struct vxd_surface_work *work,
                                       uint32_t place, union shared *shared)
{
    struct vxd_surface_tile *tile = &shared->triangles.tile;
    uint32_t first = work->triangles[place];
    int y = (int)threadIdx.x & (work->view.edge - 1);
    int z = (int)threadIdx.x >> work->view.shift;
    uint32_t before;
    uint32_t total;

    if (work->triangles[place + 1] == first) { /* of all threads */
        return;
    }
    vxd_surface_read_tile(work, place, threadIdx.x, blockDim.x, tile);
    before = vxd_surface_sum_before(tile, vxd_surface_count_row(work, tile, y, z),
                                    threadIdx.x, blockDim.x, &total);
    for (uint32_t begin = 0; begin < total; begin += MOST_LISTED) { /* of all threads */
        list_triangles(work, shared, y, z, before, begin);
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < MOST_LISTED && begin + i < total;
             i += blockDim.x) {
            write_triangle(work, tile, shared->triangles.list[i],
                           work->out.triangles + 3 * ((uint64_t)first + begin + i));
        }
        __syncthreads();
    }
}

/* The first n_picked thread blocks write vertices, the others triangles. */
static __global__ void __launch_bounds__(VXD_SURFACE_MAX_THREADS)
    write_kernel(const __grid_constant__ struct vxd_surface_work work)
{
    __shared__ union shared shared;
    uint32_t place = blockIdx.x;

    if (place < work.n_picked) {
        write_vertices(&work, place, &shared);
    } else {
        write_triangles(&work, place - work.n_picked, &shared);
    }
}

enum vxd_status vxd_surface_write_cuda(struct vxd_queue *queue,
                                       const struct vxd_surface_work *work,
                                       struct vxd_err *err)
{
    unsigned n_threads = (unsigned)(work->view.edge * work->view.edge);
    unsigned n_parts = work->out.triangles != NULL ? 2 : 1;
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    write_kernel<<<n_parts * work->n_picked, n_threads, 0, (cudaStream_t)queue->stream>>>(
        *work);
    VXD_TRY(vxd_cuda_launched(queue->context, "write_kernel", err));
out:
    return status;
}
