// SPDX-License-Identifier: Apache-2.0
/* Memory for a large message, from its first byte until its request is done with it. It is a block
 * of the engine's host memory, which on a GPU is page-locked and is kept for the next message.
 * Messages that are still arriving may hold half of limits.inflight_bytes in such blocks; beyond
 * that they get plain memory, of which the system provides only the pages that are written. So
 * an announced size alone takes nothing away from anybody. */
#ifndef VXD_SERVER_REQUEST_UPLOAD_MEMORY_H
#define VXD_SERVER_REQUEST_UPLOAD_MEMORY_H

#include "gpu/core/core.h"
#include "server/instance/instance.h"

struct vxd_upload_memory {
    uint8_t *bytes; /* at a multiple of 16; NULL where nothing is held */
    size_t n_bytes;
    struct vxd_buffer block; /* empty: plain memory */
    bool is_arriving;
};

/* errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_upload_memory_create(struct vxd_server *server, size_t n_bytes,
                                         struct vxd_upload_memory *out,
                                         struct vxd_err *err);

/* All of its bytes have come. */
void vxd_upload_memory_complete(struct vxd_server *server,
                                struct vxd_upload_memory *memory);

/* Empties *memory. Harmless on an empty one. */
void vxd_upload_memory_destroy(struct vxd_server *server,
                               struct vxd_upload_memory *memory);

#endif
