// SPDX-License-Identifier: Apache-2.0
/* Fails the k-th allocation, for every k, of a server that opens and of a request on its
 * way through it: each time there is one answer, RESOURCE_EXHAUSTED, nothing is left in
 * flight (server_finish looks) or leaks (the sanitizer builds look), and the next request is
 * served. The linker puts our allocators in front (--wrap). */
#include "tests/support/test.h"

#include <stdlib.h>
#include <unistd.h>

#include "server/method_table.h"
#include "server/model/model.h"
#include "server/server.h"
#include "tests/support/failing_alloc.h"
#include "tests/support/server/server_checks.h"
#include "tests/support/server/server_helpers.h"
#include "voxeld/v1/scene.pb-c.h"

VXD_TEST_HELPERS

enum {
    ENOUGH = 10000,
    N_POINTS = 5000 /* more than the decoder keeps in its chunks */
};

static const struct vxd_query_item query[] = {
    {"size", "0.5"},
    {"reduce", "mean,max"},
    {"features", "x,intensity"},
    {"outputs", "coords,counts,inverse,points,first_index"},
    {"max_points", "4"},
    {"max_voxels", "1000"},
    {"range", "0,0,0,8,8,8"},
};

/* The last request was done, but the helper had no memory for the copy of its reply. */
static bool lost_reply;

/* One request through create, admit and submit; what came of it. */
static enum vxd_status send_request(struct vxd_server *server, const char *method,
                                    const struct vxd_body *body)
{
    const struct vxd_request_header header = {.peer = "test", .peer_uid = -1};
    struct vxd_request *request = NULL;
    struct vxd_err err = {0};
    enum vxd_status status;
    struct call call;

    status = vxd_request_create(server, &header, &request, &err);
    if (request == NULL) {
        CHECK(err.message[0] != '\0');
        return status;
    }
    call_begin(&call);
    call_adopt(&call, request);
    status = vxd_request_admit(request, vxd_method_by_name(vxd_method_table(), method),
                               body->n_bytes, &err);
    CHECK_INT(status, VXD_OK);
    vxd_request_submit(request, body);
    status = call_wait(&call);
    CHECK((status == VXD_OK) == (call.err.message[0] == '\0'));
    /* The helper's own copy of the reply may be what failed. */
    lost_reply = status == VXD_OK && call.packed == NULL;
    status = lost_reply ? VXD_RESOURCE_EXHAUSTED : status;
    call_finish(&call);
    return status;
}

static void fail_each(const char *method, const struct vxd_body *body, long n_min)
{
    for (long k = 0; k < ENOUGH; k++) {
        struct vxd_server *server = server_start(&(struct server_setup){0});
        enum vxd_status status;
        bool failed;

        REQUIRE(server != NULL);
        fail_allocation(k);
        status = send_request(server, method, body);
        failed = stop_failing();
        CHECK_INT(status, failed ? VXD_RESOURCE_EXHAUSTED : VXD_OK);
        CHECK_INT(send_request(server, method, body), VXD_OK);
        server_finish(server);
        if (!failed) {
            CHECK(k >= n_min);
            return;
        }
    }
    CHECK(false);
}

static void test_voxelize_any_failing_allocation_is_resource_exhausted(void)
{
    static float scan[N_POINTS][4];
    const struct vxd_body body = {.kind = VXD_BODY_FILE,
                                  .bytes = (const uint8_t *)scan,
                                  .n_bytes = sizeof scan,
                                  .format = "kitti",
                                  .query = query,
                                  .n_query = sizeof query / sizeof query[0]};

    for (int i = 0; i < N_POINTS; i++) {
        for (int k = 0; k < 4; k++) {
            scan[i][k] = (float)((i * (7 + k)) % 97) / 10;
        }
    }
    fail_each("voxelize", &body, 12);
}

static void test_status_any_failing_allocation_is_resource_exhausted(void)
{
    fail_each("status", &(struct vxd_body){.bytes = (const uint8_t *)""}, 3);
}

