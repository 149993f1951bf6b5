// SPDX-License-Identifier: Apache-2.0
/* Insert, erase, update: what changes a map's entries. */
#include <time.h>

#include "server/instance/instance.h"
#include "server/service/map/map.h"
#include "server/service/service.h"

enum {
    SCRATCH_BYTES = 96, /* most that a key takes of the engine while it works */
    RETRY_TIMES = 200,
    RETRY_MS = 5
};

/* The rows of the arrays that a request gives, by the map's numbers. */
struct rows {
    const void *device[VXD_HASHMAP_MAX_VALUES]; /* NULL = not given */
    enum vxd_dtype dtypes[VXD_HASHMAP_MAX_VALUES];
};

struct write_job {
    struct vxd_map_job base; /* first: request->state is both */
    size_t n;
    struct vxd_column *indices;
    struct vxd_column *mask;   /* is_new, erased, updated */
    struct vxd_column *is_new; /* of an update that inserts */
    struct rows rows;          /* the engine reads it until the queue has run */
    uint64_t n_before;
    struct vxd_map_record record; /* of a durable map: what is given, in host memory */
};

static struct write_job *new_job(struct vxd_request *request, struct vxd_err *err)
{
    struct write_job *job = vxd_message_array(request->decoder, 1, sizeof *job, err);

    request->state = job;
    return job;
}

static void set_cost(struct vxd_request *request, size_t n)
{
    request->cost_bytes = 2 * request->body_bytes + (uint64_t)n * SCRATCH_BYTES;
    request->n_points = 0;
}

static enum vxd_status check_values(Voxeld__V1__MapRows *const *values, size_t n_values,
                                    size_t n, struct vxd_err *err)
{
    if (n_values > VXD_HASHMAP_MAX_VALUES) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "values",
                        "has %zu arrays, at most %d are possible", n_values,
                        VXD_HASHMAP_MAX_VALUES);
    }
    for (size_t i = 0; i < n_values; i++) {
        char field[40];
        size_t n_rows;
        enum vxd_status status;

        (void)snprintf(field, sizeof field, "values[%zu].rows", i);
        status = vxd_map_check_tensor(values[i]->rows, field, &n_rows, err);
        if (status != VXD_OK) {
            return status;
        }
        if (n_rows != n) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                            "has %zu rows, there must be %zu", n_rows, n);
        }
    }
    return VXD_OK;
}

static enum vxd_status upload_keys(struct vxd_request *request, struct vxd_queue *queue,
                                   const Voxeld__V1__Tensor *keys, const void **out,
                                   struct vxd_err *err)
{
    struct write_job *job = request->state;
    const struct vxd_hashmap_spec *spec = &job->base.map->spec.engine;
    const void *host;
    enum vxd_status status;

    VXD_TRY(vxd_map_read_integers(&job->base, queue, keys, "keys", spec->key_dtype,
                                  (size_t)spec->n_components, &host, err));
    job->record.keys = host;
    status = vxd_map_upload(&job->base, queue, host,
                            (size_t)keys->shape[0] * vxd_map_key_bytes(spec), out, err);
out:
    return status;
}

static enum vxd_status upload_rows(struct vxd_request *request, struct vxd_queue *queue,
                                   Voxeld__V1__MapRows *const *values, size_t n_values,
                                   bool widens, struct vxd_err *err)
{
    struct write_job *job = request->state;
    const struct vxd_map_spec *spec = &job->base.map->spec;
    struct rows *out = &job->rows;

    for (size_t i = 0; i < n_values; i++) {
        int array = vxd_map_find_array(spec, values[i]->name);
        enum vxd_status status;
        const void *host;
        size_t row_elements;
        char field[40];

        (void)snprintf(field, sizeof field, "values[%zu].name", i);
        if (array < 0 || out->dtypes[array] != VXD_DTYPE_UNSPECIFIED) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                            array < 0 ? "the map has no array \"%.63s\""
                                      : "\"%.63s\" is given twice",
                            values[i]->name);
        }
        (void)snprintf(field, sizeof field, "values[%zu].rows", i);
        out->dtypes[array] = spec->engine.values[array].dtype;
        row_elements = spec->engine.values[array].n_elements;
        status = vxd_map_read_rows(&job->base, queue, values[i]->rows, field, job->n,
                                   row_elements, widens, &out->dtypes[array], &host, err);
        if (status == VXD_OK) {
            job->record.rows[array].rows = host;
            job->record.rows[array].dtype = out->dtypes[array];
            status = vxd_map_upload(&job->base, queue, host,
                                    job->n * row_elements *
                                        vxd_dtype_bytes(out->dtypes[array]),
                                    &out->device[array], err);
        }
        if (status != VXD_OK) {
            return status;
        }
    }
    return VXD_OK;
}

