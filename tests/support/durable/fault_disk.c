// SPDX-License-Identifier: Apache-2.0
#include "tests/support/durable/fault_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

const struct fault_plan fault_none = {.crash_at_sync = FAULT_NEVER,
                                      .suppress_sync = FAULT_NEVER,
                                      .fail_at_call = FAULT_NEVER,
                                      .crash_at_call = FAULT_NEVER,
                                      .capacity_bytes = FAULT_NEVER};

/* Inodes and names ------------------------------------------------------------------------- */

void fault_forget_pending(struct inode *inode)
{
    for (size_t i = 0; i < inode->n_pending; i++) {
        free(inode->pending[i].bytes);
    }
    inode->n_pending = 0;
}

static void release(struct inode *inode)
{
    if (inode != NULL && --inode->n_references == 0) {
        fault_forget_pending(inode);
        free(inode->pending);
        free(inode->now);
        free(inode->synced);
        free(inode);
    }
}

void fault_assign(struct inode **place, struct inode *inode)
{
    if (inode != NULL) {
        inode->n_references++;
    }
    release(*place);
    *place = inode;
}

static void *must(void *memory)
{
    if (memory == NULL) {
        abort(); /* a test without memory tests nothing */
    }
    return memory;
}

void fault_resize(uint8_t **bytes, size_t *n, size_t n_new)
{
    *bytes = must(realloc(*bytes, n_new > 0 ? n_new : 1));
    if (n_new > *n) {
        memset(*bytes + *n, 0, n_new - *n);
    }
    *n = n_new;
}

static struct entry *find(struct fault_disk *disk, const char *path)
{
    for (size_t i = 0; i < disk->n_entries; i++) {
        if (strcmp(disk->entries[i].path, path) == 0) {
            return &disk->entries[i];
        }
    }
    return NULL;
}

struct entry *fault_find_now(struct fault_disk *disk, const char *path)
{
    struct entry *entry = find(disk, path);

    return entry != NULL && entry->now != NULL ? entry : NULL;
}

static struct entry *make_entry(struct fault_disk *disk, const char *path)
{
    struct entry *entry = find(disk, path);

    if (entry == NULL && disk->n_entries < MAX_ENTRIES) {
        entry = &disk->entries[disk->n_entries++];
        memset(entry, 0, sizeof *entry);
        (void)snprintf(entry->path, sizeof entry->path, "%s", path);
    }
    return must(entry);
}

static struct inode *make_inode(bool is_directory)
{
    struct inode *inode = must(calloc(1, sizeof *inode));

    inode->is_directory = is_directory;
    return inode;
}

/* Whether a path lies right in a folder. */
static bool is_in(const char *path, const char *folder)
{
    size_t n = strcmp(folder, "/") == 0 ? 0 : strlen(folder);

    return strncmp(path, folder, n) == 0 && path[n] == '/' &&
           strchr(path + n + 1, '/') == NULL;
}

bool fault_has_parent(struct fault_disk *disk, const char *path)
{
    char parent[PATH_BYTES];
    char *slash;
    struct entry *entry;

    (void)snprintf(parent, sizeof parent, "%s", path);
    slash = strrchr(parent, '/');
    if (slash == NULL || slash == parent) {
        return true; /* in the root, which is always there */
    }
    *slash = '\0';
    entry = fault_find_now(disk, parent);
    return entry != NULL && entry->now->is_directory;
}

/* Calls ------------------------------------------------------------------------------------ */

/* Counts a call; -errno where it is to fail. With the lock. */
int fault_begin_call(struct fault_disk *disk, bool *is_short)
{
    int number = disk->n_calls++;

    if (is_short != NULL) {
        *is_short = false;
    }
    disk->is_dead = disk->is_dead || number == disk->plan.crash_at_call;
    if (disk->is_dead) {
        return -EIO;
    }
    if (number != disk->plan.fail_at_call) {
        return 0;
    }
    if (disk->plan.fail_kind == FAULT_SHORT && is_short != NULL) {
        *is_short = true;
        return 0;
    }
    return disk->plan.fail_kind == FAULT_ENOSPC ? -ENOSPC : -EIO;
}

