// SPDX-License-Identifier: Apache-2.0
/* Transfers to an arena (transfer_put_cuda.h), and what roots have become. */
#define VXD_DAG_ANY_FORM

#include "gpu/svdag/collect/collect_put_cuda.h"

static __global__ void __launch_bounds__(VXD_DAG_CARRY_THREADS)
    read_kernel(const __grid_constant__ struct vxd_dag_carry_view carry,
                const uint32_t *roots, uint32_t *refs, uint32_t n)
{
    for (uint32_t i = blockIdx.x * VXD_DAG_CARRY_THREADS + threadIdx.x; i < n;
         i += gridDim.x * VXD_DAG_CARRY_THREADS) {
        refs[i] =
            vxd_dag_is_node(roots[i]) ? *vxd_dag_carry_slot(&carry, roots[i]) : roots[i];
    }
}

/* Launches ------------------------------------------------------------------------------ */

enum vxd_status vxd_dag_carry_put(struct vxd_queue *queue,
                                  const struct vxd_dag_carry_view *view,
                                  enum vxd_dag_kind kind, uint32_t begin, uint32_t n,
                                  struct vxd_err *err)
{
    typedef struct vxd_dag_arena_cuda store;

    return kind == VXD_DAG_BLOCK
               ? vxd_dag_carry_put_kind<store, VXD_DAG_BLOCK>(queue, view, begin, n, err)
           : kind == VXD_DAG_LEAF
               ? vxd_dag_carry_put_kind<store, VXD_DAG_LEAF>(queue, view, begin, n, err)
               : vxd_dag_carry_put_kind<store, VXD_DAG_INNER>(queue, view, begin, n, err);
}

enum vxd_status vxd_dag_carry_read(struct vxd_queue *queue,
                                   const struct vxd_dag_carry_view *view,
                                   const uint32_t *roots, uint32_t *refs, uint32_t n,
                                   struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    VXD_DAG_CARRY_LAUNCH(queue, vxd_dag_carry_blocks(queue, n), read_kernel, *view, roots,
                         refs, n);
out:
    return status;
}
