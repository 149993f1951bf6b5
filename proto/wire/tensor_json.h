// SPDX-License-Identifier: Apache-2.0
/* Tensors for people who read JSON: small ones as numbers instead of base64. */
#ifndef VXD_PROTO_WIRE_TENSOR_JSON_H
#define VXD_PROTO_WIRE_TENSOR_JSON_H

#include "proto/wire/json_mapping.h"
#include "voxeld/v1/common.pb-c.h"

/* A tensor of at most so many elements is written as `values`. */
#define VXD_JSON_MAX_VALUES 4096

/* Computes product(shape), and whether the tensor is sound: at most 8 extents, none
 * negative, no overflow, and data holds exactly so many elements of a known type. */
bool vxd_tensor_elements(const Voxeld__V1__Tensor *tensor, size_t *out);

/* Whether the tensor's data can be written as `values` without loss: sound, no `values`
 * of its own, few enough elements, and each of them a number that a double holds. */
bool vxd_tensor_fits_values(const Voxeld__V1__Tensor *tensor);

/* Appends the elements of a tensor that fits as a JSON array, each with the digits that
 * read back as the same element. */
void vxd_tensor_write_values(const Voxeld__V1__Tensor *tensor, struct vxd_text *text);

/* Appends one JSON number (or "NaN", "Infinity", "-Infinity") with as few digits as
 * give the same value back; json_write.c. */
void vxd_text_json_double(struct vxd_text *text, double value);
void vxd_text_json_float(struct vxd_text *text, float value);

#endif
