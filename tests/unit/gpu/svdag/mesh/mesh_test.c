// SPDX-License-Identifier: Apache-2.0
/* Voxels of triangles, against every voxel of a small scene: the triangle clipped to its cube, or
 * met by the axes through its centre, in long double. And what a surface is for: nothing passes it. */
#include "tests/support/test.h"

#include <math.h>
#include <stdlib.h>

#include "gpu/svdag/mesh/mesh.h"
#include "tests/support/gpu/gpu_helpers.h"

enum {
    DEPTH = 5,
    SIDE = 1 << DEPTH,
    N_VOXELS = SIDE * SIDE * SIDE,
    N_ROUNDS = 60,
    N_TRIANGLES = 7
};

static const struct vxd_svdag_format small = {DEPTH, 16, false};

/* --- lists ----------------------------------------------------------------------------------- */

static size_t index_of(uint64_t code)
{
    size_t at[3] = {0, 0, 0};

    for (int bit = 0; bit < 21; bit++) {
        for (int k = 0; k < 3; k++) {
            at[k] |= (size_t)(code >> (3 * bit + 2 - k) & 1) << bit;
        }
    }
    return (at[0] * SIDE + at[1]) * SIDE + at[2];
}

/* Adds a list's voxels to a dense grid: 0 = none, otherwise the value plus one. Returns how many
 * it has. */
static uint64_t take_list(struct gpu_env *env, const struct vxd_svdag_voxel_list *list,
                          uint32_t *grid)
{
    const struct vxd_svdag_voxels *voxels = &list->voxels;
    size_t n_bytes = voxels->n * sizeof(uint64_t);
    uint64_t *codes = gpu_alloc(n_bytes + 1);
    uint64_t *masks = gpu_alloc(n_bytes + 1);
    uint16_t *values = NULL;
    uint64_t n = 0;

    if (voxels->n > 0) {
        (void)vxd_queue_copy(env->queue, codes, voxels->codes, n_bytes, NULL);
        (void)vxd_queue_copy(env->queue, masks, voxels->masks, n_bytes, NULL);
    }
    gpu_wait(env);
    for (size_t i = 0; i < voxels->n; i++) {
        n += (uint64_t)__builtin_popcountll(masks[i]);
        CHECK(i == 0 || codes[i] > codes[i - 1]);
    }
    if (voxels->values != NULL && n > 0) {
        values = gpu_alloc(n * sizeof *values);
        (void)vxd_queue_copy(env->queue, values, voxels->values, n * sizeof *values,
                             NULL);
        gpu_wait(env);
    }
    n = 0;
    for (size_t i = 0; i < voxels->n; i++) {
        for (uint64_t bit = 0; bit < 64; bit++) {
            if ((masks[i] >> bit & 1) != 0) {
                if (grid != NULL) {
                    grid[index_of(codes[i] << 6 | bit)] =
                        values != NULL ? values[n] + 1u : 1u;
                }
                n++;
            }
        }
    }
    free(values);
    free(masks);
    free(codes);
    return n;
}

/* Runs all calls of a mesh. Returns the voxels of all lists. */
static uint64_t run(struct gpu_env *env, const struct vxd_svdag_format *format,
                    const struct vxd_svdag_mesh *mesh, uint32_t *grid,
                    struct vxd_svdag_mesh_state *state, size_t *n_lists)
{
    uint64_t n = 0;

    *state = (struct vxd_svdag_mesh_state){0};
    *n_lists = 0;
    if (grid != NULL) {
        memset(grid, 0, N_VOXELS * sizeof *grid);
    }
    while (state->triangle < mesh->n) {
        struct vxd_svdag_voxel_list list;
        struct vxd_err err = {0};

        CHECK_INT(vxd_svdag_list_triangles(env->queue, format, mesh, state, &list, &err),
                  VXD_OK);
        if (err.code != VXD_OK) {
            return n;
        }
        n += take_list(env, &list, grid);
        vxd_svdag_voxel_list_free(env->queue, &list);
        gpu_wait(env);
        (*n_lists)++;
    }
    return n;
}

