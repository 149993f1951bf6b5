// SPDX-License-Identifier: Apache-2.0
/* Collections into an arena (collect_cuda.h), and the new references of roots. */
#define VXD_SVDAG_ANY_FORM

#include "gpu/svdag/collect/collect_cuda.h"

static __global__ void __launch_bounds__(VXD_SVDAG_COLLECT_THREADS)
    read_kernel(const __grid_constant__ struct vxd_svdag_collect_view collection,
                const uint32_t *roots, uint32_t *refs, uint32_t n)
{
    for (uint32_t i = blockIdx.x * VXD_SVDAG_COLLECT_THREADS + threadIdx.x; i < n;
         i += gridDim.x * VXD_SVDAG_COLLECT_THREADS) {
        refs[i] = vxd_svdag_is_node(roots[i])
                      ? *vxd_svdag_collect_device_slot(&collection, roots[i])
                      : roots[i];
    }
}

/* Launches ------------------------------------------------------------------------------ */

enum vxd_status vxd_svdag_collect_device_put(struct vxd_queue *queue,
                                             const struct vxd_svdag_collect_view *view,
                                             enum vxd_svdag_kind kind, uint32_t begin,
                                             uint32_t n, struct vxd_err *err)
{
    typedef struct vxd_svdag_arena_cuda store;

    return kind == VXD_SVDAG_BLOCK
               ? vxd_svdag_collect_device_put_kind<store, VXD_SVDAG_BLOCK>(queue, view,
                                                                           begin, n, err)
           : kind == VXD_SVDAG_LEAF
               ? vxd_svdag_collect_device_put_kind<store, VXD_SVDAG_LEAF>(queue, view,
                                                                          begin, n, err)
               : vxd_svdag_collect_device_put_kind<store, VXD_SVDAG_INNER>(queue, view,
                                                                           begin, n, err);
}

enum vxd_status vxd_svdag_collect_device_read(struct vxd_queue *queue,
                                              const struct vxd_svdag_collect_view *view,
                                              const uint32_t *roots, uint32_t *refs,
                                              uint32_t n, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    VXD_SVDAG_COLLECT_LAUNCH(queue, vxd_svdag_collect_device_blocks(queue, n),
                             read_kernel, *view, roots, refs, n);
out:
    return status;
}
