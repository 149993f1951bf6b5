// SPDX-License-Identifier: Apache-2.0
/* The voxel set of a level as a hash set (setup 7), its neighbours and the intersection of
 * neighbours with voxels that have neighbours themselves (setup 8); volumes of the same or of
 * halved voxels; results in volumes. */
#include <stdlib.h>

#include "gpu/refine/refine_internal.h"

#define MAX_UNKNOWNS ((size_t)INT32_MAX - 1)

/* Scans n counts of a buffer in place and reads their sum. Blocking. */
static enum vxd_status scan_counts(struct vxd_queue *queue, uint32_t *counts, size_t n,
                                   uint32_t *total, struct vxd_err *err)
{
    size_t n_bytes = vxd_scan_scratch_bytes(queue, n);
    struct vxd_buffer scratch = {NULL, 0, VXD_SPACE_DEVICE};
    enum vxd_status status;

    VXD_TRY(vxd_device_alloc(queue, n_bytes, &scratch, err));
    VXD_TRY(vxd_scan_exclusive(queue, counts, counts, n, scratch.ptr, n_bytes, err));
    VXD_TRY(vxd_refine_read(queue, counts + n, sizeof *total, total, err));
out:
    vxd_device_free(queue, &scratch);
    return status;
}

/* Lists the volume's blocks that hold an observation. Blocking. */
static enum vxd_status list_blocks(struct vxd_queue *queue, struct vxd_volume *volume,
                                   struct vxd_buffer *entries, size_t *n,
                                   struct vxd_err *err)
{
    struct vxd_volume_info info;
    enum vxd_status status;

    vxd_volume_get_info(volume, &info);
    VXD_TRY(vxd_volume_prepare(queue, volume, err));
    VXD_TRY(vxd_device_alloc(queue, (info.capacity + 1) * sizeof(int32_t), entries, err));
    VXD_TRY(vxd_volume_changed_since(queue, volume, 0, entries->ptr, n, err));
out:
    return status;
}

/* ---- The set, in parts ---- */

static void set_level(struct vxd_refine *refine, const struct vxd_volume *volume)
{
    struct vxd_volume_info info;
    double band;

    vxd_volume_get_info(volume, &info);
    refine->voxel_size_m = info.spec.voxel_size_m;
    refine->unit = info.spec.truncation_m / info.spec.voxel_size_m;
    memcpy(refine->origin_m, info.spec.origin_m, sizeof refine->origin_m);
    /* Finer voxels need as many of them around the surface. */
    band = refine->options.band_m > 0 ? refine->options.band_m / info.spec.voxel_size_m /
                                            (double)(1 << refine->level)
                                      : 3.0;
    memset(&refine->call, 0, sizeof refine->call);
    refine->call.set =
        (struct vxd_refine_set_call){.band = (float)fmin(band, refine->unit),
                                     .min_weight = (float)refine->options.min_weight,
                                     .unit = (float)refine->unit};
    vxd_volume_get_view(volume, &refine->call.set.volume);
    refine->call.view.n_keyframes = refine->n_frames;
}

static enum vxd_status count_voxels(struct vxd_queue *queue, struct vxd_refine *refine,
                                    struct vxd_volume *volume, struct vxd_err *err)
{
    struct vxd_refine_call *call = &refine->call;
    size_t most =
        refine->options.max_unknowns > 0 && refine->options.max_unknowns < MAX_UNKNOWNS
            ? refine->options.max_unknowns
            : MAX_UNKNOWNS;
    uint32_t n = 0;
    enum vxd_status status;

