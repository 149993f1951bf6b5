// SPDX-License-Identifier: Apache-2.0
/* The backup is copied, opened as a journal, and goes on with what the archive has. Its snapshots
 * may be newer than its database and than the target; those go. */
#include "server/durable/maintenance/restore.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "server/durable/maintenance/copy_files.h"
#include "server/durable/maintenance/restore_internal.h"
#include "server/durable/snapshot/snapshot.h"

struct restore {
    const struct vxd_file_ops *ops;
    const char *from;
    char to[VXD_DATA_DIR_BYTES];   /* what it will be called, */
    char made[VXD_DATA_DIR_BYTES]; /* and what it is called until it is whole */
    uint64_t line;
    uint64_t next;
    int64_t unix_ns; /* of the backup's last change */
    struct vxd_data_dir dir;
    struct vxd_journal *journal;
    struct vxd_err *err;
    enum vxd_status status; /* of call backs */
};

/* What to restore until ---------------------------------------------------------------------- */

static bool read_digits(const char **at, int n_digits, int low, int high, char end,
                        int *out)
{
    *out = 0;
    for (int i = 0; i < n_digits; i++, ++*at) {
        if (**at < '0' || **at > '9') {
            return false;
        }
        *out = 10 * *out + (**at - '0');
    }
    if (*out < low || *out > high || (end != '\0' && **at != end)) {
        return false;
    }
    *at += end != '\0';
    return true;
}

/* Days from 1970 to a date of the Gregorian calendar. */
static int64_t days_to(int year, int month, int day)
{
    static const int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
    bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    int64_t past = year - 1; /* whole years */

    return 365 * past + past / 4 - past / 100 + past / 400 - 719162 + before[month - 1] +
           (is_leap && month > 2) + day - 1;
}

static bool parse_time(const char *text, int64_t *unix_ns)
{
    int year, month, day, hour, minute, second;
    int64_t unit = 100000000;
    int64_t ns = 0;

    if (!read_digits(&text, 4, 1970, 2200, '-', &year) ||
        !read_digits(&text, 2, 1, 12, '-', &month) ||
        !read_digits(&text, 2, 1, 31, 'T', &day) ||
        !read_digits(&text, 2, 0, 23, ':', &hour) ||
        !read_digits(&text, 2, 0, 59, ':', &minute) ||
        !read_digits(&text, 2, 0, 60, '\0', &second)) {
        return false;
    }
    if (*text == '.') {
        for (text++; *text >= '0' && *text <= '9' && unit > 0; text++, unit /= 10) {
            ns += (*text - '0') * unit;
        }
    }
    *unix_ns = (((days_to(year, month, day) * 24 + hour) * 60 + minute) * 60 + second) *
                   INT64_C(1000000000) +
               ns;
    return strcmp(text, "Z") == 0;
}

static bool parse_version(const char *text, struct vxd_restore_target *out)
{
    const char *sign = strrchr(text, '@');
    size_t n = sign != NULL ? (size_t)(sign - text) : 0;
    size_t n_digits = sign != NULL ? strlen(sign + 1) : 0;

    if (n == 0 || n >= sizeof out->scene || n_digits < 1 || n_digits > 18 ||
        strspn(sign + 1, "0123456789") != n_digits) {
        return false;
    }
    memcpy(out->scene, text, n);
    out->scene[n] = '\0';
    out->version = strtoull(sign + 1, NULL, 10);
    return vxd_is_name(out->scene);
}

enum vxd_status vxd_restore_parse(const char *text, struct vxd_restore_target *out,
                                  struct vxd_err *err)
{
    *out = (struct vxd_restore_target){.until = VXD_RESTORE_END};
    if (strcmp(text, "end") == 0) {
        return VXD_OK;
    }
    if (parse_time(text, &out->unix_ns)) {
        out->until = VXD_RESTORE_TIME;
        return VXD_OK;
    }
    if (parse_version(text, out)) {
        out->until = VXD_RESTORE_VERSION;
        return VXD_OK;
    }
    return vxd_fail(err, VXD_INVALID_ARGUMENT, "until",
                    "\"%.100s\" must be a time in UTC (2026-11-27T10:15:00Z, with a "
                    "fraction of a second where that matters), SCENE@VERSION, or end",
                    text);
}

/* The copy ----------------------------------------------------------------------------------- */

