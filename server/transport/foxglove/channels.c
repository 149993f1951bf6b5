// SPDX-License-Identifier: Apache-2.0
/* What there is to see, a channel each, and who has subscribed to it. Ids are never used again. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "server/transport/foxglove/viewer_internal.h"

/* Channels in one message; other servers send no more, and viewers show the first ones at once. */
#define MOST_ADVERTISED 100

struct channel {
    const char *topic; /* behind the thing's name */
    enum vxd_foxglove_schema schema;
};

/* In the order of their ids. */
static const struct {
    const char *folder; /* before the thing's name */
    uint32_t n;
    struct channel channels[VXD_FOX_MOST_CHANNELS];
} kinds[VXD_FOX_N_KINDS] = {
    [VXD_FOX_SCENE] = {"scenes",
                       7,
                       {{"points", VXD_FOXGLOVE_POINT_CLOUD},
                        {"cubes", VXD_FOXGLOVE_SCENE_UPDATE},
                        {"voxels", VXD_FOXGLOVE_VOXEL_GRID},
                        {"costmap", VXD_FOXGLOVE_GRID},
                        {"image", VXD_FOXGLOVE_IMAGE},
                        {"scan", VXD_FOXGLOVE_LASER_SCAN},
                        {"pose", VXD_FOXGLOVE_POSE}}},
    [VXD_FOX_VOLUME] = {"volumes", 1, {{"mesh", VXD_FOXGLOVE_SCENE_UPDATE}}},
    [VXD_FOX_POSEGRAPH] = {"posegraphs",
                           2,
                           {{"poses", VXD_FOXGLOVE_POSES},
                            {"edges", VXD_FOXGLOVE_SCENE_UPDATE}}},
    [VXD_FOX_ODOMETRY] = {"odometries", 1, {{"pose", VXD_FOXGLOVE_POSE}}},
};

static void send_text(struct vxd_foxglove *viewer, struct vxd_text *take_text)
{
    if (take_text->failed || viewer->socket == NULL) {
        free(take_text->bytes);
        if (viewer->socket != NULL) {
            vxd_socket_close(viewer->socket, VXD_SOCKET_FAULT, "no memory");
        }
        return;
    }
    vxd_socket_send(viewer->socket, true, take_text->bytes, take_text->n_bytes);
}

static uint32_t n_channels(const struct vxd_fox_thing *thing)
{
    return kinds[thing->kind].n;
}

enum vxd_foxglove_schema vxd_fox_schema_of(const struct vxd_fox_thing *thing,
                                           uint32_t which)
{
    return kinds[thing->kind].channels[which].schema;
}

/* --- things ---------------------------------------------------------------------------------- */

struct vxd_fox_thing *vxd_fox_thing_find(struct vxd_foxglove *viewer,
                                         enum vxd_fox_kind kind, const char *name,
                                         bool make)
{
    struct vxd_fox_thing *thing;

    for (size_t i = 0; i < viewer->n_things; i++) {
        thing = &viewer->things[i];
        if (thing->kind == kind && strcmp(thing->name, name) == 0) {
            return thing;
        }
    }
    if (!make) {
        return NULL;
    }
    if (viewer->n_things == viewer->capacity) {
        size_t capacity = viewer->capacity > 0 ? 2 * viewer->capacity : 16;
        struct vxd_fox_thing *things =
            realloc(viewer->things, capacity * sizeof *viewer->things);

        if (things == NULL) {
            return NULL;
        }
        viewer->things = things;
        viewer->capacity = capacity;
    }
    thing = &viewer->things[viewer->n_things++];
    *thing = (struct vxd_fox_thing){.kind = kind, .first_id = viewer->next_id};
    (void)snprintf(thing->name, sizeof thing->name, "%s", name);
    viewer->next_id += n_channels(thing);
    return thing;
}

struct vxd_fox_thing *vxd_fox_thing_of(struct vxd_foxglove *viewer, uint32_t channel,
                                       uint32_t *which)
{
    for (size_t i = 0; i < viewer->n_things; i++) {
        struct vxd_fox_thing *thing = &viewer->things[i];

        if (channel >= thing->first_id && channel - thing->first_id < n_channels(thing)) {
            *which = channel - thing->first_id;
            return thing;
        }
    }
    return NULL;
}

