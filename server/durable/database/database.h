// SPDX-License-Identifier: Apache-2.0
/* voxeld.db as an SQLite database: connections, tables, rows and their CRCs, and how a new or a
 * repaired one gets its name. The tables are described in database.c. What is written when is the
 * journal's matter (server/durable/journal). */
#ifndef VXD_SERVER_DURABLE_DATABASE_DATABASE_H
#define VXD_SERVER_DURABLE_DATABASE_DATABASE_H

#include <sqlite3.h>

#include "server/durable/data_dir/data_dir.h"

enum {
    VXD_DATABASE_LAYOUT = 1,
    VXD_DATABASE_APPLICATION = 0x56584a31, /* "VXJ1" */
    VXD_DATABASE_SEQUENCE_BITS = 40,
    VXD_DATABASE_MAX_CLIENT_BYTES = 512
};

enum {
    VXD_JOURNAL_NAME_BYTES = 64,
    VXD_JOURNAL_SECRET_BYTES = 32,
    VXD_JOURNAL_DIGEST_BYTES = 16,
    VXD_JOURNAL_MAX_FAMILY = (1 << 22) - 1 /* ids are 1 to this */
};

#define VXD_JOURNAL_MAX_SEQUENCE (((uint64_t)1 << 40) - 1)
#define VXD_JOURNAL_MAX_BYTES                                                            \
    ((uint64_t)INT64_MAX) /* of a family, and its highest epoch */
#define VXD_JOURNAL_MAX_BLOB_BYTES ((size_t)512 << 20) /* of a record, a spec, a reply */

/* What a completion promises of a family's changes. In a group of several the strictest rules. */
enum vxd_fsync {
    VXD_FSYNC_ALWAYS = 0,   /* they outlive a loss of power */
    VXD_FSYNC_EVERYSEC = 1, /* they outlive this process; of power, after a second */
    VXD_FSYNC_OFF =
        2 /* they outlive this process; of power, when the system writes them */
};

/* A family in the catalogue. */
struct vxd_journal_family {
    uint32_t id; /* from vxd_journal_new_family */
    char name[VXD_JOURNAL_NAME_BYTES];
    enum vxd_fsync fsync;
    uint64_t
        max_bytes; /* of records after the last snapshot: then one is due; 0 = never */
    uint64_t epoch;
    const void *spec; /* the owner's; borrowed */
    size_t n_spec_bytes;
};

struct vxd_journal_record {
    uint32_t family;
    uint64_t sequence; /* the family's last one plus 1 */
    uint32_t rules_version;
    uint32_t kind; /* of record.h; 0 to 65535 */
    const void *bytes;
    size_t n_bytes;
};

/* An exactly-once outcome. */
struct vxd_journal_reply {
    const void *client; /* the key of whoever sent the request: any bytes, 1 to 512 */
    size_t n_client_bytes;
    uint64_t sequence; /* 0 where the key alone identifies it; at most 2^63 - 1 */
    uint8_t digest[VXD_JOURNAL_DIGEST_BYTES];
    int64_t unix_ns;
    const void *bytes;
    size_t n_bytes;
};

/* A named thing of a family with the owner's bytes: a head, a named snapshot, or the ages of a
 * head's versions. */
struct vxd_journal_item {
    uint32_t family;
    const char *name; /* below 64 bytes */
    const void *bytes;
    size_t n_bytes;
};

enum vxd_journal_item_kind {
    VXD_JOURNAL_HEAD = 1,
    VXD_JOURNAL_NAMED = 2,
    VXD_JOURNAL_AGES = 3
};

/* A family as the journal keeps it in memory: its row without the spec. */
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

/* The mark: how far the journal had come when its last changes were acknowledged, in a file of its
 * own (database_mark.c). One that is zeroed with file = -1 may be closed. */
struct vxd_mark {
    const struct vxd_file_ops *ops;
    int file;
    int slot;            /* the sector that is written next */
    uint64_t generation; /* the highest epoch that was given out */
    uint64_t written;    /* transactions that were ever acknowledged, */
    uint64_t synced;     /* and those of them that outlive a loss of power */
    char boot_id[VXD_BOOT_ID_BYTES];
};

/* Opens FOLDER/voxeld.mark and reads it; a read-only one is closed again.
 * errors  NOT_FOUND, DATA_LOSS (neither sector is whole), UNAVAILABLE */
enum vxd_status vxd_mark_open(const struct vxd_file_ops *ops, const char *folder,
                              bool is_read_only, struct vxd_mark *out,
                              struct vxd_err *err);
/* Writes its numbers into the next sector. After a sync the other sector is the next one.
 * errors  UNAVAILABLE, RESOURCE_EXHAUSTED */
enum vxd_status vxd_mark_write(struct vxd_mark *mark, struct vxd_err *err);
enum vxd_status vxd_mark_sync(struct vxd_mark *mark, struct vxd_err *err);
/* Makes the file anew, as a whole or not at all, and syncs it; the folder is still to be synced.
 * errors  UNAVAILABLE, RESOURCE_EXHAUSTED */
enum vxd_status vxd_mark_make(const struct vxd_file_ops *ops, const char *folder,
                              const struct vxd_mark *mark, struct vxd_err *err);
void vxd_mark_close(struct vxd_mark *mark);

/* Connections ------------------------------------------------------------------------------ */

/* Turns a result of SQLite into a status and its message. Always a failure. */
enum vxd_status vxd_database_fail(struct vxd_err *err, sqlite3 *db, int result,
                                  const char *what);

/* Opens PATH as a connection of ours (WAL, exclusive); read-only ones change nothing.
 * errors  DATA_LOSS, FAILED_PRECONDITION, RESOURCE_EXHAUSTED, UNAVAILABLE */
