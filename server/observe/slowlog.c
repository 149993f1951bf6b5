// SPDX-License-Identifier: Apache-2.0
#include "server/observe/slowlog.h"

#include <pthread.h>
#include <stdlib.h>

struct vxd_slowlog {
    pthread_mutex_t mutex;
    uint64_t n_added;
    struct vxd_slow_entry entries[VXD_SLOWLOG_ENTRIES];
};

enum vxd_status vxd_slowlog_create(struct vxd_slowlog **out, struct vxd_err *err)
{
    struct vxd_slowlog *slowlog = calloc(1, sizeof *slowlog);

    if (slowlog == NULL || pthread_mutex_init(&slowlog->mutex, NULL) != 0) {
        free(slowlog);
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for the slow log");
    }
    *out = slowlog;
    return VXD_OK;
}

void vxd_slowlog_destroy(struct vxd_slowlog *slowlog)
{
    if (slowlog != NULL) {
        (void)pthread_mutex_destroy(&slowlog->mutex);
        free(slowlog);
    }
}

void vxd_slowlog_add(struct vxd_slowlog *slowlog, const struct vxd_slow_entry *entry)
{
    if (entry->total_ms < VXD_SLOWLOG_MS) {
        return;
    }
    (void)pthread_mutex_lock(&slowlog->mutex);
    slowlog->entries[slowlog->n_added++ % VXD_SLOWLOG_ENTRIES] = *entry;
    (void)pthread_mutex_unlock(&slowlog->mutex);
}

size_t vxd_slowlog_read(struct vxd_slowlog *slowlog,
                        struct vxd_slow_entry out[VXD_SLOWLOG_ENTRIES])
{
    size_t n;

    (void)pthread_mutex_lock(&slowlog->mutex);
    n = slowlog->n_added < VXD_SLOWLOG_ENTRIES ? (size_t)slowlog->n_added
                                               : VXD_SLOWLOG_ENTRIES;
    for (size_t i = 0; i < n; i++) {
        out[i] = slowlog->entries[(slowlog->n_added - 1 - i) % VXD_SLOWLOG_ENTRIES];
    }
    (void)pthread_mutex_unlock(&slowlog->mutex);
    return n;
}
