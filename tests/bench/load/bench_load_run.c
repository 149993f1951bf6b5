// SPDX-License-Identifier: Apache-2.0
/* Closed loop: a thread asks, waits, and asks again. Open loop: the times of all requests
 * are set beforehand; a free thread takes the next, sleeps until it is due and asks. When
 * all threads wait for answers, requests start late, but their latency counts from when
 * they were due: what a stall costs is not hidden by asking less meanwhile (coordinated
 * omission). */
#include "tests/bench/load/bench_load_run.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NS_A_S INT64_C(1000000000)
#define NS_A_MS INT64_C(1000000)

enum {
    LATE_NS = 1000000,
    /* The longest sleep between two checks whether the run was stopped. */
    SLICE_NS = 50000000,
    /* The pause after a failure that never reached the server, so that a closed loop
     * does not spin. */
    PAUSE_NS = 10000000,
    WATCH_NS = 10000000,
    STACK_BYTES = 1 << 20
};

/* A request to send. */
struct ticket {
    int64_t due_ns;
    enum load_method method;
    bool measured; /* not of the warm-up */
};

struct run {
    const struct load_work *work;
    const struct load_step *step;
    struct load_result *result;
    atomic_uint_fast64_t *expected;
    int64_t begin_ns; /* of the warm-up */
    int64_t measure_ns;
    int64_t end_ns;
    uint32_t n_weights;
    atomic_bool stop;
    atomic_uint n_running;
    atomic_int_fast64_t last_ns; /* when the last measured answer came */

    pthread_mutex_t mutex; /* guards the members below, and result->messages */
    double next_s;         /* open loop: when the next request is due, from begin_ns */
    uint64_t n_taken;
    uint64_t n_measured;
    uint64_t random;
    int64_t credit[LOAD_N_METHODS]; /* for mixing evenly */
};

struct worker {
    struct run *run;
    struct load_target *target;
    pthread_t thread;
};

static int64_t now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * NS_A_S + now.tv_nsec;
}

