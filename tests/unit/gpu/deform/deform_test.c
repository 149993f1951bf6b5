// SPDX-License-Identifier: Apache-2.0
/* Control grids against sums over eight corners in double, their inverse and derivative against
 * differences; volumes that integrate and move through them, voxel by voxel; equal bits everywhere. */
#include "gpu/deform/deform.h"
#include "gpu/deform/deform_math.h"
#include "gpu/slac/slac.h"
#include "tests/support/gpu/gpu_helpers.h"
#include "tests/support/test.h"
#include "tests/support/track/track_scene.h"

#include <math.h>

#define SIDE 18 /* control points on each axis, around 0 */
#define CELL 0.25
#define N_POINTS 5000
#define VOXEL 0.03
#define WIDTH 96
#define HEIGHT 72

static const struct vxd_deform_pose identity = {{1, 0, 0, 0, 1, 0, 0, 0, 1}, {0, 0, 0}};

/* The offset of a control point: smooth, up to 3 cm. */
static void offset_at(const int32_t key[3], float out[3])
{
    double x = key[0] * CELL;
    double y = key[1] * CELL;
    double z = key[2] * CELL;

    out[0] = (float)(0.03 * sin(2 * y + z));
    out[1] = (float)(0.02 * cos(1.5 * z - x));
    out[2] = (float)(0.03 * sin(2 * x + 0.5) * cos(y));
}

/* Whether a control point is left out, where holes are wished. */
static bool is_hole(const int32_t key[3], bool has_holes)
{
    return has_holes && (key[0] * 7 + key[1] * 3 + key[2] * 5) % 4 == 0;
}

static struct vxd_hashmap *make_map(struct gpu_env *env, bool has_holes)
{
    const struct vxd_hashmap_spec spec = {.key_dtype = VXD_INT32,
                                          .n_components = 3,
                                          .n_values = 1,
                                          .values = {{VXD_FLOAT32, 3}}};
    int32_t *keys = gpu_alloc((size_t)SIDE * SIDE * SIDE * 12);
    float *offsets = gpu_alloc((size_t)SIDE * SIDE * SIDE * 12);
    struct vxd_hashmap *map = NULL;
    struct vxd_err err = {0};
    size_t n = 0;

    for (int i = 0; i < SIDE * SIDE * SIDE; i++) {
        const int32_t key[3] = {i / SIDE / SIDE - SIDE / 2, i / SIDE % SIDE - SIDE / 2,
                                i % SIDE - SIDE / 2};

        if (!is_hole(key, has_holes)) {
            memcpy(keys + 3 * n, key, sizeof key);
            offset_at(key, offsets + 3 * n);
            n++;
        }
    }
    {
        struct vxd_buffer d_keys = gpu_to_device(env, keys, n * 12);
        struct vxd_buffer d_offsets = gpu_to_device(env, offsets, n * 12);
        const void *values[1] = {d_offsets.ptr};
        struct vxd_hashmap_insert_args args = {
            .keys = d_keys.ptr, .n = n, .values = values, .max_new = n};

        CHECK_INT(vxd_hashmap_create(env->queue, &spec, &map, &err), VXD_OK);
        CHECK_INT(vxd_hashmap_reserve(env->queue, map, n, &err), VXD_OK);
        CHECK_INT(vxd_hashmap_insert(env->queue, map, &args, &err), VXD_OK);
        gpu_wait(env);
        vxd_device_free(env->queue, &d_keys);
        vxd_device_free(env->queue, &d_offsets);
    }
    free(keys);
    free(offsets);
    return map;
}

static struct vxd_deform *make_grid(struct gpu_env *env, bool has_holes)
{
    const struct vxd_deform_lattice lattice = {.cell_m = CELL};
    struct vxd_hashmap *map = make_map(env, has_holes);
    struct vxd_deform *deform = NULL;
    struct vxd_err err = {0};

    CHECK_INT(vxd_deform_create(env->queue, map, 0, &lattice, &deform, &err), VXD_OK);
    CHECK_STR(err.message, "");
    vxd_hashmap_destroy(env->queue, map);
    return deform;
}

