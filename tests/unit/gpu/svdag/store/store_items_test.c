// SPDX-License-Identifier: Apache-2.0
/* The CPU's stores, item by item: finding and inserting, concurrent writers, and memory
 * use. A GPU's stores are tested by edits. */
#include "tests/support/test.h"

#include <pthread.h>

#include "gpu/svdag/store/store.h"
#include "tests/support/svdag/svdag_run.h"
#include "tests/support/svdag/svdag_scene.h"
#include "tests/support/gpu/gpu_helpers.h"

static const struct vxd_svdag_format bits_0 = {5, 0, false};
static const struct vxd_svdag_format bits_4 = {5, 4, false};
static const struct vxd_svdag_format bits_16 = {5, 16, true};

static struct vxd_svdag *
make_svdag(struct gpu_env *env, const struct vxd_svdag_format *format, size_t max_bytes)
{
    const struct vxd_svdag_spec spec = {.format = *format,
                                        .store = gpu_svdag_store(format),
                                        .max_bytes = max_bytes,
                                        .table_items = (uint64_t)1 << 14};

    return gpu_svdag_create(env, &spec);
}

static struct vxd_svdag_usage usage_of(const struct vxd_svdag *svdag)
{
    struct vxd_svdag_usage usage;

    vxd_svdag_get_usage(svdag, &usage);
    return usage;
}

/* An inner node of n_children that is distinct for every i; its references are invalid,
 * which only verify would detect. */
static int inner_item(uint64_t i, int n_children, uint32_t words[9])
{
    uint64_t state = i;

    words[0] = (1u << n_children) - 1;
    for (int k = 1; k <= n_children; k++) {
        words[k] = (uint32_t)(gpu_random(&state) & 0x7fffffffu) | 1u;
    }
    words[n_children] = (uint32_t)i + 1;
    return n_children + 1;
}

static void test_put_of_every_kind_and_size_is_found_again(void)
{
    static uint32_t refs[400][8];
    struct gpu_env env;
    struct vxd_svdag *svdag;
    struct vxd_svdag_writer writer = {0};
    uint32_t words[VXD_SVDAG_MAX_ITEM_WORDS];
    uint32_t other;

    gpu_env_create(&env, VXD_BACKEND_CPU, 1, 0, 0);
    svdag = writer.svdag = make_svdag(&env, &bits_16, 0);
    CHECK_INT(vxd_svdag_find(svdag, VXD_SVDAG_INNER, words, inner_item(1, 3, words)), 0);
    for (int pass = 0; pass < 2; pass++) {
        for (uint64_t i = 0; i < 400 * 8; i++) {
            int n = inner_item(i, (int)(i % 8) + 1, words);
            uint32_t *ref = &refs[i / 8][i % 8];

            if (pass == 0) {
                REQUIRE(vxd_svdag_put(&writer, VXD_SVDAG_INNER, 3, words, n, ref, NULL) ==
                        0);
                CHECK(vxd_svdag_is_node(*ref));
            }
            CHECK(memcmp(vxd_svdag_words(&svdag->view, *ref), words, 4 * (size_t)n) == 0);
            CHECK_INT(vxd_svdag_find(svdag, VXD_SVDAG_INNER, words, n), *ref);
            REQUIRE(vxd_svdag_put(&writer, VXD_SVDAG_INNER, 3, words, n, &other, NULL) ==
                    0);
            CHECK_INT(other, *ref);
        }
    }
    CHECK_INT(usage_of(svdag).n_inner, 400 * 8);
    CHECK_INT(writer.n_new[3], 400 * 8);
    CHECK_INT(usage_of(svdag).node_bytes, 4 * 400 * (2 + 3 + 4 + 5 + 6 + 7 + 8 + 9));

    /* Blocks of 1 to 64 halfwords; then the same three words as items of all three
     * kinds. */
    for (uint32_t n = 1; n <= 64; n++) {
        memset(words, 0x5a, sizeof words);
        words[0] = n;
        REQUIRE(vxd_svdag_put(&writer, VXD_SVDAG_BLOCK, 0, words,
                              vxd_svdag_block_words(16, (int)n), &refs[0][0], NULL) == 0);
        CHECK_INT(vxd_svdag_find(svdag, VXD_SVDAG_BLOCK, words,
                                 vxd_svdag_block_words(16, (int)n)),
                  refs[0][0]);
    }
    words[0] = 3;
    for (int kind = 0; kind < VXD_SVDAG_N_KINDS; kind++) {
        REQUIRE(vxd_svdag_put(&writer, (enum vxd_svdag_kind)kind, 2, words, 3,
                              &refs[1][kind], NULL) == 0);
    }
    CHECK(refs[1][0] != refs[1][1] && refs[1][1] != refs[1][2]);
    CHECK_INT(usage_of(svdag).n_leaves, 1);
    CHECK_INT(usage_of(svdag).n_blocks, 64);
    vxd_svdag_writer_close(&writer);
    vxd_svdag_destroy(env.queue, svdag);
    gpu_env_destroy(&env);
}

