// SPDX-License-Identifier: Apache-2.0
#include "gpu/field/field_volume_math.h"

#include "gpu/core/core_cpu.h"

enum {
    PIECE_WORDS = 256,
    PIECE_POINTS = 128
};

static void bits_piece(void *context, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++) {
        vxd_field_volume_row_words(context, i);
    }
}

static enum vxd_status bits_job(struct vxd_pool *pool, const void *context,
                                struct vxd_err *err)
{
    struct vxd_field_bits_call call = *(const struct vxd_field_bits_call *)context;

    (void)err;
    vxd_parallel_for(
        pool, (size_t)call.n_x * (size_t)call.field.size[1] * (size_t)call.field.n_words,
        PIECE_WORDS, bits_piece, &call);
    return VXD_OK;
}

enum vxd_status vxd_field_volume_bits_cpu(struct vxd_queue *queue,
                                          const struct vxd_field_bits_call *call,
                                          struct vxd_err *err)
{
    return vxd_queue_push(queue, bits_job, call, sizeof *call, err);
}

static void surface_piece(void *context, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++) {
        vxd_field_answer_surface(context, i);
    }
}

static enum vxd_status surface_job(struct vxd_pool *pool, const void *context,
                                   struct vxd_err *err)
{
    struct vxd_field_surface_call call = *(const struct vxd_field_surface_call *)context;

    (void)err;
    vxd_parallel_for(pool, call.n, PIECE_POINTS, surface_piece, &call);
    return VXD_OK;
}

enum vxd_status vxd_field_query_surface_cpu(struct vxd_queue *queue,
                                            const struct vxd_field_surface_call *call,
                                            struct vxd_err *err)
{
    return vxd_queue_push(queue, surface_job, call, sizeof *call, err);
}
