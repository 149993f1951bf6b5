// SPDX-License-Identifier: Apache-2.0
/* Hands changes of things over to the journal. Sequence numbers are counted for each thing, in the order
 * of the write lane, so the changes of a thing are decided in the order in which they were made.
 *
 *   change    the thing is changed in memory, record and reply are handed over as one transaction, and
 *             the reply is given when that is decided. A read in between is answered when all changes
 *             that it saw are decided
 *   failure   memory has a change that the disk has not: nobody sees the thing until it has been brought
 *             back from the disk, which is tried at once and at each request */
#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"
#include "server/registry/named/named_internal.h"

enum {
    MAX_WAITING_BYTES = 128 << 20 /* of the journal's queue, which takes twice as much */
};

static void log_thing(const struct vxd_named *named, enum vxd_registry_event event,
                      const char *text)
{
    named->names->calls->log(event, named->terms.name, text);
}

/* --- a thing that is not what the disk has -------------------------------------------------------- */

/* Puts another content in a thing's place, and leaves none in *content. */
static void replace(struct vxd_named *named, void *content)
{
    const struct vxd_durable_calls *calls = named->names->calls->durable;
    void *now = calls->content(named);

    calls->clear(named->names->queue, now);
    memcpy(now, content, calls->content_bytes);
    memset(content, 0, calls->content_bytes);
}

static enum vxd_status read_back(struct vxd_named *named,
                                 struct vxd_named_workspace *space, struct vxd_err *err)
{
    const struct vxd_names *names = named->names;
    const struct vxd_durable_calls *calls = names->calls->durable;
    enum vxd_status status;

    vxd_named_describe(named, space->described);
    /* The thing is emptied first, since what it has and what it gets may not both fit. */
    VXD_TRY(calls->begin(names->queue, space->described, true, space->content, err));
    replace(named, space->content);
    vxd_names_wait(names);
    vxd_named_account(named);
    VXD_TRY(vxd_named_rebuild(names, names->queue, named->durable.journal_id,
                              named->durable.decided, space->described, space->content,
                              err));
    replace(named, space->content);
    if (calls->settle != NULL) {
        VXD_TRY(calls->settle(named, err));
    }
    named->durable.sequence = named->durable.decided;
    named->durable.is_broken = false;
out:
    return status;
}

/* Brings a broken thing back, once no change waits that was built on the one that failed. */
static void bring_back_when_possible(struct vxd_named *named)
{
    struct vxd_named_workspace space = {NULL, NULL};
    struct vxd_err err = {0};
    enum vxd_status status;

    if (!named->durable.is_broken || named->durable.n_waiting > 0 ||
        named->durable.is_gone) {
        return;
    }
    VXD_TRY(vxd_named_workspace_new(named->names, &space, &err));
    status = read_back(named, &space, &err);
    vxd_names_wait(named->names);
    vxd_named_account(named);
out:
    vxd_named_workspace_free(&space);
    log_thing(named, status == VXD_OK ? VXD_REGISTRY_BACK : VXD_REGISTRY_NOT_BACK,
              err.message);
}

void vxd_named_mark_broken(struct vxd_named *named)
{
    if (named->durable.journal_id != 0) {
        named->durable.is_broken = true;
        bring_back_when_possible(named);
    }
}

enum vxd_status vxd_named_check_visible(struct vxd_named *named, struct vxd_err *err)
{
    const char *one = named->names->calls->one;

    if (named->durable.is_leaving) {
        return vxd_fail(err, VXD_UNAVAILABLE, NULL,
                        "the %s \"%s\" is being dropped; try again", one,
                        named->terms.name);
    }
    bring_back_when_possible(named);
    return !named->durable.is_broken
               ? VXD_OK
               : vxd_fail(err, VXD_UNAVAILABLE, NULL,
                          "a change of the %s could not be written to the disk, and what "
                          "was built on it goes with it; try again",
                          one);
}

enum vxd_status vxd_named_check_journal(const struct vxd_named *named, size_t n_bytes,
                                        struct vxd_err *err)
{
    struct vxd_journal_stats stats;
    enum vxd_status status;

