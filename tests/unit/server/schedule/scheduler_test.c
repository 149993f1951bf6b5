// SPDX-License-Identifier: Apache-2.0
/* The queue, lanes and timer, driven by methods that sleep on a real CPU context. */
#include "tests/support/test.h"

#include "server/method_table.h"
#include "server/registry/fields/registry_fields.h"
#include "server/request/commit.h"
#include "server/request/request_prerequisite.h"
#include "server/schedule/schedule.h"
#include "server/server.h"
#include "tests/support/server/server_checks.h"
#include "tests/support/server/sleep_methods.h"

VXD_TEST_HELPERS

/* A reply is on time when it is no later than this, once in so many tries: a machine may be busy
 * now and then, who is always late is wrong. */
#define SLACK_MS 300.0

enum {
    N_TRIES = 8
};

static void send(struct call *call, struct vxd_server *server,
                 const struct vxd_method *method, const struct vxd_request_header *header,
                 unsigned stage_ms, unsigned n_stages)
{
    char json[96];

    (void)snprintf(json, sizeof json, "{\"durationMs\": %u, \"nPoints\": %u}", stage_ms,
                   n_stages);
    call_begin(call);
    call_json(call, server, method, header, json);
}

static struct vxd_request_header from(const char *client)
{
    return (struct vxd_request_header){
        .client_id = client, .peer = "test", .peer_uid = -1};
}

static void expect_ok(struct call *calls, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        CHECK_INT(call_wait(&calls[i]), VXD_OK);
        call_finish(&calls[i]);
    }
}

/* Both read lanes busy until let go. */
static void occupy(struct vxd_server *server, struct call lanes[2])
{
    hold_jobs();
    for (int i = 0; i < 2; i++) {
        send(&lanes[i], server, &small_method, NULL, HELD_MS, 1);
    }
    CHECK(await_held(2));
}

static void release_lanes(struct call lanes[2])
{
    let_jobs_go();
    expect_ok(lanes, 2);
}

static void test_queue_full_is_answered_unavailable_at_once(void)
{
    struct vxd_server *server = server_start(&(struct server_setup){.queue_limit = 4});
    struct call lanes[2];
    struct call waiting[4];
    struct call refused;

    REQUIRE(server != NULL);
    occupy(server, lanes);
    for (int i = 0; i < 4; i++) {
        send(&waiting[i], server, &small_method, NULL, 1, 1);
    }
    send(&refused, server, &small_method, NULL, 1, 1);
    CHECK_INT(call_wait(&refused), VXD_UNAVAILABLE);
    CHECK(strstr(refused.err.message, "limits.queue is 4") != NULL);
    call_finish(&refused);
    /* Before the body is looked at. */
    call_begin(&refused);
    call_json(&refused, server, vxd_method_by_name(vxd_method_table(), "voxelize"), NULL,
              "no JSON");
    CHECK_INT(call_wait(&refused), VXD_UNAVAILABLE);
    call_finish(&refused);
    release_lanes(lanes);
    expect_ok(waiting, 4);
    server_finish(server);
}

static void test_stream_keep_last_supersedes_the_older_ones(void)
{
    struct vxd_server *server = server_start(&(struct server_setup){0});
    struct vxd_request_header mine = from("robot");
    struct vxd_request_header other = from("other");
    struct call lanes[2];
    struct call scans[5];
    struct call others;
    char expected[128];

    REQUIRE(server != NULL);
    mine.stream = "lidar";
    mine.keep_last = 2;
    other.stream = "lidar";
    other.keep_last = 2;
    occupy(server, lanes);
    send(&others, server, &small_method, &other, 1, 1);
    for (int i = 0; i < 5; i++) {
        send(&scans[i], server, &small_method, &mine, 1, 1);
    }
    release_lanes(lanes);
    for (int i = 0; i < 5; i++) {
        CHECK_INT(call_wait(&scans[i]), i < 3 ? VXD_ABORTED : VXD_OK);
        if (i < 3) {
            (void)snprintf(expected, sizeof expected, "superseded by %s",
                           scans[i + 2].id);
            CHECK_STR(scans[i].err.message, expected);
        }
        call_finish(&scans[i]);
    }
    CHECK_INT(call_wait(&others), VXD_OK);
    call_finish(&others);
    server_finish(server);
}

