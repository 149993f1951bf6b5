// SPDX-License-Identifier: Apache-2.0
/* The public entry: checks, sizes every array, and queues the steps of an extraction. */
#include "gpu/surface/surface.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "gpu/core/core_cpu.h"
#include "gpu/surface/surface_internal.h"

enum {
    MAX_TRIANGLES_A_CELL = 5
};

/* Of what is kept where a surface is still above max_bytes. */
#define SHRINK 0.75
/* Of blocks with max_bytes of surface, if each has a plane through it, so many times are counted at most. */
#define BOUND_TIMES ((size_t)4)
#define LEAST_COUNTED ((size_t)64)
/* Edges and ranks of all blocks of a volume whose surface one step plans. */
#define PLAN_BYTES ((size_t)64 << 20)

struct vxd_surface {
    struct vxd_surface_work work;
    struct vxd_surface_counts counts;
    struct vxd_buffer entries;
    struct vxd_buffer neighbours;
    struct vxd_buffer flags; /* by entry: is_chosen and places */
    struct vxd_buffer picked;
    struct vxd_buffer list;
    struct vxd_buffer edges;   /* and ranks */
    struct vxd_buffer sums;    /* vertices, triangles, chosen */
    struct vxd_buffer planned; /* all of these where one step plans the surface */
};

static enum vxd_status check(const struct vxd_surface_args *args, struct vxd_err *err)
{
    if (args->kind != VXD_SURFACE_MESH && args->kind != VXD_SURFACE_POINTS) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "kind", "is %d, must be 0 or 1",
                        (int)args->kind);
    }
    if (!isfinite(args->min_weight) || args->min_weight < 0) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "min_weight",
                        "is %g, must be 0 or above", args->min_weight);
    }
    for (int i = 0; i < 3 && args->has_box; i++) {
        if (!isfinite(args->low[i]) || !isfinite(args->high[i])) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "box",
                            "its corners must be finite");
        }
    }
    return VXD_OK;
}

static struct vxd_surface_work work_of(const struct vxd_volume *volume,
                                       const struct vxd_surface_args *args)
{
    struct vxd_surface_work work = {
        .since = args->since,
        .min_weight = (float)args->min_weight,
        .has_box = args->has_box ? 1 : 0,
        .is_mesh = args->kind == VXD_SURFACE_MESH ? 1 : 0,
    };
    struct vxd_volume_info info;

    vxd_volume_get_info(volume, &info);
    vxd_volume_get_view(volume, &work.view);
    work.voxel_size = info.spec.voxel_size_m;
    for (int i = 0; i < 3 && args->has_box; i++) {
        work.low[i] = (args->low[i] - info.spec.origin_m[i]) / work.voxel_size;
        work.high[i] = (args->high[i] - info.spec.origin_m[i]) / work.voxel_size;
    }
    return work;
}

/* Sums n counts in place, so that item n is the total.
 * errors  RESOURCE_EXHAUSTED */
static enum vxd_status sum(struct vxd_queue *queue, uint32_t *counts, size_t n,
                           struct vxd_err *err)
{
    size_t n_bytes = vxd_scan_scratch_bytes(queue, n);
    struct vxd_buffer scratch = {NULL, 0, VXD_SPACE_DEVICE};
    enum vxd_status status;

    VXD_TRY(vxd_device_alloc(queue, n_bytes, &scratch, err));
    VXD_TRY(vxd_scan_exclusive(queue, counts, counts, n, scratch.ptr, n_bytes, err));
out:
    vxd_device_free(queue, &scratch);
    return status;
}

/* Copies n counts, `stride` items apart, to the host. Blocking. */
static enum vxd_status read_counts(struct vxd_queue *queue, const uint32_t *counts,
                                   size_t stride, int n, uint32_t *out,
                                   struct vxd_err *err)
{
    struct vxd_buffer host[3] = {{NULL, 0, VXD_SPACE_HOST}};
    const void *bytes[3] = {NULL};
    enum vxd_status status;

