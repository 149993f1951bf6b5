// SPDX-License-Identifier: Apache-2.0
/* Keys that are difficult for a map (one bucket, equal fingerprints, extremes), and
 * batches of unusual sizes, up to a million. */
#include "gpu/hash/hash_math.h"
#include "tests/support/hash/hash_keys.h"
#include "tests/support/hash/hash_run.h"
#include "tests/support/test.h"

static const struct vxd_hashmap_spec int3_spec = {
    .key_dtype = VXD_INT32, .n_components = 3, .n_values = 1, .values = {{VXD_INT32, 1}}};

static struct vxd_hashmap_spec spec_of(enum vxd_dtype key_dtype, int n_components,
                                       enum vxd_hash_index index)
{
    struct vxd_hashmap_spec spec = int3_spec;

    spec.key_dtype = key_dtype;
    spec.n_components = n_components;
    spec.index = index;
    return spec;
}

/* n rows of keys, and their positions as values. */
static struct hash_batch batch_of(const struct hash_run *run, size_t n)
{
    struct hash_batch batch = {.n = n, .keys = gpu_alloc(n * run->model.key_bytes)};
    int32_t *positions = gpu_alloc(n * sizeof *positions);

    for (size_t i = 0; i < n; i++) {
        positions[i] = (int32_t)i;
    }
    batch.values[0] = positions;
    return batch;
}

static void batch_free(struct hash_batch *batch)
{
    free(batch->keys);
    free(batch->values[0]);
}

/* Inserts in both orders, finds, erases half and inserts again: every transition of
 * the keys' slots. */
static void cycle(struct hash_run *run, struct hash_batch *batch)
{
    struct hash_batch half = *batch;

    half.n = batch->n / 2;
    hash_run_insert(run, batch, VXD_HASH_FIRST, 0);
    hash_run_find(run, batch->keys, batch->n);
    hash_run_verify(run);
    hash_run_erase(run, half.keys, half.n, VXD_HASH_ANY, true);
    hash_run_find(run, batch->keys, batch->n);
    hash_run_insert(run, batch, VXD_HASH_ANY, 0);
    hash_run_verify(run);
    hash_run_erase(run, batch->keys, batch->n, VXD_HASH_FIRST, true);
    hash_run_insert(run, &half, VXD_HASH_ANY, HASH_ACTIVATE);
    hash_run_find(run, batch->keys, batch->n);
    hash_run_verify(run);
}

static void use_keys(struct gpu_env *env, const struct vxd_hashmap_spec *spec,
                     enum hash_key_kind kind, size_t n, const char *why)
{
    struct hash_run run;
    struct hash_batch batch;
    uint64_t random = 5 + (uint64_t)kind;

    hash_run_create(&run, env, spec, why);
    batch = batch_of(&run, n);
    hash_keys_make(spec, kind, &random, batch.keys, n);
    cycle(&run, &batch);
    CHECK_INT(run.n_failures, 0);
    batch_free(&batch);
    hash_run_destroy(&run);
}

static void use_one_bucket(struct gpu_env *env, enum vxd_hash_index index)
{
    struct vxd_hashmap_spec spec = spec_of(VXD_INT32, 3, index);

    use_keys(env, &spec, HASH_KEYS_HIGH, 900, "equal high bits");
    use_keys(env, &spec, HASH_KEYS_LOW, 900, "equal low bits");
}

static void test_hashmap_keys_of_one_bucket_are_kept_apart(void)
{
    hash_each(use_one_bucket);
}

static void use_same_fingerprints(struct gpu_env *env, enum vxd_hash_index index)
{
    struct vxd_hashmap_spec spec = spec_of(VXD_INT64, 2, index);
    struct vxd_key_form form = {.n_components = 2, .component_bytes = 8, .row_bytes = 16};
    int64_t keys[4];
    uint64_t random = 5;

    vxd_hashmap_key_bits(2, form.bits);
    hash_keys_make(&spec, HASH_KEYS_SAME_FINGERPRINT, &random, keys, 2);
    CHECK(keys[0] != keys[2] && vxd_tag_is_wide(vxd_key_tag(&form, keys)));
    CHECK(vxd_key_tag(&form, keys) == vxd_key_tag(&form, keys + 2));
    use_keys(env, &spec, HASH_KEYS_SAME_FINGERPRINT, 500, "equal fingerprints");
    spec = spec_of(VXD_INT64, 8, index);
    use_keys(env, &spec, HASH_KEYS_SAME_FINGERPRINT, 300,
             "equal fingerprints of long keys");
}

