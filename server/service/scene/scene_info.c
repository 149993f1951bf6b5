// SPDX-License-Identifier: Apache-2.0
/* Converts specs and SceneInfo between the schema and the registry. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "proto/base/name.h"
#include "server/instance/instance.h"
#include "server/service/service.h"
#include "server/service/scene/scene.h"

enum {
    DEFAULT_DEPTH = 17,
    /* Bytes of an info without its palette, and of a palette's entry without its name, in
     * an arena, whose blocks are aligned. */
    INFO_BYTES = 4096,
    ENTRY_BYTES = sizeof(Voxeld__V1__SceneMaterial) + 64
};

static int compare_names(const void *a, const void *b)
{
    const struct vxd_scene_material *const *x = a;
    const struct vxd_scene_material *const *y = b;
    int order = strcmp((*x)->name, (*y)->name);

    /* Of equal names the first in the palette comes first, so that the error names the
     * second. */
    return order != 0 ? order : *x < *y ? -1 : 1;
}

static enum vxd_status check_unique(struct vxd_request *request,
                                    const struct vxd_scene_material *palette, size_t n,
                                    struct vxd_err *err)
{
    const struct vxd_scene_material **sorted =
        vxd_message_pointers(request->decoder, n, err);

    if (sorted == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (size_t i = 0; i < n; i++) {
        sorted[i] = &palette[i];
    }
    qsort(sorted, n, sizeof(void *), compare_names);
    for (size_t i = 1; i < n; i++) {
        if (sorted[i]->name[0] != '\0' &&
            strcmp(sorted[i - 1]->name, sorted[i]->name) == 0) {
            char field[VXD_SCENE_PATH_BYTES];

            (void)snprintf(field, sizeof field, "spec.palette[%zu].name",
                           (size_t)(sorted[i] - palette));
            return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                            "\"%s\" is also the name of spec.palette[%zu]",
                            sorted[i]->name, (size_t)(sorted[i - 1] - palette));
        }
    }
    return VXD_OK;
}

static enum vxd_status read_palette(struct vxd_request *request,
                                    const Voxeld__V1__SceneSpec *spec,
                                    struct vxd_scene_spec *out, struct vxd_err *err)
{
    uint32_t n_materials = vxd_svdag_n_materials(&out->format);
    struct vxd_scene_material *palette;
    char field[VXD_SCENE_PATH_BYTES];

    if (spec->n_palette > n_materials) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "spec.palette",
                        "has %zu entries, the scene has %u materials", spec->n_palette,
                        n_materials);
    }
    palette = vxd_message_array(request->decoder, spec->n_palette, sizeof *palette, err);
    if (palette == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (size_t i = 0; i < spec->n_palette; i++) {
        const Voxeld__V1__SceneMaterial *material = spec->palette[i];

        if (material->name[0] != '\0' && !vxd_is_name(material->name)) {
            (void)snprintf(field, sizeof field, "spec.palette[%zu].name", i);
            return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                            "\"%.63s\" is no name: " VXD_NAME_RULE, material->name);
        }
        if (material->rgb > 0xffffff) {
            (void)snprintf(field, sizeof field, "spec.palette[%zu].rgb", i);
            return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                            "is 0x%x, it must be 0xRRGGBB", material->rgb);
        }
        palette[i] = (struct vxd_scene_material){material->name, material->rgb};
    }
    out->palette = palette;
    out->n_palette = spec->n_palette;
    return check_unique(request, palette, spec->n_palette, err);
}

static enum vxd_status read_format(const Voxeld__V1__SceneSpec *spec,
                                   struct vxd_svdag_format *out, struct vxd_err *err)
{
    uint32_t bits = spec->material_bits;

    if (spec->depth != 0 &&
        (spec->depth < VXD_SVDAG_MIN_DEPTH || spec->depth > VXD_SVDAG_MAX_DEPTH)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "spec.depth",
                        "is %u, it must be %d to %d (0 counts as %d)", spec->depth,
                        VXD_SVDAG_MIN_DEPTH, VXD_SVDAG_MAX_DEPTH, DEFAULT_DEPTH);
    }
    out->depth = spec->depth != 0 ? (int)spec->depth : DEFAULT_DEPTH;
    out->material_bits = (int)bits;
    out->tracks_free = spec->track_free;
    return VXD_OK;
}

