// SPDX-License-Identifier: Apache-2.0
/* Pins and decays of log-odds among scans and edits, against one number a voxel. */
#include "tests/support/test.h"

#include <math.h>

#include "gpu/occupancy/occupancy.h"
#include "gpu/svdag/edit/edit.h"
#include "gpu/svdag/query/query.h"
#include "tests/support/svdag/svdag_grid.h"
#include "tests/support/svdag/svdag_run.h"

enum {
    DEPTH = 5,
    SIDE = 1 << DEPTH,
    N_VOXELS = SIDE * SIDE * SIDE,
    N_BLOCKS = N_VOXELS / VXD_OCCUPANCY_BLOCK_VOXELS,
    N_MATERIALS = 200
};

/* A scene with its layer and pins, and what they should be. Voxels are in grid order. */
struct kept {
    struct gpu_env *env;
    struct vxd_svdag *svdag;
    struct vxd_occupancy *layer;
    struct vxd_occupancy_rule rule;
    uint32_t root;
    uint32_t pins;
    struct gpu_svdag_grid grid;
    int32_t odds[N_VOXELS];
    uint8_t is_pinned[N_VOXELS];
    uint8_t is_touched[N_BLOCKS]; /* by a scan: the block is in the layer */
};

static void begin(struct kept *kept, struct gpu_env *env, double occupied)
{
    const struct vxd_svdag_format format = {DEPTH, 8, true};
    const struct vxd_svdag_spec spec = {.format = format};
    struct vxd_occupancy_odds odds = {.occupied = occupied};
    struct vxd_err err = {0};

    memset(kept, 0, sizeof *kept);
    kept->env = env;
    REQUIRE(vxd_occupancy_rule_of(&odds, &kept->rule, &err) == VXD_OK);
    kept->svdag = gpu_svdag_create(env, &spec);
    REQUIRE(vxd_occupancy_create(env->queue, &kept->rule, DEPTH, &kept->layer, &err) ==
            VXD_OK);
    gpu_svdag_grid_make(&kept->grid, &format);
    for (size_t i = 0; i < N_VOXELS; i++) {
        kept->odds[i] = VXD_OCCUPANCY_UNKNOWN;
    }
}

static void end(struct kept *kept)
{
    vxd_occupancy_destroy(kept->env->queue, kept->layer);
    vxd_svdag_destroy(kept->env->queue, kept->svdag);
    gpu_wait(kept->env);
    gpu_svdag_grid_free(&kept->grid);
}

static size_t block_of(size_t voxel)
{
    size_t x = voxel / SIDE / SIDE / 8;
    size_t y = voxel / SIDE % SIDE / 8;
    size_t z = voxel % SIDE / 8;

    return (x * (SIDE / 8) + y) * (SIDE / 8) + z;
}

/* Counts the voxels whose log-odds, state or material is not the model's. */
static size_t count_wrong(struct kept *kept)
{
    struct gpu_env *env = kept->env;
    int32_t *voxels = gpu_alloc(N_VOXELS * 3 * sizeof *voxels);
    struct vxd_buffer d_odds = gpu_to_device(env, NULL, N_VOXELS);
    struct vxd_svdag_image image;
    struct vxd_buffer d_voxels;
    struct vxd_err err = {0};
    size_t n_wrong = 0;
    int8_t *odds;

    for (size_t i = 0; i < N_VOXELS; i++) {
        voxels[3 * i] = (int32_t)(i / SIDE / SIDE);
        voxels[3 * i + 1] = (int32_t)(i / SIDE % SIDE);
        voxels[3 * i + 2] = (int32_t)(i % SIDE);
    }
    d_voxels = gpu_to_device(env, voxels, N_VOXELS * 3 * sizeof *voxels);
    CHECK_INT(vxd_occupancy_values(env->queue, kept->layer, kept->svdag, kept->root,
                                   d_voxels.ptr, N_VOXELS, d_odds.ptr, &err),
              VXD_OK);
    odds = gpu_to_host(env, &d_odds);
    gpu_svdag_image_open(env, kept->svdag, &image);
    for (size_t i = 0; i < N_VOXELS; i++) {
        const uint32_t at[3] = {(uint32_t)voxels[3 * i], (uint32_t)voxels[3 * i + 1],
                                (uint32_t)voxels[3 * i + 2]};
        uint32_t value = 0;
        unsigned is =
            vxd_svdag_voxel(&image.view, kept->root, at[0], at[1], at[2], &value);
        int32_t voxel = is == VXD_SVDAG_OCCUPIED ? (int32_t)value
                        : is == VXD_SVDAG_FREE   ? GPU_VOXEL_FREE
                                                 : GPU_VOXEL_UNSET;

        n_wrong += odds[i] != kept->odds[i];
        n_wrong += voxel != kept->grid.voxels[i];
    }
    gpu_svdag_image_close(env, &image);
    free(odds);
    free(voxels);
    vxd_device_free(env->queue, &d_voxels);
    vxd_device_free(env->queue, &d_odds);
    gpu_wait(env);
    return n_wrong;
}

