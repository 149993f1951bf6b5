// SPDX-License-Identifier: Apache-2.0
/* A box of a scene into a volume. A distance field of the scene finds the volume's blocks near
 * surfaces and the distances of their voxels, in stages; the volume is changed in the last one, as
 * one observation. */
#include <math.h>
#include <stdlib.h>

#include "gpu/svdag/query/query.h"
#include "gpu/volume/volume_math.h"
#include "server/instance/instance.h"
#include "server/registry/fields/registry_fields.h"
#include "server/registry/scenes/scenes.h"
#include "server/service/service.h"
#include "server/service/volume/volume_service.h"

#define HALF_DIAGONAL 0.8661 /* of a cube's side, rounded up */

enum {
    FIELD_STEP = 32, /* boxes of fields end at multiples of this */
    FIELD_SPARE = 2, /* what distances to surfaces need beyond their reach */
    FIELD_PARTS_GPU = 16,
    MAX_LABEL = 255
};

/* Voxels of candidates that a stage asks about, and that a request takes in all. */
#define STAGE_VOXELS_CPU ((size_t)1 << 13)
#define STAGE_VOXELS_CUDA ((size_t)1 << 22)
#define MAX_VOXELS_CPU ((size_t)1 << 25)
#define MAX_VOXELS_CUDA ((size_t)1 << 28)
#define MAX_CANDIDATES ((uint64_t)1 << 24)

struct import_job {
    struct vxd_volume_job base; /* first: request->state is both */
    double low[3];              /* the box, metres */
    double high[3];
    uint64_t generation; /* of the volume when the work began */
    struct vxd_volume_spec spec;
    struct vxd_scene *scene; /* held */
    struct vxd_scene_state state;
    struct vxd_kept_field *field;
    struct vxd_field_want want;
    bool is_ready;
    size_t next_part;
    int64_t block_low[3]; /* candidates: keys, half-open */
    int64_t block_high[3];
    uint64_t next; /* the next candidate */
    uint64_t n_candidates;
    /* What was found: malloc'ed. */
    size_t n;
    size_t capacity;
    int32_t *keys;
    float *distances;
    uint8_t *labels; /* NULL: none */
    uint64_t n_voxels;
    size_t n_new;
    Voxeld__V1__VolumeImportSceneResponse *reply;
};

static const Voxeld__V1__VolumeImportSceneRequest *
input_of(const struct vxd_request *request)
{
    return (const Voxeld__V1__VolumeImportSceneRequest *)request->input;
}

enum vxd_status vxd_volume_import_scene_check(struct vxd_request *request,
                                              struct vxd_err *err)
{
    const Voxeld__V1__VolumeImportSceneRequest *input = input_of(request);
    struct import_job *job;
    enum vxd_status status;

    VXD_TRY(vxd_noun_begin_check(request, sizeof *job, input->name, err));
    job = request->state;
    VXD_TRY(vxd_noun_check_name(input->scene, "scene", err));
    if (input->version != 0 && input->snapshot[0] != '\0') {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "snapshot",
                         "goes not with version: one of the two says which"));
    }
    if (input->box == NULL) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "box", "is required"));
    }
    VXD_TRY(vxd_volume_read_box(input->box, job->low, job->high, err));
    request->bulk = true;
out:
    return status;
}

/* --- the beginning -------------------------------------------------------------------------- */

/* Finds the volume, which is opened for the change in the last stage only. */
static enum vxd_status find_volume(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__VolumeImportSceneRequest *input = input_of(request);
    struct import_job *job = request->state;
    const struct vxd_named_volume *volume =
        vxd_volumes_find(request->server->volumes, input->name);

    if (volume == NULL) {
        return vxd_fail(err, VXD_NOT_FOUND, "name", "there is no volume \"%s\"",
                        input->name);
    }
    if (input->materials_as_labels && !volume->spec.has_labels) {
        return vxd_fail(err, VXD_FAILED_PRECONDITION, "materials_as_labels",
                        "the volume \"%s\" keeps no labels", input->name);
    }
    job->generation = volume->named.generation;
    job->spec = volume->spec;
    return VXD_OK;
}