    for (int i = 0; i < n; i++) {
        VXD_TRY(vxd_download(queue, counts + (size_t)i * stride, sizeof *counts, &host[i],
                             &bytes[i], err));
    }
    VXD_TRY(vxd_queue_wait(queue, err));
    for (int i = 0; i < n; i++) {
        out[i] = *(const uint32_t *)bytes[i];
    }
out:
    if (status != VXD_OK) {
        (void)vxd_queue_wait(queue,
                             NULL); /* the copies use the host's arrays until then */
    }
    for (int i = 0; i < n; i++) {
        vxd_host_free(queue->context, &host[i]);
    }
    return status;
}

/* Finds the blocks that are chosen and picked of those listed. Blocking. */
static enum vxd_status choose(struct vxd_queue *queue, struct vxd_surface *surface,
                              struct vxd_err *err)
{
    struct vxd_surface_work *work = &surface->work;
    size_t capacity = work->view.capacity;
    enum vxd_status status;

    VXD_TRY(vxd_queue_fill(queue, work->places, 0xff, capacity * sizeof(int32_t), err));
    VXD_TRY(vxd_queue_fill(queue, work->is_chosen, 0, capacity, err));
    VXD_TRY(VXD_BACKEND_FN(queue, vxd_surface_choose)(queue, work, err));
    VXD_TRY(VXD_BACKEND_FN(queue, vxd_surface_pick)(queue, work, err));
    VXD_TRY(sum(queue, work->picked, work->n, err));
    VXD_TRY(VXD_BACKEND_FN(queue, vxd_surface_list)(queue, work, err));
    VXD_TRY(read_counts(queue, work->picked + work->n, 0, 1, &work->n_picked, err));
out:
    return status;
}

/* Lists the blocks, and finds those that are chosen and picked. Blocking. */
static enum vxd_status pick(struct vxd_queue *queue, struct vxd_volume *volume,
                            const struct vxd_surface_args *args,
                            struct vxd_surface *surface, struct vxd_err *err)
{
    struct vxd_surface_work *work = &surface->work;
    size_t capacity = work->view.capacity;
    struct vxd_volume_info info;
    size_t n = 0;
    enum vxd_status status;

    vxd_volume_get_info(volume, &info);
    VXD_TRY(
        vxd_device_alloc(queue, info.n_blocks * sizeof(int32_t), &surface->entries, err));
    VXD_TRY(vxd_volume_changed_since(queue, volume, 0, surface->entries.ptr, &n, err));
    surface->counts.n_listed = n;
    surface->counts.next = n;
    if (n == 0 || args->first >= n) {
        return VXD_OK;
    }
    work->begin = (uint32_t)args->first;
    work->end = args->limit > 0 && args->limit < n - args->first
                    ? (uint32_t)(args->first + args->limit)
                    : (uint32_t)n;
    VXD_TRY(vxd_device_alloc(queue, n * 27 * sizeof(int32_t), &surface->neighbours, err));
    VXD_TRY(
        vxd_device_alloc(queue, capacity * (sizeof(int32_t) + 1), &surface->flags, err));
    VXD_TRY(vxd_device_alloc(queue, (n + 1) * sizeof(uint32_t), &surface->picked, err));
    VXD_TRY(vxd_device_alloc(queue, n * sizeof(uint32_t), &surface->list, err));
    VXD_TRY(vxd_volume_neighbours(queue, volume, surface->entries.ptr, n,
                                  surface->neighbours.ptr, err));
    work->n = (uint32_t)n;
    work->entries = surface->entries.ptr;
    work->neighbours = surface->neighbours.ptr;
    work->places = surface->flags.ptr;
    work->is_chosen = (uint8_t *)surface->flags.ptr + capacity * sizeof(int32_t);
    work->picked = surface->picked.ptr;
    work->list = surface->list.ptr;
    VXD_TRY(choose(queue, surface, err));
    surface->counts.next = work->end;
out:
    return status;
}

