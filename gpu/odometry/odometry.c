// SPDX-License-Identifier: Apache-2.0
/* Odometry: checks, the arrays of one call, and the order of its steps. */
#include "gpu/odometry/odometry_internal.h"

#include <inttypes.h>
#include <stdlib.h>

#include "gpu/core/core.h"

#define MAX_ITERATIONS 500
#define FIRST_CAPACITY ((size_t)8192)

/* Steps that are queued before the host looks whether more are needed. */
#define CUDA_STEPS 20

/* Base voxels are at most so far from the map's origin, so that all keys are packed ones. */
#define MAX_BASE (((int32_t)1 << 20) - (1 << 14))

/* Voxels beyond the range are removed when the sensor has moved by a part of it. */
#define REMOVAL_PART 20

/* Edges of the voxels of the two downsamplings, in voxels of the map. */
#define FINE 0.5
#define COARSE 1.5

struct vxd_odometry {
    struct vxd_odometry_options options;
    struct vxd_hashmap *map;
    struct vxd_odometry_motion motion;
    double removed_at_m[3]; /* where the sensor was when voxels were removed last */
    size_t n_scans;
    size_t n_lost;
    size_t n_voxels;
};

/* ---- Options ---- */

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

static enum vxd_status take_count(int *value, int otherwise, int high, const char *field,
                                  struct vxd_err *err)
{
    if (*value == 0) {
        *value = otherwise;
    }
    return *value >= 1 && *value <= high
               ? VXD_OK
               : vxd_fail(err, VXD_INVALID_ARGUMENT, field, "is %d, must be 1 to %d",
                          *value, high);
}

enum vxd_status vxd_odometry_options_init(struct vxd_odometry_options *options,
                                          struct vxd_err *err)
{
    double range;
    double voxel;
    enum vxd_status status;

    if (options->method > VXD_ODOMETRY_POINT_TO_POINT || (int)options->method < 0) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "method",
                        "is %d; 0 is point to plane, 1 point to point",
                        (int)options->method);
    }
    if (options->robust > VXD_ODOMETRY_SQUARES || (int)options->robust < 0) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "robust",
                        "is %d; 0 is Geman-McClure, 1 Huber, 2 squares",
                        (int)options->robust);
    }
    VXD_TRY(take(&options->max_range_m, 100, 1e-2, 1e4, "max_range_m", err));
    range = options->max_range_m;
    VXD_TRY(take(&options->min_range_m, 0, 0, range, "min_range_m", err));
    VXD_TRY(take(&options->voxel_size_m, range / 100, range / 4096, range, "voxel_size_m",
                 err));
    voxel = options->voxel_size_m;
    VXD_TRY(take_count(&options->max_points, VXD_ODOMETRY_MAX_VOXEL_POINTS,
                       VXD_ODOMETRY_MAX_VOXEL_POINTS, "max_points", err));
    VXD_TRY(take(&options->initial_threshold_m, 2 * voxel, 1e-6, 1e4,
                 "initial_threshold_m", err));
    VXD_TRY(take(&options->min_motion_m, voxel / 10, 1e-9, 1e4, "min_motion_m", err));
    VXD_TRY(
        take_count(&options->max_iterations, 100, MAX_ITERATIONS, "max_iterations", err));
    VXD_TRY(take(&options->convergence, 1e-4, 1e-9, 1, "convergence", err));
    VXD_TRY(take(&options->inlier_m, 0.3 * voxel, 1e-7, 1e4, "inlier_m", err));
    VXD_TRY(take(&options->min_fitness, 0.35, 1e-6, 1, "min_fitness", err));
    VXD_TRY(take(&options->min_constraint, 0.015, 1e-9, 1, "min_constraint", err));
    VXD_TRY(take(&options->max_translation_m, 5 * voxel, 1e-6, 1e4, "max_translation_m",
                 err));
    VXD_TRY(take(&options->max_rotation_deg, 20, 1e-6, 180, "max_rotation_deg", err));
out:
    return status;
}

/* ---- The object ---- */

