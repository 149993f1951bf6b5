// SPDX-License-Identifier: Apache-2.0
/* What a start makes of a journal whose changes it may put together: every version that was there
 * is there, as it was, whatever was passed over. */
#include "tests/support/test.h"

#include <inttypes.h>

#include "server/durable/record/record.h"
#include "server/registry/registry.h"
#include "server/registry/scenes/scenes_recover.h"
#include "server/registry/scenes/scenes_replay.h"
#include "tests/support/server/server_checks.h"
#include "tests/support/server/scenes_disk.h"
#include "voxeld/v1/scene.pb-c.h"
#include "voxeld/v1/scene_version.pb-c.h"

VXD_TEST_HELPERS

enum {
    JSON_BYTES = 1200,
    DUMP_BYTES = 1 << 20,
    N_HEADS = 3,
    N_STEPS = 260
};

static const char *const heads[N_HEADS] = {"a", "b", "c"};

/* --- edits, which may be made to fail ------------------------------------------------------ */

enum vxd_status __wrap_vxd_svdag_edit_wait(struct vxd_queue *queue,
                                           struct vxd_svdag *svdag, uint32_t root,
                                           const struct vxd_svdag_op *ops, size_t n_ops,
                                           struct vxd_svdag_edit_result *out,
                                           struct vxd_err *err);
enum vxd_status __real_vxd_svdag_edit_wait(struct vxd_queue *queue,
                                           struct vxd_svdag *svdag, uint32_t root,
                                           const struct vxd_svdag_op *ops, size_t n_ops,
                                           struct vxd_svdag_edit_result *out,
                                           struct vxd_err *err);

static size_t n_most_ops = SIZE_MAX; /* edits of more fail */
static int n_failed;

/* The linker puts this in front of the engine's (--wrap). */
enum vxd_status __wrap_vxd_svdag_edit_wait(struct vxd_queue *queue,
                                           struct vxd_svdag *svdag, uint32_t root,
                                           const struct vxd_svdag_op *ops, size_t n_ops,
                                           struct vxd_svdag_edit_result *out,
                                           struct vxd_err *err)
{
    if (n_ops > n_most_ops) {
        n_failed++;
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no room");
    }
    return __real_vxd_svdag_edit_wait(queue, svdag, root, ops, n_ops, out, err);
}

/* --- what there is to see ------------------------------------------------------------------ */

struct dump {
    char text[DUMP_BYTES];
    size_t n;
};

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static void
say(struct dump *dump, const char *format, ...)
{
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(dump->text + dump->n, sizeof dump->text - dump->n, format, args);
    va_end(args);
    dump->n += n > 0 ? (size_t)n : 0;
    if (dump->n >= sizeof dump->text) {
        abort();
    }
}

static void say_digest(struct world *world, struct dump *dump, const char *name,
                       uint64_t version)
{
    Voxeld__V1__SceneGetResponse *reply;
    struct call call;
    char json[200];

    (void)snprintf(json, sizeof json,
                   "{\"name\":\"%s\",\"at\":{\"version\":\"%" PRIu64 "\"}}", name,
                   version);
    world_send(world, &call, "scene_get", 0, json);
    if (call_wait(&call) == VXD_OK) {
        reply = voxeld__v1__scene_get_response__unpack(NULL, call.n_packed, call.packed);
        say(dump, " %s\n", reply->scene->digest);
        voxeld__v1__scene_get_response__free_unpacked(reply, NULL);
    } else {
        say(dump, " no digest\n");
    }
    call_finish(&call);
}

static void say_log(struct world *world, struct dump *dump, const char *name,
                    const Voxeld__V1__SceneLogResponse *log)
{
    say(dump, "%s at %" PRIu64 " from %" PRIu64 ", sharing %u\n", name, log->version,
        log->oldest, log->n_sharing);
    for (size_t i = 0; i < log->n_versions; i++) {
        const Voxeld__V1__SceneVersion *v = log->versions[i];

        say(dump,
            "%" PRIu64 " kind %d of %" PRIu64 " at %" PRId64 " by %s %s: %" PRIu64
            " %" PRIu64 " %" PRIu64 " %" PRIu64 ", undone by %" PRIu64,
            v->version, (int)v->kind, v->of_version, v->stamp_ns, v->by, v->client_id,
            v->n_added, v->n_removed, v->n_changed, v->n_freed, v->undone_by);
        say_digest(world, dump, name, v->version);
    }
    for (size_t i = 0; i < log->n_snapshots; i++) {
        const Voxeld__V1__SceneSnapshot *s = log->snapshots[i];

        say(dump, "%s is %" PRIu64 " of %" PRId64 " taken at %" PRId64 " by %s", s->name,
            s->version, s->version_ns, s->taken_ns, s->by);
        say_digest(world, dump, name, s->version);
    }
}

