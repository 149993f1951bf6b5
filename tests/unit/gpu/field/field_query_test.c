// SPDX-License-Identifier: Apache-2.0
/* Distances at points, against the model's voxels and a loop over all cubes. */
#include "tests/support/test.h"

#include <math.h>

#include "tests/support/field/field_model.h"

enum {
    N_POINTS = 400
};

static const struct vxd_svdag_format format = {5, 4, true};

struct query_case {
    struct gpu_svdag_scene scene;
    struct vxd_field *field;
    struct field_model model;
    double points[3 * N_POINTS];
    struct vxd_buffer d_points, d_distances, d_gradients, d_nearest;
    float *distances;
    float *gradients;
    int32_t *nearest;
};

/* Anywhere in the box, a little outside, on corners, faces and centres of voxels, on planes and
 * lines of centres or faces, and nowhere. */
static void make_points(struct query_case *c)
{
    uint64_t state = 11;

    for (size_t i = 0; i < N_POINTS; i++) {
        for (size_t axis = 0; axis < 3; axis++) {
            double low = c->model.spec.low[axis];
            double size = c->model.size[axis];
            double r = (double)gpu_random_float(&state, -0.05f, 1.05f);
            double p = low + r * size;
            bool is_on = (i / 8 >> axis & 1) != 0; /* one axis, two, all or none */

            c->points[3 * i + axis] = i % 8 == 0                ? floor(p)
                                      : i % 8 == 1              ? floor(p) + 0.5
                                      : i % 8 == 2 && axis == 1 ? floor(p)
                                      : i % 8 == 3 && is_on     ? floor(p) + 0.5
                                      : i % 8 == 4 && is_on     ? floor(p)
                                                                : p;
        }
    }
    c->points[3] = (double)NAN;
    c->points[7] = (double)INFINITY;
    c->points[9] = 1e300;
}

static void open_case(struct gpu_env *env, int kind, enum vxd_field_unknown unknown,
                      int max_distance, struct query_case *c)
{
    struct vxd_field_spec spec = {{0, 8, -8}, {24, 32, 24}, max_distance, unknown, 0.25};
    uint32_t *codes = field_model_codes(&format, kind, 3);

    field_model_scene(env, &format, codes, NULL, &c->scene);
    field_model_make(&format, codes, &spec, &c->model);
    c->field = NULL;
    CHECK_INT(vxd_field_create(env->queue, &spec, &c->field, NULL), VXD_OK);
    field_model_update(env, c->field, &c->scene, c->scene.root);
    make_points(c);
    c->d_points = gpu_to_device(env, c->points, sizeof c->points);
    c->d_distances = gpu_to_device(env, NULL, N_POINTS * sizeof(float));
    c->d_gradients = gpu_to_device(env, NULL, 3 * N_POINTS * sizeof(float));
    c->d_nearest = gpu_to_device(env, NULL, 3 * N_POINTS * sizeof(int32_t));
    free(codes);
}

static void ask(struct gpu_env *env, struct query_case *c, enum vxd_field_mode mode)
{
    CHECK_INT(vxd_field_query(env->queue, c->field, c->d_points.ptr, N_POINTS, mode,
                              c->d_distances.ptr, c->d_gradients.ptr, c->d_nearest.ptr,
                              NULL),
              VXD_OK);
    c->distances = gpu_to_host(env, &c->d_distances);
    c->gradients = gpu_to_host(env, &c->d_gradients);
    c->nearest = gpu_to_host(env, &c->d_nearest);
}

static void free_answers(struct query_case *c)
{
    free(c->distances);
    free(c->gradients);
    free(c->nearest);
}

static void close_case(struct gpu_env *env, struct query_case *c)
{
    vxd_device_free(env->queue, &c->d_points);
    vxd_device_free(env->queue, &c->d_distances);
    vxd_device_free(env->queue, &c->d_gradients);
    vxd_device_free(env->queue, &c->d_nearest);
    vxd_field_destroy(env->queue, c->field);
    field_model_free(&c->model);
    gpu_svdag_scene_free(env->queue, &c->scene);
}

