// SPDX-License-Identifier: Apache-2.0
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "client/c/call/client_internal.h"
#include "client/c/include/voxeld_net.h"

enum {
    /* Unpacked, the densest honest reply (many small items) takes four times its
     * length on the wire. This factor stops a hostile one. */
    BUDGET_FACTOR = 8,
    BUDGET_BASE_BYTES = 65536,
    HIGHEST_CODE = 16
};

/* Arrays without elements point here, so that NULL means "not asked for". */
static const max_align_t nothing;

/* A result: the reply that its pointers go into, followed by the struct that the user
 * holds. */
struct result {
    struct vxd_reply reply;
    max_align_t held[];
};

/* Translates the error that the server reported. */
static enum vxd_status remote_error(const Voxeld__V1__ResponseHeader *header,
                                    struct vxd_err *err)
{
    enum vxd_status code = VXD_UNKNOWN;

    if ((int)header->code > 0 && (int)header->code <= HIGHEST_CODE) {
        code = (enum vxd_status)header->code;
    }
    return vxd_fail(err, code, header->field, "%s",
                    header->message[0] != '\0' ? header->message : "no reason given");
}

/* A budget for unpacking so many bytes. */
static size_t budget_for(size_t n_bytes)
{
    size_t budget;

    if (!vxd_size_mul(n_bytes, BUDGET_FACTOR, &budget) ||
        !vxd_size_add(budget, BUDGET_BASE_BYTES, &budget)) {
        budget = SIZE_MAX;
    }
    return budget;
}

enum vxd_status vxd_reply_open(struct vxd_message *take_message,
                               Voxeld__V1__Request__MethodCase method,
                               struct vxd_reply *reply, struct vxd_err *err)
{
    static const struct vxd_borrow borrow = {VXD_BIG_BLOCK_BYTES, VXD_DATA_ALIGN, false};
    size_t n_bytes = take_message->n_bytes;
    size_t n_borrowed = 0;
    ProtobufCMessage *message = NULL;
    enum vxd_status status;

    memset(reply, 0, sizeof *reply);
    VXD_TRY(vxd_decoder_create(budget_for(n_bytes), NULL, &reply->decoder, err));
    status =
        vxd_decode_borrowing(reply->decoder, &borrow, &voxeld__v1__response__descriptor,
                             take_message->body, n_bytes, &message, &n_borrowed, err);
    if (status == VXD_INVALID_ARGUMENT) {
        /* The error is the server's, not the caller's argument. */
        status = vxd_fail(err, VXD_INTERNAL, NULL,
                          "the reply of %zu bytes is none of voxeld's", n_bytes);
    }
    if (status != VXD_OK) {
        goto out;
    }
    reply->response = (Voxeld__V1__Response *)message;
    if (reply->response->header == NULL) {
        status = vxd_fail(err, VXD_INTERNAL, NULL, "the reply has no header");
        goto out;
    }
    if (reply->response->header->code != VOXELD__V1__CODE__OK) {
        status = remote_error(reply->response->header, err);
        goto out;
    }
    /* The schema gives a method's request and response the same number. */
    if ((int)reply->response->method_case != (int)method) {
        status = vxd_fail(err, VXD_INTERNAL, NULL, "the reply answers method %d, not %d",
                          (int)reply->response->method_case, (int)method);
    }
out:
    if (n_borrowed > 0) {
        reply->message = *take_message;
        *take_message = (struct vxd_message){0};
    } else {
        vxd_message_free(take_message);
    }
    if (status != VXD_OK) {
        vxd_reply_close(reply);
    }
    return status;
}

/* The daemon has written the body and is not to touch it after its reply, but it could. */
static enum vxd_status open_body(struct vxd_reply *reply, ProtobufCMessage **body,
                                 const struct vxd_shared_slot *slot, size_t n_bytes,
                                 size_t *n_borrowed, struct vxd_err *err)
{
    static const struct vxd_borrow borrow = {VXD_BIG_BLOCK_BYTES, VXD_DATA_ALIGN, true};
    enum vxd_status status;

    reply->outer = reply->decoder;
    reply->decoder = NULL;
    VXD_TRY(vxd_decoder_create(budget_for(n_bytes), NULL, &reply->decoder, err));
    status =
        vxd_decode_borrowing(reply->decoder, &borrow, (*body)->descriptor,
                             vxd_shared_slot_reply(slot), n_bytes, body, n_borrowed, err);
    if (status == VXD_INVALID_ARGUMENT) {
        status = vxd_fail(err, VXD_INTERNAL, NULL,
                          "the reply of %zu bytes in shared memory is none of voxeld's",
                          n_bytes);
    }
out:
    return status;
}

enum vxd_status vxd_reply_open_shared(struct vxd_reply *reply,
                                      Voxeld__V1__Request__MethodCase method,
                                      struct vxd_shared_slot **take_slot,
                                      struct vxd_err *err)
{
    uint64_t n_bytes = reply->response->header->shared_bytes;
    const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field(
        reply->response->base.descriptor, (unsigned)method);
    ProtobufCMessage **body =
        (ProtobufCMessage **)(void *)((uint8_t *)reply->response + field->offset);
    size_t n_borrowed = 0;
    enum vxd_status status = VXD_OK;

