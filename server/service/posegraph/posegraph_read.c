// SPDX-License-Identifier: Apache-2.0
/* What a pose graph has, as arrays. */
#include "server/instance/instance.h"
#include "server/service/posegraph/posegraph_service.h"
#include "server/service/service.h"

enum {
    FIXED = 1,
    KEYFRAME = 2
};

enum vxd_status vxd_posegraph_read_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__PosegraphReadRequest *input =
        (const Voxeld__V1__PosegraphReadRequest *)request->input;
    enum vxd_status status =
        vxd_noun_begin_check(request, sizeof(struct vxd_posegraph_job), input->name, err);

    if (status == VXD_OK && !input->keyframe && input->keyframe_id != 0) {
        status = vxd_fail(err, VXD_INVALID_ARGUMENT, "keyframe_id", "goes with keyframe");
    }
    return status;
}

static void put_pose(double *to, const struct vxd_rigid *pose)
{
    memcpy(to, pose->t_m, 3 * sizeof *to);
    memcpy(to + 3, pose->q, 4 * sizeof *to);
}

static enum vxd_status put_nodes(struct vxd_request *request,
                                 const struct vxd_posegraph_content *content,
                                 const struct vxd_posegraph_version *version,
                                 Voxeld__V1__PosegraphReadResponse *reply,
                                 struct vxd_err *err)
{
    size_t n = version != NULL ? version->n : 0;
    void *ids;
    void *poses;
    void *flags;
    enum vxd_status status;

    VXD_TRY(vxd_posegraph_tensor(request, VXD_UINT64, n, 0, &reply->ids, &ids, err));
    VXD_TRY(vxd_posegraph_tensor(request, VXD_FLOAT64, n, 7, &reply->poses, &poses, err));
    VXD_TRY(vxd_posegraph_tensor(request, VXD_UINT32, n, 0, &reply->flags, &flags, err));
    for (size_t i = 0; i < n; i++) {
        const struct vxd_posegraph_node *node = &content->nodes[i];

        ((uint64_t *)ids)[i] = node->id;
        put_pose((double *)poses + 7 * i, &version->poses[i]);
        ((uint32_t *)flags)[i] =
            (node->fixed ? FIXED : 0u) | (node->keyframe != NULL ? KEYFRAME : 0u);
    }
    reply->n_nodes = n;
out:
    return status;
}

/* Edges between nodes that the version has. */
static enum vxd_status put_edges(struct vxd_request *request,
                                 const struct vxd_posegraph_content *content,
                                 const struct vxd_posegraph_version *version,
                                 Voxeld__V1__PosegraphReadResponse *reply,
                                 struct vxd_err *err)
{
    size_t n_nodes = version != NULL ? version->n : 0;
    size_t n = 0;
    void *ids;
    void *poses;
    void *information;
    void *residuals;
    enum vxd_status status;

    for (size_t i = 0; i < content->n_edges; i++) {
        n += content->edges[i].from < n_nodes && content->edges[i].to < n_nodes ? 1 : 0;
    }
    reply->n_edges = n;
    VXD_TRY(vxd_posegraph_tensor(request, VXD_UINT64, n, 2, &reply->edge_ids, &ids, err));
    VXD_TRY(vxd_posegraph_tensor(request, VXD_FLOAT64, n, 7, &reply->edge_poses, &poses,
                                 err));
    VXD_TRY(vxd_posegraph_tensor(request, VXD_FLOAT64, n, 36, &reply->edge_information,
                                 &information, err));
    VXD_TRY(vxd_posegraph_tensor(request, VXD_FLOAT64, n, 2, &reply->edge_residuals,
                                 &residuals, err));
    n = 0;
    for (size_t i = 0; i < content->n_edges; i++) {
        const struct vxd_posegraph_edge *edge = &content->edges[i];
        double weight;

        if (edge->from >= n_nodes || edge->to >= n_nodes) {
            continue;
        }
        ((uint64_t *)ids)[2 * n] = content->nodes[edge->from].id;
        ((uint64_t *)ids)[2 * n + 1] = content->nodes[edge->to].id;
        put_pose((double *)poses + 7 * n, &edge->T_from_to);
        memcpy((double *)information + 36 * n, edge->information,
               sizeof edge->information);
        ((double *)residuals)[2 * n] = vxd_posegraph_edge_square(
            edge, &version->poses[edge->from], &version->poses[edge->to], &weight);
        ((double *)residuals)[2 * n + 1] = weight;
        n++;
    }
out:
    return status;
}

