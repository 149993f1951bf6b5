// SPDX-License-Identifier: Apache-2.0
/* The local map on the CPU: voxels of points, points that join their voxels, voxels that are far. */
#include "gpu/odometry/odometry_internal.h"

#define PIECE ((size_t)1024)

static void place_piece(void *args, size_t begin, size_t end)
{
    const struct vxd_odometry_place_call *call = args;

    for (size_t i = begin; i < end; i++) {
        int32_t *key = call->keys + 3 * i;
        float q[3];

        vxd_odometry_move(call->T, call->points + 3 * i, q);
        vxd_odometry_locate(&call->grid, q, key, call->locals + 3 * i);
        for (int k = 0; k < 3; k++) {
            key[k] += call->grid.base[k];
        }
    }
}

static enum vxd_status place_job(struct vxd_pool *pool, const void *args,
                                 struct vxd_err *err)
{
    struct vxd_odometry_place_call call = *(const struct vxd_odometry_place_call *)args;

    (void)err;
    vxd_parallel_for(pool, call.n, PIECE, place_piece, &call);
    return VXD_OK;
}

enum vxd_status vxd_odometry_place_cpu(struct vxd_queue *queue,
                                       const struct vxd_odometry_place_call *call,
                                       struct vxd_err *err)
{
    return vxd_queue_push(queue, place_job, call, sizeof *call, err);
}

/* The first point of a voxel's list adds them all. */
static void add_piece(void *args, size_t begin, size_t end)
{
    const struct vxd_odometry_add_call *call = args;

    for (size_t i = begin; i < end; i++) {
        int32_t entry = call->entries[i];
        float *row;
        uint32_t count;

        if (entry < 0 || call->head[entry] != (uint32_t)i) {
            continue;
        }
        row = call->points + (size_t)entry * 3 * VXD_ODOMETRY_SLOTS;
        count = call->counts[entry];
        for (uint32_t at = (uint32_t)i; at != VXD_ODOMETRY_END; at = call->next[at]) {
            const float *local = call->locals + 3 * (size_t)at;

            if (vxd_odometry_may_join(row, count, call->max_points, call->min_d2,
                                      local)) {
                vxd_odometry_join(row, count++, local);
            }
        }
        call->counts[entry] = count;
    }
}

static enum vxd_status add_job(struct vxd_pool *pool, const void *args,
                               struct vxd_err *err)
{
    struct vxd_odometry_add_call call = *(const struct vxd_odometry_add_call *)args;

    (void)err;
    for (size_t i = call.n; i-- > 0;) { /* backwards, so that lists ascend */
        int32_t entry = call.entries[i];

        if (entry >= 0) {
            call.next[i] = call.head[entry];
            call.head[entry] = (uint32_t)i;
        }
    }
    vxd_parallel_for(pool, call.n, PIECE, add_piece, &call);
    return VXD_OK;
}

enum vxd_status vxd_odometry_add_cpu(struct vxd_queue *queue,
                                     const struct vxd_odometry_add_call *call,
                                     struct vxd_err *err)
{
    return vxd_queue_push(queue, add_job, call, sizeof *call, err);
}

static enum vxd_status far_job(struct vxd_pool *pool, const void *args,
                               struct vxd_err *err)
{
    const struct vxd_odometry_far_call *call = args;
    uint32_t n = 0;

    (void)pool;
    (void)err;
    for (size_t i = 0; i < call->capacity; i++) {
        const int32_t *key = call->keys + 3 * i;

        if (call->counts[i] > 0 &&
            vxd_odometry_is_far(key, call->sensor, call->max_voxels2)) {
            memcpy(call->far_keys + 3 * (size_t)n++, key, 3 * sizeof *key);
        }
    }
    *call->n_far = n;
    return VXD_OK;
}

enum vxd_status vxd_odometry_far_cpu(struct vxd_queue *queue,
                                     const struct vxd_odometry_far_call *call,
                                     struct vxd_err *err)
{
    return vxd_queue_push(queue, far_job, call, sizeof *call, err);
}