static void test_stream_of_another_principal_is_not_superseded(void)
{
    struct vxd_server *server = server_start(&(struct server_setup){0});
    struct vxd_request_header mine = from("robot");
    struct vxd_request_header thief;
    struct call lanes[2];
    struct call scans[2];

    REQUIRE(server != NULL);
    mine.stream = "lidar";
    mine.keep_last = 1;
    mine.peer_uid = 1001;
    thief = mine;
    thief.peer_uid = 1002;
    occupy(server, lanes);
    send(&scans[0], server, &small_method, &mine, 1, 1);
    send(&scans[1], server, &small_method, &thief, 1, 1);
    release_lanes(lanes);
    expect_ok(scans, 2);
    server_finish(server);
}

static void test_superseding_request_finds_room_in_a_lowered_queue(void)
{
    struct vxd_server *server = server_start(&(struct server_setup){0});
    struct vxd_request_header mine = from("robot");
    struct call lanes[2];
    struct call waiting[2];
    struct call newer;

    REQUIRE(server != NULL);
    mine.stream = "lidar";
    mine.keep_last = 1;
    occupy(server, lanes);
    send(&waiting[0], server, &small_method, NULL, 1, 1);
    send(&waiting[1], server, &small_method, &mine, 1, 1);
    atomic_store(&server->limits.queue, 1); /* as a reload does */
    send(&newer, server, &small_method, &mine, 1, 1);
    release_lanes(lanes);
    CHECK_INT(call_wait(&newer), VXD_OK);
    CHECK_INT(call_wait(&waiting[0]), VXD_OK);
    CHECK_INT(call_wait(&waiting[1]), VXD_ABORTED);
    call_finish(&newer);
    for (int i = 0; i < 2; i++) {
        call_finish(&waiting[i]);
    }
    server_finish(server);
}

static void test_max_age_over_when_decoded_is_answered_at_once(void)
{
    struct vxd_server *server = server_start(&(struct server_setup){0});
    struct vxd_request_header header = from("robot");
    struct call lanes[2];
    struct call late;
    double waited_ms;

    REQUIRE(server != NULL);
    header.max_age_ms = 10;
    occupy(server, lanes); /* "at once" is before they are let go */
    send(&late, server, &slow_method, &header, 1, 1);
    CHECK_INT(call_wait(&late), VXD_ABORTED);
    CHECK_STR(late.err.field, "header.max_age_ms");
    CHECK(strncmp(late.err.message, "waited ", 7) == 0);
    waited_ms = strtod(late.err.message + 7, NULL);
    CHECK(waited_ms >= 9.9 && waited_ms <= call_ms(&late) + 0.1);
    call_finish(&late);
    release_lanes(lanes);
    server_finish(server);
}

/* Sends n requests of two stages, each of another client, and gives the most that were begun
 * and not finished at one time. */
static size_t most_running(struct vxd_server *server, const struct vxd_method *method,
                           size_t n)
{
    struct vxd_scheduler_load load;
    struct call calls[16];
    size_t most = 0;

    for (size_t i = 0; i < n; i++) {
        char client[32];
        struct vxd_request_header header;

        (void)snprintf(client, sizeof client, "client-%zu", i);
        header = from(client);
        send(&calls[i], server, method, &header, 10, 2);
    }
    do {
        vxd_scheduler_get_load(server->scheduler, &load);
        most = load.n_running > most ? load.n_running : most;
        wait_ms(1);
    } while (load.n_running + load.n_queued > 0);
    expect_ok(calls, n);
    return most;
}

/* Or the begun ones hold memory and receivers without end while limits.queue sees none. */
static void test_begun_requests_of_many_clients_stay_few(void)
{
    struct vxd_server *server =
        server_start(&(struct server_setup){.device_bytes = 16 << 20});

    REQUIRE(server != NULL);
    /* A machine that is slow to send may never have two of them to begin. */
    CHECK(most_running(server, &small_method, 12) <= 2);
    CHECK(most_running(server, &bulk_method, 12) <= 4);
    server_finish(server);
}

static void test_request_waits_for_engine_memory_instead_of_failing(void)
{
    struct vxd_server *server =
        server_start(&(struct server_setup){.device_bytes = 16 << 20});
    struct call lanes[2];

    REQUIRE(server != NULL);
    CHECK(most_running(server, &large_method, 6) <= 1);
    occupy(server, lanes); /* what they held is free again: two run at once */
    release_lanes(lanes);
    server_finish(server);
}