static enum vxd_status check_pose(const struct vxd_volume_pose *pose, const char *field,
                                  struct vxd_err *err)
{
    return pose != NULL ? vxd_volume_check_pose(pose, field, err) : VXD_OK;
}

enum vxd_status vxd_odometry_create(struct vxd_queue *queue,
                                    const struct vxd_odometry_options *options,
                                    const struct vxd_volume_pose *initial,
                                    struct vxd_odometry **out, struct vxd_err *err)
{
    struct vxd_hashmap_spec spec = {
        .key_dtype = VXD_INT32,
        .n_components = 3,
        .n_values = 2,
        .values = {{VXD_UINT32, 1}, {VXD_FLOAT32, 3 * VXD_ODOMETRY_SLOTS}},
        .index = VXD_HASH_OPEN,
        .capacity = FIRST_CAPACITY};
    struct vxd_odometry *odometry = NULL;
    enum vxd_status status;

    VXD_TRY(check_pose(initial, "initial", err));
    odometry = calloc(1, sizeof *odometry);
    if (odometry == NULL) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for odometry"));
    }
    odometry->options = *options;
    VXD_TRY(vxd_odometry_options_init(&odometry->options, err));
    spec.max_bytes = odometry->options.max_bytes;
    VXD_TRY(vxd_hashmap_create(queue, &spec, &odometry->map, err));
    vxd_odometry_motion_init(&odometry->options, initial, &odometry->motion);
    *out = odometry;
    return VXD_OK;
out:
    free(odometry);
    return status;
}

void vxd_odometry_destroy(struct vxd_queue *queue, struct vxd_odometry *odometry)
{
    if (odometry != NULL) {
        vxd_hashmap_destroy(queue, odometry->map);
        free(odometry);
    }
}

enum vxd_status vxd_odometry_reset(struct vxd_queue *queue, struct vxd_odometry *odometry,
                                   const struct vxd_volume_pose *initial,
                                   struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(check_pose(initial, "initial", err));
    VXD_TRY(vxd_hashmap_clear(queue, odometry->map, err));
    vxd_odometry_motion_init(&odometry->options, initial, &odometry->motion);
    odometry->n_scans = odometry->n_lost = odometry->n_voxels = 0;
out:
    return status;
}

void vxd_odometry_predict(const struct vxd_odometry *odometry, int64_t stamp_ns,
                          struct vxd_volume_pose *out)
{
    vxd_odometry_motion_predict(&odometry->motion, stamp_ns, out);
}

void vxd_odometry_get_motion(const struct vxd_odometry *odometry,
                             struct vxd_volume_pose *T_end_begin)
{
    vxd_pose_invert(&odometry->motion.step, T_end_begin);
}

void vxd_odometry_get_info(const struct vxd_odometry *odometry,
                           struct vxd_odometry_info *out)
{
    const struct vxd_odometry_motion *motion = &odometry->motion;

    *out = (struct vxd_odometry_info){
        .options = odometry->options,
        .T_map_sensor = motion->last,
        .motion = motion->step,
        .threshold_m = vxd_odometry_motion_threshold(&odometry->options, motion),
        .n_scans = odometry->n_scans,
        .n_lost = odometry->n_lost,
        .n_lost_in_a_row = motion->n_lost_in_a_row,
        .n_voxels = odometry->n_voxels,
        .n_bytes = vxd_hashmap_n_bytes(odometry->map),
        .stamp_ns = motion->stamp_ns};
}

struct vxd_hashmap *vxd_odometry_map(struct vxd_odometry *odometry)
{
    return odometry->map;
}

/* ---- The arrays of a call ---- */

struct registration {
    struct vxd_odometry *odometry;
    const struct vxd_odometry_scan *scan;
    struct vxd_volume_pose predicted;
    int32_t base[3];
    double base_m[3];
    struct vxd_odometry_work begin; /* as it is uploaded */
    struct vxd_odometry_work *work; /* device */
    const struct vxd_odometry_work *found;
    struct vxd_odometry_scan_call reduce;
    struct vxd_odometry_align_call align;
    struct vxd_buffer scratch;
    struct vxd_buffer host;
    struct vxd_buffer update; /* scratch of the map's update */
};

