// SPDX-License-Identifier: Apache-2.0
/* The floor of a round trip: nng carrying messages of the same sizes over ipc between two
 * processes that do nothing else. */
#ifndef VXD_TESTS_BENCH_SERVER_NNG_FLOOR_H
#define VXD_TESTS_BENCH_SERVER_NNG_FLOOR_H

#include <stddef.h>

struct nng_floor;

/* Starts the other process. Call before anything uses nng: threads do not survive a fork.
 * NULL when it cannot. */
struct nng_floor *nng_floor_start(void);

/* Round trips of n_up bytes there and n_down bytes back, n_repeat times; milliseconds of
 * each into ms[]. 0, or -1. n_up is at least 8. */
int nng_floor_measure(struct nng_floor *floor, size_t n_up, size_t n_down, long n_repeat,
                      double *ms);

/* Ends the other process and frees. NULL is fine. */
void nng_floor_stop(struct nng_floor *floor);

#endif
