// SPDX-License-Identifier: Apache-2.0
/* Each client has a short array of records. Clients are in a hash table and, of each owner, in a list
 * ordered by the time of their last request. */
#include "server/request/exactly_once.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "server/request/exactly_once_internal.h"
#include "server/request/request_prerequisite.h"
#include "server/instance/instance.h"

enum vxd_status vxd_once_create(uint64_t max_bytes, uint32_t max_clients,
                                struct vxd_once **out, struct vxd_err *err)
{
    struct vxd_once *once = calloc(1, sizeof *once);
    uint8_t key[UMAC_KEY_SIZE];
    int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, key, sizeof key) : -1;

    if (fd >= 0) {
        (void)close(fd);
    }
    if (once == NULL || n != (ssize_t)sizeof key ||
        pthread_mutex_init(&once->mutex, NULL) != 0) {
        enum vxd_status status =
            once == NULL ? vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                                    "no memory to remember outcomes")
                         : vxd_fail(err, VXD_INTERNAL, NULL,
                                    "cannot read /dev/urandom: %s", strerror(errno));

        free(once);
        return status;
    }
    once->max_bytes = max_bytes;
    once->max_clients = max_clients;
    once->max_watermarks = VXD_ONCE_WATERMARKS;
    umac128_set_key(&once->hash, key);
    *out = once;
    return VXD_OK;
}

void vxd_once_set_life(struct vxd_once *once, uint32_t seconds)
{
    once->min_life_ns = seconds * INT64_C(1000000000);
}

uint32_t vxd_once_hash(const char *principal, const char *client_id)
{
    uint32_t hash = 2166136261u; /* FNV-1a */

    for (const char *s = principal; *s != '\0'; s++) {
        hash = (hash ^ (unsigned char)*s) * 16777619u;
    }
    hash *= 16777619u;
    for (const char *s = client_id; *s != '\0'; s++) {
        hash = (hash ^ (unsigned char)*s) * 16777619u;
    }
    return hash ^ (hash >> 16);
}

static struct vxd_once_client **bucket_of(struct vxd_once *once, const char *principal,
                                          const char *client_id)
{
    return &once->buckets[vxd_once_hash(principal, client_id) % VXD_ONCE_BUCKETS];
}

static void leave_list(struct vxd_once_client *client)
{
    struct vxd_once_owner *owner = client->owner;

    *(client->newer != NULL ? &client->newer->older : &owner->newest) = client->older;
    *(client->older != NULL ? &client->older->newer : &owner->oldest) = client->newer;
    client->newer = NULL;
    client->older = NULL;
}

static void enter_list(struct vxd_once_client *client, int64_t now_ns)
{
    struct vxd_once_owner *owner = client->owner;

    client->used_ns = now_ns;
    client->older = owner->newest;
    *(owner->newest != NULL ? &owner->newest->newer : &owner->oldest) = client;
    owner->newest = client;
}

struct vxd_once_owner *vxd_once_find_owner(struct vxd_once *once, const char *principal)
{
    struct vxd_once_owner **bucket =
        &once->owners[vxd_once_hash(principal, "") % VXD_ONCE_OWNER_BUCKETS];
    struct vxd_once_owner *owner = *bucket;

    while (owner != NULL && strcmp(owner->principal, principal) != 0) {
        owner = owner->in_bucket;
    }
    if (owner == NULL) {
        owner = calloc(1, sizeof *owner);
        if (owner != NULL) {
            (void)snprintf(owner->principal, sizeof owner->principal, "%s", principal);
            owner->in_bucket = *bucket;
            *bucket = owner;
        }
    }
    return owner;
}

void vxd_once_count_bytes(struct vxd_once *once, struct vxd_once_owner *owner,
                          uint64_t taken, uint64_t given_back)
{
    owner->n_bytes += taken - given_back;
    once->usage.n_bytes += taken - given_back;
}

uint64_t vxd_once_record_bytes(const struct vxd_once_record *record)
{
    return sizeof *record + (record->is_done ? record->n_bytes : VXD_ONCE_REPLY_BYTES);
}

