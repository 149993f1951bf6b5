// SPDX-License-Identifier: Apache-2.0
/* Volumes as objects: specs, memory, the block table, and access for extraction. */
#include "gpu/volume/volume.h"

#include <stdlib.h>

#include "gpu/volume/volume_internal.h"

#define MIN_VOXEL_M 1e-4
#define MAX_VOXEL_M 100.0
#define MAX_ORIGIN_M 1e9
#define MAX_TRUNCATION_BLOCKS 8
#define DEFAULT_MAX_WEIGHT 255.0
#define MAX_WEIGHT 65535.0
#define MIN_SLOTS ((size_t)64)

enum vxd_status vxd_volume_check_spec(const struct vxd_volume_spec *spec,
                                      struct vxd_err *err)
{
    double most = spec->voxel_size_m * spec->block_edge * MAX_TRUNCATION_BLOCKS;

    if (!(spec->voxel_size_m >= MIN_VOXEL_M && spec->voxel_size_m <= MAX_VOXEL_M)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "voxel_size_m",
                        "%g metres, must be %g to %g", spec->voxel_size_m, MIN_VOXEL_M,
                        MAX_VOXEL_M);
    }
    if (spec->block_edge != 8 && spec->block_edge != 16) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "block_edge",
                        "%d voxels, must be 8 or 16", spec->block_edge);
    }
    if (!(spec->truncation_m >= spec->voxel_size_m && spec->truncation_m <= most)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "truncation_m",
                        "%g metres, must be one voxel to %d blocks: %g to %g",
                        spec->truncation_m, MAX_TRUNCATION_BLOCKS, spec->voxel_size_m,
                        most);
    }
    for (int i = 0; i < 3; i++) {
        if (!(fabs(spec->origin_m[i]) <= MAX_ORIGIN_M)) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "origin_m",
                            "component %d is %g, must be within +-%g metres", i,
                            spec->origin_m[i], MAX_ORIGIN_M);
        }
    }
    if (spec->form != VXD_VOLUME_FULL && spec->form != VXD_VOLUME_COMPACT) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "form",
                        "%d is no form; 0 is FULL, 1 COMPACT", (int)spec->form);
    }
    if (spec->max_weight != 0 &&
        !(spec->max_weight >= 1 && spec->max_weight <= MAX_WEIGHT)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "max_weight", "%g, must be 1 to %g",
                        spec->max_weight, MAX_WEIGHT);
    }
    if (spec->capacity > VXD_HASHMAP_MAX_CAPACITY) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "capacity",
                        "%zu blocks, must be at most %zu", spec->capacity,
                        VXD_HASHMAP_MAX_CAPACITY);
    }
    return VXD_OK;
}

/* The spec with its defaults filled in. */
static struct vxd_volume_spec applied_spec(const struct vxd_volume_spec *spec)
{
    struct vxd_volume_spec applied = *spec;

    if (applied.max_weight == 0) {
        applied.max_weight = DEFAULT_MAX_WEIGHT;
    }
    if (applied.form == VXD_VOLUME_COMPACT) {
        applied.max_weight = applied.max_weight < 255 ? floor(applied.max_weight) : 255;
    }
    return applied;
}

static struct vxd_hashmap_spec map_spec(const struct vxd_volume_spec *spec)
{
    uint32_t n_voxels =
        (uint32_t)(spec->block_edge * spec->block_edge * spec->block_edge);
    bool is_compact = spec->form == VXD_VOLUME_COMPACT;
    struct vxd_hashmap_spec map = {.key_dtype = VXD_INT32,
                                   .n_components = 3,
                                   .n_values = 3 + (spec->has_colour ? 1 : 0) +
                                               (spec->has_labels ? 1 : 0) +
                                               (spec->has_albedo ? 1 : 0),
                                   .index = VXD_HASH_OPEN,
                                   .capacity = spec->capacity,
                                   .max_bytes = spec->max_bytes};

