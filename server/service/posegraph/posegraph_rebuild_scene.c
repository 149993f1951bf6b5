// SPDX-License-Identifier: Apache-2.0
/* A scene made anew. Keyframes are integrated, as scans are, into an empty scene that nobody can find; its
 * voxels then replace those of the scene that was asked for, by one edit. So the journal has what it has of
 * an edit with lists of voxels, and an undo brings back what was. */
#include <math.h>
#include <stdlib.h>

#include "gpu/svdag/query/query.h"
#include "gpu/voxel/voxel.h"
#include "server/instance/instance.h"
#include "server/service/existing/existing.h"
#include "server/service/posegraph/posegraph_rebuild.h"
#include "server/service/service.h"

enum {
    POINT_BYTES = 3 * sizeof(float),
    LIST_CELLS = 1 << 22 /* of a stage, and of an operation of the edit */
};

/* Voxels from the scene's low corner that a node may be away. */
#define MAX_BASE ((double)((int64_t)1 << 40))

/* --- OPEN --------------------------------------------------------------------------------------- */

/* Not durable, not named, and of one version at a time: the last one is all that counts. */
static enum vxd_status make_beside(struct vxd_request *request, struct vxd_queue *queue,
                                   struct vxd_err *err)
{
    struct vxd_rebuild_job *job = request->state;
    const struct vxd_scene *target = job->scene.target;
    struct vxd_scene_terms terms = target->terms;

    terms.durable = false;
    terms.keep_versions = 1;
    terms.keep_seconds = 0;
    return vxd_scene_new(request->server->scenes, queue, &terms, &target->spec,
                         &job->scene.beside, err);
}

enum vxd_status vxd_rebuild_open_scene(struct vxd_request *request,
                                       struct vxd_queue *queue, struct vxd_err *err)
{
    const Voxeld__V1__PosegraphRebuildRequest *input = vxd_rebuild_input(request);
    struct vxd_rebuild_job *job = request->state;
    uint32_t n_materials;
    enum vxd_status status;

    job->scene.target = vxd_scenes_find(request->server->scenes, input->scene);
    if (job->scene.target == NULL) {
        return vxd_missing_scene(request, "scene", input->scene, err);
    }
    n_materials = vxd_svdag_n_materials(&job->scene.target->spec.format);
    if (input->material >= n_materials) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "material",
                         "is %u; the scene \"%s\" has %u materials", input->material,
                         input->scene, n_materials));
    }
    job->scene.change =
        vxd_message_new(request->decoder, &voxeld__v1__scene_change__descriptor, err);
    if (job->scene.change == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    status = make_beside(request, queue, err);
out:
    return status;
}

/* --- SCAN --------------------------------------------------------------------------------------- */

/* Chooses the points of a keyframe that are not too near. */
static enum vxd_status choose_points(struct vxd_rebuild_job *job, double range_min_m,
                                     const struct vxd_keyframe *keyframe,
                                     const float **points, size_t *n, struct vxd_err *err)
{
    *points = keyframe->points;
    *n = keyframe->n_points;
    if (range_min_m <= 0) {
        return VXD_OK;
    }
    free(job->kept);
    job->kept = malloc((size_t)keyframe->n_points * POINT_BYTES + 1);
    if (job->kept == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for %u points",
                        keyframe->n_points);
    }
    *points = job->kept;
    *n = 0;
    for (size_t i = 0; i < keyframe->n_points; i++) {
        const float *p = keyframe->points + 3 * i;

        if (sqrt((double)p[0] * p[0] + (double)p[1] * p[1] + (double)p[2] * p[2]) >=
            range_min_m) {
            memcpy(job->kept + 3 * (*n)++, p, POINT_BYTES);
        }
    }
    return VXD_OK;
}

/* How points become voxels from the one that the node is in, near which floats are exact. */
static enum vxd_status place_cloud(const struct vxd_scene_spec *spec,
                                   const struct vxd_rigid *T_map_node,
                                   struct vxd_cloud *cloud, int64_t base[3],
                                   struct vxd_err *err)
{
    struct vxd_volume_pose pose;

