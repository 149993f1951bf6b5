// SPDX-License-Identifier: Apache-2.0
#include "gpu/core/core_cpu.h"

#include <stdlib.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define POISON(ptr, n_bytes) ASAN_POISON_MEMORY_REGION(ptr, n_bytes)
#define UNPOISON(ptr, n_bytes) ASAN_UNPOISON_MEMORY_REGION(ptr, n_bytes)
#else
#define POISON(ptr, n_bytes) ((void)0)
#define UNPOISON(ptr, n_bytes) ((void)0)
#endif

#define ALIGNMENT 256
#define HUGE_PAGE ((size_t)2 << 20)
#define HUGE_BLOCK ((size_t)8 << 20) /* blocks of this size or more use huge pages */
#define N_CLASSES 256
#define N_BUCKETS 1024

struct vxd_block_cache {
    struct vxd_context *context;
    enum vxd_space space;
    struct vxd_block *kept[N_CLASSES];
    uint32_t n_kept[N_CLASSES];
    uint32_t n_unused[N_CLASSES]; /* the least of n_kept since the last trim */
    struct vxd_block *live[N_BUCKETS];
};

/* Class sizes, in units of 256 bytes: 1 to 8, then 5, 6, 7, 8 times each power of two. */
static int class_of(size_t n_bytes, size_t *class_bytes)
{
    size_t units = n_bytes / ALIGNMENT + (n_bytes % ALIGNMENT != 0 ? 1 : 0);
    size_t steps = units;
    int shift = 0;

    if (units > 8) {
        shift = 61 - __builtin_clzll((unsigned long long)(units - 1));
        steps = ((units - 1) >> shift) + 1;
    }
    *class_bytes = (steps << shift) * ALIGNMENT;
    return 4 * shift + (int)steps - 1;
}

static struct vxd_block **bucket_of(struct vxd_block_cache *cache, const void *ptr)
{
    uint64_t hash = (uint64_t)((uintptr_t)ptr / ALIGNMENT) * 0x9e3779b97f4a7c15ULL;

    return &cache->live[hash >> 54];
}

static size_t *used_bytes(struct vxd_context *context, enum vxd_space space)
{
    return space == VXD_SPACE_HOST ? &context->usage.host_bytes
                                   : &context->usage.device_bytes;
}

static size_t *kept_bytes(struct vxd_block_cache *cache)
{
    return cache->space == VXD_SPACE_HOST ? &cache->context->usage.host_kept_bytes
                                          : &cache->context->usage.device_kept_bytes;
}

static size_t budget_bytes(const struct vxd_context *context, enum vxd_space space)
{
    return space == VXD_SPACE_HOST ? context->usage.host_budget_bytes
                                   : context->usage.device_budget_bytes;
}

/* The caller holds the mutex. */
static void count_bytes(struct vxd_context *context, enum vxd_space space, size_t n_bytes)
{
    size_t *used = used_bytes(context, space);
    size_t *peak = space == VXD_SPACE_HOST ? &context->usage.host_peak_bytes
                                           : &context->usage.device_peak_bytes;

    *used += n_bytes;
    if (*used > *peak) {
        *peak = *used;
    }
}

bool vxd_budget_take(struct vxd_context *context, enum vxd_space space, size_t n_bytes)
{
    bool fits;

    (void)pthread_mutex_lock(&context->mutex);
    fits = n_bytes <= budget_bytes(context, space) - *used_bytes(context, space);
    if (fits) {
        count_bytes(context, space, n_bytes);
    }
    (void)pthread_mutex_unlock(&context->mutex);
    return fits;
}

void vxd_budget_return(struct vxd_context *context, enum vxd_space space, size_t n_bytes)
{
    (void)pthread_mutex_lock(&context->mutex);
    *used_bytes(context, space) -= n_bytes;
    (void)pthread_mutex_unlock(&context->mutex);
}

enum vxd_status vxd_budget_fail(struct vxd_context *context, enum vxd_space space,
                                size_t n_bytes, struct vxd_err *err)
{
    struct vxd_memory_usage usage;

    vxd_context_get_memory(context, &usage);
    return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                    "%zu bytes of %s memory do not fit: %zu of %zu are in use", n_bytes,
                    space == VXD_SPACE_HOST ? "host" : "device",
                    space == VXD_SPACE_HOST ? usage.host_bytes : usage.device_bytes,
                    space == VXD_SPACE_HOST ? usage.host_budget_bytes
                                            : usage.device_budget_bytes);
}

void *vxd_machine_alloc(size_t n_bytes)
{
    void *memory;

    if (posix_memalign(&memory, n_bytes >= HUGE_BLOCK ? HUGE_PAGE : ALIGNMENT, n_bytes) !=
        0) {
        return NULL;
    }
#if defined(MADV_HUGEPAGE)
    /* This is advice: without huge pages small ones are used. */
    if (n_bytes >= HUGE_BLOCK) {
        (void)madvise(memory, n_bytes, MADV_HUGEPAGE);
    }
#endif
    return memory;
}

