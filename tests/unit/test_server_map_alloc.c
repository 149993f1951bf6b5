// SPDX-License-Identifier: Apache-2.0
/* Fails the k-th allocation, for every k, of changes to a durable map and of a start: a change that
 * failed was never made, neither then nor after a start, and a start that failed has lost and cut
 * nothing. The linker puts our allocators in front (--wrap); SQLite's own are not among them. */
#include "tests/unit/test.h"

#include <dirent.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "server/durable/snapshot.h"
#include "server/scenes_recover.h"
#include "tests/unit/durable_workload.h"
#include "tests/unit/server_checks.h"
#include "tests/unit/server_maps_disk.h"

VXD_TEST_HELPERS

enum {
    ENOUGH = 5000,
    N_CHANGES = 5 /* one of each kind */
};

void *__wrap_malloc(size_t n_bytes);
void *__real_malloc(size_t n_bytes);
void *__wrap_calloc(size_t n, size_t n_bytes);
void *__real_calloc(size_t n, size_t n_bytes);
void *__wrap_realloc(void *block, size_t n_bytes);
void *__real_realloc(void *block, size_t n_bytes);
int __wrap_posix_memalign(void **out, size_t alignment, size_t n_bytes);
int __real_posix_memalign(void **out, size_t alignment, size_t n_bytes);

/* Allocations, of any thread, until the one that fails; below zero = none does. */
static atomic_long n_until_failure = -1;

static bool fails_now(void)
{
    return atomic_load(&n_until_failure) >= 0 &&
           atomic_fetch_sub(&n_until_failure, 1) == 0;
}

void *__wrap_malloc(size_t n_bytes)
{
    return fails_now() ? NULL : __real_malloc(n_bytes);
}

void *__wrap_calloc(size_t n, size_t n_bytes)
{
    return fails_now() ? NULL : __real_calloc(n, n_bytes);
}

void *__wrap_realloc(void *block, size_t n_bytes)
{
    return fails_now() ? NULL : __real_realloc(block, n_bytes);
}

int __wrap_posix_memalign(void **out, size_t alignment, size_t n_bytes)
{
    return fails_now() ? 12 : __real_posix_memalign(out, alignment, n_bytes);
}

/* True when the allocation that was to fail was reached. */
static bool stop_failing(void)
{
    return atomic_exchange(&n_until_failure, -1) < 0;
}

/* A directory of the system's: the disk in memory allocates too. */
static char folder[64];

static void make_folder(void)
{
    (void)snprintf(folder, sizeof folder, "/tmp/voxeld-alloc-XXXXXX");
    if (mkdtemp(folder) == NULL) {
        abort();
    }
}

static void remove_files(const char *path)
{
    char name[400];
    DIR *dir = opendir(path);
    const struct dirent *entry;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] != '.') {
            (void)snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
            (void)unlink(name);
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
}

static void remove_folder(void)
{
    char inner[80];

    (void)snprintf(inner, sizeof inner, "%s/snapshots", folder);
    remove_files(inner);
    (void)rmdir(inner);
    remove_files(folder);
    (void)rmdir(folder);
}

/* The k-th allocation of the journal's opening fails; none below 0. */
static enum vxd_status start(struct world *world, long k)
{
    struct vxd_err err = {0};
    enum vxd_status status;

    *world = (struct world){.dir = {.lock = -1}};
    world->server = server_start(&(struct server_setup){0});
    if (world->server == NULL) {
        abort();
    }
    atomic_store(&n_until_failure, k);
    status = vxd_data_dir_open(NULL, folder, &world->dir, &err);
    if (status == VXD_OK) {
        status = vxd_scenes_open_journal(world->server->scenes, world->server->once,
                                         &world->dir, &err);
    }
    CHECK((status == VXD_OK) == (err.message[0] == '\0'));
    return status;
}

/* A map with the changes before number n. */
static void make(struct world *world, int n)
{
    make_folder();
    CHECK_INT(start(world, -1), VXD_OK);
    world_make_map(world, "a", world_durable_map);
    for (int i = 0; i < n; i++) {
        CHECK_INT(world_change_map(world, "a", i, (uint64_t)i + 1), VXD_OK);
    }
}

static void check_same(struct map_view a, struct map_view b)
{
    CHECK_INT(a.status, b.status);
    CHECK(a.digest == b.digest && a.epoch == b.epoch && a.generation == b.generation);
}

/* A request, while its k-th allocation fails; *failed: it was there to fail. */
static enum vxd_status send_failing(struct world *world, const char *method,
                                    const char *json, uint64_t sequence, long k,
                                    bool *failed)
{
    const struct vxd_request_header header = {
        .peer = "test", .peer_uid = -1, .client_id = "robot", .sequence = sequence};
    const struct vxd_body body = {
        .kind = VXD_BODY_JSON, .bytes = (const uint8_t *)json, .n_bytes = strlen(json)};
    struct vxd_request *request = NULL;
    struct vxd_err err = {0};
    enum vxd_status status;
    struct call call;

    atomic_store(&n_until_failure, k);
    status = vxd_request_create(world->server, &header, &request, &err);
    if (request != NULL) {
        call_begin(&call);
        call_adopt(&call, request);
        CHECK_INT(
            vxd_request_admit(request, vxd_method_by_name(method), body.n_bytes, &err),
            VXD_OK);
        vxd_request_submit(request, &body);
        status = call_wait(&call);
        *failed = stop_failing();
        call_finish(&call);
    } else {
        *failed = stop_failing();
    }
    return status;
}

