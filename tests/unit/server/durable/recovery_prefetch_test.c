// SPDX-License-Identifier: Apache-2.0
/* Records that are unpacked by several threads: all of them, in their order, up to the first that
 * is damaged or that the caller fails at; whatever their sizes. The linker puts our number of
 * processors in front (--wrap), so that there are helpers on any machine. */
#include "tests/support/test.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "server/durable/recovery/recovery.h"
#include "server/observe/log/log.h"
#include "tests/support/durable/fault_vfs.h"

enum {
    MAX_RECORDS = 20000,
    MANY_LEAVES = 1 << 18, /* 4 MB in memory */
    MOST_LEAVES = 9 << 19, /* 72 MB, more than is read ahead */
    MAX_PREFETCHED_BYTES = 100 << 20
};

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define IS_MEMORY_MEASURED false /* shadows, and what is freed, are in memory as well */
#else
#define IS_MEMORY_MEASURED true
#endif

int __wrap_vxd_machine_cpus(void);

static int n_cpus = 5;
static size_t most_at_once = VXD_RECORDS_AT_ONCE;
static bool is_foreseen; /* every other time */

int __wrap_vxd_machine_cpus(void)
{
    return n_cpus;
}

/* A journal of one family, whose n-th record has this many leaves; 0 = it is a ball. */
struct world {
    struct fault_disk *disk;
    struct vxd_data_dir dir;
    struct vxd_journal *journal;
    uint64_t n_records;
    uint64_t damaged; /* the number of one that is no record */
    uint32_t n_leaves[MAX_RECORDS + 1];
};

static uint64_t codes[MOST_LEAVES];
static uint64_t masks[MOST_LEAVES];

enum packs {
    BADLY,  /* 9 bytes a leaf, */
    FAIRLY, /* 2, */
    WELL    /* or hardly anything */
};

static void make_lists(size_t n, enum packs packs)
{
    uint64_t mix = 1;

    for (size_t i = 0; i < n; i++) {
        uint64_t bits;

        mix = mix * UINT64_C(6364136223846793005) + 1442695040888963407u;
        bits = mix >> 56 & UINT64_C(0x7f);
        codes[i] = packs == BADLY ? 4 * i + (mix >> 62) : i;
        masks[i] = packs == BADLY ? mix | 1 : 255;
        for (int k = 0; packs != BADLY && k < 7; k++) {
            masks[i] |=
                packs == WELL || (bits >> k & 1) != 0 ? UINT64_C(0xff00) << 8 * k : 0;
        }
    }
}

static enum vxd_status add_record(struct vxd_journal_txn *txn, const struct world *world,
                                  uint64_t number)
{
    const struct vxd_svdag_op op = {
        .shape = {.kind = world->n_leaves[number] > 0 ? VXD_SVDAG_VOXELS : VXD_SVDAG_BALL,
                  .r = 256,
                  .voxels = {.codes = codes,
                             .masks = masks,
                             .n = world->n_leaves[number]}},
        .action = VXD_SVDAG_FILL,
        .value = (uint32_t)(number % 65536)};
    const struct vxd_record record = {.kind = VXD_RECORD_EDIT,
                                      .head = "a",
                                      .version = {1, number},
                                      .ops = &op,
                                      .n_ops = 1};
    struct vxd_record_bytes bytes = {0};
    struct vxd_journal_record row = {.family = 1,
                                     .sequence = number,
                                     .rules_version = VXD_RULES_VERSION,
                                     .kind = VXD_RECORD_EDIT};
    enum vxd_status status;

    VXD_TRY(vxd_record_encode(&record, &bytes, NULL));
    row.bytes = bytes.bytes;
    row.n_bytes = bytes.n_bytes - (number == world->damaged ? 1 : 0);
    VXD_TRY(vxd_journal_add_record(txn, &row, NULL));
out:
    vxd_record_bytes_free(&bytes);
    return status;
}

static enum vxd_status open_world(struct world *world)
{
    const struct vxd_journal_options options = {0};
    const struct vxd_journal_family family = {
        .id = 1, .name = "a", .fsync = VXD_FSYNC_OFF, .epoch = 1};
    struct vxd_journal_found found;
    struct vxd_journal_txn *txn;
    enum vxd_status status;

    world->disk = fault_disk_create();
    world->dir.lock = -1;
    VXD_TRY(vxd_data_dir_open(fault_disk_ops(world->disk), "/d", &world->dir, NULL));
    VXD_TRY(vxd_journal_open(&world->dir, &options, &world->journal, &found, NULL));
    VXD_TRY(vxd_journal_begin(world->journal, &txn, NULL));
    VXD_TRY(vxd_journal_put_family(txn, &family, NULL));
    VXD_TRY(vxd_journal_commit_wait(txn, NULL));
    for (uint64_t i = 1; i <= world->n_records; i++) {
        VXD_TRY(vxd_journal_begin(world->journal, &txn, NULL));
        VXD_TRY(add_record(txn, world, i));
        VXD_TRY(vxd_journal_commit(txn, NULL, NULL, NULL));
    }
    VXD_TRY(vxd_journal_flush(world->journal, NULL));
out:
    return status;
}

