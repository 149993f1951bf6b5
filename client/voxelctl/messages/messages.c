// SPDX-License-Identifier: Apache-2.0
#include "client/voxelctl/messages/messages.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/number.h"

/* The text as the object {"list": text} where it is a list. NULL without memory; the caller frees it. */
static char *as_object(const char *text, size_t n, const char *list, size_t *n_out)
{
    static const char pattern[] = "{\"%s\":%.*s}";
    size_t at = 0;
    size_t size = n + strlen(list) + sizeof pattern;
    char *object = malloc(size);

    while (at < n && isspace((unsigned char)text[at])) {
        at++;
    }
    if (object == NULL) {
        return NULL;
    }
    if (at < n && text[at] == '[') {
        *n_out = (size_t)snprintf(object, size, pattern, list, (int)n, text);
    } else {
        memcpy(object, text, n);
        *n_out = n;
    }
    return object;
}

/* Counts the columns of the first line as they are in the file, which n_before characters were put
 * before. */
static void shift_column(struct vxd_err *err, int n_before)
{
    static const char begin[] = "bad JSON, line 1, column ";
    char rest[sizeof err->message];
    char *end;
    long column;

    if (strncmp(err->message, begin, sizeof begin - 1) != 0) {
        return;
    }
    column = strtol(err->message + sizeof begin - 1, &end, 10);
    if (column >= n_before) {
        (void)snprintf(rest, sizeof rest, "%s", end);
        (void)snprintf(err->message, sizeof err->message, "%s%ld%.180s", begin,
                       column - n_before, rest);
    }
}

int ctl_read_message(const char *path, const ProtobufCMessageDescriptor *type,
                     const char *list, struct vxd_decoder **arena, ProtobufCMessage **out)
{
    struct vxd_err err = {0};
    uint8_t *bytes = NULL;
    char *object = NULL;
    size_t n_file = 0;
    size_t n = 0;
    int result = ctl_read_file(path, &bytes, &n_file);

    if (result != CTL_OK) {
        return result;
    }
    if (n_file > VXD_JSON_MAX_BYTES) {
        free(bytes);
        return ctl_error("%s: more than %d bytes of JSON", path, VXD_JSON_MAX_BYTES);
    }
    object = as_object((const char *)bytes, n_file, list, &n);
    free(bytes);
    if (object == NULL) {
        return ctl_error("%s: no memory", path);
    }
    if (vxd_decoder_create(SIZE_MAX, NULL, arena, &err) != VXD_OK ||
        vxd_json_read(*arena, type, object, n, out, &err) != VXD_OK) {
        shift_column(&err, n > n_file ? (int)(n - n_file) - 1 : 0);
        result = ctl_error("%s: %s%s%s", path, err.field,
                           err.field[0] != '\0' ? ": " : "", err.message);
    }
    free(object);
    return result;
}

/* Stores the tensor's values as elements of its type. */
static bool store_values(const Voxeld__V1__Tensor *tensor, const char *name,
                         enum vxd_dtype dtype, uint8_t *to, struct vxd_err *err)
{
    char digits[32];

    for (size_t i = 0; i < tensor->n_values; i++) {
        int n = snprintf(digits, sizeof digits, "%.17g", tensor->values[i]);

        if (!vxd_number_store(digits, (size_t)n, dtype,
                              to + i * vxd_dtype_bytes(dtype))) {
            (void)vxd_fail(err, VXD_INVALID_ARGUMENT, name,
                           "values: %s is no number of the dtype", digits);
            return false;
        }
    }
    return true;
}

bool ctl_read_tensor(const Voxeld__V1__Tensor *tensor, const char *name,
                     struct vxd_decoder *arena, struct voxeld_array *out,
                     struct vxd_err *err)
{
    bool has_type =
        tensor != NULL && tensor->dtype != VOXELD__V1__DTYPE__DTYPE_UNSPECIFIED;
    enum vxd_dtype dtype = has_type ? (enum vxd_dtype)tensor->dtype : VXD_FLOAT64;
    size_t n_all = vxd_dtype_bytes(dtype);
    uint8_t *data;

    if (tensor == NULL) {
        return true;
    }
    if (tensor->n_shape < 1 || tensor->n_shape > 2 || tensor->shape[0] < 0 ||
        tensor->shape[tensor->n_shape - 1] < 0) {
        (void)vxd_fail(err, VXD_INVALID_ARGUMENT, name, "a shape of one or two is right");
        return false;
    }
    out->dtype = (enum voxeld_dtype)dtype;
    out->n = (size_t)tensor->shape[0];
    out->n_elements = tensor->n_shape == 2 ? (size_t)tensor->shape[1] : 1;
    if (!vxd_size_mul(n_all, out->n, &n_all) ||
        !vxd_size_mul(n_all, out->n_elements, &n_all) ||
        n_all != (tensor->n_values > 0 ? tensor->n_values * vxd_dtype_bytes(dtype)
                                       : tensor->data.len)) {
        (void)vxd_fail(err, VXD_INVALID_ARGUMENT, name,
                       "values, or data, as many as the shape says are right");
        return false;
    }
    out->data = tensor->data.data;
    if (tensor->n_values == 0) {
        return true;
    }
    data = vxd_decoder_alloc(arena, n_all, err);
    out->data = data;
    return data != NULL && store_values(tensor, name, dtype, data, err);
}

bool ctl_read_int32s(const int32_t *in, size_t n_in, const char *name, size_t n,
                     int32_t *out, struct vxd_err *err)
{
    if (n_in != 0 && n_in != n) {
        (void)vxd_fail(err, VXD_INVALID_ARGUMENT, name, "%zu numbers are right", n);
        return false;
    }
    for (size_t i = 0; i < n_in; i++) {
        out[i] = in[i];
    }
    return true;
}
