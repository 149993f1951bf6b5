// SPDX-License-Identifier: Apache-2.0
/* The number of nodes of a ball: for the large ball it is known from an independent
 * program, for small ones it is computed here by brute force. */
#include "tests/support/test.h"

#include "tests/support/svdag/svdag_run.h"

/* Partial nodes: all in the tree (counted once per path), and distinct ones by height. */
struct counts {
    uint64_t n_tree[VXD_SVDAG_MAX_DEPTH + 1];
    uint64_t n_distinct[VXD_SVDAG_MAX_DEPTH + 1];
};

/* Adds a ball to an empty scene without materials and returns its root; the store is in
 * *svdag. */
static uint32_t fill_ball(struct gpu_env *env, int depth, const int64_t centre[3],
                          int64_t r, struct vxd_svdag **svdag,
                          struct vxd_svdag_edit_result *result)
{
    struct vxd_svdag_spec spec = {.format = {depth, 0, false}};
    struct vxd_svdag_op op = {.action = VXD_SVDAG_FILL};
    struct vxd_err err = {0};

    op.shape.kind = VXD_SVDAG_BALL;
    memcpy(op.shape.a, centre, sizeof op.shape.a);
    op.shape.r = r;
    if (vxd_svdag_create(env->queue, &spec, svdag, &err) != VXD_OK ||
        gpu_svdag_edit(env, *svdag, VXD_SVDAG_EMPTY, &op, 1, result, &err) != VXD_OK) {
        (void)fprintf(stderr, "%s\n", err.message);
        exit(EXIT_FAILURE);
    }
    return result->root;
}

/* Nodes of a tree by height, counted once per path. */
static void count_tree(struct gpu_env *env, const struct vxd_svdag *svdag, uint32_t root,
                       uint64_t *n_tree)
{
    struct {
        uint32_t ref;
        int octant;
    } stack[VXD_SVDAG_MAX_DEPTH + 1];
    struct vxd_svdag_image image;
    const struct vxd_svdag_view *view = &image.view;
    int height = svdag->view.depth;

    gpu_svdag_image_open(env, svdag, &image);
    stack[height].ref = root;
    stack[height].octant = 0;
    n_tree[height]++;
    while (height <= view->depth) {
        uint32_t child;

        if (stack[height].octant == 8) {
            height++;
            continue;
        }
        child = vxd_svdag_child(vxd_svdag_words(view, stack[height].ref),
                                stack[height].octant++);
        if (!vxd_svdag_is_node(child)) {
            continue;
        }
        n_tree[height - 1]++;
        if (height - 1 > VXD_SVDAG_LEAF_HEIGHT) {
            height--;
            stack[height].ref = child;
            stack[height].octant = 0;
        }
    }
    gpu_svdag_image_close(env, &image);
}

static uint64_t sum_inner(const uint64_t *by_height)
{
    uint64_t sum = 0;

    for (int height = VXD_SVDAG_LEAF_HEIGHT + 1; height <= VXD_SVDAG_MAX_DEPTH;
         height++) {
        sum += by_height[height];
    }
    return sum;
}

static void large_ball(struct gpu_env *env)
{
    /* In voxels: 27390.5, 67726.5, 43404.5. */
    static const int64_t centre[3] = {27390 * 256 + 128, 67726 * 256 + 128,
                                      43404 * 256 + 128};
    struct vxd_svdag *svdag;
    struct vxd_svdag_edit_result result;
    struct vxd_svdag_usage usage;
    struct vxd_svdag_summary summary = {0};
    struct counts counts = {0};
    uint32_t root;

    root = fill_ball(env, 17, centre, 1820 * 256, &svdag, &result);
    count_tree(env, svdag, root, counts.n_tree);
    CHECK_INT(vxd_svdag_verify(env->queue, svdag, root, &summary, NULL), VXD_OK);
    CHECK_INT(counts.n_tree[2], 2926873);
    CHECK_INT(summary.n_nodes[2], 35516);
    CHECK_INT(sum_inner(counts.n_tree), 1161457);
    CHECK_INT(sum_inner(summary.n_nodes), 839057);
    CHECK_INT(result.n_added, summary.n_occupied);
    vxd_svdag_get_usage(svdag, &usage);
    CHECK_INT(usage.n_leaves, summary.n_nodes[2]);
    vxd_svdag_destroy(env->queue, svdag);
}

