// SPDX-License-Identifier: Apache-2.0
/* The derivatives of equations 16 to 18, which the engine's own steps make here in double, against
 * differences of an energy that this file computes on its own. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define VXD_REFINE_REAL double
#define VXD_REFINE_SQRT sqrt
#include "gpu/refine/refine_steps.h"
#include "tests/support/gpu/gpu_helpers.h"
#include "tests/support/test.h"

#define EDGE 6
#define N (EDGE * EDGE * EDGE)
#define N_EYES 2
#define WIDTH 40
#define HEIGHT 30
#define STEP 1e-6

/* A small set around a bent surface, seen by two keyframes. */
struct world {
    struct vxd_refine_view view;
    int32_t keys[N * 3];
    int32_t near6[N * 6];
    int32_t links[N * 3];
    uint8_t ring[N];
    struct vxd_refine_eye eyes[N_EYES];
    float images[N_EYES][WIDTH * HEIGHT];
    double state[2 * N];
    double start[N];
    double mean[4 * N];
    double chroma[3 * N];
    uint8_t views[N_EYES * N];
    struct vxd_refine_node nodes[N];
    int32_t cells[N];
    int32_t corners[8];
    float lights[8 * 9];
    double sight[N_EYES * 4 * N];
    double sight_weight[N_EYES * N];
    double coupling[N * VXD_REFINE_COUPLING];
    double force[4 * N];
    double losses[4 * N];
    double pose_sums[N_EYES * VXD_REFINE_POSE_SUMS];
    double z[4 * N];
    double laplace[N];
    double pulled[5 * N];
    double diagonal[2 * N];
};

static double random_in(uint64_t *state, double low, double high)
{
    return low + (high - low) * (double)gpu_random_float(state, 0, 1);
}

static int place(int x, int y, int z)
{
    bool is_in = x >= 0 && y >= 0 && z >= 0 && x < EDGE && y < EDGE && z < EDGE;

    return is_in ? (z * EDGE + y) * EDGE + x : -1;
}

static void make_voxels(struct world *world, uint64_t *seed)
{
    for (int i = 0; i < N; i++) {
        int x[3] = {i % EDGE, i / EDGE % EDGE, i / EDGE / EDGE};

        world->ring[i] = 1;
        for (int k = 0; k < 6; k++) {
            int y[3] = {x[0], x[1], x[2]};

            y[k / 2] += k % 2 ? 1 : -1;
            world->near6[6 * i + k] = place(y[0], y[1], y[2]);
            world->ring[i] &= world->near6[6 * i + k] >= 0;
        }
        for (int k = 0; k < 3; k++) {
            world->keys[3 * i + k] = 100 + x[k];
            world->chroma[3 * i + k] = random_in(seed, 0.1, 1);
        }
        world->start[i] = x[2] - 2.6 + 0.1 * x[0] * x[1] / EDGE;
        world->state[i] = world->start[i] + random_in(seed, -0.2, 0.2);
        world->state[N + i] = random_in(seed, 0.4, 1);
        for (int j = 0; j < N_EYES; j++) {
            uint8_t weight = (uint8_t)random_in(seed, 0, 255);

            world->views[j * N + i] = i % 7 != j ? weight : 0; /* some are not seen */
        }
    }
    for (int i = 0; i < 3 * N; i++) {
        int32_t other = world->near6[2 * i + 1];

        world->links[i] =
            world->ring[i / 3] && other >= 0 && world->ring[other] ? other : -1;
    }
}

/* Keyframes from above and from a side, with images of waves. */
static void make_eyes(struct world *world, uint64_t *seed)
{
    static const double rotations[N_EYES][9] = {{1, 0, 0, 0, -1, 0, 0, 0, -1},
                                                {0.8, 0, 0.6, 0, -1, 0, 0.6, 0, -0.8}};

    for (int j = 0; j < N_EYES; j++) {
        struct vxd_refine_eye *eye = &world->eyes[j];

        memcpy(eye->rotation, rotations[j], sizeof eye->rotation);
        for (int k = 0; k < 3; k++) {
            const double *row = &eye->rotation[3 * k];

            eye->translation[k] = -3 * (row[0] + row[1] + row[2]) + (k == 2 ? 20 : 0);
        }
        eye->fx = 60;
        eye->fy = 58;
        eye->cx = WIDTH / 2.0 - 0.5;
        eye->cy = HEIGHT / 2.0 - 0.5;
        eye->width = WIDTH;
        eye->height = HEIGHT;
        eye->grey = world->images[j];
        for (int i = 0; i < WIDTH * HEIGHT; i++) {
            world->images[j][i] =
                0.5f +
                0.2f * sinf(0.4f * (float)(i % WIDTH) + 0.3f * (float)(i / WIDTH)) +
                gpu_random_float(seed, -0.02f, 0.02f);
        }
    }
}

