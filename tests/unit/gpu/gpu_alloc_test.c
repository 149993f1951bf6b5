// SPDX-License-Identifier: Apache-2.0
/* Fails every allocation of the engine in turn; linked with --wrap, so that malloc,
 * calloc and posix_memalign of the engine are counted. AddressSanitizer reports leaks. */
#include "gpu/hash/hash.h"
#include "gpu/paper/paper.h"
#include "gpu/slac/slac.h"
#include "gpu/track/track.h"
#include "gpu/volume/scan/volume_scan.h"
#include "gpu/volume/volume.h"
#include "tests/support/failing_alloc.h"
#include "tests/support/gpu/gpu_helpers.h"
#include "tests/support/test.h"

/* Decodes and voxelizes a small cloud in a context of its own. */
static enum vxd_status use_engine(struct vxd_err *err)
{
    static const float records[8] = {0, 0, 0, 1, 1, 1, 1, 1};
    static const uint32_t starts[2] = {0, 2};
    struct vxd_context_options options = {.backend = VXD_BACKEND_CPU, .n_threads = 1};
    struct vxd_context *context = NULL;
    struct vxd_queue *queue = NULL;
    struct vxd_buffer data = {0};
    struct vxd_buffer positions = {0};
    struct vxd_buffer host = {0};
    struct vxd_cloud cloud = {.n_points = 2, .point_step = 16};
    struct vxd_voxelize_args args = {.n_points = 2,
                                     .batch_starts = starts,
                                     .n_batch = 1,
                                     .rule = VXD_RULE_MINKOWSKI,
                                     .size_m = {1, 1, 1}};
    struct vxd_voxels out = {.capacity = 2};
    enum vxd_status status;

    VXD_TRY(vxd_context_create(&options, &context, err));
    VXD_TRY(vxd_queue_create(context, &queue, err));
    VXD_TRY(vxd_host_alloc(context, 4096, &host, err));
    VXD_TRY(vxd_device_alloc(queue, sizeof records, &data, err));
    VXD_TRY(vxd_device_alloc(queue, 24, &positions, err));
    VXD_TRY(vxd_queue_copy(queue, data.ptr, records, sizeof records, err));
    VXD_TRY(vxd_queue_fill(queue, positions.ptr, 0, 24, err));
    cloud.data = data.ptr;
    for (uint32_t i = 0; i < 3; i++) {
        cloud.position[i] = (struct vxd_field){4 * i, VXD_FLOAT32, 1, 0};
        cloud.rotation[4 * i] = 1;
    }
    VXD_TRY(vxd_cloud_decode(queue, &cloud, positions.ptr, NULL, err));
    args.positions = positions.ptr;
    out.totals = host.ptr;
    out.starts = (uint32_t *)host.ptr + 512;
    VXD_TRY(vxd_voxelize(queue, &args, &out, err));
    VXD_TRY(vxd_queue_wait(queue, err));
    CHECK_INT(out.starts[1], 2);
out:
    if (queue != NULL) {
        vxd_device_free(queue, &data);
        vxd_device_free(queue, &positions);
    }
    if (context != NULL) {
        vxd_host_free(context, &host);
    }
    vxd_queue_destroy(queue);
    vxd_context_destroy(context);
    return status;
}

/* Inserts 5 keys, 4 of them distinct; whatever fails, the map has its old entries or
 * all of them. */
static enum vxd_status fill_map(struct vxd_queue *queue, struct vxd_hashmap *map,
                                struct vxd_err *err)
{
    static const int32_t keys[15] = {1, 2, 3, 4, 5, 6, 1, 2, 3, 7, 8, 9, 1 << 30, 0, 0};
    static const float rows[5] = {1, 2, 3, 4, 5};
    static const int32_t indices[5] = {0, 1, 0, 2, 3};
    const void *values[1] = {rows};
    struct vxd_hashmap_insert_args insert = {.keys = keys, .n = 5, .values = values};
    struct vxd_hashmap_update_args update = {.indices = indices,
                                             .n = 5,
                                             .rows = rows,
                                             .dtype = VXD_FLOAT32,
                                             .combine = VXD_COMBINE_ADD};
    int32_t found[5 * 27];
    enum vxd_status status;

