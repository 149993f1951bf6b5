// SPDX-License-Identifier: Apache-2.0
/* Decays of log-odds, and what pins take from a scan's lists. A decay goes over all blocks,
 * in the order of their keys, so that the list of what becomes unknown ascends. */
#include <stdlib.h>
#include <string.h>

#include "gpu/occupancy/occupancy_backends.h"

#include "gpu/svdag/store/store.h"

#define PART_LEAVES ((uint64_t)1 << 16) /* 10 ms of one core */

int32_t vxd_occupancy_decayed(const struct vxd_occupancy_rule *rule,
                              const struct vxd_occupancy_decay *decay, int32_t value)
{
    const int64_t distance = value < 0 ? -(int64_t)value : value;
    const int64_t left = (distance * decay->factor >> 16) - decay->step;
    const int32_t after = (int32_t)(value < 0 ? -left : left);

    if (value == VXD_OCCUPANCY_UNKNOWN || left <= 0 ||
        (after >= rule->occupied) != (value >= rule->occupied)) {
        return VXD_OCCUPANCY_UNKNOWN;
    }
    return after;
}

static void make_table(const struct vxd_occupancy_rule *rule,
                       const struct vxd_occupancy_decay *decay, int8_t faded[256])
{
    for (int32_t value = -128; value < 128; value++) {
        faded[(uint32_t)value & 0xff] = (int8_t)vxd_occupancy_decayed(rule, decay, value);
    }
}

static enum vxd_status run(struct vxd_queue *queue, enum vxd_occupancy_step step,
                           const struct vxd_occupancy_work *work, uint64_t n,
                           struct vxd_err *err)
{
    return VXD_BACKEND_FN(queue, vxd_occupancy_run)(queue, step, work, n, err);
}

/* Sorts the numbers of the blocks in plan->leaves by their blocks' keys. Waits. */
static enum vxd_status sort_blocks(struct vxd_queue *queue, int depth,
                                   struct vxd_occupancy_plan *plan, struct vxd_err *err)
{
    const size_t n = plan->n_blocks;
    const size_t sort_bytes = vxd_sort_pairs_scratch_bytes(queue, n);
    struct vxd_buffer memory = {0};
    size_t n_bytes = 0;
    size_t at[4];
    enum vxd_status status;
    char *d;

    if (!vxd_layout_add(&n_bytes, n, sizeof(uint64_t), &at[0]) ||
        !vxd_layout_add(&n_bytes, n, sizeof(uint64_t), &at[1]) ||
        !vxd_layout_add(&n_bytes, n, sizeof(uint32_t), &at[2]) ||
        !vxd_layout_add(&n_bytes, sort_bytes, 1, &at[3])) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for %zu blocks", n);
    }
    VXD_TRY(vxd_device_alloc(queue, n_bytes, &memory, err));
    d = memory.ptr;
    plan->work.sorted_keys = (void *)(d + at[0]);
    VXD_TRY(run(queue, VXD_OCCUPANCY_KEY, &plan->work, n, err));
    VXD_TRY(vxd_sort_pairs(queue, plan->work.sorted_keys, (uint32_t *)plan->work.entries,
                           (void *)(d + at[1]), (void *)(d + at[2]), n, 0, 3 * depth - 9,
                           d + at[3], sort_bytes, err));
    status = vxd_queue_wait(queue, err);
out:
    vxd_device_free(queue, &memory);
    return status;
}

/* Lists what becomes unknown. */
static enum vxd_status list_forgotten(struct vxd_queue *queue,
                                      const struct vxd_svdag *svdag,
                                      struct vxd_occupancy_plan *plan,
                                      struct vxd_svdag_voxels *forgotten,
                                      struct vxd_err *err)
{
    struct vxd_occupancy_work *work = &plan->work;
    const size_t n = plan->n_leaves;
    const size_t scan_bytes = vxd_scan_scratch_bytes(queue, n);
    struct vxd_buffer scratch = {0};
    uint32_t n_forgotten = 0;
    enum vxd_status status;

