// SPDX-License-Identifier: Apache-2.0
#include "gpu/field/field_backends.h"

enum {
    PIECE_POINTS = 512,
    PIECE_SPHERES = 16,
    PIECE_VOXELS = 1 << 14
};

static void read_piece(void *context, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++) {
        vxd_field_read_voxel(context, i);
    }
}

static enum vxd_status read_job(struct vxd_pool *pool, const void *context,
                                struct vxd_err *err)
{
    struct vxd_field_read_call call = *(const struct vxd_field_read_call *)context;

    (void)err;
    vxd_parallel_for(pool,
                     (size_t)call.size[0] * (size_t)call.size[1] * (size_t)call.size[2],
                     PIECE_VOXELS, read_piece, &call);
    return VXD_OK;
}

enum vxd_status vxd_field_read_cpu(struct vxd_queue *queue,
                                   const struct vxd_field_read_call *call,
                                   struct vxd_err *err)
{
    return vxd_queue_push(queue, read_job, call, sizeof *call, err);
}

static void query_piece(void *context, size_t begin, size_t end)
{
    const struct vxd_field_query_call *call = context;

    for (size_t i = begin; i < end; i++) {
        vxd_field_answer_point(call, i, call->mode);
    }
}

static enum vxd_status query_job(struct vxd_pool *pool, const void *context,
                                 struct vxd_err *err)
{
    struct vxd_field_query_call call = *(const struct vxd_field_query_call *)context;

    (void)err;
    vxd_parallel_for(pool, call.n, PIECE_POINTS, query_piece, &call);
    return VXD_OK;
}

enum vxd_status vxd_field_query_cpu(struct vxd_queue *queue,
                                    const struct vxd_field_query_call *call,
                                    struct vxd_err *err)
{
    return vxd_queue_push(queue, query_job, call, sizeof *call, err);
}

static void collide_piece(void *context, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++) {
        vxd_field_collide_shape(context, i);
    }
}

static enum vxd_status collide_job(struct vxd_pool *pool, const void *context,
                                   struct vxd_err *err)
{
    struct vxd_field_collide_call call = *(const struct vxd_field_collide_call *)context;

    (void)err;
    /* Calls have shapes of one kind as a rule; boxes and capsules may be large. */
    vxd_parallel_for(pool, call.n,
                     call.shapes[0].kind == VXD_FIELD_SPHERE ? PIECE_SPHERES : 1,
                     collide_piece, &call);
    return VXD_OK;
}

enum vxd_status vxd_field_collide_cpu(struct vxd_queue *queue,
                                      const struct vxd_field_collide_call *call,
                                      struct vxd_err *err)
{
    return vxd_queue_push(queue, collide_job, call, sizeof *call, err);
}

static void follow_trajectory(const struct vxd_field_follow_call *call, size_t i,
                              double *least, int32_t *first)
{
    size_t n_steps = call->in.n_steps;
    double bound = *least;

    for (size_t step = 0; step < n_steps; step++) {
        double at_least;
        double at_most;

        vxd_field_pose_bounds(call, i * n_steps + step, &at_least, &at_most);
        bound = at_most < bound ? at_most : bound;
        *first = at_most <= 0 && *first < 0 ? (int32_t)step : *first;
    }
    for (size_t step = 0; step < n_steps; step++) {
        bool is_before_first = *first < 0 || (int32_t)step < *first;
        double here =
            vxd_field_pose_clearance(call, i * n_steps + step, bound, is_before_first);

        *least = here < *least ? here : *least;
        bound = here < bound ? here : bound;
        *first = here <= 0 && is_before_first ? (int32_t)step : *first;
    }
}

static void follow_piece(void *context, size_t begin, size_t end)
{
    const struct vxd_field_follow_call *call = context;

    for (size_t i = begin; i < end; i++) {
        double least = vxd_field_most_clearance(call);

        call->first[i] = -1;
        follow_trajectory(call, i, &least, &call->first[i]);
        if (call->clearance != NULL) {
            call->clearance[i] =
                (float)vxd_muld(vxd_addd(least, 0.0), call->field.voxel_size_m);
        }
    }
}

static enum vxd_status follow_job(struct vxd_pool *pool, const void *context,
                                  struct vxd_err *err)
{
    struct vxd_field_follow_call call = *(const struct vxd_field_follow_call *)context;

    (void)err;
    vxd_parallel_for(pool, call.in.n_trajectories, 1, follow_piece, &call);
    return VXD_OK;
}

enum vxd_status vxd_field_follow_cpu(struct vxd_queue *queue,
                                     const struct vxd_field_follow_call *call,
                                     struct vxd_err *err)
{
    return vxd_queue_push(queue, follow_job, call, sizeof *call, err);
}
