// SPDX-License-Identifier: Apache-2.0
/* Integrates a scan into a scene, perhaps after a network has classified its points. The
 * points of the scan and of its sweeps are decoded to voxels, counted from the one that
 * the sensor is in. Each sweep gives lists of hit and passed voxels from its own origin,
 * and one edit frees or erases the passed voxels and then fills the hit ones. Decoding, parts
 * of the casting of each sweep, and the edit are stages, at whose borders a request ends that nobody waits
 * for any more; no other change comes in between on the write lane. */
#include <math.h>
#include <stdlib.h>

#include "proto/base/clock.h"
#include "server/instance/instance.h"
#include "server/service/clouds/clouds.h"
#include "server/service/odometry/service_odometry.h"
#include "server/service/service.h"
#include "server/service/integrate/integrate.h"
#include "server/service/scene/scene.h"

enum {
    MAX_SOURCE_OPS =
        3, /* hit voxels, passed voxels, and those that rays of dropped points passed */
    MAX_SWEEPS = VXD_SVDAG_MAX_OPS / MAX_SOURCE_OPS - 1
};

/* Voxels from the scene's low corner that the sensor may be away. */
#define MAX_BASE ((double)((int64_t)1 << 40))

/* Where the next source's points begin. */
struct place {
    size_t kept;
    size_t dropped;
};

/* What the next stage does. */
enum step {
    DECODE,
    CAST, /* of one list of points, or of a part of its rays */
    EDIT
};

struct integrate_job {
    struct vxd_scene_job base; /* first: request->state is both */
    enum step step;
    size_t next_source;
    bool casts_dropped;                  /* next are the dropped points of that source */
    struct vxd_svdag_scanning *scanning; /* that is not at its end yet; NULL: none */
    struct place place;
    struct vxd_clouds clouds;
    Voxeld__V1__Cloud *cloud; /* as the decoder reads it */
    struct vxd_scene_rule rule;
    struct vxd_scene_network network;
    size_t n_sources;
    double base_voxel[3];
    float *positions;     /* device, n_points x 3 voxels from base_voxel */
    const float *origins; /* likewise, of their rays; NULL: the sensor did not move */
    float *features;
    /* The points as they are scanned; with values NULL all take the rule's material. */
    struct vxd_scene_split split;
    const uint16_t *values; /* of all points, on the host; NULL as in the split */
    struct vxd_svdag_scan_result
        *scans; /* of the sources, then of their dropped points */
    struct vxd_svdag_op *ops;
    struct vxd_record_scan *records; /* what the journal gets of the scans */
    struct vxd_svdag_edit_result result;
    bool estimates; /* the pose is found, by odometry */
    struct vxd_estimate estimate;
    Voxeld__V1__SceneIntegrateResponse *reply;
};

/* --- check -------------------------------------------------------------------------------- */

static enum vxd_status check_clouds(struct vxd_request *request,
                                    struct vxd_clouds *clouds, struct vxd_err *err)
{
    enum vxd_status status = vxd_clouds_check(request, clouds, err);

    if (status != VXD_OK) {
        vxd_clouds_name_one(err);
    }
    return status;
}

static enum vxd_status check_cloud(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__SceneIntegrateRequest *input =
        (const Voxeld__V1__SceneIntegrateRequest *)request->input;
    struct integrate_job *job = request->state;
    Voxeld__V1__Cloud *const *given = &input->cloud;
    struct vxd_clouds as_given = {.clouds = given, .n_clouds = 1};
    enum vxd_status status;

    if (input->cloud == NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "cloud", "is required");
    }
    if (input->cloud->n_sweeps > MAX_SWEEPS) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "cloud.sweeps",
                        "has %zu entries, at most %d are possible",
                        input->cloud->n_sweeps, MAX_SWEEPS);
    }
    VXD_TRY(check_clouds(request, &as_given, err));
    VXD_TRY(vxd_scene_rule_bind(request, input->rule, input->cloud, &job->rule,
                                &job->cloud, err));
    job->n_sources = 1 + input->cloud->n_sweeps;
    job->clouds.clouds = &job->cloud;
    job->clouds.n_clouds = 1;
    job->clouds.n_channels = job->rule.n_channels;
    for (int i = 0; i < job->rule.n_channels; i++) {
        job->clouds.channels[i].name = vxd_scene_rule_channels[i];
    }
    status = check_clouds(request, &job->clouds, err);
