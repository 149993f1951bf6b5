// SPDX-License-Identifier: Apache-2.0
/* voxelctl volume scan: the lidar. */
#include "client/voxelctl/volume/volume_commands.h"

int ctl_volume_fill_scan(const struct ctl_volume_args *args,
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
