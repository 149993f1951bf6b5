// SPDX-License-Identifier: Apache-2.0
/* The one that runs ahead holds the one that waits until it is gone itself, since its input
 * may be the other's memory. */
#include "server/request/request_prerequisite.h"

#include <stdlib.h>
#include <string.h>

#include "server/instance/instance.h"

enum vxd_status vxd_request_queue(struct vxd_request *request, struct vxd_err *err)
{
    const struct vxd_server *server = request->server;
    bool waits = false;
    enum vxd_status status = VXD_OK;

    if (request->method->ahead != NULL) {
        status = request->method->ahead(request, &waits, err);
    }
    return status == VXD_OK && !waits
               ? server->schedule->push(server->scheduler, request, err)
               : status;
}

/* Instead of a transport's: the one that waits goes on, or is answered. */
static void reply(struct vxd_request *ahead, const struct vxd_err *err,
                  const ProtobufCMessage *output)
{
    struct vxd_request *request = ahead->transport;
    const struct vxd_server *server = request->server;
    struct vxd_err why = *err;
    enum vxd_status status = err->code;

    if (atomic_load(&request->answered) != 0) {
        return;
    }
    atomic_store(&request->started_ns, atomic_load(&ahead->started_ns));
    if (status == VXD_OK) {
        status = request->method->take_ahead(request, output, &why);
    }
    if (status == VXD_OK) {
        status = server->schedule->push_next(server->scheduler, request, &why);
    }
    if (status != VXD_OK) {
        (void)vxd_request_answer(request, &why, NULL);
    }
}

static void discard(struct vxd_request *ahead)
{
    vxd_request_drop(ahead->transport);
}

enum vxd_status vxd_request_create_ahead(struct vxd_request *request,
                                         const struct vxd_method *method,
                                         struct vxd_request **out, struct vxd_err *err)
{
    struct vxd_request *ahead = calloc(1, sizeof *ahead);
    enum vxd_status status;

    if (ahead == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a request");
    }
    ahead->server = request->server;
    ahead->method = method;
    ahead->lane = method->lane;
    ahead->principal = request->principal;
    memcpy(ahead->id, request->id, sizeof ahead->id);
    memcpy(ahead->client_id, request->client_id, sizeof ahead->client_id);
    memcpy(ahead->stream, request->stream, sizeof ahead->stream);
    memcpy(ahead->peer, request->peer, sizeof ahead->peer);
    ahead->peer_uid = request->peer_uid;
    ahead->keep_last = request->keep_last;
    ahead->received_ns = request->received_ns;
    ahead->deadline_ns = request->deadline_ns;
    ahead->max_age_ns = request->max_age_ns;
    ahead->reply_fn = reply;
    ahead->discard_fn = discard;
    ahead->transport = request;
    atomic_init(&ahead->references, 1);
    atomic_fetch_add(&request->server->n_open, 1);
    vxd_request_hold(request);
    status = vxd_request_open_decoder(ahead, err);
    if (status != VXD_OK) {
        vxd_request_drop(ahead);
        return status;
    }
    *out = ahead;
    return VXD_OK;
}

enum vxd_status vxd_request_submit_ahead(struct vxd_request *ahead, struct vxd_err *err)
{
    const struct vxd_server *server = ahead->server;
    enum vxd_status status = server->schedule->watch(server->scheduler, ahead, err);

    if (status == VXD_OK) {
        status = server->schedule->push(server->scheduler, ahead, err);
    }
    if (status != VXD_OK) {
        server->schedule->unwatch(server->scheduler, ahead);
    }
    vxd_request_drop(ahead);
    return status;
}
