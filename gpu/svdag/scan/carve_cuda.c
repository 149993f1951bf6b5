// SPDX-License-Identifier: Apache-2.0
/* Scans and lists of voxels on a GPU. As on the CPU points are sorted by the code of
 * their voxel; rays go into bricks of a hash table, which are then sorted. The lengths of
 * the lists are not known in advance: the host reads counts after the points, the rays
 * and the bricks, so these calls wait. */
#include "gpu/core/core_cpu.h"
#include "gpu/core/core.h"
#include "gpu/svdag/scan/carve_bricks.h"

#define MIN_BRICKS 1024u        /* of 4 KiB */
#define FIRST_BRICKS (1u << 14) /* at first, for at least as many rays */
#define MAX_BRICKS (1u << 22)   /* the flags of their leaves are scanned in one call */
#define BRICK_BYTES (VXD_SVDAG_BRICK_LEAVES * sizeof(uint64_t))

/* Counts that the host reads. */
struct readings {
    struct vxd_svdag_carve_counts counts;
    uint32_t n_voxels;
    uint32_t n_leaves;
};

struct work {
    struct vxd_queue *queue;
    int depth;
    struct vxd_buffer scratch; /* of the points */
    struct vxd_buffer h_readings;
    struct readings *readings;
    struct vxd_svdag_carve_counts *counts; /* device */
    struct vxd_svdag_carve_runs runs;
    uint64_t *keys;
    uint64_t *spare_keys;
    uint32_t *points;
    uint32_t *spare_points;
    void *sort_scratch; /* for sorting and for scans */
    size_t n_sort_bytes;
    struct vxd_buffer rays;
    struct vxd_buffer bricks;
    struct vxd_buffer order; /* of the bricks */
};

static size_t most(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Waits and copies the counts to the host. */
static enum vxd_status read_counts(struct work *work, struct vxd_err *err)
{
    enum vxd_status status = vxd_queue_copy(work->queue, &work->readings->counts,
                                            work->counts, sizeof *work->counts, err);

    return status != VXD_OK ? status : vxd_queue_wait(work->queue, err);
}

/* Points -------------------------------------------------------------------------------- */

static enum vxd_status open_work(struct work *work,
                                 const struct vxd_svdag_carve_input *input,
                                 struct vxd_err *err)
{
    size_t n = input->scan.n;
    size_t n_bytes = 0;
    size_t at[8];
    enum vxd_status status;
    char *d;

    work->n_sort_bytes = most(vxd_sort_pairs_scratch_bytes(work->queue, n),
                              vxd_scan_scratch_bytes(work->queue, n));
    if (!vxd_layout_add(&n_bytes, 1, sizeof *work->counts, &at[0]) ||
        !vxd_layout_add(&n_bytes, n, sizeof(uint64_t), &at[1]) ||
        !vxd_layout_add(&n_bytes, n, sizeof(uint64_t), &at[2]) ||
        !vxd_layout_add(&n_bytes, n, sizeof(uint32_t), &at[3]) ||
        !vxd_layout_add(&n_bytes, n, sizeof(uint32_t), &at[4]) ||
        !vxd_layout_add(&n_bytes, n + 1, sizeof(uint32_t), &at[5]) ||
        !vxd_layout_add(&n_bytes, n + 1, sizeof(uint32_t), &at[6]) ||
        !vxd_layout_add(&n_bytes, work->n_sort_bytes, 1, &at[7])) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for %zu points", n);
    }
    VXD_TRY(vxd_host_alloc(work->queue->context, sizeof *work->readings,
                           &work->h_readings, err));
    VXD_TRY(vxd_device_alloc(work->queue, n_bytes, &work->scratch, err));
    work->readings = work->h_readings.ptr;
    d = work->scratch.ptr;
    work->counts = (void *)(d + at[0]);
    work->keys = (void *)(d + at[1]);
    work->spare_keys = (void *)(d + at[2]);
    work->points = (void *)(d + at[3]);
    work->spare_points = (void *)(d + at[4]);
    work->runs = (struct vxd_svdag_carve_runs){.input = *input,
                                               .keys = work->keys,
                                               .points = work->points,
                                               .n = (uint32_t)n,
                                               .voxels = (void *)(d + at[5]),
                                               .leaves = (void *)(d + at[6])};
    work->sort_scratch = d + at[7];
    VXD_TRY(vxd_queue_fill(work->queue, work->counts, 0, sizeof *work->counts, err));
out:
    return status;
}

