// SPDX-License-Identifier: Apache-2.0
/* One family after the other: its catalogue row, the newest snapshot that is whole, the records
 * after it as far as they go. What is missing is logged, cut and reported to the owner. */
#include "server/durable/recovery/recovery.h"

#include <stdlib.h>
#include <string.h>

#include "server/durable/journal/journal.h"
#include "server/durable/recovery/recovery_prefetch.h"
#include "server/durable/snapshot/snapshot.h"
#include "server/observe/log/log.h"

enum {
    RECORDS_A_NOTE = 100 /* between two calls of `progress` */
};

/* A family with its own copy of the spec. */
struct family_copy {
    struct vxd_journal_family family;
    uint8_t *spec;
};

struct recovery {
    const struct vxd_data_dir *dir;
    struct vxd_journal *journal;
    const struct vxd_journal_found *found;
    const struct vxd_recovery_visitor *visitor;
    struct family_copy *families;
    size_t n_families;
    size_t capacity;
    /* The family in hand. */
    const struct vxd_journal_family *family;
    struct vxd_recovered_family result;
    struct vxd_recovery_progress progress;
    uint64_t foreseen; /* the number after the last that `foresee` got */
};

/* Copies the catalogue, so that the journal is not locked while each family is recovered. */
static enum vxd_status list_family(void *user, const struct vxd_journal_family *family,
                                   struct vxd_err *err)
{
    struct recovery *recovery = user;
    struct family_copy *next;
    uint8_t *spec;

    if (recovery->visitor->is_ours != NULL &&
        !recovery->visitor->is_ours(recovery->visitor->user, family)) {
        return VXD_OK;
    }
    if (recovery->n_families == recovery->capacity) {
        size_t capacity = 2 * recovery->capacity + 16;
        struct family_copy *families =
            realloc(recovery->families, capacity * sizeof *families);

        if (families == NULL) {
            return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for families");
        }
        recovery->families = families;
        recovery->capacity = capacity;
    }
    spec = malloc(family->n_spec_bytes > 0 ? family->n_spec_bytes : 1);
    if (spec == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a family");
    }
    memcpy(spec, family->spec, family->n_spec_bytes);
    next = &recovery->families[recovery->n_families++];
    *next = (struct family_copy){.family = *family, .spec = spec};
    next->family.spec = spec;
    return VXD_OK;
}

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static void
lose(struct recovery *recovery, const char *format, ...)
{
    struct vxd_recovered_family *result = &recovery->result;
    va_list args;

    if (result->is_lossy) {
        return; /* the first reason says most */
    }
    result->is_lossy = true;
    va_start(args, format);
    (void)vsnprintf(result->reason, sizeof result->reason, format, args);
    va_end(args);
    vxd_log(VXD_LOG_ERROR, "a family came back without something that clients were told",
            "family", recovery->family->name, "reason", result->reason);
}

/* A failure that says nothing of what is on the disk. */
static bool is_device_lost(const struct recovery *recovery)
{
    const struct vxd_recovery_visitor *visitor = recovery->visitor;

    return visitor->is_device_lost != NULL && visitor->is_device_lost(visitor->user);
}

static enum vxd_status fail_device(const struct recovery *recovery, struct vxd_err *err)
{
    return vxd_fail(err, VXD_UNAVAILABLE, NULL,
                    "the engine's device was lost while \"%s\" came back",
                    recovery->family->name);
}

static void report(struct recovery *recovery)
{
    if (recovery->visitor->progress != NULL) {
        recovery->visitor->progress(recovery->visitor->user, &recovery->progress);
    }
}

/* Snapshots -------------------------------------------------------------------------------- */

static enum vxd_status load_snapshot(struct recovery *recovery, uint64_t sequence,
                                     struct vxd_err *err)
{
    const struct vxd_recovery_visitor *visitor = recovery->visitor;
    struct vxd_snapshot_reader *reader = NULL;
    enum vxd_status status;

    VXD_TRY(
        vxd_snapshot_open(recovery->dir, recovery->family->id, sequence, &reader, err));
    VXD_TRY(visitor->snapshot(visitor->user, recovery->family, reader, err));
    VXD_TRY(vxd_snapshot_read_end(reader, err));
out:
    vxd_snapshot_close(reader);
    return status;
}

/* Renames a damaged file, so that it does not stand in the way of later ones; it is kept for
 * inspection. */
