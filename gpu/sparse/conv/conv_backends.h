// SPDX-License-Identifier: Apache-2.0
/* The backends behind conv.h. The public entries check every argument; the backends
 * only compute. */
#ifndef VXD_GPU_SPARSE_CONV_CONV_BACKENDS_H
#define VXD_GPU_SPARSE_CONV_CONV_BACKENDS_H

#include "gpu/core/core_cpu.h"
#include "gpu/sparse/conv/conv.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The first two return the bytes of packed weights, 0 on overflow. The others pack
 * into out->data, which has that many bytes; the counts of out are filled in. The
 * source is read before the queue's next wait returns. */
size_t vxd_conv_weights_bytes_cpu(int n_taps, int n_in, int n_out,
                                  enum vxd_net_precision precision);
size_t vxd_conv_weights_bytes_cuda(int n_taps, int n_in, int n_out,
                                   enum vxd_net_precision precision);
enum vxd_status vxd_conv_weights_pack_cpu(struct vxd_queue *queue, const float *weights,
                                          const struct vxd_conv_weights *out,
                                          struct vxd_err *err);
enum vxd_status vxd_conv_weights_pack_cuda(struct vxd_queue *queue, const float *weights,
                                           const struct vxd_conv_weights *out,
                                           struct vxd_err *err);

/* args with the structs that its pointers name; args.map and args.weights are not
 * valid. has_map false: map is empty and row i reads row i. */
struct vxd_conv_call {
    struct vxd_conv_args args;
    bool has_map;
    struct vxd_kernel_map map;
    struct vxd_conv_weights weights;
};
enum vxd_status vxd_conv_run_cpu(struct vxd_queue *queue,
                                 const struct vxd_conv_call *call, struct vxd_err *err);
enum vxd_status vxd_conv_run_cuda(struct vxd_queue *queue,
                                  const struct vxd_conv_call *call, struct vxd_err *err);

#ifdef __cplusplus
}
#endif
#endif