/* Does everything of an insertion that can fail without changing the map: rows that are
 * not given are zeros. */
static enum vxd_status fill_rows(struct write_job *job, struct vxd_queue *queue,
                                 bool *any, struct vxd_err *err)
{
    const struct vxd_hashmap_spec *spec = &job->base.map->spec.engine;
    struct rows *rows = &job->rows;
    enum vxd_status status = VXD_OK;

    *any = false;
    for (int i = 0; i < spec->n_values; i++) {
        *any = *any || rows->dtypes[i] != VXD_DTYPE_UNSPECIFIED;
    }
    for (int i = 0; i < spec->n_values && *any && job->n > 0; i++) {
        size_t n_bytes = job->n * vxd_map_row_bytes(spec, i);
        void *zeros;

        if (rows->dtypes[i] == VXD_DTYPE_UNSPECIFIED) {
            VXD_TRY(vxd_map_take_device(&job->base, queue, n_bytes, &zeros, err));
            VXD_TRY(vxd_queue_fill(queue, zeros, 0, n_bytes, err));
            rows->device[i] = zeros;
        }
    }
out:
    return status;
}

/* Packs the record of a durable map; nothing else can fail before the map changes. */
static enum vxd_status pack_change(struct vxd_request *request,
                                   enum vxd_map_record_kind kind, struct vxd_err *err)
{
    struct write_job *job = request->state;

    job->record.kind = kind;
    job->record.n = job->n;
    return vxd_map_pack_change(request, &job->base.commit, job->base.map, &job->record,
                               err);
}

/* --- insert ---------------------------------------------------------------------------- */

enum vxd_status vxd_map_insert_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__MapInsertRequest *input =
        (const Voxeld__V1__MapInsertRequest *)request->input;
    struct write_job *job = new_job(request, err);
    enum vxd_status status;

    if (job == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(vxd_noun_check_name(input->name, "name", err));
    VXD_TRY(vxd_map_check_tensor(input->keys, "keys", &job->n, err));
    VXD_TRY(check_values(input->values, input->n_values, job->n, err));
    set_cost(request, job->n);
out:
    return status;
}

enum vxd_status vxd_map_insert_submit(struct vxd_request *request,
                                      struct vxd_queue *queue, struct vxd_err *err)
{
    const Voxeld__V1__MapInsertRequest *input =
        (const Voxeld__V1__MapInsertRequest *)request->input;
    struct write_job *job = request->state;
    struct vxd_hashmap_insert_args args = {.n = job->n, .order = VXD_HASH_FIRST};
    Voxeld__V1__MapInsertResponse *reply = vxd_message_new(
        request->decoder, &voxeld__v1__map_insert_response__descriptor, err);
    bool any;
    enum vxd_status status;

    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(vxd_map_open(request, input->name, err));
    VXD_TRY(upload_keys(request, queue, input->keys, &args.keys, err));
    VXD_TRY(upload_rows(request, queue, input->values, input->n_values, false, err));
    VXD_TRY(fill_rows(job, queue, &any, err));
    VXD_TRY(
        vxd_columns_reserve(&job->base.query.columns, queue, job->n, 1, &job->mask, err));
    args.is_new = job->mask->device;
    if (!input->counts_only) {
        VXD_TRY(vxd_columns_reserve(&job->base.query.columns, queue, job->n,
                                    sizeof(int32_t), &job->indices, err));
        args.indices = job->indices->device;
        VXD_TRY(
            vxd_column_new_tensor(request, VXD_INT32, job->n, 0, &reply->indices, err));
        VXD_TRY(
            vxd_column_new_tensor(request, VXD_UINT8, job->n, 0, &reply->is_new, err));
    }
    args.values = any ? job->rows.device : NULL;
    VXD_TRY(pack_change(request, VXD_MAP_RECORD_INSERT, err));
    if (job->n > 0) {
        VXD_TRY(
            vxd_map_prepare(queue, job->base.map, args.keys, job->n, &args.max_new, err));
        VXD_TRY(vxd_hashmap_insert(queue, job->base.map->hashmap, &args, err));
        job->base.commit.has_changed = true;
    }
    VXD_TRY(vxd_columns_fetch(&job->base.query.columns, queue, err));
    request->output = &reply->base;
out:
    return status;
}

