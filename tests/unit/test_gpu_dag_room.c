// SPDX-License-Identifier: Apache-2.0
/* Room: edits that do not find it have no result and change nothing, say what they need, and
 * give the same as on the CPU once they have it. */
#include "tests/unit/test.h"

#include "tests/unit/gpu_dag_run.h"

static struct vxd_dag_op ball(enum vxd_dag_action action, int64_t x, int64_t y, int64_t z,
                              int64_t r, uint32_t value)
{
    struct vxd_dag_op op = {.action = action, .value = value};

    op.shape.kind = VXD_DAG_BALL;
    op.shape.a[0] = x * VXD_DAG_UNIT;
    op.shape.a[1] = y * VXD_DAG_UNIT;
    op.shape.a[2] = z * VXD_DAG_UNIT;
    op.shape.r = r * VXD_DAG_UNIT;
    return op;
}

static struct vxd_dag *make_dag(struct gpu_env *env, const struct vxd_dag_format *format,
                                size_t max_bytes)
{
    const struct vxd_dag_spec spec = {.format = *format, .max_bytes = max_bytes};
    struct vxd_dag *dag = NULL;
    struct vxd_err err = {0};

    if (vxd_dag_create(env->queue, &spec, &dag, &err) != VXD_OK) {
        (void)fprintf(stderr, "create: %s\n", err.message);
        exit(EXIT_FAILURE);
    }
    return dag;
}

static struct vxd_dag_summary verify(struct gpu_env *env, const struct vxd_dag *dag,
                                     uint32_t root)
{
    struct vxd_dag_summary summary = {0};
    struct vxd_err err = {0};

    CHECK_INT(vxd_dag_verify(env->queue, dag, root, &summary, &err), VXD_OK);
    CHECK_STR(err.message, "");
    return summary;
}

