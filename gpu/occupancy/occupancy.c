// SPDX-License-Identifier: Apache-2.0
/* Layers as objects, and everything but scans: changes of other kinds, values, numbers. */
#include "gpu/occupancy/occupancy.h"

#include <stdlib.h>

#include "gpu/occupancy/occupancy_backends.h"
#include "gpu/svdag/store/store.h"

static const struct vxd_hashmap_spec map_spec = {
    .key_dtype = VXD_INT64,
    .n_components = 1,
    .n_values = 1,
    .values = {{VXD_INT8, VXD_OCCUPANCY_BLOCK_VOXELS}}};

static const struct vxd_hashmap_spec votes_spec = {
    .key_dtype = VXD_INT64,
    .n_components = 1,
    .n_values = 1,
    .values = {{VXD_UINT64, VXD_OCCUPANCY_BLOCK_VOXELS}}};

#define SMALL_BYTES ((size_t)64 << 20)

enum {
    SMALL_GROWTH_PERCENT = 1,
    GROWTH_PERCENT = 6
};

enum vxd_status vxd_occupancy_create(struct vxd_queue *queue,
                                     const struct vxd_occupancy_rule *rule, int depth,
                                     struct vxd_occupancy **out, struct vxd_err *err)
{
    struct vxd_occupancy *layer = calloc(1, sizeof *layer);
    enum vxd_status status;

    if (layer == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for log-odds");
    }
    layer->rule = *rule;
    layer->depth = depth;
    VXD_TRY(vxd_hashmap_create(queue, &map_spec, &layer->map, err));
    if (rule->votes > 0) {
        VXD_TRY(vxd_hashmap_create(queue, &votes_spec, &layer->votes, err));
    }
    VXD_TRY(vxd_queue_wait(queue, err)); /* another queue may use it next */
    *out = layer;
out:
    if (status != VXD_OK) {
        vxd_occupancy_destroy(queue, layer);
    }
    return status;
}

void vxd_occupancy_destroy(struct vxd_queue *queue, struct vxd_occupancy *layer)
{
    if (layer != NULL) {
        vxd_hashmap_destroy(queue, layer->votes);
        vxd_hashmap_destroy(queue, layer->map);
        free(layer);
    }
}

enum vxd_status vxd_occupancy_copy(struct vxd_queue *queue,
                                   const struct vxd_occupancy *layer,
                                   struct vxd_occupancy **out, struct vxd_err *err)
{
    struct vxd_occupancy *copy = calloc(1, sizeof *copy);
    enum vxd_status status;

    if (copy == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for log-odds");
    }
    *copy = *layer;
    copy->map = NULL;
    copy->votes = NULL;
    VXD_TRY(vxd_hashmap_copy(queue, layer->map, queue, VXD_HASH_OPEN, &copy->map, err));
    if (layer->votes != NULL) {
        VXD_TRY(vxd_hashmap_copy(queue, layer->votes, queue, VXD_HASH_OPEN, &copy->votes,
                                 err));
    }
    *out = copy;
out:
    if (status != VXD_OK) {
        vxd_occupancy_destroy(queue, copy);
    }
    return status;
}

const struct vxd_occupancy_rule *vxd_occupancy_get_rule(const struct vxd_occupancy *layer)
{
    return &layer->rule;
}

size_t vxd_occupancy_n_bytes(const struct vxd_occupancy *layer)
{
    return vxd_hashmap_n_bytes(layer->map) + vxd_occupancy_vote_bytes(layer);
}

size_t vxd_occupancy_vote_bytes(const struct vxd_occupancy *layer)
{
    return layer->votes != NULL ? vxd_hashmap_n_bytes(layer->votes) : 0;
}

void vxd_occupancy_set_max_bytes(struct vxd_occupancy *layer, size_t max_bytes)
{
    size_t of_votes = vxd_occupancy_vote_bytes(layer);

    layer->max_bytes = max_bytes;
    vxd_hashmap_set_max_bytes(layer->map, max_bytes == 0         ? 0
                                          : max_bytes > of_votes ? max_bytes - of_votes
                                                                 : 1);
    vxd_occupancy_allow_votes(layer);
}

bool vxd_occupancy_is_damaged(const struct vxd_occupancy *layer)
{
    return layer->is_damaged;
}

enum vxd_status vxd_occupancy_mend(struct vxd_queue *queue, struct vxd_occupancy *layer,
                                   struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    if (layer->is_damaged) {
        VXD_TRY(vxd_hashmap_clear(queue, layer->map, err));
        if (layer->votes != NULL) {
            VXD_TRY(vxd_hashmap_clear(queue, layer->votes, err));
        }
        layer->is_damaged = false;
    }
out:
    return status;
}

