// SPDX-License-Identifier: Apache-2.0
/* Scans on the CPU. Points are sorted by the Morton code of their voxel, so that voxels
 * and leaves are runs of points. The sort is stable: of the points in one voxel the first
 * by index comes first. Points that hit nothing but have a ray come after the hits. Each
 * sorting pass moves about 24 bytes a point. */
#include "gpu/svdag/scan/carve_cpu.h"

#include <stdlib.h>

#include "gpu/core/core_cpu.h"

#define PIECE ((size_t)4096)
/* Of voxels, by a thread in a step: 6 ms of a core of 3 GHz. */
#define STEP_VISITS ((uint64_t)2 << 20)

/* Either a scan's points or voxels by index. */
struct input {
    struct vxd_queue *queue;
    struct vxd_svdag_format format;
    struct vxd_svdag_scan scan; /* n and values are used for both */
    const int32_t *voxels;      /* NULL: the scan's points */
    bool has_values;
    struct vxd_svdag_scan_result *result; /* of a scan */
    struct vxd_svdag_voxel_list *list;    /* of a list of voxels */
    uint64_t *n_outside;
};

struct sorted {
    const struct input *input;
    uint64_t *keys; /* vxd_svdag_scan_key's */
    uint64_t *spare_keys;
    uint32_t *points;
    uint32_t *spare_points;
    void *sort_scratch;
    void *block; /* memory of all of these */
    atomic_uint_least64_t n_class[VXD_SVDAG_POINT_OUTSIDE + 1];
    atomic_uint_least64_t n_rays_only;
    atomic_bool has_bad_value;
};

/* Index in the list at which the runs of a piece begin. */
struct place {
    size_t n_voxels;
    size_t n_leaves;
};

struct writing {
    const struct sorted *sorted;
    size_t n; /* points that hit */
    struct place *places;
    uint64_t *codes;
    uint64_t *masks;
    uint32_t *first_value;
    uint16_t *values;
    uint32_t *rays; /* first point of each voxel; NULL: they are not needed */
};

enum vxd_status vxd_svdag_scratch_take(struct vxd_context *context, size_t n_bytes,
                                       void **out, struct vxd_err *err)
{
    *out = NULL;
    return vxd_block_take(context->device_cache, n_bytes, out, err);
}

void vxd_svdag_scratch_give(struct vxd_context *context, void *ptr)
{
    if (ptr != NULL) {
        vxd_block_release(vxd_block_find(context->device_cache, ptr));
    }
}

static void key_piece(void *args, size_t begin, size_t end)
{
    struct sorted *sorted = args;
    const struct input *input = sorted->input;
    uint32_t n_values = vxd_svdag_n_materials(&input->format);
    uint64_t n_class[VXD_SVDAG_POINT_OUTSIDE + 1] = {0};
    uint64_t n_rays_only = 0;
    const int depth = input->format.depth;

    for (size_t i = begin; i < end; i++) {
        enum vxd_svdag_point point =
            input->voxels != NULL
                ? vxd_svdag_voxel_key(input->voxels, depth, i, &sorted->keys[i])
                : vxd_svdag_scan_key(&input->scan, depth, i, &sorted->keys[i]);

        sorted->points[i] = (uint32_t)i;
        n_class[point]++;
        if (point != VXD_SVDAG_POINT_HIT) {
            n_rays_only += sorted->keys[i] != vxd_svdag_no_key(depth);
        } else if (input->scan.values != NULL && input->scan.values[i] >= n_values) {
            atomic_store_explicit(&sorted->has_bad_value, true, memory_order_relaxed);
        }
    }
    for (int c = 0; c <= VXD_SVDAG_POINT_OUTSIDE; c++) {
        (void)atomic_fetch_add_explicit(&sorted->n_class[c], n_class[c],
                                        memory_order_relaxed);
    }
    (void)atomic_fetch_add_explicit(&sorted->n_rays_only, n_rays_only,
                                    memory_order_relaxed);
}

/* Makes the keys and sorts them. The caller gives sorted->block back, also after a
 * failure. */
static enum vxd_status sort_points(struct vxd_pool *pool, const struct input *input,
                                   struct sorted *sorted, struct vxd_err *err)
{
    size_t n = input->scan.n;
    size_t n_bytes = 0;
    size_t at[5];
    enum vxd_status status;