static void forget(struct vxd_foxglove *viewer, size_t index)
{
    viewer->n_subscriptions--;
    memmove(&viewer->subscriptions[index], &viewer->subscriptions[index + 1],
            (viewer->n_subscriptions - index) * sizeof viewer->subscriptions[0]);
}

void vxd_fox_thing_remove(struct vxd_foxglove *viewer, size_t index)
{
    struct vxd_fox_thing *thing = &viewer->things[index];
    struct vxd_text text = {0};
    uint32_t n = n_channels(thing);

    vxd_text_printf(&text, "{\"op\":\"unadvertise\",\"channelIds\":[");
    for (uint32_t i = 0; i < n; i++) {
        vxd_text_printf(&text, "%s%" PRIu32, i > 0 ? "," : "", thing->first_id + i);
    }
    vxd_text_append(&text, "]}", 2);
    send_text(viewer, &text);
    for (size_t i = viewer->n_subscriptions; i > 0; i--) {
        uint32_t channel = viewer->subscriptions[i - 1].channel;

        if (channel >= thing->first_id && channel - thing->first_id < n) {
            forget(viewer, i - 1);
        }
    }
    viewer->n_things--;
    memmove(thing, thing + 1, (viewer->n_things - index) * sizeof *thing);
    viewer->transforms_version++;
}

size_t vxd_fox_list_begin(struct vxd_foxglove *viewer, enum vxd_fox_kind kind)
{
    for (size_t i = 0; i < viewer->n_things; i++) {
        viewer->things[i].is_there = viewer->things[i].kind != kind;
    }
    return viewer->n_things;
}

void vxd_fox_list_end(struct vxd_foxglove *viewer, size_t n_before)
{
    if (viewer->n_things > n_before) {
        vxd_fox_advertise(viewer, false, n_before);
    }
    for (size_t i = viewer->n_things; i > 0; i--) {
        if (!viewer->things[i - 1].is_there) {
            vxd_fox_thing_remove(viewer, i - 1);
        }
    }
}

bool vxd_fox_watches(struct vxd_foxglove *viewer, enum vxd_fox_kind kind)
{
    for (size_t i = 0; i < viewer->n_subscriptions; i++) {
        uint32_t which;
        const struct vxd_fox_thing *thing =
            vxd_fox_thing_of(viewer, viewer->subscriptions[i].channel, &which);

        if (thing != NULL && thing->kind == kind) {
            return true;
        }
    }
    return false;
}

/* --- what the server says -------------------------------------------------------------------- */

void vxd_fox_send_server_info(struct vxd_foxglove *viewer)
{
    struct vxd_text text = {0};

    /* Another session after a restart: a viewer then forgets what it has. */
    vxd_text_printf(&text,
                    "{\"op\":\"serverInfo\",\"name\":\"voxeld %s\",\"capabilities\":[],"
                    "\"supportedEncodings\":[],\"metadata\":{},\"sessionId\":\"%s\"}",
                    VXD_VERSION, viewer->server->instance_id);
    send_text(viewer, &text);
}

static void append_channel(struct vxd_text *text, uint32_t id, const char *topic,
                           enum vxd_foxglove_schema schema)
{
    vxd_text_printf(text,
                    "%s{\"id\":%" PRIu32 ",\"topic\":\"%s\",\"encoding\":\"protobuf\","
                    "\"schemaName\":\"%s\",\"schemaEncoding\":\"protobuf\",\"schema\":\"",
                    text->n_bytes == 0 ? "{\"op\":\"advertise\",\"channels\":[" : ",", id,
                    topic, vxd_foxglove_schema_name(schema));
    vxd_foxglove_schema_append(schema, text);
    vxd_text_append(text, "\"}", 2);
}

static void append_thing(struct vxd_text *text, const struct vxd_fox_thing *thing)
{
    for (uint32_t i = 0; i < n_channels(thing); i++) {
        char topic[VXD_NAME_BYTES + 32];

        (void)snprintf(topic, sizeof topic, "/%s/%s/%s", kinds[thing->kind].folder,
                       thing->name, kinds[thing->kind].channels[i].topic);
        append_channel(text, thing->first_id + i, topic, vxd_fox_schema_of(thing, i));
    }
}