/* Reads how scans are fused; UNSPECIFIED stays where a scene may exist. */
static enum vxd_status read_fusion(const Voxeld__V1__SceneSpec *spec,
                                   struct vxd_scene_spec *out, struct vxd_err *err)
{
    const Voxeld__V1__SceneLogOdds *given = spec->log_odds;
    int fusion = (int)spec->fusion;
    char field[VXD_SCENE_PATH_BYTES];

    if (given != NULL && fusion == VXD_SCENE_LAST) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "spec.log_odds",
                        "are given, but spec.fusion is SCENE_FUSION_LAST");
    }
    out->fusion = given != NULL ? VXD_SCENE_LOG_ODDS : (enum vxd_scene_fusion)fusion;
    if (out->fusion == VXD_SCENE_LOG_ODDS && !spec->track_free) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT,
                        given != NULL ? "spec.log_odds" : "spec.fusion",
                        "log-odds need track_free: without it no voxel is free");
    }
    if (out->fusion != VXD_SCENE_LOG_ODDS) {
        return VXD_OK;
    }
    if (given != NULL) {
        out->odds = (struct vxd_occupancy_odds){
            .hit = given->hit,
            .miss = given->miss,
            .clamp_low = given->clamp_low,
            .clamp_high = given->clamp_high,
            .occupied = given->occupied,
            .votes =
                given->label_votes > INT8_MAX ? INT8_MAX : (int32_t)given->label_votes};
    }
    if (out->odds.votes != 0 && spec->material_bits == 0) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "spec.log_odds.label_votes",
                        "is %d, but the scene has no materials: material_bits is 0",
                        (int)out->odds.votes);
    }
    if (vxd_occupancy_rule_of(&out->odds, &out->rule, err) == VXD_OK) {
        return VXD_OK;
    }
    (void)snprintf(field, sizeof field, "spec.log_odds.%.32s", err->field);
    (void)snprintf(err->field, sizeof err->field, "%s", field);
    return err->code;
}

enum vxd_status vxd_scene_choose_fusion(const struct vxd_scene_spec *existing,
                                        struct vxd_scene_spec *spec, struct vxd_err *err)
{
    if (spec->fusion != VXD_SCENE_FUSION_UNSPECIFIED) {
        return VXD_OK;
    }
    if (existing != NULL) {
        spec->fusion = existing->fusion;
        spec->odds = existing->odds;
        spec->rule = existing->rule;
        return VXD_OK;
    }
    spec->fusion = spec->format.tracks_free ? VXD_SCENE_LOG_ODDS : VXD_SCENE_LAST;
    return spec->fusion == VXD_SCENE_LOG_ODDS
               ? vxd_occupancy_rule_of(&spec->odds, &spec->rule, err)
               : VXD_OK;
}

static enum vxd_status read_origin(const Voxeld__V1__SceneSpec *spec,
                                   struct vxd_scene_spec *out, struct vxd_err *err)
{
    double side = ldexp(out->voxel_size_m, out->format.depth);
    enum vxd_status status;

    if (!isfinite(side)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "spec.voxel_size_m",
                        "is %g: the scene would be larger than numbers are",
                        out->voxel_size_m);
    }
    for (int i = 0; i < 3; i++) {
        out->origin_m[i] = -side / 2;
    }
    if (spec->origin == NULL) {
        return VXD_OK;
    }
    status = vxd_scene_check_vector(spec->origin, "spec.origin", err);
    out->origin_m[0] = spec->origin->x;
    out->origin_m[1] = spec->origin->y;
    out->origin_m[2] = spec->origin->z;
    return status;
}

enum vxd_status vxd_scene_read_spec(struct vxd_request *request,
                                    const Voxeld__V1__SceneSpec *spec,
                                    struct vxd_scene_spec *out, struct vxd_err *err)
{
    enum vxd_status status;

