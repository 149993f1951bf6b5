// SPDX-License-Identifier: Apache-2.0
/* What can be wrong with an alignment before it is queued. */
#include <math.h>

#include "server/instance/instance.h"
#include "server/service/service.h"
#include "server/service/slac/slac_service.h"

#define DEFAULT_ITERATIONS 5
#define DEFAULT_SECONDS 3600.0
#define MAX_SECONDS 86400.0
#define POINT_BYTES 700 /* of engine memory a point: its arrays and its pairs */

bool vxd_slac_optimize_changes(const struct vxd_request *request)
{
    (void)request; /* also of rigid: a job of minutes is asked for again by its number */
    return true;
}

/* A number that is 0 for its default. */
static enum vxd_status check_number(double value, const char *field, double low,
                                    double high, struct vxd_err *err)
{
    return value == 0 || (value >= low && value <= high)
               ? VXD_OK
               : vxd_fail(err, VXD_INVALID_ARGUMENT, field, "is %g, must be %g to %g",
                          value, low, high);
}

static enum vxd_status read_options(const Voxeld__V1__SlacOptimizeRequest *input,
                                    struct vxd_slac_optimize_job *job,
                                    struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(check_number(input->cell_m, "cell_m", 0.01, 100, err));
    VXD_TRY(
        check_number(input->regularizer_weight, "regularizer_weight", 1e-9, 1e9, err));
    VXD_TRY(check_number(input->distance_m, "distance_m", 1e-3, 10, err));
    VXD_TRY(check_number(input->fitness, "fitness", 1e-6, 1, err));
    VXD_TRY(check_number(input->voxel_m, "voxel_m", 1e-3, 10, err));
    VXD_TRY(
        check_number(input->iterations, "iterations", 1, VXD_SLAC_MAX_ITERATIONS, err));
    VXD_TRY(check_number(input->solver_steps, "solver_steps", 1, 1000, err));
    VXD_TRY(check_number((double)input->max_unknowns, "max_unknowns", 1,
                         (double)VXD_SLAC_MAX_UNKNOWNS, err));
    VXD_TRY(check_number(input->max_s, "max_s", 1e-3, MAX_SECONDS, err));
    job->max_ns = (int64_t)((input->max_s > 0 ? input->max_s : DEFAULT_SECONDS) * 1e9);
    job->iterations = input->iterations > 0 ? input->iterations : DEFAULT_ITERATIONS;
    job->options =
        (struct vxd_slac_options){.is_rigid = input->rigid,
                                  .metric = (enum vxd_slac_metric)input->metric,
                                  .cell_m = input->cell_m,
                                  .lambda = input->regularizer_weight,
                                  .distance_m = input->distance_m,
                                  .fitness = input->fitness,
                                  .voxel_m = input->voxel_m,
                                  .solver_steps = (int)input->solver_steps,
                                  .max_unknowns = (size_t)input->max_unknowns};
    status = vxd_slac_options_init(&job->options, err);
out:
    return status;
}

/* Rows of a tensor that is given, of so many columns, in data of a dtype or as numbers of JSON, which
 * become that dtype. */
