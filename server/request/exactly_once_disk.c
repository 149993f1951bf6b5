// SPDX-License-Identifier: Apache-2.0
/* Exactly-once across starts. The outcome of a durable change is in the transaction that
 * has the change itself. The same transaction removes from the disk what memory has
 * forgotten since the one before. How the disk knows a client's watermark depends on how
 * many outcomes it has of the client:
 *
 *   as many as there may be   all below the lowest is forgotten, which needs no row
 *   fewer                     a row of sequence 0 without a key has the watermark in 8 bytes
 *   none: it is forgotten     likewise, until the watermark goes (exactly_once_watermarks.c)
 *
 * Rows that could not be removed (too many at once) come back with the next start, which
 * forgets them again. */
#include <stdlib.h>
#include <string.h>

#include "proto/base/name.h"
#include "server/durable/journal/journal.h"
#include "server/request/exactly_once_internal.h"
#include "server/instance/instance.h"

enum {
    WATERMARK_BYTES = 8
};

void vxd_once_set_key(struct vxd_once *once, const uint8_t *key)
{
    umac128_set_key(&once->hash, key);
}

void vxd_once_digest(const struct vxd_once *once, const struct vxd_method *method,
                     const struct vxd_body *body, uint8_t out[VXD_ONCE_DIGEST_BYTES])
{
    struct umac128_ctx hash = once->hash;
    uint8_t kind = (uint8_t)body->kind;

    umac128_update(&hash, strlen(method->name) + 1, (const uint8_t *)method->name);
    umac128_update(&hash, 1, &kind);
    if (body->kind == VXD_BODY_FILE) {
        umac128_update(&hash, strlen(body->format) + 1, (const uint8_t *)body->format);
        for (size_t i = 0; i < body->n_query; i++) {
            const struct vxd_query_item *item = &body->query[i];

            umac128_update(&hash, strlen(item->key) + 1, (const uint8_t *)item->key);
            umac128_update(&hash, strlen(item->value) + 1, (const uint8_t *)item->value);
        }
    }
    umac128_update(&hash, body->n_bytes, body->bytes);
    umac128_digest(&hash, VXD_ONCE_DIGEST_BYTES, out);
}

/* Writes three texts, each with its terminating 0. */
static size_t describe_owner(const char *principal, const char *client_id,
                             const char *key, uint8_t out[VXD_ONCE_CLIENT_BYTES])
{
    const char *const texts[] = {principal, client_id, key};
    size_t n = 0;

    for (size_t i = 0; i < 3; i++) {
        size_t n_text = strlen(texts[i]) + 1;

        memcpy(out + n, texts[i], n_text);
        n += n_text;
    }
    return n;
}

/* Reads the next of a description's texts; false when there is none that fits. */
static bool next_text(const uint8_t **at, const uint8_t *end, char out[VXD_NAME_BYTES])
{
    const uint8_t *zero = memchr(*at, 0, (size_t)(end - *at));

    if (zero == NULL || zero - *at >= VXD_NAME_BYTES) {
        return false;
    }
    memcpy(out, *at, (size_t)(zero - *at) + 1);
    *at = zero + 1;
    return true;
}

/* Reads who asked into the fields by which records are found; false where it is no
 * description. */
static bool read_owner(const uint8_t *owner, size_t n_bytes, struct vxd_request *out)
{
    const uint8_t *at = owner;
    const uint8_t *end = owner + n_bytes;

    return n_bytes > 0 && next_text(&at, end, out->principal.name) &&
           next_text(&at, end, out->client_id) &&
           next_text(&at, end, out->idempotency_key) && at == end;
}

void vxd_once_describe(const struct vxd_request *request,
                       uint8_t client[VXD_ONCE_CLIENT_BYTES], size_t *n_client_bytes,
                       uint64_t *sequence, uint8_t digest[VXD_ONCE_DIGEST_BYTES])
{
    struct vxd_once_record *record = request->once;

    (void)pthread_mutex_lock(&record->once->mutex);
    if (!record->is_on_disk) {
        record->is_on_disk = true;
        record->client->n_on_disk += record->key[0] == '\0' ? 1 : 0;
    }
    (void)pthread_mutex_unlock(&record->once->mutex);
    *n_client_bytes = describe_owner(record->client->principal, record->client->client_id,
                                     record->key, client);
    *sequence = record->sequence;
    memcpy(digest, record->digest, VXD_ONCE_DIGEST_BYTES);
}

/* Forgetting -------------------------------------------------------------------------------- */

