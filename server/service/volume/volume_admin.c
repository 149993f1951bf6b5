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
    struct vxd_noun_create base; /* first: request->state is both */
    struct vxd_volume_spec spec;
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
    (void)snprintf(job->base.terms.name, sizeof job->base.terms.name, "%s", input->name);
    (void)snprintf(job->base.terms.owner, sizeof job->base.terms.owner, "%s",
                   request->principal.name);
    job->base.terms.max_bytes = input->max_bytes;
    job->base.terms.ttl_ns = (int64_t)ceil(input->ttl_s * 1e9);
    VXD_TRY(vxd_noun_read_durability(request, &durability, &job->base.terms, err));
    VXD_TRY(read_when_full(input, &job->base.terms, err));
out:
    return status;
}

static void compare(const struct vxd_request *request, const struct vxd_named *named,
                    struct vxd_differing *differing)
{
    const struct vxd_volume_spec *has = &((const struct vxd_named_volume *)named)->spec;
    const struct vxd_volume_spec *wished =
        &((const struct create_job *)request->state)->spec;
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
    vxd_differing_other(differing, "a parameter",
                        differing->n == 0 && !vxd_volume_spec_equal(has, wished));
}

static enum vxd_status make(struct vxd_request *request, struct vxd_queue *queue,
                            struct vxd_named **out, struct vxd_err *err)
{
    const struct create_job *job = request->state;
    struct vxd_named_volume *made = NULL;
    enum vxd_status status = vxd_named_volume_new(
        request->server->volumes, queue, &job->base.terms, &job->spec, NULL, &made, err);

    *out = made != NULL ? &made->named : NULL;
    return status;
}

static const struct vxd_noun_maker maker = {.one = "volume",
                                            .entry_bytes =
                                                sizeof(struct vxd_volume_entry),
                                            .compare = compare,
                                            .make = make};

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
                                                    .maker = &maker,
                                                    .missing = vxd_missing_volume};
