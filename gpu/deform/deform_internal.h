// SPDX-License-Identifier: Apache-2.0
/* The grid behind the opaque name, and the functions of the backends. */
#ifndef VXD_GPU_DEFORM_DEFORM_INTERNAL_H
#define VXD_GPU_DEFORM_DEFORM_INTERNAL_H

#include "gpu/core/core_cpu.h"
#include "gpu/deform/deform.h"
#include "gpu/deform/deform_math.h"

#ifdef __cplusplus
extern "C" {
#endif

struct vxd_deform {
    struct vxd_deform_lattice lattice;
    size_t n_points;
    size_t n_slots;
    struct vxd_buffer table;   /* struct vxd_deform_slot, a power of two */
    struct vxd_buffer offsets; /* float32 x 3 an entry */
};

enum vxd_status vxd_deform_apply_cpu(struct vxd_queue *queue,
                                     const struct vxd_deform_call *call,
                                     struct vxd_err *err);
enum vxd_status vxd_deform_apply_cuda(struct vxd_queue *queue,
                                      const struct vxd_deform_call *call,
                                      struct vxd_err *err);

#ifdef __cplusplus
}
#endif
#endif
