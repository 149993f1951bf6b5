// SPDX-License-Identifier: Apache-2.0
/* The OpenAPI 3.0 description of the HTTP side. proto/gen makes it from the annotated schema
 * (proto/generated/openapi.json), and the build puts its bytes here. */
#ifndef VXD_PROTO_WIRE_OPENAPI_H
#define VXD_PROTO_WIRE_OPENAPI_H

#include <stddef.h>

/* Every route with its bodies, every message and enum reachable from them as a schema, the
 * error object, bearer security. Without a NUL at the end. */
extern const char vxd_openapi_json[];
extern const size_t vxd_openapi_json_bytes;

#endif
