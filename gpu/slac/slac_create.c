// SPDX-License-Identifier: Apache-2.0
/* From fragments to what the steps work on: checks, thinning, the order of points, the control grid
 * and who borders on whom in it. */
#include <stdlib.h>

#include "gpu/slac/slac_internal.h"

#define MAX_POINTS ((size_t)1 << 28)

/* ---- Checks ---- */

/* A number that is 0 for its default. */
static enum vxd_status take(double *value, double otherwise, double low, double high,
                            const char *field, struct vxd_err *err)
{
    if (*value == 0) {
        *value = otherwise;
    }
    return *value >= low && *value <= high
               ? VXD_OK
               : vxd_fail(err, VXD_INVALID_ARGUMENT, field, "is %g, must be %g to %g",
                          *value, low, high);
}

enum vxd_status vxd_slac_options_init(struct vxd_slac_options *options,
                                      struct vxd_err *err)
{
    enum vxd_status status;

    if (options->metric > VXD_SLAC_POINT_TO_POINT || (int)options->metric < 0) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "metric",
                        "is %d; 0 is point to plane, 1 point to point",
                        (int)options->metric);
    }
    VXD_TRY(take(&options->cell_m, 0.375, 0.01, 100, "cell_m", err));
    VXD_TRY(take(&options->lambda, 0.2, 1e-9, 1e9, "lambda", err));
    VXD_TRY(take(&options->distance_m, 0.07, 1e-3, 10, "distance_m", err));
    VXD_TRY(take(&options->fitness, 0.3, 1e-6, 1, "fitness", err));
    VXD_TRY(take(&options->voxel_m, 0.05, 1e-3, 10, "voxel_m", err));
    VXD_TRY(take(&options->tolerance, 1e-3, 1e-9, 1, "tolerance", err));
    if (options->solver_steps == 0) {
        options->solver_steps = 60;
    }
    if (options->solver_steps < 1 || options->solver_steps > 1000) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "solver_steps",
                        "are %d, must be 1 to 1000", options->solver_steps);
    }
    if (options->max_unknowns == 0) {
        options->max_unknowns = VXD_SLAC_MAX_UNKNOWNS;
    }
    if (options->max_unknowns > VXD_SLAC_MAX_UNKNOWNS) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "max_unknowns",
                        "are %zu, at most %zu are possible", options->max_unknowns,
                        VXD_SLAC_MAX_UNKNOWNS);
    }
out:
    return status;
}

static enum vxd_status check_fragment(const struct vxd_slac_args *args, size_t i,
                                      struct vxd_err *err)
{
    const struct vxd_slac_fragment *fragment = &args->fragments[i];
    char field[64];
    enum vxd_status status;

    (void)snprintf(field, sizeof field, "fragments[%zu].T_map_fragment", i);
    VXD_TRY(vxd_volume_check_pose(&fragment->T_map_fragment, field, err));
    (void)snprintf(field, sizeof field, "fragments[%zu]", i);
    if (fragment->n == 0 || fragment->points == NULL || fragment->n > MAX_POINTS) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                         "\"%.63s\" has %zu points, must have 1 to %zu", fragment->name,
                         fragment->n, MAX_POINTS));
    }
    if (fragment->normals == NULL && args->options.metric == VXD_SLAC_POINT_TO_PLANE) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                         "\"%.63s\" has no normals, which only point to point needs not",
                         fragment->name));
    }
    for (int a = 0; a < 3; a++) {
        if (!(fabs(fragment->origin_m[a]) <= 1e4)) {
            VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                             "\"%.63s\" has its origin at %g metres, must be within "
                             "+-10000",
                             fragment->name, fragment->origin_m[a]));
        }
    }
out:
    return status;
}

static enum vxd_status check(struct vxd_slac_args *args, struct vxd_err *err)
{
    size_t total = 0;
    enum vxd_status status;

