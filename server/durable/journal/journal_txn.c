// SPDX-License-Identifier: Apache-2.0
/* Transactions are built: a list of changes, each a copy of what it was given. */
#include <stdlib.h>
#include <string.h>

#include "server/durable/journal/journal_internal.h"

enum vxd_status vxd_journal_begin(struct vxd_journal *journal,
                                  struct vxd_journal_txn **out, struct vxd_err *err)
{
    struct vxd_journal_txn *txn = calloc(1, sizeof *txn);

    if (txn == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a transaction");
    }
    txn->journal = journal;
    txn->last = &txn->first;
    txn->n_bytes = sizeof *txn;
    *out = txn;
    return VXD_OK;
}

void vxd_journal_free_txn(struct vxd_journal_txn *txn)
{
    struct vxd_change *change = txn->first;

    while (change != NULL) {
        struct vxd_change *next = change->next;

        free(change);
        change = next;
    }
    free(txn);
}

void vxd_journal_abandon(struct vxd_journal_txn *take_txn)
{
    if (take_txn != NULL) {
        vxd_journal_free_txn(take_txn);
    }
}

/* Adds a change that holds n_bytes; NULL = no memory. */
static struct vxd_change *add(struct vxd_journal_txn *txn, enum vxd_change_kind kind,
                              uint32_t family, size_t n_bytes, struct vxd_err *err)
{
    struct vxd_change *change = NULL;

    if (n_bytes <= VXD_JOURNAL_MAX_BLOB_BYTES + VXD_DATABASE_MAX_CLIENT_BYTES) {
        change = calloc(1, sizeof *change + n_bytes);
    }
    if (change == NULL) {
        (void)vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a transaction");
        return NULL;
    }
    change->kind = kind;
    change->family = family;
    change->n_bytes = n_bytes;
    *txn->last = change;
    txn->last = &change->next;
    txn->n_bytes += sizeof *change + n_bytes;
    return change;
}

static void copy(struct vxd_change *change, size_t at, const void *bytes, size_t n_bytes)
{
    if (n_bytes > 0) {
        memcpy(change->bytes + at, bytes, n_bytes);
    }
}

static enum vxd_status check_family(uint32_t family, struct vxd_err *err)
{
    return family >= 1 && family <= VXD_JOURNAL_MAX_FAMILY
               ? VXD_OK
               : vxd_fail(err, VXD_INVALID_ARGUMENT, "family", "%u, must be 1 to %d",
                          family, VXD_JOURNAL_MAX_FAMILY);
}

static enum vxd_status check_name(const char *name, struct vxd_err *err)
{
    size_t n = strnlen(name, VXD_JOURNAL_NAME_BYTES);

    return n >= 1 && n < VXD_JOURNAL_NAME_BYTES
               ? VXD_OK
               : vxd_fail(err, VXD_INVALID_ARGUMENT, "name", "must have 1 to 63 bytes");
}

static enum vxd_status check_size(size_t n_bytes, struct vxd_err *err)
{
    return n_bytes <= VXD_JOURNAL_MAX_BLOB_BYTES
               ? VXD_OK
               : vxd_fail(err, VXD_INVALID_ARGUMENT, "bytes", "%zu, must be at most %zu",
                          n_bytes, VXD_JOURNAL_MAX_BLOB_BYTES);
}

static enum vxd_status check_sequence(uint64_t sequence, struct vxd_err *err)
{
    return sequence <= VXD_JOURNAL_MAX_SEQUENCE
               ? VXD_OK
               : vxd_fail(err, VXD_INVALID_ARGUMENT, "sequence",
                          "%llu, must be below 2^40", (unsigned long long)sequence);
}

enum vxd_status vxd_journal_put_family(struct vxd_journal_txn *txn,
                                       const struct vxd_journal_family *family,
                                       struct vxd_err *err)
{
    struct vxd_change *change;
    enum vxd_status status;