    vxd_refine_free(queue, refine, VXD_REFINE_ENTRIES);
    VXD_TRY(list_blocks(queue, volume, &refine->buffers[VXD_REFINE_ENTRIES],
                        &refine->n_blocks, err));
    set_level(refine, volume);
    VXD_TRY(vxd_refine_alloc(queue, refine, VXD_REFINE_COUNTS, refine->n_blocks + 1,
                             sizeof(uint32_t), err));
    call->set.entries = refine->buffers[VXD_REFINE_ENTRIES].ptr;
    call->set.counts = refine->buffers[VXD_REFINE_COUNTS].ptr;
    VXD_TRY(vxd_refine_run(queue, call, VXD_REFINE_STEP_COUNT, refine->n_blocks, err));
    VXD_TRY(scan_counts(queue, call->set.counts, refine->n_blocks, &n, err));
    if (n == 0) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "band_m",
                         "no voxel of the volume is within %.4g m of its surface",
                         (double)call->set.band * refine->voxel_size_m));
    }
    if (2 * (size_t)n > most) {
        VXD_TRY(
            vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "max_unknowns",
                     "%u voxels have %zu unknowns, at most %zu are refined: a smaller "
                     "band_m, fewer upsample levels or a smaller volume have fewer",
                     n, 2 * (size_t)n, most));
    }
    refine->n = n;
    call->view.n = n;
out:
    return status;
}

/* Where the set is: the view's base, and the centre and reach of keyframes' rotations. Blocking. */
static enum vxd_status find_extent(struct vxd_queue *queue, struct vxd_refine *refine,
                                   struct vxd_err *err)
{
    int32_t low[3] = {INT32_MAX, INT32_MAX, INT32_MAX};
    int32_t high[3] = {INT32_MIN, INT32_MIN, INT32_MIN};
    struct vxd_buffer device = {NULL, 0, VXD_SPACE_DEVICE};
    struct vxd_buffer host = {NULL, 0, VXD_SPACE_HOST};
    size_t n_bytes = (size_t)6 * VXD_REFINE_EXTENT_PARTS * sizeof(int32_t);
    const void *read = NULL;
    double squares = 0;
    enum vxd_status status;

    VXD_TRY(vxd_device_alloc(queue, n_bytes, &device, err));
    refine->call.set.extents = device.ptr;
    VXD_TRY(vxd_refine_run(queue, &refine->call, VXD_REFINE_STEP_EXTENT,
                           VXD_REFINE_EXTENT_PARTS, err));
    VXD_TRY(vxd_download(queue, device.ptr, n_bytes, &host, &read, err));
    VXD_TRY(vxd_queue_wait(queue, err));
    for (size_t part = 0; part < VXD_REFINE_EXTENT_PARTS; part++) {
        const int32_t *extent = (const int32_t *)read + 6 * part;

        for (int k = 0; k < 3; k++) {
            low[k] = extent[k] < low[k] ? extent[k] : low[k];
            high[k] = extent[3 + k] > high[k] ? extent[3 + k] : high[k];
        }
    }
    for (int k = 0; k < 3; k++) {
        double half = ((double)high[k] - low[k] + 1) / 2;

        refine->call.view.base[k] = low[k];
        refine->call.view.cube_at[k] = low[k];
        refine->set_centre[k] = half;
        refine->call.pose.centre[k] = (vxd_refine_real)half;
        squares += half * half;
    }
    refine->reach = sqrt(squares);
    refine->call.pose.reach = (vxd_refine_real)refine->reach;
out:
    vxd_host_free(queue->context, &host);
    vxd_device_free(queue, &device);
    return status;
}

static enum vxd_status list_keys(struct vxd_queue *queue, struct vxd_refine *refine,
                                 struct vxd_err *err)
{
    struct vxd_refine_call *call = &refine->call;
    enum vxd_status status;

    VXD_TRY(vxd_refine_alloc(queue, refine, VXD_REFINE_KEYS, refine->n,
                             3 * sizeof(int32_t), err));
    VXD_TRY(vxd_refine_alloc(queue, refine, VXD_REFINE_ROWS, refine->n, sizeof(int64_t),
                             err));
    call->set.keys = refine->buffers[VXD_REFINE_KEYS].ptr;
    call->set.rows = refine->buffers[VXD_REFINE_ROWS].ptr;
    call->set.rows_read = call->set.rows;
    call->view.keys = call->set.keys;
    VXD_TRY(vxd_refine_run(queue, call, VXD_REFINE_STEP_LIST, refine->n_blocks, err));
    VXD_TRY(find_extent(queue, refine, err));
out:
    return status;
}

