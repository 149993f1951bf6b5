// SPDX-License-Identifier: Apache-2.0
#include "tests/support/client/peer.h"

#include <nng/protocol/reqrep0/rep.h>
#include <nng/supplemental/util/platform.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/base.h"
#include "proto/wire/wire.h"

enum {
    MAX_POINTS = 65536,
    SEND_MS = 10000,
    CLOSE_MS = 1000
};

/* Static memory for one answer a thread. */
struct answer {
    Voxeld__V1__Response response;
    Voxeld__V1__ResponseHeader header;
    Voxeld__V1__VoxelizeResponse voxelize;
    Voxeld__V1__VoxelizeItem item;
    Voxeld__V1__VoxelizeItem *items[1];
    Voxeld__V1__Tensor coords;
    Voxeld__V1__Tensor counts;
    Voxeld__V1__Tensor inverse;
    Voxeld__V1__Tensor mean;
    int64_t shape_coords[2];
    int64_t shape_rows[1];
    int64_t shape_points[1];
    int64_t shape_mean[2];
    char *features[3];
    int32_t grid[2];
    Voxeld__V1__VoxelizeMerged merged;
    Voxeld__V1__ServerInfoResponse info;
    Voxeld__V1__StatusResponse status;
    Voxeld__V1__MethodStatus method;
    Voxeld__V1__MethodStatus *methods[1];
    Voxeld__V1__SlowRequest slow;
    Voxeld__V1__SlowRequest *slows[1];
    Voxeld__V1__SelfTestResponse self_test;
    Voxeld__V1__SetLogLevelResponse log_level;
    Voxeld__V1__BackupResponse backup;
};

static void tensor(Voxeld__V1__Tensor *t, Voxeld__V1__DType dtype, int64_t *shape,
                   size_t n_axes, void *data, size_t n_bytes)
{
    voxeld__v1__tensor__init(t);
    t->dtype = dtype;
    t->shape = shape;
    t->n_shape = n_axes;
    t->data.data = data;
    t->data.len = n_bytes;
}

static void spoil(struct answer *a, enum peer_flaw flaw, int32_t *inverse)
{
    switch (flaw) {
    case FLAW_COORDS_MISSING:
        a->voxelize.coords = NULL;
        break;
    case FLAW_COORDS_SHORT:
        a->coords.data.len -= 1;
        break;
    case FLAW_COORDS_DTYPE:
        a->coords.dtype = VOXELD__V1__DTYPE__FLOAT32;
        break;
    case FLAW_COORDS_AXES:
        a->coords.n_shape = 1;
        break;
    case FLAW_COORDS_NEGATIVE:
        a->shape_coords[0] = -a->shape_coords[0];
        break;
    case FLAW_COUNTS_SHAPE:
        a->shape_rows[0] += 1;
        break;
    case FLAW_INVERSE_INDEX:
        inverse[0] = (int32_t)a->voxelize.n_voxels;
        break;
    case FLAW_INVERSE_LENGTH:
        a->shape_points[0] -= 1;
        a->inverse.data.len -= 4;
        break;
    case FLAW_MEAN_CHANNELS:
        a->voxelize.n_features = 2;
        break;
    case FLAW_ITEMS_MISSING:
        a->voxelize.n_items = 0;
        break;
    case FLAW_ITEM_VOXELS:
        a->item.n_voxels += 1;
        break;
    case FLAW_ITEM_POINTS:
        a->item.first_point = 1;
        break;
    case FLAW_N_VOXELS:
        a->voxelize.n_voxels = UINT64_C(1) << 62;
        break;
    case FLAW_GRID:
        a->voxelize.n_grid = 2;
        break;
    case FLAW_NONE:
    case N_FLAWS:
        break;
    }
}