    VXD_TRY(vxd_slac_options_init(&args->options, err));
    if (args->n_fragments < 2 || args->n_fragments > VXD_SLAC_MAX_FRAGMENTS) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "fragments",
                         "are %zu, must be 2 to %d", args->n_fragments,
                         VXD_SLAC_MAX_FRAGMENTS));
    }
    for (size_t i = 0; i < args->n_fragments; i++) {
        VXD_TRY(check_fragment(args, i, err));
        total += args->fragments[i].n;
    }
    if (total > MAX_POINTS) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "fragments",
                         "have %zu points, at most %zu are possible", total, MAX_POINTS));
    }
    if (args->edges != NULL &&
        (args->n_edges == 0 || args->n_edges > VXD_SLAC_MAX_EDGES)) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "edges", "are %zu, must be 1 to %zu",
                         args->n_edges, VXD_SLAC_MAX_EDGES));
    }
    for (size_t i = 0; args->edges != NULL && i < args->n_edges; i++) {
        const struct vxd_slac_edge *edge = &args->edges[i];
        int32_t n = (int32_t)args->n_fragments;
        char field[32];

        if (edge->source < 0 || edge->source >= n || edge->target < 0 ||
            edge->target >= n || edge->source == edge->target) {
            (void)snprintf(field, sizeof field, "edges[%zu]", i);
            VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                             "is from fragment %d to %d, must be two different ones of "
                             "the %d",
                             (int)edge->source, (int)edge->target, (int)n));
        }
    }
out:
    return status;
}

/* ---- Thinning ---- */

/* Sorts n values by their keys, of which n_bits count; those of equal keys stay in their order. */
static enum vxd_status sort(struct vxd_queue *queue, uint64_t *keys, uint32_t *values,
                            size_t n, int n_bits, struct vxd_slac_memory *scratch,
                            struct vxd_err *err)
{
    size_t n_bytes = vxd_sort_pairs_scratch_bytes(queue, n);
    uint64_t *other_keys = NULL;
    uint32_t *other_values = NULL;
    void *rest = NULL;
    enum vxd_status status;

    VXD_TRY(vxd_slac_take(queue, scratch, n, sizeof *keys, &other_keys, err));
    VXD_TRY(vxd_slac_take(queue, scratch, n, sizeof *values, &other_values, err));
    VXD_TRY(vxd_slac_take(queue, scratch, n_bytes, 1, &rest, err));
    VXD_TRY(vxd_sort_pairs(queue, keys, values, other_keys, other_values, n, 0, n_bits,
                           rest, n_bytes, err));
out:
    return status;
}

/* Points in one voxel of a fragment become one, in the place of the first. raw_flags becomes where that
 * goes. */
static enum vxd_status choose_points(struct vxd_queue *queue, struct vxd_slac_state *s,
                                     struct vxd_slac_memory *scratch, struct vxd_err *err)
{
    const struct vxd_hashmap_spec spec = {.key_dtype = VXD_INT32, .n_components = 4};
    size_t n_scan = vxd_scan_scratch_bytes(queue, s->n_raw);
    struct vxd_hashmap_insert_args insert = {.keys = s->raw_keys,
                                             .n = s->n_raw,
                                             .order = VXD_HASH_FIRST,
                                             .indices = s->raw_entries,
                                             .is_new = s->raw_new};
    struct vxd_hashmap *voxels = NULL;
    void *scan = NULL;
    uint32_t n = 0;
    enum vxd_status status;

