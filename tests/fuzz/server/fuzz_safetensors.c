// SPDX-License-Identifier: Apache-2.0
/* Weights files: whatever the bytes, either tensors that lie within the file, all of whose
 * elements can be read, or a reason. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "server/model/safetensors_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_all(const struct vxd_safetensors *file, size_t size)
{
    for (size_t i = 0; i < file->n_tensors; i++) {
        const struct vxd_tensor *tensor = &file->tensors[i];

        assert(vxd_safetensors_find(file, tensor->name) == tensor);
        assert(tensor->begin <= size && tensor->n_bytes <= size - tensor->begin);
        assert(tensor->n_dims <= VXD_TENSOR_MAX_RANK);
        if (vxd_tensor_is_float(tensor)) {
            volatile double sum = 0;

            for (size_t k = 0; k < tensor->n_elements; k++) {
                sum = sum + vxd_tensor_get(file, tensor, k);
            }
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *bytes = malloc(size + 8 + 1);

    assert(bytes != NULL);
    /* As it is, and as the header of a file whose length is right. */
    for (int mended = 0; mended < 2; mended++) {
        size_t n = size + (mended != 0 ? 8 : 0);
        struct vxd_safetensors file;
        struct vxd_err err = {0};
        enum vxd_status status;

        if (mended != 0) {
            const uint8_t *end = memchr(data, '\0', size);
            uint64_t n_header = end != NULL ? (uint64_t)(end - data) : size;

            memcpy(bytes, &n_header, sizeof n_header);
            memcpy(bytes + 8, data, size);
        } else {
            memcpy(bytes, data, size);
        }
        status = vxd_safetensors_parse("fuzz.safetensors", bytes, n, &file, &err);
        if (status == VXD_OK) {
            read_all(&file, n);
        } else {
            assert(err.code == status && err.message[0] != '\0');
            assert(file.tensors == NULL);
        }
        vxd_safetensors_free(&file);
    }
    free(bytes);
    return 0;
}