    VXD_TRY(vxd_hashmap_prepare(queue, map, keys, 5, &insert.max_new, err));
    VXD_TRY(vxd_hashmap_insert(queue, map, &insert, err));
    VXD_TRY(vxd_hashmap_update(queue, map, &update, err));
    VXD_TRY(vxd_hashmap_neighbours(queue, map, keys, 5, VXD_NEIGHBOURS_27, found, err));
    VXD_TRY(vxd_hashmap_erase(queue, map, keys, 1, VXD_HASH_FIRST, NULL, err));
    VXD_TRY(vxd_hashmap_gather(queue, map, indices, 5, NULL, NULL, NULL, err));
    VXD_TRY(vxd_queue_wait(queue, err));
    CHECK_INT(found[13], 0);
    CHECK_INT(found[4 * 27 + 13], 3);
out:
    if (status != VXD_OK) {
        size_t n_entries = 99;

        (void)stop_failing();
        (void)vxd_queue_wait(queue, NULL);
        CHECK_INT(vxd_hashmap_size(queue, map, &n_entries, err), VXD_OK);
        CHECK(n_entries == 0 || n_entries == 4 || n_entries == 3);
        err->code = status;
    }
    return status;
}

/* Every operation on maps, in a context of its own. */
static enum vxd_status use_maps(enum vxd_hash_index index, struct vxd_err *err)
{
    struct vxd_context_options options = {
        .backend = VXD_BACKEND_CPU, .n_threads = 1, .extras = vxd_paper_stores()};
    struct vxd_hashmap_spec spec = {.key_dtype = VXD_INT32,
                                    .n_components = 3,
                                    .n_values = 1,
                                    .values = {{VXD_FLOAT32, 1}},
                                    .index = index,
                                    .capacity = 2};
    struct vxd_context *context = NULL;
    struct vxd_queue *queue = NULL;
    struct vxd_hashmap *maps[5] = {NULL};
    struct vxd_hashmap_stats stats;
    enum vxd_status status;

    VXD_TRY(vxd_context_create(&options, &context, err));
    VXD_TRY(vxd_queue_create(context, &queue, err));
    VXD_TRY(vxd_hashmap_create(queue, &spec, &maps[0], err));
    VXD_TRY(fill_map(queue, maps[0], err));
    VXD_TRY(vxd_hashmap_get_stats(queue, maps[0], &stats, err));
    CHECK_INT(stats.n_entries, 3);
    VXD_TRY(vxd_hashmap_copy(queue, maps[0], queue, index, &maps[1], err));
    VXD_TRY(vxd_hashmap_union(queue, maps[0], maps[1], &maps[2], err));
    VXD_TRY(vxd_hashmap_intersection(queue, maps[0], maps[1], &maps[3], err));
    VXD_TRY(vxd_hashmap_difference(queue, maps[0], maps[1], &maps[4], err));
    CHECK_INT(vxd_hashmap_capacity(maps[2]), 3);
    CHECK_INT(vxd_hashmap_capacity(maps[3]), 3);
    CHECK_INT(vxd_hashmap_capacity(maps[4]), 0);
    VXD_TRY(vxd_hashmap_clear(queue, maps[0], err));
    VXD_TRY(vxd_queue_wait(queue, err));
out:
    for (int i = 0; i < 5; i++) {
        vxd_hashmap_destroy(queue, maps[i]);
    }
    vxd_queue_destroy(queue);
    vxd_context_destroy(context);
    return status;
}

static enum vxd_status use_open_maps(struct vxd_err *err)
{
    return use_maps(VXD_HASH_OPEN, err);
}

static enum vxd_status use_other_maps(struct vxd_err *err)
{
    return use_maps(GPU_OTHER_INDEX, err);
}

/* The sum of all voxels' weights, on the CPU. */
static double weights_of(const struct vxd_volume *volume)
{
    struct vxd_volume_view view;
    double sum = 0;

    vxd_volume_get_view(volume, &view);
    for (size_t i = 0; i < (size_t)view.capacity * 512; i++) {
        sum += ((const float *)view.weights)[i];
    }
    return sum;
}

/* Clears a box that covers some blocks and parts of others: all of it, or nothing. */
static enum vxd_status clear_box(struct vxd_queue *queue, struct vxd_volume *volume,
                                 struct vxd_err *err)
{
    const struct vxd_volume_region box = {.low = {-1, -1, 0.5}, .high = {0.33, 1, 1.4}};
    struct vxd_volume_info before;
    struct vxd_volume_info after;
    double weights;
    size_t n = 0;
    enum vxd_status status;

