// SPDX-License-Identifier: Apache-2.0
/* Loads a running daemon and measures its answers: closed and open loops, sweeps,
 * mixes of methods, over ipc, tcp or HTTP. bench_load --help is the manual. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "client/voxelctl/cli/cli.h"
#include "tests/bench/load/bench_load_report.h"

enum {
    EXIT_INTERRUPTED = 130
};

static int fail(const char *what, const struct voxeld_error *error)
{
    (void)ctl_failed(what, error);
    return EXIT_FAILURE;
}

/* Only the runs wait for these signals, in this thread: threads made later inherit the
 * mask. */
static void block_signals(void)
{
    sigset_t signals;

    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGINT);
    (void)sigaddset(&signals, SIGTERM);
    (void)pthread_sigmask(SIG_BLOCK, &signals, NULL);
}

static struct load_step step_of(const struct load_options *options, size_t i)
{
    bool open = options->n_rates > 0;

    return (struct load_step){.rate = open ? options->rates[i] : 0,
                              .concurrency = options->concurrency[open ? 0 : i]};
}

static void report_step(const struct load_work *work, FILE *csv, size_t step_no,
                        const struct load_result *result)
{
    if (work->options->json) {
        load_report_json_step(stdout, work, step_no, result);
    } else {
        load_report_step(stdout, work, result);
    }
    if (csv != NULL) {
        load_report_csv_step(csv, work, step_no, result);
    }
}

/* Runs all steps and returns the exit status. */
static int run_steps(const struct load_work *work, FILE *csv)
{
    const struct load_options *options = work->options;
    size_t n_steps = options->n_rates > 0 ? options->n_rates : options->n_concurrency;
    atomic_uint_fast64_t expected = 0;
    struct load_result *result = NULL;
    struct voxeld_error error = {0};
    bool failed = false;
    int code = EXIT_SUCCESS;

    for (size_t i = 0; i < n_steps && code == EXIT_SUCCESS; i++) {
        const struct load_step step = step_of(options, i);

        free(result);
        result = calloc(1, sizeof *result);
        if (result == NULL) {
            (void)load_fail(&error, VOXELD_RESOURCE_EXHAUSTED, "no memory for a result");
            code = fail("results", &error);
        } else if (!load_run(work, &step, &expected, result, &error)) {
            code = fail(options->url != NULL ? options->url : "the daemon", &error);
        } else {
            const struct load_stats *all = &result->stats[LOAD_ALL];

            report_step(work, csv, i, result);
            failed = failed || all->n_wrong > 0 || all->n_ok == 0;
            code = result->interrupted ? EXIT_INTERRUPTED : EXIT_SUCCESS;
        }
    }
    free(result);
    return failed && code == EXIT_SUCCESS ? EXIT_FAILURE : code;
}

static int run_work(const struct load_work *work, FILE *csv)
{
    int code;

    if (csv != NULL) {
        load_report_csv_heading(csv);
    }
    if (work->options->json) {
        load_report_json_begin(stdout, work);
    } else {
        load_report_heading(stdout, work);
    }
    code = run_steps(work, csv);
    if (work->options->json) {
        load_report_json_end(stdout);
    }
    if (fflush(stdout) != 0 || ferror(stdout) != 0) {
        (void)ctl_error("standard output: %s", strerror(errno));
        code = EXIT_FAILURE;
    }
    return code;
}

/* Opens the output files before anything is loaded. */
static int run_with_csv(const struct load_work *work)
{
    const char *path = work->options->csv;
    FILE *csv = path != NULL ? fopen(path, "we") : NULL;
    int code;
    bool failed;

    if (path != NULL && csv == NULL) {
        (void)ctl_error("--csv %s: %s", path, strerror(errno));
        return EXIT_FAILURE;
    }
    code = run_work(work, csv);
    if (csv != NULL) {
        failed = ferror(csv) != 0;
        if (fclose(csv) != 0 || failed) {
            (void)ctl_error("--csv %s: not written whole", path);
            code = EXIT_FAILURE;
        }
    }
    return code;
}

int main(int argc, char **argv)
{
    struct load_options options;
    struct load_work work;
    struct voxeld_error error = {0};
    int code;

    if (!load_options_parse(argc, argv, &options, &code)) {
        return code;
    }
    block_signals();
    if (!load_work_create(&options, &work, &error)) {
        return fail(options.cloud != NULL ? options.cloud : "the request", &error);
    }
    code = run_with_csv(&work);
    load_work_destroy(&work);
    return code;
}
