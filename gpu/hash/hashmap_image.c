// SPDX-License-Identifier: Apache-2.0
/* Maps in host memory, for files and other devices, with entries by ascending number.
 * The index is not part of an image: it is rebuilt. */
#include "gpu/hash/hash_internal.h"

/* Entries gathered at a time; this bounds the scratch. */
#define CHUNK ((size_t)1 << 20)

static size_t row_bytes_of(const struct vxd_hashmap_array *array)
{
    return array->n_elements * vxd_dtype_bytes(array->dtype);
}

enum vxd_status vxd_hashmap_image_alloc(struct vxd_context *context,
                                        const struct vxd_hashmap_spec *spec,
                                        size_t n_entries, struct vxd_hashmap_image *out,
                                        struct vxd_err *err)
{
    enum vxd_status status;
    size_t key_bytes;

    *out = (struct vxd_hashmap_image){.context = context, .n_entries = n_entries};
    VXD_TRY(vxd_hashmap_check_spec(spec, err));
    if (n_entries > spec->capacity) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "n_entries",
                        "%zu entries, but a capacity of %zu", n_entries, spec->capacity);
    }
    out->spec = *spec;
    key_bytes = (size_t)spec->n_components * vxd_dtype_bytes(spec->key_dtype);
    VXD_TRY(vxd_host_alloc(context, n_entries * sizeof(int32_t), &out->indices, err));
    VXD_TRY(vxd_host_alloc(context, n_entries * key_bytes, &out->keys, err));
    for (int i = 0; i < spec->n_values; i++) {
        VXD_TRY(vxd_host_alloc(context, n_entries * row_bytes_of(&spec->values[i]),
                               &out->values[i], err));
    }
out:
    if (status != VXD_OK) {
        vxd_hashmap_image_free(out);
    }
    return status;
}

void vxd_hashmap_image_free(struct vxd_hashmap_image *image)
{
    if (image->context == NULL) {
        return;
    }
    for (int i = 0; i < VXD_HASHMAP_MAX_VALUES; i++) {
        vxd_host_free(image->context, &image->values[i]);
    }
    vxd_host_free(image->context, &image->keys);
    vxd_host_free(image->context, &image->indices);
    *image = (struct vxd_hashmap_image){.context = NULL};
}

/* Queues the copy of the rows of n entries through one chunk of device memory for each
 * array. */
static enum vxd_status copy_rows(struct vxd_queue *queue, const struct vxd_hashmap *map,
                                 const int32_t *d_numbers, size_t n,
                                 const struct vxd_hashmap_image *image,
                                 struct vxd_err *err)
{
    size_t chunk = n < CHUNK ? n : CHUNK;
    size_t key_bytes = (size_t)map->form.row_bytes;
    struct vxd_buffer keys = {NULL, 0, VXD_SPACE_DEVICE};
    struct vxd_buffer values[VXD_HASHMAP_MAX_VALUES] = {{NULL, 0, VXD_SPACE_DEVICE}};
    void *rows[VXD_HASHMAP_MAX_VALUES] = {NULL};
    enum vxd_status status;

    VXD_TRY(vxd_device_alloc(queue, chunk * key_bytes, &keys, err));
    for (int i = 0; i < map->spec.n_values; i++) {
        VXD_TRY(vxd_device_alloc(queue, chunk * map->row_bytes[i], &values[i], err));
        rows[i] = values[i].ptr;
    }
    for (size_t i = 0; i < n; i += chunk) {
        size_t n_now = n - i < chunk ? n - i : chunk;

        VXD_TRY(vxd_hashmap_gather(queue, map, d_numbers + i, n_now, keys.ptr, rows, NULL,
                                   err));
        VXD_TRY(vxd_queue_copy(queue, (char *)image->keys.ptr + i * key_bytes, keys.ptr,
                               n_now * key_bytes, err));
        for (int v = 0; v < map->spec.n_values; v++) {
            VXD_TRY(vxd_queue_copy(queue,
                                   (char *)image->values[v].ptr + i * map->row_bytes[v],
                                   rows[v], n_now * map->row_bytes[v], err));
        }
    }
out:
    for (int i = 0; i < map->spec.n_values; i++) {
        vxd_device_free(queue, &values[i]);
    }
    vxd_device_free(queue, &keys);
    return status;
}

enum vxd_status vxd_hashmap_export(struct vxd_queue *queue, const struct vxd_hashmap *map,
                                   struct vxd_hashmap_image *out, struct vxd_err *err)
{
    struct vxd_hashmap_spec spec = map->spec;
    struct vxd_buffer numbers = {NULL, 0, VXD_SPACE_DEVICE};
    struct vxd_buffer count = {NULL, 0, VXD_SPACE_DEVICE};
    size_t n = 0;
    enum vxd_status status;

