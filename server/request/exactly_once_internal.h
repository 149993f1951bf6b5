// SPDX-License-Identifier: Apache-2.0
/* What the files of exactly-once share. One lock guards it all, the requests' next_repeat
 * included; it is held when functions of this header are called. */
#ifndef VXD_SERVER_REQUEST_EXACTLY_ONCE_INTERNAL_H
#define VXD_SERVER_REQUEST_EXACTLY_ONCE_INTERNAL_H

#include <nettle/umac.h>
#include <pthread.h>

#include "proto/base/name.h"
#include "server/request/exactly_once.h"

enum {
    VXD_ONCE_BUCKETS = 1024,
    VXD_ONCE_OWNER_BUCKETS = 256,
    VXD_ONCE_WATERMARK_BUCKETS = 16384,
    VXD_ONCE_MAX_FORGOTTEN = 4096
};

/* The clients of one principal: limits hold for each of these by itself, so nobody's memory is
 * pushed out by another. Owners stay until the end; there are as many as tokens and users. */
struct vxd_once_owner {
    struct vxd_once_owner *in_bucket;
    char principal[VXD_NAME_BYTES];
    size_t n_clients;
    uint64_t n_bytes;
    struct vxd_once_client *newest;
    struct vxd_once_client *oldest;
    struct vxd_once_watermark *newest_watermark; /* of forgotten clients */
    struct vxd_once_watermark *oldest_watermark;
    size_t n_watermarks;
};

/* What stays of a client when its outcomes are forgotten. */
struct vxd_once_watermark {
    struct vxd_once_owner *owner;
    struct vxd_once_watermark *in_bucket; /* these three are for a forgotten client */
    struct vxd_once_watermark *newer;     /* forgotten later */
    struct vxd_once_watermark *older;
    uint64_t sequence; /* the highest that was forgotten, 0 = none */
    bool is_on_disk;   /* a row has it, or an outcome that it covers */
    char names[];      /* principal and client_id, each with its 0 */
};

struct vxd_once_client {
    struct vxd_once_owner *owner;
    int64_t used_ns; /* its last request came; 0: in an earlier process */
    char principal[VXD_NAME_BYTES];
    char client_id[VXD_NAME_BYTES];
    struct vxd_once_record
        *records[VXD_ONCE_OUTCOMES]; /* in the order in which they came */
    size_t n_records;
    size_t n_running;
    struct vxd_once_watermark *watermark; /* its own */
    size_t n_on_disk; /* how many outcomes with a sequence are there */
    struct vxd_once_client *in_bucket;
    struct vxd_once_client *newer; /* its last request came later */
    struct vxd_once_client *older;
};

struct vxd_once_record {
    struct vxd_once *once;
    struct vxd_once_client *client;
    uint64_t sequence;        /* 0: the key says which */
    char key[VXD_NAME_BYTES]; /* Idempotency-Key */
    uint8_t digest[VXD_ONCE_DIGEST_BYTES];
    bool is_done;
    bool arrays_dropped;
    bool is_on_disk;             /* or handed over to the journal */
    struct vxd_request *first;   /* the one that runs; NULL once it is done */
    struct vxd_request *waiting; /* linked by next_repeat, the first to come first */
    size_t n_bytes;
    uint8_t *reply; /* VXD_ONCE_REPLY_BYTES until it is done */
};

/* What the disk has to forget because memory has forgotten it: an outcome, or a
 * watermark, which has sequence 0 and no key. */
struct vxd_once_forgotten {
    uint8_t owner[VXD_ONCE_CLIENT_BYTES];
    size_t n_owner_bytes;
    uint64_t sequence;
    bool has_watermark; /* the client's present watermark replaces it */
};