enum vxd_status vxd_occupancy_clear(struct vxd_queue *queue, struct vxd_occupancy *layer,
                                    struct vxd_err *err)
{
    layer->is_damaged = true;
    return vxd_occupancy_mend(queue, layer, err);
}

/* Images ------------------------------------------------------------------------------ */

enum vxd_status vxd_occupancy_image_alloc(struct vxd_context *context, size_t n_blocks,
                                          size_t n_vote_blocks,
                                          struct vxd_occupancy_image *out,
                                          struct vxd_err *err)
{
    size_t n_bytes;
    size_t n_vote_bytes;
    enum vxd_status status;

    *out = (struct vxd_occupancy_image){.n_blocks = n_blocks,
                                        .n_vote_blocks = n_vote_blocks};
    if (!vxd_size_mul(n_blocks, VXD_OCCUPANCY_BLOCK_VOXELS, &n_bytes) ||
        !vxd_size_mul(n_vote_blocks, VXD_OCCUPANCY_BLOCK_VOXELS * sizeof(uint64_t),
                      &n_vote_bytes)) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for %zu blocks",
                        n_blocks);
    }
    VXD_TRY(vxd_host_alloc(context, n_blocks * sizeof(int64_t), &out->keys, err));
    VXD_TRY(vxd_host_alloc(context, n_bytes, &out->rows, err));
    VXD_TRY(
        vxd_host_alloc(context, n_vote_blocks * sizeof(int64_t), &out->vote_keys, err));
    VXD_TRY(vxd_host_alloc(context, n_vote_bytes, &out->vote_rows, err));
out:
    if (status != VXD_OK) {
        vxd_occupancy_image_free(context, out);
    }
    return status;
}

void vxd_occupancy_image_free(struct vxd_context *context,
                              struct vxd_occupancy_image *image)
{
    vxd_host_free(context, &image->keys);
    vxd_host_free(context, &image->rows);
    vxd_host_free(context, &image->vote_keys);
    vxd_host_free(context, &image->vote_rows);
    *image = (struct vxd_occupancy_image){0};
}

/* Takes keys and rows of a map's image. */
static enum vxd_status export_map(struct vxd_queue *queue, const struct vxd_hashmap *map,
                                  size_t *n, struct vxd_buffer *keys,
                                  struct vxd_buffer *rows, struct vxd_err *err)
{
    struct vxd_hashmap_image image;
    enum vxd_status status = vxd_hashmap_export(queue, map, &image, err);

    if (status != VXD_OK) {
        return status;
    }
    *n = image.n_entries;
    *keys = image.keys;
    *rows = image.values[0];
    image.keys = (struct vxd_buffer){0};
    image.values[0] = (struct vxd_buffer){0};
    vxd_hashmap_image_free(&image);
    return VXD_OK;
}

enum vxd_status vxd_occupancy_export(struct vxd_queue *queue, struct vxd_occupancy *layer,
                                     struct vxd_occupancy_image *out, struct vxd_err *err)
{
    enum vxd_status status;

    *out = (struct vxd_occupancy_image){0};
    VXD_TRY(vxd_occupancy_mend(queue, layer, err));
    VXD_TRY(export_map(queue, layer->map, &out->n_blocks, &out->keys, &out->rows, err));
    if (layer->votes != NULL) {
        VXD_TRY(export_map(queue, layer->votes, &out->n_vote_blocks, &out->vote_keys,
                           &out->vote_rows, err));
    }
out:
    if (status != VXD_OK) {
        vxd_occupancy_image_free(queue->context, out);
    }
    return status;
}

/* Checks what no layer of this rule and depth has. */
static enum vxd_status check_image(const struct vxd_occupancy *layer,
                                   const struct vxd_occupancy_image *image,
                                   struct vxd_err *err)
{
    const int64_t n_keys = (int64_t)1 << (3 * layer->depth - 9);
    const int64_t *keys = image->keys.ptr;
    const int8_t *values = image->rows.ptr;

    for (size_t i = 0; i < image->n_blocks; i++) {
        if (keys[i] < 0 || keys[i] >= n_keys) {
            return vxd_fail(err, VXD_DATA_LOSS, NULL,
                            "a block of log-odds is outside the scene");
        }
    }
    for (size_t i = 0; i < image->n_blocks * VXD_OCCUPANCY_BLOCK_VOXELS; i++) {
        if (values[i] != VXD_OCCUPANCY_UNKNOWN &&
            (values[i] < layer->rule.low || values[i] > layer->rule.high)) {
            return vxd_fail(err, VXD_DATA_LOSS, NULL, "a log-odds is beyond its clamps");
        }
    }
    keys = image->vote_keys.ptr;
    for (size_t i = 0; i < image->n_vote_blocks; i++) {
        if (layer->votes == NULL || keys[i] < 0 || keys[i] >= n_keys) {
            return vxd_fail(err, VXD_DATA_LOSS, NULL,
                            "a block of votes is outside the scene, which may have none");
        }
    }
    return VXD_OK;
}

