// SPDX-License-Identifier: Apache-2.0
/* Why the copy fits together: a snapshot alone is enough where the journal after it is there. The
 * database, copied after the first pass over the snapshot files, still has all records after the
 * older of the two newest of its time; that one was either linked by the first pass or came later,
 * and then it, or newer ones, are linked by the second. */
#include "server/durable/maintenance/backup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "server/durable/journal/journal.h"
#include "server/durable/maintenance/copy_files.h"
#include "server/durable/snapshot/snapshot.h"

struct backup {
    const struct vxd_file_ops *ops;
    const char *from; /* directories; `to` is what it is called until it is whole */
    const char *to;
    struct vxd_backup_info info;
    struct vxd_err *err;
    enum vxd_status status;
};

static void ignore_entry(void *arg, const char *name)
{
    (void)arg;
    (void)name;
}

/* One that goes away meanwhile is not needed any more; one that is there already was linked by
 * the first pass. */
static void take_snapshot(void *arg, const char *name)
{
    struct backup *backup = arg;
    const struct vxd_file_ops *ops = backup->ops;
    char from[VXD_DURABLE_PATH_BYTES];
    char to[VXD_DURABLE_PATH_BYTES];
    uint32_t family;
    uint64_t sequence;
    int64_t n_bytes;
    bool is_linked;

    if (backup->status != VXD_OK || !vxd_snapshot_parse_name(name, &family, &sequence)) {
        return;
    }
    (void)snprintf(from, sizeof from, "%s/snapshots/%s", backup->from, name);
    (void)snprintf(to, sizeof to, "%s/snapshots/%s", backup->to, name);
    backup->status = vxd_link_file(ops, from, to, &is_linked, backup->err);
    if (backup->status == VXD_NOT_FOUND || backup->status == VXD_ALREADY_EXISTS) {
        backup->status = VXD_OK;
        return;
    }
    backup->info.n_linked += is_linked;
    if (backup->status == VXD_OK) {
        int file = ops->open(ops->user, to, O_RDONLY, 0);

        n_bytes = file >= 0 ? ops->size(ops->user, file) : 0;
        backup->info.n_snapshot_bytes += n_bytes > 0 ? (uint64_t)n_bytes : 0;
        backup->info.n_snapshots++;
        if (file >= 0) {
            (void)ops->close(ops->user, file);
        }
    }
}

static enum vxd_status take_snapshots(struct backup *backup)
{
    char folder[VXD_DURABLE_PATH_BYTES];
    int result;

    (void)snprintf(folder, sizeof folder, "%s/snapshots", backup->from);
    result = backup->ops->list(backup->ops->user, folder, take_snapshot, backup);
    return result == 0 ? backup->status
                       : vxd_file_fail(backup->err, result, "read", folder);
}

/* Saved maps: a file is replaced by another, never changed, so that a link is a copy. */
static void take_saved(void *arg, const char *name)
{
    struct backup *backup = arg;
    char from[VXD_DURABLE_PATH_BYTES + 256];
    char to[VXD_DURABLE_PATH_BYTES + 256];
    bool is_linked;

    if (backup->status != VXD_OK || name[0] == '.') {
        return; /* one that is being written */
    }
    (void)snprintf(from, sizeof from, "%s/maps/%s", backup->from, name);
    (void)snprintf(to, sizeof to, "%s/maps/%s", backup->to, name);
    backup->status = vxd_link_file(backup->ops, from, to, &is_linked, backup->err);
    if (backup->status == VXD_NOT_FOUND) {
        backup->status = VXD_OK;
    }
}

static enum vxd_status take_saved_files(struct backup *backup)
{
    const struct vxd_file_ops *ops = backup->ops;
    char folder[VXD_DURABLE_PATH_BYTES];
    char copy[VXD_DURABLE_PATH_BYTES];
    int result;
    enum vxd_status status;

    (void)snprintf(folder, sizeof folder, "%s/maps", backup->from);
    (void)snprintf(copy, sizeof copy, "%s/maps", backup->to);
    if (ops->list(ops->user, folder, ignore_entry, NULL) == -ENOENT) {
        return VXD_OK;
    }
    result = ops->make_directory(ops->user, copy, 0750);
    if (result != 0) {
        return vxd_file_fail(backup->err, result, "make", copy);
    }
    result = ops->list(ops->user, folder, take_saved, backup);
    if (result != 0) {
        return vxd_file_fail(backup->err, result, "read", folder);
    }
    VXD_TRY(backup->status);
    status = vxd_file_sync_directory(ops, copy, backup->err);
out:
    return status;
}