    VXD_TRY(vxd_hashmap_create(queue, &spec, &voxels, err));
    VXD_TRY(
        vxd_hashmap_prepare(queue, voxels, s->raw_keys, s->n_raw, &insert.max_new, err));
    VXD_TRY(vxd_hashmap_insert(queue, voxels, &insert, err));
    VXD_TRY(vxd_slac_run(queue, s, VXD_SLAC_STEP_flag, s->n_raw, err));
    VXD_TRY(vxd_slac_run(queue, s, VXD_SLAC_STEP_member, s->n_raw, err));
    VXD_TRY(sort(queue, s->member_keys, s->members, s->n_raw, 32, scratch, err));
    VXD_TRY(vxd_slac_run(queue, s, VXD_SLAC_STEP_begin, s->n_raw, err));
    VXD_TRY(vxd_slac_take(queue, scratch, n_scan, 1, &scan, err));
    VXD_TRY(vxd_scan_exclusive(queue, s->raw_flags, s->raw_flags, s->n_raw, scan, n_scan,
                               err));
    VXD_TRY(vxd_slac_read(queue, s->raw_flags + s->n_raw, sizeof n, &n, err));
    s->n_points = n;
out:
    vxd_hashmap_destroy(queue, voxels);
    return status;
}

static enum vxd_status take_raw(struct vxd_queue *queue, struct vxd_slac_state *s,
                                struct vxd_slac_memory *scratch, struct vxd_err *err)
{
    size_t n = s->n_raw;
    enum vxd_status status;

    VXD_TRY(vxd_slac_take(queue, scratch, n, 12, &s->raw_at, err));
    VXD_TRY(vxd_slac_take(queue, scratch, n, 12, &s->raw_normal, err));
    VXD_TRY(vxd_slac_take(queue, scratch, n, 16, &s->raw_keys, err));
    VXD_TRY(vxd_slac_take(queue, scratch, n, 1, &s->raw_new, err));
    VXD_TRY(vxd_slac_take(queue, scratch, n + 1, 4, &s->raw_flags, err));
    VXD_TRY(vxd_slac_take(queue, scratch, n, 4, &s->raw_entries, err));
    VXD_TRY(vxd_slac_take(queue, scratch, n, 8, &s->member_keys, err));
    VXD_TRY(vxd_slac_take(queue, scratch, n, 4, &s->members, err));
    VXD_TRY(vxd_slac_take(queue, scratch, n, 4, &s->member_begin, err));
out:
    return status;
}

static enum vxd_status take_kept(struct vxd_queue *queue, struct vxd_slac *slac,
                                 struct vxd_slac_memory *scratch, struct vxd_err *err)
{
    struct vxd_slac_state *s = &slac->state;
    size_t n = s->n_points;
    enum vxd_status status;

    VXD_TRY(vxd_slac_take(queue, scratch, n, 8, &s->order_keys, err));
    VXD_TRY(vxd_slac_take(queue, scratch, n, 4, &s->order, err));
    VXD_TRY(vxd_slac_take(queue, scratch, n, 12, &s->kept_at, err));
    VXD_TRY(vxd_slac_take(queue, scratch, n, 12, &s->kept_normals, err));
    VXD_TRY(vxd_slac_take(queue, scratch, n, 4, &s->kept_fragment, err));
    VXD_TRY(vxd_slac_take(queue, scratch, n, 12, &s->cell_keys, err));
    VXD_TRY(vxd_slac_take(queue, &slac->memory, n, 12, &s->at, err));
    VXD_TRY(vxd_slac_take(queue, &slac->memory, n, 12, &s->normals, err));
    VXD_TRY(vxd_slac_take(queue, &slac->memory, n, 4, &s->fragment, err));
    VXD_TRY(vxd_slac_take(queue, &slac->memory, n, 12, &s->part, err));
out:
    return status;
}

/* Makes the points of all fragments. Blocking. */
static enum vxd_status make_points(struct vxd_queue *queue, struct vxd_slac *slac,
                                   const struct vxd_slac_args *args,
                                   struct vxd_slac_memory *scratch, struct vxd_err *err)
{
    struct vxd_slac_state *s = &slac->state;
    enum vxd_status status;

