// SPDX-License-Identifier: Apache-2.0
/* The life of a request outside the queue: header, admission, decoding, accounts. */
#include "tests/support/test.h"

#include <unistd.h>

#include "server/method_table.h"
#include "server/observe/log/log.h"
#include "server/observe/observe.h"
#include "server/server.h"
#include "server/service/admin/admin.h"
#include "tests/support/server/server_checks.h"
#include "tests/support/server/server_helpers.h"
#include "voxeld/v1/admin.pb-c.h"

VXD_TEST_HELPERS

static const struct vxd_method *method(const char *name)
{
    return vxd_method_by_name(vxd_method_table(), name);
}

/* Sends, waits, and hands back code, field and a part of the message. */
static void check_answer(struct vxd_server *server, const struct vxd_method *m,
                         const struct vxd_request_header *header, const char *json,
                         enum vxd_status code, const char *field, const char *message)
{
    struct call call;

    call_begin(&call);
    call_json(&call, server, m, header, json);
    CHECK_INT(call_wait(&call), code);
    CHECK_STR(call.err.field, field);
    if (strstr(call.err.message, message) == NULL) {
        CHECK_STR(call.err.message, message);
    }
    call_finish(&call);
}

static void test_header_malformed_is_refused_by_field(void)
{
    static const char long_text[] =
        "0123456789012345678901234567890123456789012345678901234567890123";
    static char long_token[1100];
    const struct {
        struct vxd_request_header header;
        const char *field;
    } cases[] = {
        {{.request_id = long_text}, "header.request_id"},
        {{.request_id = "a\nb"}, "header.request_id"},
        {{.request_id = "\xc3\xa9"}, "header.request_id"},
        {{.client_id = "Robot"}, "header.client_id"},
        {{.client_id = "_a"}, "header.client_id"},
        {{.client_id = long_text}, "header.client_id"},
        {{.stream = "a b"}, "header.stream"},
        {{.keep_last = 1}, "header.keep_last"},
        {{.timeout_ms = 60001}, "header.timeout_ms"},
        {{.token = long_token}, "header.token"},
    };
    struct vxd_server *server = server_start(&(struct server_setup){0});

    REQUIRE(server != NULL);
    memset(long_token, 'x', sizeof long_token - 1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        check_answer(server, method("server_info"), &cases[i].header, "{}",
                     VXD_INVALID_ARGUMENT, cases[i].field, "");
    }
    server_finish(server);
}

static void test_request_id_is_echoed_or_made(void)
{
    struct vxd_server *server = server_start(&(struct server_setup){0});
    const struct vxd_request_header named = {.request_id = "my id 1", .peer_uid = -1};
    struct call calls[3];

    REQUIRE(server != NULL);
    for (int i = 0; i < 3; i++) {
        call_begin(&calls[i]);
        call_json(&calls[i], server, method("server_info"), i == 0 ? &named : NULL, "{}");
        CHECK_INT(call_wait(&calls[i]), VXD_OK);
    }
    CHECK_STR(calls[0].id, "my id 1");
    CHECK(strlen(calls[1].id) > 8 && strcmp(calls[1].id, calls[2].id) != 0);
    for (int i = 0; i < 3; i++) {
        call_finish(&calls[i]);
    }
    server_finish(server);
}

static void test_method_unknown_is_unimplemented(void)
{
    struct vxd_server *server = server_start(&(struct server_setup){0});

    REQUIRE(server != NULL);
    check_answer(server, NULL, NULL, "{}", VXD_UNIMPLEMENTED, "", "no such method");
    CHECK(vxd_method_by_name(vxd_method_table(), "nope") == NULL);
    CHECK(vxd_method_by_tag(vxd_method_table(), 999) == NULL);
    server_finish(server);
}