    VXD_TRY(vxd_queue_wait(queue, err));
    weights = weights_of(volume);
    vxd_volume_get_info(volume, &before);
    status = vxd_volume_clear(queue, volume, &box, &n, err);
    (void)vxd_queue_wait(queue, NULL);
    vxd_volume_get_info(volume, &after);
    CHECK_INT(after.n_blocks, before.n_blocks - n);
    CHECK_INT(after.version, before.version + (status == VXD_OK ? 1 : 0));
    CHECK_INT(after.removed_version,
              status == VXD_OK ? after.version : before.removed_version);
    CHECK((weights_of(volume) < weights) == (status == VXD_OK));
    CHECK((n > 0) == (status == VXD_OK) && n < before.n_blocks);
out:
    return status;
}

/* Three points along their rays, then by range image, and a picture of the lidar. */
static enum vxd_status scan_volume(struct vxd_queue *queue, struct vxd_volume *volume,
                                   struct vxd_err *err)
{
    static const float points[9] = {1, 0.1f, 0, 1, 0.2f, 0.1f, 1, 0, 0.2f};
    float ranges[24];
    struct vxd_volume_scan scan = {
        .points = points,
        .n_points = 3,
        .time_column = -1,
        .normal_column = -1,
        .label_column = -1,
        .T_map_sensor = {.rotation = {1, 0, 0, 0, 1, 0, 0, 0, 1}},
        .lidar = {.rows = 3,
                  .columns = 8,
                  .top_deg = 10,
                  .bottom_deg = -10,
                  .azimuth_span_deg = 360},
        .range_max_m = 5,
        .carve_m = 3};
    struct vxd_volume_cast_args cast = {.lidar = &scan.lidar,
                                        .T_map_camera = scan.T_map_sensor,
                                        .depth_max_m = 3,
                                        .weight = ranges};
    struct vxd_volume_scan_result done;
    enum vxd_status status;

    VXD_TRY(vxd_volume_integrate_scan(queue, volume, &scan, &done, err));
    CHECK(done.n_used == 3 && done.n_new > 2);
    scan.method = VXD_LIDAR_RANGE_IMAGE;
    VXD_TRY(vxd_volume_integrate_scan(queue, volume, &scan, &done, err));
    CHECK(done.n_used == 3 && done.n_new == 0);
    VXD_TRY(vxd_volume_cast(queue, volume, &cast, err));
    status = vxd_queue_wait(queue, err);
out:
    return status;
}

/* Two depth images of 4 x 3 pixels, fused into a volume that grows, and what reads it. */
static enum vxd_status fill_volume(struct vxd_queue *queue, struct vxd_volume *volume,
                                   struct vxd_err *err)
{
    static const float depths[12] = {1, 1, 1, 1, 1, 1.5f, 1.5f, 1, 1, 1, 1, 1};
    float pictures[12];
    struct vxd_volume_frame frame = {
        .camera = {.width = 4, .height = 3, .fx = 4, .fy = 4, .cx = 1.5, .cy = 1},
        .T_map_camera = {.rotation = {1, 0, 0, 0, 1, 0, 0, 0, 1}},
        .depth = depths,
        .dtype = VXD_FLOAT32,
        .depth_max_m = 3};
    struct vxd_volume_cast_args cast = {.camera = frame.camera,
                                        .T_map_camera = frame.T_map_camera,
                                        .depth_max_m = 3,
                                        .depth = pictures};
    struct vxd_volume_region ball = {.is_ball = true, .centre = {0, 0, 1}, .radius = 0.3};
    struct vxd_volume_activation done;
    struct vxd_track_options options = {.n_levels = 1, .iterations = {1}};
    struct vxd_track_result tracked;
    int32_t entries[1000];
    size_t n = 0;
    enum vxd_status status;