/* A hash set of n different keys: the entry of a key is its place. */
static enum vxd_status make_set(struct vxd_queue *queue, const int32_t *keys, size_t n,
                                struct vxd_hashmap **out, struct vxd_err *err)
{
    struct vxd_hashmap_spec spec = {
        .key_dtype = VXD_INT32, .n_components = 3, .index = VXD_HASH_OPEN, .capacity = n};
    struct vxd_hashmap_insert_args insert = {
        .keys = keys, .n = n, .order = VXD_HASH_FIRST, .max_new = n};
    enum vxd_status status;

    vxd_hashmap_destroy(queue, *out);
    *out = NULL;
    VXD_TRY(vxd_hashmap_create(queue, &spec, out, err));
    VXD_TRY(n > 0 ? vxd_hashmap_insert(queue, *out, &insert, err) : VXD_OK);
out:
    return status;
}

static enum vxd_status find_near(struct vxd_queue *queue, struct vxd_refine *refine,
                                 struct vxd_err *err)
{
    struct vxd_refine_call *call = &refine->call;
    enum vxd_status status;

    VXD_TRY(vxd_refine_alloc(queue, refine, VXD_REFINE_NEAR, refine->n,
                             6 * sizeof(int32_t), err));
    VXD_TRY(vxd_refine_alloc(queue, refine, VXD_REFINE_RINGS, refine->n, 1, err));
    call->view.near6 = refine->buffers[VXD_REFINE_NEAR].ptr;
    call->view.ring = refine->buffers[VXD_REFINE_RINGS].ptr;
    call->bytes = refine->buffers[VXD_REFINE_RINGS].ptr;
    VXD_TRY(vxd_hashmap_neighbours(queue, refine->set, call->view.keys, refine->n,
                                   VXD_NEIGHBOURS_6, refine->buffers[VXD_REFINE_NEAR].ptr,
                                   err));
    VXD_TRY(vxd_refine_run(queue, call, VXD_REFINE_STEP_RING, refine->n, err));
out:
    return status;
}

/* Setup 8: a set of the voxels with all neighbours is asked for the neighbours of the same voxels. */
static enum vxd_status find_links(struct vxd_queue *queue, struct vxd_refine *refine,
                                  struct vxd_err *err)
{
    struct vxd_refine_call *call = &refine->call;
    size_t n = refine->n;
    struct vxd_buffer flags = {NULL, 0, VXD_SPACE_DEVICE};
    struct vxd_buffer keys = {NULL, 0, VXD_SPACE_DEVICE};
    struct vxd_buffer found = {NULL, 0, VXD_SPACE_DEVICE};
    struct vxd_hashmap *rings = NULL;
    uint32_t n_rings = 0;
    enum vxd_status status;

    VXD_TRY(
        vxd_refine_alloc(queue, refine, VXD_REFINE_LINKS, n, 3 * sizeof(int32_t), err));
    VXD_TRY(vxd_device_alloc(queue, (n + 1) * sizeof(uint32_t), &flags, err));
    VXD_TRY(vxd_device_alloc(queue, 3 * n * 3 * sizeof(int32_t), &keys, err));
    VXD_TRY(vxd_device_alloc(queue, 3 * n, &found, err));
    call->order = flags.ptr;
    call->light.keys = keys.ptr;
    VXD_TRY(vxd_refine_run(queue, call, VXD_REFINE_STEP_FLAG, n, err));
    VXD_TRY(scan_counts(queue, flags.ptr, n, &n_rings, err));
    VXD_TRY(vxd_refine_run(queue, call, VXD_REFINE_STEP_RING_KEY, n, err));
    VXD_TRY(make_set(queue, keys.ptr, n_rings, &rings, err));
    VXD_TRY(vxd_queue_wait(queue, err)); /* the keys are written anew */
    VXD_TRY(vxd_refine_run(queue, call, VXD_REFINE_STEP_ASK, 3 * n, err));
    VXD_TRY(vxd_hashmap_find(queue, rings, keys.ptr, 3 * n, NULL, found.ptr, err));
    call->bytes = found.ptr;
    call->links = refine->buffers[VXD_REFINE_LINKS].ptr;
    VXD_TRY(vxd_refine_run(queue, call, VXD_REFINE_STEP_LINK, 3 * n, err));
    call->view.links = call->links;
out:
    vxd_hashmap_destroy(queue, rings);
    vxd_device_free(queue, &found);
    vxd_device_free(queue, &keys);
    vxd_device_free(queue, &flags);
    return status;
}

