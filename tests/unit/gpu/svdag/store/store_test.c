// SPDX-License-Identifier: Apache-2.0
/* Stores: leaves, inner nodes and verify, against a dense grid whose nodes are
 * distinguished by their voxels alone. Where a store has no GPU backend, only the CPU is
 * tested. */
#include "tests/support/test.h"

#include "gpu/svdag/node/node_math.h"
#include "gpu/svdag/store/store.h"
#include "tests/support/svdag/svdag_run.h"
#include "tests/support/svdag/svdag_scene.h"
#include "tests/support/gpu/gpu_helpers.h"

enum {
    DEPTH = 5,
    N_VOXELS = 1 << (3 * DEPTH),
    N_FORMATS = 7,
    /* Voxels of the model: 0 is not set, */
    FREE = 1,
    MATERIAL = 2 /* and more: materials */
};

static const struct vxd_svdag_format formats[N_FORMATS] = {
    {DEPTH, 0, false}, {DEPTH, 0, true},  {DEPTH, 4, false}, {DEPTH, 4, true},
    {DEPTH, 8, false}, {DEPTH, 16, true}, {DEPTH, 8, true}};

static struct vxd_svdag *make_svdag(struct gpu_env *env,
                                    const struct vxd_svdag_format *format)
{
    const struct vxd_svdag_spec spec = {.format = *format,
                                        .store = gpu_svdag_store(format),
                                        .table_items = (uint64_t)1 << 14};

    return gpu_svdag_create(env, &spec);
}

static struct vxd_svdag_usage usage_of(const struct vxd_svdag *svdag)
{
    struct vxd_svdag_usage usage;

    vxd_svdag_get_usage(svdag, &usage);
    return usage;
}

/* --- the model: voxels in Morton order, so that every cube is one run of them ---------- */

/* A random grid with runs of uniform cubes, of noise, and of repeated leaves. */
static void random_grid(uint32_t *grid, const struct vxd_svdag_format *format,
                        uint64_t *state)
{
    uint32_t n_codes = MATERIAL + vxd_svdag_n_materials(format);
    uint32_t leaves[8][64];

    for (int i = 0; i < 8 * 64; i++) {
        leaves[i / 64][i % 64] = (uint32_t)(gpu_random(state) % n_codes);
    }
    memset(grid, 0, N_VOXELS * sizeof *grid);
    for (int step = 0; step < 200; step++) {
        size_t n = (size_t)1 << (3 * (int)(gpu_random(state) % 4));
        size_t first = gpu_random(state) % (N_VOXELS / n) * n;
        uint32_t kind = (uint32_t)(gpu_random(state) % 4);
        uint32_t code = (uint32_t)(gpu_random(state) % n_codes);

        for (size_t i = first; i < first + n; i++) {
            grid[i] = kind == 0   ? code
                      : kind == 1 ? leaves[code % 8][i % 64]
                      : kind == 2 ? (gpu_random(state) % 2 == 0 ? code : 0)
                                  : (uint32_t)(gpu_random(state) % n_codes);
        }
    }
    if (!format->tracks_free) {
        for (int i = 0; i < N_VOXELS; i++) {
            grid[i] = grid[i] == FREE ? 0 : grid[i];
        }
    }
}

static bool is_uniform(const uint32_t *grid, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        if (grid[i] != grid[0]) {
            return false;
        }
    }
    return true;
}

/* The values of a leaf's set voxels in order; returns how many, or 0 if all are equal. */
static int block_of(const uint32_t *leaf, uint32_t values[64])
{
    bool differ = false;
    int n = 0;

    for (int i = 0; i < 64; i++) {
        if (leaf[i] != 0) {
            values[n] = leaf[i];
            differ = differ || leaf[i] != values[0];
            n++;
        }
    }
    return differ ? n : 0;
}

