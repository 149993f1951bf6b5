// SPDX-License-Identifier: Apache-2.0
/* What benches that ask a running daemon share: the clock, rows of percentiles, and the floor. */
#ifndef VXD_TESTS_BENCH_SERVER_BENCH_CLIENT_H
#define VXD_TESTS_BENCH_SERVER_BENCH_CLIENT_H

#include "client/c/include/voxeld.h"
#include "tests/bench/server/nng_floor.h"

double bench_now_ms(void);

/* Says what failed; EXIT_FAILURE. */
int bench_fail(const char *what, const struct voxeld_error *error);

/* The head of the rows, and one: median, 99th percentile and maximum of n > 0 times, which are
 * sorted. One of which all are 0 is not printed. */
void bench_print_head(void);
void bench_print_row(const char *name, double *ms, long n);

/* Measures nng's bare round trip of these sizes and prints it as such a row; ms[] has room for n,
 * and has them sorted. EXIT_SUCCESS or, with a message, EXIT_FAILURE. */
int bench_print_floor(struct nng_floor *floor, size_t n_request, size_t n_reply, long n,
                      double *ms);

#endif