static size_t slots_for(size_t n)
{
    size_t n_slots = 1024;

    while (n_slots < n + n / 3) {
        n_slots *= 2;
    }
    return n_slots;
}

/* Lays all arrays out in one block. */
static enum vxd_status lay_out(struct vxd_queue *queue, struct registration *run,
                               struct vxd_err *err)
{
    bool is_cuda = vxd_context_backend(vxd_queue_context(queue)) == VXD_BACKEND_CUDA;
    size_t n = run->scan->n_points;
    size_t n_slots = slots_for(n);
    size_t sum_bytes = is_cuda ? vxd_scan_scratch_bytes(queue, 2 * n) : 0;
    size_t n_pieces = n / VXD_ODOMETRY_PIECE + 2;
    size_t n_strips = n / VXD_ODOMETRY_STRIP + 1;
    /* work; two tables; slots; pieces; sums; points twice; kept, cells, strips */
    size_t at[12];
    size_t total = 0;
    bool fits =
        vxd_layout_add(&total, 1, sizeof(struct vxd_odometry_work), &at[0]) &&
        vxd_layout_add(&total, 2 * n_slots, sizeof(uint64_t), &at[1]) &&
        vxd_layout_add(&total, 2 * n_slots, sizeof(uint32_t), &at[2]) &&
        vxd_layout_add(&total, 2 * n + 1, sizeof(uint32_t), &at[3]) &&
        vxd_layout_add(&total, 2 * n_pieces, sizeof(uint32_t), &at[4]) &&
        vxd_layout_add(&total, sum_bytes, 1, &at[5]) &&
        vxd_layout_add(&total, 3 * n, sizeof(float), &at[6]) &&
        vxd_layout_add(&total, 3 * n, sizeof(float), &at[7]) &&
        vxd_layout_add(&total, n, sizeof(struct vxd_odometry_kept), &at[8]) &&
        vxd_layout_add(&total, is_cuda ? 0 : n, sizeof(struct vxd_odometry_cell),
                       &at[9]) &&
        vxd_layout_add(&total, n_strips * VXD_ODOMETRY_N_SUMS, sizeof(float), &at[10]);
    char *memory;
    enum vxd_status status;

    if (!fits) { /* of at most VXD_ODOMETRY_MAX_SCAN_POINTS they do */
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "%zu points are too many", n);
    }
    VXD_TRY(vxd_device_alloc(queue, total, &run->scratch, err));
    memory = run->scratch.ptr;
    run->work = (void *)(memory + at[0]);
    for (size_t k = 0; k < 2; k++) {
        run->reduce.tables[k] = (struct vxd_odometry_table){
            (uint64_t *)(void *)(memory + at[1]) + k * n_slots,
            (uint32_t *)(void *)(memory + at[2]) + k * n_slots, n_slots};
    }
    run->reduce.slots = (void *)(memory + at[3]);
    run->reduce.pieces = (void *)(memory + at[4]);
    run->reduce.sum_scratch = memory + at[5];
    run->reduce.sum_scratch_bytes = sum_bytes;
    run->reduce.map_points = (void *)(memory + at[6]);
    run->reduce.registered_points = (void *)(memory + at[7]);
    run->reduce.work = run->work;
    run->align.kept = (void *)(memory + at[8]);
    run->align.cells = is_cuda ? NULL : (void *)(memory + at[9]);
    run->align.strips = (void *)(memory + at[10]);
    run->align.points = run->reduce.registered_points;
    run->align.capacity = n;
    run->align.work = run->work;
out:
    return status;
}

/* ---- Steps ---- */

static enum vxd_status choose_base(struct registration *run, struct vxd_err *err)
{
    double size = run->odometry->options.voxel_size_m;

