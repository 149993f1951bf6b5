// SPDX-License-Identifier: Apache-2.0
/* The guarantees of hash maps one by one, on the CPU with 1 and 3 threads;
 * test_gpu_hash_model compares long random sequences with a model, on every backend. */
#include <math.h>

#include "gpu/hash/hash.h"
#include "gpu/hash/open_cpu.h"
#include "tests/support/gpu/gpu_helpers.h"
#include "tests/support/limits.h"
#include "tests/support/test.h"

/* The value row of a key is the number that the key was made from. */
static const struct vxd_hashmap_spec int3_spec = {
    .key_dtype = VXD_INT32, .n_components = 3, .n_values = 1, .values = {{VXD_INT32, 1}}};

static struct gpu_env env;
static struct vxd_err err;

static void each_thread_count(void (*body)(void))
{
    for (int n_threads = 1; n_threads <= 3; n_threads += 2) {
        gpu_env_create(&env, VXD_BACKEND_CPU, n_threads, 0, 0);
        body();
        gpu_env_destroy(&env);
    }
}

static struct vxd_hashmap *map_of(const struct vxd_hashmap_spec *like, size_t capacity)
{
    struct vxd_hashmap_spec spec = *like;
    struct vxd_hashmap *map = NULL;

    spec.capacity = capacity;
    CHECK_INT(vxd_hashmap_create(env.queue, &spec, &map, &err), VXD_OK);
    return map;
}

static void key_of(uint32_t number, int32_t key[3])
{
    uint64_t state = number;
    uint64_t bits = gpu_random(&state);

    key[0] = (int32_t)(bits & 0x1fffff) - (1 << 20);
    key[1] = (int32_t)(bits >> 21 & 0x1fffff) - (1 << 20);
    key[2] = (int32_t)(bits >> 42 & 0x1fffff) - (1 << 20);
    if (number % 16 == 15) { /* cannot be packed */
        key[number / 16 % 3] = INT32_MIN + (int32_t)number;
    }
}

static int32_t *keys_of(const uint32_t *numbers, size_t n)
{
    int32_t *keys = gpu_alloc((n + 1) * 12);

    for (size_t i = 0; i < n; i++) {
        key_of(numbers[i], keys + 3 * i);
    }
    return keys;
}

/* Inserts the keys of n numbers, with the numbers as values; outputs may be NULL. */
static enum vxd_status insert(struct vxd_hashmap *map, const uint32_t *numbers, size_t n,
                              enum vxd_hash_order order, size_t max_new, int32_t *indices,
                              uint8_t *is_new)
{
    int32_t *keys = keys_of(numbers, n);
    const void *values[1] = {numbers};
    struct vxd_hashmap_insert_args args = {.keys = keys,
                                           .n = n,
                                           .values = values,
                                           .order = order,
                                           .max_new = max_new,
                                           .indices = indices,
                                           .is_new = is_new};
    enum vxd_status status = vxd_hashmap_insert(env.queue, map, &args, &err);

    if (status == VXD_OK) {
        status = vxd_queue_wait(env.queue, &err);
    }
    free(keys);
    return status;
}

static int32_t find_one(const struct vxd_hashmap *map, uint32_t number)
{
    int32_t key[3];
    int32_t index = -7;

    key_of(number, key);
    CHECK_INT(vxd_hashmap_find(env.queue, map, key, 1, &index, NULL, &err), VXD_OK);
    gpu_wait(&env);
    return index;
}

static bool erase_one(struct vxd_hashmap *map, uint32_t number)
{
    int32_t key[3];
    uint8_t erased = 7;

    key_of(number, key);
    CHECK_INT(vxd_hashmap_erase(env.queue, map, key, 1, VXD_HASH_FIRST, &erased, &err),
              VXD_OK);
    gpu_wait(&env);
    return erased == 1;
}

static size_t size_of(struct vxd_hashmap *map)
{
    size_t n = SIZE_MAX;

    CHECK_INT(vxd_hashmap_size(env.queue, map, &n, &err), VXD_OK);
    return n;
}

static void destroy(struct vxd_hashmap *map)
{
    vxd_hashmap_destroy(env.queue, map);
    gpu_wait(&env);
}

