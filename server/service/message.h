// SPDX-License-Identifier: Apache-2.0
/* Building messages in a request's decoder: nothing of it is freed one by one. */
#ifndef VXD_SERVER_SERVICE_MESSAGE_H
#define VXD_SERVER_SERVICE_MESSAGE_H

#include <string.h>

#include "proto/wire/wire.h"

/* Makes an empty message; NULL when there is no memory (RESOURCE_EXHAUSTED in *err). */
static inline void *vxd_message_new(struct vxd_decoder *decoder,
                                    const ProtobufCMessageDescriptor *descriptor,
                                    struct vxd_err *err)
{
    ProtobufCMessage *message =
        vxd_decoder_alloc(decoder, descriptor->sizeof_message, err);

    if (message != NULL) {
        protobuf_c_message_init(descriptor, message);
    }
    return message;
}

/* Allocates n zeroed items of n_bytes; NULL when there is no memory or the product
 * overflows. */
static inline void *vxd_message_array(struct vxd_decoder *decoder, size_t n,
                                      size_t n_bytes, struct vxd_err *err)
{
    size_t total;
    void *items;

    if (!vxd_size_mul(n, n_bytes, &total)) {
        (void)vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "%zu items are too many", n);
        return NULL;
    }
    items = vxd_decoder_alloc(decoder, total > 0 ? total : 1, err);
    if (items != NULL) {
        memset(items, 0, total);
    }
    return items;
}

/* Allocates n pointers, all NULL. */
static inline void *vxd_message_pointers(struct vxd_decoder *decoder, size_t n,
                                         struct vxd_err *err)
{
    return vxd_message_array(decoder, n, sizeof(void *), err);
}

/* Copies n_bytes of text and terminates it with NUL; NULL when there is no memory. */
static inline char *vxd_message_text(struct vxd_decoder *decoder, const char *text,
                                     size_t n_bytes, struct vxd_err *err)
{
    char *copy = vxd_decoder_alloc(decoder, n_bytes + 1, err);

    if (copy != NULL) {
        memcpy(copy, text, n_bytes);
        copy[n_bytes] = '\0';
    }
    return copy;
}

#endif
