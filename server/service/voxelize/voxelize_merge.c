// SPDX-License-Identifier: Apache-2.0
/* Merges voxels into a map, for example of a whole drive: the voxels' keys are inserted,
 * then counts and sums are added to those that are there. Voxels of several items at the
 * same place are one entry. */
#include "server/service/voxelize/voxelize_merge.h"

#include "proto/base/name.h"
#include "server/instance/instance.h"
#include "server/service/map/map.h"
#include "server/service/service.h"

enum {
    KEY_BYTES = 3 * sizeof(int32_t),
    SCRATCH_BYTES = 128 /* most that a voxel takes of the engine while it is merged */
};

struct vxd_merge {
    struct vxd_named_terms terms;
    struct vxd_map_spec spec; /* that the map must have */
    struct vxd_map *map;      /* held */
    struct vxd_map *made;     /* the same map, where it was made for this request */
    struct vxd_buffer keys_host;
    struct vxd_buffer keys;
    struct vxd_buffer indices;
    struct vxd_buffer is_new;
    struct vxd_buffer is_new_host;
    const uint8_t *is_new_bytes; /* readable after the stage */
    Voxeld__V1__VoxelizeMerged *reply;
    struct vxd_named_commit commit; /* of a durable map */
    struct vxd_map_record record;
};

bool vxd_voxelize_changes(const struct vxd_request *request)
{
    return ((const Voxeld__V1__VoxelizeRequest *)request->input)->merge != NULL;
}

static enum vxd_status check_rules(const struct vxd_voxelize_job *job,
                                   struct vxd_err *err)
{
    if (job->rule != VOXELD__V1__VOXEL_RULE__MINKOWSKI) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "rule",
                        "merging needs MINKOWSKI: coordinates that count from the map's "
                        "origin");
    }
    if (job->args.max_points > 0 || job->args.max_voxels > 0) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT,
                        job->args.max_points > 0 ? "max_points" : "max_voxels",
                        "must be 0 with merge: a map takes all there is");
    }
    return VXD_OK;
}

static void describe(const struct vxd_voxelize_job *job, struct vxd_map_spec *spec)
{
    const Voxeld__V1__Vec3 *size = job->input->size;
    int n_channels = job->args.n_channels;

    memset(spec, 0, sizeof *spec);
    spec->engine.key_dtype = VXD_INT32;
    spec->engine.n_components = 3;
    spec->engine.n_values = n_channels > 0 ? 2 : 1;
    spec->engine.values[0] = (struct vxd_hashmap_array){VXD_UINT64, 1};
    spec->engine.values[1] =
        (struct vxd_hashmap_array){VXD_FLOAT64, (uint32_t)n_channels};
    (void)snprintf(spec->array_names[0], VXD_NAME_BYTES, "count");
    (void)snprintf(spec->array_names[1], VXD_NAME_BYTES, "sum");
    spec->has_lattice = true;
    spec->size_m[0] = size->x;
    spec->size_m[1] = size->y;
    spec->size_m[2] = size->z;
    memcpy(spec->origin_m, job->clouds.origin, sizeof job->clouds.origin);
}

enum vxd_status vxd_merge_check(struct vxd_request *request, struct vxd_err *err)
{
    struct vxd_voxelize_job *job = request->state;
    const Voxeld__V1__VoxelizeMerge *input = job->input->merge;
    struct vxd_merge *merge = vxd_message_array(request->decoder, 1, sizeof *merge, err);
    enum vxd_status status;

    if (merge == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(check_rules(job, err));
    VXD_TRY(vxd_noun_check_name(input->map, "merge.map", err));
    status = vxd_map_read_terms(request, input->map, input->max_bytes, input->ttl_s,
                                &merge->terms, err);
    if (status != VXD_OK) {
        (void)snprintf(err->field, sizeof err->field, "merge.ttl_s");
        goto out;
    }
    describe(job, &merge->spec);
    job->merge = merge;
    job->results[VXD_RESULT_COORDS].selected = true;
    job->results[VXD_RESULT_COUNTS].selected = true;
    job->results[VXD_RESULT_SUM].selected = job->args.n_channels > 0;
    request->lane = VXD_LANE_WRITE;
    request->cost_bytes += (uint64_t)job->args.n_points * SCRATCH_BYTES;
out:
    return status;
}

/* Finds the map or makes a new one, and holds it. */
static enum vxd_status open_map(struct vxd_request *request, struct vxd_queue *queue,
                                struct vxd_err *err)
{
    const struct vxd_voxelize_job *job = request->state;
    struct vxd_merge *merge = job->merge;
    struct vxd_names *maps = request->server->maps;
    struct vxd_map *map = vxd_maps_find(maps, merge->terms.name);
    enum vxd_status status;

