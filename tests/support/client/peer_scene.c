// SPDX-License-Identifier: Apache-2.0
/* The peer's answers about scenes. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/client/peer.h"

enum {
    MAX_ROWS = 4096,
    VERTEX_BYTES = 12,
    DENSE_CELLS = 24
};

/* Memory of one answer. */
struct scene_answer {
    Voxeld__V1__Response response;
    Voxeld__V1__ResponseHeader header;
    union {
        Voxeld__V1__SceneCreateResponse create;
        Voxeld__V1__SceneDropResponse drop;
        Voxeld__V1__SceneListResponse list;
        Voxeld__V1__SceneGetResponse get;
        Voxeld__V1__SceneEditResponse edit;
        struct {
            Voxeld__V1__SceneIntegrateResponse integrate;
            Voxeld__V1__NetworkTimings network;
        };
        Voxeld__V1__SceneValuesResponse values;
        Voxeld__V1__SceneCastRaysResponse rays;
        Voxeld__V1__SceneNearestResponse nearest;
        Voxeld__V1__SceneOverlapResponse overlap;
        Voxeld__V1__SceneExportResponse export;
    } u;
    Voxeld__V1__SceneInfo info;
    Voxeld__V1__SceneInfo *infos[1];
    Voxeld__V1__SceneSpec spec;
    Voxeld__V1__SceneRetention retention;
    Voxeld__V1__SceneDurability durability;
    Voxeld__V1__SceneMaterial materials[2];
    Voxeld__V1__SceneMaterial *palette[2];
    Voxeld__V1__Vec3 origin;
    Voxeld__V1__SceneChange change;
    Voxeld__V1__SceneSeen seen;
    Voxeld__V1__Tensor states;
    Voxeld__V1__Tensor material;
    Voxeld__V1__Tensor distances;
    Voxeld__V1__Tensor voxels;
    Voxeld__V1__Tensor normals;
    Voxeld__V1__Tensor counts;
    int64_t shape_states[3];
    int64_t shape_material[3];
    int64_t shape_distances[1];
    int64_t shape_voxels[2];
    int64_t shape_normals[2];
    int64_t shape_counts[1];
    int64_t low_cell[3];
    uint8_t state_data[MAX_ROWS];
    uint16_t material_data[MAX_ROWS];
    float distance_data[MAX_ROWS];
    int32_t voxel_data[3 * MAX_ROWS];
    int8_t normal_data[3 * MAX_ROWS];
    uint64_t count_data[MAX_ROWS];
    char ply[256];
};

/* Rows that count up from `first`. */
static void fill_rows(struct scene_answer *a, size_t n, size_t first)
{
    for (size_t i = 0; i < n; i++) {
        a->state_data[i] = 2;
        a->material_data[i] = (uint16_t)(first + i);
        a->distance_data[i] = (float)i;
        a->voxel_data[3 * i + 2] = (int32_t)(first + i);
        a->normal_data[3 * i] = -1;
        a->count_data[i] = 10 + first + i;
    }
    a->shape_states[0] = a->shape_material[0] = a->shape_distances[0] =
        a->shape_voxels[0] = a->shape_normals[0] = a->shape_counts[0] = (int64_t)n;
    a->shape_voxels[1] = a->shape_normals[1] = 3;
    peer_fill_tensor(&a->states, VOXELD__V1__DTYPE__UINT8, a->shape_states, 1,
                     a->state_data);
    peer_fill_tensor(&a->material, VOXELD__V1__DTYPE__UINT16, a->shape_material, 1,
                     a->material_data);
    peer_fill_tensor(&a->distances, VOXELD__V1__DTYPE__FLOAT32, a->shape_distances, 1,
                     a->distance_data);
    peer_fill_tensor(&a->voxels, VOXELD__V1__DTYPE__INT32, a->shape_voxels, 2,
                     a->voxel_data);
    peer_fill_tensor(&a->normals, VOXELD__V1__DTYPE__INT8, a->shape_normals, 2,
                     a->normal_data);
    peer_fill_tensor(&a->counts, VOXELD__V1__DTYPE__UINT64, a->shape_counts, 1,
                     a->count_data);
}

