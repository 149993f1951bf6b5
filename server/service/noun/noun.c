// SPDX-License-Identifier: Apache-2.0
/* List, get and drop of every noun. */
#include "server/service/noun/noun.h"

#include <stdlib.h>

#include "server/service/service.h"

struct job {
    struct vxd_named *named; /* held */
    struct vxd_named_commit commit;
    struct vxd_decoder
        *arena; /* of a list: not the request's, whose budget depends on its size */
};

static const struct vxd_noun_service *service_of(const struct vxd_request *request)
{
    return request->method->noun;
}

static struct vxd_names *names_of(const struct vxd_request *request)
{
    return service_of(request)->names(request->server);
}

/* --- fields of messages ----------------------------------------------------------------------------- */

static size_t offset_of(const ProtobufCMessageDescriptor *descriptor, const char *field)
{
    return protobuf_c_message_descriptor_get_field_by_name(descriptor, field)->offset;
}

static void *field_of(ProtobufCMessage *message, const char *field)
{
    return (char *)message + offset_of(message->descriptor, field);
}

static const char *name_of(const struct vxd_request *request)
{
    const ProtobufCMessage *input = request->input;
    const void *field = (const char *)input + offset_of(input->descriptor, "name");

    return *(char *const *)field;
}

static bool missing_is_ok(const struct vxd_request *request)
{
    const ProtobufCMessage *input = request->input;
    const void *field = (const char *)input + offset_of(input->descriptor, "missing_ok");

    return *(const protobuf_c_boolean *)field != 0;
}

/* A list that also has what all things take. */
static void set_number(ProtobufCMessage *message, const char *field, uint64_t value)
{
    const ProtobufCFieldDescriptor *found =
        protobuf_c_message_descriptor_get_field_by_name(message->descriptor, field);

    if (found != NULL) {
        *(uint64_t *)field_of(message, field) = value;
    }
}

/* --- check ------------------------------------------------------------------------------------------ */

enum vxd_status vxd_noun_named_check(struct vxd_request *request, struct vxd_err *err)
{
    return vxd_noun_begin_check(request, sizeof(struct job), name_of(request), err);
}

enum vxd_status vxd_noun_list_check(struct vxd_request *request, struct vxd_err *err)
{
    request->state = vxd_message_array(request->decoder, 1, sizeof(struct job), err);
    return request->state != NULL ? VXD_OK : VXD_RESOURCE_EXHAUSTED;
}

bool vxd_noun_changes(const struct vxd_request *request)
{
    (void)request;
    return true;
}

enum vxd_status vxd_noun_done(struct vxd_request *request, struct vxd_queue *queue,
                              struct vxd_err *err)
{
    (void)request;
    (void)queue;
    (void)err;
    return VXD_OK;
}

/* --- create ----------------------------------------------------------------------------------------- */

/* errors  ALREADY_EXISTS  says which parameters of the thing are others */
static enum vxd_status check_equal(const struct vxd_request *request,
                                   const struct vxd_named *has,
                                   const struct vxd_named_terms *wished,
                                   struct vxd_err *err)
{
    const struct vxd_noun_maker *maker = service_of(request)->maker;
    struct vxd_differing differing = {.n = 0};

    if (maker->compare != NULL) {
        maker->compare(request, has, &differing);
    }
    vxd_noun_compare_terms(&has->terms, wished, &differing);
    return vxd_differing_check(&differing, maker->one, has->terms.name, err);
}

/* Finds the thing, or makes it. */
static enum vxd_status find_or_make(struct vxd_request *request, struct vxd_queue *queue,
                                    struct vxd_noun_create *job, struct vxd_err *err)
{
    const struct vxd_noun_maker *maker = service_of(request)->maker;
    enum vxd_status status;

