// SPDX-License-Identifier: Apache-2.0
/* libvoxeld against a scripted peer. */
#include <nng/nng.h>
#include <nng/supplemental/util/platform.h>

#include "tests/support/client/client_requests.h"

enum {
    BIG_POINTS = 300000
};

static void test_connect_without_socket_is_unavailable_at_once(void)
{
    struct voxeld_options options = {.url = "ipc:///tmp/voxeld-nobody-here.sock"};
    struct voxeld_client *client = (struct voxeld_client *)&options;
    struct voxeld_error error;
    nng_time begin = nng_clock();

    CHECK_INT(voxeld_connect(&options, &client, &error), VOXELD_UNAVAILABLE);
    CHECK(client == NULL);
    CHECK(strstr(error.message, "/tmp/voxeld-nobody-here.sock") != NULL);
    CHECK_STR(error.field, "url");
    options.wait_ms = 100;
    CHECK_INT(voxeld_connect(&options, &client, &error), VOXELD_UNAVAILABLE);
    options.wait_ms = VOXELD_NO_WAIT;
    REQUIRE(voxeld_connect(&options, &client, &error) == VOXELD_OK);
    CHECK(!voxeld_is_connected(client));
    CHECK_INT(call(client, 4 * PATIENT_MS, &error), VOXELD_UNAVAILABLE);
    CHECK_STR(error.request_id, "");
    voxeld_close(client);
    CHECK(nng_clock() - begin < PATIENT_MS);
}

static void test_connect_with_bad_options_names_the_option(void)
{
    struct voxeld_client *client;
    struct voxeld_error error;
    struct voxeld_options options = {.url = "carrier-pigeon://loft"};

    CHECK_INT(voxeld_connect(&options, &client, &error), VOXELD_INVALID_ARGUMENT);
    CHECK_STR(error.field, "url");
    options = (struct voxeld_options){.wait_ms = -2};
    CHECK_INT(voxeld_connect(&options, &client, &error), VOXELD_INVALID_ARGUMENT);
    CHECK_STR(error.field, "wait_ms");
    options = (struct voxeld_options){.max_in_flight = 5000};
    CHECK_INT(voxeld_connect(&options, &client, &error), VOXELD_INVALID_ARGUMENT);
    CHECK_STR(error.field, "max_in_flight");
}

static void test_voxelize_answer_is_handed_out_checked(void)
{
    struct peer peer;
    struct voxeld_client *client;
    struct voxeld_cloud cloud = some_cloud();
    struct voxeld_voxelize_request request = some_request(&cloud);
    struct voxeld_voxels *v = NULL;

    REQUIRE(peer_start(&peer, NULL) == 0);
    client = connect_to(&peer, 0);
    REQUIRE(client != NULL);
    cloud.stamp_ns = 42;
    cloud.frame_id = "lidar";
    request.outputs =
        (uint32_t)VOXELD_OUTPUT_COORDS | VOXELD_OUTPUT_COUNTS | VOXELD_OUTPUT_INVERSE;
    REQUIRE(voxeld_voxelize(client, &request, &v, NULL) == VOXELD_OK);
    CHECK_INT(v->n_voxels, N_POINTS);
    CHECK_INT(v->n_points, N_POINTS);
    CHECK_INT(v->n_channels, 3);
    CHECK_STR(v->features[2], "z");
    CHECK_INT(v->coords[4 * 7 + 3], 21);
    CHECK_INT(v->counts[9], 1);
    CHECK_INT(v->inverse[5], 5);
    CHECK(v->mean[3 * 4 + 1] == 8);
    CHECK(v->sum == NULL && v->points == NULL && v->first_index == NULL);
    CHECK(v->items[0].stamp_ns == 42 && v->size_m[1] == 0.1 && v->engine_ms == 1.5);
    CHECK_STR(v->items[0].frame_id, "lidar");
    CHECK(v->request_id[0] != '\0');
    voxeld_voxels_free(v);
    cloud.n_points = 0;
    REQUIRE(voxeld_voxelize(client, &request, &v, NULL) == VOXELD_OK);
    CHECK(v->n_voxels == 0 && v->coords != NULL && v->inverse != NULL);
    voxeld_voxels_free(v);
    voxeld_close(client);
    peer_stop(&peer);
}