static size_t node_words(const uint32_t *cube, int height, int value_bits)
{
    size_t n_child = (size_t)1 << (3 * (height - 1));
    size_t n_words = 1;
    int n_set = 0;

    for (int i = 0; i < 64 && height == VXD_SVDAG_LEAF_HEIGHT; i++) {
        n_set += cube[i] != 0 ? 1 : 0;
    }
    if (height == VXD_SVDAG_LEAF_HEIGHT) {
        return value_bits == 0   ? 2
               : value_bits == 1 ? 4
               : value_bits == 4 ? 2 + ((size_t)n_set + 7) / 8
                                 : 3;
    }
    for (size_t i = 0; i < 8; i++) {
        const uint32_t *child = cube + i * n_child;

        n_words += child[0] == 0 && is_uniform(child, n_child) ? 0 : 1;
    }
    return n_words;
}

/* Counts distinct cubes by comparing each with all earlier ones. */
static void model_summary(const uint32_t *grid, int value_bits,
                          struct vxd_svdag_summary *out)
{
    static uint32_t blocks[N_VOXELS / 64][65];

    *out = (struct vxd_svdag_summary){0};
    for (int i = 0; i < N_VOXELS; i++) {
        out->n_free += grid[i] == FREE ? 1 : 0;
        out->n_occupied += grid[i] >= MATERIAL ? 1 : 0;
    }
    for (int height = VXD_SVDAG_LEAF_HEIGHT; height <= DEPTH; height++) {
        size_t n = (size_t)1 << (3 * height);

        for (const uint32_t *cube = grid; cube < grid + N_VOXELS; cube += n) {
            const uint32_t *same = grid;

            while (memcmp(same, cube, n * sizeof *cube) != 0) {
                same += n;
            }
            if (same == cube && !is_uniform(cube, n)) {
                out->n_nodes[height]++;
                out->node_bytes += 4 * node_words(cube, height, value_bits);
            }
        }
    }
    for (int i = 0; i < N_VOXELS && value_bits >= 8; i += 64) {
        uint32_t *block = blocks[out->n_blocks];
        int n = block_of(grid + i, block + 1);
        uint64_t same = 0;

        block[0] = (uint32_t)n;
        while (memcmp(blocks[same], block, (size_t)(n + 1) * sizeof *block) != 0) {
            same++;
        }
        if (n > 0 && same == out->n_blocks) {
            out->n_blocks++;
            out->node_bytes += 4 * (1 + ((size_t)(n * value_bits) + 31) / 32);
        }
    }
}

static struct vxd_svdag_leaf leaf_of(const uint32_t *voxels, uint16_t values[64])
{
    struct vxd_svdag_leaf leaf = {.is_mixed = true, .values = values};

    for (int i = 0; i < 64; i++) {
        leaf.set |= (uint64_t)(voxels[i] != 0) << i;
        leaf.free |= (uint64_t)(voxels[i] == FREE) << i;
        values[i] = (uint16_t)(voxels[i] >= MATERIAL ? voxels[i] - MATERIAL : 7777);
    }
    return leaf;
}

/* Inserts a whole grid, with leaves in the order first, first + step, ... modulo their
 * number. */
static uint32_t put_grid(struct vxd_svdag *svdag, const uint32_t *grid, size_t first,
                         size_t step)
{
    static uint32_t refs[N_VOXELS / 64];
    struct vxd_svdag_writer writer = {.svdag = svdag};
    size_t n = N_VOXELS / 64;

    for (size_t k = 0; k < n; k++) {
        size_t i = (first + k * step) % n;
        uint16_t values[64];
        struct vxd_svdag_leaf leaf = leaf_of(grid + 64 * i, values);

        CHECK_INT(vxd_svdag_leaf_put(&writer, &leaf, &refs[i], NULL), VXD_OK);
    }
    for (int height = 3; height <= DEPTH; height++) {
        n /= 8;
        for (size_t i = 0; i < n; i++) {
            uint32_t children[8];

            memcpy(children, refs + 8 * i, sizeof children);
            CHECK_INT(vxd_svdag_inner_put(&writer, height, children, &refs[i], NULL),
                      VXD_OK);
        }
    }
    vxd_svdag_writer_close(&writer);
    return refs[0];
}

