// SPDX-License-Identifier: Apache-2.0
/* The backends behind cloud.h and voxelize.h. The public entries check every argument,
 * derive the lattice and allocate the scratch; the backends only compute. */
#ifndef VXD_GPU_VOXEL_VOXEL_BACKENDS_H
#define VXD_GPU_VOXEL_VOXEL_BACKENDS_H

#include "gpu/voxel/cloud_math.h"
#include "gpu/voxel/voxelize_math.h"

#ifdef __cplusplus
extern "C" {
#endif

enum vxd_status vxd_cloud_decode_cpu(struct vxd_queue *queue,
                                     const struct vxd_cloud *cloud, float *positions,
                                     float *features, struct vxd_err *err);
enum vxd_status vxd_cloud_decode_cuda(struct vxd_queue *queue,
                                      const struct vxd_cloud *cloud, float *positions,
                                      float *features, struct vxd_err *err);

/* Leaves a body's points out of positions; call->own is there. */
enum vxd_status vxd_cloud_leave_out_cpu(struct vxd_queue *queue,
                                        const struct vxd_cloud_body_call *call,
                                        struct vxd_err *err);
enum vxd_status vxd_cloud_leave_out_cuda(struct vxd_queue *queue,
                                         const struct vxd_cloud_body_call *call,
                                         struct vxd_err *err);

/* Derives the lattice of a call (host code).
 * errors  INVALID_ARGUMENT  size_m, range */
enum vxd_status vxd_voxel_lattice_init(const struct vxd_voxelize_args *args,
                                       struct vxd_voxel_lattice *out,
                                       struct vxd_err *err);

/* Bits to hold a value; 0 for 0. */
static inline int vxd_bits_of(uint32_t value)
{
    return value == 0 ? 0 : 32 - __builtin_clz(value);
}

/* Everything a backend needs. batch_starts is already in device memory. */
struct vxd_voxelize_call {
    struct vxd_voxelize_args args;
    struct vxd_voxel_lattice lattice;
    struct vxd_voxels out;
    const uint32_t *batch_starts; /* n_batch + 1, device memory */
    void *scratch;
    size_t scratch_bytes;
};

size_t vxd_voxelize_scratch_bytes_cpu(const struct vxd_queue *queue,
                                      const struct vxd_voxelize_args *args,
                                      const struct vxd_voxel_lattice *lattice);
size_t vxd_voxelize_scratch_bytes_cuda(const struct vxd_queue *queue,
                                       const struct vxd_voxelize_args *args,
                                       const struct vxd_voxel_lattice *lattice);
enum vxd_status vxd_voxelize_cpu(struct vxd_queue *queue,
                                 const struct vxd_voxelize_call *call,
                                 struct vxd_err *err);
enum vxd_status vxd_voxelize_cuda(struct vxd_queue *queue,
                                  const struct vxd_voxelize_call *call,
                                  struct vxd_err *err);

#ifdef __cplusplus
}
#endif
#endif
