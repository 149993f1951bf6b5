// SPDX-License-Identifier: Apache-2.0
/* Trace Context, the memory of why requests were refused, and the configuration's keys in texts. */
#include "tests/support/test.h"

#include "server/config/config.h"
#include "server/observe/observe.h"

#define TRACE "4bf92f3577b34da6a3ce929d0e0e4736"
#define PARENT "00f067aa0ba902b7"

static void test_trace_of_a_well_formed_traceparent_is_taken(void)
{
    static const char *const good[] = {
        "00-" TRACE "-" PARENT "-01",
        "00-" TRACE "-" PARENT "-00",
        "00-" TRACE "-" PARENT "-ff",
        "cc-" TRACE "-" PARENT "-01",
        "cc-" TRACE "-" PARENT "-01-what-the-future-will-be-like",
        "01-" TRACE "-" PARENT "-01-",
    };

    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct vxd_trace trace;
        char written[VXD_TRACEPARENT_BYTES];

        CHECK(vxd_trace_read(good[i], 7 + i, &trace));
        CHECK_STR(trace.trace_id, TRACE);
        CHECK_STR(trace.parent_id, PARENT);
        CHECK_INT(strlen(trace.span_id), 16);
        CHECK(strcmp(trace.span_id, PARENT) != 0);
        vxd_trace_write(&trace, written);
        CHECK_INT(strlen(written), 55);
        CHECK(strncmp(written, "00-" TRACE "-", 36) == 0);
        CHECK(strncmp(written + 36, trace.span_id, 16) == 0);
        CHECK_STR(written + 52, i == 1 ? "-00" : "-01");
        /* What we write is well-formed itself. */
        CHECK(vxd_trace_read(written, 99, &trace));
    }
}

static void test_trace_of_a_malformed_traceparent_counts_as_none(void)
{
    static const char *const bad[] = {
        NULL,
        "",
        "00",
        "00-" TRACE "-" PARENT,
        "00-" TRACE "-" PARENT "-0",
        "00-" TRACE "-" PARENT "-1",
        "00-" TRACE "-" PARENT "-0x",
        "00-" TRACE "-" PARENT "-01-more",
        "00-" TRACE "-" PARENT "-01 ",
        " 00-" TRACE "-" PARENT "-01",
        "00-" TRACE "-" PARENT "-01,00-" TRACE "-" PARENT "-01",
        "ff-" TRACE "-" PARENT "-01",
        "0-" TRACE "-" PARENT "-01",
        "cc-" TRACE "-" PARENT "-01.what",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-" PARENT "-01",
        "00-" TRACE "-00F067AA0BA902B7-01",
        "00-00000000000000000000000000000000-" PARENT "-01",
        "00-" TRACE "-0000000000000000-01",
        "00-" TRACE "0-" PARENT "-01",
        "00-" TRACE "-" PARENT "0-01",
        "00_" TRACE "_" PARENT "_01",
    };

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct vxd_trace trace = {.trace_id = "x"};
        char written[VXD_TRACEPARENT_BYTES] = "x";

        CHECK(!vxd_trace_read(bad[i], i, &trace));
        CHECK_STR(trace.trace_id, "");
        vxd_trace_write(&trace, written);
        CHECK_STR(written, "");
    }
}

static void test_trace_spans_of_different_numbers_differ(void)
{
    struct vxd_trace a, b;

    for (uint64_t i = 0; i < 1000; i++) {
        CHECK(vxd_trace_read("00-" TRACE "-" PARENT "-01", i, &a));
        CHECK(vxd_trace_read("00-" TRACE "-" PARENT "-01", i + 1, &b));
        CHECK(strcmp(a.span_id, b.span_id) != 0);
        CHECK(strcmp(a.span_id, "0000000000000000") != 0);
    }
}

static void add(struct vxd_whys *whys, const char *id, const char *token, int number)
{
    struct vxd_why_entry entry = {.method = "m", .key = "", .finished_unix_ns = number};

    (void)snprintf(entry.request_id, sizeof entry.request_id, "%s", id);
    (void)snprintf(entry.token, sizeof entry.token, "%s", token);
    vxd_whys_add(whys, &entry);
}