    memset(out, 0, sizeof *out);
    if (spec == NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "spec", "is required");
    }
    if (!(spec->voxel_size_m > 0) || !isfinite(spec->voxel_size_m)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "spec.voxel_size_m",
                        "is %g, it must be > 0 and finite, in metres",
                        spec->voxel_size_m);
    }
    out->voxel_size_m = spec->voxel_size_m;
    VXD_TRY(read_format(spec, &out->format, err));
    VXD_TRY(read_fusion(spec, out, err));
    VXD_TRY(read_origin(spec, out, err));
    if (strlen(spec->frame_id) >= VXD_SCENE_FRAME_BYTES) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "spec.frame_id",
                         "has %zu bytes, at most %d are allowed", strlen(spec->frame_id),
                         VXD_SCENE_FRAME_BYTES - 1));
    }
    (void)snprintf(out->frame_id, sizeof out->frame_id, "%s", spec->frame_id);
    status = read_palette(request, spec, out, err);
out:
    return status;
}

/* --- SceneInfo -------------------------------------------------------------------------- */

size_t vxd_scene_info_bytes(const struct vxd_scene *scene, bool with_palette)
{
    return INFO_BYTES + (with_palette ? scene->spec.n_palette * ENTRY_BYTES +
                                            scene->palette_memory.n_bytes
                                      : 0);
}

static char *copy_text(struct vxd_decoder *arena, const char *text, struct vxd_err *err)
{
    return vxd_message_text(arena, text, strlen(text), err);
}

