// SPDX-License-Identifier: Apache-2.0
/* Turns the wire's replies about maps into the public structs. The server is not
 * trusted: every length is checked against the counts before a pointer goes out. */
#include "client/c/map/map_call.h"

/* Maps ---------------------------------------------------------------------------------- */

static bool copy_lattice(const Voxeld__V1__MapLattice *in, struct voxeld_lattice *out)
{
    if (in == NULL) {
        return false;
    }
    vxd_reply_vec3(in->size, out->size_m);
    vxd_reply_vec3(in->origin, out->origin_m);
    out->frame_id = in->frame_id;
    return true;
}

static enum vxd_status copy_info(struct vxd_reply *reply, const Voxeld__V1__MapInfo *in,
                                 struct voxeld_map_info *out, struct vxd_err *err)
{
    struct voxeld_map_array *arrays;

    if (in == NULL || in->spec == NULL) {
        return vxd_reply_bad(err, "map", "a map without its description");
    }
    arrays = vxd_reply_alloc(reply, in->spec->n_values, sizeof *arrays);
    if (arrays == NULL) {
        return vxd_reply_no_memory(err);
    }
    for (size_t i = 0; i < in->spec->n_values; i++) {
        arrays[i] = (struct voxeld_map_array){
            .name = in->spec->values[i]->name,
            .dtype = (enum voxeld_dtype)in->spec->values[i]->dtype,
            .n_elements = in->spec->values[i]->n_elements,
        };
    }
    *out = (struct voxeld_map_info){
        .name = in->name,
        .key_dtype = (enum voxeld_dtype)in->spec->key_dtype,
        .n_components = in->spec->n_components,
        .arrays = arrays,
        .n_arrays = in->spec->n_values,
        .n_entries = in->n_entries,
        .capacity = in->capacity,
        .n_bytes = in->n_bytes,
        .max_bytes = in->max_bytes,
        .erase_epoch = in->erase_epoch,
        .generation = in->generation,
        .ttl_s = in->ttl_s,
        .ttl_left_s = in->ttl_left_s,
        .owner = in->owner,
        .created_ns = in->created_ns,
        .load = in->load,
        .mean_probes = in->mean_probes,
        .max_probes = in->max_probes,
        .index_bytes_per_entry = in->index_bytes_per_entry,
        .durable = in->durable,
        .fsync = (enum voxeld_map_fsync)in->fsync,
        .journal_max_bytes = in->journal_max_bytes,
        .unavailable = in->unavailable,
    };
    out->has_lattice = copy_lattice(in->lattice, &out->lattice);
    return VXD_OK;
}

enum vxd_status vxd_maps_open(struct vxd_exchange *call, Voxeld__V1__MapInfo *const *in,
                              size_t n, struct voxeld_maps **out)
{
    struct voxeld_maps *maps = vxd_result_new(&call->reply, sizeof *maps, &call->err);
    struct voxeld_map_info *list;
    enum vxd_status status = VXD_OK;

    if (maps == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    list = vxd_reply_alloc(vxd_result_reply(maps), n, sizeof *list);
    if (list == NULL) {
        status = vxd_reply_no_memory(&call->err);
        goto out;
    }
    for (size_t i = 0; i < n; i++) {
        VXD_TRY(copy_info(vxd_result_reply(maps), in[i], &list[i], &call->err));
    }
    maps->maps = list;
    maps->n_maps = n;
    maps->replayed = vxd_result_reply(maps)->response->header->replayed;
    *out = maps;
    return VXD_OK;
out:
    voxeld_maps_free(maps);
    return status;
}

void voxeld_maps_free(struct voxeld_maps *maps)
{
    vxd_result_free(maps);
}

/* Entries ------------------------------------------------------------------------------- */

/* Opens a column of n numbers; *out is NULL if it was not requested. */
static enum vxd_status column(const Voxeld__V1__Tensor *tensor, const char *name,
                              bool requested, Voxeld__V1__DType dtype, size_t n,
                              const void **out, struct vxd_err *err)
{
    *out = NULL;
    return requested ? vxd_reply_tensor(tensor, name, dtype, &n, 1, out, err) : VXD_OK;
}

static enum vxd_status mask(const Voxeld__V1__Tensor *tensor, const char *name,
                            bool requested, size_t n, const uint8_t **out,
                            struct vxd_err *err)
{
    const void *data;
    enum vxd_status status =
        column(tensor, name, requested, VOXELD__V1__DTYPE__UINT8, n, &data, err);

    *out = data;
    return status;
}

static enum vxd_status numbers(const Voxeld__V1__Tensor *tensor, const char *name,
                               bool requested, size_t n, size_t n_columns,
                               const int32_t **out, struct vxd_err *err)
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
        if ((*out)[i] < -1) {
            return vxd_reply_bad(err, name, "a number below -1");
        }
    }