/* In the tensors; what is not among an answer's tensors spoils nothing. */
static void spoil(struct scene_answer *a, enum peer_scene_flaw flaw)
{
    switch (flaw) {
    case SCENE_FLAW_STATES_SHORT:
        a->states.data.len -= 1;
        break;
    case SCENE_FLAW_STATES_DTYPE:
        a->states.dtype = VOXELD__V1__DTYPE__INT8;
        break;
    case SCENE_FLAW_MATERIALS_SHAPE:
        a->shape_material[0]++;
        break;
    case SCENE_FLAW_DISTANCES_SHORT:
        a->distances.data.len -= 4;
        break;
    case SCENE_FLAW_VOXELS_WIDTH:
        a->shape_voxels[1] = 2;
        break;
    case SCENE_FLAW_NORMALS_DTYPE:
        a->normals.dtype = VOXELD__V1__DTYPE__UINT8;
        break;
    case SCENE_FLAW_CELLS_AXES:
        a->voxels.n_shape = 1;
        break;
    case SCENE_FLAW_CELLS_NEGATIVE:
        a->shape_voxels[0] = -1;
        break;
    case SCENE_FLAW_DENSE_AXES:
        a->states.n_shape = 2;
        break;
    case SCENE_FLAW_DENSE_NEGATIVE:
        a->shape_states[1] = -3;
        break;
    default:
        break;
    }
}

static void fill_info(struct scene_answer *a, enum peer_scene_flaw flaw)
{
    voxeld__v1__scene_info__init(&a->info);
    voxeld__v1__scene_spec__init(&a->spec);
    voxeld__v1__vec3__init(&a->origin);
    for (size_t i = 0; i < 2; i++) {
        voxeld__v1__scene_material__init(&a->materials[i]);
        a->palette[i] = &a->materials[i];
    }
    a->materials[1].name = "grass";
    a->materials[1].rgb = 0x00ff7f;
    a->origin.y = -2.5;
    a->spec.voxel_size_m = 0.25;
    a->spec.depth = 12;
    a->spec.material_bits = 4;
    a->spec.track_free = 1;
    a->spec.origin = &a->origin;
    a->spec.frame_id = "map";
    a->spec.palette = a->palette;
    a->spec.n_palette = 2;
    a->info.name = "yard";
    a->info.spec = flaw == SCENE_FLAW_SPEC_MISSING ? NULL : &a->spec;
    a->info.version = 7;
    a->info.n_occupied = 1234567;
    a->info.digest = "00112233445566778899aabbccddeeff";
    a->info.owner = "robot";
    voxeld__v1__scene_retention__init(&a->retention);
    a->retention.versions = 12;
    a->retention.seconds = 3600;
    voxeld__v1__scene_durability__init(&a->durability);
    a->durability.fsync = VOXELD__V1__SCENE_FSYNC__SCENE_FSYNC_EVERYSEC;
    a->durability.journal_max_bytes = 5000;
    a->info.retention = &a->retention;
    a->info.durability = &a->durability;
    a->info.oldest_version = 2;
    a->info.n_snapshots = 1;
    a->info.n_sharing = 3;
    a->infos[0] = &a->info;
}

static void fill_change(struct scene_answer *a, uint64_t version)
{
    voxeld__v1__scene_change__init(&a->change);
    a->change.version = version;
    a->change.n_added = 1000;
    a->change.n_removed = 20;
    a->change.n_changed = 3;
    a->change.n_freed = 4;
    a->change.n_new_nodes = 5;
}

