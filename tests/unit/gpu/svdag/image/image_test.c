// SPDX-License-Identifier: Apache-2.0
/* Images: equal scenes give equal words, whatever store they come from, and every store
 * loads them. Every allocation fails in turn: linked with --wrap, as test_gpu_alloc.
 * Leaks show under AddressSanitizer. */
#include "tests/support/test.h"

#include "tests/support/failing_alloc.h"
#include "tests/support/svdag/svdag_image.h"
#include "tests/support/svdag/svdag_run.h"
#include "tests/support/svdag/svdag_scene.h"

static const struct vxd_svdag_format formats[] = {
    {5, 0, false}, {5, 0, true},  {5, 4, false}, {5, 4, true},
    {5, 8, true},  {5, 16, true}, {5, 16, false}};

/* Loads from memory that the store may keep. */
static enum vxd_status load_own(struct gpu_env *env, struct vxd_svdag *svdag,
                                const struct gpu_svdag_image *image, uint32_t *roots,
                                struct vxd_err *err)
{
    struct vxd_buffer memory = {0};
    const uint32_t *words;
    enum vxd_status status;

    VXD_TRY(vxd_svdag_image_alloc(env->context, image->info.n_words, &memory, err));
    words = memory.ptr;
    memcpy(memory.ptr, image->words, image->info.n_words * sizeof *image->words);
    status = vxd_svdag_image_load_own(env->queue, svdag, &image->info, &memory, roots,
                                      GPU_SVDAG_IMAGE_ROOTS, err);
    if (memory.ptr != NULL) { /* still owned by the caller */
        CHECK(memory.ptr == words &&
              memcmp(words, image->words, image->info.n_words * sizeof *words) == 0);
    }
out:
    vxd_host_free(env->context, &memory);
    return status;
}

static void check_loads(struct gpu_env *env, const struct gpu_svdag_image *image,
                        enum vxd_svdag_store store, bool is_filled, bool is_own,
                        const struct vxd_svdag_summary *expected)
{
    struct vxd_svdag *svdag = gpu_svdag_image_make_svdag(env, &image->info.format, store);
    struct vxd_err err = {0};
    struct gpu_svdag_image again = {0};
    struct vxd_svdag_usage usage;
    uint32_t roots[GPU_SVDAG_IMAGE_ROOTS];

    if (is_filled) {
        gpu_svdag_image_scenes(env, svdag, 77, roots, NULL);
    }
    memcpy(roots, image->roots, sizeof roots);
    CHECK_INT(is_own ? load_own(env, svdag, image, roots, &err)
                     : vxd_svdag_image_load(env->queue, svdag, &image->info, image->words,
                                            roots, GPU_SVDAG_IMAGE_ROOTS, &err),
              VXD_OK);
    CHECK_STR(err.message, "");
    for (int i = 0; i < GPU_SVDAG_IMAGE_ROOTS; i++) {
        const struct vxd_svdag_summary got = gpu_svdag_image_verify(env, svdag, roots[i]);

        CHECK(memcmp(&got, &expected[i], sizeof got) == 0);
    }
    gpu_svdag_image_must_save(env, svdag, roots, &again);
    CHECK(gpu_svdag_image_is_same(image, &again));
    free(again.words);
    if (!is_filled) {
        /* Later nodes find the loaded ones, and new words are appended after them. */
        gpu_svdag_image_scenes(env, svdag, 5, roots, NULL);
        for (int i = 0; i < GPU_SVDAG_IMAGE_ROOTS; i++) {
            (void)gpu_svdag_image_verify(env, svdag, roots[i]);
        }
    }
    vxd_svdag_get_usage(svdag, &usage);
    CHECK(usage.used_bytes <= usage.n_bytes && usage.node_bytes <= usage.used_bytes);
    vxd_svdag_destroy(env->queue, svdag);
}