/* Every point its own voxel (i, 2i, 3i). Buffers hold MAX_POINTS. */
static void answer_voxelize(struct answer *a, const Voxeld__V1__Request *request,
                            enum peer_flaw flaw, int32_t *coords, uint32_t *counts,
                            int32_t *inverse, float *mean)
{
    static char *const names[3] = {"x", "y", "z"};
    const Voxeld__V1__Cloud *cloud = request->voxelize->clouds[0];
    size_t n = cloud->point_step > 0 ? cloud->data.len / cloud->point_step : 0;

    n = n < MAX_POINTS ? n : MAX_POINTS;
    for (size_t i = 0; i < n; i++) {
        coords[4 * i] = 0;
        for (size_t k = 0; k < 3; k++) {
            coords[4 * i + 1 + k] = (int32_t)((k + 1) * i);
            mean[3 * i + k] = (float)((k + 1) * i);
        }
        counts[i] = 1;
        inverse[i] = (int32_t)i;
    }
    voxeld__v1__voxelize_response__init(&a->voxelize);
    voxeld__v1__voxelize_item__init(&a->item);
    a->item.n_points = n;
    a->item.n_used = n;
    a->item.n_voxels = n;
    a->item.stamp_ns = cloud->stamp_ns;
    a->item.frame_id = cloud->frame_id;
    a->items[0] = &a->item;
    a->voxelize.items = a->items;
    a->voxelize.n_items = 1;
    a->voxelize.n_voxels = n;
    a->shape_coords[0] = (int64_t)n;
    a->shape_coords[1] = 4;
    a->shape_rows[0] = (int64_t)n;
    a->shape_points[0] = (int64_t)n;
    a->shape_mean[0] = (int64_t)n;
    a->shape_mean[1] = 3;
    tensor(&a->coords, VOXELD__V1__DTYPE__INT32, a->shape_coords, 2, coords, n * 16);
    tensor(&a->counts, VOXELD__V1__DTYPE__UINT32, a->shape_rows, 1, counts, n * 4);
    tensor(&a->inverse, VOXELD__V1__DTYPE__INT32, a->shape_points, 1, inverse, n * 4);
    tensor(&a->mean, VOXELD__V1__DTYPE__FLOAT32, a->shape_mean, 2, mean, n * 12);
    a->voxelize.coords = &a->coords;
    a->voxelize.counts = &a->counts;
    a->voxelize.inverse = &a->inverse;
    a->voxelize.mean = &a->mean;
    memcpy(a->features, names, sizeof names);
    a->voxelize.features = a->features;
    a->voxelize.n_features = 3;
    a->voxelize.grid = a->grid;
    if (request->voxelize->merge != NULL) {
        voxeld__v1__voxelize_merged__init(&a->merged);
        a->merged.n_new = n;
        a->merged.n_entries = 2 * n;
        a->voxelize.merged = &a->merged;
    }
    a->voxelize.size = request->voxelize->size;
    a->voxelize.engine_ms = 1.5;
    spoil(a, flaw, inverse);
    a->response.method_case = VOXELD__V1__RESPONSE__METHOD_VOXELIZE;
    a->response.voxelize = &a->voxelize;
}

static void answer_info(struct answer *a, struct peer *peer)
{
    voxeld__v1__server_info_response__init(&a->info);
    a->info.version = "9.9.9";
    a->info.backend = "peer";
    a->info.max_message_bytes = atomic_load(&peer->max_message_bytes);
    a->response.method_case = VOXELD__V1__RESPONSE__METHOD_SERVER_INFO;
    a->response.server_info = &a->info;
}

static void answer_status(struct answer *a)
{
    voxeld__v1__status_response__init(&a->status);
    voxeld__v1__method_status__init(&a->method);
    voxeld__v1__slow_request__init(&a->slow);
    a->status.state = "serving";
    a->status.queue_limit = 64;
    a->status.n_scenes = 2;
    a->status.scene_bytes = 3000000;
    a->status.scene_limit_bytes = 4000000;
    a->method.name = "voxelize";
    a->method.n_ok = 3;
    a->methods[0] = &a->method;
    a->status.methods = a->methods;
    a->status.n_methods = 1;
    a->slow.request_id = "r1";
    a->slow.code = VOXELD__V1__CODE__ABORTED;
    a->slows[0] = &a->slow;
    a->status.slow = a->slows;
    a->status.n_slow = 1;
    a->response.method_case = VOXELD__V1__RESPONSE__METHOD_STATUS;
    a->response.status = &a->status;
}