/* The voxel that holds a point; false outside of the box. */
static bool voxel_of(const struct query_case *c, size_t i, int at[3])
{
    for (size_t axis = 0; axis < 3; axis++) {
        double p = floor(c->points[3 * i + axis]);

        if (!(p >= c->model.spec.low[axis] && p < c->model.spec.high[axis])) {
            return false;
        }
        at[axis] = (int)p;
    }
    return true;
}

/* The distance between centres in voxels; NaN where it is not known. */
static double distance_at(const struct field_model *model, const int at[3])
{
    size_t i;
    double distance;

    for (int axis = 0; axis < 3; axis++) {
        if (at[axis] < model->spec.low[axis] || at[axis] >= model->spec.high[axis]) {
            return (double)NAN;
        }
    }
    i = field_model_index(model, at[0], at[1], at[2]);
    if (model->unknown[i] != 0) {
        return (double)NAN;
    }
    distance =
        model->squares[i] == 0 ? model->spec.max_distance : sqrt(abs(model->squares[i]));
    return model->obstacles[i] != 0 ? -distance : distance;
}

static bool is_near(double got, double expected)
{
    return (got != got && expected != expected) || fabs(got - expected) < 1e-6;
}

static void check_gradient(const struct query_case *c, size_t i)
{
    const float *g = c->gradients + 3 * i;
    double length = sqrt((double)(g[0] * g[0] + g[1] * g[1] + g[2] * g[2]));

    if (c->distances[i] != c->distances[i]) {
        CHECK(g[0] != g[0] && g[1] != g[1] && g[2] != g[2]);
    } else {
        CHECK(length < 1e-9 || fabs(length - 1) < 1e-5);
    }
}

/* Along the gradient, the nearest voxel's centre lies behind an outside point, and before one
 * that is inside. */
static void check_nearest(const struct query_case *c, size_t i)
{
    const struct field_model *model = &c->model;
    double expected = (double)NAN;
    int at[3];

    if (voxel_of(c, i, at)) {
        size_t voxel = field_model_index(model, at[0], at[1], at[2]);

        expected = distance_at(model, at) * model->spec.voxel_size_m;
        if (expected == expected) {
            CHECK(memcmp(c->nearest + 3 * i, model->nearest + 3 * voxel, 12) == 0);
        }
        for (size_t axis = 0;
             axis < 3 && model->squares[voxel] != 0 && expected == expected; axis++) {
            double away = at[axis] - c->nearest[3 * i + axis];

            CHECK(is_near((double)c->gradients[3 * i + axis],
                          away / distance_at(model, at)));
        }
    }
    if (expected != expected) {
        CHECK_INT(c->nearest[3 * i], INT32_MIN);
    }
    CHECK(is_near((double)c->distances[i], expected));
    check_gradient(c, i);
}

static void check_trilinear(const struct query_case *c, size_t i)
{
    double p[3];
    double sum = 0;
    int at[3];

    if (!voxel_of(c, i, at) || distance_at(&c->model, at) != distance_at(&c->model, at)) {
        CHECK(c->distances[i] != c->distances[i]);
        return;
    }
    for (size_t axis = 0; axis < 3; axis++) {
        p[axis] = c->points[3 * i + axis] - 0.5;
    }
    for (int corner = 0; corner < 8; corner++) {
        int place[3];
        double weight = 1;

        for (int axis = 0; axis < 3; axis++) {
            double low = floor(p[axis]);
            int bit = corner >> axis & 1;

            place[axis] = (int)low + bit;
            weight *= bit != 0 ? p[axis] - low : 1 - (p[axis] - low);
        }
        sum += weight > 0 ? weight * distance_at(&c->model, place) : 0;
    }
    CHECK(is_near((double)c->distances[i], sum * c->model.spec.voxel_size_m));
    check_gradient(c, i);
}

static double gap(double p, int k)
{
    return p < k ? k - p : p > k + 1 ? p - k - 1 : 0;
}