static void round_trips(struct gpu_env *env)
{
    struct gpu_env cpu;

    gpu_env_create(&cpu, VXD_BACKEND_CPU, 2, 0, 0);
    for (size_t f = 0; f < sizeof formats / sizeof formats[0]; f++) {
        const struct vxd_svdag_format *format = &formats[f];
        struct vxd_svdag *svdag =
            gpu_svdag_image_make_svdag(env, format, gpu_svdag_store(format));
        struct vxd_svdag *fresh =
            gpu_svdag_image_make_svdag(&cpu, format, VXD_SVDAG_ARENA);
        struct vxd_svdag_summary expected[GPU_SVDAG_IMAGE_ROOTS];
        struct gpu_svdag_grid grids[GPU_SVDAG_IMAGE_ROOTS];
        uint32_t roots[GPU_SVDAG_IMAGE_ROOTS];
        uint32_t fresh_roots[GPU_SVDAG_IMAGE_ROOTS];
        struct gpu_svdag_image image = {.n_refused = 2};
        struct gpu_svdag_image other = {0};

        gpu_svdag_image_scenes(env, svdag, 10 + f, roots, grids);
        for (int i = 0; i < GPU_SVDAG_IMAGE_ROOTS; i++) {
            fresh_roots[i] =
                i < 2 ? VXD_SVDAG_UNIFORM : gpu_svdag_grid_put(&grids[i], fresh);
            expected[i] = gpu_svdag_image_verify(env, svdag, roots[i]);
            gpu_svdag_grid_free(&grids[i]);
        }
        fresh_roots[1] = fresh_roots[2];
        gpu_svdag_image_must_save(env, svdag, roots, &image);
        gpu_svdag_image_must_save(&cpu, fresh, fresh_roots, &other);
        CHECK(gpu_svdag_image_is_same(&image, &other));
        for (int store = 0; store < GPU_N_STORES; store++) {
            if (store == 0 || format->material_bits <= 4) {
                check_loads(env, &image, (enum vxd_svdag_store)store, false, false,
                            expected);
                check_loads(env, &image, (enum vxd_svdag_store)store, false, true,
                            expected);
                check_loads(env, &image, (enum vxd_svdag_store)store, true, true,
                            expected);
            }
        }
        check_loads(&cpu, &image, VXD_SVDAG_ARENA, false, false, expected);
        free(image.words);
        free(other.words);
        vxd_svdag_destroy(cpu.queue, fresh);
        vxd_svdag_destroy(env->queue, svdag);
    }
    gpu_env_destroy(&cpu);
}

static void test_image_of_equal_scenes_is_equal_and_loads_everywhere(void)
{
    gpu_each_backend(round_trips);
}

/* An image of roots that need no words. */
static void no_words(struct gpu_env *env)
{
    static const struct vxd_svdag_format format = {8, 8, true};
    const uint32_t roots[GPU_SVDAG_IMAGE_ROOTS] = {
        VXD_SVDAG_EMPTY, VXD_SVDAG_UNIFORM | 7, VXD_SVDAG_EMPTY, VXD_SVDAG_UNIFORM | 255};
    struct vxd_svdag *svdag = gpu_svdag_image_make_svdag(env, &format, VXD_SVDAG_ARENA);
    struct vxd_svdag_summary expected[GPU_SVDAG_IMAGE_ROOTS];
    struct gpu_svdag_image image = {0};

    for (int i = 0; i < GPU_SVDAG_IMAGE_ROOTS; i++) {
        expected[i] = gpu_svdag_image_verify(env, svdag, roots[i]);
    }
    gpu_svdag_image_must_save(env, svdag, roots, &image);
    CHECK_INT(image.n_words, 1);
    CHECK_INT(image.words[0], 0);
    CHECK(memcmp(image.roots, roots, sizeof roots) == 0);
    check_loads(env, &image, VXD_SVDAG_ARENA, false, true, expected);
    free(image.words);
    vxd_svdag_destroy(env->queue, svdag);
}

static void test_image_of_empty_and_uniform_roots_is_one_word(void)
{
    gpu_each_backend(no_words);
}

/* Several chunks with unused words at their ends, more items than a table initially
 * holds, and nodes at several heights. */
