// SPDX-License-Identifier: Apache-2.0
/* The public entry of voxelization: checks, scratch, dispatch. */
#include "gpu/voxel/voxelize.h"

#include "gpu/core/core_cpu.h"
#include "gpu/voxel/voxel_backends.h"
#include "gpu/voxel/cloud.h"

#define MAX_POINTS ((size_t)INT32_MAX)

size_t vxd_voxelize_capacity(const struct vxd_voxelize_args *args)
{
    size_t most;

    if (args->max_voxels == 0 || args->n_batch < 0 ||
        !vxd_size_mul((size_t)args->n_batch, args->max_voxels, &most) ||
        most > args->n_points) {
        return args->n_points;
    }
    return most;
}

static enum vxd_status check_batch(const struct vxd_voxelize_args *args,
                                   struct vxd_err *err)
{
    const uint32_t *starts = args->batch_starts;

    if (starts == NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "batch_starts", "missing");
    }
    if (starts[0] != 0 || starts[args->n_batch] != args->n_points) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "batch_starts",
                        "go from %u to %u, must go from 0 to the %zu points", starts[0],
                        starts[args->n_batch], args->n_points);
    }
    for (int i = 0; i < args->n_batch; i++) {
        if (starts[i] > starts[i + 1]) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "batch_starts",
                            "fall from %u to %u at sample %d", starts[i], starts[i + 1],
                            i);
        }
    }
    return VXD_OK;
}

/* Checks everything but the host's batch_starts. */
static enum vxd_status check_args(const struct vxd_voxelize_args *args,
                                  struct vxd_err *err)
{
    if (args->n_points > MAX_POINTS) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "n_points", "%zu points, at most %zu",
                        args->n_points, MAX_POINTS);
    }
    if (args->n_channels < 0 || args->n_channels > VXD_MAX_CHANNELS) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "n_channels",
                        "%d channels, must be 0 to %d", args->n_channels,
                        VXD_MAX_CHANNELS);
    }
    if (args->n_batch < 1 || args->n_batch > VXD_MAX_BATCH) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "n_batch",
                        "%d samples, must be 1 to %d", args->n_batch, VXD_MAX_BATCH);
    }
    if (args->rule != VXD_RULE_SPCONV && args->rule != VXD_RULE_MINKOWSKI &&
        args->rule != VXD_RULE_DOUBLE) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "rule",
                        "%d is no rule; 0 is SPCONV, 1 MINKOWSKI, 2 DOUBLE",
                        (int)args->rule);
    }
    if (args->order != VXD_ORDER_MORTON && args->order != VXD_ORDER_FIRST_POINT) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "order",
                        "%d is no order; 0 is MORTON, 1 FIRST_POINT", (int)args->order);
    }
    return VXD_OK;
}

static enum vxd_status check_arrays(const struct vxd_voxelize_args *args,
                                    const struct vxd_voxels *out, struct vxd_err *err)
{
    size_t n_floats;

    if (args->n_points > 0 && args->positions == NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "positions", "missing");
    }
    if (args->n_points > 0 && args->rule == VXD_RULE_DOUBLE && args->exact == NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "exact",
                        "missing, which the rule DOUBLE reads");
    }
    if (args->n_points > 0 && args->n_channels > 0 && args->features == NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "features",
                        "missing, but there are %d channels", args->n_channels);
    }
    if (out->totals == NULL || out->starts == NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT,
                        out->totals == NULL ? "totals" : "starts", "missing");
    }
    if (out->capacity < vxd_voxelize_capacity(args)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "capacity",
                        "%zu voxels, but there may be %zu", out->capacity,
                        vxd_voxelize_capacity(args));
    }
    if (out->points == NULL) {
        return VXD_OK;
    }
    if (args->max_points == 0 || args->max_voxels == 0) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT,
                        args->max_points == 0 ? "max_points" : "max_voxels",
                        "0; hard voxels need both caps");
    }
    if (!vxd_size_mul(vxd_voxelize_capacity(args), args->max_points, &n_floats) ||
        !vxd_size_mul(n_floats, VXD_MAX_CHANNELS * sizeof(float), &n_floats)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "max_points",
                        "%u points a voxel overflow the size of the hard voxels",
                        args->max_points);
    }
    return VXD_OK;
}

static size_t scratch_bytes(const struct vxd_queue *queue,
                            const struct vxd_voxelize_args *args,
                            const struct vxd_voxel_lattice *lattice)
{
    if (VXD_ON_CUDA(queue->context)) {
        return vxd_voxelize_scratch_bytes_cuda(queue, args, lattice);
    }
    return vxd_voxelize_scratch_bytes_cpu(queue, args, lattice);
}

size_t vxd_voxelize_scratch_bytes(const struct vxd_queue *queue,
                                  const struct vxd_voxelize_args *args)
{
    struct vxd_voxel_lattice lattice;
    size_t n_bytes;

    if (check_args(args, NULL) != VXD_OK ||
        vxd_voxel_lattice_init(args, &lattice, NULL) != VXD_OK) {
        return 0;
    }
    n_bytes = scratch_bytes(queue, args, &lattice);
    if (VXD_ON_CUDA(queue->context)) {
        n_bytes += ((size_t)args->n_batch + 1) * sizeof(uint32_t); /* batch_starts */
    }
    return n_bytes;
}

enum vxd_status vxd_voxelize(struct vxd_queue *queue,
                             const struct vxd_voxelize_args *args,
                             const struct vxd_voxels *out, struct vxd_err *err)
{
    struct vxd_voxelize_call call = {.args = *args, .out = *out};
    struct vxd_buffer starts = {NULL, 0, VXD_SPACE_DEVICE};
    struct vxd_buffer scratch = {NULL, 0, VXD_SPACE_DEVICE};
    const void *d_starts = NULL;
    enum vxd_status status;

    VXD_TRY(check_args(args, err));
    VXD_TRY(check_batch(args, err));
    VXD_TRY(vxd_voxel_lattice_init(args, &call.lattice, err));
    VXD_TRY(check_arrays(args, out, err));
    call.scratch_bytes = scratch_bytes(queue, args, &call.lattice);
    VXD_TRY(vxd_device_alloc(queue, call.scratch_bytes, &scratch, err));
    VXD_TRY(vxd_upload(queue, args->batch_starts,
                       ((size_t)args->n_batch + 1) * sizeof(uint32_t), &starts, &d_starts,
                       err));
    call.scratch = scratch.ptr;
    call.batch_starts = d_starts;
    if (VXD_ON_CUDA(queue->context)) {
        VXD_TRY(vxd_voxelize_cuda(queue, &call, err));
    } else {
        VXD_TRY(vxd_voxelize_cpu(queue, &call, err));
    }
out:
    /* In queue order, after the work that was just queued. */
    vxd_device_free(queue, &starts);
    vxd_device_free(queue, &scratch);
    return status;
}
