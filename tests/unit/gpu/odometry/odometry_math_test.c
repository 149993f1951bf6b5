// SPDX-License-Identifier: Apache-2.0
/* Arithmetic of odometry: derivatives against differences, planes of points, keys looked up. */
#include "gpu/odometry/odometry_math.h"
#include "tests/support/gpu/gpu_helpers.h"
#include "tests/support/test.h"

#include <math.h>

static void test_rows_are_derivatives_of_distances(void)
{
    const struct vxd_odometry_rule rule = {
        .thresholds = {1, 1}, .inlier2 = 1, .robust = VXD_ODOMETRY_SQUARES};
    const float sensor[3] = {0.3f, -0.2f, 0.6f};
    uint64_t state = 3;

    for (int round = 0; round < 50; round++) {
        struct vxd_odometry_rows rows;
        const double step = 1e-4;
        float q[3];
        float at[3];
        float normal[3];
        float length;
        bool is_plane = round % 2 == 0;

        for (int i = 0; i < 3; i++) {
            q[i] = gpu_random_float(&state, -3, 3);
            at[i] = q[i] + gpu_random_float(&state, -0.3f, 0.3f);
            normal[i] = gpu_random_float(&state, -1, 1);
        }
        length = sqrtf(vxd_odometry_dot(normal, normal));
        for (int i = 0; i < 3; i++) {
            normal[i] /= length;
        }
        {
            const float arm[3] = {q[0] - sensor[0], q[1] - sensor[1], q[2] - sensor[2]};
            const float d[3] = {q[0] - at[0], q[1] - at[1], q[2] - at[2]};

            vxd_odometry_set_rows(&rule, 0, arm, d,
                                  is_plane ? VXD_ODOMETRY_PLANE : VXD_ODOMETRY_SCATTERED,
                                  normal, &rows, 5);
        }
        for (int k = 0; k < 6; k++) {
            double moved[2][3];

            for (int side = 0; side < 2; side++) {
                double x[6] = {0};
                double r[9];

                x[k] = side == 0 ? step : -step;
                vxd_odometry_rotation(x + 3, r);
                for (int i = 0; i < 3; i++) {
                    moved[side][i] = (double)sensor[i] + x[i];
                    for (int j = 0; j < 3; j++) {
                        moved[side][i] +=
                            r[3 * i + j] * ((double)q[j] - (double)sensor[j]);
                    }
                }
            }
            for (int row = 0; row < (is_plane ? 1 : 3); row++) {
                double expected = 0;

                for (int i = 0; i < 3; i++) {
                    double along = is_plane ? (double)normal[i] : i == row ? 1 : 0;

                    expected += along * (moved[0][i] - moved[1][i]) / (2 * step);
                }
                CHECK(fabs(expected - (double)rows.row[row][k][5]) < 1e-5);
            }
        }
    }
}

/* Normals of points near a plane, and what is no plane. */
static void test_planes_of_points_are_found(void)
{
    uint64_t state = 11;

    for (int round = 0; round < 30; round++) {
        float moments[VXD_ODOMETRY_N_MOMENTS] = {0};
        float normal[3];
        float found[3];
        float length;
        bool is_ball = round % 3 == 2;

        for (int i = 0; i < 3; i++) {
            normal[i] = gpu_random_float(&state, -1, 1);
        }
        length = sqrtf(vxd_odometry_dot(normal, normal));
        for (int k = 0; k < 40; k++) {
            float p[3];
            float distance = 0;

            for (int i = 0; i < 3; i++) {
                p[i] = gpu_random_float(&state, -1, 1);
                distance += p[i] * normal[i] / length;
            }
            for (int i = 0; i < 3 && !is_ball; i++) {
                p[i] += (0.01f * gpu_random_float(&state, -1, 1) - distance) * normal[i] /
                        length;
            }
            moments[0] += 1;
            for (int i = 0, at = 4; i < 3; i++) {
                moments[1 + i] += p[i];
                for (int j = i; j < 3; j++) {
                    moments[at++] += p[i] * p[j];
                }
            }
        }
        CHECK_INT(vxd_odometry_plane(moments, found),
                  is_ball ? VXD_ODOMETRY_SCATTERED : VXD_ODOMETRY_PLANE);
        if (!is_ball) {
            CHECK(fabsf(vxd_odometry_dot(found, normal)) / length > 0.9998f);
        }
    }
}

/* Keys that come and go are found where vxd_hashmap_find finds them. */
static void test_lookup_finds_what_the_map_finds(void)
{
    enum {
        N = 3000
    };
    struct vxd_hashmap_spec spec = {
        .key_dtype = VXD_INT32, .n_components = 3, .capacity = N};
    struct vxd_hashmap *map = NULL;
    struct gpu_env env;
    struct vxd_err err = {0};
    int32_t *keys = gpu_alloc(2 * N * 3 * sizeof *keys);
    int32_t *entries = gpu_alloc(2 * N * sizeof *entries);
    uint64_t state = 5;

    gpu_env_create(&env, VXD_BACKEND_CPU, 2, 0, 0);
    for (int i = 0; i < 2 * N * 3; i++) {
        keys[i] = (int32_t)(gpu_random(&state) % 41) - 20;
    }
    CHECK_INT(vxd_hashmap_create(env.queue, &spec, &map, &err), VXD_OK);
    {
        struct vxd_hashmap_insert_args insert = {.keys = keys, .n = N};
        struct vxd_hash_lookup lookup;
        int n_found = 0;

        CHECK_INT(vxd_hashmap_insert(env.queue, map, &insert, &err), VXD_OK);
        CHECK_INT(
            vxd_hashmap_erase(env.queue, map, keys, N / 3, VXD_HASH_FIRST, NULL, &err),
            VXD_OK);
        CHECK_INT(vxd_hashmap_find(env.queue, map, keys, 2 * N, entries, NULL, &err),
                  VXD_OK);
        gpu_wait(&env);
        lookup = vxd_hash_lookup_of(map);
        for (int i = 0; i < 2 * N; i++) {
            uint64_t tag;

            CHECK(vxd_hash_tag3(keys + 3 * i, &tag));
            CHECK_INT(vxd_hash_find3(&lookup, tag), entries[i]);
            n_found += entries[i] >= 0;
        }
        CHECK(n_found > N / 2 && n_found < 2 * N);
    }
    vxd_hashmap_destroy(env.queue, map);
    gpu_env_destroy(&env);
    free(keys);
    free(entries);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_rows_are_derivatives_of_distances),
    VXD_TEST(test_planes_of_points_are_found),
    VXD_TEST(test_lookup_finds_what_the_map_finds),
};

VXD_TEST_MAIN(tests)