    vxd_rebuild_pose(T_map_node, &pose);
    for (int i = 0; i < 9; i++) {
        cloud->rotation[i] = pose.rotation[i] / spec->voxel_size_m;
    }
    for (int i = 0; i < 3; i++) {
        double voxel =
            floor((pose.translation[i] - spec->origin_m[i]) / spec->voxel_size_m);

        if (!(fabs(voxel) <= MAX_BASE)) {
            return vxd_fail(err, VXD_OUT_OF_RANGE, "scene",
                            "a keyframe's node lies more than 2^40 voxels from its low "
                            "corner");
        }
        base[i] = (int64_t)voxel;
        cloud->translation[i] =
            (pose.translation[i] - (spec->origin_m[i] + voxel * spec->voxel_size_m)) /
            spec->voxel_size_m;
    }
    for (uint32_t i = 0; i < 3; i++) {
        cloud->position[i] = (struct vxd_field){
            .offset = i * (uint32_t)sizeof(float), .dtype = VXD_FLOAT32, .scale = 1};
    }
    cloud->point_step = POINT_BYTES;
    return VXD_OK;
}

/* Places the points of the next keyframe, and begins its rays. */
static enum vxd_status begin_scan(struct vxd_request *request, struct vxd_queue *queue,
                                  struct vxd_err *err)
{
    const Voxeld__V1__PosegraphRebuildRequest *input = vxd_rebuild_input(request);
    struct vxd_rebuild_job *job = request->state;
    const struct vxd_rebuild_keyframe *at = &job->keyframes[job->n_done];
    const struct vxd_scene_spec *spec = &job->scene.target->spec;
    struct vxd_cloud cloud = {.n_channels = 0};
    struct vxd_svdag_scan scan = {.value = input->material,
                                  .max_range = input->range_max_m / spec->voxel_size_m,
                                  .carve = input->carve};
    const float *points;
    enum vxd_status status;

    VXD_TRY(place_cloud(spec, &at->T_map_node, &cloud, scan.base, err));
    VXD_TRY(choose_points(job, input->range_min_m, at->keyframe, &points, &cloud.n_points,
                          err));
    VXD_TRY(vxd_device_alloc(queue, cloud.n_points * POINT_BYTES + 1,
                             &job->scene.positions, err));
    if (cloud.n_points > 0) {
        VXD_TRY(vxd_upload(queue, points, cloud.n_points * POINT_BYTES,
                           &job->scene.records, &cloud.data, err));
        VXD_TRY(vxd_cloud_decode(queue, &cloud, job->scene.positions.ptr, NULL, err));
        VXD_TRY(vxd_queue_wait(queue, err));
    }
    scan.points = job->scene.positions.ptr;
    scan.n = cloud.n_points;
    memcpy(scan.origin, cloud.translation, sizeof scan.origin);
    status = vxd_svdag_scan_begin(queue, &spec->format, &scan, &job->scene.scanning, err);
out:
    return status;
}

/* Frees what the rays of a keyframe took, but for the lists that they made. */
static void end_scan(struct vxd_rebuild_job *job, struct vxd_queue *queue)
{
    vxd_svdag_scan_end(job->scene.scanning);
    job->scene.scanning = NULL;
    vxd_device_free(queue, &job->scene.positions);
    vxd_device_free(queue, &job->scene.records);
}

static void free_scan_lists(struct vxd_rebuild_job *job, struct vxd_queue *queue)
{
    vxd_svdag_voxel_list_free(queue, &job->scene.scan.hits);
    vxd_svdag_voxel_list_free(queue, &job->scene.scan.passed);
    vxd_svdag_ray_ends_free(queue, &job->scene.scan.ends);
    job->scene.scan = (struct vxd_svdag_scan_result){.n_hit = 0};
}

enum vxd_status vxd_rebuild_scan(struct vxd_request *request, struct vxd_queue *queue,
                                 bool *is_done, struct vxd_err *err)
{
    struct vxd_rebuild_job *job = request->state;
    enum vxd_status status;

    if (job->scene.scanning == NULL) {
        VXD_TRY(begin_scan(request, queue, err));
    }
    VXD_TRY(
        vxd_svdag_scan_step(queue, job->scene.scanning, &job->scene.scan, is_done, err));
    if (*is_done) {
        end_scan(job, queue);
    }
out:
    return status;
}

/* --- EDIT --------------------------------------------------------------------------------------- */

/* Adds the version that an edit of the scene beside has made, which nobody else sees; the base's scene is
 * that one. */