static void answer_whole(struct scene_answer *a, const Voxeld__V1__Request *request,
                         enum peer_scene_flaw flaw)
{
    fill_info(a, flaw);
    switch (request->method_case) {
    case VOXELD__V1__REQUEST__METHOD_SCENE_CREATE:
        voxeld__v1__scene_create_response__init(&a->u.create);
        a->u.create.scene = &a->info;
        a->u.create.existed = 1;
        a->response.scene_create = &a->u.create;
        break;
    case VOXELD__V1__REQUEST__METHOD_SCENE_DROP:
        voxeld__v1__scene_drop_response__init(&a->u.drop);
        a->u.drop.existed = 1;
        a->response.scene_drop = &a->u.drop;
        break;
    case VOXELD__V1__REQUEST__METHOD_SCENE_LIST:
        voxeld__v1__scene_list_response__init(&a->u.list);
        a->u.list.scenes = a->infos;
        a->u.list.n_scenes = 1;
        a->u.list.n_bytes = 1000;
        a->response.scene_list = &a->u.list;
        break;
    default:
        voxeld__v1__scene_get_response__init(&a->u.get);
        a->u.get.scene = &a->info;
        a->response.scene_get = &a->u.get;
        break;
    }
}

/* Points that a change was asked for. */
static uint64_t points_of(const Voxeld__V1__Cloud *cloud)
{
    return cloud != NULL && cloud->point_step > 0 ? cloud->data.len / cloud->point_step
                                                  : 0;
}

static void answer_change(struct scene_answer *a, const Voxeld__V1__Request *request,
                          enum peer_scene_flaw flaw)
{
    Voxeld__V1__SceneChange *change =
        flaw == SCENE_FLAW_CHANGE_MISSING ? NULL : &a->change;

    if (request->method_case == VOXELD__V1__REQUEST__METHOD_SCENE_EDIT) {
        voxeld__v1__scene_edit_response__init(&a->u.edit);
        fill_change(a, request->scene_edit->if_version + 1);
        a->u.edit.change = change;
        a->u.edit.n_outside = request->scene_edit->n_operations;
        a->u.edit.engine_ms = 1.5;
        a->response.scene_edit = &a->u.edit;
    } else {
        voxeld__v1__scene_integrate_response__init(&a->u.integrate);
        fill_change(a, request->scene_integrate->if_version + 1);
        a->u.integrate.change = change;
        a->u.integrate.stamp_ns = request->scene_integrate->cloud->stamp_ns;
        a->u.integrate.n_points = points_of(request->scene_integrate->cloud);
        a->u.integrate.n_used = a->u.integrate.n_points;
        a->u.integrate.carve_ms = 0.5;
        a->u.integrate.engine_ms = 2.5;
        if (request->scene_integrate->network[0] != '\0') {
            voxeld__v1__network_timings__init(&a->u.network);
            a->u.network.layers_ms = 1.25;
            a->u.network.n_items = 2;
            a->u.integrate.network = &a->u.network;
            a->u.integrate.digest = "0123456789abcdef";
            a->u.integrate.n_dropped = request->scene_integrate->n_label_to_material;
            a->u.integrate.n_relabelled = a->change.n_changed;
        }
        a->response.scene_integrate = &a->u.integrate;
    }
}

static size_t n_rows(const Voxeld__V1__Tensor *tensor)
{
    int64_t n = tensor != NULL && tensor->n_shape > 0 ? tensor->shape[0] : 0;

    return n > 0 && n <= MAX_ROWS ? (size_t)n : 0;
}

static void answer_rays(struct scene_answer *a, size_t n, Voxeld__V1__SceneSeen *seen,
                        enum peer_scene_flaw flaw)
{
    voxeld__v1__scene_cast_rays_response__init(&a->u.rays);
    fill_rows(a, n, 0);
    spoil(a, flaw);
    a->u.rays.seen = seen;
    a->u.rays.distances = &a->distances;
    a->u.rays.voxels = &a->voxels;
    a->u.rays.normals = &a->normals;
    a->u.rays.materials = &a->material;
    a->u.rays.n_hits = flaw == SCENE_FLAW_HITS_MANY ? n + 1 : n;
    a->response.scene_cast_rays = &a->u.rays;
}

