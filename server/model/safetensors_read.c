// SPDX-License-Identifier: Apache-2.0
/* The file, all numbers little-endian:
 *     8 bytes   length of the header, n
 *     n bytes   JSON: {"NAME": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
 *               ..., "__metadata__": {"key": "text", ...}}; may end in spaces
 *     the rest  the tensors' elements, row-major; offsets count from here
 * Tensors lie one behind the other without holes and fill the rest to its end. */
#include "server/model/safetensors_read.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/model/json_value.h"

enum {
    LENGTH_BYTES = 8
};

static const struct {
    char name[8];
    size_t n_bytes;
} dtypes[] = {
    {"F64", 8}, {"F32", 4}, {"F16", 2},     {"BF16", 2}, {"I64", 8},
    {"I32", 4}, {"I16", 2}, {"I8", 1},      {"U64", 8},  {"U32", 4},
    {"U16", 2}, {"U8", 1},  {"F8_E5M2", 1}, {"BOOL", 1},
};

/* What reading one tensor's description shares. */
struct entry {
    struct vxd_tensor *tensor;
    size_t element_bytes; /* 0 = no dtype yet */
    bool has_shape;
    bool has_offsets;
    size_t end;
};

static uint64_t read_u64(const uint8_t *bytes)
{
    uint64_t value = 0;

    for (int i = LENGTH_BYTES - 1; i >= 0; i--) {
        value = value << 8 | bytes[i];
    }
    return value;
}

static enum vxd_status read_dtype(const struct vxd_json *json, const char *path,
                                  const json_t *value, void *to)
{
    struct entry *entry = to;
    const char *text = json_string_value(value);

    if (text == NULL) {
        return vxd_json_fail_type(json, path, "a string", value);
    }
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
        if (strcmp(dtypes[i].name, text) == 0) {
            memcpy(entry->tensor->dtype, dtypes[i].name, sizeof dtypes[i].name);
            entry->element_bytes = dtypes[i].n_bytes;
            return VXD_OK;
        }
    }
    return vxd_json_fail(json, path, "\"%.20s\" is no known element type", text);
}

static enum vxd_status read_size(const struct vxd_json *json, const char *path,
                                 const json_t *value, size_t *out)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0) {
        return vxd_json_fail(json, path, "must be whole numbers of at least 0");
    }
    *out = (size_t)json_integer_value(value);
    return VXD_OK;
}

static enum vxd_status read_shape(const struct vxd_json *json, const char *path,
                                  const json_t *value, void *to)
{
    struct entry *entry = to;
    struct vxd_tensor *tensor = entry->tensor;

    if (!json_is_array(value)) {
        return vxd_json_fail_type(json, path, "an array", value);
    }
    if (json_array_size(value) > VXD_TENSOR_MAX_RANK) {
        return vxd_json_fail(json, path, "has %zu dimensions, at most %d are supported",
                             json_array_size(value), VXD_TENSOR_MAX_RANK);
    }
    tensor->n_dims = json_array_size(value);
    tensor->n_elements = 1;
    for (size_t i = 0; i < tensor->n_dims; i++) {
        enum vxd_status status =
            read_size(json, path, json_array_get(value, i), &tensor->shape[i]);

        if (status != VXD_OK) {
            return status;
        }
        if (!vxd_size_mul(tensor->n_elements, tensor->shape[i], &tensor->n_elements)) {
            return vxd_json_fail(json, path, "has more elements than can be counted");
        }
    }
    entry->has_shape = true;
    return VXD_OK;
}

static enum vxd_status read_offsets(const struct vxd_json *json, const char *path,
                                    const json_t *value, void *to)
{
    struct entry *entry = to;
    enum vxd_status status;

    if (!json_is_array(value) || json_array_size(value) != 2) {
        return vxd_json_fail(json, path, "must be an array of two numbers");
    }
    VXD_TRY(read_size(json, path, json_array_get(value, 0), &entry->tensor->begin));
    VXD_TRY(read_size(json, path, json_array_get(value, 1), &entry->end));
    entry->has_offsets = true;
out:
    return status;
}

static const struct vxd_json_key entry_keys[] = {
    {"dtype", read_dtype},
    {"shape", read_shape},
    {"data_offsets", read_offsets},
};