enum vxd_status vxd_map_insert_finish(struct vxd_request *request,
                                      struct vxd_queue *queue, struct vxd_err *err)
{
    struct write_job *job = request->state;
    Voxeld__V1__MapInsertResponse *reply =
        (Voxeld__V1__MapInsertResponse *)request->output;

    (void)err;
    reply->n_new = vxd_column_count(job->mask, job->n);
    job->base.map->n_entries += reply->n_new;
    vxd_map_settle(request, queue);
    reply->n_entries = job->base.map->n_entries;
    reply->erase_epoch = vxd_map_epoch(job->base.map);
    reply->engine_ms = (double)request->engine_ns / 1e6;
    if (job->indices != NULL) {
        vxd_column_show(reply->indices, job->indices);
        vxd_column_show(reply->is_new, job->mask);
    }
    vxd_map_conclude(request, &job->base.commit, job->base.map, VXD_NAMED_CHANGED);
    return VXD_OK;
}

/* An operation that lacks memory once the map has changed waits for it. That memory was
 * counted when the request was admitted, so it is soon free again. */
static enum vxd_status wait_for_memory(struct vxd_queue *queue, struct vxd_err *err)
{
    const struct timespec pause = {.tv_nsec = RETRY_MS * 1000000L};

    (void)nanosleep(&pause, NULL);
    return vxd_queue_wait(queue, err);
}

/* --- erase ----------------------------------------------------------------------------- */

enum vxd_status vxd_map_erase_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__MapEraseRequest *input =
        (const Voxeld__V1__MapEraseRequest *)request->input;
    struct write_job *job = new_job(request, err);
    enum vxd_status status;

    if (job == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(vxd_noun_check_name(input->name, "name", err));
    if (input->all && input->keys != NULL) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "all", "goes without keys"));
    }
    if (!input->all) {
        VXD_TRY(vxd_map_check_tensor(input->keys, "keys", &job->n, err));
    }
    set_cost(request, job->n);
out:
    return status;
}

/* Clearing goes in steps, and nobody may see a map that is half cleared. */
static enum vxd_status clear_surely(struct vxd_queue *queue, struct vxd_hashmap *hashmap,
                                    struct vxd_err *err)
{
    enum vxd_status status = vxd_hashmap_clear(queue, hashmap, err);

    for (int i = 0; i < RETRY_TIMES && status == VXD_RESOURCE_EXHAUSTED; i++) {
        VXD_TRY(wait_for_memory(queue, err));
        status = vxd_hashmap_clear(queue, hashmap, err);
    }
out:
    return status;
}

enum vxd_status vxd_map_erase_submit(struct vxd_request *request, struct vxd_queue *queue,
                                     struct vxd_err *err)
{
    const Voxeld__V1__MapEraseRequest *input =
        (const Voxeld__V1__MapEraseRequest *)request->input;
    struct write_job *job = request->state;
    Voxeld__V1__MapEraseResponse *reply = vxd_message_new(
        request->decoder, &voxeld__v1__map_erase_response__descriptor, err);
    const void *keys;
    enum vxd_status status;

    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(vxd_map_open(request, input->name, err));
    job->n_before = job->base.map->n_entries;
    if (input->all) {
        VXD_TRY(pack_change(request, VXD_MAP_RECORD_CLEAR, err));
        job->base.commit.has_changed = true; /* or half cleared */
        VXD_TRY(clear_surely(queue, job->base.map->hashmap, err));
    } else {
        VXD_TRY(upload_keys(request, queue, input->keys, &keys, err));
        VXD_TRY(vxd_columns_reserve(&job->base.query.columns, queue, job->n, 1,
                                    &job->mask, err));
        if (!input->counts_only) {
            VXD_TRY(vxd_column_new_tensor(request, VXD_UINT8, job->n, 0, &reply->erased,
                                          err));
        }
        VXD_TRY(pack_change(request, VXD_MAP_RECORD_ERASE, err));
        if (job->n > 0) {
            VXD_TRY(vxd_hashmap_erase(queue, job->base.map->hashmap, keys, job->n,
                                      VXD_HASH_FIRST, job->mask->device, err));
            job->base.commit.has_changed = true;
        }
        VXD_TRY(vxd_columns_fetch(&job->base.query.columns, queue, err));
    }
    request->output = &reply->base;
out:
    return status;
}

enum vxd_status vxd_map_erase_finish(struct vxd_request *request, struct vxd_queue *queue,
                                     struct vxd_err *err)
{
    struct write_job *job = request->state;
    Voxeld__V1__MapEraseResponse *reply = (Voxeld__V1__MapEraseResponse *)request->output;

