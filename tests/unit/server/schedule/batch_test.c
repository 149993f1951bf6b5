// SPDX-License-Identifier: Apache-2.0
/* Requests that run as one, driven by a method that sleeps in two stages. A SelfTestRequest is
 * its parameter: duration_ms a stage, n_points items. */
#include "tests/support/test.h"

#include "proto/base/clock.h"
#include "server/schedule/scheduler_internal.h"
#include "tests/support/server/server_checks.h"
#include "tests/support/server/server_helpers.h"
#include "voxeld/v1/admin.pb-c.h"

VXD_TEST_HELPERS

enum {
    LIMIT = 4,   /* items of a batch */
    BAD_MS = 13, /* whose requests fail, and whatever runs with them */
    MAX_GROUPS = 1024,
    N_TRIES = 4
};

/* Each when the machine was too slow for the one before. */
static const long delays_ms[N_TRIES] = {150, 1000, 5000, 15000};

/* What ran: how many requests each time, and how many were released and forgotten. */
static struct {
    pthread_mutex_t mutex;
    int sizes[MAX_GROUPS];
    int n_groups;
    int n_released;
    int n_forgotten;
    long delay_ms;
} seen = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void forget_seen(long delay_ms)
{
    (void)pthread_mutex_lock(&seen.mutex);
    seen.n_groups = 0;
    seen.n_released = 0;
    seen.n_forgotten = 0;
    seen.delay_ms = delay_ms;
    (void)pthread_mutex_unlock(&seen.mutex);
}

static int n_groups(void)
{
    int n;

    (void)pthread_mutex_lock(&seen.mutex);
    n = seen.n_groups;
    (void)pthread_mutex_unlock(&seen.mutex);
    return n;
}

static const Voxeld__V1__SelfTestRequest *input_of(const struct vxd_request *request)
{
    return (const Voxeld__V1__SelfTestRequest *)request->input;
}

static struct vxd_request *next_of(struct vxd_request *leader, struct vxd_request *r)
{
    return r == leader ? leader->companions : r->next_companion;
}

static enum vxd_status batch_check(struct vxd_request *request, struct vxd_err *err)
{
    static const int key;
    int *n_stages = vxd_decoder_alloc(request->decoder, sizeof *n_stages, err);

    if (n_stages == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    *n_stages = 0;
    request->state = n_stages;
    request->bulk = true; /* one lane */
    request->batch_key = &key;
    request->batch_items = input_of(request)->n_points;
    request->batch_limit = LIMIT;
    if (seen.delay_ms > 0) {
        request->ready_ns = request->received_ns + seen.delay_ms * INT64_C(1000000);
    }
    return VXD_OK;
}

static enum vxd_status batch_submit(struct vxd_request *request, struct vxd_queue *queue,
                                    struct vxd_err *err)
{
    int *n_stages = request->state;
    uint32_t ms = 0;
    int n = 0;

