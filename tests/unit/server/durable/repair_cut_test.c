// SPDX-License-Identifier: Apache-2.0
/* Repairs that are cut off at every call, by a kill or a loss of power: what a start or another
 * repair finds is the directory as it was before, or mended, and never one between. */
#include "tests/support/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/durable/maintenance/maintenance.h"
#include "server/observe/log/log.h"
#include "tests/support/durable/durable_workload.h"
#include "tests/support/server/server_checks.h"
#include "tests/support/server/repair_disk.h"

VXD_TEST_HELPERS

#define WAL REPAIR_DATABASE "-wal"
#define ASIDE REPAIR_DATABASE ".damaged.1"
#define REPAIRED REPAIR_DATABASE ".repaired"

enum {
    MAX_CALLS = 2000,
    MAX_SYNCS = 64,
    MUTANT_SEEDS = 2
};

enum damage {
    DAMAGE_HEAD,    /* nothing of it can be read, */
    DAMAGE_FOREIGN, /* all can, if its WAL goes with it, */
    DAMAGE_MISSING  /* it is not there */
};

/* Bytes of a file as they were. */
struct copy {
    uint8_t *bytes;
    size_t n;
};

static struct copy copy_of(struct world *world, const char *path)
{
    struct copy copy = {0};
    const uint8_t *bytes = fault_disk_bytes(world->disk, path, &copy.n);

    copy.bytes = malloc(copy.n > 0 ? copy.n : 1);
    if (bytes == NULL || copy.bytes == NULL) {
        abort();
    }
    memcpy(copy.bytes, bytes, copy.n);
    return copy;
}

static void check_copy(struct world *world, const char *path, struct copy *take_copy)
{
    size_t n = 0;
    const uint8_t *bytes = fault_disk_bytes(world->disk, path, &n);

    CHECK(bytes != NULL && n == take_copy->n && memcmp(bytes, take_copy->bytes, n) == 0);
    free(take_copy->bytes);
}

/* On the disk, whatever becomes of the repair; what that has of "a" is given. */
static uint64_t damage(struct world *world, enum damage how)
{
    const struct vxd_file_ops *ops = fault_disk_ops(world->disk);
    uint8_t junk[100];
    int file;

    memset(junk, 0xa5, sizeof junk);
    switch (how) {
    case DAMAGE_HEAD:
        file = ops->open(ops->user, REPAIR_DATABASE, O_RDWR, 0);
        CHECK(ops->write(ops->user, file, junk, sizeof junk, 0) == sizeof junk);
        CHECK_INT(ops->sync(ops->user, file), 0);
        CHECK_INT(ops->close(ops->user, file), 0);
        return REPAIR_AT_FILE;
    case DAMAGE_FOREIGN:
        repair_sql_in_wal(world, "PRAGMA application_id = 1");
        return REPAIR_AT_END;
    default:
        CHECK_INT(ops->unlink(ops->user, REPAIR_DATABASE), 0);
        CHECK_INT(ops->sync_directory(ops->user, WORLD_DIR), 0);
        return REPAIR_AT_FILE;
    }
}

static void ignore(void *user, const struct vxd_problem *problem)
{
    (void)user;
    (void)problem;
}

/* A repair that is done but for its names: nothing says that anything is lost. */
static void check_verify(struct world *world)
{
    struct vxd_verify_result result;

    CHECK_INT(vxd_verify_data_dir(fault_disk_ops(world->disk), WORLD_DIR, ignore, NULL,
                                  &result, NULL),
              VXD_OK);
    CHECK_INT(result.n_losses, 0);
    CHECK(result.n_notes >= 1);
}

static void check_seen(struct world *world, struct seen before, uint64_t version)
{
    struct seen seen = world_look(world, "a", "");

    CHECK_INT(seen.status, VXD_OK);
    CHECK_INT(seen.version, version);
    CHECK(version != REPAIR_AT_END || strcmp(seen.digest, before.digest) == 0);
    CHECK(seen.generation > before.generation);
}

