// SPDX-License-Identifier: Apache-2.0
/* What the files of the journal share. */
#ifndef VXD_SERVER_DURABLE_JOURNAL_JOURNAL_INTERNAL_H
#define VXD_SERVER_DURABLE_JOURNAL_JOURNAL_INTERNAL_H

#include <pthread.h>
#include <sqlite3.h>

#include "server/durable/journal/journal.h"

struct vxd_family_row {
    uint32_t id;
    struct vxd_family_state committed; /* as the database has it */
    struct vxd_family_state now;       /* with what the group adds, */
    struct vxd_family_state before;    /* and as it was before the transaction in hand */
    bool is_in_group;
    bool is_in_txn;
    bool needs_sum; /* journal_bytes is to be counted anew */
    bool may_have_lost;
    bool is_due_reported;
    uint64_t trimmed_to;
};

/* One change of a transaction. Archives have these numbers: they stay. */
enum vxd_change_kind {
    VXD_CHANGE_PUT_FAMILY = 0,
    VXD_CHANGE_DROP_FAMILY = 1,
    VXD_CHANGE_PUT_ITEM = 2,
    VXD_CHANGE_DROP_ITEM = 3,
    VXD_CHANGE_RECORD = 4,
    VXD_CHANGE_NEED = 5,
    VXD_CHANGE_PUT_REPLY = 6,
    VXD_CHANGE_FORGET_REPLY = 7,
    VXD_CHANGE_SNAPSHOT = 8,
    VXD_CHANGE_CUT = 9,
    VXD_CHANGE_META = 10 /* name = value; the journal's own */
};

struct vxd_change {
    struct vxd_change *next;
    enum vxd_change_kind kind;
    uint32_t family;
    uint64_t sequence; /* of the record, reply, ... */
    uint64_t number;   /* keep_from; of META the value */
    enum vxd_journal_item_kind item_kind;
    uint32_t rules_version;
    uint32_t record_kind;
    enum vxd_fsync fsync;
    uint64_t max_bytes;
    uint64_t epoch;
    int64_t unix_ns;
    uint8_t digest[VXD_JOURNAL_DIGEST_BYTES];
    char name[VXD_JOURNAL_NAME_BYTES];
    size_t n_client_bytes; /* of the bytes, before the rest */
    size_t n_bytes;
    uint8_t bytes[];
};

struct vxd_journal_txn {
    struct vxd_journal_txn *next;
    struct vxd_journal *journal;
    struct vxd_change *first;
    struct vxd_change **last;
    size_t n_bytes;
    bool is_flush; /* nothing but: sync what is committed */
    void (*done)(void *user, enum vxd_status status, const struct vxd_err *err);
    void *user;
    enum vxd_status status; /* the writer's */
    struct vxd_err err;
};

/* Statements that are prepared once. */
enum vxd_statement {
    VXD_SQL_BEGIN,
    VXD_SQL_COMMIT,
    VXD_SQL_ROLLBACK,
    VXD_SQL_PUT_FAMILY,
    VXD_SQL_PUT_STATE,
    VXD_SQL_DROP_FAMILY,
    VXD_SQL_DROP_ITEMS,
    VXD_SQL_MARK_DROPPED,
    VXD_SQL_PUT_ITEM,
    VXD_SQL_DROP_ITEM,
    VXD_SQL_RECORD,
    VXD_SQL_PUT_REPLY,
    VXD_SQL_FORGET_REPLY,
    VXD_SQL_SET_ASIDE,
    VXD_SQL_CUT,
    VXD_SQL_SUM,
    VXD_SQL_META,
    VXD_SQL_TRIM,
    VXD_SQL_FORGET_DROPPED,
    VXD_N_STATEMENTS
};

struct vxd_journal {
    const struct vxd_data_dir *dir;
    struct vxd_journal_options options;
    uint8_t secret[VXD_JOURNAL_SECRET_BYTES];

    pthread_mutex_t db_lock; /* the connection's; taken before `lock` */
    sqlite3 *db;
    sqlite3_stmt *statements[VXD_N_STATEMENTS];
    bool is_full;           /* PRAGMA synchronous as it is */
    bool is_wal_dirty;      /* commits since its last sync, */
    bool is_everysec_dirty; /* some of EVERYSEC, */
    int64_t everysec_ns;    /* the first of them at this time */
    int n_wal_frames;       /* in the WAL after the last commit */
    uint64_t n_probes;
    uint32_t *dropped; /* families whose records go */
    size_t n_dropped;
    size_t dropped_capacity;