/* Of all scenes; with their generations, which a loss changes. */
static void look_at_all(struct world *world, bool with_generation, struct dump *dump)
{
    dump->n = 0;
    for (int i = 0; i < N_HEADS; i++) {
        Voxeld__V1__SceneLogResponse *log;
        struct call call;
        char json[100];

        (void)snprintf(json, sizeof json, "{\"name\":\"%s\",\"limit\":10000}", heads[i]);
        world_send(world, &call, "scene_log", 0, json);
        if (call_wait(&call) == VXD_OK) {
            log =
                voxeld__v1__scene_log_response__unpack(NULL, call.n_packed, call.packed);
            say_log(world, dump, heads[i], log);
            if (with_generation) {
                say(dump, "generation %" PRIu64 "\n", log->generation);
            }
            voxeld__v1__scene_log_response__free_unpacked(log, NULL);
        } else {
            say(dump, "%s is not there\n", heads[i]);
        }
        call_finish(&call);
    }
}

static struct dump before;
static struct dump after;

static void restart_and_compare(struct world *world)
{
    look_at_all(world, true, &before);
    world_stop(world);
    world_start(world);
    look_at_all(world, true, &after);
    CHECK_STR(after.text, before.text);
}

/* --- histories ----------------------------------------------------------------------------- */

static unsigned below(uint64_t *random, unsigned n)
{
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(*random >> 33) % n;
}

static int describe_operation(uint64_t *random, char *json, size_t n_bytes)
{
    static const char *const actions[] = {"FILL",  "FILL",    "FILL",  "ERASE",
                                          "PAINT", "REPLACE", "ERODE", "DILATE"};
    const char *action = actions[below(random, below(random, 4) == 0 ? 8 : 5)];
    unsigned low[3];
    char shape[300];

    for (int axis = 0; axis < 3; axis++) {
        low[axis] = below(random, 14);
    }
    if (below(random, 2) == 0) {
        (void)snprintf(shape, sizeof shape,
                       "\"box\":{\"low\":{\"x\":%u,\"y\":%u,\"z\":%u},\"high\":{\"x\":%u,"
                       "\"y\":%u,\"z\":%u}}",
                       low[0], low[1], low[2], low[0] + 1 + below(random, 8),
                       low[1] + 1 + below(random, 8), low[2] + 1 + below(random, 8));
    } else if (below(random, 3) == 0 && strcmp(action, "FILL") == 0) {
        (void)snprintf(shape, sizeof shape,
                       "\"points\":{\"positions\":{\"dtype\":\"DTYPE_FLOAT32\",\"shape\":"
                       "[\"2\",\"3\"],\"values\":[%u,%u,%u,%u,%u,%u]}}",
                       low[0], low[1], low[2], below(random, 16), below(random, 16),
                       below(random, 16));
    } else {
        (void)snprintf(shape, sizeof shape,
                       "\"ball\":{\"centre\":{\"x\":%u,\"y\":%u,\"z\":%u},\"radius\":%u}",
                       low[0], low[1], low[2], 1 + below(random, 5));
    }
    return snprintf(json, n_bytes, "{%s,\"action\":\"SCENE_%s\",\"material\":%u}", shape,
                    action, below(random, 7));
}

static char terms[200]; /* of scenes that are made */

static void edit(struct world *world, const char *name, uint64_t *random)
{
    char json[JSON_BYTES];
    int n_ops = 1 + (int)(below(random, 4) == 0) * (int)below(random, 3);
    int n = snprintf(json, sizeof json,
                     "{\"name\":\"%s\",\"in_voxels\":true,\"operations\":[", name);

    for (int i = 0; i < n_ops; i++) {
        n += snprintf(json + n, sizeof json - (size_t)n, "%s", i > 0 ? "," : "");
        n += describe_operation(random, json + n, sizeof json - (size_t)n);
    }
    (void)snprintf(json + n, sizeof json - (size_t)n, "]}");
    (void)world_ask(world, "scene_edit", 0, json);
}