static bool same(const struct vxd_dag_summary *a, const struct vxd_dag_summary *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

/* A ball too large for a new store's room, step by step. */
static void without_room(struct gpu_env *env)
{
    static const struct vxd_dag_format format = {15, 4, true};
    const struct vxd_dag_op small = ball(VXD_DAG_FILL, 9000, 9000, 9000, 20, 3);
    const struct vxd_dag_op large = ball(VXD_DAG_FILL, 9000, 9100, 9200, 700, 5);
    struct vxd_dag *dag = make_dag(env, &format, 0);
    struct vxd_dag_edit_result first;
    struct vxd_dag_edit_result result;
    struct vxd_dag_summary before;
    struct vxd_dag_summary after;
    struct vxd_err err = {0};
    int n_tries = 0;

    CHECK_INT(gpu_dag_edit(env, dag, VXD_DAG_EMPTY, &small, 1, &first, &err), VXD_OK);
    CHECK(!first.needs_room);
    before = verify(env, dag, first.root);
    for (;;) {
        CHECK_INT(vxd_dag_edit(env->queue, dag, first.root, &large, 1, &result, &err),
                  VXD_OK);
        gpu_wait(env);
        if (!result.needs_room || ++n_tries == 32) {
            break;
        }
        CHECK_INT(result.root, first.root);
        after = verify(env, dag, first.root);
        CHECK(same(&before, &after));
        CHECK_INT(vxd_dag_make_room(env->queue, dag, &result, &err), VXD_OK);
    }
    CHECK(gpu_is_cuda(env) ? n_tries > 0 && n_tries < 32 : n_tries == 0);
    CHECK_INT(result.needs_room, false);
    after = verify(env, dag, result.root);
    CHECK_INT(after.n_occupied, before.n_occupied + result.n_added - result.n_removed);
    vxd_dag_destroy(env->queue, dag);
}

static void test_edit_without_room_changes_nothing_and_says_what_it_needs(void)
{
    gpu_dag_each_backend(without_room);
}

/* Balls over balls, in a store that grows with them: the CPU's voxels, nodes and counts. */
static void growing(struct gpu_env *env)
{
    static const struct vxd_dag_format formats[] = {
        {13, 0, false}, {13, 4, true}, {13, 16, true}};

    for (size_t f = 0; f < sizeof formats / sizeof formats[0]; f++) {
        struct gpu_env cpu;
        struct vxd_dag *dags[2];
        uint32_t roots[2] = {VXD_DAG_EMPTY, VXD_DAG_EMPTY};
        struct vxd_dag_summary summaries[2];
        uint64_t seed = f + 1;

        gpu_env_open(&cpu, VXD_BACKEND_CPU, 2, 0, 0);
        dags[0] = make_dag(env, &formats[f], 0);
        dags[1] = make_dag(&cpu, &formats[f], 0);
        for (int i = 0; i < 16; i++) {
            const int64_t x = 2000 + (int64_t)(gpu_random(&seed) % 2000);
            const int64_t y = 2000 + (int64_t)(gpu_random(&seed) % 2000);
            const int64_t z = 2000 + (int64_t)(gpu_random(&seed) % 2000);
            const struct vxd_dag_op op =
                ball(i % 3 == 2 ? VXD_DAG_ERASE : VXD_DAG_FILL, x, y, z,
                     (int64_t)(gpu_random(&seed) % 250),
                     (uint32_t)i % vxd_dag_n_materials(&formats[f]));
            struct vxd_dag_edit_result results[2];

            CHECK_INT(gpu_dag_edit(env, dags[0], roots[0], &op, 1, &results[0], NULL),
                      VXD_OK);
            CHECK_INT(gpu_dag_edit(&cpu, dags[1], roots[1], &op, 1, &results[1], NULL),
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
        vxd_dag_destroy(env->queue, dags[0]);
        vxd_dag_destroy(cpu.queue, dags[1]);
        gpu_env_close(&cpu);
    }
}

static void test_store_that_grows_edit_by_edit_holds_the_cpus_nodes(void)
{
    gpu_dag_each_backend(growing);
}

/* Usage counts what is stored, and all memory is given back. */
static void usage(struct gpu_env *env)
{
    static const struct vxd_dag_format format = {14, 8, false};
    const struct vxd_dag_op op = ball(VXD_DAG_FILL, 5000, 6000, 7000, 300, 200);
    struct vxd_dag *dag = make_dag(env, &format, 0);
    struct vxd_dag_edit_result result;
    struct vxd_dag_summary summary;
    struct vxd_dag_usage used;
    struct vxd_memory_usage memory;
    uint64_t n_inner = 0;

    CHECK_INT(gpu_dag_edit(env, dag, VXD_DAG_EMPTY, &op, 1, &result, NULL), VXD_OK);
    summary = verify(env, dag, result.root);
    vxd_dag_get_usage(dag, &used);
    for (int height = VXD_DAG_LEAF_HEIGHT + 1; height <= format.depth; height++) {
        n_inner += summary.n_nodes[height];
    }
    CHECK_INT(used.n_leaves, summary.n_nodes[VXD_DAG_LEAF_HEIGHT]);
    CHECK(used.n_inner >= n_inner); /* of tries that found no room too */
    CHECK(used.node_bytes >= summary.node_bytes);
    CHECK(used.used_bytes <= used.n_bytes && used.node_bytes <= used.used_bytes);
    vxd_dag_destroy(env->queue, dag);
    gpu_wait(env);
    vxd_context_get_memory(env->context, &memory);
    CHECK_INT(memory.device_bytes, 0);
}

static void test_store_tells_what_it_holds_and_gives_it_back(void)
{
    gpu_dag_each_backend(usage);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_edit_without_room_changes_nothing_and_says_what_it_needs),
    VXD_TEST(test_store_that_grows_edit_by_edit_holds_the_cpus_nodes),
    VXD_TEST(test_store_tells_what_it_holds_and_gives_it_back)};

VXD_TEST_MAIN(tests)
