// SPDX-License-Identifier: Apache-2.0
/* What hash maps refuse, that the map is unchanged then, and many cycles of erasing
 * and inserting. */
#include "tests/support/hash/hash_keys.h"
#include "tests/support/hash/hash_run.h"
#include "tests/support/test.h"

enum {
    N_KEYS = 200
};

static struct vxd_hashmap_spec spec_of(enum vxd_hash_index index)
{
    struct vxd_hashmap_spec spec = {.key_dtype = VXD_INT32,
                                    .n_components = 3,
                                    .n_values = 2,
                                    .values = {{VXD_FLOAT32, 2}, {VXD_UINT64, 1}},
                                    .index = index,
                                    .capacity = 300};
    return spec;
}

/* A map with N_KEYS keys (i, 0, -i), and host arrays of them. */
struct fixture {
    struct hash_run run;
    struct hash_batch batch;
    int32_t keys[3 * 2 * N_KEYS];
    float floats[2 * 2 * N_KEYS];
    uint64_t numbers[2 * N_KEYS];
    struct vxd_buffer d_keys, d_indices, d_rows;
};

static void fixture_open(struct fixture *f, struct gpu_env *env,
                         const struct vxd_hashmap_spec *spec, const char *why)
{
    for (int i = 0; i < 2 * N_KEYS; i++) {
        memcpy(&f->keys[3 * i], (int32_t[]){i, 0, -i}, 12);
        f->floats[2 * i] = f->floats[2 * i + 1] = (float)i;
        f->numbers[i] = (uint64_t)i;
    }
    f->batch = (struct hash_batch){
        .n = N_KEYS, .keys = (unsigned char *)f->keys, .values = {f->floats, f->numbers}};
    hash_run_create(&f->run, env, spec, why);
    hash_run_insert(&f->run, &f->batch, VXD_HASH_FIRST, 0);
    f->d_keys = gpu_to_device(env, f->keys, sizeof f->keys);
    f->d_indices = gpu_to_device(env, NULL, 27 * 2 * N_KEYS * sizeof(int32_t));
    f->d_rows = gpu_to_device(env, f->numbers, sizeof f->numbers);
}

static void fixture_close(struct fixture *f)
{
    struct gpu_env *env = f->run.env;

    vxd_device_free(env->queue, &f->d_keys);
    vxd_device_free(env->queue, &f->d_indices);
    vxd_device_free(env->queue, &f->d_rows);
    hash_run_destroy(&f->run);
}

/* Checks that the map is unchanged and works. */
static void expect_unchanged(struct fixture *f)
{
    hash_run_verify(&f->run);
    hash_run_find(&f->run, f->keys, (size_t)2 * N_KEYS);
    CHECK_INT(f->run.n_failures, 0);
}

#define CHECK_REFUSED(status, code, err, name)                                           \
    do {                                                                                 \
        CHECK_INT((status), (code));                                                     \
        CHECK_STR((err).field, (name));                                                  \
        (err) = (struct vxd_err){0};                                                     \
    } while (0)

static void refuse_specs(struct gpu_env *env, enum vxd_hash_index index)
{
    static const struct {
        const char *field;
        int what;
        long long value;
    } bad[] = {
        {"key_dtype", 0, VXD_FLOAT32},
        {"key_dtype", 0, VXD_UINT32},
        {"key_dtype", 0, 0},
        {"key_dtype", 0, 99},
        {"n_components", 1, 0},
        {"n_components", 1, -1},
        {"n_components", 1, 9},
        {"n_values", 2, -1},
        {"n_values", 2, 17},
        {"values[1].dtype", 3, 0},
        {"values[1].dtype", 3, 13},
        {"values[1].n_elements", 4, 0},
        {"values[1].n_elements", 4, 8193},
        {"values[1].n_elements", 4, UINT32_MAX},
        {"index", 5, 2},
        {"capacity", 6, (1LL << 30) + 1},
        {"capacity", 6, -1},
    };

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct vxd_hashmap_spec spec = spec_of(index);
        struct vxd_hashmap *map = NULL;
        struct vxd_hashmap_image image;
        struct vxd_err err = {0};

        switch (bad[i].what) {
        case 0:
            spec.key_dtype = (enum vxd_dtype)bad[i].value;
            break;
        case 1:
            spec.n_components = (int)bad[i].value;
            break;
        case 2:
            spec.n_values = (int)bad[i].value;
            break;
        case 3:
            spec.values[1].dtype = (enum vxd_dtype)bad[i].value;
            break;
        case 4:
            spec.values[1].n_elements = (uint32_t)bad[i].value;
            break;
        case 5:
            spec.index = (enum vxd_hash_index)bad[i].value;
            break;
        default:
            spec.capacity = (size_t)bad[i].value;
            break;
        }
        CHECK_REFUSED(vxd_hashmap_create(env->queue, &spec, &map, &err),
                      VXD_INVALID_ARGUMENT, err, bad[i].field);
        CHECK_INT(vxd_hashmap_bytes(env->context, &spec), 0);
        CHECK_REFUSED(vxd_hashmap_image_alloc(env->context, &spec, 1, &image, &err),
                      VXD_INVALID_ARGUMENT, err, bad[i].field);
    }
}

