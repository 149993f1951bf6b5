// SPDX-License-Identifier: Apache-2.0
/* Power lost at every sync of a workload, in every way that the disk knows; and the proof that
 * the test would see it if any of those syncs were not made. */
#include "tests/support/test.h"

#include <stdlib.h>

#include "server/observe/log/log.h"
#include "tests/support/durable/fault_vfs.h"
#include "tests/support/durable/durable_workload.h"

enum {
    SEEDS = 3,
    MUTANT_SEEDS = 48,
    MUTANT_REACH = 12 /* syncs after the one left out, at which power is lost */
};

/* Runs the workload with a plan, takes the power away where it has not gone, and checks.
 * *reached: the plan's crash came. */
static const char *run(const struct fault_plan *plan, enum fault_loss loss, uint64_t seed,
                       bool *reached, int *n_syncs)
{
    struct fault_disk *disk = fault_disk_create();
    struct work work = {0};
    const char *fault;

    if (disk == NULL) {
        return "no memory";
    }
    fault_disk_plan(disk, plan);
    (void)work_run(&work, fault_disk_ops(disk));
    *reached = fault_disk_is_dead(disk);
    *n_syncs = fault_disk_n_syncs(disk);
    if (getenv("DURABLE_LIST") != NULL && !*reached) {
        for (int i = 0; i < *n_syncs; i++) {
            const char *of = fault_disk_sync_of(disk, i);

            (void)printf("sync %d %s\n", i, of != NULL ? of : "-");
        }
    }
    fault_disk_cut(disk); /* what a server does on its way out comes too late */
    (void)vxd_journal_close(work.journal, NULL);
    vxd_data_dir_close(&work.dir);
    work.journal = NULL;
    fault_disk_plan(disk, &fault_none);
    fault_disk_lose_power(disk, loss, seed);
    fault = work_check(&work);
    fault_disk_destroy(disk);
    return fault;
}

static int count_syncs(void)
{
    bool reached;
    int n_syncs = 0;

    CHECK(run(&fault_none, FAULT_DROP_ALL, 1, &reached, &n_syncs) == NULL);
    return n_syncs;
}

static void test_power_lost_at_every_sync_keeps_what_was_promised(void)
{
    int n_syncs = count_syncs();

    CHECK(n_syncs > 80);
    for (int k = 0; k <= n_syncs; k += vxd_test_slow()) {
        for (int loss = 0; loss < FAULT_N_LOSSES; loss++) {
            for (uint64_t seed = 0; seed < SEEDS; seed++) {
                struct fault_plan plan = fault_none;
                const char *fault;
                bool reached;
                int n;

                plan.crash_at_sync = k;
                fault = run(&plan, (enum fault_loss)loss, seed * 7919 + (uint64_t)k,
                            &reached, &n);
                if (fault != NULL) {
                    (void)fprintf(stderr, "power lost at sync %d, loss %d, seed %d: %s\n",
                                  k, loss, (int)seed, fault);
                }
                CHECK(fault == NULL);
                if (loss == FAULT_DROP_ALL || loss == FAULT_KEEP_ALL) {
                    break; /* nothing is drawn */
                }
            }
        }
    }
}

/* Whether some loss of power shows that sync m was not made. */
static bool is_noticed(int m, int reach)
{
    for (int k = m + 1; k <= m + reach; k++) {
        for (uint64_t seed = 0; seed < MUTANT_SEEDS; seed++) {
            struct fault_plan plan = fault_none;
            bool reached;
            int n;

            plan.suppress_sync = m;
            plan.crash_at_sync = k;
            if (run(&plan, (enum fault_loss)(seed % FAULT_N_LOSSES), seed * 104729 + 1,
                    &reached, &n) != NULL) {
                return true;
            }
        }
    }
    return false;
}

/* A kind of syncs of which not every one can be missed: how many there were, and were. */
struct tally {
    int n;
    int n_missed;
};

/* All that server/durable and SQLite sync, by what it is of: each is left out once at least.
 * Those of a backup are in backup_test.c, those of a repair in
 * repair_cut_test.c. */
