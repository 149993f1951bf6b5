// SPDX-License-Identifier: Apache-2.0
/* Fails the k-th allocation, for every k, of changes to a durable volume and of a start: a change that
 * failed was never made, neither then nor after a start, and a start that failed has lost and cut
 * nothing. The linker puts our allocators in front (--wrap); SQLite's own are not among them. */
#include "tests/support/test.h"

#include "tests/support/failing_alloc.h"
#include "tests/support/server/alloc_disk.h"
#include "tests/support/server/server_checks.h"
#include "tests/support/server/volumes_disk.h"

VXD_TEST_HELPERS

enum {
    ENOUGH = 5000,
    N_CHANGES = 4 /* one of each kind */
};

/* The k-th allocation of the journal's opening fails; none below 0. */
static enum vxd_status start(struct world *world, long k)
{
    alloc_start(world);
    fail_allocation(k);
    return alloc_open(world);
}

/* A volume with the changes before number n. */
static void make(struct world *world, int n)
{
    alloc_folder_make();
    CHECK_INT(start(world, -1), VXD_OK);
    world_make_volume(world, "a", world_durable_volume);
    for (int i = 0; i < n; i++) {
        CHECK_INT(world_change_volume(world, "a", i, (uint64_t)i + 1), VXD_OK);
    }
}

static void check_same(struct volume_view a, struct volume_view b)
{
    CHECK_INT(a.status, b.status);
    CHECK(a.digest == b.digest && a.stamp == b.stamp && a.generation == b.generation);
}

/* A request, while its k-th allocation fails; *failed: it was there to fail. */
static enum vxd_status send_failing(struct world *world, const char *method,
                                    const char *json, uint64_t sequence, long k,
                                    bool *failed)
{
    struct call call;
    enum vxd_status status;

    fail_allocation(k);
    status = alloc_send(world, &call, method, sequence, json);
    *failed = stop_failing();
    alloc_finish(&call);
    return status;
}

/* True when allocation k of change n was there to fail. */
static bool fail_change(int n, long k)
{
    char json[VOLUME_JSON_BYTES];
    const char *method = world_volume_change("a", n, json);
    struct volume_view before;
    struct volume_view after;
    struct world world;
    enum vxd_status status;
    bool failed;

    make(&world, n);
    before = world_view_volume(&world, "a");
    status = send_failing(&world, method, json, (uint64_t)n + 1, k, &failed);
    CHECK(status == VXD_OK || (failed && status == VXD_RESOURCE_EXHAUSTED));
    if (status != VXD_OK) {
        check_same(world_view_volume(&world, "a"), before);
    }
    /* Once, whether it was done or not. */
    CHECK_INT(world_ask(&world, method, (uint64_t)n + 1, json), VXD_OK);
    after = world_view_volume(&world, "a");
    CHECK(after.digest != before.digest);
    world_stop(&world);
    CHECK_INT(start(&world, -1), VXD_OK);
    check_same(world_view_volume(&world, "a"), after);
    world_stop(&world);
    alloc_folder_remove();
    return failed;
}

static void test_volume_change_any_failing_allocation_changes_nothing(void)
{
    for (int n = 0; n < N_CHANGES; n++) {
        long k = 0;

        while (k < ENOUGH && vxd_test_n_failed_checks == 0 && fail_change(n, k)) {
            k += 3 * vxd_test_slow();
        }
        CHECK(k >= 3); /* a removal takes little that is not kept from before */
    }
}

/* True when allocation k of copying a volume, and of dropping one, was there to fail. */
static bool fail_ends(long k)
{
    static const char made[] = "{\"name\":\"a\",\"to\":\"b\",\"durable\":true}";
    static const char dropped[] = "{\"name\":\"a\"}";
    struct world world;
    enum vxd_status status;
    bool failed[2];

    make(&world, 1);
    status = send_failing(&world, "volume_copy", made, 8, k, &failed[0]);
    CHECK(status == VXD_OK || (failed[0] && status == VXD_RESOURCE_EXHAUSTED));
    CHECK_INT(world_ask(&world, "volume_get", 0, "{\"name\":\"b\"}") == VXD_OK,
              status == VXD_OK);
    CHECK_INT(world_ask(&world, "volume_copy", 8, made), VXD_OK);
    status = send_failing(&world, "volume_drop", dropped, 9, k, &failed[1]);
    CHECK(status == VXD_OK || (failed[1] && status == VXD_RESOURCE_EXHAUSTED));
    CHECK_INT(world_view_volume(&world, "a").status,
              status == VXD_OK ? VXD_NOT_FOUND : VXD_OK);
    CHECK_INT(world_ask(&world, "volume_drop", 9, dropped), VXD_OK);
    world_stop(&world);
    CHECK_INT(start(&world, -1), VXD_OK);
    CHECK_INT(world_ask(&world, "volume_get", 0, "{\"name\":\"b\"}"), VXD_OK);
    CHECK_INT(world_view_volume(&world, "a").status, VXD_NOT_FOUND);
    world_stop(&world);
    alloc_folder_remove();
    return failed[0] || failed[1];
}

static void test_copying_and_dropping_any_failing_allocation_is_done_or_not(void)
{
    long k = 0;

    while (k < ENOUGH && vxd_test_n_failed_checks == 0 && fail_ends(k)) {
        k += 3 * vxd_test_slow();
    }
    CHECK(k >= 6);
}

static void test_start_any_failing_allocation_loses_no_volume(void)
{
    struct volume_view before;
    struct world world;
    bool failed = true;
    long k = 0;

    make(&world, 3);
    CHECK_INT(world_save(&world, 1, 1, WORLD_PATIENT), 1);
    CHECK_INT(world_change_volume(&world, "a", 3, 4), VXD_OK);
    CHECK_INT(world_change_volume(&world, "a", 5, 6), VXD_OK);
    before = world_view_volume(&world, "a");
    world_stop(&world);
    for (; k < ENOUGH && failed && vxd_test_n_failed_checks == 0;
         k += 3 * vxd_test_slow()) {
        enum vxd_status status = start(&world, k);

        failed = stop_failing();
        CHECK(status == VXD_OK || (failed && status == VXD_RESOURCE_EXHAUSTED));
        if (status == VXD_OK) {
            check_same(world_view_volume(&world, "a"), before);
        }
        world_stop(&world);
    }
    CHECK(k >= 50);
    CHECK_INT(start(&world, -1), VXD_OK);
    check_same(world_view_volume(&world, "a"), before);
    CHECK_INT(world_change_volume(&world, "a", 0, 1), VXD_OK); /* its outcome is known */
    check_same(world_view_volume(&world, "a"), before);
    world_stop(&world);
    alloc_folder_remove();
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_volume_change_any_failing_allocation_changes_nothing),
    VXD_TEST(test_copying_and_dropping_any_failing_allocation_is_done_or_not),
    VXD_TEST(test_start_any_failing_allocation_loses_no_volume),
};

VXD_TEST_MAIN(tests)
