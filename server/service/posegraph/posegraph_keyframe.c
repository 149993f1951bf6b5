// SPDX-License-Identifier: Apache-2.0
/* Clouds and descriptors of requests, and keyframes. A network, if one is named, is run by an Infer
 * request of the server's own before the request's turn comes. */
#include <math.h>
#include <stdlib.h>

#include "server/instance/instance.h"
#include "server/request/request.h"
#include "server/service/network/network.h"
#include "server/service/posegraph/posegraph_service.h"
#include "server/service/service.h"
#include "voxeld/v1/network.pb-c.h"

/* --- scans ------------------------------------------------------------------------------------- */

enum vxd_status vxd_posegraph_scan_check(struct vxd_request *request,
                                         struct vxd_posegraph_scan *scan,
                                         struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    if (scan->network[0] != '\0') {
        VXD_TRY(vxd_noun_check_name(scan->network, "network", err));
    }
    if (scan->network[0] != '\0' && scan->n_descriptor > 0) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "descriptor",
                         "is given beside network, whose output it is"));
    }
    if (scan->network[0] == '\0' && scan->output[0] != '\0') {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "output", "needs a network"));
    }
    if (scan->n_descriptor > VXD_RELOCALIZE_MAX_DESCRIPTOR) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "descriptor",
                         "has %zu values, at most %d are possible", scan->n_descriptor,
                         VXD_RELOCALIZE_MAX_DESCRIPTOR));
    }
    for (size_t i = 0; i < scan->n_descriptor; i++) {
        if (!isfinite(scan->descriptor[i])) {
            VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "descriptor",
                             "value %zu is not finite", i));
        }
    }
    if (scan->cloud == NULL) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "cloud", "is required"));
    }
    scan->clouds.clouds = &scan->cloud;
    scan->clouds.n_clouds = 1;
    status = vxd_clouds_check(request, &scan->clouds, err);
    if (status != VXD_OK) {
        vxd_clouds_name_one(err);
        goto out;
    }
    if (scan->clouds.n_points > VXD_RELOCALIZE_MAX_POINTS) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "cloud.data",
                         "has %zu points; at most %d are possible", scan->clouds.n_points,
                         VXD_RELOCALIZE_MAX_POINTS));
    }
    request->n_points = scan->clouds.n_points;
    request->cost_bytes = request->body_bytes + scan->clouds.n_points * 36;
out:
    return status;
}

enum vxd_status vxd_posegraph_scan_prerequisite(struct vxd_request *request,
                                                const struct vxd_posegraph_scan *scan,
                                                bool *waits, struct vxd_err *err)
{
    struct vxd_request *run = NULL;
    Voxeld__V1__InferRequest *input;
    enum vxd_status status;

    *waits = scan->cloud != NULL && scan->network[0] != '\0';
    if (!*waits) {
        return VXD_OK;
    }
    VXD_TRY(vxd_request_create_prerequisite(
        request, vxd_method_by_name(request->server->methods, "infer"), &run, err));
    input = vxd_message_new(run->decoder, &voxeld__v1__infer_request__descriptor, err);
    if (input == NULL) {
        VXD_TRY(VXD_RESOURCE_EXHAUSTED);
    }
    input->clouds = vxd_message_pointers(run->decoder, 1, err);
    input->outputs = vxd_message_pointers(run->decoder, 1, err);
    if (input->clouds == NULL || input->outputs == NULL) {
        VXD_TRY(VXD_RESOURCE_EXHAUSTED);
    }
    input->clouds[0] = scan->cloud;
    input->n_clouds = 1;
    input->network = (char *)(uintptr_t)scan->network;
    input->outputs[0] = (char *)(uintptr_t)scan->output;
    input->n_outputs = scan->output[0] != '\0' ? 1 : 0;
    input->no_coords = true;
    run->input = &input->base;
    run->body_bytes = request->body_bytes;
    VXD_TRY(run->method->check(run, err));
    run->n_points = 0; /* this request counts them */
    return vxd_request_submit_prerequisite(run, err);
out:
    if (status != VXD_OK) {
        vxd_clouds_name_one(err);
    }
    if (run != NULL) {
        vxd_request_drop(run);
    }
    return status;
}

