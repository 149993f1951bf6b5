// SPDX-License-Identifier: Apache-2.0
#include "server/request/upload_memory.h"

#include <stdlib.h>

enum vxd_status vxd_upload_memory_create(struct vxd_server *server, size_t n_bytes,
                                         struct vxd_upload_memory *out,
                                         struct vxd_err *err)
{
    *out = (struct vxd_upload_memory){.n_bytes = n_bytes};
    if (n_bytes == 0) {
        return VXD_OK;
    }
    if (atomic_fetch_add(&server->arriving_block_bytes, n_bytes) + n_bytes <=
            server->config.inflight_bytes / 2 &&
        vxd_host_alloc(server->context, n_bytes, &out->block, NULL) == VXD_OK) {
        out->bytes = out->block.ptr;
        out->is_arriving = true;
        return VXD_OK;
    }
    atomic_fetch_sub(&server->arriving_block_bytes, n_bytes);
    out->block = (struct vxd_buffer){NULL, 0, VXD_SPACE_HOST};
    out->bytes = malloc(n_bytes);
    if (out->bytes == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "no memory for a message of %zu bytes", n_bytes);
    }
    return VXD_OK;
}

void vxd_upload_memory_complete(struct vxd_server *server,
                                struct vxd_upload_memory *memory)
{
    if (memory->is_arriving) {
        atomic_fetch_sub(&server->arriving_block_bytes, memory->n_bytes);
        memory->is_arriving = false;
    }
}

void vxd_upload_memory_destroy(struct vxd_server *server,
                               struct vxd_upload_memory *memory)
{
    vxd_upload_memory_complete(server, memory);
    if (memory->block.ptr != NULL) {
        vxd_host_free(server->context, &memory->block);
    } else {
        free(memory->bytes);
    }
    *memory = (struct vxd_upload_memory){0};
}
