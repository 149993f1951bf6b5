// SPDX-License-Identifier: Apache-2.0
/* What the engine fills and a reply shows: columns of rows, one array each. A method reserves them, queues
 * the work that fills them, fetches them, and shows them as tensors once the queue has run; they live until
 * release. Queries do all of it by their stages, below. */
#ifndef VXD_SERVER_SERVICE_COLUMNS_COLUMNS_H
#define VXD_SERVER_SERVICE_COLUMNS_COLUMNS_H

#include "gpu/core/core.h"
#include "gpu/hash/hash.h"
#include "server/request/request.h"
#include "voxeld/v1/common.pb-c.h"

enum {
    VXD_COLUMNS_MAX = VXD_HASHMAP_MAX_VALUES + 8 /* of one request */
};

struct vxd_column {
    size_t n_bytes;
    void *device; /* NULL: the host makes it */
    struct vxd_buffer device_buffer;
    struct vxd_buffer
        host_buffer; /* CUDA: where the copy lands; or what the host makes */
    /* On the host: what was fetched, once the queue has run; or what the host makes. */
    void *bytes;
    Voxeld__V1__Tensor *tensor; /* which shows it; NULL: none does */
};

/* Zero-initialised it has none. */
struct vxd_columns {
    struct vxd_column columns[VXD_COLUMNS_MAX];
    size_t n;
};

/* Reserves memory for a column, on device and host.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_columns_reserve(struct vxd_columns *columns, struct vxd_queue *queue,
                                    size_t n_rows, size_t row_bytes,
                                    struct vxd_column **out, struct vxd_err *err);

/* The same, with the tensor of n rows that will show it, or NULL; n_elements 0: one extent only.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_columns_reserve_shown(struct vxd_request *request,
                                          struct vxd_columns *columns,
                                          struct vxd_queue *queue, enum vxd_dtype dtype,
                                          size_t n_rows, size_t n_elements,
                                          Voxeld__V1__Tensor **tensor,
                                          struct vxd_column **out, struct vxd_err *err);

/* The same for a column that the host makes.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_columns_reserve_made(struct vxd_request *request,
                                         struct vxd_columns *columns,
                                         enum vxd_dtype dtype, size_t n_rows,
                                         size_t n_elements, Voxeld__V1__Tensor **tensor,
                                         struct vxd_column **out, struct vxd_err *err);

/* Queues the copies of all columns to the host; fails only with the device. */
enum vxd_status vxd_columns_fetch(struct vxd_columns *columns, struct vxd_queue *queue,
                                  struct vxd_err *err);

/* Makes the tensors of columns that were reserved with one show them, once they are fetched. */
void vxd_columns_show(const struct vxd_columns *columns);

/* Frees all columns; nothing where there are none. */
void vxd_columns_free(struct vxd_columns *columns, struct vxd_queue *queue);

/* Makes a tensor of n rows in the request's memory, without bytes; n_elements 0: one extent only.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_column_new_tensor(struct vxd_request *request, enum vxd_dtype dtype,
                                      size_t n_rows, size_t n_elements,
                                      Voxeld__V1__Tensor **out, struct vxd_err *err);

/* Gives a tensor the extents of a box instead of its rows.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_column_set_box(struct vxd_request *request,
                                   Voxeld__V1__Tensor *tensor, const int64_t extents[3],
                                   struct vxd_err *err);

/* Makes a tensor show a column that is fetched; nothing where one of them is NULL. */
void vxd_column_show(Voxeld__V1__Tensor *tensor, const struct vxd_column *column);

/* Counts the ones in a mask of n bytes. */
size_t vxd_column_count(const struct vxd_column *mask, size_t n);

/* --- queries by rows -----------------------------------------------------------------------------
 *
 * Points, keys, rays or boxes in, columns out. They are all answered by the same stages:
 *
 *   begin    the thing is found, the rows are uploaded, and the columns are reserved
 *   prepare  optional stages until there is what the rows are asked of
 *   run      a part of the rows a stage, so that other requests run in between
 *   finish   the columns are shown, and `end` adds what the reply says beside them
 *
 * A method hands in its own as a struct vxd_query_calls, by its row of the method table; submit and finish
 * of that row are the functions below. request->state begins with a struct vxd_query. */

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
