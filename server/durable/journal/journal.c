// SPDX-License-Identifier: Apache-2.0
/* The journal's life, its queue, and what it knows without asking the disk. */
#include "server/durable/journal/journal.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"
#include "server/durable/journal/journal_internal.h"
#include "server/observe/log/log.h"

enum {
    DEFAULT_PROBE_MS = 500,
    DEFAULT_SYNC_MS = 1000,
    DEFAULT_WAL_PAGES = 16384,
    DEFAULT_REST_PAGES = 4096
};
#define DEFAULT_QUEUE_BYTES ((size_t)256 << 20)

static int note_frames(void *user, sqlite3 *db, const char *name, int n_frames)
{
    struct vxd_journal *journal = user;

    (void)db;
    (void)name;
    journal->n_wal_frames = n_frames;
    return SQLITE_OK;
}

enum vxd_status vxd_journal_note_run(struct vxd_journal *journal, struct vxd_err *err)
{
    sqlite3_stmt *statement = NULL;
    int result = sqlite3_prepare_v2(journal->db,
                                    "INSERT OR REPLACE INTO meta VALUES('clean', 0),"
                                    " ('boot_id', CAST(?1 AS BLOB)), ('power_lost', ?2)",
                                    -1, &statement, NULL);

    if (result == SQLITE_OK) {
        (void)sqlite3_bind_text(statement, 1, journal->boot_id, -1, SQLITE_STATIC);
        (void)sqlite3_bind_int(statement, 2, journal->is_power_lost);
        result = sqlite3_step(statement);
    }
    (void)sqlite3_finalize(statement);
    if (result != SQLITE_DONE) {
        journal->is_disk_to_blame =
            (result & 255) == SQLITE_FULL || (result & 255) == SQLITE_IOERR;
        return vxd_database_fail(err, journal->db, result, "write meta");
    }
    journal->is_run_noted = true;
    journal->is_wal_dirty = true;
    return VXD_OK;
}

/* A disk that takes nothing keeps nobody from reading: the writer begins with probes of it. */
static enum vxd_status note_run(struct vxd_journal *journal, struct vxd_err *err)
{
    struct vxd_err fault = {0};
    enum vxd_status status = vxd_journal_note_run(journal, &fault);

    if (status == VXD_OK) {
        return VXD_OK;
    }
    if (!journal->is_disk_to_blame) {
        return vxd_fail(err, status, fault.field, "%s", fault.message);
    }
    vxd_log(VXD_LOG_ERROR, "the journal cannot write; changes are refused until it can",
            "reason", fault.message);
    journal->stats.is_available = false;
    (void)snprintf(journal->stats.reason, sizeof journal->stats.reason, "%.*s",
                   (int)sizeof journal->stats.reason - 1, fault.message);
    return VXD_OK;
}

/* What the last run left behind, and that this one is there: in order with everything else, but
 * without a sync of its own, since the first commit without one is preceded by one with it. */
static enum vxd_status begin_run(struct vxd_journal *journal,
                                 struct vxd_journal_found *found, struct vxd_err *err)
{
    const struct vxd_file_ops *ops = journal->dir->ops;
    char now[VXD_BOOT_ID_BYTES] = "";
    char then[VXD_BOOT_ID_BYTES] = "";
    uint64_t clean, restored, next_family, power_lost;
    size_t n_secret, n_then;
    enum vxd_status status;