static void test_hashmap_keys_of_one_fingerprint_are_kept_apart(void)
{
    hash_each(use_same_fingerprints);
}

static void use_edges(struct gpu_env *env, enum vxd_hash_index index)
{
    static const enum vxd_dtype dtypes[] = {VXD_INT16, VXD_INT32, VXD_INT64};

    for (int d = 0; d < 3; d++) {
        for (int n = 1; n <= VXD_HASHMAP_MAX_COMPONENTS; n++) {
            struct vxd_hashmap_spec spec = spec_of(dtypes[d], n, index);

            use_keys(env, &spec, HASH_KEYS_EDGES, 257, "extremes");
            use_keys(env, &spec, HASH_KEYS_MIXED, 257, "packed and wide keys");
        }
    }
}

static void test_hashmap_extreme_keys_of_every_shape_are_found(void)
{
    hash_each(use_edges);
}

/* Neighbours outside the dtype's range, and outside the packed form. */
static void use_borders(struct gpu_env *env, enum vxd_hash_index index)
{
    static const enum vxd_dtype dtypes[] = {VXD_INT16, VXD_INT32, VXD_INT64};
    static const int kinds[] = {6, 8, 27};

    for (int d = 0; d < 6; d++) {
        struct vxd_hashmap_spec spec = spec_of(dtypes[d / 2], 3 + d % 2, index);
        struct hash_run run;
        struct hash_batch batch;
        uint64_t random = 1;

        hash_run_create(&run, env, &spec, "neighbours of extremes");
        batch = batch_of(&run, 1500);
        hash_keys_make(&spec, HASH_KEYS_EDGES, &random, batch.keys, batch.n);
        hash_run_insert(&run, &batch, VXD_HASH_FIRST, 0);
        for (int k = 0; k < 3; k++) {
            hash_run_neighbours(&run, batch.keys, batch.n, kinds[k]);
        }
        CHECK_INT(run.n_failures, 0);
        batch_free(&batch);
        hash_run_destroy(&run);
    }
}

static void test_hashmap_neighbours_past_the_range_are_no_entries(void)
{
    hash_each(use_borders);
}

static void use_sizes(struct gpu_env *env, enum vxd_hash_index index)
{
    static const size_t sizes[] = {0, 1, 2, 31, 32, 33, 255, 256, 257, 1023, 1025, 4097};
    struct vxd_hashmap_spec spec = spec_of(VXD_INT32, 3, index);

    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        use_keys(env, &spec, HASH_KEYS_MIXED, sizes[s], "awkward sizes");
        use_keys(env, &spec, HASH_KEYS_SMALL, sizes[s], "many duplicates");
    }
}

static void test_hashmap_batches_of_awkward_sizes_are_whole(void)
{
    hash_each(use_sizes);
}

/* All keys equal: one entry, one flag, and no growth. */
static void use_duplicates(struct gpu_env *env, enum vxd_hash_index index)
{
    struct vxd_hashmap_spec spec = spec_of(VXD_INT32, 3, index);
    struct hash_run run;
    struct hash_batch batch;
    size_t capacity;

    spec.capacity = 64;
    hash_run_create(&run, env, &spec, "all duplicates");
    capacity = run.model.capacity;
    batch = batch_of(&run, 100000);
    for (size_t i = 0; i < batch.n; i++) {
        memcpy(batch.keys + 12 * i, (int32_t[]){-7, 0, 1 << 25}, 12);
    }
    hash_run_insert(&run, &batch, VXD_HASH_ANY, 0);
    hash_run_insert(&run, &batch, VXD_HASH_FIRST, 0);
    hash_run_erase(&run, batch.keys, batch.n, VXD_HASH_ANY, true);
    hash_run_insert(&run, &batch, VXD_HASH_FIRST, 0);
    hash_run_erase(&run, batch.keys, batch.n, VXD_HASH_FIRST, true);
    hash_run_insert(&run, &batch, VXD_HASH_ANY, 0);
    hash_run_verify(&run);
    CHECK_INT(vxd_hashmap_capacity(run.map), capacity);
    CHECK_INT(run.model.n_entries, 1);
    CHECK_INT(run.n_failures, 0);
    batch_free(&batch);
    hash_run_destroy(&run);
}

