// SPDX-License-Identifier: Apache-2.0
/* Scans: the leaves of all lists are sorted, those of one place joined, their blocks found
 * or added, and the voxels listed that the scene's edit has to free. The lengths of what
 * comes out are read twice, so a plan waits. */
#include <stdlib.h>

#include "gpu/occupancy/occupancy.h"

#include "gpu/occupancy/occupancy_backends.h"
#include "gpu/svdag/store/store.h"

#define MAX_ENTRIES ((size_t)1 << 30)
#define PART_OCTETS ((uint64_t)1 << 19) /* 10 ms of one core */
#define PART_BLOCKS ((size_t)1 << 13)   /* 4 MiB, 5 ms of one core */

/* Arrays that only making a plan needs. */
struct planning {
    struct vxd_queue *queue;
    struct vxd_occupancy *layer;
    const struct vxd_svdag *svdag;
    struct vxd_occupancy_plan *plan;
    struct vxd_buffer memory;
    uint64_t *keys;
    uint64_t *spare_keys;
    uint32_t *order;
    uint32_t *spare_order;
    uint64_t *masks;
    void *scratch;
    size_t n_scratch_bytes;
    size_t n;
};

static enum vxd_status run(struct planning *planning, enum vxd_occupancy_step step,
                           uint64_t n, struct vxd_err *err)
{
    return VXD_BACKEND_FN(planning->queue, vxd_occupancy_run)(
        planning->queue, step, &planning->plan->work, n, err);
}

enum vxd_status vxd_occupancy_run_parts(struct vxd_queue *queue,
                                        const struct vxd_svdag *svdag,
                                        enum vxd_occupancy_step step,
                                        const struct vxd_occupancy_work *work, uint64_t n,
                                        uint64_t part, struct vxd_err *err)
{
    struct vxd_occupancy_work now = *work;
    enum vxd_status status = VXD_OK;

    if (VXD_ON_CUDA(queue->context)) {
        return VXD_BACKEND_FN(queue, vxd_occupancy_run)(queue, step, work, n, err);
    }
    for (uint64_t i = 0; i < n; i += part) {
        now.first = i;
        VXD_TRY(vxd_svdag_check_stop(svdag, err));
        VXD_TRY(
            vxd_occupancy_run_cpu(queue, step, &now, n - i < part ? n - i : part, err));
        VXD_TRY(vxd_queue_wait(queue, err));
    }
out:
    return status;
}

/* Ends a part of the work: waits for it, and ends all where nobody waits for the scan any more. */
static enum vxd_status end_part(struct planning *planning, struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(vxd_queue_wait(planning->queue, err));
    status = vxd_svdag_check_stop(planning->svdag, err);
out:
    return status;
}

static size_t count_leaves(const struct vxd_svdag_voxels *lists, size_t n_lists)
{
    size_t n = 0;

    for (size_t i = 0; i < n_lists && n <= MAX_ENTRIES; i++) {
        n += lists[i].n <= MAX_ENTRIES ? lists[i].n : MAX_ENTRIES + 1;
    }
    return n;
}

static enum vxd_status alloc_entries(struct planning *planning, struct vxd_err *err)
{
    struct vxd_occupancy_work *work = &planning->plan->work;
    size_t n = planning->n;
    size_t sort_bytes = vxd_sort_pairs_scratch_bytes(planning->queue, n);
    size_t scan_bytes = vxd_scan_scratch_bytes(planning->queue, n);
    size_t n_bytes = 0;
    size_t at[8];
    enum vxd_status status;
    char *d;

    planning->n_scratch_bytes = sort_bytes > scan_bytes ? sort_bytes : scan_bytes;
    if (!vxd_layout_add(&n_bytes, n, sizeof(uint64_t), &at[0]) ||
        !vxd_layout_add(&n_bytes, n, sizeof(uint64_t), &at[1]) ||
        !vxd_layout_add(&n_bytes, n, sizeof(uint64_t), &at[2]) ||
        !vxd_layout_add(&n_bytes, n, sizeof(uint32_t), &at[3]) ||
        !vxd_layout_add(&n_bytes, n, sizeof(uint32_t), &at[4]) ||
        !vxd_layout_add(&n_bytes, n + 1, sizeof(uint32_t), &at[5]) ||
        !vxd_layout_add(&n_bytes, n + 1, sizeof(uint32_t), &at[6]) ||
        !vxd_layout_add(&n_bytes, planning->n_scratch_bytes, 1, &at[7])) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for %zu leaves", n);
    }
    status = vxd_device_alloc(planning->queue, n_bytes, &planning->memory, err);
    if (status != VXD_OK) {
        return status;
    }
    d = planning->memory.ptr;
    planning->keys = (void *)(d + at[0]);
    planning->spare_keys = (void *)(d + at[1]);
    planning->masks = (void *)(d + at[2]);
    planning->order = (void *)(d + at[3]);
    planning->spare_order = (void *)(d + at[4]);
    planning->scratch = d + at[7];
    work->keys = planning->keys;
    work->order = planning->order;
    work->masks = planning->masks;
    work->leaf_at = (void *)(d + at[5]);
    work->block_at = (void *)(d + at[6]);
    work->n_entries = (uint32_t)n;
    return VXD_OK;
}

