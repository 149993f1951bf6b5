// SPDX-License-Identifier: Apache-2.0
/* Collections: the roots have the same voxels in the new store, which holds exactly the
 * nodes that they reach, whatever is edited, added or refused between the slices. */
#include "tests/support/test.h"

#include "gpu/svdag/collect/collect.h"
#include "tests/support/svdag/svdag_grid.h"
#include "tests/support/svdag/svdag_run.h"
#include "tests/support/svdag/svdag_scene.h"

enum {
    N_ROOTS = 24
};

static const struct vxd_svdag_format formats[] = {
    {5, 0, false}, {5, 0, true},  {5, 4, false}, {5, 4, true},
    {5, 8, true},  {5, 16, true}, {5, 16, false}};

static struct vxd_svdag *make_svdag(struct gpu_env *env,
                                    const struct vxd_svdag_format *format,
                                    enum vxd_svdag_store store, size_t max_bytes)
{
    const struct vxd_svdag_spec spec = {
        .format = *format, .store = store, .max_bytes = max_bytes, .table_items = 4096};

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

static void check_same(struct gpu_env *env, const struct vxd_svdag *a, uint32_t root_a,
                       const struct vxd_svdag *b, uint32_t root_b)
{
    const struct vxd_svdag_summary x = verify(env, a, root_a);
    const struct vxd_svdag_summary y = verify(env, b, root_b);

    CHECK(memcmp(&x, &y, sizeof x) == 0);
}

static void check_counts(const struct vxd_svdag *svdag, const struct vxd_svdag *expected)
{
    struct vxd_svdag_usage usage;
    struct vxd_svdag_usage expected_usage;

    vxd_svdag_get_usage(svdag, &usage);
    vxd_svdag_get_usage(expected, &expected_usage);
    CHECK_INT(usage.n_leaves, expected_usage.n_leaves);
    CHECK_INT(usage.n_inner, expected_usage.n_inner);
    CHECK_INT(usage.n_blocks, expected_usage.n_blocks);
    CHECK_INT(usage.node_bytes, expected_usage.node_bytes);
}

static struct vxd_svdag_op random_op(const struct vxd_svdag_format *format,
                                     uint64_t *seed)
{
    const uint64_t side = (uint64_t)VXD_SVDAG_UNIT << format->depth;
    struct vxd_svdag_op op = {
        .value = (uint32_t)(gpu_random(seed) % vxd_svdag_n_materials(format))};
    uint64_t action = gpu_random(seed) % 6;

    op.action = action == 0                          ? VXD_SVDAG_ERASE
                : action == 1 && format->tracks_free ? VXD_SVDAG_SET_FREE
                                                     : VXD_SVDAG_FILL;
    op.shape.kind = gpu_random(seed) % 3 == 0 ? VXD_SVDAG_BOX : VXD_SVDAG_BALL;
    op.shape.r = (int64_t)(gpu_random(seed) % (side / 4));
    for (int i = 0; i < 3; i++) {
        op.shape.a[i] = (int64_t)(gpu_random(seed) % side);
        op.shape.low[i] = (int64_t)(gpu_random(seed) % side);
        op.shape.high[i] = op.shape.low[i] + 1 + (int64_t)(gpu_random(seed) % (side / 2));
    }
    return op;
}

static uint32_t edit(struct gpu_env *env, struct vxd_svdag *svdag, uint32_t root,
                     const struct vxd_svdag_op *op)
{
    struct vxd_svdag_edit_result result = {0};
    struct vxd_err err = {0};

    CHECK_INT(gpu_svdag_edit(env, svdag, root, op, 1, &result, &err), VXD_OK);
    CHECK_STR(err.message, "");
    return result.root;
}

static struct vxd_svdag_collection *
begin(struct gpu_env *env, const struct vxd_svdag *from, struct vxd_svdag *to)
{
    struct vxd_svdag_collection *collection = NULL;
    struct vxd_err err = {0};

    if (vxd_svdag_collect_begin(env->queue, from, to, &collection, &err) != VXD_OK) {
        (void)fprintf(stderr, "begin: %s\n", err.message);
        exit(EXIT_FAILURE);
    }
    return collection;
}

static void add(struct vxd_svdag_collection *collection, uint32_t root)
{
    CHECK_INT(vxd_svdag_collect_add(collection, root, NULL), VXD_OK);
}

/* Runs a collection slice by slice. */
static int run(struct gpu_env *env, struct vxd_svdag_collection *collection)
{
    struct vxd_err err = {0};
    bool is_done = false;
    int n = 0;

    while (!is_done && n < 100000) {
        CHECK_INT(vxd_svdag_collect_step(env->queue, collection, 0, &is_done, &err),
                  VXD_OK);
        CHECK_STR(err.message, "");
        if (err.message[0] != '\0') {
            break;
        }
        n++;
    }
    return n;
}

static uint32_t moved(const struct vxd_svdag_collection *collection, uint32_t root)
{
    uint32_t out = VXD_SVDAG_EMPTY;

    CHECK(vxd_svdag_collect_root(collection, root, &out));
    return out;
}

/* Random histories ------------------------------------------------------------------------ */

/* A history of versions, every other root of which is kept, together with plain
 * voxels. */
struct history {
    struct vxd_svdag *svdag;
    uint32_t roots[N_ROOTS];
    struct gpu_svdag_grid grids[N_ROOTS];
};

static void make_history(struct gpu_env *env, const struct vxd_svdag_format *format,
                         uint64_t seed, struct history *out)
{
    uint32_t root = VXD_SVDAG_EMPTY;

    out->svdag = make_svdag(env, format, gpu_svdag_store(format), 0);
    for (int i = 0; i < N_ROOTS; i++) {
        const struct vxd_svdag_op op = random_op(format, &seed);

        gpu_svdag_grid_make(&out->grids[i], format);
        if (i > 0) {
            gpu_svdag_grid_copy(&out->grids[i], &out->grids[i - 1]);
        }
        gpu_svdag_grid_edit(&out->grids[i], &op, 1);
        root = edit(env, out->svdag, root, &op);
        out->roots[i] = root;
    }
}

static void free_history(struct gpu_env *env, struct history *history)
{
    for (int i = 0; i < N_ROOTS; i++) {
        gpu_svdag_grid_free(&history->grids[i]);
    }
    vxd_svdag_destroy(env->queue, history->svdag);
}

/* A CPU store that holds these roots and nothing else. */
static void put_kept(const struct history *history, int step, struct vxd_svdag *fresh)
{
    for (int i = 0; i < N_ROOTS; i += step) {
        (void)gpu_svdag_grid_put(&history->grids[i], fresh);
    }
}

static void keep_some(struct gpu_env *env, const struct vxd_svdag_format *format,
                      enum vxd_svdag_store store, uint64_t seed)
{
    struct gpu_env cpu;
    struct history history;
    struct vxd_svdag *to = make_svdag(env, format, store, 0);
    struct vxd_svdag *fresh;
    struct vxd_svdag_collection *collection;
    struct vxd_svdag_collect_stats stats;
    struct vxd_svdag_usage usage;
    struct vxd_svdag_usage left;

