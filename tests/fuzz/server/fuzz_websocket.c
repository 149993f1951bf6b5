// SPDX-License-Identifier: Apache-2.0
/* What we read ourselves of WebSockets: the headers of a handshake, which are the input's lines,
 * and what a Foxglove viewer says, which is the whole input. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "server/transport/foxglove/foxglove_internal.h"
#include "server/transport/websocket/websocket.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Cuts the next line off; NULL where there is none. */
static const char *next_line(char **text)
{
    char *line = *text;
    char *end = line != NULL ? strchr(line, '\n') : NULL;

    *text = end != NULL ? end + 1 : NULL;
    if (end != NULL) {
        *end = '\0';
    }
    return line;
}

static void check_handshake(const uint8_t *data, size_t size)
{
    char *copy = malloc(size + 1);
    char *rest = copy;
    char accept[VXD_WEBSOCKET_ACCEPT_BYTES] = "";
    struct vxd_websocket_offer offer;
    struct vxd_err err = {0};
    enum vxd_status status;

    assert(copy != NULL);
    memcpy(copy, data, size);
    copy[size] = '\0';
    offer.upgrade = next_line(&rest);
    offer.connection = next_line(&rest);
    offer.version = next_line(&rest);
    offer.key = next_line(&rest);
    status = vxd_websocket_check(&offer, accept, &err);
    if (status == VXD_OK) {
        assert(strlen(accept) == VXD_WEBSOCKET_ACCEPT_BYTES - 1);
        assert(vxd_websocket_list_has(offer.upgrade, "websocket"));
        assert(strlen(offer.key) == 24);
    } else {
        assert(err.code == status && err.field[0] != '\0' && err.message[0] != '\0');
    }
    free(copy);
}

static void check_message(const uint8_t *data, size_t size)
{
    static struct vxd_foxglove_command command;
    struct vxd_err err = {0};
    enum vxd_status status = vxd_foxglove_read(data, size, &command, &err);

    if (status == VXD_OK) {
        assert(command.n <= VXD_FOXGLOVE_MOST_SUBSCRIPTIONS);
        assert(command.op == VXD_FOXGLOVE_SUBSCRIBE ||
               command.op == VXD_FOXGLOVE_UNSUBSCRIBE);
    } else {
        assert(err.code == status && err.message[0] != '\0');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_handshake(data, size);
    check_message(data, size);
    return 0;
}
