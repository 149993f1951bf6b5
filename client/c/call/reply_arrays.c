// SPDX-License-Identifier: Apache-2.0
/* Checks arrays of replies. The server is not trusted: every length is checked against the
 * counts before a pointer goes out. */
#include <stdio.h>
#include <string.h>

#include "client/c/call/exchange.h"

enum vxd_status vxd_reply_n_rows(const Voxeld__V1__Tensor *tensor, const char *name,
                                 size_t *n, struct vxd_err *err)
{
    if (tensor == NULL || tensor->n_shape < 1 || tensor->shape[0] < 0) {
        return vxd_reply_bad(err, name, "without a number of rows");
    }
    *n = (size_t)tensor->shape[0];
    return VXD_OK;
}

enum vxd_status vxd_reply_mask(const Voxeld__V1__Tensor *tensor, const char *name,
                               bool requested, size_t n, const uint8_t **out,
                               struct vxd_err *err)
{
    const void *data = NULL;
    uint8_t bits = 0;
    enum vxd_status status = VXD_OK;

    *out = NULL;
    if (!requested) {
        return VXD_OK;
    }
    VXD_TRY(vxd_reply_tensor(tensor, name, VOXELD__V1__DTYPE__UINT8, &n, 1, &data, err));
    *out = data;
    for (size_t i = 0; i < n; i++) {
        bits |= (*out)[i];
    }
    if (bits > 1) {
        status = vxd_reply_bad(err, name, "a truth value that is neither 0 nor 1");
    }
out:
    return status;
}

enum vxd_status vxd_reply_uint8s(const Voxeld__V1__Tensor *tensor, const char *name,
                                 bool requested, size_t n, const uint8_t **out,
                                 struct vxd_err *err)
{
    const void *data = NULL;
    enum vxd_status status = VXD_OK;

    *out = NULL;
    if (requested) {
        status =
            vxd_reply_tensor(tensor, name, VOXELD__V1__DTYPE__UINT8, &n, 1, &data, err);
        *out = data;
    }
    return status;
}

enum vxd_status vxd_reply_numbers(const Voxeld__V1__Tensor *tensor, const char *name,
                                  bool requested, size_t n, size_t n_columns,
                                  int32_t lowest, const int32_t **out,
                                  struct vxd_err *err)
{
    const size_t shape[2] = {n, n_columns};
    const void *data = NULL;
    size_t n_all = 0;
    enum vxd_status status = VXD_OK;

    *out = NULL;
    if (!requested) {
        return VXD_OK;
    }
    VXD_TRY(vxd_reply_tensor(tensor, name, VOXELD__V1__DTYPE__INT32, shape,
                             n_columns > 1 ? 2 : 1, &data, err));
    *out = data;
    n_all = n * n_columns; /* no overflow: the elements are in memory */
    for (size_t i = 0; i < n_all; i++) {
        if ((*out)[i] < lowest) {
            return vxd_reply_bad(err, name, "a number below its range");
        }
    }
out:
    return status;
}

enum vxd_status vxd_reply_elements(const Voxeld__V1__Tensor *tensor, const char *name,
                                   Voxeld__V1__DType dtype, size_t n, size_t n_columns,
                                   const void **out, struct vxd_err *err)
{
    const size_t shape[2] = {n, n_columns};

    return vxd_reply_tensor(tensor, name, dtype, shape, n_columns > 1 ? 2 : 1, out, err);
}

enum vxd_status vxd_reply_text(const char *in, const char *name, char *out,
                               size_t n_bytes, struct vxd_err *err)
{
    return snprintf(out, n_bytes, "%s", in) < (int)n_bytes
               ? VXD_OK
               : vxd_reply_bad(err, name, "longer than it may be");
}

enum vxd_status vxd_reply_rows(const Voxeld__V1__Tensor *tensor, const char *name,
                               size_t n, struct voxeld_array *out, struct vxd_err *err)
{
    size_t shape[2] = {n, 1};

    if (tensor == NULL) {
        return vxd_reply_bad(err, name, "requested, but missing");
    }
    if (vxd_dtype_bytes((enum vxd_dtype)tensor->dtype) == 0 || tensor->n_shape < 1 ||
        tensor->n_shape > 2 || (tensor->n_shape == 2 && tensor->shape[1] < 1)) {
        return vxd_reply_bad(err, name, "another type or another number of axes");
    }
    shape[1] = tensor->n_shape == 2 ? (size_t)tensor->shape[1] : 1;
    *out = (struct voxeld_array){.name = name,
                                 .dtype = (enum voxeld_dtype)tensor->dtype,
                                 .n = n,
                                 .n_elements = shape[1]};
    return vxd_reply_tensor(tensor, name, tensor->dtype, shape, tensor->n_shape,
                            &out->data, err);
}

enum vxd_status vxd_reply_block(const Voxeld__V1__Tensor *tensor, const char *name,
                                struct voxeld_array *out, struct vxd_err *err)
{
    size_t shape[3];

    if (tensor == NULL || tensor->n_shape != 3 || tensor->shape[0] < 0 ||
        tensor->shape[1] < 0 || tensor->shape[2] < 0) {
        return vxd_reply_bad(err, name, "not an array of three axes");
    }
    for (int axis = 0; axis < 3; axis++) {
        shape[axis] = (size_t)tensor->shape[axis];
    }
    *out = (struct voxeld_array){
        .name = name, .dtype = (enum voxeld_dtype)tensor->dtype, .n = shape[0]};
    if (!vxd_size_mul(shape[1], shape[2], &out->n_elements)) {
        return vxd_reply_bad(err, name, "more elements than there can be");
    }
    return vxd_reply_tensor(tensor, name, tensor->dtype, shape, 3, &out->data, err);
}

enum vxd_status vxd_reply_named_rows(struct vxd_reply *reply,
                                     Voxeld__V1__MapRows *const *in, size_t n_in,
                                     size_t n_expected, size_t n,
                                     const struct voxeld_array **out, size_t *n_out,
                                     struct vxd_err *err)
{
    struct voxeld_array *list;
    enum vxd_status status = VXD_OK;

    if (n_expected != SIZE_MAX && n_in != n_expected) {
        return vxd_reply_bad(err, "values", "not the arrays that were asked for");
    }
    list = vxd_reply_alloc(reply, n_in, sizeof *list);
    if (list == NULL) {
        return vxd_reply_no_memory(err);
    }
    for (size_t i = 0; i < n_in; i++) {
        VXD_TRY(vxd_reply_rows(in[i]->rows, in[i]->name, n, &list[i], err));
    }
    *out = list;
    *n_out = n_in;
out:
    return status;
}

enum vxd_status vxd_reply_int32s(const int32_t *in, size_t n_in, const char *name,
                                 size_t n, int32_t *out, struct vxd_err *err)
{
    if (n_in != n) {
        return vxd_reply_bad(err, name, "another number of elements");
    }
    memcpy(out, in, n * sizeof *out);
    return VXD_OK;
}

enum vxd_status vxd_reply_bytes(const ProtobufCBinaryData *in, const char *name,
                                const uint8_t **out, size_t *n_bytes, struct vxd_err *err)
{
    if (in->len == 0) {
        return vxd_reply_bad(err, name, "requested, but missing");
    }
    *out = in->data;
    *n_bytes = in->len;
    return VXD_OK;
}
