// SPDX-License-Identifier: Apache-2.0
/* Tables of items of one length, in every store and on every backend: inserted items are
 * found at the reference that the insertion returned, others are not found. */
#include "tests/support/test.h"

#include "gpu/svdag/node/node_math.h"
#include "gpu/svdag/table/table.h"
#include "tests/support/gpu/gpu_helpers.h"

/* An item that is distinct for every i, of a length that table.h allows. */
static void item_of(uint64_t i, int n_words, uint32_t *words)
{
    uint64_t state = i + 1;

    for (int k = 0; k < n_words; k++) {
        words[k] = (uint32_t)gpu_random(&state);
    }
    if (n_words < VXD_SVDAG_TABLE_MAX_WORDS) {
        /* Few different first words, as in nodes. */
        words[0] = (0xffu >> (9 - n_words)) | (words[0] & 0xf00u);
    } else {
        words[0] = ~(1u << words[0] % 32);
        words[1] = ~(1u << words[1] % 32);
    }
    words[n_words - 1] = (uint32_t)i;
}

struct fixture {
    struct gpu_env *env;
    struct vxd_svdag_table_spec spec;
    struct vxd_svdag_table *table;
};

static bool open_table(struct gpu_env *env, const struct vxd_svdag_table_spec *spec,
                       struct fixture *out)
{
    struct vxd_err err = {0};

    *out = (struct fixture){env, *spec, NULL};
    CHECK_INT(vxd_svdag_table_create(env->queue, spec, &out->table, &err), VXD_OK);
    CHECK_STR(err.message, "");
    return out->table != NULL;
}

/* n items from `first` on, in device memory; `change` is XORed into their last words. */
static struct vxd_buffer upload_items(const struct fixture *fixture, uint64_t first,
                                      size_t n, uint32_t change)
{
    size_t n_words = (size_t)fixture->spec.n_words;
    uint32_t *words = gpu_alloc(n * n_words * sizeof *words);
    struct vxd_buffer buffer;

    for (size_t i = 0; i < n; i++) {
        item_of(first + i, (int)n_words, words + i * n_words);
        words[i * n_words + n_words - 1] ^= change;
    }
    buffer = gpu_to_device(fixture->env, words, n * n_words * sizeof *words);
    gpu_wait(fixture->env);
    free(words);
    return buffer;
}

/* Inserts or finds n items and returns their references; malloc'ed. */
static uint32_t *refs_of(struct fixture *fixture, uint64_t first, size_t n,
                         uint32_t change, bool inserts)
{
    struct vxd_queue *queue = fixture->env->queue;
    struct vxd_buffer items = upload_items(fixture, first, n, change);
    struct vxd_buffer refs = gpu_to_device(fixture->env, NULL, n * sizeof(uint32_t));
    uint32_t *out;

    CHECK_INT(
        inserts
            ? vxd_svdag_table_insert(queue, fixture->table, items.ptr, n, refs.ptr, NULL)
            : vxd_svdag_table_find(queue, fixture->table, items.ptr, n, refs.ptr, NULL),
        VXD_OK);
    gpu_wait(fixture->env);
    out = gpu_to_host(fixture->env, &refs);
    vxd_device_free(queue, &items);
    vxd_device_free(queue, &refs);
    return out;
}

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

/* Sorts the references and checks that all are valid and distinct. */
static void check_distinct(uint32_t *refs, size_t n)
{
    int n_wrong = 0;

    qsort(refs, n, sizeof *refs, compare);
    for (size_t i = 0; i < n; i++) {
        n_wrong += !vxd_svdag_is_node(refs[i]) || (i > 0 && refs[i] == refs[i - 1]);
    }
    CHECK_INT(n_wrong, 0);
}

/* Inserts in batches of several sizes, each of which is looked up right afterwards and at
 * the end. */
