// SPDX-License-Identifier: Apache-2.0
/* Turns the wire's replies about scenes into the public structs. The server is not
 * trusted: every length is checked against the counts before a pointer goes out. */
#include "client/c/scene/scene_call.h"

/* Scenes -------------------------------------------------------------------------------- */

static enum vxd_status copy_info(struct vxd_reply *reply, const Voxeld__V1__SceneInfo *in,
                                 struct voxeld_scene_info *out, struct vxd_err *err)
{
    struct voxeld_scene_material *palette;

    if (in == NULL || in->spec == NULL) {
        return vxd_reply_bad(err, "scene", "a scene without its description");
    }
    palette = vxd_reply_alloc(reply, in->spec->n_palette, sizeof *palette);
    if (palette == NULL) {
        return vxd_reply_no_memory(err);
    }
    for (size_t i = 0; i < in->spec->n_palette; i++) {
        palette[i].name = in->spec->palette[i]->name;
        palette[i].rgb = in->spec->palette[i]->rgb;
    }
    *out = (struct voxeld_scene_info){
        .name = in->name,
        .voxel_size_m = in->spec->voxel_size_m,
        .depth = in->spec->depth,
        .material_bits = in->spec->material_bits,
        .track_free = in->spec->track_free,
        .frame_id = in->spec->frame_id,
        .palette = palette,
        .n_palette = in->spec->n_palette,
        .version = in->version,
        .generation = in->generation,
        .n_bytes = in->n_bytes,
        .max_bytes = in->max_bytes,
        .node_bytes = in->node_bytes,
        .n_nodes = in->n_nodes,
        .owner = in->owner,
        .created_ns = in->created_ns,
        .changed_ns = in->changed_ns,
        .n_occupied = in->n_occupied,
        .n_free = in->n_free,
        .live_node_bytes = in->live_node_bytes,
        .digest = in->digest,
        .keep_versions = in->retention != NULL ? in->retention->versions : 0,
        .keep_seconds = in->retention != NULL ? in->retention->seconds : 0,
        .oldest_version = in->oldest_version,
        .n_snapshots = in->n_snapshots,
        .n_sharing = in->n_sharing,
        .durable = in->durability != NULL,
        .fusion = (enum voxeld_scene_fusion)in->spec->fusion,
        .log_odds_bytes = in->log_odds_bytes,
        .n_pinned = in->n_pinned,
        .vote_bytes = in->vote_bytes,
    };
    if (in->spec->log_odds != NULL) {
        const Voxeld__V1__SceneLogOdds *odds = in->spec->log_odds;

        out->log_odds = (struct voxeld_scene_log_odds){
            odds->hit,      odds->miss, odds->clamp_low, odds->clamp_high,
            odds->occupied, odds->step, odds->error,     odds->label_votes};
    }
    if (in->durability != NULL) {
        out->fsync = (enum voxeld_scene_fsync)in->durability->fsync;
        out->journal_max_bytes = in->durability->journal_max_bytes;
    }
    vxd_reply_vec3(in->spec->origin, out->origin_m);
    vxd_reply_vec3(in->occupied_low, out->occupied_low_m);
    vxd_reply_vec3(in->occupied_high, out->occupied_high_m);
    return VXD_OK;
}

enum vxd_status vxd_scenes_open(struct vxd_exchange *call,
                                Voxeld__V1__SceneInfo *const *in, size_t n,
                                struct voxeld_scenes **out)
{
    struct voxeld_scenes *scenes =
        vxd_result_new(&call->reply, sizeof *scenes, &call->err);
    struct voxeld_scene_info *list;
    enum vxd_status status = VXD_OK;

    if (scenes == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    list = vxd_reply_alloc(vxd_result_reply(scenes), n, sizeof *list);
    if (list == NULL) {
        status = vxd_reply_no_memory(&call->err);
        goto out;
    }
    for (size_t i = 0; i < n; i++) {
        VXD_TRY(copy_info(vxd_result_reply(scenes), in[i], &list[i], &call->err));
    }
    scenes->scenes = list;
    scenes->n_scenes = n;
    scenes->replayed = vxd_result_reply(scenes)->response->header->replayed;
    *out = scenes;
    return VXD_OK;
out:
    voxeld_scenes_free(scenes);
    return status;
}

void voxeld_scenes_free(struct voxeld_scenes *scenes)
{
    vxd_result_free(scenes);
}

enum vxd_status vxd_scene_change_copy(const Voxeld__V1__SceneChange *in,
                                      struct voxeld_scene_change *out,
                                      struct vxd_err *err)
{
    if (in == NULL) {
        return vxd_reply_bad(err, "change", "a change that does not say what it did");
    }
    *out = (struct voxeld_scene_change){
        .version = in->version,
        .n_added = in->n_added,
        .n_removed = in->n_removed,
        .n_changed = in->n_changed,
        .n_freed = in->n_freed,
        .n_new_nodes = in->n_new_nodes,
    };
    return VXD_OK;
}

/* Queries ------------------------------------------------------------------------------- */

/* Opens an array of n rows of n_columns numbers. */
static enum vxd_status rows(const Voxeld__V1__Tensor *tensor, const char *name,
                            Voxeld__V1__DType dtype, size_t n, size_t n_columns,
                            const void **out, struct vxd_err *err)
{
    const size_t shape[2] = {n, n_columns};

    return vxd_reply_tensor(tensor, name, dtype, shape, n_columns > 1 ? 2 : 1, out, err);
}

/* Scenes without materials have none of these. */
static enum vxd_status materials(const Voxeld__V1__Tensor *tensor, size_t n,
                                 const uint16_t **out, struct vxd_err *err)
{
    const void *data = NULL;
    enum vxd_status status = VXD_OK;

    if (tensor != NULL) {
        status = rows(tensor, "materials", VOXELD__V1__DTYPE__UINT16, n, 1, &data, err);
    }
    *out = data;
    return status;
}

static enum vxd_status set_seen(const Voxeld__V1__SceneSeen *in, uint64_t *version,
                                uint64_t *generation, double *engine_ms,
                                struct vxd_err *err)
{
    if (in == NULL) {
        return vxd_reply_bad(err, "seen", "an answer that does not say of which version");
    }
    *version = in->version;
    *generation = in->generation;
    *engine_ms = in->engine_ms;
    return VXD_OK;
}

static enum vxd_status open_values(const Voxeld__V1__SceneValuesResponse *in,
                                   struct voxeld_scene_found *f, struct vxd_err *err)
{
    const void *data = NULL;
    enum vxd_status status;

