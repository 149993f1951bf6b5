// SPDX-License-Identifier: Apache-2.0
/* Fails the k-th allocation, for every k, of changes to a durable scene and of a start: a change
 * that failed was never made, neither then nor after a start, and a start that failed has lost
 * and cut nothing. The linker puts our allocators in front (--wrap); SQLite's own are not among
 * them. */
#include "tests/unit/test.h"

#include <dirent.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "server/durable/snapshot.h"
#include "server/scenes_recover.h"
#include "tests/unit/durable_workload.h"
#include "tests/unit/server_checks.h"
#include "tests/unit/server_scenes_disk.h"

VXD_TEST_HELPERS

enum {
    ENOUGH = 5000
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

static const char undo[] = "{\"name\":\"a\"}";

/* One change of each kind, of the scene "a" and its branch. */
static const struct {
    const char *method;
    const char *json;
} changes[] = {
    {"scene_edit",
     "{\"name\":\"a\",\"in_voxels\":true,\"operations\":[{\"box\":{\"low\":{"
     "\"x\":1,\"y\":1,\"z\":1},\"high\":{\"x\":5,\"y\":5,\"z\":5}},"
     "\"material\":3}]}"},
    {"scene_undo", undo},
    {"scene_redo", undo},
    {"scene_branch", "{\"name\":\"a\",\"new_name\":\"b\"}"},
    {"scene_snapshot", "{\"name\":\"a\",\"snapshot\":\"x\"}"},
    {"scene_drop", "{\"name\":\"b\"}"},
};

enum {
    N_CHANGES = sizeof changes / sizeof changes[0]
};

/* A scene with the changes before number n. */
static void make(struct world *world, size_t n)
{
    make_folder();
    CHECK_INT(start(world, -1), VXD_OK);
    world_make(world, "a", world_durable);
    CHECK_INT(world_edit(world, "a", 0), VXD_OK);
    for (size_t i = 0; i < n; i++) {
        CHECK_INT(world_ask(world, changes[i].method, i + 1, changes[i].json), VXD_OK);
    }
}

static void check_same(struct seen a, struct seen b)
{
    CHECK_INT(a.status, b.status);
    CHECK_INT(a.version, b.version);
    CHECK_INT(a.generation, b.generation);
    CHECK_INT(a.n_snapshots, b.n_snapshots);
    CHECK_STR(a.digest, b.digest);
}

/* Change n, while its k-th allocation fails; *failed: it was there to fail. */
static enum vxd_status send_failing(struct world *world, size_t n, long k, bool *failed)
{
    const struct vxd_request_header header = {
        .peer = "test", .peer_uid = -1, .client_id = "robot", .sequence = n + 1};
    const struct vxd_body body = {.kind = VXD_BODY_JSON,
                                  .bytes = (const uint8_t *)changes[n].json,
                                  .n_bytes = strlen(changes[n].json)};
    struct vxd_request *request = NULL;
    struct vxd_err err = {0};
    enum vxd_status status;
    struct call call;

    atomic_store(&n_until_failure, k);
    status = vxd_request_create(world->server, &header, &request, &err);
    if (request != NULL) {
        call_begin(&call);
        call_adopt(&call, request);
        CHECK_INT(vxd_request_admit(request, vxd_method_by_name(changes[n].method),
                                    body.n_bytes, &err),
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
static bool fail_change(size_t n, long k)
{
    struct world world;
    struct seen before[2];
    struct seen after[2];
    enum vxd_status status;
    bool failed;

    make(&world, n);
    before[0] = world_look(&world, "a", "");
    before[1] = world_look(&world, "b", "");
    status = send_failing(&world, n, k, &failed);
    CHECK(status == VXD_OK || (failed && status == VXD_RESOURCE_EXHAUSTED));
    if (status != VXD_OK) {
        check_same(world_look(&world, "a", ""), before[0]);
        check_same(world_look(&world, "b", ""), before[1]);
    }
    /* Once, whether it was done or not. */
    CHECK_INT(world_ask(&world, changes[n].method, n + 1, changes[n].json), VXD_OK);
    after[0] = world_look(&world, "a", "");
    after[1] = world_look(&world, "b", "");
    CHECK_INT(after[0].version, before[0].version + (n < 3 ? 1 : 0));
    world_stop(&world);
    CHECK_INT(start(&world, -1), VXD_OK);
    check_same(world_look(&world, "a", ""), after[0]);
    check_same(world_look(&world, "b", ""), after[1]);
    world_stop(&world);
    remove_folder();
    return failed;
}

static void test_durable_change_any_failing_allocation_changes_nothing(void)
{
    for (size_t n = 0; n < N_CHANGES; n++) {
        long k = 0;

        while (k < ENOUGH && vxd_test_n_failed_checks == 0 && fail_change(n, k)) {
            k += work_stride();
        }
        CHECK(k >= 6);
    }
}

static void test_start_any_failing_allocation_loses_nothing(void)
{
    uint64_t *sequences = NULL;
    struct world world;
    struct seen before[3];
    bool failed = true;
    size_t n = 0;
    long k = 0;

    make(&world, N_CHANGES - 1);
    vxd_scene_saver_ask(world.server->scenes->saver, 1);
    for (int i = 0; i < 2000 && n == 0; i++) {
        wait_ms(5);
        CHECK_INT(vxd_snapshot_list(&world.dir, 1, &sequences, &n, NULL), VXD_OK);
        free(sequences);
        sequences = NULL;
    }
    CHECK_INT(n, 1);
    CHECK_INT(world_edit(&world, "b", 3), VXD_OK);
    before[0] = world_look(&world, "a", "");
    before[1] = world_look(&world, "b", "");
    before[2] = world_look(&world, "a", "x");
    world_stop(&world);
    for (; k < ENOUGH && failed && vxd_test_n_failed_checks == 0; k += work_stride()) {
        enum vxd_status status = start(&world, k);

        failed = stop_failing();
        CHECK(status == VXD_OK || (failed && status == VXD_RESOURCE_EXHAUSTED));
        if (status == VXD_OK) {
            check_same(world_look(&world, "a", ""), before[0]);
            check_same(world_look(&world, "b", ""), before[1]);
            check_same(world_look(&world, "a", "x"), before[2]);
        }
        world_stop(&world);
    }
    CHECK(k >= 50);
    CHECK_INT(start(&world, -1), VXD_OK);
    check_same(world_look(&world, "a", ""), before[0]);
    check_same(world_look(&world, "b", ""), before[1]);
    check_same(world_look(&world, "a", "x"), before[2]);
    /* Outcomes are known. */
    CHECK_INT(world_ask(&world, changes[0].method, 1, changes[0].json), VXD_OK);
    check_same(world_look(&world, "a", ""), before[0]);
    world_stop(&world);
    remove_folder();
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_durable_change_any_failing_allocation_changes_nothing),
    VXD_TEST(test_start_any_failing_allocation_loses_nothing),
};

VXD_TEST_MAIN(tests)