static void fill_and_find(struct gpu_env *env, const struct vxd_svdag_table_spec *spec)
{
    static const size_t sizes[] = {1, 2, 7, 31, 33, 255, 257, 1000};
    size_t n = (size_t)spec->n_items;
    uint32_t *refs = gpu_alloc(n * sizeof *refs);
    uint32_t *found;
    struct vxd_svdag_table_usage usage;
    struct fixture fixture;
    size_t done = 0;

    if (!open_table(env, spec, &fixture)) {
        free(refs);
        return;
    }
    found = refs_of(&fixture, 0, 100, 0, false);
    for (int i = 0; i < 100; i++) {
        CHECK_INT(found[i], VXD_SVDAG_EMPTY);
    }
    free(found);
    for (int k = 0; done < n; k++) {
        size_t batch = k < 8 && sizes[k] < n - done ? sizes[k] : n - done;
        uint32_t *inserted = refs_of(&fixture, done, batch, 0, true);

        found = refs_of(&fixture, done, batch, 0, false);
        CHECK(memcmp(inserted, found, batch * sizeof *found) == 0);
        memcpy(refs + done, inserted, batch * sizeof *refs);
        free(inserted);
        free(found);
        done += batch;
    }
    found = refs_of(&fixture, 0, n, 0, false);
    CHECK(memcmp(refs, found, n * sizeof *found) == 0);
    free(found);
    found = refs_of(&fixture, 0, n, 1u << 31, false);
    for (size_t i = 0; i < n; i++) {
        CHECK_INT(found[i], VXD_SVDAG_EMPTY);
    }
    free(found);
    check_distinct(refs, n);
    CHECK_INT(vxd_svdag_table_get_usage(env->queue, fixture.table, &usage, NULL), VXD_OK);
    CHECK_INT(usage.n_items, n);
    CHECK_INT(usage.node_bytes, n * (size_t)spec->n_words * 4);
    CHECK(usage.used_bytes > usage.node_bytes && usage.used_bytes <= usage.n_bytes);
    vxd_svdag_table_destroy(env->queue, fixture.table);
    gpu_wait(env);
    free(refs);
}

static void each_size(struct gpu_env *env)
{
    for (int store = 0; store < GPU_N_STORES; store++) {
        for (int n_words = VXD_SVDAG_TABLE_MIN_WORDS;
             n_words <= VXD_SVDAG_TABLE_MAX_WORDS; n_words++) {
            struct vxd_svdag_table_spec spec = {(enum vxd_svdag_store)store, n_words,
                                                5000, 0};

            fill_and_find(env, &spec);
        }
    }
}

static void test_table_of_every_store_and_size_finds_what_was_inserted(void)
{
    gpu_each_backend(each_size);
}

/* One slab list, which all threads extend; and lists of one item each. */
static void each_load(struct gpu_env *env)
{
    static const uint32_t loads[] = {VXD_SVDAG_MAX_LOAD, 1, 32};

    for (int store = 0; store < GPU_N_STORES; store++) {
        for (int i = 0; i < 3; i++) {
            struct vxd_svdag_table_spec spec = {(enum vxd_svdag_store)store, 5, 6000,
                                                loads[i]};

            fill_and_find(env, &spec);
        }
    }
}

static void test_table_of_one_list_or_of_very_many_finds_what_was_inserted(void)
{
    gpu_each_backend(each_load);
}

static void over_capacity(struct gpu_env *env)
{
    for (int store = 0; store < GPU_N_STORES; store++) {
        struct vxd_svdag_table_spec spec = {(enum vxd_svdag_store)store, 6, 500, 0};
        struct fixture fixture;
        struct vxd_buffer items;
        struct vxd_err err = {0};
        uint32_t *refs;

        if (!open_table(env, &spec, &fixture)) {
            continue;
        }
        free(refs_of(&fixture, 0, 400, 0, true));
        items = upload_items(&fixture, 400, 101, 0);
        CHECK_INT(
            vxd_svdag_table_insert(env->queue, fixture.table, items.ptr, 101, NULL, &err),
            VXD_RESOURCE_EXHAUSTED);
        CHECK_STR(err.field, "n");
        CHECK_INT(
            vxd_svdag_table_insert(env->queue, fixture.table, items.ptr, 100, NULL, NULL),
            VXD_OK);
        CHECK_INT(
            vxd_svdag_table_insert(env->queue, fixture.table, items.ptr, 0, NULL, NULL),
            VXD_OK);
        CHECK_INT(vxd_svdag_table_insert(env->queue, fixture.table, NULL, 0, NULL, NULL),
                  VXD_OK);
        gpu_wait(env);
        vxd_device_free(env->queue, &items);
        refs = refs_of(&fixture, 0, 501, 0, false);
        CHECK_INT(refs[500], VXD_SVDAG_EMPTY);
        check_distinct(refs, 500);
        free(refs);
        vxd_svdag_table_destroy(env->queue, fixture.table);
        gpu_wait(env);
    }
}