static void check_voxels(const struct vxd_svdag *svdag, uint32_t root,
                         const uint32_t *grid)
{
    int n_wrong = 0;

    for (uint32_t i = 0; i < N_VOXELS; i++) {
        uint32_t x = (uint32_t)vxd_gather3(i >> 2);
        uint32_t y = (uint32_t)vxd_gather3(i >> 1);
        uint32_t z = (uint32_t)vxd_gather3(i);
        uint32_t value;
        unsigned state = vxd_svdag_voxel(&svdag->view, root, x, y, z, &value);

        n_wrong += grid[i] == 0 ? state != VXD_SVDAG_UNKNOWN
                   : grid[i] == FREE
                       ? state != VXD_SVDAG_FREE
                       : state != VXD_SVDAG_OCCUPIED || value != grid[i] - MATERIAL;
    }
    CHECK_INT(n_wrong, 0);
}

static void check_summary(const struct vxd_svdag_summary *is,
                          const struct vxd_svdag_summary *expected)
{
    CHECK_INT(is->n_occupied, expected->n_occupied);
    CHECK_INT(is->n_free, expected->n_free);
    CHECK_INT(is->n_blocks, expected->n_blocks);
    CHECK_INT(is->node_bytes, expected->node_bytes);
    for (int height = 0; height <= VXD_SVDAG_MAX_DEPTH; height++) {
        CHECK_INT(is->n_nodes[height], expected->n_nodes[height]);
    }
}

static void test_tree_of_random_grid_is_the_models(void)
{
    static uint32_t grid[N_VOXELS];
    struct gpu_env env;
    uint64_t state = 5;

    gpu_env_create(&env, VXD_BACKEND_CPU, 2, 0, 0);
    for (int i = 0; i < 3 * N_FORMATS; i++) {
        const struct vxd_svdag_format *format = &formats[i % N_FORMATS];
        struct vxd_svdag *svdag = make_svdag(&env, format);
        struct vxd_svdag *other = make_svdag(&env, format);
        struct vxd_svdag_summary expected;
        struct vxd_svdag_summary is;
        struct vxd_svdag_summary again;
        struct vxd_svdag_usage usage;
        uint64_t n_occupied;
        uint64_t n_free;
        uint32_t root;
        uint32_t other_root;
        struct vxd_err err = {0};

        random_grid(grid, format, &state);
        model_summary(grid, vxd_svdag_value_bits(format), &expected);
        root = put_grid(svdag, grid, 0, 1);
        check_voxels(svdag, root, grid);
        CHECK_INT(vxd_svdag_verify(env.queue, svdag, root, &is, &err), VXD_OK);
        CHECK_STR(err.message, "");
        check_summary(&is, &expected);
        usage = usage_of(svdag);
        CHECK_INT(usage.n_leaves, expected.n_nodes[VXD_SVDAG_LEAF_HEIGHT]);
        CHECK_INT(usage.n_blocks, expected.n_blocks);
        vxd_svdag_ref_count(&svdag->view, root, DEPTH, &n_occupied, &n_free);
        CHECK_INT(n_occupied, expected.n_occupied);
        CHECK_INT(n_free, expected.n_free);

        /* Another order of insertion gives other addresses and the same digest. */
        other_root = put_grid(other, grid, 100, 77);
        CHECK_INT(vxd_svdag_verify(env.queue, other, other_root, &again, &err), VXD_OK);
        check_summary(&again, &expected);
        CHECK(memcmp(is.digest, again.digest, sizeof is.digest) == 0);
        CHECK_INT(put_grid(svdag, grid, 3, 5), root);
        grid[i] = grid[i] == MATERIAL ? 0 : MATERIAL;
        other_root = put_grid(other, grid, 0, 1);
        CHECK_INT(vxd_svdag_verify(env.queue, other, other_root, &again, &err), VXD_OK);
        CHECK(memcmp(is.digest, again.digest, sizeof is.digest) != 0);
        vxd_svdag_destroy(env.queue, svdag);
        vxd_svdag_destroy(env.queue, other);
    }
    gpu_env_destroy(&env);
}