    map.values[VXD_VOLUME_STAMPS] = (struct vxd_hashmap_array){VXD_UINT64, 1};
    map.values[VXD_VOLUME_DISTANCES] =
        (struct vxd_hashmap_array){is_compact ? VXD_FLOAT16 : VXD_FLOAT32, n_voxels};
    map.values[VXD_VOLUME_WEIGHTS] =
        (struct vxd_hashmap_array){is_compact ? VXD_UINT8 : VXD_FLOAT32, n_voxels};
    for (int i = VXD_VOLUME_COLOURS; i < map.n_values; i++) { /* and labels, albedo */
        map.values[i] = (struct vxd_hashmap_array){VXD_UINT16, 4 * n_voxels};
    }
    return map;
}

size_t vxd_volume_block_bytes(const struct vxd_volume_spec *spec)
{
    struct vxd_hashmap_spec map = map_spec(spec);
    size_t n_bytes = 3 * sizeof(int32_t);

    if (vxd_volume_check_spec(spec, NULL) != VXD_OK) {
        return 0;
    }
    for (int i = 0; i < map.n_values; i++) {
        n_bytes += map.values[i].n_elements * vxd_dtype_bytes(map.values[i].dtype);
    }
    return n_bytes;
}

size_t vxd_volume_table_slots(size_t capacity)
{
    size_t n_slots = MIN_SLOTS;

    while (n_slots < 2 * capacity) {
        n_slots *= 2;
    }
    return n_slots;
}

enum vxd_status vxd_volume_rebuild_table(struct vxd_queue *queue,
                                         struct vxd_volume *volume, struct vxd_err *err)
{
    size_t capacity = vxd_hashmap_capacity(volume->map);
    size_t n_bytes = vxd_volume_table_slots(capacity) * sizeof(struct vxd_block_slot);
    struct vxd_buffer entries = {NULL, 0, VXD_SPACE_DEVICE};
    struct vxd_buffer count = {NULL, 0, VXD_SPACE_DEVICE};
    struct vxd_buffer table = {NULL, 0, VXD_SPACE_DEVICE};
    struct vxd_volume rebuilt = *volume;
    enum vxd_status status;

    VXD_TRY(vxd_device_alloc(queue, n_bytes, &table, err));
    VXD_TRY(vxd_device_alloc(queue, capacity * sizeof(int32_t), &entries, err));
    VXD_TRY(vxd_device_alloc(queue, sizeof(uint32_t), &count, err));
    VXD_TRY(vxd_queue_fill(queue, table.ptr, 0xff, n_bytes, err));
    rebuilt.table = table;
    if (volume->n_blocks > 0) {
        VXD_TRY(vxd_hashmap_active(queue, volume->map, entries.ptr, capacity, count.ptr,
                                   err));
        VXD_TRY(VXD_BACKEND_FN(queue, vxd_volume_table_add)(queue, &rebuilt, entries.ptr,
                                                            volume->n_blocks, err));
    }
    vxd_device_free(queue, &volume->table);
    volume->table = table;
    volume->table_is_stale = false;
    table = (struct vxd_buffer){NULL, 0, VXD_SPACE_DEVICE};
out:
    vxd_device_free(queue, &count);
    vxd_device_free(queue, &entries);
    vxd_device_free(queue, &table);
    return status;
}

bool vxd_volume_is_linked(const struct vxd_volume *volume)
{
    return volume->neighbours.ptr != NULL && volume->n_linked == volume->n_blocks &&
           volume->linked_removed_version == volume->removed_version &&
           volume->neighbours.n_bytes >=
               vxd_hashmap_capacity(volume->map) * 27 * sizeof(int32_t);
}

/* Memory for the neighbours of as many blocks as the volume has room for: also of an empty volume, so
 * that its bytes are known before there are blocks. */
static enum vxd_status reserve_neighbours(struct vxd_queue *queue,
                                          struct vxd_volume *volume)
{
    size_t n_bytes = vxd_hashmap_capacity(volume->map) * 27 * sizeof(int32_t);

    if (volume->neighbours.n_bytes >= n_bytes) {
        return VXD_OK;
    }
    vxd_device_free(queue, &volume->neighbours);
    volume->n_linked = 0;
    return vxd_device_alloc(queue, n_bytes, &volume->neighbours, NULL);
}