/* True when allocation k of change n was there to fail. */
static bool fail_change(int n, long k)
{
    char json[MAP_JSON_BYTES];
    const char *method = world_map_change("a", n, json);
    struct map_view before;
    struct map_view after;
    struct world world;
    enum vxd_status status;
    bool failed;

    make(&world, n);
    before = world_view_map(&world, "a");
    status = send_failing(&world, method, json, (uint64_t)n + 1, k, &failed);
    CHECK(status == VXD_OK || (failed && status == VXD_RESOURCE_EXHAUSTED));
    if (status != VXD_OK) {
        check_same(world_view_map(&world, "a"), before);
    }
    /* Once, whether it was done or not. */
    CHECK_INT(world_ask(&world, method, (uint64_t)n + 1, json), VXD_OK);
    after = world_view_map(&world, "a");
    CHECK(after.digest != before.digest);
    world_stop(&world);
    CHECK_INT(start(&world, -1), VXD_OK);
    check_same(world_view_map(&world, "a"), after);
    world_stop(&world);
    remove_folder();
    return failed;
}

static void test_map_change_any_failing_allocation_changes_nothing(void)
{
    for (int n = 0; n < N_CHANGES; n++) {
        long k = 0;

        while (k < ENOUGH && vxd_test_n_failed_checks == 0 && fail_change(n, k)) {
            k += work_stride();
        }
        CHECK(k >= 6);
    }
}

/* True when allocation k of making a map, and of dropping one, was there to fail. */
static bool fail_ends(long k)
{
    static const char made[] = "{\"name\":\"b\",\"durable\":true}";
    static const char dropped[] = "{\"name\":\"a\"}";
    struct world world;
    enum vxd_status status;
    bool failed[2];

    make(&world, 1);
    status = send_failing(&world, "map_create", made, 8, k, &failed[0]);
    CHECK(status == VXD_OK || (failed[0] && status == VXD_RESOURCE_EXHAUSTED));
    CHECK_INT(world_ask(&world, "map_get", 0, "{\"name\":\"b\"}") == VXD_OK,
              status == VXD_OK);
    status = send_failing(&world, "map_drop", dropped, 9, k, &failed[1]);
    CHECK(status == VXD_OK || (failed[1] && status == VXD_RESOURCE_EXHAUSTED));
    CHECK_INT(world_view_map(&world, "a").status,
              status == VXD_OK ? VXD_NOT_FOUND : VXD_OK);
    CHECK_INT(world_ask(&world, "map_create", 8, made), VXD_OK);
    CHECK_INT(world_ask(&world, "map_drop", 9, dropped), VXD_OK);
    world_stop(&world);
    CHECK_INT(start(&world, -1), VXD_OK);
    CHECK_INT(world_ask(&world, "map_get", 0, "{\"name\":\"b\"}"), VXD_OK);
    CHECK_INT(world_view_map(&world, "a").status, VXD_NOT_FOUND);
    world_stop(&world);
    remove_folder();
    return failed[0] || failed[1];
}

static void test_making_and_dropping_any_failing_allocation_is_done_or_not(void)
{
    long k = 0;

    while (k < ENOUGH && vxd_test_n_failed_checks == 0 && fail_ends(k)) {
        k += work_stride();
    }
    CHECK(k >= 6);
}

static void test_start_any_failing_allocation_loses_no_map(void)
{
    uint64_t *sequences = NULL;
    struct map_view before;
    struct world world;
    bool failed = true;
    size_t n = 0;
    long k = 0;

    make(&world, 3);
    vxd_scene_saver_ask(world.server->scenes->saver, 1);
    for (int i = 0; i < 2000 && n == 0; i++) {
        wait_ms(5);
        CHECK_INT(vxd_snapshot_list(&world.dir, 1, &sequences, &n, NULL), VXD_OK);
        free(sequences);
        sequences = NULL;
    }
    CHECK_INT(n, 1);
    CHECK_INT(world_change_map(&world, "a", 3, 4), VXD_OK);
    CHECK_INT(world_change_map(&world, "a", 5, 6), VXD_OK);
    before = world_view_map(&world, "a");
    world_stop(&world);
    for (; k < ENOUGH && failed && vxd_test_n_failed_checks == 0; k += work_stride()) {
        enum vxd_status status = start(&world, k);

        failed = stop_failing();
        CHECK(status == VXD_OK || (failed && status == VXD_RESOURCE_EXHAUSTED));
        if (status == VXD_OK) {
            check_same(world_view_map(&world, "a"), before);
        }
        world_stop(&world);
    }
    CHECK(k >= 50);
    CHECK_INT(start(&world, -1), VXD_OK);
    check_same(world_view_map(&world, "a"), before);
    CHECK_INT(world_change_map(&world, "a", 0, 1), VXD_OK); /* its outcome is known */
    check_same(world_view_map(&world, "a"), before);
    world_stop(&world);
    remove_folder();
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_map_change_any_failing_allocation_changes_nothing),
    VXD_TEST(test_making_and_dropping_any_failing_allocation_is_done_or_not),
    VXD_TEST(test_start_any_failing_allocation_loses_no_map),
};

VXD_TEST_MAIN(tests)