    VXD_TRY(vxd_database_get_meta(journal->db, "clean", &clean, err));
    VXD_TRY(vxd_database_get_meta(journal->db, "restored", &restored, err));
    VXD_TRY(vxd_database_get_meta(journal->db, "power_lost", &power_lost, err));
    VXD_TRY(vxd_database_get_meta(journal->db, "epoch", &journal->epoch, err));
    VXD_TRY(vxd_database_get_meta(journal->db, "next_family", &next_family, err));
    VXD_TRY(vxd_database_get_meta(journal->db, "run_ns", &journal->run_base_ns, err));
    journal->run_since_ns = vxd_clock_ns();
    VXD_TRY(vxd_database_get_meta_bytes(journal->db, "secret", journal->secret,
                                        sizeof journal->secret, &n_secret, err));
    VXD_TRY(vxd_database_get_meta_bytes(journal->db, "boot_id", then, sizeof then - 1,
                                        &n_then, err));
    if (n_secret != sizeof journal->secret || next_family < 1 ||
        next_family > (uint64_t)VXD_JOURNAL_MAX_FAMILY + 1 || journal->epoch < 1) {
        return vxd_fail(err, VXD_DATA_LOSS, "data_dir",
                        "voxeld.db: the table meta is damaged");
    }
    journal->next_family = (uint32_t)next_family;
    found->was_clean = clean == 1;
    found->is_restored = restored == 1;
    found->same_boot =
        ops->boot_id(ops->user, now) == 0 && now[0] != '\0' && strcmp(now, then) == 0;
    found->is_power_lost = !found->was_clean && (!found->same_boot || power_lost != 0);
    journal->is_power_lost = found->is_power_lost;
    VXD_TRY(vxd_journal_open_mark(journal, now, found, err));
    VXD_TRY(vxd_journal_set_full(journal, false, err));
    /* What a process that was killed had in the WAL without a sync is this one's to sync. */
    journal->is_everysec_dirty = !found->was_clean;
    journal->everysec_ns = journal->run_since_ns;
    (void)snprintf(journal->boot_id, sizeof journal->boot_id, "%s", now);
    status = note_run(journal, err);
out:
    return status;
}

/* Where the disk takes nothing, the first commit opens it. */
static enum vxd_status open_spool(struct vxd_journal *journal, struct vxd_err *err)
{
    struct vxd_err fault = {0};
    enum vxd_status status = vxd_journal_open_spool(journal, &fault);

    if (status == VXD_UNAVAILABLE || status == VXD_RESOURCE_EXHAUSTED) {
        vxd_log(VXD_LOG_ERROR, "nothing can be archived yet", "reason", fault.message);
        status = VXD_OK;
    } else if (status != VXD_OK) {
        *err = fault;
    }
    return status;
}

static enum vxd_status open_database(struct vxd_journal *journal,
                                     struct vxd_journal_found *found, struct vxd_err *err)
{
    char path[VXD_DURABLE_PATH_BYTES];
    int persist = 1;
    enum vxd_status status;

    (void)snprintf(path, sizeof path, "%s/voxeld.db", journal->dir->path);
    VXD_TRY(vxd_database_make(journal->dir, &found->is_new, err));
    VXD_TRY(vxd_database_connect(journal->dir->ops, path, false, &journal->db, err));
    journal->is_full = true;
    /* The WAL stays after a close, and holds what it held: nothing is to be done then. */
    (void)sqlite3_file_control(journal->db, "main", SQLITE_FCNTL_PERSIST_WAL, &persist);
    (void)sqlite3_db_config(journal->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    VXD_TRY(vxd_database_check_tables(journal->db, err));
    VXD_TRY(begin_run(journal, found, err));
    /* The names of the database and of the WAL, both of which are there now. */
    VXD_TRY(vxd_file_sync_directory(journal->dir->ops, journal->dir->path, err));
    VXD_TRY(vxd_journal_prepare(journal, err));
    VXD_TRY(vxd_journal_load_rows(journal, found, err));
    journal->is_forked = found->is_restored || found->is_behind_mark;
    VXD_TRY(open_spool(journal, err));
    (void)sqlite3_wal_hook(journal->db, note_frames, journal);
out:
    return status;
}

static void free_journal(struct vxd_journal *journal)
{
    for (int i = 0; i < VXD_N_STATEMENTS; i++) {
        (void)sqlite3_finalize(journal->statements[i]);
    }
    (void)sqlite3_finalize(journal->spool_insert);
    (void)sqlite3_close(journal->db);
    vxd_mark_close(&journal->mark);
    (void)pthread_cond_destroy(&journal->wake);
    (void)pthread_mutex_destroy(&journal->lock);
    (void)pthread_mutex_destroy(&journal->db_lock);
    free(journal->rows);
    free(journal->dropped);
    free(journal);
}

static enum vxd_status make_locks(struct vxd_journal *journal, struct vxd_err *err)
{
    pthread_condattr_t attributes;
    bool is_made = pthread_condattr_init(&attributes) == 0 &&
                   pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0 &&
                   pthread_cond_init(&journal->wake, &attributes) == 0 &&
                   pthread_mutex_init(&journal->lock, NULL) == 0 &&
                   pthread_mutex_init(&journal->db_lock, NULL) == 0;

