// SPDX-License-Identifier: Apache-2.0
/* The memory of one request on a pose graph, poses of messages. */
#include <math.h>
#include <stdlib.h>

#include "server/instance/instance.h"
#include "server/service/columns/columns.h"
#include "server/service/existing/existing.h"
#include "server/service/posegraph/posegraph_service.h"
#include "server/service/service.h"

#define MAX_METRES 1e9

enum vxd_status vxd_posegraph_open(struct vxd_request *request, const char *name,
                                   struct vxd_err *err)
{
    struct vxd_posegraph_job *job = request->state;
    struct vxd_names *posegraphs = request->server->posegraphs;
    enum vxd_status status;

    job->graph = vxd_posegraphs_find(posegraphs, name);
    if (job->graph == NULL) {
        return vxd_missing_posegraph(request, "name", name, err);
    }
    vxd_named_hold(&job->graph->named);
    if (job->graph->named.durable.journal_id == 0) {
        return VXD_OK;
    }
    VXD_TRY(vxd_named_check_visible(&job->graph->named, err));
    if (request->method->changes == NULL) {
        vxd_posegraph_conclude(request, &job->commit, job->graph, VXD_NAMED_READ);
        return VXD_OK;
    }
    status = vxd_named_check_journal(&job->graph->named, 0, err);
out:
    return status;
}

enum vxd_status vxd_posegraph_peek(struct vxd_request *request, const char *name,
                                   const struct vxd_named_posegraph **graph,
                                   struct vxd_err *err)
{
    struct vxd_names *posegraphs = request->server->posegraphs;
    struct vxd_named_posegraph *found = vxd_posegraphs_find(posegraphs, name);
    enum vxd_status status = VXD_OK;

    *graph = NULL;
    if (found == NULL) {
        return vxd_missing_posegraph(request, "name", name, err);
    }
    request->bulk = true; /* others run between the stages */
    if (found->named.durable.journal_id != 0) {
        VXD_TRY(vxd_named_check_visible(&found->named, err));
        if (found->named.durable.n_waiting > 0) {
            request->more = true;
            request->is_waiting = true;
            return VXD_OK;
        }
    }
    *graph = found;
out:
    return status;
}

void vxd_posegraph_go_on_reading(struct vxd_request *request)
{
    atomic_store(&request->lane, VXD_LANE_READ);
    request->more = true;
}

enum vxd_status vxd_posegraph_tensor(struct vxd_request *request, enum vxd_dtype dtype,
                                     size_t n, size_t columns, Voxeld__V1__Tensor **out,
                                     void **array, struct vxd_err *err)
{
    struct vxd_posegraph_job *job = request->state;
    size_t n_bytes = n * (columns > 0 ? columns : 1) * vxd_dtype_bytes(dtype);
    Voxeld__V1__Tensor *tensor = NULL;
    enum vxd_status status;

    VXD_TRY(vxd_column_new_tensor(request, dtype, n, columns, &tensor, err));
    *array = calloc(n_bytes + 1, 1);
    if (*array == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "no memory for an array of %zu bytes", n_bytes);
    }
    job->arrays[job->n_arrays++] = *array;
    tensor->data.data = *array;
    tensor->data.len = n_bytes;
    *out = tensor;
out:
    return status;
}

void vxd_posegraph_release(struct vxd_request *request, struct vxd_queue *queue)
{
    struct vxd_posegraph_job *job = request->state;

    for (size_t i = 0; i < job->n_arrays; i++) {
        free(job->arrays[i]);
    }
    job->n_arrays = 0;
    vxd_named_end_commit(&job->commit);
    if (job->graph != NULL) {
        vxd_named_drop(&job->graph->named, queue);
        job->graph = NULL;
    }
}

/* --- fields -------------------------------------------------------------------------------------- */

enum vxd_status vxd_posegraph_read_pose(const Voxeld__V1__Pose *pose, const char *field,
                                        struct vxd_rigid *out, struct vxd_err *err)
{
    const Voxeld__V1__Vec3 *t = pose != NULL ? pose->translation : NULL;

    *out = (struct vxd_rigid){.q = {0, 0, 0, 1}};
    if (t != NULL) {
        if (!(fabs(t->x) <= MAX_METRES && fabs(t->y) <= MAX_METRES &&
              fabs(t->z) <= MAX_METRES)) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                            "its translation is not finite, or beyond 1e9 m");
        }
        out->t_m[0] = t->x;
        out->t_m[1] = t->y;
        out->t_m[2] = t->z;
    }
    return vxd_pose_read_quaternion(pose, field, out->q, err);
}

Voxeld__V1__Pose *vxd_posegraph_new_pose(struct vxd_decoder *decoder,
                                         const struct vxd_rigid *pose,
                                         struct vxd_err *err)
{
    return vxd_pose_new(decoder, pose->t_m, pose->q, err);
}