    for (size_t i = 0; i < args->n_fragments; i++) {
        s->n_raw += args->fragments[i].n;
        s->raw_has_normals =
            (i == 0 || s->raw_has_normals != 0) && args->fragments[i].normals != NULL;
    }
    VXD_TRY(take_raw(queue, s, scratch, err));
    for (size_t i = 0; i < args->n_fragments; i++) {
        const struct vxd_slac_fragment *fragment = &args->fragments[i];

        s->raw_points = fragment->points;
        s->raw_normals = fragment->normals;
        s->raw_fragment = (int32_t)i;
        memcpy(s->raw_origin, fragment->origin_m, sizeof s->raw_origin);
        VXD_TRY(vxd_slac_run(queue, s, VXD_SLAC_STEP_take, fragment->n, err));
        s->raw_first += fragment->n;
    }
    VXD_TRY(choose_points(queue, s, scratch, err));
    VXD_TRY(take_kept(queue, slac, scratch, err));
    VXD_TRY(vxd_slac_run(queue, s, VXD_SLAC_STEP_keep, s->n_raw, err));
    if (s->n_points > 0) {
        VXD_TRY(sort(queue, s->order_keys, s->order, s->n_points, 64, scratch, err));
    }
    VXD_TRY(vxd_slac_run(queue, s, VXD_SLAC_STEP_order, s->n_points, err));
out:
    return status;
}

/* ---- Fragments ---- */

/* Counts the points of each fragment, which lie together. */
static enum vxd_status count_points(struct vxd_queue *queue, struct vxd_slac *slac,
                                    const struct vxd_slac_args *args, struct vxd_err *err)
{
    struct vxd_slac_state *s = &slac->state;
    int32_t *host = malloc((s->n_points + 1) * sizeof *host);
    char field[32];
    enum vxd_status status;

    slac->firsts = calloc(args->n_fragments + 1, sizeof *slac->firsts);
    slac->names = calloc(args->n_fragments, sizeof *slac->names);
    if (host == NULL || slac->firsts == NULL || slac->names == NULL) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory"));
    }
    VXD_TRY(vxd_slac_read(queue, s->fragment, s->n_points * sizeof *host, host, err));
    for (size_t i = 0; i < s->n_points; i++) {
        slac->firsts[host[i] + 1]++;
    }
    for (size_t i = 0; i < args->n_fragments; i++) {
        (void)snprintf(slac->names[i], sizeof slac->names[i], "%s",
                       args->fragments[i].name);
        if (slac->firsts[i + 1] == 0) {
            (void)snprintf(field, sizeof field, "fragments[%zu]", i);
            VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                             "\"%.63s\" has no point that is finite and within 10 km",
                             slac->names[i]));
        }
        slac->firsts[i + 1] += slac->firsts[i];
    }
out:
    free(host);
    return status;
}

/* Splits n items from `first` on into ranges of at most `size`; returns how many. out NULL: counts. */
static size_t split(uint32_t first, uint32_t n, uint32_t size, int32_t owner,
                    struct vxd_slac_range *out)
{
    size_t n_ranges = 0;

    for (uint32_t at = 0; at < n; at += size) {
        if (out != NULL) {
            out[n_ranges] =
                (struct vxd_slac_range){first + at, n - at < size ? n - at : size, owner};
        }
        n_ranges++;
    }
    return n_ranges;
}

/* Makes ranges of at most `size` items of n owners, whose items begin at firsts; uploads both the
 * ranges and where each owner's begin. Blocking. */
