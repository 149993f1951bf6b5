// SPDX-License-Identifier: Apache-2.0
/* Durable volumes on a disk that fails: whatever was answered is there afterwards, every layer bit
 * for bit, and whatever failed is not and was never seen. */
#include "tests/support/test.h"

#include "server/instance/instance.h"
#include "server/registry/registry.h"
#include "server/registry/volumes/volumes.h"
#include "tests/support/server/scenes_disk.h"
#include "tests/support/server/server_checks.h"

VXD_TEST_HELPERS

enum {
    N_FLIGHT = 5, /* changes in flight when the disk fails */
    N_WORK = 8,   /* changes of a workload */
    MIN_CALLS = 8,
    MAX_CALLS = 200,
    JSON_BYTES = 800
};

static const char durable[] = ",\"durable\":true";

/* --- requests ------------------------------------------------------------------------------- */

static void make_volume(struct world *world, const char *name, const char *more)
{
    char json[JSON_BYTES];

    (void)snprintf(json, sizeof json,
                   "{\"name\":\"%s\",\"voxelSizeM\":0.1,\"truncationM\":0.3,"
                   "\"compact\":true%s}",
                   name, more);
    CHECK_INT(world_ask(world, "volume_create", 0, json), VXD_OK);
}

/* 8 x 6 pixels of one depth as base64: three pixels are eight letters. */
static void encode_depth(unsigned millimetres, char out[129])
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    unsigned low = millimetres & 255;
    unsigned high = millimetres >> 8;

    for (int i = 0; i < 128; i += 8) {
        const unsigned words[2] = {low << 16 | high << 8 | low,
                                   high << 16 | low << 8 | high};

        for (int k = 0; k < 8; k++) {
            out[i + k] = letters[words[k / 4] >> (18 - 6 * (k % 4)) & 63];
        }
    }
    out[128] = '\0';
}

/* The i-th of changes that are all different, of every kind: its parameter, and its method. */
static const char *change_of(const char *name, int i, char json[JSON_BYTES])
{
    char depth[129];

    if (i % 4 == 2) {
        (void)snprintf(json, JSON_BYTES,
                       "{\"name\":\"%s\",\"box\":{\"low\":{\"x\":-9,\"y\":-9,\"z\":0},"
                       "\"high\":{\"x\":%g,\"y\":9,\"z\":9}}}",
                       name, 0.05 * i - 0.3);
        return "volume_clear";
    }
    if (i % 4 == 3) {
        (void)snprintf(json, JSON_BYTES,
                       "{\"name\":\"%s\",\"factor\":0.6,\"minWeight\":%g,\"all\":true}",
                       name, 0.1 * i);
        return "volume_decay";
    }
    encode_depth(900 + 70 * (unsigned)i, depth);
    (void)snprintf(json, JSON_BYTES,
                   "{\"name\":\"%s\",\"camera\":{\"width\":8,\"height\":6,\"fx\":7,"
                   "\"cx\":4,\"cy\":3},\"depthType\":\"VOLUME_DEPTH_UINT16\","
                   "\"weight\":%d,\"depth\":\"%s\"}",
                   name, i + 2, depth);
    return "volume_integrate";
}

static enum vxd_status change(struct world *world, const char *name, int i,
                              uint64_t sequence)
{
    char json[JSON_BYTES];
    const char *method = change_of(name, i, json);

    return world_ask(world, method, sequence, json);
}

/* --- what everybody sees --------------------------------------------------------------------- */

struct view {
    enum vxd_status status;
    uint64_t digest; /* of entries, keys and all layers */
    uint64_t stamp;
    uint64_t generation;
};

