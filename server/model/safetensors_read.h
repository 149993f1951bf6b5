// SPDX-License-Identifier: Apache-2.0
/* Reads .safetensors files. The header's claims are checked against the bytes that are
 * there before anything is believed. safetensors_read.c describes the file byte by
 * byte. */
#ifndef VXD_SERVER_MODEL_SAFETENSORS_READ_H
#define VXD_SERVER_MODEL_SAFETENSORS_READ_H

#include "proto/base/base.h"

enum {
    VXD_TENSOR_MAX_RANK = 8,
    VXD_TENSOR_NAME_BYTES = 160,
    VXD_SAFETENSORS_MAX_TENSORS = 16384,
    VXD_SAFETENSORS_MAX_HEADER = 4 << 20
};

struct vxd_tensor {
    char name[VXD_TENSOR_NAME_BYTES];
    char dtype[8]; /* as the header says it: "F32" */
    size_t n_dims; /* 0 to VXD_TENSOR_MAX_RANK */
    size_t shape[VXD_TENSOR_MAX_RANK];
    size_t n_elements;
    size_t begin; /* of its bytes, from the start of the file */
    size_t n_bytes;
};

/* A file in memory, borrowed. Zero-initialised = no tensors. */
struct vxd_safetensors {
    const uint8_t *bytes;
    struct vxd_tensor *tensors; /* sorted by name */
    size_t n_tensors;
};

/* errors  INVALID_ARGUMENT    what is wrong and where: err.field is "weights" or
 *                             "weights[NAME]"; `file` stands before the message
 *         RESOURCE_EXHAUSTED  no memory for the table of tensors
 * owner   the caller: vxd_safetensors_free; bytes stay borrowed until then */
enum vxd_status vxd_safetensors_parse(const char *file, const void *bytes, size_t n_bytes,
                                      struct vxd_safetensors *out, struct vxd_err *err);
void vxd_safetensors_free(struct vxd_safetensors *file);

/* Finds a tensor by name; NULL where there is none. */
const struct vxd_tensor *vxd_safetensors_find(const struct vxd_safetensors *file,
                                              const char *name);

/* Whether its elements are F64, F32, F16 or BF16. */
bool vxd_tensor_is_float(const struct vxd_tensor *tensor);

/* Returns element i of such a tensor; i < n_elements. */
double vxd_tensor_get(const struct vxd_safetensors *file, const struct vxd_tensor *tensor,
                      size_t i);

#endif
