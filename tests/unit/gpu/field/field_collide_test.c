// SPDX-License-Identifier: Apache-2.0
/* Contacts: against FCL's answers for pairs of a shape and a cube (made by
 * tests/bench/gpu/field/compare_fcl.cpp), against the same for each cube of a scene, and
 * against loops over all cubes. */
#include "tests/support/test.h"

#include <math.h>

#include "tests/support/field/field_model.h"

enum {
    MAX_PAIRS = 400,
    N_SHAPES = 120,
    N_STEPS = 5
};

static const struct vxd_svdag_format format = {5, 4, true};

/* Reads FCL's pairs; returns how many. */
static size_t read_pairs(struct vxd_field_shape *shapes, uint8_t *hits)
{
    size_t n_bytes;
    char *text = gpu_read_test_data("field_contacts.txt", &n_bytes);
    size_t n = 0;

    if (text == NULL) {
        return 0;
    }
    text[n_bytes - 1] = '\0'; /* instead of the last line's end */
    for (char *at = text; *at != '\0' && n < MAX_PAIRS; n++) {
        struct vxd_field_shape *shape = &shapes[n];
        double *numbers[4] = {shape->a, shape->b, shape->q, &shape->r};
        static const int counts[4] = {3, 3, 4, 1};

        hits[n] = (uint8_t)strtol(at, &at, 10);
        shape->kind = (int32_t)strtol(at, &at, 10);
        for (int i = 0; i < 4; i++) {
            for (int j = 0; j < counts[i]; j++) {
                numbers[i][j] = strtod(at, &at);
            }
        }
        while (*at == '\n') {
            at++;
        }
    }
    free(text);
    return n;
}

static struct vxd_field *field_of(struct gpu_env *env,
                                  const struct gpu_svdag_scene *scene,
                                  const int32_t low[3], const int32_t high[3],
                                  int max_distance)
{
    struct vxd_field_spec spec = {.max_distance = max_distance, .voxel_size_m = 0.5};
    struct vxd_field *field = NULL;

    memcpy(spec.low, low, sizeof spec.low);
    memcpy(spec.high, high, sizeof spec.high);
    CHECK_INT(vxd_field_create(env->queue, &spec, &field, NULL), VXD_OK);
    field_model_update(env, field, scene, scene->root);
    return field;
}

static uint8_t *collide(struct gpu_env *env, const struct vxd_field *field,
                        const struct vxd_field_shape *shapes, size_t n, float **clearance)
{
    struct vxd_buffer d_shapes = gpu_to_device(env, shapes, n * sizeof *shapes);
    struct vxd_buffer d_hits = gpu_to_device(env, NULL, n);
    struct vxd_buffer d_clearance = gpu_to_device(env, NULL, n * sizeof(float));
    uint8_t *hits;

    CHECK_INT(vxd_field_collide(env->queue, field, d_shapes.ptr, n, d_hits.ptr,
                                d_clearance.ptr, NULL),
              VXD_OK);
    hits = gpu_to_host(env, &d_hits);
    *clearance = gpu_to_host(env, &d_clearance);
    vxd_device_free(env->queue, &d_shapes);
    vxd_device_free(env->queue, &d_hits);
    vxd_device_free(env->queue, &d_clearance);
    return hits;
}

static void fcl_pairs(struct gpu_env *env)
{
    static const int32_t low[3] = {-8, -8, -8};
    static const int32_t high[3] = {16, 16, 16};
    static struct vxd_field_shape shapes[MAX_PAIRS];
    struct gpu_svdag_voxel voxel = {gpu_svdag_morton(3, 3, 3), GPU_SVDAG_MATERIAL};
    struct gpu_svdag_scene scene;
    struct vxd_field *field;
    uint8_t expected[MAX_PAIRS];
    size_t n = read_pairs(shapes, expected);
    float *clearance;
    uint8_t *hits;

    CHECK_INT(n, 300);
    gpu_svdag_scene_build(env->queue, &format, &voxel, 1, &scene);
    field = field_of(env, &scene, low, high, 12);
    hits = collide(env, field, shapes, n, &clearance);
    for (size_t i = 0; i < n; i++) {
        CHECK_INT(hits[i], expected[i]);
        if (shapes[i].kind == VXD_FIELD_SPHERE) {
            CHECK((clearance[i] <= 0) == (expected[i] == 1));
        } else {
            CHECK(clearance[i] != clearance[i]);
        }
    }
    free(hits);
    free(clearance);
    vxd_field_destroy(env->queue, field);
    gpu_svdag_scene_free(env->queue, &scene);
}

