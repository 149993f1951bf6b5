// SPDX-License-Identifier: Apache-2.0
/* The counters, shared by metrics.c, which counts, and metrics_text.c, which writes them. */
#ifndef VXD_SERVER_OBSERVE_METRICS_INTERNAL_H
#define VXD_SERVER_OBSERVE_METRICS_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "proto/base/name.h"
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

/* What became of requests, as far as it concerns their token. */
enum vxd_outcome {
    VXD_OUTCOME_OK,
    VXD_OUTCOME_FAILED,
    VXD_OUTCOME_REFUSED,   /* overload, limits, scopes */
    VXD_OUTCOME_CANCELLED, /* its sender has gone */
    VXD_OUTCOMES
};
extern const char *const vxd_outcome_names[VXD_OUTCOMES];

struct vxd_token_metrics {
    char name[VXD_NAME_BYTES];
    _Atomic uint64_t requests[VXD_OUTCOMES];
    _Atomic uint64_t sum_ns;
};

struct vxd_metrics {
    pthread_mutex_t token_mutex; /* guards adding */
    atomic_size_t n_tokens;      /* names that are there */
    struct vxd_token_metrics
        tokens[VXD_METRICS_TOKENS + 1]; /* the last one: all others */
    struct vxd_method_metrics methods[VXD_METRICS_MAX_METHODS];
    struct vxd_histogram queue_wait;
    struct vxd_histogram publish; /* by vxd_metrics_small_bounds */
    _Atomic uint64_t superseded;
    _Atomic uint64_t rejected[VXD_METRICS_REASONS];
    _Atomic uint64_t points;
};

#endif
