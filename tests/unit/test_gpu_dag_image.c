// SPDX-License-Identifier: Apache-2.0
/* Images: equal scenes give equal words whatever they are kept in, every store loads them, and
 * words that lie are refused or hold another scene. Every allocation fails in turn, linked with
 * --wrap, as test_gpu_alloc. */
#include "tests/unit/test.h"

#include <errno.h>

#include "gpu/dag/image.h"
#include "tests/unit/gpu_dag_grid.h"
#include "tests/unit/gpu_dag_run.h"
#include "tests/unit/gpu_dag_scene.h"

enum {
    N_ROOTS = 4
};

static const struct vxd_dag_format formats[] = {
    {5, 0, false}, {5, 0, true},  {5, 4, false}, {5, 4, true},
    {5, 8, true},  {5, 16, true}, {5, 16, false}};

static int n_until_failure = -1; /* allocations that still succeed; -1: none fails */

void *__real_malloc(size_t n_bytes);
void *__real_calloc(size_t n, size_t n_bytes);
void *__real_realloc(void *memory, size_t n_bytes);
int __real_posix_memalign(void **out, size_t alignment, size_t n_bytes);
void *__wrap_malloc(size_t n_bytes);
void *__wrap_calloc(size_t n, size_t n_bytes);
void *__wrap_realloc(void *memory, size_t n_bytes);
int __wrap_posix_memalign(void **out, size_t alignment, size_t n_bytes);

static bool must_fail(void)
{
    if (n_until_failure < 0) {
        return false;
    }
    n_until_failure--;
    return n_until_failure < 0;
}

void *__wrap_malloc(size_t n_bytes)
{
    return must_fail() ? NULL : __real_malloc(n_bytes);
}

void *__wrap_calloc(size_t n, size_t n_bytes)
{
    return must_fail() ? NULL : __real_calloc(n, n_bytes);
}

void *__wrap_realloc(void *memory, size_t n_bytes)
{
    return must_fail() ? NULL : __real_realloc(memory, n_bytes);
}

int __wrap_posix_memalign(void **out, size_t alignment, size_t n_bytes)
{
    return must_fail() ? ENOMEM : __real_posix_memalign(out, alignment, n_bytes);
}

/* Images in memory ------------------------------------------------------------------------ */

struct image {
    struct vxd_dag_image_info info;
    uint32_t *words;
    uint64_t n_words; /* that the sink got */
    uint64_t capacity;
    int n_refused; /* pieces that it will refuse */
    uint32_t roots[N_ROOTS];
};

static enum vxd_status take_piece(void *args, uint64_t first, const uint32_t *words,
                                  size_t n_words, struct vxd_err *err)
{
    struct image *image = args;

    if (image->n_refused > 0) {
        image->n_refused--;
        return vxd_fail(err, VXD_UNAVAILABLE, NULL, "not now");
    }
    CHECK_INT(first, image->n_words);
    CHECK(n_words > 0 && n_words <= VXD_DAG_IMAGE_PIECE);
    if (first + n_words > image->capacity) {
        image->capacity = 2 * (first + n_words);
        image->words = __real_realloc(image->words, image->capacity * sizeof *words);
    }
    memcpy(image->words + first, words, n_words * sizeof *words);
    image->n_words += n_words;
    return VXD_OK;
}

static enum vxd_status save(struct vxd_queue *queue, const struct vxd_dag *dag,
                            const uint32_t *roots, struct image *image,
                            struct vxd_err *err)
{
    struct vxd_dag_saving *saving = NULL;
    bool is_done = false;
    enum vxd_status status;

    *image = (struct image){.n_refused = image->n_refused};
    VXD_TRY(vxd_dag_image_begin(queue, dag, roots, N_ROOTS, &saving, err));
    while (!is_done) {
        status = vxd_dag_image_step(queue, saving, 0, take_piece, image, &is_done, err);
        if (status == VXD_UNAVAILABLE) {
            continue;
        }
        VXD_TRY(status);
    }
    vxd_dag_image_result(saving, &image->info, image->roots);
    CHECK_INT(image->info.n_words, image->n_words);
out:
    vxd_dag_image_end(queue, saving);
    if (status != VXD_OK) {
        free(image->words);
        image->words = NULL;
    }
    return status;
}

