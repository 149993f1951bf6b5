// SPDX-License-Identifier: Apache-2.0
/* Exactly-once: whatever is repeated, lost, late or refused, each number has one effect, and
 * whoever asks with it learns of that one. */
#include "tests/support/test.h"

#include "server/request/exactly_once_internal.h"
#include "server/schedule/schedule.h"
#include "tests/support/server/server_checks.h"
#include "tests/support/server/server_helpers.h"
#include "voxeld/v1/admin.pb-c.h"
#include "voxeld/v1/voxelize.pb-c.h"

VXD_TEST_HELPERS

/* A method that changes something: it counts. Its parameter is a SelfTestRequest: duration_ms
 * a stage, n_points stages; the reply's digest is the effect's number. */
static atomic_int n_effects;
static atomic_int n_to_fail; /* so many of the next ones fail, without effect */

static bool changes(const struct vxd_request *request)
{
    (void)request;
    return true;
}

static enum vxd_status check(struct vxd_request *request, struct vxd_err *err)
{
    uint32_t *n_stages = vxd_decoder_alloc(request->decoder, sizeof *n_stages, err);

    if (n_stages == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    *n_stages = ((const Voxeld__V1__SelfTestRequest *)request->input)->n_points;
    request->state = n_stages;
    return VXD_OK;
}

static enum vxd_status submit(struct vxd_request *request, struct vxd_queue *queue,
                              struct vxd_err *err)
{
    const Voxeld__V1__SelfTestRequest *input =
        (const Voxeld__V1__SelfTestRequest *)request->input;
    uint32_t *left = request->state;

    *left -= *left > 0 ? 1 : 0;
    request->more = *left > 0;
    return push_sleep(queue, input->duration_ms, err);
}

static enum vxd_status finish(struct vxd_request *request, struct vxd_queue *queue,
                              struct vxd_err *err)
{
    static const Voxeld__V1__SelfTestResponse empty =
        VOXELD__V1__SELF_TEST_RESPONSE__INIT;
    Voxeld__V1__SelfTestResponse *reply =
        vxd_decoder_alloc(request->decoder, sizeof *reply, err);

    (void)queue;
    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    CHECK(request->engine_ns > 0);
    *reply = empty;
    request->output = &reply->base; /* nobody may see it after a failure */
    if (atomic_load(&n_to_fail) > 0) {
        atomic_fetch_sub(&n_to_fail, 1);
        return vxd_fail(err, VXD_NOT_FOUND, NULL, "as the test says");
    }
    reply->digest = (uint64_t)atomic_fetch_add(&n_effects, 1) + 1;
    return VXD_OK;
}

static void release(struct vxd_request *request, struct vxd_queue *queue)
{
    (void)request;
    (void)queue;
}

static const struct vxd_method count_method = {
    .name = "count",
    .tag = 1000,
    .summary = "",
    .scope = VXD_SCOPE_WRITE,
    .lane = VXD_LANE_WRITE,
    .input = &voxeld__v1__self_test_request__descriptor,
    .output = &voxeld__v1__self_test_response__descriptor,
    .changes = changes,
    .check = check,
    .submit = submit,
    .finish = finish,
    .release = release};

/* HELD_MS as JSON: the write lane is busy until let_jobs_go. */
#define HELD "{\"durationMs\":60000}"

static struct vxd_server *start(void)
{
    atomic_store(&n_effects, 0);
    atomic_store(&n_to_fail, 0);
    return server_start(&(struct server_setup){0});
}

static struct vxd_request_header numbered(const char *client, uint64_t sequence)
{
    return (struct vxd_request_header){.peer = "test",
                                       .peer_uid = -1,
                                       .client_id = client,
                                       .sequence = sequence,
                                       .resends = true};
}

static void send(struct call *call, struct vxd_server *server,
                 const struct vxd_request_header *header, const char *json)
{
    call_begin(call);
    call_json(call, server, &count_method, header, json);
}

/* Waits; the effect's number, 0 when there is none. */
static uint64_t effect_of(struct call *call, enum vxd_status code)
{
    Voxeld__V1__SelfTestResponse *reply;
    uint64_t effect = 0;

    CHECK_INT(call_wait(call), code);
    CHECK((call->packed != NULL) == (code == VXD_OK));
    if (call->packed != NULL) {
        reply =
            voxeld__v1__self_test_response__unpack(NULL, call->n_packed, call->packed);
        effect = reply != NULL ? reply->digest : 0;
        voxeld__v1__self_test_response__free_unpacked(reply, NULL);
    }
    call_finish(call);
    return effect;
}

static uint64_t ask(struct vxd_server *server, const struct vxd_request_header *header,
                    const char *json, enum vxd_status code)
{
    struct call call;

    send(&call, server, header, json);
    return effect_of(&call, code);
}

static void test_change_repeated_gets_the_same_outcome(void)
{
    struct vxd_server *server = start();
    struct vxd_request_header first = numbered("robot", 1);
    struct vxd_request_header second = numbered("robot", 2);
    struct vxd_request_header other = numbered("other", 1);

    REQUIRE(server != NULL);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(ask(server, &first, "{}", VXD_OK), 1);
    }
    CHECK_INT(ask(server, &second, "{}", VXD_OK), 2);
    CHECK_INT(ask(server, &other, "{}", VXD_OK), 3);
    CHECK_INT(ask(server, &first, "{}", VXD_OK), 1);
    CHECK_INT(atomic_load(&n_effects), 3);
    server_finish(server);
}

