// SPDX-License-Identifier: Apache-2.0
/* Applies records to durable maps. The same calls of the engine in the same order give the same map,
 * numbers and epochs included, on either backend. */
#include "server/durable/record/record.h"
#include "server/registry/maps/maps_internal.h"

/* --- one record --------------------------------------------------------------------------- */

/* A record's arrays on the device. */
struct arrays {
    struct vxd_queue *queue;
    struct vxd_buffer buffers[VXD_HASHMAP_MAX_VALUES + 3];
    size_t n;
};

static enum vxd_status upload(struct arrays *arrays, const void *host, size_t n_bytes,
                              const void **out, struct vxd_err *err)
{
    return vxd_upload(arrays->queue, host, n_bytes, &arrays->buffers[arrays->n++], out,
                      err);
}

static enum vxd_status take(struct arrays *arrays, size_t n_bytes, void **out,
                            struct vxd_err *err)
{
    struct vxd_buffer *buffer = &arrays->buffers[arrays->n++];
    enum vxd_status status = vxd_device_alloc(arrays->queue, n_bytes, buffer, err);

    *out = buffer->ptr;
    return status;
}

static bool may_widen(enum vxd_dtype from, enum vxd_dtype to)
{
    return (from == VXD_UINT32 && to == VXD_UINT64) ||
           (from == VXD_FLOAT32 && to == VXD_FLOAT64);
}

/* Checks that the record can be one of this map. */
static enum vxd_status check(const struct vxd_map_record *record,
                             const struct vxd_hashmap_spec *spec, struct vxd_err *err)
{
    bool fits = record->keys == NULL || (record->key_dtype == spec->key_dtype &&
                                         record->n_components == spec->n_components);

    for (int i = 0; i < VXD_HASHMAP_MAX_VALUES; i++) {
        const struct vxd_map_record_rows *rows = &record->rows[i];
        const struct vxd_hashmap_array *array = &spec->values[i];

        if (rows->rows != NULL) {
            fits =
                fits && i < spec->n_values && rows->n_elements == array->n_elements &&
                (rows->dtype == array->dtype || (record->kind == VXD_MAP_RECORD_UPDATE &&
                                                 may_widen(rows->dtype, array->dtype)));
        }
    }
    return fits ? VXD_OK
                : vxd_fail(err, VXD_DATA_LOSS, NULL,
                           "a record is of a map with other keys or arrays");
}

static enum vxd_status insert(struct arrays *arrays, struct vxd_hashmap *hashmap,
                              const struct vxd_map_record *record,
                              struct vxd_hashmap_insert_args *args, struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(upload(arrays, record->keys,
                   record->n * vxd_map_key_bytes(vxd_hashmap_get_spec(hashmap)),
                   &args->keys, err));
    VXD_TRY(vxd_hashmap_prepare(arrays->queue, hashmap, args->keys, record->n,
                                &args->max_new, err));
    status = vxd_hashmap_insert(arrays->queue, hashmap, args, err);
out:
    return status;
}

/* Inserts rows; arrays that the record does not have become zeros. */
static enum vxd_status insert_rows(struct arrays *arrays, struct vxd_hashmap *hashmap,
                                   const struct vxd_map_record *record,
                                   struct vxd_err *err)
{
    const struct vxd_hashmap_spec *spec = vxd_hashmap_get_spec(hashmap);
    const void *values[VXD_HASHMAP_MAX_VALUES] = {NULL};
    struct vxd_hashmap_insert_args args = {.n = record->n, .order = VXD_HASH_FIRST};
    bool any = false;
    enum vxd_status status = VXD_OK;

    for (int i = 0; i < spec->n_values; i++) {
        any = any || record->rows[i].rows != NULL;
    }
    for (int i = 0; i < spec->n_values && any; i++) {
        size_t n_bytes = record->n * vxd_map_row_bytes(spec, i);
        void *zeros;

        if (record->rows[i].rows != NULL) {
            VXD_TRY(upload(arrays, record->rows[i].rows, n_bytes, &values[i], err));
        } else {
            VXD_TRY(take(arrays, n_bytes, &zeros, err));
            VXD_TRY(vxd_queue_fill(arrays->queue, zeros, 0, n_bytes, err));
            values[i] = zeros;
        }
    }
    args.values = any ? values : NULL;
    VXD_TRY(insert(arrays, hashmap, record, &args, err));
    status = vxd_queue_wait(arrays->queue, err); /* the queue reads `values` until then */
out:
    return status;
}