static void must_save(struct gpu_env *env, const struct vxd_dag *dag,
                      const uint32_t *roots, struct image *image)
{
    struct vxd_err err = {0};

    if (save(env->queue, dag, roots, image, &err) != VXD_OK) {
        (void)fprintf(stderr, "save: %s\n", err.message);
        exit(EXIT_FAILURE);
    }
}

static bool same_images(const struct image *a, const struct image *b)
{
    return a->n_words == b->n_words && a->info.leaves == b->info.leaves &&
           a->info.inner == b->info.inner &&
           memcmp(a->words, b->words, a->n_words * sizeof *a->words) == 0 &&
           memcmp(a->roots, b->roots, sizeof a->roots) == 0;
}

static struct vxd_dag *make_dag(struct gpu_env *env, const struct vxd_dag_format *format,
                                enum vxd_dag_store store)
{
    const struct vxd_dag_spec spec = {
        .format = *format, .store = store, .table_items = 4096};
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

/* Scenes ---------------------------------------------------------------------------------- */

static struct vxd_dag_op random_op(const struct vxd_dag_format *format, uint64_t *seed)
{
    const uint64_t side = (uint64_t)VXD_DAG_UNIT << format->depth;
    const uint64_t size = side < 64 * VXD_DAG_UNIT ? side : 64 * VXD_DAG_UNIT;
    struct vxd_dag_op op = {
        .value = (uint32_t)(gpu_random(seed) % vxd_dag_n_materials(format))};
    uint64_t action = gpu_random(seed) % 6;