static void test_hashmap_specs_outside_the_ranges_are_refused(void)
{
    hash_each(refuse_specs);
}

static void refuse_inserts(struct fixture *f)
{
    struct vxd_queue *queue = f->run.env->queue;
    const void *one[2] = {f->d_rows.ptr, NULL};
    struct vxd_hashmap_insert_args good = {.keys = f->d_keys.ptr, .n = 10};
    struct vxd_hashmap_insert_args args = good;
    struct vxd_err err = {0};

    args.keys = NULL;
    CHECK_INT(vxd_hashmap_insert(queue, f->run.map, &args, &err), VXD_INVALID_ARGUMENT);
    args = good;
    args.order = (enum vxd_hash_order)2;
    CHECK_INT(vxd_hashmap_insert(queue, f->run.map, &args, &err), VXD_INVALID_ARGUMENT);
    args = good;
    args.values = one;
    CHECK_INT(vxd_hashmap_insert(queue, f->run.map, &args, &err), VXD_INVALID_ARGUMENT);
    args = good;
    args.n = (size_t)1 << 31;
    CHECK_INT(vxd_hashmap_insert(queue, f->run.map, &args, &err), VXD_INVALID_ARGUMENT);
    args = good;
    args.n = f->run.model.capacity - N_KEYS + 1;
    CHECK_INT(vxd_hashmap_insert(queue, f->run.map, &args, &err), VXD_RESOURCE_EXHAUSTED);
}

static void refuse_reads(struct fixture *f)
{
    struct vxd_queue *queue = f->run.env->queue;
    struct vxd_hashmap *map = f->run.map;
    const void *keys = f->d_keys.ptr;
    int32_t *indices = f->d_indices.ptr;
    uint32_t *n = f->d_rows.ptr;
    size_t n_new = 0;
    struct vxd_err err = {0};

    CHECK_INT(vxd_hashmap_find(queue, map, NULL, 5, indices, NULL, &err),
              VXD_INVALID_ARGUMENT);
    CHECK_INT(vxd_hashmap_prepare(queue, map, NULL, 5, &n_new, &err),
              VXD_INVALID_ARGUMENT);
    CHECK_INT(vxd_hashmap_find(queue, map, keys, (size_t)1 << 31, indices, NULL, &err),
              VXD_INVALID_ARGUMENT);
    CHECK_INT(vxd_hashmap_erase(queue, map, NULL, 5, VXD_HASH_ANY, NULL, &err),
              VXD_INVALID_ARGUMENT);
    CHECK_INT(vxd_hashmap_erase(queue, map, keys, 5, (enum vxd_hash_order)7, NULL, &err),
              VXD_INVALID_ARGUMENT);
    CHECK_INT(vxd_hashmap_active(queue, map, indices, N_KEYS - 1, n, &err),
              VXD_INVALID_ARGUMENT);
    CHECK_INT(vxd_hashmap_gather(queue, map, NULL, 5, f->d_rows.ptr, NULL, NULL, &err),
              VXD_INVALID_ARGUMENT);
    CHECK_INT(vxd_hashmap_neighbours(queue, map, keys, 5, (enum vxd_hash_neighbours)7,
                                     indices, &err),
              VXD_INVALID_ARGUMENT);
    CHECK_INT(vxd_hashmap_neighbours(queue, map, keys, ((size_t)1 << 31) / 27 + 1,
                                     VXD_NEIGHBOURS_27, indices, &err),
              VXD_INVALID_ARGUMENT);
    CHECK_INT(vxd_hashmap_neighbours(queue, map, keys, 5, VXD_NEIGHBOURS_6, NULL, &err),
              VXD_INVALID_ARGUMENT);
    CHECK_INT(vxd_hashmap_reserve(queue, map, VXD_HASHMAP_MAX_CAPACITY + 1, &err),
              VXD_INVALID_ARGUMENT);
}