out:
    return status;
}

enum vxd_status vxd_scene_integrate_check(struct vxd_request *request,
                                          struct vxd_err *err)
{
    const Voxeld__V1__SceneIntegrateRequest *input =
        (const Voxeld__V1__SceneIntegrateRequest *)request->input;
    struct integrate_job *job;
    enum vxd_status status;

    VXD_TRY(vxd_noun_begin_check(request, sizeof *job, input->name, err));
    job = request->state;
    VXD_TRY(check_cloud(request, err));
    VXD_TRY(vxd_scene_network_check(request, input, &job->network, err));
    VXD_TRY(vxd_scene_filter_check(input, err));
    job->estimates = input->pose == VOXELD__V1__POSE_SOURCE__POSE_ESTIMATE;
    if (job->estimates) {
        VXD_TRY(vxd_estimate_check(request, input->cloud, &job->estimate, err));
    } else if (input->odometry[0] != '\0') {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "odometry",
                         "goes with pose POSE_ESTIMATE"));
    }
    request->n_points = job->clouds.n_points;
    /* Memory for positions, features and materials; then lists, which are smaller than
     * their points except for long rays. */
    request->cost_bytes =
        request->body_bytes +
        job->clouds.n_points * (64U + (job->estimates ? VXD_ESTIMATE_BYTES_A_POINT : 0U));
out:
    return status;
}

/* --- the network, before submit ----------------------------------------------------------- */

enum vxd_status vxd_scene_integrate_prerequisite(struct vxd_request *request, bool *waits,
                                                 struct vxd_err *err)
{
    struct integrate_job *job = request->state;
    enum vxd_status status;

    *waits = job->network.message != NULL;
    if (!*waits) {
        return VXD_OK;
    }
    status = vxd_scene_network_run(request, &job->network, err);
    if (status != VXD_OK) {
        vxd_clouds_name_one(err);
    }
    return status;
}

enum vxd_status vxd_scene_integrate_take_prerequisite(struct vxd_request *request,
                                                      const ProtobufCMessage *output,
                                                      struct vxd_err *err)
{
    struct integrate_job *job = request->state;

    return vxd_scene_network_take(request, output, job->clouds.n_points, &job->network,
                                  err);
}

void vxd_scene_integrate_forget(struct vxd_request *request)
{
    struct integrate_job *job = request->state;

    vxd_scene_network_free(request, &job->network);
}

/* --- submit ------------------------------------------------------------------------------- */

/* Counted from the sensor's voxel, floats near it are exact wherever in the scene it is. */
static enum vxd_status choose_base(struct integrate_job *job, struct vxd_err *err)
{
    const struct vxd_scene_spec *spec = &job->base.scene->spec;
    const Voxeld__V1__Pose *pose = job->cloud->t_map_sensor;
    const Voxeld__V1__Vec3 *t = pose != NULL ? pose->translation : NULL;
    const double sensor[3] = {t != NULL ? t->x : 0, t != NULL ? t->y : 0,
                              t != NULL ? t->z : 0};

    for (int i = 0; i < 3; i++) {
        job->base_voxel[i] = floor((sensor[i] - spec->origin_m[i]) / spec->voxel_size_m);
        if (!(fabs(job->base_voxel[i]) <= MAX_BASE)) {
            return vxd_fail(err, VXD_OUT_OF_RANGE, "cloud.T_map_sensor.translation",
                            "lies more than 2^40 voxels from the scene's low corner");
        }
        job->clouds.origin[i] =
            spec->origin_m[i] + job->base_voxel[i] * spec->voxel_size_m;
    }
    job->clouds.unit_m = spec->voxel_size_m;
    return VXD_OK;
}

static enum vxd_status decode(struct vxd_request *request, struct vxd_queue *queue,
                              struct vxd_err *err)
{
    struct integrate_job *job = request->state;
    size_t n = job->clouds.n_points;
    void *positions;
    void *origins;
    void *features = NULL;
    enum vxd_status status;

