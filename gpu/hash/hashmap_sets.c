// SPDX-License-Identifier: Apache-2.0
/* Set operations, built from the operations on maps. The device decides which entries
 * of each map are taken (find), and the host lists them. Their rows are then gathered
 * and inserted in that order, which gives the numbers that the header promises. */
#include "gpu/hash/hash_internal.h"

/* Entries gathered at a time; this bounds the scratch. */
#define CHUNK ((size_t)1 << 20)

/* Which entries of a map are taken. */
enum choice {
    CHOOSE_ALL,
    CHOOSE_FOUND, /* keys that the other map has too */
    CHOOSE_NOT_FOUND
};

/* Numbers of the chosen entries, ascending, in host memory. */
struct list {
    struct vxd_buffer numbers;
    size_t n;
};

static bool specs_agree(const struct vxd_hashmap_spec *a,
                        const struct vxd_hashmap_spec *b)
{
    if (a->key_dtype != b->key_dtype || a->n_components != b->n_components ||
        a->n_values != b->n_values) {
        return false;
    }
    for (int i = 0; i < a->n_values; i++) {
        if (a->values[i].dtype != b->values[i].dtype ||
            a->values[i].n_elements != b->values[i].n_elements) {
            return false;
        }
    }
    return true;
}

static enum vxd_status check(const struct vxd_queue *queue, const struct vxd_hashmap *a,
                             const struct vxd_hashmap *b, struct vxd_err *err)
{
    if (!specs_agree(&a->spec, &b->spec)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "b",
                        "keys or value arrays differ from those of a");
    }
    if (a->context != queue->context || b->context != queue->context) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "b",
                        "a, b and the queue are not of one context");
    }
    return VXD_OK;
}

/* Keeps of n numbers those whose key the other map has, or those whose key it lacks. */
static enum vxd_status keep(struct vxd_queue *queue, const struct vxd_hashmap *map,
                            const struct vxd_hashmap *other, enum choice choice,
                            const int32_t *d_numbers, size_t n, struct list *list,
                            struct vxd_err *err)
{
    size_t chunk = n < CHUNK ? n : CHUNK;
    struct vxd_buffer keys = {NULL, 0, VXD_SPACE_DEVICE};
    struct vxd_buffer found = {NULL, 0, VXD_SPACE_DEVICE};
    struct vxd_buffer host = {NULL, 0, VXD_SPACE_HOST};
    int32_t *numbers = list->numbers.ptr;
    const uint8_t *flags;
    enum vxd_status status;

    VXD_TRY(vxd_device_alloc(queue, chunk * (size_t)map->form.row_bytes, &keys, err));
    VXD_TRY(vxd_device_alloc(queue, n, &found, err));
    VXD_TRY(vxd_host_alloc(queue->context, n, &host, err));
    for (size_t i = 0; i < n; i += chunk) {
        size_t n_now = n - i < chunk ? n - i : chunk;

        VXD_TRY(vxd_hashmap_gather(queue, map, d_numbers + i, n_now, keys.ptr, NULL, NULL,
                                   err));
        VXD_TRY(vxd_hashmap_find(queue, other, keys.ptr, n_now, NULL,
                                 (uint8_t *)found.ptr + i, err));
    }
    VXD_TRY(vxd_queue_copy(queue, host.ptr, found.ptr, n, err));
    VXD_TRY(vxd_queue_wait(queue, err));
    flags = host.ptr;
    list->n = 0;
    for (size_t i = 0; i < n; i++) {
        numbers[list->n] = numbers[i];
        list->n += (flags[i] != 0) == (choice == CHOOSE_FOUND) ? 1 : 0;
    }
out:
    if (status != VXD_OK) {
        (void)vxd_queue_wait(queue,
                             NULL); /* the copies use the host's arrays until then */
    }
    vxd_host_free(queue->context, &host);
    vxd_device_free(queue, &found);
    vxd_device_free(queue, &keys);
    return status;
}

/* The caller frees the numbers of the list, on failure too. */
static enum vxd_status choose(struct vxd_queue *queue, const struct vxd_hashmap *map,
                              const struct vxd_hashmap *other, enum choice choice,
                              struct list *list, struct vxd_err *err)
{
    struct vxd_buffer numbers = {NULL, 0, VXD_SPACE_DEVICE};
    struct vxd_buffer count = {NULL, 0, VXD_SPACE_DEVICE};
    size_t n = 0;
    enum vxd_status status;

    VXD_TRY(vxd_hashmap_read_size(queue, map, &n, err));
    VXD_TRY(vxd_host_alloc(queue->context, n * sizeof(int32_t), &list->numbers, err));
    VXD_TRY(vxd_device_alloc(queue, map->size_bound * sizeof(int32_t), &numbers, err));
    VXD_TRY(vxd_device_alloc(queue, sizeof(uint32_t), &count, err));
    VXD_TRY(vxd_hashmap_active(queue, map, numbers.ptr, map->size_bound, count.ptr, err));
    VXD_TRY(
        vxd_queue_copy(queue, list->numbers.ptr, numbers.ptr, n * sizeof(int32_t), err));
    VXD_TRY(vxd_queue_wait(queue, err));
    list->n = n;
    if (choice != CHOOSE_ALL && n > 0) {
        VXD_TRY(keep(queue, map, other, choice, numbers.ptr, n, list, err));
    }
out:
    if (status != VXD_OK) {
        (void)vxd_queue_wait(queue, NULL); /* the copy uses the host's array until then */
    }
    vxd_device_free(queue, &count);
    vxd_device_free(queue, &numbers);
    return status;
}