static void keep_version(struct vxd_request *request,
                         const struct vxd_svdag_edit_result *result)
{
    struct vxd_rebuild_job *job = request->state;
    struct vxd_scene_job *base = &job->base.scene;
    const struct vxd_scene_version version = {
        .kind = VXD_SCENE_INTEGRATED, .root = result->root, .pins = base->state.pins};

    (void)vxd_scene_add_version(base->scene, &version, false);
    vxd_scene_end_following(base);
    vxd_scene_let_go(request);
}

/* What rays pass comes before what they hit, as of a scan. */
static size_t make_scan_ops(const struct vxd_rebuild_job *job, uint32_t material,
                            struct vxd_svdag_op ops[2])
{
    const struct vxd_svdag_scan_result *scan = &job->scene.scan;
    bool tracks_free = job->scene.target->spec.format.tracks_free;
    size_t n = 0;

    if (scan->passed.voxels.n > 0) {
        ops[n].shape.kind = VXD_SVDAG_VOXELS;
        ops[n].shape.voxels = scan->passed.voxels;
        ops[n++].action = tracks_free ? VXD_SVDAG_SET_FREE : VXD_SVDAG_ERASE;
    }
    if (scan->hits.voxels.n > 0) {
        ops[n].shape.kind = VXD_SVDAG_VOXELS;
        ops[n].shape.voxels = scan->hits.voxels;
        ops[n].value = material;
        ops[n++].action = VXD_SVDAG_FILL;
    }
    return n;
}

enum vxd_status vxd_rebuild_edit(struct vxd_request *request, struct vxd_queue *queue,
                                 struct vxd_err *err)
{
    struct vxd_rebuild_job *job = request->state;
    struct vxd_scene_job *base = &job->base.scene;
    enum vxd_record_kind kind =
        vxd_scene_fuses(job->scene.beside) ? VXD_RECORD_FUSE : VXD_RECORD_INTEGRATE;
    struct vxd_svdag_edit_result result = {.n_added = 0};
    struct vxd_svdag_op ops[2] = {{.value = 0}};
    size_t n_ops = make_scan_ops(job, vxd_rebuild_input(request)->material, ops);
    enum vxd_status status = VXD_OK;

    job->reply->n_used += job->scene.scan.n_hit;
    base->scene = job->scene.beside;
    if (n_ops > 0) {
        VXD_TRY(vxd_scene_apply(request, queue, kind, ops, n_ops, &result, err));
        keep_version(request, &result);
    }
    free_scan_lists(job, queue);
    if (job->n_done + 1 == job->n_keyframes) {
        /* The stages that list its voxels are read lanes'. */
        vxd_scene_unpin(request->server->scenes, &base->state, queue);
        vxd_scene_pin_last(base->scene, &base->state);
    }
out:
    return status;
}

/* --- LIST --------------------------------------------------------------------------------------- */

static struct vxd_svdag_export export_of(const struct vxd_rebuild_job *job)
{
    int64_t side = (int64_t)1 << job->scene.target->spec.format.depth;

    return (struct vxd_svdag_export){.high = {side, side, side},
                                     .free = !job->scene.lists_occupied};
}

static enum vxd_status read_number(struct vxd_queue *queue, const struct vxd_buffer *at,
                                   uint64_t *out, struct vxd_err *err)
{
    struct vxd_buffer host = {NULL, 0, VXD_SPACE_HOST};
    const void *read = NULL;
    enum vxd_status status;

    VXD_TRY(vxd_download(queue, at->ptr, sizeof *out, &host, &read, err));
    VXD_TRY(vxd_queue_wait(queue, err));
    memcpy(out, read, sizeof *out);
out:
    vxd_host_free(vxd_queue_context(queue), &host);
    return status;
}

static enum vxd_status count_cells(struct vxd_queue *queue, const struct vxd_svdag *svdag,
                                   uint32_t root, const struct vxd_svdag_export *box,
                                   uint64_t *n_cells, struct vxd_err *err)
{
    struct vxd_buffer number = {NULL, 0, VXD_SPACE_DEVICE};
    enum vxd_status status;

    VXD_TRY(vxd_device_alloc(queue, sizeof *n_cells, &number, err));
    VXD_TRY(vxd_svdag_count_cells(queue, svdag, root, box, number.ptr, err));
    VXD_TRY(read_number(queue, &number, n_cells, err));
out:
    vxd_device_free(queue, &number);
    return status;
}

