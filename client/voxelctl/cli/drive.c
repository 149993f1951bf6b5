// SPDX-License-Identifier: Apache-2.0
/* Sends the clouds of a recorded drive one after the other. */
#include <string.h>

#include "client/voxelctl/cli/cli.h"

static int send_file(const struct ctl_drive *drive, size_t i)
{
    const char *path = drive->paths[i];
    struct voxeld_retry retry = {.total_ms = (uint32_t)(drive->retry_s * 1000)};
    struct voxeld_call call = {0};
    struct voxeld_cloud *file = NULL;
    struct voxeld_cloud cloud;
    struct voxeld_error error;
    enum voxeld_status status;

    if (ctl_read_cloud(path, drive->format, &file, &error) != VOXELD_OK) {
        ctl_progress_clear(drive->n);
        return ctl_failed(path, &error);
    }
    cloud = *file;
    if (drive->poses != NULL) {
        cloud.T_map_sensor = drive->poses[i];
    }
    cloud.body = drive->body;
    do {
        status = drive->send(drive->user, &call, &cloud, &error);
    } while (voxeld_retry(&retry, &call, status, &error));
    voxeld_cloud_free(file);
    if (status != VOXELD_OK) {
        ctl_progress_clear(drive->n);
        return status == VOXELD_NOT_FOUND && strcmp(error.field, "name") == 0 &&
                       drive->if_missing != NULL
                   ? ctl_failed_with(path, &error, drive->if_missing)
                   : ctl_failed(path, &error);
    }
    return CTL_OK;
}

int ctl_drive_send(const struct ctl_drive *drive)
{
    int result = CTL_OK;

    for (size_t i = 0; i < drive->n; i++) {
        int one;

        ctl_progress_show(i, drive->n, drive->paths[i]);
        one = send_file(drive, i);
        /* A bad file does not keep the others from being sent. */
        result = one != CTL_OK ? one : result;
    }
    ctl_progress_clear(drive->n);
    return result;
}
