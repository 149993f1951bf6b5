// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/c/include/voxeld_scene.h"
#include "server/method_table.h"
#include "server/registry/registry.h"
#include "server/registry/scenes/scenes.h"
#include "server/schedule/schedule.h"
#include "server/server.h"
#include "tests/bench/support/bench_device.h"
#include "tests/bench/server/bench_recovery.h"

enum {
    TIMEOUT_MS = 600000,
    A_SCAN = 50, /* every so many changes one */
    SIDE = 4096  /* voxels of the scene */
};

static double processor_s(void)
{
    struct timespec used = {0};

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec + 1e-9 * (double)used.tv_nsec;
}

enum vxd_status bench_server_open(struct bench_server *bench, struct vxd_err *err)
{
    struct vxd_server *server = calloc(1, sizeof *server);
    struct vxd_config *config = calloc(1, sizeof *config);
    double begin;
    double begin_cpu;
    enum vxd_status status;

    if (server == NULL || config == NULL) {
        free(server);
        status = vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a server");
        goto out;
    }
    vxd_config_default(config);
    (void)snprintf(config->backend, sizeof config->backend, "%s",
                   bench->options->backend);
    (void)snprintf(config->log_level, sizeof config->log_level, "error");
    config->n_threads = (uint32_t)bench->options->n_threads;
    config->scene_bytes = (uint64_t)16 << 30;
    config->n_rpc = 1;
    (void)snprintf(config->rpc[0], sizeof config->rpc[0], "ipc:///tmp/bench-recovery-%d",
                   (int)getpid());
    config->max_timeout_ms = TIMEOUT_MS;
    config->default_timeout_ms = TIMEOUT_MS;
    status = vxd_server_open(server, config, vxd_method_table(), err);
    if (status != VXD_OK) {
        free(server);
        goto out;
    }
    bench->server = server;
    atomic_store(&server->state, VXD_STATE_SERVING);
    VXD_TRY(vxd_data_dir_open(NULL, bench->options->directory, &bench->dir, err));
    begin = bench_now_s();
    begin_cpu = processor_s();
    VXD_TRY(vxd_registry_open_journal(server->registry, server->once, &bench->dir, err));
    bench->open_s = bench_now_s() - begin;
    bench->open_cpu_s = processor_s() - begin_cpu;
    VXD_TRY(vxd_rpc_start(server, &bench->rpc, err));
out:
    free(config);
    return status;
}

void bench_server_close(struct bench_server *bench)
{
    if (bench->server == NULL) {
        return;
    }
    (void)vxd_scheduler_drain(bench->server->scheduler, 60000);
    if (bench->rpc != NULL) {
        vxd_rpc_stop(bench->rpc);
    }
    bench->rpc = NULL;
    vxd_server_close(bench->server);
    free(bench->server);
    bench->server = NULL;
    vxd_data_dir_close(&bench->dir);
}

/* Clients ----------------------------------------------------------------------------------- */

static enum vxd_status fail(const struct voxeld_error *error, struct vxd_err *err)
{
    return vxd_fail(err, (enum vxd_status)error->code, NULL, "%s", error->message);
}

static enum vxd_status connect_client(const struct bench_server *bench, const char *name,
                                      struct voxeld_client **out, struct vxd_err *err)
{
    const struct voxeld_options options = {
        .url = bench->server->rpc_bound[0], .client_id = name, .timeout_ms = TIMEOUT_MS};
    struct voxeld_error error;

    return voxeld_connect(&options, out, &error) == VOXELD_OK ? VXD_OK
                                                              : fail(&error, err);
}

enum vxd_status bench_create_scene(struct bench_server *bench, int depth,
                                   struct vxd_err *err)
{
    const struct bench_options *options = bench->options;
    const struct voxeld_scene_create_request request = {
        .scene = "s",
        .voxel_size_m = 0.1,
        .depth = (uint32_t)depth,
        .material_bits = (uint32_t)options->bits,
        .track_free = depth == 12,
        .keep_versions = (uint32_t)options->n_kept,
        .durable = true,
        .fsync = strcmp(options->fsync, "OFF") == 0        ? VOXELD_FSYNC_OFF
                 : strcmp(options->fsync, "EVERYSEC") == 0 ? VOXELD_FSYNC_EVERYSEC
                                                           : VOXELD_FSYNC_ALWAYS};
    struct voxeld_client *client = NULL;
    struct voxeld_error error;
    enum vxd_status status;

    VXD_TRY(connect_client(bench, "bench", &client, err));
    if (voxeld_scene_create(client, &request, NULL, &error) != VOXELD_OK) {
        status = fail(&error, err);
    }
out:
    voxeld_close(client);
    return status;
}

struct clients {
    struct bench_server *bench;
    struct voxeld_cloud *scan; /* NULL: brushes alone */
    atomic_int next;
    atomic_int n_scans;
    pthread_mutex_t mutex;
    struct vxd_err err; /* the first that failed; the mutex guards it */
};

struct client {
    struct clients *all;
    struct voxeld_client *connection;
    pthread_t thread;
};

