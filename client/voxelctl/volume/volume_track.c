// SPDX-License-Identifier: Apache-2.0
/* Tracks the images of a folder: each is added to the volume where it was found to be taken. */
#include <stdlib.h>
#include <string.h>

#include "client/voxelctl/volume/volume_commands.h"

int ctl_volume_parse_method(const char *text, enum voxeld_volume_track_method *out)
{
    static const char *const names[] = {"plane", "intensity", "hybrid"};

    *out = VOXELD_VOLUME_TRACK_POINT_TO_PLANE;
    for (int i = 0; text != NULL && i < 3; i++) {
        if (strcmp(text, names[i]) == 0) {
            *out = (enum voxeld_volume_track_method)i;
            return CTL_OK;
        }
    }
    return text == NULL
               ? CTL_OK
               : ctl_usage("volume run",
                           "--method %s: plane, intensity or hybrid is right", text);
}

static const char *reason_of(const struct voxeld_volume_tracked *tracked)
{
    switch (tracked->reason) {
    case VOXELD_VOLUME_TRACK_NO_DEPTH:
        return "too few pixels have depth";
    case VOXELD_VOLUME_TRACK_TOO_FEW_INLIERS:
        return "too few pixels lie on the surface";
    case VOXELD_VOLUME_TRACK_SINGULAR:
        return "what is seen does not hold the camera";
    case VOXELD_VOLUME_TRACK_MOVED_TOO_FAR:
        return "it moved too far from the image before";
    default:
        return "for a reason that this voxelctl does not know";
    }
}

static void take_reply(struct ctl_run *run, struct ctl_shot *shot, size_t total,
                       const struct voxeld_volume_tracked *tracked)
{
    run->engine_ms += tracked->engine_ms;
    run->n_blocks = tracked->n_blocks;
    if (tracked->status == VOXELD_VOLUME_TRACK_OK) {
        shot->found = tracked->T_map_camera;
        shot->is_found = true;
        run->n_images++;
        return;
    }
    run->n_lost++;
    ctl_progress_clear(total);
    (void)ctl_error("%s: lost: %s (fitness %.2f, agreement %.2f)", shot->depth,
                    reason_of(tracked), tracked->fitness, tracked->agreement);
}

/* Sends one image, whose bytes are in the request, until it is answered. */
static int send(struct ctl_run *run,
                struct voxeld_volume_track_and_integrate_request *request,
                struct ctl_shot *shot, size_t total)
{
    struct voxeld_retry retry = {.total_ms = (uint32_t)(run->retry_s * 1000)};
    struct voxeld_call call = {0};
    struct voxeld_volume_tracked *tracked = NULL;
    struct voxeld_error error;
    enum voxeld_status status;

    do {
        request->call = call;
        status =
            voxeld_volume_track_and_integrate(run->client, request, &tracked, &error);
    } while (voxeld_retry(&retry, &call, status, &error));
    if (status != VOXELD_OK) {
        ctl_progress_clear(total);
        return ctl_failed(shot->depth, &error);
    }
    take_reply(run, shot, total, tracked);
    voxeld_volume_tracked_free(tracked);
    return CTL_OK;
}

static int track(struct ctl_run *run, struct ctl_shot *shot, bool is_first, size_t total)
{
    const struct voxeld_volume_integrate_request *common = &run->request;
    struct voxeld_volume_track_and_integrate_request request = {
        .volume = common->volume,
        .has_camera = true,
        .camera = common->camera,
        .depth_scale = common->depth_scale,
        .depth_min_m = common->depth_min_m,
        .depth_max_m = common->depth_max_m,
        .inverse_square = common->inverse_square,
        .method = run->method,
        .reset = is_first};
    uint8_t *depth = NULL;
    uint8_t *colour = NULL;
    int result = ctl_read_file(shot->depth, &depth, &request.n_depth_bytes);

    if (result == CTL_OK && shot->colour != NULL) {
        result = ctl_read_file(shot->colour, &colour, &request.n_colour_bytes);
    }
    request.depth = depth;
    request.colour = colour;
    if (is_first && shot->has_pose) {
        request.T_map_camera = shot->pose;
    }
    if (result == CTL_OK) {
        result = send(run, &request, shot, total);
    }
    free(depth);
    free(colour);
    return result;
}

int ctl_volume_track_all(struct ctl_run *run, struct ctl_folder *folder, size_t every)
{
    int result = CTL_OK;

    for (size_t i = 0; i < folder->n; i += every) {
        int one;

        ctl_progress_show(i, folder->n, folder->shots[i].depth);
        one = track(run, &folder->shots[i], run->n_images == 0, folder->n);
        /* A bad file does not keep the others from being sent. */
        result = one != CTL_OK ? one : result;
    }
    ctl_progress_clear(folder->n);
    return result;
}