/* Numbers a sync: 0 = it is to be done, 1 = left out, else -errno. */
static int begin_sync(struct fault_disk *disk, const char *of, bool has_work)
{
    int number;

    if (disk->is_dead) {
        return -EIO;
    }
    number = disk->n_syncs++;
    if (number < FAULT_MAX_SYNCS) {
        (void)snprintf(disk->sync_of[number], sizeof disk->sync_of[number], "%s",
                       has_work ? of : "");
    }
    if (number == disk->plan.crash_at_sync) {
        disk->is_dead = true;
        return -EIO;
    }
    return number == disk->plan.suppress_sync ? 1 : 0;
}

static void add_pending(struct inode *inode, uint64_t at, size_t n, const void *bytes)
{
    struct pending *pending;

    if (inode->n_pending == inode->pending_capacity) {
        inode->pending_capacity = 2 * inode->pending_capacity + 16;
        inode->pending = must(
            realloc(inode->pending, inode->pending_capacity * sizeof *inode->pending));
    }
    pending = &inode->pending[inode->n_pending++];
    *pending = (struct pending){.at = at, .n = n};
    if (bytes != NULL) {
        pending->bytes = must(malloc(n > 0 ? n : 1));
        memcpy(pending->bytes, bytes, n);
    }
}

static int64_t write_inode(struct fault_disk *disk, struct inode *inode, const void *from,
                           size_t n, uint64_t at)
{
    uint64_t end = at + n;

    if (disk->plan.capacity_bytes != FAULT_NEVER && end > inode->n_now &&
        fault_bytes_of_all(disk) + (int64_t)(end - inode->n_now) >
            disk->plan.capacity_bytes) {
        return -ENOSPC;
    }
    if (end > inode->n_now) {
        fault_resize(&inode->now, &inode->n_now, (size_t)end);
    }
    memcpy(inode->now + at, from, n);
    add_pending(inode, at, n, from);
    return (int64_t)n;
}

static void truncate_inode(struct inode *inode, size_t n)
{
    fault_resize(&inode->now, &inode->n_now, n);
    add_pending(inode, n, 0, NULL);
}

int fault_sync_inode(struct fault_disk *disk, struct inode *inode, const char *of)
{
    int result = begin_sync(disk, of, inode->n_pending > 0);

    if (result == 0) {
        fault_resize(&inode->synced, &inode->n_synced, inode->n_now);
        if (inode->n_now > 0) {
            memcpy(inode->synced, inode->now, inode->n_now);
        }
        fault_forget_pending(inode);
    }
    return result < 0 ? result : 0;
}

/* What lay in a directory that was moved lies in it as it is called now. */
static void end_move(struct fault_disk *disk, int move)
{
    for (size_t i = 0; i < disk->n_entries && move != 0; i++) {
        struct entry *entry = &disk->entries[i];

        if (entry->move == move) {
            fault_assign(&entry->synced, entry->now);
            entry->move = 0;
        }
    }
}

static int sync_names(struct fault_disk *disk, const char *folder)
{
    bool has_work = false;
    int result;

    for (size_t i = 0; i < disk->n_entries; i++) {
        const struct entry *entry = &disk->entries[i];

        has_work =
            has_work || (is_in(entry->path, folder) && entry->now != entry->synced);
    }
    result = begin_sync(disk, folder, has_work);
    for (size_t i = 0; i < disk->n_entries && result == 0; i++) {
        if (is_in(disk->entries[i].path, folder)) {
            end_move(disk, disk->entries[i].move);
            fault_assign(&disk->entries[i].synced, disk->entries[i].now);
            disk->entries[i].move = 0;
        }
    }
    return result < 0 ? result : 0;
}

static int open_number(struct fault_disk *disk, struct inode *inode)
{
    for (int i = 0; i < MAX_FILES; i++) {
        if (disk->files[i] == NULL) {
            fault_assign(&disk->files[i], inode);
            return i;
        }
    }
    return -EMFILE;
}

