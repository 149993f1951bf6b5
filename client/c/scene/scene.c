// SPDX-License-Identifier: Apache-2.0
/* Calls on whole scenes: create, get, list, drop; and the names of scenes. */
#include <string.h>

#include "client/c/scene/scene_call.h"

_Static_assert((int)VOXELD_FSYNC_ALWAYS ==
                       (int)VOXELD__V1__SCENE_FSYNC__SCENE_FSYNC_ALWAYS &&
                   (int)VOXELD_FSYNC_EVERYSEC ==
                       (int)VOXELD__V1__SCENE_FSYNC__SCENE_FSYNC_EVERYSEC &&
                   (int)VOXELD_FSYNC_OFF == (int)VOXELD__V1__SCENE_FSYNC__SCENE_FSYNC_OFF,
               "one set of numbers");

_Static_assert((int)VOXELD_FUSION_LAST ==
                       (int)VOXELD__V1__SCENE_FUSION__SCENE_FUSION_LAST &&
                   (int)VOXELD_FUSION_LOG_ODDS ==
                       (int)VOXELD__V1__SCENE_FUSION__SCENE_FUSION_LOG_ODDS,
               "one set of numbers");

/* True where a probability was given. */
static bool copy_log_odds(const struct voxeld_scene_log_odds *in,
                          Voxeld__V1__SceneLogOdds *out)
{
    voxeld__v1__scene_log_odds__init(out);
    out->hit = in->hit;
    out->miss = in->miss;
    out->clamp_low = in->clamp_low;
    out->clamp_high = in->clamp_high;
    out->occupied = in->occupied;
    out->label_votes = in->label_votes;
    return in->hit != 0 || in->miss != 0 || in->clamp_low != 0 || in->clamp_high != 0 ||
           in->occupied != 0 || in->label_votes != 0;
}

Voxeld__V1__Vec3 *vxd_scene_vec3(const double in[3], Voxeld__V1__Vec3 *out)
{
    voxeld__v1__vec3__init(out);
    out->x = in[0];
    out->y = in[1];
    out->z = in[2];
    return out;
}

/* Parses a version's number in decimal digits; 0 where it is none. */
static uint64_t parse_version(const char *digits)
{
    uint64_t number = 0;

    for (; *digits != '\0'; digits++) {
        uint64_t digit = (uint64_t)(*digits - '0');

        if (number > (UINT64_MAX - digit) / 10) {
            return 0;
        }
        number = number * 10 + digit;
    }
    return number;
}

