// SPDX-License-Identifier: Apache-2.0
/* voxeld.db: an SQLite database, WAL, application_id 0x56584a31, user_version 1 (the layout that
 * is described here). Integers are SQLite's; ids and sequence numbers are positive.
 *
 *     meta        key, value: "epoch" the highest given out; "next_family"; "secret" 32 bytes;
 *                 "clean" 1 after a close, 0 while it is open; "boot_id" of the system that opened
 *                 it last; "power_lost" 1 from the start after a loss of power until a start
 *                 has ended; "restored" 1 in a backup until a server has started from it, 2 from
 *                 the moment when the mark showed a loss until a start has ended; "probe";
 *                 "marked" 1 where there is a voxeld.mark (database_mark.c); "sequence" the
 *                 number of transactions that were ever committed; "run_ns" how long daemons
 *                 have run on it; where there is an archive, "archive_line", "archive_first",
 *                 "archive_next" as in struct vxd_spool, "archive_sequence" the "sequence" up to
 *                 which all is in the archive or the spool
 *     families    the catalogue: id, name (unique), fsync (0 always, 1 everysec, 2 off),
 *                 max_bytes, epoch, spec (the owner's bytes), crc of these; and the journal's own:
 *                 last_sequence, snapshot_sequence, kept_from, journal_bytes, open_tail (1: commits
 *                 without a sync since the last clean end), state_crc of those
 *     records     id = family << 40 | sequence; rules, kind, n_bytes, crc, bytes (record.c)
 *     items       family, kind (1 head, 2 named snapshot, 3 ages), name, crc, bytes (the owner's)
 *     replies     client, sequence, digest, unix_ns, crc, bytes: exactly-once outcomes, those that
 *                 memory knows and no others (server/request/exactly_once_disk.c)
 *     dropped     families whose records are being removed
 *     set_aside   records that a recovery cut: nothing reads them, they stay for people
 *     archive     number, n_bytes, crc, bytes (journal_spool.c): transactions that wait for the
 *                 archive; made when there is one for the first time
 *
 * It is made as voxeld.db.new, synced and renamed, so that it is there with its tables or not at
 * all.
 *
 * CRCs are CRC32C, little-endian numbers of fixed width put one after the other:
 *     family      id 4, fsync 4, max_bytes 8, epoch 8, name with zeros to 64, spec
 *     state       id 4, open_tail 4, last_sequence 8, snapshot_sequence 8, kept_from 8,
 *                 journal_bytes 8
 *     record      family 4, sequence 8, rules 4, kind 4, bytes
 *     item        family 4, kind 4, name with zeros to 64, bytes
 *     reply       sequence 8, unix_ns 8, digest 16, bytes of client 8, client, bytes */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/crc32c.h"
#include "server/durable/database/database.h"
#include "server/observe/log/log.h"

static const char schema[] =
    "PRAGMA application_id = 1448626737;" /* VXD_DATABASE_APPLICATION */
    "PRAGMA user_version = 1;"
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;"
    "CREATE TABLE families(id INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL,"
    " fsync INTEGER NOT NULL, max_bytes INTEGER NOT NULL, epoch INTEGER NOT NULL,"
    " spec BLOB NOT NULL, crc INTEGER NOT NULL, last_sequence INTEGER NOT NULL DEFAULT 0,"
    " snapshot_sequence INTEGER NOT NULL DEFAULT 0,"
    " kept_from INTEGER NOT NULL DEFAULT 0, journal_bytes INTEGER NOT NULL DEFAULT 0,"
    " open_tail INTEGER NOT NULL DEFAULT 0, state_crc INTEGER NOT NULL DEFAULT 0);"
    "CREATE TABLE records(id INTEGER PRIMARY KEY, rules INTEGER NOT NULL,"
    " kind INTEGER NOT NULL, n_bytes INTEGER NOT NULL, crc INTEGER NOT NULL,"
    " bytes BLOB NOT NULL);"
    "CREATE TABLE items(family INTEGER NOT NULL, kind INTEGER NOT NULL,"
    " name TEXT NOT NULL, crc INTEGER NOT NULL, bytes BLOB NOT NULL,"
    " PRIMARY KEY(family, kind, name)) WITHOUT ROWID;"
    "CREATE TABLE replies(client BLOB NOT NULL, sequence INTEGER NOT NULL,"
    " digest BLOB NOT NULL, unix_ns INTEGER NOT NULL, crc INTEGER NOT NULL,"
    " bytes BLOB NOT NULL, PRIMARY KEY(client, sequence)) WITHOUT ROWID;"
    "CREATE TABLE dropped(family INTEGER PRIMARY KEY);"
    "CREATE TABLE set_aside(number INTEGER PRIMARY KEY, id INTEGER NOT NULL,"
    " rules INTEGER NOT NULL, kind INTEGER NOT NULL, n_bytes INTEGER NOT NULL,"
    " crc INTEGER NOT NULL, bytes BLOB NOT NULL);"
    "INSERT INTO meta VALUES('epoch', 1), ('next_family', 1), ('clean', 1),"
    " ('restored', 0), ('probe', 0), ('marked', 1), ('sequence', 0);";