static int open_path(struct fault_disk *disk, const char *path, int flags)
{
    struct entry *entry = fault_find_now(disk, path);

    if (entry != NULL && (flags & O_CREAT) != 0 && (flags & O_EXCL) != 0) {
        return -EEXIST;
    }
    if (entry == NULL) {
        if ((flags & O_CREAT) == 0 || !fault_has_parent(disk, path)) {
            return -ENOENT;
        }
        entry = make_entry(disk, path);
        fault_assign(&entry->now, make_inode(false));
    } else if ((flags & O_TRUNC) != 0 && entry->now->n_now > 0) {
        truncate_inode(entry->now, 0);
    }
    return open_number(disk, entry->now);
}

static int unlink_path(struct fault_disk *disk, const char *path, bool is_directory)
{
    struct entry *entry = fault_find_now(disk, path);

    if (entry == NULL) {
        return -ENOENT;
    }
    if (entry->now->is_directory != is_directory) {
        return is_directory ? -ENOTDIR : -EISDIR;
    }
    fault_assign(&entry->now, NULL);
    return 0;
}

/* The table of file calls ------------------------------------------------------------------ */

static int disk_open(void *user, const char *path, int flags, unsigned mode)
{
    struct fault_disk *disk = user;
    ENTER(disk, NULL);

    (void)mode;
    return leave(disk, result == 0 ? open_path(disk, path, flags) : result);
}

static int disk_close(void *user, int file)
{
    struct fault_disk *disk = user;

    (void)pthread_mutex_lock(&disk->lock);
    if (disk->files[file] != NULL && disk->files[file]->is_locked) {
        disk->files[file]->is_locked = false;
    }
    fault_assign(&disk->files[file], NULL);
    return leave(disk, 0);
}

static int64_t read_inode(const struct inode *inode, void *to, size_t n, uint64_t at)
{
    size_t n_there = at < inode->n_now ? inode->n_now - (size_t)at : 0;

    n = n < n_there ? n : n_there;
    if (n > 0) {
        memcpy(to, inode->now + at, n);
    }
    return (int64_t)n;
}

static int64_t disk_read(void *user, int file, void *to, size_t n, uint64_t at)
{
    struct fault_disk *disk = user;
    int64_t n_read;
    ENTER(disk, NULL);

    n_read = result == 0 ? read_inode(disk->files[file], to, n, at) : result;
    (void)leave(disk, 0);
    return n_read;
}

static int64_t disk_write(void *user, int file, const void *from, size_t n, uint64_t at)
{
    struct fault_disk *disk = user;
    int64_t n_written;
    bool is_short;
    ENTER(disk, &is_short);

    if (is_short) {
        n = n / 2 + 1;
    }
    n_written = result == 0 ? write_inode(disk, disk->files[file], from, n, at) : result;
    (void)leave(disk, 0);
    return n_written;
}

static int disk_truncate(void *user, int file, uint64_t n)
{
    struct fault_disk *disk = user;
    ENTER(disk, NULL);

    if (result == 0) {
        truncate_inode(disk->files[file], (size_t)n);
    }
    return leave(disk, result);
}

static int64_t disk_size(void *user, int file)
{
    struct fault_disk *disk = user;
    int64_t n;
    ENTER(disk, NULL);

    n = result == 0 ? (int64_t)disk->files[file]->n_now : result;
    (void)leave(disk, 0);
    return n;
}

static int disk_sync(void *user, int file)
{
    struct fault_disk *disk = user;
    ENTER(disk, NULL);

    return leave(disk, result == 0 ? fault_sync_inode(disk, disk->files[file], "a file")
                                   : result);
}

/* The mark's alone. */
static int disk_sync_data(void *user, int file)
{
    struct fault_disk *disk = user;
    ENTER(disk, NULL);

    return leave(disk, result == 0
                           ? fault_sync_inode(disk, disk->files[file], "voxeld.mark")
                           : result);
}

