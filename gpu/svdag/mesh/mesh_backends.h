// SPDX-License-Identifier: Apache-2.0
/* The two steps of a call on either backend. Included as C11 and as CUDA C++. */
#ifndef VXD_GPU_SVDAG_MESH_MESH_BACKENDS_H
#define VXD_GPU_SVDAG_MESH_MESH_BACKENDS_H

#include "gpu/svdag/mesh/mesh_math.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Counts the voxels of each row into work->counts. */
enum vxd_status vxd_svdag_mesh_count_cpu(struct vxd_queue *queue,
                                         const struct vxd_svdag_mesh_work *work,
                                         struct vxd_err *err);
enum vxd_status vxd_svdag_mesh_count_cuda(struct vxd_queue *queue,
                                          const struct vxd_svdag_mesh_work *work,
                                          struct vxd_err *err);

/* Writes the voxels, and values, of each row from the place in work->counts on, which by now has
 * the sums of the counts before. */
enum vxd_status vxd_svdag_mesh_write_cpu(struct vxd_queue *queue,
                                         const struct vxd_svdag_mesh_work *work,
                                         struct vxd_err *err);
enum vxd_status vxd_svdag_mesh_write_cuda(struct vxd_queue *queue,
                                          const struct vxd_svdag_mesh_work *work,
                                          struct vxd_err *err);

#ifdef __cplusplus
}
#endif
#endif