/* --- the oracle ------------------------------------------------------------------------------ */

/* Clips a polygon to sign * (x[axis] - plane) >= 0. Returns its corners. */
static int clip(long double (*p)[3], int n, int axis, long double plane, int sign)
{
    long double out[16][3];
    int m = 0;

    for (int i = 0; i < n; i++) {
        const long double *a = p[i];
        const long double *b = p[(i + 1) % n];
        long double da = (long double)sign * (a[axis] - plane);
        long double db = (long double)sign * (b[axis] - plane);

        if (da >= 0) {
            memcpy(out[m++], a, sizeof out[0]);
        }
        if ((da > 0 && db < 0) || (da < 0 && db > 0)) {
            for (int k = 0; k < 3; k++) {
                out[m][k] = a[k] + (b[k] - a[k]) * (da / (da - db));
            }
            m++;
        }
    }
    memcpy(p, out, (size_t)m * sizeof out[0]);
    return m;
}

static bool meets_cube(const double *vertices, const uint32_t *corners,
                       const int voxel[3])
{
    long double p[16][3];
    int n = 3;

    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 3; k++) {
            p[i][k] = vertices[3 * corners[i] + (uint32_t)k];
        }
    }
    for (int k = 0; k < 3 && n > 0; k++) {
        n = clip(p, n, k, voxel[k], 1);
        n = n > 0 ? clip(p, n, k, voxel[k] + 1, -1) : 0;
    }
    return n > 0;
}

/* Whether the line through the voxel's centre along an axis meets the triangle inside the voxel, by
 * barycentric coordinates. */
static bool meets_axis(const double *vertices, const uint32_t *corners,
                       const int voxel[3], int axis)
{
    int i = (axis + 1) % 3;
    int j = (axis + 2) % 3;
    const double *a = vertices + 3 * corners[0];
    const double *b = vertices + 3 * corners[1];
    const double *c = vertices + 3 * corners[2];
    long double x = voxel[i] + 0.5L;
    long double y = voxel[j] + 0.5L;
    long double area = ((long double)b[i] - a[i]) * ((long double)c[j] - a[j]) -
                       ((long double)b[j] - a[j]) * ((long double)c[i] - a[i]);
    long double s, t, at;

    if (area == 0) {
        return false;
    }
    s = ((x - a[i]) * ((long double)c[j] - a[j]) -
         (y - a[j]) * ((long double)c[i] - a[i])) /
        area;
    t = (((long double)b[i] - a[i]) * (y - a[j]) -
         ((long double)b[j] - a[j]) * (x - a[i])) /
        area;
    at = a[axis] + s * ((long double)b[axis] - a[axis]) +
         t * ((long double)c[axis] - a[axis]);
    return s >= 0 && t >= 0 && s + t <= 1 && at >= voxel[axis] && at < voxel[axis] + 1;
}

static uint32_t expected(const struct vxd_svdag_mesh *mesh, const int voxel[3])
{
    uint32_t value = 0;

    for (size_t i = 0; i < mesh->n; i++) {
        const uint32_t *corners = mesh->triangles + 3 * i;
        bool is_set = mesh->rule == VXD_SVDAG_MESH_CONSERVATIVE
                          ? meets_cube(mesh->vertices, corners, voxel)
                          : meets_axis(mesh->vertices, corners, voxel, 0) ||
                                meets_axis(mesh->vertices, corners, voxel, 1) ||
                                meets_axis(mesh->vertices, corners, voxel, 2);

        value = is_set ? mesh->values[i] + 1u : value;
    }
    return value;
}

static size_t n_wrong(const struct vxd_svdag_mesh *mesh, const uint32_t *grid)
{
    size_t n = 0;

    for (int i = 0; i < N_VOXELS; i++) {
        const int voxel[3] = {i / SIDE / SIDE, i / SIDE % SIDE, i % SIDE};

        n += expected(mesh, voxel) != grid[i];
    }
    return n;
}

