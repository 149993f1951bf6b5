// SPDX-License-Identifier: Apache-2.0
/* The watch on all volumes: as watch_heads.c of scenes. */
#include <stdlib.h>

#include "server/instance/instance.h"
#include "server/registry/volumes/volumes.h"
#include "server/service/service.h"
#include "server/service/watch/watch.h"

enum {
    ARENA_BYTES = 4096,
    N_TENSORS = 6,
    HEAD_BYTES = sizeof(Voxeld__V1__VolumeWatchHead) + VXD_NAME_BYTES + 64
};

static uint64_t run_of(const struct vxd_server *server)
{
    return (uint64_t)server->started_unix_ns;
}

bool vxd_watch_volume_heads_are_newer(const struct vxd_server *server,
                                      uint64_t generation, uint64_t change)
{
    return generation != run_of(server) ||
           change != vxd_names_last_change(server->volumes);
}

static enum vxd_status add_head(struct vxd_decoder *arena,
                                const struct vxd_named_head *head,
                                Voxeld__V1__VolumeWatchResponse *reply,
                                struct vxd_err *err)
{
    char *name = vxd_message_text(arena, head->name, strlen(head->name), err);
    Voxeld__V1__VolumeWatchHead *out;

    if (name == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    if (head->version == 0) {
        reply->dropped[reply->n_dropped++] = name;
        return VXD_OK;
    }
    out = vxd_message_new(arena, &voxeld__v1__volume_watch_head__descriptor, err);
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

/* Arrays without rows. */
static enum vxd_status add_tensors(struct vxd_decoder *arena,
                                   Voxeld__V1__VolumeWatchResponse *reply,
                                   struct vxd_err *err)
{
    const struct {
        Voxeld__V1__Tensor **tensor;
        enum vxd_dtype dtype;
        int64_t n_elements; /* 0: one extent only */
    } tensors[N_TENSORS] = {
        {&reply->blocks, VXD_INT32, 4},    {&reply->vertices, VXD_FLOAT32, 3},
        {&reply->normals, VXD_FLOAT32, 3}, {&reply->colours, VXD_UINT8, 3},
        {&reply->triangles, VXD_INT32, 3}, {&reply->labels, VXD_UINT8, 0},
    };

    for (size_t i = 0; i < N_TENSORS; i++) {
        Voxeld__V1__Tensor *tensor =
            vxd_message_new(arena, &voxeld__v1__tensor__descriptor, err);

        if (tensor == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
        tensor->shape = vxd_message_array(arena, 2, sizeof(int64_t), err);
        if (tensor->shape == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
        tensor->dtype = (Voxeld__V1__DType)tensors[i].dtype;
        tensor->n_shape = tensors[i].n_elements > 0 ? 2 : 1;
        tensor->shape[1] = tensors[i].n_elements;
        *tensors[i].tensor = tensor;
    }
    return VXD_OK;
}

/* errors  RESOURCE_EXHAUSTED */
static enum vxd_status build(struct vxd_decoder *arena,
                             const struct vxd_named_head *heads, size_t n,
                             Voxeld__V1__VolumeWatchResponse **out, struct vxd_err *err)
{
    Voxeld__V1__VolumeWatchResponse *reply =
        vxd_message_new(arena, &voxeld__v1__volume_watch_response__descriptor, err);
    enum vxd_status status;

    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    reply->next = vxd_message_new(arena, &voxeld__v1__watch_point__descriptor, err);
    reply->heads = vxd_message_pointers(arena, n, err);
    reply->dropped = vxd_message_pointers(arena, n, err);
    if (reply->next == NULL || reply->heads == NULL || reply->dropped == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(add_tensors(arena, reply, err));
    for (size_t i = 0; i < n; i++) {
        VXD_TRY(add_head(arena, &heads[i], reply, err));
    }
    *out = reply;
out:
    return status;
}

enum vxd_status vxd_watch_volume_heads_reply(struct vxd_request *request,
                                             struct vxd_decoder **arena,
                                             struct vxd_err *err)
{
    const struct vxd_server *server = request->server;
    const Voxeld__V1__WatchPoint *known =
        ((const Voxeld__V1__VolumeWatchRequest *)request->input)->after;
    bool is_known = known != NULL && known->generation == run_of(server);
    Voxeld__V1__VolumeWatchResponse *reply = NULL;
    struct vxd_named_head *heads = NULL;
    bool is_complete = false;
    bool is_unchanged;
    uint64_t last = 0;
    size_t n = 0;
    enum vxd_status status;

    VXD_TRY(vxd_names_copy_heads(server->volumes, is_known ? known->version : 0, &heads,
                                 &n, &is_complete, &last, err));
    is_unchanged = is_known && known->version == last;
    VXD_TRY(vxd_decoder_create(ARENA_BYTES + n * (HEAD_BYTES + 2 * sizeof(void *)), NULL,
                               arena, err));
    /* A server without changes has the number 0, after which all comes. */
    VXD_TRY(build(*arena, heads, is_unchanged ? 0 : n, &reply, err));
    reply->kind = is_unchanged ? VOXELD__V1__WATCH_KIND__WATCH_UNCHANGED
                               : VOXELD__V1__WATCH_KIND__WATCH_HEADS;
    reply->is_complete = is_complete && !is_unchanged;
    reply->next->generation = run_of(server);
    reply->next->version = last;
    request->output = &reply->base;
out:
    free(heads);
    return status;
}
