// SPDX-License-Identifier: Apache-2.0
/* A task is a few thousand elements; whole rows are copied where the type stays the
 * same. */
#include <string.h>

#include "gpu/sparse/executor/gather_rows_math.h"

#define PIECE_ELEMENTS ((size_t)16384)

static void gather_piece(void *context, size_t begin, size_t end)
{
    const struct vxd_gather_args *args = context;
    size_t row_bytes = args->n_elements * sizeof(float);

    for (size_t i = begin; i < end; i++) {
        int64_t row = vxd_gather_source(args, i);

        if (row >= 0 && args->out_dtype == args->dtype) {
            memcpy((uint8_t *)args->out + i * row_bytes,
                   (const uint8_t *)args->in + (size_t)row * row_bytes, row_bytes);
            continue;
        }
        for (size_t element = 0; element < args->n_elements; element++) {
            vxd_gather_element(args, row, i, element);
        }
    }
}

static enum vxd_status gather_job(struct vxd_pool *pool, const void *context,
                                  struct vxd_err *err)
{
    struct vxd_gather_args args = *(const struct vxd_gather_args *)context;

    (void)err;
    vxd_parallel_for(pool, args.n, PIECE_ELEMENTS / args.n_elements + 1, gather_piece,
                     &args);
    return VXD_OK;
}

enum vxd_status vxd_rows_gather_cpu(struct vxd_queue *queue,
                                    const struct vxd_gather_args *args,
                                    struct vxd_err *err)
{
    return vxd_queue_push(queue, gather_job, args, sizeof *args, err);
}