out:
    return status;
}

/* Opens an array of n rows, of any type and width. */
static enum vxd_status rows(const Voxeld__V1__Tensor *tensor, const char *name, size_t n,
                            struct voxeld_array *out, struct vxd_err *err)
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

static enum vxd_status values(struct voxeld_map_result *result,
                              const struct vxd_map_expect *expect,
                              Voxeld__V1__MapRows *const *in, size_t n_in,
                              struct vxd_err *err)
{
    struct voxeld_array *list;
    enum vxd_status status = VXD_OK;

    if (!expect->any_values && n_in != expect->n_values) {
        return vxd_reply_bad(err, "values", "not the arrays that were asked for");
    }
    list = vxd_reply_alloc(vxd_result_reply(result), n_in, sizeof *list);
    if (list == NULL) {
        return vxd_reply_no_memory(err);
    }
    for (size_t i = 0; i < n_in; i++) {
        VXD_TRY(rows(in[i]->rows, in[i]->name, result->n, &list[i], err));
    }
    result->values = list;
    result->n_values = n_in;
out:
    return status;
}

static enum vxd_status open_insert(struct voxeld_map_result *r, bool has_arrays,
                                   struct vxd_err *err)
{
    const Voxeld__V1__MapInsertResponse *in = vxd_result_reply(r)->response->map_insert;
    enum vxd_status status;

    r->n_new = in->n_new;
    r->n_entries = in->n_entries;
    r->erase_epoch = in->erase_epoch;
    r->engine_ms = in->engine_ms;
    VXD_TRY(numbers(in->indices, "indices", has_arrays, r->n, 1, &r->indices, err));
    VXD_TRY(mask(in->is_new, "is_new", has_arrays, r->n, &r->is_new, err));
out:
    return status;
}

static enum vxd_status open_find(struct voxeld_map_result *r,
                                 const struct vxd_map_expect *expect, struct vxd_err *err)
{
    const Voxeld__V1__MapFindResponse *in = vxd_result_reply(r)->response->map_find;
    enum vxd_status status;

    r->n_found = in->n_found;
    r->erase_epoch = in->erase_epoch;
    r->engine_ms = in->engine_ms;
    r->n_neighbours = expect->n_neighbours;
    VXD_TRY(numbers(in->indices, "indices", true, r->n, 1, &r->indices, err));
    VXD_TRY(mask(in->found, "found", true, r->n, &r->found, err));
    VXD_TRY(numbers(in->neighbours, "neighbours", expect->n_neighbours > 0, r->n,
                    expect->n_neighbours, &r->neighbours, err));
    VXD_TRY(values(r, expect, in->values, in->n_values, err));
    if (expect->keys) {
        VXD_TRY(rows(in->keys, "keys", r->n, &r->keys, err));
    }
out:
    return status;
}

static enum vxd_status open_erase(struct voxeld_map_result *r, bool has_arrays,
                                  struct vxd_err *err)
{
    const Voxeld__V1__MapEraseResponse *in = vxd_result_reply(r)->response->map_erase;