    job->named = vxd_names_find(names_of(request), job->terms.name);
    if (job->named != NULL) {
        vxd_named_hold(job->named);
        VXD_TRY(vxd_named_check_visible(job->named, err));
        return check_equal(request, job->named, &job->terms, err);
    }
    if (maker->entry_bytes > 0) {
        job->commit.more =
            vxd_message_array(request->decoder, 1, maker->entry_bytes, err);
        if (job->commit.more == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
    }
    VXD_TRY(maker->make(request, queue, &job->made, err));
    status = vxd_named_enter_journal(job->made, err);
out:
    return status;
}

enum vxd_status vxd_noun_create_submit(struct vxd_request *request,
                                       struct vxd_queue *queue, struct vxd_err *err)
{
    const struct vxd_noun_service *service = service_of(request);
    struct vxd_noun_create *job = request->state;
    ProtobufCMessage *reply =
        vxd_message_new(request->decoder, request->method->output, err);
    ProtobufCMessage *info = NULL;
    enum vxd_status status;

    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(find_or_make(request, queue, job, err));
    VXD_TRY(service->new_info(request, request->decoder,
                              job->made != NULL ? job->made : job->named, &info, err));
    *(protobuf_c_boolean *)field_of(reply, "existed") = job->named != NULL;
    *(ProtobufCMessage **)field_of(reply, service->info_field) = info;
    request->output = reply;
out:
    return status;
}

enum vxd_status vxd_noun_create_finish(struct vxd_request *request,
                                       struct vxd_queue *queue, struct vxd_err *err)
{
    struct vxd_noun_create *job = request->state;
    bool is_new = job->made != NULL;

    (void)queue;
    (void)err;
    if (is_new) {
        vxd_named_publish(job->made);
    }
    vxd_named_conclude(request, &job->commit, names_of(request),
                       is_new ? job->made : job->named,
                       is_new ? VXD_NAMED_MADE : VXD_NAMED_READ);
    return VXD_OK;
}

void vxd_noun_create_release(struct vxd_request *request, struct vxd_queue *queue)
{
    struct vxd_noun_create *job = request->state;

    vxd_named_end_commit(&job->commit);
    if (job->named != NULL) {
        vxd_named_drop(job->named, queue);
        job->named = NULL;
    }
    if (job->made != NULL) {
        vxd_named_drop(job->made, queue);
        job->made = NULL;
    }
}

/* --- drop ------------------------------------------------------------------------------------------- */

/* Whether a thing may be dropped: one that cannot be brought back from the disk may. */
static enum vxd_status check_droppable(struct vxd_named *named, struct vxd_err *err)
{
    enum vxd_status status = vxd_named_check_visible(named, err);
    bool is_lost = status == VXD_UNAVAILABLE && !named->durable.is_leaving &&
                   named->durable.n_waiting == 0;

    return status == VXD_OK || is_lost ? vxd_named_check_journal(named, 0, err) : status;
}

enum vxd_status vxd_noun_drop_submit(struct vxd_request *request, struct vxd_queue *queue,
                                     struct vxd_err *err)
{
    struct job *job = request->state;
    ProtobufCMessage *reply =
        vxd_message_new(request->decoder, request->method->output, err);
    enum vxd_status status = VXD_OK;

    (void)queue;
    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    request->output = reply;
    job->named = vxd_names_hold(names_of(request), name_of(request));
    if (job->named == NULL) {
        return missing_is_ok(request)
                   ? VXD_OK
                   : service_of(request)->missing(request, "name", name_of(request), err);
    }
    VXD_TRY(check_droppable(job->named, err));
    *(protobuf_c_boolean *)field_of(reply, "existed") = true;
out:
    return status;
}

enum vxd_status vxd_noun_drop_finish(struct vxd_request *request, struct vxd_queue *queue,
                                     struct vxd_err *err)
{
    const struct vxd_noun_service *service = service_of(request);
    struct job *job = request->state;

    (void)err;
    if (job->named != NULL && job->named->durable.journal_id != 0) {
        vxd_named_conclude(request, &job->commit, names_of(request), job->named,
                           VXD_NAMED_DROPPED);
    } else if (job->named != NULL) {
        vxd_named_remove(job->named, queue);
        if (service->dropped != NULL) {
            service->dropped(request, job->named);
        }
    }
    return VXD_OK;
}

/* --- list and get ----------------------------------------------------------------------------------- */

/* Makes the reply of a list, in the arena but for the message itself. */
static enum vxd_status fill_list(struct vxd_request *request, struct vxd_decoder *arena,
                                 struct vxd_named *const *held, size_t n,
                                 struct vxd_err *err)
{
    const struct vxd_noun_service *service = service_of(request);
    ProtobufCMessage *reply =
        vxd_message_new(request->decoder, request->method->output, err);
    ProtobufCMessage **infos = vxd_message_pointers(arena, n, err);
    const ProtobufCFieldDescriptor *list;
    struct vxd_names_usage usage;
    enum vxd_status status = VXD_OK;