static enum vxd_status copy_lists(struct planning *planning,
                                  const struct vxd_svdag_voxels *lists, size_t n_lists,
                                  size_t *at, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    for (size_t i = 0; i < n_lists; i++) {
        size_t n_bytes = lists[i].n * sizeof(uint64_t);

        if (lists[i].n == 0) {
            continue;
        }
        VXD_TRY(vxd_queue_copy(planning->queue, planning->keys + *at, lists[i].codes,
                               n_bytes, err));
        VXD_TRY(vxd_queue_copy(planning->queue, planning->masks + *at, lists[i].masks,
                               n_bytes, err));
        *at += lists[i].n;
    }
out:
    return status;
}

/* Sorts the entries by their codes, and counts leaves and blocks. */
static enum vxd_status sort_entries(struct planning *planning, struct vxd_err *err)
{
    struct vxd_occupancy_plan *plan = planning->plan;
    struct vxd_occupancy_work *work = &plan->work;
    struct vxd_queue *queue = planning->queue;
    size_t n = planning->n;
    enum vxd_status status;

    VXD_TRY(run(planning, VXD_OCCUPANCY_NUMBER, n, err));
    VXD_TRY(vxd_sort_pairs(queue, planning->keys, planning->order, planning->spare_keys,
                           planning->spare_order, n, 0, 3 * planning->layer->depth - 6,
                           planning->scratch, planning->n_scratch_bytes, err));
    VXD_TRY(run(planning, VXD_OCCUPANCY_MARK, n, err));
    VXD_TRY(vxd_scan_exclusive(queue, work->leaf_at, work->leaf_at, n, planning->scratch,
                               planning->n_scratch_bytes, err));
    VXD_TRY(vxd_scan_exclusive(queue, work->block_at, work->block_at, n,
                               planning->scratch, planning->n_scratch_bytes, err));
    VXD_TRY(vxd_queue_copy(queue, &plan->n_leaves, work->leaf_at + n,
                           sizeof plan->n_leaves, err));
    VXD_TRY(vxd_queue_copy(queue, &plan->n_blocks, work->block_at + n,
                           sizeof plan->n_blocks, err));
    status = vxd_queue_wait(queue, err);
out:
    return status;
}

static enum vxd_status alloc_leaves(struct planning *planning, struct vxd_err *err)
{
    struct vxd_occupancy_plan *plan = planning->plan;
    struct vxd_occupancy_work *work = &plan->work;
    size_t n = plan->n_leaves;
    size_t n_blocks = plan->n_blocks;
    size_t n_bytes = 0;
    size_t at[9];
    enum vxd_status status;
    char *d;

    if (!vxd_layout_add(&n_bytes, n, sizeof(uint64_t), &at[0]) ||
        !vxd_layout_add(&n_bytes, n, sizeof(uint64_t), &at[1]) ||
        !vxd_layout_add(&n_bytes, n, sizeof(uint64_t), &at[2]) ||
        !vxd_layout_add(&n_bytes, n, sizeof(uint64_t), &at[3]) ||
        !vxd_layout_add(&n_bytes, n, sizeof(uint32_t), &at[4]) ||
        !vxd_layout_add(&n_bytes, n + 1, sizeof(uint32_t), &at[5]) ||
        !vxd_layout_add(&n_bytes, n_blocks, sizeof(int64_t), &at[6]) ||
        !vxd_layout_add(&n_bytes, n_blocks, sizeof(int32_t), &at[7]) ||
        !vxd_layout_add(&n_bytes, n_blocks, 1, &at[8])) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for %zu leaves", n);
    }
    status = vxd_device_alloc(planning->queue, n_bytes, &plan->leaves, err);
    if (status != VXD_OK) {
        return status;
    }
    d = plan->leaves.ptr;
    work->codes = (void *)(d + at[0]);
    work->hits = (void *)(d + at[1]);
    work->misses = (void *)(d + at[2]);
    work->freed = (void *)(d + at[3]);
    work->blocks = (void *)(d + at[4]);
    work->freed_at = (void *)(d + at[5]);
    work->block_keys = (void *)(d + at[6]);
    work->entries = (void *)(d + at[7]);
    work->is_new = (void *)(d + at[8]);
    return VXD_OK;
}