static void insert_first(void)
{
    static const uint32_t numbers[6] = {5, 15, 5, 31, 15, 8};
    static const int32_t expected[6] = {0, 1, 0, 2, 1, 3};
    static const uint8_t expected_new[6] = {1, 1, 0, 1, 0, 1};
    static const uint32_t later[4] = {40, 31, 41, 42};
    static const int32_t expected_later[4] = {0, 2, 1, 4};
    struct vxd_hashmap *map = map_of(&int3_spec, 6);
    int32_t indices[6];
    uint8_t is_new[6];

    CHECK_INT(insert(map, numbers, 6, VXD_HASH_FIRST, 0, indices, is_new), VXD_OK);
    CHECK(memcmp(indices, expected, sizeof expected) == 0);
    CHECK(memcmp(is_new, expected_new, sizeof expected_new) == 0);
    CHECK_INT(size_of(map), 4);
    CHECK_INT(find_one(map, 31), 2);
    CHECK_INT(find_one(map, 32), VXD_NO_ENTRY);
    CHECK_INT(((int32_t *)vxd_hashmap_values(map, 0))[2], 31);
    /* Lowest free numbers first. */
    CHECK(erase_one(map, 15));
    CHECK(!erase_one(map, 15));
    CHECK(erase_one(map, 5));
    CHECK_INT(((int32_t *)vxd_hashmap_values(map, 0))[0], 0);
    CHECK_INT(vxd_hashmap_erase_epoch(map), 3);
    CHECK_INT(size_of(map), 2);
    CHECK_INT(insert(map, later, 4, VXD_HASH_FIRST, 0, indices, is_new), VXD_OK);
    CHECK(memcmp(indices, expected_later, sizeof expected_later) == 0);
    CHECK_INT(is_new[1], 0);
    destroy(map);
}

static void test_insert_first_takes_lowest_numbers_by_position(void)
{
    each_thread_count(insert_first);
}

/* Enough keys for many regions, and a growth in several chunks; the expected answer
 * follows from the position alone. */
static void insert_many(void)
{
    const size_t n = 300000;
    uint32_t *numbers = gpu_alloc(n * sizeof *numbers);
    int32_t *indices = gpu_alloc(n * sizeof *indices);
    int32_t *first = gpu_alloc(n * sizeof *first);
    uint8_t *is_new = gpu_alloc(n);
    struct vxd_hashmap *map = map_of(&int3_spec, n);
    uint64_t state = 1;
    int32_t n_distinct = 0;
    size_t n_wrong = 0;

    memset(first, 0xff, n * sizeof *first);
    for (size_t i = 0; i < n; i++) {
        numbers[i] = (uint32_t)(gpu_random(&state) % n);
    }
    CHECK_INT(insert(map, numbers, n, VXD_HASH_FIRST, 0, indices, is_new), VXD_OK);
    for (size_t i = 0; i < n; i++) {
        bool expected_new = first[numbers[i]] < 0;

        if (expected_new) {
            first[numbers[i]] = n_distinct++;
        }
        n_wrong += is_new[i] != expected_new || indices[i] != first[numbers[i]] ? 1 : 0;
    }
    CHECK_INT(n_wrong, 0);
    CHECK_INT(size_of(map), n_distinct);
    CHECK_INT(vxd_hashmap_reserve(env.queue, map, 3 * n, &err),
              VXD_OK); /* several chunks */
    for (uint32_t i = 0; i < n; i++) {
        n_wrong += i % 97 == 0 && find_one(map, i) != first[i] ? 1 : 0;
    }
    CHECK_INT(n_wrong, 0);
    destroy(map);
    free(is_new);
    free(first);
    free(indices);
    free(numbers);
}

static void test_insert_of_many_duplicates_numbers_by_first_position(void)
{
    each_thread_count(insert_many);
}

/* The CPU processes a long batch in chunks: positions of the second chunk have their
 * own answers, and find the keys of the first. */
