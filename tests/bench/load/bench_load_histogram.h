// SPDX-License-Identifier: Apache-2.0
/* Latencies in buckets of growing width, as HdrHistogram has them: 128 buckets for each
 * power of two, so a percentile is within 0.4 % of the true one however long the run was.
 * Any number of threads record at once; reading wants them to have stopped for exact
 * results, and is otherwise merely a little behind. */
#ifndef VXD_TESTS_BENCH_LOAD_BENCH_LOAD_HISTOGRAM_H
#define VXD_TESTS_BENCH_LOAD_BENCH_LOAD_HISTOGRAM_H

#include <stdatomic.h>
#include <stdint.h>

enum {
    LOAD_HISTOGRAM_SUB_BITS = 7,
    LOAD_HISTOGRAM_TOP_BIT = 41, /* 2^42 ns, 73 minutes; longer counts as that */
    LOAD_HISTOGRAM_BUCKETS = (LOAD_HISTOGRAM_TOP_BIT - LOAD_HISTOGRAM_SUB_BITS + 2)
                             << LOAD_HISTOGRAM_SUB_BITS
};

/* Zeroed is empty. */
struct load_histogram {
    atomic_uint_fast64_t buckets[LOAD_HISTOGRAM_BUCKETS];
    atomic_uint_fast64_t n;
    atomic_uint_fast64_t sum_ns;
    atomic_uint_fast64_t max_ns;
};

/* Negative times (an engine's clock against ours) count as zero. */
void load_histogram_record(struct load_histogram *histogram, int64_t ns);

/* The time in milliseconds that a share of all (0 to 1) did not exceed; 0 when empty. */
double load_histogram_percentile_ms(const struct load_histogram *histogram, double share);
double load_histogram_mean_ms(const struct load_histogram *histogram);
double load_histogram_max_ms(const struct load_histogram *histogram);

#endif
