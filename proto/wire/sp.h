// SPDX-License-Identifier: Apache-2.0
/* The bytes that nng's peers exchange: Scalability Protocols, request/reply.
 *
 *   connection   greeting of 8 bytes from both sides: 0, "SP", 0, protocol (16 bits), 0, 0
 *   message      on ipc a byte of 1; then its length, 64 bits; then so many bytes
 *   request      words of 32 bits, of which the last one has its highest bit set: those
 *                before it are the hops it came by, the last one is its id; then the body
 *   reply        the same words, then the body
 *
 * All numbers are big-endian. Source: nanomsg's RFCs sp-tcp-mapping-01 and sp-request-reply-01;
 * for ipc nng's transport. */
#ifndef VXD_PROTO_WIRE_SP_H
#define VXD_PROTO_WIRE_SP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VXD_SP_GREETING_BYTES 8
#define VXD_SP_REQ 0x30
#define VXD_SP_REP 0x31

#define VXD_SP_IPC_HEAD_BYTES 9
#define VXD_SP_TCP_HEAD_BYTES 8
#define VXD_SP_MAX_HEAD_BYTES VXD_SP_IPC_HEAD_BYTES

/* A request comes by at most so many devices, as in nng. */
#define VXD_SP_MAX_HOPS ((size_t)8)
#define VXD_SP_WORD_BYTES 4
#define VXD_SP_MAX_ROUTE_BYTES ((VXD_SP_MAX_HOPS + 1) * VXD_SP_WORD_BYTES)

/* The words in front of a body. */
struct vxd_sp_route {
    uint8_t bytes[VXD_SP_MAX_ROUTE_BYTES];
    size_t n_bytes;
};

enum vxd_sp_result {
    VXD_SP_OK,
    VXD_SP_MORE,   /* the bytes end too early */
    VXD_SP_INVALID /* this is no such peer, or no such message */
};

void vxd_sp_write_greeting(uint8_t out[VXD_SP_GREETING_BYTES], uint16_t protocol);

/* Whether the first n_bytes of a greeting can be one of a peer of this protocol. */
enum vxd_sp_result vxd_sp_check_greeting(const uint8_t *bytes, size_t n_bytes,
                                         uint16_t protocol);

/* Bytes in front of each message. */
size_t vxd_sp_head_bytes(bool is_ipc);

/* Writes them; gives their number. */
size_t vxd_sp_write_head(uint8_t out[VXD_SP_MAX_HEAD_BYTES], bool is_ipc,
                         uint64_t n_bytes);

/* The length of the message that begins here. */
enum vxd_sp_result vxd_sp_read_head(const uint8_t *bytes, size_t n_bytes, bool is_ipc,
                                    uint64_t *n_message_bytes);

/* The words at the begin of a request of which n_bytes are there. */
enum vxd_sp_result vxd_sp_read_route(const uint8_t *bytes, size_t n_bytes,
                                     struct vxd_sp_route *out);

#endif
