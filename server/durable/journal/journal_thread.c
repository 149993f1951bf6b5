// SPDX-License-Identifier: Apache-2.0
/* The writer: takes all transactions that wait, writes them as one SQLite transaction and calls
 * their completions. Between groups it syncs the WAL for EVERYSEC, copies a long WAL into the
 * database (which takes tens of milliseconds, so it waits for a moment when nothing comes, until the
 * WAL is very long), removes a few records at a time that snapshots made superfluous, and probes a disk that
 * takes no writes.
 *
 * After a failed sync the system may have dropped the pages that it should have written, and the
 * next sync succeeds all the same. So a probe first copies the WAL into the database, which is
 * written and synced anew, and starts the WAL again: nothing is built on pages that may not be on
 * the disk. A commit that failed was undone in memory only; the probe's own commit takes its place
 * in the WAL. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "proto/base/clock.h"
#include "server/durable/journal/journal_internal.h"
#include "server/observe/log/log.h"

enum {
    GROUP_TRANSACTIONS = 1024,
    GROUP_BYTES = 8 << 20,
    /* A pause of sensors, not of a client whose calls follow each other. */
    REST_MS = 20
};

/* Transactions that are written together. */
struct group {
    struct vxd_journal_txn *first;
    struct vxd_journal_txn **last;
    size_t n;
    size_t n_bytes;
    uint64_t n_written; /* of them */
    uint64_t n_records;
    uint64_t n_record_bytes;
    bool has_flush;
    bool is_full;
    bool has_everysec;
};

enum vxd_status vxd_journal_set_full(struct vxd_journal *journal, bool is_full,
                                     struct vxd_err *err)
{
    enum vxd_status status;

    if (journal->is_full == is_full) {
        return VXD_OK;
    }
    status = vxd_database_execute(
        journal->db,
        is_full ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL", err);
    if (status == VXD_OK) {
        journal->is_full = is_full;
    }
    return status;
}

static void clean_wal(struct vxd_journal *journal)
{
    journal->is_wal_dirty = false;
    journal->is_everysec_dirty = false;
}

static enum vxd_status sync_wal(struct vxd_journal *journal, struct vxd_err *err)
{
    sqlite3_file *file = NULL;
    int result =
        sqlite3_file_control(journal->db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &file);

    if (result == SQLITE_OK && file != NULL && file->pMethods != NULL) {
        result = file->pMethods->xSync(file, SQLITE_SYNC_NORMAL);
    }
    if (result != SQLITE_OK) {
        return vxd_database_fail(err, journal->db, result, "sync the WAL");
    }
    clean_wal(journal);
    return VXD_OK;
}

/* The group ------------------------------------------------------------------------------- */

static void take_group(struct vxd_journal *journal, struct group *group)
{
    *group = (struct group){.first = journal->first};
    group->last = &group->first;
    while (*group->last != NULL && group->n < GROUP_TRANSACTIONS &&
           group->n_bytes < GROUP_BYTES) {
        group->n_bytes += (*group->last)->n_bytes;
        group->n++;
        group->last = &(*group->last)->next;
    }
    journal->first = *group->last;
    *group->last = NULL;
    if (journal->first == NULL) {
        journal->last = &journal->first;
    }
    journal->stats.n_queued -= group->n;
    journal->stats.n_queued_bytes -= group->n_bytes;
}

static void count(struct group *group, const struct vxd_journal_txn *txn)
{
    bool has_family = false;

    group->has_flush = group->has_flush || txn->is_flush;
    if (txn->status != VXD_OK || txn->first == NULL) {
        return;
    }
    group->n_written++;
    for (const struct vxd_change *change = txn->first; change != NULL;
         change = change->next) {
        has_family = has_family || change->family != 0;
        if (change->kind == VXD_CHANGE_RECORD) {
            group->n_records++;
            group->n_record_bytes += change->n_bytes;
        }
    }
    group->is_full = group->is_full || !has_family;
}

/* Checks each transaction against the families. Of the policies of the families that changed the
 * strictest applies. The first commit of a family without a sync is preceded by one with it
 * that says so, which is how a start after a loss of power knows whom it may have cost
 * something. */
static void check_group(struct vxd_journal *journal, struct group *group)
{
    bool is_synced;

    (void)pthread_mutex_lock(&journal->lock);
    for (struct vxd_journal_txn *txn = group->first; txn != NULL; txn = txn->next) {
        vxd_journal_check_txn(journal, txn);
        count(group, txn);
    }
    for (size_t i = 0; i < journal->n_rows; i++) {
        const struct vxd_family_row *row = &journal->rows[i];

        if (row->is_in_group) {
            group->is_full =
                group->is_full || row->now.fsync == VXD_FSYNC_ALWAYS || !row->now.exists;
            group->has_everysec =
                group->has_everysec || row->now.fsync == VXD_FSYNC_EVERYSEC;
        }
    }
    is_synced = group->is_full;
    for (size_t i = 0; i < journal->n_rows && !is_synced; i++) {
        struct vxd_family_row *row = &journal->rows[i];

        if (row->is_in_group && !row->now.open_tail) {
            row->now.open_tail = true;
            group->is_full = true;
        }
    }
    (void)pthread_mutex_unlock(&journal->lock);
}

static enum vxd_status write_group(struct vxd_journal *journal, struct group *group,
                                   struct vxd_err *err)
{
    int64_t unix_ns = vxd_clock_unix_ns();
    enum vxd_status status;