static enum vxd_status memory_alloc(struct vxd_block_cache *cache, size_t n_bytes,
                                    void **out, struct vxd_err *err)
{
    if (VXD_ON_CUDA(cache->context)) {
        return vxd_cuda_host_alloc(cache->context, n_bytes, out, err);
    }
    *out = vxd_machine_alloc(n_bytes);
    if (*out == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "the machine has no %zu bytes of memory left", n_bytes);
    }
    return VXD_OK;
}

/* Frees a chain of blocks that no list contains. The caller does not hold the mutex. */
static void free_chain(struct vxd_block_cache *cache, struct vxd_block *block)
{
    while (block != NULL) {
        struct vxd_block *next = block->next;

        UNPOISON(block->ptr, block->n_bytes);
        if (VXD_ON_CUDA(cache->context)) {
            vxd_cuda_host_free(cache->context, block->ptr);
        } else {
            free(block->ptr);
        }
        free(block);
        block = next;
    }
}

/* Unlinks the first kept block of a class. The caller holds the mutex. */
static struct vxd_block *unlink_kept(struct vxd_block_cache *cache, int size_class)
{
    struct vxd_block *block = cache->kept[size_class];

    cache->kept[size_class] = block->next;
    *kept_bytes(cache) -= block->n_bytes;
    cache->n_kept[size_class]--;
    if (cache->n_kept[size_class] < cache->n_unused[size_class]) {
        cache->n_unused[size_class] = cache->n_kept[size_class];
    }
    return block;
}

/* Unlinks kept blocks, largest first, until at most most_bytes are kept, and returns
 * the chain of blocks to free. The caller holds the mutex. */
static struct vxd_block *evict(struct vxd_block_cache *cache, size_t most_bytes)
{
    struct vxd_block *chain = NULL;

    for (int i = N_CLASSES - 1; i >= 0 && *kept_bytes(cache) > most_bytes; i--) {
        while (cache->kept[i] != NULL && *kept_bytes(cache) > most_bytes) {
            struct vxd_block *block = unlink_kept(cache, i);

            block->next = chain;
            chain = block;
        }
    }
    return chain;
}

void vxd_block_cache_trim(struct vxd_block_cache *cache)
{
    struct vxd_block *chain = NULL;

    (void)pthread_mutex_lock(&cache->context->mutex);
    for (int i = 0; i < N_CLASSES; i++) {
        for (uint32_t n = cache->n_unused[i]; n > 0; n--) {
            struct vxd_block *block = unlink_kept(cache, i);

            block->next = chain;
            chain = block;
        }
        cache->n_unused[i] = cache->n_kept[i];
    }
    (void)pthread_mutex_unlock(&cache->context->mutex);
    free_chain(cache, chain);
}

static void link_live(struct vxd_block_cache *cache, struct vxd_block *block)
{
    struct vxd_block **bucket = bucket_of(cache, block->ptr);

    block->next = *bucket;
    *bucket = block;
}

enum vxd_status vxd_block_cache_create(struct vxd_context *context, enum vxd_space space,
                                       struct vxd_block_cache **out, struct vxd_err *err)
{
    struct vxd_block_cache *cache = calloc(1, sizeof *cache);

    *out = cache;
    if (cache == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a block cache");
    }
    cache->context = context;
    cache->space = space;
    return VXD_OK;
}

void vxd_block_cache_destroy(struct vxd_block_cache *cache)
{
    if (cache == NULL) {
        return;
    }
    for (int i = 0; i < N_CLASSES; i++) {
        free_chain(cache, cache->kept[i]);
    }
    free(cache);
}

/* Takes a kept block of the class, which then is live and counted; NULL if there is
 * none. */
static struct vxd_block *take_kept(struct vxd_block_cache *cache, int size_class)
{
    struct vxd_block *block = NULL;

    if (cache->kept[size_class] != NULL) {
        block = unlink_kept(cache, size_class);
        count_bytes(cache->context, cache->space, block->n_bytes);
        link_live(cache, block);
    }
    return block;
}

/* Allocates memory for a block. When the machine has no memory, all kept blocks are
 * freed before the request is refused: the budget may exceed what the machine has. */
static enum vxd_status memory_take(struct vxd_block_cache *cache, size_t n_bytes,
                                   void **out, struct vxd_err *err)
{
    struct vxd_err first_err = {0};
    enum vxd_status status = memory_alloc(cache, n_bytes, out, &first_err);
    struct vxd_block *evicted;

    if (status == VXD_OK) {
        return status;
    }
    if (status == VXD_RESOURCE_EXHAUSTED) {
        (void)pthread_mutex_lock(&cache->context->mutex);
        evicted = evict(cache, 0);
        (void)pthread_mutex_unlock(&cache->context->mutex);
        if (evicted != NULL) {
            free_chain(cache, evicted);
            return memory_alloc(cache, n_bytes, out, err);
        }
    }
    if (err != NULL) {
        *err = first_err;
    }
    return status;
}