static enum vxd_status make_ranges(struct vxd_queue *queue, struct vxd_slac *slac,
                                   const uint32_t *firsts, size_t n, uint32_t size,
                                   struct vxd_slac_range **out, uint32_t **begins,
                                   size_t *n_ranges, struct vxd_err *err)
{
    uint32_t *host_begins = malloc((n + 1) * sizeof *host_begins);
    struct vxd_slac_range *host = NULL;
    size_t total = 0;
    enum vxd_status status;

    if (host_begins == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory");
    }
    for (size_t i = 0; i < n; i++) {
        host_begins[i] = (uint32_t)total;
        total += split(firsts[i], firsts[i + 1] - firsts[i], size, (int32_t)i, NULL);
    }
    host_begins[n] = (uint32_t)total;
    host = malloc((total + 1) * sizeof *host);
    if (host == NULL) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory"));
    }
    for (size_t i = 0; i < n; i++) {
        (void)split(firsts[i], firsts[i + 1] - firsts[i], size, (int32_t)i,
                    host + host_begins[i]);
    }
    VXD_TRY(vxd_slac_take(queue, &slac->memory, total, sizeof *host, out, err));
    VXD_TRY(vxd_slac_take(queue, &slac->memory, n + 1, sizeof **begins, begins, err));
    VXD_TRY(vxd_queue_copy(queue, *out, host, total * sizeof *host, err));
    VXD_TRY(
        vxd_queue_copy(queue, *begins, host_begins, (n + 1) * sizeof *host_begins, err));
    *n_ranges = total;
out:
    (void)vxd_queue_wait(queue, NULL);
    free(host);
    free(host_begins);
    return status;
}

static enum vxd_status upload_poses(struct vxd_queue *queue, struct vxd_slac *slac,
                                    const struct vxd_slac_args *args, struct vxd_err *err)
{
    struct vxd_slac_state *s = &slac->state;
    size_t n = args->n_fragments;
    double *host = malloc(12 * n * sizeof *host);
    enum vxd_status status;

    if (host == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory");
    }
    memcpy(slac->middle, args->fragments[0].T_map_fragment.translation,
           sizeof slac->middle);
    for (size_t i = 0; i < n; i++) {
        const struct vxd_volume_pose *pose = &args->fragments[i].T_map_fragment;

        memcpy(host + 12 * i, pose->rotation, sizeof pose->rotation);
        for (int a = 0; a < 3; a++) {
            host[12 * i + 9 + (size_t)a] = pose->translation[a] - slac->middle[a];
        }
    }
    VXD_TRY(vxd_slac_take(queue, &slac->memory, 12 * n, sizeof *host, &s->poses, err));
    VXD_TRY(vxd_queue_copy(queue, s->poses, host, 12 * n * sizeof *host, err));
out:
    (void)vxd_queue_wait(queue, NULL);
    free(host);
    return status;
}

static enum vxd_status make_fragments(struct vxd_queue *queue, struct vxd_slac *slac,
                                      const struct vxd_slac_args *args,
                                      struct vxd_err *err)
{
    struct vxd_slac_state *s = &slac->state;
    float *at = NULL;
    enum vxd_status status;

    s->n_fragments = args->n_fragments;
    VXD_TRY(count_points(queue, slac, args, err));
    VXD_TRY(make_ranges(queue, slac, slac->firsts, args->n_fragments, VXD_SLAC_STRIP,
                        &s->strips, &s->fragment_strips, &s->n_strips, err));
    VXD_TRY(upload_poses(queue, slac, args, err));
    at = malloc(3 * s->n_points * sizeof *at);
    if (at == NULL) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory"));
    }
    VXD_TRY(vxd_slac_read(queue, s->at, 3 * s->n_points * sizeof *at, at, err));
    VXD_TRY(vxd_slac_make_edges(queue, slac, args, at, err));
out:
    free(at);
    return status;
}

/* ---- The control grid ---- */

/* Inserts keys into a new map; *n becomes its size. Blocking. */
static enum vxd_status insert(struct vxd_queue *queue,
                              const struct vxd_hashmap_spec *spec, const void *keys,
                              size_t n_keys, int32_t *indices, struct vxd_hashmap **out,
                              size_t *n, struct vxd_err *err)
{
    struct vxd_hashmap_insert_args args = {
        .keys = keys, .n = n_keys, .order = VXD_HASH_FIRST, .indices = indices};
    enum vxd_status status;

    VXD_TRY(vxd_hashmap_create(queue, spec, out, err));
    VXD_TRY(vxd_hashmap_prepare(queue, *out, keys, n_keys, &args.max_new, err));
    VXD_TRY(vxd_hashmap_insert(queue, *out, &args, err));
    VXD_TRY(vxd_hashmap_size(queue, *out, n, err));
out:
    return status;
}

