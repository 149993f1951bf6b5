// SPDX-License-Identifier: Apache-2.0
/* How cubes lie to shapes, against each of their voxels: no answer is wrong, and those of boxes and
 * half-spaces, and which cubes are inside of a ball, are exact. An answer of PARTIAL for a cube
 * that is whole would make edits slower and change no scene, so that no other test sees it. */
#include "gpu/svdag/brush/brush_math.h"
#include "gpu/svdag/brush/capsule_math.h"
#include "tests/support/gpu/gpu_helpers.h"
#include "tests/support/test.h"

enum {
    N_CASES = 20000,
    SIDE = 64 /* of the cubes' space, voxels */
};

static int64_t random_in(uint64_t *seed, int64_t low, int64_t high)
{
    return low + (int64_t)(gpu_random(seed) % (uint64_t)(high - low + 1));
}

/* A coordinate in or near the space; many are on a centre or on a border of voxels. */
static int64_t random_place(uint64_t *seed)
{
    int64_t at = random_in(seed, -8 * VXD_SVDAG_UNIT, (SIDE + 8) * VXD_SVDAG_UNIT);
    int64_t half = VXD_SVDAG_UNIT / 2;

    return gpu_random(seed) % 2 == 0 ? at : at / half * half + random_in(seed, -1, 1);
}

static struct vxd_svdag_shape random_shape(uint64_t *seed, enum vxd_svdag_shape_kind kind)
{
    struct vxd_svdag_shape shape = {.kind = kind};

    for (int axis = 0; axis < 3; axis++) {
        shape.low[axis] = random_place(seed);
        shape.high[axis] = random_place(seed);
        shape.a[axis] = random_place(seed);
        shape.b[axis] = random_place(seed);
        shape.n[axis] = (int32_t)random_in(seed, -4, 4);
    }
    shape.n[2] = shape.n[0] == 0 && shape.n[1] == 0 ? 1 : shape.n[2];
    shape.r = random_in(seed, 0, 24 * VXD_SVDAG_UNIT);
    for (int axis = 0; axis < 3; axis++) {
        shape.d += shape.n[axis] * random_place(seed);
    }
    return shape;
}

/* The relation of a single voxel, by what brush.h says of the shape. */
static bool is_in(const struct vxd_svdag_shape *shape, const int64_t c[3])
{
    double along = 0;
    double length = 0;
    double squares = 0;
    int64_t sum = 0;
    bool is_between = true;

    for (int axis = 0; axis < 3; axis++) {
        double d = (double)(shape->b[axis] - shape->a[axis]);

        along += (double)(c[axis] - shape->a[axis]) * d;
        length += d * d;
        sum += shape->n[axis] * c[axis];
        is_between =
            is_between && c[axis] >= shape->low[axis] && c[axis] < shape->high[axis];
    }
    if (shape->kind == VXD_SVDAG_BOX) {
        return is_between;
    }
    if (shape->kind == VXD_SVDAG_HALF_SPACE) {
        return sum <= shape->d;
    }
    along = shape->kind == VXD_SVDAG_BALL || length == 0 || along < 0 ? 0
            : along > length                                          ? 1
                                                                      : along / length;
    for (int axis = 0; axis < 3; axis++) {
        double at =
            (double)shape->a[axis] + along * (double)(shape->b[axis] - shape->a[axis]);

        squares += ((double)c[axis] - at) * ((double)c[axis] - at);
    }
    return squares <= (double)shape->r * (double)shape->r;
}

static enum vxd_svdag_relation relation_of(const struct vxd_svdag_shape *shape,
                                           const struct vxd_svdag_extent *extent)
{
    return shape->kind == VXD_SVDAG_BOX    ? vxd_svdag_box_relation(shape, extent)
           : shape->kind == VXD_SVDAG_BALL ? vxd_svdag_ball_relation(shape, extent)
           : shape->kind == VXD_SVDAG_CAPSULE
               ? vxd_svdag_capsule_relation(shape, extent)
               : vxd_svdag_half_space_relation(shape, extent);
}

/* What the relation of a cube should be, by its voxels. */
static enum vxd_svdag_relation relation_by_voxel(const struct vxd_svdag_shape *shape,
                                                 const uint32_t corner[3], uint32_t side)
{
    uint32_t n_in = 0;

    for (uint32_t i = 0; i < side * side * side; i++) {
        const int64_t c[3] = {vxd_svdag_centre(corner[0] + i / side / side),
                              vxd_svdag_centre(corner[1] + i / side % side),
                              vxd_svdag_centre(corner[2] + i % side)};

        n_in += is_in(shape, c) ? 1 : 0;
    }
    return n_in == 0                    ? VXD_SVDAG_OUTSIDE
           : n_in == side * side * side ? VXD_SVDAG_INSIDE
                                        : VXD_SVDAG_PARTIAL;
}

static void check_shapes(enum vxd_svdag_shape_kind kind)
{
    bool is_exact = kind == VXD_SVDAG_BOX || kind == VXD_SVDAG_HALF_SPACE;
    uint64_t seed = 7 + (uint64_t)kind;
    int n_of[3] = {0};
    int n_loose = 0; /* PARTIAL where it need not be */

    for (int i = 0; i < vxd_test_rounds(N_CASES); i++) {
        struct vxd_svdag_shape shape = random_shape(&seed, kind);
        int height = (int)random_in(&seed, 0, 3);
        uint32_t side = 1u << height;
        uint32_t corner[3];
        struct vxd_svdag_extent extent;
        enum vxd_svdag_relation found;
        enum vxd_svdag_relation expected;

        for (int axis = 0; axis < 3; axis++) {
            corner[axis] = (uint32_t)random_in(&seed, 0, SIDE / (int64_t)side - 1) * side;
        }
        extent = vxd_svdag_extent_of(corner[0], corner[1], corner[2], height);
        found = relation_of(&shape, &extent);
        expected = relation_by_voxel(&shape, corner, side);
        REQUIRE(found == expected || (found == VXD_SVDAG_PARTIAL && !is_exact));
        REQUIRE(kind != VXD_SVDAG_BALL || found == expected ||
                expected == VXD_SVDAG_OUTSIDE);
        n_loose += found != expected ? 1 : 0;
        n_of[found]++;
    }
    CHECK(n_loose <= vxd_test_rounds(N_CASES) / 10);
    CHECK(n_of[0] > 0 && n_of[1] > 0 && n_of[2] > 0);
}

static void test_relation_to_a_box_is_that_of_its_voxels(void)
{
    check_shapes(VXD_SVDAG_BOX);
}

static void test_relation_to_a_half_space_is_that_of_its_voxels(void)
{
    check_shapes(VXD_SVDAG_HALF_SPACE);
}

static void test_relation_to_a_ball_is_never_wrong(void)
{
    check_shapes(VXD_SVDAG_BALL);
}

static void test_relation_to_a_capsule_is_never_wrong(void)
{
    check_shapes(VXD_SVDAG_CAPSULE);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_relation_to_a_box_is_that_of_its_voxels),
    VXD_TEST(test_relation_to_a_half_space_is_that_of_its_voxels),
    VXD_TEST(test_relation_to_a_ball_is_never_wrong),
    VXD_TEST(test_relation_to_a_capsule_is_never_wrong),
};

VXD_TEST_MAIN(tests)
