// SPDX-License-Identifier: Apache-2.0
/* SQLite on the disk in memory. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "tests/support/durable/fault_internal.h"

struct vfs_file {
    sqlite3_file base;
    struct fault_disk *disk;
    int number;
    int persists_wal;
    char path[PATH_BYTES];
};

static int to_sqlite(int64_t result, int otherwise)
{
    if (result >= 0) {
        return SQLITE_OK;
    }
    return result == -ENOSPC ? SQLITE_FULL : otherwise;
}

static int vfs_close(sqlite3_file *base)
{
    struct vfs_file *file = (struct vfs_file *)base;

    return file->disk->ops.close(file->disk, file->number);
}

static int vfs_read(sqlite3_file *base, void *to, int n, sqlite3_int64 at)
{
    struct vfs_file *file = (struct vfs_file *)base;
    int64_t n_read =
        file->disk->ops.read(file->disk, file->number, to, (size_t)n, (uint64_t)at);

    if (n_read < 0) {
        return SQLITE_IOERR_READ;
    }
    if (n_read < n) {
        memset((uint8_t *)to + n_read, 0, (size_t)(n - n_read));
        return SQLITE_IOERR_SHORT_READ;
    }
    return SQLITE_OK;
}

/* As SQLite's own does: again after a short one. */
static int vfs_write(sqlite3_file *base, const void *from, int n, sqlite3_int64 at)
{
    struct vfs_file *file = (struct vfs_file *)base;
    const uint8_t *next = from;

    while (n > 0) {
        int64_t n_written = file->disk->ops.write(file->disk, file->number, next,
                                                  (size_t)n, (uint64_t)at);

        if (n_written <= 0) {
            return to_sqlite(n_written < 0 ? n_written : -ENOSPC, SQLITE_IOERR_WRITE);
        }
        next += n_written;
        at += n_written;
        n -= (int)n_written;
    }
    return SQLITE_OK;
}

