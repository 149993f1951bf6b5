// SPDX-License-Identifier: Apache-2.0
/* Log-odds of scans, edits and undos, against a plain array with one number a voxel. */
#include "tests/support/test.h"

#include <math.h>

#include "gpu/occupancy/occupancy.h"
#include "gpu/svdag/edit/edit.h"
#include "gpu/svdag/query/query.h"
#include "tests/support/svdag/svdag_grid.h"
#include "tests/support/svdag/svdag_run.h"

enum {
    MAX_VERSIONS = 64
};

/* A scene, its layer, and what both should be. */
struct fused {
    struct gpu_env *env;
    struct vxd_svdag *svdag;
    struct vxd_occupancy *layer;
    struct vxd_occupancy_rule rule;
    uint32_t root;
    uint32_t roots[MAX_VERSIONS]; /* of earlier versions */
    size_t n_roots;
    struct gpu_svdag_grid grid; /* the voxels' values */
    int32_t *odds;
    size_t n; /* voxels */
};

static void begin(struct fused *fused, struct gpu_env *env,
                  const struct vxd_svdag_format *format)
{
    const struct vxd_svdag_spec spec = {.format = *format};
    struct vxd_occupancy_odds odds = {0};
    struct vxd_err err = {0};

    *fused = (struct fused){.env = env, .root = VXD_SVDAG_EMPTY};
    REQUIRE(vxd_occupancy_rule_of(&odds, &fused->rule, &err) == VXD_OK);
    fused->svdag = gpu_svdag_create(env, &spec);
    REQUIRE(vxd_occupancy_create(env->queue, &fused->rule, format->depth, &fused->layer,
                                 &err) == VXD_OK);
    gpu_svdag_grid_make(&fused->grid, format);
    fused->n = (size_t)1 << (3 * format->depth);
    fused->odds = gpu_alloc(fused->n * sizeof *fused->odds);
    for (size_t i = 0; i < fused->n; i++) {
        fused->odds[i] = VXD_OCCUPANCY_UNKNOWN;
    }
    fused->roots[fused->n_roots++] = fused->root;
}

static void end(struct fused *fused)
{
    vxd_occupancy_destroy(fused->env->queue, fused->layer);
    vxd_svdag_destroy(fused->env->queue, fused->svdag);
    gpu_wait(fused->env);
    gpu_svdag_grid_free(&fused->grid);
    free(fused->odds);
}

static int32_t clamp_of(const struct fused *fused, int32_t voxel)
{
    return voxel == GPU_VOXEL_UNSET  ? VXD_OCCUPANCY_UNKNOWN
           : voxel == GPU_VOXEL_FREE ? fused->rule.low
                                     : fused->rule.high;
}

static bool is_state_of(const struct fused *fused, int32_t odds, int32_t voxel)
{
    return voxel == GPU_VOXEL_UNSET  ? odds == VXD_OCCUPANCY_UNKNOWN
           : voxel == GPU_VOXEL_FREE ? odds != VXD_OCCUPANCY_UNKNOWN && odds < 0
                                     : odds >= 0 && odds <= fused->rule.high;
}

static int32_t *all_voxels(const struct fused *fused)
{
    int32_t *voxels = gpu_alloc(fused->n * 3 * sizeof *voxels);
    size_t side = (size_t)fused->grid.side;

    for (size_t i = 0; i < fused->n; i++) {
        voxels[3 * i] = (int32_t)(i / side / side);
        voxels[3 * i + 1] = (int32_t)(i / side % side);
        voxels[3 * i + 2] = (int32_t)(i % side);
    }
    return voxels;
}