    for (int i = 0; i < 3; i++) {
        double voxel = floor(run->predicted.translation[i] / size);

        if (!(fabs(voxel) <= MAX_BASE)) {
            return vxd_fail(err, VXD_OUT_OF_RANGE, "T_map_sensor",
                            "is %g m on axis %d, must be within %g m of the map's "
                            "origin for voxels of %g m",
                            run->predicted.translation[i], i, MAX_BASE * size, size);
        }
        run->base[i] = (int32_t)voxel;
        run->base_m[i] = voxel * size;
    }
    return VXD_OK;
}

static void init_grid(const struct registration *run, struct vxd_odometry_grid *grid)
{
    const struct vxd_odometry *odometry = run->odometry;
    float size = (float)odometry->options.voxel_size_m;

    *grid = (struct vxd_odometry_grid){.lookup = vxd_hash_lookup_of(odometry->map),
                                       .counts = vxd_hashmap_values(odometry->map, 0),
                                       .points = vxd_hashmap_values(odometry->map, 1),
                                       .base = {run->base[0], run->base[1], run->base[2]},
                                       .size = size,
                                       .inverse_size = 1 / size};
}

/* Fills in what the backends get. */
static void init_calls(struct registration *run)
{
    const struct vxd_odometry_options *options = &run->odometry->options;
    double threshold = vxd_odometry_motion_threshold(options, &run->odometry->motion);
    double size = options->voxel_size_m;
    float inlier = (float)options->inlier_m;

    run->begin = (struct vxd_odometry_work){
        .convergence2 = options->convergence * options->convergence,
        .max_step = options->max_range_m,
        .n_stages = options->method == VXD_ODOMETRY_POINT_TO_PLANE ? 2 : 1};
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
            run->begin.pose[4 * i + j] = run->predicted.rotation[3 * i + j];
        }
        run->begin.pose[4 * i + 3] = run->predicted.translation[i] - run->base_m[i];
    }
    for (int i = 0; i < 12; i++) {
        run->begin.T[i] = (float)run->begin.pose[i];
    }
    run->reduce.points = run->scan->points;
    run->reduce.n = run->scan->n_points;
    run->reduce.min2 = (float)(options->min_range_m * options->min_range_m);
    run->reduce.max2 = (float)(options->max_range_m * options->max_range_m);
    run->reduce.inverse_fine = (float)(1 / (FINE * size));
    run->reduce.inverse_coarse = (float)(1 / (COARSE * size));
    init_grid(run, &run->align.grid);
    run->align.rule = (struct vxd_odometry_rule){
        .method = options->method,
        .robust = options->robust,
        .thresholds = {(float)threshold, fminf((float)threshold, inlier)},
        .inlier2 = inlier * inlier};
    for (int i = 0; i < 2; i++) {
        float most = 3 * run->align.rule.thresholds[i];

        run->align.rule.max_d2[i] = most * most;
    }
}

/* Reads what the device found. */
static enum vxd_status read_work(struct vxd_queue *queue, struct registration *run,
                                 struct vxd_err *err)
{
    const void *read = NULL;
    enum vxd_status status;

    vxd_host_free(vxd_queue_context(queue), &run->host);
    VXD_TRY(vxd_download(queue, run->work, sizeof *run->work, &run->host, &read, err));
    VXD_TRY(vxd_queue_wait(queue, err));
    run->found = read;
out:
    return status;
}

/* The sums for the verdict at the pose as it is. */
static enum vxd_status queue_last(struct vxd_queue *queue, const struct registration *run,
                                  struct vxd_err *err)
{
    struct vxd_odometry_align_call last = run->align;

    last.rule.is_last = 1;
    /* Pairs are inliers or outliers up to a voxel, however small the threshold is. */
    last.rule.max_d2[0] = last.rule.max_d2[1] = last.grid.size * last.grid.size;
    last.is_begin = false;
    return VXD_BACKEND_FN(queue, vxd_odometry_align)(queue, &last, err);
}