static void answer_overlap(struct scene_answer *a,
                           const Voxeld__V1__SceneOverlapRequest *r,
                           Voxeld__V1__SceneSeen *seen, enum peer_scene_flaw flaw)
{
    voxeld__v1__scene_overlap_response__init(&a->u.overlap);
    fill_rows(a, n_rows(r->boxes != NULL ? r->boxes : r->balls), 0);
    spoil(a, flaw);
    a->u.overlap.seen = seen;
    a->u.overlap.states = flaw == SCENE_FLAW_STATES_MISSING ? NULL : &a->states;
    a->u.overlap.n_occupied = r->counts ? &a->counts : NULL;
    a->u.overlap.n_free =
        r->counts && flaw != SCENE_FLAW_COUNTS_MISSING ? &a->counts : NULL;
    a->response.scene_overlap = &a->u.overlap;
}

static void answer_query(struct scene_answer *a, const Voxeld__V1__Request *request,
                         Voxeld__V1__SceneSeen *seen, enum peer_scene_flaw flaw)
{
    switch (request->method_case) {
    case VOXELD__V1__REQUEST__METHOD_SCENE_VALUES:
        voxeld__v1__scene_values_response__init(&a->u.values);
        fill_rows(a, n_rows(request->scene_values->points), 0);
        spoil(a, flaw);
        a->u.values.seen = seen;
        a->u.values.states = flaw == SCENE_FLAW_STATES_MISSING ? NULL : &a->states;
        a->u.values.materials = &a->material;
        a->response.scene_values = &a->u.values;
        break;
    case VOXELD__V1__REQUEST__METHOD_SCENE_CAST_RAYS:
        answer_rays(a, n_rows(request->scene_cast_rays->directions), seen, flaw);
        break;
    case VOXELD__V1__REQUEST__METHOD_SCENE_NEAREST:
        voxeld__v1__scene_nearest_response__init(&a->u.nearest);
        fill_rows(a, n_rows(request->scene_nearest->points), 0);
        spoil(a, flaw);
        a->u.nearest.seen = seen;
        a->u.nearest.distances = &a->distances;
        a->u.nearest.voxels = &a->voxels;
        a->u.nearest.n_found = n_rows(request->scene_nearest->points);
        a->response.scene_nearest = &a->u.nearest;
        break;
    default:
        answer_overlap(a, request->scene_overlap, seen, flaw);
        break;
    }
}

/* n vertices of bytes that are their numbers. */
static void fill_ply(struct scene_answer *a, size_t first, size_t n,
                     enum peer_scene_flaw flaw)
{
    size_t said = flaw == SCENE_FLAW_PLY_MANY ? n + PEER_SCENE_CELLS : n;
    int head = snprintf(a->ply, sizeof a->ply,
                        "ply\nformat binary_little_endian 1.0\nelement %s %zu\n"
                        "property float x\nproperty float y\nproperty float z\n"
                        "end_header\n",
                        flaw == SCENE_FLAW_PLY_NO_HEADER ? "face" : "vertex", said);

    a->u.export.ply.data = (uint8_t *)a->ply;
    a->u.export.ply.len = (size_t)head + n * VERTEX_BYTES;
    for (size_t i = 0; i < n; i++) {
        memset(a->ply + head + i * VERTEX_BYTES, (int)('a' + first + i), VERTEX_BYTES);
    }
    if (flaw == SCENE_FLAW_PLY_EMPTY) {
        a->u.export.ply.len = 0;
    } else if (flaw == SCENE_FLAW_PLY_LENGTH) {
        a->u.export.ply.len--;
    }
}

static void answer_dense(struct scene_answer *a, enum peer_scene_flaw flaw)
{
    fill_rows(a, DENSE_CELLS, 0);
    for (int64_t i = 0; i < 3; i++) {
        a->shape_states[i] = a->shape_material[i] = 2 + i;
        a->low_cell[i] = -i;
    }
    peer_fill_tensor(&a->states, VOXELD__V1__DTYPE__UINT8, a->shape_states, 3,
                     a->state_data);
    peer_fill_tensor(&a->material, VOXELD__V1__DTYPE__UINT16, a->shape_material, 3,
                     a->material_data);
    spoil(a, flaw);
    a->u.export.states = flaw == SCENE_FLAW_STATES_MISSING ? NULL : &a->states;
    a->u.export.materials = &a->material;
    a->u.export.low_cell = a->low_cell;
    a->u.export.n_low_cell = flaw == SCENE_FLAW_LOW_CELL_SHORT ? 2 : 3;
}

