// SPDX-License-Identifier: Apache-2.0
/* Prints the results of bench_load for people, for spreadsheets (and plot_load.py),
 * and for programs. */
#ifndef VXD_TESTS_BENCH_LOAD_BENCH_LOAD_REPORT_H
#define VXD_TESTS_BENCH_LOAD_BENCH_LOAD_REPORT_H

#include <stdio.h>

#include "tests/bench/load/bench_load_run.h"

/* Print the table: a heading, then lines for each step as it is done. --json does not
 * print it. The caller checks the stream for errors (ferror). */
void load_report_heading(FILE *stream, const struct load_work *work);
void load_report_step(FILE *stream, const struct load_work *work,
                      const struct load_result *result);

/* Print a header line, then a line for each method of a step (and "all" of a mix). */
void load_report_csv_heading(FILE *stream);
void load_report_csv_step(FILE *stream, const struct load_work *work, size_t step_no,
                          const struct load_result *result);

/* Print {"url", ..., "steps": [step, step]} in parts; step_no counts from 0. */
void load_report_json_begin(FILE *stream, const struct load_work *work);
void load_report_json_step(FILE *stream, const struct load_work *work, size_t step_no,
                           const struct load_result *result);
void load_report_json_end(FILE *stream);

#endif