static void large(struct gpu_env *env)
{
    static const struct vxd_svdag_format format = {16, 4, true};
    struct vxd_svdag *svdag =
        gpu_svdag_image_make_svdag(env, &format, gpu_svdag_store(&format));
    struct vxd_svdag_summary expected[GPU_SVDAG_IMAGE_ROOTS];
    uint32_t roots[GPU_SVDAG_IMAGE_ROOTS] = {0};
    struct gpu_svdag_image image = {0};

    for (int i = 0; i < GPU_SVDAG_IMAGE_ROOTS; i++) {
        struct vxd_svdag_op ops[2] = {{.action = VXD_SVDAG_FILL, .value = (uint32_t)i},
                                      {.action = VXD_SVDAG_SET_FREE}};
        struct vxd_svdag_edit_result result = {0};

        ops[0].shape.kind = VXD_SVDAG_NOISE_BALL;
        ops[0].shape.seed = (uint32_t)i;
        ops[0].shape.amplitude = 40 * VXD_SVDAG_UNIT;
        ops[0].shape.cell_bits = 4;
        ops[0].shape.r = 150 * VXD_SVDAG_UNIT;
        for (int a = 0; a < 3; a++) {
            ops[0].shape.a[a] = (9000 + 700 * i) * VXD_SVDAG_UNIT;
            ops[1].shape.low[a] = ((int64_t)VXD_SVDAG_UNIT << 15) >> (i * 2);
            ops[1].shape.high[a] = ((int64_t)VXD_SVDAG_UNIT << 16) >> (i * 2);
        }
        CHECK_INT(gpu_svdag_edit(env, svdag, i == 0 ? VXD_SVDAG_EMPTY : roots[i - 1], ops,
                                 2, &result, NULL),
                  VXD_OK);
        roots[i] = result.root;
        expected[i] = gpu_svdag_image_verify(env, svdag, roots[i]);
    }
    gpu_svdag_image_must_save(env, svdag, roots, &image);
    CHECK(image.n_words > (1 << VXD_SVDAG_CHUNK_BITS));
    check_loads(env, &image, gpu_svdag_store(&format), false, true, expected);
    check_loads(env, &image, VXD_SVDAG_ARENA, true, false, expected);
    free(image.words);
    vxd_svdag_destroy(env->queue, svdag);
}

static void test_image_of_many_chunks_loads(void)
{
    gpu_each_backend(large);
}

/* The golden image ------------------------------------------------------------------------ */

