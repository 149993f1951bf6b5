// SPDX-License-Identifier: Apache-2.0
#include "server/durable/maintenance/copy_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

enum {
    COPY_BYTES = 1 << 20
};

static enum vxd_status copy_bytes(const struct vxd_file_ops *ops, int from, int to,
                                  const char *path, uint8_t *bytes, struct vxd_err *err)
{
    uint64_t at = 0;
    enum vxd_status status = VXD_OK;
    int result;

    for (;;) {
        int64_t n = ops->read(ops->user, from, bytes, COPY_BYTES, at);

        if (n < 0) {
            VXD_TRY(vxd_file_fail(err, n, "copy", path));
        }
        if (n == 0) {
            break;
        }
        VXD_TRY(vxd_file_write_all(ops, to, bytes, (size_t)n, at, path, err));
        at += (uint64_t)n;
    }
    result = ops->sync(ops->user, to);
    if (result != 0) {
        status = vxd_file_fail(err, result, "sync", path);
    }
out:
    return status;
}

enum vxd_status vxd_copy_file(const struct vxd_file_ops *ops, const char *from,
                              const char *to, struct vxd_err *err)
{
    uint8_t *bytes = malloc(COPY_BYTES);
    int source = -1;
    int copy = -1;
    enum vxd_status status = VXD_OK;

    if (bytes == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory to copy with");
    }
    source = ops->open(ops->user, from, O_RDONLY, 0);
    if (source < 0) {
        VXD_TRY(vxd_file_fail(err, source, "open", from));
    }
    copy = ops->open(ops->user, to, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (copy < 0) {
        VXD_TRY(vxd_file_fail(err, copy, "make", to));
    }
    VXD_TRY(copy_bytes(ops, source, copy, to, bytes, err));
out:
    if (copy >= 0) {
        (void)ops->close(ops->user, copy);
    }
    if (source >= 0) {
        (void)ops->close(ops->user, source);
    }
    free(bytes);
    return status;
}

enum vxd_status vxd_link_file(const struct vxd_file_ops *ops, const char *from,
                              const char *to, bool *is_linked, struct vxd_err *err)
{
    int result = ops->link(ops->user, from, to);

    *is_linked = result == 0;
    switch (result) {
    case 0:
        return VXD_OK;
    case -EEXIST:
        return vxd_fail(err, VXD_ALREADY_EXISTS, "path", "%.200s is there already", to);
    case -EXDEV:
    case -EPERM:
    case -EMLINK:
    case -EOPNOTSUPP:
        return vxd_copy_file(ops, from, to, err);
    default:
        return vxd_file_fail(err, result, "link", to);
    }
}
