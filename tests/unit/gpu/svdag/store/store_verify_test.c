// SPDX-License-Identifier: Apache-2.0
/* vxd_svdag_verify: each rule of node_words_math.h is broken once, by items that no edit
 * makes; and scenes whose DAGs have far more paths than nodes. */
#include "tests/support/test.h"

#include "gpu/svdag/store/store.h"
#include "tests/support/svdag/svdag_run.h"
#include "tests/support/gpu/gpu_helpers.h"

#define UNIFORM VXD_SVDAG_UNIFORM
#define ALL 0xffffffffu

static struct vxd_svdag *make_svdag(struct gpu_env *env,
                                    const struct vxd_svdag_format *format)
{
    struct vxd_svdag_spec spec = {.format = *format};

    return gpu_svdag_create(env, &spec);
}

static uint32_t put(struct vxd_svdag *svdag, enum vxd_svdag_kind kind,
                    const uint32_t *words, int n_words)
{
    struct vxd_svdag_writer writer = {.svdag = svdag};
    uint32_t ref = VXD_SVDAG_EMPTY;

    CHECK_INT(vxd_svdag_put(&writer, kind, 2, words, n_words, &ref, NULL), VXD_OK);
    vxd_svdag_writer_close(&writer);
    return ref;
}

static uint32_t put_inner(struct vxd_svdag *svdag, int height, const uint32_t children[8])
{
    struct vxd_svdag_writer writer = {.svdag = svdag};
    uint32_t ref = VXD_SVDAG_EMPTY;

    CHECK_INT(vxd_svdag_inner_put(&writer, height, children, &ref, NULL), VXD_OK);
    vxd_svdag_writer_close(&writer);
    return ref;
}

/* The root above a reference of this height, which is child `octant` at every level. */
static uint32_t root_over(struct vxd_svdag *svdag, uint32_t ref, int height, int octant)
{
    while (height < svdag->spec.format.depth) {
        uint32_t children[8] = {0};

        children[octant] = ref;
        ref = put_inner(svdag, ++height, children);
    }
    return ref;
}

/* A leaf or inner node that breaks a rule. If it has a block, the block comes first, and
 * its reference replaces the last word of the node. */
struct broken {
    const char *rule; /* expected in the message; NULL: no rule is broken */
    int material_bits;
    bool tracks_free;
    int height; /* 2: a leaf */
    int n_words;
    uint32_t words[10];
    int n_block_words;
    uint32_t block[20];
};

static const struct broken leaves[] = {
    {NULL, 0, false, 2, 2, {ALL, 1}, 0, {0}},
    {"no voxel is set", 0, false, 2, 2, {0, 0}, 0, {0}},
    {"64 voxels are equal", 0, false, 2, 2, {ALL, ALL}, 0, {0}},
    {NULL, 0, true, 2, 4, {ALL, ALL, 1, 0}, 0, {0}},
    {"64 voxels are equal", 0, true, 2, 4, {ALL, ALL, 0, 0}, 0, {0}},
    {"64 voxels are equal", 0, true, 2, 4, {ALL, ALL, ALL, ALL}, 0, {0}},
    {"FREE and not set", 0, true, 2, 4, {3, 0, 4, 0}, 0, {0}},
    {NULL, 4, false, 2, 3, {3, 0, 0x21}, 0, {0}},
    {"are not zero", 4, false, 2, 3, {3, 0, 0x321}, 0, {0}},
    {"64 voxels are equal",
     4,
     false,
     2,
     10,
     {ALL, ALL, 0x22222222u, 0x22222222u, 0x22222222u, 0x22222222u, 0x22222222u,
      0x22222222u, 0x22222222u, 0x22222222u},
     0,
     {0}},
    {NULL, 8, false, 2, 3, {3, 0, UNIFORM | 255}, 0, {0}},
    {"no valid value", 8, false, 2, 3, {3, 0, UNIFORM | 256}, 0, {0}},
    {"64 voxels are equal", 8, true, 2, 3, {ALL, ALL, UNIFORM | 9}, 0, {0}},
    {"64 voxels are equal", 8, true, 2, 3, {ALL, ALL, UNIFORM | 255}, 0, {0}},
    {"block at word 0: it lies outside", 8, false, 2, 3, {3, 0, VXD_SVDAG_EMPTY}, 0, {0}},
    {"block at word 1073741824: it lies outside",
     8,
     false,
     2,
     3,
     {3, 0, 1u << 30},
     0,
     {0}},
    {NULL, 8, false, 2, 3, {3, 0, 0}, 2, {2, 0x0102}},
    {"it does not have one value for each set voxel",
     8,
     false,
     2,
     3,
     {7, 0, 0},
     2,
     {2, 0x0102}},
    {"are not zero", 8, false, 2, 3, {3, 0, 0}, 2, {2, 0x30102}},
    {"its values are all equal", 8, false, 2, 3, {3, 0, 0}, 2, {2, 0x0202}},
    {"1 to 64 values", 8, false, 2, 3, {3, 0, 0}, 1, {0}},
    {"1 to 64 values", 8, false, 2, 3, {3, 0, 0}, 18, {65, 1}},
    {NULL, 16, true, 2, 3, {7, 0, 0}, 3, {3, 0xffff0001u, 0xffff}},
    {"are not zero", 16, true, 2, 3, {7, 0, 0}, 3, {3, 0x10001, 0x10002}},
    {"its values are all equal", 16, false, 2, 3, {7, 0, 0}, 3, {3, 0x10001, 1}},
};