/* The list of loaded networks, where there is one: replaced by another as saved maps are. */
static enum vxd_status take_networks(struct backup *backup)
{
    char from[VXD_DURABLE_PATH_BYTES];
    char to[VXD_DURABLE_PATH_BYTES];
    bool is_linked;
    enum vxd_status status;

    (void)snprintf(from, sizeof from, "%s/networks", backup->from);
    (void)snprintf(to, sizeof to, "%s/networks", backup->to);
    status = vxd_link_file(backup->ops, from, to, &is_linked, backup->err);
    return status == VXD_NOT_FOUND ? VXD_OK : status;
}

static enum vxd_status sync_file(struct backup *backup, const char *path)
{
    const struct vxd_file_ops *ops = backup->ops;
    int file = ops->open(ops->user, path, O_RDWR, 0);
    int result = file >= 0 ? ops->sync(ops->user, file) : file;

    if (file >= 0) {
        (void)ops->close(ops->user, file);
    }
    return result == 0 ? VXD_OK : vxd_file_fail(backup->err, result, "sync", path);
}

/* A server that opens it is to know where it comes from. */
static enum vxd_status mark_copy(struct backup *backup, const char *path)
{
    struct vxd_mark mark = {.file = -1};
    sqlite3 *db = NULL;
    int result;
    enum vxd_status status;

    VXD_TRY(vxd_database_connect(backup->ops, path, false, &db, backup->err));
    VXD_TRY(vxd_database_execute(
        db,
        "PRAGMA synchronous = OFF;"
        "UPDATE meta SET value = 1 WHERE key IN ('clean', 'restored')",
        backup->err));
    VXD_TRY(vxd_database_get_meta(db, "epoch", &mark.generation, backup->err));
    VXD_TRY(vxd_database_get_meta(db, "sequence", &mark.written, backup->err));
    mark.synced = mark.written;
    /* A close says nothing of a WAL that it could not copy. */
    result =
        sqlite3_wal_checkpoint_v2(db, "main", SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    if (result != SQLITE_OK) {
        VXD_TRY(vxd_database_fail(backup->err, db, result, "copy the WAL into the copy"));
    }
    VXD_TRY(vxd_mark_make(backup->ops, backup->to, &mark, backup->err));
out:
    if (sqlite3_close(db) != SQLITE_OK && status == VXD_OK) {
        status = vxd_fail(backup->err, VXD_UNAVAILABLE, "data_dir", "cannot close %.140s",
                          path);
    }
    return status;
}

static enum vxd_status copy_database(struct backup *backup, struct vxd_journal *journal)
{
    const struct vxd_file_ops *ops = backup->ops;
    char path[VXD_DURABLE_PATH_BYTES];
    sqlite3 *copy = NULL;
    int result;
    enum vxd_status status = VXD_OK;

    (void)snprintf(path, sizeof path, "%s/voxeld.db", backup->to);
    result = ops->open(ops->user, path, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (result < 0) {
        return vxd_file_fail(backup->err, result, "make", path);
    }
    (void)ops->close(ops->user, result);
    result = sqlite3_open_v2(path, &copy, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
                             ops->sqlite_vfs);
    if (result != SQLITE_OK) {
        VXD_TRY(vxd_database_fail(backup->err, copy, result, "make the copy"));
    }
    /* Half a copy is none: it needs no journal of its own, and is synced once, at the end. */
    VXD_TRY(vxd_database_execute(copy,
                                 "PRAGMA locking_mode = EXCLUSIVE;"
                                 "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;",
                                 backup->err));
    VXD_TRY(
        vxd_journal_copy_to(journal, copy, &backup->info.n_database_bytes, backup->err));
    (void)sqlite3_close(copy);
    copy = NULL;
    VXD_TRY(mark_copy(backup, path));
    VXD_TRY(sync_file(backup, path));
out:
    (void)sqlite3_close(copy);
    return status;
}

static enum vxd_status sync_all(struct backup *backup)
{
    char path[VXD_DURABLE_PATH_BYTES];
    enum vxd_status status;