/* Counts the voxels whose value or state is not the model's. */
static size_t count_wrong(struct fused *fused, struct vxd_occupancy *layer)
{
    struct gpu_env *env = fused->env;
    int32_t *voxels = all_voxels(fused);
    struct vxd_buffer d_voxels =
        gpu_to_device(env, voxels, fused->n * 3 * sizeof *voxels);
    struct vxd_buffer d_odds = gpu_to_device(env, NULL, fused->n);
    struct vxd_buffer d_states = gpu_to_device(env, NULL, fused->n);
    struct vxd_err err = {0};
    size_t n_wrong = 0;
    int8_t *odds;
    uint8_t *states;

    CHECK_INT(vxd_occupancy_values(env->queue, layer, fused->svdag, fused->root,
                                   d_voxels.ptr, fused->n, d_odds.ptr, &err),
              VXD_OK);
    CHECK_INT(vxd_svdag_values(env->queue, fused->svdag, fused->root, d_voxels.ptr,
                               fused->n, d_states.ptr, NULL, &err),
              VXD_OK);
    odds = gpu_to_host(env, &d_odds);
    states = gpu_to_host(env, &d_states);
    for (size_t i = 0; i < fused->n; i++) {
        int32_t voxel = fused->grid.voxels[i];

        n_wrong += odds[i] != fused->odds[i];
        n_wrong += states[i] != (voxel == GPU_VOXEL_UNSET  ? VXD_SVDAG_UNKNOWN
                                 : voxel == GPU_VOXEL_FREE ? VXD_SVDAG_FREE
                                                           : VXD_SVDAG_OCCUPIED);
        n_wrong += !is_state_of(fused, fused->odds[i], voxel);
    }
    free(odds);
    free(states);
    free(voxels);
    vxd_device_free(env->queue, &d_voxels);
    vxd_device_free(env->queue, &d_odds);
    vxd_device_free(env->queue, &d_states);
    gpu_wait(env);
    return n_wrong;
}

/* Scans ------------------------------------------------------------------------------ */

/* A list in device memory. */
struct sent_list {
    struct gpu_voxel_list host;
    struct vxd_buffer codes;
    struct vxd_buffer masks;
    struct vxd_svdag_voxels voxels;
};

static void send_list(struct fused *fused, const uint8_t *flags, struct sent_list *list)
{
    uint16_t *values = gpu_alloc(fused->n * sizeof *values);
    size_t n_bytes;

    memset(values, 0, fused->n * sizeof *values);
    gpu_voxel_list_make(&list->host, fused->grid.format.depth, flags, values);
    free(values);
    n_bytes = list->host.voxels.n * sizeof(uint64_t);
    list->codes = gpu_to_device(fused->env, list->host.codes, n_bytes);
    list->masks = gpu_to_device(fused->env, list->host.masks, n_bytes);
    list->voxels = (struct vxd_svdag_voxels){
        .codes = list->codes.ptr, .masks = list->masks.ptr, .n = list->host.voxels.n};
}

static void free_list(struct fused *fused, struct sent_list *list)
{
    vxd_device_free(fused->env->queue, &list->codes);
    vxd_device_free(fused->env->queue, &list->masks);
    gpu_voxel_list_free(&list->host);
}

static void scan_model(struct fused *fused, const uint8_t *const hits[2],
                       const uint8_t *const passed[2])
{
    for (size_t i = 0; i < fused->n; i++) {
        bool is_hit = hits[0][i] != 0 || hits[1][i] != 0;
        int32_t before = fused->odds[i] == VXD_OCCUPANCY_UNKNOWN ? 0 : fused->odds[i];
        int32_t after = before + (is_hit ? 25 : -12);

        if (!is_hit && passed[0][i] == 0 && passed[1][i] == 0) {
            continue;
        }
        fused->odds[i] = after < -59 ? -59 : after > 104 ? 104 : after;
        fused->grid.voxels[i] = fused->odds[i] < 0 ? GPU_VOXEL_FREE : 0;
    }
}

