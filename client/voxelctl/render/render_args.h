// SPDX-License-Identifier: Apache-2.0
/* The options of both commands. */
#ifndef VXD_CLIENT_VOXELCTL_RENDER_RENDER_ARGS_H
#define VXD_CLIENT_VOXELCTL_RENDER_RENDER_ARGS_H

#include "client/c/include/voxeld_render.h"
#include "client/voxelctl/cli/cli.h"

/* The manual of the options, for both. */
#define CTL_RENDER_OPTIONS_HELP                                                          \
    "  --eye X,Y,Z          where the camera is, metres; goes with --look\n"             \
    "  --look X,Y,Z         the point in the middle of the picture\n"                    \
    "                       (without both: a view of all that is occupied)\n"            \
    "  --up X,Y,Z           points upwards in the picture (0,0,1)\n"                     \
    "  --fov DEGREES        between the top and the bottom edge (50)\n"                  \
    "  --size WxH           pixels\n"                                                    \
    "  --camera KIND        pinhole, orthographic or equirectangular\n"                  \
    "  --view-height M      orthographic: metres between the top and bottom edge\n"      \
    "  --mode MODE          colour, height, depth, normal, material, ao, path, age "     \
    "(by\n"                                                                              \
    "                       who changed it last) or label (without light)\n"             \
    "  --samples N          rays of a pixel, for smooth edges (1; of path 16)\n"         \
    "  --ao N               rays to find how open each place is (0; of ao 16)\n"         \
    "  --bounces N          path: how often light is followed (3)\n"                     \
    "  --no-shadows         the sun throws none\n"                                       \
    "  --variation N        0 to 1: by how much colours vary from voxel to voxel\n"      \
    "  --detail PIXELS      smaller cubes are drawn as one voxel\n"                      \
    "  --clip X,Y,Z,X,Y,Z   only what is in this box\n"

struct ctl_render_args {
    struct voxeld_scene_render_request request;
    uint64_t given;
    char scene[CTL_NAME_BYTES]; /* without its version */
};

/* Parses the command line; the words begin at argv[optind]. True when the command is to end with
 * *result, after a message. */
bool ctl_render_parse(struct ctl_globals *globals, const struct ctl_command *command,
                      int argc, char **argv, int n_words, struct ctl_render_args *args,
                      int *result);

/* Calls the server. CTL_FAILED after a message. */
int ctl_render_call(const struct ctl_globals *globals, const struct ctl_render_args *args,
                    struct voxeld_picture **out);

#endif