/* C(p) by the definition; false where no corner is known. */
static bool expected_point(const double p[3], bool has_holes, double out[3])
{
    double total = 0;
    double sum[3] = {0};

    for (int k = 0; k < 8; k++) {
        double weight = 1;
        int32_t key[3];
        float offset[3];
        bool is_known = true;

        for (int a = 0; a < 3; a++) {
            double at = p[a] / CELL;
            int bit = k >> a & 1;

            key[a] = (int32_t)floor(at) + bit;
            weight *= bit != 0 ? at - floor(at) : 1 - (at - floor(at));
            is_known = is_known && key[a] >= -SIDE / 2 && key[a] < SIDE - SIDE / 2;
        }
        if (is_known && !is_hole(key, has_holes)) {
            offset_at(key, offset);
            total += weight;
            for (int a = 0; a < 3; a++) {
                sum[a] += weight * (double)offset[a];
            }
        }
    }
    for (int a = 0; a < 3; a++) {
        out[a] = p[a] + (total > 0 ? sum[a] / total : 0);
    }
    return total > 0;
}

static float *random_points(uint64_t seed, float extent, size_t n)
{
    float *points = gpu_alloc(n * 12);

    for (size_t i = 0; i < 3 * n; i++) {
        points[i] = gpu_random_float(&seed, -extent, extent);
    }
    return points;
}

static float *apply(struct gpu_env *env, const struct vxd_deform *deform,
                    const float *points, const float *normals, bool is_inverse,
                    float **out_normals, uint8_t **inside)
{
    struct vxd_buffer in = gpu_to_device(env, points, N_POINTS * 12);
    struct vxd_buffer n_in = gpu_to_device(env, normals, N_POINTS * 12);
    struct vxd_buffer is_inside = gpu_to_device(env, NULL, N_POINTS);
    struct vxd_deform_apply_args args = {.points = in.ptr,
                                         .normals = normals != NULL ? n_in.ptr : NULL,
                                         .n = N_POINTS,
                                         .T_grid_in = identity,
                                         .T_out_grid = identity,
                                         .is_inverse = is_inverse,
                                         .out_points = in.ptr,
                                         .out_normals = normals != NULL ? n_in.ptr : NULL,
                                         .is_inside = is_inside.ptr};
    struct vxd_err err = {0};
    float *out;

    CHECK_INT(vxd_deform_apply(env->queue, deform, &args, &err), VXD_OK);
    out = gpu_to_host(env, &in);
    if (out_normals != NULL) {
        *out_normals = gpu_to_host(env, &n_in);
    }
    *inside = gpu_to_host(env, &is_inside);
    vxd_device_free(env->queue, &in);
    vxd_device_free(env->queue, &n_in);
    vxd_device_free(env->queue, &is_inside);
    return out;
}

static void check_points(struct gpu_env *env, bool has_holes)
{
    struct vxd_deform *deform = make_grid(env, has_holes);
    float *points = random_points(7, 2.6f, N_POINTS); /* some beyond the grid */
    uint8_t *inside;
    float *moved = apply(env, deform, points, NULL, false, NULL, &inside);
    uint8_t *back_inside;
    float *back = apply(env, deform, moved, NULL, true, NULL, &back_inside);
    size_t n_inside = 0;

    for (size_t i = 0; i < N_POINTS; i++) {
        const double p[3] = {(double)points[3 * i], (double)points[3 * i + 1],
                             (double)points[3 * i + 2]};
        double expected[3];
        bool is_inside = expected_point(p, has_holes, expected);
        bool is_deep = fabs(p[0]) < 2 && fabs(p[1]) < 2 && fabs(p[2]) < 2;

        CHECK_INT(inside[i], is_inside);
        n_inside += inside[i];
        for (size_t a = 0; a < 3; a++) {
            CHECK(fabs((double)moved[3 * i + a] - expected[a]) < 4e-7);
            CHECK(has_holes || !is_deep ||
                  fabsf(back[3 * i + a] - points[3 * i + a]) < 1e-6f);
        }
    }
    CHECK(n_inside > N_POINTS / 3 && n_inside < N_POINTS);
    free(points);
    free(moved);
    free(back);
    free(inside);
    free(back_inside);
    vxd_deform_destroy(env->queue, deform);
}

static void points_are_interpolated(struct gpu_env *env)
{
    check_points(env, false);
    check_points(env, true);
}

static void test_points_move_by_the_weights_of_known_corners_and_come_back(void)
{
    gpu_each_backend(points_are_interpolated);
}