static void set_aside(struct recovery *recovery, uint64_t sequence)
{
    const struct vxd_file_ops *ops = recovery->dir->ops;
    char from[VXD_DURABLE_PATH_BYTES];
    char to[VXD_DURABLE_PATH_BYTES];

    vxd_snapshot_path(recovery->dir, recovery->family->id, sequence, "", from);
    vxd_snapshot_path(recovery->dir, recovery->family->id, sequence, ".bad", to);
    (void)ops->rename(ops->user, from, to);
}

/* Loads the newest that is whole, beginning anew after each that is not; where it came to. */
static enum vxd_status load_newest(struct recovery *recovery, uint64_t *sequence,
                                   struct vxd_err *err)
{
    const struct vxd_recovery_visitor *visitor = recovery->visitor;
    uint64_t *sequences = NULL;
    size_t n = 0;
    enum vxd_status status;

    *sequence = 0;
    VXD_TRY(vxd_snapshot_list(recovery->dir, recovery->family->id, &sequences, &n, err));
    VXD_TRY(visitor->family(visitor->user, recovery->family, err));
    for (size_t i = 0; i < n; i++) {
        struct vxd_err fault = {0};

        status = load_snapshot(recovery, sequences[i], &fault);
        if (status == VXD_OK) {
            *sequence = sequences[i];
            break;
        }
        if (is_device_lost(recovery)) {
            VXD_TRY(fail_device(recovery, err));
        }
        if (status != VXD_DATA_LOSS && status != VXD_UNAVAILABLE &&
            status != VXD_NOT_FOUND) {
            *err = fault;
            goto out;
        }
        vxd_log(VXD_LOG_ERROR, "a snapshot is no good, the one before it is tried",
                "family", recovery->family->name, "reason", fault.message);
        set_aside(recovery, sequences[i]);
        VXD_TRY(visitor->family(visitor->user, recovery->family, err));
    }
    status = VXD_OK;
out:
    free(sequences);
    return status;
}

/* Records ---------------------------------------------------------------------------------- */

static void count_record(struct recovery *recovery)
{
    recovery->result.n_replayed++;
    recovery->progress.i_record++;
    if (recovery->progress.i_record % RECORDS_A_NOTE == 0) {
        report(recovery);
    }
}

static enum vxd_status replay_records(void *user, uint64_t sequence,
                                      const struct vxd_record_decoded *records, size_t n,
                                      size_t *n_taken, struct vxd_err *err)
{
    struct recovery *recovery = user;
    const struct vxd_recovery_visitor *visitor = recovery->visitor;
    enum vxd_status status = VXD_OK;

    *n_taken = 0;
    if (visitor->records != NULL) {
        status = visitor->records(visitor->user, recovery->family, sequence, records, n,
                                  n_taken, err);
    }
    while (visitor->records == NULL && *n_taken < n) {
        VXD_TRY(visitor->record(visitor->user, recovery->family, sequence + *n_taken,
                                &records[*n_taken].record, err));
        ++*n_taken;
    }
out:
    for (size_t i = 0; i < *n_taken; i++) {
        count_record(recovery);
    }
    return status;
}

static enum vxd_status replay_own_record(void *user,
                                         const struct vxd_journal_record *record,
                                         struct vxd_err *err)
{
    struct recovery *recovery = user;
    const struct vxd_recovery_visitor *visitor = recovery->visitor;
    enum vxd_status status;

    VXD_TRY(visitor->own_record(visitor->user, recovery->family, record, err));
    count_record(recovery);
out:
    return status;
}

/* Cuts what follows the last good record, if anything does or may, and sets the journal's last
 * sequence number of the family. Behind the owner's `done`: the family has another epoch by then,
 * and a start that ends in between finds the damage again. */
static enum vxd_status settle_journal(struct recovery *recovery,
                                      uint64_t journal_sequence, struct vxd_err *err)
{
    uint64_t last = recovery->result.last_sequence;
    struct vxd_journal_txn *txn = NULL;
    bool was_given_out;
    enum vxd_status status;

    if (last == journal_sequence ||
        !vxd_journal_knows_family(recovery->journal, recovery->family->id,
                                  &was_given_out)) {
        return VXD_OK;
    }
    VXD_TRY(vxd_journal_begin(recovery->journal, &txn, err));
    status = last < journal_sequence
                 ? vxd_journal_cut(txn, recovery->family->id, last, err)
                 : vxd_journal_snapshot_taken(txn, recovery->family->id, last, 0, err);
    if (status != VXD_OK) {
        vxd_journal_abandon(txn);
        return status;
    }
    VXD_TRY(vxd_journal_commit_wait(txn, err));
out:
    return status;
}