/* Finds the numbers of the entries that get the rows: the record has them, or they are
 * looked up, or the entries are inserted. */
static enum vxd_status find_numbers(struct arrays *arrays, struct vxd_hashmap *hashmap,
                                    const struct vxd_map_record *record,
                                    const int32_t **out, struct vxd_err *err)
{
    struct vxd_hashmap_insert_args args = {.n = record->n, .order = VXD_HASH_FIRST};
    const void *at;
    void *numbers;
    enum vxd_status status;

    if (record->keys == NULL) {
        status = upload(arrays, record->numbers, record->n * sizeof(int32_t), &at, err);
        *out = at;
        return status;
    }
    VXD_TRY(take(arrays, record->n * sizeof(int32_t), &numbers, err));
    *out = numbers;
    if (record->inserts) {
        args.indices = numbers;
        return insert(arrays, hashmap, record, &args, err);
    }
    VXD_TRY(upload(arrays, record->keys,
                   record->n * vxd_map_key_bytes(vxd_hashmap_get_spec(hashmap)), &at,
                   err));
    status = vxd_hashmap_find(arrays->queue, hashmap, at, record->n, numbers, NULL, err);
out:
    return status;
}

static enum vxd_status update(struct arrays *arrays, struct vxd_hashmap *hashmap,
                              const struct vxd_map_record *record, struct vxd_err *err)
{
    const int32_t *numbers = NULL;
    enum vxd_status status;

    VXD_TRY(find_numbers(arrays, hashmap, record, &numbers, err));
    for (int i = 0; i < VXD_HASHMAP_MAX_VALUES; i++) {
        const struct vxd_map_record_rows *rows = &record->rows[i];
        struct vxd_hashmap_update_args args = {.indices = numbers,
                                               .n = record->n,
                                               .array = i,
                                               .dtype = rows->dtype,
                                               .combine = record->combine};

        if (rows->rows != NULL) {
            VXD_TRY(upload(arrays, rows->rows,
                           record->n * rows->n_elements * vxd_dtype_bytes(rows->dtype),
                           &args.rows, err));
            VXD_TRY(vxd_hashmap_update(arrays->queue, hashmap, &args, err));
        }
    }
out:
    return status;
}

static enum vxd_status erase(struct arrays *arrays, struct vxd_hashmap *hashmap,
                             const struct vxd_map_record *record, struct vxd_err *err)
{
    const void *keys;
    void *erased;
    enum vxd_status status;

    VXD_TRY(upload(arrays, record->keys,
                   record->n * vxd_map_key_bytes(vxd_hashmap_get_spec(hashmap)), &keys,
                   err));
    VXD_TRY(take(arrays, record->n, &erased, err));
    status = vxd_hashmap_erase(arrays->queue, hashmap, keys, record->n, VXD_HASH_FIRST,
                               erased, err);
out:
    return status;
}

enum vxd_status vxd_map_apply(struct vxd_queue *queue, struct vxd_hashmap *hashmap,
                              const struct vxd_journal_record *record,
                              struct vxd_err *err)
{
    struct vxd_map_record_decoded decoded;
    struct arrays arrays = {.queue = queue};
    enum vxd_status status = vxd_map_record_decode(
        record->bytes, record->n_bytes, record->rules_version, 0, &decoded, err);

    if (status != VXD_OK) {
        return status;
    }
    VXD_TRY(check(&decoded.record, vxd_hashmap_get_spec(hashmap), err));
    if (decoded.record.kind == VXD_MAP_RECORD_CLEAR) {
        status = vxd_hashmap_clear(queue, hashmap, err);
    } else if (decoded.record.n == 0) {
        status = VXD_OK;
    } else if (decoded.record.kind == VXD_MAP_RECORD_INSERT) {
        status = insert_rows(&arrays, hashmap, &decoded.record, err);
    } else if (decoded.record.kind == VXD_MAP_RECORD_UPDATE) {
        status = update(&arrays, hashmap, &decoded.record, err);
    } else {
        status = erase(&arrays, hashmap, &decoded.record, err);
    }
    VXD_TRY(status);
    status = vxd_queue_wait(queue, err);
out:
    (void)vxd_queue_wait(queue, NULL); /* the engine may read the record until then */
    for (size_t i = 0; i < arrays.n; i++) {
        vxd_device_free(queue, &arrays.buffers[i]);
    }
    vxd_map_record_decoded_free(&decoded);
    return status;
}
