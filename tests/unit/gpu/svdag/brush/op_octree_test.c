// SPDX-License-Identifier: Apache-2.0
/* Relations of the eight children of a cube, computed at once, and masks of leaves,
 * computed several voxels at a time, agree with those of single voxels: for shapes of all
 * sizes, some of which need more than 64-bit arithmetic. */
#include "gpu/svdag/brush/brush_cpu.h"
#include "tests/support/svdag/svdag_grid.h"
#include "tests/support/gpu/gpu_helpers.h"
#include "tests/support/test.h"

enum {
    N_CASES = 40000,
    DEPTH = VXD_SVDAG_MAX_DEPTH,
    MAX_SHAPE_BITS = 29, /* so that products in the reference fit 128 bits */
    MAX_SEEN_HEIGHT = 4  /* largest cubes whose voxels are all checked */
};

struct shape_case {
    struct vxd_svdag_shape shape;
    uint32_t corner[3]; /* voxels */
    int height;
};

/* A random number of any magnitude below 2^bits, of either sign. */
static int64_t random_length(uint64_t *seed, int bits)
{
    int64_t length =
        (int64_t)(gpu_random(seed) >> (63 - gpu_random(seed) % (unsigned)bits));

    return gpu_random(seed) % 2 == 0 ? length : -length;
}

static int64_t within(int64_t c)
{
    const int64_t most = (int64_t)1 << MAX_SHAPE_BITS;

    return c < -most ? -most : c > most ? most : c;
}

/* A random cube, and a shape whose surface is near it. */
static struct shape_case random_case(enum vxd_svdag_shape_kind kind, int height,
                                     uint64_t *seed)
{
    struct shape_case out = {.shape = {.kind = kind}, .height = height};
    struct vxd_svdag_shape *shape = &out.shape;
    int64_t side = (int64_t)VXD_SVDAG_UNIT << height;
    int64_t size = random_length(seed, kind == VXD_SVDAG_NOISE_BALL ? 16 : 24);

    size = size < 0 ? -size : size;
    shape->r = size;
    shape->amplitude = (int64_t)(gpu_random(seed) % (uint64_t)(size / 2 + 2));
    shape->cell_bits = (int)(gpu_random(seed) % 6);
    shape->seed = (uint32_t)gpu_random(seed);
    for (int axis = 0; axis < 3; axis++) {
        int64_t centre;

        out.corner[axis] = (uint32_t)(gpu_random(seed) >> (64 - DEPTH)) >> height
                                                                               << height;
        centre = vxd_svdag_centre(out.corner[axis]) +
                 (int64_t)(gpu_random(seed) % (uint64_t)side);
        shape->a[axis] = within(centre + random_length(seed, 3) * size / 8);
        shape->b[axis] = within(shape->a[axis] + random_length(seed, 24));
        shape->low[axis] = within(centre - random_length(seed, 20) - size % 4096);
        shape->high[axis] = within(centre + random_length(seed, 20) + size % 4096);
        shape->n[axis] = (int32_t)random_length(seed, 12) | (axis == 0);
        shape->d += shape->n[axis] * centre;
    }
    return out;
}

static bool is_in(const struct shape_case *at, uint32_t x, uint32_t y, uint32_t z)
{
    const int64_t c[3] = {vxd_svdag_centre(at->corner[0] + x),
                          vxd_svdag_centre(at->corner[1] + y),
                          vxd_svdag_centre(at->corner[2] + z)};

    return gpu_svdag_is_in(&at->shape, c);
}

static uint64_t mask_by_voxel(const struct shape_case *at)
{
    uint64_t mask = 0;

    for (uint32_t i = 0; i < 64; i++) {
        mask |= (uint64_t)is_in(at, i >> 4, i >> 2 & 3, i & 3)
                << vxd_svdag_leaf_index((int)(i >> 4), (int)(i >> 2 & 3), (int)(i & 3));
    }
    return mask;
}

