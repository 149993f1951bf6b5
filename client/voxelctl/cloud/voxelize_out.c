// SPDX-License-Identifier: Apache-2.0
/* The files that voxelctl voxelize --out writes. */
#include <stdlib.h>
#include <string.h>

#include "client/voxelctl/cloud/voxelize_out.h"

enum {
    N_REDUCTIONS = 5,
    NAME_BYTES = 96
};

struct reduction {
    const char *name;
    uint32_t bit;
};

static const struct reduction reductions[N_REDUCTIONS] = {{"mean", VOXELD_REDUCE_MEAN},
                                                          {"sum", VOXELD_REDUCE_SUM},
                                                          {"min", VOXELD_REDUCE_MIN},
                                                          {"max", VOXELD_REDUCE_MAX},
                                                          {"first", VOXELD_REDUCE_FIRST}};

static const struct reduction integers[] = {{"coords", VOXELD_OUTPUT_COORDS},
                                            {"counts", VOXELD_OUTPUT_COUNTS},
                                            {"inverse", VOXELD_OUTPUT_INVERSE},
                                            {"first_index", VOXELD_OUTPUT_FIRST_INDEX}};

int ctl_out_plan(const char *path, const char *tensor, uint32_t *outputs,
                 uint32_t *reduce)
{
    *outputs = (uint32_t)VOXELD_OUTPUT_COORDS | VOXELD_OUTPUT_COUNTS;
    if (ctl_has_ending(path, ".ply") && tensor == NULL) {
        return CTL_OK;
    }
    if (!ctl_has_ending(path, ".npy")) {
        return ctl_usage("voxelize", "--out %s: a name ending in %s", path,
                         tensor != NULL ? ".npy, for --tensor" : ".ply or .npy");
    }
    if (tensor == NULL) {
        return CTL_OK;
    }
    for (size_t i = 0; i < sizeof integers / sizeof integers[0]; i++) {
        if (strcmp(integers[i].name, tensor) == 0) {
            *outputs |= integers[i].bit;
            return CTL_OK;
        }
    }
    for (size_t i = 0; i < N_REDUCTIONS; i++) {
        if (strcmp(reductions[i].name, tensor) == 0) {
            *reduce |= reductions[i].bit;
            return CTL_OK;
        }
    }
    return ctl_usage("voxelize",
                     "--tensor %s: coords, counts, inverse, first_index, mean, sum, min, "
                     "max or first",
                     tensor);
}

static const float *reduced(const struct voxeld_voxels *v, size_t reduction)
{
    const float *const arrays[N_REDUCTIONS] = {v->mean, v->sum, v->min, v->max, v->first};

    return arrays[reduction];
}

static enum vxd_status write_npy(FILE *file, const char *tensor,
                                 const struct voxeld_voxels *v, struct vxd_err *err)
{
    const size_t rows[2] = {v->n_voxels, 4};
    const size_t features[2] = {v->n_voxels, v->n_channels};

    if (tensor == NULL || strcmp(tensor, "coords") == 0) {
        return vxd_npy_write(file, VXD_INT32, rows, 2, v->coords, err);
    }
    if (strcmp(tensor, "counts") == 0) {
        return vxd_npy_write(file, VXD_UINT32, rows, 1, v->counts, err);
    }
    if (strcmp(tensor, "inverse") == 0) {
        return vxd_npy_write(file, VXD_INT32, &v->n_points, 1, v->inverse, err);
    }
    if (strcmp(tensor, "first_index") == 0) {
        return vxd_npy_write(file, VXD_UINT32, rows, 1, v->first_index, err);
    }
    for (size_t i = 0; i < N_REDUCTIONS; i++) {
        if (strcmp(tensor, reductions[i].name) == 0 && reduced(v, i) != NULL) {
            return vxd_npy_write(file, VXD_FLOAT32, features, 2, reduced(v, i), err);
        }
    }
    return vxd_fail(err, VXD_INVALID_ARGUMENT, "tensor", "--no-features leaves no %s",
                    tensor);
}

/* The axis that a channel is the position on; -1 = none. */
static int axis_of(const char *name)
{
    return name[0] >= 'x' && name[0] <= 'z' && name[1] == '\0' ? name[0] - 'x' : -1;
}

/* Channels x, y and z count from the request's origin; the file's points lie in the map frame, and so
 * must these. Writes a row for each voxel. */