static void close_world(struct world *world)
{
    CHECK(vxd_journal_close(world->journal, NULL) == VXD_OK);
    vxd_data_dir_close(&world->dir);
    fault_disk_destroy(world->disk);
}

/* What came, and where it shall end. */
struct seen {
    const struct world *world;
    uint64_t n;
    uint64_t fails_at; /* 0 = nowhere */
    bool is_slow;      /* at first: meanwhile others are read */
    size_t most;       /* at once */
    size_t before;     /* bytes in memory */
    uint64_t n_foreseen;
};

/* Of this process, in memory. */
static size_t resident_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    char line[128] = "";
    char *resident = line; /* the second number */

    if (file != NULL) {
        CHECK(fgets(line, sizeof line, file) != NULL);
        (void)fclose(file);
    }
    (void)strtoull(line, &resident, 10);
    return (size_t)strtoull(resident, NULL, 10) * (size_t)sysconf(_SC_PAGESIZE);
}

static void be_slow(const struct seen *seen)
{
    const struct timespec half = {.tv_nsec = 500000000};

    if (seen->is_slow && seen->n == 0) {
        (void)nanosleep(&half, NULL);
        CHECK(!IS_MEMORY_MEASURED ||
              resident_bytes() < seen->before + MAX_PREFETCHED_BYTES);
    }
}

static enum vxd_status foresee(void *user, const struct vxd_journal_record *record,
                               struct vxd_err *err)
{
    struct seen *seen = user;

    (void)err;
    CHECK_INT(record->sequence, seen->n_foreseen + 1);
    seen->n_foreseen++;
    return VXD_OK;
}

static enum vxd_status look(void *user, uint64_t sequence,
                            const struct vxd_record_decoded *records, size_t n,
                            size_t *n_taken, struct vxd_err *err)
{
    struct seen *seen = user;

    CHECK_INT(sequence, seen->n + 1);
    CHECK(n > 0 && n <= most_at_once);
    CHECK_INT(seen->n_foreseen, is_foreseen ? seen->world->n_records : 0);
    be_slow(seen);
    seen->most = n > seen->most ? n : seen->most;
    for (*n_taken = 0; *n_taken < n; ++*n_taken) {
        const struct vxd_record *record = &records[*n_taken].record;
        const struct vxd_svdag_op *op = &record->ops[0];

        if (seen->n + 1 == seen->fails_at) {
            return vxd_fail(err, VXD_UNAVAILABLE, NULL, "here");
        }
        seen->n++;
        CHECK_INT(record->version.n, seen->n);
        CHECK_INT(op->value, seen->n % 65536);
        CHECK_INT(op->shape.voxels.n, seen->world->n_leaves[seen->n]);
        CHECK(op->shape.voxels.n == 0 ||
              memcmp(op->shape.voxels.codes, codes, op->shape.voxels.n * 8) == 0);
        CHECK(op->shape.voxels.n == 0 ||
              memcmp(op->shape.voxels.masks, masks, op->shape.voxels.n * 8) == 0);
    }
    return VXD_OK;
}

/* Reads it all: all that is before the first fault must come, and no more. */
static size_t read_all(struct world *world, uint64_t fails_at, bool is_slow)
{
    struct seen seen = {.world = world,
                        .fails_at = fails_at,
                        .is_slow = is_slow,
                        .before = resident_bytes()};
    struct vxd_err err = {0};
    uint64_t next = 0;
    enum vxd_status status =
        vxd_prefetch_records(world->journal, 1, 1, most_at_once,
                             is_foreseen ? foresee : NULL, look, &seen, &next, &err);

    is_foreseen = !is_foreseen;
    CHECK_INT(next, seen.n + 1);
    if (fails_at != 0 && (world->damaged == 0 || fails_at < world->damaged)) {
        CHECK_INT(status, VXD_UNAVAILABLE);
        CHECK_STR(err.message, "here");
        CHECK_INT(next, fails_at);
    } else if (world->damaged != 0) {
        CHECK_INT(status, VXD_DATA_LOSS);
        CHECK(strstr(err.message, "damaged") != NULL);
        CHECK_INT(next, world->damaged);
    } else {
        CHECK_INT(status, VXD_OK);
        CHECK_INT(seen.n, world->n_records);
    }
    return seen.most;
}

/* Brushes, scans among them, and rarely one that is many times as large as what is guessed. */
static void test_records_of_all_sizes_come_in_order(void)
{
    static struct world world;

    memset(&world, 0, sizeof world);
    make_lists(20000, BADLY);
    world.n_records = 600;
    for (uint64_t i = 1; i <= world.n_records; i++) {
        world.n_leaves[i] = i % 37 == 0 ? 20000 : i % 11 == 0 ? (uint32_t)(i % 300) : 0;
    }
    REQUIRE(open_world(&world) == VXD_OK);
    for (n_cpus = 1; n_cpus <= 12; n_cpus++) {
        (void)read_all(&world, 0, false);
    }
    n_cpus = 5;
    close_world(&world);
}

