// SPDX-License-Identifier: Apache-2.0
/* From CUDA results to our status codes; for .cu files only. */
#ifndef VXD_GPU_CORE_CORE_CUDA_H
#define VXD_GPU_CORE_CORE_CUDA_H

#include <cuda_runtime.h>

#include "gpu/core/core_cpu.h"

/* Makes the context's device current on the calling thread; every hook and launcher does
 * so first, because threads come and go and another context may have used this one.
 * errors  UNAVAILABLE  the context is lost */
enum vxd_status vxd_cuda_enter(struct vxd_context *context, struct vxd_err *err);

/* What a CUDA result means: no memory is RESOURCE_EXHAUSTED, a device that does not
 * answer UNAVAILABLE, all else INTERNAL with CUDA's own words and the call's name. Clears
 * the thread's last error; where that does not help, the device is lost and the context
 * marked so. The context's mutex must not be held. */
enum vxd_status vxd_cuda_status(struct vxd_context *context, cudaError_t result,
                                const char *call, struct vxd_err *err);

#define VXD_CUDA(context, call, err) vxd_cuda_status((context), (call), #call, (err))

/* Whether the launch just made was accepted; `kernel` names it. */
static inline enum vxd_status vxd_cuda_launched(struct vxd_context *context,
                                                const char *kernel, struct vxd_err *err)
{
    return vxd_cuda_status(context, cudaGetLastError(), kernel, err);
}

#endif