static void answer_admin(struct answer *a, struct peer *peer,
                         const Voxeld__V1__Request *request)
{
    switch (request->method_case) {
    case VOXELD__V1__REQUEST__METHOD_STATUS:
        answer_status(a);
        break;
    case VOXELD__V1__REQUEST__METHOD_SELF_TEST:
        voxeld__v1__self_test_response__init(&a->self_test);
        a->self_test.n_stages = request->self_test->duration_ms;
        a->self_test.digest = UINT64_C(0x8000000000000001);
        a->self_test.elapsed_ms = request->header->timeout_ms;
        a->response.method_case = VOXELD__V1__RESPONSE__METHOD_SELF_TEST;
        a->response.self_test = &a->self_test;
        break;
    case VOXELD__V1__REQUEST__METHOD_SET_LOG_LEVEL:
        voxeld__v1__set_log_level_response__init(&a->log_level);
        a->log_level.previous = request->set_log_level->level;
        a->response.method_case = VOXELD__V1__RESPONSE__METHOD_SET_LOG_LEVEL;
        a->response.set_log_level = &a->log_level;
        break;
    case VOXELD__V1__REQUEST__METHOD_BACKUP:
        voxeld__v1__backup_response__init(&a->backup);
        a->backup.path = request->backup->name;
        a->backup.n_database_bytes = 4096;
        a->backup.n_snapshot_bytes = 1000;
        a->backup.n_snapshots = 2;
        a->backup.n_linked = 1;
        a->backup.elapsed_ms = 12.5;
        a->response.method_case = VOXELD__V1__RESPONSE__METHOD_BACKUP;
        a->response.backup = &a->backup;
        break;
    default:
        answer_info(a, peer);
        break;
    }
}

nng_msg *peer_pack(const Voxeld__V1__Response *response, int is_aligned)
{
    struct vxd_encoder measured = {.least_bytes =
                                       is_aligned ? VXD_BIG_BLOCK_BYTES : SIZE_MAX,
                                   .origin = VXD_RPC_ORIGIN};
    struct vxd_encoder written = measured;
    nng_msg *message;

    vxd_encode(&measured, &response->base);
    if (nng_msg_alloc(&message, measured.at) != 0) {
        abort();
    }
    written.out = nng_msg_body(message);
    vxd_encode(&written, &response->base);
    return message;
}

void peer_fill_tensor(Voxeld__V1__Tensor *t, Voxeld__V1__DType dtype, int64_t *shape,
                      size_t n_axes, void *data)
{
    voxeld__v1__tensor__init(t);
    t->dtype = dtype;
    t->shape = shape;
    t->n_shape = n_axes;
    t->data.data = data;
    t->data.len = vxd_dtype_bytes((enum vxd_dtype)dtype);
    for (size_t i = 0; i < n_axes; i++) {
        t->data.len *= (size_t)shape[i];
    }
}

int peer_begin(struct peer *peer, const Voxeld__V1__Request *request,
               Voxeld__V1__Response *response, Voxeld__V1__ResponseHeader *header)
{
    voxeld__v1__response__init(response);
    voxeld__v1__response_header__init(header);
    header->request_id = request->header->request_id;
    header->replayed = atomic_load(&peer->replays) != 0 && request->header->sequence != 0;
    response->header = header;
    response->method_case = (Voxeld__V1__Response__MethodCase)request->method_case;
    return header->replayed;
}

static nng_msg *answer(struct peer *peer, const Voxeld__V1__Request *request)
{
    struct answer a;
    int32_t *coords = malloc(MAX_POINTS * 16);
    uint32_t *counts = malloc(MAX_POINTS * 4);
    int32_t *inverse = malloc(MAX_POINTS * 4);
    float *mean = malloc(MAX_POINTS * 12);
    int mode = atomic_load(&peer->mode);
    bool is_voxelize = request->method_case == VOXELD__V1__REQUEST__METHOD_VOXELIZE;
    nng_msg *message;

    if (coords == NULL || counts == NULL || inverse == NULL || mean == NULL) {
        abort();
    }
    memset(&a, 0, sizeof a);
    voxeld__v1__response__init(&a.response);
    voxeld__v1__response_header__init(&a.header);
    a.response.header = &a.header;
    a.header.request_id = request->header->request_id;
    if (is_voxelize && mode == PEER_FAIL) {
        a.header.code = VOXELD__V1__CODE__INVALID_ARGUMENT;
        a.header.field = "clouds[0].fields[2].offset";
        a.header.message = "17; at most 12";
    } else if (is_voxelize && mode != PEER_WRONG_REPLY) {
        answer_voxelize(&a, request, (enum peer_flaw)atomic_load(&peer->flaw), coords,
                        counts, inverse, mean);
    } else {
        answer_admin(&a, peer, request);
    }
    message = peer_pack(&a.response, atomic_load(&peer->aligns) != 0);
    free(coords);
    free(counts);
    free(inverse);
    free(mean);
    return message;
}