static void more_than_a_chunk(void)
{
    enum {
        N_KEYS = 2500
    };
    const struct vxd_hashmap_spec spec = {.key_dtype = VXD_INT32,
                                          .n_components = 1,
                                          .n_values = 1,
                                          .values = {{VXD_INT32, 1}}};
    const size_t n = VXD_OPEN_CHUNK + 3000;
    int32_t *keys = gpu_alloc(n * sizeof *keys);
    int32_t *positions = gpu_alloc(n * sizeof *positions);
    int32_t *indices = gpu_alloc(n * sizeof *indices);
    uint8_t *flags = gpu_alloc(n);
    const void *values[1] = {positions};
    struct vxd_hashmap_insert_args args = {.keys = keys,
                                           .n = n,
                                           .values = values,
                                           .max_new = N_KEYS,
                                           .indices = indices,
                                           .is_new = flags};
    struct vxd_hashmap *map = map_of(&spec, N_KEYS);
    int32_t first[N_KEYS]; /* position of a key */
    int32_t number[N_KEYS];
    int32_t n_distinct = 0;
    size_t n_wrong = 0;

    memset(first, 0xff, sizeof first);
    for (size_t i = 0; i < n; i++) {
        positions[i] = (int32_t)i;
        keys[i] = (int32_t)(i < VXD_OPEN_CHUNK ? i % 1000 : (i * 7) % N_KEYS);
        if (first[keys[i]] < 0) {
            first[keys[i]] = (int32_t)i;
            number[keys[i]] = n_distinct++;
        }
    }
    CHECK_INT(vxd_hashmap_insert(env.queue, map, &args, &err), VXD_OK);
    gpu_wait(&env);
    CHECK_INT(size_of(map), n_distinct);
    for (size_t i = 0; i < n; i++) {
        n_wrong += flags[i] != (first[keys[i]] == (int32_t)i) ? 1 : 0;
        n_wrong += indices[i] != number[keys[i]] ? 1 : 0;
    }
    for (int32_t key = 0; key < N_KEYS; key++) {
        const int32_t *of_entries = vxd_hashmap_values(map, 0);

        n_wrong += first[key] >= 0 && of_entries[number[key]] != first[key] ? 1 : 0;
    }
    CHECK_INT(n_wrong, 0);
    CHECK_INT(vxd_hashmap_erase(env.queue, map, keys, n, VXD_HASH_FIRST, flags, &err),
              VXD_OK);
    gpu_wait(&env);
    for (size_t i = 0; i < n; i++) {
        n_wrong += flags[i] != (first[keys[i]] == (int32_t)i) ? 1 : 0;
    }
    CHECK_INT(n_wrong, 0);
    CHECK_INT(size_of(map), 0);
    destroy(map);
    free(flags);
    free(indices);
    free(positions);
    free(keys);
}

static void test_batch_of_more_than_a_chunk_answers_every_position(void)
{
    each_thread_count(more_than_a_chunk);
}

static void prepare(void)
{
    static const uint32_t numbers[8] = {0, 1, 2, 3, 15, 31, 47, 63};
    uint32_t many[100];
    struct vxd_hashmap *map = map_of(&int3_spec, 8);
    int32_t indices[8];
    int32_t *keys;
    size_t n_new = 0;

    for (uint32_t i = 0; i < 100; i++) {
        many[i] = numbers[i % 8];
    }
    CHECK_INT(insert(map, numbers, 8, VXD_HASH_FIRST, 0, NULL, NULL), VXD_OK);
    keys = keys_of(many, 100);
    CHECK_INT(vxd_hashmap_prepare(env.queue, map, keys, 100, &n_new, &err), VXD_OK);
    CHECK(n_new == VXD_NONE_NEW);
    CHECK_INT(vxd_hashmap_capacity(map), 8);
    CHECK_INT(insert(map, many, 100, VXD_HASH_FIRST, n_new, NULL, NULL), VXD_OK);
    CHECK_INT(insert(map, many, 100, VXD_HASH_FIRST, 0, NULL, NULL),
              VXD_RESOURCE_EXHAUSTED);
    key_of(100, keys + 3 * 50);
    key_of(100, keys + 3 * 51);
    CHECK_INT(vxd_hashmap_prepare(env.queue, map, keys, 100, &n_new, &err), VXD_OK);
    CHECK_INT(n_new, 1);
    CHECK_INT(vxd_hashmap_capacity(map), 12);
    CHECK_INT(vxd_hashmap_find(env.queue, map, keys, 8, indices, NULL, &err), VXD_OK);
    gpu_wait(&env);
    for (int i = 0; i < 8; i++) {
        CHECK_INT(indices[i], i);
        CHECK_INT(((int32_t *)vxd_hashmap_values(map, 0))[i], numbers[i]);
    }
    free(keys);
    many[0] = 100;
    CHECK_INT(insert(map, many, 1, VXD_HASH_FIRST, n_new, indices, NULL), VXD_OK);
    CHECK_INT(indices[0], 8);
    destroy(map);
}

