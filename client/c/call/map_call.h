// SPDX-License-Identifier: Apache-2.0
/* What the calls on maps share. */
#ifndef VXD_CLIENT_C_CALL_MAP_CALL_H
#define VXD_CLIENT_C_CALL_MAP_CALL_H

#include "client/c/call/client_internal.h"

/* One call on a map, from the request to the reply. */
struct vxd_map_call {
    struct voxeld_client *client;
    struct voxeld_call options;
    Voxeld__V1__Request request;
    struct vxd_decoder *arena; /* of the request */
    struct vxd_reply reply;
    struct vxd_err err;
    char request_id[VXD_REQUEST_ID_BYTES];
    uint64_t sequence; /* 0: it changes nothing */
};

/* changes: it gets a number. options may be NULL. To be ended, also where this fails. */
enum vxd_status vxd_map_call_begin(struct vxd_map_call *call,
                                   struct voxeld_client *client,
                                   const struct voxeld_call *options, bool changes);

/* Sends call->request, whose method is set, and opens the reply. */
enum vxd_status vxd_map_call_send(struct vxd_map_call *call);

/* Frees what is left of it; fills *error unless status is OK. */
enum voxeld_status vxd_map_call_end(struct vxd_map_call *call, enum vxd_status status,
                                    struct voxeld_error *error);

/* Zeroed, the request's own. NULL, and call->err, where there is no memory. */
void *vxd_map_alloc(struct vxd_map_call *call, size_t n, size_t n_bytes);

/* A string of a message; NULL becomes "". */
char *vxd_map_text(const char *string);

/* Names as the wire has them.
 * errors  INVALID_ARGUMENT  NULL where there are some */
enum vxd_status vxd_map_names(struct vxd_map_call *call, const char *field,
                              const char *const *names, size_t n, char ***out);

/* A tensor that borrows the array's data; NULL for an array without type and rows.
 * errors  INVALID_ARGUMENT  what only the client can see: no data, no such type, overflow */
enum vxd_status vxd_map_tensor(struct vxd_map_call *call, const char *field,
                               const struct voxeld_array *in, Voxeld__V1__Tensor **out);

/* The same of entries' numbers, of which there may be none. */
enum vxd_status vxd_map_numbers(struct vxd_map_call *call, const int32_t *indices,
                                size_t n, Voxeld__V1__Tensor **out);

/* The same of several arrays, with their names. */
enum vxd_status vxd_map_rows(struct vxd_map_call *call, const struct voxeld_array *in,
                             size_t n, Voxeld__V1__MapRows ***out);

/* map_reply.c: what came back. All take call->reply, on failure too.
 * errors  INTERNAL            the reply contradicts itself or the request
 *         RESOURCE_EXHAUSTED */

/* The one or several maps of a reply. */
enum vxd_status vxd_maps_open(struct vxd_map_call *call, Voxeld__V1__MapInfo *const *maps,
                              size_t n, struct voxeld_maps **out);

/* What a result must hold. */
struct vxd_map_expect {
    size_t n; /* of export: any number */
    bool counts_only;
    bool any_values; /* else n_values arrays */
    size_t n_values;
    size_t n_neighbours;
    bool keys;
    bool ply;
};

/* Any of the five methods that give a voxeld_map_result. */
enum vxd_status vxd_map_result_open(struct vxd_map_call *call,
                                    const struct vxd_map_expect *expect,
                                    struct voxeld_map_result **out);

#endif