/* Normals against the cross product of two tangents that move. */
static void normals_are_those_of_the_surface(struct gpu_env *env)
{
    struct vxd_deform *deform = make_grid(env, false);
    float *points = random_points(9, 1.9f, N_POINTS);
    float *normals = random_points(11, 1, N_POINTS);
    float *moved_normals;
    uint8_t *inside;
    float *moved;
    size_t n_bad = 0;

    for (size_t i = 0; i < N_POINTS; i++) {
        float *n = normals + 3 * i;
        float length = sqrtf(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]);

        for (int a = 0; a < 3; a++) {
            n[a] /= length;
        }
    }
    moved = apply(env, deform, points, normals, false, &moved_normals, &inside);
    for (size_t i = 0; i < N_POINTS; i++) {
        const float *n = normals + 3 * i;
        double tangents[2][3];
        double images[2][3];
        double cross[3];
        double length = 0;
        double along = 0;
        int least = fabsf(n[0]) < fabsf(n[1]) ? 0 : 1;

        for (int a = 0; a < 3; a++) { /* e - n (n . e), and n x it */
            tangents[0][a] = (a == least ? 1 : 0) - (double)n[a] * (double)n[least];
        }
        for (int a = 0; a < 3; a++) {
            int b = (a + 1) % 3;
            int c = (a + 2) % 3;

            tangents[1][a] =
                (double)n[b] * tangents[0][c] - (double)n[c] * tangents[0][b];
        }
        for (int k = 0; k < 2; k++) {
            double high[3];
            double low[3];
            double p[3];

            for (int a = 0; a < 3; a++) {
                p[a] = (double)points[3 * i + (size_t)a] + 1e-5 * tangents[k][a];
            }
            (void)expected_point(p, false, high);
            for (int a = 0; a < 3; a++) {
                p[a] = (double)points[3 * i + (size_t)a] - 1e-5 * tangents[k][a];
            }
            (void)expected_point(p, false, low);
            for (int a = 0; a < 3; a++) {
                images[k][a] = high[a] - low[a];
            }
        }
        for (int a = 0; a < 3; a++) {
            int b = (a + 1) % 3;
            int c = (a + 2) % 3;

            cross[a] = images[0][b] * images[1][c] - images[0][c] * images[1][b];
            length += cross[a] * cross[a];
        }
        for (int a = 0; a < 3; a++) {
            along += cross[a] / sqrt(length) * (double)moved_normals[3 * i + (size_t)a];
        }
        n_bad += along < 1 - 1e-6 ? 1 : 0; /* but where a tangent leaves the cell */
    }
    CHECK(n_bad < 10);
    free(points);
    free(normals);
    free(moved);
    free(moved_normals);
    free(inside);
    vxd_deform_destroy(env->queue, deform);
}

static void test_normals_move_as_those_of_a_surface(void)
{
    gpu_each_backend(normals_are_those_of_the_surface);
}

/* ---- Volumes ---- */

static struct vxd_volume *new_volume(struct gpu_env *env, bool is_rich)
{
    const struct vxd_volume_spec spec = {.voxel_size_m = VOXEL,
                                         .block_edge = is_rich ? 16 : 8,
                                         .truncation_m = 4 * VOXEL,
                                         .origin_m = {0.5, -0.25, 1},
                                         .form = is_rich ? VXD_VOLUME_COMPACT
                                                         : VXD_VOLUME_FULL,
                                         .has_colour = is_rich};
    struct vxd_volume *volume = NULL;
    struct vxd_err err = {0};

    CHECK_INT(vxd_volume_create(env->queue, &spec, &volume, &err), VXD_OK);
    return volume;
}

/* An image of the room through a grid in the camera's frame. */
static void integrate(struct gpu_env *env, struct vxd_volume *volume,
                      const struct vxd_deform *deform, struct track_shot *shot)
{
    const struct vxd_volume_camera camera = track_camera(WIDTH, HEIGHT);
    const struct vxd_volume_pose pose = track_pose(0.1, 0, -0.4, 20, 5, 7);
    struct vxd_volume_activation activation;
    struct vxd_volume_frame frame;
    struct vxd_buffer depth;
    struct vxd_buffer colour;
    struct vxd_err err = {0};

    track_shoot(TRACK_ROOM, &camera, &pose, 0, 1, shot);
    depth = gpu_to_device(env, shot->depth, (size_t)WIDTH * HEIGHT * 4);
    colour = gpu_to_device(env, shot->colour, (size_t)WIDTH * HEIGHT * 3);
    frame = shot->frame;
    frame.depth = depth.ptr;
    frame.colour = colour.ptr;
    frame.deform = deform;
    frame.T_grid_camera = track_pose(0.2, -0.1, 0.1, 10, 3, 0);
    CHECK_INT(vxd_volume_integrate(env->queue, volume, &frame, &activation, &err),
              VXD_OK);
    CHECK_STR(err.message, "");
    gpu_wait(env);
    vxd_device_free(env->queue, &depth);
    vxd_device_free(env->queue, &colour);
}

