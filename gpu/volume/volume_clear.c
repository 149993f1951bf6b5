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

/* Erases the listed blocks from the map and makes the table anew. */
static enum vxd_status remove_blocks(struct vxd_queue *queue, struct vxd_volume *volume,
                                     const int32_t *keys, size_t n, struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(vxd_hashmap_erase(queue, volume->map, keys, n, VXD_HASH_ANY, NULL, err));
    volume->table_is_stale = true;
    VXD_TRY(vxd_volume_mend(queue, volume, err)); /* makes the map's bound exact, too */
out:
    return status;
}

enum vxd_status vxd_volume_clear(struct vxd_queue *queue, struct vxd_volume *volume,
                                 const struct vxd_volume_region *region,
                                 size_t *n_removed, struct vxd_err *err)
{
    size_t n_blocks = volume->n_blocks;
    size_t capacity = vxd_hashmap_capacity(volume->map);
    struct vxd_buffer keys = {NULL, 0, VXD_SPACE_DEVICE};
    struct vxd_buffer entries = {NULL, 0, VXD_SPACE_DEVICE};
    struct vxd_buffer counts = {NULL, 0, VXD_SPACE_DEVICE};
    struct vxd_buffer host = {NULL, 0, VXD_SPACE_HOST};
    const void *read = NULL;
    struct vxd_clear_call call;
    enum vxd_status status;

    *n_removed = 0;
    VXD_TRY(check_region(region, err));
    if (volume->table_is_stale) {
        VXD_TRY(vxd_volume_mend(queue, volume, err));
        n_blocks = volume->n_blocks;
    }
    init_call(volume, region, &call);
    VXD_TRY(vxd_device_alloc(queue, n_blocks * 3 * sizeof(int32_t), &keys, err));
    VXD_TRY(vxd_device_alloc(queue, capacity * sizeof(int32_t), &entries, err));
    VXD_TRY(vxd_device_alloc(queue, 2 * sizeof(uint32_t), &counts, err));
    volume->version++;
    if (n_blocks == 0) {
        goto out;
    }
    call.keys = keys.ptr;
    call.n_keys = counts.ptr;
    VXD_TRY(vxd_queue_fill(queue, counts.ptr, 0, 2 * sizeof(uint32_t), err));
    VXD_TRY(vxd_hashmap_active(queue, volume->map, entries.ptr, capacity,
                               (uint32_t *)counts.ptr + 1, err));
    VXD_TRY(VXD_BACKEND_FN(queue, vxd_volume_clear)(queue, &call, entries.ptr, n_blocks,
                                                    err));
    VXD_TRY(vxd_download(queue, counts.ptr, sizeof(uint32_t), &host, &read, err));
    VXD_TRY(vxd_queue_wait(queue, err));
    *n_removed = *(const uint32_t *)read;
    if (*n_removed > 0) {
        volume->removed_version = volume->version;
        volume->n_active = 0; /* entries of the last frame may be gone */
        volume->frame_width = 0;
        volume->frame_height = 0;
        VXD_TRY(remove_blocks(queue, volume, keys.ptr, *n_removed, err));
    }
out:
    vxd_host_free(queue->context, &host);
    vxd_device_free(queue, &counts);
    vxd_device_free(queue, &entries);
    vxd_device_free(queue, &keys);
    return status;
}
