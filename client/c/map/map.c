// SPDX-License-Identifier: Apache-2.0
/* Calls on whole maps: create, get, list, drop, save, load. */
#include "client/c/map/map_call.h"

_Static_assert((int)VOXELD_MAP_FSYNC_ALWAYS ==
                       (int)VOXELD__V1__MAP_FSYNC__MAP_FSYNC_ALWAYS &&
                   (int)VOXELD_MAP_FSYNC_EVERYSEC ==
                       (int)VOXELD__V1__MAP_FSYNC__MAP_FSYNC_EVERYSEC &&
                   (int)VOXELD_MAP_FSYNC_OFF == (int)VOXELD__V1__MAP_FSYNC__MAP_FSYNC_OFF,
               "the schema's numbers");

static void fill_vec3(const double *in, Voxeld__V1__Vec3 *out)
{
    voxeld__v1__vec3__init(out);
    out->x = in[0];
    out->y = in[1];
    out->z = in[2];
}

/* Opens a reply with one map. Where out is NULL the reply is freed with the call. */
static enum vxd_status open_one(struct vxd_exchange *call, Voxeld__V1__MapInfo *map,
                                bool existed, struct voxeld_maps **out)
{
    enum vxd_status status = VXD_OK;

    if (out != NULL) {
        VXD_TRY(vxd_maps_open(call, &map, 1, out));
        (*out)->existed = existed;
    }
out:
    return status;
}

