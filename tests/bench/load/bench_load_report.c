// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/load/bench_load_report.h"

#include <inttypes.h>

#include "client/voxelctl/cli/cli.h"

enum {
    LOAD_TEXT_BYTES = 48,
    N_SERIES = 4,
    N_PERCENTILES = 4
};

static const char *const series_names[N_SERIES] = {"latency", "engine", "overhead",
                                                   "rejected"};
static const char *const stage_names[LOAD_N_STAGES] = {
    "receive", "decode", "wait", "engine", "commit", "rest", "way"};
static const struct {
    const char *name;
    double share;
} percentiles[N_PERCENTILES] = {
    {"p50", 0.50}, {"p95", 0.95}, {"p99", 0.99}, {"p999", 0.999}};

static const struct load_histogram *series_of(const struct load_stats *stats, size_t i)
{
    const struct load_histogram *const all[N_SERIES] = {
        &stats->latency, &stats->engine, &stats->overhead, &stats->rejected};

    return all[i];
}

static const char *row_name(size_t row)
{
    return row == LOAD_ALL ? "all" : load_method_name((enum load_method)row);
}

/* A method that was asked, or the sum of several. */
static bool has_row(const struct load_work *work, size_t row)
{
    size_t n = 0;

    if (row < LOAD_N_METHODS) {
        return work->options->weights[row] > 0;
    }
    for (size_t i = 0; i < LOAD_N_METHODS; i++) {
        n += work->options->weights[i] > 0 ? 1 : 0;
    }
    return n > 1;
}

static double per_second(uint64_t n, const struct load_result *result)
{
    return result->seconds > 0 ? (double)n / result->seconds : 0;
}

/* The table ---------------------------------------------------------------------------- */

void load_report_heading(FILE *stream, const struct load_work *work)
{
    const struct load_options *options = work->options;

    (void)fprintf(
        stream, "%s, %zu points, %.1f MB a voxelize request, voxels of %g m\n",
        options->url != NULL ? options->url : "the default socket", work->cloud.n_points,
        1e-6 * (double)(work->cloud.n_points * work->cloud.point_step), options->size_m);
    (void)fprintf(stream,
                  "milliseconds%38s|%36s latency |  engine|  overhead\n"
                  "%-14s %-11s %8s %7s %6s | %7s %8s %8s %8s %8s |%7s |%7s %8s\n",
                  "", "", "load", "method", "ok/s", "ok", "failed", "p50", "p95", "p99",
                  "p99.9", "max", "p50", "p50", "p99");
}

static void print_row(FILE *stream, const char *load, const char *method,
                      const struct load_result *result, const struct load_stats *stats)
{
    (void)fprintf(stream, "%-14s %-11s %8.1f %7" PRIu64 " %6" PRIu64 " |", load, method,
                  per_second(stats->n_ok, result), (uint64_t)stats->n_ok,
                  (uint64_t)stats->n_failed);
    for (size_t i = 0; i < N_PERCENTILES; i++) {
        (void)fprintf(
            stream, " %*.2f", i == 0 ? 7 : 8,
            load_histogram_percentile_ms(&stats->latency, percentiles[i].share));
    }
    (void)fprintf(stream, " %8.2f |", load_histogram_max_ms(&stats->latency));
    if (atomic_load(&stats->engine.n) == 0) {
        (void)fprintf(stream, "%7s |%7s %8s\n", "-", "-", "-");
        return;
    }
    (void)fprintf(stream, "%7.2f |%7.2f %8.2f\n",
                  load_histogram_percentile_ms(&stats->engine, 0.5),
                  load_histogram_percentile_ms(&stats->overhead, 0.5),
                  load_histogram_percentile_ms(&stats->overhead, 0.99));
}

static void print_stages(FILE *stream, const struct load_stats *stats)
{
    if (atomic_load(&stats->stages[LOAD_WAY].n) == 0) {
        (void)fputs("    the server does not say where the time went\n", stream);
        return;
    }
    for (size_t i = 0; i < LOAD_N_STAGES; i++) {
        (void)fprintf(stream, "    %-8s p50 %8.3f  p99 %8.3f  max %8.3f\n",
                      stage_names[i],
                      load_histogram_percentile_ms(&stats->stages[i], 0.5),
                      load_histogram_percentile_ms(&stats->stages[i], 0.99),
                      load_histogram_max_ms(&stats->stages[i]));
    }
}