static void answer_export(struct scene_answer *a, const Voxeld__V1__SceneExportRequest *r,
                          Voxeld__V1__SceneSeen *seen, enum peer_scene_flaw flaw)
{
    size_t first = r->first < PEER_SCENE_CELLS ? (size_t)r->first : PEER_SCENE_CELLS;
    size_t n = PEER_SCENE_CELLS - first;

    n = n < PEER_SCENE_PART ? n : PEER_SCENE_PART;
    n = r->limit > 0 && r->limit < n ? (size_t)r->limit : n;
    n = flaw == SCENE_FLAW_PLY_STALLS ? 0 : n;
    voxeld__v1__scene_export_response__init(&a->u.export);
    fill_info(a, SCENE_FLAW_NONE);
    a->u.export.seen = seen;
    a->u.export.n_cells = PEER_SCENE_CELLS;
    a->u.export.origin = &a->origin;
    a->u.export.cell_size_m = 0.25;
    a->u.export.frame_id = "map";
    if (r->format == VOXELD__V1__SCENE_FORMAT__SCENE_PLY) {
        fill_ply(a, first, n, flaw);
    } else if (r->format == VOXELD__V1__SCENE_FORMAT__SCENE_DENSE) {
        answer_dense(a, flaw);
    } else {
        fill_rows(a, n, first);
        spoil(a, flaw);
        a->u.export.n_cells = flaw == SCENE_FLAW_CELLS_MANY ? 1 : PEER_SCENE_CELLS;
        a->u.export.cells = &a->voxels;
        a->u.export.materials = &a->material;
        a->u.export.counts =
            r->with_counts && flaw != SCENE_FLAW_COUNTS_MISSING ? &a->counts : NULL;
    }
    a->response.scene_export = &a->u.export;
}

/* Which version queries see. */
static Voxeld__V1__SceneSeen *fill_seen(struct peer *peer, struct scene_answer *a,
                                        enum peer_scene_flaw flaw)
{
    voxeld__v1__scene_seen__init(&a->seen);
    a->seen.version = (uint64_t)atomic_fetch_add(&peer->scene_version,
                                                 atomic_load(&peer->scene_changes));
    a->seen.generation = 2;
    a->seen.engine_ms = 0.25;
    return flaw == SCENE_FLAW_SEEN_MISSING ? NULL : &a->seen;
}

nng_msg *peer_answer_scene(struct peer *peer, const Voxeld__V1__Request *request)
{
    struct scene_answer *a = calloc(1, sizeof *a);
    enum peer_scene_flaw flaw = (enum peer_scene_flaw)atomic_load(&peer->scene_flaw);
    nng_msg *message;

    if (a == NULL) {
        abort();
    }
    (void)peer_begin(peer, request, &a->response, &a->header);
    switch (request->method_case) {
    case VOXELD__V1__REQUEST__METHOD_SCENE_EDIT:
    case VOXELD__V1__REQUEST__METHOD_SCENE_INTEGRATE:
        answer_change(a, request, flaw);
        break;
    case VOXELD__V1__REQUEST__METHOD_SCENE_VALUES:
    case VOXELD__V1__REQUEST__METHOD_SCENE_CAST_RAYS:
    case VOXELD__V1__REQUEST__METHOD_SCENE_NEAREST:
    case VOXELD__V1__REQUEST__METHOD_SCENE_OVERLAP:
        answer_query(a, request, fill_seen(peer, a, flaw), flaw);
        break;
    case VOXELD__V1__REQUEST__METHOD_SCENE_EXPORT:
        answer_export(a, request->scene_export, fill_seen(peer, a, flaw), flaw);
        break;
    default:
        answer_whole(a, request, flaw);
        break;
    }
    message = peer_pack(&a->response, atomic_load(&peer->aligns));
    free(a);
    return message;
}