/* Applies a scan of two sweeps, as a scene does it. */
static void scan(struct fused *fused, const uint8_t *const hits[2],
                 const uint8_t *const passed[2])
{
    struct sent_list lists[4];
    struct vxd_svdag_voxels hit_lists[2];
    struct vxd_svdag_voxels passed_lists[2];
    struct vxd_svdag_op ops[3] = {
        {.shape = {.kind = VXD_SVDAG_VOXELS}, .action = VXD_SVDAG_FILL},
        {.shape = {.kind = VXD_SVDAG_VOXELS}, .action = VXD_SVDAG_FILL},
        {.shape = {.kind = VXD_SVDAG_VOXELS}, .action = VXD_SVDAG_SET_FREE}};
    struct vxd_occupancy_plan *plan = NULL;
    struct vxd_svdag_edit_result result = {0};
    struct vxd_err err = {0};

    for (int k = 0; k < 2; k++) {
        send_list(fused, hits[k], &lists[k]);
        send_list(fused, passed[k], &lists[2 + k]);
        hit_lists[k] = lists[k].voxels;
        passed_lists[k] = lists[2 + k].voxels;
        ops[k].shape.voxels = hit_lists[k];
    }
    REQUIRE(vxd_occupancy_plan_scan(fused->env->queue, fused->layer, fused->svdag,
                                    fused->root, hit_lists, 2, passed_lists, 2, &plan,
                                    &ops[2].shape.voxels, &err) == VXD_OK);
    REQUIRE(vxd_svdag_edit_wait(fused->env->queue, fused->svdag, fused->root, ops, 3,
                                &result, &err) == VXD_OK);
    REQUIRE(vxd_occupancy_apply(fused->env->queue, fused->layer, plan, &err) == VXD_OK);
    vxd_occupancy_plan_free(fused->env->queue, plan);
    for (int k = 0; k < 4; k++) {
        free_list(fused, &lists[k]);
    }
    gpu_wait(fused->env);
    fused->root = result.root;
    scan_model(fused, hits, passed);
}

/* Runs of voxels, so that some leaves are full and most blocks are not touched. */
static uint8_t *random_flags(const struct fused *fused, uint64_t *state, uint64_t n_runs)
{
    uint8_t *flags = gpu_alloc(fused->n);
    size_t side = (size_t)fused->grid.side;

    memset(flags, 0, fused->n);
    for (uint64_t k = gpu_random(state) % (n_runs + 1); k > 0; k--) {
        size_t x = gpu_random(state) % side;
        size_t y = gpu_random(state) % side;
        size_t first = gpu_random(state) % side;
        size_t n = gpu_random(state) % side;

        for (size_t z = first; z < side && z < first + n; z++) {
            flags[(x * side + y) * side + z] = 1;
        }
    }
    return flags;
}

static void random_scan(struct fused *fused, uint64_t *state)
{
    uint8_t *flags[4];

    for (int k = 0; k < 4; k++) {
        flags[k] = random_flags(fused, state, k < 2 ? 30 : 80);
    }
    scan(fused, (const uint8_t *const *)flags, (const uint8_t *const *)flags + 2);
    for (int k = 0; k < 4; k++) {
        free(flags[k]);
    }
}

/* Other changes ---------------------------------------------------------------------- */

/* Follows a change that has made the grid what it is. */
static void follow(struct fused *fused, uint32_t root, const struct gpu_svdag_grid *was)
{
    struct vxd_err err = {0};

    REQUIRE(vxd_occupancy_follow(fused->env->queue, fused->layer, fused->svdag,
                                 fused->root, root, &err) == VXD_OK);
    fused->root = root;
    for (size_t i = 0; i < fused->n; i++) {
        int32_t is = clamp_of(fused, fused->grid.voxels[i]);

        if (is != clamp_of(fused, was->voxels[i])) {
            fused->odds[i] = is;
        }
    }
}