static void print_errors(FILE *stream, const struct load_result *result)
{
    const struct load_stats *all = &result->stats[LOAD_ALL];
    uint64_t n_late = result->n_late;

    for (size_t i = VOXELD_CANCELLED; i < LOAD_N_CODES; i++) {
        if (all->codes[i] > 0) {
            (void)fprintf(stream, "    %" PRIu64 " %s: %s\n", (uint64_t)all->codes[i],
                          voxeld_status_name((enum voxeld_status)i), result->messages[i]);
        }
    }
    if (all->n_wrong > 0) {
        (void)fprintf(stream, "    %" PRIu64 " WRONG: %s\n", (uint64_t)all->n_wrong,
                      result->messages[VOXELD_OK]);
    }
    if (all->n_unanswered > 0) {
        (void)fprintf(stream, "    %" PRIu64 " of the failed had no answer at all\n",
                      (uint64_t)all->n_unanswered);
    }
    if (atomic_load(&all->rejected.n) > 0) {
        (void)fprintf(stream, "    rejected after p50 %.2f, p99 %.2f, max %.2f ms\n",
                      load_histogram_percentile_ms(&all->rejected, 0.5),
                      load_histogram_percentile_ms(&all->rejected, 0.99),
                      load_histogram_max_ms(&all->rejected));
    }
    if (n_late > 0) {
        (void)fprintf(stream,
                      "    %" PRIu64 " were sent more than 1 ms after their time\n",
                      n_late);
    }
    if (result->n_unsent > 0) {
        (void)fprintf(stream,
                      "    %" PRIu64 " were due but never sent, as %u were in flight: "
                      "the true latencies are longer\n",
                      result->n_unsent, result->step.concurrency);
    }
}

void load_report_step(FILE *stream, const struct load_work *work,
                      const struct load_result *result)
{
    char load[LOAD_TEXT_BYTES];

    if (result->step.rate > 0) {
        (void)snprintf(load, sizeof load, "%g/s", result->step.rate);
    } else {
        (void)snprintf(load, sizeof load, "%u client%s", result->step.concurrency,
                       result->step.concurrency == 1 ? "" : "s");
    }
    for (size_t row = 0; row <= LOAD_ALL; row++) {
        if (has_row(work, row)) {
            print_row(stream, load, row_name(row), result, &result->stats[row]);
            if (work->options->stages) {
                print_stages(stream, &result->stats[row]);
            }
        }
    }
    print_errors(stream, result);
    (void)fflush(stream);
}

/* CSV ---------------------------------------------------------------------------------- */

void load_report_csv_heading(FILE *stream)
{
    (void)fputs("step,loop,concurrency,rate,method,seconds,ok,failed,wrong,unanswered,"
                "unsent,late,ok_per_s,errors",
                stream);
    for (size_t i = 0; i < N_SERIES; i++) {
        for (size_t k = 0; k < N_PERCENTILES; k++) {
            (void)fprintf(stream, ",%s_%s_ms", series_names[i], percentiles[k].name);
        }
        (void)fprintf(stream, ",%s_max_ms,%s_mean_ms", series_names[i], series_names[i]);
    }
    (void)fputc('\n', stream);
}

static void csv_row(FILE *stream, size_t step_no, size_t row,
                    const struct load_result *result)
{
    const struct load_stats *stats = &result->stats[row];
    const char *separator = "";

    (void)fprintf(stream,
                  "%zu,%s,%u,%g,%s,%.6f,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
                  ",%" PRIu64 ",%" PRIu64 ",%.3f,",
                  step_no, result->step.rate > 0 ? "open" : "closed",
                  result->step.concurrency, result->step.rate, row_name(row),
                  result->seconds, (uint64_t)stats->n_ok, (uint64_t)stats->n_failed,
                  (uint64_t)stats->n_wrong, (uint64_t)stats->n_unanswered,
                  result->n_unsent, (uint64_t)result->n_late,
                  per_second(stats->n_ok, result));
    for (size_t i = VOXELD_CANCELLED; i < LOAD_N_CODES; i++) {
        if (stats->codes[i] > 0) {
            (void)fprintf(stream, "%s%s=%" PRIu64, separator,
                          voxeld_status_name((enum voxeld_status)i),
                          (uint64_t)stats->codes[i]);
            separator = ";";
        }
    }
    for (size_t i = 0; i < N_SERIES; i++) {
        const struct load_histogram *series = series_of(stats, i);

        for (size_t k = 0; k < N_PERCENTILES; k++) {
            (void)fprintf(stream, ",%.6f",
                          load_histogram_percentile_ms(series, percentiles[k].share));
        }
        (void)fprintf(stream, ",%.6f,%.6f", load_histogram_max_ms(series),
                      load_histogram_mean_ms(series));
    }
    (void)fputc('\n', stream);
}

