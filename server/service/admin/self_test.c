// SPDX-License-Identifier: Apache-2.0
/* Burn-in: one voxelization a stage, always of the same random cloud, its integer results
 * hashed and compared with the first stage's. Between the stages other requests run. */
#include <stdlib.h>

#include "gpu/core/core.h"
#include "gpu/voxel/voxel.h"
#include "proto/base/clock.h"
#include "server/instance/instance.h"
#include "server/request/request.h"
#include "server/schedule/schedule.h"
#include "server/service/service.h"
#include "voxeld/v1/admin.pb-c.h"

enum {
    DEFAULT_DURATION_MS = 1000,
    DEFAULT_POINTS = 20000
};

/* The cloud's extent and the voxels' edge: about one point a voxel of 20000 points. */
#define EXTENT_M 40.0f
#define EDGE_M 1.0f

enum array {
    ARRAY_TOTALS,
    ARRAY_STARTS,
    ARRAY_COORDS,
    ARRAY_COUNTS,
    ARRAY_INVERSE,
    N_ARRAYS
};

struct job {
    size_t n_points;
    int64_t duration_ns;
    int64_t begin_ns; /* of the first stage; 0 before */
    int64_t elapsed_ns;
    uint64_t n_stages; /* compared */
    uint64_t digest;
    uint32_t batch_starts[2];
    size_t offsets[N_ARRAYS];
    size_t results_bytes;
    struct vxd_buffer upload_host; /* the points */
    struct vxd_buffer upload;
    const float *positions; /* on the device */
    struct vxd_buffer results;
    struct vxd_buffer host;
    const uint8_t *bytes; /* the results, readable after a stage */
};

static uint64_t splitmix64(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static void make_points(float *points, size_t n)
{
    uint64_t state = 2026;

    for (size_t i = 0; i < n; i++) {
        /* 24 bits: every value is exact in float32, so the cloud is the same everywhere. */
        float unit = (float)(splitmix64(&state) >> 40) / 16777216.0f;

        points[i] = (unit - 0.5f) * EXTENT_M;
    }
}

static uint64_t fnv1a(uint64_t hash, const uint8_t *bytes, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i++) {
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

static struct vxd_voxelize_args engine_args(const struct job *job)
{
    return (struct vxd_voxelize_args){
        .positions = job->positions,
        .n_points = job->n_points,
        .batch_starts = job->batch_starts,
        .n_batch = 1,
        .rule = VXD_RULE_MINKOWSKI,
        .order = VXD_ORDER_MORTON,
        .size_m = {EDGE_M, EDGE_M, EDGE_M},
    };
}

static bool lay_out(struct job *job)
{
    const size_t n_rows[N_ARRAYS] = {1, 2, job->n_points, job->n_points, job->n_points};
    const size_t row_bytes[N_ARRAYS] = {sizeof(struct vxd_voxel_totals), sizeof(uint32_t),
                                        4 * sizeof(int32_t), sizeof(uint32_t),
                                        sizeof(int32_t)};

    for (int i = 0; i < N_ARRAYS; i++) {
        if (!vxd_layout_add(&job->results_bytes, n_rows[i], row_bytes[i],
                            &job->offsets[i])) {
            return false;
        }
    }
    return true;
}

enum vxd_status vxd_self_test_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__SelfTestRequest *input =
        (const Voxeld__V1__SelfTestRequest *)request->input;
    uint32_t duration_ms =
        input->duration_ms > 0 ? input->duration_ms : DEFAULT_DURATION_MS;
    uint32_t n_points = input->n_points > 0 ? input->n_points : DEFAULT_POINTS;
    struct vxd_voxelize_args args;
    struct job *job;

    job = vxd_message_array(request->decoder, 1, sizeof *job, err);
    if (job == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    job->n_points = n_points;
    job->batch_starts[1] = n_points;
    job->duration_ns = duration_ms * INT64_C(1000000);
    if (!lay_out(job)) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "n_points", "%u are too many",
                        n_points);
    }
    args = engine_args(job);
    request->cost_bytes = job->results_bytes + job->n_points * 3 * sizeof(float) +
                          vxd_voxelize_scratch_bytes(
                              vxd_scheduler_probe(request->server->scheduler), &args);
    request->bulk = true;
    request->state = job;
    return VXD_OK;
}

/* Hashes the results of the last stage and compares. */
static enum vxd_status compare(struct job *job, struct vxd_err *err)
{
    const uint8_t *starts = job->bytes + job->offsets[ARRAY_STARTS];
    uint32_t m;
    uint64_t digest = UINT64_C(0xcbf29ce484222325);

