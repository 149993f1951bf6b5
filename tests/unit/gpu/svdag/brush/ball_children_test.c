// SPDX-License-Identifier: Apache-2.0
/* Relations of cubes to balls, and masks of leaves, agree with the relation of every
 * single voxel: near the ball and far from it, and at the limits of coordinates and
 * radii. */
#include "gpu/svdag/brush/brush_math.h"
#include "tests/support/gpu/gpu_helpers.h"
#include "tests/support/test.h"

enum {
    N_CASES = 200000,
    MAX_DEPTH = VXD_SVDAG_MAX_DEPTH
};

struct ball_case {
    struct vxd_svdag_shape shape;
    uint32_t corner[3]; /* voxels */
    int height;
};

static bool is_in(const struct vxd_svdag_shape *shape, const int64_t c[3])
{
    unsigned __int128 sum = 0;

    for (int axis = 0; axis < 3; axis++) {
        __int128 d = (__int128)c[axis] - shape->a[axis];

        sum += (unsigned __int128)(d * d);
    }
    return sum <= (unsigned __int128)shape->r * (unsigned __int128)shape->r;
}

/* A random cube, and a ball whose surface is near the cube's corner. For most, the centre
 * is a radius away along one axis, or in between along all three. */
static struct ball_case random_case(uint64_t *seed)
{
    const int64_t most = VXD_SVDAG_MAX_COORDINATE;
    struct ball_case out = {.shape = {.kind = VXD_SVDAG_BALL}};
    int bits = (int)(gpu_random(seed) % 32);
    int64_t r = (int64_t)(gpu_random(seed) >> (63 - bits));
    int64_t jitter = gpu_random(seed) % 4 == 0 ? 1 : (int64_t)4 * VXD_SVDAG_UNIT;

    out.height = VXD_SVDAG_LEAF_HEIGHT + (int)(gpu_random(seed) % (MAX_DEPTH - 1));
    out.shape.r = r < most ? r : most;
    for (int axis = 0; axis < 3; axis++) {
        uint32_t at = (uint32_t)(gpu_random(seed) >> (64 - MAX_DEPTH));
        int64_t d = (int64_t)(gpu_random(seed) % 3) * out.shape.r *
                    (gpu_random(seed) % 2 == 0 ? 1 : -1) / 2;

        out.corner[axis] = at & ~((1u << out.height) - 1);
        d += (int64_t)(gpu_random(seed) % (uint64_t)(2 * jitter)) - jitter;
        d += vxd_svdag_centre(out.corner[axis]);
        out.shape.a[axis] = d < -most ? -most : d > most ? most : d;
    }
    return out;
}

static uint64_t mask_by_voxel(const struct ball_case *at)
{
    uint64_t mask = 0;

    for (uint32_t i = 0; i < 64; i++) {
        uint32_t x = i >> 4;
        uint32_t y = i >> 2 & 3;
        uint32_t z = i & 3;
        int64_t c[3] = {vxd_svdag_centre(at->corner[0] + x),
                        vxd_svdag_centre(at->corner[1] + y),
                        vxd_svdag_centre(at->corner[2] + z)};

        mask |= (uint64_t)is_in(&at->shape, c)
                << vxd_svdag_leaf_index((int)x, (int)y, (int)z);
    }
    return mask;
}

static void test_ball_mask_of_a_leaf_is_that_of_its_voxels(void)
{
    uint64_t seed = 5;
    int n_partial = 0;

    for (int i = 0; i < N_CASES; i++) {
        struct ball_case at = random_case(&seed);
        struct vxd_svdag_extent extent =
            vxd_svdag_extent_of(at.corner[0], at.corner[1], at.corner[2], 2);
        uint64_t expected = mask_by_voxel(&at);

        REQUIRE(vxd_svdag_ball_mask(&at.shape, &extent) == expected);
        n_partial += expected != 0 && expected != ~(uint64_t)0;
    }
    CHECK(n_partial > N_CASES / 20);
}

static void test_ball_octants_are_what_each_part_is(void)
{
    uint64_t seed = 6;
    int n_of[3] = {0};

    for (int i = 0; i < N_CASES; i++) {
        struct ball_case at = random_case(&seed);
        struct vxd_svdag_extent extent =
            vxd_svdag_extent_of(at.corner[0], at.corner[1], at.corner[2], at.height);
        uint32_t side = 1u << (at.height - 1);
        unsigned outside;
        unsigned inside;

        vxd_svdag_ball_children(&at.shape, &extent, at.height, &outside, &inside);
        for (unsigned k = 0; k < 8; k++) {
            struct vxd_svdag_extent child_extent = vxd_svdag_extent_of(
                at.corner[0] + (k >> 2) * side, at.corner[1] + (k >> 1 & 1) * side,
                at.corner[2] + (k & 1) * side, at.height - 1);
            enum vxd_svdag_relation relation = (outside >> k & 1) != 0 ? VXD_SVDAG_OUTSIDE
                                               : (inside >> k & 1) != 0
                                                   ? VXD_SVDAG_INSIDE
                                                   : VXD_SVDAG_PARTIAL;

            REQUIRE(relation == vxd_svdag_ball_relation(&at.shape, &child_extent));
            n_of[relation]++;
        }
        CHECK_INT(outside & inside, 0);
    }
    CHECK(n_of[0] > N_CASES / 4 && n_of[1] > N_CASES / 4 && n_of[2] > N_CASES / 4);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_ball_mask_of_a_leaf_is_that_of_its_voxels),
    VXD_TEST(test_ball_octants_are_what_each_part_is)};

VXD_TEST_MAIN(tests)