/* Counts vertices and triangles of the picked blocks. Blocking. */
static enum vxd_status count(struct vxd_queue *queue, struct vxd_surface *surface,
                             struct vxd_err *err)
{
    struct vxd_surface_work *work = &surface->work;
    size_t n = work->n_picked;
    size_t edge = (size_t)work->view.edge;
    size_t n_rows = 3 * edge * edge * n;
    uint64_t most = (uint64_t)edge * edge * edge * MAX_TRIANGLES_A_CELL * n;
    uint32_t totals[3] = {0, 0, 0};
    enum vxd_status status;

    if (most > INT32_MAX) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "%zu blocks could have %" PRIu64 " triangles, at most %" PRId32
                        " are possible at once",
                        n, most, INT32_MAX);
    }
    VXD_TRY(vxd_device_alloc(queue, 2 * n_rows * sizeof(uint16_t), &surface->edges, err));
    VXD_TRY(vxd_device_alloc(queue, 3 * (n + 1) * sizeof(uint32_t), &surface->sums, err));
    work->edges = surface->edges.ptr;
    work->ranks = work->edges + n_rows;
    work->vertices = surface->sums.ptr;
    work->triangles = work->vertices + n + 1;
    work->chosen = work->triangles + n + 1;
    VXD_TRY(VXD_BACKEND_FN(queue, vxd_surface_count)(queue, work, err));
    VXD_TRY(sum(queue, work->vertices, n, err));
    VXD_TRY(sum(queue, work->triangles, n, err));
    VXD_TRY(sum(queue, work->chosen, n, err));
    VXD_TRY(read_counts(queue, work->vertices + n, n + 1, 3, totals, err));
    surface->counts.n_vertices = totals[0];
    surface->counts.n_triangles = totals[1];
    surface->counts.n_blocks = totals[2];
out:
    return status;
}

/* --- within max_bytes -------------------------------------------------------------------------- */

static uint64_t bytes_of(const struct vxd_surface_args *args, uint64_t n_vertices,
                         uint64_t n_triangles, uint64_t n_blocks)
{
    return n_vertices * args->vertex_bytes + n_triangles * args->triangle_bytes +
           n_blocks * args->block_bytes;
}

static bool is_above(const struct vxd_surface_args *args,
                     const struct vxd_surface_counts *n)
{
    return args->max_bytes > 0 && n->n_blocks > 1 &&
           bytes_of(args, n->n_vertices, n->n_triangles, n->n_blocks) > args->max_bytes;
}

/* Copies the sums of the picked blocks, and which they are, to the host. Blocking. */
static enum vxd_status read_sums(struct vxd_queue *queue,
                                 const struct vxd_surface *surface,
                                 struct vxd_buffer host[2], const uint32_t **sums,
                                 const uint32_t **list, struct vxd_err *err)
{
    const struct vxd_surface_work *work = &surface->work;
    size_t n = work->n_picked;
    const void *bytes[2] = {NULL, NULL};
    enum vxd_status status;

    VXD_TRY(vxd_download(queue, work->vertices, 3 * (n + 1) * sizeof(uint32_t), &host[0],
                         &bytes[0], err));
    VXD_TRY(
        vxd_download(queue, work->list, n * sizeof(uint32_t), &host[1], &bytes[1], err));
    VXD_TRY(vxd_queue_wait(queue, err));
    *sums = bytes[0];
    *list = bytes[1];
out:
    if (status != VXD_OK) {
        (void)vxd_queue_wait(queue, NULL);
    }
    return status;
}

/* Ends the listed blocks behind the last chosen one up to which the picked blocks have at most this part
 * of max_bytes, or behind the first. Vertices of later blocks may come on top of it. */
