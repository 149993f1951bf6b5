// SPDX-License-Identifier: Apache-2.0
/* Reads what the tables of a damaged database still give. Each table is read from both ends,
 * because a page that cannot be read stops the reading from one of them. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "server/durable/maintenance/repair_internal.h"

/* What of the table meta a database that is made beside takes over; the rest is of a run. */
#define SELECT_META                                                                      \
    "SELECT * FROM meta WHERE key IN ('epoch', 'next_family', 'run_ns', 'secret',"       \
    " 'sequence')"

/* Rows that are there already stay. */
static const struct {
    const char *name;
    const char *selects[2];
    const char *insert;
    int n_columns;
} tables[] = {
    {"families",
     {"SELECT * FROM families ORDER BY id", "SELECT * FROM families ORDER BY id DESC"},
     "INSERT OR IGNORE INTO families VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13)",
     13},
    {"records",
     {"SELECT * FROM records ORDER BY id", "SELECT * FROM records ORDER BY id DESC"},
     "INSERT OR IGNORE INTO records VALUES(?1,?2,?3,?4,?5,?6)",
     6},
    {"items",
     {"SELECT * FROM items", "SELECT * FROM items ORDER BY 1 DESC, 2 DESC, 3 DESC"},
     "INSERT OR IGNORE INTO items VALUES(?1,?2,?3,?4,?5)",
     5},
    {"replies",
     {"SELECT * FROM replies", "SELECT * FROM replies ORDER BY 1 DESC, 2 DESC"},
     "INSERT OR IGNORE INTO replies VALUES(?1,?2,?3,?4,?5,?6)",
     6},
    {"dropped",
     {"SELECT * FROM dropped", "SELECT * FROM dropped ORDER BY 1 DESC"},
     "INSERT OR IGNORE INTO dropped VALUES(?1)",
     1},
    {"set_aside",
     {"SELECT * FROM set_aside", "SELECT * FROM set_aside ORDER BY 1 DESC"},
     "INSERT OR IGNORE INTO set_aside VALUES(?1,?2,?3,?4,?5,?6,?7)",
     7},
    {"meta",
     {SELECT_META, SELECT_META " ORDER BY 1 DESC"},
     "INSERT OR REPLACE INTO meta VALUES(?1,?2)",
     2},
};

/* What the new table does not take (a name twice) is no row of ours; any other failure is the
 * disk's, or memory's. */
static bool is_put(int result)
{
    return result == SQLITE_DONE || (result & 255) == SQLITE_CONSTRAINT ||
           (result & 255) == SQLITE_MISMATCH;
}

/* *is_whole: the table was read to its end. A page that the disk does not give is damaged as one of
 * which the content is wrong: it may never be given again. */
static enum vxd_status copy_rows(struct vxd_repair *repair, sqlite3 *from, size_t table,
                                 int direction, uint64_t *n_rows, bool *is_whole,
                                 struct vxd_err *err)
{
    sqlite3_stmt *row = NULL;
    sqlite3_stmt *insert = NULL;
    int result =
        sqlite3_prepare_v2(from, tables[table].selects[direction], -1, &row, NULL);
    int put = sqlite3_prepare_v2(repair->db, tables[table].insert, -1, &insert, NULL);
    enum vxd_status status = VXD_OK;

    while (result == SQLITE_OK && put == SQLITE_OK &&
           (result = sqlite3_step(row)) == SQLITE_ROW) {
        for (int i = 0; i < tables[table].n_columns; i++) {
            (void)sqlite3_bind_value(insert, i + 1, sqlite3_column_value(row, i));
        }
        put = sqlite3_step(insert);
        *n_rows += put == SQLITE_DONE ? (uint64_t)sqlite3_changes(repair->db) : 0;
        (void)sqlite3_reset(insert);
        put = is_put(put) ? SQLITE_OK : put;
        result = SQLITE_OK;
    }
    if (put != SQLITE_OK) {
        status = vxd_database_fail(err, repair->db, put, "save what can be read");
    } else if ((result & 255) == SQLITE_NOMEM) {
        status = vxd_database_fail(err, from, result, "read it");
    }
    *is_whole = result == SQLITE_DONE;
    (void)sqlite3_finalize(row);
    (void)sqlite3_finalize(insert);
    return status;
}

