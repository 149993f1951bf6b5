// SPDX-License-Identifier: Apache-2.0
/* The slab index where its lists are longest: keys that all belong to one bucket,
 * found by search with the index's own hash. The spare slabs must suffice for whatever
 * fits the map. */
#include "gpu/paper/slab_map_math.h"
#include "tests/support/hash/hash_run.h"
#include "tests/support/test.h"

enum {
    CAPACITY = 3000,
    QUARTER = CAPACITY / 4,
    N_CYCLES = 12
};

/* Batches over one sequence of candidate keys, so that all keys are distinct. */
struct keys {
    struct vxd_key_form form;
    struct vxd_slab_shape shape;
    int32_t next;
};

static struct keys keys_of(size_t capacity)
{
    struct keys keys = {
        .form = {.n_components = 3, .component_bytes = 4, .row_bytes = 12},
        .shape = vxd_slab_shape_of(capacity)};

    vxd_hashmap_key_bits(3, keys.form.bits);
    return keys;
}

/* n keys of one bucket. */
static void make_keys(struct keys *keys, uint32_t bucket, int32_t *out, size_t n)
{
    for (size_t i = 0; i < n;) {
        int32_t key[3] = {keys->next & 0x3ff, keys->next >> 10 & 0x3ff, keys->next >> 20};
        uint64_t tag = vxd_key_tag(&keys->form, key);

        keys->next++;
        if (vxd_slab_home_of(&keys->shape, tag).bucket == bucket) {
            memcpy(out + 3 * i, key, sizeof key);
            i++;
        }
    }
}

static const struct vxd_hashmap_spec int3_spec = {.key_dtype = VXD_INT32,
                                                  .n_components = 3,
                                                  .n_values = 1,
                                                  .values = {{VXD_INT32, 1}},
                                                  .index = VXD_HASH_SLAB,
                                                  .capacity = CAPACITY};

static void insert(struct hash_run *run, int32_t *keys, size_t n,
                   enum vxd_hash_order order)
{
    struct hash_batch batch = {.n = n, .keys = (unsigned char *)keys, .values = {keys}};

    hash_run_insert(run, &batch, order, 0);
}

static void fill_one_bucket(struct gpu_env *env)
{
    int32_t *rows = gpu_alloc(2 * CAPACITY * 3 * sizeof *rows);
    struct keys keys = keys_of(CAPACITY);
    struct hash_run run = {0};

    make_keys(&keys, 7, rows, 2 * CAPACITY);
    for (int order = VXD_HASH_FIRST; order <= VXD_HASH_ANY; order++) {
        hash_run_create(&run, env, &int3_spec, "one bucket");
        insert(&run, rows, CAPACITY, (enum vxd_hash_order)order);
        hash_run_find(&run, rows, 2 * CAPACITY);
        hash_run_erase(&run, rows, QUARTER, (enum vxd_hash_order)order, true);
        hash_run_find(&run, rows, 2 * CAPACITY);
        insert(&run, rows + 3 * CAPACITY, QUARTER, (enum vxd_hash_order)order);
        hash_run_find(&run, rows, 2 * CAPACITY);
        hash_run_verify(&run);
        CHECK_INT(vxd_hashmap_capacity(run.map), CAPACITY);
        CHECK_INT(run.n_failures, 0);
        hash_run_destroy(&run);
    }
    free(rows);
}

static void test_slab_keys_of_one_bucket_fill_the_capacity(void)
{
    gpu_each_backend(fill_one_bucket);
}

/* Each cycle leaves as many erased places in the lists of one bucket as an erase may
 * without a rebuild, and needs slabs in those of another. */
static void move_between_buckets(struct gpu_env *env)
{
    int32_t *rows = gpu_alloc(CAPACITY * 3 * sizeof *rows);
    struct keys keys = keys_of(CAPACITY);
    struct hash_run run = {0};

    hash_run_create(&run, env, &int3_spec, "from bucket to bucket");
    make_keys(&keys, 0, rows, CAPACITY);
    insert(&run, rows, CAPACITY, VXD_HASH_ANY);
    for (uint32_t cycle = 1; cycle <= N_CYCLES && run.n_failures == 0; cycle++) {
        int32_t *part = rows + cycle % 4 * QUARTER * 3;

        run.step = (int)cycle;
        hash_run_erase(&run, part, QUARTER, VXD_HASH_FIRST, false);
        make_keys(&keys, cycle, part, QUARTER);
        insert(&run, part, QUARTER, cycle % 2 == 0 ? VXD_HASH_FIRST : VXD_HASH_ANY);
        hash_run_find(&run, rows, CAPACITY);
    }
    hash_run_verify(&run);
    CHECK_INT(vxd_hashmap_capacity(run.map), CAPACITY);
    CHECK_INT(run.n_failures, 0);
    hash_run_destroy(&run);
    free(rows);
}