    (void)pthread_condattr_destroy(&attributes);
    return is_made ? VXD_OK : vxd_fail(err, VXD_INTERNAL, NULL, "no locks");
}

enum vxd_status vxd_journal_open(const struct vxd_data_dir *dir,
                                 const struct vxd_journal_options *options,
                                 struct vxd_journal **out,
                                 struct vxd_journal_found *found, struct vxd_err *err)
{
    struct vxd_journal *journal = calloc(1, sizeof *journal);
    struct vxd_journal_options *mine;
    enum vxd_status status;

    if (journal == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a journal");
    }
    status = make_locks(journal, err);
    if (status != VXD_OK) {
        free(journal);
        return status;
    }
    mine = &journal->options;
    *mine = *options;
    mine->max_queue_bytes =
        mine->max_queue_bytes != 0 ? mine->max_queue_bytes : DEFAULT_QUEUE_BYTES;
    mine->probe_ms = mine->probe_ms != 0 ? mine->probe_ms : DEFAULT_PROBE_MS;
    mine->sync_ms = mine->sync_ms != 0 ? mine->sync_ms : DEFAULT_SYNC_MS;
    mine->n_wal_pages = mine->n_wal_pages != 0 ? mine->n_wal_pages : DEFAULT_WAL_PAGES;
    mine->n_rest_pages =
        mine->n_rest_pages != 0 ? mine->n_rest_pages : DEFAULT_REST_PAGES;
    journal->dir = dir;
    journal->mark.file = -1;
    journal->last = &journal->first;
    journal->stats.is_available = true;
    *found = (struct vxd_journal_found){0};
    VXD_TRY(open_database(journal, found, err));
    if (pthread_create(&journal->thread, NULL, vxd_journal_thread, journal) != 0) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no thread for the journal"));
    }
    journal->has_thread = true;
    *out = journal;
    return VXD_OK;
out:
    free_journal(journal);
    return status;
}

/* All that was acknowledged is on the disk; what EVERYSEC and OFF left open is closed. */
static enum vxd_status mark_clean(struct vxd_journal *journal, struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(vxd_journal_set_full(journal, true, err));
    VXD_TRY(vxd_journal_run(journal, VXD_SQL_BEGIN, err));
    for (size_t i = 0; i < journal->n_rows; i++) {
        journal->rows[i].is_in_group = journal->rows[i].now.open_tail;
        journal->rows[i].now.open_tail = false;
    }
    journal->next_sequence = journal->sequence;
    journal->spool_now = journal->spool;
    VXD_TRY(vxd_journal_write_states(journal, err));
    VXD_TRY(vxd_database_set_meta(journal->db, "clean", 1, err));
    VXD_TRY(vxd_journal_run(journal, VXD_SQL_COMMIT, err));
out:
    if (status != VXD_OK && sqlite3_get_autocommit(journal->db) == 0) {
        (void)vxd_journal_run(journal, VXD_SQL_ROLLBACK, NULL);
    }
    return status;
}

static enum vxd_status stop(struct vxd_journal *journal, bool is_clean,
                            struct vxd_err *err)
{
    enum vxd_status status;

    if (journal == NULL) {
        return VXD_OK;
    }
    status = vxd_journal_flush(journal, err);
    (void)pthread_mutex_lock(&journal->lock);
    journal->is_stopping = true;
    (void)pthread_cond_signal(&journal->wake);
    (void)pthread_mutex_unlock(&journal->lock);
    (void)pthread_join(journal->thread, NULL);
    if (status == VXD_OK && is_clean) {
        status = mark_clean(journal, err);
    }
    free_journal(journal);
    return status;
}

enum vxd_status vxd_journal_close(struct vxd_journal *take_journal, struct vxd_err *err)
{
    return stop(take_journal, true, err);
}

