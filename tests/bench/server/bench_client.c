// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/server/bench_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

double bench_now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

int bench_fail(const char *what, const struct voxeld_error *error)
{
    (void)fprintf(stderr, "%s: %s %s\n", what, error->field, error->message);
    return EXIT_FAILURE;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

void bench_print_head(void)
{
    (void)printf("%-32s %9s %9s %9s\n", "milliseconds", "p50", "p99", "max");
}

void bench_print_row(const char *name, double *ms, long n)
{
    qsort(ms, (size_t)n, sizeof *ms, compare);
    if (ms[n - 1] > 0) {
        (void)printf("%-32s %9.3f %9.3f %9.3f\n", name, ms[n / 2], ms[n * 99 / 100],
                     ms[n - 1]);
    }
}

int bench_print_floor(struct nng_floor *floor, size_t n_request, size_t n_reply, long n,
                      double *ms)
{
    if (nng_floor_measure(floor, n_request, n_reply, n, ms) != 0) {
        (void)fputs("cannot measure nng's bare round trip\n", stderr);
        return EXIT_FAILURE;
    }
    bench_print_row("floor: nng alone, same sizes", ms, n);
    return EXIT_SUCCESS;
}