static void test_contacts_with_one_cube_are_fcls(void)
{
    gpu_each_backend(fcl_pairs);
}

/* The pairs' shapes moved anywhere in a scene touch where one of its cubes, alone, does: then
 * the shape is moved so that the cube is (3, 3, 3) of a scene of nothing else. */
static void random_shapes(struct vxd_field_shape *shapes, size_t n, uint64_t *state)
{
    static struct vxd_field_shape pairs[MAX_PAIRS];
    static uint8_t hits[MAX_PAIRS];
    size_t n_pairs = read_pairs(pairs, hits);

    for (size_t i = 0; i < n; i++) {
        shapes[i] = pairs[gpu_random(state) % n_pairs];
        for (int axis = 0; axis < 3; axis++) {
            double move = (double)gpu_random_float(state, -8, 32);

            shapes[i].a[axis] += move;
            shapes[i].b[axis] += shapes[i].kind == VXD_FIELD_BOX ? 0 : move;
        }
    }
}

/* Obstacles of the model that may touch a shape. */
static size_t cubes_near(const struct field_model *model,
                         const struct vxd_field_shape *shape, int (*cubes)[3],
                         size_t most)
{
    size_t n = 0;
    size_t i = 0;

    for (int x = model->spec.low[0]; x < model->spec.high[0]; x++) {
        for (int y = model->spec.low[1]; y < model->spec.high[1]; y++) {
            for (int z = model->spec.low[2]; z < model->spec.high[2]; z++, i++) {
                double apart =
                    fabs(shape->a[0] - x) + fabs(shape->a[1] - y) + fabs(shape->a[2] - z);

                if (model->obstacles[i] != 0 && apart < 18 && n < most) {
                    cubes[n][0] = x;
                    cubes[n][1] = y;
                    cubes[n][2] = z;
                    n++;
                }
            }
        }
    }
    return n;
}

/* Whether a shape touches any of some cubes, one at a time. */
static bool touches_any(struct gpu_env *env, const struct vxd_field *single,
                        const struct vxd_field_shape *shape, int (*cubes)[3], size_t n)
{
    struct vxd_field_shape *moved = gpu_alloc((n + 1) * sizeof *moved);
    bool any = false;
    float *clearance;
    uint8_t *hits;

    for (size_t i = 0; i < n; i++) {
        moved[i] = *shape;
        for (int axis = 0; axis < 3; axis++) {
            moved[i].a[axis] += 3 - cubes[i][axis];
            moved[i].b[axis] += shape->kind == VXD_FIELD_BOX ? 0 : 3 - cubes[i][axis];
        }
    }
    hits = collide(env, single, moved, n, &clearance);
    for (size_t i = 0; i < n; i++) {
        any = any || hits[i] == 1;
    }
    free(hits);
    free(clearance);
    free(moved);
    return any;
}