/* Inner nodes of height 3 and 8, of uniform children. */
static const struct broken inners[] = {
    {NULL, 0, false, 3, 2, {0x102 | 64 << 10, UNIFORM}, 0, {0}},
    {NULL, 0, true, 3, 3, {0x306 | 64 << 10, UNIFORM, UNIFORM | 1}, 0, {0}},
    {NULL, 0, false, 8, 2, {0x102, UNIFORM}, 0, {0}},
    {"no child is present", 0, false, 3, 1, {0}, 0, {0}},
    {"an empty child", 0, false, 3, 3, {0x103 | 64 << 10, UNIFORM, 0}, 0, {0}},
    {"header", 0, false, 3, 2, {0x102 | 63 << 10, UNIFORM}, 0, {0}},
    {"header", 0, false, 3, 2, {0x002 | 64 << 10, UNIFORM}, 0, {0}},
    {"header", 0, false, 3, 2, {0x302 | 64 << 10, UNIFORM}, 0, {0}},
    {"header", 0, true, 3, 3, {0x106 | 64 << 10, UNIFORM, UNIFORM | 1}, 0, {0}},
    {"header", 0, false, 8, 2, {0x102 | 1 << 10, UNIFORM}, 0, {0}},
    {"eight children are equal",
     0,
     false,
     8,
     9,
     {0x1ff, UNIFORM, UNIFORM, UNIFORM, UNIFORM, UNIFORM, UNIFORM, UNIFORM, UNIFORM},
     0,
     {0}},
    {"no valid value", 0, false, 8, 2, {0x102, UNIFORM | 1}, 0, {0}},
    {"inner node at word 1073741824: it lies outside",
     0,
     false,
     8,
     2,
     {0x102, 1u << 30},
     0,
     {0}},
};

static void check_broken(struct gpu_env *env, const struct broken *broken)
{
    struct vxd_svdag_format format = {12, broken->material_bits, broken->tracks_free};
    struct vxd_svdag *svdag = make_svdag(env, &format);
    struct vxd_svdag_summary summary;
    struct vxd_err err = {0};
    uint32_t words[10];
    uint32_t root;
    enum vxd_status status;

    memcpy(words, broken->words, sizeof words);
    if (broken->n_block_words > 0) {
        words[broken->n_words - 1] =
            put(svdag, VXD_SVDAG_BLOCK, broken->block, broken->n_block_words);
    }
    root = put(svdag,
               broken->height == VXD_SVDAG_LEAF_HEIGHT ? VXD_SVDAG_LEAF : VXD_SVDAG_INNER,
               words, broken->n_words);
    root = root_over(svdag, root, broken->height, 5);
    status = vxd_svdag_verify(env->queue, svdag, root, &summary, &err);
    CHECK_INT(status, broken->rule == NULL ? VXD_OK : VXD_DATA_LOSS);
    if (broken->rule == NULL) {
        CHECK_STR(err.message, "");
    } else if (strstr(err.message, broken->rule) == NULL) {
        CHECK_STR(err.message, broken->rule);
    }
    vxd_svdag_destroy(env->queue, svdag);
}

