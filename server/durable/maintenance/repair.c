// SPDX-License-Identifier: Apache-2.0
#include "server/durable/maintenance/repair.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "server/durable/record/record.h"
#include "server/durable/maintenance/repair_internal.h"
#include "server/durable/snapshot/snapshot.h"

#define MAX_JOURNAL_BYTES ((int64_t)256 << 20) /* of families whose own number is gone */

void vxd_repair_say(struct vxd_repair *repair, enum vxd_problem_weight weight,
                    const char *where, const char *format, ...)
{
    struct vxd_problem problem = {.weight = weight};
    va_list args;

    (void)snprintf(problem.where, sizeof problem.where, "%s", where);
    va_start(args, format);
    (void)vsnprintf(problem.message, sizeof problem.message, format, args);
    va_end(args);
    repair->result->n_set_aside += weight == VXD_PROBLEM_SPARE;
    repair->result->n_lost += weight == VXD_PROBLEM_LOSS;
    if (repair->said != NULL) {
        repair->said(repair->user, &problem);
    }
}

enum vxd_status vxd_repair_run(struct vxd_repair *repair, const char *sql,
                               int64_t argument, int64_t *out, struct vxd_err *err)
{
    sqlite3_stmt *row = NULL;
    int result = sqlite3_prepare_v2(repair->db, sql, -1, &row, NULL);

    if (result == SQLITE_OK) {
        (void)sqlite3_bind_int64(row, 1, argument);
        result = sqlite3_step(row);
    }
    if (out != NULL) {
        *out = result == SQLITE_ROW ? sqlite3_column_int64(row, 0) : 0;
    }
    (void)sqlite3_finalize(row);
    return result == SQLITE_ROW || result == SQLITE_DONE
               ? VXD_OK
               : vxd_database_fail(err, repair->db, result, "mend it");
}

/* Families ---------------------------------------------------------------------------------- */

/* What is known of one whose row is damaged or gone. */
struct broken {
    struct vxd_journal_family family; /* spec is not used */
    bool is_row_good;                 /* all but the journal's own columns */
    char fault[120];
};

struct broken_list {
    struct broken *all;
    size_t n;
    size_t capacity;
};

static bool add_broken(struct broken_list *list, const struct broken *broken)
{
    for (size_t i = 0; i < list->n; i++) {
        if (list->all[i].family.id == broken->family.id) {
            return true;
        }
    }
    if (list->n == list->capacity) {
        size_t capacity = 2 * list->capacity + 16;
        struct broken *all = realloc(list->all, capacity * sizeof *all);

        if (all == NULL) {
            return false;
        }
        list->all = all;
        list->capacity = capacity;
    }
    list->all[list->n++] = *broken;
    return true;
}

static enum vxd_status no_memory(struct vxd_err *err)
{
    return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for families");
}

static enum vxd_status find_damaged(struct vxd_repair *repair, struct broken_list *list,
                                    struct vxd_err *err)
{
    sqlite3_stmt *row = NULL;
    int result = sqlite3_prepare_v2(
        repair->db, "SELECT " VXD_FAMILY_COLUMNS " FROM families ORDER BY id", -1, &row,
        NULL);
    enum vxd_status status = VXD_OK;

    while (result == SQLITE_OK && (result = sqlite3_step(row)) == SQLITE_ROW) {
        struct broken broken = {0};
        struct vxd_family_state state;
        const char *fault = vxd_database_row_family(row, &broken.family, &state);

        result = SQLITE_OK;
        if (fault == NULL) {
            continue;
        }
        (void)snprintf(broken.fault, sizeof broken.fault, "%s", fault);
        broken.is_row_good =
            broken.family.id != 0 && (uint64_t)sqlite3_column_int64(row, 6) ==
                                         vxd_database_family_crc(&broken.family);
        broken.family.id = (uint32_t)sqlite3_column_int64(row, 0);
        broken.family.spec = NULL;
        if (!add_broken(list, &broken)) {
            status = no_memory(err);
            break;
        }
    }
    (void)sqlite3_finalize(row);
    if (status == VXD_OK && result != SQLITE_DONE) {
        status = vxd_database_fail(err, repair->db, result, "read the catalogue");
    }
    return status;
}

struct missing {
    struct vxd_repair *repair;
    struct broken_list *list;
    bool is_out_of_memory;
};