static void random_edit(struct fused *fused, uint64_t *state)
{
    static const enum vxd_svdag_action actions[3] = {VXD_SVDAG_FILL, VXD_SVDAG_ERASE,
                                                     VXD_SVDAG_SET_FREE};
    struct vxd_svdag_op op = {.shape = {.kind = VXD_SVDAG_BOX},
                              .action = actions[gpu_random(state) % 3]};
    struct vxd_svdag_edit_result result = {0};
    struct gpu_svdag_grid was;
    struct vxd_err err = {0};

    for (int a = 0; a < 3; a++) {
        uint64_t side = (uint64_t)fused->grid.side * VXD_SVDAG_UNIT;

        op.shape.low[a] = (int64_t)(gpu_random(state) % side);
        op.shape.high[a] = op.shape.low[a] + (int64_t)(gpu_random(state) % side);
    }
    gpu_svdag_grid_make(&was, &fused->grid.format);
    gpu_svdag_grid_copy(&was, &fused->grid);
    REQUIRE(gpu_svdag_edit(fused->env, fused->svdag, fused->root, &op, 1, &result,
                           &err) == VXD_OK);
    gpu_svdag_grid_edit(&fused->grid, &op, 1);
    follow(fused, result.root, &was);
    gpu_svdag_grid_free(&was);
}

/* Back to an earlier version, whose voxels are read from its root. */
static void go_back(struct fused *fused, uint64_t *state)
{
    uint32_t root = fused->roots[gpu_random(state) % fused->n_roots];
    struct vxd_svdag_image image;
    struct gpu_svdag_grid was;
    int32_t *voxels = all_voxels(fused);

    gpu_svdag_grid_make(&was, &fused->grid.format);
    gpu_svdag_grid_copy(&was, &fused->grid);
    gpu_svdag_image_open(fused->env, fused->svdag, &image);
    for (size_t i = 0; i < fused->n; i++) {
        uint32_t value;
        unsigned is = vxd_svdag_voxel(&image.view, root, (uint32_t)voxels[3 * i],
                                      (uint32_t)voxels[3 * i + 1],
                                      (uint32_t)voxels[3 * i + 2], &value);

        fused->grid.voxels[i] = is == VXD_SVDAG_OCCUPIED ? 0
                                : is == VXD_SVDAG_FREE   ? GPU_VOXEL_FREE
                                                         : GPU_VOXEL_UNSET;
    }
    gpu_svdag_image_close(fused->env, &image);
    follow(fused, root, &was);
    gpu_svdag_grid_free(&was);
    free(voxels);
}

static void random_changes(struct gpu_env *env)
{
    static const struct vxd_svdag_format formats[4] = {
        {4, 0, true}, {5, 0, true}, {5, 4, true}, {5, 8, true}};
    const int n = vxd_test_rounds(20);

    for (uint64_t f = 0; f < 4; f++) {
        struct fused fused;
        uint64_t state = 77 + f;

        begin(&fused, env, &formats[f]);
        for (int k = 0; k < n; k++) {
            uint64_t what = gpu_random(&state) % 4;

            if (what == 0) {
                random_edit(&fused, &state);
            } else if (what == 1) {
                go_back(&fused, &state);
            } else {
                random_scan(&fused, &state);
            }
            CHECK_INT(count_wrong(&fused, fused.layer), 0);
            if (fused.n_roots < MAX_VERSIONS) {
                fused.roots[fused.n_roots++] = fused.root;
            }
        }
        end(&fused);
    }
}

static void test_scans_edits_and_undos_give_the_models_log_odds(void)
{
    gpu_each_backend(random_changes);
}

/* One voxel -------------------------------------------------------------------------- */

static void see(struct fused *fused, int n, bool is_hit)
{
    uint8_t *one = gpu_alloc(fused->n);
    uint8_t *none = gpu_alloc(fused->n);
    const uint8_t *const flags[2][2] = {{one, none}, {none, none}};

    memset(one, 0, fused->n);
    memset(none, 0, fused->n);
    one[5] = 1;
    for (int k = 0; k < n; k++) {
        scan(fused, flags[is_hit ? 0 : 1], flags[is_hit ? 1 : 0]);
    }
    CHECK_INT(count_wrong(fused, fused->layer), 0);
    free(one);
    free(none);
}

