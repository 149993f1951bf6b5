// SPDX-License-Identifier: Apache-2.0
/* All that an extraction has to know before it can be written, in one launch: which blocks are picked,
 * what they have, and the sums. A step begins when all thread blocks have ended the one before; between
 * two launches or at a count that the host waits for, a small surface would wait longer than it works.
 *
 * Each thread block has a stretch of the volume's entries, later one of the picked blocks. It sums its own,
 * and the sums of those before it are added where it needs to know where it begins. */
#include "gpu/surface/surface_cuda.h"

#define N_THREADS VXD_SURFACE_MAX_THREADS
#define BLOCKS_A_MULTIPROCESSOR 4

/* What is summed. */
enum {
    OBSERVED,
    PICKED,
    VERTICES,
    TRIANGLES,
    CHOSEN
};

struct shared {
    struct vxd_surface_tile tiles[N_THREADS / 64];
    uint32_t warps[N_THREADS / 32];
    uint32_t passed;
};

/* The sum of n over the thread block's threads before this one; *total over all. */
static __device__ __forceinline__ uint32_t sum_before(struct shared *shared, uint32_t n,
                                                      uint32_t *total)
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
        shared->warps[warp] = sum;
    }
    __syncthreads();
    *total = 0;
    for (uint32_t w = 0; w < N_THREADS / 32; w++) {
        before += w < warp ? shared->warps[w] : 0;
        *total += shared->warps[w];
    }
    __syncthreads();
    return before + sum - n;
}

/* The sum of a kind over the thread blocks before number `end`, by all threads. */
static __device__ __forceinline__ uint32_t sum_of_blocks(
    const struct vxd_surface_plan *plan, int kind, uint32_t end, struct shared *shared)
{
    uint32_t n = 0;
    uint32_t total;

    for (uint32_t i = threadIdx.x; i < end; i += N_THREADS) {
        n += ((volatile uint32_t *)plan->sums)[(size_t)kind * gridDim.x + i];
    }
    (void)sum_before(shared, n, &total);
    return total;
}

static __device__ __forceinline__ void keep_sum(const struct vxd_surface_plan *plan,
                                                int kind, uint32_t sum)
{
    if (threadIdx.x == 0) {
        plan->sums[(size_t)kind * gridDim.x + blockIdx.x] = sum;
    }
}

static __device__ __forceinline__ void wait(const struct vxd_surface_plan *plan,
                                            struct shared *shared)
{
    vxd_blocks_wait(plan->arrived, &shared->passed, gridDim.x);
}

/* A stretch of n items, of which this thread block has [begin, end). */
static __device__ __forceinline__ void take_stretch(uint32_t n, uint32_t *begin,
                                                    uint32_t *end)
{
    uint32_t each = (n + gridDim.x - 1) / gridDim.x;

    *begin = blockIdx.x * each < n ? blockIdx.x * each : n;
    *end = n - *begin < each ? n : *begin + each;
}

/* Which blocks are chosen. Where only some of the observed ones may be, they are numbered. */
static __device__ __forceinline__ void choose(const struct vxd_surface_plan *plan,
                                              uint32_t begin, uint32_t end,
                                              struct shared *shared)
{
    const struct vxd_surface_work *work = &plan->work;
    bool is_numbered = work->begin > 0 || work->end < UINT32_MAX;
    uint32_t n = 0;
    uint32_t total;

    for (uint32_t i = begin + threadIdx.x; i < end; i += N_THREADS) {
        n += work->view.stamps[i] > 0 ? 1 : 0;
    }
    (void)sum_before(shared, n, &total);
    keep_sum(plan, OBSERVED, total);
    n = 0;
    if (is_numbered) {
        wait(plan, shared);
        n = sum_of_blocks(plan, OBSERVED, blockIdx.x, shared);
    }
    for (uint32_t i = begin; i < end; i += N_THREADS) { /* of all threads */
        uint32_t entry = i + threadIdx.x;
        bool is_observed = entry < end && work->view.stamps[entry] > 0;
        uint32_t number =
            is_numbered ? n + sum_before(shared, is_observed ? 1 : 0, &total) : 0;

        n += is_numbered ? total : 0;
        if (entry < end) {
            work->places[entry] = -1;
            work->is_chosen[entry] = is_observed
                                         ? (uint8_t)vxd_surface_is_asked(
                                               work, number, (int32_t)entry,
                                               work->neighbours + 27 * (uint64_t)entry)
                                         : 0;
        }
    }
}

