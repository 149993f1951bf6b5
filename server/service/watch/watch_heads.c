// SPDX-License-Identifier: Apache-2.0
/* The watch on all scenes. What it goes on from is a number of this run of the server, so after a
 * restart all scenes come again. */
#include <stdlib.h>

#include "server/instance/instance.h"
#include "server/registry/scenes/scenes.h"
#include "server/service/service.h"
#include "server/service/watch/watch.h"

enum {
    ARENA_BYTES = 4096,
    HEAD_BYTES = sizeof(Voxeld__V1__WatchHead) + VXD_NAME_BYTES + 64
};

static uint64_t run_of(const struct vxd_server *server)
{
    return (uint64_t)server->started_unix_ns;
}

bool vxd_watch_heads_are_newer(const struct vxd_server *server, uint64_t generation,
                               uint64_t change)
{
    return generation != run_of(server) ||
           change != vxd_scenes_last_change(server->scenes);
}

static enum vxd_status add_head(struct vxd_decoder *arena,
                                const struct vxd_scene_head *head,
                                Voxeld__V1__SceneWatchResponse *reply,
                                struct vxd_err *err)
{
    char *name = vxd_message_text(arena, head->name, strlen(head->name), err);
    Voxeld__V1__WatchHead *out;

    if (name == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    if (head->version == 0) {
        reply->dropped[reply->n_dropped++] = name;
        return VXD_OK;
    }
    out = vxd_message_new(arena, &voxeld__v1__watch_head__descriptor, err);
    if (out == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    out->name = name;
    out->generation = head->generation;
    out->version = head->version;
    out->changed_ns = head->changed_unix_ns;
    reply->heads[reply->n_heads++] = out;
    return VXD_OK;
}

/* errors  RESOURCE_EXHAUSTED */
static enum vxd_status build(struct vxd_decoder *arena,
                             const struct vxd_scene_head *heads, size_t n,
                             Voxeld__V1__SceneWatchResponse **out, struct vxd_err *err)
{
    Voxeld__V1__SceneWatchResponse *reply =
        vxd_message_new(arena, &voxeld__v1__scene_watch_response__descriptor, err);
    enum vxd_status status = VXD_OK;

    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    reply->next = vxd_message_new(arena, &voxeld__v1__watch_point__descriptor, err);
    reply->heads = vxd_message_pointers(arena, n, err);
    reply->dropped = vxd_message_pointers(arena, n, err);
    reply->cells = vxd_message_new(arena, &voxeld__v1__tensor__descriptor, err);
    reply->changes = vxd_message_new(arena, &voxeld__v1__tensor__descriptor, err);
    if (reply->next == NULL || reply->heads == NULL || reply->dropped == NULL ||
        reply->cells == NULL || reply->changes == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    reply->cells->shape = vxd_message_array(arena, 3, sizeof(int64_t), err);
    if (reply->cells->shape == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    /* No cells: 0 x 3, and 0. */
    reply->cells->dtype = (Voxeld__V1__DType)VXD_INT32;
    reply->cells->n_shape = 2;
    reply->cells->shape[1] = 3;
    reply->changes->dtype = (Voxeld__V1__DType)VXD_UINT8;
    reply->changes->n_shape = 1;
    reply->changes->shape = reply->cells->shape + 2;
    for (size_t i = 0; i < n; i++) {
        VXD_TRY(add_head(arena, &heads[i], reply, err));
    }
    *out = reply;
out:
    return status;
}

enum vxd_status vxd_watch_heads_reply(struct vxd_request *request,
                                      struct vxd_decoder **arena, struct vxd_err *err)
{
    const struct vxd_server *server = request->server;
    const Voxeld__V1__WatchPoint *known =
        ((const Voxeld__V1__SceneWatchRequest *)request->input)->after;
    bool is_known = known != NULL && known->generation == run_of(server);
    Voxeld__V1__SceneWatchResponse *reply = NULL;
    struct vxd_scene_head *heads = NULL;
    bool is_complete = false;
    uint64_t last = 0;
    size_t n = 0;
    enum vxd_status status;

    VXD_TRY(vxd_scenes_copy_heads(server->scenes, is_known ? known->version : 0, &heads,
                                  &n, &is_complete, &last, err));
    VXD_TRY(vxd_decoder_create(ARENA_BYTES + n * (HEAD_BYTES + 2 * sizeof(void *)), NULL,
                               arena, err));
    VXD_TRY(build(*arena, heads, n, &reply, err));
    if (is_known && known->version == last) {
        is_complete =
            false; /* nothing since; a server without changes has number 0, too */
        reply->n_heads = 0;
    }
    reply->kind = is_known && known->version == last
                      ? VOXELD__V1__WATCH_KIND__WATCH_UNCHANGED
                      : VOXELD__V1__WATCH_KIND__WATCH_HEADS;
    reply->is_complete = is_complete;
    reply->next->generation = run_of(server);
    reply->next->version = last;
    request->output = &reply->base;
out:
    free(heads);
    return status;
}