    op.action = action == 0                          ? VXD_DAG_ERASE
                : action == 1 && format->tracks_free ? VXD_DAG_SET_FREE
                                                     : VXD_DAG_FILL;
    op.shape.kind = gpu_random(seed) % 3 == 0 ? VXD_DAG_BOX : VXD_DAG_BALL;
    op.shape.r = (int64_t)(gpu_random(seed) % (size / 4));
    for (int i = 0; i < 3; i++) {
        op.shape.a[i] = (int64_t)(gpu_random(seed) % side);
        op.shape.low[i] = (int64_t)(gpu_random(seed) % side);
        op.shape.high[i] = op.shape.low[i] + 1 + (int64_t)(gpu_random(seed) % (size / 2));
    }
    return op;
}

/* Every third version of a history, with voxels beside it where grids is not NULL. */
static void make_scenes(struct gpu_env *env, struct vxd_dag *dag, uint64_t seed,
                        uint32_t roots[N_ROOTS], struct gpu_dag_grid *grids)
{
    const struct vxd_dag_format *format = &vxd_dag_get_spec(dag)->format;
    uint32_t root = VXD_DAG_EMPTY;

    for (int i = 0; i < N_ROOTS; i++) {
        if (grids != NULL) {
            gpu_dag_grid_make(&grids[i], format);
            if (i > 0) {
                gpu_dag_grid_copy(&grids[i], &grids[i - 1]);
            }
        }
        for (int k = 0; k < 3; k++) {
            const struct vxd_dag_op op = random_op(format, &seed);
            struct vxd_dag_edit_result result = {0};

            CHECK_INT(gpu_dag_edit(env, dag, root, &op, 1, &result, NULL), VXD_OK);
            root = result.root;
            if (grids != NULL) {
                gpu_dag_grid_edit(&grids[i], &op, 1);
            }
        }
        roots[i] = root;
    }
    roots[0] = VXD_DAG_UNIFORM; /* roots without words, */
    roots[1] = roots[2];        /* and twice the same */
}

static void check_loads(struct gpu_env *env, const struct image *image,
                        enum vxd_dag_store store, bool is_filled,
                        const struct vxd_dag_summary *wanted)
{
    struct vxd_dag *dag = make_dag(env, &image->info.format, store);
    struct vxd_err err = {0};
    struct image again = {0};
    struct vxd_dag_usage usage;
    uint32_t roots[N_ROOTS];

    if (is_filled) {
        make_scenes(env, dag, 77, roots, NULL);
    }
    memcpy(roots, image->roots, sizeof roots);
    CHECK_INT(vxd_dag_image_load(env->queue, dag, &image->info, image->words, roots,
                                 N_ROOTS, &err),
              VXD_OK);
    CHECK_STR(err.message, "");
    for (int i = 0; i < N_ROOTS; i++) {
        const struct vxd_dag_summary got = verify(env, dag, roots[i]);

        CHECK(memcmp(&got, &wanted[i], sizeof got) == 0);
    }
    must_save(env, dag, roots, &again);
    CHECK(same_images(image, &again));
    free(again.words);
    if (!is_filled) {
        /* Nodes that follow find those there, and words that nobody has. */
        make_scenes(env, dag, 5, roots, NULL);
        for (int i = 0; i < N_ROOTS; i++) {
            (void)verify(env, dag, roots[i]);
        }
    }
    vxd_dag_get_usage(dag, &usage);
    CHECK(usage.used_bytes <= usage.n_bytes && usage.node_bytes <= usage.used_bytes);
    vxd_dag_destroy(env->queue, dag);
}

static void round_trips(struct gpu_env *env)
{
    struct gpu_env cpu;

    gpu_env_open(&cpu, VXD_BACKEND_CPU, 2, 0, 0);
    for (size_t f = 0; f < sizeof formats / sizeof formats[0]; f++) {
        const struct vxd_dag_format *format = &formats[f];
        struct vxd_dag *dag = make_dag(env, format, gpu_dag_store(format));
        struct vxd_dag *fresh = make_dag(&cpu, format, VXD_DAG_ARENA);
        struct vxd_dag_summary wanted[N_ROOTS];
        struct gpu_dag_grid grids[N_ROOTS];
        uint32_t roots[N_ROOTS];
        uint32_t fresh_roots[N_ROOTS];
        struct image image = {.n_refused = 2};
        struct image other = {0};

        make_scenes(env, dag, 10 + f, roots, grids);
        for (int i = 0; i < N_ROOTS; i++) {
            fresh_roots[i] = i < 2 ? VXD_DAG_UNIFORM : gpu_dag_grid_put(&grids[i], fresh);
            wanted[i] = verify(env, dag, roots[i]);
            gpu_dag_grid_free(&grids[i]);
        }
        fresh_roots[1] = fresh_roots[2];
        must_save(env, dag, roots, &image);
        must_save(&cpu, fresh, fresh_roots, &other);
        CHECK(same_images(&image, &other));
        for (int store = 0; store < VXD_DAG_N_STORES; store++) {
            if (store == 0 || (format->material_bits <= 4 && !gpu_is_cuda(env))) {
                check_loads(env, &image, (enum vxd_dag_store)store, false, wanted);
                check_loads(env, &image, (enum vxd_dag_store)store, true, wanted);
            }
        }
        check_loads(&cpu, &image, VXD_DAG_ARENA, false, wanted);
        free(image.words);
        free(other.words);
        vxd_dag_destroy(cpu.queue, fresh);
        vxd_dag_destroy(env->queue, dag);
    }
    gpu_env_close(&cpu);
}

static void test_image_of_equal_scenes_is_equal_and_loads_everywhere(void)
{
    gpu_dag_each_backend(round_trips);
}

/* Nothing but what needs no words. */
static void no_words(struct gpu_env *env)
{
    static const struct vxd_dag_format format = {8, 8, true};
    const uint32_t roots[N_ROOTS] = {VXD_DAG_EMPTY, VXD_DAG_UNIFORM | 7, VXD_DAG_EMPTY,
                                     VXD_DAG_UNIFORM | 255};
    struct vxd_dag *dag = make_dag(env, &format, VXD_DAG_ARENA);
    struct vxd_dag_summary wanted[N_ROOTS];
    struct image image = {0};

    for (int i = 0; i < N_ROOTS; i++) {
        wanted[i] = verify(env, dag, roots[i]);
    }
    must_save(env, dag, roots, &image);
    CHECK_INT(image.n_words, 1);
    CHECK_INT(image.words[0], 0);
    CHECK(memcmp(image.roots, roots, sizeof roots) == 0);
    check_loads(env, &image, VXD_DAG_ARENA, false, wanted);
    free(image.words);
    vxd_dag_destroy(env->queue, dag);
}

static void test_image_of_empty_and_uniform_roots_is_one_word(void)
{
    gpu_dag_each_backend(no_words);
}

/* Several chunks, with free words at their ends, of which items are more than a table begins
 * with; nodes at several heights. */
static void large(struct gpu_env *env)
{
    static const struct vxd_dag_format format = {16, 4, true};
    struct vxd_dag *dag = make_dag(env, &format, gpu_dag_store(&format));
    struct vxd_dag_summary wanted[N_ROOTS];
    uint32_t roots[N_ROOTS] = {0};
    struct image image = {0};

    for (int i = 0; i < N_ROOTS; i++) {
        struct vxd_dag_op ops[2] = {{.action = VXD_DAG_FILL, .value = (uint32_t)i},
                                    {.action = VXD_DAG_SET_FREE}};
        struct vxd_dag_edit_result result = {0};

        ops[0].shape.kind = VXD_DAG_NOISE_BALL;
        ops[0].shape.seed = (uint32_t)i;
        ops[0].shape.amplitude = 40 * VXD_DAG_UNIT;
        ops[0].shape.cell_bits = 4;
        ops[0].shape.r = 150 * VXD_DAG_UNIT;
        for (int a = 0; a < 3; a++) {
            ops[0].shape.a[a] = (9000 + 700 * i) * VXD_DAG_UNIT;
            ops[1].shape.low[a] = ((int64_t)VXD_DAG_UNIT << 15) >> (i * 2);
            ops[1].shape.high[a] = ((int64_t)VXD_DAG_UNIT << 16) >> (i * 2);
        }
        CHECK_INT(gpu_dag_edit(env, dag, i == 0 ? VXD_DAG_EMPTY : roots[i - 1], ops, 2,
                               &result, NULL),
                  VXD_OK);
        roots[i] = result.root;
        wanted[i] = verify(env, dag, roots[i]);
    }
    must_save(env, dag, roots, &image);
    CHECK(image.n_words > (1 << VXD_DAG_CHUNK_BITS));
    check_loads(env, &image, gpu_dag_store(&format), false, wanted);
    check_loads(env, &image, VXD_DAG_ARENA, true, wanted);
    free(image.words);
    vxd_dag_destroy(env->queue, dag);
}

static void test_image_of_many_chunks_loads(void)
{
    gpu_dag_each_backend(large);
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
    static const struct vxd_dag_format format = {4, 8, true};
    static const int32_t voxels[][4] = {
        {0, 0, 0, 3}, {0, 0, 1, 4}, {5, 0, 0, 9}, {9, 9, 9, 3}, {9, 9, 8, 4}};
    struct vxd_dag *dag = make_dag(env, &format, VXD_DAG_ARENA);
    struct vxd_dag_op ops[6] = {{.action = VXD_DAG_SET_FREE}};
    struct vxd_dag_edit_result result = {0};
    struct vxd_dag_summary wanted[N_ROOTS];
    uint32_t words[64];
    uint32_t roots[N_ROOTS] = {0};
    size_t n = read_golden(words, 64);
    struct image image = {0};

    for (int i = 0; i < 5; i++) {
        ops[i + 1].value = (uint32_t)voxels[i][3];
        for (int a = 0; a < 3; a++) {
            ops[i + 1].shape.low[a] = voxels[i][a] * VXD_DAG_UNIT;
            ops[i + 1].shape.high[a] = (voxels[i][a] + 1) * VXD_DAG_UNIT;
        }
    }
    for (int a = 0; a < 3; a++) {
        ops[0].shape.low[a] = 8 * VXD_DAG_UNIT;
        ops[0].shape.high[a] = (a == 2 ? 16 : 12) * VXD_DAG_UNIT;
    }
    CHECK_INT(gpu_dag_edit(env, dag, VXD_DAG_EMPTY, ops, 6, &result, NULL), VXD_OK);
    roots[1] = result.root;
    for (int i = 0; i < N_ROOTS; i++) {
        wanted[i] = verify(env, dag, roots[i]);
    }
    must_save(env, dag, roots, &image);
    CHECK_INT(image.n_words, n);
    CHECK(n == image.n_words && memcmp(words, image.words, n * sizeof *words) == 0);
    for (uint64_t i = 0; getenv("VOXELD_PRINT_GOLDEN") != NULL && i < image.n_words;
         i++) {
        (void)printf("%2llu %08x\n", (unsigned long long)i, image.words[i]);
    }
    check_loads(env, &image, VXD_DAG_ARENA, false, wanted);
    free(image.words);
    vxd_dag_destroy(env->queue, dag);
}

static void test_image_of_a_known_scene_is_the_golden_one(void)
{
    gpu_dag_each_backend(golden);
}

/* Images that lie ------------------------------------------------------------------------- */

struct lie {
    struct gpu_env *env;
    struct image image; /* the true one */
    struct vxd_dag *filled;
    int n_loaded;
};

/* Loads what may be anything, from memory that ends with it: it is refused, or a scene. */
static void load_lie(struct lie *lie, const struct vxd_dag_image_info *info,
                     const uint32_t *words, const uint32_t *true_roots)
{
    struct gpu_env *env = lie->env;
    size_t n_bytes = info->n_words * sizeof *words;
    uint32_t *own = gpu_alloc(n_bytes);
    uint32_t roots[N_ROOTS];
    struct vxd_err err = {0};
    struct vxd_dag *dag = make_dag(env, &info->format, VXD_DAG_ARENA);
    struct vxd_dag *const dags[2] = {dag, lie->filled};
    enum vxd_status first = VXD_OK;

    memcpy(own, words, n_bytes);
    for (int i = 0; i < 2; i++) {
        enum vxd_status status;

        memcpy(roots, true_roots, sizeof roots);
        status = vxd_dag_image_load(env->queue, dags[i], info, own, roots, N_ROOTS, &err);
        first = i == 0 ? status : first;
        CHECK_INT(status, first);
        CHECK(status == VXD_OK || (status == VXD_DATA_LOSS && err.message[0] != '\0'));
        for (int k = 0; status == VXD_OK && k < N_ROOTS; k++) {
            (void)verify(env, dags[i], roots[k]);
        }
    }
    lie->n_loaded += first == VXD_OK;
    vxd_dag_destroy(env->queue, dag);
    free(own);
}

static void lies_of(struct gpu_env *env, const struct vxd_dag_format *format, int n_lies)
{
    struct lie lie = {.env = env};
    struct vxd_dag *dag = make_dag(env, format, VXD_DAG_ARENA);
    struct vxd_dag_image_info info;
    uint32_t roots[N_ROOTS];
    uint64_t seed = 21;
    uint32_t *words;

    lie.filled = make_dag(env, format, VXD_DAG_ARENA);
    make_scenes(env, dag, 6, roots, NULL);
    must_save(env, dag, roots, &lie.image);
    words = lie.image.words;
    for (int i = 0; i < n_lies; i++) {
        uint64_t at = gpu_random(&seed) % lie.image.n_words;
        uint64_t other = gpu_random(&seed) % lie.image.n_words;
        uint32_t saved = words[at];
        uint32_t saved_other = words[other];

        switch (gpu_random(&seed) % 5) {
        case 0:
            words[at] ^= 1u << gpu_random(&seed) % 32;
            break;
        case 1: /* of small numbers */
            words[at] ^= 1u << gpu_random(&seed) % 10;
            break;
        case 2:
            words[at] = words[other];
            break;
        case 3:
            words[at] = (uint32_t)gpu_random(&seed);
            break;
        default:
            words[at] ^= 1u << gpu_random(&seed) % 16;
            words[other] ^= 1u << gpu_random(&seed) % 16;
            break;
        }
        load_lie(&lie, &lie.image.info, words, lie.image.roots);
        words[other] = saved_other;
        words[at] = saved;
    }
    for (int i = 0; i < n_lies / 8; i++) {
        uint64_t by = 1 + gpu_random(&seed) % 3;

        info = lie.image.info;
        memcpy(roots, lie.image.roots, sizeof roots);
        switch (gpu_random(&seed) % 4) {
        case 0:
            info.n_words -= gpu_random(&seed) % info.n_words;
            break;
        case 1:
            info.leaves += gpu_random(&seed) % 2 != 0 ? by : (uint64_t)0 - by;
            break;
        case 2:
            info.inner += gpu_random(&seed) % 2 != 0 ? by : (uint64_t)0 - by;
            break;
        default:
            roots[3] = (uint32_t)(gpu_random(&seed) % (2 * info.n_words));
            break;
        }
        load_lie(&lie, &info, words, roots);
    }
    /* Other values are another scene. */
    CHECK(lie.n_loaded < n_lies);
    free(lie.image.words);
    vxd_dag_destroy(env->queue, lie.filled);
    vxd_dag_destroy(env->queue, dag);
}

static void lies(struct gpu_env *env)
{
    const char *many = getenv("VOXELD_TEST_LIES");
    int n_lies = many != NULL ? atoi(many) : gpu_is_cuda(env) ? 48 : 400;

    for (size_t f = 0; f < sizeof formats / sizeof formats[0]; f++) {
        lies_of(env, &formats[f], n_lies);
    }
}

static void test_image_with_any_word_wrong_is_refused_or_another_scene(void)
{
    gpu_each_backend(lies);
}

/* Known lies, and what is said of them. */
static void refusals(struct gpu_env *env)
{
    static const struct vxd_dag_format format = {4, 4, false};
    /* A leaf of voxel 0, material 5, at 1; at height 3 a node of it in octant 0, at 4; at 6 the
     * root of that in octants 0 and 7. */
    static const uint32_t good[] = {0, 1, 0, 5, 0x501, 1, (2u << 10) | 0x181, 4, 4};
    static const struct {
        int at;
        uint32_t word;
        const char *message;
    } cases[] = {{-1, 0, ""},
                 {0, 1, "word 0 is not 0"},
                 {1, 0, "leaf at word 1: not a whole item"},
                 {3, 0x15, "leaf at word 1: not zero after its values"},
                 {4, 0x901,
                  "inner node at word 4: its header does not tell what is below, at any "
                  "height"},
                 {4, 0x101,
                  "inner node at word 4: its header does not tell what is below, at any "
                  "height"},
                 {5, 0, "inner node at word 4: an empty child is present"},
                 {5, 2, "inner node at word 4: a child is no node before it"},
                 {5, 4, "inner node at word 4: a child is no node before it"},
                 {5, 0xffff0010, "inner node at word 4: uniform of a value that is none"},
                 {7, 1,
                  "inner node at word 6: its header does not tell what is below, at any "
                  "height"},
                 {6, (2u << 10) | 0x1c1, "inner node at word 6: not a whole item"}};
    const struct vxd_dag_image_info info = {format, 9, 1, 4};
    const struct vxd_dag_image_info bad[] = {{{3, 4, false}, 9, 1, 4},
                                             {{4, 3, false}, 9, 1, 4}};
    struct vxd_dag_image_info none = info;
    struct vxd_err err;
    uint32_t root = 6;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t words[9];

        memcpy(words, good, sizeof words);
        if (cases[i].at >= 0) {
            words[cases[i].at] = cases[i].word;
        }
        err = (struct vxd_err){0};
        CHECK_INT(vxd_dag_image_check(env->context, &info, words, &root, 1, &err),
                  cases[i].at < 0 ? VXD_OK : VXD_DATA_LOSS);
        CHECK_STR(err.message, cases[i].message);
    }
    for (uint32_t i = 0; i < 9; i++) {
        CHECK_INT(vxd_dag_image_check(env->context, &info, good, &i, 1, NULL),
                  i == 6 ? VXD_OK : VXD_DATA_LOSS);
    }
    for (size_t i = 0; i < 2; i++) {
        CHECK_INT(vxd_dag_image_check(env->context, &bad[i], good, &root, 1, NULL),
                  VXD_INVALID_ARGUMENT);
    }
    none.n_words = 0;
    CHECK_INT(vxd_dag_image_check(env->context, &none, good, &root, 1, NULL),
              VXD_DATA_LOSS);
}

