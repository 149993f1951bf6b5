// SPDX-License-Identifier: Apache-2.0
/* What the subcommands of voxelctl volume share: each prints what its generated manual promises. */
#ifndef VXD_CLIENT_VOXELCTL_VOLUME_VOLUME_COMMANDS_H
#define VXD_CLIENT_VOXELCTL_VOLUME_VOLUME_COMMANDS_H

#include "client/voxelctl/generated/volume_args.h"
#include "client/voxelctl/volume/voxelctl_volume.h"

/* Whether a path ends as files of meshes do: .ply, .glb or .obj. */
bool ctl_volume_is_mesh(const char *path);

/* Extracts the surface, in parts, and writes it to such a file. */
int ctl_volume_write_surface(struct voxeld_client *client,
                             const struct voxeld_volume_extract_request *request,
                             const char *path, uint64_t *n_vertices,
                             uint64_t *n_triangles);

/* --- volume_folder.c ------------------------------------------------------------------- */

/* One image of a folder. */
struct ctl_shot {
    char *depth;
    char *colour; /* NULL: there is none */
    double stamp; /* seconds; of 7-Scenes the frame's number among all */
    bool has_pose;
    bool is_found; /* by tracking */
    struct voxeld_pose pose;
    struct voxeld_pose found;
};

struct ctl_folder {
    struct ctl_shot *shots;
    size_t n;
    bool is_tum; /* depths are in 1/5000 m */
};

/* Lists the images of a folder in 7-Scenes' or TUM's layout, with their poses where they have any.
 * poses may be NULL. CTL_FAILED after a message; clear it in any case. */
int ctl_folder_read(const char *path, const char *poses, struct ctl_folder *out);
void ctl_folder_clear(struct ctl_folder *folder);

/* How many images have a pose. */
size_t ctl_folder_n_posed(const struct ctl_folder *folder);

/* Takes out the images without a pose, and names them on standard error. */
void ctl_folder_keep_posed(struct ctl_folder *folder);

/* --- volume_track.c -------------------------------------------------------------------- */

/* What a run sends and counts. */
struct ctl_run {
    struct voxeld_client *client;
    struct voxeld_volume_integrate_request
        request; /* of each image, but for what it is of */
    enum voxeld_volume_track_method method;
    double retry_s;
    size_t n_images; /* that are in the volume */
    size_t n_lost;
    double engine_ms;
    uint64_t n_blocks;
};

/* Reads the method's name; NULL is the default. CTL_USAGE after a message. */
int ctl_volume_parse_method(const char *text, enum voxeld_volume_track_method *out);

/* Tracks one in `every` image and adds it where it was found; the first one is where its pose is,
 * if it has one. CTL_FAILED after a message; lost images are named, and are no failure. */
int ctl_volume_track_all(struct ctl_run *run, struct ctl_folder *folder, size_t every);

/* --- volume_trajectory.c --------------------------------------------------------------- */

/* Rms errors of poses that were found against known ones. */
struct ctl_errors {
    size_t n;             /* poses; 0: none is known */
    double ate_m;         /* of positions, as they are */
    double ate_aligned_m; /* the same, rigidly moved onto the known ones */
    double rpe_m;         /* of the movement from one to the next */
    double rpe_deg;
};

/* Writes the poses found in TUM's format. CTL_FAILED after a message. */
int ctl_trajectory_write(const char *path, struct ctl_folder *folder);

/* Those of the poses found, and of a camera that stands still at the first known one. CTL_FAILED
 * after a message. */
int ctl_trajectory_errors(const struct ctl_folder *folder, struct ctl_errors *found,
                          struct ctl_errors *still);

#endif