    VXD_TRY(check_family(family->id, err));
    VXD_TRY(check_name(family->name, err));
    VXD_TRY(check_size(family->n_spec_bytes, err));
    if ((unsigned)family->fsync > VXD_FSYNC_OFF) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "fsync", "%d is no policy",
                        (int)family->fsync);
    }
    if (family->max_bytes > VXD_JOURNAL_MAX_BYTES ||
        family->epoch > VXD_JOURNAL_MAX_BYTES) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT,
                        family->max_bytes > VXD_JOURNAL_MAX_BYTES ? "max_bytes" : "epoch",
                        "must be below 2^63");
    }
    change = add(txn, VXD_CHANGE_PUT_FAMILY, family->id, family->n_spec_bytes, err);
    if (change == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    change->fsync = family->fsync;
    change->max_bytes = family->max_bytes;
    change->epoch = family->epoch;
    memcpy(change->name, family->name, sizeof change->name);
    copy(change, 0, family->spec, family->n_spec_bytes);
out:
    return status;
}

enum vxd_status vxd_journal_drop_family(struct vxd_journal_txn *txn, uint32_t family,
                                        struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(check_family(family, err));
    if (add(txn, VXD_CHANGE_DROP_FAMILY, family, 0, err) == NULL) {
        status = VXD_RESOURCE_EXHAUSTED;
    }
out:
    return status;
}

static enum vxd_status add_item(struct vxd_journal_txn *txn, enum vxd_change_kind kind,
                                enum vxd_journal_item_kind item_kind,
                                const struct vxd_journal_item *item, struct vxd_err *err)
{
    struct vxd_change *change;
    enum vxd_status status;

    VXD_TRY(check_family(item->family, err));
    VXD_TRY(check_name(item->name, err));
    VXD_TRY(check_size(item->n_bytes, err));
    if (item_kind < VXD_JOURNAL_HEAD || item_kind > VXD_JOURNAL_AGES) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "kind", "%d is no kind of item",
                        (int)item_kind);
    }
    change = add(txn, kind, item->family, item->n_bytes, err);
    if (change == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    change->item_kind = item_kind;
    (void)snprintf(change->name, sizeof change->name, "%s", item->name);
    copy(change, 0, item->bytes, item->n_bytes);
out:
    return status;
}

enum vxd_status vxd_journal_put_item(struct vxd_journal_txn *txn,
                                     enum vxd_journal_item_kind kind,
                                     const struct vxd_journal_item *item,
                                     struct vxd_err *err)
{
    return add_item(txn, VXD_CHANGE_PUT_ITEM, kind, item, err);
}

enum vxd_status vxd_journal_drop_item(struct vxd_journal_txn *txn,
                                      enum vxd_journal_item_kind kind, uint32_t family,
                                      const char *name, struct vxd_err *err)
{
    const struct vxd_journal_item item = {.family = family, .name = name};

    return add_item(txn, VXD_CHANGE_DROP_ITEM, kind, &item, err);
}

enum vxd_status vxd_journal_add_record(struct vxd_journal_txn *txn,
                                       const struct vxd_journal_record *record,
                                       struct vxd_err *err)
{
    struct vxd_change *change;
    enum vxd_status status;

    VXD_TRY(check_family(record->family, err));
    VXD_TRY(check_sequence(record->sequence, err));
    VXD_TRY(check_size(record->n_bytes, err));
    if (record->kind > UINT16_MAX) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "kind", "%u, must be below 2^16",
                        record->kind);
    }
    change = add(txn, VXD_CHANGE_RECORD, record->family, record->n_bytes, err);
    if (change == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    change->sequence = record->sequence;
    change->rules_version = record->rules_version;
    change->record_kind = record->kind;
    copy(change, 0, record->bytes, record->n_bytes);
out:
    return status;
}