/* Adds an empty list. */
static enum vxd_status grow(struct vxd_rebuild_job *job, enum vxd_svdag_action action,
                            struct vxd_svdag_voxel_list **list, struct vxd_err *err)
{
    struct vxd_rebuild_scene *scene = &job->scene;
    size_t n = scene->n_lists + 1;
    struct vxd_rebuild_list *lists = realloc(scene->lists, n * sizeof *lists);

    if (lists != NULL) {
        scene->lists = lists;
        lists[n - 1] = (struct vxd_rebuild_list){.action = action};
    }
    if (lists == NULL || n >= VXD_SVDAG_MAX_OPS) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "scene",
                        "gets too many voxels for one change");
    }
    scene->n_lists = n;
    *list = &lists[n - 1].list;
    return VXD_OK;
}

/* Makes a list of the next cells. */
static enum vxd_status list_cells(struct vxd_rebuild_job *job, struct vxd_queue *queue,
                                  struct vxd_err *err)
{
    const struct vxd_scene_state *state = &job->base.scene.state;
    const struct vxd_svdag_format *format = &job->scene.target->spec.format;
    struct vxd_svdag_export box = export_of(job);
    bool has_values = job->scene.lists_occupied && format->material_bits > 0;
    uint64_t left = job->scene.n_cells - job->scene.n_listed;
    size_t n = left < LIST_CELLS ? (size_t)left : LIST_CELLS;
    struct vxd_buffer buffers[3] = {{NULL, 0, VXD_SPACE_DEVICE},
                                    {NULL, 0, VXD_SPACE_DEVICE},
                                    {NULL, 0, VXD_SPACE_DEVICE}};
    const size_t n_bytes[3] = {n * 3 * sizeof(int32_t),
                               has_values ? n * sizeof(uint16_t) : 0, sizeof(uint64_t)};
    struct vxd_svdag_voxel_list *list = NULL;
    uint64_t n_outside = 0;
    enum vxd_status status;

    VXD_TRY(grow(job, job->scene.lists_occupied ? VXD_SVDAG_FILL : VXD_SVDAG_SET_FREE,
                 &list, err));
    for (int i = 0; i < 3; i++) {
        if (n_bytes[i] > 0) {
            VXD_TRY(vxd_device_alloc(queue, n_bytes[i], &buffers[i], err));
        }
    }
    VXD_TRY(vxd_svdag_export_cells(queue, state->svdag, state->root, &box,
                                   job->scene.n_listed, n, buffers[0].ptr, buffers[1].ptr,
                                   NULL, buffers[2].ptr, err));
    VXD_TRY(vxd_queue_wait(queue, err));
    VXD_TRY(vxd_svdag_list_voxels(queue, format, buffers[0].ptr, buffers[1].ptr, n, list,
                                  &n_outside, err));
    VXD_TRY(vxd_queue_wait(queue, err));
    job->scene.n_listed += n;
out:
    (void)vxd_queue_wait(queue, NULL);
    for (int i = 0; i < 3; i++) {
        vxd_device_free(queue, &buffers[i]);
    }
    return status;
}

enum vxd_status vxd_rebuild_list(struct vxd_request *request, struct vxd_queue *queue,
                                 bool *is_done, struct vxd_err *err)
{
    struct vxd_rebuild_job *job = request->state;
    struct vxd_rebuild_scene *scene = &job->scene;
    enum vxd_status status = VXD_OK;

    if (!scene->lists_occupied && !scene->target->spec.format.tracks_free) {
        scene->lists_occupied = true;
    }
    if (!scene->is_counted) {
        const struct vxd_scene_state *state = &job->base.scene.state;
        struct vxd_svdag_export box = export_of(job);

        VXD_TRY(
            count_cells(queue, state->svdag, state->root, &box, &scene->n_cells, err));
        scene->is_counted = true;
        scene->n_listed = 0;
    }
    if (scene->n_listed < scene->n_cells) {
        VXD_TRY(list_cells(job, queue, err));
    }
    *is_done = false;
    if (scene->n_listed == scene->n_cells) {
        *is_done = scene->lists_occupied;
        scene->is_counted = false;
        scene->lists_occupied = true;
    }
out:
    return status;
}

/* --- REPLACE ------------------------------------------------------------------------------------ */

/* The pinned voxels of the scene's last version, and what they are there; host memory. */
struct pinned {
    size_t n;
    const int32_t *voxels; /* 3 each */
    const uint8_t *states;
    const uint16_t *values;
    struct vxd_buffer device[4];
    struct vxd_buffer host[3];
};

