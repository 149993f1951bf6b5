// SPDX-License-Identifier: Apache-2.0
#include "server/service/columns/columns.h"

#include "server/instance/instance.h"
#include "server/service/service.h"

static enum vxd_status count_bytes(size_t n_rows, size_t row_bytes, size_t *n_bytes,
                                   struct vxd_err *err)
{
    return vxd_size_mul(n_rows, row_bytes, n_bytes)
               ? VXD_OK
               : vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "%zu rows are too many",
                          n_rows);
}

enum vxd_status vxd_columns_reserve(struct vxd_columns *columns, struct vxd_queue *queue,
                                    size_t n_rows, size_t row_bytes,
                                    struct vxd_column **out, struct vxd_err *err)
{
    struct vxd_column *column = &columns->columns[columns->n];
    struct vxd_context *context = vxd_queue_context(queue);
    enum vxd_status status;

    *column = (struct vxd_column){0};
    VXD_TRY(count_bytes(n_rows, row_bytes, &column->n_bytes, err));
    columns->n++;
    VXD_TRY(vxd_device_alloc(queue, column->n_bytes, &column->device_buffer, err));
    if (vxd_context_backend(context) == VXD_BACKEND_CUDA) {
        VXD_TRY(vxd_host_alloc(context, column->n_bytes, &column->host_buffer, err));
    }
    column->device = column->device_buffer.ptr;
    *out = column;
out:
    return status;
}

enum vxd_status vxd_columns_reserve_shown(struct vxd_request *request,
                                          struct vxd_columns *columns,
                                          struct vxd_queue *queue, enum vxd_dtype dtype,
                                          size_t n_rows, size_t n_elements,
                                          Voxeld__V1__Tensor **tensor,
                                          struct vxd_column **out, struct vxd_err *err)
{
    size_t row_bytes = (n_elements > 0 ? n_elements : 1) * vxd_dtype_bytes(dtype);
    enum vxd_status status;

    VXD_TRY(vxd_columns_reserve(columns, queue, n_rows, row_bytes, out, err));
    if (tensor != NULL) {
        VXD_TRY(vxd_column_new_tensor(request, dtype, n_rows, n_elements, tensor, err));
        (*out)->tensor = *tensor;
    }
out:
    return status;
}

enum vxd_status vxd_columns_reserve_made(struct vxd_request *request,
                                         struct vxd_columns *columns,
                                         enum vxd_dtype dtype, size_t n_rows,
                                         size_t n_elements, Voxeld__V1__Tensor **tensor,
                                         struct vxd_column **out, struct vxd_err *err)
{
    size_t row_bytes = (n_elements > 0 ? n_elements : 1) * vxd_dtype_bytes(dtype);
    struct vxd_column *column = &columns->columns[columns->n];
    enum vxd_status status;

    *column = (struct vxd_column){0};
    VXD_TRY(vxd_column_new_tensor(request, dtype, n_rows, n_elements, tensor, err));
    column->tensor = *tensor;
    VXD_TRY(count_bytes(n_rows, row_bytes, &column->n_bytes, err));
    columns->n++;
    VXD_TRY(vxd_host_alloc(request->server->context, column->n_bytes,
                           &column->host_buffer, err));
    column->bytes = column->host_buffer.ptr;
    *out = column;
out:
    return status;
}

enum vxd_status vxd_columns_fetch(struct vxd_columns *columns, struct vxd_queue *queue,
                                  struct vxd_err *err)
{
    bool is_cuda = vxd_context_backend(vxd_queue_context(queue)) == VXD_BACKEND_CUDA;
    enum vxd_status status = VXD_OK;

    for (size_t i = 0; i < columns->n; i++) {
        struct vxd_column *column = &columns->columns[i];

        if (column->device == NULL) {
            continue;
        }
        column->bytes = is_cuda ? column->host_buffer.ptr : column->device;
        if (is_cuda && column->n_bytes > 0) {
            VXD_TRY(vxd_queue_copy(queue, column->host_buffer.ptr, column->device,
                                   column->n_bytes, err));
        }
    }
out:
    return status;
}

void vxd_columns_show(const struct vxd_columns *columns)
{
    for (size_t i = 0; i < columns->n; i++) {
        vxd_column_show(columns->columns[i].tensor, &columns->columns[i]);
    }
}

void vxd_columns_free(struct vxd_columns *columns, struct vxd_queue *queue)
{
    for (size_t i = 0; i < columns->n; i++) {
        vxd_device_free(queue, &columns->columns[i].device_buffer);
        vxd_host_free(vxd_queue_context(queue), &columns->columns[i].host_buffer);
    }
    columns->n = 0;
}

enum vxd_status vxd_column_new_tensor(struct vxd_request *request, enum vxd_dtype dtype,
                                      size_t n_rows, size_t n_elements,
                                      Voxeld__V1__Tensor **out, struct vxd_err *err)
{
    Voxeld__V1__Tensor *tensor =
        vxd_message_new(request->decoder, &voxeld__v1__tensor__descriptor, err);

    if (tensor == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    tensor->shape = vxd_message_array(request->decoder, 2, sizeof *tensor->shape, err);
    if (tensor->shape == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    tensor->dtype = (Voxeld__V1__DType)dtype;
    tensor->shape[0] = (int64_t)n_rows;
    tensor->shape[1] = (int64_t)n_elements;
    tensor->n_shape = n_elements > 0 ? 2 : 1;
    *out = tensor;
    return VXD_OK;
}

enum vxd_status vxd_column_set_box(struct vxd_request *request,
                                   Voxeld__V1__Tensor *tensor, const int64_t extents[3],
                                   struct vxd_err *err)
{
    tensor->shape = vxd_message_array(request->decoder, 3, sizeof *tensor->shape, err);
    if (tensor->shape == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    memcpy(tensor->shape, extents, 3 * sizeof *extents);
    tensor->n_shape = 3;
    return VXD_OK;
}

void vxd_column_show(Voxeld__V1__Tensor *tensor, const struct vxd_column *column)
{
    if (tensor != NULL && column != NULL && column->n_bytes > 0) {
        tensor->data.len = column->n_bytes;
        tensor->data.data = column->bytes;
    }
}

size_t vxd_column_count(const struct vxd_column *mask, size_t n)
{
    const uint8_t *bytes = mask->bytes;
    size_t n_ones = 0;

    for (size_t i = 0; i < n; i++) {
        n_ones += bytes[i];
    }
    return n_ones;
}
