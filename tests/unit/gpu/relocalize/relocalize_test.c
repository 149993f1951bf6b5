// SPDX-License-Identifier: Apache-2.0
/* Registration against known motions, with the same bits for any number of threads; what is refused;
 * descriptors against sorting; eigenvalues against their definition. */
#include "gpu/relocalize/relocalize.h"

#include <math.h>

#include "gpu/posegraph/posegraph_math.h"
#include "gpu/relocalize/scan_index.h"
#include "tests/support/posegraph/graphs.h"
#include "tests/support/test.h"

enum {
    N_POINTS = 40000
};

static double uniform(uint64_t *state, double low, double high)
{
    *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
    return low + (high - low) * (double)(*state >> 11) * 0x1p-53;
}

/* Points on a floor and on the walls of boxes; `seed` places the boxes, in the map's frame. */
static float *make_place(uint64_t seed, const struct vxd_rigid *T_map_sensor,
                         uint64_t noise)
{
    float *points = malloc(sizeof(float) * 3 * N_POINTS);
    struct vxd_rigid back;
    double boxes[24][5];

    if (points == NULL) {
        abort();
    }
    vxd_rigid_invert(T_map_sensor, &back);
    for (int i = 0; i < 24; i++) {
        for (int k = 0; k < 2; k++) {
            boxes[i][k] = uniform(&seed, -20, 20);
            boxes[i][2 + k] = uniform(&seed, 1, 4);
        }
        boxes[i][4] = uniform(&seed, 1, 5);
    }
    for (int i = 0; i < N_POINTS; i++) {
        const double *box = boxes[i % 24];
        double side = uniform(&noise, 0, 4);
        double along = uniform(&noise, -1, 1);
        double p[3];
        double q[3];

        if (i % 3 == 0) {
            p[0] = uniform(&noise, -22, 22);
            p[1] = uniform(&noise, -22, 22);
            p[2] = 0;
        } else {
            p[0] = box[0] + box[2] * (side < 2 ? along : side < 3 ? 1 : -1);
            p[1] = box[1] + box[3] * (side >= 2 ? along : side < 1 ? 1 : -1);
            p[2] = uniform(&noise, 0, box[4]);
        }
        for (int k = 0; k < 3; k++) {
            p[k] += 0.01 * graph_normal(&noise);
        }
        vxd_quaternion_rotate(back.q, p, q);
        for (int k = 0; k < 3; k++) {
            points[3 * i + k] = (float)(q[k] + back.t_m[k]);
        }
    }
    return points;
}

static void match(const float *target, const float *source, int n_threads,
                  struct vxd_register_result *out)
{
    const struct vxd_register_options options = {.n_headings = 0};
    struct vxd_scan *scans[2] = {NULL, NULL};
    struct vxd_pool *pool = NULL;
    struct vxd_err err;

    CHECK(vxd_pool_create(n_threads, &pool, &err) == VXD_OK);
    REQUIRE(vxd_scan_create(target, N_POINTS, 0.5, &scans[0], &err) == VXD_OK);
    REQUIRE(vxd_scan_create(source, N_POINTS, 0.5, &scans[1], &err) == VXD_OK);
    CHECK(vxd_scan_register(pool, scans[0], scans[1], &options, out, &err) == VXD_OK);
    vxd_scan_destroy(scans[1]);
    vxd_scan_destroy(scans[0]);
    vxd_pool_destroy(pool);
}

static void test_scan_is_put_where_it_was_taken_and_others_are_refused(void)
{
    const struct vxd_rigid here = {{1, -2, 1.5}, {0, 0, 0, 1}};
    uint64_t state = 5;

    for (uint64_t place = 1; place <= 3; place++) {
        const double turned[6] = {0.6, -0.4, 0.1, 0.02, -0.03, uniform(&state, -3, 3)};
        float *target = make_place(place, &here, 11);
        struct vxd_register_result result;
        struct vxd_register_result again;
        struct vxd_rigid moved;
        struct vxd_rigid step;
        struct vxd_rigid error;
        double e[6];
        float *source;
        float *other;

        vxd_rigid_exp(turned, &step);
        vxd_rigid_multiply(&here, &step, &moved);
        source = make_place(place, &moved, 12);
        other = make_place(place + 50, &moved, 13);
        match(target, source, 1, &result);
        match(target, source, 3, &again);
        CHECK_INT(result.verdict, VXD_REGISTER_OK);
        CHECK(memcmp(&result, &again, sizeof result) == 0);
        vxd_rigid_between(&step, &result.T_target_source, &error);
        vxd_rigid_log(&error, e);
        for (int i = 0; i < 6; i++) {
            CHECK(fabs(e[i]) < (i < 3 ? 0.03 : 0.005));
        }
        CHECK(vxd_posegraph_check_information(result.information, true) == NULL);
        match(target, other, 2, &result);
        CHECK_INT(result.verdict, VXD_REGISTER_UNFIT);
        free(other);
        free(source);
        free(target);
    }
}

static void test_bare_planes_and_nothing_are_refused(void)
{
    float *plane = calloc((size_t)3 * N_POINTS, sizeof *plane);
    struct vxd_register_result result;
    uint64_t state = 3;

    REQUIRE(plane != NULL);
    match(plane, plane, 2, &result); /* one point, many times */
    CHECK_INT(result.verdict, VXD_REGISTER_BARE);
    for (int i = 0; i < N_POINTS; i++) {
        plane[3 * i] = (float)uniform(&state, -20, 20);
        plane[3 * i + 1] = (float)uniform(&state, -20, 20);
    }
    match(plane, plane, 2, &result);
    CHECK_INT(result.verdict, VXD_REGISTER_BARE);
    for (int i = 0; i < 3 * N_POINTS; i++) {
        plane[i] = NAN;
    }
    match(plane, plane, 2, &result);
    CHECK_INT(result.verdict, VXD_REGISTER_BARE);
    free(plane);
}

