// SPDX-License-Identifier: Apache-2.0
/* Removal of blocks and voxels: checks, the list of blocks to remove, the map and the table. */
#include <stdlib.h>

#include "gpu/volume/volume_internal.h"

#define MAX_MIN_WEIGHT 65535.0
#define SPARE_PART 16 /* of the capacity: what is forgotten beyond need */

/* Voxels of boxes, and blocks of tables, are within these bounds. */
#define MAX_VOXEL 4e7

static enum vxd_status check_region(const struct vxd_volume_region *region,
                                    struct vxd_err *err)
{
    for (int i = 0; i < 3; i++) {
        if (region->is_ball ? !isfinite(region->centre[i])
                            : !(isfinite(region->low[i]) && isfinite(region->high[i]) &&
                                region->low[i] <= region->high[i])) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT,
                            region->is_ball ? "centre" : "high",
                            "component %d: from %g to %g, centre %g; must be finite, and "
                            "low not above high",
                            i, region->low[i], region->high[i], region->centre[i]);
        }
    }
    if (region->is_ball && !(region->radius >= 0 && isfinite(region->radius))) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "radius",
                        "%g metres, must be finite and at least 0", region->radius);
    }
    return VXD_OK;
}

/* The first voxel whose centre is at or above a coordinate. */
static int64_t first_voxel(const struct vxd_volume *volume, int axis, double metres)
{
    double at = (metres - volume->spec.origin_m[axis]) / volume->spec.voxel_size_m - 0.5;

    return (int64_t)fmin(fmax(ceil(at), -MAX_VOXEL), MAX_VOXEL);
}

static void init_call(const struct vxd_volume *volume,
                      const struct vxd_volume_region *region, struct vxd_clear_call *call)
{
    *call = (struct vxd_clear_call){
        .is_ball = region->is_ball ? 1 : 0,
        .radius = region->radius,
        .block_size = volume->spec.voxel_size_m * volume->spec.block_edge,
        .version = volume->version + 1,
    };
    vxd_volume_get_view(volume, &call->view);
    for (int axis = 0; axis < 3; axis++) {
        call->centre[axis] = region->centre[axis] - volume->spec.origin_m[axis];
        if (!region->is_ball) {
            call->low[axis] = first_voxel(volume, axis, region->low[axis]);
            call->high[axis] = first_voxel(volume, axis, region->high[axis]);
        }
    }
}

/* What a removal needs beside the volume. */
struct removal {
    struct vxd_clear_call call;
    struct vxd_buffer keys;    /* of blocks to remove */
    struct vxd_buffer entries; /* of all blocks */
    struct vxd_buffer kept;    /* of those that stay */
    struct vxd_buffer counts;  /* removed, kept, all */
    struct vxd_buffer table;   /* of those that stay */
    size_t n_removed;
    size_t n_kept;
};

/* Lists the blocks to remove: those of the region, or, of a decay, those of too little weight.
 * Blocking; changes nothing. */
static enum vxd_status list_blocks(struct vxd_queue *queue, struct vxd_volume *volume,
                                   struct removal *r, struct vxd_decay_call *decay,
                                   struct vxd_err *err)
{
    size_t capacity = vxd_hashmap_capacity(volume->map);
    struct vxd_buffer host = {NULL, 0, VXD_SPACE_HOST};
    const void *read = NULL;
    uint32_t *counts;
    enum vxd_status status;

    VXD_TRY(
        vxd_device_alloc(queue, volume->n_blocks * 3 * sizeof(int32_t), &r->keys, err));
    VXD_TRY(vxd_device_alloc(queue, volume->n_blocks * sizeof(int32_t), &r->kept, err));
    VXD_TRY(vxd_device_alloc(queue, capacity * sizeof(int32_t), &r->entries, err));
    VXD_TRY(vxd_device_alloc(queue, 3 * sizeof(uint32_t), &r->counts, err));
    counts = r->counts.ptr;
    r->call.keys = r->keys.ptr;
    r->call.kept = r->kept.ptr;
    r->call.n = counts;
    VXD_TRY(vxd_queue_fill(queue, counts, 0, 3 * sizeof(uint32_t), err));
    VXD_TRY(vxd_hashmap_active(queue, volume->map, r->entries.ptr, capacity, counts + 2,
                               err));
    if (decay != NULL) {
        decay->clear = r->call;
        VXD_TRY(VXD_BACKEND_FN(queue, vxd_volume_decay_list)(queue, decay, r->entries.ptr,
                                                             volume->n_blocks, err));
    } else {
        VXD_TRY(VXD_BACKEND_FN(queue, vxd_volume_clear_list)(
            queue, &r->call, r->entries.ptr, volume->n_blocks, err));
    }
    VXD_TRY(vxd_download(queue, counts, 2 * sizeof(uint32_t), &host, &read, err));
    VXD_TRY(vxd_queue_wait(queue, err));
    r->n_removed = ((const uint32_t *)read)[0];
    r->n_kept = ((const uint32_t *)read)[1];
out:
    vxd_host_free(queue->context, &host);
    return status;
}

