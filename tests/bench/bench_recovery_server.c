// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/method.h"
#include "server/request.h"
#include "server/scenes_journal.h"
#include "tests/bench/bench_device.h"
#include "tests/bench/bench_recovery.h"

enum {
    JSON_BYTES = 600,
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
    (void)snprintf(config->backend, sizeof config->backend, "cpu");
    (void)snprintf(config->log_level, sizeof config->log_level, "error");
    config->n_threads = (uint32_t)bench->options->n_threads;
    config->scene_bytes = (uint64_t)16 << 30;
    config->max_timeout_ms = 600000;
    config->default_timeout_ms = 600000;
    status = vxd_server_open(server, config, err);
    if (status != VXD_OK) {
        free(server);
        goto out;
    }
    bench->server = server;
    atomic_store(&server->state, VXD_STATE_SERVING);
    VXD_TRY(vxd_data_dir_open(NULL, bench->options->directory, &bench->dir, err));
    begin = bench_now_s();
    begin_cpu = processor_s();
    VXD_TRY(vxd_scenes_open_journal(server->scenes, server->once, &bench->dir, err));
    bench->open_s = bench_now_s() - begin;
    bench->open_cpu_s = processor_s() - begin_cpu;
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
    vxd_server_close(bench->server);
    free(bench->server);
    bench->server = NULL;
    vxd_data_dir_close(&bench->dir);
}

/* One request ------------------------------------------------------------------------------- */

struct call {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool is_over;
    struct vxd_err err;
};

static void on_reply(struct vxd_request *request, const struct vxd_err *err,
                     const ProtobufCMessage *output)
{
    struct call *call = request->transport;

    (void)output;
    call->err = *err;
}

static void on_discard(struct vxd_request *request)
{
    struct call *call = request->transport;

    (void)pthread_mutex_lock(&call->mutex);
    call->is_over = true;
    (void)pthread_cond_signal(&call->changed);
    (void)pthread_mutex_unlock(&call->mutex);
}

static enum vxd_status ask(struct bench_server *bench, const char *method,
                           const char *client, uint64_t sequence,
                           const struct vxd_body *body, struct vxd_err *err)
{
    const struct vxd_request_header header = {
        .peer = "bench", .peer_uid = -1, .client_id = client, .sequence = sequence};
    const struct vxd_method *found = vxd_method_by_name(method);
    struct call call = {.mutex = PTHREAD_MUTEX_INITIALIZER,
                        .changed = PTHREAD_COND_INITIALIZER};
    struct vxd_request *request = NULL;
    struct vxd_err refused = {0};
    enum vxd_status status =
        vxd_request_create(bench->server, &header, &request, &refused);

    if (request == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a request");
    }
    request->reply_fn = on_reply;
    request->discard_fn = on_discard;
    request->transport = &call;
    if (status == VXD_OK) {
        status = vxd_request_admit(request, found, body->n_bytes, &refused);
    }
    if (status == VXD_OK) {
        vxd_request_submit(request, body);
    } else {
        vxd_request_fail(request, &refused);
    }
    (void)pthread_mutex_lock(&call.mutex);
    while (!call.is_over) {
        (void)pthread_cond_wait(&call.changed, &call.mutex);
    }
    (void)pthread_mutex_unlock(&call.mutex);
    *err = call.err;
    return call.err.code;
}

static enum vxd_status ask_json(struct bench_server *bench, const char *method,
                                const char *client, uint64_t sequence, const char *json,
                                struct vxd_err *err)
{
    const struct vxd_body body = {
        .kind = VXD_BODY_JSON, .bytes = (const uint8_t *)json, .n_bytes = strlen(json)};

    return ask(bench, method, client, sequence, &body, err);
}

enum vxd_status bench_create_scene(struct bench_server *bench, int depth,
                                   struct vxd_err *err)
{
    char json[JSON_BYTES];

    (void)snprintf(json, sizeof json,
                   "{\"name\":\"s\",\"spec\":{\"voxel_size_m\":0.1,\"depth\":%d,"
                   "\"material_bits\":%d,\"track_free\":%s},\"max_bytes\":\"0\","
                   "\"retention\":{\"versions\":%d},"
                   "\"durability\":{\"fsync\":\"SCENE_FSYNC_%s\"}}",
                   depth, bench->options->bits, depth == 12 ? "true" : "false",
                   bench->options->n_kept, bench->options->fsync);
    return ask_json(bench, "scene_create", "bench", 1, json, err);
}

/* Clients ----------------------------------------------------------------------------------- */

struct clients {
    struct bench_server *bench;
    uint8_t *scan;
    size_t n_scan_bytes;
    atomic_int next;
    atomic_int n_scans;
    pthread_mutex_t mutex;
    struct vxd_err err; /* the first that failed; the mutex guards it */
};

struct client {
    struct clients *all;
    int number;
    pthread_t thread;
};

