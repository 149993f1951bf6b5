// SPDX-License-Identifier: Apache-2.0
#include "client/c/call/out_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static enum vxd_status failed(const char *path, int error, struct vxd_err *err)
{
    return vxd_fail(
        err, error == EACCES || error == EPERM ? VXD_PERMISSION_DENIED : VXD_UNAVAILABLE,
        "path", "%s: %s", path, strerror(error));
}

enum vxd_status vxd_out_file_open(const char *path, struct vxd_out_file *out,
                                  struct vxd_err *err)
{
    static const char suffix[] = ".part";
    size_t n_beside;

    *out = (struct vxd_out_file){.path = path};
    if (path == NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "path", "is NULL");
    }
    n_beside = strlen(path) + sizeof suffix;
    out->beside = malloc(n_beside);
    if (out->beside == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a file's name");
    }
    (void)snprintf(out->beside, n_beside, "%s%s", path, suffix);
    out->file = fopen(out->beside, "wbe");
    return out->file != NULL ? VXD_OK : failed(path, errno, err);
}

enum vxd_status vxd_out_file_write(struct vxd_out_file *file, const void *bytes,
                                   size_t n_bytes, struct vxd_err *err)
{
    return fwrite(bytes, 1, n_bytes, file->file) == n_bytes
               ? VXD_OK
               : failed(file->path, errno, err);
}

enum vxd_status vxd_out_file_end(struct vxd_out_file *file, enum vxd_status status,
                                 struct vxd_err *err)
{
    if (file->file != NULL) {
        if (fclose(file->file) != 0 && status == VXD_OK) {
            status = failed(file->path, errno, err);
        }
        if (status == VXD_OK && rename(file->beside, file->path) != 0) {
            status = failed(file->path, errno, err);
        }
        if (status != VXD_OK) {
            (void)unlink(file->beside);
        }
    }
    free(file->beside);
    *file = (struct vxd_out_file){0};
    return status;
}