static uint64_t digest_of(struct gpu_env *env, struct vxd_volume *volume)
{
    struct vxd_volume_layer layers[VXD_VOLUME_MAX_LAYERS];
    struct vxd_volume_blocks blocks = {0};
    struct vxd_err err = {0};
    uint64_t digest = GPU_FNV_START;
    int n_layers = vxd_volume_get_layers(volume, layers);
    int32_t *entries = NULL;
    size_t n = 0;

    CHECK_INT(vxd_volume_list_changed(env->queue, volume, 0, &entries, &n, &err), VXD_OK);
    CHECK(n > 20);
    CHECK_INT(vxd_volume_read_blocks(env->queue, volume, entries, n, true, &blocks, &err),
              VXD_OK);
    digest = gpu_digest(digest, blocks.keys, n * 12);
    for (int i = 0; i < n_layers; i++) {
        digest = gpu_digest(digest, blocks.layers[i],
                            n * layers[i].n_elements * vxd_dtype_bytes(layers[i].dtype));
    }
    vxd_volume_blocks_free(env->queue, &blocks);
    free(entries);
    return digest;
}

static uint64_t first_digest;

static void volumes_have_the_same_bits(struct gpu_env *env)
{
    struct vxd_deform *deform = make_grid(env, false);
    uint64_t digest = 0;

    for (int rich = 0; rich < 2; rich++) {
        struct vxd_volume *volume = new_volume(env, rich == 1);
        struct vxd_volume *moved = NULL;
        struct vxd_err err = {0};
        struct track_shot shot;

        integrate(env, volume, deform, &shot);
        digest ^= digest_of(env, volume);
        CHECK_INT(vxd_slac_deform_volume(env->queue, volume, deform, &moved, &err),
                  VXD_OK);
        digest = digest * 31 + digest_of(env, moved);
        track_shot_free(&shot);
        vxd_volume_destroy(env->queue, moved);
        vxd_volume_destroy(env->queue, volume);
    }
    if (first_digest == 0) {
        first_digest = digest;
    }
    CHECK(digest == first_digest);
    vxd_deform_destroy(env->queue, deform);
}

static void test_deformed_volumes_have_the_same_bits_everywhere(void)
{
    first_digest = 0;
    gpu_each_backend(volumes_have_the_same_bits);
}

static void move(const struct vxd_volume_pose *pose, const double p[3], bool is_back,
                 double out[3])
{
    for (int a = 0; a < 3; a++) {
        out[a] = is_back ? 0 : pose->translation[a];
        for (int b = 0; b < 3; b++) {
            out[a] += is_back ? pose->rotation[3 * b + a] * (p[b] - pose->translation[b])
                              : pose->rotation[3 * a + b] * p[b];
        }
    }
}

/* What a voxel observes, each one moved back by itself, in double: equation 9 with C^-1. */
static double observed(const struct track_shot *shot, const double map[3], bool *is_seen)
{
    const struct vxd_volume_camera *camera = &shot->frame.camera;
    const struct vxd_volume_pose T_grid_camera = track_pose(0.2, -0.1, 0.1, 10, 3, 0);
    double p[3];
    double at[3];
    double y[3];
    double u;
    double v;
    double depth;

    move(&shot->frame.T_map_camera, map, true, p);
    move(&T_grid_camera, p, false, y);
    memcpy(at, y, sizeof at);
    for (int i = 0; i < 50; i++) {
        double image[3];

        (void)expected_point(at, false, image);
        for (int a = 0; a < 3; a++) {
            at[a] += y[a] - image[a];
        }
    }
    move(&T_grid_camera, at, true, p);
    u = camera->fx * p[0] / p[2] + camera->cx;
    v = camera->fy * p[1] / p[2] + camera->cy;
    *is_seen = p[2] > 0 && u >= -0.5 && v >= -0.5 && u < camera->width - 0.5 &&
               v < camera->height - 0.5;
    if (!*is_seen) {
        return 0;
    }
    depth =
        (double)shot->depth[(int)floor(v + 0.5) * camera->width + (int)floor(u + 0.5)];
    *is_seen = depth > shot->frame.depth_min_m && depth < shot->frame.depth_max_m;
    return (depth - p[2]) / (4 * VOXEL);
}

/* Blocks are small beside cells: distances of voxels are within some tenths of a millimetre of those of
 * voxels that are moved back one by one, but for those whose pixel is another one. */
