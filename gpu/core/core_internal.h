// SPDX-License-Identifier: Apache-2.0
/* What the files of gpu/core share among themselves: the structs behind the opaque names
 * and the hooks by which context.c, queue.c and memory.c reach the CUDA runtime. */
#ifndef VXD_GPU_CORE_CORE_INTERNAL_H
#define VXD_GPU_CORE_CORE_INTERNAL_H

#include <pthread.h>

#include "gpu/core/memory.h"
#include "gpu/core/parallel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* True where the context is a GPU. A constant in builds without CUDA, so that the calls
 * of hooks that are not there fall away. */
#if defined(VXD_WITH_CUDA)
#define VXD_ON_CUDA(context) ((context)->backend == VXD_BACKEND_CUDA)
#else
#define VXD_ON_CUDA(context) 0
#endif

/* name_cpu or name_cuda, as the queue's backend is. */
#if defined(VXD_WITH_CUDA)
#define VXD_BACKEND_FN(queue, name)                                                      \
    (VXD_ON_CUDA((queue)->context) ? name##_cuda : name##_cpu)
#else
#define VXD_BACKEND_FN(queue, name) ((void)(queue), name##_cpu)
#endif

/* An entry of a CPU queue. Pushed jobs lie in one block with their arguments, which the
 * queue frees; a release job gives a block back, lives in that block's record, and runs
 * after a fault too. */
struct vxd_job {
    struct vxd_job *next;
    vxd_job_fn run;
    void *args;
    bool is_release;
};

/* Freed blocks kept for reuse; see block_cache.h. */
struct vxd_block_cache;

struct vxd_context {
    enum vxd_backend backend;
    int device;
    struct vxd_pool *pool;
    struct vxd_context_info info;
    struct vxd_context_extras extras;
    pthread_mutex_t mutex; /* guards usage, caches and lost */
    struct vxd_memory_usage usage;
    struct vxd_block_cache *host_cache;
    struct vxd_block_cache *device_cache; /* CPU only; CUDA uses the driver's pool */
    bool lost;
    void *cuda_pool; /* cudaMemPool_t, CUDA only */
};

struct vxd_queue {
    struct vxd_context *context;
    struct vxd_job *first; /* CPU: jobs not yet run, in order */
    struct vxd_job *last;
    void *stream;           /* CUDA: cudaStream_t */
    void *event;            /* CUDA: cudaEvent_t that waits sleep on */
    uint32_t *error_word;   /* CUDA: device address of a word in mapped pinned memory */
    uint32_t *h_error_word; /* CUDA: the same word for the host */
};

/* Appends a job whose memory the caller keeps until it has run (a release job). */
void vxd_queue_append(struct vxd_queue *queue, struct vxd_job *job);

/* CUDA runtime hooks, in cuda.cu; called only when context->backend is CUDA, which is
 * possible only in a build with VXD_WITH_CUDA. Each returns a status and fills err; each
 * detects sticky errors and then calls vxd_context_mark_lost, which takes the context's
 * mutex: none is called with it held. They make the context's
 * device current on the calling thread themselves. */
int vxd_cuda_count(char *why, size_t why_bytes);
/* Fills info (name, multiprocessors, capability, total bytes), creates cuda_pool with the
 * release threshold at the device budget (which it defaults when 0). */
enum vxd_status vxd_cuda_context_init(struct vxd_context *context, struct vxd_err *err);
void vxd_cuda_context_free(struct vxd_context *context);
enum vxd_status vxd_cuda_queue_init(struct vxd_queue *queue, struct vxd_err *err);
void vxd_cuda_queue_free(struct vxd_queue *queue);
/* Waits (polls for at most 0.2 ms, then sleeps) and turns the error word to a status. */
enum vxd_status vxd_cuda_queue_wait(struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_cuda_copy(struct vxd_queue *queue, void *to, const void *from,
                              size_t n_bytes, struct vxd_err *err);
enum vxd_status vxd_cuda_fill(struct vxd_queue *queue, void *to, int value,
                              size_t n_bytes, struct vxd_err *err);
/* memory.c has checked the budget and counts the bytes; the hooks only allocate. */
enum vxd_status vxd_cuda_device_alloc(struct vxd_queue *queue, size_t n_bytes, void **out,
                                      struct vxd_err *err);
void vxd_cuda_device_free(struct vxd_queue *queue, void *ptr);
/* Page-locked memory; called by the host cache on a miss, from any thread. */
enum vxd_status vxd_cuda_host_alloc(struct vxd_context *context, size_t n_bytes,
                                    void **out, struct vxd_err *err);
void vxd_cuda_host_free(struct vxd_context *context, void *ptr);

/* The loops behind vxd_sort_pairs_cpu and vxd_scan_exclusive_cpu, for jobs that sort or
 * scan as one of their steps. The sorted pairs end in keys/values, or in tmp_keys and
 * tmp_values when the result is true: spares operations the copy back. */
bool vxd_sort_pairs_run(struct vxd_pool *pool, uint64_t *keys, uint32_t *values,
                        uint64_t *tmp_keys, uint32_t *tmp_values, size_t n, int begin_bit,
                        int end_bit, void *scratch);
void vxd_scan_exclusive_run(struct vxd_pool *pool, const uint32_t *in, uint32_t *out,
                            size_t n, void *scratch);

/* CPU and CUDA twins of sort.h and scan.h; arguments already checked. */
size_t vxd_sort_pairs_scratch_bytes_cpu(int n_threads, size_t n);
size_t vxd_sort_pairs_scratch_bytes_cuda(size_t n);
enum vxd_status vxd_sort_pairs_cpu(struct vxd_queue *queue, uint64_t *keys,
                                   uint32_t *values, uint64_t *tmp_keys,
                                   uint32_t *tmp_values, size_t n, int begin_bit,
                                   int end_bit, void *scratch, struct vxd_err *err);
enum vxd_status vxd_sort_pairs_cuda(struct vxd_queue *queue, uint64_t *keys,
                                    uint32_t *values, uint64_t *tmp_keys,
                                    uint32_t *tmp_values, size_t n, int begin_bit,
                                    int end_bit, void *scratch, size_t scratch_bytes,
                                    struct vxd_err *err);
size_t vxd_scan_scratch_bytes_cpu(int n_threads, size_t n);
size_t vxd_scan_scratch_bytes_cuda(size_t n);
enum vxd_status vxd_scan_exclusive_cpu(struct vxd_queue *queue, const uint32_t *in,
                                       uint32_t *out, size_t n, void *scratch,
                                       struct vxd_err *err);
enum vxd_status vxd_scan_exclusive_cuda(struct vxd_queue *queue, const uint32_t *in,
                                        uint32_t *out, size_t n, void *scratch,
                                        size_t scratch_bytes, struct vxd_err *err);

#ifdef __cplusplus
}
#endif
#endif