    VXD_TRY(set_seen(in->seen, &f->version, &f->generation, &f->engine_ms, err));
    VXD_TRY(rows(in->states, "states", VOXELD__V1__DTYPE__UINT8, f->n, 1, &data, err));
    f->states = data;
    VXD_TRY(materials(in->materials, f->n, &f->materials, err));
out:
    return status;
}

static enum vxd_status open_places(const Voxeld__V1__Tensor *distances,
                                   const Voxeld__V1__Tensor *voxels,
                                   struct voxeld_scene_found *f, struct vxd_err *err)
{
    const void *data = NULL;
    enum vxd_status status;

    VXD_TRY(
        rows(distances, "distances", VOXELD__V1__DTYPE__FLOAT32, f->n, 1, &data, err));
    f->distances = data;
    VXD_TRY(rows(voxels, "voxels", VOXELD__V1__DTYPE__INT32, f->n, 3, &data, err));
    f->voxels = data;
    if (f->n_hits > f->n) {
        return vxd_reply_bad(err, "n_hits", "more than there are rows");
    }
out:
    return status;
}

static enum vxd_status open_rays(const Voxeld__V1__SceneCastRaysResponse *in,
                                 struct voxeld_scene_found *f, struct vxd_err *err)
{
    const void *data = NULL;
    enum vxd_status status;

    VXD_TRY(set_seen(in->seen, &f->version, &f->generation, &f->engine_ms, err));
    f->n_hits = in->n_hits;
    VXD_TRY(open_places(in->distances, in->voxels, f, err));
    VXD_TRY(rows(in->normals, "normals", VOXELD__V1__DTYPE__INT8, f->n, 3, &data, err));
    f->normals = data;
    VXD_TRY(materials(in->materials, f->n, &f->materials, err));
out:
    return status;
}

static enum vxd_status open_nearest(const Voxeld__V1__SceneNearestResponse *in,
                                    struct voxeld_scene_found *f, struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(set_seen(in->seen, &f->version, &f->generation, &f->engine_ms, err));
    f->n_hits = in->n_found;
    VXD_TRY(open_places(in->distances, in->voxels, f, err));
    VXD_TRY(materials(in->materials, f->n, &f->materials, err));
out:
    return status;
}

static enum vxd_status open_overlap(const Voxeld__V1__SceneOverlapResponse *in,
                                    bool counts, struct voxeld_scene_found *f,
                                    struct vxd_err *err)
{
    const Voxeld__V1__DType u64 = VOXELD__V1__DTYPE__UINT64;
    const void *data = NULL;
    enum vxd_status status;

    VXD_TRY(set_seen(in->seen, &f->version, &f->generation, &f->engine_ms, err));
    VXD_TRY(rows(in->states, "states", VOXELD__V1__DTYPE__UINT8, f->n, 1, &data, err));
    f->states = data;
    if (counts) {
        VXD_TRY(rows(in->n_occupied, "n_occupied", u64, f->n, 1, &data, err));
        f->n_occupied = data;
        VXD_TRY(rows(in->n_free, "n_free", u64, f->n, 1, &data, err));
        f->n_free = data;
    }
out:
    return status;
}

enum vxd_status vxd_scene_found_open(struct vxd_exchange *call, size_t n, bool counts,
                                     struct voxeld_scene_found **out)
{
    struct voxeld_scene_found *found =
        vxd_result_new(&call->reply, sizeof *found, &call->err);
    const Voxeld__V1__Response *response;
    enum vxd_status status = VXD_OK;