/* A map of an image's keys and rows. */
static enum vxd_status import_map(struct vxd_queue *queue,
                                  const struct vxd_hashmap_spec *spec, size_t n,
                                  const struct vxd_buffer *keys,
                                  const struct vxd_buffer *rows, struct vxd_hashmap **out,
                                  struct vxd_err *err)
{
    struct vxd_hashmap_image map = {
        .context = queue->context, .spec = *spec, .n_entries = n, .keys = *keys};
    enum vxd_status status;

    map.spec.capacity = n;
    map.values[0] = *rows;
    VXD_TRY(vxd_host_alloc(queue->context, n * sizeof(int32_t), &map.indices, err));
    for (size_t i = 0; i < n; i++) {
        ((int32_t *)map.indices.ptr)[i] = (int32_t)i;
    }
    VXD_TRY(vxd_hashmap_import(queue, &map, out, err));
out:
    vxd_host_free(queue->context, &map.indices);
    return status;
}

enum vxd_status vxd_occupancy_import(struct vxd_queue *queue, struct vxd_occupancy *layer,
                                     const struct vxd_occupancy_image *image,
                                     struct vxd_err *err)
{
    struct vxd_hashmap *loaded = NULL;
    struct vxd_hashmap *votes = NULL;
    enum vxd_status status;

    VXD_TRY(check_image(layer, image, err));
    VXD_TRY(import_map(queue, &map_spec, image->n_blocks, &image->keys, &image->rows,
                       &loaded, err));
    if (image->n_vote_blocks > 0) {
        VXD_TRY(import_map(queue, &votes_spec, image->n_vote_blocks, &image->vote_keys,
                           &image->vote_rows, &votes, err));
        vxd_hashmap_destroy(queue, layer->votes);
        layer->votes = votes;
    }
    vxd_hashmap_destroy(queue, layer->map);
    layer->map = loaded;
    loaded = NULL;
out:
    vxd_hashmap_destroy(queue, loaded);
    return status;
}

static enum vxd_status check_stop(void *user, struct vxd_err *err)
{
    return vxd_svdag_check_stop(user, err);
}

enum vxd_status vxd_occupancy_prepare(struct vxd_queue *queue, struct vxd_hashmap *map,
                                      const struct vxd_svdag *svdag, const int64_t *keys,
                                      size_t n, size_t *n_new, struct vxd_err *err)
{
    enum vxd_status status;

    vxd_hashmap_set_growth(map, vxd_hashmap_n_bytes(map) < SMALL_BYTES
                                    ? SMALL_GROWTH_PERCENT
                                    : GROWTH_PERCENT);
    if (!VXD_ON_CUDA(queue->context)) {
        /* The check only reads it. */
        vxd_hashmap_set_check(map, check_stop, (void *)(uintptr_t)svdag);
    }
    status = vxd_hashmap_prepare(queue, map, keys, n, n_new, err);
    vxd_hashmap_set_check(map, NULL, NULL);
    return status;
}

/* Blocks ------------------------------------------------------------------------------ */

enum vxd_status vxd_occupancy_list_blocks(struct vxd_queue *queue,
                                          struct vxd_occupancy *layer,
                                          struct vxd_buffer *memory, size_t *n,
                                          struct vxd_err *err)
{
    struct vxd_buffer count = {0};
    enum vxd_status status;

    VXD_TRY(vxd_occupancy_mend(queue, layer, err));
    VXD_TRY(vxd_hashmap_size(queue, layer->map, n, err));
    if (*n == 0) {
        goto out;
    }
    VXD_TRY(vxd_device_alloc(queue, *n * sizeof(int32_t), memory, err));
    VXD_TRY(vxd_device_alloc(queue, sizeof(uint32_t), &count, err));
    VXD_TRY(vxd_hashmap_active(queue, layer->map, memory->ptr, *n, count.ptr, err));
out:
    vxd_device_free(queue, &count);
    return status;
}

/* What the steps need of a layer. */
static struct vxd_occupancy_work work_of(const struct vxd_occupancy *layer)
{
    return (struct vxd_occupancy_work){.rule = layer->rule,
                                       .rows = vxd_hashmap_values(layer->map, 0),
                                       .layer_keys = vxd_hashmap_keys(layer->map)};
}

