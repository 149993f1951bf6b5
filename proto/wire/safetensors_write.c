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
#include "proto/wire/safetensors_write.h"

#include <stdlib.h>
#include <string.h>

#include "proto/wire/fields.h"
#include "proto/wire/tensor_json.h"
#include "voxeld/v1/common.pb-c.h"

enum {
    LENGTH_BYTES = 8,
    ALIGN_BYTES = 8,
    ENTRY_BYTES = 192
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

/* Returns the tensor in a field, NULL where the field is something else or not set. */
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

/* Returns the member "name" of messages that have one, and tensors; else NULL. Fields
 * of such messages are named arrays. */
static const ProtobufCFieldDescriptor *find_name(const ProtobufCFieldDescriptor *field)
{
    const ProtobufCMessageDescriptor *inner = field->descriptor;
    const ProtobufCFieldDescriptor *name = NULL;
    bool has_tensor = false;

    if (field->type != PROTOBUF_C_TYPE_MESSAGE ||
        field->label != PROTOBUF_C_LABEL_REPEATED) {
        return NULL;
    }
    for (unsigned i = 0; i < inner->n_fields; i++) {
        const ProtobufCFieldDescriptor *member = &inner->fields[i];

        has_tensor = has_tensor || is_tensor(member);
        if (member->type == PROTOBUF_C_TYPE_STRING &&
            member->label != PROTOBUF_C_LABEL_REPEATED &&
            strcmp(member->name, "name") == 0) {
            name = member;
        }
    }
    return has_tensor ? name : NULL;
}

/* Returns element i of a repeated field of messages. */
static const ProtobufCMessage *element_at(const uint8_t *values, size_t i)
{
    return vxd_field_pointer(values + i * sizeof(void *));
}

/* Writes the field as JSON without its elements' tensors, which are entries. It works
 * on copies of the structs, whose other members are borrowed. */
static void write_without_tensors(const ProtobufCMessage *message,
                                  const ProtobufCFieldDescriptor *field,
                                  struct vxd_text *value)
{
    const ProtobufCMessageDescriptor *inner = field->descriptor;
    const uint8_t *values;
    size_t n = vxd_field_values(message, field, &values);
    uint8_t *outer = malloc(message->descriptor->sizeof_message);
    uint8_t *copies = calloc(n > 0 ? n : 1, inner->sizeof_message);
    void **list = calloc(n > 0 ? n : 1, sizeof *list);

    if (outer == NULL || copies == NULL || list == NULL) {
        value->failed = true;
        goto out;
    }
    for (size_t i = 0; i < n; i++) {
        list[i] = copies + i * inner->sizeof_message;
        memcpy(list[i], element_at(values, i), inner->sizeof_message);
        for (unsigned k = 0; k < inner->n_fields; k++) {
            if (is_tensor(&inner->fields[k])) {
                memset((uint8_t *)list[i] + inner->fields[k].offset, 0, sizeof(void *));
            }
        }
    }
    memcpy(outer, message, message->descriptor->sizeof_message);
    memcpy(outer + field->offset, &list, sizeof list);
    vxd_json_write_field((const ProtobufCMessage *)(const void *)outer, field, value);
out:
    free(outer);
    free(copies);
    free(list);
}

/* Writes texts as they are: what JSON writes in quotes is a string already. */
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
        if (find_name(field) != NULL) {
            write_without_tensors(message, field, value);
        } else {
            vxd_json_write_field(message, field, value);
        }
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

/* name: of the array that the tensor is of; NULL = it is the message's own. */
static enum vxd_status write_entry(const char *name,
                                   const ProtobufCFieldDescriptor *field,
                                   const Voxeld__V1__Tensor *tensor, size_t *data_bytes,
                                   struct vxd_text *header, struct vxd_err *err)
{
    char entry[ENTRY_BYTES];
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
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, field->name,
                        "the file would be too large");
    }
    (void)snprintf(entry, sizeof entry, "%s%s%s", name != NULL ? name : "",
                   name != NULL ? "." : "", field->name);
    vxd_text_append(header, ",", 1);
    vxd_text_json_string(header, entry, strlen(entry));
    vxd_text_printf(header, ":{\"dtype\":\"%s\",\"shape\":[", dtype_name(tensor->dtype));
    for (size_t i = 0; i < tensor->n_shape; i++) {
        vxd_text_printf(header, "%s%lld", i > 0 ? "," : "", (long long)tensor->shape[i]);
    }
    vxd_text_printf(header, "],\"data_offsets\":[%zu,%zu]}", begin, *data_bytes);
    return VXD_OK;
}

/* Writes the entries of a message's own tensors, then those of its named arrays. */
static enum vxd_status write_entries(const char *name, const ProtobufCMessage *message,
                                     size_t *data_bytes, struct vxd_text *header,
                                     struct vxd_err *err)
{
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
        const Voxeld__V1__Tensor *tensor = get_tensor(message, field);
        enum vxd_status status =
            tensor != NULL ? write_entry(name, field, tensor, data_bytes, header, err)
                           : VXD_OK;

        if (status != VXD_OK) {
            return status;
        }
    }
    return VXD_OK;
}

static enum vxd_status write_all_entries(const ProtobufCMessage *message,
                                         size_t *data_bytes, struct vxd_text *header,
                                         struct vxd_err *err)
{
    enum vxd_status status = write_entries(NULL, message, data_bytes, header, err);

    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
        const ProtobufCFieldDescriptor *name = find_name(field);
        const uint8_t *values;
        size_t n = name != NULL ? vxd_field_values(message, field, &values) : 0;

        for (size_t k = 0; k < n && status == VXD_OK; k++) {
            const ProtobufCMessage *element = element_at(values, k);
            const char *text = vxd_field_pointer((const uint8_t *)element + name->offset);

            status = write_entries(text, element, data_bytes, header, err);
        }
    }
    return status;
}

/* Writes the whole header, padded; *data_bytes is the size of what follows it. */
static enum vxd_status write_header(const ProtobufCMessage *message,
                                    struct vxd_text *header, size_t *data_bytes,
                                    struct vxd_err *err)
{
    struct vxd_text value = {0};
    enum vxd_status status = VXD_OK;

    *data_bytes = 0;
    write_metadata(message, &value, header);
    free(value.bytes);
    VXD_TRY(write_all_entries(message, data_bytes, header, err));
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

/* Copies a tensor's data and returns the end of the copy. */
static uint8_t *copy_data(const ProtobufCMessage *message, uint8_t *at)
{
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const Voxeld__V1__Tensor *tensor =
            get_tensor(message, &message->descriptor->fields[i]);

        if (tensor != NULL && tensor->data.len > 0) {
            memcpy(at, tensor->data.data, tensor->data.len);
            at += tensor->data.len;
        }
    }
    return at;
}

/* Copies all data in the order of the entries. */
static void copy_all_data(const ProtobufCMessage *message, uint8_t *at)
{
    at = copy_data(message, at);
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
        const uint8_t *values;
        size_t n =
            find_name(field) != NULL ? vxd_field_values(message, field, &values) : 0;

        for (size_t k = 0; k < n; k++) {
            at = copy_data(element_at(values, k), at);
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
    copy_all_data(message, file + LENGTH_BYTES + header.n_bytes);
    *bytes = file;
    *n_bytes = total;
out:
    free(header.bytes);
    return status;
}