static void test_change_with_another_body_is_refused(void)
{
    struct vxd_server *server = start();
    struct vxd_request_header header = numbered("robot", 7);
    struct call call;

    REQUIRE(server != NULL);
    CHECK_INT(ask(server, &header, "{}", VXD_OK), 1);
    send(&call, server, &header, "{ }");
    CHECK_INT(call_wait(&call), VXD_INVALID_ARGUMENT);
    CHECK_STR(call.err.field, "header.sequence");
    call_finish(&call);
    CHECK_INT(atomic_load(&n_effects), 1);
    server_finish(server);
}

static void test_change_by_key_is_separate_from_sequences(void)
{
    struct vxd_server *server = start();
    struct vxd_request_header sequence = numbered("robot", 5);
    struct vxd_request_header key = {
        .client_id = "robot", .idempotency_key = "5", .peer = "test", .peer_uid = -1};
    struct vxd_request_header no_client = {
        .idempotency_key = "a b c", .peer = "test", .peer_uid = -1};
    struct vxd_request_header none = {.peer = "test", .peer_uid = -1};

    REQUIRE(server != NULL);
    CHECK_INT(ask(server, &sequence, "{}", VXD_OK), 1);
    CHECK_INT(ask(server, &key, "{}", VXD_OK), 2);
    CHECK_INT(ask(server, &no_client, "{}", VXD_OK), 3);
    CHECK_INT(ask(server, &key, "{}", VXD_OK), 2);
    CHECK_INT(ask(server, &no_client, "{}", VXD_OK), 3);
    CHECK_INT(ask(server, &none, "{}", VXD_OK), 4);
    CHECK_INT(ask(server, &none, "{}", VXD_OK), 5);
    server_finish(server);
}

static void test_change_without_number_over_nng_is_refused(void)
{
    struct vxd_server *server = start();
    struct vxd_request_header no_sequence = numbered("robot", 0);
    struct vxd_request_header no_client = numbered("", 1);
    struct call call;

    REQUIRE(server != NULL);
    send(&call, server, &no_sequence, "{}");
    CHECK_INT(call_wait(&call), VXD_INVALID_ARGUMENT);
    CHECK_STR(call.err.field, "header.sequence");
    call_finish(&call);
    send(&call, server, &no_client, "{}");
    CHECK_INT(call_wait(&call), VXD_INVALID_ARGUMENT);
    CHECK_STR(call.err.field, "header.client_id");
    call_finish(&call);
    CHECK_INT(atomic_load(&n_effects), 0);
    server_finish(server);
}

static void test_change_repeated_while_it_runs_waits_for_the_outcome(void)
{
    enum {
        N = 10
    };
    struct vxd_server *server = start();
    struct vxd_request_header header = numbered("robot", 1);
    struct call calls[N];

    REQUIRE(server != NULL);
    for (int i = 0; i < N; i++) {
        send(&calls[i], server, &header, "{\"durationMs\":30,\"nPoints\":2}");
    }
    for (int i = 0; i < N; i++) {
        CHECK_INT(effect_of(&calls[i], VXD_OK), 1);
    }
    CHECK_INT(atomic_load(&n_effects), 1);
    server_finish(server);
}