/* How far a repair came. */
struct reached {
    int n_calls;
    int n_syncs;
    bool is_needed[MAX_SYNCS]; /* nothing else does what the sync does */
};

/* A repair under a plan, then power is lost, then a start, or another repair. */
static void cut(enum damage how, const struct fault_plan *plan, enum fault_loss loss,
                uint64_t seed, bool by_start, struct reached *reached)
{
    struct vxd_repair_result result;
    struct world world;
    struct seen before = repair_make(&world);
    uint64_t version = damage(&world, how);
    struct copy wal = copy_of(&world, WAL);
    struct copy old = {0};

    if (how != DAMAGE_MISSING) {
        old = copy_of(&world, REPAIR_DATABASE);
    }
    fault_disk_plan(world.disk, plan);
    (void)vxd_repair_data_dir(fault_disk_ops(world.disk), WORLD_DIR, NULL, NULL, &result,
                              NULL);
    reached->n_calls = fault_disk_n_calls(world.disk);
    reached->n_syncs = fault_disk_n_syncs(world.disk);
    for (int i = 0; i < reached->n_syncs && i < MAX_SYNCS; i++) {
        const char *of = fault_disk_sync_of(world.disk, i);

        reached->is_needed[i] = of != NULL && i + 1 < reached->n_syncs &&
                                strcmp(of, FAULT_WAL_HEAD) != 0 &&
                                strstr(of, "-wal") == NULL;
    }
    fault_disk_lose_power(world.disk, loss, seed);
    fault_disk_plan(world.disk, &fault_none);
    if (fault_disk_exists(world.disk, REPAIRED)) {
        check_verify(&world);
    }
    /* What a start makes of a directory without a database is no matter of repairs. */
    by_start = by_start &&
               (how != DAMAGE_MISSING || fault_disk_exists(world.disk, REPAIR_DATABASE) ||
                fault_disk_exists(world.disk, REPAIRED));
    if (by_start && repair_try_start(&world)) {
        check_seen(&world, before, version);
    } else {
        (void)repair_now(&world);
        repair_check_mended(&world, before, version, true);
    }
    if (how != DAMAGE_MISSING) {
        check_copy(&world, ASIDE, &old);
    }
    check_copy(&world, ASIDE "-wal", &wal);
    world_end(&world);
}

static void cut_each(enum damage how)
{
    bool is_over = false;
    int k = 0;

    for (int i = 0; k < MAX_CALLS && !is_over && vxd_test_n_failed_checks == 0; i++) {
        /* Half of the losses with this call, and half with the next one. */
        for (int loss = i % 2; loss < FAULT_N_LOSSES; loss += 2) {
            struct fault_plan plan = fault_none;
            struct reached reached;

            plan.crash_at_call = k;
            cut(how, &plan, (enum fault_loss)loss, (uint64_t)k, (i + loss) / 2 % 2 == 0,
                &reached);
            is_over = reached.n_calls <= k;
        }
        if (vxd_test_n_failed_checks > 0) {
            (void)printf("  cut off at call %d\n", k);
        }
        k += vxd_test_slow();
    }
    CHECK(is_over);
}

static void test_repair_of_an_unreadable_database_cut_off_is_whole_or_not_begun(void)
{
    cut_each(DAMAGE_HEAD);
}

static void test_repair_of_a_database_and_its_wal_cut_off_loses_neither(void)
{
    cut_each(DAMAGE_FOREIGN);
}

static void test_repair_of_a_missing_database_cut_off_is_whole_or_not_begun(void)
{
    cut_each(DAMAGE_MISSING);
}

/* Whether checks of a cut fail, in a process of its own, which keeps what they say to itself. */
static bool fails(enum damage how, const struct fault_plan *plan, enum fault_loss loss,
                  uint64_t seed, bool by_start)
{
    int status = 0;
    pid_t child;

    (void)fflush(NULL);
    child = fork();
    if (child == 0) {
        struct reached reached;

        if (freopen("/dev/null", "w", stdout) == NULL ||
            freopen("/dev/null", "w", stderr) == NULL) {
            _exit(2);
        }
        vxd_test_n_failed_checks = 0;
        cut(how, plan, loss, seed, by_start, &reached);
        _exit(vxd_test_n_failed_checks > 0 ? 1 : 0);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) < 2);
    return WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