static void test_integrated_distances_are_those_of_voxels_moved_back_one_by_one(void)
{
    struct gpu_env env;
    struct vxd_deform *deform;
    struct vxd_volume *volume;
    struct track_shot shot;
    struct vxd_volume_blocks blocks = {0};
    struct vxd_err err = {0};
    int32_t *entries = NULL;
    size_t n = 0;
    size_t n_seen = 0;
    size_t n_far = 0;
    double squares = 0;

    gpu_env_create(&env, VXD_BACKEND_CPU, 2, 0, 0);
    deform = make_grid(&env, false);
    volume = new_volume(&env, false);
    integrate(&env, volume, deform, &shot);
    CHECK_INT(vxd_volume_list_changed(env.queue, volume, 0, &entries, &n, &err), VXD_OK);
    CHECK_INT(vxd_volume_read_blocks(env.queue, volume, entries, n, true, &blocks, &err),
              VXD_OK);
    for (size_t i = 0; i < n * 512; i += 3) {
        static const double origin[3] = {0.5, -0.25, 1};
        double weight = (double)((const float *)blocks.layers[1])[i];
        double found = (double)((const float *)blocks.layers[0])[i];
        const int32_t at[3] = {(int32_t)(i % 8), (int32_t)(i / 8 % 8),
                               (int32_t)(i / 64 % 8)};
        double map[3];
        double expected;
        bool is_seen;

        for (size_t a = 0; a < 3; a++) {
            map[a] =
                origin[a] + (blocks.keys[3 * (i / 512) + a] * 8 + at[a] + 0.5) * VOXEL;
        }
        expected = observed(&shot, map, &is_seen);
        if (weight > 0 && is_seen && expected >= -1 && expected < 1) {
            double error = fabs(found - expected) * 4 * VOXEL;

            n_seen++;
            n_far += error > 0.002 ? 1 : 0;
            squares += error > 0.002 ? 0 : error * error;
        }
    }
    (void)printf("%zu voxels, %.3f mm rms, %zu of another pixel\n", n_seen,
                 1e3 * sqrt(squares / (double)n_seen), n_far);
    CHECK(n_seen > 10000);
    CHECK(n_far < n_seen / 10); /* pixels are as wide as voxels */
    CHECK(sqrt(squares / (double)n_seen) < 0.0003);
    vxd_volume_blocks_free(env.queue, &blocks);
    free(entries);
    track_shot_free(&shot);
    vxd_volume_destroy(env.queue, volume);
    vxd_deform_destroy(env.queue, deform);
    gpu_env_destroy(&env);
}

/* ---- What is refused ---- */

static void test_what_is_no_grid_is_refused(void)
{
    const struct vxd_hashmap_spec other = {.key_dtype = VXD_INT32,
                                           .n_components = 2,
                                           .n_values = 1,
                                           .values = {{VXD_FLOAT32, 3}}};
    struct vxd_deform_lattice lattice = {.cell_m = CELL};
    struct vxd_deform *deform = NULL;
    struct vxd_hashmap *map;
    struct vxd_err err = {0};
    struct gpu_env env;
    float *offsets;

    gpu_env_create(&env, VXD_BACKEND_CPU, 1, 0, 0);
    CHECK_INT(vxd_hashmap_create(env.queue, &other, &map, &err), VXD_OK);
    CHECK_INT(vxd_deform_create(env.queue, map, 0, &lattice, &deform, &err),
              VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "map");
    vxd_hashmap_destroy(env.queue, map);
    map = make_map(&env, false);
    CHECK_INT(vxd_deform_create(env.queue, map, 1, &lattice, &deform, &err),
              VXD_INVALID_ARGUMENT);
    lattice.cell_m = 0;
    CHECK_INT(vxd_deform_create(env.queue, map, 0, &lattice, &deform, &err),
              VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "cell_m");
    lattice.cell_m = CELL;
    offsets = vxd_hashmap_values(map, 0); /* on the CPU, device memory is ours to write */
    offsets[7] = NAN;
    CHECK_INT(vxd_deform_create(env.queue, map, 0, &lattice, &deform, &err),
              VXD_INVALID_ARGUMENT);
    CHECK(strstr(err.message, "offset of nan") != NULL);
    CHECK(deform == NULL);
    vxd_hashmap_destroy(env.queue, map);
    gpu_env_destroy(&env);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_points_move_by_the_weights_of_known_corners_and_come_back),
    VXD_TEST(test_normals_move_as_those_of_a_surface),
    VXD_TEST(test_deformed_volumes_have_the_same_bits_everywhere),
    VXD_TEST(test_integrated_distances_are_those_of_voxels_moved_back_one_by_one),
    VXD_TEST(test_what_is_no_grid_is_refused),
};

VXD_TEST_MAIN(tests)
