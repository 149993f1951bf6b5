// SPDX-License-Identifier: Apache-2.0
/* Fairness: turns by the time that lanes have worked for a sender, and places in a full queue. */
#include "tests/support/test.h"

#include <unistd.h>

#include "server/schedule/schedule.h"
#include "tests/support/server/server_checks.h"
#include "tests/support/server/sleep_methods.h"

VXD_TEST_HELPERS

/* printf %s heavy | sha256sum, and of light */
#define HASH_HEAVY "22d5925ed64680ab5f3f6de713645a3d72cae7a9506b8a55a0d4fe950737711b"
#define HASH_LIGHT "99a7026172d42714d0293e5598ec1c8e8260d7d0c4b8582ad002c1883494e216"

static void send(struct call *call, struct vxd_server *server,
                 const struct vxd_method *method, struct vxd_request_header header,
                 unsigned stage_ms)
{
    char json[96];

    (void)snprintf(json, sizeof json, "{\"durationMs\": %u, \"nPoints\": 1}", stage_ms);
    call_begin(call);
    call_json(call, server, method, &header, json);
}

/* A user of an ipc socket, who names a client. */
static struct vxd_request_header user(int64_t uid, const char *client)
{
    return (struct vxd_request_header){
        .client_id = client, .peer = "ipc", .peer_uid = uid};
}

static struct vxd_request_header address(const char *peer, const char *client)
{
    return (struct vxd_request_header){.client_id = client, .peer = peer, .peer_uid = -1};
}

static void expect(struct call *calls, size_t n, enum vxd_status status)
{
    for (size_t i = 0; i < n; i++) {
        CHECK_INT(call_wait(&calls[i]), status);
        call_finish(&calls[i]);
    }
}

/* Keeps the lanes busy until let go: both read lanes, or the write lane. */
static void occupy(struct vxd_server *server, const struct vxd_method *method,
                   struct call *calls, int n)
{
    hold_jobs();
    for (int i = 0; i < n; i++) {
        send(&calls[i], server, method, user(9, "lane"), HELD_MS);
    }
    CHECK(await_held(n));
    forget_seen();
}

static void test_full_queue_gives_a_place_to_whoever_has_fewer(void)
{
    struct vxd_server *server = server_start(&(struct server_setup){.queue_limit = 4});
    struct call lanes[2];
    struct call greedy[5];
    struct call polite[3];

    REQUIRE(server != NULL);
    occupy(server, &small_method, lanes, 2);
    for (int i = 0; i < 5; i++) {
        send(&greedy[i], server, &small_method, user(1, i % 2 == 0 ? "a" : "b"), 1);
    }
    CHECK_INT(call_wait(&greedy[4]),
              VXD_UNAVAILABLE); /* a client of its own has no more */
    for (int i = 0; i < 3; i++) {
        send(&polite[i], server, &small_method, user(2, "c"), 1);
    }
    /* Whoever came last gives its place; each has two in the end, and the third is refused. */
    CHECK_INT(call_wait(&greedy[3]), VXD_UNAVAILABLE);
    CHECK(strstr(greedy[3].err.message, "another sender had fewer places") != NULL);
    CHECK_INT(call_wait(&greedy[2]), VXD_UNAVAILABLE);
    CHECK_INT(call_wait(&polite[2]), VXD_UNAVAILABLE);
    CHECK(strstr(polite[2].err.message, "limits.queue is 4") != NULL);
    let_jobs_go();
    expect(lanes, 2, VXD_OK);
    expect(greedy, 2, VXD_OK);
    expect(polite, 2, VXD_OK);
    call_finish(&polite[2]);
    for (int i = 2; i < 5; i++) {
        call_finish(&greedy[i]);
    }
    server_finish(server);
}

static void test_places_of_one_sender_are_shared_by_its_clients_and_lanes(void)
{
    struct vxd_server *server = server_start(&(struct server_setup){.queue_limit = 4});
    struct call writer[1];
    struct call lanes[2];
    struct call many[4];
    struct call other;
    struct call read;

    REQUIRE(server != NULL);
    occupy(server, &write_method, writer, 1);
    for (int i = 0; i < 2; i++) {
        send(&lanes[i], server, &small_method, user(9, "lane"), HELD_MS);
    }
    CHECK(await_held(3));
    for (int i = 0; i < 4; i++) {
        send(&many[i], server, &write_method, user(1, "a"), 1);
    }
    send(&other, server, &write_method, user(1, "b"), 1);
    CHECK_INT(call_wait(&many[3]), VXD_UNAVAILABLE);
    send(&read, server, &small_method, user(1, "a"), 1);
    CHECK_INT(call_wait(&many[2]), VXD_UNAVAILABLE);
    let_jobs_go();
    expect(writer, 1, VXD_OK);
    expect(lanes, 2, VXD_OK);
    expect(&other, 1, VXD_OK);
    expect(&read, 1, VXD_OK);
    expect(many, 2, VXD_OK);
    call_finish(&many[2]);
    call_finish(&many[3]);
    server_finish(server);
}

