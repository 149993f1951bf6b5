// SPDX-License-Identifier: Apache-2.0
/* Odometries as a whole: create, drop, list, get, reset. */
#include <math.h>

#include "proto/base/clock.h"
#include "server/instance/instance.h"
#include "server/service/existing/existing.h"
#include "server/service/noun/noun.h"
#include "server/service/odometry/service_odometry.h"
#include "server/service/service.h"

enum {
    MAX_INFO_BYTES = 1536 /* of one OdometryInfo with all that it may have */
};

struct admin_job {
    struct vxd_named_odometry *odometry; /* held */
    struct vxd_odometry_options options; /* create: with the defaults */
    struct vxd_volume_pose initial;
};

static enum vxd_status new_info(struct vxd_request *request, struct vxd_decoder *arena,
                                const struct vxd_named *named, ProtobufCMessage **out,
                                struct vxd_err *err)
{
    const struct vxd_named_odometry *odometry = (const struct vxd_named_odometry *)named;
    Voxeld__V1__OdometryInfo *info =
        vxd_message_new(arena, &voxeld__v1__odometry_info__descriptor, err);
    struct vxd_odometry_info engine;
    const struct vxd_odometry_options *options = &engine.options;

    (void)request;
    if (info == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    vxd_odometry_get_info(odometry->odometry, &engine);
    info->name = vxd_message_text(arena, odometry->named.terms.name,
                                  strlen(odometry->named.terms.name), err);
    info->owner = vxd_message_text(arena, odometry->named.terms.owner,
                                   strlen(odometry->named.terms.owner), err);
    info->t_map_sensor = vxd_volume_new_pose(arena, &engine.T_map_sensor, err);
    if (info->name == NULL || info->owner == NULL || info->t_map_sensor == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    info->max_range_m = options->max_range_m;
    info->min_range_m = options->min_range_m;
    info->voxel_size_m = options->voxel_size_m;
    info->max_points = (uint32_t)options->max_points;
    info->method = (Voxeld__V1__OdometryMethod)options->method;
    info->robust = (Voxeld__V1__OdometryRobust)options->robust;
    info->initial_threshold_m = options->initial_threshold_m;
    info->min_motion_m = options->min_motion_m;
    info->max_iterations = (uint32_t)options->max_iterations;
    info->inlier_m = options->inlier_m;
    info->min_fitness = options->min_fitness;
    info->min_constraint = options->min_constraint;
    info->max_translation_m = options->max_translation_m;
    info->max_rotation_deg = options->max_rotation_deg;
    info->max_bytes = options->max_bytes;
    info->generation = odometry->named.generation;
    info->created_ns = odometry->named.created_unix_ns;
    info->threshold_m = engine.threshold_m;
    info->n_scans = engine.n_scans;
    info->n_lost = engine.n_lost;
    info->n_lost_in_a_row = engine.n_lost_in_a_row;
    info->n_voxels = engine.n_voxels;
    info->n_bytes = engine.n_bytes;
    info->stamp_ns = engine.stamp_ns;
    if (odometry->named.terms.ttl_ns > 0) {
        int64_t left =
            odometry->named.used_ns + odometry->named.terms.ttl_ns - vxd_clock_ns();

        info->ttl_s = (double)odometry->named.terms.ttl_ns / 1e9;
        info->ttl_left_s = left > 0 ? (double)left / 1e9 : 0;
    }
    *out = &info->base;
    return VXD_OK;
}

/* --- create ---------------------------------------------------------------------------- */

static enum vxd_status read_options(const Voxeld__V1__OdometryCreateRequest *input,
                                    struct vxd_odometry_options *out, struct vxd_err *err)
{
    *out = (struct vxd_odometry_options){
        .max_range_m = input->max_range_m,
        .min_range_m = input->min_range_m,
        .voxel_size_m = input->voxel_size_m,
        .max_points = (int)input->max_points,
        .method = (enum vxd_odometry_method)input->method,
        .robust = (enum vxd_odometry_robust)input->robust,
        .initial_threshold_m = input->initial_threshold_m,
        .min_motion_m = input->min_motion_m,
        .max_iterations = (int)input->max_iterations,
        .inlier_m = input->inlier_m,
        .min_fitness = input->min_fitness,
        .min_constraint = input->min_constraint,
        .max_translation_m = input->max_translation_m,
        .max_rotation_deg = input->max_rotation_deg,
        .max_bytes =
            input->max_bytes > 0 ? (size_t)input->max_bytes : VXD_ODOMETRY_BYTES};
    return vxd_odometry_options_init(out, err);
}

enum vxd_status vxd_odometry_create_check(struct vxd_request *request,
                                          struct vxd_err *err)
{
    const Voxeld__V1__OdometryCreateRequest *input =
        (const Voxeld__V1__OdometryCreateRequest *)request->input;
    struct admin_job *job;
    enum vxd_status status;

    VXD_TRY(vxd_noun_begin_check(request, sizeof(struct admin_job), input->name, err));
    job = request->state;
    VXD_TRY(read_options(input, &job->options, err));
    VXD_TRY(vxd_volume_read_pose(input->initial, "initial", &job->initial, err));
out:
    return status;
}

static bool is_equal(const struct vxd_named_odometry *odometry,
                     const struct vxd_odometry_options *b, int64_t ttl_ns)
{
    struct vxd_odometry_info info;
    const struct vxd_odometry_options *a = &info.options;

    vxd_odometry_get_info(odometry->odometry, &info);
    return odometry->named.terms.ttl_ns == ttl_ns && a->max_range_m == b->max_range_m &&
           a->min_range_m == b->min_range_m && a->voxel_size_m == b->voxel_size_m &&
           a->max_points == b->max_points && a->method == b->method &&
           a->robust == b->robust && a->initial_threshold_m == b->initial_threshold_m &&
           a->min_motion_m == b->min_motion_m && a->max_iterations == b->max_iterations &&
           a->inlier_m == b->inlier_m && a->min_fitness == b->min_fitness &&
           a->min_constraint == b->min_constraint &&
           a->max_translation_m == b->max_translation_m &&
           a->max_rotation_deg == b->max_rotation_deg && a->max_bytes == b->max_bytes;
}

enum vxd_status vxd_odometry_create_submit(struct vxd_request *request,
                                           struct vxd_queue *queue, struct vxd_err *err)
{
    const Voxeld__V1__OdometryCreateRequest *input =
        (const Voxeld__V1__OdometryCreateRequest *)request->input;
    struct admin_job *job = request->state;
    struct vxd_odometries *odometries = request->server->odometries;
    struct vxd_odometry_terms terms = {.kind = VXD_ODOMETRY_NAMED,
                                       .name = input->name,
                                       .owner = request->principal.name,
                                       .ttl_ns = (int64_t)ceil(input->ttl_s * 1e9),
                                       .options = job->options,
                                       .initial = &job->initial};
    struct vxd_named_odometry *odometry = vxd_odometries_find(odometries, input->name);
    Voxeld__V1__OdometryCreateResponse *reply = vxd_message_new(
        request->decoder, &voxeld__v1__odometry_create_response__descriptor, err);
    ProtobufCMessage *info = NULL;
    enum vxd_status status = VXD_OK;

    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    reply->existed = odometry != NULL;
    if (odometry != NULL && !is_equal(odometry, &job->options, terms.ttl_ns)) {
        return vxd_fail(err, VXD_ALREADY_EXISTS, "name",
                        "the odometry \"%s\" exists with other parameters", input->name);
    }
    if (odometry == NULL) {
        VXD_TRY(vxd_odometries_add(odometries, queue, &terms, &odometry, err));
    }
    status = new_info(request, request->decoder, &odometry->named, &info, err);
    reply->odometry = (Voxeld__V1__OdometryInfo *)info;
    if (status != VXD_OK && !reply->existed) {
        vxd_named_remove(&odometry->named, queue);
    }
    request->output = &reply->base;
out:
    return status;
}

/* --- list, get, drop -------------------------------------------------------------------- */

static struct vxd_names *get_names(const struct vxd_server *server)
{
    return vxd_odometries_named(server->odometries);
}

const struct vxd_noun_service vxd_odometry_service = {.names = get_names,
                                                      .max_info_bytes = MAX_INFO_BYTES,
                                                      .list_field = "odometries",
                                                      .info_field = "odometry",
                                                      .new_info = new_info,
                                                      .missing = vxd_missing_odometry};

/* --- reset ------------------------------------------------------------------------------ */

enum vxd_status vxd_odometry_reset_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__OdometryResetRequest *input =
        (const Voxeld__V1__OdometryResetRequest *)request->input;
    enum vxd_status status;

    VXD_TRY(vxd_noun_begin_check(request, sizeof(struct admin_job), input->name, err));
    status = vxd_volume_read_pose(input->initial, "initial",
                                  &((struct admin_job *)request->state)->initial, err);
out:
    return status;
}

enum vxd_status vxd_odometry_reset_submit(struct vxd_request *request,
                                          struct vxd_queue *queue, struct vxd_err *err)
{
    const Voxeld__V1__OdometryResetRequest *input =
        (const Voxeld__V1__OdometryResetRequest *)request->input;
    struct admin_job *job = request->state;
    Voxeld__V1__OdometryResetResponse *reply = vxd_message_new(
        request->decoder, &voxeld__v1__odometry_reset_response__descriptor, err);
    struct vxd_named_odometry *odometry;
    ProtobufCMessage *info = NULL;
    enum vxd_status status;

    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    odometry = vxd_odometries_find(request->server->odometries, input->name);
    if (odometry == NULL) {
        return vxd_missing_odometry(request, "name", input->name, err);
    }
    job->odometry = odometry;
    vxd_named_hold(&odometry->named);
    VXD_TRY(vxd_odometry_reset(queue, odometry->odometry, &job->initial, err));
    VXD_TRY(new_info(request, request->decoder, &odometry->named, &info, err));
    reply->odometry = (Voxeld__V1__OdometryInfo *)info;
    request->output = &reply->base;
out:
    return status;
}

void vxd_odometry_release(struct vxd_request *request, struct vxd_queue *queue)
{
    struct admin_job *job = request->state;

    if (job->odometry != NULL) {
        vxd_named_account(&job->odometry->named);
        vxd_named_drop(&job->odometry->named, queue);
        job->odometry = NULL;
    }
}
