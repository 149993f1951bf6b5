// SPDX-License-Identifier: Apache-2.0
/* Why a request was refused, or takes so long. The method never enters the queue, so it answers
 * however busy the engine is. */
#include <inttypes.h>
#include <stdlib.h>

#include "proto/wire/wire.h"
#include "server/instance/instance.h"
#include "server/observe/observe.h"
#include "server/schedule/schedule.h"
#include "server/service/service.h"
#include "voxeld/v1/why.pb-c.h"

/* Stages that take less are not worth a word. */
#define LEAST_MS 1.0

/* "3 voxelize of planner, 1 scene_edit of robot-7" of those that run, or of those that wait. */
static void write_groups(struct vxd_text *text, const struct vxd_why_queue *queue,
                         bool is_running)
{
    const char *comma = "";

    for (uint32_t i = 0; i < queue->n_groups; i++) {
        const struct vxd_why_ahead *group = &queue->groups[i];

        if (group->is_running == is_running) {
            vxd_text_printf(text, "%s%u %s of %s", comma, group->n, group->method,
                            group->token);
            comma = ", ";
        }
    }
    if (!is_running && queue->n_others > 0) {
        vxd_text_printf(text, "%s%u others", comma, queue->n_others);
    }
}

static bool has_group(const struct vxd_why_queue *queue, bool is_running)
{
    for (uint32_t i = 0; i < queue->n_groups; i++) {
        if (queue->groups[i].is_running == is_running) {
            return true;
        }
    }
    return false;
}

static void write_queue(struct vxd_text *text, const struct vxd_why_entry *entry)
{
    const char *when =
        entry->state == VXD_WHY_ANSWERED ? "When it came, " : "Before it, ";

    if (!entry->has_queue || entry->queue.n_groups == 0) {
        return;
    }
    vxd_text_printf(text, " %s%u waited", when, entry->queue.position);
    if (has_group(&entry->queue, false)) {
        vxd_text_printf(text, " (");
        write_groups(text, &entry->queue, false);
        vxd_text_printf(text, ")");
    }
    if (has_group(&entry->queue, true)) {
        vxd_text_printf(text, " and the engine ran ");
        write_groups(text, &entry->queue, true);
    }
    vxd_text_printf(text, ".");
}

static void write_stages(struct vxd_text *text, const struct vxd_why_entry *entry)
{
    const struct {
        const char *what;
        double ms;
    } stages[] = {{"arriving", entry->receive_ms},
                  {"being decoded", entry->decode_ms},
                  {"waiting in the queue", entry->wait_ms},
                  {"in the engine", entry->engine_ms},
                  {"waiting for the journal", entry->commit_ms}};
    const char *comma = "";

    vxd_text_printf(text, "It took %.0f ms", entry->total_ms);
    for (size_t i = 0; i < sizeof stages / sizeof stages[0]; i++) {
        if (stages[i].ms >= LEAST_MS) {
            vxd_text_printf(text, "%s%.0f ms %s", comma[0] != '\0' ? comma : ": ",
                            stages[i].ms, stages[i].what);
            comma = ", ";
        }
    }
    vxd_text_printf(text, ".");
}

static void write_summary(struct vxd_text *text, const struct vxd_why_entry *entry)
{
    switch (entry->state) {
    case VXD_WHY_WAITS:
        vxd_text_printf(text, "It waits in the queue, since %.0f ms.", entry->total_ms);
        break;
    case VXD_WHY_RUNS:
        vxd_text_printf(text, "It runs, since %.0f ms; %.0f ms of them in the engine.",
                        entry->total_ms, entry->engine_ms);
        break;
    case VXD_WHY_ANSWERED:
        if (entry->err.code != VXD_OK) {
            vxd_text_printf(text, "It ended as %s: %s%s%s. ",
                            vxd_status_name(entry->err.code), entry->err.field,
                            entry->err.field[0] != '\0' ? ": " : "", entry->err.message);
        }
        write_stages(text, entry);
        break;
    }
    write_queue(text, entry);
    if (entry->has_limit) {
        vxd_text_printf(text, " The configuration has %s = %" PRIu64 ".", entry->key,
                        entry->limit);
    } else if (entry->key[0] != '\0') {
        vxd_text_printf(text, " See %s in the configuration.", entry->key);
    }
}

