// SPDX-License-Identifier: Apache-2.0
/* Damaged images: words with any error are refused with a message that names it, or are
 * another valid scene. */
#include "tests/support/test.h"

#include "tests/support/svdag/svdag_image.h"
#include "tests/support/svdag/svdag_run.h"

static const struct vxd_svdag_format formats[] = {
    {5, 0, false}, {5, 0, true},  {5, 4, false}, {5, 4, true},
    {5, 8, true},  {5, 16, true}, {5, 16, false}};

struct damaged {
    struct gpu_env *env;
    struct gpu_svdag_image image; /* the undamaged image */
    struct vxd_svdag *filled;
    int n_loaded;
};

/* Loads a damaged image from memory of exactly its size: it is refused, or it is a valid
 * scene. */
static void load_damaged(struct damaged *damaged, const struct vxd_svdag_image_info *info,
                         const uint32_t *words, const uint32_t *true_roots)
{
    struct gpu_env *env = damaged->env;
    size_t n_bytes = info->n_words * sizeof *words;
    uint32_t *own = gpu_alloc(n_bytes);
    uint32_t roots[GPU_SVDAG_IMAGE_ROOTS];
    struct vxd_err err = {0};
    struct vxd_svdag *svdag =
        gpu_svdag_image_make_svdag(env, &info->format, VXD_SVDAG_ARENA);
    struct vxd_svdag *const dags[2] = {svdag, damaged->filled};
    enum vxd_status first = VXD_OK;

    memcpy(own, words, n_bytes);
    for (int i = 0; i < 2; i++) {
        enum vxd_status status;

        memcpy(roots, true_roots, sizeof roots);
        status = vxd_svdag_image_load(env->queue, dags[i], info, own, roots,
                                      GPU_SVDAG_IMAGE_ROOTS, &err);
        first = i == 0 ? status : first;
        CHECK_INT(status, first);
        CHECK(status == VXD_OK || (status == VXD_DATA_LOSS && err.message[0] != '\0'));
        for (int k = 0; status == VXD_OK && k < GPU_SVDAG_IMAGE_ROOTS; k++) {
            (void)gpu_svdag_image_verify(env, dags[i], roots[k]);
        }
    }
    damaged->n_loaded += first == VXD_OK;
    vxd_svdag_destroy(env->queue, svdag);
    free(own);
}

