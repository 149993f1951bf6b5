// SPDX-License-Identifier: Apache-2.0
/* Maps as objects: specs, memory, size, growth and statistics. */
#include "gpu/hash/hash.h"

#include <stdlib.h>

#include "gpu/hash/hash_internal.h"

/* A buffer of a map and its bytes at some capacity. */
struct allocation {
    struct vxd_buffer *buffer;
    size_t n_bytes;
};

#define MAX_ALLOCATIONS (5 + VXD_HASHMAP_MAX_VALUES)
/* A growth copies so much between two checks. */
#define EXTEND_BYTES ((size_t)4 << 20)

void vxd_hashmap_key_bits(int n_components, int bits[VXD_HASHMAP_MAX_COMPONENTS])
{
    for (int c = 0; c < n_components; c++) {
        bits[c] = 63 / n_components;
    }
    if (n_components == 4) { /* a batch number before three coordinates */
        bits[0] = 12;
        bits[1] = bits[2] = bits[3] = 17;
    }
}

static enum vxd_status check_values(const struct vxd_hashmap_spec *spec,
                                    struct vxd_err *err)
{
    for (int i = 0; i < spec->n_values; i++) {
        size_t element_bytes = vxd_dtype_bytes(spec->values[i].dtype);
        size_t most;
        char field[40];

        if (element_bytes == 0) {
            (void)snprintf(field, sizeof field, "values[%d].dtype", i);
            return vxd_fail(err, VXD_INVALID_ARGUMENT, field, "%d is no element type",
                            (int)spec->values[i].dtype);
        }
        most = VXD_HASHMAP_MAX_ROW_BYTES / element_bytes;
        if (spec->values[i].n_elements < 1 || spec->values[i].n_elements > most) {
            (void)snprintf(field, sizeof field, "values[%d].n_elements", i);
            return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                            "%u elements a row, must be 1 to %zu",
                            spec->values[i].n_elements, most);
        }
    }
    return VXD_OK;
}

enum vxd_status vxd_hashmap_check_spec(const struct vxd_hashmap_spec *spec,
                                       struct vxd_err *err)
{
    if (spec->key_dtype != VXD_INT16 && spec->key_dtype != VXD_INT32 &&
        spec->key_dtype != VXD_INT64) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "key_dtype",
                        "%d; keys are int16, int32 or int64", (int)spec->key_dtype);
    }
    if (spec->n_components < 1 || spec->n_components > VXD_HASHMAP_MAX_COMPONENTS) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "n_components", "%d, must be 1 to %d",
                        spec->n_components, VXD_HASHMAP_MAX_COMPONENTS);
    }
    if (spec->n_values < 0 || spec->n_values > VXD_HASHMAP_MAX_VALUES) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "n_values", "%d, must be 0 to %d",
                        spec->n_values, VXD_HASHMAP_MAX_VALUES);
    }
    if (spec->index != VXD_HASH_OPEN && spec->index != VXD_HASH_SLAB) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "index",
                        "%d is no index; 0 is OPEN, 1 SLAB", (int)spec->index);
    }
    if (spec->growth_percent < 0 || spec->growth_percent > 100) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "growth_percent",
                        "%d, must be 0 to 100", spec->growth_percent);
    }
    if (spec->capacity > VXD_HASHMAP_MAX_CAPACITY) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "capacity",
                        "%zu entries, must be at most %zu", spec->capacity,
                        VXD_HASHMAP_MAX_CAPACITY);
    }
    return check_values(spec, err);
}

/* NULL: the context was not given this index. */
static const struct vxd_hash_ops *ops_of(const struct vxd_context *context,
                                         enum vxd_hash_index index)
{
    const struct vxd_hash_indexes *indexes = context->extras.indexes;

    if (index != VXD_HASH_OPEN) {
        return indexes == NULL        ? NULL
               : VXD_ON_CUDA(context) ? indexes->of[index].cuda
                                      : indexes->of[index].cpu;
    }
#if defined(VXD_WITH_CUDA)
    if (VXD_ON_CUDA(context)) {
        return &vxd_hash_open_cuda;
    }
#endif
    return &vxd_hash_open_cpu;
}