/* Inserts the listed entries of a map into another, in order; the other has none of
 * them. */
static enum vxd_status append(struct vxd_queue *queue, const struct vxd_hashmap *from,
                              const struct list *list, struct vxd_hashmap *to,
                              struct vxd_err *err)
{
    size_t chunk = list->n < CHUNK ? list->n : CHUNK;
    struct vxd_buffer numbers = {NULL, 0, VXD_SPACE_DEVICE};
    struct vxd_buffer keys = {NULL, 0, VXD_SPACE_DEVICE};
    struct vxd_buffer values[VXD_HASHMAP_MAX_VALUES] = {{NULL, 0, VXD_SPACE_DEVICE}};
    void *rows[VXD_HASHMAP_MAX_VALUES] = {NULL};
    const void *const_rows[VXD_HASHMAP_MAX_VALUES] = {NULL};
    const void *all = NULL;
    enum vxd_status status;

    VXD_TRY(vxd_upload(queue, list->numbers.ptr, list->n * sizeof(int32_t), &numbers,
                       &all, err));
    VXD_TRY(vxd_device_alloc(queue, chunk * (size_t)from->form.row_bytes, &keys, err));
    for (int i = 0; i < from->spec.n_values; i++) {
        VXD_TRY(vxd_device_alloc(queue, chunk * from->row_bytes[i], &values[i], err));
        rows[i] = values[i].ptr;
        const_rows[i] = values[i].ptr;
    }
    for (size_t i = 0; i < list->n; i += chunk) {
        struct vxd_hashmap_insert_args insert = {.keys = keys.ptr,
                                                 .n = list->n - i < chunk ? list->n - i
                                                                          : chunk,
                                                 .values = const_rows,
                                                 .order = VXD_HASH_FIRST};

        VXD_TRY(vxd_hashmap_gather(queue, from, (const int32_t *)all + i, insert.n,
                                   keys.ptr, rows, NULL, err));
        VXD_TRY(vxd_hashmap_insert(queue, to, &insert, err));
    }
out:
    for (int i = 0; i < from->spec.n_values; i++) {
        vxd_device_free(queue, &values[i]);
    }
    vxd_device_free(queue, &keys);
    vxd_device_free(queue, &numbers);
    return status;
}

/* Makes a new map of the chosen entries of a and then, if b_too, of those that only b
 * has. */
static enum vxd_status combine(struct vxd_queue *queue, const struct vxd_hashmap *a,
                               enum choice choice, const struct vxd_hashmap *b,
                               bool b_too, struct vxd_hashmap **out, struct vxd_err *err)
{
    struct vxd_hashmap_spec spec = a->spec;
    struct list from_a = {{NULL, 0, VXD_SPACE_HOST}, 0};
    struct list from_b = {{NULL, 0, VXD_SPACE_HOST}, 0};
    struct vxd_hashmap *map = NULL;
    enum vxd_status status;

    *out = NULL;
    VXD_TRY(check(queue, a, b, err));
    VXD_TRY(choose(queue, a, b, choice, &from_a, err));
    if (b_too) {
        VXD_TRY(choose(queue, b, a, CHOOSE_NOT_FOUND, &from_b, err));
    }
    spec.capacity = from_a.n + from_b.n;
    if (spec.capacity > VXD_HASHMAP_MAX_CAPACITY) {
        status = vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                          "%zu entries, a map holds at most %zu", spec.capacity,
                          VXD_HASHMAP_MAX_CAPACITY);
        goto out;
    }
    VXD_TRY(vxd_hashmap_create(queue, &spec, &map, err));
    VXD_TRY(append(queue, a, &from_a, map, err));
    VXD_TRY(append(queue, b, &from_b, map, err));
    VXD_TRY(vxd_queue_wait(queue, err));
    *out = map;
out:
    if (status != VXD_OK) {
        vxd_hashmap_destroy(queue, map);
        (void)vxd_queue_wait(queue, NULL); /* the copies use the lists until then */
    }
    vxd_host_free(queue->context, &from_b.numbers);
    vxd_host_free(queue->context, &from_a.numbers);
    return status;
}

enum vxd_status vxd_hashmap_union(struct vxd_queue *queue, const struct vxd_hashmap *a,
                                  const struct vxd_hashmap *b, struct vxd_hashmap **out,
                                  struct vxd_err *err)
{
    return combine(queue, a, CHOOSE_ALL, b, true, out, err);
}

enum vxd_status vxd_hashmap_intersection(struct vxd_queue *queue,
                                         const struct vxd_hashmap *a,
                                         const struct vxd_hashmap *b,
                                         struct vxd_hashmap **out, struct vxd_err *err)
{
    return combine(queue, a, CHOOSE_FOUND, b, false, out, err);
}

enum vxd_status vxd_hashmap_difference(struct vxd_queue *queue,
                                       const struct vxd_hashmap *a,
                                       const struct vxd_hashmap *b,
                                       struct vxd_hashmap **out, struct vxd_err *err)
{
    return combine(queue, a, CHOOSE_NOT_FOUND, b, false, out, err);
}