/* Takes a record out of its client and frees it. */
static void forget(struct vxd_once_record *record)
{
    struct vxd_once *once = record->once;
    struct vxd_once_client *client = record->client;
    size_t i = 0;

    while (client->records[i] != record) {
        i++;
    }
    client->n_records--;
    memmove(&client->records[i], &client->records[i + 1],
            (client->n_records - i) * sizeof(struct vxd_once_record *));
    client->n_running -= record->is_done ? 0 : 1;
    client->n_on_disk -= record->is_on_disk && record->key[0] == '\0' ? 1 : 0;
    once->usage.n_outcomes--;
    vxd_once_count_bytes(once, client->owner, 0, vxd_once_record_bytes(record));
    free(record->reply);
    free(record);
}

/* Forgets a client of which nothing runs. Its watermark stays, so that none of its
 * requests can take effect a second time. */
static void forget_client(struct vxd_once *once, struct vxd_once_client *client)
{
    struct vxd_once_client **at = bucket_of(once, client->principal, client->client_id);
    struct vxd_once_watermark *watermark = client->watermark;
    bool is_noted;

    for (size_t i = 0; i < client->n_records; i++) {
        vxd_once_raise_watermark(watermark, client->records[i]->sequence);
    }
    watermark->is_on_disk = watermark->is_on_disk || client->n_on_disk > 0;
    is_noted = vxd_once_note_watermark(once, watermark); /* then its outcomes may go */
    while (client->n_records > 0) {
        if (is_noted) {
            vxd_once_note_forgotten(client->records[0], false);
        }
        // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): forget takes it out of the array
        forget(client->records[0]);
    }
    // NOLINTNEXTLINE(clang-analyzer-core.NullDereference): it is in its bucket
    while (*at != client) {
        at = &(*at)->in_bucket;
    }
    *at = client->in_bucket;
    leave_list(client);
    client->owner->n_clients--;
    once->usage.n_clients--;
    vxd_once_count_bytes(once, client->owner, 0, sizeof *client);
    free(client);
    vxd_once_keep_watermark(once, watermark);
}

void vxd_once_destroy(struct vxd_once *once)
{
    if (once == NULL) {
        return;
    }
    for (size_t i = 0; i < VXD_ONCE_OWNER_BUCKETS; i++) {
        for (struct vxd_once_owner *o = once->owners[i]; o != NULL; o = o->in_bucket) {
            while (o->oldest != NULL) {
                forget_client(once, o->oldest);
            }
        }
    }
    vxd_once_free_watermarks(once);
    for (size_t i = 0; i < VXD_ONCE_OWNER_BUCKETS; i++) {
        while (once->owners[i] != NULL) {
            struct vxd_once_owner *owner = once->owners[i];

            once->owners[i] = owner->in_bucket;
            free(owner);
        }
    }
    (void)pthread_mutex_destroy(&once->mutex);
    free(once->forgotten);
    free(once);
}

/* Finds the owner's client that has been silent longest, of those of which nothing runs; never
 * `spared`, and none whose least time is not over. now_ns 0: at a start, when it does not count. */
static struct vxd_once_client *find_silent(const struct vxd_once *once,
                                           const struct vxd_once_owner *owner,
                                           const struct vxd_once_client *spared,
                                           int64_t now_ns)
{
    struct vxd_once_client *client = owner->oldest;

    // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): whoever was forgotten left the list
    while (client != NULL && (client->n_running > 0 || client == spared)) {
        client = client->newer;
    }
    return client != NULL && client->used_ns > 0 &&
                   now_ns - client->used_ns < once->min_life_ns
               ? NULL
               : client;
}

/* Finds the outcome that the client's next one may replace: the one with the lowest
 * sequence, or the first that came by its key. NULL when all of them run. */
static struct vxd_once_record *find_lowest(const struct vxd_once_client *client)
{
    struct vxd_once_record *lowest = NULL;

    for (size_t i = 0; i < client->n_records; i++) {
        struct vxd_once_record *record = client->records[i];

        if (record->is_done && (lowest == NULL || record->sequence < lowest->sequence)) {
            lowest = record;
        }
    }
    return lowest;
}

static void forget_outcome(struct vxd_once_record *record)
{
    vxd_once_raise_watermark(record->client->watermark, record->sequence);
    vxd_once_note_forgotten(record, true);
    forget(record);
}