static enum vxd_status check_unknowns(const struct vxd_slac *slac, struct vxd_err *err)
{
    size_t n = 3 * slac->state.n_nodes + 6 * (slac->state.n_fragments - 1);

    return n <= slac->options.max_unknowns
               ? VXD_OK
               : vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "max_unknowns",
                          "%zu control points and %zu fragments have %zu unknowns, %zu "
                          "are allowed: a larger cell_m makes fewer",
                          slac->state.n_nodes, slac->state.n_fragments, n,
                          slac->options.max_unknowns);
}

/* Cells of points and control points of cells. Blocking. */
static enum vxd_status make_nodes(struct vxd_queue *queue, struct vxd_slac *slac,
                                  struct vxd_slac_memory *scratch, struct vxd_err *err)
{
    struct vxd_slac_state *s = &slac->state;
    const struct vxd_hashmap_spec cells = {.key_dtype = VXD_INT32, .n_components = 3};
    const struct vxd_hashmap_spec nodes = {
        .key_dtype = VXD_INT32,
        .n_components = 3,
        .n_values = VXD_SLAC_N_ARRAYS,
        .values = {[VXD_SLAC_OFFSETS] = {VXD_FLOAT32, 3},
                   [VXD_SLAC_ROTATIONS] = {VXD_FLOAT32, 4}}};
    enum vxd_status status;

    VXD_TRY(vxd_slac_take(queue, &slac->memory, s->n_points, 4, &s->cell, err));
    VXD_TRY(insert(queue, &cells, s->cell_keys, s->n_points, s->cell, &slac->cells,
                   &s->n_cells, err));
    s->map_cells = vxd_hashmap_keys(slac->cells);
    VXD_TRY(
        vxd_slac_take(queue, scratch, s->n_cells, (size_t)8 * 12, &s->corner_keys, err));
    VXD_TRY(vxd_slac_take(queue, &slac->memory, s->n_cells, (size_t)8 * 4, &s->cell_nodes,
                          err));
    VXD_TRY(vxd_slac_run(queue, s, VXD_SLAC_STEP_corner, 8 * s->n_cells, err));
    VXD_TRY(insert(queue, &nodes, s->corner_keys, 8 * s->n_cells, s->cell_nodes,
                   &slac->grid, &s->n_nodes, err));
    VXD_TRY(check_unknowns(slac, err));
    s->node_keys = vxd_hashmap_keys(slac->grid);
    s->offsets = vxd_hashmap_values(slac->grid, VXD_SLAC_OFFSETS);
    s->rotations = vxd_hashmap_values(slac->grid, VXD_SLAC_ROTATIONS);
    VXD_TRY(vxd_slac_take(queue, &slac->memory, s->n_nodes, (size_t)6 * 4, &s->node_ring,
                          err));
    VXD_TRY(vxd_slac_take(queue, &slac->memory, s->n_nodes, (size_t)8 * 4, &s->node_cells,
                          err));
    VXD_TRY(vxd_queue_fill(queue, s->node_cells, 0xff, s->n_nodes * 8 * 4, err));
    VXD_TRY(vxd_hashmap_neighbours(queue, slac->grid, vxd_hashmap_keys(slac->grid),
                                   s->n_nodes, VXD_NEIGHBOURS_6, s->node_ring, err));
    VXD_TRY(vxd_slac_run(queue, s, VXD_SLAC_STEP_node, s->n_nodes, err));
    VXD_TRY(vxd_slac_run(queue, s, VXD_SLAC_STEP_owner, 8 * s->n_cells, err));
out:
    return status;
}

