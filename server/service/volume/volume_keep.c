// SPDX-License-Identifier: Apache-2.0
/* What volumes keep and forget: clear, decay, copy. */
#include <math.h>

#include "server/instance/instance.h"
#include "server/service/service.h"
#include "server/service/volume/volume_service.h"

#define EVERYWHERE_M 1e12

/* What clear and decay say of a region. */
struct wished_region {
    const Voxeld__V1__VolumeBox *box;
    const Voxeld__V1__Vec3 *centre;
    double radius_m;
    bool all;
};

static enum vxd_status read_region(const struct wished_region *input,
                                   struct vxd_volume_region *region, struct vxd_err *err)
{
    int n = (input->box != NULL ? 1 : 0) + (input->radius_m != 0 ? 1 : 0) +
            (input->all ? 1 : 0);
    enum vxd_status status;

    if (n != 1) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, n == 0 ? "box" : "all",
                        "one of box, radius_m and all is needed; %d are given", n);
    }
    if (input->box != NULL) {
        return vxd_volume_read_box(input->box, region->low, region->high, err);
    }
    if (input->all) {
        for (int i = 0; i < 3; i++) {
            region->low[i] = -EVERYWHERE_M;
            region->high[i] = EVERYWHERE_M;
        }
        return VXD_OK;
    }
    region->is_ball = true;
    region->radius = input->radius_m;
    if (input->centre != NULL) {
        region->centre[0] = input->centre->x;
        region->centre[1] = input->centre->y;
        region->centre[2] = input->centre->z;
    }
    for (int i = 0; i < 3; i++) {
        VXD_TRY(vxd_volume_check_number(region->centre[i], "centre", -1e12, 1e12, err));
    }
out:
    return status;
}

/* --- clear and decay ------------------------------------------------------------------- */

struct clear_job {
    struct vxd_volume_job base; /* first: request->state is both */
    struct vxd_volume_decay decay;
    size_t n_removed;
};

/* Makes the job of a request, whose name and region are these. */
static enum vxd_status check(struct vxd_request *request, const char *name,
                             const struct wished_region *wished, struct vxd_err *err)
{
    struct clear_job *job;
    enum vxd_status status;

    VXD_TRY(vxd_noun_begin_check(request, sizeof *job, name, err));
    job = request->state;
    VXD_TRY(read_region(wished, &job->decay.region, err));
out:
    return status;
}

/* Clears the region, or lets it decay, and has the journal keep what was done. */
static enum vxd_status submit(struct vxd_request *request, struct vxd_queue *queue,
                              const char *name, bool decays, struct vxd_err *err)
{
    struct clear_job *job = request->state;
    struct vxd_volume_record *record = &job->base.commit.entry.record;
    ProtobufCMessage *reply =
        vxd_message_new(request->decoder, request->method->output, err);
    struct vxd_volume *volume;
    enum vxd_status status;

    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(vxd_volume_open(request, name, err));
    volume = job->base.volume->state.volume;
    VXD_TRY(decays ? vxd_volume_decay(queue, volume, &job->decay, &job->n_removed, err)
                   : vxd_volume_clear(queue, volume, &job->decay.region, &job->n_removed,
                                      err));
    record->kind = VXD_VOLUME_RECORD_REMOVE;
    record->decays = decays;
    record->decay = job->decay;
    request->output = reply;
out:
    return status;
}

/* Says what was removed, and what is left. */
static void finish(const struct vxd_request *request, uint64_t *n_removed,
                   uint64_t *n_blocks, uint64_t *stamp)
{
    const struct clear_job *job = request->state;
    struct vxd_volume_info info;

    vxd_volume_get_info(job->base.volume->state.volume, &info);
    *n_removed = job->n_removed;
    *n_blocks = info.n_blocks;
    *stamp = info.version;
}

enum vxd_status vxd_volume_clear_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__VolumeClearRequest *input =
        (const Voxeld__V1__VolumeClearRequest *)request->input;
    const struct wished_region wished = {input->box, input->centre, input->radius_m,
                                         input->all};

    return check(request, input->name, &wished, err);
}

enum vxd_status vxd_volume_clear_submit(struct vxd_request *request,
                                        struct vxd_queue *queue, struct vxd_err *err)
{
    return submit(request, queue,
                  ((const Voxeld__V1__VolumeClearRequest *)request->input)->name, false,
                  err);
}

enum vxd_status vxd_volume_clear_finish(struct vxd_request *request,
                                        struct vxd_queue *queue, struct vxd_err *err)
{
    Voxeld__V1__VolumeClearResponse *reply =
        (Voxeld__V1__VolumeClearResponse *)request->output;

    (void)queue;
    (void)err;
    finish(request, &reply->n_removed, &reply->n_blocks, &reply->stamp);
    return VXD_OK;
}

enum vxd_status vxd_volume_decay_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__VolumeDecayRequest *input =
        (const Voxeld__V1__VolumeDecayRequest *)request->input;
    const struct wished_region wished = {input->box, input->centre, input->radius_m,
                                         input->all};
    struct clear_job *job;
    enum vxd_status status;

    VXD_TRY(check(request, input->name, &wished, err));
    job = request->state;
    job->decay.factor = input->factor;
    job->decay.min_weight = input->min_weight;
