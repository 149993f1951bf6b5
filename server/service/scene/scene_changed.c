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
    struct vxd_scene_job base; /* first: request->state is both */
    size_t n;
    size_t done;
    struct vxd_scene_version *versions; /* newest first */
    size_t n_versions;
    const int32_t *voxels; /* device */
    const uint32_t *roots; /* device */
    struct vxd_scene_output indices;
    int64_t *numbers;
};

static const Voxeld__V1__SceneChangedRequest *input_of(const struct vxd_request *request)
{
    return (const Voxeld__V1__SceneChangedRequest *)request->input;
}

enum vxd_status vxd_scene_changed_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__SceneChangedRequest *input = input_of(request);
    struct changed_job *job;
    enum vxd_status status;

    VXD_TRY(vxd_scene_begin_check(request, sizeof *job, input->name, err));
    job = request->state;
    VXD_TRY(vxd_scene_check_at(input->at, "at", err));
    VXD_TRY(vxd_scene_check_numbers(input->points, "points", 3, true, &job->n, err));
    if (job->n > MAX_POINTS) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "points",
                         "has %zu rows, it must have at most %d", job->n, MAX_POINTS));
    }
    request->bulk = job->n > request->server->config.bulk_points / 16;
    request->cost_bytes = job->n * 24;
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

static enum vxd_status begin_changed(struct vxd_request *request, struct vxd_queue *queue,
                                     struct vxd_err *err)
{
    struct changed_job *job = request->state;
    struct vxd_scene_frame frame;
    const void *uploaded;
    uint32_t *roots;
    void *block;
    enum vxd_status status;

    VXD_TRY(open_versions(request, queue, err));
    frame = vxd_scene_frame_of(&job->base.scene->spec, false);
    VXD_TRY(vxd_scene_take_host(request, job->n_versions, sizeof *roots, &block, err));
    roots = block;
    for (size_t i = 0; i < job->n_versions; i++) {
        roots[i] = job->versions[i].root;
    }
    VXD_TRY(vxd_scene_upload(request, queue, roots, job->n_versions * sizeof *roots,
                             &uploaded, err));
    job->roots = uploaded;
    VXD_TRY(vxd_scene_take_host(request, job->n, sizeof *job->numbers, &block, err));
    job->numbers = block;
    VXD_TRY(vxd_scene_take_host(request, job->n, 3 * sizeof(int32_t), &block, err));
    vxd_scene_read_voxels(input_of(request)->points, &frame, block, NULL);
    VXD_TRY(vxd_scene_upload(request, queue, block, job->n * 3 * sizeof(int32_t),
                             &uploaded, err));
    job->voxels = uploaded;
    status = vxd_scene_reserve_output(request, queue, job->n, sizeof(uint32_t),
                                      &job->indices, err);
out:
    return status;
}

enum vxd_status vxd_scene_changed_submit(struct vxd_request *request,
                                         struct vxd_queue *queue, struct vxd_err *err)
{
    struct changed_job *job = request->state;
    size_t first = job->done;
    size_t n;
    enum vxd_status status = VXD_OK;

    if (job->base.scene == NULL) {
        VXD_TRY(begin_changed(request, queue, err));
    }
    n = vxd_scene_next_chunk(request, job->n, PART_PAIRS / job->n_versions + 1,
                             &job->done);
    if (n > 0) {
        VXD_TRY(vxd_svdag_changed(queue, job->base.state.svdag, job->roots,
                                  (uint32_t)job->n_versions, job->voxels + 3 * first, n,
                                  (uint32_t *)job->indices.device + first, err));
    }
    if (!request->more) {
        VXD_TRY(vxd_scene_fetch_output(request, queue, &job->indices, err));
    }
out:
    return status;
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

enum vxd_status vxd_scene_changed_finish(struct vxd_request *request,
                                         struct vxd_queue *queue, struct vxd_err *err)
{
    struct changed_job *job = request->state;
    const uint32_t *indices = job->indices.bytes;
    size_t last = job->n_versions - 1;
    Voxeld__V1__SceneChangedResponse *reply = vxd_message_new(
        request->decoder, &voxeld__v1__scene_changed_response__descriptor, err);
    bool *occurs;
    void *block;
    enum vxd_status status;

    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(vxd_scene_take_host(request, job->n_versions, sizeof *occurs, &block, err));
    occurs = block;
    memset(occurs, 0, job->n_versions * sizeof *occurs);
    for (size_t i = 0; i < job->n; i++) {
        bool is_known = indices[i] < last;

        job->numbers[i] = is_known ? (int64_t)job->versions[indices[i]].number : 0;
        occurs[indices[i]] = occurs[indices[i]] || is_known;
    }
    reply->version = job->base.state.version;
    reply->oldest = job->versions[last].number;
    reply->generation = job->base.scene->generation;
    reply->engine_ms = (double)request->engine_ns / 1e6;
    VXD_TRY(show_versions(job, occurs, reply, err));
    VXD_TRY(vxd_scene_show(request, VXD_INT64, job->n, 0, job->numbers, &reply->versions,
                           err));
    request->output = &reply->base;
    vxd_scene_close(request, queue);
out:
    return status;
}