    if (map == NULL && !job->input->merge->create) {
        return vxd_fail(err, VXD_NOT_FOUND, "merge.map",
                        "there is no map \"%s\"; say create to have it made",
                        merge->terms.name);
    }
    if (map == NULL) {
        status = vxd_map_new(maps, queue, &merge->terms, &merge->spec, NULL, &merge->made,
                             err);
        merge->map = merge->made;
        return status;
    }
    vxd_named_hold(&map->named);
    merge->map = map;
    status = vxd_named_check_visible(&map->named, err);
    if (status != VXD_OK) {
        return status;
    }
    /* The map's frame_id may be any. */
    memcpy(merge->spec.frame_id, map->spec.frame_id, sizeof map->spec.frame_id);
    if (map->spec.has_lattice && (map->spec.size_m[0] != merge->spec.size_m[0] ||
                                  map->spec.size_m[1] != merge->spec.size_m[1] ||
                                  map->spec.size_m[2] != merge->spec.size_m[2])) {
        return vxd_fail(err, VXD_FAILED_PRECONDITION, "merge.map",
                        "the map \"%s\" has voxels of %g x %g x %g m, and this request "
                        "voxels of %g x %g x %g m",
                        merge->terms.name, map->spec.size_m[0], map->spec.size_m[1],
                        map->spec.size_m[2], merge->spec.size_m[0], merge->spec.size_m[1],
                        merge->spec.size_m[2]);
    }
    if (!vxd_map_spec_equal(&map->spec, &merge->spec)) {
        return vxd_fail(err, VXD_FAILED_PRECONDITION, "merge.map",
                        "the map \"%s\" does not fit: it must have int32 keys of 3, the "
                        "arrays count (uint64) and, with %d features, sum (float64), and "
                        "this request's size and origin as its lattice",
                        merge->terms.name, job->args.n_channels);
    }
    return VXD_OK;
}

static enum vxd_status upload_keys(const struct vxd_voxelize_job *job,
                                   struct vxd_queue *queue, size_t n, const void **out,
                                   struct vxd_err *err)
{
    const int32_t *coords = job->results[VXD_RESULT_COORDS].bytes;
    struct vxd_merge *merge = job->merge;
    int32_t *keys;
    enum vxd_status status =
        vxd_host_alloc(vxd_queue_context(queue), n * KEY_BYTES, &merge->keys_host, err);

    if (status != VXD_OK) {
        return status;
    }
    keys = merge->keys_host.ptr;
    merge->record.keys = keys;
    for (size_t i = 0; i < n; i++) {
        memcpy(keys + 3 * i, coords + 4 * i + 1, KEY_BYTES); /* without the item */
    }
    return vxd_upload(queue, keys, n * KEY_BYTES, &merge->keys, out, err);
}

/* Reserves all memory before anything changes. */
static enum vxd_status take_memory(struct vxd_merge *merge, struct vxd_queue *queue,
                                   size_t n, struct vxd_err *err)
{
    struct vxd_context *context = vxd_queue_context(queue);
    enum vxd_status status;

    VXD_TRY(vxd_device_alloc(queue, n * sizeof(int32_t), &merge->indices, err));
    VXD_TRY(vxd_device_alloc(queue, n, &merge->is_new, err));
    merge->is_new_bytes = merge->is_new.ptr;
    if (vxd_context_backend(context) == VXD_BACKEND_CUDA) {
        VXD_TRY(vxd_host_alloc(context, n, &merge->is_new_host, err));
        merge->is_new_bytes = merge->is_new_host.ptr;
    }
out:
    return status;
}

bool vxd_merge_needs_rows(struct vxd_request *request)
{
    const struct vxd_voxelize_job *job = request->state;
    const struct vxd_map *map =
        job->merge != NULL ? vxd_maps_peek(request->server->maps, job->merge->terms.name)
                           : NULL;

    return map != NULL && map->named.terms.durable;
}

/* The record of a durable map: counts and sums are added, to new entries too. */
static enum vxd_status pack_change(struct vxd_request *request, size_t n,
                                   struct vxd_err *err)
{
    const struct vxd_voxelize_job *job = request->state;
    struct vxd_merge *merge = job->merge;
    struct vxd_map_record *record = &merge->record;

