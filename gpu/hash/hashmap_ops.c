// SPDX-License-Identifier: Apache-2.0
/* Operations on maps: checks, scratch, dispatch, and the counts that the host keeps. */
#include "gpu/hash/hash_internal.h"

enum vxd_status vxd_hashmap_check_array(size_t n, const void *array, const char *field,
                                        struct vxd_err *err)
{
    if (n > VXD_HASHMAP_MAX_KEYS) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "n", "%zu rows, must be at most %zu",
                        n, VXD_HASHMAP_MAX_KEYS);
    }
    if (n > 0 && array == NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field, "missing");
    }
    return VXD_OK;
}

static enum vxd_status check_order(enum vxd_hash_order order, struct vxd_err *err)
{
    if (order != VXD_HASH_FIRST && order != VXD_HASH_ANY) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "order",
                        "%d is no order; 0 is FIRST, 1 ANY", (int)order);
    }
    return VXD_OK;
}

static enum vxd_status check_insert(const struct vxd_hashmap *map,
                                    const struct vxd_hashmap_insert_args *args,
                                    size_t max_new, struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(vxd_hashmap_check_array(args->n, args->keys, "keys", err));
    VXD_TRY(check_order(args->order, err));
    for (int i = 0; args->n > 0 && args->values != NULL && i < map->spec.n_values; i++) {
        if (args->values[i] == NULL) {
            char field[24];

            (void)snprintf(field, sizeof field, "values[%d]", i);
            return vxd_fail(err, VXD_INVALID_ARGUMENT, field, "missing");
        }
    }
    if (max_new > map->capacity - map->size_bound) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "%zu new keys do not fit beside the at most %zu entries of %zu",
                        max_new, map->size_bound, map->capacity);
    }
out:
    return status;
}

enum vxd_status vxd_hashmap_insert(struct vxd_queue *queue, struct vxd_hashmap *map,
                                   const struct vxd_hashmap_insert_args *args,
                                   struct vxd_err *err)
{
    struct vxd_hashmap_insert_args call = *args;
    struct vxd_buffer scratch = {NULL, 0, VXD_SPACE_DEVICE};
    enum vxd_status status;
    size_t n_bytes;

    if (call.max_new == VXD_NONE_NEW) {
        call.max_new = 0;
    } else if (call.max_new == 0 || call.max_new > call.n) {
        call.max_new = call.n;
    }
    VXD_TRY(check_insert(map, &call, call.max_new, err));
    if (call.n == 0) {
        return VXD_OK;
    }
    n_bytes = map->ops->scratch_bytes(queue, map, VXD_CALL_INSERT, call.order, call.n);
    VXD_TRY(vxd_device_alloc(queue, n_bytes, &scratch, err));
    status = map->ops->insert(queue, map, &call, scratch.ptr, n_bytes, err);
    map->size_bound += call.max_new; /* part of it may be queued after a failure */
out:
    vxd_device_free(queue, &scratch);
    return status;
}

enum vxd_status vxd_hashmap_find(struct vxd_queue *queue, const struct vxd_hashmap *map,
                                 const void *keys, size_t n, int32_t *indices,
                                 uint8_t *found, struct vxd_err *err)
{
    enum vxd_status status = vxd_hashmap_check_array(n, keys, "keys", err);

    if (status != VXD_OK || n == 0) {
        return status;
    }
    return map->ops->find(queue, map, keys, n, indices, found, err);
}

enum vxd_status vxd_hashmap_erase(struct vxd_queue *queue, struct vxd_hashmap *map,
                                  const void *keys, size_t n, enum vxd_hash_order order,
                                  uint8_t *erased, struct vxd_err *err)
{
    struct vxd_buffer scratch = {NULL, 0, VXD_SPACE_DEVICE};
    enum vxd_status status;
    size_t n_bytes;

    VXD_TRY(vxd_hashmap_check_array(n, keys, "keys", err));
    VXD_TRY(check_order(order, err));
    if (n == 0) {
        return VXD_OK;
    }
    n_bytes = map->ops->scratch_bytes(queue, map, VXD_CALL_ERASE, order, n);
    VXD_TRY(vxd_device_alloc(queue, n_bytes, &scratch, err));
    VXD_TRY(
        map->ops->erase(queue, map, keys, n, order, erased, scratch.ptr, n_bytes, err));
    map->erase_epoch++;
out:
    vxd_device_free(queue, &scratch);
    return status;
}

enum vxd_status vxd_hashmap_clear(struct vxd_queue *queue, struct vxd_hashmap *map,
                                  struct vxd_err *err)
{
    struct vxd_buffer scratch = {NULL, 0, VXD_SPACE_DEVICE};
    size_t n_bytes =
        VXD_BACKEND_FN(queue, vxd_hash_heap_scratch_bytes)(queue, map->capacity);
    enum vxd_status status;

    VXD_TRY(vxd_device_alloc(queue, n_bytes, &scratch, err));
    VXD_TRY(vxd_queue_fill(queue, map->counters.ptr, 0, map->counters.n_bytes, err));
    VXD_TRY(vxd_queue_fill(queue, map->live.ptr, 0, map->live.n_bytes, err));
    VXD_TRY(map->ops->clear(queue, map, err));
    VXD_TRY(VXD_BACKEND_FN(queue, vxd_hash_heap_rebuild)(queue, map, scratch.ptr, n_bytes,
                                                         err));
    for (int i = 0; i < map->spec.n_values; i++) {
        VXD_TRY(
            vxd_queue_fill(queue, map->values[i].ptr, 0, map->values[i].n_bytes, err));
    }
    map->size_bound = 0;
    map->erase_epoch++;
out:
    vxd_device_free(queue, &scratch);
    return status;
}

