// SPDX-License-Identifier: Apache-2.0
/* What both commands take. */
#ifndef VXD_CLIENT_VOXELCTL_RENDER_RENDER_JOB_H
#define VXD_CLIENT_VOXELCTL_RENDER_RENDER_JOB_H

#include "client/voxelctl/generated/render_args.h"

struct ctl_render_job {
    const struct ctl_manual *manual;
    struct ctl_render_args args;
    struct voxeld_scene_render_request request;
    struct ctl_place place;
};

/* Parses the command line into a job that has a manual. True when the command is to end with
 * *result, after a message, or a call with --request. */
bool ctl_render_take(struct ctl_globals *globals, int argc, char **argv,
                     struct ctl_render_job *job, int *result);

/* Calls the server. CTL_FAILED after a message. */
int ctl_render_call(const struct ctl_globals *globals, const struct ctl_render_job *job,
                    struct voxeld_picture **out);

#endif
