// SPDX-License-Identifier: Apache-2.0
/* What a viewer asks the methods, and the messages that it makes of their replies. Two requests
 * wait all the time, for changes of scenes and of volumes; of pose graphs and odometries nothing says so, and they
 * are listed from time to time. Of all subscriptions whose newest version was not sent, one after the other gets
 * its turn, when what was sent before has left. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"
#include "server/transport/foxglove/viewer_internal.h"

enum {
    BODY_BYTES = 512,
    MOST_LEVEL = 21
};

/* How long a watch waits, which is also how long nobody looks at what is listed: by default, where somebody
 * watches it, and where it is where a sensor is now. Volumes are waited for less long where meshes are sent, which
 * rest in between. */
#define WAIT_MS 2000u
#define LIST_WAIT_MS 1000u
#define POSE_WAIT_MS 200u
#define VOLUME_WAIT_MS 250u
#define SPARE_MS 1000u

struct body {
    char text[BODY_BYTES];
};

/* --- the requests ---------------------------------------------------------------------------- */

/* What a request's transport is: its viewer, its body, and which of the viewer's it is. */
struct ask {
    struct vxd_foxglove *viewer;
    enum vxd_fox_work work;
    struct body body;
};

static void discard(struct vxd_request *request)
{
    struct ask *ask = request->transport;

    vxd_foxglove_drop(ask->viewer);
    free(ask);
}

static void reply(struct vxd_request *request, const struct vxd_err *err,
                  const ProtobufCMessage *output);

/* Submits a request, whose reply may come before this returns. Without the lock. */
static void submit(struct vxd_foxglove *viewer, enum vxd_fox_work work,
                   const char *method, const struct body *body, uint32_t timeout_ms)
{
    struct vxd_server *server = viewer->server;
    const struct vxd_request_header header = {.token = viewer->token,
                                              .certified = viewer->certified,
                                              .traceparent = viewer->traceparent,
                                              .peer = viewer->peer,
                                              .peer_uid = viewer->peer_uid,
                                              .timeout_ms = timeout_ms};
    struct vxd_body bytes = {.kind = VXD_BODY_JSON};
    struct vxd_request *request = NULL;
    struct ask *ask = calloc(1, sizeof *ask);
    struct vxd_err err = {0};
    enum vxd_status status = ask != NULL
                                 ? vxd_request_create(server, &header, &request, &err)
                                 : VXD_RESOURCE_EXHAUSTED;

    if (request == NULL) {
        free(ask);
        vxd_socket_close(viewer->socket, VXD_SOCKET_FAULT, "no memory");
        return;
    }
    *ask = (struct ask){.viewer = viewer, .work = work, .body = *body};
    bytes.bytes = (const uint8_t *)ask->body.text;
    bytes.n_bytes = strlen(ask->body.text);
    request->transport = ask;
    request->reply_fn = reply;
    request->discard_fn = discard;
    request->holds_place = true;
    atomic_fetch_add(&viewer->references, 1);
    (void)pthread_mutex_lock(&viewer->lock);
    vxd_request_hold(request);
    viewer->work[work] = request;
    (void)pthread_mutex_unlock(&viewer->lock);
    if (status == VXD_OK) {
        status = vxd_request_admit(request, vxd_method_by_name(server->methods, method),
                                   bytes.n_bytes, &err);
    }
    if (status != VXD_OK) {
        vxd_request_fail(request, &err);
    } else {
        vxd_request_submit(request, &bytes);
    }
}

/* --- what is to be done: with the lock held -------------------------------------------------- */

/* Whether somebody wants to know where an odometry's sensor is: by its channel, or as a transform. */
static bool follows_odometries(struct vxd_foxglove *viewer)
{
    bool has_transforms = false;
    bool has_odometry = false;

    for (size_t i = 0; i < viewer->n_subscriptions; i++) {
        has_transforms =
            has_transforms || viewer->subscriptions[i].channel == VXD_FOX_TRANSFORMS_ID;
    }
    for (size_t i = 0; i < viewer->n_things; i++) {
        has_odometry = has_odometry || viewer->things[i].kind == VXD_FOX_ODOMETRY;
    }
    return has_odometry && (has_transforms || vxd_fox_watches(viewer, VXD_FOX_ODOMETRY));
}