/* Blocking. */
static enum vxd_status count_ring(struct vxd_queue *queue, struct vxd_slac *slac,
                                  struct vxd_err *err)
{
    size_t n = 6 * slac->state.n_nodes;
    int32_t *host = malloc(n * sizeof *host);
    enum vxd_status status;

    if (host == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory");
    }
    VXD_TRY(vxd_slac_read(queue, slac->state.node_ring, n * sizeof *host, host, err));
    for (size_t i = 0; i < n; i++) {
        slac->n_ring += host[i] >= 0 ? 1 : 0;
    }
out:
    free(host);
    return status;
}

/* The list of points by cell, in chunks. Blocking. */
static enum vxd_status list_by_cell(struct vxd_queue *queue, struct vxd_slac *slac,
                                    struct vxd_slac_memory *scratch, struct vxd_err *err)
{
    struct vxd_slac_state *s = &slac->state;
    uint32_t *firsts = calloc(s->n_cells + 1, sizeof *firsts);
    int32_t *host = malloc((s->n_points + 1) * sizeof *host);
    enum vxd_status status;

    if (firsts == NULL || host == NULL) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory"));
    }
    VXD_TRY(vxd_slac_run(queue, s, VXD_SLAC_STEP_cell_order, s->n_points, err));
    VXD_TRY(sort(queue, s->order_keys, s->order, s->n_points, 64, scratch, err));
    VXD_TRY(vxd_slac_take(queue, &slac->memory, s->n_points, 4, &s->by_cell, err));
    VXD_TRY(vxd_queue_copy(queue, s->by_cell, s->order, s->n_points * 4, err));
    VXD_TRY(vxd_slac_read(queue, s->cell, s->n_points * sizeof *host, host, err));
    for (size_t i = 0; i < s->n_points; i++) {
        firsts[host[i] + 1]++;
    }
    for (size_t i = 0; i < s->n_cells; i++) {
        firsts[i + 1] += firsts[i];
    }
    VXD_TRY(make_ranges(queue, slac, firsts, s->n_cells, VXD_SLAC_CHUNK, &s->chunks,
                        &s->cell_chunks, &s->n_chunks, err));
out:
    free(host);
    free(firsts);
    return status;
}

/* ---- The solver's arrays ---- */

static enum vxd_status take_arrays(struct vxd_queue *queue, struct vxd_slac *slac,
                                   struct vxd_err *err)
{
    struct vxd_slac_state *s = &slac->state;
    struct vxd_slac_memory *memory = &slac->memory;
    size_t n = s->n_points;
    size_t n_slots = 64;
    enum vxd_status status;