enum vxd_status vxd_posegraph_scan_take(struct vxd_posegraph_scan *scan,
                                        const ProtobufCMessage *output,
                                        struct vxd_err *err)
{
    const Voxeld__V1__InferResponse *reply = (const Voxeld__V1__InferResponse *)output;
    const Voxeld__V1__Tensor *values = NULL;

    if (reply->n_items == 1 && reply->items[0]->code != VOXELD__V1__CODE__OK) {
        return vxd_fail(err, (enum vxd_status)reply->items[0]->code, "cloud", "%s",
                        reply->items[0]->message);
    }
    for (size_t i = 0; i < reply->n_outputs && values == NULL; i++) {
        if (reply->outputs[i]->kind == VOXELD__V1__NETWORK_OUTPUT_KIND__NETWORK_VECTOR) {
            values = reply->outputs[i]->values;
        }
    }
    if (values == NULL || values->dtype != VOXELD__V1__DTYPE__FLOAT32 ||
        values->data.len == 0) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT,
                        scan->output[0] != '\0' ? "output" : "network",
                        "the network \"%s\" gives no vector for a cloud", scan->network);
    }
    scan->descriptor = malloc(values->data.len);
    if (scan->descriptor == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a descriptor");
    }
    scan->owns_descriptor = true;
    scan->n_descriptor = values->data.len / sizeof(float);
    memcpy(scan->descriptor, values->data.data, scan->n_descriptor * sizeof(float));
    for (size_t i = 0; i < scan->n_descriptor; i++) {
        if (!isfinite(scan->descriptor[i])) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "network",
                            "the network \"%s\" gives a descriptor that is not finite",
                            scan->network);
        }
    }
    return VXD_OK;
}

enum vxd_status vxd_posegraph_scan_fetch(struct vxd_posegraph_scan *scan,
                                         struct vxd_queue *queue, struct vxd_err *err)
{
    struct vxd_context *context = vxd_queue_context(queue);
    size_t n = scan->clouds.n_points;
    size_t n_bytes = n * 3 * sizeof(float);
    const float *rows;
    enum vxd_status status;

    VXD_TRY(vxd_device_alloc(queue, n_bytes + 1, &scan->positions, err));
    rows = scan->positions.ptr;
    VXD_TRY(vxd_clouds_decode(&scan->clouds, queue, scan->positions.ptr, NULL, err));
    if (vxd_context_backend(context) == VXD_BACKEND_CUDA && n > 0) {
        VXD_TRY(vxd_host_alloc(context, n_bytes, &scan->host, err));
        VXD_TRY(vxd_queue_copy(queue, scan->host.ptr, scan->positions.ptr, n_bytes, err));
        rows = scan->host.ptr;
    }
    VXD_TRY(vxd_queue_wait(queue, err));
    scan->points = malloc(n_bytes + 1);
    if (scan->points == NULL) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a scan"));
    }
    scan->n_points = 0;
    for (size_t i = 0; i < n; i++) {
        const float *p = rows + 3 * i;

        if (isfinite(p[0]) && isfinite(p[1]) && isfinite(p[2])) {
            memcpy(scan->points + 3 * scan->n_points++, p, 3 * sizeof *p);
        }
    }
out:
    return status;
}

void vxd_posegraph_scan_free(struct vxd_posegraph_scan *scan, struct vxd_queue *queue)
{
    vxd_clouds_free(&scan->clouds, queue);
    vxd_device_free(queue, &scan->positions);
    vxd_host_free(vxd_queue_context(queue), &scan->host);
}

void vxd_posegraph_scan_forget(struct vxd_posegraph_scan *scan)
{
    free(scan->points);
    scan->points = NULL;
    if (scan->owns_descriptor) {
        free(scan->descriptor);
        scan->descriptor = NULL;
        scan->owns_descriptor = false;
    }
}

/* --- keyframes ------------------------------------------------------------------------------------ */

struct keyframe_job {
    struct vxd_posegraph_job base; /* first: request->state is both */
    struct vxd_posegraph_scan scan;
    struct vxd_posegraph_record_node node;
};