/* Finds the rows of n blocks from `first` on; new ones get the clamps of their voxels' states. */
static enum vxd_status add_part(struct planning *planning, size_t first, size_t n,
                                size_t max_new, struct vxd_err *err)
{
    struct vxd_occupancy_work work = planning->plan->work;
    struct vxd_hashmap *map = planning->layer->map;
    const struct vxd_hashmap_insert_args args = {.keys = work.block_keys + first,
                                                 .n = n,
                                                 .order = VXD_HASH_ANY,
                                                 .max_new = max_new,
                                                 .indices = work.entries + first,
                                                 .is_new = work.is_new + first};
    enum vxd_status status;

    planning->layer->is_damaged = true; /* an insertion that fails may have added some */
    VXD_TRY(vxd_hashmap_insert(planning->queue, map, &args, err));
    work.first = (uint64_t)first * VXD_OCCUPANCY_BLOCK_LEAVES;
    VXD_TRY(VXD_BACKEND_FN(planning->queue, vxd_occupancy_run)(
        planning->queue, VXD_OCCUPANCY_BEGIN, &work,
        (uint64_t)n * VXD_OCCUPANCY_BLOCK_LEAVES, err));
    planning->layer->is_damaged = false;
out:
    return status;
}

/* Adds the blocks that are new, on a CPU so many at a time: with those of the parts that were done the
 * layer means what it meant. */
static enum vxd_status add_blocks(struct planning *planning, struct vxd_err *err)
{
    const struct vxd_occupancy_work *work = &planning->plan->work;
    struct vxd_hashmap *map = planning->layer->map;
    size_t n_blocks = planning->plan->n_blocks;
    size_t part = VXD_ON_CUDA(planning->queue->context) ? n_blocks : PART_BLOCKS;
    size_t n_new;
    enum vxd_status status;

    VXD_TRY(vxd_occupancy_mend(planning->queue, planning->layer, err));
    VXD_TRY(vxd_occupancy_prepare(planning->queue, map, planning->svdag, work->block_keys,
                                  n_blocks, &n_new, err));
    planning->plan->work.rows = vxd_hashmap_values(map, 0);
    for (size_t i = 0; i < n_blocks; i += part) {
        size_t n = n_blocks - i < part ? n_blocks - i : part;

        if (n < n_blocks) {
            VXD_TRY(vxd_hashmap_prepare(planning->queue, map, work->block_keys + i, n,
                                        &n_new, err));
        }
        VXD_TRY(add_part(planning, i, n, n_new, err));
        VXD_TRY(end_part(planning, err));
    }
out:
    return status;
}

static enum vxd_status list_freed(struct planning *planning,
                                  struct vxd_svdag_voxels *freed, struct vxd_err *err)
{
    struct vxd_occupancy_plan *plan = planning->plan;
    struct vxd_occupancy_work *work = &plan->work;
    struct vxd_queue *queue = planning->queue;
    uint32_t n_freed = 0;
    enum vxd_status status;

    VXD_TRY(vxd_occupancy_run_parts(queue, planning->svdag, VXD_OCCUPANCY_JUDGE, work,
                                    (uint64_t)plan->n_leaves * VXD_OCCUPANCY_LEAF_OCTETS,
                                    PART_OCTETS, err));
    VXD_TRY(run(planning, VXD_OCCUPANCY_FLAG, plan->n_leaves, err));
    VXD_TRY(vxd_scan_exclusive(queue, work->freed_at, work->freed_at, plan->n_leaves,
                               planning->scratch, planning->n_scratch_bytes, err));
    VXD_TRY(vxd_queue_copy(queue, &n_freed, work->freed_at + plan->n_leaves,
                           sizeof n_freed, err));
    VXD_TRY(vxd_queue_wait(queue, err));
    if (n_freed == 0) {
        goto out;
    }
    VXD_TRY(vxd_device_alloc(queue, (size_t)n_freed * 2 * sizeof(uint64_t), &plan->list,
                             err));
    work->list_codes = plan->list.ptr;
    work->list_masks = work->list_codes + n_freed;
    VXD_TRY(run(planning, VXD_OCCUPANCY_LIST, plan->n_leaves, err));
    *freed = (struct vxd_svdag_voxels){
        .codes = work->list_codes, .masks = work->list_masks, .n = n_freed};
    status = vxd_queue_wait(queue, err);
out:
    return status;
}

