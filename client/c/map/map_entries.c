// SPDX-License-Identifier: Apache-2.0
/* Calls on the entries of maps: insert, find, erase, update, export. */
#include <string.h>

#include "client/c/map/map_call.h"

/* Makes the tensors of several arrays, with their names; they borrow the arrays' data.
 * Errors as of vxd_exchange_tensor. */
static enum vxd_status build_values(struct vxd_exchange *call,
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

/* Makes the tensor of the keys, or of the entries' numbers if those are not NULL, and
 * counts the rows. */
static enum vxd_status build_rows(struct vxd_exchange *call,
                                  const struct voxeld_array *keys, const int32_t *indices,
                                  size_t n_indices, Voxeld__V1__Tensor **out_keys,
                                  Voxeld__V1__Tensor **out_indices, size_t *n)
{
    enum vxd_status status;

    if (indices == NULL && n_indices > 0) {
        return vxd_fail(&call->err, VXD_INVALID_ARGUMENT, "indices", "%zu at NULL",
                        n_indices);
    }
    VXD_TRY(vxd_exchange_tensor(call, "keys", keys, out_keys));
    if (indices != NULL) {
        VXD_TRY(vxd_exchange_indices(call, indices, n_indices, out_indices));
    }
    *n = indices != NULL ? n_indices : keys->n;
out:
    return status;
}

/* Sends the request and opens the result, if out is not NULL. */
static enum vxd_status exchange(struct vxd_exchange *call,
                                const struct vxd_map_expect *expect,
                                struct voxeld_map_result **out)
{
    enum vxd_status status;

    VXD_TRY(vxd_exchange_send(call));
    if (out != NULL) {
        VXD_TRY(vxd_map_result_open(call, expect, out));
    }
out:
    return status;
}

enum voxeld_status voxeld_map_insert(struct voxeld_client *client,
                                     const struct voxeld_map_insert_request *request,
                                     struct voxeld_map_result **out,
                                     struct voxeld_error *error)
{
    Voxeld__V1__MapInsertRequest body = VOXELD__V1__MAP_INSERT_REQUEST__INIT;
    struct vxd_map_expect expect = {.n = request->keys.n,
                                    .counts_only = request->counts_only || out == NULL};
    struct vxd_exchange call;
    enum vxd_status status;

    if (out != NULL) {
        *out = NULL;
    }
    VXD_TRY(vxd_exchange_begin(&call, client, &request->call, true));
    body.name = vxd_text_or_empty(request->map);
    VXD_TRY(vxd_exchange_tensor(&call, "keys", &request->keys, &body.keys));
    VXD_TRY(build_values(&call, request->values, request->n_values, &body.values));
    body.n_values = request->n_values;
    body.counts_only = expect.counts_only;
    call.request.method_case = VOXELD__V1__REQUEST__METHOD_MAP_INSERT;
    call.request.map_insert = &body;
    VXD_TRY(exchange(&call, &expect, out));
out:
    return vxd_exchange_end(&call, status, error);
}

static bool has_star(const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (names[i] != NULL && strcmp(names[i], "*") == 0) {
            return true;
        }
    }
    return false;
}

enum voxeld_status voxeld_map_find(struct voxeld_client *client,
                                   const struct voxeld_map_find_request *request,
                                   struct voxeld_map_result **out,
                                   struct voxeld_error *error)
{
    Voxeld__V1__MapFindRequest body = VOXELD__V1__MAP_FIND_REQUEST__INIT;
    struct vxd_map_expect expect = {.keys = request->return_keys,
                                    .n_values = request->n_arrays,
                                    .n_neighbours = request->neighbours};
    struct vxd_exchange call;
    enum vxd_status status;

    *out = NULL;
    VXD_TRY(vxd_exchange_begin(&call, client, &request->call, false));
    body.name = vxd_text_or_empty(request->map);
    VXD_TRY(build_rows(&call, &request->keys, request->indices, request->n_indices,
                       &body.keys, &body.indices, &expect.n));
    VXD_TRY(vxd_exchange_names(&call, "values", request->arrays, request->n_arrays,
                               &body.values));
    expect.any_values = has_star(request->arrays, request->n_arrays);
    body.n_values = request->n_arrays;
    body.erase_epoch = request->erase_epoch;
    body.neighbours = request->neighbours;
    body.return_keys = request->return_keys;
    call.request.method_case = VOXELD__V1__REQUEST__METHOD_MAP_FIND;
    call.request.map_find = &body;
    VXD_TRY(exchange(&call, &expect, out));
out:
    return vxd_exchange_end(&call, status, error);
}

enum voxeld_status voxeld_map_erase(struct voxeld_client *client,
                                    const struct voxeld_map_erase_request *request,
                                    struct voxeld_map_result **out,
                                    struct voxeld_error *error)
{
    Voxeld__V1__MapEraseRequest body = VOXELD__V1__MAP_ERASE_REQUEST__INIT;
    struct vxd_map_expect expect = {.n = request->keys.n,
                                    .counts_only = request->counts_only || out == NULL ||
                                                   request->all};
    struct vxd_exchange call;
    enum vxd_status status;