static int disk_lock(void *user, int file)
{
    struct fault_disk *disk = user;
    ENTER(disk, NULL);

    if (result == 0 && disk->files[file]->is_locked) {
        result = -EWOULDBLOCK;
    } else if (result == 0) {
        disk->files[file]->is_locked = true;
    }
    return leave(disk, result);
}

static int disk_sync_directory(void *user, const char *path)
{
    struct fault_disk *disk = user;
    ENTER(disk, NULL);

    return leave(disk, result == 0 ? sync_names(disk, path) : result);
}

static int disk_make_directory(void *user, const char *path, unsigned mode)
{
    struct fault_disk *disk = user;
    ENTER(disk, NULL);

    (void)mode;
    if (result == 0 && fault_find_now(disk, path) != NULL) {
        result = -EEXIST;
    } else if (result == 0 && !fault_has_parent(disk, path)) {
        result = -ENOENT;
    } else if (result == 0) {
        fault_assign(&make_entry(disk, path)->now, make_inode(true));
    }
    return leave(disk, result);
}

static int disk_remove_directory(void *user, const char *path)
{
    struct fault_disk *disk = user;
    ENTER(disk, NULL);

    return leave(disk, result == 0 ? unlink_path(disk, path, true) : result);
}

/* Names in a directory that is moved are moved with it, at once and with the same fate, but for
 * those that were not synced in it. */
static void move_children(struct fault_disk *disk, const char *from, const char *to,
                          int move)
{
    size_t n_from = strlen(from);
    size_t n_entries = disk->n_entries;

    for (size_t i = 0; i < n_entries; i++) {
        struct entry *child = &disk->entries[i];
        struct entry *target;
        char path[PATH_BYTES];
        bool is_synced = child->now == child->synced;

        if (child->now == NULL || strncmp(child->path, from, n_from) != 0 ||
            child->path[n_from] != '/') {
            continue;
        }
        if (snprintf(path, sizeof path, "%s%s", to, child->path + n_from) >=
            (int)sizeof path) {
            abort();
        }
        target = make_entry(disk, path);
        fault_assign(&target->now, child->now);
        fault_assign(&target->synced, is_synced ? child->synced : NULL);
        fault_assign(&child->now, NULL);
        target->move = is_synced ? move : 0;
        child->move = is_synced ? move : 0;
    }
}

static int disk_rename(void *user, const char *from, const char *to)
{
    struct fault_disk *disk = user;
    struct entry *entry;
    ENTER(disk, NULL);

    entry = fault_find_now(disk, from);
    if (result == 0 && entry == NULL) {
        result = -ENOENT;
    } else if (result == 0) {
        struct entry *target = make_entry(disk, to);

        fault_assign(&target->now, entry->now);
        fault_assign(&entry->now, NULL);
        target->move = entry->move = ++disk->n_moves;
        if (target->now->is_directory) {
            move_children(disk, from, to, disk->n_moves);
        }
    }
    return leave(disk, result);
}

static int disk_link(void *user, const char *from, const char *to)
{
    struct fault_disk *disk = user;
    struct entry *entry;
    ENTER(disk, NULL);

    entry = fault_find_now(disk, from);
    if (result == 0 && entry == NULL) {
        result = -ENOENT;
    } else if (result == 0 && fault_find_now(disk, to) != NULL) {
        result = -EEXIST;
    } else if (result == 0) {
        fault_assign(&make_entry(disk, to)->now, entry->now);
    }
    return leave(disk, result);
}

static int disk_unlink(void *user, const char *path)
{
    struct fault_disk *disk = user;
    ENTER(disk, NULL);

    return leave(disk, result == 0 ? unlink_path(disk, path, false) : result);
}