/* One of the last versions of a scene, or 0. */
static uint64_t some_version(struct world *world, const char *name, uint64_t *random)
{
    uint64_t last = world_look(world, name, "").version;
    uint64_t back = below(random, 6);

    return last > back ? last - back : 0;
}

/* Asks for something; what is refused is no change. */
static void step(struct world *world, uint64_t *random)
{
    const char *name = heads[below(random, 4) % N_HEADS];
    unsigned which = below(random, 40);
    uint64_t version;
    char json[200];

    if (which > 7) {
        edit(world, name, random);
        return;
    }
    version = some_version(world, name, random);
    if (which < 4) {
        (void)snprintf(json, sizeof json,
                       "{\"name\":\"%s\",\"of_version\":\"%" PRIu64 "\"}", name,
                       which < 3 ? version : 0);
        (void)world_ask(world, which < 2 ? "scene_undo" : "scene_redo", 0, json);
    } else if (which == 4) {
        (void)snprintf(json, sizeof json,
                       "{\"name\":\"%s\",\"snapshot\":\"s%u\",\"replace\":true,\"at\":{"
                       "\"version\":\"%" PRIu64 "\"}}",
                       name, below(random, 3), version);
        (void)world_ask(world, "scene_snapshot", 0, json);
    } else if (which == 5) {
        (void)snprintf(json, sizeof json,
                       "{\"name\":\"%s\",\"snapshot\":\"s%u\",\"drop\":true}", name,
                       below(random, 3));
        (void)world_ask(world, "scene_snapshot", 0, json);
    } else if (which == 6) {
        (void)snprintf(
            json, sizeof json,
            "{\"name\":\"%s\",\"new_name\":\"%s\",\"at\":{\"version\":\"%" PRIu64 "\"}}",
            name, heads[1 + below(random, 2)], version);
        (void)world_ask(world, "scene_branch", 0, json);
    } else if (below(random, 3) == 0) {
        (void)snprintf(json, sizeof json, "{\"name\":\"%s\"}", name);
        (void)world_ask(world, "scene_drop", 0, json);
    } else if (world_look(world, name, "").status == VXD_NOT_FOUND) {
        world_make(world, name, terms); /* in another family than the one before */
    }
}

static void make(struct world *world, unsigned n_kept)
{
    (void)snprintf(terms, sizeof terms, "%s,\"retention\":{\"versions\":%u}",
                   world_durable, n_kept);
    world_begin(world);
    world_make(world, "a", terms);
}

static void test_random_histories_come_back_as_they_were(void)
{
    static const unsigned kept[] = {1, 2, 5, 64};

    for (uint64_t seed = 1; seed <= 16 && vxd_test_n_failed_checks == 0; seed++) {
        uint64_t random = seed;
        struct world world;

        make(&world, kept[seed % 4]);
        for (int i = 0; i < N_STEPS; i++) {
            step(&world, &random);
            if (below(&random, 100) == 0) {
                restart_and_compare(&world);
            } else if (below(&random, 100) == 0) {
                vxd_registry_ask_snapshot(world.server->registry, 1 + below(&random, 4));
            }
        }
        restart_and_compare(&world);
        restart_and_compare(&world);
        world_end(&world);
    }
}

/* --- what is passed over ------------------------------------------------------------------- */

static uint64_t count_nodes(struct world *world)
{
    struct vxd_scene *scene = vxd_scenes_find(world->server->scenes, "a");
    struct vxd_svdag_usage usage = {0};

    if (scene != NULL) {
        vxd_scene_get_usage(scene, &usage);
        vxd_scene_drop(scene, world->server->scenes->queue);
    }
    return usage.n_leaves + usage.n_inner + usage.n_blocks;
}

static void edit_often(struct world *world, int n, uint64_t seed)
{
    for (int i = 0; i < n; i++) {
        edit(world, "a", &seed);
    }
}

static void test_versions_that_nobody_can_ask_for_leave_no_nodes(void)
{
    uint64_t n_nodes;
    struct world world;

    make(&world, 2);
    edit_often(&world, 300, 3);
    n_nodes = count_nodes(&world);
    restart_and_compare(&world);
    CHECK(count_nodes(&world) < n_nodes / 2);
    world_end(&world);

    make(&world, 4096);
    edit_often(&world, 300, 3);
    n_nodes = count_nodes(&world);
    restart_and_compare(&world);
    CHECK_INT(count_nodes(&world), n_nodes);
    world_end(&world);
}