static void test_change_that_fails_is_not_remembered(void)
{
    struct vxd_server *server = start();
    struct vxd_request_header header = numbered("robot", 1);
    struct call first, repeated;

    REQUIRE(server != NULL);
    atomic_store(&n_to_fail, 1);
    send(&first, server, &header, "{\"durationMs\":50}");
    send(&repeated, server, &header, "{\"durationMs\":50}");
    (void)effect_of(&first, VXD_NOT_FOUND);
    (void)effect_of(&repeated, VXD_NOT_FOUND);
    CHECK_INT(ask(server, &header, "{\"durationMs\":50}", VXD_OK), 1);
    /* Without effect another body may take its number. */
    atomic_store(&n_to_fail, 1);
    header.sequence = 2;
    (void)ask(server, &header, "{}", VXD_NOT_FOUND);
    CHECK_INT(ask(server, &header, "{\"nPoints\":1}", VXD_OK), 2);
    server_finish(server);
}

static void test_change_expired_while_it_runs_gives_its_outcome_later(void)
{
    struct vxd_server *server = start();
    struct vxd_request_header header = numbered("robot", 1);

    REQUIRE(server != NULL);
    header.timeout_ms = 20;
    (void)ask(server, &header, "{\"durationMs\":60,\"nPoints\":3}",
              VXD_DEADLINE_EXCEEDED);
    header.timeout_ms = 0;
    CHECK_INT(ask(server, &header, "{\"durationMs\":60,\"nPoints\":3}", VXD_OK), 1);
    CHECK_INT(atomic_load(&n_effects), 1);
    server_finish(server);
}

static void test_change_expired_before_it_began_has_no_effect(void)
{
    struct vxd_server *server = start();
    struct vxd_request_header blocking = numbered("other", 1);
    struct vxd_request_header header = numbered("robot", 1);
    struct call block, first, patient;

    REQUIRE(server != NULL);
    hold_jobs();
    send(&block, server, &blocking, HELD);
    CHECK(await_held(1));
    header.timeout_ms = 30;
    send(&first, server, &header, "{}");
    (void)effect_of(&first, VXD_DEADLINE_EXCEEDED);
    CHECK_INT(atomic_load(&n_effects), 0);
    /* Forgotten: asked again it runs. And who waited for it takes its place. */
    send(&first, server, &header, "{}");
    header.timeout_ms = 0;
    send(&patient, server, &header, "{}");
    (void)effect_of(&first, VXD_DEADLINE_EXCEEDED);
    let_jobs_go();
    CHECK_INT(effect_of(&patient, VXD_OK), 2);
    CHECK_INT(effect_of(&block, VXD_OK), 1);
    CHECK_INT(ask(server, &header, "{}", VXD_OK), 2);
    CHECK_INT(atomic_load(&n_effects), 2);
    server_finish(server);
}

static void test_change_superseded_had_no_effect_and_may_come_again(void)
{
    struct vxd_server *server = start();
    struct vxd_request_header blocking = numbered("other", 1);
    struct vxd_request_header a = numbered("robot", 1);
    struct vxd_request_header b = numbered("robot", 2);
    struct call block, first, second;

    REQUIRE(server != NULL);
    a.stream = b.stream = "s";
    a.keep_last = b.keep_last = 1;
    hold_jobs();
    send(&block, server, &blocking, HELD);
    CHECK(await_held(1));
    send(&first, server, &a, "{}");
    wait_ms(2);
    send(&second, server, &b, "{}");
    (void)effect_of(&first, VXD_ABORTED);
    let_jobs_go();
    CHECK_INT(effect_of(&second, VXD_OK), 2);
    CHECK_INT(ask(server, &a, "{}", VXD_OK), 3);
    (void)effect_of(&block, VXD_OK);
    server_finish(server);
}