/* Of few points, each cell's mean is that of a loop over all of them; what is not finite is in none. */
static void test_cells_of_a_scan_have_the_means_of_their_points(void)
{
    enum {
        N = 90
    };
    float points[3 * N];
    struct vxd_scan *scan = NULL;
    struct vxd_err err = {0};
    uint64_t state = 8;

    for (int i = 0; i < 3 * N; i++) {
        points[i] = (float)uniform(&state, -1.5, 1.5);
    }
    points[3 * 7 + 1] = NAN;
    points[3 * 8 + 2] = INFINITY;
    for (size_t n = 1; n <= N; n += 89) {
        REQUIRE(vxd_scan_create(points, n, 0.5, &scan, &err) == VXD_OK);
        for (int l = 0; l < 2; l++) {
            const struct vxd_scan_level *level = &scan->levels[l];
            size_t n_found = 0;

            for (size_t c = 0; c < level->n; c++) {
                const struct vxd_scan_cell *cell = &level->cells[c];
                double sum[3] = {0};
                size_t n_in = 0;

                for (size_t i = 0; i < n; i++) {
                    const float *p = points + 3 * i;
                    bool is_in = isfinite(p[0]) && isfinite(p[1]) && isfinite(p[2]);

                    for (int k = 0; k < 3; k++) {
                        is_in =
                            is_in && floor((double)p[k] / level->cell_m) == cell->key[k];
                    }
                    for (int k = 0; k < 3 && is_in; k++) {
                        sum[k] += (double)p[k];
                    }
                    n_in += is_in;
                }
                CHECK(n_in > 0);
                for (int k = 0; k < 3; k++) {
                    CHECK(fabs(sum[k] / (double)n_in - (double)cell->mean[k]) < 1e-5);
                }
                n_found += n_in;
            }
            CHECK_INT(n_found, n > 8 ? n - 2 : n);
        }
        vxd_scan_destroy(scan);
        scan = NULL;
    }
}

static void test_wrong_arguments_are_named(void)
{
    const float far[3] = {1e30f, 0, 0};
    struct vxd_scan *scan = NULL;
    struct vxd_err err;

    CHECK_INT(vxd_scan_create(far, 1, 0.5, &scan, &err), VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "cloud");
    CHECK_INT(vxd_scan_create(far, 1, 0.001, &scan, &err), VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "cell_m");
    CHECK_INT(vxd_scan_create(far, 1, NAN, &scan, &err), VXD_INVALID_ARGUMENT);
    CHECK(scan == NULL);
}

static void test_nearest_descriptors_are_those_of_sorting(void)
{
    float rows[60][8];
    const float *descriptors[60];
    struct vxd_relocalize_candidate found[7];
    uint64_t state = 9;

    for (int i = 0; i < 60; i++) {
        for (int k = 0; k < 8; k++) {
            rows[i][k] = (float)uniform(&state, -1, 1);
        }
        descriptors[i] = i % 10 == 3 ? NULL : rows[i];
    }
    memcpy(rows[41], rows[7], sizeof rows[7]); /* equally near: the first comes first */
    CHECK_INT(vxd_relocalize_rank(rows[7], descriptors, 60, 8, 7, found), 7);
    CHECK(found[0].index == 7 && found[1].index == 41 && found[1].distance == 0);
    for (size_t i = 0; i < 60; i++) {
        double square = 0;
        size_t n_nearer = 0;

        for (int k = 0; k < 8; k++) {
            double d = (double)rows[i][k] - (double)rows[7][k];

            square += d * d;
        }
        for (int k = 0; k < 7; k++) {
            n_nearer += found[k].index == i ? 1 : 0;
        }
        if (descriptors[i] != NULL && n_nearer == 0) {
            CHECK(sqrt(square) >= found[6].distance);
        }
    }
    CHECK_INT(vxd_relocalize_rank(rows[7], descriptors, 2, 8, 7, found), 2);
    CHECK_INT(vxd_relocalize_rank(rows[7], descriptors, 0, 8, 7, found), 0);
}

static void test_eigenvectors_are_stretched_by_their_eigenvalues(void)
{
    uint64_t state = 4;

    for (int round = 0; round < 200; round++) {
        int n = round % 2 == 0 ? 3 : 6;
        double a[36];
        double kept[36];
        double v[36];
        double values[6];

        for (int r = 0; r < n; r++) {
            for (int c = r; c < n; c++) {
                a[r * n + c] = round % 5 == 0 && r != c ? 0 : graph_normal(&state);
                a[c * n + r] = a[r * n + c];
            }
        }
        memcpy(kept, a, sizeof a);
        vxd_scan_eigen(n, a, v, values);
        for (int i = 0; i < n; i++) {
            CHECK(i == 0 || values[i] >= values[i - 1]);
            for (int r = 0; r < n; r++) {
                double sum = 0;

                for (int c = 0; c < n; c++) {
                    sum += kept[r * n + c] * v[c * n + i];
                }
                CHECK(fabs(sum - values[i] * v[r * n + i]) < 1e-10);
            }
        }
    }
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_scan_is_put_where_it_was_taken_and_others_are_refused),
    VXD_TEST(test_bare_planes_and_nothing_are_refused),
    VXD_TEST(test_cells_of_a_scan_have_the_means_of_their_points),
    VXD_TEST(test_wrong_arguments_are_named),
    VXD_TEST(test_nearest_descriptors_are_those_of_sorting),
    VXD_TEST(test_eigenvectors_are_stretched_by_their_eigenvalues),
};

VXD_TEST_MAIN(tests)
