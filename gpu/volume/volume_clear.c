// SPDX-License-Identifier: Apache-2.0
/* Removal of blocks and voxels: checks, the list of blocks to remove, the map and the table. */
#include "gpu/volume/volume_internal.h"

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

/* Lists the blocks to remove. Blocking; changes nothing. */
static enum vxd_status list_blocks(struct vxd_queue *queue, struct vxd_volume *volume,
                                   struct removal *r, struct vxd_err *err)
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
    VXD_TRY(VXD_BACKEND_FN(queue, vxd_volume_clear_list)(queue, &r->call, r->entries.ptr,
                                                         volume->n_blocks, err));
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
        VXD_TRY(list_blocks(queue, volume, &r, err));
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
    vxd_device_free(queue, &r.table);
    vxd_device_free(queue, &r.counts);
    vxd_device_free(queue, &r.entries);
    vxd_device_free(queue, &r.kept);
    vxd_device_free(queue, &r.keys);
    return status;
}