    *sorted = (struct sorted){.input = input};
    if (!vxd_layout_add(&n_bytes, n, sizeof(uint64_t), &at[0]) ||
        !vxd_layout_add(&n_bytes, n, sizeof(uint64_t), &at[1]) ||
        !vxd_layout_add(&n_bytes, n, sizeof(uint32_t), &at[2]) ||
        !vxd_layout_add(&n_bytes, n, sizeof(uint32_t), &at[3]) ||
        !vxd_layout_add(&n_bytes,
                        vxd_sort_pairs_scratch_bytes_cpu(vxd_pool_n_threads(pool), n), 1,
                        &at[4])) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for %zu points", n);
    }
    status = vxd_svdag_scratch_take(input->queue->context, n_bytes, &sorted->block, err);
    if (status != VXD_OK) {
        return status;
    }
    sorted->keys = (void *)((char *)sorted->block + at[0]);
    sorted->spare_keys = (void *)((char *)sorted->block + at[1]);
    sorted->points = (void *)((char *)sorted->block + at[2]);
    sorted->spare_points = (void *)((char *)sorted->block + at[3]);
    sorted->sort_scratch = (char *)sorted->block + at[4];
    vxd_parallel_for(pool, n, PIECE, key_piece, sorted);
    if (atomic_load(&sorted->has_bad_value)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "values",
                        "a point has a value that is none of the %u materials",
                        vxd_svdag_n_materials(&input->format));
    }
    if (vxd_sort_pairs_run(pool, sorted->keys, sorted->points, sorted->spare_keys,
                           sorted->spare_points, n, 0, 3 * input->format.depth + 1,
                           sorted->sort_scratch)) {
        sorted->keys = sorted->spare_keys;
        sorted->points = sorted->spare_points;
    }
    return VXD_OK;
}

static bool begins(const uint64_t *keys, size_t i, int shift)
{
    return i == 0 || keys[i] >> shift != keys[i - 1] >> shift;
}

static void count_piece(void *args, size_t begin, size_t end)
{
    struct writing *writing = args;
    const uint64_t *keys = writing->sorted->keys;
    struct place place = {0, 0};

    for (size_t i = begin; i < end; i++) {
        place.n_voxels += begins(keys, i, 0);
        place.n_leaves += begins(keys, i, 6);
    }
    writing->places[begin / PIECE] = place;
}

static void write_piece(void *args, size_t begin, size_t end)
{
    const struct writing *writing = args;
    const struct sorted *sorted = writing->sorted;
    const struct vxd_svdag_scan *scan = &sorted->input->scan;
    const uint64_t *keys = sorted->keys;
    struct place place = writing->places[begin / PIECE];

    for (size_t i = begin; i < end; i++) {
        uint32_t point = sorted->points[i];

        if (begins(keys, i, 6)) {
            uint64_t mask = 0;

            for (size_t k = i; k < writing->n && keys[k] >> 6 == keys[i] >> 6; k++) {
                mask |= (uint64_t)1 << (keys[k] & 63);
            }
            writing->codes[place.n_leaves] = keys[i] >> 6;
            writing->masks[place.n_leaves] = mask;
            if (writing->first_value != NULL) {
                writing->first_value[place.n_leaves] = (uint32_t)place.n_voxels;
            }
            place.n_leaves++;
        }
        if (begins(keys, i, 0)) {
            if (writing->rays != NULL) {
                writing->rays[place.n_voxels] = point;
            }
            place.n_voxels++;
        }
        if (writing->values != NULL && (i + 1 == writing->n || keys[i + 1] != keys[i])) {
            writing->values[place.n_voxels - 1] =
                scan->values != NULL ? scan->values[point] : (uint16_t)scan->value;
        }
    }
}

/* Turns the counts of pieces into offsets; returns the totals. */
static struct place sum_places(struct place *places, size_t n_pieces)
{
    struct place total = {0, 0};

    for (size_t i = 0; i < n_pieces; i++) {
        struct place count = places[i];

        places[i] = total;
        total.n_voxels += count.n_voxels;
        total.n_leaves += count.n_leaves;
    }
    return total;
}

/* Allocates a list of this size and sets its arrays in `list` and `writing`. */
static enum vxd_status list_alloc(const struct input *input, const struct place *size,
                                  struct vxd_svdag_voxel_list *list,
                                  struct writing *writing, struct vxd_err *err)
{
    size_t n_first = input->has_values ? size->n_leaves : 0;
    size_t n_values = input->has_values ? size->n_voxels : 0;
    size_t n_bytes = 0;
    size_t at[4];
    enum vxd_status status;
    char *block;