/* How long nobody looks at things of a kind. */
static uint32_t list_wait_ms(struct vxd_foxglove *viewer, enum vxd_fox_kind kind)
{
    if (kind == VXD_FOX_ODOMETRY) {
        return follows_odometries(viewer) ? POSE_WAIT_MS : WAIT_MS;
    }
    return vxd_fox_watches(viewer, kind) ? LIST_WAIT_MS : WAIT_MS;
}

/* How long the watch on scenes waits, at whose end what is listed is looked at. */
static uint32_t scenes_wait_ms(struct vxd_foxglove *viewer)
{
    uint32_t least = WAIT_MS;

    for (int kind = VXD_FOX_POSEGRAPH; kind < VXD_FOX_N_KINDS; kind++) {
        uint32_t ms = list_wait_ms(viewer, (enum vxd_fox_kind)kind);

        least = ms < least ? ms : least;
    }
    return least;
}

/* The request of a watch on all; after NULL: nothing is known. */
static void ask_heads(const Voxeld__V1__WatchPoint *after, uint32_t wait_ms,
                      struct body *body)
{
    if (after != NULL) {
        (void)snprintf(body->text, sizeof body->text,
                       "{\"timeoutMs\":%u,\"after\":{\"generation\":\"%" PRIu64
                       "\",\"version\":\"%" PRIu64 "\"}}",
                       wait_ms, after->generation, after->version);
    } else {
        (void)snprintf(body->text, sizeof body->text, "{}");
    }
}

static bool choose_heads(struct vxd_foxglove *viewer, struct body *body)
{
    if (viewer->work[VXD_FOX_HEADS] != NULL) {
        return false;
    }
    ask_heads(viewer->has_after ? &viewer->after : NULL, scenes_wait_ms(viewer), body);
    return true;
}

static bool choose_volume_heads(struct vxd_foxglove *viewer, struct body *body)
{
    if (viewer->work[VXD_FOX_VOLUME_HEADS] != NULL ||
        vxd_clock_ns() < viewer->volumes_ns) {
        return false;
    }
    ask_heads(viewer->has_volumes_after ? &viewer->volumes_after : NULL,
              vxd_fox_watches(viewer, VXD_FOX_VOLUME) ? VOLUME_WAIT_MS : WAIT_MS, body);
    return true;
}

static bool is_new(const struct vxd_fox_subscription *s, uint64_t generation,
                   uint64_t version)
{
    return !s->is_sent || s->generation != generation || version > s->version;
}

static void mark_sent(struct vxd_fox_subscription *s, uint64_t generation,
                      uint64_t version)
{
    s->is_sent = true;
    s->generation = generation;
    s->version = version;
}

static void send_transforms(struct vxd_foxglove *viewer, struct vxd_fox_subscription *s);
static void send_pose(struct vxd_foxglove *viewer, struct vxd_fox_subscription *s,
                      const struct vxd_fox_thing *thing);

/* Makes the job and the request of a subscription's thing. */
static const char *ask_for(struct vxd_foxglove *viewer, struct vxd_fox_subscription *s,
                           const struct vxd_fox_thing *thing, uint32_t which,
                           struct body *body)
{
    struct vxd_fox_job *job = &viewer->job;
    enum vxd_foxglove_schema schema = vxd_fox_schema_of(thing, which);

