// SPDX-License-Identifier: Apache-2.0
/* Integration of frames: the frame map and the volume's map (the double hash map), and the
 * ranges of blocks that are fused. */
#include "gpu/volume/volume_internal.h"

/* Frees a buffer and allocates n_bytes instead, unless it has that many already. */
static enum vxd_status resize(struct vxd_queue *queue, struct vxd_buffer *buffer,
                              size_t n_bytes, struct vxd_err *err)
{
    if (buffer->n_bytes >= n_bytes) {
        return VXD_OK;
    }
    vxd_device_free(queue, buffer);
    return vxd_device_alloc(queue, n_bytes, buffer, err);
}

void vxd_volume_forget_frame(struct vxd_queue *queue, struct vxd_volume *volume)
{
    vxd_device_free(queue, &volume->frame_depth);
    vxd_device_free(queue, &volume->frame_new);
    vxd_device_free(queue, &volume->frame_entries);
    vxd_device_free(queue, &volume->frame_tags);
    volume->frame_slots = 0;
    volume->n_active = 0;
    volume->n_known = 0;
    volume->n_lacking = 0;
    volume->frame_width = 0;
    volume->frame_height = 0;
}

/* Gives the frame map n_slots slots. On failure it has none. */
static enum vxd_status resize_frame_map(struct vxd_queue *queue,
                                        struct vxd_volume *volume, size_t n_slots,
                                        struct vxd_err *err)
{
    enum vxd_status status;

    if (volume->frame_slots == n_slots) {
        return VXD_OK;
    }
    volume->frame_slots = 0;
    volume->frame_is_empty = false;
    VXD_TRY(resize(queue, &volume->frame_tags,
                   (VXD_ON_CUDA(queue->context) ? 2 : 1) * n_slots * sizeof(uint64_t),
                   err));
    VXD_TRY(resize(queue, &volume->frame_entries, n_slots / 2 * sizeof(int32_t), err));
    VXD_TRY(resize(queue, &volume->frame_new, n_slots / 2 * sizeof(uint64_t), err));
    volume->frame_slots = n_slots;
out:
    return status;
}

/* The tags and the counts of a half of the frame map. */
static uint64_t *tags_of(const struct vxd_volume *volume, int half)
{
    return (uint64_t *)volume->frame_tags.ptr + (size_t)half * volume->frame_slots;
}

static struct vxd_frame_counts *counts_of(const struct vxd_volume *volume, int half)
{
    return (struct vxd_frame_counts *)volume->frame_counts.ptr + half;
}

/* Finds the touched blocks once, with the frame map as large as it is. Blocks until they are counted.
 * ahead: what is queued behind that, for the device to do if no more is needed; NULL: nothing. */
static enum vxd_status touch(struct vxd_queue *queue, struct vxd_volume *volume,
                             const struct vxd_frame_form *frame,
                             struct vxd_fuse_call *ahead, struct vxd_frame_counts *counts,
                             struct vxd_err *err)
{
    int half = VXD_ON_CUDA(queue->context) ? 1 - volume->frame_half : 0;
    struct vxd_touch_call call = {.frame = *frame,
                                  .tags = tags_of(volume, half),
                                  .slot_mask = (uint32_t)volume->frame_slots - 1,
                                  .entries = volume->frame_entries.ptr,
                                  .codes = volume->frame_new.ptr,
                                  .depth = volume->frame_depth.ptr,
                                  .counts = counts_of(volume, half),
                                  .next_tags = tags_of(volume, 1 - half),
                                  .next_counts = counts_of(volume, 1 - half),
                                  .is_empty = volume->frame_is_empty};
    struct vxd_buffer host = {NULL, 0, VXD_SPACE_HOST};
    enum vxd_status status;

