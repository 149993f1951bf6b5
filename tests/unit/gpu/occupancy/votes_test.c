// SPDX-License-Identifier: Apache-2.0
/* Votes of scans for materials, against a list of its last votes for each voxel. */
#include "tests/support/test.h"

#include "gpu/occupancy/occupancy.h"
#include "tests/support/svdag/svdag_run.h"

enum {
    DEPTH = 5,
    SIDE = 1 << DEPTH,
    N_VOXELS = SIDE * SIDE * SIDE, /* by Morton code */
    N_LEAVES = N_VOXELS / 64,
    N_SCANS = 12
};

/* The votes of each voxel: the newest first, -1 = none. */
struct ballot {
    int votes[N_VOXELS][4];
};

static int winner_of(const int votes[4], int material)
{
    int best = material;
    int most = 0;

    for (int i = 0; i < 4; i++) {
        int n = 0;

        for (int k = 0; k < 4; k++) {
            n += votes[k] == votes[i] ? 1 : 0;
        }
        if (votes[i] >= 0 && n > most) {
            most = n;
            best = votes[i];
        }
    }
    return best;
}

/* A list of random voxels on both sides. */
struct list {
    uint64_t codes[N_LEAVES];
    uint64_t masks[N_LEAVES];
    uint32_t firsts[N_LEAVES];
    uint16_t values[N_VOXELS];
    size_t n;
    size_t n_values;
    bool has_values;
    struct vxd_buffer device[4];
    struct vxd_svdag_voxels voxels;
};

static void make_list(struct gpu_env *env, uint64_t *state, bool has_values,
                      struct list *out)
{
    out->n = 0;
    out->n_values = 0;
    out->has_values = has_values;
    for (uint64_t code = 0; code < N_LEAVES; code++) {
        uint64_t mask = gpu_random(state) & gpu_random(state) & gpu_random(state);

        if (gpu_random(state) % 3 != 0 || mask == 0) {
            continue;
        }
        out->codes[out->n] = code;
        out->masks[out->n] = mask;
        out->firsts[out->n++] = (uint32_t)out->n_values;
        for (int bit = 0; bit < 64; bit++) {
            if ((mask >> bit & 1) != 0) {
                uint64_t r = gpu_random(state);

                /* Few materials, so that they meet again; the last one is no vote. */
                out->values[out->n_values++] =
                    (uint16_t)(r % 50 == 0 ? 65535 : r % 4 * 9);
            }
        }
    }
    out->device[0] = gpu_to_device(env, out->codes, out->n * 8);
    out->device[1] = gpu_to_device(env, out->masks, out->n * 8);
    out->device[2] = gpu_to_device(env, out->firsts, out->n * 4);
    out->device[3] = gpu_to_device(env, out->values, out->n_values * 2);
    out->voxels =
        (struct vxd_svdag_voxels){.codes = out->device[0].ptr,
                                  .masks = out->device[1].ptr,
                                  .first_value = has_values ? out->device[2].ptr : NULL,
                                  .values = has_values ? out->device[3].ptr : NULL,
                                  .n = out->n};
}

static void free_list(struct gpu_env *env, struct list *list)
{
    for (int i = 0; i < 4; i++) {
        vxd_device_free(env->queue, &list->device[i]);
    }
}

/* Counts the voxels of a list whose material is not the model's; votes in the model. */
static size_t count_wrong(struct gpu_env *env, const struct list *list,
                          const struct vxd_svdag_voxels *voted, uint32_t value,
                          int n_votes, struct ballot *ballot)
{
    struct vxd_buffer firsts = {.ptr = (void *)(uintptr_t)voted->first_value,
                                .n_bytes = list->n * 4,
                                .space = VXD_SPACE_DEVICE};
    struct vxd_buffer values = {.ptr = (void *)(uintptr_t)voted->values,
                                .n_bytes = list->n * 64 * 2,
                                .space = VXD_SPACE_DEVICE};
    uint32_t *got_firsts = gpu_to_host(env, &firsts);
    uint16_t *got = gpu_to_host(env, &values);
    size_t n_wrong = 0;

    for (size_t i = 0; i < list->n; i++) {
        uint32_t k = 0;

        for (size_t bit = 0; bit < 64; bit++) {
            int *votes = ballot->votes[list->codes[i] * 64 + bit];
            int material;

            if ((list->masks[i] >> bit & 1) == 0) {
                continue;
            }
            material = list->has_values ? list->values[list->firsts[i] + k] : (int)value;
            if (material != 65535) {
                for (int v = n_votes - 1; v > 0; v--) {
                    votes[v] = votes[v - 1];
                }
                votes[0] = material;
            }
            n_wrong += got[got_firsts[i] + k] != winner_of(votes, material) ? 1 : 0;
            k++;
        }
    }
    free(got_firsts);
    free(got);
    return n_wrong;
}

