// SPDX-License-Identifier: Apache-2.0
/* What the backends' own code needs of contexts and queues: the structs behind the opaque
 * names, the cache of host blocks, the loops that CPU jobs share, and the hooks by which the
 * C files of gpu/core reach the CUDA runtime. */
#ifndef VXD_GPU_CORE_CORE_CPU_H
#define VXD_GPU_CORE_CORE_CPU_H

#include <pthread.h>

#include "gpu/core/memory.h"
#include "gpu/core/parallel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* True where the context is a GPU. It is a constant in builds without CUDA, so that
 * the compiler removes the calls of hooks that such a build does not have. */
#if defined(VXD_WITH_CUDA)
#define VXD_ON_CUDA(context) ((context)->backend == VXD_BACKEND_CUDA)
#else
#define VXD_ON_CUDA(context) 0
#endif

/* The function name_cpu or name_cuda, by the queue's backend. */
#if defined(VXD_WITH_CUDA)
#define VXD_BACKEND_FN(queue, name)                                                      \
    (VXD_ON_CUDA((queue)->context) ? name##_cuda : name##_cpu)
#else
#define VXD_BACKEND_FN(queue, name) ((void)(queue), name##_cpu)
#endif

/* An entry of a CPU queue. A pushed job and its arguments are one block, which the
 * queue frees. A release job returns a block to the cache; it is part of that block's
 * record and runs after a fault too. */
struct vxd_job {
    struct vxd_job *next;
    vxd_job_fn run;
    void *args;
    bool is_release;
};

struct vxd_block_cache;

struct vxd_context {
    enum vxd_backend backend;
    int device;
    struct vxd_pool *pool;
    struct vxd_context_info info;
    struct vxd_context_extras extras;
    pthread_mutex_t mutex; /* protects usage, caches and lost */
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

/* Blocks of host memory (page-locked where the context is a GPU) and, on the CPU backend, of
 * "device" memory. They are allocated within the budget, and kept for reuse when freed.
 *
 * Sizes are rounded up to four classes an octave, so that clouds of nearly equal size reuse each
 * other's blocks. Live blocks and kept blocks together stay within the budget. Kept blocks are
 * freed, largest first, when a new block does not fit beside them, and all of them are when the
 * machine has no memory. The record of a block is in a table of the cache, not in front of the
 * memory. All functions may be called from any thread and take the context's mutex. */
struct vxd_block {
    struct vxd_block *next; /* in its bucket of live blocks, or in its free list */
    struct vxd_block_cache *cache;
    void *ptr;
    size_t n_bytes;     /* of the memory */
    int size_class;     /* -1: no class; the block is freed instead of kept */
    struct vxd_job job; /* releases the block in queue order */
};

/* errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_block_cache_create(struct vxd_context *context, enum vxd_space space,
                                       struct vxd_block_cache **out, struct vxd_err *err);

/* Frees the kept blocks; no block may be in use any more. NULL is fine. */
void vxd_block_cache_destroy(struct vxd_block_cache *cache);

/* Frees the kept blocks that nobody took since the call before. */
void vxd_block_cache_trim(struct vxd_block_cache *cache);

/* Allocates n_bytes > 0, aligned to 256.
 * errors  RESOURCE_EXHAUSTED  over the budget, or no memory */
enum vxd_status vxd_block_take(struct vxd_block_cache *cache, size_t n_bytes, void **out,
                               struct vxd_err *err);

/* The record of a pointer that vxd_block_take returned and that was not released. */
struct vxd_block *vxd_block_find(struct vxd_block_cache *cache, const void *ptr);

/* Releases a block; the caller must not use the record afterwards. */
void vxd_block_release(struct vxd_block *block);

/* CPU backend: moves a block to another cache of the same context. Only its first n_bytes are
 * used and counted from then on, and the block is freed when it is released.
 * errors  RESOURCE_EXHAUSTED  over the other cache's budget; the block is unchanged */
enum vxd_status vxd_block_move(struct vxd_block *block, struct vxd_block_cache *to,
                               size_t n_bytes, struct vxd_err *err);

/* Take n_bytes from a space's budget, and return them: accounting for memory that is
 * not in a cache. vxd_budget_take returns false when the bytes do not fit. */
bool vxd_budget_take(struct vxd_context *context, enum vxd_space space, size_t n_bytes);
void vxd_budget_return(struct vxd_context *context, enum vxd_space space, size_t n_bytes);

/* Fails with the message of an allocation over the budget. */
enum vxd_status vxd_budget_fail(struct vxd_context *context, enum vxd_space space,
                                size_t n_bytes, struct vxd_err *err);

/* Hooks to the CUDA runtime, in context.cu. They are called only when context->backend
 * is CUDA, which is possible only in a build with VXD_WITH_CUDA. Each returns a status
 * and fills err, and makes the context's device current on the calling thread. Each
 * detects sticky errors and then calls vxd_context_mark_lost, which takes the
 * context's mutex; so no caller may hold it. */
int vxd_cuda_count(char *why, size_t why_bytes);
/* Fills info (name, multiprocessors, capability, total bytes) and creates cuda_pool
 * with the device budget as its release threshold. Sets the budget where it is 0. */
enum vxd_status vxd_cuda_context_init(struct vxd_context *context, struct vxd_err *err);
void vxd_cuda_context_free(struct vxd_context *context);
enum vxd_status vxd_cuda_queue_init(struct vxd_queue *queue, struct vxd_err *err);
void vxd_cuda_queue_free(struct vxd_queue *queue);
/* Waits (polls for at most 0.2 ms, then sleeps) and turns the error word into a
 * status. */
enum vxd_status vxd_cuda_queue_mark(struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_cuda_queue_wait_mark(struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_cuda_copy(struct vxd_queue *queue, void *to, const void *from,
                              size_t n_bytes, struct vxd_err *err);
enum vxd_status vxd_cuda_fill(struct vxd_queue *queue, void *to, int value,
                              size_t n_bytes, struct vxd_err *err);
/* memory.c has checked the budget and counts the bytes; these hooks only allocate and
 * free. */
enum vxd_status vxd_cuda_device_alloc(struct vxd_queue *queue, size_t n_bytes, void **out,
                                      struct vxd_err *err);
void vxd_cuda_device_free(struct vxd_queue *queue, void *ptr);
/* Page-locked memory; called by the host cache on a miss, from any thread. */
enum vxd_status vxd_cuda_host_alloc(struct vxd_context *context, size_t n_bytes,
                                    void **out, struct vxd_err *err);
void vxd_cuda_host_free(struct vxd_context *context, void *ptr);

/* The loops behind vxd_sort_pairs_cpu and vxd_scan_exclusive_cpu, for jobs that sort
 * or scan as one of their steps. The sorted pairs are in tmp_keys and tmp_values when
 * the result is true, else in keys and values; this saves such jobs the copy back. */
bool vxd_sort_pairs_run(struct vxd_pool *pool, uint64_t *keys, uint32_t *values,
                        uint64_t *tmp_keys, uint32_t *tmp_values, size_t n, int begin_bit,
                        int end_bit, void *scratch);
void vxd_scan_exclusive_run(struct vxd_pool *pool, const uint32_t *in, uint32_t *out,
                            size_t n, void *scratch);

/* CPU and CUDA backends of radix_sort.h and prefix_sum.h; the arguments have been
 * checked. */
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