static void test_image_that_breaks_a_rule_is_refused_by_name(void)
{
    gpu_each_backend(refusals);
}

/* Equal items become one. */
static void twice(struct gpu_env *env)
{
    /* As above, with a second leaf and node of the same words. */
    static const uint32_t words[] = {0,     1, 0,     5, 1,     0, 5,
                                     0x501, 1, 0x501, 4, 0x981, 7, 9};
    const struct vxd_dag_image_info info = {{4, 4, false}, 14, 1, 7};
    struct vxd_dag *dag = make_dag(env, &info.format, VXD_DAG_ARENA);
    struct vxd_dag_usage usage;
    struct vxd_err err = {0};
    uint32_t root = 11;

    CHECK_INT(vxd_dag_image_load(env->queue, dag, &info, words, &root, 1, &err), VXD_OK);
    CHECK_STR(err.message, "");
    CHECK_INT(verify(env, dag, root).n_occupied, 2);
    vxd_dag_get_usage(dag, &usage);
    CHECK_INT(usage.n_leaves, 1);
    CHECK_INT(usage.n_inner, 2);
    vxd_dag_destroy(env->queue, dag);
}

static void test_image_with_equal_items_loads_them_as_one(void)
{
    gpu_each_backend(twice);
}

/* No room --------------------------------------------------------------------------------- */

