// SPDX-License-Identifier: Apache-2.0
/* Everything between bytes and messages: the envelope, bounded decoding, encoding, JSON,
 * tensors, safetensors and OpenAPI. */
#ifndef VXD_PROTO_WIRE_WIRE_H
#define VXD_PROTO_WIRE_WIRE_H

#include "proto/wire/decode.h"
#include "proto/wire/encode.h"
#include "proto/wire/fields.h"
#include "proto/wire/json_mapping.h"
#include "proto/wire/openapi.h"
#include "proto/wire/safetensors_write.h"
#include "proto/wire/shared_memory.h"
#include "proto/wire/sp.h"
#include "proto/wire/tensor_json.h"
#include "proto/wire/wire_format.h"

#endif