enum vxd_status vxd_journal_need(struct vxd_journal_txn *txn, uint32_t family,
                                 uint64_t sequence, struct vxd_err *err)
{
    struct vxd_change *change;
    enum vxd_status status;

    VXD_TRY(check_family(family, err));
    change = add(txn, VXD_CHANGE_NEED, family, 0, err);
    if (change == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    change->sequence = sequence;
out:
    return status;
}

static enum vxd_status check_client(size_t n_client_bytes, uint64_t sequence,
                                    struct vxd_err *err)
{
    if (n_client_bytes < 1 || n_client_bytes > VXD_DATABASE_MAX_CLIENT_BYTES) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "client", "%zu bytes, must be 1 to %d",
                        n_client_bytes, VXD_DATABASE_MAX_CLIENT_BYTES);
    }
    return sequence <= INT64_MAX
               ? VXD_OK
               : vxd_fail(err, VXD_INVALID_ARGUMENT, "sequence", "must be below 2^63");
}

enum vxd_status vxd_journal_put_reply(struct vxd_journal_txn *txn,
                                      const struct vxd_journal_reply *reply,
                                      struct vxd_err *err)
{
    struct vxd_change *change;
    enum vxd_status status;

    VXD_TRY(check_client(reply->n_client_bytes, reply->sequence, err));
    VXD_TRY(check_size(reply->n_bytes, err));
    change =
        add(txn, VXD_CHANGE_PUT_REPLY, 0, reply->n_client_bytes + reply->n_bytes, err);
    if (change == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    change->sequence = reply->sequence;
    change->unix_ns = reply->unix_ns;
    change->n_client_bytes = reply->n_client_bytes;
    memcpy(change->digest, reply->digest, sizeof change->digest);
    copy(change, 0, reply->client, reply->n_client_bytes);
    copy(change, reply->n_client_bytes, reply->bytes, reply->n_bytes);
out:
    return status;
}

enum vxd_status vxd_journal_forget_reply(struct vxd_journal_txn *txn, const void *client,
                                         size_t n_client_bytes, uint64_t sequence,
                                         struct vxd_err *err)
{
    struct vxd_change *change;
    enum vxd_status status;

    VXD_TRY(check_client(n_client_bytes, sequence, err));
    change = add(txn, VXD_CHANGE_FORGET_REPLY, 0, n_client_bytes, err);
    if (change == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    change->sequence = sequence;
    change->n_client_bytes = n_client_bytes;
    copy(change, 0, client, n_client_bytes);
out:
    return status;
}

enum vxd_status vxd_journal_snapshot_taken(struct vxd_journal_txn *txn, uint32_t family,
                                           uint64_t sequence, uint64_t keep_from,
                                           struct vxd_err *err)
{
    struct vxd_change *change;
    enum vxd_status status;

    VXD_TRY(check_family(family, err));
    VXD_TRY(check_sequence(sequence, err));
    if (keep_from > sequence) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "keep_from",
                        "%llu, above the snapshot's sequence",
                        (unsigned long long)keep_from);
    }
    change = add(txn, VXD_CHANGE_SNAPSHOT, family, 0, err);
    if (change == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    change->sequence = sequence;
    change->number = keep_from;
out:
    return status;
}

enum vxd_status vxd_journal_cut(struct vxd_journal_txn *txn, uint32_t family,
                                uint64_t sequence, struct vxd_err *err)
{
    struct vxd_change *change;
    enum vxd_status status;

    VXD_TRY(check_family(family, err));
    VXD_TRY(check_sequence(sequence, err));
    change = add(txn, VXD_CHANGE_CUT, family, 0, err);
    if (change == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    change->sequence = sequence;
out:
    return status;
}

enum vxd_status vxd_journal_put_meta(struct vxd_journal_txn *txn, const char *key,
                                     uint64_t value, struct vxd_err *err)
{
    struct vxd_change *change = add(txn, VXD_CHANGE_META, 0, 0, err);

    if (change == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    change->number = value;
    (void)snprintf(change->name, sizeof change->name, "%s", key);
    return VXD_OK;
}
