// SPDX-License-Identifier: Apache-2.0
/* Calls over sockets of libvoxeld's own, against a server that is written byte by byte here. */
#include <nng/nng.h>
#include <nng/supplemental/util/platform.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/c/direct/direct_internal.h"
#include "client/c/direct/direct.h"
#include "tests/support/test.h"

enum {
    PATIENT_MS = 20000,
    BIG_BYTES = 300000,
    MAX_REPLY_BYTES = 1 << 20,
    MAX_REQUEST_BYTES = 2 * BIG_BYTES,
    MAX_KEPT = 8
};

/* How the server answers, where it does not do it right. */
enum flaw {
    FLAW_NONE,
    FLAW_PREFIX,   /* another kind of message than a request's reply */
    FLAW_SHORT,    /* no place for the id */
    FLAW_OTHER_ID, /* the reply to another request */
    FLAW_MORE,     /* a byte behind the reply */
    FLAW_LARGE,    /* above what the client takes */
    FLAW_HUGE,     /* above what memory holds */
    FLAW_CUT,      /* its connection ends in the middle */
    FLAW_SILENT,
    N_FLAWS
};

struct raw_server {
    char path[64];
    char url[80];
    int listener;
    pthread_t thread;
    atomic_int flaw;
    atomic_int greets;      /* 0: connections are closed instead */
    atomic_int answers;     /* 0: connections are kept and nothing is read */
    atomic_int closes;      /* after each reply */
    atomic_int piece_bytes; /* of replies */
    atomic_int n_connections;
    atomic_size_t n_reply;
    uint8_t request[MAX_REQUEST_BYTES]; /* the last one, with head and id */
    size_t n_request;
    int kept[MAX_KEPT];
    int n_kept;
};

static bool read_all(int fd, uint8_t *out, size_t n_bytes)
{
    size_t at = 0;

    while (at < n_bytes) {
        ssize_t n = recv(fd, out + at, n_bytes - at, 0);

        if (n <= 0) {
            return false;
        }
        at += (size_t)n;
    }
    return true;
}

static void write_all(int fd, const uint8_t *bytes, size_t n_bytes, size_t n_piece)
{
    for (size_t at = 0; at < n_bytes;) {
        size_t n_left = n_bytes - at;
        ssize_t n =
            send(fd, bytes + at, n_left < n_piece ? n_left : n_piece, MSG_NOSIGNAL);

        if (n <= 0) {
            return;
        }
        at += (size_t)n;
    }
}

static void write_number(uint8_t out[8], uint64_t number)
{
    for (int i = 0; i < 8; i++) {
        out[i] = (uint8_t)(number >> (56 - 8 * i));
    }
}

static bool read_request(struct raw_server *server, int fd)
{
    uint64_t n = 0;

    if (!read_all(fd, server->request, 9)) {
        return false;
    }
    for (int i = 1; i < 9; i++) {
        n = n << 8 | server->request[i];
    }
    server->n_request = 9 + (size_t)n;
    return n <= MAX_REQUEST_BYTES - 9 && read_all(fd, server->request + 9, (size_t)n);
}

static bool answer(struct raw_server *server, int fd)
{
    int flaw;
    size_t n_reply;
    size_t n_sent;
    uint64_t n_said;
    uint8_t *reply;

    if (!read_request(server, fd)) {
        return false;
    }
    /* The test has set these before it sent the request. */
    flaw = atomic_load(&server->flaw);
    n_reply = atomic_load(&server->n_reply);
    n_sent = 13 + n_reply;
    n_said = 4 + n_reply;
    reply = calloc(1, n_sent + 1);
    if (reply == NULL) {
        return false;
    }
    reply[0] = flaw == FLAW_PREFIX ? 2 : 1;
    memcpy(reply + 9, server->request + 9, 4);
    for (size_t i = 0; i < n_reply; i++) {
        reply[13 + i] = (uint8_t)(i * 7);
    }
    if (flaw == FLAW_SHORT) {
        n_said = 3;
    } else if (flaw == FLAW_OTHER_ID) {
        reply[12] ^= 1;
    } else if (flaw == FLAW_MORE) {
        n_sent++;
    } else if (flaw == FLAW_LARGE) {
        n_said = MAX_REPLY_BYTES + 1;
    } else if (flaw == FLAW_HUGE) {
        n_said = UINT64_MAX;
    } else if (flaw == FLAW_CUT) {
        n_sent /= 2;
    }
    write_number(reply + 1, n_said);
    if (flaw != FLAW_SILENT) {
        write_all(fd, reply, n_sent, (size_t)atomic_load(&server->piece_bytes));
    }
    free(reply);
    return flaw != FLAW_CUT && !atomic_load(&server->closes);
}

