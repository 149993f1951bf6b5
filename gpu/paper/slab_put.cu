// SPDX-License-Identifier: Apache-2.0
/* Collections into slab stores (collect_cuda.h). */
#define VXD_SVDAG_ANY_FORM

#include "gpu/svdag/collect/collect_cuda.h"
#include "gpu/paper/slab_store_cuda.h"

/* Slabs have no blocks. */
template <enum vxd_svdag_store STORE>
static enum vxd_status
put_in_slabs(struct vxd_queue *queue, const struct vxd_svdag_collect_view *view,
             enum vxd_svdag_kind kind, uint32_t begin, uint32_t n, struct vxd_err *err)
{
    typedef struct vxd_svdag_slabs_cuda<STORE> store;

    return kind == VXD_SVDAG_LEAF
               ? vxd_svdag_collect_device_put_kind<store, VXD_SVDAG_LEAF>(queue, view,
                                                                          begin, n, err)
               : vxd_svdag_collect_device_put_kind<store, VXD_SVDAG_INNER>(queue, view,
                                                                           begin, n, err);
}

enum vxd_status vxd_svdag_collect_device_put_atomic64(
    struct vxd_queue *queue, const struct vxd_svdag_collect_view *view,
    enum vxd_svdag_kind kind, uint32_t begin, uint32_t n, struct vxd_err *err)
{
    return put_in_slabs<VXD_SVDAG_ATOMIC64>(queue, view, kind, begin, n, err);
}

enum vxd_status vxd_svdag_collect_device_put_ticket(
    struct vxd_queue *queue, const struct vxd_svdag_collect_view *view,
    enum vxd_svdag_kind kind, uint32_t begin, uint32_t n, struct vxd_err *err)
{
    return put_in_slabs<VXD_SVDAG_TICKET>(queue, view, kind, begin, n, err);
}

enum vxd_status vxd_svdag_collect_device_put_accel32(
    struct vxd_queue *queue, const struct vxd_svdag_collect_view *view,
    enum vxd_svdag_kind kind, uint32_t begin, uint32_t n, struct vxd_err *err)
{
    return put_in_slabs<VXD_SVDAG_ACCEL32>(queue, view, kind, begin, n, err);
}

enum vxd_status vxd_svdag_collect_device_put_accel8(
    struct vxd_queue *queue, const struct vxd_svdag_collect_view *view,
    enum vxd_svdag_kind kind, uint32_t begin, uint32_t n, struct vxd_err *err)
{
    return put_in_slabs<VXD_SVDAG_ACCEL8>(queue, view, kind, begin, n, err);
}