/* A leaf of 4-bit materials, 3 to 10 words, distinct by i. */
static int leaf_item(uint64_t i, int n_words, uint32_t words[10])
{
    uint64_t state = i;
    uint64_t ones = UINT64_MAX >> (64 - (8 * (n_words - 2) - (int)(i % 8)));
    uint64_t mask = ones << i % 64 | (i % 64 == 0 ? 0 : ones >> (64 - i % 64));

    words[0] = (uint32_t)mask;
    words[1] = (uint32_t)(mask >> 32);
    for (int k = 2; k < n_words; k++) {
        words[k] = (uint32_t)gpu_random(&state);
    }
    words[2] = (uint32_t)i;
    return n_words;
}

static void test_put_of_leaves_and_nodes_of_every_size_is_found_again(void)
{
    enum {
        N_ITEMS = 16000
    };
    static uint32_t refs[2][N_ITEMS];
    struct gpu_env env;
    struct vxd_svdag *svdag;
    struct vxd_svdag_writer writer = {0};
    uint32_t words[10];
    uint32_t node[4] = {7, 0, 9, 9};

    gpu_env_create(&env, VXD_BACKEND_CPU, 1, 0, 0);
    svdag = writer.svdag = make_svdag(&env, &bits_4, 0);
    for (int pass = 0; pass < 3; pass++) {
        for (uint64_t i = 0; i < 2 * N_ITEMS; i++) {
            enum vxd_svdag_kind kind = i % 2 == 0 ? VXD_SVDAG_LEAF : VXD_SVDAG_INNER;
            int size = (int)(i / 2 % 8);
            int n = kind == VXD_SVDAG_LEAF ? leaf_item(i / 2, size + 3, words)
                                           : inner_item(i / 2, size + 1, words);
            uint32_t *ref = &refs[i % 2][i / 2];

            if (pass == 0) {
                CHECK_INT(vxd_svdag_find(svdag, kind, words, n), VXD_SVDAG_EMPTY);
                REQUIRE(vxd_svdag_put(&writer, kind, 3, words, n, ref, NULL) == VXD_OK);
            } else if (pass == 1) {
                struct vxd_svdag_item item = vxd_svdag_item_at(&svdag->view, *ref, n);

                CHECK_INT(vxd_svdag_find(svdag, kind, words, n), *ref);
                for (int k = 0; k < n; k++) {
                    CHECK_INT(vxd_svdag_item_word(&item, k), words[k]);
                }
            } else {
                words[n - 1] ^= 1u << 31;
                CHECK_INT(vxd_svdag_find(svdag, kind, words, n), VXD_SVDAG_EMPTY);
            }
        }
    }
    CHECK_INT(usage_of(svdag).n_leaves, N_ITEMS);
    CHECK_INT(usage_of(svdag).n_inner, N_ITEMS);
    CHECK_INT(usage_of(svdag).node_bytes, 4 * N_ITEMS / 8 * (44 + 52));

    /* The same words as a leaf of two nibbles and as a node of three children. */
    REQUIRE(vxd_svdag_put(&writer, VXD_SVDAG_LEAF, 2, node, 3, &refs[0][0], NULL) ==
            VXD_OK);
    CHECK_INT(vxd_svdag_find(svdag, VXD_SVDAG_INNER, node, 4), VXD_SVDAG_EMPTY);
    REQUIRE(vxd_svdag_put(&writer, VXD_SVDAG_INNER, 3, node, 4, &refs[1][0], NULL) ==
            VXD_OK);
    CHECK(refs[0][0] != refs[1][0]);
    CHECK_INT(vxd_svdag_find(svdag, VXD_SVDAG_LEAF, node, 3), refs[0][0]);
    vxd_svdag_writer_close(&writer);
    vxd_svdag_destroy(env.queue, svdag);
    gpu_env_destroy(&env);
}

enum {
    N_RACERS = 4,
    N_RACED = 20000
};

