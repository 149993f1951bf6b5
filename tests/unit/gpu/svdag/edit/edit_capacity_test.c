// SPDX-License-Identifier: Apache-2.0
/* Capacity: an edit that exceeds it has no result, changes nothing and reports what it
 * needs; once capacity suffices, the result is that of the CPU. */
#include "tests/support/test.h"
#include "gpu/svdag/edit/edit.h"

#include "gpu/svdag/store/store_math.h"
#include "tests/support/svdag/svdag_run.h"
#include "tests/support/svdag/svdag_scene.h"

static struct vxd_svdag_op ball(enum vxd_svdag_action action, int64_t x, int64_t y,
                                int64_t z, int64_t r, uint32_t value)
{
    struct vxd_svdag_op op = {.action = action, .value = value};

    op.shape.kind = VXD_SVDAG_BALL;
    op.shape.a[0] = x * VXD_SVDAG_UNIT;
    op.shape.a[1] = y * VXD_SVDAG_UNIT;
    op.shape.a[2] = z * VXD_SVDAG_UNIT;
    op.shape.r = r * VXD_SVDAG_UNIT;
    return op;
}

static struct vxd_svdag *
make_svdag(struct gpu_env *env, const struct vxd_svdag_format *format, size_t max_bytes)
{
    const struct vxd_svdag_spec spec = {
        .format = *format, .store = gpu_svdag_store(format), .max_bytes = max_bytes};

    return gpu_svdag_create(env, &spec);
}

static struct vxd_svdag_summary verify(struct gpu_env *env, const struct vxd_svdag *svdag,
                                       uint32_t root)
{
    struct vxd_svdag_summary summary = {0};
    struct vxd_err err = {0};

    CHECK_INT(vxd_svdag_verify(env->queue, svdag, root, &summary, &err), VXD_OK);
    CHECK_STR(err.message, "");
    return summary;
}