static enum vxd_status read_entry(const struct vxd_json *json, const char *name,
                                  const json_t *value, size_t n_data,
                                  struct vxd_tensor *out)
{
    struct entry entry = {.tensor = out};
    char path[VXD_JSON_PATH_BYTES];
    enum vxd_status status;
    size_t n = strlen(name);
    size_t expected;

    (void)snprintf(path, sizeof path, "weights[%.60s]", name);
    if (n < 1 || n >= sizeof out->name) {
        return vxd_json_fail(json, path,
                             "a tensor's name has %zu bytes, it must have 1 to %zu", n,
                             sizeof out->name - 1);
    }
    memcpy(out->name, name, n + 1);
    VXD_TRY(vxd_json_object(json, path, value, entry_keys,
                            sizeof entry_keys / sizeof entry_keys[0], &entry));
    if (entry.element_bytes == 0 || !entry.has_shape || !entry.has_offsets) {
        return vxd_json_fail(json, path,
                             "dtype, shape or data_offsets of the tensor is missing");
    }
    if (!vxd_size_mul(out->n_elements, entry.element_bytes, &expected) ||
        entry.end < out->begin || entry.end - out->begin != expected) {
        return vxd_json_fail(json, path,
                             "data_offsets %zu to %zu are not the bytes of its shape",
                             out->begin, entry.end);
    }
    if (entry.end > n_data) {
        return vxd_json_fail(json, path, "ends at byte %zu of %zu", entry.end, n_data);
    }
    out->n_bytes = expected;
out:
    return status;
}

static int by_begin(const void *a, const void *b)
{
    const struct vxd_tensor *left = a;
    const struct vxd_tensor *right = b;

    if (left->begin != right->begin) {
        return left->begin < right->begin ? -1 : 1;
    }
    /* An empty tensor comes before the one that begins at the same place. */
    return (left->n_bytes > right->n_bytes) - (left->n_bytes < right->n_bytes);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct vxd_tensor *)a)->name,
                  ((const struct vxd_tensor *)b)->name);
}

/* Checks that the tensors lie one behind the other up to the end; then their offsets
 * count from the start of the file. */
static enum vxd_status check_places(const struct vxd_json *json,
                                    struct vxd_safetensors *file, size_t data_begin,
                                    size_t n_data)
{
    size_t end = 0;

    if (file->n_tensors > 0) {
        qsort(file->tensors, file->n_tensors, sizeof file->tensors[0], by_begin);
    }
    for (size_t i = 0; i < file->n_tensors; i++) {
        struct vxd_tensor *tensor = &file->tensors[i];

        if (tensor->begin != end) {
            char path[VXD_JSON_PATH_BYTES];

            (void)snprintf(path, sizeof path, "weights[%.60s]", tensor->name);
            return vxd_json_fail(
                json, path, "begins at byte %zu, but the one before %s", tensor->begin,
                tensor->begin < end ? "reaches past that" : "ends earlier");
        }
        end += tensor->n_bytes;
        tensor->begin += data_begin;
    }
    if (end != n_data) {
        return vxd_json_fail(json, "weights", "%zu bytes belong to no tensor",
                             n_data - end);
    }
    if (file->n_tensors > 0) {
        qsort(file->tensors, file->n_tensors, sizeof file->tensors[0], by_name);
    }
    return VXD_OK;
}

static enum vxd_status read_header(const struct vxd_json *json, json_t *root,
                                   size_t n_data, struct vxd_safetensors *out)
{
    const char *name;
    json_t *value;
    size_t n = json_object_size(root);

    if (!json_is_object(root)) {
        return vxd_json_fail(json, "weights", "the header is no JSON object");
    }
    if (n > VXD_SAFETENSORS_MAX_TENSORS) {
        return vxd_json_fail(json, "weights", "%zu tensors, at most %d are supported", n,
                             VXD_SAFETENSORS_MAX_TENSORS);
    }
    out->tensors = calloc(n + 1, sizeof out->tensors[0]);
    if (out->tensors == NULL) {
        return vxd_json_no_memory(json);
    }
    json_object_foreach(root, name, value)
    {
        enum vxd_status status;

        if (strcmp(name, "__metadata__") == 0) {
            continue;
        }
        status = read_entry(json, name, value, n_data, &out->tensors[out->n_tensors]);
        if (status != VXD_OK) {
            return status;
        }
        out->n_tensors++;
    }
    return VXD_OK;
}

