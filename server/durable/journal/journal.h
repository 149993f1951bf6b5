// SPDX-License-Identifier: Apache-2.0
/* The journal: every change is on the disk before its sender gets an answer. One thread writes;
 * other threads hand it transactions and do not wait.
 *
 *   begin, put..., commit   what is in one transaction is on disk as a whole or not at all
 *   group commit            all that waits goes into one SQLite transaction, with one sync where
 *                           any family in it asks for it; completions follow in the order of the
 *                           commits, on the writer's thread
 *   a failure               (disk full, EIO) fails the whole group, and by their sequence
 *                           numbers the later transactions of its families; nothing is tried
 *                           again behind anybody's back. The journal then answers UNAVAILABLE
 *                           at once, and probes the disk until it takes a write again
 *
 * Sequence numbers of a family's records have no gaps: a record whose number is not the last
 * one's plus one is ABORTED. So whoever builds on a change that then fails, fails too.
 *
 * The tables are described in database.h. Functions may be called from any thread unless their
 * comment says otherwise; those that block wait for the disk. */
#ifndef VXD_SERVER_DURABLE_JOURNAL_JOURNAL_H
#define VXD_SERVER_DURABLE_JOURNAL_JOURNAL_H

#include "server/durable/database/database.h"

struct vxd_journal;
struct vxd_journal_txn;

struct vxd_journal_options {
    size_t max_queue_bytes; /* of transactions that wait; 0 = 256 MiB */
    uint32_t probe_ms;      /* between probes while unavailable; 0 = 500 */
    uint32_t sync_ms;       /* EVERYSEC's second, for tests; 0 = 1000 */
    /* Pages of 4 KiB in the WAL after which it goes into the database at once, while changes wait;
     * 0 = 16384. */
    uint32_t n_wal_pages;
    /* Likewise, once nothing has come for a while; 0 = 4096. */
    uint32_t n_rest_pages;
    /* A family's journal came to its max_bytes: called once until a snapshot is taken, on the
     * writer's thread, which must not wait. NULL = no call. */
    void (*snapshot_due)(void *user, uint32_t family);
    void *user;
    bool archives;              /* transactions wait in the spool for an archive, */
    uint64_t max_archive_bytes; /* at most as many bytes of them */
};

/* Opening ---------------------------------------------------------------------------------- */

/* What the last run left behind. */
struct vxd_journal_found {
    bool is_new;    /* there was no database */
    bool was_clean; /* it was closed by vxd_journal_close */
    bool
        same_boot; /* the system has not been started since: whatever was written is there */
    /* The system went down before what was written was synced: at the end of the last run, or
     * before an earlier start that did not end. */
    bool is_power_lost;
    bool is_restored; /* from a backup: what was acknowledged later is not in it */
    /* The journal ends before changes that were acknowledged, as its mark shows, or it did so at
     * an earlier start that did not end. */
    bool is_behind_mark;
    uint64_t n_lost;     /* transactions that this start found missing */
    uint64_t generation; /* no epoch up to it may be given out again */
};

/* Opens or makes DIR/voxeld.db and its mark and starts the writer. The directory is borrowed until
 * the close.
 * errors  DATA_LOSS            not a database, or one that SQLite finds damaged; it or its mark is
 *                              missing or damaged: a repair mends that
 *         FAILED_PRECONDITION  a newer server's
 *         RESOURCE_EXHAUSTED, UNAVAILABLE  memory, disk */
enum vxd_status vxd_journal_open(const struct vxd_data_dir *dir,
                                 const struct vxd_journal_options *options,
                                 struct vxd_journal **out,
                                 struct vxd_journal_found *found, struct vxd_err *err);

/* Writes what waits, syncs, marks the end as clean and stops the writer. Nobody else may use it
 * any more. Freed in any case. NULL is fine.
 * errors  what was not written, if anything */
enum vxd_status vxd_journal_close(struct vxd_journal *take_journal, struct vxd_err *err);

/* Ends a start that failed: like vxd_journal_close, but the end is not marked as clean, so that
 * the next start finds every loss that this one had not yet dealt with. */
enum vxd_status vxd_journal_leave(struct vxd_journal *take_journal, struct vxd_err *err);

