// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/voxelctl/cli/cli.h"

/* Opens `name`, writes it and closes it. */
static enum vxd_status write_to(const char *name, ctl_write_fn *write, void *context,
                                struct vxd_err *err)
{
    FILE *file = fopen(name, "wbe");
    enum vxd_status status;

    if (file == NULL) {
        return vxd_fail(err, VXD_UNAVAILABLE, "out", "%s", strerror(errno));
    }
    status = write(file, context, err);
    if (fclose(file) != 0 && status == VXD_OK) {
        status = vxd_fail(err, VXD_UNAVAILABLE, "out", "%s", strerror(errno));
    }
    return status;
}

static enum vxd_status write_beside(const char *path, ctl_write_fn *write, void *context,
                                    struct vxd_err *err)
{
    static const char suffix[] = ".part";
    size_t n = strlen(path) + sizeof suffix;
    char *beside = malloc(n);
    enum vxd_status status;

    if (beside == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "out", "no memory");
    }
    (void)snprintf(beside, n, "%s%s", path, suffix);
    status = write_to(beside, write, context, err);
    if (status == VXD_OK && rename(beside, path) != 0) {
        status = vxd_fail(err, VXD_UNAVAILABLE, "out", "%s", strerror(errno));
    }
    if (status != VXD_OK) {
        (void)unlink(beside);
    }
    free(beside);
    return status;
}

/* Renaming over a device, a pipe or a link would replace it with a file: root could
 * lose /dev/null that way. */
static bool may_replace(const char *path)
{
    struct stat there;

    return lstat(path, &there) != 0 ? errno == ENOENT : S_ISREG(there.st_mode);
}

int ctl_write_file(const char *path, ctl_write_fn *write, void *context)
{
    struct ctl_progress *progress = ctl_progress_begin_writing(path);
    bool is_stdout = strcmp(path, "-") == 0;
    struct vxd_err err = {0};
    enum vxd_status status;

    if (is_stdout) {
        status = write(stdout, context, &err);
    } else {
        status = may_replace(path) ? write_beside(path, write, context, &err)
                                   : write_to(path, write, context, &err);
    }
    ctl_progress_end(progress);
    if (is_stdout && status == VXD_OK) {
        return ctl_flush();
    }

    if (status != VXD_OK) {
        (void)ctl_error("cannot write %s: %s", path, err.message);
        return CTL_FAILED;
    }
    return CTL_OK;
}