static void test_whys_of_a_token_are_not_pushed_out_by_another(void)
{
    struct vxd_whys *whys;
    struct vxd_why_entry found;
    struct vxd_err err = {0};

    REQUIRE(vxd_whys_create(&whys, &err) == VXD_OK);
    CHECK(!vxd_whys_find(whys, "a", NULL, &found));
    add(whys, "a", "victim", 1);
    add(whys, "a", "greedy", 2);
    add(whys, "a", "victim", 3);
    REQUIRE(vxd_whys_find(whys, "a", "victim", &found));
    CHECK_INT(found.finished_unix_ns, 3);
    REQUIRE(vxd_whys_find(whys, "a", NULL, &found));
    CHECK_INT(found.finished_unix_ns, 3);
    REQUIRE(vxd_whys_find(whys, "a", "greedy", &found));
    CHECK_INT(found.finished_unix_ns, 2);
    CHECK(!vxd_whys_find(whys, "a", "nobody", &found));
    for (int i = 0; i < 10000; i++) {
        add(whys, "b", "greedy", i);
    }
    CHECK(vxd_whys_find(whys, "a", "victim", &found));
    CHECK(!vxd_whys_find(whys, "a", "greedy", &found));
    for (int i = 0; i < 1000; i++) {
        add(whys, "c", "victim", i);
    }
    CHECK(!vxd_whys_find(whys, "a", NULL, &found));
    vxd_whys_destroy(whys);
}

static void test_why_queue_counts_by_method_and_token(void)
{
    static const char *const methods[] = {"infer", "voxelize"};
    struct vxd_why_queue queue = {0};

    for (int i = 0; i < 100; i++) {
        char token[8];

        (void)snprintf(token, sizeof token, "t%d", i % 5);
        vxd_why_count(&queue, methods[i % 2], token, i >= 50);
    }
    CHECK_INT(queue.n_groups, VXD_WHY_GROUPS);
    for (uint32_t i = 0; i < queue.n_groups; i++) {
        CHECK_INT(queue.groups[i].n, 5);
        CHECK(!queue.groups[i].is_running);
    }
    CHECK_INT(queue.n_others, 100 - 5 * VXD_WHY_GROUPS);
}

static void test_config_keys_in_texts_are_found_whole(void)
{
    struct vxd_config config;
    uint64_t number = 0;

    CHECK_STR(vxd_config_key_in("64 wait, limits.queue is 64"), "limits.queue");
    CHECK_STR(vxd_config_key_in("above limits.max_timeout_ms"), "limits.max_timeout_ms");
    CHECK_STR(vxd_config_key_in("limits.scene_bytes_per_token, 5"),
              "limits.scene_bytes_per_token");
    CHECK(vxd_config_key_in("the networks of this data_dir") == NULL);
    CHECK(vxd_config_key_in("limits.queues") == NULL);
    CHECK(vxd_config_key_in("") == NULL);
    vxd_config_default(&config);
    CHECK(vxd_config_number(&config, "limits.queue", &number));
    CHECK_INT(number, 64);
    CHECK(vxd_config_number(&config, "limits.inflight_bytes", &number));
    CHECK_INT(number, 1 << 30);
    CHECK(!vxd_config_number(&config, "listen.http", &number));
    CHECK(!vxd_config_number(&config, "", &number));
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_trace_of_a_well_formed_traceparent_is_taken),
    VXD_TEST(test_trace_of_a_malformed_traceparent_counts_as_none),
    VXD_TEST(test_trace_spans_of_different_numbers_differ),
    VXD_TEST(test_whys_of_a_token_are_not_pushed_out_by_another),
    VXD_TEST(test_why_queue_counts_by_method_and_token),
    VXD_TEST(test_config_keys_in_texts_are_found_whole),
};

VXD_TEST_MAIN(tests)
