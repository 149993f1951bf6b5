// SPDX-License-Identifier: Apache-2.0
/* voxelctl odometry run: a folder of scans to poses. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/voxelctl/odometry/odometry_commands.h"

#define DEFAULT_PERIOD_S 0.1

struct run {
    struct voxeld_client *client;
    const char *name;
    const char *format;
    const char *deskew;
    double retry_s;
    double period_s;
    struct ctl_scans scans;
    struct ctl_scan_poses poses;
    size_t n_lost;
    double engine_ms;
    size_t n_engine;
};

/* Errors against known poses. */
struct errors {
    double rms_m;
    double most_m;
    double length_m; /* of the known path */
    double drift;    /* at its end, a metre */
};

static int make_odometry(const struct run *run, const struct ctl_odometry_args *args)
{
    struct voxeld_odometry_create_request request = {.odometry = run->name,
                                                     .max_range_m = args->max_range,
                                                     .min_range_m = args->min_range,
                                                     .voxel_size_m = args->size,
                                                     .max_points = args->max_points,
                                                     .method = args->method,
                                                     .min_fitness = args->min_fitness,
                                                     .max_translation_m =
                                                         args->max_translation};
    struct voxeld_error error;

    if (args->initial != NULL &&
        ctl_read_pose(args->initial, &request.initial) != CTL_OK) {
        return CTL_FAILED;
    }
    return voxeld_odometry_create(run->client, &request, NULL, &error) == VOXELD_OK
               ? CTL_OK
               : ctl_failed(run->name, &error);
}

/* Where a scan's own format is not given, .bin is KITTI's. */
static const char *format_of(const struct run *run, const char *path)
{
    return run->format == NULL && ctl_has_ending(path, ".bin") ? "kitti" : run->format;
}

/* One scan; its request is repeated until it is answered. */
static int register_scan(struct run *run, size_t i)
{
    const char *path = run->scans.paths[i];
    struct voxeld_retry retry = {.total_ms = (uint32_t)(run->retry_s * 1000)};
    const struct voxeld_deskew deskew = {.time_field = run->deskew};
    struct voxeld_odometry_register_request request = {.odometry = run->name};
    struct voxeld_odometry_pose *pose = NULL;
    struct voxeld_call call = {0};
    struct voxeld_cloud *file = NULL;
    struct voxeld_cloud cloud;
    struct voxeld_error error;
    enum voxeld_status status;
    struct ctl_scan_pose *out = &run->poses.poses[run->poses.n];

    if (ctl_read_cloud(path, format_of(run, path), &file, &error) != VOXELD_OK) {
        ctl_progress_clear(run->scans.n);
        return ctl_failed(path, &error);
    }
    cloud = *file;
    cloud.T_map_sensor = (struct voxeld_pose){{0}, {0}}; /* a file's pose is no prior */
    cloud.deskew = run->deskew != NULL ? &deskew : NULL;
    request.cloud = &cloud;
    do {
        request.call = call;
        status = voxeld_odometry_register(run->client, &request, &pose, &error);
    } while (voxeld_retry(&retry, &call, status, &error));
    voxeld_cloud_free(file);
    if (status != VOXELD_OK) {
        ctl_progress_clear(run->scans.n);
        return ctl_failed(path, &error);
    }
    *out = (struct ctl_scan_pose){.stamp_s = (double)i * run->period_s,
                                  .is_lost = pose->status == VOXELD_ODOMETRY_LOST,
                                  .pose = pose->T_map_sensor};
    if (out->is_lost) {
        run->n_lost++;
        ctl_progress_clear(run->scans.n);
        (void)ctl_error("%s: lost: %s", path, ctl_odometry_reason(pose->reason));
    }
    if (!pose->is_first) {
        run->engine_ms += pose->engine_ms;
        run->n_engine++;
    }
    run->poses.n++;
    voxeld_odometry_pose_free(pose);
    return CTL_OK;
}

/* In order, so a scan that cannot be read ends the run: those after it would be registered as if it
 * had not been. */
static int register_all(struct run *run)
{
    int result = CTL_OK;

    for (size_t i = 0; i < run->scans.n && result == CTL_OK; i++) {
        ctl_progress_show(i, run->scans.n, run->scans.paths[i]);
        result = register_scan(run, i);
    }
    ctl_progress_clear(run->scans.n);
    return result;
}

static void rotate(const double q[4], const double v[3], double out[3])
{
    for (int i = 0; i < 3; i++) {
        int j = (i + 1) % 3;
        int k = (i + 2) % 3;
        double tj = 2 * (q[k] * v[i] - q[i] * v[k]);
        double tk = 2 * (q[i] * v[j] - q[j] * v[i]);
        double ti = 2 * (q[j] * v[k] - q[k] * v[j]);

        out[i] = v[i] + q[3] * ti + q[j] * tk - q[k] * tj;
    }
}

/* A position in the frame of a pose. */
static void relative(const struct voxeld_pose *frame, const double p[3], double out[3])
{
    const double back[4] = {-frame->rotation[0], -frame->rotation[1], -frame->rotation[2],
                            frame->rotation[3]};
    const double apart[3] = {p[0] - frame->translation_m[0],
                             p[1] - frame->translation_m[1],
                             p[2] - frame->translation_m[2]};

    rotate(back, apart, out);
}

