// SPDX-License-Identifier: Apache-2.0
/* The device of a benchmark: context, queue and a clock, which uses CUDA events on a
 * GPU. */
#ifndef VXD_TESTS_BENCH_SUPPORT_BENCH_DEVICE_H
#define VXD_TESTS_BENCH_SUPPORT_BENCH_DEVICE_H

#include "gpu/core/core.h"

/* Random reads and compare-and-swaps a second, and copied bytes a second (bytes read
 * plus bytes written); 0 = not measured (the CPU measures the copy only). */
struct bench_floors {
    double copy_bytes_per_s;
    double gather_per_s; /* pieces of 32 bytes */
    double cas_per_s;    /* 64-bit words */
};

struct vxd_bench_clock;

struct bench_device {
    struct vxd_context *context;
    struct vxd_queue *queue;
    struct vxd_bench_clock *clock; /* NULL on the CPU */
    struct vxd_buffer flush; /* GPU: written before a timed call, to empty its caches */
    int n_flushes; /* how often; 0: three times, which takes half a millisecond */
    double started_s;
};

/* n_threads: of the CPU pool, 0 = all cores. On failure nothing stays allocated. */
enum vxd_status bench_device_create(enum vxd_backend backend, int n_threads,
                                    struct bench_device *out, struct vxd_err *err);
/* A zeroed or destroyed device is fine. */
void bench_device_destroy(struct bench_device *device);

/* Seconds of the wall clock, from an unknown start. */
double bench_now_s(void);

/* Seconds of processor time of all threads of this process: what a measurement on a busy machine
 * can be compared by. */
double bench_cpu_s(void);

/* Parses a whole number of the command line, from least to most; anything else ends in
 * usage(), which does not return. */
long bench_number(const char *text, long least, long most, void (*usage)(void));

/* Empties the caches by writes that last longer than the host takes to queue the next
 * work, so that launch gaps are not counted as device time. Does nothing on the CPU. */
enum vxd_status bench_device_flush(struct bench_device *device, struct vxd_err *err);

/* Times a section of queued work, in seconds, after a vxd_queue_wait: by the device's
 * clock on a GPU, else by the wall clock since the start. */
bool bench_device_start(struct bench_device *device);
bool bench_device_stop(struct bench_device *device);
double bench_device_seconds(struct bench_device *device);

/* Returns the median; reorders the times. */
double bench_median(double *times, int n);

/* Floors over a table of n_bytes (at least 1 MiB), with n random accesses. */
enum vxd_status bench_device_floors(struct bench_device *device, size_t n_bytes, size_t n,
                                    struct bench_floors *out, struct vxd_err *err);

#endif