    VXD_TRY(vxd_device_alloc(queue, scan_bytes, &scratch, err));
    VXD_TRY(vxd_occupancy_run_parts(queue, svdag, VXD_OCCUPANCY_FADE_JUDGE, work, n,
                                    PART_LEAVES, err));
    VXD_TRY(vxd_scan_exclusive(queue, work->freed_at, work->freed_at, n, scratch.ptr,
                               scan_bytes, err));
    VXD_TRY(
        vxd_queue_copy(queue, &n_forgotten, work->freed_at + n, sizeof n_forgotten, err));
    VXD_TRY(vxd_queue_wait(queue, err));
    if (n_forgotten == 0) {
        goto out;
    }
    VXD_TRY(vxd_device_alloc(queue, (size_t)n_forgotten * 2 * sizeof(uint64_t),
                             &plan->list, err));
    work->list_codes = plan->list.ptr;
    work->list_masks = work->list_codes + n_forgotten;
    VXD_TRY(vxd_occupancy_run_parts(queue, svdag, VXD_OCCUPANCY_FADE_LIST, work, n,
                                    PART_LEAVES, err));
    *forgotten = (struct vxd_svdag_voxels){
        .codes = work->list_codes, .masks = work->list_masks, .n = n_forgotten};
    status = vxd_queue_wait(queue, err);
out:
    vxd_device_free(queue, &scratch);
    return status;
}

static enum vxd_status plan_blocks(struct vxd_queue *queue, struct vxd_occupancy *layer,
                                   const struct vxd_svdag *svdag,
                                   struct vxd_occupancy_plan *plan,
                                   struct vxd_svdag_voxels *forgotten,
                                   struct vxd_err *err)
{
    struct vxd_occupancy_work *work = &plan->work;
    size_t n_bytes = 0;
    size_t n_leaves;
    size_t n_blocks;
    size_t at[3];
    enum vxd_status status;
    char *d;

    VXD_TRY(vxd_occupancy_list_blocks(queue, layer, &plan->leaves, &n_blocks, err));
    if (n_blocks == 0) {
        goto out;
    }
    n_leaves = n_blocks * VXD_OCCUPANCY_BLOCK_LEAVES;
    if (n_blocks > INT32_MAX / VXD_OCCUPANCY_BLOCK_LEAVES ||
        !vxd_layout_add(&n_bytes, n_leaves, sizeof(uint64_t), &at[0]) ||
        !vxd_layout_add(&n_bytes, n_leaves, sizeof(uint64_t), &at[1]) ||
        !vxd_layout_add(&n_bytes, n_leaves + 1, sizeof(uint32_t), &at[2])) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for %zu blocks",
                         n_blocks));
    }
    plan->n_blocks = (uint32_t)n_blocks;
    plan->n_leaves = (uint32_t)n_leaves;
    work->entries = plan->leaves.ptr;
    work->rows = vxd_hashmap_values(layer->map, 0);
    work->layer_keys = vxd_hashmap_keys(layer->map);
    VXD_TRY(sort_blocks(queue, layer->depth, plan, err));
    VXD_TRY(vxd_device_alloc(queue, n_bytes, &plan->fading, err));
    d = plan->fading.ptr;
    work->codes = (void *)(d + at[0]);
    work->hits = (void *)(d + at[1]);
    work->freed_at = (void *)(d + at[2]);
    VXD_TRY(list_forgotten(queue, svdag, plan, forgotten, err));
    plan->n_elements = n_leaves;
out:
    return status;
}

enum vxd_status
vxd_occupancy_plan_decay(struct vxd_queue *queue, struct vxd_occupancy *layer,
                         const struct vxd_svdag *svdag, uint32_t root, uint32_t pins,
                         const struct vxd_occupancy_decay *decay,
                         struct vxd_occupancy_plan **out,
                         struct vxd_svdag_voxels *forgotten, struct vxd_err *err)
{
    struct vxd_occupancy_plan *plan = calloc(1, sizeof *plan);
    enum vxd_status status;

    *forgotten = (struct vxd_svdag_voxels){0};
    *out = NULL;
    if (plan == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a decay");
    }
    plan->step = VXD_OCCUPANCY_FADE;
    plan->work = (struct vxd_occupancy_work){.rule = layer->rule,
                                             .view = svdag->view,
                                             .root = root,
                                             .pins = pins,
                                             .decay = *decay};
    make_table(&layer->rule, decay, plan->work.faded);
    status = decay->factor == VXD_OCCUPANCY_DECAY_ONE && decay->step == 0
                 ? VXD_OK /* nothing fades */
                 : plan_blocks(queue, layer, svdag, plan, forgotten, err);
    if (status != VXD_OK) {
        /* Copies to the plan's numbers may still be queued. */
        (void)vxd_queue_wait(queue, NULL);
        vxd_occupancy_plan_free(queue, plan);
        *forgotten = (struct vxd_svdag_voxels){0};
    } else {
        *out = plan;
    }
    return status;
}

/* Pins -------------------------------------------------------------------------------- */