struct racer {
    pthread_t thread;
    struct vxd_svdag *svdag;
    size_t step;
    uint64_t n_new;
    int n_failed;
    uint32_t refs[N_RACED];
};

static void *race(void *args)
{
    struct racer *racer = args;
    struct vxd_svdag_writer writer = {.svdag = racer->svdag};

    for (size_t k = 0; k < N_RACED; k++) {
        size_t i = k * racer->step % N_RACED;
        uint32_t words[9];
        int n = inner_item(i, (int)(i % 8) + 1, words);

        racer->n_failed += vxd_svdag_put(&writer, VXD_SVDAG_INNER, 3, words, n,
                                         &racer->refs[i], NULL) != VXD_OK;
        racer->n_failed +=
            vxd_svdag_find(racer->svdag, VXD_SVDAG_INNER, words, n) != racer->refs[i];
        if (k % 1000 == 0) {
            racer->n_failed += usage_of(racer->svdag).n_inner < k / N_RACERS;
        }
    }
    racer->n_new = writer.n_new[3];
    vxd_svdag_writer_close(&writer);
    return NULL;
}

static void test_put_racing_on_equal_items_stores_them_once(void)
{
    static const size_t steps[N_RACERS] = {1, 3, 19999, 7}; /* coprime to N_RACED */
    static struct racer racers[N_RACERS];
    struct gpu_env env;
    struct vxd_svdag *svdag;
    uint64_t n_new = 0;

    gpu_env_create(&env, VXD_BACKEND_CPU, 1, 0, 0);
    svdag = make_svdag(&env, &bits_0, 0);
    for (int i = 0; i < N_RACERS; i++) {
        racers[i].svdag = svdag;
        racers[i].step = steps[i];
        REQUIRE(pthread_create(&racers[i].thread, NULL, race, &racers[i]) == 0);
    }
    for (int i = 0; i < N_RACERS; i++) {
        (void)pthread_join(racers[i].thread, NULL);
        CHECK_INT(racers[i].n_failed, 0);
        CHECK(memcmp(racers[i].refs, racers[0].refs, sizeof racers[0].refs) == 0);
        n_new += racers[i].n_new;
    }
    CHECK_INT(n_new, N_RACED);
    CHECK_INT(usage_of(svdag).n_inner, N_RACED);
    vxd_svdag_destroy(env.queue, svdag);
    gpu_env_destroy(&env);
}

/* --- memory -------------------------------------------------------------------------- */

/* Inserts items of nine words, from `first` on (earlier ones are in the store), until one
 * does not fit; returns how many there are then. */
static uint64_t fill(struct vxd_svdag *svdag, uint64_t first)
{
    struct vxd_svdag_writer writer = {.svdag = svdag};
    struct vxd_svdag_usage usage;
    struct vxd_err err = {0};
    uint32_t words[9];
    uint32_t ref;
    uint64_t n = first;

    while (vxd_svdag_put(&writer, VXD_SVDAG_INNER, 3, words, inner_item(n, 8, words),
                         &ref, &err) == VXD_OK) {
        n++;
    }
    usage = usage_of(svdag);
    CHECK_INT(err.code, VXD_RESOURCE_EXHAUSTED);
    CHECK(err.message[0] != '\0');
    CHECK_INT(usage.n_inner, n);
    CHECK_INT(usage.node_bytes, 36 * n);
    CHECK_INT(vxd_svdag_find(svdag, VXD_SVDAG_INNER, words, inner_item(n, 8, words)), 0);
    for (uint64_t i = 0; i < n; i++) {
        int n_words = inner_item(i, 8, words);

        CHECK(vxd_svdag_put(&writer, VXD_SVDAG_INNER, 3, words, n_words, &ref, &err) ==
              VXD_OK);
        CHECK_INT(vxd_svdag_find(svdag, VXD_SVDAG_INNER, words, n_words), ref);
    }
    vxd_svdag_writer_close(&writer);
    CHECK_INT(usage_of(svdag).n_inner, n);
    return n;
}