static void test_turns_are_of_the_time_that_lanes_worked(void)
{
    static const char *const order[] = {"greedy", "polite", "polite", "polite",
                                        "polite", "greedy", "greedy"};
    struct vxd_server *server = server_start(&(struct server_setup){0});
    struct call lane[1];
    struct call greedy[3];
    struct call polite[4];

    REQUIRE(server != NULL);
    occupy(server, &write_method, lane, 1);
    for (int i = 0; i < 3; i++) {
        send(&greedy[i], server, &write_method, user(1, "greedy"), 400);
    }
    for (int i = 0; i < 4; i++) {
        send(&polite[i], server, &write_method, user(2, "polite"), 1);
    }
    let_jobs_go();
    expect(lane, 1, VXD_OK);
    expect(polite, 4, VXD_OK);
    expect(greedy, 3, VXD_OK);
    CHECK_INT(n_starts(), 7);
    for (int i = 0; i < 7; i++) {
        CHECK_STR(seen.clients[i], order[i]);
    }
    server_finish(server);
}

static void test_client_ids_of_one_sender_get_its_share_and_no_more(void)
{
    static const char *const order[] = {"a", "honest", "honest", "b", "c", "d"};
    struct vxd_server *server = server_start(&(struct server_setup){0});
    struct call lane[1];
    struct call greedy[4];
    struct call honest[2];

    REQUIRE(server != NULL);
    occupy(server, &write_method, lane, 1);
    for (int i = 0; i < 4; i++) {
        static const char *const ids[] = {"a", "b", "c", "d"};
        static const char *const peers[] = {"tcp 10.0.0.1:1", "tcp 10.0.0.1:2",
                                            "tcp 10.0.0.1:3", "tcp 10.0.0.1:4"};

        send(&greedy[i], server, &write_method, address(peers[i], ids[i]), 100);
    }
    for (int i = 0; i < 2; i++) {
        send(&honest[i], server, &write_method, address("tcp 10.0.0.2:1", "honest"), 0);
    }
    let_jobs_go();
    expect(lane, 1, VXD_OK);
    expect(greedy, 4, VXD_OK);
    expect(honest, 2, VXD_OK);
    for (int i = 0; i < 6; i++) {
        CHECK_STR(seen.clients[i], order[i]);
    }
    server_finish(server);
}

static void test_weights_are_the_senders_shares(void)
{
    static const char text[] = "heavy read,write " HASH_HEAVY " weight=3\n"
                               "light read,write " HASH_LIGHT "\n";
    char path[] = "/tmp/voxeld-fair-XXXXXX";
    int fd = mkstemp(path);
    struct vxd_server *server;
    struct call lanes[2];
    struct call light[8];
    struct call heavy[7];

    REQUIRE(fd >= 0 && write(fd, text, sizeof text - 1) == (ssize_t)(sizeof text - 1));
    (void)close(fd);
    server = server_start(&(struct server_setup){.queue_limit = 8, .tokens_file = path});
    REQUIRE(server != NULL);
    hold_jobs();
    for (int i = 0; i < 2; i++) {
        struct vxd_request_header header = {.peer = "ipc", .peer_uid = 0};

        send(&lanes[i], server, &small_method, header, HELD_MS);
    }
    CHECK(await_held(2));
    for (int i = 0; i < 15; i++) {
        struct vxd_request_header header = {.peer = "tcp 10.0.0.1:1", .peer_uid = -1};

        header.token = i < 8 ? "light" : "heavy";
        send(i < 8 ? &light[i] : &heavy[i - 8], server, &small_method, header, 1);
    }
    /* Six places to two. */
    for (int i = 0; i < 8; i++) {
        CHECK_INT(call_is_answered(&light[i]), i >= 2);
    }
    CHECK_INT(call_wait(&heavy[6]), VXD_UNAVAILABLE);
    let_jobs_go();
    expect(lanes, 2, VXD_OK);
    expect(light, 2, VXD_OK);
    expect(light + 2, 6, VXD_UNAVAILABLE);
    expect(heavy, 6, VXD_OK);
    call_finish(&heavy[6]);
    server_finish(server);
    (void)unlink(path);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_full_queue_gives_a_place_to_whoever_has_fewer),
    VXD_TEST(test_places_of_one_sender_are_shared_by_its_clients_and_lanes),
    VXD_TEST(test_turns_are_of_the_time_that_lanes_worked),
    VXD_TEST(test_client_ids_of_one_sender_get_its_share_and_no_more),
    VXD_TEST(test_weights_are_the_senders_shares),
};

VXD_TEST_MAIN(tests)
