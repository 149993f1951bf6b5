// SPDX-License-Identifier: Apache-2.0
/* The requests to the daemon, and one connection for them: libvoxeld for ipc and tcp,
 * a small client of our own for HTTP (bench_load_http.c). */
#ifndef VXD_TESTS_BENCH_LOAD_BENCH_LOAD_TARGET_H
#define VXD_TESTS_BENCH_LOAD_BENCH_LOAD_TARGET_H

#include "client/c/include/voxeld.h"
#include "tests/bench/load/bench_load_options.h"

/* Constant during a run and shared by all connections. Zeroed is empty. */
struct load_work {
    const struct load_options *options; /* borrowed */
    struct voxeld_cloud *read;          /* from --cloud, or NULL */
    float *made;                        /* random points, or NULL */
    struct voxeld_cloud cloud;          /* borrows from either */
    struct voxeld_voxelize_request request;
    struct voxeld_scene_integrate_request scan;
    /* For HTTP: the requests that send the cloud, as protobuf. */
    uint8_t *bodies[LOAD_N_METHODS];
    size_t n_body_bytes[LOAD_N_METHODS];
};

/* Reads or makes the cloud, and packs it for HTTP.
 * False after filling *error; *out is then empty. */
bool load_work_create(const struct load_options *options, struct load_work *out,
                      struct voxeld_error *error);
void load_work_destroy(struct load_work *work);

/* Where the time of a request went; those of the server as voxeld_timings has them. */
enum load_stage {
    LOAD_RECEIVE,
    LOAD_DECODE,
    LOAD_WAIT,
    LOAD_ENGINE,
    LOAD_COMMIT,
    LOAD_REST, /* in the server, beside these */
    LOAD_WAY,  /* to the server and back, and unpacking the reply */
    LOAD_N_STAGES
};

/* The outcome of one request. */
struct load_reply {
    /* Whether the server answered; false: the connection failed, or HTTP's time ran
     * out. libvoxeld does not say whose clock a DEADLINE_EXCEEDED is by: those count
     * as answered. */
    bool answered;
    uint64_t n_points;
    uint64_t n_voxels;
    double engine_ms;
    bool has_timings;
    struct voxeld_timings timings;
    struct voxeld_error error; /* code OK on success */
};

/* One connection, used by one thread at a time. */
struct load_target;

/* Connects. work stays borrowed. On failure *out is NULL. */
enum voxeld_status load_target_open(const struct load_work *work,
                                    struct load_target **out, struct voxeld_error *error);

/* Asks and waits, no longer than the options' timeout; reconnects where it must. */
void load_target_call(struct load_target *target, enum load_method method,
                      struct load_reply *reply);
void load_target_close(struct load_target *target);

/* bench_load_http.c has the same three functions over HTTP. */
struct load_http;
enum voxeld_status load_http_open(const struct load_work *work, struct load_http **out,
                                  struct voxeld_error *error);
void load_http_call(struct load_http *http, enum load_method method,
                    struct load_reply *reply);
void load_http_close(struct load_http *http);

/* Fills *error (not NULL) and returns code. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
enum voxeld_status
load_fail(struct voxeld_error *error, enum voxeld_status code, const char *format, ...);

#endif
