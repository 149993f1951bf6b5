// SPDX-License-Identifier: Apache-2.0
/* A queue is an in-order list of work: a CUDA stream, or on the CPU a list of jobs
 * that the thread calling vxd_queue_wait runs with the help of the context's pool.
 * Operations append and return at once. One thread at a time uses a queue; different
 * queues of a context run independently of each other. */
#ifndef VXD_GPU_CORE_QUEUE_H
#define VXD_GPU_CORE_QUEUE_H

#include "gpu/core/context.h"

#ifdef __cplusplus
extern "C" {
#endif

struct vxd_queue;

/* errors  RESOURCE_EXHAUSTED, UNAVAILABLE (context lost)
 * owner   the caller; destroying waits for the queued work and drops its error */
enum vxd_status vxd_queue_create(struct vxd_context *context, struct vxd_queue **out,
                                 struct vxd_err *err);
void vxd_queue_destroy(struct vxd_queue *queue);

struct vxd_context *vxd_queue_context(const struct vxd_queue *queue);

/* Blocks until everything queued has run.
 *
 * errors  the status that the first faulting operation since the last wait reported through the
 *         queue's error word (its outputs, and those of later operations, must not be used);
 *         INTERNAL with the CUDA error, which marks the context lost if it is sticky;
 *         UNAVAILABLE once the context is lost: the queued work, except frees, may not have run.
 *         The error word is cleared, so the queue can be used again. */
enum vxd_status vxd_queue_wait(struct vxd_queue *queue, struct vxd_err *err);

/* Marks this place in the queue; vxd_queue_wait_mark blocks until what was queued before the last mark
 * has run, while what came later may go on (on the CPU it runs too). A vxd_queue_wait in between takes
 * the mark with it.
 *
 * errors  as vxd_queue_wait, of what has run so far */
enum vxd_status vxd_queue_mark(struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_queue_wait_mark(struct vxd_queue *queue, struct vxd_err *err);

/* Copies between any two of host, pinned and device memory, in queue order. A pageable
 * host source is read before the call returns on CUDA, but when the job runs on the
 * CPU, so it must stay valid until vxd_queue_wait. */
enum vxd_status vxd_queue_copy(struct vxd_queue *queue, void *to, const void *from,
                               size_t n_bytes, struct vxd_err *err);

/* Sets n_bytes at `to` (device memory) to `value`. */
enum vxd_status vxd_queue_fill(struct vxd_queue *queue, void *to, int value,
                               size_t n_bytes, struct vxd_err *err);

/* CPU only, for the _cpu.c of an operation: appends a job to the list, with a copy of its args
 * of at most VXD_JOB_BYTES. A job that returns a status other than VXD_OK stops the list, and
 * vxd_queue_wait returns that status.
 * errors  RESOURCE_EXHAUSTED  no memory for the list entry
 *         INTERNAL            n_bytes above VXD_JOB_BYTES, a mistake of the operation */
#define VXD_JOB_BYTES 4096
typedef enum vxd_status (*vxd_job_fn)(struct vxd_pool *pool, const void *args,
                                      struct vxd_err *err);
enum vxd_status vxd_queue_push(struct vxd_queue *queue, vxd_job_fn job, const void *args,
                               size_t n_bytes, struct vxd_err *err);

/* CUDA only, for the .cu of an operation: the cudaStream_t, and the device address of
 * the error word (one uint32, 0 = no fault; kernels set it by atomicCAS to an enum
 * vxd_status). */
void *vxd_queue_stream(const struct vxd_queue *queue);
uint32_t *vxd_queue_error_word(const struct vxd_queue *queue);

#ifdef __cplusplus
}
#endif
#endif