static enum vxd_status check_backup(struct restore *restore,
                                    const struct vxd_restore_target *target)
{
    char path[VXD_DURABLE_PATH_BYTES];
    sqlite3 *db = NULL;
    uint64_t restored = 0;
    uint64_t sequence = 0;
    uint64_t spooled = 0;
    uint64_t unix_ns = 0;
    int file;
    enum vxd_status status;

    (void)snprintf(path, sizeof path, "%s/voxeld.db", restore->from);
    file = restore->ops->open(restore->ops->user, path, O_RDONLY, 0);
    if (file < 0) {
        return vxd_file_fail(restore->err, file, "open", path);
    }
    (void)restore->ops->close(restore->ops->user, file);
    VXD_TRY(vxd_database_connect(restore->ops, path, true, &db, restore->err));
    VXD_TRY(vxd_database_check_tables(db, restore->err));
    VXD_TRY(vxd_database_get_meta(db, "restored", &restored, restore->err));
    VXD_TRY(vxd_database_get_meta(db, "sequence", &sequence, restore->err));
    VXD_TRY(vxd_database_get_meta(db, "archive_line", &restore->line, restore->err));
    VXD_TRY(vxd_database_get_meta(db, "archive_next", &restore->next, restore->err));
    VXD_TRY(vxd_database_get_meta(db, "archive_sequence", &spooled, restore->err));
    VXD_TRY(vxd_database_get_meta(db, "archive_unix_ns", &unix_ns, restore->err));
    restore->unix_ns = (int64_t)unix_ns;
    if (restored != 1) {
        VXD_TRY(vxd_fail(restore->err, VXD_FAILED_PRECONDITION, "backup",
                         "%.150s is no backup, or a daemon has run in it",
                         restore->from));
    }
    if (restore->line == 0 || spooled != sequence) {
        VXD_TRY(vxd_fail(restore->err, VXD_FAILED_PRECONDITION, "backup",
                         "%.150s was made by a daemon without archive_dir",
                         restore->from));
    }
    if (target->until == VXD_RESTORE_TIME && target->unix_ns < restore->unix_ns) {
        VXD_TRY(vxd_fail(restore->err, VXD_FAILED_PRECONDITION, "until",
                         "%.120s is newer than that: take an older backup",
                         restore->from));
    }
out:
    (void)sqlite3_close(db);
    return status;
}

/* What the backup's spool has is in the archive, or is not needed; the copy begins a line of its
 * own when a daemon with an archive runs on it. */
static enum vxd_status empty_spool(struct restore *restore)
{
    char path[VXD_DURABLE_PATH_BYTES];
    sqlite3 *db = NULL;
    enum vxd_status status;

    (void)snprintf(path, sizeof path, "%s/voxeld.db", restore->made);
    VXD_TRY(vxd_database_connect(restore->ops, path, false, &db, restore->err));
    VXD_TRY(vxd_database_execute(db,
                                 "DROP TABLE IF EXISTS archive;"
                                 "UPDATE meta SET value = 0 WHERE key = 'archive_line'",
                                 restore->err));
out:
    (void)sqlite3_close(db);
    return status;
}

struct folder {
    struct restore *restore;
    const char *name;
};

static void copy_entry(void *arg, const char *name)
{
    const struct folder *folder = arg;
    struct restore *restore = folder->restore;
    char from[2 * VXD_DURABLE_PATH_BYTES];
    char to[2 * VXD_DURABLE_PATH_BYTES];
    bool is_linked;

    if (restore->status != VXD_OK) {
        return;
    }
    (void)snprintf(from, sizeof from, "%s/%s/%s", restore->from, folder->name, name);
    (void)snprintf(to, sizeof to, "%s/%s/%s", restore->made, folder->name, name);
    restore->status = vxd_link_file(restore->ops, from, to, &is_linked, restore->err);
}

static void ignore_entry(void *arg, const char *name)
{
    (void)arg;
    (void)name;
}

static enum vxd_status copy_folder(struct restore *restore, const char *name)
{
    const struct vxd_file_ops *ops = restore->ops;
    struct folder folder = {.restore = restore, .name = name};
    char from[VXD_DURABLE_PATH_BYTES];
    char to[VXD_DURABLE_PATH_BYTES];
    int result;