/* Families of which the salvaged database has records and no row. */
static enum vxd_status find_orphans(struct vxd_repair *repair, struct broken_list *list,
                                    struct vxd_err *err)
{
    sqlite3_stmt *row = NULL;
    int result = sqlite3_prepare_v2(
        repair->db,
        "SELECT DISTINCT id >> 40 FROM records WHERE id >> 40 BETWEEN 1 AND ?1 AND"
        " id >> 40 NOT IN (SELECT id FROM families) AND"
        " id >> 40 NOT IN (SELECT family FROM dropped)",
        -1, &row, NULL);
    enum vxd_status status = VXD_OK;

    (void)sqlite3_bind_int64(row, 1, VXD_JOURNAL_MAX_FAMILY);
    while (result == SQLITE_OK && (result = sqlite3_step(row)) == SQLITE_ROW) {
        struct broken broken = {.fault = "its row is gone"};

        result = SQLITE_OK;
        broken.family.id = (uint32_t)sqlite3_column_int64(row, 0);
        if (!add_broken(list, &broken)) {
            status = no_memory(err);
            break;
        }
    }
    (void)sqlite3_finalize(row);
    if (status == VXD_OK && result != SQLITE_DONE) {
        status = vxd_database_fail(err, repair->db, result, "read the records");
    }
    return status;
}

/* A file of a family that the salvaged catalogue has not, nor has it been dropped. */
static void find_missing(void *arg, const char *name)
{
    struct missing *missing = arg;
    struct broken broken = {.fault = "its row is gone"};
    uint64_t sequence;
    int64_t is_there = 1;

    if (vxd_snapshot_parse_name(name, &broken.family.id, &sequence) &&
        broken.family.id >= 1 && broken.family.id <= VXD_JOURNAL_MAX_FAMILY &&
        vxd_repair_run(missing->repair,
                       "SELECT EXISTS(SELECT 1 FROM families WHERE id = ?1) OR"
                       " EXISTS(SELECT 1 FROM dropped WHERE family = ?1)",
                       broken.family.id, &is_there, NULL) == VXD_OK &&
        is_there == 0 && !add_broken(missing->list, &broken)) {
        missing->is_out_of_memory = true;
    }
}

/* Of one whose own name is gone, or taken. What comes before the ':' of `from` stays, since it says
 * what the family is of. */
static void name_family(struct vxd_journal_family *family, const char *from)
{
    const char *colon = strchr(from, ':');
    int n_prefix = colon != NULL && colon - from < 32 ? (int)(colon - from) + 1 : 0;
    char name[VXD_JOURNAL_NAME_BYTES];

    (void)snprintf(name, sizeof name, "%.*sfamily-%u", n_prefix, from, family->id);
    memcpy(family->name, name, sizeof name);
}

/* A family of a kind that nobody knows is refused by a start, which otherwise would cut it. */
static const char *find_prefix(uint32_t rules_version)
{
    const struct vxd_record_owner *owner = vxd_record_find_owner(rules_version);

    return owner != NULL ? owner->prefix : "unknown:";
}

/* A name that another family has is not taken away from it. */
static enum vxd_status insert_row(struct vxd_repair *repair,
                                  struct vxd_journal_family *family, struct vxd_err *err)
{
    sqlite3_stmt *statement = NULL;
    int result = sqlite3_prepare_v2(
        repair->db,
        "INSERT INTO families(id, name, fsync, max_bytes, epoch, spec, crc)"
        " VALUES(?1, ?2, ?3, ?4, ?5, x'', ?6)",
        -1, &statement, NULL);

    for (int i = 0; i < 2 && result == SQLITE_OK; i++) {
        if (i > 0) {
            name_family(family, family->name);
        }
        (void)sqlite3_bind_int64(statement, 1, family->id);
        (void)sqlite3_bind_text(statement, 2, family->name, -1, SQLITE_STATIC);
        (void)sqlite3_bind_int64(statement, 3, (int64_t)family->fsync);
        (void)sqlite3_bind_int64(statement, 4, (int64_t)family->max_bytes);
        (void)sqlite3_bind_int64(statement, 5, (int64_t)family->epoch);
        (void)sqlite3_bind_int64(statement, 6, vxd_database_family_crc(family));
        result = sqlite3_step(statement);
        (void)sqlite3_reset(statement);
        result = (result & 255) == SQLITE_CONSTRAINT ? SQLITE_OK : result;
    }
    (void)sqlite3_finalize(statement);
    return result == SQLITE_DONE
               ? VXD_OK
               : vxd_database_fail(err, repair->db, result, "write a family");
}

