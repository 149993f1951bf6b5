// SPDX-License-Identifier: Apache-2.0
/* How far jobs are, and their end; answered on the transport's thread. */
#include "proto/base/clock.h"
#include "server/instance/instance.h"
#include "server/service/service.h"
#include "server/service/slac/slac_service.h"

enum vxd_status vxd_slac_progress_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__SlacProgressRequest *input =
        (const Voxeld__V1__SlacProgressRequest *)request->input;
    struct vxd_slac_progress progress = {0};
    Voxeld__V1__SlacProgressResponse *reply;
    int64_t end_ns;
    enum vxd_status status;

    VXD_TRY(vxd_noun_check_name(input->name, "name", err));
    VXD_TRY(vxd_slac_jobs_get(request->server->slac, input->name, &progress, err));
    reply = vxd_message_new(request->decoder,
                            &voxeld__v1__slac_progress_response__descriptor, err);
    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    reply->error =
        vxd_message_text(request->decoder, progress.error, strlen(progress.error), err);
    if (reply->error == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    end_ns = progress.ended_ns != 0 ? progress.ended_ns : vxd_clock_ns();
    reply->state = progress.state;
    reply->iteration = progress.iteration;
    reply->iterations = progress.iterations;
    reply->data = progress.loss.data;
    reply->regularizer = progress.loss.regularizer;
    reply->n_pairs = progress.loss.n_pairs;
    reply->n_edges = progress.loss.n_edges;
    reply->n_control_points = progress.n_control_points;
    reply->elapsed_s = (double)(end_ns - progress.began_ns) / 1e9;
    request->output = &reply->base;
out:
    return status;
}

enum vxd_status vxd_slac_cancel_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__SlacCancelRequest *input =
        (const Voxeld__V1__SlacCancelRequest *)request->input;
    Voxeld__V1__SlacCancelResponse *reply = vxd_message_new(
        request->decoder, &voxeld__v1__slac_cancel_response__descriptor, err);
    bool was_running = false;
    enum vxd_status status;

    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(vxd_noun_check_name(input->name, "name", err));
    VXD_TRY(vxd_slac_jobs_cancel(request->server->slac, input->name, &was_running, err));
    reply->was_running = was_running;
    request->output = &reply->base;
out:
    return status;
}
