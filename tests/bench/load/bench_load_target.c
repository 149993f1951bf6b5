// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/load/bench_load_target.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/c/call/call.h"

/* The parts of a request that are not its points. */

struct load_target {
    const struct load_work *work;
    struct voxeld_client *client; /* or, over HTTP, NULL */
    struct load_http *http;
};

enum voxeld_status load_fail(struct voxeld_error *error, enum voxeld_status code,
                             const char *format, ...)
{
    va_list args;

    *error = (struct voxeld_error){.code = code};
    va_start(args, format);
    (void)vsnprintf(error->message, sizeof error->message, format, args);
    va_end(args);
    return code;
}

/* Random points in a box of 80 x 80 x 4 metres; the same in every run. */
static bool make_cloud(struct load_work *work, size_t n)
{
    static const struct voxeld_field fields[] = {
        {.name = "x", .offset = 0, .dtype = VOXELD_FLOAT32},
        {.name = "y", .offset = 4, .dtype = VOXELD_FLOAT32},
        {.name = "z", .offset = 8, .dtype = VOXELD_FLOAT32},
    };
    uint64_t state = 1;

    work->made = calloc(n, 3 * sizeof *work->made);
    if (work->made == NULL) {
        return false;
    }
    for (size_t i = 0; i < 3 * n; i++) {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
        work->made[i] = (float)(state >> 40) / 16777216.0f * (i % 3 == 2 ? 4.0f : 80.0f);
    }
    work->cloud = (struct voxeld_cloud){.fields = fields,
                                        .n_fields = 3,
                                        .point_step = 12,
                                        .data = work->made,
                                        .n_points = n};
    return true;
}

static enum vxd_status pack(struct load_work *work, enum load_method method,
                            const ProtobufCMessage *message, struct vxd_err *err)
{
    struct vxd_encoder measured = {.least_bytes = VXD_BIG_BLOCK_BYTES};
    struct vxd_encoder written = measured;

    vxd_encode(&measured, message);
    work->bodies[method] = malloc(measured.at);
    if (work->bodies[method] == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for the body");
    }
    /* The points stand where the server can use them in place. */
    written.out = work->bodies[method];
    vxd_encode(&written, message);
    work->n_body_bytes[method] = written.at;
    return VXD_OK;
}

/* Makes the request that puts the same cloud into the scene. */
static enum vxd_status pack_scan(struct load_work *work, Voxeld__V1__Cloud *cloud,
                                 struct vxd_err *err)
{
    Voxeld__V1__SceneIntegrateRequest message = VOXELD__V1__SCENE_INTEGRATE_REQUEST__INIT;
    Voxeld__V1__SceneCarve carve = VOXELD__V1__SCENE_CARVE__INIT;

    if (work->scan.scene == NULL) {
        return VXD_OK;
    }
    message.name = (char *)(uintptr_t)work->scan.scene; /* packing reads it */
    message.cloud = cloud;
    message.carve = &carve;
    return pack(work, LOAD_SCENE_INTEGRATE, &message.base, err);
}

/* Packs the requests once by libvoxeld's own builder, so that all transports ask the
 * same. */
static bool pack_bodies(struct load_work *work, struct voxeld_error *error)
{
    Voxeld__V1__VoxelizeRequest message = VOXELD__V1__VOXELIZE_REQUEST__INIT;
    struct vxd_exchange call; /* which is never sent */
    enum vxd_status status;

    VXD_TRY(vxd_exchange_begin(&call, NULL, NULL, false));
    VXD_TRY(vxd_exchange_build_voxelize(&call, &work->request, &message));
    VXD_TRY(pack(work, LOAD_VOXELIZE, &message.base, &call.err));
    VXD_TRY(pack_scan(work, message.clouds[0], &call.err));
out:
    return vxd_exchange_end(&call, status, error) == VOXELD_OK;
}

bool load_work_create(const struct load_options *options, struct load_work *out,
                      struct voxeld_error *error)
{
    *out = (struct load_work){.options = options};
    if (options->cloud != NULL) {
        if (voxeld_cloud_read_file(options->cloud, options->format, &out->read, error) !=
            VOXELD_OK) {
            return false;
        }
        out->cloud = *out->read;
    } else if (!make_cloud(out, options->n_points)) {
        (void)load_fail(error, VOXELD_RESOURCE_EXHAUSTED, "no memory for %u points",
                        options->n_points);
        return false;
    }
    out->request = (struct voxeld_voxelize_request){
        .clouds = &out->cloud,
        .n_clouds = 1,
        .size_m = {options->size_m, options->size_m, options->size_m}};
    out->scan = (struct voxeld_scene_integrate_request){
        .scene = options->scene, .cloud = &out->cloud, .carve = true};
    if (options->is_http && !pack_bodies(out, error)) {
        load_work_destroy(out);
        return false;
    }
    return true;
}