/* The i-th change: brushes of 3 to 24 voxels about a place that moves on. */
static void describe(int i, int bits, char json[JSON_BYTES])
{
    static const char *const actions[] = {"FILL", "FILL", "FILL", "ERASE", "PAINT"};
    uint32_t random = (uint32_t)i * 2654435761u;
    int at[3];
    int r = 3 + (int)(random >> 24) % 22;
    char shape[JSON_BYTES / 2];

    for (int axis = 0; axis < 3; axis++) {
        random = random * 1664525u + 1013904223u;
        at[axis] = SIDE / 2 - 256 + (int)(random >> 16) % 512;
    }
    if (i % 4 == 0) {
        (void)snprintf(shape, sizeof shape,
                       "\"box\":{\"low\":{\"x\":%d,\"y\":%d,\"z\":%d},\"high\":{\"x\":%d,"
                       "\"y\":%d,\"z\":%d}}",
                       at[0], at[1], at[2], at[0] + 2 * r, at[1] + r, at[2] + r);
    } else if (i % 4 == 1) {
        (void)snprintf(shape, sizeof shape,
                       "\"capsule\":{\"a\":{\"x\":%d,\"y\":%d,\"z\":%d},\"b\":{\"x\":%d,"
                       "\"y\":%d,\"z\":%d},\"radius\":%d}",
                       at[0], at[1], at[2], at[0] + 40, at[1] + 10, at[2], 1 + r / 4);
    } else {
        (void)snprintf(shape, sizeof shape,
                       "\"ball\":{\"centre\":{\"x\":%d,\"y\":%d,\"z\":%d},\"radius\":%d,"
                       "\"noise\":%d,\"noise_cell_bits\":2}",
                       at[0], at[1], at[2], r, i % 4 == 2 ? 0 : r / 4);
    }
    (void)snprintf(json, JSON_BYTES,
                   "{\"name\":\"s\",\"in_voxels\":true,\"operations\":[{%s,\"action\":"
                   "\"SCENE_%s\",\"material\":%d}]}",
                   shape, actions[i % 5], bits == 0 ? 0 : i % 15);
}

static enum vxd_status change(struct client *client, int i, uint64_t sequence,
                              struct vxd_err *err)
{
    const struct vxd_query_item query[] = {{.key = "name", .value = "s"},
                                           {.key = "max_range", .value = "40"}};
    struct clients *all = client->all;
    const struct vxd_body scan = {.kind = VXD_BODY_FILE,
                                  .bytes = all->scan,
                                  .n_bytes = all->n_scan_bytes,
                                  .format = "kitti",
                                  .query = query,
                                  .n_query = 2};
    char name[24];
    char json[JSON_BYTES];

    (void)snprintf(name, sizeof name, "client-%d", client->number);
    if (all->scan != NULL && i % A_SCAN == A_SCAN - 1) {
        atomic_fetch_add(&all->n_scans, 1);
        return ask(all->bench, "scene_integrate", name, sequence, &scan, err);
    }
    describe(i, all->bench->options->bits, json);
    return ask_json(all->bench, "scene_edit", name, sequence, json, err);
}

static void *run_client(void *args)
{
    struct client *client = args;
    struct clients *all = client->all;
    struct vxd_err err = {0};
    uint64_t sequence = 1;
    int i;

    while ((i = atomic_fetch_add(&all->next, 1)) < all->bench->options->n_edits) {
        if (change(client, i, sequence++, &err) != VXD_OK) {
            (void)pthread_mutex_lock(&all->mutex);
            all->err = all->err.code == VXD_OK ? err : all->err;
            (void)pthread_mutex_unlock(&all->mutex);
            break;
        }
    }
    return NULL;
}

static bool read_scan(const char *path, struct clients *all)
{
    FILE *file = fopen(path, "rb");
    long n = -1;

    if (file != NULL && fseek(file, 0, SEEK_END) == 0) {
        n = ftell(file);
    }
    all->scan = n > 0 ? malloc((size_t)n) : NULL;
    if (all->scan != NULL) {
        rewind(file);
        all->n_scan_bytes = fread(all->scan, 1, (size_t)n, file);
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return n > 0 && all->n_scan_bytes == (size_t)n;
}

enum vxd_status bench_run_clients(struct bench_server *bench, struct bench_run *out,
                                  struct vxd_err *err)
{
    struct clients all = {.bench = bench, .mutex = PTHREAD_MUTEX_INITIALIZER};
    struct client clients[BENCH_MAX_CLIENTS];
    int n = bench->options->n_clients;
    enum vxd_status status = VXD_OK;

    if (bench->options->scan != NULL && !read_scan(bench->options->scan, &all)) {
        status =
            vxd_fail(err, VXD_NOT_FOUND, NULL, "%s cannot be read", bench->options->scan);
        goto out;
    }
    out->seconds = bench_now_s();
    out->cpu_s = processor_s();
    for (int i = 0; i < n; i++) {
        clients[i] = (struct client){.all = &all, .number = i};
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
    free(all.scan);
    return status;
}
