// SPDX-License-Identifier: Apache-2.0
/* Fails the k-th allocation of a test's program. One file of the program includes it,
 * and the program is linked with --wrap=malloc and, where they are to count, calloc,
 * realloc and posix_memalign. So every allocation of the program itself is counted,
 * and none of shared libraries. */
#ifndef VXD_TESTS_SUPPORT_FAILING_ALLOC_H
#define VXD_TESTS_SUPPORT_FAILING_ALLOC_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* The system's functions; NULL where the program is linked without the wrap. */
void *__real_malloc(size_t n_bytes);
__attribute__((weak)) void *__real_calloc(size_t n, size_t n_bytes);
__attribute__((weak)) void *__real_realloc(void *block, size_t n_bytes);
__attribute__((weak)) int __real_posix_memalign(void **out, size_t alignment,
                                                size_t n_bytes);
void *__wrap_malloc(size_t n_bytes);
void *__wrap_calloc(size_t n, size_t n_bytes);
void *__wrap_realloc(void *block, size_t n_bytes);
int __wrap_posix_memalign(void **out, size_t alignment, size_t n_bytes);

/* Number of allocations, by any thread, until the one that fails; negative = none
 * fails. */
static atomic_long n_until_failure = -1;

/* Makes allocation number k from now on, counted from 0, fail, and no other. */
static inline void fail_allocation(long k)
{
    atomic_store(&n_until_failure, k);
}

/* Lets all further allocations succeed. True when the one that was to fail was
 * reached. */
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