    VXD_TRY(vxd_volume_integrate(queue, volume, &frame, &done, err));
    CHECK(done.n_new > 4 && done.n_new < 1000);
    frame.T_map_camera.translation[0] = 0.7;
    frame.carve_m = 2;
    VXD_TRY(vxd_volume_integrate(queue, volume, &frame, &done, err));
    VXD_TRY(scan_volume(queue, volume, err));
    VXD_TRY(vxd_volume_cast(queue, volume, &cast, err));
    VXD_TRY(vxd_volume_changed_since(queue, volume, 1, entries, &n, err));
    CHECK(n > 0);
    VXD_TRY(vxd_track(queue, volume, &frame, &options, &tracked, err));
    CHECK_INT(tracked.reason, VXD_TRACK_NO_DEPTH); /* too few pixels */
    VXD_TRY(clear_box(queue, volume, err));
    VXD_TRY(vxd_volume_clear(queue, volume, &ball, &n, err));
    CHECK(n > 0);
    VXD_TRY(vxd_queue_wait(queue, err));
out:
    if (status != VXD_OK) { /* the volume still works */
        (void)stop_failing();
        (void)vxd_queue_wait(queue, NULL);
        CHECK_INT(vxd_volume_integrate(queue, volume, &frame, &done, NULL), VXD_OK);
        CHECK_INT(vxd_queue_wait(queue, NULL), VXD_OK);
        CHECK(done.n_blocks > 4);
    }
    return status;
}

static enum vxd_status use_volume(struct vxd_err *err)
{
    struct vxd_context_options options = {.backend = VXD_BACKEND_CPU, .n_threads = 1};
    struct vxd_volume_spec spec = {
        .voxel_size_m = 0.02, .block_edge = 8, .truncation_m = 0.06, .capacity = 4};
    struct vxd_context *context = NULL;
    struct vxd_queue *queue = NULL;
    struct vxd_volume *volume = NULL;
    struct vxd_volume *copy = NULL;
    enum vxd_status status;

    VXD_TRY(vxd_context_create(&options, &context, err));
    VXD_TRY(vxd_queue_create(context, &queue, err));
    VXD_TRY(vxd_volume_create(queue, &spec, &volume, err));
    VXD_TRY(fill_volume(queue, volume, err));
    VXD_TRY(vxd_volume_copy(queue, volume, queue, &copy, err));
    VXD_TRY(vxd_queue_wait(queue, err));
out:
    if (queue != NULL) {
        vxd_volume_destroy(queue, copy);
        vxd_volume_destroy(queue, volume);
    }
    vxd_queue_destroy(queue);
    vxd_context_destroy(context);
    return status;
}

/* A flat image of 4 x 3 pixels at a place. */
static enum vxd_status see(struct vxd_queue *queue, struct vxd_volume *volume, double x,
                           struct vxd_err *err)
{
    static const float depths[12] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    const struct vxd_volume_frame frame = {
        .camera = {.width = 4, .height = 3, .fx = 4, .fy = 4, .cx = 1.5, .cy = 1},
        .T_map_camera = {.rotation = {1, 0, 0, 0, 1, 0, 0, 0, 1}, .translation = {x}},
        .depth = depths,
        .dtype = VXD_FLOAT32,
        .depth_max_m = 3};
    struct vxd_volume_activation done;
    enum vxd_status status;

    VXD_TRY(vxd_volume_integrate(queue, volume, &frame, &done, err));
    status = vxd_queue_wait(queue, err);
out:
    return status;
}

/* Brings all blocks of a volume into an empty one. */
static enum vxd_status bring_over(struct vxd_queue *queue, const struct vxd_volume *from,
                                  struct vxd_volume *to, struct vxd_err *err)
{
    struct vxd_volume_blocks blocks = {0};
    int32_t *entries = NULL;
    size_t n = 0;
    enum vxd_status status;

    VXD_TRY(vxd_volume_list_changed(queue, from, 0, &entries, &n, err));
    VXD_TRY(vxd_volume_read_blocks(queue, from, entries, n, true, &blocks, err));
    VXD_TRY(vxd_volume_write_blocks(queue, to, &blocks, 5, 0, err));
    VXD_TRY(vxd_volume_keep_only(queue, to, blocks.keys, n / 2, err));
out:
    vxd_volume_blocks_free(queue, &blocks);
    free(entries);
    return status;
}

/* Decays a volume, and has it forget what is farthest once it may not grow. */
static enum vxd_status decay_and_forget(struct vxd_queue *queue,
                                        struct vxd_volume *volume, struct vxd_err *err)
{
    const struct vxd_volume_decay decay = {
        .region = {.is_ball = true, .centre = {0, 0, 1}, .radius = 0.3},
        .factor = 0.5,
        .min_weight = 0.6};
    const double point[3] = {0, 0, 0};
    struct vxd_err refused = {0};
    int32_t *keys = NULL;
    size_t n = 0;
    enum vxd_status status;