/* Fills a map of 100 entries and prepares it for n more keys; returns its capacity then. */
static size_t grown_capacity(int percent, bool is_set_later, uint32_t n)
{
    struct vxd_hashmap_spec spec = int3_spec;
    struct vxd_hashmap *map;
    uint32_t numbers[400];
    int32_t *keys;
    size_t capacity;
    size_t n_new = 0;

    for (uint32_t i = 0; i < 400; i++) {
        numbers[i] = i;
    }
    spec.growth_percent = is_set_later ? 77 : percent;
    map = map_of(&spec, 100);
    if (is_set_later) {
        vxd_hashmap_set_growth(map, percent);
    }
    CHECK_INT(insert(map, numbers, 100, VXD_HASH_FIRST, 0, NULL, NULL), VXD_OK);
    keys = keys_of(numbers + 100, n);
    CHECK_INT(vxd_hashmap_prepare(env.queue, map, keys, n, &n_new, &err), VXD_OK);
    CHECK_INT(n_new, n);
    capacity = vxd_hashmap_capacity(map);
    free(keys);
    destroy(map);
    return capacity;
}

static enum vxd_status check_spec(void *user, void *structure, struct vxd_err *error)
{
    struct vxd_hashmap *map = NULL;
    enum vxd_status status = vxd_hashmap_create(env.queue, structure, &map, error);

    (void)user;
    vxd_hashmap_destroy(env.queue, map);
    return status;
}

static void growth(void)
{
    static const struct test_limit limits[] = {
        TEST_LIMIT_INT(struct vxd_hashmap_spec, growth_percent, "growth_percent", 0, 100),
        TEST_LIMIT_INT(struct vxd_hashmap_spec, n_components, "n_components", 1,
                       VXD_HASHMAP_MAX_COMPONENTS)};
    struct vxd_hashmap_spec spec = int3_spec;
    struct test_limited of = {&spec, sizeof spec, check_spec, NULL};

    for (int later = 0; later < 2; later++) {
        CHECK_INT(grown_capacity(0, later == 1, 1), 150);
        CHECK_INT(grown_capacity(1, later == 1, 1), 101);
        CHECK_INT(grown_capacity(10, later == 1, 10), 110);
        CHECK_INT(grown_capacity(10, later == 1, 11), 111); /* as many as are needed */
        CHECK_INT(grown_capacity(100, later == 1, 1), 200);
        CHECK_INT(grown_capacity(100, later == 1, 300), 400);
    }
    test_limits(&of, limits, sizeof limits / sizeof limits[0]);
}

static void test_map_grows_by_its_part_or_by_what_is_needed(void)
{
    each_thread_count(growth);
}

static void test_prepare_of_duplicates_does_not_grow_and_growth_keeps_numbers(void)
{
    each_thread_count(prepare);
}