/* Makes the table of the blocks that stay beside the old one, and erases the others from the map,
 * which is the first change and may be refused. What follows needs no memory. */
static enum vxd_status remove_blocks(struct vxd_queue *queue, struct vxd_volume *volume,
                                     struct removal *r, struct vxd_err *err)
{
    struct vxd_volume rebuilt = *volume;
    enum vxd_status status;

    VXD_TRY(vxd_device_alloc(queue, volume->table.n_bytes, &r->table, err));
    VXD_TRY(vxd_queue_fill(queue, r->table.ptr, 0xff, r->table.n_bytes, err));
    rebuilt.table = r->table;
    if (r->n_kept > 0) {
        VXD_TRY(VXD_BACKEND_FN(queue, vxd_volume_table_add)(queue, &rebuilt, r->kept.ptr,
                                                            r->n_kept, err));
    }
    VXD_TRY(vxd_hashmap_erase(queue, volume->map, r->keys.ptr, r->n_removed, VXD_HASH_ANY,
                              NULL, err));
    r->table = volume->table; /* freed by the caller */
    volume->table = rebuilt.table;
    volume->n_blocks = r->n_kept;
    volume->removed_version = r->call.version;
    volume->version = r->call.version;
    volume->n_active = 0; /* entries of the last frame may be gone */
    volume->frame_width = 0;
    volume->frame_height = 0;
    VXD_TRY(vxd_hashmap_size(queue, volume->map, &volume->n_blocks, err)); /* its bound */
    vxd_volume_link(queue, volume, NULL, 0);
out:
    return status;
}

static void free_removal(struct vxd_queue *queue, struct removal *r)
{
    vxd_device_free(queue, &r->table);
    vxd_device_free(queue, &r->counts);
    vxd_device_free(queue, &r->entries);
    vxd_device_free(queue, &r->kept);
    vxd_device_free(queue, &r->keys);
}

enum vxd_status vxd_volume_clear(struct vxd_queue *queue, struct vxd_volume *volume,
                                 const struct vxd_volume_region *region,
                                 size_t *n_removed, struct vxd_err *err)
{
    struct removal r = {0};
    enum vxd_status status;

    *n_removed = 0;
    VXD_TRY(check_region(region, err));
    if (volume->table_is_stale) {
        VXD_TRY(vxd_volume_mend(queue, volume, err));
    }
    init_call(volume, region, &r.call);
    if (volume->n_blocks > 0) {
        VXD_TRY(list_blocks(queue, volume, &r, NULL, err));
    }
    if (r.n_removed > 0) {
        VXD_TRY(remove_blocks(queue, volume, &r, err));
    }
    volume->version = r.call.version;
    if (!region->is_ball && r.n_kept > 0) {
        vxd_volume_get_view(volume, &r.call.view);
        VXD_TRY(VXD_BACKEND_FN(queue, vxd_volume_clear)(queue, &r.call, r.kept.ptr,
                                                        r.n_kept, err));
        VXD_TRY(vxd_queue_wait(queue, err));
    }
    *n_removed = r.n_removed;
out:
    free_removal(queue, &r);
    return status;
}

static enum vxd_status check_decay(const struct vxd_volume_decay *decay,
                                   struct vxd_err *err)
{
    if (!(decay->factor >= 0 && decay->factor <= 1)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "factor", "%g, must be 0 to 1",
                        decay->factor);
    }
    if (!(decay->min_weight >= 0 && decay->min_weight <= MAX_MIN_WEIGHT)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "min_weight", "%g, must be 0 to %g",
                        decay->min_weight, MAX_MIN_WEIGHT);
    }
    return check_region(&decay->region, err);
}

enum vxd_status vxd_volume_decay(struct vxd_queue *queue, struct vxd_volume *volume,
                                 const struct vxd_volume_decay *decay, size_t *n_removed,
                                 struct vxd_err *err)
{
    struct vxd_decay_call call = {.factor = (float)decay->factor,
                                  .keeps_votes = decay->keeps_votes,
                                  .min_weight = (float)decay->min_weight};
    struct removal r = {0};
    enum vxd_status status;