static void *serve(void *arg)
{
    static const uint8_t theirs[8] = {0, 'S', 'P', 0, 0, 0x30, 0, 0};
    static const uint8_t ours[8] = {0, 'S', 'P', 0, 0, 0x31, 0, 0};
    struct raw_server *server = arg;
    int fd;

    while ((fd = accept(server->listener, NULL, NULL)) >= 0) {
        uint8_t greeting[8];

        atomic_fetch_add(&server->n_connections, 1);
        if (atomic_load(&server->greets) && read_all(fd, greeting, sizeof greeting)) {
            CHECK(memcmp(greeting, theirs, sizeof theirs) == 0);
            write_all(fd, ours, sizeof ours, sizeof ours);
            if (!atomic_load(&server->answers) && server->n_kept < MAX_KEPT) {
                server->kept[server->n_kept++] = fd;
                continue;
            }
            while (answer(server, fd)) {
            }
        }
        (void)close(fd);
    }
    return NULL;
}

static bool start(struct raw_server *server)
{
    static atomic_int n_started;
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    memset(server, 0, sizeof *server);
    (void)snprintf(server->path, sizeof server->path, "/tmp/vxd-direct-%d-%d",
                   (int)getpid(), atomic_fetch_add(&n_started, 1));
    (void)snprintf(server->url, sizeof server->url, "ipc://%s", server->path);
    memcpy(address.sun_path, server->path, sizeof server->path);
    atomic_init(&server->n_reply, 100);
    atomic_init(&server->greets, 1);
    atomic_init(&server->answers, 1);
    atomic_init(&server->piece_bytes, 1 << 20);
    server->listener = socket(AF_UNIX, SOCK_STREAM, 0);
    return server->listener >= 0 &&
           bind(server->listener, (const struct sockaddr *)&address, sizeof address) ==
               0 &&
           listen(server->listener, 16) == 0 &&
           pthread_create(&server->thread, NULL, serve, server) == 0;
}

/* Once no connection of a client stands. */
static void stop(struct raw_server *server)
{
    (void)shutdown(server->listener, SHUT_RDWR);
    (void)pthread_join(server->thread, NULL);
    for (int i = 0; i < server->n_kept; i++) {
        (void)close(server->kept[i]);
    }
    (void)close(server->listener);
    (void)unlink(server->path);
}

/* One call with a small request; gives nng's error, or -1 without a connection. */
static int exchange(struct vxd_direct *direct, struct vxd_reply_memory *memory,
                    const struct vxd_packed *request, uint32_t timeout_ms,
                    struct vxd_message *reply)
{
    static const struct vxd_direct_watch nobody;
    nng_time deadline = nng_clock() + timeout_ms;
    struct vxd_direct_connection *connection = vxd_direct_take(direct, deadline);
    bool sent = false;
    int result;

    *reply = (struct vxd_message){0};
    if (connection == NULL) {
        return -1;
    }
    result = vxd_direct_exchange(direct, connection, request, deadline, &nobody, memory,
                                 &sent, reply);
    CHECK(sent);
    vxd_direct_give(direct, connection, result == 0);
    return result;
}

static struct vxd_packed small_request(void)
{
    static uint8_t bytes[50];

    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)i;
    }
    return (struct vxd_packed){.bytes = bytes, .n_bytes = sizeof bytes};
}