static uint64_t fnv(uint64_t hash, const void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        hash = (hash ^ ((const uint8_t *)bytes)[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

/* Reads the engine's volume, which no request changes now. */
static void read_layers(struct world *world, const char *name, struct view *view)
{
    struct vxd_volumes *volumes = world->server->volumes;
    struct vxd_queue *queue = vxd_volumes_queue(volumes);
    const struct vxd_named_volume *named = vxd_volumes_peek(volumes, name);
    struct vxd_volume_layer layers[VXD_VOLUME_MAX_LAYERS];
    int n_layers = vxd_volume_get_layers(named->volume, layers);
    struct vxd_volume_blocks blocks;
    struct vxd_volume_info info;
    int32_t *entries = NULL;
    size_t n = 0;

    vxd_volume_get_info(named->volume, &info);
    REQUIRE(vxd_volume_list_changed(queue, named->volume, 0, &entries, &n, NULL) ==
            VXD_OK);
    REQUIRE(vxd_volume_read_blocks(queue, named->volume, entries, n, true, &blocks,
                                   NULL) == VXD_OK);
    view->digest = fnv(UINT64_C(0xcbf29ce484222325), entries, n * sizeof *entries);
    view->digest = fnv(view->digest, &named->n_images, sizeof named->n_images);
    if (n > 0) {
        view->digest = fnv(view->digest, blocks.keys, 3 * n * sizeof(int32_t));
    }
    for (int i = 0; i < n_layers && n > 0; i++) {
        view->digest = fnv(view->digest, blocks.layers[i],
                           n * layers[i].n_elements * vxd_dtype_bytes(layers[i].dtype));
    }
    view->stamp = info.version;
    view->generation = named->generation;
    vxd_volume_blocks_free(queue, &blocks);
    free(entries);
}

/* Waits where a failure left what has to go first, at most 5 s. */
static struct view look(struct world *world, const char *name)
{
    struct view view = {0};
    char json[100];

    (void)snprintf(json, sizeof json, "{\"name\":\"%s\"}", name);
    view.status = world_ask(world, "volume_get", 0, json);
    for (int i = 0; i < 500 && view.status == VXD_UNAVAILABLE; i++) {
        wait_ms(10);
        view.status = world_ask(world, "volume_get", 0, json);
    }
    if (view.status == VXD_OK) {
        read_layers(world, name, &view);
    }
    return view;
}

static void check_view(struct view view, uint64_t digest)
{
    CHECK_INT(view.status, VXD_OK);
    CHECK(view.digest == digest);
}

/* Digests after each change, from a volume in memory. */
static void expect(struct world *world, uint64_t *digests, int n)
{
    make_volume(world, "model", "");
    for (int i = 0; i < n; i++) {
        CHECK_INT(change(world, "model", i, 0), VXD_OK);
        digests[i] = look(world, "model").digest;
    }
}

/* --- commits that fail --------------------------------------------------------------------- */

/* Changes in flight while call number k fails; true when none of them did. */
static bool fail_call(struct world *world, int k, enum fault_kind kind,
                      const uint64_t *digests)
{
    struct fault_plan plan = fault_none;
    struct call calls[N_FLIGHT];
    struct call reader;
    char json[JSON_BYTES];
    struct gate gate;
    int n_ok = 0;

    gate_close(&gate, world);
    for (int i = 0; i < N_FLIGHT; i++) {
        const char *method = change_of("a", i + 1, json);

        world_send(world, &calls[i], method, 10 + (uint64_t)i, json);
    }
    world_wait_for_changes(world, N_FLIGHT);
    world_send(world, &reader, "volume_extract", 0, "{\"name\":\"a\"}");
    world_wait_for_changes(world, N_FLIGHT + 1);
    CHECK(!call_is_answered(&reader)); /* it would show a change that is not decided */
    plan.fail_at_call = k;
    plan.fail_kind = kind;
    fault_disk_plan(world->disk, &plan);
    gate_open(&gate);
    for (int i = 0; i < N_FLIGHT; i++) {
        bool is_ok = world_receive(&calls[i]) == VXD_OK;

        /* What was built on one that failed has failed too. */
        CHECK(!is_ok || n_ok == i);
        n_ok += is_ok ? 1 : 0;
    }
    CHECK(world_receive(&reader) != VXD_OK || n_ok == N_FLIGHT);
    fault_disk_plan(world->disk, &fault_none);
    check_view(look(world, "a"), digests[n_ok]);
    for (int i = 0; i < N_FLIGHT; i++) {
        const char *method = change_of("a", i + 1, json);

        CHECK_INT(world_insist(world, method, 10 + (uint64_t)i, json), VXD_OK);
    }
    check_view(look(world, "a"), digests[N_FLIGHT]);
    return n_ok == N_FLIGHT;
}

static void test_volume_changes_that_fail_are_taken_back(void)
{
    uint64_t digests[N_FLIGHT + 1];
    bool is_over = false;

    for (int k = 0;
         k < MAX_CALLS && !(is_over && k >= MIN_CALLS) && vxd_test_n_failed_checks == 0;
         k += 3) {
        struct world world;
        struct view before;
        struct view after;

        world_begin(&world);
        expect(&world, digests, N_FLIGHT + 1);
        make_volume(&world, "a", durable);
        CHECK_INT(change(&world, "a", 0, 0), VXD_OK);
        is_over = fail_call(&world, k, k % 6 == 0 ? FAULT_EIO : FAULT_ENOSPC, digests);
        before = look(&world, "a");
        world_stop(&world);
        fault_disk_lose_power(world.disk, FAULT_DROP_ALL, 1);
        world_start(&world);
        after = look(&world, "a");
        check_view(after, digests[N_FLIGHT]);
        CHECK(after.generation == before.generation && after.stamp == before.stamp);
        CHECK_INT(change(&world, "a", 3, 12), VXD_OK); /* as before: nothing happens */
        check_view(look(&world, "a"), digests[N_FLIGHT]);
        world_end(&world);
    }
    CHECK(is_over);
}

/* --- power that goes ----------------------------------------------------------------------- */

/* Changes, with a snapshot file between them, until one is not answered OK; how many were. */
static int work(struct world *world)
{
    for (int i = 0; i < N_WORK; i++) {
        if (change(world, "a", i, 20 + (uint64_t)i) != VXD_OK) {
            return i;
        }
        if (i == 3) {
            (void)world_save(world, 1, 1, 40);
        }
    }
    return N_WORK;
}

/* Power is lost at sync number k; true when the work was done before it. */
static bool lose_power(int k, enum fault_loss loss, const uint64_t *digests)
{
    struct fault_plan plan = fault_none;
    struct world world;
    struct view view;
    uint64_t generation;
    uint64_t empty;
    int n_done;

    world_begin(&world);
    make_volume(&world, "a", durable);
    generation = look(&world, "a").generation;
    empty = look(&world, "a").digest;
    plan.crash_at_sync = k;
    fault_disk_plan(world.disk, &plan);
    n_done = work(&world);
    world_stop(&world);
    fault_disk_lose_power(world.disk, loss, (uint64_t)k + 7);
    fault_disk_plan(world.disk, &fault_none);
    world_start(&world);
    view = look(&world, "a");
    /* A change that was not answered may be there as a whole, or not at all. */
    CHECK_INT(view.status, VXD_OK);
    CHECK(view.generation == generation);
    CHECK(view.digest == (n_done > 0 ? digests[n_done - 1] : empty) ||
          (n_done < N_WORK && view.digest == digests[n_done]));
    for (int i = n_done; i < N_WORK; i++) {
        CHECK_INT(change(&world, "a", i, 20 + (uint64_t)i), VXD_OK);
    }
    check_view(look(&world, "a"), digests[N_WORK - 1]);
    world_end(&world);
    return n_done == N_WORK;
}

static void test_power_lost_at_any_sync_keeps_what_was_answered(void)
{
    uint64_t digests[N_WORK];
    struct world world;
    bool is_over = false;

    world_begin(&world);
    expect(&world, digests, N_WORK);
    world_end(&world);
    for (int k = 0; k < MAX_CALLS && !is_over && vxd_test_n_failed_checks == 0; k++) {
        is_over = lose_power(k, (enum fault_loss)(k % FAULT_N_LOSSES), digests);
    }
    CHECK(is_over);
}

/* --- made, copied and dropped --------------------------------------------------------------- */

static void test_copy_of_what_fails_is_not_there(void)
{
    struct fault_plan plan = fault_none;
    struct world world;
    struct call calls[3];
    struct gate gate;
    char json[JSON_BYTES];

    world_begin(&world);
    make_volume(&world, "a", durable);
    CHECK_INT(change(&world, "a", 0, 0), VXD_OK);
    gate_close(&gate, &world);
    world_send(&world, &calls[0], change_of("a", 1, json), 1, json);
    world_send(&world, &calls[1], "volume_copy", 2,
               "{\"name\":\"a\",\"to\":\"durable\",\"durable\":true}");
    world_send(&world, &calls[2], "volume_copy", 3, "{\"name\":\"a\",\"to\":\"memory\"}");
    world_wait_for_changes(&world, 3);
    plan.fail_at_call = 0;
    fault_disk_plan(world.disk, &plan);
    gate_open(&gate);
    for (int i = 0; i < 3; i++) {
        CHECK(world_receive(&calls[i]) != VXD_OK);
    }
    fault_disk_plan(world.disk, &fault_none);
    CHECK_INT(look(&world, "durable").status, VXD_NOT_FOUND);
    CHECK_INT(look(&world, "memory").status, VXD_NOT_FOUND);
    CHECK_INT(world_insist(&world, "volume_copy", 2,
                           "{\"name\":\"a\",\"to\":\"durable\",\"durable\":true}"),
              VXD_OK);
    check_view(look(&world, "durable"), look(&world, "a").digest);
    world_end(&world);
}

static void test_drop_behind_waiting_changes_takes_the_volume_away(void)
{
    struct call calls[2];
    struct world world;
    struct gate gate;
    char json[JSON_BYTES];

    world_begin(&world);
    make_volume(&world, "a", durable);
    gate_close(&gate, &world);
    world_send(&world, &calls[0], change_of("a", 0, json), 1, json);
    world_send(&world, &calls[1], "volume_drop", 2, "{\"name\":\"a\"}");
    world_wait_for_changes(&world, 2);
    CHECK_INT(change(&world, "a", 1, 0), VXD_UNAVAILABLE);
    gate_open(&gate);
    CHECK_INT(world_receive(&calls[0]), VXD_OK);
    CHECK_INT(world_receive(&calls[1]), VXD_OK);
    CHECK_INT(look(&world, "a").status, VXD_NOT_FOUND);
    world_stop(&world);
    world_start(&world);
    CHECK_INT(look(&world, "a").status, VXD_NOT_FOUND);
    world_end(&world);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_volume_changes_that_fail_are_taken_back),
    VXD_TEST(test_power_lost_at_any_sync_keeps_what_was_answered),
    VXD_TEST(test_copy_of_what_fails_is_not_there),
    VXD_TEST(test_drop_behind_waiting_changes_takes_the_volume_away),
};

VXD_TEST_MAIN(tests)