/* OctoMap's numbers: log-odds 0.847 and -0.405, clamps -2 and 3.5. */
static void one_voxel(struct gpu_env *env)
{
    const struct vxd_svdag_format format = {4, 0, true};
    struct fused fused;

    begin(&fused, env, &format);
    see(&fused, 5, true);
    CHECK_INT(fused.odds[5], 104);
    see(&fused, 1, false);
    CHECK_INT(fused.grid.voxels[5], 0); /* one miss does not erase a wall */
    see(&fused, 7, false);
    CHECK_INT(fused.grid.voxels[5], 0);
    see(&fused, 1, false); /* the ninth miss from the top clamp does */
    CHECK_INT(fused.grid.voxels[5], GPU_VOXEL_FREE);
    see(&fused, 10, false);
    CHECK_INT(fused.odds[5], -59);
    see(&fused, 2, true);
    CHECK_INT(fused.grid.voxels[5], GPU_VOXEL_FREE);
    see(&fused, 1, true); /* three hits from the bottom clamp */
    CHECK_INT(fused.grid.voxels[5], 0);
    end(&fused);
}

static void test_voxel_of_five_hits_stays_after_a_miss_and_goes_after_nine(void)
{
    gpu_each_backend(one_voxel);
}

/* Objects ---------------------------------------------------------------------------- */

static void copies(struct gpu_env *env)
{
    const struct vxd_svdag_format format = {5, 0, true};
    struct vxd_occupancy_stats stats;
    struct vxd_occupancy *copy;
    struct fused fused;
    struct vxd_err err = {0};
    uint64_t state = 3;
    uint64_t n_observed = 0;

    begin(&fused, env, &format);
    random_scan(&fused, &state);
    random_scan(&fused, &state);
    CHECK_INT(vxd_occupancy_copy(env->queue, fused.layer, &copy, &err), VXD_OK);
    CHECK_INT(vxd_occupancy_get_stats(env->queue, copy, &stats, &err), VXD_OK);
    for (size_t i = 0; i < fused.n; i++) {
        n_observed += fused.odds[i] != VXD_OCCUPANCY_UNKNOWN;
    }
    CHECK_INT(stats.n_observed, n_observed);
    CHECK(stats.n_blocks > 0 && stats.n_blocks <= 64);
    CHECK_INT(stats.n_bytes, vxd_occupancy_n_bytes(copy));
    CHECK_INT(count_wrong(&fused, copy), 0);
    vxd_occupancy_destroy(env->queue, copy);
    end(&fused);
}

/* Layers are made on the queue of one lane and changed on that of another. */
static void other_queue(struct gpu_env *env)
{
    const struct vxd_svdag_format format = {5, 0, true};
    struct vxd_occupancy_stats stats;
    struct vxd_queue *queue;
    struct fused fused;
    struct vxd_err err = {0};

    begin(&fused, env, &format);
    REQUIRE(vxd_queue_create(env->context, &queue, &err) == VXD_OK);
    CHECK_INT(vxd_occupancy_get_stats(queue, fused.layer, &stats, &err), VXD_OK);
    CHECK_INT(stats.n_blocks, 0);
    vxd_queue_destroy(queue);
    end(&fused);
}

static void test_layer_made_on_one_queue_is_empty_on_another(void)
{
    gpu_each_backend(other_queue);
}