    if (reply == NULL || infos == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (size_t i = 0; i < n; i++) {
        struct vxd_err why;

        /* This brings it back where that is possible. */
        (void)vxd_named_check_visible(held[i], &why);
        VXD_TRY(service->new_info(request, arena, held[i], &infos[i], err));
    }
    list = protobuf_c_message_descriptor_get_field_by_name(reply->descriptor,
                                                           service->list_field);
    *(ProtobufCMessage ***)((void *)((char *)reply + list->offset)) = infos;
    *(size_t *)((void *)((char *)reply + list->quantifier_offset)) = n;
    vxd_names_get_usage(names_of(request), &usage);
    set_number(reply, "n_bytes", usage.n_bytes);
    set_number(reply, "limit_bytes", usage.limit_bytes);
    if (service->add_to_list != NULL) {
        VXD_TRY(service->add_to_list(request, reply, err));
    }
    request->output = reply;
out:
    return status;
}

enum vxd_status vxd_noun_list_submit(struct vxd_request *request, struct vxd_queue *queue,
                                     struct vxd_err *err)
{
    size_t info_bytes = service_of(request)->max_info_bytes;
    struct job *job = request->state;
    struct vxd_decoder *arena = request->decoder;
    struct vxd_named **held;
    size_t n;
    enum vxd_status status = vxd_names_hold_all(names_of(request), &held, &n, err);

    if (status == VXD_OK && info_bytes > 0) {
        status = vxd_decoder_create((n + 1) * info_bytes, NULL, &job->arena, err);
        arena = job->arena;
    }
    if (status == VXD_OK) {
        status = fill_list(request, arena, held, n, err);
    }
    for (size_t i = 0; i < n; i++) {
        vxd_named_let_go(held[i], queue);
    }
    free(held);
    return status;
}

enum vxd_status vxd_noun_list_now_check(struct vxd_request *request, struct vxd_err *err)
{
    return vxd_noun_list_submit(request, NULL, err);
}

static enum vxd_status fill_get(struct vxd_request *request, struct vxd_queue *queue,
                                const struct vxd_named *named, struct vxd_err *err)
{
    const struct vxd_noun_service *service = service_of(request);
    ProtobufCMessage *reply =
        vxd_message_new(request->decoder, request->method->output, err);
    ProtobufCMessage *info = NULL;
    enum vxd_status status;

    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(service->new_info(request, request->decoder, named, &info, err));
    if (service->add_details != NULL) {
        VXD_TRY(service->add_details(request, queue, named, info, err));
    }
    *(ProtobufCMessage **)field_of(reply, service->info_field) = info;
    request->output = reply;
out:
    return status;
}

enum vxd_status vxd_noun_get_submit(struct vxd_request *request, struct vxd_queue *queue,
                                    struct vxd_err *err)
{
    struct job *job = request->state;
    enum vxd_status status;

    /* This is no use of the thing. */
    job->named = vxd_names_hold(names_of(request), name_of(request));
    if (job->named == NULL) {
        return service_of(request)->missing(request, "name", name_of(request), err);
    }
    VXD_TRY(vxd_named_check_visible(job->named, err));
    status = fill_get(request, queue, job->named, err);
out:
    return status;
}

enum vxd_status vxd_noun_get_now_check(struct vxd_request *request, struct vxd_err *err)
{
    struct vxd_named *named;
    enum vxd_status status;

    VXD_TRY(vxd_noun_check_name(name_of(request), "name", err));
    named = vxd_names_hold(names_of(request), name_of(request));
    if (named == NULL) {
        return service_of(request)->missing(request, "name", name_of(request), err);
    }
    status = fill_get(request, NULL, named, err);
    vxd_named_let_go(named, NULL);
out:
    return status;
}

enum vxd_status vxd_noun_read_finish(struct vxd_request *request, struct vxd_queue *queue,
                                     struct vxd_err *err)
{
    struct job *job = request->state;

    (void)queue;
    (void)err;
    if (job->named != NULL || job->arena != NULL) {
        vxd_named_conclude(request, &job->commit, names_of(request), job->named,
                           VXD_NAMED_READ);
    }
    return VXD_OK;
}

void vxd_noun_release(struct vxd_request *request, struct vxd_queue *queue)
{
    struct job *job = request->state;

    vxd_decoder_destroy(job->arena);
    job->arena = NULL;
    if (job->named != NULL) {
        vxd_named_let_go(job->named, queue);
        job->named = NULL;
    }
}
