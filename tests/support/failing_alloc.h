// SPDX-License-Identifier: Apache-2.0
/* Fails the k-th allocation of a test's program. Included by one file of it, and linked with
 * --wrap=malloc and, where they are to count, calloc, realloc and posix_memalign: then all that the
 * program itself allocates comes here, and nothing of shared libraries. */
#ifndef VXD_TESTS_SUPPORT_FAILING_ALLOC_H
#define VXD_TESTS_SUPPORT_FAILING_ALLOC_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* The system's; NULL where the program is linked without the wrap of it. */
void *__real_malloc(size_t n_bytes);
__attribute__((weak)) void *__real_calloc(size_t n, size_t n_bytes);
__attribute__((weak)) void *__real_realloc(void *block, size_t n_bytes);
__attribute__((weak)) int __real_posix_memalign(void **out, size_t alignment,
                                                size_t n_bytes);
void *__wrap_malloc(size_t n_bytes);
void *__wrap_calloc(size_t n, size_t n_bytes);
void *__wrap_realloc(void *block, size_t n_bytes);
int __wrap_posix_memalign(void **out, size_t alignment, size_t n_bytes);

/* Allocations, of any thread, until the one that fails; below zero = none does. */
static atomic_long n_until_failure = -1;

/* Number k of those from now on, by 0, fails, and no other. */
static inline void fail_allocation(long k)
{
    atomic_store(&n_until_failure, k);
}

/* No further one fails. True when the one that was to fail was reached. */
static inline bool stop_failing(void)
{
    return atomic_exchange(&n_until_failure, -1) < 0;
}

/* Counts an allocation. */
static inline bool fails_now(void)
{
    return atomic_load(&n_until_failure) >= 0 &&
           atomic_fetch_sub(&n_until_failure, 1) == 0;
}

void *__wrap_malloc(size_t n_bytes)
{
    return fails_now() ? NULL : __real_malloc(n_bytes);
}

void *__wrap_calloc(size_t n, size_t n_bytes)
{
    return fails_now() ? NULL : __real_calloc(n, n_bytes);
}

void *__wrap_realloc(void *block, size_t n_bytes)
{
    return fails_now() ? NULL : __real_realloc(block, n_bytes);
}

int __wrap_posix_memalign(void **out, size_t alignment, size_t n_bytes)
{
    return fails_now() ? ENOMEM : __real_posix_memalign(out, alignment, n_bytes);
}

#endif