static int vfs_truncate(sqlite3_file *base, sqlite3_int64 n)
{
    struct vfs_file *file = (struct vfs_file *)base;

    return to_sqlite(file->disk->ops.truncate(file->disk, file->number, (uint64_t)n),
                     SQLITE_IOERR_TRUNCATE);
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

/* SQLite's own syncs the folder too with the first sync of a new WAL. This one does not, so that
 * what is proven does not rest on it. */
static int vfs_sync(sqlite3_file *base, int flags)
{
    struct vfs_file *file = (struct vfs_file *)base;
    struct fault_disk *disk = file->disk;
    ENTER(disk, NULL);

    (void)flags;
    if (result == 0) {
        const struct inode *inode = disk->files[file->number];
        bool is_head = inode->n_pending == 1 && inode->pending[0].at == 0 &&
                       inode->pending[0].n == WAL_HEAD_BYTES;

        result = fault_sync_inode(disk, disk->files[file->number],
                                  is_head ? FAULT_WAL_HEAD : name_of(file->path));
    }
    return to_sqlite(leave(disk, result), SQLITE_IOERR_FSYNC);
}

static int vfs_size(sqlite3_file *base, sqlite3_int64 *out)
{
    struct vfs_file *file = (struct vfs_file *)base;
    int64_t n = file->disk->ops.size(file->disk, file->number);

    *out = n > 0 ? n : 0;
    return n >= 0 ? SQLITE_OK : SQLITE_IOERR_FSTAT;
}

static int vfs_lock(sqlite3_file *base, int kind)
{
    (void)base;
    (void)kind;
    return SQLITE_OK; /* the directory's lock keeps everybody else away */
}

static int vfs_check_lock(sqlite3_file *base, int *out)
{
    (void)base;
    *out = 0;
    return SQLITE_OK;
}

static int vfs_control(sqlite3_file *base, int what, void *argument)
{
    struct vfs_file *file = (struct vfs_file *)base;
    int *persists = argument;

    if (what != SQLITE_FCNTL_PERSIST_WAL) {
        return SQLITE_NOTFOUND;
    }
    if (*persists < 0) {
        *persists = file->persists_wal;
    } else {
        file->persists_wal = *persists;
    }
    return SQLITE_OK;
}

static int vfs_sector_size(sqlite3_file *base)
{
    (void)base;
    return 4096;
}

/* As SQLite assumes of every disk on Linux: writing does not damage what is beside. */
static int vfs_characteristics(sqlite3_file *base)
{
    (void)base;
    return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

static const sqlite3_io_methods vfs_methods = {
    .iVersion = 1,
    .xClose = vfs_close,
    .xRead = vfs_read,
    .xWrite = vfs_write,
    .xTruncate = vfs_truncate,
    .xSync = vfs_sync,
    .xFileSize = vfs_size,
    .xLock = vfs_lock,
    .xUnlock = vfs_lock,
    .xCheckReservedLock = vfs_check_lock,
    .xFileControl = vfs_control,
    .xSectorSize = vfs_sector_size,
    .xDeviceCharacteristics = vfs_characteristics,
};

static int vfs_open(sqlite3_vfs *vfs, const char *path, sqlite3_file *base, int flags,
                    int *out_flags)
{
    struct vfs_file *file = (struct vfs_file *)base;

    memset(file, 0, sizeof *file);
    if (path == NULL) {
        return SQLITE_CANTOPEN; /* temporary files stay in memory */
    }
    file->disk = vfs->pAppData;
    file->number = file->disk->ops.open(
        file->disk, path, (flags & SQLITE_OPEN_CREATE) != 0 ? O_RDWR | O_CREAT : O_RDWR,
        0600);
    if (file->number < 0) {
        return SQLITE_CANTOPEN;
    }
    (void)snprintf(file->path, sizeof file->path, "%s", path);
    file->base.pMethods = &vfs_methods;
    if (out_flags != NULL) {
        *out_flags = flags;
    }
    return SQLITE_OK;
}

static int vfs_delete(sqlite3_vfs *vfs, const char *path, int syncs_folder)
{
    struct fault_disk *disk = vfs->pAppData;
    char folder[PATH_BYTES];
    int result = disk->ops.unlink(disk, path);

    if (result == -ENOENT) {
        return SQLITE_IOERR_DELETE_NOENT;
    }
    if (result == 0 && syncs_folder) {
        (void)snprintf(folder, sizeof folder, "%.*s", (int)(name_of(path) - 1 - path),
                       path);
        result = disk->ops.sync_directory(disk, folder);
    }
    return to_sqlite(result, SQLITE_IOERR_DELETE);
}

static int vfs_access(sqlite3_vfs *vfs, const char *path, int flags, int *out)
{
    struct fault_disk *disk = vfs->pAppData;
    const struct entry *entry;
    ENTER(disk, NULL);

    entry = fault_find_now(disk, path);
    /* An empty file is none, as SQLite's own says. */
    *out = entry != NULL && (flags != SQLITE_ACCESS_EXISTS || entry->now->n_now > 0);
    return to_sqlite(leave(disk, result), SQLITE_IOERR_ACCESS);
}

static int vfs_full_path(sqlite3_vfs *vfs, const char *path, int n, char *out)
{
    (void)vfs;
    (void)snprintf(out, (size_t)n, "%s", path);
    return SQLITE_OK;
}

static int vfs_random(sqlite3_vfs *vfs, int n, char *out)
{
    (void)vfs;
    for (int i = 0; i < n; i++) {
        out[i] = (char)(i * 37 + 11); /* equal runs do equal things */
    }
    return n;
}

static int vfs_sleep(sqlite3_vfs *vfs, int us)
{
    (void)vfs;
    return us;
}

static int vfs_time(sqlite3_vfs *vfs, double *out)
{
    (void)vfs;
    *out = 2460000.5;
    return SQLITE_OK;
}

static int vfs_last_error(sqlite3_vfs *vfs, int n, char *out)
{
    (void)vfs;
    (void)n;
    (void)out;
    return 0;
}

void fault_vfs_register(struct fault_disk *disk)
{
    disk->vfs = (sqlite3_vfs){.iVersion = 1,
                              .szOsFile = sizeof(struct vfs_file),
                              .mxPathname = PATH_BYTES - 1,
                              .zName = disk->vfs_name,
                              .pAppData = disk,
                              .xOpen = vfs_open,
                              .xDelete = vfs_delete,
                              .xAccess = vfs_access,
                              .xFullPathname = vfs_full_path,
                              .xRandomness = vfs_random,
                              .xSleep = vfs_sleep,
                              .xCurrentTime = vfs_time,
                              .xGetLastError = vfs_last_error};
    (void)sqlite3_vfs_register(&disk->vfs, 0);
}

void fault_vfs_unregister(struct fault_disk *disk)
{
    (void)sqlite3_vfs_unregister(&disk->vfs);
}
