// SPDX-License-Identifier: Apache-2.0
#include "gpu/core/memory.h"

#include <assert.h>

#include "gpu/core/core_cpu.h"

enum vxd_status vxd_device_alloc(struct vxd_queue *queue, size_t n_bytes,
                                 struct vxd_buffer *out, struct vxd_err *err)
{
    struct vxd_context *context = queue->context;
    struct vxd_buffer buffer = {NULL, n_bytes, VXD_SPACE_DEVICE};
    enum vxd_status status = VXD_OK;

    *out = (struct vxd_buffer){NULL, 0, VXD_SPACE_DEVICE};
    if (n_bytes == 0) {
        return VXD_OK;
    }
    if (VXD_ON_CUDA(context)) {
        if (!vxd_budget_take(context, VXD_SPACE_DEVICE, n_bytes)) {
            return vxd_budget_fail(context, VXD_SPACE_DEVICE, n_bytes, err);
        }
        status = vxd_cuda_device_alloc(queue, n_bytes, &buffer.ptr, err);
        if (status != VXD_OK) {
            vxd_budget_return(context, VXD_SPACE_DEVICE, n_bytes);
        }
    } else {
        status = vxd_block_take(context->device_cache, n_bytes, &buffer.ptr, err);
    }
    if (status == VXD_OK) {
        *out = buffer;
    }
    return status;
}

static enum vxd_status release_job(struct vxd_pool *pool, const void *args,
                                   struct vxd_err *err)
{
    (void)pool;
    (void)err;
    vxd_block_release((struct vxd_block *)args);
    return VXD_OK;
}

void vxd_device_free(struct vxd_queue *queue, struct vxd_buffer *buffer)
{
    struct vxd_context *context = queue->context;

    if (buffer->ptr != NULL && VXD_ON_CUDA(context)) {
        vxd_cuda_device_free(queue, buffer->ptr);
        vxd_budget_return(context, VXD_SPACE_DEVICE, buffer->n_bytes);
    } else if (buffer->ptr != NULL) {
        struct vxd_block *block = vxd_block_find(context->device_cache, buffer->ptr);

        assert(block != NULL);
        block->job = (struct vxd_job){NULL, release_job, block, true};
        vxd_queue_append(queue, &block->job);
    }
    *buffer = (struct vxd_buffer){NULL, 0, VXD_SPACE_DEVICE};
}

enum vxd_status vxd_host_alloc(struct vxd_context *context, size_t n_bytes,
                               struct vxd_buffer *out, struct vxd_err *err)
{
    struct vxd_buffer buffer = {NULL, n_bytes, VXD_SPACE_HOST};
    enum vxd_status status = VXD_OK;

    if (n_bytes > 0) {
        status = vxd_block_take(context->host_cache, n_bytes, &buffer.ptr, err);
    }
    if (status != VXD_OK) {
        buffer.n_bytes = 0;
    }
    *out = buffer;
    return status;
}

void vxd_host_free(struct vxd_context *context, struct vxd_buffer *buffer)
{
    if (buffer->ptr != NULL) {
        struct vxd_block *block = vxd_block_find(context->host_cache, buffer->ptr);

        assert(block != NULL);
        vxd_block_release(block);
    }
    *buffer = (struct vxd_buffer){NULL, 0, VXD_SPACE_HOST};
}

enum vxd_status vxd_upload(struct vxd_queue *queue, const void *host, size_t n_bytes,
                           struct vxd_buffer *device, const void **out,
                           struct vxd_err *err)
{
    enum vxd_status status;

    *device = (struct vxd_buffer){NULL, 0, VXD_SPACE_DEVICE};
    *out = host;
    if (!VXD_ON_CUDA(queue->context)) {
        return VXD_OK;
    }
    status = vxd_device_alloc(queue, n_bytes, device, err);
    if (status != VXD_OK) {
        return status;
    }
    status = vxd_queue_copy(queue, device->ptr, host, n_bytes, err);
    if (status != VXD_OK) {
        vxd_device_free(queue, device);
        return status;
    }
    *out = device->ptr;
    return VXD_OK;
}

enum vxd_status vxd_download(struct vxd_queue *queue, const void *device, size_t n_bytes,
                             struct vxd_buffer *host, const void **out,
                             struct vxd_err *err)
{
    enum vxd_status status;

    *host = (struct vxd_buffer){NULL, 0, VXD_SPACE_HOST};
    *out = device;
    if (!VXD_ON_CUDA(queue->context)) {
        return VXD_OK;
    }
    status = vxd_host_alloc(queue->context, n_bytes, host, err);
    if (status != VXD_OK) {
        return status;
    }
    status = vxd_queue_copy(queue, host->ptr, device, n_bytes, err);
    if (status != VXD_OK) {
        vxd_host_free(queue->context, host);
        return status;
    }
    *out = host->ptr;
    return VXD_OK;
}

bool vxd_layout_add(size_t *total_bytes, size_t n_items, size_t item_bytes,
                    size_t *offset)
{
    size_t n_bytes;
    size_t end;

    if (!vxd_size_mul(n_items, item_bytes, &n_bytes) ||
        !vxd_size_add(n_bytes, 255, &n_bytes) ||
        !vxd_size_add(*total_bytes, n_bytes & ~(size_t)255, &end)) {
        return false;
    }
    *offset = *total_bytes;
    *total_bytes = end;
    return true;
}