static void test_self_test_any_failing_allocation_is_resource_exhausted(void)
{
    static const uint8_t body[] = {0x08, 1, 0x10, 100}; /* 1 ms, 100 points */

    fail_each("self_test", &(struct vxd_body){.bytes = body, .n_bytes = sizeof body}, 10);
}

/* Sends JSON to a method and waits. */
static enum vxd_status send_json(struct vxd_server *server, const char *method,
                                 const char *json)
{
    const struct vxd_body body = {
        .kind = VXD_BODY_JSON, .bytes = (const uint8_t *)json, .n_bytes = strlen(json)};

    return send_request(server, method, &body);
}

/* What a map holds, packed: keys, numbers and values, and how often anything was erased. */
static void ask_export(struct call *call, struct vxd_server *server)
{
    call_begin(call);
    call_json(call, server, vxd_method_by_name(vxd_method_table(), "map_export"), NULL,
              "{\"name\":\"m\"}");
    CHECK_INT(call_wait(call), VXD_OK);
}

static const char make_map[] =
    "{\"name\":\"m\",\"spec\":{\"nComponents\":1,\"values\":["
    "{\"name\":\"a\",\"dtype\":\"INT32\"},{\"name\":\"b\",\"dtype\":\"FLOAT32\"}]}}";
static const char fill_map[] =
    "{\"name\":\"m\",\"keys\":{\"shape\":[3],\"values\":[5,6,7]},\"values\":["
    "{\"name\":\"a\",\"rows\":{\"shape\":[3],\"values\":[1,2,3]}}]}";

/* A change that fails has changed nothing; the same again then does it. */
static void fail_each_change(const char *method, const char *json)
{
    for (long k = 0; k < ENOUGH; k++) {
        struct vxd_server *server = server_start(&(struct server_setup){0});
        struct call before, after;
        enum vxd_status status;
        bool failed;

        REQUIRE(server != NULL);
        CHECK_INT(send_json(server, "map_create", make_map), VXD_OK);
        CHECK_INT(send_json(server, "map_insert", fill_map), VXD_OK);
        ask_export(&before, server);
        fail_allocation(k);
        status = send_json(server, method, json);
        failed = stop_failing();
        CHECK(status == VXD_OK || (failed && status == VXD_RESOURCE_EXHAUSTED));
        if (status != VXD_OK && !lost_reply) {
            ask_export(&after, server);
            CHECK_INT(after.n_packed, before.n_packed);
            CHECK(after.n_packed == before.n_packed &&
                  memcmp(after.packed, before.packed, after.n_packed) == 0);
            call_finish(&after);
            CHECK_INT(send_json(server, method, json), VXD_OK);
        }
        call_finish(&before);
        (void)send_json(server, "map_drop", "{\"name\":\"m\"}");
        (void)send_json(server, "map_drop", "{\"name\":\"n\"}");
        server_finish(server);
        if (!failed) {
            CHECK(k >= 3);
            return;
        }
    }
    CHECK(false);
}

static void test_map_change_any_failing_allocation_changes_nothing(void)
{
    fail_each_change("map_create", "{\"name\":\"n\",\"capacity\":100}");
    fail_each_change("map_insert",
                     "{\"name\":\"m\",\"keys\":{\"shape\":[4],\"values\":[7,8,9,7]},"
                     "\"values\":[{\"name\":\"b\",\"rows\":{\"shape\":[4],"
                     "\"values\":[1,2,3,4]}}]}");
    fail_each_change("map_erase",
                     "{\"name\":\"m\",\"keys\":{\"shape\":[2],\"values\":[6,9]}}");
    fail_each_change("map_erase", "{\"name\":\"m\",\"all\":true}");
    fail_each_change("map_update",
                     "{\"name\":\"m\",\"keys\":{\"shape\":[2],\"values\":[6,8]},"
                     "\"insertMissing\":true,\"values\":[{\"name\":\"a\",\"rows\":"
                     "{\"shape\":[2],\"values\":[7,8]}},{\"name\":\"b\",\"rows\":"
                     "{\"shape\":[2],\"values\":[0.5,1]}}]}");
    fail_each_change("map_drop", "{\"name\":\"m\"}");
}

