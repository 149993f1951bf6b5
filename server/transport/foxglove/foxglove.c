// SPDX-License-Identifier: Apache-2.0
/* The life of a viewer, and its socket's calls. */
#include "server/transport/foxglove/foxglove.h"

#include <stdlib.h>
#include <string.h>

#include "server/transport/foxglove/viewer_internal.h"

const char *const vxd_foxglove_protocols[] = {"foxglove.sdk.v1", "foxglove.websocket.v1",
                                              NULL};

enum vxd_status vxd_foxglove_create(struct vxd_server *server,
                                    const struct vxd_principal *principal,
                                    const struct vxd_foxglove_peer *peer,
                                    size_t max_bytes, struct vxd_foxglove **out,
                                    struct vxd_err *err)
{
    struct vxd_foxglove *viewer = calloc(1, sizeof *viewer);
    enum vxd_status status;

    if (viewer == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a viewer");
    }
    viewer->server = server;
    atomic_init(&viewer->references, 1);
    (void)pthread_mutex_init(&viewer->lock, NULL);
    (void)snprintf(viewer->token, sizeof viewer->token, "%s", peer->token);
    (void)snprintf(viewer->certified, sizeof viewer->certified, "%s", peer->certified);
    (void)snprintf(viewer->traceparent, sizeof viewer->traceparent, "%s",
                   peer->traceparent != NULL ? peer->traceparent : "");
    (void)snprintf(viewer->peer, sizeof viewer->peer, "%s", peer->name);
    viewer->peer_uid = peer->uid;
    viewer->max_bytes = max_bytes;
    viewer->next_id = VXD_FOX_LOG_ID + 1;
    viewer->transforms_version = 1;
    voxeld__v1__watch_point__init(&viewer->after);
    voxeld__v1__watch_point__init(&viewer->volumes_after);
    status =
        vxd_watch_take_place(server->watch, principal, peer->name, &viewer->place, err);
    if (status != VXD_OK) {
        vxd_foxglove_drop(viewer);
        return status;
    }
    *out = viewer;
    return VXD_OK;
}

void vxd_foxglove_drop(struct vxd_foxglove *viewer)
{
    if (viewer == NULL || atomic_fetch_sub(&viewer->references, 1) != 1) {
        return;
    }
    vxd_watch_give_place(viewer->server->watch, &viewer->place);
    if (viewer->socket != NULL) {
        vxd_socket_drop(viewer->socket);
    }
    memset(viewer->token, 0, sizeof viewer->token);
    (void)pthread_mutex_destroy(&viewer->lock);
    free(viewer->things);
    free(viewer);
}

static void on_opened(void *session, struct vxd_socket *socket)
{
    struct vxd_foxglove *viewer = session;

    vxd_socket_hold(socket);
    (void)pthread_mutex_lock(&viewer->lock);
    viewer->socket = socket;
    vxd_fox_send_server_info(viewer);
    vxd_fox_advertise(viewer, true, 0);
    (void)pthread_mutex_unlock(&viewer->lock);
}

static void on_received(void *session, bool is_text, const uint8_t *bytes, size_t n_bytes)
{
    struct vxd_foxglove *viewer = session;
    struct vxd_foxglove_command command;
    struct vxd_err err = {0};
    enum vxd_status status =
        is_text
            ? vxd_foxglove_read(bytes, n_bytes, &command, &err)
            : vxd_fail(&err, VXD_UNIMPLEMENTED, NULL,
                       "binary messages need the capability clientPublish or services, "
                       "which this server does not offer");

    (void)pthread_mutex_lock(&viewer->lock);
    if (status != VXD_OK) {
        vxd_fox_send_status(viewer, 2, "%s%s%s", err.field,
                            err.field[0] != '\0' ? ": " : "", err.message);
    } else if (command.op == VXD_FOXGLOVE_SUBSCRIBE) {
        vxd_fox_subscribe(viewer, &command);
    } else {
        vxd_fox_unsubscribe(viewer, &command);
    }
    vxd_socket_wake(viewer->socket);
    (void)pthread_mutex_unlock(&viewer->lock);
}

static void on_drained(void *session)
{
    vxd_fox_work_on(session);
}

static void on_closed(void *session)
{
    struct vxd_foxglove *viewer = session;
    struct vxd_request *work[VXD_FOX_N_WORK];
    struct vxd_err err = {0};

    (void)pthread_mutex_lock(&viewer->lock);
    viewer->is_gone = true;
    memcpy(work, viewer->work, sizeof work);
    memset(viewer->work, 0, sizeof viewer->work);
    (void)pthread_mutex_unlock(&viewer->lock);
    (void)vxd_fail(&err, VXD_CANCELLED, NULL, "the connection ended");
    for (size_t i = 0; i < VXD_FOX_N_WORK; i++) {
        if (work[i] != NULL) {
            (void)vxd_request_answer(work[i], &err, NULL);
            vxd_request_drop(work[i]);
        }
    }
}

const struct vxd_socket_calls vxd_foxglove_calls = {on_opened, on_received, on_drained,
                                                    on_closed};
