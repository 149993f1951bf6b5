// SPDX-License-Identifier: Apache-2.0
/* A scan into a volume, stage after stage: rays, the blocks near hits, new blocks, and then sums
 * of what rays observe, or what voxels see in the range image. */
#include "gpu/volume/scan/scan_internal.h"

#define FIRST_SLOTS ((size_t)1 << 15)
#define MAX_SLOTS ((size_t)1 << 23)
/* Sums of so many voxels are in memory at once: 128 MB, 160 MB with votes. */
#define SUM_VOXELS ((size_t)1 << 23)

/* The arrays of one scan. */
struct scan_work {
    struct vxd_lidar_call call;
    size_t n_touched;
    size_t n_new;
    size_t n_active;
    struct vxd_buffer counts;
    struct vxd_buffer borders;
    struct vxd_buffer rays;
    struct vxd_buffer image;
    struct vxd_buffer set; /* tags, entries, codes */
    struct vxd_buffer places;
    struct vxd_buffer active;
    struct vxd_buffer passed;
    struct vxd_buffer sums;
    struct vxd_buffer votes;
};

static void free_work(struct vxd_queue *queue, struct scan_work *work)
{
    vxd_device_free(queue, &work->votes);
    vxd_device_free(queue, &work->sums);
    vxd_device_free(queue, &work->passed);
    vxd_device_free(queue, &work->active);
    vxd_device_free(queue, &work->places);
    vxd_device_free(queue, &work->set);
    vxd_device_free(queue, &work->image);
    vxd_device_free(queue, &work->rays);
    vxd_device_free(queue, &work->borders);
    vxd_device_free(queue, &work->counts);
}

static enum vxd_status run(struct vxd_queue *queue, struct vxd_lidar_call *call,
                           enum vxd_lidar_stage stage, size_t n_items,
                           struct vxd_err *err)
{
    call->stage = stage;
    call->n_items = n_items;
    return n_items > 0 ? VXD_BACKEND_FN(queue, vxd_lidar_run)(queue, call, err) : VXD_OK;
}

/* Blocking. */
static enum vxd_status read_counts(struct vxd_queue *queue, const struct scan_work *work,
                                   struct vxd_lidar_counts *out, struct vxd_err *err)
{
    struct vxd_buffer host = {NULL, 0, VXD_SPACE_HOST};
    const void *read = NULL;
    enum vxd_status status;

    VXD_TRY(vxd_download(queue, work->call.counts, sizeof *out, &host, &read, err));
    VXD_TRY(vxd_queue_wait(queue, err));
    *out = *(const struct vxd_lidar_counts *)read;
out:
    vxd_host_free(queue->context, &host);
    return status;
}

/* Makes the rays and the range image. */
static enum vxd_status aim(struct vxd_queue *queue, struct scan_work *work,
                           const struct vxd_volume_scan *scan, struct vxd_err *err)
{
    struct vxd_lidar_call *call = &work->call;
    float borders[VXD_LIDAR_MAX_ROWS + 1];
    size_t border_bytes = ((size_t)call->form.rows + 1) * sizeof(float);
    enum vxd_status status;

    VXD_TRY(vxd_device_alloc(queue, sizeof *call->counts, &work->counts, err));
    call->counts = work->counts.ptr;
    VXD_TRY(vxd_queue_fill(queue, call->counts, 0, sizeof *call->counts, err));
    VXD_TRY(
        vxd_device_alloc(queue, scan->n_points * sizeof *call->rays, &work->rays, err));
    call->rays = work->rays.ptr;
    if (call->form.is_image != 0) {
        size_t n_bytes =
            (size_t)call->form.rows * (size_t)call->form.columns * sizeof(uint64_t);

        vxd_lidar_borders(&scan->lidar, borders);
        VXD_TRY(vxd_device_alloc(queue, border_bytes, &work->borders, err));
        VXD_TRY(vxd_queue_copy(queue, work->borders.ptr, borders, border_bytes, err));
        VXD_TRY(vxd_device_alloc(queue, n_bytes, &work->image, err));
        call->form.borders = work->borders.ptr;
        call->image = work->image.ptr;
        VXD_TRY(vxd_queue_fill(queue, call->image, 0xff, n_bytes, err));
    }
    VXD_TRY(run(queue, call, VXD_LIDAR_AIM, scan->n_points, err));
    VXD_TRY(vxd_queue_wait(queue, err)); /* the borders are on the stack */
out:
    return status;
}