/* A field of 64^3 voxels, about 2 MB, which nobody has. */
static void keep_field(struct vxd_server *server)
{
    struct vxd_field_want want = {.generation = 1, .version = 1};
    struct vxd_kept_field *kept = NULL;
    struct vxd_queue *queue = NULL;
    enum vxd_field_claim claim;

    want.spec = (struct vxd_field_spec){
        .high = {64, 64, 64}, .max_distance = 2, .voxel_size_m = 1};
    REQUIRE(vxd_queue_create(server->context, &queue, NULL) == VXD_OK);
    REQUIRE(vxd_fields_claim(server->fields, queue, &want, "box", &kept, &claim, NULL) ==
            VXD_OK);
    CHECK_INT(claim, VXD_FIELD_STALE);
    vxd_fields_set_ready(server->fields, kept, 1);
    vxd_fields_release(server->fields, queue, kept);
    vxd_queue_destroy(queue);
}

static size_t n_fields(struct vxd_server *server)
{
    struct vxd_fields_usage usage;

    vxd_fields_get_usage(server->fields, &usage);
    return usage.n_fields;
}

static void test_fields_that_nobody_has_make_room_for_requests(void)
{
    struct vxd_server *server =
        server_start(&(struct server_setup){.device_bytes = 11 << 20});
    struct call call;

    REQUIRE(server != NULL);
    keep_field(server);
    send(&call, server, &small_method, NULL, 1, 1);
    expect_ok(&call, 1);
    CHECK_INT(n_fields(server), 1);
    send(&call, server, &large_method, NULL, 1, 1);
    expect_ok(&call, 1);
    CHECK_INT(n_fields(server), 0);
    server_finish(server);
}

/* Arrived first, decoded last: it must not push out what is newer. */
static void test_stream_older_request_that_comes_late_is_superseded_itself(void)
{
    struct vxd_server *server = server_start(&(struct server_setup){0});
    struct vxd_request_header mine = from("robot");
    const struct vxd_body body = {.bytes = (const uint8_t *)"", .n_bytes = 0};
    struct vxd_request *older = NULL;
    struct vxd_err err = {0};
    struct call lanes[2];
    struct call newer;
    struct call late;
    char expected[128];

    REQUIRE(server != NULL);
    mine.stream = "lidar";
    mine.keep_last = 1;
    occupy(server, lanes);
    call_begin(&late);
    REQUIRE(vxd_request_create(server, &mine, &older, &err) == VXD_OK);
    call_adopt(&late, older);
    REQUIRE(vxd_request_admit(older, &small_method, 0, &err) == VXD_OK);
    wait_ms(2);
    send(&newer, server, &small_method, &mine, 1, 1);
    vxd_request_submit(older, &body);
    CHECK_INT(call_wait(&late), VXD_ABORTED);
    (void)snprintf(expected, sizeof expected, "superseded by %s", newer.id);
    CHECK_STR(late.err.message, expected);
    release_lanes(lanes);
    CHECK_INT(call_wait(&newer), VXD_OK);
    call_finish(&late);
    call_finish(&newer);
    server_finish(server);
}

/* One request that runs past its own deadline, and one that never begins: both are answered while
 * the lanes are held. How late the later one was. */
static double deadlines_pass(struct vxd_server *server)
{
    struct vxd_request_header hurried = from("hurried");
    struct call lanes[2];
    struct call waiting;
    double late_ms;

    hurried.timeout_ms = 100;
    hold_jobs();
    send(&lanes[1], server, &bulk_method, NULL, HELD_MS, 1);
    CHECK(await_held(1));
    send(&lanes[0], server, &small_method, &hurried, HELD_MS, 1);
    send(&waiting, server, &bulk_method, &hurried, 1, 1);
    CHECK_INT(call_wait(&lanes[0]), VXD_DEADLINE_EXCEEDED);
    CHECK_INT(call_wait(&waiting), VXD_DEADLINE_EXCEEDED);
    CHECK(call_ms(&lanes[0]) >= 99 && call_ms(&waiting) >= 99);
    late_ms = call_ms(&lanes[0]) > call_ms(&waiting) ? call_ms(&lanes[0]) - 100
                                                     : call_ms(&waiting) - 100;
    let_jobs_go();
    CHECK_INT(call_wait(&lanes[1]), VXD_OK);
    for (int i = 0; i < 2; i++) {
        call_finish(&lanes[i]);
    }
    call_finish(&waiting);
    return late_ms;
}