static enum vxd_status align(struct vxd_queue *queue, struct registration *run,
                             struct vxd_err *err)
{
    bool is_cuda = vxd_context_backend(vxd_queue_context(queue)) == VXD_BACKEND_CUDA;
    int most = run->odometry->options.max_iterations;
    int n_queued = 0;
    enum vxd_status status;

    run->align.is_begin = true;
    do {
        run->align.n = most - n_queued;
        if (is_cuda && run->align.n > CUDA_STEPS) {
            run->align.n = CUDA_STEPS;
        }
        n_queued += run->align.n;
        VXD_TRY(VXD_BACKEND_FN(queue, vxd_odometry_align)(queue, &run->align, err));
        VXD_TRY(queue_last(queue, run, err));
        VXD_TRY(read_work(queue, run, err));
        run->align.is_begin = false;
    } while (run->found->is_done == 0 && run->found->is_singular == 0 && n_queued < most);
out:
    return status;
}

/* ---- The map's update ---- */

/* Removes what is beyond the range, where the sensor has moved enough since. */
static enum vxd_status remove_far(struct vxd_queue *queue, struct registration *run,
                                  const struct vxd_volume_pose *pose, struct vxd_err *err)
{
    struct vxd_odometry *odometry = run->odometry;
    double size = odometry->options.voxel_size_m;
    double range = odometry->options.max_range_m;
    struct vxd_odometry_far_call call = {.counts = vxd_hashmap_values(odometry->map, 0),
                                         .keys = vxd_hashmap_keys(odometry->map),
                                         .capacity = vxd_hashmap_capacity(odometry->map),
                                         .max_voxels2 = range / size * (range / size)};
    struct vxd_buffer scratch = {.space = VXD_SPACE_DEVICE};
    struct vxd_buffer host = {.space = VXD_SPACE_HOST};
    const void *read = NULL;
    size_t total = 0;
    size_t keys;
    size_t count;
    double moved2 = 0;
    enum vxd_status status = VXD_OK;

    for (int i = 0; i < 3; i++) {
        double d = pose->translation[i] - odometry->removed_at_m[i];

        moved2 += d * d;
        call.sensor[i] = pose->translation[i] / size;
    }
    if (moved2 < range / REMOVAL_PART * (range / REMOVAL_PART)) {
        return VXD_OK;
    }
    (void)vxd_layout_add(&total, 1, sizeof(uint32_t), &count);
    (void)vxd_layout_add(&total, 3 * call.capacity, sizeof(int32_t), &keys);
    VXD_TRY(vxd_device_alloc(queue, total, &scratch, err));
    call.n_far = (uint32_t *)(void *)((char *)scratch.ptr + count);
    call.far_keys = (int32_t *)(void *)((char *)scratch.ptr + keys);
    VXD_TRY(vxd_queue_fill(queue, call.n_far, 0, sizeof *call.n_far, err));
    VXD_TRY(VXD_BACKEND_FN(queue, vxd_odometry_far)(queue, &call, err));
    VXD_TRY(vxd_download(queue, call.n_far, sizeof *call.n_far, &host, &read, err));
    VXD_TRY(vxd_queue_wait(queue, err));
    if (*(const uint32_t *)read > 0) {
        VXD_TRY(vxd_hashmap_erase(queue, odometry->map, call.far_keys,
                                  *(const uint32_t *)read, VXD_HASH_ANY, NULL, err));
    }
    memcpy(odometry->removed_at_m, pose->translation, sizeof pose->translation);
out:
    vxd_device_free(queue, &scratch);
    vxd_host_free(vxd_queue_context(queue), &host);
    return status;
}

/* Capacity for n more voxels; less where there is a limit, as much as they need. */
static enum vxd_status prepare_map(struct vxd_queue *queue, struct vxd_hashmap *map,
                                   const int32_t *keys, size_t n, size_t *n_new,
                                   struct vxd_err *err)
{
    size_t bound = vxd_hashmap_size_bound(map);
    struct vxd_err ignored;

    if (bound + n > vxd_hashmap_capacity(map)) {
        (void)vxd_hashmap_reserve(queue, map, bound + 2 * n, &ignored);
    }
    return vxd_hashmap_prepare(queue, map, keys, n, n_new, err);
}