/* Triangles of all sizes: large, tiny, slivers, and nearly lines; some reach out of the scene. */
static void random_mesh(uint64_t *state, double *vertices)
{
    for (int i = 0; i < N_TRIANGLES; i++) {
        double size = ldexp(1, (int)(gpu_random(state) % 8) - 2);
        double flat = gpu_random(state) % 3 == 0 ? 1e-5 : 1;

        for (int k = 0; k < 3; k++) {
            double middle = gpu_random_float(state, -2, SIDE + 2);

            for (int m = 0; m < 3; m++) {
                vertices[9 * i + 3 * m + k] =
                    middle + size * (double)gpu_random_float(state, -1, 1);
            }
        }
        /* The third corner moves towards the middle of the first two. */
        for (int k = 0; k < 3; k++) {
            double *p = vertices + 9 * i + k;

            p[6] = (p[0] + p[3]) / 2 + (p[6] - (p[0] + p[3]) / 2) * flat;
        }
    }
}

static void random_rounds(struct gpu_env *env)
{
    uint32_t *grid = gpu_alloc(N_VOXELS * sizeof *grid);
    double vertices[9 * N_TRIANGLES];
    uint32_t triangles[3 * N_TRIANGLES];
    uint16_t values[N_TRIANGLES];
    uint64_t state = 11;
    uint64_t n = 0;

    for (uint32_t i = 0; i < 3 * N_TRIANGLES; i++) {
        triangles[i] = i;
    }
    for (int round = 0; round < N_ROUNDS; round++) {
        struct vxd_svdag_mesh mesh = {vertices,    3 * N_TRIANGLES,
                                      triangles,   values,
                                      N_TRIANGLES, (enum vxd_svdag_mesh_rule)(round % 2)};
        struct vxd_svdag_mesh_state end;
        size_t n_lists;

        random_mesh(&state, vertices);
        for (int i = 0; i < N_TRIANGLES; i++) {
            values[i] = (uint16_t)(gpu_random(&state) % 1000);
        }
        n += run(env, &small, &mesh, grid, &end, &n_lists);
        CHECK_INT(n_wrong(&mesh, grid), 0);
        CHECK_INT(end.n_non_finite, 0);
    }
    CHECK(n > 5000);
    free(grid);
}

static void test_voxels_of_random_triangles_are_those_that_they_meet(void)
{
    gpu_each_backend(random_rounds);
}

/* --- surfaces -------------------------------------------------------------------------------- */

enum {
    N_RINGS = 12,
    N_SECTORS = 20,
    N_BALL = 2 * N_RINGS * N_SECTORS
};

/* A closed ball around the middle of the scene. */
static void make_ball(double radius, double *vertices, uint32_t *triangles)
{
    size_t n = 0;

    for (uint32_t i = 0; i <= N_RINGS; i++) {
        for (uint32_t j = 0; j < N_SECTORS; j++) {
            double a = 3.14159265358979 * i / N_RINGS;
            double b = 2 * 3.14159265358979 * j / N_SECTORS;
            uint32_t next = (j + 1) % N_SECTORS;
            uint32_t row = i * N_SECTORS;
            double *p = vertices + 3 * ((size_t)row + j);

            p[0] = SIDE / 2 + 0.1 + radius * sin(a) * cos(b);
            p[1] = SIDE / 2 - 0.2 + radius * sin(a) * sin(b);
            p[2] = SIDE / 2 + 0.3 + radius * cos(a);
            if (i < N_RINGS) {
                const uint32_t two[6] = {
                    row + j,    row + N_SECTORS + j, row + next,
                    row + next, row + N_SECTORS + j, row + N_SECTORS + next};

                memcpy(triangles + 3 * n, two, sizeof two);
                n += 2;
            }
        }
    }
}

/* Floods from the first voxel through voxels that are not set, to neighbours by faces, or by faces,
 * edges and corners. Returns whether it reaches the middle. */