static void test_deadline_passes_while_lanes_are_busy_and_is_answered_on_time(void)
{
    struct vxd_server *server = server_start(&(struct server_setup){0});
    double late_ms = SLACK_MS;

    REQUIRE(server != NULL);
    for (int i = 0; i < N_TRIES && late_ms >= SLACK_MS; i++) {
        late_ms = deadlines_pass(server);
    }
    CHECK(late_ms < SLACK_MS);
    server_finish(server);
}

static void test_expired_staged_job_stops_between_stages_and_is_released(void)
{
    struct vxd_server *server = server_start(&(struct server_setup){0});
    struct vxd_request_header hurried = from("hurried");

    REQUIRE(server != NULL);
    hurried.timeout_ms = 60;
    forget_seen();
    /* Longer when the time was over before the job had begun. */
    for (int i = 0; i < N_TRIES && n_starts() == 0; i++) {
        struct call job;

        hold_jobs();
        send(&job, server, &bulk_method, &hurried, HELD_MS, 1000);
        CHECK_INT(call_wait(&job), VXD_DEADLINE_EXCEEDED);
        let_jobs_go();
        call_finish(&job);
        hurried.timeout_ms *= 2;
    }
    wait_ms(30); /* more stages would have begun */
    CHECK_INT(n_starts(), 1);
    CHECK_INT(n_released(), 1);
    server_finish(server);
}

/* A request whose sender will go; the caller has a reference. */
static struct vxd_request *send_leaving(struct call *call, struct vxd_server *server,
                                        const struct vxd_method *method,
                                        unsigned n_stages)
{
    const struct vxd_request_header header = from("leaving");
    struct vxd_request *request = NULL;
    struct vxd_err err = {0};
    struct vxd_body body = {.kind = VXD_BODY_JSON};
    static char json[96];

    (void)snprintf(json, sizeof json, "{\"durationMs\": %u, \"nPoints\": %u}", HELD_MS,
                   n_stages);
    body.bytes = (const uint8_t *)json;
    body.n_bytes = strlen(json);
    call_begin(call);
    EXPECT(vxd_request_create(server, &header, &request, &err) == VXD_OK);
    call_adopt(call, request);
    vxd_request_hold(request);
    EXPECT(vxd_request_admit(request, method, body.n_bytes, &err) == VXD_OK);
    vxd_request_submit(request, &body);
    return request;
}

static void test_cancelled_request_gives_its_place_in_the_queue_back(void)
{
    static const struct vxd_method *const methods[] = {&small_method, &bulk_method,
                                                       &change_method};

    for (int i = 0; i < 3; i++) {
        struct vxd_server *server =
            server_start(&(struct server_setup){.queue_limit = 2});
        struct call lanes[3];
        struct call left[2];
        struct call next[2];
        struct vxd_scheduler_load load;

        REQUIRE(server != NULL);
        forget_seen();
        occupy(server, lanes);
        send(&lanes[2], server, &write_method, NULL, HELD_MS, 1);
        CHECK(await_held(3));
        for (int k = 0; k < 2; k++) {
            struct vxd_request *request =
                send_leaving(&left[k], server, methods[i], 1000);

            vxd_request_cancel(request);
            vxd_request_cancel(request); /* twice is as once */
            vxd_request_drop(request);
            CHECK(call_is_answered(&left[k]));
            CHECK_INT(call_wait(&left[k]), VXD_CANCELLED);
            call_finish(&left[k]); /* nobody has it any more */
        }
        vxd_scheduler_get_load(server->scheduler, &load);
        CHECK_INT(load.n_queued, 0);
        for (int k = 0; k < 2; k++) {
            send(&next[k], server, &small_method, NULL, 1, 1);
        }
        release_lanes(lanes);
        expect_ok(lanes + 2, 1);
        expect_ok(next, 2);
        CHECK_INT(n_starts(), 5);
        server_finish(server);
    }
}