/* What is done before the answer. */
static void act(struct peer *peer, nng_msg *in)
{
    uint8_t *copy = malloc(nng_msg_len(in) + 1);

    if (copy == NULL) {
        abort();
    }
    memcpy(copy, nng_msg_body(in), nng_msg_len(in));
    atomic_fetch_add(&peer->n_voxelize, 1);
    (void)pthread_mutex_lock(&peer->mutex);
    free(peer->last);
    peer->last = copy;
    peer->n_last = nng_msg_len(in);
    while (atomic_load(&peer->mode) == PEER_HOLD && !peer->is_released) {
        (void)pthread_cond_wait(&peer->released, &peer->mutex);
    }
    (void)pthread_mutex_unlock(&peer->mutex);
}

static nng_msg *reply_to(struct peer *peer, nng_msg *in)
{
    Voxeld__V1__Request *request =
        voxeld__v1__request__unpack(NULL, nng_msg_len(in), nng_msg_body(in));
    bool is_voxelize; /* or about maps or scenes */
    bool is_map;
    bool is_scene;
    bool is_version;
    int mode;
    nng_msg *out = NULL;

    if (request == NULL || request->header == NULL) {
        abort(); /* our client sent rubbish */
    }
    is_version = request->method_case >= VOXELD__V1__REQUEST__METHOD_SCENE_LOG;
    is_scene = request->method_case >= VOXELD__V1__REQUEST__METHOD_SCENE_CREATE;
    is_map = request->method_case >= VOXELD__V1__REQUEST__METHOD_MAP_CREATE;
    is_voxelize = request->method_case == VOXELD__V1__REQUEST__METHOD_VOXELIZE || is_map;
    if (is_voxelize) {
        act(peer, in);
    }
    mode = atomic_load(&peer->mode);
    if (is_voxelize && (mode == PEER_GARBAGE || mode == PEER_EMPTY)) {
        if (nng_msg_alloc(&out, 0) != 0 ||
            (mode == PEER_GARBAGE && nng_msg_append(out, "\xff\xff garbage", 10) != 0)) {
            abort();
        }
    } else if (is_map && mode != PEER_WRONG_REPLY) {
        out = is_version ? peer_answer_version(peer, request)
              : is_scene ? peer_answer_scene(peer, request)
                         : peer_answer_map(peer, request);
    } else {
        out = answer(peer, request);
    }
    voxeld__v1__request__free_unpacked(request, NULL);
    return out;
}

static void set_receiving(struct peer_worker *worker, int is_receiving)
{
    (void)pthread_mutex_lock(&worker->peer->mutex);
    worker->is_receiving = is_receiving;
    (void)pthread_mutex_unlock(&worker->peer->mutex);
}

/* Without a timeout: nng 1.5.2 loses a request that arrives as its receive times out. */
static nng_msg *receive(struct peer_worker *worker)
{
    nng_aio_set_timeout(worker->aio, NNG_DURATION_INFINITE);
    set_receiving(worker, 1);
    nng_ctx_recv(worker->ctx, worker->aio);
    nng_aio_wait(worker->aio);
    set_receiving(worker, 0);
    return nng_aio_result(worker->aio) == 0 ? nng_aio_get_msg(worker->aio) : NULL;
}

static void *work(void *arg)
{
    struct peer_worker *worker = arg;
    struct peer *peer = worker->peer;

    /* nng 1.5.2 can crash when a socket is closed under a send: the workers end first. */
    while (!atomic_load(&peer->stopping)) {
        nng_msg *in = receive(worker);

        if (in == NULL) {
            continue;
        }
        nng_aio_set_msg(worker->aio, reply_to(peer, in));
        nng_msg_free(in);
        nng_aio_set_timeout(worker->aio, SEND_MS);
        nng_ctx_send(worker->ctx, worker->aio);
        nng_aio_wait(worker->aio);
        if (nng_aio_result(worker->aio) != 0) {
            nng_msg_free(nng_aio_get_msg(worker->aio));
        }
    }
    atomic_fetch_add(&peer->n_ended, 1);
    return NULL;
}