static enum vxd_status start_state(struct vxd_queue *queue, struct vxd_refine *refine,
                                   struct vxd_err *err)
{
    struct vxd_refine_call *call = &refine->call;
    enum vxd_status status;

    VXD_TRY(vxd_refine_alloc(queue, refine, VXD_REFINE_STATE, refine->n,
                             2 * sizeof(vxd_refine_real), err));
    VXD_TRY(vxd_refine_alloc(queue, refine, VXD_REFINE_START, refine->n,
                             sizeof(vxd_refine_real), err));
    VXD_TRY(vxd_refine_alloc(queue, refine, VXD_REFINE_NODES, refine->n,
                             sizeof(struct vxd_refine_node), err));
    call->view.state = refine->buffers[VXD_REFINE_STATE].ptr;
    call->view.start = refine->buffers[VXD_REFINE_START].ptr;
    call->view.nodes = refine->buffers[VXD_REFINE_NODES].ptr;
    VXD_TRY(vxd_queue_fill(queue, call->view.state, 0,
                           refine->n * 2 * sizeof(vxd_refine_real), err));
    VXD_TRY(vxd_refine_run(queue, call, VXD_REFINE_STEP_START, refine->n, err));
    refine->phase = VXD_REFINE_IMAGES;
    refine->frame = 0;
    refine->part = 0;
    refine->last_energy = -1;
    refine->light_pass = 0;
out:
    return status;
}

enum vxd_status vxd_refine_list_voxels(struct vxd_queue *queue, struct vxd_refine *refine,
                                       struct vxd_volume *volume, struct vxd_err *err)
{
    /* Its arrays may have grown since the last part. */
    vxd_volume_get_view(volume, &refine->call.set.volume);
    switch (refine->part++) {
    case 0:
        return count_voxels(queue, refine, volume, err);
    case 1:
        return list_keys(queue, refine, err);
    case 2:
        return make_set(queue, refine->call.view.keys, refine->n, &refine->set, err);
    case 3:
        return find_near(queue, refine, err);
    case 4:
        return find_links(queue, refine, err);
    default:
        return start_state(queue, refine, err);
    }
}

/* ---- New volumes ---- */

static enum vxd_status check_range(const struct vxd_volume *volume,
                                   struct vxd_queue *queue, const int32_t *entries,
                                   size_t n, struct vxd_err *err)
{
    struct vxd_volume_blocks blocks = {0};
    int32_t *numbers = malloc(n * sizeof *numbers + 1);
    enum vxd_status status;

    if (numbers == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for %zu blocks", n);
    }
    VXD_TRY(vxd_refine_read(queue, entries, n * sizeof *numbers, numbers, err));
    VXD_TRY(vxd_volume_read_blocks(queue, volume, numbers, n, false, &blocks, err));
    for (size_t i = 0; i < 3 * n && status == VXD_OK; i++) {
        int32_t key = blocks.keys[i];

        if (key > VXD_BLOCK_LIMIT / 2 - 1 || key < -VXD_BLOCK_LIMIT / 2) {
            status = vxd_fail(err, VXD_OUT_OF_RANGE, "upsample",
                              "halved voxels would be farther than 2^20 blocks from the "
                              "volume's origin");
        }
    }
out:
    vxd_volume_blocks_free(queue, &blocks);
    free(numbers);
    return status;
}

static enum vxd_status add_and_fill(struct vxd_queue *queue, struct vxd_refine_call *call,
                                    struct vxd_volume *to, size_t n_new,
                                    struct vxd_err *err)
{
    struct vxd_buffer entries = {NULL, 0, VXD_SPACE_DEVICE};
    enum vxd_status status;