static bool same(const struct vxd_svdag_summary *a, const struct vxd_svdag_summary *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

/* A ball that exceeds the capacity of a new store, step by step. */
static void beyond_capacity(struct gpu_env *env)
{
    static const struct vxd_svdag_format format = {15, 4, true};
    const struct vxd_svdag_op small = ball(VXD_SVDAG_FILL, 9000, 9000, 9000, 20, 3);
    const struct vxd_svdag_op large = ball(VXD_SVDAG_FILL, 9000, 9100, 9200, 700, 5);
    struct vxd_svdag *svdag = make_svdag(env, &format, 0);
    struct vxd_svdag_edit_result first;
    struct vxd_svdag_edit_result result;
    struct vxd_svdag_summary before;
    struct vxd_svdag_summary after;
    struct vxd_err err = {0};
    int n_tries = 0;

    CHECK_INT(gpu_svdag_edit(env, svdag, VXD_SVDAG_EMPTY, &small, 1, &first, &err),
              VXD_OK);
    CHECK(!first.needs_capacity);
    before = verify(env, svdag, first.root);
    for (;;) {
        CHECK_INT(vxd_svdag_edit(env->queue, svdag, first.root, &large, 1, &result, &err),
                  VXD_OK);
        gpu_wait(env);
        if (!result.needs_capacity || ++n_tries == 32) {
            break;
        }
        CHECK_INT(result.root, first.root);
        after = verify(env, svdag, first.root);
        CHECK(same(&before, &after));
        CHECK_INT(vxd_svdag_reserve(env->queue, svdag, &result, &err), VXD_OK);
    }
    CHECK(gpu_is_cuda(env) ? n_tries > 0 && n_tries < 32 : n_tries == 0);
    CHECK_INT(result.needs_capacity, false);
    after = verify(env, svdag, result.root);
    CHECK_INT(after.n_occupied, before.n_occupied + result.n_added - result.n_removed);
    vxd_svdag_destroy(env->queue, svdag);
}

static void test_edit_without_room_changes_nothing_and_says_what_it_needs(void)
{
    gpu_each_backend(beyond_capacity);
}

/* Overlapping balls in a store that grows with them have the CPU's voxels, nodes and
 * counts. */
static void growing(struct gpu_env *env)
{
    static const struct vxd_svdag_format formats[] = {
        {13, 0, false}, {13, 4, true}, {13, 16, true}};

    for (size_t f = 0; f < sizeof formats / sizeof formats[0]; f++) {
        struct gpu_env cpu;
        struct vxd_svdag *dags[2];
        uint32_t roots[2] = {VXD_SVDAG_EMPTY, VXD_SVDAG_EMPTY};
        struct vxd_svdag_summary summaries[2];
        uint64_t seed = f + 1;

        gpu_env_create(&cpu, VXD_BACKEND_CPU, 2, 0, 0);
        dags[0] = make_svdag(env, &formats[f], 0);
        dags[1] = make_svdag(&cpu, &formats[f], 0);
        for (int i = 0; i < 16; i++) {
            const int64_t x = 2000 + (int64_t)(gpu_random(&seed) % 2000);
            const int64_t y = 2000 + (int64_t)(gpu_random(&seed) % 2000);
            const int64_t z = 2000 + (int64_t)(gpu_random(&seed) % 2000);
            const struct vxd_svdag_op op =
                ball(i % 3 == 2 ? VXD_SVDAG_ERASE : VXD_SVDAG_FILL, x, y, z,
                     (int64_t)(gpu_random(&seed) % 250),
                     (uint32_t)i % vxd_svdag_n_materials(&formats[f]));
            struct vxd_svdag_edit_result results[2];

            CHECK_INT(gpu_svdag_edit(env, dags[0], roots[0], &op, 1, &results[0], NULL),
                      VXD_OK);
            CHECK_INT(gpu_svdag_edit(&cpu, dags[1], roots[1], &op, 1, &results[1], NULL),
                      VXD_OK);
            CHECK_INT(results[0].n_added, results[1].n_added);
            CHECK_INT(results[0].n_removed, results[1].n_removed);
            CHECK_INT(results[0].n_changed, results[1].n_changed);
            roots[0] = results[0].root;
            roots[1] = results[1].root;
        }
        summaries[0] = verify(env, dags[0], roots[0]);
        summaries[1] = verify(&cpu, dags[1], roots[1]);
        CHECK(same(&summaries[0], &summaries[1]));
        vxd_svdag_destroy(env->queue, dags[0]);
        vxd_svdag_destroy(cpu.queue, dags[1]);
        gpu_env_destroy(&cpu);
    }
}

static void test_store_that_grows_edit_by_edit_holds_the_cpus_nodes(void)
{
    gpu_each_backend(growing);
}

enum {
    N_SIMILAR = 24,
    N_SCATTERED = 4000
};

/* A list of random voxels; the caller frees it. */
static void scatter(struct gpu_env *env, const struct vxd_svdag_format *format,
                    uint64_t *seed, struct vxd_svdag_voxel_list *list)
{
    int32_t *voxels = gpu_alloc((size_t)N_SCATTERED * 3 * sizeof *voxels);
    uint64_t n_outside = 0;
    struct vxd_err err = {0};

    for (size_t i = 0; i < (size_t)N_SCATTERED * 3; i++) {
        voxels[i] = (int32_t)(gpu_random(seed) & ((1u << format->depth) - 1));
    }
    CHECK_INT(
        gpu_svdag_list(env, format, voxels, NULL, N_SCATTERED, list, &n_outside, &err),
        VXD_OK);
    gpu_wait(env);
    free(voxels);
}

/* Applies edits that are as similar as consecutive scans, each with other voxels; returns
 * how many of the later ones exceeded the capacity. */
static int count_beyond_capacity(struct gpu_env *env, bool expects)
{
    static const struct vxd_svdag_format format = {15, 0, false};
    const struct vxd_svdag_spec spec = {.format = format, .store = VXD_SVDAG_ARENA};
    struct vxd_svdag *svdag = gpu_svdag_create(env, &spec);
    struct vxd_svdag_edit_result result = {.root = VXD_SVDAG_EMPTY};
    struct vxd_err err = {0};
    uint64_t seed = 7;
    int n = 0;

    for (int i = 0; i < N_SIMILAR; i++) {
        struct vxd_svdag_op op = {.action = VXD_SVDAG_FILL,
                                  .shape.kind = VXD_SVDAG_VOXELS};
        struct vxd_svdag_voxel_list list = {0};

        scatter(env, &format, &seed, &list);
        op.shape.voxels = list.voxels;
        if (expects && VXD_ON_CUDA(env->context)) {
            CHECK_INT(vxd_svdag_device_reserve_expected(env->queue, svdag, &err), VXD_OK);
        }
        for (int n_tries = 0;; n_tries++) {
            CHECK_INT(gpu_svdag_try(env, svdag, result.root, &op, 1, &result, &err),
                      VXD_OK);
            if (!result.needs_capacity || n_tries == 32) {
                break;
            }
            n += i >= N_SIMILAR / 3 && n_tries == 0;
            CHECK_INT(vxd_svdag_reserve(env->queue, svdag, &result, &err), VXD_OK);
        }
        gpu_svdag_list_free(env, &list);
    }
    (void)verify(env, svdag, result.root);
    vxd_svdag_destroy(env->queue, svdag);
    return n;
}

/* The memory that an edit uses in addition to what it stores depends on the schedule of
 * warps, so one edit may still exceed the capacity. */
static void similar_edits(struct gpu_env *env)
{
    if (gpu_is_cuda(env)) {
        const int n = count_beyond_capacity(env, true);
        const int n_without = count_beyond_capacity(env, false);

        CHECK(n <= 1 && n_without >= 3);
    }
}

static void test_edit_like_those_before_it_finds_room(void)
{
    gpu_each_backend(similar_edits);
}

/* Usage counts what is stored, and all memory is freed. */
static void usage(struct gpu_env *env)
{
    static const struct vxd_svdag_format format = {14, 8, false};
    const struct vxd_svdag_op op = ball(VXD_SVDAG_FILL, 5000, 6000, 7000, 300, 200);
    struct vxd_svdag *svdag = make_svdag(env, &format, 0);
    struct vxd_svdag_edit_result result;
    struct vxd_svdag_summary summary;
    struct vxd_svdag_usage used;
    struct vxd_memory_usage memory;
    uint64_t n_inner = 0;

    CHECK_INT(gpu_svdag_edit(env, svdag, VXD_SVDAG_EMPTY, &op, 1, &result, NULL), VXD_OK);
    summary = verify(env, svdag, result.root);
    vxd_svdag_get_usage(svdag, &used);
    for (int height = VXD_SVDAG_LEAF_HEIGHT + 1; height <= format.depth; height++) {
        n_inner += summary.n_nodes[height];
    }
    CHECK_INT(used.n_leaves, summary.n_nodes[VXD_SVDAG_LEAF_HEIGHT]);
    CHECK(used.n_inner >=
          n_inner); /* includes nodes of attempts that exceeded the capacity */
    CHECK(used.node_bytes >= summary.node_bytes);
    CHECK(used.used_bytes <= used.n_bytes && used.node_bytes <= used.used_bytes);
    vxd_svdag_destroy(env->queue, svdag);
    gpu_wait(env);
    vxd_context_get_memory(env->context, &memory);
    CHECK_INT(memory.device_bytes, 0);
}

static void test_store_tells_what_it_holds_and_gives_it_back(void)
{
    gpu_each_backend(usage);
}

/* Invalid lists and heights are found when the edit is executed. */
static void bad_data(struct gpu_env *env)
{
    static const struct vxd_svdag_format format = {6, 4, false};
    uint64_t codes[2] = {5, 4};
    const uint64_t masks[2] = {1, 2};
    int64_t heights[2] = {0, VXD_SVDAG_MAX_COORDINATE + 1};
    struct vxd_svdag *svdag = make_svdag(env, &format, 0);
    struct vxd_svdag_op ops[2] = {ball(VXD_SVDAG_FILL, 20, 20, 20, 9, 1),
                                  {.action = VXD_SVDAG_FILL}};
    struct vxd_svdag_edit_result first;
    struct vxd_svdag_edit_result result;
    struct vxd_svdag_usage before;
    struct vxd_svdag_usage after;
    struct vxd_err err = {0};

    ops[1].shape.kind = VXD_SVDAG_VOXELS;
    ops[1].shape.voxels =
        (struct vxd_svdag_voxels){.codes = codes, .masks = masks, .n = 2};
    CHECK_INT(gpu_svdag_edit(env, svdag, VXD_SVDAG_EMPTY, ops, 1, &first, &err), VXD_OK);
    vxd_svdag_get_usage(svdag, &before);
    ops[0].shape.r += VXD_SVDAG_UNIT;
    CHECK_INT(gpu_svdag_edit(env, svdag, first.root, ops, 2, &result, &err),
              VXD_INVALID_ARGUMENT);
    ops[1].shape.kind = VXD_SVDAG_HEIGHTFIELD;
    ops[1].shape.field = (struct vxd_svdag_heights){heights, 2, 1, 4, 0, 0};
    CHECK_INT(gpu_svdag_edit(env, svdag, first.root, ops, 2, &result, &err),
              VXD_INVALID_ARGUMENT);
    vxd_svdag_get_usage(svdag, &after);
    CHECK_INT(after.node_bytes, before.node_bytes);
    heights[1] = 0;
    codes[1] = 6;
    CHECK_INT(gpu_svdag_edit(env, svdag, first.root, ops, 2, &result, &err), VXD_OK);
    ops[1].shape.kind = VXD_SVDAG_VOXELS;
    CHECK_INT(gpu_svdag_edit(env, svdag, first.root, ops, 2, &result, &err), VXD_OK);
    vxd_svdag_destroy(env->queue, svdag);
}

static void test_edit_of_a_bad_list_or_height_does_nothing(void)
{
    gpu_each_backend(bad_data);
}

/* After an edit that needed much capacity, with a budget that suffices only for a small
 * edit. */
static void little_memory(struct gpu_env *env)
{
    static const struct vxd_svdag_format format = {15, 0, false};
    const struct vxd_svdag_op large = ball(VXD_SVDAG_FILL, 9000, 9100, 9200, 900, 0);
    const struct vxd_svdag_op small = ball(VXD_SVDAG_FILL, 3000, 9100, 9200, 30, 0);
    struct vxd_svdag *svdag = make_svdag(env, &format, 0);
    struct vxd_memory_usage usage;
    struct vxd_buffer rest;
    struct vxd_svdag_edit_result first;
    struct vxd_svdag_edit_result result;
    struct vxd_err err = {0};

    CHECK_INT(gpu_svdag_edit(env, svdag, VXD_SVDAG_EMPTY, &large, 1, &first, &err),
              VXD_OK);
    vxd_context_get_memory(env->context, &usage);
    CHECK_INT(vxd_device_alloc(env->queue,
                               usage.device_budget_bytes - usage.device_bytes -
                                   ((size_t)100 << 20),
                               &rest, &err),
              VXD_OK);
    CHECK_INT(gpu_svdag_edit(env, svdag, first.root, &small, 1, &result, &err), VXD_OK);
    CHECK(result.n_added > 110000);
    vxd_device_free(env->queue, &rest);
    vxd_svdag_destroy(env->queue, svdag);
    gpu_wait(env);
}

static void test_edit_that_is_small_needs_little_memory_after_a_large_one(void)
{
    struct gpu_env env;
    char why[160];

    if (vxd_cuda_device_count(why, sizeof why) == 0) {
        SKIP("no CUDA device");
    }
    gpu_env_create(&env, VXD_BACKEND_CUDA, 2, (size_t)1 << 30, 0);
    little_memory(&env);
    gpu_env_destroy(&env);
}

/* Slab tables created for few items, so that most threads of an edit contend for the same
 * slab lists; then with more lists, where all items are found again. */
static void few_lists(struct gpu_env *env, enum vxd_svdag_store store)
{
    const struct vxd_svdag_spec spec = {
        .format = {9, 4, true}, .store = store, .load = 8, .table_items = 1};
    const struct vxd_svdag_edit_result grow = {.needs_capacity = true,
                                               .needs = {.n_words = 1}};
    struct gpu_env cpu;
    struct vxd_svdag *dags[2];
    uint32_t roots[2] = {VXD_SVDAG_EMPTY, VXD_SVDAG_EMPTY};
    struct vxd_svdag_edit_result results[2];
    struct vxd_svdag_usage before;
    struct vxd_svdag_usage after;

    gpu_env_create(&cpu, VXD_BACKEND_CPU, 2, 0, 0);
    dags[1] = make_svdag(&cpu, &spec.format, 0);
    REQUIRE(vxd_svdag_create(env->queue, &spec, &dags[0], NULL) == VXD_OK);
    for (int i = 0; i < 4; i++) {
        const struct vxd_svdag_op op =
            ball(i == 2 ? VXD_SVDAG_ERASE : VXD_SVDAG_FILL, 200 + 9 * i, 201 - 7 * i, 202,
                 40 + 3 * i, (uint32_t)(4 * i + 1));
        struct vxd_svdag_summary summaries[2];

        CHECK_INT(gpu_svdag_edit(env, dags[0], roots[0], &op, 1, &results[0], NULL),
                  VXD_OK);
        CHECK_INT(gpu_svdag_edit(&cpu, dags[1], roots[1], &op, 1, &results[1], NULL),
                  VXD_OK);
        roots[0] = results[0].root;
        roots[1] = results[1].root;
        summaries[0] = verify(env, dags[0], roots[0]);
        summaries[1] = verify(&cpu, dags[1], roots[1]);
        CHECK(same(&summaries[0], &summaries[1]));
        vxd_svdag_get_usage(dags[0], &before);
        CHECK_INT(vxd_svdag_reserve(env->queue, dags[0], &grow, NULL), VXD_OK);
        CHECK_INT(gpu_svdag_edit(env, dags[0], i == 0 ? VXD_SVDAG_EMPTY : roots[0], &op,
                                 1, &results[0], NULL),
                  VXD_OK);
        vxd_svdag_get_usage(dags[0], &after);
        CHECK_INT(results[0].root, roots[0]);
        CHECK_INT(after.node_bytes, before.node_bytes);
        CHECK(after.used_bytes <= after.n_bytes && after.node_bytes <= after.used_bytes);
    }
    vxd_svdag_destroy(env->queue, dags[0]);
    vxd_svdag_destroy(cpu.queue, dags[1]);
    gpu_env_destroy(&cpu);
}

static void each_few_lists(struct gpu_env *env)
{
    for (int store = VXD_SVDAG_ATOMIC64; store < GPU_N_STORES; store++) {
        few_lists(env, (enum vxd_svdag_store)store);
    }
}

static void test_slabs_of_few_lists_hold_each_item_once(void)
{
    gpu_each_backend(each_few_lists);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_slabs_of_few_lists_hold_each_item_once),
    VXD_TEST(test_edit_without_room_changes_nothing_and_says_what_it_needs),
    VXD_TEST(test_store_that_grows_edit_by_edit_holds_the_cpus_nodes),
    VXD_TEST(test_edit_like_those_before_it_finds_room),
    VXD_TEST(test_store_tells_what_it_holds_and_gives_it_back),
    VXD_TEST(test_edit_of_a_bad_list_or_height_does_nothing),
    VXD_TEST(test_edit_that_is_small_needs_little_memory_after_a_large_one)};

VXD_TEST_MAIN(tests)