enum vxd_status vxd_journal_leave(struct vxd_journal *take_journal, struct vxd_err *err)
{
    return stop(take_journal, false, err);
}

/* What is known in memory ------------------------------------------------------------------ */

void vxd_journal_get_secret(const struct vxd_journal *journal,
                            uint8_t out[VXD_JOURNAL_SECRET_BYTES])
{
    memcpy(out, journal->secret, VXD_JOURNAL_SECRET_BYTES);
}

uint64_t vxd_journal_get_run_ns(const struct vxd_journal *journal)
{
    return journal->run_base_ns + (uint64_t)(vxd_clock_ns() - journal->run_since_ns);
}

uint64_t vxd_journal_get_epoch(struct vxd_journal *journal)
{
    uint64_t epoch;

    (void)pthread_mutex_lock(&journal->lock);
    epoch = journal->epoch;
    (void)pthread_mutex_unlock(&journal->lock);
    return epoch;
}

enum vxd_status vxd_journal_raise_epoch(struct vxd_journal *journal, uint64_t *out,
                                        struct vxd_err *err)
{
    struct vxd_journal_txn *txn;
    uint64_t epoch;
    enum vxd_status status;

    VXD_TRY(vxd_journal_begin(journal, &txn, err));
    (void)pthread_mutex_lock(&journal->lock);
    epoch = ++journal->epoch; /* never given to two, whatever becomes of this one */
    (void)pthread_mutex_unlock(&journal->lock);
    status = vxd_journal_put_meta(txn, "epoch", epoch, err);
    if (status != VXD_OK) {
        vxd_journal_abandon(txn);
        return status;
    }
    VXD_TRY(vxd_journal_commit_wait(txn, err));
    *out = epoch;
out:
    return status;
}

bool vxd_journal_knows_family(struct vxd_journal *journal, uint32_t family,
                              bool *was_given_out)
{
    bool is_there;

    (void)pthread_mutex_lock(&journal->lock);
    is_there = vxd_journal_find_row(journal, family) != NULL;
    *was_given_out = family >= 1 && family < journal->next_family;
    (void)pthread_mutex_unlock(&journal->lock);
    return is_there;
}

bool vxd_journal_has_name(struct vxd_journal *journal, const char *name, uint32_t family)
{
    bool is_there = false;

    (void)pthread_mutex_lock(&journal->lock);
    for (size_t i = 0; i < journal->n_rows && !is_there; i++) {
        const struct vxd_family_row *row = &journal->rows[i];

        is_there =
            row->now.exists && row->id != family && strcmp(row->now.name, name) == 0;
    }
    (void)pthread_mutex_unlock(&journal->lock);
    return is_there;
}

enum vxd_status vxd_journal_get_state(struct vxd_journal *journal, uint32_t family,
                                      struct vxd_journal_state *out, struct vxd_err *err)
{
    const struct vxd_family_row *row;
    enum vxd_status status = VXD_OK;

    (void)pthread_mutex_lock(&journal->lock);
    row = vxd_journal_find_row(journal, family);
    if (row == NULL || !row->committed.exists) {
        status = vxd_fail(err, VXD_NOT_FOUND, "family", "there is no family %u", family);
    } else {
        *out = (struct vxd_journal_state){
            .last_sequence = row->committed.last_sequence,
            .snapshot_sequence = row->committed.snapshot_sequence,
            .kept_from = row->committed.kept_from,
            .journal_bytes = row->committed.journal_bytes,
            .snapshot_due = row->committed.max_bytes > 0 &&
                            row->committed.journal_bytes >= row->committed.max_bytes,
            .may_have_lost = row->may_have_lost};
    }
    (void)pthread_mutex_unlock(&journal->lock);
    return status;
}

void vxd_journal_get_stats(struct vxd_journal *journal, struct vxd_journal_stats *out)
{
    (void)pthread_mutex_lock(&journal->lock);
    *out = journal->stats;
    (void)pthread_mutex_unlock(&journal->lock);
}

/* The queue -------------------------------------------------------------------------------- */