enum vxd_status vxd_occupancy_plan_scan(
    struct vxd_queue *queue, struct vxd_occupancy *layer, const struct vxd_svdag *svdag,
    uint32_t root, const struct vxd_svdag_voxels *hits, size_t n_hits,
    const struct vxd_svdag_voxels *passed, size_t n_passed,
    struct vxd_occupancy_plan **out, struct vxd_svdag_voxels *freed, struct vxd_err *err)
{
    size_t n_hit = count_leaves(hits, n_hits);
    struct planning planning = {.queue = queue,
                                .layer = layer,
                                .svdag = svdag,
                                .plan = calloc(1, sizeof *planning.plan),
                                .n = n_hit + count_leaves(passed, n_passed)};
    size_t at = 0;
    enum vxd_status status = VXD_OK;

    *freed = (struct vxd_svdag_voxels){0};
    *out = NULL;
    if (planning.plan == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a scan");
    }
    if (planning.n > MAX_ENTRIES) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "hits",
                         "a scan has more than %zu leaves", MAX_ENTRIES));
    }
    planning.plan->work = (struct vxd_occupancy_work){.rule = layer->rule,
                                                      .view = svdag->view,
                                                      .root = root,
                                                      .n_hit_entries = (uint32_t)n_hit};
    planning.plan->step = VXD_OCCUPANCY_APPLY;
    planning.plan->layer = layer;
    planning.plan->svdag = svdag;
    if (planning.n > 0) {
        VXD_TRY(alloc_entries(&planning, err));
        VXD_TRY(copy_lists(&planning, hits, n_hits, &at, err));
        VXD_TRY(copy_lists(&planning, passed, n_passed, &at, err));
        VXD_TRY(sort_entries(&planning, err));
        VXD_TRY(vxd_svdag_check_stop(svdag, err));
        VXD_TRY(alloc_leaves(&planning, err));
        VXD_TRY(run(&planning, VXD_OCCUPANCY_JOIN, planning.n, err));
        VXD_TRY(end_part(&planning, err));
        VXD_TRY(add_blocks(&planning, err));
        VXD_TRY(list_freed(&planning, freed, err));
        planning.plan->n_elements =
            (uint64_t)planning.plan->n_leaves * VXD_OCCUPANCY_LEAF_OCTETS;
    }
out:
    /* Copies to the plan's numbers may still be queued where something failed. */
    if (status != VXD_OK) {
        (void)vxd_queue_wait(queue, NULL);
        vxd_occupancy_plan_free(queue, planning.plan);
        *freed = (struct vxd_svdag_voxels){0};
    } else {
        *out = planning.plan;
    }
    vxd_device_free(queue, &planning.memory);
    return status;
}

enum vxd_status vxd_occupancy_apply(struct vxd_queue *queue, struct vxd_occupancy *layer,
                                    const struct vxd_occupancy_plan *plan,
                                    struct vxd_err *err)
{
    struct vxd_occupancy_work work = plan->work;
    enum vxd_status status;

    vxd_occupancy_ballot_close(plan);
    if (plan->n_elements == 0) {
        return VXD_OK;
    }
    work.rows = vxd_hashmap_values(layer->map, 0);
    VXD_TRY(VXD_BACKEND_FN(queue, vxd_occupancy_run)(queue, plan->step, &work,
                                                     plan->n_elements, err));
    status = vxd_queue_wait(queue, err);
out:
    return status;
}

void vxd_occupancy_plan_free(struct vxd_queue *queue, struct vxd_occupancy_plan *plan)
{
    if (plan != NULL) {
        vxd_occupancy_ballot_free(queue, plan);
        vxd_device_free(queue, &plan->fading);
        vxd_device_free(queue, &plan->list);
        vxd_device_free(queue, &plan->leaves);
        free(plan);
    }
}
