// SPDX-License-Identifier: Apache-2.0
/* The peer's answers about maps. */
#include <stdbool.h>
#include <stdlib.h>

#include "tests/support/client/peer.h"

enum {
    MAX_ROWS = 65536,
    VALUE_ELEMENTS = 2,
    MAX_NEIGHBOURS = 27
};

/* Memory of one answer. */
struct map_answer {
    Voxeld__V1__Response response;
    Voxeld__V1__ResponseHeader header;
    union {
        Voxeld__V1__MapCreateResponse create;
        Voxeld__V1__MapDropResponse drop;
        Voxeld__V1__MapListResponse list;
        Voxeld__V1__MapGetResponse get;
        Voxeld__V1__MapInsertResponse insert;
        Voxeld__V1__MapFindResponse find;
        Voxeld__V1__MapEraseResponse erase;
        Voxeld__V1__MapUpdateResponse update;
        Voxeld__V1__MapExportResponse export;
        Voxeld__V1__MapSaveResponse save;
        Voxeld__V1__MapLoadResponse load;
    } u;
    Voxeld__V1__MapInfo info;
    Voxeld__V1__MapInfo *infos[1];
    Voxeld__V1__MapSpec spec;
    Voxeld__V1__MapArray array;
    Voxeld__V1__MapArray *arrays[1];
    Voxeld__V1__MapLattice lattice;
    Voxeld__V1__Vec3 size;
    Voxeld__V1__Tensor indices;
    Voxeld__V1__Tensor mask;
    Voxeld__V1__Tensor neighbours;
    Voxeld__V1__Tensor keys;
    Voxeld__V1__Tensor values;
    Voxeld__V1__MapRows rows;
    Voxeld__V1__MapRows *all_rows[2];
    int64_t shape_indices[1];
    int64_t shape_mask[1];
    int64_t shape_neighbours[2];
    int64_t shape_keys[2];
    int64_t shape_values[2];
    int32_t index_data[MAX_ROWS];
    uint8_t mask_data[MAX_ROWS];
    int32_t neighbour_data[MAX_ROWS * MAX_NEIGHBOURS];
    int32_t key_data[MAX_ROWS * 3];
    float value_data[MAX_ROWS * VALUE_ELEMENTS];
};

static void fill_rows(struct map_answer *a, size_t n, size_t n_neighbours)
{
    for (size_t i = 0; i < n; i++) {
        a->index_data[i] = (int32_t)i;
        a->mask_data[i] = 1;
        a->key_data[3 * i + 2] = (int32_t)i;
        a->value_data[2 * i] = (float)(2 * i);
        a->value_data[2 * i + 1] = (float)(2 * i + 1);
    }
    a->shape_indices[0] = (int64_t)n;
    a->shape_mask[0] = (int64_t)n;
    a->shape_neighbours[0] = (int64_t)n;
    a->shape_neighbours[1] = (int64_t)n_neighbours;
    a->shape_keys[0] = (int64_t)n;
    a->shape_keys[1] = 3;
    a->shape_values[0] = (int64_t)n;
    a->shape_values[1] = VALUE_ELEMENTS;
    peer_fill_tensor(&a->indices, VOXELD__V1__DTYPE__INT32, a->shape_indices, 1,
                     a->index_data);
    peer_fill_tensor(&a->mask, VOXELD__V1__DTYPE__UINT8, a->shape_mask, 1, a->mask_data);
    peer_fill_tensor(&a->neighbours, VOXELD__V1__DTYPE__INT32, a->shape_neighbours, 2,
                     a->neighbour_data);
    peer_fill_tensor(&a->keys, VOXELD__V1__DTYPE__INT32, a->shape_keys, 2, a->key_data);
    peer_fill_tensor(&a->values, VOXELD__V1__DTYPE__FLOAT32, a->shape_values, 2,
                     a->value_data);
    voxeld__v1__map_rows__init(&a->rows);
    a->rows.name = "v";
    a->rows.rows = &a->values;
    a->all_rows[0] = &a->rows;
    a->all_rows[1] = &a->rows;
}

