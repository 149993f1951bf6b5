// SPDX-License-Identifier: Apache-2.0
/* multipart/form-data (RFC 7578, RFC 2046): several files in one body. Private to server/request. */
#ifndef VXD_SERVER_REQUEST_MULTIPART_H
#define VXD_SERVER_REQUEST_MULTIPART_H

#include "server/request/request_life.h"

/* Splits a body into its parts, whose bytes stay in it. What is before the first boundary and
 * after the last is skipped.
 * errors  INVALID_ARGUMENT  no or an unfinished part, more than VXD_BODY_MAX_PARTS, two of one
 *                           name, a head without a name or longer than 2048 bytes */
enum vxd_status vxd_multipart_split(const uint8_t *bytes, size_t n_bytes,
                                    const char *boundary,
                                    struct vxd_body_part parts[VXD_BODY_MAX_PARTS],
                                    size_t *n_parts, struct vxd_err *err);

#endif