static __device__ __forceinline__ bool is_picked(const struct vxd_surface_work *work,
                                                 uint32_t entry)
{
    return work->view.stamps[entry] > 0 &&
           vxd_surface_is_picked(work, work->neighbours + 27 * (uint64_t)entry) != 0;
}

/* Lists the picked blocks by ascending entry, and returns how many there are. */
static __device__ __forceinline__ uint32_t pick(const struct vxd_surface_plan *plan,
                                                uint32_t begin, uint32_t end,
                                                struct shared *shared)
{
    const struct vxd_surface_work *work = &plan->work;
    uint32_t n = 0;
    uint32_t total;

    for (uint32_t i = begin + threadIdx.x; i < end; i += N_THREADS) {
        n += is_picked(work, i) ? 1 : 0;
    }
    (void)sum_before(shared, n, &total);
    keep_sum(plan, PICKED, total);
    wait(plan, shared);
    n = sum_of_blocks(plan, PICKED, blockIdx.x, shared);
    for (uint32_t i = begin; i < end; i += N_THREADS) { /* of all threads */
        uint32_t entry = i + threadIdx.x;
        bool is = entry < end && is_picked(work, entry);
        uint32_t place = n + sum_before(shared, is ? 1 : 0, &total);

        n += total;
        if (is) {
            work->list[place] = entry;
            work->places[entry] = (int32_t)place;
        }
    }
    wait(plan, shared);
    return sum_of_blocks(plan, PICKED, gridDim.x, shared);
}

/* Counts what the picked blocks [begin, end) have, and sums it over them. */
template <int EDGE>
static __device__ __forceinline__ void count(const struct vxd_surface_plan *plan,
                                             uint32_t begin, uint32_t end,
                                             struct shared *shared)
{
    const struct vxd_surface_work *work = &plan->work;
    const uint32_t n_threads = EDGE * EDGE;
    const uint32_t n_groups = N_THREADS / n_threads;
    uint32_t group = threadIdx.x / n_threads;
    uint32_t thread = threadIdx.x % n_threads;
    struct vxd_surface_sums all = {0, 0, 0};
    uint32_t total;

    for (uint32_t i = begin; i < end; i += n_groups) { /* of all threads */
        bool is = i + group < end;
        uint32_t place = is ? i + group : begin;
        struct vxd_surface_sums sums = vxd_surface_count_block(
            work, place, thread, n_threads, is, &shared->tiles[group]);

        if (is && thread == 0) {
            work->vertices[place] = sums.vertices;
            work->triangles[place] = sums.triangles;
            work->chosen[place] = sums.chosen;
            all.vertices += sums.vertices;
            all.triangles += sums.triangles;
            all.chosen += sums.chosen;
        }
    }
    (void)sum_before(shared, all.vertices, &total);
    keep_sum(plan, VERTICES, total);
    (void)sum_before(shared, all.triangles, &total);
    keep_sum(plan, TRIANGLES, total);
    (void)sum_before(shared, all.chosen, &total);
    keep_sum(plan, CHOSEN, total);
}

/* Makes the counts of [begin, end), of n, where their blocks begin; item n is the total. */
static __device__ __forceinline__ uint32_t place(const struct vxd_surface_plan *plan,
                                                 int kind, uint32_t *counts,
                                                 uint32_t begin, uint32_t end, uint32_t n,
                                                 struct shared *shared)
{
    uint32_t at = sum_of_blocks(plan, kind, blockIdx.x, shared);
    uint32_t total;