    *job = (struct vxd_fox_job){.schema = schema,
                                .channel = s->channel,
                                .subscription = s->id,
                                .generation = thing->generation,
                                .version = thing->version,
                                .changed_ns = thing->changed_ns,
                                .level = s->level};
    memcpy(job->name, thing->name, sizeof job->name);
    if (thing->kind == VXD_FOX_VOLUME) {
        vxd_fox_begin_mesh(s, job);
        vxd_fox_ask_mesh(job, body->text, sizeof body->text);
        return "volume_extract";
    }
    if (thing->kind == VXD_FOX_POSEGRAPH) {
        vxd_fox_ask_graph(job, body->text, sizeof body->text);
        return "posegraph_read";
    }
    if (schema == VXD_FOXGLOVE_IMAGE || schema == VXD_FOXGLOVE_LASER_SCAN) {
        return vxd_fox_ask_render(job, thing, body->text, sizeof body->text)
                   ? "scene_render"
                   : NULL;
    }
    if (schema == VXD_FOXGLOVE_GRID) {
        job->kind = VXD_FOX_COSTMAP;
        (void)snprintf(body->text, sizeof body->text,
                       "{\"name\":\"%s\",\"kind\":\"GRID_COSTMAP\"}", thing->name);
        return "scene_grid";
    }
    job->kind = VXD_FOX_EXPORT;
    (void)snprintf(body->text, sizeof body->text,
                   "{\"name\":\"%s\",\"format\":\"SCENE_PLY\",\"level\":%u,"
                   "\"limit\":\"%" PRIu64 "\"}",
                   thing->name, job->level,
                   vxd_fox_scene_limit(schema, viewer->max_bytes));
    return "scene_export";
}

/* The next subscription whose newest version was not sent; NULL where all have theirs. */
static const char *choose_subscription(struct vxd_foxglove *viewer, struct body *body)
{
    for (size_t i = 0; i < viewer->n_subscriptions; i++) {
        size_t at = (viewer->turn + i) % viewer->n_subscriptions;
        struct vxd_fox_subscription *s = &viewer->subscriptions[at];
        const struct vxd_fox_thing *thing;
        uint32_t which = 0;

        if (s->channel == VXD_FOX_LOG_ID) {
            continue;
        }
        if (s->channel == VXD_FOX_TRANSFORMS_ID) {
            if (is_new(s, 0, viewer->transforms_version)) {
                send_transforms(viewer, s);
            }
            continue;
        }
        thing = vxd_fox_thing_of(viewer, s->channel, &which);
        if (thing != NULL && is_new(s, thing->generation, thing->version) &&
            vxd_clock_ns() >= s->rests_until_ns) {
            const char *method;

            if (vxd_fox_schema_of(thing, which) == VXD_FOXGLOVE_POSE) {
                send_pose(viewer, s, thing);
                continue;
            }
            method = ask_for(viewer, s, thing, which, body);
            if (method != NULL) {
                viewer->turn = at + 1;
                return method;
            }
            mark_sent(s, thing->generation, thing->version);
            viewer->job.kind = VXD_FOX_NOTHING;
        }
    }
    return NULL;
}

/* How things of a kind are listed; scenes and volumes are when their watches say so. */
static const struct {
    const char *method;
    enum vxd_fox_job_kind job;
} lists[VXD_FOX_N_KINDS] = {
    [VXD_FOX_POSEGRAPH] = {"posegraph_list", VXD_FOX_LIST_POSEGRAPHS},
    [VXD_FOX_ODOMETRY] = {"odometry_list", VXD_FOX_LIST_ODOMETRIES},
};

/* The method of the next request for data, and its job; NULL: nothing is to be done. */
static const char *choose_data(struct vxd_foxglove *viewer, struct body *body)
{
    struct vxd_fox_job *job = &viewer->job;
    int64_t now_ns = vxd_clock_ns();

    if (viewer->work[VXD_FOX_DATA] != NULL) {
        return NULL;
    }
    if (job->kind == VXD_FOX_MESH && job->goes_on) {
        vxd_fox_ask_mesh(job, body->text, sizeof body->text);
        return "volume_extract";
    }
    (void)snprintf(body->text, sizeof body->text, "{}");
    if (viewer->must_list_scenes) {
        viewer->must_list_scenes = false;
        *job = (struct vxd_fox_job){.kind = VXD_FOX_LIST_SCENES};
        return "scene_list";
    }
    if (viewer->must_list_volumes) {
        viewer->must_list_volumes = false;
        *job = (struct vxd_fox_job){.kind = VXD_FOX_LIST_VOLUMES};
        return "volume_list";
    }
    for (int kind = VXD_FOX_POSEGRAPH; kind < VXD_FOX_N_KINDS; kind++) {
        int64_t *listed_ns = &viewer->listed_ns[kind];
        int64_t wait_ns =
            list_wait_ms(viewer, (enum vxd_fox_kind)kind) * INT64_C(1000000);

        if (*listed_ns == 0 || now_ns - *listed_ns >= wait_ns) {
            *listed_ns = now_ns;
            *job = (struct vxd_fox_job){.kind = lists[kind].job};
            return lists[kind].method;
        }
    }
    job->kind = VXD_FOX_NOTHING;
    return choose_subscription(viewer, body);
}

