// SPDX-License-Identifier: Apache-2.0
/* Find and export: entries by key, by number, or all. */
#include "server/instance/instance.h"
#include "server/service/map/map.h"
#include "server/service/service.h"

enum {
    SCRATCH_BYTES = 32 /* most that a key takes of the engine while it is looked up */
};

static struct vxd_map_read_job *new_job(struct vxd_request *request, struct vxd_err *err)
{
    struct vxd_map_read_job *job =
        vxd_message_array(request->decoder, 1, sizeof *job, err);

    request->state = job;
    return job;
}

/* A reply whose arrays would not fit into a message is refused before it is made. */
static enum vxd_status check_reply(const struct vxd_map_read_job *job, size_t row_bytes,
                                   struct vxd_err *err)
{
    size_t n_bytes;

    for (int i = 0; i < job->base.map->spec.engine.n_values; i++) {
        row_bytes +=
            job->selected[i] ? vxd_map_row_bytes(&job->base.map->spec.engine, i) : 0;
    }
    if (!vxd_size_mul(row_bytes, job->base.query.n, &n_bytes) ||
        n_bytes > VXD_MAP_REPLY_BYTES) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "%zu rows of %zu bytes are more than a reply holds (%zu bytes): "
                        "ask for fewer at once",
                        job->base.query.n, row_bytes, VXD_MAP_REPLY_BYTES);
    }
    return VXD_OK;
}

/* Queues reading the selected rows, and keys where they have an output, of the numbers. */
static enum vxd_status gather(struct vxd_map_read_job *job, struct vxd_queue *queue,
                              const int32_t *numbers, uint8_t *valid, struct vxd_err *err)
{
    if (job->n_selected == 0 && job->keys == NULL && valid == NULL) {
        return VXD_OK;
    }
    return vxd_hashmap_gather(queue, job->base.map->hashmap, numbers, job->base.query.n,
                              job->keys != NULL ? job->keys->device : NULL, job->values,
                              valid, err);
}

/* Reserves the selected arrays, and a message of each. A file is made of them instead of tensors. */
static enum vxd_status reserve_rows(struct vxd_request *request, struct vxd_queue *queue,
                                    bool is_shown, Voxeld__V1__MapRows ***values,
                                    size_t *n_values, struct vxd_err *err)
{
    struct vxd_map_read_job *job = request->state;
    const struct vxd_map_spec *spec = &job->base.map->spec;
    enum vxd_status status = VXD_OK;

    if (is_shown) {
        *values = vxd_message_pointers(request->decoder, VXD_HASHMAP_MAX_VALUES, err);
        if (*values == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
    }
    for (int i = 0; i < spec->engine.n_values; i++) {
        const struct vxd_hashmap_array *array = &spec->engine.values[i];
        Voxeld__V1__MapRows *rows = NULL;

        if (!job->selected[i]) {
            continue;
        }
        if (is_shown) {
            rows =
                vxd_message_new(request->decoder, &voxeld__v1__map_rows__descriptor, err);
            if (rows == NULL) {
                return VXD_RESOURCE_EXHAUSTED;
            }
            rows->name = vxd_message_text(request->decoder, spec->array_names[i],
                                          strlen(spec->array_names[i]), err);
            if (rows->name == NULL) {
                return VXD_RESOURCE_EXHAUSTED;
            }
            (*values)[(*n_values)++] = rows;
        }
        VXD_TRY(vxd_query_reserve(request, queue, array->dtype,
                                  array->n_elements > 1 ? array->n_elements : 0,
                                  rows != NULL ? &rows->rows : NULL, &job->rows[i], err));
        job->values[i] = job->rows[i]->device;
        job->n_selected++;
    }
out:
    return status;
}

static size_t key_columns(const struct vxd_map *map)
{
    int n = map->spec.engine.n_components;

    return n > 1 ? (size_t)n : 0;
}

static enum vxd_status reserve_keys(struct vxd_request *request, struct vxd_queue *queue,
                                    Voxeld__V1__Tensor **tensor, struct vxd_err *err)
{
    struct vxd_map_read_job *job = request->state;

    return vxd_query_reserve(request, queue, job->base.map->spec.engine.key_dtype,
                             key_columns(job->base.map), tensor, &job->keys, err);
}

/* --- find ------------------------------------------------------------------------------ */

enum vxd_status vxd_map_find_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__MapFindRequest *input =
        (const Voxeld__V1__MapFindRequest *)request->input;
    struct vxd_map_read_job *job = new_job(request, err);
    uint64_t n_entries;
    size_t entry_bytes;
    enum vxd_status status;

    if (job == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(vxd_noun_check_name(input->name, "name", err));
    if ((input->keys != NULL) == (input->indices != NULL)) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "keys",
                         "either keys or indices are required, not both"));
    }
    VXD_TRY(
        input->keys != NULL
            ? vxd_map_check_tensor(input->keys, "keys", &job->base.query.n, err)
            : vxd_map_check_tensor(input->indices, "indices", &job->base.query.n, err));
    if (input->neighbours != 0 && input->keys == NULL) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "neighbours",
                         "go with keys, not with indices"));
    }
    vxd_maps_estimate(request->server->maps, input->name, &entry_bytes, &n_entries);
    request->cost_bytes =
        2 * request->body_bytes +
        (uint64_t)job->base.query.n * (SCRATCH_BYTES + 4 * input->neighbours +
                                       (input->n_values > 0 ? entry_bytes : 0));