/* Runs along z, so that some leaves are full and others are not touched. */
static void random_flags(uint8_t *flags, uint64_t *state, uint64_t n_runs)
{
    memset(flags, 0, N_VOXELS);
    for (uint64_t k = gpu_random(state) % (n_runs + 1); k > 0; k--) {
        size_t column = gpu_random(state) % (SIDE * SIDE) * SIDE;
        size_t first = gpu_random(state) % SIDE;
        size_t n = gpu_random(state) % SIDE;

        for (size_t z = first; z < SIDE && z < first + n; z++) {
            flags[column + z] = 1;
        }
    }
}

/* Changes of the model ---------------------------------------------------------------- */

static void scan_model(struct kept *kept, const uint8_t *hits, const uint8_t *passed,
                       const uint16_t *values)
{
    const struct vxd_occupancy_rule *rule = &kept->rule;

    for (size_t i = 0; i < N_VOXELS; i++) {
        int32_t odds = kept->odds[i] == VXD_OCCUPANCY_UNKNOWN ? 0 : kept->odds[i];

        if ((hits[i] == 0 && passed[i] == 0) || kept->is_pinned[i] != 0) {
            continue;
        }
        kept->is_touched[block_of(i)] = 1;
        odds += hits[i] != 0 ? rule->hit : rule->miss;
        kept->odds[i] = odds < rule->low    ? rule->low
                        : odds > rule->high ? rule->high
                                            : odds;
        if (kept->odds[i] < rule->occupied) {
            kept->grid.voxels[i] = GPU_VOXEL_FREE;
        } else if (hits[i] != 0) {
            kept->grid.voxels[i] = values[i];
        }
    }
}

/* By the words of occupancy.h, in floating point. */
static void decay_model(struct kept *kept, const struct vxd_occupancy_decay *decay)
{
    for (size_t i = 0; i < N_VOXELS; i++) {
        const int64_t voxel[3] = {(int64_t)(i / SIDE / SIDE), (int64_t)(i / SIDE % SIDE),
                                  (int64_t)(i % SIDE)};
        int32_t before = kept->odds[i];
        double square = 0;
        double left;
        int32_t after;
        bool is_in = true;

        for (int axis = 0; axis < 3; axis++) {
            double d = ((double)voxel[axis] + 0.5) * VXD_SVDAG_UNIT -
                       (double)decay->centre[axis];

            is_in = is_in && voxel[axis] >= decay->low[axis] &&
                    voxel[axis] < decay->high[axis];
            square += d * d;
        }
        if (!is_in || kept->is_pinned[i] != 0 || kept->is_touched[block_of(i)] == 0 ||
            before == VXD_OCCUPANCY_UNKNOWN ||
            (decay->keeps && square <= (double)decay->radius * (double)decay->radius)) {
            continue;
        }
        left = floor(fabs((double)before) * decay->factor / 65536) - decay->step;
        after = (int32_t)(before < 0 ? -left : left);
        if (left <= 0 ||
            (after >= kept->rule.occupied) != (before >= kept->rule.occupied)) {
            after = VXD_OCCUPANCY_UNKNOWN;
            kept->grid.voxels[i] = GPU_VOXEL_UNSET;
        }
        kept->odds[i] = after;
    }
}

/* Changes of both --------------------------------------------------------------------- */

struct sent_list {
    struct vxd_buffer buffers[4];
    struct vxd_svdag_voxel_list left; /* without what is pinned */
};