/* Whether some loss of power, at one of the next syncs or once the repair is done, shows that sync
 * m was not made. */
static bool is_noticed(enum damage how, int m, int n_syncs)
{
    for (int k = m + 1; k <= n_syncs; k++) {
        for (int i = 0; i < 2 * FAULT_N_LOSSES * MUTANT_SEEDS; i++) {
            struct fault_plan plan = fault_none;

            plan.suppress_sync = m;
            plan.crash_at_sync = k < n_syncs ? k : FAULT_NEVER;
            if (fails(how, &plan, (enum fault_loss)(i / 2 % FAULT_N_LOSSES),
                      (uint64_t)i * 104729 + (uint64_t)k, i % 2 == 0)) {
                return true;
            }
        }
    }
    return false;
}

/* The new database and three of the four moves. Its WAL ends before it has a name, with a sync of
 * what was in it; and whoever finds the last move not made makes it. */
static void test_any_sync_of_a_repair_left_out_is_noticed(void)
{
    struct reached reached;
    int n_needed = 0;

    cut(DAMAGE_FOREIGN, &fault_none, FAULT_DROP_ALL, 1, true, &reached);
    REQUIRE(reached.n_syncs > 0 && reached.n_syncs <= MAX_SYNCS);
    for (int m = 0; m < reached.n_syncs; m++) {
        n_needed += reached.is_needed[m] ? 1 : 0;
        if (reached.is_needed[m] && !is_noticed(DAMAGE_FOREIGN, m, reached.n_syncs)) {
            (void)fprintf(stderr, "sync %d of %d is not missed by anybody\n", m,
                          reached.n_syncs);
            CHECK(false);
        }
    }
    CHECK_INT(n_needed, 4);
}

/* Rows that the new database has no room for are not given up. */
static void test_repair_on_a_full_disk_leaves_the_database_as_it_was(void)
{
    bool is_over = false;

    for (int room = 0; room < 200 && !is_over && vxd_test_n_failed_checks == 0; room++) {
        struct fault_plan plan = fault_none;
        struct vxd_repair_result result;
        struct world world;
        struct seen before = repair_make(&world);
        uint64_t version = damage(&world, DAMAGE_FOREIGN);
        struct copy old = copy_of(&world, REPAIR_DATABASE);
        enum vxd_status status;

        plan.capacity_bytes = fault_disk_n_bytes(world.disk) + (int64_t)room * 4096;
        fault_disk_plan(world.disk, &plan);
        status = vxd_repair_data_dir(fault_disk_ops(world.disk), WORLD_DIR, NULL, NULL,
                                     &result, NULL);
        is_over = status == VXD_OK;
        CHECK(is_over || status == VXD_RESOURCE_EXHAUSTED);
        check_copy(&world, is_over ? ASIDE : REPAIR_DATABASE, &old);
        fault_disk_plan(world.disk, &fault_none);
        (void)repair_now(&world);
        repair_check_mended(&world, before, version, true);
        world_end(&world);
    }
    CHECK(is_over);
}

int main(int argc, char **argv)
{
    static const struct vxd_test tests[] = {
        VXD_TEST(test_repair_of_an_unreadable_database_cut_off_is_whole_or_not_begun),
        VXD_TEST(test_repair_of_a_database_and_its_wal_cut_off_loses_neither),
        VXD_TEST(test_repair_of_a_missing_database_cut_off_is_whole_or_not_begun),
        VXD_TEST(test_any_sync_of_a_repair_left_out_is_noticed),
        VXD_TEST(test_repair_on_a_full_disk_leaves_the_database_as_it_was),
    };

    vxd_log_set_level((enum vxd_log_level)(VXD_LOG_ERROR + 1));
    return vxd_test_run_all(tests, sizeof tests / sizeof tests[0],
                            argc > 1 ? argv[1] : NULL);
}
