// SPDX-License-Identifier: Apache-2.0
/* Writing a message's tensors as a .safetensors file. */
#ifndef VXD_PROTO_WIRE_SAFETENSORS_WRITE_H
#define VXD_PROTO_WIRE_SAFETENSORS_WRITE_H

#include "proto/wire/decode.h"

/* Every set field of type voxeld.v1.Tensor becomes an entry of that name, in field order; those
 * of repeated messages that have a name (a map's arrays, a network's outputs) follow as
 * NAME.FIELD;
 * the message's other fields go into "__metadata__" as text, under their names: scalars
 * (defaults too) and strings as they are, what is repeated or a message as JSON where set.
 *
 * out     *bytes  malloc'd file, *n_bytes its length; the caller frees
 * errors  RESOURCE_EXHAUSTED   no memory
 *         FAILED_PRECONDITION  a tensor has `values` but no `data`, or data that do not fit
 *                              its dtype and shape; err.field names it */
enum vxd_status vxd_safetensors_write(const ProtobufCMessage *message, uint8_t **bytes,
                                      size_t *n_bytes, struct vxd_err *err);

#endif