static void refuse_updates(struct fixture *f)
{
    struct vxd_hashmap_update_args good = {.indices = f->d_indices.ptr,
                                           .n = 5,
                                           .array = 1,
                                           .rows = f->d_rows.ptr,
                                           .dtype = VXD_UINT64};
    struct vxd_hashmap_update_args args[7];
    struct vxd_err err = {0};

    for (int i = 0; i < 7; i++) {
        args[i] = good;
    }
    args[0].array = -1;
    args[1].array = 2;
    args[2].dtype = VXD_FLOAT32;
    args[3].dtype = VXD_INT64;
    args[4].combine = (enum vxd_hash_combine)4;
    args[5].rows = NULL;
    args[6].indices = NULL;
    for (int i = 0; i < 7; i++) {
        CHECK_INT(vxd_hashmap_update(f->run.env->queue, f->run.map, &args[i], &err),
                  VXD_INVALID_ARGUMENT);
    }
}

static void refuse_calls(struct gpu_env *env, enum vxd_hash_index index)
{
    static struct fixture f;
    struct vxd_hashmap_spec spec = spec_of(index);

    fixture_open(&f, env, &spec, "refused calls");
    refuse_inserts(&f);
    refuse_reads(&f);
    refuse_updates(&f);
    expect_unchanged(&f);
    fixture_close(&f);
}

static void test_hashmap_refused_calls_leave_the_map_unchanged(void)
{
    hash_each(refuse_calls);
}

/* Set operations of maps whose specs differ. */
static void refuse_sets(struct gpu_env *env, enum vxd_hash_index index)
{
    struct vxd_hashmap_spec specs[6];
    struct vxd_hashmap *a;
    struct vxd_hashmap *b;
    struct vxd_hashmap *out;
    int32_t *indices = NULL;
    struct vxd_err err = {0};

    for (int i = 0; i < 6; i++) {
        specs[i] = spec_of(index);
    }
    specs[1].key_dtype = VXD_INT64;
    specs[2].n_components = 2;
    specs[3].n_values = 1;
    specs[4].values[0].dtype = VXD_INT32;
    specs[5].values[1].n_elements = 3;
    REQUIRE(vxd_hashmap_create(env->queue, &specs[0], &a, &err) == VXD_OK);
    for (int i = 1; i < 6; i++) {
        REQUIRE(vxd_hashmap_create(env->queue, &specs[i], &b, &err) == VXD_OK);
        CHECK_INT(vxd_hashmap_union(env->queue, a, b, &out, &err), VXD_INVALID_ARGUMENT);
        CHECK_INT(vxd_hashmap_intersection(env->queue, a, b, &out, &err),
                  VXD_INVALID_ARGUMENT);
        CHECK_INT(vxd_hashmap_difference(env->queue, a, b, &out, &err),
                  VXD_INVALID_ARGUMENT);
        if (specs[i].n_components == 2) {
            CHECK_INT(vxd_hashmap_neighbours(env->queue, b, env, 1, VXD_NEIGHBOURS_6,
                                             indices, &err),
                      VXD_INVALID_ARGUMENT);
        }
        vxd_hashmap_destroy(env->queue, b);
    }
    vxd_hashmap_destroy(env->queue, a);
    vxd_hashmap_destroy(env->queue, NULL);
    gpu_wait(env);
}

static void test_hashmap_sets_of_unlike_maps_are_refused(void)
{
    hash_each(refuse_sets);
}

