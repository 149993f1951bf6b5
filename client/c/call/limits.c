// SPDX-License-Identifier: Apache-2.0
/* What the server takes at most, asked once a connection, and the time of calls that name none. */
#include "client/c/call/client_internal.h"

enum {
    /* Of calls that name no timeout: what is asked for at most, and while the server's limit is not
     * known. */
    LONGEST_TIMEOUT_MS = 60000,
    SHORT_TIMEOUT_MS = 5000
};

enum vxd_status vxd_client_get_info(struct voxeld_client *client,
                                    const struct voxeld_call *call,
                                    char request_id[VXD_REQUEST_ID_BYTES],
                                    struct vxd_reply *reply, struct vxd_err *err)
{
    Voxeld__V1__Request request = VOXELD__V1__REQUEST__INIT;
    Voxeld__V1__ServerInfoRequest body = VOXELD__V1__SERVER_INFO_REQUEST__INIT;
    uint64_t connection_no;
    enum vxd_status status;

    (void)pthread_mutex_lock(&client->mutex);
    connection_no = client->connection_no;
    (void)pthread_mutex_unlock(&client->mutex);
    request.method_case = VOXELD__V1__REQUEST__METHOD_SERVER_INFO;
    request.server_info = &body;
    status = vxd_client_call(client, call, &request, request_id, reply, err);
    if (status == VXD_OK) {
        (void)pthread_mutex_lock(&client->mutex);
        client->max_message_bytes = reply->response->server_info->max_message_bytes;
        client->max_timeout_ms = reply->response->server_info->max_timeout_ms;
        client->limit_known_for = connection_no;
        (void)pthread_mutex_unlock(&client->mutex);
    }
    return status;
}

void vxd_client_learn_limit(struct voxeld_client *client,
                            const struct voxeld_call *options)
{
    struct voxeld_call call = {0};
    char request_id[VXD_REQUEST_ID_BYTES];
    struct vxd_reply reply = {0};
    enum vxd_status status;
    bool known;

    (void)pthread_mutex_lock(&client->mutex);
    known = client->limit_known_for == client->connection_no && client->connection_no > 0;
    (void)pthread_mutex_unlock(&client->mutex);
    if (known) {
        return;
    }
    if (options != NULL) {
        call.timeout_ms = options->timeout_ms;
        call.client_id = options->client_id;
    }
    status = vxd_client_get_info(client, &call, request_id, &reply, NULL);
    if (status == VXD_OK) {
        vxd_reply_close(&reply);
    } else if (status == VXD_PERMISSION_DENIED) {
        /* The token's rules: it is not asked again. */
        (void)pthread_mutex_lock(&client->mutex);
        client->limit_known_for = client->connection_no;
        (void)pthread_mutex_unlock(&client->mutex);
    }
}

uint32_t vxd_client_timeout_ms(struct voxeld_client *client,
                               const struct voxeld_call *options, bool may_wait)
{
    uint64_t limit_ms;

    if (client->timeout_ms > 0) {
        return client->timeout_ms;
    }
    if (may_wait) {
        vxd_client_learn_limit(client, options);
    }
    (void)pthread_mutex_lock(&client->mutex);
    limit_ms = client->max_timeout_ms;
    (void)pthread_mutex_unlock(&client->mutex);
    if (limit_ms == 0) {
        return SHORT_TIMEOUT_MS;
    }
    return limit_ms < LONGEST_TIMEOUT_MS ? (uint32_t)limit_ms : LONGEST_TIMEOUT_MS;
}
