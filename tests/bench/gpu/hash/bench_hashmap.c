// SPDX-License-Identifier: Apache-2.0
/* Times hash maps: the table of rates with floors and peers, and set-ups 1 and 2 of
 * ASH; plot_hashmap.py draws the output of --csv. Times are medians, by CUDA events
 * around the call with caches flushed before, or by the wall clock on the CPU; scratch
 * is allocated from the pool inside the call. */
#include <stdlib.h>
#include <string.h>

#include "gpu/paper/paper.h"
#include "tests/bench/gpu/hash/bench_hashmap.h"

static const char *const section_names[] = {"table", "setup1", "setup2"};

struct sections {
    bool has[3];
};

const char *hash_index_name(enum vxd_hash_index index)
{
    return index == VXD_HASH_OPEN ? "open" : "slab";
}

/* Parses comma-separated numbers of at least 1; returns their count, 0 on anything
 * else. */
static int parse_list(const char *text, double most, double *out)
{
    int n = 0;

    for (;;) {
        char *end;
        double value = strtod(text, &end);

        if (end == text || !(value >= 1.0 && value <= most) || n == HASH_MAX_LIST) {
            return 0;
        }
        out[n++] = value;
        if (*end == '\0') {
            return n;
        }
        if (*end != ',') {
            return 0;
        }
        text = end + 1;
    }
}

static bool parse_int(const char *text, int most, int *out)
{
    double values[HASH_MAX_LIST];

    if (parse_list(text, most, values) != 1) {
        return false;
    }
    *out = (int)values[0];
    return true;
}

static bool parse_index(struct hash_options *options, const char *value)
{
    bool is_both = strcmp(value, "both") == 0;

    options->has_index[VXD_HASH_OPEN] = is_both || strcmp(value, "open") == 0;
    options->has_index[VXD_HASH_SLAB] = is_both || strcmp(value, "slab") == 0;
    if (options->has_index[VXD_HASH_SLAB] && vxd_paper_stores() == NULL) {
        (void)fprintf(stderr,
                      "--index %s: this build leaves slab maps out (VOXELD_PAPER=OFF)\n",
                      value);
        return false;
    }
    return options->has_index[0] || options->has_index[1];
}

static bool parse_section(struct sections *sections, const char *value)
{
    bool is_known = false;

    for (int i = 0; i < 3; i++) {
        sections->has[i] =
            strcmp(value, section_names[i]) == 0 || strcmp(value, "all") == 0;
        is_known = is_known || sections->has[i];
    }
    return is_known;
}

static bool parse_option(struct hash_options *options, struct sections *sections,
                         const char **csv_path, const char *name, const char *value)
{
    if (strcmp(name, "--backend") == 0) {
        options->backend =
            strcmp(value, "cuda") == 0 ? VXD_BACKEND_CUDA : VXD_BACKEND_CPU;
        return strcmp(value, "cuda") == 0 || strcmp(value, "cpu") == 0;
    }
    if (strcmp(name, "--threads") == 0) {
        return parse_int(value, 256, &options->n_threads);
    }
    if (strcmp(name, "--repeat") == 0) {
        return parse_int(value, HASH_MAX_REPEAT, &options->n_repeat);
    }
    if (strcmp(name, "--index") == 0) {
        return parse_index(options, value);
    }
    if (strcmp(name, "--part") == 0) {
        return parse_section(sections, value);
    }
    if (strcmp(name, "--keys") == 0) {
        options->n_n_keys = parse_list(value, 1e9, options->n_keys);
        return options->n_n_keys > 0;
    }
    if (strcmp(name, "--capacities") == 0) {
        options->n_capacities = parse_list(value, 1e9, options->capacities);
        return options->n_capacities > 0;
    }
    if (strcmp(name, "--csv") == 0) {
        *csv_path = value;
        return true;
    }
    return false;
}

static enum vxd_status run_sections(const struct hash_options *options,
                                    const struct sections *sections, struct vxd_err *err)
{
    enum vxd_status (*const runs[])(const struct hash_options *, struct vxd_err *) = {
        hash_table_run, hash_setup1_run, hash_setup2_run};
    enum vxd_status status = VXD_OK;

    for (int i = 0; i < 3 && status == VXD_OK; i++) {
        if (sections->has[i]) {
            status = runs[i](options, err);
            (void)printf("\n");
        }
    }
    return status;
}

int main(int argc, char **argv)
{
    struct hash_options options = {.n_repeat = 11,
                                   .has_index = {true, vxd_paper_stores() != NULL},
                                   .n_keys = {1e6, 1e7, 1e8},
                                   .n_n_keys = 3,
                                   .capacities = {1e3, 1e4, 1e5, 1e6, 1e7},
                                   .n_capacities = 5};
    struct sections sections = {{true, false, false}};
    const char *csv_path = NULL;
    struct vxd_err err = {0};
    enum vxd_status status;
    bool is_written = true;

    for (int i = 1; i < argc; i += 2) {
        if (i + 1 == argc ||
            !parse_option(&options, &sections, &csv_path, argv[i], argv[i + 1])) {
            (void)fprintf(stderr,
                          "usage: %s [--backend cpu|cuda] [--threads N] [--repeat N]\n"
                          "  [--index open|slab|both] [--part table|setup1|setup2|all]\n"
                          "  [--keys N,N] [--capacities N,N] [--csv FILE]\n",
                          argv[0]);
            return EXIT_FAILURE;
        }
    }
    if (csv_path != NULL) {
        options.csv = fopen(csv_path, "w");
        if (options.csv == NULL) {
            (void)fprintf(stderr, "%s: cannot be written\n", csv_path);
            return EXIT_FAILURE;
        }
        (void)fprintf(options.csv,
                      "setup,index,operation,capacity,value_bytes,uniqueness,ms\n");
    }
    status = run_sections(&options, &sections, &err);
    if (options.csv != NULL) {
        is_written = ferror(options.csv) == 0;
        is_written = fclose(options.csv) == 0 && is_written;
    }
    if (status != VXD_OK || !is_written) {
        (void)fprintf(stderr, "bench_hashmap: %s (%s)\n",
                      status != VXD_OK ? err.message : "the CSV file was cut",
                      status != VXD_OK ? err.field : "--csv");
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
