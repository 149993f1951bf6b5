// SPDX-License-Identifier: Apache-2.0
/* What the daemon gives back, while it is idle and while it never is. */
#include "tests/support/test.h"

#include "gpu/core/core.h"
#include "proto/base/clock.h"
#include "server/idle.h"
#include "server/observe/observe.h"
#include "tests/support/server/server_checks.h"
#include "tests/support/server/sleep_methods.h"

VXD_TEST_HELPERS

#define SECOND_NS INT64_C(1000000000)
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define MALLOC_GIVES_BACK 1 /* a sanitizer's does not */
#else
#define MALLOC_GIVES_BACK 0
#endif

static void leave_block(struct vxd_server *server, size_t n_bytes)
{
    struct vxd_buffer buffer;
    struct vxd_err err = {0};

    REQUIRE(vxd_host_alloc(server->context, n_bytes, &buffer, &err) == VXD_OK);
    vxd_host_free(server->context, &buffer);
}

static size_t kept(struct vxd_server *server)
{
    struct vxd_memory_usage usage;

    vxd_context_get_memory(server->context, &usage);
    return usage.host_kept_bytes;
}

static void test_idle_server_frees_what_nobody_took_between_two_ticks(void)
{
    struct vxd_server *server = server_start(&(struct server_setup){0});
    struct vxd_idle idle = {0};

    REQUIRE(server != NULL);
    leave_block(server, 5 << 20);
    CHECK(kept(server) >= (size_t)5 << 20);
    vxd_idle_tick(server, &idle);
    CHECK(kept(server) >= (size_t)5 << 20);
    vxd_idle_tick(server, &idle);
    CHECK_INT(kept(server), 0);
    server_finish(server);
}

static void test_server_that_is_never_idle_frees_once_a_minute_what_nobody_took(void)
{
    struct vxd_server *server = server_start(&(struct server_setup){0});
    struct vxd_idle idle = {.trimmed_ns = vxd_clock_ns()};
    struct call busy;
    char json[64];

    REQUIRE(server != NULL);
    hold_jobs();
    (void)snprintf(json, sizeof json, "{\"durationMs\": %d, \"nPoints\": 1}", HELD_MS);
    call_begin(&busy);
    call_json(&busy, server, &small_method, NULL, json);
    CHECK(await_held(1));
    leave_block(server, 5 << 20);
    leave_block(server, 3 << 20);
    for (int i = 0; i < 3; i++) {
        vxd_idle_tick(server, &idle);
    }
    CHECK(kept(server) >= (size_t)8 << 20); /* the minute is not over */
    idle.trimmed_ns -= 61 * SECOND_NS;
    vxd_idle_tick(server, &idle);
    CHECK(kept(server) >= (size_t)8 << 20); /* both were in use since the start */
    leave_block(server, 3 << 20);
    idle.trimmed_ns -= 61 * SECOND_NS;
    vxd_idle_tick(server, &idle);
    CHECK(kept(server) >= (size_t)3 << 20 && kept(server) < (size_t)5 << 20);
    let_jobs_go();
    CHECK_INT(call_wait(&busy), VXD_OK);
    call_finish(&busy);
    server_finish(server);
}

#if MALLOC_GIVES_BACK
static char *survivors[3];
static int n_survivors;

/* Takes memory in pieces that malloc keeps when they are freed, and frees it. */
static void burst(void)
{
    enum {
        N_PIECES = 4096,
        PIECE_BYTES = 64 << 10
    };
    char **pieces = calloc(N_PIECES, sizeof *pieces);

    REQUIRE(pieces != NULL);
    for (int i = 0; i < N_PIECES; i++) {
        pieces[i] = malloc(PIECE_BYTES);
        REQUIRE(pieces[i] != NULL);
        memset(pieces[i], 1, PIECE_BYTES);
    }
    /* The last one holds what lies below it, as an object does that lives on. */
    for (int i = 0; i < N_PIECES - 1; i++) {
        free(pieces[i]);
    }
    survivors[n_survivors++] = pieces[N_PIECES - 1];
    free(pieces);
}

static uint64_t resident(void)
{
    uint64_t resident_bytes;
    uint64_t virtual_bytes;

    vxd_process_get_memory(&resident_bytes, &virtual_bytes);
    return resident_bytes;
}

/* The second time malloc's free bytes are as many as the first time, though it had given them back. */
static void test_memory_of_each_burst_goes_back(void)
{
    struct vxd_server *server = server_start(&(struct server_setup){0});
    struct vxd_idle idle = {0};
    uint64_t before;

    REQUIRE(server != NULL);
    vxd_idle_tick(server, &idle);
    before = resident();
    for (int i = 0; i < 3; i++) {
        burst();
        CHECK(resident() > before + (UINT64_C(128) << 20));
        vxd_idle_tick(server, &idle);
        CHECK(resident() < before + (UINT64_C(64) << 20));
    }
    while (n_survivors > 0) {
        free(survivors[--n_survivors]);
    }
    server_finish(server);
}
#endif

static const struct vxd_test tests[] = {
    VXD_TEST(test_idle_server_frees_what_nobody_took_between_two_ticks),
    VXD_TEST(test_server_that_is_never_idle_frees_once_a_minute_what_nobody_took),
#if MALLOC_GIVES_BACK
    VXD_TEST(test_memory_of_each_burst_goes_back),
#endif
};

VXD_TEST_MAIN(tests)