    VXD_TRY(vxd_scene_take_device(request, queue, n, 3 * sizeof(float), &positions, err));
    if (job->rule.n_channels > 0) {
        VXD_TRY(vxd_scene_take_device(request, queue, n,
                                      (size_t)job->rule.n_channels * sizeof(float),
                                      &features, err));
    }
    if (job->cloud->deskew != NULL) {
        VXD_TRY(
            vxd_scene_take_device(request, queue, n, 3 * sizeof(float), &origins, err));
        job->clouds.origins = origins;
    }
    VXD_TRY(vxd_clouds_decode(&job->clouds, queue, positions, features, err));
    job->positions = positions;
    job->origins = job->clouds.origins;
    job->features = features;
    VXD_TRY(vxd_queue_wait(queue, err));
    vxd_clouds_count_own(&job->clouds, &job->reply->n_near, &job->reply->n_own);
out:
    if (status != VXD_OK) {
        vxd_clouds_name_one(err);
    }
    return status;
}

/* Computes the materials by the rule, where not all points have the same one. */
static enum vxd_status choose_values(struct vxd_request *request, struct vxd_queue *queue,
                                     struct vxd_err *err)
{
    struct integrate_job *job = request->state;
    size_t n = job->clouds.n_points;
    struct vxd_scene_output looked_at = {.n_bytes = n * 3 * sizeof(float),
                                         .device = job->positions};
    const void *values;
    void *block;
    enum vxd_status status;

    if (n == 0 || job->rule.message == NULL ||
        job->rule.message->kind == VOXELD__V1__SCENE_MATERIAL_RULE__KIND__CONSTANT) {
        return VXD_OK;
    }
    if (job->features != NULL) {
        looked_at.n_bytes = n * (size_t)job->rule.n_channels * sizeof(float);
        looked_at.device = job->features;
    }
    VXD_TRY(vxd_scene_fetch_output(request, queue, &looked_at, err));
    VXD_TRY(vxd_scene_take_host(request, n, sizeof(uint16_t), &block, err));
    VXD_TRY(vxd_queue_wait(queue, err));
    VXD_TRY(vxd_scene_rule_apply(&job->rule, &job->base.scene->spec, looked_at.bytes,
                                 job->base_voxel[2], n, block, err));
    job->values = block;
    VXD_TRY(vxd_scene_upload(request, queue, block, n * sizeof(uint16_t), &values, err));
    job->split.values = values;
out:
    return status;
}

/* Counts the points of each source, in the request's memory. */
static enum vxd_status count_points(struct vxd_request *request, size_t **n_of_source,
                                    struct vxd_err *err)
{
    const struct integrate_job *job = request->state;
    void *block;
    enum vxd_status status;

    VXD_TRY(
        vxd_scene_take_host(request, job->n_sources, sizeof **n_of_source, &block, err));
    *n_of_source = block;
    for (size_t i = 0; i < job->n_sources; i++) {
        const struct vxd_source source = {0, i > 0, i > 0 ? i - 1 : 0};
        struct vxd_cloud cloud = {0};

        VXD_TRY(vxd_source_build(&job->clouds, &source, &cloud, err));
        (*n_of_source)[i] = cloud.n_points;
    }
out:
    return status;
}

/* Computes the materials by the network's labels; some points have no label. */
static enum vxd_status split_points(struct vxd_request *request, struct vxd_queue *queue,
                                    struct vxd_err *err)
{
    struct integrate_job *job = request->state;
    size_t *n_of_source;
    enum vxd_status status;

    VXD_TRY(count_points(request, &n_of_source, err));
    VXD_TRY(vxd_scene_network_split(request, queue, &job->network, &job->base.scene->spec,
                                    job->positions, job->clouds.n_points, n_of_source,
                                    job->n_sources, &job->split, err));
    status = vxd_queue_wait(queue, err);
out:
    return status;
}