static enum vxd_status read_pinned(struct vxd_rebuild_job *job, struct vxd_queue *queue,
                                   struct pinned *out, struct vxd_err *err)
{
    const struct vxd_scene_state *state = &job->base.scene.state;
    struct vxd_svdag_export box = export_of(job);
    const size_t row_bytes[3] = {3 * sizeof(int32_t), 1, sizeof(uint16_t)};
    const void *read[3] = {NULL};
    uint64_t n = 0;
    enum vxd_status status;

    VXD_TRY(count_cells(queue, state->svdag, state->pins, &box, &n, err));
    out->n = (size_t)n;
    if (n == 0) {
        return VXD_OK;
    }
    for (int i = 0; i < 4; i++) {
        VXD_TRY(vxd_device_alloc(queue, i < 3 ? out->n * row_bytes[i] : sizeof n,
                                 &out->device[i], err));
    }
    VXD_TRY(vxd_svdag_export_cells(queue, state->svdag, state->pins, &box, 0, n,
                                   out->device[0].ptr, NULL, NULL, out->device[3].ptr,
                                   err));
    VXD_TRY(vxd_svdag_values(queue, state->svdag, state->root, out->device[0].ptr, out->n,
                             out->device[1].ptr, out->device[2].ptr, err));
    for (int i = 0; i < 3; i++) {
        VXD_TRY(vxd_download(queue, out->device[i].ptr, out->n * row_bytes[i],
                             &out->host[i], &read[i], err));
    }
    VXD_TRY(vxd_queue_wait(queue, err));
    out->voxels = read[0];
    out->states = read[1];
    out->values = read[2];
out:
    return status;
}

static void free_pinned(struct vxd_queue *queue, struct pinned *pinned)
{
    (void)vxd_queue_wait(queue, NULL);
    for (int i = 0; i < 4; i++) {
        vxd_device_free(queue, &pinned->device[i]);
    }
    for (int i = 0; i < 3; i++) {
        vxd_host_free(vxd_queue_context(queue), &pinned->host[i]);
    }
}

/* Makes a list of the pinned voxels of a state. */
static enum vxd_status list_state(struct vxd_rebuild_job *job, struct vxd_queue *queue,
                                  const struct pinned *pinned, enum vxd_svdag_state state,
                                  struct vxd_err *err)
{
    enum vxd_svdag_action action = state == VXD_SVDAG_OCCUPIED ? VXD_SVDAG_FILL
                                   : state == VXD_SVDAG_FREE   ? VXD_SVDAG_SET_FREE
                                                               : VXD_SVDAG_ERASE;
    int32_t *voxels = malloc((pinned->n + 1) * 3 * sizeof *voxels);
    uint16_t *values = malloc((pinned->n + 1) * sizeof *values);
    struct vxd_buffer device[2] = {{NULL, 0, VXD_SPACE_DEVICE},
                                   {NULL, 0, VXD_SPACE_DEVICE}};
    const void *at[2] = {NULL};
    struct vxd_svdag_voxel_list *list = NULL;
    uint64_t n_outside = 0;
    size_t n = 0;
    enum vxd_status status = VXD_OK;

    if (voxels == NULL || values == NULL) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for an edit"));
    }
    for (size_t i = 0; i < pinned->n; i++) {
        if (pinned->states[i] == state) {
            memcpy(voxels + 3 * n, pinned->voxels + 3 * i, 3 * sizeof *voxels);
            values[n++] = pinned->values[i];
        }
    }
    if (n == 0) {
        goto out;
    }
    VXD_TRY(grow(job, action, &list, err));
    VXD_TRY(vxd_upload(queue, voxels, n * 3 * sizeof *voxels, &device[0], &at[0], err));
    VXD_TRY(vxd_upload(queue, values, n * sizeof *values, &device[1], &at[1], err));
    VXD_TRY(vxd_svdag_list_voxels(queue, &job->scene.target->spec.format, at[0],
                                  action == VXD_SVDAG_FILL ? at[1] : NULL, n, list,
                                  &n_outside, err));
    VXD_TRY(vxd_queue_wait(queue, err));
out:
    (void)vxd_queue_wait(queue, NULL);
    vxd_device_free(queue, &device[0]);
    vxd_device_free(queue, &device[1]);
    free(voxels);
    free(values);
    return status;
}

