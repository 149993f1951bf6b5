// SPDX-License-Identifier: Apache-2.0
/* The OpenAPI 3.0 description of the HTTP side, generated from the descriptors. */
#ifndef VXD_PROTO_WIRE_OPENAPI_H
#define VXD_PROTO_WIRE_OPENAPI_H

#include "proto/wire/json_mapping.h"

struct vxd_openapi_method {
    const char *name; /* path is /v1/NAME */
    const char *summary;
    const char *scope; /* "read", "write", "admin" */
    const ProtobufCMessageDescriptor *request;
    const ProtobufCMessageDescriptor *response;
};

/* Appends the document: every method as POST with JSON and protobuf bodies, every message
 * and enum reachable from them as a schema, the error object, bearer security.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_openapi_write(const struct vxd_openapi_method *methods,
                                  size_t n_methods, const char *version,
                                  struct vxd_text *text, struct vxd_err *err);

#endif