out:
    return status;
}

/* Uploads the keys or the numbers that are asked for. */
static enum vxd_status upload_rows(struct vxd_request *request, struct vxd_queue *queue,
                                   struct vxd_err *err)
{
    const Voxeld__V1__MapFindRequest *input =
        (const Voxeld__V1__MapFindRequest *)request->input;
    struct vxd_map_read_job *job = request->state;
    const struct vxd_hashmap_spec *spec = &job->base.map->spec.engine;
    bool has_keys = input->keys != NULL;
    size_t row_bytes = has_keys ? vxd_map_key_bytes(spec) : sizeof(int32_t);
    const void *host;
    enum vxd_status status;

    if (!has_keys) {
        VXD_TRY(vxd_map_check_epoch(job->base.map, input->erase_epoch, err));
    }
    VXD_TRY(has_keys ? vxd_map_read_integers(&job->base, queue, input->keys, "keys",
                                             spec->key_dtype, (size_t)spec->n_components,
                                             &host, err)
                     : vxd_map_read_integers(&job->base, queue, input->indices, "indices",
                                             VXD_INT32, 1, &host, err));
    VXD_TRY(vxd_map_upload(&job->base, queue, host, job->base.query.n * row_bytes,
                           &job->asked, err));
    if (input->neighbours != 0 && spec->n_components != 3 && spec->n_components != 4) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "neighbours",
                         "need keys of 3 or 4 components, the map's have %d",
                         spec->n_components));
    }
out:
    return status;
}

static enum vxd_status begin_find(struct vxd_request *request, struct vxd_queue *queue,
                                  struct vxd_err *err)
{
    const Voxeld__V1__MapFindRequest *input =
        (const Voxeld__V1__MapFindRequest *)request->input;
    struct vxd_map_read_job *job = request->state;
    Voxeld__V1__MapFindResponse *reply =
        (Voxeld__V1__MapFindResponse *)job->base.query.reply;
    size_t row_bytes = sizeof(int32_t) * (1 + input->neighbours) + 1;
    enum vxd_status status;

    VXD_TRY(vxd_map_open(request, input->name, err));
    VXD_TRY(vxd_map_choose_arrays(&job->base.map->spec, input->values, input->n_values,
                                  job->selected, err));
    row_bytes += input->return_keys ? vxd_map_key_bytes(&job->base.map->spec.engine) : 0;
    VXD_TRY(check_reply(job, row_bytes, err));
    VXD_TRY(vxd_query_reserve(request, queue, VXD_INT32, 0, &reply->indices,
                              &job->indices, err));
    VXD_TRY(
        vxd_query_reserve(request, queue, VXD_UINT8, 0, &reply->found, &job->found, err));
    if (input->return_keys) {
        VXD_TRY(reserve_keys(request, queue, &reply->keys, err));
    }
    VXD_TRY(upload_rows(request, queue, err));
    if (input->neighbours != 0) {
        VXD_TRY(vxd_query_reserve(request, queue, VXD_INT32, input->neighbours,
                                  &reply->neighbours, &job->neighbours, err));
    }
    status = reserve_rows(request, queue, true, &reply->values, &reply->n_values, err);
out:
    return status;
}

