// SPDX-License-Identifier: Apache-2.0
/* Volumes as a whole: create, drop, list, get. */
#include <inttypes.h>
#include <math.h>

#include "server/instance/instance.h"
#include "server/registry/registry.h"
#include "server/service/existing/existing.h"
#include "server/service/service.h"
#include "server/service/volume/volume_service.h"

#define DEFAULT_TRUNCATION_VOXELS 6
#define DEFAULT_MAX_WEIGHT 255
#define MAX_COMPACT_WEIGHT 255

enum {
    MAX_INFO_BYTES = 1024 /* of one VolumeInfo with all that it may have */
};

/* --- create ---------------------------------------------------------------------------- */

struct create_job {
    struct vxd_volume_job base; /* first: request->state is both */
    struct vxd_named_terms terms;
    struct vxd_volume_spec spec;
    Voxeld__V1__VolumeCreateResponse *reply;
};

static enum vxd_status read_spec(const Voxeld__V1__VolumeCreateRequest *input,
                                 struct vxd_volume_spec *spec, struct vxd_err *err)
{
    const Voxeld__V1__Vec3 *origin = input->origin;
    double size = input->voxel_size_m;
    enum vxd_status status;

    VXD_TRY(vxd_volume_check_number(size, "voxel_size_m", 1e-4, 100, err));
    VXD_TRY(vxd_volume_check_number(input->truncation_m, "truncation_m", 0, 12800, err));
    VXD_TRY(vxd_volume_check_number(input->max_weight, "max_weight", 0, 65535, err));
    if (input->max_weight > 0 && input->max_weight < 1) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "max_weight",
                         "is %g, must be 1 to 65535, or 0 for %d", input->max_weight,
                         DEFAULT_MAX_WEIGHT));
    }
    if (input->block != 0 && input->block != 8 && input->block != 16) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "block", "is %u, must be 8 or 16",
                         input->block));
    }
    *spec = (struct vxd_volume_spec){
        .voxel_size_m = size,
        .block_edge = input->block == 16 ? 16 : 8,
        .truncation_m = input->truncation_m > 0 ? input->truncation_m
                                                : DEFAULT_TRUNCATION_VOXELS * size,
        .form = input->compact ? VXD_VOLUME_COMPACT : VXD_VOLUME_FULL,
        .has_colour = input->colour,
        .has_labels = input->labels,
        .has_albedo = input->albedo,
        .max_weight = input->max_weight > 0 ? input->max_weight : DEFAULT_MAX_WEIGHT};
    if (input
            ->compact) { /* as the engine applies it, so that equal specs compare equal */
        spec->max_weight = fmin(floor(spec->max_weight), MAX_COMPACT_WEIGHT);
    }
    if (origin != NULL) {
        const double metres[3] = {origin->x, origin->y, origin->z};

        for (int i = 0; i < 3; i++) {
            VXD_TRY(vxd_volume_check_number(metres[i], "origin", -1e9, 1e9, err));
            spec->origin_m[i] = metres[i];
        }
    }
    if (vxd_volume_block_bytes(spec) == 0) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "truncation_m",
                         "is %g, must be one voxel to eight blocks: %g to %g",
                         spec->truncation_m, size, size * 8 * spec->block_edge));
    }
out:
    return status;
}

enum vxd_status vxd_volume_read_durability(const struct vxd_request *request,
                                           const struct vxd_volume_durability *wished,
                                           struct vxd_named_terms *terms,
                                           struct vxd_err *err)
{
    if (protobuf_c_enum_descriptor_get_value(&voxeld__v1__volume_fsync__descriptor,
                                             (int)wished->fsync) == NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "fsync",
                        "is %d; known: VOLUME_FSYNC_ALWAYS, VOLUME_FSYNC_EVERYSEC, "
                        "VOLUME_FSYNC_OFF",
                        (int)wished->fsync);
    }
    if (!wished->durable) {
        return wished->fsync == VOXELD__V1__VOLUME_FSYNC__VOLUME_FSYNC_ALWAYS &&
                       wished->journal_max_bytes == 0
                   ? VXD_OK
                   : vxd_fail(err, VXD_INVALID_ARGUMENT,
                              wished->journal_max_bytes > 0 ? "journal_max_bytes"
                                                            : "fsync",
                              "goes with durable");
    }
    if (vxd_registry_get_journal(request->server->registry) == NULL) {
        return vxd_fail(err, VXD_FAILED_PRECONDITION, "durable",
                        "the server keeps nothing: it has no data_dir");
    }
    if (terms->ttl_ns > 0) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "ttl_s",
                        "must be 0 of a durable volume, which lasts until it is dropped");
    }
    if (wished->journal_max_bytes > VXD_JOURNAL_MAX_BYTES) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "journal_max_bytes",
                        "is %" PRIu64 ", at most 2^63 - 1 is possible",
                        wished->journal_max_bytes);
    }
    terms->durable = true;
    terms->fsync = (enum vxd_fsync)wished->fsync;
    terms->journal_max_bytes = wished->journal_max_bytes > 0 ? wished->journal_max_bytes
                                                             : VXD_NAMED_JOURNAL_BYTES;
    return VXD_OK;
}