static void test_many_small_records_come_as_many_at_once(void)
{
    static struct world world;

    memset(&world, 0, sizeof world);
    for (world.n_records = 0; world.n_records <= MAX_RECORDS;
         world.n_records = 19 * world.n_records + 1000) {
        REQUIRE(open_world(&world) == VXD_OK);
        CHECK_INT(read_all(&world, 0, true), world.n_records < VXD_RECORDS_AT_ONCE
                                                 ? world.n_records
                                                 : VXD_RECORDS_AT_ONCE);
        most_at_once = 64;
        CHECK_INT(read_all(&world, 0, true), world.n_records < 64 ? world.n_records : 64);
        most_at_once = VXD_RECORDS_AT_ONCE;
        close_world(&world);
    }
}

/* 240 MB of them, of which no more than a part is read while the first are looked at. */
static void test_no_more_is_unpacked_than_there_is_room_for(void)
{
    static struct world world;

    if (!IS_MEMORY_MEASURED) {
        SKIP("what is in memory does not tell");
    }
    memset(&world, 0, sizeof world);
    make_lists(MANY_LEAVES, FAIRLY);
    world.n_records = 60;
    for (uint64_t i = 1; i <= world.n_records; i++) {
        world.n_leaves[i] = MANY_LEAVES;
    }
    REQUIRE(open_world(&world) == VXD_OK);
    CHECK(read_all(&world, 0, true) > 1);
    close_world(&world);
}

static void test_record_that_is_larger_than_all_room_comes_alone(void)
{
    static struct world world;

    memset(&world, 0, sizeof world);
    make_lists(MOST_LEAVES, WELL);
    world.n_records = 3;
    world.n_leaves[2] = MOST_LEAVES;
    REQUIRE(open_world(&world) == VXD_OK);
    CHECK_INT(read_all(&world, 0, false), 1);
    close_world(&world);
}

/* 200 MB of 40 bytes each, among small ones; some alone, some at the end of a batch. */
static void test_records_larger_than_guessed_come_in_order(void)
{
    static struct world world;

    memset(&world, 0, sizeof world);
    make_lists(MANY_LEAVES, WELL);
    world.n_records = 700;
    for (uint64_t i = 1; i <= 50; i++) {
        world.n_leaves[i < 20 ? i : 13 * i] = MANY_LEAVES;
    }
    REQUIRE(open_world(&world) == VXD_OK);
    (void)read_all(&world, 0, false);
    (void)read_all(&world, 200, false);
    close_world(&world);
}

static void test_all_before_a_damaged_record_come(void)
{
    static const uint64_t places[] = {1, 2, 100, 370, 599, 600};
    static struct world world;

    make_lists(20000, BADLY);
    for (size_t k = 0; k < sizeof places / sizeof places[0]; k++) {
        memset(&world, 0, sizeof world);
        world.n_records = 600;
        world.damaged = places[k];
        for (uint64_t i = 7; i <= world.n_records; i += 40) {
            world.n_leaves[i] = 5000;
        }
        REQUIRE(open_world(&world) == VXD_OK);
        (void)read_all(&world, 0, false);
        (void)read_all(&world, 50, false);
        (void)read_all(&world, 500, false);
        close_world(&world);
    }
}

/* Again and again, as it is never the same: nothing is left of those that were read ahead. */
static void test_caller_that_fails_ends_it_at_once(void)
{
    static struct world world;

    memset(&world, 0, sizeof world);
    make_lists(20000, BADLY);
    world.n_records = 300;
    for (uint64_t i = 1; i <= world.n_records; i++) {
        world.n_leaves[i] = i % 3 == 0 ? 4000 : 0;
    }
    REQUIRE(open_world(&world) == VXD_OK);
    for (uint64_t i = 1; i <= world.n_records; i += 43) {
        (void)read_all(&world, i, false);
    }
    close_world(&world);
}

int main(int argc, char **argv)
{
    static const struct vxd_test tests[] = {
        VXD_TEST(test_records_of_all_sizes_come_in_order),
        VXD_TEST(test_many_small_records_come_as_many_at_once),
        VXD_TEST(test_no_more_is_unpacked_than_there_is_room_for),
        VXD_TEST(test_record_that_is_larger_than_all_room_comes_alone),
        VXD_TEST(test_records_larger_than_guessed_come_in_order),
        VXD_TEST(test_all_before_a_damaged_record_come),
        VXD_TEST(test_caller_that_fails_ends_it_at_once),
    };

    vxd_log_set_level((enum vxd_log_level)(VXD_LOG_ERROR + 1));
    return vxd_test_run_all(tests, sizeof tests / sizeof tests[0],
                            argc > 1 ? argv[1] : NULL);
}