static void test_map_read_any_failing_allocation_is_resource_exhausted(void)
{
    fail_each_change("map_find",
                     "{\"name\":\"m\",\"keys\":{\"shape\":[2],\"values\":[6,9]},"
                     "\"values\":[\"*\"],\"returnKeys\":true}");
    fail_each_change("map_export", "{\"name\":\"m\",\"format\":\"MAP_TENSORS\"}");
    fail_each_change("map_get", "{\"name\":\"m\"}");
    fail_each_change("map_list", "{}");
}

/* What a scene is now: its version and a digest of its voxels. Where a failed edit was, its
 * memory may have grown. */
struct look {
    uint64_t version;
    char digest[64];
};

static void look_at_scene(struct vxd_server *server, struct look *look)
{
    Voxeld__V1__SceneGetResponse *reply;
    struct call call;

    memset(look, 0, sizeof *look);
    call_begin(&call);
    call_json(&call, server, vxd_method_by_name(vxd_method_table(), "scene_get"), NULL,
              "{\"name\":\"s\"}");
    CHECK_INT(call_wait(&call), VXD_OK);
    reply = voxeld__v1__scene_get_response__unpack(NULL, call.n_packed, call.packed);
    if (reply != NULL) {
        look->version = reply->scene->version;
        (void)snprintf(look->digest, sizeof look->digest, "%s", reply->scene->digest);
    }
    CHECK(reply != NULL && look->digest[0] != '\0');
    voxeld__v1__scene_get_response__free_unpacked(reply, NULL);
    call_finish(&call);
}

static const char make_scene[] =
    "{\"name\":\"s\",\"spec\":{\"voxelSizeM\":0.1,\"depth\":7,\"materialBits\":8,"
    "\"trackFree\":true,\"palette\":[{\"name\":\"a\",\"rgb\":255},{\"rgb\":16711680}]}}";
static const char fill_scene[] =
    "{\"name\":\"s\",\"operations\":[{\"ball\":{\"centre\":{},\"radius\":1.5},"
    "\"material\":3}]}";

/* A change that fails has changed nothing; the same again then does it. Reads likewise. */
static void fail_each_of_scene(const char *method, const char *json)
{
    for (long k = 0; k < ENOUGH; k++) {
        struct vxd_server *server = server_start(&(struct server_setup){0});
        struct look before, after;
        enum vxd_status status;
        bool failed;

        REQUIRE(server != NULL);
        CHECK_INT(send_json(server, "scene_create", make_scene), VXD_OK);
        CHECK_INT(send_json(server, "scene_edit", fill_scene), VXD_OK);
        look_at_scene(server, &before);
        fail_allocation(k);
        status = send_json(server, method, json);
        failed = stop_failing();
        CHECK(status == VXD_OK || (failed && status == VXD_RESOURCE_EXHAUSTED));
        if (status != VXD_OK && !lost_reply) {
            look_at_scene(server, &after);
            CHECK_INT(after.version, before.version);
            CHECK(strcmp(after.digest, before.digest) == 0);
            CHECK_INT(send_json(server, method, json), VXD_OK);
        }
        (void)send_json(server, "scene_drop", "{\"name\":\"s\"}");
        (void)send_json(server, "scene_drop", "{\"name\":\"t\"}");
        server_finish(server);
        if (!failed) {
            CHECK(k >= 3);
            return;
        }
    }
    CHECK(false);
}

