// SPDX-License-Identifier: Apache-2.0
/* voxelctl odometry register: one scan. */
#include "client/voxelctl/odometry/odometry_commands.h"

const char *ctl_odometry_reason(enum voxeld_odometry_reason reason)
{
    static const char *const reasons[] = {"found",
                                          "too few points",
                                          "too few inliers",
                                          "a direction is not held",
                                          "too far from where it was predicted",
                                          "not converged"};

    return (size_t)reason < sizeof reasons / sizeof reasons[0] ? reasons[reason]
                                                               : "unknown";
}

static int print_pose(const struct ctl_globals *globals,
                      const struct voxeld_odometry_pose *pose)
{
    const double *t = pose->T_map_sensor.translation_m;
    const double *q = pose->T_map_sensor.rotation;
    char text[2][32];

    if (globals->json) {
        ctl_odometry_register_json(pose);
        return ctl_flush();
    }
    if (pose->status == VOXELD_ODOMETRY_LOST) {
        (void)printf("lost: %s; predicted ", ctl_odometry_reason(pose->reason));
    }
    (void)printf("at %.4f, %.4f, %.4f, turned %.6f, %.6f, %.6f, %.6f (x, y, z, w)\n",
                 t[0], t[1], t[2], q[0], q[1], q[2], q[3]);
    (void)printf("%s of %s points registered fit, %.3f m rms; %.2f ms in the engine\n",
                 ctl_thousands(pose->n_inliers, text[0]),
                 ctl_thousands(pose->n_registered, text[1]), pose->rmse_m,
                 pose->engine_ms);
    return ctl_flush();
}

int ctl_odometry_register(struct voxeld_client *client, const struct ctl_globals *globals,
                          const struct ctl_odometry_args *args)
{
    struct voxeld_odometry_register_request request = {0};
    const struct voxeld_deskew deskew = {.time_field = args->deskew};
    struct voxeld_odometry_pose *pose = NULL;
    struct voxeld_cloud *file = NULL;
    struct voxeld_cloud cloud;
    struct voxeld_error error;
    int result = CTL_OK;

    ctl_odometry_register_request(args, &request);
    if (ctl_read_cloud(args->words[1], args->format, &file, &error) != VOXELD_OK) {
        return ctl_failed(args->words[1], &error);
    }
    cloud = *file;
    cloud.T_map_sensor = (struct voxeld_pose){{0}, {0}}; /* a file's pose is no prior */
    cloud.deskew = args->deskew != NULL ? &deskew : NULL;
    if (args->prior != NULL) {
        result = ctl_read_pose(args->prior, &cloud.T_map_sensor);
    }
    request.cloud = &cloud;
    if (result == CTL_OK &&
        voxeld_odometry_register(client, &request, &pose, &error) != VOXELD_OK) {
        result = ctl_failed(args->words[1], &error);
    }
    if (result == CTL_OK) {
        result = print_pose(globals, pose);
        voxeld_odometry_pose_free(pose);
    }
    voxeld_cloud_free(file);
    return result;
}
