// SPDX-License-Identifier: Apache-2.0
/* Durable scenes on a disk that fails: whatever was answered is there afterwards, whatever
 * failed is not and was never seen, and later changes work. */
#include "tests/unit/test.h"

#include "server/scenes_journal.h"
#include "server/scenes_recover.h"
#include "server/scheduler_internal.h"
#include "server/durable/snapshot_internal.h"
#include "tests/unit/durable_fault_vfs.h"
#include "tests/unit/server_checks.h"
#include "tests/unit/server_helpers.h"
#include "voxeld/v1/scene.pb-c.h"
#include "voxeld/v1/scene_version.pb-c.h"

#define VXD_TEST_DIR "/data"

VXD_TEST_HELPERS

enum {
    N_FLIGHT = 6, /* edits in flight when the disk fails */
    MIN_CALLS = 8,
    MAX_CALLS = 200,
    DIGEST_BYTES = 33
};

/* A server whose data lies on that disk. */
struct world {
    struct fault_disk *disk;
    struct vxd_data_dir dir;
    struct vxd_server *server;
};

static void start(struct world *world)
{
    struct vxd_err err = {0};

    world->server = server_start(&(struct server_setup){0});
    if (world->server == NULL ||
        vxd_data_dir_open(fault_disk_ops(world->disk), VXD_TEST_DIR, &world->dir, &err) !=
            VXD_OK ||
        vxd_scenes_open_journal(world->server->scenes, world->server->once, &world->dir,
                                &err) != VXD_OK) {
        vxd_test_note_failure("start", err.message);
        abort();
    }
}

static void stop(struct world *world)
{
    (void)vxd_scheduler_drain(world->server->scheduler, 20000);
    vxd_server_close(world->server);
    free(world->server);
    world->server = NULL;
    vxd_data_dir_close(&world->dir);
}

static void restart(struct world *world)
{
    stop(world);
    start(world);
}

static void begin(struct world *world)
{
    *world = (struct world){.disk = fault_disk_create(), .dir = {.lock = -1}};
    if (world->disk == NULL) {
        abort();
    }
    start(world);
}

static void end(struct world *world)
{
    stop(world);
    fault_disk_destroy(world->disk);
}

/* --- requests ------------------------------------------------------------------------------ */

/* Sequence 0: none. */
static void send(struct world *world, struct call *call, const char *method,
                 uint64_t sequence, const char *json)
{
    const struct vxd_request_header header = {
        .peer = "test", .peer_uid = -1, .client_id = "robot", .sequence = sequence};

    call_begin(call);
    call_json(call, world->server, vxd_method_by_name(method), &header, json);
}

static enum vxd_status receive(struct call *call)
{
    enum vxd_status status = call_wait(call);

    call_finish(call);
    return status;
}

static enum vxd_status ask(struct world *world, const char *method, uint64_t sequence,
                           const char *json)
{
    struct call call;

    send(world, &call, method, sequence, json);
    return receive(&call);
}

/* Until the disk takes it again. */
static enum vxd_status insist(struct world *world, const char *method, uint64_t sequence,
                              const char *json)
{
    enum vxd_status status = VXD_UNAVAILABLE;

    for (int i = 0; i < 500 && status != VXD_OK; i++) {
        status = ask(world, method, sequence, json);
        if (status != VXD_OK) {
            wait_ms(20);
        }
    }
    return status;
}

static void make(struct world *world, const char *name, const char *more)
{
    char json[300];

    (void)snprintf(json, sizeof json,
                   "{\"name\":\"%s\",\"spec\":{\"voxel_size_m\":1,\"depth\":4,"
                   "\"material_bits\":4}%s}",
                   name, more);
    CHECK_INT(ask(world, "scene_create", 0, json), VXD_OK);
}

/* The i-th of edits that are all different. */
static const char *edit_json(const char *name, int i, char json[300])
{
    (void)snprintf(
        json, 300,
        "{\"name\":\"%s\",\"in_voxels\":true,\"operations\":[{\"box\":{\"low\":"
        "{\"x\":%d,\"y\":0,\"z\":0},\"high\":{\"x\":%d,\"y\":%d,\"z\":3}},"
        "\"material\":%d}]}",
        name, i, i + 1, i + 2, i % 7);
    return json;
}

static enum vxd_status edit(struct world *world, const char *name, int i)
{
    char json[300];

    return ask(world, "scene_edit", 0, edit_json(name, i, json));
}