static void check_masks(enum vxd_svdag_shape_kind kind,
                        uint64_t (*mask)(const struct vxd_svdag_shape *shape,
                                         const struct vxd_svdag_extent *extent))
{
    const int n_cases = vxd_test_rounds(N_CASES);
    uint64_t seed = 7 + (uint64_t)kind;
    int n_partial = 0;

    for (int i = 0; i < n_cases; i++) {
        struct shape_case at = random_case(kind, VXD_SVDAG_LEAF_HEIGHT, &seed);
        struct vxd_svdag_extent extent =
            vxd_svdag_extent_of(at.corner[0], at.corner[1], at.corner[2], at.height);
        uint64_t expected = mask_by_voxel(&at);

        REQUIRE(mask(&at.shape, &extent) == expected);
        n_partial += expected != 0 && expected != ~(uint64_t)0;
    }
    CHECK(n_partial > n_cases / 40);
}

static uint64_t capsule_mask(const struct vxd_svdag_shape *shape,
                             const struct vxd_svdag_extent *extent)
{
    return vxd_svdag_capsule_mask(shape, extent);
}

static uint64_t noise_mask(const struct vxd_svdag_shape *shape,
                           const struct vxd_svdag_extent *extent)
{
    return vxd_svdag_noise_ball_mask(shape, extent);
}

static void test_capsule_mask_of_a_leaf_is_that_of_its_voxels(void)
{
    check_masks(VXD_SVDAG_CAPSULE, capsule_mask);
}

static void test_noise_mask_of_a_leaf_is_that_of_its_voxels(void)
{
    check_masks(VXD_SVDAG_NOISE_BALL, noise_mask);
}

static void test_capsule_that_64_bits_do_for_is_as_in_128(void)
{
    const int n_cases = vxd_test_rounds(N_CASES);
    uint64_t seed = 23;
    int n_of[2][2] = {0}; /* by arithmetic used, by result */

    for (int i = 0; i < 10 * n_cases; i++) {
        struct shape_case at =
            random_case(VXD_SVDAG_CAPSULE, VXD_SVDAG_LEAF_HEIGHT, &seed);
        const struct vxd_svdag_shape *shape = &at.shape;
        int64_t d[3];
        int64_t v[3];
        int64_t c[3];
        bool is_near;

        for (int axis = 0; axis < 3; axis++) {
            c[axis] = vxd_svdag_centre(at.corner[axis]);
            d[axis] = shape->b[axis] - shape->a[axis];
            v[axis] = c[axis] - shape->a[axis];
        }
        is_near = vxd_svdag_is_near_line(c, shape->a, shape->b, shape->r);
        REQUIRE(vxd_svdag_is_near_segment(c, shape->a, shape->b, shape->r) == is_near);
        n_of[vxd_svdag_capsule_fits_64(d, vxd_svdag_length_1(v))][is_near]++;
    }
    CHECK(n_of[0][0] > n_cases / 4 && n_of[0][1] > n_cases / 4);
    CHECK(n_of[1][0] > n_cases / 4 && n_of[1][1] > n_cases / 4);
}

static struct vxd_svdag_relations children_of(const struct shape_case *at)
{
    const struct vxd_svdag_extent extent =
        vxd_svdag_extent_of(at->corner[0], at->corner[1], at->corner[2], at->height);

    switch (at->shape.kind) {
    case VXD_SVDAG_BOX:
        return vxd_svdag_box_children(&at->shape, &extent, at->height);
    case VXD_SVDAG_HALF_SPACE:
        return vxd_svdag_half_space_children(&at->shape, &extent, at->height);
    case VXD_SVDAG_CAPSULE:
        return vxd_svdag_capsule_children(&at->shape, &extent, at->height);
    default:
        return vxd_svdag_noise_ball_children(&at->shape, &extent, at->height);
    }
}

static enum vxd_svdag_relation relation_of(const struct vxd_svdag_shape *shape,
                                           const struct vxd_svdag_extent *extent)
{
    return shape->kind == VXD_SVDAG_BOX ? vxd_svdag_box_relation(shape, extent)
           : shape->kind == VXD_SVDAG_HALF_SPACE
               ? vxd_svdag_half_space_relation(shape, extent)
           : shape->kind == VXD_SVDAG_CAPSULE
               ? vxd_svdag_capsule_relation(shape, extent)
               : vxd_svdag_noise_ball_relation(shape, extent);
}