    if (!vxd_layout_add(&n_bytes, size->n_leaves, sizeof(uint64_t), &at[0]) ||
        !vxd_layout_add(&n_bytes, size->n_leaves, sizeof(uint64_t), &at[1]) ||
        !vxd_layout_add(&n_bytes, n_first, sizeof(uint32_t), &at[2]) ||
        !vxd_layout_add(&n_bytes, n_values, sizeof(uint16_t), &at[3])) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for %zu leaves",
                        size->n_leaves);
    }
    status = vxd_device_alloc(input->queue, n_bytes, &list->memory, err);
    if (status != VXD_OK) {
        return status;
    }
    block = list->memory.ptr;
    writing->codes = (void *)(block + at[0]);
    writing->masks = (void *)(block + at[1]);
    list->voxels = (struct vxd_svdag_voxels){
        .codes = writing->codes, .masks = writing->masks, .n = size->n_leaves};
    if (input->has_values) {
        writing->first_value = (void *)(block + at[2]);
        writing->values = (void *)(block + at[3]);
        list->voxels.first_value = writing->first_value;
        list->voxels.values = writing->values;
    }
    return VXD_OK;
}

/* Makes the list of the n sorted hits. If wants_rays, *rays are the first points of all
 * voxels, followed by n_more unset elements; the caller gives them back. */
static enum vxd_status list_hits(struct vxd_pool *pool, const struct sorted *sorted,
                                 size_t n, struct vxd_svdag_voxel_list *list,
                                 size_t *n_voxels, bool wants_rays, size_t n_more,
                                 uint32_t **rays, struct vxd_err *err)
{
    struct vxd_context *context = sorted->input->queue->context;
    struct writing writing = {.sorted = sorted, .n = n};
    size_t n_pieces = (n + PIECE - 1) / PIECE;
    struct place total = {0, 0};
    void *block = NULL;
    enum vxd_status status = VXD_OK;

    if (n > 0) {
        VXD_TRY(vxd_svdag_scratch_take(context, n_pieces * sizeof *writing.places, &block,
                                       err));
        writing.places = block;
        vxd_parallel_for(pool, n, PIECE, count_piece, &writing);
        total = sum_places(writing.places, n_pieces);
    }
    *n_voxels = total.n_voxels;
    if (wants_rays && total.n_voxels + n_more > 0) {
        void *memory;

        VXD_TRY(vxd_svdag_scratch_take(context, (total.n_voxels + n_more) * sizeof **rays,
                                       &memory, err));
        *rays = memory;
        writing.rays = *rays;
    }
    if (n > 0) {
        VXD_TRY(list_alloc(sorted->input, &total, list, &writing, err));
        vxd_parallel_for(pool, n, PIECE, write_piece, &writing);
    }
out:
    vxd_svdag_scratch_give(context, block);
    return status;
}

/* Allocates memory for the ends of n rays. */
static enum vxd_status alloc_ends(const struct input *input, size_t n,
                                  struct vxd_svdag_rays *rays,
                                  struct vxd_svdag_ray_ends *ends, struct vxd_err *err)
{
    const bool has_origins = input->scan.origins != NULL;
    const size_t n_bytes = n * 3 * sizeof(int32_t); /* n is below 2^29 */
    enum vxd_status status;

    if (!input->scan.wants_ends || n == 0) {
        return VXD_OK;
    }
    status = vxd_device_alloc(input->queue, has_origins ? 2 * n_bytes : n_bytes,
                              &ends->memory, err);
    if (status == VXD_OK) {
        rays->ends = ends->memory.ptr;
        rays->origins = has_origins ? rays->ends + 3 * n : NULL;
        ends->ends = rays->ends;
        ends->origins = rays->origins;
        ends->n = n;
    }
    return status;
}

enum scan_step {
    SCAN_HITS,
    SCAN_RAYS,
    SCAN_PASSED,
    SCAN_DONE
};

/* A scan that is made step by step. */
struct vxd_svdag_scanning_cpu {
    struct input input; /* `sorted` refers to it */
    enum scan_step step;
    struct sorted sorted;
    uint32_t *firsts;
    struct vxd_svdag_rays rays;
    struct vxd_svdag_casting casting; /* refers to `rays` */
    atomic_bool are_off;
    struct vxd_svdag_scan_result result;
};

/* Begins to cast the rays of a scan after its hits were listed: those of all sorted points that
 * have one, or, where there are firsts, one for each of n_voxels hit voxels. `firsts` has n_voxels
 * elements, and capacity for the rays of points that hit nothing behind them. */
