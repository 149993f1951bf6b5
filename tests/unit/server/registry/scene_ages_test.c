// SPDX-License-Identifier: Apache-2.0
/* Retention by age goes by the daemon's running time: neither a wall clock that jumps nor time in
 * which no daemon runs ends a history, and starts do not make versions young. */
#include "tests/support/test.h"

#include "server/observe/log/log.h"
#include "server/registry/scenes/scene_ages.h"
#include "server/registry/scenes/scene_catalogue.h"
#include "server/registry/scenes/scenes_internal.h"
#include "tests/support/server/scenes_disk.h"
#include "tests/support/server/server_checks.h"

VXD_TEST_HELPERS

#define HOUR_NS UINT64_C(3600000000000)
#define RETENTION ",\"retention\":{\"versions\":1000,\"seconds\":\"3600\"}"

enum {
    N_EDITS = 20,
    DAYS = 30
};

static int64_t wall_ns; /* how far the wall clock is wrong, */
static uint64_t run_ns; /* and how much longer this run seems to be than it is */

int64_t __real_vxd_clock_unix_ns(void);
int64_t __wrap_vxd_clock_unix_ns(void);
uint64_t __real_vxd_journal_get_run_ns(const struct vxd_journal *journal);
uint64_t __wrap_vxd_journal_get_run_ns(const struct vxd_journal *journal);

int64_t __wrap_vxd_clock_unix_ns(void)
{
    return __real_vxd_clock_unix_ns() + wall_ns;
}

uint64_t __wrap_vxd_journal_get_run_ns(const struct vxd_journal *journal)
{
    return __real_vxd_journal_get_run_ns(journal) + run_ns;
}

static size_t n_kept(struct world *world, const char *name)
{
    struct vxd_scene *scene = vxd_scenes_find(world->server->scenes, name);
    struct vxd_scene_log_summary log = {0};

    if (scene != NULL) {
        vxd_scene_get_log_summary(scene, &log);
        vxd_scene_drop(scene, world->server->scenes->queue);
    }
    return log.n_versions;
}

static void begin(struct world *world)
{
    char more[200];

    wall_ns = 0;
    run_ns = 0;
    world_begin(world);
    (void)snprintf(more, sizeof more, "%s%s", world_durable, RETENTION);
    world_make(world, "a", more);
    for (int i = 0; i < N_EDITS; i++) {
        CHECK_INT(world_edit(world, "a", i % 12), VXD_OK);
    }
    CHECK_INT(n_kept(world, "a"), N_EDITS + 1);
}

/* A run that lasts this much longer, and another start. */
static void run_for(struct world *world, uint64_t ns)
{
    run_ns += ns;
    world_stop(world);
    run_ns = 0; /* the journal has it */
    world_start(world);
}

static void test_wall_clock_that_jumps_ends_no_history(void)
{
    for (int i = -1; i <= 1; i += 2) {
        struct world world;

        begin(&world);
        wall_ns = i * DAYS * 24 * (int64_t)HOUR_NS;
        CHECK_INT(world_edit(&world, "a", 12), VXD_OK);
        CHECK_INT(n_kept(&world, "a"), N_EDITS + 2);
        world_restart(&world);
        CHECK_INT(n_kept(&world, "a"), N_EDITS + 2);
        CHECK_INT(world_edit(&world, "a", 13), VXD_OK);
        CHECK_INT(n_kept(&world, "a"), N_EDITS + 3);
        world_end(&world);
    }
}

static void test_running_time_ages_over_starts(void)
{
    struct world world;

    begin(&world);
    for (int i = 0; i < 3; i++) { /* three quarters of an hour in all */
        run_for(&world, HOUR_NS / 4);
        CHECK_INT(n_kept(&world, "a"), N_EDITS + 1 + (size_t)i);
        CHECK_INT(world_edit(&world, "a", 12 + i), VXD_OK);
    }
    run_for(&world, HOUR_NS / 2);
    /* The first ones are 75 minutes old, the edit after the first start is 60 or more, the others
     * are younger; and the newest always stays. */
    CHECK(n_kept(&world, "a") <= 4 && n_kept(&world, "a") >= 2);
    run_for(&world, 2 * HOUR_NS);
    CHECK_INT(n_kept(&world, "a"), 1);
    world_end(&world);
}