void vxd_fox_advertise(struct vxd_foxglove *viewer, bool with_transforms, size_t from)
{
    struct vxd_text text = {0};
    size_t n = 0;

    if (with_transforms) {
        append_channel(&text, VXD_FOX_TRANSFORMS_ID, "/tf", VXD_FOXGLOVE_TRANSFORMS);
        append_channel(&text, VXD_FOX_LOG_ID, "/log", VXD_FOXGLOVE_LOG);
    }
    for (size_t i = from; i < viewer->n_things; i++) {
        append_thing(&text, &viewer->things[i]);
        n += n_channels(&viewer->things[i]);
        if (n + VXD_FOX_MOST_CHANNELS >= MOST_ADVERTISED) {
            vxd_text_append(&text, "]}", 2);
            send_text(viewer, &text);
            text = (struct vxd_text){0};
            n = 0;
        }
    }
    if (text.n_bytes > 0) {
        vxd_text_append(&text, "]}", 2);
        send_text(viewer, &text);
    }
}

void vxd_fox_send_status(struct vxd_foxglove *viewer, int level, const char *format, ...)
{
    struct vxd_text text = {0};
    char message[400];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    vxd_text_printf(&text, "{\"op\":\"status\",\"level\":%d,\"message\":", level);
    vxd_text_json_string(&text, message, strlen(message));
    vxd_text_append(&text, "}", 1);
    send_text(viewer, &text);
}

/* --- subscriptions --------------------------------------------------------------------------- */

static void subscribe(struct vxd_foxglove *viewer, uint32_t id, uint32_t channel)
{
    uint32_t which;
    const struct vxd_fox_thing *thing = vxd_fox_thing_of(viewer, channel, &which);

    if (channel != VXD_FOX_TRANSFORMS_ID && channel != VXD_FOX_LOG_ID && thing == NULL) {
        vxd_fox_send_status(viewer, 2,
                            "there is no channel %" PRIu32 " for subscription %" PRIu32,
                            channel, id);
        return;
    }
    for (size_t i = 0; i < viewer->n_subscriptions; i++) {
        if (viewer->subscriptions[i].id == id) {
            vxd_fox_send_status(viewer, 2, "subscription %" PRIu32 " is in use", id);
            return;
        }
        if (viewer->subscriptions[i].channel == channel) {
            vxd_fox_send_status(viewer, 1,
                                "channel %" PRIu32 " has subscription %" PRIu32, channel,
                                viewer->subscriptions[i].id);
            return;
        }
    }
    if (viewer->n_subscriptions == VXD_FOXGLOVE_MOST_SUBSCRIPTIONS) {
        vxd_fox_send_status(viewer, 2, "there are %d subscriptions already",
                            VXD_FOXGLOVE_MOST_SUBSCRIPTIONS);
        return;
    }
    viewer->subscriptions[viewer->n_subscriptions++] =
        (struct vxd_fox_subscription){.id = id, .channel = channel};
    if (thing != NULL && thing->kind == VXD_FOX_SCENE &&
        vxd_fox_needs_sensor(vxd_fox_schema_of(thing, which))) {
        viewer->must_list_scenes = true; /* it says where the sensor was */
    }
}

void vxd_fox_subscribe(struct vxd_foxglove *viewer,
                       const struct vxd_foxglove_command *command)
{
    for (size_t i = 0; i < command->n; i++) {
        subscribe(viewer, command->ids[i], command->channels[i]);
    }
}

void vxd_fox_unsubscribe(struct vxd_foxglove *viewer,
                         const struct vxd_foxglove_command *command)
{
    for (size_t i = 0; i < command->n; i++) {
        size_t at = 0;

        while (at < viewer->n_subscriptions &&
               viewer->subscriptions[at].id != command->ids[i]) {
            at++;
        }
        if (at < viewer->n_subscriptions) {
            forget(viewer, at);
        } else {
            vxd_fox_send_status(viewer, 1, "there is no subscription %" PRIu32,
                                command->ids[i]);
        }
    }
}