static void test_outcomes_beyond_the_last_64_are_refused(void)
{
    struct vxd_server *server = start();
    struct vxd_request_header header;
    struct vxd_once_usage usage;
    struct call call;

    REQUIRE(server != NULL);
    for (uint64_t i = 1; i <= 100; i++) {
        header = numbered("robot", 10 * i);
        CHECK_INT(ask(server, &header, "{}", VXD_OK), i);
    }
    header = numbered("robot", 1000);
    CHECK_INT(ask(server, &header, "{}", VXD_OK), 100);
    header = numbered("robot", 370);
    CHECK_INT(ask(server, &header, "{}", VXD_OK), 37);
    for (uint64_t sequence = 355; sequence <= 365; sequence += 5) {
        header = numbered("robot", sequence);
        send(&call, server, &header, "{}");
        CHECK_INT(call_wait(&call), VXD_FAILED_PRECONDITION);
        CHECK_STR(call.err.field, "header.sequence");
        call_finish(&call);
    }
    vxd_once_get_usage(server->once, &usage);
    CHECK_INT(usage.n_outcomes, 64);
    CHECK_INT(atomic_load(&n_effects), 100);
    server_finish(server);
}

static void test_clients_silent_longest_are_forgotten_first(void)
{
    struct vxd_server *server = start();
    struct vxd_once *once = NULL;
    struct vxd_request_header header;
    struct vxd_once_usage usage;
    char name[32];

    REQUIRE(server != NULL);
    /* As small as the configuration allows. */
    REQUIRE(vxd_once_create(1 << 20, 8, &once, NULL) == VXD_OK);
    vxd_once_destroy(server->once);
    server->once = once;
    for (int i = 0; i < 12; i++) {
        (void)snprintf(name, sizeof name, "c%d", i);
        header = numbered(name, 1);
        (void)ask(server, &header, "{}", VXD_OK);
    }
    vxd_once_get_usage(once, &usage);
    CHECK_INT(usage.n_clients, 8);
    CHECK_INT(usage.n_outcomes, 8);
    header = numbered("c11", 1);
    CHECK_INT(ask(server, &header, "{}", VXD_OK), 12);
    /* What it did is forgotten, but not that it did it. */
    header = numbered("c0", 1);
    CHECK_INT(ask(server, &header, "{}", VXD_FAILED_PRECONDITION), 0);
    header = numbered("c0", 2);
    CHECK_INT(ask(server, &header, "{}", VXD_OK), 13);
    /* Known again, and forgotten again: the higher one counts. */
    for (int i = 20; i < 30; i++) {
        (void)snprintf(name, sizeof name, "c%d", i);
        header = numbered(name, 1);
        (void)ask(server, &header, "{}", VXD_OK);
    }
    header = numbered("c0", 2);
    CHECK_INT(ask(server, &header, "{}", VXD_FAILED_PRECONDITION), 0);
    CHECK_INT(atomic_load(&n_effects), 23);
    server_finish(server);
}

/* Without tokens the user of an ipc socket is who asks. */
static struct vxd_request_header numbered_by(int64_t uid, const char *client,
                                             uint64_t sequence)
{
    struct vxd_request_header header = numbered(client, sequence);

    header.peer_uid = uid;
    return header;
}

static void test_client_ids_of_another_push_nobody_out(void)
{
    struct vxd_server *server = start();
    struct vxd_request_header victim = numbered_by(1, "victim", 1);
    struct vxd_request_header forgotten = numbered_by(1, "forgotten", 1);
    struct vxd_once_usage usage;
    char name[32];

    REQUIRE(server != NULL);
    vxd_once_destroy(server->once);
    server->once = NULL;
    REQUIRE(vxd_once_create(1 << 20, 3, &server->once, NULL) == VXD_OK);
    server->once->max_watermarks = 2;
    CHECK_INT(ask(server, &forgotten, "{}", VXD_OK), 1);
    CHECK_INT(ask(server, &victim, "{}", VXD_OK), 2);
    for (int i = 0; i < 2;
         i++) { /* its own push "forgotten" out, of which a watermark stays */
        struct vxd_request_header header;

        (void)snprintf(name, sizeof name, "own%d", i);
        header = numbered_by(1, name, 1);
        CHECK_INT(ask(server, &header, "{}", VXD_OK), 3 + i);
    }
    for (int i = 0; i < 20; i++) {
        struct vxd_request_header header;

        (void)snprintf(name, sizeof name, "c%d", i);
        header = numbered_by(2, name, 1);
        CHECK_INT(ask(server, &header, "{}", VXD_OK), 5 + i);
    }
    CHECK_INT(ask(server, &victim, "{}", VXD_OK), 2);
    CHECK_INT(ask(server, &forgotten, "{}", VXD_FAILED_PRECONDITION), 0);
    CHECK_INT(atomic_load(&n_effects), 24);
    vxd_once_get_usage(server->once, &usage);
    CHECK_INT(usage.n_clients, 6);
    server_finish(server);
}

