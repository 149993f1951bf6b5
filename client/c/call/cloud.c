// SPDX-License-Identifier: Apache-2.0
/* Reads point cloud files for the public API: it reads the whole file and wraps the
 * reader's layout. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/files/files.h"
#include "client/c/call/client_internal.h"

/* The limit is 4 GiB, or half of what a smaller machine can address. */
#define MAX_FILE_BYTES (SIZE_MAX > UINT32_MAX ? (size_t)UINT32_MAX + 1 : SIZE_MAX / 2)

enum {
    FIRST_BYTES = 65536
};

struct owner {
    struct voxeld_cloud cloud; /* first: what the user holds */
    struct voxeld_field fields[VXD_FILE_MAX_FIELDS];
    struct vxd_cloud_file file;
    uint8_t *bytes;
};

static enum vxd_status open_failed(const char *path, struct vxd_err *err)
{
    enum vxd_status code = errno == ENOENT                     ? VXD_NOT_FOUND
                           : errno == EACCES || errno == EPERM ? VXD_PERMISSION_DENIED
                                                               : VXD_UNAVAILABLE;

    return vxd_fail(err, code, "file", "%s: %s", path, strerror(errno));
}

/* How much to allocate first: the file's size and one byte to see its end, or a guess
 * where there is no size (pipes). */
static size_t first_capacity(int fd)
{
    struct stat info;

    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size >= 0 &&
        (uintmax_t)info.st_size < MAX_FILE_BYTES) {
        return (size_t)info.st_size + 1;
    }
    return FIRST_BYTES;
}

static enum vxd_status read_all(int fd, const char *path, uint8_t **out, size_t *n_bytes,
                                struct vxd_err *err)
{
    size_t capacity = first_capacity(fd);
    uint8_t *bytes = malloc(capacity);
    size_t used = 0;
    ssize_t n;

    if (bytes == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "file", "no memory for %s", path);
    }
    while ((n = read(fd, bytes + used, capacity - used)) != 0) {
        uint8_t *grown;

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            free(bytes);
            return open_failed(path, err);
        }
        used += (size_t)n;
        if (used < capacity) {
            continue;
        }
        grown = capacity < MAX_FILE_BYTES ? realloc(bytes, capacity * 2) : NULL;
        if (grown == NULL) {
            free(bytes);
            return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "file",
                            "%s is too large: over %zu bytes", path, capacity);
        }
        bytes = grown;
        capacity *= 2;
    }
    *out = bytes;
    *n_bytes = used;
    return VXD_OK;
}

static enum vxd_status read_path(const char *path, uint8_t **out, size_t *n_bytes,
                                 struct vxd_err *err)
{
    struct stat info;
    enum vxd_status status;
    int fd;

    if (strcmp(path, "-") == 0) {
        return read_all(STDIN_FILENO, "standard input", out, n_bytes, err);
    }
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return open_failed(path, err);
    }
    if (fstat(fd, &info) == 0 && S_ISDIR(info.st_mode)) {
        (void)close(fd);
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "file",
                        "%s: it is a folder; right is a file of it", path);
    }
    status = read_all(fd, path, out, n_bytes, err);
    (void)close(fd);
    return status;
}

/* Puts the file's name before what its reader found. */
static void name_file(const char *path, struct vxd_err *err)
{
    char found[sizeof err->message];

    (void)snprintf(found, sizeof found, "%s", err->message);
    (void)snprintf(err->message, sizeof err->message, "%.100s: %.130s",
                   strcmp(path, "-") == 0 ? "standard input" : path, found);
}

/* Whether it is a folder, which has no format. */
static bool is_folder(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static void wrap(struct owner *owner)
{
    const struct vxd_cloud_file *file = &owner->file;

    for (size_t i = 0; i < file->n_fields; i++) {
        owner->fields[i] = (struct voxeld_field){
            .name = file->fields[i].name,
            .offset = file->fields[i].offset,
            .dtype = (enum voxeld_dtype)file->fields[i].dtype,
            .scale = file->fields[i].scale,
            .bias = file->fields[i].bias,
            .count = 1,
        };
    }
    owner->cloud.fields = owner->fields;
    owner->cloud.n_fields = file->n_fields;
    owner->cloud.point_step = file->point_step;
    owner->cloud.data = file->data;
    owner->cloud.n_points = file->n_points;
}

enum voxeld_status voxeld_cloud_read_file(const char *path, const char *format,
                                          struct voxeld_cloud **out,
                                          struct voxeld_error *error)
{
    struct vxd_err err = {0};
    struct owner *owner = NULL;
    size_t n_bytes = 0;
    enum vxd_status status;

    *out = NULL;
    if (format == NULL) {
        format = vxd_cloud_file_format_of(path);
    }
    if (format == NULL && !is_folder(path)) {
        (void)vxd_fail(
            &err, VXD_INVALID_ARGUMENT, "format",
            "%s does not say by its name what it is; name the format: pcd, ply, "
            "npy, npz, las, kitti, nuscenes",
            path);
        return vxd_client_error(&err, "", error);
    }
    owner = calloc(1, sizeof *owner);
    if (owner == NULL) {
        (void)vxd_fail(&err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a cloud");
        return vxd_client_error(&err, "", error);
    }
    VXD_TRY(read_path(path, &owner->bytes, &n_bytes, &err));
    status = vxd_cloud_file_parse(format, owner->bytes, n_bytes, MAX_FILE_BYTES,
                                  &owner->file, &err);
    if (status != VXD_OK) {
        name_file(path, &err);
        goto out;
    }
    if (owner->file.owned != NULL) {
        free(owner->bytes); /* the points were decoded, so the file's own bytes are not
                             * needed */
        owner->bytes = NULL;
    }
    wrap(owner);
    *out = &owner->cloud;
    return VOXELD_OK;
out:
    voxeld_cloud_free(&owner->cloud);
    return vxd_client_error(&err, "", error);
}

void voxeld_cloud_free(struct voxeld_cloud *cloud)
{
    struct owner *owner = (struct owner *)cloud;

    if (owner != NULL) {
        vxd_cloud_file_clear(&owner->file);
        free(owner->bytes);
        free(owner);
    }
}