    (void)snprintf(path, sizeof path, "%s/snapshots", backup->to);
    VXD_TRY(vxd_file_sync_directory(backup->ops, path, backup->err));
    VXD_TRY(vxd_file_sync_directory(backup->ops, backup->to, backup->err));
out:
    return status;
}

/* The copy gets its name, which is on the disk then. */
static enum vxd_status give_name(struct backup *backup, const char *name)
{
    const struct vxd_file_ops *ops = backup->ops;
    char path[VXD_DURABLE_PATH_BYTES];
    char *slash;
    int result = ops->rename(ops->user, backup->to, name);

    if (result != 0) {
        return vxd_file_fail(backup->err, result, "rename", backup->to);
    }
    backup->to = name;
    (void)snprintf(path, sizeof path, "%s", name);
    slash = strrchr(path, '/');
    if (slash == NULL) {
        (void)snprintf(path, sizeof path, ".");
    } else {
        slash[slash == path ? 1 : 0] = '\0';
    }
    return vxd_file_sync_directory(ops, path, backup->err);
}

static void remove_snapshot(void *arg, const char *name)
{
    const struct backup *backup = arg;
    char path[VXD_DURABLE_PATH_BYTES + 256];

    (void)snprintf(path, sizeof path, "%s/snapshots/%s", backup->to, name);
    (void)backup->ops->unlink(backup->ops->user, path);
}

static void remove_saved(void *arg, const char *name)
{
    const struct backup *backup = arg;
    char path[VXD_DURABLE_PATH_BYTES + 256];

    (void)snprintf(path, sizeof path, "%s/maps/%s", backup->to, name);
    (void)backup->ops->unlink(backup->ops->user, path);
}

static void remove_all(struct backup *backup)
{
    static const char *const files[] = {"voxeld.db",         "voxeld.db-wal",
                                        "voxeld.db-journal", "voxeld.mark",
                                        "voxeld.mark.new",   "networks"};
    const struct vxd_file_ops *ops = backup->ops;
    char path[VXD_DURABLE_PATH_BYTES];

    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", backup->to, files[i]);
        (void)ops->unlink(ops->user, path);
    }
    (void)snprintf(path, sizeof path, "%s/snapshots", backup->to);
    (void)ops->list(ops->user, path, remove_snapshot, backup);
    (void)ops->remove_directory(ops->user, path);
    (void)snprintf(path, sizeof path, "%s/maps", backup->to);
    (void)ops->list(ops->user, path, remove_saved, backup);
    (void)ops->remove_directory(ops->user, path);
    (void)ops->remove_directory(ops->user, backup->to);
}

/* What a process that was killed has left under the name before is removed. */
static enum vxd_status make_directories(struct backup *backup, const char *name)
{
    const struct vxd_file_ops *ops = backup->ops;
    char path[VXD_DURABLE_PATH_BYTES];
    int result = ops->list(ops->user, name, ignore_entry, NULL);

    if (result != -ENOENT) {
        return vxd_fail(backup->err, VXD_ALREADY_EXISTS, "path",
                        "%.200s is there already", name);
    }
    remove_all(backup);
    result = ops->make_directory(ops->user, backup->to, 0700);
    if (result != 0) {
        return vxd_file_fail(backup->err, result, "make", backup->to);
    }
    (void)snprintf(path, sizeof path, "%s/snapshots", backup->to);
    result = ops->make_directory(ops->user, path, 0700);
    if (result != 0) {
        (void)ops->remove_directory(ops->user, backup->to);
        return vxd_file_fail(backup->err, result, "make", path);
    }
    return VXD_OK;
}

/* With an archive, a backup has nothing that a loss of power could take back from the journal, which
 * would then go on with other changes under the same numbers. */
static enum vxd_status sync_journal(struct backup *backup, struct vxd_journal *journal)
{
    struct vxd_spool spool;

