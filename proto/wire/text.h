// SPDX-License-Identifier: Apache-2.0
/* Growing texts, the part that only proto/ uses (the rest: json_mapping.h). */
#ifndef VXD_PROTO_WIRE_TEXT_H
#define VXD_PROTO_WIRE_TEXT_H

#include "proto/wire/json_mapping.h"

/* Room for n_bytes and a NUL past the end; the caller writes them and adds to n_bytes.
 * NULL, and text->failed, when memory runs out. */
char *vxd_text_reserve(struct vxd_text *text, size_t n_bytes);

#endif
