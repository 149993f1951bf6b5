// SPDX-License-Identifier: Apache-2.0
#include "client/voxelctl/render/render_job.h"

#include <string.h>

#include "client/voxelctl/messages/messages.h"

bool ctl_render_take(struct ctl_globals *globals, int argc, char **argv,
                     struct ctl_render_job *job, int *result)
{
    struct voxeld_scene_render_request *request = &job->request;
    const struct ctl_render_args *args = &job->args;

    if (!ctl_render_parse(globals, job->manual, argc, argv, &job->args, result)) {
        return true;
    }
    if (globals->request != NULL) {
        *result = ctl_call_with_json(globals, globals->request, job->manual->method,
                                     job->manual->changes);
        return true;
    }
    ctl_render_render_request(args, request);
    if (!ctl_parse_place(args->words[0], &job->place)) {
        *result = ctl_check_place(job->manual->command.name, args->words[0]);
        return true;
    }
    request->scene = job->place.name;
    request->version = job->place.at.version;
    request->snapshot = job->place.at.snapshot;
    request->width = args->size[0];
    request->height = args->size[1];
    request->has_clip = ctl_render_has(args, CTL_RENDER_CLIP);
    memcpy(request->clip.low, args->clip, sizeof request->clip.low);
    memcpy(request->clip.high, args->clip + 3, sizeof request->clip.high);
    return false;
}

int ctl_render_call(const struct ctl_globals *globals, const struct ctl_render_job *job,
                    struct voxeld_picture **out)
{
    struct voxeld_client *client = ctl_connect(globals);
    struct voxeld_error error = {0};
    int result = CTL_OK;

    if (client == NULL) {
        return CTL_FAILED;
    }
    if (voxeld_scene_render(client, &job->request, out, &error) != VOXELD_OK) {
        result = ctl_failed(job->place.name, &error);
    }
    voxeld_close(client);
    return result;
}