struct vxd_once {
    uint64_t max_bytes; /* of one owner, like the next two */
    uint32_t max_clients;
    int64_t min_life_ns;     /* no client is forgotten for another one sooner */
    struct umac128_ctx hash; /* with the key set and nothing hashed yet */
    pthread_mutex_t mutex;   /* guards all below */
    struct vxd_once_client *buckets[VXD_ONCE_BUCKETS];
    struct vxd_once_owner *owners[VXD_ONCE_OWNER_BUCKETS];
    struct vxd_once_usage usage;
    struct vxd_once_watermark
        *watermarks[VXD_ONCE_WATERMARK_BUCKETS]; /* of forgotten clients */
    size_t n_watermarks;
    size_t max_watermarks; /* of an owner: VXD_ONCE_WATERMARKS; tests lower it */
    struct vxd_once_forgotten *forgotten; /* the first to come first */
    size_t n_forgotten;
    size_t forgotten_capacity;
};

/* exactly_once.c ---------------------------------------------------------------------------- */

/* Finds the client of these names; NULL where there is none. */
struct vxd_once_client *vxd_once_look_up(const struct vxd_once *once,
                                         const char *principal, const char *client_id);
/* Finds the client of a request and makes one where there is none; its last request came at
 * now_ns. Clients of the same owner that have been silent longest are forgotten for it.
 * errors  UNAVAILABLE, RESOURCE_EXHAUSTED */
enum vxd_status vxd_once_find_client(struct vxd_once *once,
                                     const struct vxd_request *request, int64_t now_ns,
                                     struct vxd_once_client **out, struct vxd_err *err);
/* Finds the owner of this name, and makes one; NULL where there is no memory. */
struct vxd_once_owner *vxd_once_find_owner(struct vxd_once *once, const char *principal);
/* Counts bytes that a client of the owner takes, or gives back. */
void vxd_once_count_bytes(struct vxd_once *once, struct vxd_once_owner *owner,
                          uint64_t taken, uint64_t given_back);
/* Finds the record of the request's number or key; NULL where there is none. */
struct vxd_once_record *vxd_once_find_record(const struct vxd_once_client *client,
                                             const struct vxd_request *request);
/* Makes a record of a request; request->once is it.
 * errors  FAILED_PRECONDITION, UNAVAILABLE, RESOURCE_EXHAUSTED */
enum vxd_status vxd_once_add_record(struct vxd_once *once, struct vxd_once_client *client,
                                    struct vxd_request *request, const uint8_t *digest,
                                    struct vxd_err *err);
/* Hashes a client's names. */
uint32_t vxd_once_hash(const char *principal, const char *client_id);
/* How many bytes a record counts for. */
uint64_t vxd_once_record_bytes(const struct vxd_once_record *record);

/* exactly_once_disk.c ----------------------------------------------------------------------- */

/* Notes that an outcome is forgotten, for the next transaction. With has_watermark the
 * client goes on, and its watermark is written; a whole client that is forgotten is noted
 * by itself. */
void vxd_once_note_forgotten(struct vxd_once_record *record, bool has_watermark);
/* Notes that a watermark that the disk has, or is to have, changed or was dropped. */
/* False: it could not be noted, so the disk must keep the outcomes that imply the
 * watermark. */
bool vxd_once_note_watermark(struct vxd_once *once,
                             const struct vxd_once_watermark *watermark);

static inline void vxd_once_raise_watermark(struct vxd_once_watermark *watermark,
                                            uint64_t sequence)
{
    watermark->sequence = sequence > watermark->sequence ? sequence : watermark->sequence;
}

/* exactly_once_watermarks.c --------------------------------------------------------------------- */

/* Finds the watermark of a forgotten client; NULL where there is none. */
struct vxd_once_watermark *vxd_once_find_watermark(struct vxd_once *once,
                                                   const char *principal,
                                                   const char *client_id);
/* Takes the watermark of a forgotten client out, for the caller to own, or makes a new
 * one. NULL where there is no memory. */
struct vxd_once_watermark *vxd_once_take_watermark(struct vxd_once *once,
                                                   const char *principal,
                                                   const char *client_id);
/* Keeps the watermark of a client that is being forgotten; the oldest one may be dropped
 * for it. */
void vxd_once_keep_watermark(struct vxd_once *once,
                             struct vxd_once_watermark *take_watermark);
/* Frees all of them. */
void vxd_once_free_watermarks(struct vxd_once *once);

#endif