static void test_verify_of_broken_leaf_says_which_rule(void)
{
    struct gpu_env env;

    gpu_env_create(&env, VXD_BACKEND_CPU, 1, 0, 0);
    for (size_t i = 0; i < sizeof leaves / sizeof leaves[0]; i++) {
        check_broken(&env, &leaves[i]);
    }
    gpu_env_destroy(&env);
}

static void test_verify_of_broken_inner_node_says_which_rule(void)
{
    struct gpu_env env;

    gpu_env_create(&env, VXD_BACKEND_CPU, 1, 0, 0);
    for (size_t i = 0; i < sizeof inners / sizeof inners[0]; i++) {
        check_broken(&env, &inners[i]);
    }
    gpu_env_destroy(&env);
}

static void test_verify_of_wrong_reference_is_data_loss(void)
{
    static const struct vxd_svdag_format format = {6, 0, false};
    struct gpu_env env;
    struct vxd_svdag *svdag;
    struct vxd_svdag_summary summary;
    struct vxd_err err;
    uint32_t root;
    uint32_t leaf[2] = {5, 6};
    uint32_t words[2] = {0x101 | 1 << 10, 0};
    uint32_t roots[5];

    gpu_env_create(&env, VXD_BACKEND_CPU, 1, 0, 0);
    svdag = make_svdag(&env, &format);
    leaf[0] = put(svdag, VXD_SVDAG_LEAF, leaf, 2);
    root = root_over(svdag, leaf[0], 2, 3);
    CHECK_INT(vxd_svdag_verify(env.queue, svdag, root, &summary, &err), VXD_OK);

    /* An inner node where a leaf belongs, and the reverse; a reference to the middle of
     * an item; a chunk that does not exist; a value that the format's voxels cannot
     * have. */
    words[1] = root;
    roots[0] = root_over(svdag, put(svdag, VXD_SVDAG_INNER, words, 2), 3, 0);
    roots[1] = leaf[0];
    roots[2] = root + 1;
    roots[3] = 0xfffe0000u;
    roots[4] = UNIFORM | 2;
    for (int i = 0; i < 5; i++) {
        err = (struct vxd_err){0};
        CHECK_INT(vxd_svdag_verify(env.queue, svdag, roots[i], &summary, &err),
                  VXD_DATA_LOSS);
        CHECK(err.message[0] != '\0');
    }
    vxd_svdag_destroy(env.queue, svdag);
    gpu_env_destroy(&env);
}

/* References to the middle of items, to list heads and to the slabs' own words; half of
 * the store was never written. */
static void test_verify_of_any_address_in_slabs_is_answered(void)
{
    static const struct vxd_svdag_format format = {6, 4, true};
    struct gpu_env env;
    uint64_t state = 11;

    gpu_env_create(&env, VXD_BACKEND_CPU, 1, 0, 0);
    for (int store = VXD_SVDAG_ATOMIC64; store < GPU_N_STORES; store++) {
        struct vxd_svdag_spec spec = {
            .format = format, .store = (enum vxd_svdag_store)store, .table_items = 1000};
        struct vxd_svdag_summary summary;
        struct vxd_svdag *svdag;
        uint32_t refs[8] = {0};
        int n_fine = 0;

        REQUIRE(vxd_svdag_create(env.queue, &spec, &svdag, NULL) == VXD_OK);
        for (int i = 0; i < 400; i++) {
            uint32_t leaf[10] = {(uint32_t)gpu_random(&state) | 1u};

            leaf[1] = (uint32_t)gpu_random(&state) >> i % 32;
            refs[i % 8] = put(svdag, VXD_SVDAG_LEAF, leaf,
                              vxd_svdag_leaf_words(4, vxd_svdag_leaf_mask(leaf)));
            if (i % 8 == 7) {
                refs[0] = root_over(svdag, put_inner(svdag, 3, refs), 3, i % 7);
            }
        }
        REQUIRE(vxd_svdag_verify(env.queue, svdag, refs[0], &summary, NULL) == VXD_OK);
        for (uint32_t i = 0; i < 200000; i++) {
            uint32_t near = refs[i % 8] + i / 8 % 600 - 300;
            uint32_t ref = i % 2 == 0 ? near : (uint32_t)gpu_random(&state) % (20u << 18);
            struct vxd_err err = {0};
            enum vxd_status status =
                vxd_svdag_verify(env.queue, svdag, ref, &summary, &err);

            n_fine += status == VXD_OK;
            CHECK(status == VXD_OK || status == VXD_DATA_LOSS);
        }
        CHECK(n_fine > 0);
        vxd_svdag_destroy(env.queue, svdag);
    }
    gpu_env_destroy(&env);
}

