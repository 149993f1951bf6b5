// SPDX-License-Identifier: Apache-2.0
/* Triangles on the CPU: pieces of rows, in parallel. */
#include "gpu/core/core_cpu.h"
#include "gpu/svdag/mesh/mesh_backends.h"

#define PIECE 256

static void count_piece(void *args, size_t begin, size_t end)
{
    const struct vxd_svdag_mesh_work *work = args;

    for (size_t i = begin; i < end; i++) {
        work->counts[i] = vxd_svdag_mesh_row(work, (uint32_t)i, 0);
    }
}

static void write_piece(void *args, size_t begin, size_t end)
{
    const struct vxd_svdag_mesh_work *work = args;

    for (size_t i = begin; i < end; i++) {
        (void)vxd_svdag_mesh_row(work, (uint32_t)i, work->counts[i]);
    }
}

static enum vxd_status count_job(struct vxd_pool *pool, const void *args,
                                 struct vxd_err *err)
{
    struct vxd_svdag_mesh_work work = *(const struct vxd_svdag_mesh_work *)args;

    (void)err;
    vxd_parallel_for(pool, work.n_rows, PIECE, count_piece, &work);
    return VXD_OK;
}

static enum vxd_status write_job(struct vxd_pool *pool, const void *args,
                                 struct vxd_err *err)
{
    struct vxd_svdag_mesh_work work = *(const struct vxd_svdag_mesh_work *)args;

    (void)err;
    vxd_parallel_for(pool, work.n_rows, PIECE, write_piece, &work);
    return VXD_OK;
}

enum vxd_status vxd_svdag_mesh_count_cpu(struct vxd_queue *queue,
                                         const struct vxd_svdag_mesh_work *work,
                                         struct vxd_err *err)
{
    return vxd_queue_push(queue, count_job, work, sizeof *work, err);
}

enum vxd_status vxd_svdag_mesh_write_cpu(struct vxd_queue *queue,
                                         const struct vxd_svdag_mesh_work *work,
                                         struct vxd_err *err)
{
    return vxd_queue_push(queue, write_job, work, sizeof *work, err);
}