    if (found == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    response = vxd_result_reply(found)->response;
    *found = (struct voxeld_scene_found){
        .n = n,
        .queue_ms = response->header->queue_ms,
        .total_ms = response->header->total_ms,
        .request_id = response->header->request_id,
    };
    switch (response->method_case) {
    case VOXELD__V1__RESPONSE__METHOD_SCENE_VALUES:
        VXD_TRY(open_values(response->scene_values, found, &call->err));
        break;
    case VOXELD__V1__RESPONSE__METHOD_SCENE_CAST_RAYS:
        VXD_TRY(open_rays(response->scene_cast_rays, found, &call->err));
        break;
    case VOXELD__V1__RESPONSE__METHOD_SCENE_NEAREST:
        VXD_TRY(open_nearest(response->scene_nearest, found, &call->err));
        break;
    default:
        VXD_TRY(open_overlap(response->scene_overlap, counts, found, &call->err));
        break;
    }
    *out = found;
    return VXD_OK;
out:
    voxeld_scene_found_free(found);
    return status;
}

void voxeld_scene_found_free(struct voxeld_scene_found *found)
{
    vxd_result_free(found);
}

/* Export -------------------------------------------------------------------------------- */

static enum vxd_status open_list(const Voxeld__V1__SceneExportResponse *in, bool counts,
                                 struct voxeld_scene_cells *c, struct vxd_err *err)
{
    const void *data = NULL;
    enum vxd_status status = VXD_OK;

    if (in->cells == NULL || in->cells->n_shape != 2 || in->cells->shape[0] < 0 ||
        (uint64_t)in->cells->shape[0] > in->n_cells) {
        return vxd_reply_bad(err, "cells",
                             "not three numbers a cell, of those there are");
    }
    c->n = (size_t)in->cells->shape[0];
    VXD_TRY(rows(in->cells, "cells", VOXELD__V1__DTYPE__INT32, c->n, 3, &data, err));
    c->cells = data;
    VXD_TRY(materials(in->materials, c->n, &c->materials, err));
    if (counts) {
        VXD_TRY(
            rows(in->counts, "counts", VOXELD__V1__DTYPE__UINT64, c->n, 1, &data, err));
        c->counts = data;
    }
out:
    return status;
}

static enum vxd_status open_dense(const Voxeld__V1__SceneExportResponse *in,
                                  struct voxeld_scene_cells *c, struct vxd_err *err)
{
    const void *data = NULL;
    enum vxd_status status = VXD_OK;

    if (in->states == NULL || in->states->n_shape != 3 || in->n_low_cell != 3) {
        return vxd_reply_bad(err, "states", "no array of three axes and its low cell");
    }
    for (size_t i = 0; i < 3; i++) {
        if (in->states->shape[i] < 0) {
            return vxd_reply_bad(err, "states", "a negative extent");
        }
        c->shape[i] = (size_t)in->states->shape[i];
        c->low_cell[i] = in->low_cell[i];
    }
    VXD_TRY(vxd_reply_tensor(in->states, "states", VOXELD__V1__DTYPE__UINT8, c->shape, 3,
                             &data, err));
    c->states = data;
    /* No overflow: the states are in memory. */
    c->n = c->shape[0] * c->shape[1] * c->shape[2];
    if (in->materials != NULL) {
        VXD_TRY(vxd_reply_tensor(in->materials, "materials", VOXELD__V1__DTYPE__UINT16,
                                 c->shape, 3, &data, err));
        c->materials = data;
    }
out:
    return status;
}

static enum vxd_status open_export(const Voxeld__V1__SceneExportResponse *in,
                                   enum voxeld_scene_format format, bool counts,
                                   struct voxeld_scene_cells *c, struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(set_seen(in->seen, &c->version, &c->generation, &c->engine_ms, err));
    c->n_cells = in->n_cells;
    c->cell_size_m = in->cell_size_m;
    c->frame_id = in->frame_id;
    vxd_reply_vec3(in->origin, c->origin_m);
    if (format == VOXELD_SCENE_PLY) {
        if (in->ply.len == 0) {
            return vxd_reply_bad(err, "ply", "requested, but missing");
        }
        c->ply = in->ply.data;
        c->n_ply_bytes = in->ply.len;
        return VXD_OK;
    }
    return format == VOXELD_SCENE_DENSE ? open_dense(in, c, err)
                                        : open_list(in, counts, c, err);
out:
    return status;
}

enum vxd_status vxd_scene_cells_open(struct vxd_exchange *call,
                                     enum voxeld_scene_format format, bool counts,
                                     struct voxeld_scene_cells **out)
{
    struct voxeld_scene_cells *cells =
        vxd_result_new(&call->reply, sizeof *cells, &call->err);
    const Voxeld__V1__Response *response;
    enum vxd_status status;

    if (cells == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    response = vxd_result_reply(cells)->response;
    cells->queue_ms = response->header->queue_ms;
    cells->total_ms = response->header->total_ms;
    cells->request_id = response->header->request_id;
    VXD_TRY(open_export(response->scene_export, format, counts, cells, &call->err));
    *out = cells;
    return VXD_OK;
out:
    voxeld_scene_cells_free(cells);
    return status;
}

void voxeld_scene_cells_free(struct voxeld_scene_cells *cells)
{
    vxd_result_free(cells);
}
