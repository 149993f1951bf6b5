// SPDX-License-Identifier: Apache-2.0
/* Random sequences of operations on maps, compared with a plain model after every step.
 *
 * VOXELD_TEST_SEEDS=N runs N seeds on each backend and index (default 500, fewer
 * where VOXELD_TEST_SLOW is set); VOXELD_TEST_SEED=S runs that seed alone. */
#include <math.h>

#include "tests/support/hash/hash_keys.h"
#include "tests/support/hash/hash_run.h"
#include "tests/support/test.h"

enum {
    N_STEPS = 40,
    /* sums of more than one block; more than the number of distinct keys */
    MAX_BATCH = 2600
};

/* The state of one seed's sequence. */
struct play {
    struct hash_run run;
    uint64_t random;
    struct hash_batch batch;
    size_t n_universe;
    unsigned char *universe;
    bool is_first_only; /* no step depends on the map's own choice of numbers */
};

static size_t pick(struct play *play, size_t n)
{
    return (size_t)(gpu_random(&play->random) % n);
}

static void make_spec(struct play *play, enum vxd_hash_index index,
                      struct vxd_hashmap_spec *spec)
{
    static const enum vxd_dtype key_dtypes[] = {VXD_INT16, VXD_INT32, VXD_INT64};
    static const size_t capacities[] = {0, 1, 2, 31, 32, 33, 64, 100, 255, 1000};

    *spec = (struct vxd_hashmap_spec){.key_dtype = key_dtypes[pick(play, 3)],
                                      .n_components = 1 + (int)pick(play, 8),
                                      .n_values = (int)pick(play, 4),
                                      .index = index,
                                      .capacity = capacities[pick(play, 10)]};
    if (pick(play, 3) == 0) { /* the usual case */
        spec->key_dtype = VXD_INT32;
        spec->n_components = 3;
    }
    if (pick(play, 20) == 0) {
        spec->n_values = VXD_HASHMAP_MAX_VALUES;
    }
    for (int v = 0; v < spec->n_values; v++) {
        spec->values[v].dtype = (enum vxd_dtype)(1 + pick(play, 12));
        spec->values[v].n_elements =
            1 + (uint32_t)pick(play, pick(play, 8) == 0 ? 40 : 5);
    }
}

static void make_universe(struct play *play, const struct vxd_hashmap_spec *spec)
{
    static const size_t sizes[] = {1, 5, 40, 300, 2000};
    enum hash_key_kind kind = (enum hash_key_kind)pick(play, (size_t)HASH_N_KEY_KINDS);

    play->n_universe = 1 + pick(play, sizes[pick(play, 5)]);
    play->universe = gpu_alloc(play->n_universe * play->run.model.key_bytes);
    hash_keys_make(spec, kind, &play->random, play->universe, play->n_universe);
}

static void random_rows(struct play *play, enum vxd_dtype dtype, size_t n_elements,
                        unsigned char *out)
{
    static const float floats[] = {0.0f, -0.0f, 1e-42f, 3e38f, -3e38f, 0.1f, 16777216.0f};
    size_t size = vxd_dtype_bytes(dtype);

    for (size_t i = 0; i < n_elements; i++) {
        uint64_t bits = gpu_random(&play->random);
        float single = gpu_random_float(&play->random, -1000.0f, 1000.0f);
        double number;

        if (bits % 16 == 0) {
            single = floats[bits / 16 % 7];
        } else if (bits % 97 == 0) {
            single = bits / 97 % 3 == 0 ? (float)NAN : (float)INFINITY;
        }
        number = (double)single * (1.0 + 1e-12);
        if (dtype == VXD_FLOAT32) {
            memcpy(out + i * size, &single, size);
        } else if (dtype == VXD_FLOAT64) {
            memcpy(out + i * size, &number, size);
        } else {
            memcpy(out + i * size, &bits, size);
        }
    }
}

static void random_batch(struct play *play)
{
    static const size_t sizes[] = {0, 1, 2, 31, 33, 64, 255, 256, 257, 300};
    struct hash_model *model = &play->run.model;
    struct hash_batch *batch = &play->batch;

    batch->n = sizes[pick(play, 10)];
    if (pick(play, 30) == 0) {
        batch->n = 1023 + pick(play, MAX_BATCH - 1023);
    }
    for (size_t i = 0; i < batch->n; i++) {
        memcpy(batch->keys + i * model->key_bytes,
               play->universe + pick(play, play->n_universe) * model->key_bytes,
               model->key_bytes);
    }
    for (int v = 0; v < model->spec.n_values; v++) {
        random_rows(play, model->spec.values[v].dtype,
                    batch->n * model->spec.values[v].n_elements, batch->values[v]);
    }
}

static void insert(struct play *play)
{
    enum vxd_hash_order order =
        play->is_first_only || pick(play, 2) == 0 ? VXD_HASH_FIRST : VXD_HASH_ANY;
    int flags = 0;

    random_batch(play);
    flags |= pick(play, 4) == 0 ? HASH_ACTIVATE : 0;
    flags |= pick(play, 6) == 0 ? HASH_NO_INDICES : 0;
    flags |= pick(play, 6) == 0 ? HASH_NO_MASK : 0;
    flags |= pick(play, 5) == 0 ? HASH_UNPREPARED : 0;
    hash_run_insert(&play->run, &play->batch, order, flags);
}