static enum vxd_status check_index(const struct vxd_context *context,
                                   enum vxd_hash_index index, struct vxd_err *err)
{
    return ops_of(context, index) != NULL
               ? VXD_OK
               : vxd_fail(
                     err, VXD_UNIMPLEMENTED, "index",
                     "\"slab\" is the index of a paper, which this context was not "
                     "given (builds with VOXELD_PAPER=OFF leave it out); known here: "
                     "open");
}

/* Fills the fields that follow from a valid spec; allocates nothing. */
static void describe(struct vxd_hashmap *map, struct vxd_context *context,
                     const struct vxd_hashmap_spec *spec)
{
    *map = (struct vxd_hashmap){
        .context = context,
        .spec = *spec,
        .ops = ops_of(context, spec->index),
        .capacity = spec->capacity,
    };
    map->form.n_components = spec->n_components;
    map->form.component_bytes = (int)vxd_dtype_bytes(spec->key_dtype);
    map->form.row_bytes = map->form.component_bytes * spec->n_components;
    vxd_hashmap_key_bits(spec->n_components, map->form.bits);
    for (int i = 0; i < spec->n_values; i++) {
        map->row_bytes[i] =
            spec->values[i].n_elements * vxd_dtype_bytes(spec->values[i].dtype);
    }
}

/* Lists the buffers of a map with their bytes at its capacity and returns how many
 * there are; *total_bytes is SIZE_MAX on overflow. */
static int list_allocations(struct vxd_hashmap *map,
                            struct allocation allocations[MAX_ALLOCATIONS],
                            size_t *total_bytes)
{
    size_t index_bytes = map->ops->index_bytes(&map->form, map->capacity);
    size_t live_words = map->capacity / 32 + (map->capacity % 32 != 0 ? 1 : 0);
    int n_allocations = 0;

    /* At most 2^30 rows of 2^16 bytes each: only the index can overflow, and
     * index_bytes reports it. */
    allocations[n_allocations++] =
        (struct allocation){&map->counters, sizeof(struct vxd_hash_counters)};
    allocations[n_allocations++] =
        (struct allocation){&map->keys, map->capacity * (size_t)map->form.row_bytes};
    for (int i = 0; i < map->spec.n_values; i++) {
        allocations[n_allocations++] =
            (struct allocation){&map->values[i], map->capacity * map->row_bytes[i]};
    }
    allocations[n_allocations++] =
        (struct allocation){&map->live, live_words * sizeof(uint32_t)};
    allocations[n_allocations++] =
        (struct allocation){&map->heap, map->capacity * sizeof(uint32_t)};
    allocations[n_allocations++] = (struct allocation){&map->index, index_bytes};
    *total_bytes = 0;
    for (int i = 0; i < n_allocations; i++) {
        if (index_bytes == 0 ||
            !vxd_size_add(*total_bytes, allocations[i].n_bytes, total_bytes)) {
            *total_bytes = SIZE_MAX;
            break;
        }
    }
    return n_allocations;
}

static void free_allocations(struct vxd_queue *queue, struct vxd_hashmap *map)
{
    struct allocation allocations[MAX_ALLOCATIONS];
    size_t total_bytes;
    int n_allocations = list_allocations(map, allocations, &total_bytes);

    for (int i = n_allocations - 1; i >= 0; i--) {
        vxd_device_free(queue, allocations[i].buffer);
    }
}

/* Allocates buffers for the map's capacity, contents undefined; `taken_bytes` of
 * max_bytes are already in use. On failure nothing stays allocated. */