/* Between its stages; what changes something goes on. */
static void test_cancelled_job_that_runs_stops_unless_it_changes_something(void)
{
    static const struct vxd_method *const methods[] = {&bulk_method, &change_method};

    for (int i = 0; i < 2; i++) {
        struct vxd_server *server = server_start(&(struct server_setup){0});
        struct vxd_request *request;
        struct call job;

        REQUIRE(server != NULL);
        forget_seen();
        hold_jobs();
        request = send_leaving(&job, server, methods[i], 3);
        CHECK(await_held(1));
        vxd_request_cancel(request);
        let_jobs_go();
        CHECK_INT(call_wait(&job), i == 0 ? VXD_CANCELLED : VXD_OK);
        vxd_request_drop(request);
        call_finish(&job);
        CHECK_INT(n_starts(), i == 0 ? 1 : 3);
        CHECK_INT(n_released(), 1);
        server_finish(server);
    }
}

static enum vxd_status run_first(struct vxd_request *request, bool *waits,
                                 struct vxd_err *err)
{
    struct vxd_request *first = NULL;
    enum vxd_status status;

    VXD_TRY(vxd_request_create_prerequisite(request, &small_method, &first, err));
    first->input = request->input; /* it lives longer */
    VXD_TRY(first->method->check(first, err));
    *waits = true;
    return vxd_request_submit_prerequisite(first, err);
out:
    if (first != NULL) {
        vxd_request_drop(first);
    }
    return status;
}

static enum vxd_status take_first(struct vxd_request *request,
                                  const ProtobufCMessage *output, struct vxd_err *err)
{
    (void)request;
    (void)output;
    (void)err;
    return VXD_OK;
}

/* It has not begun to change anything, so it never does. */
static void test_change_cancelled_while_its_prerequisite_runs_does_not_begin(void)
{
    struct vxd_method method = change_method;

    method.prerequisite = run_first;
    method.take_prerequisite = take_first;
    for (int i = 0; i < 2; i++) {
        struct vxd_server *server = server_start(&(struct server_setup){0});
        struct vxd_request *request;
        struct call job;

        REQUIRE(server != NULL);
        forget_seen();
        hold_jobs();
        request = send_leaving(&job, server, &method, 1);
        CHECK(await_held(1));
        if (i == 0) {
            vxd_request_cancel(request);
        }
        let_jobs_go();
        CHECK_INT(call_wait(&job), i == 0 ? VXD_CANCELLED : VXD_OK);
        vxd_request_drop(request);
        call_finish(&job);
        CHECK_INT(n_starts(), i == 0 ? 1 : 2);
        server_finish(server);
    }
}

/* One that begins in time is not stopped by its age; false when it began too late. */
static bool outlive_its_age(struct vxd_server *server,
                            const struct vxd_request_header *header)
{
    struct call call;
    bool began;

    hold_jobs();
    forget_seen();
    send(&call, server, &small_method, header, HELD_MS, 1);
    while (!(began = n_starts() > 0) && !call_is_answered(&call)) {
        wait_ms(1);
    }
    if (began) {
        wait_ms((long)header->max_age_ms + 20);
    }
    let_jobs_go();
    CHECK_INT(call_wait(&call), began ? VXD_OK : VXD_ABORTED);
    call_finish(&call);
    return began;
}

static void test_max_age_over_is_answered_aborted_without_running(void)
{
    struct vxd_server *server = server_start(&(struct server_setup){0});
    struct vxd_request_header fresh = from("fresh");
    struct call lanes[2];
    struct call old;
    double took_ms = 50 + SLACK_MS;
    bool began = false;

    REQUIRE(server != NULL);
    fresh.max_age_ms = 50;
    occupy(server, lanes);
    forget_seen();
    for (int i = 0; i < N_TRIES && took_ms >= 50 + SLACK_MS; i++) {
        send(&old, server, &small_method, &fresh, 1, 1);
        CHECK_INT(call_wait(&old), VXD_ABORTED);
        CHECK_STR(old.err.field, "header.max_age_ms");
        took_ms = call_ms(&old);
        CHECK(took_ms >= 49);
        call_finish(&old);
    }
    CHECK(took_ms < 50 + SLACK_MS);
    CHECK_INT(n_starts(), 0);
    release_lanes(lanes);
    for (int i = 0; i < N_TRIES && !began; i++) {
        began = outlive_its_age(server, &fresh);
        fresh.max_age_ms *= 2;
    }
    CHECK(began);
    server_finish(server);
}

