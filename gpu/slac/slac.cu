// SPDX-License-Identifier: Apache-2.0
/* SLAC on a GPU: a thread an item of a step. The places of a step's items are laid out so that
 * neighbouring threads read neighbouring points, which share cells of the grid; what a step of the
 * solver reads (24 bytes a point four times, 16 bytes a pair twice) stays in the second-level cache
 * for a living room. Vectors of unknowns are short, so one block of threads takes a whole step of
 * conjugate gradients, and no step waits for the host: once the solver is done its kernels return at
 * once.
 *
 * This file is compiled without fused multiply-adds. */
#include "gpu/core/core_cuda.h"
#include "gpu/slac/slac_internal.h"

#define N_THREADS 128

/* A step's function on its items; those of the solver do nothing once it is done. */
template <void (*ONE)(const struct vxd_slac_state *, size_t), bool IS_SOLVER>
static __global__ void __launch_bounds__(N_THREADS)
    step_kernel(const __grid_constant__ struct vxd_slac_state state, size_t n)
{
    size_t i = (size_t)blockIdx.x * N_THREADS + threadIdx.x;

    if (i < n && (!IS_SOLVER || state.work->is_done == 0)) {
        ONE(&state, i);
    }
}

template <void (*ONE)(const struct vxd_slac_state *, size_t), bool IS_SOLVER>
static void launch(cudaStream_t stream, const struct vxd_slac_state *state, size_t n)
{
    unsigned grid = (unsigned)((n + N_THREADS - 1) / N_THREADS);

    step_kernel<ONE, IS_SOLVER><<<grid, N_THREADS, 0, stream>>>(*state, n);
}

#define PLAIN_CASE(name)                                                                 \
    case VXD_SLAC_STEP_##name:                                                           \
        launch<vxd_slac_##name##_one, false>(stream, state, n);                          \
        break;
#define SOLVER_CASE(name)                                                                \
    case VXD_SLAC_STEP_##name:                                                           \
        launch<vxd_slac_##name##_one, true>(stream, state, n);                           \
        break;

enum vxd_status vxd_slac_run_cuda(struct vxd_queue *queue,
                                  const struct vxd_slac_state *state,
                                  enum vxd_slac_step_kind step, size_t n,
                                  struct vxd_err *err)
{
    cudaStream_t stream = (cudaStream_t)queue->stream;
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    switch (step) {
        VXD_SLAC_STEPS(PLAIN_CASE, SOLVER_CASE)
    default:
        break;
    }
    VXD_TRY(vxd_cuda_launched(queue->context, "step_kernel", err));
out:
    return status;
}

/* The sum of products over the block's threads; all of them get it. */
static __device__ double dot(const double *a, const double *b, size_t n, double *lanes)
{
    unsigned lane = threadIdx.x;
    double sum = 0;

    for (size_t i = lane; i < n; i += VXD_SLAC_LANES) {
        sum += a[i] * b[i];
    }
    lanes[lane] = sum;
    __syncthreads();
    for (unsigned half = VXD_SLAC_LANES / 2; half > 0; half /= 2) {
        if (lane < half) {
            lanes[lane] += lanes[lane + half];
        }
        __syncthreads();
    }
    sum = lanes[0];
    __syncthreads();
    return sum;
}

static __global__ void __launch_bounds__(VXD_SLAC_LANES)
    conjugate_kernel(const __grid_constant__ struct vxd_slac_state s, int is_first)
{
    __shared__ double lanes[VXD_SLAC_LANES];
    size_t n = s.n_unknowns;
    double old_rz = s.work->rz;
    double first_rz = s.work->first_rz;
    int is_done = s.work->is_done;
    double beta = 0;
    double rz;

    __syncthreads(); /* all have read the work before one writes it */
    if (is_done != 0) {
        return;
    }
    if (is_first != 0) {
        for (size_t i = threadIdx.x; i < n; i += VXD_SLAC_LANES) {
            s.x[i] = 0;
            s.p[i] = 0;
        }
    } else {
        double slope = dot(s.p, s.q, n, lanes);
        double alpha;

        if (!(slope > 0)) {
            if (threadIdx.x == 0) {
                s.work->is_done = 1;
            }
            return;
        }
        alpha = old_rz / slope;
        for (size_t i = threadIdx.x; i < n; i += VXD_SLAC_LANES) {
            s.x[i] += alpha * s.p[i];
            s.r[i] -= alpha * s.q[i];
        }
        if (threadIdx.x == 0) {
            s.work->n_steps++;
        }
    }
    __syncthreads();
    for (size_t i = threadIdx.x; i < n; i += VXD_SLAC_LANES) {
        s.z[i] = vxd_slac_precondition(&s, i);
    }
    __syncthreads();
    rz = dot(s.r, s.z, n, lanes);
    if (is_first != 0) {
        first_rz = rz;
    } else {
        beta = rz / old_rz;
    }
    if (threadIdx.x == 0) {
        s.work->first_rz = first_rz;
        s.work->rz = rz;
    }
    if (!(rz > s.tolerance2 * first_rz)) {
        if (threadIdx.x == 0) {
            s.work->is_done = 1;
        }
        return;
    }
    for (size_t i = threadIdx.x; i < n; i += VXD_SLAC_LANES) {
        s.p[i] = s.z[i] + beta * s.p[i];
    }
}

enum vxd_status vxd_slac_conjugate_cuda(struct vxd_queue *queue,
                                        const struct vxd_slac_state *state, int is_first,
                                        struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    conjugate_kernel<<<1, VXD_SLAC_LANES, 0, (cudaStream_t)queue->stream>>>(*state,
                                                                            is_first);
    VXD_TRY(vxd_cuda_launched(queue->context, "conjugate_kernel", err));
out:
    return status;
}
