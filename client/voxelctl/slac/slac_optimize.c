// SPDX-License-Identifier: Apache-2.0
/* voxelctl slac optimize: fragments of files or volumes of the server. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/voxelctl/slac/slac_commands.h"

#define MOST_MS 86400000 /* the longest job */

/* --- clouds -------------------------------------------------------------------------------- */

/* A field by one of two names; NULL: there is none. */
static const struct voxeld_field *find_field(const struct voxeld_cloud *cloud,
                                             const char *name, const char *other)
{
    for (size_t i = 0; i < cloud->n_fields; i++) {
        if (strcmp(cloud->fields[i].name, name) == 0 ||
            strcmp(cloud->fields[i].name, other) == 0) {
            return &cloud->fields[i];
        }
    }
    return NULL;
}

static float read_field(const struct voxeld_cloud *cloud,
                        const struct voxeld_field *field, size_t i)
{
    const char *at = (const char *)cloud->data + i * cloud->point_step + field->offset;
    double value = 0;

    if (field->dtype == VOXELD_FLOAT64) {
        memcpy(&value, at, sizeof value);
    } else if (field->dtype == VOXELD_INT32) {
        int32_t whole;

        memcpy(&whole, at, sizeof whole);
        value = whole;
    } else {
        float single;

        memcpy(&single, at, sizeof single);
        value = (double)single;
    }
    return (float)(value * (field->scale != 0 ? field->scale : 1) + field->bias);
}

static bool is_readable(const struct voxeld_field *field)
{
    return field != NULL &&
           (field->dtype == VOXELD_FLOAT32 || field->dtype == VOXELD_FLOAT64 ||
            field->dtype == VOXELD_INT32);
}

void ctl_slac_points_clear(struct ctl_slac_points *points)
{
    free(points->points);
    free(points->normals);
    *points = (struct ctl_slac_points){0};
}

static int add_cloud(const char *path, const struct voxeld_cloud *cloud,
                     struct ctl_slac_points *points)
{
    const struct voxeld_field *fields[6] = {
        find_field(cloud, "x", "x"),         find_field(cloud, "y", "y"),
        find_field(cloud, "z", "z"),         find_field(cloud, "normal_x", "nx"),
        find_field(cloud, "normal_y", "ny"), find_field(cloud, "normal_z", "nz")};
    bool has_normals =
        is_readable(fields[3]) && is_readable(fields[4]) && is_readable(fields[5]);
    size_t n = points->n + cloud->n_points;
    float *grown = realloc(points->points, (n + 1) * 3 * sizeof *grown);
    float *grown_normals;

    if (grown != NULL) {
        points->points = grown;
    }
    grown_normals = realloc(points->normals, (n + 1) * 3 * sizeof *grown);
    if (grown_normals != NULL) {
        points->normals = grown_normals;
    }
    if (grown == NULL || grown_normals == NULL) {
        return ctl_error("no memory");
    }
    if (!is_readable(fields[0]) || !is_readable(fields[1]) || !is_readable(fields[2])) {
        return ctl_error("%s: has no fields x, y and z of numbers", path);
    }
    points->has_normals = has_normals && (points->n == 0 || points->has_normals);
    for (size_t i = 0; i < cloud->n_points; i++) {
        for (size_t a = 0; a < 3; a++) {
            grown[3 * (points->n + i) + a] = read_field(cloud, fields[a], i);
            grown_normals[3 * (points->n + i) + a] =
                has_normals ? read_field(cloud, fields[3 + a], i) : 0;
        }
    }
    points->n = n;
    return CTL_OK;
}

int ctl_slac_read_cloud(const char *path, struct ctl_slac_points *points)
{
    struct voxeld_cloud *cloud = NULL;
    struct voxeld_error error;
    int result;

    if (ctl_read_cloud(path, NULL, &cloud, &error) != VOXELD_OK) {
        return ctl_failed(path, &error);
    }
    result = add_cloud(path, cloud, points);
    voxeld_cloud_free(cloud);
    return result;
}

/* --- poses --------------------------------------------------------------------------------- */

/* Rows of x y z and a quaternion. */
static double *pose_rows(const struct voxeld_pose *poses, size_t n)
{
    double *rows = malloc(7 * n * sizeof *rows);

    for (size_t i = 0; rows != NULL && i < n; i++) {
        memcpy(rows + 7 * i, poses[i].translation_m, 3 * sizeof *rows);
        memcpy(rows + 7 * i + 3, poses[i].rotation, 4 * sizeof *rows);
        if (poses[i].rotation[0] == 0 && poses[i].rotation[1] == 0 &&
            poses[i].rotation[2] == 0 && poses[i].rotation[3] == 0) {
            rows[7 * i + 6] = 1;
        }
    }
    return rows;
}

/* Writes a line of 12 numbers a pose. */
static int write_poses(const char *path, const double *rows, size_t n)
{
    FILE *file = fopen(path, "w");
    bool is_written = file != NULL;

    for (size_t i = 0; i < n && is_written; i++) {
        const double *v = rows + 7 * i;
        double x = v[3];
        double y = v[4];
        double z = v[5];
        double w = v[6];

        is_written =
            fprintf(file,
                    "%.17g %.17g %.17g %.17g %.17g %.17g %.17g %.17g %.17g %.17g %.17g "
                    "%.17g\n",
                    1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w),
                    v[0], 2 * (x * y + z * w), 1 - 2 * (x * x + z * z),
                    2 * (y * z - x * w), v[1], 2 * (x * z - y * w), 2 * (y * z + x * w),
                    1 - 2 * (x * x + y * y), v[2]) > 0;
    }
    if (file != NULL && fclose(file) != 0) {
        is_written = false;
    }
    if (!is_written) {
        (void)ctl_error("%s: %s", path, strerror(errno));
    }
    return is_written ? CTL_OK : CTL_FAILED;
}