static enum vxd_status alloc_all(struct vxd_queue *queue, struct vxd_hashmap *map,
                                 size_t taken_bytes, struct vxd_err *err)
{
    struct allocation allocations[MAX_ALLOCATIONS];
    size_t total_bytes;
    size_t most = map->spec.max_bytes;
    int n_allocations = list_allocations(map, allocations, &total_bytes);
    int n_done = 0;
    enum vxd_status status = VXD_OK;

    if (total_bytes == SIZE_MAX ||
        (most != 0 && (taken_bytes > most || total_bytes > most - taken_bytes))) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "max_bytes",
                        "%zu entries take %zu bytes beside the %zu in use; max_bytes is "
                        "%zu",
                        map->capacity, total_bytes, taken_bytes, most);
    }
    for (; n_done < n_allocations; n_done++) {
        VXD_TRY(vxd_device_alloc(queue, allocations[n_done].n_bytes,
                                 allocations[n_done].buffer, err));
    }
out:
    while (status != VXD_OK && n_done > 0) {
        n_done--;
        vxd_device_free(queue, allocations[n_done].buffer);
    }
    return status;
}

size_t vxd_hashmap_bytes(const struct vxd_context *context,
                         const struct vxd_hashmap_spec *spec)
{
    struct vxd_hashmap map;
    struct allocation allocations[MAX_ALLOCATIONS];
    size_t total_bytes;

    if (vxd_hashmap_check_spec(spec, NULL) != VXD_OK ||
        check_index(context, spec->index, NULL) != VXD_OK) {
        return 0;
    }
    /* The function reads the context's backend only. */
    describe(&map, (struct vxd_context *)(uintptr_t)context, spec);
    (void)list_allocations(&map, allocations, &total_bytes);
    return total_bytes;
}

enum vxd_status vxd_hashmap_rebuild_heap(struct vxd_queue *queue, struct vxd_hashmap *map,
                                         struct vxd_err *err)
{
    struct vxd_buffer scratch = {NULL, 0, VXD_SPACE_DEVICE};
    size_t n_bytes =
        VXD_BACKEND_FN(queue, vxd_hash_heap_scratch_bytes)(queue, map->capacity);
    enum vxd_status status;

    VXD_TRY(vxd_device_alloc(queue, n_bytes, &scratch, err));
    VXD_TRY(VXD_BACKEND_FN(queue, vxd_hash_heap_rebuild)(queue, map, scratch.ptr, n_bytes,
                                                         err));
out:
    vxd_device_free(queue, &scratch);
    return status;
}

enum vxd_status vxd_hashmap_rebuild_index(struct vxd_queue *queue,
                                          struct vxd_hashmap *map, struct vxd_err *err)
{
    struct vxd_buffer scratch = {NULL, 0, VXD_SPACE_DEVICE};
    size_t n_bytes = map->ops->scratch_bytes(queue, map, VXD_CALL_REBUILD, VXD_HASH_ANY,
                                             map->capacity);
    enum vxd_status status;

    VXD_TRY(vxd_device_alloc(queue, n_bytes, &scratch, err));
    VXD_TRY(map->ops->rebuild(queue, map, scratch.ptr, n_bytes, err));
out:
    vxd_device_free(queue, &scratch);
    return status;
}

enum vxd_status vxd_hashmap_create(struct vxd_queue *queue,
                                   const struct vxd_hashmap_spec *spec,
                                   struct vxd_hashmap **out, struct vxd_err *err)
{
    struct vxd_hashmap *map = NULL;
    enum vxd_status status;

    *out = NULL;
    VXD_TRY(vxd_hashmap_check_spec(spec, err));
    VXD_TRY(check_index(queue->context, spec->index, err));
    map = calloc(1, sizeof *map);
    if (map == NULL) {
        (void)vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a hash map");
        return VXD_RESOURCE_EXHAUSTED;
    }
    describe(map, queue->context, spec);
    VXD_TRY(alloc_all(queue, map, 0, err));
    VXD_TRY(vxd_queue_fill(queue, map->counters.ptr, 0, map->counters.n_bytes, err));
    VXD_TRY(vxd_hashmap_clear(queue, map, err));
    map->erase_epoch = 0;
    *out = map;
    return VXD_OK;
out:
    vxd_hashmap_destroy(queue, map);
    return status;
}

void vxd_hashmap_destroy(struct vxd_queue *queue, struct vxd_hashmap *map)
{
    if (map != NULL) {
        free_allocations(queue, map);
        free(map);
    }
}

