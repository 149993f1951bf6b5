// SPDX-License-Identifier: Apache-2.0
/* Blocks as arrays on the host, for files and journals: all layers, whatever a volume has. New
 * blocks take the lowest free entries in the order in which they are written, which is that in
 * which they were made, so a volume that is written again has the same entries. */
#include <stdlib.h>

#include "gpu/volume/volume_internal.h"

#define MAX_KEY ((1 << 20) - 2)

int vxd_volume_get_layers(const struct vxd_volume *volume,
                          struct vxd_volume_layer out[VXD_VOLUME_MAX_LAYERS])
{
    const char *names[VXD_VOLUME_COLOURS + 3] = {
        [VXD_VOLUME_DISTANCES] = "distance", [VXD_VOLUME_WEIGHTS] = "weight"};
    const struct vxd_hashmap_spec *spec = vxd_hashmap_get_spec(volume->map);
    int n = spec->n_values - 1;
    int at = VXD_VOLUME_COLOURS;

    if (volume->spec.has_colour) {
        names[at++] = "colour";
    }
    if (volume->spec.has_labels) {
        names[at++] = "label";
    }
    if (volume->spec.has_albedo) {
        names[at++] = "albedo";
    }

    for (int i = 0; i < n; i++) {
        out[i] = (struct vxd_volume_layer){names[i + 1], spec->values[i + 1].dtype,
                                           spec->values[i + 1].n_elements};
    }
    return n;
}

static size_t row_bytes(const struct vxd_hashmap_spec *spec, int array)
{
    return spec->values[array].n_elements * vxd_dtype_bytes(spec->values[array].dtype);
}

/* --- reading ------------------------------------------------------------------------------ */

void vxd_volume_blocks_free(struct vxd_queue *queue, struct vxd_volume_blocks *blocks)
{
    for (size_t i = 0; i < sizeof blocks->device / sizeof blocks->device[0]; i++) {
        vxd_device_free(queue, &blocks->device[i]);
        if (blocks->context != NULL) {
            vxd_host_free(blocks->context, &blocks->host[i]);
        }
    }
    *blocks = (struct vxd_volume_blocks){0};
}

/* Reserves n rows of one array: the map's arrays, and behind them the keys. */
static enum vxd_status reserve(struct vxd_queue *queue, struct vxd_volume_blocks *blocks,
                               int array, size_t n_bytes, void **out, struct vxd_err *err)
{
    enum vxd_status status =
        vxd_device_alloc(queue, n_bytes, &blocks->device[array], err);

    *out = blocks->device[array].ptr;
    return status;
}

enum vxd_status vxd_volume_read_blocks(struct vxd_queue *queue,
                                       const struct vxd_volume *volume,
                                       const int32_t *entries, size_t n, bool with_layers,
                                       struct vxd_volume_blocks *out, struct vxd_err *err)
{
    const struct vxd_hashmap_spec *spec = vxd_hashmap_get_spec(volume->map);
    int n_arrays = with_layers ? spec->n_values : 1;
    void *values[VXD_HASHMAP_MAX_VALUES] = {NULL};
    struct vxd_buffer numbers = {NULL, 0, VXD_SPACE_DEVICE};
    const void *d_entries = NULL;
    const void *read = NULL;
    void *keys = NULL;
    enum vxd_status status = VXD_OK;

    *out =
        (struct vxd_volume_blocks){.n = n, .entries = entries, .context = queue->context};
    if (n == 0) {
        return VXD_OK;
    }
    VXD_TRY(vxd_upload(queue, entries, n * sizeof *entries, &numbers, &d_entries, err));
    VXD_TRY(
        reserve(queue, out, VXD_HASHMAP_MAX_VALUES, n * 3 * sizeof(int32_t), &keys, err));
    for (int i = 0; i < n_arrays; i++) {
        VXD_TRY(reserve(queue, out, i, n * row_bytes(spec, i), &values[i], err));
    }
    VXD_TRY(
        vxd_hashmap_gather(queue, volume->map, d_entries, n, keys, values, NULL, err));
    VXD_TRY(vxd_download(queue, keys, n * 3 * sizeof(int32_t),
                         &out->host[VXD_HASHMAP_MAX_VALUES], &read, err));
    out->keys = read;
    for (int i = 0; i < n_arrays; i++) {
        VXD_TRY(vxd_download(queue, values[i], n * row_bytes(spec, i), &out->host[i],
                             &read, err));
        if (i == VXD_VOLUME_STAMPS) {
            out->stamps = read;
        } else {
            out->layers[i - 1] = read;
        }
    }
    VXD_TRY(vxd_queue_wait(queue, err));
out:
    (void)vxd_queue_wait(queue, NULL); /* it reads `entries` and `values` until then */
    vxd_device_free(queue, &numbers);
    if (status != VXD_OK) {
        vxd_volume_blocks_free(queue, out);
    }
    return status;
}