    VXD_TRY(vxd_journal_open_spool(journal, err));
    VXD_TRY(vxd_journal_set_full(journal, group->is_full, err));
    VXD_TRY(vxd_journal_run(journal, VXD_SQL_BEGIN, err));
    journal->spool_now = journal->spool;
    for (const struct vxd_journal_txn *txn = group->first; txn != NULL; txn = txn->next) {
        if (txn->status == VXD_OK) {
            VXD_TRY(vxd_journal_write_txn(journal, txn, err));
            VXD_TRY(vxd_journal_spool_txn(journal, txn, unix_ns, err));
        }
    }
    journal->next_sequence = journal->sequence + group->n_written;
    VXD_TRY(vxd_journal_write_states(journal, err));
    VXD_TRY(vxd_journal_run(journal, VXD_SQL_COMMIT, err));
    journal->sequence = journal->next_sequence;
    if (group->is_full) {
        clean_wal(journal);
    } else {
        journal->is_wal_dirty = true;
        if (group->has_everysec && !journal->is_everysec_dirty) {
            journal->is_everysec_dirty = true;
            journal->everysec_ns = vxd_clock_ns();
        }
    }
out:
    if (status != VXD_OK && sqlite3_get_autocommit(journal->db) == 0) {
        (void)vxd_journal_run(journal, VXD_SQL_ROLLBACK, NULL);
    }
    return status;
}

/* The group's changes of the families become the committed state, or are undone. With the lock. */
static void settle_rows(struct vxd_journal *journal, bool is_committed)
{
    for (size_t i = 0; i < journal->n_rows; i++) {
        struct vxd_family_row *row = &journal->rows[i];

        if (!row->is_in_group) {
            continue;
        }
        row->is_in_group = false;
        row->needs_sum = false;
        if (!is_committed) {
            row->now = row->committed;
        } else if (row->now.exists) {
            row->may_have_lost =
                row->may_have_lost && row->committed.epoch == row->now.epoch;
            row->committed = row->now;
        }
    }
    for (size_t i = 0; i < journal->n_rows;) {
        struct vxd_family_row *row = &journal->rows[i];

        if (row->now.exists) {
            i++;
            continue;
        }
        if (row->committed.exists) {
            (void)vxd_journal_remember_dropped(journal, row->id);
        }
        *row = journal->rows[--journal->n_rows];
    }
}

static void count_group(struct vxd_journal *journal, const struct group *group,
                        int64_t begin_ns)
{
    struct vxd_journal_stats *stats = &journal->stats;
    uint64_t took_us = (uint64_t)(vxd_clock_ns() - begin_ns) / 1000;

    stats->n_groups++;
    stats->n_transactions += group->n_written;
    stats->n_records += group->n_records;
    stats->n_record_bytes += group->n_record_bytes;
    stats->last_group_us = took_us;
    stats->longest_group_us =
        took_us > stats->longest_group_us ? took_us : stats->longest_group_us;
}

/* With the lock. */
static void set_unavailable(struct vxd_journal *journal, const struct vxd_err *err)
{
    if (journal->stats.is_available) {
        vxd_log(VXD_LOG_ERROR,
                "the journal cannot write; changes are refused until it can", "reason",
                err->message);
    }
    journal->stats.is_available = false;
    (void)snprintf(journal->stats.reason, sizeof journal->stats.reason, "%.*s",
                   (int)sizeof journal->stats.reason - 1, err->message);
}

static void fail_all(struct group *group, enum vxd_status status,
                     const struct vxd_err *err)
{
    for (struct vxd_journal_txn *txn = group->first; txn != NULL; txn = txn->next) {
        if (txn->status == VXD_OK) {
            txn->status = status;
            txn->err = *err;
        }
    }
}

/* Calls all completions in order and frees the transactions. Without locks, because a completion
 * may commit more. */
static void complete(struct vxd_journal *journal, struct group *group)
{
    uint64_t n_failed = 0;

    for (struct vxd_journal_txn *txn = group->first, *next; txn != NULL; txn = next) {
        next = txn->next;
        n_failed += txn->status != VXD_OK;
        if (txn->done != NULL) {
            txn->done(txn->user, txn->status, txn->status != VXD_OK ? &txn->err : NULL);
        }
        vxd_journal_free_txn(txn);
    }
    (void)pthread_mutex_lock(&journal->lock);
    journal->stats.n_failed += n_failed;
    (void)pthread_mutex_unlock(&journal->lock);
}

static enum vxd_status sync_mark(struct vxd_journal *journal, struct vxd_err *err)
{
    return journal->mark.synced < journal->sequence
               ? vxd_journal_write_mark(journal, true, err)
               : VXD_OK;
}

/* The mark follows the WAL, before anybody gets an answer. If it cannot be written, the group is on
 * the disk all the same, and what comes after it waits until the mark can be. */
static void run_group(struct vxd_journal *journal, struct group *group)
{
    struct vxd_err err = {0};
    struct vxd_err mark_err = {0};
    int64_t begin_ns = vxd_clock_ns();
    enum vxd_status status = VXD_OK;
    enum vxd_status mark_status = VXD_OK;
    bool is_written = false;

    (void)pthread_mutex_lock(&journal->db_lock);
    check_group(journal, group);
    if (group->n_written > 0) {
        status = write_group(journal, group, &err);
        is_written = status == VXD_OK;
    }
    if (is_written) {
        mark_status = vxd_journal_write_mark(journal, group->is_full, &mark_err);
    }
    if (status == VXD_OK && group->has_flush && journal->is_wal_dirty) {
        status = sync_wal(journal, &err);
    }
    if (status == VXD_OK && mark_status == VXD_OK && group->has_flush) {
        mark_status = sync_mark(journal, &mark_err);
    }
    (void)pthread_mutex_lock(&journal->lock);
    settle_rows(journal, is_written);
    if (is_written) {
        count_group(journal, group, begin_ns);
        vxd_journal_settle_spool(journal);
    }
    if (status != VXD_OK) {
        fail_all(group, status, &err);
        set_unavailable(journal, &err);
    } else if (mark_status != VXD_OK) {
        set_unavailable(journal, &mark_err);
    }
    journal->stats.n_marked = journal->mark.synced;
    (void)pthread_mutex_unlock(&journal->lock);
    (void)pthread_mutex_unlock(&journal->db_lock);
    complete(journal, group);
}

/* Transactions that arrive while nothing can be written fail with the reason of that. */
static void refuse_group(struct vxd_journal *journal, struct group *group)
{
    struct vxd_err err = {0};

    (void)pthread_mutex_lock(&journal->lock);
    (void)vxd_fail(&err, VXD_UNAVAILABLE, NULL, "the journal cannot write: %s",
                   journal->stats.reason);
    (void)pthread_mutex_unlock(&journal->lock);
    fail_all(group, VXD_UNAVAILABLE, &err);
    complete(journal, group);
}

/* Between groups --------------------------------------------------------------------------- */

/* Ends what runs between groups: a failure makes the journal unavailable. */
static void settle(struct vxd_journal *journal, enum vxd_status status,
                   const struct vxd_err *err)
{
    if (status != VXD_OK) {
        (void)pthread_mutex_lock(&journal->lock);
        set_unavailable(journal, err);
        (void)pthread_mutex_unlock(&journal->lock);
    }
    (void)pthread_mutex_unlock(&journal->db_lock);
}

static enum vxd_status checkpoint(struct vxd_journal *journal, int mode,
                                  struct vxd_err *err)
{
    int result = sqlite3_wal_checkpoint_v2(journal->db, "main", mode, NULL, NULL);

