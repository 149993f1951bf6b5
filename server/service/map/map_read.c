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
    if (!vxd_size_mul(row_bytes, job->n, &n_bytes) || n_bytes > VXD_MAP_REPLY_BYTES) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "%zu rows of %zu bytes are more than a reply holds (%zu bytes): "
                        "ask for fewer at once",
                        job->n, row_bytes, VXD_MAP_REPLY_BYTES);
    }
    return VXD_OK;
}

/* Queues reading the selected rows, and keys where they have an output, of the numbers. */
static enum vxd_status gather(struct vxd_map_read_job *job, struct vxd_queue *queue,
                              const int32_t *numbers, uint8_t *valid, struct vxd_err *err)
{
    const struct vxd_hashmap_spec *spec = &job->base.map->spec.engine;
    enum vxd_status status = VXD_OK;

    for (int i = 0; i < spec->n_values; i++) {
        if (job->selected[i]) {
            VXD_TRY(vxd_map_reserve_output(&job->base, queue, job->n,
                                           vxd_map_row_bytes(spec, i), &job->rows[i],
                                           err));
            job->values[i] = job->rows[i]->device;
            job->n_selected++;
        }
    }
    if (job->n > 0 && (job->n_selected > 0 || job->keys != NULL || valid != NULL)) {
        VXD_TRY(vxd_hashmap_gather(queue, job->base.map->hashmap, numbers, job->n,
                                   job->keys != NULL ? job->keys->device : NULL,
                                   job->values, valid, err));
    }
out:
    return status;
}

static enum vxd_status new_rows(struct vxd_request *request,
                                Voxeld__V1__MapRows ***values, size_t *n_values,
                                struct vxd_err *err)
{
    const struct vxd_map_read_job *job = request->state;
    const struct vxd_map_spec *spec = &job->base.map->spec;
    enum vxd_status status = VXD_OK;

    *values = vxd_message_pointers(request->decoder, job->n_selected, err);
    if (*values == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (int i = 0; i < spec->engine.n_values; i++) {
        const struct vxd_hashmap_array *array = &spec->engine.values[i];
        Voxeld__V1__MapRows *rows;

        if (!job->selected[i]) {
            continue;
        }
        rows = vxd_message_new(request->decoder, &voxeld__v1__map_rows__descriptor, err);
        if (rows == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
        rows->name = vxd_message_text(request->decoder, spec->array_names[i],
                                      strlen(spec->array_names[i]), err);
        if (rows->name == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
        VXD_TRY(vxd_map_new_tensor(request, array->dtype, job->n,
                                   array->n_elements > 1 ? array->n_elements : 0,
                                   &rows->rows, err));
        vxd_map_show(rows->rows, job->rows[i]);
        (*values)[(*n_values)++] = rows;
    }
out:
    return status;
}

static enum vxd_status show(struct vxd_request *request,
                            const struct vxd_map_output *output, enum vxd_dtype dtype,
                            size_t columns, Voxeld__V1__Tensor **out, struct vxd_err *err)
{
    const struct vxd_map_read_job *job = request->state;
    enum vxd_status status =
        output != NULL ? vxd_map_new_tensor(request, dtype, job->n, columns, out, err)
                       : VXD_OK;

    if (status == VXD_OK && output != NULL) {
        vxd_map_show(*out, output);
    }
    return status;
}

static size_t key_columns(const struct vxd_map *map)
{
    int n = map->spec.engine.n_components;

    return n > 1 ? (size_t)n : 0;
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
    VXD_TRY(vxd_map_check_name(input->name, "name", err));
    if ((input->keys != NULL) == (input->indices != NULL)) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "keys",
                         "either keys or indices are required, not both"));
    }
    VXD_TRY(input->keys != NULL
                ? vxd_map_check_tensor(input->keys, "keys", &job->n, err)
                : vxd_map_check_tensor(input->indices, "indices", &job->n, err));
    if (input->neighbours != 0 && input->neighbours != 6 && input->neighbours != 8 &&
        input->neighbours != 27) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "neighbours",
                         "is %u, it must be 0, 6, 8 or 27", input->neighbours));
    }
    if (input->neighbours != 0 && input->keys == NULL) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "neighbours",
                         "go with keys, not with indices"));
    }
    vxd_maps_estimate(request->server->maps, input->name, &entry_bytes, &n_entries);
    request->cost_bytes = 2 * request->body_bytes +
                          (uint64_t)job->n * (SCRATCH_BYTES + 4 * input->neighbours +
                                              (input->n_values > 0 ? entry_bytes : 0));
out:
    return status;
}

static enum vxd_status find_by_key(struct vxd_request *request, struct vxd_queue *queue,
                                   struct vxd_err *err)
{
    const Voxeld__V1__MapFindRequest *input =
        (const Voxeld__V1__MapFindRequest *)request->input;
    struct vxd_map_read_job *job = request->state;
    const struct vxd_map *map = job->base.map;
    const void *host;
    const void *keys;
    enum vxd_status status;