static enum vxd_status shorten(struct vxd_queue *queue,
                               const struct vxd_surface_args *args, double part,
                               struct vxd_surface *surface, struct vxd_err *err)
{
    struct vxd_buffer host[2] = {{NULL, 0, VXD_SPACE_HOST}, {NULL, 0, VXD_SPACE_HOST}};
    uint64_t most = (uint64_t)((double)args->max_bytes * part);
    size_t n = surface->work.n_picked;
    const uint32_t *sums;
    const uint32_t *list;
    size_t n_kept = 0; /* chosen */
    enum vxd_status status;

    VXD_TRY(read_sums(queue, surface, host, &sums, &list, err));
    for (size_t i = 0; i < n; i++) {
        const uint32_t *triangles = sums + n + 1;
        const uint32_t *chosen = triangles + n + 1;
        bool is_chosen = chosen[i + 1] > chosen[i];

        if (n_kept > 0 &&
            (chosen[i + 1] == surface->counts.n_blocks ||
             bytes_of(args, sums[i + 1], triangles[i + 1], chosen[i + 1]) > most)) {
            break;
        }
        if (is_chosen) {
            surface->work.end = list[i] + 1;
            n_kept++;
        }
    }
out:
    vxd_host_free(queue->context, &host[0]);
    vxd_host_free(queue->context, &host[1]);
    return status;
}

/* Ends the listed blocks behind as many chosen ones as can be in max_bytes by far, before all of them are
 * counted. Blocking. */
static enum vxd_status bound(struct vxd_queue *queue, const struct vxd_surface_args *args,
                             struct vxd_surface *surface, struct vxd_err *err)
{
    struct vxd_surface_work *work = &surface->work;
    struct vxd_buffer host[2] = {{NULL, 0, VXD_SPACE_HOST}, {NULL, 0, VXD_SPACE_HOST}};
    size_t edge = (size_t)work->view.edge;
    size_t most =
        LEAST_COUNTED + BOUND_TIMES * args->max_bytes /
                            (edge * edge * args->vertex_bytes + args->block_bytes + 1);
    const void *entries = NULL;
    const void *is_chosen = NULL;
    size_t n_chosen = 0;
    uint32_t end = work->begin;
    enum vxd_status status = VXD_OK;

    if (args->max_bytes == 0 || work->n_picked <= most) {
        return VXD_OK;
    }
    VXD_TRY(vxd_download(queue, work->entries, work->n * sizeof(int32_t), &host[0],
                         &entries, err));
    VXD_TRY(vxd_download(queue, work->is_chosen, work->view.capacity, &host[1],
                         &is_chosen, err));
    VXD_TRY(vxd_queue_wait(queue, err));
    while (end < work->end && n_chosen < most) {
        n_chosen += ((const uint8_t *)is_chosen)[((const int32_t *)entries)[end]];
        end++;
    }
    if (end < work->end) {
        work->end = end;
        surface->counts.next = end;
        VXD_TRY(choose(queue, surface, err));
    }
out:
    if (status != VXD_OK) {
        (void)vxd_queue_wait(queue, NULL);
    }
    vxd_host_free(queue->context, &host[0]);
    vxd_host_free(queue->context, &host[1]);
    return status;
}

/* Makes the surface one of fewer blocks until it has at most max_bytes. */
static enum vxd_status fit(struct vxd_queue *queue, const struct vxd_surface_args *args,
                           struct vxd_surface *surface, struct vxd_err *err)
{
    double part = 1;
    enum vxd_status status = VXD_OK;

    while (is_above(args, &surface->counts)) {
        VXD_TRY(shorten(queue, args, part, surface, err));
        vxd_device_free(queue, &surface->sums);
        vxd_device_free(queue, &surface->edges);
        VXD_TRY(choose(queue, surface, err));
        VXD_TRY(count(queue, surface, err));
        surface->counts.next = surface->work.end;
        part *= SHRINK;
    }
out:
    return status;
}

