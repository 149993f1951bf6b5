// SPDX-License-Identifier: Apache-2.0
/* A database that is not whole: what its tables still give, from both ends, since a page that
 * cannot be read ends the way from one of them. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "server/durable/repair_internal.h"

enum {
    MAX_ASIDE = 1000
};

/* Rows that are there already stay. */
static const struct {
    const char *name;
    const char *ways[2];
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
     {"SELECT * FROM meta WHERE key IN ('epoch', 'next_family', 'secret')",
      "SELECT * FROM meta WHERE key IN ('epoch', 'next_family', 'secret') ORDER BY 1 "
      "DESC"},
     "INSERT OR REPLACE INTO meta VALUES(?1,?2)",
     2},
};

/* True where the way went to its end. */
static bool copy_rows(struct vxd_repair *repair, sqlite3 *from, size_t table, int way,
                      uint64_t *n_rows)
{
    sqlite3_stmt *row = NULL;
    sqlite3_stmt *insert = NULL;
    int result = sqlite3_prepare_v2(from, tables[table].ways[way], -1, &row, NULL);

    if (result == SQLITE_OK) {
        result = sqlite3_prepare_v2(repair->db, tables[table].insert, -1, &insert, NULL);
    }
    while (result == SQLITE_OK && (result = sqlite3_step(row)) == SQLITE_ROW) {
        for (int i = 0; i < tables[table].n_columns; i++) {
            (void)sqlite3_bind_value(insert, i + 1, sqlite3_column_value(row, i));
        }
        /* What the new table does not take (a name twice) is no row of ours. */
        (void)sqlite3_step(insert);
        *n_rows += (uint64_t)sqlite3_changes(repair->db);
        (void)sqlite3_reset(insert);
        result = SQLITE_OK;
    }
    (void)sqlite3_finalize(row);
    (void)sqlite3_finalize(insert);
    return result == SQLITE_DONE;
}

static void copy_all(struct vxd_repair *repair, sqlite3 *from)
{
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        uint64_t n_rows = 0;
        char where[80];

        (void)snprintf(where, sizeof where, "voxeld.db, %s", tables[i].name);
        if (copy_rows(repair, from, i, 0, &n_rows)) {
            vxd_repair_say(repair, VXD_PROBLEM_NOTE, where, "all %llu rows were read",
                           (unsigned long long)n_rows);
            continue;
        }
        (void)copy_rows(repair, from, i, 1, &n_rows);
        vxd_repair_say(repair, VXD_PROBLEM_LOSS, where,
                       "%llu rows were read; others cannot be",
                       (unsigned long long)n_rows);
    }
}

static enum vxd_status check_whole(struct vxd_repair *repair, struct vxd_err *err)
{
    sqlite3_stmt *row = NULL;
    const unsigned char *text = NULL;
    int result;
    enum vxd_status status;

    VXD_TRY(vxd_journal_check_tables(repair->db, err));
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

/* Renames the database and its WAL to a name that nothing has; to[] is it. */
static enum vxd_status set_aside(struct vxd_repair *repair, const char *path,
                                 char to[VXD_DURABLE_PATH_BYTES], struct vxd_err *err)
{
    const struct vxd_file_ops *ops = repair->dir.ops;
    char wal[VXD_DURABLE_PATH_BYTES];
    char to_wal[VXD_DURABLE_PATH_BYTES];
    int result;

    for (int i = 1; i <= MAX_ASIDE; i++) {
        int file;

        (void)snprintf(to, VXD_DURABLE_PATH_BYTES, "%s/voxeld.db.damaged.%d",
                       repair->dir.path, i);
        file = ops->open(ops->user, to, O_RDONLY, 0);
        if (file < 0) {
            break;
        }
        (void)ops->close(ops->user, file);
    }
    /* The WAL first: a database without it would be taken for whole. */
    (void)snprintf(wal, sizeof wal, "%.600s-wal", path);
    (void)snprintf(to_wal, sizeof to_wal, "%.600s-wal", to);
    result = ops->rename(ops->user, wal, to_wal);
    if (result != 0 && result != -ENOENT) {
        return vxd_file_fail(err, result, "rename", wal);
    }
    result = ops->rename(ops->user, path, to);
    if (result != 0) {
        return vxd_file_fail(err, result, "rename", path);
    }
    return vxd_file_sync_directory(ops, repair->dir.path, err);
}

static enum vxd_status salvage(struct vxd_repair *repair, const char *path,
                               const char *why, struct vxd_err *err)
{
    char aside[VXD_DURABLE_PATH_BYTES];
    sqlite3 *damaged = NULL;
    bool is_new;
    enum vxd_status status;

    (void)sqlite3_close(repair->db);
    repair->db = NULL;
    VXD_TRY(set_aside(repair, path, aside, err));
    vxd_repair_say(repair, VXD_PROBLEM_SPARE, "voxeld.db", "%.150s; renamed to %.60s",
                   why, strrchr(aside, '/') + 1);
    VXD_TRY(vxd_journal_make(&repair->dir, &is_new, err));
    VXD_TRY(vxd_journal_connect(repair->dir.ops, path, false, &repair->db, err));
    if (vxd_journal_connect(repair->dir.ops, aside, true, &damaged, NULL) == VXD_OK) {
        VXD_TRY(vxd_journal_execute(repair->db, "BEGIN", err));
        copy_all(repair, damaged);
        VXD_TRY(vxd_journal_execute(repair->db, "COMMIT", err));
    } else {
        vxd_repair_say(repair, VXD_PROBLEM_LOSS, "voxeld.db",
                       "nothing can be read of it; scenes come back from their snapshot "
                       "files");
    }
    repair->is_salvaged = true;
out:
    (void)sqlite3_close(damaged);
    return status;
}

enum vxd_status vxd_repair_open(struct vxd_repair *repair, struct vxd_err *err)
{
    char path[VXD_DURABLE_PATH_BYTES];
    struct vxd_err why = {0};
    bool is_new = false;
    enum vxd_status status;

    (void)snprintf(path, sizeof path, "%s/voxeld.db", repair->dir.path);
    VXD_TRY(vxd_journal_make(&repair->dir, &is_new, err));
    if (is_new) {
        repair->is_salvaged = true;
        vxd_repair_say(repair, VXD_PROBLEM_LOSS, "voxeld.db",
                       "it was missing; scenes come back from their snapshot files");
    }
    status = vxd_journal_connect(repair->dir.ops, path, false, &repair->db, &why);
    if (status == VXD_OK) {
        status = check_whole(repair, &why);
    }
    if (status == VXD_DATA_LOSS) {
        status = salvage(repair, path, why.message, err);
    } else if (status != VXD_OK) {
        *err = why;
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