    if (out != NULL) {
        *out = NULL;
    }
    VXD_TRY(vxd_exchange_begin(&call, client, &request->call, true));
    body.name = vxd_text_or_empty(request->map);
    VXD_TRY(vxd_exchange_tensor(&call, "keys", &request->keys, &body.keys));
    body.all = request->all;
    body.counts_only = expect.counts_only;
    call.request.method_case = VOXELD__V1__REQUEST__METHOD_MAP_ERASE;
    call.request.map_erase = &body;
    VXD_TRY(exchange(&call, &expect, out));
out:
    return vxd_exchange_end(&call, status, error);
}

_Static_assert((int)VOXELD_COMBINE_ADD == (int)VOXELD__V1__MAP_COMBINE__MAP_ADD &&
                   (int)VOXELD_COMBINE_MAX == (int)VOXELD__V1__MAP_COMBINE__MAP_MAX,
               "one set of numbers");

enum voxeld_status voxeld_map_update(struct voxeld_client *client,
                                     const struct voxeld_map_update_request *request,
                                     struct voxeld_map_result **out,
                                     struct voxeld_error *error)
{
    Voxeld__V1__MapUpdateRequest body = VOXELD__V1__MAP_UPDATE_REQUEST__INIT;
    struct vxd_map_expect expect = {.counts_only = request->counts_only || out == NULL};
    struct vxd_exchange call;
    enum vxd_status status;

    if (out != NULL) {
        *out = NULL;
    }
    VXD_TRY(vxd_exchange_begin(&call, client, &request->call, true));
    body.name = vxd_text_or_empty(request->map);
    VXD_TRY(build_rows(&call, &request->keys, request->indices, request->n_indices,
                       &body.keys, &body.indices, &expect.n));
    VXD_TRY(build_values(&call, request->values, request->n_values, &body.values));
    body.n_values = request->n_values;
    body.erase_epoch = request->erase_epoch;
    body.combine = (Voxeld__V1__MapCombine)request->combine;
    body.insert_missing = request->insert_missing;
    body.counts_only = expect.counts_only;
    call.request.method_case = VOXELD__V1__REQUEST__METHOD_MAP_UPDATE;
    call.request.map_update = &body;
    VXD_TRY(exchange(&call, &expect, out));
out:
    return vxd_exchange_end(&call, status, error);
}

static enum vxd_status export_entries(struct vxd_exchange *call,
                                      const struct voxeld_map_export_request *request,
                                      bool as_ply, struct voxeld_map_result **out)
{
    Voxeld__V1__MapExportRequest body = VOXELD__V1__MAP_EXPORT_REQUEST__INIT;
    struct vxd_map_expect expect = {.any_values =
                                        request->n_arrays == 0 && !request->keys_only,
                                    .n_values = request->n_arrays,
                                    .ply = as_ply};
    enum vxd_status status;

    body.name = vxd_text_or_empty(request->map);
    body.format =
        as_ply ? VOXELD__V1__MAP_FORMAT__MAP_PLY : VOXELD__V1__MAP_FORMAT__MAP_TENSORS;
    VXD_TRY(vxd_exchange_names(call, "values", request->arrays, request->n_arrays,
                               &body.values));
    body.n_values = request->n_arrays;
    body.keys_only = request->keys_only;
    body.first = request->first;
    body.limit = request->limit;
    call->request.method_case = VOXELD__V1__REQUEST__METHOD_MAP_EXPORT;
    call->request.map_export = &body;
    VXD_TRY(exchange(call, &expect, out));
out:
    return status;
}

enum voxeld_status voxeld_map_export(struct voxeld_client *client,
                                     const struct voxeld_map_export_request *request,
                                     struct voxeld_map_result **out,
                                     struct voxeld_error *error)
{
    struct vxd_exchange call;
    enum vxd_status status;

    *out = NULL;
    VXD_TRY(vxd_exchange_begin(&call, client, &request->call, false));
    VXD_TRY(export_entries(&call, request, request->as_ply, out));
out:
    return vxd_exchange_end(&call, status, error);
}

/* Writes the result's PLY to a file. */
static enum vxd_status
write_file(const char *path, const struct voxeld_map_result *result, struct vxd_err *err)
{
    struct vxd_out_file file;
    enum vxd_status status = vxd_out_file_open(path, &file, err);

    if (status == VXD_OK) {
        status = vxd_out_file_write(&file, result->ply, result->n_ply_bytes, err);
    }
    return vxd_out_file_end(&file, status, err);
}

enum voxeld_status voxeld_map_export_file(struct voxeld_client *client,
                                          const struct voxeld_map_export_request *request,
                                          const char *path, uint64_t *n_entries,
                                          struct voxeld_error *error)
{
    struct voxeld_map_result *result = NULL;
    struct vxd_exchange call;
    enum vxd_status status;

    VXD_TRY(vxd_exchange_begin(&call, client, &request->call, false));
    if (path == NULL) {
        status = vxd_fail(&call.err, VXD_INVALID_ARGUMENT, "path", "is NULL");
        goto out;
    }
    VXD_TRY(export_entries(&call, request, true, &result));
    VXD_TRY(write_file(path, result, &call.err));
    if (n_entries != NULL) {
        *n_entries = result->n_entries;
    }
out:
    voxeld_map_result_free(result);
    return vxd_exchange_end(&call, status, error);
}
