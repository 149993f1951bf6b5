// SPDX-License-Identifier: Apache-2.0
/* The server under bench_recovery, and the clients that change its scene. */
#ifndef VXD_TESTS_BENCH_SERVER_BENCH_RECOVERY_H
#define VXD_TESTS_BENCH_SERVER_BENCH_RECOVERY_H

#include "server/durable/data_dir/data_dir.h"
#include "server/instance/instance.h"
#include "server/transport/nng/nng.h"

enum {
    BENCH_MAX_CLIENTS = 64
};

struct bench_options {
    const char *backend;   /* cpu, or cuda */
    const char *directory; /* of the data; made where it is missing, and never removed */
    const char *fsync;
    const char *scan; /* a KITTI scan; NULL = brushes alone */
    int n_threads;    /* of the engine's pool */
    uint64_t n_bytes; /* of the snapshot's words */
    int bits;         /* of materials */
    int n_edits;
    int n_clients;
    int n_repeat; /* starts */
    int n_kept;   /* versions; 0 = as many as where nobody says */
};

struct bench_server {
    const struct bench_options *options;
    struct vxd_data_dir dir;
    struct vxd_server *server;
    struct vxd_rpc *rpc; /* a socket in /tmp */
    double open_s;       /* that opening the journal took: all scenes are back then */
    double open_cpu_s;   /* processor time of all threads in it */
};

/* Starts a server on the directory. After a failure too it is to be closed. */
enum vxd_status bench_server_open(struct bench_server *bench, struct vxd_err *err);
/* Ends it in order. One that is not open is fine. */
void bench_server_close(struct bench_server *bench);

/* Makes the durable scene "s".
 * errors  ALREADY_EXISTS  the directory is not a new one */
enum vxd_status bench_create_scene(struct bench_server *bench, int depth,
                                   struct vxd_err *err);

struct bench_run {
    double seconds; /* from the first request to the last answer */
    double cpu_s;   /* processor time of all threads in it, the clients' too */
    int n_scans;
};

/* Clients of libvoxeld, each with a connection of its own, that send their next change when the
 * last one was answered, options->n_edits in all. */
enum vxd_status bench_run_clients(struct bench_server *bench, struct bench_run *out,
                                  struct vxd_err *err);

#endif
