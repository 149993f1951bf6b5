// SPDX-License-Identifier: Apache-2.0
/* What the files of exactly-once share. One lock guards it all, the requests' next_repeat
 * included; functions here are called with it held. */
#ifndef VXD_SERVER_REQUEST_EXACTLY_ONCE_INTERNAL_H
#define VXD_SERVER_REQUEST_EXACTLY_ONCE_INTERNAL_H

#include <nettle/umac.h>
#include <pthread.h>

#include "proto/base/name.h"
#include "server/request/exactly_once.h"

enum {
    VXD_ONCE_BUCKETS = 1024,
    VXD_ONCE_WATERMARK_BUCKETS = 16384,
    VXD_ONCE_MAX_FORGOTTEN = 4096
};

/* What a client is known by when its outcomes are forgotten. */
struct vxd_once_watermark {
    struct vxd_once_watermark *in_bucket; /* these three: of a client that went */
    struct vxd_once_watermark *newer;     /* went later */
    struct vxd_once_watermark *older;
    uint64_t sequence; /* the highest that was forgotten, 0 = none */
    bool is_on_disk;   /* a row has it, or had one that was */
    char names[];      /* principal and client_id, each with its 0 */
};

struct vxd_once_client {
    char principal[VXD_NAME_BYTES];
    char client_id[VXD_NAME_BYTES];
    struct vxd_once_record *records[VXD_ONCE_OUTCOMES]; /* by when they came */
    size_t n_records;
    size_t n_running;
    struct vxd_once_watermark *watermark; /* its own */
    size_t n_on_disk;                     /* of its outcomes by sequence */
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

/* What the disk has and memory has no more: an outcome, or (sequence 0, no key) a watermark. */
struct vxd_once_forgotten {
    uint8_t owner[VXD_ONCE_CLIENT_BYTES];
    size_t n_owner_bytes;
    uint64_t sequence;
    bool has_watermark; /* what the watermark is now takes its place */
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
    struct vxd_once_watermark
        *watermarks[VXD_ONCE_WATERMARK_BUCKETS]; /* of clients that went */
    struct vxd_once_watermark *newest_watermark;
    struct vxd_once_watermark *oldest_watermark;
    size_t n_watermarks;
    size_t max_watermarks;                /* VXD_ONCE_WATERMARKS, but in tests */
    struct vxd_once_forgotten *forgotten; /* first come first */
    size_t n_forgotten;
    size_t forgotten_capacity;
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
/* Of a client's names. */
uint32_t vxd_once_hash(const char *principal, const char *client_id);
/* What a record counts of the bytes. */
uint64_t vxd_once_record_bytes(const struct vxd_once_record *record);

/* exactly_once_disk.c ----------------------------------------------------------------------- */

/* An outcome is forgotten: the disk is told with the next one that is put there, and of the watermark
 * that it left, unless its whole client goes, which is noted by itself. */
void vxd_once_note_forgotten(struct vxd_once_record *record, bool has_watermark);
/* A watermark that the disk has, or is to have, became another one, or is gone for good. */
/* False: the disk will not be told, and must keep the outcomes that tell it. */
bool vxd_once_note_watermark(struct vxd_once *once,
                             const struct vxd_once_watermark *watermark);

static inline void vxd_once_raise_watermark(struct vxd_once_watermark *watermark,
                                            uint64_t sequence)
{
    watermark->sequence = sequence > watermark->sequence ? sequence : watermark->sequence;
}

/* exactly_once_watermarks.c --------------------------------------------------------------------- */

/* The watermark of a client that went; NULL. */
struct vxd_once_watermark *vxd_once_find_watermark(struct vxd_once *once,
                                                   const char *principal,
                                                   const char *client_id);
/* The same, the caller's from now on; a new one where there is none. NULL = no memory. */
struct vxd_once_watermark *vxd_once_take_watermark(struct vxd_once *once,
                                                   const char *principal,
                                                   const char *client_id);
/* Of a client that goes; the one that went first may go for good. */
void vxd_once_keep_watermark(struct vxd_once *once,
                             struct vxd_once_watermark *take_watermark);
/* With all of it. */
void vxd_once_free_watermarks(struct vxd_once *once);

#endif