static enum vxd_status open_scene(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__VolumeImportSceneRequest *input = input_of(request);
    const struct vxd_scene_at at = {input->version, input->snapshot};
    struct import_job *job = request->state;

    job->scene = vxd_scenes_find(request->server->scenes, input->scene);
    if (job->scene == NULL) {
        return vxd_fail(err, VXD_NOT_FOUND, "scene", "there is no scene \"%s\"",
                        input->scene);
    }
    return vxd_scene_pin(job->scene, &at, &job->state, err);
}

/* How far the field has to reach, in voxels of the scene: beyond the truncation by half a block, so
 * that a block's centre says whether the block is near a surface. */
static enum vxd_status set_reach(struct import_job *job, struct vxd_err *err)
{
    double size = job->scene->spec.voxel_size_m;
    double block = job->spec.voxel_size_m * job->spec.block_edge;
    double reach = ceil((job->spec.truncation_m + HALF_DIAGONAL * block) / size) + 1;

    if (reach > VXD_FIELD_MAX_DISTANCE - FIELD_SPARE) {
        return vxd_fail(err, VXD_FAILED_PRECONDITION, "scene",
                        "the volume's truncation and block are %g m, %g voxels of the "
                        "scene; at most %d are possible",
                        job->spec.truncation_m + HALF_DIAGONAL * block, reach,
                        VXD_FIELD_MAX_DISTANCE - FIELD_SPARE);
    }
    job->want.spec.max_distance = (int)reach + FIELD_SPARE;
    return VXD_OK;
}

/* The box within the scene, the candidates that it meets, and the field around these. */
static enum vxd_status set_boxes(struct import_job *job, struct vxd_err *err)
{
    const struct vxd_scene_spec *scene = &job->scene->spec;
    double side = ldexp(scene->voxel_size_m, scene->format.depth);
    double block = job->spec.voxel_size_m * job->spec.block_edge;
    double around = job->want.spec.max_distance + 1;

    job->n_candidates = 1;
    for (int axis = 0; axis < 3; axis++) {
        double *low = &job->low[axis];
        double *high = &job->high[axis];
        double from;
        double to;

        *low = fmax(*low, scene->origin_m[axis]);
        *high = fmin(*high, scene->origin_m[axis] + side);
        if (!(*low < *high)) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "box",
                            "lies outside of the scene, which is from %g to %g m",
                            scene->origin_m[axis], scene->origin_m[axis] + side);
        }
        from = floor((*low - job->spec.origin_m[axis]) / block);
        to = ceil((*high - job->spec.origin_m[axis]) / block);
        if (!(from >= -VXD_BLOCK_LIMIT && to <= VXD_BLOCK_LIMIT)) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "box",
                            "is more than %d blocks from the volume's origin",
                            VXD_BLOCK_LIMIT);
        }
        job->block_low[axis] = (int64_t)from;
        job->block_high[axis] = (int64_t)to;
        job->n_candidates *= (uint64_t)(to - from);
        if (job->n_candidates > MAX_CANDIDATES) {
            return vxd_fail(
                err, VXD_RESOURCE_EXHAUSTED, "box",
                "has more than %llu blocks of the volume: ask for parts of it",
                (unsigned long long)MAX_CANDIDATES);
        }
        from = (from * block + job->spec.origin_m[axis] - scene->origin_m[axis]) /
               scene->voxel_size_m;
        to = (to * block + job->spec.origin_m[axis] - scene->origin_m[axis]) /
             scene->voxel_size_m;
        job->want.spec.low[axis] =
            (int32_t)floor((from - around) / FIELD_STEP) * FIELD_STEP;
        job->want.spec.high[axis] =
            (int32_t)ceil((to + around) / FIELD_STEP) * FIELD_STEP;
    }
    return VXD_OK;
}

static enum vxd_status begin(struct vxd_request *request, struct vxd_err *err)
{
    struct import_job *job = request->state;
    enum vxd_status status;