    while (n_slots < 2 * n) {
        n_slots *= 2;
    }
    s->slot_mask = (uint32_t)n_slots - 1;
    s->n_unknowns = 3 * s->n_nodes + 6 * s->n_fragments;
    VXD_TRY(vxd_slac_take(queue, memory, n, 24, &s->placed, err));
    VXD_TRY(vxd_slac_take(queue, memory, n, 12, &s->placed_normals, err));
    VXD_TRY(vxd_slac_take(queue, memory, n, 8, &s->search_keys, err));
    VXD_TRY(vxd_slac_take(queue, memory, n, 4, &s->search_points, err));
    VXD_TRY(vxd_slac_take(queue, memory, n, sizeof *s->seen, &s->seen, err));
    VXD_TRY(vxd_slac_take(queue, memory, n_slots, sizeof *s->slots, &s->slots, err));
    VXD_TRY(vxd_slac_take(queue, memory, n + 1, 4, &s->link_firsts, err));
    VXD_TRY(vxd_slac_take(queue, memory, n, 24, &s->displaced, err));
    VXD_TRY(vxd_slac_take(queue, memory, n, 24, &s->forces, err));
    VXD_TRY(vxd_slac_take(queue, memory, n, 24, &s->pulls, err));
    VXD_TRY(vxd_slac_take(queue, memory, n, 96, &s->blocks, err));
    VXD_TRY(
        vxd_slac_take(queue, memory, s->n_chunks, (size_t)24 * 8, &s->chunk_sums, err));
    VXD_TRY(
        vxd_slac_take(queue, memory, s->n_chunks, (size_t)48 * 8, &s->chunk_blocks, err));
    VXD_TRY(
        vxd_slac_take(queue, memory, s->n_strips, (size_t)6 * 8, &s->strip_sums, err));
    VXD_TRY(
        vxd_slac_take(queue, memory, s->n_strips, (size_t)21 * 8, &s->strip_blocks, err));
    VXD_TRY(vxd_slac_take(queue, memory, s->n_strips, 8, &s->strip_losses, err));
    VXD_TRY(vxd_slac_take(queue, memory, s->n_nodes, 8, &s->node_losses, err));
    VXD_TRY(vxd_slac_take(queue, memory, s->n_nodes, 8, &s->damping, err));
    VXD_TRY(vxd_slac_take(queue, memory, 9 * s->n_nodes + 36 * s->n_fragments, 8,
                          &s->inverses, err));
    VXD_TRY(vxd_slac_take(queue, memory, s->n_unknowns, 8, &s->x, err));
    VXD_TRY(vxd_slac_take(queue, memory, s->n_unknowns, 8, &s->r, err));
    VXD_TRY(vxd_slac_take(queue, memory, s->n_unknowns, 8, &s->z, err));
    VXD_TRY(vxd_slac_take(queue, memory, s->n_unknowns, 8, &s->p, err));
    VXD_TRY(vxd_slac_take(queue, memory, s->n_unknowns, 8, &s->q, err));
    VXD_TRY(vxd_slac_take(queue, memory, 1, sizeof *s->work, &s->work, err));
    VXD_TRY(vxd_queue_fill(queue, s->work, 0, sizeof *s->work, err));
out:
    return status;
}

static void init_rules(struct vxd_slac *slac)
{
    const struct vxd_slac_options *options = &slac->options;
    struct vxd_slac_state *s = &slac->state;

    s->is_rigid = options->is_rigid ? 1 : 0;
    s->is_plane = options->metric == VXD_SLAC_POINT_TO_PLANE ? 1 : 0;
    s->search_m = 2 * (float)options->distance_m;
    s->distance2 = (float)(options->distance_m * options->distance_m);
    s->robust2 = options->distance_m * options->distance_m;
    s->voxel_m = options->voxel_m;
    s->cell_m = options->cell_m;
    s->lambda = options->lambda;
    s->tolerance2 = options->tolerance * options->tolerance;
}

enum vxd_status vxd_slac_create(struct vxd_queue *queue, const struct vxd_slac_args *args,
                                struct vxd_slac **out, struct vxd_err *err)
{
    struct vxd_slac_memory scratch = {.n = 0};
    struct vxd_slac_args own = *args;
    struct vxd_slac *slac = NULL;
    enum vxd_status status;

    *out = NULL;
    VXD_TRY(check(&own, err));
    slac = calloc(1, sizeof *slac);
    if (slac == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory");
    }
    slac->options = own.options;
    init_rules(slac);
    VXD_TRY(make_points(queue, slac, &own, &scratch, err));
    VXD_TRY(make_fragments(queue, slac, &own, err));
    if (!own.options.is_rigid) {
        VXD_TRY(make_nodes(queue, slac, &scratch, err));
        VXD_TRY(count_ring(queue, slac, err));
        VXD_TRY(list_by_cell(queue, slac, &scratch, err));
    } else {
        VXD_TRY(check_unknowns(slac, err));
    }
    VXD_TRY(take_arrays(queue, slac, err));
    VXD_TRY(vxd_queue_wait(queue, err));
    *out = slac;
out:
    vxd_slac_give(queue, &scratch);
    if (status != VXD_OK) {
        (void)vxd_queue_wait(queue, NULL); /* of copies from the host's arrays */
        vxd_slac_destroy(queue, slac);
    }
    return status;
}
