// SPDX-License-Identifier: Apache-2.0
/* Colours on terminals, and tables. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/voxelctl/cli/cli.h"

/* Whether escape sequences are fine there: NO_COLOR (no-color.org) and a dumb terminal say no. */
static bool is_coloured(FILE *stream)
{
    const char *none = getenv("NO_COLOR");
    const char *terminal = getenv("TERM");

    return (none == NULL || none[0] == '\0') && terminal != NULL &&
           strcmp(terminal, "dumb") != 0 && isatty(fileno(stream)) == 1;
}

const char *ctl_style(FILE *stream, enum ctl_style style)
{
    static const char *const sequences[] = {
        [CTL_PLAIN] = "\033[0m", [CTL_BOLD] = "\033[1m",   [CTL_DIM] = "\033[2m",
        [CTL_RED] = "\033[31m",  [CTL_GREEN] = "\033[32m", [CTL_YELLOW] = "\033[33m",
        [CTL_BLUE] = "\033[36m",
    };

    return is_coloured(stream) ? sequences[style] : "";
}

const char *ctl_bytes(uint64_t n, char *text)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    double value = (double)n;
    size_t unit = 0;

    while (value >= 999.5 && unit + 1 < sizeof units / sizeof units[0]) {
        value /= 1000;
        unit++;
    }
    (void)snprintf(text, CTL_NUMBER_BYTES,
                   unit > 0 && value < 99.95 ? "%.1f %s" : "%.0f %s", value, units[unit]);
    return text;
}

const char *ctl_duration(double seconds, char *text)
{
    if (seconds < 120) {
        (void)snprintf(text, CTL_NUMBER_BYTES, "%.0f s", seconds);
    } else if (seconds < 7200) {
        (void)snprintf(text, CTL_NUMBER_BYTES, "%.0f min", seconds / 60);
    } else if (seconds < 172800) {
        (void)snprintf(text, CTL_NUMBER_BYTES, "%.1f h", seconds / 3600);
    } else {
        (void)snprintf(text, CTL_NUMBER_BYTES, "%.1f days", seconds / 86400);
    }
    return text;
}

/* --- tables ------------------------------------------------------------------------------- */

enum {
    CELL_END = '\037' /* ASCII's unit separator */
};

static const char cell_end[] = {CELL_END, '\0'};

void ctl_table_begin(struct ctl_table *table, const char *headers)
{
    *table = (struct ctl_table){.n_columns = 1};
    for (const char *at = headers; *at != '\0'; at++) {
        table->n_columns += *at == '|';
    }
    table->text = open_memstream(&table->cells, &table->n_bytes);
    for (const char *at = headers; table->text != NULL && *at != '\0'; at++) {
        (void)fputc(*at == '|' ? CELL_END : *at, table->text);
    }
    if (table->text != NULL) {
        (void)fputc(CELL_END, table->text);
    }
}

void ctl_table_cell(struct ctl_table *table, const char *format, ...)
{
    va_list args;

    if (table->text == NULL) {
        return;
    }
    va_start(args, format);
    (void)vfprintf(table->text, format, args);
    va_end(args);
    (void)fputc(CELL_END, table->text);
}

/* Letters of UTF-8, each a column wide. */
static size_t width_of(const char *cell, size_t n)
{
    size_t width = 0;

    for (size_t i = 0; i < n; i++) {
        width += ((unsigned char)cell[i] & 0xc0) != 0x80;
    }
    return width;
}

/* A header that begins with ">" has its column's cells end below each other. */
static void print_cell(const char *cell, size_t n, size_t width, bool is_right,
                       bool is_last)
{
    size_t padding = width - width_of(cell, n);

    (void)printf("%*s%.*s%*s", is_right ? (int)padding : 0, "", (int)n, cell,
                 is_right || is_last ? 0 : (int)padding, "");
    (void)fputs(is_last ? "\n" : "  ", stdout);
}

static void print_rows(const struct ctl_table *table)
{
    size_t widths[CTL_TABLE_COLUMNS] = {0};
    bool is_right[CTL_TABLE_COLUMNS] = {false};
    size_t i = 0;

    for (const char *at = table->cells; *at != '\0'; i++) {
        size_t column = i % table->n_columns;
        size_t n = strcspn(at, cell_end);
        size_t width = width_of(at, n);

        if (i == column && *at == '>') {
            is_right[column] = true;
            width--;
        }
        widths[column] = width > widths[column] ? width : widths[column];
        at += n + (at[n] == CELL_END ? 1 : 0);
    }
    i = 0;
    (void)fputs(ctl_style(stdout, CTL_BOLD), stdout);
    for (const char *at = table->cells; *at != '\0'; i++) {
        size_t column = i % table->n_columns;
        size_t n = strcspn(at, cell_end);
        size_t skipped = i == column && is_right[column] ? 1 : 0;

        if (i == table->n_columns) {
            (void)fputs(ctl_style(stdout, CTL_PLAIN), stdout);
        }
        print_cell(at + skipped, n - skipped, widths[column], is_right[column],
                   column + 1 == table->n_columns);
        at += n + (at[n] == CELL_END ? 1 : 0);
    }
    if (i <= table->n_columns) {
        (void)fputs(ctl_style(stdout, CTL_PLAIN), stdout);
    }
}

void ctl_table_end(struct ctl_table *table)
{
    if (table->text == NULL || fclose(table->text) != 0) {
        (void)ctl_error("no memory for a table");
    } else {
        print_rows(table);
    }
    free(table->cells);
    *table = (struct ctl_table){0};
}