/* Forgets until n_bytes more fit the owner's limit. */
static bool reserve_bytes(struct vxd_once *once, struct vxd_once_owner *owner,
                          struct vxd_once_client *client, uint64_t n_bytes,
                          int64_t now_ns)
{
    while (owner->n_bytes + n_bytes > once->max_bytes) {
        struct vxd_once_client *silent = find_silent(once, owner, client, now_ns);
        struct vxd_once_record *lowest = client != NULL ? find_lowest(client) : NULL;

        if (silent != NULL) {
            forget_client(once, silent);
        } else if (lowest != NULL) {
            forget_outcome(lowest);
        } else {
            return false;
        }
    }
    return true;
}

struct vxd_once_client *vxd_once_look_up(const struct vxd_once *once,
                                         const char *principal, const char *client_id)
{
    struct vxd_once_client *client =
        once->buckets[vxd_once_hash(principal, client_id) % VXD_ONCE_BUCKETS];

    while (client != NULL && (strcmp(client->client_id, client_id) != 0 ||
                              strcmp(client->principal, principal) != 0)) {
        client = client->in_bucket;
    }
    return client;
}

/* Who sends: the client id, or without one the sender's host, so that a key is shared by those of
 * one address and no others. No client id begins with the mark of a host. */
static void name_client(const struct vxd_request *request, char out[VXD_NAME_BYTES])
{
    const char *host = strchr(request->peer, ' ');
    const char *colon = strrchr(request->peer, ':');

    if (request->client_id[0] != '\0' || host == NULL) {
        (void)snprintf(out, VXD_NAME_BYTES, "%s", request->client_id);
        return;
    }
    host++;
    (void)snprintf(
        out, VXD_NAME_BYTES, "@%.*s",
        (int)(colon != NULL && colon > host ? (size_t)(colon - host) : strlen(host)),
        host);
}

/* Takes the watermark over, unless it fails. */
static enum vxd_status add_client(struct vxd_once *once,
                                  const struct vxd_request *request,
                                  const char *client_id,
                                  struct vxd_once_watermark *watermark, int64_t now_ns,
                                  struct vxd_once_client **out, struct vxd_err *err)
{
    struct vxd_once_owner *owner = vxd_once_find_owner(once, request->principal.name);
    struct vxd_once_client *client = NULL;
    struct vxd_once_client **bucket;

    while (owner != NULL && owner->n_clients >= once->max_clients) {
        struct vxd_once_client *silent = find_silent(once, owner, NULL, now_ns);

        if (silent == NULL) {
            return vxd_fail(err, VXD_UNAVAILABLE, NULL,
                            "%zu clients of %.63s were there lately, "
                            "limits.replay_clients is %u; try again later",
                            owner->n_clients, owner->principal, once->max_clients);
        }
        forget_client(once, silent);
    }
    if (owner != NULL && reserve_bytes(once, owner, NULL, sizeof *client, now_ns)) {
        client = calloc(1, sizeof *client);
    }
    if (client == NULL || watermark == NULL) {
        free(client);
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "no memory to remember outcomes of another client "
                        "(limits.replay_bytes)");
    }
    client->owner = owner;
    client->watermark = watermark;
    (void)snprintf(client->principal, sizeof client->principal, "%s",
                   request->principal.name);
    (void)snprintf(client->client_id, sizeof client->client_id, "%s", client_id);
    bucket = bucket_of(once, client->principal, client->client_id);
    client->in_bucket = *bucket;
    *bucket = client;
    enter_list(client, now_ns);
    owner->n_clients++;
    once->usage.n_clients++;
    vxd_once_count_bytes(once, owner, sizeof *client, 0);
    *out = client;
    return VXD_OK;
}

enum vxd_status vxd_once_find_client(struct vxd_once *once,
                                     const struct vxd_request *request, int64_t now_ns,
                                     struct vxd_once_client **out, struct vxd_err *err)
{
    char client_id[VXD_NAME_BYTES];
    struct vxd_once_watermark *watermark;
    enum vxd_status status;

    name_client(request, client_id);
    *out = vxd_once_look_up(once, request->principal.name, client_id);
    if (*out != NULL) {
        leave_list(*out);
        enter_list(*out, now_ns);
        return VXD_OK;
    }
    /* This comes first, because the watermark of a client that is forgotten may push out
     * the oldest one. */
    watermark = vxd_once_take_watermark(once, request->principal.name, client_id);
    status = add_client(once, request, client_id, watermark, now_ns, out, err);
    if (status != VXD_OK && watermark != NULL) {
        vxd_once_keep_watermark(once, watermark);
    }
    return status;
}