/* tests/data/dag_image_v1.txt: hexadecimal words, # begins a comment. */
static size_t read_golden(uint32_t *words, size_t most)
{
    FILE *file = fopen(VOXELD_SOURCE_DIR "/tests/data/dag_image_v1.txt", "r");
    char line[256];
    size_t n = 0;

    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        char *at = line;

        while (n < most) {
            char *end = at;
            unsigned long word = strtoul(at, &end, 16);

            if (end == at) {
                break;
            }
            words[n++] = (uint32_t)word;
            at = end;
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return n;
}

static void golden(struct gpu_env *env)
{
    static const struct vxd_svdag_format format = {4, 8, true};
    static const int32_t voxels[][4] = {
        {0, 0, 0, 3}, {0, 0, 1, 4}, {5, 0, 0, 9}, {9, 9, 9, 3}, {9, 9, 8, 4}};
    struct vxd_svdag *svdag = gpu_svdag_image_make_svdag(env, &format, VXD_SVDAG_ARENA);
    struct vxd_svdag_op ops[6] = {{.action = VXD_SVDAG_SET_FREE}};
    struct vxd_svdag_edit_result result = {0};
    struct vxd_svdag_summary expected[GPU_SVDAG_IMAGE_ROOTS];
    uint32_t words[64];
    uint32_t roots[GPU_SVDAG_IMAGE_ROOTS] = {0};
    size_t n = read_golden(words, 64);
    struct gpu_svdag_image image = {0};

    for (int i = 0; i < 5; i++) {
        ops[i + 1].value = (uint32_t)voxels[i][3];
        for (int a = 0; a < 3; a++) {
            ops[i + 1].shape.low[a] = voxels[i][a] * VXD_SVDAG_UNIT;
            ops[i + 1].shape.high[a] = (voxels[i][a] + 1) * VXD_SVDAG_UNIT;
        }
    }
    for (int a = 0; a < 3; a++) {
        ops[0].shape.low[a] = 8 * VXD_SVDAG_UNIT;
        ops[0].shape.high[a] = (a == 2 ? 16 : 12) * VXD_SVDAG_UNIT;
    }
    CHECK_INT(gpu_svdag_edit(env, svdag, VXD_SVDAG_EMPTY, ops, 6, &result, NULL), VXD_OK);
    roots[1] = result.root;
    for (int i = 0; i < GPU_SVDAG_IMAGE_ROOTS; i++) {
        expected[i] = gpu_svdag_image_verify(env, svdag, roots[i]);
    }
    gpu_svdag_image_must_save(env, svdag, roots, &image);
    CHECK_INT(image.n_words, n);
    CHECK(n == image.n_words && memcmp(words, image.words, n * sizeof *words) == 0);
    for (uint64_t i = 0; getenv("VOXELD_PRINT_GOLDEN") != NULL && i < image.n_words;
         i++) {
        (void)printf("%2llu %08x\n", (unsigned long long)i, image.words[i]);
    }
    check_loads(env, &image, VXD_SVDAG_ARENA, false, true, expected);
    free(image.words);
    vxd_svdag_destroy(env->queue, svdag);
}

static void test_image_of_a_known_scene_is_the_golden_one(void)
{
    gpu_each_backend(golden);
}

/* Budgets
 * --------------------------------------------------------------------------------- */

static void small_budgets(struct gpu_env *env)
{
    static const struct vxd_svdag_format format = {13, 4, true};
    struct vxd_svdag *svdag = gpu_svdag_image_make_svdag(env, &format, VXD_SVDAG_ARENA);
    struct vxd_svdag *full = gpu_svdag_image_make_svdag(env, &format, VXD_SVDAG_ARENA);
    const struct vxd_svdag_op op = {
        .action = VXD_SVDAG_FILL,
        .shape = {
            .kind = VXD_SVDAG_BALL,
            .a = {4000 * VXD_SVDAG_UNIT, 4000 * VXD_SVDAG_UNIT, 4000 * VXD_SVDAG_UNIT},
            .r = 500 * VXD_SVDAG_UNIT}};
    struct vxd_svdag_edit_result result = {0};
    struct vxd_svdag_usage usage;
    struct gpu_svdag_image image = {0};
    uint32_t roots[GPU_SVDAG_IMAGE_ROOTS] = {0};
    int n_refused = 0;

    CHECK_INT(gpu_svdag_edit(env, svdag, VXD_SVDAG_EMPTY, &op, 1, &result, NULL), VXD_OK);
    roots[2] = result.root;
    gpu_svdag_image_must_save(env, svdag, roots, &image);
    vxd_svdag_get_usage(full, &usage);
    for (; n_refused < 1000; n_refused++) {
        enum vxd_status status;

        memcpy(roots, image.roots, sizeof roots);
        vxd_svdag_set_max_bytes(full, usage.n_bytes + (size_t)n_refused * 900000);
        status = n_refused % 2 == 0
                     ? load_own(env, full, &image, roots, NULL)
                     : vxd_svdag_image_load(env->queue, full, &image.info, image.words,
                                            roots, GPU_SVDAG_IMAGE_ROOTS, NULL);
        if (status == VXD_OK) {
            break;
        }
        CHECK_INT(status, VXD_RESOURCE_EXHAUSTED);
        CHECK(memcmp(roots, image.roots, sizeof roots) == 0);
    }
    CHECK(n_refused > 0);
    CHECK_INT(gpu_svdag_image_verify(env, full, roots[2]).n_occupied,
              gpu_svdag_image_verify(env, svdag, result.root).n_occupied);
    free(image.words);
    vxd_svdag_destroy(env->queue, full);
    vxd_svdag_destroy(env->queue, svdag);
}

static void test_image_without_room_is_refused_until_there_is(void)
{
    gpu_each_backend(small_budgets);
}

/* Everything except creating the store: saves, loads into new stores, and loads into a
 * store that has nodes. */
static enum vxd_status use_all(struct gpu_env *env, const struct vxd_svdag *svdag,
                               const uint32_t *roots, struct vxd_svdag *const to[3],
                               struct vxd_err *err)
{
    struct gpu_svdag_image image = {0};
    uint32_t loaded[GPU_SVDAG_IMAGE_ROOTS];
    enum vxd_status status;

    VXD_TRY(gpu_svdag_image_save(env->queue, svdag, roots, &image, err));
    for (int i = 0; i < 2; i++) {
        memcpy(loaded, image.roots, sizeof loaded);
        VXD_TRY(vxd_svdag_image_load(env->queue, to[i], &image.info, image.words, loaded,
                                     GPU_SVDAG_IMAGE_ROOTS, err));
    }
    memcpy(loaded, image.roots, sizeof loaded);
    VXD_TRY(load_own(env, to[2], &image, loaded, err));
out:
    free(image.words);
    return status;
}

static void test_image_allocation_failures_leave_nothing(void)
{
    static const struct vxd_svdag_format format = {5, 8, true};
    uint32_t roots[GPU_SVDAG_IMAGE_ROOTS];
    struct vxd_svdag *svdag;
    struct gpu_env env;
    enum vxd_status status = VXD_RESOURCE_EXHAUSTED;
    int n_failures = 0;

    gpu_env_create(&env, VXD_BACKEND_CPU, 1, 0, 0);
    svdag = gpu_svdag_image_make_svdag(&env, &format, VXD_SVDAG_ARENA);
    gpu_svdag_image_scenes(&env, svdag, 3, roots, NULL);
    while (status != VXD_OK && n_failures < 1000) {
        struct vxd_svdag *const to[3] = {
            gpu_svdag_image_make_svdag(&env, &format, VXD_SVDAG_ARENA),
            gpu_svdag_image_make_svdag(&env, &format, VXD_SVDAG_ARENA),
            gpu_svdag_image_make_svdag(&env, &format, VXD_SVDAG_ARENA)};
        uint32_t other[GPU_SVDAG_IMAGE_ROOTS];
        struct vxd_err err = {0};

        gpu_svdag_image_scenes(&env, to[1], 8, other, NULL);
        fail_allocation(n_failures);
        status = use_all(&env, svdag, roots, to, &err);
        (void)stop_failing();
        CHECK(status == VXD_OK || status == VXD_RESOURCE_EXHAUSTED);
        CHECK((status == VXD_OK) == (err.message[0] == '\0'));
        for (int i = 0; i < GPU_SVDAG_IMAGE_ROOTS; i++) {
            (void)gpu_svdag_image_verify(&env, to[1], other[i]);
        }
        vxd_svdag_destroy(env.queue, to[0]);
        vxd_svdag_destroy(env.queue, to[1]);
        vxd_svdag_destroy(env.queue, to[2]);
        n_failures++;
    }
    CHECK_INT(status, VXD_OK);
    CHECK(n_failures > 4);
    vxd_svdag_destroy(env.queue, svdag);
    gpu_env_destroy(&env);
}

/* Beside edits ---------------------------------------------------------------------------- */

struct saver {
    struct vxd_context *context;
    const struct vxd_svdag *svdag;
    const uint32_t *roots;
    const struct gpu_svdag_image *expected;
    atomic_bool stops;
    int n_saved;
    int n_wrong;
};

static void *save_again(void *args)
{
    struct saver *saver = args;
    struct vxd_queue *queue = NULL;

    if (vxd_queue_create(saver->context, &queue, NULL) != VXD_OK) {
        saver->n_wrong++;
        return NULL;
    }
    do {
        struct gpu_svdag_image image = {0};

        if (gpu_svdag_image_save(queue, saver->svdag, saver->roots, &image, NULL) !=
                VXD_OK ||
            !gpu_svdag_image_is_same(&image, saver->expected)) {
            saver->n_wrong++;
        }
        saver->n_saved++;
        free(image.words);
    } while (!atomic_load(&saver->stops));
    vxd_queue_destroy(queue);
    return NULL;
}

static void beside_edits(struct gpu_env *env)
{
    static const struct vxd_svdag_format format = {7, 4, true};
    struct vxd_svdag *svdag =
        gpu_svdag_image_make_svdag(env, &format, gpu_svdag_store(&format));
    struct gpu_svdag_image expected = {0};
    uint32_t roots[GPU_SVDAG_IMAGE_ROOTS];
    uint32_t others[GPU_SVDAG_IMAGE_ROOTS];
    struct saver saver = {.context = env->context, .svdag = svdag, .roots = roots};
    pthread_t thread;

    gpu_svdag_image_scenes(env, svdag, 1, roots, NULL);
    gpu_svdag_image_must_save(env, svdag, roots, &expected);
    saver.expected = &expected;
    atomic_init(&saver.stops, false);
    REQUIRE(pthread_create(&thread, NULL, save_again, &saver) == 0);
    for (uint64_t i = 0; i < 12; i++) {
        gpu_svdag_image_scenes(env, svdag, 100 + i, others, NULL);
    }
    atomic_store(&saver.stops, true);
    (void)pthread_join(thread, NULL);
    CHECK(saver.n_saved > 0);
    CHECK_INT(saver.n_wrong, 0);
    free(expected.words);
    vxd_svdag_destroy(env->queue, svdag);
}

static void test_image_beside_edits_is_of_its_roots(void)
{
    gpu_each_backend(beside_edits);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_image_of_equal_scenes_is_equal_and_loads_everywhere),
    VXD_TEST(test_image_of_empty_and_uniform_roots_is_one_word),
    VXD_TEST(test_image_of_many_chunks_loads),
    VXD_TEST(test_image_of_a_known_scene_is_the_golden_one),
    VXD_TEST(test_image_without_room_is_refused_until_there_is),
    VXD_TEST(test_image_allocation_failures_leave_nothing),
    VXD_TEST(test_image_beside_edits_is_of_its_roots),
};

VXD_TEST_MAIN(tests)
