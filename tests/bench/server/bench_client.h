// SPDX-License-Identifier: Apache-2.0
/* What benchmarks of a running daemon share: the clock, rows of percentiles, and the
 * floor. */
#ifndef VXD_TESTS_BENCH_SERVER_BENCH_CLIENT_H
#define VXD_TESTS_BENCH_SERVER_BENCH_CLIENT_H

#include "client/c/include/voxeld.h"
#include "tests/bench/server/nng_floor.h"

double bench_now_ms(void);

/* Prints what failed; returns EXIT_FAILURE. */
int bench_fail(const char *what, const struct voxeld_error *error);

/* Print the head of the rows, and one row: median, 99th percentile and maximum of n >
 * 0 times, which it sorts. A row of zeros is not printed. */
void bench_print_head(void);
void bench_print_row(const char *name, double *ms, long n);

/* Measures nng's bare round trip of these sizes and prints it as such a row; ms[]
 * holds n times, which it sorts. EXIT_SUCCESS or, with a message, EXIT_FAILURE. */
int bench_print_floor(struct nng_floor *floor, size_t n_request, size_t n_reply, long n,
                      double *ms);

#endif
