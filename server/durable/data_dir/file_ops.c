// SPDX-License-Identifier: Apache-2.0
#include "server/durable/data_dir/file_ops.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static int system_open(void *user, const char *path, int flags, unsigned mode)
{
    int file = open(path, flags | O_CLOEXEC, (mode_t)mode);

    (void)user;
    return file >= 0 ? file : -errno;
}

static int system_close(void *user, int file)
{
    (void)user;
    return close(file) == 0 ? 0 : -errno;
}

static int64_t system_read(void *user, int file, void *to, size_t n_bytes, uint64_t at)
{
    ssize_t n = pread(file, to, n_bytes, (off_t)at);

    (void)user;
    return n >= 0 ? n : -errno;
}

static int64_t system_write(void *user, int file, const void *from, size_t n_bytes,
                            uint64_t at)
{
    ssize_t n = pwrite(file, from, n_bytes, (off_t)at);

    (void)user;
    return n >= 0 ? n : -errno;
}

static int system_truncate(void *user, int file, uint64_t n_bytes)
{
    (void)user;
    return ftruncate(file, (off_t)n_bytes) == 0 ? 0 : -errno;
}

static int64_t system_size(void *user, int file)
{
    struct stat info;

    (void)user;
    return fstat(file, &info) == 0 ? (int64_t)info.st_size : -errno;
}

static int system_sync(void *user, int file)
{
    (void)user;
    return fsync(file) == 0 ? 0 : -errno;
}

static int system_sync_data(void *user, int file)
{
    (void)user;
    return fdatasync(file) == 0 ? 0 : -errno;
}

/* flock, not fcntl: it belongs to the open file, so that closing some other descriptor of the
 * same file does not lose it. */
static int system_lock(void *user, int file)
{
    (void)user;
    return flock(file, LOCK_EX | LOCK_NB) == 0 ? 0 : -errno;
}

static int system_sync_directory(void *user, const char *path)
{
    int file = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int result;

    (void)user;
    if (file < 0) {
        return -errno;
    }
    result = fsync(file) == 0 ? 0 : -errno;
    (void)close(file);
    return result;
}

static int system_make_directory(void *user, const char *path, unsigned mode)
{
    (void)user;
    return mkdir(path, (mode_t)mode) == 0 ? 0 : -errno;
}

static int system_remove_directory(void *user, const char *path)
{
    (void)user;
    return rmdir(path) == 0 ? 0 : -errno;
}

static int system_rename(void *user, const char *from, const char *to)
{
    (void)user;
    return rename(from, to) == 0 ? 0 : -errno;
}

static int system_link(void *user, const char *from, const char *to)
{
    (void)user;
    return link(from, to) == 0 ? 0 : -errno;
}

static int system_unlink(void *user, const char *path)
{
    (void)user;
    return unlink(path) == 0 ? 0 : -errno;
}

static int system_list(void *user, const char *path,
                       void (*entry)(void *arg, const char *name), void *arg)
{
    DIR *entries = opendir(path);
    const struct dirent *next;
    int result;

    (void)user;
    if (entries == NULL) {
        return -errno;
    }
    for (errno = 0; (next = readdir(entries)) != NULL; errno = 0) {
        if (strcmp(next->d_name, ".") != 0 && strcmp(next->d_name, "..") != 0) {
            entry(arg, next->d_name);
        }
    }
    result = -errno;
    (void)closedir(entries);
    return result;
}

static int system_boot_id(void *user, char out[VXD_BOOT_ID_BYTES])
{
    int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = file >= 0 ? read(file, out, VXD_BOOT_ID_BYTES - 1) : -1;
    int result = n > 0 ? 0 : -ENOENT;

    (void)user;
    if (file >= 0) {
        (void)close(file);
    }
    out[n > 0 ? n : 0] = '\0';
    out[strcspn(out, "\n")] = '\0';
    return result;
}

static const struct vxd_file_ops system_ops = {
    .open = system_open,
    .close = system_close,
    .read = system_read,
    .write = system_write,
    .truncate = system_truncate,
    .size = system_size,
    .sync = system_sync,
    .sync_data = system_sync_data,
    .lock = system_lock,
    .sync_directory = system_sync_directory,
    .make_directory = system_make_directory,
    .remove_directory = system_remove_directory,
    .rename = system_rename,
    .link = system_link,
    .unlink = system_unlink,
    .list = system_list,
    .boot_id = system_boot_id,
};

const struct vxd_file_ops *vxd_file_ops_system(void)
{
    return &system_ops;
}

enum vxd_status vxd_file_fail(struct vxd_err *err, int64_t negative_errno,
                              const char *what, const char *path)
{
    int number = (int)-negative_errno;
    enum vxd_status status = VXD_UNAVAILABLE;

    if (number == ENOSPC || number == EDQUOT || number == EFBIG) {
        status = VXD_RESOURCE_EXHAUSTED;
    } else if (number == ENOENT) {
        status = VXD_NOT_FOUND;
    }
    return vxd_fail(err, status, "data_dir", "cannot %s %.140s: %s", what, path,
                    strerror(number));
}

enum vxd_status vxd_file_write_all(const struct vxd_file_ops *ops, int file,
                                   const void *from, size_t n_bytes, uint64_t at,
                                   const char *path, struct vxd_err *err)
{
    const uint8_t *next = from;

    while (n_bytes > 0) {
        int64_t n = ops->write(ops->user, file, next, n_bytes, at);

        if (n == -EINTR) {
            continue;
        }
        if (n <= 0) { /* a write of nothing would go on for ever */
            return vxd_file_fail(err, n < 0 ? n : -EIO, "write", path);
        }
        next += n;
        at += (uint64_t)n;
        n_bytes -= (size_t)n;
    }
    return VXD_OK;
}

enum vxd_status vxd_file_read_all(const struct vxd_file_ops *ops, int file, void *to,
                                  size_t n_bytes, uint64_t at, const char *path,
                                  struct vxd_err *err)
{
    uint8_t *next = to;

    while (n_bytes > 0) {
        int64_t n = ops->read(ops->user, file, next, n_bytes, at);

        if (n == -EINTR) {
            continue;
        }
        if (n < 0) {
            return vxd_file_fail(err, n, "read", path);
        }
        if (n == 0) {
            return vxd_fail(err, VXD_DATA_LOSS, "data_dir",
                            "%.140s ends at byte %llu, %zu too soon", path,
                            (unsigned long long)at, n_bytes);
        }
        next += n;
        at += (uint64_t)n;
        n_bytes -= (size_t)n;
    }
    return VXD_OK;
}

enum vxd_status vxd_file_sync_directory(const struct vxd_file_ops *ops, const char *path,
                                        struct vxd_err *err)
{
    int result = ops->sync_directory(ops->user, path);

    return result == 0 ? VXD_OK : vxd_file_fail(err, result, "sync", path);
}
