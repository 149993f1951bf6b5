// SPDX-License-Identifier: Apache-2.0
/* The handshake of a WebSocket: RFC 6455, 4.2. A server proves that it understood by the SHA-1 of
 * the key and a fixed text; SHA-1 protects nothing here. */
#include "server/transport/websocket/websocket.h"

#include <nettle/sha1.h>
#include <string.h>
#include <strings.h>

#include "proto/base/base64.h"

#define MAGIC "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
#define KEY_BYTES 16
#define KEY_CHARS 24

bool vxd_websocket_list_has(const char *list, const char *token)
{
    size_t n_token = strlen(token);

    while (*list != '\0') {
        size_t n;

        list += strspn(list, " \t,");
        n = strcspn(list, " \t,");
        if (n == n_token && strncasecmp(list, token, n) == 0) {
            return true;
        }
        list += n;
    }
    return false;
}

/* 16 bytes as base64, no more and no less. */
static bool is_key(const char *key)
{
    uint8_t bytes[KEY_BYTES + 2];
    size_t n_bytes = 0;

    return strlen(key) == KEY_CHARS && strcmp(key + KEY_CHARS - 2, "==") == 0 &&
           vxd_base64_decoded_bytes(key, KEY_CHARS, &n_bytes) && n_bytes == KEY_BYTES &&
           vxd_base64_decode(key, KEY_CHARS, bytes);
}

static void write_accept(const char *key, char accept[VXD_WEBSOCKET_ACCEPT_BYTES])
{
    uint8_t digest[SHA1_DIGEST_SIZE];
    struct sha1_ctx context;

    sha1_init(&context);
    sha1_update(&context, KEY_CHARS, (const uint8_t *)key);
    sha1_update(&context, sizeof MAGIC - 1, (const uint8_t *)MAGIC);
    sha1_digest(&context, sizeof digest, digest);
    vxd_base64_encode(digest, sizeof digest, accept);
    accept[VXD_WEBSOCKET_ACCEPT_BYTES - 1] = '\0';
}

enum vxd_status vxd_websocket_check(const struct vxd_websocket_offer *offer,
                                    char accept[VXD_WEBSOCKET_ACCEPT_BYTES],
                                    struct vxd_err *err)
{
    if (offer->upgrade == NULL || !vxd_websocket_list_has(offer->upgrade, "websocket")) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "Upgrade",
                        "'%.40s' is not possible here; websocket is",
                        offer->upgrade != NULL ? offer->upgrade : "");
    }
    if (offer->connection == NULL ||
        !vxd_websocket_list_has(offer->connection, "upgrade")) {
        return vxd_fail(
            err, VXD_INVALID_ARGUMENT, "Connection",
            "a WebSocket needs 'Connection: Upgrade'; a proxy in between must pass "
            "it on");
    }
    if (offer->version == NULL || strcmp(offer->version, "13") != 0) {
        return vxd_fail(err, VXD_UNIMPLEMENTED, "Sec-WebSocket-Version",
                        "'%.20s' is not possible; 13 is",
                        offer->version != NULL ? offer->version : "");
    }
    if (offer->key == NULL || !is_key(offer->key)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "Sec-WebSocket-Key",
                        "is not 16 bytes as base64");
    }
    write_accept(offer->key, accept);
    return VXD_OK;
}
