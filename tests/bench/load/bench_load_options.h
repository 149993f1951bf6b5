// SPDX-License-Identifier: Apache-2.0
/* The command line of bench_load. */
#ifndef VXD_TESTS_BENCH_LOAD_BENCH_LOAD_OPTIONS_H
#define VXD_TESTS_BENCH_LOAD_BENCH_LOAD_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum load_method {
    LOAD_VOXELIZE,
    LOAD_STATUS,
    LOAD_SERVER_INFO,
    LOAD_SCENE_INTEGRATE,
    LOAD_N_METHODS
};

enum {
    LOAD_MAX_STEPS = 64,
    LOAD_MAX_CONCURRENCY = 1024,
    LOAD_TOKEN_BYTES = 1024
};

struct load_options {
    const char *program; /* what the user called: bench_load, or voxelctl bench */
    const char *url;     /* NULL: libvoxeld's default socket */
    bool is_http;
    bool allow_remote;
    const char *token; /* NULL: none */
    char token_line[LOAD_TOKEN_BYTES];
    const char *ca_file;
    const char *cert_file;
    const char *key_file;
    uint32_t timeout_ms;
    uint32_t shared_mib;

    double rates[LOAD_MAX_STEPS]; /* requests a second; n_rates 0: closed loop */
    size_t n_rates;
    uint32_t concurrency[LOAD_MAX_STEPS]; /* most requests in flight, 1 or more values */
    size_t n_concurrency;
    bool poisson; /* arrivals as from many independent clients, not evenly spaced */
    double duration_s;
    double warmup_s;
    uint64_t count; /* requests measured a step, 0: as many as fit */

    uint32_t weights[LOAD_N_METHODS];
    uint32_t n_points;
    const char *cloud; /* a file in place of random points */
    const char *format;
    double size_m;
    const char *scene; /* of scene_integrate; NULL without it */
    bool check;
    bool stages;

    const char *csv;
    bool json;
};

/* The name of a method, "voxelize", "status", "server_info", "scene_integrate", as on
 * the wire and in HTTP. Static. */
const char *load_method_name(enum load_method method);

/* Whether the method sends the cloud, and its reply has times of the engine. */
static inline bool load_sends_cloud(enum load_method method)
{
    return method == LOAD_VOXELIZE || method == LOAD_SCENE_INTEGRATE;
}

/* Reads and checks the command line and the environment (VOXELD_URL, VOXELD_TOKEN).
 * Pointers go into argv, the environment and *out. False when the program is to end with
 * *result: help was printed, or standard error says what is wrong. */
bool load_options_parse(int argc, char **argv, struct load_options *out, int *result);

#endif