static struct world *make_world(uint64_t seed)
{
    struct world *world = gpu_alloc(sizeof *world);
    struct vxd_refine_view *view = &world->view;

    memset(world, 0, sizeof *world);
    make_voxels(world, &seed);
    make_eyes(world, &seed);
    for (int i = 0; i < 72; i++) {
        world->lights[i] = gpu_random_float(&seed, -0.4f, 0.4f) + (i % 9 == 0 ? 2.5f : 0);
    }
    for (int i = 0; i < 8; i++) {
        world->corners[i] = i;
    }
    *view = (struct vxd_refine_view){.n = N,
                                     .n_keyframes = N_EYES,
                                     .base = {100, 100, 100},
                                     .keys = world->keys,
                                     .near6 = world->near6,
                                     .links = world->links,
                                     .ring = world->ring,
                                     .eyes = world->eyes,
                                     .state = world->state,
                                     .start = world->start,
                                     .mean = world->mean,
                                     .chroma = world->chroma,
                                     .views = world->views,
                                     .nodes = world->nodes,
                                     .cells = world->cells,
                                     .corners = world->corners,
                                     .lights = world->lights,
                                     .cube = 2.0 * EDGE,
                                     .sight = world->sight,
                                     .sight_weight = world->sight_weight,
                                     .n_slots = N_EYES,
                                     .coupling = world->coupling,
                                     .force = world->force,
                                     .losses = world->losses,
                                     .pose_sums = world->pose_sums,
                                     .n_pose_parts = 1,
                                     .z = world->z,
                                     .laplace = world->laplace,
                                     .pulled = world->pulled,
                                     .diagonal = world->diagonal,
                                     .data_scale = 0.7,
                                     .smooth = 0.03,
                                     .init = 0.05,
                                     .chroma_scale = 0.4,
                                     .has_intrinsics = 1};
    return world;
}

/* ---- The energy, written again ---- */

static double light_of(const struct world *world, int i, const double n[3])
{
    const double h[9] = {0.28209479177387814,
                         0.48860251190291992 * n[1],
                         0.48860251190291992 * n[2],
                         0.48860251190291992 * n[0],
                         1.0925484305920792 * n[0] * n[1],
                         1.0925484305920792 * n[1] * n[2],
                         0.31539156525252005 * (3 * n[2] * n[2] - 1),
                         1.0925484305920792 * n[0] * n[2],
                         0.54627421529603959 * (n[0] * n[0] - n[1] * n[1])};
    double sum = 0;

    for (int corner = 0; corner < 8; corner++) {
        double weight = 1;

        for (int k = 0; k < 3; k++) {
            double at = (world->keys[3 * i + k] - 100 + 0.5) / (2.0 * EDGE);

            weight *= corner >> (2 - k) & 1 ? at : 1 - at;
        }
        for (int e = 0; e < 9; e++) {
            sum += weight * (double)world->lights[9 * corner + e] * h[e];
        }
    }
    return sum;
}

/* B(x) - I(x - d n); false where the keyframe does not see it. */
static bool residual(const struct world *world, int j, int i, double *out)
{
    const struct vxd_refine_eye *eye = &world->eyes[j];
    const double *d = world->state;
    const float *image;
    double n[3];
    double p[3];
    double length = 0;
    double u;
    double v;
    int x;
    int y;

    if (world->views[j * N + i] == 0 || !world->ring[i]) {
        return false;
    }
    for (int k = 0; k < 3; k++) {
        n[k] = d[world->near6[6 * i + 2 * k + 1]] - d[world->near6[6 * i + 2 * k]];
        length += n[k] * n[k];
    }
    for (int k = 0; k < 3; k++) {
        n[k] /= sqrt(length);
    }
    for (int k = 0; k < 3; k++) {
        p[k] = eye->translation[k];
        for (int l = 0; l < 3; l++) {
            p[k] += eye->rotation[3 * k + l] *
                    (world->keys[3 * i + l] - 100 + 0.5 - d[i] * n[l]);
        }
    }
    u = eye->fx * p[0] / p[2] + eye->cx;
    v = eye->fy * p[1] / p[2] + eye->cy;
    x = (int)floor(u);
    y = (int)floor(v);
    CHECK(x >= 0 && y >= 0 && x < WIDTH - 1 && y < HEIGHT - 1);
    image = &world->images[j][y * WIDTH + x];
    u -= x;
    v -= y;
    *out = world->state[N + i] * light_of(world, i, n) -
           (((double)image[0] * (1 - u) + (double)image[1] * u) * (1 - v) +
            ((double)image[WIDTH] * (1 - u) + (double)image[WIDTH + 1] * u) * v);
    return true;
}

static double huber(double r)
{
    return fabs(r) <= 0.03 ? r * r / 2 : 0.03 * (fabs(r) - 0.015);
}