void load_work_destroy(struct load_work *work)
{
    for (size_t i = 0; i < LOAD_N_METHODS; i++) {
        free(work->bodies[i]);
    }
    free(work->made);
    voxeld_cloud_free(work->read);
    *work = (struct load_work){0};
}

enum voxeld_status load_target_open(const struct load_work *work,
                                    struct load_target **out, struct voxeld_error *error)
{
    const struct voxeld_options options = {.url = work->options->url,
                                           .token = work->options->token,
                                           .timeout_ms = work->options->timeout_ms,
                                           .tls_ca_file = work->options->ca_file,
                                           .tls_cert_key_file = work->options->cert_file,
                                           .tls_key_file = work->options->key_file,
                                           .shared_bytes =
                                               (size_t)work->options->shared_mib << 20};
    struct load_target *target = calloc(1, sizeof *target);
    enum voxeld_status status;

    *out = NULL;
    if (target == NULL) {
        return load_fail(error, VOXELD_RESOURCE_EXHAUSTED, "no memory for a connection");
    }
    target->work = work;
    status = work->options->is_http ? load_http_open(work, &target->http, error)
                                    : voxeld_connect(&options, &target->client, error);
    if (status != VOXELD_OK) {
        free(target);
        return status;
    }
    *out = target;
    return VOXELD_OK;
}

void load_target_close(struct load_target *target)
{
    if (target != NULL) {
        voxeld_close(target->client);
        load_http_close(target->http);
        free(target);
    }
}

static enum voxeld_status ask_voxelize(struct load_target *target,
                                       struct load_reply *reply)
{
    struct voxeld_voxels *voxels;
    enum voxeld_status status =
        voxeld_voxelize(target->client, &target->work->request, &voxels, &reply->error);

    if (status == VOXELD_OK) {
        reply->n_points = voxels->n_points;
        reply->n_voxels = voxels->n_voxels;
        reply->engine_ms = voxels->engine_ms;
        voxeld_voxels_free(voxels);
    }
    return status;
}

static enum voxeld_status ask_status(struct load_target *target, struct load_reply *reply)
{
    struct voxeld_server_status *answer;
    enum voxeld_status status =
        voxeld_get_status(target->client, NULL, &answer, &reply->error);

    if (status == VOXELD_OK) {
        voxeld_server_status_free(answer);
    }
    return status;
}

static enum voxeld_status ask_server_info(struct load_target *target,
                                          struct load_reply *reply)
{
    struct voxeld_server_info *answer;
    enum voxeld_status status =
        voxeld_get_server_info(target->client, NULL, &answer, &reply->error);

    if (status == VOXELD_OK) {
        voxeld_server_info_free(answer);
    }
    return status;
}

static enum voxeld_status ask_scene_integrate(struct load_target *target,
                                              struct load_reply *reply)
{
    struct voxeld_scene_integrated done;
    enum voxeld_status status =
        voxeld_scene_integrate(target->client, &target->work->scan, &done, &reply->error);

    if (status == VOXELD_OK) {
        reply->n_points = done.n_points;
        reply->n_voxels = done.n_hit_voxels;
        reply->engine_ms = done.engine_ms;
    }
    return status;
}

void load_target_call(struct load_target *target, enum load_method method,
                      struct load_reply *reply)
{
    static enum voxeld_status (*const ask[LOAD_N_METHODS])(struct load_target *,
                                                           struct load_reply *) = {
        [LOAD_VOXELIZE] = ask_voxelize,
        [LOAD_STATUS] = ask_status,
        [LOAD_SERVER_INFO] = ask_server_info,
        [LOAD_SCENE_INTEGRATE] = ask_scene_integrate,
    };

    *reply = (struct load_reply){0};
    if (target->http != NULL) {
        load_http_call(target->http, method, reply);
        return;
    }
    if (ask[method](target, reply) == VOXELD_OK) {
        reply->answered = true;
        reply->has_timings = voxeld_last_timings(target->client, &reply->timings);
        return;
    }
    /* An error without the request's id never left this process. While the server
     * refuses, the connection stands. */
    reply->answered =
        reply->error.request_id[0] != '\0' &&
        (reply->error.code != VOXELD_UNAVAILABLE || voxeld_is_connected(target->client));
}