static enum vxd_status new_palette(struct vxd_decoder *arena,
                                   const struct vxd_scene_spec *spec,
                                   Voxeld__V1__SceneSpec *out, struct vxd_err *err)
{
    out->palette = vxd_message_pointers(arena, spec->n_palette, err);
    if (out->palette == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (size_t i = 0; i < spec->n_palette; i++) {
        Voxeld__V1__SceneMaterial *material =
            vxd_message_new(arena, &voxeld__v1__scene_material__descriptor, err);

        if (material == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
        material->name = copy_text(arena, spec->palette[i].name, err);
        if (material->name == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
        material->rgb = spec->palette[i].rgb;
        out->palette[i] = material;
        out->n_palette = i + 1;
    }
    return VXD_OK;
}

static enum vxd_status new_spec(struct vxd_decoder *arena,
                                const struct vxd_scene_spec *spec, bool with_palette,
                                Voxeld__V1__SceneSpec **out, struct vxd_err *err)
{
    Voxeld__V1__SceneSpec *copy =
        vxd_message_new(arena, &voxeld__v1__scene_spec__descriptor, err);

    if (copy == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    copy->origin = vxd_message_new(arena, &voxeld__v1__vec3__descriptor, err);
    copy->frame_id = copy_text(arena, spec->frame_id, err);
    if (copy->origin == NULL || copy->frame_id == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    copy->voxel_size_m = spec->voxel_size_m;
    copy->depth = (uint32_t)spec->format.depth;
    copy->material_bits = (uint32_t)spec->format.material_bits;
    copy->track_free = spec->format.tracks_free;
    copy->fusion = (Voxeld__V1__SceneFusion)spec->fusion;
    copy->origin->x = spec->origin_m[0];
    copy->origin->y = spec->origin_m[1];
    copy->origin->z = spec->origin_m[2];
    *out = copy;
    if (spec->fusion == VXD_SCENE_LOG_ODDS) {
        copy->log_odds =
            vxd_message_new(arena, &voxeld__v1__scene_log_odds__descriptor, err);
        if (copy->log_odds == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
        copy->log_odds->hit = spec->odds.hit;
        copy->log_odds->miss = spec->odds.miss;
        copy->log_odds->clamp_low = spec->odds.clamp_low;
        copy->log_odds->clamp_high = spec->odds.clamp_high;
        copy->log_odds->occupied = spec->odds.occupied;
        copy->log_odds->step = spec->rule.step;
        copy->log_odds->error = spec->rule.error;
        copy->log_odds->label_votes = (uint32_t)spec->odds.votes;
    }
    return with_palette ? new_palette(arena, spec, copy, err) : VXD_OK;
}

/* Fills in how long versions are kept, and where. */
static enum vxd_status add_keeping(struct vxd_decoder *arena,
                                   const struct vxd_scene_terms *terms,
                                   Voxeld__V1__SceneInfo *info, struct vxd_err *err)
{
    info->retention =
        vxd_message_new(arena, &voxeld__v1__scene_retention__descriptor, err);
    if (info->retention == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    info->retention->versions = terms->keep_versions;
    info->retention->seconds = terms->keep_seconds;
    if (!terms->durable) {
        return VXD_OK;
    }
    info->durability =
        vxd_message_new(arena, &voxeld__v1__scene_durability__descriptor, err);
    if (info->durability == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    info->durability->fsync = (Voxeld__V1__SceneFsync)terms->fsync;
    info->durability->journal_max_bytes = terms->journal_max_bytes;
    return VXD_OK;
}

static enum vxd_status add_sensor(struct vxd_decoder *arena, struct vxd_scene *scene,
                                  Voxeld__V1__SceneInfo *info, struct vxd_err *err)
{
    struct vxd_scene_sensor sensor;
    Voxeld__V1__Pose *pose;

    vxd_scene_get_sensor(scene, &sensor);
    if (sensor.stamp_ns == 0) {
        return VXD_OK;
    }
    pose = vxd_message_new(arena, &voxeld__v1__pose__descriptor, err);
    if (pose == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    pose->translation = vxd_message_new(arena, &voxeld__v1__vec3__descriptor, err);
    pose->rotation = vxd_message_new(arena, &voxeld__v1__quaternion__descriptor, err);
    if (pose->translation == NULL || pose->rotation == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    pose->translation->x = sensor.place[0];
    pose->translation->y = sensor.place[1];
    pose->translation->z = sensor.place[2];
    pose->rotation->x = sensor.turn[0];
    pose->rotation->y = sensor.turn[1];
    pose->rotation->z = sensor.turn[2];
    pose->rotation->w = sensor.turn[3];
    info->t_map_sensor = pose;
    info->sensor_ns = sensor.stamp_ns;
    return VXD_OK;
}

enum vxd_status vxd_scene_new_info(struct vxd_decoder *arena, struct vxd_scene *scene,
                                   bool with_palette, Voxeld__V1__SceneInfo **out,
                                   struct vxd_err *err)
{
    Voxeld__V1__SceneInfo *info =
        vxd_message_new(arena, &voxeld__v1__scene_info__descriptor, err);
    struct vxd_scene_log_summary summary;
    struct vxd_svdag_usage usage;
    enum vxd_status status;

    if (info == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(new_spec(arena, &scene->spec, with_palette, &info->spec, err));
    info->name = copy_text(arena, scene->terms.name, err);
    info->owner = copy_text(arena, scene->terms.owner, err);
    if (info->name == NULL || info->owner == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(add_keeping(arena, &scene->terms, info, err));
    VXD_TRY(add_sensor(arena, scene, info, err));
    vxd_scene_get_log_summary(scene, &summary);
    vxd_scene_get_usage(scene, &usage);
    info->version = summary.version;
    info->oldest_version = summary.oldest;
    info->n_snapshots = (uint32_t)summary.n_snapshots;
    info->n_sharing = (uint32_t)summary.n_sharing;
    info->generation = scene->generation;
    info->log_odds_bytes = vxd_scene_log_odds_bytes(scene);
    info->vote_bytes = vxd_scene_vote_bytes(scene);
    info->n_bytes = usage.n_bytes + info->log_odds_bytes;
    info->max_bytes = scene->terms.max_bytes;
    info->node_bytes = usage.node_bytes;
    info->n_nodes = usage.n_leaves + usage.n_inner;
    info->created_ns = scene->created_unix_ns;
    info->changed_ns = summary.changed_unix_ns;
    *out = info;
out:
    return status;
}