static void test_slab_marks_left_in_one_bucket_leave_slabs_for_others(void)
{
    gpu_each_backend(move_between_buckets);
}

static enum vxd_status insert_unannounced(struct gpu_env *env, struct vxd_hashmap *map,
                                          const int32_t *rows, size_t n,
                                          enum vxd_hash_order order)
{
    struct vxd_buffer keys = gpu_to_device(env, rows, n * 12);
    const void *values[1] = {keys.ptr};
    struct vxd_hashmap_insert_args args = {
        .keys = keys.ptr, .n = n, .values = values, .order = order};
    struct vxd_err err;
    enum vxd_status status;

    args.max_new = vxd_hashmap_capacity(map) - vxd_hashmap_size_bound(map);
    status = vxd_hashmap_insert(env->queue, map, &args, &err);
    status = status == VXD_OK ? vxd_queue_wait(env->queue, &err) : status;
    vxd_device_free(env->queue, &keys);
    return status;
}

/* Claims of keys that exceed the capacity take every spare slab; afterwards the map
 * must accept keys as before. */
static void exceed_the_capacity(struct gpu_env *env)
{
    size_t n_many = 8 * CAPACITY;
    int32_t *many = gpu_alloc(n_many * 12);
    int32_t *rows = gpu_alloc(CAPACITY * 12);

    for (int order = VXD_HASH_FIRST; order <= VXD_HASH_ANY; order++) {
        struct keys keys = keys_of(CAPACITY);
        struct hash_run run = {0};
        struct vxd_err err;
        size_t size = 0;

        hash_run_create(&run, env, &int3_spec, "more keys than room");
        make_keys(&keys, 3, rows, CAPACITY);
        for (size_t i = 0; i < n_many; i++) {
            many[3 * i] = (int32_t)i;
            many[3 * i + 1] = -1;
            many[3 * i + 2] = -5;
        }
        insert(&run, rows, QUARTER, VXD_HASH_FIRST);
        CHECK_INT(
            insert_unannounced(env, run.map, many, n_many, (enum vxd_hash_order)order),
            VXD_INTERNAL);
        CHECK_INT(vxd_hashmap_size(env->queue, run.map, &size, &err), VXD_OK);
        if (order == VXD_HASH_FIRST) {
            CHECK_INT(size, QUARTER);
            hash_run_verify(&run);
            insert(&run, rows, CAPACITY, VXD_HASH_FIRST);
            hash_run_find(&run, rows, CAPACITY);
            hash_run_verify(&run);
        } else {
            CHECK_INT(size, CAPACITY);
            hash_run_clear(&run);
            insert(&run, rows, CAPACITY, VXD_HASH_ANY);
            hash_run_verify(&run);
        }
        CHECK_INT(vxd_hashmap_capacity(run.map), CAPACITY);
        CHECK_INT(run.n_failures, 0);
        hash_run_destroy(&run);
    }
    free(many);
    free(rows);
}

static void test_slab_insert_beyond_the_room_leaves_the_index_sound(void)
{
    gpu_each_backend(exceed_the_capacity);
}

/* Few keys, each many times: all threads contend for a handful of places. */
static void insert_few_keys_often(struct gpu_env *env)
{
    size_t n = 200000;
    int32_t *rows = gpu_alloc(n * 12);
    uint64_t random = 5;
    struct hash_run run = {0};

    for (size_t i = 0; i < n; i++) {
        rows[3 * i] = (int32_t)(gpu_random(&random) % 11) - 5;
        rows[3 * i + 1] = 1 << 30; /* wide */
        rows[3 * i + 2] = 0;
    }
    for (int order = VXD_HASH_FIRST; order <= VXD_HASH_ANY; order++) {
        hash_run_create(&run, env, &int3_spec, "few keys");
        insert(&run, rows, n, (enum vxd_hash_order)order);
        hash_run_erase(&run, rows, n, (enum vxd_hash_order)order, true);
        insert(&run, rows, n, (enum vxd_hash_order)order);
        hash_run_verify(&run);
        CHECK_INT(vxd_hashmap_capacity(run.map), CAPACITY);
        CHECK_INT(run.n_failures, 0);
        hash_run_destroy(&run);
    }
    free(rows);
}

static void test_slab_equal_keys_of_a_long_batch_make_one_entry_each(void)
{
    gpu_each_backend(insert_few_keys_often);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_slab_keys_of_one_bucket_fill_the_capacity),
    VXD_TEST(test_slab_marks_left_in_one_bucket_leave_slabs_for_others),
    VXD_TEST(test_slab_insert_beyond_the_room_leaves_the_index_sound),
    VXD_TEST(test_slab_equal_keys_of_a_long_batch_make_one_entry_each),
};

VXD_TEST_MAIN(tests)