/* Looks for points that hit nothing; *dropped is on the host. */
static enum vxd_status mark_points(struct vxd_request *request, struct vxd_queue *queue,
                                   const Voxeld__V1__SceneFilter *filter,
                                   uint8_t **dropped, struct vxd_err *err)
{
    struct integrate_job *job = request->state;
    size_t n = job->clouds.n_points;
    struct vxd_scene_output looked_at = {.n_bytes = n * 3 * sizeof(float),
                                         .device = job->positions};
    struct vxd_scene_filtering in = {
        .spec = &job->base.scene->spec, .n = n, .base_voxel = job->base_voxel};
    const struct vxd_source source = {0, false, 0};
    struct vxd_cloud cloud = {0};
    void *block;
    enum vxd_status status;

    VXD_TRY(vxd_scene_fetch_output(request, queue, &looked_at, err));
    VXD_TRY(vxd_scene_take_host(request, n, 1, &block, err));
    VXD_TRY(vxd_queue_wait(queue, err));
    VXD_TRY(vxd_source_build(&job->clouds, &source, &cloud, err));
    *dropped = block;
    in.points = looked_at.bytes;
    in.sensor = cloud.translation;
    status = vxd_scene_filter_points(request, filter, &in, *dropped,
                                     &job->reply->n_ground, &job->reply->n_sparse, err);
out:
    return status;
}

/* Splits off the points that the request's filter drops. */
static enum vxd_status filter_points(struct vxd_request *request, struct vxd_queue *queue,
                                     const Voxeld__V1__SceneFilter *filter,
                                     struct vxd_err *err)
{
    struct integrate_job *job = request->state;
    size_t n = job->clouds.n_points;
    struct vxd_scene_rows rows = {0};
    uint8_t *dropped;
    size_t row = 0;
    void *blocks[3];
    enum vxd_status status = VXD_OK;

    if (filter == NULL || n == 0) {
        return VXD_OK;
    }
    VXD_TRY(mark_points(request, queue, filter, &dropped, err));
    VXD_TRY(count_points(request, &job->split.n_kept, err));
    for (int i = 0; i < 3; i++) {
        VXD_TRY(vxd_scene_take_host(
            request, n, i < 2 ? sizeof(int32_t) : sizeof(uint16_t), &blocks[i], err));
    }
    rows.kept = blocks[0];
    rows.dropped = blocks[1];
    rows.values = job->values != NULL ? blocks[2] : NULL;
    for (size_t i = 0; i < job->n_sources; i++) {
        size_t before = rows.n_kept;

        for (size_t end = row + job->split.n_kept[i]; row < end; row++) {
            if (dropped[row] != 0) {
                rows.dropped[rows.n_dropped++] = (int32_t)row;
                continue;
            }
            if (rows.values != NULL) {
                rows.values[rows.n_kept] = job->values[row];
            }
            rows.kept[rows.n_kept++] = (int32_t)row;
        }
        job->split.n_kept[i] = rows.n_kept - before;
    }
    VXD_TRY(vxd_scene_split_rows(request, queue, n, &rows, &job->split, err));
    status = vxd_queue_wait(queue, err);
out:
    return status;
}

/* Chooses the material of each point. */
static enum vxd_status choose_materials(struct vxd_request *request,
                                        struct vxd_queue *queue, struct vxd_err *err)
{
    struct integrate_job *job = request->state;
    enum vxd_status status;

    job->split.positions = job->positions;
    job->split.origins = job->origins;
    if (job->network.message != NULL) {
        return split_points(request, queue, err);
    }
    VXD_TRY(choose_values(request, queue, err));
    status = filter_points(
        request, queue,
        ((const Voxeld__V1__SceneIntegrateRequest *)request->input)->filter, err);
out:
    return status;
}

static const float *rows_from(const float *rows, size_t first)
{
    return rows != NULL ? rows + 3 * first : NULL;
}

/* Notes of a scan what the journal gets beside its rays. */
static void note_scan(const struct vxd_svdag_scan *scan, bool fills,
                      struct vxd_record_scan *record)
{
    memcpy(record->base, scan->base, sizeof record->base);
    memcpy(record->origin, scan->origin, sizeof record->origin);
    record->fills = fills;
    record->value = fills ? scan->value : 0;
    record->has_values = fills && scan->values != NULL;
}

/* Which points of a source a scan is of. */
struct part {
    size_t n_kept;
    size_t n_dropped;
    size_t n;      /* of the kept or the dropped ones, whichever are next */
    size_t result; /* index of its lists */
};