    VXD_TRY(vxd_map_read_integers(&job->base, queue, input->keys, "keys",
                                  map->spec.engine.key_dtype,
                                  (size_t)map->spec.engine.n_components, &host, err));
    VXD_TRY(vxd_map_upload(&job->base, queue, host,
                           job->n * vxd_map_key_bytes(&map->spec.engine), &keys, err));
    if (job->n > 0) {
        VXD_TRY(vxd_hashmap_find(queue, map->hashmap, keys, job->n, job->indices->device,
                                 job->found->device, err));
    }
    if (input->neighbours != 0) {
        if (map->spec.engine.n_components != 3 && map->spec.engine.n_components != 4) {
            VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "neighbours",
                             "need keys of 3 or 4 components, the map's have %d",
                             map->spec.engine.n_components));
        }
        VXD_TRY(vxd_map_reserve_output(&job->base, queue, job->n,
                                       input->neighbours * sizeof(int32_t),
                                       &job->neighbours, err));
        if (job->n > 0) {
            VXD_TRY(vxd_hashmap_neighbours(queue, map->hashmap, keys, job->n,
                                           (enum vxd_hash_neighbours)input->neighbours,
                                           job->neighbours->device, err));
        }
    }
    status = gather(job, queue, job->indices->device, NULL, err);
out:
    return status;
}

static enum vxd_status find_by_number(struct vxd_request *request,
                                      struct vxd_queue *queue, struct vxd_err *err)
{
    const Voxeld__V1__MapFindRequest *input =
        (const Voxeld__V1__MapFindRequest *)request->input;
    struct vxd_map_read_job *job = request->state;
    const void *host;
    const void *numbers;
    enum vxd_status status;

    VXD_TRY(vxd_map_check_epoch(job->base.map, input->erase_epoch, err));
    VXD_TRY(vxd_map_read_integers(&job->base, queue, input->indices, "indices", VXD_INT32,
                                  1, &host, err));
    VXD_TRY(
        vxd_map_upload(&job->base, queue, host, job->n * sizeof(int32_t), &numbers, err));
    VXD_TRY(vxd_queue_copy(queue, job->indices->device, numbers, job->n * sizeof(int32_t),
                           err));
    status = gather(job, queue, numbers, job->found->device, err);
out:
    return status;
}

enum vxd_status vxd_map_find_submit(struct vxd_request *request, struct vxd_queue *queue,
                                    struct vxd_err *err)
{
    const Voxeld__V1__MapFindRequest *input =
        (const Voxeld__V1__MapFindRequest *)request->input;
    struct vxd_map_read_job *job = request->state;
    const struct vxd_hashmap_spec *spec;
    size_t row_bytes = sizeof(int32_t) * (1 + input->neighbours) + 1;
    enum vxd_status status;

    VXD_TRY(vxd_map_open(request, input->name, err));
    spec = &job->base.map->spec.engine;
    VXD_TRY(vxd_map_choose_arrays(&job->base.map->spec, input->values, input->n_values,
                                  job->selected, err));
    row_bytes += input->return_keys ? vxd_map_key_bytes(spec) : 0;
    VXD_TRY(check_reply(job, row_bytes, err));
    VXD_TRY(vxd_map_reserve_output(&job->base, queue, job->n, sizeof(int32_t),
                                   &job->indices, err));
    VXD_TRY(vxd_map_reserve_output(&job->base, queue, job->n, 1, &job->found, err));
    if (input->return_keys) {
        VXD_TRY(vxd_map_reserve_output(&job->base, queue, job->n, vxd_map_key_bytes(spec),
                                       &job->keys, err));
    }
    VXD_TRY(input->keys != NULL ? find_by_key(request, queue, err)
                                : find_by_number(request, queue, err));
    status = vxd_map_fetch_outputs(&job->base, queue, err);
out:
    return status;
}

/* Numbers without an entry are marked as such in the reply. */
static void hide_missing(struct vxd_map_read_job *job)
{
    /* This memory is ours: the device's own on the CPU, or the host's copy. */
    int32_t *indices = (int32_t *)(uintptr_t)job->indices->bytes;
    const uint8_t *found = job->found->bytes;

    for (size_t i = 0; i < job->n; i++) {
        indices[i] = found[i] != 0 ? indices[i] : VXD_NO_ENTRY;
    }
}

enum vxd_status vxd_map_find_finish(struct vxd_request *request, struct vxd_queue *queue,
                                    struct vxd_err *err)
{
    const Voxeld__V1__MapFindRequest *input =
        (const Voxeld__V1__MapFindRequest *)request->input;
    struct vxd_map_read_job *job = request->state;
    Voxeld__V1__MapFindResponse *reply = vxd_message_new(
        request->decoder, &voxeld__v1__map_find_response__descriptor, err);
    enum vxd_status status;