/* Lists, picks and counts, and ends earlier where that is too much. Blocking. */
static enum vxd_status make_in_steps(struct vxd_queue *queue, struct vxd_volume *volume,
                                     const struct vxd_surface_args *args,
                                     struct vxd_surface *surface, struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(pick(queue, volume, args, surface, err));
    if (surface->work.n_picked > 0) {
        VXD_TRY(bound(queue, args, surface, err));
        VXD_TRY(count(queue, surface, err));
        VXD_TRY(fit(queue, args, surface, err));
    }
out:
    return status;
}

/* --- in one step ------------------------------------------------------------------------------- */

/* Where one step can plan a surface: on a GPU, where the volume knows the neighbours of its blocks, and they
 * are so few that arrays for all of them are no waste. A large surface that goes out in parts is none: each
 * part would begin with a plan of all that is left. */
static bool is_planned(const struct vxd_surface *surface,
                       const struct vxd_surface_args *args, size_t n_blocks)
{
    const struct vxd_volume_view *view = &surface->work.view;
    size_t edge = (size_t)view->edge;

    return view->neighbours != NULL && n_blocks > 0 &&
           (args->max_bytes == 0 || (args->first == 0 && args->since > 0)) &&
           n_blocks <= PLAN_BYTES / (6 * edge * edge * sizeof(uint16_t));
}

/* Makes the arrays of a plan: those of is_chosen and of places, the list, edges and ranks, and the sums. */
static enum vxd_status alloc_plan(struct vxd_queue *queue, struct vxd_surface *surface,
                                  struct vxd_surface_plan *plan, struct vxd_err *err)
{
    struct vxd_surface_work *work = &surface->work;
    size_t edge = (size_t)work->view.edge;
    size_t n_rows = 3 * edge * edge * plan->n_blocks;
    size_t total = 0;
    size_t at[6];
    char *base;
    enum vxd_status status;

    if (!vxd_layout_add(&total, work->view.capacity, sizeof(int32_t), &at[0]) ||
        !vxd_layout_add(&total, work->view.capacity, 1, &at[1]) ||
        !vxd_layout_add(&total, plan->n_blocks, sizeof(uint32_t), &at[2]) ||
        !vxd_layout_add(&total, 2 * n_rows, sizeof(uint16_t), &at[3]) ||
        !vxd_layout_add(&total, 3 * (plan->n_blocks + 1), sizeof(uint32_t), &at[4]) ||
        !vxd_layout_add(&total, 5 * VXD_SURFACE_PLAN_GRID + 1, sizeof(uint32_t),
                        &at[5])) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "%zu blocks are too many",
                        plan->n_blocks);
    }
    VXD_TRY(vxd_device_alloc(queue, total, &surface->planned, err));
    base = surface->planned.ptr;
    work->places = (int32_t *)(void *)(base + at[0]);
    work->is_chosen = (uint8_t *)(base + at[1]);
    work->list = (uint32_t *)(void *)(base + at[2]);
    work->edges = (uint16_t *)(void *)(base + at[3]);
    work->ranks = work->edges + n_rows;
    work->vertices = (uint32_t *)(void *)(base + at[4]);
    work->triangles = work->vertices + plan->n_blocks + 1;
    work->chosen = work->triangles + plan->n_blocks + 1;
    plan->sums = (uint32_t *)(void *)(base + at[5]);
    plan->arrived = plan->sums + 5 * VXD_SURFACE_PLAN_GRID;
out:
    return status;
}

/* Picks and counts in one step, and waits for it. Blocking. */
static enum vxd_status make_plan(struct vxd_queue *queue,
                                 const struct vxd_surface_args *args, size_t n_blocks,
                                 struct vxd_surface *surface, struct vxd_err *err)
{
    struct vxd_surface_work *work = &surface->work;
    struct vxd_surface_plan plan = {.n_blocks = n_blocks};
    struct vxd_buffer host = {NULL, 0, VXD_SPACE_HOST};
    const struct vxd_surface_report *report;
    enum vxd_status status;