    (void)err;
    reply->n_erased =
        job->mask != NULL ? vxd_column_count(job->mask, job->n) : job->n_before;
    job->base.map->n_entries = job->n_before - reply->n_erased;
    vxd_map_settle(request, queue);
    reply->n_entries = job->base.map->n_entries;
    reply->erase_epoch = vxd_map_epoch(job->base.map);
    reply->engine_ms = (double)request->engine_ns / 1e6;
    if (reply->erased != NULL) {
        vxd_column_show(reply->erased, job->mask);
    }
    vxd_map_conclude(request, &job->base.commit, job->base.map, VXD_NAMED_CHANGED);
    return VXD_OK;
}

/* --- update ---------------------------------------------------------------------------- */

enum vxd_status vxd_map_update_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__MapUpdateRequest *input =
        (const Voxeld__V1__MapUpdateRequest *)request->input;
    struct write_job *job = new_job(request, err);
    enum vxd_status status;

    if (job == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(vxd_noun_check_name(input->name, "name", err));
    if ((input->keys != NULL) == (input->indices != NULL)) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "keys",
                         "either keys or indices are required, not both"));
    }
    if (input->indices != NULL && input->insert_missing) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "insert_missing",
                         "goes with keys, not with indices"));
    }
    VXD_TRY(input->keys != NULL
                ? vxd_map_check_tensor(input->keys, "keys", &job->n, err)
                : vxd_map_check_tensor(input->indices, "indices", &job->n, err));
    if (input->n_values == 0) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "values",
                         "at least one array is required"));
    }
    VXD_TRY(check_values(input->values, input->n_values, job->n, err));
    set_cost(request, job->n);
out:
    return status;
}

/* Once the map has changed, the rest must be done, too. */
static enum vxd_status update_surely(struct vxd_queue *queue, struct vxd_hashmap *hashmap,
                                     const struct vxd_hashmap_update_args *args,
                                     bool has_changed, struct vxd_err *err)
{
    enum vxd_status status = vxd_hashmap_update(queue, hashmap, args, err);

    for (int i = 0; i < RETRY_TIMES && has_changed && status == VXD_RESOURCE_EXHAUSTED;
         i++) {
        VXD_TRY(wait_for_memory(queue, err));
        status = vxd_hashmap_update(queue, hashmap, args, err);
    }
out:
    return status;
}

enum vxd_status vxd_map_update_arrays(struct vxd_queue *queue, struct vxd_map *map,
                                      const struct vxd_hashmap_update_args *args,
                                      size_t n_args, bool has_changed,
                                      struct vxd_err *err)
{
    for (size_t i = 0; i < n_args; i++) {
        enum vxd_status status =
            update_surely(queue, map->hashmap, &args[i], has_changed || i > 0, err);

        if (status != VXD_OK) {
            return status;
        }
    }
    return VXD_OK;
}

/* Finds the numbers of the entries to change, on the device; the map may get new entries
 * here. */
static enum vxd_status find_entries(struct vxd_request *request, struct vxd_queue *queue,
                                    const void *keys, struct vxd_err *err)
{
    const Voxeld__V1__MapUpdateRequest *input =
        (const Voxeld__V1__MapUpdateRequest *)request->input;
    struct write_job *job = request->state;
    struct vxd_hashmap *hashmap = job->base.map->hashmap;
    struct vxd_hashmap_insert_args args = {.keys = keys,
                                           .n = job->n,
                                           .order = VXD_HASH_FIRST,
                                           .indices = job->indices->device};
    enum vxd_status status;

    if (!input->insert_missing) {
        return vxd_hashmap_find(queue, hashmap, keys, job->n, job->indices->device, NULL,
                                err);
    }
    args.is_new = job->is_new->device;
    VXD_TRY(vxd_map_prepare(queue, job->base.map, keys, job->n, &args.max_new, err));
    VXD_TRY(vxd_hashmap_insert(queue, hashmap, &args, err));
    job->base.commit.has_changed = true;
out:
    return status;
}

/* Where the numbers are: found by key, or given. */
static enum vxd_status take_numbers(struct vxd_request *request, struct vxd_queue *queue,
                                    const void **keys, const int32_t **numbers,
                                    struct vxd_err *err)
{
    const Voxeld__V1__MapUpdateRequest *input =
        (const Voxeld__V1__MapUpdateRequest *)request->input;
    struct write_job *job = request->state;
    const void *host;
    const void *device;
    enum vxd_status status;