    (void)snprintf(from, sizeof from, "%s/%s", restore->from, name);
    (void)snprintf(to, sizeof to, "%s/%s", restore->made, name);
    if (ops->list(ops->user, from, ignore_entry, NULL) == -ENOENT) {
        return VXD_OK;
    }
    result = ops->make_directory(ops->user, to, 0700);
    if (result != 0) {
        return vxd_file_fail(restore->err, result, "make", to);
    }
    result = ops->list(ops->user, from, copy_entry, &folder);
    return result != 0 ? vxd_file_fail(restore->err, result, "read", from)
                       : restore->status;
}

static enum vxd_status copy_top(struct restore *restore, const char *name)
{
    char from[VXD_DURABLE_PATH_BYTES];
    char to[VXD_DURABLE_PATH_BYTES];

    (void)snprintf(from, sizeof from, "%s/%s", restore->from, name);
    (void)snprintf(to, sizeof to, "%s/%s", restore->made, name);
    return vxd_copy_file(restore->ops, from, to, restore->err);
}

static enum vxd_status copy_backup(struct restore *restore)
{
    enum vxd_status status;

    VXD_TRY(copy_top(restore, "voxeld.db"));
    VXD_TRY(copy_top(restore, "voxeld.mark"));
    VXD_TRY(copy_folder(restore, "snapshots"));
    VXD_TRY(copy_folder(restore, "maps"));
    status = copy_top(restore, "networks");
    if (status != VXD_NOT_FOUND) { /* else no call has loaded one */
        VXD_TRY(status);
    }
    VXD_TRY(empty_spool(restore));
out:
    return status;
}

/* Snapshots ---------------------------------------------------------------------------------- */

/* A snapshot of what is not in the journal would bring it back. */
static void drop_newer(void *arg, const char *name)
{
    struct restore *restore = arg;
    struct vxd_journal_state state = {0};
    char path[2 * VXD_DURABLE_PATH_BYTES];
    uint32_t family;
    uint64_t sequence;
    int result;

    if (restore->status != VXD_OK || !vxd_snapshot_parse_name(name, &family, &sequence)) {
        return;
    }
    if (vxd_journal_get_state(restore->journal, family, &state, NULL) == VXD_OK &&
        sequence <= state.last_sequence) {
        return;
    }
    (void)snprintf(path, sizeof path, "%s/snapshots/%s", restore->made, name);
    result = restore->ops->unlink(restore->ops->user, path);
    if (result != 0) {
        restore->status = vxd_file_fail(restore->err, result, "remove", path);
    }
}

static enum vxd_status drop_newer_snapshots(struct restore *restore)
{
    char folder[VXD_DURABLE_PATH_BYTES];
    int result;

    (void)snprintf(folder, sizeof folder, "%s/snapshots", restore->made);
    result = restore->ops->list(restore->ops->user, folder, drop_newer, restore);
    return result != 0 ? vxd_file_fail(restore->err, result, "read", folder)
                       : restore->status;
}

/* The whole ---------------------------------------------------------------------------------- */

static enum vxd_status fill(struct restore *restore, const char *archive,
                            const struct vxd_restore_target *target,
                            struct vxd_restore_result *out)
{
    const struct vxd_journal_options options = {0};
    struct vxd_journal_found found;
    enum vxd_status closed;
    enum vxd_status status;

    VXD_TRY(vxd_data_dir_open(restore->ops, restore->made, &restore->dir, restore->err));
    VXD_TRY(vxd_journal_open(&restore->dir, &options, &restore->journal, &found,
                             restore->err));
    VXD_TRY(vxd_restore_fill(restore->ops, archive, restore->line, restore->next, target,
                             restore->journal, out, restore->err));
    VXD_TRY(drop_newer_snapshots(restore));
out:
    closed = vxd_journal_close(restore->journal, status == VXD_OK ? restore->err : NULL);
    vxd_data_dir_close(&restore->dir);
    return status != VXD_OK ? status : closed;
}

struct removal {
    const struct vxd_file_ops *ops;
    const char *folder;
};

static void remove_entry(void *arg, const char *name)
{
    const struct removal *removal = arg;
    char path[2 * VXD_DURABLE_PATH_BYTES];

    (void)snprintf(path, sizeof path, "%s/%s", removal->folder, name);
    (void)removal->ops->unlink(removal->ops->user, path);
}