out:
    return status;
}

enum vxd_status vxd_volume_decay_submit(struct vxd_request *request,
                                        struct vxd_queue *queue, struct vxd_err *err)
{
    return submit(request, queue,
                  ((const Voxeld__V1__VolumeDecayRequest *)request->input)->name, true,
                  err);
}

enum vxd_status vxd_volume_decay_finish(struct vxd_request *request,
                                        struct vxd_queue *queue, struct vxd_err *err)
{
    Voxeld__V1__VolumeDecayResponse *reply =
        (Voxeld__V1__VolumeDecayResponse *)request->output;

    (void)queue;
    (void)err;
    finish(request, &reply->n_removed, &reply->n_blocks, &reply->stamp);
    return VXD_OK;
}

/* --- copy ------------------------------------------------------------------------------ */

struct copy_job {
    struct vxd_volume_job base; /* first: request->state is both */
    struct vxd_named_terms terms;
    Voxeld__V1__VolumeCopyResponse *reply;
};

enum vxd_status vxd_volume_copy_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__VolumeCopyRequest *input =
        (const Voxeld__V1__VolumeCopyRequest *)request->input;
    const struct vxd_noun_durability durability = {.one = "volume",
                                                   .durable = input->durable,
                                                   .fsync = (int)input->fsync,
                                                   .journal_max_bytes =
                                                       input->journal_max_bytes};
    struct copy_job *job;
    enum vxd_status status;

    VXD_TRY(vxd_noun_begin_check(request, sizeof *job, input->name, err));
    job = request->state;
    VXD_TRY(vxd_noun_check_name(input->to, "to", err));
    (void)snprintf(job->terms.name, sizeof job->terms.name, "%s", input->to);
    (void)snprintf(job->terms.owner, sizeof job->terms.owner, "%s",
                   request->principal.name);
    job->terms.ttl_ns = (int64_t)ceil(input->ttl_s * 1e9);
    VXD_TRY(vxd_noun_read_durability(request, &durability, &job->terms, err));
out:
    return status;
}

static enum vxd_status check_free(struct vxd_names *volumes, const char *name,
                                  struct vxd_err *err)
{
    return vxd_volumes_find(volumes, name) == NULL
               ? VXD_OK
               : vxd_fail(err, VXD_ALREADY_EXISTS, "to",
                          "there is a volume \"%s\" already", name);
}

/* Copies the engine's volume, and makes it a named one. */
static enum vxd_status copy(struct vxd_request *request, struct vxd_queue *queue,
                            struct vxd_err *err)
{
    struct copy_job *job = request->state;
    struct vxd_names *volumes = request->server->volumes;
    const struct vxd_named_volume *from = job->base.volume;
    struct vxd_volume *volume = NULL;
    struct vxd_volume_info info;
    enum vxd_status status;

    vxd_volume_get_info(from->state.volume, &info);
    job->terms.max_bytes = from->named.terms.max_bytes;
    job->terms.forgets = from->named.terms.forgets;
    VXD_TRY(vxd_names_check_copy(volumes, &job->terms, info.n_bytes, err));
    VXD_TRY(vxd_volume_copy(queue, from->state.volume, queue, &volume, err));
    VXD_TRY(vxd_named_volume_new(volumes, queue, &job->terms, &from->spec, volume,
                                 &job->base.made, err));
    job->base.made->state.n_images = from->state.n_images;
    VXD_TRY(vxd_named_enter_journal(&job->base.made->named, err));
out:
    return status;
}

enum vxd_status vxd_volume_copy_submit(struct vxd_request *request,
                                       struct vxd_queue *queue, struct vxd_err *err)
{
    const Voxeld__V1__VolumeCopyRequest *input =
        (const Voxeld__V1__VolumeCopyRequest *)request->input;
    struct copy_job *job = request->state;
    enum vxd_status status;

    job->reply = vxd_message_new(request->decoder,
                                 &voxeld__v1__volume_copy_response__descriptor, err);
    if (job->reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(vxd_volume_open(request, input->name, err));
    VXD_TRY(check_free(request->server->volumes, job->terms.name, err));
    VXD_TRY(copy(request, queue, err));
    status =
        vxd_volume_new_info(request->decoder, job->base.made, &job->reply->volume, err);
out:
    return status;
}

/* A copy of what is not decided waits for that: a durable one in the same transaction, another one
 * by its reply. */
enum vxd_status vxd_volume_copy_finish(struct vxd_request *request,
                                       struct vxd_queue *queue, struct vxd_err *err)
{
    struct copy_job *job = request->state;
    struct vxd_volume_commit *commit = &job->base.commit;

    (void)queue;
    (void)err;
    request->output = &job->reply->base;
    request->commit = NULL; /* the volume itself is not changed */
    commit->is_change = false;
    vxd_named_publish(&job->base.made->named);
    if (job->terms.durable) {
        commit->entry.copied_from = job->base.volume;
        vxd_volume_conclude(request, commit, job->base.made, VXD_NAMED_MADE);
    } else {
        commit->copy = job->base.made;
        vxd_volume_conclude(request, commit, job->base.volume, VXD_NAMED_READ);
    }
    return VXD_OK;
}