static void close_work(struct work *work)
{
    /* Copies to the readings may still be queued where something failed. */
    (void)vxd_queue_wait(work->queue, NULL);
    vxd_device_free(work->queue, &work->order);
    vxd_device_free(work->queue, &work->bricks);
    vxd_device_free(work->queue, &work->rays);
    vxd_device_free(work->queue, &work->scratch);
    vxd_host_free(work->queue->context, &work->h_readings);
}

/* Sorts the points and reads all counts. */
static enum vxd_status sort_points(struct work *work, struct vxd_err *err)
{
    struct vxd_svdag_carve_runs *runs = &work->runs;
    size_t n = runs->n;
    enum vxd_status status;

    VXD_TRY(vxd_svdag_carve_keys(work->queue, &runs->input, work->keys, work->points,
                                 work->counts, err));
    VXD_TRY(vxd_sort_pairs(work->queue, work->keys, work->points, work->spare_keys,
                           work->spare_points, n, 0, 3 * work->depth + 1,
                           work->sort_scratch, work->n_sort_bytes, err));
    VXD_TRY(vxd_svdag_carve_begins(work->queue, runs, err));
    VXD_TRY(vxd_scan_exclusive(work->queue, runs->voxels, runs->voxels, n,
                               work->sort_scratch, work->n_sort_bytes, err));
    VXD_TRY(vxd_scan_exclusive(work->queue, runs->leaves, runs->leaves, n,
                               work->sort_scratch, work->n_sort_bytes, err));
    VXD_TRY(vxd_queue_copy(work->queue, &work->readings->n_voxels, runs->voxels + n,
                           sizeof(uint32_t), err));
    VXD_TRY(vxd_queue_copy(work->queue, &work->readings->n_leaves, runs->leaves + n,
                           sizeof(uint32_t), err));
    VXD_TRY(read_counts(work, err));
    if (work->readings->counts.has_bad_value != 0) {
        status = vxd_fail(err, VXD_INVALID_ARGUMENT, "values",
                          "a point has a value that is none of the %u materials",
                          runs->input.n_materials);
    }
out:
    return status;
}

/* Allocates the list of hits and sets its arrays in the runs and in `list`. */
static enum vxd_status alloc_hits(struct work *work, bool has_values,
                                  struct vxd_svdag_voxel_list *list, struct vxd_err *err)
{
    struct vxd_svdag_carve_runs *runs = &work->runs;
    size_t n = work->readings->n_leaves;
    size_t n_bytes = 0;
    size_t at[4];
    enum vxd_status status;
    char *d;

    if (!vxd_layout_add(&n_bytes, n, sizeof(uint64_t), &at[0]) ||
        !vxd_layout_add(&n_bytes, n, sizeof(uint64_t), &at[1]) ||
        !vxd_layout_add(&n_bytes, has_values ? n : 0, sizeof(uint32_t), &at[2]) ||
        !vxd_layout_add(&n_bytes, has_values ? runs->n_voxels : 0, sizeof(uint16_t),
                        &at[3])) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for %zu leaves", n);
    }
    VXD_TRY(vxd_device_alloc(work->queue, n_bytes, &list->memory, err));
    d = list->memory.ptr;
    runs->codes = (void *)(d + at[0]);
    runs->masks = (void *)(d + at[1]);
    runs->first_value = has_values ? (void *)(d + at[2]) : NULL;
    runs->values = has_values ? (void *)(d + at[3]) : NULL;
    list->voxels = (struct vxd_svdag_voxels){.codes = runs->codes,
                                             .masks = runs->masks,
                                             .first_value = runs->first_value,
                                             .values = runs->values,
                                             .n = n};
    VXD_TRY(vxd_queue_fill(work->queue, runs->masks, 0, n * sizeof *runs->masks, err));
out:
    return status;
}