static void images(struct gpu_env *env)
{
    const struct vxd_svdag_format format = {5, 0, true};
    struct vxd_occupancy_image image;
    struct vxd_occupancy *loaded;
    struct fused fused;
    struct vxd_err err = {0};
    uint64_t state = 4;

    begin(&fused, env, &format);
    for (int k = 0; k < 3; k++) {
        random_scan(&fused, &state);
    }
    REQUIRE(vxd_occupancy_create(env->queue, &fused.rule, format.depth, &loaded, &err) ==
            VXD_OK);
    REQUIRE(vxd_occupancy_export(env->queue, fused.layer, &image, &err) == VXD_OK);
    CHECK_INT(vxd_occupancy_import(env->queue, loaded, &image, &err), VXD_OK);
    CHECK_INT(count_wrong(&fused, loaded), 0);
    vxd_occupancy_destroy(env->queue, fused.layer);
    fused.layer = loaded;
    random_scan(&fused, &state); /* it goes on from there */
    CHECK_INT(count_wrong(&fused, fused.layer), 0);
    ((int8_t *)image.rows.ptr)[7] = 105; /* above the clamp */
    CHECK_INT(vxd_occupancy_import(env->queue, loaded, &image, &err), VXD_DATA_LOSS);
    ((int8_t *)image.rows.ptr)[7] = 104;
    ((int64_t *)image.keys.ptr)[0] = 64; /* a scene of 32^3 voxels has 64 blocks */
    CHECK_INT(vxd_occupancy_import(env->queue, loaded, &image, &err), VXD_DATA_LOSS);
    ((int64_t *)image.keys.ptr)[0] = ((int64_t *)image.keys.ptr)[1];
    CHECK_INT(vxd_occupancy_import(env->queue, loaded, &image, &err), VXD_DATA_LOSS);
    CHECK_INT(count_wrong(&fused, loaded), 0);
    vxd_occupancy_image_free(env->context, &image);
    end(&fused);
}

static void test_image_gives_the_same_layer_again(void)
{
    gpu_each_backend(images);
}

/* Without values, log-odds are the clamps of the states. */
static void cleared(struct gpu_env *env)
{
    const struct vxd_svdag_format format = {5, 0, true};
    struct fused fused;
    struct vxd_err err = {0};
    uint64_t state = 6;

    begin(&fused, env, &format);
    random_scan(&fused, &state);
    random_scan(&fused, &state);
    CHECK_INT(vxd_occupancy_clear(env->queue, fused.layer, &err), VXD_OK);
    for (size_t i = 0; i < fused.n; i++) {
        fused.odds[i] = clamp_of(&fused, fused.grid.voxels[i]);
    }
    CHECK_INT(count_wrong(&fused, fused.layer), 0);
    random_scan(&fused, &state);
    CHECK_INT(count_wrong(&fused, fused.layer), 0);
    end(&fused);
}

static void test_cleared_layer_has_the_clamps_of_the_states(void)
{
    gpu_each_backend(cleared);
}

static void test_copy_has_the_values_of_its_origin(void)
{
    gpu_each_backend(copies);
}

/* A scan for whose blocks there is no memory changes nothing. */
static void refused(struct gpu_env *env)
{
    const struct vxd_svdag_format format = {6, 0, true};
    struct vxd_occupancy_plan *plan = NULL;
    struct vxd_svdag_voxels freed;
    struct sent_list list;
    struct fused fused;
    struct vxd_err err = {0};
    uint64_t state = 9;
    uint8_t *flags;

    begin(&fused, env, &format);
    see(&fused, 1, true);
    vxd_occupancy_set_max_bytes(fused.layer, vxd_occupancy_n_bytes(fused.layer) + 4096);
    flags = random_flags(&fused, &state, 1000);
    send_list(&fused, flags, &list);
    CHECK_INT(vxd_occupancy_plan_scan(env->queue, fused.layer, fused.svdag, fused.root,
                                      NULL, 0, &list.voxels, 1, &plan, &freed, &err),
              VXD_RESOURCE_EXHAUSTED);
    CHECK(plan == NULL && freed.n == 0);
    CHECK_INT(count_wrong(&fused, fused.layer), 0);
    free_list(&fused, &list);
    free(flags);
    see(&fused, 1, true);
    end(&fused);
}

static void test_scan_without_memory_for_its_blocks_changes_nothing(void)
{
    gpu_each_backend(refused);
}

/* Rules ------------------------------------------------------------------------------ */

