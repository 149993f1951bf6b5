// SPDX-License-Identifier: Apache-2.0
#include "gpu/volume/volume_clear_math.h"

#define PIECE_BLOCKS ((size_t)1024)

struct clear_all {
    struct vxd_clear_call call;
    const int32_t *entries;
    size_t n;
};

static void clear_part(const struct vxd_volume_view *view, int32_t entry,
                       const int from[3], const int to[3])
{
    for (int z = from[2]; z < to[2]; z++) {
        for (int y = from[1]; y < to[1]; y++) {
            for (int x = from[0]; x < to[0]; x++) {
                vxd_clear_voxel(
                    view, vxd_voxel_row(view, entry, vxd_voxel_index(view, x, y, z)));
            }
        }
    }
}

static void list_piece(void *args, size_t begin, size_t end)
{
    const struct clear_all *all = args;
    const struct vxd_clear_call *call = &all->call;

    for (size_t i = begin; i < end; i++) {
        const int32_t *key = call->view.keys + 3 * (size_t)all->entries[i];
        int from[3];
        int to[3];

        if (vxd_clear_of(call, key, from, to) == VXD_CLEAR_BLOCK) {
            uint32_t at = __atomic_fetch_add(&call->n[0], 1, __ATOMIC_RELAXED);

            memcpy(call->keys + 3 * (size_t)at, key, 3 * sizeof(int32_t));
        } else {
            call->kept[__atomic_fetch_add(&call->n[1], 1, __ATOMIC_RELAXED)] =
                all->entries[i];
        }
    }
}

static void clear_piece(void *args, size_t begin, size_t end)
{
    const struct clear_all *all = args;
    const struct vxd_clear_call *call = &all->call;

    for (size_t i = begin; i < end; i++) {
        int32_t entry = all->entries[i];
        int from[3];
        int to[3];

        if (vxd_clear_of(call, call->view.keys + 3 * (size_t)entry, from, to) ==
            VXD_CLEAR_PART) {
            clear_part(&call->view, entry, from, to);
            call->view.stamps[entry] = call->version;
        }
    }
}

static enum vxd_status list_job(struct vxd_pool *pool, const void *args,
                                struct vxd_err *err)
{
    struct clear_all all = *(const struct clear_all *)args;

    (void)err;
    vxd_parallel_for(pool, all.n, PIECE_BLOCKS, list_piece, &all);
    return VXD_OK;
}

static enum vxd_status clear_job(struct vxd_pool *pool, const void *args,
                                 struct vxd_err *err)
{
    struct clear_all all = *(const struct clear_all *)args;

    (void)err;
    vxd_parallel_for(pool, all.n, PIECE_BLOCKS, clear_piece, &all);
    return VXD_OK;
}

enum vxd_status vxd_volume_clear_list_cpu(struct vxd_queue *queue,
                                          const struct vxd_clear_call *call,
                                          const int32_t *entries, size_t n,
                                          struct vxd_err *err)
{
    struct clear_all all = {*call, entries, n};

    return vxd_queue_push(queue, list_job, &all, sizeof all, err);
}

enum vxd_status vxd_volume_clear_cpu(struct vxd_queue *queue,
                                     const struct vxd_clear_call *call,
                                     const int32_t *entries, size_t n,
                                     struct vxd_err *err)
{
    struct clear_all all = {*call, entries, n};

    return vxd_queue_push(queue, clear_job, &all, sizeof all, err);
}

/* --- decay -------------------------------------------------------------------------------- */

struct decay_all {
    struct vxd_decay_call call;
    const int32_t *entries;
    size_t n;
};

/* The greatest weight of a block's voxels as a decay leaves them. */
static float most_weight(const struct vxd_decay_call *call, int32_t entry,
                         const int from[3], const int to[3])
{
    uint32_t n = (uint32_t)vxd_volume_block_voxels(&call->clear.view);
    float most = 0;

    for (uint32_t index = 0; index < n; index++) {
        float weight = vxd_decay_weight_at(call, entry, index, from, to);

        most = weight > most ? weight : most;
    }
    return most;
}

