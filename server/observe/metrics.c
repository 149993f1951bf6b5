// SPDX-License-Identifier: Apache-2.0
/* Counting: relaxed atomics, since a scrape needs no order between counters. */
#include "server/observe/metrics.h"

#include <stdlib.h>
#include <string.h>

#include "server/observe/metrics_internal.h"

const double vxd_metrics_bounds[VXD_METRICS_BUCKETS] = {
    0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10};

const double vxd_metrics_small_bounds[VXD_METRICS_BUCKETS] = {
    1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 3e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 1e-2, 1e-1, 1};

const char *const vxd_metrics_reasons[VXD_METRICS_REASONS] = {
    "queue_full",    "inflight_bytes",    "message_bytes", "draining", "lost", "token",
    "failed_logins", "permission_denied", "connections",   "quota",    "other"};

const char *const vxd_outcome_names[VXD_OUTCOMES] = {"ok", "failed", "refused",
                                                     "cancelled"};

static void add(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

static uint64_t get(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static void observe(struct vxd_histogram *histogram, const double *bounds, double seconds)
{
    for (int i = 0; i < VXD_METRICS_BUCKETS; i++) {
        if (seconds <= bounds[i]) {
            add(&histogram->buckets[i], 1);
            break;
        }
    }
    add(&histogram->sum_ns, seconds > 0 ? (uint64_t)(seconds * 1e9) : 0);
    add(&histogram->n, 1);
}

enum vxd_status vxd_metrics_create(struct vxd_metrics **out, struct vxd_err *err)
{
    struct vxd_metrics *metrics = calloc(1, sizeof *metrics);

    if (metrics == NULL || pthread_mutex_init(&metrics->token_mutex, NULL) != 0) {
        free(metrics);
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for the metrics");
    }
    (void)snprintf(metrics->tokens[VXD_METRICS_TOKENS].name, VXD_NAME_BYTES, "others");
    *out = metrics;
    return VXD_OK;
}

void vxd_metrics_destroy(struct vxd_metrics *metrics)
{
    if (metrics != NULL) {
        (void)pthread_mutex_destroy(&metrics->token_mutex);
    }
    free(metrics);
}

/* Of those that are there, up to n. */
static struct vxd_token_metrics *find_token(struct vxd_metrics *metrics,
                                            const char *token, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(metrics->tokens[i].name, token) == 0) {
            return &metrics->tokens[i];
        }
    }
    return NULL;
}

static struct vxd_token_metrics *take_token(struct vxd_metrics *metrics,
                                            const char *token)
{
    /* Names never change once they are counted, so looking needs no lock. */
    struct vxd_token_metrics *found =
        find_token(metrics, token, atomic_load(&metrics->n_tokens));
    size_t n;

    if (found != NULL) {
        return found;
    }
    (void)pthread_mutex_lock(&metrics->token_mutex);
    n = atomic_load(&metrics->n_tokens);
    found = find_token(metrics, token, n);
    if (found == NULL && n == VXD_METRICS_TOKENS) {
        found = &metrics->tokens[VXD_METRICS_TOKENS];
    } else if (found == NULL) {
        found = &metrics->tokens[n];
        (void)snprintf(found->name, sizeof found->name, "%s", token);
        atomic_store(&metrics->n_tokens, n + 1);
    }
    (void)pthread_mutex_unlock(&metrics->token_mutex);
    return found;
}

static enum vxd_outcome outcome_of(enum vxd_status code)
{
    switch (code) {
    case VXD_OK:
        return VXD_OUTCOME_OK;
    case VXD_UNAVAILABLE:
    case VXD_RESOURCE_EXHAUSTED:
    case VXD_PERMISSION_DENIED:
    case VXD_UNAUTHENTICATED:
        return VXD_OUTCOME_REFUSED;
    case VXD_CANCELLED:
        return VXD_OUTCOME_CANCELLED;
    default:
        return VXD_OUTCOME_FAILED;
    }
}

void vxd_metrics_count_token(struct vxd_metrics *metrics, const char *token,
                             enum vxd_status code, double total_s)
{
    struct vxd_token_metrics *counted = take_token(metrics, token);

    add(&counted->requests[outcome_of(code)], 1);
    add(&counted->sum_ns, total_s > 0 ? (uint64_t)(total_s * 1e9) : 0);
}

void vxd_metrics_count_request(struct vxd_metrics *metrics, size_t method,
                               enum vxd_status code, double queue_s, double total_s)
{
    size_t index =
        method < VXD_METRICS_MAX_METHODS ? method : VXD_METRICS_MAX_METHODS - 1;
    size_t known = (size_t)code < VXD_METRICS_CODES ? (size_t)code : (size_t)VXD_UNKNOWN;

    add(&metrics->methods[index].requests[known], 1);
    observe(&metrics->methods[index].duration, vxd_metrics_bounds, total_s);
    if (queue_s >= 0) {
        observe(&metrics->queue_wait, vxd_metrics_bounds, queue_s);
    }
}

void vxd_metrics_count_publish(struct vxd_metrics *metrics, double seconds)
{
    observe(&metrics->publish, vxd_metrics_small_bounds, seconds);
}

void vxd_metrics_count_superseded(struct vxd_metrics *metrics)
{
    add(&metrics->superseded, 1);
}

void vxd_metrics_count_rejected(struct vxd_metrics *metrics, const char *reason)
{
    size_t i = 0;

    while (i < VXD_METRICS_REASONS - 1 && strcmp(vxd_metrics_reasons[i], reason) != 0) {
        i++;
    }
    add(&metrics->rejected[i], 1);
}

void vxd_metrics_count_points(struct vxd_metrics *metrics, uint64_t n_points)
{
    add(&metrics->points, n_points);
}

void vxd_metrics_method(struct vxd_metrics *metrics, size_t method, uint64_t *n_ok,
                        uint64_t *n_failed, double *mean_ms)
{
    const struct vxd_method_metrics *m = &metrics->methods[method];
    uint64_t n = get(&m->duration.n);

    *n_ok = get(&m->requests[VXD_OK]);
    *n_failed = 0;
    for (size_t i = 1; i < VXD_METRICS_CODES; i++) {
        *n_failed += get(&m->requests[i]);
    }
    *mean_ms = n > 0 ? (double)get(&m->duration.sum_ns) / (double)n / 1e6 : 0;
}
