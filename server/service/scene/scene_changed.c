// SPDX-License-Identifier: Apache-2.0
/* Who made voxels what they are: the newest kept version that changed each. */
#include "gpu/svdag/query/query.h"
#include "server/instance/instance.h"
#include "server/service/scene/scene.h"
#include "server/service/service.h"
#include "voxeld/v1/history.pb-c.h"

enum {
    MAX_POINTS = 1 << 18,
    /* Pairs of a voxel and a version that a stage looks at, so that others may run in between. */
    PART_PAIRS = 1 << 22,
    ENTRY_BYTES = sizeof(Voxeld__V1__SceneVersion) + 64
};

struct changed_job {
    struct vxd_scene_job base;          /* first: request->state is both */
    struct vxd_scene_version *versions; /* newest first */
    size_t n_versions;
    const int32_t *voxels; /* device */
    const uint32_t *roots; /* device */
    struct vxd_column *indices;
    struct vxd_column *numbers; /* made of them */
};

static const Voxeld__V1__SceneChangedRequest *input_of(const struct vxd_request *request)
{
    return (const Voxeld__V1__SceneChangedRequest *)request->input;
}

enum vxd_status vxd_scene_changed_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__SceneChangedRequest *input = input_of(request);
    struct vxd_query *query;
    enum vxd_status status;

    VXD_TRY(vxd_noun_begin_check(request, sizeof(struct changed_job), input->name, err));
    query = request->state;
    VXD_TRY(vxd_scene_check_at(input->at, "at", err));
    VXD_TRY(vxd_scene_check_numbers(input->points, "points", 3, true, &query->n, err));
    if (query->n > MAX_POINTS) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "points",
                         "has %zu rows, it must have at most %d", query->n, MAX_POINTS));
    }
    request->bulk = query->n > request->server->config.bulk_points / 16;
    request->cost_bytes = query->n * 24;
out:
    return status;
}

/* Pins the version instead of vxd_scene_open's, with those before it. */
static enum vxd_status open_versions(struct vxd_request *request, struct vxd_queue *queue,
                                     struct vxd_err *err)
{
    const Voxeld__V1__SceneChangedRequest *input = input_of(request);
    struct changed_job *job = request->state;
    struct vxd_scene_log_summary summary;
    struct vxd_scene_at at;
    void *block;
    enum vxd_status status;

    VXD_TRY(vxd_scene_open(request, input->name, input->at, err));
    vxd_scene_get_log_summary(job->base.scene, &summary);
    VXD_TRY(vxd_scene_take_host(request, summary.n_versions + 1, sizeof *job->versions,
                                &block, err));
    job->versions = block;
    at = (struct vxd_scene_at){.version = job->base.state.version};
    vxd_scene_unpin(request->server->scenes, &job->base.state, queue);
    status = vxd_scene_pin_versions(job->base.scene, &at, &job->base.state, job->versions,
                                    summary.n_versions + 1, &job->n_versions, err);
out:
    return status;
}

static enum vxd_status begin(struct vxd_request *request, struct vxd_queue *queue,
                             struct vxd_err *err)
{
    struct changed_job *job = request->state;
    Voxeld__V1__SceneChangedResponse *reply =
        (Voxeld__V1__SceneChangedResponse *)job->base.query.reply;
    const void *uploaded;
    uint32_t *roots;
    void *block;
    enum vxd_status status;

    VXD_TRY(open_versions(request, queue, err));
    VXD_TRY(vxd_scene_take_host(request, job->n_versions, sizeof *roots, &block, err));
    roots = block;
    for (size_t i = 0; i < job->n_versions; i++) {
        roots[i] = job->versions[i].root;
    }
    VXD_TRY(vxd_scene_upload(request, queue, roots, job->n_versions * sizeof *roots,
                             &uploaded, err));
    job->roots = uploaded;
    job->base.query.part_rows = PART_PAIRS / job->n_versions + 1;
    VXD_TRY(vxd_scene_upload_voxels(request, queue, input_of(request)->points,
                                    &job->voxels, err));
    VXD_TRY(vxd_query_reserve(request, queue, VXD_UINT32, 0, NULL, &job->indices, err));
    status = vxd_query_reserve_made(request, VXD_INT64, 0, &reply->versions,
                                    &job->numbers, err);
out:
    return status;
}

static enum vxd_status run(struct vxd_request *request, struct vxd_queue *queue,
                           size_t first, size_t n, struct vxd_err *err)
{
    const struct changed_job *job = request->state;

    return vxd_svdag_changed(queue, job->base.state.svdag, job->roots,
                             (uint32_t)job->n_versions, job->voxels + 3 * first, n,
                             vxd_scene_row(job->indices, first, sizeof(uint32_t)), err);
}

/* The versions that occur, newest first. */
static enum vxd_status show_versions(struct changed_job *job, const bool *occurs,
                                     Voxeld__V1__SceneChangedResponse *reply,
                                     struct vxd_err *err)
{
    size_t n = 0;
    enum vxd_status status;

    for (size_t i = 0; i < job->n_versions; i++) {
        n += occurs[i] ? 1 : 0;
    }
    VXD_TRY(vxd_decoder_create(4096 + n * ENTRY_BYTES, NULL, &job->base.arena, err));
    reply->made_by = vxd_message_pointers(job->base.arena, n, err);
    if (reply->made_by == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (size_t i = 0; i < job->n_versions; i++) {
        Voxeld__V1__SceneVersion *message;

        if (!occurs[i]) {
            continue;
        }
        message =
            vxd_message_new(job->base.arena, &voxeld__v1__scene_version__descriptor, err);
        if (message == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
        vxd_scene_show_version(&job->versions[i], message);
        reply->made_by[reply->n_made_by++] = message;
    }
out:
    return status;
}

static enum vxd_status end(struct vxd_request *request, struct vxd_queue *queue,
                           struct vxd_err *err)
{
    struct changed_job *job = request->state;
    Voxeld__V1__SceneChangedResponse *reply =
        (Voxeld__V1__SceneChangedResponse *)job->base.query.reply;
    const uint32_t *indices = job->indices->bytes;
    int64_t *numbers = job->numbers->bytes;
    size_t last = job->n_versions - 1;
    bool *occurs;
    void *block;
    enum vxd_status status;

    (void)queue;
    VXD_TRY(vxd_scene_take_host(request, job->n_versions, sizeof *occurs, &block, err));
    occurs = block;
    memset(occurs, 0, job->n_versions * sizeof *occurs);
    for (size_t i = 0; i < job->base.query.n; i++) {
        bool is_known = indices[i] < last;

        numbers[i] = is_known ? (int64_t)job->versions[indices[i]].number : 0;
        occurs[indices[i]] = occurs[indices[i]] || is_known;
    }
    reply->version = job->base.state.version;
    reply->oldest = job->versions[last].number;
    reply->generation = job->base.scene->generation;
    reply->engine_ms = (double)request->engine_ns / 1e6;
    status = show_versions(job, occurs, reply, err);
out:
    return status;
}

const struct vxd_query_calls vxd_scene_changed_query = {
    .begin = begin, .run = run, .end = end, .close = vxd_scene_close};