static void decay_list_piece(void *args, size_t begin, size_t end)
{
    const struct decay_all *all = args;
    const struct vxd_clear_call *clear = &all->call.clear;

    for (size_t i = begin; i < end; i++) {
        int32_t entry = all->entries[i];
        const int32_t *key = clear->view.keys + 3 * (size_t)entry;
        int from[3];
        int to[3];

        if (vxd_decay_of(&all->call, key, from, to) &&
            vxd_decay_removes(&all->call, most_weight(&all->call, entry, from, to))) {
            uint32_t at = __atomic_fetch_add(&clear->n[0], 1, __ATOMIC_RELAXED);

            memcpy(clear->keys + 3 * (size_t)at, key, 3 * sizeof(int32_t));
        } else {
            clear->kept[__atomic_fetch_add(&clear->n[1], 1, __ATOMIC_RELAXED)] = entry;
        }
    }
}

static void decay_piece(void *args, size_t begin, size_t end)
{
    const struct decay_all *all = args;
    const struct vxd_volume_view *view = &all->call.clear.view;

    for (size_t i = begin; i < end; i++) {
        int32_t entry = all->entries[i];
        int from[3];
        int to[3];

        if (!vxd_decay_of(&all->call, view->keys + 3 * (size_t)entry, from, to)) {
            continue;
        }
        for (int z = from[2]; z < to[2]; z++) {
            for (int y = from[1]; y < to[1]; y++) {
                for (int x = from[0]; x < to[0]; x++) {
                    vxd_decay_voxel(
                        &all->call,
                        vxd_voxel_row(view, entry, vxd_voxel_index(view, x, y, z)));
                }
            }
        }
        view->stamps[entry] = all->call.clear.version;
    }
}

static enum vxd_status decay_list_job(struct vxd_pool *pool, const void *args,
                                      struct vxd_err *err)
{
    struct decay_all all = *(const struct decay_all *)args;

    (void)err;
    vxd_parallel_for(pool, all.n, PIECE_BLOCKS / 16, decay_list_piece, &all);
    return VXD_OK;
}

static enum vxd_status decay_job(struct vxd_pool *pool, const void *args,
                                 struct vxd_err *err)
{
    struct decay_all all = *(const struct decay_all *)args;

    (void)err;
    vxd_parallel_for(pool, all.n, PIECE_BLOCKS / 16, decay_piece, &all);
    return VXD_OK;
}

enum vxd_status vxd_volume_decay_list_cpu(struct vxd_queue *queue,
                                          const struct vxd_decay_call *call,
                                          const int32_t *entries, size_t n,
                                          struct vxd_err *err)
{
    struct decay_all all = {*call, entries, n};

    return vxd_queue_push(queue, decay_list_job, &all, sizeof all, err);
}

enum vxd_status vxd_volume_decay_cpu(struct vxd_queue *queue,
                                     const struct vxd_decay_call *call,
                                     const int32_t *entries, size_t n,
                                     struct vxd_err *err)
{
    struct decay_all all = {*call, entries, n};

    return vxd_queue_push(queue, decay_job, &all, sizeof all, err);
}

/* --- the farthest blocks ------------------------------------------------------------------ */

static void rank_piece(void *args, size_t begin, size_t end)
{
    const struct vxd_rank_call *call = args;

    for (size_t i = begin; i < end; i++) {
        call->ranks[i] = vxd_rank_of(call, call->entries[i]);
        call->values[i] = (uint32_t)call->entries[i];
    }
}

static enum vxd_status rank_job(struct vxd_pool *pool, const void *args,
                                struct vxd_err *err)
{
    struct vxd_rank_call call = *(const struct vxd_rank_call *)args;

    (void)err;
    for (size_t i = 0; i < call.n_touched; i++) {
        call.is_touched[call.touched[i]] = 1;
    }
    vxd_parallel_for(pool, call.n, PIECE_BLOCKS, rank_piece, &call);
    return VXD_OK;
}

enum vxd_status vxd_volume_rank_cpu(struct vxd_queue *queue,
                                    const struct vxd_rank_call *call, struct vxd_err *err)
{
    return vxd_queue_push(queue, rank_job, call, sizeof *call, err);
}