static void check_header(const Voxeld__V1__RequestHeader *h)
{
    CHECK_STR(h->request_id, "my-id");
    CHECK_INT(h->timeout_ms, PATIENT_MS - 100); /* the server is to answer first */
    CHECK_STR(h->token, "secret");
    CHECK_STR(h->client_id, "robot-7");
    CHECK_STR(h->stream, "front");
    CHECK_INT(h->keep_last, 2);
    CHECK_INT(h->max_age_ms, 80);
}

static void check_fields(const Voxeld__V1__VoxelizeRequest *r)
{
    const Voxeld__V1__Cloud *c = r->clouds[1];

    CHECK_INT(r->n_clouds, 2);
    CHECK(r->clouds[0]->t_map_sensor == NULL && r->clouds[0]->n_sweeps == 0);
    CHECK_INT(c->n_fields, 3);
    CHECK_STR(c->fields[1]->name, "y");
    CHECK_INT(c->fields[2]->offset, 8);
    CHECK_INT(c->fields[2]->dtype, VOXELD__V1__DTYPE__FLOAT32);
    CHECK_INT(c->data.len, 12 * N_POINTS);
    CHECK(c->stamp_ns == -5);
    CHECK(c->t_map_sensor->translation->y == 2 && c->t_map_sensor->rotation->w == 1);
    CHECK_INT(c->n_sweeps, 1);
    CHECK_INT(c->sweeps[0]->data.len, 24);
    CHECK(c->sweeps[0]->dt_s == 0.05 && c->sweeps[0]->t_cloud_sweep->translation->x == 9);
    CHECK(r->size->x == 0.1 && r->size->y == 0.2 && r->size->z == 0.3);
    CHECK(r->range->low->z == -3 && r->range->high->x == 4);
    CHECK(r->origin->x == 1e6);
    CHECK_INT(r->rule, VOXELD__V1__VOXEL_RULE__SPCONV);
    CHECK_INT(r->order, VOXELD__V1__VOXEL_ORDER__FIRST_POINT);
    CHECK_INT(r->n_features, 2);
    CHECK_STR(r->features[1], "dt");
    CHECK_INT(r->n_reduce, 2);
    CHECK_INT(r->reduce[0], VOXELD__V1__REDUCE__REDUCE_SUM);
    CHECK_INT(r->reduce[1], VOXELD__V1__REDUCE__REDUCE_FIRST);
    CHECK_INT(r->n_outputs, 1);
    CHECK_INT(r->outputs[0], VOXELD__V1__VOXEL_OUTPUT__OUTPUT_FIRST_INDEX);
    CHECK(r->max_points == 5 && r->max_voxels == 100);
}