static double data_energy(const struct world *world, int eye)
{
    double sum = 0;

    for (int i = 0; i < 3 * N; i++) {
        int32_t other = world->near6[2 * i + 1];
        double a;
        double b;

        if (other < 0 || !residual(world, eye, i / 3, &a) ||
            !residual(world, eye, other, &b)) {
            continue;
        }
        sum += 0.7 / 255 * world->chroma[i] *
               fmin(world->views[eye * N + i / 3], world->views[eye * N + other]) *
               huber(a - b);
    }
    return sum;
}

static double energy(const struct world *world)
{
    const double *d = world->state;
    double sum = data_energy(world, 0) + data_energy(world, 1);

    for (int i = 0; i < N; i++) {
        const int32_t *around = &world->near6[6 * i];

        sum += 0.05 / 2 * pow(d[i] - world->start[i], 2);
        if (world->ring[i]) {
            double laplace = -6 * d[i];

            for (int k = 0; k < 6; k++) {
                laplace += d[around[k]];
            }
            sum += 0.03 / 2 * laplace * laplace;
        }
        for (int k = 0; k < 3; k++) {
            if (around[2 * k + 1] >= 0) {
                sum += 0.4 / 2 * world->chroma[3 * i + k] *
                       pow(d[N + i] - d[N + around[2 * k + 1]], 2);
            }
        }
    }
    return sum;
}

/* ---- The engine's steps ---- */

/* With so many keyframes' residuals at once. */
static void linearise(struct world *world, size_t n_at_once)
{
    for (size_t i = 0; i < N; i++) {
        vxd_refine_node_item(&world->view, i);
    }
    for (size_t first = 0; first < N_EYES; first += n_at_once) {
        for (size_t i = 0; i < N; i++) {
            vxd_refine_sight_item(&world->view, first, n_at_once, i);
        }
        for (size_t i = 0; i < N; i++) {
            vxd_refine_couple_item(&world->view, n_at_once, first == 0, i);
        }
    }
}

static void multiply(struct world *world, const double *p, bool is_gradient, double *out)
{
    for (size_t i = 0; i < N; i++) {
        vxd_refine_push_item(&world->view, p, i);
    }
    for (size_t i = 0; i < N; i++) {
        vxd_refine_pull_item(&world->view, is_gradient, i);
    }
    for (size_t i = 0; i < N; i++) {
        vxd_refine_gather_item(&world->view, p, out, is_gradient, i);
    }
}

static bool is_near(double found, double expected)
{
    return fabs(found - expected) <= 1e-6 * (1 + fabs(expected));
}

static void test_gradient_is_the_derivative_of_the_energy(void)
{
    struct world *world = make_world(3);
    double *gradient = gpu_alloc(2 * N * sizeof *gradient);
    double total = 0;

    linearise(world, 1);
    multiply(world, world->state, true, gradient);
    for (int i = 0; i < 4 * N; i++) {
        total += world->losses[i];
    }
    CHECK(is_near(total, energy(world)));
    CHECK(total > 0.5);
    for (int i = 0; i < 2 * N; i++) {
        double was = world->state[i];
        double high;

        world->state[i] = was + STEP;
        high = energy(world);
        world->state[i] = was - STEP;
        CHECK(is_near(gradient[i], (high - energy(world)) / (2 * STEP)));
        world->state[i] = was;
    }
    free(gradient);
    free(world);
}

/* p^T A p is the sum of the squares of the residuals' derivatives along p. */
static void test_product_is_that_of_the_residuals_derivatives(void)
{
    struct world *world = make_world(5);
    struct world *high = gpu_alloc(sizeof *high);
    struct world *low = gpu_alloc(sizeof *low);
    double *p = gpu_alloc(2 * N * sizeof *p);
    double *q = gpu_alloc(2 * N * sizeof *q);
    double expected = 0;
    double found = 0;
    uint64_t seed = 9;

    linearise(world, N_EYES);
    for (int i = 0; i < 2 * N; i++) {
        p[i] = random_in(&seed, -1, 1);
    }
    multiply(world, p, false, q);
    memcpy(high, world, sizeof *high);
    memcpy(low, world, sizeof *low);
    for (int i = 0; i < 2 * N; i++) {
        high->state[i] += STEP * p[i];
        low->state[i] -= STEP * p[i];
        found += p[i] * q[i];
    }
    for (int j = 0; j < N_EYES; j++) {
        for (int i = 0; i < 3 * N; i++) {
            int32_t other = world->near6[2 * i + 1];
            double a[3];
            double b[3];

            if (other < 0 || !residual(world, j, i / 3, &a[0]) ||
                !residual(world, j, other, &b[0])) {
                continue;
            }
            (void)(residual(high, j, i / 3, &a[1]) && residual(high, j, other, &b[1]) &&
                   residual(low, j, i / 3, &a[2]) && residual(low, j, other, &b[2]));
            expected += 0.7 / 255 * world->chroma[i] *
                        fmin(world->views[j * N + i / 3], world->views[j * N + other]) *
                        fmin(1, 0.03 / fabs(a[0] - b[0])) *
                        pow((a[1] - b[1] - a[2] + b[2]) / (2 * STEP), 2);
        }
    }
    for (int i = 0; i < N; i++) { /* the other terms are quadratic */
        double laplace = -6 * p[i];

        expected += 0.05 * p[i] * p[i];
        for (int k = 0; k < 6; k++) {
            int32_t other = world->near6[6 * i + k];

            laplace += other >= 0 ? p[other] : 0;
            if (k % 2 && other >= 0) {
                expected +=
                    0.4 * world->chroma[3 * i + k / 2] * pow(p[N + i] - p[N + other], 2);
            }
        }
        expected += world->ring[i] ? 0.03 * laplace * laplace : 0;
    }
    CHECK(is_near(found, expected));
    free(q);
    free(p);
    free(low);
    free(high);
    free(world);
}

