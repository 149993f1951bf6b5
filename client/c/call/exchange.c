// SPDX-License-Identifier: Apache-2.0
/* One synchronous call of a method, and the parts of its request. */
#include <inttypes.h>
#include <string.h>

#include "client/c/call/exchange.h"

enum {
    /* This is far above what the server accepts, and keeps loops from running over
     * garbage counts. */
    MAX_ARRAYS = 65536
};

enum vxd_status vxd_exchange_begin(struct vxd_exchange *call,
                                   struct voxeld_client *client,
                                   const struct voxeld_call *options, bool changes)
{
    memset(call, 0, sizeof *call);
    call->client = client;
    if (changes) {
        call->options = vxd_client_number(client, options);
        call->sequence = call->options.sequence;
    } else if (options != NULL) {
        call->options = *options;
        call->options.sequence = 0;
    }
    voxeld__v1__request__init(&call->request);
    return vxd_decoder_create(SIZE_MAX, NULL, &call->arena, &call->err);
}

enum vxd_status vxd_exchange_send(struct vxd_exchange *call)
{
    return vxd_client_call(call->client, &call->options, &call->request, call->request_id,
                           &call->reply, &call->err);
}

enum vxd_status vxd_exchange_send_for_limits(struct vxd_exchange *call)
{
    return vxd_client_get_info(call->client, &call->options, call->request_id,
                               &call->reply, &call->err);
}

void vxd_exchange_allow(struct vxd_exchange *call, uint32_t more_ms)
{
    enum {
        DEFAULT_TIMEOUT_MS = 5000
    };
    uint32_t own_ms =
        call->client->timeout_ms > 0 ? call->client->timeout_ms : DEFAULT_TIMEOUT_MS;
    uint64_t total_ms = (uint64_t)own_ms + more_ms;

    if (call->options.timeout_ms == 0) {
        call->options.timeout_ms = total_ms < INT32_MAX ? (uint32_t)total_ms : INT32_MAX;
    }
}

enum vxd_status vxd_exchange_send_async(struct vxd_exchange *call, vxd_call_ended *ended,
                                        void *state)
{
    return vxd_client_call_async(call->client, &call->options, &call->request, ended,
                                 state, call->request_id, &call->err);
}

enum voxeld_status vxd_exchange_end(struct vxd_exchange *call, enum vxd_status status,
                                    struct voxeld_error *error)
{
    vxd_decoder_destroy(call->arena);
    vxd_reply_close(&call->reply);
    return status == VXD_OK ? VOXELD_OK
                            : vxd_client_change_error(&call->err, call->request_id,
                                                      call->sequence, error);
}

void *vxd_exchange_alloc(struct vxd_exchange *call, size_t n, size_t n_bytes)
{
    void *block = NULL;

    if (vxd_size_mul(n, n_bytes, &n_bytes)) {
        block = vxd_decoder_alloc(call->arena, n_bytes > 0 ? n_bytes : 1, NULL);
    }
    if (block == NULL) {
        (void)vxd_fail(&call->err, VXD_RESOURCE_EXHAUSTED, NULL,
                       "no memory for the request");
    } else {
        memset(block, 0, n_bytes);
    }
    return block;
}

char *vxd_text_or_empty(const char *string)
{
    return (char *)(uintptr_t)(string != NULL ? string : "");
}

enum vxd_status vxd_exchange_check_list(struct vxd_exchange *call, const char *field,
                                        const void *list, size_t n)
{
    if (n > MAX_ARRAYS || (n > 0 && list == NULL)) {
        return vxd_fail(&call->err, VXD_INVALID_ARGUMENT, field, "a list of %zu at %p", n,
                        list);
    }
    return VXD_OK;
}

void vxd_exchange_enter_item(struct vxd_exchange *call, const char *list, size_t i)
{
    (void)snprintf(call->path, sizeof call->path, "%s[%zu].", list, i);
}

void vxd_exchange_enter(struct vxd_exchange *call, const char *member)
{
    size_t n = strlen(call->path);

    (void)snprintf(call->path + n, sizeof call->path - n, "%s.", member);
}

void vxd_exchange_leave(struct vxd_exchange *call)
{
    call->path[0] = '\0';
}

enum vxd_status vxd_exchange_wrong_choice(struct vxd_exchange *call, const char *field,
                                          int number)
{
    vxd_exchange_enter(call, field);
    call->path[strlen(call->path) - 1] = '\0';
    return vxd_fail(&call->err, VXD_INVALID_ARGUMENT, call->path, "%d is no choice",
                    number);
}

/* Parses a version's number in decimal digits; 0 where it is none. */
static uint64_t parse_version(const char *digits)
{
    uint64_t number = 0;

    for (; *digits != '\0'; digits++) {
        uint64_t digit = (uint64_t)(*digits - '0');

        if (number > (UINT64_MAX - digit) / 10) {
            return 0;
        }
        number = number * 10 + digit;
    }
    return number;
}