    memcpy(&m, starts + sizeof m, sizeof m);
    digest = fnv1a(digest, job->bytes + job->offsets[ARRAY_TOTALS],
                   sizeof(struct vxd_voxel_totals));
    digest = fnv1a(digest, job->bytes + job->offsets[ARRAY_COORDS],
                   (size_t)m * 4 * sizeof(int32_t));
    digest = fnv1a(digest, job->bytes + job->offsets[ARRAY_COUNTS], m * sizeof(uint32_t));
    digest = fnv1a(digest, job->bytes + job->offsets[ARRAY_INVERSE],
                   job->n_points * sizeof(int32_t));
    if (job->n_stages > 0 && digest != job->digest) {
        return vxd_fail(err, VXD_DATA_LOSS, NULL,
                        "stage %llu gave digest %016llx, the first gave %016llx: the "
                        "machine computes wrongly",
                        (unsigned long long)job->n_stages, (unsigned long long)digest,
                        (unsigned long long)job->digest);
    }
    job->digest = digest;
    job->n_stages++;
    return VXD_OK;
}

/* Uploads the points and reserves memory for the results, once. */
static enum vxd_status prepare(struct job *job, struct vxd_request *request,
                               struct vxd_queue *queue, struct vxd_err *err)
{
    size_t n_bytes = job->n_points * 3 * sizeof(float);
    const void *positions = NULL;
    enum vxd_status status;

    job->begin_ns = vxd_clock_ns();
    /* Uses the engine's memory, since a million points would exceed the decoder's budget. */
    VXD_TRY(vxd_host_alloc(request->server->context, n_bytes, &job->upload_host, err));
    make_points(job->upload_host.ptr, job->n_points * 3);
    VXD_TRY(
        vxd_upload(queue, job->upload_host.ptr, n_bytes, &job->upload, &positions, err));
    job->positions = positions;
    VXD_TRY(vxd_device_alloc(queue, job->results_bytes, &job->results, err));
out:
    return status;
}

enum vxd_status vxd_self_test_submit(struct vxd_request *request, struct vxd_queue *queue,
                                     struct vxd_err *err)
{
    struct job *job = request->state;
    struct vxd_voxelize_args args;
    struct vxd_voxels voxels;
    const void *bytes = NULL;
    uint8_t *base;
    enum vxd_status status = VXD_OK;

    if (job->begin_ns == 0) {
        VXD_TRY(prepare(job, request, queue, err));
    } else {
        VXD_TRY(compare(job, err));
    }
    base = job->results.ptr;
    args = engine_args(job);
    voxels = (struct vxd_voxels){
        .capacity = job->n_points,
        .totals = (struct vxd_voxel_totals *)(void *)(base + job->offsets[ARRAY_TOTALS]),
        .starts = (uint32_t *)(void *)(base + job->offsets[ARRAY_STARTS]),
        .coords = (int32_t *)(void *)(base + job->offsets[ARRAY_COORDS]),
        .counts = (uint32_t *)(void *)(base + job->offsets[ARRAY_COUNTS]),
        .inverse = (int32_t *)(void *)(base + job->offsets[ARRAY_INVERSE]),
    };
    VXD_TRY(vxd_voxelize(queue, &args, &voxels, err));
    vxd_host_free(vxd_queue_context(queue), &job->host);
    VXD_TRY(vxd_download(queue, base, job->results_bytes, &job->host, &bytes, err));
    job->bytes = bytes;
    job->elapsed_ns = vxd_clock_ns() - job->begin_ns;
    request->more = job->elapsed_ns < job->duration_ns;
out:
    return status;
}

enum vxd_status vxd_self_test_finish(struct vxd_request *request, struct vxd_queue *queue,
                                     struct vxd_err *err)
{
    struct job *job = request->state;
    Voxeld__V1__SelfTestResponse *reply = vxd_message_new(
        request->decoder, &voxeld__v1__self_test_response__descriptor, err);

    (void)queue;
    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    if (compare(job, err) != VXD_OK) {
        return VXD_DATA_LOSS;
    }
    reply->n_stages = job->n_stages;
    reply->digest = job->digest;
    reply->elapsed_ms = (double)(vxd_clock_ns() - job->begin_ns) / 1e6;
    request->output = &reply->base;
    return VXD_OK;
}

void vxd_self_test_release(struct vxd_request *request, struct vxd_queue *queue)
{
    struct job *job = request->state;

    vxd_device_free(queue, &job->upload);
    vxd_device_free(queue, &job->results);
    vxd_host_free(vxd_queue_context(queue), &job->upload_host);
    vxd_host_free(vxd_queue_context(queue), &job->host);
}