static enum vxd_status link_all(struct vxd_queue *queue, struct vxd_volume *volume)
{
    size_t capacity = vxd_hashmap_capacity(volume->map);
    struct vxd_link_call call = {.n = volume->n_blocks, .is_for_all = true};
    struct vxd_buffer entries = {NULL, 0, VXD_SPACE_DEVICE};
    struct vxd_buffer count = {NULL, 0, VXD_SPACE_DEVICE};
    enum vxd_status status;

    VXD_TRY(vxd_device_alloc(queue, capacity * sizeof(int32_t), &entries, NULL));
    VXD_TRY(vxd_device_alloc(queue, sizeof(uint32_t), &count, NULL));
    VXD_TRY(
        vxd_hashmap_active(queue, volume->map, entries.ptr, capacity, count.ptr, NULL));
    vxd_volume_get_view(volume, &call.view);
    call.neighbours = volume->neighbours.ptr;
    call.entries = entries.ptr;
    VXD_TRY(VXD_BACKEND_FN(queue, vxd_volume_link)(queue, &call, NULL));
out:
    vxd_device_free(queue, &count);
    vxd_device_free(queue, &entries);
    return status;
}

void vxd_volume_link(struct vxd_queue *queue, struct vxd_volume *volume,
                     const int32_t *entries, size_t n)
{
    struct vxd_link_call call = {.entries = entries, .n = n};
    bool are_others_linked;
    enum vxd_status status;

    if (reserve_neighbours(queue, volume) != VXD_OK || volume->n_blocks == 0 ||
        vxd_volume_is_linked(volume)) {
        return;
    }
    volume->n_linked += n;
    are_others_linked = vxd_volume_is_linked(volume);
    volume->n_linked = 0;
    if (are_others_linked) {
        vxd_volume_get_view(volume, &call.view);
        call.neighbours = volume->neighbours.ptr;
        status = VXD_BACKEND_FN(queue, vxd_volume_link)(queue, &call, NULL);
    } else {
        status = link_all(queue, volume);
    }
    if (status == VXD_OK) {
        volume->n_linked = volume->n_blocks;
        volume->linked_removed_version = volume->removed_version;
    }
}

enum vxd_status vxd_volume_mend(struct vxd_queue *queue, struct vxd_volume *volume,
                                struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(vxd_hashmap_size(queue, volume->map, &volume->n_blocks, err));
    VXD_TRY(vxd_volume_rebuild_table(queue, volume, err));
    volume->n_linked = 0;
    vxd_volume_link(queue, volume, NULL, 0);
out:
    return status;
}

/* Takes the map in any case. */
static enum vxd_status make_volume(struct vxd_queue *queue,
                                   const struct vxd_volume_spec *spec, uint64_t version,
                                   uint64_t removed_version, size_t n_blocks,
                                   struct vxd_hashmap *take_map, struct vxd_volume **out,
                                   struct vxd_err *err)
{
    struct vxd_volume *volume = calloc(1, sizeof *volume);
    enum vxd_status status;

    if (volume == NULL) {
        vxd_hashmap_destroy(queue, take_map);
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a volume");
    }
    volume->context = queue->context;
    volume->spec = applied_spec(spec);
    volume->map = take_map;
    volume->n_blocks = n_blocks;
    volume->version = version;
    volume->removed_version = removed_version;
    VXD_TRY(vxd_volume_rebuild_table(queue, volume, err));
    VXD_TRY(vxd_device_alloc(queue, 2 * sizeof(struct vxd_frame_counts),
                             &volume->frame_counts, err));
    vxd_volume_link(queue, volume, NULL, 0);
    VXD_TRY(vxd_queue_wait(queue, err)); /* another queue may use it next */
    *out = volume;
    return VXD_OK;
out:
    vxd_volume_destroy(queue, volume);
    return status;
}

enum vxd_status vxd_volume_create(struct vxd_queue *queue,
                                  const struct vxd_volume_spec *spec,
                                  struct vxd_volume **out, struct vxd_err *err)
{
    struct vxd_hashmap_spec map_of = map_spec(spec);
    struct vxd_hashmap *map = NULL;
    enum vxd_status status;

    *out = NULL;
    VXD_TRY(vxd_volume_check_spec(spec, err));
    VXD_TRY(vxd_hashmap_create(queue, &map_of, &map, err));
    VXD_TRY(make_volume(queue, spec, 0, 0, 0, map, out, err));
out:
    return status;
}