/* What everybody sees of a scene. */
struct seen {
    enum vxd_status status;
    uint64_t version;
    uint64_t generation;
    uint32_t n_snapshots;
    char digest[DIGEST_BYTES];
};

static struct seen look(struct world *world, const char *name, const char *snapshot)
{
    struct seen seen = {0};
    Voxeld__V1__SceneGetResponse *reply;
    struct call call;
    char json[200];

    (void)snprintf(json, sizeof json, "{\"name\":\"%s\",\"at\":{\"snapshot\":\"%s\"}}",
                   name, snapshot);
    send(world, &call, "scene_get", 0, json);
    seen.status = call_wait(&call);
    reply = seen.status == VXD_OK
                ? voxeld__v1__scene_get_response__unpack(NULL, call.n_packed, call.packed)
                : NULL;
    if (reply != NULL) {
        seen.version = reply->scene->version;
        seen.generation = reply->scene->generation;
        seen.n_snapshots = reply->scene->n_snapshots;
        (void)snprintf(seen.digest, sizeof seen.digest, "%s", reply->scene->digest);
        voxeld__v1__scene_get_response__free_unpacked(reply, NULL);
    }
    call_finish(&call);
    return seen;
}

static void check_seen(struct seen seen, const char *digest, uint64_t version)
{
    CHECK_INT(seen.status, VXD_OK);
    CHECK_INT(seen.version, version);
    if (digest != NULL) {
        CHECK_STR(seen.digest, digest);
    }
}

/* The version that an edit of this sequence made, asked again. */
static uint64_t version_of(struct world *world, uint64_t sequence, const char *json)
{
    Voxeld__V1__SceneEditResponse *reply = NULL;
    struct call call;
    uint64_t version = 0;

    send(world, &call, "scene_edit", sequence, json);
    if (call_wait(&call) == VXD_OK) {
        reply = voxeld__v1__scene_edit_response__unpack(NULL, call.n_packed, call.packed);
    }
    if (reply != NULL) {
        version = reply->change->version;
        voxeld__v1__scene_edit_response__free_unpacked(reply, NULL);
    }
    call_finish(&call);
    return version;
}

/* --- a gate before the disk ---------------------------------------------------------------- */

/* Who reads the journal keeps its writer waiting: so long every change waits. */
struct gate {
    struct vxd_journal *journal;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool is_closed;
    bool may_open;
};

static enum vxd_status stay(void *user, const struct vxd_journal_family *family,
                            struct vxd_err *err)
{
    struct gate *gate = user;

    (void)family;
    (void)err;
    (void)pthread_mutex_lock(&gate->mutex);
    gate->is_closed = true;
    (void)pthread_cond_broadcast(&gate->changed);
    while (!gate->may_open) {
        (void)pthread_cond_wait(&gate->changed, &gate->mutex);
    }
    (void)pthread_mutex_unlock(&gate->mutex);
    return VXD_OK;
}

static void *read_journal(void *argument)
{
    struct gate *gate = argument;

    (void)vxd_journal_read_families(gate->journal, stay, gate, NULL);
    return NULL;
}

/* There must be a durable scene. */
static void gate_close(struct gate *gate, const struct world *world)
{
    *gate = (struct gate){.journal = vxd_scenes_get_journal(world->server->scenes)};
    (void)pthread_mutex_init(&gate->mutex, NULL);
    (void)pthread_cond_init(&gate->changed, NULL);
    if (pthread_create(&gate->thread, NULL, read_journal, gate) != 0) {
        abort();
    }
    (void)pthread_mutex_lock(&gate->mutex);
    while (!gate->is_closed) {
        (void)pthread_cond_wait(&gate->changed, &gate->mutex);
    }
    (void)pthread_mutex_unlock(&gate->mutex);
}

static void gate_open(struct gate *gate)
{
    (void)pthread_mutex_lock(&gate->mutex);
    gate->may_open = true;
    (void)pthread_cond_broadcast(&gate->changed);
    (void)pthread_mutex_unlock(&gate->mutex);
    (void)pthread_join(gate->thread, NULL);
    (void)pthread_cond_destroy(&gate->changed);
    (void)pthread_mutex_destroy(&gate->mutex);
}

/* Once so many changes wait for it. */
static void wait_for_changes(const struct world *world, size_t n_changes)
{
    struct vxd_scheduler *scheduler = world->server->scheduler;
    size_t n = 0;

    for (int i = 0; i < 5000 && n < n_changes; i++) {
        wait_ms(1);
        (void)pthread_mutex_lock(&scheduler->mutex);
        n = scheduler->lanes[0].n_committing;
        (void)pthread_mutex_unlock(&scheduler->mutex);
    }
    CHECK_INT(n, n_changes);
}