static enum vxd_status put_priors(struct vxd_request *request,
                                  const struct vxd_posegraph_content *content,
                                  Voxeld__V1__PosegraphReadResponse *reply,
                                  struct vxd_err *err)
{
    size_t n = content->n_priors;
    void *ids;
    void *poses;
    void *information;
    enum vxd_status status;

    reply->n_priors = n;
    VXD_TRY(
        vxd_posegraph_tensor(request, VXD_UINT64, n, 0, &reply->prior_ids, &ids, err));
    VXD_TRY(vxd_posegraph_tensor(request, VXD_FLOAT64, n, 7, &reply->prior_poses, &poses,
                                 err));
    VXD_TRY(vxd_posegraph_tensor(request, VXD_FLOAT64, n, 36, &reply->prior_information,
                                 &information, err));
    for (size_t i = 0; i < n; i++) {
        const struct vxd_posegraph_prior *prior = &content->priors[i];

        ((uint64_t *)ids)[i] = content->nodes[prior->node].id;
        put_pose((double *)poses + 7 * i, &prior->T_map_node);
        memcpy((double *)information + 36 * i, prior->information,
               sizeof prior->information);
    }
out:
    return status;
}

static enum vxd_status put_keyframe(struct vxd_request *request,
                                    const struct vxd_posegraph_content *content,
                                    uint64_t id, Voxeld__V1__PosegraphReadResponse *reply,
                                    struct vxd_err *err)
{
    uint32_t node = vxd_posegraph_find(content, id);
    const struct vxd_keyframe *keyframe;
    void *points;
    enum vxd_status status;

    if (node == UINT32_MAX || content->nodes[node].keyframe == NULL) {
        return vxd_fail(err, VXD_NOT_FOUND, "keyframe_id", "node %llu %s",
                        (unsigned long long)id,
                        node == UINT32_MAX ? "is not there" : "has no keyframe");
    }
    keyframe = content->nodes[node].keyframe;
    reply->n_points = keyframe->n_points;
    status = vxd_posegraph_tensor(request, VXD_FLOAT32, keyframe->n_points, 3,
                                  &reply->points, &points, err);
    if (status == VXD_OK && keyframe->n_points > 0) {
        memcpy(points, keyframe->points, (size_t)keyframe->n_points * 3 * sizeof(float));
    }
    return status;
}

enum vxd_status vxd_posegraph_read_submit(struct vxd_request *request,
                                          struct vxd_queue *queue, struct vxd_err *err)
{
    const Voxeld__V1__PosegraphReadRequest *input =
        (const Voxeld__V1__PosegraphReadRequest *)request->input;
    struct vxd_posegraph_job *job = request->state;
    Voxeld__V1__PosegraphReadResponse *reply = vxd_message_new(
        request->decoder, &voxeld__v1__posegraph_read_response__descriptor, err);
    const struct vxd_posegraph_content *content;
    const struct vxd_posegraph_version *version;
    enum vxd_status status;

    (void)queue;
    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(vxd_posegraph_open(request, input->name, err));
    content = &job->graph->content;
    version = vxd_posegraph_find_version(content, input->version);
    if (version == NULL && input->version != 0) {
        VXD_TRY(vxd_fail(err, VXD_NOT_FOUND, "version",
                         "%llu is not there; the last %d versions of the poses are kept",
                         (unsigned long long)input->version, VXD_POSEGRAPH_VERSIONS));
    }
    reply->version = version != NULL ? version->version : 0;
    VXD_TRY(put_nodes(request, content, version, reply, err));
    if (input->edges) {
        VXD_TRY(put_edges(request, content, version, reply, err));
        VXD_TRY(put_priors(request, content, reply, err));
    }
    if (input->keyframe) {
        VXD_TRY(put_keyframe(request, content, input->keyframe_id, reply, err));
    }
    request->output = &reply->base;
out:
    return status;
}
