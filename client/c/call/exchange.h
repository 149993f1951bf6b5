// SPDX-License-Identifier: Apache-2.0
/* One synchronous call of a method, from the public structs to the wire's and back. Arrays are
 * not copied: the message points to the caller's, and is packed from there into the socket's
 * buffer. */
#ifndef VXD_CLIENT_C_CALL_EXCHANGE_H
#define VXD_CLIENT_C_CALL_EXCHANGE_H

#include "client/c/call/client_internal.h"

/* A call from its request to its reply. */
struct vxd_exchange {
    struct voxeld_client *client;
    struct voxeld_call options;
    Voxeld__V1__Request request;
    struct vxd_decoder *arena; /* of the request */
    struct vxd_reply reply;
    struct vxd_err err;
    char request_id[VXD_REQUEST_ID_BYTES];
    uint64_t sequence; /* 0: the call changes nothing */
};

/* Prepares a call; one that changes something gets a sequence number. options may be NULL. The
 * caller ends the call, also where this fails. */
enum vxd_status vxd_exchange_begin(struct vxd_exchange *call,
                                   struct voxeld_client *client,
                                   const struct voxeld_call *options, bool changes);

/* Sends call->request, whose method is set, and opens the reply. */
enum vxd_status vxd_exchange_send(struct vxd_exchange *call);

/* Frees what is left of the call; fills *error unless status is OK. */
enum voxeld_status vxd_exchange_end(struct vxd_exchange *call, enum vxd_status status,
                                    struct voxeld_error *error);

/* Zeroed memory that lives as long as the request. Returns NULL and fills call->err where there
 * is no memory. */
void *vxd_exchange_alloc(struct vxd_exchange *call, size_t n, size_t n_bytes);

/* A string field of a message: protobuf-c wants "" where there is no string. */
char *vxd_text_or_empty(const char *string);

/* Checks a list before a loop runs over it.
 * errors  INVALID_ARGUMENT  a list that is NULL or too long */
enum vxd_status vxd_exchange_check_list(struct vxd_exchange *call, const char *field,
                                        const void *list, size_t n);

/* A list of names as the wire has it.
 * errors  INVALID_ARGUMENT  a list that is NULL or too long */
enum vxd_status vxd_exchange_names(struct vxd_exchange *call, const char *field,
                                   const char *const *names, size_t n, char ***out);

/* A tensor that borrows the array's data; NULL for an array without type and rows.
 * errors  INVALID_ARGUMENT  what only the client can see: no data, no such type, overflow */
enum vxd_status vxd_exchange_tensor(struct vxd_exchange *call, const char *field,
                                    const struct voxeld_array *in,
                                    Voxeld__V1__Tensor **out);

/* Initializes *tensor, which borrows the array's data. Errors as of vxd_exchange_tensor. */
enum vxd_status vxd_exchange_fill_tensor(struct vxd_exchange *call, const char *field,
                                         const struct voxeld_array *in,
                                         Voxeld__V1__Tensor *tensor);

/* A tensor of the numbers of entries, NULL where n is 0. */
enum vxd_status vxd_exchange_indices(struct vxd_exchange *call, const int32_t *indices,
                                     size_t n, Voxeld__V1__Tensor **out);

#endif
