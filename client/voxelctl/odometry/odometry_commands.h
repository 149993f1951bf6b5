// SPDX-License-Identifier: Apache-2.0
/* What the subcommands of voxelctl odometry share: each prints what its generated manual promises. */
#ifndef VXD_CLIENT_VOXELCTL_ODOMETRY_ODOMETRY_COMMANDS_H
#define VXD_CLIENT_VOXELCTL_ODOMETRY_ODOMETRY_COMMANDS_H

#include "client/voxelctl/generated/odometry_args.h"

/* Why a scan is lost, in words; static. */
const char *ctl_odometry_reason(enum voxeld_odometry_reason reason);

/* --- odometry_folder.c ----------------------------------------------------------------- */

/* The scan files of a folder in order of their names. */
struct ctl_scans {
    char **paths;
    size_t n;
};

/* Lists them; CTL_FAILED after a message. Clear it in any case. */
int ctl_scans_list(const char *folder, struct ctl_scans *out);
void ctl_scans_clear(struct ctl_scans *scans);

/* One scan's pose, found or predicted. */
struct ctl_scan_pose {
    double stamp_s;
    bool is_lost;
    struct voxeld_pose pose;
};

struct ctl_scan_poses {
    struct ctl_scan_pose *poses;
    size_t n;
};

/* Writes poses in TUM's format (stamp x y z qx qy qz qw), or in KITTI's (the upper three rows of the
 * matrix). CTL_FAILED after a message. */
int ctl_scan_poses_write_tum(const char *path, struct ctl_scan_poses *poses);
int ctl_scan_poses_write_kitti(const char *path, struct ctl_scan_poses *poses);

#endif
