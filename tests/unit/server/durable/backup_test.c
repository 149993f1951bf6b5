// SPDX-License-Identifier: Apache-2.0
/* Backups: whole when they are said to be, whatever power is lost after that, and the proof that
 * the test would see it if any of their syncs were not made. */
#include "tests/support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "server/durable/maintenance/maintenance.h"
#include "server/observe/log/log.h"
#include "tests/support/durable/fault_vfs.h"
#include "tests/support/durable/durable_workload.h"

#define COPY "/copy"

enum {
    SEEDS = 4,
    MAX_BACKUP_SYNCS = 64
};

static const char networks[] = "voxeld-networks/1\nsigns fp16\n";

/* Puts a list of loaded networks on the disk, as the registry would. */
static bool write_networks(const struct vxd_file_ops *ops)
{
    int file = ops->open(ops->user, "/data/networks", O_WRONLY | O_CREAT, 0600);
    bool is_written = file >= 0 &&
                      vxd_file_write_all(ops, file, networks, sizeof networks - 1, 0,
                                         "/data/networks", NULL) == VXD_OK &&
                      ops->sync(ops->user, file) == 0;

    if (file >= 0) {
        (void)ops->close(ops->user, file);
    }
    return is_written && ops->sync_directory(ops->user, "/data") == 0;
}

/* Whether the copy has the list, byte for byte. */
static bool has_networks(const struct vxd_file_ops *ops)
{
    char read[sizeof networks] = "";
    int file = ops->open(ops->user, COPY "/networks", O_RDONLY, 0);
    int64_t n = file >= 0 ? ops->read(ops->user, file, read, sizeof read, 0) : -1;

    if (file >= 0) {
        (void)ops->close(ops->user, file);
    }
    return n == sizeof networks - 1 && memcmp(read, networks, sizeof networks - 1) == 0;
}

/* A backup of the workload's directory, and what is there after power was lost. */
struct backup_run {
    struct work work;
    struct fault_disk *disk;
    struct vxd_backup_info info;
    enum vxd_status status;
    int n_syncs;
    char of[MAX_BACKUP_SYNCS][64]; /* what each was of; empty: it had nothing to do */
};

/* Where the copy is on another file system, as Linux answers. */
static int link_elsewhere(void *user, const char *from, const char *to)
{
    (void)from;
    return fault_disk_exists(user, to) ? -EEXIST : -EXDEV;
}

/* A backup under a plan, which counts syncs from the backup's first one on; then power is lost. */
static bool backup_run(struct backup_run *run, const struct fault_plan *plan,
                       bool can_link, enum fault_loss loss, uint64_t seed)
{
    struct vxd_file_ops ops;
    struct vxd_data_dir from;

    *run = (struct backup_run){.disk = fault_disk_create()};
    if (run->disk == NULL || !work_run(&run->work, fault_disk_ops(run->disk)) ||
        !write_networks(fault_disk_ops(run->disk))) {
        return false;
    }
    ops = *fault_disk_ops(run->disk);
    ops.link = can_link ? ops.link : link_elsewhere;
    from = run->work.dir;
    from.ops = &ops;
    fault_disk_plan(run->disk, plan);
    run->status = vxd_backup(&from, run->work.journal, COPY, &run->info, NULL);
    run->n_syncs = fault_disk_n_syncs(run->disk);
    for (int i = 0; i < run->n_syncs && i < MAX_BACKUP_SYNCS; i++) {
        const char *of = fault_disk_sync_of(run->disk, i);

        (void)snprintf(run->of[i], sizeof run->of[i], "%s", of != NULL ? of : "");
    }
    fault_disk_cut(run->disk);
    (void)vxd_journal_close(run->work.journal, NULL);
    vxd_data_dir_close(&run->work.dir);
    run->work.journal = NULL;
    fault_disk_plan(run->disk, &fault_none);
    fault_disk_lose_power(run->disk, loss, seed);
    return run->n_syncs <= MAX_BACKUP_SYNCS;
}

static void count_problem(void *user, const struct vxd_problem *problem)
{
    (void)problem;
    ++*(int *)user;
}