    vxd_volume_get_view(volume, &call.view);
    VXD_TRY(vxd_host_alloc(queue->context, sizeof *call.report, &host, err));
    call.report = host.ptr;
    volume->frame_half = half;
    volume->frame_is_empty = false;
    VXD_TRY(VXD_BACKEND_FN(queue, vxd_volume_touch)(queue, &call, err));
    volume->frame_is_empty = true;
    VXD_TRY(vxd_queue_mark(queue, err));
    if (ahead != NULL) {
        ahead->view = call.view;
        ahead->entries = call.entries;
        ahead->counts = call.counts;
        ahead->most_taken = (uint32_t)(volume->frame_slots / 2);
        VXD_TRY(VXD_BACKEND_FN(queue, vxd_volume_fuse)(queue, ahead, err));
    }
    VXD_TRY(vxd_queue_wait_mark(queue, err));
    *counts = *(const struct vxd_frame_counts *)host.ptr;
out:
    if (status != VXD_OK) { /* what is queued may write to the host's memory */
        (void)vxd_queue_wait(queue, NULL);
    }
    vxd_host_free(queue->context, &host);
    return status;
}

/* Finds the touched blocks, with a larger frame map where there are too many of them. */
static enum vxd_status touch_all(struct vxd_queue *queue, struct vxd_volume *volume,
                                 const struct vxd_frame_form *frame,
                                 struct vxd_fuse_call *ahead,
                                 struct vxd_frame_counts *counts, struct vxd_err *err)
{
    size_t n_slots =
        volume->frame_slots != 0 ? volume->frame_slots : VXD_FRAME_FIRST_SLOTS;
    enum vxd_status status;

    for (;;) {
        VXD_TRY(resize_frame_map(queue, volume, n_slots, err));
        VXD_TRY(touch(queue, volume, frame, ahead, counts, err));
        if (counts->n_taken <= n_slots / 2) {
            return VXD_OK;
        }
        if (n_slots >= VXD_FRAME_MAX_SLOTS) {
            return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                            "the frame touches more than %zu blocks; larger voxels or a "
                            "smaller truncation take fewer",
                            n_slots / 2);
        }
        n_slots = n_slots * 8 < VXD_FRAME_MAX_SLOTS ? n_slots * 8 : VXD_FRAME_MAX_SLOTS;
    }
out:
    return status;
}

/* Grows the map for n_new blocks, by half of it where the budget allows that. */
static enum vxd_status grow(struct vxd_queue *queue, struct vxd_volume *volume,
                            size_t n_new, struct vxd_err *err)
{
    size_t capacity = vxd_hashmap_capacity(volume->map);
    size_t needed = volume->n_blocks + n_new;
    size_t wished = capacity + capacity / 2;
    enum vxd_status status = VXD_OK;

    if (needed > capacity) {
        status = needed < wished ? vxd_hashmap_reserve(queue, volume->map, wished, NULL)
                                 : VXD_RESOURCE_EXHAUSTED;
        if (status != VXD_OK) {
            status = vxd_hashmap_reserve(queue, volume->map, needed, err);
        }
    }
    if (status == VXD_OK &&
        volume->table.n_bytes / sizeof(struct vxd_block_slot) <
            vxd_volume_table_slots(vxd_hashmap_capacity(volume->map))) {
        status = vxd_volume_rebuild_table(queue, volume, err);
    }
    return status;
}

enum vxd_status vxd_volume_prepare(struct vxd_queue *queue, struct vxd_volume *volume,
                                   struct vxd_err *err)
{
    return volume->table_is_stale ? vxd_volume_mend(queue, volume, err) : VXD_OK;
}

uint64_t vxd_volume_begin_change(struct vxd_volume *volume)
{
    return ++volume->version;
}

enum vxd_status vxd_volume_add_blocks(struct vxd_queue *queue, struct vxd_volume *volume,
                                      uint64_t *codes, size_t n, int32_t *entries,
                                      struct vxd_err *err)
{
    bool is_ranked = VXD_ON_CUDA(queue->context) && n <= VXD_RANKED_CODES;
    size_t n_sorted = is_ranked ? 0 : n;
    size_t sort_bytes = is_ranked ? 0 : vxd_sort_pairs_scratch_bytes(queue, n);
    struct vxd_hashmap_insert_args insert = {
        .n = n, .order = VXD_HASH_FIRST, .max_new = n, .indices = entries};
    struct vxd_buffer scratch = {NULL, 0, VXD_SPACE_DEVICE};
    size_t total = 0;
    size_t values;
    size_t other_codes;
    size_t other_values;
    size_t keys;
    size_t sort;
    char *at;
    enum vxd_status status;