/* Returns NULL without memory. */
static char *copy_text(struct vxd_request *request, const char *text, struct vxd_err *err)
{
    return vxd_message_text(request->decoder, text, strlen(text), err);
}

static enum vxd_status set_ahead(struct vxd_request *request,
                                 const struct vxd_why_queue *queue,
                                 Voxeld__V1__WhyResponse *reply, struct vxd_err *err)
{
    reply->ahead = vxd_message_pointers(request->decoder, queue->n_groups, err);
    if (reply->ahead == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (uint32_t i = 0; i < queue->n_groups; i++) {
        Voxeld__V1__WhyAhead *ahead =
            vxd_message_new(request->decoder, &voxeld__v1__why_ahead__descriptor, err);

        if (ahead == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
        ahead->method = copy_text(request, queue->groups[i].method, err);
        ahead->token = copy_text(request, queue->groups[i].token, err);
        if (ahead->method == NULL || ahead->token == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
        ahead->n = queue->groups[i].n;
        ahead->is_running = queue->groups[i].is_running;
        reply->ahead[i] = ahead;
    }
    reply->n_ahead = queue->n_groups;
    reply->n_others = queue->n_others;
    reply->queue_position = queue->position;
    return VXD_OK;
}

static enum vxd_status set_texts(struct vxd_request *request,
                                 const struct vxd_why_entry *entry,
                                 Voxeld__V1__WhyResponse *reply, struct vxd_err *err)
{
    static const char *const states[] = {"answered", "waits", "runs"};
    struct vxd_text summary = {0};

    write_summary(&summary, entry);
    if (!summary.failed) {
        reply->summary =
            vxd_message_text(request->decoder, summary.bytes, summary.n_bytes, err);
    }
    free(summary.bytes);
    reply->request_id = copy_text(request, entry->request_id, err);
    reply->method = copy_text(request, entry->method, err);
    reply->token = copy_text(request, entry->token, err);
    reply->state = copy_text(request, states[entry->state], err);
    reply->message = copy_text(request, entry->err.message, err);
    reply->field = copy_text(request, entry->err.field, err);
    reply->key = copy_text(request, entry->key, err);
    reply->trace_id = copy_text(request, entry->trace_id, err);
    if (summary.failed || reply->summary == NULL || reply->request_id == NULL ||
        reply->method == NULL || reply->token == NULL || reply->state == NULL ||
        reply->message == NULL || reply->field == NULL || reply->key == NULL ||
        reply->trace_id == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for the reply");
    }
    return VXD_OK;
}

enum vxd_status vxd_why_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__WhyRequest *input = (const Voxeld__V1__WhyRequest *)request->input;
    struct vxd_server *server = request->server;
    bool sees_all = (request->principal.scopes & (uint32_t)VXD_SCOPE_ADMIN) != 0;
    const char *token = sees_all ? NULL : request->principal.name;
    Voxeld__V1__WhyResponse *reply =
        vxd_message_new(request->decoder, &voxeld__v1__why_response__descriptor, err);
    struct vxd_why_entry entry;
    enum vxd_status status;

    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    if (input->request_id[0] == '\0') {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "request_id",
                        "is empty; a reply, an error or the log says it");
    }
    if (!vxd_scheduler_explain(server->scheduler, input->request_id, token, &entry) &&
        !vxd_whys_find(server->whys, input->request_id, token, &entry)) {
        return vxd_fail(
            err, VXD_NOT_FOUND, "request_id",
            "nothing is known of %.63s%s: only requests that wait, run, failed "
            "or took 10 ms are remembered, and the last ones of each token",
            input->request_id, sees_all ? "" : " of yours");
    }
    VXD_TRY(set_texts(request, &entry, reply, err));
    VXD_TRY(set_ahead(request, &entry.queue, reply, err));
    reply->code = (Voxeld__V1__Code)entry.err.code;
    reply->limit = entry.has_limit ? entry.limit : 0;
    reply->receive_ms = entry.receive_ms;
    reply->decode_ms = entry.decode_ms;
    reply->wait_ms = entry.wait_ms;
    reply->engine_ms = entry.engine_ms;
    reply->commit_ms = entry.commit_ms;
    reply->total_ms = entry.total_ms;
    reply->finished_ns = entry.finished_unix_ns;
    request->output = &reply->base;
out:
    return status;
}