enum vxd_status vxd_exchange_name_at(struct vxd_exchange *call, const char *scene,
                                     char **name, Voxeld__V1__SceneAt **at)
{
    const char *sign = scene != NULL ? strchr(scene, '@') : NULL;
    size_t n;

    *at = NULL;
    *name = vxd_text_or_empty(scene);
    if (sign == NULL) {
        return VXD_OK;
    }
    n = (size_t)(sign - scene);
    *name = vxd_exchange_alloc(call, n + 1, 1);
    *at = vxd_exchange_alloc(call, 1, sizeof **at);
    if (*name == NULL || *at == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    memcpy(*name, scene, n);
    voxeld__v1__scene_at__init(*at);
    if (sign[1 + strspn(sign + 1, "0123456789")] != '\0') {
        (*at)->snapshot = vxd_text_or_empty(sign + 1);
        return VXD_OK;
    }
    (*at)->version = parse_version(sign + 1);
    return (*at)->version > 0
               ? VXD_OK
               : vxd_fail(&call->err, VXD_INVALID_ARGUMENT, "at",
                          "\"%.63s\": after the @ comes a version from 1 on, or a "
                          "snapshot",
                          sign);
}

enum vxd_status vxd_exchange_names(struct vxd_exchange *call, const char *field,
                                   const char *const *names, size_t n, char ***out)
{
    enum vxd_status status;

    VXD_TRY(vxd_exchange_check_list(call, field, (const void *)names, n));
    *out = vxd_exchange_alloc(call, n, sizeof(char *));
    if (*out == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (size_t i = 0; i < n; i++) {
        (*out)[i] = vxd_text_or_empty(names[i]);
    }
out:
    return status;
}

enum vxd_status vxd_exchange_vec3(struct vxd_exchange *call, const double in[3],
                                  Voxeld__V1__Vec3 **out)
{
    *out = vxd_exchange_alloc(call, 1, sizeof **out);
    if (*out == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    voxeld__v1__vec3__init(*out);
    (*out)->x = in[0];
    (*out)->y = in[1];
    (*out)->z = in[2];
    return VXD_OK;
}

enum vxd_status vxd_exchange_pose(struct vxd_exchange *call, const struct voxeld_pose *in,
                                  Voxeld__V1__Pose **out)
{
    const double *t = in->translation_m;
    const double *q = in->rotation;
    enum vxd_status status;

    *out = NULL;
    if (t[0] == 0 && t[1] == 0 && t[2] == 0 && q[0] == 0 && q[1] == 0 && q[2] == 0 &&
        q[3] == 0) {
        return VXD_OK;
    }
    *out = vxd_exchange_alloc(call, 1, sizeof **out);
    if (*out == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    voxeld__v1__pose__init(*out);
    VXD_TRY(vxd_exchange_vec3(call, t, &(*out)->translation));
    (*out)->rotation = vxd_exchange_alloc(call, 1, sizeof *(*out)->rotation);
    if ((*out)->rotation == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    voxeld__v1__quaternion__init((*out)->rotation);
    (*out)->rotation->x = q[0];
    (*out)->rotation->y = q[1];
    (*out)->rotation->z = q[2];
    (*out)->rotation->w = q[3];
out:
    return status;
}

size_t vxd_exchange_n_named(const char *const *names, size_t n, bool none_is_all)
{
    for (size_t i = 0; i < n; i++) {
        if (names[i] != NULL && strcmp(names[i], "*") == 0) {
            return SIZE_MAX;
        }
    }
    return n == 0 && none_is_all ? SIZE_MAX : n;
}

enum vxd_status vxd_exchange_fill_tensor(struct vxd_exchange *call, const char *field,
                                         const struct voxeld_array *in,
                                         Voxeld__V1__Tensor *tensor)
{
    size_t n_elements = in->n_elements > 0 ? in->n_elements : 1;
    size_t n_bytes = vxd_dtype_bytes((enum vxd_dtype)in->dtype);

    voxeld__v1__tensor__init(tensor);
    if (n_bytes == 0) {
        return vxd_fail(&call->err, VXD_INVALID_ARGUMENT, field, "dtype %d is no type",
                        (int)in->dtype);
    }
    if (!vxd_size_mul(n_bytes, n_elements, &n_bytes) ||
        !vxd_size_mul(n_bytes, in->n, &n_bytes) || n_bytes > PTRDIFF_MAX) {
        return vxd_fail(&call->err, VXD_INVALID_ARGUMENT, field,
                        "%zu rows of %zu elements are more than memory can hold", in->n,
                        n_elements);
    }
    if (in->n > 0 && in->data == NULL) {
        return vxd_fail(&call->err, VXD_INVALID_ARGUMENT, field, "%zu rows at NULL",
                        in->n);
    }
    tensor->shape = vxd_exchange_alloc(call, 2, sizeof *tensor->shape);
    if (tensor->shape == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    tensor->shape[0] = (int64_t)in->n;
    tensor->shape[1] = (int64_t)n_elements;
    tensor->n_shape = n_elements > 1 ? 2 : 1;
    tensor->dtype = (Voxeld__V1__DType)in->dtype;
    tensor->data.data = (uint8_t *)(uintptr_t)in->data;
    tensor->data.len = n_bytes;
    return VXD_OK;
}

enum vxd_status vxd_exchange_tensor(struct vxd_exchange *call, const char *field,
                                    const struct voxeld_array *in,
                                    Voxeld__V1__Tensor **out)
{
    char path[96];

    *out = NULL;
    if (in->dtype == VOXELD_DTYPE_UNSPECIFIED && in->n == 0) {
        return VXD_OK;
    }
    (void)snprintf(path, sizeof path, "%s%s", call->path, field);
    *out = vxd_exchange_alloc(call, 1, sizeof **out);
    return *out != NULL ? vxd_exchange_fill_tensor(call, path, in, *out)
                        : VXD_RESOURCE_EXHAUSTED;
}

enum vxd_status vxd_exchange_array(struct vxd_exchange *call, const char *field,
                                   const struct voxeld_array *in,
                                   Voxeld__V1__Tensor **out)
{
    if (in == NULL) {
        return vxd_fail(&call->err, VXD_INVALID_ARGUMENT, field, "is NULL");
    }
    return vxd_exchange_tensor(call, field, in, out);
}

enum vxd_status vxd_exchange_int32s(struct vxd_exchange *call, const int32_t *in,
                                    size_t n, int32_t **out, size_t *n_out)
{
    bool has_any = false;

    for (size_t i = 0; i < n; i++) {
        has_any = has_any || in[i] != 0;
    }
    *out = vxd_exchange_alloc(call, n, sizeof **out);
    if (*out == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    memcpy(*out, in, n * sizeof **out);
    *n_out = has_any ? n : 0;
    return VXD_OK;
}

enum vxd_status vxd_exchange_choices(struct vxd_exchange *call, const char *field,
                                     uint32_t bits, uint32_t known, void *list,
                                     size_t *n_out)
{
    int *numbers = vxd_exchange_alloc(call, 32, sizeof *numbers);

    _Static_assert(sizeof(Voxeld__V1__Reduce) == sizeof(int),
                   "protobuf-c makes enums as wide as int");
    if ((bits & ~known) != 0) {
        return vxd_fail(&call->err, VXD_INVALID_ARGUMENT, field,
                        "0x%" PRIx32 " has unknown bits", bits);
    }
    if (numbers == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (int i = 0; i < 32; i++) {
        if ((bits >> i & 1) != 0) {
            numbers[(*n_out)++] = i + 1;
        }
    }
    memcpy(list, &numbers, sizeof numbers);
    return VXD_OK;
}

enum vxd_status vxd_exchange_indices(struct vxd_exchange *call, const int32_t *indices,
                                     size_t n, Voxeld__V1__Tensor **out)
{
    struct voxeld_array array = {.dtype = VOXELD_INT32, .data = indices, .n = n};

    *out = NULL;
    if (indices == NULL && n == 0) {
        return VXD_OK;
    }
    return vxd_exchange_tensor(call, "indices", &array, out);
}

enum vxd_status vxd_exchange_rows(struct vxd_exchange *call,
                                  const struct voxeld_array *in, size_t n,
                                  Voxeld__V1__MapRows ***out)
{
    Voxeld__V1__MapRows *all;
    Voxeld__V1__Tensor *tensors;
    char field[48];
    enum vxd_status status;

    VXD_TRY(vxd_exchange_check_list(call, "values", in, n));
    *out = vxd_exchange_alloc(call, n, sizeof(Voxeld__V1__MapRows *));
    all = vxd_exchange_alloc(call, n, sizeof *all);
    tensors = vxd_exchange_alloc(call, n, sizeof *tensors);
    if (*out == NULL || all == NULL || tensors == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(field, sizeof field, "values[%zu].rows", i);
        voxeld__v1__map_rows__init(&all[i]);
        all[i].name = vxd_text_or_empty(in[i].name);
        VXD_TRY(vxd_exchange_fill_tensor(call, field, &in[i], &tensors[i]));
        all[i].rows = &tensors[i];
        (*out)[i] = &all[i];
    }
out:
    return status;
}

enum vxd_status vxd_exchange_cloud(struct vxd_exchange *call,
                                   const struct voxeld_cloud *in, Voxeld__V1__Cloud **out)
{
    static const char of_many[] = "clouds[0]";
    Voxeld__V1__Cloud **list = NULL;
    enum vxd_status status;

    if (in == NULL) {
        return vxd_fail(&call->err, VXD_INVALID_ARGUMENT, "cloud", "is NULL");
    }
    status = vxd_exchange_clouds(call, in, 1, &list);
    if (status == VXD_OK) {
        *out = list[0];
    } else if (strncmp(call->err.field, of_many, sizeof of_many - 1) == 0) {
        char field[sizeof call->err.field];

        (void)snprintf(field, sizeof field, "cloud%s",
                       call->err.field + sizeof of_many - 1);
        memcpy(call->err.field, field, sizeof field);
    }
    return status;
}
