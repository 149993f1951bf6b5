// SPDX-License-Identifier: Apache-2.0
/* The counters, shared by metrics.c, which counts, and metrics_text.c, which writes them. */
#ifndef VXD_SERVER_OBSERVE_METRICS_INTERNAL_H
#define VXD_SERVER_OBSERVE_METRICS_INTERNAL_H

#include <stdatomic.h>

#include "server/observe/metrics.h"

enum {
    VXD_METRICS_CODES = 17,
    VXD_METRICS_BUCKETS = 14
};

/* Upper bounds in seconds; the last bucket, +Inf, is the count. */
extern const double vxd_metrics_bounds[VXD_METRICS_BUCKETS];
/* Upper bounds for what takes microseconds. */
extern const double vxd_metrics_small_bounds[VXD_METRICS_BUCKETS];

struct vxd_histogram {
    _Atomic uint64_t buckets[VXD_METRICS_BUCKETS]; /* not cumulative */
    _Atomic uint64_t n;
    _Atomic uint64_t sum_ns;
};

struct vxd_method_metrics {
    _Atomic uint64_t requests[VXD_METRICS_CODES];
    struct vxd_histogram duration;
};

/* Known reasons of rejection; anything else counts as the last. */
#define VXD_METRICS_REASONS 11
extern const char *const vxd_metrics_reasons[VXD_METRICS_REASONS];

struct vxd_metrics {
    struct vxd_method_metrics methods[VXD_METRICS_MAX_METHODS];
    struct vxd_histogram queue_wait;
    struct vxd_histogram publish; /* by vxd_metrics_small_bounds */
    _Atomic uint64_t superseded;
    _Atomic uint64_t rejected[VXD_METRICS_REASONS];
    _Atomic uint64_t points;
};

#endif