static void test_verify_of_empty_and_uniform_roots_counts_them(void)
{
    static const struct vxd_svdag_format format = {21, 4, true};
    static const struct vxd_svdag_summary nothing;
    struct gpu_env env;
    struct vxd_svdag *svdag;
    struct vxd_svdag_summary empty;
    struct vxd_svdag_summary full;
    struct vxd_svdag_summary free_space;
    uint64_t n_occupied;
    uint64_t n_free;

    gpu_env_create(&env, VXD_BACKEND_CPU, 1, 0, 0);
    svdag = make_svdag(&env, &format);
    CHECK_INT(vxd_svdag_verify(env.queue, svdag, VXD_SVDAG_EMPTY, &empty, NULL), VXD_OK);
    CHECK_INT(vxd_svdag_verify(env.queue, svdag, UNIFORM | 3, &full, NULL), VXD_OK);
    CHECK_INT(vxd_svdag_verify(env.queue, svdag, UNIFORM | 15, &free_space, NULL),
              VXD_OK);
    CHECK_INT(empty.n_occupied + empty.n_free, 0);
    CHECK(full.n_occupied == (uint64_t)1 << 63);
    CHECK(free_space.n_free == (uint64_t)1 << 63);
    CHECK(empty.digest[0] != full.digest[0] && full.digest[0] != free_space.digest[0]);
    vxd_svdag_ref_count(&svdag->view, UNIFORM | 15, 21, &n_occupied, &n_free);
    CHECK(n_occupied == 0 && n_free == (uint64_t)1 << 63);
    empty.digest[0] = empty.digest[1] = 0;
    CHECK(memcmp(&empty, &nothing, sizeof empty) == 0);
    vxd_svdag_destroy(env.queue, svdag);
    gpu_env_destroy(&env);
}

/* Every node is twice a child of its parent, beside an empty and a full one: 2^19 paths
 * and more to one leaf, of 3 occupied voxels and 1 FREE one. Digests do not depend on the
 * bits of a material. */