/* Adds the scan's points at the pose that was found. */
static enum vxd_status update_map(struct vxd_queue *queue, struct registration *run,
                                  const struct vxd_volume_pose *pose, struct vxd_err *err)
{
    struct vxd_odometry *odometry = run->odometry;
    size_t n = run->found->n_map;
    double spacing2 = odometry->options.voxel_size_m * odometry->options.voxel_size_m /
                      odometry->options.max_points;
    struct vxd_odometry_place_call place = {.points = run->reduce.map_points, .n = n};
    struct vxd_odometry_add_call add = {.n = n,
                                        .max_points =
                                            (uint32_t)odometry->options.max_points,
                                        .min_d2 = (float)spacing2};
    struct vxd_hashmap_insert_args insert = {.n = n, .order = VXD_HASH_ANY};
    size_t total = 0;
    size_t at[4];
    size_t heads;
    char *memory;
    enum vxd_status status;

    (void)(vxd_layout_add(&total, 3 * n, sizeof(int32_t), &at[0]) &&
           vxd_layout_add(&total, 3 * n, sizeof(float), &at[1]) &&
           vxd_layout_add(&total, n, sizeof(int32_t), &at[2]) &&
           vxd_layout_add(&total, n, sizeof(uint32_t), &at[3]));
    VXD_TRY(vxd_device_alloc(queue, total, &run->update, err));
    memory = run->update.ptr;
    place.keys = (void *)(memory + at[0]);
    add.locals = place.locals = (void *)(memory + at[1]);
    add.entries = insert.indices = (void *)(memory + at[2]);
    add.next = (void *)(memory + at[3]);
    place.grid = run->align.grid;
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
            place.T[4 * i + j] = (float)pose->rotation[3 * i + j];
        }
        place.T[4 * i + 3] = (float)(pose->translation[i] - run->base_m[i]);
    }
    VXD_TRY(VXD_BACKEND_FN(queue, vxd_odometry_place)(queue, &place, err));
    insert.keys = place.keys;
    VXD_TRY(prepare_map(queue, odometry->map, place.keys, n, &insert.max_new, err));
    heads = vxd_hashmap_capacity(odometry->map) * sizeof(uint32_t);
    vxd_device_free(queue, &run->scratch); /* nothing of it is needed any more */
    VXD_TRY(vxd_device_alloc(queue, heads, &run->scratch, err));
    add.head = run->scratch.ptr;
    VXD_TRY(vxd_queue_fill(queue, add.head, 0xff, heads, err));
    VXD_TRY(vxd_hashmap_insert(queue, odometry->map, &insert, err));
    add.counts = vxd_hashmap_values(odometry->map, 0);
    add.points = vxd_hashmap_values(odometry->map, 1);
    VXD_TRY(VXD_BACKEND_FN(queue, vxd_odometry_add)(queue, &add, err));
    VXD_TRY(remove_far(queue, run, pose, err));
    VXD_TRY(vxd_hashmap_size(queue, odometry->map, &odometry->n_voxels, err));
out:
    return status;
}

/* ---- One scan ---- */

static enum vxd_status check_scan(const struct vxd_odometry *odometry,
                                  const struct vxd_odometry_scan *scan,
                                  struct vxd_err *err)
{
    if (scan->n_points > VXD_ODOMETRY_MAX_SCAN_POINTS) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "n_points",
                        "is %zu, must be at most %zu", scan->n_points,
                        VXD_ODOMETRY_MAX_SCAN_POINTS);
    }
    if (scan->stamp_ns < 0 ||
        (scan->stamp_ns > 0 && scan->stamp_ns <= odometry->motion.stamp_ns)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "stamp_ns",
                        "is %" PRId64 ", must be after the last scan's, %" PRId64
                        ", or 0",
                        scan->stamp_ns, odometry->motion.stamp_ns);
    }
    return scan->has_prior ? vxd_volume_check_pose(&scan->prior, "prior", err) : VXD_OK;
}