static void test_scene_change_any_failing_allocation_changes_nothing(void)
{
    fail_each_of_scene("scene_create",
                       "{\"name\":\"t\",\"spec\":{\"voxelSizeM\":1,\"materialBits\":4,"
                       "\"palette\":[{\"name\":\"x\"}]}}");
    fail_each_of_scene(
        "scene_edit",
        "{\"name\":\"s\",\"operations\":[{\"points\":{\"points\":{\"shape\":[2,3],"
        "\"values\":[0,0,0,2,2,2]},\"materials\":{\"shape\":[2],\"values\":[1,2]}}},"
        "{\"heightfield\":{\"heights\":{\"shape\":[2,2],\"values\":[0,1,2,\"NaN\"]},"
        "\"cell\":0.2},\"action\":\"SCENE_ERASE\"},{\"box\":{\"low\":{},\"high\":"
        "{\"x\":1,\"y\":1,\"z\":1}},\"action\":\"SCENE_DILATE\"}]}");
    /* Two points of x, y, z and a colour: 24 zero bytes and (1, 1, 1), 0xff. */
    fail_each_of_scene(
        "scene_integrate",
        "{\"name\":\"s\",\"cloud\":{\"fields\":[{\"name\":\"x\",\"dtype\":\"FLOAT32\"},"
        "{\"name\":\"y\",\"offset\":4,\"dtype\":\"FLOAT32\"},{\"name\":\"z\","
        "\"offset\":8,\"dtype\":\"FLOAT32\"},{\"name\":\"rgb\",\"offset\":12,"
        "\"dtype\":\"UINT32\"}],\"pointStep\":16,"
        "\"data\":\"AAAAAAAAAAAAAAAAAAAAAAAAgD8AAIA/AACAP/8AAAA=\","
        "\"sweeps\":[{\"data\":\"AABAQAAAQEAAAEBAAAAAAA==\"}]},"
        "\"carve\":{\"maxRangeM\":9},\"rule\":{\"kind\":\"COLOUR\"}}");
    fail_each_of_scene("scene_drop", "{\"name\":\"t\",\"missingOk\":true}");
}

static void test_scene_read_any_failing_allocation_is_resource_exhausted(void)
{
    fail_each_of_scene("scene_get", "{\"name\":\"s\"}");
    fail_each_of_scene("scene_list", "{}");
    fail_each_of_scene("scene_values", "{\"name\":\"s\",\"points\":{\"shape\":[1,3],"
                                       "\"values\":[0,0,0]}}");
    fail_each_of_scene("scene_nearest", "{\"name\":\"s\",\"radiusM\":1,\"points\":"
                                        "{\"shape\":[1,3],\"values\":[0,0,0]}}");
    fail_each_of_scene("scene_cast_rays",
                       "{\"name\":\"s\",\"maxRangeM\":9,\"origins\":{\"shape\":[1,3],"
                       "\"values\":[3,0,0]},\"directions\":{\"shape\":[1,3],"
                       "\"values\":[-1,0,0]}}");
    fail_each_of_scene("scene_overlap", "{\"name\":\"s\",\"counts\":true,\"balls\":"
                                        "{\"shape\":[1,4],\"values\":[0,0,0,1]}}");
    fail_each_of_scene("scene_export", "{\"name\":\"s\",\"withCounts\":true}");
    fail_each_of_scene("scene_export",
                       "{\"name\":\"s\",\"withCounts\":true,\"format\":\"SCENE_PLY\"}");
    fail_each_of_scene("scene_export",
                       "{\"name\":\"s\",\"format\":\"SCENE_DENSE\",\"box\":{\"low\":{},"
                       "\"high\":{\"x\":1,\"y\":1,\"z\":1}}}");
}

static const char net_config[] =
    "{\"format\": \"voxeld-net/1\", \"name\": \"net\", \"axes\": [\"x\", \"y\", \"z\"],"
    " \"semantics\": \"spconv\", \"weights\": {\"file\": \"net.safetensors\", \"layout\":"
    " \"krsc\"}, \"input\": {\"mode\": \"voxelize\", \"voxel_size\": 0.5, \"features\":"
    " [\"x\", 1], \"range\": [0, 0, 0, 4, 4, 4], \"bounded\": [8, 8, 8], \"reduce\":"
    " \"mean\"}, \"defaults\": {\"kernel\": 3, \"bn\": null, \"act\": \"relu\"}, "
    "\"layers\":"
    " [{\"name\": \"a\", \"op\": \"subm\", \"ch\": 4}, {\"name\": \"d\", \"op\": "
    "\"conv\","
    " \"ch\": 3, \"stride\": 2, \"padding\": 1}, {\"name\": \"g\", \"op\": \"global\","
    " \"kind\": \"max\"}], \"outputs\": [{\"name\": \"l\", \"from\": \"a\", \"as\":"
    " \"points\", \"argmax\": true}, {\"name\": \"v\", \"from\": \"d\", \"as\": "
    "\"voxels\"},"
    " {\"name\": \"g\", \"from\": \"g\", \"as\": \"vector\"}]}";

