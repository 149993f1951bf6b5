// SPDX-License-Identifier: Apache-2.0
/* Converts CUDA results to our status codes; for .cu files only. */
#ifndef VXD_GPU_CORE_CORE_CUDA_H
#define VXD_GPU_CORE_CORE_CUDA_H

#include <cuda_runtime.h>

#include "gpu/core/core_cpu.h"

/* Makes the context's device current on the calling thread. Every hook and launcher calls this
 * first, because threads come and go and another context may have used the thread.
 * errors  UNAVAILABLE  the context is lost */
enum vxd_status vxd_cuda_enter(struct vxd_context *context, struct vxd_err *err);

/* Converts a CUDA result: no memory is RESOURCE_EXHAUSTED, a device that does not
 * answer UNAVAILABLE, all else INTERNAL, with CUDA's message and the name of the call.
 * Clears the thread's last error; where that does not help, the device is lost and the
 * context is marked so. The caller must not hold the context's mutex. */
enum vxd_status vxd_cuda_status(struct vxd_context *context, cudaError_t result,
                                const char *call, struct vxd_err *err);

#define VXD_CUDA(context, call, err) vxd_cuda_status((context), (call), #call, (err))

/* Whether CUDA accepted the launch that was just made; `kernel` names it. */
static inline enum vxd_status vxd_cuda_launched(struct vxd_context *context,
                                                const char *kernel, struct vxd_err *err)
{
    return vxd_cuda_status(context, cudaGetLastError(), kernel, err);
}

#if defined(__CUDACC__)
/* A barrier over the blocks of a grid, all of which are resident (cudaLaunchCooperativeKernel), in
 * half the time of cooperative groups'. The word is 0 when they start and serves no other barrier;
 * thread 0 of each block counts in *passed, which starts as 0. What a block wrote before the barrier
 * the others see behind it. */
static __device__ __forceinline__ void vxd_blocks_wait(uint32_t *word, uint32_t *passed,
                                                       uint32_t n_blocks)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        uint32_t arrived;

        *passed += n_blocks;
        __threadfence();
        (void)atomicAdd(word, 1);
        do {
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                         : "=r"(arrived)
                         : "l"(__cvta_generic_to_global(word))
                         : "memory");
        } while (arrived < *passed);
    }
    __syncthreads();
}
#endif

#endif
