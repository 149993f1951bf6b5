// SPDX-License-Identifier: Apache-2.0
/* CUDA for a C++ compiler: what kernels and their launchers use, on an emulated device.
 *
 * Every thread of a kernel is a fiber on the thread that launches. Fibers are switched where a
 * thread waits for others (barriers, votes, shuffles) and, at random, at any access of memory:
 * kernels are compiled with GCC's -fsanitize=thread, whose hooks the emulator defines itself. So
 * the seed alone orders what the lanes of a warp do between two collectives, and a missing
 * barrier shows in results. Memory is sequentially consistent, unlike a GPU's: only the search
 * for races finds a missing fence.
 *
 * Environment: VOXELD_EMULATOR_SEED     the order of threads (default 1)
 *              VOXELD_EMULATOR_SMS      multiprocessors (default 3)
 *              VOXELD_EMULATOR_BLOCKS   blocks, of 512 threads or more, that a multiprocessor
 *                                       holds (default 1)
 *              VOXELD_EMULATOR_SECONDS  processor time for which threads may run without any
 *                                       barrier, collective or thread ending; beyond it the
 *                                       kernel hangs (default 60)
 *              VOXELD_EMULATOR_RACES    set: plain accesses without an order are reported, and
 *                                       the program ends with 66 (races.cpp)
 *
 * A fault (a collective that not all lanes of its mask reach, a barrier that not all threads
 * reach, threads that wait for ever) is reported with kernel, thread and line, and aborts. */
#ifndef VXD_TESTS_EMULATOR_EMULATOR_H
#define VXD_TESTS_EMULATOR_EMULATOR_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tuple>
#include <type_traits>
#include <utility>

#define __CUDACC__ 1
#define __CUDA_ARCH__ 900

#define __global__
#define __device__
#define __host__
#define __constant__ const
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __restrict__ __restrict
#define __builtin_assume(condition) ((void)0)

/* Types ---------------------------------------------------------------------------------- */

struct uint3 {
    unsigned x, y, z;
};

struct dim3 {
    unsigned x, y, z;

    constexpr dim3(unsigned n_x = 1, unsigned n_y = 1, unsigned n_z = 1)
        : x(n_x), y(n_y), z(n_z)
    {
    }
};

#define EMU_VECTORS(type, name)                                                          \
    struct alignas(2 * sizeof(type)) name##2                                             \
    {                                                                                    \
        type x, y;                                                                       \
    };                                                                                   \
    struct name##3                                                                       \
    {                                                                                    \
        type x, y, z;                                                                    \
    };                                                                                   \
    struct alignas(sizeof(type) == 8 ? 16 : 4 * sizeof(type)) name##4                    \
    {                                                                                    \
        type x, y, z, w;                                                                 \
    };                                                                                   \
    static inline name##2 make_##name##2(type x, type y)                                 \
    {                                                                                    \
        return {x, y};                                                                   \
    }                                                                                    \
    static inline name##3 make_##name##3(type x, type y, type z)                         \
    {                                                                                    \
        return {x, y, z};                                                                \
    }                                                                                    \
    static inline name##4 make_##name##4(type x, type y, type z, type w)                 \
    {                                                                                    \
        return {x, y, z, w};                                                             \
    }
EMU_VECTORS(char, char)
EMU_VECTORS(unsigned char, uchar)
EMU_VECTORS(short, short)
EMU_VECTORS(unsigned short, ushort)
EMU_VECTORS(int, int)
EMU_VECTORS(long long, longlong)
EMU_VECTORS(unsigned long long, ulonglong)
EMU_VECTORS(float, float)
EMU_VECTORS(double, double)
#undef EMU_VECTORS

struct alignas(8) uint2 {
    unsigned x, y;
};

struct alignas(16) uint4 {
    unsigned x, y, z, w;
};

static inline uint2 make_uint2(unsigned x, unsigned y)
{
    return {x, y};
}

static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w)
{
    return {x, y, z, w};
}

/* The emulator (emulator.cpp) ------------------------------------------------------------- */

/* A place in the source. */
struct emu_site {
    const char *file;
    int line;
};

#define EMU_HERE int line = __builtin_LINE(), const char *file = __builtin_FILE()
#define EMU_SITE                                                                         \
    emu_site                                                                             \
    {                                                                                    \
        file, line                                                                       \
    }