/* --- commits that fail --------------------------------------------------------------------- */

static const char durable[] = ",\"durability\":{\"fsync\":\"SCENE_FSYNC_ALWAYS\"}";

/* Digests after each of the edits, from a scene in memory. */
static void expect(struct world *world, char digests[N_FLIGHT + 1][DIGEST_BYTES])
{
    make(world, "model", "");
    for (int i = 0; i <= N_FLIGHT; i++) {
        CHECK_INT(edit(world, "model", i), VXD_OK);
        (void)snprintf(digests[i], DIGEST_BYTES, "%s", look(world, "model", "").digest);
    }
}

/* Edits in flight while call number k fails; true when none of them did. */
static bool fail_call(struct world *world, int k, enum fault_kind kind,
                      char digests[N_FLIGHT + 1][DIGEST_BYTES])
{
    struct fault_plan plan = fault_none;
    struct call calls[N_FLIGHT];
    char json[300];
    struct gate gate;
    int n_ok = 0;

    gate_close(&gate, world);
    for (int i = 0; i < N_FLIGHT; i++) {
        send(world, &calls[i], "scene_edit", 10 + (uint64_t)i,
             edit_json("a", i + 1, json));
    }
    wait_for_changes(world, N_FLIGHT);
    check_seen(look(world, "a", ""), digests[0], 2);
    plan.fail_at_call = k;
    plan.fail_kind = kind;
    fault_disk_plan(world->disk, &plan);
    gate_open(&gate);
    for (int i = 0; i < N_FLIGHT; i++) {
        bool is_ok = receive(&calls[i]) == VXD_OK;

        /* What was built on one that failed has failed too. */
        CHECK(!is_ok || n_ok == i);
        n_ok += is_ok ? 1 : 0;
    }
    check_seen(look(world, "a", ""), digests[n_ok], 2 + (uint64_t)n_ok);
    fault_disk_plan(world->disk, &fault_none);
    for (int i = 0; i < N_FLIGHT; i++) {
        CHECK_INT(
            insist(world, "scene_edit", 10 + (uint64_t)i, edit_json("a", i + 1, json)),
            VXD_OK);
        CHECK_INT(version_of(world, 10 + (uint64_t)i, json), 3 + i);
    }
    check_seen(look(world, "a", ""), digests[N_FLIGHT], 2 + N_FLIGHT);
    return n_ok == N_FLIGHT;
}

static void fail_each(enum fault_kind kind)
{
    char digests[N_FLIGHT + 1][DIGEST_BYTES];
    bool is_over = false;
    struct seen before;
    char json[300];
    int k;

    for (k = 0;
         k < MAX_CALLS && !(is_over && k >= MIN_CALLS) && vxd_test_n_failed_checks == 0;
         k++) {
        struct world world;

        begin(&world);
        expect(&world, digests);
        make(&world, "a", durable);
        CHECK_INT(edit(&world, "a", 0), VXD_OK);
        is_over = fail_call(&world, k, kind, digests);
        before = look(&world, "a", "");
        stop(&world);
        fault_disk_lose_power(world.disk, FAULT_DROP_ALL, 1);
        start(&world);
        check_seen(look(&world, "a", ""), digests[N_FLIGHT], 2 + N_FLIGHT);
        CHECK(look(&world, "a", "").generation == before.generation);
        CHECK_INT(version_of(&world, 12, edit_json("a", 3, json)), 5);
        end(&world);
    }
    CHECK(is_over);
}

static void test_commits_that_fail_with_eio_are_taken_back(void)
{
    fail_each(FAULT_EIO);
}

static void test_commits_on_a_full_disk_are_taken_back(void)
{
    fail_each(FAULT_ENOSPC);
}

static void test_commits_that_are_cut_short_are_taken_back(void)
{
    fail_each(FAULT_SHORT);
}