    if (named->durable.journal_id == 0) {
        return VXD_OK;
    }
    VXD_TRY(vxd_registry_check_disk(named->names->registry, &stats, err));
    if (stats.n_queued > 0 && (n_bytes > MAX_WAITING_BYTES ||
                               stats.n_queued_bytes > MAX_WAITING_BYTES - n_bytes)) {
        return vxd_fail(err, VXD_UNAVAILABLE, NULL,
                        "%zu bytes of changes wait for the disk already; try again",
                        stats.n_queued_bytes);
    }
out:
    return status;
}

bool vxd_named_is_waiting(const struct vxd_names *names, const struct vxd_named *named)
{
    if (named != NULL) {
        return named->durable.n_waiting > 0;
    }
    for (const struct vxd_named *n = names->first; n != NULL; n = n->next) {
        if (n->durable.n_waiting > 0) {
            return true;
        }
    }
    return false;
}

/* --- handing over --------------------------------------------------------------------------------- */

enum vxd_status vxd_named_enter_journal(struct vxd_named *named, struct vxd_err *err)
{
    if (!named->terms.durable) {
        return VXD_OK;
    }
    named->durable.journal_id =
        vxd_journal_new_family(vxd_registry_get_journal(named->names->registry));
    return vxd_named_check_journal(named, 0, err);
}

void vxd_named_describe(const struct vxd_named *named, struct vxd_described *out)
{
    const struct vxd_durable_calls *calls = named->names->calls->durable;

    out->terms = named->terms;
    out->generation = named->generation;
    out->created_unix_ns = named->created_unix_ns;
    if (calls->describe != NULL) {
        calls->describe(named, out);
    }
}

enum vxd_status vxd_named_make_row(const struct vxd_named *named,
                                   struct vxd_journal_family *row, struct vxd_err *err)
{
    const struct vxd_noun_calls *calls = named->names->calls;
    struct vxd_bytes_out bytes = {0};
    struct vxd_described *described = calloc(1, calls->durable->described_bytes);

    if (described != NULL) {
        vxd_named_describe(named, described);
        calls->durable->put_description(&bytes, described);
        free(described);
    }
    if (described == NULL || bytes.is_out_of_memory) {
        free(bytes.bytes);
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "no memory for a %s's description", calls->one);
    }
    row->fsync = named->terms.fsync;
    row->max_bytes = named->terms.journal_max_bytes;
    row->epoch = named->generation;
    row->spec = bytes.bytes;
    row->n_spec_bytes = bytes.n;
    return VXD_OK;
}

static enum vxd_status put_family(const struct vxd_named *named,
                                  struct vxd_journal_txn *txn, struct vxd_err *err)
{
    struct vxd_journal_family row = {.id = named->durable.journal_id};
    enum vxd_status status;

    vxd_registry_family_name(named->names->calls->durable->kind, named->terms.name,
                             row.name);
    VXD_TRY(vxd_named_make_row(named, &row, err));
    status = vxd_journal_put_family(txn, &row, err);
out:
    free((void *)(uintptr_t)row.spec);
    return status;
}

enum vxd_status vxd_named_need(const struct vxd_named *named, struct vxd_journal_txn *txn,
                               struct vxd_err *err)
{
    return vxd_journal_need(txn, named->durable.journal_id, named->durable.sequence, err);
}

/* Makes a read wait for all changes that it saw: of this thing, or of all where it is NULL. */
static enum vxd_status need_seen(const struct vxd_names *names,
                                 const struct vxd_named *named,
                                 struct vxd_journal_txn *txn, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    if (named != NULL) {
        return vxd_named_need(named, txn, err);
    }
    for (const struct vxd_named *n = names->first; n != NULL && status == VXD_OK;
         n = n->next) {
        /* A thing that is being dropped may be gone by then, which is no error. */
        status = n->durable.n_waiting > 0 && !n->durable.is_leaving
                     ? vxd_named_need(n, txn, err)
                     : VXD_OK;
    }
    return status;
}