/* Entries by their keys, or by their numbers. */
static enum vxd_status run_find(struct vxd_request *request, struct vxd_queue *queue,
                                size_t first, size_t n, struct vxd_err *err)
{
    const Voxeld__V1__MapFindRequest *input =
        (const Voxeld__V1__MapFindRequest *)request->input;
    struct vxd_map_read_job *job = request->state;
    struct vxd_hashmap *hashmap = job->base.map->hashmap;
    enum vxd_status status;

    (void)first; /* all rows are of one stage */
    if (input->keys == NULL) {
        VXD_TRY(vxd_queue_copy(queue, job->indices->device, job->asked,
                               n * sizeof(int32_t), err));
        return gather(job, queue, job->asked, job->found->device, err);
    }
    VXD_TRY(vxd_hashmap_find(queue, hashmap, job->asked, n, job->indices->device,
                             job->found->device, err));
    if (job->neighbours != NULL) {
        VXD_TRY(vxd_hashmap_neighbours(queue, hashmap, job->asked, n,
                                       (enum vxd_hash_neighbours)input->neighbours,
                                       job->neighbours->device, err));
    }
    status = gather(job, queue, job->indices->device, NULL, err);
out:
    return status;
}

static enum vxd_status end_find(struct vxd_request *request, struct vxd_queue *queue,
                                struct vxd_err *err)
{
    const Voxeld__V1__MapFindRequest *input =
        (const Voxeld__V1__MapFindRequest *)request->input;
    struct vxd_map_read_job *job = request->state;
    Voxeld__V1__MapFindResponse *reply =
        (Voxeld__V1__MapFindResponse *)job->base.query.reply;
    int32_t *indices = job->indices->bytes;
    const uint8_t *found = job->found->bytes;

    (void)queue;
    (void)err;
    /* Numbers without an entry are marked as such. */
    for (size_t i = 0; input->indices != NULL && i < job->base.query.n; i++) {
        indices[i] = found[i] != 0 ? indices[i] : VXD_NO_ENTRY;
    }
    reply->n_found = vxd_column_count(job->found, job->base.query.n);
    reply->erase_epoch = vxd_map_epoch(job->base.map);
    reply->engine_ms = (double)request->engine_ns / 1e6;
    vxd_map_conclude(request, &job->base.commit, job->base.map, VXD_NAMED_READ);
    return VXD_OK;
}

const struct vxd_query_calls vxd_map_find_query = {
    .begin = begin_find, .run = run_find, .end = end_find};

/* --- export ---------------------------------------------------------------------------- */

enum vxd_status vxd_map_export_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__MapExportRequest *input =
        (const Voxeld__V1__MapExportRequest *)request->input;
    struct vxd_map_read_job *job = new_job(request, err);
    uint64_t n_entries;
    size_t entry_bytes;
    enum vxd_status status;

    if (job == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(vxd_noun_check_name(input->name, "name", err));
    if (input->keys_only && input->n_values > 0) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "keys_only", "goes without values"));
    }
    vxd_maps_estimate(request->server->maps, input->name, &entry_bytes, &n_entries);
    if (input->limit > 0 && input->limit < n_entries) {
        n_entries = input->limit;
    }
    request->cost_bytes = n_entries * (entry_bytes + SCRATCH_BYTES);
out:
    return status;
}

/* Chooses entries and arrays. */
static enum vxd_status choose(struct vxd_request *request, struct vxd_err *err)
{
    static char all[] = "*";
    char *const every[] = {all};
    const Voxeld__V1__MapExportRequest *input =
        (const Voxeld__V1__MapExportRequest *)request->input;
    struct vxd_map_read_job *job = request->state;
    const struct vxd_map *map = job->base.map;
    uint64_t left;
    enum vxd_status status = VXD_OK;