/* Begins to scan the kept points of the next source, or the dropped ones for themselves. */
static enum vxd_status begin_scan(struct vxd_request *request, struct vxd_queue *queue,
                                  const struct vxd_cloud *cloud, const struct part *part,
                                  struct vxd_err *err)
{
    const Voxeld__V1__SceneIntegrateRequest *input =
        (const Voxeld__V1__SceneIntegrateRequest *)request->input;
    struct integrate_job *job = request->state;
    const struct place *place = &job->place;
    const struct vxd_scene_spec *spec = &job->base.scene->spec;
    struct vxd_svdag_scan scan = {.carve = input->carve != NULL,
                                  .discretize =
                                      input->carve != NULL && input->carve->discretize,
                                  .wants_ends = vxd_scene_is_durable(job->base.scene),
                                  .n = part->n};
    enum vxd_status status;

    for (int axis = 0; axis < 3; axis++) {
        scan.base[axis] = (int64_t)job->base_voxel[axis];
        scan.origin[axis] = cloud->translation[axis];
    }
    if (scan.carve) {
        scan.max_range = input->carve->max_range_m / spec->voxel_size_m;
    }
    if (job->casts_dropped) {
        scan.points = job->split.dropped + 3 * place->dropped;
        scan.origins = rows_from(job->split.dropped_origins, place->dropped);
    } else {
        scan.points = job->split.positions + 3 * place->kept;
        scan.origins = rows_from(job->split.origins, place->kept);
        scan.values = job->split.values != NULL ? job->split.values + place->kept : NULL;
        scan.value = input->rule != NULL ? input->rule->material : 0;
    }
    VXD_TRY(vxd_svdag_scan_begin(queue, &spec->format, &scan, &job->scanning, err));
    note_scan(&scan, !job->casts_dropped, &job->records[part->result]);
out:
    return status;
}

/* Makes a step of the scan of a source's kept points, and then of its dropped ones; *is_done: that
 * source is scanned. */
static enum vxd_status scan_source(struct vxd_request *request, struct vxd_queue *queue,
                                   bool *is_done, struct vxd_err *err)
{
    struct integrate_job *job = request->state;
    const size_t i = job->next_source;
    const struct vxd_source source = {0, i > 0, i > 0 ? i - 1 : 0};
    struct vxd_cloud cloud = {0};
    struct part part = {0};
    bool is_scanned = true;
    enum vxd_status status;

    VXD_TRY(vxd_source_build(&job->clouds, &source, &cloud, err));
    part.n_kept = job->split.n_kept != NULL ? job->split.n_kept[i] : cloud.n_points;
    part.n_dropped = cloud.n_points - part.n_kept;
    part.n = job->casts_dropped ? part.n_dropped : part.n_kept;
    part.result = job->casts_dropped ? job->n_sources + i : i;
    if (job->scanning == NULL && part.n > 0) {
        VXD_TRY(begin_scan(request, queue, &cloud, &part, err));
    }
    if (job->scanning != NULL) {
        VXD_TRY(vxd_svdag_scan_step(queue, job->scanning, &job->scans[part.result],
                                    &is_scanned, err));
    }
    *is_done = false;
    if (is_scanned) {
        vxd_svdag_scan_end(job->scanning);
        job->scanning = NULL;
        *is_done = job->casts_dropped || part.n_dropped == 0;
        job->casts_dropped = !*is_done;
    }
    if (*is_done) {
        job->casts_dropped = false;
        job->place.kept += part.n_kept;
        job->place.dropped += part.n_dropped;
    }
out:
    return status;
}

static void count_scans(struct integrate_job *job)
{
    Voxeld__V1__SceneIntegrateResponse *reply = job->reply;

    for (size_t i = 0; i < 2 * job->n_sources; i++) {
        const struct vxd_svdag_scan_result *scan = &job->scans[i];
        bool is_dropped = i >= job->n_sources;

        reply->n_used += is_dropped ? 0 : scan->n_hit;
        reply->n_dropped += is_dropped ? scan->n_hit : 0;
        reply->n_non_finite += scan->n_non_finite;
        reply->n_outside += scan->n_outside;
        reply->n_beyond += scan->n_beyond;
        reply->n_hit_voxels += is_dropped ? 0 : scan->n_hit_voxels;
        reply->n_passed_voxels += scan->n_passed_voxels;
    }
    /* Scans see them as points without a position. */
    reply->n_non_finite -= reply->n_near + reply->n_own;
}