static enum vxd_status read_when_full(const Voxeld__V1__VolumeCreateRequest *input,
                                      struct vxd_named_terms *terms, struct vxd_err *err)
{
    if (protobuf_c_enum_descriptor_get_value(&voxeld__v1__volume_full__descriptor,
                                             (int)input->when_full) == NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "when_full",
                        "is %d; known: VOLUME_FULL_REFUSE, VOLUME_FULL_FORGET_FARTHEST",
                        (int)input->when_full);
    }
    terms->forgets =
        input->when_full == VOXELD__V1__VOLUME_FULL__VOLUME_FULL_FORGET_FARTHEST;
    return !terms->forgets || input->max_bytes > 0
               ? VXD_OK
               : vxd_fail(err, VXD_INVALID_ARGUMENT, "max_bytes",
                          "is needed by a volume that forgets its farthest blocks");
}

enum vxd_status vxd_volume_create_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__VolumeCreateRequest *input =
        (const Voxeld__V1__VolumeCreateRequest *)request->input;
    struct vxd_volume_durability durability;
    struct create_job *job;
    enum vxd_status status;

    VXD_TRY(vxd_volume_begin_check(request, sizeof *job, input->name, err));
    job = request->state;
    VXD_TRY(vxd_volume_check_number(input->ttl_s, "ttl_s", 0, VXD_VOLUME_MAX_TTL_S, err));
    VXD_TRY(read_spec(input, &job->spec, err));
    (void)snprintf(job->terms.name, sizeof job->terms.name, "%s", input->name);
    (void)snprintf(job->terms.owner, sizeof job->terms.owner, "%s",
                   request->principal.name);
    job->terms.max_bytes = input->max_bytes;
    job->terms.ttl_ns = (int64_t)ceil(input->ttl_s * 1e9);
    durability = (struct vxd_volume_durability){input->durable, input->fsync,
                                                input->journal_max_bytes};
    VXD_TRY(vxd_volume_read_durability(request, &durability, &job->terms, err));
    VXD_TRY(read_when_full(input, &job->terms, err));
out:
    return status;
}

static void compare_specs(const struct vxd_volume_spec *has,
                          const struct vxd_volume_spec *wished,
                          struct vxd_differing *differing)
{
    static const char *const origin[3] = {"origin.x", "origin.y", "origin.z"};

    vxd_differing_number(differing, "voxel_size_m", has->voxel_size_m,
                         wished->voxel_size_m);
    if (differing->n == 0) { /* its default follows from the size */
        vxd_differing_number(differing, "truncation_m", has->truncation_m,
                             wished->truncation_m);
    }
    vxd_differing_number(differing, "block", has->block_edge, wished->block_edge);
    vxd_differing_number(differing, "max_weight", has->max_weight, wished->max_weight);
    vxd_differing_flag(differing, "compact", has->form == VXD_VOLUME_COMPACT,
                       wished->form == VXD_VOLUME_COMPACT);
    vxd_differing_flag(differing, "colour", has->has_colour, wished->has_colour);
    vxd_differing_flag(differing, "labels", has->has_labels, wished->has_labels);
    for (int i = 0; i < 3; i++) {
        vxd_differing_number(differing, origin[i], has->origin_m[i], wished->origin_m[i]);
    }
}

