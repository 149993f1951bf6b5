// SPDX-License-Identifier: Apache-2.0
/* CUDA's functions of device code: collectives, memory and arithmetic. Included by
 * emulator.h. */
#ifndef VXD_TESTS_EMULATOR_INTRINSICS_H
#define VXD_TESTS_EMULATOR_INTRINSICS_H

/* Collectives -------------------------------------------------------------------------------- */

static inline void __syncthreads(EMU_HERE)
{
    (void)emu_block_sync(EMU_COUNT_ONLY, 0, EMU_SITE);
}

static inline int __syncthreads_count(int predicate, EMU_HERE)
{
    return emu_block_sync(EMU_COUNT_SUM, predicate, EMU_SITE);
}

static inline int __syncthreads_or(int predicate, EMU_HERE)
{
    return emu_block_sync(EMU_COUNT_OR, predicate, EMU_SITE);
}

static inline int __syncthreads_and(int predicate, EMU_HERE)
{
    return emu_block_sync(EMU_COUNT_AND, predicate, EMU_SITE);
}

static inline void __syncwarp(unsigned mask = 0xffffffffu, EMU_HERE)
{
    (void)emu_collect(EMU_SYNC, mask, 0, 0, EMU_SITE);
}

static inline unsigned __ballot_sync(unsigned mask, int predicate, EMU_HERE)
{
    return (unsigned)emu_collect(EMU_BALLOT, mask, predicate != 0, 0, EMU_SITE);
}

static inline int __any_sync(unsigned mask, int predicate, EMU_HERE)
{
    return emu_collect(EMU_BALLOT, mask, predicate != 0, 0, EMU_SITE) != 0;
}

static inline int __all_sync(unsigned mask, int predicate, EMU_HERE)
{
    return emu_collect(EMU_AND, mask, predicate != 0, 0, EMU_SITE) != 0;
}

template <class T>
static inline unsigned __match_any_sync(unsigned mask, T value, EMU_HERE)
{
    uint64_t bits = 0;

    memcpy(&bits, &value, sizeof value);
    return (unsigned)emu_collect(EMU_MATCH, mask, bits, 0, EMU_SITE);
}

template <class T>
static inline T emu_shuffle(unsigned mask, T value, int from, emu_site site)
{
    uint64_t bits = 0;

    static_assert(sizeof(T) <= 8, "a shuffle is of 8 bytes at most");
    memcpy(&bits, &value, sizeof value);
    bits = emu_collect(EMU_SHUFFLE, mask, bits, from, site);
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline int emu_lane(void)
{
    uint3 t = threadIdx;
    uint3 n = blockDim;

    return (int)((t.x + n.x * (t.y + n.y * t.z)) % 32);
}

template <class T>
static inline T __shfl_sync(unsigned mask, T value, int lane, int width = 32, EMU_HERE)
{
    int begin = emu_lane() / width * width;

    return emu_shuffle(mask, value, begin + (lane & (width - 1)), EMU_SITE);
}

template <class T>
static inline T __shfl_up_sync(unsigned mask, T value, unsigned step, int width = 32,
                               EMU_HERE)
{
    int own = emu_lane();
    bool is_in = own % width >= (int)step;

    return emu_shuffle(mask, value, is_in ? own - (int)step : own, EMU_SITE);
}

template <class T>
static inline T __shfl_down_sync(unsigned mask, T value, unsigned step, int width = 32,
                                 EMU_HERE)
{
    int own = emu_lane();
    bool is_in = own % width + (int)step < width;

    return emu_shuffle(mask, value, is_in ? own + (int)step : own, EMU_SITE);
}

template <class T>
static inline T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32,
                                EMU_HERE)
{
    int own = emu_lane();
    int other = own ^ bits;

    /* As in hardware, lanes of later groups cannot be read. */
    return emu_shuffle(mask, value, other / width <= own / width ? other : own, EMU_SITE);
}

#define EMU_REDUCE(name, kind)                                                           \
    static inline unsigned __reduce_##name##_sync(unsigned mask, unsigned value,         \
                                                  EMU_HERE)                              \
    {                                                                                    \
        return (unsigned)emu_collect(kind, mask, value, 0, EMU_SITE);                    \
    }
EMU_REDUCE(add, EMU_ADD)
EMU_REDUCE(or, EMU_OR)
EMU_REDUCE(and, EMU_AND)
EMU_REDUCE(xor, EMU_XOR)
EMU_REDUCE(min, EMU_MIN)
EMU_REDUCE(max, EMU_MAX)
#undef EMU_REDUCE

/* Memory ------------------------------------------------------------------------------------- */

/* Atomic operations become calls of __tsan_atomic…, which the emulator defines. */
#define EMU_ATOMIC(name, operation)                                                      \
    template <class T> static inline T name(T *at, std::common_type_t<T> value)          \
    {                                                                                    \
        return __atomic_fetch_##operation(at, value, __ATOMIC_RELAXED);                  \
    }                                                                                    \
    template <class T> static inline T name##_system(T *at, std::common_type_t<T> value) \
    {                                                                                    \
        return name(at, value);                                                          \
    }