static bool floods_to_middle(const uint32_t *grid, bool by_corners)
{
    uint8_t *seen = gpu_alloc(N_VOXELS);
    int *stack = gpu_alloc(N_VOXELS * sizeof *stack);
    int n = 1;
    bool reached;

    memset(seen, 0, N_VOXELS);
    stack[0] = 0;
    seen[0] = 1;
    while (n > 0) {
        int i = stack[--n];

        for (int d = 0; d < 27; d++) {
            int at[3] = {i / SIDE / SIDE + d / 9 - 1, i / SIDE % SIDE + d / 3 % 3 - 1,
                         i % SIDE + d % 3 - 1};
            int n_steps = (d / 9 != 1) + (d / 3 % 3 != 1) + (d % 3 != 1);
            int next = (at[0] * SIDE + at[1]) * SIDE + at[2];

            if (n_steps == 0 || (n_steps > 1 && !by_corners) || at[0] < 0 ||
                at[0] >= SIDE || at[1] < 0 || at[1] >= SIDE || at[2] < 0 ||
                at[2] >= SIDE || seen[next] != 0 || grid[next] != 0) {
                continue;
            }
            seen[next] = 1;
            stack[n++] = next;
        }
    }
    reached = seen[((SIDE / 2) * SIDE + SIDE / 2) * SIDE + SIDE / 2] != 0;
    free(stack);
    free(seen);
    return reached;
}

static void closed_surfaces(struct gpu_env *env)
{
    double vertices[3 * (N_RINGS + 1) * N_SECTORS];
    uint32_t triangles[3 * N_BALL];
    uint32_t *grids[2] = {gpu_alloc(N_VOXELS * sizeof(uint32_t)),
                          gpu_alloc(N_VOXELS * sizeof(uint32_t))};

    for (double radius = 3; radius < 14; radius += 1.7) {
        size_t n_extra = 0;
        uint64_t n[2];

        make_ball(radius, vertices, triangles);
        for (int rule = 0; rule < 2; rule++) {
            const struct vxd_svdag_mesh mesh = {
                vertices, (N_RINGS + 1) * N_SECTORS,     triangles, NULL,
                N_BALL,   (enum vxd_svdag_mesh_rule)rule};
            struct vxd_svdag_mesh_state end;
            size_t n_lists;

            n[rule] = run(env, &small, &mesh, grids[rule], &end, &n_lists);
            CHECK(!floods_to_middle(grids[rule], rule == 0));
        }
        for (size_t i = 0; i < N_VOXELS; i++) {
            n_extra += grids[1][i] != 0 && grids[0][i] == 0;
        }
        CHECK_INT(n_extra, 0);
        CHECK(n[1] < n[0] && floods_to_middle(grids[1], true));
    }
    free(grids[1]);
    free(grids[0]);
}

static void test_nothing_passes_a_closed_surface(void)
{
    gpu_each_backend(closed_surfaces);
}

/* --- sizes and borders ----------------------------------------------------------------------- */

/* A rectangle in the plane z, of two triangles. */
static void make_rectangle(double low, double high, double z, double vertices[12])
{
    const double corners[12] = {low, low, z, high, low, z, high, high, z, low, high, z};

    memcpy(vertices, corners, sizeof corners);
}

static const uint32_t rectangle[6] = {0, 1, 2, 0, 2, 3};

