// SPDX-License-Identifier: Apache-2.0
/* A method is a few functions, and one table of methods serves both transports. The
 * server's own table is in server/method_table.c: a new method is one file in service/
 * and one row there. main.c hands the table in, so that nothing here depends on the
 * services. */
#ifndef VXD_SERVER_REQUEST_METHOD_H
#define VXD_SERVER_REQUEST_METHOD_H

#include <protobuf-c/protobuf-c.h>

#include "gpu/core/core.h"
#include "server/access/access.h"

struct vxd_body;
struct vxd_noun_service;
struct vxd_query_calls;
struct vxd_request;

enum vxd_lane_kind {
    VXD_LANE_NONE = 0, /* answered on the transport's thread, never queued: check only */
    VXD_LANE_READ = 1, /* changes nothing; several run at once */
    VXD_LANE_WRITE = 2 /* one at a time, in order, but for long changes of scenes */
};

/* A decoded query of a file upload: "size" -> "0.1". */
struct vxd_query_item {
    const char *key;
    const char *value;
};

struct vxd_method {
    const char *name; /* "voxelize": HTTP path, log and metrics label */
    uint32_t tag;     /* field number in Request and Response */
    const char *summary;
    enum vxd_scope scope;
    enum vxd_lane_kind lane;
    /* Its requests wait in a list of their own, which bounds them (service/watch): they take no
     * place in the queue. */
    bool waits_apart;
    /* Of methods whose functions are those of several nouns: which one this is (service/noun). */
    const struct vxd_noun_service *noun;
    /* Of queries by rows, whose stages are the same: what is this one's own (service/columns). */
    const struct vxd_query_calls *query;
    const ProtobufCMessageDescriptor *input;
    const ProtobufCMessageDescriptor *output;

    /* NULL where the method changes nothing; else it says whether this decoded request
     * does. Such a request needs the scope write, takes effect exactly once, and runs to
     * its end once it has begun. It is all or nothing: after an error nothing has
     * changed. */
    bool (*changes)(const struct vxd_request *request);

    /* Requests that set a batch_key may run as one (request_life.h). Then submit, finish
     * and release are called for the first of them, whose companions are the others, and
     * finish sets the output of every one. Where a batch fails, release is called, and
     * then submit again for each request alone. So release must leave a request as check
     * made it, and no request suffers for another. */

    /* On the transport's thread: checks every field of request->input, sets
     * request->bulk and request->cost_bytes (engine memory it will take, for admission),
     * and request->lane where it is not the method's.
     * For VXD_LANE_NONE it also sets request->output. Refuses nothing for what other requests
     * change: a repeated request passes as the first one did. */
    enum vxd_status (*check)(struct vxd_request *request, struct vxd_err *err);

    /* On a lane's thread: enqueues one stage on the queue. On a read lane it returns without
     * waiting. On the write lane it may wait for the queue where the next step depends on
     * what the device found, and this is the whole list:
     *   - capacity: vxd_hashmap_prepare counts distinct new keys before a map changes;
     *   - an edit of a scene (vxd_svdag_edit_wait), which grows the store and begins again where
     *     something did not fit, and the voxels of a scan before they are edited;
     *   - what the journal's record is made of: inputs that are copied from the device;
     *   - a snapshot file's copy of the log-odds of the scene's family, with the allocation of its
     *     host memory (scene_fusion.h).
     * So a write holds its lane as long as the device works for it. Reads go on meanwhile.
     * Sets request->more when another stage must follow once the queue has run this one;
     * other requests may run between stages, and the next stage may come on another lane
     * of the same context; with request->lane set to another kind, it does. On the write lane they
     * do so only where the request is bulk and changes nothing, or has changed nothing yet
     * (is_preparing): all others run there to their end. NULL for VXD_LANE_NONE. */
    enum vxd_status (*submit)(struct vxd_request *request, struct vxd_queue *queue,
                              struct vxd_err *err);

    /* On a lane's thread, after the last stage has run: sets request->output, whose
     * message and arrays stay valid until release. What has changed something must not
     * fail here. */
    enum vxd_status (*finish)(struct vxd_request *request, struct vxd_queue *queue,
                              struct vxd_err *err);

    /* On a lane's thread, once, after the reply, also after failures and expiry, if submit
     * was ever called: frees request->state and what it holds. */
    void (*release)(struct vxd_request *request, struct vxd_queue *queue);
    /* The reply comes after release, so that whoever reads it finds the bytes and the names that
     * the request gave up free, on whichever lane the next one runs. The output then lies in the
     * request's decoder. */
    bool releases_first;

    /* Optional; called once on any thread when the request is gone, run or not. It frees
     * what check took; request->state is set where check set it. */
    void (*forget)(struct vxd_request *request);

    /* Optional; called on any thread when a request that repeats no other is about to be
     * queued. It may submit a prerequisite, a request that has to run before this one
     * (request_prerequisite.h), and then sets *waits. take_prerequisite gets the output
     * of that one, on its thread. */
    enum vxd_status (*prerequisite)(struct vxd_request *request, bool *waits,
                                    struct vxd_err *err);
    enum vxd_status (*take_prerequisite)(struct vxd_request *request,
                                         const ProtobufCMessage *output,
                                         struct vxd_err *err);

    /* Optional; called on any thread when a request that waits by its own wish (waits_apart) is
     * answered meanwhile: it waits no more. */
    void (*unpark)(struct vxd_request *request);

    /* Optional, on the transport's thread: builds request->input from a file sent as a
     * body (?format=pcd&size=0.1). The bytes stay valid as long as the request. */
    enum vxd_status (*from_file)(struct vxd_request *request, const struct vxd_body *body,
                                 struct vxd_err *err);
    bool takes_parts; /* from_file takes several files, as multipart/form-data */
};

/* The methods of a server, in the order of the schema's field numbers. */
struct vxd_method_table {
    const struct vxd_method *methods;
    size_t n_methods;
};

/* NULL when there is none. */
const struct vxd_method *vxd_method_by_tag(const struct vxd_method_table *table,
                                           uint32_t tag);
const struct vxd_method *vxd_method_by_name(const struct vxd_method_table *table,
                                            const char *name);

/* What rules of tokens may name: the methods, and "metrics", the page. Borrows from the table.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_method_names_make(const struct vxd_method_table *table,
                                      struct vxd_method_names *out, struct vxd_err *err);
void vxd_method_names_free(struct vxd_method_names *names);

/* Returns the method's index in the table, for metrics; SIZE_MAX for a method that is not
 * in it. */
size_t vxd_method_index(const struct vxd_method_table *table,
                        const struct vxd_method *method);

#endif