    if (result != SQLITE_OK) {
        return vxd_database_fail(err, journal->db, result,
                                 "copy the WAL into the database");
    }
    journal->n_wal_frames = 0;
    clean_wal(journal); /* all of it is in the database, and that is synced */
    (void)pthread_mutex_lock(&journal->lock);
    journal->stats.n_checkpoints++;
    (void)pthread_mutex_unlock(&journal->lock);
    return VXD_OK;
}

static bool is_wal_longer(struct vxd_journal *journal, uint32_t n_pages)
{
    bool is_longer;

    (void)pthread_mutex_lock(&journal->db_lock);
    is_longer = journal->n_wal_frames > 0 && (uint32_t)journal->n_wal_frames >= n_pages;
    (void)pthread_mutex_unlock(&journal->db_lock);
    return is_longer;
}

static void copy_wal(struct vxd_journal *journal)
{
    struct vxd_err err = {0};
    enum vxd_status status;

    (void)pthread_mutex_lock(&journal->db_lock);
    status = checkpoint(journal, SQLITE_CHECKPOINT_PASSIVE, &err);
    settle(journal, status, &err);
}

static void sync_every_second(struct vxd_journal *journal)
{
    struct vxd_err err = {0};
    enum vxd_status status = VXD_OK;

    (void)pthread_mutex_lock(&journal->db_lock);
    if (journal->is_everysec_dirty) {
        status = sync_wal(journal, &err);
        if (status == VXD_OK) {
            status = sync_mark(journal, &err);
        }
        (void)pthread_mutex_lock(&journal->lock);
        journal->stats.n_syncs++;
        journal->stats.n_marked = journal->mark.synced;
        (void)pthread_mutex_unlock(&journal->lock);
    }
    settle(journal, status, &err);
}

/* Deletes a few records of a range in a transaction of its own, which nobody waits for.
 * *is_done: there were none left. */
static enum vxd_status trim(struct vxd_journal *journal, uint32_t family, uint64_t last,
                            bool *is_done, struct vxd_err *err)
{
    sqlite3_stmt *statement = journal->statements[VXD_SQL_TRIM];
    enum vxd_status status;

    VXD_TRY(vxd_journal_set_full(journal, false, err));
    (void)sqlite3_bind_int64(statement, 1, vxd_database_row_id(family, 0));
    (void)sqlite3_bind_int64(statement, 2, vxd_database_row_id(family, last));
    VXD_TRY(vxd_journal_run(journal, VXD_SQL_TRIM, err));
    *is_done = sqlite3_changes(journal->db) == 0;
    journal->is_wal_dirty = journal->is_wal_dirty || !*is_done;
out:
    return status;
}

static enum vxd_status trim_dropped(struct vxd_journal *journal, struct vxd_err *err)
{
    uint32_t family = journal->dropped[journal->n_dropped - 1];
    bool is_done = false;
    enum vxd_status status;

