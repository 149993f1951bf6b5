// SPDX-License-Identifier: Apache-2.0
/* A folder of scans, and the files of their poses. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "client/voxelctl/odometry/odometry_commands.h"

enum {
    MAX_SCANS = 1000000
};

static bool is_scan(const char *name)
{
    static const char *const endings[] = {".pcd", ".ply", ".npy", ".npz", ".las", ".bin"};

    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        if (ctl_has_ending(name, endings[i])) {
            return true;
        }
    }
    return false;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool add_path(struct ctl_scans *scans, size_t *capacity, const char *folder,
                     const char *name)
{
    size_t n_bytes = strlen(folder) + strlen(name) + 2;

    if (scans->n == *capacity) {
        size_t larger = *capacity > 0 ? 2 * *capacity : 256;
        char **paths = realloc(scans->paths, larger * sizeof *paths);

        if (paths == NULL || larger > MAX_SCANS) {
            scans->paths = paths != NULL ? paths : scans->paths;
            return false;
        }
        scans->paths = paths;
        *capacity = larger;
    }
    scans->paths[scans->n] = malloc(n_bytes);
    if (scans->paths[scans->n] == NULL) {
        return false;
    }
    (void)snprintf(scans->paths[scans->n++], n_bytes, "%s/%s", folder, name);
    return true;
}

int ctl_scans_list(const char *folder, struct ctl_scans *out)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    size_t capacity = 0;
    bool fits = true;

    *out = (struct ctl_scans){0};
    if (dir == NULL) {
        return ctl_error("%s: no folder that can be read", folder);
    }
    while (fits && (entry = readdir(dir)) != NULL) {
        if (is_scan(entry->d_name)) {
            fits = add_path(out, &capacity, folder, entry->d_name);
        }
    }
    (void)closedir(dir);
    if (!fits) {
        return ctl_error("%s: too many scans", folder);
    }
    if (out->n == 0) {
        return ctl_error("%s: has no scans: files .pcd, .ply, .npy, .npz, .las or "
                         ".bin",
                         folder);
    }
    qsort(out->paths, out->n, sizeof *out->paths, by_name);
    return CTL_OK;
}

void ctl_scans_clear(struct ctl_scans *scans)
{
    for (size_t i = 0; i < scans->n; i++) {
        free(scans->paths[i]);
    }
    free(scans->paths);
    *scans = (struct ctl_scans){0};
}

static enum vxd_status end_of(FILE *file, struct vxd_err *err)
{
    return ferror(file) == 0
               ? VXD_OK
               : vxd_fail(err, VXD_UNAVAILABLE, "poses", "could not be written");
}

static enum vxd_status write_tum(FILE *file, void *context, struct vxd_err *err)
{
    const struct ctl_scan_poses *poses = context;

    (void)fputs("# stamp x y z qx qy qz qw\n", file);
    for (size_t i = 0; i < poses->n; i++) {
        const struct ctl_scan_pose *one = &poses->poses[i];
        const double *t = one->pose.translation_m;
        const double *q = one->pose.rotation;

        (void)fprintf(file, "%.6f %.9f %.9f %.9f %.9f %.9f %.9f %.9f\n", one->stamp_s,
                      t[0], t[1], t[2], q[0], q[1], q[2], q[3]);
    }
    return end_of(file, err);
}

static enum vxd_status write_kitti(FILE *file, void *context, struct vxd_err *err)
{
    const struct ctl_scan_poses *poses = context;

    for (size_t i = 0; i < poses->n; i++) {
        const double *t = poses->poses[i].pose.translation_m;
        const double *q = poses->poses[i].pose.rotation;
        const double x = q[0];
        const double y = q[1];
        const double z = q[2];
        const double w = q[3];

        (void)fprintf(file,
                      "%.12g %.12g %.12g %.12g %.12g %.12g %.12g %.12g %.12g %.12g %.12g "
                      "%.12g\n",
                      1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w),
                      t[0], 2 * (x * y + z * w), 1 - 2 * (x * x + z * z),
                      2 * (y * z - x * w), t[1], 2 * (x * z - y * w), 2 * (y * z + x * w),
                      1 - 2 * (x * x + y * y), t[2]);
    }
    return end_of(file, err);
}

int ctl_scan_poses_write_tum(const char *path, struct ctl_scan_poses *poses)
{
    return ctl_write_file(path, write_tum, poses);
}

int ctl_scan_poses_write_kitti(const char *path, struct ctl_scan_poses *poses)
{
    return ctl_write_file(path, write_kitti, poses);
}