/* Whether the copy is a data directory with all that was acknowledged before it was begun. */
static bool is_whole(struct backup_run *run)
{
    const struct vxd_journal_options options = {0};
    const struct vxd_file_ops *ops = fault_disk_ops(run->disk);
    struct vxd_data_dir dir = {.lock = -1};
    struct vxd_journal *journal = NULL;
    struct vxd_journal_found found = {0};
    struct vxd_verify_result result = {0};
    struct vxd_journal_state state = {0};
    int n = 0;
    bool is_good;

    if (!fault_disk_exists(run->disk, COPY "/voxeld.db") || !has_networks(ops) ||
        vxd_verify_data_dir(ops, COPY, count_problem, &n, &result, NULL) != VXD_OK ||
        result.n_losses != 0 || result.n_spares != 0 || result.n_notes != 1 ||
        vxd_data_dir_open(ops, COPY, &dir, NULL) != VXD_OK) {
        return false;
    }
    is_good = vxd_journal_open(&dir, &options, &journal, &found, NULL) == VXD_OK &&
              found.is_restored && !found.is_new &&
              vxd_journal_get_state(journal, run->work.families[0].id, &state, NULL) ==
                  VXD_OK &&
              state.last_sequence == run->work.families[0].acknowledged;
    (void)vxd_journal_close(journal, NULL);
    vxd_data_dir_close(&dir);
    return is_good;
}

static void test_backup_is_whole_and_known_as_one(void)
{
    struct backup_run run;
    struct fault_disk *disk = fault_disk_create();
    struct work work = {0};
    struct vxd_backup_info info = {0};

    for (int can_link = 0; can_link < 2; can_link++) {
        REQUIRE(backup_run(&run, &fault_none, can_link != 0, FAULT_DROP_ALL, 1));
        CHECK_INT(run.status, VXD_OK);
        CHECK(run.info.n_snapshots >= 3);
        CHECK_INT(run.info.n_linked, can_link != 0 ? run.info.n_snapshots : 0);
        CHECK(is_whole(&run));
        fault_disk_destroy(run.disk);
    }
    REQUIRE(disk != NULL && work_run(&work, fault_disk_ops(disk)));
    CHECK_INT(vxd_backup(&work.dir, work.journal, COPY, &info, NULL), VXD_OK);
    CHECK_INT(vxd_backup(&work.dir, work.journal, COPY, &info, NULL), VXD_ALREADY_EXISTS);
    (void)vxd_journal_close(work.journal, NULL);
    vxd_data_dir_close(&work.dir);
    fault_disk_destroy(disk);
}

/* The directory itself is as it was promised, however far its backup came. */
static void test_power_lost_at_every_sync_of_a_backup_harms_nothing(void)
{
    for (int can_link = 0; can_link < 2; can_link++) {
        struct backup_run whole;

        REQUIRE(backup_run(&whole, &fault_none, can_link != 0, FAULT_DROP_ALL, 1));
        fault_disk_destroy(whole.disk);
        for (int k = 0; k <= whole.n_syncs; k += vxd_test_slow()) {
            for (int loss = 0; loss < FAULT_N_LOSSES; loss++) {
                struct fault_plan plan = fault_none;
                struct backup_run run;

                plan.crash_at_sync = k;
                REQUIRE(backup_run(&run, &plan, can_link != 0, (enum fault_loss)loss,
                                   (uint64_t)k * 31 + 7));
                CHECK((run.status == VXD_OK) == (k == whole.n_syncs));
                CHECK(run.status != VXD_OK || is_whole(&run));
                CHECK(!fault_disk_exists(run.disk, COPY) || is_whole(&run));
                CHECK(work_check(&run.work) == NULL);
                fault_disk_destroy(run.disk);
            }
        }
    }
}

/* A process that is killed at any of its calls: under the backup's name is a whole one, or none,
 * and the next one of that name goes well. */