    VXD_TRY(trim(journal, family, VXD_JOURNAL_MAX_SEQUENCE, &is_done, err));
    if (is_done) {
        (void)sqlite3_bind_int64(journal->statements[VXD_SQL_FORGET_DROPPED], 1, family);
        VXD_TRY(vxd_journal_run(journal, VXD_SQL_FORGET_DROPPED, err));
        journal->is_wal_dirty = true;
        journal->n_dropped--;
    }
out:
    return status;
}

/* False where there was nothing to remove. The rows' numbers change on this thread only. */
static bool trim_some(struct vxd_journal *journal)
{
    struct vxd_err err = {0};
    enum vxd_status status = VXD_OK;
    bool is_done = true;
    bool found = false;

    (void)pthread_mutex_lock(&journal->db_lock);
    if (journal->n_dropped > 0) {
        found = true;
        status = trim_dropped(journal, &err);
    }
    for (size_t i = 0; i < journal->n_rows && !found; i++) {
        struct vxd_family_row *row = &journal->rows[i];

        if (row->trimmed_to < row->committed.kept_from) {
            found = true;
            status = trim(journal, row->id, row->committed.kept_from, &is_done, &err);
            if (is_done && status == VXD_OK) {
                row->trimmed_to = row->committed.kept_from;
            }
        }
    }
    settle(journal, status, &err);
    return found;
}

static void report_due(struct vxd_journal *journal)
{
    for (;;) {
        uint32_t family = 0;

        (void)pthread_mutex_lock(&journal->lock);
        for (size_t i = 0; i < journal->n_rows && family == 0; i++) {
            struct vxd_family_row *row = &journal->rows[i];
            bool is_due = row->committed.max_bytes > 0 &&
                          row->committed.journal_bytes >= row->committed.max_bytes;

            family = is_due && !row->is_due_reported ? row->id : 0;
            row->is_due_reported = is_due;
        }
        (void)pthread_mutex_unlock(&journal->lock);
        if (family == 0) {
            return;
        }
        if (journal->options.snapshot_due != NULL) {
            journal->options.snapshot_due(journal->options.user, family);
        }
    }
}

static void probe(struct vxd_journal *journal)
{
    struct vxd_err err = {0};
    enum vxd_status status;

    (void)pthread_mutex_lock(&journal->db_lock);
    VXD_TRY(checkpoint(journal, SQLITE_CHECKPOINT_TRUNCATE, &err));
    VXD_TRY(vxd_journal_set_full(journal, true, &err));
    if (!journal->is_run_noted) {
        VXD_TRY(vxd_journal_note_run(journal, &err));
    }
    VXD_TRY(vxd_database_set_meta(journal->db, "probe", ++journal->n_probes, &err));
    VXD_TRY(vxd_journal_write_mark(journal, true, &err));
out:
    (void)pthread_mutex_lock(&journal->lock);
    if (status == VXD_OK) {
        vxd_log(VXD_LOG_WARNING, "the journal can write again");
        journal->stats.is_available = true;
        journal->stats.reason[0] = '\0';
    } else {
        set_unavailable(journal, &err);
    }
    (void)pthread_mutex_unlock(&journal->lock);
    (void)pthread_mutex_unlock(&journal->db_lock);
}

/* The loop --------------------------------------------------------------------------------- */

/* Waits for work until a time (0 = for ever); true when there is any. With the lock. */
static bool wait_until(struct vxd_journal *journal, int64_t until_ns)
{
    while (journal->first == NULL && !journal->is_stopping) {
        struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000),
                                 .tv_nsec = (long)(until_ns % 1000000000)};