    VXD_TRY(alloc_plan(queue, surface, &plan, err));
    VXD_TRY(vxd_host_alloc(queue->context, sizeof *report, &host, err));
    work->neighbours = work->view.neighbours;
    work->begin = args->first < UINT32_MAX ? (uint32_t)args->first : UINT32_MAX;
    work->end = args->limit > 0 && args->limit < UINT32_MAX - work->begin
                    ? work->begin + (uint32_t)args->limit
                    : UINT32_MAX;
    plan.work = *work;
    plan.report = host.ptr;
    VXD_TRY(vxd_surface_plan_cuda(queue, &plan, err));
    VXD_TRY(vxd_queue_wait(queue, err));
    report = host.ptr;
    work->n_picked = report->n_picked;
    surface->counts = (struct vxd_surface_counts){
        .n_vertices = report->n_vertices,
        .n_triangles = report->n_triangles,
        .n_blocks = report->n_chosen,
        .n_listed = report->n_observed,
        .next = work->end < report->n_observed ? work->end : report->n_observed};
out:
    if (status != VXD_OK) { /* what is queued may write to the host's memory */
        (void)vxd_queue_wait(queue, NULL);
    }
    vxd_host_free(queue->context, &host);
    return status;
}

enum vxd_status vxd_surface_create(struct vxd_queue *queue, struct vxd_volume *volume,
                                   const struct vxd_surface_args *args,
                                   struct vxd_surface **out, struct vxd_err *err)
{
    struct vxd_surface *surface = NULL;
    struct vxd_volume_info info;
    bool is_made = false;
    enum vxd_status status;

    *out = NULL;
    VXD_TRY(check(args, err));
    surface = calloc(1, sizeof *surface);
    if (surface == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a surface");
    }
    surface->work = work_of(volume, args);
    vxd_volume_get_info(volume, &info);
    if (VXD_ON_CUDA(queue->context) && is_planned(surface, args, info.n_blocks)) {
        VXD_TRY(make_plan(queue, args, info.n_blocks, surface, err));
        is_made = !is_above(args, &surface->counts);
        if (!is_made) { /* its list does not say where to end */
            vxd_device_free(queue, &surface->planned);
            surface->work = work_of(volume, args);
        }
    }
    if (!is_made) {
        VXD_TRY(make_in_steps(queue, volume, args, surface, err));
    }
    *out = surface;
    return VXD_OK;
out:
    vxd_surface_destroy(queue, surface);
    return status;
}

void vxd_surface_get_counts(const struct vxd_surface *surface,
                            struct vxd_surface_counts *out)
{
    *out = surface->counts;
}

enum vxd_status vxd_surface_write(struct vxd_queue *queue,
                                  const struct vxd_surface *surface,
                                  const struct vxd_surface_outputs *outputs,
                                  struct vxd_err *err)
{
    struct vxd_surface_work work = surface->work;

    if (outputs->has_albedo) {
        work.view.colours = work.view.albedo;
    }
    if (outputs->colours != NULL && work.view.colours == NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "colours", "the volume keeps no %s",
                        outputs->has_albedo ? "albedo" : "colours");
    }
    if (outputs->labels != NULL && work.view.labels == NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "labels",
                        "the volume keeps no labels");
    }
    if (outputs->triangles != NULL && !work.is_mesh) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "triangles", "points have none");
    }
    work.out = *outputs;
    return work.n_picked > 0 ? VXD_BACKEND_FN(queue, vxd_surface_write)(queue, &work, err)
                             : VXD_OK;
}

void vxd_surface_destroy(struct vxd_queue *queue, struct vxd_surface *surface)
{
    if (surface == NULL) {
        return;
    }
    vxd_device_free(queue, &surface->planned);
    vxd_device_free(queue, &surface->sums);
    vxd_device_free(queue, &surface->edges);
    vxd_device_free(queue, &surface->list);
    vxd_device_free(queue, &surface->picked);
    vxd_device_free(queue, &surface->flags);
    vxd_device_free(queue, &surface->neighbours);
    vxd_device_free(queue, &surface->entries);
    free(surface);
}