static void test_power_lost_in_a_commit_keeps_what_was_answered(void)
{
    for (int loss = 0; loss < FAULT_N_LOSSES; loss++) {
        struct fault_plan plan = fault_none;
        struct world world;
        struct seen before;

        begin(&world);
        make(&world, "a", durable);
        CHECK_INT(edit(&world, "a", 0), VXD_OK);
        CHECK_INT(edit(&world, "a", 1), VXD_OK);
        before = look(&world, "a", "");
        plan.crash_at_sync = 0;
        fault_disk_plan(world.disk, &plan);
        CHECK(edit(&world, "a", 2) != VXD_OK);
        check_seen(look(&world, "a", ""), before.digest, 3);
        stop(&world);
        fault_disk_lose_power(world.disk, (enum fault_loss)loss, 7);
        fault_disk_plan(world.disk, &fault_none);
        start(&world);
        /* What nobody was told may be there, whole, or not. */
        if (look(&world, "a", "").version != 4) {
            check_seen(look(&world, "a", ""), before.digest, 3);
        }
        CHECK_INT(edit(&world, "a", 3), VXD_OK);
        end(&world);
    }
}

/* --- drops --------------------------------------------------------------------------------- */

/* A scene, and a branch of it. */
static void make_two(struct world *world)
{
    begin(world);
    make(world, "a", durable);
    CHECK_INT(edit(world, "a", 0), VXD_OK);
    CHECK_INT(ask(world, "scene_branch", 0, "{\"name\":\"a\",\"new_name\":\"b\"}"),
              VXD_OK);
}

static void test_drop_behind_waiting_commits_ends_the_scene_there(void)
{
    struct call calls[3];
    struct world world;
    struct gate gate;
    struct seen before;
    char json[300];

    make_two(&world);
    gate_close(&gate, &world);
    send(&world, &calls[0], "scene_edit", 1, edit_json("a", 1, json));
    send(&world, &calls[1], "scene_drop", 2, "{\"name\":\"a\"}");
    wait_for_changes(&world, 2);
    CHECK_INT(edit(&world, "a", 2), VXD_UNAVAILABLE);
    CHECK_INT(ask(&world, "scene_branch", 0, "{\"name\":\"a\",\"new_name\":\"c\"}"),
              VXD_UNAVAILABLE);
    CHECK_INT(ask(&world, "scene_snapshot", 0, "{\"name\":\"a\",\"snapshot\":\"x\"}"),
              VXD_UNAVAILABLE);
    CHECK_INT(ask(&world, "scene_drop", 0, "{\"name\":\"a\"}"), VXD_UNAVAILABLE);
    send(&world, &calls[2], "scene_edit", 3, edit_json("b", 3, json));
    wait_for_changes(&world, 3);
    CHECK_INT(look(&world, "a", "").status, VXD_OK);
    gate_open(&gate);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(receive(&calls[i]), VXD_OK);
    }
    CHECK_INT(look(&world, "a", "").status, VXD_NOT_FOUND);
    CHECK_INT(edit(&world, "b", 4), VXD_OK);
    before = look(&world, "b", "");
    restart(&world);
    CHECK_INT(look(&world, "a", "").status, VXD_NOT_FOUND);
    check_seen(look(&world, "b", ""), before.digest, 3);
    CHECK(look(&world, "b", "").generation == before.generation);
    end(&world);
}

static void test_drop_that_fails_leaves_the_scene_as_it_was(void)
{
    struct fault_plan plan = fault_none;
    struct world world;
    struct seen before;
    char json[300];

    make_two(&world);
    before = look(&world, "a", "");
    plan.fail_at_call = 0;
    fault_disk_plan(world.disk, &plan);
    CHECK(ask(&world, "scene_drop", 1, "{\"name\":\"a\"}") != VXD_OK);
    fault_disk_plan(world.disk, &fault_none);
    check_seen(look(&world, "a", ""), before.digest, 2);
    CHECK_INT(insist(&world, "scene_edit", 2, edit_json("a", 1, json)), VXD_OK);
    CHECK_INT(ask(&world, "scene_drop", 1, "{\"name\":\"a\"}"), VXD_OK);
    CHECK_INT(look(&world, "a", "").status, VXD_NOT_FOUND);
    end(&world);
}

static enum vxd_status count_family(void *user, const struct vxd_journal_family *family,
                                    struct vxd_err *err)
{
    int *n = user;

    (void)family;
    (void)err;
    ++*n;
    return VXD_OK;
}

static void test_family_whose_scenes_were_dropped_at_once_is_forgotten(void)
{
    struct call calls[2];
    struct world world;
    struct gate gate;
    int n = 0;

    make_two(&world);
    gate_close(&gate, &world);
    send(&world, &calls[0], "scene_drop", 1, "{\"name\":\"a\"}");
    send(&world, &calls[1], "scene_drop", 2, "{\"name\":\"b\"}");
    wait_for_changes(&world, 2);
    gate_open(&gate);
    CHECK_INT(receive(&calls[0]), VXD_OK);
    CHECK_INT(receive(&calls[1]), VXD_OK);
    restart(&world);
    CHECK_INT(vxd_journal_read_families(vxd_scenes_get_journal(world.server->scenes),
                                        count_family, &n, NULL),
              VXD_OK);
    CHECK_INT(n, 0);
    end(&world);
}

