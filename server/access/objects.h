// SPDX-License-Identifier: Apache-2.0
/* The names of objects in messages. Which fields hold one the schema says itself (the option `object`
 * of proto/gen/schema/voxeld/v1/options.proto); proto/gen makes the table of it. So a new method is
 * checked without a line of its own. */
#ifndef VXD_SERVER_ACCESS_OBJECTS_H
#define VXD_SERVER_ACCESS_OBJECTS_H

#include <protobuf-c/protobuf-c.h>

#include "server/access/auth.h"

/* A field that names an object. Of replies, one of an element of a list: who may not use the object
 * does not see the element. */
struct vxd_object_field {
    const ProtobufCMessageDescriptor *message;
    uint32_t path[2]; /* tags: the field, or a message and the field in it; 0 = none */
    uint32_t
        fallback; /* tag of the field that names the object where this one is empty */
    enum vxd_noun noun;
};

/* object_fields.c, which proto/gen/generate.py makes. */
extern const struct vxd_object_field vxd_request_objects[];
extern const size_t vxd_n_request_objects;
extern const struct vxd_object_field vxd_reply_objects[];
extern const size_t vxd_n_reply_objects;

/* Checks every name in a request, those of things that it would make included.
 * errors  PERMISSION_DENIED  names the field, the object, and what is allowed */
enum vxd_status vxd_objects_check(const struct vxd_principal *principal,
                                  const ProtobufCMessage *request, struct vxd_err *err);

/* Whether `is` says so of any name of a noun in a request, which may be NULL. */
bool vxd_objects_any(const ProtobufCMessage *request, enum vxd_noun noun,
                     bool (*is)(void *user, const char *name), void *user);

/* Takes out of a reply's lists what the principal may not use. */
void vxd_objects_filter(const struct vxd_principal *principal, ProtobufCMessage *reply);

#endif
