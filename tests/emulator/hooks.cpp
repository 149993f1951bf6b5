// SPDX-License-Identifier: Apache-2.0
/* The functions that GCC calls at accesses of memory in files compiled with
 * -fsanitize=thread, in place of ThreadSanitizer's. They switch to another fiber at
 * random and, in builds with AddressSanitizer, check whether the address may be
 * accessed. Atomic operations are done here: all fibers share one thread, so plain
 * loads and stores suffice, except outside of kernels. */
#include "tests/emulator/device.h"

#if defined(EMU_WITH_ADDRESS_SANITIZER)
extern "C" void *__asan_region_is_poisoned(void *begin, size_t n_bytes);
extern "C" void __asan_report_error(void *pc, void *bp, void *sp, void *address,
                                    int is_write, size_t n_bytes);
#define CHECK_ADDRESS(at, n_bytes, is_write)                                             \
    do {                                                                                 \
        if (emu_self != NULL &&                                                          \
            __asan_region_is_poisoned((void *)(at), (n_bytes)) != NULL) {                \
            __asan_report_error(__builtin_return_address(0), __builtin_frame_address(0), \
                                __builtin_frame_address(0), (void *)(at), (is_write),    \
                                (n_bytes));                                              \
            abort();                                                                     \
        }                                                                                \
    } while (0)
#else
#define CHECK_ADDRESS(at, n_bytes, is_write)                                             \
    do {                                                                                 \
    } while (0)
#endif

/* Threads poll with atomic reads; counting such a read as several accesses lets other
 * threads run sooner. */
#define ATOMIC_COST 16

static const bool emu_looks_for_races = emu_finds_races();

static void look_for_race(const void *at, size_t n_bytes, bool is_write, const void *code)
{
    if (emu_self != NULL) {
        emu_race_look(at, n_bytes, is_write, code);
    }
}

static inline void spend(int price)
{
    emu_budget -= price;
    if (__builtin_expect(emu_budget <= 0, 0)) {
        emu_preempt();
    }
}

#define PLAIN(name, n, is_write)                                                         \
    extern "C" void __tsan_##name(void *at)                                              \
    {                                                                                    \
        spend(1);                                                                        \
        CHECK_ADDRESS(at, n, is_write);                                                  \
        if (emu_looks_for_races) {                                                       \
            look_for_race(at, n, is_write, __builtin_return_address(0));                 \
        }                                                                                \
    }
#define VOLATILE(name, n, is_write)                                                      \
    extern "C" void __tsan_##name(void *at)                                              \
    {                                                                                    \
        (void)at;                                                                        \
        spend(ATOMIC_COST);                                                              \
        CHECK_ADDRESS(at, n, is_write);                                                  \
    }
#define ACCESSES(n)                                                                      \
    PLAIN(read##n, n, false)                                                             \
    PLAIN(write##n, n, true)                                                             \
    PLAIN(unaligned_read##n, n, false)                                                   \
    PLAIN(unaligned_write##n, n, true)                                                   \
    VOLATILE(volatile_read##n, n, false)                                                 \
    VOLATILE(volatile_write##n, n, true)                                                 \
    VOLATILE(unaligned_volatile_read##n, n, false)                                       \
    VOLATILE(unaligned_volatile_write##n, n, true)
ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

extern "C" void __tsan_init(void)
{
}

extern "C" void __tsan_func_entry(void *)
{
}

extern "C" void __tsan_func_exit(void)
{
}

extern "C" void __tsan_vptr_update(void *, void *)
{
}

extern "C" void __tsan_read_range(void *at, size_t n_bytes)
{
    spend(1);
    CHECK_ADDRESS(at, n_bytes, false);
    if (emu_looks_for_races) {
        look_for_race(at, n_bytes, false, __builtin_return_address(0));
    }
}

extern "C" void __tsan_write_range(void *at, size_t n_bytes)
{
    spend(1);
    CHECK_ADDRESS(at, n_bytes, true);
    if (emu_looks_for_races) {
        look_for_race(at, n_bytes, true, __builtin_return_address(0));
    }
}

extern "C" void __tsan_atomic_thread_fence(int)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

extern "C" void __tsan_atomic_signal_fence(int)
{
}

#define UPDATE(bits, type, name, builtin)                                                \
    extern "C" type __tsan_atomic##bits##_##name(volatile type *at, type value, int)     \
    {                                                                                    \
        spend(ATOMIC_COST);                                                              \
        CHECK_ADDRESS(at, sizeof(type), 1);                                              \
        return builtin(at, value, __ATOMIC_SEQ_CST);                                     \
    }
#define ATOMICS(bits, type)                                                              \
    extern "C" type __tsan_atomic##bits##_load(const volatile type *at, int)             \
    {                                                                                    \
        spend(ATOMIC_COST);                                                              \
        CHECK_ADDRESS(at, sizeof(type), 0);                                              \
        return __atomic_load_n(at, __ATOMIC_SEQ_CST);                                    \
    }                                                                                    \
    extern "C" void __tsan_atomic##bits##_store(volatile type *at, type value, int)      \
    {                                                                                    \
        spend(ATOMIC_COST);                                                              \
        CHECK_ADDRESS(at, sizeof(type), 1);                                              \
        __atomic_store_n(at, value, __ATOMIC_RELEASE);                                   \
    }                                                                                    \
    UPDATE(bits, type, exchange, __atomic_exchange_n)                                    \
    UPDATE(bits, type, fetch_add, __atomic_fetch_add)                                    \
    UPDATE(bits, type, fetch_sub, __atomic_fetch_sub)                                    \
    UPDATE(bits, type, fetch_and, __atomic_fetch_and)                                    \
    UPDATE(bits, type, fetch_or, __atomic_fetch_or)                                      \
    UPDATE(bits, type, fetch_xor, __atomic_fetch_xor)                                    \
    extern "C" int __tsan_atomic##bits##_compare_exchange_strong(                        \
        volatile type *at, type *from, type to, int, int)                                \
    {                                                                                    \
        spend(ATOMIC_COST);                                                              \
        CHECK_ADDRESS(at, sizeof(type), 1);                                              \
        return __atomic_compare_exchange_n(at, from, to, false, __ATOMIC_SEQ_CST,        \
                                           __ATOMIC_SEQ_CST);                            \
    }                                                                                    \
    extern "C" int __tsan_atomic##bits##_compare_exchange_weak(                          \
        volatile type *at, type *from, type to, int, int)                                \
    {                                                                                    \
        return __tsan_atomic##bits##_compare_exchange_strong(at, from, to, 0, 0);        \
    }
ATOMICS(8, uint8_t)
ATOMICS(16, uint16_t)
ATOMICS(32, uint32_t)
ATOMICS(64, uint64_t)

void emu_load_bytes(void *to, const void *from, size_t n_bytes)
{
    spend(ATOMIC_COST);
    CHECK_ADDRESS(from, n_bytes, 0);
    memcpy(to, from, n_bytes);
}

void emu_store_bytes(void *to, const void *from, size_t n_bytes)
{
    spend(ATOMIC_COST);
    CHECK_ADDRESS(to, n_bytes, 1);
    memcpy(to, from, n_bytes);
}

bool emu_swap16(void *at, const void *from, const void *to, void *seen)
{
    spend(ATOMIC_COST);
    CHECK_ADDRESS(at, 16, 1);
    memcpy(seen, at, 16);
    if (memcmp(seen, from, 16) != 0) {
        return false;
    }
    memcpy(at, to, 16);
    return true;
}