static enum vxd_status foresee_record(void *user, const struct vxd_journal_record *record,
                                      struct vxd_err *err)
{
    struct recovery *recovery = user;
    const struct vxd_recovery_visitor *visitor = recovery->visitor;
    struct vxd_record head;
    enum vxd_status status;

    VXD_TRY(vxd_record_decode_head(record->bytes, record->n_bytes, record->rules_version,
                                   &head, err));
    visitor->foresee(visitor->user, recovery->family, record->sequence, &head);
    recovery->foreseen = record->sequence + 1;
out:
    return status;
}

/* Applies the records from `from` on, as far as they go: *next is behind them. A failure is that
 * of the next one. With `foresees` the owner gets all heads first; *is_as_foreseen says
 * whether as many records were applied as it got heads. */
static enum vxd_status read_records(struct recovery *recovery, uint64_t from,
                                    bool foresees, uint64_t *next, bool *is_as_foreseen,
                                    struct vxd_err *err)
{
    struct vxd_journal *journal = recovery->journal;
    uint32_t family = recovery->family->id;
    size_t most = recovery->visitor->records_at_once != 0
                      ? recovery->visitor->records_at_once
                      : VXD_RECORDS_AT_ONCE;
    enum vxd_status status;

    recovery->foreseen = from;
    status =
        recovery->visitor->own_record != NULL
            ? vxd_journal_read_records(journal, family, from, VXD_JOURNAL_MAX_SEQUENCE,
                                       replay_own_record, recovery, next, err)
            : vxd_prefetch_records(journal, family, from, most,
                                   foresees ? foresee_record : NULL, replay_records,
                                   recovery, next, err);
    *is_as_foreseen = !foresees || *next == recovery->foreseen;
    return status;
}

static enum vxd_status replay(struct recovery *recovery,
                              const struct vxd_journal_state *state, bool foresees,
                              bool *is_as_foreseen, struct vxd_err *err)
{
    uint64_t from = recovery->result.snapshot_sequence;
    struct vxd_err fault = {0};
    uint64_t next = from + 1;
    enum vxd_status status;

    recovery->progress.i_record = 0;
    recovery->progress.n_records =
        state->last_sequence > from ? state->last_sequence - from : 0;
    report(recovery);
    status = read_records(recovery, next, foresees, &next, is_as_foreseen, &fault);
    if (!*is_as_foreseen && (status == VXD_OK || status == VXD_DATA_LOSS)) {
        return VXD_OK;
    }
    if (status != VXD_OK && is_device_lost(recovery)) {
        return fail_device(recovery, err);
    }
    if (status == VXD_DATA_LOSS) {
        lose(recovery, "%s; what follows was set aside", fault.message);
    } else if (status != VXD_OK) {
        *err = fault;
        return status;
    }
    recovery->result.last_sequence = next - 1;
    if (next - 1 < state->last_sequence) {
        lose(recovery, "the journal ends at %llu, but %llu were written",
             (unsigned long long)(next - 1), (unsigned long long)state->last_sequence);
    }
    report(recovery);
    return VXD_OK;
}

/* The family -------------------------------------------------------------------------------- */

struct item_visit {
    struct recovery *recovery;
    enum vxd_journal_item_kind kind;
};

static enum vxd_status visit_item(void *user, const struct vxd_journal_item *item,
                                  struct vxd_err *err)
{
    const struct item_visit *visit = user;
    const struct vxd_recovery_visitor *visitor = visit->recovery->visitor;

    return visitor->item(visitor->user, visit->kind, item, err);
}

static enum vxd_status visit_items(struct recovery *recovery, struct vxd_err *err)
{
    static const enum vxd_journal_item_kind kinds[] = {
        VXD_JOURNAL_HEAD, VXD_JOURNAL_NAMED, VXD_JOURNAL_AGES};
    uint64_t n_damaged = 0;
    enum vxd_status status = VXD_OK;

    for (size_t i = 0; recovery->visitor->item != NULL && i < 3; i++) {
        struct item_visit visit = {recovery, kinds[i]};

        VXD_TRY(vxd_journal_read_items(recovery->journal, kinds[i], recovery->family->id,
                                       visit_item, &visit, &n_damaged, err));
    }
    if (n_damaged > 0) {
        vxd_log(VXD_LOG_WARNING, "ages of versions are damaged and begin anew", "family",
                recovery->family->name);
    }
out:
    return status;
}

