// SPDX-License-Identifier: Apache-2.0
/* Files in the schema's JSON, as proto/wire maps it: calls whose requests are such files, what reads
 * one, and what the generated functions that make records of its messages call. */
#ifndef VXD_CLIENT_VOXELCTL_MESSAGES_MESSAGES_H
#define VXD_CLIENT_VOXELCTL_MESSAGES_MESSAGES_H

#include "client/voxelctl/cli/cli.h"
#include "proto/wire/wire.h"
#include "voxeld/v1/common.pb-c.h"

/* Calls a method whose whole request is the JSON of a file ("-": standard input), and prints its reply
 * as JSON. Returns the exit status; errors name the field as it is written in the file. */
int ctl_call_with_json(const struct ctl_globals *globals, const char *path,
                       const char *method, bool changes);

/* Reads a message of this type from a file of at most VXD_JSON_MAX_BYTES ("-": standard input). A file
 * that is a list is the message's field `list`. The message lives until *arena is destroyed, which the
 * caller does in either case. CTL_FAILED after a message. */
int ctl_read_message(const char *path, const ProtobufCMessageDescriptor *type,
                     const char *list, struct vxd_decoder **arena,
                     ProtobufCMessage **out);

/* The array of a tensor with data, or with values, which are of FLOAT64 where it does not say a type.
 * False after a message in *err. */
bool ctl_read_tensor(const Voxeld__V1__Tensor *tensor, const char *name,
                     struct vxd_decoder *arena, struct voxeld_array *out,
                     struct vxd_err *err);

/* Copies n numbers; there may be none. False after a message in *err. */
bool ctl_read_int32s(const int32_t *in, size_t n_in, const char *name, size_t n,
                     int32_t *out, struct vxd_err *err);

#endif
