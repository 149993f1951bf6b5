// SPDX-License-Identifier: Apache-2.0
/* Volumes as a whole: create, drop, list, get. */
#include <math.h>

#include "server/instance/instance.h"
#include "server/service/noun/noun.h"
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

    if (input->max_weight > 0 && input->max_weight < 1) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "max_weight",
                         "is %g, must be 1 to 65535, or 0 for %d", input->max_weight,
                         DEFAULT_MAX_WEIGHT));
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

static enum vxd_status read_when_full(const Voxeld__V1__VolumeCreateRequest *input,
                                      struct vxd_named_terms *terms, struct vxd_err *err)
{
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
    const struct vxd_noun_durability durability = {.one = "volume",
                                                   .durable = input->durable,
                                                   .fsync = (int)input->fsync,
                                                   .journal_max_bytes =
                                                       input->journal_max_bytes};
    struct create_job *job;
    enum vxd_status status;

    VXD_TRY(vxd_noun_begin_check(request, sizeof *job, input->name, err));
    job = request->state;
    VXD_TRY(read_spec(input, &job->spec, err));
    (void)snprintf(job->terms.name, sizeof job->terms.name, "%s", input->name);
    (void)snprintf(job->terms.owner, sizeof job->terms.owner, "%s",
                   request->principal.name);
    job->terms.max_bytes = input->max_bytes;
    job->terms.ttl_ns = (int64_t)ceil(input->ttl_s * 1e9);
    VXD_TRY(vxd_noun_read_durability(request, &durability, &job->terms, err));
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
    struct vxd_differing differing = {.n = 0};

    compare_specs(&volume->spec, &job->spec, &differing);
    vxd_noun_compare_terms(has, &job->terms, &differing);
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

/* --- list, get, drop -------------------------------------------------------------------- */

static struct vxd_names *get_names(const struct vxd_server *server)
{
    return server->volumes;
}

static enum vxd_status new_info(struct vxd_request *request, struct vxd_decoder *arena,
                                const struct vxd_named *named, ProtobufCMessage **out,
                                struct vxd_err *err)
{
    Voxeld__V1__VolumeInfo *info = NULL;
    enum vxd_status status =
        vxd_volume_new_info(arena, (const struct vxd_named_volume *)named, &info, err);

    (void)request;
    *out = info != NULL ? &info->base : NULL;
    return status;
}

const struct vxd_noun_service vxd_volume_service = {.names = get_names,
                                                    .max_info_bytes = MAX_INFO_BYTES,
                                                    .list_field = "volumes",
                                                    .info_field = "volume",
                                                    .new_info = new_info,
                                                    .missing = vxd_missing_volume};