static enum vxd_status copy_all(struct vxd_repair *repair, sqlite3 *from,
                                struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        uint64_t n_rows = 0;
        bool is_whole;
        char where[80];

        (void)snprintf(where, sizeof where, "voxeld.db, %s", tables[i].name);
        VXD_TRY(copy_rows(repair, from, i, 0, &n_rows, &is_whole, err));
        if (is_whole) {
            vxd_repair_say(repair, VXD_PROBLEM_NOTE, where, "all %llu rows were read",
                           (unsigned long long)n_rows);
            continue;
        }
        VXD_TRY(copy_rows(repair, from, i, 1, &n_rows, &is_whole, err));
        vxd_repair_say(repair, VXD_PROBLEM_LOSS, where,
                       "%llu rows were read; others cannot be",
                       (unsigned long long)n_rows);
    }
out:
    return status;
}

static enum vxd_status check_whole(struct vxd_repair *repair, struct vxd_err *err)
{
    sqlite3_stmt *row = NULL;
    const unsigned char *text = NULL;
    int result;
    enum vxd_status status;

    VXD_TRY(vxd_database_check_tables(repair->db, err));
    result = sqlite3_prepare_v2(repair->db, "PRAGMA integrity_check(1)", -1, &row, NULL);
    if (result == SQLITE_OK && sqlite3_step(row) == SQLITE_ROW) {
        text = sqlite3_column_text(row, 0);
    }
    if (text == NULL || strcmp((const char *)text, "ok") != 0) {
        status =
            vxd_fail(err, VXD_DATA_LOSS, "data_dir", "SQLite finds it damaged: %.150s",
                     text != NULL ? (const char *)text : sqlite3_errmsg(repair->db));
    }
    (void)sqlite3_finalize(row);
out:
    return status;
}

/* What can be read of the database at `path`, which keeps every byte, goes to one beside it. */
static enum vxd_status salvage(struct vxd_repair *repair, const char *path,
                               struct vxd_err *err)
{
    struct vxd_err unreadable = {0};
    sqlite3 *damaged = NULL;
    enum vxd_status status;

    repair->is_salvaged = true;
    VXD_TRY(vxd_database_make_beside(&repair->dir, repair->made, err));
    VXD_TRY(vxd_database_connect(repair->dir.ops, repair->made, false, &repair->db, err));
    if (repair->why[0] == '\0') {
        vxd_repair_say(repair, VXD_PROBLEM_LOSS, "voxeld.db",
                       "it was missing; scenes come back from their snapshot files");
        goto out;
    }
    status = vxd_database_connect(repair->dir.ops, path, true, &damaged, &unreadable);
    if (status == VXD_OK) {
        VXD_TRY(vxd_database_execute(repair->db, "BEGIN", err));
        VXD_TRY(copy_all(repair, damaged, err));
        VXD_TRY(vxd_database_execute(repair->db, "COMMIT", err));
    } else if (status == VXD_RESOURCE_EXHAUSTED) {
        *err = unreadable;
    } else {
        status = VXD_OK;
        vxd_repair_say(repair, VXD_PROBLEM_LOSS, "voxeld.db",
                       "nothing can be read of it; scenes come back from their snapshot "
                       "files");
    }
out:
    (void)sqlite3_close(damaged);
    return status;
}