    char boot_id[VXD_BOOT_ID_BYTES];
    bool is_power_lost;    /* as vxd_journal_found has it */
    bool is_run_noted;     /* the database knows of this run; nothing is written before */
    bool is_disk_to_blame; /* and this is why it does not */
    uint64_t run_base_ns;  /* the running time of earlier runs; */
    int64_t run_since_ns;  /* this one began then */
    struct vxd_mark mark;  /* its sector, as it was written last */
    uint64_t sequence;     /* transactions that were ever committed, */
    uint64_t next_sequence;     /* and with those of the group in hand */
    struct vxd_spool spool_now; /* the spool with what the group adds */
    sqlite3_stmt *spool_insert;
    bool is_forked; /* the journal does not go on from what is archived */

    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct vxd_journal_txn *first;
    struct vxd_journal_txn **last;
    bool is_stopping;
    bool is_copying;
    struct vxd_family_row
        *rows; /* by id; made longer by the writer only, under the lock */
    size_t n_rows;
    size_t rows_capacity;
    uint64_t epoch;
    uint64_t generation; /* the highest epoch of all, those of families included */
    uint32_t next_family;
    struct vxd_spool spool; /* as it is committed; changes with both locks */
    struct vxd_journal_stats stats;

    pthread_t thread;
    bool has_thread;
};

/* journal_rows.c --------------------------------------------------------------------------- */

/* NULL where there is none; under the lock, or on the writer's thread. */
struct vxd_family_row *vxd_journal_find_row(struct vxd_journal *journal, uint32_t id);
/* Finds or adds; NULL = no memory. With the lock. */
struct vxd_family_row *vxd_journal_make_row(struct vxd_journal *journal, uint32_t id);
/* Loads the families, and those that were dropped and still have records. */
enum vxd_status vxd_journal_load_rows(struct vxd_journal *journal,
                                      const struct vxd_journal_found *found,
                                      struct vxd_err *err);
bool vxd_journal_remember_dropped(struct vxd_journal *journal, uint32_t family);

/* journal_apply.c -------------------------------------------------------------------------- */

/* Checks a transaction against `now` of the rows. Where it is valid, `now` changes and the rows
 * are marked; otherwise txn->status is set. With the lock. */
void vxd_journal_check_txn(struct vxd_journal *journal, struct vxd_journal_txn *txn);
/* Writes a transaction that was found valid. */
enum vxd_status vxd_journal_write_txn(struct vxd_journal *journal,
                                      const struct vxd_journal_txn *txn,
                                      struct vxd_err *err);
/* The rows' own columns of a group, and next_sequence, before its commit. */
enum vxd_status vxd_journal_write_states(struct vxd_journal *journal,
                                         struct vxd_err *err);
/* Runs a prepared statement and resets it. */
enum vxd_status vxd_journal_run(struct vxd_journal *journal, enum vxd_statement which,
                                struct vxd_err *err);
enum vxd_status vxd_journal_prepare(struct vxd_journal *journal, struct vxd_err *err);

/* journal_thread.c ------------------------------------------------------------------------- */

void *vxd_journal_thread(void *journal);
/* PRAGMA synchronous: whether commits sync. */
enum vxd_status vxd_journal_set_full(struct vxd_journal *journal, bool is_full,
                                     struct vxd_err *err);

/* journal.c. Writes that this run has begun. errors  of the disk */
enum vxd_status vxd_journal_note_run(struct vxd_journal *journal, struct vxd_err *err);

/* journal_mark.c --------------------------------------------------------------------------- */

/* Opens the mark and compares it with the database, before anything of this run is written.
 * errors  DATA_LOSS (the mark is missing or damaged, or the database behind it is), others of
 *         the disk */
enum vxd_status vxd_journal_open_mark(struct vxd_journal *journal, const char *boot_id,
                                      struct vxd_journal_found *found,
                                      struct vxd_err *err);
/* Writes how far the journal has come, after a commit and before it is acknowledged; with a sync
 * where the WAL has had one. */
enum vxd_status vxd_journal_write_mark(struct vxd_journal *journal, bool is_synced,
                                       struct vxd_err *err);

/* journal_spool.c -------------------------------------------------------------------------- */

/* Makes the spool ready, where there is an archive and it is not. */
enum vxd_status vxd_journal_open_spool(struct vxd_journal *journal, struct vxd_err *err);
/* Puts a transaction into the spool too, within the SQLite transaction that writes it. */
enum vxd_status vxd_journal_spool_txn(struct vxd_journal *journal,
                                      const struct vxd_journal_txn *txn, int64_t unix_ns,
                                      struct vxd_err *err);
/* The group is committed. With both locks. */
void vxd_journal_settle_spool(struct vxd_journal *journal);

/* journal_txn.c ---------------------------------------------------------------------------- */

void vxd_journal_free_txn(struct vxd_journal_txn *txn);

#endif