static void test_client_served_longest_ago_comes_first(void)
{
    struct vxd_server *server = server_start(&(struct server_setup){0});
    struct vxd_request_header busy = from("busy");
    struct vxd_request_header rare = from("rare");
    struct call first;
    struct call many[6];
    struct call one;

    REQUIRE(server != NULL);
    hold_jobs();
    send(&first, server, &bulk_method, &busy, HELD_MS, 1);
    CHECK(await_held(1));
    forget_seen();
    for (int i = 0; i < 6; i++) {
        send(&many[i], server, &bulk_method, &busy, 2, 1);
    }
    send(&one, server, &bulk_method, &rare, 2, 1);
    let_jobs_go();
    CHECK_INT(call_wait(&one), VXD_OK);
    expect_ok(many, 6);
    CHECK_STR(seen.clients[0], "rare");
    CHECK_STR(seen.clients[1], "busy");
    call_finish(&one);
    (void)call_wait(&first);
    call_finish(&first);
    server_finish(server);
}

/* Small ones beside a stage of it, other bulk ones between two. */
static void test_staged_bulk_job_lets_others_through_after_a_stage(void)
{
    static const char *const order[] = {"long", "small", "bulk", "long"};
    struct vxd_server *server = server_start(&(struct server_setup){0});
    struct vxd_request_header long_one = from("long");
    struct vxd_request_header another = from("small");
    struct vxd_request_header other = from("bulk");
    struct call job;
    struct call bulk;
    struct call small;

    REQUIRE(server != NULL);
    hold_jobs();
    forget_seen();
    send(&job, server, &bulk_method, &long_one, HELD_MS, 50);
    CHECK(await_held(1));
    send(&small, server, &small_method, &another, 1, 1);
    CHECK_INT(call_wait(&small), VXD_OK);
    call_finish(&small);
    send(&bulk, server, &bulk_method, &other, 1, 1);
    CHECK(!call_is_answered(&job));
    let_jobs_go();
    CHECK_INT(call_wait(&bulk), VXD_OK);
    call_finish(&bulk);
    CHECK_INT(call_wait(&job), VXD_OK);
    call_finish(&job);
    server_finish(server);
    CHECK_INT(n_starts(), 52);
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        CHECK_STR(seen.clients[i], order[i]);
    }
}

/* More of them than lanes, and small: they would take every stage from what they wait for. */
static void test_requests_that_wait_for_a_bulk_job_let_it_through(void)
{
    struct vxd_server *server = server_start(&(struct server_setup){0});
    struct vxd_request_header long_one = from("long");
    struct vxd_request_header other = from("waits");
    struct call calls[5];

    REQUIRE(server != NULL);
    hold_jobs();
    forget_seen();
    send(&calls[0], server, &bulk_method, &long_one, HELD_MS, 10);
    CHECK(await_held(1));
    for (size_t i = 1; i < 5; i++) {
        send(&calls[i], server, &waiting_method, &other, 3, 1);
    }
    while (n_starts() < 8) { /* they have begun, and found nothing */
        wait_ms(1);
    }
    CHECK_INT(n_released(), 0);
    let_jobs_go();
    expect_ok(calls, 5);
    server_finish(server);
    CHECK_INT(n_released(), 5);
}

static void test_writes_run_in_order_each_to_its_end(void)
{
    struct vxd_server *server = server_start(&(struct server_setup){0});
    struct vxd_request_header a = from("a");
    struct vxd_request_header b = from("b");
    struct call first;
    struct call second;

    REQUIRE(server != NULL);
    forget_seen();
    send(&first, server, &write_method, &a, 10, 3);
    send(&second, server, &write_method, &b, 10, 2);
    CHECK_INT(call_wait(&second), VXD_OK);
    CHECK_INT(call_wait(&first), VXD_OK);
    CHECK_INT(n_starts(), 5);
    for (int i = 0; i < 5; i++) {
        CHECK_STR(seen.clients[i], i < 3 ? "a" : "b");
    }
    call_finish(&first);
    call_finish(&second);
    server_finish(server);
}

/* A journal that decides when the test says so. */
static _Atomic(struct vxd_request *) handed_over;

static enum vxd_status keep_handed_over(struct vxd_request *request, struct vxd_err *err)
{
    (void)err;
    atomic_store(&handed_over, request);
    return VXD_OK;
}

static void end_nothing(struct vxd_request *request, bool committed)
{
    (void)request;
    (void)committed;
}

static enum vxd_status finish_for_journal(struct vxd_request *request,
                                          struct vxd_queue *queue, struct vxd_err *err)
{
    static struct vxd_commit commit;