static void no_room(struct gpu_env *env)
{
    static const struct vxd_dag_format format = {13, 4, true};
    struct vxd_dag *dag = make_dag(env, &format, VXD_DAG_ARENA);
    struct vxd_dag *full = make_dag(env, &format, VXD_DAG_ARENA);
    const struct vxd_dag_op op = {
        .action = VXD_DAG_FILL,
        .shape = {.kind = VXD_DAG_BALL,
                  .a = {4000 * VXD_DAG_UNIT, 4000 * VXD_DAG_UNIT, 4000 * VXD_DAG_UNIT},
                  .r = 500 * VXD_DAG_UNIT}};
    struct vxd_dag_edit_result result = {0};
    struct vxd_dag_usage usage;
    struct image image = {0};
    uint32_t roots[N_ROOTS] = {0};
    int n_refused = 0;

    CHECK_INT(gpu_dag_edit(env, dag, VXD_DAG_EMPTY, &op, 1, &result, NULL), VXD_OK);
    roots[2] = result.root;
    must_save(env, dag, roots, &image);
    vxd_dag_get_usage(full, &usage);
    for (; n_refused < 1000; n_refused++) {
        enum vxd_status status;

        memcpy(roots, image.roots, sizeof roots);
        vxd_dag_set_max_bytes(full, usage.n_bytes + (size_t)n_refused * 900000);
        status = vxd_dag_image_load(env->queue, full, &image.info, image.words, roots,
                                    N_ROOTS, NULL);
        if (status == VXD_OK) {
            break;
        }
        CHECK_INT(status, VXD_RESOURCE_EXHAUSTED);
        CHECK(memcmp(roots, image.roots, sizeof roots) == 0);
    }
    CHECK(n_refused > 0);
    CHECK_INT(verify(env, full, roots[2]).n_occupied,
              verify(env, dag, result.root).n_occupied);
    free(image.words);
    vxd_dag_destroy(env->queue, full);
    vxd_dag_destroy(env->queue, dag);
}

