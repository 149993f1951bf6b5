// SPDX-License-Identifier: Apache-2.0
/* Blocks of host memory (page-locked where the context is a GPU) and, on the CPU backend,
 * of "device" memory: handed out within the budget, kept for reuse when freed.
 *
 * Sizes are rounded up to four classes an octave, so that clouds of nearly equal size
 * reuse each other's blocks. Blocks handed out and blocks kept stay within the budget
 * together; kept ones make room, largest first, when a new block needs it, and all of them
 * when the machine has no memory. A block's record lies in a table of the cache, not in
 * front of the memory. All functions may be called from any thread and take the context's
 * mutex. */
#ifndef VXD_GPU_CORE_BLOCK_CACHE_H
#define VXD_GPU_CORE_BLOCK_CACHE_H

#include "gpu/core/core_internal.h"

struct vxd_block {
    struct vxd_block *next; /* in its bucket of live blocks, or in its free list */
    struct vxd_block_cache *cache;
    void *ptr;
    size_t n_bytes;     /* of the memory */
    int size_class;     /* -1: of no class, freed instead of kept */
    struct vxd_job job; /* releases the block in queue order */
};

/* errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_block_cache_create(struct vxd_context *context, enum vxd_space space,
                                       struct vxd_block_cache **out, struct vxd_err *err);

/* Frees the kept blocks; none may be handed out any more. NULL is fine. */
void vxd_block_cache_destroy(struct vxd_block_cache *cache);

/* Hands out n_bytes > 0, aligned to 256.
 * errors  RESOURCE_EXHAUSTED  over the budget, or no memory */
enum vxd_status vxd_block_take(struct vxd_block_cache *cache, size_t n_bytes, void **out,
                               struct vxd_err *err);

/* The record of a pointer that vxd_block_take gave and that was not given back. */
struct vxd_block *vxd_block_find(struct vxd_block_cache *cache, const void *ptr);

/* Gives a block back; the record is no longer the caller's. */
void vxd_block_release(struct vxd_block *block);

/* CPU backend: makes a block of one cache another's of the same context, where it counts as its
 * first n_bytes, which alone are used from now on, and is freed when it is released.
 * errors  RESOURCE_EXHAUSTED  over the other's budget; the block is what it was */
enum vxd_status vxd_block_move(struct vxd_block *block, struct vxd_block_cache *to,
                               size_t n_bytes, struct vxd_err *err);

/* Takes n_bytes from a space's budget, and gives them back: the same accounting for
 * memory that is not in a cache. False when it does not fit. */
bool vxd_budget_take(struct vxd_context *context, enum vxd_space space, size_t n_bytes);
void vxd_budget_return(struct vxd_context *context, enum vxd_space space, size_t n_bytes);

/* The message of an allocation over the budget. */
enum vxd_status vxd_budget_fail(struct vxd_context *context, enum vxd_space space,
                                size_t n_bytes, struct vxd_err *err);

#endif