    commit = (struct vxd_commit){.begin = keep_handed_over, .end = end_nothing};
    request->commit = &commit;
    return write_method.finish(request, queue, err);
}

static void test_list_says_of_each_request_where_it_is(void)
{
    struct vxd_server *server = server_start(&(struct server_setup){0});
    struct vxd_request_header hurried = from("last");
    struct vxd_method journalled = write_method;
    struct vxd_scheduler_entry entries[8];
    struct call change;
    struct call lanes[2];
    struct call waiting[2];

    REQUIRE(server != NULL);
    journalled.finish = finish_for_journal;
    atomic_store(&handed_over, NULL);
    send(&change, server, &journalled, NULL, 1, 1);
    for (int i = 0; i < 5000 && atomic_load(&handed_over) == NULL; i++) {
        wait_ms(1);
    }
    REQUIRE(atomic_load(&handed_over) != NULL);
    occupy(server, lanes);
    send(&waiting[0], server, &small_method, NULL, 1, 1);
    hurried.timeout_ms = 60000;
    send(&waiting[1], server, &small_method, &hurried, 1, 1);
    REQUIRE(vxd_scheduler_list(server->scheduler, NULL, entries, 8) == 5);
    for (int i = 0; i < 5; i++) {
        static const enum vxd_scheduler_stage known[] = {
            VXD_STAGE_RUNS, VXD_STAGE_RUNS, VXD_STAGE_COMMITS, VXD_STAGE_WAITS,
            VXD_STAGE_WAITS};

        CHECK_INT(entries[i].stage, known[i]);
        CHECK_STR(entries[i].method, "sleep");
        CHECK(entries[i].wait_ms > 0 && entries[i].wait_ms <= entries[i].total_ms);
        CHECK((entries[i].wait_ms < entries[i].total_ms) == (i < 3));
        CHECK(entries[i].left_ms > 0);
    }
    CHECK_STR(entries[2].request_id, change.id);
    CHECK_STR(entries[4].client_id, "last");
    CHECK(entries[4].left_ms <= 60000 && entries[4].left_ms > 30000);
    CHECK_INT(vxd_scheduler_list(server->scheduler, NULL, entries, 4), 4);
    CHECK_INT(vxd_scheduler_list(server->scheduler, entries[0].token, entries, 8), 5);
    CHECK_INT(vxd_scheduler_list(server->scheduler, "somebody else", entries, 8), 0);
    vxd_commit_decide(atomic_load(&handed_over), NULL);
    expect_ok(&change, 1);
    release_lanes(lanes);
    expect_ok(waiting, 2);
    CHECK_INT(vxd_scheduler_list(server->scheduler, NULL, entries, 8), 0);
    server_finish(server);
}

static void test_drain_finishes_what_was_admitted_and_refuses_later_ones(void)
{
    struct vxd_server *server = server_start(&(struct server_setup){0});
    struct call jobs[6];
    struct call late;

    REQUIRE(server != NULL);
    for (int i = 0; i < 6; i++) {
        send(&jobs[i], server, &small_method, NULL, 30, 2);
    }
    CHECK(vxd_scheduler_drain(server->scheduler, 60000));
    for (int i = 0; i < 6; i++) {
        CHECK(call_is_answered(&jobs[i]));
        CHECK_INT(call_wait(&jobs[i]), VXD_OK);
        call_finish(&jobs[i]);
    }
    send(&late, server, &small_method, NULL, 1, 1);
    CHECK_INT(call_wait(&late), VXD_UNAVAILABLE);
    call_finish(&late);
    server_finish(server);
}

static void test_drain_out_of_time_answers_everything_unavailable(void)
{
    struct vxd_server *server = server_start(&(struct server_setup){0});
    struct call jobs[6];

    REQUIRE(server != NULL);
    forget_seen();
    hold_jobs();
    for (int i = 0; i < 6; i++) {
        send(&jobs[i], server, &bulk_method, NULL, HELD_MS, 3);
    }
    CHECK(await_held(1));
    CHECK(!vxd_scheduler_drain(server->scheduler, 50));
    for (int i = 0; i < 6; i++) {
        CHECK(call_is_answered(&jobs[i]));
        CHECK_INT(call_wait(&jobs[i]), VXD_UNAVAILABLE);
    }
    let_jobs_go();
    vxd_server_close(server);
    CHECK_INT(n_released(), 1);
    for (int i = 0; i < 6; i++) {
        call_finish(&jobs[i]);
    }
    free(server);
}