static enum vxd_status read_rows(struct vxd_request *request,
                                 const Voxeld__V1__Tensor *tensor, const char *field,
                                 enum vxd_dtype dtype, size_t columns, size_t *n,
                                 const void **out, struct vxd_err *err)
{
    size_t n_given;
    enum vxd_status status;

    VXD_TRY(vxd_map_check_tensor(tensor, field, n, err));
    n_given = tensor->n_shape == 2 ? (size_t)tensor->shape[1] : 1;
    if (n_given != columns) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                         "has %zu elements a row, must have %zu", n_given, columns));
    }
    if (tensor->n_values == 0 && (enum vxd_dtype)tensor->dtype != dtype) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                         "has the dtype %d, must have %d (%s)", (int)tensor->dtype,
                         (int)dtype,
                         dtype == VXD_FLOAT32   ? "FLOAT32"
                         : dtype == VXD_FLOAT64 ? "FLOAT64"
                         : dtype == VXD_INT32   ? "INT32"
                                                : "INT64"));
    }
    if (tensor->n_values == 0) {
        *out = tensor->data.data;
        return VXD_OK;
    }
    *out = vxd_message_array(request->decoder, *n * columns, vxd_dtype_bytes(dtype), err);
    if (*out == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (size_t i = 0; i < *n * columns; i++) {
        double value = tensor->values[i];
        void *to = (char *)(uintptr_t)*out + i * vxd_dtype_bytes(dtype);
        bool is_whole = dtype == VXD_INT32 || dtype == VXD_INT64;

        if (is_whole && !(value == floor(value) && fabs(value) <= INT32_MAX)) {
            VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                             "has %g, must have whole numbers within +-2147483647",
                             value));
        }
        switch (dtype) {
        case VXD_FLOAT32:
            *(float *)to = (float)value;
            break;
        case VXD_FLOAT64:
            *(double *)to = value;
            break;
        case VXD_INT32:
            *(int32_t *)to = (int32_t)value;
            break;
        default:
            *(int64_t *)to = (int64_t)value;
            break;
        }
    }
out:
    return status;
}

/* Reads what may lie at any address. */
static int64_t int64_at(const void *items, size_t i)
{
    int64_t value;

    memcpy(&value, (const char *)items + i * sizeof value, sizeof value);
    return value;
}

static enum vxd_status take_parts(struct vxd_request *request, size_t n,
                                  struct vxd_err *err)
{
    struct vxd_slac_optimize_job *job = request->state;

    if (n < 2 || n > VXD_SLAC_MAX_FRAGMENTS) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "poses",
                        "are of %zu fragments, there must be 2 to %d", n,
                        VXD_SLAC_MAX_FRAGMENTS);
    }
    job->n_parts = n;
    job->parts = vxd_message_array(request->decoder, n, sizeof *job->parts, err);
    job->fragments = vxd_message_array(request->decoder, n, sizeof *job->fragments, err);
    return job->parts != NULL && job->fragments != NULL ? VXD_OK : VXD_RESOURCE_EXHAUSTED;
}

static enum vxd_status read_poses(struct vxd_request *request,
                                  const Voxeld__V1__SlacOptimizeRequest *input,
                                  struct vxd_err *err)
{
    struct vxd_slac_optimize_job *job = request->state;
    const void *given = NULL;
    struct vxd_volume_pose *poses;
    double *rows;
    size_t n = 0;
    enum vxd_status status;

    VXD_TRY(read_rows(request, input->poses, "poses", VXD_FLOAT64, 7, &n, &given, err));
    VXD_TRY(take_parts(request, n, err));
    rows = vxd_message_array(request->decoder, 7 * n, sizeof *rows, err);
    poses = vxd_message_array(request->decoder, n, sizeof *poses, err);
    if (rows == NULL || poses == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    memcpy(rows, given, 7 * n * sizeof *rows);
    VXD_TRY(vxd_slac_read_pose_rows(rows, n, poses, err));
    for (size_t i = 0; i < n; i++) {
        job->fragments[i].T_map_fragment = poses[i];
        job->fragments[i].name = job->parts[i].name;
    }
out:
    return status;
}

/* The volumes' names, or the clouds. */
static enum vxd_status check_volumes(const Voxeld__V1__SlacOptimizeRequest *input,
                                     struct vxd_slac_optimize_job *job,
                                     struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    if (input->n_volumes != job->n_parts) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "poses",
                        "are %zu, there are %zu volumes", job->n_parts, input->n_volumes);
    }
    for (size_t i = 0; i < input->n_volumes; i++) {
        char field[32];

        (void)snprintf(field, sizeof field, "volumes[%zu]", i);
        VXD_TRY(vxd_noun_check_name(input->volumes[i], field, err));
        (void)snprintf(job->parts[i].name, sizeof job->parts[i].name, "%s",
                       input->volumes[i]);
    }
out:
    return status;
}