void vxd_fox_work_on(struct vxd_foxglove *viewer)
{
    struct body heads, volume_heads, data;
    bool asks_heads, asks_volume_heads;
    const char *method;
    uint32_t most_ms = atomic_load(&viewer->server->limits.max_timeout_ms);
    uint32_t timeout_ms = WAIT_MS + SPARE_MS < most_ms ? WAIT_MS + SPARE_MS : most_ms;

    (void)pthread_mutex_lock(&viewer->lock);
    asks_heads = !viewer->is_gone && choose_heads(viewer, &heads);
    asks_volume_heads = !viewer->is_gone && choose_volume_heads(viewer, &volume_heads);
    method = viewer->is_gone ? NULL : choose_data(viewer, &data);
    (void)pthread_mutex_unlock(&viewer->lock);
    if (asks_heads) {
        submit(viewer, VXD_FOX_HEADS, "scene_watch", &heads, timeout_ms);
    }
    if (asks_volume_heads) {
        submit(viewer, VXD_FOX_VOLUME_HEADS, "volume_watch", &volume_heads, timeout_ms);
    }
    if (method != NULL) {
        submit(viewer, VXD_FOX_DATA, method, &data, 0);
    }
}

/* --- messages: with the lock held ------------------------------------------------------------ */

/* The head of a message's data. */
static void begin_data(struct vxd_text *text, uint32_t subscription)
{
    uint64_t now_ns = (uint64_t)vxd_clock_unix_ns();

    vxd_text_append(text, "\x01", 1);
    vxd_text_append(text, (const char *)&subscription, sizeof subscription);
    vxd_text_append(text, (const char *)&now_ns, sizeof now_ns);
}

static void send_data(struct vxd_foxglove *viewer, struct vxd_text *take_text)
{
    if (take_text->failed) {
        free(take_text->bytes);
        vxd_socket_close(viewer->socket, VXD_SOCKET_FAULT, "no memory");
        return;
    }
    vxd_socket_send(viewer->socket, false, take_text->bytes, take_text->n_bytes);
}

static void send_transforms(struct vxd_foxglove *viewer, struct vxd_fox_subscription *s)
{
    struct vxd_text text = {0};

    begin_data(&text, s->id);
    for (size_t i = 0; i < viewer->n_things; i++) {
        static const char *const prefixes[] = {[VXD_FOX_SCENE] = "scene",
                                               [VXD_FOX_VOLUME] = "volume",
                                               [VXD_FOX_ODOMETRY] = "odometry"};
        static const double level[4] = {0, 0, 0, 1};
        const struct vxd_fox_thing *thing = &viewer->things[i];
        const double origin[3] = {thing->origin.x, thing->origin.y, thing->origin.z};
        bool moves = thing->kind == VXD_FOX_ODOMETRY;

        if (thing->has_place) {
            vxd_fox_transform(&text, thing->frame, prefixes[thing->kind], thing->name,
                              moves ? thing->place : origin, moves ? thing->turn : level,
                              moves ? thing->sensor_ns : thing->created_ns);
        }
    }
    s->is_sent = true;
    s->generation = 0;
    s->version = viewer->transforms_version;
    send_data(viewer, &text);
}