    if (!vxd_layout_add(&total, n_sorted, sizeof(uint32_t), &values) ||
        !vxd_layout_add(&total, n_sorted, sizeof(uint64_t), &other_codes) ||
        !vxd_layout_add(&total, n_sorted, sizeof(uint32_t), &other_values) ||
        !vxd_layout_add(&total, n, 3 * sizeof(int32_t), &keys) ||
        !vxd_layout_add(&total, sort_bytes, 1, &sort)) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "%zu blocks are too many", n);
    }
    VXD_TRY(vxd_device_alloc(queue, total, &scratch, err));
    at = scratch.ptr;
    insert.keys = at + keys;
    if (VXD_ON_CUDA(queue->context) && is_ranked) {
        VXD_TRY(vxd_volume_rank_keys_cuda(queue, codes, n, (int32_t *)(void *)(at + keys),
                                          err));
    } else {
        VXD_TRY(vxd_queue_fill(queue, at + values, 0, n * sizeof(uint32_t), err));
        VXD_TRY(vxd_sort_pairs(queue, codes, (uint32_t *)(void *)(at + values),
                               (uint64_t *)(void *)(at + other_codes),
                               (uint32_t *)(void *)(at + other_values), n, 0, 63,
                               at + sort, sort_bytes, err));
        VXD_TRY(VXD_BACKEND_FN(queue, vxd_volume_code_keys)(
            queue, codes, n, (int32_t *)(void *)(at + keys), err));
    }
    VXD_TRY(grow(queue, volume, n, err));
    volume->table_is_stale =
        true; /* a refused insert may leave the map's bound too high */
    VXD_TRY(vxd_hashmap_insert(queue, volume->map, &insert, err));
    volume->n_blocks += n;
    VXD_TRY(VXD_BACKEND_FN(queue, vxd_volume_table_add)(queue, volume, entries, n, err));
    volume->table_is_stale = false;
    vxd_volume_link(queue, volume, entries, n);
out:
    vxd_device_free(queue, &scratch);
    return status;
}

void vxd_volume_set_lacking(struct vxd_queue *queue, struct vxd_volume *volume,
                            const int32_t *entries, size_t n_known, size_t n_lacking)
{
    size_t n_bytes = (n_known + 1) * sizeof *entries;

    volume->n_known = 0;
    volume->n_lacking = 0;
    if (n_lacking == 0) {
        return;
    }
    volume->n_active = 0; /* the entries of the last frame make place for these */
    volume->n_touched = 0;
    volume->frame_width = 0;
    volume->frame_height = 0;
    if (resize(queue, &volume->frame_entries, n_bytes, NULL) != VXD_OK) {
        volume->frame_slots = 0;
        return;
    }
    if (n_known == 0 || vxd_queue_copy(queue, volume->frame_entries.ptr, entries,
                                       n_known * sizeof *entries, NULL) == VXD_OK) {
        volume->n_known = n_known;
        volume->n_lacking = n_lacking;
    }
}