/* The square of the distance to the nearest cube of the other kind. */
static double nearest_square(const struct query_case *c, const double p[3],
                             bool is_obstacle)
{
    const struct field_model *model = &c->model;
    double best = (double)INFINITY;
    size_t i = 0;

    for (int x = model->spec.low[0]; x < model->spec.high[0]; x++) {
        for (int y = model->spec.low[1]; y < model->spec.high[1]; y++) {
            double row = gap(p[0], x) * gap(p[0], x) + gap(p[1], y) * gap(p[1], y);

            for (int z = model->spec.low[2]; z < model->spec.high[2]; z++, i++) {
                double square = row + gap(p[2], z) * gap(p[2], z);

                best = (model->obstacles[i] != 0) != is_obstacle && square < best ? square
                                                                                  : best;
            }
        }
    }
    return best;
}

static void check_surface(const struct query_case *c, size_t i)
{
    const struct field_model *model = &c->model;
    const double *p = c->points + 3 * i;
    double reach = model->spec.max_distance > 2 ? model->spec.max_distance - 2 : 0;
    const int32_t *cube = c->nearest + 3 * i;
    double expected = (double)NAN;
    int at[3];

    if (voxel_of(c, i, at) && distance_at(model, at) == distance_at(model, at)) {
        bool is_obstacle = distance_at(model, at) < 0;
        double best = sqrt(nearest_square(c, p, is_obstacle));

        expected = best < reach ? best : reach;
        if (best < reach) {
            CHECK(cube[0] != INT32_MIN);
            CHECK(is_near(sqrt(gap(p[0], cube[0]) * gap(p[0], cube[0]) +
                               gap(p[1], cube[1]) * gap(p[1], cube[1]) +
                               gap(p[2], cube[2]) * gap(p[2], cube[2])),
                          best));
        }
        expected *= is_obstacle ? -model->spec.voxel_size_m : model->spec.voxel_size_m;
    }
    CHECK(is_near((double)c->distances[i], expected));
    check_gradient(c, i);
}

static void all_queries(struct gpu_env *env)
{
    static void (*const checks[3])(const struct query_case *c, size_t i) = {
        check_nearest, check_trilinear, check_surface};
    static const int kinds[3] = {4, 3, 5};
    static struct query_case c;

    for (int i = 0; i < vxd_test_rounds(3); i++) {
        open_case(env, kinds[i], (enum vxd_field_unknown)((i + 2) % 3), i == 1 ? 6 : 20,
                  &c);
        for (int mode = 0; mode < 3; mode++) {
            ask(env, &c, (enum vxd_field_mode)mode);
            for (size_t j = 0; j < N_POINTS; j++) {
                checks[mode](&c, j);
            }
            free_answers(&c);
        }
        close_case(env, &c);
    }
}

static void test_distances_at_points_are_the_models(void)
{
    gpu_each_backend(all_queries);
}

static void wrong_queries(struct gpu_env *env)
{
    static struct query_case c;
    struct vxd_err err = {0};

    open_case(env, 2, VXD_FIELD_UNKNOWN_FREE, 2, &c);
    CHECK_INT(vxd_field_query(env->queue, c.field, NULL, 1, VXD_FIELD_NEAREST,
                              c.d_distances.ptr, NULL, NULL, &err),
              VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "points");
    CHECK_INT(vxd_field_query(env->queue, c.field, c.d_points.ptr, 1,
                              (enum vxd_field_mode)3, c.d_distances.ptr, NULL, NULL,
                              &err),
              VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "mode");
    CHECK_INT(vxd_field_query(env->queue, c.field, NULL, 0, VXD_FIELD_NEAREST, NULL, NULL,
                              NULL, &err),
              VXD_OK);
    gpu_wait(env);
    close_case(env, &c);
}

static void test_queries_without_arrays_are_refused(void)
{
    gpu_each_backend(wrong_queries);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_distances_at_points_are_the_models),
    VXD_TEST(test_queries_without_arrays_are_refused),
};

VXD_TEST_MAIN(tests)
