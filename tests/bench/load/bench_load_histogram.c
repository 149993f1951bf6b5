// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/load/bench_load_histogram.h"

#include <math.h>
#include <stddef.h>

#define N_SUB (UINT64_C(1) << LOAD_HISTOGRAM_SUB_BITS)
#define TOP_NS ((UINT64_C(1) << (LOAD_HISTOGRAM_TOP_BIT + 1)) - 1)
#define NS_A_MS 1e6

/* Values below 128 have a bucket each; above, the seven bits after the leading one
 * choose the bucket. */
static size_t bucket_of(uint64_t ns)
{
    unsigned top_bit;
    unsigned shift;

    if (ns < N_SUB) {
        return (size_t)ns;
    }
    top_bit = 63u - (unsigned)__builtin_clzll(ns);
    shift = top_bit - LOAD_HISTOGRAM_SUB_BITS;
    return (size_t)((shift << LOAD_HISTOGRAM_SUB_BITS) + (ns >> shift));
}

/* Returns the middle of a bucket. */
static double value_of(size_t bucket)
{
    size_t shift;
    uint64_t low;

    if (bucket < 2 * N_SUB) {
        return (double)bucket;
    }
    shift = (bucket >> LOAD_HISTOGRAM_SUB_BITS) - 1;
    low = (uint64_t)(bucket - (shift << LOAD_HISTOGRAM_SUB_BITS)) << shift;
    return (double)low + 0.5 * (double)(UINT64_C(1) << shift);
}

void load_histogram_record(struct load_histogram *histogram, int64_t ns)
{
    uint64_t value = ns < 0 ? 0 : (uint64_t)ns;
    uint_fast64_t max = atomic_load_explicit(&histogram->max_ns, memory_order_relaxed);

    value = value < TOP_NS ? value : TOP_NS;
    (void)atomic_fetch_add_explicit(&histogram->buckets[bucket_of(value)], 1,
                                    memory_order_relaxed);
    (void)atomic_fetch_add_explicit(&histogram->sum_ns, value, memory_order_relaxed);
    while (value > max && !atomic_compare_exchange_weak_explicit(
                              &histogram->max_ns, &max, value, memory_order_relaxed,
                              memory_order_relaxed)) {
    }
    (void)atomic_fetch_add_explicit(&histogram->n, 1, memory_order_relaxed);
}

double load_histogram_percentile_ms(const struct load_histogram *histogram, double share)
{
    uint64_t n = atomic_load(&histogram->n);
    double rank = ceil(share * (double)n);
    uint64_t seen = 0;

    for (size_t i = 0; n > 0 && i < LOAD_HISTOGRAM_BUCKETS; i++) {
        seen += atomic_load_explicit(&histogram->buckets[i], memory_order_relaxed);
        if (seen > 0 && (double)seen >= rank) {
            double max_ms = load_histogram_max_ms(histogram);
            double ms = value_of(i) / NS_A_MS;

            return ms < max_ms ? ms : max_ms;
        }
    }
    return 0;
}

double load_histogram_mean_ms(const struct load_histogram *histogram)
{
    uint64_t n = atomic_load(&histogram->n);

    return n == 0 ? 0 : (double)atomic_load(&histogram->sum_ns) / (double)n / NS_A_MS;
}

double load_histogram_max_ms(const struct load_histogram *histogram)
{
    return (double)atomic_load(&histogram->max_ns) / NS_A_MS;
}