static void test_verify_of_doubled_nodes_counts_all_voxels(void)
{
    static const struct vxd_svdag_format formats[] = {
        {21, 0, true}, {21, 4, true}, {21, 8, true}, {21, 16, true}};
    struct gpu_env env;
    uint64_t digest[2] = {0, 0};

    gpu_env_create(&env, VXD_BACKEND_CPU, 1, 0, 0);
    for (size_t f = 0; f < 4; f++) {
        struct vxd_svdag *svdag = make_svdag(&env, &formats[f]);
        struct vxd_svdag_writer writer = {.svdag = svdag};
        struct vxd_svdag_leaf leaf = {.set = 0x8421, .free = 0x400};
        struct vxd_svdag_summary summary;
        uint32_t free_ref = UNIFORM | (uint32_t)vxd_svdag_free_value(&formats[f]);
        uint64_t counts[2] = {3, 1};
        uint64_t n_occupied;
        uint64_t n_free;
        uint32_t ref;

        CHECK_INT(vxd_svdag_leaf_put(&writer, &leaf, &ref, NULL), VXD_OK);
        vxd_svdag_writer_close(&writer);
        for (int height = 3; height <= 21; height++) {
            uint32_t children[8] = {ref, 0, free_ref, ref, 0, 0, UNIFORM, 0};
            uint64_t n_child = (uint64_t)1 << (3 * (height - 1));

            ref = put_inner(svdag, height, children);
            counts[0] = 2 * counts[0] + n_child;
            counts[1] = 2 * counts[1] + n_child;
        }
        CHECK_INT(vxd_svdag_verify(env.queue, svdag, ref, &summary, NULL), VXD_OK);
        CHECK_INT(summary.n_occupied, counts[0]);
        CHECK_INT(summary.n_free, counts[1]);
        for (int height = 2; height <= 21; height++) {
            CHECK_INT(summary.n_nodes[height], 1);
        }
        CHECK_INT(summary.n_blocks, f >= 2 ? 1 : 0);
        vxd_svdag_ref_count(&svdag->view, ref, 21, &n_occupied, &n_free);
        CHECK_INT(n_occupied, counts[0]);
        CHECK_INT(n_free, counts[1]);
        CHECK(f == 0 || memcmp(digest, summary.digest, sizeof digest) == 0);
        memcpy(digest, summary.digest, sizeof digest);
        vxd_svdag_destroy(env.queue, svdag);
    }
    gpu_env_destroy(&env);
}

/* Where only FREE voxels are below, a node has the same words at every height. */
static void test_verify_of_one_node_at_two_heights_counts_by_height(void)
{
    static const struct vxd_svdag_format format = {9, 0, true};
    struct gpu_env env;
    struct vxd_svdag *svdag;
    struct vxd_svdag_summary summary;
    uint32_t corner[8] = {UNIFORM | 1};
    uint32_t both[8] = {0};
    uint32_t root;

    gpu_env_create(&env, VXD_BACKEND_CPU, 1, 0, 0);
    svdag = make_svdag(&env, &format);
    both[0] = put_inner(svdag, 4, corner);
    CHECK_INT(put_inner(svdag, 7, corner), both[0]);
    both[3] = root_over(svdag, both[0], 4, 0);
    both[0] = root_over(svdag, put_inner(svdag, 7, corner), 7, 0);
    CHECK(both[3] != both[0]);
    both[3] = vxd_svdag_child(vxd_svdag_words(&svdag->view, both[3]), 0);
    both[0] = vxd_svdag_child(vxd_svdag_words(&svdag->view, both[0]), 0);
    root = put_inner(svdag, 9, both);
    CHECK_INT(vxd_svdag_verify(env.queue, svdag, root, &summary, NULL), VXD_OK);
    CHECK_INT(summary.n_free, (1 << 9) + (1 << 18));
    CHECK_INT(summary.n_nodes[4], 1);
    CHECK_INT(summary.n_nodes[7], 2);
    CHECK_INT(summary.n_nodes[8], 2);
    vxd_svdag_destroy(env.queue, svdag);
    gpu_env_destroy(&env);
}

/* 4096 leaves need more than the initial table of marks, and the budget is too small for
 * a second table. */
static void test_verify_without_memory_is_refused(void)
{
    static const struct vxd_svdag_format format = {6, 0, false};
    static uint32_t refs[4096];
    struct gpu_env env;
    struct vxd_svdag *svdag;
    struct vxd_svdag_summary summary;
    struct vxd_err err = {0};
    struct vxd_memory_usage memory;
    size_t n = 4096;

    gpu_env_create(&env, VXD_BACKEND_CPU, 1, 0, 100 << 10);
    svdag = make_svdag(&env, &format);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t words[2] = {i + 1, 7};

        refs[i] = put(svdag, VXD_SVDAG_LEAF, words, 2);
    }
    for (int height = 3; height <= 6; height++) {
        n /= 8;
        for (size_t i = 0; i < n; i++) {
            uint32_t children[8];

            memcpy(children, refs + 8 * i, sizeof children);
            refs[i] = put_inner(svdag, height, children);
        }
    }
    CHECK_INT(vxd_svdag_verify(env.queue, svdag, refs[0], &summary, &err),
              VXD_RESOURCE_EXHAUSTED);
    CHECK(err.message[0] != '\0');
    vxd_context_get_memory(env.context, &memory);
    CHECK_INT(memory.host_bytes, 0);
    vxd_svdag_destroy(env.queue, svdag);
    gpu_env_destroy(&env);
}