static bool note(struct vxd_once *once, const struct vxd_once_forgotten *forgotten)
{
    if (once->n_forgotten == once->forgotten_capacity) {
        size_t capacity = 2 * once->forgotten_capacity + 64;
        struct vxd_once_forgotten *more =
            capacity <= (size_t)2 * VXD_ONCE_MAX_FORGOTTEN
                ? realloc(once->forgotten, capacity * sizeof *more)
                : NULL;

        if (more == NULL) {
            return false;
        }
        once->forgotten = more;
        once->forgotten_capacity = capacity;
    }
    once->forgotten[once->n_forgotten++] = *forgotten;
    return true;
}

void vxd_once_note_forgotten(struct vxd_once_record *record, bool has_watermark)
{
    struct vxd_once_forgotten forgotten = {.sequence = record->sequence,
                                           .has_watermark = has_watermark};
    const struct vxd_once_client *client = record->client;

    if (record->is_on_disk) {
        forgotten.n_owner_bytes = describe_owner(client->principal, client->client_id,
                                                 record->key, forgotten.owner);
        (void)note(record->once, &forgotten);
    }
}

bool vxd_once_note_watermark(struct vxd_once *once,
                             const struct vxd_once_watermark *watermark)
{
    struct vxd_once_forgotten forgotten = {.has_watermark = true};

    if (!watermark->is_on_disk) {
        return true;
    }
    forgotten.n_owner_bytes =
        describe_owner(watermark->names, watermark->names + strlen(watermark->names) + 1,
                       "", forgotten.owner);
    return note(once, &forgotten);
}

/* Finds the watermark of a client that is known or forgotten; NULL where its outcomes on
 * the disk imply it. */
static struct vxd_once_watermark *watermark_to_put(struct vxd_once *once,
                                                   const struct vxd_request *asked)
{
    const struct vxd_once_client *client =
        vxd_once_look_up(once, asked->principal.name, asked->client_id);

    if (client == NULL) {
        return vxd_once_find_watermark(once, asked->principal.name, asked->client_id);
    }
    /* Whether the disk will have the others, which still run, is not known yet. */
    return client->n_on_disk < VXD_ONCE_OUTCOMES || client->n_running > 1
               ? client->watermark
               : NULL;
}

static enum vxd_status put_watermark(struct vxd_once *once,
                                     const struct vxd_once_forgotten *forgotten,
                                     int64_t unix_ns, struct vxd_journal_txn *txn,
                                     struct vxd_err *err)
{
    struct vxd_request asked = {0};
    uint8_t bytes[WATERMARK_BYTES];
    struct vxd_journal_reply row = {.client = forgotten->owner,
                                    .n_client_bytes = forgotten->n_owner_bytes,
                                    .unix_ns = unix_ns,
                                    .bytes = bytes,
                                    .n_bytes = sizeof bytes};
    struct vxd_once_watermark *watermark;

    if (!forgotten->has_watermark ||
        !read_owner(forgotten->owner, forgotten->n_owner_bytes, &asked) ||
        asked.idempotency_key[0] != '\0') {
        return VXD_OK;
    }
    watermark = watermark_to_put(once, &asked);
    if (watermark == NULL || watermark->sequence == 0) {
        return VXD_OK;
    }
    memcpy(bytes, &watermark->sequence,
           sizeof bytes); /* all hosts are little-endian (base.h) */
    watermark->is_on_disk = true;
    return vxd_journal_put_reply(txn, &row, err);
}

enum vxd_status vxd_once_put_forgotten(struct vxd_once *once, int64_t unix_ns,
                                       struct vxd_journal_txn *txn, struct vxd_err *err)
{
    size_t n = 0;
    enum vxd_status status = VXD_OK;

    (void)pthread_mutex_lock(&once->mutex);
    for (; n < once->n_forgotten && status == VXD_OK; n++) {
        const struct vxd_once_forgotten *forgotten = &once->forgotten[n];

        status = vxd_journal_forget_reply(txn, forgotten->owner, forgotten->n_owner_bytes,
                                          forgotten->sequence, err);
        if (status == VXD_OK) {
            status = put_watermark(once, forgotten, unix_ns, txn, err);
        }
    }
    if (status == VXD_OK) {
        once->n_forgotten = 0;
    }
    (void)pthread_mutex_unlock(&once->mutex);
    return status;
}

/* Coming back ------------------------------------------------------------------------------- */

static enum vxd_status restore_watermark(struct vxd_once *once,
                                         const struct vxd_request *asked,
                                         const void *bytes, size_t n_bytes,
                                         struct vxd_err *err)
{
    const char *principal = asked->principal.name;
    const struct vxd_once_client *client;
    struct vxd_once_watermark *watermark;
    uint64_t sequence = 0;