static double distance(const double a[3], const double b[3])
{
    return sqrt((a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1]) +
                (a[2] - b[2]) * (a[2] - b[2]));
}

/* Both trajectories are seen from their first pose. */
static int find_errors(const struct run *run, const char *path, struct errors *out)
{
    struct voxeld_pose *known = NULL;
    double last = 0;
    int result = ctl_read_poses(path, run->scans.n, &known);

    *out = (struct errors){0};
    if (result != CTL_OK) {
        return result;
    }
    for (size_t i = 0; i < run->poses.n; i++) {
        double a[3];
        double b[3];

        relative(&known[0], known[i].translation_m, a);
        relative(&run->poses.poses[0].pose, run->poses.poses[i].pose.translation_m, b);
        last = distance(a, b);
        out->rms_m += last * last / (double)run->poses.n;
        out->most_m = fmax(out->most_m, last);
        out->length_m +=
            i > 0 ? distance(known[i - 1].translation_m, known[i].translation_m) : 0;
    }
    out->rms_m = sqrt(out->rms_m);
    out->drift = out->length_m > 0 ? last / out->length_m : 0;
    free(known);
    return CTL_OK;
}

static void report(const struct run *run, const struct ctl_globals *globals,
                   const struct errors *errors)
{
    double mean_ms = run->n_engine > 0 ? run->engine_ms / (double)run->n_engine : 0;
    char text[2][32];

    if (globals->json) {
        (void)fputs("{", stdout);
        ctl_json_member_count(stdout, true, "n_scans", run->poses.n);
        ctl_json_member_count(stdout, false, "n_lost", run->n_lost);
        ctl_json_member_number(stdout, false, "engine_ms", mean_ms);
        if (errors != NULL) {
            ctl_json_member_number(stdout, false, "rms_m", errors->rms_m);
            ctl_json_member_number(stdout, false, "most_m", errors->most_m);
            ctl_json_member_number(stdout, false, "length_m", errors->length_m);
            ctl_json_member_number(stdout, false, "drift", errors->drift);
        }
        (void)fputs("}\n", stdout);
        return;
    }
    (void)printf("%s scans registered, %s lost; %.2f ms a scan in the engine\n",
                 ctl_thousands(run->poses.n, text[0]),
                 ctl_thousands(run->n_lost, text[1]), mean_ms);
    if (errors != NULL) {
        (void)printf(
            "against known poses: %.3f m rms, %.3f m at most, %.3f %% of %.1f m at "
            "the end\n",
            errors->rms_m, errors->most_m, 100 * errors->drift, errors->length_m);
    }
}

/* Files and report; what was registered before a failure is written, too. */
static int finish(struct run *run, const struct ctl_globals *globals,
                  const struct ctl_odometry_args *args)
{
    struct errors errors;
    int result = CTL_OK;

    if (args->trajectory != NULL) {
        result = ctl_scan_poses_write_tum(args->trajectory, &run->poses);
    }
    if (result == CTL_OK && args->poses_out != NULL) {
        result = ctl_scan_poses_write_kitti(args->poses_out, &run->poses);
    }
    if (result == CTL_OK && args->poses != NULL) {
        result = find_errors(run, args->poses, &errors);
    }
    if (result == CTL_OK) {
        report(run, globals, args->poses != NULL ? &errors : NULL);
        result = ctl_flush();
    }
    return result;
}

int ctl_odometry_run(struct voxeld_client *client, const struct ctl_globals *globals,
                     const struct ctl_odometry_args *args)
{
    char own[64];
    struct run run = {.client = client,
                      .name = args->name,
                      .format = args->format,
                      .deskew = args->deskew,
                      .retry_s = ctl_odometry_has(args, CTL_ODOMETRY_RETRY)
                                     ? args->retry
                                     : CTL_DRIVE_RETRY_S,
                      .period_s = DEFAULT_PERIOD_S};
    struct voxeld_error error;
    int result;

    if (args->period != NULL &&
        !ctl_parse_between(args->period, 1e-6, 1e6, &run.period_s)) {
        return ctl_usage("odometry run", "--period %s: a number of seconds is right",
                         args->period);
    }
    if (run.name == NULL) {
        (void)snprintf(own, sizeof own, "voxelctl-%ld", (long)getpid());
        run.name = own;
    }
    result = ctl_scans_list(args->words[0], &run.scans);
    if (result == CTL_OK) {
        run.poses.poses = calloc(run.scans.n, sizeof *run.poses.poses);
        if (run.poses.poses == NULL) {
            (void)ctl_error("no memory");
            result = CTL_FAILED;
        }
    }
    if (result == CTL_OK) {
        result = make_odometry(&run, args);
    }
    if (result == CTL_OK) {
        int ended;

        result = register_all(&run);
        ended = finish(&run, globals, args);
        result = result != CTL_OK ? result : ended;
        if (args->name == NULL && voxeld_odometry_drop(client, NULL, run.name, true, NULL,
                                                       &error) != VOXELD_OK) {
            result = ctl_failed(run.name, &error);
        }
    }
    free(run.poses.poses);
    ctl_scans_clear(&run.scans);
    return result;
}
