// SPDX-License-Identifier: Apache-2.0
/* libvoxeld's asynchronous calls, and many threads on one client, against a scripted
 * peer. */
#include <nng/nng.h>
#include <nng/supplemental/util/platform.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/support/client/client_requests.h"

enum {
    BIG_POINTS = 300000
};

/* The results that the callbacks got. */
struct seen {
    atomic_int n_ok;
    atomic_int n_failed;
    enum voxeld_status last;
    pthread_t thread;
    bool other_thread;
};

static void note(void *context, struct voxeld_voxels *voxels,
                 const struct voxeld_error *error)
{
    struct seen *seen = context;

    CHECK((voxels == NULL) == (error != NULL));
    if (!pthread_equal(pthread_self(), seen->thread)) {
        seen->other_thread = true;
    }
    if (error != NULL) {
        seen->last = error->code;
        atomic_fetch_add(&seen->n_failed, 1);
    } else {
        atomic_fetch_add(&seen->n_ok, 1);
    }
    voxeld_voxels_free(voxels);
}

static void test_calls_beyond_the_bound_are_refused_at_once(void)
{
    struct peer peer;
    struct voxeld_client *client;
    struct voxeld_cloud cloud = some_cloud();
    struct voxeld_voxelize_request request = some_request(&cloud);
    struct seen seen = {.thread = pthread_self()};
    struct voxeld_error error;
    struct pollfd poll_fd = {.events = POLLIN};

    REQUIRE(peer_start(&peer, NULL) == 0);
    client = connect_to(&peer, 2);
    REQUIRE(client != NULL);
    poll_fd.fd = voxeld_fd(client);
    request.call.timeout_ms = PATIENT_MS;
    atomic_store(&peer.mode, PEER_HOLD);
    CHECK_INT(voxeld_voxelize_async(client, &request, note, &seen, NULL), VOXELD_OK);
    CHECK_INT(voxeld_voxelize_async(client, &request, note, &seen, NULL), VOXELD_OK);
    CHECK_INT(voxeld_voxelize_async(client, &request, note, &seen, &error),
              VOXELD_RESOURCE_EXHAUSTED);
    CHECK(strstr(error.message, "max_in_flight") != NULL);
    CHECK_INT(call(client, 1000, &error), VOXELD_RESOURCE_EXHAUSTED);
    CHECK_INT(poll(&poll_fd, 1, 0), 0);
    CHECK_INT(voxeld_dispatch(client, 0), 0);
    peer_release(&peer);
    for (int i = 0; i < 2 && atomic_load(&seen.n_ok) < 2; i++) {
        CHECK_INT(poll(&poll_fd, 1, PATIENT_MS), 1);
        CHECK(voxeld_dispatch(client, 0) >= 1);
    }
    CHECK_INT(atomic_load(&seen.n_ok), 2);
    CHECK_INT(poll(&poll_fd, 1, 0), 0);
    CHECK(!seen.other_thread);
    CHECK_INT(call(client, PATIENT_MS, &error), VOXELD_OK);
    voxeld_close(client);
    peer_stop(&peer);
}

static void test_async_reply_too_late_is_called_back_on_time(void)
{
    struct peer peer;
    struct voxeld_client *client;
    struct voxeld_cloud cloud = some_cloud();
    struct voxeld_voxelize_request request = some_request(&cloud);
    struct seen seen = {.thread = pthread_self()};
    nng_time begin;
    size_t n_early;
    bool was_early;

    REQUIRE(peer_start(&peer, NULL) == 0);
    client = connect_to(&peer, 2);
    REQUIRE(client != NULL);
    atomic_store(&peer.mode, PEER_HOLD);
    request.call.timeout_ms = 100;
    begin = nng_clock();
    CHECK_INT(voxeld_voxelize_async(client, &request, note, &seen, NULL), VOXELD_OK);
    n_early = voxeld_dispatch(client, 20);
    was_early = nng_clock() - begin < 95; /* a busy machine may be back later */
    CHECK(n_early == 0 || !was_early);
    CHECK_INT(n_early + voxeld_dispatch(client, -1), 1);
    CHECK(nng_clock() - begin >= 95 && nng_clock() - begin < PATIENT_MS);
    CHECK_INT(seen.last, VOXELD_DEADLINE_EXCEEDED);
    CHECK_INT(voxeld_dispatch(client, -1), 0);
    voxeld_close(client);
    peer_stop(&peer);
}