/* Lists the blocks that the frame carves behind those that it touches. Blocking. */
static enum vxd_status reach(struct vxd_queue *queue, struct vxd_volume *volume,
                             const struct vxd_volume_frame *frame, struct vxd_err *err)
{
    size_t capacity = vxd_hashmap_capacity(volume->map);
    size_t touched_bytes = volume->n_touched * sizeof(int32_t);
    struct vxd_buffer active = {NULL, 0, VXD_SPACE_DEVICE};
    struct vxd_buffer entries = {NULL, 0, VXD_SPACE_DEVICE};
    struct vxd_buffer host = {NULL, 0, VXD_SPACE_HOST};
    struct vxd_reach_call call = {.tags = tags_of(volume, volume->frame_half),
                                  .slot_mask = (uint32_t)volume->frame_slots - 1,
                                  .n = volume->n_blocks,
                                  .block_size =
                                      volume->spec.voxel_size_m * volume->spec.block_edge,
                                  .reach = frame->carve_m};
    const void *read = NULL;
    enum vxd_status status;

    /* The list of all blocks, their number, and the number of those that are listed. */
    VXD_TRY(vxd_device_alloc(queue, (capacity + 2) * sizeof(int32_t), &active, err));
    VXD_TRY(vxd_device_alloc(queue,
                             touched_bytes + volume->n_blocks * sizeof(int32_t) +
                                 volume->frame_entries.n_bytes,
                             &entries, err));
    call.active = active.ptr;
    call.n_reached = (uint32_t *)active.ptr + capacity + 1;
    call.entries = (int32_t *)entries.ptr + volume->n_touched;
    for (int axis = 0; axis < 3; axis++) {
        call.camera_at[axis] =
            frame->T_map_camera.translation[axis] - volume->spec.origin_m[axis];
    }
    vxd_volume_get_view(volume, &call.view);
    VXD_TRY(vxd_queue_fill(queue, call.n_reached, 0, sizeof(uint32_t), err));
    VXD_TRY(vxd_hashmap_active(queue, volume->map, active.ptr, capacity,
                               (uint32_t *)active.ptr + capacity, err));
    if (touched_bytes > 0) {
        VXD_TRY(vxd_queue_copy(queue, entries.ptr, volume->frame_entries.ptr,
                               touched_bytes, err));
    }
    VXD_TRY(VXD_BACKEND_FN(queue, vxd_volume_reach)(queue, &call, err));
    VXD_TRY(vxd_download(queue, call.n_reached, sizeof(uint32_t), &host, &read, err));
    VXD_TRY(vxd_queue_wait(queue, err));
    volume->n_active = volume->n_touched + *(const uint32_t *)read;
    vxd_device_free(queue, &volume->frame_entries);
    volume->frame_entries = entries;
    entries = (struct vxd_buffer){NULL, 0, VXD_SPACE_DEVICE};
out:
    vxd_host_free(queue->context, &host);
    vxd_device_free(queue, &entries);
    vxd_device_free(queue, &active);
    return status;
}

/* Activates a frame whose form is given. ahead: fuses the blocks if no more is needed, and says so in
 * *is_fused; NULL: does not. */
static enum vxd_status activate(struct vxd_queue *queue, struct vxd_volume *volume,
                                const struct vxd_volume_frame *frame,
                                const struct vxd_frame_form *form,
                                struct vxd_fuse_call *ahead, bool *is_fused,
                                struct vxd_volume_activation *out, struct vxd_err *err)
{
    struct vxd_frame_counts counts = {0};
    size_t n_pixels;
    enum vxd_status status;

    *out = (struct vxd_volume_activation){0};
    volume->n_active = 0;
    volume->n_known = 0;
    volume->n_lacking = 0;
    volume->frame_width = 0;
    volume->frame_height = 0;
    VXD_TRY(vxd_volume_prepare(queue, volume, err));
    n_pixels = (size_t)form->camera.width * (size_t)form->camera.height;
    VXD_TRY(resize(queue, &volume->frame_depth, (n_pixels + 1) * sizeof(float), err));
    if (ahead != NULL) {
        ahead->depth = volume->frame_depth.ptr;
    }
    VXD_TRY(touch_all(queue, volume, form, ahead, &counts, err));
    *is_fused =
        ahead != NULL && vxd_volume_fuses_ahead(&counts, ahead->most_taken, ahead->n);
    if (counts.n_new > 0) {
        volume->n_known = counts.n_known;
        volume->n_lacking = counts.n_new;
        /* The new blocks come behind the known ones of the frame. */
        VXD_TRY(vxd_volume_add_blocks(
            queue, volume, volume->frame_new.ptr, counts.n_new,
            (int32_t *)volume->frame_entries.ptr + counts.n_known, err));
    }
    volume->n_known = 0;
    volume->n_lacking = 0;
    volume->n_touched = (size_t)counts.n_known + counts.n_new;
    volume->n_active = volume->n_touched;
    if (frame->carve_m > 0 && volume->n_blocks > 0) {
        VXD_TRY(reach(queue, volume, frame, err));
    }
    volume->frame_width = form->camera.width;
    volume->frame_height = form->camera.height;
    *out =
        (struct vxd_volume_activation){.n_blocks = volume->n_active,
                                       .n_carved = volume->n_active - volume->n_touched,
                                       .n_new = counts.n_new,
                                       .n_dropped = counts.n_dropped};
out:
    return status;
}