static void test_put_at_the_budget_stores_nothing(void)
{
    static const size_t budgets[2][2] = {{2 << 20, 0}, {0, 3 << 20}};
    struct gpu_env env;

    for (int i = 0; i < 2; i++) {
        size_t max_bytes = budgets[i][0] != 0 ? budgets[i][0] : budgets[i][1];
        struct vxd_memory_usage memory;
        struct vxd_svdag *svdag;
        uint64_t n;

        gpu_env_create(&env, VXD_BACKEND_CPU, 1, budgets[i][1], 0);
        svdag = make_svdag(&env, &bits_0, budgets[i][0]);
        n = fill(svdag, 0);
        CHECK(usage_of(svdag).n_bytes <= max_bytes);
        /* Most of the budget was used. */
        CHECK(n * 36 > max_bytes / 3);
        if (budgets[i][0] != 0) {
            vxd_svdag_set_max_bytes(svdag, 2 * max_bytes);
            CHECK(fill(svdag, n) > n);
            vxd_svdag_set_max_bytes(svdag, max_bytes);
            (void)fill(svdag, usage_of(svdag).n_inner);
        }
        vxd_svdag_destroy(env.queue, svdag);
        vxd_context_get_memory(env.context, &memory);
        CHECK_INT(memory.device_bytes, 0);
        gpu_env_destroy(&env);
    }
}

static void test_store_of_many_items_takes_little_more_than_they(void)
{
    enum {
        N_ITEMS = 900000,
        CHUNK_BYTES = 4 << VXD_SVDAG_CHUNK_BITS
    };
    struct gpu_env env;
    struct vxd_svdag *svdag;
    struct vxd_svdag_usage usage;
    struct vxd_memory_usage memory;
    struct vxd_svdag_writer writer = {0};
    uint32_t words[9];
    uint32_t ref;
    uint64_t empty_bytes;
    bool is_slabs = gpu_svdag_store(&bits_0) != VXD_SVDAG_ARENA;

    gpu_env_create(&env, VXD_BACKEND_CPU, 1, 0, 0);
    svdag = writer.svdag = make_svdag(&env, &bits_0, 0);
    empty_bytes = usage_of(svdag).n_bytes;
    CHECK(is_slabs || empty_bytes < 256 << 10);
    for (uint64_t i = 0; i < N_ITEMS; i++) {
        int n = inner_item(i, (int)(i % 8) + 1, words);

        REQUIRE(vxd_svdag_put(&writer, VXD_SVDAG_INNER, 3, words, n, &ref, NULL) ==
                VXD_OK);
    }
    vxd_svdag_writer_close(&writer);
    usage = usage_of(svdag);
    CHECK_INT(usage.node_bytes, (uint64_t)N_ITEMS * 22);
    /* For the arena: at most 7.7 bytes of index per item, and one percent lost at ends of
     * segments. For slabs, at six times the load that tables were created for: 32 words
     * per slab of 31 items, one slab in 22 half empty, and a chunk per length. */
    CHECK(usage.n_bytes <= (is_slabs ? empty_bytes + usage.node_bytes * 111 / 100 +
                                           8 * CHUNK_BYTES + (uint64_t)N_ITEMS * 5
                                     : empty_bytes + usage.node_bytes * 101 / 100 +
                                           CHUNK_BYTES + (uint64_t)N_ITEMS * 77 / 10));
    vxd_context_get_memory(env.context, &memory);
    CHECK(memory.device_bytes <= usage.n_bytes * 101 / 100);
    vxd_svdag_destroy(env.queue, svdag);
    gpu_env_destroy(&env);
}

static void test_writers_of_one_item_each_share_segments(void)
{
    struct gpu_env env;
    struct vxd_svdag *svdag;
    uint32_t words[9];
    uint32_t ref;

    gpu_env_create(&env, VXD_BACKEND_CPU, 1, 0, 0);
    svdag = make_svdag(&env, &bits_0, 0);
    for (uint64_t i = 0; i < 5000; i++) {
        struct vxd_svdag_writer writer = {.svdag = svdag};
        int n = inner_item(i, 8, words);

        REQUIRE(vxd_svdag_put(&writer, VXD_SVDAG_INNER, 3, words, n, &ref, NULL) ==
                VXD_OK);
        vxd_svdag_writer_close(&writer);
    }
    CHECK(svdag->spec.store != VXD_SVDAG_ARENA || ref < 5000 * 9 * 101 / 100);
    vxd_svdag_destroy(env.queue, svdag);
    gpu_env_destroy(&env);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_put_of_every_kind_and_size_is_found_again),
    VXD_TEST(test_put_of_leaves_and_nodes_of_every_size_is_found_again),
    VXD_TEST(test_put_racing_on_equal_items_stores_them_once),
    VXD_TEST(test_put_at_the_budget_stores_nothing),
    VXD_TEST(test_store_of_many_items_takes_little_more_than_they),
    VXD_TEST(test_writers_of_one_item_each_share_segments),
};

VXD_TEST_MAIN(tests)