/* A row as good as it can be made: the journal's own columns are counted anew. */
static enum vxd_status put_row(struct vxd_repair *repair, const struct broken *broken,
                               struct vxd_journal_family *family,
                               struct vxd_family_state *state, struct vxd_err *err)
{
    sqlite3_stmt *statement = NULL;
    int64_t last;
    int64_t n_bytes;
    int result;
    enum vxd_status status;

    VXD_TRY(vxd_repair_run(repair,
                           "SELECT max(id) & 1099511627775 FROM records WHERE id BETWEEN"
                           " ?1 << 40 AND (?1 << 40) + 1099511627775",
                           family->id, &last, err));
    VXD_TRY(vxd_repair_run(repair,
                           "SELECT sum(n_bytes) FROM records WHERE id BETWEEN"
                           " ?1 << 40 AND (?1 << 40) + 1099511627775",
                           family->id, &n_bytes, err));
    if ((uint64_t)last > state->last_sequence) {
        state->last_sequence = (uint64_t)last;
    }
    state->journal_bytes = (uint64_t)n_bytes;
    state->open_tail = true;
    if (!broken->is_row_good) {
        VXD_TRY(insert_row(repair, family, err));
    }
    result = sqlite3_prepare_v2(
        repair->db,
        "UPDATE families SET last_sequence = ?2, snapshot_sequence = ?3, kept_from = 0,"
        " journal_bytes = ?4, open_tail = 1, state_crc = ?5 WHERE id = ?1",
        -1, &statement, NULL);
    (void)sqlite3_bind_int64(statement, 1, family->id);
    (void)sqlite3_bind_int64(statement, 2, (int64_t)state->last_sequence);
    (void)sqlite3_bind_int64(statement, 3, (int64_t)state->snapshot_sequence);
    (void)sqlite3_bind_int64(statement, 4, (int64_t)state->journal_bytes);
    (void)sqlite3_bind_int64(statement, 5, vxd_database_state_crc(family->id, state));
    result = result == SQLITE_OK ? sqlite3_step(statement) : result;
    (void)sqlite3_finalize(statement);
    if (result != SQLITE_DONE) {
        VXD_TRY(vxd_database_fail(err, repair->db, result, "write a family"));
    }
out:
    return status;
}

static enum vxd_status mend_family(struct vxd_repair *repair, const struct broken *broken,
                                   struct vxd_err *err)
{
    struct vxd_journal_family family = broken->family;
    struct vxd_family_state state = {.exists = true};
    struct vxd_snapshot_head head = {0};
    uint32_t id = family.id;
    int64_t n_records = 0;
    int64_t rules = 0;
    struct vxd_err unknown;
    bool has_file = vxd_repair_check_files(repair, id, &head, &unknown);
    char where[80];
    enum vxd_status status;

    if (unknown.code != VXD_OK) {
        /* Without its row a start would take that file for one of a family that was dropped. */
        *err = unknown;
        return unknown.code;
    }
    (void)snprintf(where, sizeof where, "voxeld.db, family %u", id);
    VXD_TRY(vxd_repair_run(repair,
                           "INSERT INTO quarantine_families SELECT * FROM families"
                           " WHERE id = ?1",
                           id, NULL, err));
    VXD_TRY(vxd_repair_run(repair,
                           "SELECT count(*) FROM records WHERE id BETWEEN ?1 << 40 AND"
                           " (?1 << 40) + 1099511627775",
                           id, &n_records, err));
    if (id < 1 || id > VXD_JOURNAL_MAX_FAMILY || (!has_file && n_records == 0)) {
        VXD_TRY(
            vxd_repair_run(repair, "DELETE FROM families WHERE id = ?1", id, NULL, err));
        vxd_repair_say(repair, VXD_PROBLEM_LOSS, where,
                       "%s, and there is no snapshot or record of it", broken->fault);
        return VXD_OK;
    }
    if (!broken->is_row_good) {
        family.fsync = VXD_FSYNC_ALWAYS;
        family.max_bytes = (uint64_t)MAX_JOURNAL_BYTES;
        family.epoch = has_file ? head.epoch : 1;
        family.spec = "";
        family.n_spec_bytes = 0;
        VXD_TRY(
            vxd_repair_run(repair, "DELETE FROM families WHERE id = ?1", id, NULL, err));
    }
    if (!broken->is_row_good && has_file) {
        (void)snprintf(family.name, sizeof family.name, "%s", head.name);
    }
    if (family.name[0] == '\0') {
        VXD_TRY(vxd_repair_run(repair,
                               "SELECT max(rules) FROM records WHERE id BETWEEN ?1 << 40"
                               " AND (?1 << 40) + 1099511627775",
                               id, &rules, err));
        name_family(&family, find_prefix((uint32_t)rules));
    }
    state.last_sequence = has_file ? head.sequence : 0;
    state.snapshot_sequence = state.last_sequence;
    VXD_TRY(put_row(repair, broken, &family, &state, err));
    repair->result->n_mended++;
    vxd_repair_say(repair, VXD_PROBLEM_NOTE, where,
                   "%s; made anew as %.63s, at %llu, from %s and %lld records",
                   broken->fault, family.name, (unsigned long long)state.last_sequence,
                   has_file ? "a snapshot file" : "no snapshot file",
                   (long long)n_records);
out:
    return status;
}

