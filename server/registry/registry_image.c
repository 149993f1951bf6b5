// SPDX-License-Identifier: Apache-2.0
/* All entries of a hash map in a snapshot file, of maps and of volumes:
 *
 *   8 bytes each, little end first: erase epoch, capacity, n entries; then
 *   4n   numbers, int32, ascending, below the capacity
 *        keys, rows of components, in that order
 *        the rows of each value array, likewise */
#include <inttypes.h>

#include "server/registry/registry.h"

enum {
    PIECE_BYTES = 4 << 20
};

static size_t key_bytes(const struct vxd_hashmap_spec *spec)
{
    return vxd_dtype_bytes(spec->key_dtype) * (size_t)spec->n_components;
}

static size_t row_bytes(const struct vxd_hashmap_spec *spec, int array)
{
    return vxd_dtype_bytes(spec->values[array].dtype) * spec->values[array].n_elements;
}

/* --- writing ------------------------------------------------------------------------------ */

/* The entries' numbers; both buffers are to be freed. */
static enum vxd_status list_numbers(struct vxd_queue *queue, struct vxd_hashmap *hashmap,
                                    size_t n, struct vxd_buffer *numbers,
                                    struct vxd_err *err)
{
    struct vxd_buffer count = {0};
    size_t bound = vxd_hashmap_size_bound(hashmap);
    enum vxd_status status;

    VXD_TRY(vxd_device_alloc(queue, (bound > n ? bound : n) * sizeof(int32_t) + 1,
                             numbers, err));
    VXD_TRY(vxd_device_alloc(queue, sizeof(uint32_t), &count, err));
    VXD_TRY(vxd_hashmap_active(queue, hashmap, numbers->ptr, bound > n ? bound : n,
                               count.ptr, err));
    status = vxd_queue_wait(queue, err);
out:
    vxd_device_free(queue, &count);
    return status;
}

/* Rows of an array, or the keys for -1, that are gathered for the file. The queue's
 * context is the CPU's, so device memory can be read here. */
static enum vxd_status write_rows(struct vxd_snapshot_writer *writer,
                                  struct vxd_queue *queue,
                                  const struct vxd_hashmap *hashmap,
                                  const int32_t *numbers, size_t n, int array,
                                  struct vxd_err *err)
{
    const struct vxd_hashmap_spec *spec = vxd_hashmap_get_spec(hashmap);
    size_t n_row_bytes = array < 0 ? key_bytes(spec) : row_bytes(spec, array);
    size_t at_once = PIECE_BYTES / n_row_bytes > 0 ? PIECE_BYTES / n_row_bytes : 1;
    void *values[VXD_HASHMAP_MAX_VALUES] = {NULL};
    struct vxd_buffer rows = {0};
    enum vxd_status status;

    at_once = at_once < n ? at_once : n;
    VXD_TRY(vxd_device_alloc(queue, at_once * n_row_bytes + 1, &rows, err));
    if (array >= 0) {
        values[array] = rows.ptr;
    }
    for (size_t i = 0; i < n; i += at_once) {
        size_t n_now = n - i < at_once ? n - i : at_once;

        VXD_TRY(vxd_hashmap_gather(queue, hashmap, numbers + i, n_now,
                                   array < 0 ? rows.ptr : NULL, values, NULL, err));
        VXD_TRY(vxd_queue_wait(queue, err));
        VXD_TRY(vxd_snapshot_write(writer, VXD_SNAPSHOT_IMAGE, rows.ptr,
                                   n_now * n_row_bytes, err));
    }
out:
    vxd_device_free(queue, &rows);
    return status;
}

enum vxd_status vxd_registry_write_image(struct vxd_snapshot_writer *writer,
                                         struct vxd_queue *queue,
                                         struct vxd_hashmap *hashmap, struct vxd_err *err)
{
    const struct vxd_hashmap_spec *spec = vxd_hashmap_get_spec(hashmap);
    struct vxd_buffer numbers = {0};
    uint64_t head[3] = {vxd_hashmap_erase_epoch(hashmap), vxd_hashmap_capacity(hashmap)};
    size_t n = 0;
    enum vxd_status status;