static void test_leaf_put_and_read_gives_its_voxels(void)
{
    struct gpu_env env;
    uint64_t state = 9;

    gpu_env_create(&env, VXD_BACKEND_CPU, 1, 0, 0);
    for (int f = 0; f < N_FORMATS; f++) {
        struct vxd_svdag *svdag = make_svdag(&env, &formats[f]);
        struct vxd_svdag_writer writer = {.svdag = svdag};
        uint32_t n_codes = MATERIAL + vxd_svdag_n_materials(&formats[f]);

        for (int i = 0; i < 3000; i++) {
            uint32_t voxels[64];
            uint32_t ref;
            struct vxd_svdag_leaf leaf;
            struct vxd_svdag_leaf back;
            uint16_t values[2][64];
            /* Some grids have few codes, so that uniform and empty leaves occur. */
            uint64_t most = i % 3 == 0 ? n_codes : 1 + gpu_random(&state) % n_codes;
            uint64_t odds = gpu_random(&state) % 3;

            for (int k = 0; k < 64; k++) {
                uint32_t code =
                    (uint32_t)(most - 1 - (odds == 0 ? 0 : gpu_random(&state) % most));

                voxels[k] = code == FREE && !formats[f].tracks_free ? 0 : code;
            }
            leaf = leaf_of(voxels, values[0]);
            REQUIRE(vxd_svdag_leaf_put(&writer, &leaf, &ref, NULL) == VXD_OK);
            CHECK_INT(vxd_svdag_is_node(ref), !is_uniform(voxels, 64));
            CHECK_INT(ref == VXD_SVDAG_EMPTY, leaf.set == 0);
            vxd_svdag_leaf_read(&svdag->view, ref, values[1], &back);
            CHECK(back.set == leaf.set && back.free == leaf.free);
            for (int k = 0; k < 64 && formats[f].material_bits > 0; k++) {
                CHECK(voxels[k] < MATERIAL ||
                      vxd_svdag_leaf_value(&back, k) == values[0][k]);
            }
        }
        vxd_svdag_writer_close(&writer);
        vxd_svdag_destroy(env.queue, svdag);
    }
    gpu_env_destroy(&env);
}

/* An edit of a leaf at once and voxel by voxel agree: with few values, so that leaves of
 * one, two and more values occur, some of them full. */
static void edit_both(uint64_t *state, bool tracks_free, uint32_t n_materials,
                      struct vxd_svdag_leaf *leaf, uint32_t voxels[64])
{
    const uint64_t any = gpu_random(state) & gpu_random(state);
    const uint64_t wide = gpu_random(state) % 3 == 0 ? UINT64_MAX : any;
    const uint32_t value = (uint32_t)(gpu_random(state) % 3) * (n_materials - 1) / 2;
    const uint64_t occupied = leaf->set & ~leaf->free;
    uint64_t mask = gpu_random(state) % 4 == 0 ? any & (~any + 1) : wide;
    uint64_t equal = 0;
    uint32_t code = MATERIAL + value;

