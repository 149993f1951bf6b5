// SPDX-License-Identifier: Apache-2.0
/* The histogram against sorting all values. */
#include <math.h>

#include "tests/bench/load/bench_load_histogram.h"
#include "tests/support/test.h"

enum {
    N_VALUES = 20000
};

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* From one nanosecond to a quarter of an hour, evenly over the powers of two. */
static void fill(int64_t *values)
{
    uint64_t state = 7;

    for (size_t i = 0; i < N_VALUES; i++) {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
        values[i] = (int64_t)exp2((double)(state >> 40) / 16777216.0 * 39.0);
    }
}

static void test_percentiles_of_any_size_are_within_half_a_percent(void)
{
    static const double shares[] = {0.0, 0.001, 0.1, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0};
    struct load_histogram *histogram = calloc(1, sizeof *histogram);
    int64_t *values = calloc(N_VALUES, sizeof *values);
    double sum = 0;

    if (histogram != NULL && values != NULL) {
        fill(values);
        for (size_t i = 0; i < N_VALUES; i++) {
            load_histogram_record(histogram, values[i]);
            sum += (double)values[i];
        }
        qsort(values, N_VALUES, sizeof *values, compare);
        for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
            double rank = ceil(shares[i] * N_VALUES);
            double exact = (double)values[rank > 1 ? (size_t)rank - 1 : 0] / 1e6;
            double found = load_histogram_percentile_ms(histogram, shares[i]);

            CHECK(fabs(found - exact) <= 0.005 * exact);
        }
        CHECK(load_histogram_max_ms(histogram) == (double)values[N_VALUES - 1] / 1e6);
        CHECK(fabs(load_histogram_mean_ms(histogram) * N_VALUES * 1e6 / sum - 1) < 1e-9);
    }
    CHECK(histogram != NULL && values != NULL);
    free(values);
    free(histogram);
}

static void test_extremes_are_counted_and_nothing_is_zero(void)
{
    struct load_histogram *histogram = calloc(1, sizeof *histogram);

    REQUIRE(histogram != NULL);
    CHECK(load_histogram_percentile_ms(histogram, 0.99) == 0);
    CHECK(load_histogram_mean_ms(histogram) == 0);
    load_histogram_record(histogram, -5);
    CHECK(load_histogram_percentile_ms(histogram, 1) == 0);
    load_histogram_record(histogram, INT64_MAX);
    CHECK(load_histogram_percentile_ms(histogram, 0.5) == 0);
    CHECK(load_histogram_percentile_ms(histogram, 1) > 4e6);
    CHECK(load_histogram_percentile_ms(histogram, 1) <= load_histogram_max_ms(histogram));
    free(histogram);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_percentiles_of_any_size_are_within_half_a_percent),
    VXD_TEST(test_extremes_are_counted_and_nothing_is_zero),
};
VXD_TEST_MAIN(tests)
