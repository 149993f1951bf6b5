// SPDX-License-Identifier: Apache-2.0
/* The memory of one request on a volume. */
#include <stdlib.h>

#include "server/instance/instance.h"
#include "server/service/existing/existing.h"
#include "server/service/service.h"
#include "server/service/volume/volume_service.h"

/* For methods that always change something. */
bool vxd_volume_changes(const struct vxd_request *request)
{
    (void)request;
    return true;
}

enum vxd_status vxd_volume_begin_check(struct vxd_request *request, size_t n_bytes,
                                       const char *name, struct vxd_err *err)
{
    if (!vxd_is_name(name)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "name",
                        "\"%.63s\" must be [a-z0-9][a-z0-9._-]{0,62}", name);
    }
    request->state = vxd_message_array(request->decoder, 1, n_bytes, err);
    return request->state != NULL ? VXD_OK : VXD_RESOURCE_EXHAUSTED;
}

enum vxd_status vxd_volume_open(struct vxd_request *request, const char *name,
                                struct vxd_err *err)
{
    struct vxd_volume_job *job = request->state;

    job->volume = vxd_volumes_find(request->server->volumes, name);
    if (job->volume == NULL) {
        return vxd_missing_volume(request, "name", name, err);
    }
    vxd_named_hold(&job->volume->named);
    return vxd_volume_enlist(request, err);
}

static enum vxd_status new_tensor(struct vxd_request *request, enum vxd_dtype dtype,
                                  size_t n, size_t columns, Voxeld__V1__Tensor **out,
                                  struct vxd_err *err)
{
    Voxeld__V1__Tensor *tensor =
        vxd_message_new(request->decoder, &voxeld__v1__tensor__descriptor, err);

    if (tensor == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    tensor->dtype = (Voxeld__V1__DType)dtype;
    tensor->n_shape = columns > 0 ? 2 : 1;
    tensor->shape = vxd_message_array(request->decoder, 2, sizeof *tensor->shape, err);
    if (tensor->shape == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    tensor->shape[0] = (int64_t)n;
    tensor->shape[1] = (int64_t)columns;
    *out = tensor;
    return VXD_OK;
}

enum vxd_status vxd_volume_reserve(struct vxd_request *request, struct vxd_queue *queue,
                                   enum vxd_dtype dtype, size_t n, size_t columns,
                                   Voxeld__V1__Tensor **tensor,
                                   struct vxd_volume_output **out, struct vxd_err *err)
{
    struct vxd_volume_job *job = request->state;
    struct vxd_volume_output *output = &job->outputs[job->n_outputs];
    struct vxd_context *context = vxd_queue_context(queue);
    enum vxd_status status;

    VXD_TRY(new_tensor(request, dtype, n, columns, tensor, err));
    output->n_bytes = n * (columns > 0 ? columns : 1) * vxd_dtype_bytes(dtype);
    job->n_outputs++;
    VXD_TRY(vxd_device_alloc(queue, output->n_bytes, &output->device_buffer, err));
    if (vxd_context_backend(context) == VXD_BACKEND_CUDA) {
        VXD_TRY(vxd_host_alloc(context, output->n_bytes, &output->host_buffer, err));
    }
    output->device = output->device_buffer.ptr;
    *out = output;
out:
    return status;
}

enum vxd_status vxd_volume_fetch(struct vxd_request *request, struct vxd_queue *queue,
                                 struct vxd_err *err)
{
    struct vxd_volume_job *job = request->state;
    bool is_cuda = vxd_context_backend(vxd_queue_context(queue)) == VXD_BACKEND_CUDA;
    enum vxd_status status = VXD_OK;

    for (size_t i = 0; i < job->n_outputs; i++) {
        struct vxd_volume_output *output = &job->outputs[i];

        output->bytes = is_cuda ? output->host_buffer.ptr : output->device;
        if (is_cuda && output->n_bytes > 0) {
            VXD_TRY(vxd_queue_copy(queue, output->host_buffer.ptr, output->device,
                                   output->n_bytes, err));
        }
    }
out:
    return status;
}

void vxd_volume_show(Voxeld__V1__Tensor *tensor, const struct vxd_volume_output *output)
{
    if (tensor != NULL && output != NULL) {
        tensor->data.data = (uint8_t *)(uintptr_t)output->bytes;
        tensor->data.len = output->n_bytes;
    }
}

void vxd_volume_release(struct vxd_request *request, struct vxd_queue *queue)
{
    struct vxd_volume_job *job = request->state;
    struct vxd_context *context = vxd_queue_context(queue);

    for (size_t i = 0; i < job->n_outputs; i++) {
        vxd_device_free(queue, &job->outputs[i].device_buffer);
        vxd_host_free(context, &job->outputs[i].host_buffer);
    }
    job->n_outputs = 0;
    vxd_volume_end_commit(queue, &job->commit);
    free(job->forgotten);
    job->forgotten = NULL;
    if (job->volume != NULL) {
        /* The volume may have grown before a failure. */
        vxd_named_account(&job->volume->named);
        vxd_named_drop(&job->volume->named, queue);
        job->volume = NULL;
    }
    if (job->made != NULL) {
        vxd_named_drop(&job->made->named, queue);
        job->made = NULL;
    }
}