        journal->stats.is_idle = true;
        if (until_ns == 0) {
            (void)pthread_cond_wait(&journal->wake, &journal->lock);
        } else if (pthread_cond_timedwait(&journal->wake, &journal->lock, &until) ==
                   ETIMEDOUT) {
            break;
        }
    }
    journal->stats.is_idle = false;
    return journal->first != NULL;
}

static int64_t ms_after(int64_t time_ns, uint32_t ms)
{
    return time_ns + (int64_t)ms * 1000000;
}

/* One turn while writes work. False when the end has come. */
static bool turn(struct vxd_journal *journal, bool *has_trims)
{
    int64_t sync_ns = 0;
    int64_t rest_ns = 0;
    int64_t until_ns;
    struct group group = {0};
    bool has_work;
    bool is_resting;

    if (journal->is_everysec_dirty) {
        sync_ns = ms_after(journal->everysec_ns, journal->options.sync_ms);
    }
    if (is_wal_longer(journal, journal->options.n_rest_pages)) {
        rest_ns = ms_after(vxd_clock_ns(), REST_MS);
    }
    until_ns = sync_ns != 0 && (rest_ns == 0 || sync_ns < rest_ns) ? sync_ns : rest_ns;
    (void)pthread_mutex_lock(&journal->lock);
    has_work = *has_trims ? journal->first != NULL : wait_until(journal, until_ns);
    if (has_work) {
        take_group(journal, &group);
    }
    if (!has_work && journal->is_stopping) {
        (void)pthread_mutex_unlock(&journal->lock);
        return false;
    }
    (void)pthread_mutex_unlock(&journal->lock);
    if (has_work) {
        run_group(journal, &group);
        report_due(journal);
    }
    if (sync_ns != 0 && vxd_clock_ns() >= sync_ns) {
        sync_every_second(journal);
    }
    is_resting = !has_work && rest_ns != 0 && vxd_clock_ns() >= rest_ns;
    if (is_resting || is_wal_longer(journal, journal->options.n_wal_pages)) {
        copy_wal(journal);
    }
    *has_trims = trim_some(journal);
    return true;
}