static void test_clients_are_remembered_for_their_least_time(void)
{
    struct vxd_server *server = start();
    struct vxd_request_header first = numbered("c0", 1);
    char name[32];

    REQUIRE(server != NULL);
    vxd_once_destroy(server->once);
    server->once = NULL;
    REQUIRE(vxd_once_create(1 << 20, 4, &server->once, NULL) == VXD_OK);
    vxd_once_set_life(server->once, 3600);
    for (int i = 0; i < 8; i++) {
        struct vxd_request_header header;

        (void)snprintf(name, sizeof name, "c%d", i);
        header = numbered(name, 1);
        (void)ask(server, &header, "{}", i < 4 ? VXD_OK : VXD_UNAVAILABLE);
    }
    CHECK_INT(ask(server, &first, "{}", VXD_OK), 1);
    CHECK_INT(atomic_load(&n_effects), 4);
    vxd_once_set_life(server->once, 0);
    first = numbered("c7", 1);
    CHECK_INT(ask(server, &first, "{}", VXD_OK), 5);
    server_finish(server);
}

static void test_keys_are_of_one_client_or_one_address(void)
{
    struct vxd_server *server = start();
    struct vxd_request_header header = {
        .peer = "http 10.0.0.1:1", .peer_uid = -1, .idempotency_key = "1"};

    REQUIRE(server != NULL);
    CHECK_INT(ask(server, &header, "{}", VXD_OK), 1);
    header.peer = "http 10.0.0.1:2";
    CHECK_INT(ask(server, &header, "{}", VXD_OK), 1);
    header.peer = "http 10.0.0.2:1";
    CHECK_INT(ask(server, &header, "{}", VXD_OK), 2);
    header.client_id = "robot";
    CHECK_INT(ask(server, &header, "{}", VXD_OK), 3);
    header.peer = "http 10.0.0.1:3";
    CHECK_INT(ask(server, &header, "{}", VXD_OK), 3);
    server_finish(server);
}

static void test_clients_of_one_bucket_are_kept_apart(void)
{
    struct vxd_server *server = start();
    struct vxd_request_header first = numbered("robot", 1);
    const struct vxd_once_client *robot = NULL;
    uint32_t bucket = 0;
    char name[32] = "";

    REQUIRE(server != NULL);
    CHECK_INT(ask(server, &first, "{}", VXD_OK), 1);
    while (bucket < VXD_ONCE_BUCKETS && server->once->buckets[bucket] == NULL) {
        bucket++;
    }
    REQUIRE(bucket < VXD_ONCE_BUCKETS);
    robot = server->once->buckets[bucket];
    for (int i = 0; name[0] == '\0' ||
                    vxd_once_hash(robot->principal, name) % VXD_ONCE_BUCKETS != bucket;
         i++) {
        (void)snprintf(name, sizeof name, "other-%d", i);
    }
    for (int i = 0; i < 2; i++) {
        struct vxd_request_header other = numbered(name, 1);

        CHECK_INT(ask(server, &other, "{}", VXD_OK), 2);
        CHECK_INT(ask(server, &first, "{}", VXD_OK), 1);
    }
    CHECK_INT(atomic_load(&n_effects), 2);
    server_finish(server);
}