    switch (gpu_random(state) % 6) {
    case 0:
        leaf->set &= ~mask;
        leaf->free &= ~mask;
        code = 0;
        break;
    case 1:
        if (!tracks_free) {
            return;
        }
        leaf->set |= mask;
        leaf->free |= mask;
        code = FREE;
        break;
    case 2: /* voxels of one value get another one */
        mask &= occupied;
        for (int i = 0; i < 64; i++) {
            equal |= (uint64_t)(voxels[i] == MATERIAL + n_materials - 1) << i;
        }
        CHECK(vxd_svdag_leaf_find_value(leaf, mask, n_materials - 1) == (mask & equal));
        mask &= equal;
        break;
    default:
        leaf->set |= mask;
        leaf->free &= ~mask;
        break;
    }
    for (int i = 0; i < 64; i++) {
        voxels[i] = (mask >> i & 1) != 0 ? code : voxels[i];
    }
    if (code < MATERIAL || mask == 0) {
        return;
    }
    if ((mask & (mask - 1)) == 0) {
        vxd_svdag_leaf_set_voxel(leaf, __builtin_ctzll(mask), value);
    } else {
        vxd_svdag_leaf_set_value(leaf, mask, (uint16_t)value);
    }
}

static void test_leaf_edited_by_masks_is_that_of_its_voxels(void)
{
    struct gpu_env env;
    uint64_t state = 17;

    gpu_env_create(&env, VXD_BACKEND_CPU, 1, 0, 0);
    for (int f = 0; f < N_FORMATS; f++) {
        struct vxd_svdag *svdag;
        struct vxd_svdag_writer writer = {0};
        uint32_t voxels[64] = {0};
        uint32_t old = VXD_SVDAG_EMPTY;

        if (formats[f].material_bits == 0) {
            continue;
        }
        svdag = make_svdag(&env, &formats[f]);
        writer.svdag = svdag;
        for (int i = 0; i < 20000; i++) {
            uint16_t values[2][64];
            struct vxd_svdag_change change = {0};
            struct vxd_svdag_change want = {0};
            struct vxd_svdag_change pair;
            struct vxd_svdag_leaf before;
            struct vxd_svdag_leaf leaf;
            struct vxd_svdag_leaf plain;
            uint32_t was[64];
            uint32_t ref;
            uint32_t same;

            memcpy(was, voxels, sizeof was);
            vxd_svdag_leaf_split(&svdag->view, old, values[0], &leaf);
            before = leaf;
            for (uint64_t k = 1 + gpu_random(&state) % 3; k > 0; k--) {
                edit_both(&state, formats[f].tracks_free,
                          vxd_svdag_n_materials(&formats[f]), &leaf, voxels);
            }
            for (int k = 0; k < 64; k++) {
                want.n_added += was[k] < MATERIAL && voxels[k] >= MATERIAL;
                want.n_removed += was[k] >= MATERIAL && voxels[k] < MATERIAL;
                want.n_freed += was[k] != FREE && voxels[k] == FREE;
                want.n_changed +=
                    was[k] >= MATERIAL && voxels[k] >= MATERIAL && was[k] != voxels[k];
            }
            CHECK_INT(
                vxd_svdag_change_add_edited(&svdag->view, old, &before, &leaf, &change),
                memcmp(was, voxels, sizeof was) != 0);
            plain = leaf_of(voxels, values[1]);
            REQUIRE(vxd_svdag_leaf_put(&writer, &leaf, &ref, NULL) == VXD_OK);
            REQUIRE(vxd_svdag_leaf_put(&writer, &plain, &same, NULL) == VXD_OK);
            REQUIRE(ref == same);
            pair = vxd_svdag_change_leaves(&svdag->view, old, ref);
            CHECK(memcmp(&change, &want, sizeof want) == 0);
            CHECK(memcmp(&pair, &want, sizeof want) == 0);
            old = ref;
        }
        vxd_svdag_writer_close(&writer);
        vxd_svdag_destroy(env.queue, svdag);
    }
    gpu_env_destroy(&env);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_tree_of_random_grid_is_the_models),
    VXD_TEST(test_leaf_put_and_read_gives_its_voxels),
    VXD_TEST(test_leaf_edited_by_masks_is_that_of_its_voxels),
};

VXD_TEST_MAIN(tests)