static int disk_list(void *user, const char *path,
                     void (*entry)(void *arg, const char *name), void *arg)
{
    struct fault_disk *disk = user;
    char names[MAX_ENTRIES][64];
    size_t n = 0;
    ENTER(disk, NULL);

    if (result == 0 && fault_find_now(disk, path) == NULL) {
        result = -ENOENT;
    }
    for (size_t i = 0; i < disk->n_entries && result == 0; i++) {
        if (disk->entries[i].now != NULL && is_in(disk->entries[i].path, path)) {
            (void)snprintf(names[n++], sizeof names[0], "%s",
                           strrchr(disk->entries[i].path, '/') + 1);
        }
    }
    (void)leave(disk, 0);
    for (size_t i = 0; i < n; i++) { /* it may ask the disk for more */
        entry(arg, names[i]);
    }
    return result;
}

static int disk_boot_id(void *user, char out[VXD_BOOT_ID_BYTES])
{
    struct fault_disk *disk = user;

    (void)snprintf(out, VXD_BOOT_ID_BYTES, "boot-%d", disk->n_boots);
    return 0;
}

/* The disk --------------------------------------------------------------------------------- */

struct fault_disk *fault_disk_create(void)
{
    static int n_disks;
    struct fault_disk *disk = calloc(1, sizeof *disk);

    if (disk == NULL) {
        return NULL;
    }
    (void)pthread_mutex_init(&disk->lock, NULL);
    (void)snprintf(disk->vfs_name, sizeof disk->vfs_name, "voxeld-fault-%d", n_disks++);
    disk->ops = (struct vxd_file_ops){.user = disk,
                                      .sqlite_vfs = disk->vfs_name,
                                      .open = disk_open,
                                      .close = disk_close,
                                      .read = disk_read,
                                      .write = disk_write,
                                      .truncate = disk_truncate,
                                      .size = disk_size,
                                      .sync = disk_sync,
                                      .sync_data = disk_sync_data,
                                      .lock = disk_lock,
                                      .sync_directory = disk_sync_directory,
                                      .make_directory = disk_make_directory,
                                      .remove_directory = disk_remove_directory,
                                      .rename = disk_rename,
                                      .link = disk_link,
                                      .unlink = disk_unlink,
                                      .list = disk_list,
                                      .boot_id = disk_boot_id};
    disk->plan = fault_none;
    fault_vfs_register(disk);
    return disk;
}

void fault_disk_destroy(struct fault_disk *disk)
{
    fault_vfs_unregister(disk);
    for (size_t i = 0; i < disk->n_entries; i++) {
        fault_assign(&disk->entries[i].now, NULL);
        fault_assign(&disk->entries[i].synced, NULL);
    }
    for (int i = 0; i < MAX_FILES; i++) {
        fault_assign(&disk->files[i], NULL);
    }
    (void)pthread_mutex_destroy(&disk->lock);
    free(disk);
}

const struct vxd_file_ops *fault_disk_ops(struct fault_disk *disk)
{
    return &disk->ops;
}

void fault_disk_plan(struct fault_disk *disk, const struct fault_plan *plan)
{
    (void)pthread_mutex_lock(&disk->lock);
    disk->plan = *plan;
    disk->n_calls = 0;
    disk->n_syncs = 0;
    (void)pthread_mutex_unlock(&disk->lock);
}

bool fault_disk_is_dead(struct fault_disk *disk)
{
    bool is_dead;

    (void)pthread_mutex_lock(&disk->lock);
    is_dead = disk->is_dead;
    (void)pthread_mutex_unlock(&disk->lock);
    return is_dead;
}

const char *fault_disk_sync_of(struct fault_disk *disk, int i)
{
    return i < FAULT_MAX_SYNCS && disk->sync_of[i][0] != '\0' ? disk->sync_of[i] : NULL;
}

void fault_disk_cut(struct fault_disk *disk)
{
    (void)pthread_mutex_lock(&disk->lock);
    disk->is_dead = true;
    (void)pthread_mutex_unlock(&disk->lock);
}

void fault_disk_resize(struct fault_disk *disk, const char *path, size_t n_bytes)
{
    struct entry *entry = fault_find_now(disk, path);

    if (entry != NULL) {
        truncate_inode(entry->now, n_bytes);
    }
}