struct vxd_once_record *vxd_once_find_record(const struct vxd_once_client *client,
                                             const struct vxd_request *request)
{
    bool has_key = request->idempotency_key[0] != '\0';

    for (size_t i = 0; i < client->n_records; i++) {
        struct vxd_once_record *record = client->records[i];

        if (has_key ? strcmp(record->key, request->idempotency_key) == 0
                    : record->key[0] == '\0' && record->sequence == request->sequence) {
            return record;
        }
    }
    return NULL;
}

/* Reserves a place among the client's outcomes for one of this sequence. */
static enum vxd_status make_place(struct vxd_once_client *client, uint64_t sequence,
                                  struct vxd_err *err)
{
    struct vxd_once_record *lowest;

    if (sequence > 0 && sequence <= client->watermark->sequence) {
        return vxd_fail(err, VXD_FAILED_PRECONDITION, "header.sequence",
                        "%" PRIu64 " is not above %" PRIu64 ", the highest that was "
                        "forgotten: whether it took effect is not known any more",
                        sequence, client->watermark->sequence);
    }
    if (client->n_records < VXD_ONCE_OUTCOMES) {
        return VXD_OK;
    }
    lowest = find_lowest(client);
    if (lowest == NULL) {
        return vxd_fail(err, VXD_UNAVAILABLE, NULL,
                        "%d requests of this client that change something run or wait; "
                        "try again later",
                        VXD_ONCE_OUTCOMES);
    }
    if (sequence > 0 && sequence < lowest->sequence) {
        return vxd_fail(err, VXD_FAILED_PRECONDITION, "header.sequence",
                        "%" PRIu64 " is below the last %d, which begin at %" PRIu64,
                        sequence, VXD_ONCE_OUTCOMES, lowest->sequence);
    }
    forget_outcome(lowest);
    return VXD_OK;
}

enum vxd_status vxd_once_add_record(struct vxd_once *once, struct vxd_once_client *client,
                                    struct vxd_request *request, const uint8_t *digest,
                                    struct vxd_err *err)
{
    bool has_key = request->idempotency_key[0] != '\0';
    uint64_t sequence = has_key ? 0 : request->sequence;
    struct vxd_once_record *record = NULL;
    enum vxd_status status = make_place(client, sequence, err);

    if (status != VXD_OK) {
        return status;
    }
    if (reserve_bytes(once, client->owner, client, sizeof *record + VXD_ONCE_REPLY_BYTES,
                      client->used_ns)) {
        record = calloc(1, sizeof *record);
    }
    if (record != NULL) {
        record->reply = malloc(VXD_ONCE_REPLY_BYTES);
    }
    if (record == NULL || record->reply == NULL) {
        free(record);
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "no memory to remember the outcome (limits.replay_bytes)");
    }
    record->once = once;
    record->client = client;
    record->sequence = sequence;
    (void)snprintf(record->key, sizeof record->key, "%s", request->idempotency_key);
    memcpy(record->digest, digest, VXD_ONCE_DIGEST_BYTES);
    record->first = request;
    client->records[client->n_records++] = record;
    client->n_running++;
    once->usage.n_outcomes++;
    vxd_once_count_bytes(once, client->owner, vxd_once_record_bytes(record), 0);
    request->once = record;
    return VXD_OK;
}

/* Takes out waiting requests that were answered meanwhile because their own deadline
 * passed. They are linked behind *dropped, to be dropped without the lock. */
static void drop_answered(struct vxd_once_record *record, struct vxd_request **dropped)
{
    struct vxd_request **at = &record->waiting;

    while (*at != NULL) {
        struct vxd_request *request = *at;

        if (atomic_load(&request->answered) == 0) {
            at = &request->next_repeat;
            continue;
        }
        *at = request->next_repeat;
        request->next_repeat = *dropped;
        *dropped = request;
        record->once->usage.n_waiting--;
    }
}

static enum vxd_status add_waiting(struct vxd_once_record *record,
                                   struct vxd_request *request,
                                   struct vxd_request **dropped, struct vxd_err *err)
{
    struct vxd_once *once = record->once;
    struct vxd_request **at = &record->waiting;