    VXD_TRY(find_volume(request, err));
    VXD_TRY(open_scene(request, err));
    VXD_TRY(set_reach(job, err));
    VXD_TRY(set_boxes(job, err));
    job->want.generation = job->scene->generation;
    job->want.version = job->state.version;
    job->want.spec.unknown = VXD_FIELD_UNKNOWN_IGNORED;
    job->want.spec.voxel_size_m = job->scene->spec.voxel_size_m;
    job->reply = vxd_message_new(
        request->decoder, &voxeld__v1__volume_import_scene_response__descriptor, err);
    status = job->reply != NULL ? VXD_OK : VXD_RESOURCE_EXHAUSTED;
out:
    return status;
}

/* --- the field ----------------------------------------------------------------------------- */

static bool on_gpu(const struct vxd_queue *queue)
{
    return vxd_context_backend(vxd_queue_context(queue)) == VXD_BACKEND_CUDA;
}

/* One stage on the way to the field; another one follows in any case. */
static enum vxd_status prepare_field(struct vxd_request *request, struct vxd_queue *queue,
                                     struct vxd_err *err)
{
    struct import_job *job = request->state;
    struct vxd_fields *fields = request->server->fields;
    enum vxd_field_claim claim = VXD_FIELD_STALE;
    size_t left;
    size_t now;
    enum vxd_status status = VXD_OK;

    request->more = true;
    if (job->field == NULL) {
        VXD_TRY(
            vxd_fields_claim(fields, queue, &job->want, "box", &job->field, &claim, err));
        job->is_ready = claim == VXD_FIELD_READY;
        request->is_waiting = claim == VXD_FIELD_BUSY;
        if (claim != VXD_FIELD_STALE) {
            return VXD_OK;
        }
    }
    left = vxd_field_n_parts(vxd_fields_get(job->field)) - job->next_part;
    now = on_gpu(queue) ? FIELD_PARTS_GPU : 1;
    now = now < left ? now : left;
    if (left == 0) {
        vxd_fields_set_ready(fields, job->field, job->want.version);
        job->is_ready = true;
        return VXD_OK;
    }
    status = vxd_field_update(queue, vxd_fields_get(job->field), job->state.svdag,
                              job->state.root, job->next_part, now, err);
    job->next_part += now;
out:
    return status;
}

/* --- distances ------------------------------------------------------------------------------ */

/* Points, and what the field says of them, on both sides; a stage's. */
struct answers {
    size_t n;
    double *points;  /* n x 3, voxels of the scene; malloc'ed */
    int32_t *voxels; /* n x 3, malloc'ed */
    const float *distances;
    const int32_t *nearest;
    const uint16_t *materials;
    struct vxd_buffer device[6];
    struct vxd_buffer host[3];
};

static void free_answers(struct vxd_queue *queue, struct answers *answers)
{
    for (size_t i = 0; i < 6; i++) {
        vxd_device_free(queue, &answers->device[i]);
    }
    for (size_t i = 0; i < 3; i++) {
        vxd_host_free(vxd_queue_context(queue), &answers->host[i]);
    }
    free(answers->points);
    free(answers->voxels);
}

/* Distances of the points to surfaces, metres. Blocking. */
static enum vxd_status ask(struct import_job *job, struct vxd_queue *queue,
                           struct answers *answers, struct vxd_err *err)
{
    size_t n = answers->n;
    const void *d_points;
    const void *read;
    enum vxd_status status;

    VXD_TRY(vxd_upload(queue, answers->points, n * 3 * sizeof(double),
                       &answers->device[0], &d_points, err));
    VXD_TRY(vxd_device_alloc(queue, n * sizeof(float), &answers->device[1], err));
    VXD_TRY(vxd_device_alloc(queue, n * 3 * sizeof(int32_t), &answers->device[2], err));
    VXD_TRY(vxd_field_query(queue, vxd_fields_get(job->field), d_points, n,
                            VXD_FIELD_SURFACE, answers->device[1].ptr, NULL,
                            answers->device[2].ptr, err));
    VXD_TRY(vxd_download(queue, answers->device[1].ptr, n * sizeof(float),
                         &answers->host[0], &read, err));
    answers->distances = read;
    VXD_TRY(vxd_download(queue, answers->device[2].ptr, n * 3 * sizeof(int32_t),
                         &answers->host[1], &read, err));
    answers->nearest = read;
    VXD_TRY(vxd_queue_wait(queue, err));
out:
    return status;
}

