// SPDX-License-Identifier: Apache-2.0
/* The files that voxelctl infer --out writes. */
#include <stdlib.h>
#include <string.h>

#include "client/voxelctl/network/infer_out.h"

enum {
    MAX_CHANNELS = 256, /* of a .ply */
    NAME_BYTES = 16
};

struct job {
    bool is_ply;
    const struct voxeld_infer_output *output;
    const struct voxeld_cloud *cloud;
    const struct voxeld_inference *inference;
};

int ctl_infer_check_out(const char *path)
{
    return ctl_has_ending(path, ".npy") || ctl_has_ending(path, ".ply")
               ? CTL_OK
               : ctl_usage("infer", "--out %s: a name ending in .npy or .ply", path);
}

static enum vxd_status write_npy(FILE *file, const struct voxeld_infer_output *output,
                                 struct vxd_err *err)
{
    if (output->labels != NULL) {
        return vxd_npy_write(file, VXD_INT32, output->shape, 1, output->labels, err);
    }
    return vxd_npy_write(file, (enum vxd_dtype)output->dtype, output->shape,
                         output->n_axes, output->values, err);
}

/* Computes the centres of the voxels, in metres (in cells of the normalized cloud
 * where it has no size). */
static void voxel_positions(const struct job *job, double *to)
{
    const struct voxeld_inference *in = job->inference;

    for (size_t i = 0; i < job->output->shape[0]; i++) {
        const int32_t *cell = job->output->coords + 4 * i + 1;

        for (size_t a = 0; a < 3; a++) {
            double size = in->size_m[a] > 0 ? in->size_m[a] : 1;

            to[3 * i + a] = in->origin_m[a] + in->low_m[a] +
                            ((double)cell[a] + 0.5) * size * job->output->stride[a];
        }
    }
}

/* Computes the points' positions as they are in the file. */
static enum vxd_status point_positions(const struct job *job, double *to,
                                       struct vxd_err *err)
{
    static const char *const axes[3] = {"x", "y", "z"};
    const struct voxeld_cloud *cloud = job->cloud;

    for (size_t a = 0; a < 3; a++) {
        struct vxd_file_field axis = {.dtype = VXD_DTYPE_UNSPECIFIED};

        for (size_t i = 0; i < cloud->n_fields; i++) {
            const struct voxeld_field *field = &cloud->fields[i];

            if (strcmp(field->name, axes[a]) == 0) {
                axis.offset = field->offset;
                axis.dtype = (enum vxd_dtype)field->dtype;
                axis.scale = field->scale == 0 ? 1 : field->scale;
                axis.bias = field->bias;
            }
        }
        if (axis.dtype == VXD_DTYPE_UNSPECIFIED) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "out", "the file has no %s",
                            axes[a]);
        }
        for (size_t i = 0; i < job->output->shape[0]; i++) {
            to[3 * i + a] = vxd_file_field_double(&axis, (const uint8_t *)cloud->data +
                                                             i * cloud->point_step);
        }
    }
    return VXD_OK;
}

/* Makes columns x, y, z, then label and score, or c0, c1, ... Returns how many. */
static size_t make_columns(const struct voxeld_infer_output *output,
                           const double *positions, char (*names)[NAME_BYTES],
                           struct vxd_write_column *columns)
{
    static const char *const axes[3] = {"x", "y", "z"};
    size_t n_channels = output->labels != NULL ? 1 : output->shape[1];
    size_t n = 0;

    for (; n < 3; n++) {
        columns[n] = (struct vxd_write_column){axes[n], VXD_FLOAT64, positions + n,
                                               3 * sizeof *positions};
    }
    if (output->labels != NULL) {
        columns[n++] = (struct vxd_write_column){"label", VXD_INT32, output->labels,
                                                 sizeof *output->labels};
    }
    for (size_t i = 0; i < n_channels; i++) {
        (void)snprintf(names[i], NAME_BYTES, output->labels != NULL ? "score" : "c%zu",
                       i);
        columns[n++] = (struct vxd_write_column){names[i], VXD_FLOAT32,
                                                 (const float *)output->values + i,
                                                 n_channels * sizeof(float)};
    }
    return n;
}

static enum vxd_status write_ply(FILE *file, const struct job *job, struct vxd_err *err)
{
    const struct voxeld_infer_output *output = job->output;
    size_t n_rows = output->shape[0];
    double *positions = calloc(n_rows > 0 ? n_rows : 1, 3 * sizeof *positions);
    char(*names)[NAME_BYTES] = calloc(MAX_CHANNELS, NAME_BYTES);
    struct vxd_write_column *columns = calloc(MAX_CHANNELS + 4, sizeof *columns);
    enum vxd_status status = VXD_OK;

    if (positions == NULL || names == NULL || columns == NULL) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "out", "no memory for %zu rows",
                         n_rows));
    }
    if ((output->kind != VOXELD_KIND_VOXELS && output->kind != VOXELD_KIND_POINTS) ||
        (output->labels == NULL && output->shape[1] > MAX_CHANNELS)) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "out",
                         "\"%s\" is no output of voxels or points of at most %d "
                         "channels: write it as .npy",
                         output->name, MAX_CHANNELS));
    }
    if (output->kind == VOXELD_KIND_VOXELS) {
        voxel_positions(job, positions);
    } else {
        VXD_TRY(point_positions(job, positions, err));
    }
    VXD_TRY(vxd_ply_write(file, columns, make_columns(output, positions, names, columns),
                          n_rows, err));
out:
    free(positions);
    free(names);
    free(columns);
    return status;
}

static enum vxd_status write_output(FILE *file, void *context, struct vxd_err *err)
{
    const struct job *job = context;

    return job->is_ply ? write_ply(file, job, err) : write_npy(file, job->output, err);
}

int ctl_infer_write(const char *path, const char *output,
                    const struct voxeld_cloud *cloud,
                    const struct voxeld_inference *inference)
{
    struct job job = {
        .is_ply = ctl_has_ending(path, ".ply"), .cloud = cloud, .inference = inference};

    job.output = output != NULL             ? voxeld_inference_output(inference, output)
                 : inference->n_outputs > 0 ? &inference->outputs[0]
                                            : NULL;
    if (job.output == NULL) {
        return ctl_error("infer: no output came: name one with --output, \"voxelctl "
                         "net info %s\" lists them",
                         inference->network);
    }
    return ctl_write_file(path, write_output, &job);
}