static void send_list(struct kept *kept, const uint8_t *flags, const uint16_t *values,
                      bool with_values, struct sent_list *sent)
{
    struct vxd_queue *queue = kept->env->queue;
    struct gpu_voxel_list host;
    struct vxd_svdag_voxels list = {0};
    size_t n_values = 0;
    struct vxd_err err = {0};

    gpu_voxel_list_make(&host, DEPTH, flags, values);
    for (size_t i = 0; i < N_VOXELS; i++) {
        n_values += flags[i];
    }
    list.n = host.voxels.n;
    sent->buffers[0] = gpu_to_device(kept->env, host.codes, list.n * sizeof(uint64_t));
    sent->buffers[1] = gpu_to_device(kept->env, host.masks, list.n * sizeof(uint64_t));
    sent->buffers[2] =
        gpu_to_device(kept->env, host.first_value, list.n * sizeof(uint32_t));
    sent->buffers[3] = gpu_to_device(kept->env, host.values, n_values * sizeof(uint16_t));
    list.codes = sent->buffers[0].ptr;
    list.masks = sent->buffers[1].ptr;
    if (with_values) {
        list.first_value = sent->buffers[2].ptr;
        list.values = sent->buffers[3].ptr;
    }
    REQUIRE(vxd_occupancy_unpinned(queue, kept->svdag, kept->pins, &list, &sent->left,
                                   &err) == VXD_OK);
    gpu_voxel_list_free(&host);
}

static void free_list(struct kept *kept, struct sent_list *sent)
{
    for (int k = 0; k < 4; k++) {
        vxd_device_free(kept->env->queue, &sent->buffers[k]);
    }
    vxd_svdag_voxel_list_free(kept->env->queue, &sent->left);
}

static void finish(struct kept *kept, const struct vxd_svdag_op *ops, size_t n_ops,
                   struct vxd_occupancy_plan *plan)
{
    struct vxd_svdag_edit_result result = {0};
    struct vxd_err err = {0};

    REQUIRE(vxd_svdag_edit_wait(kept->env->queue, kept->svdag, kept->root, ops, n_ops,
                                &result, &err) == VXD_OK);
    REQUIRE(vxd_occupancy_apply(kept->env->queue, kept->layer, plan, &err) == VXD_OK);
    vxd_occupancy_plan_free(kept->env->queue, plan);
    gpu_wait(kept->env);
    kept->root = result.root;
}

/* Whether nobody waits any more: from the n-th time that it is asked. */
static bool is_stopped(void *n)
{
    return --*(int *)n <= 0;
}

/* Gives up what was planned until nobody waited: what comes next is as if it had not begun. */
static void give_up(struct kept *kept, enum vxd_status status, int n_asked,
                    struct vxd_occupancy_plan *plan)
{
    vxd_svdag_set_stop(kept->svdag, NULL, NULL);
    CHECK_INT(status, n_asked > 0 ? VXD_OK : VXD_CANCELLED);
    CHECK(status == VXD_OK || plan == NULL);
    vxd_occupancy_plan_free(kept->env->queue, plan);
    gpu_wait(kept->env);
    CHECK(!vxd_occupancy_is_damaged(kept->layer));
}

static void random_scan(struct kept *kept, uint64_t *state)
{
    uint8_t *hits = gpu_alloc(N_VOXELS);
    uint8_t *passed = gpu_alloc(N_VOXELS);
    uint16_t *values = gpu_alloc(N_VOXELS * sizeof *values);
    struct vxd_svdag_op ops[2] = {
        {.shape = {.kind = VXD_SVDAG_VOXELS}, .action = VXD_SVDAG_FILL},
        {.shape = {.kind = VXD_SVDAG_VOXELS}, .action = VXD_SVDAG_SET_FREE}};
    struct vxd_occupancy_plan *plan = NULL;
    struct sent_list lists[2];
    int n_asked = 1 + (int)(gpu_random(state) % 12);
    struct vxd_err err = {0};
    enum vxd_status status;

    random_flags(hits, state, 60);
    random_flags(passed, state, 160);
    for (size_t i = 0; i < N_VOXELS; i++) {
        values[i] = (uint16_t)(gpu_random(state) % N_MATERIALS);
    }
    send_list(kept, hits, values, true, &lists[0]);
    send_list(kept, passed, values, false, &lists[1]);
    ops[0].shape.voxels = lists[0].left.voxels;
    vxd_svdag_set_stop(kept->svdag, is_stopped, &n_asked);
    status = vxd_occupancy_plan_scan(
        kept->env->queue, kept->layer, kept->svdag, kept->root, &lists[0].left.voxels, 1,
        &lists[1].left.voxels, 1, &plan, &ops[1].shape.voxels, &err);
    give_up(kept, status, n_asked, plan);
    REQUIRE(vxd_occupancy_plan_scan(kept->env->queue, kept->layer, kept->svdag,
                                    kept->root, &lists[0].left.voxels, 1,
                                    &lists[1].left.voxels, 1, &plan, &ops[1].shape.voxels,
                                    &err) == VXD_OK);
    finish(kept, ops, 2, plan);
    free_list(kept, &lists[0]);
    free_list(kept, &lists[1]);
    scan_model(kept, hits, passed, values);
    free(hits);
    free(passed);
    free(values);
}