static void test_voxelize_request_arrives_with_every_field(void)
{
    static const char *const features[2] = {"x", "dt"};
    const struct voxeld_sweep sweep = {.data = some_points,
                                       .n_points = 2,
                                       .dt_s = 0.05,
                                       .T_cloud_sweep = {.translation_m = {9, 0, 0}}};
    struct voxeld_cloud clouds[2] = {some_cloud(), some_cloud()};
    struct voxeld_voxelize_request request = some_request(clouds);
    struct peer peer;
    struct voxeld_options options = {
        .token = "secret", .client_id = "robot-7", .wait_ms = PATIENT_MS};
    struct voxeld_client *client;
    struct voxeld_voxels *voxels;
    struct voxeld_error error = {0};
    Voxeld__V1__Request *arrived;

    REQUIRE(peer_start(&peer, NULL) == 0);
    options.url = peer.url;
    REQUIRE(voxeld_connect(&options, &client, NULL) == VOXELD_OK);
    clouds[1].stamp_ns = -5;
    clouds[1].T_map_sensor =
        (struct voxeld_pose){.translation_m = {1, 2, 3}, .rotation = {0, 0, 0, 1}};
    clouds[1].sweeps = &sweep;
    clouds[1].n_sweeps = 1;
    request.n_clouds = 2;
    request.size_m[1] = 0.2;
    request.size_m[2] = 0.3;
    request.has_range = true;
    request.range_low_m[2] = -3;
    request.range_high_m[0] = 4;
    request.origin_m[0] = 1e6;
    request.rule = VOXELD_RULE_SPCONV;
    request.order = VOXELD_ORDER_FIRST_POINT;
    request.features = features;
    request.n_features = 2;
    request.reduce = (uint32_t)VOXELD_REDUCE_SUM | VOXELD_REDUCE_FIRST;
    request.outputs = VOXELD_OUTPUT_FIRST_INDEX;
    request.max_points = 5;
    request.max_voxels = 100;
    request.call = (struct voxeld_call){.timeout_ms = PATIENT_MS,
                                        .request_id = "my-id",
                                        .stream = "front",
                                        .keep_last = 2,
                                        .max_age_ms = 80};
    /* The peer answers for one cloud only, which must be noticed. */
    CHECK_INT(voxeld_voxelize(client, &request, &voxels, &error), VOXELD_INTERNAL);
    CHECK_STR(error.field, "items");
    CHECK_STR(error.request_id, "my-id");
    arrived = voxeld__v1__request__unpack(NULL, peer.n_last, peer.last);
    REQUIRE(arrived != NULL);
    check_header(arrived->header);
    check_fields(arrived->voxelize);
    voxeld__v1__request__free_unpacked(arrived, NULL);
    voxeld_close(client);
    peer_stop(&peer);
}

static void test_voxelize_impossible_request_is_refused_unsent(void)
{
    struct peer peer;
    struct voxeld_client *client;
    struct voxeld_cloud cloud = some_cloud();
    struct voxeld_voxelize_request request = some_request(&cloud);
    struct voxeld_voxels *voxels;
    struct voxeld_error error;

    REQUIRE(peer_start(&peer, NULL) == 0);
    client = connect_to(&peer, 0);
    REQUIRE(client != NULL);
    cloud.data = NULL;
    CHECK_INT(voxeld_voxelize(client, &request, &voxels, &error),
              VOXELD_INVALID_ARGUMENT);
    CHECK_STR(error.field, "clouds[0].data");
    cloud.data = some_points;
    cloud.n_points = SIZE_MAX / 2;
    CHECK_INT(voxeld_voxelize(client, &request, &voxels, &error),
              VOXELD_INVALID_ARGUMENT);
    cloud.n_points = N_POINTS;
    cloud.fields = NULL;
    CHECK_INT(voxeld_voxelize(client, &request, &voxels, &error),
              VOXELD_INVALID_ARGUMENT);
    CHECK_STR(error.field, "clouds[0].fields");
    cloud.fields = xyz_fields;
    request.reduce = 32;
    CHECK_INT(voxeld_voxelize(client, &request, &voxels, &error),
              VOXELD_INVALID_ARGUMENT);
    CHECK_STR(error.field, "reduce");
    request.reduce = 0;
    request.n_clouds = 0;
    CHECK_INT(voxeld_voxelize(client, &request, &voxels, &error),
              VOXELD_INVALID_ARGUMENT);
    CHECK_STR(error.field, "clouds");
    CHECK_INT(atomic_load(&peer.n_voxelize), 0);
    voxeld_close(client);
    peer_stop(&peer);
}

