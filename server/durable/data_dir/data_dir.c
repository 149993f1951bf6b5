// SPDX-License-Identifier: Apache-2.0
#include "server/durable/data_dir/data_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static const char temporary_end[] = ".new"; /* of files that are being written */

static enum vxd_status fail_held(const struct vxd_file_ops *ops, int file,
                                 const char *path, struct vxd_err *err)
{
    char pid[32];
    int64_t n = ops->read(ops->user, file, pid, sizeof pid - 1, 0);

    pid[n > 0 ? n : 0] = '\0';
    pid[strspn(pid, "0123456789")] = '\0';
    return vxd_fail(err, VXD_FAILED_PRECONDITION, "data_dir",
                    "%.140s is in use by another daemon%s%s", path,
                    pid[0] != '\0' ? ", process " : "", pid);
}

static enum vxd_status refuse(struct vxd_err *err, const char *what, const char *path,
                              int result)
{
    if (result == -ENOSPC || result == -EIO || result == -EDQUOT) {
        return vxd_file_fail(err, result, what, path);
    }
    return vxd_fail(err, VXD_INVALID_ARGUMENT, "data_dir", "cannot %s %.140s: %s", what,
                    path, strerror(-result));
}

/* Its parent, which holds the name, is synced even where it was there: whoever made it may have
 * been killed before, or the sync have failed. A parent that is nobody's to read was left so by
 * whoever made the directory. A path without a slash lies in ".". */
static enum vxd_status make_root(const struct vxd_file_ops *ops, const char *path,
                                 struct vxd_err *err)
{
    int made = ops->make_directory(ops->user, path, 0700);
    char parent[VXD_DATA_DIR_BYTES];
    char *slash;
    int result;

    if (made != 0 && made != -EEXIST) {
        return refuse(err, "make", path, made);
    }
    (void)snprintf(parent, sizeof parent, "%s", path);
    slash = strrchr(parent, '/');
    if (slash == NULL) {
        (void)snprintf(parent, sizeof parent, ".");
    } else {
        slash[slash == parent ? 1 : 0] = '\0';
    }
    result = ops->sync_directory(ops->user, parent);
    if (result == 0 || (made == -EEXIST && (result == -EACCES || result == -EPERM))) {
        return VXD_OK;
    }
    return vxd_file_fail(err, result, "sync", parent);
}

/* Synced even where all was there, as above. */
static enum vxd_status make_contents(const struct vxd_data_dir *dir, const char *folder,
                                     struct vxd_err *err)
{
    int result = dir->ops->make_directory(dir->ops->user, folder, 0700);

    if (result != 0 && result != -EEXIST) {
        return refuse(err, "make", folder, result);
    }
    return vxd_file_sync_directory(dir->ops, dir->path, err);
}

static enum vxd_status take_lock(const struct vxd_file_ops *ops, const char *path,
                                 int *out, struct vxd_err *err)
{
    char name[VXD_DURABLE_PATH_BYTES];
    char pid[32];
    enum vxd_status status = VXD_OK;
    int lock, n, result;

    (void)snprintf(name, sizeof name, "%s/lock", path);
    lock = ops->open(ops->user, name, O_RDWR | O_CREAT, 0600);
    if (lock < 0) {
        return refuse(err, "open", name, lock);
    }
    result = ops->lock(ops->user, lock);
    if (result != 0) {
        status = result == -EWOULDBLOCK ? fail_held(ops, lock, path, err)
                                        : refuse(err, "lock", name, result);
        goto out;
    }
    /* For the error message above only, so nobody syncs it. */
    n = snprintf(pid, sizeof pid, "%ld\n", (long)getpid());
    result = ops->truncate(ops->user, lock, 0);
    if (result != 0) {
        VXD_TRY(refuse(err, "write", name, result));
    }
    status = vxd_file_write_all(ops, lock, pid, (size_t)n, 0, name, err);
    status = status == VXD_RESOURCE_EXHAUSTED ? VXD_OK : status; /* the disk is full */
out:
    if (status != VXD_OK) {
        (void)ops->close(ops->user, lock);
        return status;
    }
    *out = lock;
    return VXD_OK;
}

struct sweep {
    const struct vxd_file_ops *ops;
    const char *folder;
};

static void sweep_entry(void *arg, const char *name)
{
    const struct sweep *sweep = arg;
    char path[VXD_DURABLE_PATH_BYTES + 256];
    size_t n = strlen(name);

    if (n >= sizeof temporary_end &&
        strcmp(name + n - (sizeof temporary_end - 1), temporary_end) == 0) {
        (void)snprintf(path, sizeof path, "%s/%s", sweep->folder, name);
        (void)sweep->ops->unlink(sweep->ops->user, path);
    }
}

enum vxd_status vxd_data_dir_open(const struct vxd_file_ops *ops, const char *path,
                                  struct vxd_data_dir *out, struct vxd_err *err)
{
    struct vxd_data_dir dir = {.ops = ops != NULL ? ops : vxd_file_ops_system(),
                               .lock = -1};
    char folder[VXD_DURABLE_PATH_BYTES];
    struct sweep sweep = {.ops = dir.ops, .folder = folder};
    size_t n = strlen(path);
    enum vxd_status status;

    while (n > 1 && path[n - 1] == '/') {
        n--;
    }
    if (n == 0 || n >= sizeof dir.path) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "data_dir",
                        "must have 1 to %zu bytes, has %zu", sizeof dir.path - 1, n);
    }
    memcpy(dir.path, path, n);
    (void)snprintf(folder, sizeof folder, "%s/snapshots", dir.path);
    VXD_TRY(make_root(dir.ops, dir.path, err));
    VXD_TRY(take_lock(dir.ops, dir.path, &dir.lock, err));
    VXD_TRY(make_contents(&dir, folder, err));
    (void)dir.ops->list(dir.ops->user, folder, sweep_entry, &sweep);
    *out = dir;
    return VXD_OK;
out:
    vxd_data_dir_close(&dir);
    return status;
}

void vxd_data_dir_close(struct vxd_data_dir *dir)
{
    if (dir->lock >= 0) {
        (void)dir->ops->close(dir->ops->user, dir->lock);
        dir->lock = -1;
    }
}