enum vxd_status vxd_database_fail(struct vxd_err *err, sqlite3 *db, int result,
                                  const char *what)
{
    enum vxd_status status = VXD_UNAVAILABLE;

    switch (result & 255) {
    case SQLITE_FULL:
    case SQLITE_NOMEM:
    case SQLITE_TOOBIG:
        status = VXD_RESOURCE_EXHAUSTED;
        break;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_FORMAT:
        status = VXD_DATA_LOSS;
        break;
    default:
        break;
    }
    return vxd_fail(err, status, "data_dir", "voxeld.db: cannot %s: %s (%s, %d)", what,
                    db != NULL ? sqlite3_errmsg(db) : "no connection",
                    sqlite3_errstr(result), result);
}

enum vxd_status vxd_database_execute(sqlite3 *db, const char *sql, struct vxd_err *err)
{
    int result = sqlite3_exec(db, sql, NULL, NULL, NULL);
    char what[64];

    if (result == SQLITE_OK) {
        return VXD_OK;
    }
    (void)snprintf(what, sizeof what, "do \"%.48s\"", sql);
    return vxd_database_fail(err, db, result, what);
}

/* In exclusive mode the index of the WAL lies in this process's memory: no -shm file, and nobody
 * else, whom the directory's lock keeps out anyway. */
static const char set_up[] =
    "PRAGMA locking_mode = EXCLUSIVE; PRAGMA temp_store = MEMORY;"
    "PRAGMA cache_size = -16384; PRAGMA mmap_size = 0; PRAGMA trusted_schema = OFF;";

/* Without changing a byte: a WAL that is there is read, and stays; where there is none, SQLite
 * would make one, unless the file is declared immutable. */
static enum vxd_status open_read_only(const struct vxd_file_ops *ops, const char *path,
                                      sqlite3 **db, int *result, struct vxd_err *err)
{
    char name[3 * VXD_DURABLE_PATH_BYTES + 32];
    int wal;
    int64_t n_wal = 0;
    size_t n;

    (void)snprintf(name, sizeof name, "%s-wal", path);
    wal = ops->open(ops->user, name, O_RDONLY, 0);
    if (wal >= 0) {
        n_wal = ops->size(ops->user, wal);
        (void)ops->close(ops->user, wal);
    }
    if (n_wal > 0) {
        *result = sqlite3_open_v2(path, db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
                                  ops->sqlite_vfs);
        (void)sqlite3_db_config(*db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
        return VXD_OK;
    }
    n = (size_t)snprintf(name, sizeof name, "file:");
    for (const char *at = path; *at != '\0'; at++) {
        bool is_plain = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
                        (*at >= '0' && *at <= '9') || strchr("/._-", *at) != NULL;

        n += (size_t)snprintf(name + n, sizeof name - n, is_plain ? "%c" : "%%%02x",
                              is_plain ? *at : (unsigned char)*at);
    }
    (void)snprintf(name + n, sizeof name - n, "?immutable=1");
    if (n >= sizeof name - 16) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "data_dir", "the path is too long");
    }
    *result = sqlite3_open_v2(
        name, db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX,
        ops->sqlite_vfs);
    return VXD_OK;
}

enum vxd_status vxd_database_connect(const struct vxd_file_ops *ops, const char *path,
                                     bool is_read_only, sqlite3 **out,
                                     struct vxd_err *err)
{
    sqlite3 *db = NULL;
    int result = SQLITE_OK;
    enum vxd_status status;