/* What all lanes of a mask do together. */
enum emu_collective {
    EMU_SYNC,
    EMU_SHUFFLE, /* aux: the lane whose value is read */
    EMU_BALLOT,
    EMU_ADD,
    EMU_OR,
    EMU_AND,
    EMU_XOR,
    EMU_MIN,
    EMU_MAX,
    EMU_MATCH
};

enum emu_count {
    EMU_COUNT_ONLY, /* __syncthreads */
    EMU_COUNT_SUM,
    EMU_COUNT_OR,
    EMU_COUNT_AND
};

/* A __shared__ variable; each launch assigns its place in a block's memory. */
struct emu_slot {
    uint64_t launch;
    size_t at;
};

struct emu_launch {
    const char *name;
    dim3 grid;
    dim3 block;
    size_t n_shared; /* bytes of dynamic shared memory */
    bool is_cooperative;
    void (*body)(const void *args); /* one thread of the kernel */
    const void *args;
};

extern "C" {
uint3 emu_thread_idx(void) __attribute__((const));
uint3 emu_block_idx(void) __attribute__((const));
uint3 emu_block_dim(void) __attribute__((const));
uint3 emu_grid_dim(void) __attribute__((const));
}
uint64_t emu_collect(enum emu_collective kind, unsigned mask, uint64_t value, int aux,
                     emu_site site);
int emu_block_sync(enum emu_count count, int predicate, emu_site site);
void emu_grid_sync(emu_site site);
/* Orders the caller's accesses before and after it, for its block or for the device. */
void emu_fence(bool is_block);
/* Lets other threads run, for one of which the caller waits. */
void emu_yield(void);
void *emu_shared(struct emu_slot *slot, size_t n_bytes, size_t alignment);
void *emu_dynamic_shared(void);
/* Accesses of any size that no switch divides. */
void emu_load_bytes(void *to, const void *from, size_t n_bytes);
void emu_store_bytes(void *to, const void *from, size_t n_bytes);
bool emu_swap16(void *at, const void *from, const void *to, void *seen);
[[noreturn]] void emu_fault(const char *what, emu_site site);
/* Runs a kernel to its end. False where the device does not allow the configuration. */
bool emu_run(const struct emu_launch *launch);
void emu_register(const void *kernel, const char *name, void (*body)(const void *args));

/* Launches ---------------------------------------------------------------------------------- */

typedef struct emu_stream *cudaStream_t;

template <class... P> struct emu_kernel {
    typedef std::tuple<std::decay_t<P>...> values;

    struct call {
        void (*kernel)(P...);
        values args;
    };

    static void by_value(const void *args)
    {
        call *c = (call *)const_cast<void *>(args);

        std::apply(c->kernel, c->args);
    }

    /* args: one pointer for each parameter, preceded by that of the kernel. */
    template <size_t... I>
    static void spread(void *const *args, std::index_sequence<I...>)
    {
        ((void (*)(P...))args[0])(*(std::decay_t<P> *)((void *const *)args[1])[I]...);
    }

    static void by_address(const void *args)
    {
        spread((void *const *)args, std::index_sequence_for<P...>());
    }
};

struct emu_entry {
    template <class... P> emu_entry(void (*kernel)(P...), const char *name)
    {
        emu_register((const void *)kernel, name, emu_kernel<P...>::by_address);
    }
};

/* Registers the kernel too. */
template <class... P>
static inline const void *emu_address_of(void (*kernel)(P...), const char *name)
{
    emu_register((const void *)kernel, name, emu_kernel<P...>::by_address);
    return (const void *)kernel;
}

void emu_launched(bool is_valid);

template <class... P> struct emu_launcher {
    void (*kernel)(P...);
    struct emu_launch launch;

    void operator()(std::decay_t<P>... args)
    {
        typename emu_kernel<P...>::call call = {kernel, {args...}};

        launch.body = emu_kernel<P...>::by_value;
        launch.args = &call;
        emu_launched(emu_run(&launch));
    }
};

template <class... P>
static inline emu_launcher<P...>
emu_launcher_of(void (*kernel)(P...), const char *name, dim3 grid, dim3 block,
                size_t n_shared = 0, cudaStream_t = nullptr)
{
    return {kernel, {name, grid, block, n_shared, false, nullptr, nullptr}};
}

/* The indices of a thread. */
#define threadIdx (emu_thread_idx())
#define blockIdx (emu_block_idx())
#define blockDim (emu_block_dim())
#define gridDim (emu_grid_dim())
#define warpSize 32

#include "tests/emulator/intrinsics.h"
#include "tests/emulator/runtime.h"

#endif