/* The numbers of so many clients that went, and no more, and none of keys. */
static void test_watermarks_are_of_the_clients_that_went_last(void)
{
    struct vxd_server *server = start();
    struct vxd_request_header header;
    char name[32];

    REQUIRE(server != NULL);
    vxd_once_destroy(server->once);
    server->once = NULL;
    REQUIRE(vxd_once_create(1 << 20, 2, &server->once, NULL) == VXD_OK);
    server->once->max_watermarks = 3;
    for (int i = 0; i < 6; i++) {
        (void)snprintf(name, sizeof name, "c%d", i);
        header = numbered(name, 7);
        CHECK_INT(ask(server, &header, "{}", VXD_OK), i + 1);
    }
    CHECK_INT(server->once->n_watermarks, 3);
    header = numbered("c1", 7);
    CHECK_INT(ask(server, &header, "{}", VXD_FAILED_PRECONDITION), 0);
    header = numbered("c0", 7);
    CHECK_INT(ask(server, &header, "{}", VXD_OK), 7); /* as a new one */
    CHECK_INT(server->once->n_watermarks, 3);
    for (int i = 0; i < 8; i++) {
        (void)snprintf(name, sizeof name, "k%d", i);
        header = (struct vxd_request_header){
            .client_id = name, .idempotency_key = "key", .peer = "test", .peer_uid = -1};
        (void)ask(server, &header, "{}", VXD_OK);
    }
    CHECK_INT(server->once->n_watermarks, 3);
    header = numbered("c0", 7);
    CHECK_INT(ask(server, &header, "{}", VXD_FAILED_PRECONDITION), 0);
    server_finish(server);
}

/* A server of many threads: each number, sent from all of them at once, has one effect. */
enum {
    N_THREADS = 6,
    N_NUMBERS = 40
};

struct sender {
    struct vxd_server *server;
    pthread_t thread;
    uint64_t effects[N_NUMBERS];
    unsigned salt;
};

static void *send_all(void *argument)
{
    struct sender *sender = argument;

    for (int i = 0; i < N_NUMBERS; i++) {
        struct vxd_request_header header = numbered("robot", (uint64_t)i + 1);
        struct call call;
        enum vxd_status code = VXD_UNKNOWN;

        /* Some expire, at any moment of their lives; they ask again. */
        for (int tries = 0; tries < 1000 && code != VXD_OK; tries++) {
            header.timeout_ms = tries < 3 ? 1 + (sender->salt + (unsigned)i) % 5 : 0;
            call_begin(&call);
            call_json(&call, sender->server, &count_method, &header,
                      i % 3 == 0 ? "{\"durationMs\":2,\"nPoints\":2}" : "{}");
            code = call_wait(&call);
            if (code == VXD_OK) {
                Voxeld__V1__SelfTestResponse *reply =
                    voxeld__v1__self_test_response__unpack(NULL, call.n_packed,
                                                           call.packed);

                sender->effects[i] = reply != NULL ? reply->digest : 0;
                voxeld__v1__self_test_response__free_unpacked(reply, NULL);
            }
            call_finish(&call);
        }
    }
    return NULL;
}

static void test_change_from_many_threads_has_one_effect_each(void)
{
    static struct sender senders[N_THREADS];
    struct vxd_server *server = start();
    struct vxd_once_usage usage;

    REQUIRE(server != NULL);
    memset(senders, 0, sizeof senders);
    for (unsigned i = 0; i < N_THREADS; i++) {
        senders[i].server = server;
        senders[i].salt = i;
        REQUIRE(pthread_create(&senders[i].thread, NULL, send_all, &senders[i]) == 0);
    }
    for (int i = 0; i < N_THREADS; i++) {
        (void)pthread_join(senders[i].thread, NULL);
    }
    for (int i = 0; i < N_NUMBERS; i++) {
        CHECK(senders[0].effects[i] > 0);
        for (int k = 1; k < N_THREADS; k++) {
            CHECK_INT(senders[k].effects[i], senders[0].effects[i]);
        }
    }
    CHECK_INT(atomic_load(&n_effects), N_NUMBERS);
    vxd_once_get_usage(server->once, &usage);
    CHECK_INT(usage.n_waiting, 0);
    CHECK_INT(usage.n_outcomes, N_NUMBERS);
    server_finish(server);
}

static void test_drain_answers_who_waits_for_an_outcome(void)
{
    struct vxd_server *server = start();
    struct vxd_request_header header = numbered("robot", 1);
    struct call first, repeated;

    REQUIRE(server != NULL);
    hold_jobs();
    send(&first, server, &header, HELD);
    CHECK(await_held(1));
    send(&repeated, server, &header, HELD);
    CHECK(!vxd_scheduler_drain(server->scheduler, 10));
    CHECK_INT(call_wait(&repeated), VXD_UNAVAILABLE);
    CHECK_INT(call_wait(&first), VXD_UNAVAILABLE);
    let_jobs_go();
    (void)effect_of(&repeated, VXD_UNAVAILABLE);
    (void)effect_of(&first, VXD_UNAVAILABLE);
    server_finish(server);
    CHECK_INT(atomic_load(&n_effects), 1);
}