    *n_removed = 0;
    VXD_TRY(check_decay(decay, err));
    if (volume->table_is_stale) {
        VXD_TRY(vxd_volume_mend(queue, volume, err));
    }
    init_call(volume, &decay->region, &r.call);
    if (volume->n_blocks > 0) {
        VXD_TRY(list_blocks(queue, volume, &r, &call, err));
    }
    if (r.n_removed > 0) {
        VXD_TRY(remove_blocks(queue, volume, &r, err));
    }
    volume->version = r.call.version;
    if (r.n_kept > 0) {
        call.clear = r.call;
        vxd_volume_get_view(volume, &call.clear.view);
        VXD_TRY(VXD_BACKEND_FN(queue, vxd_volume_decay)(queue, &call, r.kept.ptr,
                                                        r.n_kept, err));
        VXD_TRY(vxd_queue_wait(queue, err));
    }
    *n_removed = r.n_removed;
out:
    free_removal(queue, &r);
    return status;
}

/* Erases blocks from the map, which is the first change and may be refused, and makes the table of
 * those that stay in memory that was allocated before. Where that fails the table is stale. */
enum vxd_status vxd_volume_remove(struct vxd_queue *queue, struct vxd_volume *volume,
                                  const int32_t *keys, size_t n, struct vxd_err *err)
{
    size_t capacity = vxd_hashmap_capacity(volume->map);
    struct vxd_volume rebuilt = *volume;
    struct removal r = {0};
    enum vxd_status status = VXD_OK;

    if (volume->table_is_stale) {
        VXD_TRY(vxd_volume_mend(queue, volume, err));
    }
    if (n == 0 || volume->n_blocks == 0) {
        volume->version++;
        return VXD_OK;
    }
    VXD_TRY(vxd_device_alloc(queue, volume->table.n_bytes, &r.table, err));
    VXD_TRY(vxd_device_alloc(queue, capacity * sizeof(int32_t), &r.entries, err));
    VXD_TRY(vxd_device_alloc(queue, sizeof(uint32_t), &r.counts, err));
    VXD_TRY(vxd_hashmap_erase(queue, volume->map, keys, n, VXD_HASH_ANY, NULL, err));
    volume->table_is_stale = true;
    volume->version++;
    volume->removed_version = volume->version;
    volume->n_active = 0;
    volume->frame_width = 0;
    volume->frame_height = 0;
    VXD_TRY(vxd_hashmap_size(queue, volume->map, &volume->n_blocks, err));
    rebuilt.table = r.table;
    VXD_TRY(vxd_queue_fill(queue, r.table.ptr, 0xff, r.table.n_bytes, err));
    if (volume->n_blocks > 0) {
        VXD_TRY(vxd_hashmap_active(queue, volume->map, r.entries.ptr, capacity,
                                   r.counts.ptr, err));
        VXD_TRY(VXD_BACKEND_FN(queue, vxd_volume_table_add)(
            queue, &rebuilt, r.entries.ptr, volume->n_blocks, err));
    }
    r.table = volume->table;
    volume->table = rebuilt.table;
    volume->table_is_stale = false;
    vxd_volume_link(queue, volume, NULL, 0);
    status = vxd_queue_wait(queue, err);
out:
    free_removal(queue, &r);
    return status;
}

/* --- the farthest blocks -------------------------------------------------------------------- */

/* What a ranking needs beside the volume. */
struct ranking {
    struct vxd_rank_call call;
    struct vxd_buffer entries;
    struct vxd_buffer count;
    struct vxd_buffer touched;
    struct vxd_buffer ranks;
    struct vxd_buffer values;
    struct vxd_buffer other_ranks;
    struct vxd_buffer other_values;
    struct vxd_buffer scratch;
    struct vxd_buffer keys; /* of the farthest */
};

/* Sorts the entries of all blocks by their distance. */
static enum vxd_status rank_blocks(struct vxd_queue *queue, struct vxd_volume *volume,
                                   const double point[3], struct ranking *r,
                                   struct vxd_err *err)
{
    size_t n = volume->n_blocks;
    size_t capacity = vxd_hashmap_capacity(volume->map);
    size_t sort_bytes = vxd_sort_pairs_scratch_bytes(queue, n);
    struct vxd_rank_call *call = &r->call;
    enum vxd_status status;