static void test_lost_device_ends_the_server_and_refuses_requests(void)
{
    struct vxd_server *server = server_start(&(struct server_setup){0});
    struct call job;
    struct call late;

    REQUIRE(server != NULL);
    send(&job, server, &lose_method, NULL, 1, 1);
    CHECK_INT(call_wait(&job), VXD_UNAVAILABLE);
    call_finish(&job);
    CHECK_INT(atomic_load(&server->state), VXD_STATE_LOST);
    CHECK_STR(vxd_server_state_name(server), "lost");
    vxd_server_set_state(server, VXD_STATE_SERVING);
    CHECK_INT(atomic_load(&server->state), VXD_STATE_LOST);
    send(&late, server, &small_method, NULL, 1, 1);
    CHECK_INT(call_wait(&late), VXD_UNAVAILABLE);
    call_finish(&late);
    server_finish(server);
}

enum {
    N_THREADS = 4,
    N_EACH = 100
};

static void *hammer(void *argument)
{
    struct vxd_server *server = argument;
    struct call *calls = calloc(N_EACH, sizeof *calls);

    for (unsigned i = 0; calls != NULL && i < N_EACH; i++) {
        struct vxd_request_header header = from(i % 3 == 0 ? "a" : "b");

        header.timeout_ms = 1 + i % 7;
        header.max_age_ms = i % 5;
        header.stream = i % 4 == 0 ? "s" : "";
        header.keep_last = i % 4 == 0 ? 1 : 0;
        send(&calls[i], server, i % 2 == 0 ? &small_method : &bulk_method, &header, i % 3,
             i % 4);
    }
    for (unsigned i = 0; calls != NULL && i < N_EACH; i++) {
        (void)call_wait(&calls[i]);
        call_finish(&calls[i]);
    }
    free(calls);
    return NULL;
}

static void test_racing_ends_give_every_request_one_answer(void)
{
    struct vxd_server *server = server_start(&(struct server_setup){.queue_limit = 16});
    pthread_t threads[N_THREADS];

    REQUIRE(server != NULL);
    for (int i = 0; i < N_THREADS; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, hammer, server) == 0);
    }
    for (int i = 0; i < N_THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    CHECK_INT(atomic_load(&server->n_open), 0);
    server_finish(server);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_queue_full_is_answered_unavailable_at_once),
    VXD_TEST(test_stream_keep_last_supersedes_the_older_ones),
    VXD_TEST(test_stream_of_another_principal_is_not_superseded),
    VXD_TEST(test_superseding_request_finds_room_in_a_lowered_queue),
    VXD_TEST(test_stream_older_request_that_comes_late_is_superseded_itself),
    VXD_TEST(test_max_age_over_when_decoded_is_answered_at_once),
    VXD_TEST(test_begun_requests_of_many_clients_stay_few),
    VXD_TEST(test_request_waits_for_engine_memory_instead_of_failing),
    VXD_TEST(test_fields_that_nobody_has_make_room_for_requests),
    VXD_TEST(test_deadline_passes_while_lanes_are_busy_and_is_answered_on_time),
    VXD_TEST(test_expired_staged_job_stops_between_stages_and_is_released),
    VXD_TEST(test_cancelled_request_gives_its_place_in_the_queue_back),
    VXD_TEST(test_cancelled_job_that_runs_stops_unless_it_changes_something),
    VXD_TEST(test_change_cancelled_while_its_prerequisite_runs_does_not_begin),
    VXD_TEST(test_max_age_over_is_answered_aborted_without_running),
    VXD_TEST(test_client_served_longest_ago_comes_first),
    VXD_TEST(test_staged_bulk_job_lets_others_through_after_a_stage),
    VXD_TEST(test_requests_that_wait_for_a_bulk_job_let_it_through),
    VXD_TEST(test_writes_run_in_order_each_to_its_end),
    VXD_TEST(test_list_says_of_each_request_where_it_is),
    VXD_TEST(test_drain_finishes_what_was_admitted_and_refuses_later_ones),
    VXD_TEST(test_drain_out_of_time_answers_everything_unavailable),
    VXD_TEST(test_lost_device_ends_the_server_and_refuses_requests),
    VXD_TEST(test_racing_ends_give_every_request_one_answer),
};

VXD_TEST_MAIN(tests)