    vxd_journal_get_spool(journal, &spool);
    return spool.is_open ? vxd_journal_flush(journal, backup->err) : VXD_OK;
}

static enum vxd_status fill(struct backup *backup, struct vxd_journal *journal,
                            const char *name)
{
    enum vxd_status status;

    VXD_TRY(take_snapshots(backup));
    VXD_TRY(copy_database(backup, journal));
    VXD_TRY(sync_journal(backup, journal));
    VXD_TRY(take_snapshots(backup));
    VXD_TRY(take_saved_files(backup));
    VXD_TRY(take_networks(backup));
    VXD_TRY(sync_all(backup));
    VXD_TRY(give_name(backup, name));
out:
    return status;
}

/* DIR/.NAME.new for DIR/NAME, which no backup can be called by its user. */
static void name_aside(const char *name, char out[VXD_DURABLE_PATH_BYTES])
{
    const char *slash = strrchr(name, '/');
    int n_folder = slash != NULL ? (int)(slash - name) + 1 : 0;

    (void)snprintf(out, VXD_DURABLE_PATH_BYTES, "%.*s.%s.new", n_folder, name,
                   name + n_folder);
}

enum vxd_status vxd_backup(const struct vxd_data_dir *dir, struct vxd_journal *journal,
                           const char *path, struct vxd_backup_info *out,
                           struct vxd_err *err)
{
    char name[VXD_DATA_DIR_BYTES];
    char aside[VXD_DURABLE_PATH_BYTES];
    struct backup backup = {
        .ops = dir->ops, .from = dir->path, .to = aside, .err = err, .status = VXD_OK};
    size_t n = strlen(path);
    enum vxd_status status;

    while (n > 1 && path[n - 1] == '/') {
        n--;
    }
    if (n == 0 || n >= sizeof name) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "path", "must have 1 to %zu bytes",
                        sizeof name - 1);
    }
    memcpy(name, path, n);
    name[n] = '\0';
    name_aside(name, aside);
    if (!vxd_journal_claim_copy(journal)) {
        return vxd_fail(err, VXD_FAILED_PRECONDITION, NULL, "another backup runs");
    }
    VXD_TRY(make_directories(&backup, name));
    status = fill(&backup, journal, name);
    if (status != VXD_OK) {
        remove_all(&backup);
    }
    *out = backup.info;
out:
    vxd_journal_release_copy(journal);
    return status;
}

/* Files at the top of a backup that were not there when it was made: a daemon has run on it. */
static void remove_file(void *arg, const char *name)
{
    const struct backup *backup = arg;
    char path[VXD_DURABLE_PATH_BYTES + 256];

    (void)snprintf(path, sizeof path, "%s/%s", backup->to, name);
    (void)backup->ops->unlink(backup->ops->user, path);
}

/* Whether a daemon has the directory's lock. */
static bool is_in_use(const struct vxd_file_ops *ops, const char *path)
{
    char name[VXD_DURABLE_PATH_BYTES + 8];
    bool is_held;
    int lock;

    (void)snprintf(name, sizeof name, "%s/lock", path);
    lock = ops->open(ops->user, name, O_RDWR, 0);
    if (lock < 0) {
        return false;
    }
    is_held = ops->lock(ops->user, lock) != 0;
    (void)ops->close(ops->user, lock);
    return is_held;
}

static enum vxd_status drop_claimed(struct backup *backup, const char *path,
                                    bool *existed)
{
    const struct vxd_file_ops *ops = backup->ops;
    char folder[VXD_DURABLE_PATH_BYTES];
    int result;

    if (is_in_use(ops, path)) {
        return vxd_fail(backup->err, VXD_FAILED_PRECONDITION, "name",
                        "%.200s is in use: a daemon has it as its data_dir", path);
    }
    remove_all(backup); /* what an earlier one has left */
    result = ops->rename(ops->user, path, backup->to);
    if (result == -ENOENT) {
        return VXD_OK;
    }
    if (result != 0) {
        return vxd_file_fail(backup->err, result, "rename", path);
    }
    *existed = true;
    (void)snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    (void)ops->sync_directory(ops->user, folder);
    (void)ops->list(ops->user, backup->to, remove_file, backup);
    remove_all(backup);
    return ops->list(ops->user, backup->to, ignore_entry, NULL) == -ENOENT
               ? VXD_OK
               : vxd_fail(
                     backup->err, VXD_UNAVAILABLE, "name",
                     "%.200s is no backup any more, but holds files that could not be "
                     "removed",
                     backup->to);
}