    if (input->keys != NULL) {
        VXD_TRY(upload_keys(request, queue, input->keys, keys, err));
        VXD_TRY(vxd_columns_reserve(&job->base.query.columns, queue, job->n,
                                    sizeof(int32_t), &job->indices, err));
        if (input->insert_missing) {
            VXD_TRY(vxd_columns_reserve(&job->base.query.columns, queue, job->n, 1,
                                        &job->is_new, err));
        }
        *numbers = job->indices->device;
        return VXD_OK;
    }
    VXD_TRY(vxd_map_check_epoch(job->base.map, input->erase_epoch, err));
    VXD_TRY(vxd_map_read_integers(&job->base, queue, input->indices, "indices", VXD_INT32,
                                  1, &host, err));
    job->record.numbers = host;
    VXD_TRY(
        vxd_map_upload(&job->base, queue, host, job->n * sizeof(int32_t), &device, err));
    *numbers = device;
out:
    return status;
}

enum vxd_status vxd_map_update_submit(struct vxd_request *request,
                                      struct vxd_queue *queue, struct vxd_err *err)
{
    const Voxeld__V1__MapUpdateRequest *input =
        (const Voxeld__V1__MapUpdateRequest *)request->input;
    struct write_job *job = request->state;
    struct vxd_hashmap_update_args args[VXD_HASHMAP_MAX_VALUES];
    Voxeld__V1__MapUpdateResponse *reply = vxd_message_new(
        request->decoder, &voxeld__v1__map_update_response__descriptor, err);
    const int32_t *numbers = NULL;
    const void *keys = NULL;
    const struct rows *rows = &job->rows;
    size_t n_args = 0;
    enum vxd_status status;

    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(vxd_map_open(request, input->name, err));
    VXD_TRY(take_numbers(request, queue, &keys, &numbers, err));
    VXD_TRY(upload_rows(request, queue, input->values, input->n_values, true, err));
    VXD_TRY(
        vxd_columns_reserve(&job->base.query.columns, queue, job->n, 1, &job->mask, err));
    if (!input->counts_only) {
        VXD_TRY(
            vxd_column_new_tensor(request, VXD_UINT8, job->n, 0, &reply->updated, err));
    }
    for (int i = 0; i < job->base.map->spec.engine.n_values && job->n > 0; i++) {
        if (rows->dtypes[i] != VXD_DTYPE_UNSPECIFIED) {
            args[n_args++] = (struct vxd_hashmap_update_args){
                .indices = numbers,
                .n = job->n,
                .array = i,
                .rows = rows->device[i],
                .dtype = rows->dtypes[i],
                .combine = (enum vxd_hash_combine)input->combine,
                .updated = job->mask->device};
        }
    }
    job->record.inserts = input->insert_missing;
    job->record.combine = (enum vxd_hash_combine)input->combine;
    VXD_TRY(pack_change(request, VXD_MAP_RECORD_UPDATE, err));
    if (job->n > 0 && keys != NULL) {
        VXD_TRY(find_entries(request, queue, keys, err));
    }
    /* A failure leaves the rows of a single array as they were. */
    job->base.commit.has_changed = job->base.commit.has_changed || n_args > 1;
    VXD_TRY(vxd_map_update_arrays(queue, job->base.map, args, n_args,
                                  input->insert_missing, err));
    job->base.commit.has_changed = true;
    VXD_TRY(vxd_columns_fetch(&job->base.query.columns, queue, err));
    request->output = &reply->base;
out:
    return status;
}

enum vxd_status vxd_map_update_finish(struct vxd_request *request,
                                      struct vxd_queue *queue, struct vxd_err *err)
{
    const Voxeld__V1__MapUpdateRequest *input =
        (const Voxeld__V1__MapUpdateRequest *)request->input;
    struct write_job *job = request->state;
    Voxeld__V1__MapUpdateResponse *reply =
        (Voxeld__V1__MapUpdateResponse *)request->output;

    (void)err;
    reply->n_updated = vxd_column_count(job->mask, job->n);
    if (input->insert_missing) {
        reply->n_new = vxd_column_count(job->is_new, job->n);
        job->base.map->n_entries += reply->n_new;
    }
    vxd_map_settle(request, queue);
    reply->n_entries = job->base.map->n_entries;
    reply->erase_epoch = vxd_map_epoch(job->base.map);
    reply->engine_ms = (double)request->engine_ns / 1e6;
    if (reply->updated != NULL) {
        vxd_column_show(reply->updated, job->mask);
    }
    vxd_map_conclude(request, &job->base.commit, job->base.map, VXD_NAMED_CHANGED);
    return VXD_OK;
}