/* max_bytes: what the map may take, including the copies made by its growth. */
static void exceed_bytes(struct gpu_env *env, enum vxd_hash_index index)
{
    static struct fixture f;
    struct vxd_hashmap_spec spec = spec_of(index);
    size_t n_bytes = vxd_hashmap_bytes(env->context, &spec);
    struct vxd_hashmap *map = NULL;
    struct vxd_err err = {0};
    size_t n_new = 0;
    size_t capacity;

    CHECK(n_bytes > 300 * (12 + 8 + 8));
    spec.max_bytes = n_bytes - 1;
    CHECK_INT(vxd_hashmap_create(env->queue, &spec, &map, &err), VXD_RESOURCE_EXHAUSTED);
    spec.max_bytes = 2 * n_bytes;
    fixture_open(&f, env, &spec, "max_bytes");
    capacity = f.run.model.capacity;
    CHECK(vxd_hashmap_n_bytes(f.run.map) <= n_bytes);
    CHECK_INT(vxd_hashmap_reserve(env->queue, f.run.map, capacity + capacity / 2, &err),
              VXD_RESOURCE_EXHAUSTED);
    CHECK_INT(vxd_hashmap_reserve(env->queue, f.run.map, (size_t)1 << 29, &err),
              VXD_RESOURCE_EXHAUSTED);
    expect_unchanged(&f);
    /* 2 N_KEYS keys do not fit; duplicates need no capacity. */
    CHECK_INT(vxd_hashmap_prepare(env->queue, f.run.map, f.d_keys.ptr, (size_t)2 * N_KEYS,
                                  &n_new, &err),
              VXD_RESOURCE_EXHAUSTED);
    expect_unchanged(&f);
    hash_run_insert(&f.run, &f.batch, VXD_HASH_ANY, 0);
    CHECK_INT(vxd_hashmap_capacity(f.run.map), capacity);
    expect_unchanged(&f);
    fixture_close(&f);
}

static void test_hashmap_over_its_bytes_is_unchanged(void)
{
    hash_each(exceed_bytes);
}

/* A max_new that is too small, in a map that is nearly full: INTERNAL by the wait. */
static void exceed_max_new(struct gpu_env *env, enum vxd_hash_index index)
{
    static struct fixture f;
    struct vxd_hashmap_spec spec = spec_of(index);
    struct vxd_hashmap_insert_args args = {.n = (size_t)2 * N_KEYS, .max_new = 1};
    struct vxd_err err = {0};
    size_t n_entries = 0;

    fixture_open(&f, env, &spec, "a max_new that lies");
    args.keys = f.d_keys.ptr;
    args.indices = f.d_indices.ptr;
    CHECK_INT(vxd_hashmap_insert(env->queue, f.run.map, &args, &err), VXD_OK);
    CHECK_INT(vxd_queue_wait(env->queue, &err), VXD_INTERNAL);
    expect_unchanged(&f);
    args.order = VXD_HASH_ANY;
    CHECK_INT(vxd_hashmap_insert(env->queue, f.run.map, &args, &err), VXD_OK);
    CHECK_INT(vxd_queue_wait(env->queue, &err), VXD_INTERNAL);
    CHECK_INT(vxd_hashmap_size(env->queue, f.run.map, &n_entries, &err), VXD_OK);
    CHECK_INT(n_entries, N_KEYS + 1);
    hash_run_clear(&f.run);
    hash_run_insert(&f.run, &f.batch, VXD_HASH_FIRST, 0);
    hash_run_verify(&f.run);
    CHECK_INT(f.run.n_failures, 0);
    fixture_close(&f);
}

static void test_hashmap_more_new_keys_than_said_are_reported(void)
{
    hash_each(exceed_max_new);
}

/* Numbers of the living entries, in an array no larger than the bound. */
static void expect_active_within_the_bound(struct gpu_env *env, struct vxd_hashmap *map,
                                           size_t n_entries)
{
    size_t indices_capacity = vxd_hashmap_size_bound(map);
    struct vxd_buffer list =
        gpu_to_device(env, NULL, (indices_capacity + 64) * sizeof(int32_t));
    struct vxd_buffer count = gpu_to_device(env, NULL, sizeof(uint32_t));
    int32_t *numbers;
    uint32_t *n;
    struct vxd_err err = {0};

    CHECK_INT(
        vxd_hashmap_active(env->queue, map, list.ptr, indices_capacity, count.ptr, &err),
        VXD_OK);
    numbers = gpu_to_host(env, &list);
    n = gpu_to_host(env, &count);
    CHECK_INT(*n, n_entries);
    for (size_t i = 0; i < 64; i++) {
        CHECK_INT(numbers[indices_capacity + i], (int32_t)0xa5a5a5a5);
    }
    free(numbers);
    free(n);
    vxd_device_free(env->queue, &list);
    vxd_device_free(env->queue, &count);
}

/* Inserts n keys into a map that has the first n_old of them and capacity for all,
 * with a max_new that is too small. */
