// SPDX-License-Identifier: Apache-2.0
/* Byte planes: many bytes of one kind, stored as they are or with a Huffman code of their own,
 * whichever is shorter. byte_planes.c describes the format. */
#ifndef VXD_SERVER_DURABLE_RECORD_BYTE_PLANES_H
#define VXD_SERVER_DURABLE_RECORD_BYTE_PLANES_H

#include "proto/base/bytes.h"

/* Adds a plane of n bytes. Out of memory shows in *out. */
void vxd_byte_plane_put(struct vxd_bytes_out *out, const uint8_t *plane, size_t n);

/* Reads a plane of n bytes into `plane`. False (and in->is_bad) where there is none. */
bool vxd_byte_plane_get(struct vxd_bytes_in *in, uint8_t *plane, size_t n);

#endif
