// SPDX-License-Identifier: Apache-2.0
/* What a benchmark needs of a CUDA device besides the engine: a clock, and the rates
 * of random access. */
#ifndef VXD_TESTS_BENCH_SUPPORT_FLOORS_H
#define VXD_TESTS_BENCH_SUPPORT_FLOORS_H

#include "gpu/core/core.h"

#ifdef __cplusplus
extern "C" {
#endif

struct vxd_bench_clock;

/* NULL where no event can be created. */
struct vxd_bench_clock *vxd_bench_clock_create(struct vxd_queue *queue);
void vxd_bench_clock_destroy(struct vxd_bench_clock *clock);

/* Mark the beginning and the end of a timed section in queue order. */
bool vxd_bench_clock_start(struct vxd_bench_clock *clock);
bool vxd_bench_clock_stop(struct vxd_bench_clock *clock);

/* Device milliseconds of the last section, after a vxd_queue_wait; negative on
 * failure. */
float vxd_bench_clock_ms(struct vxd_bench_clock *clock);

/* Queues a kernel that reads n_reads pieces of 32 bytes at random places of a buffer. */
bool vxd_bench_gather(struct vxd_queue *queue, const void *buffer, size_t n_bytes,
                      size_t n_reads);

/* Queues a kernel of n_swaps compare-and-swaps from 0 of 64-bit words at random places
 * of a buffer. The buffer must contain zeros for swaps to succeed. */
bool vxd_bench_cas(struct vxd_queue *queue, void *buffer, size_t n_bytes, size_t n_swaps);

#ifdef __cplusplus
}
#endif
#endif
