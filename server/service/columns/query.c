// SPDX-License-Identifier: Apache-2.0
#include "server/service/columns/columns.h"

#include "server/service/service.h"

enum vxd_status vxd_query_submit(struct vxd_request *request, struct vxd_queue *queue,
                                 struct vxd_err *err)
{
    const struct vxd_query_calls *calls = request->method->query;
    struct vxd_query *query = request->state;
    bool is_ready = true;
    size_t first;
    size_t n;
    enum vxd_status status = VXD_OK;

    if (query->reply == NULL) {
        query->reply = vxd_message_new(request->decoder, request->method->output, err);
        if (query->reply == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
        VXD_TRY(calls->begin(request, queue, err));
    }
    if (calls->prepare != NULL) {
        VXD_TRY(calls->prepare(request, queue, &is_ready, err));
    }
    request->more = true;
    if (!is_ready) {
        return VXD_OK;
    }
    first = query->done;
    n = query->n - first;
    n = query->part_rows > 0 && query->part_rows < n ? query->part_rows : n;
    query->done += n;
    if (n > 0 && calls->run != NULL) {
        VXD_TRY(calls->run(request, queue, first, n, err));
    }
    request->more = query->done < query->n;
    if (!request->more) {
        VXD_TRY(vxd_columns_fetch(&query->columns, queue, err));
    }
out:
    return status;
}

enum vxd_status vxd_query_finish(struct vxd_request *request, struct vxd_queue *queue,
                                 struct vxd_err *err)
{
    const struct vxd_query_calls *calls = request->method->query;
    const struct vxd_query *query = request->state;
    enum vxd_status status;

    vxd_columns_show(&query->columns);
    request->output = query->reply;
    status = calls->end(request, queue, err);
    if (status == VXD_OK && calls->close != NULL) {
        calls->close(request, queue);
    }
    return status;
}

enum vxd_status vxd_query_reserve(struct vxd_request *request, struct vxd_queue *queue,
                                  enum vxd_dtype dtype, size_t n_elements,
                                  Voxeld__V1__Tensor **tensor, struct vxd_column **out,
                                  struct vxd_err *err)
{
    struct vxd_query *query = request->state;

    return vxd_columns_reserve_shown(request, &query->columns, queue, dtype, query->n,
                                     n_elements, tensor, out, err);
}

enum vxd_status vxd_query_reserve_made(struct vxd_request *request, enum vxd_dtype dtype,
                                       size_t n_elements, Voxeld__V1__Tensor **tensor,
                                       struct vxd_column **out, struct vxd_err *err)
{
    struct vxd_query *query = request->state;

    return vxd_columns_reserve_made(request, &query->columns, dtype, query->n, n_elements,
                                    tensor, out, err);
}