    for (struct vxd_request *r = request; r != NULL; r = next_of(request, r)) {
        uint32_t own = input_of(r)->duration_ms;

        ms = own > ms ? own : ms;
        n++;
        if (own == BAD_MS && *n_stages == 1) {
            return vxd_fail(err, VXD_OUT_OF_RANGE, "duration_ms", "the bad one");
        }
    }
    if (++*n_stages == 1) {
        (void)pthread_mutex_lock(&seen.mutex);
        if (seen.n_groups < MAX_GROUPS) {
            seen.sizes[seen.n_groups++] = n;
        }
        (void)pthread_mutex_unlock(&seen.mutex);
    }
    request->more = *n_stages < 2;
    return push_sleep(queue, ms, err);
}

static enum vxd_status batch_finish(struct vxd_request *request, struct vxd_queue *queue,
                                    struct vxd_err *err)
{
    (void)queue;
    for (struct vxd_request *r = request; r != NULL; r = next_of(request, r)) {
        Voxeld__V1__SelfTestResponse *reply =
            vxd_decoder_alloc(r->decoder, sizeof *reply, err);

        if (reply == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
        voxeld__v1__self_test_response__init(reply);
        reply->n_stages = input_of(r)->n_points; /* whose reply it is */
        r->output = &reply->base;
    }
    return VXD_OK;
}

static void batch_release(struct vxd_request *request, struct vxd_queue *queue)
{
    (void)queue;
    *(int *)request->state = 0;
    (void)pthread_mutex_lock(&seen.mutex);
    seen.n_released++;
    (void)pthread_mutex_unlock(&seen.mutex);
}

static void batch_forget(struct vxd_request *request)
{
    (void)request;
    (void)pthread_mutex_lock(&seen.mutex);
    seen.n_forgotten++;
    (void)pthread_mutex_unlock(&seen.mutex);
}

static const struct vxd_method method = {
    .name = "batch",
    .tag = 1000,
    .summary = "",
    .scope = VXD_SCOPE_READ,
    .lane = VXD_LANE_READ,
    .input = &voxeld__v1__self_test_request__descriptor,
    .output = &voxeld__v1__self_test_response__descriptor,
    .check = batch_check,
    .submit = batch_submit,
    .finish = batch_finish,
    .release = batch_release,
    .forget = batch_forget,
};

static void send(struct call *call, struct vxd_server *server,
                 const struct vxd_request_header *header, unsigned ms, unsigned n_items)
{
    char json[96];

    (void)snprintf(json, sizeof json, "{\"durationMs\": %u, \"nPoints\": %u}", ms,
                   n_items);
    call_begin(call);
    call_json(call, server, &method, header, json);
}

/* The reply is the request's own. */
static void expect_ok(struct call *call, unsigned n_items)
{
    Voxeld__V1__SelfTestResponse *reply;

    CHECK_INT(call_wait(call), VXD_OK);
    reply = voxeld__v1__self_test_response__unpack(NULL, call->n_packed, call->packed);
    CHECK(reply != NULL && reply->n_stages == n_items);
    if (reply != NULL) {
        voxeld__v1__self_test_response__free_unpacked(reply, NULL);
    }
    call_finish(call);
}

static void test_batch_of_those_that_wait_is_as_large_as_it_may_be(void)
{
    static const unsigned items[] = {1, 2, 3, 1, 1};
    struct vxd_server *server = server_start(&(struct server_setup){0});
    struct call first;
    struct call waiting[5];

    REQUIRE(server != NULL);
    forget_seen(0);
    hold_jobs();
    send(&first, server, NULL, HELD_MS, 1);
    CHECK(await_held(1));
    for (int i = 0; i < 5; i++) {
        send(&waiting[i], server, NULL, 1, items[i]);
    }
    let_jobs_go();
    expect_ok(&first, 1);
    for (int i = 0; i < 5; i++) {
        expect_ok(&waiting[i], items[i]);
    }
    server_finish(server);
    /* 1; then 1 + 2 + 1, since 3 would be too many; then 3 + 1. */
    CHECK_INT(seen.n_groups, 3);
    CHECK_INT(seen.sizes[0], 1);
    CHECK_INT(seen.sizes[1], 3);
    CHECK_INT(seen.sizes[2], 2);
    CHECK_INT(seen.n_released, 3);
    CHECK_INT(seen.n_forgotten, 6);
}

/* All but the first are sent within the delay of the first, so that they run with it. */
static bool came_together(const struct call *first, long delay_ms)
{
    return vxd_clock_ns() - first->sent_ns < delay_ms * 1000000;
}

static void test_batch_waits_for_its_delay_and_no_longer_than_until_it_is_full(void)
{
    struct vxd_server *server = server_start(&(struct server_setup){0});
    struct call calls[LIMIT];
    bool together = false;

    REQUIRE(server != NULL);
    for (int try = 0; try < N_TRIES && !together; try++) {
        forget_seen(delays_ms[try]);
        for (int i = 0; i < 2; i++) {
            send(&calls[i], server, NULL, 1, 1);
        }
        together = came_together(&calls[0], delays_ms[try]);
        CHECK_INT(call_wait(&calls[0]), VXD_OK);
        CHECK(call_ms(&calls[0]) >= (double)delays_ms[try]);
        for (int i = 0; i < 2; i++) {
            expect_ok(&calls[i], 1);
        }
    }
    CHECK(together);
    CHECK_INT(seen.n_groups, 1);
    CHECK_INT(seen.sizes[0], 2);
    forget_seen(60000); /* nobody waits for so long */
    for (int i = 0; i < LIMIT; i++) {
        send(&calls[i], server, NULL, 1, 1);
    }
    for (int i = 0; i < LIMIT; i++) {
        expect_ok(&calls[i], 1);
    }
    CHECK_INT(seen.n_groups, 1);
    CHECK_INT(seen.sizes[0], LIMIT);
    server_finish(server);
}

static void test_batch_that_fails_runs_again_one_by_one(void)
{
    struct vxd_server *server = server_start(&(struct server_setup){0});
    struct call calls[3];
    bool together = false;

    REQUIRE(server != NULL);
    for (int try = 0; try < N_TRIES && !together; try++) {
        forget_seen(delays_ms[try]);
        send(&calls[0], server, NULL, 1, 1);
        send(&calls[1], server, NULL, BAD_MS, 1);
        send(&calls[2], server, NULL, 2, 2);
        together = came_together(&calls[0], delays_ms[try]);
        expect_ok(&calls[0], 1);
        CHECK_INT(call_wait(&calls[1]), VXD_OUT_OF_RANGE);
        CHECK(strcmp(calls[1].err.field, "duration_ms") == 0);
        call_finish(&calls[1]);
        expect_ok(&calls[2], 2);
    }
    CHECK(together);
    server_finish(server);
    CHECK_INT(seen.n_groups, 4);
    CHECK_INT(seen.sizes[0], 3);
    CHECK_INT(seen.sizes[3], 1);
    CHECK_INT(seen.n_released, 4);
    CHECK_INT(seen.n_forgotten, 3);
}

/* The deadline of one of three that run together passes while they do; false when the machine was
 * too slow for that. */
static bool pass_deadline_of(struct vxd_server *server, int which, long delay_ms)
{
    struct vxd_request_header hurried = {
        .peer = "test", .peer_uid = -1, .timeout_ms = (uint32_t)delay_ms * 2};
    struct call calls[3];
    bool together;

    hold_jobs();
    forget_seen(delay_ms);
    for (int i = 0; i < 3; i++) {
        send(&calls[i], server, i == which ? &hurried : NULL, HELD_MS, 1);
    }
    together = came_together(&calls[0], delay_ms);
    while (n_held() == 0 && !call_is_answered(&calls[which])) {
        wait_ms(1);
    }
    together = together && !call_is_answered(&calls[which]);
    CHECK_INT(call_wait(&calls[which]), VXD_DEADLINE_EXCEEDED);
    let_jobs_go();
    call_finish(&calls[which]);
    for (int i = 0; i < 3; i++) {
        if (i != which) {
            expect_ok(&calls[i], 1);
        }
    }
    return together;
}

/* Whose deadline passes is answered on time; the others get their results, be it the first of
 * them or another. */
static void test_batch_deadline_of_one_is_no_others(void)
{
    struct vxd_server *server = server_start(&(struct server_setup){0});

    REQUIRE(server != NULL);
    for (int which = 0; which < 3; which++) {
        bool together = false;

        for (int try = 0; try < N_TRIES && !together; try++) {
            together = pass_deadline_of(server, which, delays_ms[try]);
        }
        CHECK(together);
        CHECK_INT(n_groups(), 1);
        CHECK_INT(seen.sizes[0], 3);
    }
    server_finish(server);
}

static void test_batch_that_waits_is_answered_when_the_server_drains(void)
{
    struct vxd_server *server = server_start(&(struct server_setup){0});
    struct call calls[2];

    REQUIRE(server != NULL);
    forget_seen(60000);
    for (int i = 0; i < 2; i++) {
        send(&calls[i], server, NULL, 1, 1);
    }
    CHECK(!vxd_scheduler_drain(server->scheduler, 50));
    for (int i = 0; i < 2; i++) {
        CHECK_INT(call_wait(&calls[i]), VXD_UNAVAILABLE);
        call_finish(&calls[i]);
    }
    server_finish(server);
    CHECK_INT(seen.n_forgotten, 2);
    CHECK_INT(seen.n_released, 0);
}

/* As when the device is lost under them. */
static void test_batch_is_answered_with_one_error_all_together(void)
{
    struct vxd_server *server = server_start(&(struct server_setup){0});
    const struct vxd_request_header header = {.peer = "test", .peer_uid = -1};
    struct vxd_request *requests[3] = {NULL};
    struct call calls[3];
    struct vxd_err err = {0};

    REQUIRE(server != NULL);
    for (int i = 0; i < 3; i++) {
        call_begin(&calls[i]);
        REQUIRE(vxd_request_create(server, &header, &requests[i], &err) == VXD_OK);
        call_adopt(&calls[i], requests[i]);
    }
    requests[0]->companions = requests[1];
    requests[1]->next_companion = requests[2];
    (void)vxd_fail(&err, VXD_UNAVAILABLE, NULL, "the device is lost");
    vxd_scheduler_answer(requests[0], &err);
    vxd_scheduler_drop(requests[0]);
    for (int i = 0; i < 3; i++) {
        CHECK(call_is_answered(&calls[i]));
        CHECK_INT(call_wait(&calls[i]), VXD_UNAVAILABLE);
        CHECK_STR(calls[i].err.message, "the device is lost");
        call_finish(&calls[i]);
    }
    server_finish(server);
}

struct hammer {
    struct vxd_server *server;
    uint64_t seed;
    int n_ok;
};

static void *hammer(void *argument)
{
    struct hammer *h = argument;

    for (int i = 0; i < 40; i++) {
        struct vxd_request_header header = {.peer = "test", .peer_uid = -1};
        struct call call;
        enum vxd_status status;
        unsigned what;

        h->seed = h->seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
        what = (unsigned)(h->seed >> 40) % 10;
        header.timeout_ms = what == 0 ? 3 : 0;
        send(&call, h->server, &header, what == 1 ? BAD_MS : what % 4, 1 + what % 3);
        status = call_wait(&call);
        h->n_ok += status == VXD_OK ? 1 : 0;
        CHECK(status == VXD_OK || (status == VXD_OUT_OF_RANGE && what == 1) ||
              (status == VXD_DEADLINE_EXCEEDED && what == 0));
        call_finish(&call);
    }
    return NULL;
}

static void test_batch_racing_ends_give_every_request_its_answer(void)
{
    struct vxd_server *server = server_start(&(struct server_setup){0});
    struct hammer hammers[6];
    pthread_t threads[6];
    int n_ok = 0;

    REQUIRE(server != NULL);
    forget_seen(2);
    for (int i = 0; i < 6; i++) {
        hammers[i] = (struct hammer){server, (uint64_t)i + 1, 0};
        REQUIRE(pthread_create(&threads[i], NULL, hammer, &hammers[i]) == 0);
    }
    for (int i = 0; i < 6; i++) {
        (void)pthread_join(threads[i], NULL);
        n_ok += hammers[i].n_ok;
    }
    server_finish(server);
    CHECK(n_ok > 120);
    CHECK_INT(seen.n_forgotten, 240);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_batch_of_those_that_wait_is_as_large_as_it_may_be),
    VXD_TEST(test_batch_waits_for_its_delay_and_no_longer_than_until_it_is_full),
    VXD_TEST(test_batch_that_fails_runs_again_one_by_one),
    VXD_TEST(test_batch_deadline_of_one_is_no_others),
    VXD_TEST(test_batch_that_waits_is_answered_when_the_server_drains),
    VXD_TEST(test_batch_is_answered_with_one_error_all_together),
    VXD_TEST(test_batch_racing_ends_give_every_request_its_answer),
};

VXD_TEST_MAIN(tests)