/* errors  ALREADY_EXISTS  says which parameters of the volume are others */
static enum vxd_status check_equal(const struct vxd_named_volume *volume,
                                   const struct create_job *job, struct vxd_err *err)
{
    const struct vxd_named_terms *has = &volume->named.terms;
    const struct vxd_named_terms *wished = &job->terms;
    struct vxd_differing differing = {.n = 0};

    compare_specs(&volume->spec, &job->spec, &differing);
    vxd_differing_number(&differing, "max_bytes", (double)has->max_bytes,
                         (double)wished->max_bytes);
    vxd_differing_number(&differing, "ttl_s", (double)has->ttl_ns / 1e9,
                         (double)wished->ttl_ns / 1e9);
    vxd_differing_other(&differing, "when_full", has->forgets != wished->forgets);
    vxd_differing_flag(&differing, "durable", has->durable, wished->durable);
    if (has->durable && wished->durable) {
        vxd_differing_other(&differing, "fsync", has->fsync != wished->fsync);
        vxd_differing_number(&differing, "journal_max_bytes",
                             (double)has->journal_max_bytes,
                             (double)wished->journal_max_bytes);
    }
    vxd_differing_other(&differing, "a parameter",
                        differing.n == 0 &&
                            !vxd_volume_spec_equal(&volume->spec, &job->spec));
    return vxd_differing_check(&differing, "volume", has->name, err);
}

enum vxd_status vxd_volume_create_submit(struct vxd_request *request,
                                         struct vxd_queue *queue, struct vxd_err *err)
{
    struct create_job *job = request->state;
    struct vxd_names *volumes = request->server->volumes;
    struct vxd_named_volume *volume = vxd_volumes_find(volumes, job->terms.name);
    enum vxd_status status = VXD_OK;

    job->reply = vxd_message_new(request->decoder,
                                 &voxeld__v1__volume_create_response__descriptor, err);
    if (job->reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    if (volume != NULL) {
        job->base.volume = volume;
        vxd_named_hold(&volume->named);
        VXD_TRY(vxd_named_check_visible(&volume->named, err));
    }
    if (volume != NULL) {
        VXD_TRY(check_equal(volume, job, err));
    }
    job->reply->existed = volume != NULL;
    if (volume == NULL) {
        VXD_TRY(vxd_named_volume_new(volumes, queue, &job->terms, &job->spec, NULL,
                                     &job->base.made, err));
        volume = job->base.made;
        VXD_TRY(vxd_named_enter_journal(&volume->named, err));
    }
    status = vxd_volume_new_info(request->decoder, volume, &job->reply->volume, err);
out:
    return status;
}

enum vxd_status vxd_volume_create_finish(struct vxd_request *request,
                                         struct vxd_queue *queue, struct vxd_err *err)
{
    struct create_job *job = request->state;

    (void)queue;
    (void)err;
    request->output = &job->reply->base;
    if (job->base.made != NULL) {
        vxd_named_publish(&job->base.made->named);
        vxd_volume_conclude(request, &job->base.commit, job->base.made, VXD_NAMED_MADE);
    } else {
        vxd_volume_conclude(request, &job->base.commit, job->base.volume, VXD_NAMED_READ);
    }
    return VXD_OK;
}

/* --- drop ------------------------------------------------------------------------------ */

enum vxd_status vxd_volume_drop_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__VolumeDropRequest *input =
        (const Voxeld__V1__VolumeDropRequest *)request->input;

    return vxd_volume_begin_check(request, sizeof(struct vxd_volume_job), input->name,
                                  err);
}

enum vxd_status vxd_volume_drop_submit(struct vxd_request *request,
                                       struct vxd_queue *queue, struct vxd_err *err)
{
    const Voxeld__V1__VolumeDropRequest *input =
        (const Voxeld__V1__VolumeDropRequest *)request->input;
    Voxeld__V1__VolumeDropResponse *reply = vxd_message_new(
        request->decoder, &voxeld__v1__volume_drop_response__descriptor, err);
    const struct vxd_volume_job *job = request->state;
    enum vxd_status status;

    (void)queue;
    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    status = vxd_volume_open(request, input->name, err);
    if (status == VXD_UNAVAILABLE && !job->volume->named.durable.is_leaving &&
        job->volume->named.durable.n_waiting == 0) {
        /* A volume that cannot be brought back from the disk may be dropped. */
        status = vxd_named_check_journal(&job->volume->named, 0, err);
    }
    reply->existed = status == VXD_OK;
    request->output = &reply->base;
    return status == VXD_NOT_FOUND && input->missing_ok ? VXD_OK : status;
}

enum vxd_status vxd_volume_drop_finish(struct vxd_request *request,
                                       struct vxd_queue *queue, struct vxd_err *err)
{
    struct vxd_volume_job *job = request->state;