static enum vxd_status build_spec(struct vxd_exchange *call,
                                  const struct voxeld_map_create_request *in,
                                  Voxeld__V1__MapSpec *out)
{
    Voxeld__V1__MapArray *all = vxd_exchange_alloc(call, in->n_arrays, sizeof *all);

    voxeld__v1__map_spec__init(out);
    out->key_dtype = (Voxeld__V1__DType)in->key_dtype;
    out->n_components = in->n_components;
    out->values = vxd_exchange_alloc(call, in->n_arrays, sizeof(Voxeld__V1__MapArray *));
    if (all == NULL || out->values == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (size_t i = 0; i < in->n_arrays; i++) {
        voxeld__v1__map_array__init(&all[i]);
        all[i].name = vxd_text_or_empty(in->arrays[i].name);
        all[i].dtype = (Voxeld__V1__DType)in->arrays[i].dtype;
        all[i].n_elements = in->arrays[i].n_elements;
        out->values[i] = &all[i];
    }
    out->n_values = in->n_arrays;
    return VXD_OK;
}

enum voxeld_status voxeld_map_create(struct voxeld_client *client,
                                     const struct voxeld_map_create_request *request,
                                     struct voxeld_maps **out, struct voxeld_error *error)
{
    Voxeld__V1__MapCreateRequest body = VOXELD__V1__MAP_CREATE_REQUEST__INIT;
    Voxeld__V1__MapSpec spec;
    Voxeld__V1__MapLattice lattice = VOXELD__V1__MAP_LATTICE__INIT;
    Voxeld__V1__Vec3 size;
    Voxeld__V1__Vec3 origin;
    struct vxd_exchange call;
    Voxeld__V1__MapCreateResponse *response;
    enum vxd_status status;

    if (out != NULL) {
        *out = NULL;
    }
    VXD_TRY(vxd_exchange_begin(&call, client, &request->call, true));
    if (request->n_arrays > UINT16_MAX ||
        (request->n_arrays > 0 && request->arrays == NULL)) {
        status = vxd_fail(&call.err, VXD_INVALID_ARGUMENT, "arrays", "%zu arrays at %p",
                          request->n_arrays, (const void *)request->arrays);
        goto out;
    }
    VXD_TRY(build_spec(&call, request, &spec));
    fill_vec3(request->lattice.size_m, &size);
    fill_vec3(request->lattice.origin_m, &origin);
    lattice.size = &size;
    lattice.origin = &origin;
    lattice.frame_id = vxd_text_or_empty(request->lattice.frame_id);
    body.name = vxd_text_or_empty(request->map);
    body.spec = &spec;
    body.capacity = request->capacity;
    body.max_bytes = request->max_bytes;
    body.ttl_s = request->ttl_s;
    body.lattice = request->has_lattice ? &lattice : NULL;
    body.durable = request->durable;
    body.fsync = (Voxeld__V1__MapFsync)request->fsync;
    body.journal_max_bytes = request->journal_max_bytes;
    call.request.method_case = VOXELD__V1__REQUEST__METHOD_MAP_CREATE;
    call.request.map_create = &body;
    VXD_TRY(vxd_exchange_send(&call));
    response = call.reply.response->map_create;
    VXD_TRY(open_one(&call, response->map, response->existed, out));
out:
    return vxd_exchange_end(&call, status, error);
}

enum voxeld_status voxeld_map_get(struct voxeld_client *client,
                                  const struct voxeld_call *options, const char *map,
                                  struct voxeld_maps **out, struct voxeld_error *error)
{
    Voxeld__V1__MapGetRequest body = VOXELD__V1__MAP_GET_REQUEST__INIT;
    struct vxd_exchange call;
    enum vxd_status status;

    *out = NULL;
    VXD_TRY(vxd_exchange_begin(&call, client, options, false));
    body.name = vxd_text_or_empty(map);
    call.request.method_case = VOXELD__V1__REQUEST__METHOD_MAP_GET;
    call.request.map_get = &body;
    VXD_TRY(vxd_exchange_send(&call));
    VXD_TRY(open_one(&call, call.reply.response->map_get->map, true, out));
out:
    return vxd_exchange_end(&call, status, error);
}

enum voxeld_status voxeld_map_list(struct voxeld_client *client,
                                   const struct voxeld_call *options,
                                   struct voxeld_maps **out, struct voxeld_error *error)
{
    Voxeld__V1__MapListRequest body = VOXELD__V1__MAP_LIST_REQUEST__INIT;
    const Voxeld__V1__MapListResponse *response;
    struct vxd_exchange call;
    enum vxd_status status;

    *out = NULL;
    VXD_TRY(vxd_exchange_begin(&call, client, options, false));
    call.request.method_case = VOXELD__V1__REQUEST__METHOD_MAP_LIST;
    call.request.map_list = &body;
    VXD_TRY(vxd_exchange_send(&call));
    response = call.reply.response->map_list;
    VXD_TRY(vxd_maps_open(&call, response->maps, response->n_maps, out));
    (*out)->n_bytes = response->n_bytes;
    (*out)->limit_bytes = response->limit_bytes;
out:
    return vxd_exchange_end(&call, status, error);
}

enum voxeld_status voxeld_map_drop(struct voxeld_client *client,
                                   const struct voxeld_call *options, const char *map,
                                   bool missing_ok, bool *existed,
                                   struct voxeld_error *error)
{
    Voxeld__V1__MapDropRequest body = VOXELD__V1__MAP_DROP_REQUEST__INIT;
    struct vxd_exchange call;
    enum vxd_status status;

    VXD_TRY(vxd_exchange_begin(&call, client, options, true));
    body.name = vxd_text_or_empty(map);
    body.missing_ok = missing_ok;
    call.request.method_case = VOXELD__V1__REQUEST__METHOD_MAP_DROP;
    call.request.map_drop = &body;
    VXD_TRY(vxd_exchange_send(&call));
    if (existed != NULL) {
        *existed = call.reply.response->map_drop->existed;
    }
out:
    return vxd_exchange_end(&call, status, error);
}

enum voxeld_status voxeld_map_save(struct voxeld_client *client,
                                   const struct voxeld_call *options, const char *map,
                                   const char *file, struct voxeld_map_saved *out,
                                   struct voxeld_error *error)
{
    Voxeld__V1__MapSaveRequest body = VOXELD__V1__MAP_SAVE_REQUEST__INIT;
    const Voxeld__V1__MapSaveResponse *response;
    struct vxd_exchange call;
    enum vxd_status status;

    VXD_TRY(vxd_exchange_begin(&call, client, options, true));
    body.name = vxd_text_or_empty(map);
    body.file = vxd_text_or_empty(file);
    call.request.method_case = VOXELD__V1__REQUEST__METHOD_MAP_SAVE;
    call.request.map_save = &body;
    VXD_TRY(vxd_exchange_send(&call));
    if (out != NULL) {
        response = call.reply.response->map_save;
        (void)snprintf(out->file, sizeof out->file, "%s", response->file);
        out->n_bytes = response->n_bytes;
        out->n_entries = response->n_entries;
        out->digest = response->digest;
        out->replayed = call.reply.response->header->replayed;
    }
out:
    return vxd_exchange_end(&call, status, error);
}

enum voxeld_status voxeld_map_load(struct voxeld_client *client,
                                   const struct voxeld_map_load_request *request,
                                   struct voxeld_maps **out, struct voxeld_error *error)
{
    Voxeld__V1__MapLoadRequest body = VOXELD__V1__MAP_LOAD_REQUEST__INIT;
    Voxeld__V1__MapLoadResponse *response;
    struct vxd_exchange call;
    enum vxd_status status;

    if (out != NULL) {
        *out = NULL;
    }
    VXD_TRY(vxd_exchange_begin(&call, client, &request->call, true));
    body.name = vxd_text_or_empty(request->map);
    body.file = vxd_text_or_empty(request->file);
    body.replace = request->replace;
    body.max_bytes = request->max_bytes;
    body.ttl_s = request->ttl_s;
    call.request.method_case = VOXELD__V1__REQUEST__METHOD_MAP_LOAD;
    call.request.map_load = &body;
    VXD_TRY(vxd_exchange_send(&call));
    response = call.reply.response->map_load;
    VXD_TRY(open_one(&call, response->map, response->replaced, out));
out:
    return vxd_exchange_end(&call, status, error);
}
