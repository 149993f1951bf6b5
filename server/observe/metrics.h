// SPDX-License-Identifier: Apache-2.0
/* Prometheus metrics, base units, names as in research/service_and_style.md row 14:
 * voxeld_requests_total{op,code}, voxeld_request_duration_seconds{op} and
 * voxeld_queue_wait_seconds (histograms), voxeld_queue_depth, voxeld_inflight_bytes,
 * voxeld_device_memory_bytes{use}, voxeld_host_memory_bytes{use}, voxeld_superseded_total,
 * voxeld_rejected_total{reason}, voxeld_points_total, voxeld_maps, voxeld_map_bytes{use},
 * voxeld_networks, voxeld_network_bytes{use}, voxeld_scenes, voxeld_scene_bytes{use},
 * voxeld_scene_publish_seconds (histogram), voxeld_replay_clients, voxeld_replay_outcomes,
 * voxeld_replay_bytes, voxeld_build_info, process_*. */
#ifndef VXD_SERVER_OBSERVE_METRICS_H
#define VXD_SERVER_OBSERVE_METRICS_H

#include "proto/wire/wire.h"

/* One more than a method table may have. */
#define VXD_METRICS_MAX_METHODS 256

struct vxd_metrics;

enum vxd_status vxd_metrics_create(struct vxd_metrics **out, struct vxd_err *err);
void vxd_metrics_destroy(struct vxd_metrics *metrics);

/* Thread-safe, lock-free or one short lock. method is an index into the method table,
 * VXD_METRICS_MAX_METHODS - 1 for requests that named no known method; queue_s is below zero
 * for requests that never queue. */
void vxd_metrics_count_request(struct vxd_metrics *metrics, size_t method,
                               enum vxd_status code, double queue_s, double total_s);
/* Counts the same request for the token, or the trusted uid, of this name. Tokens beyond the first
 * VXD_METRICS_TOKENS, and senders that have none, are counted together. */
#define VXD_METRICS_TOKENS 64
void vxd_metrics_count_token(struct vxd_metrics *metrics, const char *token,
                             enum vxd_status code, double total_s);
/* Counts the time until everybody sees a version of a scene: from the end of the work
 * that made it, or for a durable scene from the moment when the journal has it on
 * disk. */
void vxd_metrics_count_publish(struct vxd_metrics *metrics, double seconds);
void vxd_metrics_count_superseded(struct vxd_metrics *metrics);
void vxd_metrics_count_rejected(struct vxd_metrics *metrics, const char *reason);
void vxd_metrics_count_points(struct vxd_metrics *metrics, uint64_t n_points);

/* Reads the totals of one method, for /v1/status. */
void vxd_metrics_method(struct vxd_metrics *metrics, size_t method, uint64_t *n_ok,
                        uint64_t *n_failed, double *mean_ms);

/* The text exposition format, in which /metrics is written: metrics_text.c. */

/* The names of methods and codes there. */
struct vxd_metrics_names {
    const char *const *methods; /* by index in the method table */
    size_t n_methods;
    const char *(*code_name)(enum vxd_status code);
};

/* Appends all that is counted here. */
void vxd_metrics_write_counters(const struct vxd_metrics *metrics,
                                const struct vxd_metrics_names *names,
                                struct vxd_text *text);

/* Append a metric's head, or the whole of one with a single value, or with the uses of a memory. */
void vxd_metrics_describe(struct vxd_text *text, const char *name, const char *type,
                          const char *help);
void vxd_metrics_write_uint(struct vxd_text *text, const char *name, const char *type,
                            const char *help, uint64_t value);
void vxd_metrics_write_real(struct vxd_text *text, const char *name, const char *type,
                            const char *help, double value);
void vxd_metrics_write_memory(struct vxd_text *text, const char *name, const char *help,
                              size_t used, size_t peak, size_t budget, size_t kept);

#endif