/* The server stops reading: the last calls never leave the send queue. */
static void test_calls_that_cannot_be_sent_are_deadline_exceeded_on_time(void)
{
    enum {
        N_STUCK = PEER_THREADS + 6
    };
    struct peer peer;
    struct voxeld_client *client;
    struct voxeld_cloud cloud = some_cloud();
    struct voxeld_voxelize_request request = some_request(&cloud);
    struct seen seen = {.thread = pthread_self()};
    float *many = calloc(BIG_POINTS, 12);
    nng_time begin;
    int n = 0;

    REQUIRE(many != NULL && peer_start(&peer, NULL) == 0);
    client = connect_to(&peer, N_STUCK);
    REQUIRE(client != NULL);
    cloud.data = many;
    cloud.n_points = BIG_POINTS;
    request.call.timeout_ms = 500;
    atomic_store(&peer.mode, PEER_HOLD);
    begin = nng_clock();
    for (int i = 0; i < N_STUCK; i++) {
        CHECK_INT(voxeld_voxelize_async(client, &request, note, &seen, NULL), VOXELD_OK);
    }
    while (n < N_STUCK) {
        n += (int)voxeld_dispatch(client, -1);
    }
    CHECK(nng_clock() - begin < PATIENT_MS); /* 50 MB were packed meanwhile */
    CHECK_INT(atomic_load(&seen.n_failed), N_STUCK);
    CHECK_INT(seen.last, VOXELD_DEADLINE_EXCEEDED);
    CHECK(atomic_load(&peer.n_voxelize) < N_STUCK);
    /* The late replies are small: nng 1.5.2 can hang, for the whole process, when a
     * socket is closed while a large one comes in. If this reply comes, all before it
     * have come. */
    atomic_store(&peer.mode, PEER_FAIL);
    peer_release(&peer);
    CHECK_INT(call(client, PATIENT_MS, NULL), VOXELD_INVALID_ARGUMENT);
    voxeld_close(client);
    peer_stop(&peer);
    free(many);
}

/* Makes a server that shakes hands and reads nothing more; returns its end of the
 * connection, or -1. */