/* Scans a part of the next source; the last one gives back what the edit does not need, points and
 * their memory. */
static enum vxd_status cast(struct vxd_request *request, struct vxd_queue *queue,
                            struct vxd_err *err)
{
    struct integrate_job *job = request->state;
    bool is_done;
    enum vxd_status status;

    vxd_request_begin_apart(request);
    status = scan_source(request, queue, &is_done, err);
    vxd_request_end_apart(request);
    VXD_TRY(status);
    job->next_source += is_done;
    if (job->next_source == job->n_sources) {
        count_scans(job);
        vxd_clouds_free(&job->clouds, queue);
        vxd_scene_free_blocks(request, queue);
        job->step = EDIT;
    }
out:
    return status;
}

/* Whether what rays pass is erased; otherwise it becomes free. */
static bool erases(const struct vxd_request *request)
{
    const Voxeld__V1__SceneIntegrateRequest *input =
        (const Voxeld__V1__SceneIntegrateRequest *)request->input;
    const struct integrate_job *job = request->state;

    return !job->base.scene->spec.format.tracks_free ||
           (input->carve != NULL && input->carve->erase);
}

/* All passed voxels come before all hit ones, whichever sweep hit them. Voxels that
 * dropped points hit are left as they are. Log-odds take the same lists. */
static size_t make_ops(struct integrate_job *job,
                       const Voxeld__V1__SceneIntegrateRequest *input, bool erase)
{
    size_t n_ops = 0;

    for (size_t i = 0; i < 2 * job->n_sources; i++) {
        if (job->scans[i].passed.voxels.n > 0) {
            job->ops[n_ops].shape.kind = VXD_SVDAG_VOXELS;
            job->ops[n_ops].shape.voxels = job->scans[i].passed.voxels;
            job->ops[n_ops++].action = erase ? VXD_SVDAG_ERASE : VXD_SVDAG_SET_FREE;
        }
    }
    for (size_t i = 0; i < job->n_sources; i++) {
        if (job->scans[i].hits.voxels.n > 0) {
            job->ops[n_ops].shape.kind = VXD_SVDAG_VOXELS;
            job->ops[n_ops].shape.voxels = job->scans[i].hits.voxels;
            job->ops[n_ops].value = input->rule != NULL ? input->rule->material : 0;
            job->ops[n_ops++].action = VXD_SVDAG_FILL;
        }
    }
    return n_ops;
}

/* Makes everything of the reply that needs memory. */
static enum vxd_status new_reply(struct vxd_request *request, struct vxd_err *err)
{
    struct integrate_job *job = request->state;
    Voxeld__V1__SceneIntegrateResponse *reply = vxd_message_new(
        request->decoder, &voxeld__v1__scene_integrate_response__descriptor, err);

