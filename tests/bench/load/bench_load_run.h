// SPDX-License-Identifier: Apache-2.0
/* One step of a load: threads ask on connections of their own, in a closed or an open
 * loop, and count the answers. */
#ifndef VXD_TESTS_BENCH_LOAD_BENCH_LOAD_RUN_H
#define VXD_TESTS_BENCH_LOAD_BENCH_LOAD_RUN_H

#include "tests/bench/load/bench_load_histogram.h"
#include "tests/bench/load/bench_load_target.h"

enum {
    LOAD_N_CODES = VOXELD_UNAUTHENTICATED + 1,
    LOAD_ALL = LOAD_N_METHODS /* the row of all methods together */
};

struct load_step {
    double rate; /* requests a second; 0: closed loop */
    uint32_t concurrency;
};

/* Zeroed is empty; ok + failed requests were measured. */
struct load_stats {
    atomic_uint_fast64_t n_ok;
    atomic_uint_fast64_t n_failed;     /* any code but OK, and wrong answers */
    atomic_uint_fast64_t n_wrong;      /* of those: OK, but not what --check expects */
    atomic_uint_fast64_t n_unanswered; /* of those: lost connections, mostly */
    atomic_uint_fast64_t codes[LOAD_N_CODES];
    /* From the set time (open loop) or from sending (closed loop) to the whole answer. */
    struct load_histogram latency; /* of what is OK */
    struct load_histogram engine;  /* of voxelize: the reply's engine_ms */
    struct load_histogram overhead;
    struct load_histogram stages[LOAD_N_STAGES]; /* with --stages */
    struct load_histogram rejected; /* latency of UNAVAILABLE and RESOURCE_EXHAUSTED */
};

/* Some 2 MB: on the heap. */
struct load_result {
    struct load_step step;
    double seconds;    /* measured, without the warm-up */
    uint64_t n_unsent; /* open loop: were due, but too many were in flight to the end */
    atomic_uint_fast64_t n_late; /* open loop: sent more than 1 ms after their time */
    struct load_stats stats[LOAD_N_METHODS + 1];
    char messages[LOAD_N_CODES][240]; /* the first of each code; of OK: of a wrong one */
    bool interrupted;
};

/* Runs a step and waits for all its answers. SIGINT and SIGTERM, which the caller has
 * blocked in all threads, end it early (and are unblocked then: a second one kills).
 *
 * in/out  expected  number of voxels plus one of the first answer, 0 = none yet; kept over
 *                   steps for --check
 * out     result    zeroed by the caller
 *
 * False after filling *error: no connection, no thread, no memory; nothing was measured. */
bool load_run(const struct load_work *work, const struct load_step *step,
              atomic_uint_fast64_t *expected, struct load_result *result,
              struct voxeld_error *error);

#endif