static void random_decay(struct kept *kept, uint64_t *state)
{
    struct vxd_occupancy_decay decay = {
        .factor = (uint32_t)(gpu_random(state) % (VXD_OCCUPANCY_DECAY_ONE + 1)),
        .step = (int32_t)(gpu_random(state) % 20),
        .keeps = gpu_random(state) % 2 == 0,
        .radius = (int64_t)(gpu_random(state) % (20 * VXD_SVDAG_UNIT))};
    struct vxd_svdag_op op = {.shape = {.kind = VXD_SVDAG_VOXELS},
                              .action = VXD_SVDAG_ERASE};
    struct vxd_occupancy_plan *plan = NULL;
    int n_asked = 1 + (int)(gpu_random(state) % 3);
    struct vxd_err err = {0};
    enum vxd_status status;

    for (int axis = 0; axis < 3; axis++) {
        decay.low[axis] = (int64_t)(gpu_random(state) % SIDE);
        decay.high[axis] = decay.low[axis] + (int64_t)(gpu_random(state) % SIDE);
        decay.centre[axis] = (int64_t)(gpu_random(state) % (SIDE * VXD_SVDAG_UNIT));
    }
    if (gpu_random(state) % 3 == 0) {
        memset(decay.low, 0, sizeof decay.low);
        decay.high[0] = decay.high[1] = decay.high[2] = SIDE;
    }
    vxd_svdag_set_stop(kept->svdag, is_stopped, &n_asked);
    status =
        vxd_occupancy_plan_decay(kept->env->queue, kept->layer, kept->svdag, kept->root,
                                 kept->pins, &decay, &plan, &op.shape.voxels, &err);
    give_up(kept, status, n_asked, plan);
    REQUIRE(vxd_occupancy_plan_decay(kept->env->queue, kept->layer, kept->svdag,
                                     kept->root, kept->pins, &decay, &plan,
                                     &op.shape.voxels, &err) == VXD_OK);
    finish(kept, &op, op.shape.voxels.n > 0 ? 1 : 0, plan);
    decay_model(kept, &decay);
}

static void random_box(uint64_t *state, struct vxd_svdag_op *op)
{
    for (int axis = 0; axis < 3; axis++) {
        op->shape.low[axis] = (int64_t)(gpu_random(state) % (SIDE * VXD_SVDAG_UNIT));
        op->shape.high[axis] = op->shape.low[axis] +
                               (int64_t)(gpu_random(state) % (SIDE / 2 * VXD_SVDAG_UNIT));
    }
}

static bool is_in_box(const struct vxd_svdag_op *op, size_t i)
{
    const int64_t centre[3] = {(int64_t)(i / SIDE / SIDE), (int64_t)(i / SIDE % SIDE),
                               (int64_t)(i % SIDE)};
    int64_t c[3];

    for (int axis = 0; axis < 3; axis++) {
        c[axis] = centre[axis] * VXD_SVDAG_UNIT + VXD_SVDAG_UNIT / 2;
    }
    return gpu_svdag_is_in(&op->shape, c);
}

/* Pins or unpins a box. */
static void random_pin(struct kept *kept, uint64_t *state)
{
    bool pins = gpu_random(state) % 3 > 0;
    struct vxd_svdag_op op = {.shape = {.kind = VXD_SVDAG_BOX},
                              .action = pins ? VXD_SVDAG_FILL : VXD_SVDAG_ERASE};
    struct vxd_svdag_edit_result result = {0};
    struct vxd_err err = {0};

    random_box(state, &op);
    REQUIRE(gpu_svdag_edit(kept->env, kept->svdag, kept->pins, &op, 1, &result, &err) ==
            VXD_OK);
    kept->pins = result.root;
    for (size_t i = 0; i < N_VOXELS; i++) {
        if (is_in_box(&op, i)) {
            kept->is_pinned[i] = pins ? 1 : 0;
        }
    }
}