    record->kind = VXD_MAP_RECORD_UPDATE;
    record->n = n;
    record->inserts = true;
    record->combine = VXD_COMBINE_ADD;
    record->rows[0].rows = job->results[VXD_RESULT_COUNTS].bytes;
    record->rows[0].dtype = VXD_UINT32;
    if (merge->spec.engine.n_values > 1) {
        record->rows[1].rows = job->results[VXD_RESULT_SUM].bytes;
        record->rows[1].dtype = VXD_FLOAT32;
    }
    for (int i = 0; i < merge->spec.engine.n_values && n > 0; i++) {
        if (merge->map->named.terms.durable && record->rows[i].rows == NULL) {
            return vxd_fail(err, VXD_UNAVAILABLE, "merge.map",
                            "the map \"%s\" was made durable meanwhile; try again",
                            merge->terms.name);
        }
    }
    return vxd_map_pack_change(request, &merge->commit, merge->map, record, err);
}

static enum vxd_status add_voxels(struct vxd_request *request, struct vxd_queue *queue,
                                  const void *keys, size_t n, struct vxd_err *err)
{
    const struct vxd_voxelize_job *job = request->state;
    struct vxd_merge *merge = job->merge;
    struct vxd_hashmap *hashmap = merge->map->hashmap;
    uint8_t *results = job->result_block.ptr;
    struct vxd_hashmap_insert_args insert = {.keys = keys,
                                             .n = n,
                                             .order = VXD_HASH_FIRST,
                                             .indices = merge->indices.ptr,
                                             .is_new = merge->is_new.ptr};
    const struct vxd_hashmap_update_args updates[2] = {
        {.indices = merge->indices.ptr,
         .n = n,
         .array = 0,
         .rows = results + job->results[VXD_RESULT_COUNTS].offset,
         .dtype = VXD_UINT32,
         .combine = VXD_COMBINE_ADD},
        {.indices = merge->indices.ptr,
         .n = n,
         .array = 1,
         .rows = results + job->results[VXD_RESULT_SUM].offset,
         .dtype = VXD_FLOAT32,
         .combine = VXD_COMBINE_ADD}};
    enum vxd_status status;

    VXD_TRY(vxd_map_prepare(queue, merge->map, keys, n, &insert.max_new, err));
    VXD_TRY(vxd_hashmap_insert(queue, hashmap, &insert, err));
    merge->commit.has_changed = true;
    VXD_TRY(vxd_map_update_arrays(queue, merge->map, updates,
                                  (size_t)merge->spec.engine.n_values, true, err));
    if (merge->is_new_host.n_bytes > 0) {
        status = vxd_queue_copy(queue, merge->is_new_host.ptr, merge->is_new.ptr, n, err);
    }
out:
    return status;
}

enum vxd_status vxd_merge_submit(struct vxd_request *request, struct vxd_queue *queue,
                                 struct vxd_err *err)
{
    const struct vxd_voxelize_job *job = request->state;
    struct vxd_merge *merge = job->merge;
    size_t n = vxd_voxelize_n_voxels(job);
    const void *keys = NULL;
    enum vxd_status status;

    VXD_TRY(open_map(request, queue, err));
    VXD_TRY(vxd_voxelize_reply(request, err));
    merge->reply =
        vxd_message_new(request->decoder, &voxeld__v1__voxelize_merged__descriptor, err);
    if (merge->reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    if (n > 0) {
        VXD_TRY(upload_keys(job, queue, n, &keys, err));
        VXD_TRY(take_memory(merge, queue, n, err));
    }
    VXD_TRY(pack_change(request, n, err));
    if (n > 0) {
        VXD_TRY(add_voxels(request, queue, keys, n, err));
    }
out:
    return status;
}

void vxd_merge_finish(struct vxd_request *request, struct vxd_queue *queue)
{
    const struct vxd_voxelize_job *job = request->state;
    struct vxd_merge *merge = job->merge;
    Voxeld__V1__VoxelizeResponse *reply = (Voxeld__V1__VoxelizeResponse *)request->output;
    size_t n = vxd_voxelize_n_voxels(job);
    size_t n_entries;

    for (size_t i = 0; i < n; i++) {
        merge->reply->n_new += merge->is_new_bytes[i];
    }
    merge->map->n_entries += merge->reply->n_new;
    if (vxd_hashmap_size(queue, merge->map->hashmap, &n_entries, NULL) == VXD_OK) {
        merge->map->n_entries = n_entries;
    }
    merge->reply->n_entries = merge->map->n_entries;
    reply->merged = merge->reply;
    reply->engine_ms = (double)request->engine_ns / 1e6;
    if (merge->made != NULL) {
        vxd_named_publish(&merge->made->named);
    }
    vxd_map_conclude(request, &merge->commit, merge->map, VXD_NAMED_CHANGED);
}

void vxd_merge_release(struct vxd_request *request, struct vxd_queue *queue)
{
    const struct vxd_voxelize_job *job = request->state;
    struct vxd_context *context = vxd_queue_context(queue);
    struct vxd_merge *merge = job->merge;

    vxd_device_free(queue, &merge->keys);
    vxd_device_free(queue, &merge->indices);
    vxd_device_free(queue, &merge->is_new);
    vxd_host_free(context, &merge->keys_host);
    vxd_host_free(context, &merge->is_new_host);
    vxd_named_end_commit(&merge->commit);
    if (merge->map != NULL) {
        vxd_named_account(&merge->map->named);
        vxd_named_drop(&merge->map->named, queue);
    }
}
