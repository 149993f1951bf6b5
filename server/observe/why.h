// SPDX-License-Identifier: Apache-2.0
/* Why recent requests were refused or took long: who was ahead of them, and which limit it was. Each
 * token has its own part of the memory (by a hash of its name), so that one that is refused all the
 * time does not push out what others want to know. Thread-safe. */
#ifndef VXD_SERVER_OBSERVE_WHY_H
#define VXD_SERVER_OBSERVE_WHY_H

#include "proto/base/base.h"
#include "proto/base/name.h"
#include "server/observe/trace.h"

#define VXD_WHY_GROUPS 6

/* Requests of one method and token. */
struct vxd_why_ahead {
    const char *method; /* of the method table */
    char token[VXD_NAME_BYTES];
    uint32_t n;
    bool is_running;
};

/* The queue as a request found it. */
struct vxd_why_queue {
    uint32_t position; /* how many were to be taken before it */
    uint32_t n_groups;
    struct vxd_why_ahead groups[VXD_WHY_GROUPS];
    uint32_t n_others; /* in further groups */
};

enum vxd_why_state {
    VXD_WHY_ANSWERED,
    VXD_WHY_WAITS,
    VXD_WHY_RUNS
};

struct vxd_why_entry {
    char request_id[VXD_NAME_BYTES];
    char token[VXD_NAME_BYTES]; /* whose it is */
    const char *method;         /* of the method table, or "unknown" */
    enum vxd_why_state state;
    struct vxd_err err; /* code VXD_OK: it was done */
    const char *key;    /* of the configuration; "" = none is to blame */
    uint64_t limit;     /* the key's value; has_limit: it is a number */
    bool has_limit;
    bool has_queue;
    struct vxd_why_queue queue;
    double receive_ms, decode_ms, wait_ms, engine_ms, commit_ms, total_ms;
    char trace_id[VXD_TRACE_ID_BYTES];
    int64_t finished_unix_ns; /* 0: it is not */
};

struct vxd_whys;

/* errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_whys_create(struct vxd_whys **out, struct vxd_err *err);
void vxd_whys_destroy(struct vxd_whys *whys);

/* Copies it over the oldest of its token's part. */
void vxd_whys_add(struct vxd_whys *whys, const struct vxd_why_entry *entry);

/* Copies the newest of this request id; token NULL: of any token. False: there is none. */
bool vxd_whys_find(struct vxd_whys *whys, const char *request_id, const char *token,
                   struct vxd_why_entry *out);

/* Counts a request of this method and token into a queue's groups. */
void vxd_why_count(struct vxd_why_queue *queue, const char *method, const char *token,
                   bool is_running);

#endif