/* Adds lists of what is pinned, which becomes again what it was. */
static enum vxd_status list_pinned(struct vxd_rebuild_job *job, struct vxd_queue *queue,
                                   struct vxd_err *err)
{
    struct pinned pinned = {.n = 0};
    enum vxd_status status;

    VXD_TRY(read_pinned(job, queue, &pinned, err));
    if (pinned.n > 0) {
        VXD_TRY(list_state(job, queue, &pinned, VXD_SVDAG_OCCUPIED, err));
        VXD_TRY(list_state(job, queue, &pinned, VXD_SVDAG_FREE, err));
        VXD_TRY(list_state(job, queue, &pinned, VXD_SVDAG_UNKNOWN, err));
    }
out:
    free_pinned(queue, &pinned);
    return status;
}

/* All voxels are erased; then those that were listed are freed and filled. */
static enum vxd_status make_ops(const struct vxd_rebuild_job *job,
                                struct vxd_svdag_op **take_ops, struct vxd_err *err)
{
    const struct vxd_rebuild_scene *scene = &job->scene;
    int64_t side = (int64_t)VXD_SVDAG_UNIT << scene->target->spec.format.depth;
    struct vxd_svdag_op *ops = calloc(scene->n_lists + 1, sizeof *ops);

    *take_ops = ops;
    if (ops == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for an edit");
    }
    ops[0].action = VXD_SVDAG_ERASE;
    ops[0].shape.kind = VXD_SVDAG_BOX;
    for (int i = 0; i < 3; i++) {
        ops[0].shape.high[i] = side;
    }
    for (size_t i = 0; i < scene->n_lists; i++) {
        ops[1 + i].shape.kind = VXD_SVDAG_VOXELS;
        ops[1 + i].shape.voxels = scene->lists[i].list.voxels;
        ops[1 + i].action = scene->lists[i].action;
    }
    return VXD_OK;
}

enum vxd_status vxd_rebuild_replace_scene(struct vxd_request *request,
                                          struct vxd_queue *queue, struct vxd_err *err)
{
    struct vxd_rebuild_job *job = request->state;
    struct vxd_scene_job *base = &job->base.scene;
    struct vxd_svdag_op *ops = NULL;
    enum vxd_status status;

    /* What lists hold is theirs, so the scene beside can go: what its edit needs may be what it has. */
    vxd_scene_unpin(request->server->scenes, &base->state, queue);
    base->scene = NULL;
    vxd_scene_drop(job->scene.beside, queue);
    job->scene.beside = NULL;
    base->scene = job->scene.target;
    vxd_scene_pin_last(base->scene, &base->state);
    if (base->state.pins != VXD_SVDAG_EMPTY) {
        VXD_TRY(list_pinned(job, queue, err));
    }
    VXD_TRY(make_ops(job, &ops, err));
    status = vxd_scene_apply(request, queue, VXD_RECORD_EDIT, ops, 1 + job->scene.n_lists,
                             &job->scene.result, err);
out:
    free(ops);
    return status;
}

void vxd_rebuild_publish_scene(struct vxd_request *request)
{
    struct vxd_rebuild_job *job = request->state;
    const Voxeld__V1__SceneChange *change = job->scene.change;

    vxd_scene_publish(request, &job->scene.result, VXD_SCENE_EDITED, 0,
                      job->scene.change);
    job->reply->scene_version = change->version;
    job->reply->n_added = change->n_added;
    job->reply->n_removed = change->n_removed;
    job->reply->n_changed = change->n_changed;
    job->reply->n_freed = change->n_freed;
}

void vxd_rebuild_release_scene(struct vxd_request *request, struct vxd_queue *queue)
{
    struct vxd_rebuild_job *job = request->state;
    struct vxd_rebuild_scene *scene = &job->scene;
    const struct vxd_scene *of_base = job->base.scene.scene;

    end_scan(job, queue);
    free_scan_lists(job, queue);
    for (size_t i = 0; i < scene->n_lists; i++) {
        vxd_svdag_voxel_list_free(queue, &scene->lists[i].list);
    }
    free(scene->lists);
    scene->lists = NULL;
    scene->n_lists = 0;
    vxd_scene_release(request, queue); /* drops the base's scene */
    if (scene->beside != of_base) {
        vxd_scene_drop(scene->beside, queue);
    }
    if (scene->target != of_base) {
        vxd_scene_drop(scene->target, queue);
    }
    scene->beside = NULL;
    scene->target = NULL;
}
