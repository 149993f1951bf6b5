// SPDX-License-Identifier: Apache-2.0
/* The slowest recent requests, for /v1/status: a ring of the last 128 that took at least
 * 10 ms. Thread-safe. */
#ifndef VXD_SERVER_OBSERVE_SLOWLOG_H
#define VXD_SERVER_OBSERVE_SLOWLOG_H

#include <stddef.h>
#include <stdint.h>

#include "proto/base/base.h"
#include "proto/base/name.h"

#define VXD_SLOWLOG_ENTRIES 128
#define VXD_SLOWLOG_MS 10.0

struct vxd_slow_entry {
    char request_id[VXD_NAME_BYTES];
    char client_id[VXD_NAME_BYTES];
    const char *method; /* a name of the method table, or "unknown" */
    enum vxd_status code;
    double queue_ms;
    double total_ms;
    int64_t finished_unix_ns;
};

struct vxd_slowlog;

/* errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_slowlog_create(struct vxd_slowlog **out, struct vxd_err *err);
void vxd_slowlog_destroy(struct vxd_slowlog *slowlog);

/* Copies the entry over the oldest; what took less than VXD_SLOWLOG_MS is ignored. */
void vxd_slowlog_add(struct vxd_slowlog *slowlog, const struct vxd_slow_entry *entry);

/* Copies the entries, newest first; returns how many. */
size_t vxd_slowlog_read(struct vxd_slowlog *slowlog,
                        struct vxd_slow_entry out[VXD_SLOWLOG_ENTRIES]);

#endif