void vxd_volume_destroy(struct vxd_queue *queue, struct vxd_volume *volume)
{
    if (volume == NULL) {
        return;
    }
    vxd_volume_forget_frame(queue, volume);
    vxd_device_free(queue, &volume->frame_counts);
    vxd_device_free(queue, &volume->neighbours);
    vxd_device_free(queue, &volume->table);
    vxd_hashmap_destroy(queue, volume->map);
    free(volume);
}

enum vxd_status vxd_volume_copy(struct vxd_queue *from_queue,
                                const struct vxd_volume *from, struct vxd_queue *to_queue,
                                struct vxd_volume **out, struct vxd_err *err)
{
    struct vxd_hashmap *map = NULL;
    enum vxd_status status;

    *out = NULL;
    VXD_TRY(vxd_hashmap_copy(from_queue, from->map, to_queue, VXD_HASH_OPEN, &map, err));
    VXD_TRY(make_volume(to_queue, &from->spec, from->version, from->removed_version,
                        from->n_blocks, map, out, err));
out:
    return status;
}

static bool same_shape(const struct vxd_hashmap_spec *a, const struct vxd_hashmap_spec *b)
{
    bool same = a->key_dtype == b->key_dtype && a->n_components == b->n_components &&
                a->n_values == b->n_values;

    for (int i = 0; same && i < a->n_values; i++) {
        same = a->values[i].dtype == b->values[i].dtype &&
               a->values[i].n_elements == b->values[i].n_elements;
    }
    return same;
}

enum vxd_status vxd_volume_adopt(struct vxd_queue *queue,
                                 const struct vxd_volume_spec *spec, uint64_t version,
                                 uint64_t removed_version, struct vxd_hashmap *take_map,
                                 struct vxd_volume **out, struct vxd_err *err)
{
    struct vxd_hashmap_spec expected = map_spec(spec);
    size_t n_blocks = 0;
    enum vxd_status status;

    *out = NULL;
    VXD_TRY(vxd_volume_check_spec(spec, err));
    if (!same_shape(vxd_hashmap_get_spec(take_map), &expected)) {
        status =
            vxd_fail(err, VXD_INVALID_ARGUMENT, NULL,
                     "the map's keys or value arrays are not those of such a volume");
        goto out;
    }
    VXD_TRY(vxd_hashmap_size(queue, take_map, &n_blocks, err));
    return make_volume(queue, spec, version, removed_version, n_blocks, take_map, out,
                       err);
out:
    vxd_hashmap_destroy(queue, take_map);
    return status;
}

void vxd_volume_begin_version(struct vxd_volume *volume, uint64_t version)
{
    if (vxd_volume_is_linked(volume)) {
        volume->linked_removed_version = version;
    }
    volume->version = version;
    volume->removed_version = version;
}

void vxd_volume_get_info(const struct vxd_volume *volume, struct vxd_volume_info *out)
{
    *out = (struct vxd_volume_info){
        .spec = volume->spec,
        .n_blocks = volume->n_blocks,
        .capacity = vxd_hashmap_capacity(volume->map),
        .n_bytes = vxd_hashmap_n_bytes(volume->map) + volume->table.n_bytes +
                   volume->neighbours.n_bytes + volume->frame_tags.n_bytes +
                   volume->frame_entries.n_bytes + volume->frame_new.n_bytes +
                   volume->frame_counts.n_bytes + volume->frame_depth.n_bytes,
        .block_bytes = vxd_volume_block_bytes(&volume->spec),
        .version = volume->version,
        .removed_version = volume->removed_version,
    };
}

struct vxd_hashmap *vxd_volume_map(struct vxd_volume *volume)
{
    return volume->map;
}

bool vxd_volume_get_touched(const struct vxd_volume *volume, const int32_t **entries,
                            size_t *n)
{
    *entries = volume->frame_entries.ptr;
    *n = volume->n_touched;
    return volume->frame_width != 0;
}