static void test_insert_of_more_than_the_table_holds_is_refused(void)
{
    gpu_each_backend(over_capacity);
}

static void wrong_calls(struct gpu_env *env)
{
    static const struct {
        struct vxd_svdag_table_spec spec;
        const char *field;
    } cases[] = {
        {{(enum vxd_svdag_store)5, 2, 1, 0}, "store"},
        {{(enum vxd_svdag_store) - 1, 2, 1, 0}, "store"},
        {{VXD_SVDAG_ARENA, 1, 1, 0}, "n_words"},
        {{VXD_SVDAG_ARENA, 11, 1, 0}, "n_words"},
        {{VXD_SVDAG_TICKET, 2, 0, 0}, "n_items"},
        {{VXD_SVDAG_TICKET, 2, VXD_SVDAG_MAX_TABLE_ITEMS + 1, 0}, "n_items"},
        {{VXD_SVDAG_TICKET, 2, 1, VXD_SVDAG_MAX_LOAD + 1}, "load"},
    };
    struct vxd_svdag_table_spec spec = {(enum vxd_svdag_store)(GPU_N_STORES - 1), 2, 10,
                                        0};
    struct fixture fixture;
    uint32_t words[2] = {1, 1};
    struct vxd_err err = {0};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct vxd_svdag_table *table;

        CHECK_INT(vxd_svdag_table_create(env->queue, &cases[i].spec, &table, &err),
                  VXD_INVALID_ARGUMENT);
        CHECK_STR(err.field, cases[i].field);
        CHECK(table == NULL);
    }
    vxd_svdag_table_destroy(env->queue, NULL);
    if (open_table(env, &spec, &fixture)) {
        CHECK_INT(vxd_svdag_table_insert(env->queue, fixture.table, NULL, 1, NULL, &err),
                  VXD_INVALID_ARGUMENT);
        CHECK_STR(err.field, "items");
        CHECK_INT(vxd_svdag_table_find(env->queue, fixture.table, words, 1, NULL, &err),
                  VXD_INVALID_ARGUMENT);
        CHECK_STR(err.field, "refs");
        vxd_svdag_table_destroy(env->queue, fixture.table);
        gpu_wait(env);
    }
}

static void test_table_calls_outside_their_ranges_name_the_field(void)
{
    gpu_each_backend(wrong_calls);
}

static void test_insert_over_the_memory_budget_is_refused_at_the_wait(void)
{
    for (int store = 0; store < GPU_N_STORES; store++) {
        struct vxd_svdag_table_spec spec = {(enum vxd_svdag_store)store, 9, 200000, 0};
        struct gpu_env env;
        struct fixture fixture;
        struct vxd_buffer items;
        struct vxd_memory_usage memory;
        struct vxd_err err = {0};

        gpu_env_create(&env, VXD_BACKEND_CPU, 2, (size_t)12 << 20, 0);
        if (open_table(&env, &spec, &fixture)) {
            items = upload_items(&fixture, 0, 200000, 0);
            CHECK_INT(vxd_svdag_table_insert(env.queue, fixture.table, items.ptr, 200000,
                                             NULL, NULL),
                      VXD_OK);
            CHECK_INT(vxd_queue_wait(env.queue, &err), VXD_RESOURCE_EXHAUSTED);
            CHECK(err.message[0] != '\0');
            vxd_device_free(env.queue, &items);
            vxd_svdag_table_destroy(env.queue, fixture.table);
        }
        gpu_wait(&env);
        vxd_context_get_memory(env.context, &memory);
        CHECK_INT(memory.device_bytes, 0);
        gpu_env_destroy(&env);
    }
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_table_of_every_store_and_size_finds_what_was_inserted),
    VXD_TEST(test_table_of_one_list_or_of_very_many_finds_what_was_inserted),
    VXD_TEST(test_insert_of_more_than_the_table_holds_is_refused),
    VXD_TEST(test_table_calls_outside_their_ranges_name_the_field),
    VXD_TEST(test_insert_over_the_memory_budget_is_refused_at_the_wait),
};

VXD_TEST_MAIN(tests)
