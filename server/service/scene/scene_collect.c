// SPDX-License-Identifier: Apache-2.0
/* All versions of a scene together: verify walks them, and collect frees the nodes that
 * none of them reaches. */
#include <inttypes.h>

#include "server/instance/instance.h"
#include "server/service/service.h"
#include "server/service/scene/scene.h"
#include "voxeld/v1/scene_version.pb-c.h"

/* --- verify ----------------------------------------------------------------------------- */

struct verify_job {
    struct vxd_scene_job base; /* first: request->state is both */
    Voxeld__V1__SceneVerifyResponse *reply;
    uint32_t *roots;
    size_t n_roots;
    size_t done;
};

enum vxd_status vxd_scene_verify_check(struct vxd_request *request, struct vxd_err *err)
{
    request->bulk = true; /* it walks whole scenes */
    return vxd_noun_begin_check(
        request, sizeof(struct verify_job),
        ((const Voxeld__V1__SceneVerifyRequest *)request->input)->name, err);
}

static enum vxd_status begin_verify(struct vxd_request *request, struct vxd_queue *queue,
                                    struct vxd_err *err)
{
    const Voxeld__V1__SceneVerifyRequest *input =
        (const Voxeld__V1__SceneVerifyRequest *)request->input;
    struct verify_job *job = request->state;
    struct vxd_scene_log_summary summary;
    size_t n_most;
    void *block;
    enum vxd_status status;

    VXD_TRY(vxd_scene_open(request, input->name, NULL, err));
    job->reply = vxd_message_new(request->decoder,
                                 &voxeld__v1__scene_verify_response__descriptor, err);
    if (job->reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    vxd_scene_get_log_summary(job->base.scene, &summary);
    n_most = 2 * (summary.n_versions + summary.n_snapshots); /* pins are roots as well */
    VXD_TRY(vxd_scene_take_host(request, n_most, sizeof(uint32_t), &block, err));
    job->roots = block;
    vxd_scene_unpin(request->server->scenes, &job->base.state, queue);
    job->n_roots =
        vxd_scene_pin_roots(job->base.scene, &job->base.state, job->roots, n_most);
    job->reply->n_versions = summary.n_versions;
    job->reply->n_roots = job->n_roots;
out:
    return status;
}

/* One root is a stage, so that other requests may run in between. */
enum vxd_status vxd_scene_verify_submit(struct vxd_request *request,
                                        struct vxd_queue *queue, struct vxd_err *err)
{
    struct verify_job *job = request->state;
    struct vxd_svdag_summary summary;
    char digest[33];
    uint32_t root;
    enum vxd_status status = VXD_OK;

    if (job->base.scene == NULL) {
        VXD_TRY(begin_verify(request, queue, err));
    }
    root = job->roots[job->done++];
    VXD_TRY(vxd_svdag_verify(queue, job->base.state.svdag, root, &summary, err));
    for (int i = 0; i <= VXD_SVDAG_MAX_DEPTH; i++) {
        job->reply->n_nodes += summary.n_nodes[i];
    }
    if (root == job->base.state.root) {
        (void)snprintf(digest, sizeof digest, "%016" PRIx64 "%016" PRIx64,
                       summary.digest[0], summary.digest[1]);
        job->reply->digest = vxd_message_text(request->decoder, digest, 32, err);
        if (job->reply->digest == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
    }
    request->more = job->done < job->n_roots;
out:
    return status;
}

enum vxd_status vxd_scene_verify_finish(struct vxd_request *request,
                                        struct vxd_queue *queue, struct vxd_err *err)
{
    struct verify_job *job = request->state;

    (void)err;
    job->reply->engine_ms = (double)request->engine_ns / 1e6;
    request->output = &job->reply->base;
    vxd_scene_close(request, queue);
    return VXD_OK;
}

/* --- collect ---------------------------------------------------------------------------- */

struct collect_job {
    struct vxd_scene_job base; /* first: request->state is both */
    Voxeld__V1__SceneCollectResponse *reply;
    uint64_t which;
    struct vxd_scene_collected collected;
};

enum vxd_status vxd_scene_collect_check(struct vxd_request *request, struct vxd_err *err)
{
    request->bulk = true;
    return vxd_noun_begin_check(
        request, sizeof(struct collect_job),
        ((const Voxeld__V1__SceneCollectRequest *)request->input)->name, err);
}

/* One slice is a stage. */
enum vxd_status vxd_scene_collect_submit(struct vxd_request *request,
                                         struct vxd_queue *queue, struct vxd_err *err)
{
    const Voxeld__V1__SceneCollectRequest *input =
        (const Voxeld__V1__SceneCollectRequest *)request->input;
    struct collect_job *job = request->state;
    bool is_done;
    enum vxd_status status = VXD_OK;

    if (job->reply == NULL) {
        job->reply = vxd_message_new(
            request->decoder, &voxeld__v1__scene_collect_response__descriptor, err);
        if (job->reply == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
        VXD_TRY(vxd_scene_open(request, input->name, NULL, err));
        /* Otherwise the old store would stay as long as this request. */
        vxd_scene_unpin(request->server->scenes, &job->base.state, queue);
    }
    VXD_TRY(vxd_scene_collect(job->base.scene, queue, &job->which, &is_done,
                              &job->collected, err));
    request->more = !is_done;
out:
    return status;
}

enum vxd_status vxd_scene_collect_finish(struct vxd_request *request,
                                         struct vxd_queue *queue, struct vxd_err *err)
{
    const struct collect_job *job = request->state;
    const struct vxd_scene_collected *collected = &job->collected;
    Voxeld__V1__SceneCollectResponse *reply = job->reply;

    (void)err;
    reply->n_bytes_before = collected->before.n_bytes;
    reply->n_bytes_after = collected->after.n_bytes;
    reply->n_nodes_before = collected->before.n_leaves + collected->before.n_inner;
    reply->n_nodes_after = collected->after.n_leaves + collected->after.n_inner;
    reply->n_slices = collected->n_slices;
    reply->longest_slice_ms = (double)collected->longest_slice_ns / 1e6;
    reply->engine_ms = (double)request->engine_ns / 1e6;
    request->output = &reply->base;
    vxd_scene_close(request, queue);
    return VXD_OK;
}