static void test_body_faulty_is_refused_with_its_path(void)
{
    struct vxd_server *server = server_start(&(struct server_setup){0});
    const uint8_t garbage[] = {0x08, 0xff};
    const struct vxd_body body = {.bytes = garbage, .n_bytes = sizeof garbage};
    const struct vxd_body file = {
        .kind = VXD_BODY_FILE, .bytes = garbage, .n_bytes = 2, .format = "pcd"};
    struct call call;

    REQUIRE(server != NULL);
    check_answer(server, method("self_test"), NULL, "{\"durationMs\": \"x\"}",
                 VXD_INVALID_ARGUMENT, "durationMs", "");
    check_answer(server, method("self_test"), NULL, "{\"nope\": 1}", VXD_INVALID_ARGUMENT,
                 "nope", "");
    check_answer(server, method("self_test"), NULL, "{\"durationMs\": 60001}",
                 VXD_INVALID_ARGUMENT, "duration_ms", "is 60001, it must be 0 to 60000");
    check_answer(server, method("self_test"), NULL, "{\"nPoints\": 1000001}",
                 VXD_INVALID_ARGUMENT, "n_points", "it must be 0 to 1000000");
    check_answer(server, method("set_log_level"), NULL, "{\"level\": \"loud\"}",
                 VXD_INVALID_ARGUMENT, "level", "\"loud\" is no log level");
    call_begin(&call);
    call_send(&call, server, method("self_test"), NULL, &body);
    CHECK_INT(call_wait(&call), VXD_INVALID_ARGUMENT);
    call_finish(&call);
    call_begin(&call);
    call_send(&call, server, method("self_test"), NULL, &file);
    CHECK_INT(call_wait(&call), VXD_INVALID_ARGUMENT);
    CHECK_STR(call.err.field, "format");
    call_finish(&call);
    server_finish(server);
}

static void test_message_too_large_or_no_bytes_left_is_resource_exhausted(void)
{
    struct vxd_server *server = server_start(
        &(struct server_setup){.max_message_bytes = 1 << 20, .inflight_bytes = 1 << 21});
    struct vxd_err err = {0};
    struct vxd_request_header header = {.peer_uid = -1};
    struct vxd_request *request = NULL;
    static uint8_t big[1 << 20];
    const struct vxd_body body = {.bytes = big, .n_bytes = sizeof big};
    struct call call;

    REQUIRE(server != NULL);
    REQUIRE(vxd_request_create(server, &header, &request, &err) == VXD_OK);
    CHECK_INT(vxd_request_admit(request, method("voxelize"), (1 << 20) + 1, &err),
              VXD_RESOURCE_EXHAUSTED);
    CHECK(strstr(err.message, "limits.message_bytes is 1048576") != NULL);
    vxd_request_drop(request);
    /* One holds half of the bytes; the next finds no room to be decoded. */
    REQUIRE(vxd_request_create(server, &header, &request, &err) == VXD_OK);
    CHECK_INT(vxd_request_admit(request, method("voxelize"), 1 << 20, &err), VXD_OK);
    call_begin(&call);
    call_send(&call, server, method("voxelize"), NULL, &body);
    CHECK_INT(call_wait(&call), VXD_RESOURCE_EXHAUSTED);
    CHECK(strstr(call.err.message, "limits.inflight_bytes") != NULL);
    call_finish(&call);
    vxd_request_drop(request);
    CHECK_INT(atomic_load(&server->inflight_bytes), 0);
    CHECK_INT(atomic_load(&server->n_open), 0);
    server_finish(server);
}

static void test_hostile_empty_submessages_stop_at_the_budget(void)
{
    enum {
        N_BYTES = 8 << 20
    };
    struct vxd_server *server = server_start(&(struct server_setup){0});
    uint8_t *bytes = malloc(N_BYTES);
    const struct vxd_body body = {.bytes = bytes, .n_bytes = N_BYTES};
    struct call call;

    REQUIRE(server != NULL && bytes != NULL);
    /* clouds { } again and again: field 1, length 0. */
    for (size_t i = 0; i < N_BYTES; i += 2) {
        bytes[i] = 0x0a;
        bytes[i + 1] = 0;
    }
    call_begin(&call);
    call_send(&call, server, method("voxelize"), NULL, &body);
    CHECK_INT(call_wait(&call), VXD_RESOURCE_EXHAUSTED);
    call_finish(&call);
    free(bytes);
    server_finish(server);
}

static void test_tokens_decide_scopes(void)
{
    char path[] = "/tmp/voxeld-tokens-XXXXXX";
    int fd = mkstemp(path);
    struct vxd_request_header header = {.token = "secret", .peer_uid = -1};
    struct vxd_server *server;
    static const char text[] =
        "robot read 2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b\n";

    REQUIRE(fd >= 0 && write(fd, text, sizeof text - 1) == (ssize_t)(sizeof text - 1));
    (void)close(fd);
    server = server_start(&(struct server_setup){.tokens_file = path});
    REQUIRE(server != NULL);
    check_answer(server, method("server_info"), &header, "{}", VXD_OK, "", "");
    check_answer(server, method("self_test"), &header, "{}", VXD_PERMISSION_DENIED, "",
                 "robot lacks the scope admin");
    header.token = "guess";
    check_answer(server, method("server_info"), &header, "{}", VXD_UNAUTHENTICATED, "",
                 "the token is unknown");
    header.token = NULL;
    check_answer(server, method("server_info"), &header, "{}", VXD_UNAUTHENTICATED, "",
                 "a token is required");
    header.peer_uid = 0;
    check_answer(server, method("server_info"), &header, "{}", VXD_OK, "", "");
    server_finish(server);
    (void)unlink(path);
}

