// SPDX-License-Identifier: Apache-2.0
/* The thread pool; most useful under ThreadSanitizer. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include "gpu/core/core.h"
#include "tests/support/test.h"

enum {
    MAX_PIECES = 4096
};

struct cover {
    size_t n;
    size_t grain;
    atomic_int n_visits[MAX_PIECES];
    atomic_int n_wrong;
};

static void visit(void *args, size_t begin, size_t end)
{
    struct cover *cover = args;
    size_t expected = cover->n - begin > cover->grain ? begin + cover->grain : cover->n;

    if (begin % cover->grain != 0 || end != expected) {
        atomic_fetch_add(&cover->n_wrong, 1);
        return;
    }
    atomic_fetch_add(&cover->n_visits[begin / cover->grain], 1);
}

static void check_cover(struct vxd_pool *pool, size_t n, size_t grain)
{
    static struct cover cover;
    size_t n_pieces = (n + grain - 1) / grain;

    memset(&cover, 0, sizeof cover);
    cover.n = n;
    cover.grain = grain;
    vxd_parallel_for(pool, n, grain, visit, &cover);
    CHECK_INT(cover.n_wrong, 0);
    for (size_t i = 0; i < MAX_PIECES; i++) {
        if (cover.n_visits[i] != (i < n_pieces ? 1 : 0)) {
            CHECK(false && "every piece once");
            return;
        }
    }
}

static void test_loop_of_any_size_covers_each_index_once_in_exact_pieces(void)
{
    for (int n_threads = 1; n_threads <= 5; n_threads += 2) {
        struct vxd_pool *pool;

        REQUIRE(vxd_pool_create(n_threads, &pool, NULL) == VXD_OK);
        CHECK_INT(vxd_pool_n_threads(pool), n_threads);
        check_cover(pool, 0, 1);
        check_cover(pool, 1, 1);
        check_cover(pool, 1, 100);
        check_cover(pool, 100, 100);
        check_cover(pool, 101, 100);
        check_cover(pool, 4096, 1);
        check_cover(pool, 1000000, 1000);
        check_cover(pool, 999999, 1000);
        vxd_pool_destroy(pool);
    }
}

struct nest {
    struct vxd_pool *pool;
    atomic_llong sum;
};

static void inner(void *args, size_t begin, size_t end)
{
    struct nest *nest = args;

    atomic_fetch_add(&nest->sum, (long long)(end - begin));
}

static void outer(void *args, size_t begin, size_t end)
{
    struct nest *nest = args;

    for (size_t i = begin; i < end; i++) {
        vxd_parallel_for(nest->pool, 50, 7, inner, nest);
    }
}

static void test_loops_started_by_loop_bodies_finish(void)
{
    struct nest nest = {NULL, 0};

    REQUIRE(vxd_pool_create(3, &nest.pool, NULL) == VXD_OK);
    vxd_parallel_for(nest.pool, 200, 1, outer, &nest);
    CHECK_INT(nest.sum, 200 * 50);
    vxd_pool_destroy(nest.pool);
}

static void *run_many_loops(void *args)
{
    for (int i = 0; i < 100; i++) {
        vxd_parallel_for(((struct nest *)args)->pool, 1000, 37, inner, args);
    }
    return NULL;
}

static void test_loops_of_several_threads_at_once_finish(void)
{
    enum {
        N_CALLERS = 4
    };
    struct nest nest = {NULL, 0};
    pthread_t callers[N_CALLERS];

    REQUIRE(vxd_pool_create(3, &nest.pool, NULL) == VXD_OK);
    for (int i = 0; i < N_CALLERS; i++) {
        REQUIRE(pthread_create(&callers[i], NULL, run_many_loops, &nest) == 0);
    }
    for (int i = 0; i < N_CALLERS; i++) {
        (void)pthread_join(callers[i], NULL);
    }
    CHECK_INT(nest.sum, N_CALLERS * 100 * 1000);
    vxd_pool_destroy(nest.pool);
}

/* Pieces of 2 ms, more than a minute in total, so that a stalled short loop does not
 * outlast the long loop. */
enum {
    N_LONG = 100000
};

struct contest {
    struct vxd_pool *pool;
    atomic_bool hurries; /* the rest of the long loop does not sleep */
    atomic_int n_long_started;
    atomic_bool is_long_done;
    atomic_int n_arrived;
};

static void sleep_ms(long ms)
{
    struct timespec time = {0, ms * 1000000};

    (void)nanosleep(&time, NULL);
}

static void long_body(void *args, size_t begin, size_t end)
{
    struct contest *contest = args;

    (void)begin;
    (void)end;
    atomic_fetch_add(&contest->n_long_started, 1);
    if (!atomic_load(&contest->hurries)) {
        sleep_ms(2);
    }
}

static void *run_long_loop(void *args)
{
    struct contest *contest = args;

    vxd_parallel_for(contest->pool, N_LONG, 1, long_body, contest);
    atomic_store(&contest->is_long_done, true);
    return NULL;
}

/* Both pieces must run at the same time for either to end. */
static void meet(void *args, size_t begin, size_t end)
{
    struct contest *contest = args;

    (void)begin;
    (void)end;
    atomic_fetch_add(&contest->n_arrived, 1);
    while (atomic_load(&contest->n_arrived) < 2) {
        (void)sched_yield();
    }
}

static void test_short_loop_beside_a_long_one_gets_the_worker_too(void)
{
    struct contest contest = {.pool = NULL};
    pthread_t caller;

    REQUIRE(vxd_pool_create(2, &contest.pool, NULL) == VXD_OK);
    REQUIRE(pthread_create(&caller, NULL, run_long_loop, &contest) == 0);
    while (atomic_load(&contest.n_long_started) < 4) {
        sleep_ms(1);
    }
    vxd_parallel_for(contest.pool, 2, 1, meet, &contest);
    CHECK(!atomic_load(&contest.is_long_done));
    CHECK(atomic_load(&contest.n_long_started) < N_LONG / 2);
    atomic_store(&contest.hurries, true);
    (void)pthread_join(caller, NULL);
    CHECK_INT(contest.n_long_started, N_LONG);
    vxd_pool_destroy(contest.pool);
}

static void test_pool_with_bad_thread_count_is_refused(void)
{
    struct vxd_pool *pool;
    struct vxd_err err = {0};

    CHECK_INT(vxd_pool_create(-1, &pool, &err), VXD_INVALID_ARGUMENT);
    CHECK(pool == NULL);
    CHECK_INT(vxd_pool_create(257, &pool, &err), VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "n_threads");
    CHECK_INT(vxd_pool_create(0, &pool, &err), VXD_OK);
    CHECK(vxd_pool_n_threads(pool) >= 1);
    vxd_pool_destroy(pool);
    vxd_pool_destroy(NULL);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_loop_of_any_size_covers_each_index_once_in_exact_pieces),
    VXD_TEST(test_loops_started_by_loop_bodies_finish),
    VXD_TEST(test_loops_of_several_threads_at_once_finish),
    VXD_TEST(test_short_loop_beside_a_long_one_gets_the_worker_too),
    VXD_TEST(test_pool_with_bad_thread_count_is_refused),
};

VXD_TEST_MAIN(tests)