/* Random bytes that this database was made with, for keyed digests that outlive the process. */
void vxd_journal_get_secret(const struct vxd_journal *journal,
                            uint8_t out[VXD_JOURNAL_SECRET_BYTES]);

/* An id that no family had before, dropped ones included. */
uint32_t vxd_journal_new_family(struct vxd_journal *journal);

/* The highest epoch given out so far (1 in a new database), and a new one, on disk before this
 * returns. Blocking.
 * errors  UNAVAILABLE, RESOURCE_EXHAUSTED */
uint64_t vxd_journal_get_epoch(struct vxd_journal *journal);
enum vxd_status vxd_journal_raise_epoch(struct vxd_journal *journal, uint64_t *out,
                                        struct vxd_err *err);

/* How long daemons have run on this database, in nanoseconds: it stands still while none runs, and
 * goes on where the last commit of the run before has left it. */
uint64_t vxd_journal_get_run_ns(const struct vxd_journal *journal);

/* Whether there is a family of this id; *was_given_out, whether there ever was one. */
bool vxd_journal_knows_family(struct vxd_journal *journal, uint32_t family,
                              bool *was_given_out);

/* Whether another family than this one has the name. */
bool vxd_journal_has_name(struct vxd_journal *journal, const char *name, uint32_t family);

/* Transactions ----------------------------------------------------------------------------- */

/* One is built by one thread. The put functions copy what they are given; their errors are
 * INVALID_ARGUMENT (names, ids, sizes) and RESOURCE_EXHAUSTED, and leave the transaction as it
 * was. */
enum vxd_status vxd_journal_begin(struct vxd_journal *journal,
                                  struct vxd_journal_txn **out, struct vxd_err *err);

/* Adds a family or replaces its row; the journal's own columns stay. Its policy counts from this
 * very transaction on, but that a family was made outlives a loss of power with every policy. */
enum vxd_status vxd_journal_put_family(struct vxd_journal_txn *txn,
                                       const struct vxd_journal_family *family,
                                       struct vxd_err *err);

/* Removes it and all that it had; its records go bit by bit behind the scenes. */
enum vxd_status vxd_journal_drop_family(struct vxd_journal_txn *txn, uint32_t family,
                                        struct vxd_err *err);

enum vxd_status vxd_journal_put_item(struct vxd_journal_txn *txn,
                                     enum vxd_journal_item_kind kind,
                                     const struct vxd_journal_item *item,
                                     struct vxd_err *err);

/* One that is not there is fine. */
enum vxd_status vxd_journal_drop_item(struct vxd_journal_txn *txn,
                                      enum vxd_journal_item_kind kind, uint32_t family,
                                      const char *name, struct vxd_err *err);

enum vxd_status vxd_journal_add_record(struct vxd_journal_txn *txn,
                                       const struct vxd_journal_record *record,
                                       struct vxd_err *err);

/* The transaction is ABORTED unless the family's last record has at least this number when its
 * turn comes: for changes without a record that build on one. */
enum vxd_status vxd_journal_need(struct vxd_journal_txn *txn, uint32_t family,
                                 uint64_t sequence, struct vxd_err *err);

enum vxd_status vxd_journal_put_reply(struct vxd_journal_txn *txn,
                                      const struct vxd_journal_reply *reply,
                                      struct vxd_err *err);

/* Forgets one reply; one that is not there is fine. */
enum vxd_status vxd_journal_forget_reply(struct vxd_journal_txn *txn, const void *client,
                                         size_t n_client_bytes, uint64_t sequence,
                                         struct vxd_err *err);

/* A snapshot of all records up to `sequence` is on disk; those up to keep_from (snapshot.h), at
 * most `sequence`, are no longer needed and go bit by bit. */
enum vxd_status vxd_journal_snapshot_taken(struct vxd_journal_txn *txn, uint32_t family,
                                           uint64_t sequence, uint64_t keep_from,
                                           struct vxd_err *err);

/* Moves a family's records after `sequence` into the table set_aside, where they stay for
 * inspection: those that recovery found damaged, and all that follow them. The next record has
 * the number sequence + 1. */
enum vxd_status vxd_journal_cut(struct vxd_journal_txn *txn, uint32_t family,
                                uint64_t sequence, struct vxd_err *err);

/* Sets a number of the table meta. */
enum vxd_status vxd_journal_put_meta(struct vxd_journal_txn *txn, const char *key,
                                     uint64_t value, struct vxd_err *err);

