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
    char path[48];     /* of the message that is being made, "operations[3].points." */
};

/* Prepares a call; one that changes something gets a sequence number. options may be NULL. The
 * caller ends the call, also where this fails. */
enum vxd_status vxd_exchange_begin(struct vxd_exchange *call,
                                   struct voxeld_client *client,
                                   const struct voxeld_call *options, bool changes);

/* Sends call->request, whose method is set, and opens the reply. */
enum vxd_status vxd_exchange_send(struct vxd_exchange *call);

/* Sends it as a question for the server's info, whose limits the client keeps. */
enum vxd_status vxd_exchange_send_for_limits(struct vxd_exchange *call);

/* Gives a call that names no timeout the client's (5 s where it has none) and so much more. */
void vxd_exchange_allow(struct vxd_exchange *call, uint32_t more_ms);

/* Sends it without waiting: `ended` follows once where that works. */
enum vxd_status vxd_exchange_send_async(struct vxd_exchange *call, vxd_call_ended *ended,
                                        void *state);

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

/* Say of which message errors name the fields from here on: element i of a list; a member of that
 * message; the request again. */
void vxd_exchange_enter_item(struct vxd_exchange *call, const char *list, size_t i);
void vxd_exchange_enter(struct vxd_exchange *call, const char *member);
void vxd_exchange_leave(struct vxd_exchange *call);

/* Fails with INVALID_ARGUMENT: the number is none of the field's enumerators. */
enum vxd_status vxd_exchange_wrong_choice(struct vxd_exchange *call, const char *field,
                                          int number);

/* Splits NAME, NAME@VERSION or NAME@SNAPSHOT of a scene; *at is NULL where there is no '@'. Only
 * digits are a version.
 * errors  INVALID_ARGUMENT    nothing after the '@', or a number that is no version */
enum vxd_status vxd_exchange_name_at(struct vxd_exchange *call, const char *scene,
                                     char **name, Voxeld__V1__SceneAt **at);

/* A list of names as the wire has it.
 * errors  INVALID_ARGUMENT  a list that is NULL or too long */
enum vxd_status vxd_exchange_names(struct vxd_exchange *call, const char *field,
                                   const char *const *names, size_t n, char ***out);

/* A tensor that borrows the array's data; NULL for an array without type and rows.
 * errors  INVALID_ARGUMENT  what only the client can see: no data, no such type, overflow */
enum vxd_status vxd_exchange_tensor(struct vxd_exchange *call, const char *field,
                                    const struct voxeld_array *in,
                                    Voxeld__V1__Tensor **out);

/* The same for an array that is a parameter, which must not be NULL. */
enum vxd_status vxd_exchange_array(struct vxd_exchange *call, const char *field,
                                   const struct voxeld_array *in,
                                   Voxeld__V1__Tensor **out);

/* Initializes *tensor, which borrows the array's data. Errors as of vxd_exchange_tensor. */
enum vxd_status vxd_exchange_fill_tensor(struct vxd_exchange *call, const char *field,
                                         const struct voxeld_array *in,
                                         Voxeld__V1__Tensor *tensor);

/* Makes a tensor of the numbers of entries, NULL where indices is NULL and n is 0. */
enum vxd_status vxd_exchange_indices(struct vxd_exchange *call, const int32_t *indices,
                                     size_t n, Voxeld__V1__Tensor **out);

/* Copies n numbers; none where all are 0. */
enum vxd_status vxd_exchange_int32s(struct vxd_exchange *call, const int32_t *in,
                                    size_t n, int32_t **out, size_t *n_out);

/* Makes the list of an enum's numbers, ascending, of a mask whose bit i is the number i + 1; *list is a
 * pointer to the enum, and *n_out is 0.
 * errors  INVALID_ARGUMENT  bits that are not known */
enum vxd_status vxd_exchange_choices(struct vxd_exchange *call, const char *field,
                                     uint32_t bits, uint32_t known, void *list,
                                     size_t *n_out);

/* Makes the tensors of several arrays, with their names. Errors as of
 * vxd_exchange_tensor. */
enum vxd_status vxd_exchange_rows(struct vxd_exchange *call,
                                  const struct voxeld_array *in, size_t n,
                                  Voxeld__V1__MapRows ***out);

/* Makes a vector of three numbers. */
enum vxd_status vxd_exchange_vec3(struct vxd_exchange *call, const double in[3],
                                  Voxeld__V1__Vec3 **out);

/* Makes a pose; NULL for all zeros, the identity. */
enum vxd_status vxd_exchange_pose(struct vxd_exchange *call, const struct voxeld_pose *in,
                                  Voxeld__V1__Pose **out);

/* clouds.c makes the wire's clouds, which borrow the caller's.
 * errors  INVALID_ARGUMENT  what only the client can see: NULL pointers, overflows */