enum vxd_status vxd_backup_drop(const struct vxd_data_dir *dir,
                                struct vxd_journal *journal, const char *path,
                                bool *existed, struct vxd_err *err)
{
    char aside[VXD_DURABLE_PATH_BYTES];
    struct backup backup = {.ops = dir->ops, .from = dir->path, .to = aside, .err = err};
    enum vxd_status status;

    *existed = false;
    name_aside(path, aside);
    if (!vxd_journal_claim_copy(journal)) {
        return vxd_fail(err, VXD_FAILED_PRECONDITION, NULL, "a backup is being made");
    }
    status = drop_claimed(&backup, path, existed);
    vxd_journal_release_copy(journal);
    return status;
}

struct listing {
    const struct vxd_file_ops *ops;
    const char *folder;
    struct vxd_backup_entry *entries;
    size_t capacity;
    size_t n;
};

static uint64_t size_of(const struct vxd_file_ops *ops, const char *path, bool *is_there)
{
    int file = ops->open(ops->user, path, O_RDONLY, 0);
    int64_t n_bytes = file >= 0 ? ops->size(ops->user, file) : -1;

    if (file >= 0) {
        (void)ops->close(ops->user, file);
    }
    *is_there = n_bytes >= 0;
    return n_bytes > 0 ? (uint64_t)n_bytes : 0;
}

/* Adds the size of a file of the backup that is looked at, and 1. */
static void count_file(const struct listing *listing, const char *folder,
                       const char *name, uint64_t *n_bytes, size_t *n)
{
    char path[VXD_DURABLE_PATH_BYTES + 512];
    bool is_there;

    (void)snprintf(path, sizeof path, "%s/%s/%s/%s", listing->folder,
                   listing->entries[listing->n].name, folder, name);
    *n_bytes += size_of(listing->ops, path, &is_there);
    *n += is_there ? 1 : 0;
}

static void count_snapshot(void *arg, const char *name)
{
    const struct listing *listing = arg;
    struct vxd_backup_entry *entry = &listing->entries[listing->n];

    count_file(listing, "snapshots", name, &entry->n_snapshot_bytes, &entry->n_snapshots);
}

static void count_saved(void *arg, const char *name)
{
    const struct listing *listing = arg;
    struct vxd_backup_entry *entry = &listing->entries[listing->n];

    count_file(listing, "maps", name, &entry->n_file_bytes, &entry->n_files);
}

static void list_entry(void *arg, const char *name)
{
    struct listing *listing = arg;
    struct vxd_backup_entry *entry = &listing->entries[listing->n];
    char path[VXD_DURABLE_PATH_BYTES + 128];
    bool is_there;

    if (listing->n == listing->capacity || !vxd_is_name(name)) {
        return;
    }
    *entry = (struct vxd_backup_entry){0};
    (void)snprintf(entry->name, sizeof entry->name, "%s", name);
    (void)snprintf(path, sizeof path, "%s/%s/voxeld.db", listing->folder, name);
    entry->n_database_bytes = size_of(listing->ops, path, &is_there);
    if (!is_there) {
        return;
    }
    (void)snprintf(path, sizeof path, "%s/%s/snapshots", listing->folder, name);
    (void)listing->ops->list(listing->ops->user, path, count_snapshot, listing);
    (void)snprintf(path, sizeof path, "%s/%s/maps", listing->folder, name);
    (void)listing->ops->list(listing->ops->user, path, count_saved, listing);
    listing->n++;
}

static int compare_entries(const void *a, const void *b)
{
    return strcmp(((const struct vxd_backup_entry *)a)->name,
                  ((const struct vxd_backup_entry *)b)->name);
}

enum vxd_status vxd_backup_list(const struct vxd_data_dir *dir, const char *folder,
                                struct vxd_backup_entry *out, size_t capacity, size_t *n,
                                struct vxd_err *err)
{
    struct listing listing = {
        .ops = dir->ops, .folder = folder, .entries = out, .capacity = capacity};
    int result = dir->ops->list(dir->ops->user, folder, list_entry, &listing);

    *n = listing.n;
    qsort(out, listing.n, sizeof *out, compare_entries);
    return result == 0 || result == -ENOENT ? VXD_OK
                                            : vxd_file_fail(err, result, "list", folder);
}