/* Hands it over. On success `done` will be called once, on the writer's thread, in the order of
 * the commits; it must not wait, but may commit more. NULL = nobody wants to know. Never blocks.
 * The transaction is freed in any case, and on failure `done` is not called.
 * done's  OK                  with the promise of the strictest family in it
 * errors  ABORTED             a sequence number or a need that does not hold: something that it
 *                             builds on has failed
 *         NOT_FOUND           a family that is not there
 *         RESOURCE_EXHAUSTED  the disk is full
 *         UNAVAILABLE         the disk does not take it
 * errors  UNAVAILABLE         the queue is full, or the journal waits for the disk; says which */
enum vxd_status vxd_journal_commit(struct vxd_journal_txn *take_txn,
                                   void (*done)(void *user, enum vxd_status status,
                                                const struct vxd_err *err),
                                   void *user, struct vxd_err *err);

/* Commits and waits. */
enum vxd_status vxd_journal_commit_wait(struct vxd_journal_txn *take_txn,
                                        struct vxd_err *err);

/* Drops a family by itself, and waits. Records of it that were set aside stay for people.
 * errors  as vxd_journal_begin and vxd_journal_commit_wait */
enum vxd_status vxd_journal_forget_family(struct vxd_journal *journal, uint32_t family,
                                          struct vxd_err *err);

/* NULL is fine. */
void vxd_journal_abandon(struct vxd_journal_txn *take_txn);

/* Waits until all that was handed over before is decided, and what was committed is synced,
 * whatever the policies. Blocking.
 * errors  UNAVAILABLE, RESOURCE_EXHAUSTED  it is not */
enum vxd_status vxd_journal_flush(struct vxd_journal *journal, struct vxd_err *err);

/* Reading ---------------------------------------------------------------------------------- */

/* What is committed. The functions block, and the writer between their calls back waits for
 * them: those should be short. A call back that fails ends the reading with its status.
 * errors  DATA_LOSS    a row that its CRC does not fit, or a database that SQLite finds damaged
 *         UNAVAILABLE  the disk does not give it */

/* Where a family stands. */
struct vxd_journal_state {
    uint64_t last_sequence;     /* 0 = no record yet */
    uint64_t snapshot_sequence; /* of the last snapshot taken, 0 = none */
    uint64_t kept_from;         /* records up to it are gone or go */
    uint64_t journal_bytes;     /* of records after the last snapshot */
    bool snapshot_due;
    /* An earlier run may have acknowledged records and lost them with the power: it did not end
     * cleanly, the policy is not ALWAYS, and the system was started anew since. */
    bool may_have_lost;
};

/* errors  NOT_FOUND */
enum vxd_status vxd_journal_get_state(struct vxd_journal *journal, uint32_t family,
                                      struct vxd_journal_state *out, struct vxd_err *err);

/* By id. Rows with a wrong CRC are named in the error, and the rest is not read. */
enum vxd_status vxd_journal_read_families(
    struct vxd_journal *journal,
    enum vxd_status (*each)(void *user, const struct vxd_journal_family *family,
                            struct vxd_err *err),
    void *user, struct vxd_err *err);

/* By name. Damaged rows of ages are left out and counted, where n_damaged is not NULL; with them
 * nothing is lost that was acknowledged. */
enum vxd_status vxd_journal_read_items(
    struct vxd_journal *journal, enum vxd_journal_item_kind kind, uint32_t family,
    enum vxd_status (*each)(void *user, const struct vxd_journal_item *item,
                            struct vxd_err *err),
    void *user, uint64_t *n_damaged, struct vxd_err *err);

/* first to last, in order; stops before the first that is missing (then *next, the number that
 * would have been next, is below last + 1) or damaged (DATA_LOSS; *next is its number). next may
 * be NULL. */
enum vxd_status vxd_journal_read_records(
    struct vxd_journal *journal, uint32_t family, uint64_t first, uint64_t last,
    enum vxd_status (*each)(void *user, const struct vxd_journal_record *record,
                            struct vxd_err *err),
    void *user, uint64_t *next, struct vxd_err *err);

