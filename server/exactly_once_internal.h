// SPDX-License-Identifier: Apache-2.0
/* What the files of exactly-once share. One lock guards it all, the requests' next_repeat
 * included; functions here are called with it held. */
#ifndef VXD_SERVER_EXACTLY_ONCE_INTERNAL_H
#define VXD_SERVER_EXACTLY_ONCE_INTERNAL_H

#include <nettle/umac.h>
#include <pthread.h>

#include "server/exactly_once.h"

enum {
    VXD_ONCE_BUCKETS = 1024,
    VXD_ONCE_MAX_FORGOTTEN = 4096
};

struct vxd_once_client {
    char principal[VXD_NAME_BYTES];
    char client_id[VXD_NAME_BYTES];
    struct vxd_once_record *records[VXD_ONCE_OUTCOMES]; /* by when they came */
    size_t n_records;
    size_t n_running;
    uint64_t floor;      /* the highest sequence that was forgotten */
    size_t n_on_disk;    /* of its outcomes by sequence */
    bool has_disk_floor; /* and its floor is there, or one that was */
    struct vxd_once_client *in_bucket;
    struct vxd_once_client *newer; /* heard later */
    struct vxd_once_client *older;
};

struct vxd_once_record {
    struct vxd_once *once;
    struct vxd_once_client *client;
    uint64_t sequence;        /* 0: by its key */
    char key[VXD_NAME_BYTES]; /* Idempotency-Key */
    uint8_t digest[VXD_ONCE_DIGEST_BYTES];
    bool is_done;
    bool arrays_dropped;
    bool is_on_disk;             /* handed over, at least */
    struct vxd_request *waiting; /* by next_repeat, first come first */
    size_t n_bytes;
    uint8_t *reply; /* VXD_ONCE_REPLY_BYTES until it is done */
};

/* An outcome that the disk has and memory has no more. */
struct vxd_once_forgotten {
    uint8_t owner[VXD_ONCE_CLIENT_BYTES];
    size_t n_owner_bytes;
    uint64_t sequence;
    bool is_evicted; /* the whole client: its floor goes as well */
};

struct vxd_once {
    uint64_t max_bytes;
    uint32_t max_clients;
    struct umac128_ctx hash; /* the key is set, nothing hashed */
    pthread_mutex_t mutex;   /* guards all below */
    struct vxd_once_client *buckets[VXD_ONCE_BUCKETS];
    struct vxd_once_client *newest;
    struct vxd_once_client *oldest;
    struct vxd_once_usage usage;
    struct vxd_once_forgotten *forgotten; /* first come first */
    size_t n_forgotten;
    size_t forgotten_room;
};

/* exactly_once.c ---------------------------------------------------------------------------- */

/* The client of these names; NULL. */
struct vxd_once_client *vxd_once_look_up(const struct vxd_once *once,
                                         const char *principal, const char *client_id);
/* The same, heard now, made where there is none: those that were silent longest make place.
 * errors  UNAVAILABLE, RESOURCE_EXHAUSTED */
enum vxd_status vxd_once_find_client(struct vxd_once *once,
                                     const struct vxd_request *request,
                                     struct vxd_once_client **out, struct vxd_err *err);
/* Of the request's number or key; NULL. */
struct vxd_once_record *vxd_once_find_record(const struct vxd_once_client *client,
                                             const struct vxd_request *request);
/* Files a request: request->once is its record.
 * errors  FAILED_PRECONDITION, UNAVAILABLE, RESOURCE_EXHAUSTED */
enum vxd_status vxd_once_add_record(struct vxd_once *once, struct vxd_once_client *client,
                                    struct vxd_request *request, const uint8_t *digest,
                                    struct vxd_err *err);
/* What a record counts of the bytes. */
uint64_t vxd_once_record_bytes(const struct vxd_once_record *record);

/* exactly_once_disk.c ----------------------------------------------------------------------- */

/* An outcome is forgotten: the disk is told with the next one that is put there. */
void vxd_once_note_forgotten(struct vxd_once_record *record, bool is_evicted);
/* So is a client of which the disk has nothing but the floor. */
void vxd_once_note_evicted(struct vxd_once *once, const struct vxd_once_client *client);

#endif