    drop_answered(record, dropped);
    if (once->usage.n_waiting >= VXD_ONCE_MAX_WAITING) {
        return vxd_fail(err, VXD_UNAVAILABLE, NULL,
                        "the request runs, and %d repeated ones wait already",
                        VXD_ONCE_MAX_WAITING);
    }
    while (*at != NULL) {
        at = &(*at)->next_repeat;
    }
    vxd_request_hold(request);
    request->next_repeat = NULL;
    *at = request;
    once->usage.n_waiting++;
    return VXD_OK;
}

static enum vxd_status replay(const struct vxd_once_record *record,
                              struct vxd_request *request, struct vxd_err *err)
{
    atomic_store(&request->arrays_dropped, record->arrays_dropped);
    return vxd_decode(request->decoder, request->method->output, record->reply,
                      record->n_bytes, &request->output, err);
}

static void drop_answered_list(struct vxd_request *requests)
{
    while (requests != NULL) {
        struct vxd_request *next = requests->next_repeat;

        requests->next_repeat = NULL;
        vxd_request_drop(requests);
        requests = next;
    }
}

static enum vxd_status fail_other_body(const struct vxd_request *request,
                                       struct vxd_err *err)
{
    return vxd_fail(err, VXD_INVALID_ARGUMENT,
                    request->idempotency_key[0] != '\0' ? "Idempotency-Key"
                                                        : "header.sequence",
                    "another request of this client had this number: its method or body "
                    "was not the same");
}

enum vxd_status vxd_once_enter(struct vxd_once *once, struct vxd_request *request,
                               const uint8_t digest[VXD_ONCE_DIGEST_BYTES],
                               enum vxd_once_role *role, struct vxd_err *err)
{
    struct vxd_request *dropped = NULL;
    struct vxd_once_record *record;
    struct vxd_once_client *client = NULL;
    enum vxd_status status;

    (void)pthread_mutex_lock(&once->mutex);
    VXD_TRY(vxd_once_find_client(once, request, vxd_clock_ns(), &client, err));
    record = vxd_once_find_record(client, request);
    if (record == NULL) {
        *role = VXD_ONCE_FIRST;
        VXD_TRY(vxd_once_add_record(once, client, request, digest, err));
        goto out;
    }
    if (memcmp(record->digest, digest, VXD_ONCE_DIGEST_BYTES) != 0) {
        VXD_TRY(fail_other_body(request, err));
    }
    atomic_store(&request->replayed, true);
    if (record->is_done) {
        *role = VXD_ONCE_DONE;
        VXD_TRY(replay(record, request, err));
    } else {
        *role = VXD_ONCE_WAITING;
        VXD_TRY(add_waiting(record, request, &dropped, err));
    }
out:
    (void)pthread_mutex_unlock(&once->mutex);
    drop_answered_list(dropped);
    return status;
}

bool vxd_once_is_known(struct vxd_once *once, const struct vxd_request *request)
{
    char client_id[VXD_NAME_BYTES];
    const struct vxd_once_client *client;
    bool is_known;

    name_client(request, client_id);
    (void)pthread_mutex_lock(&once->mutex);
    client = vxd_once_look_up(once, request->principal.name, client_id);
    is_known = client != NULL && vxd_once_find_record(client, request) != NULL;
    (void)pthread_mutex_unlock(&once->mutex);
    return is_known;
}

bool vxd_once_goes_on(struct vxd_once *once, const struct vxd_request *request)
{
    char client_id[VXD_NAME_BYTES];
    const struct vxd_once_client *client;
    const struct vxd_once_record *record;
    bool goes_on;

    name_client(request, client_id);
    (void)pthread_mutex_lock(&once->mutex);
    client = vxd_once_look_up(once, request->principal.name, client_id);
    record = client != NULL ? vxd_once_find_record(client, request) : NULL;
    /* The first one waits for no other, so this comes here no second time. */
    goes_on = record != NULL && (record->is_done || vxd_request_goes_on(record->first));
    (void)pthread_mutex_unlock(&once->mutex);
    return goes_on;
}

/* Takes all waiting requests; the mutex is held. */
static struct vxd_request *take_waiting(struct vxd_once_record *record)
{
    struct vxd_request *all = record->waiting;

