// SPDX-License-Identifier: Apache-2.0
/* Operations on all voxels of a leaf at once, by masks or eight values at a time, agree
 * with a loop over its voxels: shifts between leaves, rotations, nibbles, and packed
 * 4-bit values together with unpacked ones. */
#include <stdlib.h>
#include <string.h>

#include "gpu/svdag/node/node_math.h"
#include "tests/support/gpu/gpu_helpers.h"
#include "tests/support/test.h"

enum {
    N_ROUNDS = 200,
    N_TURNS = 48,
    SIDE = 4
};

static uint64_t bit_at(const int p[3])
{
    return (uint64_t)1 << vxd_svdag_leaf_bit((uint32_t)p[0], (uint32_t)p[1],
                                             (uint32_t)p[2]);
}

/* The i-th voxel of a leaf, x slowest. */
static void voxel_of(int i, int p[3])
{
    p[0] = i / (SIDE * SIDE);
    p[1] = i / SIDE % SIDE;
    p[2] = i % SIDE;
}

static uint64_t between_by_voxels(const uint64_t leaves[8], const int from[3])
{
    uint64_t mask = 0;

    for (int i = 0; i < 64; i++) {
        int p[3];
        int in[3];
        int leaf = 0;

        voxel_of(i, p);
        for (int axis = 0; axis < 3; axis++) {
            leaf = leaf << 1 | (p[axis] + from[axis]) / SIDE;
            in[axis] = (p[axis] + from[axis]) % SIDE;
        }
        mask |= (leaves[leaf] & bit_at(in)) != 0 ? bit_at(p) : 0;
    }
    return mask;
}

static void test_leaf_between_eight_is_that_of_their_voxels(void)
{
    uint64_t seed = 1;

    for (int round = 0; round < N_ROUNDS; round++) {
        uint64_t leaves[8];

        for (int i = 0; i < 8; i++) {
            leaves[i] = gpu_random(&seed) & gpu_random(&seed);
        }
        for (int i = 0; i < 64; i++) {
            int from[3];

            voxel_of(i, from);
            REQUIRE(vxd_svdag_leaf_between(leaves, from) ==
                    between_by_voxels(leaves, from));
        }
    }
}