/* A directory with that config and random weights; false, and a failed check, without. */
static bool make_networks(char directory[32])
{
    char path[64];
    FILE *file;

    (void)snprintf(directory, 32, "/tmp/vxd-net-XXXXXX");
    if (mkdtemp(directory) == NULL) {
        return false;
    }
    (void)snprintf(path, sizeof path, "%s/net.json", directory);
    file = fopen(path, "w");
    if (file == NULL || fputs(net_config, file) < 0 || fclose(file) != 0) {
        return false;
    }
    return vxd_model_init_weights(directory, "net", 1, false, NULL) == VXD_OK;
}

static void remove_networks(const char *directory)
{
    char path[64];

    (void)snprintf(path, sizeof path, "%s/net.json", directory);
    (void)unlink(path);
    (void)snprintf(path, sizeof path, "%s/net.safetensors", directory);
    (void)unlink(path);
    (void)rmdir(directory);
}

/* Nothing may leak, and the same again must do it: server_finish looks for the first. */
static void fail_each_on_network(const char *directory, bool load_first,
                                 const char *method, const char *json)
{
    const struct server_setup setup = {.networks_dir = directory};

    for (long k = 0; k < ENOUGH; k++) {
        struct vxd_server *server = server_start(&setup);
        enum vxd_status status;
        bool failed;

        REQUIRE(server != NULL);
        if (load_first) {
            CHECK_INT(send_json(server, "network_load", "{\"name\":\"net\"}"), VXD_OK);
        }
        fail_allocation(k);
        status = send_json(server, method, json);
        failed = stop_failing();
        CHECK(status == VXD_OK || (failed && status == VXD_RESOURCE_EXHAUSTED));
        CHECK_INT(send_json(server, method, json), VXD_OK);
        CHECK_INT(
            send_json(server, "network_unload", "{\"name\":\"net\",\"missingOk\":true}"),
            VXD_OK);
        server_finish(server);
        if (!failed) {
            CHECK(k >= 3);
            return;
        }
    }
    CHECK(false);
}

static void test_network_any_failing_allocation_is_resource_exhausted(void)
{
    char directory[32];

    REQUIRE(make_networks(directory));
    fail_each_on_network(directory, false, "network_load", "{\"name\":\"net\"}");
    fail_each_on_network(directory, true, "network_list", "{}");
    fail_each_on_network(directory, true, "network_get", "{\"name\":\"net\"}");
    fail_each_on_network(
        directory, true, "infer",
        "{\"network\":\"net\",\"outputs\":[\"*\"],\"clouds\":[{\"fields\":["
        "{\"name\":\"x\",\"dtype\":\"FLOAT32\"},"
        "{\"name\":\"y\",\"offset\":4,\"dtype\":\"FLOAT32\"},"
        "{\"name\":\"z\",\"offset\":8,\"dtype\":\"FLOAT32\"}],"
        "\"pointStep\":12,\"data\":\"AACAPwAAgD8AAIA/AAAAQAAAgD8AAIA/\"}]}");
    remove_networks(directory);
}

/* Two points that the network labels and one that it does not look at. */
static const char semantic_scan[] =
    "{\"name\":\"s\",\"network\":\"net\",\"labelToMaterial\":[{\"materialName\":\"a\"},"
    "{\"label\":1,\"material\":2},{\"label\":2,\"material\":3},{\"label\":3,"
    "\"material\":4},{\"label\":-1,\"material\":-1}],\"carve\":{},\"cloud\":{"
    "\"fields\":[{\"name\":\"x\",\"dtype\":\"FLOAT32\"},{\"name\":\"y\",\"offset\":4,"
    "\"dtype\":\"FLOAT32\"},{\"name\":\"z\",\"offset\":8,\"dtype\":\"FLOAT32\"}],"
    "\"pointStep\":12,\"data\":\"AACAPwAAgD8AAIA/AAAAQAAAgD8AAIA/AACgQAAAgD8AAIA/\"}}";

