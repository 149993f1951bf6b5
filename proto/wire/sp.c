// SPDX-License-Identifier: Apache-2.0
#include "proto/wire/sp.h"

#include <string.h>

#define IPC_MESSAGE 1
#define LAST_WORD 0x80

void vxd_sp_write_greeting(uint8_t out[VXD_SP_GREETING_BYTES], uint16_t protocol)
{
    const uint8_t greeting[VXD_SP_GREETING_BYTES] = {
        0, 'S', 'P', 0, (uint8_t)(protocol >> 8), (uint8_t)protocol, 0, 0};

    memcpy(out, greeting, sizeof greeting);
}

enum vxd_sp_result vxd_sp_check_greeting(const uint8_t *bytes, size_t n_bytes,
                                         uint16_t protocol)
{
    uint8_t expected[VXD_SP_GREETING_BYTES];
    size_t n = n_bytes < sizeof expected ? n_bytes : sizeof expected;

    vxd_sp_write_greeting(expected, protocol);
    if (memcmp(bytes, expected, n) != 0) {
        return VXD_SP_INVALID;
    }
    return n == sizeof expected ? VXD_SP_OK : VXD_SP_MORE;
}

size_t vxd_sp_head_bytes(bool is_ipc)
{
    return is_ipc ? VXD_SP_IPC_HEAD_BYTES : VXD_SP_TCP_HEAD_BYTES;
}

size_t vxd_sp_write_head(uint8_t out[VXD_SP_MAX_HEAD_BYTES], bool is_ipc,
                         uint64_t n_bytes)
{
    size_t at = 0;

    if (is_ipc) {
        out[at++] = IPC_MESSAGE;
    }
    for (int shift = 56; shift >= 0; shift -= 8) {
        out[at++] = (uint8_t)(n_bytes >> shift);
    }
    return at;
}

enum vxd_sp_result vxd_sp_read_head(const uint8_t *bytes, size_t n_bytes, bool is_ipc,
                                    uint64_t *n_message_bytes)
{
    size_t at = 0;

    if (is_ipc && n_bytes > 0 && bytes[at++] != IPC_MESSAGE) {
        return VXD_SP_INVALID;
    }
    if (n_bytes < vxd_sp_head_bytes(is_ipc)) {
        return VXD_SP_MORE;
    }
    *n_message_bytes = 0;
    for (size_t end = at + 8; at < end; at++) {
        *n_message_bytes = *n_message_bytes << 8 | bytes[at];
    }
    return VXD_SP_OK;
}

enum vxd_sp_result vxd_sp_read_route(const uint8_t *bytes, size_t n_bytes,
                                     struct vxd_sp_route *out)
{
    for (size_t at = 0; at < VXD_SP_MAX_ROUTE_BYTES; at += VXD_SP_WORD_BYTES) {
        if (n_bytes - at < VXD_SP_WORD_BYTES) {
            return VXD_SP_MORE;
        }
        if ((bytes[at] & LAST_WORD) != 0) {
            out->n_bytes = at + VXD_SP_WORD_BYTES;
            memcpy(out->bytes, bytes, out->n_bytes);
            return VXD_SP_OK;
        }
    }
    return VXD_SP_INVALID;
}