/* In the tensors; what is not among an answer's tensors spoils nothing. */
static void spoil(struct map_answer *a, enum peer_map_flaw flaw)
{
    switch (flaw) {
    case MAP_FLAW_INDICES_SHORT:
        a->indices.data.len -= 4;
        break;
    case MAP_FLAW_INDICES_BELOW:
        a->index_data[0] = -2;
        break;
    case MAP_FLAW_MASK_DTYPE:
        a->mask.dtype = VOXELD__V1__DTYPE__INT8;
        break;
    case MAP_FLAW_MASK_SHAPE:
        a->shape_mask[0]++;
        break;
    case MAP_FLAW_ROWS_MISSING:
        a->rows.rows = NULL;
        break;
    case MAP_FLAW_ROWS_DTYPE:
        a->values.dtype = 77;
        break;
    case MAP_FLAW_ROWS_AXES:
        a->values.n_shape = 0;
        break;
    case MAP_FLAW_ROWS_SHORT:
        a->values.data.len -= 1;
        break;
    case MAP_FLAW_ROWS_NEGATIVE:
        a->shape_values[1] = -2;
        break;
    case MAP_FLAW_NEIGHBOURS_WIDTH:
        a->shape_neighbours[1]--;
        break;
    case MAP_FLAW_SPEC_MISSING:
        a->info.spec = NULL;
        break;
    case MAP_FLAW_EXPORT_SHAPE:
        a->indices.n_shape = 0;
        break;
    default:
        break;
    }
}

static void fill_info(struct map_answer *a)
{
    voxeld__v1__map_info__init(&a->info);
    voxeld__v1__map_spec__init(&a->spec);
    voxeld__v1__map_array__init(&a->array);
    voxeld__v1__map_lattice__init(&a->lattice);
    voxeld__v1__vec3__init(&a->size);
    a->array.name = "v";
    a->array.dtype = VOXELD__V1__DTYPE__FLOAT32;
    a->array.n_elements = VALUE_ELEMENTS;
    a->arrays[0] = &a->array;
    a->spec.key_dtype = VOXELD__V1__DTYPE__INT32;
    a->spec.n_components = 3;
    a->spec.values = a->arrays;
    a->spec.n_values = 1;
    a->size.y = 0.5;
    a->lattice.size = &a->size;
    a->lattice.frame_id = "map";
    a->info.name = "seen";
    a->info.spec = &a->spec;
    a->info.n_entries = 12;
    a->info.owner = "robot";
    a->info.lattice = &a->lattice;
    a->infos[0] = &a->info;
}

static size_t rows_of(const Voxeld__V1__Tensor *keys, const Voxeld__V1__Tensor *indices)
{
    const Voxeld__V1__Tensor *given = indices != NULL ? indices : keys;
    int64_t n = given != NULL && given->n_shape > 0 ? given->shape[0] : 0;

    return n > 0 && n <= MAX_ROWS ? (size_t)n : 0;
}

static void answer_insert(struct map_answer *a, const Voxeld__V1__MapInsertRequest *r,
                          bool drops, enum peer_map_flaw flaw)
{
    size_t n = rows_of(r->keys, NULL);

    voxeld__v1__map_insert_response__init(&a->u.insert);
    fill_rows(a, n, 0);
    spoil(a, flaw);
    if (!drops && !r->counts_only) {
        a->u.insert.indices = flaw != MAP_FLAW_INDICES_MISSING ? &a->indices : NULL;
        a->u.insert.is_new = &a->mask;
    }
    a->u.insert.n_new = n;
    a->u.insert.n_entries = n;
    a->u.insert.erase_epoch = 3;
    a->response.map_insert = &a->u.insert;
}

static void answer_find(struct map_answer *a, const Voxeld__V1__MapFindRequest *r,
                        enum peer_map_flaw flaw)
{
    size_t n = rows_of(r->keys, r->indices);

    voxeld__v1__map_find_response__init(&a->u.find);
    fill_rows(a, n, r->neighbours);
    spoil(a, flaw);
    a->u.find.indices = &a->indices;
    a->u.find.found = &a->mask;
    a->u.find.n_found = n;
    a->u.find.values = a->all_rows;
    a->u.find.n_values = r->n_values > 0 ? 1 : 0;
    if (flaw == MAP_FLAW_VALUES_COUNT) {
        a->u.find.n_values++;
    }
    a->u.find.neighbours = r->neighbours > 0 ? &a->neighbours : NULL;
    a->u.find.keys = r->return_keys && flaw != MAP_FLAW_KEYS_MISSING ? &a->keys : NULL;
    a->response.map_find = &a->u.find;
}

static void answer_export(struct map_answer *a, const Voxeld__V1__MapExportRequest *r,
                          enum peer_map_flaw flaw)
{
    static uint8_t ply[] = "ply\n";