/* A record behind the last, by hand. */
static void add_record(struct vxd_journal *journal, uint64_t sequence,
                       const struct vxd_record *record, size_t n_cut)
{
    struct vxd_record_bytes bytes = {0};
    struct vxd_journal_record row;
    struct vxd_journal_txn *txn = NULL;

    CHECK_INT(vxd_record_encode(record, &bytes, NULL), VXD_OK);
    row = (struct vxd_journal_record){.family = 1,
                                      .sequence = sequence,
                                      .rules_version = VXD_RULES_VERSION,
                                      .kind = (uint32_t)record->kind,
                                      .bytes = bytes.bytes,
                                      .n_bytes = bytes.n_bytes - n_cut};
    CHECK_INT(vxd_journal_begin(journal, &txn, NULL), VXD_OK);
    CHECK_INT(vxd_journal_add_record(txn, &row, NULL), VXD_OK);
    CHECK_INT(vxd_journal_commit_wait(txn, NULL), VXD_OK);
    vxd_record_bytes_free(&bytes);
}

/* Behind the end of what is good come a record that is not and more versions, which the plan counts
 * on: what is kept then is what the good ones end with. */
static void test_records_that_end_sooner_than_foreseen_lose_no_kept_version(void)
{
    static const struct vxd_svdag_op op = {
        .shape = {.kind = VXD_SVDAG_BOX, .high = {1024, 1024, 1024}}, .value = 1};
    struct vxd_record record = {
        .kind = VXD_RECORD_EDIT, .head = "a", .ops = &op, .n_ops = 1};
    const struct vxd_journal_options options = {0};
    struct vxd_journal_found found;
    struct vxd_journal *journal = NULL;
    struct world world;
    uint64_t sequence;

    make(&world, 5);
    edit_often(&world, 100, 5);
    look_at_all(&world, false, &before);
    sequence = world.server->scenes->families->sequence;
    record.version = (struct vxd_version){world_look(&world, "a", "").generation,
                                          world_look(&world, "a", "").version};
    world_stop(&world);

    REQUIRE(vxd_data_dir_open(fault_disk_ops(world.disk), WORLD_DIR, &world.dir, NULL) ==
            VXD_OK);
    REQUIRE(vxd_journal_open(&world.dir, &options, &journal, &found, NULL) == VXD_OK);
    for (int i = 0; i < 80; i++) {
        record.version.n++;
        add_record(journal, ++sequence, &record, i == 0 ? 3 : 0);
    }
    CHECK_INT(vxd_journal_close(journal, NULL), VXD_OK);
    vxd_data_dir_close(&world.dir);

    world_start(&world);
    look_at_all(&world, false, &after);
    CHECK_STR(after.text, before.text);
    CHECK_INT(world_edit(&world, "a", 1), VXD_OK);
    restart_and_compare(&world);
    world_end(&world);
}

/* --- changes that do not go together --------------------------------------------------------- */

struct planned {
    struct vxd_scene_plan plan;
    struct vxd_scene scene;
    struct vxd_svdag_op ops[4];
    struct vxd_record_decoded records[8];
};

static void plan_edits(struct planned *planned, size_t n)
{
    memset(planned, 0, sizeof *planned);
    planned->scene.terms.keep_versions = 1;
    for (size_t i = 0; i < n; i++) {
        planned->records[i].record = (struct vxd_record){.kind = VXD_RECORD_EDIT,
                                                         .head = "a",
                                                         .version = {1, 2 + i},
                                                         .ops = planned->ops,
                                                         .n_ops = 1};
    }
}

static size_t count_together(struct planned *planned, size_t n, size_t from)
{
    size_t n_together;

    for (size_t i = 0; i < n; i++) {
        vxd_scene_plan_record(&planned->plan, 1 + i, &planned->records[i].record);
    }
    n_together = vxd_scene_plan_count(&planned->plan, &planned->scene, 1 + from,
                                      planned->records + from, n - from);
    vxd_scene_plan_free(&planned->plan);
    return n_together;
}