static void remove_folder(const struct vxd_file_ops *ops, const char *made,
                          const char *name)
{
    char folder[VXD_DURABLE_PATH_BYTES];
    struct removal removal = {.ops = ops, .folder = folder};

    (void)snprintf(folder, sizeof folder, "%s%s", made, name);
    (void)ops->list(ops->user, folder, remove_entry, &removal);
    (void)ops->remove_directory(ops->user, folder);
}

static void remove_made(const struct restore *restore)
{
    remove_folder(restore->ops, restore->made, "/snapshots");
    remove_folder(restore->ops, restore->made, "/maps");
    remove_folder(restore->ops, restore->made, "");
}

static enum vxd_status sync_made(const struct restore *restore)
{
    static const char *const folders[] = {"/snapshots", "/maps", ""};
    char path[VXD_DURABLE_PATH_BYTES];
    enum vxd_status status = VXD_OK;

    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        (void)snprintf(path, sizeof path, "%s%s", restore->made, folders[i]);
        if (restore->ops->list(restore->ops->user, path, ignore_entry, NULL) == 0) {
            VXD_TRY(vxd_file_sync_directory(restore->ops, path, restore->err));
        }
    }
out:
    return status;
}

static enum vxd_status give_name(const struct restore *restore)
{
    char parent[VXD_DATA_DIR_BYTES];
    char *slash;
    int result = restore->ops->rename(restore->ops->user, restore->made, restore->to);

    if (result != 0) {
        return vxd_file_fail(restore->err, result, "rename", restore->made);
    }
    (void)snprintf(parent, sizeof parent, "%s", restore->to);
    slash = strrchr(parent, '/');
    if (slash == NULL) {
        (void)snprintf(parent, sizeof parent, ".");
    } else {
        slash[slash == parent ? 1 : 0] = '\0';
    }
    return vxd_file_sync_directory(restore->ops, parent, restore->err);
}

static enum vxd_status take_paths(struct restore *restore, const char *to)
{
    size_t n = strlen(to);
    char made[2 * VXD_DATA_DIR_BYTES];
    const char *slash;

    while (n > 1 && to[n - 1] == '/') {
        n--;
    }
    if (n == 0 || n + 8 >= sizeof restore->to ||
        strlen(restore->from) >= sizeof restore->to) {
        return vxd_fail(restore->err, VXD_INVALID_ARGUMENT, "path",
                        "a path has no bytes or more than %zu", sizeof restore->to - 8);
    }
    memcpy(restore->to, to, n);
    restore->to[n] = '\0';
    slash = strrchr(restore->to, '/');
    n = slash != NULL ? (size_t)(slash - restore->to) + 1 : 0;
    (void)snprintf(made, sizeof made, "%.*s.%s.new", (int)n, restore->to,
                   restore->to + n);
    memcpy(restore->made, made, strlen(made) + 1); /* checked above */
    return restore->ops->list(restore->ops->user, restore->to, ignore_entry, NULL) ==
                   -ENOENT
               ? VXD_OK
               : vxd_fail(restore->err, VXD_ALREADY_EXISTS, "path",
                          "%.200s is there already", restore->to);
}

enum vxd_status vxd_restore(const struct vxd_file_ops *ops, const char *backup,
                            const char *archive, const char *to,
                            const struct vxd_restore_target *target,
                            struct vxd_restore_result *out, struct vxd_err *err)
{
    struct restore restore = {.ops = ops != NULL ? ops : vxd_file_ops_system(),
                              .from = backup,
                              .dir = {.lock = -1},
                              .err = err,
                              .status = VXD_OK};
    int result;
    enum vxd_status status;

    *out = (struct vxd_restore_result){0};
    VXD_TRY(take_paths(&restore, to));
    VXD_TRY(check_backup(&restore, target));
    out->unix_ns = restore.unix_ns;
    remove_made(&restore); /* what one that was killed has left */
    result = restore.ops->make_directory(restore.ops->user, restore.made, 0700);
    if (result != 0) {
        return vxd_file_fail(err, result, "make", restore.made);
    }
    status = copy_backup(&restore);
    if (status == VXD_OK) {
        status = fill(&restore, archive, target, out);
    }
    if (status == VXD_OK) {
        status = sync_made(&restore);
    }
    if (status == VXD_OK) {
        status = give_name(&restore);
    }
    if (status != VXD_OK) {
        remove_made(&restore);
    }
out:
    return status;
}