    VXD_TRY(vxd_hashmap_size(queue, hashmap, &n, err));
    head[2] = n;
    VXD_TRY(vxd_snapshot_write(writer, VXD_SNAPSHOT_IMAGE, head, sizeof head, err));
    VXD_TRY(list_numbers(queue, hashmap, n, &numbers, err));
    VXD_TRY(vxd_snapshot_write(writer, VXD_SNAPSHOT_IMAGE, numbers.ptr,
                               n * sizeof(int32_t), err));
    for (int i = -1; i < spec->n_values && n > 0; i++) {
        VXD_TRY(write_rows(writer, queue, hashmap, numbers.ptr, n, i, err));
    }
out:
    vxd_device_free(queue, &numbers);
    (void)vxd_queue_wait(queue, NULL);
    return status;
}

/* --- reading ------------------------------------------------------------------------------ */

static enum vxd_status read_all(struct vxd_snapshot_reader *reader, void *to,
                                size_t n_bytes, struct vxd_err *err)
{
    size_t n_read = 0;
    enum vxd_status status =
        vxd_snapshot_read(reader, VXD_SNAPSHOT_IMAGE, to, n_bytes, &n_read, err);

    return status != VXD_OK || n_read == n_bytes
               ? status
               : vxd_fail(err, VXD_DATA_LOSS, NULL, "a snapshot's entries are cut off");
}

static enum vxd_status read_entries(struct vxd_snapshot_reader *reader,
                                    struct vxd_hashmap_image *image, struct vxd_err *err)
{
    size_t n = image->n_entries;
    uint8_t more;
    size_t n_more = 0;
    enum vxd_status status;

    VXD_TRY(read_all(reader, image->indices.ptr, n * sizeof(int32_t), err));
    VXD_TRY(read_all(reader, image->keys.ptr, n * key_bytes(&image->spec), err));
    for (int i = 0; i < image->spec.n_values; i++) {
        VXD_TRY(
            read_all(reader, image->values[i].ptr, n * row_bytes(&image->spec, i), err));
    }
    VXD_TRY(vxd_snapshot_read(reader, VXD_SNAPSHOT_IMAGE, &more, 1, &n_more, err));
    if (n_more > 0) {
        status = vxd_fail(err, VXD_DATA_LOSS, NULL, "more follows a snapshot's entries");
    }
out:
    return status;
}

enum vxd_status vxd_registry_read_image(struct vxd_snapshot_reader *reader,
                                        const struct vxd_hashmap_spec *of,
                                        struct vxd_queue *queue, struct vxd_hashmap **out,
                                        struct vxd_err *err)
{
    struct vxd_hashmap_spec spec = *of;
    struct vxd_hashmap_image image = {0};
    uint64_t head[3];
    enum vxd_status status;

    *out = NULL;
    VXD_TRY(read_all(reader, head, sizeof head, err));
    /* More entries than the file can have would take memory that the start needs. */
    if (head[1] > VXD_HASHMAP_MAX_CAPACITY || head[2] > head[1] ||
        head[2] > vxd_snapshot_get_size(reader) / (sizeof(int32_t) + key_bytes(&spec))) {
        VXD_TRY(vxd_fail(err, VXD_DATA_LOSS, NULL,
                         "a snapshot claims %" PRIu64
                         " entries and a capacity of %" PRIu64
                         ", for which it has not the bytes",
                         head[2], head[1]));
    }
    spec.capacity = (size_t)head[1];
    spec.max_bytes = 0;
    VXD_TRY(vxd_hashmap_image_alloc(vxd_queue_context(queue), &spec, (size_t)head[2],
                                    &image, err));
    image.erase_epoch = head[0];
    VXD_TRY(read_entries(reader, &image, err));
    status = vxd_hashmap_import(queue, &image, out, err);
    if (status == VXD_INVALID_ARGUMENT) {
        status = err != NULL ? (err->code = VXD_DATA_LOSS) : VXD_DATA_LOSS;
    }
out:
    vxd_hashmap_image_free(&image);
    return status;
}