    VXD_TRY(vxd_volume_decay(queue, volume, &decay, &n, err));
    CHECK(n > 0);
    vxd_hashmap_set_max_bytes(vxd_volume_map(volume), 1);
    for (int i = 1; i < 40 && refused.code == VXD_OK; i++) {
        (void)see(queue, volume, 0.5 * i, &refused);
    }
    status = vxd_volume_forget_farthest(queue, volume, point, &keys, &n, err);
    free(keys);
out:
    return status;
}

static enum vxd_status keep_volume(struct vxd_err *err)
{
    struct vxd_context_options options = {.backend = VXD_BACKEND_CPU, .n_threads = 1};
    struct vxd_volume_spec spec = {
        .voxel_size_m = 0.02, .block_edge = 8, .truncation_m = 0.06, .capacity = 4};
    struct vxd_context *context = NULL;
    struct vxd_queue *queue = NULL;
    struct vxd_volume *volume = NULL;
    struct vxd_volume *other = NULL;
    enum vxd_status status;

    VXD_TRY(vxd_context_create(&options, &context, err));
    VXD_TRY(vxd_queue_create(context, &queue, err));
    VXD_TRY(vxd_volume_create(queue, &spec, &volume, err));
    VXD_TRY(vxd_volume_create(queue, &spec, &other, err));
    VXD_TRY(see(queue, volume, 0, err));
    VXD_TRY(bring_over(queue, volume, other, err));
    VXD_TRY(decay_and_forget(queue, volume, err));
out:
    if (queue != NULL) {
        vxd_volume_destroy(queue, other);
        vxd_volume_destroy(queue, volume);
    }
    vxd_queue_destroy(queue);
    vxd_context_destroy(context);
    return status;
}

static void fail_each(enum vxd_status (*use)(struct vxd_err *err))
{
    int k = 0;
    enum vxd_status status;

    do {
        struct vxd_err err = {0};

        fail_allocation(k++);
        status = use(&err);
        (void)stop_failing();
        CHECK(status == VXD_OK || status == VXD_RESOURCE_EXHAUSTED);
        CHECK(status == VXD_OK || err.code == status);
    } while (status != VXD_OK && k < 1000);
    CHECK(k > 15); /* the engine does allocate through the wrappers */
    CHECK_INT(status, VXD_OK);
}

/* Points of a corner of three walls, and their normals. */
static void make_corner(float points[48][3], float normals[48][3])
{
    for (int i = 0; i < 48; i++) {
        int wall = i / 16;

        for (int a = 0; a < 3; a++) {
            normals[i][a] = a == wall ? 1 : 0;
        }
        points[i][wall] = 0;
        points[i][(wall + 1) % 3] = 0.1f * (float)(i % 4 + 1);
        points[i][(wall + 2) % 3] = 0.1f * (float)(i / 4 % 4 + 1);
    }
}

/* Moves points and a volume by the grid of an alignment. */
static enum vxd_status deform(struct vxd_queue *queue, const struct vxd_slac *slac,
                              float points[48][3], struct vxd_err *err)
{
    const struct vxd_deform_lattice lattice = {.cell_m = 0.375};
    const struct vxd_deform_pose none = {{1, 0, 0, 0, 1, 0, 0, 0, 1}, {0, 0, 0}};
    const struct vxd_volume_spec spec = {
        .voxel_size_m = 0.1, .block_edge = 8, .truncation_m = 0.3};
    struct vxd_deform_apply_args args = {.points = points[0],
                                         .n = 48,
                                         .T_grid_in = none,
                                         .T_out_grid = none,
                                         .out_points = points[0]};
    struct vxd_deform *grid = NULL;
    struct vxd_volume *volume = NULL;
    struct vxd_volume *moved = NULL;
    enum vxd_status status;

    VXD_TRY(vxd_deform_create(queue, vxd_slac_grid(slac), VXD_SLAC_OFFSETS, &lattice,
                              &grid, err));
    VXD_TRY(vxd_deform_apply(queue, grid, &args, err));
    VXD_TRY(vxd_queue_wait(queue, err));
    VXD_TRY(vxd_volume_create(queue, &spec, &volume, err));
    VXD_TRY(see(queue, volume, 0, err));
    VXD_TRY(vxd_slac_deform_volume(queue, volume, grid, &moved, err));
out:
    vxd_volume_destroy(queue, moved);
    vxd_volume_destroy(queue, volume);
    vxd_deform_destroy(queue, grid);
    return status;
}