/* An edit changes pinned voxels as others. */
static void random_edit(struct kept *kept, uint64_t *state)
{
    struct vxd_svdag_op op = {.shape = {.kind = VXD_SVDAG_BOX},
                              .action = (enum vxd_svdag_action)(gpu_random(state) % 3),
                              .value = 7};
    struct vxd_svdag_edit_result result = {0};
    struct vxd_err err = {0};
    const int32_t becomes = op.action == VXD_SVDAG_FILL    ? 7
                            : op.action == VXD_SVDAG_ERASE ? GPU_VOXEL_UNSET
                                                           : GPU_VOXEL_FREE;

    random_box(state, &op);
    REQUIRE(gpu_svdag_edit(kept->env, kept->svdag, kept->root, &op, 1, &result, &err) ==
            VXD_OK);
    REQUIRE(vxd_occupancy_follow(kept->env->queue, kept->layer, kept->svdag, kept->root,
                                 result.root, &err) == VXD_OK);
    kept->root = result.root;
    for (size_t i = 0; i < N_VOXELS; i++) {
        int32_t was = kept->grid.voxels[i];

        if (!is_in_box(&op, i)) {
            continue;
        }
        kept->grid.voxels[i] = becomes;
        if ((was < 0 || becomes < 0) && was != becomes) {
            kept->odds[i] = becomes >= 0                ? kept->rule.high
                            : becomes == GPU_VOXEL_FREE ? kept->rule.low
                                                        : VXD_OCCUPANCY_UNKNOWN;
        }
    }
}

static void random_changes(struct gpu_env *env)
{
    /* The threshold at 0, above and below it. */
    static const double thresholds[3] = {0.5, 0.7, 0.35};
    const int n = vxd_test_rounds(30);
    struct kept *kept = gpu_alloc(sizeof *kept);

    for (uint64_t k = 0; k < 3; k++) {
        uint64_t state = 1234 + k;

        begin(kept, env, thresholds[k]);
        for (int i = 0; i < n; i++) {
            uint64_t what = gpu_random(&state) % 8;

            if (what == 0) {
                random_pin(kept, &state);
            } else if (what == 1) {
                random_edit(kept, &state);
            } else if (what < 4) {
                random_decay(kept, &state);
            } else {
                random_scan(kept, &state);
            }
            CHECK_INT(count_wrong(kept), 0);
        }
        end(kept);
    }
    free(kept);
}

static void test_pins_and_decays_among_scans_give_the_models_log_odds(void)
{
    gpu_each_backend(random_changes);
}

/* What a half-life leaves of OctoMap's clamps after each of its ends. */
static void test_decay_by_halves_forgets_a_wall_after_seven(void)
{
    const struct vxd_occupancy_decay half = {.factor = VXD_OCCUPANCY_DECAY_ONE / 2};
    struct vxd_occupancy_odds odds = {0};
    struct vxd_occupancy_rule rule;
    struct vxd_err err = {0};
    static const int32_t wall[7] = {52, 26, 13, 6, 3, 1, VXD_OCCUPANCY_UNKNOWN};
    static const int32_t space[6] = {-29, -14, -7, -3, -1, VXD_OCCUPANCY_UNKNOWN};
    int32_t value = 104;

    REQUIRE(vxd_occupancy_rule_of(&odds, &rule, &err) == VXD_OK);
    for (int k = 0; k < 7; k++) {
        value = vxd_occupancy_decayed(&rule, &half, value);
        CHECK_INT(value, wall[k]);
    }
    CHECK_INT(vxd_occupancy_decayed(&rule, &half, value), VXD_OCCUPANCY_UNKNOWN);
    value = -59;
    for (int k = 0; k < 6; k++) {
        value = vxd_occupancy_decayed(&rule, &half, value);
        CHECK_INT(value, space[k]);
    }
}

/* An empty layer, an empty list and a list that is pinned as a whole. */
static void nothing(struct gpu_env *env)
{
    struct kept *kept = gpu_alloc(sizeof *kept);
    struct vxd_svdag_op all = {.shape = {.kind = VXD_SVDAG_BOX},
                               .action = VXD_SVDAG_FILL};
    struct vxd_svdag_edit_result result = {0};
    uint64_t state = 5;
    struct vxd_err err = {0};

    begin(kept, env, 0);
    random_decay(kept, &state);
    CHECK_INT(count_wrong(kept), 0);
    for (int axis = 0; axis < 3; axis++) {
        all.shape.high[axis] = SIDE * VXD_SVDAG_UNIT;
    }
    REQUIRE(gpu_svdag_edit(env, kept->svdag, kept->pins, &all, 1, &result, &err) ==
            VXD_OK);
    kept->pins = result.root;
    memset(kept->is_pinned, 1, N_VOXELS);
    random_scan(kept, &state);
    CHECK_INT(count_wrong(kept), 0);
    end(kept);
    free(kept);
}

static void test_scan_of_pinned_voxels_alone_changes_nothing(void)
{
    gpu_each_backend(nothing);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_pins_and_decays_among_scans_give_the_models_log_odds),
    VXD_TEST(test_decay_by_halves_forgets_a_wall_after_seven),
    VXD_TEST(test_scan_of_pinned_voxels_alone_changes_nothing),
};

VXD_TEST_MAIN(tests)