/* The materials of the occupied voxels that are nearest to the points. Blocking. */
static enum vxd_status ask_materials(struct import_job *job, struct vxd_queue *queue,
                                     struct answers *answers, struct vxd_err *err)
{
    size_t n = answers->n;
    const void *d_voxels;
    const void *read;
    enum vxd_status status;

    answers->voxels = malloc(n * 3 * sizeof *answers->voxels);
    if (answers->voxels == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for %zu voxels", n);
    }
    for (size_t i = 0; i < 3 * n; i++) {
        answers->voxels[i] = answers->distances[i / 3] < 0
                                 ? (int32_t)floor(answers->points[i])
                                 : answers->nearest[i];
    }
    VXD_TRY(vxd_upload(queue, answers->voxels, n * 3 * sizeof(int32_t),
                       &answers->device[3], &d_voxels, err));
    VXD_TRY(vxd_device_alloc(queue, n, &answers->device[4], err));
    VXD_TRY(vxd_device_alloc(queue, n * sizeof(uint16_t), &answers->device[5], err));
    VXD_TRY(vxd_svdag_values(queue, job->state.svdag, job->state.root, d_voxels, n,
                             answers->device[4].ptr, answers->device[5].ptr, err));
    VXD_TRY(vxd_download(queue, answers->device[5].ptr, n * sizeof(uint16_t),
                         &answers->host[2], &read, err));
    answers->materials = read;
    VXD_TRY(vxd_queue_wait(queue, err));
out:
    return status;
}

static enum vxd_status take_points(struct answers *answers, size_t n, struct vxd_err *err)
{
    answers->n = n;
    answers->points = malloc(n * 3 * sizeof *answers->points);
    return answers->points != NULL ? VXD_OK
                                   : vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                                              "no memory for %zu points", n);
}

static void key_of(const struct import_job *job, uint64_t candidate, int32_t key[3])
{
    uint64_t n_y = (uint64_t)(job->block_high[1] - job->block_low[1]);
    uint64_t n_z = (uint64_t)(job->block_high[2] - job->block_low[2]);

    key[0] = (int32_t)(job->block_low[0] + (int64_t)(candidate / n_z / n_y));
    key[1] = (int32_t)(job->block_low[1] + (int64_t)(candidate / n_z % n_y));
    key[2] = (int32_t)(job->block_low[2] + (int64_t)(candidate % n_z));
}

/* A coordinate of the volume, in its voxels, as metres, and as voxels of the scene. */
static double metres_of(const struct import_job *job, int axis, double at)
{
    return job->spec.origin_m[axis] + at * job->spec.voxel_size_m;
}

static double scene_voxel_of(const struct import_job *job, int axis, double at)
{
    return (metres_of(job, axis, at) - job->scene->spec.origin_m[axis]) /
           job->scene->spec.voxel_size_m;
}

/* Lists candidates first .. first + n - 1 that may hold a voxel near a surface: by the distance of
 * their centre. A centre that is unknown says nothing. */
static enum vxd_status choose(struct import_job *job, struct vxd_queue *queue,
                              uint64_t first, size_t n, uint64_t *chosen,
                              size_t *n_chosen, struct vxd_err *err)
{
    double edge = job->spec.block_edge;
    double most = job->spec.truncation_m + HALF_DIAGONAL * edge * job->spec.voxel_size_m;
    struct answers answers = {0};
    enum vxd_status status;

    *n_chosen = 0;
    VXD_TRY(take_points(&answers, n, err));
    for (size_t i = 0; i < n; i++) {
        int32_t key[3];

        key_of(job, first + i, key);
        for (int axis = 0; axis < 3; axis++) {
            answers.points[3 * i + (size_t)axis] =
                scene_voxel_of(job, axis, (key[axis] + 0.5) * edge);
        }
    }
    VXD_TRY(ask(job, queue, &answers, err));
    for (size_t i = 0; i < n; i++) {
        if (!(fabs((double)answers.distances[i]) > most)) {
            chosen[(*n_chosen)++] = first + i;
        }
    }
out:
    free_answers(queue, &answers);
    return status;
}

