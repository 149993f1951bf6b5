// SPDX-License-Identifier: Apache-2.0
/* flock, not fcntl: it belongs to the open file, so that closing some other descriptor of
 * the same file does not lose it. The process id in the file is for the error message only. */
#include "server/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/config.h"

static enum vxd_status fail_held(int fd, const char *directory, struct vxd_err *err)
{
    char pid[32];
    ssize_t n = pread(fd, pid, sizeof pid - 1, 0);

    pid[n > 0 ? n : 0] = '\0';
    pid[strcspn(pid, "\n")] = '\0';
    return vxd_fail(err, VXD_FAILED_PRECONDITION, "data_dir",
                    "%s is in use by another daemon%s%s", directory,
                    pid[0] != '\0' ? ", process " : "", pid);
}

enum vxd_status vxd_lock_take(const char *directory, int *fd, struct vxd_err *err)
{
    char path[VXD_PATH_BYTES + 8];
    char pid[32];
    int lock;
    int n;

    if (mkdir(directory, 0750) != 0 && errno != EEXIST) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "data_dir", "cannot make %s: %s",
                        directory, strerror(errno));
    }
    (void)snprintf(path, sizeof path, "%s/lock", directory);
    lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0640);
    if (lock < 0) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "data_dir", "cannot open %s: %s", path,
                        strerror(errno));
    }
    if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
        enum vxd_status status =
            errno == EWOULDBLOCK ? fail_held(lock, directory, err)
                                 : vxd_fail(err, VXD_INVALID_ARGUMENT, "data_dir",
                                            "cannot lock %s: %s", path, strerror(errno));

        (void)close(lock);
        return status;
    }
    n = snprintf(pid, sizeof pid, "%ld\n", (long)getpid());
    if (ftruncate(lock, 0) != 0 || pwrite(lock, pid, (size_t)n, 0) != n) {
        enum vxd_status status = vxd_fail(err, VXD_INVALID_ARGUMENT, "data_dir",
                                          "cannot write %s: %s", path, strerror(errno));

        (void)close(lock);
        return status;
    }
    *fd = lock;
    return VXD_OK;
}

void vxd_lock_release(int fd)
{
    if (fd >= 0) {
        (void)close(fd);
    }
}
