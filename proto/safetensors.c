// SPDX-License-Identifier: Apache-2.0
/* The file:
 *
 *   8 bytes   n, length of the header, little-endian
 *   n bytes   header, one JSON object, padded with blanks so that the data are aligned to
 * 8:
 *             {"__metadata__": {NAME: TEXT, ...},
 *              NAME: {"dtype": "F32", "shape": [...], "data_offsets": [begin, end]}, ...}
 *   the rest  the tensors' bytes, little-endian, row-major, without gaps, in header
 * order; offsets count from here
 */
#include "proto/safetensors.h"

#include <stdlib.h>
#include <string.h>

#include "proto/fields.h"
#include "proto/tensor_json.h"
#include "voxeld/v1/common.pb-c.h"

enum {
    LENGTH_BYTES = 8,
    ALIGN_BYTES = 8
};

static const char *dtype_name(Voxeld__V1__DType dtype)
{
    switch ((enum vxd_dtype)dtype) {
    case VXD_INT8:
        return "I8";
    case VXD_UINT8:
        return "U8";
    case VXD_INT16:
        return "I16";
    case VXD_UINT16:
        return "U16";
    case VXD_INT32:
        return "I32";
    case VXD_UINT32:
        return "U32";
    case VXD_FLOAT32:
        return "F32";
    case VXD_FLOAT64:
        return "F64";
    case VXD_INT64:
        return "I64";
    case VXD_UINT64:
        return "U64";
    case VXD_FLOAT16:
        return "F16";
    case VXD_BFLOAT16:
        return "BF16";
    case VXD_DTYPE_UNSPECIFIED:
        break;
    }
    return NULL;
}

static bool is_tensor(const ProtobufCFieldDescriptor *field)
{
    return field->type == PROTOBUF_C_TYPE_MESSAGE &&
           field->label != PROTOBUF_C_LABEL_REPEATED &&
           field->descriptor == &voxeld__v1__tensor__descriptor;
}

/* The tensor in a field, NULL where the field is something else or not set. */
static const Voxeld__V1__Tensor *get_tensor(const ProtobufCMessage *message,
                                            const ProtobufCFieldDescriptor *field)
{
    const Voxeld__V1__Tensor *tensor = NULL;
    const uint8_t *value;

    if (is_tensor(field) && vxd_field_values(message, field, &value) > 0) {
        tensor = vxd_field_pointer(value);
    }
    return tensor;
}

/* Texts as they are: what JSON writes in quotes is a string already. */
static void write_metadata(const ProtobufCMessage *message, struct vxd_text *value,
                           struct vxd_text *header)
{
    const char *comma = "";

    vxd_text_printf(header, "{\"__metadata__\":{");
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
        const uint8_t *values;

        if (is_tensor(field) || vxd_field_values(message, field, &values) == 0) {
            continue;
        }
        value->n_bytes = 0;
        vxd_json_write_field(message, field, value);
        if (value->failed) {
            header->failed = true;
            return;
        }
        vxd_text_printf(header, "%s\"%s\":", comma, field->name);
        if (value->bytes[0] == '"') {
            vxd_text_append(header, value->bytes, value->n_bytes);
        } else {
            vxd_text_json_string(header, value->bytes, value->n_bytes);
        }
        comma = ",";
    }
    vxd_text_append(header, "}", 1);
}

static enum vxd_status write_entry(const ProtobufCFieldDescriptor *field,
                                   const Voxeld__V1__Tensor *tensor, size_t *data_bytes,
                                   struct vxd_text *header, struct vxd_err *err)
{
    size_t begin = *data_bytes;
    size_t n;

    if (tensor->n_values > 0 && tensor->data.len == 0) {
        return vxd_fail(err, VXD_FAILED_PRECONDITION, field->name,
                        "the tensor has values, a file needs data");
    }
    if (!vxd_tensor_elements(tensor, &n)) {
        return vxd_fail(err, VXD_FAILED_PRECONDITION, field->name,
                        "the tensor's %zu bytes of data do not fit its dtype and shape",
                        tensor->data.len);
    }
    if (!vxd_size_add(begin, tensor->data.len, data_bytes)) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, field->name, "no file is so large");
    }
    vxd_text_printf(header, ",\"%s\":{\"dtype\":\"%s\",\"shape\":[", field->name,
                    dtype_name(tensor->dtype));
    for (size_t i = 0; i < tensor->n_shape; i++) {
        vxd_text_printf(header, "%s%lld", i > 0 ? "," : "", (long long)tensor->shape[i]);
    }
    vxd_text_printf(header, "],\"data_offsets\":[%zu,%zu]}", begin, *data_bytes);
    return VXD_OK;
}

/* The whole header, padded; *data_bytes is what follows it. */
static enum vxd_status write_header(const ProtobufCMessage *message,
                                    struct vxd_text *header, size_t *data_bytes,
                                    struct vxd_err *err)
{
    struct vxd_text value = {0};
    enum vxd_status status = VXD_OK;

    *data_bytes = 0;
    write_metadata(message, &value, header);
    free(value.bytes);
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
        const Voxeld__V1__Tensor *tensor = get_tensor(message, field);

        if (tensor != NULL) {
            VXD_TRY(write_entry(field, tensor, data_bytes, header, err));
        }
    }
    vxd_text_append(header, "}", 1);
    while (!header->failed && header->n_bytes % ALIGN_BYTES != 0) {
        vxd_text_append(header, " ", 1);
    }
    if (header->failed) {
        status = vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                          "no memory for the file's header");
    }
out:
    return status;
}

static void copy_data(const ProtobufCMessage *message, uint8_t *at)
{
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const Voxeld__V1__Tensor *tensor =
            get_tensor(message, &message->descriptor->fields[i]);

        if (tensor != NULL && tensor->data.len > 0) {
            memcpy(at, tensor->data.data, tensor->data.len);
            at += tensor->data.len;
        }
    }
}

enum vxd_status vxd_safetensors_write(const ProtobufCMessage *message, uint8_t **bytes,
                                      size_t *n_bytes, struct vxd_err *err)
{
    struct vxd_text header = {0};
    size_t data_bytes;
    size_t total = 0;
    enum vxd_status status;
    uint8_t *file = NULL;

    VXD_TRY(write_header(message, &header, &data_bytes, err));
    if (vxd_size_add(data_bytes, LENGTH_BYTES, &total) &&
        vxd_size_add(total, header.n_bytes, &total)) {
        file = malloc(total);
    }
    if (file == NULL) {
        status = vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                          "no memory for a file with %zu bytes of data", data_bytes);
        goto out;
    }
    for (int i = 0; i < LENGTH_BYTES; i++) {
        file[i] = (uint8_t)((uint64_t)header.n_bytes >> (8 * i) & 0xFF);
    }
    memcpy(file + LENGTH_BYTES, header.bytes, header.n_bytes);
    copy_data(message, file + LENGTH_BYTES + header.n_bytes);
    *bytes = file;
    *n_bytes = total;
out:
    free(header.bytes);
    return status;
}