static enum vxd_status begin_rays(struct vxd_pool *pool,
                                  struct vxd_svdag_scanning_cpu *scanning,
                                  size_t n_voxels, struct vxd_err *err)
{
    const struct sorted *sorted = &scanning->sorted;
    struct vxd_svdag_scan_result *result = &scanning->result;
    struct vxd_svdag_rays *rays = &scanning->rays;
    uint32_t *firsts = scanning->firsts;
    size_t n_rays_only = (size_t)atomic_load(&sorted->n_rays_only);
    size_t n_hits = (size_t)result->n_hit;
    enum vxd_status status;

    *rays = (struct vxd_svdag_rays){.queue = sorted->input->queue,
                                    .scan = &sorted->input->scan,
                                    .depth = sorted->input->format.depth,
                                    .points = sorted->points,
                                    .n = n_hits + n_rays_only,
                                    .hits = &result->hits.voxels,
                                    .are_off = &scanning->are_off};
    if (firsts != NULL) {
        for (size_t i = 0; i < n_rays_only; i++) {
            firsts[n_voxels + i] = sorted->points[n_hits + i];
        }
        rays->points = firsts;
        rays->n = n_voxels + n_rays_only;
    }
    VXD_TRY(alloc_ends(sorted->input, rays->n, rays, &result->ends, err));
    result->ends.n_hits = rays->n - n_rays_only;
    status = vxd_svdag_cast_begin(pool, rays, &scanning->casting, err);
out:
    return status;
}

static enum vxd_status scan_hits(struct vxd_pool *pool,
                                 struct vxd_svdag_scanning_cpu *scanning,
                                 struct vxd_err *err)
{
    const struct input *input = &scanning->input;
    struct vxd_svdag_scan_result *result = &scanning->result;
    struct sorted *sorted = &scanning->sorted;
    size_t n_voxels = 0;
    enum vxd_status status;

    VXD_TRY(sort_points(pool, input, sorted, err));
    result->n_hit = atomic_load(&sorted->n_class[VXD_SVDAG_POINT_HIT]);
    result->n_non_finite = atomic_load(&sorted->n_class[VXD_SVDAG_POINT_NON_FINITE]);
    result->n_beyond = atomic_load(&sorted->n_class[VXD_SVDAG_POINT_BEYOND]);
    result->n_outside = atomic_load(&sorted->n_class[VXD_SVDAG_POINT_OUTSIDE]);
    VXD_TRY(list_hits(pool, sorted, (size_t)result->n_hit, &result->hits, &n_voxels,
                      input->scan.carve && input->scan.discretize,
                      (size_t)atomic_load(&sorted->n_rays_only), &scanning->firsts, err));
    result->n_hit_voxels = n_voxels;
    scanning->step = SCAN_DONE;
    if (input->scan.carve) {
        VXD_TRY(begin_rays(pool, scanning, n_voxels, err));
        scanning->step = SCAN_RAYS;
    }
out:
    return status;
}

/* Makes the next step of a scan, in which a thread visits so many voxels. */
static enum vxd_status make_step(struct vxd_pool *pool,
                                 struct vxd_svdag_scanning_cpu *scanning,
                                 uint64_t max_visits, struct vxd_err *err)
{
    struct vxd_svdag_scan_result *result = &scanning->result;
    bool is_done = false;
    enum vxd_status status = VXD_OK;

    switch (scanning->step) {
    case SCAN_HITS:
        return scan_hits(pool, scanning, err);
    case SCAN_RAYS:
        VXD_TRY(vxd_svdag_cast_step(pool, &scanning->casting, max_visits, &is_done, err));
        scanning->step = is_done ? SCAN_PASSED : SCAN_RAYS;
        break;
    case SCAN_PASSED:
        VXD_TRY(vxd_svdag_cast_list(pool, &scanning->casting, &result->passed,
                                    &result->n_passed_voxels, err));
        if (atomic_load(&scanning->are_off)) {
            vxd_svdag_ray_ends_free(scanning->input.queue, &result->ends);
        }
        scanning->step = SCAN_DONE;
        break;
    case SCAN_DONE:
        break;
    }
out:
    return status;
}

/* Gives back what a scan has, but for its result once that is the caller's. */
static void end_scan(struct vxd_svdag_scanning_cpu *scanning, bool keeps_result)
{
    struct vxd_queue *queue = scanning->input.queue;

    vxd_svdag_cast_end(&scanning->casting);
    vxd_svdag_scratch_give(queue->context, scanning->firsts);
    vxd_svdag_scratch_give(queue->context, scanning->sorted.block);
    if (!keeps_result) {
        vxd_svdag_voxel_list_free(queue, &scanning->result.hits);
        vxd_svdag_voxel_list_free(queue, &scanning->result.passed);
        vxd_svdag_ray_ends_free(queue, &scanning->result.ends);
    }
}