enum vxd_status vxd_volume_activate(struct vxd_queue *queue, struct vxd_volume *volume,
                                    const struct vxd_volume_frame *frame,
                                    struct vxd_volume_activation *out,
                                    struct vxd_err *err)
{
    struct vxd_frame_form form;
    bool is_fused;
    enum vxd_status status;

    *out = (struct vxd_volume_activation){0};
    VXD_TRY(vxd_frame_form_init(volume, frame, &form, err));
    VXD_TRY(activate(queue, volume, frame, &form, NULL, &is_fused, out, err));
out:
    return status;
}

enum vxd_status vxd_volume_fuse(struct vxd_queue *queue, struct vxd_volume *volume,
                                const struct vxd_volume_frame *frame, size_t begin,
                                size_t end, struct vxd_err *err)
{
    struct vxd_fuse_call call = {.counts = NULL};
    enum vxd_status status;

    VXD_TRY(vxd_frame_form_init(volume, frame, &call.frame, err));
    if (volume->frame_width != call.frame.camera.width ||
        volume->frame_height != call.frame.camera.height) {
        return vxd_fail(err, VXD_FAILED_PRECONDITION, NULL,
                        "the last activation was of a frame of %d x %d pixels, not of "
                        "%d x %d",
                        volume->frame_width, volume->frame_height,
                        call.frame.camera.width, call.frame.camera.height);
    }
    if (begin > end || end > volume->n_active) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "end",
                        "blocks %zu to %zu of the %zu that the frame touches", begin, end,
                        volume->n_active);
    }
    vxd_volume_get_view(volume, &call.view);
    call.entries = (const int32_t *)volume->frame_entries.ptr + begin;
    call.n = end - begin;
    call.depth = volume->frame_depth.ptr;
    call.version = volume->version + (begin == 0 ? 1 : 0);
    if (begin < end) {
        VXD_TRY(VXD_BACKEND_FN(queue, vxd_volume_fuse)(queue, &call, err));
    }
    volume->version = call.version;
out:
    return status;
}

/* A GPU would wait for the host between the two halves. Once a volume knows a scene most frames have no
 * new blocks, so the second half is queued before the first is counted; the device leaves it out where
 * there are new ones. */
enum vxd_status vxd_volume_integrate(struct vxd_queue *queue, struct vxd_volume *volume,
                                     const struct vxd_volume_frame *frame,
                                     struct vxd_volume_activation *out,
                                     struct vxd_err *err)
{
    size_t n_before = volume->n_touched;
    struct vxd_fuse_call ahead = {.n = n_before + n_before / 4 + 64};
    bool has_ahead = VXD_ON_CUDA(queue->context) && n_before > 0 && !(frame->carve_m > 0);
    bool is_fused = false;
    enum vxd_status status;

    *out = (struct vxd_volume_activation){0};
    VXD_TRY(vxd_frame_form_init(volume, frame, &ahead.frame, err));
    ahead.version = volume->version + 1;
    VXD_TRY(activate(queue, volume, frame, &ahead.frame, has_ahead ? &ahead : NULL,
                     &is_fused, out, err));
    if (is_fused) {
        volume->version = ahead.version;
        return VXD_OK;
    }
    VXD_TRY(vxd_volume_fuse(queue, volume, frame, 0, volume->n_active, err));
out:
    return status;
}