    for (uint32_t i = begin; i < end; i += N_THREADS) { /* of all threads */
        uint32_t own = i + threadIdx.x;
        uint32_t count = own < end ? counts[own] : 0;
        uint32_t before = at + sum_before(shared, count, &total);

        at += total;
        if (own < end) {
            counts[own] = before;
        }
    }
    if (blockIdx.x == gridDim.x - 1 && threadIdx.x == 0) {
        counts[n] = at;
    }
    return at;
}

template <int EDGE>
static __global__ void __launch_bounds__(N_THREADS, BLOCKS_A_MULTIPROCESSOR)
    plan_kernel(const __grid_constant__ struct vxd_surface_plan plan)
{
    __shared__ struct shared shared;
    const struct vxd_surface_work *work = &plan.work;
    uint32_t begin;
    uint32_t end;
    uint32_t n;
    uint32_t totals[3];

    if (threadIdx.x == 0) {
        shared.passed = 0;
    }
    take_stretch(work->view.capacity, &begin, &end);
    choose(&plan, begin, end, &shared);
    wait(&plan, &shared);
    n = pick(&plan, begin, end, &shared);
    take_stretch(n, &begin, &end);
    count<EDGE>(&plan, begin, end, &shared);
    wait(&plan, &shared);
    totals[0] = place(&plan, VERTICES, work->vertices, begin, end, n, &shared);
    totals[1] = place(&plan, TRIANGLES, work->triangles, begin, end, n, &shared);
    totals[2] = place(&plan, CHOSEN, work->chosen, begin, end, n, &shared);
    if (blockIdx.x == gridDim.x - 1) { /* whose sums are those of all */
        uint32_t n_observed = sum_of_blocks(&plan, OBSERVED, gridDim.x, &shared);

        if (threadIdx.x == 0) {
            plan.report->n_observed = n_observed;
            plan.report->n_picked = n;
            plan.report->n_vertices = totals[0];
            plan.report->n_triangles = totals[1];
            plan.report->n_chosen = totals[2];
        }
    }
}

/* As many thread blocks as there is work for, of those that can run at once. */
static enum vxd_status grid_of(struct vxd_queue *queue,
                               const struct vxd_surface_plan *plan, const void *kernel,
                               unsigned *out, struct vxd_err *err)
{
    size_t most = (size_t)queue->context->info.n_multiprocessors;
    size_t groups = (size_t)(N_THREADS / (plan->work.view.edge * plan->work.view.edge));
    size_t for_entries = (plan->work.view.capacity + N_THREADS - 1) / N_THREADS;
    size_t n = (plan->n_blocks + groups - 1) / groups;
    int n_resident = 1;
    enum vxd_status status = VXD_OK;

    n = n > for_entries ? n : for_entries;
    if (n > most) {
        VXD_TRY(VXD_CUDA(queue->context,
                         cudaOccupancyMaxActiveBlocksPerMultiprocessor(
                             &n_resident, kernel, N_THREADS, 0),
                         err));
        most *= (size_t)n_resident;
    }
    n = n < most ? n : most;
    n = n < VXD_SURFACE_PLAN_GRID ? n : VXD_SURFACE_PLAN_GRID;
    *out = (unsigned)(n > 0 ? n : 1);
out:
    return status;
}

enum vxd_status vxd_surface_plan_cuda(struct vxd_queue *queue,
                                      const struct vxd_surface_plan *plan,
                                      struct vxd_err *err)
{
    const void *kernel = plan->work.view.edge == 8 ? (const void *)plan_kernel<8>
                                                   : (const void *)plan_kernel<16>;
    void *args[1] = {(void *)plan};
    unsigned grid;
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    VXD_TRY(grid_of(queue, plan, kernel, &grid, err));
    VXD_TRY(VXD_CUDA(queue->context,
                     cudaMemsetAsync(plan->arrived, 0, sizeof *plan->arrived,
                                     (cudaStream_t)queue->stream),
                     err));
    VXD_TRY(
        vxd_cuda_status(queue->context,
                        cudaLaunchCooperativeKernel(kernel, dim3(grid), dim3(N_THREADS),
                                                    args, 0, (cudaStream_t)queue->stream),
                        "plan_kernel", err));
out:
    return status;
}