static void test_reply_too_late_is_deadline_exceeded_on_time_and_sent_once(void)
{
    struct peer peer;
    struct voxeld_client *client;
    struct voxeld_error error;
    nng_time begin;

    REQUIRE(peer_start(&peer, NULL) == 0);
    client = connect_to(&peer, 0);
    REQUIRE(client != NULL);
    atomic_store(&peer.mode, PEER_HOLD);
    begin = nng_clock();
    CHECK_INT(call(client, 100, &error), VOXELD_DEADLINE_EXCEEDED);
    CHECK(nng_clock() - begin >= 95 && nng_clock() - begin < PATIENT_MS);
    CHECK(strstr(error.message, "100 ms") != NULL);
    CHECK(error.request_id[0] != '\0');
    atomic_store(&peer.mode, PEER_ANSWER);
    peer_release(&peer);
    CHECK_INT(call(client, PATIENT_MS, &error), VOXELD_OK);
    nng_msleep(300);
    /* The peer gets only the second call, if the time of the first was over before it
     * could be sent. */
    CHECK(atomic_load(&peer.n_voxelize) <= 2);
    voxeld_close(client);
    peer_stop(&peer);
}

static void test_reply_that_is_garbage_is_internal(void)
{
    static const enum peer_mode modes[] = {PEER_GARBAGE, PEER_EMPTY, PEER_WRONG_REPLY};
    struct peer peer;
    struct voxeld_client *client;
    struct voxeld_error error;

    REQUIRE(peer_start(&peer, NULL) == 0);
    client = connect_to(&peer, 0);
    REQUIRE(client != NULL);
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        atomic_store(&peer.mode, modes[i]);
        CHECK_INT(call(client, PATIENT_MS, &error), VOXELD_INTERNAL);
    }
    atomic_store(&peer.mode, PEER_ANSWER);
    CHECK_INT(call(client, PATIENT_MS, &error), VOXELD_OK);
    voxeld_close(client);
    peer_stop(&peer);
}

static void test_reply_with_any_flaw_is_internal(void)
{
    struct peer peer;
    struct voxeld_client *client;
    struct voxeld_cloud cloud = some_cloud();
    struct voxeld_voxelize_request request = some_request(&cloud);

    REQUIRE(peer_start(&peer, NULL) == 0);
    client = connect_to(&peer, 0);
    REQUIRE(client != NULL);
    request.outputs =
        (uint32_t)VOXELD_OUTPUT_COORDS | VOXELD_OUTPUT_COUNTS | VOXELD_OUTPUT_INVERSE;
    for (int flaw = FLAW_NONE; flaw < N_FLAWS; flaw++) {
        struct voxeld_voxels *voxels = NULL;
        struct voxeld_error error = {0};

        atomic_store(&peer.flaw, flaw);
        CHECK_INT(voxeld_voxelize(client, &request, &voxels, &error),
                  flaw == FLAW_NONE ? VOXELD_OK : VOXELD_INTERNAL);
        CHECK(flaw == FLAW_NONE || (voxels == NULL && error.field[0] != '\0'));
        voxeld_voxels_free(voxels);
    }
    voxeld_close(client);
    peer_stop(&peer);
}

/* Big arrays of a daemon's reply stay where nng received them, and those of another
 * server are copied. Both are aligned, and both outlive the connection. */
static void test_big_results_outlive_the_client(void)
{
    enum {
        N_MANY = 20000
    };
    float *points = calloc(N_MANY, 3 * sizeof *points);
    struct voxeld_cloud cloud = some_cloud();
    struct peer peer;

    REQUIRE(points != NULL);
    cloud.data = points;
    cloud.n_points = N_MANY;
    REQUIRE(peer_start(&peer, NULL) == 0);
    for (int aligns = 0; aligns < 2; aligns++) {
        struct voxeld_voxelize_request request = some_request(&cloud);
        struct voxeld_client *client = connect_to(&peer, 0);
        struct voxeld_voxels *v[2] = {NULL, NULL};

        request.outputs =
            VOXELD_OUTPUT_COORDS | VOXELD_OUTPUT_COUNTS | VOXELD_OUTPUT_INVERSE;
        atomic_store(&peer.aligns, aligns);
        REQUIRE(client != NULL);
        for (int i = 0; i < 2; i++) {
            CHECK_INT(voxeld_voxelize(client, &request, &v[i], NULL), VOXELD_OK);
        }
        voxeld_voxels_free(v[0]);
        voxeld_close(client);
        REQUIRE(v[1] != NULL && v[1]->n_voxels == N_MANY);
        CHECK_INT((uintptr_t)v[1]->coords % 16, 0);
        CHECK_INT((uintptr_t)v[1]->counts % 16, 0);
        CHECK_INT((uintptr_t)v[1]->inverse % 16, 0);
        CHECK_INT((uintptr_t)v[1]->mean % 16, 0);
        for (int32_t i = 0; i < N_MANY; i++) {
            REQUIRE(v[1]->coords[4 * i + 3] == 3 * i && v[1]->counts[i] == 1 &&
                    v[1]->inverse[i] == i && v[1]->mean[3 * i + 1] == (float)(2 * i));
        }
        voxeld_voxels_free(v[1]);
    }
    peer_stop(&peer);
    free(points);
}

