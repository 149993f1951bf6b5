// SPDX-License-Identifier: Apache-2.0
/* The kernels of queries for stores that keep each item in one piece, as the arena
 * does. */
#include "gpu/svdag/query/changed_cuda.h"
#include "gpu/svdag/query/nearest_cuda.h"
#include "gpu/svdag/query/ray_cuda.h"
#include "gpu/svdag/query/region_cuda.h"
#include "gpu/svdag/query/values_cuda.h"

enum vxd_status vxd_svdag_values_cuda(struct vxd_queue *queue,
                                      const struct vxd_svdag_values_call *call,
                                      struct vxd_err *err)
{
    return vxd_svdag_values_launch<false>(queue, call, err);
}

enum vxd_status vxd_svdag_changed_cuda(struct vxd_queue *queue,
                                       const struct vxd_svdag_changed_call *call,
                                       struct vxd_err *err)
{
    return vxd_svdag_changed_launch<false>(queue, call, err);
}

enum vxd_status vxd_svdag_cast_rays_cuda(struct vxd_queue *queue,
                                         const struct vxd_svdag_rays_call *call,
                                         struct vxd_err *err)
{
    return vxd_svdag_cast_rays_launch<false>(queue, call, err);
}

enum vxd_status vxd_svdag_nearest_cuda(struct vxd_queue *queue,
                                       const struct vxd_svdag_nearest_call *call,
                                       struct vxd_err *err)
{
    return vxd_svdag_nearest_launch<false>(queue, call, err);
}

enum vxd_status vxd_svdag_overlap_cuda(struct vxd_queue *queue,
                                       const struct vxd_svdag_regions_call *call,
                                       struct vxd_err *err)
{
    return vxd_svdag_overlap_launch<false>(queue, call, err);
}

enum vxd_status vxd_svdag_count_cuda(struct vxd_queue *queue,
                                     const struct vxd_svdag_regions_call *call,
                                     struct vxd_err *err)
{
    return vxd_svdag_count_launch<false>(queue, call, err);
}
