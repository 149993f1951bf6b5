// SPDX-License-Identifier: Apache-2.0
/* Calls that change what a scene holds: edit and integrate, and lists of operations. */
#include <stdlib.h>
#include <string.h>

#include "client/c/call/call.h"
#include "client/c/scene/scene_call.h"

enum {
    FIRST_CAPACITY = 16,
    /* These are above what the server accepts, which reports it; they keep loops from
     * running over garbage counts. */
    MAX_OPERATIONS = 65536,
    MAX_LABELS = 65536
};

_Static_assert(
    (int)VOXELD_SHAPE_BOX == (int)VOXELD__V1__SCENE_OPERATION__SHAPE_BOX &&
        (int)VOXELD_SHAPE_BALL == (int)VOXELD__V1__SCENE_OPERATION__SHAPE_BALL &&
        (int)VOXELD_SHAPE_CAPSULE == (int)VOXELD__V1__SCENE_OPERATION__SHAPE_CAPSULE &&
        (int)VOXELD_SHAPE_HALF_SPACE ==
            (int)VOXELD__V1__SCENE_OPERATION__SHAPE_HALF_SPACE &&
        (int)VOXELD_SHAPE_POINTS == (int)VOXELD__V1__SCENE_OPERATION__SHAPE_POINTS &&
        (int)VOXELD_SHAPE_HEIGHTFIELD ==
            (int)VOXELD__V1__SCENE_OPERATION__SHAPE_HEIGHTFIELD &&
        (int)VOXELD_SCENE_FILL == (int)VOXELD__V1__SCENE_ACTION__SCENE_FILL &&
        (int)VOXELD_SCENE_REPLACE == (int)VOXELD__V1__SCENE_ACTION__SCENE_REPLACE &&
        (int)VOXELD_SCENE_COPY == (int)VOXELD__V1__SCENE_ACTION__SCENE_COPY &&
        (int)VOXELD_MATERIAL_LABEL == (int)VOXELD__V1__SCENE_MATERIAL_RULE__KIND__LABEL &&
        (int)VOXELD_MATERIAL_HEIGHT == (int)VOXELD__V1__SCENE_MATERIAL_RULE__KIND__HEIGHT,
    "one set of numbers");

struct voxeld_scene_operation *voxeld_scene_add(struct voxeld_scene_operations *list,
                                                enum voxeld_scene_shape shape)
{
    struct voxeld_scene_operation *operation;

    if (list->n == list->capacity) {
        size_t capacity = list->capacity > 0 ? list->capacity : FIRST_CAPACITY / 2;
        size_t n_bytes;
        struct voxeld_scene_operation *grown = NULL;

        if (vxd_size_mul(capacity, 2 * sizeof *grown, &n_bytes)) {
            grown = realloc(list->operations, n_bytes);
        }
        if (grown == NULL) {
            return NULL;
        }
        list->operations = grown;
        list->capacity = 2 * capacity;
    }
    operation = &list->operations[list->n++];
    memset(operation, 0, sizeof *operation);
    operation->shape = shape;
    return operation;
}

void voxeld_scene_clear(struct voxeld_scene_operations *list)
{
    free(list->operations);
    *list = (struct voxeld_scene_operations){0};
}

/* Edit ---------------------------------------------------------------------------------- */

/* The messages of one operation. */
struct wire_operation {
    Voxeld__V1__SceneOperation operation;
    union {
        Voxeld__V1__SceneBox box;
        Voxeld__V1__SceneBall ball;
        Voxeld__V1__SceneCapsule capsule;
        Voxeld__V1__SceneHalfSpace half_space;
        Voxeld__V1__ScenePoints points;
        Voxeld__V1__SceneHeightfield heightfield;
    } u;
    Voxeld__V1__Vec3 a;
    Voxeld__V1__Vec3 b;
    Voxeld__V1__SceneCopy copy;
    Voxeld__V1__Vec3 from;
    int32_t matrix[9];
};