    for (const struct vxd_request *r = all; r != NULL; r = r->next_repeat) {
        record->once->usage.n_waiting--;
    }
    record->waiting = NULL;
    return all;
}

void vxd_once_finish(struct vxd_request *request, const struct vxd_err *err,
                     ProtobufCMessage *output)
{
    struct vxd_once_record *record = request->once;
    struct vxd_once *once = record->once;
    struct vxd_request *waiting;
    uint64_t before;
    uint8_t *smaller;

    request->once = NULL;
    (void)pthread_mutex_lock(&once->mutex);
    /* Waiting requests get the whole reply, so they are answered before it loses its
     * arrays. */
    while ((waiting = take_waiting(record)) != NULL) {
        (void)pthread_mutex_unlock(&once->mutex);
        for (struct vxd_request *r = waiting; r != NULL; r = r->next_repeat) {
            (void)vxd_request_answer(r, err, err == NULL ? output : NULL);
        }
        drop_answered_list(waiting);
        (void)pthread_mutex_lock(&once->mutex);
    }
    if (err != NULL) {
        forget(record);
    } else {
        before = vxd_once_record_bytes(record);
        record->arrays_dropped = vxd_once_pack(output, record->reply, &record->n_bytes);
        record->is_done = true;
        record->first = NULL;
        record->client->n_running--;
        smaller = realloc(record->reply, record->n_bytes > 0 ? record->n_bytes : 1);
        record->reply = smaller != NULL ? smaller : record->reply;
        vxd_once_count_bytes(once, record->client->owner, vxd_once_record_bytes(record),
                             before);
    }
    (void)pthread_mutex_unlock(&once->mutex);
}

/* Takes the first waiting request that is not answered, with the list's reference; those
 * before it are linked to *dropped. NULL when there is none, and then the record is
 * gone. */
static struct vxd_request *take_first(struct vxd_once_record *record,
                                      struct vxd_request **dropped)
{
    struct vxd_once *once = record->once;
    struct vxd_request *first;

    (void)pthread_mutex_lock(&once->mutex);
    drop_answered(record, dropped);
    first = record->waiting;
    if (first != NULL) {
        record->waiting = first->next_repeat;
        first->next_repeat = NULL;
        atomic_store(&first->replayed, false);
        first->once = record;
        record->first = first;
        once->usage.n_waiting--;
    } else {
        forget(record);
    }
    (void)pthread_mutex_unlock(&once->mutex);
    return first;
}

void vxd_once_abandon(struct vxd_request *request)
{
    struct vxd_once_record *record = request->once;
    struct vxd_request *dropped = NULL;
    struct vxd_request *first;
    bool queued = false;

    request->once = NULL;
    while (!queued && (first = take_first(record, &dropped)) != NULL) {
        struct vxd_err err = {0};

        queued = vxd_request_queue(first, &err) == VXD_OK;
        if (!queued) {
            first->once = NULL;
            (void)vxd_request_answer(first, &err, NULL);
        }
        vxd_request_drop(first);
    }
    drop_answered_list(dropped);
}

static struct vxd_request *find_waiting_of(const struct vxd_once_client *client)
{
    struct vxd_request *found = NULL;

    for (size_t i = 0; i < client->n_records && found == NULL; i++) {
        found = client->records[i]->waiting;
        while (found != NULL && atomic_load(&found->answered) != 0) {
            found = found->next_repeat;
        }
    }
    return found;
}

struct vxd_request *vxd_once_find_waiting(struct vxd_once *once)
{
    struct vxd_request *found = NULL;

    (void)pthread_mutex_lock(&once->mutex);
    for (size_t i = 0; i < VXD_ONCE_BUCKETS && found == NULL; i++) {
        for (const struct vxd_once_client *c = once->buckets[i];
             c != NULL && found == NULL; c = c->in_bucket) {
            found = find_waiting_of(c);
        }
    }
    if (found != NULL) {
        vxd_request_hold(found);
    }
    (void)pthread_mutex_unlock(&once->mutex);
    return found;
}

void vxd_once_get_usage(struct vxd_once *once, struct vxd_once_usage *out)
{
    (void)pthread_mutex_lock(&once->mutex);
    *out = once->usage;
    (void)pthread_mutex_unlock(&once->mutex);
}