/* By time, client and sequence; damaged ones are left out and counted. */
enum vxd_status vxd_journal_read_replies(
    struct vxd_journal *journal,
    enum vxd_status (*each)(void *user, const struct vxd_journal_reply *reply,
                            struct vxd_err *err),
    void *user, uint64_t *n_damaged, struct vxd_err *err);

/* Copying ---------------------------------------------------------------------------------- */

/* One copy at a time: false while another is being made. */
bool vxd_journal_claim_copy(struct vxd_journal *journal);
void vxd_journal_release_copy(struct vxd_journal *journal);

/* Copies the database into the empty one of a connection, a slice at a time between commits, which
 * go to the copy too. Blocking; between claim and release.
 * errors  UNAVAILABLE, RESOURCE_EXHAUSTED, DATA_LOSS */
enum vxd_status vxd_journal_copy_to(struct vxd_journal *journal, sqlite3 *copy,
                                    uint64_t *n_bytes, struct vxd_err *err);

/* The spool -------------------------------------------------------------------------------- */

/* What waits for the archive (server/durable/archive). Without one it is not open. */
struct vxd_spool {
    bool is_open;
    uint64_t line;     /* all on one line follows from what was before it; > 0 */
    uint64_t first;    /* of the numbers that wait, */
    uint64_t next;     /* and the number that the next transaction gets */
    uint64_t n_bytes;  /* that wait */
    int64_t unix_ns;   /* when the last one was committed; 0 = never */
    uint64_t n_breaks; /* so often this run gave up what waited, for want of capacity */
};

void vxd_journal_get_spool(struct vxd_journal *journal, struct vxd_spool *out);

/* A row's bytes, the caller's to free.
 * errors  DATA_LOSS  it is damaged, or not there; others of the disk */
enum vxd_status vxd_journal_read_spool(struct vxd_journal *journal, uint64_t number,
                                       uint8_t **take_bytes, size_t *n_bytes,
                                       struct vxd_err *err);

/* The rows of a line up to `last`, of n_bytes, are archived, and go. On another line than the
 * spool's, rows that were given up go.
 * errors  of the disk */
enum vxd_status vxd_journal_drop_spool(struct vxd_journal *journal, uint64_t line,
                                       uint64_t last, uint64_t n_bytes,
                                       struct vxd_err *err);

/* When a row was committed. */
struct vxd_archived {
    uint64_t sequence; /* of the transaction, in the journal that it was of */
    int64_t unix_ns;
    uint64_t run_ns;
};

/* errors  DATA_LOSS  not a row */
enum vxd_status vxd_journal_archived_read(const void *bytes, size_t n_bytes,
                                          struct vxd_archived *out, struct vxd_err *err);
/* The records of a row, in order.
 * errors  DATA_LOSS, those of `each` */
enum vxd_status vxd_journal_archived_records(
    const void *bytes, size_t n_bytes,
    enum vxd_status (*each)(void *user, const struct vxd_journal_record *record,
                            struct vxd_err *err),
    void *user, struct vxd_err *err);

/* Adds the changes of a row of another journal, which went on from what this one is, to a
 * transaction; several rows may share one. The journal's running time becomes the row's at least.
 * errors  DATA_LOSS  not a row, or one that does not follow from records alone
 *         RESOURCE_EXHAUSTED */
enum vxd_status vxd_journal_add_archived(struct vxd_journal_txn *txn, const void *bytes,
                                         size_t n_bytes, struct vxd_err *err);

struct vxd_journal_stats {
    uint64_t n_groups;       /* SQLite transactions that were committed */
    uint64_t n_transactions; /* in them */
    uint64_t n_records;
    uint64_t n_record_bytes;
    uint64_t n_failed; /* transactions */
    uint64_t n_lost;   /* as vxd_journal_found */
    uint64_t n_marked; /* transactions that the mark has on the disk */
    uint64_t n_syncs;  /* of the WAL beyond commits: EVERYSEC's */
    uint64_t n_checkpoints;
    uint64_t longest_group_us; /* from its first write to its last sync */
    uint64_t last_group_us;
    size_t n_queued; /* now */
    size_t n_queued_bytes;
    size_t n_queued_bytes_peak;
    bool
        is_idle; /* the writer waits, with nothing to do until somebody comes or a second ends */
    bool is_available;
    char reason[200]; /* why not */
};

void vxd_journal_get_stats(struct vxd_journal *journal, struct vxd_journal_stats *out);

#endif