static void test_rule_of_octomaps_defaults_has_the_known_steps(void)
{
    struct vxd_occupancy_odds odds = {0};
    struct vxd_occupancy_rule rule;
    struct vxd_err err = {0};

    CHECK_INT(vxd_occupancy_rule_of(&odds, &rule, &err), VXD_OK);
    CHECK_INT(rule.hit, 25);
    CHECK_INT(rule.miss, -12);
    CHECK_INT(rule.low, -59);
    CHECK_INT(rule.high, 104);
    CHECK_INT(rule.occupied, 0);
    CHECK(odds.hit == 0.7 && odds.clamp_high == 0.971);
    CHECK(rule.error > 0.001 && rule.error < 0.005);
}

static void test_rule_of_other_odds_is_within_a_hundredth_or_refused(void)
{
    static const struct vxd_occupancy_odds given[3] = {{0.9, 0.3, 0.05, 0.99, 0.5, 0},
                                                       {0.8, 0.45, 0.1, 0.97, 0.7, 4},
                                                       {0.6, 0.4, 0.2, 0.8, 0, 2}};
    static const struct {
        struct vxd_occupancy_odds odds;
        const char *field;
    } bad[] = {{{0.5, 0, 0, 0, 0, 0}, "hit"},
               {{0, 0.5, 0, 0, 0, 0}, "miss"},
               {{0, 0, 0.6, 0, 0, 0}, "clamp_low"},
               {{0, 0, 0, 1, 0, 0}, "clamp_high"},
               {{0, 0, 0, 0, 0.98, 0}, "occupied"},
               {{0.5001, 0, 0, 0, 0, 0}, "hit"},
               {{0, 0, 0, 0, 0, 1}, "label_votes"},
               {{0, 0, 0, 0, 0, 5}, "label_votes"},
               {{1, 0, 0, 0, 0, 0}, "hit"},
               {{0, -0.1, 0, 0, 0, 0}, "miss"},
               {{0, 0, 0.5, 0, 0, 0}, "clamp_low"},
               {{0, 0, 0, 0.5, 0, 0}, "clamp_high"},
               {{0, 0, 0.25, 0, 0.25, 0}, "occupied"},
               {{0, 0, 0, 0.75, 0.75, 0}, "occupied"},
               {{0, 0, 0, 0, NAN, 0}, "occupied"}};
    struct vxd_occupancy_rule rule;
    struct vxd_err err = {0};

    for (int k = 0; k < 3; k++) {
        struct vxd_occupancy_odds odds = given[k];

        REQUIRE(vxd_occupancy_rule_of(&odds, &rule, &err) == VXD_OK);
        CHECK(rule.error <= 0.01);
        CHECK(fabs(rule.hit * rule.step / log(odds.hit / (1 - odds.hit)) - 1) <= 0.01);
        CHECK(fabs(rule.miss * rule.step / log(odds.miss / (1 - odds.miss)) - 1) <= 0.01);
        CHECK(rule.low >= -127 && rule.high <= 127 && rule.low < rule.occupied);
    }
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
        struct vxd_occupancy_odds odds = bad[k].odds;

        CHECK_INT(vxd_occupancy_rule_of(&odds, &rule, &err), VXD_INVALID_ARGUMENT);
        CHECK_STR(err.field, bad[k].field);
    }
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_scans_edits_and_undos_give_the_models_log_odds),
    VXD_TEST(test_voxel_of_five_hits_stays_after_a_miss_and_goes_after_nine),
    VXD_TEST(test_copy_has_the_values_of_its_origin),
    VXD_TEST(test_layer_made_on_one_queue_is_empty_on_another),
    VXD_TEST(test_image_gives_the_same_layer_again),
    VXD_TEST(test_cleared_layer_has_the_clamps_of_the_states),
    VXD_TEST(test_scan_without_memory_for_its_blocks_changes_nothing),
    VXD_TEST(test_rule_of_octomaps_defaults_has_the_known_steps),
    VXD_TEST(test_rule_of_other_odds_is_within_a_hundredth_or_refused),
};

VXD_TEST_MAIN(tests)
