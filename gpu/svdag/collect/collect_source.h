// SPDX-License-Identifier: Apache-2.0
/* Collections from words that are no store: those of an image (image_load.c). */
#ifndef VXD_GPU_SVDAG_COLLECT_COLLECT_SOURCE_H
#define VXD_GPU_SVDAG_COLLECT_COLLECT_SOURCE_H

#include "gpu/svdag/store/store.h"
#include "gpu/svdag/collect/collect.h"

/* The source of a collection. */
struct vxd_svdag_collect_source {
    struct vxd_svdag_view view; /* of memory that `to` can read */
    uint32_t n_chunks;
    uint64_t n_items; /* at least */
};

/* As vxd_svdag_collect_begin. */
enum vxd_status vxd_svdag_collect_open(struct vxd_queue *queue,
                                       const struct vxd_svdag_collect_source *source,
                                       struct vxd_svdag *to,
                                       struct vxd_svdag_collection **out,
                                       struct vxd_err *err);

#endif
