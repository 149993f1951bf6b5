// SPDX-License-Identifier: Apache-2.0
/* Growing texts: the part of json_mapping.h's that only proto/ uses. */
#ifndef VXD_PROTO_WIRE_TEXT_H
#define VXD_PROTO_WIRE_TEXT_H

#include "proto/wire/json_mapping.h"

/* Reserves n_bytes and a NUL after them; the caller writes the bytes and adds to
 * n_bytes. NULL, and text->failed, when memory runs out. */
char *vxd_text_reserve(struct vxd_text *text, size_t n_bytes);

/* Appends an integer, as "%lld" and "%llu" write it. */
void vxd_text_signed(struct vxd_text *text, int64_t value);
void vxd_text_unsigned(struct vxd_text *text, uint64_t value);

#endif