static void planes(struct gpu_env *env)
{
    uint32_t *grid = gpu_alloc(N_VOXELS * sizeof *grid);
    double vertices[12];

    for (int rule = 0; rule < 2; rule++) {
        struct vxd_svdag_mesh mesh = {vertices, 4, rectangle,
                                      NULL,     2, (enum vxd_svdag_mesh_rule)rule};
        struct vxd_svdag_mesh_state end;
        size_t n_lists;

        /* A plane between two layers is in the higher one, and in no other. */
        make_rectangle(2.25, 9.75, 5, vertices);
        CHECK_INT(run(env, &small, &mesh, grid, &end, &n_lists), 64);
        CHECK_INT(grid[(4 * SIDE + 4) * SIDE + 5], 1);
        /* The whole of a layer, though the rectangle is larger than the scene. */
        make_rectangle(-1e6, 1e6, 31.5, vertices);
        CHECK_INT(run(env, &small, &mesh, grid, &end, &n_lists), SIDE * SIDE);
        make_rectangle(-9, 40, SIDE, vertices);
        CHECK_INT(run(env, &small, &mesh, grid, &end, &n_lists), 0);
        CHECK_INT(end.n_outside, 2);
        vertices[4] = NAN;
        CHECK_INT(run(env, &small, &mesh, grid, &end, &n_lists), 0);
        CHECK_INT(end.n_non_finite, 1);
        vertices[4] = -3e9;
        CHECK_INT(run(env, &small, &mesh, grid, &end, &n_lists), 0);
        CHECK_INT(end.n_non_finite, 1);
        mesh.n = 0;
        CHECK_INT(run(env, &small, &mesh, grid, &end, &n_lists), 0);
        CHECK_INT(n_lists, 0);
    }
    /* A point and a line: conservative alone. */
    for (int rule = 0; rule < 2; rule++) {
        const uint32_t corners[6] = {0, 0, 0, 0, 1, 1};
        const double two[6] = {1.5, 1.5, 1.5, 1.5, 9.5, 1.5};
        struct vxd_svdag_mesh mesh = {two,  2, corners,
                                      NULL, 2, (enum vxd_svdag_mesh_rule)rule};
        struct vxd_svdag_mesh_state end;
        size_t n_lists;

        CHECK_INT(run(env, &small, &mesh, grid, &end, &n_lists), rule == 0 ? 9 : 0);
    }
    free(grid);
}

static void test_planes_points_and_lines_at_borders(void)
{
    gpu_each_backend(planes);
}

/* A mesh of more voxels than one call takes, in a scene of 2^16 a side. */
static void large_mesh(struct gpu_env *env)
{
    const struct vxd_svdag_format format = {16, 0, false};
    double vertices[12];
    struct vxd_svdag_mesh mesh = {vertices, 4, rectangle, NULL, 2, VXD_SVDAG_MESH_THIN};
    struct vxd_svdag_mesh_state end;
    size_t n_lists;
    uint64_t n;

    make_rectangle(30000.25, 30000.25 + 1500, 41000.5, vertices);
    n = run(env, &format, &mesh, NULL, &end, &n_lists);
    CHECK_INT(end.n_voxels >= n, 1);
    CHECK(n >= UINT64_C(1500) * 1500 && n <= UINT64_C(1502) * 1502);
    CHECK(n_lists > 1);
}

static void test_large_triangles_come_in_parts(void)
{
    gpu_each_backend(large_mesh);
}

static void bad_arguments(struct gpu_env *env)
{
    double vertices[12] = {0};
    const uint32_t beyond[3] = {0, 1, 4};
    struct vxd_svdag_mesh mesh = {vertices, 4, beyond, NULL, 1, VXD_SVDAG_MESH_THIN};
    struct vxd_svdag_format format = small;
    struct vxd_svdag_mesh_state state = {0};
    struct vxd_svdag_voxel_list list;
    struct vxd_err err = {0};

    CHECK_INT(vxd_svdag_list_triangles(env->queue, &format, &mesh, &state, &list, &err),
              VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "triangles");
    mesh.triangles = rectangle;
    mesh.rule = (enum vxd_svdag_mesh_rule)2;
    CHECK_INT(vxd_svdag_list_triangles(env->queue, &format, &mesh, &state, &list, &err),
              VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "rule");
    mesh.rule = VXD_SVDAG_MESH_THIN;
    format.depth = 22;
    CHECK_INT(vxd_svdag_list_triangles(env->queue, &format, &mesh, &state, &list, &err),
              VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "depth");
    CHECK_INT(state.triangle, 0);
}

static void test_bad_arguments_are_refused(void)
{
    gpu_each_backend(bad_arguments);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_voxels_of_random_triangles_are_those_that_they_meet),
    VXD_TEST(test_nothing_passes_a_closed_surface),
    VXD_TEST(test_planes_points_and_lines_at_borders),
    VXD_TEST(test_large_triangles_come_in_parts),
    VXD_TEST(test_bad_arguments_are_refused),
};

VXD_TEST_MAIN(tests)