enum vxd_status vxd_scene_name(struct vxd_exchange *call, const char *scene, char **name,
                               Voxeld__V1__SceneAt **at)
{
    const char *sign = scene != NULL ? strchr(scene, '@') : NULL;
    size_t n;

    *at = NULL;
    *name = vxd_text_or_empty(scene);
    if (sign == NULL) {
        return VXD_OK;
    }
    n = (size_t)(sign - scene);
    *name = vxd_exchange_alloc(call, n + 1, 1);
    *at = vxd_exchange_alloc(call, 1, sizeof **at);
    if (*name == NULL || *at == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    memcpy(*name, scene, n);
    voxeld__v1__scene_at__init(*at);
    if (sign[1 + strspn(sign + 1, "0123456789")] != '\0') {
        (*at)->snapshot = vxd_text_or_empty(sign + 1);
        return VXD_OK;
    }
    (*at)->version = parse_version(sign + 1);
    return (*at)->version > 0
               ? VXD_OK
               : vxd_fail(&call->err, VXD_INVALID_ARGUMENT, "at",
                          "\"%.63s\": after the @ comes a version from 1 on, or a "
                          "snapshot",
                          sign);
}

static enum vxd_status build_palette(struct vxd_exchange *call,
                                     const struct voxeld_scene_create_request *in,
                                     Voxeld__V1__SceneSpec *out)
{
    Voxeld__V1__SceneMaterial *all;

    /* Materials have at most 16 bits; this keeps loops from running over garbage
     * counts. */
    if (in->n_palette > UINT16_MAX + 1U || (in->n_palette > 0 && in->palette == NULL)) {
        return vxd_fail(&call->err, VXD_INVALID_ARGUMENT, "spec.palette",
                        "%zu materials at %p", in->n_palette, (const void *)in->palette);
    }
    all = vxd_exchange_alloc(call, in->n_palette, sizeof *all);
    out->palette =
        vxd_exchange_alloc(call, in->n_palette, sizeof(Voxeld__V1__SceneMaterial *));
    if (all == NULL || out->palette == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (size_t i = 0; i < in->n_palette; i++) {
        voxeld__v1__scene_material__init(&all[i]);
        all[i].name = vxd_text_or_empty(in->palette[i].name);
        all[i].rgb = in->palette[i].rgb;
        out->palette[i] = &all[i];
    }
    out->n_palette = in->n_palette;
    return VXD_OK;
}

enum voxeld_status voxeld_scene_create(struct voxeld_client *client,
                                       const struct voxeld_scene_create_request *request,
                                       struct voxeld_scenes **out,
                                       struct voxeld_error *error)
{
    Voxeld__V1__SceneCreateRequest body = VOXELD__V1__SCENE_CREATE_REQUEST__INIT;
    Voxeld__V1__SceneSpec spec = VOXELD__V1__SCENE_SPEC__INIT;
    Voxeld__V1__SceneRetention retention = VOXELD__V1__SCENE_RETENTION__INIT;
    Voxeld__V1__SceneDurability durability = VOXELD__V1__SCENE_DURABILITY__INIT;
    Voxeld__V1__SceneLogOdds log_odds;
    Voxeld__V1__Vec3 origin;
    struct vxd_exchange call;
    Voxeld__V1__SceneCreateResponse *response;
    enum vxd_status status;

    if (out != NULL) {
        *out = NULL;
    }
    VXD_TRY(vxd_exchange_begin(&call, client, &request->call, true));
    VXD_TRY(build_palette(&call, request, &spec));
    spec.voxel_size_m = request->voxel_size_m;
    spec.depth = request->depth;
    spec.material_bits = request->material_bits;
    spec.track_free = request->track_free;
    spec.fusion = (Voxeld__V1__SceneFusion)request->fusion;
    spec.log_odds = copy_log_odds(&request->log_odds, &log_odds) ? &log_odds : NULL;
    spec.origin = request->has_origin ? vxd_scene_vec3(request->origin_m, &origin) : NULL;
    spec.frame_id = vxd_text_or_empty(request->frame_id);
    body.name = vxd_text_or_empty(request->scene);
    body.spec = &spec;
    body.max_bytes = request->max_bytes;
    retention.versions = request->keep_versions;
    retention.seconds = request->keep_seconds;
    body.retention = &retention;
    durability.fsync = (Voxeld__V1__SceneFsync)request->fsync;
    durability.journal_max_bytes = request->journal_max_bytes;
    body.durability = request->durable ? &durability : NULL;
    call.request.method_case = VOXELD__V1__REQUEST__METHOD_SCENE_CREATE;
    call.request.scene_create = &body;
    VXD_TRY(vxd_exchange_send(&call));
    response = call.reply.response->scene_create;
    if (out != NULL) {
        bool existed = response->existed;

        VXD_TRY(vxd_scenes_open(&call, &response->scene, 1, out));
        (*out)->existed = existed;
    }
out:
    return vxd_exchange_end(&call, status, error);
}

static enum voxeld_status get(struct voxeld_client *client,
                              const struct voxeld_call *options, const char *scene,
                              bool uncounted, struct voxeld_scenes **out,
                              struct voxeld_error *error)
{
    Voxeld__V1__SceneGetRequest body = VOXELD__V1__SCENE_GET_REQUEST__INIT;
    struct vxd_exchange call;
    enum vxd_status status;

    *out = NULL;
    VXD_TRY(vxd_exchange_begin(&call, client, options, false));
    VXD_TRY(vxd_scene_name(&call, scene, &body.name, &body.at));
    call.request.method_case = VOXELD__V1__REQUEST__METHOD_SCENE_GET;
    call.request.scene_get = &body;
    body.uncounted = uncounted;
    VXD_TRY(vxd_exchange_send(&call));
    VXD_TRY(vxd_scenes_open(&call, &call.reply.response->scene_get->scene, 1, out));
    (*out)->existed = true;
out:
    return vxd_exchange_end(&call, status, error);
}

enum voxeld_status voxeld_scene_get(struct voxeld_client *client,
                                    const struct voxeld_call *options, const char *scene,
                                    struct voxeld_scenes **out,
                                    struct voxeld_error *error)
{
    return get(client, options, scene, false, out, error);
}

enum voxeld_status voxeld_scene_describe(struct voxeld_client *client,
                                         const struct voxeld_call *options,
                                         const char *scene, struct voxeld_scenes **out,
                                         struct voxeld_error *error)
{
    return get(client, options, scene, true, out, error);
}

enum voxeld_status voxeld_scene_list(struct voxeld_client *client,
                                     const struct voxeld_call *options,
                                     struct voxeld_scenes **out,
                                     struct voxeld_error *error)
{
    Voxeld__V1__SceneListRequest body = VOXELD__V1__SCENE_LIST_REQUEST__INIT;
    const Voxeld__V1__SceneListResponse *response;
    struct vxd_exchange call;
    enum vxd_status status;

    *out = NULL;
    VXD_TRY(vxd_exchange_begin(&call, client, options, false));
    call.request.method_case = VOXELD__V1__REQUEST__METHOD_SCENE_LIST;
    call.request.scene_list = &body;
    VXD_TRY(vxd_exchange_send(&call));
    response = call.reply.response->scene_list;
    VXD_TRY(vxd_scenes_open(&call, response->scenes, response->n_scenes, out));
    (*out)->n_bytes = response->n_bytes;
    (*out)->limit_bytes = response->limit_bytes;
out:
    return vxd_exchange_end(&call, status, error);
}

enum voxeld_status voxeld_scene_drop(struct voxeld_client *client,
                                     const struct voxeld_call *options, const char *scene,
                                     bool missing_ok, bool *existed,
                                     struct voxeld_error *error)
{
    Voxeld__V1__SceneDropRequest body = VOXELD__V1__SCENE_DROP_REQUEST__INIT;
    struct vxd_exchange call;
    enum vxd_status status;

    VXD_TRY(vxd_exchange_begin(&call, client, options, true));
    body.name = vxd_text_or_empty(scene);
    body.missing_ok = missing_ok;
    call.request.method_case = VOXELD__V1__REQUEST__METHOD_SCENE_DROP;
    call.request.scene_drop = &body;
    VXD_TRY(vxd_exchange_send(&call));
    if (existed != NULL) {
        *existed = call.reply.response->scene_drop->existed;
    }
out:
    return vxd_exchange_end(&call, status, error);
}
