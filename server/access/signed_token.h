// SPDX-License-Identifier: Apache-2.0
/* Short-lived tokens, which are listed nowhere: a token says itself who issued it, what it may do and
 * until when, under an HMAC-SHA256 of this server's key.
 *
 *   vxd1.PAYLOAD.MAC    both in base64url without padding
 *   PAYLOAD             NAME\nSCOPES\nEXPIRES\nID\nPREFIXES
 *                       the issuer; a digit as vxd_scope has it; Unix seconds and an id in
 *                       hexadecimal digits; a comma list, empty = all
 *   MAC                 the first 16 bytes of the HMAC of "vxd1.PAYLOAD"
 *
 * The key lies in the data directory as token.key, 32 random bytes that only the daemon's user may
 * read. Without a data directory, or in another one, the tokens of this process are none. */
#ifndef VXD_SERVER_ACCESS_SIGNED_TOKEN_H
#define VXD_SERVER_ACCESS_SIGNED_TOKEN_H

#include "proto/base/name.h"

#include "proto/base/base.h"

#define VXD_SIGNED_TOKEN_BYTES 1024 /* of the longest one, with its zero byte */
#define VXD_SIGNED_PREFIXES_BYTES 512

struct vxd_token_key {
    uint8_t bytes[32];
};

struct vxd_signed_token {
    char issuer[VXD_NAME_BYTES];
    uint32_t scopes;
    int64_t expires_unix_s;
    uint32_t id;
    char prefixes[VXD_SIGNED_PREFIXES_BYTES]; /* "" = all */
};

/* Reads the key of a data directory and makes one where there is none; "" makes one that nobody
 * keeps.
 * errors  INVALID_ARGUMENT  the file is none, or others than its owner may read it; says which
 *         INTERNAL          it cannot be made */
enum vxd_status vxd_token_key_open(const char *data_dir, struct vxd_token_key *out,
                                   struct vxd_err *err);

/* Whether a text looks like one of these tokens, of whatever server. */
bool vxd_is_signed_token(const char *text);

/* errors  INVALID_ARGUMENT  it would be longer than tokens may be */
enum vxd_status vxd_signed_token_write(const struct vxd_token_key *key,
                                       const struct vxd_signed_token *token,
                                       char out[VXD_SIGNED_TOKEN_BYTES],
                                       struct vxd_err *err);

/* Reads a token of this server's, whatever its time. False: it is none. */
bool vxd_signed_token_read(const struct vxd_token_key *key, const char *text,
                           struct vxd_signed_token *out);

/* Random bytes from the system. errors  INTERNAL */
enum vxd_status vxd_token_random(void *out, size_t n_bytes, struct vxd_err *err);

#endif