enum vxd_status vxd_occupancy_follow(struct vxd_queue *queue, struct vxd_occupancy *layer,
                                     const struct vxd_svdag *svdag, uint32_t before,
                                     uint32_t after, struct vxd_err *err)
{
    struct vxd_buffer memory = {0};
    struct vxd_occupancy_work work;
    size_t n;
    enum vxd_status status;

    if (before == after) {
        return VXD_OK;
    }
    VXD_TRY(vxd_occupancy_list_blocks(queue, layer, &memory, &n, err));
    if (n > 0) {
        work = work_of(layer);
        work.view = svdag->view;
        work.root_before = before;
        work.root = after;
        work.entries = memory.ptr;
        VXD_TRY(VXD_BACKEND_FN(queue, vxd_occupancy_run)(queue, VXD_OCCUPANCY_FOLLOW,
                                                         &work, n, err));
        VXD_TRY(vxd_queue_wait(queue, err));
    }
out:
    vxd_device_free(queue, &memory);
    return status;
}

enum vxd_status vxd_occupancy_values(struct vxd_queue *queue, struct vxd_occupancy *layer,
                                     const struct vxd_svdag *svdag, uint32_t root,
                                     const int32_t *voxels, size_t n, int8_t *values,
                                     struct vxd_err *err)
{
    struct vxd_buffer memory = {0};
    struct vxd_occupancy_work work = work_of(layer);
    size_t n_bytes = 0;
    size_t at[2];
    enum vxd_status status;

    if (n == 0) {
        return VXD_OK;
    }
    if (!vxd_layout_add(&n_bytes, n, sizeof(int64_t), &at[0]) ||
        !vxd_layout_add(&n_bytes, n, sizeof(int32_t), &at[1])) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for %zu voxels", n);
    }
    VXD_TRY(vxd_occupancy_mend(queue, layer, err));
    VXD_TRY(vxd_device_alloc(queue, n_bytes, &memory, err));
    work.view = svdag->view;
    work.root = root;
    work.voxels = voxels;
    work.values = values;
    work.block_keys = (void *)((char *)memory.ptr + at[0]);
    work.entries = (void *)((char *)memory.ptr + at[1]);
    VXD_TRY(VXD_BACKEND_FN(queue, vxd_occupancy_run)(queue, VXD_OCCUPANCY_LOCATE, &work,
                                                     n, err));
    VXD_TRY(
        vxd_hashmap_find(queue, layer->map, work.block_keys, n, work.entries, NULL, err));
    VXD_TRY(VXD_BACKEND_FN(queue, vxd_occupancy_run)(queue, VXD_OCCUPANCY_READ, &work, n,
                                                     err));
out:
    vxd_device_free(queue, &memory);
    return status;
}

enum vxd_status vxd_occupancy_get_stats(struct vxd_queue *queue,
                                        struct vxd_occupancy *layer,
                                        struct vxd_occupancy_stats *out,
                                        struct vxd_err *err)
{
    struct vxd_buffer blocks = {0};
    struct vxd_buffer memory = {0};
    struct vxd_occupancy_work work;
    uint32_t n_observed = 0;
    size_t n_bytes = 0;
    size_t scan_bytes;
    size_t at[2];
    size_t n;
    enum vxd_status status;

    *out = (struct vxd_occupancy_stats){.n_bytes = vxd_occupancy_n_bytes(layer)};
    VXD_TRY(vxd_occupancy_list_blocks(queue, layer, &blocks, &n, err));
    if (n == 0) {
        goto out;
    }
    scan_bytes = vxd_scan_scratch_bytes(queue, n);
    if (!vxd_layout_add(&n_bytes, n + 1, sizeof(uint32_t), &at[0]) ||
        !vxd_layout_add(&n_bytes, scan_bytes, 1, &at[1])) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a count"));
    }
    VXD_TRY(vxd_device_alloc(queue, n_bytes, &memory, err));
    work = work_of(layer);
    work.entries = blocks.ptr;
    work.n_observed = (void *)((char *)memory.ptr + at[0]);
    VXD_TRY(VXD_BACKEND_FN(queue, vxd_occupancy_run)(queue, VXD_OCCUPANCY_COUNT, &work, n,
                                                     err));
    VXD_TRY(vxd_scan_exclusive(queue, work.n_observed, work.n_observed, n,
                               (char *)memory.ptr + at[1], scan_bytes, err));
    VXD_TRY(
        vxd_queue_copy(queue, &n_observed, work.n_observed + n, sizeof n_observed, err));
    VXD_TRY(vxd_queue_wait(queue, err));
    out->n_blocks = n;
    out->n_observed = n_observed;
out:
    vxd_device_free(queue, &memory);
    vxd_device_free(queue, &blocks);
    return status;
}