static void send_pose(struct vxd_foxglove *viewer, struct vxd_fox_subscription *s,
                      const struct vxd_fox_thing *thing)
{
    struct vxd_text text = {0};

    mark_sent(s, thing->generation, thing->version);
    begin_data(&text, s->id);
    if (vxd_fox_append_pose(thing, &text)) {
        send_data(viewer, &text);
    } else {
        free(text.bytes);
    }
}

/* To who has subscribed to the log. */
static void send_log(struct vxd_foxglove *viewer, const char *name, int64_t stamp_ns,
                     const char *message)
{
    for (size_t i = 0; i < viewer->n_subscriptions; i++) {
        struct vxd_text text = {0};

        if (viewer->subscriptions[i].channel == VXD_FOX_LOG_ID) {
            begin_data(&text, viewer->subscriptions[i].id);
            vxd_fox_log_message(name, message,
                                stamp_ns > 0 ? stamp_ns : vxd_clock_unix_ns(), &text);
            send_data(viewer, &text);
        }
    }
}

static bool watches_sensors(struct vxd_foxglove *viewer)
{
    for (size_t i = 0; i < viewer->n_subscriptions; i++) {
        uint32_t which;
        const struct vxd_fox_thing *thing =
            vxd_fox_thing_of(viewer, viewer->subscriptions[i].channel, &which);

        if (thing != NULL && thing->kind == VXD_FOX_SCENE &&
            vxd_fox_needs_sensor(vxd_fox_schema_of(thing, which))) {
            return true;
        }
    }
    return false;
}

/* --- replies: with the lock held ------------------------------------------------------------- */

static void take_heads(struct vxd_foxglove *viewer,
                       const Voxeld__V1__SceneWatchResponse *output)
{
    size_t n_before = viewer->n_things;

    for (size_t i = 0; i < viewer->n_things; i++) {
        viewer->things[i].is_there = viewer->things[i].kind != VXD_FOX_SCENE ||
                                     !output->is_complete ||
                                     output->kind != VOXELD__V1__WATCH_KIND__WATCH_HEADS;
    }
    for (size_t i = 0; i < output->n_heads; i++) {
        const Voxeld__V1__WatchHead *head = output->heads[i];
        struct vxd_fox_thing *thing =
            vxd_fox_thing_find(viewer, VXD_FOX_SCENE, head->name, true);

        if (thing == NULL) {
            vxd_socket_close(viewer->socket, VXD_SOCKET_FAULT, "no memory");
            return;
        }
        viewer->must_list_scenes = viewer->must_list_scenes ||
                                   thing->generation != head->generation ||
                                   watches_sensors(viewer);
        if (viewer->has_after) {
            char message[48];

            (void)snprintf(message, sizeof message, "version %" PRIu64, head->version);
            send_log(viewer, head->name, head->changed_ns, message);
        }
        thing->is_there = true;
        thing->generation = head->generation;
        thing->version = head->version;
        thing->changed_ns = head->changed_ns;
    }
    for (size_t i = 0; i < output->n_dropped; i++) {
        struct vxd_fox_thing *thing =
            vxd_fox_thing_find(viewer, VXD_FOX_SCENE, output->dropped[i], false);

        if (thing != NULL) {
            thing->is_there = false;
            send_log(viewer, output->dropped[i], 0, "dropped");
        }
    }
    vxd_fox_list_end(viewer, n_before);
    for (size_t i = 0; i < viewer->n_subscriptions; i++) {
        struct vxd_fox_subscription *s = &viewer->subscriptions[i];

        s->is_sent = s->is_sent && !s->failed;
        s->failed = false;
    }
    if (output->next != NULL) {
        viewer->after = *output->next;
        viewer->has_after = true;
    }
}