static void test_replies_of_all_sizes_and_pieces_arrive_whole(void)
{
    static const size_t sizes[] = {0,          1,     16383 - 13, 16384 - 13,
                                   16385 - 13, 65536, 70000,      BIG_BYTES};
    static const int pieces[] = {1 << 20, 4096, 1000, 13, 1};
    const struct vxd_packed request = small_request();
    struct vxd_reply_memory *memory = vxd_reply_memory_create();
    struct vxd_direct *direct = NULL;
    struct raw_server server;

    REQUIRE(memory != NULL && start(&server));
    REQUIRE(vxd_direct_create(server.url, MAX_REPLY_BYTES, &direct, NULL) == VXD_OK);
    REQUIRE(direct != NULL);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (size_t j = 0; j < sizeof pieces / sizeof pieces[0]; j++) {
            struct vxd_message reply;
            bool is_equal = true;

            if (pieces[j] == 1 && sizes[i] > 1) {
                continue;
            }
            atomic_store(&server.n_reply, sizes[i]);
            atomic_store(&server.piece_bytes, pieces[j]);
            CHECK_INT(exchange(direct, memory, &request, PATIENT_MS, &reply), 0);
            CHECK_INT(reply.n_bytes, sizes[i]);
            CHECK_INT((uintptr_t)reply.body % VXD_DATA_ALIGN, VXD_RPC_ORIGIN);
            for (size_t k = 0; k < reply.n_bytes; k++) {
                is_equal = is_equal && reply.body[k] == (uint8_t)(k * 7);
            }
            CHECK(is_equal);
            vxd_message_free(&reply);
        }
    }
    CHECK_INT(atomic_load(&server.n_connections), 1);
    vxd_direct_destroy(direct);
    vxd_reply_memory_drop(memory);
    stop(&server);
}

static void test_request_with_parts_arrives_in_its_order(void)
{
    static uint8_t bytes[BIG_BYTES];
    static uint8_t parts[2][100000];
    static uint8_t whole[BIG_BYTES];
    struct vxd_packed request = {
        .bytes = bytes,
        .n_bytes = BIG_BYTES,
        .n_parts = 2,
        .parts = {{.at = 10, .data = parts[0], .n_bytes = sizeof parts[0]},
                  {.at = BIG_BYTES - sizeof parts[1],
                   .data = parts[1],
                   .n_bytes = sizeof parts[1]}}};
    struct vxd_reply_memory *memory = vxd_reply_memory_create();
    struct vxd_direct *direct = NULL;
    struct vxd_message reply;
    struct raw_server server;

    for (size_t i = 0; i < BIG_BYTES; i++) {
        bytes[i] = (uint8_t)(i % 251);
    }
    for (size_t i = 0; i < sizeof parts[0]; i++) {
        parts[0][i] = (uint8_t)(i % 13 + 1);
        parts[1][i] = (uint8_t)(i % 17 + 2);
    }
    memcpy(whole, bytes, sizeof whole);
    memcpy(whole + 10, parts[0], sizeof parts[0]);
    memcpy(whole + BIG_BYTES - sizeof parts[1], parts[1], sizeof parts[1]);
    REQUIRE(memory != NULL && start(&server));
    REQUIRE(vxd_direct_create(server.url, MAX_REPLY_BYTES, &direct, NULL) == VXD_OK);
    CHECK_INT(exchange(direct, memory, &request, PATIENT_MS, &reply), 0);
    vxd_message_free(&reply);
    vxd_direct_destroy(direct);
    vxd_reply_memory_drop(memory);
    stop(&server);
    CHECK_INT(server.n_request, 13 + BIG_BYTES);
    CHECK(server.request[0] == 1 && (server.request[9] & 0x80) != 0);
    CHECK(memcmp(server.request + 13, whole, sizeof whole) == 0);
    memset(whole, 0, sizeof whole);
    vxd_packed_gather(&request, whole);
    CHECK(memcmp(server.request + 13, whole, sizeof whole) == 0);
}