/* Writes the list of hits, and if wants_firsts the first point of each voxel. */
static enum vxd_status list_hits(struct work *work, bool has_values, bool wants_firsts,
                                 struct vxd_svdag_voxel_list *list, struct vxd_err *err)
{
    struct vxd_svdag_carve_runs *runs = &work->runs;
    const struct readings *readings = work->readings;
    enum vxd_status status = VXD_OK;

    runs->n_hit = (uint32_t)readings->counts.n_class[VXD_SVDAG_POINT_HIT];
    runs->n_voxels = readings->n_voxels;
    runs->n_rays = runs->n_voxels + (uint32_t)readings->counts.n_rays_only;
    if (runs->n_hit > 0) {
        VXD_TRY(alloc_hits(work, has_values, list, err));
    }
    if (wants_firsts && runs->n_rays > 0) {
        VXD_TRY(vxd_device_alloc(work->queue, runs->n_rays * sizeof *runs->rays,
                                 &work->rays, err));
        runs->rays = work->rays.ptr;
    }
    VXD_TRY(vxd_svdag_carve_write(work->queue, runs, err));
out:
    return status;
}

/* Rays ---------------------------------------------------------------------------------- */

/* Allocates a table of n bricks, all zeros, and arrays for their order. */
static enum vxd_status alloc_bricks(struct work *work, uint32_t n,
                                    struct vxd_svdag_carve_passed *passed,
                                    struct vxd_err *err)
{
    struct vxd_buffer *buffer = &work->bricks;
    size_t n_bytes = 0;
    size_t at[4];
    enum vxd_status status;
    char *d;

    if (!vxd_layout_add(&n_bytes, n, sizeof(uint64_t), &at[0]) ||
        !vxd_layout_add(&n_bytes, n, BRICK_BYTES, &at[1]) ||
        !vxd_layout_add(&n_bytes, n, sizeof(uint64_t), &at[2]) ||
        !vxd_layout_add(&n_bytes, n, sizeof(uint32_t), &at[3])) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for %u bricks", n);
    }
    VXD_TRY(vxd_device_alloc(work->queue, n_bytes, buffer, err));
    d = buffer->ptr;
    VXD_TRY(vxd_queue_fill(work->queue, d, 0, at[2], err));
    *passed = (struct vxd_svdag_carve_passed){
        .bricks = {(void *)(d + at[0]), (void *)(d + at[1]), n},
        .codes = (void *)(d + at[2]),
        .slots = (void *)(d + at[3]),
        .counts = work->counts};
out:
    return status;
}

/* Allocates memory for the ends of n rays, where the scan wants them. */
static enum vxd_status alloc_ends(struct work *work, size_t n,
                                  struct vxd_svdag_ray_ends *ends, struct vxd_err *err)
{
    const struct vxd_svdag_scan *scan = &work->runs.input.scan;
    const size_t n_bytes = n * 3 * sizeof(int32_t); /* n is below 2^29 */
    int32_t *d;
    enum vxd_status status;

    if (!scan->wants_ends || n == 0) {
        return VXD_OK;
    }
    status = vxd_device_alloc(work->queue, scan->origins != NULL ? 2 * n_bytes : n_bytes,
                              &ends->memory, err);
    if (status == VXD_OK) {
        d = ends->memory.ptr;
        ends->ends = d;
        ends->origins = scan->origins != NULL ? d + 3 * n : NULL;
        ends->n = n;
    }
    return status;
}

/* Casts the rays, again with a larger table where bricks did not fit. */
static enum vxd_status cast_rays(struct work *work, struct vxd_svdag_carve_passed *passed,
                                 struct vxd_svdag_ray_ends *ends, struct vxd_err *err)
{
    const struct vxd_svdag_carve_runs *runs = &work->runs;
    /* All sorted points that have a ray, or one for each hit voxel. */
    const bool is_each = runs->rays == NULL;
    const uint32_t n_rays =
        is_each ? runs->n_hit + (runs->n_rays - runs->n_voxels) : runs->n_rays;
    uint32_t n_bricks = MIN_BRICKS;
    enum vxd_status status = VXD_OK;