static void move_to_map(const struct voxeld_voxels *v, size_t reduction, size_t channel,
                        int axis, double *out)
{
    const float *values = reduced(v, reduction) + channel;
    bool is_sum = reductions[reduction].bit == VOXELD_REDUCE_SUM;

    for (size_t i = 0; i < v->n_voxels; i++) {
        out[i] = (double)values[i * v->n_channels] +
                 v->origin_m[axis] * (is_sum ? (double)v->counts[i] : 1);
    }
}

/* Makes columns x, y, z, count, and one for each feature and reduction; `moved` takes n_voxels for each
 * axis and reduction. NULL when memory runs out. */
static struct vxd_write_column *ply_columns(const struct voxeld_voxels *v,
                                            const double *centers, double *moved,
                                            char *names, size_t *n)
{
    static const char *const axes[] = {"x", "y", "z"};
    struct vxd_write_column *columns =
        calloc(4 + N_REDUCTIONS * v->n_channels, sizeof *columns);

    if (columns == NULL) {
        return NULL;
    }
    for (*n = 0; *n < 3; (*n)++) {
        columns[*n] = (struct vxd_write_column){
            .name = axes[*n],
            .dtype = VXD_FLOAT64,
            .data = centers + *n,
            .stride_bytes = 3 * sizeof(double),
        };
    }
    columns[(*n)++] = (struct vxd_write_column){.name = "count",
                                                .dtype = VXD_UINT32,
                                                .data = v->counts,
                                                .stride_bytes = sizeof(uint32_t)};
    for (size_t i = 0; i < N_REDUCTIONS; i++) {
        for (size_t c = 0; reduced(v, i) != NULL && c < v->n_channels; c++) {
            (void)snprintf(names, NAME_BYTES, "%s_%s", reductions[i].name,
                           v->features[c]);
            /* A blank would end the property's name. */
            for (char *at = names; (at = strpbrk(at, " \t\r\n")) != NULL;) {
                *at = '_';
            }
            columns[*n] = (struct vxd_write_column){
                .name = names,
                .dtype = VXD_FLOAT32,
                .data = reduced(v, i) + c,
                .stride_bytes = v->n_channels * sizeof(float),
            };
            if (moved != NULL && axis_of(v->features[c]) >= 0) {
                move_to_map(v, i, c, axis_of(v->features[c]), moved);
                columns[*n].dtype = VXD_FLOAT64;
                columns[*n].data = moved;
                columns[*n].stride_bytes = sizeof(double);
                moved += v->n_voxels;
            }
            (*n)++;
            names += NAME_BYTES;
        }
    }
    return columns;
}

static enum vxd_status write_ply(FILE *file, const struct voxeld_voxels *v,
                                 struct vxd_err *err)
{
    double *centers = calloc(v->n_voxels > 0 ? v->n_voxels : 1, 3 * sizeof *centers);
    char *names = calloc(N_REDUCTIONS * v->n_channels + 1, NAME_BYTES);
    struct vxd_write_column *columns = NULL;
    bool is_moved = v->origin_m[0] != 0 || v->origin_m[1] != 0 || v->origin_m[2] != 0;
    double *moved =
        is_moved ? calloc(v->n_channels * N_REDUCTIONS * v->n_voxels + 1, sizeof *moved)
                 : NULL;
    size_t n_columns = 0;
    enum vxd_status status;

    if (centers != NULL && names != NULL && (moved != NULL || !is_moved)) {
        columns = ply_columns(v, centers, moved, names, &n_columns);
    }
    if (columns == NULL) {
        status = vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "out", "no memory for %zu voxels",
                          v->n_voxels);
        goto out;
    }
    for (size_t i = 0; i < v->n_voxels; i++) {
        for (size_t a = 0; a < 3; a++) {
            centers[3 * i + a] = v->origin_m[a] + v->low_m[a] +
                                 ((double)v->coords[4 * i + 1 + a] + 0.5) * v->size_m[a];
        }
    }
    status = vxd_ply_write(file, columns, n_columns, v->n_voxels, err);
out:
    free(columns);
    free(names);
    free(moved);
    free(centers);
    return status;
}

struct output {
    const char *path;
    const char *tensor;
    const struct voxeld_voxels *voxels;
};

static enum vxd_status write_output(FILE *file, void *context, struct vxd_err *err)
{
    const struct output *output = context;

    return ctl_has_ending(output->path, ".ply")
               ? write_ply(file, output->voxels, err)
               : write_npy(file, output->tensor, output->voxels, err);
}

int ctl_out_write(const char *path, const char *tensor,
                  const struct voxeld_voxels *voxels)
{
    struct output output = {path, tensor, voxels};

    return ctl_write_file(path, write_output, &output);
}