static void test_wrong_replies_end_the_connection_and_the_next_call_works(void)
{
    static const int expected[N_FLAWS] = {
        [FLAW_PREFIX] = NNG_EPROTO,   [FLAW_SHORT] = NNG_EPROTO,
        [FLAW_OTHER_ID] = NNG_EPROTO, [FLAW_MORE] = NNG_EPROTO,
        [FLAW_LARGE] = NNG_EMSGSIZE,  [FLAW_HUGE] = NNG_EMSGSIZE,
        [FLAW_CUT] = NNG_ECONNRESET,  [FLAW_SILENT] = NNG_ETIMEDOUT};
    const struct vxd_packed request = small_request();
    struct vxd_reply_memory *memory = vxd_reply_memory_create();
    struct vxd_direct *direct = NULL;
    struct raw_server server;

    REQUIRE(memory != NULL && start(&server));
    REQUIRE(vxd_direct_create(server.url, MAX_REPLY_BYTES, &direct, NULL) == VXD_OK);
    for (int flaw = FLAW_NONE + 1; flaw < N_FLAWS; flaw++) {
        struct vxd_message reply;
        uint32_t timeout_ms = flaw == FLAW_SILENT ? 100 : PATIENT_MS;

        atomic_store(&server.flaw, flaw);
        CHECK_INT(exchange(direct, memory, &request, timeout_ms, &reply), expected[flaw]);
        CHECK(reply.body == NULL);
        atomic_store(&server.flaw, FLAW_NONE);
        CHECK_INT(exchange(direct, memory, &request, PATIENT_MS, &reply), 0);
        vxd_message_free(&reply);
    }
    vxd_direct_destroy(direct);
    vxd_reply_memory_drop(memory);
    stop(&server);
}

static void test_connection_that_the_server_closed_is_made_anew(void)
{
    const struct vxd_packed request = small_request();
    struct vxd_reply_memory *memory = vxd_reply_memory_create();
    struct vxd_direct *direct = NULL;
    struct raw_server server;

    REQUIRE(memory != NULL && start(&server));
    REQUIRE(vxd_direct_create(server.url, MAX_REPLY_BYTES, &direct, NULL) == VXD_OK);
    atomic_store(&server.closes, 1);
    for (int i = 0; i < 3; i++) {
        struct vxd_message reply;

        CHECK_INT(exchange(direct, memory, &request, PATIENT_MS, &reply), 0);
        vxd_message_free(&reply);
        /* The server has closed before it waits for the next one. */
        nng_msleep(50);
    }
    CHECK_INT(atomic_load(&server.n_connections), 3);
    vxd_direct_destroy(direct);
    vxd_reply_memory_drop(memory);
    stop(&server);
}

static void test_connections_are_few_and_a_refusal_is_not_asked_for_at_once(void)
{
    struct vxd_direct_connection *taken[4];
    struct vxd_direct *direct = NULL;
    nng_time deadline = nng_clock() + PATIENT_MS;
    struct raw_server server;

    REQUIRE(start(&server));
    REQUIRE(vxd_direct_create(server.url, MAX_REPLY_BYTES, &direct, NULL) == VXD_OK);
    atomic_store(&server.greets, 0);
    CHECK(vxd_direct_take(direct, deadline) == NULL);
    CHECK(vxd_direct_take(direct, deadline) == NULL);
    CHECK_INT(atomic_load(&server.n_connections), 1);
    vxd_direct_destroy(direct);
    atomic_store(&server.greets, 1);
    atomic_store(&server.answers, 0);
    REQUIRE(vxd_direct_create(server.url, MAX_REPLY_BYTES, &direct, NULL) == VXD_OK);
    for (int i = 0; i < 4; i++) {
        taken[i] = vxd_direct_take(direct, deadline);
        CHECK(taken[i] != NULL);
    }
    CHECK(vxd_direct_take(direct, deadline) == NULL);
    for (int i = 0; i < 4; i++) {
        vxd_direct_give(direct, taken[i], i > 0);
    }
    taken[0] = vxd_direct_take(direct, deadline);
    CHECK(taken[0] != NULL);
    vxd_direct_give(direct, taken[0], true);
    CHECK_INT(atomic_load(&server.n_connections), 5);
    vxd_direct_destroy(direct);
    stop(&server);
}