static void test_server_error_is_passed_on(void)
{
    struct peer peer;
    struct voxeld_client *client;
    struct voxeld_error error;

    REQUIRE(peer_start(&peer, NULL) == 0);
    client = connect_to(&peer, 0);
    REQUIRE(client != NULL);
    atomic_store(&peer.mode, PEER_FAIL);
    CHECK_INT(call(client, PATIENT_MS, &error), VOXELD_INVALID_ARGUMENT);
    CHECK_STR(error.field, "clouds[0].fields[2].offset");
    CHECK_STR(error.message, "17; at most 12");
    CHECK_STR(voxeld_status_name(error.code), "INVALID_ARGUMENT");
    voxeld_close(client);
    peer_stop(&peer);
}

static void test_request_over_the_servers_limit_is_refused_unsent(void)
{
    static float many[3 * BIG_POINTS];
    struct peer peer;
    struct voxeld_client *client;
    struct voxeld_cloud cloud = some_cloud();
    struct voxeld_voxelize_request request = some_request(&cloud);
    struct voxeld_voxels *voxels;
    struct voxeld_error error;
    struct voxeld_options options = {.timeout_ms = PATIENT_MS, .wait_ms = VOXELD_NO_WAIT};

    REQUIRE(peer_start(&peer, NULL) == 0);
    atomic_store(&peer.max_message_bytes, 2U << 20);
    client = connect_to(&peer, 0);
    REQUIRE(client != NULL);
    cloud.data = many;
    cloud.n_points = BIG_POINTS;
    CHECK_INT(voxeld_voxelize(client, &request, &voxels, &error),
              VOXELD_RESOURCE_EXHAUSTED);
    CHECK(strstr(error.message, "2097152") != NULL);
    voxeld_close(client);
    /* A client that could not ask for the limit at the beginning asks before it sends. */
    options.url = peer.url;
    REQUIRE(voxeld_connect(&options, &client, NULL) == VOXELD_OK);
    for (int i = 0; i < PATIENT_MS / 10 && !voxeld_is_connected(client); i++) {
        nng_msleep(10);
    }
    CHECK_INT(voxeld_voxelize(client, &request, &voxels, &error),
              VOXELD_RESOURCE_EXHAUSTED);
    CHECK_INT(atomic_load(&peer.n_voxelize), 0);
    voxeld_close(client);
    peer_stop(&peer);
}

static void test_peer_that_dies_is_unavailable_and_comes_back(void)
{
    struct peer peer;
    struct peer next;
    struct voxeld_client *client;
    struct voxeld_error error;
    char url[128];
    nng_time begin;
    enum voxeld_status status = VOXELD_UNAVAILABLE;

    REQUIRE(peer_start(&peer, NULL) == 0);
    memcpy(url, peer.url, sizeof url);
    client = connect_to(&peer, 0);
    REQUIRE(client != NULL);
    CHECK_INT(call(client, PATIENT_MS, &error), VOXELD_OK);
    peer_stop(&peer);
    for (int i = 0; i < PATIENT_MS / 10 && voxeld_is_connected(client); i++) {
        nng_msleep(10);
    }
    begin = nng_clock();
    CHECK_INT(call(client, 4 * PATIENT_MS, &error), VOXELD_UNAVAILABLE);
    CHECK(nng_clock() - begin < PATIENT_MS);
    REQUIRE(peer_start(&next, url) == 0);
    for (int i = 0; i < PATIENT_MS / 10 && status != VOXELD_OK; i++) {
        nng_msleep(10);
        status = call(client, PATIENT_MS, &error);
    }
    CHECK_INT(status, VOXELD_OK);
    voxeld_close(client);
    peer_stop(&next);
}