void vxd_volume_get_view(const struct vxd_volume *volume, struct vxd_volume_view *out)
{
    const struct vxd_hashmap *map = volume->map;

    *out = (struct vxd_volume_view){
        .table = volume->table.ptr,
        .table_mask =
            (uint32_t)(volume->table.n_bytes / sizeof(struct vxd_block_slot) - 1),
        .capacity = (uint32_t)vxd_hashmap_capacity(map),
        .keys = vxd_hashmap_keys(map),
        .stamps = vxd_hashmap_values(map, VXD_VOLUME_STAMPS),
        .distances = vxd_hashmap_values(map, VXD_VOLUME_DISTANCES),
        .weights = vxd_hashmap_values(map, VXD_VOLUME_WEIGHTS),
        .colours =
            volume->spec.has_colour ? vxd_hashmap_values(map, VXD_VOLUME_COLOURS) : NULL,
        .labels = volume->spec.has_labels
                      ? vxd_hashmap_values(map, VXD_VOLUME_COLOURS +
                                                    (volume->spec.has_colour ? 1 : 0))
                      : NULL,
        .albedo = volume->spec.has_albedo
                      ? vxd_hashmap_values(map, VXD_VOLUME_COLOURS +
                                                    (volume->spec.has_colour ? 1 : 0) +
                                                    (volume->spec.has_labels ? 1 : 0))
                      : NULL,
        .neighbours = vxd_volume_is_linked(volume) ? volume->neighbours.ptr : NULL,
        .edge = volume->spec.block_edge,
        .shift = volume->spec.block_edge == 8 ? 3 : 4,
        .is_compact = volume->spec.form == VXD_VOLUME_COMPACT ? 1 : 0,
        .max_weight = (float)volume->spec.max_weight,
        .voxel_size = (float)volume->spec.voxel_size_m,
        .truncation = (float)volume->spec.truncation_m,
    };
    for (int i = 0; i < 3; i++) {
        out->origin[i] = volume->spec.origin_m[i];
    }
}

enum vxd_status vxd_volume_changed_since(struct vxd_queue *queue,
                                         struct vxd_volume *volume, uint64_t since,
                                         int32_t *entries, size_t *n_entries,
                                         struct vxd_err *err)
{
    size_t capacity = vxd_hashmap_capacity(volume->map);
    size_t scan_bytes = vxd_scan_scratch_bytes(queue, capacity);
    struct vxd_buffer counts = {NULL, 0, VXD_SPACE_DEVICE};
    struct vxd_buffer scratch = {NULL, 0, VXD_SPACE_DEVICE};
    struct vxd_buffer host = {NULL, 0, VXD_SPACE_HOST};
    const void *total = NULL;
    enum vxd_status status;

    *n_entries = 0;
    if (capacity == 0) {
        return VXD_OK;
    }
    VXD_TRY(vxd_device_alloc(queue, (capacity + 1) * sizeof(uint32_t), &counts, err));
    VXD_TRY(vxd_device_alloc(queue, scan_bytes, &scratch, err));
    VXD_TRY(VXD_BACKEND_FN(queue, vxd_volume_changed)(
        queue, volume, since, entries, counts.ptr, scratch.ptr, scan_bytes, err));
    VXD_TRY(vxd_download(queue, (uint32_t *)counts.ptr + capacity, sizeof(uint32_t),
                         &host, &total, err));
    VXD_TRY(vxd_queue_wait(queue, err));
    *n_entries = *(const uint32_t *)total;
out:
    vxd_host_free(queue->context, &host);
    vxd_device_free(queue, &scratch);
    vxd_device_free(queue, &counts);
    return status;
}

enum vxd_status vxd_volume_neighbours(struct vxd_queue *queue,
                                      const struct vxd_volume *volume,
                                      const int32_t *entries, size_t n, int32_t *indices,
                                      struct vxd_err *err)
{
    struct vxd_volume_view view;

    if (n > (size_t)INT32_MAX / 27) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "n", "%zu blocks, must be at most %d",
                        n, INT32_MAX / 27);
    }
    if (n == 0) {
        return VXD_OK;
    }
    vxd_volume_get_view(volume, &view);
    return VXD_BACKEND_FN(queue, vxd_volume_neighbours)(queue, &view, entries, n, indices,
                                                        err);
}
