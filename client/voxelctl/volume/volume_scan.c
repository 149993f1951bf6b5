// SPDX-License-Identifier: Apache-2.0
/* voxelctl volume scan: one lidar scan. */
#include <stdlib.h>

#include "client/voxelctl/volume/volume_commands.h"

/* Fills in the lidar; CTL_USAGE after a message. */
static int read_lidar(const struct ctl_volume_args *args,
                      struct voxeld_volume_integrate_points_request *request)
{
    struct voxeld_volume_lidar *lidar = &request->lidar;
    double v[4];

    if (args->lidar == NULL) {
        return args->azimuth == NULL
                   ? CTL_OK
                   : ctl_usage("volume scan", "--azimuth goes with --lidar");
    }
    if (ctl_parse_doubles(args->lidar, v, 4) != 4 || !(v[0] >= 2 && v[0] <= 1024) ||
        !(v[1] >= 1 && v[1] <= 16384)) {
        return ctl_usage("volume scan",
                         "--lidar %s: ROWS,COLUMNS,TOP,BOTTOM is right, with 2 to 1024 "
                         "rows and 1 to 16384 columns",
                         args->lidar);
    }
    request->has_lidar = true;
    lidar->rows = (uint32_t)v[0];
    lidar->columns = (uint32_t)v[1];
    lidar->top_deg = v[2];
    lidar->bottom_deg = v[3];
    if (args->azimuth != NULL) {
        if (ctl_parse_doubles(args->azimuth, v, 2) != 2) {
            return ctl_usage("volume scan", "--azimuth %s: BEGIN,SPAN is right",
                             args->azimuth);
        }
        lidar->azimuth_begin_deg = v[0];
        lidar->azimuth_span_deg = v[1];
    }
    return CTL_OK;
}

static int print_change(const struct ctl_globals *globals, const char *volume,
                        const struct voxeld_volume_change *change)
{
    char text[6][32];

    if (globals->json) {
        ctl_volume_scan_json(change);
    } else if (change->status == VOXELD_VOLUME_TRACK_LOST) {
        (void)printf("%s: the scan is lost, and nothing of it was added\n", volume);
    } else {
        (void)printf("%s: %s of %s points used, %s blocks touched, %s of them new, %s "
                     "others carved, it has %s; %.2f ms in the engine\n",
                     volume, ctl_thousands(change->n_used, text[0]),
                     ctl_thousands(change->n_points, text[1]),
                     ctl_thousands(change->n_touched, text[2]),
                     ctl_thousands(change->n_new, text[3]),
                     ctl_thousands(change->n_carved, text[4]),
                     ctl_thousands(change->n_blocks, text[5]), change->engine_ms);
    }
    return ctl_flush();
}

int ctl_volume_scan(struct voxeld_client *client, const struct ctl_globals *globals,
                    const struct ctl_volume_args *args)
{
    struct voxeld_volume_integrate_points_request request = {0};
    struct voxeld_volume_change *change = NULL;
    struct voxeld_cloud *cloud = NULL;
    struct voxeld_error error;
    int result;

    ctl_volume_scan_request(args, &request);
    result = read_lidar(args, &request);
    if (result == CTL_OK &&
        ctl_read_cloud(args->words[1], args->format, &cloud, &error) != VOXELD_OK) {
        result = ctl_failed(args->words[1], &error);
    }
    if (result == CTL_OK && args->pose != NULL) {
        result = ctl_read_pose(args->pose, &cloud->T_map_sensor);
    }
    if (result == CTL_OK && args->end_pose != NULL) {
        result = ctl_read_pose(args->end_pose, &request.T_map_sensor_end);
    }
    request.cloud = cloud;
    request.estimate = ctl_volume_has(args, CTL_VOLUME_ESTIMATE);
    if (result == CTL_OK &&
        voxeld_volume_integrate_points(client, &request, &change, &error) != VOXELD_OK) {
        result = ctl_failed(args->words[1], &error);
    }
    if (result == CTL_OK) {
        result = print_change(globals, request.volume, change);
        voxeld_volume_change_free(change);
    }
    voxeld_cloud_free(cloud);
    return result;
}