    if (input->format == VOXELD__V1__MAP_FORMAT__MAP_PLY &&
        map->spec.engine.n_components != 3) {
        return vxd_fail(err, VXD_FAILED_PRECONDITION, "format",
                        "a PLY file needs keys of 3 components, the map's have %d",
                        map->spec.engine.n_components);
    }
    if (!input->keys_only) {
        status = input->n_values > 0
                     ? vxd_map_choose_arrays(&map->spec, input->values, input->n_values,
                                             job->selected, err)
                     : vxd_map_choose_arrays(&map->spec, every, 1, job->selected, err);
    }
    job->first = (size_t)(input->first < map->n_entries ? input->first : map->n_entries);
    left = map->n_entries - job->first;
    job->base.query.n =
        (size_t)(input->limit > 0 && input->limit < left ? input->limit : left);
    if (status == VXD_OK) {
        status =
            check_reply(job, sizeof(int32_t) + vxd_map_key_bytes(&map->spec.engine), err);
    }
    return status;
}

static bool is_ply(const struct vxd_request *request)
{
    return ((const Voxeld__V1__MapExportRequest *)request->input)->format ==
           VOXELD__V1__MAP_FORMAT__MAP_PLY;
}

static enum vxd_status begin_export(struct vxd_request *request, struct vxd_queue *queue,
                                    struct vxd_err *err)
{
    const Voxeld__V1__MapExportRequest *input =
        (const Voxeld__V1__MapExportRequest *)request->input;
    struct vxd_map_read_job *job = request->state;
    Voxeld__V1__MapExportResponse *reply =
        (Voxeld__V1__MapExportResponse *)job->base.query.reply;
    bool is_shown = !is_ply(request);
    size_t n_room;
    void *all;
    void *count;
    enum vxd_status status;

    VXD_TRY(vxd_map_open(request, input->name, err));
    VXD_TRY(choose(request, err));
    n_room = vxd_hashmap_size_bound(job->base.map->hashmap);
    VXD_TRY(vxd_map_take_device(&job->base, queue, n_room * sizeof(int32_t), &all, err));
    VXD_TRY(vxd_map_take_device(&job->base, queue, sizeof(uint32_t), &count, err));
    VXD_TRY(vxd_query_reserve(request, queue, VXD_INT32, 0,
                              is_shown ? &reply->indices : NULL, &job->indices, err));
    VXD_TRY(reserve_keys(request, queue, is_shown ? &reply->keys : NULL, err));
    VXD_TRY(
        reserve_rows(request, queue, is_shown, &reply->values, &reply->n_values, err));
    VXD_TRY(vxd_hashmap_active(queue, job->base.map->hashmap, all, n_room, count, err));
    job->asked = all;
out:
    return status;
}

static enum vxd_status run_export(struct vxd_request *request, struct vxd_queue *queue,
                                  size_t first, size_t n, struct vxd_err *err)
{
    struct vxd_map_read_job *job = request->state;
    const int32_t *numbers = (const int32_t *)job->asked + job->first;
    enum vxd_status status;

    (void)first; /* all rows are of one stage */
    VXD_TRY(
        vxd_queue_copy(queue, job->indices->device, numbers, n * sizeof(int32_t), err));
    status = gather(job, queue, numbers, NULL, err);
out:
    return status;
}

static enum vxd_status end_export(struct vxd_request *request, struct vxd_queue *queue,
                                  struct vxd_err *err)
{
    struct vxd_map_read_job *job = request->state;
    const struct vxd_map *map = job->base.map;
    Voxeld__V1__MapExportResponse *reply =
        (Voxeld__V1__MapExportResponse *)job->base.query.reply;
    enum vxd_status status = VXD_OK;

    if (is_ply(request)) {
        VXD_TRY(vxd_map_write_ply(request, queue, reply, err));
    }
    VXD_TRY(vxd_map_new_lattice(request->decoder, &map->spec, &reply->lattice, err));
    reply->n_entries = map->n_entries;
    reply->erase_epoch = vxd_map_epoch(map);
    vxd_map_conclude(request, &job->base.commit, job->base.map, VXD_NAMED_READ);
out:
    return status;
}

const struct vxd_query_calls vxd_map_export_query = {
    .begin = begin_export, .run = run_export, .end = end_export};