enum vxd_status vxd_safetensors_parse(const char *file, const void *bytes, size_t n_bytes,
                                      struct vxd_safetensors *out, struct vxd_err *err)
{
    const struct vxd_json json = {.file = file, .err = err};
    const uint8_t *at = bytes;
    json_t *root = NULL;
    json_error_t error;
    enum vxd_status status;
    size_t n_data;
    uint64_t n;

    memset(out, 0, sizeof *out);
    if (n_bytes < LENGTH_BYTES) {
        return vxd_json_fail(&json, "weights", "%zu bytes are no safetensors file",
                             n_bytes);
    }
    n = read_u64(at);
    if (n > n_bytes - LENGTH_BYTES || n > VXD_SAFETENSORS_MAX_HEADER) {
        return vxd_json_fail(
            &json, "weights",
            "the header claims %llu bytes; the file has %zu, and at most "
            "%d are supported",
            (unsigned long long)n, n_bytes - LENGTH_BYTES, VXD_SAFETENSORS_MAX_HEADER);
    }
    n_data = n_bytes - LENGTH_BYTES - (size_t)n;
    root = json_loadb((const char *)at + LENGTH_BYTES, (size_t)n, JSON_REJECT_DUPLICATES,
                      &error);
    if (root == NULL) {
        if (vxd_json_is_memory(&error)) {
            return vxd_json_no_memory(&json);
        }
        return vxd_json_fail(&json, "weights", "header, byte %d: %.100s", error.position,
                             error.text);
    }
    out->bytes = bytes;
    VXD_TRY(read_header(&json, root, n_data, out));
    VXD_TRY(check_places(&json, out, LENGTH_BYTES + (size_t)n, n_data));
out:
    json_decref(root);
    if (status != VXD_OK) {
        vxd_safetensors_free(out);
    }
    return status;
}

void vxd_safetensors_free(struct vxd_safetensors *file)
{
    free(file->tensors);
    memset(file, 0, sizeof *file);
}

const struct vxd_tensor *vxd_safetensors_find(const struct vxd_safetensors *file,
                                              const char *name)
{
    size_t low = 0;
    size_t high = file->n_tensors;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = strcmp(file->tensors[mid].name, name);

        if (order == 0) {
            return &file->tensors[mid];
        }
        if (order < 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return NULL;
}

bool vxd_tensor_is_float(const struct vxd_tensor *tensor)
{
    return strcmp(tensor->dtype, "F32") == 0 || strcmp(tensor->dtype, "F64") == 0 ||
           strcmp(tensor->dtype, "F16") == 0 || strcmp(tensor->dtype, "BF16") == 0;
}

static double half_to_double(uint16_t bits)
{
    int exponent = bits >> 10 & 0x1f;
    int mantissa = bits & 0x3ff;
    double value;

    if (exponent == 0x1f) {
        value = mantissa == 0 ? (double)INFINITY : (double)NAN;
    } else if (exponent == 0) {
        value = ldexp(mantissa, -24);
    } else {
        value = ldexp(mantissa + 0x400, exponent - 25);
    }
    return (bits & 0x8000) != 0 ? -value : value;
}

double vxd_tensor_get(const struct vxd_safetensors *file, const struct vxd_tensor *tensor,
                      size_t i)
{
    const uint8_t *at = file->bytes + tensor->begin;
    uint32_t bits32;
    uint16_t bits16;
    double as_double;
    float as_float;

    if (tensor->dtype[0] == 'B') {
        bits32 = (uint32_t)at[2 * i] << 16 | (uint32_t)at[2 * i + 1] << 24;
        memcpy(&as_float, &bits32, sizeof as_float);
        return (double)as_float;
    }
    switch (tensor->dtype[1]) {
    case '6':
        memcpy(&as_double, at + 8 * i, sizeof as_double);
        return as_double;
    case '1':
        memcpy(&bits16, at + 2 * i, sizeof bits16);
        return half_to_double(bits16);
    default:
        memcpy(&as_float, at + 4 * i, sizeof as_float);
        return (double)as_float;
    }
}