/* The k-th of the 48 rotations and reflections: a permutation of the axes, and signs. */
static void matrix_of(int k, int8_t matrix[3][3])
{
    static const int axes[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                   {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

    memset(matrix, 0, 9);
    for (int i = 0; i < 3; i++) {
        matrix[i][axes[k / 8][i]] = (k >> i & 1) != 0 ? -1 : 1;
    }
}

static void test_turned_leaf_is_that_of_its_voxels(void)
{
    uint64_t seed = 2;

    for (int round = 0; round < N_ROUNDS; round++) {
        const uint64_t mask = gpu_random(&seed);

        for (int k = 0; k < N_TURNS; k++) {
            int8_t matrix[3][3];
            uint64_t turned = 0;

            matrix_of(k, matrix);
            for (int i = 0; i < 64; i++) {
                int p[3];
                int from[3];

                voxel_of(i, p);
                for (int row = 0; row < 3; row++) {
                    from[row] = 0;
                    for (int column = 0; column < 3; column++) {
                        from[row] += matrix[row][column] * p[column];
                        from[row] += matrix[row][column] < 0 ? SIDE - 1 : 0;
                    }
                }
                turned |= (mask & bit_at(from)) != 0 ? bit_at(p) : 0;
            }
            REQUIRE(vxd_svdag_rotate_mask(mask, matrix) == turned);
        }
    }
}

static void test_nibbles_of_every_set_go_to_their_places_and_back(void)
{
    uint64_t seed = 3;

    for (uint32_t set = 0; set < 256; set++) {
        const uint32_t nibbles = (uint32_t)gpu_random(&seed);
        const uint32_t kept = vxd_svdag_bits_spread(set);
        uint32_t apart = 0;
        uint32_t any = 0;
        int n = 0;

        for (int i = 0; i < 8; i++) {
            if ((set >> i & 1) != 0) {
                apart |= (nibbles >> 4 * n++ & 15u) << 4 * i;
            }
            any |= (nibbles >> 4 * i & 15u) != 0 ? 1u << i : 0;
        }
        CHECK_INT(vxd_svdag_nibbles_deposit(nibbles, kept), apart);
        CHECK_INT(vxd_svdag_nibbles_extract(apart | ~(kept * 15u), kept),
                  n == 8 ? nibbles : nibbles & ((1u << 4 * n) - 1));
        CHECK_INT(vxd_svdag_nibbles_any(nibbles), any);
    }
}

/* A leaf with packed values, and the same leaf with one value per word. */
struct pair {
    uint16_t values[2][64];
    struct vxd_svdag_leaf leaves[2];
};

static void begin_pair(struct pair *pair, uint64_t *seed)
{
    memset(pair->leaves, 0, sizeof pair->leaves);
    for (int i = 0; i < 64; i++) {
        pair->values[0][i] = (uint16_t)gpu_random(seed);
    }
    memset(pair->values[1], 0, sizeof pair->values[1]);
    pair->leaves[0].is_packed = true;
    pair->leaves[0].values = pair->values[0];
    pair->leaves[1].values = pair->values[1];
}

static void check_pair(const struct pair *pair, const struct vxd_svdag_view *view)
{
    const struct vxd_svdag_leaf *packed = &pair->leaves[0];
    const struct vxd_svdag_leaf *plain = &pair->leaves[1];
    const uint64_t occupied = packed->set & ~packed->free;
    uint32_t words[2][VXD_SVDAG_MAX_ITEM_WORDS] = {{0}};
    uint32_t refs[2];
    bool has_words[2];

    for (int bit = 0; bit < 64; bit++) {
        if ((occupied >> bit & 1) != 0) {
            CHECK_INT(vxd_svdag_leaf_value(packed, bit),
                      vxd_svdag_leaf_value(plain, bit));
        }
    }
    for (uint32_t value = 0; value < 15; value++) {
        CHECK(vxd_svdag_leaf_find_value(packed, occupied, value) ==
              vxd_svdag_leaf_find_value(plain, occupied, value));
    }
    for (int i = 0; i < 2; i++) {
        has_words[i] = vxd_svdag_leaf_compose(view, &pair->leaves[i], words[i], &refs[i]);
    }
    CHECK_INT(has_words[0], has_words[1]);
    CHECK_INT(refs[0], refs[1]);
    CHECK_INT(memcmp(words[0], words[1], sizeof words[0]), 0);
}

/* Random voxels and masks, of few values or many, some of them FREE. */
static void test_packed_values_are_those_of_a_value_a_voxel(void)
{
    const struct vxd_svdag_view view = {.value_bits = 4, .free_value = 15};
    uint64_t seed = 4;
    int n_mixed = 0;

    for (int round = 0; round < 20 * N_ROUNDS; round++) {
        const uint64_t n_values = 1 + gpu_random(&seed) % 15;
        struct pair pair;

        begin_pair(&pair, &seed);
        for (int step = 0; step < 24; step++) {
            const uint64_t what = gpu_random(&seed) % 8;
            const uint32_t value = (uint32_t)(gpu_random(&seed) % n_values);
            uint64_t mask = gpu_random(&seed) & gpu_random(&seed);
            const int bit = (int)(gpu_random(&seed) % 64);

            mask = what == 7 ? ~(uint64_t)0 : what < 4 ? (uint64_t)1 << bit : mask;
            for (int i = 0; i < 2; i++) {
                struct vxd_svdag_leaf *leaf = &pair.leaves[i];

                leaf->set |= mask;
                leaf->free = what == 6 ? leaf->free | mask : leaf->free & ~mask;
                if (what < 4) {
                    vxd_svdag_leaf_set_voxel(leaf, bit, value);
                } else if (what != 6 && mask != 0) {
                    vxd_svdag_leaf_set_value(leaf, mask, (uint16_t)value);
                }
            }
            n_mixed += pair.leaves[0].is_mixed;
            check_pair(&pair, &view);
        }
    }
    CHECK(n_mixed > N_ROUNDS);
}

/* Few of the values differ: of many, all but one are equal, or some are FREE. */
static void test_nibbles_are_equal_where_a_loop_says_so(void)
{
    uint64_t state = 17;
    int n_equal = 0;

    for (int round = 0; round < 64 * N_ROUNDS; round++) {
        int n = 1 + round % 64;
        int free_value = round / 64 % 3 == 0 ? -1 : round / 64 % 3 == 1 ? 15 : 3;
        uint32_t value = (uint32_t)(gpu_random(&state) % 16);
        uint32_t other = (uint32_t)(gpu_random(&state) % 16);
        int at = (int)(gpu_random(&state) % (2 * (uint64_t)n));
        uint64_t frees = gpu_random(&state) & gpu_random(&state);
        uint32_t *words = gpu_alloc((size_t)(n + 7) / 8 * sizeof *words);
        uint16_t found = UINT16_MAX;
        uint32_t first = UINT32_MAX;
        bool are_equal = true;

        memset(words, 0, (size_t)(n + 7) / 8 * sizeof *words);
        for (int i = 0; i < n; i++) {
            uint32_t v = i == at ? other : value;

            v = free_value >= 0 && (frees >> i & 1) != 0 ? (uint32_t)free_value : v;
            words[i / 8] |= v << 4 * (i % 8);
            if ((int)v != free_value) {
                are_equal = are_equal && (first == UINT32_MAX || v == first);
                first = first == UINT32_MAX ? v : first;
            }
        }
        CHECK_INT(vxd_svdag_nibbles_equal(words, n, free_value, &found), are_equal);
        CHECK(!are_equal || first == UINT32_MAX || found == first);
        n_equal += are_equal;
        free(words);
    }
    CHECK(n_equal > 16 * N_ROUNDS && n_equal < 48 * N_ROUNDS);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_leaf_between_eight_is_that_of_their_voxels),
    VXD_TEST(test_turned_leaf_is_that_of_its_voxels),
    VXD_TEST(test_nibbles_of_every_set_go_to_their_places_and_back),
    VXD_TEST(test_packed_values_are_those_of_a_value_a_voxel),
    VXD_TEST(test_nibbles_are_equal_where_a_loop_says_so)};

VXD_TEST_MAIN(tests)