enum vxd_status vxd_volume_list_changed(struct vxd_queue *queue,
                                        const struct vxd_volume *volume, uint64_t since,
                                        int32_t **take_entries, size_t *n,
                                        struct vxd_err *err)
{
    size_t capacity = vxd_hashmap_capacity(volume->map);
    struct vxd_volume_blocks blocks = {0};
    struct vxd_buffer list = {NULL, 0, VXD_SPACE_DEVICE};
    struct vxd_buffer host = {NULL, 0, VXD_SPACE_HOST};
    const void *read = NULL;
    int32_t *entries = NULL;
    size_t n_all = volume->n_blocks;
    enum vxd_status status = VXD_OK;

    *take_entries = NULL;
    *n = 0;
    if (n_all == 0) {
        return VXD_OK;
    }
    entries = malloc(n_all * sizeof *entries);
    if (entries == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for %zu entries",
                        n_all);
    }
    VXD_TRY(vxd_device_alloc(queue, (capacity + 1) * sizeof(int32_t), &list, err));
    VXD_TRY(vxd_hashmap_active(queue, volume->map, list.ptr, capacity,
                               (uint32_t *)list.ptr + capacity, err));
    VXD_TRY(vxd_download(queue, list.ptr, n_all * sizeof *entries, &host, &read, err));
    VXD_TRY(vxd_queue_wait(queue, err));
    memcpy(entries, read, n_all * sizeof *entries);
    VXD_TRY(vxd_volume_read_blocks(queue, volume, entries, n_all, false, &blocks, err));
    for (size_t i = 0; i < n_all; i++) {
        if (since == 0 || blocks.stamps[i] > since || blocks.stamps[i] == 0) {
            entries[(*n)++] = entries[i];
        }
    }
    *take_entries = entries;
    entries = NULL;
out:
    vxd_volume_blocks_free(queue, &blocks);
    vxd_host_free(queue->context, &host);
    vxd_device_free(queue, &list);
    free(entries);
    return status;
}

/* --- writing ------------------------------------------------------------------------------ */

static enum vxd_status check_keys(const struct vxd_volume_blocks *blocks,
                                  struct vxd_err *err)
{
    for (size_t i = 0; i < 3 * blocks->n; i++) {
        if (blocks->keys[i] < -MAX_KEY || blocks->keys[i] > MAX_KEY) {
            return vxd_fail(err, VXD_DATA_LOSS, NULL,
                            "a block's key is %d, must be within +-%d", blocks->keys[i],
                            MAX_KEY);
        }
    }
    return VXD_OK;
}

/* Inserts the blocks, and checks that they have the entries that they should have. */
static enum vxd_status insert(struct vxd_queue *queue, struct vxd_volume *volume,
                              const struct vxd_volume_blocks *blocks,
                              struct vxd_buffer *indices, struct vxd_err *err)
{
    struct vxd_hashmap_insert_args args = {.n = blocks->n, .order = VXD_HASH_FIRST};
    struct vxd_buffer keys = {NULL, 0, VXD_SPACE_DEVICE};
    struct vxd_buffer host = {NULL, 0, VXD_SPACE_HOST};
    const void *read = NULL;
    enum vxd_status status;

    VXD_TRY(vxd_upload(queue, blocks->keys, blocks->n * 3 * sizeof(int32_t), &keys,
                       &args.keys, err));
    VXD_TRY(vxd_device_alloc(queue, blocks->n * sizeof(int32_t), indices, err));
    args.indices = indices->ptr;
    VXD_TRY(vxd_hashmap_prepare(queue, volume->map, args.keys, blocks->n, &args.max_new,
                                err));
    VXD_TRY(vxd_hashmap_insert(queue, volume->map, &args, err));
    VXD_TRY(vxd_download(queue, indices->ptr, blocks->n * sizeof(int32_t), &host, &read,
                         err));
    VXD_TRY(vxd_queue_wait(queue, err));
    for (size_t i = 0; i < blocks->n; i++) {
        int32_t entry = ((const int32_t *)read)[i];

        if (entry != blocks->entries[i]) {
            VXD_TRY(vxd_fail(err, VXD_DATA_LOSS, NULL,
                             "a block that was entry %d is entry %d now",
                             blocks->entries[i], entry));
        }
    }
out:
    (void)vxd_queue_wait(queue, NULL);
    vxd_host_free(queue->context, &host);
    vxd_device_free(queue, &keys);
    return status;
}