static void test_image_without_room_is_refused_until_there_is(void)
{
    gpu_each_backend(no_room);
}

/* All but the store's creation: saves, and loads into a new store and one that has nodes. */
static enum vxd_status use_all(struct gpu_env *env, const struct vxd_dag *dag,
                               const uint32_t *roots, struct vxd_dag *const to[2],
                               struct vxd_err *err)
{
    struct image image = {0};
    uint32_t loaded[N_ROOTS];
    enum vxd_status status;

    VXD_TRY(save(env->queue, dag, roots, &image, err));
    for (int i = 0; i < 2; i++) {
        memcpy(loaded, image.roots, sizeof loaded);
        VXD_TRY(vxd_dag_image_load(env->queue, to[i], &image.info, image.words, loaded,
                                   N_ROOTS, err));
    }
out:
    free(image.words);
    return status;
}

static void test_image_allocation_failures_leave_nothing(void)
{
    static const struct vxd_dag_format format = {5, 8, true};
    uint32_t roots[N_ROOTS];
    struct vxd_dag *dag;
    struct gpu_env env;
    enum vxd_status status = VXD_RESOURCE_EXHAUSTED;
    int n_failures = 0;

    gpu_env_open(&env, VXD_BACKEND_CPU, 1, 0, 0);
    dag = make_dag(&env, &format, VXD_DAG_ARENA);
    make_scenes(&env, dag, 3, roots, NULL);
    while (status != VXD_OK && n_failures < 1000) {
        struct vxd_dag *const to[2] = {make_dag(&env, &format, VXD_DAG_ARENA),
                                       make_dag(&env, &format, VXD_DAG_ARENA)};
        uint32_t other[N_ROOTS];
        struct vxd_err err = {0};

        make_scenes(&env, to[1], 8, other, NULL);
        n_until_failure = n_failures;
        status = use_all(&env, dag, roots, to, &err);
        n_until_failure = -1;
        CHECK(status == VXD_OK || status == VXD_RESOURCE_EXHAUSTED);
        CHECK((status == VXD_OK) == (err.message[0] == '\0'));
        for (int i = 0; i < N_ROOTS; i++) {
            (void)verify(&env, to[1], other[i]);
        }
        vxd_dag_destroy(env.queue, to[0]);
        vxd_dag_destroy(env.queue, to[1]);
        n_failures++;
    }
    CHECK_INT(status, VXD_OK);
    CHECK(n_failures > 4);
    vxd_dag_destroy(env.queue, dag);
    gpu_env_close(&env);
}