/* Gives the set of touched blocks n_slots slots. */
static enum vxd_status size_set(struct vxd_queue *queue, struct scan_work *work,
                                size_t n_slots, struct vxd_err *err)
{
    size_t total = 0;
    size_t tags;
    size_t entries;
    size_t codes;
    char *at;
    enum vxd_status status;

    if (!vxd_layout_add(&total, n_slots, sizeof(uint64_t), &tags) ||
        !vxd_layout_add(&total, n_slots / 2, sizeof(int32_t), &entries) ||
        !vxd_layout_add(&total, n_slots / 2, sizeof(uint64_t), &codes)) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "%zu slots are too many",
                        n_slots);
    }
    vxd_device_free(queue, &work->set);
    VXD_TRY(vxd_device_alloc(queue, total, &work->set, err));
    at = work->set.ptr;
    work->call.tags = (uint64_t *)(void *)(at + tags);
    work->call.entries = (int32_t *)(void *)(at + entries);
    work->call.codes = (uint64_t *)(void *)(at + codes);
    work->call.slot_mask = (uint32_t)n_slots - 1;
    VXD_TRY(
        vxd_queue_fill(queue, work->call.tags, 0xff, n_slots * sizeof(uint64_t), err));
out:
    return status;
}

/* Finds the blocks near hits; a larger set where there are too many of them. Blocking. */
static enum vxd_status touch(struct vxd_queue *queue, struct scan_work *work,
                             size_t n_points, struct vxd_lidar_counts *counts,
                             struct vxd_err *err)
{
    size_t n_slots = FIRST_SLOTS;
    enum vxd_status status;

    for (;;) {
        VXD_TRY(size_set(queue, work, n_slots, err));
        VXD_TRY(vxd_queue_fill(queue, work->call.counts, 0, 3 * sizeof(uint32_t), err));
        VXD_TRY(run(queue, &work->call, VXD_LIDAR_TOUCH, n_points, err));
        VXD_TRY(read_counts(queue, work, counts, err));
        if (counts->n_taken <= n_slots / 2) {
            return VXD_OK;
        }
        if (n_slots >= MAX_SLOTS) {
            return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                            "the scan touches more than %zu blocks; larger voxels or a "
                            "smaller truncation take fewer",
                            n_slots / 2);
        }
        n_slots *= 8;
        n_slots = n_slots < MAX_SLOTS ? n_slots : MAX_SLOTS;
    }
out:
    return status;
}

/* Lists where each touched block is, and allocates what carving needs. The new blocks hold nothing
 * yet, so a failure leaves what the volume knows as it was.
 */
static enum vxd_status list_blocks(struct vxd_queue *queue, struct vxd_volume *volume,
                                   struct scan_work *work, struct vxd_err *err)
{
    struct vxd_lidar_call *call = &work->call;
    struct vxd_volume_info info;
    size_t n_places;
    enum vxd_status status;

    vxd_volume_get_info(volume, &info);
    vxd_volume_get_view(volume, &call->view);
    n_places = info.capacity + 1;
    VXD_TRY(vxd_device_alloc(queue, n_places * sizeof(int32_t), &work->places, err));
    call->places = work->places.ptr;
    VXD_TRY(vxd_queue_fill(queue, call->places, 0xff, n_places * sizeof(int32_t), err));
    VXD_TRY(run(queue, call, VXD_LIDAR_PLACE, work->n_touched, err));
    if (!(call->form.carve > 0) || info.n_blocks == 0) {
        return VXD_OK;
    }
    VXD_TRY(vxd_device_alloc(queue, n_places * sizeof(int32_t), &work->active, err));
    VXD_TRY(vxd_hashmap_active(queue, vxd_volume_map(volume), work->active.ptr,
                               info.capacity,
                               (uint32_t *)work->active.ptr + info.capacity, err));
    call->active = work->active.ptr;
    work->n_active = info.n_blocks;
    if (call->form.is_image == 0) {
        size_t n_bytes = (info.capacity << (3 * call->view.shift)) / 8;

        VXD_TRY(vxd_device_alloc(queue, n_bytes, &work->passed, err));
        call->passed = work->passed.ptr;
        VXD_TRY(vxd_queue_fill(queue, call->passed, 0, n_bytes, err));
    }
out:
    return status;
}