static enum vxd_status build_points(struct vxd_exchange *call, size_t i,
                                    const struct voxeld_scene_points *in,
                                    Voxeld__V1__ScenePoints *out)
{
    char field[64];
    enum vxd_status status;

    voxeld__v1__scene_points__init(out);
    (void)snprintf(field, sizeof field, "operations[%zu].points.points", i);
    VXD_TRY(vxd_exchange_tensor(call, field, &in->points, &out->points));
    (void)snprintf(field, sizeof field, "operations[%zu].points.materials", i);
    VXD_TRY(vxd_exchange_tensor(call, field, &in->materials, &out->materials));
out:
    return status;
}

static enum vxd_status build_heights(struct vxd_exchange *call, size_t i,
                                     const struct voxeld_scene_heightfield *in,
                                     Voxeld__V1__SceneHeightfield *out)
{
    char field[64];
    enum vxd_status status;

    voxeld__v1__scene_heightfield__init(out);
    (void)snprintf(field, sizeof field, "operations[%zu].heightfield.heights", i);
    VXD_TRY(vxd_exchange_tensor(call, field, &in->heights, &out->heights));
    if (out->heights != NULL) {
        out->heights->n_shape = 2; /* shape[1] is always filled, with one column too */
    }
    out->x = in->x;
    out->y = in->y;
    out->cell = in->cell;
    out->low_z = in->low_z;
out:
    return status;
}

static enum vxd_status build_shape(struct vxd_exchange *call, size_t i,
                                   const struct voxeld_scene_operation *in,
                                   struct wire_operation *w)
{
    Voxeld__V1__SceneOperation *out = &w->operation;

    switch (in->shape) {
    case VOXELD_SHAPE_BOX:
        voxeld__v1__scene_box__init(&w->u.box);
        w->u.box.low = vxd_scene_vec3(in->in.box.low, &w->a);
        w->u.box.high = vxd_scene_vec3(in->in.box.high, &w->b);
        out->box = &w->u.box;
        break;
    case VOXELD_SHAPE_BALL:
        voxeld__v1__scene_ball__init(&w->u.ball);
        w->u.ball.centre = vxd_scene_vec3(in->in.ball.centre, &w->a);
        w->u.ball.radius = in->in.ball.radius;
        w->u.ball.noise = in->in.ball.noise;
        w->u.ball.noise_cell_bits = in->in.ball.noise_cell_bits;
        w->u.ball.noise_seed = in->in.ball.noise_seed;
        out->ball = &w->u.ball;
        break;
    case VOXELD_SHAPE_CAPSULE:
        voxeld__v1__scene_capsule__init(&w->u.capsule);
        w->u.capsule.a = vxd_scene_vec3(in->in.capsule.a, &w->a);
        w->u.capsule.b = vxd_scene_vec3(in->in.capsule.b, &w->b);
        w->u.capsule.radius = in->in.capsule.radius;
        out->capsule = &w->u.capsule;
        break;
    case VOXELD_SHAPE_HALF_SPACE:
        voxeld__v1__scene_half_space__init(&w->u.half_space);
        w->u.half_space.normal = vxd_scene_vec3(in->in.half_space.normal, &w->a);
        w->u.half_space.offset = in->in.half_space.offset;
        out->half_space = &w->u.half_space;
        break;
    case VOXELD_SHAPE_POINTS:
        out->points = &w->u.points;
        out->shape_case = VOXELD__V1__SCENE_OPERATION__SHAPE_POINTS;
        return build_points(call, i, &in->in.points, &w->u.points);
    case VOXELD_SHAPE_HEIGHTFIELD:
        out->heightfield = &w->u.heightfield;
        out->shape_case = VOXELD__V1__SCENE_OPERATION__SHAPE_HEIGHTFIELD;
        return build_heights(call, i, &in->in.heightfield, &w->u.heightfield);
    case VOXELD_SHAPE_NONE: /* the server says what is missing */
        return VXD_OK;
    default: {
        char field[48];

        (void)snprintf(field, sizeof field, "operations[%zu].shape", i);
        return vxd_fail(&call->err, VXD_INVALID_ARGUMENT, field, "%d is no shape",
                        (int)in->shape);
    }
    }
    out->shape_case = (Voxeld__V1__SceneOperation__ShapeCase)in->shape;
    return VXD_OK;
}

