// SPDX-License-Identifier: Apache-2.0
/* Deformed volumes: which blocks there will be, from where the grid takes the corners of those that
 * there are. */
#include <stdlib.h>

#include "gpu/slac/slac.h"
#include "gpu/slac/slac_volume_internal.h"

/* The blocks of a volume and those of the deformed one, host memory. */
struct blocks {
    int32_t *entries;
    size_t n;
    struct vxd_volume_blocks read; /* keys */
    float *corners;                /* n x 8 x 3, metres, deformed */
    uint64_t *codes;
    size_t n_codes;
};

static int compare_codes(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return x < y ? -1 : x > y ? 1 : 0;
}

/* Moves the corners of all blocks by the grid. Corners are float32 from the volume's origin. */
static enum vxd_status move_corners(struct vxd_queue *queue,
                                    const struct vxd_deform *deform,
                                    const struct vxd_volume_spec *spec,
                                    struct blocks *blocks, struct vxd_err *err)
{
    struct vxd_deform_apply_args apply = {.n = 8 * blocks->n};
    size_t n_bytes = 8 * blocks->n * 3 * sizeof(float);
    double size = spec->voxel_size_m * spec->block_edge;
    struct vxd_buffer device = {NULL, 0, VXD_SPACE_DEVICE};
    enum vxd_status status;

    for (size_t i = 0; i < 24 * blocks->n; i++) {
        size_t corner = i / 3 % 8;
        size_t axis = i % 3;
        int32_t at =
            blocks->read.keys[3 * (i / 24) + axis] + (int32_t)(corner >> (2 - axis) & 1);

        blocks->corners[i] = (float)(at * size);
    }
    for (int a = 0; a < 3; a++) {
        apply.T_grid_in.rotation[4 * (size_t)a] = 1;
        apply.T_out_grid.rotation[4 * (size_t)a] = 1;
        apply.T_grid_in.translation[a] = spec->origin_m[a];
        apply.T_out_grid.translation[a] = -spec->origin_m[a];
    }
    VXD_TRY(vxd_device_alloc(queue, n_bytes, &device, err));
    VXD_TRY(vxd_queue_copy(queue, device.ptr, blocks->corners, n_bytes, err));
    apply.points = device.ptr;
    apply.out_points = device.ptr;
    VXD_TRY(vxd_deform_apply(queue, deform, &apply, err));
    VXD_TRY(vxd_queue_copy(queue, blocks->corners, device.ptr, n_bytes, err));
    VXD_TRY(vxd_queue_wait(queue, err));
out:
    (void)vxd_queue_wait(queue, NULL);
    vxd_device_free(queue, &device);
    return status;
}

/* The blocks that a deformed one touches, a voxel around it included; codes NULL: counts. */
static size_t list_touched(const float *corners, const struct vxd_volume_spec *spec,
                           uint64_t *codes, bool *is_out)
{
    double size = spec->voxel_size_m * spec->block_edge;
    int32_t low[3];
    int32_t high[3];
    size_t n = 0;

    for (size_t axis = 0; axis < 3; axis++) {
        double least = INFINITY;
        double most = -INFINITY;

        for (size_t k = 0; k < 8; k++) {
            double at = (double)corners[3 * k + axis];

            least = at < least ? at : least;
            most = at > most ? at : most;
        }
        least = floor((least - spec->voxel_size_m) / size);
        most = floor((most + spec->voxel_size_m) / size);
        if (!(least >= -VXD_BLOCK_LIMIT && most <= VXD_BLOCK_LIMIT)) {
            *is_out = true;
            return 0;
        }
        low[axis] = (int32_t)least;
        high[axis] = (int32_t)most;
    }
    for (int32_t x = low[0]; x <= high[0]; x++) {
        for (int32_t y = low[1]; y <= high[1]; y++) {
            for (int32_t z = low[2]; z <= high[2]; z++) {
                if (codes != NULL) {
                    codes[n] = vxd_block_morton(vxd_block_tag(x, y, z));
                }
                n++;
            }
        }
    }
    return n;
}

static enum vxd_status list_codes(const struct vxd_volume_spec *spec,
                                  struct blocks *blocks, struct vxd_err *err)
{
    size_t n = 0;
    size_t n_unique = 0;
    bool is_out = false;