static void test_of_connections_that_were_idle_for_long_one_is_kept(void)
{
    struct vxd_direct_connection *taken[3];
    struct vxd_direct *direct = NULL;
    nng_time deadline = nng_clock() + PATIENT_MS;
    struct raw_server server;

    REQUIRE(start(&server));
    atomic_store(&server.answers, 0);
    REQUIRE(vxd_direct_create(server.url, MAX_REPLY_BYTES, &direct, NULL) == VXD_OK);
    vxd_direct_close_idle(direct, nng_clock());
    for (int i = 0; i < 3; i++) {
        taken[i] = vxd_direct_take(direct, deadline);
        REQUIRE(taken[i] != NULL);
    }
    for (int i = 0; i < 3; i++) {
        vxd_direct_give(direct, taken[i], true);
    }
    vxd_direct_close_idle(direct, nng_clock() + VXD_DIRECT_IDLE_MS);
    CHECK(vxd_direct_take(direct, deadline) == taken[2]);
    CHECK_INT(atomic_load(&server.n_connections), 3);
    /* The others' places are free again. */
    taken[0] = vxd_direct_take(direct, deadline);
    taken[1] = vxd_direct_take(direct, deadline);
    REQUIRE(taken[0] != NULL && taken[1] != NULL);
    CHECK_INT(atomic_load(&server.n_connections), 5);
    for (int i = 0; i < 3; i++) {
        vxd_direct_give(direct, taken[i], true);
    }
    vxd_direct_destroy(direct);
    stop(&server);
}

static void test_only_addresses_of_ipc_and_tcp_are_ours(void)
{
    static const struct {
        const char *url;
        bool is_ours;
        const char *host;
        const char *port;
    } cases[] = {
        {"ipc:///run/voxeld/voxeld.sock", true, "/run/voxeld/voxeld.sock", ""},
        {"ipc://relative", true, "relative", ""},
        {"ipc://", false, "", ""},
        {"tcp://127.0.0.1:4242", true, "127.0.0.1", "4242"},
        {"tcp://[::1]:1", true, "::1", "1"},
        {"tcp://192.168.1.20:65535", true, "192.168.1.20", "65535"},
        {"tcp://robot.local:65535", false, "", ""},
        {"tcp://10.0.0.1", false, "", ""},
        {"tcp://:80", false, "", ""},
        {"tcp://10.0.0.1:", false, "", ""},
        {"tcp://10.0.0.1:12ab", false, "", ""},
        {"tcp://10.0.0.1:123456789", false, "", ""},
        {"tls+tcp://10.0.0.1:1", false, "", ""},
        {"inproc://x", false, "", ""},
    };
    char long_url[200] = "ipc://";
    struct vxd_direct_address address;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bool is_ours = vxd_direct_read_url(cases[i].url, &address);

        CHECK_INT(is_ours, cases[i].is_ours);
        if (is_ours) {
            CHECK_STR(address.host, cases[i].host);
            CHECK_STR(address.port, cases[i].port);
        }
    }
    memset(long_url + 6, 'x', sizeof long_url - 7);
    CHECK(!vxd_direct_read_url(long_url, &address));
    long_url[6 + 107] = '\0';
    CHECK(vxd_direct_read_url(long_url, &address));
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_replies_of_all_sizes_and_pieces_arrive_whole),
    VXD_TEST(test_request_with_parts_arrives_in_its_order),
    VXD_TEST(test_wrong_replies_end_the_connection_and_the_next_call_works),
    VXD_TEST(test_connection_that_the_server_closed_is_made_anew),
    VXD_TEST(test_connections_are_few_and_a_refusal_is_not_asked_for_at_once),
    VXD_TEST(test_of_connections_that_were_idle_for_long_one_is_kept),
    VXD_TEST(test_only_addresses_of_ipc_and_tcp_are_ours),
};

VXD_TEST_MAIN(tests)