static void test_reply_large_is_kept_without_its_arrays(void)
{
    static uint8_t data[10000];
    static double values[1000];
    Voxeld__V1__VoxelizeResponse reply = VOXELD__V1__VOXELIZE_RESPONSE__INIT;
    Voxeld__V1__Tensor coords = VOXELD__V1__TENSOR__INIT;
    Voxeld__V1__Tensor counts = VOXELD__V1__TENSOR__INIT;
    Voxeld__V1__VoxelizeItem item = VOXELD__V1__VOXELIZE_ITEM__INIT;
    static Voxeld__V1__VoxelizeItem *items[600];
    int64_t shape[] = {10000};
    uint8_t out[VXD_ONCE_REPLY_BYTES];
    size_t n_bytes = 0;
    Voxeld__V1__VoxelizeResponse *kept;

    reply.n_voxels = 77;
    CHECK(!vxd_once_pack(&reply.base, out, &n_bytes));
    CHECK_INT(n_bytes, 2);
    coords.shape = shape;
    coords.n_shape = 1;
    coords.dtype = VOXELD__V1__DTYPE__UINT8;
    coords.data.data = data;
    coords.data.len = sizeof data;
    counts.values = values;
    counts.n_values = 1000;
    reply.coords = &coords;
    reply.counts = &counts;
    item.n_points = 5;
    items[0] = &item;
    reply.items = items;
    reply.n_items = 1;
    CHECK(vxd_once_pack(&reply.base, out, &n_bytes));
    kept = voxeld__v1__voxelize_response__unpack(NULL, n_bytes, out);
    REQUIRE(kept != NULL && kept->coords != NULL && kept->counts != NULL);
    CHECK_INT(kept->n_voxels, 77);
    CHECK_INT(kept->coords->data.len, 0);
    CHECK_INT(kept->coords->shape[0], 10000);
    CHECK_INT(kept->counts->n_values, 0);
    CHECK_INT(kept->items[0]->n_points, 5);
    voxeld__v1__voxelize_response__free_unpacked(kept, NULL);
    /* Still too large: repeated fields go as well. */
    item.frame_id = "a frame of a certain length";
    for (int i = 0; i < 600; i++) {
        items[i] = &item;
    }
    reply.n_items = 600;
    CHECK(vxd_once_pack(&reply.base, out, &n_bytes));
    kept = voxeld__v1__voxelize_response__unpack(NULL, n_bytes, out);
    REQUIRE(kept != NULL);
    CHECK_INT(kept->n_voxels, 77);
    CHECK_INT(kept->n_items, 0);
    voxeld__v1__voxelize_response__free_unpacked(kept, NULL);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_change_repeated_gets_the_same_outcome),
    VXD_TEST(test_change_with_another_body_is_refused),
    VXD_TEST(test_change_by_key_is_separate_from_sequences),
    VXD_TEST(test_change_without_number_over_nng_is_refused),
    VXD_TEST(test_change_repeated_while_it_runs_waits_for_the_outcome),
    VXD_TEST(test_change_that_fails_is_not_remembered),
    VXD_TEST(test_change_expired_while_it_runs_gives_its_outcome_later),
    VXD_TEST(test_change_expired_before_it_began_has_no_effect),
    VXD_TEST(test_change_superseded_had_no_effect_and_may_come_again),
    VXD_TEST(test_outcomes_beyond_the_last_64_are_refused),
    VXD_TEST(test_clients_silent_longest_are_forgotten_first),
    VXD_TEST(test_client_ids_of_another_push_nobody_out),
    VXD_TEST(test_clients_are_remembered_for_their_least_time),
    VXD_TEST(test_keys_are_of_one_client_or_one_address),
    VXD_TEST(test_clients_of_one_bucket_are_kept_apart),
    VXD_TEST(test_watermarks_are_of_the_clients_that_went_last),
    VXD_TEST(test_change_from_many_threads_has_one_effect_each),
    VXD_TEST(test_drain_answers_who_waits_for_an_outcome),
    VXD_TEST(test_reply_large_is_kept_without_its_arrays),
};

VXD_TEST_MAIN(tests)