static enum vxd_status no_memory(size_t n_blocks, struct vxd_err *err)
{
    return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for %zu blocks",
                    n_blocks);
}

/* Makes space for n blocks more.
 * errors  RESOURCE_EXHAUSTED */
static enum vxd_status grow(struct import_job *job, const struct vxd_queue *queue,
                            bool has_labels, size_t n, struct vxd_err *err)
{
    size_t edge = (size_t)job->spec.block_edge;
    size_t n_voxels = edge * edge * edge;
    size_t most = (on_gpu(queue) ? MAX_VOXELS_CUDA : MAX_VOXELS_CPU) / n_voxels;
    size_t capacity = 2 * job->capacity + n;
    void *keys;
    void *distances;
    void *labels;

    if (job->n + n > most) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "box",
                        "has more than %zu blocks near surfaces: ask for parts of it",
                        most);
    }
    if (job->n + n <= job->capacity) {
        return VXD_OK;
    }
    capacity = capacity < most ? capacity : most;
    keys = realloc(job->keys, capacity * 3 * sizeof *job->keys);
    if (keys == NULL) {
        return no_memory(capacity, err);
    }
    job->keys = keys;
    distances = realloc(job->distances, capacity * n_voxels * sizeof *job->distances);
    if (distances == NULL) {
        return no_memory(capacity, err);
    }
    job->distances = distances;
    if (has_labels) {
        labels = realloc(job->labels, capacity * n_voxels);
        if (labels == NULL) {
            return no_memory(capacity, err);
        }
        job->labels = labels;
    }
    job->capacity = capacity;
    return VXD_OK;
}

/* Places the voxels of a block; those outside of the box become NaN, which the field says too. */
static void place_voxels(const struct import_job *job, uint64_t candidate, double *points)
{
    int edge = job->spec.block_edge;
    int32_t key[3];

    key_of(job, candidate, key);
    for (int v = 0; v < edge * edge * edge; v++) {
        const int at[3] = {v % edge, v / edge % edge, v / edge / edge};

        for (int axis = 0; axis < 3; axis++) {
            double centre = (double)key[axis] * edge + at[axis] + 0.5;
            double metres = metres_of(job, axis, centre);
            bool is_inside = metres >= job->low[axis] && metres < job->high[axis];

            points[3 * v + axis] =
                is_inside ? scene_voxel_of(job, axis, centre) : (double)NAN;
        }
    }
}

/* Takes a block of answers if one of its voxels is within the truncation. */
static void take_block(struct import_job *job, uint64_t candidate,
                       const struct answers *answers, size_t first)
{
    size_t edge = (size_t)job->spec.block_edge;
    size_t n_voxels = edge * edge * edge;
    float *distances = job->distances + job->n * n_voxels;
    float truncation = (float)job->spec.truncation_m;
    size_t n_observed = 0;
    bool is_near = false;

    for (size_t v = 0; v < n_voxels; v++) {
        float d = answers->distances[first + v];

        distances[v] = d;
        n_observed += d >= -truncation ? 1 : 0;
        is_near = is_near || (d >= -truncation && d <= truncation);
        if (job->labels != NULL) {
            uint16_t material = answers->materials[first + v];

            job->labels[job->n * n_voxels + v] =
                material <= MAX_LABEL ? (uint8_t)material : 0;
        }
    }
    if (is_near) {
        key_of(job, candidate, job->keys + 3 * job->n);
        job->n_voxels += n_observed;
        job->n++;
    }
}

/* One stage: the next candidates. */
static enum vxd_status find_blocks(struct vxd_request *request, struct vxd_queue *queue,
                                   struct vxd_err *err)
{
    struct import_job *job = request->state;
    bool has_labels = input_of(request)->materials_as_labels;
    size_t edge = (size_t)job->spec.block_edge;
    size_t n_voxels = edge * edge * edge;
    size_t most = (on_gpu(queue) ? STAGE_VOXELS_CUDA : STAGE_VOXELS_CPU) / n_voxels;
    uint64_t left = job->n_candidates - job->next;
    size_t n = left < most ? (size_t)left : most;
    uint64_t *chosen = malloc(most * sizeof *chosen);
    struct answers answers = {0};
    size_t n_chosen = 0;
    enum vxd_status status;