/* Checks all voxels of a child cube. */
static void check_voxels(const struct shape_case *at, unsigned child,
                         enum vxd_svdag_relation relation)
{
    const uint32_t side = 1u << (at->height - 1);
    const uint32_t n = side * side * side;

    for (uint32_t i = 0; relation != VXD_SVDAG_PARTIAL && i < n; i++) {
        REQUIRE(is_in(at, (child >> 2) * side + i / side / side,
                      (child >> 1 & 1) * side + i / side % side,
                      (child & 1) * side + i % side) == (relation == VXD_SVDAG_INSIDE));
    }
}

static void check_children(enum vxd_svdag_shape_kind kind)
{
    const int n_cases = vxd_test_rounds(N_CASES);
    uint64_t seed = 40 + (uint64_t)kind;
    int n_of[3] = {0};

    for (int i = 0; i < n_cases; i++) {
        const int n_heights = i % 4 == 0 ? DEPTH - VXD_SVDAG_LEAF_HEIGHT : 2;
        struct shape_case at = random_case(
            kind,
            VXD_SVDAG_LEAF_HEIGHT + 1 + (int)(gpu_random(&seed) % (unsigned)n_heights),
            &seed);
        const struct vxd_svdag_relations children = children_of(&at);
        const uint32_t side = 1u << (at.height - 1);

        CHECK_INT(children.outside & children.inside, 0);
        for (unsigned k = 0; k < 8; k++) {
            const struct vxd_svdag_extent child_extent = vxd_svdag_extent_of(
                at.corner[0] + (k >> 2) * side, at.corner[1] + (k >> 1 & 1) * side,
                at.corner[2] + (k & 1) * side, at.height - 1);
            const enum vxd_svdag_relation relation =
                (children.outside >> k & 1) != 0  ? VXD_SVDAG_OUTSIDE
                : (children.inside >> k & 1) != 0 ? VXD_SVDAG_INSIDE
                                                  : VXD_SVDAG_PARTIAL;

            /* The relation of a noisy ball to a single leaf is not computed. */
            if (kind != VXD_SVDAG_NOISE_BALL || relation != VXD_SVDAG_PARTIAL ||
                at.height > VXD_SVDAG_LEAF_HEIGHT + 1) {
                REQUIRE(relation == relation_of(&at.shape, &child_extent));
            }
            if (at.height <= MAX_SEEN_HEIGHT) {
                check_voxels(&at, k, relation);
            }
            n_of[relation]++;
        }
    }
    CHECK(n_of[0] > n_cases / 4 && n_of[1] > n_cases / 4 && n_of[2] > n_cases / 4);
}

static void test_octants_of_boxes_are_what_each_part_is(void)
{
    check_children(VXD_SVDAG_BOX);
}

static void test_octants_of_half_spaces_are_what_each_part_is(void)
{
    check_children(VXD_SVDAG_HALF_SPACE);
}

static void test_octants_of_capsules_are_what_each_part_is(void)
{
    check_children(VXD_SVDAG_CAPSULE);
}

static void test_octants_of_noisy_balls_are_what_each_part_is(void)
{
    check_children(VXD_SVDAG_NOISE_BALL);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_capsule_mask_of_a_leaf_is_that_of_its_voxels),
    VXD_TEST(test_noise_mask_of_a_leaf_is_that_of_its_voxels),
    VXD_TEST(test_capsule_that_64_bits_do_for_is_as_in_128),
    VXD_TEST(test_octants_of_boxes_are_what_each_part_is),
    VXD_TEST(test_octants_of_half_spaces_are_what_each_part_is),
    VXD_TEST(test_octants_of_capsules_are_what_each_part_is),
    VXD_TEST(test_octants_of_noisy_balls_are_what_each_part_is)};

VXD_TEST_MAIN(tests)