/* Beside edits ---------------------------------------------------------------------------- */

struct saver {
    struct vxd_context *context;
    const struct vxd_dag *dag;
    const uint32_t *roots;
    const struct image *wanted;
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
        struct image image = {0};

        if (save(queue, saver->dag, saver->roots, &image, NULL) != VXD_OK ||
            !same_images(&image, saver->wanted)) {
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
    static const struct vxd_dag_format format = {7, 4, true};
    struct vxd_dag *dag = make_dag(env, &format, gpu_dag_store(&format));
    struct image wanted = {0};
    uint32_t roots[N_ROOTS];
    uint32_t others[N_ROOTS];
    struct saver saver = {.context = env->context, .dag = dag, .roots = roots};
    pthread_t thread;

    make_scenes(env, dag, 1, roots, NULL);
    must_save(env, dag, roots, &wanted);
    saver.wanted = &wanted;
    atomic_init(&saver.stops, false);
    REQUIRE(pthread_create(&thread, NULL, save_again, &saver) == 0);
    for (uint64_t i = 0; i < 12; i++) {
        make_scenes(env, dag, 100 + i, others, NULL);
    }
    atomic_store(&saver.stops, true);
    (void)pthread_join(thread, NULL);
    CHECK(saver.n_saved > 0);
    CHECK_INT(saver.n_wrong, 0);
    free(wanted.words);
    vxd_dag_destroy(env->queue, dag);
}

static void test_image_beside_edits_is_of_its_roots(void)
{
    gpu_dag_each_backend(beside_edits);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_image_of_equal_scenes_is_equal_and_loads_everywhere),
    VXD_TEST(test_image_of_empty_and_uniform_roots_is_one_word),
    VXD_TEST(test_image_of_many_chunks_loads),
    VXD_TEST(test_image_of_a_known_scene_is_the_golden_one),
    VXD_TEST(test_image_with_any_word_wrong_is_refused_or_another_scene),
    VXD_TEST(test_image_that_breaks_a_rule_is_refused_by_name),
    VXD_TEST(test_image_with_equal_items_loads_them_as_one),
    VXD_TEST(test_image_without_room_is_refused_until_there_is),
    VXD_TEST(test_image_allocation_failures_leave_nothing),
    VXD_TEST(test_image_beside_edits_is_of_its_roots),
};

VXD_TEST_MAIN(tests)