    VXD_TRY(vxd_device_alloc(queue, n_new * sizeof(int32_t), &entries, err));
    VXD_TRY(vxd_volume_add_blocks(queue, to, call->make.codes, n_new, entries.ptr, err));
    call->make.entries = entries.ptr;
    vxd_volume_get_view(to, &call->make.to);
    VXD_TRY(vxd_refine_run(queue, call, VXD_REFINE_STEP_FILL,
                           n_new * (size_t)vxd_volume_block_voxels(&call->make.to), err));
    call->set.volume = call->make.to;
    call->set.entries = entries.ptr;
    call->set.version = vxd_volume_begin_change(to);
    VXD_TRY(vxd_refine_run(queue, call, VXD_REFINE_STEP_STAMP, n_new, err));
    VXD_TRY(vxd_queue_wait(queue, err));
out:
    vxd_device_free(queue, &entries);
    return status;
}

static void new_spec(const struct vxd_volume *from, int doubling, size_t max_bytes,
                     struct vxd_volume_spec *spec, float *rescale)
{
    struct vxd_volume_info info;

    vxd_volume_get_info(from, &info);
    *spec = info.spec;
    spec->has_albedo = true;
    spec->capacity = 0;
    spec->max_bytes = max_bytes;
    *rescale = 1;
    if (doubling) {
        spec->voxel_size_m /= 2;
        /* As many voxels before and behind the surface: fewer blocks. */
        spec->truncation_m /= 2;
        *rescale = 2;
    }
}

enum vxd_status vxd_refine_make_volume(struct vxd_queue *queue, struct vxd_volume *from,
                                       int doubling, size_t max_bytes,
                                       struct vxd_volume **out, struct vxd_err *err)
{
    struct vxd_refine_call call = {.make = {.doubling = doubling}};
    struct vxd_buffer entries = {NULL, 0, VXD_SPACE_DEVICE};
    struct vxd_buffer flags = {NULL, 0, VXD_SPACE_DEVICE};
    struct vxd_buffer codes = {NULL, 0, VXD_SPACE_DEVICE};
    struct vxd_volume_spec spec;
    size_t n = 0;
    size_t n_children;
    uint32_t n_new = 0;
    enum vxd_status status;

    *out = NULL;
    new_spec(from, doubling, max_bytes, &spec, &call.make.rescale);
    VXD_TRY(list_blocks(queue, from, &entries, &n, err));
    n_children = n << (3 * doubling);
    if (doubling && n > 0) {
        VXD_TRY(check_range(from, queue, entries.ptr, n, err));
    }
    VXD_TRY(vxd_volume_create(queue, &spec, out, err));
    VXD_TRY(vxd_device_alloc(queue, (n_children + 1) * sizeof(uint32_t), &flags, err));
    call.make.entries = entries.ptr;
    call.make.flags = flags.ptr;
    vxd_volume_get_view(from, &call.make.from);
    VXD_TRY(vxd_refine_run(queue, &call, VXD_REFINE_STEP_CHILD, n_children, err));
    VXD_TRY(scan_counts(queue, flags.ptr, n_children, &n_new, err));
    if (n_new > 0) {
        VXD_TRY(vxd_device_alloc(queue, n_new * sizeof(uint64_t), &codes, err));
        call.make.codes = codes.ptr;
        VXD_TRY(vxd_refine_run(queue, &call, VXD_REFINE_STEP_CODE, n_children, err));
        VXD_TRY(add_and_fill(queue, &call, *out, n_new, err));
    }
out:
    vxd_device_free(queue, &codes);
    vxd_device_free(queue, &flags);
    vxd_device_free(queue, &entries);
    if (status != VXD_OK) {
        vxd_volume_destroy(queue, *out);
        *out = NULL;
    }
    return status;
}

/* ---- Results ---- */

enum vxd_status vxd_refine_write_back(struct vxd_queue *queue, struct vxd_refine *refine,
                                      struct vxd_volume *volume, struct vxd_err *err)
{
    struct vxd_refine_call *call = &refine->call;
    enum vxd_status status;

    vxd_volume_get_view(volume, &call->set.volume);
    call->set.version = vxd_volume_begin_change(volume);
    VXD_TRY(vxd_refine_run(queue, call, VXD_REFINE_STEP_APPLY, refine->n, err));
    VXD_TRY(vxd_refine_run(queue, call, VXD_REFINE_STEP_STAMP, refine->n_blocks, err));
out:
    return status;
}