static enum vxd_status scan_job(struct vxd_pool *pool, const void *args,
                                struct vxd_err *err)
{
    struct vxd_svdag_scanning_cpu scanning = {.input = *(const struct input *)args};
    enum vxd_status status = VXD_OK;

    while (status == VXD_OK && scanning.step != SCAN_DONE) {
        status = make_step(pool, &scanning, UINT64_MAX, err);
    }
    if (status == VXD_OK) {
        *scanning.input.result = scanning.result;
    }
    end_scan(&scanning, status == VXD_OK);
    return status;
}

/* The queue copies it. */
struct step_args {
    struct vxd_svdag_scanning_cpu *scanning;
};

static enum vxd_status step_job(struct vxd_pool *pool, const void *args,
                                struct vxd_err *err)
{
    const struct step_args *step = args;

    return make_step(pool, step->scanning, STEP_VISITS, err);
}

static enum vxd_status voxels_job(struct vxd_pool *pool, const void *args,
                                  struct vxd_err *err)
{
    const struct input *input = args;
    struct vxd_svdag_voxel_list list = {0};
    struct sorted sorted = {0};
    size_t n_voxels;
    enum vxd_status status;

    VXD_TRY(sort_points(pool, input, &sorted, err));
    VXD_TRY(list_hits(pool, &sorted,
                      (size_t)atomic_load(&sorted.n_class[VXD_SVDAG_POINT_HIT]), &list,
                      &n_voxels, false, 0, NULL, err));
    *input->list = list;
    *input->n_outside = atomic_load(&sorted.n_class[VXD_SVDAG_POINT_OUTSIDE]);
out:
    vxd_svdag_scratch_give(input->queue->context, sorted.block);
    return status;
}

enum vxd_status vxd_svdag_scan_voxels_cpu(struct vxd_queue *queue,
                                          const struct vxd_svdag_format *format,
                                          const struct vxd_svdag_scan *scan,
                                          struct vxd_svdag_scan_result *out,
                                          struct vxd_err *err)
{
    struct input input = {.queue = queue,
                          .format = *format,
                          .scan = *scan,
                          .has_values = true,
                          .result = out};

    return vxd_queue_push(queue, scan_job, &input, sizeof input, err);
}

enum vxd_status vxd_svdag_scan_begin_cpu(struct vxd_queue *queue,
                                         const struct vxd_svdag_format *format,
                                         const struct vxd_svdag_scan *scan,
                                         struct vxd_svdag_scanning_cpu **out,
                                         struct vxd_err *err)
{
    struct vxd_svdag_scanning_cpu *scanning = calloc(1, sizeof *scanning);

    *out = scanning;
    if (scanning == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a scan");
    }
    scanning->input = (struct input){
        .queue = queue, .format = *format, .scan = *scan, .has_values = true};
    return VXD_OK;
}

enum vxd_status vxd_svdag_scan_step_cpu(struct vxd_queue *queue,
                                        struct vxd_svdag_scanning_cpu *scanning,
                                        struct vxd_svdag_scan_result *out, bool *is_done,
                                        struct vxd_err *err)
{
    const struct step_args args = {scanning};
    enum vxd_status status;

    scanning->input.queue = queue;
    scanning->rays.queue = queue;
    VXD_TRY(vxd_queue_push(queue, step_job, &args, sizeof args, err));
    VXD_TRY(vxd_queue_wait(queue, err));
    *is_done = scanning->step == SCAN_DONE;
    if (*is_done) {
        *out = scanning->result;
        scanning->result = (struct vxd_svdag_scan_result){0};
    }
out:
    return status;
}

void vxd_svdag_scan_end_cpu(struct vxd_svdag_scanning_cpu *scanning)
{
    if (scanning != NULL) {
        end_scan(scanning, false);
        free(scanning);
    }
}

enum vxd_status vxd_svdag_list_voxels_cpu(struct vxd_queue *queue,
                                          const struct vxd_svdag_format *format,
                                          const int32_t *voxels, const uint16_t *values,
                                          size_t n, struct vxd_svdag_voxel_list *list,
                                          uint64_t *n_outside, struct vxd_err *err)
{
    struct input input = {.queue = queue,
                          .format = *format,
                          .scan = {.values = values, .n = n},
                          .voxels = voxels,
                          .has_values = values != NULL,
                          .list = list,
                          .n_outside = n_outside};

    /* The array may be NULL where there are no voxels. */
    return n == 0 ? VXD_OK : vxd_queue_push(queue, voxels_job, &input, sizeof input, err);
}