enum vxd_status vxd_database_connect(const struct vxd_file_ops *ops, const char *path,
                                     bool is_read_only, sqlite3 **out,
                                     struct vxd_err *err);

/* Makes DIR/voxeld.db and its mark, where the directory is new, as a whole or not at all; the
 * directory is still to be synced. A repair that was interrupted is finished before.
 * errors  DATA_LOSS  it is missing in a directory that has snapshots or a mark of another one
 *         UNAVAILABLE, RESOURCE_EXHAUSTED */
enum vxd_status vxd_database_make(const struct vxd_data_dir *dir, bool *is_new,
                                  struct vxd_err *err);

/* Whether a directory without a database may get a new one: it has no snapshots, and no change was
 * ever acknowledged in it.
 * errors  DATA_LOSS, UNAVAILABLE */
enum vxd_status vxd_database_check_new(const struct vxd_data_dir *dir,
                                       struct vxd_err *err);

/* An empty one beside it, its tables in it: path[] is its name. Nobody opens it by itself, and the
 * next one that is made takes its place. */
enum vxd_status vxd_database_make_beside(const struct vxd_data_dir *dir,
                                         char path[VXD_DURABLE_PATH_BYTES],
                                         struct vxd_err *err);

#define VXD_DATABASE_REPAIRED "voxeld.db.repaired"

/* Puts a database that was made beside, synced and closed in the place of DIR/voxeld.db. From some
 * moment on the next start or repair finishes this if the process ends in between. The old one is
 * voxeld.db.damaged.N afterwards, N = *aside.
 * errors  of vxd_file_fail; FAILED_PRECONDITION, no number is left */
enum vxd_status vxd_database_put_repaired(const struct vxd_data_dir *dir,
                                          const char *made, int *aside,
                                          struct vxd_err *err);
/* Finishes a replacement that was interrupted; *aside = 0 where there is none. To be called before
 * anything is opened. */
enum vxd_status vxd_database_take_repaired(const struct vxd_data_dir *dir, int *aside,
                                           struct vxd_err *err);

/* The table that an archive's directory has besides. */
#define VXD_SPOOL_TABLE                                                                  \
    "CREATE TABLE IF NOT EXISTS archive(number INTEGER PRIMARY KEY,"                     \
    " n_bytes INTEGER NOT NULL, crc INTEGER NOT NULL, bytes BLOB NOT NULL)"

/* Checks that the tables are ours.
 * errors  DATA_LOSS, FAILED_PRECONDITION, UNAVAILABLE */
enum vxd_status vxd_database_check_tables(sqlite3 *db, struct vxd_err *err);

enum vxd_status vxd_database_execute(sqlite3 *db, const char *sql, struct vxd_err *err);

/* A number or bytes of the table meta; 0 where there is none. */
enum vxd_status vxd_database_get_meta(sqlite3 *db, const char *key, uint64_t *out,
                                      struct vxd_err *err);
enum vxd_status vxd_database_get_meta_bytes(sqlite3 *db, const char *key, void *out,
                                            size_t capacity, size_t *n_bytes,
                                            struct vxd_err *err);
enum vxd_status vxd_database_set_meta(sqlite3 *db, const char *key, uint64_t value,
                                      struct vxd_err *err);

/* Rows, and their CRCs --------------------------------------------------------------------- */

uint32_t vxd_database_record_crc(uint32_t family, uint64_t sequence,
                                 uint32_t rules_version, uint32_t kind, const void *bytes,
                                 size_t n_bytes);
uint32_t vxd_database_family_crc(const struct vxd_journal_family *family);
uint32_t vxd_database_state_crc(uint32_t id, const struct vxd_family_state *state);
uint32_t vxd_database_item_crc(enum vxd_journal_item_kind kind,
                               const struct vxd_journal_item *item);
uint32_t vxd_database_reply_crc(const struct vxd_journal_reply *reply);

/* A row of `families`: columns id, name, fsync, max_bytes, epoch, spec, crc, last_sequence,
 * snapshot_sequence, kept_from, journal_bytes, open_tail, state_crc. What is wrong with it, NULL =
 * nothing; pointers last until the next step. */
#define VXD_FAMILY_COLUMNS                                                               \
    "id, name, fsync, max_bytes, epoch, spec, crc, last_sequence, snapshot_sequence, "   \
    "kept_from, journal_bytes, open_tail, state_crc"
const char *vxd_database_row_family(sqlite3_stmt *row, struct vxd_journal_family *family,
                                    struct vxd_family_state *state);
/* Columns id, rules, kind, crc, bytes. */
#define VXD_RECORD_COLUMNS "id, rules, kind, crc, bytes"
const char *vxd_database_row_record(sqlite3_stmt *row, struct vxd_journal_record *record);
/* Columns family, kind, name, crc, bytes. */
#define VXD_ITEM_COLUMNS "family, kind, name, crc, bytes"
const char *vxd_database_row_item(sqlite3_stmt *row, enum vxd_journal_item_kind *kind,
                                  struct vxd_journal_item *item);
/* Whether a damaged row was one of ages, without which nothing acknowledged is lost, and not one
 * of another kind with damage in its kind alone. */
bool vxd_database_was_ages(sqlite3_stmt *row, enum vxd_journal_item_kind kind,
                           const struct vxd_journal_item *item);
/* Columns client, sequence, digest, unix_ns, crc, bytes. */
#define VXD_REPLY_COLUMNS "client, sequence, digest, unix_ns, crc, bytes"
const char *vxd_database_row_reply(sqlite3_stmt *row, struct vxd_journal_reply *reply);

static inline int64_t vxd_database_row_id(uint32_t family, uint64_t sequence)
{
    return (int64_t)((uint64_t)family << VXD_DATABASE_SEQUENCE_BITS | sequence);
}

#endif