    r->n_erased = in->n_erased;
    r->n_entries = in->n_entries;
    r->erase_epoch = in->erase_epoch;
    r->engine_ms = in->engine_ms;
    return mask(in->erased, "erased", has_arrays, r->n, &r->erased, err);
}

static enum vxd_status open_update(struct voxeld_map_result *r, bool has_arrays,
                                   struct vxd_err *err)
{
    const Voxeld__V1__MapUpdateResponse *in = vxd_result_reply(r)->response->map_update;

    r->n_updated = in->n_updated;
    r->n_new = in->n_new;
    r->n_entries = in->n_entries;
    r->erase_epoch = in->erase_epoch;
    r->engine_ms = in->engine_ms;
    return mask(in->updated, "updated", has_arrays, r->n, &r->updated, err);
}

static enum vxd_status open_export(struct voxeld_map_result *r,
                                   const struct vxd_map_expect *expect,
                                   struct vxd_err *err)
{
    const Voxeld__V1__MapExportResponse *in = vxd_result_reply(r)->response->map_export;
    enum vxd_status status = VXD_OK;

    r->n_entries = in->n_entries;
    r->erase_epoch = in->erase_epoch;
    r->has_lattice = copy_lattice(in->lattice, &r->lattice);
    if (expect->ply) {
        if (in->ply.len == 0) {
            return vxd_reply_bad(err, "ply", "requested, but missing");
        }
        r->ply = in->ply.data;
        r->n_ply_bytes = in->ply.len;
        return VXD_OK;
    }
    if (in->indices == NULL || in->indices->n_shape != 1 || in->indices->shape[0] < 0) {
        return vxd_reply_bad(err, "indices", "not one number an entry");
    }
    r->n = (size_t)in->indices->shape[0];
    VXD_TRY(numbers(in->indices, "indices", true, r->n, 1, &r->indices, err));
    VXD_TRY(rows(in->keys, "keys", r->n, &r->keys, err));
    VXD_TRY(values(r, expect, in->values, in->n_values, err));
out:
    return status;
}

enum vxd_status vxd_map_result_open(struct vxd_exchange *call,
                                    const struct vxd_map_expect *expect,
                                    struct voxeld_map_result **out)
{
    struct voxeld_map_result *result =
        vxd_result_new(&call->reply, sizeof *result, &call->err);
    const Voxeld__V1__ResponseHeader *header;
    bool has_arrays;
    enum vxd_status status = VXD_OK;

    if (result == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    header = vxd_result_reply(result)->response->header;
    *result = (struct voxeld_map_result){
        .n = expect->n,
        .queue_ms = header->queue_ms,
        .total_ms = header->total_ms,
        .request_id = header->request_id,
        .replayed = header->replayed,
        .arrays_dropped = header->arrays_dropped,
    };
    has_arrays = !expect->counts_only && !header->arrays_dropped;
    switch (vxd_result_reply(result)->response->method_case) {
    case VOXELD__V1__RESPONSE__METHOD_MAP_INSERT:
        VXD_TRY(open_insert(result, has_arrays, &call->err));
        break;
    case VOXELD__V1__RESPONSE__METHOD_MAP_FIND:
        VXD_TRY(open_find(result, expect, &call->err));
        break;
    case VOXELD__V1__RESPONSE__METHOD_MAP_ERASE:
        VXD_TRY(open_erase(result, has_arrays, &call->err));
        break;
    case VOXELD__V1__RESPONSE__METHOD_MAP_UPDATE:
        VXD_TRY(open_update(result, has_arrays, &call->err));
        break;
    default:
        VXD_TRY(open_export(result, expect, &call->err));
        break;
    }
    *out = result;
    return VXD_OK;
out:
    voxeld_map_result_free(result);
    return status;
}

void voxeld_map_result_free(struct voxeld_map_result *result)
{
    vxd_result_free(result);
}