/* A layer as another one sees it: a copy, or one of its image. */
static struct vxd_occupancy *again(struct gpu_env *env, struct vxd_occupancy *layer,
                                   bool by_image)
{
    struct vxd_occupancy_image image;
    struct vxd_occupancy *other = NULL;

    if (!by_image) {
        CHECK_INT(vxd_occupancy_copy(env->queue, layer, &other, NULL), VXD_OK);
        return other;
    }
    CHECK_INT(vxd_occupancy_create(env->queue, vxd_occupancy_get_rule(layer), DEPTH,
                                   &other, NULL),
              VXD_OK);
    CHECK_INT(vxd_occupancy_export(env->queue, layer, &image, NULL), VXD_OK);
    CHECK(image.n_vote_blocks > 0);
    CHECK_INT(vxd_occupancy_import(env->queue, other, &image, NULL), VXD_OK);
    vxd_occupancy_image_free(env->context, &image);
    return other;
}

static void expect_votes(struct gpu_env *env)
{
    static struct list lists[2];
    static struct ballot ballot;
    static struct ballot before;
    const struct vxd_svdag_format format = {DEPTH, 16, true};
    const struct vxd_svdag_spec spec = {.format = format};
    const uint32_t values[2] = {7, 18};

    for (int n_votes = 2; n_votes <= 4; n_votes++) {
        struct vxd_occupancy_odds odds = {.votes = n_votes};
        struct vxd_svdag *svdag = gpu_svdag_create(env, &spec);
        struct vxd_occupancy_rule rule;
        struct vxd_occupancy *layer = NULL;
        uint64_t state = (uint64_t)n_votes;
        size_t n_wrong = 0;

        memset(&ballot, 0xff, sizeof ballot);
        REQUIRE(vxd_occupancy_rule_of(&odds, &rule, NULL) == VXD_OK);
        CHECK_INT(vxd_occupancy_create(env->queue, &rule, DEPTH, &layer, NULL), VXD_OK);
        for (int scan = 0; scan < N_SCANS; scan++) {
            struct vxd_occupancy_plan *plan = NULL;
            struct vxd_svdag_voxels hits[2];
            struct vxd_svdag_voxels voted[2];
            struct vxd_svdag_voxels freed;
            bool counts = scan % 3 != 2;

            for (int i = 0; i < 2; i++) {
                make_list(env, &state, scan != 4 || i == 0, &lists[i]);
                hits[i] = lists[i].voxels;
            }
            CHECK_INT(vxd_occupancy_plan_scan(env->queue, layer, svdag, VXD_SVDAG_EMPTY,
                                              hits, 2, NULL, 0, &plan, &freed, NULL),
                      VXD_OK);
            CHECK_INT(vxd_occupancy_vote(env->queue, plan, hits, values, 2, voted, NULL),
                      VXD_OK);
            before = ballot;
            for (int i = 0; i < 2; i++) {
                n_wrong +=
                    count_wrong(env, &lists[i], &voted[i], values[i], n_votes, &ballot);
            }
            if (counts) {
                CHECK_INT(vxd_occupancy_apply(env->queue, layer, plan, NULL), VXD_OK);
            } else {
                ballot = before; /* a scan that fails has not voted */
            }
            free_list(env, &lists[0]); /* as scenes do */
            free_list(env, &lists[1]);
            vxd_occupancy_plan_free(env->queue, plan);
            gpu_wait(env);
            if (scan == 5 || scan == 7) {
                struct vxd_occupancy *other = again(env, layer, scan == 7);

                CHECK(vxd_occupancy_vote_bytes(other) > 0);
                CHECK(vxd_occupancy_n_bytes(other) > vxd_occupancy_vote_bytes(other));
                vxd_occupancy_destroy(env->queue, layer);
                layer = other;
            }
        }
        CHECK_INT(n_wrong, 0);
        CHECK(!vxd_occupancy_is_damaged(layer));
        vxd_occupancy_destroy(env->queue, layer);
        vxd_svdag_destroy(env->queue, svdag);
        gpu_wait(env);
    }
}

static void test_votes_win_as_in_a_list_of_the_last_ones(void)
{
    gpu_each_backend(expect_votes);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_votes_win_as_in_a_list_of_the_last_ones),
};

VXD_TEST_MAIN(tests)