static void test_backup_cut_off_has_no_name(void)
{
    bool is_over = false;
    int n_named = 0;

    for (int k = 0; !is_over && k < 1000; k += vxd_test_slow()) {
        const struct vxd_journal_options options = {0};
        struct vxd_backup_info info = {0};
        struct fault_plan plan = fault_none;
        struct vxd_journal_found found;
        struct work work = {0};
        struct backup_run run = {.disk = fault_disk_create()};

        REQUIRE(run.disk != NULL && work_run(&work, fault_disk_ops(run.disk)) &&
                write_networks(fault_disk_ops(run.disk)));
        plan.crash_at_call = k;
        fault_disk_plan(run.disk, &plan);
        is_over = vxd_backup(&work.dir, work.journal, COPY, &info, NULL) == VXD_OK;
        fault_disk_cut(run.disk);
        (void)vxd_journal_close(work.journal, NULL);
        vxd_data_dir_close(&work.dir);
        fault_disk_plan(run.disk, &fault_none);
        fault_disk_kill(run.disk);
        run.work = work;
        if (fault_disk_exists(run.disk, COPY)) {
            CHECK(is_whole(&run));
            n_named++;
        } else {
            REQUIRE(vxd_data_dir_open(fault_disk_ops(run.disk), "/data", &work.dir,
                                      NULL) == VXD_OK);
            REQUIRE(vxd_journal_open(&work.dir, &options, &work.journal, &found, NULL) ==
                    VXD_OK);
            CHECK_INT(vxd_backup(&work.dir, work.journal, COPY, &info, NULL), VXD_OK);
            CHECK(!fault_disk_exists(run.disk, "/.copy.new"));
            CHECK_INT(vxd_journal_close(work.journal, NULL), VXD_OK);
            vxd_data_dir_close(&work.dir);
            CHECK(is_whole(&run));
        }
        fault_disk_destroy(run.disk);
    }
    CHECK(is_over && n_named >= 1);
}

/* Whether some loss of power after a backup shows that its sync m was not made. */
static bool is_noticed(int m, bool can_link)
{
    bool is_seen = false;

    for (int i = 0; i < FAULT_N_LOSSES * SEEDS && !is_seen; i++) {
        struct fault_plan plan = fault_none;
        struct backup_run run;

        plan.suppress_sync = m;
        if (!backup_run(&run, &plan, can_link, (enum fault_loss)(i % FAULT_N_LOSSES),
                        (uint64_t)i * 104729 + 1)) {
            return false;
        }
        is_seen = run.status == VXD_OK && !is_whole(&run);
        fault_disk_destroy(run.disk);
    }
    return is_seen;
}

/* One by one, by what they are of: files that were copied, the database, its mark, and the
 * three directories that hold their names. */
static void test_any_sync_of_a_backup_left_out_is_noticed(void)
{
    for (int can_link = 0; can_link < 2; can_link++) {
        struct backup_run run;
        int n_real = 0;

        REQUIRE(backup_run(&run, &fault_none, can_link != 0, FAULT_DROP_ALL, 1));
        fault_disk_destroy(run.disk);
        for (int m = 0; m < run.n_syncs; m++) {
            if (run.of[m][0] == '\0') {
                continue;
            }
            n_real++;
            if (!is_noticed(m, can_link != 0)) {
                (void)fprintf(stderr, "sync %d of the backup is not missed: %s\n", m,
                              run.of[m]);
                CHECK(false);
            }
        }
        CHECK_INT(n_real, 5 + (can_link != 0 ? 0 : (int)run.info.n_snapshots + 1));
    }
}

int main(int argc, char **argv)
{
    static const struct vxd_test tests[] = {
        VXD_TEST(test_backup_is_whole_and_known_as_one),
        VXD_TEST(test_power_lost_at_every_sync_of_a_backup_harms_nothing),
        VXD_TEST(test_backup_cut_off_has_no_name),
        VXD_TEST(test_any_sync_of_a_backup_left_out_is_noticed),
    };

    vxd_log_set_level((enum vxd_log_level)(VXD_LOG_ERROR + 1)); /* of many bad ends */
    return vxd_test_run_all(tests, sizeof tests / sizeof tests[0],
                            argc > 1 ? argv[1] : NULL);
}