static enum vxd_status use_slac(struct vxd_err *err)
{
    static float points[48][3];
    static float normals[48][3];
    struct vxd_slac_fragment fragments[2] = {
        {.name = "a",
         .points = points[0],
         .normals = normals[0],
         .n = 48,
         .T_map_fragment = {{1, 0, 0, 0, 1, 0, 0, 0, 1}, {0, 0, 0}}}};
    const struct vxd_slac_args args = {
        .fragments = fragments, .n_fragments = 2, .options = {.solver_steps = 3}};
    struct vxd_context_options options = {.backend = VXD_BACKEND_CPU, .n_threads = 1};
    struct vxd_context *context = NULL;
    struct vxd_queue *queue = NULL;
    struct vxd_slac *slac = NULL;
    struct vxd_slac_loss loss;
    struct vxd_volume_pose poses[2];
    enum vxd_status status;

    make_corner(points, normals);
    fragments[1] = fragments[0];
    fragments[1].T_map_fragment.translation[0] = 0.02;
    VXD_TRY(vxd_context_create(&options, &context, err));
    VXD_TRY(vxd_queue_create(context, &queue, err));
    VXD_TRY(vxd_slac_create(queue, &args, &slac, err));
    VXD_TRY(vxd_slac_step(queue, slac, &loss, err));
    CHECK_INT(loss.n_pairs, 48);
    VXD_TRY(vxd_slac_find_pairs(queue, slac, &loss, err));
    VXD_TRY(vxd_slac_read_poses(queue, slac, poses, err));
    CHECK(poses[1].translation[0] < 0.015);
    VXD_TRY(deform(queue, slac, points, err));
out:
    if (queue != NULL) {
        (void)vxd_queue_wait(queue, NULL);
        vxd_slac_destroy(queue, slac);
    }
    vxd_queue_destroy(queue);
    vxd_context_destroy(context);
    return status;
}

static void test_every_allocation_failing_in_turn_is_answered(void)
{
    fail_each(use_engine);
}

static void test_every_allocation_of_maps_failing_in_turn_is_answered(void)
{
    fail_each(use_open_maps);
    fail_each(use_other_maps);
}

static void test_every_allocation_of_volumes_failing_in_turn_is_answered(void)
{
    fail_each(use_volume);
    fail_each(keep_volume);
}

static void test_every_allocation_of_alignments_failing_in_turn_is_answered(void)
{
    fail_each(use_slac);
}

/* Budgets may exceed the machine's memory: kept blocks are freed before a request is
 * refused. */
static void test_machine_without_memory_gets_kept_blocks_back(void)
{
    struct vxd_context_options options = {.backend = VXD_BACKEND_CPU, .n_threads = 1};
    struct vxd_context *context = NULL;
    struct vxd_buffer small = {0};
    struct vxd_buffer large = {0};
    struct vxd_err err = {0};

    REQUIRE(vxd_context_create(&options, &context, &err) == VXD_OK);
    CHECK_INT(vxd_host_alloc(context, 100000, &small, &err), VXD_OK);
    vxd_host_free(context, &small); /* kept */
    fail_allocation(1);             /* the record is allocated, the memory is not */
    CHECK_INT(vxd_host_alloc(context, 200000, &large, &err), VXD_OK);
    CHECK(stop_failing());
    vxd_host_free(context, &large);
    CHECK_INT(vxd_host_alloc(context, 200000, &large, &err), VXD_OK); /* kept again */
    fail_allocation(1); /* no block is kept any more, so the request is refused */
    CHECK_INT(vxd_host_alloc(context, 100000, &small, &err), VXD_RESOURCE_EXHAUSTED);
    (void)stop_failing();
    CHECK(small.ptr == NULL && small.n_bytes == 0);
    vxd_host_free(context, &large);
    vxd_context_destroy(context);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_every_allocation_failing_in_turn_is_answered),
    VXD_TEST(test_every_allocation_of_maps_failing_in_turn_is_answered),
    VXD_TEST(test_every_allocation_of_volumes_failing_in_turn_is_answered),
    VXD_TEST(test_every_allocation_of_alignments_failing_in_turn_is_answered),
    VXD_TEST(test_machine_without_memory_gets_kept_blocks_back),
};

VXD_TEST_MAIN(tests)