    for (size_t i = 0; i < blocks->n; i++) {
        n += list_touched(blocks->corners + 24 * i, spec, NULL, &is_out);
    }
    if (is_out || n > INT32_MAX) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "deform",
                        "takes blocks beyond the range of keys");
    }
    blocks->codes = malloc((n + 1) * sizeof *blocks->codes);
    if (blocks->codes == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for %zu blocks", n);
    }
    n = 0;
    for (size_t i = 0; i < blocks->n; i++) {
        n += list_touched(blocks->corners + 24 * i, spec, blocks->codes + n, &is_out);
    }
    qsort(blocks->codes, n, sizeof *blocks->codes, compare_codes);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || blocks->codes[i] != blocks->codes[i - 1]) {
            blocks->codes[n_unique++] = blocks->codes[i];
        }
    }
    blocks->n_codes = n_unique;
    return VXD_OK;
}

/* Adds the blocks to the new volume and fills them in. Blocking. */
static enum vxd_status fill(struct vxd_queue *queue, const struct vxd_volume *volume,
                            const struct vxd_deform *deform,
                            const struct vxd_volume_spec *spec,
                            const struct blocks *blocks, struct vxd_volume *out,
                            struct vxd_err *err)
{
    struct vxd_slac_volume_call call = {.n = blocks->n_codes,
                                        .voxel_size = spec->voxel_size_m};
    struct vxd_buffer codes = {NULL, 0, VXD_SPACE_DEVICE};
    struct vxd_buffer entries = {NULL, 0, VXD_SPACE_DEVICE};
    enum vxd_status status;

    VXD_TRY(vxd_device_alloc(queue, call.n * sizeof(uint64_t), &codes, err));
    VXD_TRY(vxd_device_alloc(queue, call.n * sizeof(int32_t), &entries, err));
    VXD_TRY(vxd_queue_copy(queue, codes.ptr, blocks->codes, codes.n_bytes, err));
    VXD_TRY(vxd_volume_add_blocks(queue, out, codes.ptr, call.n, entries.ptr, err));
    memcpy(call.origin, spec->origin_m, sizeof call.origin);
    call.entries = entries.ptr;
    call.version = vxd_volume_begin_change(out);
    vxd_volume_get_view(volume, &call.from);
    vxd_volume_get_view(out, &call.to);
    vxd_deform_get_view(deform, &call.deform);
    VXD_TRY(VXD_BACKEND_FN(queue, vxd_slac_volume_fill)(queue, &call, err));
    VXD_TRY(vxd_queue_wait(queue, err));
out:
    (void)vxd_queue_wait(queue, NULL);
    vxd_device_free(queue, &entries);
    vxd_device_free(queue, &codes);
    return status;
}

enum vxd_status vxd_slac_deform_volume(struct vxd_queue *queue,
                                       const struct vxd_volume *volume,
                                       const struct vxd_deform *deform,
                                       struct vxd_volume **out, struct vxd_err *err)
{
    struct blocks blocks = {0};
    struct vxd_volume *made = NULL;
    struct vxd_volume_info info;
    enum vxd_status status;

    *out = NULL;
    vxd_volume_get_info(volume, &info);
    VXD_TRY(vxd_volume_create(queue, &info.spec, &made, err));
    VXD_TRY(vxd_volume_list_changed(queue, volume, 0, &blocks.entries, &blocks.n, err));
    if (blocks.n > 0) {
        VXD_TRY(vxd_volume_read_blocks(queue, volume, blocks.entries, blocks.n, false,
                                       &blocks.read, err));
        blocks.corners = malloc(24 * blocks.n * sizeof *blocks.corners);
        if (blocks.corners == NULL) {
            VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory"));
        }
        VXD_TRY(move_corners(queue, deform, &info.spec, &blocks, err));
        VXD_TRY(list_codes(&info.spec, &blocks, err));
        VXD_TRY(fill(queue, volume, deform, &info.spec, &blocks, made, err));
    }
    *out = made;
    made = NULL;
out:
    vxd_volume_blocks_free(queue, &blocks.read);
    vxd_volume_destroy(queue, made);
    free(blocks.codes);
    free(blocks.corners);
    free(blocks.entries);
    return status;
}