    if (n_bytes != WATERMARK_BYTES) {
        return vxd_fail(err, VXD_DATA_LOSS, NULL, "a client's watermark is damaged");
    }
    memcpy(&sequence, bytes, sizeof sequence);
    (void)pthread_mutex_lock(&once->mutex);
    client = vxd_once_look_up(once, principal, asked->client_id);
    watermark = client != NULL
                    ? client->watermark
                    : vxd_once_take_watermark(once, principal, asked->client_id);
    if (watermark != NULL) {
        vxd_once_raise_watermark(watermark, sequence);
        watermark->is_on_disk = true;
        if (client == NULL) {
            vxd_once_keep_watermark(once, watermark);
        }
    }
    (void)pthread_mutex_unlock(&once->mutex);
    return watermark != NULL
               ? VXD_OK
               : vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for watermarks");
}

enum vxd_status vxd_once_put_outcome(struct vxd_request *request, int64_t unix_ns,
                                     struct vxd_journal_txn *txn, struct vxd_err *err)
{
    uint8_t client[VXD_ONCE_CLIENT_BYTES];
    uint8_t bytes[VXD_ONCE_COPY_BYTES];
    struct vxd_journal_reply reply = {
        .client = client, .unix_ns = unix_ns, .bytes = bytes};
    enum vxd_status status;

    if (request->once == NULL) {
        return VXD_OK; /* over HTTP without a key */
    }
    vxd_once_describe(request, client, &reply.n_client_bytes, &reply.sequence,
                      reply.digest);
    vxd_once_pack_copy(request->output, bytes, &reply.n_bytes);
    VXD_TRY(vxd_once_put_forgotten(request->server->once, unix_ns, txn, err));
    VXD_TRY(vxd_journal_put_reply(txn, &reply, err));
out:
    return status;
}

/* vxd_once_pack_copy marks replies of which something was dropped. */
static bool has_dropped(const void *reply, size_t n_reply_bytes)
{
    return n_reply_bytes > 0 && *(const uint8_t *)reply == 0;
}

/* With the mutex held. */
static void fill_record(struct vxd_once_record *record, const void *reply,
                        size_t n_reply_bytes)
{
    struct vxd_once *once = record->once;
    size_t n_marks = has_dropped(reply, n_reply_bytes) ? 1 : 0;

    uint64_t before = vxd_once_record_bytes(record);

    record->n_bytes = n_reply_bytes - n_marks;
    memcpy(record->reply, (const uint8_t *)reply + n_marks, record->n_bytes);
    record->arrays_dropped = n_marks > 0;
    record->is_done = true;
    record->first = NULL;
    record->is_on_disk = true;
    record->client->n_on_disk += record->key[0] == '\0' ? 1 : 0;
    record->client->n_running--;
    vxd_once_count_bytes(once, record->client->owner, vxd_once_record_bytes(record),
                         before);
}

enum vxd_status vxd_once_restore(struct vxd_once *once, const uint8_t *client,
                                 size_t n_client_bytes, uint64_t sequence,
                                 const uint8_t *digest, const void *reply,
                                 size_t n_reply_bytes, struct vxd_err *err)
{
    struct vxd_request asked = {.sequence = sequence};
    struct vxd_once_client *owner = NULL;
    enum vxd_status status;

    if (n_client_bytes > VXD_ONCE_CLIENT_BYTES ||
        n_reply_bytes - (has_dropped(reply, n_reply_bytes) ? 1 : 0) >
            VXD_ONCE_REPLY_BYTES ||
        !read_owner(client, n_client_bytes, &asked)) {
        return vxd_fail(err, VXD_DATA_LOSS, NULL, "an outcome's owner is damaged");
    }
    if (sequence == 0 && asked.idempotency_key[0] == '\0') {
        return restore_watermark(once, &asked, reply, n_reply_bytes, err);
    }
    (void)pthread_mutex_lock(&once->mutex);
    status = vxd_once_find_client(once, &asked, 0, &owner, err);
    if (status == VXD_OK && vxd_once_find_record(owner, &asked) == NULL) {
        status = vxd_once_add_record(once, owner, &asked, digest, err);
    }
    if (asked.once != NULL) {
        fill_record(asked.once, reply, n_reply_bytes);
    } else if (status != VXD_RESOURCE_EXHAUSTED) {
        /* The client has as many newer outcomes as it may have. */
        struct vxd_once_forgotten forgotten = {.n_owner_bytes = n_client_bytes,
                                               .sequence = sequence};

        memcpy(forgotten.owner, client, n_client_bytes);
        (void)note(once, &forgotten);
        status = VXD_OK;
    }
    (void)pthread_mutex_unlock(&once->mutex);
    return status;
}