    while (n_bricks < FIRST_BRICKS && n_bricks < n_rays) {
        n_bricks *= 2;
    }
    VXD_TRY(alloc_ends(work, n_rays, ends, err));
    ends->n_hits = is_each ? runs->n_hit : runs->n_voxels;
    for (;;) {
        struct vxd_svdag_carve_cast cast = {.scan = runs->input.scan,
                                            .depth = work->depth,
                                            .points = is_each ? runs->points : runs->rays,
                                            .n = n_rays,
                                            .counts = work->counts};

        VXD_TRY(vxd_queue_fill(work->queue, work->counts, 0, sizeof *work->counts, err));
        VXD_TRY(alloc_bricks(work, n_bricks, passed, err));
        cast.bricks = passed->bricks;
        cast.ends = ends->memory.ptr;
        cast.origins = ends->origins != NULL ? cast.ends + 3 * (size_t)n_rays : NULL;
        VXD_TRY(vxd_svdag_carve_rays(work->queue, &cast, err));
        VXD_TRY(vxd_svdag_carve_gather(work->queue, passed, err));
        VXD_TRY(read_counts(work, err));
        if (work->readings->counts.is_full == 0) {
            break;
        }
        if (n_bricks >= MAX_BRICKS) {
            status = vxd_fail(
                err, VXD_RESOURCE_EXHAUSTED, NULL,
                "the rays of a scan pass more than %u bricks of 32^3 voxels", n_bricks);
            goto out;
        }
        vxd_device_free(work->queue, &work->bricks);
        n_bricks *= 4;
    }
    passed->n_bricks = work->readings->counts.n_bricks;
    if (work->readings->counts.are_off != 0) {
        vxd_svdag_ray_ends_free(work->queue, ends);
    }
out:
    return status;
}

/* Sorts the bricks by their codes, and scans the flags of the leaves that are in the
 * list. */
static enum vxd_status order_bricks(struct work *work,
                                    struct vxd_svdag_carve_passed *passed,
                                    const struct vxd_svdag_voxels *hits,
                                    struct vxd_err *err)
{
    size_t n = passed->n_bricks;
    size_t n_leaves = n * VXD_SVDAG_BRICK_LEAVES;
    size_t sort_bytes = most(vxd_sort_pairs_scratch_bytes(work->queue, n),
                             vxd_scan_scratch_bytes(work->queue, n_leaves));
    int end_bit = 3 * work->depth > VXD_SVDAG_BRICK_BITS
                      ? 3 * work->depth - VXD_SVDAG_BRICK_BITS
                      : 1;
    size_t n_bytes = 0;
    size_t at[4];
    enum vxd_status status;
    char *d;

    if (n_leaves > INT32_MAX || !vxd_layout_add(&n_bytes, n, sizeof(uint64_t), &at[0]) ||
        !vxd_layout_add(&n_bytes, n, sizeof(uint32_t), &at[1]) ||
        !vxd_layout_add(&n_bytes, n_leaves + 1, sizeof(uint32_t), &at[2]) ||
        !vxd_layout_add(&n_bytes, sort_bytes, 1, &at[3])) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for %zu bricks", n);
    }
    VXD_TRY(vxd_device_alloc(work->queue, n_bytes, &work->order, err));
    d = work->order.ptr;
    passed->places = (void *)(d + at[2]);
    VXD_TRY(vxd_sort_pairs(work->queue, passed->codes, passed->slots, (void *)(d + at[0]),
                           (void *)(d + at[1]), n, 0, end_bit, d + at[3], sort_bytes,
                           err));
    if (hits->n > 0) {
        VXD_TRY(vxd_svdag_carve_subtract(work->queue, &passed->bricks, hits, err));
    }
    VXD_TRY(vxd_svdag_carve_flag(work->queue, passed, err));
    VXD_TRY(vxd_scan_exclusive(work->queue, passed->places, passed->places, n_leaves,
                               d + at[3], sort_bytes, err));
    VXD_TRY(vxd_queue_copy(work->queue, &work->readings->n_leaves,
                           passed->places + n_leaves, sizeof(uint32_t), err));
    VXD_TRY(read_counts(work, err));
out:
    return status;
}