const struct vxd_hashmap_spec *vxd_hashmap_get_spec(const struct vxd_hashmap *map)
{
    return &map->spec;
}

size_t vxd_hashmap_capacity(const struct vxd_hashmap *map)
{
    return map->capacity;
}

size_t vxd_hashmap_n_bytes(const struct vxd_hashmap *map)
{
    size_t n_bytes = map->counters.n_bytes + map->keys.n_bytes + map->live.n_bytes +
                     map->heap.n_bytes + map->index.n_bytes;

    for (int i = 0; i < map->spec.n_values; i++) {
        n_bytes += map->values[i].n_bytes;
    }
    return n_bytes;
}

void vxd_hashmap_set_growth(struct vxd_hashmap *map, int percent)
{
    map->spec.growth_percent = percent;
}

void vxd_hashmap_set_check(struct vxd_hashmap *map,
                           enum vxd_status (*check)(void *user, struct vxd_err *err),
                           void *user)
{
    map->check = check;
    map->check_user = user;
}

void vxd_hashmap_set_max_bytes(struct vxd_hashmap *map, size_t max_bytes)
{
    map->spec.max_bytes = max_bytes;
}

size_t vxd_hashmap_size_bound(const struct vxd_hashmap *map)
{
    return map->size_bound;
}

uint64_t vxd_hashmap_erase_epoch(const struct vxd_hashmap *map)
{
    return map->erase_epoch;
}

const void *vxd_hashmap_keys(const struct vxd_hashmap *map)
{
    return map->keys.ptr;
}

void *vxd_hashmap_values(const struct vxd_hashmap *map, int array)
{
    return array >= 0 && array < map->spec.n_values ? map->values[array].ptr : NULL;
}

enum vxd_status vxd_hashmap_read_size(struct vxd_queue *queue,
                                      const struct vxd_hashmap *map, size_t *n_entries,
                                      struct vxd_err *err)
{
    struct vxd_hash_counters counters;
    enum vxd_status status;
    enum vxd_status waited;

    status = vxd_queue_copy(queue, &counters, map->counters.ptr, sizeof counters, err);
    waited = vxd_queue_wait(queue, status == VXD_OK ? err : NULL);
    if (status == VXD_OK) {
        status = waited;
    }
    if (status == VXD_OK) {
        *n_entries = counters.n_live;
    }
    return status;
}

enum vxd_status vxd_hashmap_size(struct vxd_queue *queue, struct vxd_hashmap *map,
                                 size_t *n_entries, struct vxd_err *err)
{
    enum vxd_status status = vxd_hashmap_read_size(queue, map, n_entries, err);

    if (status == VXD_OK) {
        map->size_bound = *n_entries;
    }
    return status;
}

/* Queues the copy of a buffer's rows into a larger one, followed by zeros: in pieces, if the map
 * has a check, each of which it waits for. */
static enum vxd_status extend(struct vxd_queue *queue, const struct vxd_hashmap *map,
                              const struct vxd_buffer *from, const struct vxd_buffer *to,
                              struct vxd_err *err)
{
    size_t piece = map->check != NULL ? EXTEND_BYTES : SIZE_MAX;
    size_t end;
    enum vxd_status status = VXD_OK;

    for (size_t at = 0; at < to->n_bytes; at = end) {
        bool copies = at < from->n_bytes;

        end = copies ? from->n_bytes : to->n_bytes;
        end = end - at > piece ? at + piece : end;
        VXD_TRY(copies ? vxd_queue_copy(queue, (char *)to->ptr + at,
                                        (const char *)from->ptr + at, end - at, err)
                       : vxd_queue_fill(queue, (char *)to->ptr + at, 0, end - at, err));
        if (map->check != NULL) {
            VXD_TRY(vxd_queue_wait(queue, err));
            VXD_TRY(map->check(map->check_user, err));
        }
    }
out:
    return status;
}