/* As in a directory that older programs made: there are no marks. */
static void test_versions_without_marks_begin_with_age_zero(void)
{
    struct world world;

    begin(&world);
    run_ns = 10 * HOUR_NS;
    world_stop(&world);
    run_ns = 0;
    {
        const struct vxd_journal_options options = {0};
        struct vxd_journal_found found;
        struct vxd_journal *journal;
        struct vxd_journal_txn *txn;
        char name[VXD_SCENE_ITEM_BYTES];

        vxd_scene_item_name("a", "", name);
        REQUIRE(vxd_data_dir_open(fault_disk_ops(world.disk), WORLD_DIR, &world.dir,
                                  NULL) == VXD_OK);
        REQUIRE(vxd_journal_open(&world.dir, &options, &journal, &found, NULL) == VXD_OK);
        REQUIRE(vxd_journal_begin(journal, &txn, NULL) == VXD_OK);
        CHECK_INT(vxd_journal_drop_item(txn, VXD_JOURNAL_AGES, 1, name, NULL), VXD_OK);
        CHECK_INT(vxd_journal_commit_wait(txn, NULL), VXD_OK);
        CHECK_INT(vxd_journal_close(journal, NULL), VXD_OK);
        vxd_data_dir_close(&world.dir);
    }
    world_start(&world);
    CHECK_INT(n_kept(&world, "a"), N_EDITS + 1);
    run_for(&world, HOUR_NS / 2);
    CHECK_INT(n_kept(&world, "a"), N_EDITS + 1);
    run_for(&world, HOUR_NS); /* from the first start on, starts between do not matter */
    CHECK_INT(n_kept(&world, "a"), 1);
    world_end(&world);
}

static void test_dropped_scene_takes_its_ages_along(void)
{
    struct world world;

    begin(&world);
    CHECK_INT(
        world_ask(&world, "scene_branch", 900, "{\"name\":\"a\",\"newName\":\"b\"}"),
        VXD_OK);
    CHECK_INT(world_edit(&world, "b", 1), VXD_OK);
    CHECK_INT(world_ask(&world, "scene_drop", 901, "{\"name\":\"b\"}"), VXD_OK);
    run_ns += HOUR_NS / 2;
    CHECK_INT(
        world_ask(&world, "scene_branch", 902, "{\"name\":\"a\",\"newName\":\"b\"}"),
        VXD_OK);
    CHECK_INT(world_edit(&world, "b", 1), VXD_OK);
    run_for(&world, HOUR_NS * 3 / 4);
    CHECK_INT(n_kept(&world, "b"), 2);
    world_end(&world);
}

static void test_marks_stay_few_and_ascend(void)
{
    struct vxd_scene_ages ages = {0};
    uint64_t at = 5;

    for (uint64_t v = 1; v < 10000; v++, at += HOUR_NS / 500) {
        if (vxd_scene_age_is_due(&ages, 3600, v, at)) {
            vxd_scene_age_add(&ages, 3600, v, at);
        }
    }
    CHECK(ages.n > 32 && ages.n <= VXD_SCENE_AGE_MARKS);
    for (size_t i = 1; i < ages.n; i++) {
        CHECK(ages.marks[i].version > ages.marks[i - 1].version &&
              ages.marks[i].run_ns > ages.marks[i - 1].run_ns);
    }
    CHECK(at - ages.marks[0].run_ns >= HOUR_NS);
    CHECK_INT(vxd_scene_age_find(&ages, 20000, 77), 77);
    vxd_scene_age_forget(&ages, 1);
    CHECK_INT(ages.n, 0);
    CHECK(!vxd_scene_age_is_due(&ages, 0, 1, at));
}

int main(int argc, char **argv)
{
    static const struct vxd_test tests[] = {
        VXD_TEST(test_wall_clock_that_jumps_ends_no_history),
        VXD_TEST(test_running_time_ages_over_starts),
        VXD_TEST(test_versions_without_marks_begin_with_age_zero),
        VXD_TEST(test_dropped_scene_takes_its_ages_along),
        VXD_TEST(test_marks_stay_few_and_ascend),
    };

    vxd_log_set_level(VXD_LOG_ERROR);
    return vxd_test_run_all(tests, sizeof tests / sizeof tests[0],
                            argc > 1 ? argv[1] : NULL);
}