/* Finds the pose. The map stays as it is. */
static enum vxd_status find_pose(struct vxd_queue *queue, struct registration *run,
                                 struct vxd_odometry_result *out, struct vxd_err *err)
{
    struct vxd_odometry *odometry = run->odometry;
    enum vxd_status status;

    out->reason = VXD_ODOMETRY_TOO_FEW_POINTS;
    out->is_first = odometry->n_voxels == 0;
    if (run->scan->n_points == 0) {
        return VXD_OK;
    }
    VXD_TRY(lay_out(queue, run, err));
    init_calls(run);
    VXD_TRY(vxd_queue_copy(queue, run->work, &run->begin, sizeof run->begin, err));
    VXD_TRY(VXD_BACKEND_FN(queue, vxd_odometry_scan)(queue, &run->reduce, err));
    if (out->is_first) {
        VXD_TRY(read_work(queue, run, err));
    } else {
        VXD_TRY(align(queue, run, err));
    }
    out->n_used = run->found->n_used;
    out->n_map = run->found->n_map;
    out->n_registered = run->found->n_registered;
    if (out->n_registered < VXD_ODOMETRY_MIN_POINTS) {
        return VXD_OK;
    }
    if (out->is_first) {
        out->status = VXD_ODOMETRY_OK;
        out->reason = VXD_ODOMETRY_FOUND;
    } else {
        vxd_odometry_judge(&odometry->options, run->found, run->base_m,
                           odometry->motion.n_lost_in_a_row, out);
    }
out:
    return status;
}

/* What the scan says of the motion. */
static void keep_motion(struct vxd_odometry *odometry,
                        const struct vxd_odometry_scan *scan,
                        struct vxd_odometry_result *out)
{
    struct vxd_odometry_motion *motion = &odometry->motion;

    if (out->status != VXD_ODOMETRY_OK) {
        vxd_odometry_motion_lose(&out->predicted, scan->stamp_ns, motion);
        odometry->n_lost++;
    } else if (out->is_first) {
        motion->last = motion->found = out->T_map_sensor;
        motion->stamp_ns = motion->found_stamp_ns = scan->stamp_ns;
        motion->n_lost_in_a_row = 0;
    } else {
        vxd_odometry_motion_accept(&odometry->options, &out->predicted,
                                   &out->T_map_sensor, scan->stamp_ns, motion);
    }
    odometry->n_scans++;
    out->n_lost = motion->n_lost_in_a_row;
}

enum vxd_status vxd_odometry_register(struct vxd_queue *queue,
                                      struct vxd_odometry *odometry,
                                      const struct vxd_odometry_scan *scan,
                                      struct vxd_odometry_result *out,
                                      struct vxd_err *err)
{
    struct registration run = {.odometry = odometry, .scan = scan};
    enum vxd_status status;

    run.scratch.space = run.update.space = VXD_SPACE_DEVICE;
    run.host.space = VXD_SPACE_HOST;
    VXD_TRY(check_scan(odometry, scan, err));
    if (scan->has_prior) {
        run.predicted = scan->prior;
    } else {
        vxd_odometry_motion_predict(&odometry->motion, scan->stamp_ns, &run.predicted);
    }
    *out = (struct vxd_odometry_result){.status = VXD_ODOMETRY_LOST,
                                        .T_map_sensor = run.predicted,
                                        .predicted = run.predicted,
                                        .threshold_m = vxd_odometry_motion_threshold(
                                            &odometry->options, &odometry->motion)};
    VXD_TRY(choose_base(&run, err));
    VXD_TRY(find_pose(queue, &run, out, err));
    if (out->status == VXD_ODOMETRY_OK) {
        VXD_TRY(update_map(queue, &run, &out->T_map_sensor, err));
    }
    keep_motion(odometry, scan, out);
out:
    vxd_device_free(queue, &run.update);
    vxd_device_free(queue, &run.scratch);
    vxd_host_free(vxd_queue_context(queue), &run.host);
    return status;
}