    if (n_bytes == 0) {
        return VXD_OK;
    }
    if (*take_slot == NULL || n_bytes > (*take_slot)->n_reply_bytes) {
        status = vxd_fail(err, VXD_INTERNAL, NULL,
                          "the reply lies in shared memory where none was offered");
    } else {
        status = open_body(reply, body, *take_slot, (size_t)n_bytes, &n_borrowed, err);
    }
    if (status != VXD_OK) {
        vxd_reply_close(reply);
    } else if (n_borrowed > 0) {
        reply->slot = *take_slot;
        *take_slot = NULL;
    }
    return status;
}

void vxd_reply_close(struct vxd_reply *reply)
{
    vxd_decoder_destroy(reply->decoder);
    vxd_decoder_destroy(reply->outer);
    vxd_shared_slot_give(reply->slot);
    vxd_message_free(&reply->message);
    memset(reply, 0, sizeof *reply);
}

void *vxd_reply_alloc(struct vxd_reply *reply, size_t n, size_t n_bytes)
{
    ProtobufCAllocator *allocator = vxd_decoder_allocator(reply->decoder);
    void *block;

    if (!vxd_size_mul(n, n_bytes, &n_bytes)) {
        return NULL;
    }
    block = allocator->alloc(allocator->allocator_data, n_bytes > 0 ? n_bytes : 1);
    if (block != NULL) {
        memset(block, 0, n_bytes);
    }
    return block;
}

void *vxd_result_new(struct vxd_reply *take_reply, size_t n_bytes, struct vxd_err *err)
{
    struct result *result = calloc(1, sizeof *result + n_bytes);

    if (result == NULL) {
        (void)vxd_reply_no_memory(err);
        return NULL;
    }
    result->reply = *take_reply;
    memset(take_reply, 0, sizeof *take_reply);
    // cppcheck-suppress memleak ; vxd_result_free finds its beginning
    return result->held;
}

static struct result *result_of(void *held)
{
    return (struct result *)(void *)((char *)held - offsetof(struct result, held));
}

struct vxd_reply *vxd_result_reply(void *held)
{
    return &result_of(held)->reply;
}

void vxd_result_free(void *held)
{
    if (held != NULL) {
        vxd_reply_close(vxd_result_reply(held));
        free(result_of(held));
    }
}

void vxd_reply_vec3(const Voxeld__V1__Vec3 *in, double *out)
{
    if (in != NULL) {
        out[0] = in->x;
        out[1] = in->y;
        out[2] = in->z;
    }
}

void vxd_reply_pose(const Voxeld__V1__Pose *in, struct voxeld_pose *out)
{
    if (in == NULL) {
        return;
    }
    vxd_reply_vec3(in->translation, out->translation_m);
    if (in->rotation != NULL) {
        out->rotation[0] = in->rotation->x;
        out->rotation[1] = in->rotation->y;
        out->rotation[2] = in->rotation->z;
        out->rotation[3] = in->rotation->w;
    }
}

enum vxd_status vxd_reply_no_memory(struct vxd_err *err)
{
    return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for the result");
}

enum vxd_status vxd_reply_bad(struct vxd_err *err, const char *field, const char *what)
{
    return vxd_fail(err, VXD_INTERNAL, field, "the server's reply is inconsistent: %s",
                    what);
}

enum vxd_status vxd_reply_tensor(const Voxeld__V1__Tensor *tensor, const char *name,
                                 Voxeld__V1__DType dtype, const size_t *shape,
                                 size_t n_axes, const void **out, struct vxd_err *err)
{
    size_t n_bytes = vxd_dtype_bytes((enum vxd_dtype)dtype);

    *out = NULL;
    if (tensor == NULL) {
        return vxd_reply_bad(err, name, "requested, but missing");
    }
    if (tensor->dtype != dtype || tensor->n_shape != n_axes || tensor->n_values != 0) {
        return vxd_reply_bad(err, name, "another type or another number of axes");
    }
    for (size_t i = 0; i < n_axes; i++) {
        if (tensor->shape[i] < 0 || (uint64_t)tensor->shape[i] != shape[i] ||
            !vxd_size_mul(n_bytes, shape[i], &n_bytes)) {
            return vxd_reply_bad(err, name, "the shape does not follow from the counts");
        }
    }
    if (tensor->data.len != n_bytes) {
        return vxd_reply_bad(err, name, "the length does not follow from the shape");
    }
    *out = n_bytes > 0 ? (const void *)tensor->data.data : (const void *)&nothing;
    return VXD_OK;
}

void vxd_reply_timings(const Voxeld__V1__NetworkTimings *in,
                       struct voxeld_network_timings *out)
{
    if (in != NULL) {
        out->voxelize_ms = in->voxelize_ms;
        out->sets_ms = in->sets_ms;
        out->layers_ms = in->layers_ms;
        out->outputs_ms = in->outputs_ms;
        out->n_items = in->n_items;
        out->n_voxels = in->n_voxels;
    }
}