    gpu_env_create(&cpu, VXD_BACKEND_CPU, 1, 0, 0);
    fresh = make_svdag(&cpu, format, VXD_SVDAG_ARENA, 0);
    make_history(env, format, seed, &history);
    put_kept(&history, 3, fresh);
    collection = begin(env, history.svdag, to);
    for (int i = 0; i < N_ROOTS; i += 3) {
        add(collection, history.roots[i]);
    }
    CHECK(run(env, collection) > 1);
    check_counts(to, fresh);
    for (int i = 0; i < N_ROOTS; i += 3) {
        check_same(env, history.svdag, history.roots[i], to,
                   moved(collection, history.roots[i]));
    }
    vxd_svdag_collect_get_stats(collection, &stats);
    vxd_svdag_get_usage(history.svdag, &usage);
    vxd_svdag_get_usage(to, &left);
    CHECK_INT(stats.n_bytes, left.node_bytes);
    CHECK_INT(stats.n_nodes, left.n_leaves + left.n_inner + left.n_blocks);
    CHECK_INT(stats.n_dead_bytes, usage.node_bytes - left.node_bytes);
    CHECK(stats.n_dead_nodes > 0);
    vxd_svdag_collect_end(env->queue, collection);
    vxd_svdag_destroy(env->queue, to);
    free_history(env, &history);
    vxd_svdag_destroy(cpu.queue, fresh);
    gpu_env_destroy(&cpu);
}

static void random_histories(struct gpu_env *env)
{
    for (size_t f = 0; f < sizeof formats / sizeof formats[0]; f++) {
        for (int store = 0; store < GPU_N_STORES; store++) {
            if (store == 0 || formats[f].material_bits <= 4) {
                keep_some(env, &formats[f], (enum vxd_svdag_store)store, 7 * f + 1);
            }
        }
    }
}

static void test_collection_keeps_the_voxels_of_roots_and_no_other_node(void)
{
    gpu_each_backend(random_histories);
}

/* Edits go on between the slices; what they make is collected in later rounds. */
static void born_meanwhile(struct gpu_env *env)
{
    for (size_t f = 0; f < sizeof formats / sizeof formats[0]; f++) {
        const struct vxd_svdag_format *format = &formats[f];
        uint64_t seed = 100 + f;
        struct history history;
        struct vxd_svdag *to = make_svdag(env, format, VXD_SVDAG_ARENA, 0);
        struct vxd_svdag *again = make_svdag(env, format, VXD_SVDAG_ARENA, 0);
        struct vxd_svdag_collection *collection;
        uint32_t root;
        uint32_t born[40];
        int n_born = 0;
        bool is_done = false;

        make_history(env, format, seed, &history);
        root = history.roots[N_ROOTS - 1];
        collection = begin(env, history.svdag, to);
        add(collection, history.roots[0]);
        for (int i = 0; i < 400 && (!is_done || n_born < 40); i++) {
            if (n_born < 40 && i % 2 == 0) {
                const struct vxd_svdag_op op = random_op(format, &seed);

                root = edit(env, history.svdag, root, &op);
                born[n_born++] = root;
                add(collection, root);
            }
            CHECK_INT(vxd_svdag_collect_step(env->queue, collection, 0, &is_done, NULL),
                      VXD_OK);
            if (i % 16 == 0) {
                (void)run(env,
                          collection); /* small slices, so that there are many rounds */
            }
        }
        (void)run(env, collection);
        for (int i = 0; i < n_born; i++) {
            check_same(env, history.svdag, born[i], to, moved(collection, born[i]));
        }
        root = moved(collection, history.roots[0]);
        vxd_svdag_collect_end(env->queue, collection);

        /* Nodes that the new store has already are found there. */
        collection = begin(env, to, again);
        add(collection, root);
        (void)run(env, collection);
        vxd_svdag_collect_end(env->queue, collection);
        collection = begin(env, history.svdag, again);
        add(collection, history.roots[0]);
        for (int i = 0; i < n_born; i++) {
            add(collection, born[i]);
        }
        (void)run(env, collection);
        check_counts(again, to);
        for (int i = 0; i < n_born; i++) {
            check_same(env, history.svdag, born[i], again, moved(collection, born[i]));
        }
        vxd_svdag_collect_end(env->queue, collection);
        vxd_svdag_destroy(env->queue, again);
        vxd_svdag_destroy(env->queue, to);
        free_history(env, &history);
    }
}

static void test_collection_beside_edits_carries_what_they_made(void)
{
    gpu_each_backend(born_meanwhile);
}

/* Edits of the new store between the slices may use its capacity, and make the same
 * nodes. */
static void edited_target(struct gpu_env *env)
{
    static const struct vxd_svdag_format format = {9, 4, true};
    uint64_t seed = 5;
    struct vxd_svdag *from = make_svdag(env, &format, gpu_svdag_store(&format), 0);
    struct vxd_svdag *to = make_svdag(env, &format, gpu_svdag_store(&format), 0);
    struct vxd_svdag_collection *collection = begin(env, from, to);
    uint32_t roots[2] = {VXD_SVDAG_EMPTY, VXD_SVDAG_EMPTY};
    bool is_done = false;

    for (int i = 0; i < 12; i++) {
        const struct vxd_svdag_op op = random_op(&format, &seed);

        roots[0] = edit(env, from, roots[0], &op);
    }
    add(collection, roots[0]);
    seed = 5;
    while (!is_done) {
        const struct vxd_svdag_op op = random_op(&format, &seed);

        roots[1] = edit(env, to, roots[1], &op);
        REQUIRE(vxd_svdag_collect_step(env->queue, collection, 0, &is_done, NULL) ==
                VXD_OK);
    }
    (void)verify(env, to, roots[1]);
    check_same(env, from, roots[0], to, moved(collection, roots[0]));
    vxd_svdag_collect_end(env->queue, collection);
    vxd_svdag_destroy(env->queue, to);
    vxd_svdag_destroy(env->queue, from);
}

static void test_collection_beside_edits_of_the_new_store_finds_what_they_made(void)
{
    gpu_each_backend(edited_target);
}

/* Nodes at several heights ---------------------------------------------------------------- */

static uint32_t fill_cube(struct gpu_env *env, struct vxd_svdag *svdag, uint32_t root,
                          uint32_t x, uint32_t y, uint32_t z, int height)
{
    const uint32_t low[3] = {x, y, z};
    struct vxd_svdag_op op = {.action = VXD_SVDAG_FILL};

    for (int i = 0; i < 3; i++) {
        op.shape.low[i] = (int64_t)low[i] * VXD_SVDAG_UNIT;
        op.shape.high[i] = ((int64_t)low[i] + (1 << height)) * VXD_SVDAG_UNIT;
    }
    return edit(env, svdag, root, &op);
}

/* Where nodes do not depend on their height, a node can be a sibling of its own
 * descendant: it is found high up, but needed at a lower height before that. */
static void many_heights(struct gpu_env *env)
{
    static const struct vxd_svdag_format format = {20, 0, false};
    struct vxd_svdag *from = make_svdag(env, &format, gpu_svdag_store(&format), 0);
    struct vxd_svdag *to = make_svdag(env, &format, gpu_svdag_store(&format), 0);
    struct vxd_svdag_collection *collection = begin(env, from, to);
    uint32_t root = VXD_SVDAG_EMPTY;
    uint32_t roots[12];
    uint64_t seed = 3;

    /* A uniform first child at every height, in scenes of few set voxels. */
    for (int i = 0; i < 12; i++) {
        for (int k = 0; k < 40; k++) {
            int height = 8 + (int)(gpu_random(&seed) % 10);
            uint32_t p[3] = {0, 0, 0};

            /* A scene in which one child is repeated over and over. */
            for (int h = height; h < 20; h++) {
                uint32_t octant = gpu_random(&seed) % 4 == 0 ? 7 : 0;

                for (int a = 0; a < 3; a++) {
                    p[a] |= (octant >> a & 1u) << h;
                }
            }
            root = fill_cube(env, from, root, p[0], p[1], p[2], height);
        }
        roots[i] = root;
        add(collection, root);
        root = i % 3 == 2 ? VXD_SVDAG_EMPTY : root;
    }
    (void)run(env, collection);
    for (int i = 0; i < 12; i++) {
        check_same(env, from, roots[i], to, moved(collection, roots[i]));
    }
    vxd_svdag_collect_end(env->queue, collection);
    vxd_svdag_destroy(env->queue, to);
    vxd_svdag_destroy(env->queue, from);
}

static void test_collection_of_nodes_at_several_heights_puts_children_first(void)
{
    gpu_each_backend(many_heights);
}

/* Small and refused ----------------------------------------------------------------------- */

static void small_roots(struct gpu_env *env)
{
    static const struct vxd_svdag_format format = {6, 4, true};
    static const struct vxd_svdag_format other = {6, 4, false};
    struct vxd_svdag *from = make_svdag(env, &format, gpu_svdag_store(&format), 0);
    struct vxd_svdag *to = make_svdag(env, &format, gpu_svdag_store(&format), 0);
    struct vxd_svdag *wrong = make_svdag(env, &other, gpu_svdag_store(&format), 0);
    const struct vxd_svdag_op op = {
        .action = VXD_SVDAG_FILL,
        .shape = {.kind = VXD_SVDAG_BALL, .a = {5000, 5000, 5000}, .r = 900}};
    struct vxd_svdag_collection *collection = NULL;
    struct vxd_err err = {0};
    uint32_t root;
    uint32_t out;

    CHECK_INT(vxd_svdag_collect_begin(env->queue, from, wrong, &collection, &err),
              VXD_INVALID_ARGUMENT);
    CHECK(collection == NULL);
    CHECK_INT(vxd_svdag_collect_begin(env->queue, from, from, &collection, &err),
              VXD_INVALID_ARGUMENT);
    vxd_svdag_collect_end(env->queue, NULL);
    collection = begin(env, from, to);
    CHECK_INT(run(env, collection), 1); /* no root */
    add(collection, VXD_SVDAG_EMPTY);
    add(collection, VXD_SVDAG_UNIFORM | 3);
    CHECK_INT(run(env, collection), 1);
    CHECK_INT(moved(collection, VXD_SVDAG_EMPTY), VXD_SVDAG_EMPTY);
    CHECK_INT(moved(collection, VXD_SVDAG_UNIFORM | 3), VXD_SVDAG_UNIFORM | 3);
    root = edit(env, from, VXD_SVDAG_EMPTY, &op);
    CHECK(!vxd_svdag_collect_root(collection, root, &out));
    add(collection, root);
    CHECK(!vxd_svdag_collect_root(collection, root, &out));
    add(collection, root);
    (void)run(env, collection);
    add(collection, root);
    CHECK_INT(run(env, collection), 1);
    check_same(env, from, root, to, moved(collection, root));
    vxd_svdag_collect_end(env->queue, collection);
    collection = begin(env, from, to);
    add(collection, root); /* destroyed before it is done */
    CHECK_INT(vxd_svdag_collect_step(env->queue, collection, 0, &(bool){false}, NULL), 0);
    vxd_svdag_collect_end(env->queue, collection);
    vxd_svdag_destroy(env->queue, wrong);
    vxd_svdag_destroy(env->queue, to);
    vxd_svdag_destroy(env->queue, from);
}

static void test_collection_of_empty_uniform_and_repeated_roots_is_nothing(void)
{
    gpu_each_backend(small_roots);
}

/* A full target whose budget grows a little each time. */
static void full_target(struct gpu_env *env)
{
    static const struct vxd_svdag_format format = {13, 4, true};
    struct vxd_svdag *from = make_svdag(env, &format, gpu_svdag_store(&format), 0);
    struct vxd_svdag *to = make_svdag(env, &format, gpu_svdag_store(&format), 0);
    struct vxd_svdag_collection *collection = begin(env, from, to);
    struct vxd_svdag_usage usage;
    struct vxd_svdag_summary before;
    struct vxd_svdag_summary after;
    uint32_t root = VXD_SVDAG_EMPTY;
    uint64_t seed = 9;
    bool is_done = false;
    int n_refused = 0;

    for (int i = 0; i < 6; i++) {
        struct vxd_svdag_op op = {.action = VXD_SVDAG_FILL, .value = (uint32_t)i};

        op.shape.kind = VXD_SVDAG_BALL;
        op.shape.r = (int64_t)VXD_SVDAG_UNIT * (150 + 20 * i);
        for (int a = 0; a < 3; a++) {
            op.shape.a[a] = (int64_t)(gpu_random(&seed) % (4096 * VXD_SVDAG_UNIT));
        }
        root = edit(env, from, root, &op);
    }
    before = verify(env, from, root);
    add(collection, root);
    vxd_svdag_get_usage(to, &usage);
    while (!is_done && n_refused < 1000) {
        struct vxd_err err = {0};
        enum vxd_status status;

        vxd_svdag_set_max_bytes(to, usage.n_bytes + (size_t)n_refused * 700000);
        status = vxd_svdag_collect_step(env->queue, collection, 0, &is_done, &err);
        if (status != VXD_OK) {
            CHECK_INT(status, VXD_RESOURCE_EXHAUSTED);
            CHECK(err.message[0] != '\0');
            n_refused++;
        }
    }
    CHECK(n_refused > 3);
    after = verify(env, from, root);
    CHECK(memcmp(&before, &after, sizeof before) == 0);
    check_same(env, from, root, to, moved(collection, root));
    vxd_svdag_collect_end(env->queue, collection);
    vxd_svdag_destroy(env->queue, to);
    vxd_svdag_destroy(env->queue, from);
}

static void test_collection_without_memory_goes_on_where_it_was_refused(void)
{
    gpu_each_backend(full_target);
}

/* All memory is freed, however far the collection came. */
static void given_back(struct gpu_env *env)
{
    static const struct vxd_svdag_format format = {7, 16, true};
    struct vxd_memory_usage memory;

    for (int n_steps = 0; n_steps < 40; n_steps += 3) {
        struct vxd_svdag *from = make_svdag(env, &format, VXD_SVDAG_ARENA, 0);
        struct vxd_svdag *to = make_svdag(env, &format, VXD_SVDAG_ARENA, 0);
        struct vxd_svdag_collection *collection = begin(env, from, to);
        uint64_t seed = 2;
        uint32_t root = VXD_SVDAG_EMPTY;

        for (int i = 0; i < 4; i++) {
            const struct vxd_svdag_op op = random_op(&format, &seed);

            root = edit(env, from, root, &op);
        }
        add(collection, root);
        for (int i = 0; i < n_steps; i++) {
            CHECK_INT(
                vxd_svdag_collect_step(env->queue, collection, 0, &(bool){false}, NULL),
                0);
        }
        vxd_svdag_collect_end(env->queue, collection);
        vxd_svdag_destroy(env->queue, from);
        vxd_svdag_destroy(env->queue, to);
        gpu_wait(env);
        vxd_context_get_memory(env->context, &memory);
        CHECK_INT(memory.device_bytes, 0);
        CHECK_INT(memory.host_bytes, 0);
    }
}

static void test_collection_gives_its_memory_back(void)
{
    gpu_each_backend(given_back);
}

/* Readers --------------------------------------------------------------------------------- */

struct reader {
    const struct vxd_svdag *svdag;
    uint32_t root;
    atomic_bool stops;
    atomic_size_t n_wrong;
};

/* A ball of 100 voxels around (1000, 1000, 1000). */
static void *read_voxels(void *args)
{
    struct reader *reader = args;
    uint64_t seed = 1;

    while (!atomic_load(&reader->stops)) {
        int64_t square = 0;
        uint32_t p[3];
        uint32_t value;
        unsigned state;

        for (int i = 0; i < 3; i++) {
            int64_t c = 880 + (int64_t)(gpu_random(&seed) % 240);
            int64_t d = 2 * c + 1 - 2000;

            p[i] = (uint32_t)c;
            square += d * d;
        }
        state =
            vxd_svdag_voxel(&reader->svdag->view, reader->root, p[0], p[1], p[2], &value);
        atomic_fetch_add(&reader->n_wrong,
                         (state == VXD_SVDAG_OCCUPIED) != (square <= 200 * 200));
    }
    return NULL;
}

static void test_collection_beside_readers_disturbs_none(void)
{
    static const struct vxd_svdag_format format = {14, 4, true};
    const struct vxd_svdag_op op = {
        .action = VXD_SVDAG_FILL,
        .shape = {
            .kind = VXD_SVDAG_BALL,
            .a = {1000 * VXD_SVDAG_UNIT, 1000 * VXD_SVDAG_UNIT, 1000 * VXD_SVDAG_UNIT},
            .r = 100 * VXD_SVDAG_UNIT}};
    struct gpu_env env;
    struct reader readers[2] = {{0}};
    struct vxd_svdag *dags[2];
    struct vxd_svdag_collection *collection;
    pthread_t threads[2];
    uint32_t root;

    gpu_env_create(&env, VXD_BACKEND_CPU, 3, 0, 0);
    for (int i = 0; i < 2; i++) {
        dags[i] = make_svdag(&env, &format, gpu_svdag_store(&format), 0);
        readers[i].svdag = dags[i];
        atomic_init(&readers[i].stops, false);
        atomic_init(&readers[i].n_wrong, 0);
    }
    root = edit(&env, dags[0], VXD_SVDAG_EMPTY, &op);
    readers[0].root = root;
    readers[1].root = edit(&env, dags[1], VXD_SVDAG_EMPTY, &op);
    for (int i = 0; i < 2; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, read_voxels, &readers[i]) == 0);
    }
    collection = begin(&env, dags[0], dags[1]);
    for (int i = 0; i < 4; i++) {
        struct vxd_svdag_op more = op;

        more.shape.a[0] += 30 * VXD_SVDAG_UNIT * (i + 1);
        root = edit(&env, dags[0], root, &more);
        add(collection, root);
        (void)run(&env, collection);
    }
    for (int i = 0; i < 2; i++) {
        atomic_store(&readers[i].stops, true);
        (void)pthread_join(threads[i], NULL);
        CHECK_INT(atomic_load(&readers[i].n_wrong), 0);
    }
    check_same(&env, dags[0], root, dags[1], moved(collection, root));
    vxd_svdag_collect_end(env.queue, collection);
    for (int i = 0; i < 2; i++) {
        vxd_svdag_destroy(env.queue, dags[i]);
    }
    gpu_env_destroy(&env);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_collection_keeps_the_voxels_of_roots_and_no_other_node),
    VXD_TEST(test_collection_beside_edits_carries_what_they_made),
    VXD_TEST(test_collection_beside_edits_of_the_new_store_finds_what_they_made),
    VXD_TEST(test_collection_of_nodes_at_several_heights_puts_children_first),
    VXD_TEST(test_collection_of_empty_uniform_and_repeated_roots_is_nothing),
    VXD_TEST(test_collection_without_memory_goes_on_where_it_was_refused),
    VXD_TEST(test_collection_gives_its_memory_back),
    VXD_TEST(test_collection_beside_readers_disturbs_none),
};

VXD_TEST_MAIN(tests)