/* One turn while they do not: all transactions are refused until a probe succeeds. */
static bool turn_unavailable(struct vxd_journal *journal, int64_t *probe_ns)
{
    struct group group = {0};
    bool has_work;

    (void)pthread_mutex_lock(&journal->lock);
    has_work = wait_until(journal, *probe_ns);
    if (has_work) {
        take_group(journal, &group);
    }
    if (!has_work && journal->is_stopping) {
        (void)pthread_mutex_unlock(&journal->lock);
        return false;
    }
    (void)pthread_mutex_unlock(&journal->lock);
    if (has_work) {
        refuse_group(journal, &group);
    }
    if (vxd_clock_ns() >= *probe_ns) {
        probe(journal);
        *probe_ns = 0;
    }
    return true;
}

void *vxd_journal_thread(void *args)
{
    struct vxd_journal *journal = args;
    int64_t probe_ns = 0;
    bool has_trims = true; /* perhaps left by the last run */
    bool goes_on = true;

    while (goes_on) {
        bool is_available;

        (void)pthread_mutex_lock(&journal->lock);
        is_available = journal->stats.is_available;
        (void)pthread_mutex_unlock(&journal->lock);
        if (is_available) {
            probe_ns = 0;
            goes_on = turn(journal, &has_trims);
        } else {
            if (probe_ns == 0) {
                probe_ns = ms_after(vxd_clock_ns(), journal->options.probe_ms);
            }
            goes_on = turn_unavailable(journal, &probe_ns);
        }
    }
    return NULL;
}