/* --- the request --------------------------------------------------------------------------- */

static void print_result(const char *grid, const struct voxeld_slac_result *result)
{
    const double *losses = result->losses.data;
    char text[3][32];

    for (size_t i = 0; i < result->n_losses; i++) {
        double row[4];

        memcpy(row, (const char *)losses + i * sizeof row, sizeof row);
        (void)printf("step %zu: %s pairs of %.0f edges, %.2f mm rms, regularizer %.3g "
                     "m^2\n",
                     i, ctl_thousands((uint64_t)row[2], text[0]), row[3],
                     row[2] > 0 ? 1e3 * sqrt(row[0] / row[2]) : 0, row[1]);
    }
    (void)printf("%s: %s control points, %s points, %s unknowns, %.0f ms in the engine\n",
                 grid, ctl_thousands(result->n_control_points, text[0]),
                 ctl_thousands(result->n_points, text[1]),
                 ctl_thousands(result->n_unknowns, text[2]), result->engine_ms);
}

static int send(struct voxeld_client *client, const struct ctl_globals *globals,
                const struct ctl_slac_args *args,
                const struct voxeld_slac_optimize_request *request)
{
    struct voxeld_slac_optimize_request again = *request;
    struct voxeld_retry retry = {.total_ms = MOST_MS};
    struct voxeld_slac_result *result = NULL;
    struct voxeld_error error;
    enum voxeld_status answer;
    int status = CTL_OK;

    do { /* a job may take longer than a call may */
        answer = voxeld_slac_optimize(client, &again, &result, &error);
    } while (voxeld_retry(&retry, &again.call, answer, &error));
    if (answer != VOXELD_OK) {
        return ctl_failed(request->grid, &error);
    }
    if (args->out_poses != NULL) {
        status = write_poses(args->out_poses, result->poses.data, result->n);
    }
    if (status == CTL_OK && globals->json) {
        ctl_slac_optimize_json(result);
    } else if (status == CTL_OK) {
        print_result(request->grid, result);
    }
    voxeld_slac_result_free(result);
    return status == CTL_OK ? ctl_flush() : status;
}

/* Reads the clouds into the request, whose arrays borrow from points and counts. */
static int read_clouds(const struct ctl_slac_args *args, struct ctl_slac_points *points,
                       int64_t *counts, struct voxeld_slac_optimize_request *request)
{
    size_t n_files = args->n_words - 1;

    for (size_t i = 0; i < n_files; i++) {
        size_t before = points->n;

        if (ctl_slac_read_cloud(args->words[i + 1], points) != CTL_OK) {
            return CTL_FAILED;
        }
        counts[i] = (int64_t)(points->n - before);
    }
    request->points = (struct voxeld_array){
        .dtype = VOXELD_FLOAT32, .data = points->points, .n = points->n, .n_elements = 3};
    if (points->has_normals) {
        request->normals = request->points;
        request->normals.data = points->normals;
    }
    request->counts = (struct voxeld_array){
        .dtype = VOXELD_INT64, .data = counts, .n = n_files, .n_elements = 1};
    return CTL_OK;
}

int ctl_slac_optimize(struct voxeld_client *client, const struct ctl_globals *globals,
                      const struct ctl_slac_args *args)
{
    struct voxeld_slac_optimize_request request = {0};
    struct ctl_slac_points points = {0};
    struct voxeld_pose *poses = NULL;
    int64_t *counts = NULL;
    double *rows = NULL;
    size_t n = 0;
    int result = CTL_OK;

    ctl_slac_optimize_request(args, &request);
    request.grid = args->words[0];
    n = request.n_volumes > 0 ? request.n_volumes : args->n_words - 1;
    if (n < 2 || (request.n_volumes > 0 && args->n_words > 1)) {
        return ctl_usage("slac optimize",
                         "two fragments or more are needed: files, or --volumes");
    }
    if (ctl_slac_has(args, CTL_SLAC_POINT_TO_POINT)) {
        request.metric = VOXELD_SLAC_POINT_TO_POINT;
    }
    result = ctl_read_poses(args->poses, n, &poses);
    if (result == CTL_OK) {
        rows = pose_rows(poses, n);
        counts = calloc(n, sizeof *counts);
        if (rows == NULL || counts == NULL) {
            (void)ctl_error("no memory");
            result = CTL_FAILED;
        }
    }
    if (result == CTL_OK && request.n_volumes == 0) {
        result = read_clouds(args, &points, counts, &request);
    }
    if (result == CTL_OK) {
        request.poses = (struct voxeld_array){
            .dtype = VOXELD_FLOAT64, .data = rows, .n = n, .n_elements = 7};
        result = send(client, globals, args, &request);
    }
    ctl_slac_points_clear(&points);
    free(rows);
    free(counts);
    free(poses);
    return result;
}