int peer_start(struct peer *peer, const char *url)
{
    static atomic_int counter;

    memset(peer, 0, sizeof *peer);
    (void)pthread_mutex_init(&peer->mutex, NULL);
    (void)pthread_cond_init(&peer->released, NULL);
    atomic_store(&peer->max_message_bytes, 16U << 20);
    if (url != NULL) {
        (void)snprintf(peer->url, sizeof peer->url, "%s", url);
    } else {
        (void)snprintf(peer->url, sizeof peer->url, "ipc:///tmp/voxeld-peer-%ld-%d.sock",
                       (long)getpid(), atomic_fetch_add(&counter, 1));
    }
    if (nng_rep0_open(&peer->socket) != 0 ||
        nng_listen(peer->socket, peer->url, &peer->listener, 0) != 0) {
        return -1;
    }
    for (int i = 0; i < PEER_THREADS; i++) {
        struct peer_worker *worker = &peer->workers[i];

        worker->peer = peer;
        if (nng_ctx_open(&worker->ctx, peer->socket) != 0 ||
            nng_aio_alloc(&worker->aio, NULL, NULL) != 0 ||
            pthread_create(&worker->thread, NULL, work, worker) != 0) {
            return -1;
        }
        peer->n_threads++;
    }
    return 0;
}

void peer_release(struct peer *peer)
{
    (void)pthread_mutex_lock(&peer->mutex);
    peer->is_released = 1;
    (void)pthread_cond_broadcast(&peer->released);
    (void)pthread_mutex_unlock(&peer->mutex);
}

Voxeld__V1__Request *peer_last(struct peer *peer)
{
    Voxeld__V1__Request *request = NULL;

    (void)pthread_mutex_lock(&peer->mutex);
    if (peer->last != NULL) {
        request = voxeld__v1__request__unpack(NULL, peer->n_last, peer->last);
    }
    (void)pthread_mutex_unlock(&peer->mutex);
    return request;
}

/* Shared by the thread that closes and the one that waits; the last frees it. */
struct closing {
    nng_socket socket;
    atomic_int done;
    atomic_int n_users;
};

static void closing_drop(struct closing *closing)
{
    if (atomic_fetch_sub(&closing->n_users, 1) == 1) {
        free(closing);
    }
}

static void *close_socket(void *arg)
{
    struct closing *closing = arg;

    (void)nng_close(closing->socket);
    atomic_store(&closing->done, 1);
    closing_drop(closing);
    return NULL;
}

/* nng_close of nng 1.5.2 rarely never returns (client.c says when): not a reason for a test
 * to hang, it is not what is tested. */
static void close_within(nng_socket socket, int limit_ms)
{
    struct closing *closing = calloc(1, sizeof *closing);
    pthread_t thread;

    if (closing == NULL) {
        abort();
    }
    closing->socket = socket;
    atomic_store(&closing->n_users, 2);
    if (pthread_create(&thread, NULL, close_socket, closing) != 0) {
        abort();
    }
    (void)pthread_detach(thread);
    for (int waited = 0; waited < limit_ms && !atomic_load(&closing->done); waited++) {
        nng_msleep(1);
    }
    closing_drop(closing);
}

/* Again and again: a receive that has not quite begun is not there to be cancelled. */
static void end_workers(struct peer *peer)
{
    while (atomic_load(&peer->n_ended) < peer->n_threads) {
        (void)pthread_mutex_lock(&peer->mutex);
        for (int i = 0; i < peer->n_threads; i++) {
            if (peer->workers[i].is_receiving) {
                nng_aio_cancel(peer->workers[i].aio);
            }
        }
        (void)pthread_mutex_unlock(&peer->mutex);
        nng_msleep(1);
    }
    for (int i = 0; i < peer->n_threads; i++) {
        (void)pthread_join(peer->workers[i].thread, NULL);
        nng_aio_free(peer->workers[i].aio);
        (void)nng_ctx_close(peer->workers[i].ctx);
    }
}

void peer_stop(struct peer *peer)
{
    atomic_store(&peer->stopping, 1);
    peer_release(peer);
    end_workers(peer);
    close_within(peer->socket, CLOSE_MS);
    free(peer->last);
    (void)pthread_mutex_destroy(&peer->mutex);
    (void)pthread_cond_destroy(&peer->released);
}