    voxeld__v1__map_export_response__init(&a->u.export);
    fill_info(a);
    fill_rows(a, PEER_MAP_ENTRIES, 0);
    spoil(a, flaw);
    a->u.export.n_entries = PEER_MAP_ENTRIES;
    a->u.export.lattice = &a->lattice;
    if (r->format == VOXELD__V1__MAP_FORMAT__MAP_PLY) {
        a->u.export.ply.data = ply;
        a->u.export.ply.len = flaw == MAP_FLAW_PLY_EMPTY ? 0 : sizeof ply - 1;
    } else {
        a->u.export.indices = &a->indices;
        a->u.export.keys = flaw != MAP_FLAW_KEYS_MISSING ? &a->keys : NULL;
        a->u.export.values = a->all_rows;
        a->u.export.n_values = r->keys_only ? 0 : 1;
    }
    a->response.map_export = &a->u.export;
}

static void answer_change(struct map_answer *a, const Voxeld__V1__Request *request,
                          bool drops, enum peer_map_flaw flaw)
{
    if (request->method_case == VOXELD__V1__REQUEST__METHOD_MAP_ERASE) {
        voxeld__v1__map_erase_response__init(&a->u.erase);
        fill_rows(a, rows_of(request->map_erase->keys, NULL), 0);
        spoil(a, flaw);
        a->u.erase.erased = drops || request->map_erase->counts_only ? NULL : &a->mask;
        a->u.erase.n_erased = 7;
        a->response.map_erase = &a->u.erase;
    } else {
        voxeld__v1__map_update_response__init(&a->u.update);
        fill_rows(a, rows_of(request->map_update->keys, request->map_update->indices), 0);
        spoil(a, flaw);
        a->u.update.updated = drops || request->map_update->counts_only ? NULL : &a->mask;
        a->u.update.n_updated = 8;
        a->response.map_update = &a->u.update;
    }
}

static void answer_whole(struct map_answer *a, const Voxeld__V1__Request *request,
                         enum peer_map_flaw flaw)
{
    fill_info(a);
    spoil(a, flaw);
    switch (request->method_case) {
    case VOXELD__V1__REQUEST__METHOD_MAP_CREATE:
        voxeld__v1__map_create_response__init(&a->u.create);
        a->u.create.map = &a->info;
        a->u.create.existed = 1;
        a->response.map_create = &a->u.create;
        break;
    case VOXELD__V1__REQUEST__METHOD_MAP_DROP:
        voxeld__v1__map_drop_response__init(&a->u.drop);
        a->u.drop.existed = 1;
        a->response.map_drop = &a->u.drop;
        break;
    case VOXELD__V1__REQUEST__METHOD_MAP_LIST:
        voxeld__v1__map_list_response__init(&a->u.list);
        a->info.unavailable = 1;
        a->u.list.maps = a->infos;
        a->u.list.n_maps = 1;
        a->u.list.n_bytes = 1000;
        a->response.map_list = &a->u.list;
        break;
    case VOXELD__V1__REQUEST__METHOD_MAP_GET:
        voxeld__v1__map_get_response__init(&a->u.get);
        a->u.get.map = &a->info;
        a->response.map_get = &a->u.get;
        break;
    case VOXELD__V1__REQUEST__METHOD_MAP_SAVE:
        voxeld__v1__map_save_response__init(&a->u.save);
        a->u.save.file = request->map_save->file;
        a->u.save.digest = UINT64_C(0x8000000000000001);
        a->response.map_save = &a->u.save;
        break;
    default:
        voxeld__v1__map_load_response__init(&a->u.load);
        a->u.load.map = &a->info;
        a->response.map_load = &a->u.load;
        break;
    }
}

nng_msg *peer_answer_map(struct peer *peer, const Voxeld__V1__Request *request)
{
    struct map_answer *a = calloc(1, sizeof *a);
    enum peer_map_flaw flaw = (enum peer_map_flaw)atomic_load(&peer->map_flaw);
    bool drops;
    nng_msg *message;

    if (a == NULL) {
        abort();
    }
    drops = peer_begin(peer, request, &a->response, &a->header);
    a->header.arrays_dropped = drops;
    switch (request->method_case) {
    case VOXELD__V1__REQUEST__METHOD_MAP_INSERT:
        answer_insert(a, request->map_insert, drops, flaw);
        break;
    case VOXELD__V1__REQUEST__METHOD_MAP_FIND:
        answer_find(a, request->map_find, flaw);
        break;
    case VOXELD__V1__REQUEST__METHOD_MAP_EXPORT:
        answer_export(a, request->map_export, flaw);
        break;
    case VOXELD__V1__REQUEST__METHOD_MAP_ERASE:
    case VOXELD__V1__REQUEST__METHOD_MAP_UPDATE:
        answer_change(a, request, drops, flaw);
        break;
    default:
        answer_whole(a, request, flaw);
        break;
    }
    message = peer_pack(&a->response, atomic_load(&peer->aligns));
    free(a);
    return message;
}