static const char *const kinds[] = {
    FAULT_WAL_HEAD,    /* SQLite: the journal begins anew */
    "voxeld.db-wal",   /* SQLite: a group of commits */
    "voxeld.db",       /* SQLite: the journal's pages, copied from there */
    "voxeld.mark",     /* database_mark.c: how far the journal has come */
    "a file",          /* a snapshot, a database or a mark, before it has its name */
    "/data/snapshots", /* snapshot_write.c, snapshot_sweep.c: names made and removed */
    "/data",           /* data_dir.c: the names of the lock and of the database */
    "/",               /* data_dir.c: the directory's own name */
};

enum {
    N_KINDS = sizeof kinds / sizeof kinds[0]
};

static bool is_of(struct fault_disk *disk, int i, const char *what)
{
    const char *of = fault_disk_sync_of(disk, i);

    return of != NULL && strcmp(of, what) == 0;
}

/* Every one that had anything to write is missed, by its number, but for two kinds of SQLite's,
 * of which some must be. The head of a WAL begun anew matters where the first commit after it is
 * longer than the first one of those that it ends, which then come back. The WAL before it is
 * copied matters where what it holds without a sync changes pages that nothing synced in it
 * changes, which then are old in part. No disk could show the others. */
static void test_any_sync_left_out_is_noticed(void)
{
    struct fault_disk *disk = fault_disk_create();
    struct work work = {0};
    struct tally all = {0};
    struct tally heads = {0};
    struct tally copies = {0};
    int n_of[N_KINDS] = {0};
    int n_idle = 0;
    int n_syncs;

    REQUIRE(disk != NULL);
    CHECK(work_run(&work, fault_disk_ops(disk)));
    n_syncs = fault_disk_n_syncs(disk);
    for (int m = 0; m < n_syncs; m += vxd_test_slow()) {
        bool is_head = is_of(disk, m, FAULT_WAL_HEAD);
        bool is_copy = is_of(disk, m, "voxeld.db-wal") && is_of(disk, m + 1, "voxeld.db");
        struct tally *tally = is_head ? &heads : is_copy ? &copies : &all;

        if (fault_disk_sync_of(disk, m) == NULL) {
            n_idle++;
            continue; /* there was nothing to write: it is none */
        }
        tally->n++;
        for (int kind = 0; kind < N_KINDS; kind++) {
            n_of[kind] += is_of(disk, m, kinds[kind]) ? 1 : 0;
        }
        if (is_noticed(m, is_head || is_copy ? 1 : MUTANT_REACH)) {
            tally->n_missed++;
        } else if (tally == &all) {
            (void)fprintf(stderr, "sync %d of %s is not missed by anybody\n", m,
                          fault_disk_sync_of(disk, m));
        }
    }
    CHECK_INT(all.n_missed, all.n);
    if (vxd_test_slow() == 1) {
        CHECK(all.n > 60);
        CHECK(heads.n_missed > 0);
        CHECK(copies.n_missed > 0);
        for (int kind = 0; kind < N_KINDS; kind++) {
            CHECK(n_of[kind] > 0);
            n_idle += n_of[kind];
        }
        CHECK_INT(n_idle, n_syncs); /* none is of a kind that is not in the list */
    }
    (void)printf(
        "     of %d syncs %d are missed; of heads of the WAL %d of %d, of WALs before "
        "a copy %d of %d\n",
        n_syncs, all.n_missed, heads.n_missed, heads.n, copies.n_missed, copies.n);
    (void)vxd_journal_close(work.journal, NULL);
    vxd_data_dir_close(&work.dir);
    fault_disk_destroy(disk);
}

int main(int argc, char **argv)
{
    static const struct vxd_test tests[] = {
        VXD_TEST(test_power_lost_at_every_sync_keeps_what_was_promised),
        VXD_TEST(test_any_sync_left_out_is_noticed),
    };

    vxd_log_set_level(
        (enum vxd_log_level)(VXD_LOG_ERROR + 1)); /* thousands of bad ends */
    return vxd_test_run_all(tests, sizeof tests / sizeof tests[0],
                            argc > 1 ? argv[1] : NULL);
}
