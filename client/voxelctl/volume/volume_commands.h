// SPDX-License-Identifier: Apache-2.0
/* What the subcommands of voxelctl volume share: each prints what its generated manual promises. */
#ifndef VXD_CLIENT_VOXELCTL_VOLUME_VOLUME_COMMANDS_H
#define VXD_CLIENT_VOXELCTL_VOLUME_VOLUME_COMMANDS_H

#include "client/voxelctl/generated/volume_args.h"

/* Runs one subcommand and returns the exit status. */
typedef int ctl_volume_run_fn(struct voxeld_client *client,
                              const struct ctl_globals *globals,
                              const struct ctl_volume_args *args);

ctl_volume_run_fn ctl_volume_create;
ctl_volume_run_fn ctl_volume_drop;
ctl_volume_run_fn ctl_volume_list;
ctl_volume_run_fn ctl_volume_info;
ctl_volume_run_fn ctl_volume_integrate;
ctl_volume_run_fn ctl_volume_scan;
ctl_volume_run_fn ctl_volume_extract;
ctl_volume_run_fn ctl_volume_render;
ctl_volume_run_fn ctl_volume_clear;
ctl_volume_run_fn ctl_volume_run;

/* Reads a camera's matrix, or one line fx fy cx cy and 0, 4, 5 or 8 numbers of distortion; sides
 * stay 0. CTL_FAILED after a message. */
int ctl_volume_read_camera(const char *path, struct voxeld_volume_camera *out);

/* Parses "X,Y,Z,X,Y,Z"; CTL_USAGE after a message. NULL is no box. */
int ctl_volume_parse_box(const char *text, bool *has_box, struct voxeld_volume_box *out);

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
    struct voxeld_pose pose;
};

struct ctl_folder {
    struct ctl_shot *shots;
    size_t n;
    bool is_tum; /* depths are in 1/5000 m */
};

/* Lists the images of a folder in 7-Scenes' or TUM's layout that have a pose; others are named on
 * standard error. poses may be NULL. CTL_FAILED after a message; clear it in any case. */
int ctl_folder_read(const char *path, const char *poses, struct ctl_folder *out);
void ctl_folder_clear(struct ctl_folder *folder);

#endif
