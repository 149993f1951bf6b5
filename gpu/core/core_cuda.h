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

#endif