/* That of an earlier repair is finished before; where nothing is at `path`, *is_there is false. */
static enum vxd_status find_database(struct vxd_repair *repair, const char *path,
                                     bool *is_there, struct vxd_err *err)
{
    const struct vxd_file_ops *ops = repair->dir.ops;
    int aside = 0;
    int file;
    enum vxd_status status;

    VXD_TRY(vxd_database_take_repaired(&repair->dir, &aside, err));
    if (aside > 0) {
        vxd_repair_say(repair, VXD_PROBLEM_NOTE, "voxeld.db",
                       "an earlier repair was cut off and is finished now; the old "
                       "database is voxeld.db.damaged.%d",
                       aside);
    }
    file = ops->open(ops->user, path, O_RDWR, 0);
    *is_there = file >= 0;
    if (file >= 0) {
        (void)ops->close(ops->user, file);
    } else if (file != -ENOENT) {
        return vxd_file_fail(err, file, "open", path);
    }
out:
    return status;
}

enum vxd_status vxd_repair_open(struct vxd_repair *repair, struct vxd_err *err)
{
    char path[VXD_DURABLE_PATH_BYTES];
    struct vxd_err why = {0};
    bool is_there;
    enum vxd_status status;

    (void)snprintf(path, sizeof path, "%s/voxeld.db", repair->dir.path);
    VXD_TRY(find_database(repair, path, &is_there, err));
    if (!is_there) {
        return salvage(repair, path, err);
    }
    status = vxd_database_connect(repair->dir.ops, path, false, &repair->db, &why);
    if (status == VXD_OK) {
        status = check_whole(repair, &why);
    }
    if (status == VXD_DATA_LOSS) {
        if (repair->db != NULL) {
            (void)sqlite3_db_config(repair->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1,
                                    NULL);
        }
        (void)sqlite3_close(repair->db);
        repair->db = NULL;
        (void)snprintf(repair->why, sizeof repair->why, "%.150s", why.message);
        status = salvage(repair, path, err);
    } else if (status != VXD_OK) {
        *err = why;
    }
out:
    return status;
}

enum vxd_status vxd_repair_close(struct vxd_repair *repair, struct vxd_err *err)
{
    /* Syncs the database, in which all is then. */
    int result = sqlite3_wal_checkpoint_v2(repair->db, NULL, SQLITE_CHECKPOINT_TRUNCATE,
                                           NULL, NULL);
    int aside = 0;
    enum vxd_status status = VXD_OK;

    if (result == SQLITE_OK) {
        result = sqlite3_close(repair->db);
        repair->db = result == SQLITE_OK ? NULL : repair->db;
    }
    if (result != SQLITE_OK) {
        VXD_TRY(vxd_database_fail(err, repair->db, result, "end its repair"));
    }
    if (!repair->is_salvaged) {
        goto out;
    }
    VXD_TRY(vxd_database_put_repaired(&repair->dir, repair->made, &aside, err));
    if (repair->why[0] != '\0') {
        vxd_repair_say(repair, VXD_PROBLEM_SPARE, "voxeld.db",
                       "%s; renamed to voxeld.db.damaged.%d", repair->why, aside);
    }
out:
    return status;
}

enum vxd_status vxd_repair_strange_families(struct vxd_repair *repair, int64_t *n,
                                            struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(vxd_repair_run(repair,
                           "INSERT INTO quarantine_families SELECT * FROM families WHERE"
                           " id < 1 OR id > ?1",
                           VXD_JOURNAL_MAX_FAMILY, NULL, err));
    VXD_TRY(vxd_repair_run(repair,
                           "SELECT count(*) FROM families WHERE id < 1 OR id > ?1",
                           VXD_JOURNAL_MAX_FAMILY, n, err));
    VXD_TRY(vxd_repair_run(repair, "DELETE FROM families WHERE id < 1 OR id > ?1",
                           VXD_JOURNAL_MAX_FAMILY, NULL, err));
    if (*n > 0) {
        vxd_repair_say(repair, VXD_PROBLEM_LOSS, "voxeld.db, families",
                       "%lld rows with numbers that no family has", (long long)*n);
    }
out:
    return status;
}
