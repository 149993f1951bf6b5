// SPDX-License-Identifier: Apache-2.0
/* Transfers to slab stores (transfer_put_cuda.h). */
#define VXD_DAG_ANY_FORM

#include "gpu/svdag/collect/collect_cuda.h"
#include "gpu/paper/slab_store_cuda.h"

/* Slabs have no blocks. */
template <enum vxd_dag_store STORE>
static enum vxd_status
put_in_slabs(struct vxd_queue *queue, const struct vxd_dag_carry_view *view,
             enum vxd_dag_kind kind, uint32_t begin, uint32_t n, struct vxd_err *err)
{
    typedef struct vxd_dag_slabs_cuda<STORE> store;

    return kind == VXD_DAG_LEAF
               ? vxd_dag_carry_put_kind<store, VXD_DAG_LEAF>(queue, view, begin, n, err)
               : vxd_dag_carry_put_kind<store, VXD_DAG_INNER>(queue, view, begin, n, err);
}

enum vxd_status vxd_dag_carry_put_atomic64(struct vxd_queue *queue,
                                           const struct vxd_dag_carry_view *view,
                                           enum vxd_dag_kind kind, uint32_t begin,
                                           uint32_t n, struct vxd_err *err)
{
    return put_in_slabs<VXD_DAG_ATOMIC64>(queue, view, kind, begin, n, err);
}

enum vxd_status vxd_dag_carry_put_ticket(struct vxd_queue *queue,
                                         const struct vxd_dag_carry_view *view,
                                         enum vxd_dag_kind kind, uint32_t begin,
                                         uint32_t n, struct vxd_err *err)
{
    return put_in_slabs<VXD_DAG_TICKET>(queue, view, kind, begin, n, err);
}

enum vxd_status vxd_dag_carry_put_accel32(struct vxd_queue *queue,
                                          const struct vxd_dag_carry_view *view,
                                          enum vxd_dag_kind kind, uint32_t begin,
                                          uint32_t n, struct vxd_err *err)
{
    return put_in_slabs<VXD_DAG_ACCEL32>(queue, view, kind, begin, n, err);
}

enum vxd_status vxd_dag_carry_put_accel8(struct vxd_queue *queue,
                                         const struct vxd_dag_carry_view *view,
                                         enum vxd_dag_kind kind, uint32_t begin,
                                         uint32_t n, struct vxd_err *err)
{
    return put_in_slabs<VXD_DAG_ACCEL8>(queue, view, kind, begin, n, err);
}