/* Adds the packed record of a change. */
static enum vxd_status put_record(const struct vxd_named *named,
                                  struct vxd_named_entry *entry,
                                  struct vxd_journal_txn *txn, struct vxd_err *err)
{
    const struct vxd_durable_calls *calls = named->names->calls->durable;
    const struct vxd_journal_record row = {.family = named->durable.journal_id,
                                           .sequence = ++entry->sequence,
                                           .rules_version = calls->rules_version,
                                           .kind = entry->record_kind,
                                           .bytes = entry->record.bytes,
                                           .n_bytes = entry->record.n_bytes};

    if (calls->max_change_bytes > 0 && row.n_bytes > calls->max_change_bytes) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "the change is more than the %zu bytes that the journal takes at "
                        "once",
                        calls->max_change_bytes);
    }
    return vxd_journal_add_record(txn, &row, err);
}

/* Adds the change to the transaction. */
static enum vxd_status put_change(const struct vxd_names *names, struct vxd_named *named,
                                  struct vxd_request *request,
                                  struct vxd_named_entry *entry,
                                  struct vxd_journal_txn *txn, struct vxd_err *err)
{
    const struct vxd_durable_calls *calls = names->calls->durable;
    enum vxd_status status = VXD_OK;

    switch (entry->kind) {
    case VXD_NAMED_MADE:
        VXD_TRY(put_family(named, txn, err));
        return calls->put != NULL ? calls->put(named, request, entry, txn, err) : VXD_OK;
    case VXD_NAMED_DROPPED:
        return vxd_journal_drop_family(txn, named->durable.journal_id, err);
    case VXD_NAMED_READ:
        return need_seen(names, named, txn, err);
    case VXD_NAMED_CHANGED:
    default:
        return calls->put != NULL ? calls->put(named, request, entry, txn, err)
                                  : put_record(named, entry, txn, err);
    }
out:
    return status;
}

enum vxd_status vxd_named_hand_over(struct vxd_names *names, struct vxd_named *named,
                                    struct vxd_request *request,
                                    struct vxd_named_entry *entry, struct vxd_err *err)
{
    struct vxd_journal_txn *txn = NULL;
    enum vxd_status status;

    entry->unix_ns = vxd_clock_unix_ns();
    entry->sequence = named != NULL ? named->durable.sequence : 0;
    VXD_TRY(vxd_journal_begin(vxd_registry_get_journal(names->registry), &txn, err));
    VXD_TRY(put_change(names, named, request, entry, txn, err));
    status = vxd_registry_hand_over(txn, request, entry->unix_ns, err);
    txn = NULL;
    if (status == VXD_OK && entry->kind != VXD_NAMED_READ) {
        entry->is_handed_over = true;
        named->durable.n_waiting++;
        named->durable.is_leaving = entry->kind == VXD_NAMED_DROPPED;
        named->durable.sequence = entry->sequence;
    }
out:
    vxd_journal_abandon(txn);
    return status;
}

/* --- what is decided ------------------------------------------------------------------------------ */

/* Removes the thing, so that its name is free again. */
static void remove_thing(struct vxd_named *named)
{
    const struct vxd_names *names = named->names;

    if (!named->durable.is_gone) {
        named->durable.is_gone = true;
        vxd_named_remove(named, names->queue);
        vxd_names_wait(names);
    }
}

void vxd_named_end_change(struct vxd_named *named, struct vxd_named_entry *entry,
                          bool committed)
{
    struct vxd_named_durable *durable;

    if (entry->kind == VXD_NAMED_READ) {
        return; /* a list has no thing of its own */
    }
    durable = &named->durable;
    durable->n_waiting -= entry->is_handed_over ? 1 : 0;
    if (entry->kind == VXD_NAMED_CHANGED) {
        durable->decided = committed ? entry->sequence : durable->decided;
        durable->is_broken = durable->is_broken || !committed;
    } else if (entry->kind == VXD_NAMED_MADE && committed) {
        durable->decided = entry->sequence;
    } else if (entry->kind == VXD_NAMED_MADE) {
        durable->is_broken = true;
        remove_thing(named);
    } else if (entry->kind == VXD_NAMED_DROPPED) {
        durable->is_leaving = false;
        if (committed) {
            /* This comes before the thing is removed, since its id is lost with its last reference. */
            vxd_registry_ask_snapshot(named->names->registry, durable->journal_id);
            remove_thing(named);
            return;
        }
    }
    bring_back_when_possible(named);
}