/* Volumes that are new or gone are listed, since heads do not say where they lie. */
static void take_volume_heads(struct vxd_foxglove *viewer,
                              const Voxeld__V1__VolumeWatchResponse *output)
{
    viewer->must_list_volumes =
        viewer->must_list_volumes || output->is_complete || output->n_dropped > 0;
    for (size_t i = 0; i < output->n_heads; i++) {
        const Voxeld__V1__VolumeWatchHead *head = output->heads[i];
        struct vxd_fox_thing *thing =
            vxd_fox_thing_find(viewer, VXD_FOX_VOLUME, head->name, false);

        if (thing == NULL || thing->generation != head->generation) {
            viewer->must_list_volumes = true;
        } else {
            thing->version = head->version;
        }
    }
    if (output->next != NULL) {
        viewer->volumes_after = *output->next;
        viewer->has_volumes_after = true;
    }
}

/* All volumes are looked at anew, after a while. */
static void restart_volume_heads(struct vxd_foxglove *viewer)
{
    viewer->has_volumes_after = false;
    viewer->volumes_ns = vxd_clock_ns() + WAIT_MS * INT64_C(1000000);
}

static void set_place(struct vxd_foxglove *viewer, struct vxd_fox_thing *thing,
                      const char *frame, const Voxeld__V1__Vec3 *origin,
                      int64_t created_ns)
{
    voxeld__v1__vec3__init(&thing->origin);
    if (origin != NULL) {
        thing->origin.x = origin->x;
        thing->origin.y = origin->y;
        thing->origin.z = origin->z;
    }
    (void)snprintf(thing->frame, sizeof thing->frame, "%s",
                   frame[0] != '\0' ? frame : "map");
    thing->created_ns = created_ns;
    thing->has_place = true;
    viewer->transforms_version++;
}

static void take_scenes(struct vxd_foxglove *viewer,
                        const Voxeld__V1__SceneListResponse *output)
{
    for (size_t i = 0; i < output->n_scenes; i++) {
        const Voxeld__V1__SceneInfo *info = output->scenes[i];
        struct vxd_fox_thing *thing =
            vxd_fox_thing_find(viewer, VXD_FOX_SCENE, info->name, false);

        if (thing != NULL && info->spec != NULL) {
            if (!thing->has_place || thing->created_ns != info->created_ns) {
                set_place(viewer, thing, info->spec->frame_id, info->spec->origin,
                          info->created_ns);
            }
            vxd_fox_take_sensor(thing, info->t_map_sensor, info->sensor_ns);
        }
    }
}

static void take_volumes(struct vxd_foxglove *viewer,
                         const Voxeld__V1__VolumeListResponse *output)
{
    size_t n_before = vxd_fox_list_begin(viewer, VXD_FOX_VOLUME);

    for (size_t i = 0; i < output->n_volumes; i++) {
        const Voxeld__V1__VolumeInfo *info = output->volumes[i];
        struct vxd_fox_thing *thing =
            vxd_fox_thing_find(viewer, VXD_FOX_VOLUME, info->name, true);

        if (thing == NULL) {
            vxd_socket_close(viewer->socket, VXD_SOCKET_FAULT, "no memory");
            return;
        }
        if (thing->generation != info->generation) {
            set_place(viewer, thing, "map", info->origin, info->created_ns);
        }
        thing->is_there = true;
        thing->generation = info->generation;
        thing->version = info->stamp;
    }
    vxd_fox_list_end(viewer, n_before);
}

/* The subscription that the job is for; NULL where it has ended meanwhile. */
static struct vxd_fox_subscription *find_subscription(struct vxd_foxglove *viewer)
{
    for (size_t i = 0; i < viewer->n_subscriptions; i++) {
        struct vxd_fox_subscription *s = &viewer->subscriptions[i];

        if (s->id == viewer->job.subscription && s->channel == viewer->job.channel) {
            return s;
        }
    }
    return NULL;
}

/* How many levels coarser a surface is that has so many times fewer cells. */
static uint32_t levels_for(uint64_t n_cells, uint64_t limit)
{
    double levels = ceil(log2((double)n_cells / (double)(limit > 0 ? limit : 1)) / 2);

    return levels > 1 ? (uint32_t)levels : 1;
}