    job->reply = reply;
    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    reply->change =
        vxd_message_new(request->decoder, &voxeld__v1__scene_change__descriptor, err);
    reply->stamp_ns = job->cloud->stamp_ns;
    reply->frame_id = job->cloud->frame_id; /* the request's memory */
    reply->n_points = job->clouds.n_points;
    if (job->network.message != NULL) {
        reply->digest = job->network.digest;
        reply->network = job->network.timings;
    }
    job->scans = calloc(2 * job->n_sources, sizeof *job->scans);
    job->ops = calloc(MAX_SOURCE_OPS * job->n_sources, sizeof *job->ops);
    job->records = calloc(2 * job->n_sources, sizeof *job->records);
    if (reply->change == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    return job->scans != NULL && job->ops != NULL && job->records != NULL
               ? VXD_OK
               : vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a scan");
}

/* Whether the scene takes such carving. */
static enum vxd_status check_carve(const struct vxd_scene *scene,
                                   const Voxeld__V1__SceneCarve *carve,
                                   struct vxd_err *err)
{
    if (carve == NULL || !carve->erase || !vxd_scene_fuses(scene)) {
        return VXD_OK;
    }
    return vxd_fail(err, VXD_INVALID_ARGUMENT, "carve.erase",
                    "is set, but the scene \"%s\" fuses scans by log-odds, in which "
                    "what rays pass becomes free: leave it out, or make the scene with "
                    "fusion SCENE_FUSION_LAST",
                    scene->terms.name);
}

static double lap_ms(int64_t *since_ns)
{
    int64_t now = vxd_clock_ns();
    double ms = (double)(now - *since_ns) / 1e6;

    *since_ns = now;
    return ms;
}

/* Finds the scan's pose by odometry: *is_lost where there is none. */
static enum vxd_status locate(struct vxd_request *request, struct vxd_queue *queue,
                              bool *is_lost, struct vxd_err *err)
{
    const Voxeld__V1__SceneIntegrateRequest *input =
        (const Voxeld__V1__SceneIntegrateRequest *)request->input;
    struct integrate_job *job = request->state;
    const struct vxd_odometry_result *result = &job->estimate.result;
    enum vxd_status status = VXD_OK;

    *is_lost = false;
    if (!job->estimates) {
        return VXD_OK;
    }
    VXD_TRY(vxd_estimate_open(request, queue, input->odometry, VXD_ODOMETRY_OF_SCENE,
                              input->name, job->base.scene->generation,
                              job->base.scene->terms.owner, &job->estimate, err));
    VXD_TRY(vxd_estimate_run(queue, &job->estimate, err));
    VXD_TRY(vxd_estimate_place(request->decoder, &job->estimate, job->cloud, err));
    job->reply->status = (Voxeld__V1__OdometryStatus)result->status;
    job->reply->reason = (Voxeld__V1__OdometryReason)result->reason;
    job->reply->t_map_sensor =
        vxd_volume_new_pose(request->decoder, &result->T_map_sensor, err);
    if (job->reply->t_map_sensor == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    *is_lost = result->status == VXD_ODOMETRY_LOST;
    job->reply->change->version = job->base.state.version;
    request->output = &job->reply->base;
out:
    return status;
}

static enum vxd_status begin(struct vxd_request *request, struct vxd_queue *queue,
                             struct vxd_err *err)
{
    const Voxeld__V1__SceneIntegrateRequest *input =
        (const Voxeld__V1__SceneIntegrateRequest *)request->input;
    struct integrate_job *job = request->state;
    bool is_lost;
    enum vxd_status status;

    VXD_TRY(new_reply(request, err));
    VXD_TRY(vxd_scene_open(request, input->name, NULL, err));
    vxd_scene_hold(request);
    VXD_TRY(vxd_scene_check_version(&job->base, input->if_version, err));
    VXD_TRY(vxd_scene_rule_check(&job->rule, job->base.scene, err));
    VXD_TRY(check_carve(job->base.scene, input->carve, err));
    VXD_TRY(locate(request, queue, &is_lost, err));
    if (is_lost) {
        return VXD_OK;
    }
    VXD_TRY(choose_base(job, err));
    VXD_TRY(decode(request, queue, err));
    VXD_TRY(choose_materials(request, queue, err));
    job->step = CAST;
out:
    return status;
}

static enum vxd_status edit(struct vxd_request *request, struct vxd_queue *queue,
                            struct vxd_err *err)
{
    const Voxeld__V1__SceneIntegrateRequest *input =
        (const Voxeld__V1__SceneIntegrateRequest *)request->input;
    struct integrate_job *job = request->state;
    enum vxd_record_kind kind =
        vxd_scene_fuses(job->base.scene) ? VXD_RECORD_FUSE : VXD_RECORD_INTEGRATE;
    enum vxd_status status =
        vxd_scene_keep_scans(request, queue, job->scans, job->records, 2 * job->n_sources,
                             &job->base.commit.entry, err);

    if (status != VXD_OK) {
        return status;
    }
    job->base.commit.entry.erases = erases(request);
    status = vxd_scene_apply(request, queue, kind, job->ops,
                             make_ops(job, input, erases(request)), &job->result, err);
    job->reply->n_relabelled = job->result.n_changed;
    request->output = &job->reply->base;
    return status;
}

enum vxd_status vxd_scene_integrate_submit(struct vxd_request *request,
                                           struct vxd_queue *queue, struct vxd_err *err)
{
    struct integrate_job *job = request->state;
    int64_t since_ns = vxd_clock_ns();
    enum vxd_status status = VXD_OK;

    atomic_store(&request->ends_when_over, true);
    if (vxd_request_is_over(request)) {
        return vxd_fail(err, VXD_CANCELLED, NULL, "nobody waits for the reply");
    }
    switch (job->step) {
    case DECODE:
        VXD_TRY(begin(request, queue, err));
        job->reply->decode_ms = lap_ms(&since_ns);
        request->more = job->step == CAST; /* unless the scan is lost */
        break;
    case CAST:
        VXD_TRY(cast(request, queue, err));
        job->reply->carve_ms += lap_ms(&since_ns);
        request->more = true;
        break;
    case EDIT:
        VXD_TRY(edit(request, queue, err));
        job->reply->edit_ms = lap_ms(&since_ns);
        break;
    }
out:
    return status;
}

/* Keeps where the scan's sensor was, for those who look at the scene. */
static void note_sensor(const struct integrate_job *job)
{
    const Voxeld__V1__Pose *pose = job->cloud->t_map_sensor;
    struct vxd_scene_sensor sensor = {
        .stamp_ns = job->cloud->stamp_ns > 0 ? job->cloud->stamp_ns : vxd_clock_unix_ns(),
        .turn = {0, 0, 0, 1}};

    if (pose != NULL && pose->translation != NULL) {
        sensor.place[0] = pose->translation->x;
        sensor.place[1] = pose->translation->y;
        sensor.place[2] = pose->translation->z;
    }
    if (pose != NULL && pose->rotation != NULL &&
        (pose->rotation->x != 0 || pose->rotation->y != 0 || pose->rotation->z != 0 ||
         pose->rotation->w != 0)) {
        sensor.turn[0] = pose->rotation->x;
        sensor.turn[1] = pose->rotation->y;
        sensor.turn[2] = pose->rotation->z;
        sensor.turn[3] = pose->rotation->w;
    }
    vxd_scene_set_sensor(job->base.scene, &sensor);
}

enum vxd_status vxd_scene_integrate_finish(struct vxd_request *request,
                                           struct vxd_queue *queue, struct vxd_err *err)
{
    const struct integrate_job *job = request->state;
    struct vxd_scene_log_odds *log_odds = &job->base.scene->log_odds;

    (void)queue;
    (void)err;
    if (job->estimates && job->estimate.result.status == VXD_ODOMETRY_LOST) {
        job->reply->engine_ms = (double)request->engine_ns / 1e6;
        return VXD_OK; /* there is no change to publish */
    }
    if (job->cloud->stamp_ns > log_odds->newest_ns) {
        log_odds->newest_ns = job->cloud->stamp_ns; /* decays by time go up to here */
    }
    note_sensor(job);
    vxd_scene_publish(request, &job->result, VXD_SCENE_INTEGRATED, 0, job->reply->change);
    job->reply->engine_ms = (double)request->engine_ns / 1e6;
    if (job->network.message != NULL) {
        const Voxeld__V1__NetworkTimings *network = job->network.timings;

        job->reply->engine_ms += network->voxelize_ms + network->sets_ms +
                                 network->layers_ms + network->outputs_ms;
    }
    return VXD_OK;
}

void vxd_scene_integrate_release(struct vxd_request *request, struct vxd_queue *queue)
{
    struct integrate_job *job = request->state;

    vxd_estimate_release(queue, &job->estimate);
    vxd_svdag_scan_end(job->scanning);
    job->scanning = NULL;
    vxd_clouds_free(&job->clouds, queue);
    for (size_t i = 0; job->scans != NULL && i < 2 * job->n_sources; i++) {
        vxd_svdag_voxel_list_free(queue, &job->scans[i].hits);
        vxd_svdag_voxel_list_free(queue, &job->scans[i].passed);
        vxd_svdag_ray_ends_free(queue, &job->scans[i].ends);
    }
    free(job->scans);
    free(job->ops);
    free(job->records);
    job->records = NULL;
    job->scans = NULL;
    job->ops = NULL;
    vxd_scene_release(request, queue);
}