static void test_refusing_server_answers_unavailable_draining_one_serves(void)
{
    struct vxd_server *server = server_start(&(struct server_setup){0});

    REQUIRE(server != NULL);
    atomic_store(&server->state, VXD_STATE_DRAINING);
    check_answer(server, method("server_info"), NULL, "{}", VXD_OK, "", "");
    atomic_store(&server->state, VXD_STATE_REFUSING);
    check_answer(server, method("server_info"), NULL, "{}", VXD_UNAVAILABLE, "",
                 "shutting down");
    server_finish(server);
}

static void test_status_counts_what_was_answered(void)
{
    struct vxd_server *server = server_start(&(struct server_setup){0});
    Voxeld__V1__StatusResponse *status;
    struct call call;

    REQUIRE(server != NULL);
    check_answer(server, method("server_info"), NULL, "{}", VXD_OK, "", "");
    check_answer(server, method("server_info"), NULL, "{\"a\":1}", VXD_INVALID_ARGUMENT,
                 "a", "");
    check_answer(server, method("self_test"), NULL, "{\"durationMs\":30,\"nPoints\":100}",
                 VXD_OK, "", "");
    call_begin(&call);
    call_json(&call, server, method("status"), NULL, "");
    REQUIRE(call_wait(&call) == VXD_OK);
    status = voxeld__v1__status_response__unpack(NULL, call.n_packed, call.packed);
    REQUIRE(status != NULL);
    CHECK_STR(status->state, "serving");
    CHECK_INT(status->queue_limit, 64);
    CHECK(status->resident_bytes > 1000000);
    CHECK_INT(status->inflight_bytes, 0);
    CHECK(status->uptime_s > 0);
    CHECK_STR(status->methods[0]->name, "server_info");
    CHECK_INT(status->methods[0]->n_ok, 1);
    CHECK_INT(status->methods[0]->n_failed, 1);
    /* The newest first; on a busy machine the others may be slow as well. */
    REQUIRE(status->n_slow >= 1);
    CHECK_STR(status->slow[0]->method, "self_test");
    CHECK(status->slow[0]->total_ms >= 30);
    voxeld__v1__status_response__free_unpacked(status, NULL);
    call_finish(&call);
    server_finish(server);
}

static void test_self_test_repeats_to_the_same_digest(void)
{
    struct vxd_server *server = server_start(&(struct server_setup){0});
    uint64_t digests[2];
    unsigned duration_ms = 50;

    REQUIRE(server != NULL);
    for (int i = 0; i < 2; i++) {
        Voxeld__V1__SelfTestResponse *reply;
        struct call call;
        char json[64];

        (void)snprintf(json, sizeof json, "{\"durationMs\": %u}", duration_ms);
        call_begin(&call);
        call_json(&call, server, method("self_test"), NULL, json);
        REQUIRE(call_wait(&call) == VXD_OK);
        reply = voxeld__v1__self_test_response__unpack(NULL, call.n_packed, call.packed);
        REQUIRE(reply != NULL);
        CHECK(reply->elapsed_ms >= duration_ms);
        /* A busy machine may take all the time for one stage: then once more, for longer. */
        if (reply->n_stages < 2 && duration_ms < 20000) {
            duration_ms *= 4;
            i--;
        } else {
            CHECK(reply->n_stages >= 2);
            digests[i] = reply->digest;
        }
        voxeld__v1__self_test_response__free_unpacked(reply, NULL);
        call_finish(&call);
    }
    CHECK(digests[0] == digests[1]);
    server_finish(server);
}

