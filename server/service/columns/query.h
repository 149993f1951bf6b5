// SPDX-License-Identifier: Apache-2.0
/* Queries by rows: points, keys, rays or boxes in, columns out. They are all answered by the same stages:
 *
 *   begin    the thing is found, the rows are uploaded, and the columns are reserved
 *   prepare  optional stages until there is what the rows are asked of
 *   run      a part of the rows a stage, so that other requests run in between
 *   finish   the columns are shown, and `end` adds what the reply says beside them
 *
 * A method hands in its own as a struct vxd_query_calls, by its row of the method table; submit and finish
 * of that row are the functions below. request->state begins with a struct vxd_query. */
#ifndef VXD_SERVER_SERVICE_COLUMNS_QUERY_H
#define VXD_SERVER_SERVICE_COLUMNS_QUERY_H

#include "server/service/columns/columns.h"

/* Zero-initialised it has not begun. */
struct vxd_query {
    struct vxd_columns columns;
    size_t n;         /* rows; set by check, or at the latest before the first run */
    size_t part_rows; /* of one stage; 0 = all. Set by check or begin */
    size_t done;      /* rows of the stages before */
    ProtobufCMessage *reply; /* the method's output, made before begin */
};

struct vxd_query_calls {
    /* Reserves all that the rows need; `reply` is there for the tensors. */
    enum vxd_status (*begin)(struct vxd_request *request, struct vxd_queue *queue,
                             struct vxd_err *err);
    /* One stage on the way to the first row; what it queues has run when it is called again. Where it is
     * ready, the first rows are of the same stage. NULL: it is ready at once. */
    enum vxd_status (*prepare)(struct vxd_request *request, struct vxd_queue *queue,
                               bool *is_ready, struct vxd_err *err);
    /* Queues n > 0 rows from `first` on. NULL: begin and prepare do it all. */
    enum vxd_status (*run)(struct vxd_request *request, struct vxd_queue *queue,
                           size_t first, size_t n, struct vxd_err *err);
    /* Makes the columns of the host, and says in the reply what is beside the columns. */
    enum vxd_status (*end)(struct vxd_request *request, struct vxd_queue *queue,
                           struct vxd_err *err);
    /* After `end` has succeeded: gives up what is held, so that a client that has the reply may drop it
     * and have its memory back. NULL: release is soon enough. */
    void (*close)(struct vxd_request *request, struct vxd_queue *queue);
};

enum vxd_status vxd_query_submit(struct vxd_request *request, struct vxd_queue *queue,
                                 struct vxd_err *err);
enum vxd_status vxd_query_finish(struct vxd_request *request, struct vxd_queue *queue,
                                 struct vxd_err *err);

/* Reserves a column of the query's rows, as vxd_columns_reserve_shown does; and one that the host makes in
 * `end`. For begin.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_query_reserve(struct vxd_request *request, struct vxd_queue *queue,
                                  enum vxd_dtype dtype, size_t n_elements,
                                  Voxeld__V1__Tensor **tensor, struct vxd_column **out,
                                  struct vxd_err *err);
enum vxd_status vxd_query_reserve_made(struct vxd_request *request, enum vxd_dtype dtype,
                                       size_t n_elements, Voxeld__V1__Tensor **tensor,
                                       struct vxd_column **out, struct vxd_err *err);

#endif