/* Makes a record for a block whose bytes are already counted; NULL with *status on
 * failure. */
static struct vxd_block *new_block(struct vxd_block_cache *cache, size_t n_bytes,
                                   int size_class, enum vxd_status *status,
                                   struct vxd_err *err)
{
    struct vxd_block *block = calloc(1, sizeof *block);

    if (block == NULL) {
        *status =
            vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a block record");
        return NULL;
    }
    *status = memory_take(cache, n_bytes, &block->ptr, err);
    if (*status != VXD_OK) {
        free(block);
        return NULL;
    }
    block->cache = cache;
    block->n_bytes = n_bytes;
    block->size_class = size_class;
    return block;
}

enum vxd_status vxd_block_take(struct vxd_block_cache *cache, size_t n_bytes, void **out,
                               struct vxd_err *err)
{
    struct vxd_context *context = cache->context;
    struct vxd_block *block = NULL;
    struct vxd_block *evicted;
    enum vxd_status status = VXD_OK;
    size_t free_bytes;
    size_t real_bytes;
    int size_class;

    *out = NULL;
    (void)pthread_mutex_lock(&context->mutex);
    free_bytes = budget_bytes(context, cache->space) - *used_bytes(context, cache->space);
    if (n_bytes > free_bytes) {
        (void)pthread_mutex_unlock(&context->mutex);
        return vxd_budget_fail(context, cache->space, n_bytes, err);
    }
    size_class = class_of(n_bytes, &real_bytes);
    if (real_bytes > free_bytes) {
        size_class = -1;
        real_bytes = n_bytes;
    } else {
        block = take_kept(cache, size_class);
    }
    if (block != NULL) {
        (void)pthread_mutex_unlock(&context->mutex);
        UNPOISON(block->ptr, n_bytes);
        *out = block->ptr;
        return VXD_OK;
    }
    evicted = evict(cache, free_bytes - real_bytes);
    count_bytes(context, cache->space, real_bytes);
    (void)pthread_mutex_unlock(&context->mutex);

    free_chain(cache, evicted);
    block = new_block(cache, real_bytes, size_class, &status, err);
    if (block == NULL) {
        vxd_budget_return(context, cache->space, real_bytes);
        return status;
    }
    (void)pthread_mutex_lock(&context->mutex);
    link_live(cache, block);
    (void)pthread_mutex_unlock(&context->mutex);
    POISON((char *)block->ptr + n_bytes, real_bytes - n_bytes);
    *out = block->ptr;
    return VXD_OK;
}

struct vxd_block *vxd_block_find(struct vxd_block_cache *cache, const void *ptr)
{
    struct vxd_block *block;

    (void)pthread_mutex_lock(&cache->context->mutex);
    block = *bucket_of(cache, ptr);
    while (block != NULL && block->ptr != ptr) {
        block = block->next;
    }
    (void)pthread_mutex_unlock(&cache->context->mutex);
    return block;
}

/* The caller holds the mutex. */
static void unlink_live(struct vxd_block *block)
{
    struct vxd_block **link = bucket_of(block->cache, block->ptr);

    while (*link != block) {
        link = &(*link)->next;
    }
    *link = block->next;
}

enum vxd_status vxd_block_move(struct vxd_block *block, struct vxd_block_cache *to,
                               size_t n_bytes, struct vxd_err *err)
{
    struct vxd_context *context = to->context;
    struct vxd_block *evicted;
    size_t free_bytes;

    (void)pthread_mutex_lock(&context->mutex);
    free_bytes = budget_bytes(context, to->space) - *used_bytes(context, to->space);
    if (n_bytes > free_bytes) {
        (void)pthread_mutex_unlock(&context->mutex);
        return vxd_budget_fail(context, to->space, n_bytes, err);
    }
    evicted = evict(to, free_bytes - n_bytes);
    unlink_live(block);
    *used_bytes(context, block->cache->space) -= block->n_bytes;
    count_bytes(context, to->space, n_bytes);
    UNPOISON(block->ptr, block->n_bytes);
    block->cache = to;
    block->n_bytes = n_bytes;
    block->size_class = -1;
    link_live(to, block);
    (void)pthread_mutex_unlock(&context->mutex);
    free_chain(to, evicted);
    return VXD_OK;
}

void vxd_block_release(struct vxd_block *block)
{
    struct vxd_block_cache *cache = block->cache;

    POISON(block->ptr, block->n_bytes);
    (void)pthread_mutex_lock(&cache->context->mutex);
    unlink_live(block);
    *used_bytes(cache->context, cache->space) -= block->n_bytes;
    block->next = NULL;
    if (block->size_class >= 0) {
        block->next = cache->kept[block->size_class];
        cache->kept[block->size_class] = block;
        *kept_bytes(cache) += block->n_bytes;
        cache->n_kept[block->size_class]++;
        block = NULL;
    }
    (void)pthread_mutex_unlock(&cache->context->mutex);
    free_chain(cache, block);
}
