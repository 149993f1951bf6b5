// SPDX-License-Identifier: Apache-2.0
/* What fields are asked: checks, and dispatch by backend. */
#include "gpu/field/field_backends.h"

static enum vxd_status need(const void *array, const char *name, struct vxd_err *err)
{
    return array != NULL ? VXD_OK : vxd_fail(err, VXD_INVALID_ARGUMENT, name, "missing");
}

enum vxd_status vxd_field_read(struct vxd_queue *queue, const struct vxd_field *field,
                               const int32_t low[3], const int32_t high[3],
                               const struct vxd_field_arrays *out, struct vxd_err *err)
{
    struct vxd_field_read_call call = {.field = field->view, .out = *out};

    for (int axis = 0; axis < 3; axis++) {
        if (low[axis] < field->spec.low[axis] || high[axis] < low[axis] ||
            high[axis] > field->spec.high[axis]) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT,
                            low[axis] < field->spec.low[axis] ? "low" : "high",
                            "%d to %d is not inside the field's %d to %d", low[axis],
                            high[axis], field->spec.low[axis], field->spec.high[axis]);
        }
        call.low[axis] = low[axis] - field->spec.low[axis];
        call.size[axis] = high[axis] - low[axis];
    }
    if (call.size[0] == 0 || call.size[1] == 0 || call.size[2] == 0) {
        return VXD_OK;
    }
    return VXD_BACKEND_FN(queue, vxd_field_read)(queue, &call, err);
}

enum vxd_status vxd_field_query(struct vxd_queue *queue, const struct vxd_field *field,
                                const double *points, size_t n, enum vxd_field_mode mode,
                                float *distances, float *gradients, int32_t *nearest,
                                struct vxd_err *err)
{
    struct vxd_field_query_call call = {field->view, n,         points, mode,
                                        distances,   gradients, nearest};
    enum vxd_status status;

    if ((int)mode < VXD_FIELD_NEAREST || (int)mode > VXD_FIELD_SURFACE) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "mode", "is %d, must be 0 to %d",
                        (int)mode, VXD_FIELD_SURFACE);
    }
    if (n == 0) {
        return VXD_OK;
    }
    VXD_TRY(need(points, "points", err));
    VXD_TRY(need(distances, "distances", err));
    VXD_TRY(VXD_BACKEND_FN(queue, vxd_field_query)(queue, &call, err));
out:
    return status;
}

enum vxd_status vxd_field_collide(struct vxd_queue *queue, const struct vxd_field *field,
                                  const struct vxd_field_shape *shapes, size_t n,
                                  uint8_t *hits, float *clearance, struct vxd_err *err)
{
    struct vxd_field_collide_call call = {field->view, n, shapes, hits, clearance};
    enum vxd_status status;

    if (n == 0) {
        return VXD_OK;
    }
    VXD_TRY(need(shapes, "shapes", err));
    VXD_TRY(need(hits, "hits", err));
    VXD_TRY(VXD_BACKEND_FN(queue, vxd_field_collide)(queue, &call, err));
out:
    return status;
}

/* Scratch of trajectories on a GPU. */
static enum vxd_status alloc_bounds(struct vxd_queue *queue,
                                    struct vxd_field_follow_call *call,
                                    struct vxd_buffer *scratch, struct vxd_err *err)
{
    size_t n = call->in.n_trajectories;
    size_t n_poses = 0;
    size_t total = 0;
    size_t at[4];
    unsigned char *memory;
    enum vxd_status status;

    if (!vxd_size_mul(n, call->in.n_steps, &n_poses) || n_poses > UINT32_MAX ||
        !vxd_layout_add(&total, n, sizeof *call->bounds, &at[0]) ||
        !vxd_layout_add(&total, n_poses, sizeof *call->pose_bounds, &at[1]) ||
        !vxd_layout_add(&total, n_poses, sizeof *call->open, &at[2]) ||
        !vxd_layout_add(&total, 1, sizeof *call->n_open, &at[3])) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "n_trajectories",
                        "%zu of %zu steps are too many at once", n, call->in.n_steps);
    }
    VXD_TRY(vxd_device_alloc(queue, total, scratch, err));
    memory = scratch->ptr;
    call->bounds = (int32_t *)(void *)(memory + at[0]);
    call->pose_bounds = (int32_t *)(void *)(memory + at[1]);
    call->open = (uint32_t *)(void *)(memory + at[2]);
    call->n_open = (uint32_t *)(void *)(memory + at[3]);
out:
    return status;
}

enum vxd_status vxd_field_follow(struct vxd_queue *queue, const struct vxd_field *field,
                                 const struct vxd_field_trajectories *in, int32_t *first,
                                 float *clearance, struct vxd_err *err)
{
    struct vxd_field_follow_call call = {
        .field = field->view, .in = *in, .first = first, .clearance = clearance};
    struct vxd_buffer scratch = {0};
    enum vxd_status status;

    if (in->n_trajectories == 0) {
        return VXD_OK;
    }
    VXD_TRY(need(first, "first", err));
    if (in->n_steps > 0) {
        VXD_TRY(need(in->poses, "poses", err));
    }
    if (in->n_spheres > 0) {
        VXD_TRY(need(in->spheres, "spheres", err));
    }
    if (vxd_context_backend(vxd_queue_context(queue)) == VXD_BACKEND_CUDA) {
        VXD_TRY(alloc_bounds(queue, &call, &scratch, err));
    }
    VXD_TRY(VXD_BACKEND_FN(queue, vxd_field_follow)(queue, &call, err));
out:
    vxd_device_free(queue, &scratch);
    return status;
}