static void check_damaged(struct gpu_env *env, const struct vxd_svdag_format *format,
                          int n_damaged)
{
    struct damaged damaged = {.env = env};
    struct vxd_svdag *svdag = gpu_svdag_image_make_svdag(env, format, VXD_SVDAG_ARENA);
    struct vxd_svdag_image_info info;
    uint32_t roots[GPU_SVDAG_IMAGE_ROOTS];
    uint64_t seed = 21;
    uint32_t *words;

    damaged.filled = gpu_svdag_image_make_svdag(env, format, VXD_SVDAG_ARENA);
    gpu_svdag_image_scenes(env, svdag, 6, roots, NULL);
    gpu_svdag_image_must_save(env, svdag, roots, &damaged.image);
    words = damaged.image.words;
    for (int i = 0; i < n_damaged; i++) {
        uint64_t at = gpu_random(&seed) % damaged.image.n_words;
        uint64_t other = gpu_random(&seed) % damaged.image.n_words;
        uint32_t saved = words[at];
        uint32_t saved_other = words[other];

        switch (gpu_random(&seed) % 5) {
        case 0:
            words[at] ^= 1u << gpu_random(&seed) % 32;
            break;
        case 1: /* flips a low bit, where small numbers differ */
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
        load_damaged(&damaged, &damaged.image.info, words, damaged.image.roots);
        words[other] = saved_other;
        words[at] = saved;
    }
    for (int i = 0; i < n_damaged / 8; i++) {
        uint64_t by = 1 + gpu_random(&seed) % 3;

        info = damaged.image.info;
        memcpy(roots, damaged.image.roots, sizeof roots);
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
        load_damaged(&damaged, &info, words, roots);
    }
    /* Other values may be another valid scene. */
    CHECK(damaged.n_loaded < n_damaged);
    free(damaged.image.words);
    vxd_svdag_destroy(env->queue, damaged.filled);
    vxd_svdag_destroy(env->queue, svdag);
}

static void each_format(struct gpu_env *env)
{
    const char *many = getenv("VOXELD_TEST_LIES");
    int n_damaged = many != NULL       ? atoi(many)
                    : gpu_is_cuda(env) ? 48
                                       : vxd_test_rounds(400);

    for (size_t f = 0; f < sizeof formats / sizeof formats[0]; f++) {
        check_damaged(env, &formats[f], n_damaged);
    }
}

static void test_image_with_any_word_wrong_is_refused_or_another_scene(void)
{
    gpu_each_backend(each_format);
}

/* Specific errors, and the message for each. */
static void refusals(struct gpu_env *env)
{
    static const struct vxd_svdag_format format = {4, 4, false};
    /* A leaf of voxel 0, material 5, at word 1; a node of height 3 with it as child 0, at
     * 4; at 6 the root, with that as children 0 and 7. */
    static const uint32_t good[] = {0, 1, 0, 5, 0x501, 1, (2u << 10) | 0x181, 4, 4};
    static const struct {
        int at;
        uint32_t word;
        const char *message;
    } cases[] = {
        {-1, 0, ""},
        {0, 1, "word 0 is not 0"},
        {1, 0, "leaf at word 1: no complete item begins here"},
        {3, 0x15, "leaf at word 1: words after its values are not zero"},
        {4, 0x901,
         "inner node at word 4: its header does not match its children at any "
         "height"},
        {4, 0x101,
         "inner node at word 4: its header does not match its children at any "
         "height"},
        {5, 0, "inner node at word 4: an empty child is present"},
        {5, 2, "inner node at word 4: a child is not a node before it"},
        {5, 4, "inner node at word 4: a child is not a node before it"},
        {5, 0xffff0010, "inner node at word 4: a uniform reference has no valid value"},
        {7, 1,
         "inner node at word 6: its header does not match its children at any "
         "height"},
        {6, (2u << 10) | 0x1c1, "inner node at word 6: no complete item begins here"}};
    const struct vxd_svdag_image_info info = {format, 9, 1, 4};
    const struct vxd_svdag_image_info bad[] = {{{3, 4, false}, 9, 1, 4},
                                               {{4, 3, false}, 9, 1, 4}};
    struct vxd_svdag_image_info none = info;
    struct vxd_err err;
    uint32_t root = 6;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t words[9];

        memcpy(words, good, sizeof words);
        if (cases[i].at >= 0) {
            words[cases[i].at] = cases[i].word;
        }
        err = (struct vxd_err){0};
        CHECK_INT(vxd_svdag_image_check(env->context, &info, words, &root, 1, &err),
                  cases[i].at < 0 ? VXD_OK : VXD_DATA_LOSS);
        CHECK_STR(err.message, cases[i].message);
    }
    for (uint32_t i = 0; i < 9; i++) {
        CHECK_INT(vxd_svdag_image_check(env->context, &info, good, &i, 1, NULL),
                  i == 6 ? VXD_OK : VXD_DATA_LOSS);
    }
    for (size_t i = 0; i < 2; i++) {
        CHECK_INT(vxd_svdag_image_check(env->context, &bad[i], good, &root, 1, NULL),
                  VXD_INVALID_ARGUMENT);
    }
    none.n_words = 0;
    CHECK_INT(vxd_svdag_image_check(env->context, &none, good, &root, 1, NULL),
              VXD_DATA_LOSS);
}

static void test_image_that_breaks_a_rule_is_refused_by_name(void)
{
    gpu_each_backend(refusals);
}

/* Equal items in an image become one in a store. */
static void twice(struct gpu_env *env)
{
    /* The image above with a second, equal leaf and node. */
    static const uint32_t words[] = {0,     1, 0,     5, 1,     0, 5,
                                     0x501, 1, 0x501, 4, 0x981, 7, 9};
    const struct vxd_svdag_image_info info = {{4, 4, false}, 14, 1, 7};
    struct vxd_svdag *svdag =
        gpu_svdag_image_make_svdag(env, &info.format, VXD_SVDAG_ARENA);
    struct vxd_svdag_usage usage;
    struct vxd_err err = {0};
    uint32_t root = 11;

    CHECK_INT(vxd_svdag_image_load(env->queue, svdag, &info, words, &root, 1, &err),
              VXD_OK);
    CHECK_STR(err.message, "");
    CHECK_INT(gpu_svdag_image_verify(env, svdag, root).n_occupied, 2);
    vxd_svdag_get_usage(svdag, &usage);
    CHECK_INT(usage.n_leaves, 1);
    CHECK_INT(usage.n_inner, 2);
    vxd_svdag_destroy(env->queue, svdag);
}

static void test_image_with_equal_items_loads_them_as_one(void)
{
    gpu_each_backend(twice);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_image_with_any_word_wrong_is_refused_or_another_scene),
    VXD_TEST(test_image_that_breaks_a_rule_is_refused_by_name),
    VXD_TEST(test_image_with_equal_items_loads_them_as_one),
};

VXD_TEST_MAIN(tests)