/* The i-th change: brushes of 3 to 24 voxels about a place that moves on. */
static struct voxeld_scene_operation describe(int i, int bits)
{
    static const enum voxeld_scene_action actions[] = {
        VOXELD_SCENE_FILL, VOXELD_SCENE_FILL, VOXELD_SCENE_FILL, VOXELD_SCENE_ERASE,
        VOXELD_SCENE_PAINT};
    struct voxeld_scene_operation op = {.action = actions[i % 5],
                                        .material = bits == 0 ? 0 : (uint32_t)(i % 15)};
    uint32_t random = (uint32_t)i * 2654435761u;
    int r = 3 + (int)(random >> 24) % 22;
    double at[3];

    for (int axis = 0; axis < 3; axis++) {
        random = random * 1664525u + 1013904223u;
        at[axis] = SIDE / 2 - 256 + (int)(random >> 16) % 512;
    }
    if (i % 4 == 0) {
        op.shape = VOXELD_SHAPE_BOX;
        op.in.box = (struct voxeld_scene_box){
            .low = {at[0], at[1], at[2]}, .high = {at[0] + 2 * r, at[1] + r, at[2] + r}};
    } else if (i % 4 == 1) {
        op.shape = VOXELD_SHAPE_CAPSULE;
        op.in.capsule =
            (struct voxeld_scene_capsule){.a = {at[0], at[1], at[2]},
                                          .b = {at[0] + 40, at[1] + 10, at[2]},
                                          .radius = 1 + r / 4};
    } else {
        op.shape = VOXELD_SHAPE_BALL;
        op.in.ball = (struct voxeld_scene_ball){.centre = {at[0], at[1], at[2]},
                                                .radius = r,
                                                .noise = i % 4 == 2 ? 0 : r / 4,
                                                .noise_cell_bits = 2};
    }
    return op;
}

static enum vxd_status change(struct client *client, int i, struct vxd_err *err)
{
    struct clients *all = client->all;
    const struct voxeld_scene_operation op = describe(i, all->bench->options->bits);
    const struct voxeld_scene_edit_request edit = {
        .scene = "s", .operations = &op, .n_operations = 1, .in_voxels = true};
    const struct voxeld_scene_integrate_request integrate = {
        .scene = "s", .cloud = all->scan, .carve = true, .max_range_m = 40};
    struct voxeld_error error;
    enum voxeld_status status;

    if (all->scan != NULL && i % A_SCAN == A_SCAN - 1) {
        atomic_fetch_add(&all->n_scans, 1);
        status = voxeld_scene_integrate(client->connection, &integrate, NULL, &error);
    } else {
        status = voxeld_scene_edit(client->connection, &edit, NULL, &error);
    }
    return status == VOXELD_OK ? VXD_OK : fail(&error, err);
}

static void *run_client(void *args)
{
    struct client *client = args;
    struct clients *all = client->all;
    struct vxd_err err = {0};
    int i;

    while ((i = atomic_fetch_add(&all->next, 1)) < all->bench->options->n_edits) {
        if (change(client, i, &err) != VXD_OK) {
            (void)pthread_mutex_lock(&all->mutex);
            all->err = all->err.code == VXD_OK ? err : all->err;
            (void)pthread_mutex_unlock(&all->mutex);
            break;
        }
    }
    return NULL;
}

static enum vxd_status connect_all(struct clients *all, struct client *clients, int n,
                                   struct vxd_err *err)
{
    char name[24];
    enum vxd_status status = VXD_OK;

    for (int i = 0; i < n; i++) {
        (void)snprintf(name, sizeof name, "client-%d", i);
        clients[i].all = all;
        VXD_TRY(connect_client(all->bench, name, &clients[i].connection, err));
    }
out:
    return status;
}

enum vxd_status bench_run_clients(struct bench_server *bench, struct bench_run *out,
                                  struct vxd_err *err)
{
    struct clients all = {.bench = bench, .mutex = PTHREAD_MUTEX_INITIALIZER};
    struct client clients[BENCH_MAX_CLIENTS] = {0};
    struct voxeld_error error;
    int n = bench->options->n_clients;
    enum vxd_status status = VXD_OK;

    if (bench->options->scan != NULL &&
        voxeld_cloud_read_file(bench->options->scan, "kitti", &all.scan, &error) !=
            VOXELD_OK) {
        status = fail(&error, err);
        goto out;
    }
    VXD_TRY(connect_all(&all, clients, n, err));
    out->seconds = bench_now_s();
    out->cpu_s = processor_s();
    for (int i = 0; i < n; i++) {
        if (pthread_create(&clients[i].thread, NULL, run_client, &clients[i]) != 0) {
            n = i;
            all.err.code = VXD_RESOURCE_EXHAUSTED;
        }
    }
    for (int i = 0; i < n; i++) {
        (void)pthread_join(clients[i].thread, NULL);
    }
    out->seconds = bench_now_s() - out->seconds;
    out->cpu_s = processor_s() - out->cpu_s;
    out->n_scans = atomic_load(&all.n_scans);
    *err = all.err;
    status = all.err.code;
out:
    for (int i = 0; i < bench->options->n_clients; i++) {
        voxeld_close(clients[i].connection);
    }
    voxeld_cloud_free(all.scan);
    return status;
}