/* --- snapshot files ------------------------------------------------------------------------ */

/* Has the saver write a file of family 1; so many are there then. */
static void save(struct world *world, size_t n_files)
{
    uint64_t *sequences = NULL;
    size_t n = 0;

    vxd_scene_saver_ask(world->server->scenes->saver, 1);
    for (int i = 0; i < 2000 && n < n_files; i++) {
        free(sequences);
        sequences = NULL;
        wait_ms(5);
        CHECK_INT(vxd_snapshot_list(&world->dir, 1, &sequences, &n, NULL), VXD_OK);
    }
    CHECK_INT(n, n_files);
    free(sequences);
}

static void test_files_of_a_scene_that_is_dropped_go(void)
{
    uint64_t *sequences = NULL;
    struct world world;
    size_t n = 1;

    begin(&world);
    make(&world, "a", durable);
    CHECK_INT(edit(&world, "a", 0), VXD_OK);
    save(&world, 1);
    CHECK_INT(ask(&world, "scene_drop", 0, "{\"name\":\"a\"}"), VXD_OK);
    for (int i = 0; i < 2000 && n > 0; i++) {
        free(sequences);
        sequences = NULL;
        wait_ms(5);
        CHECK_INT(vxd_snapshot_list(&world.dir, 1, &sequences, &n, NULL), VXD_OK);
    }
    CHECK_INT(n, 0);
    free(sequences);
    end(&world);
}

static void test_damaged_snapshot_file_is_replaced_by_the_one_before(void)
{
    uint64_t *sequences = NULL;
    char path[VXD_DURABLE_PATH_BYTES];
    struct world world;
    struct seen before;
    size_t n_bytes;
    uint8_t *bytes;
    size_t n = 0;

    begin(&world);
    make(&world, "a", durable);
    CHECK_INT(edit(&world, "a", 0), VXD_OK);
    save(&world, 1);
    CHECK_INT(edit(&world, "a", 1), VXD_OK);
    save(&world, 2);
    CHECK_INT(edit(&world, "a", 2), VXD_OK);
    before = look(&world, "a", "");
    stop(&world);
    CHECK_INT(
        vxd_data_dir_open(fault_disk_ops(world.disk), VXD_TEST_DIR, &world.dir, NULL),
        VXD_OK);
    CHECK_INT(vxd_snapshot_list(&world.dir, 1, &sequences, &n, NULL), VXD_OK);
    REQUIRE(n == 2);
    vxd_snapshot_path(&world.dir, 1, sequences[0], "", path);
    vxd_data_dir_close(&world.dir);
    bytes = fault_disk_bytes(world.disk, path, &n_bytes);
    REQUIRE(bytes != NULL);
    bytes[n_bytes / 2] ^= 1;
    start(&world);
    check_seen(look(&world, "a", ""), before.digest, 4);
    CHECK(look(&world, "a", "").generation == before.generation);
    CHECK_INT(edit(&world, "a", 3), VXD_OK);
    free(sequences);
    end(&world);
}

static void test_snapshot_file_while_an_undo_waits_lacks_nothing(void)
{
    struct call calls[2];
    struct world world;
    struct gate gate;
    struct seen before;
    char json[300];
    char terms[200];

    (void)snprintf(terms, sizeof terms, "%s,\"retention\":{\"versions\":3}", durable);
    begin(&world);
    make(&world, "a", terms);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(edit(&world, "a", i), VXD_OK);
    }
    gate_close(&gate, &world); /* 2 to 4 are kept */
    send(&world, &calls[0], "scene_edit", 1, edit_json("a", 5, json));
    wait_for_changes(&world, 1);
    send(&world, &calls[1], "scene_undo", 2, "{\"name\":\"a\",\"of_version\":\"3\"}");
    wait_for_changes(&world, 2);
    vxd_scene_saver_ask(world.server->scenes->saver, 1);
    wait_ms(50);
    gate_open(&gate);
    CHECK_INT(receive(&calls[0]), VXD_OK);
    CHECK_INT(receive(&calls[1]), VXD_OK);
    save(&world, 1);
    before = look(&world, "a", "");
    CHECK_INT(before.version, 6);
    restart(&world);
    check_seen(look(&world, "a", ""), before.digest, 6);
    CHECK(look(&world, "a", "").generation == before.generation);
    end(&world);
}