static enum vxd_status recover_family(struct recovery *recovery, struct vxd_err *err)
{
    const struct vxd_recovery_visitor *visitor = recovery->visitor;
    struct vxd_recovered_family *result = &recovery->result;
    bool foresees = visitor->foresee != NULL;
    struct vxd_journal_state state;
    bool is_as_foreseen;
    enum vxd_status status;

    VXD_TRY(vxd_journal_get_state(recovery->journal, recovery->family->id, &state, err));
    do {
        *result = (struct vxd_recovered_family){.family = recovery->family};
        VXD_TRY(load_newest(recovery, &result->snapshot_sequence, err));
        VXD_TRY(replay(recovery, &state, foresees, &is_as_foreseen, err));
        foresees = false;
    } while (!is_as_foreseen);
    if (recovery->found->is_behind_mark) {
        lose(recovery, "the journal ends before changes that were acknowledged");
    }
    if (recovery->found->is_restored) {
        lose(recovery, "restored from a backup: what came later is not in it");
    }
    if (state.may_have_lost) {
        lose(recovery, "the system went down before the last changes were synced");
    }
    VXD_TRY(visit_items(recovery, err));
    if (visitor->done != NULL) {
        VXD_TRY(visitor->done(visitor->user, result, err));
    }
    VXD_TRY(settle_journal(recovery, state.last_sequence, err));
out:
    return status;
}

/* From now on the database is one like any other. Behind what the owner committed. */
static enum vxd_status end_losing(struct vxd_journal *journal, const char *key,
                                  struct vxd_err *err)
{
    struct vxd_journal_txn *txn;
    enum vxd_status status;

    VXD_TRY(vxd_journal_begin(journal, &txn, err));
    status = vxd_journal_put_meta(txn, key, 0, err);
    if (status != VXD_OK) {
        vxd_journal_abandon(txn);
        return status;
    }
    VXD_TRY(vxd_journal_commit_wait(txn, err));
out:
    return status;
}

/* Every family that may have lost something has another generation by then. Where the disk takes
 * nothing the loss of power stays noted, which at worst costs families another generation. */
static enum vxd_status end_recovery(struct vxd_journal *journal,
                                    const struct vxd_journal_found *found,
                                    struct vxd_err *err)
{
    struct vxd_err fault = {0};
    enum vxd_status status = VXD_OK;

    if (found->is_restored || found->is_behind_mark) {
        VXD_TRY(end_losing(journal, "restored", err));
    }
    if (found->is_power_lost) {
        status = end_losing(journal, "power_lost", &fault);
    }
    if (status == VXD_UNAVAILABLE || status == VXD_RESOURCE_EXHAUSTED) {
        vxd_log(VXD_LOG_WARNING, "the journal cannot note that the start has ended",
                "reason", fault.message);
        status = VXD_OK;
    } else if (status != VXD_OK) {
        *err = fault;
    }
out:
    return status;
}

enum vxd_status vxd_recover(const struct vxd_data_dir *dir, struct vxd_journal *journal,
                            const struct vxd_journal_found *found,
                            const struct vxd_recovery_visitor *visitor,
                            struct vxd_recovery_result *out, struct vxd_err *err)
{
    struct recovery recovery = {
        .dir = dir, .journal = journal, .found = found, .visitor = visitor};
    enum vxd_status status;

    *out = (struct vxd_recovery_result){0};
    VXD_TRY(vxd_journal_read_families(journal, list_family, &recovery, err));
    for (size_t i = 0; i < recovery.n_families; i++) {
        recovery.family = &recovery.families[i].family;
        recovery.progress =
            (struct vxd_recovery_progress){.n_families = recovery.n_families,
                                           .i_family = i,
                                           .name = recovery.family->name};
        VXD_TRY(recover_family(&recovery, err));
        out->n_families++;
        out->n_lossy += recovery.result.is_lossy;
        out->n_replayed += recovery.result.n_replayed;
    }
    if (!visitor->is_not_last) {
        VXD_TRY(end_recovery(journal, found, err));
    }
out:
    for (size_t i = 0; i < recovery.n_families; i++) {
        free(recovery.families[i].spec);
    }
    free(recovery.families);
    return status;
}