static void test_admin_answers_are_handed_out(void)
{
    struct peer peer;
    struct voxeld_client *client;
    struct voxeld_server_info *info = NULL;
    struct voxeld_server_status *status = NULL;
    struct voxeld_self_test self_test;
    char previous[4];

    REQUIRE(peer_start(&peer, NULL) == 0);
    client = connect_to(&peer, 0);
    REQUIRE(client != NULL);
    REQUIRE(voxeld_get_server_info(client, NULL, &info, NULL) == VOXELD_OK);
    CHECK_STR(info->version, "9.9.9");
    CHECK_INT(info->max_message_bytes, 16 << 20);
    voxeld_server_info_free(info);
    REQUIRE(voxeld_get_status(client, NULL, &status, NULL) == VOXELD_OK);
    CHECK_STR(status->state, "serving");
    CHECK_INT(status->n_methods, 1);
    CHECK_INT(status->methods[0].n_ok, 3);
    CHECK_INT(status->slow[0].code, VOXELD_ABORTED);
    voxeld_server_status_free(status);
    REQUIRE(voxeld_run_self_test(client, NULL, 250, 0, &self_test, NULL) == VOXELD_OK);
    CHECK_INT(self_test.n_stages, 250);
    CHECK(self_test.digest == UINT64_C(0x8000000000000001));
    CHECK(self_test.elapsed_ms == PATIENT_MS + 250 - 100); /* the timeout that was sent */
    REQUIRE(voxeld_set_log_level(client, NULL, "warning", previous, sizeof previous,
                                 NULL) == VOXELD_OK);
    CHECK_STR(previous, "war");
    voxeld_close(client);
    peer_stop(&peer);
}

static void test_cloud_file_without_a_telling_name_needs_a_format(void)
{
    struct voxeld_cloud *cloud = NULL;
    struct voxeld_error error;

    CHECK_INT(voxeld_cloud_read_file("scan.bin", NULL, &cloud, &error),
              VOXELD_INVALID_ARGUMENT);
    CHECK_STR(error.field, "format");
    CHECK_INT(voxeld_cloud_read_file("not/there.pcd", NULL, &cloud, &error),
              VOXELD_NOT_FOUND);
    REQUIRE(voxeld_cloud_read_file(VOXELD_SOURCE_DIR "/tests/data/files/kitti.bin",
                                   "kitti", &cloud, &error) == VOXELD_OK);
    CHECK_INT(cloud->n_points, 5);
    CHECK_STR(cloud->fields[3].name, "intensity");
    voxeld_cloud_free(cloud);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_connect_without_socket_is_unavailable_at_once),
    VXD_TEST(test_connect_with_bad_options_names_the_option),
    VXD_TEST(test_voxelize_answer_is_handed_out_checked),
    VXD_TEST(test_voxelize_request_arrives_with_every_field),
    VXD_TEST(test_voxelize_impossible_request_is_refused_unsent),
    VXD_TEST(test_reply_too_late_is_deadline_exceeded_on_time_and_sent_once),
    VXD_TEST(test_reply_that_is_garbage_is_internal),
    VXD_TEST(test_reply_with_any_flaw_is_internal),
    VXD_TEST(test_big_results_outlive_the_client),
    VXD_TEST(test_server_error_is_passed_on),
    VXD_TEST(test_request_over_the_servers_limit_is_refused_unsent),
    VXD_TEST(test_peer_that_dies_is_unavailable_and_comes_back),
    VXD_TEST(test_admin_answers_are_handed_out),
    VXD_TEST(test_cloud_file_without_a_telling_name_needs_a_format),
};

VXD_TEST_MAIN(tests)
