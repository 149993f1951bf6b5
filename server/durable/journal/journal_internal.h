// SPDX-License-Identifier: Apache-2.0
/* What the files of the journal share. */
#ifndef VXD_SERVER_DURABLE_JOURNAL_JOURNAL_INTERNAL_H
#define VXD_SERVER_DURABLE_JOURNAL_JOURNAL_INTERNAL_H

#include <pthread.h>
#include <sqlite3.h>

#include "server/durable/journal/journal.h"

enum {
    VXD_JOURNAL_LAYOUT = 1,
    VXD_JOURNAL_APPLICATION = 0x56584a31, /* "VXJ1" */
    VXD_JOURNAL_SEQUENCE_BITS = 40,
    VXD_JOURNAL_MAX_CLIENT_BYTES = 512
};

/* A family as the writer keeps it: its row without the spec. */
struct vxd_family_state {
    bool exists;
    char name[VXD_JOURNAL_NAME_BYTES];
    enum vxd_fsync fsync;
    uint64_t max_bytes;
    uint64_t epoch;
    uint64_t last_sequence;
    uint64_t snapshot_sequence;
    uint64_t kept_from;
    uint64_t journal_bytes;
    bool open_tail; /* records may have been committed without a sync */
};

struct vxd_family_row {
    uint32_t id;
    struct vxd_family_state committed; /* as the database has it */
    struct vxd_family_state now;       /* with what the group adds, */
    struct vxd_family_state before;    /* and as it was before the transaction in hand */
    bool is_in_group;
    bool is_in_txn;
    bool needs_sum; /* journal_bytes is to be counted anew */
    bool may_have_lost;
    bool due_told;
    uint64_t trimmed_to;
};

/* One change of a transaction. */
enum vxd_change_kind {
    VXD_CHANGE_PUT_FAMILY,
    VXD_CHANGE_DROP_FAMILY,
    VXD_CHANGE_PUT_ITEM,
    VXD_CHANGE_DROP_ITEM,
    VXD_CHANGE_RECORD,
    VXD_CHANGE_NEED,
    VXD_CHANGE_PUT_REPLY,
    VXD_CHANGE_FORGET_REPLY,
    VXD_CHANGE_SNAPSHOT,
    VXD_CHANGE_CUT,
    VXD_CHANGE_META /* name = value; the journal's own */
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
    int n_wal_frames;       /* as the last commit told */
    uint64_t n_probes;
    uint32_t *dropped; /* families whose records go */
    size_t n_dropped;
    size_t dropped_room;

    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct vxd_journal_txn *first;
    struct vxd_journal_txn **last;
    bool is_stopping;
    bool is_backing_up;
    struct vxd_family_row
        *rows; /* by id; made longer by the writer only, under the lock */
    size_t n_rows;
    size_t rows_room;
    uint64_t epoch;
    uint32_t next_family;
    struct vxd_journal_stats stats;

    pthread_t thread;
    bool has_thread;
};

/* journal_schema.c ------------------------------------------------------------------------- */

/* What SQLite said. Always a failure. */
enum vxd_status vxd_journal_sql_fail(struct vxd_err *err, sqlite3 *db, int result,
                                     const char *what);

/* Opens PATH as a connection of ours (WAL, exclusive); read-only ones change nothing.
 * errors  DATA_LOSS, FAILED_PRECONDITION, RESOURCE_EXHAUSTED, UNAVAILABLE */
enum vxd_status vxd_journal_connect(const struct vxd_file_ops *ops, const char *path,
                                    bool is_read_only, sqlite3 **out,
                                    struct vxd_err *err);

/* Makes DIR/voxeld.db, where it is missing, as a whole or not at all; the directory is still to be
 * synced. A repair that was cut off is finished before. */
enum vxd_status vxd_journal_make(const struct vxd_data_dir *dir, bool *is_new,
                                 struct vxd_err *err);

/* An empty one beside it, its tables in it: path[] is its name. Nobody opens it by itself, and the
 * next one that is made takes its place. */
enum vxd_status vxd_journal_make_beside(const struct vxd_data_dir *dir,
                                        char path[VXD_DURABLE_PATH_BYTES],
                                        struct vxd_err *err);

#define VXD_JOURNAL_REPAIRED "voxeld.db.repaired"

/* journal_repaired.c. What was made beside, synced and closed, becomes DIR/voxeld.db, whatever it is cut off
 * by: from some moment on the next start or repair goes on with it. What stood there is voxeld.db.
 * damaged.N then, N = *aside.
 * errors  of vxd_file_fail; FAILED_PRECONDITION, no number is left */
enum vxd_status vxd_journal_put_repaired(const struct vxd_data_dir *dir, const char *made,
                                         int *aside, struct vxd_err *err);