/* Sums what the rays observe, for so many blocks at a time as there is memory for. */
static enum vxd_status sum_rays(struct vxd_queue *queue, struct scan_work *work,
                                size_t n_points, struct vxd_err *err)
{
    struct vxd_lidar_call *call = &work->call;
    int shift = 3 * call->view.shift;
    size_t most = SUM_VOXELS >> shift;
    size_t n_blocks = work->n_touched < most ? work->n_touched : most;
    size_t n_bytes = (n_blocks << shift) * 2 * sizeof(int64_t);
    enum vxd_status status = VXD_OK;

    if (n_blocks == 0) {
        return VXD_OK;
    }
    VXD_TRY(vxd_device_alloc(queue, n_bytes, &work->sums, err));
    call->sums = work->sums.ptr;
    if (call->form.label_column >= 0 || call->form.labels != NULL) {
        VXD_TRY(vxd_device_alloc(queue, (n_blocks << shift) * sizeof(uint32_t),
                                 &work->votes, err));
        call->votes = work->votes.ptr;
    }
    for (size_t begin = 0; begin < work->n_touched; begin += n_blocks) {
        size_t left = work->n_touched - begin;
        size_t n = left < n_blocks ? left : n_blocks;

        call->begin = (uint32_t)begin;
        call->end = (uint32_t)(begin + n);
        VXD_TRY(vxd_queue_fill(queue, call->sums, 0, n_bytes, err));
        if (call->votes != NULL) {
            VXD_TRY(vxd_queue_fill(queue, call->votes, 0xff,
                                   (n_blocks << shift) * sizeof(uint32_t), err));
        }
        VXD_TRY(run(queue, call, VXD_LIDAR_SUM, n_points, err));
        VXD_TRY(run(queue, call, VXD_LIDAR_FINISH, n << shift, err));
    }
out:
    return status;
}

static enum vxd_status fuse(struct vxd_queue *queue, struct scan_work *work,
                            size_t n_points, struct vxd_err *err)
{
    struct vxd_lidar_call *call = &work->call;
    int shift = 3 * call->view.shift;
    bool carves = work->n_active > 0;
    enum vxd_status status;

    if (call->form.is_image != 0) {
        VXD_TRY(run(queue, call, VXD_LIDAR_LOOK, work->n_touched << shift, err));
        if (carves) {
            VXD_TRY(run(queue, call, VXD_LIDAR_REACH, work->n_active << shift, err));
        }
        return VXD_OK;
    }
    if (carves) {
        VXD_TRY(run(queue, call, VXD_LIDAR_PASS, n_points, err));
    }
    VXD_TRY(sum_rays(queue, work, n_points, err));
    if (carves) {
        VXD_TRY(run(queue, call, VXD_LIDAR_CARVE, work->n_active << (shift - 5), err));
    }
out:
    return status;
}

enum vxd_status vxd_volume_integrate_scan(struct vxd_queue *queue,
                                          struct vxd_volume *volume,
                                          const struct vxd_volume_scan *scan,
                                          struct vxd_volume_scan_result *out,
                                          struct vxd_err *err)
{
    struct scan_work work = {0};
    struct vxd_lidar_counts counts = {0};
    size_t n_points = scan->n_points;
    enum vxd_status status;

    *out = (struct vxd_volume_scan_result){0};
    VXD_TRY(vxd_lidar_form_init(volume, scan, &work.call.form, err));
    if (n_points == 0) {
        return VXD_OK;
    }
    vxd_volume_set_lacking(queue, volume, NULL, 0, 0);
    VXD_TRY(vxd_volume_prepare(queue, volume, err));
    vxd_volume_get_view(volume, &work.call.view);
    VXD_TRY(aim(queue, &work, scan, err));
    VXD_TRY(touch(queue, &work, n_points, &counts, err));
    work.n_touched = (size_t)counts.n_known + counts.n_new;
    if (counts.n_new > 0) {
        status = vxd_volume_add_blocks(queue, volume, work.call.codes, counts.n_new,
                                       work.call.entries + counts.n_known, err);
        if (status != VXD_OK) {
            vxd_volume_set_lacking(queue, volume, work.call.entries, counts.n_known,
                                   counts.n_new);
            goto out;
        }
    }
    VXD_TRY(list_blocks(queue, volume, &work, err));
    work.call.version = vxd_volume_begin_change(volume);
    VXD_TRY(fuse(queue, &work, n_points, err));
    VXD_TRY(read_counts(queue, &work, &counts, err));
    *out = (struct vxd_volume_scan_result){
        .n_used = n_points - counts.n_beyond - counts.n_dropped,
        .n_beyond = counts.n_beyond,
        .n_dropped = counts.n_dropped,
        .n_touched = work.n_touched,
        .n_new = (size_t)counts.n_new,
        .n_carved = counts.n_carved,
    };
out:
    free_work(queue, &work);
    return status;
}