static void understate_max_new(struct gpu_env *env, enum vxd_hash_index index, size_t n,
                               size_t n_old, size_t max_new, enum vxd_hash_order order)
{
    struct vxd_hashmap_spec spec = spec_of(index);
    int32_t *rows = gpu_alloc(n * 12);
    struct hash_batch batch = {.n = n_old, .keys = (unsigned char *)rows};
    size_t n_most = n_old + (max_new == VXD_NONE_NEW ? 0 : max_new);
    struct hash_run run = {0};
    struct vxd_buffer keys, indices, is_new;
    struct vxd_err err = {0};
    size_t n_entries = 0;
    uint8_t *flags;

    for (size_t i = 0; i < n; i++) {
        /* Every third one wide. */
        memcpy(&rows[3 * i], (int32_t[]){(int32_t)i, i % 3 == 0 ? 1 << 28 : 0, 7}, 12);
    }
    spec.capacity = 2 * n;
    hash_run_create(&run, env, &spec, "a max_new that lies, with room");
    hash_run_insert(&run, &batch, VXD_HASH_FIRST, HASH_ACTIVATE);
    hash_run_verify(&run);
    keys = gpu_to_device(env, rows, n * 12);
    indices = gpu_to_device(env, NULL, n * sizeof(int32_t));
    is_new = gpu_to_device(env, NULL, n);
    struct vxd_hashmap_insert_args args = {.keys = keys.ptr,
                                           .n = n,
                                           .order = order,
                                           .max_new = max_new,
                                           .indices = indices.ptr,
                                           .is_new = is_new.ptr};
    CHECK_INT(vxd_hashmap_insert(env->queue, run.map, &args, &err), VXD_OK);
    CHECK_INT(vxd_queue_wait(env->queue, &err), VXD_INTERNAL);
    CHECK(vxd_hashmap_size_bound(run.map) <= n_most);
    expect_active_within_the_bound(env, run.map,
                                   order == VXD_HASH_FIRST ? n_old : n_most);
    if (order == VXD_HASH_FIRST) {
        hash_run_verify(&run);
        hash_run_find(&run, rows, n);
    } else {
        CHECK_INT(
            vxd_hashmap_find(env->queue, run.map, keys.ptr, n, NULL, is_new.ptr, &err),
            VXD_OK);
        flags = gpu_to_host(env, &is_new);
        for (size_t i = 0; i < n; i++) {
            n_entries += flags[i];
        }
        CHECK_INT(n_entries, n_most);
        free(flags);
        hash_run_clear(&run);
    }
    batch.n = n;
    hash_run_insert(&run, &batch, order, HASH_ACTIVATE);
    hash_run_verify(&run);
    CHECK_INT(vxd_hashmap_capacity(run.map), run.model.capacity);
    CHECK_INT(run.n_failures, 0);
    vxd_device_free(env->queue, &keys);
    vxd_device_free(env->queue, &indices);
    vxd_device_free(env->queue, &is_new);
    hash_run_destroy(&run);
    free(rows);
}

static void lie_at_every_size(struct gpu_env *env, enum vxd_hash_index index)
{
    for (int order = VXD_HASH_FIRST; order <= VXD_HASH_ANY; order++) {
        understate_max_new(env, index, 50, 20, 10, (enum vxd_hash_order)order);
        understate_max_new(env, index, 6000, 2000, 1000, (enum vxd_hash_order)order);
        understate_max_new(env, index, 2000, 1999, VXD_NONE_NEW,
                           (enum vxd_hash_order)order);
    }
}