static enum vxd_status read_clouds(struct vxd_request *request,
                                   const Voxeld__V1__SlacOptimizeRequest *input,
                                   struct vxd_err *err)
{
    struct vxd_slac_optimize_job *job = request->state;
    const void *points = NULL;
    const void *normals = NULL;
    const void *counts = NULL;
    size_t n = 0;
    size_t n_normals = 0;
    size_t n_counts = 0;
    size_t total = 0;
    enum vxd_status status;

    VXD_TRY(
        read_rows(request, input->points, "points", VXD_FLOAT32, 3, &n, &points, err));
    if (input->normals != NULL) {
        VXD_TRY(read_rows(request, input->normals, "normals", VXD_FLOAT32, 3, &n_normals,
                          &normals, err));
    }
    VXD_TRY(read_rows(request, input->counts, "counts", VXD_INT64, 1, &n_counts, &counts,
                      err));
    if (normals != NULL && n_normals != n) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "normals",
                         "are %zu, there are %zu points", n_normals, n));
    }
    if (normals == NULL && job->options.metric == VXD_SLAC_POINT_TO_PLANE) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "normals",
                         "are missing; only SLAC_POINT_TO_POINT needs none"));
    }
    if (n_counts != job->n_parts) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "counts",
                         "are of %zu fragments, there are %zu poses", n_counts,
                         job->n_parts));
    }
    for (size_t i = 0; i < n_counts; i++) {
        int64_t count = int64_at(counts, i);

        if (count < 1 || (uint64_t)count > n - total) {
            VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "counts",
                             "say %lld points of fragment %zu, of %zu that are left",
                             (long long)count, i, n - total));
        }
        job->fragments[i].n = (size_t)count;
        total += (size_t)count;
        (void)snprintf(job->parts[i].name, sizeof job->parts[i].name, "%zu", i);
    }
    if (total != n) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "counts",
                         "are %zu points together, there are %zu", total, n));
    }
    job->points = points;
    job->normals = normals;
    request->n_points = n;
    request->cost_bytes = (uint64_t)n * POINT_BYTES;
out:
    return status;
}

static enum vxd_status read_edges(struct vxd_request *request,
                                  const Voxeld__V1__SlacOptimizeRequest *input,
                                  struct vxd_err *err)
{
    struct vxd_slac_optimize_job *job = request->state;
    const void *rows = NULL;
    enum vxd_status status;

    if (input->edges == NULL) {
        return VXD_OK;
    }
    VXD_TRY(read_rows(request, input->edges, "edges", VXD_INT32, 2, &job->n_edges, &rows,
                      err));
    if (job->n_edges == 0 || job->n_edges > VXD_SLAC_MAX_EDGES) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "edges", "are %zu, must be 1 to %zu",
                         job->n_edges, VXD_SLAC_MAX_EDGES));
    }
    job->edges =
        vxd_message_array(request->decoder, job->n_edges, sizeof *job->edges, err);
    if (job->edges == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    memcpy(job->edges, rows, job->n_edges * sizeof *job->edges);
out:
    return status;
}

enum vxd_status vxd_slac_optimize_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__SlacOptimizeRequest *input =
        (const Voxeld__V1__SlacOptimizeRequest *)request->input;
    struct vxd_slac_optimize_job *job =
        vxd_message_array(request->decoder, 1, sizeof *job, err);
    struct vxd_names_usage usage;
    enum vxd_status status;

    if (job == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    request->state = job;
    request->bulk = true;
    VXD_TRY(vxd_map_read_terms(request, input->name, 0, 0, &job->terms, err));
    VXD_TRY(read_options(input, job, err));
    VXD_TRY(read_poses(request, input, err));
    if (input->n_volumes > 0 && input->points != NULL) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "points",
                         "are given beside volumes, it must be one of the two"));
    }
    if (input->n_volumes > 0) {
        VXD_TRY(check_volumes(input, job, err));
        vxd_names_get_usage(request->server->volumes, &usage);
        request->cost_bytes = usage.n_bytes / 4;
    } else {
        VXD_TRY(read_clouds(request, input, err));
    }
    status = read_edges(request, input, err);
out:
    return status;
}
