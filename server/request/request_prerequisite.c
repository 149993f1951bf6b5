// SPDX-License-Identifier: Apache-2.0
/* The prerequisite holds the request that waits for it until it is gone itself, since its
 * input may be the other's memory. */
#include "server/request/request_prerequisite.h"

#include <stdlib.h>
#include <string.h>

#include "server/instance/instance.h"

enum vxd_status vxd_request_queue(struct vxd_request *request, struct vxd_err *err)
{
    const struct vxd_server *server = request->server;
    bool waits = false;
    enum vxd_status status = VXD_OK;

    if (request->method->prerequisite != NULL) {
        status = request->method->prerequisite(request, &waits, err);
    }
    return status == VXD_OK && !waits
               ? server->schedule->push(server->scheduler, request, err)
               : status;
}

/* Takes the place of a transport's reply_fn: the waiting request goes on, or is answered
 * with the prerequisite's error, or as CANCELLED where its sender has gone meanwhile. */
static void reply(struct vxd_request *prerequisite, const struct vxd_err *err,
                  const ProtobufCMessage *output)
{
    struct vxd_request *request = prerequisite->transport;
    const struct vxd_server *server = request->server;
    struct vxd_err why = *err;
    enum vxd_status status = err->code;

    if (atomic_load(&request->answered) != 0) {
        return;
    }
    atomic_store(&request->started_ns, atomic_load(&prerequisite->started_ns));
    if (status == VXD_OK && vxd_request_is_over(request)) {
        status = vxd_fail(&why, VXD_CANCELLED, NULL, "the connection has ended");
    }
    if (status == VXD_OK) {
        status = request->method->take_prerequisite(request, output, &why);
    }
    if (status == VXD_OK) {
        status = server->schedule->push_next(server->scheduler, request, &why);
    }
    if (status != VXD_OK) {
        (void)vxd_request_answer(request, &why, NULL);
    }
}

static void discard(struct vxd_request *prerequisite)
{
    vxd_request_drop(prerequisite->transport);
}

enum vxd_status vxd_request_create_prerequisite(struct vxd_request *request,
                                                const struct vxd_method *method,
                                                struct vxd_request **out,
                                                struct vxd_err *err)
{
    struct vxd_request *prerequisite = calloc(1, sizeof *prerequisite);
    enum vxd_status status;

    if (prerequisite == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a request");
    }
    prerequisite->server = request->server;
    prerequisite->method = method;
    prerequisite->lane = method->lane;
    prerequisite->principal = request->principal;
    (void)vxd_rules_hold(prerequisite->principal.rules);
    memcpy(prerequisite->id, request->id, sizeof prerequisite->id);
    memcpy(prerequisite->client_id, request->client_id, sizeof prerequisite->client_id);
    memcpy(prerequisite->stream, request->stream, sizeof prerequisite->stream);
    memcpy(prerequisite->peer, request->peer, sizeof prerequisite->peer);
    prerequisite->peer_uid = request->peer_uid;
    prerequisite->keep_last = request->keep_last;
    prerequisite->began_ns = request->began_ns;
    prerequisite->received_ns = request->received_ns;
    prerequisite->deadline_ns = request->deadline_ns;
    prerequisite->max_age_ns = request->max_age_ns;
    prerequisite->reply_fn = reply;
    prerequisite->discard_fn = discard;
    prerequisite->transport = request;
    atomic_init(&prerequisite->references, 1);
    atomic_fetch_add(&request->server->n_open, 1);
    vxd_request_hold(request);
    status = vxd_request_open_decoder(prerequisite, err);
    if (status != VXD_OK) {
        vxd_request_drop(prerequisite);
        return status;
    }
    *out = prerequisite;
    return VXD_OK;
}

enum vxd_status vxd_request_submit_prerequisite(struct vxd_request *prerequisite,
                                                struct vxd_err *err)
{
    const struct vxd_server *server = prerequisite->server;
    enum vxd_status status =
        server->schedule->watch(server->scheduler, prerequisite, err);

    if (status == VXD_OK) {
        status = server->schedule->push(server->scheduler, prerequisite, err);
    }
    if (status != VXD_OK) {
        server->schedule->unwatch(server->scheduler, prerequisite);
    }
    vxd_request_drop(prerequisite);
    return status;
}