/* Moves a camera by one of its unknowns, in the engine's units. */
static void move(struct vxd_refine_eye *eye, const struct vxd_refine_pose_call *call,
                 int unknown, double by)
{
    double c[3] = {call->centre[0], call->centre[1], call->centre[2]};

    if (unknown < 3) { /* the set moves against the camera */
        for (int k = 0; k < 3; k++) {
            eye->translation[k] -= by * eye->rotation[3 * k + unknown];
        }
    } else if (unknown < 6) {
        int axis = unknown - 3;
        int a = (axis + 1) % 3;
        int b = (axis + 2) % 3;
        double s = sin(-by / call->reach);
        double cosine = cos(by / call->reach);

        for (int k = 0; k < 3; k++) {
            double *row = &eye->rotation[3 * k];
            double ra = row[a];
            double rb = row[b];

            row[a] = ra * cosine + rb * s;
            row[b] = rb * cosine - ra * s;
            eye->translation[k] += (ra - row[a]) * c[a] + (rb - row[b]) * c[b];
        }
    } else {
        double *numbers[4] = {&eye->fx, &eye->fy, &eye->cx, &eye->cy};

        *numbers[unknown - 6] += by;
    }
}

static void test_pose_and_intrinsics_are_derivatives_of_the_energy(void)
{
    struct world *world = make_world(7);
    const struct vxd_refine_pose_call call = {
        .n_slots = N_EYES, .centre = {3, 2.5, 2}, .reach = 5};

    linearise(world, N_EYES);
    for (size_t j = 0; j < N_EYES; j++) {
        vxd_refine_pose_item(&world->view, &call, j);
        for (int k = 0; k < VXD_REFINE_POSE; k++) {
            double found =
                world->pose_sums[j * VXD_REFINE_POSE_SUMS + VXD_REFINE_POSE_SUMS -
                                 VXD_REFINE_POSE + (size_t)k];
            struct vxd_refine_eye was = world->eyes[j];
            double high;

            move(&world->eyes[j], &call, k, STEP);
            high = data_energy(world, (int)j);
            world->eyes[j] = was;
            move(&world->eyes[j], &call, k, -STEP);
            CHECK(is_near(found, (high - data_energy(world, (int)j)) / (2 * STEP)));
            world->eyes[j] = was;
        }
    }
    free(world);
}

/* The shading of a normal is the sum of its harmonics, whose integral over the sphere of any two is 1
 * or 0. */
static void test_harmonics_are_orthonormal(void)
{
    double sums[9][9] = {{0}};
    int n = 0;

    for (int v = 0; v < 200; v++) {
        for (int u = 0; u < 400; u++, n++) {
            double z = (v + 0.5) / 100 - 1;
            double azimuth = (u + 0.5) / 200 * 3.14159265358979323846;
            const double normal[3] = {sqrt(1 - z * z) * cos(azimuth),
                                      sqrt(1 - z * z) * sin(azimuth), z};
            double h[9];

            vxd_refine_harmonics(normal, h);
            for (int i = 0; i < 81; i++) {
                sums[i / 9][i % 9] += h[i / 9] * h[i % 9];
            }
        }
    }
    for (int i = 0; i < 81; i++) {
        CHECK(fabs(sums[i / 9][i % 9] * 4 * 3.14159265358979323846 / n -
                   (i / 9 == i % 9 ? 1 : 0)) < 1e-3);
    }
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_gradient_is_the_derivative_of_the_energy),
    VXD_TEST(test_product_is_that_of_the_residuals_derivatives),
    VXD_TEST(test_pose_and_intrinsics_are_derivatives_of_the_energy),
    VXD_TEST(test_harmonics_are_orthonormal),
};

VXD_TEST_MAIN(tests)