static void growth_over_the_limit(void)
{
    static const uint32_t numbers[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    struct vxd_hashmap_spec spec = int3_spec;
    struct vxd_hashmap *map;
    size_t n_bytes;

    spec.capacity = 4;
    n_bytes = vxd_hashmap_bytes(env.context, &spec);
    spec.max_bytes = n_bytes - 1;
    CHECK_INT(vxd_hashmap_create(env.queue, &spec, &map, &err), VXD_RESOURCE_EXHAUSTED);
    spec.max_bytes = n_bytes;
    map = map_of(&spec, 4);
    CHECK_INT(vxd_hashmap_n_bytes(map), n_bytes);
    CHECK_INT(insert(map, numbers, 4, VXD_HASH_FIRST, 0, NULL, NULL), VXD_OK);
    CHECK_INT(vxd_hashmap_reserve(env.queue, map, 5, &err), VXD_RESOURCE_EXHAUSTED);
    CHECK_INT(vxd_hashmap_capacity(map), 4);
    CHECK_INT(find_one(map, 3), 3);
    /* More new keys than max_new says. */
    CHECK(erase_one(map, 1) && erase_one(map, 2));
    CHECK_INT(size_of(map), 2);
    CHECK_INT(insert(map, numbers, 8, VXD_HASH_FIRST, 1, NULL, NULL), VXD_INTERNAL);
    CHECK_INT(size_of(map), 2);
    CHECK_INT(find_one(map, 1), VXD_NO_ENTRY);
    CHECK_INT(find_one(map, 3), 3);
    CHECK_INT(((int32_t *)vxd_hashmap_values(map, 0))[1], 0);
    CHECK_INT(insert(map, numbers, 8, VXD_HASH_ANY, 1, NULL, NULL), VXD_INTERNAL);
    CHECK_INT(size_of(map), 3);
    destroy(map);
}

static void test_growth_over_the_limit_leaves_the_map_unchanged(void)
{
    each_thread_count(growth_over_the_limit);
}

static void churn(void)
{
    enum {
        N_LIVE = 500
    };
    struct vxd_hashmap *map = map_of(&int3_spec, N_LIVE);
    uint32_t numbers[N_LIVE];
    struct vxd_hashmap_stats stats = {0};

    for (uint32_t cycle = 0; cycle < 300; cycle++) {
        int32_t *keys;

        for (uint32_t i = 0; i < N_LIVE; i++) {
            numbers[i] = cycle * N_LIVE + i;
        }
        CHECK_INT(insert(map, numbers, N_LIVE, VXD_HASH_FIRST, 0, NULL, NULL), VXD_OK);
        CHECK_INT(vxd_hashmap_get_stats(env.queue, map, &stats, &err), VXD_OK);
        CHECK_INT(stats.n_entries, N_LIVE);
        CHECK(stats.mean_probes < 6 && stats.max_probes < 100);
        CHECK(stats.bytes_per_key <= 40);
        keys = keys_of(numbers, N_LIVE);
        CHECK_INT(
            vxd_hashmap_erase(env.queue, map, keys, N_LIVE, VXD_HASH_ANY, NULL, &err),
            VXD_OK);
        CHECK_INT(size_of(map), 0);
        free(keys);
    }
    CHECK_INT(vxd_hashmap_capacity(map), N_LIVE);
    destroy(map);
}

static void test_churn_keeps_probes_bounded(void)
{
    each_thread_count(churn);
}

static void update(void)
{
    struct vxd_hashmap_spec spec = {
        .key_dtype = VXD_INT32,
        .n_components = 3,
        .n_values = 3,
        .values = {{VXD_UINT8, 1}, {VXD_FLOAT64, 1}, {VXD_BFLOAT16, 2}}};
    static const int32_t key[3] = {1, 2, 3};
    static const int32_t indices[5] = {0, 7, 0, -1, 0};
    static const uint8_t bytes[5] = {200, 1, 100, 1, 3};
    static const float floats[5] = {0.5f, 9, -0.25f, 9, NAN};
    static const uint16_t bfloats[10] = {0x3f80, 0x4000, 0, 0, 0x3b80,
                                         0,      0,      0, 0, 0x8000};
    struct vxd_hashmap *map = map_of(&spec, 4);
    struct vxd_hashmap_insert_args insert_args = {.keys = key, .n = 1};
    struct vxd_hashmap_update_args args = {
        .indices = indices, .n = 5, .rows = bytes, .dtype = VXD_UINT8};
    uint8_t updated[5];
    const uint8_t *byte = vxd_hashmap_values(map, 0);
    const double *number = vxd_hashmap_values(map, 1);
    const uint16_t *pair = vxd_hashmap_values(map, 2);

    CHECK_INT(vxd_hashmap_insert(env.queue, map, &insert_args, &err), VXD_OK);
    args.updated = updated;
    args.combine = VXD_COMBINE_ADD;
    CHECK_INT(vxd_hashmap_update(env.queue, map, &args, &err), VXD_OK);
    gpu_wait(&env);
    CHECK_INT(byte[0], 255); /* clamped once, at the end */
    CHECK_INT(updated[0] + updated[2] + updated[4], 3);
    CHECK_INT(updated[1] + updated[3], 0);
    args.combine = VXD_COMBINE_SET;
    CHECK_INT(vxd_hashmap_update(env.queue, map, &args, &err), VXD_OK);
    gpu_wait(&env);
    CHECK_INT(byte[0], 3);
    args = (struct vxd_hashmap_update_args){.indices = indices,
                                            .n = 5,
                                            .array = 1,
                                            .rows = floats,
                                            .dtype = VXD_FLOAT32,
                                            .combine = VXD_COMBINE_MIN};
    CHECK_INT(vxd_hashmap_update(env.queue, map, &args, &err), VXD_OK);
    gpu_wait(&env);
    CHECK(number[0] == -0.25);
    args.n = 3;
    args.combine = VXD_COMBINE_ADD;
    CHECK_INT(vxd_hashmap_update(env.queue, map, &args, &err), VXD_OK);
    gpu_wait(&env);
    CHECK(number[0] == 0.0);
    args.n = 5;
    args.array = 2;
    args.rows = bfloats;
    CHECK_INT(vxd_hashmap_update(env.queue, map, &args, &err), VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "dtype");
    args.dtype = VXD_BFLOAT16;
    CHECK_INT(vxd_hashmap_update(env.queue, map, &args, &err), VXD_OK);
    gpu_wait(&env);
    /* 1 + 2^-8 is halfway between two values: rounds to even */
    CHECK_INT(pair[0], 0x3f80);
    CHECK_INT(pair[1], 0x4000);
    destroy(map);
}

static void test_update_combines_in_position_order(void)
{
    each_thread_count(update);
}

static void neighbours(void)
{
    struct vxd_hashmap_spec spec = {.key_dtype = VXD_INT16, .n_components = 3};
    static const int16_t keys[9] = {0, 0, 0, 1, 0, 0, INT16_MAX, 0, -1};
    struct vxd_hashmap *map = map_of(&spec, 3);
    struct vxd_hashmap_insert_args args = {.keys = keys, .n = 3};
    int32_t indices[3 * 27];

    CHECK_INT(vxd_hashmap_insert(env.queue, map, &args, &err), VXD_OK);
    CHECK_INT(
        vxd_hashmap_neighbours(env.queue, map, keys, 3, VXD_NEIGHBOURS_27, indices, &err),
        VXD_OK);
    gpu_wait(&env);
    for (int i = 0; i < 27; i++) {
        CHECK_INT(indices[i], i == 13 ? 0 : i == 22 ? 1 : VXD_NO_ENTRY);
        CHECK_INT(indices[27 + i], i == 13 ? 1 : i == 4 ? 0 : VXD_NO_ENTRY);
        CHECK_INT(indices[54 + i], i == 13 ? 2 : VXD_NO_ENTRY);
    }
    CHECK_INT(
        vxd_hashmap_neighbours(env.queue, map, keys, 2, VXD_NEIGHBOURS_6, indices, &err),
        VXD_OK);
    gpu_wait(&env);
    CHECK_INT(indices[1], 1);
    CHECK_INT(indices[6], 0);
    destroy(map);
}

static void test_neighbours_past_the_range_are_none(void)
{
    each_thread_count(neighbours);
}

/* Checks that the map's values by entry number are `expected`. */
static void check_values(struct vxd_hashmap *map, const int32_t *expected, size_t n)
{
    CHECK_INT(size_of(map), n);
    for (size_t i = 0; i < n; i++) {
        CHECK_INT(((int32_t *)vxd_hashmap_values(map, 0))[i], expected[i]);
        CHECK_INT(find_one(map, (uint32_t)expected[i]), i);
    }
    destroy(map);
}

static void set_operations(void)
{
    static const uint32_t in_a[5] = {1, 2, 15, 4, 5};
    static const uint32_t in_b[4] = {31, 5, 2, 8};
    static const int32_t both[2] = {2, 5};
    static const int32_t only_a[2] = {15, 4};
    static const int32_t either[6] = {2, 15, 4, 5, 31, 8};
    struct vxd_hashmap *a = map_of(&int3_spec, 9);
    struct vxd_hashmap *b = map_of(&int3_spec, 4);
    struct vxd_hashmap *empty = map_of(&int3_spec, 0);
    struct vxd_hashmap *out;

    CHECK_INT(insert(a, in_a, 5, VXD_HASH_FIRST, 0, NULL, NULL), VXD_OK);
    CHECK_INT(insert(b, in_b, 4, VXD_HASH_FIRST, 0, NULL, NULL), VXD_OK);
    CHECK(erase_one(a, 1));
    CHECK_INT(vxd_hashmap_union(env.queue, a, b, &out, &err), VXD_OK);
    check_values(out, either, 6);
    CHECK_INT(vxd_hashmap_intersection(env.queue, a, b, &out, &err), VXD_OK);
    check_values(out, both, 2);
    CHECK_INT(vxd_hashmap_difference(env.queue, a, b, &out, &err), VXD_OK);
    check_values(out, only_a, 2);
    CHECK_INT(vxd_hashmap_difference(env.queue, empty, b, &out, &err), VXD_OK);
    check_values(out, NULL, 0);
    CHECK_INT(vxd_hashmap_union(env.queue, empty, empty, &out, &err), VXD_OK);
    check_values(out, NULL, 0);
    CHECK_INT(vxd_hashmap_size(env.queue, a, &(size_t){0}, &err), VXD_OK);
    destroy(empty);
    destroy(b);
    destroy(a);
}

static void test_set_operations_number_a_then_b(void)
{
    each_thread_count(set_operations);
}

static void image(void)
{
    static const uint32_t numbers[6] = {1, 2, 3, 15, 31, 6};
    struct vxd_hashmap *map = map_of(&int3_spec, 6);
    struct vxd_hashmap *copy = NULL;
    struct vxd_hashmap_image saved;
    int32_t *indices;

    CHECK_INT(insert(map, numbers, 6, VXD_HASH_FIRST, 0, NULL, NULL), VXD_OK);
    CHECK(erase_one(map, 2));
    CHECK_INT(vxd_hashmap_export(env.queue, map, &saved, &err), VXD_OK);
    CHECK_INT(saved.n_entries, 5);
    CHECK_INT(vxd_hashmap_import(env.queue, &saved, &copy, &err), VXD_OK);
    CHECK_INT(find_one(copy, 31), 4);
    CHECK_INT(find_one(copy, 2), VXD_NO_ENTRY);
    CHECK_INT(((int32_t *)vxd_hashmap_values(copy, 0))[4], 31);
    CHECK_INT(vxd_hashmap_erase_epoch(copy), 1);
    CHECK_INT(size_of(copy), 5);
    destroy(copy);
    CHECK_INT(vxd_hashmap_copy(env.queue, map, env.queue, VXD_HASH_OPEN, &copy, &err),
              VXD_OK);
    CHECK_INT(find_one(copy, 6), 5);
    destroy(copy);
    /* Damaged files. */
    indices = saved.indices.ptr;
    indices[4] = 6;
    CHECK_INT(vxd_hashmap_import(env.queue, &saved, &copy, &err), VXD_DATA_LOSS);
    CHECK(copy == NULL);
    indices[4] = 4;
    CHECK_INT(vxd_hashmap_import(env.queue, &saved, &copy, &err), VXD_DATA_LOSS);
    indices[4] = 5;
    memcpy(saved.keys.ptr, (char *)saved.keys.ptr + 12, 12);
    CHECK_INT(vxd_hashmap_import(env.queue, &saved, &copy, &err), VXD_DATA_LOSS);
    vxd_hashmap_image_free(&saved);
    destroy(map);
}

static void test_image_keeps_numbers_and_a_lying_one_is_refused(void)
{
    each_thread_count(image);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_insert_first_takes_lowest_numbers_by_position),
    VXD_TEST(test_insert_of_many_duplicates_numbers_by_first_position),
    VXD_TEST(test_batch_of_more_than_a_chunk_answers_every_position),
    VXD_TEST(test_prepare_of_duplicates_does_not_grow_and_growth_keeps_numbers),
    VXD_TEST(test_map_grows_by_its_part_or_by_what_is_needed),
    VXD_TEST(test_growth_over_the_limit_leaves_the_map_unchanged),
    VXD_TEST(test_churn_keeps_probes_bounded),
    VXD_TEST(test_update_combines_in_position_order),
    VXD_TEST(test_neighbours_past_the_range_are_none),
    VXD_TEST(test_set_operations_number_a_then_b),
    VXD_TEST(test_image_keeps_numbers_and_a_lying_one_is_refused),
};

VXD_TEST_MAIN(tests)