    (void)err;
    if (job->volume != NULL && job->volume->named.terms.durable) {
        job->commit.is_change = false;
        vxd_volume_conclude(request, &job->commit, job->volume, VXD_NAMED_DROPPED);
    } else if (job->volume != NULL) {
        vxd_named_remove(&job->volume->named, queue);
    }
    return VXD_OK;
}

/* --- list ------------------------------------------------------------------------------ */

struct list_job {
    struct vxd_volume_job base; /* first: request->state is both */
    struct vxd_decoder *arena;  /* not the request's, whose budget depends on its size */
};

enum vxd_status vxd_volume_list_check(struct vxd_request *request, struct vxd_err *err)
{
    request->state = vxd_message_array(request->decoder, 1, sizeof(struct list_job), err);
    return request->state != NULL ? VXD_OK : VXD_RESOURCE_EXHAUSTED;
}

enum vxd_status vxd_volume_list_submit(struct vxd_request *request,
                                       struct vxd_queue *queue, struct vxd_err *err)
{
    struct vxd_names *volumes = request->server->volumes;
    struct list_job *job = request->state;
    Voxeld__V1__VolumeListResponse *reply = vxd_message_new(
        request->decoder, &voxeld__v1__volume_list_response__descriptor, err);
    struct vxd_names_usage usage;
    enum vxd_status status = VXD_OK;

    (void)queue;
    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    vxd_names_get_usage(volumes, &usage);
    VXD_TRY(vxd_decoder_create((usage.n + 1) * MAX_INFO_BYTES, NULL, &job->arena, err));
    reply->volumes = vxd_message_pointers(job->arena, usage.n, err);
    if (reply->volumes == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (struct vxd_named *n = vxd_names_next(volumes, NULL); n != NULL;
         n = vxd_names_next(volumes, n)) {
        struct vxd_err why;

        (void)vxd_named_check_visible(n, &why); /* brings it back if it can */
        VXD_TRY(vxd_volume_new_info(job->arena, (const struct vxd_named_volume *)n,
                                    &reply->volumes[reply->n_volumes], err));
        reply->n_volumes++;
    }
    reply->n_bytes = usage.n_bytes;
    reply->limit_bytes = usage.limit_bytes;
    request->output = &reply->base;
out:
    return status;
}

enum vxd_status vxd_volume_list_finish(struct vxd_request *request,
                                       struct vxd_queue *queue, struct vxd_err *err)
{
    struct list_job *job = request->state;

    (void)queue;
    (void)err;
    vxd_volume_conclude(request, &job->base.commit, NULL, VXD_NAMED_READ);
    return VXD_OK;
}

void vxd_volume_list_release(struct vxd_request *request, struct vxd_queue *queue)
{
    struct list_job *job = request->state;

    (void)queue;
    vxd_decoder_destroy(job->arena);
    job->arena = NULL;
}

/* --- get ------------------------------------------------------------------------------- */

enum vxd_status vxd_volume_get_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__VolumeGetRequest *input =
        (const Voxeld__V1__VolumeGetRequest *)request->input;

    return vxd_volume_begin_check(request, sizeof(struct vxd_volume_job), input->name,
                                  err);
}

enum vxd_status vxd_volume_get_submit(struct vxd_request *request,
                                      struct vxd_queue *queue, struct vxd_err *err)
{
    const Voxeld__V1__VolumeGetRequest *input =
        (const Voxeld__V1__VolumeGetRequest *)request->input;
    Voxeld__V1__VolumeGetResponse *reply = vxd_message_new(
        request->decoder, &voxeld__v1__volume_get_response__descriptor, err);
    struct vxd_volume_job *job = request->state;
    struct vxd_named_volume *volume =
        vxd_volumes_peek(request->server->volumes, input->name);
    enum vxd_status status;

    (void)queue;
    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    if (volume == NULL) {
        return vxd_missing_volume(request, "name", input->name, err);
    }
    if (volume->named.terms.durable) {
        job->volume = volume; /* this does not count as a use of the volume */
        vxd_named_hold(&volume->named);
        VXD_TRY(vxd_volume_enlist(request, err));
    }
    request->output = &reply->base;
    status = vxd_volume_new_info(request->decoder, volume, &reply->volume, err);
out:
    return status;
}

/* Of methods whose reply submit has made. */
enum vxd_status vxd_volume_done(struct vxd_request *request, struct vxd_queue *queue,
                                struct vxd_err *err)
{
    (void)request;
    (void)queue;
    (void)err;
    return VXD_OK;
}