/* The same of one that was cut off; *aside = 0 where there is none. Before anything is opened. */
enum vxd_status vxd_journal_take_repaired(const struct vxd_data_dir *dir, int *aside,
                                          struct vxd_err *err);

/* Checks that the tables are ours.
 * errors  DATA_LOSS, FAILED_PRECONDITION, UNAVAILABLE */
enum vxd_status vxd_journal_check_tables(sqlite3 *db, struct vxd_err *err);

enum vxd_status vxd_journal_execute(sqlite3 *db, const char *sql, struct vxd_err *err);

/* A number or bytes of the table meta; 0 where there is none. */
enum vxd_status vxd_journal_get_meta(sqlite3 *db, const char *key, uint64_t *out,
                                     struct vxd_err *err);
enum vxd_status vxd_journal_get_meta_bytes(sqlite3 *db, const char *key, void *out,
                                           size_t room, size_t *n_bytes,
                                           struct vxd_err *err);
enum vxd_status vxd_journal_set_meta(sqlite3 *db, const char *key, uint64_t value,
                                     struct vxd_err *err);

/* CRCs of rows. */
uint32_t vxd_journal_record_crc(uint32_t family, uint64_t sequence,
                                uint32_t rules_version, uint32_t kind, const void *bytes,
                                size_t n_bytes);
uint32_t vxd_journal_family_crc(const struct vxd_journal_family *family);
uint32_t vxd_journal_state_crc(uint32_t id, const struct vxd_family_state *state);
uint32_t vxd_journal_item_crc(enum vxd_journal_item_kind kind,
                              const struct vxd_journal_item *item);
uint32_t vxd_journal_reply_crc(const struct vxd_journal_reply *reply);

/* A row of `families`: columns id, name, fsync, max_bytes, epoch, spec, crc, last_sequence,
 * snapshot_sequence, kept_from, journal_bytes, open_tail, state_crc. What is wrong with it, NULL =
 * nothing; pointers last until the next step. */
#define VXD_FAMILY_COLUMNS                                                               \
    "id, name, fsync, max_bytes, epoch, spec, crc, last_sequence, snapshot_sequence, "   \
    "kept_from, journal_bytes, open_tail, state_crc"
const char *vxd_journal_row_family(sqlite3_stmt *row, struct vxd_journal_family *family,
                                   struct vxd_family_state *state);
/* Columns id, rules, kind, crc, bytes. */
#define VXD_RECORD_COLUMNS "id, rules, kind, crc, bytes"
const char *vxd_journal_row_record(sqlite3_stmt *row, struct vxd_journal_record *record);
/* Columns family, kind, name, crc, bytes. */
#define VXD_ITEM_COLUMNS "family, kind, name, crc, bytes"
const char *vxd_journal_row_item(sqlite3_stmt *row, enum vxd_journal_item_kind *kind,
                                 struct vxd_journal_item *item);
/* Columns client, sequence, digest, unix_ns, crc, bytes. */
#define VXD_REPLY_COLUMNS "client, sequence, digest, unix_ns, crc, bytes"
const char *vxd_journal_row_reply(sqlite3_stmt *row, struct vxd_journal_reply *reply);

static inline int64_t vxd_journal_row_id(uint32_t family, uint64_t sequence)
{
    return (int64_t)((uint64_t)family << VXD_JOURNAL_SEQUENCE_BITS | sequence);
}

/* journal_rows.c --------------------------------------------------------------------------- */

/* NULL where there is none; under the lock, or on the writer's thread. */
struct vxd_family_row *vxd_journal_find_row(struct vxd_journal *journal, uint32_t id);
/* Finds or adds; NULL = no memory. With the lock. */
struct vxd_family_row *vxd_journal_make_row(struct vxd_journal *journal, uint32_t id);
/* What the last run left of the families, and whose records still go. */
enum vxd_status vxd_journal_load_rows(struct vxd_journal *journal,
                                      const struct vxd_journal_found *found,
                                      struct vxd_err *err);
bool vxd_journal_remember_dropped(struct vxd_journal *journal, uint32_t family);

/* journal_apply.c -------------------------------------------------------------------------- */

/* Whether a transaction holds, from what `now` says; changes `now` and marks the rows where it
 * does, else sets txn->status. With the lock. */
void vxd_journal_check_txn(struct vxd_journal *journal, struct vxd_journal_txn *txn);
/* Writes a transaction that holds. */
enum vxd_status vxd_journal_write_txn(struct vxd_journal *journal,
                                      const struct vxd_journal_txn *txn,
                                      struct vxd_err *err);
/* The rows' own columns of a group, before its commit. */
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

/* journal_txn.c ---------------------------------------------------------------------------- */

void vxd_journal_free_txn(struct vxd_journal_txn *txn);
enum vxd_status vxd_journal_put_meta(struct vxd_journal_txn *txn, const char *key,
                                     uint64_t value, struct vxd_err *err);

#endif