enum vxd_status vxd_hashmap_active(struct vxd_queue *queue, const struct vxd_hashmap *map,
                                   int32_t *indices, size_t indices_capacity,
                                   uint32_t *n_entries, struct vxd_err *err)
{
    struct vxd_buffer scratch = {NULL, 0, VXD_SPACE_DEVICE};
    size_t n_bytes =
        VXD_BACKEND_FN(queue, vxd_hash_heap_scratch_bytes)(queue, map->capacity);
    enum vxd_status status;

    if (n_entries == NULL || (map->size_bound > 0 && indices == NULL)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT,
                        n_entries == NULL ? "n_entries" : "indices", "missing");
    }
    if (indices_capacity < map->size_bound) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "indices_capacity",
                        "an array of %zu numbers, but there may be %zu entries",
                        indices_capacity, map->size_bound);
    }
    VXD_TRY(vxd_device_alloc(queue, n_bytes, &scratch, err));
    VXD_TRY(VXD_BACKEND_FN(queue, vxd_hash_active)(queue, map, indices, n_entries,
                                                   scratch.ptr, n_bytes, err));
out:
    vxd_device_free(queue, &scratch);
    return status;
}

enum vxd_status vxd_hashmap_gather(struct vxd_queue *queue, const struct vxd_hashmap *map,
                                   const int32_t *indices, size_t n, void *keys,
                                   void *const *values, uint8_t *valid,
                                   struct vxd_err *err)
{
    enum vxd_status status = vxd_hashmap_check_array(n, indices, "indices", err);

    if (status != VXD_OK || n == 0) {
        return status;
    }
    return VXD_BACKEND_FN(queue, vxd_hash_gather)(queue, map, indices, n, keys, values,
                                                  valid, err);
}

static enum vxd_status check_update(const struct vxd_hashmap *map,
                                    const struct vxd_hashmap_update_args *args,
                                    struct vxd_err *err)
{
    enum vxd_dtype own;
    enum vxd_status status;

    if (args->array < 0 || args->array >= map->spec.n_values) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "array",
                        "%d, but the map has %d value arrays", args->array,
                        map->spec.n_values);
    }
    own = map->spec.values[args->array].dtype;
    if (args->dtype != own && !(args->dtype == VXD_UINT32 && own == VXD_UINT64) &&
        !(args->dtype == VXD_FLOAT32 && own == VXD_FLOAT64)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "dtype",
                        "rows of element type %d do not go into an array of %d",
                        (int)args->dtype, (int)own);
    }
    if ((int)args->combine < VXD_COMBINE_SET || args->combine > VXD_COMBINE_MAX) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "combine",
                        "%d; 0 is SET, 1 ADD, 2 MIN, 3 MAX", (int)args->combine);
    }
    VXD_TRY(vxd_hashmap_check_array(args->n, args->indices, "indices", err));
    VXD_TRY(vxd_hashmap_check_array(args->n, args->rows, "rows", err));
out:
    return status;
}

enum vxd_status vxd_hashmap_update(struct vxd_queue *queue, struct vxd_hashmap *map,
                                   const struct vxd_hashmap_update_args *args,
                                   struct vxd_err *err)
{
    struct vxd_buffer scratch = {NULL, 0, VXD_SPACE_DEVICE};
    enum vxd_status status;
    size_t n_bytes;

    VXD_TRY(check_update(map, args, err));
    if (args->n == 0) {
        return VXD_OK;
    }
    n_bytes = VXD_BACKEND_FN(queue, vxd_hash_update_scratch_bytes)(queue, map, args);
    VXD_TRY(vxd_device_alloc(queue, n_bytes, &scratch, err));
    VXD_TRY(VXD_BACKEND_FN(queue, vxd_hash_update)(queue, map, args, scratch.ptr, n_bytes,
                                                   err));
out:
    vxd_device_free(queue, &scratch);
    return status;
}

enum vxd_status vxd_hashmap_neighbours(struct vxd_queue *queue,
                                       const struct vxd_hashmap *map, const void *keys,
                                       size_t n, enum vxd_hash_neighbours kind,
                                       int32_t *indices, struct vxd_err *err)
{
    enum vxd_status status;

    if (map->spec.n_components != 3 && map->spec.n_components != 4) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "n_components",
                        "keys of %d components have no neighbours, those of 3 and 4 do",
                        map->spec.n_components);
    }
    if (kind != VXD_NEIGHBOURS_6 && kind != VXD_NEIGHBOURS_8 &&
        kind != VXD_NEIGHBOURS_27) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "kind", "%d is not 6, 8 or 27",
                        (int)kind);
    }
    VXD_TRY(vxd_hashmap_check_array(n, keys, "keys", err));
    VXD_TRY(vxd_hashmap_check_array(n, indices, "indices", err));
    if (n > VXD_HASHMAP_MAX_KEYS / (size_t)kind) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "n",
                        "%zu keys of %d neighbours are more than %zu", n, (int)kind,
                        VXD_HASHMAP_MAX_KEYS);
    }
    if (n > 0) {
        VXD_TRY(map->ops->neighbours(queue, map, keys, n, kind, indices, err));
    }
out:
    return status;
}