static void test_names_forgotten_or_moved_after_a_file_stay_so(void)
{
    struct world world;
    struct seen old;
    char terms[200];

    (void)snprintf(terms, sizeof terms, "%s,\"retention\":{\"versions\":1}", durable);
    begin(&world);
    make(&world, "a", terms);
    CHECK_INT(edit(&world, "a", 0), VXD_OK);
    old = look(&world, "a", "");
    CHECK_INT(ask(&world, "scene_snapshot", 0, "{\"name\":\"a\",\"snapshot\":\"x\"}"),
              VXD_OK);
    CHECK_INT(ask(&world, "scene_snapshot", 0, "{\"name\":\"a\",\"snapshot\":\"gone\"}"),
              VXD_OK);
    CHECK_INT(edit(&world, "a", 1), VXD_OK);
    save(&world, 1);
    for (int i = 0; i < 8; i++) {
        char json[200];

        (void)snprintf(json, sizeof json,
                       "{\"name\":\"a\",\"snapshot\":\"y%d\",\"at\":{\"version\":\"2\"}}",
                       i);
        CHECK_INT(ask(&world, "scene_snapshot", 0, json), VXD_OK);
    }
    CHECK_INT(ask(&world, "scene_snapshot", 0,
                  "{\"name\":\"a\",\"snapshot\":\"x\",\"replace\":true}"),
              VXD_OK);
    CHECK_INT(ask(&world, "scene_snapshot", 0,
                  "{\"name\":\"a\",\"snapshot\":\"gone\",\"drop\":true}"),
              VXD_OK);
    restart(&world);
    CHECK_INT(look(&world, "a", "").n_snapshots, 9);
    CHECK_INT(look(&world, "a", "gone").status, VXD_NOT_FOUND);
    CHECK_INT(look(&world, "a", "x").version, 3);
    check_seen(look(&world, "a", "y0"), old.digest, 2);
    check_seen(look(&world, "a", "y7"), old.digest, 2);
    end(&world);
}

/* --- the end ------------------------------------------------------------------------------- */

static void test_drain_answers_commits_that_wait_and_keeps_their_outcome(void)
{
    struct call calls[N_FLIGHT];
    struct world world;
    struct gate gate;
    char json[300];

    begin(&world);
    make(&world, "a", durable);
    gate_close(&gate, &world);
    for (int i = 0; i < N_FLIGHT; i++) {
        send(&world, &calls[i], "scene_edit", 1 + (uint64_t)i, edit_json("a", i, json));
    }
    wait_for_changes(&world, N_FLIGHT);
    CHECK(!vxd_scheduler_drain(world.server->scheduler, 20));
    for (int i = 0; i < N_FLIGHT; i++) {
        CHECK(call_is_answered(&calls[i]));
        CHECK_INT(call_wait(&calls[i]), VXD_UNAVAILABLE);
    }
    gate_open(&gate);
    for (int i = 0; i < N_FLIGHT; i++) {
        call_finish(&calls[i]);
    }
    restart(&world);
    check_seen(look(&world, "a", ""), NULL, 1 + N_FLIGHT);
    CHECK_INT(version_of(&world, N_FLIGHT, edit_json("a", N_FLIGHT - 1, json)),
              1 + N_FLIGHT);
    end(&world);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_commits_that_fail_with_eio_are_taken_back),
    VXD_TEST(test_commits_on_a_full_disk_are_taken_back),
    VXD_TEST(test_commits_that_are_cut_short_are_taken_back),
    VXD_TEST(test_power_lost_in_a_commit_keeps_what_was_answered),
    VXD_TEST(test_drop_behind_waiting_commits_ends_the_scene_there),
    VXD_TEST(test_drop_that_fails_leaves_the_scene_as_it_was),
    VXD_TEST(test_family_whose_scenes_were_dropped_at_once_is_forgotten),
    VXD_TEST(test_files_of_a_scene_that_is_dropped_go),
    VXD_TEST(test_damaged_snapshot_file_is_replaced_by_the_one_before),
    VXD_TEST(test_snapshot_file_while_an_undo_waits_lacks_nothing),
    VXD_TEST(test_names_forgotten_or_moved_after_a_file_stay_so),
    VXD_TEST(test_drain_answers_commits_that_wait_and_keeps_their_outcome),
};

VXD_TEST_MAIN(tests)