/* Allocates the list that `unpinned` found the lengths of, and writes it. Waits. */
static enum vxd_status write_list(struct vxd_queue *queue,
                                  struct vxd_occupancy_work *work, size_t n_leaves,
                                  size_t n_values, struct vxd_svdag_voxel_list *out,
                                  struct vxd_err *err)
{
    bool has_values = work->list.values != NULL;
    size_t n_bytes = 0;
    size_t at[4];
    enum vxd_status status;
    char *d;

    if (!vxd_layout_add(&n_bytes, n_leaves, sizeof(uint64_t), &at[0]) ||
        !vxd_layout_add(&n_bytes, n_leaves, sizeof(uint64_t), &at[1]) ||
        !vxd_layout_add(&n_bytes, has_values ? n_leaves : 0, sizeof(uint32_t), &at[2]) ||
        !vxd_layout_add(&n_bytes, n_values, sizeof(uint16_t), &at[3])) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for %zu leaves",
                        n_leaves);
    }
    VXD_TRY(vxd_device_alloc(queue, n_bytes, &out->memory, err));
    d = out->memory.ptr;
    work->list_codes = (void *)(d + at[0]);
    work->list_masks = (void *)(d + at[1]);
    work->list_firsts = (void *)(d + at[2]);
    work->list_values = (void *)(d + at[3]);
    VXD_TRY(run(queue, VXD_OCCUPANCY_UNPIN_LIST, work, work->list.n, err));
    VXD_TRY(vxd_queue_wait(queue, err));
    out->voxels =
        (struct vxd_svdag_voxels){.codes = work->list_codes,
                                  .masks = work->list_masks,
                                  .first_value = has_values ? work->list_firsts : NULL,
                                  .values = has_values ? work->list_values : NULL,
                                  .n = n_leaves};
out:
    return status;
}

enum vxd_status vxd_occupancy_unpinned(struct vxd_queue *queue,
                                       const struct vxd_svdag *svdag, uint32_t pins,
                                       const struct vxd_svdag_voxels *list,
                                       struct vxd_svdag_voxel_list *out,
                                       struct vxd_err *err)
{
    const size_t n = list->n;
    const size_t scan_bytes = vxd_scan_scratch_bytes(queue, n);
    struct vxd_occupancy_work work = {.view = svdag->view, .pins = pins, .list = *list};
    struct vxd_buffer memory = {0};
    uint32_t n_leaves = 0;
    uint32_t n_values = 0;
    size_t n_bytes = 0;
    size_t at[4];
    enum vxd_status status;
    char *d;

    *out = (struct vxd_svdag_voxel_list){0};
    if (n == 0) {
        return VXD_OK;
    }
    if (!vxd_layout_add(&n_bytes, n, sizeof(uint64_t), &at[0]) ||
        !vxd_layout_add(&n_bytes, n + 1, sizeof(uint32_t), &at[1]) ||
        !vxd_layout_add(&n_bytes, n + 1, sizeof(uint32_t), &at[2]) ||
        !vxd_layout_add(&n_bytes, scan_bytes, 1, &at[3])) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for %zu leaves", n);
    }
    VXD_TRY(vxd_device_alloc(queue, n_bytes, &memory, err));
    d = memory.ptr;
    work.hits = (void *)(d + at[0]);
    work.leaf_at = (void *)(d + at[1]);
    work.value_at = (void *)(d + at[2]);
    VXD_TRY(run(queue, VXD_OCCUPANCY_UNPIN_MARK, &work, n, err));
    VXD_TRY(vxd_scan_exclusive(queue, work.leaf_at, work.leaf_at, n, d + at[3],
                               scan_bytes, err));
    VXD_TRY(vxd_queue_copy(queue, &n_leaves, work.leaf_at + n, sizeof n_leaves, err));
    if (list->values != NULL) {
        VXD_TRY(vxd_scan_exclusive(queue, work.value_at, work.value_at, n, d + at[3],
                                   scan_bytes, err));
        VXD_TRY(
            vxd_queue_copy(queue, &n_values, work.value_at + n, sizeof n_values, err));
    }
    VXD_TRY(vxd_queue_wait(queue, err));
    if (n_leaves > 0) {
        VXD_TRY(write_list(queue, &work, n_leaves, n_values, out, err));
    }
out:
    /* Copies to the numbers above may still be queued where something failed. */
    if (status != VXD_OK) {
        (void)vxd_queue_wait(queue, NULL);
    }
    vxd_device_free(queue, &memory);
    return status;
}
