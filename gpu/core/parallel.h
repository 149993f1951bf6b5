// SPDX-License-Identifier: Apache-2.0
/* The thread pool of the CPU backend: parallel loops over index ranges.
 *
 * It is our own, over pthreads, because ThreadSanitizer does not understand libgomp. Several
 * threads may run loops on one pool at once. Idle workers take pieces from the running loops in
 * turn, so a short loop is not blocked by a long one. The caller works too, so a loop finishes
 * even if every worker is busy elsewhere. */
#ifndef VXD_GPU_CORE_PARALLEL_H
#define VXD_GPU_CORE_PARALLEL_H

#include "proto/base/base.h"

#ifdef __cplusplus
extern "C" {
#endif

struct vxd_pool;

/* n_threads includes the caller: 1 starts no thread, 0 means all cores, or a container's share.
 * At most 256.
 * errors  INVALID_ARGUMENT, RESOURCE_EXHAUSTED */
enum vxd_status vxd_pool_create(int n_threads, struct vxd_pool **out,
                                struct vxd_err *err);
void vxd_pool_destroy(struct vxd_pool *pool);
int vxd_pool_n_threads(const struct vxd_pool *pool);

/* Calls body(args, begin, end) for disjoint ranges that cover [0, n) and returns when
 * all are done. Every range is exactly `grain` long except the last, which may be
 * shorter, so begin / grain numbers the pieces for any thread count. A body may start
 * loops of its own. */
typedef void (*vxd_loop_fn)(void *args, size_t begin, size_t end);
void vxd_parallel_for(struct vxd_pool *pool, size_t n, size_t grain, vxd_loop_fn body,
                      void *args);

/* Copies as memcpy does, on all threads of the struct vxd_pool that `pool` points to. */
void vxd_parallel_copy(void *pool, void *to, const void *from, size_t n_bytes);

#ifdef __cplusplus
}
#endif
#endif