static enum vxd_status mend_families(struct vxd_repair *repair, bool *has_broken,
                                     struct vxd_err *err)
{
    struct broken_list list = {0};
    struct missing missing = {.repair = repair, .list = &list};
    char folder[VXD_DURABLE_PATH_BYTES];
    int64_t n_strange = 0;
    enum vxd_status status;

    VXD_TRY(vxd_repair_strange_families(repair, &n_strange, err));
    VXD_TRY(find_damaged(repair, &list, err));
    if (repair->is_salvaged) {
        VXD_TRY(find_orphans(repair, &list, err));
        (void)snprintf(folder, sizeof folder, "%s/snapshots", repair->dir.path);
        (void)repair->dir.ops->list(repair->dir.ops->user, folder, find_missing,
                                    &missing);
        if (missing.is_out_of_memory) {
            VXD_TRY(no_memory(err));
        }
    }
    for (size_t i = 0; i < list.n; i++) {
        VXD_TRY(mend_family(repair, &list.all[i], err));
    }
    *has_broken = list.n > 0 || n_strange > 0;
out:
    free(list.all);
    return status;
}

/* Rows that are by themselves --------------------------------------------------------------- */

/* Damaged items, or replies, into their table of quarantine; how many, but for ages, without which
 * nothing is lost. */
static enum vxd_status quarantine(struct vxd_repair *repair, bool are_items, size_t *n,
                                  struct vxd_err *err)
{
    static const char *const selects[] = {"SELECT " VXD_REPLY_COLUMNS " FROM replies",
                                          "SELECT " VXD_ITEM_COLUMNS " FROM items"};
    static const char *const puts[] = {
        "INSERT INTO quarantine_replies SELECT * FROM replies WHERE client = ?1 AND"
        " sequence = ?2",
        "INSERT INTO quarantine_items SELECT * FROM items WHERE family = ?1 AND kind = ?2"
        " AND name = ?3"};
    sqlite3_stmt *row = NULL;
    sqlite3_stmt *put = NULL;
    int result = sqlite3_prepare_v2(repair->db, selects[are_items], -1, &row, NULL);

    if (result == SQLITE_OK) {
        result = sqlite3_prepare_v2(repair->db, puts[are_items], -1, &put, NULL);
    }
    while (result == SQLITE_OK && (result = sqlite3_step(row)) == SQLITE_ROW) {
        enum vxd_journal_item_kind kind;
        struct vxd_journal_item item = {0};
        struct vxd_journal_reply reply;
        const char *fault = are_items ? vxd_database_row_item(row, &kind, &item)
                                      : vxd_database_row_reply(row, &reply);

        result = SQLITE_OK;
        if (fault == NULL) {
            continue;
        }
        for (int i = 0; i < (are_items ? 3 : 2); i++) {
            (void)sqlite3_bind_value(put, i + 1, sqlite3_column_value(row, i));
        }
        if (sqlite3_step(put) != SQLITE_DONE) {
            result = SQLITE_ERROR;
        }
        (void)sqlite3_reset(put);
        if (are_items && vxd_database_was_ages(row, kind, &item)) {
            vxd_repair_say(repair, VXD_PROBLEM_SPARE, "voxeld.db, items",
                           "%s: the ages of versions of family %u begin anew", fault,
                           item.family);
            continue;
        }
        (*n)++;
        if (are_items) {
            vxd_repair_say(repair, VXD_PROBLEM_LOSS, "voxeld.db, items",
                           "%s: a named snapshot of family %u is forgotten", fault,
                           item.family);
        } else {
            vxd_repair_say(repair, VXD_PROBLEM_SPARE, "voxeld.db, replies",
                           "%s: its request may be done twice", fault);
        }
    }
    (void)sqlite3_finalize(row);
    (void)sqlite3_finalize(put);
    return result == SQLITE_DONE
               ? VXD_OK
               : vxd_database_fail(err, repair->db, result, "set rows aside");
}

