// SPDX-License-Identifier: Apache-2.0
/* Point cloud files as layouts over bytes: a reader parses the head of a file and says
 * where the numbers of a point lie. Used by the client library, by voxelctl, and by the
 * daemon for files sent as HTTP bodies. */
#ifndef VXD_CLIENT_FILES_CLOUD_FILE_H
#define VXD_CLIENT_FILES_CLOUD_FILE_H

#include "proto/base/base.h"

#define VXD_FILE_MAX_FIELDS 64
#define VXD_FILE_NAME_BYTES 64

struct vxd_file_field {
    char name[VXD_FILE_NAME_BYTES];
    uint32_t offset; /* bytes from the start of the record */
    enum vxd_dtype dtype;
    double scale; /* value = raw * scale + bias */
    double bias;
};

/* A parsed file. data points into the caller's bytes where the file already holds plain
 * little-endian records (KITTI, nuScenes, .npy, LAS, binary PCD and PLY), otherwise into
 * `owned`. */
struct vxd_cloud_file {
    struct vxd_file_field fields[VXD_FILE_MAX_FIELDS];
    size_t n_fields;
    uint32_t point_step; /* 1 to 65535 */
    size_t n_points;
    const uint8_t *data; /* n_points * point_step bytes, little-endian records */
    uint8_t *owned;      /* freed by vxd_cloud_file_clear; NULL when data is borrowed */
};

/* Names of the formats, for --format and ?format=, NULL-terminated:
 * "pcd", "ply", "npy", "npz", "las", "kitti" (float32 x y z intensity), "nuscenes" (float32
 * x y z intensity ring). */
const char *const *vxd_cloud_file_formats(void);

/* Format of a file by its name's ending, NULL when only the user can know (".bin"). */
const char *vxd_cloud_file_format_of(const char *path);

/* Parses a whole file held in memory.
 *
 * in      bytes         borrowed; must outlive *out when data points into it
 *         budget_bytes  most that may be allocated for `owned`
 * errors  INVALID_ARGUMENT    unknown format; a malformed file: what, and at which byte or
 *                             line; no x, y, z among its fields
 *         RESOURCE_EXHAUSTED  the decoded points would exceed budget_bytes
 * On error *out is empty and owns nothing. */
enum vxd_status vxd_cloud_file_parse(const char *format, const uint8_t *bytes,
                                     size_t n_bytes, size_t budget_bytes,
                                     struct vxd_cloud_file *out, struct vxd_err *err);

/* Frees what *file owns and empties it; an empty one is fine. */
void vxd_cloud_file_clear(struct vxd_cloud_file *file);

#endif