enum vxd_status vxd_journal_commit(struct vxd_journal_txn *take_txn,
                                   void (*done)(void *user, enum vxd_status status,
                                                const struct vxd_err *err),
                                   void *user, struct vxd_err *err)
{
    struct vxd_journal *journal = take_txn->journal;
    struct vxd_journal_stats *stats = &journal->stats;
    enum vxd_status status = VXD_OK;

    take_txn->done = done;
    take_txn->user = user;
    (void)pthread_mutex_lock(&journal->lock);
    if (!stats->is_available) {
        status = vxd_fail(err, VXD_UNAVAILABLE, NULL, "the journal cannot write: %s",
                          stats->reason);
    } else if (stats->n_queued > 0 &&
               take_txn->n_bytes >
                   journal->options.max_queue_bytes - stats->n_queued_bytes) {
        status = vxd_fail(err, VXD_UNAVAILABLE, NULL,
                          "the journal's queue is full: %zu transactions, %zu bytes wait",
                          stats->n_queued, stats->n_queued_bytes);
    } else {
        *journal->last = take_txn;
        journal->last = &take_txn->next;
        stats->n_queued++;
        stats->n_queued_bytes += take_txn->n_bytes;
        if (stats->n_queued_bytes > stats->n_queued_bytes_peak) {
            stats->n_queued_bytes_peak = stats->n_queued_bytes;
        }
        (void)pthread_cond_signal(&journal->wake);
    }
    (void)pthread_mutex_unlock(&journal->lock);
    if (status != VXD_OK) {
        vxd_journal_free_txn(take_txn);
    }
    return status;
}

/* Somebody who waits. */
struct waiter {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool is_done;
    enum vxd_status status;
    struct vxd_err err;
};

static void wake_waiter(void *user, enum vxd_status status, const struct vxd_err *err)
{
    struct waiter *waiter = user;

    (void)pthread_mutex_lock(&waiter->lock);
    waiter->is_done = true;
    waiter->status = status;
    if (err != NULL) {
        waiter->err = *err;
    }
    (void)pthread_cond_signal(&waiter->wake);
    (void)pthread_mutex_unlock(&waiter->lock);
}

enum vxd_status vxd_journal_commit_wait(struct vxd_journal_txn *take_txn,
                                        struct vxd_err *err)
{
    struct waiter waiter = {.lock = PTHREAD_MUTEX_INITIALIZER,
                            .wake = PTHREAD_COND_INITIALIZER};
    enum vxd_status status = vxd_journal_commit(take_txn, wake_waiter, &waiter, err);

    if (status == VXD_OK) {
        (void)pthread_mutex_lock(&waiter.lock);
        while (!waiter.is_done) {
            (void)pthread_cond_wait(&waiter.wake, &waiter.lock);
        }
        (void)pthread_mutex_unlock(&waiter.lock);
        status = waiter.status;
        if (status != VXD_OK && err != NULL) {
            *err = waiter.err;
        }
    }
    (void)pthread_cond_destroy(&waiter.wake);
    (void)pthread_mutex_destroy(&waiter.lock);
    return status;
}

enum vxd_status vxd_journal_forget_family(struct vxd_journal *journal, uint32_t family,
                                          struct vxd_err *err)
{
    struct vxd_journal_txn *txn = NULL;
    enum vxd_status status;

    VXD_TRY(vxd_journal_begin(journal, &txn, err));
    VXD_TRY(vxd_journal_drop_family(txn, family, err));
    status = vxd_journal_commit_wait(txn, err);
    txn = NULL;
out:
    vxd_journal_abandon(txn);
    return status;
}

enum vxd_status vxd_journal_flush(struct vxd_journal *journal, struct vxd_err *err)
{
    struct vxd_journal_txn *txn;
    enum vxd_status status;

    VXD_TRY(vxd_journal_begin(journal, &txn, err));
    txn->is_flush = true;
    VXD_TRY(vxd_journal_commit_wait(txn, err));
out:
    return status;
}

uint32_t vxd_journal_new_family(struct vxd_journal *journal)
{
    uint32_t family;

    (void)pthread_mutex_lock(&journal->lock);
    family = journal->next_family;
    if (journal->next_family < VXD_JOURNAL_MAX_FAMILY) {
        journal->next_family++;
    }
    (void)pthread_mutex_unlock(&journal->lock);
    return family;
}