/* After a hundred refused insertions, searching the map is not slower. */
static void lie_again_and_again(struct gpu_env *env, enum vxd_hash_index index)
{
    struct vxd_hashmap_spec spec = spec_of(index);
    struct vxd_hashmap_stats stats;
    struct hash_run run = {0};
    static int32_t rows[N_KEYS][3];
    struct hash_batch batch = {.n = N_KEYS / 2, .keys = (unsigned char *)rows};
    struct vxd_err err = {0};

    for (int i = 0; i < N_KEYS; i++) {
        memcpy(rows[i], (int32_t[]){i, i, 1}, 12);
    }
    hash_run_create(&run, env, &spec, "a max_new that lies, again and again");
    hash_run_insert(&run, &batch, VXD_HASH_FIRST, HASH_ACTIVATE);
    for (int lie = 0; lie < 100; lie++) {
        struct vxd_buffer keys;
        struct vxd_hashmap_insert_args args = {.n = N_KEYS, .max_new = VXD_NONE_NEW};

        for (int i = N_KEYS / 2; i < N_KEYS; i++) {
            rows[i][2] += 3;
        }
        keys = gpu_to_device(env, rows, sizeof rows);
        args.keys = keys.ptr;
        CHECK_INT(vxd_hashmap_insert(env->queue, run.map, &args, &err), VXD_OK);
        CHECK_INT(vxd_queue_wait(env->queue, &err), VXD_INTERNAL);
        vxd_device_free(env->queue, &keys);
    }
    hash_run_verify(&run);
    hash_run_find(&run, rows, N_KEYS);
    REQUIRE(vxd_hashmap_get_stats(env->queue, run.map, &stats, &err) == VXD_OK);
    CHECK(stats.mean_probes < 3.0 && stats.max_probes < 50);
    batch.n = N_KEYS;
    hash_run_insert(&run, &batch, VXD_HASH_ANY, HASH_ACTIVATE);
    hash_run_verify(&run);
    CHECK_INT(run.n_failures, 0);
    hash_run_destroy(&run);
}

static void test_hashmap_refused_again_and_again_stays_as_fast(void)
{
    hash_each(lie_again_and_again);
}

static void test_hashmap_more_new_keys_than_said_never_pass_the_bound(void)
{
    hash_each(lie_at_every_size);
}

/* Erases half, inserts as many new ones, a thousand times. */
static void churn(struct gpu_env *env, enum vxd_hash_index index)
{
    enum {
        N = 512,
        N_CYCLES = 1000
    };
    struct vxd_hashmap_spec spec = spec_of(index);
    struct vxd_hashmap_stats stats;
    struct hash_run run;
    static int32_t keys[N][3];
    struct hash_batch batch = {.n = N, .keys = (unsigned char *)keys};
    size_t n_bytes;
    size_t capacity;
    struct vxd_err err = {0};

    spec.capacity = N;
    spec.n_values = 0;
    hash_run_create(&run, env, &spec, "churn");
    for (int i = 0; i < N; i++) {
        memcpy(keys[i], (int32_t[]){i, i % 7 - 3, i % 5 == 0 ? i << 22 : 0}, 12);
    }
    hash_run_insert(&run, &batch, VXD_HASH_FIRST, 0);
    n_bytes = vxd_hashmap_n_bytes(run.map);
    capacity = vxd_hashmap_capacity(run.map);
    batch.n = N / 2;
    for (int cycle = 0; cycle < N_CYCLES && run.n_failures == 0; cycle++) {
        enum vxd_hash_order order = cycle % 2 == 0 ? VXD_HASH_FIRST : VXD_HASH_ANY;

        run.step = cycle;
        batch.keys = (unsigned char *)keys[cycle % 2 * N / 2];
        hash_run_erase(&run, batch.keys, batch.n, order, true);
        for (int i = 0; i < N / 2; i++) {
            keys[cycle % 2 * N / 2 + i][0] += N;
        }
        hash_run_insert(&run, &batch, order, 0);
        if (cycle % 50 == 0) {
            hash_run_find(&run, keys, N);
            hash_run_verify(&run);
            REQUIRE(vxd_hashmap_get_stats(env->queue, run.map, &stats, &err) == VXD_OK);
            HASH_EXPECT(&run, stats.mean_probes < 4.0 && stats.max_probes < 100);
        }
    }
    CHECK_INT(vxd_hashmap_n_bytes(run.map), n_bytes);
    CHECK_INT(vxd_hashmap_capacity(run.map), capacity);
    CHECK_INT(run.n_failures, 0);
    hash_run_destroy(&run);
}

static void test_hashmap_a_thousand_cycles_of_churn_stay_bounded(void)
{
    hash_each(churn);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_hashmap_specs_outside_the_ranges_are_refused),
    VXD_TEST(test_hashmap_refused_calls_leave_the_map_unchanged),
    VXD_TEST(test_hashmap_sets_of_unlike_maps_are_refused),
    VXD_TEST(test_hashmap_over_its_bytes_is_unchanged),
    VXD_TEST(test_hashmap_more_new_keys_than_said_are_reported),
    VXD_TEST(test_hashmap_more_new_keys_than_said_never_pass_the_bound),
    VXD_TEST(test_hashmap_refused_again_and_again_stays_as_fast),
    VXD_TEST(test_hashmap_a_thousand_cycles_of_churn_stay_bounded),
};

VXD_TEST_MAIN(tests)