static void update(struct play *play)
{
    struct hash_model *model = &play->run.model;
    struct vxd_hashmap_update_args args = {.combine =
                                               (enum vxd_hash_combine)pick(play, 4)};
    int32_t *indices;
    size_t reach;

    if (model->spec.n_values == 0) {
        return;
    }
    random_batch(play);
    args.n = play->batch.n;
    args.array = (int)pick(play, (size_t)model->spec.n_values);
    args.dtype = model->spec.values[args.array].dtype;
    if (args.dtype == VXD_UINT64 && pick(play, 2) == 0) {
        args.dtype = VXD_UINT32;
    } else if (args.dtype == VXD_FLOAT64 && pick(play, 2) == 0) {
        args.dtype = VXD_FLOAT32;
    }
    random_rows(play, args.dtype, args.n * model->spec.values[args.array].n_elements,
                play->batch.values[args.array]);
    args.rows = play->batch.values[args.array];
    indices = gpu_alloc(args.n * sizeof *indices);
    reach = pick(play, 3) == 0 ? 2 : model->capacity + 3;
    for (size_t i = 0; i < args.n; i++) {
        indices[i] = (int32_t)pick(play, reach) - 1;
    }
    args.indices = indices;
    hash_run_update(&play->run, &args);
    free(indices);
}

static void combine(struct play *play)
{
    struct vxd_hashmap_spec spec = play->run.model.spec;
    struct hash_run other;

    spec.capacity = pick(play, 100);
    spec.index = pick(play, 2) == 0 ? VXD_HASH_OPEN : GPU_OTHER_INDEX;
    hash_run_create(&other, play->run.env, &spec, "the other map of a set operation");
    other.seed = play->run.seed;
    random_batch(play);
    hash_run_insert(&other, &play->batch, VXD_HASH_FIRST, 0);
    hash_run_combine(&play->run, &other, (enum hash_set_operation)pick(play, 3));
    play->run.n_failures += other.n_failures;
    hash_run_destroy(&other);
}

static void take_step(struct play *play)
{
    static const int kinds[] = {6, 8, 27};
    struct hash_run *run = &play->run;
    enum vxd_hash_index index = pick(play, 2) == 0 ? VXD_HASH_OPEN : GPU_OTHER_INDEX;
    int n_components = run->model.spec.n_components;
    size_t choice = pick(play, 100);

    if (choice < 35) {
        insert(play);
    } else if (choice < 50) {
        random_batch(play);
        hash_run_find(run, play->batch.keys, play->batch.n);
    } else if (choice < 66) {
        random_batch(play);
        hash_run_erase(run, play->batch.keys, play->batch.n,
                       pick(play, 2) == 0 ? VXD_HASH_FIRST : VXD_HASH_ANY,
                       pick(play, 4) != 0);
    } else if (choice < 78) {
        update(play);
    } else if (choice < 84 && (n_components == 3 || n_components == 4)) {
        random_batch(play);
        hash_run_neighbours(run, play->batch.keys, play->batch.n, kinds[pick(play, 3)]);
    } else if (choice < 86) {
        hash_run_clear(run);
    } else if (choice < 89) {
        hash_run_reserve(run, pick(play, 2 * run->model.capacity + 20));
    } else if (choice < 92) {
        combine(play);
    } else if (choice < 94) {
        hash_run_through_image(run, index);
    } else if (choice < 95) {
        hash_run_through_copy(run, index);
    } else {
        hash_run_verify(run);
    }
}

static int play_seed(struct gpu_env *env, enum vxd_hash_index index, uint64_t seed)
{
    struct play play = {.random = seed};
    struct vxd_hashmap_spec spec;
    int n_failures;

    make_spec(&play, index, &spec);
    hash_run_create(&play.run, env, &spec, "random sequence");
    play.run.seed = seed;
    play.is_first_only = pick(&play, 2) == 0;
    make_universe(&play, &spec);
    play.batch.keys = gpu_alloc(MAX_BATCH * play.run.model.key_bytes);
    for (int v = 0; v < spec.n_values; v++) {
        play.batch.values[v] = gpu_alloc(MAX_BATCH * play.run.model.row_bytes[v]);
    }
    for (int i = 0; i < N_STEPS && play.run.n_failures == 0; i++) {
        play.run.step = i;
        take_step(&play);
    }
    hash_run_verify(&play.run);
    n_failures = play.run.n_failures;
    free(play.batch.keys);
    for (int v = 0; v < spec.n_values; v++) {
        free(play.batch.values[v]);
    }
    free(play.universe);
    hash_run_destroy(&play.run);
    return n_failures;
}

static void play_all(struct gpu_env *env, enum vxd_hash_index index)
{
    const char *one = getenv("VOXELD_TEST_SEED");
    const char *many = getenv("VOXELD_TEST_SEEDS");
    uint64_t first = one != NULL ? strtoull(one, NULL, 10) : 1;
    uint64_t n = (uint64_t)vxd_test_rounds(500);
    int n_failed = 0;

    if (many != NULL) {
        n = strtoull(many, NULL, 10);
    }
    for (uint64_t i = 0; i < (one != NULL ? 1 : n) && n_failed < 5; i++) {
        n_failed += play_seed(env, index, first + i) > 0;
    }
    CHECK_INT(n_failed, 0);
}

static void test_hashmap_random_operations_agree_with_the_model(void)
{
    hash_each(play_all);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_hashmap_random_operations_agree_with_the_model),
};

VXD_TEST_MAIN(tests)