static void build_copy(const struct voxeld_scene_copy *in, struct wire_operation *w)
{
    bool turns = false;

    voxeld__v1__scene_copy__init(&w->copy);
    w->copy.from = vxd_scene_vec3(in->from, &w->from);
    w->copy.copy_empty = in->copy_empty;
    for (size_t i = 0; i < 9; i++) {
        w->matrix[i] = in->matrix[i];
        turns = turns || in->matrix[i] != 0;
    }
    w->copy.matrix = w->matrix;
    w->copy.n_matrix = turns ? 9 : 0;
    w->operation.copy = &w->copy;
}

static enum vxd_status build_operations(struct vxd_exchange *call,
                                        const struct voxeld_scene_edit_request *in,
                                        Voxeld__V1__SceneEditRequest *out)
{
    const size_t n = in->n_operations;
    struct wire_operation *all;
    enum vxd_status status = VXD_OK;

    if (n > MAX_OPERATIONS || (n > 0 && in->operations == NULL)) {
        return vxd_fail(&call->err, VXD_INVALID_ARGUMENT, "operations",
                        "%zu operations at %p", n, (const void *)in->operations);
    }
    all = vxd_exchange_alloc(call, n, sizeof *all);
    out->operations = vxd_exchange_alloc(call, n, sizeof(Voxeld__V1__SceneOperation *));
    if (all == NULL || out->operations == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (size_t i = 0; i < n; i++) {
        const struct voxeld_scene_operation *operation = &in->operations[i];

        voxeld__v1__scene_operation__init(&all[i].operation);
        all[i].operation.action = (Voxeld__V1__SceneAction)operation->action;
        all[i].operation.material = operation->material;
        all[i].operation.from_material = operation->from_material;
        all[i].operation.threshold = operation->threshold;
        all[i].operation.pin = (Voxeld__V1__ScenePin)operation->pin;
        if (operation->action == VOXELD_SCENE_COPY) {
            build_copy(&operation->copy, &all[i]);
        }
        VXD_TRY(build_shape(call, i, operation, &all[i]));
        out->operations[i] = &all[i].operation;
    }
    out->n_operations = n;
out:
    return status;
}

enum voxeld_status voxeld_scene_edit(struct voxeld_client *client,
                                     const struct voxeld_scene_edit_request *request,
                                     struct voxeld_scene_edited *out,
                                     struct voxeld_error *error)
{
    Voxeld__V1__SceneEditRequest body = VOXELD__V1__SCENE_EDIT_REQUEST__INIT;
    struct voxeld_scene_edited edited = {0};
    const Voxeld__V1__SceneEditResponse *response;
    const Voxeld__V1__ResponseHeader *header;
    struct vxd_exchange call;
    enum vxd_status status;

    VXD_TRY(vxd_exchange_begin(&call, client, &request->call, true));
    body.name = vxd_text_or_empty(request->scene);
    VXD_TRY(build_operations(&call, request, &body));
    body.in_voxels = request->in_voxels;
    body.if_version = request->if_version;
    call.request.method_case = VOXELD__V1__REQUEST__METHOD_SCENE_EDIT;
    call.request.scene_edit = &body;
    VXD_TRY(vxd_exchange_send(&call));
    response = call.reply.response->scene_edit;
    header = call.reply.response->header;
    VXD_TRY(vxd_scene_change_copy(response->change, &edited.change, &call.err));
    edited.n_outside = response->n_outside;
    edited.n_non_finite = response->n_non_finite;
    edited.engine_ms = response->engine_ms;
    edited.queue_ms = header->queue_ms;
    edited.total_ms = header->total_ms;
    edited.replayed = header->replayed;
    if (out != NULL) {
        *out = edited;
    }
out:
    return vxd_exchange_end(&call, status, error);
}

/* Integrate ----------------------------------------------------------------------------- */

static enum vxd_status build_labels(struct vxd_exchange *call,
                                    const struct voxeld_scene_integrate_request *in,
                                    Voxeld__V1__SceneIntegrateRequest *out)
{
    size_t n = in->n_labels;
    Voxeld__V1__SceneLabel *all;

    if (n > MAX_LABELS || (n > 0 && in->labels == NULL)) {
        return vxd_fail(&call->err, VXD_INVALID_ARGUMENT, "label_to_material",
                        "%zu labels at %p", n, (const void *)in->labels);
    }
    all = vxd_exchange_alloc(call, n, sizeof *all);
    out->label_to_material =
        vxd_exchange_alloc(call, n, sizeof(Voxeld__V1__SceneLabel *));
    if (all == NULL || out->label_to_material == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (size_t i = 0; i < n; i++) {
        voxeld__v1__scene_label__init(&all[i]);
        all[i].label = in->labels[i].label;
        all[i].label_name = vxd_text_or_empty(in->labels[i].label_name);
        all[i].material = in->labels[i].material;
        all[i].material_name = vxd_text_or_empty(in->labels[i].material_name);
        out->label_to_material[i] = &all[i];
    }
    out->n_label_to_material = n;
    return VXD_OK;
}

/* With a network, a rule is sent only if some of its members are given, for the server
 * to refuse. */
static bool sends_rule(const struct voxeld_scene_integrate_request *in)
{
    return in->network == NULL || in->network[0] == '\0' ||
           in->rule != VOXELD_MATERIAL_CONSTANT || in->material != 0 || in->field != NULL;
}

static void copy_integrated(const Voxeld__V1__SceneIntegrateResponse *in,
                            const Voxeld__V1__ResponseHeader *header,
                            struct voxeld_scene_integrated *out)
{
    out->stamp_ns = in->stamp_ns;
    out->n_points = in->n_points;
    out->n_used = in->n_used;
    out->n_non_finite = in->n_non_finite;
    out->n_outside = in->n_outside;
    out->n_beyond = in->n_beyond;
    out->n_dropped = in->n_dropped;
    out->n_relabelled = in->n_relabelled;
    out->n_ground = in->n_ground;
    out->n_sparse = in->n_sparse;
    (void)snprintf(out->digest, sizeof out->digest, "%s", in->digest);
    vxd_reply_timings(in->network, &out->network);
    out->n_hit_voxels = in->n_hit_voxels;
    out->n_passed_voxels = in->n_passed_voxels;
    out->decode_ms = in->decode_ms;
    out->carve_ms = in->carve_ms;
    out->edit_ms = in->edit_ms;
    out->engine_ms = in->engine_ms;
    out->queue_ms = header->queue_ms;
    out->total_ms = header->total_ms;
    out->replayed = header->replayed;
    out->is_lost = in->status == VOXELD__V1__ODOMETRY_STATUS__ODOMETRY_LOST;
    out->lost_reason = (int)in->reason;
    vxd_reply_pose(in->t_map_sensor, &out->T_map_sensor);
}

/* Whether there is one. */
static bool build_filter(const struct voxeld_scene_filter *in,
                         Voxeld__V1__SceneFilter *out)
{
    out->ground = in->ground;
    out->ground_distance_m = in->ground_distance_m;
    out->ground_angle = in->ground_angle;
    out->ground_z = in->ground_z;
    out->ground_z_tolerance_m = in->ground_z_tolerance_m;
    out->min_hits = in->min_hits;
    out->no_speckles = in->no_speckles;
    return in->ground || in->min_hits > 0 || in->no_speckles;
}

/* The messages that a request is made of. */
struct integrating {
    Voxeld__V1__SceneIntegrateRequest body;
    Voxeld__V1__SceneCarve carve;
    Voxeld__V1__SceneMaterialRule rule;
    Voxeld__V1__SceneFilter filter;
};

/* Makes call->request; `messages` live as long. */
static enum vxd_status
build_integrate(struct vxd_exchange *call,
                const struct voxeld_scene_integrate_request *request,
                struct integrating *messages)
{
    Voxeld__V1__SceneIntegrateRequest *body = &messages->body;
    Voxeld__V1__SceneCarve *carve = &messages->carve;
    Voxeld__V1__SceneMaterialRule *rule = &messages->rule;
    enum vxd_status status;

    voxeld__v1__scene_integrate_request__init(body);
    voxeld__v1__scene_carve__init(carve);
    voxeld__v1__scene_material_rule__init(rule);
    voxeld__v1__scene_filter__init(&messages->filter);
    VXD_TRY(vxd_exchange_cloud(call, request->cloud, &body->cloud));
    carve->max_range_m = request->max_range_m;
    carve->erase = request->erase;
    carve->discretize = request->discretize;
    rule->kind = (Voxeld__V1__SceneMaterialRule__Kind)request->rule;
    rule->material = request->material;
    rule->field = vxd_text_or_empty(request->field);
    rule->low = request->low;
    rule->high = request->high;
    body->name = vxd_text_or_empty(request->scene);
    body->carve = request->carve ? carve : NULL;
    body->rule = sends_rule(request) ? rule : NULL;
    body->network = vxd_text_or_empty(request->network);
    body->output = vxd_text_or_empty(request->output);
    body->expect_digest = vxd_text_or_empty(request->expect_digest);
    VXD_TRY(build_labels(call, request, body));
    body->filter =
        build_filter(&request->filter, &messages->filter) ? &messages->filter : NULL;
    body->if_version = request->if_version;
    body->pose = request->estimate ? VOXELD__V1__POSE_SOURCE__POSE_ESTIMATE
                                   : VOXELD__V1__POSE_SOURCE__POSE_GIVEN;
    body->odometry = vxd_text_or_empty(request->odometry);
    call->request.method_case = VOXELD__V1__REQUEST__METHOD_SCENE_INTEGRATE;
    call->request.scene_integrate = body;
out:
    return status;
}

static enum vxd_status open_integrated(const struct vxd_reply *reply,
                                       struct voxeld_scene_integrated *out,
                                       struct vxd_err *err)
{
    const Voxeld__V1__SceneIntegrateResponse *response = reply->response->scene_integrate;
    enum vxd_status status = vxd_scene_change_copy(response->change, &out->change, err);

    if (status == VXD_OK) {
        copy_integrated(response, reply->response->header, out);
    }
    return status;
}

enum voxeld_status
voxeld_scene_integrate(struct voxeld_client *client,
                       const struct voxeld_scene_integrate_request *request,
                       struct voxeld_scene_integrated *out, struct voxeld_error *error)
{
    struct integrating messages;
    struct voxeld_scene_integrated integrated = {0};
    struct vxd_exchange call;
    enum vxd_status status;

    VXD_TRY(vxd_exchange_begin(&call, client, &request->call, true));
    VXD_TRY(build_integrate(&call, request, &messages));
    VXD_TRY(vxd_exchange_send(&call));
    VXD_TRY(open_integrated(&call.reply, &integrated, &call.err));
    if (out != NULL) {
        *out = integrated;
    }
out:
    return vxd_exchange_end(&call, status, error);
}

/* What an asynchronous call needs at its end. */
struct integrating_later {
    voxeld_integrated_callback callback;
    void *context;
};

static void integrate_ended(void *take_state, enum vxd_status status,
                            struct vxd_reply *reply, struct vxd_err *err,
                            const char *request_id, uint64_t sequence)
{
    const struct integrating_later *later = take_state;
    struct voxeld_scene_integrated integrated = {0};
    struct voxeld_error error;
    bool is_open = status == VXD_OK;

    if (is_open) {
        status = open_integrated(reply, &integrated, err);
        vxd_reply_close(reply);
    }
    if (status != VXD_OK) {
        (void)vxd_client_change_error(err, request_id, sequence, &error);
    }
    later->callback(later->context, status == VXD_OK ? &integrated : NULL,
                    status == VXD_OK ? NULL : &error);
    free(take_state);
}

enum voxeld_status voxeld_scene_integrate_async(
    struct voxeld_client *client, const struct voxeld_scene_integrate_request *request,
    voxeld_integrated_callback callback, void *context, struct voxeld_error *error)
{
    struct integrating_later *later = calloc(1, sizeof *later);
    struct integrating messages;
    struct vxd_exchange call;
    enum vxd_status status;

    VXD_TRY(vxd_exchange_begin(&call, client, &request->call, true));
    if (callback == NULL) {
        VXD_TRY(vxd_fail(&call.err, VXD_INVALID_ARGUMENT, "callback", "is NULL"));
    }
    if (later == NULL) {
        VXD_TRY(
            vxd_fail(&call.err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a call"));
    }
    later->callback = callback;
    later->context = context;
    VXD_TRY(build_integrate(&call, request, &messages));
    VXD_TRY(vxd_exchange_send_async(&call, integrate_ended, later));
    later = NULL; /* the call's */
out:
    free(later);
    return vxd_exchange_end(&call, status, error);
}
