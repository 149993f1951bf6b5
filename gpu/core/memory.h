// SPDX-License-Identifier: Apache-2.0
/* Memory of a context: pooled, counted against its byte budgets, never grown silently.
 *
 * DEVICE  GPU memory from the driver's stream-ordered pool; on the CPU ordinary memory
 * HOST    page-locked memory where the context is a GPU (copies between host and device run at
 *         full speed), ordinary memory on the CPU
 * All blocks are aligned to 256 bytes. Freed blocks are cached for reuse within the budget. Usage
 * counts whole blocks: up to a quarter more than was requested, or exactly what was requested
 * where a larger block would exceed the budget. */
#ifndef VXD_GPU_CORE_MEMORY_H
#define VXD_GPU_CORE_MEMORY_H

#include "gpu/core/queue.h"

#ifdef __cplusplus
extern "C" {
#endif

enum vxd_space {
    VXD_SPACE_DEVICE = 0,
    VXD_SPACE_HOST = 1
};

/* Zero-initialised means empty. ptr is NULL exactly when n_bytes is 0. */
struct vxd_buffer {
    void *ptr;
    size_t n_bytes; /* as requested */
    enum vxd_space space;
};

/* Allocates device memory in queue order: work that is queued later may use it at once on this
 * queue, or on any queue of the context after a vxd_queue_wait of this one. n_bytes 0 gives an
 * empty buffer.
 * errors  RESOURCE_EXHAUSTED  over the budget, or the device is full; names both sizes */
enum vxd_status vxd_device_alloc(struct vxd_queue *queue, size_t n_bytes,
                                 struct vxd_buffer *out, struct vxd_err *err);

/* Frees device memory once the work queued before has run; empties *buffer. The queue
 * may differ from the one that allocated it if that one was waited for. */
void vxd_device_free(struct vxd_queue *queue, struct vxd_buffer *buffer);

/* Allocates host memory, at once, from any thread.
 * errors  RESOURCE_EXHAUSTED  over the budget, or the machine is full */
enum vxd_status vxd_host_alloc(struct vxd_context *context, size_t n_bytes,
                               struct vxd_buffer *out, struct vxd_err *err);

/* Allocates memory of the machine that belongs to no context and no budget, in huge pages where there
 * are such and it is worth it; free frees it. NULL: so much is not left. */
void *vxd_machine_alloc(size_t n_bytes);

/* Frees host memory at once: no queued work may still use it. Empties *buffer. */
void vxd_host_free(struct vxd_context *context, struct vxd_buffer *buffer);

/* Makes host bytes readable by the device. On CUDA allocates *device and queues the
 * copy; on the CPU *device stays empty and *out = host, without a copy. host must stay
 * valid until the queue was waited for and the device memory freed. */
enum vxd_status vxd_upload(struct vxd_queue *queue, const void *host, size_t n_bytes,
                           struct vxd_buffer *device, const void **out,
                           struct vxd_err *err);

/* Makes n_bytes at `device` readable by the host after the next vxd_queue_wait. On CUDA
 * allocates *host and queues the copy; on the CPU *host stays empty and *out = device. */
enum vxd_status vxd_download(struct vxd_queue *queue, const void *device, size_t n_bytes,
                             struct vxd_buffer *host, const void **out,
                             struct vxd_err *err);

/* Lays out several arrays in one scratch block: start at 0; each call returns the
 * offset of the next array (256-aligned) and advances. False on overflow, which leaves
 * *total_bytes unchanged. */
bool vxd_layout_add(size_t *total_bytes, size_t n_items, size_t item_bytes,
                    size_t *offset);

#ifdef __cplusplus
}
#endif
#endif