    VXD_TRY(vxd_device_alloc(queue, capacity * sizeof(int32_t), &r->entries, err));
    VXD_TRY(vxd_device_alloc(queue, sizeof(uint32_t), &r->count, err));
    VXD_TRY(vxd_device_alloc(queue, capacity, &r->touched, err));
    VXD_TRY(vxd_device_alloc(queue, n * sizeof(uint64_t), &r->ranks, err));
    VXD_TRY(vxd_device_alloc(queue, n * sizeof(uint32_t), &r->values, err));
    VXD_TRY(vxd_device_alloc(queue, n * sizeof(uint64_t), &r->other_ranks, err));
    VXD_TRY(vxd_device_alloc(queue, n * sizeof(uint32_t), &r->other_values, err));
    VXD_TRY(vxd_device_alloc(queue, sort_bytes, &r->scratch, err));
    VXD_TRY(vxd_queue_fill(queue, r->touched.ptr, 0, capacity, err));
    VXD_TRY(vxd_hashmap_active(queue, volume->map, r->entries.ptr, capacity, r->count.ptr,
                               err));
    *call = (struct vxd_rank_call){.block_size = volume->spec.voxel_size_m *
                                                 volume->spec.block_edge,
                                   .entries = r->entries.ptr,
                                   .n = n,
                                   .touched = volume->frame_entries.ptr,
                                   .n_touched = volume->n_known,
                                   .is_touched = r->touched.ptr,
                                   .ranks = r->ranks.ptr,
                                   .values = r->values.ptr};
    vxd_volume_get_view(volume, &call->view);
    for (int axis = 0; axis < 3; axis++) {
        call->point[axis] = point[axis] - volume->spec.origin_m[axis];
    }
    VXD_TRY(VXD_BACKEND_FN(queue, vxd_volume_rank)(queue, call, err));
    VXD_TRY(vxd_sort_pairs(queue, call->ranks, call->values, r->other_ranks.ptr,
                           r->other_values.ptr, n, 0, 64, r->scratch.ptr, sort_bytes,
                           err));
out:
    return status;
}

/* Removes the last n of the ranked blocks, and gives their keys. */
static enum vxd_status remove_last(struct vxd_queue *queue, struct vxd_volume *volume,
                                   struct ranking *r, size_t n, int32_t *out,
                                   struct vxd_err *err)
{
    const int32_t *entries =
        (const int32_t *)(const void *)(r->call.values + (r->call.n - n));
    size_t n_bytes = n * 3 * sizeof(int32_t);
    struct vxd_buffer host = {NULL, 0, VXD_SPACE_HOST};
    const void *read = NULL;
    enum vxd_status status;

    VXD_TRY(vxd_device_alloc(queue, n_bytes, &r->keys, err));
    VXD_TRY(
        vxd_hashmap_gather(queue, volume->map, entries, n, r->keys.ptr, NULL, NULL, err));
    VXD_TRY(vxd_download(queue, r->keys.ptr, n_bytes, &host, &read, err));
    VXD_TRY(vxd_queue_wait(queue, err));
    memcpy(out, read, n_bytes);
    VXD_TRY(vxd_volume_remove(queue, volume, r->keys.ptr, n, err));
out:
    vxd_host_free(queue->context, &host);
    return status;
}

enum vxd_status vxd_volume_forget_farthest(struct vxd_queue *queue,
                                           struct vxd_volume *volume,
                                           const double point[3], int32_t **take_keys,
                                           size_t *n_keys, struct vxd_err *err)
{
    size_t capacity = vxd_hashmap_capacity(volume->map);
    size_t needed = volume->n_blocks + volume->n_lacking;
    size_t n_free = volume->n_blocks - volume->n_known; /* that may go */
    struct ranking r = {0};
    int32_t *keys = NULL;
    size_t n;
    enum vxd_status status = VXD_OK;

    *take_keys = NULL;
    *n_keys = 0;
    if (needed <= capacity || needed - capacity > n_free || n_free == 0) {
        return VXD_OK;
    }
    n = needed - capacity + capacity / SPARE_PART;
    n = n < n_free ? n : n_free;
    keys = malloc(n * 3 * sizeof *keys);
    if (keys == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for %zu keys", n);
    }
    VXD_TRY(rank_blocks(queue, volume, point, &r, err));
    VXD_TRY(remove_last(queue, volume, &r, n, keys, err));
    *take_keys = keys;
    *n_keys = n;
    keys = NULL;
out:
    vxd_device_free(queue, &r.keys);
    vxd_device_free(queue, &r.scratch);
    vxd_device_free(queue, &r.other_values);
    vxd_device_free(queue, &r.other_ranks);
    vxd_device_free(queue, &r.values);
    vxd_device_free(queue, &r.ranks);
    vxd_device_free(queue, &r.touched);
    vxd_device_free(queue, &r.count);
    vxd_device_free(queue, &r.entries);
    free(keys);
    return status;
}