static void scene_contacts(struct gpu_env *env)
{
    static const int32_t low[3] = {0, 0, 0};
    static const int32_t high[3] = {32, 32, 32};
    static const int32_t around[3] = {-32, -32, -32};
    static int cubes[20000][3];
    struct gpu_svdag_voxel voxel = {gpu_svdag_morton(3, 3, 3), GPU_SVDAG_MATERIAL};
    struct vxd_field_spec spec = {
        .high = {32, 32, 32}, .max_distance = 1, .voxel_size_m = 0.5};
    uint32_t *codes = field_model_codes(&format, 3, 2);
    struct gpu_svdag_scene scenes[2];
    struct vxd_field *fields[2];
    struct vxd_field_shape shapes[N_SHAPES];
    struct field_model model;
    uint64_t state = 4;
    float *clearance;
    uint8_t *hits;

    field_model_scene(env, &format, codes, NULL, &scenes[0]);
    field_model_make(&format, codes, &spec, &model);
    gpu_svdag_scene_build(env->queue, &format, &voxel, 1, &scenes[1]);
    fields[0] = field_of(env, &scenes[0], low, high, 10);
    fields[1] = field_of(env, &scenes[1], around, high, 40);
    random_shapes(shapes, N_SHAPES, &state);
    hits = collide(env, fields[0], shapes, N_SHAPES, &clearance);
    for (int i = 0; i < vxd_test_rounds(N_SHAPES); i++) {
        size_t n = cubes_near(&model, &shapes[i], cubes, 20000);

        CHECK_INT(hits[i], touches_any(env, fields[1], &shapes[i], cubes, n));
    }
    free(hits);
    free(clearance);
    for (int i = 0; i < 2; i++) {
        vxd_field_destroy(env->queue, fields[i]);
        gpu_svdag_scene_free(env->queue, &scenes[i]);
    }
    field_model_free(&model);
    free(codes);
}

static void test_contacts_in_a_scene_are_those_with_any_of_its_cubes(void)
{
    gpu_each_backend(scene_contacts);
}

/* --- trajectories ---------------------------------------------------------------------- */

static double gap(double p, int k)
{
    return p < k ? k - p : p > k + 1 ? p - k - 1 : 0;
}

/* The signed distance to the surface, at most `reach`, by all cubes. */
static double surface(const struct field_model *model, const double p[3], double reach)
{
    double best = (double)INFINITY;
    bool is_obstacle = false;
    size_t i = 0;

    for (int axis = 0; axis < 3; axis++) {
        if (p[axis] < model->spec.low[axis] || p[axis] >= model->spec.high[axis]) {
            return reach;
        }
    }
    is_obstacle = model->obstacles[field_model_index(model, (int)floor(p[0]),
                                                     (int)floor(p[1]), (int)floor(p[2]))];
    for (int x = model->spec.low[0]; x < model->spec.high[0]; x++) {
        for (int y = model->spec.low[1]; y < model->spec.high[1]; y++) {
            for (int z = model->spec.low[2]; z < model->spec.high[2]; z++, i++) {
                double square = gap(p[0], x) * gap(p[0], x) +
                                gap(p[1], y) * gap(p[1], y) + gap(p[2], z) * gap(p[2], z);

                best = (model->obstacles[i] != 0) != is_obstacle && square < best ? square
                                                                                  : best;
            }
        }
    }
    best = sqrt(best) < reach ? sqrt(best) : reach;
    return is_obstacle ? -best : best;
}

/* A sphere's centre turned by a quaternion as a product, not by a matrix. */
static void turn(const double *pose, const double *sphere, double p[3])
{
    const double *q = pose + 3;
    double t[3];

    for (int i = 0; i < 3; i++) {
        t[i] = 2 * (q[(i + 1) % 3] * sphere[(i + 2) % 3] -
                    q[(i + 2) % 3] * sphere[(i + 1) % 3]);
    }
    for (int i = 0; i < 3; i++) {
        p[i] = pose[i] + sphere[i] + q[3] * t[i] +
               (q[(i + 1) % 3] * t[(i + 2) % 3] - q[(i + 2) % 3] * t[(i + 1) % 3]);
    }
}