enum vxd_status vxd_exchange_clouds(struct vxd_exchange *call,
                                    const struct voxeld_cloud *in, size_t n,
                                    Voxeld__V1__Cloud ***out);

/* Makes the message of a request, which borrows its data; generated. Errors as of those above. */
enum vxd_status vxd_exchange_build_voxelize(struct vxd_exchange *call,
                                            const struct voxeld_voxelize_request *in,
                                            Voxeld__V1__VoxelizeRequest *out);

/* Makes a request's one cloud, which borrows the caller's. Errors name fields of `cloud`. */
enum vxd_status vxd_exchange_cloud(struct vxd_exchange *call,
                                   const struct voxeld_cloud *in,
                                   Voxeld__V1__Cloud **out);

/* Returns how many arrays a reply must have to a request of n names: SIZE_MAX = any, where
 * one of them is "*", or there is none and that means all. */
size_t vxd_exchange_n_named(const char *const *names, size_t n, bool none_is_all);

/* reply_arrays.c checks arrays of a reply and hands out pointers into them. *out is NULL if
 * the array was not requested.
 * errors  INTERNAL            the reply contradicts itself or the request
 *         RESOURCE_EXHAUSTED */

/* Counts the rows of an array, where nothing else says how many there are. */
enum vxd_status vxd_reply_n_rows(const Voxeld__V1__Tensor *tensor, const char *name,
                                 size_t *n, struct vxd_err *err);

/* Opens n truth values. */
enum vxd_status vxd_reply_mask(const Voxeld__V1__Tensor *tensor, const char *name,
                               bool requested, size_t n, const uint8_t **out,
                               struct vxd_err *err);

/* Opens n numbers of a byte. */
enum vxd_status vxd_reply_uint8s(const Voxeld__V1__Tensor *tensor, const char *name,
                                 bool requested, size_t n, const uint8_t **out,
                                 struct vxd_err *err);

/* Opens n x n_columns numbers, none below `lowest`. */
enum vxd_status vxd_reply_numbers(const Voxeld__V1__Tensor *tensor, const char *name,
                                  bool requested, size_t n, size_t n_columns,
                                  int32_t lowest, const int32_t **out,
                                  struct vxd_err *err);

/* Opens n rows of any type and width. */
enum vxd_status vxd_reply_rows(const Voxeld__V1__Tensor *tensor, const char *name,
                               size_t n, struct voxeld_array *out, struct vxd_err *err);

/* Opens an array of three axes: n is the first one's extent, n_elements the product of the others. */
enum vxd_status vxd_reply_block(const Voxeld__V1__Tensor *tensor, const char *name,
                                struct voxeld_array *out, struct vxd_err *err);

/* Opens several of them with their names; n_expected SIZE_MAX: any number. */
enum vxd_status vxd_reply_named_rows(struct vxd_reply *reply,
                                     Voxeld__V1__MapRows *const *in, size_t n_in,
                                     size_t n_expected, size_t n,
                                     const struct voxeld_array **out, size_t *n_out,
                                     struct vxd_err *err);

/* Copies numbers of which there must be n. */
enum vxd_status vxd_reply_int32s(const int32_t *in, size_t n_in, const char *name,
                                 size_t n, int32_t *out, struct vxd_err *err);

/* Opens n x n_columns elements of this type; *out is never NULL. */
enum vxd_status vxd_reply_elements(const Voxeld__V1__Tensor *tensor, const char *name,
                                   Voxeld__V1__DType dtype, size_t n, size_t n_columns,
                                   const void **out, struct vxd_err *err);

/* Copies a text that must fit n_bytes. */
enum vxd_status vxd_reply_text(const char *in, const char *name, char *out,
                               size_t n_bytes, struct vxd_err *err);

/* scene_reply.c checks that the numbers of a reply about scenes do not contradict each other.
 * errors  INTERNAL */
struct voxeld_scene_found;
struct voxeld_scene_log;
struct voxeld_scene_diff;
struct voxeld_scene_cells;
enum vxd_status vxd_scene_check_hits(const struct voxeld_scene_found *found,
                                     struct vxd_err *err);
enum vxd_status vxd_scene_check_log(const struct voxeld_scene_log *log,
                                    struct vxd_err *err);
enum vxd_status vxd_scene_check_diff(const struct voxeld_scene_diff *diff,
                                     struct vxd_err *err);
/* Opens what of an export depends on its format: materials, and a dense array. */
enum vxd_status vxd_scene_open_cells(const Voxeld__V1__SceneExportResponse *in,
                                     struct voxeld_scene_cells *cells,
                                     struct vxd_err *err);

/* Opens bytes of which there must be some. */
enum vxd_status vxd_reply_bytes(const ProtobufCBinaryData *in, const char *name,
                                const uint8_t **out, size_t *n_bytes,
                                struct vxd_err *err);

#endif