static void sleep_until(int64_t ns)
{
    const struct timespec at = {.tv_sec = ns / NS_A_S, .tv_nsec = ns % NS_A_S};

    (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

/* Chooses each method as often as its weight says, evenly spread: the one that has
 * waited longest. */
static enum load_method pick_method(struct run *run)
{
    const uint32_t *weights = run->work->options->weights;
    size_t best = 0;

    for (size_t i = 0; i < LOAD_N_METHODS; i++) {
        run->credit[i] += weights[i];
        if (run->credit[i] > run->credit[best]) {
            best = i;
        }
    }
    run->credit[best] -= run->n_weights;
    return (enum load_method)best;
}

/* Moves next_s to the time of the next request. */
static void advance_schedule(struct run *run)
{
    double uniform;

    run->n_taken++;
    if (!run->work->options->poisson) {
        run->next_s = (double)run->n_taken / run->step->rate;
        return;
    }
    run->random = run->random * UINT64_C(6364136223846793005) + 1442695040888963407u;
    uniform = ((double)(run->random >> 11) + 1) / 9007199254740992.0; /* (0, 1] */
    run->next_s -= log(uniform) / run->step->rate;
}

/* Takes the next request; false when the step is over. */
static bool take_ticket(struct run *run, struct ticket *out)
{
    uint64_t count = run->work->options->count;
    int64_t now = now_ns();
    bool taken = false;

    (void)pthread_mutex_lock(&run->mutex);
    out->due_ns = run->step->rate > 0
                      ? run->begin_ns + (int64_t)(run->next_s * (double)NS_A_S)
                      : now;
    if (!atomic_load(&run->stop) && now < run->end_ns && out->due_ns < run->end_ns &&
        (count == 0 || run->n_measured < count)) {
        taken = true;
        out->measured = out->due_ns >= run->measure_ns;
        out->method = pick_method(run);
        run->n_measured += out->measured ? 1 : 0;
        if (run->step->rate > 0) {
            advance_schedule(run);
        }
    }
    (void)pthread_mutex_unlock(&run->mutex);
    return taken;
}

/* Waits until the request is due; false when the run was stopped meanwhile. */
static bool wait_until_due(struct run *run, int64_t due_ns)
{
    for (int64_t now = now_ns(); now < due_ns; now = now_ns()) {
        if (atomic_load(&run->stop)) {
            return false;
        }
        sleep_until(due_ns - now < SLICE_NS ? due_ns : now + SLICE_NS);
    }
    return true;
}

/* Whether an OK is not the right answer. */
static bool is_wrong(struct run *run, enum load_method method,
                     const struct load_reply *reply)
{
    uint_fast64_t first = 0;

    if (!run->work->options->check || method != LOAD_VOXELIZE ||
        reply->error.code != VOXELD_OK) {
        return false;
    }
    return reply->n_points != run->work->cloud.n_points ||
           (!atomic_compare_exchange_strong(run->expected, &first, reply->n_voxels + 1) &&
            first != reply->n_voxels + 1);
}

static void keep_message(struct run *run, enum voxeld_status code, const char *message)
{
    char *kept = run->result->messages[code];

    (void)pthread_mutex_lock(&run->mutex);
    if (kept[0] == '\0') {
        (void)snprintf(kept, sizeof run->result->messages[code], "%s", message);
    }
    (void)pthread_mutex_unlock(&run->mutex);
}

static void count_stages(struct load_stats *stats, const struct voxeld_timings *timings,
                         int64_t latency_ns)
{
    double ms[LOAD_N_STAGES] = {[LOAD_RECEIVE] = timings->receive_ms,
                                [LOAD_DECODE] = timings->decode_ms,
                                [LOAD_WAIT] = timings->wait_ms,
                                [LOAD_ENGINE] = timings->engine_ms,
                                [LOAD_COMMIT] = timings->commit_ms,
                                [LOAD_REST] = timings->total_ms,
                                [LOAD_WAY] = (double)latency_ns / (double)NS_A_MS -
                                             timings->total_ms};

    for (size_t i = 0; i < LOAD_REST; i++) {
        ms[LOAD_REST] -= ms[i];
    }
    for (size_t i = 0; i < LOAD_N_STAGES; i++) {
        load_histogram_record(&stats->stages[i],
                              ms[i] > 0 ? (int64_t)(ms[i] * (double)NS_A_MS) : 0);
    }
}

static void count(struct load_stats *stats, enum load_method method,
                  const struct load_reply *reply, bool wrong, int64_t latency_ns)
{
    enum voxeld_status code = reply->error.code;

    (void)atomic_fetch_add(&stats->codes[code], 1);
    if (wrong || code != VOXELD_OK) {
        (void)atomic_fetch_add(&stats->n_failed, 1);
        (void)atomic_fetch_add(&stats->n_wrong, wrong ? 1 : 0);
        (void)atomic_fetch_add(&stats->n_unanswered, reply->answered ? 0 : 1);
        if (reply->answered &&
            (code == VOXELD_UNAVAILABLE || code == VOXELD_RESOURCE_EXHAUSTED)) {
            load_histogram_record(&stats->rejected, latency_ns);
        }
        return;
    }
    (void)atomic_fetch_add(&stats->n_ok, 1);
    load_histogram_record(&stats->latency, latency_ns);
    if (reply->has_timings) {
        count_stages(stats, &reply->timings, latency_ns);
    }
    if (load_sends_cloud(method)) {
        int64_t engine_ns = (int64_t)(reply->engine_ms * (double)NS_A_MS);

        load_histogram_record(&stats->engine, engine_ns);
        load_histogram_record(&stats->overhead, latency_ns - engine_ns);
    }
}

static void ask(struct worker *worker, const struct ticket *ticket)
{
    struct run *run = worker->run;
    struct load_reply reply;
    int64_t sent_ns = now_ns();
    int64_t done_ns;
    int_fast64_t last = atomic_load(&run->last_ns);
    bool wrong;

    load_target_call(worker->target, ticket->method, &reply);
    done_ns = now_ns();
    if ((unsigned)reply.error.code >= LOAD_N_CODES) {
        reply.error.code = VOXELD_UNKNOWN;
    }
    wrong = is_wrong(run, ticket->method, &reply);
    if (wrong) {
        (void)snprintf(reply.error.message, sizeof reply.error.message,
                       "wrong answer: %" PRIu64 " voxels of %" PRIu64 " points",
                       reply.n_voxels, reply.n_points);
    }
    if (ticket->measured) {
        int64_t latency_ns = done_ns - ticket->due_ns;

        count(&run->result->stats[ticket->method], ticket->method, &reply, wrong,
              latency_ns);
        count(&run->result->stats[LOAD_ALL], ticket->method, &reply, wrong, latency_ns);
        (void)atomic_fetch_add(&run->result->n_late,
                               run->step->rate > 0 && sent_ns - ticket->due_ns > LATE_NS);
        while (done_ns > last &&
               !atomic_compare_exchange_weak(&run->last_ns, &last, done_ns)) {
        }
        if (wrong || reply.error.code != VOXELD_OK) {
            keep_message(run, reply.error.code, reply.error.message);
        }
    }
    if (!reply.answered) {
        sleep_until(done_ns + PAUSE_NS);
    }
}

static void *work(void *context)
{
    struct worker *worker = context;
    struct run *run = worker->run;
    struct ticket ticket;

    while (take_ticket(run, &ticket)) {
        if (!wait_until_due(run, ticket.due_ns)) {
            break;
        }
        ask(worker, &ticket);
    }
    (void)atomic_fetch_sub(&run->n_running, 1);
    return NULL;
}

/* Waits for the workers or a signal. */
static void watch(struct run *run)
{
    const struct timespec slice = {.tv_nsec = WATCH_NS};
    sigset_t signals;

    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGINT);
    (void)sigaddset(&signals, SIGTERM);
    while (atomic_load(&run->n_running) > 0) {
        if (sigtimedwait(&signals, NULL, &slice) > 0) {
            run->result->interrupted = true;
            atomic_store(&run->stop, true);
            (void)pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
            return;
        }
    }
}

/* Computes when measuring ended, and how many requests were due until then but never
 * sent. */
static void settle(struct run *run, int64_t stopped_ns)
{
    uint64_t n_requested = run->work->options->count;
    bool counted = n_requested > 0 && run->n_measured == n_requested;
    int64_t next_ns = run->begin_ns + (int64_t)(run->next_s * (double)NS_A_S);
    int64_t last_ns = atomic_load(&run->last_ns);
    int64_t end_ns = run->end_ns;

    if (run->result->interrupted && stopped_ns < end_ns) {
        end_ns = stopped_ns;
    } else if (counted) {
        end_ns = run->step->rate > 0 ? next_ns : last_ns;
    }
    if (run->step->rate > 0 && !counted) {
        int64_t from_ns = next_ns > run->measure_ns ? next_ns : run->measure_ns;

        if (from_ns < end_ns) {
            run->result->n_unsent =
                (uint64_t)ceil((double)(end_ns - from_ns) / 1e9 * run->step->rate);
        }
    }
    end_ns = last_ns > end_ns ? last_ns : end_ns;
    if (end_ns > run->measure_ns) {
        run->result->seconds = (double)(end_ns - run->measure_ns) / 1e9;
    }
}

static void start_clock(struct run *run)
{
    const struct load_options *options = run->work->options;

    run->begin_ns = now_ns();
    run->measure_ns = run->begin_ns + (int64_t)(options->warmup_s * (double)NS_A_S);
    run->end_ns = run->measure_ns + (int64_t)(options->duration_s * (double)NS_A_S);
}

/* Runs the workers to their end. False when threads are missing; then nothing counts. */
static bool run_workers(struct run *run, struct worker *workers,
                        struct voxeld_error *error)
{
    uint32_t n = run->step->concurrency;
    uint32_t n_started = 0;
    pthread_attr_t attributes;
    int result = pthread_attr_init(&attributes);

    if (result == 0) {
        (void)pthread_attr_setstacksize(&attributes, STACK_BYTES);
        start_clock(run);
        atomic_store(&run->n_running, n);
        while (result == 0 && n_started < n) {
            result = pthread_create(&workers[n_started].thread, &attributes, work,
                                    &workers[n_started]);
            n_started += result == 0 ? 1 : 0;
        }
        (void)pthread_attr_destroy(&attributes);
    }
    if (result == 0) {
        watch(run);
    } else {
        atomic_store(&run->stop, true);
        (void)load_fail(error, VOXELD_RESOURCE_EXHAUSTED, "thread %u of %u: %s",
                        n_started + 1, n, strerror(result));
    }
    if (result == 0) {
        int64_t stopped_ns = now_ns();

        for (uint32_t i = 0; i < n; i++) {
            (void)pthread_join(workers[i].thread, NULL);
        }
        settle(run, stopped_ns);
        return true;
    }
    for (uint32_t i = 0; i < n_started; i++) {
        (void)pthread_join(workers[i].thread, NULL);
    }
    return false;
}

bool load_run(const struct load_work *load, const struct load_step *step,
              atomic_uint_fast64_t *expected, struct load_result *result,
              struct voxeld_error *error)
{
    struct run run = {
        .work = load, .step = step, .result = result, .expected = expected, .random = 1};
    struct worker *workers = calloc(step->concurrency, sizeof *workers);
    bool done = false;
    uint32_t n_open = 0;
    int error_number = pthread_mutex_init(&run.mutex, NULL);

    result->step = *step;
    for (size_t i = 0; i < LOAD_N_METHODS; i++) {
        run.n_weights += load->options->weights[i];
    }
    if (workers == NULL || error_number != 0) {
        (void)load_fail(error, VOXELD_RESOURCE_EXHAUSTED, "no memory for %u connections",
                        step->concurrency);
    } else {
        while (n_open < step->concurrency &&
               load_target_open(load, &workers[n_open].target, error) == VOXELD_OK) {
            workers[n_open++].run = &run;
        }
        done = n_open == step->concurrency && run_workers(&run, workers, error);
    }
    for (uint32_t i = 0; i < n_open; i++) {
        load_target_close(workers[i].target);
    }
    if (error_number == 0) {
        (void)pthread_mutex_destroy(&run.mutex);
    }
    free(workers);
    return done;
}