static void test_ball_of_radius_1820_has_the_known_counts_of_nodes(void)
{
    gpu_each_backend(large_ball);
}

/* Brute force ----------------------------------------------------------------------------- */

static int compare_words(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;

    return left < right ? -1 : left > right;
}

static uint64_t count_distinct(uint64_t *words, size_t n)
{
    uint64_t n_distinct = 0;

    qsort(words, n, sizeof *words, compare_words);
    for (size_t i = 0; i < n; i++) {
        n_distinct += i == 0 || words[i] != words[i - 1];
    }
    return n_distinct;
}

/* A word for a cube's voxels: 0 and 1 are all empty and all set, otherwise a hash of its
 * children's words, equal for equal voxels. */
static void count_by_force(int depth, const int64_t centre[3], int64_t r,
                           struct counts *out)
{
    size_t side = (size_t)1 << depth;
    uint64_t *words = gpu_alloc(side * side * side * sizeof *words);
    uint64_t *partial = gpu_alloc(side * side * side / 64 * sizeof *partial);

    for (size_t i = 0; i < side * side * side; i++) {
        double x = (double)(i / side / side) + 0.5 - (double)centre[0] / 256;
        double y = (double)(i / side % side) + 0.5 - (double)centre[1] / 256;
        double z = (double)(i % side) + 0.5 - (double)centre[2] / 256;

        words[i] = x * x + y * y + z * z <= (double)r * (double)r / 65536;
    }
    for (int height = 1; height <= depth; height++) {
        size_t fine_side = side;
        size_t n = 0;

        side /= 2;
        for (size_t i = 0; i < side * side * side; i++) {
            size_t x = i / side / side * 2;
            size_t y = i / side % side * 2;
            size_t z = i % side * 2;
            uint64_t hash = GPU_FNV_START;
            uint64_t sum = 0;

            for (size_t k = 0; k < 8; k++) {
                uint64_t word =
                    words[((x + k / 4) * fine_side + y + k / 2 % 2) * fine_side + z +
                          k % 2];

                sum += word > 1 ? 100 : word;
                hash = gpu_digest(hash, &word, sizeof word);
            }
            words[i] = sum == 0 ? 0 : sum == 8 ? 1 : hash;
            if (words[i] > 1 && height >= VXD_SVDAG_LEAF_HEIGHT) {
                partial[n++] = words[i];
            }
        }
        out->n_tree[height] = n;
        out->n_distinct[height] = count_distinct(partial, n);
    }
    free(words);
    free(partial);
}

static void small_balls(struct gpu_env *env)
{
    uint64_t seed = 3;

    for (int i = 0; i < vxd_test_rounds(12); i++) {
        int depth = 6 + i % 2;
        int64_t units = (int64_t)256 << depth;
        int64_t r = (int64_t)(gpu_random(&seed) % (uint64_t)(units / 2));
        struct vxd_svdag_edit_result result;
        struct vxd_svdag_summary summary = {0};
        struct counts forced = {0};
        struct counts counts = {0};
        struct vxd_svdag *svdag;
        int64_t centre[3];
        uint32_t root;

        for (int axis = 0; axis < 3; axis++) {
            centre[axis] = (int64_t)(gpu_random(&seed) % (uint64_t)units);
        }
        root = fill_ball(env, depth, centre, r, &svdag, &result);
        count_by_force(depth, centre, r, &forced);
        REQUIRE(vxd_svdag_is_node(root));
        count_tree(env, svdag, root, counts.n_tree);
        CHECK_INT(vxd_svdag_verify(env->queue, svdag, root, &summary, NULL), VXD_OK);
        for (int height = VXD_SVDAG_LEAF_HEIGHT; height <= depth; height++) {
            CHECK_INT(counts.n_tree[height], forced.n_tree[height]);
            CHECK_INT(summary.n_nodes[height], forced.n_distinct[height]);
        }
        vxd_svdag_destroy(env->queue, svdag);
    }
}

static void test_small_balls_have_the_nodes_of_brute_force(void)
{
    gpu_each_backend(small_balls);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_ball_of_radius_1820_has_the_known_counts_of_nodes),
    VXD_TEST(test_small_balls_have_the_nodes_of_brute_force)};

VXD_TEST_MAIN(tests)
