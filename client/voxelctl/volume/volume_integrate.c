// SPDX-License-Identifier: Apache-2.0
/* voxelctl volume integrate: one depth image; and cameras in files. */
#include <stdlib.h>
#include <string.h>

#include "client/voxelctl/volume/volume_commands.h"

int ctl_volume_read_camera(const char *path, struct voxeld_volume_camera *out)
{
    struct ctl_array file;
    int result = ctl_array_read(path, VOXELD_FLOAT64, &file);
    double m[12] = {0};
    size_t n;

    memset(out, 0, sizeof *out);
    if (result != CTL_OK) {
        ctl_array_clear(&file);
        return result;
    }
    n = file.array.n * file.array.n_elements;
    if (file.array.dtype != VXD_FLOAT64 || n > 12) {
        n = 0;
    }
    if (n > 0) {
        memcpy(m, file.array.data, n * sizeof *m);
    }
    if (n == 9 && file.array.n == 3) {
        out->fx = m[0];
        out->fy = m[4];
        out->cx = m[2];
        out->cy = m[5];
    } else if (file.array.n == 1 && (n == 4 || n == 8 || n == 9 || n == 12)) {
        out->fx = m[0];
        out->fy = m[1];
        out->cx = m[2];
        out->cy = m[3];
        out->k1 = m[4];
        out->k2 = m[5];
        out->p1 = m[6];
        out->p2 = m[7];
        out->k3 = m[8];
        out->k4 = m[9];
        out->k5 = m[10];
        out->k6 = m[11];
    } else {
        (void)ctl_error("%s: no camera; a 3 x 3 matrix is right, or one line fx "
                        "fy cx cy with 0, 4, 5 or 8 numbers of distortion",
                        path);
        result = CTL_FAILED;
    }
    ctl_array_clear(&file);
    return result;
}

int ctl_volume_integrate(struct voxeld_client *client, const struct ctl_globals *globals,
                         const struct ctl_volume_args *args)
{
    struct voxeld_volume_integrate_request request = {0};
    struct voxeld_volume_change *change;
    struct voxeld_error error;
    uint8_t *depth = NULL;
    uint8_t *colour = NULL;
    char text[3][32];
    int result;

    ctl_volume_integrate_request(args, &request);
    request.has_camera = true;
    result = ctl_volume_read_camera(args->intrinsics, &request.camera);
    if (result == CTL_OK && args->pose != NULL) {
        result = ctl_read_pose(args->pose, &request.T_map_camera);
    }
    if (result == CTL_OK) {
        result = ctl_read_file(args->words[1], &depth, &request.n_depth_bytes);
    }
    if (result == CTL_OK && args->image != NULL) {
        result = ctl_read_file(args->image, &colour, &request.n_colour_bytes);
    }
    request.depth = depth;
    request.colour = colour;
    request.estimate = ctl_volume_has(args, CTL_VOLUME_ESTIMATE);
    if (result == CTL_OK &&
        voxeld_volume_integrate(client, &request, &change, &error) != VOXELD_OK) {
        result = ctl_failed(args->words[1], &error);
    } else if (result == CTL_OK) {
        if (globals->json) {
            ctl_volume_integrate_json(change);
        } else if (change->status == VOXELD_VOLUME_TRACK_LOST) {
            (void)printf("%s: the image is lost, and nothing of it was added\n",
                         request.volume);
        } else {
            (void)printf("%s: %s blocks touched, %s of them new, it has %s; %.2f ms in "
                         "the engine\n",
                         request.volume, ctl_thousands(change->n_touched, text[0]),
                         ctl_thousands(change->n_new, text[1]),
                         ctl_thousands(change->n_blocks, text[2]), change->engine_ms);
        }
        voxeld_volume_change_free(change);
        result = ctl_flush();
    }
    free(depth);
    free(colour);
    return result;
}