EMU_ATOMIC(atomicAdd, add)
EMU_ATOMIC(atomicSub, sub)
EMU_ATOMIC(atomicAnd, and)
EMU_ATOMIC(atomicOr, or)
EMU_ATOMIC(atomicXor, xor)
#undef EMU_ATOMIC

template <class T>
static inline T atomicCAS(T *at, std::common_type_t<T> from, std::common_type_t<T> to)
{
    (void)__atomic_compare_exchange_n(at, &from, to, false, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED);
    return from;
}

template <class T>
static inline T atomicCAS_system(T *at, std::common_type_t<T> from,
                                 std::common_type_t<T> to)
{
    return atomicCAS(at, from, to);
}

template <class T> static inline T atomicExch(T *at, std::common_type_t<T> value)
{
    return __atomic_exchange_n(at, value, __ATOMIC_RELAXED);
}

/* Stores what `next` makes of the old value; returns the old value. */
template <class T, class NEXT> static inline T emu_update(T *at, NEXT next)
{
    T seen = __atomic_load_n(at, __ATOMIC_RELAXED);

    while (!__atomic_compare_exchange_n(at, &seen, next(seen), false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
    }
    return seen;
}

template <class T> static inline T atomicMin(T *at, std::common_type_t<T> value)
{
    return emu_update(at, [=](T seen) { return seen < value ? seen : value; });
}

template <class T> static inline T atomicMax(T *at, std::common_type_t<T> value)
{
    return emu_update(at, [=](T seen) { return seen > value ? seen : value; });
}

static inline unsigned atomicInc(unsigned *at, unsigned last)
{
    return emu_update(at, [=](unsigned seen) { return seen >= last ? 0 : seen + 1; });
}

static inline float atomicAdd(float *at, float value)
{
    unsigned bits = emu_update((unsigned *)at, [=](unsigned seen) {
        float sum;

        memcpy(&sum, &seen, sizeof sum);
        sum += value;
        memcpy(&seen, &sum, sizeof sum);
        return seen;
    });
    float before;

    memcpy(&before, &bits, sizeof before);
    return before;
}

static inline void __threadfence(void)
{
    emu_fence(false);
}

static inline void __threadfence_block(void)
{
    emu_fence(true);
}

static inline void __threadfence_system(void)
{
    emu_fence(false);
}

static inline void __nanosleep(unsigned)
{
    emu_yield();
}

template <class T> static inline T emu_load(const T *at)
{
    T value;

    emu_load_bytes(&value, at, sizeof value);
    return value;
}

#define EMU_LOAD(name)                                                                   \
    template <class T> static inline T name(const T *at)                                 \
    {                                                                                    \
        return emu_load(at);                                                             \
    }
EMU_LOAD(__ldg)
EMU_LOAD(__ldca)
EMU_LOAD(__ldcg)
EMU_LOAD(__ldcs)
EMU_LOAD(__ldcv)
EMU_LOAD(__ldlu)
#undef EMU_LOAD

#define EMU_STORE(name)                                                                  \
    template <class T> static inline void name(T *at, std::common_type_t<T> value)       \
    {                                                                                    \
        emu_store_bytes(at, &value, sizeof value);                                       \
    }
EMU_STORE(__stcg)
EMU_STORE(__stcs)
EMU_STORE(__stwb)
EMU_STORE(__stwt)
#undef EMU_STORE

/* Instructions of asm statements: outputs, then inputs. */
template <class T, class A> static inline void emu_ptx_load(T &a, const A *at)
{
    a = emu_load((const T *)(const void *)at);
}

template <class T, class A> static inline void emu_ptx_load(T &a, T &b, const A *at)
{
    T words[2];

    emu_load_bytes(words, at, sizeof words);
    a = words[0];
    b = words[1];
}

template <class T, class A>
static inline void emu_ptx_load(T &a, T &b, T &c, T &d, const A *at)
{
    T words[4];

    emu_load_bytes(words, at, sizeof words);
    a = words[0];
    b = words[1];
    c = words[2];
    d = words[3];
}

static inline void emu_ptx_cas32(uint32_t &seen, uint32_t *at, uint32_t from, uint32_t to)
{
    seen = atomicCAS(at, from, to);
}

template <class T, class A> static inline void emu_ptx_store(A *at, T a)
{
    emu_store_bytes(at, &a, sizeof a);
}

template <class T, class A> static inline void emu_ptx_store(A *at, T a, T b)
{
    T words[2] = {a, b};

    emu_store_bytes(at, words, sizeof words);
}

template <class T, class A> static inline void emu_ptx_store(A *at, T a, T b, T c, T d)
{
    T words[4] = {a, b, c, d};

    emu_store_bytes(at, words, sizeof words);
}

static inline const void *__cvta_generic_to_global(const void *at)
{
    return at;
}

static inline long long clock64(void)
{
    return 0;
}

static inline void emu_ptx_prefetch(const void *)
{
}

template <class A>
static inline void emu_ptx_cas128(uint64_t &seen_low, uint64_t &seen_high, A *at,
                                  uint64_t from_low, uint64_t from_high, uint64_t to_low,
                                  uint64_t to_high)
{
    uint64_t from[2] = {from_low, from_high};
    uint64_t to[2] = {to_low, to_high};
    uint64_t seen[2];

    (void)emu_swap16(at, from, to, seen);
    seen_low = seen[0];
    seen_high = seen[1];
}

static inline void emu_ptx_unknown(const char *code, EMU_HERE)
{
    emu_fault(code, EMU_SITE);
}

/* Arithmetic --------------------------------------------------------------------------------- */

template <class A, class B> static inline std::common_type_t<A, B> min(A a, B b)
{
    std::common_type_t<A, B> x = a, y = b;

    return y < x ? y : x;
}

template <class A, class B> static inline std::common_type_t<A, B> max(A a, B b)
{
    std::common_type_t<A, B> x = a, y = b;

    return x < y ? y : x;
}

static inline int __popc(unsigned v)
{
    return __builtin_popcount(v);
}

static inline int __popcll(unsigned long long v)
{
    return __builtin_popcountll(v);
}

static inline int __ffs(int v)
{
    return __builtin_ffs(v);
}

static inline int __ffsll(long long v)
{
    return __builtin_ffsll(v);
}

static inline int __clz(int v)
{
    return v == 0 ? 32 : __builtin_clz((unsigned)v);
}

static inline int __clzll(long long v)
{
    return v == 0 ? 64 : __builtin_clzll((unsigned long long)v);
}

static inline unsigned __brev(unsigned v)
{
    unsigned r = 0;

    for (int i = 0; i < 32; i++) {
        r |= (v >> i & 1) << (31 - i);
    }
    return r;
}

static inline unsigned __umulhi(unsigned a, unsigned b)
{
    return (unsigned)((uint64_t)a * b >> 32);
}

static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b)
{
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}

static inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift)
{
    return (unsigned)(((uint64_t)high << 32 | low) >> (shift & 31));
}

static inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift)
{
    return (unsigned)(((uint64_t)high << 32 | low) << (shift & 31) >> 32);
}

static inline unsigned __vcmpeq4(unsigned a, unsigned b)
{
    unsigned equal = 0;

    for (int i = 0; i < 32; i += 8) {
        equal |= (a >> i & 0xff) == (b >> i & 0xff) ? 0xffu << i : 0;
    }
    return equal;
}

static inline unsigned __byte_perm(unsigned low, unsigned high, unsigned selector)
{
    uint64_t bytes = (uint64_t)high << 32 | low;
    unsigned r = 0;

    for (int i = 0; i < 4; i++) {
        unsigned from = selector >> 4 * i & 7;
        unsigned byte = (unsigned)(bytes >> 8 * from) & 0xff;

        if ((selector >> 4 * i & 8) != 0) {
            byte = (byte & 0x80) != 0 ? 0xff : 0;
        }
        r |= byte << 8 * i;
    }
    return r;
}

#define EMU_ROUNDED(name, type, operator)                                                \
    static inline type name(type a, type b)                                              \
    {                                                                                    \
        return a operator b;                                                             \
    }
EMU_ROUNDED(__fadd_rn, float, +)
EMU_ROUNDED(__fsub_rn, float, -)
EMU_ROUNDED(__fmul_rn, float, *)
EMU_ROUNDED(__fdiv_rn, float, /)
EMU_ROUNDED(__dadd_rn, double, +)
EMU_ROUNDED(__dsub_rn, double, -)
EMU_ROUNDED(__dmul_rn, double, *)
EMU_ROUNDED(__ddiv_rn, double, /)
#undef EMU_ROUNDED

static inline float __fmaf_rn(float a, float b, float c)
{
    return fmaf(a, b, c);
}

static inline float __fsqrt_rn(float a)
{
    return sqrtf(a);
}

/* A sum of floats whose exponents differ by less than 29 is exact in double. */
static inline float __fadd_rz(float a, float b)
{
    double sum = (double)a + (double)b;
    float rounded = (float)sum;

    return fabs((double)rounded) > fabs(sum) ? nextafterf(rounded, 0.0f) : rounded;
}

template <class TO, class FROM> static inline TO emu_bits(FROM from)
{
    TO to;

    static_assert(sizeof to == sizeof from, "bits of equal number");
    memcpy(&to, &from, sizeof to);
    return to;
}

static inline int __float_as_int(float v)
{
    return emu_bits<int>(v);
}

static inline unsigned __float_as_uint(float v)
{
    return emu_bits<unsigned>(v);
}

static inline float __int_as_float(int v)
{
    return emu_bits<float>(v);
}

static inline float __uint_as_float(unsigned v)
{
    return emu_bits<float>(v);
}

static inline long long __double_as_longlong(double v)
{
    return emu_bits<long long>(v);
}

static inline double __longlong_as_double(long long v)
{
    return emu_bits<double>(v);
}

static inline double __hiloint2double(int high, int low)
{
    return emu_bits<double>((uint64_t)(unsigned)high << 32 | (unsigned)low);
}

#endif