    if (is_read_only) {
        VXD_TRY(open_read_only(ops, path, &db, &result, err));
    } else {
        result = sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
                                 ops->sqlite_vfs);
    }
    if (result != SQLITE_OK) {
        VXD_TRY(vxd_database_fail(err, db, result, "open it"));
    }
    (void)sqlite3_extended_result_codes(db, 1);
    VXD_TRY(vxd_database_execute(db, set_up, err));
    if (is_read_only) {
        VXD_TRY(vxd_database_execute(db, "PRAGMA query_only = ON", err));
    } else {
        VXD_TRY(vxd_database_execute(db,
                                     "PRAGMA journal_mode = WAL;"
                                     "PRAGMA wal_autocheckpoint = 0;"
                                     "PRAGMA synchronous = FULL",
                                     err));
    }
    *out = db;
    return VXD_OK;
out:
    if (db != NULL) { /* what cannot be read is left as it is */
        (void)sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    }
    (void)sqlite3_close(db);
    return status;
}

static enum vxd_status get_pragma(sqlite3 *db, const char *sql, int64_t *out,
                                  struct vxd_err *err)
{
    sqlite3_stmt *statement = NULL;
    int result = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);

    if (result == SQLITE_OK) {
        result = sqlite3_step(statement);
        *out = result == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    }
    (void)sqlite3_finalize(statement);
    return result == SQLITE_ROW || result == SQLITE_DONE
               ? VXD_OK
               : vxd_database_fail(err, db, result, "read its head");
}

enum vxd_status vxd_database_check_tables(sqlite3 *db, struct vxd_err *err)
{
    int64_t application = 0;
    int64_t layout = 0;
    enum vxd_status status;

    VXD_TRY(get_pragma(db, "PRAGMA application_id", &application, err));
    VXD_TRY(get_pragma(db, "PRAGMA user_version", &layout, err));
    if (application != VXD_DATABASE_APPLICATION) {
        return vxd_fail(err, VXD_DATA_LOSS, "data_dir",
                        "voxeld.db is no database of voxeld's");
    }
    if (layout != VXD_DATABASE_LAYOUT) {
        return vxd_fail(
            err, VXD_FAILED_PRECONDITION, "data_dir",
            "voxeld.db is of layout %lld; this program knows %d: a newer server "
            "wrote it",
            (long long)layout, VXD_DATABASE_LAYOUT);
    }
out:
    return status;
}

static enum vxd_status draw_secret(uint8_t out[VXD_JOURNAL_SECRET_BYTES],
                                   struct vxd_err *err)
{
    int file = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    ssize_t n = file >= 0 ? read(file, out, VXD_JOURNAL_SECRET_BYTES) : -1;

    if (file >= 0) {
        (void)close(file);
    }
    return n == VXD_JOURNAL_SECRET_BYTES
               ? VXD_OK
               : vxd_fail(err, VXD_INTERNAL, NULL, "cannot read /dev/urandom");
}

static enum vxd_status set_meta_bytes(sqlite3 *db, const char *key, const void *bytes,
                                      int n_bytes, struct vxd_err *err)
{
    sqlite3_stmt *statement = NULL;
    int result = sqlite3_prepare_v2(db, "INSERT OR REPLACE INTO meta VALUES(?1, ?2)", -1,
                                    &statement, NULL);

    if (result == SQLITE_OK) {
        (void)sqlite3_bind_text(statement, 1, key, -1, SQLITE_STATIC);
        (void)sqlite3_bind_blob(statement, 2, bytes, n_bytes, SQLITE_STATIC);
        result = sqlite3_step(statement);
    }
    (void)sqlite3_finalize(statement);
    return result == SQLITE_DONE ? VXD_OK
                                 : vxd_database_fail(err, db, result, "write meta");
}