static void random_poses(double *poses, size_t n, uint64_t *state)
{
    for (size_t i = 0; i < n; i++) {
        double *pose = poses + 7 * i;
        double length = 0;

        for (int j = 0; j < 3; j++) {
            pose[j] = (double)gpu_random_float(state, -2, 26);
        }
        for (int j = 3; j < 7; j++) {
            pose[j] = (double)gpu_random_float(state, -1, 1);
            length += pose[j] * pose[j];
        }
        for (int j = 3; j < 7; j++) {
            pose[j] /= sqrt(length);
        }
    }
}

static void check_trajectory(const struct field_model *model, const double *poses,
                             const double *spheres, size_t n_spheres, int32_t first,
                             float clearance)
{
    double least = (double)INFINITY;
    int32_t expected = -1;

    for (int step = 0; step < N_STEPS; step++) {
        for (size_t i = 0; i < n_spheres; i++) {
            double p[3];
            double here;

            turn(poses + 7 * step, spheres + 4 * i, p);
            here = surface(model, p, model->spec.max_distance - 2) - spheres[4 * i + 3];
            least = here < least ? here : least;
            expected = here <= 0 && expected < 0 ? step : expected;
        }
    }
    CHECK_INT(first, expected);
    CHECK(fabs((double)clearance - least * model->spec.voxel_size_m) < 1e-5);
}

static void all_trajectories(struct gpu_env *env)
{
    static const double spheres[8] = {0.5, 0, 0.25, 0.8, -1.5, 0.5, 0, 1.3};
    struct vxd_field_spec spec = {
        .high = {24, 24, 24}, .max_distance = 9, .voxel_size_m = 0.5};
    size_t n = (size_t)vxd_test_rounds(40);
    double poses[40 * N_STEPS * 7];
    uint32_t *codes = field_model_codes(&format, 3, 8);
    struct gpu_svdag_scene scene;
    struct vxd_field *field;
    struct field_model model;
    uint64_t state = 9;
    struct vxd_buffer d_spheres = gpu_to_device(env, spheres, sizeof spheres);
    struct vxd_buffer d_first = gpu_to_device(env, NULL, n * sizeof(int32_t));
    struct vxd_buffer d_clearance = gpu_to_device(env, NULL, n * sizeof(float));
    struct vxd_buffer d_poses;
    struct vxd_field_trajectories in = {d_spheres.ptr, NULL, 2, N_STEPS, n};
    int32_t *first;
    float *clearance;

    field_model_scene(env, &format, codes, NULL, &scene);
    field_model_make(&format, codes, &spec, &model);
    field = field_of(env, &scene, spec.low, spec.high, spec.max_distance);
    random_poses(poses, n * N_STEPS, &state);
    d_poses = gpu_to_device(env, poses, n * N_STEPS * 7 * sizeof(double));
    in.poses = d_poses.ptr;
    CHECK_INT(
        vxd_field_follow(env->queue, field, &in, d_first.ptr, d_clearance.ptr, NULL),
        VXD_OK);
    first = gpu_to_host(env, &d_first);
    clearance = gpu_to_host(env, &d_clearance);
    for (size_t i = 0; i < n; i++) {
        check_trajectory(&model, poses + 7 * N_STEPS * i, spheres, 2, first[i],
                         clearance[i]);
    }
    free(first);
    free(clearance);
    vxd_device_free(env->queue, &d_poses);
    vxd_device_free(env->queue, &d_spheres);
    vxd_device_free(env->queue, &d_first);
    vxd_device_free(env->queue, &d_clearance);
    vxd_field_destroy(env->queue, field);
    field_model_free(&model);
    gpu_svdag_scene_free(env->queue, &scene);
    free(codes);
}

static void test_trajectories_have_the_loops_first_contact_and_clearance(void)
{
    gpu_each_backend(all_trajectories);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_contacts_with_one_cube_are_fcls),
    VXD_TEST(test_contacts_in_a_scene_are_those_with_any_of_its_cubes),
    VXD_TEST(test_trajectories_have_the_loops_first_contact_and_clearance),
};

VXD_TEST_MAIN(tests)