static void test_changes_go_together_up_to_what_is_asked_for(void)
{
    static struct planned planned;

    plan_edits(&planned, 8); /* 2 to 9: 8, before the last that is kept, is kept too */
    CHECK_INT(count_together(&planned, 8, 0), 7);
    CHECK_INT(count_together(&planned, 8, 6), 1);
    CHECK_INT(count_together(&planned, 8, 7), 1);

    plan_edits(&planned, 8); /* 4 has a name: 2 and 3, 4 */
    vxd_scene_plan_name(&planned.plan, "b", 3);
    vxd_scene_plan_name(&planned.plan, "a", 4);
    CHECK_INT(count_together(&planned, 8, 0), 2);

    plan_edits(&planned, 8); /* 8 undoes 3: 2, 3 */
    planned.records[6].record.kind = VXD_RECORD_UNDO;
    planned.records[6].record.of_version.n = 3;
    planned.records[6].record.n_ops = 0;
    CHECK_INT(count_together(&planned, 8, 0), 1);
    plan_edits(&planned, 8);
    planned.records[6].record.kind = VXD_RECORD_UNDO;
    planned.records[6].record.of_version.n = 3;
    planned.records[6].record.n_ops = 0;
    CHECK_INT(count_together(&planned, 8, 2), 4); /* 4 to 7, and the undo */

    plan_edits(&planned, 8); /* another begins with 4 */
    planned.records[6].record.kind = VXD_RECORD_BRANCH;
    (void)snprintf(planned.records[6].record.head, VXD_RECORD_NAME_BYTES, "b");
    (void)snprintf(planned.records[6].record.from, VXD_RECORD_NAME_BYTES, "a");
    planned.records[6].record.of_version.n = 4;
    CHECK_INT(count_together(&planned, 8, 0), 3);

    plan_edits(&planned, 8); /* one is another scene's */
    (void)snprintf(planned.records[3].record.head, VXD_RECORD_NAME_BYTES, "b");
    CHECK_INT(count_together(&planned, 8, 0), 3);

    plan_edits(&planned, 8); /* one has operations that look at what was before */
    planned.ops[3].action = VXD_SVDAG_ERODE;
    planned.records[2].record.ops = &planned.ops[3];
    CHECK_INT(count_together(&planned, 8, 0), 2);
    plan_edits(&planned, 8);
    planned.ops[3].action = VXD_SVDAG_ERODE;
    planned.records[2].record.ops = &planned.ops[3];
    CHECK_INT(count_together(&planned, 8, 2), 1);
}

static void test_scans_go_together_as_far_as_the_backend_has_a_pass_for_them(void)
{
    static struct planned planned;

    for (int backend = VXD_BACKEND_CPU; backend <= VXD_BACKEND_CUDA; backend++) {
        plan_edits(&planned, 8); /* two lists each */
        planned.plan.backend = (enum vxd_backend)backend;
        planned.ops[0].shape.kind = VXD_SVDAG_VOXELS;
        planned.ops[1].shape.kind = VXD_SVDAG_VOXELS;
        for (size_t i = 0; i < 8; i++) {
            planned.records[i].record.n_ops = 2;
        }
        CHECK_INT(count_together(&planned, 8, 0), backend == VXD_BACKEND_CPU ? 7 : 2);
    }
}

static void test_nothing_goes_together_without_a_plan(void)
{
    static struct planned planned;

    plan_edits(&planned, 8);
    CHECK_INT(vxd_scene_plan_count(&planned.plan, &planned.scene, 1, planned.records, 8),
              1);
}

static void test_changes_that_fail_together_are_made_alone(void)
{
    uint64_t n_nodes;
    struct world world;

    make(&world, 2);
    for (int i = 0; i < 150; i++) {
        CHECK_INT(world_edit(&world, "a", i % 13), VXD_OK); /* one operation */
    }
    n_nodes = count_nodes(&world);
    n_most_ops = 1;
    restart_and_compare(&world);
    n_most_ops = SIZE_MAX;
    CHECK_INT(n_failed, 7); /* half as many each time, not each of them */
    CHECK_INT(count_nodes(&world), n_nodes);
    restart_and_compare(&world);
    CHECK(count_nodes(&world) < n_nodes);
    world_end(&world);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_random_histories_come_back_as_they_were),
    VXD_TEST(test_versions_that_nobody_can_ask_for_leave_no_nodes),
    VXD_TEST(test_records_that_end_sooner_than_foreseen_lose_no_kept_version),
    VXD_TEST(test_changes_go_together_up_to_what_is_asked_for),
    VXD_TEST(test_scans_go_together_as_far_as_the_backend_has_a_pass_for_them),
    VXD_TEST(test_nothing_goes_together_without_a_plan),
    VXD_TEST(test_changes_that_fail_together_are_made_alone),
};

VXD_TEST_MAIN(tests)