enum vxd_status vxd_posegraph_add_keyframe_check(struct vxd_request *request,
                                                 struct vxd_err *err)
{
    const Voxeld__V1__PosegraphAddKeyframeRequest *input =
        (const Voxeld__V1__PosegraphAddKeyframeRequest *)request->input;
    struct keyframe_job *job;
    enum vxd_status status;

    VXD_TRY(vxd_noun_begin_check(request, sizeof *job, input->name, err));
    job = request->state;
    job->node.id = input->id;
    VXD_TRY(vxd_posegraph_read_pose(input->t_map_node, "T_map_node",
                                    &job->node.T_map_node, err));
    job->scan = (struct vxd_posegraph_scan){.cloud = input->cloud,
                                            .network = input->network,
                                            .output = input->output,
                                            .descriptor = input->descriptor,
                                            .n_descriptor = input->n_descriptor};
    if (input->cloud != NULL) {
        job->node.stamp_ns = input->cloud->stamp_ns;
    }
    status = vxd_posegraph_scan_check(request, &job->scan, err);
out:
    return status;
}

enum vxd_status vxd_posegraph_add_keyframe_prerequisite(struct vxd_request *request,
                                                        bool *waits, struct vxd_err *err)
{
    const struct keyframe_job *job = request->state;

    return vxd_posegraph_scan_prerequisite(request, &job->scan, waits, err);
}

enum vxd_status vxd_posegraph_add_keyframe_take(struct vxd_request *request,
                                                const ProtobufCMessage *output,
                                                struct vxd_err *err)
{
    struct keyframe_job *job = request->state;

    return vxd_posegraph_scan_take(&job->scan, output, err);
}

void vxd_posegraph_add_keyframe_forget(struct vxd_request *request)
{
    struct keyframe_job *job = request->state;

    if (job != NULL) {
        vxd_posegraph_scan_forget(&job->scan);
    }
}

enum vxd_status vxd_posegraph_add_keyframe_submit(struct vxd_request *request,
                                                  struct vxd_queue *queue,
                                                  struct vxd_err *err)
{
    const Voxeld__V1__PosegraphAddKeyframeRequest *input =
        (const Voxeld__V1__PosegraphAddKeyframeRequest *)request->input;
    struct keyframe_job *job = request->state;
    Voxeld__V1__PosegraphAddKeyframeResponse *reply = vxd_message_new(
        request->decoder, &voxeld__v1__posegraph_add_keyframe_response__descriptor, err);
    struct vxd_posegraph_record_keyframe keyframe = {.node = 0};
    struct vxd_posegraph_record record = {
        .kind = VXD_POSEGRAPH_RECORD_ADD, .n_keyframes = 1, .keyframes = &keyframe};
    const struct vxd_posegraph_content *content;
    enum vxd_status status;

    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(vxd_posegraph_open(request, input->name, err));
    content = &job->base.graph->content;
    VXD_TRY(vxd_posegraph_scan_fetch(&job->scan, queue, err));
    keyframe.node = vxd_posegraph_find(content, input->id);
    reply->existed = keyframe.node != UINT32_MAX;
    if (!reply->existed) {
        keyframe.node = (uint32_t)content->n_nodes;
        record.n_nodes = 1;
        record.nodes = &job->node;
    }
    keyframe.n_points = (uint32_t)job->scan.n_points;
    keyframe.points = job->scan.points;
    keyframe.n_descriptor = (uint32_t)job->scan.n_descriptor;
    keyframe.descriptor = job->scan.descriptor;
    VXD_TRY(vxd_posegraph_change(request, &record, err));
    reply->n_points = keyframe.n_points;
    reply->n_descriptor = keyframe.n_descriptor;
    reply->n_keyframes = content->n_keyframes;
    request->output = &reply->base;
out:
    return status;
}

void vxd_posegraph_add_keyframe_release(struct vxd_request *request,
                                        struct vxd_queue *queue)
{
    struct keyframe_job *job = request->state;

    vxd_posegraph_scan_free(&job->scan, queue);
    vxd_posegraph_release(request, queue);
}