    *out = (struct vxd_hashmap_image){.context = NULL};
    spec.capacity = map->capacity;
    VXD_TRY(vxd_hashmap_read_size(queue, map, &n, err));
    VXD_TRY(vxd_hashmap_image_alloc(queue->context, &spec, n, out, err));
    out->erase_epoch = map->erase_epoch;
    VXD_TRY(vxd_device_alloc(queue, map->size_bound * sizeof(int32_t), &numbers, err));
    VXD_TRY(vxd_device_alloc(queue, sizeof(uint32_t), &count, err));
    VXD_TRY(vxd_hashmap_active(queue, map, numbers.ptr, map->size_bound, count.ptr, err));
    VXD_TRY(
        vxd_queue_copy(queue, out->indices.ptr, numbers.ptr, n * sizeof(int32_t), err));
    VXD_TRY(copy_rows(queue, map, numbers.ptr, n, out, err));
    VXD_TRY(vxd_queue_wait(queue, err));
out:
    vxd_device_free(queue, &count);
    vxd_device_free(queue, &numbers);
    if (status != VXD_OK) {
        (void)vxd_queue_wait(queue, NULL); /* the copies read the image until then */
        vxd_hashmap_image_free(out);
    }
    return status;
}

static enum vxd_status check_image(const struct vxd_hashmap_image *image,
                                   struct vxd_err *err)
{
    const int32_t *indices = image->indices.ptr;
    int64_t previous = -1;

    for (size_t i = 0; i < image->n_entries; i++) {
        if (indices[i] <= previous || (size_t)indices[i] >= image->spec.capacity) {
            return vxd_fail(
                err, VXD_DATA_LOSS, "indices",
                "entry number %d at %zu; numbers must ascend and be below the "
                "capacity of %zu",
                indices[i], i, image->spec.capacity);
        }
        previous = indices[i];
    }
    return VXD_OK;
}

/* Writes the image's entries into an empty map. */
static enum vxd_status fill_map(struct vxd_queue *queue, struct vxd_hashmap *map,
                                const struct vxd_hashmap_image *image,
                                struct vxd_err *err)
{
    size_t n = image->n_entries;
    struct vxd_buffer indices = {NULL, 0, VXD_SPACE_DEVICE};
    struct vxd_buffer keys = {NULL, 0, VXD_SPACE_DEVICE};
    struct vxd_buffer values[VXD_HASHMAP_MAX_VALUES] = {{NULL, 0, VXD_SPACE_DEVICE}};
    const void *d_indices = NULL;
    const void *d_keys = NULL;
    const void *d_values[VXD_HASHMAP_MAX_VALUES] = {NULL};
    enum vxd_status status;

    VXD_TRY(vxd_upload(queue, image->indices.ptr, n * sizeof(int32_t), &indices,
                       &d_indices, err));
    VXD_TRY(vxd_upload(queue, image->keys.ptr, n * (size_t)map->form.row_bytes, &keys,
                       &d_keys, err));
    for (int i = 0; i < map->spec.n_values; i++) {
        VXD_TRY(vxd_upload(queue, image->values[i].ptr, n * map->row_bytes[i], &values[i],
                           &d_values[i], err));
    }
    VXD_TRY(VXD_BACKEND_FN(queue, vxd_hash_scatter)(queue, map, d_indices, n, d_keys,
                                                    d_values, err));
    VXD_TRY(vxd_hashmap_rebuild_heap(queue, map, err));
    VXD_TRY(vxd_hashmap_rebuild_index(queue, map, err));
    map->size_bound = n;
out:
    for (int i = 0; i < map->spec.n_values; i++) {
        vxd_device_free(queue, &values[i]);
    }
    vxd_device_free(queue, &keys);
    vxd_device_free(queue, &indices);
    return status;
}

enum vxd_status vxd_hashmap_import(struct vxd_queue *queue,
                                   const struct vxd_hashmap_image *image,
                                   struct vxd_hashmap **out, struct vxd_err *err)
{
    struct vxd_hashmap *map = NULL;
    enum vxd_status status;

    *out = NULL;
    VXD_TRY(vxd_hashmap_check_spec(&image->spec, err));
    VXD_TRY(check_image(image, err));
    VXD_TRY(vxd_hashmap_create(queue, &image->spec, &map, err));
    if (image->n_entries > 0) {
        VXD_TRY(fill_map(queue, map, image, err));
    }
    VXD_TRY(vxd_queue_wait(queue, err));
    map->erase_epoch = image->erase_epoch;
    *out = map;
out:
    if (status != VXD_OK) {
        vxd_hashmap_destroy(queue, map);
        (void)vxd_queue_wait(queue, NULL); /* the copies read the image until then */
    }
    return status;
}

enum vxd_status vxd_hashmap_copy(struct vxd_queue *from_queue,
                                 const struct vxd_hashmap *from,
                                 struct vxd_queue *to_queue, enum vxd_hash_index index,
                                 struct vxd_hashmap **out, struct vxd_err *err)
{
    struct vxd_hashmap_image image = {.context = NULL};
    enum vxd_status status;

    *out = NULL;
    VXD_TRY(vxd_hashmap_export(from_queue, from, &image, err));
    image.spec.index = index;
    VXD_TRY(vxd_hashmap_import(to_queue, &image, out, err));
out:
    vxd_hashmap_image_free(&image);
    return status;
}