static void test_log_level_changes_and_reload_restores_it(void)
{
    struct vxd_server *server = server_start(&(struct server_setup){0});
    struct vxd_config *config = malloc(sizeof *config);
    struct vxd_err err = {0};

    REQUIRE(server != NULL && config != NULL);
    check_answer(server, method("set_log_level"), NULL, "{\"level\": \"warning\"}",
                 VXD_OK, "", "");
    CHECK_INT(vxd_log_get_level(), VXD_LOG_WARNING);
    *config = server->config;
    config->default_timeout_ms = 77;
    config->queue_limit = 3;
    CHECK_INT(vxd_server_reload(server, config, &err), VXD_OK);
    CHECK_INT(vxd_log_get_level(), VXD_LOG_ERROR);
    CHECK_INT(atomic_load(&server->limits.queue), 3);
    CHECK_INT(atomic_load(&server->limits.default_timeout_ms), 77);
    config->default_timeout_ms = 88;
    config->queue_limit = 65;
    CHECK_INT(vxd_server_reload(server, config, &err), VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "limits.queue");
    CHECK_INT(atomic_load(&server->limits.default_timeout_ms), 77);
    free(config);
    server_finish(server);
}

static void test_metrics_text_names_what_was_counted(void)
{
    static const char *const expected[] = {
        "voxeld_requests_total{op=\"server_info\",code=\"OK\"} 1\n",
        "voxeld_requests_total{op=\"unknown\",code=\"UNIMPLEMENTED\"} 1\n",
        "voxeld_request_duration_seconds_bucket{op=\"server_info\",le=\"+Inf\"} 1\n",
        "voxeld_request_duration_seconds_count{op=\"server_info\"} 1\n",
        "voxeld_queue_wait_seconds_count 1\n", /* status and the like never queue */
        "voxeld_queue_depth 0\n",
        "voxeld_rejected_total{reason=\"queue_full\"} 0\n",
        "voxeld_build_info{version=\"0.3.0\",backend=\"cpu\"} 1\n",
        "process_resident_memory_bytes ",
        "voxeld_device_memory_bytes{use=\"budget\"} ",
    };
    struct vxd_server *server = server_start(&(struct server_setup){0});
    struct vxd_text text = {0};

    REQUIRE(server != NULL);
    check_answer(server, method("server_info"), NULL, "{}", VXD_OK, "", "");
    check_answer(server, NULL, NULL, "{}", VXD_UNIMPLEMENTED, "", "");
    check_answer(server, method("self_test"), NULL, "{\"durationMs\":1,\"nPoints\":10}",
                 VXD_OK, "", "");
    vxd_metrics_write(server, &text);
    REQUIRE(!text.failed);
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        if (strstr(text.bytes, expected[i]) == NULL) {
            CHECK_STR("missing", expected[i]);
        }
    }
    free(text.bytes);
    server_finish(server);
}

static void test_slowlog_keeps_the_newest_128(void)
{
    struct vxd_slowlog *slowlog = NULL;
    struct vxd_slow_entry entry = {.method = "m"};
    static struct vxd_slow_entry out[VXD_SLOWLOG_ENTRIES];
    struct vxd_err err = {0};

    REQUIRE(vxd_slowlog_create(&slowlog, &err) == VXD_OK);
    entry.total_ms = 9.9;
    vxd_slowlog_add(slowlog, &entry);
    CHECK_INT(vxd_slowlog_read(slowlog, out), 0);
    for (int i = 0; i < 200; i++) {
        entry.total_ms = 10 + i;
        vxd_slowlog_add(slowlog, &entry);
    }
    CHECK_INT(vxd_slowlog_read(slowlog, out), 128);
    CHECK(out[0].total_ms == 209 && out[127].total_ms == 82);
    vxd_slowlog_destroy(slowlog);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_header_malformed_is_refused_by_field),
    VXD_TEST(test_request_id_is_echoed_or_made),
    VXD_TEST(test_method_unknown_is_unimplemented),
    VXD_TEST(test_body_faulty_is_refused_with_its_path),
    VXD_TEST(test_message_too_large_or_no_bytes_left_is_resource_exhausted),
    VXD_TEST(test_hostile_empty_submessages_stop_at_the_budget),
    VXD_TEST(test_tokens_decide_scopes),
    VXD_TEST(test_refusing_server_answers_unavailable_draining_one_serves),
    VXD_TEST(test_status_counts_what_was_answered),
    VXD_TEST(test_self_test_repeats_to_the_same_digest),
    VXD_TEST(test_log_level_changes_and_reload_restores_it),
    VXD_TEST(test_metrics_text_names_what_was_counted),
    VXD_TEST(test_slowlog_keeps_the_newest_128),
};

VXD_TEST_MAIN(tests)
