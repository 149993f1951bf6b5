// SPDX-License-Identifier: Apache-2.0
/* The backends behind kernel_map.h. The public entries check every argument; the
 * backends only compute. */
#ifndef VXD_GPU_SPARSE_KERNEL_MAP_KERNEL_MAP_BACKENDS_H
#define VXD_GPU_SPARSE_KERNEL_MAP_KERNEL_MAP_BACKENDS_H

#include "gpu/core/core_cpu.h"
#include "gpu/sparse/kernel_map/kernel_map.h"

#ifdef __cplusplus
extern "C" {
#endif

struct vxd_kernel_map_call {
    struct vxd_sparse_geometry geometry;
    struct vxd_coord_set in;
    struct vxd_coord_set out;
    struct vxd_kernel_map map;
    void *scratch;
    size_t scratch_bytes;
};

/* n_rows is a multiple of VXD_SPARSE_ROW_PAD here. */
size_t vxd_kernel_map_scratch_bytes_cpu(const struct vxd_queue *queue, int n_taps,
                                        size_t n_rows);
size_t vxd_kernel_map_scratch_bytes_cuda(const struct vxd_queue *queue, int n_taps,
                                         size_t n_rows);
/* Builds n maps, at most VXD_KERNEL_MAPS_AT_ONCE. */
#define VXD_KERNEL_MAPS_AT_ONCE 16
enum vxd_status vxd_kernel_maps_build_cpu(struct vxd_queue *queue,
                                          const struct vxd_kernel_map_call *calls, int n,
                                          struct vxd_err *err);
enum vxd_status vxd_kernel_maps_build_cuda(struct vxd_queue *queue,
                                           const struct vxd_kernel_map_call *calls, int n,
                                           struct vxd_err *err);

#ifdef __cplusplus
}
#endif
#endif