static enum vxd_status update(struct vxd_queue *queue, struct vxd_volume *volume,
                              const struct vxd_volume_blocks *blocks,
                              const int32_t *indices, int array, const void *rows,
                              struct vxd_err *err)
{
    const struct vxd_hashmap_spec *spec = vxd_hashmap_get_spec(volume->map);
    struct vxd_hashmap_update_args args = {.indices = indices,
                                           .n = blocks->n,
                                           .array = array,
                                           .dtype = spec->values[array].dtype,
                                           .combine = VXD_COMBINE_SET};
    struct vxd_buffer device = {NULL, 0, VXD_SPACE_DEVICE};
    enum vxd_status status;

    VXD_TRY(vxd_upload(queue, rows, blocks->n * row_bytes(spec, array), &device,
                       &args.rows, err));
    VXD_TRY(vxd_hashmap_update(queue, volume->map, &args, err));
    VXD_TRY(vxd_queue_wait(queue, err));
out:
    (void)vxd_queue_wait(queue, NULL);
    vxd_device_free(queue, &device);
    return status;
}

enum vxd_status vxd_volume_write_blocks(struct vxd_queue *queue,
                                        struct vxd_volume *volume,
                                        const struct vxd_volume_blocks *blocks,
                                        uint64_t version, uint64_t removed_version,
                                        struct vxd_err *err)
{
    int n_layers = vxd_hashmap_get_spec(volume->map)->n_values - 1;
    struct vxd_buffer indices = {NULL, 0, VXD_SPACE_DEVICE};
    enum vxd_status status = VXD_OK;

    if (blocks->n > 0) {
        VXD_TRY(check_keys(blocks, err));
        VXD_TRY(insert(queue, volume, blocks, &indices, err));
        VXD_TRY(update(queue, volume, blocks, indices.ptr, VXD_VOLUME_STAMPS,
                       blocks->stamps, err));
    }
    for (int i = 0; i < n_layers && blocks->n > 0; i++) {
        if (blocks->layers[i] != NULL) {
            VXD_TRY(update(queue, volume, blocks, indices.ptr, i + 1, blocks->layers[i],
                           err));
        }
    }
    VXD_TRY(vxd_volume_mend(queue, volume, err));
    volume->version = version;
    volume->removed_version = removed_version;
out:
    vxd_device_free(queue, &indices);
    return status;
}

/* --- removing ----------------------------------------------------------------------------- */

static int compare_keys(const void *a, const void *b)
{
    return memcmp(a, b, 3 * sizeof(int32_t));
}

enum vxd_status vxd_volume_keep_only(struct vxd_queue *queue, struct vxd_volume *volume,
                                     const int32_t *keys, size_t n, struct vxd_err *err)
{
    size_t n_bytes = 3 * sizeof(int32_t);
    struct vxd_volume_blocks blocks = {0};
    struct vxd_buffer device = {NULL, 0, VXD_SPACE_DEVICE};
    const void *d_keys = NULL;
    int32_t *entries = NULL;
    int32_t *kept = NULL;
    int32_t *removed = NULL;
    size_t n_all = 0;
    size_t n_removed = 0;
    enum vxd_status status;

    VXD_TRY(vxd_volume_list_changed(queue, volume, 0, &entries, &n_all, err));
    VXD_TRY(vxd_volume_read_blocks(queue, volume, entries, n_all, false, &blocks, err));
    kept = malloc((n + 1) * n_bytes);
    removed = malloc((n_all + 1) * n_bytes);
    if (kept == NULL || removed == NULL) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for %zu keys", n));
    }
    if (n > 0) {
        memcpy(kept, keys, n * n_bytes);
        qsort(kept, n, n_bytes, compare_keys);
    }
    for (size_t i = 0; i < n_all; i++) {
        if (n == 0 ||
            bsearch(blocks.keys + 3 * i, kept, n, n_bytes, compare_keys) == NULL) {
            memcpy(removed + 3 * n_removed++, blocks.keys + 3 * i, n_bytes);
        }
    }
    if (n_removed > 0) {
        VXD_TRY(vxd_upload(queue, removed, n_removed * n_bytes, &device, &d_keys, err));
        VXD_TRY(vxd_volume_remove(queue, volume, d_keys, n_removed, err));
    }
out:
    (void)vxd_queue_wait(queue, NULL);
    vxd_device_free(queue, &device);
    free(removed);
    free(kept);
    vxd_volume_blocks_free(queue, &blocks);
    free(entries);
    return status;
}