    (void)queue;
    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    if (input->indices != NULL) {
        hide_missing(job);
    }
    VXD_TRY(show(request, job->indices, VXD_INT32, 0, &reply->indices, err));
    VXD_TRY(show(request, job->found, VXD_UINT8, 0, &reply->found, err));
    VXD_TRY(show(request, job->neighbours, VXD_INT32, input->neighbours,
                 &reply->neighbours, err));
    VXD_TRY(show(request, job->keys, job->base.map->spec.engine.key_dtype,
                 key_columns(job->base.map), &reply->keys, err));
    VXD_TRY(new_rows(request, &reply->values, &reply->n_values, err));
    reply->n_found = vxd_map_count(job->found, job->n);
    reply->erase_epoch = vxd_map_epoch(job->base.map);
    reply->engine_ms = (double)request->engine_ns / 1e6;
    request->output = &reply->base;
    vxd_map_conclude(request, &job->base.commit, job->base.map, VXD_NAMED_READ);
out:
    return status;
}

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
    VXD_TRY(vxd_map_check_name(input->name, "name", err));
    if (input->format != VOXELD__V1__MAP_FORMAT__MAP_TENSORS &&
        input->format != VOXELD__V1__MAP_FORMAT__MAP_PLY) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "format",
                         "is %d; known: MAP_TENSORS, MAP_PLY", (int)input->format));
    }
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
    job->n = (size_t)(input->limit > 0 && input->limit < left ? input->limit : left);
    if (status == VXD_OK) {
        status =
            check_reply(job, sizeof(int32_t) + vxd_map_key_bytes(&map->spec.engine), err);
    }
    return status;
}

enum vxd_status vxd_map_export_submit(struct vxd_request *request,
                                      struct vxd_queue *queue, struct vxd_err *err)
{
    const Voxeld__V1__MapExportRequest *input =
        (const Voxeld__V1__MapExportRequest *)request->input;
    struct vxd_map_read_job *job = request->state;
    struct vxd_map *map;
    size_t n_room;
    void *all;
    void *count;
    int32_t *numbers;
    enum vxd_status status;

    VXD_TRY(vxd_map_open(request, input->name, err));
    VXD_TRY(choose(request, err));
    map = job->base.map;
    n_room = vxd_hashmap_size_bound(map->hashmap);
    VXD_TRY(vxd_map_take_device(&job->base, queue, n_room * sizeof(int32_t), &all, err));
    VXD_TRY(vxd_map_take_device(&job->base, queue, sizeof(uint32_t), &count, err));
    VXD_TRY(vxd_map_reserve_output(&job->base, queue, job->n, sizeof(int32_t),
                                   &job->indices, err));
    VXD_TRY(vxd_map_reserve_output(&job->base, queue, job->n,
                                   vxd_map_key_bytes(&map->spec.engine), &job->keys,
                                   err));
    VXD_TRY(vxd_hashmap_active(queue, map->hashmap, all, n_room, count, err));
    numbers = job->n > 0 ? (int32_t *)all + job->first : NULL;
    VXD_TRY(vxd_queue_copy(queue, job->indices->device, numbers, job->n * sizeof(int32_t),
                           err));
    VXD_TRY(gather(job, queue, numbers, NULL, err));
    status = vxd_map_fetch_outputs(&job->base, queue, err);
out:
    return status;
}

enum vxd_status vxd_map_export_finish(struct vxd_request *request,
                                      struct vxd_queue *queue, struct vxd_err *err)
{
    const Voxeld__V1__MapExportRequest *input =
        (const Voxeld__V1__MapExportRequest *)request->input;
    struct vxd_map_read_job *job = request->state;
    const struct vxd_map *map = job->base.map;
    Voxeld__V1__MapExportResponse *reply = vxd_message_new(
        request->decoder, &voxeld__v1__map_export_response__descriptor, err);
    enum vxd_status status;

    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    if (input->format == VOXELD__V1__MAP_FORMAT__MAP_PLY) {
        VXD_TRY(vxd_map_write_ply(request, queue, reply, err));
    } else {
        VXD_TRY(show(request, job->indices, VXD_INT32, 0, &reply->indices, err));
        VXD_TRY(show(request, job->keys, map->spec.engine.key_dtype, key_columns(map),
                     &reply->keys, err));
        VXD_TRY(new_rows(request, &reply->values, &reply->n_values, err));
    }
    VXD_TRY(vxd_map_new_lattice(request->decoder, &map->spec, &reply->lattice, err));
    reply->n_entries = map->n_entries;
    reply->erase_epoch = vxd_map_epoch(map);
    request->output = &reply->base;
    vxd_map_conclude(request, &job->base.commit, job->base.map, VXD_NAMED_READ);
out:
    return status;
}