static void test_hashmap_duplicates_never_grow_a_map(void)
{
    hash_each(use_duplicates);
}

/* Fills a map to the last number. */
static void use_full(struct gpu_env *env, enum vxd_hash_index index)
{
    struct vxd_hashmap_spec spec = spec_of(VXD_INT32, 3, index);
    struct hash_run run;
    struct hash_batch batch;

    spec.capacity = 3000;
    hash_run_create(&run, env, &spec, "a full map");
    batch = batch_of(&run, run.model.capacity);
    for (size_t i = 0; i < batch.n; i++) {
        memcpy(batch.keys + 12 * i, (int32_t[]){(int32_t)i, -(int32_t)i, 5}, 12);
    }
    hash_run_insert(&run, &batch, VXD_HASH_ANY, HASH_UNPREPARED);
    /* the map is full, and no key is new */
    hash_run_insert(&run, &batch, VXD_HASH_FIRST, 0);
    CHECK_INT(run.model.n_entries, run.model.capacity);
    CHECK_INT(vxd_hashmap_capacity(run.map), batch.n);
    hash_run_erase(&run, batch.keys, batch.n, VXD_HASH_FIRST, true);
    hash_run_find(&run, batch.keys, batch.n);
    hash_run_insert(&run, &batch, VXD_HASH_FIRST, HASH_UNPREPARED);
    hash_run_verify(&run);
    CHECK_INT(run.n_failures, 0);
    batch_free(&batch);
    hash_run_destroy(&run);
}

static void test_hashmap_full_to_the_last_entry_works(void)
{
    hash_each(use_full);
}

static void use_million(struct gpu_env *env, enum vxd_hash_index index)
{
    struct vxd_hashmap_spec spec = spec_of(VXD_INT32, 3, index);
    struct hash_run run;
    struct hash_batch batch;
    uint64_t random = 3;

    hash_run_create(&run, env, &spec, "many keys");
    batch = batch_of(&run, (size_t)vxd_test_rounds(1000000));
    for (size_t i = 0; i < batch.n; i++) {
        int32_t key[3];

        for (int c = 0; c < 3; c++) {
            key[c] = (int32_t)(gpu_random(&random) % 81) - 40;
        }
        key[0] *= i % 50 == 0 ? 1 << 24 : 1; /* some are wide */
        memcpy(batch.keys + 12 * i, key, sizeof key);
    }
    hash_run_insert(&run, &batch, VXD_HASH_FIRST, 0);
    hash_run_erase(&run, batch.keys, batch.n / 3, VXD_HASH_ANY, true);
    hash_run_insert(&run, &batch, VXD_HASH_ANY, 0);
    hash_run_verify(&run);
    CHECK_INT(run.n_failures, 0);
    batch_free(&batch);
    hash_run_destroy(&run);
}

static void test_hashmap_a_million_keys_agree_with_the_model(void)
{
    hash_each(use_million);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_hashmap_keys_of_one_bucket_are_kept_apart),
    VXD_TEST(test_hashmap_keys_of_one_fingerprint_are_kept_apart),
    VXD_TEST(test_hashmap_extreme_keys_of_every_shape_are_found),
    VXD_TEST(test_hashmap_neighbours_past_the_range_are_no_entries),
    VXD_TEST(test_hashmap_batches_of_awkward_sizes_are_whole),
    VXD_TEST(test_hashmap_duplicates_never_grow_a_map),
    VXD_TEST(test_hashmap_full_to_the_last_entry_works),
    VXD_TEST(test_hashmap_a_million_keys_agree_with_the_model),
};

VXD_TEST_MAIN(tests)
