// SPDX-License-Identifier: Apache-2.0
#include "client/files/files.h"

#include <stdlib.h>
#include <string.h>

#include "client/files/reader.h"

struct reader {
    const char *format;
    const char *ending; /* NULL: only the user can know */
    enum vxd_status (*parse)(const uint8_t *bytes, size_t n_bytes, size_t budget_bytes,
                             struct vxd_cloud_file *out, struct vxd_err *err);
};

static const struct reader readers[] = {
    {"pcd", ".pcd", vxd_pcd_parse},         {"ply", ".ply", vxd_ply_parse},
    {"npy", ".npy", vxd_npy_parse},         {"npz", ".npz", vxd_npz_parse},
    {"las", ".las", vxd_las_parse},         {"kitti", NULL, vxd_kitti_parse},
    {"nuscenes", NULL, vxd_nuscenes_parse},
};

enum {
    N_READERS = sizeof readers / sizeof readers[0]
};

const char *const *vxd_cloud_file_formats(void)
{
    static const char *const formats[] = {"pcd", "ply",   "npy",      "npz",
                                          "las", "kitti", "nuscenes", NULL};

    _Static_assert(sizeof formats / sizeof formats[0] == N_READERS + 1, "as many names");
    return formats;
}

/* Endings are compared without regard to ASCII case: "SCAN.PCD". */
static bool ends_with(const char *path, const char *ending)
{
    size_t n_path = strlen(path);
    size_t n_ending = strlen(ending);

    if (n_path <= n_ending) {
        return false;
    }
    for (size_t i = 0; i < n_ending; i++) {
        char c = path[n_path - n_ending + i];

        if (c >= 'A' && c <= 'Z') {
            c = (char)(c - 'A' + 'a');
        }
        if (c != ending[i]) {
            return false;
        }
    }
    return true;
}

const char *vxd_cloud_file_format_of(const char *path)
{
    for (size_t i = 0; i < N_READERS; i++) {
        if (readers[i].ending != NULL && ends_with(path, readers[i].ending)) {
            return readers[i].format;
        }
    }
    return NULL;
}

static bool has_field(const struct vxd_cloud_file *file, const char *name)
{
    for (size_t i = 0; i < file->n_fields; i++) {
        if (strcmp(file->fields[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

static enum vxd_status check_axes(const struct vxd_cloud_file *file, const char *format,
                                  struct vxd_err *err)
{
    static const char *const axes[] = {"x", "y", "z"};

    for (size_t i = 0; i < 3; i++) {
        if (!has_field(file, axes[i])) {
            return VXD_FILE_BAD(err, "%s: no field \"%s\" among the file's %zu fields",
                                format, axes[i], file->n_fields);
        }
    }
    return VXD_OK;
}

enum vxd_status vxd_cloud_file_parse(const char *format, const uint8_t *bytes,
                                     size_t n_bytes, size_t budget_bytes,
                                     struct vxd_cloud_file *out, struct vxd_err *err)
{
    enum vxd_status status;

    memset(out, 0, sizeof *out);
    if (bytes == NULL || n_bytes == 0) {
        bytes = (const uint8_t *)"";
        n_bytes = 0;
    }
    for (size_t i = 0; i < N_READERS; i++) {
        if (format == NULL || strcmp(readers[i].format, format) != 0) {
            continue;
        }
        status = readers[i].parse(bytes, n_bytes, budget_bytes, out, err);
        if (status == VXD_OK) {
            status = check_axes(out, format, err);
        }
        if (status != VXD_OK) {
            vxd_cloud_file_clear(out);
        }
        return status;
    }
    return vxd_fail(err, VXD_INVALID_ARGUMENT, "format",
                    "\"%.32s\" is no known format; known: pcd, ply, npy, npz, las, "
                    "kitti, nuscenes",
                    format != NULL ? format : "");
}

void vxd_cloud_file_clear(struct vxd_cloud_file *file)
{
    free(file->owned);
    memset(file, 0, sizeof *file);
}