static enum vxd_status mend_rows(struct vxd_repair *repair, size_t *n_items,
                                 struct vxd_err *err)
{
    size_t n_replies = 0;
    enum vxd_status status;

    VXD_TRY(quarantine(repair, true, n_items, err));
    VXD_TRY(quarantine(repair, false, &n_replies, err));
    VXD_TRY(vxd_database_execute(
        repair->db,
        "DELETE FROM items WHERE EXISTS(SELECT 1 FROM quarantine_items q WHERE"
        " q.family = items.family AND q.kind = items.kind AND q.name = items.name AND"
        " q.crc = items.crc AND q.bytes = items.bytes);"
        "DELETE FROM replies WHERE EXISTS(SELECT 1 FROM quarantine_replies q WHERE"
        " q.client = replies.client AND q.sequence = replies.sequence AND"
        " q.crc = replies.crc AND q.bytes = replies.bytes)",
        err));
out:
    return status;
}

static enum vxd_status mend_meta(struct vxd_repair *repair, bool may_have_lost,
                                 struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(vxd_database_execute(
        repair->db,
        "INSERT OR REPLACE INTO meta SELECT 'epoch', max(1, coalesce((SELECT value FROM "
        "meta"
        " WHERE key = 'epoch'), 1), coalesce((SELECT max(epoch) FROM families), 1));"
        "INSERT OR REPLACE INTO meta SELECT 'next_family', min(4194304, max(1,"
        " coalesce((SELECT value FROM meta WHERE key = 'next_family'), 1),"
        " coalesce((SELECT max(id) + 1 FROM families), 1),"
        " coalesce((SELECT (max(id) >> 40) + 1 FROM records), 1)));"
        "INSERT OR REPLACE INTO meta SELECT 'secret', randomblob(32) WHERE NOT EXISTS("
        "SELECT 1 FROM meta WHERE key = 'secret' AND typeof(value) = 'blob' AND"
        " length(value) = 32)",
        err));
    if (may_have_lost) {
        VXD_TRY(vxd_database_execute(
            repair->db, "INSERT OR REPLACE INTO meta VALUES('restored', 1)", err));
    }
out:
    return status;
}

/* All families' files, also of those whose rows are good. */
static enum vxd_status check_all_files(struct vxd_repair *repair, struct vxd_err *err)
{
    sqlite3_stmt *row = NULL;
    int result = sqlite3_prepare_v2(repair->db, "SELECT id FROM families ORDER BY id", -1,
                                    &row, NULL);

    while (result == SQLITE_OK && (result = sqlite3_step(row)) == SQLITE_ROW) {
        struct vxd_snapshot_head head;
        struct vxd_err unknown; /* the start judges it */

        (void)vxd_repair_check_files(repair, (uint32_t)sqlite3_column_int64(row, 0),
                                     &head, &unknown);
        result = SQLITE_OK;
    }
    (void)sqlite3_finalize(row);
    return result == SQLITE_DONE
               ? VXD_OK
               : vxd_database_fail(err, repair->db, result, "read the catalogue");
}

/* The mark --------------------------------------------------------------------------------- */

/* False where the database has a mark that is missing or damaged. What is behind a mark that is
 * whole, the next start finds by itself. */
static enum vxd_status find_mark(struct vxd_repair *repair, bool *has_mark,
                                 struct vxd_err *err)
{
    struct vxd_err fault = {0};
    struct vxd_mark mark;
    uint64_t is_marked;
    enum vxd_status status;