    if (chosen == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for %zu blocks",
                        most);
    }
    VXD_TRY(choose(job, queue, job->next, n, chosen, &n_chosen, err));
    if (n_chosen > 0) {
        VXD_TRY(grow(job, queue, has_labels, n_chosen, err));
        VXD_TRY(take_points(&answers, n_chosen * n_voxels, err));
        for (size_t i = 0; i < n_chosen; i++) {
            place_voxels(job, chosen[i], answers.points + 3 * i * n_voxels);
        }
        VXD_TRY(ask(job, queue, &answers, err));
        if (has_labels) {
            VXD_TRY(ask_materials(job, queue, &answers, err));
        }
        for (size_t i = 0; i < n_chosen; i++) {
            take_block(job, chosen[i], &answers, i * n_voxels);
        }
    }
    job->next += n;
    request->more = true;
out:
    free_answers(queue, &answers);
    free(chosen);
    return status;
}

/* --- the change ----------------------------------------------------------------------------- */

static enum vxd_status observe(struct vxd_request *request, struct vxd_queue *queue,
                               struct vxd_err *err)
{
    const Voxeld__V1__VolumeImportSceneRequest *input = input_of(request);
    struct vxd_names *volumes = request->server->volumes;
    struct import_job *job = request->state;
    const struct vxd_volume_observation observation = {.n = job->n,
                                                       .keys = job->keys,
                                                       .distances = job->distances,
                                                       .labels = job->labels,
                                                       .weight = input->weight};
    enum vxd_status status;

    VXD_TRY(vxd_volume_open(request, input->name, err));
    if (job->base.volume->named.generation != job->generation) {
        VXD_TRY(vxd_fail(err, VXD_ABORTED, "name",
                         "the volume \"%s\" was dropped and made again meanwhile",
                         input->name));
    }
    vxd_named_volume_allow(job->base.volume);
    status = vxd_volume_observe(queue, job->base.volume->state.volume, &observation,
                                &job->n_new, err);
    if (status != VXD_OK) {
        vxd_names_explain(volumes, &job->base.volume->named.terms,
                          &job->base.volume->named, err);
    }
    request->output = &job->reply->base;
out:
    return status;
}

enum vxd_status vxd_volume_import_scene_submit(struct vxd_request *request,
                                               struct vxd_queue *queue,
                                               struct vxd_err *err)
{
    struct import_job *job = request->state;
    enum vxd_status status = VXD_OK;

    if (job->reply == NULL) {
        VXD_TRY(begin(request, err));
    }
    if (!job->is_ready) {
        return prepare_field(request, queue, err);
    }
    if (job->next < job->n_candidates) {
        return find_blocks(request, queue, err);
    }
    VXD_TRY(observe(request, queue, err));
out:
    return status;
}

enum vxd_status vxd_volume_import_scene_finish(struct vxd_request *request,
                                               struct vxd_queue *queue,
                                               struct vxd_err *err)
{
    const struct import_job *job = request->state;
    Voxeld__V1__VolumeImportSceneResponse *reply = job->reply;
    struct vxd_volume_info info;

    (void)queue;
    (void)err;
    vxd_volume_get_info(job->base.volume->state.volume, &info);
    reply->n_touched = job->n;
    reply->n_new = job->n_new;
    reply->n_blocks = info.n_blocks;
    reply->stamp = info.version;
    reply->n_voxels = job->n_voxels;
    reply->version = job->state.version;
    reply->engine_ms = (double)request->engine_ns / 1e6;
    return VXD_OK;
}

void vxd_volume_import_scene_release(struct vxd_request *request, struct vxd_queue *queue)
{
    struct import_job *job = request->state;

    free(job->keys);
    free(job->distances);
    free(job->labels);
    job->keys = NULL;
    job->distances = NULL;
    job->labels = NULL;
    vxd_fields_release(request->server->fields, queue, job->field);
    job->field = NULL;
    vxd_scene_unpin(request->server->scenes, &job->state, queue);
    vxd_scene_drop(job->scene, queue);
    job->scene = NULL;
    vxd_volume_release(request, queue);
}