void load_report_csv_step(FILE *stream, const struct load_work *work, size_t step_no,
                          const struct load_result *result)
{
    for (size_t row = 0; row <= LOAD_ALL; row++) {
        if (has_row(work, row)) {
            csv_row(stream, step_no, row, result);
        }
    }
    (void)fflush(stream);
}

/* JSON --------------------------------------------------------------------------------- */

void load_report_json_begin(FILE *stream, const struct load_work *work)
{
    const struct load_options *options = work->options;

    (void)fputc('{', stream);
    ctl_json_member_string(stream, true, "url", options->url != NULL ? options->url : "");
    ctl_json_member_count(stream, false, "n_points", work->cloud.n_points);
    ctl_json_member_count(stream, false, "point_step", work->cloud.point_step);
    ctl_json_member_number(stream, false, "size_m", options->size_m);
    ctl_json_member_number(stream, false, "warmup_s", options->warmup_s);
    (void)fputs(", \"steps\": [", stream);
}

static void json_series(FILE *stream, const struct load_histogram *series)
{
    (void)fputc('{', stream);
    ctl_json_member_count(stream, true, "n", series->n);
    for (size_t k = 0; k < N_PERCENTILES; k++) {
        ctl_json_member_number(
            stream, false, percentiles[k].name,
            load_histogram_percentile_ms(series, percentiles[k].share));
    }
    ctl_json_member_number(stream, false, "max", load_histogram_max_ms(series));
    ctl_json_member_number(stream, false, "mean", load_histogram_mean_ms(series));
    (void)fputc('}', stream);
}

static void json_stats(FILE *stream, const struct load_result *result, size_t row)
{
    const struct load_stats *stats = &result->stats[row];
    bool first = true;

    (void)fputc('{', stream);
    ctl_json_member_string(stream, true, "method", row_name(row));
    ctl_json_member_count(stream, false, "count", stats->n_ok + stats->n_failed);
    ctl_json_member_count(stream, false, "ok", stats->n_ok);
    ctl_json_member_count(stream, false, "failed", stats->n_failed);
    ctl_json_member_count(stream, false, "wrong", stats->n_wrong);
    ctl_json_member_count(stream, false, "unanswered", stats->n_unanswered);
    ctl_json_member_number(stream, false, "ok_per_s", per_second(stats->n_ok, result));
    (void)fputs(", \"errors\": {", stream);
    for (size_t i = VOXELD_CANCELLED; i < LOAD_N_CODES; i++) {
        if (stats->codes[i] > 0) {
            ctl_json_member_count(stream, first,
                                  voxeld_status_name((enum voxeld_status)i),
                                  stats->codes[i]);
            first = false;
        }
    }
    (void)fputc('}', stream);
    for (size_t i = 0; i < N_SERIES; i++) {
        (void)fprintf(stream, ", \"%s_ms\": ", series_names[i]);
        json_series(stream, series_of(stats, i));
    }
    if (atomic_load(&stats->stages[LOAD_WAY].n) > 0) {
        (void)fputs(", \"stages\": {", stream);
        for (size_t i = 0; i < LOAD_N_STAGES; i++) {
            (void)fprintf(stream, "%s\"%s_ms\": ", i == 0 ? "" : ", ", stage_names[i]);
            json_series(stream, &stats->stages[i]);
        }
        (void)fputc('}', stream);
    }
    (void)fputc('}', stream);
}

void load_report_json_step(FILE *stream, const struct load_work *work, size_t step_no,
                           const struct load_result *result)
{
    bool first = true;

    (void)fputs(step_no == 0 ? "\n{" : ",\n{", stream);
    ctl_json_member_string(stream, true, "loop",
                           result->step.rate > 0 ? "open" : "closed");
    ctl_json_member_count(stream, false, "concurrency", result->step.concurrency);
    ctl_json_member_number(stream, false, "rate", result->step.rate);
    ctl_json_member_number(stream, false, "seconds", result->seconds);
    ctl_json_member_count(stream, false, "unsent", result->n_unsent);
    ctl_json_member_count(stream, false, "late", result->n_late);
    (void)fprintf(stream, ", \"interrupted\": %s, \"methods\": [",
                  result->interrupted ? "true" : "false");
    for (size_t row = 0; row <= LOAD_ALL; row++) {
        if (has_row(work, row)) {
            (void)fputs(first ? "" : ", ", stream);
            json_stats(stream, result, row);
            first = false;
        }
    }
    (void)fputs("]}", stream);
}

void load_report_json_end(FILE *stream)
{
    (void)fputs("\n]}\n", stream);
}