/* A database that nobody has yet: it needs neither journal nor syncs of its own. */
static enum vxd_status fill_new(const struct vxd_file_ops *ops, const char *path,
                                struct vxd_err *err)
{
    uint8_t secret[VXD_JOURNAL_SECRET_BYTES];
    sqlite3 *db = NULL;
    int result = sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
                                 ops->sqlite_vfs);
    enum vxd_status status = VXD_OK;

    if (result != SQLITE_OK) {
        VXD_TRY(vxd_database_fail(err, db, result, "make it"));
    }
    VXD_TRY(draw_secret(secret, err));
    VXD_TRY(vxd_database_execute(db, set_up, err));
    VXD_TRY(vxd_database_execute(
        db, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF", err));
    VXD_TRY(vxd_database_execute(db, schema, err));
    VXD_TRY(set_meta_bytes(db, "secret", secret, sizeof secret, err));
    VXD_TRY(vxd_database_execute(db, "PRAGMA journal_mode = WAL", err));
out:
    if (sqlite3_close(db) != SQLITE_OK && status == VXD_OK) {
        status = vxd_fail(err, VXD_UNAVAILABLE, "data_dir", "cannot make voxeld.db");
    }
    return status;
}

static enum vxd_status sync_new(const struct vxd_file_ops *ops, const char *path,
                                struct vxd_err *err)
{
    int file = ops->open(ops->user, path, O_RDWR, 0);
    int result = file >= 0 ? ops->sync(ops->user, file) : file;

    if (file >= 0) {
        (void)ops->close(ops->user, file);
    }
    return result == 0 ? VXD_OK : vxd_file_fail(err, result, "sync", path);
}

/* A WAL without its database, which somebody took away, would be taken for the new one's. */
static enum vxd_status leave_wal(const struct vxd_file_ops *ops,
                                 const struct vxd_data_dir *dir, struct vxd_err *err)
{
    char wal[VXD_DURABLE_PATH_BYTES];
    char aside[VXD_DURABLE_PATH_BYTES];
    int result;

    (void)snprintf(wal, sizeof wal, "%s/voxeld.db-wal", dir->path);
    (void)snprintf(aside, sizeof aside, "%s/voxeld.db-wal.orphan", dir->path);
    result = ops->rename(ops->user, wal, aside);
    return result == 0 || result == -ENOENT ? VXD_OK
                                            : vxd_file_fail(err, result, "rename", wal);
}

enum vxd_status vxd_database_make_beside(const struct vxd_data_dir *dir,
                                         char path[VXD_DURABLE_PATH_BYTES],
                                         struct vxd_err *err)
{
    const struct vxd_file_ops *ops = dir->ops;
    char wal[VXD_DURABLE_PATH_BYTES];
    int result;

    (void)snprintf(path, VXD_DURABLE_PATH_BYTES, "%s/voxeld.db.new", dir->path);
    (void)snprintf(wal, sizeof wal, "%s/voxeld.db.new-wal", dir->path);
    result = ops->unlink(ops->user, wal); /* of one that was cut off */
    if (result != 0 && result != -ENOENT) {
        return vxd_file_fail(err, result, "remove", wal);
    }
    result = ops->open(ops->user, path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (result < 0) {
        return vxd_file_fail(err, result, "make", path);
    }
    (void)ops->close(ops->user, result);
    return fill_new(ops, path, err);
}

static void count_snapshot(void *arg, const char *name)
{
    size_t *n_snapshots = arg;
    size_t n = strlen(name);

    *n_snapshots += n > 4 && strcmp(name + n - 4, ".vxs") == 0;
}

enum vxd_status vxd_database_check_new(const struct vxd_data_dir *dir,
                                       struct vxd_err *err)
{
    const struct vxd_file_ops *ops = dir->ops;
    char folder[VXD_DURABLE_PATH_BYTES];
    size_t n_snapshots = 0;
    struct vxd_mark mark;
    struct vxd_err fault = {0};
    enum vxd_status status;

    (void)snprintf(folder, sizeof folder, "%s/snapshots", dir->path);
    (void)ops->list(ops->user, folder, count_snapshot, &n_snapshots);
    if (n_snapshots > 0) {
        return vxd_fail(err, VXD_DATA_LOSS, "data_dir",
                        "voxeld.db is missing beside %zu snapshot files", n_snapshots);
    }
    status = vxd_mark_open(ops, dir->path, true, &mark, &fault);
    if (status == VXD_OK && mark.written > 0) {
        return vxd_fail(err, VXD_DATA_LOSS, "data_dir",
                        "voxeld.db is missing, and voxeld.mark knows of %llu changes",
                        (unsigned long long)mark.written);
    }
    return status == VXD_OK || status == VXD_NOT_FOUND
               ? VXD_OK
               : vxd_fail(err, status, fault.field, "%s", fault.message);
}

/* The mark is made before the database has its name, which says that there is one. */
static enum vxd_status begin_directory(const struct vxd_data_dir *dir,
                                       struct vxd_err *err)
{
    const struct vxd_file_ops *ops = dir->ops;
    const struct vxd_mark first = {.file = -1, .generation = 1};
    enum vxd_status status;

    VXD_TRY(vxd_database_check_new(dir, err));
    VXD_TRY(vxd_mark_make(ops, dir->path, &first, err));
    status = vxd_file_sync_directory(ops, dir->path, err);
out:
    return status;
}

enum vxd_status vxd_database_make(const struct vxd_data_dir *dir, bool *is_new,
                                  struct vxd_err *err)
{
    const struct vxd_file_ops *ops = dir->ops;
    char path[VXD_DURABLE_PATH_BYTES];
    char beside[VXD_DURABLE_PATH_BYTES];
    int aside;
    int file;
    enum vxd_status status;

    *is_new = false;
    VXD_TRY(vxd_database_take_repaired(dir, &aside, err));
    if (aside > 0) {
        vxd_log(VXD_LOG_WARNING, "a repair that was cut off was finished", "data_dir",
                dir->path);
    }
    (void)snprintf(path, sizeof path, "%s/voxeld.db", dir->path);
    file = ops->open(ops->user, path, O_RDWR, 0);
    if (file >= 0) {
        (void)ops->close(ops->user, file);
        return VXD_OK;
    }
    if (file != -ENOENT) {
        return vxd_file_fail(err, file, "open", path);
    }
    VXD_TRY(begin_directory(dir, err));
    VXD_TRY(vxd_database_make_beside(dir, beside, err));
    VXD_TRY(sync_new(ops, beside, err));
    VXD_TRY(leave_wal(ops, dir, err));
    file = ops->rename(ops->user, beside, path);
    if (file != 0) {
        VXD_TRY(vxd_file_fail(err, file, "rename", beside));
    }
    *is_new = true;
out:
    return status;
}

static enum vxd_status find_meta(sqlite3 *db, const char *key, sqlite3_stmt **out,
                                 bool *is_there, struct vxd_err *err)
{
    int result =
        sqlite3_prepare_v2(db, "SELECT value FROM meta WHERE key = ?1", -1, out, NULL);

    if (result == SQLITE_OK) {
        (void)sqlite3_bind_text(*out, 1, key, -1, SQLITE_STATIC);
        result = sqlite3_step(*out);
    }
    *is_there = result == SQLITE_ROW;
    return result == SQLITE_ROW || result == SQLITE_DONE
               ? VXD_OK
               : vxd_database_fail(err, db, result, "read meta");
}

enum vxd_status vxd_database_get_meta(sqlite3 *db, const char *key, uint64_t *out,
                                      struct vxd_err *err)
{
    sqlite3_stmt *statement = NULL;
    bool is_there;
    enum vxd_status status = find_meta(db, key, &statement, &is_there, err);

    *out =
        status == VXD_OK && is_there ? (uint64_t)sqlite3_column_int64(statement, 0) : 0;
    (void)sqlite3_finalize(statement);
    return status;
}

enum vxd_status vxd_database_get_meta_bytes(sqlite3 *db, const char *key, void *out,
                                            size_t capacity, size_t *n_bytes,
                                            struct vxd_err *err)
{
    sqlite3_stmt *statement = NULL;
    bool is_there;
    enum vxd_status status = find_meta(db, key, &statement, &is_there, err);

    *n_bytes = 0;
    if (status == VXD_OK && is_there) {
        const void *bytes = sqlite3_column_blob(statement, 0);
        size_t n = (size_t)sqlite3_column_bytes(statement, 0);

        if (bytes != NULL && n <= capacity) {
            memcpy(out, bytes, n);
            *n_bytes = n;
        }
    }
    (void)sqlite3_finalize(statement);
    return status;
}

enum vxd_status vxd_database_set_meta(sqlite3 *db, const char *key, uint64_t value,
                                      struct vxd_err *err)
{
    sqlite3_stmt *statement = NULL;
    int result = sqlite3_prepare_v2(db, "INSERT OR REPLACE INTO meta VALUES(?1, ?2)", -1,
                                    &statement, NULL);

    if (result == SQLITE_OK) {
        (void)sqlite3_bind_text(statement, 1, key, -1, SQLITE_STATIC);
        (void)sqlite3_bind_int64(statement, 2, (int64_t)value);
        result = sqlite3_step(statement);
    }
    (void)sqlite3_finalize(statement);
    return result == SQLITE_DONE ? VXD_OK
                                 : vxd_database_fail(err, db, result, "write meta");
}