static void test_create_of_wrong_spec_names_the_field(void)
{
    static const struct {
        struct vxd_svdag_spec spec;
        const char *field;
        enum vxd_status status;
    } cases[] = {
        {{.format = {3, 0, false}}, "depth", VXD_INVALID_ARGUMENT},
        {{.format = {22, 0, false}}, "depth", VXD_INVALID_ARGUMENT},
        {{.format = {17, 1, false}}, "material_bits", VXD_INVALID_ARGUMENT},
        {{.format = {17, 32, false}}, "material_bits", VXD_INVALID_ARGUMENT},
        {{.format = {17, 0, false}, .store = (enum vxd_svdag_store)9},
         "store",
         VXD_INVALID_ARGUMENT},
        {{.format = {17, 8, false}, .store = VXD_SVDAG_TICKET},
         "store",
         VXD_INVALID_ARGUMENT},
        {{.format = {17, 4, false}, .store = VXD_SVDAG_ACCEL32, .load = 65537},
         "load",
         VXD_INVALID_ARGUMENT},
        {{.format = {17, 4, false},
          .store = VXD_SVDAG_ACCEL8,
          .table_items = VXD_SVDAG_MAX_TABLE_ITEMS + 1},
         "table_items",
         VXD_INVALID_ARGUMENT},
#if defined(VXD_WITH_PAPER)
        {{.format = {17, 0, false}, .store = VXD_SVDAG_ATOMIC64, .max_bytes = 9999},
         "max_bytes",
         VXD_RESOURCE_EXHAUSTED},
#endif
        {{.format = {17, 0, false}, .max_bytes = 9999},
         "max_bytes",
         VXD_RESOURCE_EXHAUSTED},
    };
    static const int bits[4] = {0, 4, 8, 16};
    struct gpu_env env;

    gpu_env_create(&env, VXD_BACKEND_CPU, 1, 0, 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct vxd_svdag *svdag;
        struct vxd_err err = {0};

        CHECK_INT(vxd_svdag_create(env.queue, &cases[i].spec, &svdag, &err),
                  cases[i].status);
        CHECK_STR(err.field, cases[i].field);
        CHECK(svdag == NULL);
    }
    for (int i = 0; i < 4; i++) {
        struct vxd_svdag_format format = {17, bits[i], false};
        struct vxd_svdag *svdag = make_svdag(&env, &format);

        CHECK_INT(vxd_svdag_get_spec(svdag)->format.material_bits, bits[i]);
        CHECK_INT(vxd_svdag_free_value(&format), -1);
        CHECK_INT(vxd_svdag_n_materials(&format), 1 << bits[i]);
        format.tracks_free = true;
        CHECK_INT(vxd_svdag_free_value(&format), bits[i] == 0 ? 1 : (1 << bits[i]) - 1);
        CHECK_INT(vxd_svdag_n_materials(&format), bits[i] == 0 ? 1 : (1 << bits[i]) - 1);
        vxd_svdag_destroy(env.queue, svdag);
    }
    vxd_svdag_destroy(env.queue, NULL);
    gpu_env_destroy(&env);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_verify_of_broken_leaf_says_which_rule),
    VXD_TEST(test_verify_of_broken_inner_node_says_which_rule),
    VXD_TEST(test_verify_of_wrong_reference_is_data_loss),
    VXD_TEST(test_verify_of_any_address_in_slabs_is_answered),
    VXD_TEST(test_verify_of_empty_and_uniform_roots_counts_them),
    VXD_TEST(test_verify_of_doubled_nodes_counts_all_voxels),
    VXD_TEST(test_verify_of_one_node_at_two_heights_counts_by_height),
    VXD_TEST(test_verify_without_memory_is_refused),
    VXD_TEST(test_create_of_wrong_spec_names_the_field),
};

VXD_TEST_MAIN(tests)