    VXD_TRY(vxd_database_get_meta(repair->db, "marked", &is_marked, err));
    status = vxd_mark_open(repair->dir.ops, repair->dir.path, true, &mark, &fault);
    *has_mark = status == VXD_OK || (status == VXD_NOT_FOUND && is_marked == 0);
    if (status != VXD_OK && status != VXD_NOT_FOUND && status != VXD_DATA_LOSS) {
        return vxd_fail(err, status, fault.field, "%s", fault.message);
    }
    status = VXD_OK;
out:
    return status;
}

/* What the database has is taken for all that there was. */
static enum vxd_status make_mark(struct vxd_repair *repair, struct vxd_err *err)
{
    struct vxd_mark mark = {.file = -1};
    enum vxd_status status;

    VXD_TRY(vxd_database_get_meta(repair->db, "epoch", &mark.generation, err));
    VXD_TRY(vxd_database_get_meta(repair->db, "sequence", &mark.written, err));
    mark.synced = mark.written;
    VXD_TRY(vxd_mark_make(repair->dir.ops, repair->dir.path, &mark, err));
    VXD_TRY(vxd_file_sync_directory(repair->dir.ops, repair->dir.path, err));
    vxd_repair_say(repair, VXD_PROBLEM_NOTE, "voxeld.mark",
                   "made anew: whether the journal has lost changes is not known");
out:
    return status;
}

static enum vxd_status mend(struct vxd_repair *repair, struct vxd_err *err)
{
    bool has_broken = false;
    bool has_mark = false;
    size_t n_items = 0;
    enum vxd_status status;

    VXD_TRY(vxd_database_execute(
        repair->db,
        "BEGIN IMMEDIATE;"
        "CREATE TABLE IF NOT EXISTS quarantine_families AS SELECT * FROM families WHERE "
        "0;"
        "CREATE TABLE IF NOT EXISTS quarantine_items AS SELECT * FROM items WHERE 0;"
        "CREATE TABLE IF NOT EXISTS quarantine_replies AS SELECT * FROM replies WHERE 0",
        err));
    VXD_TRY(mend_families(repair, &has_broken, err));
    VXD_TRY(mend_rows(repair, &n_items, err));
    VXD_TRY(find_mark(repair, &has_mark, err));
    VXD_TRY(mend_meta(
        repair, repair->is_salvaged || has_broken || n_items > 0 || !has_mark, err));
    VXD_TRY(vxd_database_execute(repair->db, "COMMIT", err));
    if (!has_mark) {
        VXD_TRY(make_mark(repair, err));
    }
    VXD_TRY(check_all_files(repair, err));
out:
    return status;
}

/* Something of ours, so that no directory is made of what is none. */
static enum vxd_status find_directory(const struct vxd_file_ops *ops, const char *path,
                                      struct vxd_err *err)
{
    static const char *const names[] = {"voxeld.db", "lock", "voxeld.mark"};
    char name[VXD_DURABLE_PATH_BYTES];

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        int file;

        (void)snprintf(name, sizeof name, "%.512s/%s", path, names[i]);
        file = ops->open(ops->user, name, O_RDONLY, 0);
        if (file >= 0) {
            (void)ops->close(ops->user, file);
            return VXD_OK;
        }
    }
    return vxd_fail(err, VXD_NOT_FOUND, "data_dir", "%.200s is no data directory", path);
}

enum vxd_status
vxd_repair_data_dir(const struct vxd_file_ops *ops, const char *path,
                    void (*said)(void *user, const struct vxd_problem *problem),
                    void *user, struct vxd_repair_result *out, struct vxd_err *err)
{
    struct vxd_repair repair = {
        .dir = {.lock = -1}, .said = said, .user = user, .result = out};
    struct vxd_err own = {0};
    enum vxd_status status;

    *out = (struct vxd_repair_result){0};
    err = err != NULL ? err : &own;
    VXD_TRY(find_directory(ops != NULL ? ops : vxd_file_ops_system(), path, err));
    VXD_TRY(vxd_data_dir_open(ops, path, &repair.dir, err));
    VXD_TRY(vxd_repair_open(&repair, err));
    VXD_TRY(mend(&repair, err));
    VXD_TRY(vxd_repair_close(&repair, err));
out:
    (void)sqlite3_close(repair.db);
    vxd_data_dir_close(&repair.dir);
    return status;
}