static enum vxd_status take_export(struct vxd_foxglove *viewer,
                                   struct vxd_fox_subscription *s,
                                   const Voxeld__V1__SceneExportResponse *output,
                                   struct vxd_text *text, struct vxd_err *err)
{
    const struct vxd_fox_job *job = &viewer->job;
    uint64_t limit = vxd_fox_scene_limit(job->schema, viewer->max_bytes);
    bool fits = false;
    enum vxd_status status =
        vxd_fox_scene_message(job->schema, output, job->name,
                              job->changed_ns > 0 ? job->changed_ns : vxd_clock_unix_ns(),
                              viewer->max_bytes, text, &fits, err);

    if (status != VXD_OK || output->seen == NULL) {
        return status;
    }
    if (!fits && job->level < MOST_LEVEL) {
        s->level = job->level + levels_for(output->n_cells, limit);
        s->level = s->level < MOST_LEVEL ? s->level : MOST_LEVEL;
        text->n_bytes = 0;
        return VXD_OK;
    }
    if (!fits) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "max_bytes",
                        "%zu bytes are too few for the scene", viewer->max_bytes);
    }
    /* Where a finer level fits for certain, it comes with the next version. */
    s->level = job->level > 0 && 8 * output->n_cells < limit &&
                       job->schema != VXD_FOXGLOVE_VOXEL_GRID
                   ? job->level - 1
                   : job->level;
    mark_sent(s, output->seen->generation, output->seen->version);
    return VXD_OK;
}

static void take_subscribed(struct vxd_foxglove *viewer, const ProtobufCMessage *output)
{
    struct vxd_fox_subscription *s = find_subscription(viewer);
    const struct vxd_fox_job *job = &viewer->job;
    struct vxd_text text = {0};
    struct vxd_err err = {0};
    enum vxd_status status = VXD_OK;
    size_t n_head;

    if (s == NULL) {
        viewer->job.goes_on = false;
        return;
    }
    begin_data(&text, s->id);
    n_head = text.n_bytes;
    if (job->kind == VXD_FOX_EXPORT) {
        status = take_export(viewer, s, (const Voxeld__V1__SceneExportResponse *)output,
                             &text, &err);
    } else if (job->kind == VXD_FOX_RENDER) {
        const Voxeld__V1__SceneRenderResponse *picture =
            (const Voxeld__V1__SceneRenderResponse *)output;

        status = vxd_fox_take_render(job, picture, viewer->max_bytes, &text, &err);
        mark_sent(s, picture->generation, picture->version);
    } else if (job->kind == VXD_FOX_GRAPH) {
        status =
            vxd_fox_take_graph(job, (const Voxeld__V1__PosegraphReadResponse *)output,
                               viewer->max_bytes, &text, &err);
        mark_sent(s, job->generation, job->version);
    } else if (job->kind == VXD_FOX_MESH) {
        status = vxd_fox_take_mesh(&viewer->job, s,
                                   (const Voxeld__V1__VolumeExtractResponse *)output,
                                   viewer->max_bytes, &text, &err);
        if (status == VXD_OK && !job->goes_on) {
            mark_sent(s, job->generation, s->stamp);
        }
    } else {
        const Voxeld__V1__SceneGridResponse *grid =
            (const Voxeld__V1__SceneGridResponse *)output;

        status = vxd_fox_costmap_message(
            grid, job->changed_ns > 0 ? job->changed_ns : vxd_clock_unix_ns(),
            viewer->max_bytes, &text, &err);
        mark_sent(s, grid->generation, grid->version);
    }
    if (status != VXD_OK) {
        mark_sent(s, job->generation, job->version);
        s->stamp = 0;
        vxd_fox_send_status(viewer, 2, "%s: %s", job->name, err.message);
        free(text.bytes);
    } else if (text.failed || text.n_bytes > n_head) {
        send_data(viewer, &text);
    } else {
        free(text.bytes);
    }
}

/* The time that nobody looks at things of a kind begins when their list has come, so that others have their turn
 * however long it took. */