/* Whichever of the two requests fails, the scene is as it was; the same again does it. */
static void test_scan_through_a_network_any_failing_allocation_changes_nothing(void)
{
    char directory[32];
    struct server_setup setup = {.networks_dir = directory};
    bool failed = true;

    REQUIRE(make_networks(directory));
    for (long k = 0; k < ENOUGH && failed; k++) {
        struct vxd_server *server = server_start(&setup);
        struct look before, after;
        enum vxd_status status;

        REQUIRE(server != NULL);
        CHECK_INT(send_json(server, "network_load", "{\"name\":\"net\"}"), VXD_OK);
        CHECK_INT(send_json(server, "scene_create", make_scene), VXD_OK);
        look_at_scene(server, &before);
        fail_allocation(k);
        status = send_json(server, "scene_integrate", semantic_scan);
        failed = stop_failing();
        CHECK(status == VXD_OK || (failed && status == VXD_RESOURCE_EXHAUSTED));
        if (status != VXD_OK && !lost_reply) {
            look_at_scene(server, &after);
            CHECK_INT(after.version, before.version);
            CHECK_INT(send_json(server, "scene_integrate", semantic_scan), VXD_OK);
        }
        look_at_scene(server, &after);
        CHECK_INT(after.version, before.version + 1);
        CHECK(strcmp(after.digest, before.digest) != 0);
        (void)send_json(server, "scene_drop", "{\"name\":\"s\"}");
        (void)send_json(server, "network_unload", "{\"name\":\"net\"}");
        server_finish(server);
    }
    CHECK(!failed);
    remove_networks(directory);
}

static void test_server_any_failing_allocation_opens_nothing(void)
{
    struct vxd_config config;
    struct vxd_server *server = calloc(1, sizeof *server);

    REQUIRE(server != NULL);
    vxd_config_default(&config);
    (void)snprintf(config.backend, sizeof config.backend, "cpu");
    (void)snprintf(config.log_level, sizeof config.log_level, "error");
    config.n_threads = 2;
    for (long k = 0; k < ENOUGH; k++) {
        struct vxd_err err = {0};
        enum vxd_status status;
        bool failed;

        fail_allocation(k);
        status = vxd_server_open(server, &config, vxd_method_table(), &err);
        failed = stop_failing();
        CHECK_INT(status, failed ? VXD_RESOURCE_EXHAUSTED : VXD_OK);
        CHECK_INT(err.code, status);
        if (status == VXD_OK) {
            /* Which the configuration leaves to the machine. */
            CHECK(server->config.n_read_lanes >= 2 && server->config.n_read_lanes <= 4);
            CHECK(server->config.http_threads >= 2 && server->config.http_threads <= 8);
            vxd_server_close(server);
        }
        if (!failed) {
            CHECK(k >= 8);
            break;
        }
    }
    free(server);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_voxelize_any_failing_allocation_is_resource_exhausted),
    VXD_TEST(test_status_any_failing_allocation_is_resource_exhausted),
    VXD_TEST(test_self_test_any_failing_allocation_is_resource_exhausted),
    VXD_TEST(test_map_change_any_failing_allocation_changes_nothing),
    VXD_TEST(test_map_read_any_failing_allocation_is_resource_exhausted),
    VXD_TEST(test_scene_change_any_failing_allocation_changes_nothing),
    VXD_TEST(test_scene_read_any_failing_allocation_is_resource_exhausted),
    VXD_TEST(test_network_any_failing_allocation_is_resource_exhausted),
    VXD_TEST(test_scan_through_a_network_any_failing_allocation_changes_nothing),
    VXD_TEST(test_server_any_failing_allocation_opens_nothing),
};

VXD_TEST_MAIN(tests)