static int accept_silently(int listener)
{
    static const uint8_t hello[8] = {0, 'S', 'P', 0, 0, 0x31, 0, 0};
    uint8_t theirs[8];
    int fd = accept(listener, NULL, NULL);

    if (fd >= 0 && (send(fd, hello, sizeof hello, MSG_NOSIGNAL) != sizeof hello ||
                    recv(fd, theirs, sizeof theirs, MSG_WAITALL) != sizeof theirs)) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

/* The first call fills the connection, the others wait for it to be ready again. */
static void test_calls_not_sent_when_the_server_dies_are_unavailable_at_once(void)
{
    enum {
        N_STUCK = 4
    };
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char directory[] = "/tmp/vxd-async-XXXXXX";
    char url[128];
    struct voxeld_options options = {.url = url, .wait_ms = VOXELD_NO_WAIT};
    struct voxeld_client *client = NULL;
    struct voxeld_cloud cloud = some_cloud();
    struct voxeld_voxelize_request request = some_request(&cloud);
    struct seen seen = {.thread = pthread_self()};
    float *many = calloc(BIG_POINTS, 12);
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    int connection;
    nng_time begin;
    int n = 0;

    REQUIRE(many != NULL && listener >= 0 && mkdtemp(directory) != NULL);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s/s", directory);
    (void)snprintf(url, sizeof url, "ipc://%s", address.sun_path);
    REQUIRE(bind(listener, (const struct sockaddr *)&address, sizeof address) == 0 &&
            listen(listener, 1) == 0);
    REQUIRE(voxeld_connect(&options, &client, NULL) == VOXELD_OK);
    connection = accept_silently(listener);
    REQUIRE(connection >= 0);
    for (int i = 0; i < PATIENT_MS / 10 && !voxeld_is_connected(client); i++) {
        nng_msleep(10);
    }
    cloud.data = many;
    cloud.n_points = BIG_POINTS;
    request.call.timeout_ms = 4 * PATIENT_MS;
    for (int i = 0; i < N_STUCK; i++) {
        CHECK_INT(voxeld_voxelize_async(client, &request, note, &seen, NULL), VOXELD_OK);
    }
    nng_msleep(50);
    begin = nng_clock();
    (void)close(listener);
    (void)close(connection);
    while (n < N_STUCK) {
        n += (int)voxeld_dispatch(client, -1);
    }
    CHECK(nng_clock() - begin < PATIENT_MS);
    CHECK_INT(atomic_load(&seen.n_failed), N_STUCK);
    CHECK_INT(seen.last, VOXELD_UNAVAILABLE);
    voxeld_close(client);
    (void)unlink(address.sun_path);
    (void)rmdir(directory);
    free(many);
}

static void test_close_gives_running_calls_back_as_cancelled(void)
{
    struct peer peer;
    struct voxeld_client *client;
    struct voxeld_cloud cloud = some_cloud();
    struct voxeld_voxelize_request request = some_request(&cloud);
    struct seen seen = {.thread = pthread_self()};

    REQUIRE(peer_start(&peer, NULL) == 0);
    client = connect_to(&peer, 0);
    REQUIRE(client != NULL);
    atomic_store(&peer.mode, PEER_HOLD);
    request.call.timeout_ms = 60000;
    for (int i = 0; i < 4; i++) {
        CHECK_INT(voxeld_voxelize_async(client, &request, note, &seen, NULL), VOXELD_OK);
    }
    voxeld_close(client);
    CHECK_INT(atomic_load(&seen.n_failed), 4);
    CHECK_INT(seen.last, VOXELD_CANCELLED);
    CHECK(!seen.other_thread);
    peer_stop(&peer);
}

enum {
    N_CALLERS = 6,
    N_CALLS = 60
};

struct caller {
    struct voxeld_client *client;
    int n_ok;
    int n_wrong;
};

static void *make_calls(void *arg)
{
    struct caller *caller = arg;

    for (int i = 0; i < N_CALLS; i++) {
        struct voxeld_cloud cloud = some_cloud();
        struct voxeld_voxelize_request request = some_request(&cloud);
        struct voxeld_voxels *voxels = NULL;

        cloud.n_points = 1 + (size_t)i % N_POINTS;
        request.call.timeout_ms = PATIENT_MS;
        if (voxeld_voxelize(caller->client, &request, &voxels, NULL) == VOXELD_OK &&
            voxels->n_voxels == cloud.n_points) {
            caller->n_ok++;
        } else {
            caller->n_wrong++;
        }
        voxeld_voxels_free(voxels);
    }
    return NULL;
}

static void test_many_threads_on_one_client_get_their_own_replies(void)
{
    struct peer peer;
    struct voxeld_client *client;
    struct voxeld_cloud cloud = some_cloud();
    struct voxeld_voxelize_request request = some_request(&cloud);
    struct caller callers[N_CALLERS] = {{0}};
    pthread_t threads[N_CALLERS];
    struct seen seen = {.thread = pthread_self()};
    int n_started = 0;

    REQUIRE(peer_start(&peer, NULL) == 0);
    client = connect_to(&peer, N_CALLERS + N_CALLS);
    REQUIRE(client != NULL);
    request.call.timeout_ms = PATIENT_MS;
    for (int i = 0; i < N_CALLERS; i++) {
        callers[i].client = client;
        REQUIRE(pthread_create(&threads[i], NULL, make_calls, &callers[i]) == 0);
    }
    for (int i = 0; i < N_CALLS; i++) {
        n_started +=
            voxeld_voxelize_async(client, &request, note, &seen, NULL) == VOXELD_OK ? 1
                                                                                    : 0;
        (void)voxeld_dispatch(client, 0);
    }
    while (voxeld_dispatch(client, -1) > 0) {
    }
    for (int i = 0; i < N_CALLERS; i++) {
        (void)pthread_join(threads[i], NULL);
        CHECK_INT(callers[i].n_ok, N_CALLS);
        CHECK_INT(callers[i].n_wrong, 0);
    }
    CHECK_INT(atomic_load(&seen.n_ok), n_started);
    CHECK(!seen.other_thread);
    voxeld_close(client);
    peer_stop(&peer);
}

static const struct vxd_test tests[] = {
    /* These go first, because later tests may leave nng 1.5.2 unable to end a
     * connection. */
    VXD_TEST(test_calls_not_sent_when_the_server_dies_are_unavailable_at_once),
    VXD_TEST(test_calls_beyond_the_bound_are_refused_at_once),
    VXD_TEST(test_async_reply_too_late_is_called_back_on_time),
    VXD_TEST(test_calls_that_cannot_be_sent_are_deadline_exceeded_on_time),
    VXD_TEST(test_close_gives_running_calls_back_as_cancelled),
    VXD_TEST(test_many_threads_on_one_client_get_their_own_replies),
};

VXD_TEST_MAIN(tests)