static void note_listed(struct vxd_foxglove *viewer)
{
    for (int kind = VXD_FOX_POSEGRAPH; kind < VXD_FOX_N_KINDS; kind++) {
        if (viewer->job.kind == lists[kind].job) {
            viewer->listed_ns[kind] = vxd_clock_ns();
        }
    }
}

/* What is wrong now is tried again after the next look at the scenes. */
static void take_failure(struct vxd_foxglove *viewer, const struct vxd_err *err)
{
    struct vxd_fox_subscription *s = find_subscription(viewer);
    const struct vxd_fox_job *job = &viewer->job;

    if (job->kind == VXD_FOX_LIST_SCENES) {
        viewer->must_list_scenes = true;
    }
    if (job->kind == VXD_FOX_LIST_VOLUMES) {
        restart_volume_heads(viewer);
    }
    if (job->kind >= VXD_FOX_EXPORT && s != NULL) {
        mark_sent(s, job->generation, job->version);
        s->stamp = 0;
        s->failed = err->code == VXD_UNAVAILABLE || err->code == VXD_DEADLINE_EXCEEDED;
        vxd_fox_send_status(viewer, s->failed ? 1 : 2, "%s: %s%s%s", job->name,
                            err->field, err->field[0] != '\0' ? " " : "", err->message);
    }
    viewer->job.goes_on = false;
}

/* The watch is what ends a viewer: its token is gone, or the server is. */
static void take_heads_failure(struct vxd_foxglove *viewer, const struct vxd_err *err)
{
    vxd_fox_send_status(viewer, 2, "%s: %s", vxd_status_name(err->code), err->message);
    vxd_socket_close(viewer->socket,
                     err->code == VXD_UNAVAILABLE ? VXD_SOCKET_GOING_AWAY
                                                  : VXD_SOCKET_REFUSED,
                     vxd_status_name(err->code));
}

static void take_data(struct vxd_foxglove *viewer, const ProtobufCMessage *output)
{
    switch (viewer->job.kind) {
    case VXD_FOX_LIST_SCENES:
        take_scenes(viewer, (const Voxeld__V1__SceneListResponse *)output);
        break;
    case VXD_FOX_LIST_VOLUMES:
        take_volumes(viewer, (const Voxeld__V1__VolumeListResponse *)output);
        break;
    case VXD_FOX_LIST_POSEGRAPHS:
        vxd_fox_take_posegraphs(viewer,
                                (const Voxeld__V1__PosegraphListResponse *)output);
        break;
    case VXD_FOX_LIST_ODOMETRIES:
        vxd_fox_take_odometries(viewer, (const Voxeld__V1__OdometryListResponse *)output);
        break;
    default:
        take_subscribed(viewer, output);
    }
}

static void reply(struct vxd_request *request, const struct vxd_err *err,
                  const ProtobufCMessage *output)
{
    const struct ask *ask = request->transport;
    struct vxd_foxglove *viewer = ask->viewer;
    bool is_ok = err->code == VXD_OK;

    (void)pthread_mutex_lock(&viewer->lock);
    if (viewer->work[ask->work] == request) {
        viewer->work[ask->work] = NULL;
        vxd_request_drop(request); /* who answers it holds it, too */
    }
    if (!viewer->is_gone) {
        if (ask->work == VXD_FOX_HEADS && is_ok) {
            take_heads(viewer, (const Voxeld__V1__SceneWatchResponse *)output);
        } else if (ask->work == VXD_FOX_HEADS) {
            take_heads_failure(viewer, err);
        } else if (ask->work == VXD_FOX_VOLUME_HEADS && is_ok) {
            take_volume_heads(viewer, (const Voxeld__V1__VolumeWatchResponse *)output);
        } else if (ask->work == VXD_FOX_VOLUME_HEADS) {
            restart_volume_heads(viewer);
        } else {
            note_listed(viewer);
            if (is_ok) {
                take_data(viewer, output);
            } else {
                take_failure(viewer, err);
            }
        }
        vxd_socket_wake(viewer->socket);
    }
    (void)pthread_mutex_unlock(&viewer->lock);
}