/* Makes the new map completely beside the old one, and swaps them only then. */
static enum vxd_status grow(struct vxd_queue *queue, struct vxd_hashmap *map,
                            size_t capacity, struct vxd_err *err)
{
    struct vxd_hashmap grown;
    enum vxd_status status;

    describe(&grown, map->context, &map->spec);
    grown.capacity = capacity;
    grown.size_bound = map->size_bound;
    grown.erase_epoch = map->erase_epoch;
    grown.check = map->check;
    grown.check_user = map->check_user;
    VXD_TRY(alloc_all(queue, &grown, vxd_hashmap_n_bytes(map), err));
    VXD_TRY(extend(queue, map, &map->counters, &grown.counters, err));
    VXD_TRY(vxd_queue_copy(queue, grown.keys.ptr, map->keys.ptr, map->keys.n_bytes, err));
    for (int i = 0; i < map->spec.n_values; i++) {
        VXD_TRY(extend(queue, map, &map->values[i], &grown.values[i], err));
    }
    VXD_TRY(extend(queue, map, &map->live, &grown.live, err));
    VXD_TRY(vxd_hashmap_rebuild_heap(queue, &grown, err));
    VXD_TRY(vxd_hashmap_rebuild_index(queue, &grown, err));
    free_allocations(queue, map);
    *map = grown;
    return VXD_OK;
out:
    free_allocations(queue, &grown);
    return status;
}

enum vxd_status vxd_hashmap_reserve(struct vxd_queue *queue, struct vxd_hashmap *map,
                                    size_t capacity, struct vxd_err *err)
{
    if (capacity > VXD_HASHMAP_MAX_CAPACITY) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "capacity",
                        "%zu entries, must be at most %zu", capacity,
                        VXD_HASHMAP_MAX_CAPACITY);
    }
    return capacity <= map->capacity ? VXD_OK : grow(queue, map, capacity, err);
}

enum vxd_status vxd_hashmap_count_flags(struct vxd_queue *queue, const uint8_t *flags,
                                        size_t n, size_t *count, struct vxd_err *err)
{
    struct vxd_buffer host = {NULL, 0, VXD_SPACE_HOST};
    const void *bytes = NULL;
    enum vxd_status status;

    *count = 0;
    VXD_TRY(vxd_download(queue, flags, n, &host, &bytes, err));
    VXD_TRY(vxd_queue_wait(queue, err));
    for (size_t i = 0; i < n; i++) {
        *count += ((const uint8_t *)bytes)[i];
    }
out:
    vxd_host_free(queue->context, &host);
    return status;
}

/* Inserts the keys into a temporary set, whose entries get the numbers 0, 1, ..., so
 * that its key rows are the distinct keys. Those that the map does not have are new. */
static enum vxd_status count_new(struct vxd_queue *queue, const struct vxd_hashmap *map,
                                 const void *keys, size_t n, size_t *n_new,
                                 struct vxd_err *err)
{
    struct vxd_hashmap_spec spec = {.key_dtype = map->spec.key_dtype,
                                    .n_components = map->spec.n_components,
                                    .index = VXD_HASH_OPEN,
                                    .capacity = n};
    struct vxd_hashmap_insert_args insert = {
        .keys = keys, .n = n, .order = VXD_HASH_FIRST};
    struct vxd_hashmap *set = NULL;
    struct vxd_buffer found = {NULL, 0, VXD_SPACE_DEVICE};
    size_t n_distinct = 0;
    size_t n_found = 0;
    enum vxd_status status;

    if (n > VXD_HASHMAP_MAX_CAPACITY) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "the new ones among %zu keys cannot be counted, at most %zu can",
                        n, VXD_HASHMAP_MAX_CAPACITY);
    }
    VXD_TRY(vxd_hashmap_create(queue, &spec, &set, err));
    VXD_TRY(vxd_hashmap_insert(queue, set, &insert, err));
    VXD_TRY(vxd_hashmap_read_size(queue, set, &n_distinct, err));
    VXD_TRY(vxd_device_alloc(queue, n_distinct, &found, err));
    VXD_TRY(vxd_hashmap_find(queue, map, vxd_hashmap_keys(set), n_distinct, NULL,
                             found.ptr, err));
    VXD_TRY(vxd_hashmap_count_flags(queue, found.ptr, n_distinct, &n_found, err));
    *n_new = n_distinct - n_found;
