// SPDX-License-Identifier: Apache-2.0
#include "gpu/paper/paper.h"

#include "gpu/paper/slab_map_math.h"
#include "gpu/paper/slab_stores.h"

/* Builds without CUDA have the stores and the index of the CPU alone. */
#if defined(VXD_WITH_CUDA)
#define ON_BOTH(on_cpu, on_cuda)                                                         \
    {                                                                                    \
        &(on_cpu), &(on_cuda)                                                            \
    }
#else
#define ON_BOTH(on_cpu, on_cuda)                                                         \
    {                                                                                    \
        &(on_cpu), NULL                                                                  \
    }
#endif

const struct vxd_context_extras *vxd_paper_stores(void)
{
    static const struct vxd_svdag_stores stores = {
        {[VXD_SVDAG_ATOMIC64] = ON_BOTH(vxd_paper_slabs_cpu, vxd_paper_atomic64_cuda),
         [VXD_SVDAG_TICKET] = ON_BOTH(vxd_paper_slabs_cpu, vxd_paper_ticket_cuda),
         [VXD_SVDAG_ACCEL32] = ON_BOTH(vxd_paper_slabs_cpu, vxd_paper_accel32_cuda),
         [VXD_SVDAG_ACCEL8] = ON_BOTH(vxd_paper_slabs_cpu, vxd_paper_accel8_cuda)}};
    static const struct vxd_hash_indexes indexes = {
        {[VXD_HASH_SLAB] = ON_BOTH(vxd_paper_slab_map_cpu, vxd_paper_slab_map_cuda)}};
    static const struct vxd_context_extras extras = {&stores, &indexes};

    return &extras;
}