static enum vxd_status
list_passed(struct work *work, struct vxd_svdag_scan_result *result, struct vxd_err *err)
{
    struct vxd_svdag_voxel_list *list = &result->passed;
    struct vxd_svdag_carve_passed passed = {0};
    size_t n_leaves;
    enum vxd_status status;

    VXD_TRY(cast_rays(work, &passed, &result->ends, err));
    if (passed.n_bricks == 0) {
        goto out;
    }
    VXD_TRY(order_bricks(work, &passed, &result->hits.voxels, err));
    result->n_passed_voxels = work->readings->counts.n_passed;
    n_leaves = work->readings->n_leaves;
    if (n_leaves == 0) {
        goto out;
    }
    /* Masks directly follow the codes. */
    VXD_TRY(vxd_device_alloc(work->queue, n_leaves * 2 * sizeof(uint64_t), &list->memory,
                             err));
    passed.list_codes = list->memory.ptr;
    passed.list_masks = passed.list_codes + n_leaves;
    VXD_TRY(vxd_svdag_carve_list(work->queue, &passed, err));
    list->voxels = (struct vxd_svdag_voxels){
        .codes = passed.list_codes, .masks = passed.list_masks, .n = n_leaves};
out:
    return status;
}

/* Entries ------------------------------------------------------------------------------- */

enum vxd_status vxd_svdag_scan_voxels_cuda(struct vxd_queue *queue,
                                           const struct vxd_svdag_format *format,
                                           const struct vxd_svdag_scan *scan,
                                           struct vxd_svdag_scan_result *out,
                                           struct vxd_err *err)
{
    const struct vxd_svdag_carve_input input = {.scan = *scan,
                                                .depth = format->depth,
                                                .n_materials =
                                                    vxd_svdag_n_materials(format)};
    struct work work = {.queue = queue, .depth = format->depth};
    struct vxd_svdag_scan_result result = {0};
    enum vxd_status status;

    if (scan->n == 0) {
        return VXD_OK;
    }
    VXD_TRY(open_work(&work, &input, err));
    VXD_TRY(sort_points(&work, err));
    result.n_hit = work.readings->counts.n_class[VXD_SVDAG_POINT_HIT];
    result.n_non_finite = work.readings->counts.n_class[VXD_SVDAG_POINT_NON_FINITE];
    result.n_beyond = work.readings->counts.n_class[VXD_SVDAG_POINT_BEYOND];
    result.n_outside = work.readings->counts.n_class[VXD_SVDAG_POINT_OUTSIDE];
    result.n_hit_voxels = work.readings->n_voxels;
    VXD_TRY(list_hits(&work, true, scan->carve && scan->discretize, &result.hits, err));
    if (scan->carve && work.runs.n_rays > 0) {
        VXD_TRY(list_passed(&work, &result, err));
    }
out:
    close_work(&work);
    if (status == VXD_OK) {
        *out = result;
    } else {
        vxd_device_free(queue, &result.hits.memory);
        vxd_device_free(queue, &result.passed.memory);
        vxd_device_free(queue, &result.ends.memory);
    }
    return status;
}

enum vxd_status vxd_svdag_list_voxels_cuda(struct vxd_queue *queue,
                                           const struct vxd_svdag_format *format,
                                           const int32_t *voxels, const uint16_t *values,
                                           size_t n, struct vxd_svdag_voxel_list *list,
                                           uint64_t *n_outside, struct vxd_err *err)
{
    const struct vxd_svdag_carve_input input = {.scan = {.values = values, .n = n},
                                                .voxels = voxels,
                                                .depth = format->depth,
                                                .n_materials =
                                                    vxd_svdag_n_materials(format)};
    struct work work = {.queue = queue, .depth = format->depth};
    struct vxd_svdag_voxel_list result = {0};
    enum vxd_status status;

    if (n == 0) {
        return VXD_OK;
    }
    VXD_TRY(open_work(&work, &input, err));
    VXD_TRY(sort_points(&work, err));
    VXD_TRY(list_hits(&work, values != NULL, false, &result, err));
out:
    if (status == VXD_OK) {
        *list = result;
        *n_outside = work.readings->counts.n_class[VXD_SVDAG_POINT_OUTSIDE];
    } else {
        vxd_device_free(queue, &result.memory);
    }
    close_work(&work);
    return status;
}