out:
    vxd_device_free(queue, &found);
    vxd_hashmap_destroy(queue, set);
    return status;
}

enum vxd_status vxd_hashmap_prepare(struct vxd_queue *queue, struct vxd_hashmap *map,
                                    const void *keys, size_t n, size_t *n_new,
                                    struct vxd_err *err)
{
    size_t n_entries;
    size_t needed;
    size_t percent = map->spec.growth_percent > 0 ? (size_t)map->spec.growth_percent : 50;
    size_t capacity = map->capacity + map->capacity * percent / 100;
    enum vxd_status status;

    VXD_TRY(vxd_hashmap_check_array(n, keys, "keys", err));
    *n_new = n;
    if (map->size_bound + n <= map->capacity) {
        return VXD_OK;
    }
    VXD_TRY(vxd_hashmap_size(queue, map, &n_entries, err));
    if (n_entries + n <= map->capacity) {
        return VXD_OK;
    }
    VXD_TRY(count_new(queue, map, keys, n, n_new, err));
    needed = n_entries + *n_new;
    if (*n_new == 0) {
        *n_new = VXD_NONE_NEW;
    }
    if (needed <= map->capacity) {
        return VXD_OK;
    }
    if (needed > VXD_HASHMAP_MAX_CAPACITY) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "%zu entries and %zu new ones; a map holds at most %zu",
                        n_entries, *n_new, VXD_HASHMAP_MAX_CAPACITY);
    }
    if (capacity < needed) {
        capacity = needed;
    } else if (capacity > VXD_HASHMAP_MAX_CAPACITY) {
        capacity = VXD_HASHMAP_MAX_CAPACITY;
    }
    VXD_TRY(grow(queue, map, capacity, err));
    status = vxd_queue_wait(queue, err);
out:
    return status;
}

enum vxd_status vxd_hashmap_get_stats(struct vxd_queue *queue,
                                      const struct vxd_hashmap *map,
                                      struct vxd_hashmap_stats *out, struct vxd_err *err)
{
    size_t n_places = map->ops->n_places(map, map->capacity);
    struct vxd_buffer device = {NULL, 0, VXD_SPACE_DEVICE};
    struct vxd_buffer host = {NULL, 0, VXD_SPACE_HOST};
    const void *copy = NULL;
    const uint64_t *probes;
    enum vxd_status status;

    *out = (struct vxd_hashmap_stats){.capacity = map->capacity,
                                      .n_bytes = vxd_hashmap_n_bytes(map)};
    out->index_bytes = out->n_bytes - map->keys.n_bytes;
    for (int i = 0; i < map->spec.n_values; i++) {
        out->index_bytes -= map->values[i].n_bytes;
    }
    VXD_TRY(vxd_device_alloc(queue, (VXD_PROBE_BINS + 2) * sizeof *probes, &device, err));
    VXD_TRY(map->ops->probes(queue, map, device.ptr, err));
    VXD_TRY(vxd_download(queue, device.ptr, device.n_bytes, &host, &copy, err));
    /* Waits for the download too. */
    VXD_TRY(vxd_hashmap_read_size(queue, map, &out->n_entries, err));
    probes = copy;
    for (int i = 0; i < VXD_PROBE_BINS; i++) {
        out->probes[i] = probes[i];
    }
    out->max_probes = (uint32_t)probes[VXD_PROBE_BINS + 1];
    if (out->n_entries > 0) {
        out->load = (double)out->n_entries / (double)n_places;
        out->bytes_per_key = (double)out->index_bytes / (double)out->n_entries;
        out->mean_probes = (double)probes[VXD_PROBE_BINS] / (double)out->n_entries;
    }
out:
    vxd_host_free(queue->context, &host);
    vxd_device_free(queue, &device);
    return status;
}
